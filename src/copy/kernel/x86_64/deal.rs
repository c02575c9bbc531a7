//! Deals rows out a line of each target at a time: which rows, and how 16 bytes of them become the
//! columns that the network transposes. Rows of three elements go by shuffles.

use super::super::lines::LINE;
use super::super::Deal;
use super::vector::{HALF, VECTOR};
use super::{network, shuffle};

/// How 16 bytes of input become columns.
pub(super) struct Tile {
    /// A power of two; the last ones may have no target.
    pub columns: usize,
    /// Whole rows that they are of.
    pub rows: usize,
    /// Where the bytes of each column come from, twice, if they do not lie together as they are.
    pub order: Option<[u8; VECTOR]>,
}

impl Tile {
    fn new(deal: &Deal, len: usize, width: usize) -> Self {
        let in_half = HALF / width;
        let few = len.next_power_of_two().min(in_half);
        let rows = in_half / few;
        if rows == 1 || (rows - 1) * deal.step + len * width > HALF {
            return Self { columns: in_half, rows: 1, order: None };
        }
        let mut order = [0; VECTOR];
        for half in order.chunks_exact_mut(HALF) {
            for (at, slot) in half.iter_mut().enumerate() {
                let (column, row, byte) = (at / width / rows, at / width % rows, at % width);
                let from = row * deal.step + column * width + byte;
                *slot = u8::try_from(from).unwrap_or(0);
            }
        }
        Self { columns: few, rows, order: Some(order) }
    }
}

/// Deals elements of `width` bytes out to `len` targets, as many rows as it can, and returns how
/// many those are.
///
/// # Safety
/// As [`super::super::Kernels::deal`]. To go past the caches, the targets must all lie as many
/// whole elements from a line.
pub(in super::super) unsafe fn deal(deal: Deal, len: usize, width: usize, past: bool) -> usize {
    if len < 2 {
        return 0;
    }
    let tile = Tile::new(&deal, len, width);
    // The last 16 bytes end in the last row that is dealt out, or so many rows after it.
    let used = (tile.rows - 1) * deal.step + ((len - 1) % tile.columns + 1) * width;
    let over = HALF.saturating_sub(used).div_ceil(deal.step);
    let count = deal.count.min((deal.count + deal.after).saturating_sub(over));
    let rows = LINE / width;
    if count < rows {
        return 0;
    }
    let is_three = len == 3 && deal.step == 3 * width && width < 8;
    let masks = is_three.then(|| shuffle::Masks::new(width));
    let deal_out = |row: usize, lines: usize, past: bool| {
        if lines == 0 {
            return;
        }
        let mut some = deal;
        some.skip(row, width);
        // SAFETY: the caller's promise, and the checks above.
        unsafe {
            match (&masks, past) {
                (None, _) => network::deal(some, len, width, &tile, lines, past),
                (Some(masks), false) => shuffle::deal::<false>(&some, masks, lines),
                (Some(masks), true) => shuffle::deal::<true>(&some, masks, lines),
            }
        }
    };
    // Past the caches from the targets' first whole line on, and through them what is left at
    // either end, over what is there already.
    let begin = deal.targets.first().map_or(0, |target| *target as usize);
    let head = begin.wrapping_neg() % LINE / width;
    let lines = count.saturating_sub(head) / rows;
    deal_out(0, usize::from(head > 0), false);
    deal_out(head, lines, past);
    deal_out(count - rows, usize::from(head + lines * rows < count), false);
    count
}
