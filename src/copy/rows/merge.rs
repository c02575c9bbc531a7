//! Pieces whose runs go past the caches together, in whole lines.

use super::super::kernel::combine::LINE;
use super::super::kernel::strided::{Axis, Place};
use super::super::kernel::{NonTemporal, Stream};
use super::group::MAX_GROUP;
use super::run::Run;
use super::{written, Rows, Tuning};
use crate::math::{div, div_ceil, gcd, parts, rem, signed, wrapped};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Pieces whose runs go past the caches take turns of about this many bytes of input.
const TURN: usize = 1024;
const MOST_OF_LINES: usize = 4 * TURN;

impl Rows {
    /// Copies some rows of pieces past the caches, together.
    ///
    /// # Safety
    /// As [`super::Nest::copy_all`].
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn merge(&self, past: &NonTemporal, runs: &[Run], rows: &Range<usize>) {
        let rows_a_turn = self.rows_a_turn(runs);
        let stream = |run: &Run| {
            let all = self.runs(run);
            let begin = all.line_before(rows.start * run.bytes);
            let first = all.line_after(begin);
            let end = all.line_before(rows.end * run.bytes);
            // SAFETY: the caller's promise.
            unsafe { all.copy_range(self.tuning.kernels, begin..first.min(end)) };
            let due = signed(rows.start * run.bytes) - signed(first);
            Stream { due, turn: signed(rows_a_turn * run.bytes), ..all.stream(first) }
        };
        let mut room = [const { MaybeUninit::uninit() }; MAX_GROUP];
        let streams = written(&mut room, runs.iter().map(stream));
        // SAFETY: as above.
        unsafe {
            let offset = runs.first().map_or(0, |run| run.offset);
            // Rows that lie apart are prefetched whole.
            let ahead = if self.row == self.width {
                self.tuning.prefetch
            } else {
                div_ceil(self.tuning.prefetch, self.width).wrapping_mul(self.row)
            };
            let ahead =
                self.source.wrapping_add(rows.start * self.row + offset).wrapping_add(ahead);
            (past.merge)(streams, div(rows.len(), rows_a_turn), ahead, rows_a_turn * self.row);
            for (stream, run) in streams.iter_mut().zip(runs) {
                stream.turn = signed(rem(rows.len(), rows_a_turn) * run.bytes);
            }
            (past.merge)(streams, 1, ahead.wrapping_add(rows.len() * self.row), 0);
            for (stream, run) in streams.iter().zip(runs) {
                let all = self.runs(run);
                let done = stream.target as usize - run.target as usize;
                let end = all.line_before(rows.end * run.bytes);
                all.copy_range(self.tuning.kernels, done.min(end)..end);
            }
        }
    }

    /// About [`TURN`] bytes of rows, and where there are loops for turns and pieces are equal, such that have whole
    /// lines of each, if these are not many. Zen 4, share of the flat copy: 16×48 bytes .55 for .81, 16×96 .75 for .98,
    /// 8×96 .87 for .98; but us without, of five of 8 to 304 bytes 3,230 for 2,530, of one of 248 1,010 for 780.
    fn rows_a_turn(&self, runs: &[Run]) -> usize {
        let rows = div(TURN, self.row).max(1);
        let bytes = runs.first().map_or(0, |run| run.bytes);
        let whole = div(LINE, gcd(LINE, bytes)).max(1);
        let are_equal = runs.len() > 1 && runs.iter().all(|run| run.bytes == bytes);
        if self.tuning.kernels.by_turns.is_none() || !are_equal || whole * self.row > MOST_OF_LINES
        {
            return rows;
        }
        (rows - rem(rows, whole)).max(whole)
    }

    /// Copies columns of units past the caches: those of a row to a target each.
    ///
    /// # Safety
    /// The columns must be readable, and what lies between them; the targets must be writable.
    #[inline(never)] // which takes much of the stack
    pub(in super::super) unsafe fn merge_columns(
        (source, target): Place,
        unit: usize,
        row: Axis,
        column: Axis,
        past: &NonTemporal,
        tuning: Tuning,
    ) {
        let (count, width) = (row.extent, column.extent * unit);
        let rows = Self { source, count, width, ..Self::of_units(unit, wrapped(row.from), tuning) };
        for some in parts(0..column.extent, MAX_GROUP) {
            let run = |at: usize| {
                let target = target.wrapping_offset(column.to.wrapping_mul(signed(at)));
                Run { offset: at * unit, bytes: unit, target, ..Run::NONE }
            };
            let mut room = [const { MaybeUninit::uninit() }; MAX_GROUP];
            let runs = written(&mut room, some.map(run));
            // SAFETY: the caller's promise.
            unsafe { rows.merge(past, runs, &(0..count)) };
        }
    }
}
