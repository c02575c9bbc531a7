//! A checked split: which axis, which pieces, and where every piece lies in the input.

#![forbid(unsafe_code)]
// A plan is large to hand back.
#![allow(clippy::inline_always)]

use crate::dtype::DType;
use crate::error::{number, Error, Fault, Report, Which};
use crate::operator::Operator;
use crate::rules::split_to_sequence::drops_axis;
use crate::rules::{self, Pieces, Request};
use crate::shape::{self, usize_of, DIM_UNKNOWN, MAX_RANK};

/// The input's shape as the split axis parts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry<'a> {
    pub dtype: DType,
    pub shape: &'a [i64],
    pub axis: usize,
    /// `false`: the pieces, all of length 1, have no split axis.
    pub keeps_axis: bool,
    /// Extent of the axis, which may be unknown.
    pub extent: i64,
    /// Elements of the input; of the known extents only where some are unknown.
    pub elements: i64,
    /// Elements of one step on the axis: the product of the extents inward of it.
    pub inner: i64,
    /// Steps outside of the axis: the product of the extents outward of it.
    pub outer: i64,
}

/// One piece: `len` steps of the axis from `offset` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub index: usize,
    pub offset: i64,
    pub len: i64,
}

/// A split of one input shape by one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub geometry: Geometry<'a>,
    pub pieces: Pieces<'a>,
}

impl<'a> Plan<'a> {
    /// Checks input and request. Where pieces may be unknown, so may extents of the shape.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code))] // for Rust
    #[inline(always)]
    pub(crate) fn new(
        request: &Request<'a>,
        dtype: DType,
        shape: &'a [i64],
        report: &mut Report,
    ) -> Result<Self, Fault> {
        let Request { operator, axis, keepdims, may_be_unknown, .. } = *request;
        let keeps_axis = !drops_axis(operator, keepdims, request.lengths.is_some());
        let geometry =
            Geometry::new(operator, axis, keeps_axis, dtype, shape, may_be_unknown, report)?;
        let mut pieces = Pieces::NONE;
        rules::find_pieces(request, dtype, geometry.extent, &mut pieces, report)?;
        Ok(Self { geometry, pieces })
    }

    /// How many outputs the operator gives.
    pub(crate) fn count(&self) -> i64 {
        self.pieces.count()
    }

    /// The pieces in order. Their offsets mean nothing after a piece of unknown length.
    #[inline]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + Clone + 'a {
        let (pieces, count) = (self.pieces, usize_of(self.count()));
        let mut offset = 0i64;
        (0..count).map(move |index| {
            let piece = Piece { index, offset, len: pieces.length(index) };
            offset = offset.wrapping_add(piece.len);
            piece
        })
    }
}

impl<'a> Geometry<'a> {
    /// Checks type and shape of an input, and the axis.
    #[inline(always)]
    pub(crate) fn new(
        operator: Operator,
        axis: i64,
        keeps_axis: bool,
        dtype: DType,
        shape: &'a [i64],
        unknown_allowed: bool,
        report: &mut Report,
    ) -> Result<Self, Fault> {
        if !operator.allows(dtype) {
            let remedy = operator.that_allows(dtype);
            return report.refuse(Error::DTypeNotAllowed { dtype, operator, remedy });
        }
        if shape.is_empty() {
            return report.refuse(Error::RankZero);
        }
        if shape.len() > MAX_RANK {
            let (which, actual) = (Which::Input, number(shape.len()));
            return report.refuse(Error::Rank { which, expected: 64, actual });
        }
        let rank = shape.len();
        let back = if axis < 0 { number(rank) } else { 0 };
        let place = usize::try_from(axis.wrapping_add(back)).unwrap_or(usize::MAX);
        // Extents above zero alone must not make more bits than can be numbered, even where another
        // is 0: strides could not be numbered either. Gives their product, and that of all.
        let (mut fits, mut has_negative) = (true, false);
        let mut product = |extents: &[i64]| {
            let (mut above_zero, mut has_zero) = (1i64, false);
            for &extent in extents {
                if extent > 0 {
                    let (all, is_too_large) = above_zero.overflowing_mul(extent);
                    above_zero = all;
                    fits &= !is_too_large;
                } else {
                    has_zero |= extent == 0;
                    has_negative |= extent < 0;
                }
            }
            (above_zero, if has_zero { 0 } else { above_zero })
        };
        let Some((outer, [extent, inner @ ..])) = shape.split_at_checked(place) else {
            check_negative(shape, unknown_allowed, report)?;
            return report.refuse(Error::Axis { axis, rank });
        };
        let (inward, inner) = product(inner);
        let (on_axis, steps) = product(core::slice::from_ref(extent));
        let (outward, outer) = product(outer);
        if has_negative {
            check_negative(shape, unknown_allowed, report)?;
        }
        let bits = i64::from(dtype.bits());
        let all = inward.checked_mul(on_axis).and_then(|count| count.checked_mul(outward));
        if !fits || all.and_then(|count| count.checked_mul(bits)).is_none() {
            return report.refuse(Error::TooManyElements { which: Which::Input });
        }
        Ok(Self {
            dtype,
            shape,
            axis: place,
            keeps_axis,
            extent: *extent,
            elements: inner.wrapping_mul(outer).wrapping_mul(steps),
            inner,
            outer,
        })
    }

    /// Elements of a piece, where all extents are known.
    #[inline]
    pub(crate) fn piece_elements(&self, len: i64) -> i64 {
        self.outer * self.inner * len
    }

    /// Bits of one step of the axis, where all extents are known.
    #[inline]
    pub(crate) fn step_bits(&self) -> i64 {
        self.piece_elements(1).wrapping_mul(self.dtype.bits().into())
    }

    /// Bytes of a packed output, where all extents are known.
    #[inline]
    pub(crate) fn piece_bytes(&self, len: i64) -> usize {
        usize_of(shape::packed_bytes(self.piece_elements(len), self.dtype.bits()))
    }

    /// Those of an input's axes that lie outward of the split axis, and those inward of it.
    #[inline(always)]
    pub(crate) fn around_axis<'b>(&self, axes: &'b [i64]) -> (&'b [i64], &'b [i64]) {
        let (outer, rest) = axes.split_at_checked(self.axis).unwrap_or_default();
        (outer, rest.get(1..).unwrap_or_default())
    }

    /// Rank of every output.
    #[inline]
    pub(crate) fn output_rank(&self) -> usize {
        self.shape.len() - usize::from(!self.keeps_axis)
    }

    /// Extents of an output of `len` steps, outermost first.
    #[inline]
    pub(crate) fn output_shape(
        &self,
        len: i64,
    ) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + 'a {
        let Self { axis, shape, .. } = *self;
        self.input_axes().map(move |d| match shape.get(d) {
            Some(extent) if d != axis => *extent,
            _ => len,
        })
    }

    /// An input's strides as an output has them.
    pub(crate) fn output_strides<'b>(
        &self,
        strides: &'b [i64],
    ) -> impl DoubleEndedIterator<Item = i64> + Clone + use<'b> {
        self.input_axes().map(move |d| strides.get(d).copied().unwrap_or(0))
    }

    /// The axes that an output has, as the input numbers them.
    #[inline]
    fn input_axes(
        &self,
    ) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone + use<> {
        let dropped = if self.keeps_axis { usize::MAX } else { self.axis };
        (0..self.output_rank()).map(move |d| d + usize::from(d >= dropped))
    }
}

/// That extents below 0 are such as are not known yet, where that may be.
#[cold]
#[inline(never)]
fn check_negative(shape: &[i64], unknown_allowed: bool, report: &mut Report) -> Result<(), Fault> {
    let refused = |extent: i64| extent < 0 && !(unknown_allowed && extent == DIM_UNKNOWN);
    match shape.iter().enumerate().rev().find(|(_, extent)| refused(**extent)) {
        None => Ok(()),
        Some((axis, &DIM_UNKNOWN)) => report.refuse(Error::ExtentUnknown { axis }),
        Some((axis, &actual)) => report.refuse(Error::ExtentNegative { axis, expected: 0, actual }),
    }
}
