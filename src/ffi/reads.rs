//! The memory of the caller's that a call reads, which nothing that it writes may lie over.

use super::parse::arrays;
use super::types::libsplit_tensor;
use crate::overlap::Spans;
use crate::span::Span;
use crate::words::Argument;

/// Where the structures and arrays of a call lie, apart from the outputs'; what is not there is nowhere.
pub(crate) struct Reads<'a> {
    /// The parameters, or the plan.
    pub(super) request: (Argument, Span),
    pub(super) input: Option<&'a libsplit_tensor>,
    pub(super) split: Option<&'a libsplit_tensor>,
    /// The elements of the lengths.
    pub(super) lengths: Span,
    pub(super) error: Span,
    pub(super) executor: Span,
}

impl Reads<'_> {
    pub(crate) const NOTHING: Self = Self {
        request: (Argument::Params, Span::NOWHERE),
        input: None,
        split: None,
        lengths: Span::NOWHERE,
        error: Span::NOWHERE,
        executor: Span::NOWHERE,
    };

    /// Returns whose memory a span lies over, if it lies over any.
    #[inline]
    pub(super) fn under(&self, span: Span) -> Option<Argument> {
        let is_over = |read: Span| read.intersects(span);
        let is_over_tensor = |tensor: Option<&libsplit_tensor>| {
            tensor.is_some_and(|tensor| {
                // The rank has been checked. Strides that are not looked at are the caller's all the same.
                let [shape, strides] = arrays(tensor, usize::try_from(tensor.rank).unwrap_or(0));
                is_over(Span::of(tensor)) || is_over(shape) || is_over(strides)
            })
        };
        let (request, place) = self.request;
        if is_over(place) {
            Some(request)
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

    /// Returns the first of some spans within a hull that lies over one of them, and whose that is; nobody's if it lies
    /// over the `other` span instead.
    pub(super) fn first_under(
        &self,
        spans: &dyn Spans,
        hull: Span,
        other: Span,
    ) -> Option<(usize, Option<Argument>)> {
        if other.is_apart(hull) && self.under(hull).is_none() {
            return None;
        }
        (0..spans.len()).find_map(|index| {
            let (span, owner) = (spans.span(index), self.under(spans.span(index)));
            (owner.is_some() || span.intersects(other)).then_some((index, owner))
        })
    }
}
