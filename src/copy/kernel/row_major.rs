//! Runs of a line and more, row by row, through the caches.
//!
//! The idea: the input is read in its own order, whatever the number of pieces; one piece after the
//! other, its reads are a row apart, and CPUs are ahead of neither those nor the pages they are on.
//!
//! # Safety
//! Every run must be readable and room for all runs writable at each target; they do not overlap.

use super::combine::LINE;
use super::PAGE;

/// A piece: where its run begins in each row, and where runs go, one behind the other.
#[derive(Clone, Copy)]
pub(in super::super) struct RowRun {
    pub source: *const u8,
    pub bytes: usize,
    pub target: *mut u8,
}

/// Copies each run by itself, row by row.
///
/// # Safety
/// That of `copy`, and the above.
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

/// Whether runs are as long as the first one, and lie side by side.
#[inline(never)] // once in the library
pub(super) fn are_alike(runs: &[RowRun]) -> bool {
    let Some(&RowRun { source, bytes, .. }) = runs.first() else { return true };
    runs.iter()
        .zip(0..)
        .all(|(run, at)| run.bytes == bytes && run.source == source.wrapping_add(at * bytes))
}

/// Whether rows are so many that it is worth to make indices of permutes for so many pieces. Zen 4, time for piece by
/// piece: 600 rows of 15 pieces of 6 to 16 bytes .64, 780 of 12 of 1 to 8 .57, but 910 of 7 of 1 to 22 1.5, 740 of 10 of 3
/// to 22 1.22.
pub(in super::super) fn are_many(rows: usize, pieces: usize) -> bool {
    rows >= MANY_ROWS || (rows >= MANY_ROWS / 2 && rows * pieces >= MANY_ROWS * 8)
}

pub(in super::super) const MANY_ROWS: usize = 1 << 10;

/// Where they go.
pub(super) fn targets(runs: &[RowRun]) -> impl Iterator<Item = *mut u8> + '_ {
    runs.iter().map(|run| run.target)
}

/// Whether more than so many targets have the same place within pages.
#[inline(never)]
pub(in super::super) fn are_in_one_set(
    mut targets: impl Iterator<Item = *mut u8>,
    most: usize,
) -> bool {
    let mut sets = [0u8; PAGE / LINE];
    targets.any(|target| {
        let set = sets.get_mut(target as usize % PAGE / LINE);
        set.is_some_and(|set| {
            *set += 1;
            usize::from(*set) > most
        })
    })
}
