//! Whether memory that a call writes overlaps other memory that it uses.
//!
//! Two tensors or arrays *meet* if they have a byte in common; otherwise they are *apart*. The outputs of a copy must
//! be apart from each other and from everything that the call reads, and so must the arrays that `infer` and `view`
//! fill. Outputs may be strided and may come in any order, and there may be up to 2^31 - 1 of them. The library has no
//! heap and must not sort the caller's arrays. So there are four tests, cheapest first; each decides exactly
//! what it decides, and leaves the rest to the next one.
//!
//! 1. **Order of arrival** ([`Trail`]). The *span* of an output reaches from its lowest byte to its highest. If each
//!    span lies above or below all those before it, all outputs are apart. This is seen while outputs are checked
//!    one by one, and for outputs in ascending or descending order it is all that happens.
//! 2. **Spans in any order** ([`first_meeting`], [`first_crossing`]). Up to 16 are compared pair by pair. If there are
//!    more, and they lie close together, they are entered in a map of memory that has a bit for each cell
//!    ([`grid`]). Otherwise they are visited in the order of their addresses ([`order`]), each of them compared
//!    with the one that reaches furthest so far. Packed outputs and arrays fill their spans, so this decides.
//! 3. **Boxes in one tensor** ([`boxes`]). Strided outputs may lie in each other's gaps: columns of a matrix, tiles of a
//!    picture, channels of pixels, slices along any axis, with or without padding. They have their strides in
//!    common, so dividing addresses by the strides gives coordinates, in which each output is a box. If the
//!    boxes lie in the cells of a regular grid, they meet exactly where two begin at the same address. If
//!    their intervals on some axis are apart, so are they. Either way the test is the second one again, of
//!    coordinates instead of addresses, so it does not matter how many boxes there are, or in which order.
//! 4. **Pairs** ([`lattice`]). Other strided outputs are visited in the order of their addresses, and those whose spans
//!    meet are compared two at a time: a search along the axes of both looks for a byte that belongs to both, whatever
//!    their strides. A strided input is compared with outputs in the same way.
//!
//! # What is refused
//!
//! The fourth test gives up where more than 64 spans reach over one address, when all searches of a call
//! have taken [`lattice::BUDGET`] steps, and on tensors of more than 12 axes, not counting those that continue
//! each other. The error then names two outputs that "could not be shown apart". Of layouts that people have, it can
//! be a hundred columns in each of two separate matrices, or tiles of many sizes in several rows.
//!
//! # How much work it is
//!
//! Each test looks at every output a few times, except that visiting spans in order takes a pass over all of
//! them for every 3,000 or so. Only spans in no order, and on average more than 32 units apart, are visited: a unit
//! is a byte, or what all their addresses are multiples of. A million of them take one or two seconds.

#![forbid(unsafe_code)]

mod boxes;
mod grid;
pub(crate) mod lattice;
mod order;
mod spans;
#[cfg(test)]
mod tests;

use crate::span::Span;
use boxes::Verdict;
use core::ops::ControlFlow;
use lattice::{meet, Answer, Lattice};
use order::in_order;
pub(crate) use spans::{first_crossing, first_meeting, Numbered, See, Spans};

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
    match boxes::verdict(tensors) {
        Verdict::Apart => None,
        Verdict::Meet(one, other) => Some(Clash::of(one, other, true)),
        Verdict::Unknown => {
            first_meeting(&Numbered(tensors.len(), &|at| tensors.span(at)))?;
            tangled(tensors, budget)
        }
    }
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
