//! ONNX Split, versions 1, 2, 11, 13 and 18.
//!
//! Lengths are a list that adds up to the extent. Without them every version makes equal parts;
//! only Split-18 lets the last be smaller, and only it names their number (`num_outputs`): the
//! older ones split into as many outputs as the node has.

use super::lengths_list::{self, MinusOne};
use super::split_to_sequence::div_ceil;
use super::{Pieces, Request};
use crate::dtype::DType;
use crate::error::{number, Error, Fault, Report};
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::shape::DIM_UNKNOWN;

/// That lengths may be given, and such as these.
#[inline(always)]
pub(super) fn expect_lengths(
    request: &Request<'_>,
    lengths: &Lengths<'_>,
    input: DType,
    report: &mut Report,
) -> Result<MinusOne, Fault> {
    if request.operator == Operator::Split18 && request.num_outputs != 0 {
        let actual = request.num_outputs;
        return report.refuse(Error::LengthsAndNumOutputs { expected: 0, actual });
    }
    let is_int64 = |dtype| dtype == DType::Int64;
    match request.operator {
        // The attribute is int64, the second input of the input's own type: floats.
        Operator::Split1 => {
            let taken = |dtype| is_int64(dtype) || dtype == input;
            lengths_list::expect_dtype(request, lengths, taken, "INT64 or the input's type", report)
        }
        _ => lengths_list::expect_dtype(request, lengths, is_int64, "INT64", report),
    }?;
    if lengths.len() == Some(0) {
        return report.refuse(Error::NoLengths { expected: 1, actual: 0 });
    }
    Ok(MinusOne::Refused)
}

/// Equal parts.
#[inline(always)]
pub(super) fn even<'a>(
    request: &Request<'_>,
    extent: i64,
    report: &mut Report,
) -> Result<Pieces<'a>, Fault> {
    let operator = request.operator;
    let count = parts(request, report)?;
    request.expect_parts(count, report)?;
    if extent == DIM_UNKNOWN {
        return Ok(Pieces::Unknown { count });
    }
    let size = div_ceil(extent, count);
    if operator != Operator::Split18 {
        if size * count != extent {
            return report.refuse(Error::Uneven { operator, expected: count, actual: extent });
        }
    } else if !request.clamp_uneven {
        // At most (count - 1) * (extent / count + 1), which is below extent + count.
        let last = extent - (count - 1) * size;
        if last < 0 {
            return report.refuse(Error::LastNegative { count, size, extent, last });
        }
    }
    Ok(Pieces::Even { count, size, extent })
}

/// How many equal parts are asked for.
#[inline(always)]
fn parts(request: &Request<'_>, report: &mut Report) -> Result<i64, Fault> {
    match (request.num_outputs, request.outputs) {
        (1.., _) => Ok(request.num_outputs),
        (0, _) if request.operator == Operator::Split18 => {
            report.refuse(Error::NeitherLengthsNorNumOutputs)
        }
        (0, Some(0)) => report.refuse(Error::NoOutputs { expected: 1, actual: 0 }),
        (0, Some(given)) => Ok(number(given)),
        (0, None) => report.refuse(Error::NumOutputsUnknown { operator: request.operator }),
        (actual, _) => report.refuse(Error::NumOutputsNegative { expected: 1, actual }),
    }
}
