//! A list of lengths, one for each piece, which must add up to the extent of the axis.

use super::{too_many_outputs, Request, MAX_OUTPUTS};
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
        return Err(too_many_outputs(Argument::Lengths, count));
    }
    request.check_count(count)?;
    if !lengths.is_known() {
        return request.unknown(count);
    }
    let int64s = lengths.int64s();
    let total = match int64s {
        Some(int64s) => match plain_sum(int64s) {
            Some(sum) => Total { sum: Some(sum), has_rest: false },
            None => add_up(int64s.iter().copied().map(Some), lengths.dtype, takes_rest)?,
        },
        // If all entries are the same one, two are enough to know them, however many there claim to be.
        None if lengths.bit_stride == 0 && count > 2 => {
            let two = add_up((0..2).map(|index| lengths.value(index)), lengths.dtype, takes_rest)?;
            Total { sum: two.sum.and_then(|sum| (sum / 2).checked_mul(count)), ..two }
        }
        None => add_up((0..count).map(|at| lengths.value(at)), lengths.dtype, takes_rest)?,
    };
    let rest = total.rest_of(extent)?;
    Ok(match int64s {
        Some(int64s) if !total.has_rest => Pieces::Int64(int64s),
        _ => Pieces::Listed { lengths: *lengths, rest },
    })
}

/// What the entries of a list add up to.
struct Total {
    /// `None` if it is above `i64::MAX`.
    sum: Option<i64>,
    /// Whether one of the entries stands for the rest, which is not in the sum.
    has_rest: bool,
}

impl Total {
    /// Returns what the entries leave of an extent: nothing if none of them stands for the rest. Checks that they fit.
    fn rest_of(&self, extent: i64) -> Result<i64, Error> {
        let Some(sum) = self.sum else {
            return Err(Error::LengthsSumOverflow { expected: extent, actual: i64::MAX });
        };
        if extent == DIM_UNKNOWN {
            return Ok(DIM_UNKNOWN);
        }
        if self.has_rest && sum > extent {
            return Err(Error::LengthsExceed { expected: extent, actual: sum });
        }
        if !self.has_rest && sum != extent {
            return Err(Error::LengthsSum { expected: extent, actual: sum });
        }
        Ok(extent - sum)
    }
}

/// Returns the sum of the entries if none of them is below 0, and the sum not above `i64::MAX`.
fn plain_sum(int64s: &[i64]) -> Option<i64> {
    let (sum, signs) = int64s.iter().fold((0i64, 0), |(sum, signs), length| {
        let sum = sum.wrapping_add(*length);
        // A sum that is too large has been negative.
        (sum, signs | length | sum)
    });
    (signs >= 0).then_some(sum)
}

/// Adds up entries, one of which may stand for the rest if `takes_rest`. Each is `None` if it is no integer.
#[inline(always)] // so that lengths need not lie in memory
fn add_up(
    entries: impl Iterator<Item = Option<i64>>,
    dtype: DType,
    takes_rest: bool,
) -> Result<Total, Error> {
    let mut sum = 0i64;
    let mut signs = 0i64;
    let mut has_rest = false;
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
    let sum = if signs < 0 { None } else { Some(sum) };
    Ok(Total { sum, has_rest })
}
