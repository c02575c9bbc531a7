//! Transposes: contiguous units of many rows become contiguous rows of their own.
//!
//! The idea: blocks of whole lines on both sides go through a scratch in the first-level cache, so that
//! each line of the source is read once and each line of a target written once. Within a block, tiles
//! of 16 bytes by as many rows as a register has room for are transposed in registers; each lane holds
//! other rows, so that nothing moves from lane to lane.
//!
//! The trick for targets that begin within a line: rows on the scratch have room for a line in front,
//! where what a target's line still lacks is carried on from block to block.
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. All rows must be readable and all targets writable; they do not overlap.
//! 3. A fence must follow the last store past the caches.

// As in `generic.rs`.
#![allow(clippy::inline_always)]
// The scratch: half of a first-level cache.
#![allow(clippy::large_stack_arrays)]

use super::combine::LINE;
use super::generic;
use super::stream::stream as stream_lines;
use super::vector::{load_rows, transposed, Vector};
use crate::math::div_rem;
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
}

/// The most targets whose lines wait on the scratch.
pub(crate) const STRIP: usize = 128;

/// Rows on the scratch have the line before them in front: a target's own lines begin anywhere in
/// them.
const fn pitch(height: usize) -> usize {
    (1 + height) * LINE
}

const MAX_PITCH: usize = pitch(4);

/// What a level of CPU features does its own way.
pub(super) trait Level {
    /// Rows of a tile, in units of those that 16 bytes of a column have.
    const LANES: usize;
    /// Lines of each target that are made at a time: two that follow each other go past the caches in
    /// the time of one.
    const HEIGHT: usize;
    const PITCH: usize = pitch(Self::HEIGHT);

    /// Puts `LANES * N` rows of `N` units of `W` bytes, 16 bytes a row, on the scratch as `N` rows.
    ///
    /// # Safety
    /// 1, 2; there must be room for `N` rows on the scratch.
    unsafe fn turn<const W: usize, const N: usize>(
        source: *const u8,
        step: usize,
        scratch: *mut u8,
    );

    /// Copies whole lines past the caches to an aligned target.
    ///
    /// # Safety
    /// 1, 2, 3.
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize);

    /// Prefetches a line of each of some rows; any address will do.
    fn prefetch(source: *const u8, step: usize, rows: usize);
}

/// For every CPU.
pub(super) struct Portable;

impl Level for Portable {
    const LANES: usize = 2;
    const HEIGHT: usize = 2;

    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(
        source: *const u8,
        step: usize,
        scratch: *mut u8,
    ) {
        // SAFETY: the caller's promise.
        unsafe { turn_units::<Self, W>(source, step, 2 * N, N, scratch) };
    }

    #[inline(always)]
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { generic::copy(source, target, bytes) };
    }

    #[inline(always)]
    fn prefetch(_: *const u8, _: usize, _: usize) {}
}

/// By vectors, `P` of them a line, and `H` lines at a time.
pub(super) struct ByVectors<V, const P: usize, const H: usize>(PhantomData<V>);

impl<V: Vector, const P: usize, const H: usize> Level for ByVectors<V, P, H> {
    const LANES: usize = V::LANES;
    const HEIGHT: usize = H;

    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(
        source: *const u8,
        step: usize,
        scratch: *mut u8,
    ) {
        // Or compilers keep a pointer to each row of each tile, most of them in memory.
        let step = opaque(step);
        // SAFETY: the caller's promise.
        unsafe {
            let mut target = scratch;
            for row in transposed(load_rows::<V, N>(source, step)) {
                row.store(target);
                target = target.wrapping_add(Self::PITCH);
            }
        }
    }

    #[inline(always)]
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { stream_lines::<V, P>(source, target, bytes, None) };
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
#[inline(always)]
unsafe fn turn_units<L: Level + ?Sized, const W: usize>(
    source: *const u8,
    step: usize,
    rows: usize,
    columns: usize,
    scratch: *mut u8,
) {
    for row in 0..rows {
        let source = source.wrapping_add(step.wrapping_mul(row));
        for column in 0..columns {
            let target = scratch.wrapping_add(column * L::PITCH + row * W);
            // SAFETY: the caller's promise.
            unsafe { generic::chunk::<W>(source.add(column * W), target, 0) };
        }
    }
}

/// Units of `W` bytes, `N` in 16 bytes.
///
/// # Safety
/// All rows must be readable and all targets writable; they do not overlap.
#[inline(always)]
pub(super) unsafe fn transpose<L: Level, const W: usize, const N: usize>(matrix: &Transpose<'_>) {
    // What does not end with a line of its target waits on the scratch for the rest of it.
    let carries = matrix.streams
        && matrix.targets.iter().any(|target| !(*target as usize).is_multiple_of(LINE));
    // Rows are best read from one end to the other, which is what CPUs are ahead of.
    let width = if matrix.streams && !carries { matrix.targets.len() } else { STRIP };
    let mut source = matrix.source;
    for targets in matrix.targets.chunks(width.max(1)) {
        // SAFETY: the caller's promise.
        unsafe { transpose_strip::<L, W, N>(&Transpose { source, targets, ..*matrix }, carries) };
        source = source.wrapping_add(targets.len() * W);
    }
}

/// Some columns, no more than [`STRIP`] if lines of theirs are carried on from block to block.
///
/// # Safety
/// As [`transpose`].
#[inline(always)]
unsafe fn transpose_strip<L: Level, const W: usize, const N: usize>(
    matrix: &Transpose<'_>,
    carries: bool,
) {
    let &Transpose { step, targets, streams, .. } = matrix;
    let mut scratch = Scratch([const { MaybeUninit::uninit() }; STRIP * MAX_PITCH]);
    let scratch = scratch.0.as_mut_ptr().cast::<u8>().wrapping_add(LINE);
    let (block, side) = (L::HEIGHT * LINE / W, LINE / W);
    let width = targets.len().div_ceil(side) * LINE;
    let tail = matrix.rows % block;
    let end = matrix.rows - tail;
    let row_at = |row: usize| matrix.source.wrapping_add(step.wrapping_mul(row));
    for row in (0..end).step_by(block) {
        let mut next = scratch;
        for (targets, at) in targets.chunks(side).zip((0..).step_by(LINE)) {
            let source = row_at(row).wrapping_add(at);
            if carries {
                // Of the strips of long rows CPUs are not ahead.
                let soon = at + 2 * LINE;
                let below = if soon < width { 0 } else { block };
                L::prefetch(row_at(row + below).wrapping_add(div_rem(soon, width).1), step, block);
            }
            let mut scratch = if carries { next } else { scratch };
            next = next.wrapping_add(side * L::PITCH);
            // SAFETY: the caller's promise; the scratch has a row for each target.
            unsafe {
                fill::<L, W, N>(source, step, block, targets.len(), scratch);
                for target in targets {
                    if streams {
                        stream::<L>(scratch, *target, row * W);
                    } else {
                        let target = target.wrapping_add(row * W);
                        copy_lines(scratch, target, L::HEIGHT);
                    }
                    scratch = scratch.wrapping_add(L::PITCH);
                }
            }
        }
    }
    if tail == 0 && !carries {
        return;
    }
    let mut next = scratch;
    for (targets, at) in targets.chunks(side).zip((0..).step_by(LINE)) {
        let mut scratch = if carries { next } else { scratch };
        next = next.wrapping_add(side * L::PITCH);
        // SAFETY: as above; what a line on the scratch still owes its target is in front of it.
        unsafe {
            fill::<L, W, N>(row_at(end).wrapping_add(at), step, tail, targets.len(), scratch);
            for target in targets {
                let owed = if carries && end > 0 { *target as usize % LINE } else { 0 };
                let (line, target) = (scratch.sub(owed), target.add(end * W).sub(owed));
                let bytes = owed + tail * W;
                let whole = if streams && end > 0 { bytes - bytes % LINE } else { 0 };
                L::stream(line, target, whole);
                generic::copy(line.add(whole), target.add(whole), bytes - whole);
                scratch = scratch.wrapping_add(L::PITCH);
            }
        }
    }
}

#[repr(align(64))]
struct Scratch([MaybeUninit<u8>; STRIP * MAX_PITCH]);

/// Sends the lines off that new ones on the scratch make whole.
///
/// # Safety
/// `at` bytes of the target have been on the scratch before, so many lines at a time; that many and
/// the new ones must be writable.
#[inline(always)]
unsafe fn stream<L: Level>(scratch: *mut u8, target: *mut u8, at: usize) {
    let new = L::HEIGHT * LINE;
    let owed = target as usize % LINE;
    // SAFETY: the caller's promise.
    unsafe {
        if owed == 0 {
            return L::stream(scratch, target.add(at), new);
        }
        if at == 0 {
            let head = LINE - owed;
            generic::copy(scratch, target, head);
            L::stream(scratch.add(head), target.add(head), new - LINE);
        } else {
            L::stream(scratch.sub(owed), target.add(at).sub(owed), new);
        }
        generic::chunk::<LINE>(scratch.add(new - LINE), scratch.sub(LINE), 0);
    }
}

/// Puts up to [`L::HEIGHT`] lines of rows, of up to a line of units, on the scratch.
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
) {
    let tile = |row: usize, column: usize| {
        let source = source.wrapping_add(step.wrapping_mul(row));
        // SAFETY: the caller's promise.
        unsafe {
            L::turn::<W, N>(source.add(column * W), step, scratch.add(column * L::PITCH + row * W));
        }
    };
    if rows == L::HEIGHT * LINE / W && columns == LINE / W {
        for row in 0..4 * L::HEIGHT / L::LANES {
            for column in 0..4 {
                tile(row * L::LANES * N, column * N);
            }
        }
    } else if rows >= L::LANES * N && columns >= N {
        // The last tile each way lies partly over the one before.
        for row in (0..rows).step_by(L::LANES * N) {
            for column in (0..columns).step_by(N) {
                tile(row.min(rows - L::LANES * N), column.min(columns - N));
            }
        }
    } else {
        // SAFETY: the caller's promise.
        unsafe { turn_units::<L, W>(source, step, rows, columns, scratch) };
    }
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
