//! Equal runs of more than half a line and less than one, row by row, through the caches: by registers of half a
//! line, for CPUs that store those of a line as two.
//!
//! The idea: Zen 4 stores half a line in a cycle, one that crosses two halves in two, a line that does in three
//! and a half; but what goes to one target right after the other is put together before. So two pieces at a time
//! take their runs of rows that stay in the first-level cache, which has eight ways: eight targets a power of two
//! apart would have all of their lines in one set. Share of the flat copy in 1 MiB, for one store under a mask:
//! 2×48 bytes .93 for .86, 3×40 .82 for .75, 8×48 .80 for .48, 16×48 .77 for .38.
//!
//! The second half of a run overlaps the first. Of up to four pieces lines that are whole go so too: W17 .92 for .88.
//!
//! # Safety
//! 1. The CPU must have AVX2.
//! 2. Every run must be readable and room for all runs writable at each target; they do not overlap.

use super::super::combine::LINE;
use super::super::generic::chunk;
use super::super::opaque::opaque;
use super::super::row_major::{are_alike, are_in_one_set, targets, RowRun};
use super::super::vector::LANE;
use super::equal_pieces::TURN;
use super::equal_runs::MOST_OF_HALVES;
use super::halves::HALF;
use crate::math::{div, parts};
use core::ops::Range;

/// Copies the runs of `count` rows, `step` bytes apart, if they lie side by side, are equal and of such a length,
/// and if it is better; whether it did.
///
/// # Safety
/// 1, 2.
pub(super) unsafe fn copy(runs: &[RowRun], step: usize, count: usize) -> bool {
    let [RowRun { bytes, .. }, _, ..] = *runs else { return false };
    // Others are the quicker one piece after the other.
    let is_on_its_half = |target: *mut u8| (target as usize).is_multiple_of(HALF);
    let are_lines = bytes == LINE && step == runs.len() * LINE && targets(runs).all(is_on_its_half);
    let is_one_pass = runs.len() <= if are_lines { 4 } else { 3 };
    let is_better = || is_one_pass || are_in_one_set(targets(runs), MOST_OF_HALVES);
    let are_some = are_lines && is_one_pass || (HALF + 1..LINE).contains(&bytes);
    if !are_some || !is_better() || !are_alike(runs) {
        return false;
    }
    let block = if is_one_pass { count } else { div(TURN, step) };
    for rows in parts(0..count, block.max(1)) {
        let mut rest = runs;
        // SAFETY: the caller's promise.
        unsafe {
            if let ([a, b, c, d], true) = (rest, are_lines) {
                by_turns([*a, *b, *c, *d], step, &rows);
                break;
            }
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
            // There is one loop for all units, and it goes from source to source.
            (unit, source) = (opaque(unit), opaque(source));
            // SAFETY: the caller's promise.
            unsafe {
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
