//! Elements that share bytes, of an input in whose memory the rows of a piece lie side by side: a
//! transposed matrix. As many rows as share a byte are put together first: then columns of bytes are columns
//! of the output, and are transposed as such.

use super::kernel::combine::{Scratch, LINE};
use super::kernel::sub_byte::SideBySide;
use super::kernel::transpose::Transpose;
use super::tuning::Tuning;
use super::visit::Visit;
use crate::math;
use core::ops::Range;
use core::ptr::null_mut;

/// A matrix whose columns become rows.
pub(super) struct Transposed<'a> {
    /// How many elements share a byte, as a power of two.
    pub shared: u32,
    /// Its rows, which share bytes evenly; the bits of each are all of its columns'.
    pub rows: SideBySide,
    /// Puts in where columns go to, range after range, and leaves those that go nowhere.
    pub targets: &'a mut dyn for<'t> Visit<(Range<usize>, &'t mut [*mut u8])>,
}

/// Lines of rows that have been put together, which are transposed at a time.
const LINES: usize = LINE;

impl Transposed<'_> {
    /// Copies the matrix.
    ///
    /// # Safety
    /// The bytes with elements of it must be readable, and its columns writable.
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn copy(&mut self, tuning: &Tuning) {
        let mut scratch = Scratch::<{ LINES * LINE + LINE }>::NEW;
        let lines = scratch.as_mut_ptr();
        let nowhere = lines.wrapping_add(LINES * LINE);
        let shared = self.shared;
        let [by_two, by_four] = tuning.kernels.join;
        let join = if shared == 1 { by_two } else { by_four };
        // Columns of a line that have one place in their bytes.
        let of_place = LINE >> shared;
        let of_place_log = of_place.trailing_zeros();
        let columns = (self.rows.bits << shared) / 8;
        let in_bits = |elements: usize| (elements * 8) >> shared;
        for first in (0..columns).step_by(LINE) {
            let some = LINE.min(columns - first);
            let mut columns = [null_mut(); LINE];
            self.targets.visit((first..first + some, columns.get_mut(..some).unwrap_or_default()));
            // By the place in their bytes, as lines have them.
            let mut begins = [null_mut(); LINE];
            for (at, begin) in begins.iter_mut().enumerate() {
                let (place, at) = (at >> of_place_log, at & (of_place - 1));
                *begin = columns.get((at << shared) + place).copied().unwrap_or(null_mut());
            }
            for rows in math::parts(0..self.rows.rows, LINES << shared) {
                let done = rows.start >> shared;
                let rows = self.rows.some(rows, in_bits(first), in_bits(some));
                // SAFETY: the caller's promise; there is room for so many lines.
                unsafe { join(&rows, lines) };
                // Columns of one place in their bytes, but all at once where they make a line.
                let places = if some == LINE { 1 } else { 1 << shared };
                for place in 0..places {
                    let count =
                        if places == 1 { LINE } else { (some + places - 1 - place) >> shared };
                    let begins = begins.iter().skip(place * of_place);
                    let targets = columns.get_mut(..count).unwrap_or_default();
                    for (target, begin) in targets.iter_mut().zip(begins) {
                        *target = if begin.is_null() { nowhere } else { begin.wrapping_add(done) };
                    }
                    let some = (
                        lines.wrapping_add(place * of_place).cast_const(),
                        LINE,
                        rows.rows >> shared,
                    );
                    let some = Transpose::of_bytes(some, targets, lines);
                    // SAFETY: as above; what goes nowhere has no more than a line at a time.
                    unsafe { tuning.kernels.transpose(&some) };
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{Range, SideBySide, Transposed, Tuning};

    const BYTES: usize = 64 << 10;

    /// Elements of so many bits in rows that begin anywhere in a byte, at every level, at the very end of what may
    /// be touched.
    fn check(
        memory: &[Guarded; 2],
        bits: usize,
        first: usize,
        columns: usize,
        [rows, gap]: [usize; 2],
    ) {
        let row = first + columns + gap;
        let source =
            memory[0].place((((rows - 1) * row + first + columns) * bits).div_ceil(8), true);
        let target = memory[1].place(columns * rows * bits / 8, true);
        let element = |bytes: *mut u8, at: usize| {
            // SAFETY: within the memory, by the numbers above.
            unsafe { bytes.add(at * bits / 8).read() >> (at * bits % 8) & ((1 << bits) - 1) }
        };
        let in_bits = |elements: usize| i64::try_from(elements * bits).unwrap();
        // From the last row to the first, or as they lie.
        let backwards = columns.is_multiple_of(3);
        let row_of = |at: usize| if backwards { rows - 1 - at } else { at };
        let begin = in_bits(row_of(0) * row + first);
        let step = in_bits(row) * if backwards { -1 } else { 1 };
        let side_by_side = SideBySide { source, begin, step, rows, bits: columns * bits };
        let shared = if bits == 4 { 1 } else { 2 };
        let mut targets = |(columns, targets): (Range<usize>, &mut [*mut u8])| {
            for (slot, column) in targets.iter_mut().zip(columns) {
                *slot = target.wrapping_add(column * rows * bits / 8);
            }
        };
        for tuning in Tuning::all() {
            let mut transposed = Transposed { shared, rows: side_by_side, targets: &mut targets };
            // SAFETY: source and target are as large as they need be.
            unsafe {
                target.write_bytes(0xEE, columns * rows * bits / 8);
                transposed.copy(&tuning);
            }
            for column in 0..columns {
                for at in 0..rows {
                    let from = element(source, row_of(at) * row + first + column);
                    assert_eq!(element(target, column * rows + at), from, "{columns} × {rows}");
                }
            }
        }
    }

    #[test]
    fn every_number_of_columns_up_to_150() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for columns in 1..=150 {
            for (rows, gap) in [(4, 3), (16, 1), (36, 8), (132, 2), (300, 5)] {
                check(&memory, 4, columns % 2, columns, [rows, gap]);
                check(&memory, 2, columns % 4, columns, [rows, gap]);
            }
        }
    }
}
