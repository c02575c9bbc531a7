//! Memory as a map of cells, with a bit for each that says whether it is taken. If all spans begin at boundaries
//! between cells, two of them meet if they have a cell in common, and their order does not matter.

use super::order::with_table;
use super::spans::Spans;
use crate::math::{div, div_ceil};
use crate::span::Span;

/// Cells of a window for each entry of the table.
pub(super) const BITS: usize = u32::BITS as usize;

/// Returns a span that has a cell in common with one of the first `written` spans. It is one of these itself only if
/// there are no others. All spans begin a multiple of `unit` bytes from the start of their hull.
pub(super) fn meeting(
    written: usize,
    spans: &dyn Spans,
    hull: Span,
    (unit, longest): (usize, usize),
) -> Option<usize> {
    with_table(spans.len(), |taken| {
        let mut low = hull.start;
        while low < hull.end {
            let high = low.saturating_add((taken.len() * BITS).saturating_mul(unit));
            // Some begin below the window.
            let (starts, mut from) = (low.saturating_sub(longest)..high, 0);
            while let Some(index) = spans.next(from, &starts) {
                from = index + 1;
                let (span, is_written) = (spans.span(index), index < written);
                let first = div(span.start.saturating_sub(low), unit);
                let end = div_ceil(span.end.saturating_sub(low), unit);
                for cell in first..if span.is_empty() { first } else { end } {
                    let Some(word) = taken.get_mut(cell / BITS) else { break };
                    let bit = 1 << (cell % BITS);
                    if *word & bit != 0 && (!is_written || written == spans.len()) {
                        return Some(index);
                    }
                    *word |= if is_written { bit } else { 0 };
                }
            }
            taken.fill(0);
            low = high;
        }
        None
    })
}
