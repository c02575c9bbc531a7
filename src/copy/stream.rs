//! Kernels that send runs past the caches: whole lines by non-temporal stores, what is left at both ends by others.
//!
//! The idea: a CPU fetches ahead of each of several places that are read, but begins anew with each run and each page;
//! so some runs take turns, a few lines of each, and what is asked for is what the runs after them have at the same
//! place. A single run asks for what lies behind.
//!
//! Where a run ends within a line and the next one begins there, the two are put together before the line is sent.
//!
//! # Safety
//! Of all that is unsafe here: the runs must be readable and writable, and a line long at least; the CPU must have the
//! features of the level, and a fence must follow.

use super::machine::{AHEAD_BYTES, RUNS_IN_TURN, TURN_BYTES};
use super::opaque::opaque;
use super::runs::{copy_short, Runs};
use super::vector::{Vector, LINE_BYTES};

/// Sends rows of runs. What is read after them begins at `next`.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn rows<V: Vector>(runs: &Runs, next: *const u8) {
    let mut done = 0;
    while done < runs.count {
        let some = RUNS_IN_TURN.min(runs.count - done);
        let mut part = 0;
        while part < runs.run {
            let end = (part + TURN_BYTES).min(runs.run);
            for row in done..done + some {
                // SAFETY: within the runs.
                unsafe { part_of_run::<V>(runs, row, part, end, next) };
            }
            part = end;
        }
        done += some;
    }
}

/// What a turn has of a run: the lines that begin there, and the partial ones at its ends.
#[inline(always)]
unsafe fn part_of_run<V: Vector>(runs: &Runs, row: usize, begin: usize, end: usize, next: *const u8) {
    let &Runs { run, count, from, to, .. } = runs;
    let steps = row.cast_signed();
    let source = runs.source.wrapping_offset(from.wrapping_mul(steps));
    let target = runs.target.wrapping_offset(to.wrapping_mul(steps));
    let are_joined = to == run.cast_signed();
    // From any place on, the first one that begins a line; and what is left behind the last line.
    let line = |at: usize| at + (target as usize + at).wrapping_neg() % LINE_BYTES;
    let rest = (target as usize + run) % LINE_BYTES;
    let last = run - rest;
    let (first, until) = (line(begin).min(last), line(end).min(last));
    // SAFETY: all of it lies within the run, or the next one.
    unsafe {
        if begin == 0 && !(are_joined && row > 0) {
            copy_short::<V>(source, target, line(0));
        }
        let ahead = if count == 1 {
            Ahead { own: run.saturating_sub(AHEAD_BYTES), by: AHEAD_BYTES, next }
        } else if row + RUNS_IN_TURN < count {
            Ahead { own: 0, by: 0, next: source.wrapping_offset(from.wrapping_mul(RUNS_IN_TURN.cast_signed())) }
        } else {
            Ahead { own: 0, by: 0, next: next.wrapping_offset(from.wrapping_mul((row % RUNS_IN_TURN).cast_signed())) }
        };
        let mut at = first;
        while at < until {
            V::prefetch_later(ahead.of(source, at));
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
            let mut seam = Seam([0; LINE_BYTES]);
            let seam = seam.0.as_mut_ptr();
            copy_short::<V>(tail_source, seam, rest);
            copy_short::<V>(source.wrapping_offset(from), seam.wrapping_add(rest), LINE_BYTES - rest);
            let mut part = 0;
            while part < LINE_BYTES {
                V::load(seam.wrapping_add(part)).stream(tail_target.wrapping_add(part));
                part += V::BYTES;
            }
        } else {
            copy_short::<V>(tail_source, tail_target, rest);
        }
    }
}

/// The line that a run ends in and the next one begins in.
#[repr(C, align(64))]
struct Seam([u8; LINE_BYTES]);

/// What is asked for with a line: of a run, what lies so many bytes behind, up to where `own` ends, then what is next.
struct Ahead {
    own: usize,
    by: usize,
    next: *const u8,
}

impl Ahead {
    #[inline(always)]
    fn of(&self, source: *const u8, at: usize) -> *const u8 {
        if at < self.own {
            source.wrapping_add(at + self.by)
        } else {
            self.next.wrapping_add(at - self.own)
        }
    }
}
