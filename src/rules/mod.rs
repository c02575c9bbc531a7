//! The rules of the operators, which turn parameters and the extent of the axis into pieces.

// As in `operator.rs`.
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]

mod equal_parts;
mod lengths_list;
pub(crate) mod split_to_sequence;

use crate::dtype::DType;
use crate::error::Error;
use crate::lengths::Lengths;
use crate::operator::EqualParts::{AsManyAsOutputs, Exact, LastSmaller};
use crate::operator::{Operator, Rules};
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;
use crate::words::Argument;

/// What the caller asks of an operator, apart from the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub operator: Operator,
    pub axis: i64,
    pub lengths: Option<Lengths<'a>>,
    /// ONNX `num_outputs`, OpenVINO `num_splits`; 0 = absent.
    pub num_outputs: i64,
    /// Whether pieces of SplitToSequence keep the axis: always if there are lengths.
    pub keepdims: bool,
    pub clamp_uneven: bool,
    /// Whether lengths of pieces may be unknown (in inference).
    pub may_be_unknown: bool,
    /// How many outputs the caller gave; `None` if it asks for that number.
    pub outputs: Option<usize>,
}

/// The most outputs that a node may have in ONNX. It is also the most that a list of lengths or OpenVINO's `num_splits`
/// may ask for, but there may be more pieces of a given length.
pub(crate) const MAX_OUTPUTS: i64 = i32::MAX as i64;

/// Returns the error of a number of outputs above [`MAX_OUTPUTS`].
#[cold]
pub(crate) fn too_many_outputs(argument: Argument, count: i64) -> Error {
    let actual = usize::try_from(count).unwrap_or(usize::MAX);
    Error::TooManyOutputs { argument, expected: MAX_OUTPUTS, actual }
}

impl<'a> Request<'a> {
    /// Makes the pieces of an axis. Checks the lengths, or the number of parts.
    pub(crate) fn pieces(&self, dtype: DType, extent: i64) -> Result<Pieces<'a>, Error> {
        let (operator, rules) = (self.operator, self.operator.rules());
        let Some(lengths) = &self.lengths else {
            return match rules {
                Rules::Split(equal) => equal_parts::pieces(self, equal, extent),
                Rules::Sequence => split_to_sequence::chunks(self, None, extent),
                Rules::Variadic => Err(Error::LengthsAbsent { operator }),
            };
        };
        let takes_rest = match rules {
            Rules::Split(Exact) => return Err(Error::LengthsRefused { operator }),
            Rules::Split(LastSmaller) if self.num_outputs != 0 => {
                let given = self.num_outputs;
                return Err(Error::LengthsAndNumOutputs { operator, given });
            }
            Rules::Split(AsManyAsOutputs | LastSmaller) | Rules::Sequence => false,
            Rules::Variadic => true,
        };
        let (is_taken, expected) = operator.takes_lengths(lengths.dtype, dtype);
        if !is_taken && !lengths.are_rust_integers {
            return Err(Error::LengthsDType { operator, actual: lengths.dtype, expected });
        }
        match (rules, lengths.len()) {
            (Rules::Split(_), Some(0)) => Err(Error::NoLengths { expected: 1, actual: 0 }),
            (Rules::Sequence, None) => split_to_sequence::chunks(self, Some(lengths), extent),
            (Rules::Split(_) | Rules::Sequence | Rules::Variadic, _) => {
                lengths_list::pieces(self, lengths, extent, takes_rest)
            }
        }
    }

    /// Checks that the number of outputs that were given, and `num_outputs` if there is one, agree with `count`. This
    /// comes before any loop over the pieces, so that absurd numbers are refused at once.
    fn check_count(&self, count: i64) -> Result<(), Error> {
        let operator = self.operator;
        if self.num_outputs != 0 && self.num_outputs != count {
            return Err(Error::NumOutputsParam { expected: count, actual: self.num_outputs });
        }
        match self.outputs {
            Some(actual) if actual as u64 != count.cast_unsigned() => {
                Err(Error::NumOutputsGiven { operator, expected: count, actual })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Makes pieces of unknown lengths, if these are allowed.
    fn unknown<'b>(&self, count: i64) -> Result<Pieces<'b>, Error> {
        if !self.may_be_unknown {
            return Err(Error::LengthsUnknown);
        }
        Ok(Pieces::Equal { count, size: DIM_UNKNOWN, extent: 0 })
    }
}

/// Returns the quotient, rounded up. `extent` must be at least 0, and `parts` at least 1.
fn div_ceil(extent: i64, parts: i64) -> i64 {
    let whole = extent.checked_div(parts).unwrap_or(0);
    whole + i64::from(whole * parts != extent)
}
