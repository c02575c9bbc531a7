//! How pieces are moved one after the other, in rounds: a round has a range of the bytes of every piece, so that the
//! lines of the input that pieces share are still in the caches when the next piece needs them. Tasks take ranges of the
//! bytes of all pieces, and divide them into rounds of their own.
//!
//! ```text
//! bytes of piece 0     |=====|=====|=====|=====|
//! bytes of piece 1     |=|=|=|=|                       the first round moves the first part of each piece
//! bytes of piece 2     |===|===|===|===|
//! ```
//!
//! A part of a piece is cut into boxes: the rest of a step of its outermost axis, whole steps, and the first part of one.

use super::bits;
use super::call::{Call, Scratch};
use super::joined::{joined, Joined};
use super::machine_constants::{LEAST_ROUND_BYTES, MANY_ROWS};
use super::nest::Nest;
use super::parallel::Ranges;
use super::piece::{Choice, Mover, Way};
use crate::math::{div, div_rem};
use crate::parts::Transfer;
use crate::shape::usize_of;
use core::ops::Range;

/// Moves ranges of the bytes of all pieces, of whole bytes.
///
/// # Safety
/// The pieces must be readable and writable; concurrent calls must have other ranges.
pub(super) unsafe fn move_ranges(
    transfer: &Transfer<'_>,
    call: &Call,
    round: usize,
    ranges: Ranges<'_>,
) {
    let task = |scratch: &mut Scratch<'_>| {
        for range in ranges {
            in_rounds(transfer, range, round, &mut |piece, bytes| {
                // SAFETY: these bytes are some of the range.
                unsafe { move_some(transfer, piece, call, scratch, bytes) };
            });
        }
    };
    // SAFETY: the targets belong to the pieces.
    unsafe { Scratch::lend(call, task) };
}

/// Packs ranges of the bytes of all pieces, of sub-byte elements.
///
/// # Safety
/// As for [`move_ranges`].
pub(super) unsafe fn pack_ranges(
    transfer: &Transfer<'_>,
    call: &Call,
    round: usize,
    ranges: Ranges<'_>,
) {
    for range in ranges {
        in_rounds(transfer, range, round, &mut |piece, bytes| {
            // SAFETY: these bytes are some of the range.
            unsafe { bits::pack_piece(transfer, &piece.part, call, bytes) };
        });
    }
}

/// Calls `visit` for each piece with the range of its bytes that belongs to a range of the bytes of all, in rounds.
fn in_rounds(
    transfer: &Transfer<'_>,
    range: Range<usize>,
    round: usize,
    visit: &mut dyn FnMut(&Joined, Range<usize>),
) {
    debug_assert!(range.end <= transfer.bytes && round > 0);
    let mut start = range.start;
    while start < range.end {
        let end =
            if range.end - start < round.saturating_mul(2) { range.end } else { start + round };
        for piece in joined(transfer) {
            let own = usize_of(transfer.geometry.output_bytes(piece.part.len));
            let place = |at: usize| place_in(own, at, transfer.bytes);
            let (begin, end) = (place(start), place(end));
            debug_assert!(begin <= end && end <= own, "bytes {begin}..{end} of {own}");
            if begin < end {
                visit(&piece, begin..end);
            }
        }
        start = end;
    }
}

/// Returns how many of a piece's own bytes come before a place in the bytes of all pieces: its share of them.
#[allow(clippy::cast_possible_truncation)] // no more than the bytes of a piece
fn place_in(own: usize, at: usize, all: usize) -> usize {
    let product = own as u128 * at as u128;
    product.checked_div(all as u128).unwrap_or(0) as usize
}

/// Returns how many bytes of all pieces a round has. Rounds are short because pieces may share lines of the input,
/// which are then still in the caches; but a transpose is best done in one round.
pub(super) fn round_bytes(transfer: &Transfer<'_>, call: &Call) -> usize {
    let mut pieces = joined(transfer);
    let (Some(first), Some(_)) = (pieces.next(), pieces.next()) else { return usize::MAX };
    let nest = if transfer.geometry.dtype.is_sub_byte() {
        Nest::in_elements(transfer, &first.part)
    } else {
        Nest::in_bytes(transfer, &first.part, first.step)
    };
    let unit = nest.unit.cast_signed();
    if nest.axes().iter().any(|axis| axis.from == unit) {
        return usize::MAX;
    }
    let least = transfer.parts.count().saturating_mul(LEAST_ROUND_BYTES);
    call.machine.second_bytes.max(least) / 2
}

/// Steps of a piece's outermost axis, and of the second one, if that is cut, too.
struct Box {
    first: Range<usize>,
    second: Option<Range<usize>>,
}

/// The boxes of a range of a piece's bytes: the rest of a step of the outermost axis, whole steps, and the first part of
/// one.
struct Boxes {
    /// The combined steps of the two axes, or of the outermost one, that are left.
    steps: Range<usize>,
    /// The extent of the second axis, if it is cut.
    second: Option<usize>,
}

impl Boxes {
    /// Returns the boxes of a piece that has axes, with the steps that begin within the range. What is moved as a whole
    /// is not cut.
    fn of(nest: &Nest, way: &Way<'_>, range: &Range<usize>) -> Self {
        let first = nest.axes().first().map_or(1, |axis| axis.extent);
        let can_cut_second = first < MANY_ROWS && nest.axes().len() > way.whole_axes();
        let second = if can_cut_second { nest.axes().get(1).map(|axis| axis.extent) } else { None };
        let step = div(nest.total(), first * second.unwrap_or(1)).max(1);
        Self { steps: range.start.div_ceil(step)..range.end.div_ceil(step), second }
    }
}

impl Iterator for Boxes {
    type Item = Box;

    fn next(&mut self) -> Option<Box> {
        let Range { start, end } = self.steps;
        if start >= end {
            return None;
        }
        let Some(inner) = self.second else {
            self.steps.start = end;
            return Some(Box { first: start..end, second: None });
        };
        let (outer, within) = div_rem(start, inner);
        let whole = div(end - start, inner);
        if within == 0 && whole > 0 {
            self.steps.start += whole * inner;
            return Some(Box { first: outer..outer + whole, second: Some(0..inner) });
        }
        let some = (inner - within).min(end - start);
        self.steps.start += some;
        Some(Box { first: outer..outer + 1, second: Some(within..within + some) })
    }
}

/// Moves a range of a piece's bytes: the steps of its outer axes that begin within it.
///
/// # Safety
/// As for [`move_ranges`].
unsafe fn move_some(
    transfer: &Transfer<'_>,
    piece: &Joined,
    call: &Call,
    scratch: &mut Scratch<'_>,
    range: Range<usize>,
) {
    let Scratch { slot, stages } = scratch;
    let (source, target) = (transfer.source, piece.part.target);
    let normal_form = || Nest::in_bytes(transfer, &piece.part, piece.step);
    let (mut mover, boxes) = {
        let mut nest = normal_form();
        let way = Choice::new(call, &nest, slot).way;
        let mut mover = Mover { call, way, stages, source, target };
        way.arrange(&mut nest);
        if nest.axes().is_empty() {
            nest.from = nest.from.wrapping_add(range.start.cast_signed());
            nest.to = nest.to.wrapping_add(range.start.cast_signed());
            nest.unit = range.len();
        }
        if range.len() == nest.total() {
            // SAFETY: the whole piece, or some bytes of its only unit.
            return unsafe { mover.move_nest(&mut nest) };
        }
        (mover, Boxes::of(&nest, &way, &range))
    };
    for some in boxes {
        let mut nest = normal_form();
        mover.way.arrange(&mut nest);
        nest.restrict(0, some.first);
        if let Some(second) = some.second {
            nest.restrict(1, second);
        }
        // SAFETY: steps of the piece that begin within the range.
        unsafe { mover.move_nest(&mut nest) };
    }
}
