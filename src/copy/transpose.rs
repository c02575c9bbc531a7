//! A transpose of any size: which part of it the loops get at a time.

use super::kernel::lines::LINE;
use super::kernel::transpose::{Transpose, STRIP};
use core::ops::Range;
use core::ptr::null_mut;

/// `rows` rows, `step` bytes apart (backwards: wrapped), of `count` contiguous units of `unit`
/// bytes. Unit `i` of every row goes to `target(i)`, one behind the other.
pub(super) struct Columns<F> {
    pub source: *const u8,
    pub step: usize,
    pub rows: usize,
    pub count: usize,
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
        let head = if streams && self.count > STRIP { self.rows_to_line() } else { None };
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
        let is_common = missing % self.unit == 0 && (1..self.count).all(|at| owed(at) == owed(0));
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
        for first in (0..self.count).step_by(strip) {
            let targets = targets.get_mut(..strip.min(self.count - first)).unwrap_or_default();
            for (column, target) in (first..).zip(targets.iter_mut()) {
                *target = (self.target)(column).wrapping_add(rows.start * unit);
            }
            let source = source.wrapping_add(first * unit);
            // Strips go down all rows, or from one end of some rows to the other.
            let ahead = if rows.len() == self.rows {
                step.wrapping_mul(LINE / unit)
            } else if first + strip < self.count {
                strip * unit
            } else {
                step.wrapping_mul(rows.len()).wrapping_sub(first * unit)
            };
            // SAFETY: the caller's promise.
            unsafe {
                kernel(&Transpose { source, step, rows: rows.len(), targets, streams, ahead });
            };
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{Columns, LINE, STRIP};
    use crate::copy::kernel::levels;

    const BYTES: usize = 1 << 20;

    /// Where the targets of a transpose begin: `apart` bytes from each other, a gap included.
    fn apart(len: usize, layout: usize) -> usize {
        match layout {
            0 => len,
            1 => len + 5,
            _ => len.next_multiple_of(LINE),
        }
    }

    /// Transposes at the very end, or the very begin, of memory that may be touched, at every
    /// level, past the caches or not; compared unit by unit, and gaps with what was there before.
    fn check(memory: &[Guarded; 2], unit: usize, rows: usize, columns: usize, variant: usize) {
        let [source, target] = memory;
        let (layout, at_end, backwards) = (variant % 3, variant / 3 % 2 == 0, variant / 6 % 2 == 1);
        let pitch = columns * unit + [0, 3, 64][variant % 7 % 3];
        let (len, apart) = (rows * unit, apart(rows * unit, layout));
        let first = source.place((rows - 1) * pitch + columns * unit, at_end);
        let out_bytes = (columns - 1) * apart + len;
        let out = target.place(out_bytes, at_end);
        let row_at =
            |row: usize| first.wrapping_add(pitch * if backwards { rows - 1 - row } else { row });
        let step = if backwards { pitch.wrapping_neg() } else { pitch };
        let mut expected = vec![0xEE; out_bytes];
        for column in 0..columns {
            for row in 0..rows {
                let from = row_at(row).wrapping_add(column * unit);
                // SAFETY: that many bytes are there.
                let from = unsafe { std::slice::from_raw_parts(from, unit) };
                expected[column * apart + row * unit..][..unit].copy_from_slice(from);
            }
        }
        let transpose = Columns {
            source: row_at(0),
            step,
            rows,
            count: columns,
            unit,
            target: |column| out.wrapping_add(column * apart),
        };
        for kernels in levels() {
            for past in [None, kernels.past.as_ref()] {
                // SAFETY: source and target have that many rows.
                let copied = unsafe {
                    out.write_bytes(0xEE, out_bytes);
                    transpose.copy(kernels.transpose(unit).unwrap(), past.is_some());
                    std::slice::from_raw_parts(out, out_bytes)
                };
                assert!(copied == expected, "{unit} B [{rows}, {columns}], variant {variant}");
            }
        }
    }

    #[test]
    fn every_extent_up_to_70_each_way() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for rows in 1..=70 {
                for columns in 1..=70 {
                    check(&memory, unit, rows, columns, rows * 5 + columns);
                }
            }
        }
    }

    #[test]
    fn more_columns_than_a_strip_and_many_lines_of_rows() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for rows in [1, 4 * LINE / unit, 5 * LINE / unit - 1, 9 * LINE / unit + 1] {
                for columns in [STRIP - 1, STRIP, STRIP + 1, 2 * STRIP + 17] {
                    for variant in 0..12 {
                        check(&memory, unit, rows, columns, variant);
                    }
                }
            }
        }
    }
}
