//! Outputs are written under temporary names, and get their own when all are complete. What is
//! there already is left alone, unless that is asked for.

use crate::failure::{failure, Kind};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What the names of temporary directories begin with.
const PREFIX: &str = ".libsplit-";

/// The file by which a directory is known as made by 'libsplit shard'.
pub const MANIFEST: &str = "libsplit.json";

/// A directory for unfinished files, which goes if the job fails.
pub struct Staging {
    temporary: TempDir,
    target: PathBuf,
    force: bool,
}

impl Staging {
    /// For files that go into a directory, which is made if it is not there.
    pub fn files_in(target: &Path, names: &[String], force: bool) -> Result<Self> {
        check_names(target, names, force)?;
        Self::within(target, target, force)
    }

    /// For a directory of shards as a whole.
    pub fn directory(target: &Path, force: bool) -> Result<Self> {
        check_directory(target, force)?;
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        Self::within(parent, target, force)
    }

    fn within(directory: &Path, target: &Path, force: bool) -> Result<Self> {
        let temporary = fs::create_dir_all(directory)
            .and_then(|()| tempfile::Builder::new().prefix(PREFIX).tempdir_in(directory))
            .with_context(|| format!("cannot write to {}", directory.display()))?;
        Ok(Self { temporary, target: target.into(), force })
    }

    /// Where the unfinished files are.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives files their names, in this order.
    pub fn publish_files(self, names: &[String]) -> Result<()> {
        check_names(&self.target, names, self.force)?;
        for name in names {
            let path = self.target.join(name);
            fs::rename(self.path().join(name), &path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Gives the directory its name; one that was there goes.
    pub fn publish_directory(self) -> Result<()> {
        check_directory(&self.target, self.force)?;
        let cannot = || format!("cannot write {}", self.target.display());
        readable(self.path()).with_context(cannot)?;
        if self.target.exists() {
            exchange(self.path(), &self.target).with_context(cannot)
        } else {
            // As it is gone from there, there is nothing left to remove.
            fs::rename(self.path(), &self.target).with_context(cannot)
        }
    }
}

/// Refuses names that are taken.
pub fn check_names(target: &Path, names: &[String], force: bool) -> Result<()> {
    for path in names.iter().map(|name| target.join(name)) {
        if path.is_dir() {
            let message = format!("cannot write {}: it is a directory", path.display());
            return Err(failure(Kind::Exists, message));
        }
        if !force && path.symlink_metadata().is_ok() {
            let message = format!("{} is there already: --force replaces it", path.display());
            return Err(failure(Kind::Exists, message));
        }
    }
    Ok(())
}

/// Refuses a directory with something in it; by force, one that is not of shards.
pub fn check_directory(target: &Path, force: bool) -> Result<()> {
    if target.symlink_metadata().is_err() {
        return Ok(());
    }
    let shown = target.display();
    let fail = |message| Err(failure(Kind::Exists, message));
    if !target.is_dir() {
        return fail(format!("{shown} is there already, and is no directory"));
    }
    let is_empty = fs::read_dir(target).with_context(|| shown.to_string())?.next().is_none();
    let has_shards = target.join(MANIFEST).is_file();
    match (is_empty, has_shards, force) {
        (true, ..) | (_, true, true) => Ok(()),
        (_, true, false) => {
            fail(format!("{shown} has shards in it already: --force replaces them"))
        }
        _ => fail(format!("{shown} has something else in it: give a new directory")),
    }
}

/// Temporary directories are the user's alone; what is published is everybody's, as umask has it.
fn readable(path: &Path) -> io::Result<()> {
    let like = path.join("rank-0");
    fs::set_permissions(path, fs::metadata(like)?.permissions())
}

/// Puts one directory in the place of another, at once where the system can.
fn exchange(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{renameat_with, RenameFlags, CWD};
        if renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE).is_ok() {
            return Ok(()); // the old one is now where the temporary one is cleaned up
        }
    }
    fs::remove_dir_all(to)?;
    fs::rename(from, to)
}

/// A new file of this size that begins with a header.
pub fn create(path: &Path, header: &[u8], data_bytes: u64) -> Result<File> {
    let create = || {
        let mut file = File::options().read(true).write(true).create_new(true).open(path)?;
        allocate(&file, (header.len() as u64).saturating_add(data_bytes))?;
        file.write_all(header)?;
        Ok::<_, io::Error>(file)
    };
    Ok(create()?)
}

/// Gives a file its size, and room on the disk, so that a full one is known before any work is done:
/// were there none when a mapping is written to, that would be a fatal signal and not an error.
fn allocate(mut file: &File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::{fs, io::Errno};
        if bytes == 0 {
            return Ok(());
        }
        match fs::fallocate(file, fs::FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
    }
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    file.rewind()
}
