//! Transposes: contiguous units of many rows become contiguous rows of their own.
//!
//! The idea: a line of columns by as many rows is a square. Each lane of a register takes 16 bytes of
//! other rows, and each line of a target is stored whole, straight from the rows. Where registers are of a
//! line and hold a square, each line of a row is loaded once, whatever the caches hold.
//!
//! The trick: rows, and targets, are often a power of two apart, and then all lines of a column are in a
//! few sets of each cache and on one channel of the memory. So targets get some lines at a time; and
//! squares, one below the other, are taken by turns, each three further along than the one above:
//! neighbours in time are in other sets, and yet targets get their lines in order. Those go by way of a
//! scratch, for the first-level cache does not hold a line until all of its columns are taken.
//!
//! Targets that begin within a line, each elsewhere, and go past the caches get their blocks by way of
//! the scratch too: the rows before a block's own are transposed once more, so that what a target's line
//! still lacks is there, in front. Bytes have a way of their own where registers permute them
//! (`x86_64/transpose_past.rs`).
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. All rows must be readable and all targets writable; they do not overlap.
//! 3. A fence must follow the last store past the caches.

use super::combine::{Scratch, LINE};
use super::generic;
use super::opaque::{at_line, opaque};
use super::pick::Register;
use super::rules::LOW_THRESHOLDS;
use super::vector::{load_lanes, load_rows, put_together, transposed, Vector, LANE};
use super::NonTemporal;
use crate::math::{self, div, rem};
use core::array::from_fn;
use core::mem;
use core::ops::Range;
use core::ptr::null_mut;

/// A matrix of `rows` rows, `step` bytes apart (backwards: wrapped), of `columns` contiguous units of `width`
/// bytes: target `i` gets unit `i` of every row, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Transpose<'a> {
    pub source: *const u8,
    pub step: usize,
    pub rows: usize,
    pub width: usize,
    pub columns: usize,
    /// As many, or those of the first line of columns, and how many bytes it is from each to the next one
    /// (backwards: wrapped); where in all of them the first row goes to.
    pub targets: &'a [*mut u8],
    pub apart: usize,
    pub at: usize,
    /// Where the line behind the last one of the last rows is prefetched: any address.
    pub follows: *const u8,
    /// For whole lines of the targets, if they are to go past the caches.
    pub non_temporal: Option<&'a NonTemporal>,
    /// Whether lines of targets, or of the rows, meet in a few sets of the caches: always past them.
    pub conflicts: bool,
    /// [`super::Kernels::by_second`].
    pub by_second: bool,
    /// Room for as many bytes as [`scratch`] says, which begins a line.
    pub scratch: *mut u8,
}

impl<'a> Transpose<'a> {
    /// Of bytes, through the caches, to targets that do not meet there.
    pub(crate) fn of_bytes(
        (source, step, rows): (*const u8, usize, usize),
        targets: &'a [*mut u8],
        follows: *const u8,
    ) -> Self {
        Self {
            source,
            step,
            rows,
            width: 1,
            columns: targets.len(),
            targets,
            apart: 0,
            at: 0,
            follows,
            non_temporal: None,
            conflicts: false,
            by_second: false,
            scratch: null_mut(),
        }
    }

    /// The targets from a column on, and where in them it begins.
    #[inline(always)]
    pub(super) fn targets_from(&self, column: usize) -> (&[*mut u8], usize) {
        let &Self { targets, apart, at, .. } = self;
        match apart {
            0 => (targets.get(column..).unwrap_or_default(), at),
            _ => (targets, at.wrapping_add(apart.wrapping_mul(column))),
        }
    }

    /// How many bytes it is from the first target to the second.
    #[inline(never)] // once in the library
    fn apart(&self) -> usize {
        match *self.targets {
            [first, second, ..] if self.apart == 0 => {
                (second as usize).wrapping_sub(first as usize)
            }
            _ => self.apart,
        }
    }

    /// Whether targets, or the rows where those do not meet, are each a little less than so many sets of the caches
    /// behind the one before.
    fn drifts_back(&self) -> bool {
        let apart = self.apart();
        let beyond = apart.wrapping_add(NEAR) % (SAME_SET / 2);
        let drift = if beyond <= 2 * NEAR && beyond != NEAR { apart } else { self.step };
        drift % (SAME_SET / 2) > SAME_SET / 4
    }

    /// Whether all targets begin a line of theirs.
    fn are_on_lines(&self) -> bool {
        let &Self { width, targets, apart, at, .. } = self;
        let is_on = |target: &*mut u8| (*target as usize).wrapping_add(at).is_multiple_of(LINE);
        apart.wrapping_mul(side(width)).is_multiple_of(LINE) && targets.iter().all(is_on)
    }
}

/// So many lines of a target, side by side, are on all channels of the memory. Zen 5, stores past the
/// caches to targets 8 KiB apart, share of the flat copy: of 64 bytes .30, of 128 .60, of 256 .97.
const LINES: usize = 4;
/// How many squares ahead the input is prefetched, and where targets go past the caches.
const AHEAD: usize = 2;
const AHEAD_PAST: usize = 4;

/// More bytes, taken by turns through the caches, have a line of each target of the next turn asked for. Zen 4, us for
/// those without, of the first call, the second and the eighth after the targets have left the caches: 2,048² 290 for
/// 600, 160 for 330, 158 for 158; 1,024² 91 for 195, 56 for 64, 56 for 55; but 512² 23 for 38, 10.1 for 9.5, 9.8 for 9.2.
const ASKED: usize = if LOW_THRESHOLDS { 1 << 10 } else { 256 << 10 };

/// Bytes of the scratch for units of `width` bytes: a line for each row. Zen 5, u8 2,048² transposed, share of
/// the flat copy: .51; by half of each line at a time .43, by half of the lines .38, straight from the rows .26.
pub(crate) const fn scratch(width: usize) -> usize {
    match width {
        1 | 2 => LINES * LINE * LINE,
        _ => LINES * LINE * LINE / 2,
    }
}

/// How many lines targets get at a time: of bytes but one, for that fills the scratch.
const fn lines(width: usize, conflicts: bool) -> usize {
    if width > 1 || conflicts {
        LINES
    } else {
        1
    }
}

/// Squares side by side, a line of columns of as many rows each, and as many below each of them.
#[derive(Clone, Copy)]
pub(super) struct Band {
    source: *const u8,
    step: usize,
    width: usize,
    count: usize,
    /// Those of the first columns, where in them the rows go to, and for each column further along how many
    /// targets and bytes further that is.
    targets: *const *mut u8,
    at: usize,
    along: usize,
    apart: usize,
    /// The column that the last square begins with: part of it may lie over the one before.
    last: usize,
    /// How many squares further along, and round again, those of the line below are that have their turn.
    slant: usize,
    /// How many squares ahead of each a line of each row is prefetched, and where behind the last one: any
    /// addresses.
    ahead: usize,
    next: *const u8,
    /// Whether lines go past the caches: targets are aligned to one.
    past: bool,
    by_second: bool,
    /// Whether the targets of bytes are asked for.
    asks: bool,
}

impl Band {
    /// The square that has its turn, or its place, of a line of them; `soon` is where those prefetched begin.
    #[inline(always)]
    fn square(&self, side: usize, place: usize, soon: *const u8, line: usize) -> Square {
        let &Self { source, step, width, targets, at, along, apart, last, .. } = self;
        let below = step.wrapping_mul(line * side);
        let column = last.min(place * side);
        Square {
            source: source.wrapping_add(column * width).wrapping_add(below),
            soon: soon.wrapping_add(below),
            targets: targets.wrapping_add(along * column),
            at: at.wrapping_add(apart.wrapping_mul(column)).wrapping_add(line * LINE),
        }
    }

    /// Where the line of columns that is prefetched at a turn begins.
    #[inline(always)]
    fn soon(&self, turn: usize) -> *const u8 {
        let &Self { source, count, ahead, next, .. } = self;
        match (turn + ahead).checked_sub(count) {
            Some(turn) => next.wrapping_add(turn * LINE),
            None => source.wrapping_add((turn + ahead) * LINE),
        }
    }

    /// Those that have their turn together; behind the last ones the first ones of the next band.
    #[inline(never)] // once in the library
    fn diagonal(&self, side: usize, turn: usize) -> [Square; LINES] {
        let &Self { source, count, slant, ahead, next, .. } = self;
        let rows = if turn + ahead < count { source } else { next };
        let (mut place, below) = if turn < count { (turn, 0) } else { (0, LINES) };
        let mut squares = [Square { source, soon: rows, targets: self.targets, at: 0 }; LINES];
        let mut line = 0;
        while let Some(square) = squares.get_mut(line) {
            let soon = rows.wrapping_add(rem(place + ahead, count) * LINE);
            *square = self.square(side, place, soon, below + line);
            place = rem(place + slant, count);
            // Or compilers write all of it out.
            line = opaque(line + 1);
        }
        squares
    }

    /// One of them; of long units only where all targets are told. Calls take their time: f32
    /// 4,096 bytes apart .43 for .49; by AVX2 only 16 bytes are quicker so.
    #[inline(always)]
    fn one_of_diagonal(&self, side: usize, turn: usize, line: usize) -> Square {
        let &Self { source, step, count, targets, at, slant, ahead, next, .. } = self;
        let (along, apart) = if side > LINE / 8 { (self.along, self.apart) } else { (1, 0) };
        let below = step.wrapping_mul(line * side);
        let place = |turn: usize| rem(turn + slant * line, count);
        let soon = match (turn + ahead).checked_sub(count) {
            Some(turn) => next.wrapping_add(place(turn) * LINE),
            None => source.wrapping_add(place(turn + ahead) * LINE),
        };
        Square {
            source: source.wrapping_add(place(turn) * LINE).wrapping_add(below),
            soon: soon.wrapping_add(below),
            targets: targets.wrapping_add(along * place(turn) * side),
            at: at.wrapping_add(apart.wrapping_mul(place(turn) * side)).wrapping_add(line * LINE),
        }
    }
}

/// A line of columns of as many rows.
#[derive(Clone, Copy)]
struct Square {
    source: *const u8,
    soon: *const u8,
    targets: *const *mut u8,
    at: usize,
}

/// Some rows of up to a line of columns.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    source: *const u8,
    step: usize,
    pub rows: usize,
    targets: &'a [*mut u8],
    /// Where in the targets they go to.
    at: usize,
    /// Where a line of each row is prefetched, if it is: any address.
    soon: Option<*const u8>,
}

/// The loops of a level for units of a width.
#[derive(Clone, Copy)]
pub(super) struct WidthLoops {
    /// For squares, where there are registers for it.
    pub bands: Option<Bands>,
    /// For fewer rows or columns, straight from the source.
    pub few: unsafe fn(&Block<'_>),
}

/// Bytes of a square, or more, past the caches to targets that begin anywhere in a line.
pub(super) type Carry = unsafe fn(&Transpose<'_>);

/// Takes a square; what it is told by number is in [`Square`] and [`Band`].
type InOrder = unsafe fn(*const u8, *const u8, *const *mut u8, usize, usize, bool, bool);

/// Squares in the order of their columns; or all lines of a band by turns, by way of the scratch.
#[derive(Clone, Copy)]
pub(super) struct Bands {
    pub in_order: InOrder,
    pub by_turns: unsafe fn(&Band, *mut u8),
}

/// # Safety
/// 1, 2, 3.
pub(super) unsafe fn transpose(turns: &WidthLoops, carry: Option<Carry>, matrix: &Transpose<'_>) {
    // Bytes that AVX2, or AVX-512 without VBMI, transposes.
    let are_bytes = cfg!(target_arch = "x86_64") && carry.is_none() && matrix.width == 1;
    let carry = carry.filter(|_| matrix.width == 1 && matrix.rows.min(matrix.columns) >= LINE);
    // SAFETY: the caller's promise.
    unsafe {
        match (matrix.non_temporal, carry) {
            (None, _) => by_bands(turns, matrix, are_bytes),
            (Some(_), _) if matrix.are_on_lines() => by_bands(turns, matrix, are_bytes),
            (Some(_), Some(carry)) => carry(matrix),
            (Some(stores), None) => by_scratch(turns, stores, matrix),
        }
    }
}

/// Units of `width` bytes in a line.
fn side(width: usize) -> usize {
    LINE.checked_div(width).unwrap_or(1)
}

/// # Safety
/// As [`transpose`].
unsafe fn by_bands(turns: &WidthLoops, matrix: &Transpose<'_>, are_bytes: bool) {
    let &Transpose { rows, width, columns, conflicts, .. } = matrix;
    let (side, past) = (side(width), matrix.non_temporal.is_some());
    let loops = turns.bands.filter(|_| columns >= side && rows >= side);
    let takes_turns = conflicts && rows >= LINES * side && takes_turns(matrix, past, are_bytes);
    let (half, is_by_second) = (side / 2, cfg!(feature = "avx512") && matrix.by_second);
    let mut row = 0;
    while row < rows {
        let left = rows - row;
        // SAFETY: the caller's promise.
        unsafe {
            let Some(loops) = loops else {
                let band = band(left, LINES, side);
                few(turns, matrix, row..row + band, 0);
                row += band;
                continue;
            };
            let mut lines = div(left, side).min(MOST_LINES);
            // What makes fewer lines than take turns, or none, is taken together with rows that have been taken.
            if takes_turns && lines >= LINES {
                lines -= rem(lines, LINES);
            } else if takes_turns && is_by_second && lines > 0 && left - lines * side <= half {
                // Or what lies in the targets' lines would be stored across them.
                let end = row + lines * side;
                by_lines(turns, loops, matrix, end - LINES * side..end, past, are_bytes);
                row = end;
                continue;
            } else if lines == 0 || takes_turns {
                if cfg!(feature = "avx512") && left <= half {
                    // Zen 4 takes ten nanoseconds for a store that reaches into another page.
                    let last = if is_by_second { left.max(side / 4) } else { half };
                    return few(turns, matrix, rows - last..rows, 0);
                }
                let last = if takes_turns { LINES * side } else { side };
                return by_lines(turns, loops, matrix, rows - last..rows, false, are_bytes);
            }
            by_lines(turns, loops, matrix, row..row + lines * side, past, are_bytes);
            row += lines * side;
        }
    }
}

/// After so many lines of each target follow the columns that make no line.
const MOST_LINES: usize = 4 * LINES;

/// Rows that make whole lines: their squares, and then the columns that make none.
///
/// # Safety
/// As [`transpose`].
unsafe fn by_lines(
    turns: &WidthLoops,
    loops: Bands,
    matrix: &Transpose<'_>,
    rows: Range<usize>,
    past: bool,
    are_bytes: bool,
) {
    let &Transpose { source, step, width, columns, targets, at, .. } = matrix;
    let &Transpose { apart, conflicts, by_second, scratch, follows, .. } = matrix;
    let side = side(width);
    // What is most of a square is taken as one.
    let more = if past || (conflicts && width > 1) { 0 } else { side / 4 };
    let whole = div(columns + more, side);
    for band in math::parts(rows.clone(), lines(width, conflicts) * side) {
        let row = |row: usize| source.wrapping_add(step.wrapping_mul(row));
        let lines = div(band.len(), side);
        let squares = Band {
            source: row(band.start),
            step,
            width,
            count: whole,
            targets: targets.as_ptr(),
            at: at.wrapping_add(band.start * width),
            along: usize::from(apart == 0),
            apart,
            last: columns - side,
            slant: if matrix.drifts_back() { SLANT * whole.saturating_sub(1) } else { SLANT },
            ahead: if past { AHEAD_PAST } else { AHEAD },
            next: if band.end < matrix.rows { row(band.end) } else { follows },
            past,
            by_second,
            asks: by_second && !past && matrix.rows * columns > ASKED,
        };
        // SAFETY: the caller's promise; there is room for so many.
        unsafe {
            if lines == LINES && conflicts && takes_turns(matrix, past, are_bytes) {
                (loops.by_turns)(&squares, scratch);
            } else {
                for turn in 0..whole {
                    for line in 0..lines {
                        let square = squares.square(side, turn, squares.soon(turn), line);
                        let Square { source, soon, targets, at } = square;
                        (loops.in_order)(source, soon, targets, at, step, past, past && by_second);
                    }
                }
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { few(turns, matrix, rows, whole * side) };
}

/// Whether squares one below the other, whose lines are in a few sets of the caches, are taken by turns. Past
/// the caches only short units in rows that are all in one set of the first-level cache. Zen 5, share of the flat
/// copy by turns for in order: u8 8 KiB apart .44 for .27; f16 8 KiB .50 for .48, 6 KiB .61 for .66; f32 .68
/// for .76. Through them: u8 2 KiB .50 for .23, f32 4 KiB .50 for .34.
/// Zen 4, whose first-level cache has fewer ways, u16 6 KiB apart .70 by turns for .50. By AVX2 bytes where
/// targets meet too, as was chosen on Sapphire Rapids: Zen 4, us, 2,048² 714 in order, 280 by turns; 2,048 × 6,144
/// 2,440, 1,390.
#[inline(never)] // once in the library
fn takes_turns(matrix: &Transpose<'_>, past: bool, are_bytes: bool) -> bool {
    let &Transpose { step, width, by_second, .. } = matrix;
    let meet = || matrix.apart().is_multiple_of(FEW_SETS);
    let few_sets = if by_second || (are_bytes && meet()) { FEW_SETS } else { SAME_SET };
    !past || (width <= 2 && step.is_multiple_of(few_sets))
}

/// Squares by turns are so many further along than those above: one is in the sets of the other where targets drift
/// by a line each time, and so do two where the rows drift the other way. Zen 5, us, by 1 and by 3: u8 2,049 × 2,047
/// 255, 186, 2,049² 191, 190; f32 1,023 × 1,025 290, 182.
const SLANT: usize = 3;
/// Those are near to it that are no more than so many bytes further, or less.
pub(crate) const NEAR: usize = 24;
/// Lines so far apart are in one set of the first-level cache.
pub(crate) const SAME_SET: usize = 4096;
/// The same of every other one.
const FEW_SETS: usize = SAME_SET / 2;

/// Some rows of all columns from one on.
///
/// # Safety
/// As [`transpose`].
unsafe fn few(turns: &WidthLoops, matrix: &Transpose<'_>, rows: Range<usize>, from: usize) {
    let &Transpose { source, step, width, columns, .. } = matrix;
    let side = side(width);
    let mut done = from;
    while done < columns {
        // No fewer than 16 bytes of columns, or it takes them unit by unit.
        let begin = done.min(columns.saturating_sub(side / 4));
        let (targets, at) = matrix.targets_from(begin);
        let targets = targets.get(..side.min(columns - begin)).unwrap_or(targets);
        let row = source.wrapping_add(step.wrapping_mul(rows.start));
        let block = Block {
            source: row.wrapping_add(begin * width),
            step,
            rows: rows.len(),
            targets,
            at: at.wrapping_add(rows.start * width),
            soon: None,
        };
        // SAFETY: the caller's promise.
        unsafe { (turns.few)(&block) };
        done = begin + targets.len().max(1);
    }
}

/// Two lines ahead of a column of so many rows, or at the begin of the rows that follow.
fn soon(matrix: &Transpose<'_>, first: *const u8, rows: usize, column: usize) -> *const u8 {
    let &Transpose { step, width, columns, .. } = matrix;
    let ahead = column + 2 * side(width);
    let (below, ahead) = if ahead < columns { (0, ahead) } else { (rows, ahead - columns) };
    first.wrapping_add(step.wrapping_mul(below)).wrapping_add(ahead * width)
}

/// How many rows are taken next of so many: as many as make some lines. What then is left is no less
/// than makes one, for that is taken unit by unit.
fn band(rows: usize, lines: usize, side: usize) -> usize {
    match rows {
        rows if rows <= lines * side => rows,
        rows if rows < (lines + 1) * side => (lines - 1) * side,
        _ => lines * side,
    }
}

/// Lines that a target gets of a block by way of the scratch, behind the one in front of them: with a line of
/// columns of bytes, no more than fill it.
const fn new_lines(width: usize) -> usize {
    if width == 1 {
        LINES - 1
    } else {
        2 * LINES - 1
    }
}

/// # Safety
/// As [`transpose`].
#[inline(never)] // which takes some of the stack
unsafe fn by_scratch(turns: &WidthLoops, stores: &NonTemporal, matrix: &Transpose<'_>) {
    let &Transpose { source, step, rows, width, columns, scratch, .. } = matrix;
    let side = side(width);
    let new = new_lines(width);
    let mut lines = [null_mut(); LINE];
    let mut place = scratch;
    for line in lines.iter_mut().take(side) {
        *line = place;
        // Or compilers write it out for all there ever are.
        place = place.wrapping_add(opaque((1 + new) * LINE));
    }
    let (mut row, mut first) = (0, source);
    while row < rows {
        let band = band(rows - row, new, side);
        let front = if row > 0 { side } else { 0 };
        let above = |at: *const u8| at.wrapping_sub(step.wrapping_mul(front));
        for group in math::parts(0..columns, side) {
            let column = group.start;
            let (targets, at) = matrix.targets_from(column);
            let targets = targets.get(..group.len()).unwrap_or(targets);
            let soon = above(soon(matrix, first, band, column));
            let block = Block {
                source: above(first.wrapping_add(column * width)),
                step,
                rows: front + band,
                targets: lines.get(..targets.len()).unwrap_or_default(),
                at: LINE - front * width,
                soon: Some(soon),
            };
            // SAFETY: the caller's promise; the scratch has room for so many columns.
            unsafe {
                match turns.bands {
                    Some(loops) if targets.len() == side && rem(band, side) == 0 => {
                        squares(loops, &block, soon, matrix);
                    }
                    _ => (turns.few)(&block),
                }
            }
            for (target, line) in targets.iter().zip(lines) {
                let target = target.wrapping_add(at.wrapping_add(row * width));
                let line = line.wrapping_add(LINE);
                // SAFETY: the caller's promise.
                unsafe {
                    stream(stores, line, target, band * width, row > 0, row + band < rows);
                }
            }
        }
        row += band;
        first = first.wrapping_add(step.wrapping_mul(band));
    }
}

/// A block of whole squares, one below the other: each line of its rows is loaded once, whatever the caches
/// hold. Zen 5, f32 2,056 × 2,048 transposed, share of the flat copy: .56 for .21.
///
/// # Safety
/// As [`transpose`].
unsafe fn squares(loops: Bands, block: &Block<'_>, soon: *const u8, matrix: &Transpose<'_>) {
    let &Transpose { width, by_second, .. } = matrix;
    let side = side(width);
    let &Block { source, step, rows, targets, mut at, .. } = block;
    let mut row = 0;
    while row < rows {
        let below = step.wrapping_mul(row);
        let (source, soon) = (source.wrapping_add(below), soon.wrapping_add(below));
        // SAFETY: the caller's promise.
        unsafe { (loops.in_order)(source, soon, targets.as_ptr(), at, step, false, by_second) };
        row += side;
        at += LINE;
    }
}

/// Sends the lines off that `bytes` more make whole, and if nothing follows what is left of the last
/// one; where something went before, what that left is in front of them.
///
/// # Safety
/// 2, 3.
unsafe fn stream(
    stores: &NonTemporal,
    line: *const u8,
    target: *mut u8,
    bytes: usize,
    has_front: bool,
    is_followed: bool,
) {
    let owed = target as usize % LINE;
    let (mut line, mut target, mut bytes) = (line, target, bytes);
    // SAFETY: the caller's promise.
    unsafe {
        if has_front {
            (line, target) = (line.sub(owed), target.sub(owed));
            bytes += if is_followed { 0 } else { owed };
        } else if owed > 0 {
            let head = (LINE - owed).min(bytes);
            generic::copy_rare(line, target, head);
            (line, target) = (line.add(head), target.add(head));
            bytes -= if is_followed { LINE } else { head };
        }
        let whole = bytes - bytes % LINE;
        (stores.stream)(line, target, whole);
        if whole < bytes {
            generic::copy_rare(line.add(whole), target.add(whole), bytes - whole);
        }
    }
}

/// Transposes a square of units of `W` bytes, of which `N` make 16, by vectors, `P` of them a line.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
pub(super) unsafe fn in_order<V: Vector, const P: usize, const W: usize, const N: usize>(
    source: *const u8,
    soon: *const u8,
    targets: *const *mut u8,
    at: usize,
    step: usize,
    past: bool,
    by_second: bool,
) {
    let (mut square, mut step) = (Square { source, soon, targets, at }, step);
    let mut lines = Scratch::<{ LINE * LINE / 2 }>::NEW;
    // SAFETY: the caller's promise; there is room for so many lines.
    unsafe {
        if V::LANES == 4 && N <= 4 {
            put_whole::<V, N>(&square, step, past, by_second);
        } else {
            // Zen 4, u16 2,056 × 2,048, share of the flat copy: .36 for .18.
            if V::LANES == 4 && W == 2 && by_second && step.is_multiple_of(FEW_SETS) {
                let lines = lines.as_mut_ptr();
                take_line_by_line::<V>(&square, step, lines, LINE / W);
                (square.source, square.soon, step) = (lines, lines, LINE);
            }
            put_square::<V, P, W, N>(&square, step, past, by_second);
        }
    }
}

/// The same by way of the scratch, [`LINES`] at a time.
///
/// # Safety
/// 1, 2; 3 if past the caches; there must be room for so many.
#[inline(always)]
pub(super) unsafe fn by_turns<V: Vector, const P: usize, const W: usize, const N: usize>(
    band: &Band,
    scratch: *mut u8,
) {
    let &Band { step, count, by_second, asks, .. } = band;
    // As `takes_turns` says.
    let past = W <= 2 && band.past;
    if V::LANES == 4 && W == 1 && (!past || by_second) {
        let mut next = band.diagonal(LINE, 0);
        for turn in 1..=count {
            let squares = mem::replace(&mut next, band.diagonal(LINE, turn));
            // SAFETY: the caller's promise.
            unsafe { in_eighths::<V>(&squares, &next, asks, step, scratch, past, by_second) };
        }
        return;
    }
    for at in 0..count {
        let squares: [_; LINES] = if W == 1 || (V::LANES < 4 && W < 16) {
            band.diagonal(LINE / W, at)
        } else {
            from_fn(|line| band.one_of_diagonal(LINE / W, at, line))
        };
        // SAFETY: the caller's promise; a square has a line of targets.
        unsafe {
            take_lines::<V, P, W>(&squares, step, scratch, by_second);
            // Some columns of each: what targets get side by side is then not far apart in time.
            for group in 0..opaque(LINE / LANE) {
                let mut taken = scratch.wrapping_add(group * LANE);
                for square in &squares {
                    let targets = &*square.targets.add(group * N).cast();
                    put_lines::<V, P, N>(taken, LINE, targets, square.at, past);
                    taken = taken.wrapping_add(LINE / W * LINE);
                }
            }
        }
    }
}

/// Rows of bytes that make 8 of each column, and how often there are so many in a square.
pub(super) const EIGHT: usize = 8;

/// The same for bytes by registers of a line each, in two stages: eight rows make 8 bytes of each column, and
/// eight times as many a line of it. Zen 5, u8 2,048² transposed, share of the flat copy: .52 for .48; 4,100 rows
/// of 1,024 .32 for .22; but u16 4,096 bytes apart .28 for .34, f32 .46 for .49.
///
/// # Safety
/// As [`by_turns`].
#[inline(always)]
unsafe fn in_eighths<V: Vector>(
    squares: &[Square; LINES],
    next: &[Square; LINES],
    asks: bool,
    step: usize,
    scratch: *mut u8,
    past: bool,
    by_second: bool,
) {
    for eighth in 0..opaque(EIGHT) {
        let below = step.wrapping_mul(eighth * EIGHT);
        let mut to = scratch.wrapping_add(eighth * LINE);
        for square in squares {
            let soon = by_second.then_some(square.soon.wrapping_add(below));
            // SAFETY: the caller's promise.
            unsafe { take_eight::<V>(square.source.wrapping_add(below), step, to, soon) };
            to = to.wrapping_add(LINE * LINE);
        }
    }
    // Some columns of each: what targets get side by side is then not far apart in time.
    for group in 0..opaque(EIGHT) {
        let mut taken = scratch.wrapping_add(group * EIGHT * LINE);
        for (square, next) in squares.iter().zip(next) {
            let targets = square.targets.wrapping_add(2 * group);
            // SAFETY: the caller's promise; a square has a line of targets.
            unsafe {
                if asks {
                    ask_targets::<V, EIGHT>(next.targets.wrapping_add(group * EIGHT), next.at);
                }
                put_eight::<V>(taken, targets, square.at, past);
            }
            taken = taken.wrapping_add(LINE * LINE);
        }
    }
}

/// Puts eight rows of a line together: a register has 8 bytes of two columns for each lane. Asks for as many
/// lines in the second-level cache.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn take_eight<V: Vector>(
    source: *const u8,
    step: usize,
    to: *mut u8,
    soon: Option<*const u8>,
) {
    let (mut source, mut to) = (source, to);
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(soon) = soon {
            ask::<V>(soon, step, EIGHT, true);
        }
        let mut rows = [V::zero(); EIGHT];
        for row in &mut rows {
            *row = V::load(source);
            source = source.wrapping_add(step);
        }
        for columns in put_together::<V, EIGHT, LANE>(rows) {
            columns.store(to);
            to = to.wrapping_add(EIGHT * LINE);
        }
    }
}

/// Stores a line of two columns for each lane, of which all bytes have been put side by side.
///
/// # Safety
/// 1, 2.
#[inline(always)]
unsafe fn put_eight<V: Vector>(taken: *const u8, targets: *const *mut u8, at: usize, past: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        for (second, lines) in lines_of_eight::<V>(taken).into_iter().enumerate() {
            for (lane, line) in lines.into_iter().enumerate() {
                V::put([line], (*targets.add(lane * LANE + second)).wrapping_add(at), past);
            }
        }
    }
}

/// The lines of the first column of each lane, and of the second one.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn lines_of_eight<V: Vector>(taken: *const u8) -> [[V; 4]; 2] {
    let mut taken = taken;
    // SAFETY: the caller's promise.
    unsafe {
        let [mut even, mut odd] = [[V::zero(); 4]; 2];
        for (even, odd) in even.iter_mut().zip(&mut odd) {
            let next = V::load(taken.wrapping_add(LINE));
            [*even, *odd] = V::load(taken).interleaved::<2>(next);
            taken = taken.wrapping_add(2 * LINE);
        }
        [V::lanes_transposed(even), V::lanes_transposed(odd)]
    }
}

/// A square straight from its rows, 16 bytes of all of them at a time.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
unsafe fn put_square<V: Vector, const P: usize, const W: usize, const N: usize>(
    square: &Square,
    step: usize,
    past: bool,
    by_second: bool,
) {
    let (mut source, mut soon) = (square.source, square.soon);
    let mut targets = square.targets;
    // Or compilers write all of it out, and keep a pointer to each row.
    for _ in 0..opaque(LINE / LANE) {
        let step = opaque(step);
        // SAFETY: the caller's promise; a square has a line of targets.
        unsafe {
            put_lines::<V, P, N>(source, step, &*targets.cast(), square.at, past);
        }
        targets = targets.wrapping_add(N);
        source = source.wrapping_add(LANE);
        soon = ask::<V>(soon, step, N, by_second);
    }
}

/// The same by registers of a line each: each line of a row is loaded once, wherever the first-level cache
/// does not hold those of all rows.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
unsafe fn put_whole<V: Vector, const N: usize>(
    square: &Square,
    step: usize,
    past: bool,
    by_second: bool,
) {
    let step = opaque(step);
    let (mut source, mut soon) = (square.source, square.soon);
    if by_second {
        ask::<V>(soon, step, 4 * N, true);
        // Branches take their time: what is loaded is asked for.
        soon = source;
    }
    // SAFETY: the caller's promise; a square has a line of targets.
    unsafe {
        let mut lanes = [[V::zero(); 4]; N];
        for lanes in &mut lanes {
            let mut row = source;
            for line in &mut *lanes {
                *line = V::load(row);
                V::prefetch(soon);
                row = row.wrapping_add(step.wrapping_mul(N));
                soon = soon.wrapping_add(step);
            }
            *lanes = V::lanes_transposed(*lanes);
            source = source.wrapping_add(step);
        }
        for group in 0..4 {
            let units =
                transposed(lanes.map(|lanes| lanes.get(group).copied().unwrap_or(V::zero())));
            let targets = &*square.targets.add(group * N).cast::<[*mut u8; N]>();
            put_each(units.map(|line| [line]), targets, square.at, past);
        }
    }
}

/// Transposes a block of units of `W` bytes, of which `N` make 16, by vectors, straight from the source.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn by_vectors<V: Register, const W: usize, const N: usize>(block: &Block<'_>) {
    let &Block { source, step, rows, targets, at, .. } = block;
    let (tile_rows, columns) = (V::LANES * N, targets.len());
    // Rows for one lane of two: the last ones are in the other, some of them for the second time.
    let is_short = rows < tile_rows;
    let second = rows.saturating_sub(N).min(N);
    if rows < N || columns < N || (is_short && V::LANES != 2) {
        // SAFETY: the caller's promise.
        return unsafe { by_units::<W>(block) };
    }
    if let Some(mut soon) = block.soon {
        let mut left = rows;
        while left > 0 {
            V::prefetch(soon);
            soon = soon.wrapping_add(step);
            left = opaque(left - 1);
        }
    }
    // Or compilers keep a pointer to each row of each tile, most of them in memory.
    let step = opaque(step);
    for column in (0..columns).step_by(N) {
        // The last ones, each way, lie partly over those before.
        let column = column.min(columns - N);
        let Some(targets) = targets.get(column..).and_then(<[_]>::first_chunk::<N>) else { return };
        for row in (0..rows).step_by(tile_rows) {
            let row = row.min(rows.saturating_sub(tile_rows));
            let tile = source.wrapping_add(column * W).wrapping_add(step.wrapping_mul(row));
            // SAFETY: the caller's promise.
            unsafe {
                let units = transposed(load_lanes::<V, N>(tile, step, step.wrapping_mul(second)));
                for (target, units) in targets.iter().zip(units) {
                    let target = target.wrapping_add(at).wrapping_add(row * W);
                    if is_short {
                        units.store_lanes(target, second * W);
                    } else {
                        units.store(target);
                    }
                }
            }
        }
    }
}

/// A line of rows for each target, by no fewer than two vectors at a time where one is less.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
unsafe fn put_lines<V: Vector, const P: usize, const N: usize>(
    source: *const u8,
    step: usize,
    targets: &[*mut u8; N],
    at: usize,
    past: bool,
) {
    let (mut source, mut at) = (source, at);
    let tile = step.wrapping_mul(V::LANES * N);
    // SAFETY: the caller's promise.
    unsafe {
        for _ in (0..P).step_by(2) {
            let low = transposed(load_rows::<V, N>(source, step));
            if P == 1 {
                return put_each(low.map(|line| [line]), targets, at, past);
            }
            let mut high =
                transposed(load_rows::<V, N>(source.wrapping_add(tile), step)).into_iter();
            put_each(low.map(|low| [low, high.next().unwrap_or(low)]), targets, at, past);
            source = source.wrapping_add(tile.wrapping_mul(2));
            at = at.wrapping_add(2 * V::BYTES); // where targets go down, before the first one
        }
    }
}

/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
unsafe fn put_each<V: Vector, const P: usize, const N: usize>(
    parts: [[V; P]; N],
    targets: &[*mut u8; N],
    at: usize,
    past: bool,
) {
    let to_each = targets.iter().map(|target| target.wrapping_add(at)).zip(parts);
    // SAFETY: the caller's promise.
    unsafe {
        if past {
            to_each.for_each(|(target, parts)| V::put(parts, target, true));
        } else {
            to_each.for_each(|(target, parts)| V::put(parts, target, false));
        }
    }
}

/// Puts the lines of a square on the scratch, by registers of as many bytes, and prefetches as many in the
/// second-level cache.
///
/// # Safety
/// 1, 2; there must be room for them.
#[inline(always)]
unsafe fn take_line_by_line<V: Vector>(square: &Square, step: usize, to: *mut u8, rows: usize) {
    let (mut source, mut soon, mut to) = (square.source, square.soon, to);
    let mut left = rows;
    while left > 0 {
        V::prefetch_second(soon);
        // SAFETY: the caller's promise.
        unsafe { V::load(source).store(to) };
        (source, soon) = (source.wrapping_add(step), soon.wrapping_add(step));
        to = to.wrapping_add(LINE);
        left = opaque(left - 1);
    }
}

/// Puts the lines of squares on the scratch, a row of each by turns, and prefetches as many.
///
/// # Safety
/// 1, 2; there must be room for them.
#[inline(always)]
unsafe fn take_lines<V: Vector, const P: usize, const W: usize>(
    squares: &[Square; LINES],
    step: usize,
    scratch: *mut u8,
    by_second: bool,
) {
    // Or compilers write all of it out.
    let rows = opaque(LINE / W);
    let (mut offset, mut to) = (0usize, scratch);
    for _ in 0..rows {
        if V::LANES == 4 && by_second {
            for square in squares {
                V::prefetch_second(square.soon.wrapping_add(offset));
            }
        } else {
            for square in squares {
                V::prefetch(square.soon.wrapping_add(offset));
            }
        }
        for (square, place) in squares.iter().zip((0..).step_by(LINE / W * LINE)) {
            let from = square.source.wrapping_add(offset);
            // SAFETY: the caller's promise.
            unsafe {
                let mut line = [V::zero(); P];
                for (part, at) in line.iter_mut().zip((0..).step_by(V::BYTES)) {
                    *part = V::load(from.wrapping_add(at));
                }
                V::put(line, to.wrapping_add(place), false);
            }
        }
        offset = offset.wrapping_add(step);
        to = to.wrapping_add(LINE);
    }
}

/// Asks for a line of each of so many rows, in the second-level cache if so; the row behind them.
#[inline(always)]
pub(super) fn ask<V: Vector>(
    soon: *const u8,
    step: usize,
    rows: usize,
    by_second: bool,
) -> *const u8 {
    let mut soon = soon;
    if V::LANES == 4 && by_second {
        let mut left = rows;
        while left > 0 {
            V::prefetch_second(soon);
            soon = soon.wrapping_add(step);
            // Or compilers write out several.
            left = opaque(left - 1);
        }
    } else {
        for _ in 0..rows {
            V::prefetch(soon);
            soon = soon.wrapping_add(step);
        }
    }
    soon
}

/// Asks for a line of so many targets in the second-level cache.
///
/// # Safety
/// There must be as many.
#[inline(always)]
unsafe fn ask_targets<V: Vector, const N: usize>(targets: *const *mut u8, at: usize) {
    // SAFETY: the caller's promise.
    for target in unsafe { &*targets.cast::<[*mut u8; N]>() } {
        V::prefetch_second(target.wrapping_add(at));
    }
}

/// Transposes a block unit by unit.
///
/// # Safety
/// 2.
#[inline(never)]
pub(super) unsafe fn by_units<const W: usize>(block: &Block<'_>) {
    for (column, target) in block.targets.iter().enumerate() {
        let mut source = block.source.wrapping_add(column * W);
        let mut left = block.rows;
        let mut target = target.wrapping_add(block.at);
        at_line();
        while left > 0 {
            // SAFETY: the caller's promise.
            unsafe { generic::chunk::<W>(source, target, 0) };
            source = source.wrapping_add(block.step);
            target = target.wrapping_add(W);
            left = opaque(left - 1);
        }
    }
}
