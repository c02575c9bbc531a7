//! Raw pointers in, checked borrows out: the input, the parameters, the lengths, and arrays of descriptors.
//!
//! # Safety
//! For everything unsafe here: promises 1 and 2 of [`super`].

use crate::call::ParsedCall;
use crate::descriptor::{checked, is_unwanted, tensor_of};
use crate::dtype::DType;
use crate::error::{number, Error};
use crate::geometry::Geometry;
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::reads::{Area, Reads};
use crate::rules::Request;
use crate::span::Span;
use crate::types::{
    libsplit_dtype, libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor,
    LIBSPLIT_FLAG_CLAMP_UNEVEN,
};
use crate::words::{Argument, Field};
use core::mem::{offset_of, MaybeUninit};
use core::slice;

/// Parses a call and plans its split. `num_outputs` is the number of outputs that the caller has. If extents may be
/// unknown, the strides do not matter. `error` counts as memory that is read.
///
/// # Safety
/// As the module says.
#[inline(always)] // it is too large to return cheaply
pub(super) unsafe fn call<'a>(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    num_outputs: Option<usize>,
    may_be_unknown: bool,
    error: *const libsplit_error,
) -> Result<ParsedCall<'a>, Error> {
    // SAFETY: promise 1.
    unsafe {
        let (stated, params_bytes) = versioned(params, Argument::Params, FIRST_PARAMS)?;
        let operator = Operator::governing(stated.op, stated.opset)?;
        check_flags(Argument::Params, stated.flags, LIBSPLIT_FLAG_CLAMP_UNEVEN)?;
        let descriptor = &*checked(input, Argument::Input, Field::Itself)?;
        let input = tensor_of(descriptor, !may_be_unknown, Argument::Input)?;
        let mut reads = Reads {
            request: Area {
                argument: Argument::Params,
                span: Span::of_array(params.cast::<u8>(), params_bytes),
            },
            input: Some(descriptor),
            error: span_of_error(error),
            ..Reads::NOTHING
        };
        let mut request = Request {
            operator,
            axis: stated.axis,
            lengths: None,
            num_outputs: stated.num_outputs,
            keepdims: stated.keepdims != 0 || !stated.split.is_null(),
            clamp_uneven: stated.flags & LIBSPLIT_FLAG_CLAMP_UNEVEN != 0,
            may_be_unknown,
            outputs: num_outputs,
        };
        let geometry = Geometry::new(&request, &input)?;
        if !stated.split.is_null() {
            let split = &*checked(stated.split, Argument::Lengths, Field::Itself)?;
            let (lengths, span) = plain_lengths(split).map_or_else(|| lengths_of(split), Ok)?;
            request.lengths = Some(lengths);
            reads.split = Some(split);
            reads.lengths = span;
        }
        let pieces = request.pieces(input.dtype, geometry.extent)?;
        Ok(ParsedCall { input, geometry, pieces, reads })
    }
}

/// Returns where an error structure lies: that part of it which every version writes.
pub(super) fn span_of_error(error: *const libsplit_error) -> Span {
    Span::of_array(error.cast::<u8>(), FIRST_ERROR)
}

/// Checks that no flag is set but the `known` ones.
pub(super) fn check_flags(argument: Argument, flags: u32, known: u32) -> Result<(), Error> {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(Error::Flags { argument, expected: known.into(), actual: flags.into() })
}

/// Returns the lengths, and where their elements lie, if they are a list of int64 without strides, as most are.
#[inline(always)] // it is too large to return cheaply
unsafe fn plain_lengths<'a>(split: &libsplit_tensor) -> Option<(Lengths<'a>, Span)> {
    let (start, shape) = (split.data as usize, split.shape);
    if split.dtype != libsplit_dtype::INT64
        || split.rank != 1
        || !split.strides.is_null()
        || split.bit_offset != 0
        || split.data.is_null()
        || shape.is_null()
        || !shape.is_aligned()
    {
        return None;
    }
    // SAFETY: promise 1.
    let len = unsafe { *shape };
    let bytes = usize::try_from(len.checked_mul(i64::BITS.into())? >> 3).ok()?;
    let span = Span { start, end: start.checked_add(bytes)? };
    if split.data_bytes != 0 && split.data_bytes < bytes {
        return None;
    }
    // SAFETY: as above.
    let lengths = unsafe {
        Lengths::from_raw(split.data.cast(), 0, i64::BITS.into(), Some(len), DType::Int64)
    };
    Some((lengths, span))
}

/// Returns the lengths, and where their elements lie.
#[inline(never)]
unsafe fn lengths_of<'a>(split: &libsplit_tensor) -> Result<(Lengths<'a>, Span), Error> {
    let argument = Argument::Lengths;
    // SAFETY: promise 1.
    let tensor = unsafe { tensor_of(split, true, argument) }?;
    let len = tensor.shape.first().copied();
    if let Some(actual @ ..=-1) = len {
        return Err(Error::LengthsExtent { expected: 0, actual });
    }
    let bits = i64::from(tensor.dtype.bits());
    let count = len.unwrap_or(1);
    if count.checked_mul(bits).is_none() {
        return Err(Error::TooManyElements { argument });
    }
    let is_known = !tensor.data.is_null() || len == Some(0);
    let span = if is_known { tensor.span(count, argument)? } else { Span::NOWHERE };
    let stride = tensor.strides.and_then(|strides| strides.first()).copied().unwrap_or(1);
    // SAFETY: promise 1 for all that has been checked. A stride whose bits overflow is one of a list
    // with one entry, and is not used.
    Ok(unsafe {
        let (bit_offset, bit_stride) = (tensor.bit_offset.into(), stride.wrapping_mul(bits));
        (Lengths::from_raw(tensor.data, bit_offset, bit_stride, len, tensor.dtype), span)
    })
}

/// The sizes of structures in their first version, which ended with these fields. Old programs will always state them,
/// whatever is added later.
pub(super) const FIRST_PARAMS: usize = offset_of!(libsplit_params, flags) + size_of::<u32>();
pub(super) const FIRST_EXECUTOR: usize = offset_of!(libsplit_executor, flags) + size_of::<u32>();
pub(super) const FIRST_ERROR: usize = offset_of!(libsplit_error, message) + 240;

/// The largest `struct_size` that is accepted.
pub(super) const MAX_STRUCT_SIZE: usize = 4096;

/// Returns a structure that begins with its size, and that size. It may be of another version than ours: fields that it
/// does not have yet are 0, and those that we do not know yet must be 0.
///
/// # Safety
/// `pointer` must be NULL or valid for the size that it states; all zero bytes are a `T`.
pub(super) unsafe fn versioned<T: Copy>(
    pointer: *const T,
    argument: Argument,
    first_version: usize,
) -> Result<(T, usize), Error> {
    checked(pointer, argument, Field::Itself)?;
    // SAFETY: the size comes first in every such structure, which is as long as that says.
    let stated = unsafe { pointer.cast::<usize>().read() };
    if stated == size_of::<T>() {
        // SAFETY: as above.
        return Ok((unsafe { *pointer }, stated));
    }
    if stated < first_version {
        let (expected, actual) = (number(first_version), number(stated));
        return Err(Error::StructSize { argument, expected, actual });
    }
    if stated > MAX_STRUCT_SIZE {
        let expected = number(MAX_STRUCT_SIZE);
        return Err(Error::StructSizeHuge { argument, expected, actual: stated });
    }
    // SAFETY: as above.
    let structure = unsafe { slice::from_raw_parts(pointer.cast::<u8>(), stated) };
    if structure.iter().skip(size_of::<T>()).any(|byte| *byte != 0) {
        let (expected, actual) = (number(size_of::<T>()), number(stated));
        return Err(Error::NonZeroTail { argument, expected, actual });
    }
    let mut known = MaybeUninit::<T>::zeroed();
    let bytes = stated.min(size_of::<T>());
    // SAFETY: as above; there is room for so many bytes, and the others are zero.
    unsafe {
        known.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(structure.as_ptr(), bytes);
        Ok((known.assume_init(), stated))
    }
}

/// Returns the output descriptors. Checks that memory can hold so many, and that one of them is wanted.
pub(super) unsafe fn descriptors<'a>(
    outputs: *const libsplit_tensor,
    len: usize,
) -> Result<&'a [libsplit_tensor], Error> {
    if len == 0 {
        return Ok(&[]);
    }
    checked(outputs, Argument::Outputs, Field::Itself)?;
    let most = isize::MAX.unsigned_abs() / size_of::<libsplit_tensor>();
    if len > most {
        let (argument, expected) = (Argument::Given, number(most));
        return Err(Error::TooManyOutputs { argument, expected, actual: len });
    }
    // SAFETY: not NULL, aligned, and `len` long by promise 1.
    let outputs = unsafe { slice::from_raw_parts(outputs, len) };
    // Zeroed descriptors that nobody has filled in are the most common mistake.
    if outputs.first().is_some_and(is_unwanted) && outputs.iter().all(is_unwanted) {
        return Err(Error::NoneWanted { count: len, expected: 1, actual: 0 });
    }
    Ok(outputs)
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
        assert_eq!((FIRST_PARAMS, FIRST_EXECUTOR, FIRST_ERROR), (48, 32, 280));
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
