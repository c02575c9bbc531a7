//! Whether memory that is written overlaps other memory in use: the outputs of a copy each other, or a call's arrays.
//!
//! TODO

#![forbid(unsafe_code)]

mod boxes;
mod grid;
pub(crate) mod lattice;
mod order;

use crate::span::Span;
use boxes::{Boxes, Verdict};
use core::ops::ControlFlow;
use grid::Grid;
use lattice::{meet, Answer, Lattice};

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

    #[inline]
    pub(crate) fn push(&mut self, span: Span) {
        self.is_apart &= span.is_apart(self.hull);
        self.hull = self.hull.hull(span);
    }
}

/// Spans by number.
pub(crate) trait Spans {
    fn len(&self) -> usize;

    /// Empty for one that meets nothing.
    fn span(&self, index: usize) -> Span;

    /// Shows number and address of those that begin from `low` on and below `high`, which from then on is
    /// what `see` returns. They may be empty.
    fn starts(&self, low: usize, mut high: usize, see: &mut See<'_>) {
        for index in 0..self.len() {
            let start = self.span(index).start;
            if low <= start && start < high {
                high = see(index, start);
            }
        }
    }
}

/// What to do at the begin of a span.
pub(crate) type See<'a> = dyn FnMut(usize, usize) -> usize + 'a;

/// So many spans, each by its number.
pub(crate) struct Numbered<'a>(pub usize, pub &'a dyn Fn(usize) -> Span);

impl Spans for Numbered<'_> {
    fn len(&self) -> usize {
        self.0
    }

    fn span(&self, index: usize) -> Span {
        self.1(index)
    }
}

/// Up to so many written spans are compared each with each.
const FEW: usize = 16;

/// Spans of which few are kept, for they take long to work out.
pub(crate) struct Kept<'a> {
    few: [Span; FEW],
    all: &'a dyn Spans,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(all: &'a dyn Spans) -> Self {
        let mut few = [Span::default(); FEW];
        let count = all.len();
        few.iter_mut().take(count).enumerate().for_each(|(index, slot)| *slot = all.span(index));
        Self { few, all }
    }
}

impl Spans for Kept<'_> {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn span(&self, index: usize) -> Span {
        self.few.get(index).copied().unwrap_or_else(|| self.all.span(index))
    }

    fn starts(&self, low: usize, high: usize, see: &mut See<'_>) {
        self.all.starts(low, high, see);
    }
}

/// From the lowest to the highest byte of all spans.
fn hull(spans: &dyn Spans) -> Span {
    let all = (0..spans.len()).map(|at| spans.span(at)).filter(|span| !span.is_empty());
    all.fold(Span::NOWHERE, Span::hull)
}

/// Two spans that meet, if any do: the higher number first.
pub(crate) fn first_meeting(spans: &dyn Spans) -> Option<(usize, usize)> {
    let found = find(spans.len(), spans);
    found.map(|(one, other)| (one.max(other), one.min(other)))
}

/// One of the first `written` spans that meets one of the others, and that.
pub(crate) fn first_crossing(written: usize, spans: &dyn Spans) -> Option<(usize, usize)> {
    let found = find(written, spans);
    found.map(|(one, other)| (one.min(other), one.max(other)))
}

/// One of the first `written` spans and another that meet: if there are no others, two of them.
#[cold]
#[inline(never)]
fn find(written: usize, spans: &dyn Spans) -> Option<(usize, usize)> {
    let (mut all, among) = (0..spans.len(), written == spans.len());
    if written <= FEW {
        return among_few(written, among, spans);
    }
    let mut trail = Trail::EMPTY;
    if all.clone().map(|at| spans.span(at)).filter(|span| !span.is_empty()).all(|span| {
        trail.push(span);
        trail.is_apart
    }) {
        return None;
    }
    if let Some(grid) = Grid::over(spans) {
        let index = grid.first_meeting(written, among, spans)?;
        let other = all.find(|other| {
            *other != index && *other < written && spans.span(*other).intersects(spans.span(index))
        });
        return other.map(|other| (index, other));
    }
    // Where the written spans and the others end so far, and which end there.
    let (mut ends, mut found) = ([(0, 0); 2], None);
    order::in_order(spans, &mut |index| {
        let (span, [first, second]) = (spans.span(index), &mut ends);
        let (own, other) = if index < written { (first, second) } else { (second, first) };
        let (end, met) = if among { *own } else { *other };
        if span.start < end {
            found = Some((index, met));
            return ControlFlow::Break(());
        }
        *own = (*own).max((span.end, index));
        ControlFlow::Continue(())
    });
    found
}

/// [`find`] of few that are written.
#[inline(never)] // for its stack
fn among_few(written: usize, among: bool, spans: &dyn Spans) -> Option<(usize, usize)> {
    let (mut few, mut hull) = ([Span::default(); FEW], Span::NOWHERE);
    for index in 0..spans.len() {
        let span = spans.span(index);
        if span.is_empty() {
            continue;
        }
        if (among || index >= written) && !span.is_apart(hull) {
            if let Some(other) = few.iter().position(|other| other.intersects(span)) {
                return Some((index, other));
            }
        }
        if let Some(slot) = few.get_mut(index).filter(|_| index < written) {
            *slot = span;
            hull = hull.hull(span);
        }
    }
    None
}

/// Outputs that may be strided, by number.
pub(crate) trait Tensors: Spans {
    /// Bytes of an element.
    fn element_bytes(&self) -> i64;

    /// The split axis of outputs, if they have it. All have the same extents on the others.
    fn split_axis(&self) -> Option<usize>;

    /// Extent and stride in elements of every axis of an output with elements.
    fn axes(&self, index: usize) -> Axes;

    /// The bytes of an output.
    fn lattice(&self, index: usize) -> Lattice {
        Lattice::strided(self.span(index), self.element_bytes(), &mut self.axes(index).iter())
    }
}

/// Extents and strides of an output.
#[derive(Clone, Copy)]
pub(crate) struct Axes {
    axes: [(i64, i64); crate::shape::MAX_RANK],
    rank: usize,
}

impl Axes {
    pub(crate) fn new(axes: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut all = Self { axes: [(1, 0); crate::shape::MAX_RANK], rank: 0 };
        for (slot, axis) in all.axes.iter_mut().zip(axes) {
            *slot = axis;
            all.rank += 1;
        }
        all
    }

    /// Packed ones of some extents, none of them 0.
    pub(crate) fn packed(
        extents: impl DoubleEndedIterator<Item = i64> + ExactSizeIterator,
    ) -> Self {
        let mut all = Self { axes: [(1, 0); crate::shape::MAX_RANK], rank: extents.len() };
        let mut stride = 1i64;
        let axes = all.axes.iter_mut().take(all.rank).rev();
        for (slot, extent) in axes.zip(extents.rev()) {
            *slot = (extent, stride);
            stride = stride.saturating_mul(extent);
        }
        all
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, i64)> + Clone + '_ {
        self.axes.iter().copied().take(self.rank)
    }
}

/// More outputs that reach over one address are not compared pair by pair.
const MOST_OPEN: usize = 64;

/// Two outputs that meet, or could not be shown not to.
pub(crate) struct Clash {
    pub output: usize,
    pub other: usize,
    pub is_sure: bool,
}

impl Clash {
    fn of(one: usize, other: usize, is_sure: bool) -> Self {
        Self { output: one.max(other), other: one.min(other), is_sure }
    }
}

/// Two outputs that may be strided that have a byte in common, if any do, or that could not be shown apart within
/// the budget.
#[cold]
#[inline(never)]
pub(crate) fn clash(tensors: &dyn Tensors, budget: &mut usize) -> Option<Clash> {
    first_meeting(&Numbered(tensors.len(), &|at| tensors.span(at)))?;
    match boxes_verdict(tensors) {
        Verdict::Apart => None,
        Verdict::Meet(one, other) => Some(Clash::of(one, other, true)),
        Verdict::Unknown => tangled(tensors, budget),
    }
}

#[inline(never)] // for its stack
fn boxes_verdict(tensors: &dyn Tensors) -> Verdict {
    Boxes::of(tensors).map_or(Verdict::Unknown, |boxes| boxes.verdict())
}

/// Outputs compared pair by pair: each with those that begin no higher, and do not end before it begins.
#[inline(never)] // for its stack
fn tangled(tensors: &dyn Tensors, budget: &mut usize) -> Option<Clash> {
    let (mut open, mut len, mut found) = ([0; MOST_OPEN], 0, None);
    order::in_order(&Numbered(tensors.len(), &|at| tensors.span(at)), &mut |index| {
        let (start, lattice) = (tensors.span(index).start, tensors.lattice(index));
        let mut kept = 0;
        for at in 0..len {
            let Some(&other) = open.get(at) else { break };
            if tensors.span(other).end <= start {
                continue;
            }
            let answer = meet(&lattice, &tensors.lattice(other), budget);
            if answer != Answer::Apart {
                found = Some(Clash::of(index, other, answer == Answer::Meet));
                return ControlFlow::Break(());
            }
            if let Some(slot) = open.get_mut(kept) {
                *slot = other;
            }
            kept += 1;
        }
        len = kept + 1;
        let Some(slot) = open.get_mut(kept) else {
            let [other, ..] = open;
            found = Some(Clash::of(index, other, false));
            return ControlFlow::Break(());
        };
        *slot = index;
        ControlFlow::Continue(())
    });
    found
}

#[cfg(test)]
mod tests {
    use super::lattice::BUDGET;
    use super::{clash, meet, Answer, Axes, Clash, Span, Spans, Tensors as _};
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

    impl super::Tensors for Tensors {
        fn element_bytes(&self) -> i64 {
            SIZE
        }
        fn split_axis(&self) -> Option<usize> {
            self.0.first().and_then(|(_, shape, _)| shape.len().checked_sub(1))
        }
        fn axes(&self, index: usize) -> Axes {
            let (_, shape, strides) = &self.0[index];
            Axes::new(shape.iter().copied().zip(strides.iter().copied()))
        }
    }

    fn found(tensors: &Tensors) -> Option<Clash> {
        clash(tensors, &mut BUDGET.clone())
    }

    fn accepted(tensors: &Tensors) -> bool {
        found(tensors).is_none()
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
            let answer = meet(&tensors.lattice(0), &tensors.lattice(1), &mut BUDGET.clone());
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
                crate::shape::colliding(&shape.iter().copied().zip(strides.iter().copied()))
                    .is_none()
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
            prop_assert!(of.is_empty() || found(&interleaved(&of, size)).is_some_and(|found| found.is_sure));
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

    /// More axes than are searched by: nobody says that the tensors meet, unless they are slices of one.
    #[test]
    fn axes_that_are_too_many() {
        let strides: Vec<i64> = (1..=14).rev().map(|axis| 3i64.pow(axis)).collect();
        let tensor = |address| (address, vec![2; strides.len()], strides.clone());
        assert!(accepted(&Tensors(vec![tensor(4096), tensor(4098)])));
        let mut other = tensor(4098);
        other.2[0] += 1;
        assert!(!found(&Tensors(vec![tensor(4096), other])).unwrap().is_sure);
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

#[cfg(test)]
mod span_tests {
    use super::{first_crossing, first_meeting, Numbered, Span};
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
            let found = first_crossing(written, &Numbered(all.len(), &|at| all[at]));
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
