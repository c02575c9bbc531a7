//! Strided copies: units a step apart on both sides, what pieces with strides of their own are made of.
//! Written once, for every level: elements that move one by one gain nothing from wider registers.
//!
//! # Safety
//! 1. Every unit must be readable at its source and writable at its target, which do not overlap.

use super::{generic, Kernels};
use core::mem::MaybeUninit;

/// `count` units of `unit` bytes, each a step from the one before.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub source: *const u8,
    pub source_step: isize,
    pub target: *mut u8,
    pub target_step: isize,
    pub count: usize,
    pub unit: usize,
}

/// Copies a row.
///
/// # Safety
/// Every unit must be readable at its source and writable at its target, which do not overlap.
pub(crate) unsafe fn copy(kernels: &Kernels, row: Row) {
    // SAFETY: the caller's promise.
    unsafe {
        match row.unit {
            1 => elements::<u8>(row),
            2 => elements::<u16>(row),
            4 => elements::<u32>(row),
            8 => elements::<u64>(row),
            16 => elements::<u128>(row),
            3 => ends::<2>(row),
            5..=7 => ends::<4>(row),
            9..=15 => ends::<8>(row),
            17..=32 => ends::<16>(row),
            33..=64 => ends::<32>(row),
            65..=128 => ends::<64>(row),
            _ => runs(kernels, row),
        }
    }
}

/// Units that a register holds.
///
/// # Safety
/// As [`copy`]; `row.unit` must be the size of `T`.
unsafe fn elements<T: Copy>(row: Row) {
    debug_assert_eq!(row.unit, size_of::<T>());
    let (mut source, mut target) = (row.source, row.target);
    for _ in 0..row.count {
        // SAFETY: the caller's promise; no alignment is assumed.
        unsafe {
            let element = source.cast::<MaybeUninit<T>>().read_unaligned();
            target.cast::<MaybeUninit<T>>().write_unaligned(element);
        }
        source = source.wrapping_offset(row.source_step);
        target = target.wrapping_offset(row.target_step);
    }
}

/// Units of `N` to `2 * N` bytes.
///
/// # Safety
/// As [`copy`].
unsafe fn ends<const N: usize>(row: Row) {
    let (mut source, mut target) = (row.source, row.target);
    for _ in 0..row.count {
        // SAFETY: the caller's promise.
        unsafe { generic::ends::<N>(source, target, row.unit) };
        source = source.wrapping_offset(row.source_step);
        target = target.wrapping_offset(row.target_step);
    }
}

/// Units of any size.
///
/// # Safety
/// As [`copy`].
unsafe fn runs(kernels: &Kernels, row: Row) {
    let (mut source, mut target) = (row.source, row.target);
    for _ in 0..row.count {
        // SAFETY: the caller's promise.
        unsafe { (kernels.copy)(source, target, row.unit) };
        source = source.wrapping_offset(row.source_step);
        target = target.wrapping_offset(row.target_step);
    }
}
