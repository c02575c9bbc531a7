//! Units a step apart on both sides: what pieces with strides of their own are made of.

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
pub(crate) type Kernel = unsafe fn(Row);

/// The kernel for rows of `unit` bytes: by element widths, anything else as runs of bytes.
pub(crate) fn choose(unit: usize) -> Kernel {
    match unit {
        1 => elements::<u8>,
        2 => elements::<u16>,
        4 => elements::<u32>,
        8 => elements::<u64>,
        16 => elements::<u128>,
        _ => runs,
    }
}

/// Units that a register holds.
///
/// # Safety
/// As [`Kernel`]; `row.unit` must be the size of `T`.
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

/// Units of any size.
///
/// # Safety
/// As [`Kernel`].
unsafe fn runs(row: Row) {
    let (mut source, mut target) = (row.source, row.target);
    for _ in 0..row.count {
        // SAFETY: the caller's promise.
        unsafe { copy_bytes(source, target, row.unit) };
        source = source.wrapping_offset(row.source_step);
        target = target.wrapping_offset(row.target_step);
    }
}

/// Copies contiguous bytes.
///
/// # Safety
/// `source` must be readable and `target` writable for `bytes`; they do not overlap.
pub(crate) unsafe fn copy_bytes(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { target.copy_from_nonoverlapping(source, bytes) };
}
