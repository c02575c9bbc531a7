//! ONNX Split, versions 1, 2, 11, 13 and 18.
//!
//! Lengths are a list that adds up to the extent. Without them every version makes equal parts;
//! only Split-18 lets the last be smaller, and only it names their number (`num_outputs`): the
//! older ones split into as many outputs as the node has.

use super::lengths_list::{self, MinusOne};
use super::{Pieces, Request, MAX_OUTPUTS};
use crate::dtype::DType;
use crate::error::{number, Error};
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::shape::DIM_UNKNOWN;

#[inline]
pub(super) fn pieces<'a>(
    request: &'a Request<'a>,
    dtype: DType,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    match &request.lengths {
        Some(lengths) => listed(request, lengths, dtype, extent),
        None => even(request, extent),
    }
}

fn listed<'a>(
    request: &Request<'_>,
    lengths: &'a Lengths<'a>,
    input: DType,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    if request.operator == Operator::Split18 && request.num_outputs != 0 {
        return Err(Error::LengthsAndNumOutputs { expected: 0, actual: request.num_outputs });
    }
    match request.operator {
        // The attribute is int64, the second input of the input's own type: floats.
        Operator::Split1 => lengths_list::expect_dtype(
            request,
            lengths,
            |dtype| dtype == DType::Int64 || dtype == input,
            "INT64 or the input's type",
        ),
        _ => lengths_list::expect_dtype(request, lengths, |dtype| dtype == DType::Int64, "INT64"),
    }?;
    if lengths.len() == Some(0) {
        return Err(Error::NoOutputs { expected: 1, actual: 0 });
    }
    lengths_list::pieces(request, lengths, extent, MinusOne::Refused)
}

#[inline]
fn even<'a>(request: &Request<'_>, extent: i64) -> Result<Pieces<'a>, Error> {
    let count = parts(request)?;
    if count > MAX_OUTPUTS {
        return Err(Error::TooManyOutputs { expected: MAX_OUTPUTS, actual: count });
    }
    request.expect_count(count)?;
    if extent == DIM_UNKNOWN {
        return Ok(Pieces::Unknown { count });
    }
    let size = extent / count + i64::from(extent % count != 0);
    if request.operator != Operator::Split18 {
        if extent % count != 0 {
            return Err(Error::Uneven {
                operator: request.operator,
                expected: count,
                actual: extent,
            });
        }
    } else if !request.clamp_uneven {
        // At most (count - 1) * (extent / count + 1), which is below extent + count.
        let last = extent - (count - 1) * size;
        if last < 0 {
            return Err(Error::LastNegative { count, size, extent, last });
        }
    }
    Ok(Pieces::Even { count, size, extent })
}

/// How many equal parts are asked for.
fn parts(request: &Request<'_>) -> Result<i64, Error> {
    let given = request.outputs.map(number);
    match request.num_outputs {
        1.. => Ok(request.num_outputs),
        0 if request.operator == Operator::Split18 => Err(Error::NeitherLengthsNorNumOutputs),
        0 => match given {
            Some(0) => Err(Error::NoOutputs { expected: 1, actual: 0 }),
            Some(given) => Ok(given),
            None => Err(Error::NumOutputsUnknown { operator: request.operator }),
        },
        actual => Err(Error::NumOutputsNegative { expected: 1, actual }),
    }
}
