//! Memory as a map of cells, with a bit for each that says whether it is taken. If all spans begin at boundaries
//! between cells, two of them meet if they have a cell in common, and their order does not matter.

use super::order::{with_table, SMALL};
use super::spans::Spans;
use crate::span::Span;

/// Cells of 2 to the power of `shift` bytes, from the lowest address on.
pub(super) struct Grid {
    hull: Span,
    shift: u32,
    /// Bytes of the longest span.
    longest: usize,
}

/// Bits of a word of the map.
const BITS: usize = u32::BITS as usize;

impl Grid {
    /// Returns the grid of `count` spans if they are so dense that it takes no more passes than visiting them in order,
    /// and if each lies in at most three windows. `starts` has the bits of all their addresses.
    pub(super) fn new(count: usize, hull: Span, starts: usize, longest: usize) -> Option<Self> {
        // However far apart spans are, the cells of a window can be numbered.
        let shift = starts.trailing_zeros().min(12);
        let is_dense = hull.len() >> shift <= count.saturating_mul(BITS);
        let are_short = longest >> shift <= SMALL * BITS;
        (is_dense && are_short).then_some(Self { hull, shift, longest })
    }

    /// Returns a span that has a cell in common with one of the first `written` spans. It is one of these itself only
    /// if there are no others.
    pub(super) fn meeting<S: Spans + ?Sized>(&self, written: usize, spans: &S) -> Option<usize> {
        let among = written == spans.len();
        let mut found = None;
        with_table(spans.len(), &mut |taken| {
            let mut low = self.hull.start;
            while low < self.hull.end && found.is_none() {
                let high = low.saturating_add((taken.len() * BITS) << self.shift);
                // Some begin below the window.
                let begins = low.saturating_sub(self.longest)..high;
                found = (0..spans.len()).find(|index| {
                    begins.contains(&spans.start(*index))
                        && self.is_taken(taken, low, spans.span(*index), *index < written)
                        && (among || *index >= written)
                });
                low = high;
                taken.fill(0);
            }
        });
        found
    }

    /// Returns whether a cell of a span is taken, of those from `low` on. If the span is written, takes them.
    fn is_taken(&self, taken: &mut [u32], low: usize, span: Span, is_written: bool) -> bool {
        let cells = taken.len() * BITS;
        let first = span.start.saturating_sub(low) >> self.shift;
        let end = span.end.saturating_sub(low).div_ceil(1 << self.shift);
        let mut is_taken = false;
        for cell in first..end.min(cells) {
            let (bit, Some(word)) = (1 << (cell % BITS), taken.get_mut(cell / BITS)) else { break };
            is_taken |= *word & bit != 0;
            if is_written {
                *word |= bit;
            }
        }
        is_taken
    }
}
