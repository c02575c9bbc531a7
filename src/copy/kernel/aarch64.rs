//! AArch64 NEON: registers of 16 bytes. Contracts by number are those of `vector.rs`.

use super::combine::LINE;
use super::interleave::{InOrder, Loop, Turns};
use super::level::level;
use super::network::by_lines;
use super::pick::{buffered, picks, Picks, Register};
use super::stream::prefetch;
use super::vector::{instructions, Vector, LANE};
use super::{Deinterleave, Kernels, NextBlock};
use crate::math::div;
use core::arch::aarch64::*;
use core::arch::asm;
use core::ptr::null_mut;
use core::slice::from_ref;

/// For every AArch64 CPU.
pub(super) static NEON: Kernels = Kernels { picks: Some(&PICKS), ..LOOPS };

const LOOPS: Kernels = level!(
    #[target_feature(enable = "neon")]
    vector: uint8x16_t,
    deinterleave: deinterleave,
    interleave: interleave
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
        vector: core::arch::aarch64::uint8x16_t
    );
}

mod interleave {
    super::super::interleave::interleave!(
        #[target_feature(enable = "neon")]
        vector: core::arch::aarch64::uint8x16_t
    );
}

/// Does something for so many registers of units of so many bytes, with the last of the registers, the one four later,
/// and what instructions call their lanes. The intrinsics ask for units at their own alignment, which callers need not
/// give.
macro_rules! by_turns {
    ($each:ident $units:expr, $width:expr, $other:expr) => {
        match ($units, $width) {
            (2, 1) => $each!(2, 1, "v1", "v5", "16b"),
            (2, 2) => $each!(2, 2, "v1", "v5", "8h"),
            (2, 4) => $each!(2, 4, "v1", "v5", "4s"),
            (2, 8) => $each!(2, 8, "v1", "v5", "2d"),
            (3, 1) => $each!(3, 1, "v2", "v6", "16b"),
            (3, 2) => $each!(3, 2, "v2", "v6", "8h"),
            (3, 4) => $each!(3, 4, "v2", "v6", "4s"),
            (3, 8) => $each!(3, 8, "v2", "v6", "2d"),
            (4, 1) => $each!(4, 1, "v3", "v7", "16b"),
            (4, 2) => $each!(4, 2, "v3", "v7", "8h"),
            (4, 4) => $each!(4, 4, "v3", "v7", "4s"),
            (4, 8) => $each!(4, 8, "v3", "v7", "2d"),
            _ => $other,
        }
    };
}

/// How some lines of the first so many columns are made, past the caches or not.
type Lines = unsafe fn(&Deinterleave, usize, usize, bool);

fn lines_of(units: usize, width: usize) -> Option<Lines> {
    macro_rules! each {
        ($units:literal, $width:literal, $($other:literal),*) => {
            lines::<$units, $width>
        };
    }
    Some(by_turns!(each units, width, return None))
}

fn interleave(len: usize, unit: usize) -> Option<Loop> {
    macro_rules! each {
        ($units:literal, $width:literal, $($other:literal),*) => {
            put_together::<$units, $width>
        };
    }
    Some(by_turns!(each len, unit, return interleave::interleave(len, unit)))
}

/// Two registers of each of `N` columns of units of `W` bytes that lie in memory by turns.
///
/// # Safety
/// 1, 2.
#[inline(always)]
unsafe fn load_apart<const N: usize, const W: usize>(source: *const u8) -> [[uint8x16_t; 2]; 4] {
    macro_rules! each {
        ($units:literal, $width:literal, $last:literal, $later:literal, $lanes:literal) => {{
            let (a, b, c, d): (uint8x16_t, uint8x16_t, uint8x16_t, uint8x16_t);
            let (e, f, g, h): (uint8x16_t, uint8x16_t, uint8x16_t, uint8x16_t);
            asm!(
                concat!("ld", $units, " {{v0.", $lanes, "-", $last, ".", $lanes, "}}, [{low}]"),
                concat!("ld", $units, " {{v4.", $lanes, "-", $later, ".", $lanes, "}}, [{high}]"),
                low = in(reg) source,
                high = in(reg) source.wrapping_add(N * LANE),
                out("v0") a,
                out("v1") b,
                out("v2") c,
                out("v3") d,
                out("v4") e,
                out("v5") f,
                out("v6") g,
                out("v7") h,
                options(readonly, nostack, preserves_flags),
            );
            [[a, e], [b, f], [c, g], [d, h]]
        }};
    }
    // SAFETY: the caller's promise.
    unsafe { by_turns!(each N, W, [[uint8x16_t::zero(); 2]; 4]) }
}

/// Stores a register of each of `N` streams, units of `W` bytes by turns.
///
/// # Safety
/// 1, 2.
#[inline(always)]
unsafe fn store_together<const N: usize, const W: usize>(
    [a, b, c, d]: [uint8x16_t; 4],
    target: *mut u8,
) {
    macro_rules! each {
        ($units:literal, $width:literal, $last:literal, $later:literal, $lanes:literal) => {
            asm!(
                concat!("st", $units, " {{v0.", $lanes, "-", $last, ".", $lanes, "}}, [{target}]"),
                target = in(reg) target,
                in("v0") a,
                in("v1") b,
                in("v2") c,
                in("v3") d,
                options(nostack, preserves_flags),
            )
        };
    }
    // SAFETY: the caller's promise.
    unsafe { by_turns!(each N, W, {}) }
}

/// Rows of two to four units, as many as there are columns or more, by loads that take them apart; others by the network.
///
/// # Safety
/// That of `network.rs`.
unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    next: &mut NextBlock<'_>,
) {
    let units = (len..=4).find(|units| units * width == block.step);
    let Some((units, lines)) = units.zip(units.and_then(|units| lines_of(units, width))) else {
        // SAFETY: the caller's promise.
        return unsafe { network::deinterleave(block, len, width, past, next) };
    };
    let rows = div(LINE, width);
    loop {
        // Of the last row, only the columns are there.
        let readable = (block.count + block.after).saturating_sub(usize::from(units > len));
        let mut done = block.count.min(readable);
        if done < rows || (past && !block.is_alike(len, width)) {
            done = 0;
        } else {
            by_lines(block, (done, rows), width, past, |row, count, past| {
                let mut some = *block;
                some.skip(row, width);
                // SAFETY: the caller's promise.
                unsafe { lines(&some, len, count, past) }
            });
        }
        if !next(block, done) {
            break;
        }
    }
}

/// Some lines of the first `len` columns of rows of `N` units of `W` bytes.
///
/// # Safety
/// As [`deinterleave`].
#[target_feature(enable = "neon")]
unsafe fn lines<const N: usize, const W: usize>(
    rows_of: &Deinterleave,
    len: usize,
    count: usize,
    past: bool,
) {
    let mut source = rows_of.source;
    let mut targets = [null_mut(); N];
    for (slot, target) in targets.iter_mut().zip(rows_of.targets) {
        *slot = target;
    }
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..count * LINE).step_by(2 * LANE) {
            if past {
                prefetch::<uint8x16_t>(source.wrapping_add(rows_of.prefetch), N * 2 * LANE);
            }
            let columns = load_apart::<N, W>(source);
            for (number, (column, target)) in columns.into_iter().zip(targets).enumerate() {
                if number < len {
                    Vector::put(column, target.add(at), past);
                }
            }
            source = source.add(N * 2 * LANE);
        }
    }
}

/// Interleaves `N` streams of units of `W` bytes by stores that do so; past the caches, where there are no such, by
/// shuffles.
///
/// # Safety
/// That of [`Loop`].
#[target_feature(enable = "neon")]
unsafe fn put_together<const N: usize, const W: usize>(all: &[Turns]) {
    let shuffles = interleave::interleave(N, W);
    for turns in all {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(shuffles) = shuffles.filter(|_| turns.past.is_some()) {
                shuffles(from_ref(turns));
                continue;
            }
            let (count, mut course) = turns.course::<uint8x16_t>();
            for _ in 0..count {
                let mut registers = [uint8x16_t::zero(); 4];
                for (slot, source) in registers.iter_mut().zip(turns.sources).take(N) {
                    *slot = uint8x16_t::load(source.wrapping_add(course.at));
                }
                store_together::<N, W>(registers, course.target);
                turns.go_on::<uint8x16_t>(&mut course, N);
            }
        }
    }
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
