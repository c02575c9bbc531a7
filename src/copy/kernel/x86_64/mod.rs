//! AVX2: the generic loops with registers of 32 bytes, and stores that go past the caches.

use super::bits::{self, Packed, Runs};
use super::generic::{self, table};
use super::lines::LINE;
use super::transpose::Transpose;
use super::{Gather, Kernels, Past};
use core::arch::x86_64::{_mm256_loadu_si256, _mm_prefetch, _mm_sfence, _MM_HINT_T0};
use vector::{store_line, VECTOR};

mod deal;
mod merge;
mod network;
mod shuffle;
mod transpose;
mod vector;

/// Whether this CPU has what [`AVX2`] needs.
pub(super) fn is_detected() -> bool {
    // BMI2 has come with AVX2 ever since; it shifts by any number of bits in one step.
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi2")
}

/// For CPUs with AVX2 and BMI2, and only for those.
pub(super) static AVX2: Kernels = table!(
    #[target_feature(enable = "avx2,bmi2")]
    level: transpose::Avx2,
    deal_lines: Some(deal::deal),
    past: Some(Past {
        stream,
        ask,
        fence: || {
            // SAFETY: SSE is part of x86-64.
            unsafe { _mm_sfence() };
        },
        merge: merge::merge,
    })
);

/// Asks for bytes, a line at a time.
fn ask(begin: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(LINE) {
        // SAFETY: SSE is part of x86-64; prefetching never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(begin.wrapping_add(at).cast()) };
    }
}

/// Copies whole lines past the caches.
///
/// # Safety
/// As [`stream_asking`].
#[target_feature(enable = "avx2")]
unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { stream_asking(source, target, bytes, None) };
}

/// Copies whole lines past the caches, and asks for as many from a place on.
///
/// # Safety
/// `source` must be readable and `target` writable for `bytes`, a multiple of 64; `target` is
/// aligned to 64. Any address may be asked for.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn stream_asking(
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    ahead: Option<*const u8>,
) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let vector = |at: usize| _mm256_loadu_si256(source.add(at).cast());
        let (mut low, mut high) = (vector(0), vector(VECTOR));
        for at in (0..bytes).step_by(LINE) {
            if let Some(ahead) = ahead {
                _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(at).cast());
            }
            let (last_low, last_high) = (low, high);
            // Before the store: where that lies a line ahead within its page, CPUs take the load
            // for one of what is stored, and let it wait.
            if at + LINE < bytes {
                (low, high) = (vector(at + LINE), vector(at + LINE + VECTOR));
            }
            store_line::<true>(target.add(at), last_low, last_high);
        }
    }
}
