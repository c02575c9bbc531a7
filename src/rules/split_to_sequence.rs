//! ONNX SplitToSequence, versions 11 and 24.
//!
//! The rank of the lengths decides. A scalar is the length of every piece, except that the last may be smaller. A list
//! has one entry for each piece. Without lengths every piece has length 1, and loses the axis if `keepdims` is 0 (see
//! [`drops_axis`]). The number of pieces follows from that.

use super::{div_ceil, Request};
use crate::error::Error;
use crate::lengths::Lengths;
use crate::operator::{Operator, Rules};
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;
use crate::words::Argument;

/// Makes pieces of the length that a scalar gives.
pub(super) fn chunks_of<'a>(
    request: &Request<'_>,
    length: &Lengths<'_>,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    if !length.is_known() {
        return unknown(request, Argument::Lengths);
    }
    match length.get(0)? {
        size @ 1.. => chunks(request, size, extent),
        actual => Err(Error::ScalarNotPositive { expected: 1, actual }),
    }
}

/// Makes pieces of one length.
pub(super) fn chunks<'a>(
    request: &Request<'_>,
    size: i64,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    if extent == DIM_UNKNOWN {
        let pieces = unknown(request, Argument::InputShape)?;
        // As many pieces of 1 as there are outputs.
        let Pieces::Unknown { count } = pieces else { return Ok(pieces) };
        return Ok(if size == 1 { Pieces::Equal { count, size, extent: count } } else { pieces });
    }
    let count = if size == 1 { extent } else { div_ceil(extent, size) };
    request.check_count(count)?;
    Ok(Pieces::Equal { count, size, extent })
}

/// Makes as many pieces as the caller says there are, because `argument` is not known yet.
fn unknown<'a>(request: &Request<'_>, argument: Argument) -> Result<Pieces<'a>, Error> {
    let given = request.outputs.and_then(|outputs| i64::try_from(outputs).ok());
    match given.or(Some(request.num_outputs).filter(|count| *count > 0)) {
        Some(count) => {
            request.check_count(count)?;
            request.unknown(count)
        }
        None => Err(Error::CountUnknown { argument }),
    }
}

/// Returns whether the pieces lose the axis: `keepdims` counts only if lengths are absent.
#[inline]
pub(crate) fn drops_axis(operator: Operator, keepdims: bool, has_lengths: bool) -> bool {
    operator.rules() == Rules::Sequence && !has_lengths && !keepdims
}
