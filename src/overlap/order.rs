//! Numbers visited in the order of their keys, without a heap and on a small stack: what ascends
//! already is merged, anything else is taken a block of the lowest at a time.

#![forbid(unsafe_code)]

use core::ops::ControlFlow;

/// So many ascending runs are merged.
const RUNS: usize = if cfg!(libsplit_low_thresholds) { 2 } else { 32 };
/// So many of the lowest are found in one pass.
pub(crate) const BLOCK: usize = 256;
/// Of more numbers than this, so many: then a pass is longer than a call should wait for many of
/// them, and 32 KiB of the stack are the lesser evil.
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
    by_blocks(Lowest { keys: &mut [(0, 0); N], len: 0 }, count, key, visit);
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

/// Visits anything, in a pass for each block of the lowest that have not been visited yet.
#[inline(never)]
fn by_blocks(mut lowest: Lowest<'_>, count: usize, key: &Key<'_>, visit: &mut Visit<'_>) {
    let mut visited = None;
    loop {
        lowest.len = 0;
        for index in 0..count {
            let Some(key) = key(index) else { continue };
            if visited.is_none_or(|visited| (key, index) > visited) {
                lowest.offer((key, index));
            }
        }
        let is_last = !lowest.is_full();
        for &(key, index) in lowest.ascending() {
            visited = Some((key, index));
            if visit(index).is_break() {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}

/// The lowest of the keys offered, as many as there is room for: a heap with the highest on top.
struct Lowest<'a> {
    keys: &'a mut [(usize, usize)],
    len: usize,
}

impl Lowest<'_> {
    fn is_full(&self) -> bool {
        self.len >= self.keys.len()
    }

    fn at(&self, at: usize) -> (usize, usize) {
        self.keys.get(at).copied().unwrap_or_default()
    }

    fn set(&mut self, at: usize, key: (usize, usize)) {
        if let Some(slot) = self.keys.get_mut(at) {
            *slot = key;
        }
    }

    fn offer(&mut self, key: (usize, usize)) {
        if !self.is_full() {
            // Up from the end.
            let mut at = self.len;
            self.len += 1;
            while at > 0 && self.at((at - 1) / 2) < key {
                self.set(at, self.at((at - 1) / 2));
                at = (at - 1) / 2;
            }
            self.set(at, key);
        } else if key < self.at(0) {
            self.sink(key, self.len);
        }
    }

    /// Puts a key in place of the highest of the first `len`.
    #[inline(never)] // once in the library
    fn sink(&mut self, key: (usize, usize), len: usize) {
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < len && self.at(child) < self.at(child + 1) {
                child += 1;
            }
            if child >= len || self.at(child) <= key {
                break;
            }
            self.set(at, self.at(child));
            at = child;
        }
        self.set(at, key);
    }

    /// Sorts them.
    fn ascending(&mut self) -> &[(usize, usize)] {
        for end in (1..self.len).rev() {
            let (highest, last) = (self.at(0), self.at(end));
            self.sink(last, end);
            self.set(end, highest);
        }
        self.keys.get(..self.len).unwrap_or_default()
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
