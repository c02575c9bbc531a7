//! Kernels that send runs past the caches: whole lines with non-temporal stores, the rest at both ends with others.
//!
//! The idea: a CPU prefetches from several places that are read in order, but starts anew with each run and each page.
//! So some long runs are interleaved, a few lines of each, and with each line the same place in the runs after them is
//! prefetched. A single run prefetches what lies ahead in it.
//!
//! If a run ends within a line and the next one begins there, the two are joined before the line is sent.
//!
//! # Safety
//! For everything unsafe here: the runs must be readable, writable, and at least a line long; the CPU must have the
//! features of the level, and a fence must follow.

use super::machine::{INTERLEAVED_BYTES, INTERLEAVED_RUNS, PREFETCH_BYTES};
use super::opaque::opaque;
use super::runs::{copy_short, Runs};
use super::vector::{Vector, LINE_BYTES};

/// Sends runs at equal distances. What is read after them begins at `next`, at the same distances.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn stream_runs<V: Vector>(runs: &Runs, next: *const u8) {
    let &Runs { run, count, .. } = runs;
    // SAFETY: within the runs.
    unsafe {
        if count == 1 || run < INTERLEAVED_BYTES {
            for row in 0..count {
                part_of_run::<V, false>(runs, row, 0, run, next);
            }
            return;
        }
        let mut done = 0;
        while done < count {
            let some = INTERLEAVED_RUNS.min(count - done);
            let mut part = 0;
            while part < run {
                let end = (part + INTERLEAVED_BYTES).min(run);
                for row in done..done + some {
                    part_of_run::<V, true>(runs, row, part, end, next);
                }
                part = end;
            }
            done += some;
        }
    }
}

/// Prefetches some bytes of each row; they are read later.
#[inline(always)]
pub(super) fn prefetch_rows<V: Vector>(source: *const u8, rows: usize, from: isize, bytes: usize) {
    let mut row = source;
    for _ in 0..rows {
        let mut at = 0;
        while at < bytes {
            V::prefetch_later(row.wrapping_add(at));
            at += LINE_BYTES;
        }
        V::prefetch_later(row.wrapping_add(bytes - 1));
        row = opaque(row.wrapping_offset(from));
    }
}

/// Sends the lines of a run that begin between `begin` and `end`, and the partial ones at the run's ends.
#[inline(always)]
unsafe fn part_of_run<V: Vector, const INTERLEAVED: bool>(
    runs: &Runs,
    row: usize,
    begin: usize,
    end: usize,
    next: *const u8,
) {
    let &Runs { run, count, from, to, .. } = runs;
    let steps = row.cast_signed();
    let source = runs.source.wrapping_offset(from.wrapping_mul(steps));
    let target = runs.target.wrapping_offset(to.wrapping_mul(steps));
    let are_joined = to == run.cast_signed();
    // The first place from `at` on that begins a line; and what is left after the last line.
    let line = |at: usize| at + (target as usize + at).wrapping_neg() % LINE_BYTES;
    let rest = (target as usize + run) % LINE_BYTES;
    let last = run - rest;
    let (first, until) = (line(begin).min(last), line(end).min(last));
    // SAFETY: all of it lies within the run, or the next one.
    unsafe {
        if begin == 0 && !(are_joined && row > 0) {
            copy_short::<V>(source, target, line(0));
        }
        let rows_on = |rows: usize| source.wrapping_offset(from.wrapping_mul(rows.cast_signed()));
        let prefetch = if count == 1 {
            Prefetch { own: run.saturating_sub(PREFETCH_BYTES), next }
        } else if INTERLEAVED && row + INTERLEAVED_RUNS < count {
            Prefetch { own: 0, next: rows_on(INTERLEAVED_RUNS) }
        } else {
            let row = if INTERLEAVED { row % INTERLEAVED_RUNS } else { row };
            let ahead = from.wrapping_mul(row.cast_signed());
            Prefetch { own: 0, next: next.wrapping_offset(ahead) }
        };
        let mut at = first;
        while at < until {
            if INTERLEAVED {
                V::prefetch_later(prefetch.of(source, at));
            } else {
                V::prefetch(prefetch.of(source, at));
            }
            let mut part = at;
            while part < at + LINE_BYTES {
                V::load(source.wrapping_add(part)).stream(target.wrapping_add(part));
                part += V::BYTES;
            }
            at += opaque(LINE_BYTES);
        }
        if end < run || rest == 0 {
            return;
        }
        let (tail_source, tail_target) = (source.wrapping_add(last), target.wrapping_add(last));
        if are_joined && row + 1 < count {
            V::prefetch(prefetch.of(source, run - 1));
            V::stream_seam(tail_source, rest, source.wrapping_offset(from), tail_target);
        } else {
            copy_short::<V>(tail_source, tail_target, rest);
        }
    }
}

/// What is prefetched with a line: what lies ahead in the run, for its first `own` bytes, and then what is next.
struct Prefetch {
    own: usize,
    next: *const u8,
}

impl Prefetch {
    #[inline(always)]
    fn of(&self, source: *const u8, at: usize) -> *const u8 {
        if at < self.own {
            source.wrapping_add(at + PREFETCH_BYTES)
        } else {
            self.next.wrapping_add(at - self.own)
        }
    }
}
