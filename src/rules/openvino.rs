//! OpenVINO VariadicSplit-1 and Split-1.

use super::lengths_list::{self, MinusOne};
use super::{Pieces, Request, MAX_OUTPUTS};
use crate::dtype::DType;
use crate::error::Error;
use crate::shape::DIM_UNKNOWN;

/// VariadicSplit: a list of any integer type, in which one entry of -1 takes the rest.
pub(super) fn variadic_split<'a>(
    request: &'a Request<'a>,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    let Some(lengths) = &request.lengths else {
        return Err(Error::LengthsAbsent { operator: request.operator });
    };
    lengths_list::expect_dtype(request, lengths, DType::is_integer, "an integer type")?;
    lengths_list::pieces(request, lengths, extent, MinusOne::Rest)
}

/// Split: `num_splits` equal parts.
pub(super) fn split<'a>(request: &Request<'_>, extent: i64) -> Result<Pieces<'a>, Error> {
    if request.lengths.is_some() {
        return Err(Error::LengthsRefused { operator: request.operator });
    }
    let count = request.num_outputs;
    if count < 1 {
        return Err(Error::NumOutputsNegative { expected: 1, actual: count });
    }
    if count > MAX_OUTPUTS {
        return Err(Error::TooManyOutputs { expected: MAX_OUTPUTS, actual: count });
    }
    if extent == DIM_UNKNOWN {
        return Ok(Pieces::Unknown { count });
    }
    if extent % count != 0 {
        return Err(Error::Uneven { operator: request.operator, expected: count, actual: extent });
    }
    Ok(Pieces::Even { count, size: extent / count, extent })
}
