//! Long runs that lie apart, past the caches, by turns: some lines of each of a few.
//!
//! The idea: Zen 4 fetches ahead of each of several places that are read, but begins anew with each run and
//! each page; and prefetches into the first-level cache wait for too few lines at a time to make up for it. 24 MiB
//! of rows of 12 KiB, backwards, share of the flat copy: one by one .36, with the next one prefetched .55; by
//! turns of 512 bytes two .69, four .92, eight .90, and so many prefetched into the second-level cache 1.0.
//! Rows of two runs of 512 bytes .44 -> .91 by eight, 1.02 by sixteen turns of 256 bytes.
//!
//! The trick: a line that a run ends in and the next one begins in is put together in a register. 16 bytes off,
//! runs of 1 KiB .37 -> .97.
//!
//! # Safety
//! 1. The CPU must have AVX-512 F, BW, VL and VBMI.
//! 2. Each run must be readable at its source and writable at its target, two lines at the least.
//! 3. A fence must follow the last store.

use super::super::combine::LINE;
use super::super::strided::Row;
use super::super::vector::Vector;
use super::super::TURNS;
use super::avx2;
use super::transpose_past::{line_at, numbers};
use crate::math::{parts, signed};
use core::arch::x86_64::*;

/// The bytes of one, and those from which on it is half as many runs, of twice as many bytes each.
const TURN: usize = 256;
const LONG: usize = 2048;

/// Copies runs past the caches.
///
/// # Safety
/// 1, 2, 3.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
pub(super) unsafe fn by_turns(row: Row) {
    let Row { source_step, target_step, count, unit, .. } = row;
    let (turns, turn) = if unit < LONG { (TURNS, TURN) } else { (TURNS / 2, 2 * TURN) };
    let ahead = source_step.wrapping_mul(signed(turns));
    let numbers = numbers();
    let are_joined = target_step == signed(unit);
    // The line that the last run ends in: the next ones may begin there.
    let end = row.target.wrapping_offset(target_step.wrapping_mul(signed(count)));
    __m256i::prefetch(end);
    for runs in parts(0..count, turns) {
        for part in parts(0..unit, turn) {
            for at in runs.clone() {
                let source = row.source.wrapping_offset(source_step.wrapping_mul(signed(at)));
                let target = row.target.wrapping_offset(target_step.wrapping_mul(signed(at)));
                let last = unit - (target as usize + unit) % LINE;
                let line = |at: usize| last.min(at + (target as usize + at).wrapping_neg() % LINE);
                let (begin, end) = (line(part.start), line(part.end));
                // SAFETY: the caller's promise; all of it lies within the run.
                unsafe {
                    if part.start == 0 && begin > 0 && (at == 0 || !are_joined) {
                        (avx2::TABLE.copy)(source, target, begin);
                    }
                    for at in (begin..end).step_by(LINE) {
                        let line = source.add(at);
                        _mm_prefetch::<_MM_HINT_T1>(line.wrapping_offset(ahead).cast());
                        __m512i::load(line).stream(target.add(at));
                    }
                    let (source, target, rest) = (source.add(last), target.add(last), unit - last);
                    if part.end < unit || rest == 0 {
                        continue;
                    }
                    _mm_prefetch::<_MM_HINT_T1>(source.wrapping_offset(ahead).cast());
                    if are_joined && at + 1 < count {
                        // Not by masks: lines of which nothing is taken would be read too.
                        let next = source.wrapping_sub(last).wrapping_offset(source_step);
                        let before = __m512i::load(source.add(rest).sub(LINE));
                        line_at(rest, before, __m512i::load(next), &numbers).stream(target);
                    } else {
                        (avx2::TABLE.copy)(source, target, rest);
                    }
                }
            }
        }
    }
}
