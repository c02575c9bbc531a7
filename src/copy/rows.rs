//! The canonical form of packed tensors: the input is rows of the whole axis, and each piece takes
//! a run of every row. The element type is gone: only bytes are left.

use super::kernel::{self, Row};
use super::{signed, usize_of};
use crate::plan::{Piece, Plan};
use core::ops::Range;

/// A packed input as rows.
pub(super) struct Rows {
    source: *const u8,
    /// Bytes of a row: of everything from the split axis inward.
    row: usize,
    /// Bytes of one step on the split axis.
    step: usize,
}

impl Rows {
    pub(super) fn new(plan: &Plan<'_>, source: *const u8) -> Self {
        let step = usize_of(plan.inner) * (plan.dtype.bits() as usize / 8);
        Self { source, row: usize_of(plan.extent) * step, step }
    }

    /// Copies the bytes `part` of a piece that has elements to the packed `target`.
    ///
    /// # Safety
    /// The input must be readable and the target writable over the piece.
    pub(super) unsafe fn copy(&self, piece: Piece, target: *mut u8, part: Range<usize>) {
        let run = usize_of(piece.len) * self.step;
        let first = self.source.wrapping_add(usize_of(piece.offset) * self.step);
        let source_at = |byte: usize| first.wrapping_add(byte / run * self.row + byte % run);
        // Whole runs in one row of units, and what a task has of a run at either end.
        let (begin, end) = (part.start.next_multiple_of(run), part.end - part.end % run);
        // SAFETY: all of `part` lies within the piece.
        unsafe {
            if begin > end {
                kernel::copy_bytes(source_at(part.start), target.add(part.start), part.len());
                return;
            }
            if part.start < begin {
                let head = begin - part.start;
                kernel::copy_bytes(source_at(part.start), target.add(part.start), head);
            }
            if begin < end {
                kernel::choose(run)(Row {
                    source: source_at(begin),
                    source_step: signed(self.row),
                    target: target.add(begin),
                    target_step: signed(run),
                    count: (end - begin) / run,
                    unit: run,
                });
            }
            if end < part.end {
                kernel::copy_bytes(source_at(end), target.add(end), part.end - end);
            }
        }
    }
}
