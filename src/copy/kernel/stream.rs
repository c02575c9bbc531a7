//! Flat copies past the caches: non-temporal stores of whole lines.
//!
//! The trick: a line is loaded before the one before it is stored. Where the source lies a line ahead
//! of the target within its page, CPUs take the load for one of what is being stored, and let it wait.
//!
//! # Safety
//! 1. The CPU must have the features of the vectors.
//! 2. The source must be readable and the target writable for `bytes`, whole lines; they do not overlap.
//! 3. The target must be aligned to a line, and a fence must follow the last store.

use super::combine::LINE;
use super::opaque::opaque;
use super::vector::Vector;

/// Copies whole lines past the caches, `P` vectors to a line, and prefetches as many from a place on,
/// which may be any.
///
/// # Safety
/// 1, 2, 3.
#[inline(always)]
pub(super) unsafe fn stream<V: Vector, const P: usize>(
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    soon: Option<*const u8>,
) {
    if bytes == 0 {
        return;
    }
    // SAFETY: 1, 2, 3; every line lies within `bytes`.
    unsafe {
        let mut line = V::get::<P>(source);
        for at in (0..bytes).step_by(LINE) {
            if let Some(soon) = soon {
                V::prefetch(soon.wrapping_add(at));
            }
            let last = line;
            if at + LINE < bytes {
                line = V::get(source.add(at + LINE));
            }
            V::put(last, target.add(at), true);
        }
    }
}

/// Prefetches bytes, a line at a time; they may be at any address.
#[inline(always)]
pub(super) fn prefetch<V: Vector>(begin: *const u8, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        V::prefetch(begin.wrapping_add(at));
        at = opaque(at + LINE); // written out, it would be 8 KB in all
    }
}
