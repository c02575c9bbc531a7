//! Outputs that are slices of one tensor: then each has an interval of one of its axes, and two meet if their
//! intervals do.
//!
//! They are slices along the split axis if all have the same strides there and off it, and begin whole steps
//! apart; or, if they are of one length, slices of a tensor with an axis more, whose step divides all distances.
//! Either way the tensor must be one in which no two elements share an address. What counts is from where the
//! lowest byte of an output lies, so that the signs of strides make no difference.

#![forbid(unsafe_code)]

use super::{Axes, Tensors};
use crate::math::gcd;
use crate::shape::strides_nest;
use crate::span::Span;
use core::iter::once;

/// What is found of outputs.
pub(crate) enum Slice {
    /// They are not slices of one tensor.
    None,
    /// They are, and apart.
    Apart,
    /// They are, and these two meet.
    Meet(usize, usize),
}

/// Outputs in ascending order, as far as they have been seen.
pub(crate) struct Slices {
    /// The axes of the first, and the split one among them.
    first: Axes,
    split: Option<usize>,
    element_bytes: i64,
    /// Where the first begins.
    start: usize,
    /// Whether all have the strides of the first off the split axis, the same stride along it, and the same length.
    are_alike: bool,
    are_along: bool,
    are_equal: bool,
    /// The stride along the split axis, of those that have more than one step.
    along: Option<i64>,
    /// Divides all distances from the first.
    divisor: usize,
    /// The last one, where it begins, and where its interval ends; in bytes from the first.
    last: usize,
    last_start: usize,
    end: usize,
    /// Two whose intervals along the split axis meet, and two that begin at one place.
    meeting: Option<(usize, usize)>,
    same: Option<(usize, usize)>,
}

impl Slices {
    pub(crate) fn new(index: usize, span: Span, tensors: &dyn Tensors) -> Self {
        let (first, split) = (tensors.axes(index), tensors.split_axis());
        let mut slices = Self {
            first,
            split,
            element_bytes: tensors.element_bytes(),
            start: span.start,
            are_alike: true,
            are_along: true,
            are_equal: true,
            along: None,
            divisor: 0,
            last: index,
            last_start: 0,
            end: 0,
            meeting: None,
            same: None,
        };
        slices.extend(0, &first);
        slices
    }

    /// Takes in the next output, which begins no lower than those before it.
    pub(crate) fn push(&mut self, index: usize, span: Span, tensors: &dyn Tensors) {
        let axes = tensors.axes(index);
        self.are_alike &= axes.rank == self.first.rank;
        for (at, ((extent, own), (first, stride))) in axes.iter().zip(self.first.iter()).enumerate()
        {
            let has_stride = own.unsigned_abs() == stride.unsigned_abs();
            if Some(at) == self.split {
                self.are_equal &= extent == first && (extent == 1 || has_stride);
            } else {
                self.are_alike &= extent == first && (extent == 1 || has_stride);
            }
        }
        let distance = span.start - self.start;
        self.divisor = gcd(distance, self.divisor);
        if distance < self.end {
            self.meeting = self.meeting.or(Some((self.last, index)));
        }
        if distance == self.last_start {
            self.same = self.same.or(Some((self.last, index)));
        }
        self.extend(distance, &axes);
        (self.last, self.last_start) = (index, distance);
    }

    /// Goes on to the interval of an output that begins at a distance from the first.
    fn extend(&mut self, distance: usize, axes: &Axes) {
        let split = self.split.and_then(|axis| axes.iter().nth(axis));
        let end = match split.filter(|(len, _)| *len > 1) {
            Some((len, stride)) => {
                let stride = stride.saturating_abs();
                self.are_along &= *self.along.get_or_insert(stride) == stride;
                usize::try_from(stride.saturating_mul(self.element_bytes).saturating_mul(len)).ok()
            }
            // The next one begins a whole step further on, however long that is.
            None => Some(1),
        };
        let end = distance.saturating_add(end.unwrap_or(usize::MAX));
        self.end = self.end.max(end);
    }

    /// Whether two have a byte in common, as far as they are slices of one tensor.
    pub(crate) fn answer(&self) -> Slice {
        let of =
            |meeting: Option<_>| meeting.map_or(Slice::Apart, |(one, two)| Slice::Meet(one, two));
        let along = self.along.filter(|_| self.are_alike && self.are_along);
        let step = along.and_then(|along| along.checked_mul(self.element_bytes));
        if step.is_some_and(|step| self.are_of_one(step, false)) {
            return of(self.meeting);
        }
        let step = i64::try_from(self.divisor).ok().filter(|_| self.are_alike && self.are_equal);
        if step.is_some_and(|step| self.are_of_one(step, true)) {
            return of(self.same);
        }
        Slice::None
    }

    /// Whether a tensor in which outputs are so many bytes apart, or multiples of that, has an address for
    /// each element; with an axis more, or in place of the split one.
    fn are_of_one(&self, step: i64, is_more: bool) -> bool {
        let (bytes, divisor) = (self.element_bytes, i64::try_from(self.divisor).unwrap_or(1));
        if step <= 0 || divisor.checked_rem(step) != Some(0) {
            return false;
        }
        let reached = if is_more { self.last_start.saturating_add(1) } else { self.end };
        let steps = i64::try_from(reached).unwrap_or(i64::MAX).saturating_add(step - 1);
        let all = (steps.checked_div(step).unwrap_or(i64::MAX), step);
        let split = self.split.filter(|_| !is_more);
        let own = self.first.iter().enumerate().filter(|(at, _)| Some(*at) != split);
        let own = own.map(|(_, (extent, stride))| (extent, stride.saturating_mul(bytes)));
        // As bytes, so that the step need not be one of whole elements.
        strides_nest(&once((bytes, 1)).chain(own).chain(once(all)))
    }
}
