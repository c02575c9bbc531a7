//! Spans visited in the order of their addresses, without a heap and on a small stack: what ascends
//! already is merged, anything else is taken a block of the lowest at a time.

#![forbid(unsafe_code)]

use super::Spans;
use core::ops::ControlFlow;

/// So many ascending runs are merged.
const RUNS: usize = if cfg!(test) { 2 } else { 32 };
/// So many of the lowest are found in one pass.
pub(crate) const BLOCK: usize = 256;
/// Of more numbers than this, so many: then a pass takes long, and 16 KiB of the stack are the lesser evil.
pub(crate) const MANY: usize = 1 << 14;
pub(crate) const LARGE_BLOCK: usize = 2048;

/// What to do at the span with this number.
pub(crate) type Visit<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// Calls `visit` for each span that is not empty, the lowest first, until it breaks.
pub(crate) fn in_order(spans: &dyn Spans, visit: &mut Visit<'_>) {
    if in_runs(spans, visit).is_none() {
        in_blocks(spans, visit);
    }
}

/// [`in_order`] of anything, a block of the lowest at a time.
#[cold]
#[inline(never)]
pub(crate) fn in_blocks(spans: &dyn Spans, visit: &mut Visit<'_>) {
    if spans.len() > MANY {
        by_blocks_of::<LARGE_BLOCK>(spans, visit);
    } else {
        by_blocks_of::<BLOCK>(spans, visit);
    }
}

#[inline(never)] // for its stack
#[allow(clippy::large_stack_arrays)] // no heap
fn by_blocks_of<const N: usize>(spans: &dyn Spans, visit: &mut Visit<'_>) {
    by_blocks(Lowest { entries: &mut [0; N], len: 0 }, spans, visit);
}

/// Where a span begins, unless it is empty.
fn start(spans: &dyn Spans, index: usize) -> Option<usize> {
    Some(spans.span(index)).filter(|span| !span.is_empty()).map(|span| span.start)
}

/// A run of ascending spans: the next number, and where the run ends.
#[derive(Clone, Copy)]
struct Run {
    next: usize,
    end: usize,
    key: usize,
}

impl Run {
    /// Goes on to the next one that is not empty.
    fn settle(&mut self, spans: &dyn Spans) {
        while self.next < self.end {
            if let Some(found) = start(spans, self.next) {
                self.key = found;
                return;
            }
            self.next += 1;
        }
    }
}

/// [`in_order`], far faster, of what consists of a few ascending runs; `None` if there are more.
#[cold]
#[inline(never)] // its stack is not that of the other way
pub(crate) fn in_runs(spans: &dyn Spans, visit: &mut Visit<'_>) -> Option<()> {
    let mut runs = [Run { next: 0, end: 0, key: 0 }; RUNS];
    let (mut len, mut highest) = (0, None);
    for index in 0..spans.len() {
        let Some(key) = start(spans, index) else { continue };
        if highest.is_none_or(|highest| key < highest) {
            let run = runs.get_mut(len)?;
            (run.next, run.key) = (index, key);
            len += 1;
        }
        highest = Some(key);
        // So far: the next run begins further on.
        runs.get_mut(len.wrapping_sub(1))?.end = index + 1;
    }
    let runs = runs.get_mut(..len)?;
    while let Some(run) = runs.iter_mut().filter(|run| run.next < run.end).min_by_key(|run| run.key)
    {
        if visit(run.next).is_break() {
            break;
        }
        run.next += 1;
        run.settle(spans);
    }
    Some(())
}

/// Visits anything, in a pass for each block of the lowest that have not been visited yet. An entry is how far a
/// span begins above a floor, and its number in the lower bits; what begins too far above waits for the next floor.
#[inline(never)]
fn by_blocks(mut lowest: Lowest<'_>, spans: &dyn Spans, visit: &mut Visit<'_>) {
    let shift = (spans.len() as u64 | 1).ilog2() + 1;
    let window = usize::try_from(u64::MAX >> shift).unwrap_or(usize::MAX);
    let above = |entry: u64| usize::try_from(entry >> shift).unwrap_or(usize::MAX);
    let mut floor = first_from(spans, 1);
    while let Some(begin) = floor {
        let mut visited = None;
        loop {
            lowest.len = 0;
            let mut high = begin.saturating_add(window);
            spans.starts(begin + visited.map_or(0, above), high, &mut |index, start| {
                let entry = ((start - begin) as u64) << shift | index as u64;
                if visited.is_none_or(|visited| entry > visited) && !spans.span(index).is_empty() {
                    lowest.offer(entry);
                    if lowest.is_full() {
                        high = begin + above(lowest.at(0)) + 1;
                    }
                }
                high
            });
            for entry in lowest.ascending() {
                visited = Some(*entry);
                let index = entry & ((1 << shift) - 1);
                if visit(usize::try_from(index).unwrap_or(0)).is_break() {
                    return;
                }
            }
            if !lowest.is_full() {
                break;
            }
        }
        floor = first_from(spans, begin.saturating_add(window));
    }
}

/// Where the lowest span begins of those that begin from an address on.
fn first_from(spans: &dyn Spans, low: usize) -> Option<usize> {
    let (mut found, mut high) = (None, usize::MAX);
    spans.starts(low, high, &mut |index, start| {
        if !spans.span(index).is_empty() {
            (found, high) = (Some(start), start);
        }
        high
    });
    found
}

/// The lowest of the entries offered, as many as there is room for: a heap with the highest on top.
struct Lowest<'a> {
    entries: &'a mut [u64],
    len: usize,
}

impl Lowest<'_> {
    fn is_full(&self) -> bool {
        self.len >= self.entries.len()
    }

    #[inline]
    fn at(&self, at: usize) -> u64 {
        self.entries.get(at).copied().unwrap_or_default()
    }

    #[inline]
    fn set(&mut self, at: usize, entry: u64) {
        if let Some(slot) = self.entries.get_mut(at) {
            *slot = entry;
        }
    }

    #[inline]
    fn offer(&mut self, entry: u64) {
        if !self.is_full() {
            // Up from the end.
            let mut at = self.len;
            self.len += 1;
            while at > 0 && self.at((at - 1) / 2) < entry {
                self.set(at, self.at((at - 1) / 2));
                at = (at - 1) / 2;
            }
            self.set(at, entry);
        } else if entry < self.at(0) {
            self.sink(entry, self.len);
        }
    }

    /// Puts an entry in place of the highest of the first `len`.
    #[inline(never)] // once in the library
    fn sink(&mut self, entry: u64, len: usize) {
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < len && self.at(child) < self.at(child + 1) {
                child += 1;
            }
            if child >= len || self.at(child) <= entry {
                break;
            }
            self.set(at, self.at(child));
            at = child;
        }
        self.set(at, entry);
    }

    /// Sorts them.
    fn ascending(&mut self) -> &[u64] {
        for end in (1..self.len).rev() {
            let (highest, last) = (self.at(0), self.at(end));
            self.sink(last, end);
            self.set(end, highest);
        }
        self.entries.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Numbered;
    use super::{in_blocks, in_runs, ControlFlow, BLOCK, RUNS};
    use crate::span::Span;
    use proptest::prelude::*;

    fn visited(keys: &[Option<usize>]) -> Vec<usize> {
        let span = |index: usize| {
            keys[index].map_or(Span::default(), |key| Span { start: key + 1, end: key + 2 })
        };
        let spans = Numbered(keys.len(), &span);
        let mut visited = vec![];
        in_blocks(&spans, &mut |index| {
            visited.push(index);
            ControlFlow::Continue(())
        });
        let mut in_order = vec![];
        let answered = in_runs(&spans, &mut |index| {
            in_order.push(index);
            ControlFlow::Continue(())
        });
        assert!(answered.is_none() && in_order.is_empty() || in_order == visited);
        visited
    }

    fn expected(keys: &[Option<usize>]) -> Vec<usize> {
        let mut expected: Vec<_> = (0..keys.len()).filter(|i| keys[*i].is_some()).collect();
        expected.sort_by_key(|i| keys[*i]);
        expected
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        #[test]
        fn keys_in_any_order_with_gaps(
            keys in prop::collection::vec(prop::option::weighted(0.9, 0usize..500), 0..3 * BLOCK),
        ) {
            prop_assert_eq!(
                visited(&keys).into_iter().map(|i| keys[i]).collect::<Vec<_>>(),
                expected(&keys).into_iter().map(|i| keys[i]).collect::<Vec<_>>()
            );
            let mut sorted = visited(&keys);
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), keys.iter().flatten().count());
        }
    }

    #[test]
    fn a_great_many() {
        let count = super::MANY + 4321;
        let keys: Vec<_> = (0..count).map(|i| Some(i * 7919 % count)).collect();
        assert_eq!(visited(&keys), expected(&keys));
    }

    /// Farther apart than an entry can say.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn keys_all_over_the_address_space() {
        let count = 4 * BLOCK;
        let key = |i: usize| Some((i * 7919 % count) << 52 | (i % 3));
        let keys: Vec<_> = (0..count).map(key).collect();
        assert_eq!(visited(&keys), expected(&keys));
    }

    #[test]
    fn few_runs_and_many() {
        for runs in [1, 2, RUNS, RUNS + 1, 4 * BLOCK] {
            let keys: Vec<_> = (0..4 * BLOCK).map(|i| Some(i / runs + i % runs * 7919)).collect();
            assert_eq!(visited(&keys), expected(&keys));
            let keys: Vec<_> = keys.into_iter().rev().collect();
            assert_eq!(visited(&keys), expected(&keys));
        }
    }
}
