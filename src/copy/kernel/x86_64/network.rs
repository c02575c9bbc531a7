//! Transposes 16 bytes of many rows in registers: interleave the first half of them with the second,
//! and again as often as it takes.

use super::super::lines::LINE;
use super::super::{Deal, AHEAD, MAX_DEAL};
use super::ask;
use super::deal::Tile;
use super::vector::{load_halves, store_line, transposed, HALF, VECTOR};
use core::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_shuffle_epi8};
use core::mem::MaybeUninit;

/// The most lines of each target that are made of some columns before the next.
const MOST_LINES: usize = 64;

/// Deals some lines out to each of `len` targets.
///
/// # Safety
/// As [`super::deal::deal`]; whole tiles must be readable.
pub(super) unsafe fn deal(
    mut deal: Deal,
    len: usize,
    width: usize,
    tile: &Tile,
    mut lines: usize,
    past: bool,
) {
    // Columns without a target go here.
    let mut nowhere = Nowhere([const { MaybeUninit::uninit() }; MOST_LINES * LINE]);
    // About 16 KiB, which stay in the first-level cache for the next columns.
    let most = (4 * MOST_LINES / len).min(MOST_LINES);
    while lines > 0 {
        let some = lines.min(most);
        let mut first = 0;
        while let Some(strip) = strip_for(tile.columns, len - first) {
            let mut group = deal;
            group.source = deal.source.wrapping_add(first * width);
            group.targets = [nowhere.0.as_mut_ptr().cast(); MAX_DEAL];
            let targets = deal.targets.iter().take(len).skip(first);
            for (slot, target) in group.targets.iter_mut().zip(targets).take(strip.len) {
                *slot = *target;
            }
            let ahead = if first == 0 { LINE / width * deal.step } else { 0 };
            let run = if past { strip.past } else { strip.through };
            // SAFETY: the caller's promise.
            unsafe { run(&group, tile, some, ahead) };
            first = len.min(first + strip.len);
        }
        deal.skip(some * LINE / width, width);
        lines -= some;
    }
}

/// Lines that nobody wants.
#[repr(align(64))]
struct Nowhere([MaybeUninit<u8>; MOST_LINES * LINE]);

/// The loops for so many targets, which deal out a number of lines, through the caches or past
/// them. There they ask for so many bytes ahead with each line.
struct Strip {
    len: usize,
    through: unsafe fn(&Deal, &Tile, usize, usize),
    past: unsafe fn(&Deal, &Tile, usize, usize),
}

const fn of<const E: usize, const N: usize>() -> Strip {
    Strip { len: N, through: strip::<E, N, false>, past: strip::<E, N, true> }
}

/// The loops for `len` targets by tiles of so many columns, or for as many of them as there are
/// loops for.
fn strip_for(columns: usize, len: usize) -> Option<&'static Strip> {
    static ONE: [Strip; 4] = [of::<1, 1>(), of::<1, 2>(), of::<1, 3>(), of::<1, 4>()];
    static TWO: [Strip; 4] = [of::<2, 1>(), of::<2, 2>(), of::<2, 3>(), of::<2, 4>()];
    static FOUR: [Strip; 4] = [of::<4, 1>(), of::<4, 2>(), of::<4, 3>(), of::<4, 4>()];
    static EIGHT: [Strip; 8] = [
        of::<8, 1>(),
        of::<8, 2>(),
        of::<8, 3>(),
        of::<8, 4>(),
        of::<8, 5>(),
        of::<8, 6>(),
        of::<8, 7>(),
        of::<8, 8>(),
    ];
    static SIXTEEN: [Strip; 6] = [
        of::<16, 4>(),
        of::<16, 8>(),
        of::<16, 10>(),
        of::<16, 12>(),
        of::<16, 14>(),
        of::<16, 16>(),
    ];
    let strips: &[Strip] = match columns {
        1 => &ONE,
        2 => &TWO,
        4 => &FOUR,
        8 => &EIGHT,
        _ => &SIXTEEN,
    };
    let strip = strips.iter().find(|strip| strip.len >= len).or(strips.last());
    strip.filter(|_| len > 0)
}

/// Some lines of each of `N` targets, by tiles of `E` columns.
///
/// # Safety
/// As [`deal`].
#[target_feature(enable = "avx2")]
unsafe fn strip<const E: usize, const N: usize, const PAST: bool>(
    deal: &Deal,
    tile: &Tile,
    lines: usize,
    ahead: usize,
) {
    let step = deal.step * tile.rows;
    // Rows of nothing else.
    let is_packed = N <= E && 2 * N > E && E < 16 && step == HALF / E * N;
    // SAFETY: the caller's promise.
    unsafe {
        if is_packed {
            // The same with a step that the compiler knows.
            strip_by::<E, N, PAST>(deal, HALF / E * N, tile, lines, ahead);
        } else {
            strip_by::<E, N, PAST>(deal, step, tile, lines, ahead);
        }
    }
}

/// [`strip`] of tiles whose 16 bytes are `step` from the next.
///
/// # Safety
/// As [`deal`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn strip_by<const E: usize, const N: usize, const PAST: bool>(
    deal: &Deal,
    step: usize,
    tile: &Tile,
    lines: usize,
    ahead: usize,
) {
    let mut source = deal.source;
    // SAFETY: the caller's promise.
    unsafe {
        for at in 0..lines {
            if PAST {
                ask(source.wrapping_add(AHEAD), ahead);
            }
            for first in (0..N).step_by(E) {
                let source = source.add(first / E * HALF);
                let low = columns::<E>(source, step, tile.order.as_ref());
                let high = columns::<E>(source.add(2 * E * step), step, tile.order.as_ref());
                let targets = deal.targets.iter().take(N).skip(first);
                for ((target, low), high) in targets.zip(low).zip(high) {
                    store_line::<PAST>(target.add(at * LINE), low, high);
                }
            }
            source = source.add(4 * E * step);
        }
    }
}

/// A vector of each column.
///
/// # Safety
/// As [`deal`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn columns<const E: usize>(
    source: *const u8,
    step: usize,
    order: Option<&[u8; VECTOR]>,
) -> [__m256i; E] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut rows = load_halves::<E>(source, step);
        if let Some(order) = order {
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            for row in &mut rows {
                *row = _mm256_shuffle_epi8(*row, order);
            }
        }
        transposed(rows)
    }
}
