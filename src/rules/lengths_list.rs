//! A list of lengths, one for each piece, which must add up to the extent of the axis.

use super::{Request, MAX_OUTPUTS};
use crate::error::Error;
use crate::lengths::Lengths;
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;
use crate::words::Argument;

/// What an entry of -1 means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MinusOne {
    /// An error, as every negative entry is.
    Refused,
    /// VariadicSplit: what the others leave; at most one entry may be -1.
    Rest,
}

/// Makes the pieces that a list gives. Checks that it is a list, and fits the extent.
pub(super) fn pieces<'a>(
    request: &Request<'_>,
    lengths: &Lengths<'a>,
    extent: i64,
    minus_one: MinusOne,
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
    let words = lengths.words().unwrap_or_default();
    let (sum, has_rest) = match sum_of(words) {
        Some(sum) => (Some(sum), false),
        None => add_up(lengths, count, minus_one)?,
    };
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
    if !words.is_empty() && !has_rest {
        return Ok(Pieces::Words(words));
    }
    Ok(Pieces::Listed { lengths: *lengths, count, rest: has_rest.then_some(rest) })
}

/// Returns the sum of some lengths if it is above 0 and not too large, and no length is negative. Everything else needs
/// a closer look.
fn sum_of(lengths: &[i64]) -> Option<i64> {
    let (mut sum, mut signs) = (0i64, 0i64);
    for length in lengths {
        sum = sum.wrapping_add(*length);
        // A sum that is too large has been negative.
        signs |= sum | length;
    }
    (signs >= 0 && sum > 0).then_some(sum)
}

/// Returns the sum of the entries, or `None` if it is above `i64::MAX`, and whether one of them is the rest.
fn add_up(
    lengths: &Lengths<'_>,
    count: i64,
    minus_one: MinusOne,
) -> Result<(Option<i64>, bool), Error> {
    let (mut sum, mut signs, mut has_rest) = (0i64, 0i64, false);
    // If a list repeats one number, two entries are enough to know all of it, however long it claims to be.
    let looked_at = if lengths.is_repeated() { count.min(2) } else { count };
    for output in 0..looked_at {
        match lengths.get(output)? {
            length @ 0.. => {
                sum = sum.wrapping_add(length);
                signs |= sum;
            }
            -1 if minus_one == MinusOne::Rest && !has_rest => has_rest = true,
            -1 if minus_one == MinusOne::Rest => {
                return Err(Error::SecondRest { output, expected: 1, actual: 2 });
            }
            actual => return Err(Error::LengthNegative { output, expected: 0, actual }),
        }
    }
    let sum = Some(sum).filter(|_| signs >= 0);
    if looked_at == count {
        return Ok((sum, has_rest));
    }
    let others = lengths.get(0)?.checked_mul(count - looked_at);
    Ok((sum.zip(others).and_then(|(sum, others)| sum.checked_add(others)), has_rest))
}
