//! What the copy engine is given to do: the pieces that are wanted and have elements, each with
//! the place that it goes to.

use crate::blocks;
use crate::error::number;
use crate::plan::{Geometry, Piece};
use crate::rules::Pieces;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Range;

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

/// The most parts that fit on the stack.
pub(crate) const FEW_PARTS: usize = 16;

/// Room for them.
pub(crate) const ROOM: [MaybeUninit<Part>; FEW_PARTS] =
    [const { MaybeUninit::uninit() }; FEW_PARTS];

/// Smaller builds go without loops that are of little use.
const HAS_ALL_LOOPS: bool = cfg!(feature = "avx512");

/// Some field of every structure of an array: a pointer each, `step` bytes apart.
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

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All of them.
    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut T> + '_ {
        let mut next = self.first;
        (0..self.len).map(move |_| {
            let here = next;
            next = next.wrapping_byte_add(self.step);
            // SAFETY: within the array, by the promise of `new`.
            unsafe { here.read() }
        })
    }

    /// NULL past the end.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> *mut T {
        if index >= self.len {
            return core::ptr::null_mut();
        }
        // SAFETY: within the array.
        unsafe { self.at(index) }
    }

    /// # Safety
    /// There must be so many.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, index: usize) -> *mut T {
        // SAFETY: within the array, by the promise of `new`.
        unsafe { self.first.byte_add(index * self.step).read() }
    }
}

/// A piece as a plan has it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PlannedPart {
    pub index: usize,
    pub offset: i64,
    pub len: i64,
}

impl PlannedPart {
    /// On its way to `target`.
    #[inline]
    pub(crate) fn to(&self, target: *mut u8) -> Part {
        let &Self { index, offset, len } = self;
        Part { index, offset, len, target }
    }
}

/// The parts of a copy, in the order of the pieces.
#[derive(Clone, Copy)]
pub(crate) enum Parts<'a> {
    /// Few of them, all worked out.
    Listed(&'a [Part]),
    /// As the operator's rule gives them; a target that is NULL is not wanted.
    Ruled { pieces: Pieces<'a>, targets: Pointers<'a, u8> },
    /// As a plan has them.
    Planned { parts: &'a [PlannedPart], targets: Pointers<'a, u8> },
}

impl<'a> Parts<'a> {
    /// At least as many as there are.
    #[inline(never)] // once in the library
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Listed(parts) => parts.len(),
            Self::Ruled { pieces, .. } => usize::try_from(pieces.count()).unwrap_or(usize::MAX),
            Self::Planned { parts, .. } => parts.len(),
        }
    }

    /// As many as there are.
    #[inline(never)] // for its stack
    pub(crate) fn wanted(&self) -> usize {
        let Self::Ruled { pieces: Pieces::Words(lengths), targets } = self else {
            return self.iter().count();
        };
        let lengths = lengths.iter().enumerate();
        lengths.filter(|(at, len)| **len > 0 && !targets.get(*at).is_null()).count()
    }

    #[inline]
    pub(crate) fn iter(&self) -> Iter<'a> {
        Iter { parts: *self, next: 0, offset: 0 }
    }

    /// Those of a range of so many as are counted.
    #[inline(never)]
    pub(crate) fn some(&self, range: Range<usize>) -> Iter<'a> {
        let mut some = Iter { parts: *self, next: range.start, offset: 0 };
        match &mut some.parts {
            Self::Listed(parts) => *parts = parts.get(..range.end).unwrap_or(parts),
            Self::Planned { parts, .. } => *parts = parts.get(..range.end).unwrap_or(parts),
            Self::Ruled { pieces, targets } => {
                targets.len = targets.len.min(range.end);
                some.offset = blocks::offset(pieces, range.start);
            }
        }
        some
    }
}

/// Goes over parts.
#[derive(Clone)]
pub(crate) struct Iter<'a> {
    parts: Parts<'a>,
    next: usize,
    offset: i64,
}

impl Iter<'_> {
    /// Steps of the longest, where all have so many together.
    #[inline(never)] // once in the library
    pub(crate) fn longest(self, extent: i64) -> i64 {
        let (count, mut longest) = (number(self.most()), 0);
        for part in self {
            longest = part.len.max(longest);
            // Even ones are known by the first.
            if longest.saturating_mul(count) == extent {
                break;
            }
        }
        longest
    }

    /// The next ones, as many as there is room for.
    #[inline(never)] // once in the library
    pub(crate) fn list<'l>(&mut self, room: &'l mut [MaybeUninit<Part>]) -> &'l [Part] {
        let mut len = 0;
        match self.parts {
            Parts::Planned { parts, targets } if HAS_ALL_LOOPS => {
                let rest = parts.get(self.next..).unwrap_or_default();
                for (slot, part) in room.iter_mut().zip(rest) {
                    slot.write(part.to(targets.get(part.index)));
                    len += 1;
                }
                self.next += len;
            }
            Parts::Ruled { pieces: Pieces::Words(lengths), targets } if HAS_ALL_LOOPS => {
                let mut rest = lengths.iter().take(targets.len).skip(self.next);
                while let Some(slot) = room.get_mut(len) {
                    let (Some(length), index) = (rest.next(), self.next) else { break };
                    let (offset, target) = (self.offset, targets.get(index));
                    (self.next, self.offset) = (index + 1, offset + length);
                    if *length > 0 && !target.is_null() {
                        slot.write(Part { index, offset, len: *length, target });
                        len += 1;
                    }
                }
            }
            _ => {
                // Not to be written out for as many as there is room for.
                let most = self.most();
                for (slot, part) in room.iter_mut().take(most).zip(self) {
                    slot.write(part);
                    len += 1;
                }
            }
        }
        // SAFETY: so many have been written.
        unsafe { core::slice::from_raw_parts(room.as_ptr().cast(), len) }
    }

    /// At least as many as are left.
    pub(crate) fn most(&self) -> usize {
        let count = match &self.parts {
            Parts::Ruled { targets, .. } => targets.len,
            parts => parts.count(),
        };
        count.saturating_sub(self.next)
    }
}

impl Iterator for Iter<'_> {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        match &self.parts {
            Parts::Listed(parts) => {
                let part = parts.get(self.next).copied()?;
                self.next += 1;
                Some(part)
            }
            Parts::Planned { parts, targets } => {
                let part = parts.get(self.next)?;
                self.next += 1;
                Some(part.to(targets.get(part.index)))
            }
            Parts::Ruled { pieces, targets } => loop {
                let index = self.next;
                if index >= targets.len {
                    return None;
                }
                let (offset, len) = (self.offset, pieces.length(index));
                (self.next, self.offset) = (index + 1, offset + len);
                let target = targets.get(index);
                if len > 0 && !target.is_null() {
                    return Some(Part { index, offset, len, target });
                }
            },
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

    /// Whether two outputs have the same.
    #[inline]
    pub(crate) fn are_alike(&self, one: usize, other: usize) -> bool {
        if self.are_packed() || one == other {
            return true;
        }
        match (self.get(one), self.get(other)) {
            (None, None) => true,
            // Not as slices: bcmp would have to be imported.
            (Some(one), Some(other)) => one.iter().zip(other).all(|(one, other)| one == other),
            _ => false,
        }
    }

    /// Those of an output; `None` = packed.
    #[inline(never)] // once in the library
    pub(crate) fn get(&self, index: usize) -> Option<&'a [i64]> {
        match *self {
            Self::Packed => None,
            Self::Described { strides, rank } => {
                let array = strides.get(index);
                // SAFETY: the arrays of descriptors have as many entries as their rank, which was
                // checked, and are not written meanwhile.
                (!array.is_null()).then(|| unsafe { core::slice::from_raw_parts(array, rank) })
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
    pub(crate) fn is_packed(&self) -> bool {
        self.strides.is_none()
    }

    /// How many elements lie where one is wanted, if steps are apart on every axis.
    pub(crate) fn apart(&self) -> usize {
        let strides = self.geometry.shape.iter().zip(self.strides.unwrap_or_default());
        let steps = strides.filter(|(extent, stride)| **extent > 1 && **stride != 0);
        let least = steps.map(|(_, stride)| stride.unsigned_abs()).min();
        least.map_or(1, |least| usize::try_from(least).unwrap_or(usize::MAX))
    }
}

impl From<Part> for Piece {
    fn from(part: Part) -> Self {
        Self { index: part.index, offset: part.offset, len: part.len }
    }
}
