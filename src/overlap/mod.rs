//! Whether memory that a call writes overlaps other memory that it uses.
//!
//! The outputs of a copy must be *apart* from each other and from whatever the call reads, which means that they
//! have no byte in common; so must the arrays that `infer` and `view` fill. Two of them *meet* if they do have one.
//! Outputs may come in any order, be as many as 2^31 - 1, and be strided. There is no heap, and what the caller
//! owns must not be sorted. Hence four steps, of which each takes what the one before it has left:
//!
//! 1. **Spans that grow one way.** The span of an output reaches from its lowest byte to its highest. While outputs are
//!    checked one by one, [`Trail`] sees whether each span lies above or below all those before it. Outputs in
//!    ascending or descending order need no more than that, and neither does anything else that
//!    lies outside the hull of all of them.
//! 2. **Spans in any order** ([`first_meeting`], [`first_crossing`]). Up to 16 are compared pair by pair. Of more,
//!    those that lie close together are entered in a map of memory, a bit for each cell ([`grid`]); others are visited
//!    in the order of their addresses, in as many passes as it takes with a small table ([`order`]), for
//!    then only neighbours can meet. If all outputs are packed, or these are arrays, that is the answer: it is exact.
//! 3. **Boxes in one tensor** ([`boxes`]). Strided outputs may be apart though their spans meet: slices along an axis,
//!    columns of a matrix, channels of pixels, tiles of a picture, with or without padding. All have the same
//!    strides, so each is a box in the coordinates of one tensor. Where boxes lie in a grid of cells, they meet only
//!    if they have the same cell; else they are apart if their intervals on one of the axes are. Both are step
//!    2 again, with coordinates for addresses, so that the number of boxes and their order do not matter.
//! 4. **Pairs** ([`lattice`]). What is left is visited in the order of addresses, and outputs whose spans meet are
//!    compared two by two: a search over the indices of both finds out whether a byte belongs to both, whatever
//!    the strides. An output and a strided input are compared in the same way.
//!
//! # What is exact, and what is refused
//!
//! Steps 1 to 3 are exact, and so is step 4 as far as it gets: whatever is found to be apart is apart, and what is
//! found to meet does meet. Step 4 gives up where more than 64 spans reach over one address, where the searches of
//! one call would take more than [`lattice::BUDGET`] steps, and where a tensor has more than 12 axes that do
//! not continue each other. Two outputs are then named that *could not be shown apart*, and the call is refused. Of
//! what people do, this may hit hundreds of columns of two matrices that are no slices of one tensor.
//!
//! # How long it takes
//!
//! Steps 1 and 3 look at each output a few times. So does step 2, unless spans lie in no order, and more than 32 bytes
//! apart, or more than 32 times what their addresses are aligned to: then for n spans there are some n / 3,000
//! passes, which for a million take a second or two.

#![forbid(unsafe_code)]

mod boxes;
mod grid;
pub(crate) mod lattice;
mod order;
mod spans;
#[cfg(test)]
mod tests;

use crate::span::Span;
use boxes::{Boxes, Verdict};
use core::ops::ControlFlow;
use lattice::{meet, Answer, Lattice};
use order::in_order;
pub(crate) use spans::{first_crossing, first_meeting, Kept, Numbered, See, Spans};

/// Watches spans go by.
#[derive(Clone, Copy)]
pub(crate) struct Trail {
    /// From the lowest byte of those seen to the highest.
    pub hull: Span,
    /// Whether each lay above or below all those before it.
    pub is_apart: bool,
}

impl Trail {
    pub(crate) const EMPTY: Self = Self { hull: Span::NOWHERE, is_apart: true };

    #[inline]
    pub(crate) fn push(&mut self, span: Span) {
        self.is_apart &= span.is_apart(self.hull);
        self.hull = self.hull.hull(span);
    }
}

/// Outputs that may be strided, by number.
pub(crate) trait Tensors: Spans {
    /// The bytes of an output.
    fn lattice(&self, index: usize) -> Lattice;
}

/// More outputs that reach over one address are not compared pair by pair.
const MOST_OPEN: usize = 64;

/// Two outputs that meet, or could not be shown not to.
pub(crate) struct Clash {
    pub output: usize,
    pub other: usize,
    pub is_sure: bool,
}

impl Clash {
    fn of(one: usize, other: usize, is_sure: bool) -> Self {
        Self { output: one.max(other), other: one.min(other), is_sure }
    }
}

/// Two outputs that may be strided that have a byte in common, if any do, or that could not be shown apart within
/// the budget.
#[cold]
#[inline(never)]
pub(crate) fn clash(tensors: &dyn Tensors, budget: &mut usize) -> Option<Clash> {
    first_meeting(&Numbered(tensors.len(), &|at| tensors.span(at)))?;
    match boxes_verdict(tensors) {
        Verdict::Apart => None,
        Verdict::Meet(one, other) => Some(Clash::of(one, other, true)),
        Verdict::Unknown => tangled(tensors, budget),
    }
}

#[inline(never)] // for its stack
fn boxes_verdict(tensors: &dyn Tensors) -> Verdict {
    Boxes::of(tensors).map_or(Verdict::Unknown, |boxes| boxes.verdict())
}

/// Outputs compared pair by pair: each with those that begin no higher, and do not end before it begins.
#[inline(never)] // for its stack
fn tangled(tensors: &dyn Tensors, budget: &mut usize) -> Option<Clash> {
    let (mut open, mut len, mut found) = ([0; MOST_OPEN], 0, None);
    in_order(&Numbered(tensors.len(), &|at| tensors.span(at)), &mut |index| {
        let (start, lattice) = (tensors.span(index).start, tensors.lattice(index));
        let mut kept = 0;
        for at in 0..len {
            let Some(&other) = open.get(at) else { break };
            if tensors.span(other).end <= start {
                continue;
            }
            let answer = meet(&lattice, &tensors.lattice(other), budget);
            if answer != Answer::Apart {
                found = Some(Clash::of(index, other, answer == Answer::Meet));
                return ControlFlow::Break(());
            }
            if let Some(slot) = open.get_mut(kept) {
                *slot = other;
            }
            kept += 1;
        }
        len = kept + 1;
        let Some(slot) = open.get_mut(kept) else {
            let [other, ..] = open;
            found = Some(Clash::of(index, other, false));
            return ControlFlow::Break(());
        };
        *slot = index;
        ControlFlow::Continue(())
    });
    found
}
