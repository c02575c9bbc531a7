//! The memory of the caller's that a call reads, which nothing that it writes may lie over.

use super::parse::FIRST_ERROR;
use super::types::libsplit_error;
use crate::overlap::Spans;
use crate::span::Span;
use crate::words::Which;

/// What lies in memory that is read.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    Params,
    Input,
    InputShape,
    InputStrides,
    SplitShape,
    SplitStrides,
    Split,
    Lengths,
    Error,
    Executor,
}

/// Who owns each, in the order of [`Owner`].
const OWNERS: [Which; 10] = [
    Which::Params,
    Which::Input,
    Which::Input,
    Which::Input,
    Which::Split,
    Which::Split,
    Which::Split,
    Which::Split,
    Which::Error,
    Which::Executor,
];

/// Where structures and arrays of a call lie, apart from the outputs'; what is not there is empty.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    spans: [Span; OWNERS.len()],
}

impl Reads {
    pub(crate) const NONE: Self = Self { spans: [Span { start: 0, end: 0 }; OWNERS.len()] };

    #[inline]
    pub(super) fn set(&mut self, owner: Owner, span: Span) {
        if let Some(slot) = self.spans.get_mut(owner as usize) {
            *slot = span;
        }
    }

    /// The structure that errors are written to: as much of it as any version writes.
    #[inline]
    pub(super) fn set_error(&mut self, error: *const libsplit_error) {
        let bytes = if error.is_null() { 0 } else { FIRST_ERROR };
        self.set(Owner::Error, Span::of_bytes(error, bytes));
    }

    /// Whether a span lies above or below each of them.
    #[inline]
    pub(super) fn are_apart(&self, span: Span) -> bool {
        self.spans.iter().all(|read| read.is_apart(span))
    }

    /// One that a span lies over.
    #[inline(never)]
    pub(super) fn under(&self, span: Span) -> Option<Which> {
        let at = self.spans.iter().position(|read| read.intersects(span))?;
        OWNERS.get(at).copied()
    }

    /// Whether one of them, or another span, meets one of some that all lie within a hull.
    pub(super) fn any_meets(&self, other: Span, hull: Span, spans: &dyn Spans) -> bool {
        let near = self.spans.iter().chain([&other]).filter(|read| !read.is_apart(hull));
        near.into_iter().any(|read| (0..spans.len()).any(|at| spans.span(at).intersects(*read)))
    }

    /// Where the elements of the lengths lie.
    pub(super) fn lengths(&self) -> Span {
        self.spans.get(Owner::Lengths as usize).copied().unwrap_or_default()
    }
}
