//! Outputs that are boxes in one system of coordinates: slices, columns, channels and tiles of one tensor.
//!
//! The distance of an output from the lowest one, divided by the strides that they have in common, the longest
//! first, gives the coordinates of its first byte. If no output reaches beyond the next longer stride, every byte has
//! coordinates of its own: then two outputs meet exactly if, on every axis, their intervals do.

#![forbid(unsafe_code)]

use super::lattice::{Lattice, Steps};
use super::spans::{hull, Numbered};
use super::{first_meeting, Tensors};
use crate::math::{div, gcd, rem};
use crate::span::Span;

pub(crate) struct Boxes<'a> {
    tensors: &'a dyn Tensors,
    /// One with all axes. Below them is one of bytes, on which a box has the bytes of a run.
    model: Lattice,
    /// Where the lowest begins.
    origin: usize,
}

/// What is found out about boxes.
pub(crate) enum Verdict {
    Apart,
    Meet(usize, usize),
    Unknown,
}

impl<'a> Boxes<'a> {
    /// The outputs, if they are boxes.
    #[inline(never)] // for its stack
    pub(crate) fn of(tensors: &'a dyn Tensors) -> Option<Self> {
        let spans = Numbered(tensors.len(), &|at| tensors.span(at));
        let filled = (0..tensors.len()).filter(|at| !tensors.span(*at).is_empty());
        let lattices = filled.map(|at| tensors.lattice(at));
        let rank = |lattice: &Lattice| lattice.axes().map(<[Steps]>::len);
        let model = lattices.clone().max_by_key(rank)?;
        let boxes = Self { tensors, model, origin: hull(&spans).start };
        lattices.into_iter().all(|lattice| boxes.has(&lattice).is_some()).then_some(boxes)
    }

    fn axes(&self) -> &[Steps] {
        self.model.axes().unwrap_or_default()
    }

    /// Whether an output has no other axes, and reaches nowhere beyond the next longer stride.
    fn has(&self, lattice: &Lattice) -> Option<()> {
        let mut own = lattice.axes()?.iter().peekable();
        let (mut rest, mut reach) = (lattice.span.start - self.origin, lattice.span.len() - 1);
        for axis in self.axes() {
            rest = rem(rest, axis.stride);
            reach -= own.next_if(|own| own.stride == axis.stride).map_or(0, |own| own.reach());
            (rest.saturating_add(reach) < axis.stride).then_some(())?;
        }
        own.next().is_none().then_some(())
    }

    /// The steps of an axis that an output takes, counted from the first one of the lowest output.
    fn interval(&self, at: usize, axis: usize) -> Span {
        let lattice = self.tensors.lattice(at);
        if lattice.span.is_empty() {
            return Span::default();
        }
        let (longer, shorter) = self.axes().split_at_checked(axis).unwrap_or_default();
        let offset = lattice.span.start - self.origin;
        let rest = longer.iter().fold(offset, |rest, axis| rem(rest, axis.stride));
        let Some(Steps { stride, .. }) = shorter.first() else {
            return Span { start: rest, end: rest.saturating_add(lattice.run) };
        };
        let own = lattice.axes().unwrap_or_default().iter().find(|own| own.stride == *stride);
        let start = div(rest, *stride);
        Span { start, end: start.saturating_add(own.map_or(1, |own| own.count)) }
    }

    /// Whether outputs meet.
    pub(crate) fn verdict(&self) -> Verdict {
        let (count, axes) = (self.tensors.len(), 0..=self.axes().len());
        if axes.clone().all(|axis| self.has_cells(axis)) {
            let corner = |at| {
                let Span { start, end } = self.tensors.span(at);
                Span { start, end: end.min(start.saturating_add(1)) }
            };
            let meeting = first_meeting(&Numbered(count, &corner));
            return meeting.map_or(Verdict::Apart, |(one, other)| Verdict::Meet(one, other));
        }
        for axis in axes.clone() {
            let Some((one, other)) = first_meeting(&Numbered(count, &|at| self.interval(at, axis)))
            else {
                return Verdict::Apart;
            };
            let meet = |axis| self.interval(one, axis).intersects(self.interval(other, axis));
            if axes.clone().all(meet) {
                return Verdict::Meet(one, other);
            }
        }
        Verdict::Unknown
    }

    /// Whether outputs begin whole cells of an axis apart, so long that each of them lies in one.
    fn has_cells(&self, axis: usize) -> bool {
        let intervals = (0..self.tensors.len()).map(|at| self.interval(at, axis));
        let (cell, longest) = intervals.fold((0, 0), |(cell, longest), interval| {
            (gcd(interval.start, cell), longest.max(interval.len()))
        });
        cell == 0 || longest <= cell
    }
}
