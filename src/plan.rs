//! A checked split: which axis, which pieces, and where every piece lies in the input.

// A plan is large to hand back.
#![allow(clippy::inline_always)]

use crate::dtype::DType;
use crate::error::{number, Error, Which};
use crate::rules::split_to_sequence::drops_axis;
use crate::rules::{self, Pieces, Request};
use crate::shape::{self, usize_of, DIM_UNKNOWN, MAX_RANK};

/// A split of one input shape by one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub dtype: DType,
    pub shape: &'a [i64],
    pub axis: usize,
    /// Extent of the axis, which may be unknown.
    pub extent: i64,
    /// `false`: the pieces, all of length 1, have no split axis.
    pub keeps_axis: bool,
    /// Elements of the input; of the known extents only where some are unknown.
    pub elements: i64,
    /// Elements of one step on the axis: the product of the extents inward of it.
    pub inner: i64,
    /// Steps outside of the axis: the product of the extents outward of it.
    pub outer: i64,
    pieces: Pieces<'a>,
}

/// One piece: `len` elements of the axis from `offset` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub index: usize,
    pub offset: i64,
    pub len: i64,
}

impl<'a> Plan<'a> {
    /// Checks input and request. Where the shape may have unknown extents (inference), so may
    /// the pieces; otherwise everything about them is known.
    #[inline(always)]
    pub(crate) fn new(
        request: &'a Request<'a>,
        dtype: DType,
        shape: &'a [i64],
        unknown_allowed: bool,
    ) -> Result<Self, Error> {
        let operator = request.operator;
        if !operator.allows(dtype) {
            return Err(Error::DTypeNotAllowed {
                dtype,
                operator,
                remedy: operator.that_allows(dtype),
            });
        }
        check_extents(shape, unknown_allowed)?;
        let axis = resolve_axis(request.axis, shape.len())?;
        let known =
            |extents: &'a [i64]| extents.iter().copied().filter(|extent| *extent != DIM_UNKNOWN);
        let elements = shape::element_count(known(shape), dtype.bits(), Which::Input)?;
        let (outward, inward) = shape.split_at_checked(axis).unwrap_or_default();
        let (extent, inward) = inward.split_first().map_or((0, inward), |(d, rest)| (*d, rest));
        let pieces = rules::pieces(request, dtype, extent)?;
        if !unknown_allowed && matches!(pieces, Pieces::Unknown { .. }) {
            return Err(Error::LengthsUnknown);
        }
        Ok(Self {
            dtype,
            shape,
            axis,
            extent,
            keeps_axis: !drops_axis(request),
            elements,
            // Within what `element_count` has found to fit.
            inner: known(inward).product(),
            outer: known(outward).product(),
            pieces,
        })
    }

    /// How many outputs the operator gives.
    pub(crate) fn count(&self) -> i64 {
        self.pieces.count()
    }

    /// The pieces in order. Their offsets mean nothing after a piece of unknown length.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX);
        let mut next = 0i64;
        (0..count).map(move |index| {
            let piece = Piece { index, offset: next, len: self.pieces.length(index, next) };
            next = next.wrapping_add(piece.len);
            piece
        })
    }

    /// Elements of a piece, where all extents are known.
    pub(crate) fn piece_elements(&self, piece: Piece) -> i64 {
        self.outer * self.inner * piece.len
    }

    /// Bytes of a packed output, where all extents are known.
    pub(crate) fn piece_bytes(&self, piece: Piece) -> usize {
        usize_of(shape::packed_bytes(self.piece_elements(piece), self.dtype.bits()))
    }

    /// Rank of every output.
    pub(crate) fn output_rank(&self) -> usize {
        self.shape.len() - usize::from(!self.keeps_axis)
    }

    /// Extents of an output, outermost first.
    pub(crate) fn output_shape(
        &self,
        piece: Piece,
    ) -> impl DoubleEndedIterator<Item = i64> + Clone + 'a {
        let Self { axis, shape, .. } = *self;
        self.input_axes().map(move |d| match shape.get(d) {
            Some(extent) if d != axis => *extent,
            _ => piece.len,
        })
    }

    /// An input's strides as an output has them.
    pub(crate) fn output_strides(
        &self,
        strides: &'a [i64],
    ) -> impl DoubleEndedIterator<Item = i64> + Clone + 'a {
        self.input_axes().map(move |d| strides.get(d).copied().unwrap_or(0))
    }

    /// The axes that an output has, as the input numbers them.
    fn input_axes(&self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        let dropped = if self.keeps_axis { usize::MAX } else { self.axis };
        (0..self.output_rank()).map(move |d| d + usize::from(d >= dropped))
    }
}

fn check_extents(shape: &[i64], unknown_allowed: bool) -> Result<(), Error> {
    if shape.is_empty() {
        return Err(Error::RankZero);
    }
    if shape.len() > MAX_RANK {
        return Err(Error::Rank { which: Which::Input, expected: 64, actual: number(shape.len()) });
    }
    let lowest = if unknown_allowed { DIM_UNKNOWN } else { 0 };
    match shape.iter().zip(0..).find(|(extent, _)| **extent < lowest) {
        None => Ok(()),
        Some((&DIM_UNKNOWN, axis)) => Err(Error::ExtentUnknown { axis }),
        Some((&actual, axis)) => Err(Error::ExtentNegative { axis, expected: 0, actual }),
    }
}

fn resolve_axis(axis: i64, rank: usize) -> Result<usize, Error> {
    let resolved = match usize::try_from(axis) {
        Ok(axis) => Some(axis),
        Err(_) => usize::try_from(axis.unsigned_abs()).ok().and_then(|back| rank.checked_sub(back)),
    };
    resolved.filter(|resolved| *resolved < rank).ok_or(Error::Axis { axis, rank })
}
