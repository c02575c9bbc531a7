//! Whether memory that is written lies over other memory in use.
//!
//! Packed tensors are spans, of which every question has an exact answer. Strided ones may lie in
//! each other's gaps: columns of one matrix, tiles of one picture, planes with padding. Two of them
//! meet if two index vectors give addresses less than a run apart, which a search axis by axis,
//! longest steps first, decides: what the shorter steps cannot make good is not looked at. Where
//! strides nest, as in all layouts that people have, hardly an index per axis is left; where the
//! search would take too long it gives up and says so.

#![forbid(unsafe_code)]

use crate::span::Span;
use crate::spans::{in_order_if_any_meet, meeting, Numbered, Spans};
use core::ops::ControlFlow;

#[inline(never)]
fn gcd(mut a: usize, mut b: usize) -> usize {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

/// An axis of a tensor: so many steps of so many bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Steps {
    stride: u64,
    count: u64,
}

/// The most axes that a tensor's bytes are searched by.
const MAX_AXES: usize = 12;

/// The bytes of a tensor: runs of contiguous ones, and axes over them, longest steps first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lattice {
    pub span: Span,
    run: u64,
    axes: [Steps; MAX_AXES],
    rank: usize,
    /// Whether all these bytes are the tensor's.
    is_exact: bool,
}

impl Lattice {
    /// All bytes of a span.
    pub(crate) fn whole(span: Span) -> Self {
        let run = (span.end - span.start) as u64;
        Self { span, run, axes: [Steps::default(); MAX_AXES], rank: 0, is_exact: true }
    }

    /// Elements of `size` bytes with extents and strides in elements, none of extent 0.
    pub(crate) fn strided(span: Span, size: u32, dims: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut lattice = Self { run: size.into(), ..Self::whole(span) };
        for (extent, stride) in dims {
            let (count, stride) = (extent.unsigned_abs(), stride.unsigned_abs());
            if count == 1 || stride == 0 {
                continue;
            }
            let steps = Steps { stride: stride.saturating_mul(size.into()), count };
            if !lattice.insert(steps) {
                // Those that continue each other are one. With room they stay, for the axes of another
                // tensor nest with them.
                lattice.extend_run();
                lattice.join();
                if !lattice.insert(steps) {
                    return Self { is_exact: false, ..Self::whole(span) };
                }
            }
        }
        lattice.extend_run();
        lattice
    }

    fn axes(&self) -> &[Steps] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// Puts an axis in its place; `false` if there is no room.
    fn insert(&mut self, steps: Steps) -> bool {
        let at = self.axes().iter().take_while(|axis| axis.stride >= steps.stride).count();
        let Some(tail) = self.axes.get_mut(at..=self.rank) else { return false };
        let mut held = steps;
        for slot in tail {
            core::mem::swap(slot, &mut held);
        }
        self.rank += 1;
        true
    }

    /// Joins axes that continue the run to it.
    #[inline(never)]
    fn extend_run(&mut self) {
        while let Some(axis) = self.axes().last().filter(|axis| axis.stride <= self.run).copied() {
            self.run = self.run.saturating_add(axis.stride.saturating_mul(axis.count - 1));
            self.rank -= 1;
        }
    }

    /// Joins axes that continue each other.
    #[inline(never)]
    fn join(&mut self) {
        let (mut rank, mut joined) = (0usize, [Steps::default(); MAX_AXES]);
        for axis in self.axes().iter().rev() {
            let last = joined
                .get_mut(rank.wrapping_sub(1))
                .filter(|last: &&mut Steps| last.stride.saturating_mul(last.count) == axis.stride);
            if let Some(last) = last {
                last.count = last.count.saturating_mul(axis.count);
            } else if let Some(slot) = joined.get_mut(rank) {
                *slot = *axis;
                rank += 1;
            }
        }
        joined.get_mut(..rank).unwrap_or_default().reverse();
        (self.axes, self.rank) = (joined, rank);
    }

    /// Runs begin at multiples of this from the lowest address on; 0 = there is but one.
    fn period(&self) -> usize {
        let period = self
            .axes()
            .iter()
            .fold(0, |period, axis| gcd(usize::try_from(axis.stride).unwrap_or(1), period));
        if self.run <= period as u64 {
            period
        } else {
            0
        }
    }

    /// Its lowest run, which stands for all of them modulo its period; without one, the rest of memory.
    #[inline(never)]
    fn first_run(&self) -> Span {
        let Span { start, .. } = self.span;
        let is_periodic = self.rank == 0 || self.period() > 0;
        let run = usize::try_from(self.run).ok().filter(|_| is_periodic);
        Span { start, end: start.saturating_add(run.unwrap_or(usize::MAX)) }
    }
}

/// A run modulo a period, counted from an address; one that does not fit into it ends beyond it.
#[inline(never)]
fn folded(run: Span, from: usize, period: usize) -> Span {
    let start = (run.start - from).checked_rem(period).unwrap_or(0);
    Span { start, end: start.saturating_add(run.end - run.start) }
}

/// What a search has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Apart,
    Meet,
    /// It would have taken too long.
    GivenUp,
}

/// The steps of a stride by which two tensors differ: from `low` to `high` of them.
#[derive(Debug, Clone, Copy, Default)]
struct Difference {
    stride: i64,
    low: i64,
    high: i64,
    /// What the shorter strides add at the least and at the most.
    least: i64,
    most: i64,
    /// The greatest divisor of this stride and the shorter ones: distances change by multiples of it.
    divisor: i64,
    /// Where the search stands: the next number of steps, the last, and the distance before.
    next: i64,
    last: i64,
    from: i64,
}

/// The most indices that a search looks at.
const MAX_SEARCH: usize = 4096;

/// Whether two tensors have a byte in common.
#[cold]
#[inline(never)]
pub(crate) fn meet(a: &Lattice, b: &Lattice) -> Answer {
    if !a.span.intersects(b.span) {
        return Answer::Apart;
    }
    // Distances and their sums then fit; and no memory is that large.
    if a.span.hull(b.span).len() >= 1 << (usize::BITS - 4) {
        return Answer::GivenUp;
    }
    let mut differences = [Difference::default(); 2 * MAX_AXES];
    let len = differences_of(a, b, &mut differences);
    let Some(differences) = differences.get_mut(..len) else { return Answer::GivenUp };
    // They meet where b's run begins less than a run before or behind a's.
    let (low, high) = (1 - b.run.cast_signed(), a.run.cast_signed() - 1);
    let begin = b.span.start.wrapping_sub(a.span.start).cast_signed() as i64;
    match search(differences, begin, low, high) {
        Answer::Meet if !(a.is_exact && b.is_exact) => Answer::GivenUp,
        answer => answer,
    }
}

/// The axes of both, as differences, longest strides first; how many there are.
fn differences_of(a: &Lattice, b: &Lattice, into: &mut [Difference; 2 * MAX_AXES]) -> usize {
    let (mut len, mut first, mut second) =
        (0, a.axes().iter().peekable(), b.axes().iter().peekable());
    loop {
        let strides = [first.peek().map(|axis| axis.stride), second.peek().map(|axis| axis.stride)];
        let Some(stride) = strides.into_iter().flatten().max() else { break };
        let steps = |axes: &mut core::iter::Peekable<core::slice::Iter<'_, Steps>>| {
            axes.next_if(|axis| axis.stride == stride)
                .map_or(0, |axis| axis.count.cast_signed() - 1)
        };
        let (low, high) = (-steps(&mut first), steps(&mut second));
        if let Some(slot) = into.get_mut(len) {
            *slot = Difference { stride: stride.cast_signed(), low, high, ..Difference::default() };
            len += 1;
        }
    }
    let (mut least, mut most, mut divisor) = (0, 0, 0);
    for difference in into.iter_mut().take(len).rev() {
        (difference.least, difference.most) = (least, most);
        least += difference.low * difference.stride;
        most += difference.high * difference.stride;
        divisor = gcd(usize::try_from(difference.stride).unwrap_or(1), divisor);
        difference.divisor = divisor.cast_signed() as i64;
    }
    len
}

impl Difference {
    /// Begins with the numbers of steps that may lead from a distance to one between `low` and `high`.
    fn enter(&mut self, distance: i64, low: i64, high: i64) {
        self.from = distance;
        self.next = ceil(low - distance - self.most, self.stride).max(self.low);
        self.last = floor(high - distance - self.least, self.stride).min(self.high);
        if distance + ceil(low - distance, self.divisor) * self.divisor > high {
            self.last = i64::MIN;
        }
    }

    /// Where the next number of steps leads, if one is left.
    fn advance(&mut self) -> Option<i64> {
        let steps = self.next;
        self.next += 1;
        (steps <= self.last).then(|| self.from + steps * self.stride)
    }
}

/// Whether steps of the differences lead from a distance to one between `low` and `high`.
fn search(differences: &mut [Difference], begin: i64, low: i64, high: i64) -> Answer {
    let (mut depth, mut distance, mut enters) = (0usize, begin, true);
    for _ in 0..MAX_SEARCH {
        let further = match differences.get_mut(depth) {
            Some(here) => {
                if enters {
                    here.enter(distance, low, high);
                }
                here.advance()
            }
            // All steps are taken.
            None if (low..=high).contains(&distance) => return Answer::Meet,
            None => None,
        };
        match (further, depth.checked_sub(1)) {
            (Some(further), _) => (depth, distance, enters) = (depth + 1, further, true),
            (None, Some(back)) => (depth, enters) = (back, false),
            (None, None) => return Answer::Apart,
        }
    }
    Answer::GivenUp
}

/// Rounded down, by a stride, which is above 0.
fn floor(a: i64, b: i64) -> i64 {
    let quotient = a.checked_div(b).unwrap_or(0);
    quotient - i64::from(quotient * b > a)
}

fn ceil(a: i64, b: i64) -> i64 {
    -floor(-a, b)
}

/// Tensors that are written, by number; the span of one without elements, or one that is not
/// wanted, is empty.
pub(crate) trait Places: Spans {
    fn lattice(&self, index: usize) -> Lattice;
}

/// Two tensors that meet, or could not be shown not to.
pub(crate) struct Clash {
    pub output: usize,
    pub other: usize,
    pub is_sure: bool,
}

/// So many tensors whose spans meet are compared each with each.
const CLUSTER: usize = 32;

/// So many pairs of a larger number are compared at the most.
const MAX_PAIRS: usize = 1 << 20;

/// Tensors whose spans meet, directly or by way of others between.
struct Cluster {
    reach: Span,
    /// The first of them.
    members: [usize; CLUSTER],
    len: usize,
}

/// Two of some tensors that may be strided that have a byte in common, if any do.
#[cold]
#[inline(never)]
pub(crate) fn clash(places: &dyn Places) -> Option<Clash> {
    let count = places.len();
    if count <= CLUSTER && are_folded(places, &mut (0..count)) {
        return None;
    }
    let mut cluster = Cluster { reach: Span::default(), members: [0; CLUSTER], len: 0 };
    let mut found = None;
    in_order_if_any_meet(places, &mut |index| {
        let span = places.span(index);
        if span.start >= cluster.reach.end {
            found = cluster.clash(places);
            (cluster.reach, cluster.len) = (span, 0);
        }
        cluster.reach.end = cluster.reach.end.max(span.end);
        if let Some(slot) = cluster.members.get_mut(cluster.len) {
            *slot = index;
        }
        cluster.len += 1;
        if found.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    found.or_else(|| cluster.clash(places))
}

impl Cluster {
    fn clash(&self, places: &dyn Places) -> Option<Clash> {
        match self.members.get(..self.len) {
            Some(members) if are_folded(places, &mut members.iter().copied()) => None,
            Some(members) => clash_of(places, members),
            None => many(places, self.reach),
        }
    }
}

/// Whether a few are plainly apart: modulo a period common to all, as columns of one matrix are.
#[inline(never)]
fn are_folded(places: &dyn Places, members: &mut dyn Iterator<Item = usize>) -> bool {
    let (mut runs, mut from, mut period, mut len) = ([Span::default(); CLUSTER], usize::MAX, 0, 0);
    for (run, index) in runs.iter_mut().zip(members) {
        let lattice = places.lattice(index);
        period = gcd(lattice.period(), period);
        *run = lattice.first_run();
        if !run.is_empty() {
            from = from.min(run.start);
        }
        len += 1;
    }
    let runs = runs.get_mut(..len).unwrap_or_default();
    for run in runs.iter_mut().filter(|run| !run.is_empty()) {
        *run = folded(*run, from, period);
    }
    let of = |at: usize| runs.get(at).copied().unwrap_or_default();
    runs.iter().all(|run| run.end <= period) && meeting(&Numbered(len, &of)).is_none()
}

fn clash_of(places: &dyn Places, members: &[usize]) -> Option<Clash> {
    members.iter().enumerate().find_map(|(at, index)| {
        members.iter().take(at).find_map(|other| compare(places, *index, *other))
    })
}

fn compare(places: &dyn Places, index: usize, other: usize) -> Option<Clash> {
    let (output, other) = (index.max(other), index.min(other));
    if !places.span(output).intersects(places.span(other)) {
        return None;
    }
    match meet(&places.lattice(output), &places.lattice(other)) {
        Answer::Apart => None,
        answer => Some(Clash { output, other, is_sure: answer == Answer::Meet }),
    }
}

/// A large cluster: in most calls these are columns of one matrix. Their runs are compared modulo a
/// period common to all; the few that do not fit into it are compared with all others.
#[inline(never)]
fn many(places: &dyn Places, reach: Span) -> Option<Clash> {
    let members = || (0..places.len()).filter(|index| places.span(*index).intersects(reach));
    let period = members().fold(0, |period, index| gcd(places.lattice(index).period(), period));
    let folded = |index: usize| {
        if !places.span(index).intersects(reach) {
            return Span::default();
        }
        folded(places.lattice(index).first_run(), reach.start, period)
    };
    let fits = |index: usize| folded(index).end <= period;
    let fitting = |index| if fits(index) { folded(index) } else { Span::default() };
    let is_apart = period > 0 && meeting(&Numbered(places.len(), &fitting)).is_none();
    let mut compared = 0;
    members().filter(|index| !is_apart || !fits(*index)).find_map(|index| {
        members().filter(|other| *other != index).find_map(|other| {
            compared += 1;
            if compared > MAX_PAIRS {
                return Some(Clash { output: index, other, is_sure: false });
            }
            compare(places, index, other)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{clash, meet, Answer, Lattice, Places, Span, Spans};
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Outputs of 2-byte elements at made-up addresses: nothing here is ever read or written.
    #[derive(Debug, Clone)]
    struct Tensors(Vec<(usize, Vec<i64>, Vec<i64>)>);

    const SIZE: i64 = 2;

    impl Spans for Tensors {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn span(&self, index: usize) -> Span {
            let (address, shape, strides) = &self.0[index];
            let (low, high) =
                crate::shape::reach(shape.iter().copied().zip(strides.iter().copied())).unwrap();
            let at = |element: i64| {
                address.wrapping_add_signed(isize::try_from(element * SIZE).unwrap())
            };
            Span { start: at(low), end: at(high + 1) }
        }
    }

    impl Places for Tensors {
        fn lattice(&self, index: usize) -> Lattice {
            let (_, shape, strides) = &self.0[index];
            let dims = shape.iter().copied().zip(strides.iter().copied());
            Lattice::strided(self.span(index), 2, dims)
        }
    }

    fn accepted(tensors: &Tensors) -> bool {
        clash(tensors).is_none()
    }

    /// The bytes of a tensor, listed.
    fn bytes((address, shape, strides): &(usize, Vec<i64>, Vec<i64>)) -> HashSet<i64> {
        let mut elements = vec![i64::try_from(*address).unwrap()];
        for (extent, stride) in shape.iter().zip(strides) {
            let steps = (0..*extent).map(|i| i * stride * SIZE).collect::<Vec<_>>();
            elements = elements.iter().flat_map(|e| steps.iter().map(move |s| e + s)).collect();
        }
        elements.into_iter().flat_map(|e| [e, e + 1]).collect()
    }

    /// Whether no byte belongs to two tensors.
    fn apart(tensors: &Tensors) -> bool {
        let sets: Vec<_> = tensors.0.iter().map(bytes).collect();
        let all: HashSet<_> = sets.iter().flatten().collect();
        all.len() == sets.iter().map(HashSet::len).sum::<usize>()
    }

    fn tensor() -> impl Strategy<Value = (usize, Vec<i64>, Vec<i64>)> {
        let dims = prop::collection::vec((1i64..5, -20i64..20), 0..4);
        (0usize..300, dims).prop_map(|(address, dims)| {
            let (shape, strides) = dims.into_iter().unzip();
            (4096 + address * 2, shape, strides)
        })
    }

    /// Column blocks of `widths` of one matrix, which may be seen upside down.
    fn columns(widths: &[i64], rows: i64, flip: bool) -> Tensors {
        let pitch: i64 = widths.iter().sum();
        let mut column = 0;
        let block = |width: &i64| {
            let first = if flip { (rows - 1) * pitch } else { 0 } + column;
            column += width;
            let address = 4096 + usize::try_from(first * 2).unwrap();
            (address, vec![rows, *width], vec![if flip { -pitch } else { pitch }, 1])
        };
        Tensors(widths.iter().map(block).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..Default::default() })]

        /// Whatever the strides, those of an input among them: exact, or given up.
        #[test]
        fn two_tensors_of_any_strides(a in tensor(), b in tensor()) {
            let tensors = Tensors(vec![a, b]);
            let answer = meet(&tensors.lattice(0), &tensors.lattice(1));
            let [a, b] = [&tensors.0[0], &tensors.0[1]].map(bytes);
            let expected = if a.is_disjoint(&b) { Answer::Apart } else { Answer::Meet };
            prop_assert_eq!(answer, expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn many_tensors_are_judged_exactly(tensors in prop::collection::vec(tensor(), 2..60)) {
            // Each apart from itself, as outputs are.
            let nests = |(_, shape, strides): &(usize, Vec<i64>, Vec<i64>)| {
                let dims = shape.iter().copied().zip(strides.iter().copied());
                crate::shape::strides_nest(&dims)
            };
            let tensors = Tensors(tensors.into_iter().filter(nests).collect());
            prop_assert_eq!(accepted(&tensors), apart(&tensors));
        }

        #[test]
        fn column_blocks_of_a_matrix_are_apart(
            widths in prop::collection::vec(1i64..5, 1..90),
            rows in 1i64..5,
            flip in any::<bool>(),
            turn in any::<prop::sample::Index>(),
        ) {
            let mut tensors = columns(&widths, rows, flip);
            tensors.0.rotate_left(turn.index(widths.len()));
            prop_assert!(apart(&tensors) && accepted(&tensors));
            let (address, shape, strides) = tensors.0[0].clone();
            tensors.0.push((address, shape, strides));
            prop_assert!(!accepted(&tensors));
        }
    }

    /// Some channels of the pixels of a picture: from `first` on, every `step`-th.
    type Channels = (i64, i64, i64);

    fn channels((first, step, count): Channels) -> impl Iterator<Item = i64> {
        (0..count).map(move |at| first + at * step)
    }

    const PIXEL: i64 = 12;

    /// Outputs that interleave in one picture, with `pad` elements behind each row.
    fn interleaved(of: &[Channels], [height, width, pad]: [i64; 3]) -> Tensors {
        let strides = |step| vec![width * PIXEL + pad, PIXEL, step];
        let output = |&(first, step, count): &Channels| {
            (
                4096 + usize::try_from(first * SIZE).unwrap(),
                vec![height, width, count],
                strides(step),
            )
        };
        Tensors(of.iter().map(output).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

        /// Of pictures of any size: the work does not grow with it.
        #[test]
        fn channels_that_interleave_are_apart(
            wanted in prop::collection::vec((0..PIXEL, 1i64..6, 1i64..6), 2..20),
            size in (1i64..3000, 1i64..3000, 0i64..3),
        ) {
            let mut taken = HashSet::new();
            let mut of = wanted.into_iter().filter(|one| {
                let fits = channels(*one).all(|at| at < PIXEL && !taken.contains(&at));
                taken.extend(channels(*one).filter(|_| fits));
                fits
            }).collect::<Vec<_>>();
            let size = [size.0, size.1, size.2];
            prop_assert!(accepted(&interleaved(&of, size)));
            of.extend(taken.into_iter().next().map(|one| (one, 1, 1)));
            prop_assert!(of.is_empty() || clash(&interleaved(&of, size)).is_some_and(|found| found.is_sure));
        }
    }

    /// Every second element beside every fourth: no extents that the strides nest by.
    #[test]
    fn steps_that_have_a_divisor_in_common() {
        let every = |first: usize, step, count| (4096 + 2 * first, vec![count], vec![step]);
        assert!(accepted(&Tensors(vec![every(0, 2, 99_999), every(1, 4, 49_999)])));
        assert!(!accepted(&Tensors(vec![every(0, 2, 99_999), every(2, 4, 49_999)])));
    }

    /// Would take minutes if all were compared with all.
    #[test]
    fn a_tensor_elsewhere_does_not_hide_that_columns_are_apart() {
        let mut tensors = columns(&vec![1; 20_000], 3, false);
        tensors.0.rotate_left(7777);
        tensors.0.insert(100, (4096 + 20_000 * 2 * 3, vec![500], vec![1]));
        assert!(accepted(&tensors));
        tensors.0[100].0 -= 2;
        assert!(!accepted(&tensors));
    }

    /// As above, of many matrices, in either order.
    #[test]
    fn columns_of_many_matrices() {
        let matrix = |at: usize| (4096 + 64 * (at / 2) + 2 * (at % 2), vec![5], vec![2]);
        let mut tensors = Tensors((0..32_000).map(matrix).collect());
        assert!(accepted(&tensors));
        tensors.0.sort_by_key(|(address, ..)| address % 64);
        assert!(accepted(&tensors));
        tensors.0[777].0 += 2;
        assert!(!accepted(&tensors));
    }

    /// Few of them, or many; its other runs lie elsewhere modulo the columns' pitch.
    #[test]
    fn a_tensor_of_runs_without_a_period_among_columns() {
        for count in [3, 20, 40] {
            let column = |at: usize| (4096 + 2 * at, vec![4], vec![100]);
            let mut tensors = Tensors((0..count).map(column).collect());
            tensors.0.push((4096 + 2 * 60, vec![2, 2, 4], vec![43, 5, 1]));
            assert_eq!(accepted(&tensors), apart(&tensors), "{count}");
            tensors.0.push((4096 + 2 * 61, vec![2, 2, 4], vec![145, 5, 1]));
            assert!(!accepted(&tensors), "{count}");
        }
    }

    /// More axes than are searched by, which are one.
    #[test]
    fn axes_that_continue_each_other() {
        let strides: Vec<i64> = (1..=20).rev().map(|axis| 1 << axis).collect();
        let tensor = |address| (address, vec![2; strides.len()], strides.clone());
        assert!(accepted(&Tensors(vec![tensor(4096), tensor(4098)])));
        assert!(!accepted(&Tensors(vec![tensor(4096), tensor(4100)])));
    }

    /// More axes than are searched by: nobody says that the tensors meet.
    #[test]
    fn axes_that_are_too_many() {
        let strides: Vec<i64> = (1..=14).rev().map(|axis| 3i64.pow(axis)).collect();
        let tensor = |address| (address, vec![2; strides.len()], strides.clone());
        let found = clash(&Tensors(vec![tensor(4096), tensor(4098)])).unwrap();
        assert!(!found.is_sure);
    }

    /// Tiles of a picture, with padding between its planes and rows.
    #[test]
    fn tiles_side_by_side() {
        let (plane, pitch) = (480 * 640 + 16, 640);
        let tile = |column: usize| (4096 + 2 * column, vec![3, 480, 320], vec![plane, pitch, 1]);
        assert!(accepted(&Tensors(vec![tile(0), tile(320)])));
        assert!(!accepted(&Tensors(vec![tile(0), tile(319)])));
    }
}
