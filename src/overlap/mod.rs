//! Checks whether memory that a call writes overlaps other memory that it uses.
//!
//! Two tensors or arrays *meet* if they have a byte in common; otherwise they are *apart*. The outputs of a copy must
//! be apart from each other and from everything that the call reads, and so must the arrays that `infer` and `view`
//! fill. Outputs may be strided and may come in any order. The library has no heap and must not sort the caller's
//! arrays. So there are five tests, the cheapest first; each is right where it decides, and leaves the rest to the next.
//!
//! 1. **Order of arrival** ([`Trail`]). The *span* of an output reaches from its lowest byte to its highest. If each
//!    span lies above or below all those before it, all outputs are apart. This is found while outputs are checked
//!    one by one; if outputs are in ascending or descending order, nothing more is needed.
//! 2. **One tensor** (`copy::are_one_tensor`). Outputs that continue each other along the split axis, as neighbouring
//!    columns of a matrix do, are looked at as one. If no two of its elements lie over each other, all are apart.
//! 3. **Spans in any order** ([`first_meeting`], [`first_crossing`]). If there are more than 16 and they lie close
//!    together, they are entered in a map of memory that has a bit for each cell ([`spans`]). If they do not, they are
//!    visited in the order of their addresses ([`order`]), each compared with the one that reaches furthest so far.
//! 4. **Boxes in one tensor** ([`boxes`]). Strided outputs may lie in each other's gaps: columns of a matrix, tiles of a
//!    picture, channels of pixels, slices along any axis, with or without padding. Divided by the strides that
//!    they have in common, addresses are coordinates, in which each output is a box. If the boxes lie in the cells of a
//!    regular grid, except along one axis, each gets a span, and the third test decides. Packed outputs are such boxes.
//! 5. **Pairs** ([`lattice`]). Other outputs are visited in the order of their addresses, and those whose spans meet are
//!    compared two at a time, whatever their strides. If more than 64 reach over one address, all whose spans hang
//!    together there are a *crowd*. The fourth test must then decide about each crowd by itself.
//!
//! An input is compared with each output whose span meets its own, as in the fifth test.
//!
//! # What is refused
//!
//! The error names two tensors that "could not be shown apart" if a crowd is not made of boxes in one tensor; if
//! comparing pairs and finding crowds takes more than [`lattice::BUDGET`] in one call; for two tensors of more than 24
//! different strides, not counting axes that continue each other; and for an output in the gaps of an input of
//! sub-byte elements. Among layouts that people use, this can happen to tiles that differ both in height and in width.
//!
//! # How much work it is
//!
//! Each of the first four tests looks at every output a few times, the fourth again for each crowd. The third takes one
//! more pass over all of them for about every 4,000 outputs (for every 1,000 if there are up to 16,384), and so does
//! visiting them in the fifth. The budget limits everything else.

mod boxes;
mod lattice;
mod order;
mod outputs;
mod spans;
#[cfg(test)]
mod tests;

use crate::span::Span;
use crate::words::Argument;
use boxes::Boxes;
use core::ops::{ControlFlow, Range};
use lattice::{meet, Lattice, SET_UP};
use order::in_order;
pub(crate) use outputs::{check_apart, check_arrays_are_kept, check_arrays_to_fill};
pub(crate) use spans::Spans;
use spans::{first_crossing, first_meeting, Numbered, EVERYWHERE};

/// Watches spans as they come.
#[derive(Clone, Copy)]
pub(crate) struct Trail {
    /// From the lowest byte seen so far to the highest.
    pub hull: Span,
    /// Whether each span lay above or below all those before it.
    pub is_apart: bool,
}

impl Trail {
    pub(crate) const EMPTY: Self = Self { hull: Span::NOWHERE, is_apart: true };

    pub(crate) fn push(&mut self, span: Span) {
        self.is_apart &= span.is_apart(self.hull);
        self.hull = self.hull.hull(span);
    }
}

/// Outputs by number, which may be strided.
pub(crate) trait Tensors: Spans {
    /// Returns the bytes of an output.
    fn lattice(&self, index: usize) -> Lattice;
}

/// An output that meets something or could not be shown apart from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clash {
    pub output: usize,
    /// The input, or an output with a lower number.
    pub other: Argument,
    /// Whether they certainly meet.
    pub is_sure: bool,
}

/// Returns two outputs that have a byte in common, if any do, or that could not be shown apart within the budget. They
/// may be strided.
#[cold]
pub(crate) fn clash(tensors: &dyn Tensors, budget: &mut usize) -> Option<Clash> {
    first_meeting(tensors)?;
    // What is left, and if it is a crowd, two outputs of it.
    let (mut starts, mut crowd) = (EVERYWHERE, None);
    while !starts.is_empty() {
        if let Some(boxes) = Boxes::new(tensors, &starts) {
            if let Some((output, other)) = first_meeting(&boxes) {
                return Some(Clash { output, other: Argument::Output(other), is_sure: true });
            }
            (starts, crowd) = (starts.end..usize::MAX, None);
        } else if crowd.is_some() {
            break;
        } else {
            let (clash, its_starts) = sweep(tensors, &starts, budget)?;
            (starts, crowd) = (its_starts, Some(clash));
        }
    }
    crowd
}

/// If more outputs reach over one address, they are a crowd and are not compared pair by pair.
const MOST_OPEN: usize = 64;

/// Compares outputs pair by pair: each with those that begin no higher and do not end before it begins. Returns two that
/// meet or could not be shown apart. If they belong to a crowd, also returns where all outputs start that reach over its
/// memory; those below it have been found to be apart.
#[inline(never)] // for its stack
fn sweep(
    tensors: &dyn Tensors,
    starts: &Range<usize>,
    budget: &mut usize,
) -> Option<(Clash, Range<usize>)> {
    // Outputs that may reach further: where they end, and their numbers. And the hull of all that hang together.
    let mut open = [(0, 0); MOST_OPEN];
    let mut hull = Span::default();
    let mut is_crowded = false;
    let (output, other) = (tensors.len() - 1, Argument::Output(0));
    let mut clash = Clash { output, other, is_sure: false };
    let flow = in_order(tensors, starts, &mut |index, span| {
        if span.start >= hull.end {
            if is_crowded {
                return ControlFlow::Break(());
            }
            hull = span;
        }
        hull = hull.hull(span);
        if is_crowded {
            return ControlFlow::Continue(());
        }
        let lattice = tensors.lattice(index);
        for (_, other) in open.iter().filter(|(end, _)| *end > span.start) {
            let answer = meet(&lattice, &tensors.lattice(*other), budget);
            let (low, high) = (index.min(*other), index.max(*other));
            clash =
                Clash { output: high, other: Argument::Output(low), is_sure: answer == Some(true) };
            if answer != Some(false) {
                return ControlFlow::Break(());
            }
        }
        match open.iter_mut().find(|(end, _)| *end <= span.start) {
            Some(slot) => *slot = (span.end, index),
            None => is_crowded = true,
        }
        ControlFlow::Continue(())
    });
    if flow.is_continue() && !is_crowded {
        return None;
    }
    // Whoever looks at a crowd looks at all outputs.
    let cost = tensors.len().saturating_mul(SET_UP);
    let left = if is_crowded { budget.checked_sub(cost) } else { None };
    *budget = left.unwrap_or(0);
    Some((clash, if left.is_some() { hull.start..hull.end } else { 0..0 }))
}
