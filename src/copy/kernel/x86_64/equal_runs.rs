//! Equal runs of half a line and more, row by row, through the caches: stores of its own for each piece.
//!
//! The idea is that of `piece_loops.rs`, for many pieces at a time. What makes it possible: runs go as far
//! into each target, so that one number says where in all of them; and where targets begin is in vector
//! registers, of which there are enough. (On Zen 5 loads wait for the addresses of all stores before them; if
//! these are loaded themselves, all wait for one another.) Eight pieces in the second-level cache, share of
//! the flat copy, for two passes of four: runs of 33 bytes .68 for .47, 48 .78 for .63, 96 .82 for .70, 1 KiB
//! .88 for .77; 24 pieces of 64 bytes .85 for .68.
//!
//! Tricks: a run of no more than a line is one store under a mask; the last line of a longer one overlaps
//! the one before it.
//!
//! # Safety
//! 1. The CPU must have AVX-512 F, BW and VL.
//! 2. Every run must be readable and room for all runs writable at each target; they do not overlap.

use super::super::combine::LINE;
use super::super::opaque::opaque;
use super::super::row_major::{are_alike, are_in_one_set, targets, RowRun};
use super::super::rules::LOW_THRESHOLDS;
use super::super::stream::prefetch;
use super::super::vector::Vector;
use crate::math::{div, div_ceil, parts};
use core::arch::asm;
use core::arch::x86_64::*;

/// Pieces that take several passes take turns of so many bytes of rows, which stay in the first-level
/// cache.
pub(super) const BLOCK: usize = 24 << 10;
/// Of shorter runs, a line would reach into the run after the next. They have their loop if the average
/// is as long. Zen 5, share of the flat copy for piece by piece: 16, 4 and 320 bytes in 8 MiB .94 for .78,
/// read just before but not held by the second cache .89 for .60; 8 and 56 .90 for .74, but 4, 8 and 52
/// .63 for .68.
pub(super) const LEAST: usize = LINE / 2;

/// Rows that lie apart are prefetched so many ahead: they are not where CPUs look for them.
pub(super) const AHEAD: usize = 4;
/// And so are, as elements are, large inputs of runs of so many bytes to so many pieces. Zen 5, share of the flat
/// copy for without: 3×96 .88 for .82, 2×100 .90 for .80, 4×65 .83 for .76, 3×256 .89 for .84, but 8×96 .79 for
/// .81, 4×64 .84 for .88, 4×512 .82 for .83. Larger ones do it for runs of up to a line: 9 MiB, 5×33 .65 for .42,
/// 5×40 .74 for .47, 5×64 .86 for .58, 8×40 .64 for .36, 2×40 .75 for .63, but 3×300 .81 for .89.
const AHEAD_LONGEST: usize = LINE * 5;
const AHEAD_PIECES: usize = 4;

/// Of so many bytes, the input of elements is prefetched so many ahead, but not of more, of fewer where lines are
/// whole. Zen 5, share of the flat copy for without: 4×4 bytes 1.5 MiB .88 for .84, 2.5 .89 for .83, 2×8 3 MiB .91
/// for .80, 4×1 3 MiB .92 for .88, but 2×4 7.6 MiB .83 for .91, 2×8 9 MiB .75 for .88; 3×7 6 MiB .93 for .84, but 8
/// .75 for .88, 9 .68 for .75, 4×24 9 .66 for .81.
pub(super) const LEAST_AHEAD: usize = if LOW_THRESHOLDS { 1 << 10 } else { 768 << 10 };
pub(super) const MOST_AHEAD: usize = if LOW_THRESHOLDS { 4 << 10 } else { 4 << 20 };
pub(super) const AHEAD_BYTES: usize = 1536;

/// The most pieces at a time.
const PIECES: usize = 24;
/// The same of those that have lines in one set of the first-level cache, in several passes: with 12 at a time,
/// 24 of 48 bytes .47 for .76. Runs from two lines on do no better by passes, and are seldom in one set all at
/// once, longer ones than four lines never.
pub(super) const MOST: usize = 8;
/// Zen 4's first-level cache has eight ways, not twelve: 8×96 bytes .82 for .69, 16×48 .71 for .38.
pub(super) const MOST_OF_HALVES: usize = 4;
const LONG: usize = 4 * LINE;
const LONG_PASSES: usize = 2 * LINE;
/// Shorter runs of so few pieces do better by them, too: two of 37 bytes .69 for .72; and past the
/// second-level cache all that are shorter than a line: 8 MiB, three of 57 bytes .73 for .91.
const FEWEST: usize = 3;
const LEAST_OF_FEW: usize = LINE / 4 * 3;
const LARGE: usize = if LOW_THRESHOLDS { 4 << 10 } else { 2 << 20 };

/// Copies the runs of `count` rows, `step` bytes apart, if they lie side by side and are equal; whether they
/// were.
///
/// # Safety
/// 1, 2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(super) unsafe fn copy(runs: &[RowRun], step: usize, count: usize, few: usize) -> bool {
    let Some(&RowRun { source, bytes, .. }) = runs.first() else { return true };
    let least = match runs.len() {
        ..=FEWEST if count.saturating_mul(step) > LARGE => LINE,
        ..=FEWEST => LEAST_OF_FEW,
        _ => LEAST,
    };
    let most = match bytes {
        ..=LONG if are_in_one_set(targets(runs), few) => {
            if bytes < LONG_PASSES {
                few
            } else {
                few + few / 2
            }
        }
        _ => PIECES,
    };
    let is_one_pass = runs.len() <= most;
    if bytes < least || !(is_one_pass || bytes < LONG_PASSES) || !are_alike(runs) {
        return false;
    }
    let passes = if is_one_pass { 1 } else { div_ceil(runs.len(), few) };
    let each = div_ceil(runs.len(), passes).max(1);
    let block = if is_one_pass { count } else { div(BLOCK, runs.len() * bytes).max(1) };
    for rows in parts(0..count, block) {
        let mut source = source.wrapping_add(rows.start.wrapping_mul(step));
        for some in runs.chunks(each) {
            let mut targets = [_mm_cvtsi64_si128(0); PIECES];
            for (slot, run) in targets.iter_mut().zip(some) {
                let target = run.target.wrapping_add(rows.start * bytes);
                *slot = _mm_cvtsi64_si128(target as i64);
            }
            let rows = PieceRows { source, bytes, len: some.len(), step, count: rows.len() };
            // SAFETY: the caller's promise.
            unsafe {
                if bytes <= LINE {
                    rows.copy::<false>(&targets);
                } else {
                    rows.copy::<true>(&targets);
                }
            }
            source = source.wrapping_add(some.len() * bytes);
        }
    }
    true
}

/// Rows of some pieces.
struct PieceRows {
    source: *const u8,
    /// Of a run.
    bytes: usize,
    /// Pieces.
    len: usize,
    step: usize,
    count: usize,
}

impl PieceRows {
    /// Copies all runs, of more than a line or not.
    ///
    /// # Safety
    /// 1, 2.
    #[inline(always)]
    #[allow(clippy::many_single_char_names, clippy::cast_possible_truncation)]
    unsafe fn copy<const LONG: bool>(self, targets: &[__m128i; PIECES]) {
        let Self { mut source, bytes, len, step, count } = self;
        let mask = u64::MAX >> (LINE - bytes.min(LINE));
        let width = len * bytes;
        let gap = step.wrapping_sub(width);
        let mut targets = *targets;
        let ahead = if gap != 0 && step != 0 {
            step.wrapping_mul(AHEAD)
        } else {
            match count.saturating_mul(step) {
                LEAST_AHEAD..MOST_AHEAD
                    if LONG && bytes <= AHEAD_LONGEST && len <= AHEAD_PIECES =>
                {
                    AHEAD_BYTES
                }
                MOST_AHEAD.. if !LONG => AHEAD_BYTES,
                _ => 0,
            }
        };
        let mut at = 0;
        for _ in 0..count {
            if ahead != 0 {
                prefetch::<__m512i>(source.wrapping_add(ahead), width);
            }
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] =
                &mut targets;
            // SAFETY: the caller's promise; nothing happens but that the compiler keeps the target in a
            // vector register, and goes from source to source.
            let mut put = |target: &mut __m128i| unsafe {
                asm!(
                    "/* {0} */",
                    inout(xmm_reg) * target,
                    options(nomem, nostack, preserves_flags)
                );
                let target = _mm_cvtsi128_si64(*target).cast_unsigned() as usize;
                let target = (target as *mut u8).wrapping_add(at);
                if LONG {
                    lines(source, target, bytes);
                } else {
                    let run = _mm512_maskz_loadu_epi8(mask, source.cast());
                    _mm512_mask_storeu_epi8(target.cast(), mask, run);
                }
                source = opaque(source.wrapping_add(bytes));
            };
            // No loop: each has its own instructions.
            macro_rules! put {
                ($($number:literal $target:ident)*) => {
                    $(if len > $number {
                        put($target);
                    })*
                };
            }
            put!(0 a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8 i 9 j 10 k 11 l);
            put!(12 m 13 n 14 o 15 p 16 q 17 r 18 s 19 t 20 u 21 v 22 w 23 x);
            source = source.wrapping_add(gap);
            at += bytes;
        }
    }
}

/// Copies a run of more than a line.
///
/// # Safety
/// 1, 2.
#[inline(always)]
unsafe fn lines(source: *const u8, target: *mut u8, bytes: usize) {
    let (mut at, last) = (0, bytes - LINE);
    // SAFETY: the caller's promise.
    unsafe {
        while at < last {
            __m512i::load(source.add(at)).store(target.add(at));
            at += LINE;
        }
        __m512i::load(source.add(last)).store(target.add(last));
    }
}
