//! Elements of one width, deinterleaved to as many pieces.

use super::super::kernel::combine::LINE;
use super::super::kernel::strided::Axis;
use super::super::kernel::{Deinterleave, MAX_DEINTERLEAVED};
use super::super::visit::Visit;
use super::run::Run;
use super::{written, NextRows, Rows, Tuning};
use crate::math::{div, div_rem, parts, signed};
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::null_mut;

/// Bytes of rows that are taken at a time where there are no loops by lines; and rows, at least.
const BLOCK: usize = 16 << 10;
const BLOCK_ROWS: usize = 64;

impl Rows {
    /// Deinterleaves the first columns of blocks of rows, `row` bytes apart: `width` bytes to each of some
    /// targets, [`MAX_DEINTERLEAVED`] at the most. `next` gives where each block begins and how many rows it has,
    /// when those before have been deinterleaved; it is told how many these are, of as many as there are of
    /// `blocks` that are alike, or 0.
    ///
    /// # Safety
    /// Every row must be readable up to the next, the last one of a block over the columns; every target
    /// must be writable.
    #[inline(never)] // once in the library
    pub(in super::super) unsafe fn deinterleave_columns(
        row: usize,
        width: usize,
        targets: &[*mut u8],
        blocks: Axis,
        tuning: Tuning,
        next: &mut dyn Visit<usize, Option<(*const u8, usize)>>,
    ) {
        let mut rows = Self { more: blocks, ..Self::of_units(width, row, tuning) };
        let mut room = [const { MaybeUninit::uninit() }; MAX_DEINTERLEAVED];
        let run = |(column, first): (usize, &*mut u8)| Run {
            offset: column * width,
            bytes: width,
            first: *first,
            ..Run::NONE
        };
        let runs = written(&mut room, targets.iter().enumerate().map(run));
        let next = &mut |block: &mut Self, runs: &mut [Run]| {
            let at = blocks.extent - block.more.extent;
            (block.source, block.count) = next.visit(at)?;
            block.more.extent = block.more.extent.saturating_sub(1);
            let ahead = blocks.to.wrapping_mul(signed(at));
            for run in runs {
                run.target = run.first.wrapping_offset(ahead);
            }
            Some(0..block.count)
        };
        // SAFETY: the caller's promise.
        unsafe { rows.deinterleave(runs, next) };
    }

    /// Deinterleaves some rows of blocks, an element of each to each target. Blocks are alike but for where
    /// they are and how many rows there are; `next` gives each, with its targets in the runs.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`].
    pub(super) unsafe fn deinterleave(&mut self, runs: &mut [Run], next: &mut NextRows<'_>) {
        let (len, width) = (runs.len(), runs.first().map_or(0, |run| run.bytes));
        let mut next = |block: &mut Self, runs: &mut [Run]| {
            let rows = next(block, runs)?;
            Some(block.whole_lines(runs, &rows))
        };
        let Some(mut rows) = next(self, runs) else { return };
        let Tuning { kernels, non_temporal, .. } = self.tuning;
        let Some(deinterleave_lines) = kernels.deinterleave_lines else {
            loop {
                // SAFETY: the caller's promise.
                unsafe { self.deinterleave_rest(runs, &rows) };
                match next(self, runs) {
                    Some(others) => rows = others,
                    None => return,
                }
            }
        };
        let mut rows_of = self.no_rows();
        self.place(&mut rows_of, runs, &rows);
        let mut next_block = |rows_of: &mut Deinterleave, done| {
            rows.start += done;
            if !rows.is_empty() {
                // SAFETY: the caller's promise.
                unsafe { self.deinterleave_rest(runs, &rows) };
            }
            self.more = rows_of.more;
            let Some(others) = next(self, runs) else { return false };
            rows = others;
            self.place(rows_of, runs, &rows);
            true
        };
        let past = non_temporal.is_some();
        // SAFETY: as above.
        unsafe { deinterleave_lines(&mut rows_of, len, width, past, &mut next_block) };
    }

    /// Where targets begin as far within lines, rows that end where their lines do.
    #[inline(never)] // once in the library
    fn whole_lines(&self, runs: &[Run], rows: &Range<usize>) -> Range<usize> {
        if rows.len() == self.count {
            return rows.clone();
        }
        let Some(&Run { bytes: width, target: first, .. }) = runs.first() else { return 0..0 };
        let begin = |target: *mut u8| target as usize % LINE;
        let (ahead, rest) = div_rem(begin(first), width);
        let is_alike = rest == 0 && runs.iter().all(|run| begin(run.target) == begin(first));
        let ahead = if is_alike { ahead } else { 0 };
        let cut = |row: usize| if row == self.count { row } else { row.saturating_sub(ahead) };
        cut(rows.start)..cut(rows.end)
    }

    /// Deinterleaves what the loops by lines have left.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`].
    unsafe fn deinterleave_rest(&self, runs: &[Run], rows: &Range<usize>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.tuning.non_temporal {
                Some(past) => self.combine(past, runs, rows, Self::deinterleave_through),
                None => self.deinterleave_each(runs, rows),
            }
        }
    }

    /// Deinterleaves through the caches.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`].
    unsafe fn deinterleave_through(&self, runs: &[Run], rows: &Range<usize>) {
        let width = runs.first().map_or(0, |run| run.bytes);
        let mut rows = rows.clone();
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(deinterleave_lines) = self.tuning.kernels.deinterleave_lines {
                // Buffers have no room for the blocks that follow.
                let mut all = self.no_rows();
                self.place(&mut all, runs, &rows);
                all.more = Axis::NONE;
                deinterleave_lines(&mut all, runs.len(), width, false, &mut |_, done| {
                    rows.start += done;
                    false
                });
            }
            self.deinterleave_each(runs, &rows);
        }
    }

    /// Takes one piece after the other from as many rows as stay in the first-level cache.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`].
    #[inline(never)] // once in the library
    unsafe fn deinterleave_each(&self, runs: &[Run], rows: &Range<usize>) {
        for rows in parts(rows.clone(), div(BLOCK, self.row).max(BLOCK_ROWS)) {
            // SAFETY: the caller's promise.
            unsafe { self.gather(runs, &rows) };
        }
    }

    /// None yet of the rows that are deinterleaved.
    fn no_rows(&self) -> Deinterleave {
        Deinterleave {
            source: self.source,
            step: self.row,
            targets: [null_mut(); MAX_DEINTERLEAVED],
            count: 0,
            after: 0,
            prefetch: self.tuning.prefetch,
            more: Axis::NONE,
        }
    }

    /// Makes them some of these.
    fn place(&self, rows_of: &mut Deinterleave, runs: &[Run], rows: &Range<usize>) {
        let offset = runs.first().map_or(0, |run| run.offset);
        for (slot, run) in rows_of.targets.iter_mut().zip(runs) {
            *slot = run.target.wrapping_add(rows.start * run.bytes);
        }
        rows_of.source = self.source.wrapping_add(rows.start * self.row + offset);
        rows_of.count = rows.len();
        rows_of.after = self.count - rows.end;
        rows_of.more = self.more;
    }
}
