//! ONNX Split, versions 1, 2, 11, 13 and 18.
//!
//! Lengths are a list that adds up to the extent. Without them every version makes equal parts;
//! only Split-18 lets the last be smaller, and only it names their number (`num_outputs`): the
//! older ones split into as many outputs as the node has.

use super::{div_ceil, Request};
use crate::dtype::DType;
use crate::error::{number, Error};
use crate::lengths::Lengths;
use crate::operator::EqualParts;
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;

/// Checks that lengths may be given, and of this type and number.
pub(super) fn check_lengths(
    request: &Request<'_>,
    equal: EqualParts,
    lengths: &Lengths<'_>,
    input: DType,
) -> Result<(), Error> {
    if equal == EqualParts::NumOutputs && request.num_outputs != 0 {
        let (operator, actual) = (request.operator, request.num_outputs);
        return Err(Error::LengthsAndNumOutputs { operator, expected: 0, actual });
    }
    request.check_type_of(lengths, input)?;
    if lengths.len() == Some(0) {
        return Err(Error::NoLengths { expected: 1, actual: 0 });
    }
    Ok(())
}

/// Equal parts.
pub(super) fn equal<'a>(
    request: &Request<'_>,
    equal: EqualParts,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    let operator = request.operator;
    let count = match (request.num_outputs, equal, request.outputs) {
        (1.., _, _) => request.num_outputs,
        (0, EqualParts::NumOutputs, _) => {
            return Err(Error::NeitherLengthsNorNumOutputs { operator });
        }
        (0, EqualParts::AsManyAsOutputs, Some(0)) => {
            return Err(Error::NoOutputs { expected: 1, actual: 0 });
        }
        (0, EqualParts::AsManyAsOutputs, Some(given)) => number(given),
        (0, EqualParts::AsManyAsOutputs, None) => {
            return Err(Error::NumOutputsUnknown { operator })
        }
        (actual, _, _) => return Err(Error::NumOutputsNegative { expected: 1, actual }),
    };
    request.check_parts(count)?;
    if extent == DIM_UNKNOWN {
        return Ok(Pieces::Unknown { count });
    }
    let size = div_ceil(extent, count);
    match equal {
        EqualParts::AsManyAsOutputs if size * count != extent => {
            Err(Error::Uneven { operator, expected: count, actual: extent })
        }
        EqualParts::NumOutputs if !request.clamp_uneven && extent < (count - 1) * size => {
            // At most (count - 1) * (extent / count + 1), which is below extent + count.
            let last = extent - (count - 1) * size;
            Err(Error::LastNegative { output: count - 1, size, extent, last })
        }
        EqualParts::AsManyAsOutputs | EqualParts::NumOutputs => {
            Ok(Pieces::Equal { count, size, extent })
        }
    }
}
