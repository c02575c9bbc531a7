//! Pieces whose runs are too short to be put together in registers go past the caches by way of a
//! write-combining buffer each.

use super::super::kernel::combine::{Scratch, WriteCombining};
use super::super::kernel::NonTemporal;
use super::run::Run;
use super::{written, Rows, BLOCK_PAST};
use crate::math::{div, div_ceil, parts};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Pieces that have a buffer at a time, and their buffers: as much of the stack as there is to spare.
const MOST: usize = 8;
type Buffers = Scratch<{ 4 << 10 }>;

/// Whether runs of so many bytes fit into a buffer.
pub(super) fn fits(run: usize) -> bool {
    run <= Buffers::room(MOST)
}

/// Puts some rows of pieces where their runs say.
type Put = unsafe fn(&Rows, &[Run], &Range<usize>);

impl Rows {
    /// Copies some rows of pieces past the caches, by way of buffers which `put` fills.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`]. Runs must fit into a buffer.
    #[inline(never)] // once in the library
    pub(super) unsafe fn combine(
        &self,
        past: &NonTemporal,
        runs: &[Run],
        rows: &Range<usize>,
        put: Put,
    ) {
        // Those of more pieces stay in the second-level cache until all have had their turn.
        let block = if runs.len() > MOST { self.rows_within(BLOCK_PAST) } else { rows.len() };
        let some = div_ceil(runs.len(), div_ceil(runs.len(), MOST)).max(1);
        for rows in parts(rows.clone(), block) {
            for runs in runs.chunks(some) {
                // SAFETY: the caller's promise.
                unsafe { self.combine_some(past, runs, rows.clone(), put) };
            }
        }
    }

    /// The same of as many pieces as there are buffers.
    ///
    /// # Safety
    /// As [`Rows::combine`].
    #[inline(never)] // which takes much of the stack
    unsafe fn combine_some(&self, past: &NonTemporal, runs: &[Run], rows: Range<usize>, put: Put) {
        let mut scratch = Buffers::NEW;
        let mut lines = [WriteCombining::NONE; MOST];
        let lines = lines.get_mut(..runs.len()).unwrap_or_default();
        let target = |run: &Run| run.target.wrapping_add(rows.start * run.bytes);
        scratch.share(lines, runs.iter().map(target));
        let longest = runs.iter().map(|run| run.bytes).max().unwrap_or(1);
        let turn = div(Buffers::room(runs.len()), longest);
        let offset = runs.first().map_or(0, |run| run.offset);
        for rows in parts(rows, turn) {
            let first = rows.start;
            (past.prefetch)(
                self.source.wrapping_add(rows.end * self.row + offset),
                turn * self.row,
            );
            let buffered = |(run, lines): (&Run, &WriteCombining)| Run {
                target: lines.room().wrapping_sub(first * run.bytes),
                ..*run
            };
            let mut room = [const { MaybeUninit::uninit() }; MOST];
            let buffered = written(&mut room, runs.iter().zip(&*lines).map(buffered));
            // SAFETY: the caller's promise; a buffer has room for as many bytes.
            unsafe {
                put(self, buffered, &rows);
                for (run, lines) in runs.iter().zip(&mut *lines) {
                    lines.filled(past, rows.len() * run.bytes);
                }
            }
        }
        for lines in lines {
            // SAFETY: the caller's promise.
            unsafe { lines.finish() };
        }
    }
}
