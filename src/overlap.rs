//! Whether tensors share bytes. Exact for packed ones; for strided ones that interleave (columns
//! of one matrix, planes of one image) it shows them apart by the period of their strides.

use crate::error::{Error, Which};
use crate::memory::{Memory, Outputs, Span};

/// The spans of this many outputs are compared each with each.
const FEW: usize = 8;
/// How many spans are put in order at a time, on 32 KiB of the stack, where there are more.
const BLOCK: usize = 1024;

/// Sees the outputs' spans go by: in most calls each lies above or below all before it, and that is
/// all there is to it.
pub(crate) struct Overlaps {
    /// From the lowest to the highest byte of those seen.
    hull: Span,
    outside: bool,
}

impl Overlaps {
    pub(crate) fn new() -> Self {
        Self { hull: Span { start: usize::MAX, end: 0 }, outside: true }
    }

    /// Takes the span of the next output that has elements.
    pub(crate) fn push(&mut self, span: Span) {
        self.outside &= span.is_apart(self.hull);
        self.hull = self.hull.hull(span);
    }

    /// That no two of the outputs pushed share a byte.
    pub(crate) fn check<O: Outputs>(&self, outputs: &O, all_packed: bool) -> Result<(), Error> {
        if self.outside || O::APART {
            Ok(())
        } else {
            check_each(outputs, all_packed)
        }
    }
}

/// That no two outputs share a byte, whatever their order.
#[cold]
fn check_each(outputs: &impl Outputs, all_packed: bool) -> Result<(), Error> {
    if outputs.len() <= FEW {
        return pairs(outputs);
    }
    let span = |index| span_of(outputs, index);
    let start = |index| {
        if all_packed {
            Ok(outputs.data(index).map(|data| data as usize))
        } else {
            Ok(span(index)?.map(|span| span.start))
        }
    };
    for_each_cluster(outputs.len(), start, span, |cluster| {
        // The usual mistake is found without comparing all with all.
        apart(outputs, cluster.pair.0, cluster.pair.1)?;
        columns(outputs, cluster.reach)
    })
}

/// Compares each of a few outputs with those before it.
fn pairs(outputs: &impl Outputs) -> Result<(), Error> {
    let mut spans = [Span::default(); FEW];
    for output in 0..outputs.len() {
        let span = span_of(outputs, output)?.unwrap_or_default();
        for (other, other_span) in spans.iter().take(output).enumerate() {
            if span.intersects(*other_span) {
                apart(outputs, output, other)?;
            }
        }
        if let Some(slot) = spans.get_mut(output) {
            *slot = span;
        }
    }
    Ok(())
}

/// Compares one output with all others.
fn one_with_all(outputs: &impl Outputs, output: usize) -> Result<(), Error> {
    let mut others = (0..outputs.len()).filter(|other| *other != output);
    others.try_for_each(|other| apart(outputs, output, other))
}

fn span_of(outputs: &impl Outputs, index: usize) -> Result<Option<Span>, Error> {
    outputs.get(index)?.map_or(Ok(None), |memory| memory.span(Which::Output(index)))
}

/// Outputs whose spans meet, directly or by way of others between.
struct Cluster {
    reach: Span,
    /// Two of them whose spans meet.
    pair: (usize, usize),
}

/// Calls `visit` for each cluster of two spans or more.
fn for_each_cluster(
    count: usize,
    start: impl Fn(usize) -> Result<Option<usize>, Error>,
    span: impl Fn(usize) -> Result<Option<Span>, Error>,
    mut visit: impl FnMut(Cluster) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reach = Span::default();
    let mut furthest = 0; // who reaches to the end of `reach`
    let mut pair = None;
    in_order(count, start, |index| {
        let Some(next) = span(index)? else { return Ok(()) };
        if next.start < reach.end {
            pair = pair.or(Some((index, furthest)));
        } else {
            if let Some(pair) = pair.take() {
                visit(Cluster { reach, pair })?;
            }
            reach = Span { start: next.start, end: next.start };
        }
        if next.end > reach.end {
            (reach.end, furthest) = (next.end, index);
        }
        Ok(())
    })?;
    pair.map_or(Ok(()), |pair| visit(Cluster { reach, pair }))
}

/// Calls `visit` for each index below `count` that has a start, in the order of the starts. Without
/// a heap that takes a pass for each block of the lowest not visited yet.
#[inline(never)] // for it takes a large stack
fn in_order(
    count: usize,
    start: impl Fn(usize) -> Result<Option<usize>, Error>,
    mut visit: impl FnMut(usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut visited: Option<(usize, usize)> = None;
    loop {
        #[allow(clippy::large_stack_arrays)] // no heap
        let mut block = [(0usize, 0usize); 2 * BLOCK]; // start, index
        let mut len = 0;
        let mut ceiling: Option<(usize, usize)> = None;
        for index in 0..count {
            let Some(start) = start(index)? else { continue };
            let key = (start, index);
            let is_due = visited.is_none_or(|visited| key > visited);
            if !is_due || ceiling.is_some_and(|ceiling| key > ceiling) {
                continue;
            }
            if len == block.len() {
                let (_, middle, _) = block.select_nth_unstable(BLOCK - 1);
                ceiling = Some(*middle);
                len = BLOCK;
                if key > *middle {
                    continue;
                }
            }
            if let Some(slot) = block.get_mut(len) {
                *slot = key;
                len += 1;
            }
        }
        let lowest = block.get_mut(..len).unwrap_or_default();
        lowest.sort_unstable();
        for &key in &*lowest {
            visited = Some(key);
            visit(key.1)?;
        }
        if ceiling.is_none() {
            return Ok(());
        }
    }
}

/// That no two of a cluster share a byte, though their spans meet: in most calls they are columns of
/// one matrix. Their runs are compared modulo a period common to all; the few that do not fit into
/// it are compared with all others.
fn columns(outputs: &impl Outputs, reach: Span) -> Result<(), Error> {
    // A member's span, length of a run and period.
    let member = |index| -> Result<Option<(Span, usize, usize)>, Error> {
        let Some(memory) = outputs.get(index)? else { return Ok(None) };
        let span = memory.span(Which::Output(index))?.filter(|span| span.intersects(reach));
        Ok(span.map(|span| {
            let (run, period) = runs(&memory, span);
            (span, run, period)
        }))
    };
    let all = 0..outputs.len();
    let mut common = 0;
    for index in all.clone() {
        common = gcd(common, member(index)?.map_or(0, |(_, _, period)| period));
    }
    let folded = |index| {
        Ok(member(index)?.map(|(span, run, _)| {
            let start = distance(reach.start, span.start, common);
            Span { start, end: start.saturating_add(run) }
        }))
    };
    let fitting = |index| Ok(folded(index)?.filter(|run: &Span| run.end <= common));
    let start = |index| Ok(fitting(index)?.map(|run| run.start));
    let mut meeting = None;
    for_each_cluster(outputs.len(), start, fitting, |cluster| {
        meeting = meeting.or(Some(cluster.pair));
        Ok(())
    })?;
    if let Some((output, other)) = meeting {
        apart(outputs, output, other)?;
    }
    for output in all {
        let fits = |run: Span| run.end <= common && meeting.is_none();
        if folded(output)?.is_some_and(|run| !fits(run)) {
            one_with_all(outputs, output)?;
        }
    }
    Ok(())
}

/// That no output lies over the strides of another, which are read again while it is written.
#[cold]
pub(crate) fn check_strides(outputs: &impl Outputs) -> Result<(), Error> {
    let strides = |index| -> Result<Option<Span>, Error> {
        Ok(outputs.get(index)?.and_then(|memory| memory.strides).map(Span::of_slice))
    };
    let count = outputs.len();
    // Strides seldom lie among the data: then this is all.
    let mut all = Span { start: usize::MAX, end: 0 };
    for array in (0..count).map(strides) {
        let Some(array) = array? else { continue };
        all = all.hull(array);
    }
    let mut meets = false;
    for output in 0..count {
        meets |= span_of(outputs, output)?.is_some_and(|span| span.intersects(all));
    }
    if !meets {
        return Ok(());
    }
    // Visited together in order, one that begins before the other kind has ended lies over it.
    let span = |index: usize| match index.checked_sub(count) {
        None => span_of(outputs, index),
        Some(index) => strides(index),
    };
    let start = |index| Ok(span(index)?.map(|span| span.start));
    let (mut data, mut arrays) = ((0, 0), (0, 0)); // how far they reach, and which does
    in_order(count.saturating_mul(2), start, |index| {
        let Some(Span { start, end }) = span(index)? else { return Ok(()) };
        let (own, other, output) = match index.checked_sub(count) {
            None => (&mut data, arrays, index),
            Some(index) => (&mut arrays, data, index),
        };
        if start < other.0 {
            let (output, of) = if index < count { (output, other.1) } else { (other.1, output) };
            return Err(Error::DataOverDescriptor { output, other: Which::Output(of) });
        }
        *own = (*own).max((end, output));
        Ok(())
    })
}

/// How far `to` is ahead of `from`, modulo `period`.
fn distance(from: usize, to: usize, period: usize) -> usize {
    match (to.checked_sub(from), from.abs_diff(to).checked_rem(period).unwrap_or(0)) {
        (Some(_), distance) => distance,
        (None, 0) => 0,
        (None, behind) => period - behind,
    }
}

/// That two outputs do not share a byte, even if their spans meet.
fn apart(outputs: &impl Outputs, output: usize, other: usize) -> Result<(), Error> {
    let (Some(a), Some(b)) = (outputs.get(output)?, outputs.get(other)?) else { return Ok(()) };
    match (a.span(Which::Output(output))?, b.span(Which::Output(other))?) {
        (Some(a_span), Some(b_span))
            if a_span.intersects(b_span) && !interleave(&a, a_span, &b, b_span) =>
        {
            Err(Error::Overlap { output, other: Which::Output(other) })
        }
        _ => Ok(()),
    }
}

/// Whether two tensors whose spans meet lie in each other's gaps.
pub(crate) fn interleave(a: &Memory<'_>, a_span: Span, b: &Memory<'_>, b_span: Span) -> bool {
    let (a_run, a_period) = runs(a, a_span);
    let (b_run, b_period) = runs(b, b_span);
    let period = gcd(a_period, b_period);
    if period == 0 {
        return false;
    }
    let begin = distance(a_span.start, b_span.start, period);
    a_run <= begin && b_run <= period - begin
}

/// The bytes of a tensor as runs that begin at multiples of a period from its lowest address:
/// (length of a run, period). Period 0 = one run over the whole span.
fn runs(memory: &Memory<'_>, span: Span) -> (usize, usize) {
    let whole = (span.end - span.start, 0);
    let Some(strides) = memory.strides else { return whole };
    if memory.dtype.is_sub_byte() {
        return whole;
    }
    let size = u64::from(memory.dtype.bits() / 8);
    let steps = || {
        let dims = memory.shape.iter().zip(strides).enumerate();
        let moving = dims.filter(|(_, (extent, stride))| **extent > 1 && **stride != 0);
        moving.map(|(d, (extent, stride))| {
            (1u64 << d, extent.unsigned_abs(), stride.unsigned_abs().saturating_mul(size))
        })
    };
    let (mut run, mut inside) = (size, 0u64);
    while let Some((axis, extent, _)) =
        steps().find(|(axis, _, step)| inside & axis == 0 && *step == run)
    {
        run = run.saturating_mul(extent);
        inside |= axis;
    }
    let period = steps().filter(|(axis, _, _)| inside & axis == 0).map(|(_, _, step)| step);
    let period = period.fold(0, gcd_u64);
    match (usize::try_from(run), usize::try_from(period)) {
        (Ok(run), Ok(period)) if run <= period => (run, period),
        _ => whole,
    }
}

fn gcd(a: usize, b: usize) -> usize {
    usize::try_from(gcd_u64(a as u64, b as u64)).unwrap_or(0)
}

fn gcd_u64(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::{span_of, Error, Memory, Outputs, Overlaps, Span};
    use crate::dtype::DType;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Outputs at made-up addresses: nothing here is ever read or written.
    struct Tensors(Vec<(usize, Vec<i64>, Vec<i64>)>);

    // SAFETY: plain numbers.
    unsafe impl Sync for Tensors {}

    impl Outputs for Tensors {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn get(&self, index: usize) -> Result<Option<Memory<'_>>, Error> {
            let (address, shape, strides) = &self.0[index];
            Ok(Some(Memory {
                data: core::ptr::without_provenance_mut(*address),
                data_bytes: 0,
                dtype: DType::Uint16,
                shape,
                strides: Some(strides),
                bit_offset: 0,
            }))
        }
        fn data(&self, _: usize) -> Option<*mut u8> {
            None
        }
        fn descriptors(&self) -> Span {
            Span::default()
        }
        const APART: bool = false;
    }

    fn accepted(tensors: &Tensors) -> bool {
        let mut overlaps = Overlaps::new();
        for index in 0..tensors.len() {
            overlaps.push(span_of(tensors, index).unwrap().unwrap());
        }
        overlaps.check(tensors, false).is_ok()
    }

    /// Whether no byte belongs to two tensors, by listing them all.
    fn apart(tensors: &Tensors) -> bool {
        let mut bytes = HashSet::new();
        tensors.0.iter().all(|(address, shape, strides)| {
            let mut elements = vec![i64::try_from(*address).unwrap()];
            for (extent, stride) in shape.iter().zip(strides) {
                let steps = (0..*extent).map(|i| i * stride * 2).collect::<Vec<_>>();
                elements = elements.iter().flat_map(|e| steps.iter().map(move |s| e + s)).collect();
            }
            elements.iter().all(|e| bytes.insert(*e) && bytes.insert(e + 1))
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
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn nothing_that_overlaps_is_accepted(
            tensors in prop::collection::vec(
                (0usize..600, prop::collection::vec((1i64..4, -9i64..9), 0..3)), 2..24
            )
        ) {
            let tensors = Tensors(tensors.into_iter().map(|(address, dims)| {
                let (shape, strides) = dims.into_iter().unzip();
                (4096 + address * 2, shape, strides)
            }).collect());
            let collides = |(a, shape, strides): &(usize, Vec<i64>, Vec<i64>)| {
                !apart(&Tensors(vec![(*a, shape.clone(), strides.clone())]))
            };
            prop_assume!(!tensors.0.iter().any(collides));
            prop_assert!(apart(&tensors) || !accepted(&tensors));
        }

        #[test]
        fn column_blocks_of_a_matrix_are_apart(
            widths in prop::collection::vec(1i64..5, 1..60),
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

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn interleaved_blocks_are_judged_exactly(
            pitch in 2i64..12,
            widths in (1i64..12, 1i64..12),
            ahead in 0usize..12,
            rows in 2i64..5,
            swap in any::<bool>(),
        ) {
            let block = |address, width: i64| (address, vec![rows, width.min(pitch)], vec![pitch, 1]);
            let mut tensors = vec![block(4096, widths.0), block(4096 + 2 * ahead, widths.1)];
            prop_assume!(i64::try_from(ahead).unwrap() < pitch);
            if swap {
                tensors.swap(0, 1);
            }
            let tensors = Tensors(tensors);
            prop_assert_eq!(accepted(&tensors), apart(&tensors));
        }
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

    /// More tensors than a block holds, in an order that is neither up nor down.
    #[test]
    fn many_are_put_in_order() {
        let count = 4001;
        let at = |place: usize| (4096 + 8 * place, vec![4], vec![1]);
        let shuffled = |index: usize| at(index * 1234 % count);
        let mut tensors = Tensors((0..count).map(shuffled).collect());
        assert!(accepted(&tensors));
        tensors.0[2000].0 += 1;
        assert!(!accepted(&tensors));
    }
}
