//! One set of files made of another: a whole checkpoint or shards of it, of shards or the whole.

use crate::args::Writing;
use crate::checkpoint::{ModelFile, Source};
use crate::failure::{failure, invalid, usage, Kind};
use crate::order::Mark;
use crate::plan::{place, Place, Placed};
use crate::progress::Progress;
use crate::report::{shown, warn};
use crate::shards::{
    bytes_of, fingerprint, index_text, lay_out, model_of, rank_name, Checksums, Manifest, RankFile,
    Shards, Totals, WholeFile, FORMAT, VERSION,
};
use crate::signals;
use crate::staging::{check_directory, check_names, create, parent, Room, Staging, MANIFEST};
use crate::told::Told;
use crate::transfer::{End, Mover, Side, Whole};
use anyhow::{Context, Error, Result};
use libsplit_formats::safetensors::{Header, Tensor, LONGEST};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// More than a mark adds to a header.
const MARK_BYTES: u64 = 512;

/// What is to be made of shards.
pub struct Job<'a> {
    pub command: &'static str,
    /// For so many ranks, or one whole.
    pub tp: Option<usize>,
    pub output: Option<&'a Path>,
    /// Whether the plan is the user's; that of shards has been checked before.
    pub is_new_plan: bool,
    pub allow_unmatched: bool,
    /// Names of small files that are copied along.
    pub copied: Vec<String>,
    /// Names of other files that lie beside them, to be named.
    pub left: Vec<String>,
    pub chunk: u64,
    pub threads: usize,
    pub writing: &'a Writing,
}

/// Bytes of tensors that were read and written, and the checksums of each file's tensors.
#[derive(Default)]
pub struct Done {
    pub read: u64,
    pub written: u64,
    checksums: Vec<Checksums>,
}

impl Job<'_> {
    pub fn run(&self, shards: &Shards) -> Result<()> {
        let given = shards.given();
        let placed =
            self.tp.map(|tp| place(&shards.plan, &shards.model, tp, &given)).transpose()?;
        let warnings = match placed.as_ref().or(shards.placed.as_ref()) {
            Some(placed) if self.is_new_plan => {
                placed.check_matched(&shards.plan, &shards.model, self.allow_unmatched)?
            }
            _ => Vec::new(),
        };
        if !self.writing.json {
            for warning in &warnings {
                warn(warning);
            }
        }
        self.check_copies(shards, placed.as_ref())?;
        let done = match (self.output, &placed) {
            (Some(output), Some(placed)) => self.write_ranks(shards, placed, output)?,
            (Some(output), None) => self.write_whole(shards, output)?,
            (None, _) => Done::default(), // a dry run
        };
        Told { job: self, shards, placed: placed.as_ref(), warnings: &warnings, done: &done }.tell()
    }

    /// Checks, before anything is written, that every tensor can be copied, and every header read again.
    fn check_copies(&self, shards: &Shards, placed: Option<&Placed>) -> Result<()> {
        for (index, file) in shards.model.files.iter().enumerate() {
            let from = shards.placed.as_ref().map(|placed| placed.tensors[index].as_slice());
            let to = placed.map(|placed| placed.tensors[index].as_slice());
            for (at, tensor) in file.header.tensors.iter().enumerate() {
                signals::check()?;
                let (from, to) = (place_of(from, at), place_of(to, at));
                let whole = Whole { dtype: tensor.dtype, shape: &tensor.shape };
                whole.check([from.cut(), to.cut()]).with_context(|| {
                    format!("tensor {}, shape {:?}", shown(&tensor.name), tensor.shape)
                })?;
            }
            let Some((to, ranks)) = to.zip(placed.map(|placed| placed.tp)) else { continue };
            // Few headers come near the limit.
            if file.header.longest_bytes() + MARK_BYTES > LONGEST {
                for rank in 0..ranks {
                    let mut header = header_of(file, to, rank)?;
                    Mark::new(rank, ranks, "0".repeat(16)).add(&mut header);
                    bytes_of(&header, &file.name)?;
                }
            }
        }
        for name in &self.copied {
            let path = shards.directory.join(name);
            File::open(&path).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    fn write_ranks(&self, shards: &Shards, placed: &Placed, output: &Path) -> Result<Done> {
        check_directory(output, self.writing.force)?;
        if let Ok(inside) = output.canonicalize() {
            let is_inside = |source: &&Source| {
                source.path.canonicalize().is_ok_and(|path| path.starts_with(&inside))
            };
            if let Some(source) = shards.sources().find(is_inside) {
                return Err(is_input(&source.path, output));
            }
        }
        if self.writing.dry_run {
            return Ok(Done::default());
        }
        let staging = Staging::directory(output, self.writing.force)?;
        let plan = fingerprint(&shards.plan, &placed.values);
        let mut made = Vec::new();
        for rank in 0..placed.tp {
            let name = PathBuf::from(rank_name(rank));
            let directory = staging.path().join(&name);
            fs::create_dir(&directory).with_context(|| output.display().to_string())?;
            let mark = Mark::new(rank, placed.tp, plan.clone());
            let mut files = Vec::new();
            for (file, places) in shards.model.files.iter().zip(&placed.tensors) {
                signals::check()?;
                let mut header = header_of(file, places, rank)?;
                mark.add(&mut header);
                let bytes = bytes_of(&header, &file.name)?;
                files.push(Made::new(name.join(&file.name), &header, &bytes, &staging, output)?);
            }
            made.push(files);
            if let Some(index) = &shards.model.index {
                let text = rank_index(shards, placed, rank, &index.text)?;
                save(&directory.join(&index.name), text.as_bytes(), output)?;
            }
        }
        let done = self.copy(shards, Some(placed), &made, &staging, output)?;
        self.copy_small_files(&shards.directory, staging.path(), output)?;
        let whole = shards.model.files.iter().zip(&done.checksums).map(|(file, xxh3)| WholeFile {
            name: file.name.clone(),
            header: file.text.clone(),
            data_bytes: file.header.tensors.last().map_or(0, |tensor| tensor.end),
            xxh3: xxh3.clone(),
        });
        let mut manifest = Manifest {
            format: FORMAT.into(),
            version: VERSION,
            written_by: format!("libsplit {}", env!("CARGO_PKG_VERSION")),
            tp: placed.tp,
            plan: shards.plan.text.clone(),
            quantization: shards.quantization.clone(),
            values: placed.values.clone(),
            files: whole.collect(),
            index: shards.model.index.clone(),
            copied: self.copied.clone(),
            xxh3: String::new(),
        };
        manifest.xxh3 = manifest.checksum()?;
        let save = || {
            let mut file = BufWriter::new(File::create(staging.path().join(MANIFEST))?);
            serde_json::to_writer_pretty(&mut file, &manifest)?;
            file.write_all(b"\n")?;
            Ok::<_, Error>(file.into_inner()?.sync_all()?)
        };
        save().with_context(|| format!("cannot write {MANIFEST} in {}", output.display()))?;
        staging.publish_directory()?;
        Ok(done)
    }

    fn write_whole(&self, shards: &Shards, output: &Path) -> Result<Done> {
        let (mut directory, mut names) = (output, Vec::new());
        let is_file = output.extension().is_some_and(|extension| extension == "safetensors");
        if is_file {
            if shards.model.files.len() != 1 || shards.model.index.is_some() {
                usage!(
                    "{}: the checkpoint has {} files and an index: give a directory",
                    output.display(),
                    shards.model.files.len()
                );
            }
            names.push(output.file_name().unwrap_or_default().to_owned());
            directory = parent(output);
        } else {
            names.extend(self.copied.iter().map(OsString::from));
            names.extend(shards.model.files.iter().map(|file| OsString::from(&file.name)));
        }
        names.extend(shards.model.index.as_ref().map(|index| OsString::from(&index.name)));
        check_names(directory, &names, self.writing.force)?;
        for path in names.iter().map(|name| directory.join(name)) {
            if path.exists() && shards.sources().any(|source| source.is_at(&path)) {
                return Err(is_input(&path, &path));
            }
        }
        if self.writing.dry_run {
            return Ok(Done::default());
        }
        let staging = Staging::files_in(directory, &names, self.writing.force)?;
        let mut made = Vec::new();
        for file in &shards.model.files {
            let name = if is_file { PathBuf::from(&names[0]) } else { PathBuf::from(&file.name) };
            let header = [&(file.text.len() as u64).to_le_bytes(), file.text.as_bytes()].concat();
            made.push(Made::new(name, &file.header, &header, &staging, directory)?);
        }
        let done = self.copy(shards, None, &[made], &staging, directory)?;
        if !is_file {
            self.copy_small_files(&shards.directory, staging.path(), directory)?;
        }
        if let Some(index) = &shards.model.index {
            save(&staging.path().join(&index.name), index.text.as_bytes(), directory)?;
        }
        staging.publish_files(&names)?; // the index last: with it the set is complete
        Ok(done)
    }

    /// Reads all tensors and compares their checksums.
    pub fn verify(&self, shards: &Shards) -> Result<u64> {
        let staging = None;
        let progress = self.progress(shards);
        let mut read = 0;
        for index in 0..shards.model.files.len() {
            read += self.copy_file(shards, None, &[], index, staging, &progress)?.read;
        }
        Ok(read)
    }

    fn progress(&self, shards: &Shards) -> Progress {
        let bytes = match &shards.placed {
            Some(placed) => placed.rank_bytes.iter().sum(),
            None => shards.model.bytes(),
        };
        Progress::new(bytes, self.writing.quiet)
    }

    /// Copies all tensors into files that have been made, for each rank those of the model.
    fn copy(
        &self,
        shards: &Shards,
        placed: Option<&Placed>,
        made: &[Vec<Made>],
        staging: &Staging,
        output: &Path,
    ) -> Result<Done> {
        let progress = self.progress(shards);
        let mut all = Done::default();
        let place = Some((staging.path(), output));
        for index in 0..shards.model.files.len() {
            let done = self.copy_file(shards, placed, made, index, place, &progress)?;
            all.read += done.read;
            all.written += done.written;
            all.checksums.extend(done.checksums);
        }
        Ok(all)
    }

    /// Copies what becomes of one of the model's files, a tensor at a time on each thread.
    fn copy_file(
        &self,
        shards: &Shards,
        placed: Option<&Placed>,
        made: &[Vec<Made>],
        index: usize,
        place: Option<(&Path, &Path)>,
        progress: &Progress,
    ) -> Result<Done> {
        let sources: Vec<_> = shards.ranks.iter().map(|files| &files[index]).collect();
        let (staging, output) = place.unwrap_or((Path::new(""), Path::new("")));
        let sink = |made: &Made| -> Result<Sink> {
            let shown = output.join(&made.name).display().to_string();
            let file = File::options().write(true).open(staging.join(&made.name));
            let file = file.with_context(|| format!("cannot write {shown}"))?;
            Ok(Sink { file, shown, next: made.data_begin, model_at: made.model_at })
        };
        let sinks = made.iter().map(|files| sink(&files[index])).collect::<Result<Vec<_>>>()?;
        let open = sources.iter().map(|source| source.source.open()).collect::<Result<Vec<_>>>()?;
        let shown = sources.iter().map(|source| source.source.path.display().to_string()).collect();
        let begins = sinks.iter().map(|sink| sink.next).collect();
        let work = Work {
            job: self,
            file: &shards.model.files[index],
            from: shards.placed.as_ref().map(|placed| placed.tensors[index].as_slice()),
            to: placed.map(|placed| placed.tensors[index].as_slice()),
            sources: &sources,
            open,
            shown,
            sinks,
            expected: shards.checksums.as_ref().map(|checksums| &checksums[index]),
            progress,
            next: Mutex::new((0, begins)),
            done: Mutex::new(Ok(Done { checksums: vec![Checksums::new()], ..Done::default() })),
        };
        thread::scope(|scope| {
            for _ in 1..self.threads.min(work.file.header.tensors.len()) {
                // A thread that cannot be had leaves its work to the others.
                let _ = thread::Builder::new().spawn_scoped(scope, || work.run());
            }
            work.run();
        });
        let done = work.done.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        for source in &sources {
            source.source.check_unchanged()?;
        }
        let model = model_of(&done.checksums[0]);
        if shards.models.as_ref().is_some_and(|models| models[index] != model) {
            invalid!(
                "{}: the ranks together do not give the model that they were made from: a shard \
                 has been damaged or changed",
                shards.model.files[index].name
            );
        }
        for Sink { file, shown, model_at, .. } in &work.sinks {
            let write = |at: &u64| file.write_all_at(model.as_bytes(), *at);
            let written = model_at.iter().try_for_each(write).and_then(|()| file.sync_all());
            written.with_context(|| format!("cannot write {shown}"))?;
        }
        Ok(done)
    }

    fn copy_small_files(&self, from: &Path, to: &Path, output: &Path) -> Result<()> {
        for name in &self.copied {
            let source = from.join(name);
            let content = fs::read(&source).with_context(|| source.display().to_string())?;
            save(&to.join(name), &content, output)?;
        }
        Ok(())
    }
}

fn is_input(source: &Path, output: &Path) -> Error {
    let (source, output) = (source.display(), output.display());
    failure(
        Kind::Exists,
        format!("cannot write {output}: {source} is one of the inputs: choose another output"),
    )
}

/// A file to be filled: its place below the output, and where its tensors begin.
struct Made {
    name: PathBuf,
    data_begin: u64,
    /// Where it is to say which model it is of.
    model_at: Option<u64>,
}

impl Made {
    /// Makes the file, with its header; all are made first, so that a full disk is known before the
    /// work begins.
    fn new(
        name: PathBuf,
        header: &Header,
        bytes: &[u8],
        staging: &Staging,
        output: &Path,
    ) -> Result<Self> {
        let data_bytes = header.tensors.last().map_or(0, |tensor| tensor.end);
        create(&staging.path().join(&name), bytes, data_bytes, Room::Wanted)
            .with_context(|| format!("cannot write {}", output.join(&name).display()))?;
        let (data_begin, model_at) = (bytes.len() as u64, Mark::place_of_model(bytes));
        Ok(Self { name, data_begin, model_at })
    }
}

/// The header of a rank's file.
fn header_of(file: &ModelFile, places: &[(Option<usize>, Place)], rank: usize) -> Result<Header> {
    let tensors = file.header.tensors.iter().zip(places).filter_map(|(tensor, (_, place))| {
        let shape = place.shape(rank, &tensor.shape)?;
        Some(Tensor { shape, ..tensor.clone() })
    });
    let mut header = Header { tensors: tensors.collect(), metadata: file.header.metadata.clone() };
    lay_out(&mut header)?;
    Ok(header)
}

/// The index of a rank: of the tensors that it has.
fn rank_index(shards: &Shards, placed: &Placed, rank: usize, text: &str) -> Result<String> {
    let listed = shards.model.tensors().zip(placed.tensors.iter().flatten());
    let listed = listed.filter(|((_, is_listed), _)| *is_listed);
    let shapes = listed
        .map(|((tensor, _), (_, place))| (tensor.name.as_str(), place.shape(rank, &tensor.shape)));
    let shapes: HashMap<_, _> = shapes.collect();
    let whole = Totals::of(&shards.model, |tensor| Some(tensor.shape.clone()));
    let here = Totals::of(&shards.model, |tensor| shapes.get(tensor.name.as_str()).cloned()?);
    index_text(text, &whole, &here, |name| shapes.get(name).is_some_and(Option::is_some))
}

/// A file that tensors are written to, one after the other.
struct Sink {
    file: File,
    shown: String,
    next: u64,
    model_at: Option<u64>,
}

/// What the threads share that copy the tensors of a file.
struct Work<'a> {
    job: &'a Job<'a>,
    file: &'a ModelFile,
    /// Where the tensors are, and where they go; none: in one whole.
    from: Option<&'a [(Option<usize>, Place)]>,
    to: Option<&'a [(Option<usize>, Place)]>,
    sources: &'a [&'a RankFile],
    open: Vec<File>,
    shown: Vec<String>,
    sinks: Vec<Sink>,
    expected: Option<&'a Checksums>,
    progress: &'a Progress,
    /// The next tensor, and where it begins in each of the sinks.
    next: Mutex<(usize, Vec<u64>)>,
    done: Mutex<Result<Done>>,
}

impl Work<'_> {
    fn run(&self) {
        let mut mover = Mover::new(self.job.chunk, self.progress);
        while let Some((index, begins)) = self.take() {
            let found = self.copy(&mut mover, index, &begins);
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            match (&mut *done, found) {
                (Ok(done), Ok(checksum)) => {
                    let name = self.file.header.tensors[index].name.clone();
                    done.checksums[0].insert(name, checksum);
                }
                (Ok(_), Err(error)) => *done = Err(error),
                (Err(_), _) => {}
            }
            if done.is_err() {
                return;
            }
        }
        if let Ok(done) = &mut *self.done.lock().unwrap_or_else(PoisonError::into_inner) {
            done.read += mover.read;
            done.written += mover.written;
        }
    }

    /// Takes the next tensor, and where it begins in each of the sinks.
    fn take(&self) -> Option<(usize, Vec<u64>)> {
        if self.done.lock().unwrap_or_else(PoisonError::into_inner).is_err() {
            return None;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (index, begins) = &mut *next;
        let tensor = self.file.header.tensors.get(*index)?;
        let taken = (*index, begins.clone());
        for (rank, begin) in begins.iter_mut().enumerate() {
            let shape = place_of(self.to, *index).shape(rank, &tensor.shape);
            *begin += shape.and_then(|shape| tensor.dtype.bytes(&shape)).unwrap_or(0);
        }
        *index += 1;
        Some(taken)
    }

    fn copy(&self, mover: &mut Mover, index: usize, begins: &[u64]) -> Result<String> {
        let tensor = &self.file.header.tensors[index];
        let (from, to) = (place_of(self.from, index), place_of(self.to, index));
        let has = |place: &Place, rank: usize| match place {
            Place::Rank(only) => *only == rank,
            _ => true,
        };
        let source = |rank: usize| End {
            file: &self.open[rank],
            begin: self.sources[rank].begins[index],
            path: &self.shown[rank],
        };
        let sink = |rank: usize| End {
            file: &self.sinks[rank].file,
            begin: begins[rank],
            path: &self.sinks[rank].shown,
        };
        let sources = (0..self.open.len()).filter(|rank| has(&from, *rank)).map(source).collect();
        let sinks = (0..self.sinks.len()).filter(|rank| has(&to, *rank)).map(sink).collect();
        let whole = Whole { dtype: tensor.dtype, shape: &tensor.shape };
        let from = Side { ends: sources, cut: from.cut() };
        let to = Side { ends: sinks, cut: to.cut() };
        let in_context = || format!("tensor {}", shown(&tensor.name));
        let checksum = mover.copy(&whole, &from, &to).with_context(in_context)?;
        let checksum = format!("{checksum:016x}");
        let expected = self.expected.map(|expected| expected.get(&tensor.name));
        if expected.is_some_and(|expected| expected != Some(&checksum)) {
            let expected = expected.flatten().map_or("none", String::as_str);
            let message = format!(
                "its checksum is {checksum}, but was {expected} when the shards were written: a \
                 shard \
                 has been damaged or changed; shard the model again, or restore the file"
            );
            return Err(failure(Kind::Invalid, message)).with_context(|| {
                let files: Vec<_> = from.ends.iter().map(|end| end.path).take(2).collect();
                let more = if from.ends.len() > 2 { " and others" } else { "" };
                format!("tensor {}, in {}{more}", tensor.name, files.join(", "))
            });
        }
        Ok(checksum)
    }
}

fn place_of(places: Option<&[(Option<usize>, Place)]>, index: usize) -> Place {
    places.map_or(Place::Whole, |places| places[index].1.clone())
}

/// Writes a small file, to the disk.
fn save(path: &Path, content: &[u8], output: &Path) -> Result<()> {
    let save = || {
        fs::write(path, content)?;
        File::open(path)?.sync_all()
    };
    save().with_context(|| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("cannot write {name} in {}", output.display())
    })
}
