//! Pieces whose runs are too short to be put together in registers go past the caches by way of a
//! write-combining buffer each.

use super::super::kernel::combine::Scratch;
use super::super::kernel::NonTemporal;
use super::group::{Run, MAX_GROUP};
use super::Rows;
use crate::math::{div_rem, parts};
use core::ops::Range;
use core::ptr::null_mut;

/// The buffers of a group: of 13 pieces, each has as many lines as it can use.
pub(super) type Buffers = Scratch<{ 16 << 10 }>;

impl Rows {
    /// Copies some rows of pieces past the caches, a buffer of each at a time, which `put` fills.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`]. Runs must not be longer than a buffer.
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn combine(
        &self,
        past: &NonTemporal,
        runs: &[Run],
        rows: &Range<usize>,
        put: unsafe fn(&Self, &[Run], &Range<usize>),
    ) {
        if rows.is_empty() {
            return;
        }
        let mut targets = [null_mut(); MAX_GROUP];
        for (slot, run) in targets.iter_mut().zip(runs) {
            *slot = run.target.wrapping_add(rows.start * run.bytes);
        }
        let mut scratch = Buffers::NEW;
        let targets = targets.get(..runs.len()).unwrap_or_default();
        let mut lines = scratch.share::<MAX_GROUP>(targets);
        let longest = runs.iter().map(|run| run.bytes).max().unwrap_or(1);
        let turn = div_rem(Buffers::room(runs.len()), longest).0;
        let offset = runs.first().map_or(0, |run| run.offset);
        for rows in parts(rows.clone(), turn) {
            let first = rows.start;
            (past.prefetch)(
                self.source.wrapping_add(rows.end * self.row + offset),
                turn * self.row,
            );
            let mut buffered = [Run::NONE; MAX_GROUP];
            for ((slot, run), lines) in buffered.iter_mut().zip(runs).zip(&mut lines) {
                *slot = Run { target: lines.room().wrapping_sub(first * run.bytes), ..*run };
            }
            // SAFETY: the caller's promise; a buffer has room for as many bytes.
            unsafe {
                put(self, buffered.get(..runs.len()).unwrap_or_default(), &rows);
                for (run, lines) in runs.iter().zip(&mut lines) {
                    lines.filled(past, rows.len() * run.bytes);
                }
            }
        }
        for (_, lines) in runs.iter().zip(&mut lines) {
            // SAFETY: the caller's promise.
            unsafe { lines.finish() };
        }
    }
}
