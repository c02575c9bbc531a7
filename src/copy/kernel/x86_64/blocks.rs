//! Rows of many blocks by byte permutes: those of a part of a picture.
//!
//! The idea: where a block ends between two steps, its first two take some rows both, and one loop goes over
//! all blocks. Of up to four pieces: 1,060 rows of 1,900 pixels of three bytes reach .95 of the flat copy on
//! Zen 5, packed ones .95; with a call or two for each block .77, by whole lines of targets that are carried
//! from block to block .91. Shorter blocks are written over by the next one, but for the last ones.
//!
//! Past the caches, where stores are of whole lines, what is left of a block is taken together with the
//! first rows of the next one, if targets go on with these.
//!
//! # Safety
//! That of `permute.rs`.

use super::super::combine::LINE;
use super::super::strided::Axis;
use super::super::{are_near, Deinterleave, NextBlock, MOST_OF_BLOCKS};
use super::permute::{loops, Access, Course, Loop, Packing, Permute, SomeRows, Streams};
use crate::math::{div, div_ceil, next_multiple, signed};

/// How blocks are taken.
pub(super) struct Seams<'a> {
    permute: &'a Permute<'a>,
    run: Loop,
    /// Bytes of a run.
    unit: usize,
    /// Rows that a step reads behind its own, and such that it stores to.
    read: usize,
    stored: usize,
    /// Rows of the last block, and behind it, and the steps that these were.
    last: (usize, usize),
    steps: usize,
}

/// Blocks of fewer steps are short.
const LONG: usize = 64;

impl<'a> Seams<'a> {
    pub(super) fn new(permute: &'a Permute<'a>) -> Option<Self> {
        let Packing { width, step, rows: each, .. } = permute.packing;
        let [unit, ..] = permute.units;
        let own = (each - 1) * step + width;
        let read = div_ceil(permute.packing.reach().saturating_sub(own), step);
        let stored = div_ceil(LINE.saturating_sub(each * unit), unit);
        let run = loops(&permute.packing, 1)?;
        Some(Self { permute, run, unit, read, stored, last: (0, 0), steps: 0 })
    }

    /// Whether a block is so short that it had better not begin with a line of its first target.
    pub(super) fn is_short(&self, block: &Deinterleave) -> bool {
        block.count < LONG * self.permute.packing.rows
    }

    /// Takes the rows of a block through the caches.
    ///
    /// # Safety
    /// 1, 2.
    #[inline(never)] // for its stack
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn through(&mut self, block: &mut Deinterleave) {
        let &mut Self { permute, unit, read, stored, .. } = self;
        let Packing { step, rows: each, .. } = permute.packing;
        let access = Access::PLAIN;
        let mut left = Left::new(block);
        let is_exact = stored == 0 && block.count >= each;
        if let Some(course) = self.course(block, is_exact) {
            block.more.extent -= course.blocks.extent - 1;
            // SAFETY: the caller's promise; steps touch nothing but what is read, or written later, anyhow.
            return unsafe {
                left.streams.join();
                (self.run)(permute, left.source, &mut left.streams, &course, access);
            };
        }
        if (block.count, block.after) != self.last {
            self.last = (block.count, block.after);
            self.steps = self.steps(block.count, block.after);
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.take(&mut left, self.steps, access);
            if left.count > 0 && is_exact && read == 0 {
                left.back(each - left.count, step, unit);
                return self.take(&mut left, 1, access);
            }
            while left.count > 0 {
                let few = each.min(left.count);
                let some = left.few(few);
                permute.masked(some, SomeRows::NONE, &mut left.streams, false);
                left.skip(few, step);
            }
        }
    }

    /// Of a block and those that follow, as many as steps take and touch nothing but blocks.
    fn course(&self, block: &Deinterleave, is_exact: bool) -> Option<Course> {
        let &Self { permute, unit, read, stored, .. } = self;
        let Packing { pieces, width, step, rows: each, .. } = permute.packing;
        let &Deinterleave { count, more: Axis { extent: more, from, to }, .. } = block;
        let taken = next_multiple(count, each);
        let (rows, first) = if is_exact { (count, each + count - taken) } else { (taken, each) };
        let mut extent = 1 + more;
        if !is_exact || read > 0 {
            let is_read = signed((rows + read - count) * step) <= from
                && are_near(from, count.saturating_sub(1) * step + width);
            let goes_on = (is_exact || to == signed(count * unit)) && is_read;
            let over = div_ceil(rows + stored - count, count).max(1);
            extent = extent.checked_sub(over).filter(|_| goes_on)?;
        }
        let from = from.wrapping_sub(signed(rows * step));
        let to = to.wrapping_sub(signed(rows * unit));
        let blocks = Axis { extent, from, to };
        (pieces <= MOST_OF_BLOCKS && extent > 0).then_some(Course { rows, first, blocks })
    }

    /// Takes steps.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn take(&self, left: &mut Left, steps: usize, access: Access) {
        let Packing { step, rows: each, .. } = self.permute.packing;
        // SAFETY: the caller's promise.
        unsafe {
            left.streams.join();
            let course = Course { first: each, rows: steps * each, blocks: Axis::ONE };
            (self.run)(self.permute, left.source, &mut left.streams, &course, access);
        }
        left.skip(steps * each, step);
    }

    /// Takes the rows of a block past the caches, and of those after it whose targets go on. Makes the
    /// block the one behind these; whether there is one. Targets must begin the same number of whole
    /// runs behind their lines.
    ///
    /// # Safety
    /// 1, 2, 3.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn past(&self, block: &mut Deinterleave, next: &mut NextBlock<'_>) -> bool {
        let &Self { permute, unit, .. } = self;
        let Packing { pieces, step, rows: each, .. } = permute.packing;
        let access = Access { ahead: block.prefetch, share: 1, past: true };
        let mut left = Left::new(block);
        // SAFETY: the caller's promise.
        unsafe {
            let [first, ..] = left.streams.targets;
            let lead = div((first as usize).wrapping_neg() % LINE, unit);
            let is_enough = lead <= left.count;
            let lead = lead.min(left.count);
            if lead > 0 {
                let some = left.few(lead);
                permute.masked(some, SomeRows::NONE, &mut left.streams, false);
                left.skip(lead, step);
            }
            loop {
                let steps = self.steps(left.count, block.after);
                self.take(&mut left, steps, access);
                while left.count >= each {
                    let some = left.few(each);
                    permute.masked(some, SomeRows::NONE, &mut left.streams, true);
                    left.skip(each, step);
                }
                let done = block.count;
                let is_another = next(block, done);
                let more = if left.count > 0 { each - left.count } else { 0 };
                let ahead = left.count * unit;
                let ends = left.streams.targets.iter().map(|target| target.wrapping_add(ahead));
                let goes_on = is_another
                    && is_enough
                    && block.count >= more
                    && ends.zip(&block.targets).take(pieces).all(|(end, target)| end == *target);
                let others =
                    SomeRows { source: block.source, count: if goes_on { more } else { 0 } };
                if left.count > 0 {
                    let rest = left.few(left.count);
                    permute.masked(rest, others, &mut left.streams, goes_on);
                }
                if !goes_on {
                    return is_another;
                }
                let Left { streams, .. } = left;
                left = Left { streams, source: block.source, count: block.count };
                left.skip(more, step);
            }
        }
    }

    /// So many steps can be taken in so many rows, which others follow that can be read.
    fn steps(&self, count: usize, after: usize) -> usize {
        let &Self { permute, read, stored, .. } = self;
        let rows =
            count.min((count + after).saturating_sub(read)).min(count.saturating_sub(stored));
        div(rows, permute.packing.rows)
    }
}

/// Rows of a block that are still to be taken.
struct Left {
    source: *const u8,
    count: usize,
    streams: Streams,
}

impl Left {
    fn new(block: &Deinterleave) -> Self {
        let &Deinterleave { source, count, ref targets, .. } = block;
        Self { source, count, streams: Streams::to(targets) }
    }

    fn few(&self, count: usize) -> SomeRows {
        SomeRows { source: self.source, count }
    }

    fn skip(&mut self, rows: usize, step: usize) {
        self.source = self.source.wrapping_add(rows * step);
        self.count -= rows;
    }

    fn back(&mut self, rows: usize, step: usize, unit: usize) {
        self.source = self.source.wrapping_sub(rows * step);
        self.count += rows;
        self.streams.targets = self.streams.targets.map(|target| target.wrapping_sub(rows * unit));
    }
}
