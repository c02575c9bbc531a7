//! Prefetching: everything that is decided about it.
//!
//! CPUs prefetch by themselves what is read in order, from as many places as [`INTERLEAVED_RUNS`], but start anew with
//! each run and each page. Through the caches that is enough, except for groups that run backwards. Past them, the next
//! lines are asked for while others are streamed:
//!
//! | what is streamed | what is prefetched with each line |
//! |---|---|
//! | a single run | the run itself, [`PREFETCH_BYTES`] further on; near its end, what is read next |
//! | interleaved runs | the same place in the run that is [`INTERLEAVED_RUNS`] further on |
//! | lines that a program makes | what lies ahead at a distance, or what is read next |
//! | tiles | the same lines of the rows that follow |
//!
//! Before a band of short runs, its rows in the next block are prefetched as a whole, because kernels would prefetch
//! what comes next in memory, and that may belong to other bands.

use super::machine_constants::{INTERLEAVED_BYTES, INTERLEAVED_RUNS, PREFETCH_BYTES};
use super::nest::Axis;
use super::opaque::opaque;
use super::runs::Runs;
use super::vector::{Vector, LINE_BYTES};

/// What a program prefetches.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    /// What is read next. Programs of several sets, which read lines out of order, prefetch as many bytes of it as they
    /// stream; where lines are read in order, CPUs know what comes next. Stages prefetch it, too.
    pub next: *const u8,
    /// If there is one, programs of a single output in each set, and those that weave planes, prefetch at this distance
    /// from what they read, in place of `next`. In bytes.
    pub distance: Option<isize>,
}

impl Ahead {
    /// Prefetches what is read next, and nothing at a distance.
    pub(super) fn next(next: *const u8) -> Self {
        Self { next, distance: None }
    }

    /// Returns at which distance to prefetch along the innermost axis of a nest: after a short row the next one, which
    /// the axis outward of it leads to; along a long one, some turns of `turn` bytes of input ahead.
    pub(super) fn distance_along(inner: &Axis, outer: Option<&Axis>, turn: isize) -> Option<isize> {
        let row = inner.from.unsigned_abs() * inner.extent;
        let distance = match outer {
            Some(outer) if row < 4 * PREFETCH_BYTES => outer.from,
            _ => {
                let turns = PREFETCH_BYTES / turn.unsigned_abs().max(1) + 1;
                turn.wrapping_mul(turns.cast_signed())
            }
        };
        (distance != 0).then_some(distance)
    }

    /// Returns what is next so many bytes further on: after as many have been prefetched, or from another step on.
    #[inline(always)]
    pub(super) fn further_by(self, bytes: isize) -> Self {
        Self { next: self.next.wrapping_offset(bytes), ..self }
    }
}

/// The kernel that prefetches rows: where they begin, how many, bytes from one to the next, and bytes of each.
pub(super) type PrefetchRows = fn(*const u8, usize, isize, usize);

/// Decides whether a band of short runs that are streamed has its rows in the next block prefetched at once, and has it
/// done: unless there is no other band and rows leave no gaps. The rows begin at `next`, and the band has so many bytes
/// of each.
pub(super) fn next_rows(
    prefetch: PrefetchRows,
    rows: &Axis,
    next: *const u8,
    bytes: usize,
    is_only: bool,
) -> bool {
    let is_read_in_order = is_only && rows.from.unsigned_abs() <= bytes + LINE_BYTES;
    if !is_read_in_order {
        prefetch(next, rows.extent, rows.from, bytes);
    }
    !is_read_in_order
}

/// Prefetches the lines in which a band's part of a block ends, if they are partial: these are stored through the
/// caches, and streams must not wait for them. The part ends after `end` bytes of each target.
pub(super) fn partial_lines(prefetch: PrefetchRows, targets: &[*mut u8], end: usize) {
    for target in targets.iter().map(|target| target.wrapping_add(end)) {
        if !(target as usize).is_multiple_of(LINE_BYTES) {
            prefetch(target, 1, 0, 1);
        }
    }
}

/// Returns how many runs of this length are interleaved: twice as many of short ones, so that the run that is prefetched
/// is far enough ahead.
#[inline(always)]
pub(super) fn interleaved_runs(bytes: usize) -> usize {
    if bytes < 2 * INTERLEAVED_BYTES {
        2 * INTERLEAVED_RUNS
    } else {
        INTERLEAVED_RUNS
    }
}

/// What is prefetched with each line of a run that is streamed: what lies ahead in the run itself, for its first `own`
/// bytes, and then what begins at `next`.
pub(super) struct RunAhead {
    own: usize,
    next: *const u8,
}

impl RunAhead {
    /// Decides it for one of some runs, after which `next` is read, at the same distances.
    #[inline(always)]
    pub(super) fn new(runs: &Runs, index: usize, next: *const u8, is_interleaved: bool) -> Self {
        let ahead =
            |at: *const u8, by: usize| at.wrapping_offset(runs.from.wrapping_mul(by.cast_signed()));
        let together = interleaved_runs(runs.bytes);
        if runs.count == 1 {
            Self { own: runs.bytes.saturating_sub(PREFETCH_BYTES), next }
        } else if is_interleaved && index + together < runs.count {
            Self { own: 0, next: ahead(runs.source, index + together) }
        } else {
            let index = if is_interleaved { index % together } else { index };
            Self { own: 0, next: ahead(next, index) }
        }
    }

    /// Returns what to prefetch with the line that begins `at` bytes behind the start of the run.
    #[inline(always)]
    pub(super) fn of_line(&self, source: *const u8, at: usize) -> *const u8 {
        if at < self.own {
            source.wrapping_add(at + PREFETCH_BYTES)
        } else {
            self.next.wrapping_add(at - self.own)
        }
    }
}

/// Prefetches some bytes of each row, which are read later. The rows begin `from` bytes apart.
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
