//! Elements that share bytes, of an input in whose memory the rows of a piece lie side by side: a
//! transposed matrix. The bytes are turned as such, some of them at a time, and then each row has its
//! elements taken out of them.

use super::columns::{Columns, Targets};
use super::tuning::Tuning;
use super::{signed, wrapped};
use core::mem::MaybeUninit;

/// A matrix whose columns become rows.
pub(super) struct Turned {
    /// How many elements share a byte, as a power of two.
    pub shared: u32,
    /// The byte with the first element, which so many others in it lie before.
    pub source: *const u8,
    pub first: usize,
    /// Bytes from a row to the next.
    pub step: isize,
    /// Elements of a column, which are whole bytes.
    pub rows: usize,
    pub columns: usize,
    pub target: *mut u8,
}

/// Rows and bytes of them that are turned at a time.
const ROWS: usize = 128;
const BYTES: usize = 32;

impl Turned {
    /// Copies the matrix.
    ///
    /// # Safety
    /// The bytes with elements of it must be readable, and its columns writable.
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn copy(&self, tuning: Tuning) {
        let mut bytes = [const { MaybeUninit::<u8>::uninit() }; ROWS * BYTES];
        let bytes = bytes.as_mut_ptr().cast::<u8>();
        let [nibbles, crumbs] = tuning.kernels.take;
        let take = if self.shared == 1 { nibbles } else { crumbs };
        let shared = 1 << self.shared;
        let end = self.first + self.columns;
        let width = (BYTES * shared).max(1);
        for at in (0..end).step_by(width) {
            let columns = at.max(self.first)..end.min(at + width);
            for row in (0..self.rows).step_by(ROWS) {
                let rows = ROWS.min(self.rows - row);
                let source = self.source.wrapping_add(at >> self.shared);
                let count = (columns.end - at + shared - 1) >> self.shared;
                // SAFETY: the caller's promise; there is room for so many rows of so many bytes.
                unsafe {
                    Columns {
                        source: source.wrapping_offset(self.step.wrapping_mul(signed(row))),
                        step: wrapped(self.step),
                        rows,
                        unit: 1,
                        count,
                        targets: &Targets { first: Some(bytes), apart: ROWS, count }.only(),
                    }
                    .copy(tuning.through_caches());
                    for column in columns.clone() {
                        let own = bytes.add(((column - at) >> self.shared) * ROWS);
                        let ahead = ((column - self.first) * self.rows + row) >> self.shared;
                        take(
                            own,
                            ((column * 8) >> self.shared) % 8,
                            self.target.wrapping_add(ahead),
                            rows >> self.shared,
                        );
                    }
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{Tuning, Turned};
    use crate::copy::signed;

    const BYTES: usize = 64 << 10;

    /// 4-bit elements, at every level, at the very end of what may be touched.
    fn check(memory: &[Guarded; 2], first: usize, columns: usize, rows: usize) {
        let row = (first + columns).div_ceil(2);
        let step = row + 3;
        let source = memory[0].place((rows - 1) * step + row, true);
        let target = memory[1].place(columns * rows / 2, true);
        let nibble = |bytes: *mut u8, at: usize| {
            // SAFETY: within the memory, by the numbers above.
            unsafe { bytes.add(at / 2).read() >> (at % 2 * 4) & 15 }
        };
        for tuning in Tuning::all() {
            let turned =
                Turned { shared: 1, source, first, step: signed(step), rows, columns, target };
            // SAFETY: source and target are as large as they need be.
            unsafe { turned.copy(tuning) };
            for column in 0..columns {
                for row in 0..rows {
                    let from = nibble(source.wrapping_add(row * step), first + column);
                    assert_eq!(nibble(target, column * rows + row), from, "{columns} × {rows}");
                }
            }
        }
    }

    #[test]
    fn every_number_of_columns_up_to_150() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for columns in 1..=150 {
            for rows in [2, 16, 34, 130] {
                check(&memory, columns % 2, columns, rows);
            }
        }
    }
}
