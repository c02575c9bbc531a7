//! ONNX SplitToSequence, versions 11 and 24.
//!
//! The rank of the lengths decides: a scalar is the length of every piece but a smaller last, a
//! list has one entry a piece, and without lengths every piece is 1 long (and loses the axis
//! with `keepdims` 0, see [`drops_axis`]). The number of pieces follows from that.

use super::lengths_list;
use super::{Pieces, Request};
use crate::dtype::DType;
use crate::error::{Error, Fault, Report};
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::shape::DIM_UNKNOWN;

/// That lengths are of a type that is taken.
#[inline(always)]
pub(super) fn expect_lengths(
    request: &Request<'_>,
    lengths: &Lengths<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    let taken = |dtype| matches!(dtype, DType::Int32 | DType::Int64);
    lengths_list::expect_dtype(request, lengths, taken, "INT32 or INT64", report)
}

/// Pieces of the length that a scalar gives.
#[inline(never)]
pub(super) fn chunks_of<'a>(
    request: Request<'_>,
    length: Lengths<'_>,
    extent: i64,
    report: &mut Report,
) -> Result<Pieces<'a>, Fault> {
    if !length.is_known() {
        return unknown(request, "params.split", report);
    }
    match length.get(0, report)? {
        size @ 1.. => chunks(request, size, extent, report),
        actual => report.refuse(Error::ScalarNotPositive { expected: 1, actual }),
    }
}

/// Pieces of one length.
#[inline(never)] // with a request of its own, so that those of others stay in registers
pub(super) fn chunks<'a>(
    request: Request<'_>,
    size: i64,
    extent: i64,
    report: &mut Report,
) -> Result<Pieces<'a>, Fault> {
    if extent == DIM_UNKNOWN {
        return match unknown(request, "input.shape", report)? {
            // As many pieces of 1 as there are outputs.
            Pieces::Unknown { count } if size == 1 => {
                Ok(Pieces::Even { count, size, extent: count })
            }
            pieces => Ok(pieces),
        };
    }
    let count = if size == 1 { extent } else { div_ceil(extent, size) };
    request.expect_count(count, report)?;
    Ok(Pieces::Even { count, size, extent })
}

/// Both are at least 0, and the divisor is not 0.
pub(super) fn div_ceil(extent: i64, parts: i64) -> i64 {
    let whole = extent.checked_div(parts).unwrap_or(0);
    whole + i64::from(whole * parts != extent)
}

/// As many pieces as the caller says that there are, where `argument` does not tell yet.
#[inline(never)]
fn unknown<'a>(
    request: Request<'_>,
    argument: &'static str,
    report: &mut Report,
) -> Result<Pieces<'a>, Fault> {
    let given = request.outputs.and_then(|outputs| i64::try_from(outputs).ok());
    match given.or(Some(request.num_outputs).filter(|count| *count > 0)) {
        Some(count) => {
            request.expect_count(count, report)?;
            request.unknown(count, report)
        }
        None => report.refuse(Error::CountUnknown { argument }),
    }
}

/// Whether the pieces lose the axis: `keepdims` counts only where lengths are absent.
pub(crate) fn drops_axis(operator: Operator, keepdims: bool, has_lengths: bool) -> bool {
    #[cold] // off the way of other operators
    #[inline(never)]
    fn does(keepdims: bool, has_lengths: bool) -> bool {
        !has_lengths && !keepdims
    }
    matches!(operator, Operator::SplitToSequence11 | Operator::SplitToSequence24)
        && does(keepdims, has_lengths)
}
