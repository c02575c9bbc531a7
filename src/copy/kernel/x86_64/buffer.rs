//! Write-combining buffers, as those of `combine.rs`, by vectors of this level. By those, on Zen 5, pieces of
//! 1 to 13 bytes past the caches have .76 of the flat copy for .93, three of 24 bytes 1.08 for 1.19.
//!
//! # Safety
//! As `permute.rs`.

use super::super::combine::LINE;
use super::permute::first_bytes;
use core::arch::x86_64::*;

/// Bytes of all buffers.
pub(super) const BUFFERS: usize = 8 << 10;

/// Bytes on their way past the caches.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    /// Begins a line, as what it goes to does.
    scratch: *mut u8,
    line: *mut u8,
    /// Bytes on scratch, and how many of the first line are not ours.
    fill: usize,
    foreign: usize,
}

impl Buffer {
    pub(super) const NONE: Self =
        Self { scratch: core::ptr::null_mut(), line: core::ptr::null_mut(), fill: 0, foreign: 0 };

    pub(super) fn new(target: *mut u8, scratch: *mut u8) -> Self {
        let foreign = target as usize % LINE;
        Self { scratch, line: target.wrapping_sub(foreign), fill: foreign, foreign }
    }

    pub(super) fn room(&self) -> *mut u8 {
        self.scratch.wrapping_add(self.fill)
    }

    /// So many bytes have been put where there was room: sends the whole lines off, and carries the
    /// rest.
    ///
    /// # Safety
    /// 1, 3; as in `combine.rs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn filled(&mut self, bytes: usize) {
        self.fill += bytes;
        let whole = self.fill / LINE * LINE;
        let mut at = 0;
        // SAFETY: the caller's promise.
        unsafe {
            if self.foreign > 0 && whole > 0 {
                self.store_first(LINE);
                at = LINE;
            }
            while at < whole {
                let line = _mm512_loadu_epi8(self.scratch.add(at).cast());
                _mm512_stream_si512(self.line.add(at).cast(), line);
                at += LINE;
            }
            let rest = _mm512_loadu_epi8(self.scratch.add(whole).cast());
            _mm512_storeu_epi8(self.scratch.cast(), rest);
        }
        self.line = self.line.wrapping_add(whole);
        self.fill -= whole;
    }

    /// Stores what is ours of the first line, up to a byte.
    ///
    /// # Safety
    /// As [`Buffer::filled`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn store_first(&mut self, end: usize) {
        let ours = first_bytes(end) & !first_bytes(self.foreign);
        self.foreign = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let line = _mm512_loadu_epi8(self.scratch.cast_const().cast());
            _mm512_mask_storeu_epi8(self.line.cast(), ours, line);
        }
    }

    /// Stores what is left.
    ///
    /// # Safety
    /// As [`Buffer::filled`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn finish(&mut self) {
        // SAFETY: as above.
        unsafe { self.store_first(self.fill) };
    }
}
