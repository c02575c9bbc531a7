//! Puts the runs of several pieces one behind the other, past the caches.
//!
//! The idea: lines of output are put together in registers, a load for each run that a vector has part
//! of, and stored whole. The pieces take turns, so that the input is read in its own order.
//!
//! The trick: a load for a run begins as many bytes before it as the vector has already, so that its
//! bytes are in their place at once. What it takes before the run lies in the input too, for a run
//! before it was taken from there.
//!
//! # Safety
//! 1. The CPU must have the features of the vectors.
//! 2. What the streams have due must be writable, and their input readable from the first byte to the
//!    last, what lies between runs included.
//! 3. Targets must be aligned to a line, and a fence must follow the last store.

use super::combine::LINE;
use super::opaque::opaque;
use super::stream::stream;
use super::vector::Vector;
use crate::math::signed;

/// Of runs of so many bytes, most lines lie within one.
const LONG: usize = 4 * LINE;

/// Lets streams take so many turns. Prefetches the input from a place on, which goes ahead by `turn`
/// bytes with each.
///
/// # Safety
/// 1, 2, 3.
#[inline(always)]
pub(super) unsafe fn merge<V: Vector, const P: usize>(
    streams: &mut [Stream],
    turns: usize,
    soon: *const u8,
    turn: usize,
) {
    for at in 0..turns {
        let mut soon = soon.wrapping_add(at * turn);
        for stream in &mut *streams {
            stream.due += stream.turn;
            if stream.unit >= LONG {
                // SAFETY: the caller's promise.
                let bytes = unsafe { long_runs::<V, P>(stream, soon) };
                soon = soon.wrapping_add(bytes);
                continue;
            }
            while stream.due >= signed(LINE) {
                V::prefetch(soon);
                // SAFETY: the caller's promise.
                unsafe { V::put(next_line::<V, P>(stream), stream.target, true) };
                soon = soon.wrapping_add(LINE);
                stream.target = stream.target.wrapping_add(LINE);
                stream.due -= signed(LINE);
            }
        }
    }
}

/// A turn of a stream of long runs: stores the lines that are due, and prefetches as many bytes of
/// input, which it returns.
///
/// # Safety
/// 1, 2, 3.
#[inline(always)]
unsafe fn long_runs<V: Vector, const P: usize>(to: &mut Stream, soon: *const u8) -> usize {
    let bytes = to.due.max(0).unsigned_abs() / LINE * LINE;
    let mut at = 0;
    while at < bytes {
        let target = to.target.wrapping_add(at);
        let soon = soon.wrapping_add(at);
        let whole = to.left.min(bytes - at) / LINE * LINE;
        // SAFETY: the caller's promise.
        unsafe {
            if whole == 0 {
                V::prefetch(soon);
                V::put(next_line::<V, P>(to), target, true);
                at += LINE;
                continue;
            }
            stream::<V, P>(to.source, target, whole, Some(soon));
        }
        to.skip(whole);
        at += whole;
    }
    to.target = to.target.wrapping_add(bytes);
    to.due -= signed(bytes);
    bytes
}

/// A piece on its way past the caches.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    /// The next byte, and how many its run has left, more than none.
    pub source: *const u8,
    pub left: usize,
    /// Bytes of a run, and those between two.
    pub unit: usize,
    pub gap: usize,
    /// The next line, aligned to one.
    pub target: *mut u8,
    /// Bytes of runs in a turn, and those that are due after the turns so far.
    pub turn: isize,
    pub due: isize,
}

impl Stream {
    /// Takes bytes of a run.
    #[inline(always)]
    fn skip(&mut self, bytes: usize) {
        self.source = self.source.wrapping_add(bytes);
        self.left -= bytes;
        if self.left == 0 {
            // A branch, as was chosen on Sapphire Rapids, for later loads would wait for a move under a condition. Zen 4
            // by AVX2, us: two of 13 bytes 121 for 170, 40, 5 and 11 783 for 955, six of 20 427 for 474; but 13 of 48 235
            // for 206.
            self.source = opaque(self.source.wrapping_add(self.gap));
            self.left = self.unit;
        }
    }
}

/// # Safety
/// 1, 2.
#[inline(always)]
unsafe fn next_line<V: Vector, const P: usize>(stream: &mut Stream) -> [V; P] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut line = [V::zero(); P];
        for part in &mut line {
            *part = next(stream);
        }
        line
    }
}

/// The next vector of a stream: the rest of a run, and what follows it from the runs after that.
///
/// # Safety
/// 1, 2; the stream must have as many bytes left. Then what a load takes too much of lies between
/// some that are needed, on either side.
#[inline(always)]
unsafe fn next<V: Vector>(stream: &mut Stream) -> V {
    let Stream { mut source, mut left, unit, gap, .. } = *stream;
    // SAFETY: the caller's promise.
    unsafe {
        let mut vector = V::load(source);
        let mut have = left;
        while have < V::BYTES {
            source = source.wrapping_add(left + gap);
            left = unit;
            vector = vector.load_behind(have, source);
            have += unit;
        }
        (stream.source, stream.left) = (source, left);
        stream.skip(left - (have - V::BYTES));
        vector
    }
}
