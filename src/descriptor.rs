//! Descriptors of tensors, as C programs fill them in.
//!
//! # Safety
//! For everything unsafe here: promises 1 and 2 of [`crate::ffi`].

use crate::dtype::DType;
use crate::error::{number, Error};
use crate::shape::MAX_RANK;
use crate::span::Span;
use crate::tensor::Tensor;
use crate::types::libsplit_tensor;
use crate::words::{Argument, Field};
use core::slice;

/// Returns a tensor after a check of its type, rank and arrays; without its strides if these do not matter.
pub(crate) unsafe fn tensor_of<'a>(
    tensor: &libsplit_tensor,
    has_strides: bool,
    argument: Argument,
) -> Result<Tensor<'a>, Error> {
    let Some(dtype) = DType::from_number(tensor.dtype.0) else {
        if let (Argument::Output(output), 0) = (argument, tensor.dtype.0) {
            return Err(Error::NotDescribed { output });
        }
        let (expected, actual) = (number(DType::ALL.len()), tensor.dtype.0.into());
        return Err(Error::DTypeUnknown { argument, expected, actual });
    };
    let (highest, actual) = (number(MAX_RANK), i64::from(tensor.rank));
    let rank = match (argument, usize::try_from(tensor.rank)) {
        (Argument::Lengths, Ok(2..) | Err(_)) => {
            return Err(Error::LengthsRank { expected: 1, actual });
        }
        (_, Ok(rank)) if rank <= MAX_RANK => rank,
        (_, Ok(_)) => return Err(Error::Rank { argument, expected: highest, actual }),
        (_, Err(_)) => {
            let expected = i64::from(argument == Argument::Input);
            return Err(Error::RankNegative { argument, expected, actual });
        }
    };
    let (mut shape, mut strides): (&[i64], Option<&[i64]>) = (&[], None);
    if rank > 0 {
        // SAFETY: not NULL, aligned, and as long by promise 1.
        let array = |array, field| unsafe {
            Ok(slice::from_raw_parts(checked(array, argument, field)?, rank))
        };
        shape = array(tensor.shape, Field::Shape)?;
        if has_strides && !tensor.strides.is_null() {
            strides = Some(array(tensor.strides, Field::Strides)?);
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

/// Checks that a pointer is not NULL, and aligned.
pub(crate) fn checked<T>(
    pointer: *const T,
    argument: Argument,
    field: Field,
) -> Result<*const T, Error> {
    if pointer.is_null() {
        return Err(Error::Null { argument, field });
    }
    let missed = pointer as usize & (align_of::<T>() - 1);
    if missed > 0 {
        let (expected, actual) = (number(align_of::<T>()), number(missed));
        return Err(Error::Alignment { argument, field, expected, actual });
    }
    Ok(pointer)
}

/// Returns where the shape and the strides of a descriptor lie; nowhere if they are NULL.
pub(crate) fn arrays(output: &libsplit_tensor, rank: usize) -> [Span; 2] {
    [output.shape, output.strides].map(|array| Span::of_array(array, rank))
}

/// Returns where one of the arrays of all outputs lies. They are numbered: the first output's shape, its strides, the
/// next output's shape, and so on.
pub(crate) fn array_span(outputs: &[libsplit_tensor], array: usize, rank: usize) -> Span {
    let arrays = outputs.get(array / 2).map(|output| arrays(output, rank));
    arrays.and_then(|arrays| arrays.get(array % 2).copied()).unwrap_or(Span::NOWHERE)
}

/// Returns whether a descriptor is all zero: an output that the caller does not want.
#[inline]
pub(crate) fn is_unwanted(tensor: &libsplit_tensor) -> bool {
    // Most have a shape or data, and then there is no need to look at the rest.
    tensor.shape.is_null() && tensor.data.is_null() && is_zero(tensor)
}

#[inline(never)] // for the registers of loops
fn is_zero(tensor: &libsplit_tensor) -> bool {
    *tensor == libsplit_tensor::ZERO
}
