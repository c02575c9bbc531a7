//! Transposes: contiguous units of many rows become contiguous rows of their own. A square of whole
//! lines on both sides goes through a stage in the first-level cache, so that each line of the
//! source is read once and each line of a target written once.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

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
    /// [`STRIP`] of them at the most.
    pub targets: &'a [*mut u8],
    /// Whether whole lines of the targets go to memory past the caches.
    pub streams: bool,
    /// So far ahead (wrapped) of what is read lies what is read soon.
    pub ahead: usize,
}

/// The most targets at a time.
pub(crate) const STRIP: usize = 128;

/// A line on the stage has the one before it in front: a target's own lines begin anywhere in
/// them.
pub(super) const PITCH: usize = 2 * LINE;

/// What a level of CPU features does its own way.
pub(super) trait Level {
    /// Puts `2 * N` rows of `N` units of `W` bytes, 16 bytes a row, on the stage as `N` rows.
    ///
    /// # Safety
    /// The rows must be readable, and 32 bytes at each of `N` stage rows writable.
    unsafe fn turn<const W: usize, const N: usize>(source: *const u8, step: usize, stage: *mut u8);

    /// Copies a line past the caches to an aligned target.
    ///
    /// # Safety
    /// Both must be whole lines, readable and writable.
    unsafe fn stream_line(source: *const u8, target: *mut u8);

    /// Asks for a line that is read soon; any address will do.
    fn prefetch(address: *const u8);
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
    unsafe fn stream_line(source: *const u8, target: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { generic::chunk::<LINE>(source, target, 0) };
    }

    #[inline(always)]
    fn prefetch(_: *const u8) {}
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
    let side = LINE / W;
    let mut stage = Stage([const { MaybeUninit::uninit() }; STRIP * PITCH]);
    let stage = stage.0.as_mut_ptr().cast::<u8>().wrapping_add(LINE);
    let streams = matrix.streams;
    let tail = matrix.rows % side;
    let end = matrix.rows - tail;
    let row_at = |row: usize| matrix.source.wrapping_add(matrix.step.wrapping_mul(row));
    for row in (0..end).step_by(side) {
        let mut source = row_at(row);
        let mut stage = stage;
        for targets in matrix.targets.chunks(side) {
            if streams {
                let mut soon = source.wrapping_add(matrix.ahead);
                for _ in 0..side {
                    L::prefetch(soon);
                    soon = soon.wrapping_add(matrix.step);
                }
            }
            // SAFETY: the caller's promise; the stage has a row for each target.
            unsafe {
                fill::<L, W, N>(source, matrix.step, side, targets.len(), stage);
                if streams {
                    for target in targets {
                        stream::<L>(stage, *target, row * W);
                        stage = stage.wrapping_add(PITCH);
                    }
                } else {
                    let mut line = stage;
                    for target in targets {
                        generic::chunk::<LINE>(line, target.wrapping_add(row * W), 0);
                        line = line.wrapping_add(PITCH);
                    }
                }
            }
            source = source.wrapping_add(LINE);
        }
    }
    if tail == 0 && !streams {
        return;
    }
    let mut source = row_at(end);
    let mut stage = stage;
    for targets in matrix.targets.chunks(side) {
        // SAFETY: as above; what a line on the stage still owes the target is in front of it.
        unsafe {
            fill::<L, W, N>(source, matrix.step, tail, targets.len(), stage);
            for target in targets {
                let owed = if streams { *target as usize % LINE } else { 0 };
                generic::copy(stage.sub(owed), target.add(end * W).sub(owed), owed + tail * W);
                stage = stage.wrapping_add(PITCH);
            }
        }
        source = source.wrapping_add(LINE);
    }
}

#[repr(align(64))]
struct Stage([MaybeUninit<u8>; STRIP * PITCH]);

/// Sends the line off that a new one on the stage makes whole.
///
/// # Safety
/// `at` bytes of the target have been on the stage before, a line at a time; that many and a line
/// more must be writable.
#[inline(always)]
unsafe fn stream<L: Level>(stage: *mut u8, target: *mut u8, at: usize) {
    let owed = target as usize % LINE;
    // SAFETY: the caller's promise.
    unsafe {
        if owed == 0 {
            L::stream_line(stage, target.add(at));
            return;
        }
        if at == 0 {
            generic::copy(stage, target, LINE - owed);
        } else {
            L::stream_line(stage.sub(owed), target.add(at).sub(owed));
        }
        generic::chunk::<LINE>(stage, stage.sub(LINE), 0);
    }
}

/// Puts `rows` rows of `columns` units, up to a line each way, on the stage.
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
    if rows == LINE / W && columns == LINE / W {
        for half in 0..2 {
            for column in 0..4 {
                tile(half * 2 * N, column * N);
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
