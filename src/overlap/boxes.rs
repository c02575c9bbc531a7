//! Outputs that are boxes in one system of coordinates: slices, columns, channels and tiles of one tensor.
//!
//! The distance of an output from the lowest one, divided by the strides that all of them share, the longest first,
//! gives the coordinates of its first byte. If no output reaches beyond the next longer stride, every byte has
//! coordinates of its own; then two outputs meet exactly if their intervals meet on every axis.
//!
//! On all axes but one, each interval must lie in a cell of a regular grid, so that those that meet begin at the same
//! place. The address without its step along the axis that is left, and after it the interval on that axis, then give
//! each output a span, and two outputs meet exactly if these spans do.

use super::lattice::{Lattice, MAX_AXES};
use super::spans::{filled, Spans};
use super::Tensors;
use crate::math::{div, div_rem, gcd};
use crate::shape::usize_of;
use crate::span::Span;
use core::ops::Range;

/// Outputs as boxes, each with the span that it has instead of its addresses.
pub(super) struct Boxes<'a> {
    tensors: &'a dyn Tensors,
    /// Where the outputs start that are boxes. The others have empty spans.
    starts: &'a Range<usize>,
    /// An output that has the axes of all of them.
    model: Lattice,
    /// Where the lowest output begins.
    origin: usize,
    /// The number of axes down to the one on which intervals may begin anywhere; 0 if there is no such axis.
    depth: usize,
    /// Where the last interval on that axis ends.
    end: usize,
    /// What all addresses without steps along that axis are multiples of.
    unit: usize,
}

impl<'a> Boxes<'a> {
    /// Returns outputs as boxes, if they are boxes and lie in cells.
    #[inline(never)] // for its stack
    pub(super) fn new(tensors: &'a dyn Tensors, starts: &'a Range<usize>) -> Option<Self> {
        let mut hull = Span::NOWHERE;
        let mut longest = (0, 0);
        for (at, span) in filled(tensors, starts) {
            hull = hull.hull(span);
            longest = longest.max((span.len(), at));
        }
        let model = tensors.lattice(longest.1);
        let origin = hull.start;
        // For each axis, the greatest common divisor of all starts, the longest interval, and where the last ends.
        let mut axes = [(0, 0, 0); MAX_AXES];
        let is_box = |span: Span| !span.is_empty() && starts.contains(&span.start);
        let lattices = (0..tensors.len()).map(|at| tensors.lattice(at));
        for lattice in lattices.filter(|lattice| is_box(lattice.span)) {
            let mut own = lattice.axes().peekable();
            let mut rest = lattice.span.start - origin;
            let mut reach = lattice.span.len() - 1;
            for (axis, (cell, longest, end)) in model.axes().zip(&mut axes) {
                let steps = own.next_if(|own| own.stride == axis.stride).map_or(0, |own| own.high);
                let steps = usize_of(steps);
                let stride = usize_of(axis.stride);
                let (start, below) = div_rem(rest, stride);
                *cell = gcd(start, *cell);
                *longest = (*longest).max(steps + 1);
                *end = (*end).max(start + steps + 1);
                rest = below;
                reach -= steps * stride;
                // It must not reach beyond the next longer stride, nor have an axis of its own.
                if rest + reach >= stride {
                    return None;
                }
            }
            if own.next().is_some() || !lattice.is_exact || !model.is_exact {
                return None;
            }
        }
        let mut boxes = Self { tensors, starts, model, origin, depth: 0, end: 1, unit: 0 };
        for ((at, axis), (cell, longest, end)) in model.axes().enumerate().zip(axes) {
            if cell == 0 || longest <= cell {
                boxes.unit = gcd(cell * usize_of(axis.stride), boxes.unit);
            } else if boxes.depth == 0 {
                boxes.depth = at + 1;
                boxes.end = end;
            } else {
                return None;
            }
        }
        // The numbers of all intervals must fit.
        let intervals = div(hull.len().wrapping_sub(1), boxes.unit) + 1;
        intervals.checked_mul(boxes.end)?;
        Some(boxes)
    }

    /// Returns where the span of an output begins that begins at this address.
    fn start_of(&self, address: usize) -> usize {
        let distance = address.wrapping_sub(self.origin);
        let (mut steps, mut rest, mut along) = (0, distance, 0);
        for axis in self.model.axes().take(self.depth) {
            (steps, rest) = div_rem(rest, usize_of(axis.stride));
            along = steps * usize_of(axis.stride);
        }
        div(distance - along, self.unit).wrapping_mul(self.end).wrapping_add(steps)
    }
}

impl Spans for Boxes<'_> {
    fn len(&self) -> usize {
        self.tensors.len()
    }

    fn span(&self, at: usize) -> Span {
        let span = self.tensors.span(at);
        if span.is_empty() || !self.starts.contains(&span.start) {
            return Span::default();
        }
        let (start, mut len) = (self.start_of(span.start), 1);
        if let Some(free) = self.depth.checked_sub(1).and_then(|at| self.model.axes().nth(at)) {
            let lattice = self.tensors.lattice(at);
            let own = lattice.axes().find(|own| own.stride == free.stride);
            len += own.map_or(0, |own| usize_of(own.high));
        }
        Span { start, end: start + len }
    }

    fn start(&self, at: usize) -> usize {
        let own = Some(self.tensors.start(at)).filter(|start| self.starts.contains(start));
        own.map_or(usize::MAX, |start| self.start_of(start))
    }
}
