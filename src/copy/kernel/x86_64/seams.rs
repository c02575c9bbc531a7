//! Rows of many blocks by byte permutes: those of a part of a picture.
//!
//! The idea: where a block ends between two steps, its last step begins earlier, and takes some rows once
//! more. That costs less than masks, and than to begin with whole lines of targets: 1,060 rows of 1,900
//! pixels of three bytes took 88 ns each, 89 with a first step up to the line, 91 with steps of rows of
//! two blocks, and 86 as one block.
//!
//! Past the caches, where stores are of whole lines, what is left of a block is taken together with the
//! first rows of the next one, if targets go on with these.
//!
//! # Safety
//! That of `permute.rs`.

use super::super::combine::LINE;
use super::super::{Deinterleave, NextBlock};
use super::permute::{Few, How, Layout, Permute, MOST_PIECES};
use crate::math::{div_ceil, div_rem};

/// How blocks are taken.
pub(super) struct Seams<'a> {
    permute: &'a Permute<'a>,
    /// Rows that a step reads behind its own, and such that it stores to.
    read: usize,
    stored: usize,
    /// Rows of the last block, and behind it, and the steps that these were.
    last: (usize, usize),
    steps: usize,
}

/// Blocks of so many steps had better begin with a line of the first target.
const LONG: usize = 64;

impl<'a> Seams<'a> {
    pub(super) fn new(permute: &'a Permute<'a>) -> Self {
        let Layout { unit, width, step, rows: each, registers, apart, .. } = permute.layout;
        let reach = (registers - 1) * apart + LINE;
        let read = div_ceil(reach.saturating_sub((each - 1) * step + width), step);
        let stored = div_ceil(LINE - each * unit, unit);
        Self { permute, read, stored, last: (0, 0), steps: 0 }
    }

    pub(super) fn is_short(&self, block: &Deinterleave) -> bool {
        block.count < LONG * self.permute.layout.rows
    }

    /// Takes the rows of a block through the caches.
    ///
    /// # Safety
    /// 1, 2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn through(&mut self, block: &Deinterleave) {
        let &mut Self { permute, read, stored, .. } = self;
        let Layout { step, unit, rows: each, .. } = permute.layout;
        let how = How { ahead: 0, past: false };
        let overlaps = read + stored == 0 && block.count >= each;
        let mut left = Left::new(block);
        // SAFETY: the caller's promise.
        unsafe {
            if (left.count, block.after) != self.last {
                self.last = (left.count, block.after);
                self.steps = self.steps(left.count, block.after);
            }
            (permute.run)(permute, left.source, &left.targets, self.steps, how);
            left.skip(self.steps * each, step, unit);
            if left.count > 0 && overlaps {
                left.back(each - left.count, step, unit);
                return (permute.run)(permute, left.source, &left.targets, 1, how);
            }
            while left.count > 0 {
                let few = each.min(left.count);
                permute.masked(left.few(few), Few::NONE, &left.targets, false);
                left.skip(few, step, unit);
            }
        }
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
        let &Self { permute, .. } = self;
        let Layout { pieces, unit, step, rows: each, .. } = permute.layout;
        let how = How { ahead: block.prefetch, past: true };
        let mut left = Left::new(block);
        // SAFETY: the caller's promise.
        unsafe {
            let lead = self.lead(&left.targets).min(left.count);
            if lead > 0 {
                permute.masked(left.few(lead), Few::NONE, &left.targets, false);
                left.skip(lead, step, unit);
            }
            loop {
                let steps = self.steps(left.count, block.after);
                (permute.run)(permute, left.source, &left.targets, steps, how);
                left.skip(steps * each, step, unit);
                while left.count >= each {
                    permute.masked(left.few(each), Few::NONE, &left.targets, true);
                    left.skip(each, step, unit);
                }
                let done = block.count;
                let is_another = next(block, done);
                let more = if left.count > 0 { each - left.count } else { 0 };
                let ends = left.targets.iter().map(|target| target.wrapping_add(left.count * unit));
                let goes_on = is_another
                    && block.count >= more
                    && ends.zip(&block.targets).take(pieces).all(|(end, target)| end == *target);
                let others = Few { source: block.source, count: if goes_on { more } else { 0 } };
                if left.count > 0 {
                    permute.masked(left.few(left.count), others, &left.targets, goes_on);
                }
                if !goes_on {
                    return is_another;
                }
                left = Left::new(block);
                left.skip(more, step, unit);
            }
        }
    }

    /// Rows up to where the first target begins a line, if steps fill lines.
    fn lead(&self, targets: &[*mut u8; MOST_PIECES]) -> usize {
        let Layout { unit, rows: each, .. } = self.permute.layout;
        let [first, ..] = targets;
        match div_rem((*first as usize).wrapping_neg() % LINE, unit) {
            (lead, 0) if each * unit == LINE => lead,
            _ => 0,
        }
    }

    /// So many steps can be taken in so many rows, which others follow that can be read.
    fn steps(&self, count: usize, after: usize) -> usize {
        let &Self { permute, read, stored, .. } = self;
        let rows =
            count.min((count + after).saturating_sub(read)).min(count.saturating_sub(stored));
        div_rem(rows, permute.layout.rows).0
    }
}

/// Rows of a block that are still to be taken.
struct Left {
    source: *const u8,
    count: usize,
    targets: [*mut u8; MOST_PIECES],
}

impl Left {
    fn new(block: &Deinterleave) -> Self {
        let &Deinterleave { source, count, ref targets, .. } = block;
        let [first, second, third, fourth, fifth, ..] = *targets;
        Self { source, count, targets: [first, second, third, fourth, fifth] }
    }

    fn few(&self, count: usize) -> Few {
        Few { source: self.source, count }
    }

    fn skip(&mut self, rows: usize, step: usize, unit: usize) {
        self.source = self.source.wrapping_add(rows * step);
        self.count -= rows;
        self.targets = self.targets.map(|target| target.wrapping_add(rows * unit));
    }

    fn back(&mut self, rows: usize, step: usize, unit: usize) {
        self.source = self.source.wrapping_sub(rows * step);
        self.count += rows;
        self.targets = self.targets.map(|target| target.wrapping_sub(rows * unit));
    }
}
