//! The operators' rules: parameters and an axis extent in, the lengths of the pieces out.
//!
//! One file an operator family; [`lengths_list`] is what those with a list of lengths share.

mod lengths_list;
mod onnx_split;
mod openvino;
pub(crate) mod split_to_sequence;

use crate::dtype::DType;
use crate::error::{number, Error};
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::shape::DIM_UNKNOWN;

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
    /// As listed; entries of -1 (VariadicSplit) are `rest`, which may be unknown.
    Listed { lengths: &'a Lengths<'a>, count: i64, rest: i64 },
    /// This many, of lengths not known yet.
    Unknown { count: i64 },
}

impl Pieces<'_> {
    pub(crate) fn count(&self) -> i64 {
        match *self {
            Self::Even { count, .. } | Self::Listed { count, .. } | Self::Unknown { count } => {
                count
            }
        }
    }

    /// Length of piece `index`, which starts at `offset`. The rules have checked every entry.
    pub(crate) fn length(&self, index: usize, offset: i64) -> i64 {
        match *self {
            Self::Even { size, extent, .. } => size.min(extent - offset),
            Self::Listed { lengths, rest, .. } => match lengths.value(number(index)) {
                Some(length) if length >= 0 => length,
                _ => rest,
            },
            Self::Unknown { .. } => DIM_UNKNOWN,
        }
    }
}

/// The pieces that `request` makes of a tensor of `dtype` whose axis has `extent`, which may be
/// unknown.
#[inline(always)]
#[allow(clippy::inline_always)] // large to hand back
pub(crate) fn pieces<'a>(
    request: &'a Request<'a>,
    dtype: DType,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    let pieces = match request.operator {
        Operator::Split1
        | Operator::Split2
        | Operator::Split11
        | Operator::Split13
        | Operator::Split18 => onnx_split::pieces(request, dtype, extent),
        Operator::SplitToSequence11 | Operator::SplitToSequence24 => {
            split_to_sequence::pieces(request, extent)
        }
        Operator::VariadicSplit1 => openvino::variadic_split(request, extent),
        Operator::OpenVinoSplit1 => openvino::split(request, extent),
    }?;
    request.expect_count(pieces.count())?;
    Ok(pieces)
}

impl Request<'_> {
    /// That the outputs given, and a `num_outputs` where there is one, agree with `count`.
    /// Called before any loop over the pieces, so that absurd numbers are refused at once.
    fn expect_count(&self, count: i64) -> Result<(), Error> {
        if self.num_outputs != 0 && self.num_outputs != count {
            return Err(Error::NumOutputsParam { expected: count, actual: self.num_outputs });
        }
        match self.outputs {
            Some(outputs) if i64::try_from(outputs) != Ok(count) => Err(Error::NumOutputsGiven {
                operator: self.operator,
                expected: count,
                actual: number(outputs),
            }),
            _ => Ok(()),
        }
    }
}
