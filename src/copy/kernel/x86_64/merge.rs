//! Puts the runs of several pieces one behind the other, past the caches. Lines of output are put
//! together in registers and stored whole; the pieces take turns, so that the input is read in its
//! own order.

use super::super::lines::LINE;
use super::super::{signed, Stream};
use super::stream_asking;
use super::vector::{store_line, VECTOR};
use core::arch::x86_64::{
    __m256i, _mm256_blendv_epi8, _mm256_loadu_si256, _mm_prefetch, _MM_HINT_T0,
};
use core::ptr::from_ref;

/// Of runs of so many bytes, most lines lie within one.
const LONG: usize = 4 * LINE;

/// # Safety
/// As [`super::super::Merge`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn merge(streams: &mut [Stream], turns: usize, ahead: *const u8, turn: usize) {
    for at in 0..turns {
        let mut ahead = ahead.wrapping_add(at * turn);
        for stream in &mut *streams {
            stream.due += stream.turn;
            if stream.unit >= LONG {
                // SAFETY: the caller's promise.
                let bytes = unsafe { long_runs(stream, ahead) };
                ahead = ahead.wrapping_add(bytes);
                continue;
            }
            while stream.due >= signed(LINE) {
                // SAFETY: the caller's promise; any address may be asked for.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                    let (low, high) = (next(stream), next(stream));
                    store_line::<true>(stream.target, low, high);
                }
                ahead = ahead.wrapping_add(LINE);
                stream.target = stream.target.wrapping_add(LINE);
                stream.due -= signed(LINE);
            }
        }
    }
}

/// A turn of a stream of long runs: stores the lines that are due, and asks for as many bytes of
/// input, which it returns.
///
/// # Safety
/// As [`super::super::Merge`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn long_runs(stream: &mut Stream, ahead: *const u8) -> usize {
    let bytes = stream.due.max(0).unsigned_abs() / LINE * LINE;
    let mut at = 0;
    while at < bytes {
        let target = stream.target.wrapping_add(at);
        let ahead = ahead.wrapping_add(at);
        let whole = stream.left.min(bytes - at) / LINE * LINE;
        // SAFETY: the caller's promise; any address may be asked for.
        unsafe {
            if whole == 0 {
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                let (low, high) = (next(stream), next(stream));
                store_line::<true>(target, low, high);
                at += LINE;
                continue;
            }
            stream_asking(stream.source, target, whole, Some(ahead));
        }
        stream.skip(whole);
        at += whole;
    }
    stream.target = stream.target.wrapping_add(bytes);
    stream.due -= signed(bytes);
    bytes
}

impl Stream {
    /// Takes bytes of a run.
    fn skip(&mut self, bytes: usize) {
        self.source = self.source.wrapping_add(bytes);
        self.left -= bytes;
        if self.left == 0 {
            self.source = self.source.wrapping_add(self.gap);
            self.left = self.unit;
        }
    }
}

/// As many ones as a vector has bytes, then as many zeros.
#[repr(C)]
struct Ones([u8; VECTOR], [u8; VECTOR]);
static ONES: Ones = Ones([0xFF; VECTOR], [0; VECTOR]);

/// The next vector of a stream: the rest of a run, and what follows it from the runs after that.
///
/// # Safety
/// The stream must have as many bytes left. Then what a load takes too much of lies between some
/// that are needed, on either side.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn next(stream: &mut Stream) -> __m256i {
    let Stream { mut source, mut left, unit, gap, .. } = *stream;
    // SAFETY: the caller's promise.
    unsafe {
        let mut vector = _mm256_loadu_si256(source.cast());
        let mut have = left;
        while have < VECTOR {
            source = source.wrapping_add(left + gap);
            left = unit;
            let keep = _mm256_loadu_si256(from_ref(&ONES).byte_add(VECTOR - have).cast());
            let more = _mm256_loadu_si256(source.sub(have).cast());
            vector = _mm256_blendv_epi8(more, vector, keep);
            have += unit;
        }
        (stream.source, stream.left) = (source, left);
        stream.skip(left - (have - VECTOR));
        vector
    }
}
