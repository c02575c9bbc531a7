//! The subcommand npy: splits any `.npy` file by any operator's rules.
//!
//! Input and outputs are mapped into memory, so files may be larger than it. Values are not
//! looked at: a dtype is mapped to the element type whose rules apply, or else to bytes.

use crate::args::{Npy, Op};
use crate::checkpoint::what_it_is;
use crate::failure::{failure, refuse, usage, Kind};
use crate::progress::Progress;
use crate::report::{path_text, print, print_json};
use crate::signals;
use crate::split::{Layout, Lengths, Output, Pool, Split};
use crate::staging::{check_names, create, Room, Staging};
use anyhow::{Context, Result};
use libsplit::ffi::{libsplit_dtype, libsplit_op, LIBSPLIT_FLAG_CLAMP_UNEVEN};
use libsplit_formats::npy::{tuple, Header};
use memmap2::{Mmap, MmapMut};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More files than this are taken for a mistake.
const MAX_PIECES: usize = 1_000_000;
/// Pieces mapped at a time: a process may have some 65,000 mappings.
const BATCH: usize = 1024;

/// Splits a file.
pub fn npy(args: &Npy) -> Result<()> {
    check_usage(args)?;
    let name = || args.input.display().to_string();
    let file = open(&args.input).with_context(name)?;
    // SAFETY: sound as long as nobody changes the file meanwhile, like every mapping.
    let input = unsafe { Mmap::map(&file) }.with_context(name)?;
    if let Some(what) = what_it_is(&input[..input.len().min(128)]).filter(|_| !is_npy(&input)) {
        return Err(failure(Kind::Invalid, format!("not an .npy file, but {what}")))
            .with_context(name);
    }
    let (header, begin) = Header::parse(&input).with_context(name)?;
    let bytes = header.bytes(&header.shape).with_context(name)?;
    let Some(data) = input[begin..].get(..bytes) else {
        let there = input.len() - begin;
        let message = format!("truncated: the array takes {bytes} bytes, the file has {there}");
        return Err(failure(Kind::Invalid, message)).with_context(name);
    };
    let mut split = split_of(args, &header.shape);
    let items = Items::of(&header)?;
    let shapes = items.shapes_of_pieces(&split, &header)?;
    // The rules have been applied without the axis of a byte, which must not be taken for axis -1.
    split.axis = split.axis.rem_euclid(i64::try_from(header.shape.len())?);
    let plan = args.explain.then(|| items.explain(&split, &header, shapes.len())).transpose()?;
    let names = names(args, shapes.len());
    if args.writing.dry_run {
        check_names(&args.outdir, &names, args.writing.force)?;
    } else {
        let staging = Staging::files_in(&args.outdir, &names, args.writing.force)?;
        let progress = Progress::new(bytes as u64, args.writing.quiet);
        let job = Job { args, split, items, header: &header, shapes: &shapes, names: &names };
        for start in (0..shapes.len()).step_by(BATCH) {
            job.copy_batch(
                data,
                start..shapes.len().min(start + BATCH),
                staging.path(),
                &progress,
            )?;
        }
        staging.publish_files(&names)?;
    }
    tell(args, &header, &shapes, &names, plan.as_deref())
}

/// Refuses options that make no sense together, whatever the input is.
fn check_usage(args: &Npy) -> Result<()> {
    let (has_parts, has_lengths) = (args.parts.is_some(), args.lengths.is_some());
    let is_split = matches!(args.op, Op::Split);
    let is_sequence = matches!(args.op, Op::SplitToSequence);
    if args.opset.is_some() && !is_split && !is_sequence {
        usage!("--opset is for the ONNX operators, split and split-to-sequence: leave it out");
    }
    if args.each.is_some() && !is_sequence {
        usage!("--each is for --op split-to-sequence; otherwise give --parts or --lengths");
    }
    if args.keepdims == 0 && !is_sequence {
        usage!("--keepdims 0 is for --op split-to-sequence");
    }
    if (args.clamp_uneven || args.balanced) && !(is_split && has_parts && !has_lengths) {
        usage!("--clamp-uneven and --balanced go with --op split and --parts, without --lengths");
    }
    if let Some(parts) = args.parts.filter(|parts| *parts < 1) {
        usage!("--parts {parts}: give at least 1");
    }
    if let Some(each) = args.each.filter(|each| *each < 1) {
        usage!("--each {each}: give at least 1");
    }
    match args.op {
        Op::Split if !has_parts && !has_lengths => usage!("give --parts N or --lengths A,B,..."),
        Op::Split if has_parts && has_lengths && args.opset.is_none_or(|opset| opset >= 18) => {
            usage!("--parts and --lengths are both given: from opset 18 on, split takes only one of them")
        }
        Op::SplitToSequence if has_parts => {
            usage!(
                "--parts is not for split-to-sequence: give --each N, --lengths A,B,... or neither"
            )
        }
        Op::VariadicSplit if !has_lengths || has_parts => {
            usage!("variadic-split takes --lengths A,B,..., of which one may be -1, and no --parts")
        }
        Op::OpenvinoSplit if !has_parts || has_lengths => {
            usage!(
                "openvino-split takes --parts N and no --lengths: for lengths use variadic-split"
            )
        }
        _ => Ok(()),
    }
}

/// Opens a file. What can be read only once is copied first, to where the system has temporary files.
fn open(path: &Path) -> Result<File> {
    if path == Path::new("-") {
        return spool(std::io::stdin().lock());
    }
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        anyhow::bail!("it is a directory: give an .npy file");
    }
    if kind.is_file() {
        Ok(file)
    } else {
        spool(file)
    }
}

fn spool(mut from: impl Read) -> Result<File> {
    let mut file = tempfile::tempfile().context("cannot create a temporary file for the input")?;
    std::io::copy(&mut from, &mut file)?;
    Ok(file)
}

fn split_of(args: &Npy, shape: &[i64]) -> Split {
    let opset = args.opset.unwrap_or(i32::MAX);
    let (op, opset) = match args.op {
        Op::Split => (libsplit_op::ONNX_SPLIT, opset),
        Op::SplitToSequence => (libsplit_op::ONNX_SPLIT_TO_SEQUENCE, opset),
        Op::VariadicSplit => (libsplit_op::OPENVINO_VARIADIC_SPLIT, 1),
        Op::OpenvinoSplit => (libsplit_op::OPENVINO_SPLIT, 1),
    };
    let balanced = args.balanced.then(|| balanced(args, shape)).flatten();
    let lengths = balanced.clone().or(args.lengths.clone()).map(Lengths::List);
    Split {
        op,
        opset,
        axis: args.axis,
        lengths: lengths.or(args.each.map(Lengths::Scalar)),
        num_outputs: if balanced.is_some() { 0 } else { args.parts.unwrap_or(0) },
        keepdims: args.keepdims != 0,
        flags: if args.clamp_uneven { LIBSPLIT_FLAG_CLAMP_UNEVEN } else { 0 },
    }
}

/// The lengths of so many parts that differ by one at most, the longer ones first; none if there is no
/// such axis.
fn balanced(args: &Npy, shape: &[i64]) -> Option<Vec<i64>> {
    let rank = i64::try_from(shape.len()).ok()?;
    let axis = if args.axis < 0 { args.axis.checked_add(rank)? } else { args.axis };
    let extent = *shape.get(usize::try_from(axis).ok()?)?;
    let parts =
        args.parts.filter(|parts| usize::try_from(*parts).is_ok_and(|it| it <= MAX_PIECES))?;
    Some((0..parts).map(|part| extent / parts + i64::from(part < extent % parts)).collect())
}

fn is_npy(begin: &[u8]) -> bool {
    begin.starts_with(b"\x93NUMPY")
}

/// The names of the pieces.
fn names(args: &Npy, count: usize) -> Vec<OsString> {
    let is_stdin = args.input == Path::new("-");
    let stem =
        if is_stdin { OsStr::new("stdin") } else { args.input.file_stem().unwrap_or_default() };
    let name = |index: usize| {
        let mut name = stem.to_owned(); // whatever its bytes are
        name.push(format!("_{index}.npy"));
        name
    };
    (0..count).map(name).collect()
}

/// The element type whose rules apply to an array's items; an item that is not one of them is an
/// axis of them.
struct Items {
    dtype: libsplit_dtype,
    /// Elements of an item, if it is an axis.
    axis: Option<i64>,
}

impl Items {
    fn of(header: &Header) -> Result<Self> {
        let dtype = match header.code.as_str() {
            "b1" => libsplit_dtype::BOOL,
            "i1" => libsplit_dtype::INT8,
            "i2" => libsplit_dtype::INT16,
            "i4" => libsplit_dtype::INT32,
            "i8" => libsplit_dtype::INT64,
            "u2" => libsplit_dtype::UINT16,
            "u4" => libsplit_dtype::UINT32,
            "u8" => libsplit_dtype::UINT64,
            "f2" => libsplit_dtype::FLOAT16,
            "f4" => libsplit_dtype::FLOAT,
            "f8" => libsplit_dtype::DOUBLE,
            "c8" => libsplit_dtype::COMPLEX64,
            "c16" => libsplit_dtype::COMPLEX128,
            _ => libsplit_dtype::UINT8,
        };
        let size = if dtype == libsplit_dtype::UINT8 { 1 } else { header.size };
        let axis = if header.size == size { None } else { Some(i64::try_from(header.size)?) };
        Ok(Self { dtype, axis })
    }

    fn shapes_of_pieces(&self, split: &Split, header: &Header) -> Result<Vec<Vec<i64>>> {
        let layout = Layout { dtype: self.dtype, shape: &header.shape, strides: None };
        let count = split.count(&layout)?;
        if count > MAX_PIECES {
            refuse!("{count} pieces: at most {MAX_PIECES} files are written");
        }
        split.shapes(&layout, count)
    }

    /// How the library will move the bytes.
    fn explain(&self, split: &Split, header: &Header, count: usize) -> Result<String> {
        let (shape, strides) = (self.shape(&header.shape), self.strides(header));
        let layout = Layout { dtype: self.dtype, shape: &shape, strides: Some(&strides) };
        split.explain(&layout, count)
    }

    /// A shape in elements.
    fn shape(&self, shape: &[i64]) -> Vec<i64> {
        shape.iter().copied().chain(self.axis).collect()
    }

    /// The strides of a file's array in elements, for the shape in them.
    fn strides(&self, header: &Header) -> Vec<i64> {
        let rank = header.shape.len();
        let mut strides = self.shape(&vec![1; rank]);
        let mut stride = self.axis.unwrap_or(1);
        for at in 0..rank {
            let axis = if header.fortran { at } else { rank - 1 - at };
            strides[axis] = stride;
            // Too much only for an empty array, whose strides do not matter.
            stride = stride.saturating_mul(header.shape[axis]);
        }
        if let Some(last) = strides.get_mut(rank) {
            *last = 1;
        }
        strides
    }
}

struct Job<'a> {
    args: &'a Npy,
    split: Split,
    items: Items,
    header: &'a Header,
    shapes: &'a [Vec<i64>],
    names: &'a [OsString],
}

impl Job<'_> {
    fn copy_batch(
        &self,
        data: &[u8],
        batch: Range<usize>,
        staging: &Path,
        progress: &Progress,
    ) -> Result<()> {
        let mut files = Vec::new();
        for index in batch.clone() {
            let file = self.create(index, staging);
            files.push(file.with_context(|| {
                format!("cannot write {}", self.args.outdir.join(&self.names[index]).display())
            })?);
        }
        let bytes = files.iter().map(|(file, begin)| file.len() - begin).sum();
        let mut outputs: Vec<_> = self.shapes.iter().map(|_| None).collect();
        for (index, (file, begin)) in batch.zip(&mut files) {
            let shape = self.items.shape(&self.shapes[index]);
            outputs[index] = Some(Output { data: &mut file[*begin..], shape });
        }
        let shape = self.items.shape(&self.header.shape);
        let strides = self.items.strides(self.header);
        let layout = Layout { dtype: self.items.dtype, shape: &shape, strides: Some(&strides) };
        let threads = Threads { args: self.args, progress, bytes };
        let copied = self.split.copy((&layout, data), &mut outputs, &threads);
        signals::check()?;
        copied
    }

    /// The file of a piece in memory, and where its data begins.
    fn create(&self, index: usize, staging: &Path) -> Result<(MmapMut, usize)> {
        let shape = &self.shapes[index];
        let header = self.header.of_piece(shape);
        let bytes = self.header.bytes(shape)? as u64;
        let file = create(&staging.join(&self.names[index]), &header, bytes, Room::Needed)?;
        // SAFETY: the file is new, in a directory that is this process' own.
        Ok((unsafe { MmapMut::map_mut(&file) }?, header.len()))
    }
}

fn tell(
    args: &Npy,
    header: &Header,
    shapes: &[Vec<i64>],
    names: &[OsString],
    plan: Option<&str>,
) -> Result<()> {
    let pieces = shapes.iter().zip(names.iter().map(|name| args.outdir.join(name)));
    if args.writing.json {
        let piece =
            |(shape, path): (_, PathBuf)| json!({ "path": path_text(&path), "shape": shape });
        return print_json(&json!({
            "command": "npy",
            "input": path_text(&args.input),
            "dtype": header.descr,
            "shape": header.shape,
            "dry_run": args.writing.dry_run,
            "plan": plan,
            "pieces": pieces.map(piece).collect::<Vec<_>>(),
        }));
    }
    if args.writing.quiet {
        return Ok(());
    }
    let mut text = plan.map_or(String::new(), |plan| format!("{}\n", plan.trim_end()));
    for (shape, path) in pieces {
        writeln!(text, "{}  {}  {}", path.display(), header.descr, tuple(shape))?;
    }
    print(&text)
}

/// The threads of one copy, which count the tasks that they have finished.
struct Threads<'a> {
    args: &'a Npy,
    progress: &'a Progress,
    /// What the copy writes.
    bytes: usize,
}

impl Pool for Threads<'_> {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || signals::is_stopped() {
                break;
            }
            task(index);
            self.progress.add((self.bytes / count) as u64);
        };
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        let threads = self.args.threads.map_or_else(processors, usize::from);
        thread::scope(|scope| {
            for _ in 1..threads.min(count) {
                // A thread that cannot be had leaves its work to the others.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }
}
