//! Outputs are written under temporary names, and get their own when all are complete. What is
//! there already is left alone, unless that is asked for.

use crate::failure::{failure, Kind};
use crate::shards::Manifest;
use crate::signals;
use anyhow::{bail, Context, Result};
use rustix::fs::Access;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// What the names of temporary directories begin with.
const PREFIX: &str = ".libsplit-";

/// The file by which a directory is known to be made by 'libsplit shard'.
pub const MANIFEST: &str = "libsplit.json";

/// The temporary directory that there is at the moment.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Removes unfinished files, whatever the thread does that writes them: the program is about to exit.
pub fn abandon() {
    let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(directory) = unfinished else { return };
    // Files may still be made in it, until the directory that they are in is gone.
    for _ in 0..100 {
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => return,
        }
    }
}

/// A directory for unfinished files, which goes if the job fails.
pub struct Staging {
    temporary: TempDir,
    target: PathBuf,
    force: bool,
}

impl Staging {
    /// For files that go into a directory, which is made if it is not there.
    pub fn files_in(target: &Path, names: &[OsString], force: bool) -> Result<Self> {
        check_names(target, names, force)?;
        Self::within(target, target, force)
    }

    /// For a directory of shards as a whole.
    pub fn directory(target: &Path, force: bool) -> Result<Self> {
        check_directory(target, force)?;
        Self::within(parent(target), target, force)
    }

    fn within(directory: &Path, target: &Path, force: bool) -> Result<Self> {
        check_place(directory)?;
        let temporary = fs::create_dir_all(directory)
            .and_then(|()| tempfile::Builder::new().prefix(PREFIX).tempdir_in(directory))
            .with_context(|| format!("cannot write to {}", directory.display()))?;
        *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = Some(temporary.path().into());
        Ok(Self { temporary, target: target.into(), force })
    }

    /// Where the unfinished files are.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives files their names, in this order.
    pub fn publish_files(self, names: &[OsString]) -> Result<()> {
        check_names(&self.target, names, self.force)?;
        signals::settle();
        for name in names {
            let path = self.target.join(name);
            fs::rename(self.path().join(name), &path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        signals::let_go();
        Ok(())
    }

    /// Gives the directory its name. Of shards that were there, what their manifest lists goes.
    pub fn publish_directory(self) -> Result<()> {
        check_directory(&self.target, self.force)?;
        let cannot = || format!("cannot write {}", self.target.display());
        readable(self.path()).with_context(cannot)?;
        let manifest = Manifest::read(&self.target)?;
        signals::settle();
        let Some(manifest) = manifest else {
            // Nothing is there, or an empty directory.
            fs::rename(self.path(), &self.target).with_context(cannot)?;
            signals::let_go();
            return Ok(());
        };
        let mut old = OsString::from(self.path());
        old.push("-old");
        let old = PathBuf::from(old);
        exchange(self.path(), &self.target, &old).with_context(cannot)?;
        remove_listed(&old, &manifest).with_context(|| {
            format!("the new shards are complete; the old ones are now in {}", old.display())
        })?;
        signals::let_go();
        Ok(())
    }
}

/// The directory that something lies in.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Checks that a directory is there, or can be made, and that files can be made in it; returns what is there
/// of its path.
fn check_place(directory: &Path) -> Result<&Path> {
    let cannot = || format!("cannot write to {}", directory.display());
    let mut there = directory;
    let metadata = loop {
        match fs::metadata(there) {
            Ok(metadata) => break metadata,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(cannot);
            }
            Err(_) => there = parent(there),
        }
    };
    if !metadata.is_dir() {
        bail!("cannot write to {}: {} is not a directory", directory.display(), there.display());
    }
    let may_write = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(there, may_write).map_err(io::Error::from).with_context(cannot)?;
    Ok(there)
}

/// What is at a path, if anything; no error if nothing is.
fn at(path: &Path) -> Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Refuses names that are taken, and those that no file can have.
pub fn check_names(target: &Path, names: &[OsString], force: bool) -> Result<()> {
    let there = check_place(target)?;
    for name in names {
        at(&there.join(name))?; // which a file system may refuse whatever is there
        let path = target.join(name);
        if path.is_dir() {
            let message = format!("cannot write {}: it is a directory", path.display());
            return Err(failure(Kind::Exists, message));
        }
        if at(&path)?.is_some() && !force {
            let message = format!("{} already exists: --force replaces it", path.display());
            return Err(failure(Kind::Exists, message));
        }
    }
    Ok(())
}

/// Refuses a directory with something in it; by force, one that has anything but the files that the
/// manifest of shards lists.
pub fn check_directory(target: &Path, force: bool) -> Result<()> {
    let shown = target.display();
    let fail = |message| Err(failure(Kind::Exists, message));
    let Some(metadata) = at(target)? else {
        return match target.file_name() {
            Some(_) => check_place(parent(target)).map(drop),
            None => fail(format!("{shown} has no name of its own: give a new directory")),
        };
    };
    if metadata.is_symlink() {
        return fail(format!("{shown} is a link: give a new directory, or the one it points to"));
    }
    if !metadata.is_dir() {
        return fail(format!("{shown} already exists and is not a directory"));
    }
    let is_current = || Ok::<_, io::Error>(target.canonicalize()? == std::env::current_dir()?);
    if target.file_name().is_none() || is_current().unwrap_or(false) {
        return fail(format!(
            "{shown} is the current directory or above it, and shards replace a whole directory: \
             give a new one inside it"
        ));
    }
    if fs::metadata(parent(target)).is_ok_and(|above| above.dev() != metadata.dev()) {
        return fail(format!("{shown} is a mount point: give a new directory inside it"));
    }
    let files = files_in(target).with_context(|| shown.to_string())?;
    if files.is_empty() {
        return Ok(());
    }
    let Some(manifest) = Manifest::read(target)? else {
        return fail(format!(
            "{shown} is not empty, it contains {}: give a new directory",
            files[0].display()
        ));
    };
    if !force {
        return fail(format!("{shown} already contains shards: --force replaces them"));
    }
    let is_foreign = |file: &&PathBuf| !manifest.lists(file) || target.join(file).is_symlink();
    match files.iter().find(is_foreign) {
        Some(other) => fail(format!(
            "{shown} contains {}, which is a link or not a file of 'libsplit shard': move it away, or give a \
             new directory",
            other.display()
        )),
        None => Ok(()),
    }
}

/// All that lies in a directory and in the directories in it, one level deep: of links and of
/// directories in those, only the names.
fn files_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        if !entry.file_type()?.is_dir() {
            files.push(name);
            continue;
        }
        let before = files.len();
        for inner in fs::read_dir(entry.path())? {
            files.push(name.join(inner?.file_name()));
        }
        if files.len() == before {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

/// Removes what a manifest lists, and the directories, which have to be empty then.
fn remove_listed(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let files = files_in(directory)?;
    for file in files.iter().filter(|file| manifest.lists(file)) {
        fs::remove_file(directory.join(file))?;
    }
    for within in files.iter().filter_map(|file| file.parent()).collect::<BTreeSet<_>>() {
        if within != Path::new("") {
            fs::remove_dir(directory.join(within))?;
        }
    }
    fs::remove_dir(directory)
}

/// Temporary directories are the user's alone; what is published has the permissions of umask.
fn readable(path: &Path) -> io::Result<()> {
    let like = path.join("rank-0");
    fs::set_permissions(path, fs::metadata(like)?.permissions())
}

/// Puts one directory in the place of another, at once where the system can, and that aside.
fn exchange(from: &Path, to: &Path, aside: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{renameat_with, RenameFlags, CWD};
        if renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE).is_ok() {
            return fs::rename(from, aside);
        }
    }
    fs::rename(to, aside)?;
    fs::rename(from, to)
}

/// What has to be known of the disk before a file is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// There must be room: were there none when a mapping is written to, that would be a fatal signal
    /// and not an error.
    Needed,
    /// Room is taken where the system can do that at once.
    Wanted,
}

/// A new file of this size that begins with a header.
pub fn create(path: &Path, header: &[u8], data_bytes: u64, room: Room) -> Result<File> {
    let mut file = File::options().read(true).write(true).create_new(true).open(path)?;
    allocate(&file, (header.len() as u64).saturating_add(data_bytes), room)?;
    file.write_all(header)?;
    Ok(file)
}

/// Repeats a call that a signal has interrupted, if it was not one to stop.
#[cfg(target_os = "linux")]
fn until_done(mut call: impl FnMut() -> rustix::io::Result<()>) -> Result<rustix::io::Result<()>> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => signals::check()?,
            done => return Ok(done),
        }
    }
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Gives a file its size, and room on the disk, so that a full one is known before any work is done.
fn allocate(mut file: &File, bytes: u64, room: Room) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::{fs, io::Errno};
        if bytes == 0 {
            return Ok(());
        }
        let reserve = || fs::fallocate(file, fs::FallocateFlags::empty(), 0, bytes);
        match until_done(reserve)? {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
    }
    if room == Room::Wanted {
        return Ok(file.set_len(bytes)?);
    }
    let mut left = bytes;
    while left != 0 {
        signals::check()?;
        let part = left.min(ZEROS.len() as u64);
        file.write_all(&ZEROS[..usize::try_from(part)?])?;
        left -= part;
    }
    Ok(file.rewind()?)
}

#[cfg(test)]
mod tests {
    use super::until_done;
    use rustix::io::Errno;

    #[test]
    fn an_interrupted_call_is_made_again() {
        let mut answers = vec![Err(Errno::NOSPC), Err(Errno::INTR), Err(Errno::INTR)];
        assert_eq!(until_done(|| answers.pop().unwrap()).unwrap(), Err(Errno::NOSPC));
        let mut answers = vec![Ok(()), Err(Errno::INTR)];
        assert_eq!(until_done(|| answers.pop().unwrap()).unwrap(), Ok(()));
    }
}
