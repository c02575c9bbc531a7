//! Calls of libsplit's C functions, their errors as Python's.

use crate::rule::{extent, Lengths, Rule};
use core::ffi::{c_void, CStr};
use core::ptr::null;
use libsplit::ffi::{
    libsplit_copy, libsplit_count, libsplit_dtype, libsplit_error, libsplit_executor,
    libsplit_infer, libsplit_op, libsplit_params, libsplit_status, libsplit_tensor, libsplit_view,
};
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use smallvec::SmallVec;

/// Extents or strides: one number an axis.
pub type Numbers = SmallVec<[i64; 6]>;

/// A tensor as the C functions see it, with memory of its own for shape and strides.
#[derive(Debug, Clone)]
pub struct Described {
    pub data: *mut c_void,
    pub bit_offset: u32,
    pub dtype: libsplit_dtype,
    pub shape: Numbers,
    pub strides: Numbers,
}

impl Described {
    /// The descriptor. It points into this structure.
    pub fn tensor(&self) -> libsplit_tensor {
        libsplit_tensor {
            strides: self.strides.as_ptr().cast_mut(),
            data: self.data,
            bit_offset: self.bit_offset,
            ..shape_only(&self.shape, self.dtype)
        }
    }
}

/// A packed tensor whose memory does not matter.
pub fn shape_only(shape: &[i64], dtype: libsplit_dtype) -> libsplit_tensor {
    libsplit_tensor {
        shape: shape.as_ptr().cast_mut(),
        rank: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype,
        ..libsplit_tensor::ZERO
    }
}

/// What the operator gives: descriptors, and the memory for their shapes and strides.
pub struct Pieces {
    tensors: Vec<libsplit_tensor>,
    /// Where the descriptors point.
    _numbers: Vec<i64>,
}

// SAFETY: the pointers lead into `_numbers`, which moves along, and to tensor data, which nothing
// here touches.
unsafe impl Send for Pieces {}
// SAFETY: as above.
unsafe impl Sync for Pieces {}

/// One of them.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    pub data: *mut c_void,
    pub bit_offset: u32,
    /// Bytes of the packed piece, after [`infer`].
    pub data_bytes: usize,
    pub shape: &'a [i64],
    pub strides: &'a [i64],
}

impl Pieces {
    fn new(count: usize, rank: usize) -> PyResult<Self> {
        let (mut tensors, mut numbers) = (Vec::new(), Vec::<i64>::new());
        tensors.try_reserve_exact(count).map_err(|_| no_memory())?;
        let entries = count.checked_mul(2 * rank).ok_or_else(no_memory)?;
        numbers.try_reserve_exact(entries).map_err(|_| no_memory())?;
        numbers.resize(entries, 0);
        let capacity = i32::try_from(rank).unwrap_or(i32::MAX);
        let mut rest = numbers.as_mut_ptr();
        tensors.extend((0..count).map(|_| {
            let shape = rest;
            // SAFETY: `numbers` has room for two times `rank` entries a piece.
            let strides = unsafe { shape.add(rank) };
            // SAFETY: as above.
            rest = unsafe { strides.add(rank) };
            let blank = shape_only(&[], libsplit_dtype(0));
            libsplit_tensor { shape, strides, capacity, ..blank }
        }));
        Ok(Self { tensors, _numbers: numbers })
    }

    pub fn tensors(&self) -> &[libsplit_tensor] {
        &self.tensors
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Piece<'_>> {
        self.tensors.iter().map(|tensor| {
            let rank = usize::try_from(tensor.rank).unwrap_or(0);
            // SAFETY: libsplit has written `rank` entries each, and the capacity is not below.
            let numbers = |at: *mut i64| unsafe { core::slice::from_raw_parts(at, rank) };
            Piece {
                data: tensor.data,
                bit_offset: tensor.bit_offset,
                data_bytes: tensor.data_bytes,
                shape: numbers(tensor.shape),
                strides: numbers(tensor.strides),
            }
        })
    }
}

/// Shape, packed strides and size of every piece; extents may be unknown.
pub fn infer(input: &libsplit_tensor, rule: &Rule) -> PyResult<Pieces> {
    describe(input, rule, libsplit_infer)
}

/// Where every piece lies in the input.
pub fn view(input: &libsplit_tensor, rule: &Rule) -> PyResult<Pieces> {
    describe(input, rule, libsplit_view)
}

type Describe = unsafe extern "C" fn(
    *const libsplit_tensor,
    *const libsplit_params,
    *mut libsplit_tensor,
    usize,
    *mut libsplit_error,
) -> libsplit_status;

fn describe(input: &libsplit_tensor, rule: &Rule, function: Describe) -> PyResult<Pieces> {
    let count = rule.count().map_or_else(|| count(input, rule), Ok)?;
    let mut pieces = Pieces::new(count, usize::try_from(input.rank).unwrap_or(0))?;
    let outputs = pieces.tensors.as_mut_ptr();
    let done = rule.with_params(|params| {
        // SAFETY: descriptors, shapes and strides are in memory of their own, long enough.
        attempt(|error| unsafe { function(input, params, outputs, count, error) })
    });
    done.map_err(|error| exception(&error, rule))?;
    Ok(pieces)
}

/// How many pieces there are, which also checks the rule against dtype and shape.
pub fn count(input: &libsplit_tensor, rule: &Rule) -> PyResult<usize> {
    let mut count = 0;
    let done = rule.with_params(|params| {
        // SAFETY: `input` and `params` are complete.
        attempt(|error| unsafe { libsplit_count(input, params, &raw mut count, error) })
    });
    done.map_err(|error| exception(&error, rule))?;
    Ok(count)
}

/// The same pieces by a list of their lengths, whatever the element type.
pub fn by_lengths(input: &libsplit_tensor, rule: &Rule) -> PyResult<Rule> {
    let pieces = infer(input, rule)?;
    let axis = axis(usize::try_from(input.rank).unwrap_or(0), rule.axis).unwrap_or(0);
    let lengths = pieces.iter().map(|piece| piece.shape[axis]).collect();
    Ok(Rule {
        lengths: Lengths::List(lengths),
        argument: rule.argument,
        ..Rule::new(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1, rule.axis)
    })
}

/// The axis that `axis` means in a tensor of this rank.
pub fn axis(rank: usize, axis: i64) -> Option<usize> {
    let axis = if axis < 0 { axis + extent(rank) } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

/// A copy that is ready to run, with or without Python's lock.
pub struct Copy<'a> {
    pub input: libsplit_tensor,
    pub rule: &'a Rule,
    pub outputs: &'a [libsplit_tensor],
    pub executor: Option<libsplit_executor>,
    /// Bytes that it moves.
    pub bytes: usize,
}

// SAFETY: it is run by the thread that waits for it; the pointers stay valid while it does.
unsafe impl Send for Copy<'_> {}

/// From here on Python's lock is let go of: some 10 µs of copying.
pub const LARGE: usize = 128 << 10;

impl Copy<'_> {
    /// # Safety
    /// The memory behind the descriptors is there, and nobody else writes the outputs.
    pub unsafe fn run(self, py: Python<'_>) -> PyResult<()> {
        let rule = self.rule;
        let large = self.bytes >= LARGE;
        let call = move || {
            let this = self;
            let executor = this.executor.as_ref().map_or(null(), core::ptr::from_ref);
            let (outputs, count) = (this.outputs.as_ptr(), this.outputs.len());
            this.rule.with_params(|params| {
                attempt(|error| {
                    // SAFETY: the caller's promise.
                    unsafe {
                        libsplit_copy(
                            &raw const this.input,
                            params,
                            outputs,
                            count,
                            executor,
                            error,
                        )
                    }
                })
            })
        };
        let done = if large { py.detach(call) } else { call() };
        done.map_err(|error| exception(&error, rule))
    }
}

/// Makes a call; what went wrong if it did.
pub fn attempt(
    call: impl FnOnce(*mut libsplit_error) -> libsplit_status,
) -> Result<(), Box<libsplit_error>> {
    let mut error = libsplit_error::INIT;
    match call(&raw mut error) {
        libsplit_status::OK => Ok(()),
        _ => Err(Box::new(error)),
    }
}

/// The exception for an error: its message, in Python's words.
pub fn exception(error: &libsplit_error, rule: &Rule) -> PyErr {
    // SAFETY: libsplit ends its messages with a NUL.
    let message = unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy();
    let mut message = in_python(&message, rule);
    if error.status == libsplit_status::ERROR_SPLIT_SIZES {
        message.push_str(&cut_points(rule, error.expected).unwrap_or_default());
    }
    match error.status {
        libsplit_status::ERROR_DTYPE => PyTypeError::new_err(message),
        libsplit_status::ERROR_BIT_OFFSET | libsplit_status::ERROR_STRIDES => {
            PyBufferError::new_err(message)
        }
        libsplit_status::ERROR_INTERNAL | libsplit_status::ERROR_EXECUTOR => {
            PyRuntimeError::new_err(message)
        }
        _ => PyValueError::new_err(message),
    }
}

/// A hint for lists that look like NumPy's cut points: they ascend within the extent.
fn cut_points(rule: &Rule, extent: i64) -> Option<String> {
    let (Lengths::List(cuts), false) = (&rule.lengths, rule.typed) else { return None };
    let (first, last) = (cuts.first()?, cuts.last()?);
    if *first < 0 || *last > extent || !cuts.is_sorted() {
        return None;
    }
    let mut lengths = Numbers::new();
    let mut start = 0;
    for &end in cuts.iter().chain([&extent]) {
        lengths.push(end - start);
        start = end;
    }
    Some(format!(". These are lengths; for numpy.split's cut points {cuts:?} pass {lengths:?}"))
}

/// The messages speak of C's structures; callers from Python have passed arguments.
fn in_python(message: &str, rule: &Rule) -> String {
    let (parts, clamp) = if rule.typed {
        let operator = rule.op == libsplit_op::OPENVINO_SPLIT;
        (if operator { "num_splits" } else { "num_outputs" }, "clamp_uneven=True")
    } else {
        ("parts_or_lengths", "uneven='even_out'")
    };
    // A list of lengths alone is VariadicSplit to the library, but not to its caller.
    let rest = "only in VariadicSplit may one be -1";
    let words = [
        (rest, if rule.typed { rest } else { "one may be -1" }),
        ("params.split", rule.argument),
        ("params.num_outputs", parts),
        ("LIBSPLIT_FLAG_CLAMP_UNEVEN", clamp),
        ("params.", ""),
        ("outputs[", "out["),
        ("input.", "x."),
        (" input ", " x "),
        (" input:", " x:"),
        ("->", "."),
        ("NULL", "None"),
        ("fill it by libsplit_infer", "see libsplit.infer"),
        ("libsplit_infer and libsplit_count take", "libsplit.infer takes"),
    ];
    words.iter().fold(message.into(), |text, (from, to)| text.replace(from, to))
}

pub fn no_memory() -> PyErr {
    PyMemoryError::new_err("not enough memory for so many pieces: make fewer")
}
