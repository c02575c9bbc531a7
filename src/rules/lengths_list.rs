//! A list of lengths, one a piece, that has to add up to the extent of the axis.

use super::{Pieces, Request, MAX_OUTPUTS};
use crate::dtype::DType;
use crate::error::Error;
use crate::lengths::Lengths;
use crate::shape::DIM_UNKNOWN;

/// What an entry of -1 means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MinusOne {
    /// An error, as every negative entry.
    Refused,
    /// VariadicSplit: what the others leave; once at most.
    Rest,
}

/// That the lengths' element type is one that the operator takes.
pub(super) fn expect_dtype(
    request: &Request<'_>,
    lengths: &Lengths<'_>,
    taken: impl Fn(DType) -> bool,
    expected: &'static str,
) -> Result<(), Error> {
    if taken(lengths.dtype()) {
        return Ok(());
    }
    Err(Error::LengthsDType { operator: request.operator, actual: lengths.dtype(), expected })
}

/// The pieces that a list gives, or an error for a scalar and for a list that does not fit.
pub(super) fn pieces<'a>(
    request: &Request<'_>,
    lengths: &'a Lengths<'a>,
    extent: i64,
    minus_one: MinusOne,
) -> Result<Pieces<'a>, Error> {
    let Some(count) = lengths.len() else {
        return Err(Error::LengthsScalar { operator: request.operator, expected: 1, actual: 0 });
    };
    if count > MAX_OUTPUTS {
        return Err(Error::TooManyOutputs { expected: MAX_OUTPUTS, actual: count });
    }
    request.expect_count(count)?;
    if !lengths.is_known() {
        return Ok(Pieces::Unknown { count });
    }
    let (sum, has_rest) = add_up(lengths, count, minus_one)?;
    let sum_fits = sum.is_some_and(|sum| {
        extent == DIM_UNKNOWN || if has_rest { sum <= extent } else { sum == extent }
    });
    match sum {
        Some(sum) if sum_fits => {
            let rest = if extent == DIM_UNKNOWN { DIM_UNKNOWN } else { extent - sum };
            Ok(Pieces::Listed { lengths, count, rest })
        }
        Some(actual) if has_rest => Err(Error::LengthsExceed { expected: extent, actual }),
        Some(actual) => Err(Error::LengthsSum { expected: extent, actual }),
        None => Err(Error::LengthsSumOverflow { expected: extent, actual: i64::MAX }),
    }
}

/// The sum of the entries, `None` past `i64::MAX`, and whether one of them is the rest.
fn add_up(
    lengths: &Lengths<'_>,
    count: i64,
    minus_one: MinusOne,
) -> Result<(Option<i64>, bool), Error> {
    let mut sum = Some(0i64);
    let mut has_rest = false;
    // Two entries tell all about a list that repeats one number, however long it claims to be.
    let looked_at = if lengths.is_repeated() { count.min(2) } else { count };
    for index in 0..looked_at {
        match lengths.get(index)? {
            length @ 0.. => sum = sum.and_then(|sum| sum.checked_add(length)),
            -1 if minus_one == MinusOne::Rest && !has_rest => has_rest = true,
            -1 if minus_one == MinusOne::Rest => {
                return Err(Error::SecondRest { output: index, expected: 1, actual: 2 });
            }
            actual => return Err(Error::LengthNegative { output: index, expected: 0, actual }),
        }
    }
    if looked_at < count {
        let others = lengths.get(0)?.checked_mul(count - looked_at);
        sum = sum.zip(others).and_then(|(sum, others)| sum.checked_add(others));
    }
    Ok((sum, has_rest))
}
