//! Equal short runs of many pieces: to two of them at a time.
//!
//! The idea: on Zen 5 two streams of stores take the time of one; from three on, those that cross a line
//! take twice as long. So few rows at a time are gone through once for each two pieces.
//!
//! Past the caches, runs are put together in a scratch, of which whole lines go on. What the last line lacks
//! comes with the next rows: they begin with the last ones before them once more.

use super::super::kernel::combine::{Scratch, LINE};
use super::super::kernel::{Gather, NonTemporal, MAX_DEINTERLEAVED};
use super::run::Run;
use super::{Nest, Rows, BLOCK_PAST};
use crate::math::{div, div_ceil, parts};
use crate::parts::{Iter, Part};
use core::ops::Range;

/// Rows at a time, at the most: the lines of these that two pieces are in stay in the first-level cache.
const ROWS: usize = 256;
/// Shorter runs do better by permutes, and those of so few pieces that are longer than half a line all at a
/// time, or that go past the caches by other buffers.
const LEAST: usize = 9;
const FEW: usize = 24;
const FEW_PAST: usize = 32;
/// Bytes of a scratch, and those of it that runs may take.
const SCRATCH: usize = 2 << 10;
const ROOM: usize = SCRATCH - 4 * LINE;

/// As `Kernels::pair`.
type Pair = unsafe fn([Gather; 2], bool);

impl Nest<'_> {
    /// Copies what all pieces have in a range of rows, if they are many, alike, and their runs short; whether
    /// they were.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    pub(super) unsafe fn copy_pairs(&self, all: &Iter<'_>, rows: &Range<usize>) -> bool {
        let (block, past) = (&self.block, self.block.tuning.non_temporal);
        let Some(pair) = block.tuning.kernels.pair.filter(|_| self.is_one_block()) else {
            return false;
        };
        let Some(Part { len, .. }) = all.clone().next() else { return false };
        let unit = block.bytes(len);
        let (few, longest, most) = match past {
            Some(_) => (FEW_PAST, LINE - 1, div(ROOM, unit.max(1))),
            None if unit > LINE / 2 => (FEW, LINE, ROWS),
            None => (MAX_DEINTERLEAVED, LINE, ROWS),
        };
        let most = block.rows_within(BLOCK_PAST).min(most);
        if all.most() <= few
            || !(LEAST..=longest).contains(&unit)
            || !all.clone().all(|part| part.len == len)
        {
            return false;
        }
        for some in parts(rows.clone(), most) {
            // SAFETY: the caller's promise.
            unsafe {
                match past {
                    Some(past) => block.send_pairs(pair, past, all, &some, rows),
                    None => block.pairs(all.clone(), &mut |runs| {
                        pair(runs.map(|run| block.some_runs(&run, &some)), some.end == rows.end);
                    }),
                }
            }
        }
        block.tuning.finish();
        true
    }
}

impl Rows {
    /// Visits two pieces at a time; a single one as both.
    fn pairs(&self, mut all: Iter<'_>, visit: &mut dyn FnMut([Run; 2])) {
        while let Some(first) = all.next() {
            visit([first, all.next().unwrap_or(first)].map(|part| self.run(&part)));
        }
    }

    /// Copies some of a range of rows past the caches. Does not wait for the stores.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // which takes some of the stack
    unsafe fn send_pairs(
        &self,
        pair: Pair,
        past: &NonTemporal,
        all: &Iter<'_>,
        some: &Range<usize>,
        range: &Range<usize>,
    ) {
        let mut scratch = Scratch::<{ 2 * SCRATCH }>::NEW;
        let scratch = scratch.as_mut_ptr();
        let share = div(some.len() * self.row, div_ceil(all.most(), 2));
        let mut soon = self.source.wrapping_add(some.end * self.row);
        self.pairs(all.clone(), &mut |runs| {
            (past.prefetch)(soon, share);
            soon = soon.wrapping_add(share);
            let [first, second] = runs;
            let again = div_ceil(LINE, first.bytes);
            let rows = some.start.saturating_sub(again).max(range.start)..some.end;
            let gathers = [(first, scratch), (second, scratch.wrapping_add(SCRATCH))];
            let gathers = gathers.map(|(run, scratch)| {
                let gather = self.some_runs(&run, &rows);
                Gather { target: scratch.wrapping_add(gather.target as usize % LINE), ..gather }
            });
            // SAFETY: the caller's promise; the scratch has room for as many rows.
            unsafe {
                pair(gathers, some.end == range.end);
                for (run, gather) in runs.into_iter().zip(gathers) {
                    self.send(past, &run, gather.target, (&rows, some, range));
                }
            }
        });
    }

    /// Sends a piece's runs of some rows off, which lie one behind the other from the first of more rows on: all
    /// whole lines, and what else there is at the ends of a range of rows.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    unsafe fn send(
        &self,
        past: &NonTemporal,
        run: &Run,
        scratch: *const u8,
        (rows, some, range): (&Range<usize>, &Range<usize>, &Range<usize>),
    ) {
        let all = self.runs(run);
        let (begin, end) = (some.start * run.bytes, some.end * run.bytes);
        let is_first = some.start == range.start;
        let first = if is_first { all.line_after(begin).min(end) } else { all.line_floor(begin) };
        let last = all.line_floor(end).max(first);
        let head = if is_first { begin } else { first };
        let tail = if some.end == range.end { end } else { last };
        let source = scratch.wrapping_sub(rows.start * run.bytes);
        let copy = self.tuning.kernels.copy;
        let place = |byte: usize| (source.wrapping_add(byte), all.target.wrapping_add(byte));
        // SAFETY: the caller's promise.
        unsafe {
            for (bytes, copy) in
                [(head..first, copy), (first..last, past.stream), (last..tail, copy)]
            {
                let (source, target) = place(bytes.start);
                copy(source, target, bytes.len());
            }
        }
    }
}
