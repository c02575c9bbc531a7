//! Kernels that transpose: the units of a row of the input go to as many columns of the output.
//!
//! The rows of a block have a unit for each target, and each target is a column that gets a unit from every row. A lane
//! of 16 bytes holds `K` units, so `K` rows of `K` columns make a square. With units of 4 bytes, `K` is 4; w, x, y and
//! z are the columns. Unpacking takes units from the low halves of two registers in turn, and from their high halves:
//!
//! ```text
//!   rows of the input        1st with 3rd, 2nd with 4th       1st with 3rd, 2nd with 4th: columns
//!   w0 x0 y0 z0              w0 w2 x0 x2   (low halves)       w0 w1 w2 w3
//!   w1 x1 y1 z1      --->    y0 y2 z0 z2   (high halves)  --> x0 x1 x2 x3
//!   w2 x2 y2 z2              w1 w3 x1 x3                      y0 y1 y2 y3
//!   w3 x3 y3 z3              y1 y3 z1 z3                      z0 z1 z2 z3
//! ```
//!
//! Each pass unpacks register `n` with register `n + K / 2`; after one pass for each power of two, the square is
//! transposed. A wider register has a square in each lane. Loaded whole, its lanes are columns that lie side by side;
//! lanes are exchanged first, so that they are the rows of one column that follow each other, and a store fills a
//! register's length of that column. With two lanes:
//!
//! ```text
//!   row 0:  w0 x0 y0 z0 | s0 t0 u0 v0                 w0 x0 y0 z0 | w4 x4 y4 z4    square of w x y z,
//!   row 4:  w4 x4 y4 z4 | s4 t4 u4 v4   --lanes-->    s0 t0 u0 v0 | s4 t4 u4 v4    square of s t u v
//! ```

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]

use super::ahead::prefetch_rows;
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
    fn row(&self, row: usize) -> *const u8 {
        self.source.wrapping_offset(self.from.wrapping_mul(row.cast_signed()))
    }

    /// Returns the block without its first rows.
    pub(super) fn skip(&self, rows: usize) -> Self {
        debug_assert!(rows <= self.rows, "{rows} of {} rows are skipped", self.rows);
        Self {
            source: self.row(rows),
            rows: self.rows - rows,
            at: self.at + rows * self.unit,
            ..*self
        }
    }

    /// Checks what the kernels rely on. Columns of less than a lane are loaded in one, and stored as many as there are.
    #[inline(always)]
    fn check<const U: usize, const K: usize>(&self) {
        const { assert!(U * K == LANE_BYTES) }
        debug_assert!(self.unit == U, "units of {} bytes in tiles of {U}", self.unit);
        let columns = self.targets.len();
        debug_assert!((1..=MAX_COLUMNS).contains(&columns), "a block of {columns} columns");
    }

    /// Returns whether all targets continue where lines begin.
    pub(super) fn begins_lines(&self) -> bool {
        let begins = |target: &*mut u8| (*target as usize + self.at).is_multiple_of(LINE_BYTES);
        self.targets.iter().all(begins)
    }

    /// Returns how many of the first rows can be read by whole lanes, if rows are shorter than that; none on levels that
    /// have no unpack.
    #[inline(always)]
    fn readable_rows<V: Vector>(&self) -> usize {
        if V::WINDOW_BYTES == 0 {
            return 0;
        }
        if self.targets.len() * self.unit >= LANE_BYTES {
            return self.rows;
        }
        let room =
            (self.readable_end as usize).saturating_sub(self.source as usize + LANE_BYTES - 1);
        match self.from {
            1.. => div_ceil(room, self.from.unsigned_abs()).min(self.rows),
            _ if room > 0 => self.rows,
            _ => 0,
        }
    }
}

/// Transposes a block in registers. `U` is the bytes of a unit, `K` the columns of a lane. The last rows are done
/// together with some that are done already; what is too little for a register is done by lanes, and what is too little
/// for those is left. Returns how many rows are done.
///
/// # Safety
/// The units of all rows must be readable: `targets.len()` of `U` bytes from each row's first byte on. If such a row is
/// shorter than a lane, everything from the lowest row on to `readable_end` must be readable. `rows` units must be
/// writable at each target, `at` bytes behind it; nothing else is written. The CPU must have the features of the level.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector, const U: usize, const K: usize>(
    block: &Block<'_>,
) -> usize {
    block.check::<U, K>();
    let rows = block.readable_rows::<V>();
    let each = V::BYTES / U;
    let is_whole = rows == block.rows;
    let mut done = 0;
    while rows >= each && (done + each <= rows || (is_whole && done < rows)) {
        let begin = done.min(rows - each);
        all_columns::<V, U, K, false>(&Block { rows: each, ..block.skip(begin) });
        done = begin + each;
    }
    while rows >= K && (rows - done >= K || (rows < each && done < rows)) {
        let begin = done.min(rows - K);
        all_columns::<V::Lane, U, K, false>(&Block { rows: K, ..block.skip(begin) });
        done = begin + K;
    }
    done
}

/// Transposes the columns of a register, or of a lane, the last ones with some that are done. Returns the next column.
#[inline(always)]
unsafe fn any_tile<V: Vector, const U: usize, const K: usize, const STREAMED: bool>(
    block: &Block<'_>,
    column: usize,
) -> usize {
    let columns = block.targets.len();
    // Half lines that are streamed wait for their other half, and only few can.
    let is_wide = V::BYTES == LINE_BYTES || (V::BYTES > LANE_BYTES && !STREAMED);
    if is_wide && column + V::BYTES / U <= columns {
        wide_tile::<V, U, K, STREAMED>(block, column);
        return column + V::BYTES / U;
    }
    let begin = column.min(columns.saturating_sub(K));
    tile::<V, U, K, STREAMED>(block, begin);
    begin + K
}

/// Transposes the columns of a register: rows are loaded whole, so that a line is read once, and then lanes move.
#[inline(always)]
unsafe fn wide_tile<V: Vector, const U: usize, const K: usize, const STREAMED: bool>(
    block: &Block<'_>,
    column: usize,
) {
    let lanes = V::BYTES / LANE_BYTES;
    // Every register of the squares is written before it is read.
    let mut squares = MaybeUninit::<[[V; K]; MAX_LANES]>::uninit();
    let squares = squares.as_mut_ptr().cast::<V>();
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
        store_columns::<V, STREAMED>(&made, block, column + lane * K);
    }
}

/// Stores a register to each column, as many as there are.
#[inline(always)]
unsafe fn store_columns<V: Vector, const STREAMED: bool>(
    made: &[V],
    block: &Block<'_>,
    column: usize,
) {
    let targets = block.targets.as_ptr().wrapping_add(column);
    for (number, made) in made.iter().enumerate() {
        made.put::<STREAMED>(targets.wrapping_add(number).read().wrapping_add(block.at));
    }
}

/// Transposes `K` columns, or as many as there are.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // by fewer than there are
unsafe fn tile<V: Vector, const U: usize, const K: usize, const STREAMED: bool>(
    block: &Block<'_>,
    column: usize,
) {
    let from = block.from;
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
        columns if columns < K => store_columns::<V, STREAMED>(&made[..columns], block, column),
        _ => store_columns::<V, STREAMED>(&made, block, column),
    }
}

/// Transposes the square of each lane.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // by numbers that the compiler knows
pub(super) unsafe fn transpose_squares<V: Vector, const U: usize, const K: usize>(
    mut rows: [V; K],
) -> [V; K] {
    let mut done = 1;
    while done < K {
        let before = rows;
        for n in 0..K / 2 {
            (rows[2 * n], rows[2 * n + 1]) = before[n].unpack::<U>(before[n + K / 2]);
        }
        done *= 2;
    }
    rows
}

/// Transposes and streams as many rows as make whole lines of the columns, all of which must begin lines. Returns how
/// many rows are done.
///
/// # Safety
/// As for [`transpose`]; and the columns must begin lines, and a fence must follow before others read them.
#[inline(always)]
pub(super) unsafe fn stream_lines<V: Vector, const U: usize, const K: usize>(
    block: &Block<'_>,
) -> usize {
    block.check::<U, K>();
    debug_assert!(block.begins_lines(), "columns are streamed that do not begin lines");
    let each = LINE_BYTES / U;
    let mut done = 0;
    while done + each <= block.readable_rows::<V>() {
        all_columns::<V, U, K, true>(&Block { rows: each, ..block.skip(done) });
        done += each;
    }
    done
}

/// Transposes all rows of a block, which are whole registers of units, in all columns.
#[inline(always)]
unsafe fn all_columns<V: Vector, const U: usize, const K: usize, const STREAMED: bool>(
    block: &Block<'_>,
) {
    let columns = block.targets.len();
    let each = V::BYTES / U;
    let mut column = 0;
    while column < columns {
        // A line of each of the rows that follow.
        if STREAMED && (column * block.unit).is_multiple_of(LINE_BYTES) {
            let next = block.row(block.rows).wrapping_add(column * block.unit);
            prefetch_rows::<V>(next, block.rows, block.from, LINE_BYTES);
        }
        let (mut done, mut end) = (0, column);
        while done < block.rows {
            end = any_tile::<V, U, K, STREAMED>(&block.skip(done), column);
            done += each;
        }
        column = end;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::call::deliver_block;
    use super::super::kernels::Kernels;
    use super::super::level::kernels_of;
    use super::super::tests::levels;
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
        for (streams, off) in [(false, 0), (false, unit), (true, 0)] {
            if streams && rows * unit < 2 * LINE_BYTES {
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
                deliver_block(kernels, &block, streams);
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
                "{}: {columns} columns of {unit}, {rows} rows {from} apart, streamed: {streams}, off: {off}",
                kernels.name
            );
        }
        (kernels.fence)();
    }
}
