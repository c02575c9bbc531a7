//! Rows of two, three or four units of 1, 2, 4, 8 or 16 bytes, and nothing between them, a line of each target at
//! a time.
//!
//! The idea: byte `at` of a line of the first target is byte `at + (at & -width) * (N - 1)` of as many lines of
//! input as there are targets, and that of the next one `width` bytes behind it. Of three lines it is below 192: seven
//! bits of it are the index for a permute of two registers, the eighth says that it is of the third. Four units are two
//! of two, twice. So there is one table for each target, and it takes no time to be made.
//!
//! Zen 4, share of the flat copy for by permutes of all registers, one after the other, and for by the network: 4×4
//! bytes 64 KiB .78 for .60 and .69, 1 MiB .93 for .85 and .78; 3×1 1 MiB .95 for .94 and .96. Targets of three and
//! four are prefetched: without, 4×1 bytes of 4 MiB reach .91 for .95, and 512 bytes ahead instead of 256 3×1 .87 for
//! .95. GB/s of two times two for four tables and blends: 4×1 bytes 145 KiB 51 for 49; of lines of the first target for
//! unaligned ones: 2×4 bytes 16 off their lines 10 KiB 62 for 37, 42 51 for 44, 1 MiB 46 for 42.
//!
//! # Safety
//! That of `permute.rs`.

use super::super::combine::LINE;
use super::super::rules::LOW_THRESHOLDS;
use super::super::strided::Axis;
use super::super::table::KERNELS;
use super::super::vector::Vector;
use super::super::{Deinterleave, Gather, NextBlock};
use super::transpose_past;
use core::arch::asm;
use core::arch::x86_64::*;
use core::hint::black_box;

/// Of so many bytes, rows go by `permute.rs`, whose loads run less far ahead of the stores. Zen 4, share of the flat
/// copy for by these: 4×1 byte 6 MiB .94 for .93, 7 MiB .95 for .92, 3×1 5 MiB .97 for .95, 7 MiB .96 for .91.
const LARGE: usize = if LOW_THRESHOLDS { 4 << 10 } else { 6 << 20 };

/// So few bytes of five units and more of eight go piece by piece. Zen 4, ns for by the network: 81 × 7 248 for 472, 160 ×
/// 6 321, 510, 90 × 16 747, 1,129.
const EIGHT: usize = 8;
const NEAR: usize = 12 << 10;

/// The most targets of [`rows`].
const MOST: usize = 4;

/// Takes all rows of each block but of the shortest ones, and past the caches the last ones, or none; whether it did.
///
/// # Safety
/// 1, 2; 3 if `past`.
#[inline(always)] // once in the library
pub(super) unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    next: &mut NextBlock<'_>,
) -> bool {
    let Some(unit) = unit(width).filter(|_| len > 1) else { return false };
    let has_lines = |block: &Deinterleave| block.count * width >= LINE;
    let (bytes, are_many) = (block.count * block.step, block.more.extent > 0);
    let is_right = match () {
        () if block.step != len * width || !has_lines(block) => false,
        () if len > MOST => width == EIGHT && bytes <= NEAR && !past && !are_many,
        // Of blocks that follow, others have a loop for the ends.
        () if past => !are_many,
        () => bytes < LARGE,
    };
    if !is_right {
        return false;
    }
    loop {
        let mut done = 0;
        if has_lines(block) {
            let targets = block.targets.get(..len).unwrap_or_default();
            // SAFETY: the caller's promise.
            unsafe {
                if len > MOST {
                    by_piece(block, targets);
                    done = block.count;
                } else if past {
                    done = rows_past(block, targets, unit);
                } else {
                    rows(block.source, targets, unit, block.count * width, block.more);
                    done = block.count;
                    block.more.extent = 0;
                }
            }
        }
        if !next(block, done) {
            return true;
        }
    }
}

/// Takes all rows for one target after the other.
///
/// # Safety
/// As [`rows`].
#[inline(never)] // for its stack
unsafe fn by_piece(block: &Deinterleave, targets: &[*mut u8]) {
    let &Deinterleave { mut source, step, count, .. } = block;
    // Or it is there once more.
    let gather = black_box(KERNELS.gather(EIGHT));
    for &target in targets {
        // SAFETY: the caller's promise.
        unsafe { gather(Gather { source, step, target, count, unit: EIGHT }) };
        source = source.wrapping_add(EIGHT);
    }
}

/// The width, if there are orders for it.
pub(super) fn unit(width: usize) -> Option<i8> {
    i8::try_from(width).ok().filter(|width| matches!(width, 1 | 2 | 4 | 8 | 16))
}

/// Takes rows, if they are of so few units and make a line; whether it did.
///
/// # Safety
/// 1, 2.
pub(super) unsafe fn columns(
    source: *const u8,
    targets: &[*mut u8],
    width: usize,
    count: usize,
) -> bool {
    let Some(unit) = unit(width).filter(|_| count * width >= LINE) else { return false };
    // SAFETY: the caller's promise.
    unsafe { rows(source, targets, unit, count * width, Axis::NONE) }
}

/// Takes all rows of a block, so many bytes of each target, and of those that follow it, if there is a loop for so
/// many targets.
///
/// # Safety
/// 1, 2; there must be a line for each target.
#[inline(never)] // once in the library
unsafe fn rows(source: *const u8, targets: &[*mut u8], unit: i8, bytes: usize, more: Axis) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match targets.len() {
            2 => lines::<2>(source, targets, unit, bytes, more),
            3 => lines::<3>(source, targets, unit, bytes, more),
            MOST => lines::<MOST>(source, targets, unit, bytes, more),
            _ => return false,
        }
    }
    true
}

/// As [`rows`].
///
/// # Safety
/// As [`rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn lines<const N: usize>(
    mut source: *const u8,
    targets: &[*mut u8],
    unit: i8,
    bytes: usize,
    Axis { extent, from, to }: Axis,
) {
    let Some(mut targets) = targets.first_chunk::<N>().copied() else { return };
    let orders = orders::<N>(unit);
    let width = usize::from(unit.unsigned_abs());
    let last = bytes - LINE;
    for _ in 0..=extent {
        // From the first target's first whole line on, if a unit begins there; what is before and behind lines is
        // taken with others.
        let begin = targets.first().map_or(0, |target| *target as usize);
        let (mut at, mut next) = (0, (LINE - begin % LINE) & width.wrapping_neg());
        loop {
            // SAFETY: the caller's promise; prefetching never faults.
            unsafe {
                let lines = combined(orders, __m512i::get::<N>(source.wrapping_add(N * at)));
                for (line, target) in lines.into_iter().zip(targets) {
                    let target = target.wrapping_add(at);
                    line.store(target);
                    if N > 2 {
                        asm!(
                            "prefetchw [{0} + 256]",
                            in(reg) target,
                            options(nostack, preserves_flags)
                        );
                    }
                }
            }
            if at == last {
                break;
            }
            at = next.min(last);
            next += LINE;
        }
        source = source.wrapping_offset(from);
        targets = targets.map(|target| target.wrapping_offset(to));
    }
}

/// Takes rows of a block past the caches: whole lines of each target, of what was taken before and what is taken. Zen 4,
/// ms for by way of buffers, targets each elsewhere in a line: 22 MiB of 4×4 bytes 1.2 for 1.8, 13 of 3×1 .63 for 1.02.
/// How many it took: all but what is left in registers, and makes no line.
///
/// # Safety
/// 1, 2, 3; there must be a line for each target, and a loop for so many.
#[inline(never)] // for its stack
unsafe fn rows_past(block: &Deinterleave, targets: &[*mut u8], unit: i8) -> usize {
    let bytes = usize::from(unit.unsigned_abs()) * block.count;
    // SAFETY: the caller's promise.
    unsafe {
        rows(block.source, targets, unit, LINE, Axis::NONE);
        match targets.len() {
            2 => lines_past::<2>(block, unit, bytes),
            3 => lines_past::<3>(block, unit, bytes),
            _ => lines_past::<MOST>(block, unit, bytes),
        }
    }
    ((bytes / LINE - 1) * LINE) >> unit.trailing_zeros()
}

/// The same, but for the first line.
///
/// # Safety
/// As [`rows_past`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn lines_past<const N: usize>(block: &Deinterleave, unit: i8, bytes: usize) {
    let &Deinterleave { source, ref targets, prefetch, .. } = block;
    let Some(targets) = targets.first_chunk::<N>().copied() else { return };
    let orders = orders::<N>(unit);
    let owed = targets.map(|target| target as usize % LINE);
    // SAFETY: the caller's promise.
    unsafe {
        let numbers = transpose_past::numbers();
        let behind = owed.map(|owed| transpose_past::behind(owed, &numbers));
        let begins = targets.map(|target| target.wrapping_sub(target as usize % LINE));
        let mut before = [__m512i::zero(); N];
        let mut at = 0;
        while at + LINE <= bytes {
            let from = source.wrapping_add(N * at);
            for line in 0..N {
                __m512i::prefetch(from.wrapping_add(prefetch + line * LINE));
            }
            let now = combined(orders, __m512i::get::<N>(from));
            if at > 0 {
                for (number, begin) in begins.iter().enumerate() {
                    let (Some(before), Some(now)) = (before.get(number), now.get(number)) else {
                        break;
                    };
                    let Some(behind) = behind.get(number) else { break };
                    let line = _mm512_permutex2var_epi8(*before, *behind, *now);
                    line.stream(begin.wrapping_add(at));
                }
            }
            before = now;
            at += LINE;
        }
    }
}

/// Where the bytes of a line of each target come from; of four, of two and two of them.
///
/// # Safety
/// 1.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
pub(super) fn orders<const N: usize>(width: i8) -> [__m512i; 3] {
    let mut numbers = [0; LINE];
    for (number, slot) in (0u8..).zip(&mut numbers) {
        *slot = number;
    }
    // SAFETY: it is a line.
    let numbers = unsafe { __m512i::load(numbers.as_ptr()) };
    let begins = _mm512_and_si512(numbers, _mm512_set1_epi8(-width));
    let mut order = _mm512_add_epi8(numbers, begins);
    if N == 3 {
        order = _mm512_add_epi8(order, begins);
    }
    let mut orders = [order; 3];
    for slot in &mut orders {
        *slot = order;
        order = _mm512_add_epi8(order, _mm512_set1_epi8(width));
    }
    orders
}

/// A line of each target.
///
/// # Safety
/// 1.
#[inline(always)]
unsafe fn combined<const N: usize>(orders: [__m512i; 3], mut lines: [__m512i; N]) -> [__m512i; N] {
    let [even, odd, _] = orders;
    // SAFETY: 1.
    unsafe {
        let two =
            |a, b| [_mm512_permutex2var_epi8(a, even, b), _mm512_permutex2var_epi8(a, odd, b)];
        match &mut lines[..] {
            [a, b] => [*a, *b] = two(*a, *b),
            [a, b, c] => {
                let all = orders.map(|order| {
                    let line = _mm512_permutex2var_epi8(*a, order, *b);
                    let is_behind = _mm512_movepi8_mask(order);
                    _mm512_mask_permutexvar_epi8(line, is_behind, order, *c)
                });
                [*a, *b, *c] = all;
            }
            [a, b, c, d] => {
                let ([first, second], [third, fourth]) = (two(*a, *b), two(*c, *d));
                [*a, *c] = two(first, third);
                [*b, *d] = two(second, fourth);
            }
            _ => {}
        }
    }
    lines
}
