//! Write-combining buffers, as those of `combine.rs`, by vectors of this level. By those, on Zen 5, pieces of
//! 1 to 13 bytes past the caches have .76 of the flat copy for .93, three of 24 bytes 1.08 for 1.19.
//!
//! # Safety
//! As `permute.rs`.

use super::super::combine::LINE;
use super::super::vector::Vector;
use super::super::PAGE;
use super::permute::first_bytes;
use core::arch::x86_64::*;

/// Bytes of all buffers.
pub(super) const BUFFERS: usize = 8 << 10;

/// So many buffers less fit in where none lies in two pages: there are no more places where pages meet.
pub(super) const MEETINGS: usize = BUFFERS.div_ceil(PAGE);

/// Whether rows are asked for while lines of short runs go off: of long rows with few bytes of these, too few do. Zen 4,
/// us in 15 to 30 MiB for asked for before: two of 2 bytes in rows of 1,204 2,080, 1,600; but six of 8 in rows of 520
/// 2,520, 3,120, sixteen of 31 in rows of 18,600 5,300, 9,600.
pub(super) fn asks_later(bytes: usize, step: usize) -> bool {
    step <= 1 << 10 || step <= bytes * 64
}

/// Bytes on their way past the caches. It lies in one page, as [`super::permute::Streams`] does.
#[derive(Clone, Copy)]
#[repr(align(32))]
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
    /// rest. As many lines are prefetched from `soon` on, if it is not NULL.
    ///
    /// # Safety
    /// 1, 3; as in `combine.rs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn filled(&mut self, bytes: usize, soon: &mut *const u8) {
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
                if !soon.is_null() {
                    __m512i::prefetch(*soon);
                    *soon = soon.wrapping_add(LINE);
                }
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

#[cfg(test)]
mod tests {
    use super::super::super::combine::{in_page, LINE};
    use super::{BUFFERS, MEETINGS, PAGE};

    #[test]
    fn no_buffer_lies_in_two_pages_and_all_fit() {
        for begin in (PAGE..2 * PAGE).step_by(LINE) {
            for len in 2..=BUFFERS / LINE {
                let bytes = BUFFERS / (len + MEETINGS) / LINE * LINE;
                let mut room = begin as *mut u8;
                for _ in 0..len {
                    let place = in_page(room, bytes) as usize;
                    assert!(place >= room as usize, "{len} from {begin}");
                    assert!(bytes == 0 || place / PAGE == (place + bytes - 1) / PAGE);
                    room = (place + bytes) as *mut u8;
                }
                assert!(room as usize <= begin + BUFFERS, "{len} from {begin}");
            }
        }
    }
}
