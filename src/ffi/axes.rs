//! What the outputs of a call have in common: all extents but the one on the split axis, and strides.
//! Both are laid out once and patched for each output, which is then compared or filled in one go.

#![allow(clippy::inline_always)] // on the way of every call

use crate::plan::Geometry;
use crate::shape::{DIM_UNKNOWN, MAX_RANK};
use core::mem::MaybeUninit;

/// An entry an axis of an output, and one for a split axis that outputs do not have.
pub(super) struct Axes {
    entries: [MaybeUninit<i64>; MAX_RANK + 1],
    rank: usize,
    split: usize,
}

impl Axes {
    /// Room for those of an output, of which none are known.
    #[inline(always)]
    pub(super) fn new(geometry: &Geometry<'_>) -> Self {
        let rank = geometry.output_rank();
        let split = if geometry.keeps_axis { geometry.axis } else { rank };
        Self { entries: [const { MaybeUninit::uninit() }; MAX_RANK + 1], rank, split }
    }

    /// Sets them to an input's; that of the split axis only where it is the last.
    #[inline(always)]
    pub(super) fn take(&mut self, geometry: &Geometry<'_>, input: &[i64]) {
        let (outer, inner) = geometry.around_axis(input);
        let (rank, first) = (self.rank, self.entries.as_mut_ptr().cast());
        let (outers, inners) = (outer.len(), inner.len());
        // SAFETY: an input has at most `MAX_RANK` axes, of which all or all but one are taken.
        unsafe {
            words(outer.as_ptr(), first, &raw const outers);
            words(inner.as_ptr(), first.add(rank - inners), &raw const inners);
        }
    }

    /// Sets them to the packed strides of the input's shape with `extent` on the split axis, as far as
    /// extents are known.
    #[inline(always)]
    pub(super) fn pack(&mut self, geometry: &Geometry<'_>, extent: i64) {
        let (outer, inner) = geometry.around_axis(geometry.shape);
        let mut next = self.entries.as_mut_ptr().cast::<i64>().wrapping_add(self.rank);
        let mut stride = 1i64;
        let mut put = |extent: i64, is_kept: bool| {
            if is_kept {
                next = next.wrapping_sub(1);
                // SAFETY: there are as many entries as axes that are kept.
                unsafe { next.write(stride) };
            }
            stride = if stride < 0 || extent < 0 {
                DIM_UNKNOWN
            } else {
                // What is known fits, as has been checked.
                stride.wrapping_mul(extent.max(1))
            };
        };
        inner.iter().rev().for_each(|extent| put(*extent, true));
        put(extent, geometry.keeps_axis);
        outer.iter().rev().for_each(|extent| put(*extent, true));
    }

    /// The entry of the split axis.
    #[inline(always)]
    pub(super) fn set_split(&mut self, entry: i64) {
        // SAFETY: there is one, or room for it.
        unsafe { self.entries.as_mut_ptr().cast::<i64>().add(self.split).write(entry) }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.rank
    }

    /// Writes all entries.
    ///
    /// # Safety
    /// All must have been set, and `array` must have room for them.
    #[inline(always)]
    pub(super) unsafe fn write(&self, array: *mut i64) {
        // SAFETY: as many entries are there on both sides.
        unsafe { words(self.entries.as_ptr().cast(), array, &raw const self.rank) }
    }
}

/// Copies a few words.
///
/// # Safety
/// As [`core::ptr::copy_nonoverlapping`]; `count` must be readable.
#[inline(always)]
unsafe fn words(source: *const i64, target: *mut i64, count: *const usize) {
    let mut at = 0;
    // SAFETY: the caller's. It is read again each time, or the compiler makes more of these few words than
    // they are: a call of `memcpy`, or a loop that is unrolled.
    while at < unsafe { count.read_volatile() } {
        // SAFETY: below the count.
        unsafe { target.add(at).write(source.add(at).read()) };
        at += 1;
    }
}
