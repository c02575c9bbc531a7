//! Transposes 16 bytes of many rows in registers: interleave the first half of them with the second,
//! and again as often as it takes.

use super::super::lines::LINE;
use super::super::{Deal, MAX_DEAL};
use super::deal::{ask_ahead, Strip, STRIP};
use super::vector::{load_halves, store_line, transposed, HALF, VECTOR};
use core::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_shuffle_epi8};
use core::mem::MaybeUninit;

/// A strip of `len` targets, of `columns` that 16 bytes have: 2, 4, 8 or 16.
///
/// # Safety
/// As [`super::deal::deal`]; 16 bytes must be readable from the begin of each row on, or rows have
/// nothing between them.
pub(super) unsafe fn strip(
    deal: &Deal,
    len: usize,
    width: usize,
    columns: usize,
    order: &[u8; VECTOR],
    strip: &Strip,
) {
    let tile = match (columns, strip.past) {
        (2, false) => tile::<2, false>,
        (4, false) => tile::<4, false>,
        (8, false) => tile::<8, false>,
        (_, false) => tile::<16, false>,
        (2, true) => tile::<2, true>,
        (4, true) => tile::<4, true>,
        (8, true) => tile::<8, true>,
        (_, true) => tile::<16, true>,
    };
    // Where 16 bytes are several rows, the elements of each target are brought together first.
    let step = deal.step * (HALF / (columns * width));
    // Columns without a target go here.
    let mut nowhere = [const { MaybeUninit::<u8>::uninit() }; STRIP * LINE];
    for first in (0..len).step_by(columns) {
        // The last columns lie partly over those before.
        let first = first.min(len.saturating_sub(columns));
        let mut targets = [nowhere.as_mut_ptr().cast(); MAX_DEAL];
        let of_this = deal.targets.iter().take(len).skip(first);
        for (slot, target) in targets.iter_mut().zip(of_this) {
            *slot = target.wrapping_add(strip.row * width);
        }
        let source = deal.source.wrapping_add(strip.row * deal.step + first * width);
        let ahead = if first == 0 { LINE / width * deal.step } else { 0 };
        // SAFETY: the caller's promise.
        unsafe { tile(source, step, order, &targets, strip.lines, ahead) };
    }
}

/// Which byte of 16 goes where, so that those of each of `columns` are together; twice.
pub(super) fn order(columns: usize, width: usize) -> [u8; VECTOR] {
    let mut order = [0; VECTOR];
    let bytes_each = HALF / columns;
    for half in order.chunks_exact_mut(HALF) {
        for (column, bytes) in half.chunks_exact_mut(bytes_each).enumerate() {
            for (byte, slot) in bytes.iter_mut().enumerate() {
                let from = (byte / width * columns + column) * width + byte % width;
                *slot = u8::try_from(from).unwrap_or(0);
            }
        }
    }
    order
}

/// Some lines of `E` columns. Past the caches asks for so many bytes ahead with each line.
///
/// # Safety
/// As [`strip`].
#[target_feature(enable = "avx2")]
unsafe fn tile<const E: usize, const PAST: bool>(
    mut source: *const u8,
    step: usize,
    order: &[u8; VECTOR],
    targets: &[*mut u8; MAX_DEAL],
    lines: usize,
    ahead: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let order = _mm256_loadu_si256(order.as_ptr().cast());
        for at in 0..lines {
            if PAST {
                ask_ahead(source, ahead);
            }
            let low = columns::<E>(source, step, order);
            let high = columns::<E>(source.add(2 * E * step), step, order);
            for ((target, low), high) in targets.iter().zip(low).zip(high) {
                store_line::<PAST>(target.add(at * LINE), low, high);
            }
            source = source.add(4 * E * step);
        }
    }
}

/// A vector of each column.
///
/// # Safety
/// As [`strip`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn columns<const E: usize>(source: *const u8, step: usize, order: __m256i) -> [__m256i; E] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut rows = load_halves::<E>(source, step);
        if step == HALF {
            for row in &mut rows {
                *row = _mm256_shuffle_epi8(*row, order);
            }
        }
        transposed(rows)
    }
}
