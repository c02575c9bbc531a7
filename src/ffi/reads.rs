//! The memory of the caller's that a call reads, which nothing that it writes may lie over.

use crate::overlap::Spans;
use crate::span::Span;
use crate::words::Argument;

/// Where the structures and arrays of a call lie, apart from the outputs'; what is not there is nowhere.
pub(crate) struct Reads {
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
    pub(crate) const NONE: Self = Self {
        params: Span::NOWHERE,
        input: [Span::NOWHERE; 3],
        split: [Span::NOWHERE; 3],
        lengths: Span::NOWHERE,
        error: Span::NOWHERE,
        executor: Span::NOWHERE,
    };

    #[inline]
    fn spans(&self) -> [Span; 10] {
        let &Self { params, input: [a, b, c], split: [d, e, f], lengths, error, executor } = self;
        [params, a, b, c, d, e, f, lengths, error, executor]
    }

    /// Whether a span lies above or below each of them.
    #[inline]
    pub(super) fn are_apart(&self, span: Span) -> bool {
        self.spans().iter().all(|read| read.is_apart(span))
    }

    /// Whose memory a span lies over.
    pub(super) fn under(&self, span: Span) -> Option<Argument> {
        Some(match self.spans().iter().position(|read| read.intersects(span))? {
            0 => Argument::Params,
            1..=3 => Argument::Input,
            4..=7 => Argument::Lengths,
            8 => Argument::Error,
            _ => Argument::Executor,
        })
    }

    /// Whether one of them, or another span, meets one of some that all lie within a hull.
    pub(super) fn any_meets(&self, other: Span, hull: Span, spans: &dyn Spans) -> bool {
        let mut near = self.spans().into_iter().chain([other]).filter(|read| !read.is_apart(hull));
        near.any(|read| (0..spans.len()).any(|at| spans.span(at).intersects(read)))
    }
}
