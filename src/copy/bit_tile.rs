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

use super::bit_runs::{BitRuns, Writer};
use super::vector::LINE_BYTES;
use core::ops::Range;

/// The rows of a tile are half lines: more would take too much stack.
pub(super) const ROW_BITS: i64 = 8 * LINE_BYTES as i64 / 2;
/// Rows that tiles advance by: whole words of elements of 4 bits, and of 2.
pub(super) const STEP_ROWS: i64 = 128;
/// The rows of a tile. The last byte of a step may also have elements of the next one.
const ROWS: i64 = STEP_ROWS + 4;
const TILE_BYTES: usize = (ROWS * ROW_BITS / 8) as usize;

/// Some rows of neighbouring columns, packed.
pub(super) struct Tile {
    bytes: [u8; TILE_BYTES],
    columns: Range<i64>,
    rows: Range<i64>,
    /// Bits of an element.
    size: i64,
}

impl Tile {
    /// Returns a tile without columns.
    #[inline(always)] // in place
    pub(super) fn new() -> Self {
        Self { bytes: [0; TILE_BYTES], columns: 0..0, rows: 0..0, size: 0 }
    }

    /// Brings rows of some columns together, from a row on, but not more than there are. `first` is the first column;
    /// the others begin an element further on each.
    ///
    /// # Safety
    /// The bytes of the rows' elements must be readable, and what `readable_end` promises.
    pub(super) unsafe fn fill(&mut self, first: &BitRuns, columns: Range<i64>, rows: Range<i64>) {
        (self.columns, self.size) = (columns, first.size);
        self.rows = rows.start..rows.end.min(rows.start + ROWS);
        let run = self.row_bits();
        debug_assert!(run <= ROW_BITS, "rows of {run} bits");
        let begin = first.begin.wrapping_add(first.step.wrapping_mul(rows.start));
        let room = self.bytes.as_mut_ptr_range();
        let mut out = Writer::new(room.start, room.end);
        // SAFETY: the bits of some elements, for which the tile has room.
        unsafe {
            let count = self.rows.end - self.rows.start;
            BitRuns { begin, run, ..*first }.pack(&mut out, 0..run * count);
            out.finish();
        }
    }

    /// Returns the bits of a row.
    fn row_bits(&self) -> i64 {
        (self.columns.end - self.columns.start) * self.size
    }

    /// Returns a column, if the tile has these bits of it, counted as if it were packed.
    pub(super) fn column(&self, index: i64, bits: &Range<i64>) -> Option<BitRuns> {
        let Self { bytes, columns, rows, size } = self;
        let has_bits = rows.start * size <= bits.start && bits.end <= rows.end * size;
        let (run, size, step) = (*size, *size, self.row_bits());
        let begin = (index - columns.start) * size - rows.start * step;
        let Range { start: source, end: readable_end } = bytes.as_ptr_range();
        let column = BitRuns { source, readable_end, begin, step, run, size };
        (has_bits && columns.contains(&index)).then_some(column)
    }
}
