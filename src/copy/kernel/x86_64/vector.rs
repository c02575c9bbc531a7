//! What several loops do with registers of 32 bytes. All of it is inlined into functions that have
//! AVX2, and needs it.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use core::arch::x86_64::{
    __m256i, _mm256_loadu2_m128i, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_stream_si256,
    _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpackhi_epi8,
    _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_unpacklo_epi8,
};

/// Half a vector: what interleavings and shuffles work within.
pub(super) const HALF: usize = 16;
pub(super) const VECTOR: usize = 2 * HALF;

/// 16 bytes of `2 * N` rows, `step` bytes apart (backwards: wrapped): the first `N` rows in the low
/// halves.
///
/// # Safety
/// They must be readable.
#[inline(always)]
pub(super) unsafe fn load_halves<const N: usize>(source: *const u8, step: usize) -> [__m256i; N] {
    // SAFETY: the caller's promise, and that there is AVX2.
    unsafe {
        let mut rows = [_mm256_setzero_si256(); N];
        let (mut low, mut high) = (source, source.wrapping_add(step.wrapping_mul(N)));
        for row in &mut rows {
            *row = _mm256_loadu2_m128i(high.cast(), low.cast());
            low = low.wrapping_add(step);
            high = high.wrapping_add(step);
        }
        rows
    }
}

/// Transposes `N` rows of `N` units, one matrix in each half: row i and row i + N / 2, unit by unit
/// in turn, log2(N) times.
///
/// # Safety
/// There must be AVX2.
#[inline(always)]
pub(super) unsafe fn transposed<const N: usize>(mut rows: [__m256i; N]) -> [__m256i; N] {
    let mut distance = N;
    while distance > 1 {
        let before = rows;
        let (first, second) = before.split_at(N / 2);
        for (pair, (a, b)) in rows.chunks_exact_mut(2).zip(first.iter().zip(second)) {
            // SAFETY: the caller's promise.
            pair.copy_from_slice(&unsafe { interleaved::<N>(*a, *b) });
        }
        distance /= 2;
    }
    rows
}

/// The units of two vectors by turns, `N` in a half: of its low part, of its high part.
///
/// # Safety
/// There must be AVX2.
#[inline(always)]
unsafe fn interleaved<const N: usize>(a: __m256i, b: __m256i) -> [__m256i; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        match N {
            2 => [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)],
            4 => [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)],
            8 => [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)],
            _ => [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)],
        }
    }
}

/// Stores a line, one half right after the other: two stores to one line take the time of one.
///
/// # Safety
/// It must be writable; to go past the caches, `target` must be aligned to it.
#[inline(always)]
pub(super) unsafe fn store_line<const PAST: bool>(target: *mut u8, low: __m256i, high: __m256i) {
    // SAFETY: the caller's promise, and that there is AVX2.
    unsafe {
        if PAST {
            _mm256_stream_si256(target.cast(), low);
            _mm256_stream_si256(target.add(VECTOR).cast(), high);
        } else {
            _mm256_storeu_si256(target.cast(), low);
            _mm256_storeu_si256(target.add(VECTOR).cast(), high);
        }
    }
}
