//! Raw pointers in, checked borrows out. Everything that C hands over passes through here, once.
//!
//! The promise that every function here relies on is that of `libsplit.h`: each pointer is NULL or
//! valid for what its structure says, for the length of the call (`'a`). SAFETY comments call it
//! promise 1. Promise 2 is that no structure or array is written while it is borrowed: outputs are
//! written only where [`super::reads`] has found nothing else.

// What a call is made of is large to hand back.
#![allow(clippy::inline_always)]

use super::types::{libsplit_op, libsplit_params, libsplit_tensor, LIBSPLIT_FLAG_CLAMP_UNEVEN};
use crate::dtype::DType;
use crate::error::{number, Error, Fault, Report, Which};
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::plan::Plan;
use crate::rules::Request;
use crate::shape::MAX_RANK;
use crate::span::Span;
use crate::tensor::Tensor;

/// Input and parameters of a call.
pub(crate) struct Call<'a> {
    pub input: Tensor<'a>,
    request: Request<'a>,
    /// Where the elements of the lengths lie.
    pub lengths: Span,
    /// Where the descriptors lie, and the parameters of the size that they state.
    pub at: *const libsplit_tensor,
    pub params: Span,
    pub split_at: *const libsplit_tensor,
}

/// What of the input matters to a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Type and shape; extents may be unknown.
    AtShape,
    /// Strides and bit offset, too.
    AtLayout,
}

impl<'a> Call<'a> {
    /// A call that is not C's.
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn new(input: Tensor<'a>, request: Request<'a>) -> Self {
        let (lengths, params) = (Span::default(), Span::default());
        Self { input, request, lengths, at: core::ptr::null(), params, split_at: core::ptr::null() }
    }

    /// # Safety
    /// Promise 1.
    #[inline(never)] // once for all functions, with all registers to itself
    pub(super) unsafe fn parse(
        input: *const libsplit_tensor,
        params: *const libsplit_params,
        outputs: Option<usize>,
        look: Look,
        report: &mut Report,
    ) -> Result<Self, Fault> {
        // SAFETY: promise 1, here and below.
        unsafe {
            let (params, params_span) = params_of(params, report)?;
            let operator = operator(&params, report)?;
            check_flags("params", params.flags, LIBSPLIT_FLAG_CLAMP_UNEVEN, report)?;
            let tensor = &*checked(input, "input", report)?;
            let input_tensor = tensor_of(tensor, look, Which::Input, report)?;
            let (lengths, lengths_span) = if params.split.is_null() {
                (None, Span::default())
            } else {
                let (lengths, span) = lengths(params.split, report)?;
                (Some(lengths), span)
            };
            let request = Request {
                operator,
                axis: params.axis,
                lengths,
                num_outputs: params.num_outputs,
                keepdims: params.keepdims != 0,
                clamp_uneven: params.flags & LIBSPLIT_FLAG_CLAMP_UNEVEN != 0,
                outputs,
            };
            Ok(Self {
                input: input_tensor,
                request,
                lengths: lengths_span,
                at: input,
                params: params_span,
                split_at: params.split,
            })
        }
    }

    #[inline(never)] // as above
    pub(crate) fn plan(&self, look: Look, report: &mut Report) -> Result<Plan<'_>, Fault> {
        let Tensor { dtype, shape, .. } = self.input;
        Plan::new(&self.request, dtype, shape, look == Look::AtShape, report)
    }
}

/// The parameters, and where they lie.
///
/// # Safety
/// Promise 1.
#[inline(always)]
unsafe fn params_of(
    params: *const libsplit_params,
    report: &mut Report,
) -> Result<(libsplit_params, Span), Fault> {
    // SAFETY: promise 1.
    unsafe {
        let found = versioned(params, "params", size_of::<libsplit_params>(), report)?;
        let start = params as usize;
        // Its size was believed.
        Ok((found, Span { start, end: start.wrapping_add(found.struct_size) }))
    }
}

/// The operator version that governs.
#[inline(always)]
fn operator(params: &libsplit_params, report: &mut Report) -> Result<Operator, Fault> {
    let operator = match params.op {
        libsplit_op::ONNX_SPLIT => Operator::onnx_split(params.opset),
        libsplit_op::ONNX_SPLIT_TO_SEQUENCE => Operator::onnx_split_to_sequence(params.opset),
        libsplit_op::OPENVINO_VARIADIC_SPLIT => {
            openvino(params.opset, Operator::VariadicSplit1, "OpenVINO VariadicSplit")
        }
        libsplit_op::OPENVINO_SPLIT => {
            openvino(params.opset, Operator::OpenVinoSplit1, "OpenVINO Split")
        }
        libsplit_op(actual) => Err(Error::OperatorUnknown { expected: 4, actual: actual.into() }),
    };
    match operator {
        Ok(operator) => Ok(operator),
        Err(error) => report.refuse(error),
    }
}

#[inline(always)]
fn openvino(opset: i32, operator: Operator, name: &'static str) -> Result<Operator, Error> {
    match opset {
        0 | 1 => Ok(operator),
        _ => Err(Error::OpenVinoOpset { operator: name, expected: 1, actual: opset.into() }),
    }
}

#[inline(always)]
pub(super) fn check_flags(
    argument: &'static str,
    flags: u32,
    known: u32,
    report: &mut Report,
) -> Result<(), Fault> {
    if flags & !known == 0 {
        return Ok(());
    }
    report.refuse(Error::Flags { argument, expected: known.into(), actual: flags.into() })
}

/// The lengths, and where they lie.
///
/// # Safety
/// Promise 1.
#[inline(always)]
unsafe fn lengths<'a>(
    split: *const libsplit_tensor,
    report: &mut Report,
) -> Result<(Lengths<'a>, Span), Fault> {
    let which = Which::Split;
    // SAFETY: promise 1.
    let tensor = unsafe { &*checked(split, "params.split", report)? };
    let dtype = dtype_of(tensor, which, report)?;
    if !(0..=1).contains(&tensor.rank) {
        let actual = tensor.rank.into();
        return report.refuse(Error::LengthsRank { expected: 1, actual });
    }
    // SAFETY: promise 1.
    let tensor = unsafe { tensor_of(tensor, Look::AtLayout, which, report)? };
    let len = tensor.shape.first().copied();
    if let Some(actual @ ..=-1) = len {
        return report.refuse(Error::LengthsExtent { expected: 0, actual });
    }
    let is_known = !tensor.data.is_null() || len == Some(0);
    let bits = i64::from(dtype.bits());
    let count = len.unwrap_or(1);
    if count.checked_mul(bits).is_none() {
        return report.refuse(Error::TooManyElements { which });
    }
    let span = if is_known { tensor.span(count, which, report)? } else { Span::default() };
    let stride = tensor.strides.and_then(|strides| strides.first()).copied().unwrap_or(1);
    let data = is_known.then_some(tensor.data.cast_const());
    // SAFETY: promise 1 for all that `span` covers. A stride whose bits overflow is one of a list
    // with one entry, and is not used.
    let lengths = unsafe {
        Lengths::from_raw(data, tensor.bit_offset.into(), stride.wrapping_mul(bits), len, dtype)
    };
    Ok((lengths, span))
}

#[inline(always)]
pub(super) fn dtype_of(
    tensor: &libsplit_tensor,
    which: Which,
    report: &mut Report,
) -> Result<DType, Fault> {
    let number = tensor.dtype.0;
    match DType::from_number(number) {
        Some(dtype) => Ok(dtype),
        None => {
            let actual = number.into();
            report.refuse(Error::DTypeUnknown { which, expected: 26, actual })
        }
    }
}

/// A descriptor's rank, within what a tensor may have.
#[inline(always)]
pub(super) fn rank_of(
    tensor: &libsplit_tensor,
    which: Which,
    report: &mut Report,
) -> Result<usize, Fault> {
    let actual = i64::from(tensor.rank);
    let lowest = i64::from(which == Which::Input);
    match usize::try_from(tensor.rank) {
        Ok(rank) if rank <= MAX_RANK => Ok(rank),
        Ok(_) => report.refuse(Error::Rank { which, expected: 64, actual }),
        Err(_) => report.refuse(Error::RankNegative { which, expected: lowest, actual }),
    }
}

/// A tensor whose type and shape have been looked at, and its layout if that matters.
///
/// # Safety
/// Promise 1.
#[inline(always)]
unsafe fn tensor_of<'a>(
    tensor: &libsplit_tensor,
    look: Look,
    which: Which,
    report: &mut Report,
) -> Result<Tensor<'a>, Fault> {
    let dtype = dtype_of(tensor, which, report)?;
    let rank = rank_of(tensor, which, report)?;
    // SAFETY: promise 1.
    unsafe {
        let shape = array(tensor.shape, rank, which, "shape", report)?;
        let has_strides = look == Look::AtLayout && !tensor.strides.is_null();
        let strides = if has_strides {
            Some(array(tensor.strides, rank, which, "strides", report)?)
        } else {
            None
        };
        Ok(Tensor {
            data: tensor.data.cast(),
            data_bytes: tensor.data_bytes,
            dtype,
            shape,
            strides,
            bit_offset: tensor.bit_offset,
        })
    }
}

/// An array of a descriptor.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)]
pub(super) unsafe fn array<'a>(
    array: *const i64,
    rank: usize,
    which: Which,
    field: &'static str,
    report: &mut Report,
) -> Result<&'a [i64], Fault> {
    if rank == 0 {
        return Ok(&[]);
    }
    check_array(array, which, field, report)?;
    // SAFETY: not NULL, aligned, and `rank` entries long by promise 1.
    Ok(unsafe { core::slice::from_raw_parts(array, rank) })
}

/// That an array of a descriptor is there and aligned.
#[inline(always)]
pub(super) fn check_array(
    array: *const i64,
    which: Which,
    field: &'static str,
    report: &mut Report,
) -> Result<(), Fault> {
    if array.is_null() {
        return report.refuse(Error::NullField { which, field });
    }
    if array.is_aligned() {
        return Ok(());
    }
    let (expected, actual) = alignment(array);
    report.refuse(Error::AlignmentField { which, field, expected, actual })
}

/// A pointer that is not NULL, and aligned.
#[inline(always)]
pub(super) fn checked<T>(
    pointer: *const T,
    argument: &'static str,
    report: &mut Report,
) -> Result<*const T, Fault> {
    if pointer.is_null() {
        return report.refuse(Error::Null { argument });
    }
    if pointer.is_aligned() {
        return Ok(pointer);
    }
    let (expected, actual) = alignment(pointer);
    report.refuse(Error::Alignment { argument, expected, actual })
}

/// The alignment that a pointer should have, and by how much it misses it.
fn alignment<T>(pointer: *const T) -> (i64, i64) {
    (number(align_of::<T>()), number(pointer as usize & (align_of::<T>() - 1)))
}

/// The largest `struct_size` believed.
const MAX_STRUCT_SIZE: usize = 4096;

/// A structure that begins with its size and may be of another version than ours: fields that it
/// does not have yet are 0, and those that we do not know yet must be.
///
/// # Safety
/// `pointer` must be NULL or valid for the size that it states; all zero bytes are a `T`.
#[inline(always)]
pub(super) unsafe fn versioned<T: Copy>(
    pointer: *const T,
    argument: &'static str,
    first_version: usize,
    report: &mut Report,
) -> Result<T, Fault> {
    checked(pointer, argument, report)?;
    // SAFETY: the size comes first in every such structure, and it is as long as it says.
    unsafe {
        let stated = pointer.cast::<usize>().read();
        if stated == size_of::<T>() {
            return Ok(pointer.read());
        }
        other_version(pointer, stated, argument, first_version, report)
    }
}

/// # Safety
/// As [`versioned`]; the structure states that size.
#[cold]
unsafe fn other_version<T: Copy>(
    pointer: *const T,
    stated: usize,
    argument: &'static str,
    first_version: usize,
    report: &mut Report,
) -> Result<T, Fault> {
    let (actual, known) = (stated, size_of::<T>());
    if actual < first_version {
        let (expected, actual) = (number(first_version), number(actual));
        return report.refuse(Error::StructSize { argument, expected, actual });
    }
    if actual > MAX_STRUCT_SIZE {
        let expected = number(MAX_STRUCT_SIZE);
        return report.refuse(Error::StructSizeHuge { argument, expected, actual });
    }
    let mut found = core::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the caller's structure is as long as it says, and zero bytes are a `T`.
    unsafe {
        for at in known..stated {
            if pointer.cast::<u8>().add(at).read() != 0 {
                let (expected, actual) = (number(known), number(stated));
                return report.refuse(Error::NonZeroTail { argument, expected, actual });
            }
        }
        pointer.cast::<u8>().copy_to_nonoverlapping(found.as_mut_ptr().cast(), known.min(stated));
        Ok(found.assume_init())
    }
}

/// Output descriptors.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)]
pub(super) unsafe fn descriptors<'a>(
    outputs: *const libsplit_tensor,
    len: usize,
    report: &mut Report,
) -> Result<&'a [libsplit_tensor], Fault> {
    if len == 0 {
        return Ok(&[]);
    }
    checked(outputs, "outputs", report)?;
    let most = isize::MAX.unsigned_abs() / size_of::<libsplit_tensor>();
    if len > most {
        let (argument, expected) = ("num_outputs", number(most));
        return report.refuse(Error::TooManyOutputs { argument, expected, actual: len });
    }
    // SAFETY: not NULL, aligned, and `len` long by promise 1.
    Ok(unsafe { core::slice::from_raw_parts(outputs, len) })
}

/// Whether a descriptor is all zero: an output that the caller does not want.
#[inline(always)]
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

#[cfg(test)]
mod tests {
    use super::{versioned, Error, Report};

    /// Today's version of a structure whose first had two fields.
    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C)]
    struct Grown {
        struct_size: usize,
        first: u64,
        second: u64,
    }

    const FIRST: usize = size_of::<usize>() + 8;

    fn read(structure: *const u8) -> Result<Grown, Option<Error>> {
        let mut report = Report::default();
        // SAFETY: as long as it says.
        let found = unsafe { versioned(structure.cast::<Grown>(), "params", FIRST, &mut report) };
        found.map_err(|_| report.reason())
    }

    /// A structure of `stated` bytes that ends where nothing may be touched.
    #[cfg(unix)]
    fn at_the_edge(stated: usize, fields: &[u64]) -> (crate::copy::Guarded, *const u8) {
        let memory = crate::copy::Guarded::filled(64 << 10);
        let begin = memory.place(stated.next_multiple_of(8), true);
        let words = fields.iter().copied().chain(std::iter::repeat(0));
        let words = std::iter::once(stated as u64).chain(words);
        for (at, word) in words.take(stated / 8).enumerate() {
            // SAFETY: within the memory.
            unsafe { begin.cast::<u64>().add(at).write_unaligned(word) };
        }
        (memory, begin)
    }

    #[cfg(all(unix, target_pointer_width = "64"))]
    #[test]
    fn structures_of_older_and_newer_versions_are_taken() {
        let (_memory, older) = at_the_edge(FIRST, &[7]);
        assert_eq!(read(older), Ok(Grown { struct_size: FIRST, first: 7, second: 0 }));
        let (_memory, same) = at_the_edge(24, &[7, 8]);
        assert_eq!(read(same), Ok(Grown { struct_size: 24, first: 7, second: 8 }));
        let (_memory, newer) = at_the_edge(40, &[7, 8]);
        assert_eq!(read(newer), Ok(Grown { struct_size: 40, first: 7, second: 8 }));
        let (_memory, unknown) = at_the_edge(40, &[7, 8, 0, 1]);
        assert!(matches!(read(unknown), Err(Some(Error::NonZeroTail { expected: 24, .. }))));
        let (_memory, short) = at_the_edge(8, &[]);
        assert!(matches!(
            read(short),
            Err(Some(Error::StructSize { expected: 16, actual: 8, .. }))
        ));
    }
}
