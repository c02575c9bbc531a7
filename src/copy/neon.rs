//! The level of NEON, which every 64-bit Arm CPU has, with registers of one lane.

// What `Vector` requires of callers is said there.
#![allow(unsafe_op_in_unsafe_fn)]

use super::vector::{Vector, LANE_BYTES};
use core::arch::aarch64::*;
use core::arch::asm;

impl Vector for uint8x16_t {
    type Lane = Self;
    const BYTES: usize = LANE_BYTES;
    const WINDOW_BYTES: usize = LANE_BYTES;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        vld1q_u8(source)
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut u8) {
        vst1q_u8(target, self);
    }
    #[inline(always)]
    unsafe fn unpack<const U: usize>(self, other: Self) -> (Self, Self) {
        macro_rules! zip {
            ($from:ident, $low:ident, $high:ident, $to:ident) => {{
                let (a, b) = ($from(self), $from(other));
                ($to($low(a, b)), $to($high(a, b)))
            }};
        }
        match U {
            1 => (vzip1q_u8(self, other), vzip2q_u8(self, other)),
            2 => zip!(vreinterpretq_u16_u8, vzip1q_u16, vzip2q_u16, vreinterpretq_u8_u16),
            4 => zip!(vreinterpretq_u32_u8, vzip1q_u32, vzip2q_u32, vreinterpretq_u8_u32),
            8 => zip!(vreinterpretq_u64_u8, vzip1q_u64, vzip2q_u64, vreinterpretq_u8_u64),
            _ => (self, other),
        }
    }
    #[inline(always)]
    unsafe fn pick(self, index: Self) -> Self {
        vqtbl1q_u8(self, index)
    }
    #[inline(always)]
    unsafe fn pick_more(self, window: Self, index: Self) -> Self {
        vorrq_u8(self, window.pick(index))
    }
    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: every CPU has the instruction, and it reads nothing.
        unsafe {
            asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        }
    }
    #[inline(always)]
    fn prefetch_later(at: *const u8) {
        // SAFETY: as above.
        unsafe {
            asm!("prfm pldl2keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        }
    }
    /// Streams are stores like any others.
    #[inline(always)]
    fn fence() {}
}
