//! Elements of one width, dealt out to as many pieces.

use super::super::kernel::lines::{Lines, LINE, STAGE};
use super::super::kernel::{Deal, Past, DEALS, MAX_DEAL};
use super::group::Run;
use super::Rows;
use core::ops::Range;
use core::ptr::null_mut;

impl Rows {
    /// Deals some rows out, an element of each to each target.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    pub(super) unsafe fn deal(&self, runs: &[Run], rows: &Range<usize>) {
        let Some(&Run { offset, bytes: width, target: first }) = runs.first() else { return };
        let begin = |target: *mut u8| target as usize % LINE;
        let alike =
            begin(first) % width == 0 && runs.iter().all(|run| begin(run.target) == begin(first));
        // Blocks end where the targets' lines do, if they have that in common.
        let ahead = if alike { begin(first) / width } else { 0 };
        let cut = |row: usize| if row == self.count { row } else { row.saturating_sub(ahead) };
        let rows = cut(rows.start)..cut(rows.end);
        let mut deal = Deal {
            source: self.source.wrapping_add(rows.start * self.row + offset),
            step: self.row,
            targets: [null_mut(); MAX_DEAL],
            count: rows.len(),
        };
        for (slot, run) in deal.targets.iter_mut().zip(runs) {
            *slot = run.target.wrapping_add(rows.start * width);
        }
        // SAFETY: the caller's promise.
        unsafe {
            match self.tuning.past {
                Some(past) => {
                    if let (true, Some(deal_lines)) = (alike, self.tuning.kernels.deal_lines) {
                        deal.skip(deal_lines(deal, runs.len(), width, true), width);
                    }
                    self.deal_staged(past, deal, runs.len(), width);
                }
                None => self.deal_through(deal, runs.len(), width),
            }
        }
    }

    /// Deals out to as many targets at a time as there is a loop for.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn deal_through(&self, mut deal: Deal, len: usize, width: usize) {
        let kernels = self.tuning.kernels;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(deal_lines) = kernels.deal_lines {
                deal.skip(deal_lines(deal, len, width, false), width);
            }
            let mut left = len;
            while left > 0 {
                let now = DEALS.into_iter().find(|len| *len <= left).unwrap_or(1);
                kernels.deal(deal, width, now);
                deal.targets.rotate_left(now);
                deal.source = deal.source.wrapping_add(now * width);
                left -= now;
            }
        }
    }

    /// Deals out past the caches, by way of a stage for each target.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn deal_staged(&self, past: &Past, mut deal: Deal, len: usize, width: usize) {
        let mut lines = deal.targets.map(Lines::new);
        let lines = lines.get_mut(..len).unwrap_or_default();
        let mut left = deal.count;
        while left > 0 {
            deal.count = left.min(STAGE / width);
            for (slot, lines) in deal.targets.iter_mut().zip(lines.iter_mut()) {
                *slot = lines.room();
            }
            // SAFETY: the caller's promise; a stage has room for STAGE bytes.
            unsafe {
                self.deal_through(deal, len, width);
                for lines in lines.iter_mut() {
                    lines.filled(past, deal.count * width);
                }
            }
            deal.source = deal.source.wrapping_add(deal.count * self.row);
            left -= deal.count;
        }
        for lines in lines {
            // SAFETY: the caller's promise.
            unsafe { lines.finish() };
        }
    }
}

impl Deal {
    /// Leaves the first rows out.
    fn skip(&mut self, rows: usize, width: usize) {
        self.source = self.source.wrapping_add(rows * self.step);
        self.targets = self.targets.map(|target| target.wrapping_add(rows * width));
        self.count -= rows;
    }
}
