//! Outputs that are boxes in one system of coordinates: slices, columns, channels and tiles of one tensor.
//!
//! The distance of an output from the lowest one, divided by the strides that all of them share, the longest first,
//! gives the coordinates of its first byte. If no output reaches beyond the next longer stride, every byte has
//! coordinates of its own; then two outputs meet exactly if their intervals meet on every axis.
//!
//! On all axes but one, each interval must lie in a cell of a regular grid, so that those that meet lie in the same
//! cell. The numbers of its cells, and after them its interval on the axis that is left, then give each output a span,
//! and two outputs meet exactly if these spans do.

#![forbid(unsafe_code)]

use super::lattice::{Lattice, MAX_AXES};
use super::spans::{filled, Spans};
use super::Tensors;
use crate::math::{div, div_ceil, div_rem_signed, gcd};
use crate::shape::usize_of;
use crate::span::Span;

/// Outputs as boxes, each with the span that it has instead of its addresses.
pub(super) struct Boxes<'a> {
    tensors: &'a dyn Tensors,
    /// An output that has the axes of all of them.
    model: Lattice,
    /// Where the lowest output begins.
    origin: usize,
    axes: [Cells; MAX_AXES],
}

/// Cells on an axis.
#[derive(Clone, Copy, Default)]
struct Cells {
    /// What all distances between outputs are multiples of.
    divisor: usize,
    /// The longest interval, and where the last one ends.
    longest: usize,
    end: usize,
    /// The size of a cell: 1 if intervals can begin anywhere.
    size: usize,
    /// How far apart cells are in the span of an output.
    weight: usize,
}

impl<'a> Boxes<'a> {
    /// Returns outputs as boxes, if they are boxes and lie in cells. At least one must not be empty.
    #[inline(never)] // for its stack
    pub(super) fn new(tensors: &'a dyn Tensors) -> Option<Self> {
        let origin = filled(tensors).map(|(_, span)| span.start).min()?;
        let (model, _) = filled(tensors).max_by_key(|(_, span)| span.len())?;
        let (model, mut axes) = (tensors.lattice(model), [Cells::default(); MAX_AXES]);
        let mut boxes = Self { tensors, model, origin, axes };
        for (at, _) in filled(tensors) {
            boxes.intervals(at, &mut |axis, Span { start, end }| {
                if let Some(axis) = axes.get_mut(axis) {
                    axis.divisor = gcd(start, axis.divisor);
                    axis.longest = axis.longest.max(end - start);
                    axis.end = axis.end.max(end);
                }
            })?;
        }
        let (mut weight, mut free) = (1usize, 0);
        for is_free in [true, false] {
            for axis in axes.iter_mut().filter(|axis| axis.end > 0 && axis.is_free() == is_free) {
                axis.size = if is_free { 1 } else { axis.divisor.max(axis.longest) };
                axis.weight = weight;
                weight = weight.checked_mul(div_ceil(axis.end, axis.size))?;
                free += usize::from(is_free);
            }
        }
        boxes.axes = axes;
        (free <= 1).then_some(boxes)
    }

    /// Calls `see` with the number of each axis and the interval of an output on it, counted from the lowest output.
    /// Returns `None` if the output is no box: it is empty, has an axis of its own, or reaches beyond the next longer
    /// stride.
    fn intervals(&self, at: usize, see: &mut dyn FnMut(usize, Span)) -> Option<()> {
        let lattice = self.tensors.lattice(at);
        let mut own = lattice.axes().peekable();
        let mut rest = i64::try_from(lattice.span.start.checked_sub(self.origin)?).ok()?;
        let mut reach = i64::try_from(lattice.span.len().checked_sub(1)?).ok()?;
        for (at, axis) in self.model.axes().enumerate() {
            let steps = own.next_if(|own| own.stride == axis.stride).map_or(0, |own| own.high);
            let (start, below) = div_rem_signed(rest, axis.stride);
            see(at, Span { start: usize_of(start), end: usize_of(start + steps + 1) });
            rest = below;
            reach -= steps * axis.stride;
            (rest + reach < axis.stride).then_some(())?;
        }
        (own.next().is_none() && lattice.is_exact && self.model.is_exact).then_some(())
    }
}

impl Cells {
    /// Returns whether intervals are longer than cells would be.
    fn is_free(&self) -> bool {
        self.divisor > 0 && self.longest > self.divisor
    }
}

impl Spans for Boxes<'_> {
    fn len(&self) -> usize {
        self.tensors.len()
    }

    fn span(&self, at: usize) -> Span {
        let (mut start, mut len) = (0, 1);
        let is_box = self.intervals(at, &mut |axis, interval| {
            if let Some(axis) = self.axes.get(axis) {
                start += div(interval.start, axis.size) * axis.weight;
                len = len.max(div_ceil(interval.len(), axis.size));
            }
        });
        is_box.map_or(Span::default(), |()| Span { start, end: start + len })
    }
}
