//! Deals whole rows out by byte shuffles: rows of `N` elements of 1, 2, 4 or 8 bytes and nothing
//! else. `N` vectors of input hold as many whole rows as one vector of each target needs, and where
//! a byte comes from is the same again and again.

use super::super::lines::LINE;
use super::super::{Deal, MAX_DEAL};
use super::deal::{ask_ahead, Strip};
use super::vector::{load_halves, store_line, HALF, VECTOR};
use core::arch::x86_64::{
    _mm256_load_si256, _mm256_or_si256, _mm256_setzero_si256, _mm256_shuffle_epi8,
};

/// Where the bytes of one half come from: in which half of the input, and where in it.
/// An entry with its top bit set makes the byte 0.
#[repr(align(32))]
#[derive(Clone, Copy)]
pub(super) struct Mask([u8; VECTOR]);

/// Of each target from each half.
pub(super) type Masks = [[Mask; MOST]; MOST];

pub(super) fn masks(len: usize, width: usize) -> Masks {
    let mut masks = [[Mask([0x80; VECTOR]); MOST]; MOST];
    for (target, masks) in masks.iter_mut().enumerate().take(len) {
        // Elements of a target are `len` apart in the input, and follow each other in the output.
        let mut from = target * width;
        for element in (0..HALF).step_by(width) {
            for byte in 0..width {
                let place = u8::try_from((from + byte) % HALF).unwrap_or(0);
                if let Some(Mask(mask)) = masks.get_mut((from + byte) / HALF) {
                    for half in mask.chunks_exact_mut(HALF) {
                        if let Some(slot) = half.get_mut(element + byte) {
                            *slot = place;
                        }
                    }
                }
            }
            from += len * width;
        }
    }
    masks
}

/// The most elements of a row: more take more shuffles than there is gain.
pub(super) const MOST: usize = 7;

/// A strip of rows of `len` elements of `width` bytes.
///
/// # Safety
/// As [`super::deal::deal`]; rows have nothing between them.
pub(super) unsafe fn strip(deal: &Deal, len: usize, width: usize, masks: &Masks, strip: &Strip) {
    // Powers of two go another way.
    let lines = match (len, strip.past) {
        (3, false) => lines::<3, false>,
        (5, false) => lines::<5, false>,
        (6, false) => lines::<6, false>,
        (_, false) => lines::<7, false>,
        (3, true) => lines::<3, true>,
        (5, true) => lines::<5, true>,
        (6, true) => lines::<6, true>,
        (_, true) => lines::<7, true>,
    };
    let source = deal.source.wrapping_add(strip.row * deal.step);
    let targets = deal.targets.map(|target| target.wrapping_add(strip.row * width));
    // SAFETY: the caller's promise.
    unsafe { lines(source, &targets, masks, strip.lines) };
}

/// # Safety
/// As [`strip`].
#[target_feature(enable = "avx2")]
unsafe fn lines<const N: usize, const PAST: bool>(
    mut source: *const u8,
    targets: &[*mut u8; MAX_DEAL],
    masks: &Masks,
    lines: usize,
) {
    for at in 0..lines {
        // SAFETY: the caller's promise.
        unsafe {
            if PAST {
                ask_ahead(source, N * LINE);
            }
            let low = load_halves::<N>(source, HALF);
            let high = load_halves::<N>(source.add(N * VECTOR), HALF);
            for (target, masks) in targets.iter().zip(masks).take(N) {
                let (mut first, mut second) = (_mm256_setzero_si256(), _mm256_setzero_si256());
                for ((low, high), mask) in low.iter().zip(&high).zip(masks) {
                    let mask = _mm256_load_si256(mask.0.as_ptr().cast());
                    first = _mm256_or_si256(first, _mm256_shuffle_epi8(*low, mask));
                    second = _mm256_or_si256(second, _mm256_shuffle_epi8(*high, mask));
                }
                store_line::<PAST>(target.add(at * LINE), first, second);
            }
            source = source.add(N * LINE);
        }
    }
}
