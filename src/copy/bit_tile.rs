//! Tiles of sub-byte elements: rows of the input brought together. If an output has columns of the input, as a transpose
//! does, each element of a column is in a line of its own, or in a page. So rows of as many columns as share lines are
//! copied into a tile, where they stay in the caches while one column after the other is packed:
//!
//! ```text
//! input      |abcdefgh|··· far ···|ijklmnop|··· far ···|qrstuvwx|
//! tile       |abcdefgh|ijklmnop|qrstuvwx|
//! output     |aiq···|bjr···|cks···|               columns of more rows than the tile has
//! ```

// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::bit_runs::BitRuns;
use super::vector::LINE_BYTES;
use core::ops::Range;

/// The rows of a tile are half lines: more would take too much stack.
const ROW_BYTES: i64 = LINE_BYTES as i64 / 2;
pub(super) const ROW_BITS: i64 = 8 * ROW_BYTES;
/// Rows that tiles advance by: whole words of elements of 4 bits, and of 2.
pub(super) const STEP_ROWS: i64 = 128;
/// The rows of a tile. The last byte of a step may also have elements of the next one.
const ROWS: i64 = STEP_ROWS + 4;
/// Bytes from one row to the next: their bits, which may begin within a byte. If rows begin at different bits of a byte,
/// they are up to seven bits further apart.
const APART_BYTES: i64 = ROW_BYTES + 1;
const TILE_BYTES: usize = (ROWS * (APART_BYTES + 1)) as usize;

/// Some rows of neighbouring columns.
pub(super) struct Tile {
    bytes: [u8; TILE_BYTES],
    columns: Range<i64>,
    /// The bits of each column that the tile has, counted as if it were packed.
    bits: Range<i64>,
    /// Where bit 0 of column 0 would be, bits from one row to the next, and bits of an element.
    begin: i64,
    step: i64,
    size: i64,
}

impl Tile {
    /// Returns a tile without columns.
    #[inline(always)] // in place
    pub(super) fn new() -> Self {
        Self { bytes: [0; TILE_BYTES], columns: 0..0, bits: 0..0, begin: 0, step: 0, size: 0 }
    }

    /// Brings rows of some columns together, from a row on, but not more than there are. `first` is the first column;
    /// the others begin an element further on each.
    ///
    /// # Safety
    /// The bytes of the rows' elements must be readable; nothing else is read.
    pub(super) unsafe fn fill(&mut self, first: &BitRuns, columns: Range<i64>, rows: Range<i64>) {
        let BitRuns { step, size, .. } = *first;
        let bits = (columns.end - columns.start) * size;
        debug_assert!(bits <= ROW_BITS, "rows of {bits} bits");
        let rows = rows.start..rows.end.min(rows.start + ROWS);
        let begin = first.begin.wrapping_add(step.wrapping_mul(rows.start));
        let (shift, near) = (begin & 7, 8 * APART_BYTES + (step & 7));
        for row in 0..rows.end - rows.start {
            let (from, to) = (begin.wrapping_add(step.wrapping_mul(row)), shift + near * row);
            let bytes = ((from & 7) + bits + 7) >> 3;
            debug_assert!((to >> 3) + bytes <= TILE_BYTES as i64, "a row behind the tile");
            let target = self.bytes.as_mut_ptr().wrapping_add((to >> 3) as usize);
            // SAFETY: the bytes of some elements, for which the tile has room.
            unsafe { first.byte(from).copy_to_nonoverlapping(target, bytes as usize) };
        }
        self.begin = shift - columns.start * size - rows.start * near;
        (self.step, self.size) = (near, size);
        (self.columns, self.bits) = (columns, rows.start * size..rows.end * size);
    }

    /// Returns a column, if the tile has these bits of it.
    pub(super) fn column(&self, index: i64, bits: &Range<i64>) -> Option<BitRuns> {
        let has_bits = self.bits.start <= bits.start && bits.end <= self.bits.end;
        (has_bits && self.columns.contains(&index)).then(|| BitRuns {
            source: self.bytes.as_ptr(),
            readable_end: self.bytes.as_ptr().wrapping_add(TILE_BYTES),
            begin: self.begin + index * self.size,
            step: self.step,
            run: self.size,
            size: self.size,
        })
    }
}
