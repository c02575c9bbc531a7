//! OpenVINO VariadicSplit-1 and Split-1.

use super::lengths_list::{self, MinusOne};
use super::{Pieces, Request, Rule};
use crate::dtype::DType;
use crate::error::{Error, Fault, Report};
use crate::shape::DIM_UNKNOWN;

/// VariadicSplit: a list of any integer type, in which one entry of -1 takes the rest.
#[inline(always)]
pub(super) fn variadic_split<'a>(
    request: &Request<'a>,
    report: &mut Report,
) -> Result<Rule<'a>, Fault> {
    let Some(lengths) = request.lengths else {
        return report.refuse(Error::LengthsAbsent { operator: request.operator });
    };
    lengths_list::expect_dtype(request, &lengths, DType::is_integer, "an integer type", report)?;
    Ok(Rule::List(lengths, MinusOne::Rest))
}

/// Split: `num_splits` equal parts.
#[inline(always)]
pub(super) fn split<'a>(
    request: &Request<'_>,
    extent: i64,
    report: &mut Report,
) -> Result<Rule<'a>, Fault> {
    let operator = request.operator;
    if request.lengths.is_some() {
        return report.refuse(Error::LengthsRefused { operator });
    }
    let count = request.num_outputs;
    if count < 1 {
        return report.refuse(Error::NumOutputsNegative { expected: 1, actual: count });
    }
    request.expect_parts(count, report)?;
    if extent == DIM_UNKNOWN {
        return Ok(Rule::Pieces(Pieces::Unknown { count }));
    }
    let size = extent.checked_div(count).unwrap_or(0);
    if size * count != extent {
        return report.refuse(Error::Uneven { operator, expected: count, actual: extent });
    }
    Ok(Rule::Pieces(Pieces::Even { count, size, extent }))
}
