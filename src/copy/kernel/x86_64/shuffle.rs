//! Deals whole rows out by byte shuffles: rows of `N` elements of 1, 2, 4 or 8 bytes and nothing
//! else. `N` vectors of input hold as many whole rows as one vector of each target needs, and where
//! a byte comes from is the same again and again.

use super::super::lines::LINE;
use super::super::{Deal, AHEAD};
use core::arch::x86_64::{
    __m256i, _mm256_castsi128_si256, _mm256_inserti128_si256, _mm256_load_si256, _mm256_or_si256,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_storeu_si256, _mm256_stream_si256,
    _mm_loadu_si128, _mm_prefetch, _MM_HINT_T0,
};
use core::hint::black_box;

/// Bytes of half a vector: shuffles work within each half.
const HALF: usize = 16;
const VECTOR: usize = 2 * HALF;

/// Where the bytes of one half come from: in which half of the input, and where in it.
/// An entry with its top bit set makes the byte 0.
#[repr(align(32))]
#[derive(Clone, Copy)]
struct Mask([u8; VECTOR]);

type Masks<const N: usize> = [[Mask; N]; N];

fn masks<const N: usize>(width: usize) -> Masks<N> {
    let mut masks = [[Mask([0x80; VECTOR]); N]; N];
    for (target, masks) in masks.iter_mut().enumerate() {
        // Elements of a target are `N` apart in the input, and follow each other in the output.
        let mut from = target * width;
        for element in (0..HALF).step_by(width) {
            for byte in 0..width {
                // Below 16.
                #[allow(clippy::cast_possible_truncation)]
                let place = ((from + byte) % HALF) as u8;
                if let Some(Mask(mask)) = masks.get_mut((from + byte) / HALF) {
                    for half in mask.chunks_exact_mut(HALF) {
                        if let Some(slot) = half.get_mut(element + byte) {
                            *slot = place;
                        }
                    }
                }
            }
            from += N * width;
        }
    }
    masks
}

/// Deals `deal.count` rows of `N` elements of `width` bytes out.
///
/// # Safety
/// As [`super::Kernels::deal`]; rows have nothing between them, and there are enough of them for
/// a line of each target. To go past the caches, the targets must all lie as many whole
/// elements from a line.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn deal<const N: usize>(deal: Deal, width: usize, past_caches: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if past_caches {
            lines::<N, true>(&deal, width);
        } else {
            lines::<N, false>(&deal, width);
        }
    }
}

/// # Safety
/// As [`deal`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn lines<const N: usize, const PAST: bool>(deal: &Deal, width: usize) {
    // Out of sight, lest the compiler takes more masks into registers than there are.
    let masks = black_box(masks::<N>(width));
    let rows = LINE / width;
    // Rows before the first target's first whole line.
    let mut row = (deal.targets[0] as usize).wrapping_neg() % LINE / width;
    // SAFETY: every line of rows lies within `count`.
    unsafe {
        if row > 0 {
            line::<N, false>(deal, &masks, width, 0);
        }
        while row + rows <= deal.count {
            if PAST {
                for line in 0..N {
                    let at = row * N * width + line * LINE + AHEAD;
                    _mm_prefetch::<_MM_HINT_T0>(deal.source.wrapping_add(at).cast());
                }
            }
            line::<N, PAST>(deal, &masks, width, row);
            row += rows;
        }
        if row < deal.count {
            line::<N, false>(deal, &masks, width, deal.count - rows);
        }
    }
}

/// As many bytes as a line has for each target, from a row on.
///
/// # Safety
/// As [`deal`]; so many rows must be there, and with `PAST` the targets must be at a line.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn line<const N: usize, const PAST: bool>(
    deal: &Deal,
    masks: &Masks<N>,
    width: usize,
    row: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let source = deal.source.add(row * N * width);
        let (low, high) = (input::<N>(source), input::<N>(source.add(N * VECTOR)));
        for (target, masks) in deal.targets.iter().zip(masks) {
            let (mut first, mut second) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            for ((low, high), mask) in low.iter().zip(&high).zip(masks) {
                let mask = _mm256_load_si256(mask.0.as_ptr().cast());
                first = _mm256_or_si256(first, _mm256_shuffle_epi8(*low, mask));
                second = _mm256_or_si256(second, _mm256_shuffle_epi8(*high, mask));
            }
            // One after the other: two stores to one line take the time of one.
            let target = target.add(row * width);
            if PAST {
                _mm256_stream_si256(target.cast(), first);
                _mm256_stream_si256(target.add(VECTOR).cast(), second);
            } else {
                _mm256_storeu_si256(target.cast(), first);
                _mm256_storeu_si256(target.add(VECTOR).cast(), second);
            }
        }
    }
}

/// The rows for a vector of each target: those for its low half in the low halves.
///
/// # Safety
/// They must be readable.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn input<const N: usize>(source: *const u8) -> [__m256i; N] {
    let mut input = [_mm256_setzero_si256(); N];
    for (at, slot) in input.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let low = _mm_loadu_si128(source.add(at * HALF).cast());
            let high = _mm_loadu_si128(source.add((N + at) * HALF).cast());
            *slot = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        }
    }
    input
}
