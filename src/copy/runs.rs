//! Long runs that do not lie one behind the other, each copied for itself. What is read next is
//! prefetched meanwhile: it is not where CPUs would look for it.

use super::kernel::combine::LINE;
use super::tuning::Tuning;
use crate::math::parts;

/// Runs of so many bytes are worth it.
pub(super) const LONG: usize = 1024;
/// So many bytes are prefetched at a time.
const TURN: usize = 1024;
/// Of rows up to this the next one is prefetched: 24 MiB of 12 KiB each, backwards, 1.04 of the flat copy
/// for .94 by [`Tuning::prefetch`]; of 256 KiB .96 by that for .91.
const MOST_AHEAD: usize = 16 << 10;

/// What is read after a run: `rest` bytes from its begin on lie together, and then `next`.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    pub rest: usize,
    pub next: *const u8,
    /// How many bytes ahead to look.
    pub by: usize,
}

impl Ahead {
    /// Of `row` bytes that lie together, as many as which lie at `next`.
    pub(super) fn of_row(row: usize, next: *const u8, tuning: Tuning) -> Self {
        let by = if row <= MOST_AHEAD { row } else { tuning.prefetch };
        Self { rest: row, next, by }
    }

    /// What is read so many bytes after the run's byte `at`.
    fn of(&self, source: *const u8, at: usize) -> *const u8 {
        let at = at + self.by;
        match at.checked_sub(self.rest) {
            None => source.wrapping_add(at),
            Some(at) => self.next.wrapping_add(at),
        }
    }
}

/// Copies a run, past the caches or not. Does not wait for stores past the caches.
///
/// # Safety
/// It must be readable at `source` and writable at `target`, for `bytes`; they do not overlap.
#[inline(never)]
pub(super) unsafe fn copy(
    tuning: Tuning,
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    ahead: Ahead,
) {
    let Tuning { kernels, apart, .. } = tuning;
    let head = (target as usize).wrapping_neg() % LINE;
    // SAFETY: the caller's promise; no part is longer than the run.
    unsafe {
        let Some(stores) = apart.filter(|_| bytes >= head + LINE) else {
            return (kernels.copy)(source, target, bytes);
        };
        (kernels.copy)(source, target, head);
        let end = bytes - (bytes - head) % LINE;
        for part in parts(head..end, TURN) {
            (stores.prefetch)(ahead.of(source, part.start), part.len());
            (stores.stream)(source.add(part.start), target.add(part.start), part.len());
        }
        (kernels.copy)(source.add(end), target.add(end), bytes - end);
    }
}
