//! The loops, written once. They are inlined into the functions of each CPU level, where the
//! compiler makes the most of its registers; nothing here names an instruction. Bytes are moved as
//! `MaybeUninit`: elements may be pointers, or have padding.
//!
//! # Safety
//! 1. The CPU must have the features of the function that a loop is inlined into.
//! 2. The source must be readable and the target writable for the bytes; they do not overlap.
//! 3. Of a [`Gather`] everything from the first unit to the end of the last must be readable, what lies
//!    between them included, and the target writable for all; the step must be no less than a unit.
//!    They do not overlap.

use super::combine::LINE;
use super::{CopyBytes, Gather};
use core::mem::MaybeUninit;

/// Copies contiguous bytes; what is rare by a short loop.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn copy<const IS_RARE: bool>(source: *const u8, target: *mut u8, bytes: usize) {
    if bytes <= 128 {
        // SAFETY: 1, 2.
        return unsafe { copy_short(source, target, bytes) };
    }
    // SAFETY: 1, 2; both ends of every move lie within `bytes`.
    unsafe {
        // On to the target's next line: stores across two lines take twice the time.
        chunk::<64>(source, target, 0);
        let mut at = LINE - target as usize % LINE;
        let last = bytes - 128;
        while !IS_RARE && at + 128 < last {
            chunk::<128>(source, target, at);
            chunk::<128>(source, target, at + 128);
            at += 256;
        }
        while at < last {
            chunk::<128>(source, target, at);
            at += 128;
        }
        chunk::<128>(source, target, last);
    }
}

/// The same of up to 128 bytes.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn copy_short(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: 1, 2; both ends of every move lie within `bytes`.
    unsafe {
        match bytes {
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

/// The same, not inlined: for what is rare.
///
/// # Safety
/// 2.
#[inline(never)]
pub(super) unsafe fn copy_rare(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: 2, and no features.
    unsafe { copy::<true>(source, target, bytes) };
}

/// The first and the last `N` bytes, which cover everything up to `2 * N`.
///
/// # Safety
/// 1, 2; `bytes` must be from `N` to `2 * N`.
#[inline(always)]
pub(crate) unsafe fn ends<const N: usize>(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: 1, 2.
    unsafe {
        chunk::<N>(source, target, 0);
        chunk::<N>(source, target, bytes - N);
    }
}

/// `N` bytes at an offset.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(crate) unsafe fn chunk<const N: usize>(source: *const u8, target: *mut u8, at: usize) {
    // SAFETY: 2; no alignment is assumed.
    unsafe {
        let bytes = source.add(at).cast::<[MaybeUninit<u8>; N]>().read();
        target.add(at).cast::<[MaybeUninit<u8>; N]>().write(bytes);
    }
}

/// Gathers units of at most `N` bytes, and more than half as many, `N` at a time: what is too much is
/// overwritten by the next unit. Returns the last unit, where that would go past the end.
///
/// # Safety
/// 1, 3.
#[inline(always)]
pub(super) unsafe fn gather_over<const N: usize>(gather: Gather) -> Gather {
    let Gather { source, step, target, count, unit } = gather;
    let whole = count.saturating_sub(usize::from(unit < N));
    let one = |at: usize| {
        // SAFETY: 1, 3; what is too much is less than a unit, and there is one more.
        unsafe { chunk::<N>(source.wrapping_add(at * step), target.wrapping_add(at * unit), 0) };
    };
    // By hand, for compilers would rather have a second loop for units that lie side by side.
    let fours = whole & !3;
    for at in (0..fours).step_by(4) {
        one(at);
        one(at + 1);
        one(at + 2);
        one(at + 3);
    }
    for at in fours..whole {
        one(at);
    }
    gather.after(whole)
}

/// Gathers units by half lines (32 bytes) from their begin up to `end`, and the last one, which overlaps. Units are
/// alike, so that each takes the branches of the one before.
///
/// # Safety
/// 1, 3; units must be of 32 bytes and more, and `end` be their length less 32, or that rounded up to halves.
#[inline(always)]
pub(super) unsafe fn gather_halves(end: usize, gather: Gather) {
    let Gather { source, step, target, count, unit } = gather;
    for at in 0..count {
        let (from, to) = (source.wrapping_add(at * step), target.wrapping_add(at * unit));
        // SAFETY: 1, 3.
        unsafe {
            for half in (0..end).step_by(32) {
                chunk::<32>(from, to, half);
            }
            chunk::<32>(from, to, unit - 32);
        }
    }
}

/// Gathers units of any size, each by `copy`.
///
/// # Safety
/// 3; that of `copy`.
#[inline(never)]
pub(super) unsafe fn gather_by(copy: CopyBytes, gather: Gather) {
    let Gather { source, step, target, count, unit } = gather;
    for at in 0..count {
        // SAFETY: 1, 3.
        unsafe { copy(source.wrapping_add(at * step), target.wrapping_add(at * unit), unit) };
    }
}

/// Takes rows of two units, `T`, apart. (Compilers know how to.)
///
/// # Safety
/// 2 for the rows, and for each target a unit of each.
#[inline(always)]
unsafe fn pairs_of<T: Copy>(source: *const u8, [even, odd]: [*mut u8; 2], count: usize) {
    let source = source.cast::<[MaybeUninit<T>; 2]>();
    for at in 0..count {
        // SAFETY: 2; no alignment is assumed.
        unsafe {
            let [first, second] = source.add(at).read_unaligned();
            even.cast::<MaybeUninit<T>>().add(at).write_unaligned(first);
            odd.cast::<MaybeUninit<T>>().add(at).write_unaligned(second);
        }
    }
}

/// [`pairs_of`] units of `width` bytes; whether there is a loop for so many.
///
/// # Safety
/// As [`pairs_of`].
pub(super) unsafe fn columns(
    source: *const u8,
    targets: &[*mut u8],
    width: usize,
    count: usize,
) -> bool {
    let &[even, odd] = targets else { return false };
    let targets = [even, odd];
    // SAFETY: as there.
    unsafe {
        match width {
            1 => pairs_of::<u8>(source, targets, count),
            2 => pairs_of::<u16>(source, targets, count),
            4 => pairs_of::<u32>(source, targets, count),
            8 => pairs_of::<u64>(source, targets, count),
            _ => return false,
        }
    }
    true
}
