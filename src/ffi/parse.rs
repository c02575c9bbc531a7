//! Raw pointers in, checked borrows out. Everything that C hands over passes through here.

// What a call is made of is large to hand back.
#![allow(clippy::inline_always)]

use super::types::{
    libsplit_executor, libsplit_op, libsplit_params, libsplit_tensor, LIBSPLIT_FLAG_CLAMP_UNEVEN,
    LIBSPLIT_FLAG_NEVER_STREAM, LIBSPLIT_FLAG_OUTPUTS_READ_NEXT,
};
use crate::copy::{Executor, Streaming};
use crate::dtype::DType;
use crate::error::{number, Error, Which};
use crate::lengths::Lengths;
use crate::memory::{Memory, Outputs, Span};
use crate::operator::Operator;
use crate::plan::Plan;
use crate::rules::Request;
use crate::shape::MAX_RANK;
use core::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The largest `struct_size` believed.
const MAX_STRUCT_SIZE: usize = 4096;

/// Input and parameters of a call.
pub(super) struct Arguments<'a> {
    /// The descriptor by value: outputs may be written over the caller's.
    tensor: libsplit_tensor,
    pub dtype: DType,
    pub shape: &'a [i64],
    request: Request<'a>,
    /// Where the lengths lie.
    pub lengths_span: Option<Span>,
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// The pointers must be NULL or valid for what their structures say, for `'a`.
    #[inline(always)]
    pub(super) unsafe fn parse(
        input: *const libsplit_tensor,
        params: *const libsplit_params,
        outputs: Option<usize>,
    ) -> Result<Self, Error> {
        // SAFETY: the caller's promise, here and below.
        unsafe {
            let params: libsplit_params = versioned(params, "params")?;
            let request = request(&params, outputs)?;
            let tensor = *reference(input, "input")?;
            let dtype = dtype_of(&tensor, Which::Input)?;
            let shape = shape_of(&tensor, Which::Input)?;
            let (lengths, lengths_span) =
                if params.split.is_null() { (None, None) } else { lengths(params.split)? };
            let request = Request { lengths, ..request };
            Ok(Self { tensor, dtype, shape, request, lengths_span })
        }
    }

    #[inline(always)]
    pub(super) fn plan(&self, unknown_allowed: bool) -> Result<Plan<'_>, Error> {
        Plan::new(&self.request, self.dtype, self.shape, unknown_allowed)
    }

    /// The input with its memory, which `infer` and `count` do not look at.
    ///
    /// # Safety
    /// As [`Arguments::parse`].
    pub(super) unsafe fn input(&self) -> Result<Memory<'a>, Error> {
        // SAFETY: the caller's promise.
        unsafe { memory(&self.tensor, self.dtype, self.shape, Which::Input) }
    }
}

/// Operator, axis and the like; the lengths are parsed on their own.
fn request<'a>(params: &libsplit_params, outputs: Option<usize>) -> Result<Request<'a>, Error> {
    let operator = operator(params)?;
    check_flags("params", params.flags, LIBSPLIT_FLAG_CLAMP_UNEVEN)?;
    Ok(Request {
        operator,
        axis: params.axis,
        lengths: None,
        num_outputs: params.num_outputs,
        keepdims: params.keepdims != 0,
        clamp_uneven: params.flags & LIBSPLIT_FLAG_CLAMP_UNEVEN != 0,
        outputs,
    })
}

/// The operator version that governs.
#[inline(always)]
pub(super) fn operator(params: &libsplit_params) -> Result<Operator, Error> {
    match params.op {
        libsplit_op::ONNX_SPLIT => Operator::onnx_split(params.opset),
        libsplit_op::ONNX_SPLIT_TO_SEQUENCE => Operator::onnx_split_to_sequence(params.opset),
        libsplit_op::OPENVINO_VARIADIC_SPLIT => {
            openvino(params.opset, "OpenVINO VariadicSplit").map(|()| Operator::VariadicSplit1)
        }
        libsplit_op::OPENVINO_SPLIT => {
            openvino(params.opset, "OpenVINO Split").map(|()| Operator::OpenVinoSplit1)
        }
        libsplit_op(actual) => Err(Error::OperatorUnknown { expected: 4, actual: actual.into() }),
    }
}

fn openvino(opset: i32, operator: &'static str) -> Result<(), Error> {
    match opset {
        0 | 1 => Ok(()),
        _ => Err(Error::OpenVinoOpset { operator, expected: 1, actual: opset.into() }),
    }
}

fn check_flags(argument: &'static str, flags: u32, known: u32) -> Result<(), Error> {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(Error::Flags { argument, expected: known.into(), actual: flags.into() })
}

/// The lengths, and where they lie.
///
/// # Safety
/// As [`Arguments::parse`].
unsafe fn lengths<'a>(
    split: *const libsplit_tensor,
) -> Result<(Option<Lengths<'a>>, Option<Span>), Error> {
    let which = Which::Split;
    // SAFETY: the caller's promise.
    let tensor = unsafe { *reference(split, "params.split")? };
    let dtype = dtype_of(&tensor, which)?;
    if !(0..=1).contains(&tensor.rank) {
        return Err(Error::LengthsRank { expected: 1, actual: tensor.rank.into() });
    }
    // SAFETY: the caller's promise.
    let memory = unsafe { memory(&tensor, dtype, shape_of(&tensor, which)?, which)? };
    let len = memory.shape.first().copied();
    if let Some(actual @ ..=-1) = len {
        return Err(Error::LengthsExtent { expected: 0, actual });
    }
    let known = !tensor.data.is_null() || len == Some(0);
    let span = if known { memory.span(which)? } else { None };
    let stride = memory.strides.and_then(|strides| strides.first()).copied().unwrap_or(1);
    let bits = i64::from(dtype.bits());
    let data = known.then_some(memory.data.cast_const());
    // SAFETY: the caller's promise for all that `span` covers. A stride whose bits overflow is
    // one of a list with one entry, and is not used.
    let lengths = unsafe {
        Lengths::from_raw(data, memory.bit_offset.into(), stride.wrapping_mul(bits), len, dtype)
    };
    Ok((Some(lengths), span))
}

fn dtype_of(tensor: &libsplit_tensor, which: Which) -> Result<DType, Error> {
    let number = tensor.dtype.0;
    DType::from_number(number).ok_or(Error::DTypeUnknown {
        which,
        expected: 26,
        actual: number.into(),
    })
}

/// # Safety
/// As [`Arguments::parse`].
unsafe fn shape_of<'a>(tensor: &libsplit_tensor, which: Which) -> Result<&'a [i64], Error> {
    let rank = usize::try_from(tensor.rank).ok().filter(|rank| *rank <= MAX_RANK);
    let rank = rank.ok_or(Error::Rank { which, expected: 64, actual: tensor.rank.into() })?;
    if rank == 0 {
        return Ok(&[]);
    }
    check_array(tensor.shape, which, "shape")?;
    // SAFETY: not NULL, aligned, and `rank` entries long by the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(tensor.shape, rank) })
}

/// # Safety
/// As [`Arguments::parse`].
unsafe fn memory<'a>(
    tensor: &libsplit_tensor,
    dtype: DType,
    shape: &'a [i64],
    which: Which,
) -> Result<Memory<'a>, Error> {
    let strides = if tensor.strides.is_null() || shape.is_empty() {
        None
    } else {
        check_array(tensor.strides, which, "strides")?;
        // SAFETY: not NULL, aligned, and as long as the shape by the caller's promise.
        Some(unsafe { core::slice::from_raw_parts(tensor.strides, shape.len()) })
    };
    Ok(Memory {
        data: tensor.data.cast(),
        data_bytes: tensor.data_bytes,
        dtype,
        shape,
        strides,
        bit_offset: tensor.bit_offset,
    })
}

/// That an array of a descriptor is there and aligned.
pub(super) fn check_array(
    array: *const i64,
    which: Which,
    field: &'static str,
) -> Result<(), Error> {
    if array.is_null() {
        return Err(Error::NullField { which, field });
    }
    if array.is_aligned() {
        return Ok(());
    }
    let (expected, actual) = alignment(array);
    Err(Error::AlignmentField { which, field, expected, actual })
}

fn check_pointer<T>(pointer: *const T, argument: &'static str) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(Error::Null { argument });
    }
    if pointer.is_aligned() {
        return Ok(());
    }
    let (expected, actual) = alignment(pointer);
    Err(Error::Alignment { argument, expected, actual })
}

/// The alignment that a pointer should have, and by how much it misses it.
fn alignment<T>(pointer: *const T) -> (i64, i64) {
    (number(align_of::<T>()), number(pointer as usize % align_of::<T>()))
}

/// # Safety
/// `pointer` must be NULL or valid for `'a`.
unsafe fn reference<'a, T>(pointer: *const T, argument: &'static str) -> Result<&'a T, Error> {
    check_pointer(pointer, argument)?;
    // SAFETY: checked, and valid by the caller's promise.
    Ok(unsafe { &*pointer })
}

/// A pointer that a result is written to.
///
/// # Safety
/// `pointer` must be NULL or valid.
pub(super) unsafe fn writable<T>(pointer: *mut T, argument: &'static str) -> Result<*mut T, Error> {
    check_pointer(pointer, argument)?;
    Ok(pointer)
}

/// A structure that begins with its size and may be of another version than ours.
///
/// # Safety
/// `pointer` must be NULL or valid for the size that it states.
unsafe fn versioned<T: Copy>(pointer: *const T, argument: &'static str) -> Result<T, Error> {
    check_pointer(pointer, argument)?;
    // SAFETY: the size comes first in every such structure.
    let stated = unsafe { pointer.cast::<usize>().read() };
    let actual = number(stated);
    let known = size_of::<T>();
    if stated < known {
        let expected = number(known);
        return Err(Error::StructSize { argument, expected, actual });
    }
    if stated > MAX_STRUCT_SIZE {
        let expected = number(MAX_STRUCT_SIZE);
        return Err(Error::StructSizeHuge { argument, expected, actual });
    }
    // SAFETY: the caller's structure is as long as it says.
    let tail =
        unsafe { core::slice::from_raw_parts(pointer.cast::<u8>().add(known), stated - known) };
    if tail.iter().any(|byte| *byte != 0) {
        let expected = number(known);
        return Err(Error::NonZeroTail { argument, expected, actual });
    }
    // SAFETY: checked above.
    Ok(unsafe { *pointer })
}

/// Output descriptors to be filled, as raw pointers: nothing else borrows them meanwhile.
///
/// # Safety
/// `outputs` must be NULL or valid for `len` descriptors for `'a`.
pub(super) unsafe fn output_array<'a>(
    outputs: *mut libsplit_tensor,
    len: usize,
) -> Result<&'a mut [libsplit_tensor], Error> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_pointer(outputs, "outputs")?;
    check_len(len)?;
    // SAFETY: not NULL, aligned, and `len` long by the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts_mut(outputs, len) })
}

/// That an array of descriptors can be this long at all.
fn check_len(len: usize) -> Result<(), Error> {
    let most = isize::MAX.unsigned_abs() / size_of::<libsplit_tensor>();
    if len <= most {
        return Ok(());
    }
    Err(Error::TooManyOutputs { expected: number(most), actual: number(len) })
}

/// Whether a descriptor is all zero: an output that the caller does not want.
pub(super) fn is_unwanted(tensor: &libsplit_tensor) -> bool {
    tensor.shape.is_null()
        && tensor.data.is_null()
        && tensor.data_bytes == 0
        && tensor.strides.is_null()
        && tensor.rank == 0
        && tensor.capacity == 0
        && tensor.dtype.0 == 0
        && tensor.bit_offset == 0
}

/// The outputs of a copy.
pub(super) struct Descriptors<'a>(&'a [libsplit_tensor]);

// SAFETY: descriptors are only read; what they point to is the copy engine's care.
unsafe impl Sync for Descriptors<'_> {}

impl Descriptors<'_> {
    /// # Safety
    /// `outputs` must be NULL or valid for `len` descriptors, and they for their arrays, for as
    /// long as the result lives.
    pub(super) unsafe fn parse(outputs: *const libsplit_tensor, len: usize) -> Result<Self, Error> {
        if len == 0 {
            return Ok(Self(&[]));
        }
        check_pointer(outputs, "outputs")?;
        check_len(len)?;
        // SAFETY: not NULL, aligned, and `len` long by the caller's promise.
        Ok(Self(unsafe { core::slice::from_raw_parts(outputs, len) }))
    }
}

impl Outputs for Descriptors<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<Option<Memory<'_>>, Error> {
        let Some(tensor) = self.0.get(index).filter(|tensor| !is_unwanted(tensor)) else {
            return Ok(None);
        };
        let which = Which::Output(index);
        let dtype = dtype_of(tensor, which)?;
        // SAFETY: the promise of `parse`.
        unsafe { memory(tensor, dtype, shape_of(tensor, which)?, which) }.map(Some)
    }

    fn data(&self, index: usize) -> Option<*mut u8> {
        let tensor = self.0.get(index).filter(|tensor| !is_unwanted(tensor))?;
        Some(tensor.data.cast())
    }

    fn descriptors(&self) -> Span {
        Span::of_slice(self.0)
    }

    const APART: bool = false;
}

/// The caller's thread pool.
pub(super) struct Pool(libsplit_executor);

// SAFETY: `pool` is only handed back to the caller, on the calling thread.
unsafe impl Sync for Pool {}

/// The executor, if there is one.
///
/// # Safety
/// `executor` must be NULL or valid, with a `parallel_for` that does what its type says.
pub(super) unsafe fn executor(executor: *const libsplit_executor) -> Result<Option<Pool>, Error> {
    if executor.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let executor = unsafe { versioned(executor, "executor") }?;
    let known = LIBSPLIT_FLAG_OUTPUTS_READ_NEXT | LIBSPLIT_FLAG_NEVER_STREAM;
    check_flags("executor", executor.flags, known)?;
    if executor.parallel_for.is_none() && executor.flags == 0 {
        return Err(Error::Null { argument: "executor.parallel_for" });
    }
    Ok(Some(Pool(executor)))
}

impl Executor for Pool {
    fn max_tasks(&self) -> usize {
        match self.0.parallel_for {
            Some(_) => usize::try_from(self.0.max_tasks).unwrap_or(usize::MAX),
            None => 1,
        }
    }

    fn streaming(&self) -> Streaming {
        let has = |flag| self.0.flags & flag != 0;
        if has(LIBSPLIT_FLAG_NEVER_STREAM) {
            Streaming::Never
        } else if has(LIBSPLIT_FLAG_OUTPUTS_READ_NEXT) {
            Streaming::OutputsReadNext
        } else {
            Streaming::Auto
        }
    }

    fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
        let Some(parallel_for) = self.0.parallel_for else {
            (0..count).for_each(task);
            return Ok(());
        };
        // A wide pointer does not pass through void*, a pointer to one does.
        let context = core::ptr::from_ref(&task).cast_mut().cast();
        // SAFETY: `context` outlives the call, by whose end every task has returned.
        let code = unsafe { parallel_for(self.0.pool, Some(run_task), context, count) };
        if code == 0 {
            Ok(())
        } else {
            Err(code)
        }
    }
}

/// One task, as the caller's pool runs it.
///
/// # Safety
/// `context` must be the one that [`Pool::parallel_for`] made.
unsafe extern "C" fn run_task(context: *mut c_void, index: usize) {
    // SAFETY: the caller's promise.
    let task = unsafe { *context.cast::<&(dyn Fn(usize) + Sync)>() };
    // A panic, which would be a bug, leaves the task unfinished, and that is noticed.
    let _ = catch_unwind(AssertUnwindSafe(|| task(index)));
}

#[cfg(test)]
mod tests {
    use super::{
        executor, libsplit_executor, Executor, Streaming, LIBSPLIT_FLAG_NEVER_STREAM,
        LIBSPLIT_FLAG_OUTPUTS_READ_NEXT,
    };

    #[test]
    fn flags_of_an_executor_say_what_may_go_past_the_caches() {
        let streaming = |flags| {
            let stated = libsplit_executor {
                struct_size: size_of::<libsplit_executor>(),
                flags,
                max_tasks: 0,
                parallel_for: None,
                pool: core::ptr::null_mut(),
            };
            // SAFETY: a whole structure, without a function to call.
            let pool = unsafe { executor(&raw const stated) };
            pool.unwrap().unwrap().streaming()
        };
        let (read_next, never) = (LIBSPLIT_FLAG_OUTPUTS_READ_NEXT, LIBSPLIT_FLAG_NEVER_STREAM);
        assert_eq!(streaming(read_next), Streaming::OutputsReadNext);
        assert_eq!(streaming(never), Streaming::Never);
        assert_eq!(streaming(read_next | never), Streaming::Never);
    }
}
