//! Equal runs of more than half a line and less than one, row by row, through the caches: by registers of half a
//! line, for CPUs that store those of a line as two.
//!
//! The idea: Zen 4 stores half a line in a cycle, one that crosses two halves in two, a line that does in three
//! and a half; but what goes to one target right after the other is put together before. So two pieces at a time
//! take their runs of rows that stay in the first-level cache, which has eight ways: eight targets a power of two
//! apart would have all of their lines in one set. Share of the flat copy in 1 MiB, for one store under a mask:
//! 2×48 bytes .93 for .86, 3×40 .82 for .75, 8×48 .80 for .48, 16×48 .77 for .38.
//!
//! The second half of a run overlaps the first.
//!
//! # Safety
//! 1. The CPU must have AVX2.
//! 2. Every run must be readable and room for all runs writable at each target; they do not overlap.

use super::super::combine::LINE;
use super::super::generic::chunk;
use super::super::row_major::RowRun;
use super::super::vector::LANE;
use super::super::MAX_DEINTERLEAVED;
use super::equal_pieces::TURN;
use super::equal_runs::MOST_OF_HALVES;
use crate::math::{div, parts};
use core::arch::asm;
use core::ops::Range;
use core::ptr::null_mut;

const HALF: usize = 32;

/// Copies the runs of `count` rows, `step` bytes apart, if they lie side by side, are equal and of such a length,
/// and if it is better; whether it did.
///
/// # Safety
/// 1, 2.
pub(super) unsafe fn copy(runs: &[RowRun], step: usize, count: usize) -> bool {
    let [RowRun { source, bytes, .. }, _, ..] = *runs else { return false };
    let is_next = |(at, run): (usize, &RowRun)| {
        run.bytes == bytes && run.source == source.wrapping_add(at * bytes)
    };
    let mut targets = [null_mut(); MAX_DEINTERLEAVED];
    for (slot, run) in targets.iter_mut().zip(runs) {
        *slot = kept(run.target);
    }
    let is_one_pass = runs.len() <= 3;
    let is_better = is_one_pass || share_a_set(&targets, runs.len());
    if !(HALF + 1..LINE).contains(&bytes) || !is_better || !runs.iter().enumerate().all(is_next) {
        return false;
    }
    let block = if is_one_pass { count } else { div(TURN, step) };
    for rows in parts(0..count, block.max(1)) {
        let mut rest = runs;
        // SAFETY: the caller's promise.
        unsafe {
            while let [first, second, others @ ..] = rest {
                if let [third] = others {
                    by_turns([*first, *second, *third], step, &rows);
                    break;
                }
                by_turns([*first, *second], step, &rows);
                rest = others;
            }
        }
    }
    true
}

/// Whether so many of the first targets that they take turns have the first one's place within pages.
#[inline(never)] // once in the library
pub(super) fn share_a_set(targets: &[*mut u8; MAX_DEINTERLEAVED], len: usize) -> bool {
    let set = |target: *mut u8| target as usize % 4096 / LINE;
    let [first, ..] = *targets;
    let first = set(first);
    let is_there = |target: &*mut u8| usize::from(set(kept(*target)) == first);
    targets.iter().take(len).map(is_there).sum::<usize>() > MOST_OF_HALVES
}

/// A target, of which the compiler knows nothing: loops stay as small as they are.
#[inline(always)]
pub(super) fn kept(mut target: *mut u8) -> *mut u8 {
    // SAFETY: nothing happens.
    #[allow(clippy::pointers_in_nomem_asm_block)]
    unsafe {
        asm!("/* {0} */", inout(reg) target, options(nomem, nostack, preserves_flags));
    }
    target
}

/// Copies the runs of some pieces that lie side by side.
///
/// # Safety
/// 1, 2.
#[target_feature(enable = "avx2,bmi2")]
unsafe fn by_turns<const N: usize>(runs: [RowRun; N], step: usize, rows: &Range<usize>) {
    let Some(&RowRun { source, bytes: unit, .. }) = runs.first() else { return };
    let targets = runs.map(|run| run.target.wrapping_add(rows.start * unit));
    let mut source = source.wrapping_add(rows.start * step);
    let gap = step.wrapping_sub(N * unit);
    let mut at = 0;
    for _ in rows.clone() {
        for target in &targets {
            let (mut unit, target) = (unit, target.wrapping_add(at));
            // SAFETY: the caller's promise; nothing happens but that there is one loop for all units, and that
            // the compiler goes from source to source.
            #[allow(clippy::pointers_in_nomem_asm_block)]
            unsafe {
                asm!("/* {0} {1} */", inout(reg) unit, inout(reg) source, options(nomem, nostack, preserves_flags));
                chunk::<HALF>(source, target, 0);
                if unit > HALF + LANE {
                    chunk::<HALF>(source, target, unit - HALF);
                } else {
                    chunk::<LANE>(source, target, unit - LANE);
                }
            }
            source = source.wrapping_add(unit);
        }
        source = source.wrapping_add(gap);
        at += unit;
    }
}
