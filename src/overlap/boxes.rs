//! Outputs that are boxes in one system of coordinates: slices, columns, channels and tiles of one tensor.
//!
//! The distance of an output from the lowest one, divided by the strides that all of them share, the longest first,
//! gives the coordinates of its first byte. If no output reaches beyond the next longer stride, every byte has
//! coordinates of its own; then two outputs meet exactly if their intervals meet on every axis.

#![forbid(unsafe_code)]

use super::lattice::{Lattice, Steps, MAX_AXES};
use super::spans::Numbered;
use super::{first_meeting, Tensors};
use crate::math::{div_rem, gcd};
use crate::span::Span;

/// What was found out about boxes.
pub(crate) enum Verdict {
    Apart,
    Meet(usize, usize),
    Unknown,
}

/// Outputs as boxes.
struct Boxes<'a> {
    tensors: &'a dyn Tensors,
    /// An output that has the axes of all of them.
    model: Lattice,
    /// Where the lowest output begins.
    origin: usize,
}

/// What a box takes up of the bytes below the shortest stride, and its steps along each axis, the longest stride first.
/// Axes that do not exist are the same interval in all boxes.
type Intervals = [Span; MAX_AXES + 1];

impl Boxes<'_> {
    /// Returns the intervals of an output, counted from the lowest output's; `None` if it is no box: it is empty, has
    /// an axis of its own, or reaches beyond the next longer stride.
    fn intervals(&self, at: usize) -> Option<Intervals> {
        let lattice = self.tensors.lattice(at);
        let mut own = lattice.axes()?.iter().copied().peekable();
        let mut rest = lattice.span.start.checked_sub(self.origin)?;
        let mut reach = lattice.span.len() - 1;
        let mut intervals = [Span { start: 0, end: 1 }; MAX_AXES + 1];
        let [bytes, own_intervals @ ..] = &mut intervals;
        for (interval, axis) in own_intervals.iter_mut().zip(self.model.axes()?) {
            let steps = own.next_if(|own| own.stride == axis.stride);
            let (start, below) = div_rem(rest, axis.stride);
            *interval = Span { start, end: start.saturating_add(steps.map_or(1, |own| own.count)) };
            rest = below;
            reach -= steps.map_or(0, Steps::reach);
            (rest.saturating_add(reach) < axis.stride).then_some(())?;
        }
        *bytes = Span { start: rest, end: rest.saturating_add(lattice.run) };
        own.next().is_none().then_some(intervals)
    }
}

/// Returns whether outputs meet, if they are boxes.
#[inline(never)] // for its stack
pub(crate) fn verdict(tensors: &dyn Tensors) -> Verdict {
    let count = tensors.len();
    let (mut origin, mut longest, mut length) = (usize::MAX, 0, 0);
    for (at, span) in (0..count).map(|at| (at, tensors.span(at))) {
        if span.len() > length {
            (longest, length) = (at, span.len());
        }
        if !span.is_empty() {
            origin = origin.min(span.start);
        }
    }
    if length == 0 {
        return Verdict::Apart;
    }
    let boxes = Boxes { tensors, model: tensors.lattice(longest), origin };
    // For each axis, the greatest common divisor of all distances, and the longest interval.
    let mut cells = [(0, 0); MAX_AXES + 1];
    for at in 0..count {
        let Some(intervals) = boxes.intervals(at) else {
            if tensors.span(at).is_empty() {
                continue;
            }
            return Verdict::Unknown;
        };
        for ((cell, longest), interval) in cells.iter_mut().zip(intervals) {
            *cell = gcd(interval.start, *cell);
            *longest = interval.len().max(*longest);
        }
    }
    if cells.iter().all(|(cell, longest)| *cell == 0 || longest <= cell) {
        // Each lies in a cell of a grid, so those that meet begin at the same place.
        let corner = |at| {
            let Span { start, end } = tensors.span(at);
            Span { start, end: end.min(start.saturating_add(1)) }
        };
        let meeting = first_meeting(&Numbered(count, &corner));
        return meeting.map_or(Verdict::Apart, |(one, other)| Verdict::Meet(one, other));
    }
    let rank = boxes.model.axes().map_or(0, <[Steps]>::len);
    for axis in 0..=rank {
        let interval = |at| boxes.intervals(at).and_then(|all| all.get(axis).copied());
        let spans = |at| interval(at).unwrap_or_default();
        let Some((one, other)) = first_meeting(&Numbered(count, &spans)) else {
            return Verdict::Apart;
        };
        let [first, second] = [one, other].map(|at| boxes.intervals(at).unwrap_or_default());
        if first.iter().zip(second).all(|(own, other)| own.intersects(other)) {
            return Verdict::Meet(one, other);
        }
    }
    Verdict::Unknown
}
