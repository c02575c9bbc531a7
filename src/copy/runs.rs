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

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::super::kernel::levels;
    use super::super::kernel::strided::Row;
    use crate::math::signed;

    #[test]
    fn runs_are_copied_and_nothing_else_is_touched() {
        for by_turns in levels().iter().filter_map(|kernels| kernels.by_turns) {
            check(by_turns);
        }
    }

    fn check(by_turns: unsafe fn(Row)) {
        let memory = [Guarded::filled(256 << 10), Guarded::filled(256 << 10)];
        let to = memory[1].place(256 << 10, false);
        for (unit, count) in [(128, 1), (256, 17), (333, 33), (2048, 9), (2100, 16), (5000, 3)] {
            for apart in [0, 64, 100, 3000] {
                for gap in [0, 1, 64] {
                    for offset in [0, 16, 37] {
                        let step = signed(unit + apart);
                        let (all, put) = (count * (unit + apart), count * (unit + gap));
                        // Backwards from the end of what is readable, or forwards up to it.
                        for (first, step) in [(all - unit - apart, -step), (apart, step)] {
                            let base = memory[0].place(all, apart < 100);
                            let source = base.wrapping_add(first);
                            let target = to.wrapping_add(offset);
                            // SAFETY: all of it lies within the mappings.
                            unsafe { to.write_bytes(0xEE, put + 200) };
                            let (target_step, source_step) = (signed(unit + gap), step);
                            let row = Row { source, source_step, target, target_step, count, unit };
                            // SAFETY: as above.
                            unsafe { by_turns(row) };
                            for at in 0..offset + put + 64 {
                                let (run, byte) = match at.checked_sub(offset) {
                                    Some(at) => (at / (unit + gap), at % (unit + gap)),
                                    None => (count, 0),
                                };
                                let source = source.wrapping_offset(source_step * signed(run));
                                // SAFETY: as above.
                                unsafe {
                                    let is = to.add(at).read();
                                    let is_run = run < count && byte < unit;
                                    let expected = if is_run {
                                        source.wrapping_add(byte).read()
                                    } else {
                                        0xEE
                                    };
                                    assert_eq!(is, expected);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
