//! Whether many spans are apart: exactly, without a heap, whatever their order.

#![forbid(unsafe_code)]

use crate::order::{in_blocks, in_runs, Visit};
use crate::span::Span;
use crate::windows::{Bits, Gaps, Window};
use core::ops::{ControlFlow, Range};

/// Sees spans go by: in most calls each lies above or below all before it, and that is all there is
/// to it.
#[derive(Clone, Copy)]
pub(crate) struct Trail {
    /// From the lowest to the highest byte of those seen.
    pub hull: Span,
    pub is_apart: bool,
}

impl Trail {
    pub(crate) const EMPTY: Self = Self { hull: Span::NOWHERE, is_apart: true };

    #[inline(always)]
    #[allow(clippy::inline_always)] // on the way of every call
    pub(crate) fn push(&mut self, span: Span) {
        if span.start < self.hull.end {
            return self.push_below(span);
        }
        // In the order of addresses, as in most calls.
        self.hull.end = span.end;
        if span.start < self.hull.start {
            self.hull.start = span.start;
        }
    }

    #[cold]
    #[inline(never)] // so that what has been seen stays in memory, and registers are free
    fn push_below(&mut self, span: Span) {
        self.is_apart &= span.is_apart(self.hull);
        self.hull = self.hull.hull(span);
    }
}

/// Spans by number.
pub(crate) trait Spans {
    fn len(&self) -> usize;

    /// Empty for one that meets nothing.
    fn span(&self, index: usize) -> Span;

    /// Shows those that begin in a window, which from then on ends where the answer says. Gives an
    /// address that the first beyond it begins at or above; `None` if there was no answer.
    fn within(&self, window: Span, visit: &mut See<'_>) -> Option<usize> {
        within(self, (0..self.len()).map(|index| self.span(index).start), window, visit)
    }
}

/// What to do at a span of a window.
pub(crate) type See<'a> = dyn FnMut(Span) -> Option<usize> + 'a;

/// [`Spans::within`] by where spans begin, if they are not empty.
#[inline]
pub(crate) fn within<S: Spans + ?Sized>(
    spans: &S,
    starts: impl Iterator<Item = usize>,
    window: Span,
    visit: &mut See<'_>,
) -> Option<usize> {
    let (mut end, mut beyond) = (window.end, usize::MAX);
    for (index, start) in starts.enumerate() {
        // Of those before the end, more than there can be beyond.
        let ahead = start.wrapping_sub(end);
        beyond = beyond.min(ahead);
        if ahead >= window.start.wrapping_sub(end) {
            let span = spans.span(index);
            if !span.is_empty() {
                end = visit(span)?;
            }
        }
    }
    Some(end.saturating_add(beyond))
}

impl<F: Fn(usize) -> Span> Spans for (usize, F) {
    fn len(&self) -> usize {
        self.0
    }

    fn span(&self, index: usize) -> Span {
        self.1(index)
    }
}

/// The spans of so many are compared each with each.
const FEW: usize = 8;

/// Two of the spans that meet, if any do: the higher number first.
#[cold]
#[inline(never)]
pub(crate) fn meeting(spans: &dyn Spans) -> Option<(usize, usize)> {
    let count = spans.len();
    if count <= FEW {
        let pairs = (1..count).flat_map(|index| (0..index).map(move |other| (index, other)));
        return pairs.into_iter().find(|(a, b)| spans.span(*a).intersects(spans.span(*b)));
    }
    let (mut end, mut furthest, mut found) = (0, 0, None);
    let is_answered = in_runs(count, &|index| start(spans, index), &mut |index| {
        let span = spans.span(index);
        if span.start < end {
            found = Some((index.max(furthest), index.min(furthest)));
            return ControlFlow::Break(());
        }
        (end, furthest) = (span.end, index);
        ControlFlow::Continue(())
    });
    if is_answered.is_some() {
        return found;
    }
    let met = met(spans)?;
    let one = (0..count).find(|index| start(spans, *index) == Some(met))?;
    let span = spans.span(one);
    let other = (0..count).find(|index| *index != one && spans.span(*index).intersects(span))?;
    Some((one.max(other), one.min(other)))
}

fn start(spans: &dyn Spans, index: usize) -> Option<usize> {
    Some(spans.span(index)).filter(|span| !span.is_empty()).map(|span| span.start)
}

/// Visits the spans in the order of their addresses; or none, if it is found before that all are
/// apart.
pub(crate) fn in_order_if_any_meet(spans: &dyn Spans, visit: &mut Visit<'_>) {
    let start = |index| start(spans, index);
    if in_runs(spans.len(), &start, visit).is_none() && met(spans).is_some() {
        in_blocks(spans.len(), &start, visit);
    }
}

/// A span of the first kind, of which there are `written`, that meets one of the second, which
/// follow it in number.
#[cold]
#[inline(never)]
pub(crate) fn crossing(written: usize, spans: &dyn Spans) -> Option<(usize, usize)> {
    // Those of one kind seldom lie among the other: then this is all.
    let hull = |range: Range<usize>| {
        let spans = range.map(|index| spans.span(index)).filter(|span| !span.is_empty());
        spans.fold(Span::NOWHERE, Span::hull)
    };
    if !hull(0..written).intersects(hull(written..spans.len())) {
        return None;
    }
    // Visited together in order, one that begins before the other kind has ended lies over it.
    let (mut ends, mut found) = ([(0, 0); 2], None);
    in_order_if_any_meet(spans, &mut |index| {
        let [first, second] = &mut ends;
        let (own, other) = if index < written { (first, second) } else { (second, first) };
        let span = spans.span(index);
        if span.start < other.0 {
            found = Some((index.min(other.1), index.max(other.1)));
            return ControlFlow::Break(());
        }
        *own = (*own).max((span.end, index));
        ControlFlow::Continue(())
    });
    found
}

/// Of more spans than this, a pass takes so long that there should be few.
const MANY: usize = 1 << 14;

/// Where one begins that meets another, of many spans in no order.
fn met(spans: &dyn Spans) -> Option<usize> {
    let layout = Layout::of(spans);
    let cells = layout.hull.len() >> layout.cell;
    match (cells / 16 <= spans.len(), spans.len() > MANY) {
        (true, true) => met_by_bits::<4096>(spans, &layout),
        (true, false) => met_by_bits::<256>(spans, &layout),
        (false, true) => met_by_gaps::<24576, 1024>(spans, &layout),
        (false, false) => met_by_gaps::<2048, 128>(spans, &layout),
    }
}

#[inline(never)] // for its stack
fn met_by_bits<const WORDS: usize>(spans: &dyn Spans, layout: &Layout) -> Option<usize> {
    search(spans, layout.hull.start, &mut Bits::new(&mut [0; WORDS], layout.cell))
}

#[inline(never)] // for its stack
fn met_by_gaps<const ROOM: usize, const BATCH: usize>(
    spans: &dyn Spans,
    layout: &Layout,
) -> Option<usize> {
    let Layout { hull, cell, length } = *layout;
    let (mut ring, mut batch) = ([0; ROOM], [0; BATCH]);
    // As if each took two bytes.
    let width = hull.len() / (spans.len() / (ROOM / 2) + 1);
    let mut gaps = Gaps::new(&mut ring, &mut batch, width, cell, length);
    search(spans, hull.start, &mut gaps)
}

/// Looks through memory window by window.
fn search(spans: &dyn Spans, lowest: usize, set: &mut dyn Window) -> Option<usize> {
    // Where the windows before and their spans have ended.
    let (mut next, mut reach) = (lowest, 0);
    while next < usize::MAX {
        let window = set.open(next);
        let (mut longest, mut found) = (Span::default(), None);
        let beyond = spans.within(window, &mut |span| {
            if span.end > longest.end {
                longest = span;
            }
            let pushed = if span.start < reach { Err(span.start) } else { set.push(span) };
            pushed.map_err(|start| found = Some(start)).ok()
        });
        let Some(beyond) = beyond else { return found };
        match set.close() {
            Ok((end, highest)) => {
                next = if end < window.end { end } else { beyond };
                // Had it been dropped, and another ended above the window, it would lie over that.
                reach = reach.max(if longest.start < end { longest.end } else { highest });
            }
            Err(start) => return Some(start),
        }
    }
    None
}

/// How spans lie.
struct Layout {
    hull: Span,
    /// All begin and end at whole numbers of cells; their size by its logarithm.
    cell: u32,
    /// That of all, if they are alike.
    length: Option<usize>,
}

impl Layout {
    fn of(spans: &dyn Spans) -> Self {
        let (mut hull, mut bits, mut length, mut are_alike) = (Span::NOWHERE, 0, 0, true);
        for span in (0..spans.len()).map(|index| spans.span(index)) {
            if !span.is_empty() {
                hull = hull.hull(span);
                bits |= span.start | span.len();
                are_alike &= length == 0 || length == span.len();
                length = span.len();
            }
        }
        let cell = bits.trailing_zeros().min(usize::BITS - 1);
        Self { hull, cell, length: are_alike.then_some(length) }
    }
}

#[cfg(test)]
mod tests {
    use super::{meeting, Span};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn packed_spans_in_any_order(
            lengths in prop::collection::vec((0usize..40, prop_oneof![4 => Just(0usize), 1 => 0usize..30]), 2..700),
            unit in prop_oneof![Just(1usize), Just(4), Just(12)],
            turns in any::<u64>(),
            spoilt in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut next = 4096;
            let mut spans: Vec<Span> = lengths.iter().map(|(len, gap)| {
                let start = next + gap * unit;
                next = start + len * unit;
                Span { start, end: next }
            }).collect();
            if let Some(spoilt) = spoilt {
                let at = spoilt.index(spans.len());
                spans[at].start -= 1;
            }
            let mut state = turns | 1;
            for at in (1..spans.len()).rev() {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                spans.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
            }
            let expected = (1..spans.len()).any(|at| spans[..at].iter().any(|b| spans[at].intersects(*b)));
            let found = meeting(&(spans.len(), |at| spans[at]));
            prop_assert_eq!(found.is_some(), expected);
            if let Some((a, b)) = found {
                prop_assert!(a > b && spans[a].intersects(spans[b]));
            }
        }
    }


    /// In an order that is neither up nor down: by windows of memory.
    #[test]
    fn a_great_many_in_no_order() {
        let count = 400_009;
        let shuffled = |at: usize| 4096 + 12 * (at * 12_345 % count);
        let span = |at| Span { start: shuffled(at), end: shuffled(at) + 12 };
        assert_eq!(meeting(&(count, span)), None);
        let longer = |at| Span { end: span(at).end + usize::from(at == 2000), ..span(at) };
        let (a, b) = meeting(&(count, longer)).unwrap();
        assert!(longer(a).intersects(longer(b)));
    }
}
