//! A few spans that are compared each with each, as most calls have no more: in a heap, outputs, their shapes and
//! all else that a call reads lie among one another.

#![forbid(unsafe_code)]

use crate::span::Span;

/// So many at the most: before anything else is tried. Zen 5, ns of a copy into 3 and 8 outputs on both sides of the
/// input, before and after: 77, 70; 335, 132. Zen 4, 3 and 8 outputs among their shapes: 185, 73; 541, 162.
pub(crate) const FEW: usize = 32;

/// Spans, or too many of them to be kept.
pub(crate) struct Few {
    spans: [Span; FEW],
    len: usize,
    hull: Span,
}

impl Few {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { spans: [Span::default(); FEW], len: 0, hull: Span::NOWHERE }
    }

    /// Takes one in; an empty one meets nothing.
    #[inline]
    pub(crate) fn push(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        if let Some(slot) = self.spans.get_mut(self.len) {
            *slot = span;
        }
        self.len += 1;
        self.hull = self.hull.hull(span);
    }

    /// Whether all are there, and each lies above or below every other.
    #[inline]
    pub(crate) fn are_apart(&self) -> bool {
        let Some(mut rest) = self.spans.get(..self.len) else { return false };
        while let [span, others @ ..] = rest {
            if any_meets(others, *span) {
                return false;
            }
            rest = others;
        }
        true
    }

    /// Whether all are there, and each lies above or below another span.
    #[inline]
    pub(crate) fn are_apart_from(&self, span: Span) -> bool {
        span.is_apart(self.hull) || span.is_empty() || !self.any_meets(span)
    }

    #[inline(never)] // once in the library
    fn any_meets(&self, span: Span) -> bool {
        self.spans.get(..self.len).is_none_or(|all| any_meets(all, span))
    }
}

/// By distances from one begin to the other, which wrap round: with branches that are never taken, while nobody
/// could foretell which of two is the lower one.
#[inline(always)]
fn any_meets(all: &[Span], span: Span) -> bool {
    all.iter().any(|one| {
        span.start.wrapping_sub(one.start) < one.len()
            || one.start.wrapping_sub(span.start) < span.len()
    })
}
