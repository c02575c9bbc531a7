//! Pieces of single elements that share bytes. The bytes of rows are deinterleaved as such, some of them at a
//! time, and then each piece has its elements taken out of them. Those of long rows are transposed.

use super::kernel::combine::{Scratch, LINE};
use super::kernel::opaque::opaque;
use super::kernel::strided::Axis;
use super::kernel::sub_byte::{mix, BitPlace, SideBySide};
use super::kernel::transpose::Transpose;
use super::rows::Rows;
use super::sub_byte::GRANULE;
use super::sub_byte_transpose::Transposed;
use super::tuning::Tuning;
use crate::error::number;
use crate::math::{div, parts};
use crate::parts::Transfer;
use crate::shape::usize_of;
use core::ops::Range;
use core::ptr::null_mut;

/// Bytes that are deinterleaved at a time.
const BYTES: usize = 4 << 10;
/// Longer rows, in bytes, are transposed so many columns of bytes at a time. Zen 5, GB/s deinterleaved and
/// transposed: 32×1 elements of 4 bits 8, 20; 48×1 10, 15.
const DEINTERLEAVED: usize = 8;
const COLUMNS: usize = 16;
/// The most elements of a row: longer ones are transposed.
const MOST: usize = 128;
/// Bytes of rows that are transposed at a time.
const AT_ONCE: usize = 64 << 10;

/// The most of a row that is no whole bytes: of as many rows as make them there are words of each byte then.
const MOST_ODD: usize = BYTES / LINE;

/// How single elements are copied.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    Taken,
    /// So many rows at a time are whole bytes.
    Mixed(usize),
    Transposed,
}

/// How pieces are copied that are single elements, if all are.
#[inline(never)] // for its stack
pub(super) fn way(transfer: &Transfer<'_>) -> Option<Way> {
    let geometry = &transfer.geometry;
    let (extent, bits) = (usize_of(geometry.extent), geometry.dtype.bits() as usize);
    let are_singles = transfer.is_packed()
        && geometry.inner == 1
        && extent > 1
        && transfer.parts.iter().all(|part| part.len == 1);
    are_singles.then_some(match extent * bits % 8 {
        _ if extent > MOST => Way::Transposed,
        0 => Way::Taken,
        _ if extent > MOST_ODD => Way::Transposed,
        _ => Way::Mixed(8 >> bits.trailing_zeros()),
    })
}

/// Copies what all pieces have in some rows. These begin with a whole byte of each, and so does what is
/// left: the rows that are done are given back.
///
/// # Safety
/// The input must be readable and the outputs writable over the rows.
#[inline(never)] // or it is in the library twice, as the shims of closures are
pub(super) unsafe fn copy(
    transfer: &Transfer<'_>,
    tuning: &Tuning,
    way: Way,
    rows: Range<usize>,
) -> usize {
    // What is transposed is read beyond the end of a row, but not of the last one.
    let is_last = rows.end == usize_of(transfer.geometry.outer) && way != Way::Transposed;
    let together = if let Way::Mixed(together) = way { together } else { 1 };
    let rest = if is_last { 8 } else { 0 };
    let whole = rows.len().saturating_sub(rest) & !(8 * together - 1);
    let rows = rows.start..rows.start + whole;
    // SAFETY: the caller's promise.
    unsafe {
        if way == Way::Transposed {
            turn(transfer, tuning, &rows);
        } else {
            take_out(transfer, tuning, together, rows.clone());
        }
    }
    rows.end
}

/// Turns some rows.
///
/// # Safety
/// As [`copy`].
#[inline(never)] // which takes some of the stack
unsafe fn turn(transfer: &Transfer<'_>, tuning: &Tuning, rows: &Range<usize>) {
    let bits = transfer.geometry.dtype.bits() as usize;
    let row = usize_of(transfer.geometry.extent) * bits;
    let at_once = div(8 * AT_ONCE, row).next_multiple_of(GRANULE);
    for rows in parts(rows.clone(), at_once) {
        let mut parts = transfer.parts.iter();
        let mut next = parts.next();
        let mut targets = |(columns, targets): (Range<usize>, &mut [*mut u8])| {
            while let Some(part) = next.filter(|part| usize_of(part.offset) < columns.end) {
                if let Some(slot) = targets.get_mut(usize_of(part.offset) - columns.start) {
                    *slot = part.target.wrapping_add(rows.start * bits / 8);
                }
                next = parts.next();
            }
        };
        let begin = i64::from(transfer.bit_offset) + number(rows.start) * number(row);
        let (source, step, count) = (transfer.source, number(row), rows.len());
        let rows = SideBySide { source, begin, step, rows: count, bits: row };
        let shared = if bits == 4 { 1 } else { 2 };
        // SAFETY: the caller's promise.
        unsafe { Transposed { shared, rows, only: None, targets: &mut targets }.copy(tuning) };
    }
}

/// Takes the elements of each piece out of some rows, of which so many together are whole bytes.
///
/// # Safety
/// As [`copy`]; there must be a row more.
#[inline(never)] // once in the library
unsafe fn take_out(transfer: &Transfer<'_>, tuning: &Tuning, together: usize, all: Range<usize>) {
    let geometry = &transfer.geometry;
    let (bits, extent) = (geometry.dtype.bits() as usize, usize_of(geometry.extent));
    let [nibbles, crumbs] = tuning.kernels.take;
    let singles = Singles {
        transfer,
        source: transfer.source.wrapping_add(transfer.bit_offset as usize / 8),
        row: together * extent * bits / 8,
        together,
        bits,
        lead: transfer.bit_offset as usize % 8,
        take: if bits == 4 { nibbles } else { crumbs },
        tuning: tuning.through_caches(),
    };
    let rows_of = |row: usize| row >> together.trailing_zeros();
    let all = rows_of(all.start)..rows_of(all.end);
    // SAFETY: the caller's promise.
    unsafe {
        match singles.row {
            1..=DEINTERLEAVED => singles.deinterleave(all),
            _ => singles.transpose(all),
        }
    }
}

struct Singles<'a> {
    transfer: &'a Transfer<'a>,
    source: *const u8,
    /// Bytes of a row, which is several of the input where elements are mixed; and bits of an element, and before
    /// the first one.
    row: usize,
    together: usize,
    bits: usize,
    lead: usize,
    take: unsafe fn(*const u8, usize, *mut u8, usize),
    tuning: Tuning,
}

/// Where each element of a row goes, or NULL.
type Targets = [*mut u8];

/// Lays out columns of so many bytes, the first of them last.
fn lay_out(scratch: *mut u8, columns: &mut [*mut u8], bytes: usize) {
    for (at, column) in columns.iter_mut().rev().enumerate() {
        *column = scratch.wrapping_add(at * bytes);
    }
}

impl Singles<'_> {
    /// Puts in where elements go.
    #[inline(never)] // once in the library
    fn aim<'t>(&self, targets: &'t mut Targets) -> &'t Targets {
        for part in self.transfer.parts.iter() {
            if let Some(slot) = targets.get_mut(usize_of(part.offset)) {
                *slot = part.target;
            }
        }
        targets.get(..usize_of(self.transfer.geometry.extent)).unwrap_or_default()
    }

    /// # Safety
    /// As [`take_out`].
    #[inline(never)] // for its stack
    unsafe fn deinterleave(&self, all: Range<usize>) {
        let mut targets = [null_mut(); 4 * DEINTERLEAVED];
        let targets = self.aim(&mut targets);
        if self.row == 1 {
            // SAFETY: the caller's promise.
            unsafe { self.take(targets, self.source.wrapping_add(all.start), 0, 0..1, &all) };
            return;
        }
        // One may have a byte more.
        let mut scratch = Scratch::<{ BYTES + LINE }>::NEW;
        // As many rows as make whole registers of each piece.
        let at_once = div(BYTES, self.row) & !(LINE - 1);
        let mut columns = [null_mut(); DEINTERLEAVED];
        let columns = columns.get_mut(..self.row).unwrap_or_default();
        lay_out(scratch.as_mut_ptr(), columns, at_once);
        let (mut some, mut last) = (parts(all, at_once), None);
        let next = &mut |_: usize| {
            if let (Some(rows), Some(first)) = (&last, columns.first()) {
                // SAFETY: the caller's promise; they have been deinterleaved.
                unsafe { self.finish(targets, *first, at_once, 0..self.row, rows) };
            }
            last = some.next();
            last.clone().map(|rows| (self.source.wrapping_add(rows.start * self.row), rows.len()))
        };
        // SAFETY: as above.
        unsafe { Rows::deinterleave_columns(self.row, 1, columns, Axis::NONE, self.tuning, next) };
    }

    /// # Safety
    /// As [`take_out`].
    #[inline(never)] // for its stack
    unsafe fn transpose(&self, all: Range<usize>) {
        let mut targets = [null_mut(); MOST];
        let targets = self.aim(&mut targets);
        // One may have a byte more.
        let mut scratch = Scratch::<{ BYTES + LINE }>::NEW;
        let scratch = scratch.as_mut_ptr();
        // What is mixed is of columns anywhere.
        let most = if self.together > 1 { self.row.max(COLUMNS) } else { COLUMNS };
        let at_once = div(BYTES, most) & !(LINE - 1);
        let mut columns = [null_mut(); MOST_ODD];
        let columns = columns.get_mut(..most).unwrap_or_default();
        lay_out(scratch, columns, at_once);
        let first = columns.first().copied().unwrap_or(scratch);
        for rows in parts(all, at_once) {
            for column in (0..self.row).step_by(most.max(1)) {
                // The last ones lie partly over those before.
                let begin = column.min(self.row.saturating_sub(most));
                let source = self.source.wrapping_add(rows.start * self.row + begin);
                // SAFETY: the caller's promise.
                unsafe {
                    let follows = source.wrapping_add(rows.len() * self.row);
                    let some = (source, self.row, rows.len());
                    self.tuning.kernels.transpose(&Transpose::of_bytes(some, columns, follows));
                    let first = first.wrapping_sub((column - begin) * at_once);
                    let end = self.row.min(column + most);
                    self.finish(targets, first, at_once, column..end, &rows);
                }
            }
        }
    }

    /// Takes elements out of columns of bytes, of which the first is there, others so far below it.
    ///
    /// # Safety
    /// As [`take_out`].
    #[inline(never)] // as below
    unsafe fn finish(
        &self,
        targets: &Targets,
        first: *mut u8,
        apart: usize,
        columns: Range<usize>,
        rows: &Range<usize>,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            // A byte more: where rows begin within a byte, each ends in that of the next.
            if columns.start == 0 && self.lead > 0 {
                let next = self.source.wrapping_add(rows.end * self.row).read();
                first.wrapping_add(rows.len()).write(next);
            }
            if self.together > 1 {
                self.mix(targets, first, apart, rows);
            } else {
                self.take(targets, first, apart, columns, rows);
            }
        }
    }

    /// Mixes elements of columns of bytes.
    ///
    /// # Safety
    /// As [`Singles::finish`]; all columns must be there.
    unsafe fn mix(&self, targets: &Targets, first: *const u8, apart: usize, rows: &Range<usize>) {
        let mut places = [BitPlace { bytes: first, bit: 0 }; 4];
        let places = places.get_mut(..self.together).unwrap_or_default();
        for (element, target) in targets.iter().enumerate() {
            let mut element = element;
            for place in &mut *places {
                let bit = self.lead + element * self.bits;
                // What lies behind the last column is the next row's first one.
                let is_next = bit / 8 == self.row;
                let ahead = if is_next { 1 } else { (bit / 8 * apart).wrapping_neg() };
                *place = BitPlace { bytes: first.wrapping_add(ahead), bit: bit % 8 };
                // Or compilers write it out for all there ever are.
                element = opaque(element + targets.len());
            }
            if !target.is_null() {
                // SAFETY: the caller's promise.
                unsafe { mix(places, target.wrapping_add(rows.start), rows.len()) };
            }
        }
    }

    /// Takes elements out of columns, as [`Singles::finish`] does once that byte is there.
    ///
    /// # Safety
    /// As [`take_out`].
    #[inline(never)] // once in the library
    unsafe fn take(
        &self,
        targets: &Targets,
        first: *const u8,
        apart: usize,
        columns: Range<usize>,
        rows: &Range<usize>,
    ) {
        let &Self { bits, lead, .. } = self;
        let (done, len) = (rows.start * bits / 8, rows.len() * bits / 8);
        let bits_of = |column: usize| (column * 8).saturating_sub(lead);
        let of_row = 8 * self.row;
        let take = |bit: usize, from: *const u8| {
            let target = targets.get(bit >> bits.trailing_zeros()).copied();
            if let Some(target) = target.filter(|target| !target.is_null()) {
                // SAFETY: the caller's promise.
                unsafe { (self.take)(from, (lead + bit) % 8, target.wrapping_add(done), len) };
            }
        };
        for bit in (bits_of(columns.start)..bits_of(columns.end)).step_by(bits.max(1)) {
            take(bit, first.wrapping_sub(((lead + bit) / 8 - columns.start) * apart));
        }
        if columns.start == 0 {
            for bit in (of_row - lead..of_row).step_by(bits.max(1)) {
                take(bit, first.wrapping_add(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{copy, way, Transfer, Tuning};
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;

    /// Of rows of so many elements, some unwanted, from the row `first` on, at every level.
    fn check(dtype: DType, extent: usize, rows: usize, first: usize, lead: usize) {
        let (bits, mask) = match dtype {
            DType::Int4 => (4, 15),
            _ => (2, 3),
        };
        let input: Vec<u8> = (0..((extent * rows + lead) * bits).div_ceil(8))
            .map(|at| ((at * 1009) >> 4).to_le_bytes()[0])
            .collect();
        let element = |at: usize| {
            let at = at + lead;
            input[at * bits / 8] >> (at * bits % 8) & mask
        };
        for tuning in Tuning::all() {
            let mut outputs = vec![vec![0xEE; rows * bits / 8 + 2]; extent];
            let targets = (outputs.iter_mut().enumerate())
                .map(|(at, output)| (at % 5 != 3).then(|| output.as_mut_ptr().wrapping_add(1)));
            let parts = parts(&vec![1; extent], targets);
            let shape = [rows, extent].map(|extent| i64::try_from(extent).unwrap());
            let transfer = transfer(dtype, &shape, 1, input.as_ptr(), &parts);
            let bit_offset = u32::try_from(lead * bits).unwrap();
            let transfer = Transfer { bit_offset, ..transfer };
            let way = way(&transfer).unwrap();
            // SAFETY: the input and the outputs are as large as their shapes.
            let end = unsafe { copy(&transfer, &tuning, way, first..rows) };
            assert!(end <= rows && rows - end < 40);
            for (column, output) in outputs.iter().enumerate() {
                let is_wanted = column % 5 != 3;
                for at in 0..rows {
                    let got = output[1 + at * bits / 8] >> (at * bits % 8) & mask;
                    let copied = element(at * extent + column);
                    let untouched = 0xEE >> (at * bits % 8) & mask;
                    let is_copied = is_wanted && (first..end).contains(&at);
                    assert_eq!(got, if is_copied { copied } else { untouched }, "{column}, {at}");
                }
                assert_eq!([output[0], output[rows * bits / 8 + 1]], [0xEE; 2]);
            }
        }
    }

    #[test]
    fn single_elements_of_rows_that_begin_within_bytes() {
        for (dtype, shared) in [(DType::Int4, 2), (DType::Int2, 4)] {
            for extent in [2, 3, 5, 6, 7, 9, 13, 15, 17, 31, 63, 65, 129, 333] {
                for lead in 0..shared {
                    check(dtype, extent, 2500, 32, lead);
                }
            }
        }
    }

    #[test]
    fn single_elements_of_rows_of_whole_bytes() {
        for (dtype, shared) in [(DType::Int4, 2), (DType::Int2, 4)] {
            for bytes in [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32] {
                for lead in 0..shared {
                    check(dtype, bytes * shared, 2500, 16, lead);
                }
            }
        }
    }
}
