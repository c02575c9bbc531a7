//! A list of lengths, one for each piece, which must add up to the extent of the axis.

use super::{Request, MAX_OUTPUTS};
use crate::dtype::DType;
use crate::error::Error;
use crate::lengths::Lengths;
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;
use crate::words::Argument;

/// Makes the pieces that a list gives, in which one entry may be -1, for what the others leave, if `takes_rest`. Checks
/// that it is a list, and fits the extent.
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
    let (words, dtype) = (lengths.words(), lengths.dtype);
    let (sum, has_rest) = match words {
        Some(words) => match plain_sum(words) {
            Some(sum) => (Some(sum), false),
            None => add_up(words.iter().copied().map(Some), dtype, takes_rest)?,
        },
        None if lengths.bit_stride == 0 && count > 2 => {
            // Two entries are enough to know all of them, however many there claim to be.
            let (sum, has_rest) = add_up((0..2).map(|at| lengths.value(at)), dtype, takes_rest)?;
            (sum.and_then(|sum| (sum / 2).checked_mul(count)), has_rest)
        }
        None => add_up((0..count).map(|at| lengths.value(at)), dtype, takes_rest)?,
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
    Ok(match words {
        Some(words) if !has_rest => Pieces::Words(words),
        _ => Pieces::Listed { lengths: *lengths, rest },
    })
}

/// Returns the sum of the entries if none of them is below 0, and the sum not above `i64::MAX`.
fn plain_sum(words: &[i64]) -> Option<i64> {
    let (sum, signs) = words.iter().fold((0i64, 0), |(sum, signs), length| {
        let sum = sum.wrapping_add(*length);
        // A sum that is too large has been negative.
        (sum, signs | length | sum)
    });
    (signs >= 0).then_some(sum)
}

/// Returns the sum of the entries, or `None` if it is above `i64::MAX`, and whether one of them is the rest.
#[inline(always)] // so that lengths need not lie in memory
fn add_up(
    entries: impl Iterator<Item = Option<i64>>,
    dtype: DType,
    takes_rest: bool,
) -> Result<(Option<i64>, bool), Error> {
    let (mut sum, mut signs, mut has_rest) = (0i64, 0i64, false);
    for (output, entry) in (0..).zip(entries) {
        match entry.ok_or(Error::LengthNotInteger { output, dtype })? {
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
    Ok((Some(sum).filter(|_| signs >= 0), has_rest))
}
