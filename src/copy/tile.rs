//! Kernels that transpose: the units of a row go to as many columns.
//!
//! The idea: of as many rows as a lane of 16 bytes has units, one lane each makes a square. Unpacking the first half of
//! its rows with the second, unit by unit, once for each power of two, transposes it. Each lane of a register has a
//! square of its own, of the rows that follow, so that a register ends up with units that are contiguous in a column.
//!
//! # Safety
//! For everything unsafe here: the units must be readable and writable, and the CPU must have the features of the
//! level. A fence must follow what goes past the caches.

use super::stream::prefetch_rows;
use super::vector::{Vector, LANE_BYTES, LINE_BYTES};
use crate::math::{div, div_ceil};
use core::mem::MaybeUninit;

/// The most columns of a block.
pub(super) const MAX_COLUMNS: usize = 64;
/// The most lanes of a register.
const MAX_LANES: usize = LINE_BYTES / LANE_BYTES;

/// `rows` rows, `from` bytes apart, of contiguous units, one for each target; row `n` becomes unit `n` of the targets.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub source: *const u8,
    /// Bytes of a unit, of which a lane holds a whole number.
    pub unit: usize,
    pub from: isize,
    pub rows: usize,
    pub targets: &'a [*mut u8],
    /// Bytes of each target that come before these rows.
    pub at: usize,
    /// The end of what may be read.
    pub readable_end: *const u8,
}

/// Returns how many units of this size fill a lane; `None` if none do.
pub(super) fn units_of_lane(unit: usize) -> Option<usize> {
    matches!(unit, 1 | 2 | 4 | 8 | 16).then(|| div(LANE_BYTES, unit))
}

impl Block<'_> {
    pub(super) fn row(&self, row: usize) -> *const u8 {
        self.source.wrapping_offset(self.from.wrapping_mul(row.cast_signed()))
    }

    /// Returns the block without its first rows.
    pub(super) fn skip(&self, rows: usize) -> Self {
        Self {
            source: self.row(rows),
            rows: self.rows - rows,
            at: self.at + rows * self.unit,
            ..*self
        }
    }

    /// Returns whether all targets continue where lines begin.
    pub(super) fn begins_lines(&self) -> bool {
        let begins = |target: &*mut u8| (*target as usize + self.at).is_multiple_of(LINE_BYTES);
        self.targets.iter().all(begins)
    }

    pub(super) fn take(&self, rows: usize) -> Self {
        Self { rows, ..*self }
    }

    /// Returns how many of the first rows can be read by whole lanes, if rows are shorter than that.
    fn readable_rows(&self) -> usize {
        if self.targets.len() * self.unit >= LANE_BYTES {
            return self.rows;
        }
        let room =
            (self.readable_end as usize).saturating_sub(self.source as usize + LANE_BYTES - 1);
        if room == 0 {
            return 0;
        }
        let lanes = match self.from {
            1.. => div_ceil(room, self.from.unsigned_abs()),
            _ => usize::MAX,
        };
        lanes.min(self.rows)
    }
}

/// Transposes a block in registers. `U` is the bytes of a unit, `K` the columns of a lane. The last rows are done
/// together with some that are done already; what is too little for a register is done by lanes, and what is too little
/// for those is left. Returns how many rows are done.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector, const U: usize, const K: usize>(
    block: &Block<'_>,
) -> usize {
    let rows = block.readable_rows();
    let each = V::BYTES / U;
    let is_whole = rows == block.rows;
    let mut done = 0;
    // SAFETY: within the block.
    unsafe {
        while rows >= each && (done + each <= rows || (is_whole && done < rows)) {
            let begin = done.min(rows - each);
            row_of_tiles::<V, U, K>(&block.skip(begin));
            done = begin + each;
        }
        while rows >= K && (rows - done >= K || (rows < each && done < rows)) {
            let begin = done.min(rows - K);
            row_of_lanes::<V, U, K>(&block.skip(begin));
            done = begin + K;
        }
    }
    done
}

/// Transposes as many rows as a register takes, in all columns.
#[inline(always)]
unsafe fn row_of_tiles<V: Vector, const U: usize, const K: usize>(block: &Block<'_>) {
    let mut column = 0;
    while column < block.targets.len() {
        // SAFETY: within the block, or what has been found readable.
        column = unsafe { any_tile::<V, U, K, false>(block, column) };
    }
}

/// Transposes as many rows as a lane takes, in all columns.
#[inline(always)]
unsafe fn row_of_lanes<V: Vector, const U: usize, const K: usize>(block: &Block<'_>) {
    let each = V::BYTES / U;
    let mut column = 0;
    // SAFETY: within the block, or what has been found readable.
    unsafe {
        while V::BYTES > LANE_BYTES && column + each <= block.targets.len() {
            tile_of_lanes::<V, U, K>(block, column);
            column += each;
        }
        while column < block.targets.len() {
            column = any_tile::<V::Lane, U, K, false>(block, column);
        }
    }
}

/// Transposes the columns of a register in a few rows: each lane has columns of its own.
#[inline(always)]
unsafe fn tile_of_lanes<V: Vector, const U: usize, const K: usize>(
    block: &Block<'_>,
    column: usize,
) {
    let lanes = V::BYTES / LANE_BYTES;
    let mut made = MaybeUninit::<[V; K]>::uninit();
    // SAFETY: the caller's promise.
    unsafe {
        let mut next = block.source.wrapping_add(column * U);
        let mut rows = [V::load(next); K];
        for row in rows.iter_mut().skip(1) {
            next = next.wrapping_offset(block.from);
            *row = V::load(next);
        }
        let made = made.write(transpose_squares::<V, U, K>(rows)).as_ptr().cast::<V::Lane>();
        for lane in 0..lanes {
            for number in 0..K {
                let made = made.add(number * lanes + lane).read();
                put::<V::Lane, false>(&[made], block, column + lane * K + number);
            }
        }
    }
}

/// Transposes the columns of a register, or of a lane, the last ones with some that are done. Returns the next column.
#[inline(always)]
unsafe fn any_tile<V: Vector, const U: usize, const K: usize, const PAST: bool>(
    block: &Block<'_>,
    column: usize,
) -> usize {
    let columns = block.targets.len();
    // SAFETY: the caller's promise.
    unsafe {
        // Half lines that are sent past the caches wait for their other half, and only few can.
        let is_wide = V::BYTES == LINE_BYTES || (V::BYTES > LANE_BYTES && !PAST);
        if is_wide && column + V::BYTES / U <= columns {
            wide_tile::<V, U, K, PAST>(block, column);
            return column + V::BYTES / U;
        }
        let begin = column.min(columns.saturating_sub(K));
        tile::<V, U, K, PAST>(block, begin);
        begin + K
    }
}

/// Transposes the columns of a register: rows are loaded whole, so that a line is read once, and then lanes move.
#[inline(always)]
unsafe fn wide_tile<V: Vector, const U: usize, const K: usize, const PAST: bool>(
    block: &Block<'_>,
    column: usize,
) {
    let lanes = V::BYTES / LANE_BYTES;
    let mut squares = MaybeUninit::<[[V; K]; MAX_LANES]>::uninit();
    let squares = squares.as_mut_ptr().cast::<V>();
    // SAFETY: the caller's promise; each register of the squares is written before it is read.
    unsafe {
        let mut next = block.source.wrapping_add(column * U);
        for row in 0..K {
            let mut rows = [V::load(next); MAX_LANES];
            for (lane, row) in rows.iter_mut().enumerate().take(lanes).skip(1) {
                let offset = block.from.wrapping_mul((lane * K).cast_signed());
                *row = V::load(next.wrapping_offset(offset));
            }
            let rows = V::transpose_lanes(rows);
            for (lane, made) in rows.into_iter().enumerate().take(lanes) {
                squares.add(lane * K + row).write(made);
            }
            next = next.wrapping_offset(block.from);
        }
        for lane in 0..lanes {
            let made = transpose_squares::<V, U, K>(squares.add(lane * K).cast::<[V; K]>().read());
            put::<V, PAST>(&made, block, column + lane * K);
            // CPUs do not prefetch for so many columns at a time.
            if !PAST {
                let targets = block.targets.as_ptr().add(column + lane * K);
                for number in 0..K {
                    let target = targets.add(number).read();
                    V::prefetch_later(target.wrapping_add(block.at + 2 * LINE_BYTES));
                }
            }
        }
    }
}

/// Stores a register to each column, as many as there are.
#[inline(always)]
unsafe fn put<V: Vector, const PAST: bool>(made: &[V], block: &Block<'_>, column: usize) {
    let targets = block.targets.as_ptr().wrapping_add(column);
    for (number, made) in made.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let target = targets.wrapping_add(number).read().wrapping_add(block.at);
            if PAST {
                made.stream(target);
            } else {
                made.store(target);
            }
        }
    }
}

/// Transposes `K` columns, or as many as there are.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // by fewer than there are
unsafe fn tile<V: Vector, const U: usize, const K: usize, const PAST: bool>(
    block: &Block<'_>,
    column: usize,
) {
    let from = block.from;
    // SAFETY: the caller's promise.
    unsafe {
        let mut next = block.source.wrapping_add(column * block.unit);
        let lanes = from.wrapping_mul(K.cast_signed());
        let mut rows = [V::load_lanes(next, lanes); K];
        for row in rows.iter_mut().skip(1) {
            next = next.wrapping_offset(from);
            *row = V::load_lanes(next, lanes);
        }
        let made = transpose_squares::<V, U, K>(rows);
        // The compiler knows how many columns a whole square has.
        match block.targets.len() {
            columns if columns < K => put::<V, PAST>(&made[..columns], block, column),
            _ => put::<V, PAST>(&made, block, column),
        }
    }
}

/// Transposes the square of each lane.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // by numbers that the compiler knows
unsafe fn transpose_squares<V: Vector, const U: usize, const K: usize>(mut rows: [V; K]) -> [V; K] {
    let mut done = 1;
    while done < K {
        let before = rows;
        for n in 0..K / 2 {
            // SAFETY: the CPU has the features of the level.
            (rows[2 * n], rows[2 * n + 1]) = unsafe { before[n].unpack::<U>(before[n + K / 2]) };
        }
        done *= 2;
    }
    rows
}

/// Transposes past the caches, if all targets begin lines: as many rows as make whole lines. Returns how many.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn by_lines<V: Vector, const U: usize, const K: usize>(
    block: &Block<'_>,
) -> usize {
    let each = LINE_BYTES / U;
    let mut done = 0;
    while done + each <= block.readable_rows() {
        // SAFETY: within the block.
        unsafe { lines::<V, U, K>(&block.take(done + each).skip(done)) };
        done += each;
    }
    done
}

/// Transposes a line of every column.
#[inline(always)]
unsafe fn lines<V: Vector, const U: usize, const K: usize>(block: &Block<'_>) {
    let columns = block.targets.len();
    let each = V::BYTES / U;
    let mut column = 0;
    while column < columns {
        // The rows that come next are prefetched, a line of each at a time.
        if (column * block.unit).is_multiple_of(LINE_BYTES) {
            let next = block.row(block.rows).wrapping_add(column * block.unit);
            prefetch_rows::<V>(next, block.rows, block.from, LINE_BYTES);
        }
        let (mut done, mut end) = (0, column);
        while done < block.rows {
            // SAFETY: within the block.
            end = unsafe { any_tile::<V, U, K, true>(&block.skip(done), column) };
            done += each;
        }
        column = end;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::level::{kernels_of, Kernels};
    use super::super::machine::levels;
    use super::super::Guarded;
    use super::{Block, LINE_BYTES};

    const INPUT_BYTES: usize = 512 << 10;
    const UNTOUCHED: u8 = 0xEE;

    /// Every unit is where its row and column say, nothing else is written, and nothing is read beyond the input.
    #[test]
    fn blocks_are_transposed() {
        let input = Guarded::filled(INPUT_BYTES);
        for kernels in levels().into_iter().map(kernels_of) {
            for unit in [1usize, 2, 4, 8, 16] {
                for columns in [2, 3, 4, 7, 8, 15, 16, 17, 33, 64] {
                    for rows in [1, 5, 9, 16, 31, 64, 200] {
                        for gap in [0usize, unit, 600] {
                            let from = (columns * unit + gap).cast_signed();
                            check(kernels, &input, (unit, columns), (rows, from));
                            check(kernels, &input, (unit, columns), (rows, -from));
                        }
                    }
                }
            }
        }
    }

    fn check(
        kernels: &Kernels,
        input: &Guarded,
        (unit, columns): (usize, usize),
        (rows, from): (usize, isize),
    ) {
        let step = from.unsigned_abs();
        let bytes = (rows - 1) * step + columns * unit;
        let begin = input.place(bytes, true).cast_const();
        let first_row = if from < 0 { (rows - 1) * step } else { 0 };
        let pitch = (rows * unit).next_multiple_of(LINE_BYTES) + 2 * LINE_BYTES;
        for (past, off) in [(false, 0), (false, unit), (true, 0)] {
            if past && rows * unit < 2 * LINE_BYTES {
                continue;
            }
            let mut output = vec![UNTOUCHED; columns * pitch + LINE_BYTES];
            let first = output.as_ptr().align_offset(LINE_BYTES) + off;
            let targets: Vec<*mut u8> = (0..columns)
                .map(|column| output.as_mut_ptr().wrapping_add(first + column * pitch))
                .collect();
            let source = begin.wrapping_add(first_row);
            let (targets, readable_end) = (&targets[..], begin.wrapping_add(bytes));
            let block = Block { source, unit, from, rows, targets, at: 0, readable_end };
            // SAFETY: the input and the outputs are as long as the block says.
            unsafe {
                kernels.transpose(&block, past);
            };
            let mut expected = vec![UNTOUCHED; output.len()];
            for row in 0..rows {
                let row_at = source.wrapping_offset(from * row.cast_signed());
                for byte in 0..columns * unit {
                    let at = first + byte / unit * pitch + row * unit + byte % unit;
                    // SAFETY: within the input.
                    expected[at] = unsafe { row_at.wrapping_add(byte).read() };
                }
            }
            assert!(
                output == expected,
                "{}: {columns} columns of {unit}, {rows} rows {from} apart, past: {past}, off: {off}",
                kernels.name
            );
        }
        (kernels.fence)();
    }
}
