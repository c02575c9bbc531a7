//! The loops, written once. They are inlined into the functions of each CPU level, where the
//! compiler makes the most of its registers; nothing here names an instruction. Bytes are moved as
//! `MaybeUninit`: elements may be pointers, or have padding.

// Inlining is the point: only then do these loops get the registers of the level they go into.
#![allow(clippy::inline_always)]

use super::combine::LINE;
use super::transpose::{by_units, Turns};
use super::Kernels;
use super::{Deinterleave, Gather, COUNTS, MAX_DEINTERLEAVED, WIDTHS};
use crate::math::div_ceil;
use core::mem::MaybeUninit;

/// Copies contiguous bytes.
///
/// # Safety
/// `source` must be readable and `target` writable for `bytes`; they do not overlap.
#[inline(always)]
pub(super) unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: both ends of every move lie within `bytes`.
    unsafe {
        match bytes {
            129.. => {
                // On to the target's next line: stores across two lines take twice the time.
                chunk::<64>(source, target, 0);
                let mut at = LINE - target as usize % LINE;
                let last = bytes - 128;
                while at < last {
                    chunk::<128>(source, target, at);
                    at += 128;
                }
                chunk::<128>(source, target, last);
            }
            65.. => ends::<64>(source, target, bytes),
            33.. => ends::<32>(source, target, bytes),
            16.. => ends::<16>(source, target, bytes),
            8.. => ends::<8>(source, target, bytes),
            4.. => ends::<4>(source, target, bytes),
            2.. => ends::<2>(source, target, bytes),
            1 => target.write(source.read()),
            0 => {}
        }
    }
}

/// The first and the last `N` bytes, which cover everything up to `2 * N`.
///
/// # Safety
/// As [`copy`]; `bytes` must be from `N` to `2 * N`.
#[inline(always)]
pub(super) unsafe fn ends<const N: usize>(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        chunk::<N>(source, target, 0);
        chunk::<N>(source, target, bytes - N);
    }
}

/// `N` bytes in their order, 32 at a time and then what is left: two stores to one line take the
/// time of one.
///
/// # Safety
/// As [`copy`], for `N` bytes.
#[inline(always)]
unsafe fn ascending<const N: usize>(source: *const u8, target: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..N / 32 * 32).step_by(32) {
            chunk::<32>(source, target, at);
        }
        let part = |bytes: usize| (N & bytes > 0).then_some(N / (2 * bytes) * 2 * bytes);
        if let Some(at) = part(16) {
            chunk::<16>(source, target, at);
        }
        if let Some(at) = part(8) {
            chunk::<8>(source, target, at);
        }
        if let Some(at) = part(4) {
            chunk::<4>(source, target, at);
        }
        if let Some(at) = part(2) {
            chunk::<2>(source, target, at);
        }
        if let Some(at) = part(1) {
            chunk::<1>(source, target, at);
        }
    }
}

/// `N` bytes at an offset.
///
/// # Safety
/// They must be readable and writable.
#[inline(always)]
pub(super) unsafe fn chunk<const N: usize>(source: *const u8, target: *mut u8, at: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = source.add(at).cast::<[MaybeUninit<u8>; N]>().read();
        target.add(at).cast::<[MaybeUninit<u8>; N]>().write(bytes);
    }
}

/// Gathers units of at most `N` bytes, `N` at a time: what is too much is overwritten by the next
/// unit. Returns the last units, where that would go past the end.
///
/// # Safety
/// As [`super::Kernels::gather`].
#[inline(always)]
pub(super) unsafe fn gather_over<const N: usize>(gather: Gather) -> Gather {
    let Gather { source, step, target, count, unit } = gather;
    // So many units from the end on there are `N` bytes left.
    let whole = (count + 1).saturating_sub(div_ceil(N, unit));
    for at in 0..whole {
        // SAFETY: the caller's promise; rows are no shorter than units, so sources have as many.
        unsafe { ascending::<N>(source.wrapping_add(at * step), target.add(at * unit)) };
    }
    gather.after(whole)
}

/// The same for units of any size from 32 bytes on: 32 at a time, and what is left up to a multiple
/// of 8. Units are alike, so each takes the branches of the one before.
///
/// # Safety
/// As [`super::Kernels::gather`].
#[inline(always)]
pub(super) unsafe fn gather_parts(gather: Gather) -> Gather {
    let Gather { source, step, target, count, unit } = gather;
    let bytes = unit.next_multiple_of(8);
    let whole = count.saturating_sub(usize::from(bytes > unit));
    for at in 0..whole {
        let (mut from, mut to) = (source.wrapping_add(at * step), target.wrapping_add(at * unit));
        // SAFETY: as above.
        unsafe {
            for _ in 0..bytes / 32 {
                chunk::<32>(from, to, 0);
                (from, to) = (from.add(32), to.add(32));
            }
            if bytes & 16 > 0 {
                chunk::<16>(from, to, 0);
                (from, to) = (from.add(16), to.add(16));
            }
            if bytes & 8 > 0 {
                chunk::<8>(from, to, 0);
            }
        }
    }
    gather.after(whole)
}

/// Gathers units of any size.
///
/// # Safety
/// As [`super::Kernels::gather`].
#[inline(always)]
pub(super) unsafe fn gather_any(gather: Gather) {
    let Gather { source, step, target, count, unit } = gather;
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe { copy(source.wrapping_add(at * step), target.add(at * unit), unit) };
    }
}

/// Deinterleaves the first `N` elements of rows.
///
/// # Safety
/// As [`super::Kernels::deinterleave`].
unsafe fn deinterleave<T: Copy, const N: usize>(rows_of: Deinterleave) {
    let Deinterleave { source, step, targets, count, .. } = rows_of;
    if step == N * size_of::<T>() {
        // The same again with a step that the compiler knows.
        for at in 0..count {
            // SAFETY: as below.
            unsafe { deinterleave_row::<T, N>(source.add(at * N * size_of::<T>()), &targets, at) };
        }
        return;
    }
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe { deinterleave_row::<T, N>(source.add(at * step), &targets, at) };
    }
}

/// # Safety
/// As [`deinterleave`].
#[inline(always)]
unsafe fn deinterleave_row<T: Copy, const N: usize>(
    row: *const u8,
    targets: &[*mut u8; MAX_DEINTERLEAVED],
    at: usize,
) {
    for (place, target) in targets.iter().enumerate().take(N) {
        // SAFETY: the caller's promise; no alignment is assumed.
        unsafe {
            let element = row.add(place * size_of::<T>()).cast::<MaybeUninit<T>>().read_unaligned();
            target.add(at * size_of::<T>()).cast::<MaybeUninit<T>>().write_unaligned(element);
        }
    }
}

/// By width, then by number of targets, for every level: elements that move one by one gain nothing
/// from wider registers.
pub(super) const DEINTERLEAVE: [[unsafe fn(Deinterleave); COUNTS.len()]; WIDTHS.len()] =
    [counts::<u8>(), counts::<u16>(), counts::<u32>(), counts::<u64>(), counts::<u128>()];

const fn counts<T: Copy>() -> [unsafe fn(Deinterleave); COUNTS.len()] {
    [deinterleave::<T, 4>, deinterleave::<T, 3>, deinterleave::<T, 2>, deinterleave::<T, 1>]
}

/// Makes a table of the loops above for a level of CPU features.
macro_rules! table {
    ($(#[$feature:meta])? transpose: $transpose:expr, folds: $folds:expr,
     deinterleave_lines: $lines:expr, interleave: $interleave:expr,
     non_temporal: $non_temporal:expr) => {{
        use $crate::copy::kernel::{
            bits::{self, Packed, Runs}, generic as loops, Gather, Kernels,
        };
        $(#[$feature])?
        unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
            // SAFETY: the caller's promise.
            unsafe { loops::copy(source, target, bytes) };
        }
        $(#[$feature])?
        #[inline(never)]
        unsafe fn gather_any(gather: Gather) {
            // SAFETY: the caller's promise.
            unsafe { loops::gather_any(gather) };
        }
        $(#[$feature])?
        unsafe fn gather_over<const N: usize>(gather: Gather) {
            // SAFETY: the caller's promise.
            unsafe { gather_any(loops::gather_over::<N>(gather)) };
        }
        $(#[$feature])?
        unsafe fn gather_parts(gather: Gather) {
            // SAFETY: the caller's promise.
            unsafe { gather_any(loops::gather_parts(gather)) };
        }
        $(#[$feature])?
        unsafe fn pack(packed: &mut Packed, runs: Runs) {
            // SAFETY: the caller's promise.
            unsafe { bits::pack::<$folds>(packed, runs) };
        }
        $(#[$feature])?
        unsafe fn take<const F: usize>(
            source: *const u8,
            place: usize,
            target: *mut u8,
            bytes: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { bits::take::<F>(source, place, target, bytes) };
        }
        Kernels {
            copy,
            pack,
            take: [take::<2>, take::<4>],
            gather: [
                gather_over::<1>,
                gather_over::<2>,
                gather_over::<4>,
                gather_over::<8>,
                gather_over::<16>,
                gather_over::<20>,
                gather_over::<32>,
                gather_over::<40>,
                gather_over::<48>,
                gather_over::<56>,
                gather_over::<64>,
                gather_over::<72>,
                gather_over::<80>,
                gather_over::<88>,
                gather_over::<96>,
                gather_over::<104>,
                gather_over::<112>,
                gather_over::<120>,
                gather_over::<128>,
                gather_parts,
            ],
            gather_any,
            picks: None,
            deinterleave: loops::DEINTERLEAVE,
            transpose: $transpose,
            longest: 0,
            permutes: |_, _, _| false,
            row_major: None,
            deinterleave_lines: $lines,
            interleave: $interleave,
            non_temporal: $non_temporal,
        }
    }};
}
pub(super) use table;

const fn by_unit<const W: usize>() -> Turns {
    Turns { squares: None, few: by_units::<W> }
}

/// For every CPU: no feature beyond the target's own, no stores past the caches.
pub(super) static KERNELS: Kernels = table!(
    transpose: [by_unit::<1>(), by_unit::<2>(), by_unit::<4>(), by_unit::<8>(), by_unit::<16>()],
    folds: true,
    deinterleave_lines: None,
    interleave: |_, _| None,
    non_temporal: None
);
