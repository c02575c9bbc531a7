//! Runs of a line and more, row by row, through the caches.
//!
//! The idea: the input is read in its own order, whatever the number of pieces; one piece after the
//! other, its reads are a row apart, and CPUs are ahead of neither those nor the pages they are on.
//!
//! The tricks for equal runs of one to eight lines: the last line of a run overlaps the one before it,
//! and the targets of up to four pieces stay in registers. (More, four at a time over 2 KiB of each, were
//! slower than piece by piece on Zen 4: eight of 256 bytes .73 of the flat copy for .84.)
//!
//! # Safety
//! 1. The CPU must have the features of the vectors.
//! 2. Every run must be readable and room for all runs writable at each target; they do not overlap.

use super::combine::LINE;
use super::vector::Vector;
use super::PAGE;

/// A piece: where its run begins in each row, and where runs go, one behind the other.
#[derive(Clone, Copy)]
pub(in super::super) struct RowRun {
    pub source: *const u8,
    pub bytes: usize,
    pub target: *mut u8,
}

/// The most pieces of equal runs, and lines of these.
pub(super) const PIECES: usize = 4;
const LINES: usize = 8;

/// The loops of a level: by pieces.
pub(super) type Loops = [Loop; PIECES];
pub(super) type Loop = unsafe fn(&mut [RowRun], usize, usize);

/// Copies the runs of `count` rows, `step` bytes apart, if they are such that it is worth it; whether
/// they were.
///
/// # Safety
/// 1 for `loops` and `copy`, 2.
#[inline(always)]
pub(super) unsafe fn row_major(
    loops: &Loops,
    copy: unsafe fn(*const u8, *mut u8, usize),
    runs: &mut [RowRun],
    step: usize,
    count: usize,
) -> bool {
    let Some(&RowRun { bytes, .. }) = runs.first() else { return true };
    if runs.iter().all(|run| run.bytes > LINES * LINE) {
        // SAFETY: the caller's promise.
        unsafe { long_runs(copy, runs, step, count) };
        return true;
    }
    if bytes < LINE || runs.iter().any(|run| run.bytes != bytes) {
        return false;
    }
    let Some(run) = loops.get(runs.len() - 1) else { return false };
    // SAFETY: the caller's promise.
    unsafe { run(runs, step, count) };
    true
}

/// Copies each run by itself, row by row.
///
/// # Safety
/// That of `copy`, 2.
#[inline(always)]
pub(super) unsafe fn long_runs(
    copy: unsafe fn(*const u8, *mut u8, usize),
    runs: &mut [RowRun],
    step: usize,
    count: usize,
) {
    for _ in 0..count {
        for run in &mut *runs {
            // SAFETY: the caller's promise.
            unsafe { copy(run.source, run.target, run.bytes) };
            run.source = run.source.wrapping_add(step);
            run.target = run.target.wrapping_add(run.bytes);
        }
    }
}

/// Copies the runs of `N` pieces.
///
/// # Safety
/// 1, 2; runs must be equal, and of a line at least.
#[inline(always)]
pub(super) unsafe fn lines<V: Vector, const P: usize, const N: usize>(
    runs: &mut [RowRun],
    step: usize,
    count: usize,
) {
    let unit = runs.first().map_or(0, |run| run.bytes);
    let last = unit - LINE;
    // SAFETY: the caller's promise.
    let copy_line = |source: *const u8, target: *mut u8, at: usize| unsafe {
        V::put(V::get::<P>(source.wrapping_add(at)), target.wrapping_add(at), false);
    };
    let mut sources = [core::ptr::null::<u8>(); N];
    let mut targets = [core::ptr::null_mut::<u8>(); N];
    for ((source, target), run) in sources.iter_mut().zip(&mut targets).zip(&*runs) {
        (*source, *target) = (run.source, run.target);
    }
    for _ in 0..count {
        for (source, target) in sources.iter_mut().zip(&mut targets) {
            for at in (0..last).step_by(LINE) {
                copy_line(*source, *target, at);
            }
            copy_line(*source, *target, last);
            *source = source.wrapping_add(step);
            *target = target.wrapping_add(unit);
        }
    }
    for ((source, target), run) in sources.iter().zip(&targets).zip(runs) {
        (run.source, run.target) = (*source, *target);
    }
}

/// Whether more than so many of the targets have the same place within pages.
#[cfg_attr(not(feature = "avx512"), allow(dead_code))]
pub(super) fn are_in_one_set(runs: &[RowRun], most: usize) -> bool {
    let mut sets = [0u8; PAGE / LINE];
    runs.iter().any(|run| {
        let set = sets.get_mut(run.target as usize % PAGE / LINE);
        set.is_some_and(|set| {
            *set += 1;
            usize::from(*set) > most
        })
    })
}
