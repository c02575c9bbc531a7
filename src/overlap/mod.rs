//! Whether memory that is written lies over other memory in use, of many tensors that may be strided.
//!
//! Where their spans are apart, that is all there is to it. Those whose spans meet are columns of one
//! matrix in most calls, which a period common to all tells apart; any others are compared each with
//! each (`lattice.rs`), as far as they are not too many.
//!
//! | file | what it holds |
//! |---|---|
//! | `lattice.rs` | whether two strided tensors lie over one another |
//! | `few.rs` | whether any of few spans do |
//! | `spans.rs` | the same of many |
//! | `order.rs`, `windows.rs` | spans by their addresses, whatever their order, without a heap |

#![forbid(unsafe_code)]

pub(crate) mod few;
pub(crate) mod lattice;
mod order;
pub(crate) mod spans;
mod windows;

use crate::math::gcd;
use crate::span::Span;
use core::ops::ControlFlow;
use lattice::{meet, Answer, Lattice};
use spans::{in_order_if_any_meet, meeting, Numbered, Spans};

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

#[inline(never)] // for its stack
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

/// A run modulo a period, counted from an address; one that does not fit into it ends beyond it.
#[inline(never)]
fn folded(run: Span, from: usize, period: usize) -> Span {
    let start = (run.start - from).checked_rem(period).unwrap_or(0);
    Span { start, end: start.saturating_add(run.end - run.start) }
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
            let mut dims = shape.iter().copied().zip(strides.iter().copied());
            Lattice::strided(self.span(index), 2, &mut dims)
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
                crate::shape::strides_nest(&shape.iter().copied().zip(strides.iter().copied()))
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
