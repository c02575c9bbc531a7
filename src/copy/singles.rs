//! Pieces of single elements that share bytes: the bytes of rows are deinterleaved as such, some of them
//! at a time, and then each piece has its elements taken out of them.

use super::columns::{Columns, Targets};
use super::kernel::combine::LINE;
use super::kernel::MAX_DEINTERLEAVED;
use super::rows::Rows;
use super::tuning::Tuning;
use super::usize_of;
use crate::math::{div_rem, parts};
use crate::parts::Transfer;
use core::mem::MaybeUninit;
use core::ops::Range;

/// Bytes that are deinterleaved at a time. Zen 5, GB/s with 4 KiB and 8: 8×1 elements of 4 bits 28, 34;
/// 32×1 7, 11; 128×1 5, 9.
const BYTES: usize = 8 << 10;
/// Longer rows, in bytes, have few of each other's bytes then.
const LONGEST: usize = 64;

/// Whether all pieces are single elements of rows of whole bytes.
pub(super) fn are_singles(transfer: &Transfer<'_>) -> bool {
    let geometry = &transfer.geometry;
    let row = geometry.extent * i64::from(geometry.dtype.bits());
    transfer.is_packed()
        && geometry.inner == 1
        && row % 8 == 0
        && usize_of(row) <= 8 * LONGEST
        && transfer.parts.iter().all(|part| part.len == 1)
}

/// Copies what all pieces have in some rows. These begin with a whole byte of each, and so does what is
/// left: the rows that are done are given back.
///
/// # Safety
/// The input must be readable and the outputs writable over the rows.
#[inline(never)] // which takes much of the stack
pub(super) unsafe fn copy(transfer: &Transfer<'_>, tuning: Tuning, rows: Range<usize>) -> usize {
    let geometry = &transfer.geometry;
    let bits = geometry.dtype.bits() as usize;
    let row = usize_of(geometry.extent) * bits / 8;
    let source = transfer.source.wrapping_add(transfer.bit_offset as usize / 8);
    // As many as make whole registers of each piece.
    let at_once = div_rem(BYTES, row).0.max(LINE) & !(LINE - 1);
    let apart = at_once + 8;
    let all = rows.start..rows.start + (rows.len() & !7);
    let mut bytes = [const { MaybeUninit::<u8>::uninit() }; BYTES + 8 * LONGEST];
    let bytes = bytes.as_mut_ptr().cast::<u8>();
    let mut some = parts(all.clone(), at_once);
    let finish = |rows: &Range<usize>| {
        // SAFETY: the caller's promise, here and below; there is room for so many rows.
        unsafe {
            // A byte more of the first ones: where rows begin within a byte, each ends in that of the next.
            if !transfer.bit_offset.is_multiple_of(8) {
                bytes.add(rows.len()).write(source.add(rows.end * row).read());
            }
            take(transfer, tuning, bytes, apart, rows);
        }
    };
    if row == 1 {
        // SAFETY: as above.
        unsafe { take(transfer, tuning, source.wrapping_add(all.start), 1, &all) };
    } else if row <= MAX_DEINTERLEAVED {
        let mut columns = [bytes; MAX_DEINTERLEAVED];
        for (at, column) in columns.iter_mut().enumerate() {
            *column = bytes.wrapping_add(at * apart);
        }
        let mut last = None;
        let next = &mut || {
            last.iter().for_each(finish);
            last = some.next();
            last.clone().map(|rows| (source.wrapping_add(rows.start * row), rows.len()))
        };
        let (columns, tuning) = (columns.get(..row).unwrap_or_default(), tuning.through_caches());
        // SAFETY: as above.
        unsafe { Rows::deinterleave_columns(row, 1, columns, 0, tuning, next) };
    } else {
        for rows in some {
            let source = source.wrapping_add(rows.start * row);
            let targets = &Targets { first: Some(bytes), apart, count: row }.only();
            let columns =
                Columns { source, step: row, rows: rows.len(), unit: 1, count: row, targets };
            // SAFETY: as above.
            unsafe { columns.copy(tuning.through_caches()) };
            finish(&rows);
        }
    }
    all.end
}

/// Takes the elements of each piece, in some rows, out of those rows' bytes: columns, so many bytes apart.
///
/// # Safety
/// As [`copy`]; the columns must be there, and a byte more of the first where rows begin within one.
#[inline(never)] // once in the library
unsafe fn take(
    transfer: &Transfer<'_>,
    tuning: Tuning,
    bytes: *const u8,
    apart: usize,
    rows: &Range<usize>,
) {
    let bits = transfer.geometry.dtype.bits() as usize;
    let [nibbles, crumbs] = tuning.kernels.take;
    let take = if bits == 4 { nibbles } else { crumbs };
    let row = usize_of(transfer.geometry.extent) * bits / 8;
    let first = transfer.bit_offset as usize % 8;
    let (done, len) = (rows.start * bits / 8, rows.len() * bits / 8);
    for part in transfer.parts.iter() {
        let bit = first + usize_of(part.offset) * bits;
        let byte = bit / 8;
        let from = if byte == row { 1 } else { byte * apart };
        // SAFETY: the caller's promise.
        unsafe { take(bytes.add(from), bit % 8, part.target.wrapping_add(done), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::{are_singles, copy, Transfer, Tuning};
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;

    /// Of rows of so many elements, some unwanted, from the row `first` on, at every level.
    fn check(dtype: DType, extent: usize, rows: usize, first: usize, lead: usize) {
        let (bits, mask) = match dtype {
            DType::Int4 => (4, 15),
            _ => (2, 3),
        };
        let row = extent * bits / 8;
        let input: Vec<u8> = (0..row * rows + usize::from(lead > 0))
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
            assert!(are_singles(&transfer));
            // SAFETY: the input and the outputs are as large as their shapes.
            let end = unsafe { copy(&transfer, tuning, first..rows) };
            assert!(end <= rows && rows - end < 8);
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
    fn single_elements_of_rows_of_whole_bytes() {
        for (dtype, shared) in [(DType::Int4, 2), (DType::Int2, 4)] {
            for bytes in [1, 2, 3, 4, 5, 8, 16, 31] {
                for lead in 0..shared {
                    check(dtype, bytes * shared, 2500, 16, lead);
                }
            }
        }
    }
}
