//! The pieces of a split.

use crate::error::number;
use crate::lengths::Lengths;
use crate::shape::usize_of;
use core::ops::Range;

/// One piece: `len` steps of the axis from `offset` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub index: usize,
    /// Means nothing after a piece of unknown length.
    pub offset: i64,
    pub len: i64,
}

/// The pieces of an axis, in order.
#[derive(Debug, Clone, Copy)]
#[repr(C)] // so that the tag has a place of its own
pub(crate) enum Pieces<'a> {
    /// `size` steps each, as far as the extent goes; then one of what is left, then empty ones. If the size is
    /// [`DIM_UNKNOWN`](crate::DIM_UNKNOWN), so is that of every piece.
    Equal { count: i64, size: i64, extent: i64 },
    /// As in a list of int64 that lies in memory. In a plan, an entry of `!len`, which is below 0, is a piece of `len`
    /// steps that is not copied.
    Int64(&'a [i64]),
    /// As in any other list, in which an entry of -1 stands for the `rest`, which may be unknown.
    Listed { lengths: Lengths<'a>, rest: i64 },
}

impl Pieces<'_> {
    pub(crate) fn count(&self) -> i64 {
        match *self {
            Self::Int64(lengths) => number(lengths.len()),
            Self::Equal { count, .. } => count,
            Self::Listed { ref lengths, .. } => lengths.count,
        }
    }

    /// Returns the pieces in order.
    pub(crate) fn iter(&self) -> PieceIter<'_> {
        let lengths = if let Self::Int64(lengths) = self { lengths } else { &[][..] };
        PieceIter { pieces: self, lengths, next: 0, end: usize_of(self.count()), offset: 0 }
    }

    /// Returns some of the pieces. To find where the first of them begins, a list is summed up to it.
    pub(crate) fn range(&self, range: Range<usize>) -> PieceIter<'_> {
        let mut iter = self.iter();
        if let Self::Equal { size, extent, .. } = *self {
            iter.offset = offset_of_equal(range.start, size, extent);
        } else {
            iter.by_ref().take(range.start).for_each(drop);
        }
        let lengths = iter.lengths.get(..range.end).unwrap_or(iter.lengths);
        PieceIter { lengths, next: range.start, end: iter.end.min(range.end), ..iter }
    }

    /// Returns the length of the piece with this index.
    pub(crate) fn length(&self, index: usize) -> i64 {
        match self {
            Self::Int64(lengths) => lengths.get(index).copied().unwrap_or(0),
            Self::Equal { .. } | Self::Listed { .. } => self.worked_out(index),
        }
    }

    /// Returns the length of a piece of a list that does not lie in memory as int64, or of equal pieces.
    #[inline(never)] // once in the library
    fn worked_out(&self, index: usize) -> i64 {
        match *self {
            Self::Int64(_) => 0,
            Self::Equal { size, extent, .. } => {
                size.min(extent - offset_of_equal(index, size, extent))
            }
            Self::Listed { ref lengths, rest } => match lengths.value(number(index)) {
                Some(len @ 0..) => len,
                _ => rest,
            },
        }
    }
}

/// Returns where one of equal pieces begins.
fn offset_of_equal(index: usize, size: i64, extent: i64) -> i64 {
    number(index).saturating_mul(size).min(extent)
}

/// Iterates over pieces.
#[derive(Debug, Clone)]
pub(crate) struct PieceIter<'a> {
    pieces: &'a Pieces<'a>,
    /// All lengths up to the end, if they lie in memory as int64.
    lengths: &'a [i64],
    next: usize,
    end: usize,
    offset: i64,
}

impl Iterator for PieceIter<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let &mut Self { pieces, lengths, next: index, end, offset } = self;
        let len = match lengths.get(index) {
            Some(len) => *len,
            None if index < end => pieces.worked_out(index),
            None => return None,
        };
        self.next += 1;
        self.offset = offset.wrapping_add(if len < 0 { !len } else { len });
        Some(Piece { index, offset, len })
    }
}
