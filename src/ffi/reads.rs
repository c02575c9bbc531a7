//! The memory that a call reads, which nothing that it writes may overlap.

use super::parse::FIRST_ERROR;
use super::types::{libsplit_error, libsplit_tensor};
use crate::overlap::Spans;
use crate::span::Span;
use crate::words::Argument;
use core::ptr::null;

/// Where the structures and arrays of a call lie, except those of its outputs. Those that are not given are nowhere.
pub(crate) struct Reads<'a> {
    /// The parameters, or the plan.
    pub(super) request: (Argument, Span),
    pub(super) input: Option<&'a libsplit_tensor>,
    pub(super) split: Option<&'a libsplit_tensor>,
    /// The elements of the lengths.
    pub(super) lengths: Span,
    pub(super) error: *const libsplit_error,
    pub(super) executor: Span,
}

impl Reads<'_> {
    pub(crate) const NOTHING: Self = Self {
        request: (Argument::Params, Span::NOWHERE),
        input: None,
        split: None,
        lengths: Span::NOWHERE,
        error: null(),
        executor: Span::NOWHERE,
    };

    /// Returns whose memory a span overlaps, if it overlaps any.
    pub(super) fn under(&self, span: Span) -> Option<Argument> {
        let is_over = |read: Span| read.intersects(span);
        let is_over_tensor = |tensor: Option<&libsplit_tensor>| {
            tensor.is_some_and(|tensor| {
                // The rank has been checked. Strides that are never read still belong to the caller.
                let rank = usize::try_from(tensor.rank).unwrap_or(0);
                let is_over_array =
                    |array: *mut i64| !array.is_null() && is_over(Span::of_array(array, rank));
                is_over(Span::of_array(tensor, 1))
                    || is_over_array(tensor.shape)
                    || is_over_array(tensor.strides)
            })
        };
        let (request, place) = self.request;
        if is_over(place) {
            Some(request)
        } else if is_over_tensor(self.input) {
            Some(Argument::Input)
        } else if is_over_tensor(self.split) || is_over(self.lengths) {
            Some(Argument::Lengths)
        } else if !self.error.is_null()
            && is_over(Span::of_array(self.error.cast::<u8>(), FIRST_ERROR))
        {
            // Every version writes that part of it.
            Some(Argument::Error)
        } else {
            is_over(self.executor).then_some(Argument::Executor)
        }
    }

    /// Returns the first span that overlaps memory that the call reads, or another span, and whose memory that is. All
    /// spans lie within the hull.
    pub(super) fn first_under(
        &self,
        spans: &dyn Spans,
        hull: Span,
        (other, place): (Argument, Span),
    ) -> Option<(usize, Argument)> {
        if place.is_apart(hull) && self.under(hull).is_none() {
            return None;
        }
        (0..spans.len()).find_map(|index| {
            let span = spans.span(index);
            let owner = self.under(span).or(span.intersects(place).then_some(other));
            Some((index, owner?))
        })
    }
}
