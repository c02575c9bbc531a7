//! A transpose of any size: which part of it the loops get at a time.

use super::kernel::lines::LINE;
use super::kernel::transpose::{Transpose, STRIP};
use core::ops::Range;
use core::ptr::null_mut;

/// `rows` rows, `step` bytes apart (backwards: wrapped), of `columns` contiguous units of `unit`
/// bytes. Unit `i` of every row goes to `target(i)`, one behind the other.
pub(super) struct Columns<F> {
    pub source: *const u8,
    pub step: usize,
    pub rows: usize,
    pub columns: usize,
    pub unit: usize,
    pub target: F,
}

/// Targets of fewer lines than this are not worth going past the caches for.
const MIN_STREAMED: usize = 4;
/// Lines of targets, and of rows, that are turned at a time where whole rows are read.
const HEIGHT: usize = 2;
const WIDTH: usize = 2;

impl<F: Fn(usize) -> *mut u8> Columns<F> {
    /// Copies them by the loop for their width, past the caches or not.
    ///
    /// # Safety
    /// All rows must be readable and all targets writable; they do not overlap.
    pub(super) unsafe fn copy(&self, kernel: unsafe fn(&Transpose<'_>), streams: bool) {
        let streams = streams && self.rows * self.unit >= MIN_STREAMED * LINE;
        let head = if streams && self.columns > STRIP { self.rows_to_line() } else { None };
        // SAFETY: the caller's promise.
        unsafe {
            let Some(head) = head else {
                return self.copy_rows(kernel, 0..self.rows, STRIP, streams);
            };
            // Few lines of every target at a time: so rows are read from one end to the other,
            // which is what CPUs are ahead of.
            self.copy_rows(kernel, 0..head, STRIP, false);
            let side = LINE / self.unit;
            for first in (head..self.rows).step_by(HEIGHT * side) {
                let rows = first..self.rows.min(first + HEIGHT * side);
                self.copy_rows(kernel, rows, STRIP.min(WIDTH * side), true);
            }
        }
    }

    /// The first row whose units begin a line of their targets, if it is the same for all.
    fn rows_to_line(&self) -> Option<usize> {
        let owed = |column: usize| (self.target)(column) as usize % LINE;
        let missing = (LINE - owed(0)) % LINE;
        let is_common = missing % self.unit == 0 && (1..self.columns).all(|at| owed(at) == owed(0));
        is_common.then_some(missing / self.unit)
    }

    /// Copies some of the rows.
    ///
    /// # Safety
    /// As [`Columns::copy`].
    unsafe fn copy_rows(
        &self,
        kernel: unsafe fn(&Transpose<'_>),
        rows: Range<usize>,
        strip: usize,
        streams: bool,
    ) {
        let &Self { step, unit, .. } = self;
        let source = self.source.wrapping_add(step.wrapping_mul(rows.start));
        let mut targets = [null_mut(); STRIP];
        for first in (0..self.columns).step_by(strip) {
            let targets = targets.get_mut(..strip.min(self.columns - first)).unwrap_or_default();
            for (column, target) in (first..).zip(targets.iter_mut()) {
                *target = (self.target)(column).wrapping_add(rows.start * unit);
            }
            let source = source.wrapping_add(first * unit);
            // Strips go down all rows, or from one end of some rows to the other.
            let ahead = if rows.len() == self.rows {
                step.wrapping_mul(LINE / unit)
            } else if first + strip < self.columns {
                strip * unit
            } else {
                step.wrapping_mul(rows.len()).wrapping_sub(first * unit)
            };
            // SAFETY: the caller's promise.
            unsafe {
                kernel(&Transpose { source, step, rows: rows.len(), targets, streams, ahead })
            };
        }
    }
}
