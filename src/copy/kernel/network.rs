//! Deinterleaves rows by transposing them in registers.
//!
//! The idea: 16 bytes of as many rows as they have units are a square matrix; interleaving the first
//! half of its rows with the second, unit by unit, log2 times, transposes it. Each register lane holds
//! such a matrix of its own, of the rows that follow, so that a register ends up with consecutive units
//! of one target.
//!
//! The trick for few targets: where a whole number of rows fits into 16 bytes, a shuffle within the
//! lane first puts units of one target together; these count as one wider unit from there on. Rows of
//! three units, and nothing between them, go by shuffles alone (`three.rs`).
//!
//! # Safety
//! 1. The CPU must have the features of the vectors.
//! 2. Every row must be readable up to the next one, and `after` rows more; every target must be
//!    writable for a unit of each row. They do not overlap.
//! 3. A fence must follow the last store past the caches.

use super::combine::LINE;
use super::opaque::opaque;
use super::stream::prefetch;
use super::three::Orders;
use super::vector::{load_rows, transposed, Vector, LANE};
use super::{Deinterleave, NextBlock, WIDTHS};
use crate::math::{div, div_ceil, rem};
use core::mem::MaybeUninit;

/// The most lines of each target that are made of some columns before the next.
const MOST_LINES: usize = 64;

/// How 16 bytes of input become columns.
pub(super) struct Tile {
    /// A power of two; the last ones may be left out.
    columns: usize,
    /// Whole rows that they are of.
    rows: usize,
    /// Where the bytes of each column come from, if they do not lie together as they are.
    order: Option<[u8; LANE]>,
}

impl Tile {
    fn new(rows_of: &Deinterleave, len: usize, width: usize) -> Self {
        let in_lane = div(LANE, width);
        let few = len.next_power_of_two().min(in_lane);
        let rows = div(in_lane, few);
        if rows == 1 || (rows - 1) * rows_of.step + len * width > LANE {
            return Self { columns: in_lane, rows: 1, order: None };
        }
        let mut order = [0; LANE];
        // All of them are powers of two.
        let (of_unit, of_column) = (width.trailing_zeros(), rows.trailing_zeros());
        for (at, slot) in (0..opaque(LANE)).zip(&mut order) {
            let (unit, byte) = (at >> of_unit, at & (width - 1));
            let (column, row) = (unit >> of_column, unit & (rows - 1));
            let from = row * rows_of.step + column * width + byte;
            *slot = u8::try_from(from).unwrap_or(0);
        }
        Self { columns: few, rows, order: Some(order) }
    }
}

/// The loop for up to so many targets, which makes a number of lines of each, through the caches or
/// past them. There it prefetches so many bytes with each line.
pub(super) struct Strip {
    pub most: usize,
    pub run: unsafe fn(&Deinterleave, &Tile, &Size),
}

/// How much a [`Strip`] makes.
pub(super) struct Size {
    /// Targets.
    len: usize,
    /// Lines of each.
    lines: usize,
    /// If past the caches, how much to prefetch with each.
    past: Option<usize>,
}

/// The loops of a level.
pub(super) struct Strips {
    /// For tiles of one column, of two, and so on up to sixteen.
    pub one: [Strip; 3],
    pub two: [Strip; 3],
    pub four: [Strip; 3],
    pub eight: [Strip; 4],
    pub sixteen: [Strip; 3],
    /// For rows of three units, through the caches and past them.
    pub three: [unsafe fn(&Deinterleave, &Orders, usize); 2],
}

impl Strips {
    /// The loops for `len` targets by tiles of so many columns, or for as many of them as there are
    /// loops for.
    fn for_len(&self, columns: usize, len: usize) -> Option<&Strip> {
        let strips: &[Strip] = match columns {
            1 => &self.one,
            2 => &self.two,
            4 => &self.four,
            8 => &self.eight,
            _ => &self.sixteen,
        };
        let strip = strips.iter().find(|strip| strip.most >= len).or(strips.last());
        strip.filter(|_| len > 0)
    }
}

/// Deinterleaves units of `width` bytes, as many rows of each block as it can. Past the caches, none
/// where targets do not all lie as many whole units from a line.
///
/// # Safety
/// 1 for `strips`, 2; 3 if `past`.
pub(super) unsafe fn deinterleave(
    strips: &Strips,
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    next: &mut NextBlock<'_>,
) {
    let tables = Tables::new(block, len, width);
    loop {
        // SAFETY: the caller's promise.
        let done = tables.as_ref().map_or(0, |tables| unsafe {
            deinterleave_block(strips, tables, *block, len, width, past)
        });
        if !next(block, done) {
            break;
        }
    }
}

/// How all blocks are taken apart.
struct Tables {
    tile: Tile,
    /// Of rows of three units and nothing else.
    orders: Option<Orders>,
}

impl Tables {
    fn new(rows_of: &Deinterleave, len: usize, width: usize) -> Option<Self> {
        if len < 2 || !WIDTHS.contains(&width) {
            return None;
        }
        let is_three = len == 3 && rows_of.step == 3 * width && width < 8;
        let orders = is_three.then(|| Orders::new(width));
        Some(Self { tile: Tile::new(rows_of, len, width), orders })
    }
}

/// The rows of one block, as many as it can, and returns how many those are.
///
/// # Safety
/// As [`deinterleave`].
unsafe fn deinterleave_block(
    strips: &Strips,
    tables: &Tables,
    rows_of: Deinterleave,
    len: usize,
    width: usize,
    past: bool,
) -> usize {
    if past && !rows_of.is_alike(len, width) {
        return 0;
    }
    let Tables { tile, orders } = tables;
    // The last 16 bytes end in the last row, or so many rows after it.
    let used = (tile.rows - 1) * rows_of.step + (rem(len - 1, tile.columns) + 1) * width;
    let over = div_ceil(LANE.saturating_sub(used), rows_of.step);
    let count = rows_of.count.min((rows_of.count + rows_of.after).saturating_sub(over));
    let rows = div(LINE, width);
    if count < rows {
        return 0;
    }
    let [three, three_past] = strips.three;
    let lines_from = |row: usize, lines: usize, past: bool| {
        if lines == 0 {
            return;
        }
        let mut some = rows_of;
        some.skip(row, width);
        // SAFETY: the caller's promise, and the checks above.
        unsafe {
            match orders {
                None => all_columns(strips, some, len, width, tile, lines, past),
                Some(orders) if past => three_past(&some, orders, lines),
                Some(orders) => three(&some, orders, lines),
            }
        }
    };
    by_lines(&rows_of, (count, rows), width, past, lines_from);
    count
}

/// Says from which row on to make how many lines, past the caches or not, to make `count` rows, which fill one or more.
#[inline(always)]
pub(super) fn by_lines(
    rows_of: &Deinterleave,
    (count, rows): (usize, usize),
    width: usize,
    past: bool,
    lines_from: impl Fn(usize, usize, bool),
) {
    // Past the caches from the targets' first whole line on, and through them what is left at
    // either end, over what is there already.
    let begin = rows_of.targets.first().map_or(0, |target| *target as usize);
    let head = div(begin.wrapping_neg() % LINE, width);
    let lines = div(count.saturating_sub(head), rows);
    lines_from(0, usize::from(head > 0), false);
    lines_from(head, lines, past);
    lines_from(count - rows, usize::from(head + lines * rows < count), false);
}

/// Makes some lines of each of `len` targets.
///
/// # Safety
/// As [`deinterleave`]; whole tiles must be readable.
unsafe fn all_columns(
    strips: &Strips,
    mut rows_of: Deinterleave,
    len: usize,
    width: usize,
    tile: &Tile,
    mut lines: usize,
    past: bool,
) {
    // About 16 KiB, which stay in the first-level cache for the next columns.
    let most = div(4 * MOST_LINES, len).min(MOST_LINES);
    while lines > 0 {
        let some = lines.min(most);
        let mut first = 0;
        while let Some(strip) = strips.for_len(tile.columns, len - first) {
            let mut group = rows_of;
            group.source = rows_of.source.wrapping_add(first * width);
            for (slot, target) in group.targets.iter_mut().zip(rows_of.targets.iter().skip(first)) {
                *slot = *target;
            }
            let now = strip.most.min(len - first);
            let soon = if first == 0 { div(LINE, width) * rows_of.step } else { 0 };
            let size = Size { len: now, lines: some, past: past.then_some(soon) };
            // SAFETY: the caller's promise.
            unsafe { (strip.run)(&group, tile, &size) };
            first += now;
        }
        rows_of.skip(div(some * LINE, width), width);
        lines -= some;
    }
}

/// Some lines of each of up to `N` targets, and more than `N / 2` of them, by tiles of `E` columns; two
/// vectors of each at a time.
///
/// # Safety
/// As [`deinterleave`].
#[inline(always)]
pub(super) unsafe fn strip<V: Vector, const E: usize, const N: usize>(
    rows_of: &Deinterleave,
    tile: &Tile,
    &Size { len, lines, past }: &Size,
) {
    let step = rows_of.step * tile.rows;
    let mut source = rows_of.source;
    // Aligns the stack to vectors, or else some of those that no register is left for may lie in two lines: Zen 4, then
    // 2.7 times as long past the caches.
    let aligned = MaybeUninit::<V>::uninit();
    if E == LANE {
        opaque((&raw const aligned).cast::<u8>());
    }
    // SAFETY: the caller's promise.
    unsafe {
        for at in 0..lines {
            if let Some(soon) = past {
                prefetch::<V>(source.wrapping_add(rows_of.prefetch), soon);
            }
            for within in (0..LINE).step_by(2 * V::BYTES) {
                for first in (0..N).step_by(E) {
                    if first >= len {
                        break;
                    }
                    let mut tile_at = source.add(first / E * LANE);
                    // No loops: compilers would keep all in memory, and clear that first. Zen 4, 56,888 × 9 bytes by
                    // AVX2, 23 us for 39.
                    let low = columns::<V, E>(tile_at, step, tile.order.as_ref());
                    tile_at = tile_at.wrapping_add(V::LANES * E * step);
                    let high = columns::<V, E>(tile_at, step, tile.order.as_ref());
                    let put = |column: usize| {
                        let target = rows_of.targets.get(first + column);
                        let (Some(low), Some(high), Some(target)) =
                            (low.get(column), high.get(column), target)
                        else {
                            return false;
                        };
                        // `N` is a constant: what lies beyond is not even compiled.
                        if column >= N || first + column >= len {
                            return false;
                        }
                        V::put([*low, *high], target.add(at * LINE + within), past.is_some());
                        true
                    };
                    let four = put(0) && put(1) && put(2) && put(3);
                    let eight = four && put(4) && put(5) && put(6) && put(7);
                    let twelve = eight && put(8) && put(9) && put(10) && put(11);
                    let _all = twelve && put(12) && put(13) && put(14) && put(15);
                }
                source = source.add(2 * V::LANES * E * step);
            }
        }
    }
}

/// A vector of each column.
///
/// # Safety
/// As [`deinterleave`].
#[inline(always)]
unsafe fn columns<V: Vector, const E: usize>(
    source: *const u8,
    step: usize,
    order: Option<&[u8; LANE]>,
) -> [V; E] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut rows = load_rows::<V, E>(source, step);
        // Sixteen columns are bytes as they are.
        if let Some(order) = order.filter(|_| E < LANE) {
            let order = V::splat(order);
            for row in &mut rows {
                *row = row.shuffled(order);
            }
        }
        transposed(rows)
    }
}
