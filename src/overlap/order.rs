//! Numbers visited in the order of their keys, without a heap and on a small stack: what ascends
//! already is merged, anything else is taken a block of the lowest at a time.

#![forbid(unsafe_code)]

use core::ops::ControlFlow;

/// So many ascending runs are merged.
const RUNS: usize = if cfg!(libsplit_low_thresholds) { 2 } else { 32 };
/// So many of the lowest are found in one pass.
pub(crate) const BLOCK: usize = 256;
/// Of more numbers than this, so many: then a pass takes long, and 16 KiB of the stack are the lesser evil.
pub(crate) const MANY: usize = 1 << 14;
pub(crate) const LARGE_BLOCK: usize = 2048;

/// Where numbers from 0 on stand; `None` for one that is not to be visited.
pub(crate) type Key<'a> = dyn Fn(usize) -> Option<usize> + 'a;
/// What to do at a number.
pub(crate) type Visit<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// Calls `visit` for each number below `count` that has a key, lowest key first, until it breaks.
pub(crate) fn in_order(count: usize, key: &Key<'_>, visit: &mut Visit<'_>) {
    if in_runs(count, key, visit).is_none() {
        in_blocks(count, key, visit);
    }
}

/// [`in_order`] of anything, a block of the lowest at a time.
#[cold]
#[inline(never)]
pub(crate) fn in_blocks(count: usize, key: &Key<'_>, visit: &mut Visit<'_>) {
    if count > MANY {
        by_blocks_of::<LARGE_BLOCK>(count, key, visit);
    } else {
        by_blocks_of::<BLOCK>(count, key, visit);
    }
}

#[inline(never)] // for its stack
#[allow(clippy::large_stack_arrays)] // no heap
fn by_blocks_of<const N: usize>(count: usize, key: &Key<'_>, visit: &mut Visit<'_>) {
    by_blocks(Lowest { entries: &mut [0; N], len: 0 }, count, key, visit);
}

/// A run of ascending keys: the next number, and where the run ends.
#[derive(Clone, Copy)]
struct Run {
    next: usize,
    end: usize,
    key: usize,
}

impl Run {
    /// Goes on to the next number that has a key.
    fn settle(&mut self, key: &Key<'_>) {
        while self.next < self.end {
            if let Some(found) = key(self.next) {
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
pub(crate) fn in_runs(count: usize, key: &Key<'_>, visit: &mut Visit<'_>) -> Option<()> {
    let mut runs = [Run { next: 0, end: 0, key: 0 }; RUNS];
    let (mut len, mut highest) = (0, None);
    for index in 0..count {
        let Some(key) = key(index) else { continue };
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
        run.settle(key);
    }
    Some(())
}

/// Visits anything, in a pass for each block of the lowest that have not been visited yet. An entry is how far a
/// key lies above a floor, and its number in the lower bits; what lies too far above waits for the next floor.
#[inline(never)]
fn by_blocks(mut lowest: Lowest<'_>, count: usize, key: &Key<'_>, visit: &mut Visit<'_>) {
    let shift = (count as u64 | 1).ilog2() + 1;
    let keys = || (0..count).filter_map(|index| Some((key(index)? as u64, index as u64)));
    let Some(mut floor) = keys().map(|(key, _)| key).min() else { return };
    let mut visited = None;
    loop {
        lowest.len = 0;
        let mut beyond = None;
        for (key, index) in keys().filter(|(key, _)| *key >= floor) {
            let ahead = key - floor;
            if ahead >> (u64::BITS - shift) > 0 {
                beyond = Some(beyond.map_or(key, |beyond: u64| beyond.min(key)));
                continue;
            }
            let entry = ahead << shift | index;
            if visited.is_none_or(|visited| entry > visited) {
                lowest.offer(entry);
            }
        }
        let is_full = lowest.is_full();
        for entry in lowest.ascending() {
            visited = Some(*entry);
            let index = entry & ((1 << shift) - 1);
            if visit(usize::try_from(index).unwrap_or(0)).is_break() {
                return;
            }
        }
        if !is_full {
            let Some(next) = beyond else { return };
            (floor, visited) = (next, None);
        }
    }
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
    use super::{in_blocks, in_runs, ControlFlow, BLOCK, RUNS};
    use proptest::prelude::*;

    fn visited(keys: &[Option<usize>]) -> Vec<usize> {
        let key = |index: usize| keys[index];
        let mut visited = vec![];
        in_blocks(keys.len(), &key, &mut |index| {
            visited.push(index);
            ControlFlow::Continue(())
        });
        let mut in_order = vec![];
        let answered = in_runs(keys.len(), &key, &mut |index| {
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
