//! Transposes: contiguous units of many rows become contiguous rows of their own.
//!
//! The idea: a block is a line of columns by a few lines of rows. 16 bytes by as many rows as a line
//! has room for are transposed in registers; each lane holds other rows, so that nothing moves from
//! lane to lane; and each line of a target is stored whole, next to its neighbours.
//!
//! The trick: rows are often a power of two apart, and then their lines are all in a few sets of the
//! first-level cache, which does not hold them until all of their columns are taken. So each line is
//! taken at once, to a scratch where they lie one behind the other.
//!
//! Targets that begin within a line, each elsewhere, and go past the caches get their blocks by way of
//! the scratch: the rows before a block's own are transposed once more, so that what a target's line
//! still lacks is there, in front.
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. All rows must be readable and all targets writable; they do not overlap.
//! 3. A fence must follow the last store past the caches.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::combine::LINE;
use super::generic;
use super::vector::{load_rows, transposed, Vector};
use super::NonTemporal;
use core::arch::asm;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// A matrix of `rows` rows, `step` bytes apart (backwards: wrapped), of a contiguous unit of `width`
/// bytes for each target: target `i` gets unit `i` of every row, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Transpose<'a> {
    pub source: *const u8,
    pub step: usize,
    pub rows: usize,
    pub width: usize,
    pub targets: &'a [*mut u8],
    /// For whole lines of the targets, if they are to go past the caches.
    pub non_temporal: Option<&'a NonTemporal>,
    /// Room for a [`Scratch`] of this width, aligned as it is.
    pub scratch: *mut u8,
}

/// Lines of each target that a block makes: neighbours that are stored together.
const LINES: usize = 4;

/// Room for a block of units of `BYTES / 64` units a column.
#[repr(align(64))]
#[allow(dead_code)] // used by its address
pub(crate) struct Scratch<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

impl<const BYTES: usize> Scratch<BYTES> {
    pub(crate) const NEW: Self = Self([const { MaybeUninit::uninit() }; BYTES]);
}

/// Bytes of the scratch for units of `width` bytes: a line for each row of a block.
pub(crate) const fn scratch(width: usize) -> usize {
    match width {
        1 => LINES * LINE * LINE,
        2 => LINES * LINE * LINE / 2,
        _ => LINES * LINE * LINE / 4,
    }
}

/// Some rows of up to a line of columns.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    source: *const u8,
    step: usize,
    rows: usize,
    targets: &'a [*mut u8],
    /// Where in the targets they go to.
    at: usize,
    /// Whether whole lines go past the caches: targets are aligned to one.
    past: bool,
    /// Room for a line of each row.
    scratch: *mut u8,
    /// Where a line of each row is prefetched, if it is: any address.
    soon: Option<*const u8>,
}

/// The loops of a level for units of a width.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    /// For a line of columns, by way of the scratch.
    pub line: unsafe fn(&Block<'_>),
    /// For fewer columns, straight from the source.
    pub few: unsafe fn(&Block<'_>),
}

/// # Safety
/// 1, 2, 3.
pub(super) unsafe fn transpose(turns: &Turns, matrix: &Transpose<'_>) {
    let is_off = |target: &*mut u8| !(*target as usize).is_multiple_of(LINE);
    // SAFETY: the caller's promise.
    unsafe {
        match matrix.non_temporal {
            Some(stores) if matrix.targets.iter().any(is_off) => by_scratch(turns, stores, matrix),
            _ => by_blocks(turns, matrix),
        }
    }
}

/// Units of `width` bytes in a line.
fn side(width: usize) -> usize {
    LINE.checked_div(width).unwrap_or(1)
}

/// # Safety
/// As [`transpose`].
unsafe fn by_blocks(turns: &Turns, matrix: &Transpose<'_>) {
    let &Transpose { source, step, rows, width, targets, scratch, .. } = matrix;
    let (side, columns) = (side(width), targets.len());
    let (mut row, mut first) = (0, source);
    while row < rows {
        let band = band(rows - row, LINES, side);
        let mut done = 0;
        while done < columns {
            // No fewer than 16 bytes of columns, or it takes them unit by unit.
            let begin = done.min(columns.saturating_sub(side / 4));
            let some = targets.get(begin..).unwrap_or_default();
            let some = some.get(..side).unwrap_or(some);
            let block = Block {
                source: first.wrapping_add(begin * width),
                step,
                rows: band,
                targets: some,
                at: row * width,
                past: matrix.non_temporal.is_some(),
                scratch,
                soon: Some(soon(matrix, first, band, begin)).filter(|_| some.len() == side),
            };
            let turn = if some.len() == side { turns.line } else { turns.few };
            // SAFETY: the caller's promise.
            unsafe { turn(&block) };
            done = begin + some.len();
        }
        row += band;
        first = first.wrapping_add(step.wrapping_mul(band));
    }
}

/// Two lines ahead of a column of so many rows, or at the begin of the rows that follow.
fn soon(matrix: &Transpose<'_>, first: *const u8, rows: usize, column: usize) -> *const u8 {
    let &Transpose { step, width, targets, .. } = matrix;
    let ahead = column + 2 * side(width);
    let (below, ahead) =
        if ahead < targets.len() { (0, ahead) } else { (rows, ahead - targets.len()) };
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

/// Lines that a target gets of a block by way of the scratch, and the one in front of them.
const NEW: usize = 7;
const PITCH: usize = (1 + NEW) * LINE;
/// The most columns of such a block.
const MOST: usize = 32;

/// # Safety
/// As [`transpose`].
unsafe fn by_scratch(turns: &Turns, stores: &NonTemporal, matrix: &Transpose<'_>) {
    let &Transpose { source, step, rows, width, targets, scratch, .. } = matrix;
    let side = side(width);
    let most = (self::scratch(width) / PITCH).min(side).max(1);
    let mut lines = [null_mut(); MOST];
    for (line, at) in lines.iter_mut().zip((0..).step_by(PITCH)) {
        *line = scratch.wrapping_add(at);
    }
    let (mut row, mut first) = (0, source);
    while row < rows {
        let band = band(rows - row, NEW, side);
        let front = if row > 0 { side } else { 0 };
        let above = |at: *const u8| at.wrapping_sub(step.wrapping_mul(front));
        for (group, targets) in targets.chunks(most).enumerate() {
            let column = group * most;
            let begins_line = (column * width).is_multiple_of(LINE);
            let block = Block {
                source: above(first.wrapping_add(column * width)),
                step,
                rows: front + band,
                targets: lines.get(..targets.len()).unwrap_or_default(),
                at: LINE - front * width,
                past: false,
                scratch,
                soon: begins_line.then(|| above(soon(matrix, first, band, column))),
            };
            // SAFETY: the caller's promise; the scratch has room for so many columns.
            unsafe { (turns.few)(&block) };
            for (target, line) in targets.iter().zip(lines) {
                let (line, target) = (line.wrapping_add(LINE), target.wrapping_add(row * width));
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

/// Transposes a block of units of `W` bytes, of which `N` make 16, by vectors, `P` of them a line;
/// by way of the scratch, if it is a line of columns, or not.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
pub(super) unsafe fn by_vectors<
    V: Vector,
    const P: usize,
    const W: usize,
    const N: usize,
    const TAKES: bool,
>(
    block: &Block<'_>,
) {
    let &Block { source, step, rows, targets, at, past, scratch, .. } = block;
    let (side, tile_rows, columns) = (LINE / W, V::LANES * N, targets.len());
    if rows < tile_rows || columns < N {
        // SAFETY: the caller's promise.
        return unsafe { by_units::<W>(block) };
    }
    let (first, step) = if TAKES {
        // SAFETY: the caller's promise.
        unsafe { take_lines::<V, P>(block) };
        (scratch.cast_const(), LINE)
    } else {
        if let Some(mut soon) = block.soon {
            for _ in 0..rows {
                V::prefetch(soon);
                soon = soon.wrapping_add(step);
            }
        }
        // Or compilers keep a pointer to each row of each tile, most of them in memory.
        (source, opaque(step))
    };
    let whole = rows / side * side;
    for column in (0..columns).step_by(N) {
        // The last ones, each way, lie partly over those before.
        let column = column.min(columns - N);
        let Some(targets) = targets.get(column..).and_then(<[_]>::first_chunk::<N>) else { return };
        let first = first.wrapping_add(column * W);
        for row in (0..whole).step_by(side) {
            let tile = first.wrapping_add(step.wrapping_mul(row));
            // SAFETY: the caller's promise.
            unsafe {
                put_lines::<V, P, N>(tile, step, targets, at + row * W, past);
            }
        }
        for row in (whole..rows).step_by(tile_rows) {
            let row = row.min(rows - tile_rows);
            let tile = first.wrapping_add(step.wrapping_mul(row));
            // SAFETY: the caller's promise.
            unsafe {
                for (target, units) in targets.iter().zip(transposed(load_rows::<V, N>(tile, step)))
                {
                    units.store(target.wrapping_add(at + row * W));
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
            at += 2 * V::BYTES;
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
            to_each.for_each(|(target, parts)| V::put::<P, true>(parts, target));
        } else {
            to_each.for_each(|(target, parts)| V::put::<P, false>(parts, target));
        }
    }
}

/// Puts a line of each row on the scratch, and prefetches as many.
///
/// # Safety
/// 1, 2; there must be room for them.
#[inline(always)]
unsafe fn take_lines<V: Vector, const P: usize>(block: &Block<'_>) {
    let &Block { source, step, rows, scratch, soon, .. } = block;
    let (mut from, mut to, mut soon) = (source, scratch, soon.unwrap_or(source));
    for _ in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let mut line = [V::zero(); P];
            for (part, at) in line.iter_mut().zip((0..).step_by(V::BYTES)) {
                *part = V::load(from.wrapping_add(at));
            }
            V::prefetch(soon);
            V::put::<P, false>(line, to);
        }
        from = from.wrapping_add(step);
        soon = soon.wrapping_add(step);
        to = to.wrapping_add(LINE);
    }
}

/// The same number, of which the compiler knows nothing.
#[inline(always)]
fn opaque(mut number: usize) -> usize {
    // SAFETY: no instruction at all.
    unsafe {
        asm!("/* {number} */", number = inout(reg) number, options(pure, nomem, nostack, preserves_flags));
    }
    number
}

/// Transposes a block unit by unit.
///
/// # Safety
/// 2.
#[inline(never)]
pub(super) unsafe fn by_units<const W: usize>(block: &Block<'_>) {
    for (column, target) in block.targets.iter().enumerate() {
        let mut source = block.source.wrapping_add(column * W);
        for row in 0..block.rows {
            // SAFETY: the caller's promise.
            unsafe { generic::chunk::<W>(source, target.wrapping_add(block.at + row * W), 0) };
            source = source.wrapping_add(block.step);
        }
    }
}
