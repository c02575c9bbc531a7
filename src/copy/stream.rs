//! Kernels that stream runs: whole lines with non-temporal stores, the rest at both ends with others.
//!
//! Some long runs are interleaved, a few lines of each, because CPUs prefetch from several places at a time that are
//! read in order (`ahead.rs`). With four runs:
//!
//! ```text
//!            |- INTERLEAVED_BYTES -|
//! run 0      1 ------------------> 5 ------------------> 9 ----
//! run 1      2 ------------------> 6 ------------------> 10 ---
//! run 2      3 ------------------> 7 ------------------> 11 ---
//! run 3      4 ------------------> 8 ------------------> 12 ---
//! ```
//!
//! A line is streamed as a whole or not at all. If a run ends within a line of the target and the next run begins there,
//! the two are joined in a seam first:
//!
//! ```text
//! target     |......aa|aaaaaaaa|aaaaabbb|bbbbbbbb|bbb.....|     | lines
//!              short   streamed   seam   streamed  short
//! ```

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]

use super::ahead::{interleaved_runs, RunAhead};
use super::machine_constants::INTERLEAVED_BYTES;
use super::opaque::opaque;
use super::runs::{copy_runs, Runs};
use super::vector::{copy_short, Vector, LINE_BYTES};

/// Streams the runs of one step. What is read after them begins at `next`, at the same distances.
///
/// # Safety
/// The runs must be readable and writable, and each at least a line long, or whole lines of the target; the CPU must
/// have the features of the level; and a fence must follow before others read the target. Nothing is read or written but the
/// runs. `next` may be any address.
#[inline(always)]
pub(super) unsafe fn stream_runs<V: Vector>(runs: &Runs, next: *const u8) {
    let &Runs { bytes, count, .. } = runs;
    debug_assert!(
        bytes >= LINE_BYTES || (bytes | runs.target as usize).is_multiple_of(LINE_BYTES),
        "runs of {bytes} bytes are streamed, which may lie within a line"
    );
    debug_assert!(runs.outer.extent == 1, "only one step is streamed");
    if V::WINDOW_BYTES == 0 {
        return copy_runs::<V>(runs); // there are no streams, for which runs are interleaved
    }
    if count == 1 || bytes < INTERLEAVED_BYTES {
        for index in 0..count {
            stream_segment::<V, false>(runs, index, 0, bytes, next);
        }
        return;
    }
    let mut done = 0;
    while done < count {
        let some = interleaved_runs(bytes).min(count - done);
        let mut begin = 0;
        while begin < bytes {
            let end = (begin + INTERLEAVED_BYTES).min(bytes);
            for index in done..done + some {
                stream_segment::<V, true>(runs, index, begin, end, next);
            }
            begin = end;
        }
        done += some;
    }
}

/// Streams the lines of a run that begin between `begin` and `end`, and stores the partial ones at the run's ends.
#[inline(always)]
unsafe fn stream_segment<V: Vector, const INTERLEAVED: bool>(
    runs: &Runs,
    index: usize,
    begin: usize,
    end: usize,
    next: *const u8,
) {
    let &Runs { bytes, count, from, to, .. } = runs;
    let source = runs.source.wrapping_offset(from.wrapping_mul(index.cast_signed()));
    let target = runs.target.wrapping_offset(to.wrapping_mul(index.cast_signed()));
    let are_joined = to == bytes.cast_signed();
    // The first place from `at` on that begins a line; and what is left after the last line.
    let line = |at: usize| at + (target as usize + at).wrapping_neg() % LINE_BYTES;
    let rest = (target as usize + bytes) % LINE_BYTES;
    let last = bytes - rest;
    let (first, until) = (line(begin).min(last), line(end).min(last));
    if begin == 0 && !(are_joined && index > 0) {
        copy_short::<V>(source, target, line(0));
    }
    let ahead = RunAhead::new(runs, index, next, INTERLEAVED);
    let mut at = first;
    while at < until {
        if INTERLEAVED {
            V::prefetch_later(ahead.of_line(source, at));
        } else {
            V::prefetch(ahead.of_line(source, at));
        }
        let mut place = at;
        while place < at + LINE_BYTES {
            V::load(source.wrapping_add(place)).stream(target.wrapping_add(place));
            place += V::BYTES;
        }
        at += opaque(LINE_BYTES);
    }
    if end < bytes || rest == 0 {
        return;
    }
    let (tail_source, tail_target) = (source.wrapping_add(last), target.wrapping_add(last));
    if are_joined && index + 1 < count {
        V::prefetch(ahead.of_line(source, bytes - 1));
        V::stream_seam(tail_source, rest, source.wrapping_offset(from), tail_target);
    } else {
        copy_short::<V>(tail_source, tail_target, rest);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::level::kernels_of;
    use super::super::tests::levels;
    use super::super::tests::Guarded;
    use super::{Runs, LINE_BYTES};

    const MEMORY_BYTES: usize = 64 << 10;

    /// Streams runs whose first begins `askew` bytes into a line, and compares every byte of the target.
    fn check(memory: &[Guarded; 2], runs: &Runs, askew: usize) {
        let [source, target] = memory;
        let &Runs { bytes, count, from, to, .. } = runs;
        for level in levels() {
            let kernels = kernels_of(level);
            target.fill(0xA5);
            let source = source.place((count - 1) * from.cast_unsigned() + bytes, true);
            let begin = target.place(MEMORY_BYTES, true).wrapping_add(askew);
            let runs = Runs { source, target: begin, ..*runs };
            let mut expected = vec![0xA5u8; MEMORY_BYTES];
            for run in 0..count {
                for byte in 0..bytes {
                    let from = source.wrapping_add(run * from.cast_unsigned() + byte);
                    // SAFETY: a byte of a run.
                    expected[askew + run * to.cast_unsigned() + byte] = unsafe { *from };
                }
            }
            // SAFETY: all runs lie within the memory.
            unsafe { (kernels.stream_runs)(&runs, source.wrapping_add(1 << 40)) };
            (kernels.fence)();
            assert!(target.bytes() == expected, "{:?}", (level, bytes, count, from, to, askew));
        }
    }

    #[test]
    fn joined_runs_and_runs_apart() {
        let memory = [Guarded::filled(MEMORY_BYTES), Guarded::filled(MEMORY_BYTES)];
        for bytes in [64usize, 65, 100, 127, 128, 129, 191, 255, 256, 257, 300, 513, 700, 1000] {
            for askew in [0, 1, 31, 32, 63, 64 + 17] {
                for count in [1, 2, 3, 16, 17, 40] {
                    let step = bytes.cast_signed();
                    let one = Runs::one(std::ptr::null(), std::ptr::null_mut(), bytes);
                    for (from, to) in [(step + 9, step), (step, step + 11), (0, step)] {
                        check(&memory, &Runs { count, from, to, ..one }, askew);
                    }
                }
            }
        }
    }

    /// Any number of whole lines may be streamed, even none.
    #[test]
    fn whole_lines() {
        let memory = [Guarded::filled(MEMORY_BYTES), Guarded::filled(MEMORY_BYTES)];
        for lines in 0..20 {
            let one = Runs::one(std::ptr::null(), std::ptr::null_mut(), lines * LINE_BYTES);
            check(&memory, &one, 0);
        }
    }
}
