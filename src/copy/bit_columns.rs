//! The kernel for columns of sub-byte elements: tiles of them are transposed in words of 64 bits.
//!
//! A tile has as many rows as a word has elements. Four elements of 4 bits a word, for the drawing; w, x, y and z are
//! columns. First the upper halves of rows that are two apart change places with lower halves, then the odd elements of
//! rows that are one apart with even ones (a real word has 16 elements, and four passes):
//!
//! ```text
//!   w0 x0 y0 z0         w0 x0 w2 x2         w0 w1 w2 w3
//!   w1 x1 y1 z1   by 2  w1 x1 w3 x3   by 1  x0 x1 x2 x3
//!   w2 x2 y2 z2   --->  y0 z0 y2 z2   --->  y0 y1 y2 y3
//!   w3 x3 y3 z3         y1 z1 y3 z3         z0 z1 z2 z3
//! ```
//!
//! Every row of a strip of 64 columns has several words, and as many tiles as fill a line of each column follow each
//! other. Columns are bits that follow each other in the output, so each is written behind the bits that the column
//! before has left in its last byte.

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]
// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::bit_runs::{shifted, write_bytes, Source, Writer};
use super::opaque::opaque;
use super::vector::LINE_BYTES;
use core::ops::Range;

/// Fewer columns are not worth setting up a loop for.
pub(super) const LEAST_COLUMNS: i64 = 16;
/// The columns of a strip, which are transposed together.
const STRIP_COLUMNS: usize = 64;

/// Columns of the input, which follow each other in the output.
pub(super) struct Columns {
    pub source: Source,
    /// The bit of the first element, bits from one row to the next, and the numbers of rows and columns.
    pub begin: i64,
    pub step: i64,
    pub rows: i64,
    pub count: i64,
    /// Whether there may be pages between rows.
    pub has_holes: bool,
}

/// Copies columns of at least a byte each. A word has `K` elements, and a row of a strip `W` words.
///
/// # Safety
/// The bytes of the columns' elements must be readable; and unless there are holes, everything from the lowest of them up
/// to the source's `readable`. The columns must have room in the output; nothing else is written. The CPU must have the
/// features of the level.
#[inline(always)]
pub(super) unsafe fn pack_columns<const K: usize, const W: usize>(
    columns: &Columns,
    out: &mut Writer,
) {
    const { assert!(K * W == STRIP_COLUMNS, "a strip has 64 columns") }
    let column_bits = columns.rows * (64 / K as i64);
    debug_assert!(column_bits >= 8, "columns of {column_bits} bits");
    let mut first = 0;
    while first < columns.count {
        let count = columns.count.min(first + STRIP_COLUMNS as i64) - first;
        let held = pack_strip::<K, W>(columns, first, count, out);
        first += count;
        let bits = out.held_bits() + count * column_bits;
        out.advance((bits >> 3) as usize);
        out.hold(held, bits & 7);
    }
}

/// Copies a strip of columns. What each but the last leaves in its last byte goes into the first byte of the next.
/// Returns what the last one leaves.
#[inline(always)]
unsafe fn pack_strip<const K: usize, const W: usize>(
    columns: &Columns,
    first: i64,
    count: i64,
    out: &Writer,
) -> u64 {
    let size = 64 / K as i64;
    let mut strip = [[[0; W]; K]; LINE_BYTES / 8];
    let mut held = [0; STRIP_COLUMNS];
    held[0] = out.held();
    let mut row = 0;
    while row < columns.rows {
        let end = columns.rows.min(row + (K * LINE_BYTES / 8) as i64);
        for (at, tile) in strip.iter_mut().enumerate().take(((end - row) as usize).div_ceil(K)) {
            let begin = row + (at * K) as i64;
            columns.fill(tile, first, count, begin..end.min(begin + K as i64));
            swap_halves::<K, W, 16>(tile);
            swap_halves::<K, W, 8>(tile);
            swap_halves::<K, W, 4>(tile);
            swap_halves::<K, W, 2>(tile);
            swap_halves::<K, W, 1>(tile);
        }
        let words = strip.as_ptr().cast::<u64>();
        for (column, held) in held.iter_mut().enumerate().take(count as usize) {
            let to = out.held_bits() + (column as i64 * columns.rows + row) * size;
            let target = out.target().wrapping_add((to >> 3) as usize);
            // The words of a column are a tile apart.
            let words = words.add(column % K * W + column / K);
            let bits = Bits { shift: to & 7, count: (end - row) * size, held: *held };
            *held = write_column::<{ STRIP_COLUMNS }>(words, target, &bits);
        }
        row = end;
    }
    let mut to = out.held_bits();
    for held in held.iter().take(count as usize - 1) {
        to += columns.rows * size;
        let target = out.target().wrapping_add((to >> 3) as usize);
        // The next column has begun that byte with bits of 0.
        target.write(target.read() | *held as u8);
    }
    held.get(count as usize - 1).copied().unwrap_or(0)
}

/// Bits to be written: where they begin in the first byte, how many they are, and the bits before them in that byte.
struct Bits {
    shift: i64,
    count: i64,
    held: u64,
}

/// Writes some bits of a column, whose words are `APART` words apart. Returns the bits of the last byte, if it is not
/// whole: they are not written.
#[inline(always)]
unsafe fn write_column<const APART: usize>(
    mut words: *const u64,
    mut target: *mut u8,
    &Bits { shift, count, mut held }: &Bits,
) -> u64 {
    let mut left = count;
    while shift == 0 && left >= 64 {
        target.cast::<[u8; 8]>().write_unaligned(words.read().to_le_bytes());
        target = target.wrapping_add(8);
        words = opaque(words.wrapping_add(APART));
        left -= 64;
    }
    while left > 0 {
        let word = words.read();
        let value = word << shift | held;
        let bytes = (shift + left) >> 3;
        if bytes < 8 {
            write_bytes(target, value.to_le_bytes(), bytes as usize);
            return value >> (8 * bytes);
        }
        target.cast::<[u8; 8]>().write_unaligned(value.to_le_bytes());
        held = word >> 1 >> (63 - shift);
        target = target.wrapping_add(8);
        words = opaque(words.wrapping_add(APART));
        left -= 64;
    }
    held
}

impl Columns {
    /// Reads some rows of a strip; the others become zeros. A row of a strip has no more than `W` words.
    #[inline(always)]
    unsafe fn fill<const K: usize, const W: usize>(
        &self,
        tile: &mut [[u64; W]; K],
        first: i64,
        count: i64,
        rows: Range<i64>,
    ) {
        let size = 64 / K as i64;
        let [mut begin, last] = [rows.start, rows.end - 1].map(|row| {
            self.begin.wrapping_add(self.step.wrapping_mul(row)).wrapping_add(first * size)
        });
        let top = self.source.byte(begin.max(last)) as usize;
        let is_readable = !self.has_holes && self.source.readable.saturating_sub(top) > 8 * W;
        let (read, rest) = tile.split_at_mut(K.min((rows.end - rows.start) as usize));
        rest.fill([0; W]);
        for words in read {
            if is_readable {
                // Opaque, because compilers take gathers to be quicker than loads.
                *words = shifted(opaque(self.source.byte(begin)), begin & 7);
            } else {
                self.source.push_words(words, begin, count * size, self.has_holes);
            }
            begin = begin.wrapping_add(self.step);
        }
    }
}

/// In each two rows that are `BY` apart, swaps the upper `BY` elements of every 2 × `BY` of the first with the lower
/// ones of the second: after all powers of two, rows are columns.
#[inline(always)]
fn swap_halves<const K: usize, const W: usize, const BY: usize>(tile: &mut [[u64; W]; K]) {
    let bits = BY * 64 / K;
    if BY == K {
        return;
    }
    let lower = u64::MAX / ((1 << bits) + 1);
    for pair in 0..K / 2 {
        // Opaque, because compilers take gathers of several pairs to be quicker than loads of one.
        let pair = opaque(pair);
        let at = ((pair & !(BY - 1)) << 1 | pair & (BY - 1)) & (K - 1);
        let Ok([one, other]) = tile.get_disjoint_mut([at, at | BY]) else { return };
        for (one, other) in one.iter_mut().zip(other) {
            let upper = *one >> bits & lower | *other & !lower;
            *one = *one & lower | (*other & lower) << bits;
            *other = upper;
        }
    }
}
