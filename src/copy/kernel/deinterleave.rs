//! Rows that begin with an element for each of a few targets, to be taken apart.

use super::combine::LINE;
use super::strided::Axis;
use crate::math::rem;

/// `count` rows, `step` bytes apart, that begin with an element for each target.
#[derive(Clone, Copy)]
pub(crate) struct Deinterleave {
    pub source: *const u8,
    pub step: usize,
    pub targets: [*mut u8; MAX_DEINTERLEAVED],
    pub count: usize,
    /// As many more rows follow, which can be read.
    pub after: usize,
    /// So many bytes ahead the input is prefetched, where targets go past the caches.
    pub prefetch: usize,
    /// Blocks of such rows that follow, and how far each is from the one before, like its targets. Loops
    /// may take all of them as well, and then make their number 0.
    pub more: Axis,
}

/// The most targets that rows are deinterleaved to at a time.
pub(crate) const MAX_DEINTERLEAVED: usize = 16;
/// The most of which many blocks are taken at a time, by byte permutes: more leave no register for it, and 5 of
/// 7 bytes would reach .89 of the flat copy on Zen 5 for .91.
pub(crate) const MOST_OF_BLOCKS: usize = 4;

impl Deinterleave {
    /// Whether as many targets begin the same number of whole units behind their lines.
    #[inline(never)] // once in the library
    pub(super) fn is_alike(&self, len: usize, width: usize) -> bool {
        let mut targets = self.targets.iter().take(len).map(|target| *target as usize % LINE);
        let first = targets.next().unwrap_or(0);
        rem(first, width) == 0 && targets.all(|target| target == first)
    }

    /// Leaves the first rows out.
    #[inline(never)] // as above
    pub(super) fn skip(&mut self, rows: usize, width: usize) {
        self.source = self.source.wrapping_add(rows * self.step);
        self.targets = self.targets.map(|target| target.wrapping_add(rows * width));
        self.count -= rows;
    }
}

/// Deinterleaves elements to so many targets, of so many bytes, past the caches or not, a line of
/// each at a time; as many rows of each block as it can.
pub(super) type DeinterleaveLines =
    unsafe fn(&mut Deinterleave, usize, usize, bool, &mut NextBlock<'_>);

/// Is told how many rows of a block have been deinterleaved, and makes it the next one, alike but for
/// its addresses and how many rows there are; whether there is one.
pub(super) type NextBlock<'a> = dyn FnMut(&mut Deinterleave, usize) -> bool + 'a;
