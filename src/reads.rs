//! The memory that a call reads, which nothing that it writes may overlap.

use crate::overlap::Spans;
use crate::span::Span;
use crate::types::libsplit_tensor;
use crate::words::Argument;

/// Memory, and whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub argument: Argument,
    pub span: Span,
}

/// Where the structures and arrays of a call lie, except those of its outputs. Those that a call does not have are
/// nowhere.
pub(crate) struct Reads<'a> {
    /// The parameters, or the plan.
    pub request: Area,
    pub input: Option<&'a libsplit_tensor>,
    pub split: Option<&'a libsplit_tensor>,
    /// The elements of the lengths.
    pub lengths: Span,
    pub error: Span,
    pub executor: Span,
}

impl Reads<'_> {
    pub(crate) const NOTHING: Self = Self {
        request: Area { argument: Argument::Params, span: Span::NOWHERE },
        input: None,
        split: None,
        lengths: Span::NOWHERE,
        error: Span::NOWHERE,
        executor: Span::NOWHERE,
    };

    /// Returns whose memory a span overlaps, if it overlaps any.
    pub(crate) fn under(&self, span: Span) -> Option<Argument> {
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
        if is_over(self.request.span) {
            Some(self.request.argument)
        } else if is_over_tensor(self.input) {
            Some(Argument::Input)
        } else if is_over_tensor(self.split) || is_over(self.lengths) {
            Some(Argument::Lengths)
        } else if is_over(self.error) {
            Some(Argument::Error)
        } else {
            is_over(self.executor).then_some(Argument::Executor)
        }
    }

    /// Returns the first of some spans that overlaps memory that the call reads, or `other` memory, and whose memory
    /// that is. All spans lie within the hull.
    pub(crate) fn first_under(
        &self,
        spans: &dyn Spans,
        hull: Span,
        other: Area,
    ) -> Option<(usize, Argument)> {
        if other.span.is_apart(hull) && self.under(hull).is_none() {
            return None;
        }
        (0..spans.len()).find_map(|index| {
            let span = spans.span(index);
            let other = span.intersects(other.span).then_some(other.argument);
            Some((index, self.under(span).or(other)?))
        })
    }
}
