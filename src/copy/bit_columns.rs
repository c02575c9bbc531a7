//! Columns of elements that share bytes: tiles of them are transposed in words.
//!
//! # Safety
//! For everything unsafe here: the columns must be readable, the output writable, and the CPU must have the features of
//! the level.

// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::bit_rows::{shifted, write_bytes, Source, Writer};
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
#[inline(always)]
pub(super) unsafe fn transpose<const K: usize, const W: usize>(
    columns: &Columns,
    out: &mut Writer,
) {
    let column_bits = columns.rows * (64 / K as i64);
    let mut first = 0;
    while first < columns.count {
        let count = columns.count.min(first + STRIP_COLUMNS as i64) - first;
        // SAFETY: the caller's promise.
        unsafe { transpose_strip::<K, W>(columns, first, count, out) };
        first += count;
        let bits = out.bits + count * column_bits;
        out.target = out.target.wrapping_add((bits >> 3) as usize);
        out.bits = bits & 7;
    }
}

/// Copies a strip of columns. What is held after each but the last goes into the first byte of the next.
#[inline(always)]
unsafe fn transpose_strip<const K: usize, const W: usize>(
    columns: &Columns,
    first: i64,
    count: i64,
    out: &mut Writer,
) {
    let size = 64 / K as i64;
    let mut strip = [[[0; W]; K]; LINE_BYTES / 8];
    let mut held = [0; STRIP_COLUMNS];
    held[0] = out.held;
    let mut row = 0;
    while row < columns.rows {
        let end = columns.rows.min(row + (K * LINE_BYTES / 8) as i64);
        for (at, tile) in strip.iter_mut().enumerate().take(((end - row) as usize).div_ceil(K)) {
            let begin = row + (at * K) as i64;
            // SAFETY: the caller's promise.
            unsafe { columns.fill(tile, first, count, begin..end.min(begin + K as i64)) };
            swap_parts::<K, W, 16>(tile);
            swap_parts::<K, W, 8>(tile);
            swap_parts::<K, W, 4>(tile);
            swap_parts::<K, W, 2>(tile);
            swap_parts::<K, W, 1>(tile);
        }
        let words = strip.as_ptr().cast::<u64>();
        for (column, held) in held.iter_mut().enumerate().take(count as usize) {
            let to = out.bits + (column as i64 * columns.rows + row) * size;
            let target = out.target.wrapping_add((to >> 3) as usize);
            // SAFETY: as above; the words of a column are a tile apart.
            unsafe {
                let words = words.add(column % K * W + column / K);
                *held =
                    put::<{ STRIP_COLUMNS }>(words, target, (to & 7, (end - row) * size), *held);
            }
        }
        row = end;
    }
    let mut to = out.bits;
    for held in held.iter().take(count as usize - 1) {
        to += columns.rows * size;
        let target = out.target.wrapping_add((to >> 3) as usize);
        // SAFETY: as above; the next column has begun that byte with bits of 0.
        unsafe { target.write(target.read() | *held as u8) };
    }
    out.held = held.get(count as usize - 1).copied().unwrap_or(0);
}

/// Writes some bits of a column, whose words are `APART` words apart, after the held ones. Returns what is held then.
#[inline(always)]
unsafe fn put<const APART: usize>(
    mut words: *const u64,
    mut target: *mut u8,
    (shift, bits): (i64, i64),
    mut held: u64,
) -> u64 {
    let mut left = bits;
    while shift == 0 && left >= 64 {
        // SAFETY: the caller's promise.
        unsafe { target.cast::<[u8; 8]>().write_unaligned(words.read().to_le_bytes()) };
        (target, words) = (target.wrapping_add(8), opaque(words.wrapping_add(APART)));
        left -= 64;
    }
    while left > 0 {
        // SAFETY: the caller's promise.
        unsafe {
            let word = words.read();
            let value = word << shift | held;
            let bytes = (shift + left) >> 3;
            if bytes < 8 {
                write_bytes(target, value.to_le_bytes(), bytes as usize);
                return value >> (8 * bytes);
            }
            target.cast::<[u8; 8]>().write_unaligned(value.to_le_bytes());
            held = word >> 1 >> (63 - shift);
        }
        target = target.wrapping_add(8);
        words = opaque(words.wrapping_add(APART));
        left -= 64;
    }
    held
}

impl Columns {
    /// Reads some rows of a strip; the others become zeros.
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
            // SAFETY: the caller's promise; a row of a strip has no more than `W` words.
            unsafe {
                if is_readable {
                    // Opaque, because compilers take gathers to be quicker than loads.
                    *words = shifted(opaque(self.source.byte(begin)), begin & 7);
                } else {
                    self.source.push_words(words, begin, count * size, self.has_holes);
                }
            }
            begin = begin.wrapping_add(self.step);
        }
    }
}

/// In each two rows that are `BY` apart, swaps the upper `BY` elements of every 2 × `BY` of the first with the lower
/// ones of the second: after all powers of two, rows are columns.
#[inline(always)]
fn swap_parts<const K: usize, const W: usize, const BY: usize>(tile: &mut [[u64; W]; K]) {
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
