//! A list of lengths, one a piece, that has to add up to the extent of the axis.

use super::{Pieces, Request, MAX_OUTPUTS};
use crate::dtype::DType;
use crate::error::{Error, Fault, Report};
use crate::lengths::Lengths;
use crate::shape::{usize_of, DIM_UNKNOWN};
use core::mem::MaybeUninit;

/// What an entry of -1 means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MinusOne {
    /// An error, as every negative entry.
    Refused,
    /// VariadicSplit: what the others leave; once at most.
    Rest,
}

/// That the lengths' element type is one that the operator takes.
#[inline(always)]
pub(super) fn expect_dtype(
    request: &Request<'_>,
    lengths: &Lengths<'_>,
    taken: impl Fn(DType) -> bool,
    expected: &'static str,
    report: &mut Report,
) -> Result<(), Fault> {
    if taken(lengths.dtype()) || lengths.are_rust_integers() {
        return Ok(());
    }
    let (operator, actual) = (request.operator, lengths.dtype());
    report.refuse(Error::LengthsDType { operator, actual, expected })
}

/// Works out the pieces that a list gives, or refuses a scalar and a list that does not fit.
#[inline(always)]
pub(super) fn find_pieces<'a, 'p>(
    request: &Request<'_>,
    lengths: Lengths<'a>,
    extent: i64,
    minus_one: MinusOne,
    pieces: &'p mut MaybeUninit<Pieces<'a>>,
    report: &mut Report,
) -> Result<&'p mut Pieces<'a>, Fault> {
    let Some(count) = lengths.len() else {
        let operator = request.operator;
        return report.refuse(Error::LengthsScalar { operator, expected: 1, actual: 0 });
    };
    if count > MAX_OUTPUTS {
        let (argument, actual) = ("params.split", usize_of(count));
        return report.refuse(Error::TooManyOutputs { argument, expected: MAX_OUTPUTS, actual });
    }
    request.expect_count(count, report)?;
    let sum = if let Some(words) = lengths.words() {
        // What most lists are like.
        if add_up_to(words, extent) {
            return Ok(pieces.write(Pieces::Words(words)));
        }
        plain_sum(words.iter().copied(), minus_one)
    } else if let Some(ints) = lengths.ints(0) {
        plain_sum(ints.iter().copied().map(i64::from), minus_one)
    } else if lengths.is_known() {
        None
    } else {
        return Ok(pieces.write(request.unknown(count, report)?));
    };
    let rest = match sum {
        // An extent that is not known is below any sum.
        Some((sum, has_rest)) if sum == extent || has_rest && sum <= extent => extent - sum,
        _ => rest(lengths, count, extent, minus_one, report)?,
    };
    Ok(pieces.write(Pieces::Listed { lengths, count, rest }))
}

/// What a list that fits the extent leaves of it.
#[inline(never)]
fn rest(
    lengths: Lengths<'_>,
    count: i64,
    extent: i64,
    minus_one: MinusOne,
    report: &mut Report,
) -> Result<i64, Fault> {
    let (sum, has_rest) = add_up(&lengths, count, minus_one, report)?;
    match sum {
        Some(_) if extent == DIM_UNKNOWN => Ok(DIM_UNKNOWN),
        Some(sum) if if has_rest { sum <= extent } else { sum == extent } => Ok(extent - sum),
        Some(actual) if has_rest => {
            report.refuse(Error::LengthsExceed { expected: extent, actual })
        }
        Some(actual) => report.refuse(Error::LengthsSum { expected: extent, actual }),
        None => report.refuse(Error::LengthsSumOverflow { expected: extent, actual: i64::MAX }),
    }
}

/// Whether lengths add up to the extent, none below 0 or so large that [`MAX_OUTPUTS`] of them could be too much.
#[inline(always)]
fn add_up_to(lengths: &[i64], extent: i64) -> bool {
    let (mut sum, mut bits) = (0i64, 0i64);
    for length in lengths {
        sum = sum.wrapping_add(*length);
        bits |= *length;
    }
    bits >> 32 == 0 && sum == extent
}

/// The sum of lengths that nothing can be said against, and whether one of them is the rest; else nothing.
#[inline(always)]
fn plain_sum(lengths: impl Iterator<Item = i64>, minus_one: MinusOne) -> Option<(i64, bool)> {
    let (mut sum, mut signs, mut may_be_rest) = (0i64, 0i64, minus_one == MinusOne::Rest);
    for length in lengths {
        if length < 0 {
            if length != -1 || !may_be_rest {
                return None;
            }
            may_be_rest = false;
            continue;
        }
        sum = sum.wrapping_add(length);
        // A sum that is too large has been negative.
        signs |= sum;
    }
    (signs >= 0).then_some((sum, minus_one == MinusOne::Rest && !may_be_rest))
}

/// The sum of the entries, `None` past `i64::MAX`, and whether one of them is the rest.
#[inline(always)]
fn add_up(
    lengths: &Lengths<'_>,
    count: i64,
    minus_one: MinusOne,
    report: &mut Report,
) -> Result<(Option<i64>, bool), Fault> {
    let (mut sum, mut signs, mut has_rest) = (0i64, 0i64, false);
    // Two entries tell all about a list that repeats one number, however long it claims to be.
    let looked_at = if lengths.is_repeated() { count.min(2) } else { count };
    for index in 0..looked_at {
        match lengths.get(index, report)? {
            length @ 0.. => {
                sum = sum.wrapping_add(length);
                signs |= sum;
            }
            -1 if minus_one == MinusOne::Rest && !has_rest => has_rest = true,
            -1 if minus_one == MinusOne::Rest => {
                return report.refuse(Error::SecondRest { output: index, expected: 1, actual: 2 });
            }
            actual => {
                return report.refuse(Error::LengthNegative { output: index, expected: 0, actual });
            }
        }
    }
    // A sum that is too large has been negative.
    let sum = Some(sum).filter(|_| signs >= 0);
    if looked_at == count {
        return Ok((sum, has_rest));
    }
    let others = lengths.get(0, report)?.checked_mul(count - looked_at);
    Ok((sum.zip(others).and_then(|(sum, others)| sum.checked_add(others)), has_rest))
}
