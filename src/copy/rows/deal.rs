//! Elements of one width, dealt out to as many pieces.

use super::super::kernel::combine::LINE;
use super::super::kernel::{Deinterleave, COUNTS, MAX_DEINTERLEAVED};
use super::group::Run;
use super::{Rows, Tuning};
use crate::math::div_rem;
use core::ops::Range;
use core::ptr::null_mut;

impl Rows {
    /// Deals the first columns of some rows, `row` bytes apart, out: `width` bytes to each of some
    /// targets, [`MAX_DEINTERLEAVED`] at the most.
    ///
    /// # Safety
    /// Every row must be readable up to the next, the last one over the columns; every target must
    /// be writable.
    pub(in super::super) unsafe fn deal_columns(
        source: *const u8,
        row: usize,
        count: usize,
        width: usize,
        targets: &[*mut u8],
        tuning: Tuning,
    ) {
        let rows = Self { source, count, row, width: row, step: width, shared: 0, tuning };
        let mut runs = [Run { bytes: width, ..Run::NONE }; MAX_DEINTERLEAVED];
        for (column, (run, target)) in runs.iter_mut().zip(targets).enumerate() {
            *run = Run { offset: column * width, target: *target, ..*run };
        }
        // SAFETY: the caller's promise.
        unsafe { rows.deal(runs.get(..targets.len()).unwrap_or_default(), &(0..count)) };
    }

    /// Deals some rows out, an element of each to each target.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`].
    pub(super) unsafe fn deal(&self, runs: &[Run], rows: &Range<usize>) {
        let Some(&Run { bytes: width, target: first, .. }) = runs.first() else { return };
        let begin = |target: *mut u8| target as usize % LINE;
        let alike = div_rem(begin(first), width).1 == 0
            && runs.iter().all(|run| begin(run.target) == begin(first));
        // Blocks end where the targets' lines do, if they have that in common.
        let ahead = if alike { div_rem(begin(first), width).0 } else { 0 };
        let cut = |row: usize| if row == self.count { row } else { row.saturating_sub(ahead) };
        let mut rows = cut(rows.start)..cut(rows.end);
        // SAFETY: the caller's promise.
        unsafe {
            match self.tuning.non_temporal {
                Some(past) => {
                    if let Some(deinterleave_lines) = self.tuning.kernels.deinterleave_lines {
                        rows.start +=
                            deinterleave_lines(self.rows_of(runs, &rows), runs.len(), width, true);
                    }
                    self.stage(past, runs, &rows, Self::deal_through);
                }
                None => self.deal_through(runs, &rows),
            }
        }
    }

    /// Deals out to as many targets at a time as there is a loop for.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`].
    unsafe fn deal_through(&self, runs: &[Run], rows: &Range<usize>) {
        let width = runs.first().map_or(0, |run| run.bytes);
        let kernels = self.tuning.kernels;
        let mut deal = self.rows_of(runs, rows);
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(deinterleave_lines) = kernels.deinterleave_lines {
                deal.skip(deinterleave_lines(deal, runs.len(), width, false), width);
            }
            let mut left = runs.len();
            while left > 0 {
                let now = COUNTS.into_iter().find(|len| *len <= left).unwrap_or(1);
                kernels.deinterleave(deal, width, now);
                deal.targets.rotate_left(now);
                deal.source = deal.source.wrapping_add(now * width);
                left -= now;
            }
        }
    }

    /// Rows as they are dealt out.
    fn rows_of(&self, runs: &[Run], rows: &Range<usize>) -> Deinterleave {
        let offset = runs.first().map_or(0, |run| run.offset);
        let mut targets = [null_mut(); MAX_DEINTERLEAVED];
        for (slot, run) in targets.iter_mut().zip(runs) {
            *slot = run.target.wrapping_add(rows.start * run.bytes);
        }
        Deinterleave {
            source: self.source.wrapping_add(rows.start * self.row + offset),
            step: self.row,
            targets,
            count: rows.len(),
            after: self.count - rows.end,
            prefetch: self.tuning.prefetch,
        }
    }
}
