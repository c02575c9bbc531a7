//! Transposes by registers of 32 bytes.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::super::transpose::{Level, PITCH};
use super::stream;
use super::vector::{load_halves, transposed};
use core::arch::x86_64::{_mm256_storeu_si256, _mm_prefetch, _MM_HINT_T0};

/// A level for CPUs with AVX2.
pub(super) struct Avx2;

impl Level for Avx2 {
    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(source: *const u8, step: usize, stage: *mut u8) {
        // SAFETY: the caller's promise, and that there is AVX2.
        unsafe {
            let rows = transposed(load_halves::<N>(source, step));
            for (at, row) in rows.iter().enumerate() {
                _mm256_storeu_si256(stage.add(at * PITCH).cast(), *row);
            }
        }
    }

    #[inline(always)]
    unsafe fn stream_line(source: *const u8, target: *mut u8) {
        // SAFETY: the caller's promise, and that there is AVX2.
        unsafe { stream(source, target, 64) };
    }

    #[inline(always)]
    fn prefetch(address: *const u8) {
        // SAFETY: SSE is part of x86-64; prefetching never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
}
