//! Deals rows out a line of each target at a time. Which way depends on how many elements 16 bytes
//! of a row have: if there are targets for all, or if they are a power of two, by a network of
//! interleavings; else by shuffles, the bytes of each target out of each vector of the rows.

use super::super::lines::LINE;
use super::super::{Deal, AHEAD};
use super::vector::HALF;
use super::{network, shuffle};
use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};

/// The most lines of each target that are made of one column of targets before the next.
pub(super) const STRIP: usize = 64;

/// Rows that make lines of all targets.
pub(super) struct Strip {
    pub row: usize,
    pub lines: usize,
    pub past: bool,
}

/// Visits all rows: past the caches from the targets' first whole line on, and through them what is
/// left at either end, over what is there already.
fn each_strip(deal: &Deal, len: usize, width: usize, past: bool, mut visit: impl FnMut(Strip)) {
    let rows = LINE / width;
    // About 16 KiB, which stay in the first-level cache for the next column.
    let most = (4 * STRIP / len).min(STRIP);
    let begin = deal.targets.first().map_or(0, |target| *target as usize);
    let mut row = begin.wrapping_neg() % LINE / width;
    if row > 0 {
        visit(Strip { row: 0, lines: 1, past: false });
    }
    while row + rows <= deal.count {
        let lines = ((deal.count - row) / rows).min(most);
        visit(Strip { row, lines, past });
        row += lines * rows;
    }
    if row < deal.count {
        visit(Strip { row: deal.count - rows, lines: 1, past: false });
    }
}

/// Deals elements of `width` bytes out to `len` targets, as many rows as it can, and returns how
/// many those are.
///
/// # Safety
/// As [`super::super::Kernels::deal`]. To go past the caches, the targets must all lie as many
/// whole elements from a line.
pub(in super::super) unsafe fn deal(mut deal: Deal, len: usize, width: usize, past: bool) -> usize {
    let in_half = HALF / width.clamp(1, HALF);
    let fills_row = len * width == deal.step;
    let by_network = len >= in_half || fills_row && len.is_power_of_two();
    let by_shuffles = !by_network && fills_row && len <= shuffle::MOST;
    let is_partial = !by_network && !by_shuffles;
    if is_partial {
        // A half of a row has bytes of what follows: the last rows' would not be there.
        deal.count = deal.count.saturating_sub(HALF.div_ceil(deal.step));
    }
    if deal.count * width < LINE || in_half < 2 || len < 2 || past && is_partial {
        return 0;
    }
    if by_shuffles {
        let masks = shuffle::masks(len, width);
        // SAFETY: the caller's promise, and the checks above.
        let strip = |strip| unsafe { shuffle::strip(&deal, len, width, &masks, &strip) };
        each_strip(&deal, len, width, past, strip);
    } else {
        let columns = if by_network { len.min(in_half) } else { in_half };
        let order = network::order(columns, width);
        // SAFETY: as above.
        let strip = |strip| unsafe { network::strip(&deal, len, width, columns, &order, &strip) };
        each_strip(&deal, len, width, past, strip);
    }
    deal.count
}

/// Asks for the rows that are needed soon.
#[inline]
pub(super) fn ask_ahead(source: *const u8, bytes: usize) {
    let begin = source.wrapping_add(AHEAD);
    for at in (0..bytes).step_by(LINE) {
        // SAFETY: any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(begin.wrapping_add(at).cast()) };
    }
}
