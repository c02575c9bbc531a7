//! Whether many spans are apart: exactly, without a heap, whatever their order.

#![forbid(unsafe_code)]

use super::few::{Few, FEW};
use super::order::{in_blocks, in_runs, Visit};
use super::windows::{Bits, Gaps, Summary, Window};
use crate::math::div;
use crate::span::Span;
use core::ops::ControlFlow;

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

    #[inline(always)] // on the way of every call
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
        within(self, |index| self.span(index).start, window, visit)
    }
}

/// What to do at a span of a window.
pub(crate) type See<'a> = dyn FnMut(Span) -> Option<usize> + 'a;

/// [`Spans::within`] by where spans begin, if they are not empty.
#[inline]
pub(crate) fn within<S: Spans + ?Sized>(
    spans: &S,
    start: impl Fn(usize) -> usize,
    window: Span,
    visit: &mut See<'_>,
) -> Option<usize> {
    let (mut end, mut beyond) = (window.end, usize::MAX);
    for index in 0..spans.len() {
        // Of those before the end, more than there can be beyond.
        let ahead = start(index).wrapping_sub(end);
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

/// So many, each by its number.
pub(crate) struct Numbered<'a>(pub usize, pub &'a dyn Fn(usize) -> Span);

impl Spans for Numbered<'_> {
    fn len(&self) -> usize {
        self.0
    }

    fn span(&self, index: usize) -> Span {
        self.1(index)
    }
}

/// Whether it is plain to see that spans are few, and that none of them meets one of those before it, or, where so
/// many are of a first kind, none of those one of the others.
fn are_few_and_apart(spans: &dyn Spans, first: Option<usize>) -> bool {
    let mut few = Few::new();
    let written = first.unwrap_or(spans.len());
    if written > FEW {
        return false;
    }
    (0..written).for_each(|index| few.push(spans.span(index)));
    match first {
        None => few.are_apart(),
        Some(first) => (first..spans.len()).all(|index| few.are_apart_from(spans.span(index))),
    }
}

/// Two of the spans that meet, if any do: the higher number first.
#[cold]
#[inline(never)]
pub(crate) fn meeting(spans: &dyn Spans) -> Option<(usize, usize)> {
    let count = spans.len();
    if are_few_and_apart(spans, None) {
        return None;
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

/// Visits the spans in the order of their addresses; or none, if that all are apart is found sooner.
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
    if are_few_and_apart(spans, Some(written)) {
        return None;
    }
    if let Some(hull) = ascending(written, spans) {
        return crossing_ascending(written, hull, spans);
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

/// From the lowest to the highest byte of the first spans, if each lies above those before it.
fn ascending(count: usize, spans: &dyn Spans) -> Option<Span> {
    let mut hull = Span { start: spans.span(0).start, end: 0 };
    for index in 0..count {
        let span = spans.span(index);
        if span.start < hull.end || span.is_empty() {
            return None;
        }
        hull.end = span.end;
    }
    Some(hull)
}

/// [`crossing`] where those of the first kind ascend: each of the second is looked up among them, and
/// mostly found beside the one before it.
fn crossing_ascending(written: usize, hull: Span, spans: &dyn Spans) -> Option<(usize, usize)> {
    let mut at = 0;
    (written..spans.len()).find_map(|index| {
        let span = spans.span(index);
        if !span.intersects(hull) {
            return None;
        }
        at = first_above(span.start, at, written, spans);
        (spans.span(at).start < span.end).then_some((at, index))
    })
}

/// The first of so many ascending spans that ends above an address, looked for from a guess on in steps
/// that double.
fn first_above(address: usize, guess: usize, count: usize, spans: &dyn Spans) -> usize {
    let is_below = |index: usize| spans.span(index).end <= address;
    let (mut low, mut high, mut step) = (guess, guess, 1);
    while high < count && is_below(high) {
        (low, high, step) = (high + 1, high.saturating_add(step), 2 * step);
    }
    if high == guess {
        while low > 0 && !is_below(low - 1) {
            (high, low, step) = (low - 1, low.saturating_sub(step), 2 * step);
        }
    }
    let mut high = high.min(count);
    while low < high {
        let middle = low.midpoint(high);
        if is_below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Of more spans than this, a pass takes so long that there should be few.
const MANY: usize = if cfg!(libsplit_low_thresholds) { 16 } else { 1 << 14 };

/// Where one begins that meets another, of many spans in no order.
fn met(spans: &dyn Spans) -> Option<usize> {
    let mut summary = Summary::EMPTY;
    let all = (0..spans.len()).map(|index| spans.span(index));
    all.filter(|span| !span.is_empty()).for_each(|span| summary.add(span));
    let cells = summary.hull.len() >> summary.cell();
    match (cells / 16 <= spans.len(), spans.len() > MANY) {
        (true, true) => met_by_bits::<4096>(spans, &summary),
        (true, false) => met_by_bits::<256>(spans, &summary),
        (false, true) => met_by_gaps::<20480, 1536>(spans, &summary),
        (false, false) => met_by_gaps::<2048, 128>(spans, &summary),
    }
}

#[inline(never)] // for its stack
fn met_by_bits<const WORDS: usize>(spans: &dyn Spans, summary: &Summary) -> Option<usize> {
    search(spans, summary.hull.start, &mut Bits::new(&mut [0; WORDS], summary))
}

#[inline(never)] // for its stack
fn met_by_gaps<const ROOM: usize, const BATCH: usize>(
    spans: &dyn Spans,
    summary: &Summary,
) -> Option<usize> {
    let (mut ring, mut batch) = ([0; ROOM], [0; BATCH]);
    // As if each took two bytes.
    let width = div(summary.hull.len(), spans.len() / (ROOM / 2) + 1);
    search(spans, summary.hull.start, &mut Gaps::new(&mut ring, &mut batch, summary, width))
}

/// Looks through memory window by window.
#[inline(never)]
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

#[cfg(test)]
mod tests {
    use super::{crossing, meeting, search, Gaps, Numbered, Span, Summary, MANY};
    use proptest::prelude::*;

    /// Spans of so many units after so many, in no order.
    fn spans(unit: usize, gaps_and_lengths: impl Iterator<Item = (usize, usize)>) -> Vec<Span> {
        let mut end = 4096;
        let spans = gaps_and_lengths.map(|(gap, len)| {
            let start = end + gap * unit;
            end = start + len * unit;
            Span { start, end }
        });
        let mut spans: Vec<_> = spans.collect();
        for at in (1..spans.len()).rev() {
            spans.swap(at, random(at) % (at + 1));
        }
        spans
    }

    fn random(seed: usize) -> usize {
        let hash = (seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        usize::try_from((hash ^ hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33).unwrap()
    }

    fn any_meet(spans: &[Span]) -> bool {
        let mut sorted: Vec<_> = spans.iter().filter(|span| !span.is_empty()).collect();
        sorted.sort_by_key(|span| span.start);
        sorted.windows(2).any(|two| two[1].start < two[0].end)
    }

    /// Asserts that the answer is right.
    fn check(spans: &[Span]) {
        let found = meeting(&Numbered(spans.len(), &|at| spans[at]));
        assert_eq!(found.is_some(), any_meet(spans));
        if let Some((a, b)) = found {
            assert!(a > b && spans[a].intersects(spans[b]));
        }
    }

    /// Asserts that they are apart, and that a byte that belongs to two is found wherever it is.
    fn check_apart(mut spans: Vec<Span>) {
        check(&spans);
        let lowest = spans.iter().map(|span| span.start).min().unwrap();
        for seed in 0..6 {
            let at = random(seed) % spans.len();
            let span = spans[at];
            if span.start > lowest {
                let below = spans.iter().map(|other| other.end).filter(|end| *end <= span.start);
                spans[at].start = below.max().unwrap() - 1;
                assert!(any_meet(&spans));
                check(&spans);
            }
            spans[at] = span;
        }
    }

    /// What most outputs look like: gaps of one kind, now and then a far longer one.
    fn gap() -> impl Strategy<Value = usize> {
        prop_oneof![
            8 => 0usize..3,
            8 => 0usize..30,
            4 => 0usize..3000,
            1 => 0usize..1 << 20,
            1 => 0usize..1 << 28,
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn packed_spans_in_any_order(
            lengths in prop::collection::vec((gap(), 0usize..40), 2..700),
            alike in prop::option::of(1usize..300),
            unit in prop_oneof![Just(1usize), Just(4), Just(12)],
            spoilt in prop::option::of((any::<prop::sample::Index>(), 1usize..5000)),
        ) {
            let lengths = lengths.into_iter().map(|(gap, len)| (gap, alike.unwrap_or(len)));
            let mut spans = spans(unit, lengths);
            if let Some((at, more)) = spoilt {
                let at = at.index(spans.len());
                spans[at].end += more;
            }
            check(&spans);
        }

        /// Of the two kinds only the first ones are apart from each other, in order or not.
        #[test]
        fn two_kinds(
            lengths in prop::collection::vec((0usize..60, 1usize..40), 1..100),
            others in prop::collection::vec((0usize..6000, 0usize..9), 0..100),
            is_in_order: bool,
        ) {
            let mut all = spans(1, lengths.into_iter());
            if is_in_order {
                all.sort_by_key(|span| span.start);
            }
            let written = all.len();
            // Most lie where nothing is written.
            let free = |span: &Span| !all.iter().any(|written| written.intersects(*span));
            let others: Vec<_> = others.into_iter().enumerate().filter_map(|(at, (start, len))| {
                let span = Span { start: 4096 + start, end: 4096 + start + len };
                (at % 40 == 39 || free(&span)).then_some(span)
            }).collect();
            let meets = !others.iter().all(free);
            all.extend(others);
            let found = crossing(written, &Numbered(all.len(), &|at| all[at]));
            prop_assert_eq!(found.is_some(), meets);
            if let Some((a, b)) = found {
                prop_assert!(a < written && b >= written && all[a].intersects(all[b]));
            }
        }

        /// However little is taken at a time, and however wrong the first guess.
        #[test]
        fn windows_of_any_size(
            lengths in prop::collection::vec((gap(), 1usize..40), 2..300),
            alike in prop::option::of(1usize..300),
            more in prop_oneof![Just(0usize), 1usize..5000],
            room in 600usize..2000,
            slots in 1usize..40,
            width in 0u32..40,
        ) {
            let lengths = lengths.into_iter().map(|(gap, len)| (gap, alike.unwrap_or(len)));
            let mut spans = spans(2, lengths);
            spans[0].end += more;
            let (mut ring, mut batch) = (vec![0; room], vec![0; slots]);
            let span = |at: usize| spans[at];
            let all = Numbered(spans.len(), &span);
            let mut summary = Summary::EMPTY;
            for span in &spans {
                summary.add(*span);
            }
            let mut gaps = Gaps::new(&mut ring, &mut batch, &summary, 1 << width);
            let found = search(&all, summary.hull.start, &mut gaps);
            prop_assert_eq!(found.is_some(), any_meet(&spans));
            if let Some(start) = found {
                prop_assert!(spans.iter().any(|span| span.start == start));
            }
        }
    }

    #[test]
    fn a_great_many_in_no_order() {
        for count in [MANY, MANY + 1, 50_000] {
            // Side by side, near one another, and far apart.
            for gap in [1, 20, 2000, 1 << 20] {
                let gaps = |at| random(at) % gap;
                check_apart(spans(12, (0..count).map(|at| (gaps(at), 1))));
                check_apart(spans(1, (0..count).map(|at| (gaps(at), 1 + random(at + 7) % 64))));
            }
        }
    }

    /// Two heaps far apart, a few lonely ones, and one longer than a batch has numbers for.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_great_many_here_and_there() {
        let gap = |at: usize| match at {
            9_000 => 1 << 45,
            9_002 => 1 << 34,
            18_000.. => 1 << (at % 30),
            _ => random(at) % 16,
        };
        let len = |at: usize| if at == 9_001 { 3 << 33 } else { 1 + at % 40 };
        check_apart(spans(1, (0..18_050).map(|at| (gap(at), len(at)))));
        // It lies over some that begin many windows above.
        let mut all = spans(1, (0..18_050).map(|at| (gap(at), len(at))));
        all.iter_mut().filter(|span| span.len() > 1 << 33).for_each(|span| span.end += 1 << 35);
        assert!(any_meet(&all));
        check(&all);
    }
}
