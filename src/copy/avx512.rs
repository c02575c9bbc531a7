//! The level of AVX-512 with VBMI: its registers are lines, and a pick chooses any of their bytes.

// What `Vector` requires of callers is said there.
#![allow(unsafe_op_in_unsafe_fn)]

use super::avx2::unpack;
use super::vector::{Vector, LANE_BYTES};
use core::arch::x86_64::*;

impl Vector for __m512i {
    type Lane = __m128i;
    const BYTES: usize = 4 * LANE_BYTES;
    const WINDOW_BYTES: usize = 4 * LANE_BYTES;
    const PICKS_FROM_TWO: bool = true;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        _mm512_loadu_si512(source.cast())
    }
    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, step: isize) -> Self {
        let lane = |number: isize| {
            let lane = _mm_loadu_si128(source.wrapping_offset(number.wrapping_mul(step)).cast());
            _mm512_broadcast_i32x4(lane)
        };
        let first = _mm512_castsi128_si512(_mm_loadu_si128(source.cast()));
        let two = _mm512_mask_blend_epi64(0x0C, first, lane(1));
        let three = _mm512_mask_blend_epi64(0x30, two, lane(2));
        _mm512_mask_blend_epi64(0xC0, three, lane(3))
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut u8) {
        _mm512_storeu_si512(target.cast(), self);
    }
    #[inline(always)]
    unsafe fn stream(self, target: *mut u8) {
        _mm512_stream_si512(target.cast(), self);
    }
    #[inline(always)]
    unsafe fn stream_seam(tail: *const u8, rest: usize, head: *const u8, target: *mut u8) {
        // Nothing is read that the masks leave out.
        let of_tail = (1 << rest) - 1;
        let line = _mm512_maskz_loadu_epi8(of_tail, tail.cast());
        let head = head.wrapping_sub(rest);
        _mm512_mask_loadu_epi8(line, !of_tail, head.cast()).stream(target);
    }
    #[inline(always)]
    unsafe fn unpack<const U: usize>(self, other: Self) -> (Self, Self) {
        unpack!(U, self, other,
            1: _mm512_unpacklo_epi8, _mm512_unpackhi_epi8;
            2: _mm512_unpacklo_epi16, _mm512_unpackhi_epi16;
            4: _mm512_unpacklo_epi32, _mm512_unpackhi_epi32;
            8: _mm512_unpacklo_epi64, _mm512_unpackhi_epi64;)
    }
    #[inline(always)]
    unsafe fn transpose_lanes([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let low = [_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d)];
        let high = [_mm512_shuffle_i32x4::<0xEE>(a, b), _mm512_shuffle_i32x4::<0xEE>(c, d)];
        [
            _mm512_shuffle_i32x4::<0x88>(low[0], low[1]),
            _mm512_shuffle_i32x4::<0xDD>(low[0], low[1]),
            _mm512_shuffle_i32x4::<0x88>(high[0], high[1]),
            _mm512_shuffle_i32x4::<0xDD>(high[0], high[1]),
        ]
    }
    #[inline(always)]
    unsafe fn pick(self, index: Self) -> Self {
        _mm512_permutexvar_epi8(index, self)
    }
    #[inline(always)]
    unsafe fn pick_two(self, window: Self, [_, index]: [Self; 2]) -> Self {
        _mm512_permutex2var_epi8(self, index, window)
    }
    #[inline(always)]
    unsafe fn pick_more(self, window: Self, index: Self) -> Self {
        self.pick_two(window, [index; 2])
    }
}

/// Half a line, from which dwords, of 4 bytes, are picked. CPUs that handle lines as two halves do so twice as fast, and
/// windows that begin anywhere lie across two lines half as often.
#[derive(Clone, Copy)]
pub(super) struct Dwords(__m256i);

impl Vector for Dwords {
    type Lane = __m128i;
    const BYTES: usize = 2 * LANE_BYTES;
    const WINDOW_BYTES: usize = 2 * LANE_BYTES;
    const PICKS_FROM_TWO: bool = true;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        Self(_mm256_loadu_si256(source.cast()))
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut u8) {
        _mm256_storeu_si256(target.cast(), self.0);
    }
    #[inline(always)]
    unsafe fn pick_two(self, window: Self, [_, index]: [Self; 2]) -> Self {
        Self(_mm256_permutex2var_epi32(self.0, index.0, window.0))
    }
    #[inline(always)]
    unsafe fn pick_more(self, window: Self, index: Self) -> Self {
        self.pick_two(window, [index; 2])
    }
}
