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
/// two vectors of each target. To go past the caches, the targets must all lie as many whole
/// elements from a line.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn deal<const N: usize>(deal: Deal, width: usize, past_caches: bool) {
    let masks = masks::<N>(width);
    let rows = VECTOR / width;
    let last = deal.count - rows;
    let mut row = 0;
    // SAFETY: every vector of rows lies within `count`.
    unsafe {
        if past_caches {
            let ahead = (deal.targets[0] as usize).wrapping_neg() % LINE / width;
            if ahead > 0 {
                store(&deal, width, 0, vectors(&deal, &masks, width, 0));
                let before = ahead.saturating_sub(rows);
                store(&deal, width, before, vectors(&deal, &masks, width, before));
            }
            row = ahead;
            while row + 2 * rows <= deal.count {
                for line in 0..N {
                    let at = row * N * width + line * LINE + AHEAD;
                    _mm_prefetch::<_MM_HINT_T0>(deal.source.wrapping_add(at).cast());
                }
                let first = vectors(&deal, &masks, width, row);
                let second = vectors(&deal, &masks, width, row + rows);
                for ((target, first), second) in deal.targets.iter().zip(first).zip(second) {
                    let line = target.add(row * width);
                    _mm256_stream_si256(line.cast(), first);
                    _mm256_stream_si256(line.add(VECTOR).cast(), second);
                }
                row += 2 * rows;
            }
        }
        while row < last {
            store(&deal, width, row, vectors(&deal, &masks, width, row));
            row += rows;
        }
        store(&deal, width, last, vectors(&deal, &masks, width, last));
    }
}

/// A vector for each target, from a row on.
///
/// # Safety
/// As [`deal`]; so many rows must be there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn vectors<const N: usize>(
    deal: &Deal,
    masks: &Masks<N>,
    width: usize,
    row: usize,
) -> [__m256i; N] {
    // SAFETY: the caller's promise.
    unsafe {
        let source = deal.source.add(row * N * width);
        let mut input = [_mm256_setzero_si256(); N];
        for (at, slot) in input.iter_mut().enumerate() {
            let low = _mm_loadu_si128(source.add(at * HALF).cast());
            let high = _mm_loadu_si128(source.add((N + at) * HALF).cast());
            *slot = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        }
        let mut output = [_mm256_setzero_si256(); N];
        for (slot, masks) in output.iter_mut().zip(masks) {
            for (input, mask) in input.iter().zip(masks) {
                let mask = _mm256_load_si256(mask.0.as_ptr().cast());
                *slot = _mm256_or_si256(*slot, _mm256_shuffle_epi8(*input, mask));
            }
        }
        output
    }
}

/// Stores a vector of each target, from a row on.
///
/// # Safety
/// As [`vectors`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store<const N: usize>(deal: &Deal, width: usize, row: usize, vectors: [__m256i; N]) {
    for (target, vector) in deal.targets.iter().zip(vectors) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_si256(target.add(row * width).cast(), vector) };
    }
}
