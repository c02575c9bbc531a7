//! The level of AVX2 and BMI2, with registers of two lanes and of one.

// What `Vector` requires of callers is said there.
#![allow(unsafe_op_in_unsafe_fn)]

use super::vector::{Vector, LANE_BYTES};
use core::arch::x86_64::*;

/// Selects the two instructions that unpack units of this size.
macro_rules! unpack {
    ($U:ident, $a:ident, $b:ident, $($bytes:literal: $low:ident, $high:ident;)*) => {
        match $U {
            $($bytes => ($low($a, $b), $high($a, $b)),)*
            _ => ($a, $b),
        }
    };
}
#[cfg(feature = "avx512")]
pub(super) use unpack;

/// One lane. It picks nothing, because what is that short is not worth a program.
impl Vector for __m128i {
    type Lane = Self;
    const BYTES: usize = LANE_BYTES;
    const WINDOW_BYTES: usize = 0;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        _mm_loadu_si128(source.cast())
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut u8) {
        _mm_storeu_si128(target.cast(), self);
    }
    #[inline(always)]
    unsafe fn stream(self, target: *mut u8) {
        _mm_stream_si128(target.cast(), self);
    }
    #[inline(always)]
    unsafe fn unpack<const U: usize>(self, other: Self) -> (Self, Self) {
        unpack!(U, self, other,
            1: _mm_unpacklo_epi8, _mm_unpackhi_epi8;
            2: _mm_unpacklo_epi16, _mm_unpackhi_epi16;
            4: _mm_unpacklo_epi32, _mm_unpackhi_epi32;
            8: _mm_unpacklo_epi64, _mm_unpackhi_epi64;)
    }
    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: every x86-64 CPU has the instruction, and it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[inline(always)]
    fn prefetch_later(at: *const u8) {
        // SAFETY: every x86-64 CPU has the instruction, and it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
    #[inline(always)]
    fn fence() {
        // SAFETY: every x86-64 CPU has the instruction.
        unsafe { _mm_sfence() }
    }
}

impl Vector for __m256i {
    type Lane = __m128i;
    const BYTES: usize = 2 * LANE_BYTES;
    const WINDOW_BYTES: usize = LANE_BYTES;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        _mm256_loadu_si256(source.cast())
    }
    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, step: isize) -> Self {
        let low = _mm256_castsi128_si256(_mm_loadu_si128(source.cast()));
        let high = _mm_loadu_si128(source.wrapping_offset(step).cast());
        _mm256_inserti128_si256::<1>(low, high)
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut u8) {
        _mm256_storeu_si256(target.cast(), self);
    }
    #[inline(always)]
    unsafe fn stream(self, target: *mut u8) {
        _mm256_stream_si256(target.cast(), self);
    }
    #[inline(always)]
    unsafe fn unpack<const U: usize>(self, other: Self) -> (Self, Self) {
        unpack!(U, self, other,
            1: _mm256_unpacklo_epi8, _mm256_unpackhi_epi8;
            2: _mm256_unpacklo_epi16, _mm256_unpackhi_epi16;
            4: _mm256_unpacklo_epi32, _mm256_unpackhi_epi32;
            8: _mm256_unpacklo_epi64, _mm256_unpackhi_epi64;)
    }
    #[inline(always)]
    unsafe fn transpose_lanes([a, b, ..]: [Self; 4]) -> [Self; 4] {
        [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b), a, b]
    }
    #[inline(always)]
    unsafe fn load_window(source: *const u8, [low, high]: [isize; 2]) -> Self {
        Self::load_lanes(source.wrapping_offset(low), high.wrapping_sub(low))
    }
    #[inline(always)]
    unsafe fn put_lanes<const STREAMED: bool>(self, target: *mut u8, step: usize) {
        _mm256_castsi256_si128(self).put::<STREAMED>(target);
        _mm256_extracti128_si256::<1>(self).put::<STREAMED>(target.wrapping_add(step));
    }
    #[inline(always)]
    unsafe fn pick(self, index: Self) -> Self {
        _mm256_shuffle_epi8(self, index)
    }
    #[inline(always)]
    unsafe fn pick_more(self, window: Self, index: Self) -> Self {
        _mm256_or_si256(self, window.pick(index))
    }
}
