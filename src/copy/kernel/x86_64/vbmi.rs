//! AVX-512 VBMI: the loops of AVX-512; equal short runs by byte permutes; runs of a line and more row
//! by row; and the same again with long runs by string instructions.

use super::super::row_major::{self, Loop, Loops, RowRun};
use super::super::{Deinterleave, Gather, Kernels, NextBlock};
use super::{avx2, avx512, permute};
use core::arch::asm;
use core::arch::x86_64::__m512i;

/// For CPUs with AVX-512 F, BW, VL and VBMI, and only for those.
pub(in super::super) static VBMI: Kernels = TABLE;

/// The same, for CPUs with quick string instructions.
pub(in super::super) static VBMI_STRINGS: Kernels = Kernels {
    copy: copy_string,
    gather_any: gather_strings,
    row_major: Some(row_major_strings),
    ..TABLE
};

const TABLE: Kernels = Kernels {
    deinterleave_lines: Some(deinterleave),
    longest: permute::LONGEST,
    permutes: permute::fits,
    row_major: Some(row_major),
    ..avx512::TABLE
};

/// By permutes, or else by the network.
///
/// # Safety
/// As both.
unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    next: &mut NextBlock<'_>,
) {
    let stores = if past { VBMI.non_temporal.as_ref() } else { None };
    // SAFETY: the caller's promise.
    unsafe {
        if !permute::deinterleave(block, len, width, stores, next) {
            avx2::network::deinterleave(block, len, width, past, next);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn lines<const K: usize, const N: usize>(runs: &mut [RowRun], step: usize, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { row_major::lines::<__m512i, 1, K, N>(runs, step, count) };
}

const fn up_to_4<const K: usize>() -> [Loop; 4] {
    [lines::<K, 1>, lines::<K, 2>, lines::<K, 3>, lines::<K, 4>]
}

static LOOPS: Loops = [
    up_to_4::<1>(),
    up_to_4::<2>(),
    up_to_4::<3>(),
    up_to_4::<4>(),
    up_to_4::<5>(),
    up_to_4::<6>(),
    up_to_4::<7>(),
    up_to_4::<8>(),
];

/// # Safety
/// As [`row_major::row_major`].
unsafe fn row_major(runs: &mut [RowRun], step: usize, count: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { row_major::row_major(&LOOPS, VBMI.copy, runs, step, count) }
}

/// # Safety
/// As [`row_major::row_major`].
unsafe fn row_major_strings(runs: &mut [RowRun], step: usize, count: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { row_major::row_major(&LOOPS, copy_string, runs, step, count) }
}

/// Runs of so many bytes go by one instruction. Zen 5, row by row, share of the flat copy: 8 KiB .94 to
/// 1.00 for .82 to .89 by a loop, 16 KiB and more .97 to 1.05.
const LEAST_STRING: usize = 8 << 10;

/// Copies contiguous bytes, long ones by `rep movsb`.
///
/// # Safety
/// As [`Kernels::copy`].
unsafe fn copy_string(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; the direction flag is clear, as calls have it.
    unsafe {
        if bytes < LEAST_STRING {
            return (VBMI.copy)(source, target, bytes);
        }
        asm!(
            "rep movsb",
            inout("rsi") source => _,
            inout("rdi") target => _,
            inout("rcx") bytes => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Gathers units of any size.
///
/// # Safety
/// As [`Kernels::gather`].
unsafe fn gather_strings(gather: Gather) {
    let Gather { source, step, target, count, unit } = gather;
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            copy_string(source.wrapping_add(at * step), target.wrapping_add(at * unit), unit);
        };
    }
}
