//! Splits any `.npy` file by any operator's rules; see `--help`.
//!
//! Input and outputs are mapped into memory, so files may be larger than it. Values are not
//! looked at: a dtype is mapped to the element type whose rules apply, or else to bytes.

mod npy;

use anyhow::{bail, ensure, Context, Result};
use bytemuck::{Pod, Zeroable};
use clap::{value_parser, Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use libsplit::{DType, Element, Executor, Lengths, Operator, Split, View, ViewMut};
use memmap2::{Mmap, MmapMut};
use npy::Header;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Splits an .npy file into OUTDIR/<name>_0.npy, OUTDIR/<name>_1.npy and so on.
#[derive(Parser)]
#[command(after_help = NOTES)]
struct Args {
    /// The array to split, in C or Fortran order, of any dtype but object
    input: PathBuf,
    /// Where the pieces go; made if it is not there
    outdir: PathBuf,
    /// Whose rules decide
    #[arg(long, value_enum, default_value_t = Op::Split)]
    op: Op,
    /// Opset of the ONNX operators, which chooses their version [default: the newest]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    opset: Option<i32>,
    /// Axis to split; a negative one counts from the back
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    axis: i64,
    /// How many pieces
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    parts: Option<i64>,
    /// How long each piece is
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', allow_hyphen_values = true)]
    lengths: Option<Vec<i64>>,
    /// How long every piece but a smaller last is (split-to-sequence)
    #[arg(long, value_name = "N", conflicts_with = "lengths", allow_negative_numbers = true)]
    each: Option<i64>,
    /// Whether pieces keep the axis (split-to-sequence without lengths)
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = value_parser!(u8).range(..2))]
    keepdims: u8,
    /// Shorten pieces where --parts are too many for the axis (split, opset 18 or newer)
    #[arg(long)]
    clamp_uneven: bool,
    /// Threads that copy [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

const NOTES: &str = "\
Messages call --parts params.num_outputs, and --lengths and --each params.split.

What the operator says of element types applies to bool, integers, float16, float32, float64,
complex64 and complex128, of either byte order. Items of other dtypes (strings, times,
structures, long doubles) are split as so many bytes each, by the rules of UINT8. Python objects
are not in the file as such and cannot be split.

The pieces are written in C order. They get their names when all are complete, replacing files of
these names; on an error there are none. A process that is killed leaves a directory .split_npy-...";

#[derive(Clone, Copy, ValueEnum)]
enum Op {
    Split,
    SplitToSequence,
    VariadicSplit,
    OpenvinoSplit,
}

/// More files than this are taken for a mistake.
const MAX_PIECES: usize = 1_000_000;
/// Pieces mapped at a time: a process may have some 65,000 mappings.
const BATCH: usize = 1024;

fn main() -> ExitCode {
    handle_signals();
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("split_npy: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let split = split_of(args)?;
    let name = || args.input.display().to_string();
    let file = File::open(&args.input).with_context(name)?;
    // SAFETY: sound as long as nobody changes the file meanwhile, like every mapping.
    let input = unsafe { Mmap::map(&file) }.with_context(name)?;
    let (header, data) = Header::parse(&input).with_context(name)?;
    choose_type(args, &split, &header, data)
}

fn split_of(args: &Args) -> Result<Split<'_>> {
    let opset = args.opset.unwrap_or(i32::MAX);
    let operator = match args.op {
        Op::Split => Operator::onnx_split(opset)?,
        Op::SplitToSequence => Operator::onnx_split_to_sequence(opset)?,
        _ if args.opset.is_some() => bail!("--opset is for ONNX operators: leave it out"),
        Op::VariadicSplit => Operator::VariadicSplit1,
        Op::OpenvinoSplit => Operator::OpenVinoSplit1,
    };
    let split = Split::new(operator)
        .axis(args.axis)
        .num_outputs(args.parts.unwrap_or(0))
        .keepdims(args.keepdims != 0)
        .clamp_uneven(args.clamp_uneven);
    Ok(match (&args.lengths, &args.each) {
        (Some(lengths), _) => split.lengths(lengths.as_slice()),
        (None, Some(each)) => split.lengths(Lengths::scalar(each)),
        (None, None) => split,
    })
}

/// Declares a type for each dtype that operators know, and the choice among them. Each is bytes
/// as they lie in the file: of any alignment, any byte order and any value.
macro_rules! elements {
    ($($code:literal $dtype:ident $bytes:literal;)*) => {
        $(
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            struct $dtype([u8; $bytes]);
            const _: () = assert!(8 * $bytes == DType::$dtype.bits());
            // SAFETY: bytes, of the number just asserted.
            unsafe impl Element for $dtype {
                const DTYPE: DType = DType::$dtype;
            }
            // SAFETY: bytes.
            unsafe impl Zeroable for $dtype {}
            // SAFETY: bytes.
            unsafe impl Pod for $dtype {}
        )*

        fn choose_type(args: &Args, split: &Split, header: &Header, data: &[u8]) -> Result<()> {
            match header.code() {
                $($code => split_as::<$dtype>(args, split, header, data),)*
                _ => split_as::<Uint8>(args, split, header, data),
            }
        }
    };
}

elements! {
    "b1" Bool 1;
    "i1" Int8 1; "i2" Int16 2; "i4" Int32 4; "i8" Int64 8;
    "u1" Uint8 1; "u2" Uint16 2; "u4" Uint32 4; "u8" Uint64 8;
    "f2" Float16 2; "f4" Float 4; "f8" Double 8;
    "c8" Complex64 8; "c16" Complex128 16;
}

/// Splits an array of `T`, or of items that are an axis of `T` each.
fn split_as<T: Element + Pod>(
    args: &Args,
    split: &Split,
    header: &Header,
    data: &[u8],
) -> Result<()> {
    // The rules are applied without that axis, which must not be taken for axis -1.
    let count = split.count::<T>(&header.shape)?;
    ensure!(count <= MAX_PIECES, "{count} pieces: more than {MAX_PIECES} files are not made");
    let shapes = split.shapes::<T>(&header.shape)?;
    let split = split.axis(args.axis.rem_euclid(header.shape.len().try_into()?));

    let size = size_of::<T>();
    let shape = header.in_elements(&header.shape, size)?;
    let data: &[T] = bytemuck::cast_slice(data);
    let input = View::strided(data, 0, &shape, &header.strides(size)?)?;
    let progress = Progress::new(header.bytes(&header.shape)?)?;
    let pieces = Pieces::new(args, header, shapes)?;
    for start in (0..count).step_by(BATCH) {
        let batch = start..count.min(start + BATCH);
        copy_batch(&split, &input, &pieces, batch, &progress)?;
    }
    progress.bar.finish_and_clear();
    pieces.publish()
}

fn copy_batch<T: Element + Pod>(
    split: &Split,
    input: &View<T>,
    pieces: &Pieces,
    batch: Range<usize>,
    progress: &Progress,
) -> Result<()> {
    let mut files = batch.clone().map(|index| pieces.create(index)).collect::<Result<Vec<_>>>()?;
    let bytes = files.iter().map(Piece::bytes).sum();
    let mut outputs: Vec<_> = pieces.shapes.iter().map(|_| ViewMut::unwanted()).collect();
    for (index, file) in batch.zip(&mut files) {
        let shape = pieces.header.in_elements(&pieces.shapes[index], size_of::<T>())?;
        outputs[index] = ViewMut::packed(bytemuck::cast_slice_mut(file.data()), &shape)?;
    }
    let threads = Threads { args: pieces.args, progress, bytes };
    let copied = split.copy_with(input, &mut outputs, &threads);
    ensure!(!STOPPED.load(Ordering::Relaxed), "stopped: no files made");
    Ok(copied?)
}

/// The output files. Until all are complete they lie in a directory that goes if the job fails.
struct Pieces<'a> {
    args: &'a Args,
    header: &'a Header,
    shapes: Vec<Vec<i64>>,
    dir: TempDir,
}

impl<'a> Pieces<'a> {
    fn new(args: &'a Args, header: &'a Header, shapes: Vec<Vec<i64>>) -> Result<Self> {
        let outdir = &args.outdir;
        let dir = fs::create_dir_all(outdir)
            .and_then(|()| tempfile::Builder::new().prefix(".split_npy-").tempdir_in(outdir))
            .with_context(|| format!("cannot write to {}", outdir.display()))?;
        Ok(Self { args, header, shapes, dir })
    }

    fn unfinished(&self, index: usize) -> PathBuf {
        self.dir.path().join(index.to_string())
    }

    fn finished(&self, index: usize) -> PathBuf {
        let mut name = self.args.input.file_stem().unwrap_or_default().to_owned();
        name.push(format!("_{index}.npy"));
        self.args.outdir.join(name)
    }

    fn create(&self, index: usize) -> Result<Piece> {
        let shape = &self.shapes[index];
        let (header, bytes) = (self.header.of_piece(shape)?, self.header.bytes(shape)?);
        Piece::create(&self.unfinished(index), &header, bytes)
            .with_context(|| format!("cannot write {}", self.finished(index).display()))
    }

    /// Gives the files their names, then tells them.
    fn publish(&self) -> Result<()> {
        for index in 0..self.shapes.len() {
            // Half of the names would be given before the error.
            let path = self.finished(index);
            ensure!(!path.is_dir(), "cannot write {}: it is a directory", path.display());
        }
        for index in 0..self.shapes.len() {
            let path = self.finished(index);
            fs::rename(self.unfinished(index), &path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut out = io::stdout().lock();
        for (index, shape) in self.shapes.iter().enumerate() {
            let (path, dtype) = (self.finished(index), &self.header.descr);
            writeln!(out, "{}  {dtype}  {}", path.display(), npy::tuple(shape))
                .context("all pieces are made, but not told on standard output")?;
        }
        Ok(())
    }
}

/// An output file in memory.
struct Piece {
    file: MmapMut,
    header: usize,
}

impl Piece {
    fn create(path: &Path, header: &[u8], bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        allocate(&file, header.len().saturating_add(bytes))?;
        // SAFETY: the file is new, in a directory that is this process' own.
        let mut file = unsafe { MmapMut::map_mut(&file) }?;
        file[..header.len()].copy_from_slice(header);
        Ok(Self { file, header: header.len() })
    }

    fn data(&mut self) -> &mut [u8] {
        &mut self.file[self.header..]
    }

    fn bytes(&self) -> usize {
        self.file.len() - self.header
    }
}

/// Gives a file its size, and room on the disk: were there none when the mapping is written to,
/// that would be a fatal signal and not an error.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let bytes = bytes.try_into().map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the descriptor is an open file's.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(mut file: &File, bytes: usize) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes as u64), &mut file).map(drop)
}

/// The threads of one copy, which count the tasks that they have finished.
struct Threads<'a> {
    args: &'a Args,
    progress: &'a Progress,
    /// What the copy writes.
    bytes: usize,
}

impl Executor for Threads<'_> {
    fn max_tasks(&self) -> usize {
        256 // more than threads, for a smooth bar
    }

    fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
        let next = AtomicUsize::new(0);
        let work = || loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || STOPPED.load(Ordering::Relaxed) {
                break;
            }
            task(index);
            self.progress.add(self.bytes / count);
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
        Ok(())
    }
}

/// A bar on the terminal, once the work has gone on for a while.
struct Progress {
    bar: ProgressBar,
    since: Instant,
    done: AtomicUsize,
}

impl Progress {
    fn new(bytes: usize) -> Result<Self> {
        let style = "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";
        let bar = ProgressBar::new(bytes as u64).with_style(ProgressStyle::with_template(style)?);
        Ok(Self { bar, since: Instant::now(), done: AtomicUsize::new(0) })
    }

    fn add(&self, bytes: usize) {
        let done = bytes + self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.since.elapsed() > Duration::from_millis(500) {
            self.bar.set_position(done as u64);
        }
    }
}

/// Set by a signal to stop. The job then fails, and cleans up as after any error.
static STOPPED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
fn handle_signals() {
    extern "C" fn stop(_: libc::c_int) {
        STOPPED.store(true, Ordering::Relaxed);
    }
    let stop = stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: storing to an atomic is allowed in a handler.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            if libc::signal(signal, stop) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN); // as nohup wants it
            }
        }
        // A limit on file sizes is an error of the call that meets it.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

#[cfg(not(unix))]
fn handle_signals() {}
