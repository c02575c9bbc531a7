//! Memory as a map of cells, with a bit for each that says whether it is taken. If all spans begin at boundaries
//! between cells, two of them meet if they have a cell in common, and their order does not matter.

#![forbid(unsafe_code)]

use super::order::{with_table, SMALL};
use super::spans::{filled, Spans};
use crate::span::Span;

/// Cells of 2 to the power of `shift` bytes, from the lowest address on.
pub(crate) struct Grid {
    hull: Span,
    shift: u32,
    /// Bytes of the longest span.
    longest: usize,
}

/// Bits of a word of the map.
const BITS: usize = u32::BITS as usize;

impl Grid {
    /// Returns the grid of some spans if they are so dense that it takes no more passes than visiting them in order,
    /// and if each lies in at most three windows.
    pub(crate) fn over(spans: &dyn Spans) -> Option<Self> {
        let (mut hull, mut bits, mut longest) = (Span::NOWHERE, 0, 0);
        for span in filled(spans) {
            hull = hull.hull(span);
            bits |= span.start;
            longest = longest.max(span.len());
        }
        // However far apart spans are, the cells of a window can be numbered.
        let shift = bits.trailing_zeros().min(12);
        let is_dense = hull.len() >> shift <= spans.len().saturating_mul(BITS);
        let are_short = longest >> shift <= SMALL * BITS;
        (is_dense && are_short).then_some(Self { hull, shift, longest })
    }

    /// Returns a span that has a cell in common with one of the first `written` spans. It is one of these itself only
    /// if spans are to be compared `among` them.
    pub(crate) fn first_meeting(
        &self,
        written: usize,
        among: bool,
        spans: &dyn Spans,
    ) -> Option<usize> {
        let mut found = None;
        with_table(spans.len(), &mut |taken| {
            let mut low = self.hull.start;
            while low < self.hull.end && found.is_none() {
                let high = low.saturating_add((taken.len() * BITS) << self.shift);
                let window = Span { start: low, end: high };
                taken.fill(0);
                spans.starts(low.saturating_sub(self.longest), high, &mut |index, _| {
                    let (span, is_written) = (spans.span(index), index < written);
                    if self.meets(taken, window, span, is_written) && (among || !is_written) {
                        found = Some(index);
                        return 0;
                    }
                    high
                });
                low = high;
            }
        });
        found
    }

    /// Returns whether a cell of a span is taken, of those in the window. If the span is written, takes them.
    fn meets(&self, taken: &mut [u32], window: Span, span: Span, is_written: bool) -> bool {
        let offset = |address: usize| address.min(window.end).saturating_sub(window.start);
        let first = offset(span.start) >> self.shift;
        let end = offset(span.end).div_ceil(1 << self.shift);
        let mut meets = false;
        let words = taken.iter_mut().enumerate().take(end.div_ceil(BITS)).skip(first / BITS);
        for (at, word) in words {
            let bits = u32::MAX << first.saturating_sub(BITS * at)
                & u32::MAX >> (BITS * (at + 1)).saturating_sub(end);
            meets |= *word & bits != 0;
            if is_written {
                *word |= bits;
            }
        }
        meets
    }
}
