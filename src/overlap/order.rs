//! Visits spans in the order of their addresses. The caller's arrays must not be sorted and there is no heap, so each
//! pass over the spans collects, in a small table, those that begin in the next window of memory. It takes about as
//! many passes as tables can be filled.

use super::spans::{filled, Spans};
use crate::math::div;
use crate::span::Span;
use core::ops::{ControlFlow, Range};

/// Entries of the table on the stack, which is larger for more spans than `MANY`, because a pass over these takes long.
pub(super) const SMALL: usize = 1 << 10;
const MANY: usize = 1 << 14;
const LARGE: usize = 1 << 12;

/// Lends a table for `count` spans, filled with 0.
pub(super) fn with_table<T>(count: usize, work: impl FnOnce(&mut [u32]) -> T) -> T {
    if count > MANY {
        lend::<LARGE, T>(work)
    } else {
        lend::<SMALL, T>(work)
    }
}

#[inline(never)] // for its stack
#[allow(clippy::large_stack_arrays)] // no heap
fn lend<const N: usize, T>(work: impl FnOnce(&mut [u32]) -> T) -> T {
    work(&mut [0; N])
}

/// Calls `visit` for each span that is not empty and starts at one of these addresses, the lowest first, until it breaks.
/// Also breaks if there are 2^32 spans or more, because looking through them would take months.
pub(super) fn in_order(
    spans: &dyn Spans,
    starts: &Range<usize>,
    visit: &mut dyn FnMut(usize, Span) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let start = |number: &u32| spans.start(*number as usize);
    let mut visit = |index| visit(index, spans.span(index));
    with_table(spans.len(), |table| {
        // The bytes to look at, so that the table is likely to be almost full.
        let goal = table.len() / 16 * 15;
        let window = |bytes: usize, spans: usize| div(bytes.saturating_mul(goal), spans).max(1);
        let hull = filled(spans, starts).fold(Span::NOWHERE, |hull, (_, span)| hull.hull(span));
        let mut low = hull.start;
        let mut next = window(hull.len(), spans.len());
        let end = hull.end.min(starts.end);
        while low < end {
            // The table holds the numbers of the spans that begin in a window.
            let mut starts = low..low.saturating_add(next).min(end);
            let mut len = 0;
            let mut from = 0;
            while let Some(index) = spans.next(from, &starts) {
                from = index + 1;
                if spans.span(index).is_empty() {
                    continue;
                }
                // Any number of spans may begin here without filling the table: the next window begins higher up.
                if spans.start(index) == low {
                    visit(index)?;
                    continue;
                }
                let Ok(number) = u32::try_from(index) else { return ControlFlow::Break(()) };
                if let Some(slot) = table.get_mut(len) {
                    *slot = number;
                    len += 1;
                }
                if len == table.len() {
                    // The lower half stays, and the window ends where the upper half begins.
                    sort(table, start);
                    starts.end = table.get(len / 2).map_or(starts.end, start);
                    len = table.partition_point(|number| start(number) < starts.end);
                }
            }
            debug_assert!(low < starts.end, "a window of no addresses, which would never end");
            let found = table.get_mut(..len).unwrap_or_default();
            sort(found, start);
            found.iter().try_for_each(|number| visit(*number as usize))?;
            next = window(starts.end - low, len + 1);
            low = starts.end;
        }
        ControlFlow::Continue(())
    })
}

/// Sorts by Shell's method, because the sorts of `core` can panic.
fn sort(numbers: &mut [u32], start: impl Fn(&u32) -> usize) {
    let mut gap = numbers.len();
    while gap > 1 {
        gap = (gap * 5 / 11).max(1);
        for mut at in gap..numbers.len() {
            while let Some([low, .., high]) =
                at.checked_sub(gap).and_then(|below| numbers.get_mut(below..=at))
            {
                if start(high) >= start(low) {
                    break;
                }
                core::mem::swap(low, high);
                at -= gap;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::spans::{Numbered, EVERYWHERE};
    use super::{in_order, ControlFlow, LARGE, MANY, SMALL};
    use crate::span::Span;
    use proptest::prelude::*;

    /// The keys in the order in which their spans are visited, each of them once.
    fn visited(keys: &[Option<usize>]) -> Vec<usize> {
        let span = |index: usize| {
            keys[index].map_or(Span::default(), |key| Span { start: key + 1, end: key + 2 })
        };
        let mut visited = vec![];
        let flow = in_order(&Numbered(keys.len(), &span), &EVERYWHERE, &mut |index, _| {
            visited.push(index);
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        let keys = visited.iter().map(|index| keys[*index].unwrap()).collect();
        visited.sort_unstable();
        visited.dedup();
        assert_eq!(visited.len(), Vec::len(&keys));
        keys
    }

    fn expected(keys: &[Option<usize>]) -> Vec<usize> {
        let mut expected: Vec<_> = keys.iter().copied().flatten().collect();
        expected.sort_unstable();
        expected
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        #[test]
        fn keys_in_any_order_with_gaps(
            keys in prop::collection::vec(0usize..550, 0..3 * SMALL),
        ) {
            let keys: Vec<_> = keys.into_iter().map(|key| (key < 500).then_some(key)).collect();
            prop_assert_eq!(visited(&keys), expected(&keys));
        }

        /// As dense here as there is room for, and far apart there.
        #[test]
        fn keys_that_crowd_together(
            keys in prop::collection::vec((0u32..usize::BITS - 1, any::<usize>()), 0..3 * SMALL),
        ) {
            let keys: Vec<_> = keys.into_iter().map(|(bits, key)| Some(key >> 1 >> bits)).collect();
            prop_assert_eq!(visited(&keys), expected(&keys));
        }
    }

    #[test]
    fn a_great_many() {
        let count = MANY + 4321;
        for alike in [1, 3, LARGE, count] {
            for step in [1, 100, 1 << 10] {
                let keys: Vec<_> =
                    (0..count).map(|i| Some(i * 7919 % count / alike * step)).collect();
                assert_eq!(visited(&keys), expected(&keys));
            }
        }
    }

    #[test]
    fn whoever_breaks_sees_no_more() {
        for count in [1, 5, 3 * SMALL] {
            for stop in [0, 1, count / 2, count - 1] {
                let span = |index: usize| {
                    let start = 1 + index * 7919 % count;
                    Span { start, end: start + 1 }
                };
                let mut left = stop + 1;
                let _ = in_order(&Numbered(count, &span), &EVERYWHERE, &mut |_, _| {
                    left = left.checked_sub(1).expect("visited after the break");
                    if left == 0 {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
            }
        }
    }
}
