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
use super::nest::{Axis, Nest};
use super::parallel::Ranges;
use super::piece::{Choice, Mover, Way};
use crate::math::{div, div_rem};
use crate::parts::Transfer;
use crate::shape::usize_of;
use core::ops::Range;

/// Moves ranges of the bytes of all pieces.
///
/// # Safety
/// The pieces must be readable and writable; concurrent calls must have other ranges.
pub(super) unsafe fn move_ranges(transfer: &Transfer<'_>, call: &Call, ranges: Ranges<'_>) {
    let mut nest = Nest::EMPTY;
    let round = round_bytes(transfer, call, &mut nest);
    let task = |scratch: &mut Scratch<'_>| {
        for range in ranges {
            in_rounds(transfer, range, round, &mut |piece, bytes| {
                // SAFETY: these bytes are some of the range.
                unsafe {
                    if transfer.geometry.dtype.is_sub_byte() {
                        bits::pack_piece(transfer, &piece.part, call, bytes);
                    } else {
                        move_some(transfer, piece, call, scratch, &mut nest, bytes);
                    }
                }
            });
        }
    };
    // SAFETY: the targets belong to the pieces.
    unsafe { Scratch::lend(call, task) };
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
    let exact = || (own as u128 * at as u128).checked_div(all as u128).unwrap_or(0) as usize;
    own.checked_mul(at).map_or_else(exact, |product| div(product, all))
}

/// Returns how many bytes of all pieces a round has. Rounds are short because pieces may share lines of the input,
/// which are then still in the caches; but a transpose is best done in one round, as are pieces that lie apart.
fn round_bytes(transfer: &Transfer<'_>, call: &Call, nest: &mut Nest) -> usize {
    let mut pieces = joined(transfer);
    let (Some(first), Some(second)) = (pieces.next(), pieces.next()) else { return usize::MAX };
    nest.set_up(transfer, &second.part, second.step);
    let from = nest.from;
    nest.set_up(transfer, &first.part, first.step);
    let apart = from.abs_diff(nest.from);
    let is_within = |axis: &Axis| axis.input_at(axis.extent).unsigned_abs() <= apart;
    let unit = nest.unit.cast_signed();
    if nest.axes().iter().all(is_within) || nest.axes().iter().any(|axis| axis.from == unit) {
        return usize::MAX;
    }
    let least = transfer.parts.count().saturating_mul(LEAST_ROUND_BYTES);
    call.machine.second_bytes.max(least) / 2
}

/// Steps of a piece's outermost axis, and of the second one.
struct Box {
    first: Range<usize>,
    second: Range<usize>,
}

/// The boxes of a range of a piece's bytes: the rest of a step of the outermost axis, whole steps, and the first part of
/// one.
struct Boxes {
    /// The combined steps of the two axes that are left.
    steps: Range<usize>,
    /// The extent of the second axis.
    second: usize,
}

impl Boxes {
    /// Returns the boxes of a piece that has axes, with the steps that begin within the range. What is moved as a whole
    /// is not cut: then there is no second axis.
    fn of(nest: &Nest, way: &Way<'_>, range: &Range<usize>) -> Self {
        let extent = |at: usize| nest.axes().get(at).map_or(1, |axis| axis.extent);
        let can_cut_second = extent(0) < MANY_ROWS && nest.axes().len() > way.whole_axes();
        let second = if can_cut_second { extent(1) } else { 1 };
        let step = div(nest.total(), extent(0) * second).max(1);
        Self { steps: range.start.div_ceil(step)..range.end.div_ceil(step), second }
    }
}

impl Iterator for Boxes {
    type Item = Box;

    fn next(&mut self) -> Option<Box> {
        let (outer, within) = div_rem(self.steps.start, self.second);
        let left = self.steps.len();
        let whole = div(left, self.second);
        let (steps, second) = if within > 0 || whole == 0 {
            (1, within..(within + left).min(self.second))
        } else {
            (whole, 0..self.second)
        };
        self.steps.start += steps * second.len();
        (left > 0).then_some(Box { first: outer..outer + steps, second })
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
    nest: &mut Nest,
    range: Range<usize>,
) {
    let Scratch { slot, stages } = scratch;
    let (source, target) = (transfer.source, piece.part.target);
    nest.set_up(transfer, &piece.part, piece.step);
    let way = Choice::new(call, nest, slot).way;
    let mut mover = Mover { call, way, stages, source, target };
    way.arrange(nest);
    if nest.axes().is_empty() {
        nest.from = nest.from.wrapping_add(range.start.cast_signed());
        nest.to = nest.to.wrapping_add(range.start.cast_signed());
        nest.unit = range.len();
    }
    if range.len() == nest.total() {
        // SAFETY: the whole piece, or some bytes of its only unit.
        return unsafe { mover.move_nest(nest) };
    }
    let boxes = Boxes::of(nest, &way, &range);
    let cuts_second = boxes.second > 1;
    for some in boxes {
        nest.set_up(transfer, &piece.part, piece.step);
        way.arrange(nest);
        nest.restrict(0, some.first);
        if cuts_second {
            nest.restrict(1, some.second);
        }
        // SAFETY: steps of the piece that begin within the range.
        unsafe { mover.move_nest(nest) };
    }
}

#[cfg(test)]
mod tests {
    use super::{place_in, Boxes};

    #[test]
    fn boxes_have_each_step_once() {
        for second in 1..6 {
            for (start, end) in (0..20).flat_map(|start| (start..20).map(move |end| (start, end))) {
                let boxes = Boxes { steps: start..end, second };
                let steps: Vec<_> = boxes
                    .flat_map(|some| some.first.map(move |outer| (outer, some.second.clone())))
                    .flat_map(|(outer, own)| own.map(move |step| outer * second + step))
                    .collect();
                assert_eq!(steps, (start..end).collect::<Vec<_>>(), "{second} steps a box");
            }
        }
    }

    /// A piece of half of all bytes has half of what comes before any place.
    #[test]
    fn a_share_of_all_that_can_be_addressed_is_exact() {
        let own = usize::MAX / 2;
        for at in [0, 1, 2, 7, own - 1, own, own + 1, 2 * own] {
            assert_eq!(place_in(own, at, 2 * own), at / 2);
        }
    }
}
