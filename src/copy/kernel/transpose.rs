//! Transposes: contiguous units of many rows become contiguous rows of their own. Blocks of whole
//! lines on both sides go through a stage in the first-level cache, so that each line of the source
//! is read once and each line of a target written once.

// As in `generic.rs`.
#![allow(clippy::inline_always)]
// The stage: half of a first-level cache.
#![allow(clippy::large_stack_arrays)]

use super::generic;
use super::lines::LINE;
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

/// The most targets whose lines wait on the stage.
pub(crate) const STRIP: usize = 128;

/// Lines of each target that are made at a time: two that follow each other go past the caches in
/// the time of one.
pub(crate) const HEIGHT: usize = 2;

/// Lines on the stage have the one before them in front: a target's own lines begin anywhere in
/// them.
pub(super) const PITCH: usize = (1 + HEIGHT) * LINE;

/// What a level of CPU features does its own way.
pub(super) trait Level {
    /// Puts `2 * N` rows of `N` units of `W` bytes, 16 bytes a row, on the stage as `N` rows.
    ///
    /// # Safety
    /// The rows must be readable, and 32 bytes at each of `N` stage rows writable.
    unsafe fn turn<const W: usize, const N: usize>(source: *const u8, step: usize, stage: *mut u8);

    /// Copies whole lines past the caches to an aligned target.
    ///
    /// # Safety
    /// They must be readable and writable.
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize);

    /// Asks for a line of each of some rows that are read soon; any address will do.
    fn ask(source: *const u8, step: usize, rows: usize);
}

/// For every CPU.
pub(super) struct Portable;

impl Level for Portable {
    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(source: *const u8, step: usize, stage: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { turn_units::<W>(source, step, 2 * N, N, stage) };
    }

    #[inline(always)]
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { generic::copy(source, target, bytes) };
    }

    #[inline(always)]
    fn ask(_: *const u8, _: usize, _: usize) {}
}

/// Puts `rows` rows of `columns` units on the stage, unit by unit.
///
/// # Safety
/// As [`fill`].
#[inline(always)]
unsafe fn turn_units<const W: usize>(
    source: *const u8,
    step: usize,
    rows: usize,
    columns: usize,
    stage: *mut u8,
) {
    for row in 0..rows {
        let source = source.wrapping_add(step.wrapping_mul(row));
        for column in 0..columns {
            let target = stage.wrapping_add(column * PITCH + row * W);
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
    // What does not end with a line of its target waits on the stage for the rest of it.
    let carries =
        matrix.streams && matrix.targets.iter().any(|target| *target as usize % LINE != 0);
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
    let mut stage = Stage([const { MaybeUninit::uninit() }; STRIP * PITCH]);
    let stage = stage.0.as_mut_ptr().cast::<u8>().wrapping_add(LINE);
    let (block, side) = (HEIGHT * LINE / W, LINE / W);
    let width = targets.len().div_ceil(side) * LINE;
    let tail = matrix.rows % block;
    let end = matrix.rows - tail;
    let row_at = |row: usize| matrix.source.wrapping_add(step.wrapping_mul(row));
    for row in (0..end).step_by(block) {
        let mut next = stage;
        for (targets, at) in targets.chunks(side).zip((0..).step_by(LINE)) {
            let source = row_at(row).wrapping_add(at);
            if carries {
                // Of the strips of long rows CPUs are not ahead.
                let soon = at + 2 * LINE;
                let below = if soon < width { 0 } else { block };
                L::ask(row_at(row + below).wrapping_add(soon % width), step, block);
            }
            let mut stage = if carries { next } else { stage };
            next = next.wrapping_add(side * PITCH);
            // SAFETY: the caller's promise; the stage has a row for each target.
            unsafe {
                fill::<L, W, N>(source, step, block, targets.len(), stage);
                for target in targets {
                    if streams {
                        stream::<L>(stage, *target, row * W);
                    } else {
                        let target = target.wrapping_add(row * W);
                        generic::chunk::<{ HEIGHT * LINE }>(stage, target, 0);
                    }
                    stage = stage.wrapping_add(PITCH);
                }
            }
        }
    }
    if tail == 0 && !carries {
        return;
    }
    let mut next = stage;
    for (targets, at) in targets.chunks(side).zip((0..).step_by(LINE)) {
        let mut stage = if carries { next } else { stage };
        next = next.wrapping_add(side * PITCH);
        // SAFETY: as above; what a line on the stage still owes its target is in front of it.
        unsafe {
            fill::<L, W, N>(row_at(end).wrapping_add(at), step, tail, targets.len(), stage);
            for target in targets {
                let owed = if carries && end > 0 { *target as usize % LINE } else { 0 };
                let (line, target) = (stage.sub(owed), target.add(end * W).sub(owed));
                let bytes = owed + tail * W;
                let whole = if streams && end > 0 { bytes - bytes % LINE } else { 0 };
                L::stream(line, target, whole);
                generic::copy(line.add(whole), target.add(whole), bytes - whole);
                stage = stage.wrapping_add(PITCH);
            }
        }
    }
}

#[repr(align(64))]
struct Stage([MaybeUninit<u8>; STRIP * PITCH]);

/// Sends the lines off that new ones on the stage make whole.
///
/// # Safety
/// `at` bytes of the target have been on the stage before, so many lines at a time; that many and
/// the new ones must be writable.
#[inline(always)]
unsafe fn stream<L: Level>(stage: *mut u8, target: *mut u8, at: usize) {
    const NEW: usize = HEIGHT * LINE;
    let owed = target as usize % LINE;
    // SAFETY: the caller's promise.
    unsafe {
        if owed == 0 {
            return L::stream(stage, target.add(at), NEW);
        }
        if at == 0 {
            let head = LINE - owed;
            generic::copy(stage, target, head);
            L::stream(stage.add(head), target.add(head), NEW - LINE);
        } else {
            L::stream(stage.sub(owed), target.add(at).sub(owed), NEW);
        }
        generic::chunk::<LINE>(stage.add(NEW - LINE), stage.sub(LINE), 0);
    }
}

/// Puts up to [`HEIGHT`] lines of rows, of up to a line of units, on the stage.
///
/// # Safety
/// They must be readable, and a stage row for each column writable.
#[inline(always)]
unsafe fn fill<L: Level, const W: usize, const N: usize>(
    source: *const u8,
    step: usize,
    rows: usize,
    columns: usize,
    stage: *mut u8,
) {
    let tile = |row: usize, column: usize| {
        let source = source.wrapping_add(step.wrapping_mul(row));
        // SAFETY: the caller's promise.
        unsafe {
            L::turn::<W, N>(source.add(column * W), step, stage.add(column * PITCH + row * W));
        }
    };
    if rows == HEIGHT * LINE / W && columns == LINE / W {
        for row in 0..2 * HEIGHT {
            for column in 0..4 {
                tile(row * 2 * N, column * N);
            }
        }
    } else if rows >= 2 * N && columns >= N {
        // The last tile each way lies partly over the one before.
        for row in (0..rows).step_by(2 * N) {
            for column in (0..columns).step_by(N) {
                tile(row.min(rows - 2 * N), column.min(columns - N));
            }
        }
    } else {
        // SAFETY: the caller's promise.
        unsafe { turn_units::<W>(source, step, rows, columns, stage) };
    }
}
