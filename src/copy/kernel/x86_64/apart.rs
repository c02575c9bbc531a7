//! Units that lie apart in the output: as many as a line holds are permuted to their places in it, and stored under a mask.
//!
//! Zen 4, GB/s of input one by one and so, in L1, 400 KB and 7 MB: every second byte 3.7 and 43, 31, 18, u16 3.7 and 44, 31,
//! 21, f32 14, 14, 13 and 46, 31, 19, i64 28, 27, 18 and 45, 31, 18, every fourth f32 14, 14, 5.8 and 20, 19, 6.8; of three
//! to a line it is no gain past L1. By `vpexpandb` 23 for 45.
//!
//! # Safety
//! 1. The CPU must have AVX-512 F, BW, VL and VBMI.
//! 2. Every unit must be readable at its source and writable at its target, which do not overlap.

use super::super::combine::LINE;
use super::super::opaque::opaque;
use super::super::pick::Table;
use super::super::strided::{Axis, Block};
use super::super::Kernels;
use crate::math::{div, signed};
use core::arch::x86_64::*;

/// Fewer units of a line are as quickly stored one by one, and so are fewer in all: tables take as long.
const LEAST: usize = 4;
const LEAST_IN_ALL: usize = 96;

/// How many units of a row a line holds, in the source and in the target.
fn of_line(unit: usize, row: Axis) -> usize {
    let step = row.from.unsigned_abs().max(row.to.unsigned_abs());
    LINE.checked_sub(unit).map_or(0, |rest| div(rest, step) + 1)
}

/// Whether rows have units enough.
pub(super) fn are_many(&Block { unit, axes: [outer, row] }: &Block) -> bool {
    let each = of_line(unit, row);
    each >= LEAST && row.extent >= each && row.extent * outer.extent >= LEAST_IN_ALL
}

/// Copies all rows.
///
/// # Safety
/// 1, 2; there must be units enough.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[allow(clippy::cast_possible_truncation)] // of masks that have no more bits
pub(super) unsafe fn copy(source: *const u8, target: *mut u8, block: &Block, _: &Kernels) {
    let &Block { unit, axes: [outer, row] } = block;
    let each = of_line(unit, row);
    // Of those that go backwards the last one is the lowest.
    let lowest = row.from.wrapping_mul(signed(each - 1)).min(0);
    let (mut order, mut gets, mut puts) = (Table([0; LINE]), 0, 0);
    let (mut get, mut put) = (lowest.wrapping_neg(), 0);
    for _ in 0..each {
        let mut byte = 0;
        while byte < unit {
            let [get, put] = [get, put].map(|at: isize| (at.cast_unsigned() + byte) % LINE);
            gets |= 1u64 << get;
            puts |= 1u64 << put;
            if let Some(slot) = order.0.get_mut(put) {
                *slot = get.to_le_bytes()[0];
            }
            byte = opaque(byte + 1); // written out, it would be a KB
        }
        (get, put) = (get.wrapping_add(row.from), put.wrapping_add(row.to));
    }
    let span = LINE - gets.leading_zeros() as usize;
    // SAFETY: the caller's promise; no byte is touched that the masks have not.
    outer.each(source, target, |source, target| unsafe {
        // There is one loop for all rows.
        let (step, last) = (opaque(row.to.cast_unsigned()), opaque(row.extent - each));
        let order = _mm512_load_si512(order.0.as_ptr().cast());
        let copy_from = |at: usize| {
            let (source, target) = row.moved((source, target), signed(at));
            let source = source.wrapping_offset(lowest).cast();
            // A load under a mask that reaches into a page that is not there takes a hundred nanoseconds.
            let line = match opaque(span) {
                ..=16 => _mm512_castsi128_si512(_mm_maskz_loadu_epi8(gets as u16, source)),
                17..=32 => _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(gets as u32, source)),
                _ => _mm512_maskz_loadu_epi8(gets, source),
            };
            let line = _mm512_permutexvar_epi8(order, line);
            _mm512_mask_storeu_epi8(target.cast(), puts, line);
        };
        // On to the output's next line first: it is there that units begin, if steps are a power of two.
        let first = (LINE - target as usize % LINE + step - 1) >> step.trailing_zeros();
        let (mut at, mut next) = (0, first.min(each));
        while at < last {
            copy_from(at);
            (at, next) = (at + next, each);
        }
        copy_from(last);
    });
}
