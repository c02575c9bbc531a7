//! Transposes: contiguous units of many rows become contiguous rows of their own.
//!
//! The idea: blocks of whole lines on both sides go through a scratch in the first-level cache, so that
//! each line of the source is read once and each line of a target written once. Within a block, tiles
//! of 16 bytes by as many rows as a register has room for are transposed in registers; each lane holds
//! other rows, so that nothing moves from lane to lane.
//!
//! The trick for targets that begin within a line and go past the caches: the rows before a block's own
//! are transposed once more, so that what a target's line still lacks is on the scratch, in front.
//!
//! Registers of a whole line need neither ([`whole_blocks`]).
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. All rows must be readable and all targets writable; they do not overlap.
//! 3. A fence must follow the last store past the caches.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::combine::LINE;
use super::generic;
use super::stream::stream as stream_lines;
use super::vector::{load_rows, transposed, Vector, LANE};
use core::arch::asm;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// A matrix of `rows` rows, `step` bytes apart (backwards: wrapped), of a contiguous unit for each
/// target: target `i` gets unit `i` of every row, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Transpose<'a> {
    pub source: *const u8,
    pub step: usize,
    pub rows: usize,
    pub targets: &'a [*mut u8],
    /// Whether whole lines of the targets go to memory past the caches.
    pub streams: bool,
    /// Room for a [`Scratch`], aligned as it is.
    pub scratch: *mut u8,
}

/// Bytes of the scratch: a fraction of a first-level cache, for stacks may be small.
const SCRATCH: usize = BLOCK_LINES * LINE * LINE;

#[repr(align(64))]
#[allow(dead_code)] // used by its address
pub(crate) struct Scratch([MaybeUninit<u8>; SCRATCH]);

impl Scratch {
    pub(crate) const NEW: Self = Self([const { MaybeUninit::uninit() }; SCRATCH]);
}

/// What a level of CPU features does its own way.
pub(super) trait Level {
    /// Rows of a tile, in units of those that 16 bytes of a column have.
    const LANES: usize;

    /// Puts `LANES * N` rows of `N` units of `W` bytes, 16 bytes a row, on the scratch as `N` rows,
    /// so many bytes from one another.
    ///
    /// # Safety
    /// 1, 2; there must be room for `N` rows on the scratch.
    unsafe fn turn<const W: usize, const N: usize>(
        source: *const u8,
        step: usize,
        scratch: *mut u8,
        pitch: usize,
    );

    /// Copies whole lines past the caches to an aligned target.
    ///
    /// # Safety
    /// 1, 2, 3.
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize);

    /// Prefetches a line of each of some rows; any address will do.
    fn prefetch(source: *const u8, step: usize, rows: usize);

    /// Transposes as many whole blocks as there are, of so many rows and a line of columns, where a
    /// register holds a line; how many rows and columns that was.
    ///
    /// # Safety
    /// 1, 2, 3; where lines go past the caches, targets must be aligned to one.
    unsafe fn whole_blocks<const W: usize, const N: usize>(_: &Transpose<'_>) -> (usize, usize) {
        (0, 0)
    }
}

/// For every CPU.
pub(super) struct Portable;

impl Level for Portable {
    const LANES: usize = 2;

    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(
        source: *const u8,
        step: usize,
        scratch: *mut u8,
        pitch: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe { turn_units::<W>(source, step, 2 * N, N, scratch, pitch) };
    }

    #[inline(always)]
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_short(source, target, bytes) };
    }

    #[inline(always)]
    fn prefetch(_: *const u8, _: usize, _: usize) {}
}

/// By vectors, `P` of them a line.
pub(super) struct ByVectors<V, const P: usize>(PhantomData<V>);

impl<V: Vector, const P: usize> Level for ByVectors<V, P> {
    const LANES: usize = V::LANES;

    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(
        source: *const u8,
        step: usize,
        scratch: *mut u8,
        pitch: usize,
    ) {
        // Or compilers keep a pointer to each row of each tile, most of them in memory.
        let step = opaque(step);
        // SAFETY: the caller's promise.
        unsafe {
            let mut target = scratch;
            for row in transposed(load_rows::<V, N>(source, step)) {
                row.store(target);
                target = target.wrapping_add(pitch);
            }
        }
    }

    #[inline(always)]
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { stream_lines::<V, P>(source, target, bytes, None) };
    }

    #[inline(always)]
    unsafe fn whole_blocks<const W: usize, const N: usize>(
        matrix: &Transpose<'_>,
    ) -> (usize, usize) {
        if V::BYTES < LINE {
            return (0, 0);
        }
        // SAFETY: the caller's promise.
        unsafe {
            if matrix.streams {
                whole_blocks::<V, W, N, true>(matrix)
            } else {
                whole_blocks::<V, W, N, false>(matrix)
            }
        }
    }

    #[inline(always)]
    fn prefetch(source: *const u8, step: usize, rows: usize) {
        let mut line = source;
        for _ in 0..rows {
            V::prefetch_second(line);
            line = line.wrapping_add(step);
        }
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

/// Puts `rows` rows of `columns` units on the scratch, unit by unit.
///
/// # Safety
/// As [`fill`].
#[inline(never)]
unsafe fn turn_units<const W: usize>(
    source: *const u8,
    step: usize,
    rows: usize,
    columns: usize,
    scratch: *mut u8,
    pitch: usize,
) {
    for row in 0..rows {
        let source = source.wrapping_add(step.wrapping_mul(row));
        for column in 0..columns {
            let target = scratch.wrapping_add(column * pitch + row * W);
            // SAFETY: the caller's promise.
            unsafe { generic::chunk::<W>(source.add(column * W), target, 0) };
        }
    }
}

/// Units of `W` bytes, `N` in 16 bytes; `strips` is [`transpose_strips`] of the level.
///
/// # Safety
/// 1, 2, 3.
#[inline(always)]
pub(super) unsafe fn transpose<L: Level, const W: usize, const N: usize>(
    matrix: &Transpose<'_>,
    strips: Strips,
) {
    // What did not end with a line of its target is sent off with the rest of it.
    let carries = matrix.streams
        && matrix.targets.iter().any(|target| !(*target as usize).is_multiple_of(LINE));
    if !carries {
        // SAFETY: the caller's promise; what is left is copied below.
        let (rows, columns) = unsafe { L::whole_blocks::<W, N>(matrix) };
        if rows > 0 {
            // SAFETY: the same, without some columns, and without some rows.
            return unsafe { transpose_rest::<W>(matrix, rows, columns, strips) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { strips(matrix, carries) };
}

/// What is right of so many columns, and what is below so many rows of these.
///
/// # Safety
/// As [`transpose`].
#[inline(always)]
unsafe fn transpose_rest<const W: usize>(
    matrix: &Transpose<'_>,
    rows: usize,
    columns: usize,
    strips: Strips,
) {
    let (done, right) = matrix.targets.split_at_checked(columns).unwrap_or_default();
    let source = matrix.source.wrapping_add(columns * W);
    // SAFETY: the caller's promise; a copy of a part of the matrix is one.
    unsafe {
        strips(&Transpose { source, targets: right, ..*matrix }, false);
        if rows == matrix.rows {
            return;
        }
        let mut source = matrix.source.wrapping_add(matrix.step.wrapping_mul(rows));
        for targets in done.chunks(LINE) {
            let mut below = [core::ptr::null_mut(); LINE];
            for (slot, target) in below.iter_mut().zip(targets) {
                *slot = target.wrapping_add(rows * W);
            }
            let targets = below.get(..targets.len()).unwrap_or_default();
            let part = Transpose { source, rows: matrix.rows - rows, targets, ..*matrix };
            strips(&part, false);
            source = source.wrapping_add(targets.len() * W);
        }
    }
}

/// The loops by way of the scratch, for targets that begin within a line or not.
type Strips = unsafe fn(&Transpose<'_>, bool);

/// # Safety
/// As [`transpose`].
#[inline(always)]
pub(super) unsafe fn transpose_strips<L: Level, const W: usize, const N: usize>(
    matrix: &Transpose<'_>,
    carries: bool,
) {
    let &Transpose { source, step, rows, targets, streams, scratch } = matrix;
    // Bytes that a target gets of a block, those in front of them, and columns at a time.
    let (new, front, side) =
        if carries { (7 * LINE, LINE, (LINE / W).min(32)) } else { (2 * LINE, 0, LINE / W) };
    let (block, pitch) = (new / W, front + new);
    let width = targets.len() * W;
    let mut row = 0;
    while row < rows {
        let some = block.min(rows - row);
        let is_whole = some == block;
        let before = if row > 0 { front } else { 0 };
        let first = source.wrapping_add(step.wrapping_mul(row));
        for (targets, at) in targets.chunks(side).zip((0..).step_by(side * W)) {
            let first = first.wrapping_add(at);
            if carries {
                // Of the few columns of long rows CPUs are not ahead.
                let soon = at + 2 * LINE;
                let below = if soon < width { 0 } else { block };
                let soon = if soon < width { soon } else { soon - width };
                let next = source.wrapping_add(step.wrapping_mul(row + below) + soon);
                L::prefetch(next, step, block);
            }
            // SAFETY: the caller's promise; the scratch has room for so many columns.
            unsafe {
                fill::<L, W, N>(
                    first.wrapping_sub(step.wrapping_mul(before / W)),
                    step,
                    before / W + some,
                    targets.len(),
                    scratch.add(front - before),
                    pitch,
                );
                let mut line = scratch.add(front);
                for target in targets {
                    let target = target.wrapping_add(row * W);
                    if streams {
                        stream::<L>(line, target, some * W, row > 0, row + some < rows);
                    } else if is_whole {
                        copy_lines(line, target, new / LINE);
                    } else {
                        copy_short(line, target, some * W);
                    }
                    line = line.wrapping_add(pitch);
                }
            }
        }
        row += some;
    }
}

/// Sends the lines off that `bytes` more make whole, and if nothing follows what is left of the last
/// one; where something went before, what that left is in front of them.
///
/// # Safety
/// 2, 3.
#[inline(always)]
unsafe fn stream<L: Level>(
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
            copy_short(line, target, head);
            (line, target) = (line.add(head), target.add(head));
            bytes -= if is_followed { LINE } else { head };
        }
        let whole = bytes - bytes % LINE;
        L::stream(line, target, whole);
        if whole < bytes {
            copy_short(line.add(whole), target.add(whole), bytes - whole);
        }
    }
}

/// Puts rows of up to a line of units on the scratch.
///
/// # Safety
/// They must be readable, and a scratch row for each column writable.
#[inline(always)]
unsafe fn fill<L: Level, const W: usize, const N: usize>(
    source: *const u8,
    step: usize,
    rows: usize,
    columns: usize,
    scratch: *mut u8,
    pitch: usize,
) {
    let tile = |row: usize, column: usize| {
        let source = source.wrapping_add(step.wrapping_mul(row));
        // SAFETY: the caller's promise.
        unsafe {
            let scratch = scratch.add(column * pitch + row * W);
            L::turn::<W, N>(source.add(column * W), step, scratch, pitch);
        }
    };
    if rows >= L::LANES * N && columns >= N {
        // The last tile each way lies partly over the one before.
        for row in (0..rows).step_by(L::LANES * N) {
            for column in (0..columns).step_by(N) {
                tile(row.min(rows - L::LANES * N), column.min(columns - N));
            }
        }
    } else {
        // SAFETY: the caller's promise.
        unsafe { turn_units::<W>(source, step, rows, columns, scratch, pitch) };
    }
}

/// Copies few bytes: one loop for all levels.
///
/// # Safety
/// 2.
#[inline(never)]
unsafe fn copy_short(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { generic::copy(source, target, bytes) };
}

/// Copies lines through the caches.
///
/// # Safety
/// 2.
#[inline(always)]
unsafe fn copy_lines(source: *const u8, target: *mut u8, lines: usize) {
    for line in 0..lines {
        // SAFETY: the caller's promise.
        unsafe { generic::chunk::<LINE>(source, target, line * LINE) };
    }
}

/// Lines of each target that a block makes.
const BLOCK_LINES: usize = 4;

/// Whole blocks, by registers of a line.
///
/// The trick: rows are often a power of two apart, and then their lines are all in a few sets of the
/// first-level cache, which does not hold them until all of their columns are taken. So each line is
/// taken at once, to a scratch where they lie one behind the other; and lines of targets, for the same
/// reason, are stored whole.
///
/// # Safety
/// As [`Level::whole_blocks`].
#[inline(always)]
unsafe fn whole_blocks<V: Vector, const W: usize, const N: usize, const PAST: bool>(
    matrix: &Transpose<'_>,
) -> (usize, usize) {
    let &Transpose { source, step, targets, scratch, .. } = matrix;
    let side = LINE / W;
    let block = BLOCK_LINES * side;
    let rows = matrix.rows - matrix.rows % block;
    let columns = targets.len() - targets.len() % side;
    if rows == 0 || columns == 0 {
        return (0, 0);
    }
    for row in (0..rows).step_by(block) {
        let mut first = source.wrapping_add(step.wrapping_mul(row));
        for targets in targets.chunks_exact(side) {
            let (mut from, mut to) = (first, scratch);
            for _ in 0..block {
                // SAFETY: the caller's promise; any address may be prefetched.
                unsafe { V::load(from).store(to) };
                V::prefetch(from.wrapping_add(2 * LINE));
                from = from.wrapping_add(step);
                to = to.wrapping_add(LINE);
            }
            let mut column = scratch.cast_const();
            for targets in targets.chunks_exact(N) {
                let mut tile = column;
                for line in 0..BLOCK_LINES {
                    // SAFETY: the scratch has so many tiles; the caller's promise.
                    unsafe {
                        let lines = transposed(load_rows::<V, N>(tile, LINE));
                        for (target, units) in targets.iter().zip(lines) {
                            let target = target.wrapping_add(row * W + line * LINE);
                            V::put::<1, PAST>([units], target);
                        }
                    }
                    tile = tile.wrapping_add(side * LINE);
                }
                column = column.wrapping_add(LANE);
            }
            first = first.wrapping_add(LINE);
        }
    }
    (rows, columns)
}
