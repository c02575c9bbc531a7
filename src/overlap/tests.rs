//! Outputs of any strides, compared with their bytes one by one.

use super::lattice::{meet, Lattice, BUDGET};
use super::{clash, Clash, Spans, Tensors as _};
use crate::span::Span;
use crate::words::Argument;
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
        let at =
            |element: i64| address.wrapping_add_signed(isize::try_from(element * SIZE).unwrap());
        Span { start: at(low), end: at(high + 1) }
    }
}

impl super::Tensors for Tensors {
    fn lattice(&self, index: usize) -> Lattice {
        let (_, shape, strides) = &self.0[index];
        let mut dims = shape.iter().copied().zip(strides.iter().copied());
        Lattice::strided(self.span(index), SIZE, &mut dims)
    }
}

fn found(tensors: &Tensors) -> Option<Clash> {
    clash(tensors, &mut BUDGET.clone())
}

/// Returns the numbers of the two outputs.
fn outputs_of(clash: Clash) -> [usize; 2] {
    let Argument::Output(other) = clash.other else { panic!("{:?}", clash.other) };
    [clash.output, other]
}

fn accepted(tensors: &Tensors) -> bool {
    found(tensors).is_none()
}

/// Lists the bytes of a tensor.
fn bytes((address, shape, strides): &(usize, Vec<i64>, Vec<i64>)) -> HashSet<i64> {
    let mut elements = vec![i64::try_from(*address).unwrap()];
    for (extent, stride) in shape.iter().zip(strides) {
        let steps = (0..*extent).map(|i| i * stride * SIZE).collect::<Vec<_>>();
        elements = elements.iter().flat_map(|e| steps.iter().map(move |s| e + s)).collect();
    }
    elements.into_iter().flat_map(|e| [e, e + 1]).collect()
}

/// Returns whether no byte belongs to two tensors.
fn apart(tensors: &Tensors) -> bool {
    let sets: Vec<_> = tensors.0.iter().map(bytes).collect();
    let all: HashSet<_> = sets.iter().flatten().collect();
    all.len() == sets.iter().map(HashSet::len).sum::<usize>()
}

fn tensor() -> impl Strategy<Value = (usize, Vec<i64>, Vec<i64>)> {
    let dims = prop::collection::vec((1i64..5, -20i64..20), 0..4);
    (0usize..600, dims).prop_map(|(address, dims)| {
        let (shape, strides) = dims.into_iter().unzip();
        (4096 + address, shape, strides)
    })
}

/// Column blocks of `widths` of one matrix, which may be upside down.
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

    /// Whatever the strides, also those of an input: the answer is exact, or the search gives up.
    #[test]
    fn two_tensors_of_any_strides(a in tensor(), b in tensor()) {
        let tensors = Tensors(vec![a, b]);
        let answer = meet(&tensors.lattice(0), &tensors.lattice(1), &mut BUDGET.clone());
        let [a, b] = [&tensors.0[0], &tensors.0[1]].map(bytes);
        prop_assert_eq!(answer, Some(!a.is_disjoint(&b)));
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

/// Some channels of the pixels of a picture: every `step`-th from `first` on.
type Channels = (i64, i64, i64);

fn channels((first, step, count): Channels) -> impl Iterator<Item = i64> {
    (0..count).map(move |at| first + at * step)
}

const PIXEL: i64 = 12;

/// Outputs that interleave in one picture, with `pad` elements behind each row.
fn interleaved(of: &[Channels], [height, width, pad]: [i64; 3]) -> Tensors {
    let strides = |step| vec![width * PIXEL + pad, PIXEL, step];
    let output = |&(first, step, count): &Channels| {
        (4096 + usize::try_from(first * SIZE).unwrap(), vec![height, width, count], strides(step))
    };
    Tensors(of.iter().map(output).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    /// The work does not grow with the size of the picture.
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
        prop_assert!(of.is_empty() || found(&interleaved(&of, size)).is_some_and(|clash| clash.is_sure));
    }
}

/// Every second element beside every fourth: there are no extents by which the strides nest.
#[test]
fn steps_that_have_a_divisor_in_common() {
    let every = |first: usize, step, count| (4096 + 2 * first, vec![count], vec![step]);
    assert!(accepted(&Tensors(vec![every(0, 2, 99_999), every(1, 4, 49_999)])));
    assert!(!accepted(&Tensors(vec![every(0, 2, 99_999), every(2, 4, 49_999)])));
}

/// Takes minutes if every output is compared with every other.
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

/// A tensor with padding on each axis, by extents and strides in elements; negative strides go backwards.
fn padded(dims: &[(i64, i64)], backwards: &[bool]) -> (Vec<i64>, Vec<i64>) {
    let (mut strides, mut reach) = (vec![], 1);
    for (&(extent, padding), backwards) in dims.iter().zip(backwards).rev() {
        strides.insert(0, if *backwards { -reach } else { reach });
        reach *= extent + padding;
    }
    (dims.iter().map(|dim| dim.0).collect(), strides)
}

/// Returns the box of a tensor that begins at these coordinates.
fn part(strides: &[i64], at: &[i64], extents: &[i64]) -> (usize, Vec<i64>, Vec<i64>) {
    let first: i64 = strides.iter().zip(at).map(|(stride, at)| stride * at).sum();
    let address = 1 << 20;
    (usize::try_from(address + first * SIZE).unwrap(), extents.to_vec(), strides.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..Default::default() })]

    /// Wherever the boxes lie in a tensor: if there are many, some are not decided, but none wrongly.
    #[test]
    fn boxes_of_one_tensor(
        dims in prop::collection::vec((1i64..9, 0i64..3), 1..4),
        backwards in prop::collection::vec(any::<bool>(), 3),
        rest in prop::collection::vec(any::<prop::sample::Index>(), 3),
        starts in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 4), 2..100),
        are_many: bool,
    ) {
        let (shape, strides) = padded(&dims, &backwards);
        let pick = |index: &prop::sample::Index, most: i64| {
            i64::try_from(index.index(usize::try_from(most).unwrap())).unwrap()
        };
        let own: Vec<_> = shape.iter().zip(&rest).map(|(extent, of)| 1 + pick(of, *extent)).collect();
        let mut tensors = Tensors(vec![]);
        for start in starts.iter().take(if are_many { 100 } else { 60 }) {
            // The last axis is the split one.
            let mut extents = own.clone();
            *extents.last_mut().unwrap() = 1 + pick(&start[3], *shape.last().unwrap());
            let at: Vec<_> = shape.iter().zip(&extents).zip(start)
                .map(|((all, extent), of)| pick(of, all - extent + 1)).collect();
            let (address, shape, strides) = part(&strides, &at, &extents);
            // Some begin in the middle of an element, or reach from one row into the next.
            let nudge = [0, 0, 0, 1, 2, 3][start[1].index(6)];
            tensors.0.push((address + nudge, shape, strides));
            // Mostly boxes that are apart.
            if start[0].index(16) > 0 && !apart(&tensors) {
                tensors.0.pop();
            }
        }
        match found(&tensors) {
            None => prop_assert!(apart(&tensors)),
            Some(clash) if !clash.is_sure => prop_assert!(tensors.0.len() > 64),
            Some(clash) => {
                let [one, other] = outputs_of(clash).map(|at| bytes(&tensors.0[at]));
                prop_assert!(!one.is_disjoint(&other));
            }
        }
    }

    /// Tiles of one size side by side on all axes, the last of each row narrower, in any order, and however many.
    #[test]
    fn all_tiles_of_one_tensor(
        dims in prop::collection::vec((1i64..5, 1i64..6, 0i64..3, 0i64..3), 1..4),
        backwards in prop::collection::vec(any::<bool>(), 3),
        narrower: bool,
        turn in any::<prop::sample::Index>(),
        moved in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let all: Vec<_> = dims.iter()
            .map(|(extent, tiles, gap, padding)| ((extent + gap) * tiles, *padding)).collect();
        let (_, strides) = padded(&all, &backwards);
        let mut corners = vec![vec![]];
        for (extent, tiles, gap, _) in &dims {
            let starts = || (0..*tiles).map(|tile| tile * (extent + gap));
            corners = corners.iter()
                .flat_map(|corner: &Vec<i64>| starts().map(|at| [&corner[..], &[at]].concat()))
                .collect();
        }
        let tile = |corner: &Vec<i64>| {
            let mut extents: Vec<_> = dims.iter().map(|dim| dim.0).collect();
            let (last, (extent, tiles, gap, _)) = (extents.last_mut().unwrap(), dims.last().unwrap());
            if narrower && corner[dims.len() - 1] == (tiles - 1) * (extent + gap) {
                *last = 1;
            }
            part(&strides, corner, &extents)
        };
        let mut tensors = Tensors(corners.iter().map(tile).collect());
        tensors.0.rotate_left(turn.index(corners.len()));
        prop_assert!(apart(&tensors) && accepted(&tensors));
        if let Some(moved) = moved {
            tensors.0.push(tensors.0[moved.index(corners.len())].clone());
            prop_assert!(found(&tensors).is_some_and(|clash| clash.is_sure));
        }
    }
}

/// One byte of it lies in the next row, where another column begins.
#[test]
fn a_column_that_reaches_into_the_next_row() {
    let column = |at: usize| (4096 + at, vec![2, 1], vec![4, 1]);
    for at in [6, 7] {
        let tensors = Tensors(vec![column(0), column(at)]);
        assert_eq!(accepted(&tensors), at == 6);
        assert_eq!(apart(&tensors), at == 6);
    }
}

/// Hundreds of tiles of each of three planes, and one of them where another is.
#[test]
fn a_mosaic_of_planes() {
    let (_, strides) = padded(&[(3, 0), (200, 8), (300, 4)], &[false; 3]);
    let tile = |at: i64| part(&strides, &[0, at / 20 * 10, at % 20 * 15], &[3, 10, 15]);
    let mut tensors = Tensors((0..400).map(|at| tile(at * 7 % 400)).collect());
    assert!(accepted(&tensors));
    tensors.0[123] = tile(77);
    assert!(found(&tensors).is_some_and(|clash| clash.is_sure));
}

/// Columns of several matrices: more of them than are compared pair by pair, and those of one matrix are no boxes of
/// another.
#[test]
fn columns_of_matrices_that_lie_apart() {
    let (rows, width) = (50, 8);
    let matrix = |at: usize, heads: usize, gap: i64| {
        let pitch = i64::try_from(heads).unwrap() * width + gap;
        (0..heads).map(move |head| (4096 + at + 16 * head, vec![rows, width], vec![pitch, 1]))
    };
    let (query, key, value) = (
        matrix(0, 96, 0),
        matrix(80_018, 96, 0),
        matrix(240_004, 80, 3).chain(matrix(400_000, 70, 1)),
    );
    let mut tensors = Tensors(query.chain(key).chain(value).collect());
    for turn in [0, 11, 200] {
        tensors.0.rotate_left(turn);
        assert!(accepted(&tensors));
    }
    for moved in [5, 100, 300] {
        let mut tensors = tensors.clone();
        tensors.0[moved].0 -= 1;
        let found = found(&tensors).unwrap();
        let outputs = outputs_of(found);
        assert!(found.is_sure && outputs[0] > outputs[1]);
        assert!(!apart(&Tensors(outputs.map(|at| tensors.0[at].clone()).into())));
    }
}

/// A packed output that is longer than the columns' rows, here and there.
#[test]
fn columns_and_a_long_output_elsewhere() {
    for (at, is_apart) in [(40_000, true), (2_000, true), (3_000, false)] {
        let mut tensors = columns(&[2; 70], 50, false);
        tensors.0.iter_mut().for_each(|column| column.0 += 10_000);
        tensors.0.insert(33, (4096 + at, vec![4_000], vec![1]));
        let found = found(&tensors);
        assert_eq!(found.is_none(), is_apart);
        assert!(found.is_none_or(|clash| clash.is_sure));
    }
}

/// The product of the lengths of their hull and of a row is not a `usize`.
#[test]
fn unequal_columns_of_a_large_matrix() {
    let width = if usize::BITS == 32 { 20 } else { 80_000_000 };
    let widths: Vec<_> = (0..100).map(|at| width + at % 2).collect();
    assert!(accepted(&columns(&widths, 1024, false)));
}

/// What a call may take in all, not what each pair may.
#[test]
fn one_budget_for_all_pairs() {
    // Their strides differ, so they are no boxes of one tensor.
    let stride = |at: usize| 400 * i64::try_from(3 + at).unwrap();
    let tensor = |at: usize| (4096 + 8 * at, vec![9, 2], vec![stride(at), 1]);
    let outputs = Tensors((0..50).map(tensor).collect());
    let other = Tensors((0..49).map(tensor).collect());
    let taken = |tensors: &Tensors| {
        let mut budget = BUDGET;
        assert!(clash(tensors, &mut budget).is_none());
        BUDGET - budget
    };
    let (one, both) = (taken(&outputs), taken(&outputs) + taken(&other));
    // At least the axes of each pair.
    assert!(one >= 50 * 49 / 2 * 4);
    for (mut budget, lasts) in [(one, false), (both - 1, false), (both, true)] {
        assert!(clash(&outputs, &mut budget).is_none());
        let found = clash(&other, &mut budget);
        assert_eq!(found.is_none(), lasts);
        assert!(found.is_none_or(|clash| !clash.is_sure));
    }
    assert!(clash(&outputs, &mut (one - 1)).is_some_and(|clash| !clash.is_sure));
}

/// Many outputs in each other's gaps that are no boxes of one tensor: none is said to meet another.
#[test]
fn too_many_over_one_address() {
    let column = |pitch: i64, at: usize| (4096 + 2 * at, vec![50, 1], vec![pitch, 1]);
    for count in [60, 70] {
        let mut tensors = Tensors((0..count).map(|at| column(200, at)).collect());
        tensors.0[3] = column(400, 100);
        let found = found(&tensors);
        assert_eq!(found.is_none(), count == 60);
        assert!(found.is_none_or(|clash| !clash.is_sure));
    }
}

/// Outputs of stride 2 and 3 meet in every sixth element, unless both are short.
#[test]
fn strides_without_a_divisor_in_common() {
    let every = |first: usize, step: i64, count| (4096 + 2 * first, vec![count], vec![step]);
    for count in 1..8 {
        let tensors = Tensors(vec![every(0, 2, count), every(1, 3, count)]);
        assert_eq!(accepted(&tensors), apart(&tensors));
    }
}

/// With few columns or many; the tensor's other runs lie elsewhere modulo the columns' pitch.
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

/// More axes than a search can have, which are really one.
#[test]
fn axes_that_continue_each_other() {
    let strides: Vec<i64> = (1..=20).rev().map(|axis| 1 << axis).collect();
    let tensor = |address| (address, vec![2; strides.len()], strides.clone());
    assert!(accepted(&Tensors(vec![tensor(4096), tensor(4098)])));
    assert!(!accepted(&Tensors(vec![tensor(4096), tensor(4100)])));
}

/// More axes than there is room for: the tensors are not said to meet.
#[test]
fn axes_that_are_too_many() {
    let strides: Vec<i64> = (1..=25).rev().map(|axis| 3i64.pow(axis)).collect();
    let tensor = |address| (address, vec![2; strides.len()], strides.clone());
    for apart in [2, 6, 8] {
        let found = found(&Tensors(vec![tensor(4096), tensor(4096 + apart)]));
        assert!(!found.unwrap().is_sure);
    }
}

/// Tiles of a picture, with padding between its planes and rows.
#[test]
fn tiles_side_by_side() {
    let (plane, pitch) = (480 * 640 + 16, 640);
    let tile = |column: usize| (4096 + 2 * column, vec![3, 480, 320], vec![plane, pitch, 1]);
    assert!(accepted(&Tensors(vec![tile(0), tile(320)])));
    assert!(!accepted(&Tensors(vec![tile(0), tile(319)])));
}
