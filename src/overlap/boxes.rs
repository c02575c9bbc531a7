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
use crate::math::{div, div_rem_signed, gcd};
use crate::shape::usize_of;
use crate::span::Span;

/// Outputs as boxes, each with the span that it has instead of its addresses.
pub(super) struct Boxes<'a> {
    tensors: &'a dyn Tensors,
    /// An output that has the axes of all of them.
    model: Lattice,
    /// Where the lowest output begins.
    origin: usize,
    /// The axis on which intervals may begin anywhere, and where the last of them ends.
    free: usize,
    end: usize,
    /// What all addresses without steps along that axis are multiples of.
    unit: usize,
}

impl<'a> Boxes<'a> {
    /// Returns outputs as boxes, if they are boxes and lie in cells.
    #[inline(never)] // for its stack
    pub(super) fn new(tensors: &'a dyn Tensors) -> Option<Self> {
        let (mut hull, mut unit, mut longest) = (Span::NOWHERE, 0, (0, 0));
        for (at, span) in filled(tensors) {
            if !hull.is_empty() {
                unit = gcd(hull.start.abs_diff(span.start), unit);
            }
            hull = hull.hull(span);
            longest = longest.max((span.len(), at));
        }
        if hull.is_empty() {
            return None;
        }
        let (model, origin) = (tensors.lattice(longest.1), hull.start);
        let mut boxes = Self { tensors, model, origin, free: MAX_AXES, end: 1, unit };
        // For each axis, the greatest common divisor of all distances, the longest interval, and where the last ends.
        let mut axes = [(0, 0, 0); MAX_AXES];
        for at in 0..tensors.len() {
            boxes.intervals(at, &mut |axis, _, Span { start, end }| {
                if let Some((cell, longest, last)) = axes.get_mut(axis) {
                    *cell = gcd(start, *cell);
                    *longest = (end - start).max(*longest);
                    *last = end.max(*last);
                }
            })?;
        }
        let is_free = |(cell, longest, _): &(usize, usize, usize)| *cell > 0 && longest > cell;
        let mut free = axes.iter().enumerate().filter(|(_, axis)| is_free(axis));
        if let Some((axis, (.., end))) = free.next() {
            (boxes.free, boxes.end, boxes.unit) = (axis, *end, 1);
        }
        let fits = hull.len().checked_mul(boxes.end).is_some();
        (fits && free.next().is_none()).then_some(boxes)
    }

    /// Calls `see` with the number of each axis, its stride, and the interval of an output on it, counted from the
    /// lowest output; there are none if it is empty. Returns `None` if the output is no box: it has an axis of its own,
    /// or reaches beyond the next longer stride.
    fn intervals(&self, at: usize, see: &mut dyn FnMut(usize, usize, Span)) -> Option<()> {
        let lattice = self.tensors.lattice(at);
        if lattice.span.is_empty() {
            return Some(());
        }
        let mut own = lattice.axes().peekable();
        let mut rest = i64::try_from(lattice.span.start.checked_sub(self.origin)?).ok()?;
        let mut reach = i64::try_from(lattice.span.len() - 1).ok()?;
        for (at, axis) in self.model.axes().enumerate() {
            let steps = own.next_if(|own| own.stride == axis.stride).map_or(0, |own| own.high);
            let (start, below) = div_rem_signed(rest, axis.stride);
            let interval = Span { start: usize_of(start), end: usize_of(start + steps + 1) };
            see(at, usize_of(axis.stride), interval);
            rest = below;
            reach -= steps * axis.stride;
            (rest + reach < axis.stride).then_some(())?;
        }
        (own.next().is_none() && lattice.is_exact && self.model.is_exact).then_some(())
    }
}

impl Spans for Boxes<'_> {
    fn len(&self) -> usize {
        self.tensors.len()
    }

    fn span(&self, at: usize) -> Span {
        let span = self.tensors.span(at);
        if span.is_empty() {
            return span;
        }
        let (mut address, mut own) = (span.start - self.origin, Span { start: 0, end: 1 });
        if self.free < MAX_AXES {
            let _ = self.intervals(at, &mut |axis, stride, interval| {
                if axis == self.free {
                    address -= interval.start * stride;
                    own = interval;
                }
            });
        }
        let before = div(address, self.unit) * self.end;
        Span { start: before + own.start, end: before + own.end }
    }
}
