//! OpenVINO Split-1. VariadicSplit-1 is a list of lengths, in which one may be -1, and nothing more.

use super::Request;
use crate::error::Error;
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;

/// `num_splits` equal parts.
pub(super) fn parts<'a>(request: &Request<'_>, extent: i64) -> Result<Pieces<'a>, Error> {
    let (operator, count) = (request.operator, request.num_outputs);
    if count < 1 {
        return Err(Error::NumOutputsNegative { expected: 1, actual: count });
    }
    request.check_parts(count)?;
    if extent == DIM_UNKNOWN {
        return Ok(Pieces::Unknown { count });
    }
    let size = extent.checked_div(count).unwrap_or(0);
    if size * count != extent {
        return Err(Error::Uneven { operator, expected: count, actual: extent });
    }
    Ok(Pieces::Equal { count, size, extent })
}
