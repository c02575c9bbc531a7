//! What the copy engine is given to do: the pieces that are wanted and have elements, each with
//! the place that it goes to.

use crate::geometry::{Geometry, Piece};
use crate::overlap::See;
use crate::rules::{PieceIter, Pieces};
use crate::shape;
use crate::span::Span;
use crate::tensor::Reach;
use core::marker::PhantomData;
use core::ops::Range;
use core::slice;

/// A piece on its way to `target`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub index: usize,
    /// Steps of the split axis: the first, and how many.
    pub offset: i64,
    pub len: i64,
    /// Where its element [0, …, 0] goes.
    pub target: *mut u8,
}

/// A field of every structure of an array, or the entries of an array: pointers `step` bytes apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointers<'a, T> {
    first: *const *mut T,
    step: usize,
    len: usize,
    array: PhantomData<&'a T>,
}

impl<T> Pointers<'_, T> {
    /// # Safety
    /// `len` pointers must be readable, from `first` on and `step` bytes apart, for as long as the
    /// result lives.
    pub(crate) unsafe fn new(first: *const *mut T, step: usize, len: usize) -> Self {
        Self { first, step, len, array: PhantomData }
    }

    /// The pointer with this index; NULL past the end.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> *mut T {
        if index >= self.len {
            return core::ptr::null_mut();
        }
        // SAFETY: within the array, by the promise of `new`.
        unsafe { self.first.byte_add(index * self.step).read() }
    }
}

impl Pointers<'_, u8> {
    /// Shows number and address of those from `low` on and below `high`, as `Spans::starts` does.
    pub(crate) fn starts(&self, low: usize, mut high: usize, see: &mut See<'_>) {
        for index in 0..self.len {
            let start = self.get(index) as usize;
            if low <= start && start < high {
                high = see(index, start);
            }
        }
    }
}

/// A piece as a plan has it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Record {
    /// Steps of the split axis: the first, and how many; 0 where there is nothing to copy.
    pub offset: i64,
    pub len: i64,
    /// Bytes from the input's data to the piece, for views; [`UNWANTED`] where the output is.
    pub ahead: i64,
    /// What the output reaches over.
    pub reach: Reach,
}

/// In [`Record::ahead`]: the output is not wanted.
pub(crate) const UNWANTED: i64 = i64::MIN;

/// The parts of a copy, in the order of the pieces.
#[derive(Clone, Copy)]
pub(crate) enum Parts<'a> {
    /// All worked out.
    #[allow(dead_code)] // for tests, and for the engine
    Listed(&'a [Part]),
    /// As the operator's rule gives them; a piece whose target is NULL is not wanted.
    Ruled { pieces: &'a Pieces<'a>, targets: Pointers<'a, u8> },
    /// As a plan has them.
    Planned { records: &'a [Record], targets: Pointers<'a, u8> },
}

impl<'a> Parts<'a> {
    /// How many pieces there are; no more of them are parts.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Listed(parts) => parts.len(),
            Self::Ruled { pieces, .. } => usize::try_from(pieces.count()).unwrap_or(usize::MAX),
            Self::Planned { records, .. } => records.len(),
        }
    }

    /// The parts in order.
    #[inline]
    pub(crate) fn iter(&self) -> Iter<'a> {
        match *self {
            Self::Listed(parts) => Iter::Listed(parts.iter()),
            Self::Ruled { pieces, targets } => Iter::Ruled { pieces: pieces.iter(), targets },
            Self::Planned { records, targets } => {
                Iter::Planned { records: records.iter(), next: 0, targets }
            }
        }
    }

    /// Shows each part, in order: for loops that are to be short.
    #[inline(always)]
    pub(crate) fn each(&self, mut see: impl FnMut(Part)) {
        match *self {
            Self::Listed(parts) => parts.iter().for_each(|part| see(*part)),
            Self::Ruled { pieces, targets } => {
                for Piece { index, offset, len } in pieces.iter() {
                    let part = Part { index, offset, len, target: targets.get(index) };
                    part.is_wanted().map(&mut see);
                }
            }
            Self::Planned { records, targets } => {
                for (index, &Record { offset, len, .. }) in records.iter().enumerate() {
                    if len > 0 {
                        see(Part { index, offset, len, target: targets.get(index) });
                    }
                }
            }
        }
    }

    /// The parts of a range of pieces, which may go on past the last one.
    pub(crate) fn some(&self, range: Range<usize>) -> Iter<'a> {
        let end = range.end.min(self.count());
        let start = range.start.min(end);
        match *self {
            Self::Listed(parts) => Iter::Listed(parts.get(start..end).unwrap_or_default().iter()),
            Self::Ruled { pieces, targets } => {
                Iter::Ruled { pieces: pieces.iter_from(start).until(end), targets }
            }
            Self::Planned { records, targets } => {
                let records = records.get(start..end).unwrap_or_default().iter();
                Iter::Planned { records, next: start, targets }
            }
        }
    }

    /// The part of the piece with this index, but for its offset, which is 0 in some.
    fn at(&self, at: usize) -> Option<Part> {
        match self {
            Self::Listed(parts) => parts.get(at).copied(),
            Self::Ruled { pieces, targets } => {
                let part =
                    Part { index: at, offset: 0, len: pieces.len_of(at), target: targets.get(at) };
                part.is_wanted()
            }
            Self::Planned { records, targets } => {
                let &Record { offset, len, .. } = records.get(at)?;
                (len > 0).then(|| Part { index: at, offset, len, target: targets.get(at) })
            }
        }
    }
}

impl Part {
    #[inline]
    fn is_wanted(self) -> Option<Self> {
        (self.len > 0 && !self.target.is_null()).then_some(self)
    }
}

/// Goes over parts.
#[derive(Clone)]
pub(crate) enum Iter<'a> {
    Listed(slice::Iter<'a, Part>),
    Ruled { pieces: PieceIter<'a>, targets: Pointers<'a, u8> },
    Planned { records: slice::Iter<'a, Record>, next: usize, targets: Pointers<'a, u8> },
}

impl Iterator for Iter<'_> {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        match self {
            Self::Listed(parts) => parts.next().copied(),
            Self::Ruled { pieces, targets } => pieces.find_map(|piece| {
                let (index, target) = (piece.index, targets.get(piece.index));
                Part { index, offset: piece.offset, len: piece.len, target }.is_wanted()
            }),
            Self::Planned { records, next, targets } => records.find_map(|record| {
                let (index, &Record { offset, len, .. }) = (*next, record);
                *next += 1;
                (len > 0).then(|| Part { index, offset, len, target: targets.get(index) })
            }),
        }
    }
}

/// The strides of outputs, in elements.
#[derive(Clone, Copy)]
pub(crate) enum OutputStrides<'a> {
    /// All outputs are packed.
    Packed,
    /// As descriptors have them; NULL = packed.
    Described { strides: Pointers<'a, i64>, rank: usize },
    /// `rank` of each in a plan, packed ones too.
    Planned { strides: &'a [i64], rank: usize },
}

impl<'a> OutputStrides<'a> {
    pub(crate) fn are_packed(&self) -> bool {
        matches!(self, Self::Packed)
    }

    /// The strides of an output; `None` = packed.
    #[inline(never)] // once in the library
    pub(crate) fn get(&self, index: usize) -> Option<&'a [i64]> {
        match *self {
            Self::Packed => None,
            Self::Described { strides, rank } => {
                let array = strides.get(index);
                // SAFETY: the arrays of descriptors have as many entries as their rank, which was
                // checked, and are not written meanwhile.
                (!array.is_null()).then(|| unsafe { slice::from_raw_parts(array, rank) })
            }
            Self::Planned { strides, rank } => strides.get(index.checked_mul(rank)?..)?.get(..rank),
        }
    }
}

/// A checked copy.
#[derive(Clone, Copy)]
pub(crate) struct Transfer<'a> {
    pub geometry: Geometry<'a>,
    /// Address of the input's element [0, …, 0].
    pub source: *const u8,
    /// The input's strides in elements; `None` = packed.
    pub strides: Option<&'a [i64]>,
    /// Of sub-byte types, the input's first element's offset in bits from `source`.
    pub bit_offset: u32,
    pub parts: Parts<'a>,
    pub output_strides: OutputStrides<'a>,
    /// Bytes of all parts, as if they were packed.
    pub bytes: usize,
}

impl Transfer<'_> {
    /// The memory that is written of a piece, from the lowest byte to the highest; empty where there is none.
    pub(crate) fn written(&self, at: usize) -> Span {
        let Some(part) = self.parts.at(at) else { return Span::default() };
        let reach = match (&self.parts, self.output_dims(at)) {
            (Parts::Planned { records, .. }, _) => records.get(at).map(|record| record.reach),
            (_, Some(dims)) => shape::reach(dims).and_then(|(low, high)| {
                crate::tensor::byte_reach(low, high, self.geometry.dtype.bits(), 0)
            }),
            (_, None) => {
                let bytes = i64::try_from(self.geometry.piece_bytes(part.len)).unwrap_or(i64::MAX);
                Some(Reach { low: 0, bytes })
            }
        };
        // They have been found to lie within the address space.
        reach.and_then(|reach| reach.at(part.target)).unwrap_or_default()
    }

    /// Extent and stride of every axis of the output of a piece with elements; `None` where all
    /// its bytes lie together.
    pub(crate) fn output_dims(&self, at: usize) -> Option<impl Iterator<Item = (i64, i64)> + '_> {
        let part = self.parts.at(at)?;
        let strides = self.output_strides.get(part.index)?;
        Some(self.geometry.output_shape(part.len).zip(strides.iter().copied()))
    }
}
