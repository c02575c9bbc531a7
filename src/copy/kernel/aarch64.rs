//! AArch64 NEON: registers of 16 bytes. Contracts by number are those of `vector.rs`.

use super::interleave::InOrder;
use super::level::level;
use super::pick::{buffered, picks, Picks, Register};
use super::vector::{instructions, Vector, LANE};
use super::Kernels;
use core::arch::aarch64::*;
use core::arch::asm;

/// For every AArch64 CPU.
pub(super) static NEON: Kernels = Kernels { picks: Some(&PICKS), ..LOOPS };

const LOOPS: Kernels = level!(
    #[target_feature(enable = "neon")]
    vector: uint8x16_t,
    deinterleave: network::deinterleave,
    interleave: interleave::interleave
);

static PICKS: Picks = picks!(
    #[target_feature(enable = "neon")]
    register: uint8x16_t,
    few: buffered::<uint8x16_t, F>
);

impl Register for uint8x16_t {
    instructions! {
        fn and(self, other: Self) -> Self = vandq_u8(self, other);
        fn shifted(self, by: i8) -> Self = vshlq_u8(self, vdupq_n_s8(-by));
        fn store_lanes(self, target: *mut u8, _: usize) = vst1q_u8(target, self);
    }
}

mod network {
    super::super::level::network!(
        #[target_feature(enable = "neon")]
        vector: core::arch::aarch64::uint8x16_t,
        parts: 2
    );
}

mod interleave {
    super::super::interleave::interleave!(
        #[target_feature(enable = "neon")]
        vector: core::arch::aarch64::uint8x16_t
    );
}

impl InOrder for uint8x16_t {
    /// There is one lane.
    #[inline(always)]
    unsafe fn in_order<const N: usize>(registers: [Self; N]) -> [Self; N] {
        registers
    }
}

impl Vector for uint8x16_t {
    const LANES: usize = 1;

    instructions! {
        fn zero() -> Self = vdupq_n_u8(0);
        fn load(source: *const u8) -> Self = vld1q_u8(source);
        fn load_lanes(source: *const u8, _: usize) -> Self = vld1q_u8(source);
        fn splat(lane: &[u8; LANE]) -> Self = vld1q_u8(lane.as_ptr());
        fn store(self, target: *mut u8) = vst1q_u8(target, self);
        fn shuffled(self, order: Self) -> Self = vqtbl1q_u8(self, order);
        fn or(self, other: Self) -> Self = vorrq_u8(self, other);
    }

    #[inline(always)]
    unsafe fn load_behind(self, have: usize, source: *const u8) -> Self {
        // Numbers from 16 on are those of the second register.
        let mut numbers = [0; LANE];
        for (number, at) in numbers.iter_mut().zip(0u8..) {
            *number = if usize::from(at) < have { at } else { 16 + at };
        }
        // SAFETY: 1, 2.
        unsafe {
            let more = vld1q_u8(source.wrapping_sub(have));
            vqtbl2q_u8(uint8x16x2_t(self, more), vld1q_u8(numbers.as_ptr()))
        }
    }

    /// There is no such store of a single register.
    #[inline(always)]
    unsafe fn stream(self, target: *mut u8) {
        // SAFETY: 1, 2.
        unsafe { vst1q_u8(target, self) };
    }

    /// Past the caches by pairs.
    #[inline(always)]
    unsafe fn put<const P: usize>(parts: [Self; P], target: *mut u8, past: bool) {
        let mut target = target;
        for pair in parts.chunks(2) {
            // SAFETY: 1, 2; the instruction asks for no alignment.
            unsafe {
                match pair {
                    [low, high] if past => asm!(
                        "stnp {low:q}, {high:q}, [{target}]",
                        low = in(vreg) *low,
                        high = in(vreg) *high,
                        target = in(reg) target,
                        options(nostack, preserves_flags),
                    ),
                    [low, high] => {
                        low.store(target);
                        high.store(target.wrapping_add(LANE));
                    }
                    [low] => low.store(target),
                    _ => {}
                }
            }
            target = target.wrapping_add(2 * LANE);
        }
    }

    #[inline(always)]
    unsafe fn interleaved<const N: usize>(self, other: Self) -> [Self; 2] {
        // SAFETY: 1.
        unsafe {
            match N {
                2 => {
                    let (a, b) = (vreinterpretq_u64_u8(self), vreinterpretq_u64_u8(other));
                    [vzip1q_u64(a, b), vzip2q_u64(a, b)].map(|pair| vreinterpretq_u8_u64(pair))
                }
                4 => {
                    let (a, b) = (vreinterpretq_u32_u8(self), vreinterpretq_u32_u8(other));
                    [vzip1q_u32(a, b), vzip2q_u32(a, b)].map(|pair| vreinterpretq_u8_u32(pair))
                }
                8 => {
                    let (a, b) = (vreinterpretq_u16_u8(self), vreinterpretq_u16_u8(other));
                    [vzip1q_u16(a, b), vzip2q_u16(a, b)].map(|pair| vreinterpretq_u8_u16(pair))
                }
                _ => [vzip1q_u8(self, other), vzip2q_u8(self, other)],
            }
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: prefetching never faults.
        unsafe {
            asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags));
        }
    }

    /// Non-temporal pairs are ordered as every other store is.
    #[inline(always)]
    fn fence() {}
}
