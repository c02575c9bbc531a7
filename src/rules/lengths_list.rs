//! A list of lengths, one for each piece, which must add up to the extent of the axis.

use super::{Request, MAX_OUTPUTS};
use crate::error::Error;
use crate::lengths::Lengths;
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;
use crate::words::Argument;

/// Makes the pieces that a list gives, in which one entry may be -1, for what the others leave, if `takes_rest`. Checks
/// that it is a list, and fits the extent.
#[inline(always)] // it is large to return
pub(super) fn pieces<'a>(
    request: &Request<'_>,
    lengths: &Lengths<'a>,
    extent: i64,
    takes_rest: bool,
) -> Result<Pieces<'a>, Error> {
    let Some(count) = lengths.len() else {
        let operator = request.operator;
        return Err(Error::LengthsScalar { operator, expected: 1, actual: 0 });
    };
    if count > MAX_OUTPUTS {
        let (argument, expected) = (Argument::Lengths, MAX_OUTPUTS);
        let actual = usize::try_from(count).unwrap_or(usize::MAX);
        return Err(Error::TooManyOutputs { argument, expected, actual });
    }
    request.check_count(count)?;
    if !lengths.is_known() {
        return request.unknown(count);
    }
    let (sum, has_rest) = add_up(lengths, count, takes_rest)?;
    let rest = match sum {
        Some(_) if extent == DIM_UNKNOWN => DIM_UNKNOWN,
        Some(sum) if if has_rest { sum <= extent } else { sum == extent } => extent - sum,
        Some(actual) if has_rest => {
            return Err(Error::LengthsExceed { expected: extent, actual });
        }
        Some(actual) => return Err(Error::LengthsSum { expected: extent, actual }),
        None => {
            return Err(Error::LengthsSumOverflow { expected: extent, actual: i64::MAX });
        }
    };
    Ok(match lengths.words() {
        Some(words) if !has_rest => Pieces::Words(words),
        _ => Pieces::Listed { lengths: *lengths, rest },
    })
}

/// Returns the sum of the entries, or `None` if it is above `i64::MAX`, and whether one of them is the rest.
#[inline(always)] // as above
fn add_up(
    lengths: &Lengths<'_>,
    count: i64,
    takes_rest: bool,
) -> Result<(Option<i64>, bool), Error> {
    let (mut sum, mut signs, mut has_rest) = (0i64, 0i64, false);
    // If a list repeats one number, two entries are enough to know all of it, however long it claims to be.
    let looked_at = if lengths.is_repeated() { count.min(2) } else { count };
    for output in 0..looked_at {
        match lengths.get(output)? {
            length @ 0.. => {
                sum = sum.wrapping_add(length);
                // A sum that is too large has been negative.
                signs |= sum;
            }
            -1 if takes_rest && !has_rest => has_rest = true,
            -1 if takes_rest => {
                return Err(Error::SecondRest { output, expected: 1, actual: 2 });
            }
            actual => return Err(Error::LengthNegative { output, expected: 0, actual }),
        }
    }
    let others = match count - looked_at {
        0 => Some(0),
        others => lengths.get(0)?.checked_mul(others),
    };
    let sum = others.filter(|_| signs >= 0).and_then(|others| sum.checked_add(others));
    Ok((sum, has_rest))
}
