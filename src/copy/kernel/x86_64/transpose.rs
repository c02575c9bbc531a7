//! Transposes by registers of 32 bytes.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::super::transpose::{Level, PITCH};
use super::stream;
use super::vector::{load_halves, transposed};
use core::arch::asm;
use core::arch::x86_64::{_mm256_storeu_si256, _mm_prefetch, _MM_HINT_T1};

/// A level for CPUs with AVX2.
pub(super) struct Avx2;

impl Level for Avx2 {
    #[inline(always)]
    unsafe fn turn<const W: usize, const N: usize>(source: *const u8, step: usize, stage: *mut u8) {
        let mut step = step;
        // SAFETY: the caller's promise, and that there is AVX2.
        unsafe {
            // Or compilers keep a pointer to each row of each tile, most of them in memory.
            asm!("/* {step} */", step = inout(reg) step, options(nomem, nostack, preserves_flags));
            let rows = transposed(load_halves::<N>(source, step));
            for (at, row) in rows.iter().enumerate() {
                _mm256_storeu_si256(stage.add(at * PITCH).cast(), *row);
            }
        }
    }

    #[inline(always)]
    unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise, and that there is AVX2.
        unsafe { stream(source, target, bytes) };
    }

    #[inline(always)]
    fn ask(source: *const u8, step: usize, rows: usize) {
        let mut line = source;
        for _ in 0..rows {
            // SAFETY: SSE is part of x86-64; prefetching never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) };
            line = line.wrapping_add(step);
        }
    }
}
