//! AVX2: registers of 32 bytes. Contracts by number are those of `vector.rs`.

use super::super::interleave::InOrder;
use super::super::level::level;
use super::super::pick::{buffered, picks, Picks, Register};
use super::super::strided::{self, Block};
use super::super::vector::{instructions, Vector, LANE};
use super::super::{generic, Gather, Kernels};
use crate::math::signed;
use core::arch::asm;
use core::arch::x86_64::*;
use core::ptr::from_ref;

/// For CPUs with AVX2 and BMI2 (which shifts by any number of bits in one step), and only for those.
pub(in super::super) static AVX2: Kernels = TABLE;

pub(super) const TABLE: Kernels = Kernels {
    // Zen 4 by AVX2, us for loops of both ends, which overlap: 3,693 of 35 bytes and of 2 4.1 for 5.0, four of 35 2.9
    // for 3.6.
    gather: {
        let [one, two, four, eight, lane, half, ..] = *LOOPS.gather;
        &[one, two, four, eight, lane, half, by_units, by_units, by_units, by_units, by_units]
    },
    gather_any,
    units: Some(units),
    repeat,
    picks: Some(&PICKS),
    picks_upwards: true,
    ..LOOPS
};

const LOOPS: Kernels = level!(
    #[target_feature(enable = "avx2,bmi2")]
    vector: __m256i,
    deinterleave: network::deinterleave,
    interleave: interleave::interleave
);

/// Instructions that copy through a register: half a line, a lane or a word.
macro_rules! moved {
    (half $at:literal) => {
        moved!("vmovups", "{half}", $at)
    };
    (lane $at:literal) => {
        moved!("vmovups", "{half:x}", $at)
    };
    (word $at:literal) => {
        moved!("mov", "{word}", $at)
    };
    ($how:literal, $register:literal, $at:literal) => {
        concat!(
            $how,
            " ",
            $register,
            ", [{source} + ",
            $at,
            "]\n",
            $how,
            " [{target} + ",
            $at,
            "], ",
            $register
        )
    };
}

/// Does something with the moves of a unit of 33 to 128 bytes: how long the last one is, and all of them.
macro_rules! by_halves {
    ($each:ident, $bytes:expr) => {
        match $bytes {
            ..=40 => $each!(8: half "0", word "{last}"),
            41..=48 => $each!(16: half "0", lane "{last}"),
            49..=64 => $each!(32: half "0", half "{last}"),
            65..=80 => $each!(16: half "0", half "32", lane "{last}"),
            81..=96 => $each!(32: half "0", half "32", half "{last}"),
            97..=112 => $each!(16: half "0", half "32", half "64", lane "{last}"),
            _ => $each!(32: half "0", half "32", half "64", half "{last}"),
        }
    };
}
#[cfg(feature = "avx512")]
pub(super) use {by_halves, moved};

/// Copies units of 9 to 128 bytes one by one, without a call for each: by halves of lines, and a tail, which overlaps
/// the last one by as little as may be. Zen 4, 43,511 of 72 bytes, 84 apart in the output, 82 us for 112.
///
/// # Safety
/// That of [`super::super::CopyUnits`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn units(
    source: *const u8,
    source_step: isize,
    target: *mut u8,
    target_step: isize,
    count: usize,
    unit: usize,
) {
    if count == 0 {
        return;
    }
    // A loop lies in one line of instructions, or two, which no compiler promises: Zen 4, 20 % slower else.
    macro_rules! each {
        ($tail:literal: $($register:ident $at:literal),*) => {
            asm!(
                ".p2align 5",
                "2:",
                $(moved!($register $at),)*
                "add {source}, {source_step}",
                "add {target}, {target_step}",
                "dec {count}",
                "jnz 2b",
                "/* {last} {word} {half} */",
                source = inout(reg) source => _,
                source_step = in(reg) source_step,
                target = inout(reg) target => _,
                target_step = in(reg) target_step,
                count = inout(reg) count => _,
                last = in(reg) unit - $tail,
                word = out(reg) _,
                half = out(ymm_reg) _,
                options(nostack),
            )
        };
    }
    // SAFETY: the caller's promise.
    unsafe {
        match unit {
            ..=15 => each!(8: word "0", word "{last}"),
            16..=24 => each!(8: lane "0", word "{last}"),
            25..=31 => each!(16: lane "0", lane "{last}"),
            32 => each!(0: half "0"),
            _ => by_halves!(each, unit),
        }
        _mm256_zeroupper();
    }
}

/// # Safety
/// 1, 3 of `generic.rs`; units must be of 9 to 128 bytes, and the CPU must have AVX2.
unsafe fn by_units(gather: Gather) {
    let Gather { source, step, target, count, unit } = gather;
    // SAFETY: the caller's promise.
    unsafe { units(source, signed(step), target, signed(unit), count, unit) };
}

/// The longest units that have no call each. Zen 4, us for one each, two of 150 bytes 7.0 for 9.8, of 200 9.7 for 11.4,
/// of 250 5.8 for 6.4, of 350 8.1 for 8.3, of 500 11.6 for 11.4.
const LONGEST: usize = 384;

/// Gathers units of 129 bytes and more.
///
/// # Safety
/// 1, 3 of `generic.rs`; the CPU must have AVX2, and units must be of 32 bytes and more.
#[target_feature(enable = "avx2")]
unsafe fn gather_any(gather: Gather) {
    // SAFETY: the caller's promise.
    unsafe {
        if gather.unit <= LONGEST {
            generic::gather_halves(gather.unit - 32, gather);
        } else {
            (LOOPS.gather_any)(gather);
        }
    }
}

/// Fills rows by registers of half a line. Zen 4, GB/s on lines and off, 7 MB 100, 75, by 16 bytes 58, past the caches 28.
///
/// # Safety
/// That of [`strided::repeat`]; the CPU must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn repeat(source: *const u8, target: *mut u8, block: &Block, _: &Kernels) {
    let half = |[low, high]: [u64; 2]| {
        _mm256_set_epi64x(
            high.cast_signed(),
            low.cast_signed(),
            high.cast_signed(),
            low.cast_signed(),
        )
    };
    // SAFETY: the caller's promise.
    unsafe { strided::repeat_by(source, target, block, half) };
}

static PICKS: Picks = picks!(
    #[target_feature(enable = "avx2")]
    register: __m256i,
    few: buffered::<__m256i, F>
);

impl Register for __m256i {
    instructions! {
        fn and(self, other: Self) -> Self = _mm256_and_si256(self, other);
    }

    #[inline(always)]
    unsafe fn shifted(self, by: i8) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            match by {
                6 => _mm256_srli_epi16::<6>(self),
                4 => _mm256_srli_epi16::<4>(self),
                2 => _mm256_srli_epi16::<2>(self),
                -2 => _mm256_slli_epi16::<2>(self),
                -4 => _mm256_slli_epi16::<4>(self),
                -6 => _mm256_slli_epi16::<6>(self),
                _ => self,
            }
        }
    }

    #[inline(always)]
    unsafe fn store_lanes(self, target: *mut u8, apart: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            _mm_storeu_si128(target.cast(), _mm256_castsi256_si128(self));
            let second = target.wrapping_add(apart);
            _mm_storeu_si128(second.cast(), _mm256_extracti128_si256::<1>(self));
        }
    }
}

pub(super) mod network {
    super::super::super::level::network!(
        #[target_feature(enable = "avx2")]
        vector: core::arch::x86_64::__m256i
    );
}

pub(super) mod interleave {
    super::super::super::interleave::interleave!(
        #[target_feature(enable = "avx2")]
        vector: core::arch::x86_64::__m256i
    );
}

/// As many ones as a vector has bytes, then as many zeros.
#[repr(C)]
struct Ones([u8; 32], [u8; 32]);
static ONES: Ones = Ones([0xFF; 32], [0; 32]);

impl Vector for __m256i {
    const LANES: usize = 2;

    instructions! {
        fn zero() -> Self = _mm256_setzero_si256();
        fn load(source: *const u8) -> Self = _mm256_loadu_si256(source.cast());
        fn load_lanes(source: *const u8, apart: usize) -> Self =
            _mm256_loadu2_m128i(source.wrapping_add(apart).cast(), source.cast());
        fn splat(lane: &[u8; LANE]) -> Self =
            _mm256_broadcastsi128_si256(_mm_loadu_si128(lane.as_ptr().cast()));
        fn store(self, target: *mut u8) = _mm256_storeu_si256(target.cast(), self);
        fn stream(self, target: *mut u8) = _mm256_stream_si256(target.cast(), self);
        fn shuffled(self, order: Self) -> Self = _mm256_shuffle_epi8(self, order);
        fn or(self, other: Self) -> Self = _mm256_or_si256(self, other);
    }

    #[inline(always)]
    unsafe fn load_behind(self, have: usize, source: *const u8) -> Self {
        // SAFETY: 1, 2; ones, or zeros, are there for every number below 32.
        unsafe {
            let keep = _mm256_loadu_si256(from_ref(&ONES).byte_add(32 - have).cast());
            let more = _mm256_loadu_si256(source.wrapping_sub(have).cast());
            _mm256_blendv_epi8(more, self, keep)
        }
    }

    #[inline(always)]
    unsafe fn interleaved<const N: usize>(self, other: Self) -> [Self; 2] {
        let (a, b) = (self, other);
        // SAFETY: 1.
        unsafe {
            match N {
                2 => [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)],
                4 => [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)],
                8 => [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)],
                _ => [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)],
            }
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: SSE is part of x86-64; prefetching never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }
}

impl InOrder for __m256i {
    #[inline(always)]
    unsafe fn in_order<const N: usize>(registers: [Self; N]) -> [Self; N] {
        let mut ordered = registers;
        let lanes = || {
            registers
                .iter()
                .map(|register| (register, 0))
                .chain(registers.iter().map(|register| (register, 1)))
        };
        for (slot, at) in ordered.iter_mut().zip((0..).step_by(2)) {
            let (Some((low, low_lane)), Some((high, high_lane))) =
                (lanes().nth(at), lanes().nth(at + 1))
            else {
                continue;
            };
            // SAFETY: 1.
            *slot = unsafe {
                match (low_lane, high_lane) {
                    (0, 0) => _mm256_permute2x128_si256::<0x20>(*low, *high),
                    (0, _) => _mm256_permute2x128_si256::<0x30>(*low, *high),
                    _ => _mm256_permute2x128_si256::<0x31>(*low, *high),
                }
            };
        }
        ordered
    }
}
