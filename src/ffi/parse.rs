//! Raw pointers in, checked borrows out. Everything that C hands over passes through here, once.
//!
//! Promises are those of [`super`].

use super::reads::{Owner, Reads};
use super::types::{
    libsplit_error, libsplit_executor, libsplit_op, libsplit_params, libsplit_tensor,
    LIBSPLIT_FLAG_CLAMP_UNEVEN,
};
use crate::dtype::DType;
use crate::error::{number, Error};
use crate::geometry::Geometry;
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::rules::{Pieces, Request};
use crate::shape::MAX_RANK;
use crate::span::Span;
use crate::tensor::Tensor;
use crate::words::{Argument, Field, Which};
use core::ffi::c_char;
use core::mem::{offset_of, MaybeUninit};
use core::slice;

/// A call, parsed and planned: everything but its outputs.
pub(crate) struct ParsedCall<'a> {
    pub input: Tensor<'a>,
    pub geometry: Geometry<'a>,
    pub pieces: Pieces<'a>,
    /// The memory that the call reads, which nothing that it writes may lie over.
    pub reads: Reads,
}

/// What of the input matters to a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Type and shape; extents may be unknown.
    AtShape,
    /// Strides and bit offset, too.
    AtLayout,
}

#[cfg(all(feature = "alloc", not(feature = "capi")))]
impl<'a> ParsedCall<'a> {
    /// Plans a call that is not C's.
    pub(crate) fn new(input: Tensor<'a>, request: &Request<'a>) -> Result<Self, Error> {
        let has_lengths = request.lengths.is_some();
        let geometry = Geometry::new(request, has_lengths, input.dtype, input.shape)?;
        let pieces = request.pieces(input.dtype, geometry.extent)?;
        Ok(Self { input, geometry, pieces, reads: Reads::NONE })
    }
}

impl ParsedCall<'_> {
    /// Parses a call into `room`, where it stays, for it is large to move; and plans its split. `outputs` is the
    /// number of outputs that the caller gave.
    ///
    /// # Safety
    /// Promise 1.
    #[inline(never)] // once in the library
    pub(super) unsafe fn parse(
        input: *const libsplit_tensor,
        params: *const libsplit_params,
        outputs: Option<usize>,
        look: Look,
        room: &mut MaybeUninit<Self>,
    ) -> Result<&mut Self, Error> {
        let call = room.as_mut_ptr();
        // SAFETY: promise 1, here and below; all fields are written.
        unsafe {
            (&raw mut (*call).reads).write(Reads::NONE);
            let reads = &mut (*call).reads;
            let (given, params_bytes) = versioned(params, Argument::Params, FIRST_PARAMS)?;
            reads.set(Owner::Params, Span::of_bytes(params, params_bytes));
            let operator = operator(&given)?;
            check_flags(Argument::Params, given.flags, LIBSPLIT_FLAG_CLAMP_UNEVEN)?;

            let described = &*checked(input, Argument::Input)?;
            let tensor = tensor_of(described, look, Which::Input)?;
            reads.set(Owner::Input, Span::of(input));
            reads.set(Owner::InputShape, Span::of_slice(tensor.shape));
            // Strides that are not looked at are the caller's all the same.
            reads.set(Owner::InputStrides, Span::of_array(described.strides, tensor.shape.len()));

            let mut request = Request {
                operator,
                axis: given.axis,
                lengths: None,
                num_outputs: given.num_outputs,
                keepdims: given.keepdims != 0,
                clamp_uneven: given.flags & LIBSPLIT_FLAG_CLAMP_UNEVEN != 0,
                may_be_unknown: look == Look::AtShape,
                outputs,
            };
            let (dtype, has_lengths) = (tensor.dtype, !given.split.is_null());
            (&raw mut (*call).input).write(tensor);
            let geometry = Geometry::new(&request, has_lengths, dtype, tensor.shape)?;
            (&raw mut (*call).geometry).write(geometry);
            if has_lengths {
                let split = &*checked(given.split, Argument::Lengths)?;
                request.lengths = Some(lengths_of(split, reads)?);
            }
            (&raw mut (*call).pieces).write(request.pieces(dtype, geometry.extent)?);
            Ok(&mut *call)
        }
    }
}

/// The operator version that governs.
#[inline]
fn operator(params: &libsplit_params) -> Result<Operator, Error> {
    let openvino = |operator, name| match params.opset {
        0 | 1 => Ok(operator),
        opset => Err(Error::OpenVinoOpset { operator: name, expected: 1, actual: opset.into() }),
    };
    match params.op {
        libsplit_op::ONNX_SPLIT => Operator::onnx_split(params.opset),
        libsplit_op::ONNX_SPLIT_TO_SEQUENCE => Operator::onnx_split_to_sequence(params.opset),
        libsplit_op::OPENVINO_VARIADIC_SPLIT => {
            openvino(Operator::VariadicSplit1, "OpenVINO VariadicSplit")
        }
        libsplit_op::OPENVINO_SPLIT => openvino(Operator::OpenVinoSplit1, "OpenVINO Split"),
        libsplit_op(actual) => {
            let expected = libsplit_op::OPENVINO_SPLIT.0.into();
            Err(Error::OperatorUnknown { expected, actual: actual.into() })
        }
    }
}

#[inline]
pub(super) fn check_flags(argument: Argument, flags: u32, known: u32) -> Result<(), Error> {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(Error::Flags { argument, expected: known.into(), actual: flags.into() })
}

/// The lengths, and in `reads` where they lie.
///
/// # Safety
/// Promise 1.
#[inline]
unsafe fn lengths_of<'a>(split: &libsplit_tensor, reads: &mut Reads) -> Result<Lengths<'a>, Error> {
    let which = Which::Split;
    let dtype = dtype_of(split, which)?;
    if !(0..=1).contains(&split.rank) {
        return Err(Error::LengthsRank { expected: 1, actual: split.rank.into() });
    }
    // SAFETY: promise 1.
    let tensor = unsafe { tensor_of(split, Look::AtLayout, which) }?;
    let len = tensor.shape.first().copied();
    if let Some(actual @ ..=-1) = len {
        return Err(Error::LengthsExtent { expected: 0, actual });
    }
    let bits = i64::from(dtype.bits());
    let count = len.unwrap_or(1);
    if count.checked_mul(bits).is_none() {
        return Err(Error::TooManyElements { which });
    }
    reads.set(Owner::Split, Span::of(split));
    reads.set(Owner::SplitShape, Span::of_slice(tensor.shape));
    reads.set(Owner::SplitStrides, Span::of_slice(tensor.strides.unwrap_or_default()));
    if !tensor.data.is_null() {
        reads.set(Owner::Lengths, tensor.span(count, which)?);
    } else if len == Some(0) {
        tensor.check_bit_offset(which)?;
    }
    let stride = tensor.strides.and_then(|strides| strides.first()).copied().unwrap_or(1);
    // SAFETY: promise 1 for all that has been checked. A stride whose bits overflow is one of a list
    // with one entry, and is not used.
    Ok(unsafe {
        let (bit_offset, bit_stride) = (tensor.bit_offset.into(), stride.wrapping_mul(bits));
        Lengths::from_raw(tensor.data, bit_offset, bit_stride, len, dtype)
    })
}

#[inline]
pub(super) fn dtype_of(tensor: &libsplit_tensor, which: Which) -> Result<DType, Error> {
    let actual = tensor.dtype.0;
    let expected = number(DType::ALL.len());
    DType::from_number(actual).ok_or(Error::DTypeUnknown { which, expected, actual: actual.into() })
}

/// A descriptor's rank, within what a tensor may have.
#[inline]
pub(super) fn rank_of(tensor: &libsplit_tensor, which: Which) -> Result<usize, Error> {
    let actual = i64::from(tensor.rank);
    let lowest = i64::from(which == Which::Input);
    match usize::try_from(tensor.rank) {
        Ok(rank) if rank <= MAX_RANK => Ok(rank),
        Ok(_) => Err(Error::Rank { which, expected: number(MAX_RANK), actual }),
        Err(_) => Err(Error::RankNegative { which, expected: lowest, actual }),
    }
}

/// A tensor whose type and shape have been looked at, and its layout if that matters.
///
/// # Safety
/// Promise 1.
#[inline]
pub(super) unsafe fn tensor_of<'a>(
    tensor: &libsplit_tensor,
    look: Look,
    which: Which,
) -> Result<Tensor<'a>, Error> {
    let dtype = dtype_of(tensor, which)?;
    let rank = rank_of(tensor, which)?;
    let (mut shape, mut strides): (&[i64], Option<&[i64]>) = (&[], None);
    if rank > 0 {
        check_array(tensor.shape, which, Field::Shape)?;
        // SAFETY: not NULL, aligned, and `rank` entries long by promise 1, as are strides.
        shape = unsafe { slice::from_raw_parts(tensor.shape, rank) };
        if look == Look::AtLayout && !tensor.strides.is_null() {
            check_array(tensor.strides, which, Field::Strides)?;
            // SAFETY: as above.
            strides = Some(unsafe { slice::from_raw_parts(tensor.strides, rank) });
        }
    }
    Ok(Tensor {
        data: tensor.data.cast(),
        data_bytes: tensor.data_bytes,
        dtype,
        shape,
        strides,
        bit_offset: tensor.bit_offset,
    })
}

/// Checks that an array of a descriptor is there and aligned.
#[inline]
pub(super) fn check_array(array: *const i64, which: Which, field: Field) -> Result<(), Error> {
    if !array.is_null() && array.is_aligned() {
        return Ok(());
    }
    Err(wrong_array(array as usize, which, field))
}

#[cold]
#[inline(never)]
fn wrong_array(address: usize, which: Which, field: Field) -> Error {
    if address == 0 {
        return Error::NullField { which, field };
    }
    let (expected, actual) = alignment(address, align_of::<i64>());
    Error::AlignmentField { which, field, expected, actual }
}

/// A pointer that is not NULL, and aligned.
#[inline]
pub(super) fn checked<T>(pointer: *const T, argument: Argument) -> Result<*const T, Error> {
    if !pointer.is_null() && pointer.is_aligned() {
        return Ok(pointer);
    }
    Err(wrong_pointer(pointer as usize, align_of::<T>(), argument))
}

#[cold]
#[inline(never)]
fn wrong_pointer(address: usize, align: usize, argument: Argument) -> Error {
    if address == 0 {
        return Error::Null { argument };
    }
    let (expected, actual) = alignment(address, align);
    Error::Alignment { argument, expected, actual }
}

/// The alignment that an address should have, and by how much it misses it.
fn alignment(address: usize, align: usize) -> (i64, i64) {
    (number(align), number(address & (align - 1)))
}

/// Bytes that structures had in their first version, which ended with these fields: old programs state
/// them for ever, whatever is added behind.
pub(super) const FIRST_PARAMS: usize = offset_of!(libsplit_params, flags) + size_of::<u32>();
pub(super) const FIRST_EXECUTOR: usize = offset_of!(libsplit_executor, flags) + size_of::<u32>();
pub(super) const FIRST_ERROR: usize =
    offset_of!(libsplit_error, message) + size_of::<[c_char; MESSAGE]>();

/// Bytes of an error's message in its first version.
pub(super) const MESSAGE: usize = 240;

/// The largest `struct_size` believed.
const MAX_STRUCT_SIZE: usize = 4096;

/// A structure that begins with its size and may be of another version than ours, and that size: fields that
/// it does not have yet are 0, and those that we do not know yet must be.
///
/// # Safety
/// `pointer` must be NULL or valid for the size that it states; all zero bytes are a `T`.
#[inline]
pub(super) unsafe fn versioned<T: Copy>(
    pointer: *const T,
    argument: Argument,
    first_version: usize,
) -> Result<(T, usize), Error> {
    checked(pointer, argument)?;
    // SAFETY: the size comes first in every such structure, and it is as long as it says.
    unsafe {
        let stated = pointer.cast::<usize>().read();
        if stated == size_of::<T>() {
            return Ok((*pointer, stated));
        }
        let mut known = MaybeUninit::<T>::zeroed();
        let bytes = slice::from_raw_parts_mut(known.as_mut_ptr().cast(), size_of::<T>());
        other_version(pointer.cast(), stated, argument, first_version, bytes)?;
        Ok((known.assume_init(), stated))
    }
}

/// Copies as much of a structure as is known.
///
/// # Safety
/// As [`versioned`]; the structure states that size.
#[cold]
#[inline(never)]
unsafe fn other_version(
    pointer: *const u8,
    stated: usize,
    argument: Argument,
    first_version: usize,
    known: &mut [u8],
) -> Result<(), Error> {
    if stated < first_version {
        let (expected, actual) = (number(first_version), number(stated));
        return Err(Error::StructSize { argument, expected, actual });
    }
    if stated > MAX_STRUCT_SIZE {
        let expected = number(MAX_STRUCT_SIZE);
        return Err(Error::StructSizeHuge { argument, expected, actual: stated });
    }
    // SAFETY: the caller's structure is as long as it says.
    let given = unsafe { slice::from_raw_parts(pointer, stated) };
    if given.iter().skip(known.len()).any(|byte| *byte != 0) {
        let (expected, actual) = (number(known.len()), number(stated));
        return Err(Error::NonZeroTail { argument, expected, actual });
    }
    known.iter_mut().zip(given).for_each(|(known, given)| *known = *given);
    Ok(())
}

/// Output descriptors.
///
/// # Safety
/// Promises 1 and 2.
#[inline]
pub(super) unsafe fn descriptors<'a>(
    outputs: *const libsplit_tensor,
    len: usize,
) -> Result<&'a [libsplit_tensor], Error> {
    if len == 0 {
        return Ok(&[]);
    }
    checked(outputs, Argument::Outputs)?;
    let most = isize::MAX.unsigned_abs() / size_of::<libsplit_tensor>();
    if len > most {
        let (argument, expected) = (Argument::Given, number(most));
        return Err(Error::TooManyOutputs { argument, expected, actual: len });
    }
    // SAFETY: not NULL, aligned, and `len` long by promise 1.
    Ok(unsafe { slice::from_raw_parts(outputs, len) })
}

/// Where the shape and the strides of an output lie; nowhere if it has none.
#[inline]
pub(super) fn arrays(output: &libsplit_tensor, rank: usize) -> [Span; 2] {
    [output.shape, output.strides].map(|array| Span::of_array(array, rank))
}

/// One of the arrays of all outputs, of which each has a shape and strides.
pub(super) fn array_span(outputs: &[libsplit_tensor], array: usize, rank: usize) -> Span {
    let [shape, strides] = outputs.get(array / 2).map_or([Span::NOWHERE; 2], |o| arrays(o, rank));
    if array.is_multiple_of(2) {
        shape
    } else {
        strides
    }
}

/// Whether a descriptor is all zero: an output that the caller does not want.
#[inline]
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
    #![allow(clippy::cast_ptr_alignment)] // memory that is aligned enough

    use super::{versioned, Argument, Error};
    #[cfg(target_pointer_width = "64")]
    use super::{FIRST_ERROR, FIRST_EXECUTOR, FIRST_PARAMS};

    /// As in `abi/0.1.0/libsplit.h`: these numbers stay as they are.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn the_sizes_of_first_versions_never_change() {
        assert_eq!((FIRST_PARAMS, FIRST_EXECUTOR, FIRST_ERROR), (48, 32, 272));
    }

    /// Today's version of a structure whose first had two fields.
    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C)]
    struct Grown {
        struct_size: usize,
        first: u64,
        second: u64,
    }

    const FIRST: usize = size_of::<usize>() + 8;

    fn read(structure: *const u8) -> Result<Grown, Error> {
        // SAFETY: as long as it says.
        unsafe { versioned(structure.cast::<Grown>(), Argument::Params, FIRST) }.map(|(it, _)| it)
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
        assert!(matches!(read(unknown), Err(Error::NonZeroTail { expected: 24, .. })));
        let (_memory, short) = at_the_edge(8, &[]);
        assert!(matches!(read(short), Err(Error::StructSize { expected: 16, actual: 8, .. })));
    }
}
