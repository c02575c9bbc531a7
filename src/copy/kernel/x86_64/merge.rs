//! Puts the runs of several pieces one behind the other, past the caches. Lines of output are put
//! together in registers and stored whole; the pieces take turns, so that the input is read in its
//! own order.

use super::super::lines::LINE;
use super::super::Stream;
use super::vector::{store_line, VECTOR};
use core::arch::x86_64::{
    __m256i, _mm256_blendv_epi8, _mm256_loadu_si256, _mm_prefetch, _MM_HINT_T0,
};
use core::ptr::from_ref;

#[allow(clippy::cast_possible_wrap)] // 64
const LINE_DUE: isize = LINE as isize;

/// # Safety
/// As [`super::super::Merge`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn merge(streams: &mut [Stream], turns: usize, ahead: *const u8, turn: usize) {
    for at in 0..turns {
        let mut ahead = ahead.wrapping_add(at * turn);
        for stream in &mut *streams {
            stream.due += stream.turn;
            while stream.due >= LINE_DUE {
                // SAFETY: the caller's promise; any address may be asked for.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                    let (low, high) = (next(stream), next(stream));
                    store_line::<true>(stream.target, low, high);
                }
                ahead = ahead.wrapping_add(LINE);
                stream.target = stream.target.wrapping_add(LINE);
                stream.due -= LINE_DUE;
            }
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
        stream.left = have - VECTOR;
        stream.source = source.wrapping_add(left - stream.left);
        if stream.left == 0 {
            stream.source = stream.source.wrapping_add(gap);
            stream.left = unit;
        }
        vector
    }
}
