//! A checked split: which axis, which pieces, and where every piece lies in the input.

#![forbid(unsafe_code)]

use crate::blocks;
use crate::dtype::DType;
use crate::error::{number, Error, Fault, Report, Which};
#[cfg(all(feature = "alloc", not(feature = "capi")))]
use crate::rules;
use crate::rules::split_to_sequence::drops_axis;
use crate::rules::{Pieces, Request};
use crate::shape::{self, usize_of, DIM_UNKNOWN, MAX_RANK};
#[cfg(all(feature = "alloc", not(feature = "capi")))]
use core::mem::MaybeUninit;

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
    /// Steps outside of the axis: the product of the extents outward of it; unknown if an extent is, but for
    /// that of the axis.
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
pub(crate) struct Splitting<'a> {
    pub geometry: Geometry<'a>,
    pub pieces: Pieces<'a>,
}

impl<'a> Splitting<'a> {
    /// Checks input and request. Where pieces may be unknown, so may extents of the shape.
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn new(
        request: &Request<'a>,
        dtype: DType,
        shape: &'a [i64],
        report: &mut Report,
    ) -> Result<Self, Fault> {
        let mut pieces = MaybeUninit::uninit();
        let has_lengths = request.lengths.is_some();
        let geometry = Geometry::new(request, has_lengths, dtype, shape, report)?;
        let pieces = rules::find_pieces(request, dtype, geometry.extent, &mut pieces, report)?;
        Ok(Self { geometry, pieces: *pieces })
    }

    /// The pieces in order. Their offsets mean nothing after a piece of unknown length.
    #[inline]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + Clone + 'a {
        let (pieces, count) = (self.pieces, usize_of(self.pieces.count()));
        let mut offset = 0i64;
        (0..count).map(move |index| {
            let piece = Piece { index, offset, len: blocks::length(&pieces, index) };
            offset = offset.wrapping_add(piece.len);
            piece
        })
    }
}

impl<'a> Geometry<'a> {
    /// Checks type and shape of an input, and the axis. Of the lengths it matters only whether there are any.
    #[inline(always)]
    pub(crate) fn new(
        request: &Request<'_>,
        has_lengths: bool,
        dtype: DType,
        shape: &'a [i64],
        report: &mut Report,
    ) -> Result<Self, Fault> {
        let &Request { operator, axis, keepdims, may_be_unknown: unknown_allowed, .. } = request;
        let keeps_axis = !drops_axis(operator, keepdims, has_lengths);
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
        let place = usize::try_from(axis.wrapping_add(back).cast_unsigned()).unwrap_or(usize::MAX);
        let Some((outer, [extent, inner @ ..])) = shape.split_at_checked(place) else {
            check_negative(shape, unknown_allowed, report)?;
            return report.refuse(Error::Axis { axis, rank });
        };
        let (axis, extent) = (place, *extent);
        let [elements, inner, outer] = match counts(outer, extent, inner, dtype, above_zero) {
            Some(counts) => counts,
            None => counts_closely(shape, axis, dtype, unknown_allowed, report)?,
        };
        Ok(Self { dtype, shape, axis, keeps_axis, extent, elements, inner, outer })
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

/// The product of all extents, of those inward of an axis, and of those outward of it, as they are to be
/// counted; nothing if they make more bits than can be numbered.
#[inline(always)]
fn counts(
    outer: &[i64],
    extent: i64,
    inner: &[i64],
    dtype: DType,
    counted: impl Fn(i64) -> Option<i64>,
) -> Option<[i64; 3]> {
    let product = |extents: &[i64]| {
        extents.iter().try_fold(1i64, |all, extent| all.checked_mul(counted(*extent)?))
    };
    let (inner, outer) = (product(inner)?, product(outer)?);
    let all = inner.checked_mul(counted(extent)?)?.checked_mul(outer)?;
    all.checked_mul(dtype.bits().into())?;
    Some([all, inner, outer])
}

/// As most extents are.
#[inline(always)]
fn above_zero(extent: i64) -> Option<i64> {
    (extent > 0).then_some(extent)
}

/// The same where an extent is 0 or not known, or all are too many. Extents above zero alone must not make
/// more bits than can be numbered, even where another is 0: strides could not be numbered either.
#[cold]
#[inline(never)]
fn counts_closely(
    shape: &[i64],
    axis: usize,
    dtype: DType,
    unknown_allowed: bool,
    report: &mut Report,
) -> Result<[i64; 3], Fault> {
    check_negative(shape, unknown_allowed, report)?;
    let (outward, rest) = shape.split_at_checked(axis).unwrap_or_default();
    let (extent, inward) = rest.split_first().unwrap_or((&0, &[]));
    let at_least_one = |extent: i64| Some(extent.max(1));
    let Some([all, inner, outer]) = counts(outward, *extent, inward, dtype, at_least_one) else {
        return report.refuse(Error::TooManyElements { which: Which::Input });
    };
    #[allow(clippy::manual_contains)] // which the compiler makes much of
    let has = |sought: i64, extents: &[i64]| extents.iter().any(|extent| *extent == sought);
    let unless_empty = |count, extents: &[i64]| if has(0, extents) { 0 } else { count };
    let is_unknown = has(DIM_UNKNOWN, outward) || has(DIM_UNKNOWN, inward);
    let outer = if is_unknown { DIM_UNKNOWN } else { unless_empty(outer, outward) };
    Ok([unless_empty(all, shape), unless_empty(inner, inward), outer])
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
