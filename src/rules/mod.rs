//! The operators' rules: parameters and an axis extent in, the lengths of the pieces out.
//!
//! One file an operator family; [`lengths_list`] is what those with a list of lengths share.

#![forbid(unsafe_code)]

mod lengths_list;
mod onnx_split;
mod openvino;
mod opset;
pub(crate) mod split_to_sequence;

use crate::dtype::DType;
use crate::error::{Error, Fault, Report};
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::shape::{usize_of, DIM_UNKNOWN};
use core::mem::MaybeUninit;
use lengths_list::MinusOne;

/// What the caller asks of an operator, apart from the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub operator: Operator,
    pub axis: i64,
    pub lengths: Option<Lengths<'a>>,
    /// ONNX `num_outputs`, OpenVINO `num_splits`; 0 = absent.
    pub num_outputs: i64,
    pub keepdims: bool,
    pub clamp_uneven: bool,
    /// Whether pieces may be of lengths that are not known yet (inference).
    pub may_be_unknown: bool,
    /// How many outputs the caller gave; `None` where it asks for that number.
    pub outputs: Option<usize>,
}

/// The most outputs that ONNX lets a node have. Also the most that a list of lengths or OpenVINO's
/// `num_splits` may ask for; pieces of a given length may be more.
pub(crate) const MAX_OUTPUTS: i64 = i32::MAX as i64;

/// The lengths of the pieces, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pieces<'a> {
    /// `size` each for as long as the extent lasts; then what is left, then 0.
    Even { count: i64, size: i64, extent: i64 },
    /// These.
    Words(&'a [i64]),
    /// As listed; entries of -1 (VariadicSplit) are `rest`, which may be unknown.
    Listed { lengths: Lengths<'a>, count: i64, rest: i64 },
    /// This many, of lengths not known yet.
    Unknown { count: i64 },
}

impl<'a> Pieces<'a> {
    /// The lengths, if they lie in memory as a slice has them.
    #[inline(always)]
    pub(crate) fn words(&self) -> Option<&'a [i64]> {
        match *self {
            Self::Words(words) => Some(words),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> i64 {
        match *self {
            Self::Words(words) => index_of(words.len()),
            Self::Even { count, .. } | Self::Listed { count, .. } | Self::Unknown { count } => {
                count
            }
        }
    }

    /// What is left of the extent before a piece of even ones.
    pub(crate) fn left(&self, index: usize) -> i64 {
        match *self {
            // Of an empty tail, `size` times its index may be more than there are numbers.
            Self::Even { size, extent, .. } => {
                extent.saturating_sub(size.saturating_mul(index_of(index))).max(0)
            }
            _ => 0,
        }
    }

    /// Length of piece `index`. The rules have checked every entry.
    #[inline(always)]
    pub(crate) fn length(&self, index: usize) -> i64 {
        match *self {
            Self::Even { size, .. } => size.min(self.left(index)),
            Self::Words(words) => words.get(index).copied().unwrap_or(0),
            Self::Listed { lengths, rest, .. } => match lengths.checked(index_of(index)) {
                length @ 0.. => length,
                _ => rest,
            },
            Self::Unknown { .. } => DIM_UNKNOWN,
        }
    }
}

/// The number of a piece: there are at most as many as `i64` has numbers.
#[allow(clippy::cast_possible_wrap)]
fn index_of(index: usize) -> i64 {
    index as i64
}

/// Works out the pieces that `request` makes of an input, which must all be known unless they need not be.
/// They are written where they stay, for they are large to hand back.
#[inline(always)]
pub(crate) fn find_pieces<'a, 'p>(
    request: &Request<'a>,
    dtype: DType,
    extent: i64,
    pieces: &'p mut MaybeUninit<Pieces<'a>>,
    report: &mut Report,
) -> Result<&'p mut Pieces<'a>, Fault> {
    let Some(lengths) = request.lengths else {
        return Ok(pieces.write(match request.operator {
            // The versions of ONNX Split come first.
            operator if operator <= Operator::Split18 => onnx_split::even(request, extent, report)?,
            Operator::SplitToSequence11 | Operator::SplitToSequence24 => {
                split_to_sequence::chunks(request.copy(), 1, extent, report)?
            }
            Operator::VariadicSplit1 => {
                return report.refuse(Error::LengthsAbsent { operator: request.operator });
            }
            _ => openvino::split(request.copy(), extent, report)?,
        }));
    };
    let minus_one = match request.operator {
        // As above.
        operator if operator <= Operator::Split18 => {
            onnx_split::expect_lengths(request, &lengths, dtype, report)?
        }
        Operator::SplitToSequence11 | Operator::SplitToSequence24 => {
            split_to_sequence::expect_lengths(request, &lengths, report)?;
            if lengths.len().is_none() {
                let chunks = split_to_sequence::chunks_of(request.copy(), lengths, extent, report)?;
                return Ok(pieces.write(chunks));
            }
            MinusOne::Refused
        }
        Operator::VariadicSplit1 => openvino::expect_lengths(request, &lengths, report)?,
        operator => return report.refuse(Error::LengthsRefused { operator }),
    };
    lengths_list::find_pieces(request, lengths, extent, minus_one, pieces, report)
}

impl Request<'_> {
    /// One of its own for a function off the way of others, without the lengths. A plain copy would be the
    /// original, which then lies in memory.
    #[inline(always)]
    pub(crate) fn copy(&self) -> Self {
        Self { lengths: None, ..*self }
    }

    /// That the outputs given, and a `num_outputs` where there is one, agree with `count`.
    /// Called before any loop over the pieces, so that absurd numbers are refused at once.
    #[inline(always)]
    fn expect_count(&self, count: i64, report: &mut Report) -> Result<(), Fault> {
        if self.num_outputs != 0 && self.num_outputs != count {
            let actual = self.num_outputs;
            return report.refuse(Error::NumOutputsParam { expected: count, actual });
        }
        match self.outputs {
            Some(actual) if actual as u64 != count.cast_unsigned() => {
                let operator = self.operator;
                report.refuse(Error::NumOutputsGiven { operator, expected: count, actual })
            }
            _ => Ok(()),
        }
    }

    /// So many pieces, of which the lengths are not known.
    #[inline(always)]
    fn unknown<'a>(&self, count: i64, report: &mut Report) -> Result<Pieces<'a>, Fault> {
        if self.may_be_unknown {
            return Ok(Pieces::Unknown { count });
        }
        report.refuse(Error::LengthsUnknown)
    }

    /// The same for a number of equal parts, which has a limit.
    #[inline(always)]
    fn expect_parts(&self, count: i64, report: &mut Report) -> Result<(), Fault> {
        if count > MAX_OUTPUTS {
            let argument = if self.num_outputs > 0 { "params.num_outputs" } else { "num_outputs" };
            let actual = match self.outputs {
                Some(given) if self.num_outputs == 0 => given,
                _ => usize_of(count),
            };
            return report.refuse(Error::TooManyOutputs {
                argument,
                expected: MAX_OUTPUTS,
                actual,
            });
        }
        self.expect_count(count, report)
    }
}
