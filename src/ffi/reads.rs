//! The memory of the caller's that a call reads, which nothing that it writes may lie over.

use crate::overlap::Spans;
use crate::span::Span;
use crate::words::Argument;

/// Where the structures and arrays of a call lie, apart from the outputs'; what is not there is nowhere.
#[derive(Default)]
pub(super) struct Reads {
    pub(super) params: Span,
    /// The descriptor, the shape and the strides.
    pub(super) input: [Span; 3],
    pub(super) split: [Span; 3],
    /// The elements of the lengths.
    pub(super) lengths: Span,
    pub(super) error: Span,
    pub(super) executor: Span,
}

impl Reads {
    #[inline]
    fn spans(&self) -> [Span; 10] {
        let &Self { params, input, split, lengths, error, executor } = self;
        let [[descriptor, shape, strides], [list, extent, step]] = [input, split];
        [params, descriptor, shape, strides, list, extent, step, lengths, error, executor]
    }

    /// Returns whether a span lies above or below each of them.
    #[inline]
    pub(super) fn are_apart(&self, span: Span) -> bool {
        let Self { params, input, split, lengths, error, executor } = self;
        let mut reads = [params, lengths, error, executor].into_iter().chain(input).chain(split);
        reads.all(|read| read.is_apart(span))
    }

    /// Returns whose memory a span lies over, if it lies over any.
    pub(super) fn under(&self, span: Span) -> Option<Argument> {
        Some(match self.spans().iter().position(|read| read.intersects(span))? {
            0 => Argument::Params,
            1..=3 => Argument::Input,
            4..=7 => Argument::Lengths,
            8 => Argument::Error,
            _ => Argument::Executor,
        })
    }

    /// Returns the first of some spans within a hull that lies over one of them, and whose that is; nobody's if it lies
    /// over the `other` span instead.
    pub(super) fn first_under(
        &self,
        spans: &dyn Spans,
        hull: Span,
        other: Span,
    ) -> Option<(usize, Option<Argument>)> {
        if other.is_apart(hull) && self.are_apart(hull) {
            return None;
        }
        (0..spans.len()).find_map(|index| {
            let (span, owner) = (spans.span(index), self.under(spans.span(index)));
            (owner.is_some() || span.intersects(other)).then_some((index, owner))
        })
    }
}
