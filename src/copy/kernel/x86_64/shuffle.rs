//! Deals rows of three elements, and nothing else, out by byte shuffles: three vectors of input hold
//! as many whole rows as one vector of each target needs. The network would load four.

use super::super::lines::LINE;
use super::super::{Deal, AHEAD};
use super::ask;
use super::vector::{load_halves, store_line, HALF, VECTOR};
use core::arch::x86_64::{
    _mm256_load_si256, _mm256_or_si256, _mm256_setzero_si256, _mm256_shuffle_epi8,
};

/// Where the bytes of one half come from: in which half of the input, and where in it.
/// An entry with its top bit set makes the byte 0.
#[repr(align(32))]
#[derive(Clone, Copy)]
struct Mask([u8; VECTOR]);

/// Of each target from each half.
pub(super) struct Masks([[Mask; 3]; 3]);

impl Masks {
    /// For elements of 1, 2 or 4 bytes.
    pub(super) fn new(width: usize) -> Self {
        let mut masks = [[Mask([0x80; VECTOR]); 3]; 3];
        for (target, masks) in masks.iter_mut().enumerate() {
            for to in 0..HALF {
                // Elements of a target are three apart in the input.
                let from = (to / width * 3 + target) * width + to % width;
                if let Some(Mask(mask)) = masks.get_mut(from / HALF) {
                    for slot in mask.iter_mut().skip(to).step_by(HALF) {
                        *slot = u8::try_from(from % HALF).unwrap_or(0);
                    }
                }
            }
        }
        Self(masks)
    }
}

/// Deals some lines out to each of three targets.
///
/// # Safety
/// As [`super::deal::deal`]; rows have nothing between them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn deal<const PAST: bool>(deal: &Deal, masks: &Masks, lines: usize) {
    let mut source = deal.source;
    for at in 0..lines {
        // SAFETY: the caller's promise.
        unsafe {
            if PAST {
                ask(source.wrapping_add(AHEAD), 3 * LINE);
            }
            let low = load_halves::<3>(source, HALF);
            let high = load_halves::<3>(source.add(3 * VECTOR), HALF);
            for (target, masks) in deal.targets.iter().zip(&masks.0) {
                let (mut first, mut second) = (_mm256_setzero_si256(), _mm256_setzero_si256());
                for ((low, high), mask) in low.iter().zip(&high).zip(masks) {
                    let mask = _mm256_load_si256(mask.0.as_ptr().cast());
                    first = _mm256_or_si256(first, _mm256_shuffle_epi8(*low, mask));
                    second = _mm256_or_si256(second, _mm256_shuffle_epi8(*high, mask));
                }
                store_line::<PAST>(target.add(at * LINE), first, second);
            }
            source = source.add(3 * LINE);
        }
    }
}
