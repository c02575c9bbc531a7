//! Elements that share bytes, of an input in whose memory the rows of a piece lie side by side: a
//! transposed matrix. As many rows as share a byte are put together first: then columns of bytes are columns
//! of the output, and are transposed as such. Where those begin within bytes, all that have one place in the bytes of
//! rows begin alike: they have a turn of their own, from the row on that is the first of a whole byte of theirs.

use super::kernel::bits::byte;
use super::kernel::combine::{Scratch, LINE};
use super::kernel::sub_byte::SideBySide;
use super::kernel::transpose::Transpose;
use super::tuning::Tuning;
use super::visit::Visit;
use crate::error::number;
use crate::math;
use crate::shape::usize_of;
use core::ops::Range;
use core::ptr::null_mut;

/// A matrix whose columns become rows.
pub(super) struct Transposed<'a> {
    /// How many elements share a byte, as a power of two.
    pub shared: u32,
    /// Its rows, which share bytes evenly; the bits of each are all of its columns'.
    pub rows: SideBySide,
    /// Whether only columns at one place in their bytes are wanted, and at which one.
    pub only: Option<usize>,
    /// Puts in where columns go to, range after range, and leaves those that go nowhere.
    pub targets: &'a mut dyn for<'t> Visit<(Range<usize>, &'t mut [*mut u8])>,
}

/// A matrix whose columns become runs of bits, one behind the other, which begin anywhere in a byte.
pub(super) struct BitColumns {
    /// How many elements share a byte, as a power of two.
    pub shared: u32,
    /// Its rows; the bits of each are all of its columns'.
    pub rows: SideBySide,
    /// Bits of a column, a byte or more, and those of the first one that are in the byte before, fewer than eight.
    pub bits: i64,
    pub before: i64,
}

impl BitColumns {
    /// How many whole bytes they become, but for the one before.
    pub(super) fn bytes(&self) -> usize {
        usize_of(self.begin(self.count()) >> 3)
    }

    fn count(&self) -> usize {
        (self.rows.bits << self.shared) / 8
    }

    /// The bit that a column begins with.
    fn begin(&self, column: usize) -> i64 {
        number(column).wrapping_mul(self.bits).wrapping_sub(self.before)
    }

    /// Copies all that are whole bytes: where columns begin within them, those at each place in the bytes of rows
    /// for themselves, for which it is the same, and then the bytes that two columns share.
    ///
    /// # Safety
    /// As [`Transposed::copy`].
    #[inline(never)] // which takes some of the stack
    pub(super) unsafe fn copy(&self, target: *mut u8, tuning: &Tuning) {
        let shared = self.shared;
        let are_whole = (self.bits | self.before).trailing_zeros() >= 3;
        let mut targets = |(columns, targets): (Range<usize>, &mut [*mut u8])| {
            self.place(target, columns, targets);
        };
        for place in 0..if are_whole { 1 } else { 1 << shared } {
            let within = self.begin(place).wrapping_neg() & 7;
            let first = usize_of(within << shared) / 8;
            let rows = usize_of((self.bits - within) >> 3) << shared;
            let rows = self.rows.some(first..first + rows, 0, self.rows.bits);
            let only = Some(place).filter(|_| !are_whole);
            // SAFETY: the caller's promise.
            unsafe { Transposed { shared, rows, only, targets: &mut targets }.copy(tuning) };
        }
        let all = if are_whole { 0 } else { self.count() };
        for column in 1..all {
            if self.begin(column) & 7 != 0 {
                // SAFETY: as above.
                unsafe { self.join_ends(column, target) };
            }
        }
    }

    /// Where whole bytes of columns begin.
    #[inline(never)] // or it is in the library twice, as the shims of closures are
    fn place(&self, target: *mut u8, columns: Range<usize>, targets: &mut [*mut u8]) {
        let mut end = self.begin(columns.start) + 7;
        for slot in targets {
            *slot = target.wrapping_add(usize_of(end >> 3));
            end += self.bits;
        }
    }

    /// Copies the byte that a column shares with the one before.
    ///
    /// # Safety
    /// As [`BitColumns::copy`].
    unsafe fn join_ends(&self, column: usize, target: *mut u8) {
        let (begin, each) = (self.begin(column), 8 >> self.shared);
        let SideBySide { source, begin: first, step, .. } = self.rows;
        let (mut joined, mut place) = (0, 0);
        while place < 8 {
            // From where the column begins, which is within the byte.
            let from = (begin & !7) + number(place) - begin;
            let (column, bit) =
                if from < 0 { (column - 1, from + self.bits) } else { (column, from) };
            let row = (bit << self.shared) >> 3;
            let at = first.wrapping_add(row.wrapping_mul(step)).wrapping_add(number(column * each));
            // SAFETY: the caller's promise.
            let bits = unsafe { byte(source, at).read() } >> (at & 7);
            joined |= (bits & ((1 << each) - 1)) << place;
            place += each;
        }
        // SAFETY: as above.
        unsafe { target.wrapping_add(usize_of(begin >> 3)).write(joined) };
    }
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
                let (places, wanted) = match self.only {
                    Some(place) => (1 << shared, place..place + 1),
                    None if some == LINE => (1, 0..1),
                    None => (1 << shared, 0..1 << shared),
                };
                for place in wanted {
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
            let mut transposed =
                Transposed { shared, rows: side_by_side, only: None, targets: &mut targets };
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
