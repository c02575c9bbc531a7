//! Runs of half a line and more, row by row, through the caches: a loop of its own for each piece.
//!
//! The idea: Zen 5 foresees what an instruction stores next by how far it went the last times, each
//! instruction for itself. One loop for all pieces jumps to another target with every run, and has to
//! be learned anew; the longer the loop, the more of its stores. Here the loop's code is there once for
//! each piece, up to four, and its only store goes through one target from begin to end, line by
//! line. Four pieces in the second-level cache, share of the flat copy: runs of 1 KiB .95 for .50 by
//! an aligned loop of 256 bytes (.80 by one loop of a line), 2 KiB .95 for .50, 256 bytes .88.
//!
//! Three tricks: the last line of a run overlaps the one before it; of a run shorter than a line, what
//! is too much is overwritten by the next one, but for the last; and shorter runs beside such are one
//! store under a mask.
//!
//! # Safety
//! 1. The CPU must have AVX-512 F, BW and VL.
//! 2. Every run must be readable and room for all runs writable at each target; they do not overlap.

use super::super::combine::LINE;
use super::super::row_major::RowRun;
use super::super::rules::LOW_THRESHOLDS;
use super::super::vector::Vector;
use super::super::{Gather, Kernels};
use super::equal_runs::{self, AHEAD, BLOCK, LEAST};
use crate::math::{div, div_ceil, parts};
use core::arch::x86_64::{__m512i, _mm256_mask_storeu_epi8, _mm256_maskz_loadu_epi8};

/// The most pieces at a time: what is known of them stays in registers. Eight pieces in two passes over
/// [`BLOCK`], 1 MiB, share of the flat copy: runs of 96 bytes .80 for .70 with eight loops, 256
/// bytes .89 for .82.
pub(super) const PIECES: usize = 4;

/// Blocks are of so many rows at least.
const BLOCK_ROWS: usize = 16;

/// Loops of a level: by pieces.
pub(super) type Loops = [Loop; PIECES];
pub(super) type Loop = unsafe fn(&mut [RowRun; PIECES], usize, usize);

/// What a level has for runs of any length.
pub(super) struct Ways {
    pub loops: &'static Loops,
    /// As many pieces may have lines in one set of the first-level cache.
    pub few: usize,
    /// For runs that are all shorter than half a line, if it can; whether it did.
    pub short: unsafe fn(&[RowRun], usize, usize) -> bool,
    /// For such runs among others.
    pub kernels: &'static Kernels,
    /// For long runs.
    pub long: unsafe fn(*const u8, *mut u8, usize),
}

/// Runs of so many bytes go by one string instruction, where such are quick. Zen 5, ns for a loop's: three runs of
/// 2,400 bytes, 4 rows 282 for 357, 8 705 for 718, 16 1,569 for 1,435; share of the flat copy: runs of 4 KiB .86 for
/// .60 in 32 KiB.
pub(super) const LEAST_STRING: usize = 9 << 8;

/// Runs of so many bytes are long, where rows have so many in all. Zen 5, share of the flat copy by string
/// instructions for by these loops, three pieces, targets on lines, and off them. 256 KiB, runs of 4 KiB .72 for
/// .83, .71 for .75; of 6 .77 for .85, .74 for .79. 512 KiB of 3 KiB .83 for .72, .77 for .66, of 5 .79 for .70,
/// .71 for .61; 1 MiB of 4 .87 for .82, .88 for .83. 3 MiB of 4 .87 for .92, .92 for .84, of 5 .89 for .92, .92 for
/// .88; 6 MiB of 4 .89 for .92, .79 for .83, of 6 .91 for .83, .93 for .85. Time, runs of 2.4 to 7 KB to 2 to 16
/// pieces: 160 KiB .82, 200 .88, 240 .92; but 489 KiB of 2,504 bytes 14.2 us for 7.3.
fn least_long(all: usize) -> usize {
    match all {
        ..LITTLE => LEAST_STRING,
        LITTLE..FEW => 8 << 10,
        FEW..SOME => 3 << 10,
        _ => 5 << 10,
    }
}

const LITTLE: usize = if LOW_THRESHOLDS { 4 << 10 } else { 240 << 10 };
const FEW: usize = if LOW_THRESHOLDS { 8 << 10 } else { 384 << 10 };
const SOME: usize = if LOW_THRESHOLDS { 16 << 10 } else { 3 << 19 };

/// Of so few bytes in all, two such uneven runs do better each by itself: 1 and 32 bytes .46 for .37, 4 and 32 .54 for
/// .49, but 3 MiB of 2 and 32 .49 for .69, 16 and 32 .62 for .69.
const UNEVEN: usize = 28;

/// Long runs take those beside them along, row by row, where there are so many bytes of a row for each. Zen 5,
/// share of the flat copy for some rows of one kind after the other: 8 KiB and twice 2 KiB, 16 rows .73 for .61, 96
/// .91 for .85, 400 .95 for .89; 12 and 4 KiB, 24 rows .82 for .66; 8 KiB and twice 512 bytes .75 for .70.
const SHARE: usize = 2 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Short,
    Loops,
    Long,
}

impl Ways {
    /// Copies the runs of `count` rows, `step` bytes apart, if some are long enough for this; whether
    /// they were.
    ///
    /// # Safety
    /// 1 for `loops` and `kernels`, 2.
    pub(super) unsafe fn copy(&self, runs: &mut [RowRun], step: usize, count: usize) -> bool {
        let all = count.saturating_mul(step);
        let are_uneven = all < FEW && matches!(runs, [a, b] if a.bytes.abs_diff(b.bytes) >= UNEVEN);
        if !are_uneven && runs.iter().all(|run| run.bytes <= LEAST) {
            // SAFETY: the caller's promise.
            return runs.is_empty() || unsafe { (self.short)(runs, step, count) };
        }
        let long = least_long(all);
        let is_mixed = runs.len() <= PIECES && step >= runs.len() * LEAST && step < long;
        let least = if is_mixed { 0 } else { LEAST + 1 };
        let way = |run: &RowRun| match run.bytes {
            bytes if bytes < least => Way::Short,
            bytes if bytes < long => Way::Loops,
            _ => Way::Long,
        };
        let Some(first) = runs.first().map(way) else { return true };
        // SAFETY: the caller's promise.
        if first == Way::Loops && unsafe { equal_runs::copy(runs, step, count, self.few) } {
            return true;
        }
        if step >= runs.len() * SHARE && runs.iter().any(|run| way(run) == Way::Long) {
            // SAFETY: the caller's promise.
            unsafe { self.pass(Way::Long, runs, step, count) };
            return true;
        }
        let is_one = runs.iter().all(|run| way(run) == first);
        let is_one_pass = is_one && (first == Way::Long || runs.len() <= PIECES);
        let block = if is_one_pass { count } else { div(BLOCK, step).max(BLOCK_ROWS) };
        for rows in parts(0..count, block) {
            let mut rest = &mut *runs;
            while let Some(first) = rest.first().map(way) {
                let end = rest.iter().position(|run| way(run) != first);
                let Some((alike, others)) = rest.split_at_mut_checked(end.unwrap_or(rest.len()))
                else {
                    break;
                };
                // SAFETY: the caller's promise.
                unsafe { self.pass(first, alike, step, rows.len()) };
                rest = others;
            }
        }
        true
    }

    /// Copies runs of one way, and goes on to those that follow.
    ///
    /// # Safety
    /// As [`Ways::copy`].
    unsafe fn pass(&self, way: Way, runs: &mut [RowRun], step: usize, count: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match way {
                Way::Short => {
                    for run in runs {
                        let &mut RowRun { source, bytes: unit, target } = run;
                        (self.kernels.gather(unit))(Gather { source, step, target, count, unit });
                        run.skip(count, step);
                    }
                }
                Way::Loops => {
                    let passes = div_ceil(runs.len(), PIECES);
                    let each = div_ceil(runs.len(), passes).max(1);
                    let mut rest = runs;
                    while let Some((some, others)) = rest.split_at_mut_checked(each.min(rest.len()))
                    {
                        if some.is_empty() {
                            break;
                        }
                        self.loops(some, step, count);
                        rest = others;
                    }
                }
                Way::Long => {
                    for row in 0..count {
                        for run in &*runs {
                            let source = run.source.wrapping_add(row.wrapping_mul(step));
                            let target = run.target.wrapping_add(row * run.bytes);
                            (self.long)(source, target, run.bytes);
                        }
                    }
                    for run in runs {
                        run.skip(count, step);
                    }
                }
            }
        }
    }

    /// Copies the runs of up to [`PIECES`] pieces by their loops.
    ///
    /// # Safety
    /// As [`Ways::copy`].
    unsafe fn loops(&self, runs: &mut [RowRun], step: usize, count: usize) {
        let Some(&first) = runs.first() else { return };
        let mut slots = [first; PIECES];
        for (slot, run) in slots.iter_mut().zip(&*runs) {
            *slot = *run;
        }
        let overlaps = runs.iter().any(|run| (LEAST..LINE).contains(&run.bytes));
        let Some(run) = self.loops.get(runs.len() - 1) else { return };
        let by_line = count - usize::from(overlaps).min(count);
        // SAFETY: the caller's promise; what is too much of a run is of the next one.
        unsafe { run(&mut slots, step, by_line) };
        for run in &mut *runs {
            run.skip(by_line, step);
        }
        if by_line < count {
            // SAFETY: as above.
            unsafe { row(self.kernels.copy, runs, step) };
        }
    }
}

/// Copies the runs of one row.
///
/// # Safety
/// 1 for `copy`, 2.
unsafe fn row(copy: unsafe fn(*const u8, *mut u8, usize), runs: &mut [RowRun], step: usize) {
    for run in runs {
        // SAFETY: the caller's promise.
        unsafe { copy(run.source, run.target, run.bytes) };
        run.skip(1, step);
    }
}

/// Copies the runs of the first `N` pieces, by line; a run of less than a line, from half of one on,
/// takes a whole one.
///
/// # Safety
/// 1, 2, and what a line takes too much must be readable, and writable.
#[inline(always)]
pub(super) unsafe fn loops<const N: usize>(runs: &mut [RowRun; PIECES], step: usize, count: usize) {
    let bytes: usize = runs.iter().take(N).map(|run| run.bytes).sum();
    // Rows that lie apart are not where CPUs look for them.
    let ahead = if step > bytes { step.wrapping_mul(AHEAD) } else { 0 };
    for _ in 0..count {
        // The compiler makes it a loop for each, as `N` is a number.
        for run in runs.iter_mut().take(N) {
            // SAFETY: the caller's promise.
            unsafe { by_line(run.source, run.target, run.bytes, ahead) };
            run.skip(1, step);
        }
    }
}

/// # Safety
/// As [`loops`].
#[inline(always)]
unsafe fn by_line(source: *const u8, target: *mut u8, bytes: usize, ahead: usize) {
    let mut at = 0;
    // SAFETY: the caller's promise.
    unsafe {
        if bytes < LEAST {
            let mask = (1 << bytes) - 1;
            let short = _mm256_maskz_loadu_epi8(mask, source.cast());
            return _mm256_mask_storeu_epi8(target.cast(), mask, short);
        }
        loop {
            if ahead > 0 {
                __m512i::prefetch(source.wrapping_add(ahead).wrapping_add(at));
            }
            __m512i::load(source.add(at)).store(target.add(at));
            at += LINE;
            if at + LINE > bytes {
                break;
            }
        }
        if at < bytes {
            let last = bytes - LINE;
            __m512i::load(source.add(last)).store(target.add(last));
        }
    }
}

impl RowRun {
    /// On to the runs so many rows further.
    #[inline(always)]
    fn skip(&mut self, rows: usize, step: usize) {
        self.source = self.source.wrapping_add(rows.wrapping_mul(step));
        self.target = self.target.wrapping_add(rows * self.bytes);
    }
}
