//! Interleaves streams by byte permutes of whole registers: the shuffles of `interleave.rs` need one permute
//! for two registers, and two for three. Other numbers of streams are taken byte by byte from each of them
//! (`any`).
//!
//! # Safety
//! That of `interleave.rs`; the CPU must have AVX-512 F, BW, VL and VBMI.

use super::super::combine::LINE;
use super::super::interleave::{
    blocks, factor, origin, staged, Loop, Shuffle, Turns, MOST_AT_ONCE,
};
use super::super::opaque::opaque;
use super::super::vector::Vector;
use crate::math::div;
use core::arch::x86_64::*;

/// Where the bytes of rows come from.
struct Indices {
    /// Of two registers; those of the second are 64 more.
    two: [[u8; LINE]; 2],
    /// Of three: which byte it is, and which bytes are of the second and the third.
    three: [[u8; LINE]; 3],
    others: [[u64; 2]; 3],
}

/// Of units of 1, 2, 4, 8 and 16 bytes.
static INDICES: [Indices; 5] =
    [Indices::of(1), Indices::of(2), Indices::of(4), Indices::of(8), Indices::of(16)];

impl Indices {
    #[allow(clippy::indexing_slicing)] // done by the compiler
    const fn of(unit: usize) -> Self {
        let mut all = Self { two: [[0; LINE]; 2], three: [[0; LINE]; 3], others: [[0; 2]; 3] };
        let mut byte = 0;
        while byte < 3 * LINE {
            let (line, at) = (byte / LINE, byte % LINE);
            if line < 2 {
                let (register, from) = origin(byte, unit, 2);
                all.two[line][at] = register << 6 | from;
            }
            let (register, from) = origin(byte, unit, 3);
            all.three[line][at] = from;
            if register > 0 {
                all.others[line][register as usize - 1] |= 1 << at;
            }
            byte += 1;
        }
        all
    }
}

/// The same in registers.
struct ByPermutes {
    two: [__m512i; 2],
    three: [(__m512i, [u64; 2]); 3],
}

impl ByPermutes {
    /// For units of as many bytes as those of some streams.
    ///
    /// # Safety
    /// The CPU's features.
    #[inline(always)]
    unsafe fn of(all: &[Turns]) -> Self {
        let [first, ..] = &INDICES;
        let unit = all.first().map_or(1, |turns| turns.unit);
        let indices = INDICES.get(unit.trailing_zeros() as usize).unwrap_or(first);
        // SAFETY: the caller's promise.
        unsafe {
            let mut three = [(_mm512_setzero_si512(), [0; 2]); 3];
            for (slot, (line, others)) in
                three.iter_mut().zip(indices.three.iter().zip(indices.others))
            {
                *slot = (load(line), others);
            }
            let [low, high] = &indices.two;
            Self { two: [load(low), load(high)], three }
        }
    }
}

impl Shuffle for ByPermutes {
    type Register = __m512i;

    #[inline(always)]
    unsafe fn two(&self, [a, b]: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        self.two.map(|indices| unsafe { _mm512_permutex2var_epi8(a, indices, b) })
    }

    #[inline(always)]
    unsafe fn three(&self, [a, b, c]: [__m512i; 3]) -> [__m512i; 3] {
        self.three.map(|(indices, [of_b, of_c])| {
            // SAFETY: the caller's promise.
            unsafe {
                let line = _mm512_permutexvar_epi8(indices, a);
                let line = _mm512_mask_permutexvar_epi8(line, of_b, indices, b);
                _mm512_mask_permutexvar_epi8(line, of_c, indices, c)
            }
        })
    }
}

/// Of as many lines as there are streams, where bytes are in a pair of registers, and which are in which pair.
struct Pairs {
    indices: [[u8; LINE]; MOST_AT_ONCE],
    masks: [[u64; MOST_AT_ONCE / 2]; MOST_AT_ONCE],
}

impl Pairs {
    /// For so many streams, a prime number, of units of so many bytes.
    ///
    /// # Safety
    /// The CPU's features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline(never)] // once in the library
    #[allow(clippy::cast_possible_truncation)] // all of it is less than 1,024, or a byte
    unsafe fn of(len: usize, unit: usize) -> Self {
        let mut all = Self {
            indices: [[0; LINE]; MOST_AT_ONCE],
            masks: [[0; MOST_AT_ONCE / 2]; MOST_AT_ONCE],
        };
        let (shift, inverse) = (unit.trailing_zeros(), div(1 << 16, len) as u32 + 1);
        let lines = all.indices.iter_mut().zip(&mut all.masks).take(len);
        for ((indices, masks), line) in lines.zip(0u16..) {
            let mut pairs = [0; LINE];
            for ((index, pair), byte) in indices.iter_mut().zip(&mut pairs).zip(line * 64..) {
                let number = byte >> shift;
                let row = ((u32::from(number) * inverse) >> 16) as u16;
                let register = number - row * len as u16;
                let from = (row << shift) | (byte & (unit as u16 - 1));
                (*index, *pair) = ((register << 6 | from) as u8 & 0x7F, (register >> 1) as u8);
            }
            for (mask, pair) in masks.iter_mut().zip(0..) {
                // SAFETY: the caller's promise.
                *mask = unsafe { _mm512_cmpeq_epi8_mask(load(&pairs), _mm512_set1_epi8(pair)) };
            }
        }
        all
    }

    /// Puts lines together of so many pairs of registers.
    ///
    /// # Safety
    /// The CPU's features.
    #[inline(always)]
    unsafe fn put(&self, len: usize, registers: &[[__m512i; 2]], mut put: impl FnMut(__m512i)) {
        for (indices, masks) in self.indices.iter().zip(&self.masks).take(len) {
            // SAFETY: the caller's promise.
            unsafe {
                let (indices, mut line) = (load(indices), _mm512_setzero_si512());
                for ([a, b], mask) in registers.iter().zip(masks) {
                    let of_pair = _mm512_permutex2var_epi8(*a, indices, *b);
                    line = _mm512_mask_mov_epi8(line, *mask, of_pair);
                }
                put(line);
            }
        }
    }
}

/// The same, and more registers pair by pair.
struct OfMany<'a> {
    few: ByPermutes,
    pairs: &'a Pairs,
}

impl Shuffle for OfMany<'_> {
    type Register = __m512i;

    #[inline(always)]
    unsafe fn two(&self, registers: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { self.few.two(registers) }
    }

    #[inline(always)]
    unsafe fn three(&self, registers: [__m512i; 3]) -> [__m512i; 3] {
        // SAFETY: the caller's promise.
        unsafe { self.few.three(registers) }
    }

    #[inline(always)]
    unsafe fn many(
        &self,
        len: usize,
        registers: &[__m512i; MOST_AT_ONCE],
        mut put: impl FnMut(__m512i),
    ) {
        let (pairs, _) = registers.as_chunks::<2>();
        let pairs = pairs.get(..len.div_ceil(2)).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { self.pairs.put(len, pairs, &mut put) };
    }
}

/// All blocks of five streams: as `staged` does it, but that registers stay where they are.
///
/// # Safety
/// As [`blocks`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn five(all: &[Turns]) {
    const LEN: usize = 5;
    let Some(&Turns { unit, .. }) = all.first() else { return };
    // SAFETY: the caller's promise.
    unsafe {
        let pairs = Pairs::of(LEN, unit);
        for turns in all {
            let &Turns { mut sources, past, .. } = turns;
            // Of the last pair there is but one.
            let [_, _, _, _, last, none, ..] = &mut sources;
            *none = *last;
            let (times, mut course) = turns.course::<__m512i>();
            for _ in 0..times {
                let at = course.at;
                let mut registers = [[_mm512_setzero_si512(); 2]; LEN.div_ceil(2)];
                let (two, _) = sources.as_chunks::<2>();
                for (pair, sources) in registers.iter_mut().zip(two) {
                    *pair = sources.map(|source| __m512i::load(source.wrapping_add(at)));
                }
                if let Some(ahead) = past {
                    for source in sources.iter().take(LEN) {
                        __m512i::prefetch(source.wrapping_add(at.wrapping_add(ahead)));
                    }
                }
                let mut target = course.target;
                pairs.put(opaque(LEN), &registers, |line| {
                    __m512i::put([line], target, past.is_some());
                    target = target.wrapping_add(LINE);
                });
                turns.go_on::<__m512i>(&mut course, LEN);
            }
        }
    }
}

/// # Safety
/// The CPU's features.
#[inline(always)]
unsafe fn load(line: &[u8; LINE]) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_epi8(line.as_ptr().cast()) }
}

/// # Safety
/// As [`blocks`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn of<const N: usize>(all: &[Turns]) {
    // SAFETY: the caller's promise.
    unsafe { blocks::<_, N>(&ByPermutes::of(all), all) };
}

/// # Safety
/// As [`staged`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn staged_of(all: &[Turns]) {
    let Some(&Turns { mut len, unit, .. }) = all.first() else { return };
    while factor(len) < len {
        len = div(len, factor(len));
    }
    // SAFETY: the caller's promise.
    unsafe {
        let pairs = Pairs::of(if len > 3 { len } else { 0 }, unit);
        staged(&OfMany { few: ByPermutes::of(all), pairs: &pairs }, all);
    }
}

/// The loop for so many streams: there always is one.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn interleave(len: usize, _: usize) -> Option<Loop> {
    Some(match len {
        2 => of::<2>,
        3 => of::<3>,
        4 => of::<4>,
        5 => five,
        6 => of::<6>,
        8 => of::<8>,
        16 => of::<16>,
        _ => staged_of,
    })
}
