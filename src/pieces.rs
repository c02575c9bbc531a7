//! The pieces of a split.

#![forbid(unsafe_code)]

use crate::lengths::Lengths;
use crate::shape::{usize_of, DIM_UNKNOWN};
use crate::tensor::Reach;
use core::ops::Range;

/// One piece: `len` steps of the axis from `offset` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub index: usize,
    /// Means nothing after a piece of unknown length.
    pub offset: i64,
    pub len: i64,
}

/// A piece in a plan.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Record {
    pub offset: i64,
    /// 0 if there is nothing to copy.
    pub len: i64,
    /// Bytes from the input's data to the piece, for views; [`UNWANTED`] if the output is not wanted.
    pub ahead: i64,
    /// What the output reaches over.
    pub reach: Reach,
}

/// In [`Record::ahead`]: the output is not wanted.
pub(crate) const UNWANTED: i64 = i64::MIN;

/// The pieces of an axis, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pieces<'a> {
    /// `size` steps each, as far as the extent goes; then one of what is left, then empty ones.
    Equal { count: i64, size: i64, extent: i64 },
    /// As in a list of int64.
    Words(&'a [i64]),
    /// As in a list of any other type, or one with an entry of -1 (VariadicSplit): that is the `rest`, which may be
    /// unknown.
    Listed { lengths: Lengths<'a>, count: i64, rest: Option<i64> },
    /// This many, of unknown lengths.
    Unknown { count: i64 },
    /// As recorded in a plan.
    Planned(&'a [Record]),
}

impl Pieces<'_> {
    #[inline]
    pub(crate) fn count(&self) -> i64 {
        match *self {
            Self::Equal { count, .. } | Self::Listed { count, .. } | Self::Unknown { count } => {
                count
            }
            Self::Words(lengths) => index_of(lengths.len()),
            Self::Planned(records) => index_of(records.len()),
        }
    }

    /// Returns the pieces in order.
    #[inline]
    pub(crate) fn iter(&self) -> PieceIter<'_> {
        let words = if let Self::Words(lengths) = self { lengths } else { &[][..] };
        PieceIter { pieces: self, words, next: 0, end: usize_of(self.count()), offset: 0 }
    }

    /// Returns some of the pieces. To find where the first of them begins, a list is summed up to it.
    pub(crate) fn range(&self, range: Range<usize>) -> PieceIter<'_> {
        let mut iter = self.iter();
        if let Self::Listed { .. } | Self::Words(_) = self {
            iter.by_ref().take(range.start).for_each(drop);
        }
        PieceIter { next: range.start, end: iter.end.min(range.end), ..iter }
    }

    /// Returns the piece with this index. `offset` is where it begins in a list of lengths; otherwise it is not used.
    #[inline]
    pub(crate) fn get(&self, index: usize, offset: i64) -> Piece {
        let (offset, len) = match *self {
            Self::Equal { size, extent, .. } => {
                let offset = index_of(index).saturating_mul(size).min(extent);
                (offset, size.min(extent - offset))
            }
            Self::Listed { ref lengths, rest, .. } => match lengths.value(index_of(index)) {
                Some(len @ 0..) => (offset, len),
                _ => (offset, rest.unwrap_or(0)),
            },
            Self::Words(lengths) => (offset, lengths.get(index).copied().unwrap_or(0)),
            Self::Unknown { .. } => (offset, DIM_UNKNOWN),
            Self::Planned(records) => records.get(index).map_or((0, 0), |it| (it.offset, it.len)),
        };
        Piece { index, offset, len }
    }
}

/// Iterates over pieces.
#[derive(Debug, Clone)]
pub(crate) struct PieceIter<'a> {
    pieces: &'a Pieces<'a>,
    /// The lengths, if they are a list of int64.
    words: &'a [i64],
    next: usize,
    end: usize,
    offset: i64,
}

impl Iterator for PieceIter<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.next >= self.end {
            return None;
        }
        let &mut Self { pieces, words, next: index, offset, .. } = self;
        let piece = match words.get(index) {
            Some(&len) => Piece { index, offset, len },
            None => pieces.get(index, offset),
        };
        self.next += 1;
        self.offset = piece.offset.wrapping_add(piece.len);
        Some(piece)
    }
}

/// Converts the index of a piece, which fits, since there are at most `i64::MAX` pieces.
#[allow(clippy::cast_possible_wrap)]
fn index_of(index: usize) -> i64 {
    index as i64
}
