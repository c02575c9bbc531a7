//! Transposes by registers of 32 bytes.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::super::transpose::{Level, PITCH};
use super::stream;
use core::arch::x86_64::{
    __m256i, _mm256_loadu2_m128i, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_unpackhi_epi16,
    _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpackhi_epi8, _mm256_unpacklo_epi16,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_unpacklo_epi8, _mm_prefetch, _MM_HINT_T0,
};

/// A level for CPUs with AVX2.
pub(super) struct Avx2;

impl Level for Avx2 {
    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(source: *const u8, step: usize, stage: *mut u8) {
        // SAFETY: the caller's promise, and that there is AVX2.
        unsafe {
            // Two squares of N rows, one in each half of the registers.
            let mut rows = [_mm256_setzero_si256(); N];
            let (mut low, mut high) = (source, source.wrapping_add(step.wrapping_mul(N)));
            for row in &mut rows {
                *row = _mm256_loadu2_m128i(high.cast(), low.cast());
                low = low.wrapping_add(step);
                high = high.wrapping_add(step);
            }
            // Row i and row i + N / 2, unit by unit in turn: log2(N) times of it transpose.
            let mut distance = N;
            while distance > 1 {
                let before = rows;
                let (first, second) = before.split_at(N / 2);
                let pairs = first.iter().zip(second);
                for (both, (first, second)) in rows.chunks_exact_mut(2).zip(pairs) {
                    if let [low, high] = both {
                        *low = interleave_low::<W>(*first, *second);
                        *high = interleave_high::<W>(*first, *second);
                    }
                }
                distance /= 2;
            }
            for (at, row) in rows.iter().enumerate() {
                _mm256_storeu_si256(stage.add(at * PITCH).cast(), *row);
            }
        }
    }

    #[inline(always)]
    unsafe fn stream_line(source: *const u8, target: *mut u8) {
        // SAFETY: the caller's promise, and that there is AVX2.
        unsafe { stream(source, target, 64) };
    }

    #[inline(always)]
    fn prefetch(address: *const u8) {
        // SAFETY: SSE is part of x86-64; prefetching never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
}

/// The units of `W` bytes in the low half of each 16 bytes, in turn.
///
/// # Safety
/// There must be AVX2.
#[inline(always)]
unsafe fn interleave_low<const W: usize>(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        match W {
            1 => _mm256_unpacklo_epi8(a, b),
            2 => _mm256_unpacklo_epi16(a, b),
            4 => _mm256_unpacklo_epi32(a, b),
            _ => _mm256_unpacklo_epi64(a, b),
        }
    }
}

/// The same of the high half.
///
/// # Safety
/// There must be AVX2.
#[inline(always)]
unsafe fn interleave_high<const W: usize>(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        match W {
            1 => _mm256_unpackhi_epi8(a, b),
            2 => _mm256_unpackhi_epi16(a, b),
            4 => _mm256_unpackhi_epi32(a, b),
            _ => _mm256_unpackhi_epi64(a, b),
        }
    }
}
