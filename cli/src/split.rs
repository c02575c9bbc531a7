//! The door to libsplit: its C functions, called with slices that it checks the numbers against.

use crate::failure::{failure, Kind};
use anyhow::Result;
use libsplit::ffi::{
    calls, libsplit_dtype, libsplit_executor, libsplit_op, libsplit_params, libsplit_plan_describe,
    libsplit_plan_size, libsplit_task_fn, libsplit_tensor,
};
use libsplit::{ErrorKind, Words};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A descriptor of nothing: an output that is not wanted.
const UNWANTED: libsplit_tensor = libsplit_tensor::ZERO;

/// Lengths as an operator takes them.
pub enum Lengths {
    Scalar(i64),
    List(Vec<i64>),
}

/// An operator and its parameters.
pub struct Split {
    pub op: libsplit_op,
    pub opset: i32,
    pub axis: i64,
    pub lengths: Option<Lengths>,
    pub num_outputs: i64,
    pub keepdims: bool,
    pub flags: u32,
}

/// Element type, shape, and strides if it is not packed in C order.
pub struct Layout<'a> {
    pub dtype: libsplit_dtype,
    pub shape: &'a [i64],
    pub strides: Option<&'a [i64]>,
}

impl Layout<'_> {
    /// A descriptor of these bytes. libsplit never writes to the input or to its arrays.
    fn of(&self, data: &[u8]) -> libsplit_tensor {
        let strides = self.strides.map_or(null(), <[i64]>::as_ptr);
        libsplit_tensor {
            // No bytes are no address, for libsplit takes 0 bytes for a number that is not stated.
            data: if data.is_empty() { null_mut() } else { data.as_ptr().cast_mut().cast() },
            data_bytes: data.len(),
            shape: self.shape.as_ptr().cast_mut(),
            strides: strides.cast_mut(),
            rank: rank_of(self.shape),
            dtype: self.dtype,
            ..UNWANTED
        }
    }

    /// A descriptor of bytes to be written.
    fn of_output(&self, data: &mut [u8]) -> libsplit_tensor {
        let described = self.of(data);
        libsplit_tensor { data: data.as_mut_ptr().cast(), ..described }
    }
}

fn rank_of(shape: &[i64]) -> i32 {
    shape.len().try_into().unwrap_or(i32::MAX)
}

/// An output: its bytes, packed in C order, and its shape.
pub struct Output<'a> {
    pub data: &'a mut [u8],
    pub shape: Vec<i64>,
}

/// Threads that run the tasks of a copy.
pub trait Pool: Sync {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));
}

impl Split {
    /// Splits by these lengths along an axis; any element type.
    fn by_lengths(axis: i64, lengths: Vec<i64>) -> Self {
        Self {
            op: libsplit_op::OPENVINO_VARIADIC_SPLIT,
            opset: 1,
            axis,
            lengths: Some(Lengths::List(lengths)),
            num_outputs: 0,
            keepdims: true,
            flags: 0,
        }
    }

    fn with_params<T>(&self, body: impl FnOnce(*const libsplit_params) -> T) -> T {
        let (values, rank) = match &self.lengths {
            Some(Lengths::Scalar(length)) => (std::slice::from_ref(length), 0),
            Some(Lengths::List(lengths)) => (lengths.as_slice(), 1),
            None => (&[][..], 1),
        };
        // An empty list is a list too: it needs an address.
        let count = [i64::try_from(values.len()).unwrap_or(i64::MAX)];
        let list = libsplit_tensor {
            data: values.as_ptr().cast_mut().cast(),
            shape: count.as_ptr().cast_mut(),
            rank,
            dtype: libsplit_dtype::INT64,
            ..UNWANTED
        };
        let params = libsplit_params {
            axis: self.axis,
            split: if self.lengths.is_some() { &raw const list } else { null() },
            num_outputs: self.num_outputs,
            keepdims: self.keepdims.into(),
            flags: self.flags,
            ..libsplit_params::init(self.op, self.opset)
        };
        body(&raw const params)
    }

    /// How many pieces there are.
    pub fn count(&self, input: &Layout) -> Result<usize> {
        let (input, mut count) = (input.of(&[]), 0);
        self.with_params(|params| {
            // SAFETY: all of these describe slices, which live until the call is over.
            self.checked(unsafe { calls::count(&raw const input, params, &raw mut count) })
        })?;
        Ok(count)
    }

    /// What the library will do, in its own words.
    pub fn explain(&self, input: &Layout, count: usize) -> Result<String> {
        let bytes = libsplit_plan_size(rank_of(input.shape), count);
        let mut memory = vec![0_u64; bytes.div_ceil(8)];
        let (input, plan) = (input.of(&[]), memory.as_mut_ptr().cast());
        self.with_params(|params| {
            // SAFETY: as above; the plan has the memory that it needs, aligned to 8 bytes.
            self.checked(unsafe {
                calls::plan_init(plan, bytes, &raw const input, params, null(), count, null())
            })
        })?;
        // SAFETY: there is a plan now, and no buffer to write to.
        let length = unsafe { libsplit_plan_describe(plan, null_mut(), 0) };
        let mut text = vec![0_u8; length + 1];
        // SAFETY: the buffer has room for the whole text and its NUL.
        unsafe { libsplit_plan_describe(plan, text.as_mut_ptr().cast(), text.len()) };
        text.truncate(length);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// An error of libsplit's refuses the split, in the words of the command line.
    fn checked(&self, done: Result<(), libsplit::Error>) -> Result<()> {
        let Err(error) = done else { return Ok(()) };
        let is_each = matches!(self.lengths, Some(Lengths::Scalar(_)));
        let mut words = Words::COMMAND_LINE;
        words.lengths = if is_each { "--each" } else { "--lengths" };
        words.clamp = ", --balanced, --clamp-uneven";
        words.rest = "only with --op variadic-split may one be -1";
        let kind = if error.kind() == ErrorKind::Opset { Kind::Usage } else { Kind::Refused };
        Err(failure(kind, error.message(&words).to_string()))
    }

    /// The shapes of so many pieces.
    pub fn shapes(&self, input: &Layout, count: usize) -> Result<Vec<Vec<i64>>> {
        let mut shapes = vec![vec![0_i64; input.shape.len()]; count];
        let mut outputs: Vec<_> = shapes.iter_mut().map(|shape| described(shape)).collect();
        let (input, pieces) = (input.of(&[]), outputs.as_mut_ptr());
        self.with_params(|params| {
            // SAFETY: as above.
            self.checked(unsafe { calls::infer(&raw const input, params, pieces, count, null()) })
        })?;
        let ranks: Vec<_> = outputs.iter().map(|output| output.rank.unsigned_abs()).collect();
        shapes.iter_mut().zip(ranks).for_each(|(shape, rank)| shape.truncate(rank as usize));
        Ok(shapes)
    }

    /// Copies the pieces that are wanted.
    pub fn copy(
        &self,
        (input, data): (&Layout, &[u8]),
        outputs: &mut [Option<Output>],
        pool: &dyn Pool,
    ) -> Result<()> {
        let described = |output: &mut Option<Output>| {
            output.as_mut().map_or(UNWANTED, |Output { data, shape }| {
                Layout { dtype: input.dtype, shape, strides: None }.of_output(data)
            })
        };
        let described: Vec<_> = outputs.iter_mut().map(described).collect();
        let executor = libsplit_executor {
            max_tasks: 256, // more than threads, for a smooth bar
            ..libsplit_executor::init(Some(parallel_for), (&raw const pool).cast_mut().cast())
        };
        self.copy_to((input, data), &described, &raw const executor)
    }

    fn copy_to(
        &self,
        (input, data): (&Layout, &[u8]),
        outputs: &[libsplit_tensor],
        executor: *const libsplit_executor,
    ) -> Result<()> {
        let (input, count) = (input.of(data), outputs.len());
        self.with_params(|params| {
            let outputs = outputs.as_ptr();
            // SAFETY: all of these describe slices, which live until the call is over. Outputs are
            // borrowed for writing.
            self.checked(unsafe {
                calls::copy(&raw const input, params, outputs, count, executor, null())
            })
        })
    }
}

/// A descriptor for libsplit to fill.
fn described(shape: &mut [i64]) -> libsplit_tensor {
    // Of rank 0 or more, the same capacity will do.
    libsplit_tensor { shape: shape.as_mut_ptr(), capacity: rank_of(shape), ..UNWANTED }
}

/// A task of libsplit's, which any thread may run.
struct Task {
    run: unsafe extern "C" fn(*mut c_void, usize),
    context: *mut c_void,
}

// SAFETY: libsplit promises that its tasks run on any threads at once.
unsafe impl Sync for Task {}

impl Task {
    fn run(&self, index: usize) {
        // SAFETY: the task and its context are libsplit's own.
        unsafe { (self.run)(self.context, index) }
    }
}

unsafe extern "C" fn parallel_for(
    pool: *mut c_void,
    task: libsplit_task_fn,
    context: *mut c_void,
    count: usize,
) -> i32 {
    let Some(run) = task else { return 1 };
    // SAFETY: 'copy' has put its pool there, and is still waiting.
    let pool = unsafe { &*pool.cast::<&dyn Pool>() };
    let task = Task { run, context };
    pool.run(count, &|index| task.run(index));
    0
}

/// How the columns of a matrix are cut: lengths, and which of the pieces matter.
pub struct Columns {
    pub lengths: Vec<i64>,
    pub wanted: Vec<bool>,
}

/// Copies the wanted columns of one matrix into the wanted columns of another: as many pieces, as
/// long, in the same order. Both are packed and have so many rows.
///
/// The pieces of the destination are views that libsplit gives; each piece of the source is copied
/// into its view. Columns are of bytes or, in a packed type, of smaller elements; then the
/// destination must be wanted as a whole.
pub fn exchange(
    dtype: libsplit_dtype,
    rows: i64,
    (from, source): (&[u8], &Columns),
    (to, destination): (&mut [u8], &Columns),
) -> Result<()> {
    if !source.wanted.contains(&true) {
        return Ok(()); // which libsplit would take for a mistake
    }
    let columns = |columns: &Columns| [rows, columns.lengths.iter().sum()];
    let (from_shape, to_shape) = (columns(source), columns(destination));
    let mut arrays = vec![[0_i64; 4]; destination.lengths.len()];
    let mut views: Vec<_> = arrays
        .iter_mut()
        .map(|array| {
            let (shape, strides) = array.split_at_mut(2);
            libsplit_tensor { strides: strides.as_mut_ptr(), ..described(shape) }
        })
        .collect();
    let whole = Layout { dtype, shape: &to_shape, strides: None }.of_output(to);
    let split = Split::by_lengths(1, destination.lengths.clone());
    split.with_params(|params| {
        let (views, count) = (views.as_mut_ptr(), views.len());
        // SAFETY: all of these describe slices, which live until the call is over.
        split.checked(unsafe { calls::view(&raw const whole, params, views, count, null()) })
    })?;
    let mut wanted = views.iter().zip(&destination.wanted).filter(|(_, wanted)| **wanted);
    let outputs = source.wanted.iter().map(|wanted_here| {
        let view = if *wanted_here { wanted.next() } else { None };
        view.map_or(UNWANTED, |(view, _)| *view)
    });
    let outputs: Vec<_> = outputs.collect();
    let input = Layout { dtype, shape: &from_shape, strides: None };
    let lengths = source.lengths.clone();
    Split::by_lengths(1, lengths).copy_to((&input, from), &outputs, null())
}
