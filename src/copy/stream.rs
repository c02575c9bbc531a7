//! Kernels that stream runs: whole lines past the caches with non-temporal stores, the rest at both ends with others.
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
use super::runs::Runs;
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
