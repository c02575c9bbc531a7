//! Decides whether any two spans of memory meet. They have numbers, and may be in any order.

use super::order::{in_order, with_table, SMALL};
use super::Trail;
use crate::math::{div, div_ceil, gcd};
use crate::span::Span;
use core::ops::{ControlFlow, Range};

/// Spans by number.
pub(crate) trait Spans {
    fn len(&self) -> usize;

    /// Returns the span with this number; an empty one meets nothing.
    fn span(&self, index: usize) -> Span;

    /// Returns where the span with this number starts. That of an empty one may be any address.
    fn start(&self, index: usize) -> usize {
        self.span(index).start
    }

    /// Returns the first span, from a number on, that starts at one of these addresses.
    fn next(&self, from: usize, starts: &Range<usize>) -> Option<usize> {
        (from..self.len()).find(|index| starts.contains(&self.start(*index)))
    }
}

/// A number of spans, and a function that returns each.
pub(crate) struct Numbered<'a>(pub usize, pub &'a dyn Fn(usize) -> Span);

impl Spans for Numbered<'_> {
    fn len(&self) -> usize {
        self.0
    }

    fn span(&self, index: usize) -> Span {
        self.1(index)
    }
}

/// All addresses at which a span may start.
pub(super) const EVERYWHERE: Range<usize> = 0..usize::MAX;

/// Returns the spans that are not empty and start at one of these addresses, with their numbers.
pub(super) fn filled<'a>(
    spans: &'a dyn Spans,
    starts: &'a Range<usize>,
) -> impl Iterator<Item = (usize, Span)> + 'a {
    let all = (0..spans.len()).map(|index| (index, spans.span(index)));
    all.filter(|(_, span)| !span.is_empty() && starts.contains(&span.start))
}

/// Returns two spans that meet, if any do: the higher number first.
pub(crate) fn first_meeting(spans: &dyn Spans) -> Option<(usize, usize)> {
    let found = find(spans.len(), spans);
    found.map(|(one, other)| (one.max(other), one.min(other)))
}

/// Returns one of the first `written` spans and one of the others that meet, if any do.
pub(crate) fn first_crossing(written: usize, spans: &dyn Spans) -> Option<(usize, usize)> {
    let found = find(written, spans);
    found.map(|(one, other)| (one.min(other), one.max(other)))
}

/// Up to this many written spans are compared with each of the others.
const FEW: usize = 16;

/// Cells of a map for each entry of a table.
const BITS: usize = u32::BITS as usize;

/// Returns one of the first `written` spans and one of the others that meet; if there are no others, two of them.
#[cold]
fn find(written: usize, spans: &dyn Spans) -> Option<(usize, usize)> {
    let among = written == spans.len();
    if written <= FEW {
        let mut few = [Span::default(); FEW];
        return filled(spans, &EVERYWHERE).find_map(|(index, span)| {
            let met = few.iter().take(index).position(|other| !other.is_apart(span));
            if index < written {
                if let Some(slot) = few.get_mut(index) {
                    *slot = span;
                }
                if !among {
                    return None;
                }
            }
            Some((index, met?))
        });
    }
    let mut trail = Trail::EMPTY;
    let (mut unit, mut longest, mut total, mut count) = (0, 0, 0usize, 0usize);
    for (_, span) in filled(spans, &EVERYWHERE) {
        if !trail.hull.is_empty() {
            unit = gcd(span.start.abs_diff(trail.hull.start), unit);
        }
        trail.push(span);
        longest = longest.max(span.len());
        total = total.saturating_add(span.len());
        count += 1;
    }
    if trail.is_apart {
        return None;
    }
    // If spans are dense and short, a map takes no more passes than visiting them in order, unless written spans reach
    // over each other so far that most cells would be marked many times.
    let cells = |bytes: usize| div(bytes, unit.max(1));
    let most = total.max(trail.hull.len());
    if cells(most) <= count.saturating_mul(BITS) && cells(longest) <= SMALL * BITS {
        let index = meeting_in_map(written, spans, trail.hull, unit.max(1), longest)?;
        let span = spans.span(index);
        let meets = |other: &usize| *other != index && spans.span(*other).intersects(span);
        return (0..written).find(meets).map(|other| (index, other));
    }
    // How far written spans and others reach, and which of them reach there.
    let mut ends = [(0, 0); 2];
    let mut found = (spans.len() - 1, 0);
    let flow = in_order(spans, &EVERYWHERE, &mut |index, span| {
        let [first, second] = &mut ends;
        let (own, other) = if index < written { (first, second) } else { (second, first) };
        let (end, met) = if among { *own } else { *other };
        if span.start < end {
            found = (index, met);
            return ControlFlow::Break(());
        }
        *own = (*own).max((span.end, index));
        ControlFlow::Continue(())
    });
    flow.is_break().then_some(found)
}

/// Returns what [`find`] does, of a pair only the span that has the higher number or is not written. There is a bit for
/// each cell of `unit` bytes that says whether a written span lies in it. All spans begin at boundaries between cells, so
/// two of them meet if they have a cell in common, and their order does not matter. All lie within the hull, and the
/// longest has `longest` bytes.
fn meeting_in_map(
    written: usize,
    spans: &dyn Spans,
    hull: Span,
    unit: usize,
    longest: usize,
) -> Option<usize> {
    with_table(spans.len(), |taken| {
        let mut low = hull.start;
        while low < hull.end {
            let high = low.saturating_add((taken.len() * BITS).saturating_mul(unit));
            // Some begin below the window.
            let starts = low.saturating_sub(longest)..high;
            let mut from = 0;
            while let Some(index) = spans.next(from, &starts) {
                from = index + 1;
                let span = spans.span(index);
                if span.is_empty() {
                    continue;
                }
                let is_written = index < written;
                let first = div(span.start.saturating_sub(low), unit);
                let end = div_ceil(span.end.saturating_sub(low), unit);
                for cell in first..end {
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

#[cfg(test)]
mod tests {
    use super::{first_crossing, first_meeting, Numbered, BITS, SMALL};
    use crate::span::Span;
    use proptest::prelude::*;

    /// Spans of so many units after gaps of so many, in no order.
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
        let found = first_meeting(&Numbered(spans.len(), &|at| spans[at]));
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

    /// What most outputs look like: gaps of one kind, and now and then a far longer one.
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

        /// Of the two kinds, only the first ones are apart from each other, in order or not.
        #[test]
        fn two_kinds(
            lengths in prop::collection::vec((0usize..60, 1usize..40), 1..100),
            others in prop::collection::vec((0usize..6000, 0usize..60), 0..200),
            is_in_order: bool,
            scale in prop_oneof![Just(1usize), Just(1001)],
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
            // Close together, or far apart.
            let spans = |at: usize| Span { start: all[at].start * scale, end: all[at].end * scale };
            let found = first_crossing(written, &Numbered(all.len(), &spans));
            prop_assert_eq!(found.is_some(), meets);
            if let Some((a, b)) = found {
                prop_assert!(a < written && b >= written && all[a].intersects(all[b]));
            }
        }
    }

    #[test]
    fn a_great_many_in_no_order() {
        for count in [17, 2_000, 20_000] {
            // Side by side, near one another, and far apart.
            for gap in [1, 20, 2000, 1 << 20] {
                let gaps = |at| random(at) % gap;
                check_apart(spans(12, (0..count).map(|at| (gaps(at), 1))));
                check_apart(spans(1, (0..count).map(|at| (gaps(at), 1 + random(at + 7) % 64))));
            }
        }
    }

    /// One of them begins below a window of the map, and the other one in it.
    #[test]
    fn two_that_meet_where_a_window_of_the_map_begins() {
        let span =
            |at: usize| Span { start: 4096 + 30 * at + at % 2, end: 4116 + 30 * at + at % 2 };
        let mut apart: Vec<_> = (0..4000).map(span).collect();
        apart.rotate_left(1000);
        check(&apart);
        for window in 1..4 {
            let begin = 4096 + window * SMALL * BITS;
            let across = apart.iter().filter(|span| span.start < begin && begin < span.end);
            for other in across.map(|span| Span { start: begin, end: span.end }) {
                check(&[&apart[..], &[other]].concat());
            }
        }
    }

    /// An empty span has no cells, wherever it lies.
    #[test]
    fn empty_spans_in_the_way() {
        let span = |at: usize| Span { start: 4096 + 8 * at, end: 4104 + 8 * at };
        let mut all: Vec<_> = (0..40).rev().map(span).collect();
        all.splice(3..3, [4097, 4200, 4411].map(|start| Span { start, end: start }));
        check(&all);
        all.push(span(7));
        check(&all);
    }

    /// How dense spans are is a matter of those that are not empty.
    #[test]
    fn a_few_among_a_great_many_empty_ones() {
        let (count, calls) = (100_000, std::cell::Cell::new(0));
        let span = |at: usize| {
            calls.set(calls.get() + 1);
            let start = 4096 + (at / 5000 * 7919 % 20) * 150_001 + (at / 5000).pow(2);
            let len = if at.is_multiple_of(5000) { 77 } else { 0 };
            Span { start, end: start + len }
        };
        assert_eq!(first_meeting(&Numbered(count, &span)), None);
        assert!(calls.get() < 12 * count, "{} calls", calls.get());
    }

    /// Two heaps far apart, a few lonely spans, and one longer than a batch has numbers for.
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
