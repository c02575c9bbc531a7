//! Interleaves streams by byte permutes of whole registers: the shuffles of `interleave.rs` need one
//! permute for two registers, and two for three. Other numbers of streams are taken byte by byte from
//! each of them (`any`).
//!
//! # Safety
//! That of `interleave.rs`; the CPU must have AVX-512 F, BW, VL and VBMI.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::super::combine::LINE;
use super::super::interleave::{blocks, origin, Loop, Shuffle, Turns, MAX_INTERLEAVED};
use super::super::vector::Vector;
use crate::math::div_rem;
use core::arch::x86_64::{
    __m512i, _mm512_loadu_epi8, _mm512_mask_permutexvar_epi8, _mm512_permutex2var_epi8,
    _mm512_permutexvar_epi8, _mm512_setzero_si512,
};

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
#[derive(Clone, Copy)]
struct ByPermutes {
    two: [__m512i; 2],
    three: [(__m512i, [u64; 2]); 3],
}

impl Shuffle for ByPermutes {
    type Register = __m512i;

    #[inline(always)]
    unsafe fn new(unit: usize) -> Self {
        let [first, ..] = &INDICES;
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
    unsafe { blocks::<ByPermutes, N>(all) };
}

/// The loop for so many streams.
pub(super) fn interleave(len: usize, _: usize) -> Option<Loop> {
    Some(match len {
        2 => of::<2>,
        3 => of::<3>,
        4 => of::<4>,
        6 => of::<6>,
        8 => of::<8>,
        9 => of::<9>,
        12 => of::<12>,
        16 => of::<16>,
        _ => any,
    })
}

/// A line of rows: which byte of its stream each one is, and which of them are of the streams from
/// `first` on.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    indices: [u8; LINE],
    masks: [u64; MAX_INTERLEAVED],
    first: usize,
}

/// Any number of streams.
///
/// # Safety
/// As [`blocks`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn any(all: &[Turns]) {
    let Some(&Turns { len, unit, .. }) = all.first() else { return };
    let none = Line { indices: [0; LINE], masks: [0; MAX_INTERLEAVED], first: 0 };
    let mut lines = [none; MAX_INTERLEAVED];
    let Some(lines) = lines.get_mut(..len) else { return };
    let (mut stream, mut number) = (0, 0u8);
    let units = div_rem(LINE, unit).0;
    for line in &mut *lines {
        line.first = stream;
        let bytes = line.indices.chunks_exact_mut(unit.max(1));
        for (unit_at, slots) in (0..LINE).step_by(unit.max(1)).zip(bytes) {
            let of_unit = (u64::MAX >> (LINE - unit)) << unit_at;
            let turn = if stream < line.first { stream + len } else { stream } - line.first;
            if let Some(mask) = line.masks.get_mut(turn) {
                *mask |= of_unit;
            }
            for (slot, byte) in slots.iter_mut().zip(0..) {
                *slot = number + byte;
            }
            stream += 1;
            if stream == len {
                (stream, number) = (0, number.wrapping_add(u8::try_from(unit).unwrap_or(0)));
            }
        }
    }
    let most = len.min(units);
    for turns in all {
        // SAFETY: the caller's promise.
        unsafe {
            if turns.past.is_some() {
                any_blocks::<true>(turns, lines, most);
            } else {
                any_blocks::<false>(turns, lines, most);
            }
        }
    }
}

/// # Safety
/// As [`any`]; no line is of more than so many streams.
#[inline(always)]
unsafe fn any_blocks<const PAST: bool>(turns: &Turns, lines: &[Line], most: usize) {
    let ahead = turns.past.unwrap_or(0);
    let (mut target, mut at) = (turns.target, 0);
    for _ in 0..turns.blocks {
        // SAFETY: the caller's promise.
        unsafe {
            // Twice, one behind the other: a line's streams follow each other.
            let mut registers = [_mm512_setzero_si512(); 2 * MAX_INTERLEAVED];
            let (once, again) = registers.split_at_mut_checked(turns.len).unwrap_or_default();
            for ((slot, same), source) in once.iter_mut().zip(again).zip(turns.sources) {
                if PAST {
                    __m512i::prefetch(source.wrapping_add(at + ahead));
                }
                *slot = _mm512_loadu_epi8(source.wrapping_add(at).cast());
                *same = *slot;
            }
            for Line { indices, masks, first } in lines {
                let indices = load(indices);
                let mut line = _mm512_setzero_si512();
                let of_line = registers.iter().skip(*first).zip(masks).take(most);
                for (register, mask) in of_line {
                    line = _mm512_mask_permutexvar_epi8(line, *mask, indices, *register);
                }
                __m512i::put::<1, PAST>([line], target);
                target = target.wrapping_add(LINE);
            }
        }
        at += LINE;
    }
}
