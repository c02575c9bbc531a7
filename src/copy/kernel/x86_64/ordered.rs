//! Units a step apart by an order that was made before: see [`super::super::ordered`].
//!
//! # Safety
//! That of `permute.rs`.

use super::super::combine::LINE;
use super::super::ordered::Order;
use super::super::strided::{Block, Place};
use super::super::vector::Vector;
use super::super::Kernels;
use super::permute::first_bytes;
use crate::math::signed;
use core::arch::x86_64::*;

/// Copies rows of units.
///
/// # Safety
/// 1; every unit must be readable, and what lies between those of a row, and the target writable for them; the order
/// must be that of such rows.
pub(super) unsafe fn copy(order: &Order, block: &Block, place: Place, _: &Kernels) {
    let rows = match order.reach {
        ..=LINE => rows::<1>,
        65..129 => rows::<2>,
        _ => rows::<4>,
    };
    // SAFETY: the caller's promise.
    unsafe { rows(order, block, place) };
}

/// The same of units that reach over so many registers.
///
/// # Safety
/// As [`copy`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn rows<const R: usize>(order: &Order, block: &Block, place: Place) {
    let &Order { each, reach, ref from } = order;
    let &Block { unit, axes: [outer, row] } = block;
    let step = row.from.wrapping_mul(signed(each));
    // Backwards, registers begin with the last unit of them.
    let before = if row.from < 0 { step - row.from } else { 0 };
    let (bytes, all) = (each * unit, row.extent * unit);
    let [read, written] = [reach, bytes].map(first_bytes);
    let (mut row_source, mut row_target) = place;
    row_source = row_source.wrapping_offset(before);
    // Lines that reach into the next row are written before it.
    let is_one_run = outer.extent == 1 || outer.to == signed(all);
    let run = if is_one_run { outer.extent * all } else { all };
    let mut last = row_target.wrapping_add(run).wrapping_sub(LINE);
    // SAFETY: the caller's promise.
    unsafe {
        let order = __m512i::load(from.as_ptr());
        for _ in 0..outer.extent {
            let (mut source, mut target, mut left) = (row_source, row_target, row.extent);
            loop {
                let mut lines = [__m512i::zero(); R];
                for (number, line) in lines.iter_mut().enumerate() {
                    *line = match number {
                        0 if R == 1 => _mm512_maskz_loadu_epi8(read, source.cast()),
                        _ => __m512i::load(source.wrapping_add((number * LINE).min(reach - LINE))),
                    };
                }
                let line = combined(order, lines);
                if target <= last {
                    line.store(target);
                } else {
                    _mm512_mask_storeu_epi8(target.cast(), written, line);
                }
                left -= each;
                if left == 0 {
                    break;
                }
                (source, target) = (source.wrapping_offset(step), target.wrapping_add(bytes));
                if left < each {
                    let again = each - left;
                    source =
                        source.wrapping_offset(row.from.wrapping_mul(signed(again)).wrapping_neg());
                    target = target.wrapping_sub(again * unit);
                    left = each;
                }
            }
            row_source = row_source.wrapping_offset(outer.from);
            row_target = row_target.wrapping_offset(outer.to);
            if !is_one_run {
                last = last.wrapping_offset(outer.to);
            }
        }
    }
}

/// A line of which each byte comes from one of so many: of four, the upper two where the order's upper bit is set.
///
/// # Safety
/// 1.
#[inline(always)]
unsafe fn combined<const N: usize>(order: __m512i, lines: [__m512i; N]) -> __m512i {
    // SAFETY: 1.
    unsafe {
        match lines[..] {
            [a] => _mm512_permutexvar_epi8(order, a),
            [a, b] => _mm512_permutex2var_epi8(a, order, b),
            [a, b, c, d] => {
                let line = _mm512_permutex2var_epi8(a, order, b);
                let other = _mm512_permutex2var_epi8(c, order, d);
                _mm512_mask_blend_epi8(_mm512_movepi8_mask(order), line, other)
            }
            _ => order,
        }
    }
}
