//! Pieces whose runs are too short to be put together in registers go past the caches by way of a
//! stage each.

use super::super::kernel::combine::Scratch;
use super::super::kernel::NonTemporal;
use super::group::{Run, MAX_GROUP};
use super::Rows;
use crate::math::{div_rem, parts};
use core::ops::Range;
use core::ptr::null_mut;

/// The stages of a group: of 13 pieces, each has as many lines as it can use.
pub(super) type Stages = Scratch<{ 16 << 10 }>;

impl Rows {
    /// Copies some rows of pieces past the caches, a stage of each at a time, which `put` fills.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`]. Runs must not be longer than a stage.
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn stage(
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
        let mut scratch = Stages::NEW;
        let targets = targets.get(..runs.len()).unwrap_or_default();
        let mut lines = scratch.share::<MAX_GROUP>(targets);
        let longest = runs.iter().map(|run| run.bytes).max().unwrap_or(1);
        let turn = div_rem(Stages::room(runs.len()), longest).0;
        let offset = runs.first().map_or(0, |run| run.offset);
        for rows in parts(rows.clone(), turn) {
            let first = rows.start;
            (past.prefetch)(
                self.source.wrapping_add(rows.end * self.row + offset),
                turn * self.row,
            );
            let mut staged = [Run::NONE; MAX_GROUP];
            for ((slot, run), lines) in staged.iter_mut().zip(runs).zip(&mut lines) {
                *slot = Run { target: lines.room().wrapping_sub(first * run.bytes), ..*run };
            }
            // SAFETY: the caller's promise; a stage has room for as many bytes.
            unsafe {
                put(self, staged.get(..runs.len()).unwrap_or_default(), &rows);
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
