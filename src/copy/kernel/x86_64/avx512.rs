//! AVX-512 F, BW and VL: registers of 64 bytes, a line each, and loads and stores under masks.
//! Contracts by number are those of `vector.rs`.

use super::super::combine::LINE;
use super::super::level::level;
use super::super::transpose::{Block, WidthLoops};
use super::super::vector::{instructions, Vector, LANE};
use super::super::Kernels;
use core::arch::x86_64::*;

/// For CPUs with AVX-512 F, BW and VL, and only for those.
pub(in super::super) static AVX512: Kernels = TABLE;

/// What moves 32 bytes at a time is that of AVX2, and so is what few rows are enough for.
pub(super) const TABLE: Kernels = Kernels {
    pack: NARROW.pack,
    units: NARROW.units,
    repeat: NARROW.repeat,
    picks: NARROW.picks,
    gather: NARROW.gather,
    transpose: {
        let [one, two, four, eight, sixteen] = *WIDE.transpose;
        let [_, two_few, four_few, eight_few, sixteen_few] = *NARROW.transpose;
        &[
            WidthLoops { few, ..one },
            WidthLoops { few: two_few.few, ..two },
            WidthLoops { few: four_few.few, ..four },
            WidthLoops { few: eight_few.few, ..eight },
            WidthLoops { few: sixteen_few.few, ..sixteen },
        ]
    },
    ..WIDE
};

use super::avx2::TABLE as NARROW;

/// Bytes of many rows by wide registers. Zen 5, 50,000 × 17 transposed, us: 29.5 for 35, 4,096 × 17 4.9 for 9.0.
///
/// # Safety
/// That of `transpose.rs`.
unsafe fn few(block: &Block<'_>) {
    let [narrow, ..] = NARROW.transpose;
    let [wide, ..] = WIDE.transpose;
    let few = if block.rows >= LINE { wide.few } else { narrow.few };
    // SAFETY: the caller's promise.
    unsafe { few(block) };
}

const WIDE: Kernels = level!(
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    vector: __m512i,
    // By four lanes instead of two it is no faster on Zen 4, and the loops are 65 KB.
    deinterleave: super::avx2::network::deinterleave,
    interleave: super::avx2::interleave::interleave
);

impl Vector for __m512i {
    const LANES: usize = 4;

    instructions! {
        fn zero() -> Self = _mm512_setzero_si512();
        fn load(source: *const u8) -> Self = _mm512_loadu_epi8(source.cast());
        fn splat(lane: &[u8; LANE]) -> Self =
            _mm512_broadcast_i32x4(_mm_loadu_si128(lane.as_ptr().cast()));
        fn store(self, target: *mut u8) = _mm512_storeu_epi8(target.cast(), self);
        fn stream(self, target: *mut u8) = _mm512_stream_si512(target.cast(), self);
        fn shuffled(self, order: Self) -> Self = _mm512_shuffle_epi8(self, order);
        fn or(self, other: Self) -> Self = _mm512_or_si512(self, other);
    }

    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, apart: usize) -> Self {
        // SAFETY: 1, 2.
        unsafe {
            let second = source.wrapping_add(apart);
            let third = second.wrapping_add(apart);
            let lanes = _mm512_castsi128_si512(_mm_loadu_si128(source.cast()));
            let lanes = _mm512_inserti32x4::<1>(lanes, _mm_loadu_si128(second.cast()));
            let lanes = _mm512_inserti32x4::<2>(lanes, _mm_loadu_si128(third.cast()));
            let fourth = third.wrapping_add(apart);
            _mm512_inserti32x4::<3>(lanes, _mm_loadu_si128(fourth.cast()))
        }
    }

    #[inline(always)]
    unsafe fn load_behind(self, have: usize, source: *const u8) -> Self {
        let new = u64::MAX << have;
        // SAFETY: 1, 2.
        unsafe { _mm512_mask_loadu_epi8(self, new, source.wrapping_sub(have).cast()) }
    }

    #[inline(always)]
    unsafe fn interleaved<const N: usize>(self, other: Self) -> [Self; 2] {
        let (a, b) = (self, other);
        // SAFETY: 1.
        unsafe {
            match N {
                2 => [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)],
                4 => [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)],
                8 => [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)],
                _ => [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)],
            }
        }
    }

    #[inline(always)]
    unsafe fn lanes_transposed([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: 1.
        unsafe {
            // Even lanes, and odd ones: once of neighbours, and once of pairs.
            let (even, odd) =
                (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xDD>(a, b));
            let (even_too, odd_too) =
                (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xDD>(c, d));
            [
                _mm512_shuffle_i32x4::<0x88>(even, even_too),
                _mm512_shuffle_i32x4::<0x88>(odd, odd_too),
                _mm512_shuffle_i32x4::<0xDD>(even, even_too),
                _mm512_shuffle_i32x4::<0xDD>(odd, odd_too),
            ]
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        __m256i::prefetch(at);
    }

    #[inline(always)]
    fn prefetch_second(at: *const u8) {
        // SAFETY: SSE is part of x86-64; prefetching never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }

    #[inline(always)]
    fn fence() {
        __m256i::fence();
    }
}
