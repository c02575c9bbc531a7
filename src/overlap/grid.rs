//! Memory as a map of cells, a window of it at a time: of spans that all begin and end at whole numbers of
//! cells, two meet if they have a cell in common. For many that lie close together it takes few passes.

#![forbid(unsafe_code)]

use super::order::{BLOCK, LARGE_BLOCK, MANY};
use super::Spans;
use crate::span::Span;

/// Cells of 2 to the power of `shift` bytes from the lowest address on.
pub(crate) struct Grid {
    hull: Span,
    shift: u32,
    /// Bytes of the longest span.
    longest: usize,
}

/// Words of a window's bits, of few spans and of many.
const WORDS: usize = 256;
const LARGE_WORDS: usize = 2048;

impl Grid {
    /// The grid of some spans, if they lie close enough.
    pub(crate) fn over(spans: &dyn Spans) -> Option<Self> {
        let (mut hull, mut bits, mut count, mut longest) = (Span::NOWHERE, 0, 0, 0);
        for span in (0..spans.len()).map(|at| spans.span(at)).filter(|span| !span.is_empty()) {
            hull = hull.hull(span);
            bits |= span.start | span.len();
            longest = longest.max(span.len());
            count += 1;
        }
        let shift = bits.trailing_zeros().min(12);
        let windows = hull.end.checked_sub(hull.start)? >> shift;
        // A grid should take no more passes than the other way.
        let (words, block) = if count > MANY { (LARGE_WORDS, LARGE_BLOCK) } else { (WORDS, BLOCK) };
        (windows / (64 * words) <= count / block).then_some(Self { hull, shift, longest })
    }

    /// Whether two of the first `written` spans meet, if that counts `among` them, or one of them one of the others.
    pub(crate) fn any_meet(&self, written: usize, among: bool, spans: &dyn Spans) -> bool {
        if spans.len() > MANY {
            self.any_meet_by::<LARGE_WORDS>(written, among, spans)
        } else {
            self.any_meet_by::<WORDS>(written, among, spans)
        }
    }

    #[inline(never)] // for its stack
    #[allow(clippy::large_stack_arrays)] // no heap
    fn any_meet_by<const N: usize>(&self, written: usize, among: bool, spans: &dyn Spans) -> bool {
        self.search(&mut [0; N], written, among, spans)
    }

    #[inline(never)] // once in the library
    fn search(&self, taken: &mut [u64], written: usize, among: bool, spans: &dyn Spans) -> bool {
        let (mut start, mut met) = (self.hull.start, false);
        while start < self.hull.end && !met {
            let end = start.saturating_add((64 * taken.len()) << self.shift);
            taken.fill(0);
            spans.starts(start.saturating_sub(self.longest), end, &mut |index, _| {
                let (span, is_written) = (spans.span(index), index < written);
                if !span.is_empty() && span.end > start {
                    let within = Span { start: span.start.max(start), end: span.end.min(end) };
                    let meets = self.meets(taken, start, within, is_written);
                    met |= meets && (among || !is_written);
                }
                if met {
                    0
                } else {
                    end
                }
            });
            start = end;
        }
        met
    }

    /// Whether one of the cells of a span that lies in the window is taken; if it is written, takes them.
    fn meets(&self, taken: &mut [u64], window: usize, span: Span, is_written: bool) -> bool {
        let first = (span.start - window) >> self.shift;
        let end = (span.end - window) >> self.shift;
        let mut meets = false;
        let words = taken.iter_mut().enumerate().take(end.div_ceil(64));
        for (at, word) in words.skip(first / 64) {
            let bits = !0u64 << first.saturating_sub(64 * at)
                & !0u64 >> (64 * (at + 1)).saturating_sub(end);
            meets |= *word & bits != 0;
            if is_written {
                *word |= bits;
            }
        }
        meets
    }
}
