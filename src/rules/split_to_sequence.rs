//! ONNX SplitToSequence.
//!
//! The rank of the lengths decides. A scalar is the length of every piece, except that the last may be smaller. A list
//! has one entry for each piece. Without lengths every piece has length 1, and may lose the axis.

use super::{div_ceil, Request};
use crate::error::Error;
use crate::lengths::Lengths;
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;
use crate::words::Argument;

/// Makes pieces of the length that a scalar gives, or else of length 1.
pub(super) fn chunks<'a>(
    request: &Request<'_>,
    length: Option<&Lengths<'_>>,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    let size = match length {
        None => 1,
        Some(length) if !length.is_known() => {
            return request.unknown(count_given(request, Argument::Lengths)?);
        }
        Some(length) => match length.value(0) {
            Some(size @ 1..) => size,
            None => return Err(Error::LengthNotInteger { output: 0, dtype: length.dtype }),
            Some(actual) => return Err(Error::ScalarNotPositive { expected: 1, actual }),
        },
    };
    if extent == DIM_UNKNOWN {
        let count = count_given(request, Argument::InputShape)?;
        if size != 1 {
            return request.unknown(count);
        }
        // As many pieces of 1 as there are outputs.
        return Ok(Pieces::Equal { count, size, extent: count });
    }
    let count = if size == 1 { extent } else { div_ceil(extent, size) };
    request.check_count(count)?;
    Ok(Pieces::Equal { count, size, extent })
}

/// Returns the number of pieces as the caller gives it, because `argument` is not known yet.
fn count_given(request: &Request<'_>, argument: Argument) -> Result<i64, Error> {
    let outputs = request.outputs.and_then(|outputs| i64::try_from(outputs).ok());
    let count = match outputs {
        Some(outputs) => outputs,
        None if request.num_outputs > 0 => request.num_outputs,
        None => return Err(Error::CountUnknown { argument }),
    };
    request.check_count(count)?;
    Ok(count)
}
