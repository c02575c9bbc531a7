//! OpenVINO VariadicSplit-1 and Split-1.

use super::lengths_list::{self, MinusOne};
use super::{Pieces, Request};
use crate::dtype::DType;
use crate::error::{Error, Fault, Report};
use crate::lengths::Lengths;
use crate::shape::DIM_UNKNOWN;

/// VariadicSplit: a list of any integer type, in which one entry of -1 takes the rest.
#[inline(always)]
pub(super) fn expect_lengths(
    request: &Request<'_>,
    lengths: &Lengths<'_>,
    report: &mut Report,
) -> Result<MinusOne, Fault> {
    lengths_list::expect_dtype(request, lengths, DType::is_integer, "an integer type", report)?;
    Ok(MinusOne::Rest)
}

/// Split: `num_splits` equal parts.
#[inline(never)] // with a request of its own, so that those of others stay in registers
pub(super) fn split<'a>(
    request: Request<'_>,
    extent: i64,
    report: &mut Report,
) -> Result<Pieces<'a>, Fault> {
    let operator = request.operator;
    let count = request.num_outputs;
    if count < 1 {
        return report.refuse(Error::NumOutputsNegative { expected: 1, actual: count });
    }
    request.expect_parts(count, report)?;
    if extent == DIM_UNKNOWN {
        return Ok(Pieces::Unknown { count });
    }
    let size = extent.checked_div(count).unwrap_or(0);
    if size * count != extent {
        return report.refuse(Error::Uneven { operator, expected: count, actual: extent });
    }
    Ok(Pieces::Even { count, size, extent })
}
