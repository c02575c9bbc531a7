//! Rows of three or four units of 1, 2, 4, 8 or 16 bytes, and nothing between them, a line of each target at
//! a time.
//!
//! The idea: byte `at` of a line of the first target is byte `at + (at & -width) * (N - 1)` of as many lines of
//! input as there are targets, and that of the next one `width` bytes behind it. It is below 256: seven bits of it
//! are the index for a permute of two registers, the eighth says of which two. So there is one table for each
//! target, and it takes no time to be made.
//!
//! Zen 4, share of the flat copy for by permutes of all registers, one after the other, and for by the network: 4×4
//! bytes 64 KiB .78 for .60 and .69, 1 MiB .93 for .85 and .78; 3×1 1 MiB .95 for .94 and .96; but two units are
//! as well taken by those. Targets are prefetched: without, 4×1 bytes of 4 MiB reach .91 for .95, and 512 bytes
//! ahead instead of 256 3×1 .87 for .95.
//!
//! # Safety
//! That of `permute.rs`.

use super::super::combine::LINE;
use super::super::opaque::opaque;
use super::super::strided::Axis;
use super::super::table::KERNELS;
use super::super::vector::Vector;
use super::super::{Deinterleave, Gather, NextBlock};
use crate::math::div;
use core::arch::asm;
use core::arch::x86_64::*;
use core::hint::black_box;

/// Of so many bytes, rows go by `permute.rs`, whose loads run less far ahead of the stores. Zen 4, share of the flat
/// copy for by these: 4×1 byte 6 MiB .94 for .93, 7 MiB .95 for .92, 3×1 5 MiB .97 for .95, 7 MiB .96 for .91.
const LARGE: usize = 6 << 20;

/// So few bytes of five units and more of eight go piece by piece. Zen 4, ns for by the network: 81 × 7 248 for 472, 160 ×
/// 6 321, 510, 90 × 16 747, 1,129.
const EIGHT: usize = 8;
const NEAR: usize = 12 << 10;

/// Takes all rows of each block but of the shortest ones, or none; whether it did.
///
/// # Safety
/// 1, 2.
#[inline(always)] // once in the library
pub(super) unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    next: &mut NextBlock<'_>,
) -> bool {
    let take = match len {
        3 => rows::<3>,
        4 => rows::<4>,
        5.. if width == EIGHT && block.count * block.step <= NEAR && block.more.extent == 0 => {
            by_piece
        }
        _ => return false,
    };
    let Some(unit @ (1 | 2 | 4 | 8 | 16)) = i8::try_from(width).ok() else { return false };
    let has_lines = |block: &Deinterleave| block.count * width >= LINE;
    if block.step != len * width || block.count * block.step >= LARGE || !has_lines(block) {
        return false;
    }
    loop {
        let mut done = 0;
        if has_lines(block) {
            // SAFETY: the caller's promise.
            unsafe { take(block, unit) };
            done = block.count;
            block.more.extent = 0;
        }
        if !next(block, done) {
            return true;
        }
    }
}

/// Takes all rows of a block, and of those that follow it.
///
/// # Safety
/// 1, 2; there must be a line for each target.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn rows<const N: usize>(block: &Deinterleave, width: i8) {
    let &Deinterleave { mut source, targets, count, more: Axis { extent, from, to }, .. } = block;
    let Some(mut targets) = targets.first_chunk::<N>().copied() else { return };
    let orders = orders::<N>(width);
    let width = usize::from(width.unsigned_abs());
    let last = width * count - LINE;
    for _ in 0..=extent {
        // From the first target's first whole line on, if a unit begins there; what is before and behind lines is
        // taken with others.
        let begin = targets.first().map_or(0, |target| *target as usize);
        let (mut at, mut next) = (0, (LINE - begin % LINE) & width.wrapping_neg());
        loop {
            // SAFETY: the caller's promise; prefetching never faults.
            unsafe {
                let lines = __m512i::get::<N>(source.wrapping_add(N * at));
                for (order, target) in orders.iter().zip(targets) {
                    let target = target.wrapping_add(at);
                    combined(*order, lines).store(target);
                    asm!(
                        "prefetchw [{0} + 256]",
                        in(reg) target,
                        options(nostack, preserves_flags)
                    );
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

/// Takes all rows for one target after the other.
///
/// # Safety
/// As [`rows`].
unsafe fn by_piece(block: &Deinterleave, _: i8) {
    let &Deinterleave { mut source, step, ref targets, count, .. } = block;
    // Or these are there once more, and once for each target.
    let (gather, pieces) = (black_box(KERNELS.gather(EIGHT)), opaque(div(step, EIGHT)));
    for &target in targets.iter().take(pieces) {
        // SAFETY: the caller's promise.
        unsafe { gather(Gather { source, step, target, count, unit: EIGHT }) };
        source = source.wrapping_add(EIGHT);
    }
}

/// Where the bytes of a line of each target come from.
///
/// # Safety
/// 1.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
fn orders<const N: usize>(width: i8) -> [__m512i; N] {
    let mut numbers = [0; LINE];
    for (number, slot) in (0u8..).zip(&mut numbers) {
        *slot = number;
    }
    // SAFETY: it is a line.
    let numbers = unsafe { __m512i::load(numbers.as_ptr()) };
    let begins = _mm512_and_si512(numbers, _mm512_set1_epi8(-width));
    let mut order = numbers;
    for _ in 1..N {
        order = _mm512_add_epi8(order, begins);
    }
    let mut orders = [order; N];
    for slot in &mut orders {
        *slot = order;
        order = _mm512_add_epi8(order, _mm512_set1_epi8(width));
    }
    orders
}

/// A line of a target.
///
/// # Safety
/// 1.
#[inline(always)]
pub(super) unsafe fn combined<const N: usize>(order: __m512i, lines: [__m512i; N]) -> __m512i {
    // SAFETY: 1.
    unsafe {
        let is_behind = _mm512_movepi8_mask(order);
        match lines[..] {
            [a] => _mm512_permutexvar_epi8(order, a),
            [a, b] => _mm512_permutex2var_epi8(a, order, b),
            [a, b, c] => {
                let line = _mm512_permutex2var_epi8(a, order, b);
                _mm512_mask_permutexvar_epi8(line, is_behind, order, c)
            }
            [a, b, c, d] => {
                let line = _mm512_permutex2var_epi8(a, order, b);
                let other = _mm512_permutex2var_epi8(c, order, d);
                _mm512_mask_blend_epi8(is_behind, line, other)
            }
            _ => order,
        }
    }
}
