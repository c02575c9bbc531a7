//! Runs of few streams by turns: row by row, so that what they make is written in its own order. Zen 4,
//! share of the flat copy for stream by stream:
//!
//! # Safety
//! 1. The CPU must have AVX2.
//! 2. Every stream must be readable and the target writable over all rows, those after them included, but for that
//!    those of the target may be any memory of a line; they do not overlap.

use super::super::generic::{chunk, copy_short, ends};
use super::super::interleave::Interleave;
use super::halves;
use crate::math::div_ceil;

/// Copies rows; so many follow.
///
/// # Safety
/// 1, 2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy(rows: &Interleave, after: usize) {
    let &Interleave { unit, .. } = rows;
    // SAFETY: the caller's promise.
    unsafe {
        match unit {
            ..=8 => over::<8>(rows, after),
            9..=16 => over::<16>(rows, after),
            17..=32 => over::<32>(rows, after),
            33..=64 => each(rows, |source, target| ends::<32>(source, target, unit)),
            65..halves::LONG => each(rows, |source, target| {
                for half in (0..unit - 32).step_by(32) {
                    chunk::<32>(source, target, half);
                }
                chunk::<32>(source, target, unit - 32);
            }),
            _ => each(rows, |source, target| halves::copy(source, target, unit)),
        }
    }
}

/// Units of at most `N` bytes, as many at a time: what is too much is overwritten by the next unit.
///
/// # Safety
/// 1, 2.
#[inline(always)]
unsafe fn over<const N: usize>(rows: &Interleave, after: usize) {
    let &Interleave { source, len, unit, count, target, .. } = rows;
    let exact = div_ceil(N, unit).saturating_sub(after).min(count);
    let done = count - exact;
    let (source, target) =
        (source.wrapping_add(done * unit), target.wrapping_add(done * len * unit));
    // SAFETY: 1, 2.
    unsafe {
        each(&Interleave { count: done, ..*rows }, |source, target| chunk::<N>(source, target, 0));
        let last = Interleave { source, count: exact, target, ..*rows };
        each(&last, |source, target| copy_short(source, target, unit));
    }
}

/// Does something with each unit.
#[inline(always)]
fn each(rows: &Interleave, copy: impl Fn(*const u8, *mut u8)) {
    let &Interleave { mut source, apart, len, unit, count, mut target } = rows;
    for _ in 0..count {
        let mut next = source;
        for _ in 0..len {
            copy(next, target);
            next = next.wrapping_add(apart);
            target = target.wrapping_add(unit);
        }
        source = source.wrapping_add(unit);
    }
}
