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

/// Of as many lines as there are streams, where bytes are in a pair of registers, and in which pair.
struct Pairs {
    indices: [[u8; LINE]; MOST_AT_ONCE],
    pairs: [[u8; LINE]; MOST_AT_ONCE],
}

impl Pairs {
    const NEW: Self = Self { indices: [[0; LINE]; MOST_AT_ONCE], pairs: [[0; LINE]; MOST_AT_ONCE] };

    /// For so many streams, a prime number, of units of so many bytes.
    fn fill(&mut self, len: usize, unit: usize) {
        // Counted, for divisions take their time.
        let (mut register, mut of_register, mut of_unit) = (0u8, 0u8, 0u8);
        let bytes = self.indices.as_flattened_mut().iter_mut().zip(self.pairs.as_flattened_mut());
        for (index, pair) in bytes.take(len * LINE) {
            *index = ((register % 2) << 6) | (of_register + of_unit);
            *pair = register / 2;
            of_unit += 1;
            if usize::from(of_unit) == unit {
                (register, of_unit) = (register + 1, 0);
            }
            if usize::from(register) == len {
                register = 0;
                of_register = of_register.wrapping_add(u8::try_from(unit).unwrap_or(0));
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
        // SAFETY: the caller's promise.
        unsafe {
            for (indices, pairs) in self.pairs.indices.iter().zip(&self.pairs.pairs).take(len) {
                let (indices, mut pairs) = (load(indices), load(pairs));
                let mut line = _mm512_setzero_si512();
                for pair in registers.chunks_exact(2).take(len.div_ceil(2)) {
                    let [a, b] = pair else { continue };
                    let is_here = _mm512_testn_epi8_mask(pairs, pairs);
                    let of_pair = _mm512_maskz_permutex2var_epi8(is_here, *a, indices, *b);
                    line = _mm512_or_si512(line, of_pair);
                    pairs = _mm512_sub_epi8(pairs, _mm512_set1_epi8(1));
                }
                put(line);
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
    let mut pairs = Pairs::NEW;
    if len > 3 {
        pairs.fill(len, unit);
    }
    // SAFETY: the caller's promise.
    unsafe { staged(&OfMany { few: ByPermutes::of(all), pairs: &pairs }, all) };
}

/// The loop for so many streams: there always is one.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn interleave(len: usize, _: usize) -> Option<Loop> {
    Some(match len {
        2 => of::<2>,
        3 => of::<3>,
        4 => of::<4>,
        6 => of::<6>,
        8 => of::<8>,
        16 => of::<16>,
        _ => staged_of,
    })
}
