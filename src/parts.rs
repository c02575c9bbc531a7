//! What the copy engine is given: the pieces that are wanted and have elements, each with the address that it is copied
//! to.

use crate::geometry::Geometry;
use crate::pieces::{Piece, PieceIter, Pieces};
use crate::shape::{self, usize_of};
use crate::span::Span;
use crate::tensor::{byte_reach, Reach};
use crate::words::Argument;
use core::marker::PhantomData;
use core::ops::Range;
use core::slice;

/// A piece that is copied to `target`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub index: usize,
    /// The first step of the split axis, and the number of steps.
    pub offset: i64,
    pub len: i64,
    /// The address of its element [0, …, 0] in the output.
    pub target: *mut u8,
}

impl Part {
    /// Returns a piece as a part, if it is one.
    fn new(Piece { index, offset, len }: Piece, targets: &Pointers<'_, u8>) -> Option<Self> {
        let target = targets.get(index);
        (len > 0 && !target.is_null()).then_some(Self { index, offset, len, target })
    }
}

/// Pointers that lie `step` bytes apart: the entries of an array, or the same field of all its structures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointers<'a, T> {
    first: *const *mut T,
    step: usize,
    len: usize,
    array: PhantomData<&'a T>,
}

impl<T> Pointers<'_, T> {
    /// # Safety
    /// `len` pointers, `step` bytes apart and beginning at `first`, must be readable for as long as the result lives.
    pub(crate) unsafe fn new(first: *const *mut T, step: usize, len: usize) -> Self {
        Self { first, step, len, array: PhantomData }
    }

    /// Returns the pointer with this index, or NULL past the end.
    pub(crate) fn get(&self, index: usize) -> *mut T {
        if index >= self.len {
            return core::ptr::null_mut();
        }
        // SAFETY: within the array, by the promise of `new`.
        unsafe { self.first.byte_add(index * self.step).read() }
    }
}

/// The parts of a copy, in the order of the pieces. A piece without elements, or whose target is NULL, is not a part.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub pieces: &'a Pieces<'a>,
    pub targets: Pointers<'a, u8>,
}

impl<'a> Parts<'a> {
    /// Returns the number of pieces, not all of which need be parts.
    pub(crate) fn count(&self) -> usize {
        usize_of(self.pieces.count())
    }

    /// Returns whether there is a target for each piece.
    pub(crate) fn are_alike(&self) -> bool {
        self.targets.len == self.count()
    }

    /// Returns the parts in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Part> + Clone + use<'a> {
        self.among(self.pieces.iter())
    }

    /// Returns the parts of a range of pieces, which may end past the last one.
    pub(crate) fn some(&self, range: Range<usize>) -> impl Iterator<Item = Part> + Clone + use<'a> {
        self.among(self.pieces.range(range))
    }

    /// Returns those of some pieces that are parts.
    fn among(&self, pieces: PieceIter<'a>) -> impl Iterator<Item = Part> + Clone + use<'a> {
        let targets = self.targets;
        pieces.filter_map(move |piece| Part::new(piece, &targets))
    }

    /// Returns the part with this index, without its offset.
    pub(crate) fn get(&self, index: usize) -> Option<Part> {
        Part::new(Piece { index, offset: 0, len: self.pieces.length(index) }, &self.targets)
    }
}

/// The strides of outputs, in elements.
#[derive(Clone, Copy)]
pub(crate) enum OutputStrides<'a> {
    /// All outputs are packed.
    Packed,
    /// As descriptors have them; NULL = packed.
    Described { strides: Pointers<'a, i64>, rank: usize },
    /// As a plan has them: `rank` strides for each output, packed ones included.
    Planned { strides: &'a [i64], rank: usize },
}

impl<'a> OutputStrides<'a> {
    pub(crate) fn are_packed(&self) -> bool {
        matches!(self, Self::Packed)
    }

    /// Returns the strides of an output; `None` = packed.
    pub(crate) fn get(&self, index: usize) -> Option<&'a [i64]> {
        match *self {
            Self::Packed => None,
            Self::Described { strides, rank } => {
                let array = strides.get(index);
                // SAFETY: the arrays of descriptors have as many entries as their rank, which was
                // checked, and nobody writes to them meanwhile.
                (!array.is_null()).then(|| unsafe { slice::from_raw_parts(array, rank) })
            }
            Self::Planned { strides, rank } => strides.get(index.checked_mul(rank)?..)?.get(..rank),
        }
    }
}

/// A checked copy.
#[derive(Clone, Copy)]
pub(crate) struct Transfer<'a> {
    pub geometry: &'a Geometry<'a>,
    /// Address of the input's element [0, …, 0].
    pub source: *const u8,
    /// The input's strides in elements; `None` = packed.
    pub strides: Option<&'a [i64]>,
    /// Sub-byte types: the input's first element's offset in bits from `source`.
    pub bit_offset: u32,
    pub parts: Parts<'a>,
    pub output_strides: OutputStrides<'a>,
    /// Bytes of all parts, as if they were packed.
    pub bytes: usize,
}

impl Transfer<'_> {
    /// Returns the memory that a piece is copied to. It is empty if nothing is copied.
    pub(crate) fn written(&self, index: usize) -> Span {
        let Some(part) = self.parts.get(index) else { return Span::default() };
        let bits = self.geometry.dtype.bits();
        let reach = match self.output_dims(&part) {
            Some(dims) => shape::reach(dims).and_then(|(low, high)| byte_reach(low, high, bits, 0)),
            None => Some(Reach { low: 0, bytes: self.geometry.output_bytes(part.len) }),
        };
        // All outputs have been found to lie within the address space.
        let span = |reach: Reach| reach.at(part.target, Argument::Output(index)).ok();
        reach.and_then(span).unwrap_or_default()
    }

    /// Returns the extent and the stride of every axis of an output; `None` if it is packed.
    pub(crate) fn output_dims(
        &self,
        part: &Part,
    ) -> Option<impl Iterator<Item = (i64, i64)> + use<'_>> {
        let strides = self.output_strides.get(part.index)?;
        Some(self.geometry.output_shape(part.len).zip(strides.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Parts, PhantomData, Pieces, Pointers};

    impl Parts<'static> {
        /// No parts, for a transfer that a test fills in.
        pub(crate) const NONE: Self = Self {
            pieces: &Pieces::Int64(&[]),
            targets: Pointers { first: core::ptr::null(), step: 0, len: 0, array: PhantomData },
        };
    }
}
