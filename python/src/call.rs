//! Calls of libsplit, whose errors become Python's exceptions.

use crate::rule::{extent, Lengths, Rule};
use core::ffi::c_void;
use core::ptr::null;
use libsplit::ffi::{
    calls, libsplit_dtype, libsplit_error, libsplit_executor, libsplit_op, libsplit_params,
    libsplit_tensor,
};
use libsplit::{Error, ErrorKind, Words};
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
    describe(input, rule, calls::infer)
}

/// Where every piece lies in the input.
pub fn view(input: &libsplit_tensor, rule: &Rule) -> PyResult<Pieces> {
    describe(input, rule, calls::view)
}

type Describe = unsafe fn(
    *const libsplit_tensor,
    *const libsplit_params,
    *mut libsplit_tensor,
    usize,
    *const libsplit_error,
) -> Result<(), Error>;

fn describe(input: &libsplit_tensor, rule: &Rule, function: Describe) -> PyResult<Pieces> {
    let count = rule.count().map_or_else(|| count(input, rule), Ok)?;
    let mut pieces = Pieces::new(count, usize::try_from(input.rank).unwrap_or(0))?;
    let outputs = pieces.tensors.as_mut_ptr();
    let done = rule.with_params(|params| {
        // SAFETY: descriptors, shapes and strides are in memory of their own, long enough.
        unsafe { function(input, params, outputs, count, null()) }
    });
    done.map_err(|error| exception(&error, rule))?;
    Ok(pieces)
}

/// How many pieces there are, which also checks the rule against dtype and shape.
pub fn count(input: &libsplit_tensor, rule: &Rule) -> PyResult<usize> {
    let mut count = 0;
    let done = rule.with_params(|params| {
        // SAFETY: `input` and `params` are complete.
        unsafe { calls::count(input, params, &raw mut count) }
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
                // SAFETY: the caller's promise.
                unsafe {
                    calls::copy(&raw const this.input, params, outputs, count, executor, null())
                }
            })
        };
        let done = if large { py.detach(call) } else { call() };
        done.map_err(|error| exception(&error, rule))
    }
}

/// The exception for an error: its message, in Python's words.
pub fn exception(error: &Error, rule: &Rule) -> PyErr {
    let mut message = error.message(&words(rule)).to_string();
    if let (ErrorKind::SplitSizes, Some((extent, _))) = (error.kind(), error.numbers()) {
        message.push_str(&cut_points(rule, extent).unwrap_or_default());
    }
    match error.kind() {
        ErrorKind::DType => PyTypeError::new_err(message),
        ErrorKind::BitOffset | ErrorKind::Strides => PyBufferError::new_err(message),
        ErrorKind::Internal | ErrorKind::Executor => PyRuntimeError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// What the caller's function calls its arguments.
fn words(rule: &Rule) -> Words {
    let mut words = Words::PYTHON;
    words.lengths = rule.argument;
    if !rule.typed {
        // A list of lengths is VariadicSplit to the library, but not to its caller.
        words.parts = "parts_or_lengths";
        words.rest = "one may be -1, for the rest";
        words.clamp = ", uneven='even_out'";
    } else if rule.op == libsplit_op::OPENVINO_SPLIT {
        words.parts = "num_splits";
    }
    words
}

/// A hint for lists that look like NumPy's cut points: they ascend within the extent.
fn cut_points(rule: &Rule, extent: i64) -> Option<String> {
    let (Lengths::List(cuts), false) = (&rule.lengths, rule.typed) else { return None };
    let (first, last) = (cuts.first()?, cuts.last()?);
    if *first < 0 || *last > extent || !cuts.is_sorted_by(|cut, next| cut < next) {
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

pub fn no_memory() -> PyErr {
    PyMemoryError::new_err("not enough memory for so many pieces: make fewer")
}
