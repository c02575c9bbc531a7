//! The canonical form of any piece of whole bytes: its units are copied by the regions that they make.

use super::kernel::combine::LINE;
use super::kernel::strided::{Axis, Place};
use super::layout::{each, Layout, Visit, FEW_AXES};
use super::region::Region;
use super::tuning::Tuning;
use crate::math::{div, div_rem, rem, signed};
use crate::parts::{Iter, Transfer};
use crate::shape::MAX_RANK;
use core::ops::Range;

/// Units above this many bytes may be cut between tasks, at whole lines.
const CUT_ABOVE: usize = 4096;
/// Cuts may be so coarse that a piece has this many places for them.
const MIN_GRANULES: usize = 32;

/// Copies some bytes of all pieces, counted as if they were packed and lay one behind the other.
///
/// # Safety
/// As [`super::run`].
#[inline(never)] // or it is in the library twice, as the shims of closures are
pub(super) unsafe fn copy(transfer: &Transfer<'_>, tuning: &Tuning, bytes: Range<usize>) {
    let (parts, mut begin) = parts_from(transfer, bytes.start);
    let visit: &mut Visit<'_> = &mut |layout, places| {
        if bytes == (0..transfer.bytes) {
            // SAFETY: the caller's promise.
            unsafe { layout.region().copy(places, tuning) };
            return true;
        }
        let len = layout.units() * layout.unit;
        while let Some(place) = places() {
            if begin >= bytes.end {
                return false;
            }
            let part = bytes.start.max(begin) - begin..bytes.end.min(begin + len) - begin;
            // SAFETY: the caller's promise.
            unsafe { layout.copy(place, part, tuning) };
            begin += len;
        }
        true
    };
    let mut several = transfer.geometry.shape.iter().filter(|extent| **extent > 1);
    if several.nth(FEW_AXES).is_none() {
        each_with::<FEW_AXES>(transfer, parts, visit);
    } else {
        each_with::<MAX_RANK>(transfer, parts, visit);
    }
    tuning.finish();
}

/// The parts from the one on that has such a byte, and the first byte of that.
#[inline(never)] // for its stack
fn parts_from<'a>(transfer: &Transfer<'a>, byte: usize) -> (Iter<'a>, usize) {
    let mut parts = transfer.parts.iter();
    let (mut begin, mut after) = (0usize, parts.clone());
    while let Some(part) = after.next() {
        let end = begin.saturating_add(transfer.geometry.piece_bytes(part.len));
        if end > byte {
            break;
        }
        (begin, parts) = (end, after.clone());
    }
    (parts, begin)
}

/// [`each`] with as much of the stack as so many axes need.
#[inline(never)]
fn each_with<const AXES: usize>(transfer: &Transfer<'_>, parts: Iter<'_>, visit: &mut Visit<'_>) {
    each(transfer, parts, &mut [Axis::default(); AXES], visit);
}

impl Layout<'_> {
    /// All of its units.
    fn region(&self) -> Region<'_> {
        Region { unit: self.unit, axes: self.axes() }
    }

    /// Copies the bytes `part` of a piece, counted as if it were packed. Parts that share an end share no
    /// byte, whatever the end. Does not wait for stores past the caches.
    ///
    /// # Safety
    /// The input must be readable and the output writable over the piece.
    #[inline(never)] // as above
    unsafe fn copy(&mut self, place: Place, part: Range<usize>, tuning: &Tuning) {
        if let Some(way) = self.region().cut_turned() {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_turned(place, part, way, tuning) };
        }
        let (first, head) = self.cut(part.start);
        let (last, tail) = self.cut(part.end);
        // SAFETY: the caller's promise; units below the end of the piece lie within it, and so do their bytes.
        unsafe {
            if first == last {
                return self.copy_within(place, first, head..tail, tuning);
            }
            let mut begin = first;
            if head > 0 {
                self.copy_within(place, first, head..self.unit, tuning);
                begin += 1;
            }
            while begin < last {
                begin += self.copy_region(place, begin..last, tuning);
            }
            self.copy_within(place, last, 0..tail, tuning);
        }
    }

    /// Copies as much of an axis, at multiples of so many steps, as a part is of the piece.
    ///
    /// # Safety
    /// As [`Layout::copy`].
    #[inline(never)] // as above
    unsafe fn copy_turned(
        &mut self,
        place: Place,
        part: Range<usize>,
        (at, step): (usize, usize),
        tuning: &Tuning,
    ) {
        let axis = self.axes().get(at).copied().unwrap_or(Axis::ONE);
        let bytes = self.units() * self.unit;
        let each = div(bytes, axis.extent) * step;
        let begin = div(part.start, each) * step;
        let end = if part.end < bytes { div(part.end, each) * step } else { axis.extent };
        if begin < end {
            let place = axis.moved(place, signed(begin));
            // SAFETY: the caller's promise.
            unsafe { self.copy_steps(place, 0, (at, end - begin), tuning) };
        }
    }

    /// Copies what is of the axes from one on, and of one of them so many steps.
    ///
    /// # Safety
    /// As [`Layout::copy`].
    #[inline(never)] // as above
    unsafe fn copy_steps(
        &mut self,
        place: Place,
        from: usize,
        (at, count): (usize, usize),
        tuning: &Tuning,
    ) {
        let mut place = Some(place);
        let extent = self.axes().get(at).map_or(1, |axis| axis.extent);
        // So many, for now.
        self.set_extent(at, count);
        let axes = self.axes().get(from..).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { Region { unit: self.unit, axes }.copy(&mut || place.take(), tuning) };
        self.set_extent(at, extent);
    }

    /// Copies some bytes of a unit.
    ///
    /// # Safety
    /// As [`Layout::copy`].
    unsafe fn copy_within(&self, place: Place, unit: usize, bytes: Range<usize>, tuning: &Tuning) {
        if !bytes.is_empty() {
            let (source, target) = self.at(place, unit);
            let (source, target) =
                (source.wrapping_add(bytes.start), target.wrapping_add(bytes.start));
            // SAFETY: the caller's promise.
            unsafe { (tuning.kernels.copy)(source, target, bytes.len()) };
        }
    }

    /// The unit and the byte in it where a part ends. Small units are not cut, and of an axis so
    /// many steps are left together as make whole lines, where that leaves enough to cut at.
    #[inline(never)] // as above
    fn cut(&self, byte: usize) -> (usize, usize) {
        let (unit, rest) = div_rem(byte, self.unit);
        if self.unit > CUT_ABOVE {
            return (unit, rest - rest % LINE);
        }
        if unit == 0 {
            return (0, 0);
        }
        let count = self.units();
        if unit >= count {
            return (count, 0);
        }
        let mut step = count;
        for axis in self.axes() {
            step = div(step, axis.extent);
            for granule in [step * div(LINE, self.unit).max(1), step] {
                if granule <= count / MIN_GRANULES {
                    return (unit - rem(unit, granule), 0);
                }
            }
        }
        (unit, 0)
    }

    /// Copies the largest region that a range of units begins with; gives the number of its units.
    ///
    /// # Safety
    /// As [`Layout::copy`].
    unsafe fn copy_region(&mut self, place: Place, units: Range<usize>, tuning: &Tuning) -> usize {
        let mut step = 1;
        let mut outermost = self.axes().len().saturating_sub(1);
        // The outermost axis of which whole steps are wanted.
        for (at, axis) in self.axes().iter().enumerate().skip(1).rev() {
            let next = step * axis.extent;
            if (units.start > 0 && rem(units.start, next) != 0) || units.len() < next {
                break;
            }
            (outermost, step) = (at - 1, next);
        }
        let extent = self.axes().get(outermost).map_or(1, |axis| axis.extent);
        let count = div(units.len(), step).min(extent - rem(div(units.start, step), extent));
        let place = self.at(place, units.start);
        // SAFETY: the caller's promise.
        unsafe { self.copy_steps(place, outermost, (outermost, count), tuning) };
        count * step
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::super::kernel::levels;
    use super::super::kernel::strided::{Axis, Block};
    use super::{copy, Transfer, Tuning};
    use crate::copy::testing::transfer;
    use crate::dtype::DType;
    use crate::math::signed;
    use crate::parts::{OutputStrides, Part};
    use proptest::prelude::*;

    const TYPES: [DType; 5] =
        [DType::Uint8, DType::Float16, DType::Float, DType::Int64, DType::Complex128];

    /// How a tensor lies in memory: its axes outermost first, and for each how many elements more
    /// than needed it is apart, how many times over, and whether it runs backwards.
    #[derive(Debug, Clone)]
    struct Lie {
        order: Vec<usize>,
        axes: Vec<(i64, i64, bool)>,
    }

    impl Lie {
        /// Strides in elements, and how many lie before and from the first element on.
        fn strides(&self, shape: &[i64]) -> (Vec<i64>, i64, i64) {
            let (mut strides, mut step) = (vec![0; shape.len()], 1);
            let (mut before, mut after) = (0, 1);
            for axis in self.order.iter().rev() {
                let (gap, times, backwards) = self.axes[*axis];
                step *= times;
                let reach = step * (shape[*axis] - 1);
                strides[*axis] = if backwards { -step } else { step };
                *(if backwards { &mut before } else { &mut after }) += reach;
                step = step * shape[*axis] + gap;
            }
            (strides, before, after)
        }
    }

    fn lie(rank: usize) -> impl Strategy<Value = Lie> {
        let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
        let axis = (
            prop_oneof![4 => Just(0i64), 1 => 1i64..20],
            prop_oneof![6 => Just(1i64), 1 => Just(2i64)],
            prop::bool::weighted(0.2),
        );
        (order, prop::collection::vec(axis, rank)).prop_map(|(order, axes)| Lie { order, axes })
    }

    fn shape_and_lies() -> impl Strategy<Value = (Vec<i64>, Lie, Lie)> {
        let extent = prop_oneof![2 => 1i64..5, 3 => 5i64..40, 1 => 40i64..150];
        prop::collection::vec(extent, 1..=5)
            .prop_filter("not too many", |shape| shape.iter().product::<i64>() <= 30_000)
            .prop_flat_map(|shape| {
                let rank = shape.len();
                (Just(shape), lie(rank), lie(rank))
            })
    }

    fn elements(count: i64, dtype: DType) -> usize {
        usize::try_from(count).unwrap() * dtype.bits() as usize / 8
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

        /// Two pieces of a tensor that lies anyhow, in three parts and at once, at every level, past the
        /// caches or not, at the end or the begin of what may be touched.
        #[test]
        fn any_layout_in_any_parts(
            (shape, from, to) in shape_and_lies(),
            axis in any::<prop::sample::Index>(),
            dtype in prop::sample::select(TYPES.to_vec()),
            first in any::<prop::sample::Index>(),
            cuts in any::<[prop::sample::Index; 2]>(),
            at_end in any::<bool>(),
        ) {
            let axis = axis.index(shape.len());
            let extent = usize::try_from(shape[axis]).unwrap();
            let first = i64::try_from(first.index(extent)).unwrap();
            let (strides, before, after) = from.strides(&shape);
            let round = |bytes: usize| bytes.next_multiple_of(64 << 10);
            let bytes = elements(before + after, dtype);
            let source = Guarded::filled(round(bytes));
            let source = (source.place(bytes, at_end).wrapping_add(elements(before, dtype)), source);
            let size = elements(1, dtype);
            // Of each piece: its memory, where it begins, its part, and what each byte of its span is to be.
            let mut pieces = vec![];
            let mut all_strides = vec![];
            for (index, offset, len) in [(0, 0, first), (1, first, shape[axis] - first)] {
                let mut shape = shape.clone();
                shape[axis] = len;
                let (out_strides, out_before, out_after) = to.strides(&shape);
                all_strides.extend(&out_strides);
                if len == 0 {
                    continue;
                }
                let out_bytes = elements(out_before + out_after, dtype);
                let memory = Guarded::filled(round(out_bytes));
                let begin = memory.place(out_bytes, at_end);
                let target = begin.wrapping_add(elements(out_before, dtype));
                let mut expected = vec![0xEE; out_bytes];
                for element in 0..shape.iter().product() {
                    let (mut rest, mut get, mut put): (i64, _, _) = (element, 0, out_before);
                    for d in (0..shape.len()).rev() {
                        let at = rest % shape[d];
                        rest /= shape[d];
                        get += (at + if d == axis { offset } else { 0 }) * strides[d];
                        put += at * out_strides[d];
                    }
                    for byte in 0..size {
                        let at = isize::try_from(get * i64::from(dtype.bits() / 8)).unwrap();
                        // SAFETY: within what the strides span.
                        expected[elements(put, dtype) + byte] = unsafe { source.0.offset(at).add(byte).read() };
                    }
                }
                let part = Part { index, offset, len, target };
                pieces.push((memory, begin, part, expected));
            }
            let parts: Vec<_> = pieces.iter().map(|(_, _, part, _)| *part).collect();
            let transfer = Transfer {
                strides: Some(&strides),
                output_strides: OutputStrides::Planned { strides: &all_strides, rank: shape.len() },
                ..transfer(dtype, &shape, axis, source.0, &parts)
            };
            let mut cuts = cuts.map(|cut| cut.index(transfer.bytes));
            cuts.sort_unstable();
            let [low, high] = cuts;
            for tuning in Tuning::all() {
                let all = transfer.bytes;
                for ranges in [[low..high, high..all, 0..low], [0..all, 0..0, 0..0]] {
                    // SAFETY: memory is as large as the strides say.
                    unsafe {
                        for (_, begin, _, expected) in &pieces {
                            begin.write_bytes(0xEE, expected.len());
                        }
                        for range in ranges {
                            copy(&transfer, &tuning, range);
                        }
                        for (_, begin, part, expected) in &pieces {
                            let copied = std::slice::from_raw_parts(*begin, expected.len());
                            let past = tuning.non_temporal.is_some();
                            prop_assert!(copied == expected, "from {}, past {past}", part.offset);
                        }
                    }
                }
            }
        }
    }

    /// Rows of units, each so far from the one before, at one end of what may be touched.
    fn check(memory: &[Guarded; 2], unit: usize, [rows, row]: [Axis; 2], at_end: bool) {
        let reach = |step: isize, extent: usize| step.unsigned_abs() * (extent - 1);
        let read = reach(rows.from, rows.extent) + reach(row.from, row.extent) + unit;
        let put = reach(rows.to, rows.extent) + reach(row.to, row.extent) + unit;
        let source = memory[0].place(read, at_end);
        let target = memory[1].place(put, at_end);
        let first = if row.from < 0 { reach(row.from, row.extent) } else { 0 };
        let block = Block { unit, axes: [rows, row] };
        for kernels in levels() {
            // SAFETY: all of it lies within the mappings.
            let (source, copied) = unsafe {
                target.write_bytes(0xEE, put);
                let place = (source.wrapping_add(first).cast_const(), target);
                block.copy(place, Axis::ONE, kernels);
                (std::slice::from_raw_parts(source, read), std::slice::from_raw_parts(target, put))
            };
            let mut expected = vec![0xEE; put];
            for (outer, inner) in
                (0..rows.extent).flat_map(|at| (0..row.extent).map(move |to| (at, to)))
            {
                let of = |all: isize, one: isize| all * signed(outer) + one * signed(inner);
                let from = of(rows.from, row.from).wrapping_add_unsigned(first).cast_unsigned();
                let to = of(rows.to, row.to).cast_unsigned();
                expected[to..to + unit].copy_from_slice(&source[from..from + unit]);
            }
            assert!(copied == expected, "{block:?}, at_end {at_end}");
        }
    }

    /// Those that are repeated, and those that lie apart in the output, forwards and backwards, with gaps or without.
    #[test]
    fn rows_of_units_apart_and_again() {
        let memory = [0, 1].map(|_| Guarded::filled(192 << 10));
        for unit in [1, 2, 3, 4, 5, 8, 12, 16] {
            for to in [unit, unit + 1, 2 * unit, 3 * unit, 4 * unit, 9 * unit].map(signed) {
                for from in [0, 1, 2, 3, -1, -2].map(|times| times * signed(unit)) {
                    for extent in [1, 7, 16, 34, 61, 203] {
                        for (rows, gap) in [(1, 0), (3, 0), (4, 5)] {
                            let row = Axis { extent, from, to };
                            let far = |step: isize| step.abs() * signed(extent) + gap;
                            let from = far(from).max(signed(unit));
                            let rows = Axis { extent: rows, from, to: far(to) };
                            check(&memory, unit, [rows, row], gap == 0);
                        }
                    }
                }
            }
        }
    }
}
