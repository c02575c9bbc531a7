//! Elements that share bytes: taken out of them, mixed, and put side by side. Written once and inlined into the
//! functions of each CPU level, as the loops of `generic.rs` are.

// Numbers of bits in a word and of bytes in a buffer fit whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::bits::{byte, ones, shifted};
use super::combine::LINE;
use super::{are_near, generic, PAGE};
use core::ops::Range;

/// Takes the elements at one place, a bit of each byte, of `F` times as many bytes.
///
/// # Safety
/// They must be readable, and the target writable.
#[inline(always)]
pub(super) unsafe fn take<const F: usize>(
    source: *const u8,
    place: usize,
    target: *mut u8,
    bytes: usize,
) {
    for at in 0..bytes {
        // SAFETY: the caller's promise.
        unsafe {
            let from = source.add(at * F);
            let packed = if F == 2 {
                let all = u16::from_le(from.cast::<u16>().read_unaligned()) >> place & 0x0F0F;
                (all | all >> 4).to_le_bytes()[0]
            } else {
                let all = u32::from_le(from.cast::<u32>().read_unaligned()) >> place;
                let all = all & 0x0303_0303;
                let pairs = all | all >> 6;
                (pairs | pairs >> 12).to_le_bytes()[0]
            };
            target.add(at).write(packed);
        }
    }
}

/// Where an element is in each of some bytes: the first of them, and the bit of each.
#[derive(Clone, Copy)]
pub(crate) struct BitPlace {
    pub bytes: *const u8,
    pub bit: usize,
}

/// Mixes the elements of some places, one behind the other in each of so many bytes, whole words.
///
/// # Safety
/// They must be readable, and the target writable.
#[inline(never)] // once in the library
pub(crate) unsafe fn mix(places: &[BitPlace], target: *mut u8, bytes: usize) {
    let whole = bytes - bytes % LINE;
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..whole).step_by(LINE) {
            mix_words::<{ LINE / 8 }>(places, at, target);
        }
        for at in (whole..bytes).step_by(8) {
            mix_words::<1>(places, at, target);
        }
    }
}

/// # Safety
/// As [`mix`], of `N` words.
#[inline(always)]
unsafe fn mix_words<const N: usize>(places: &[BitPlace], at: usize, target: *mut u8) {
    let each = if places.len() == 2 { 4 } else { 2 };
    let mask = u64::MAX / 255 * ones(each);
    let (mut mixed, mut to) = ([0; N], 0);
    for place in places {
        // SAFETY: the caller's promise.
        let words = unsafe { place.bytes.add(at).cast::<[u64; N]>().read_unaligned() };
        for (mixed, word) in mixed.iter_mut().zip(words) {
            *mixed |= (word >> place.bit & mask) << to;
        }
        to += each;
    }
    // SAFETY: as above.
    unsafe { target.add(at).cast::<[u64; N]>().write_unaligned(mixed) };
}

/// Rows of elements that share bytes, of which columns become bytes.
#[derive(Clone, Copy)]
pub(crate) struct SideBySide {
    pub source: *const u8,
    /// Bits from `source` to the first row's first element, which may be negative, and from a row to the next.
    pub begin: i64,
    pub step: i64,
    /// How many rows, and bits of each: up to a line's, by as many as share a byte.
    pub rows: usize,
    pub bits: usize,
}

impl SideBySide {
    /// Some of the rows, and of each `bits` from one on.
    pub(crate) fn some(&self, rows: Range<usize>, bit: usize, bits: usize) -> Self {
        let below = self.step.wrapping_mul(rows.start as i64);
        let begin = self.begin.wrapping_add(below).wrapping_add(bit as i64);
        Self { begin, rows: rows.len(), bits, ..*self }
    }
}

/// Puts each `F` rows together in a line: of the first of each `F` columns a byte each, in `W` words, then of
/// the second, and so on.
///
/// # Safety
/// The rows must be readable, and so many lines writable.
#[inline(always)]
pub(super) unsafe fn join<const F: usize, const W: usize>(rows: &SideBySide, target: *mut u8) {
    let &SideBySide { source, begin, step, bits, .. } = rows;
    let each = 8 / F;
    let mask = u64::MAX / 255 * ones(each as u32);
    // What follows a row may be read up to the last one's end; of rows that are far apart, in its page.
    let end_of = |at: i64| byte(source, at.wrapping_add(bits as i64 + 7)) as usize;
    let last = end_of(begin.wrapping_add(step.wrapping_mul(rows.rows as i64 - 1)).max(begin));
    let is_near = are_near((step / 8) as isize, bits / 8);
    for group in 0..rows.rows / F {
        let mut line = [[0; W]; F];
        for row in 0..F {
            let at = begin.wrapping_add(step.wrapping_mul((group * F + row) as i64));
            let end = if is_near { last } else { last.min(end_of(at).next_multiple_of(PAGE)) };
            // SAFETY: the caller's promise.
            let words: [u64; W] = unsafe { row_words(byte(source, at), at & 7, end) };
            for (place, part) in line.iter_mut().enumerate() {
                for (to, word) in part.iter_mut().zip(words) {
                    *to |= (word >> (place * each) & mask) << (row * each);
                }
            }
        }
        let line = line.map(|part| part.map(u64::to_le));
        let target = target.wrapping_add(group * LINE);
        // SAFETY: as above.
        unsafe { target.cast::<[[u64; W]; F]>().write_unaligned(line) };
    }
}

/// Words from the bit `by` of the first byte on; what is not before `end` is 0.
///
/// # Safety
/// They must be readable up to there.
#[inline(always)]
unsafe fn row_words<const W: usize>(source: *const u8, by: i64, end: usize) -> [u64; W] {
    let left = end - source as usize;
    // SAFETY: the caller's promise.
    let words = unsafe {
        if by == 0 && left >= 8 * W {
            source.cast::<[u64; W]>().read_unaligned()
        } else if left > 8 * W {
            shifted(source, by)
        } else {
            let mut some = [0u64; 9];
            generic::copy_rare(source, some.as_mut_ptr().cast(), left);
            shifted(some.as_ptr().cast(), by)
        }
    };
    words.map(u64::from_le)
}
