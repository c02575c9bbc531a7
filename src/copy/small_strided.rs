//! Few units of pieces with strides, copied one by one: what is small is not worth asking what else it is.

use super::kernel::opaque::opaque;
use super::kernel::ordered::{Order, Ordered};
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::{Axis, Block};
use super::layout::{self, stride, FEW_AXES};
use super::{region, tuning};
use crate::math::{div, signed};
use crate::parts::{PlannedPart, Pointers, Transfer};
use crate::shape::usize_of;
use core::mem::MaybeUninit;

/// As many units of all pieces are few.
const FEW: usize = if LOW_THRESHOLDS { 4 } else { 768 };
/// More bytes are for other ways; and more than these, but for runs along the last axis that are as few, have more of
/// them, for the most part. Zen 4, ns before and after: 9 runs of 1,312 bytes 308, 202, 27 of 360 319, 174, 60
/// of 932 1,280, 1,150; 512 units of 64, heads, 1,085, 757.
const MOST: usize = 64 << 10;
const MOST_SHORT: usize = 8 << 10;
/// But for few long runs, up to where threads may be of use, unless they are repeated. Zen 4, us before and after: 36
/// runs of 2 KiB backwards 1.60, 1.48, by a plan 1.56, 1.36, a column of 256 bytes of each 1.77, 1.37.
const MOST_LONG: usize = (512 << 10) - 1;
/// As many are few for a plan, which has asked before, where they are longer and in the first-level cache. Zen 4, ns a
/// plan's call before and after: 2,023 of 8 bytes 840, 525, 817 of 24 748, 500; but 3,153 of 2 570, 780. Fewer of them:
/// a run of 972 bytes in 4 rows 107, 49, three of 41 elements of 8 bytes in 7 208, 102.
const FEW_LONG: usize = if LOW_THRESHOLDS { 4 } else { 3072 };
const LONG: usize = 8;
const NEAR: usize = 32 << 10;
/// Of pieces, or rows, that lie between each other no more are ordered, nor of short rows: all are read again for each.
/// Zen 4, ns before and after: f32 33 × 49 × 2 717, 420; but u8 1,655 × 3 × 4 640, 760, 355 × 26 × 3 840, 1,380.
const MOST_MIXED: usize = if LOW_THRESHOLDS { MOST } else { 16 << 10 };
const SHORT_ROW: usize = 32;

/// Whether it is worth counting units.
#[inline(never)] // once in the library
fn may_be_few(transfer: &Transfer<'_>) -> bool {
    let &Transfer { ref geometry, bytes, strides, .. } = transfer;
    let is_repeated = || strides.is_some_and(|all| all.contains(&0));
    (bytes <= MOST || (bytes <= MOST_LONG && !is_repeated()))
        && !geometry.dtype.is_sub_byte()
        && geometry.shape.len() <= FEW_AXES
}

/// Copies all parts unit by unit, if they have few; whether they have.
///
/// # Safety
/// As [`super::run`].
#[inline(never)] // which takes some of the stack
pub(super) unsafe fn copy(transfer: &Transfer<'_>) -> bool {
    let &Transfer { ref geometry, strides, bytes, ref parts, output_strides, .. } = transfer;
    if !may_be_few(transfer) {
        return false;
    }
    let few = FEW * geometry.dtype.bits() as usize / 8;
    let mut are_few = bytes <= few;
    if !are_few {
        let mut room = [MaybeUninit::uninit(); 1];
        let [first] = parts.iter().list(&mut room) else { return false };
        let goes_on = |strides: Option<&[i64]>| strides.is_none_or(|all| all.last() == Some(&1));
        let run = if geometry.inner == 1 { Some(&first.len) } else { geometry.shape.last() };
        let are_runs = goes_on(strides) && goes_on(output_strides.get(first.index));
        if !are_runs || bytes > run.map_or(0, |run| few * usize_of(*run)).max(MOST_SHORT) {
            return false;
        }
    }
    let (kernels, count) = (tuning::kernels(bytes), parts.count());
    let mut axes = [Axis::default(); FEW_AXES];
    layout::each(transfer, parts.iter(), &mut axes, &mut |layout, places| {
        are_few = are_few || layout.units().saturating_mul(count) <= FEW;
        if are_few {
            // SAFETY: the caller's promise.
            unsafe { region::copy_each(places, layout.unit, layout.axes(), kernels) };
        }
        are_few
    })
}

/// Pieces with strides that are a row of units each, or a few rows, few units in all: what a plan knows of them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SmallStrided {
    /// Bytes of a unit and how many units there are, of a piece of one step; 0 = it is not so.
    unit: usize,
    count: usize,
    /// Whether a piece of more steps has more units, longer ones, or neither: all are alike.
    grows: Grows,
    /// Bytes from a step on the split axis to the next, and from a unit to the next; 0 = a unit.
    step: isize,
    from: isize,
    to: usize,
    /// Rows of units, which all pieces have then.
    outer: Axis,
    order: Order,
}

/// See [`SmallStrided`].
type Grows = usize;
const BY_UNITS: Grows = 0;
const BY_COUNT: Grows = 1;
const NOT: Grows = 2;

impl SmallStrided {
    pub(crate) const NONE: Self = Self {
        unit: 0,
        count: 0,
        grows: NOT,
        step: 0,
        from: 0,
        to: 0,
        outer: Axis::ONE,
        order: Order::NONE,
    };

    /// Those of a checked transfer to NULL, if it is such.
    #[inline(never)] // once in the library
    pub(crate) fn new(transfer: &Transfer<'_>) -> Self {
        let &Transfer { ref geometry, strides, bytes, ref parts, output_strides, .. } = transfer;
        let mut few = Self::NONE;
        if !may_be_few(transfer) {
            return few;
        }
        let size = geometry.dtype.bits() as usize / 8;
        let packed = signed(usize_of(geometry.inner) * size);
        let step = stride(strides, geometry.axis, size).unwrap_or(packed);
        let is_packed = output_strides.are_packed();
        let is_ordered = tuning::kernels(bytes).ordered.is_some();
        let mut lens = parts.iter().map(|part| part.len);
        let first = lens.next();
        let are_equal = lens.all(|len| Some(len) == first);
        few.step = step;
        let (mut at, mut units, mut axes) = (0, 0, [Axis::default(); FEW_AXES]);
        let are_all = layout::each(transfer, parts.iter(), &mut axes, &mut |layout, places| {
            let (outer, row, unit) = match *layout.axes() {
                [] => (Axis::ONE, Axis::ONE, layout.unit),
                [row] => (Axis::ONE, row, layout.unit),
                [outer, row] => (outer, row, layout.unit),
                _ => return false,
            };
            while let Some((_, target)) = places() {
                let Some(part) = transfer.part(at) else { return false };
                at += 1;
                let len = usize_of(part.len);
                if few.count == 0 {
                    (few.unit, few.count, few.grows) = match () {
                        () if are_equal => (unit, row.extent, NOT),
                        () if geometry.outer == 1 && row.extent > 1 => {
                            (unit, div(row.extent, len), BY_COUNT)
                        }
                        () => (div(unit, len), row.extent, BY_UNITS),
                    };
                    few.from = row.from;
                    few.to = if is_packed { 0 } else { row.to.cast_unsigned() };
                    few.outer = outer;
                    // Whether others have what lies between.
                    let is_within = |step: isize| step.unsigned_abs() < row.from.unsigned_abs();
                    let are_mixed = (parts.count() > 1 && is_within(step))
                        || (outer.extent > 1 && is_within(outer.from))
                        || row.extent * unit < SHORT_ROW;
                    let most = if are_mixed { MOST_MIXED } else { MOST };
                    if is_ordered && few.grows != BY_UNITS && bytes <= most {
                        few.order.make(unit, row);
                    }
                }
                units += outer.extent * row.extent;
                // What is repeated has loops of its own.
                let is_long = unit >= LONG && bytes <= NEAR && row.from != 0;
                let most = match () {
                    () if few.order.is_there() => usize::MAX,
                    // Elements are transposed.
                    () if outer.extent > 1 && unit == size => 0,
                    () if is_long => FEW_LONG,
                    () => FEW,
                };
                let are_steps = row.from == few.from && row.to == few.step_to(unit);
                // Those that go backwards begin elsewhere.
                let is_like = few.of(part.len) == (unit, row.extent)
                    && target.is_null()
                    && outer == few.outer
                    && row.extent >= few.order.each();
                if !is_like || units > most || (row.extent > 1 && !are_steps) {
                    return false;
                }
            }
            true
        });
        if !are_all {
            few.count = 0;
        }
        few
    }

    /// Smaller builds go without.
    #[inline(always)]
    pub(crate) fn are_there(&self) -> bool {
        cfg!(feature = "avx512") && self.count > 0
    }

    /// Bytes of a unit of a piece of so many steps, and how many units.
    #[inline(always)]
    fn of(&self, len: i64) -> (usize, usize) {
        let len = usize_of(len);
        // Or loops over parts are there for each.
        match opaque(self.grows) {
            BY_UNITS => (self.unit * len, self.count),
            BY_COUNT => (self.unit, self.count * len),
            _ => (self.unit, self.count),
        }
    }

    #[inline(always)]
    fn step_to(&self, unit: usize) -> isize {
        if opaque(self.to) == 0 {
            signed(unit)
        } else {
            self.to.cast_signed()
        }
    }

    /// Copies all parts, so many bytes.
    ///
    /// # Safety
    /// As [`super::run`], of a transfer that is as the one these are of.
    #[inline(never)] // off the way of other copies
    pub(crate) unsafe fn copy(
        &self,
        source: *const u8,
        parts: &[PlannedPart],
        targets: Pointers<'_, u8>,
        bytes: usize,
    ) {
        let kernels = tuning::kernels(bytes);
        let by_units: Ordered = |_, block, place, kernels| {
            // SAFETY: the caller's promise.
            unsafe { block.copy_one(place, kernels) };
        };
        let copy = kernels.ordered.filter(|_| self.order.is_there()).unwrap_or(by_units);
        for part in parts {
            let (unit, extent) = self.of(part.len);
            let ahead = self.step.wrapping_mul(signed(usize_of(part.offset)));
            let row = Axis { extent, from: self.from, to: self.step_to(unit) };
            let block = Block { unit, axes: [self.outer, row] };
            let place = (source.wrapping_offset(ahead), targets.get(part.index));
            // SAFETY: the caller's promise.
            unsafe { copy(&self.order, &block, place, kernels) };
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::super::guarded::Guarded;
    #[cfg(unix)]
    use super::super::kernel::levels;
    use super::super::strided;
    use super::super::testing::{parts, transfer};
    use super::super::tuning::Tuning;
    use super::{copy, SmallStrided};
    #[cfg(unix)]
    use super::{signed, Axis, Block, Order};
    use crate::dtype::DType;
    use crate::parts::{OutputStrides, Part, Parts, PlannedPart, Pointers, Transfer};
    use core::ptr::{null, null_mut};
    use proptest::prelude::*;

    const UNTOUCHED: u16 = 0xEEEE;

    /// Strides of a matrix, how many elements lie before its first one, and how many there are in all.
    fn lie(rows: i64, columns: i64, (gap, is_back): (i64, bool)) -> ([i64; 2], usize, usize) {
        let pitch = columns + gap;
        let all = usize::try_from(rows * pitch).unwrap();
        let last = usize::try_from(columns - 1).unwrap();
        ([pitch, if is_back { -1 } else { 1 }], if is_back { last } else { 0 }, all)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        /// Pieces that are alike, and such that are not, of a matrix of any pitch, either way.
        #[test]
        fn pieces_with_strides(
            lengths in prop_oneof![
                (1i64..5, 1usize..50).prop_map(|(len, pieces)| vec![len; pieces]),
                prop::collection::vec(0i64..5, 1..50),
            ],
            other in prop_oneof![1i64..20, 60i64..700],
            axis in 0usize..2,
            from in (0i64..5, any::<bool>()),
            apart in 1i64..6,
            to in prop::option::of(prop::collection::vec((0i64..3, any::<bool>()), 2)),
        ) {
            let extent: i64 = lengths.iter().sum();
            prop_assume!(extent > 0);
            let of = |len: i64| if axis == 0 { [len, other] } else { [other, len] };
            let shape @ [rows, columns] = of(extent);
            let (strides, before, all) = lie(rows, columns, from);
            let strides = strides.map(|step| step * apart);
            let [before, all] = [before, all].map(|elements| elements * usize::try_from(apart).unwrap());
            let source: Vec<u16> = (0..all).map(|at| u16::try_from(at % 60_000).unwrap()).collect();
            let packed = (0, false);
            let lies = |at: usize| to.as_ref().map_or(packed, |to| to[at / 3 % 2]);
            let mut to_strides = Vec::new();
            let (mut copied, mut expected, mut begins, mut offset) = (vec![], vec![], vec![], 0);
            for (at, len) in lengths.iter().enumerate() {
                let [rows, columns] = of(*len);
                let (strides_to, before_to, all) = lie(rows, columns.max(1), lies(at));
                let mut output = vec![UNTOUCHED; all];
                copied.push(output.clone());
                for row in 0..rows {
                    for column in 0..columns {
                        let (ahead, aside) = if axis == 0 { (offset, 0) } else { (0, offset) };
                        let at = |begin: usize, [pitch, step]: [i64; 2], row: i64, column: i64| {
                            begin.checked_add_signed(isize::try_from(row * pitch + column * step).unwrap()).unwrap()
                        };
                        output[at(before_to, strides_to, row, column)] =
                            source[at(before, strides, row + ahead, column + aside)];
                    }
                }
                expected.push(output);
                to_strides.extend(strides_to);
                begins.push(before_to);
                offset += len;
            }
            let targets = copied.iter_mut().zip(&begins).map(|(output, begin)| {
                Some(output.as_mut_ptr().wrapping_add(*begin).cast())
            });
            let wanted: Vec<Part> = parts(&lengths, targets);
            let source = source.as_ptr().wrapping_add(before).cast();
            let output_strides = match to {
                None => OutputStrides::Packed,
                Some(_) => OutputStrides::Planned { strides: &to_strides, rank: 2 },
            };
            let plain = transfer(DType::Uint16, &shape, axis, source, &wanted);
            let transfer = Transfer { strides: Some(&strides), output_strides, ..plain };
            let mut targets = vec![null_mut(); lengths.len()];
            for part in &wanted {
                targets[part.index] = part.target;
            }
            let planned = |part: &Part| PlannedPart { index: part.index, offset: part.offset, len: part.len };
            let planned: Vec<_> = wanted.iter().map(planned).collect();
            // SAFETY: none, and all of them.
            let [nowhere, targets] = unsafe {
                let step = size_of::<*mut u8>();
                [0, targets.len()].map(|len| Pointers::new(targets.as_ptr(), step, len))
            };
            let of_plan = Parts::Planned { parts: &planned, targets: nowhere };
            let few = SmallStrided::new(&Transfer { parts: of_plan, source: null(), ..transfer });
            for tuning in Tuning::all() {
                for way in 0..3 {
                    for output in &mut copied {
                        output.fill(UNTOUCHED);
                    }
                    // SAFETY: memory is as large as the strides say.
                    unsafe {
                        if way == 2 && few.are_there() {
                            few.copy(source, &planned, targets, transfer.bytes);
                        } else if way != 1 || !copy(&transfer) {
                            strided::copy(&transfer, &tuning, 0..transfer.bytes);
                        }
                    }
                    prop_assert!(copied == expected);
                }
            }
        }
    }

    /// At every level, at the very end, or the very begin, of what may be touched: rows of units that lie apart, or
    /// backwards, and become one run, or not.
    #[cfg(unix)]
    #[test]
    fn rows_of_units() {
        let (from, to) = (Guarded::filled(64 << 10), Guarded::filled(64 << 10));
        let long = [17, 31, 32, 33, 48, 63, 64, 65, 80, 96, 97, 128, 129];
        let long = long.into_iter().flat_map(|unit| [(unit, unit), (unit, unit + 7)]);
        let short = (1..=17).flat_map(|unit| [1, 2, 3, 4, 5, 8].map(|times| (unit, unit * times)));
        let others = [(1, 7), (2, 5), (3, 31), (4, 70), (8, 20)];
        for (unit, apart) in long.chain(short).chain(others) {
            for (count, rows, gap) in [(3, 1, 0), (3, 3, 0), (5, 4, 5), (37, 2, 0), (65, 2, 0)] {
                for (at_end, is_back) in [(false, true), (true, false), (true, true)] {
                    let span = (count - 1) * apart + unit;
                    let (row_from, row_to) = (span + gap, count * unit + gap);
                    let (all_from, all_to) = (row_from * rows - gap, row_to * rows - gap);
                    let source = from.place(all_from, at_end).cast_const();
                    let target = to.place(all_to, at_end);
                    let (first, sign) = if is_back { (count - 1, -1) } else { (0, 1) };
                    let row = Axis { extent: count, from: sign * signed(apart), to: signed(unit) };
                    let outer = Axis { extent: rows, from: signed(row_from), to: signed(row_to) };
                    let block = Block { unit, axes: [outer, row] };
                    let place = (source.wrapping_add(first * apart), target);
                    // SAFETY: as many bytes are there.
                    let input = unsafe { std::slice::from_raw_parts(source, all_from) };
                    let mut expected = vec![0xEE; all_to];
                    for row in 0..rows {
                        for at in 0..count {
                            let of = if is_back { count - 1 - at } else { at };
                            expected[row * row_to + at * unit..][..unit]
                                .copy_from_slice(&input[row * row_from + of * apart..][..unit]);
                        }
                    }
                    let mut order = Order::NONE;
                    order.make(unit, row);
                    for kernels in levels() {
                        for ordered in [kernels.ordered.filter(|_| order.is_there()), None] {
                            // SAFETY: as above.
                            let copied = unsafe {
                                target.write_bytes(0xEE, all_to);
                                match ordered {
                                    Some(copy) => copy(&order, &block, place, kernels),
                                    None => block.copy_one(place, kernels),
                                }
                                std::slice::from_raw_parts(target, all_to)
                            };
                            assert!(copied == expected, "{block:?}, {is_back}");
                        }
                    }
                }
            }
        }
    }
}
