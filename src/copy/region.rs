//! Some units of a strided piece that make whole axes: rows that become runs are picked by registers, all
//! else is copied plane by plane.

use super::columns::Columns;
use super::kernel::combine::LINE;
use super::kernel::pick::{Picks, Units, AT_ONCE, LEAST_PICKED};
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::{Axis, Block, Places, RowCopy, RowSteps, Slot, LEAST_PAST};
use super::kernel::{Kernels, LANE};
use super::odometer::{self, Odometer};
use super::parallel::OF_EACH;
use super::plane::{Plane, Way, LARGE, LEAST_ROW, LEAST_RUN, LEAST_UNITS};
use super::runs::{self, Ahead};
use super::tuning::Tuning;
use crate::math::{self, div, div_ceil, signed};
use core::hint::black_box;
use core::mem;
use core::ptr::{null, null_mut};

/// Units of `unit` contiguous bytes under axes, outermost first.
pub(super) struct Region<'a> {
    pub unit: usize,
    pub axes: &'a [Axis],
}

/// No longer units are picked.
pub(super) const LONGEST_PICKED: usize = 16;
/// So few bytes are as quickly copied in any order.
const SMALL: usize = if LOW_THRESHOLDS { 256 } else { 16 << 10 };

/// An axis that can be cut so often is long.
const MANY_CUTS: usize = 32;

impl Region<'_> {
    /// Copies the units of as many regions as there are places. Does not wait for stores past the caches.
    ///
    /// # Safety
    /// The input must be readable and the output writable over them.
    #[inline(never)] // once in the library
    pub(super) unsafe fn copy(&self, places: &mut Places<'_>, tuning: &Tuning) {
        let Self { unit, axes } = *self;
        let Some((&row, outer)) = axes.split_last() else {
            while let Some((source, target)) = places() {
                // SAFETY: the caller's promise.
                unsafe {
                    let ahead = Ahead::of_row(unit, source, *tuning);
                    runs::copy(*tuning, source, target, unit, ahead);
                }
            }
            return;
        };
        if unit < LEAST_RUN && self.units() < LEAST_UNITS {
            // SAFETY: the caller's promise.
            return unsafe { copy_each(places, unit, axes, tuning.kernels) };
        }
        let is_run = row.to == signed(unit);
        let column = self.column(row, outer);
        // SAFETY: the caller's promise.
        unsafe {
            let turned = column.filter(|_| Columns::turns(unit));
            if !is_run || unit > LONGEST_PICKED || !self.pick(row, outer, turned, places, tuning) {
                self.copy_planes(row, column, outer, places, tuning);
            }
        }
    }

    /// Which of the axes outside of the row is a column, whose units lie side by side in the input.
    #[inline(never)] // once in the library
    fn column(&self, row: Axis, outer: &[Axis]) -> Option<usize> {
        let is_row = row.to == signed(self.unit) && (row.from != 0 || row.extent < LEAST_ROW);
        let is_column =
            |axis: &Axis| is_row && axis.from.unsigned_abs() == self.unit && axis.extent > 1;
        outer.iter().position(is_column)
    }

    /// Where short units are turned, the axis to cut between tasks, and at how many of its steps: the outermost that
    /// is long, or the longest. By the order of the output columns would be cut to a few units, of which each has its
    /// line read. Zen 4, two threads, us before and after: u8 [1107,244,26] into [26,244,1107] 2,000, 270, [1658,15,337]
    /// into [337,15,1658] 930, 400, f16 [110114,140] into [140,110114] 5,800, 2,000, of four axes into five 7,800, 3,000.
    #[inline(never)] // seldom of use
    pub(super) fn cut_turned(&self) -> Option<(usize, usize)> {
        let (&row, outer) = self.axes.split_last().filter(|_| self.unit < LEAST_RUN)?;
        let column = self.column(row, outer)?;
        let bytes = outer.get(column)?.extent * self.unit;
        let is_interleaved = row.from.unsigned_abs() == bytes && row.extent >= LEAST_ROW;
        if bytes < LANE && !is_interleaved {
            return None;
        }
        let is_turned = |at| at == column || at == outer.len();
        let (mut at, mut most) = (0, 0);
        for (axis, &Axis { extent, .. }) in self.axes.iter().enumerate() {
            let cuts = if is_turned(axis) { div(extent * self.unit, OF_EACH) } else { extent };
            if cuts.min(MANY_CUTS) > most {
                (at, most) = (axis, cuts);
            }
        }
        Some((at, if is_turned(at) { div_ceil(LINE, self.unit) } else { 1 }))
    }

    #[inline(never)] // once in the library
    fn units(&self) -> usize {
        self.axes.iter().map(|axis| axis.extent).product()
    }

    /// Copies planes of a row and a column; where there is no column, of a row and what is next to it.
    ///
    /// # Safety
    /// As [`Region::copy`].
    #[inline(never)] // which takes some of the stack
    unsafe fn copy_planes(
        &self,
        row: Axis,
        column: Option<usize>,
        outer: &[Axis],
        places: &mut Places<'_>,
        tuning: &Tuning,
    ) {
        let unit = self.unit;
        let has_column = column.is_some();
        let next = column.or(outer.len().checked_sub(1));
        let column = next.and_then(|at| outer.get(at)).copied().unwrap_or(Axis::ONE);
        let (source, target, one) = (null(), null_mut(), Axis::ONE);
        let (again, more, beside) = (one, one, one);
        let mut plane =
            Plane { source, target, unit, row, column, again, more, beside, has_column };
        let bytes = self.units() * unit;
        let begin = plane.walk_forwards();
        let skipped = plane.join(bytes, outer, odometer::one(next));
        let mut others = Odometer::new(outer, skipped);
        (others.from, others.to) = begin;
        let way = plane.way(others.inner(), bytes >= LARGE, *tuning);
        if matches!(way, Way::Units) && bytes <= SMALL {
            // SAFETY: the caller's promise.
            return unsafe { copy_each(places, unit, self.axes, tuning.kernels) };
        }
        let mut again = Axis::ONE;
        if !plane.takes_others(&way) {
            again = mem::replace(&mut plane.again, again);
        } else if plane.again.extent == 1 {
            plane.again = others.take_inner();
        }
        while let Some(place) = places() {
            loop {
                let mut each = again.places(others.of(place));
                while let Some(place) = each() {
                    (plane.source, plane.target) = place;
                    // SAFETY: the plane lies within the region.
                    unsafe { plane.copy(&way, *tuning) };
                }
                if !others.advance() {
                    break;
                }
            }
        }
    }

    /// Copies rows that become runs, if they are picked by registers; whether they are. What is short and
    /// goes on behind itself is a unit.
    ///
    /// # Safety
    /// As [`Region::copy`].
    #[inline(never)] // which takes much of the stack
    unsafe fn pick(
        &self,
        row: Axis,
        outer: &[Axis],
        column: Option<usize>,
        places: &mut Places<'_>,
        tuning: &Tuning,
    ) -> bool {
        for levels in [2, 1, 0] {
            let run = self.run(row, outer, levels);
            let &UnitRun { row, units, outer } = &run;
            let bytes = row.extent * units.len();
            let goes_on =
                outer.last().is_some_and(|next| next.to == signed(bytes) && next.from != 0);
            let is_long = goes_on || bytes >= LEAST_PICKED * self.unit;
            if column.is_some_and(|column| column < outer.len()) || !is_long {
                continue;
            }
            let ahead = ahead(row, outer.last(), tuning);
            let mut slot = Slot::uninit();
            let rows =
                RowCopy::runs(&mut slot, tuning.kernels, tuning.apart, units, row.extent, ahead);
            let count = outer.last().map_or(1, |next| next.extent);
            if rows.are_picked() && rows.are_worth(count, row.extent) {
                // SAFETY: the caller's promise.
                unsafe { run.copy(&rows, places) };
                return true;
            }
        }
        false
    }

    /// A row of units, of which as many axes are part as are short and go on behind themselves, but not
    /// more than so many.
    #[inline(never)] // or it is there for each number of levels
    fn run<'a>(&self, mut row: Axis, mut outer: &'a [Axis], levels: usize) -> UnitRun<'a> {
        let mut units = Units::whole(self.unit, row.from);
        for level in units.parts.iter_mut().take(levels) {
            let bytes = signed(row.to.unsigned_abs() * row.extent);
            let goes_on = |next: &Axis| bytes <= signed(LINE) && next.to == bytes;
            let Some((next, others)) = outer.split_last().filter(|(next, _)| goes_on(next)) else {
                break;
            };
            *level = (row.extent, row.from);
            (row, outer) = (*next, others);
        }
        units.step = row.from;
        UnitRun { row, units, outer }
    }
}

/// A row of units that become a run, and the axes outward of it.
struct UnitRun<'a> {
    row: Axis,
    units: Units,
    outer: &'a [Axis],
}

impl UnitRun<'_> {
    /// Copies them, picked.
    ///
    /// # Safety
    /// As [`Region::copy`].
    unsafe fn copy(&self, rows: &RowCopy<'_>, places: &mut Places<'_>) {
        let &Self { row, units, outer } = self;
        let bytes = row.extent * units.len();
        // Few short rows that touch nothing else are copied with those of a longer axis, some of its steps at a time.
        let (at, at_once) = match *outer {
            [.., Axis { extent: longer, .. }, Axis { extent: few, .. }]
                if few < longer && rows.are_few(few) && few * bytes < LEAST_PAST =>
            {
                (outer.len() - 2, AT_ONCE)
            }
            _ => (outer.len().wrapping_sub(1), usize::MAX),
        };
        let many = outer.get(at).copied().unwrap_or(Axis::ONE);
        let mut others = Odometer::new(outer, odometer::one(Some(at)));
        while let Some(place) = places() {
            for some in math::parts(0..many.extent, at_once) {
                let place = many.moved(place, signed(some.start));
                let Axis { from, to, .. } = many;
                loop {
                    let (source, target) = others.of(place);
                    let steps = RowSteps { count: some.len(), after: 0, from, to };
                    // SAFETY: the rows lie within the region.
                    unsafe { rows.copy_all(row.of(source, target, units.len()), steps, None) };
                    if !others.advance() {
                        break;
                    }
                }
            }
        }
    }
}

/// So much further ahead than long runs. Zen 5, share of the flat copy: columns reversed, u8 1.0 → 1.7,
/// f16 1.0 → 1.5, f32 1.3 → 1.5; every second one the same.
const AHEAD: usize = 4;
/// Steps that are apart are prefetched so little ahead on CPUs that read upwards, by registers of a line. Zen 4, 12 MiB
/// of floats, every second one, share of the flat copy for the next row's: .45 for .38, bytes .53 for .43; but by
/// AVX2 1.2 to 1.3 times as long.
const NEAR: isize = 384;
/// So little lies between rows of which that is of use. Zen 4, 6 to 48 MB of rows of 200 to 433 units, time for the next
/// rows': 600 bytes .42 to .8, 812 1.0 to 1.4, 3,000 .8 to 1.5.
const MOST_BETWEEN: usize = 2 * NEAR.unsigned_abs();
/// Longer rows, in bytes, are prefetched a little ahead, others row by row.
const LONGEST_AHEAD: usize = 32 << 10;

/// How far ahead of a row to prefetch: the next one, unless it is far, or near.
pub(super) fn ahead(row: Axis, next: Option<&Axis>, tuning: &Tuning) -> isize {
    let least = AHEAD * tuning.prefetch;
    let is_upwards = tuning.reads_upwards();
    let onwards =
        if is_upwards && row.to.cast_unsigned().is_power_of_two() { 1 } else { row.from.signum() };
    let (reach, step) = (row.from.unsigned_abs() * row.extent, next.map_or(0, |next| next.from));
    // Shorter rows are read row by row, where they lie backwards, or what is near is not of the next one yet.
    let goes_on = row.from > 0 && step.unsigned_abs() <= reach + MOST_BETWEEN;
    let is_near = (goes_on || row.to.unsigned_abs() * row.extent >= LEAST_PAST)
        && tuning.kernels.picks.is_some_and(Picks::are_by_line);
    if is_upwards && is_near && row.from.unsigned_abs() > row.to.unsigned_abs() {
        return NEAR.wrapping_mul(onwards);
    }
    if step == 0 || reach > LONGEST_AHEAD {
        return signed(least).wrapping_mul(onwards);
    }
    step.wrapping_mul(signed(div_ceil(least, step.unsigned_abs())))
}

/// Copies units one by one, of as many regions as there are places.
///
/// # Safety
/// They must be readable and writable.
pub(super) unsafe fn copy_each(
    places: &mut Places<'_>,
    unit: usize,
    axes: &[Axis],
    kernels: &Kernels,
) {
    // The longest way without a turn.
    let few = match *axes {
        [] => Some([Axis::ONE; 2]),
        [inner] => Some([Axis::ONE, inner]),
        [outer, inner] if outer.extent > inner.extent && !inner.repeats(unit) => {
            Some([inner, outer])
        }
        [outer, inner] => Some([outer, inner]),
        _ => None,
    };
    if let Some(axes) = few {
        // SAFETY: the caller's promise.
        return unsafe { Block { unit, axes }.copy_all(places, kernels) };
    }
    let longest = (axes.iter().enumerate()).max_by_key(|(_, axis)| axis.extent);
    let inner = longest.map_or(Axis::ONE, |(_, axis)| *axis);
    let mut others = Odometer::new(axes, odometer::one(longest.map(|(at, _)| at)));
    let block = Block { unit, axes: [others.take_inner(), inner] };
    let mut place = None;
    // SAFETY: the caller's promise.
    unsafe {
        let mut next = || {
            place = place.or_else(&mut *places);
            let here = others.of(place?);
            if !others.advance() {
                place = None;
            }
            Some(here)
        };
        block.copy_all(black_box(&mut next), kernels);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::super::kernel::strided::Row;
    use super::{signed, Axis, Block, Region, RowCopy, RowSteps, Slot, Tuning, Units};

    const ROOM: usize = 64 << 10;
    const MOST: usize = 200;

    /// Rows of up to [`MOST`] units, at the begin and the end of what may be touched.
    fn check(units: Units, source: &Guarded, target: &Guarded) {
        let Units { step, part, parts: [(parts, part_step), (groups, group_step)] } = units;
        let is_again = parts > 1 && part_step == 0;
        for count in 1..=MOST / if is_again { 1 } else { (parts * groups).min(16) } {
            let reach = [(count, step), (parts, part_step), (groups, group_step)]
                .map(|(count, step)| step * signed(count - 1));
            let span = reach.iter().map(|reach| reach.unsigned_abs()).sum::<usize>() + part;
            let lowest_of: isize = reach.iter().map(|reach| reach.min(&0)).sum();
            for at_end in [false, true] {
                let lowest = source.place(span, at_end).cast_const();
                let first = lowest.wrapping_offset(-lowest_of);
                let place = |at: usize| {
                    let (unit, at) = (at / units.len(), at % units.len());
                    let (group, at) = (at / (part * parts), at % (part * parts));
                    let ahead = step * signed(unit) + group_step * signed(group);
                    let ahead = ahead + part_step * signed(at / part);
                    first.wrapping_offset(ahead).wrapping_add(at % part)
                };
                // SAFETY: within the span.
                let expected: Vec<u8> =
                    (0..count * units.len()).map(|at| unsafe { place(at).read() }).collect();
                check_row(units, count, first, target, at_end, &expected);
            }
        }
    }

    /// A row, at every level, past the caches or not.
    fn check_row(
        units: Units,
        count: usize,
        source: *const u8,
        target: &Guarded,
        at_end: bool,
        expected: &[u8],
    ) {
        let bytes = expected.len();
        let begin = target.place(bytes, at_end);
        let neighbour = if at_end { begin.wrapping_sub(1) } else { begin.wrapping_add(bytes) };
        let row = Row {
            source,
            source_step: units.step,
            target: begin,
            target_step: signed(units.len()),
            count,
            unit: units.len(),
        };
        for tuning in Tuning::all() {
            // SAFETY: source and target are as large as the units reach, and a byte larger.
            let copied = unsafe {
                neighbour.write(0xEE);
                begin.write_bytes(0xEE, bytes);
                let past = tuning.non_temporal;
                let mut slot = Slot::uninit();
                let rows = RowCopy::runs(&mut slot, tuning.kernels, past, units, count, 100);
                if !rows.are_picked() && units.len() > units.part {
                    continue;
                }
                rows.copy_all(row, RowSteps { count: 1, after: 0, from: 0, to: 0 }, None);
                if let Some(past) = tuning.non_temporal {
                    (past.fence)();
                }
                assert_eq!(neighbour.read(), 0xEE, "{units:?}, {count} of them");
                std::slice::from_raw_parts(begin, bytes)
            };
            assert!(copied == expected, "{units:?}, {count} of them");
        }
    }

    #[test]
    fn units_of_any_width_any_step_apart() {
        let (source, target) = (Guarded::filled(ROOM), Guarded::filled(ROOM));
        for part in 1..=17isize {
            for times in [-4, -3, -2, -1, 2, 3, 4] {
                let (part, step) = (part.unsigned_abs(), part * times);
                check(Units::whole(part, step), &source, &target);
            }
            for step in [part + 1, -part - 1, part + 7, -67, 0] {
                check(Units::whole(part.unsigned_abs(), step), &source, &target);
            }
        }
    }

    /// Rows that become one run, each so far from the one before, at every place of a page, where nothing else may be read.
    #[test]
    fn rows_that_become_one_run() {
        let (source, target) = (Guarded::filled(ROOM), Guarded::filled(ROOM));
        for (unit, count, times) in
            [(1, 72, -1), (1, 300, -2), (4, 25, -1), (4, 90, 2), (3, 50, -2)]
        {
            let (step, rows) = (signed(unit) * times, 40);
            let (bytes, reach) = (unit * count, step.unsigned_abs() * (count - 1) + unit);
            for (gap, ahead) in [(0, 0), (0, 72), (0, 130), (3, 5), (17, 200)] {
                let from = reach + gap;
                let lowest = source.place(rows * from - gap, gap % 2 == 0).cast_const();
                let lowest_of = if step < 0 { reach - unit } else { 0 };
                let begin = target.place(rows * bytes + ahead, false).wrapping_add(ahead);
                let row = Row {
                    source: lowest.wrapping_add(lowest_of),
                    source_step: step,
                    target: begin,
                    target_step: signed(unit),
                    count,
                    unit,
                };
                let place = |at: usize| {
                    let (line, at) = (at / bytes, at % bytes);
                    let place = row.source.wrapping_offset(step * signed(at / unit));
                    place.wrapping_add(line * from + at % unit)
                };
                // SAFETY: within the rows.
                let expected: Vec<u8> =
                    (0..rows * bytes).map(|at| unsafe { place(at).read() }).collect();
                for tuning in Tuning::all() {
                    // SAFETY: source and target are as large as the rows.
                    let copied = unsafe {
                        begin.write_bytes(0xEE, rows * bytes + 1);
                        let mut slot = Slot::uninit();
                        let (units, past) = (Units::whole(unit, step), tuning.non_temporal);
                        let copy =
                            RowCopy::runs(&mut slot, tuning.kernels, past, units, count, 100);
                        let (from, to) = (signed(from), signed(bytes));
                        copy.copy_all(row, RowSteps { count: rows, after: 0, from, to }, None);
                        if let Some(past) = tuning.non_temporal {
                            (past.fence)();
                        }
                        assert_eq!(begin.wrapping_add(rows * bytes).read(), 0xEE);
                        std::slice::from_raw_parts(begin, rows * bytes)
                    };
                    assert!(copied == expected, "{unit} bytes, {step} apart, {gap}, {ahead}");
                }
            }
        }
    }

    /// Few rows behind each other, many times over, whose units lie backwards or apart.
    #[test]
    fn few_rows_of_many() {
        let (source, target) = (Guarded::filled(ROOM), Guarded::filled(ROOM));
        for (unit, count, few, times) in [
            (1, 33, 2, -1),
            (2, 40, 3, 2),
            (4, 17, 2, -1),
            (4, 21, 12, -1),
            (3, 22, 5, 2),
            (8, 22, 2, -3),
            (2, 10, 2, -1),
            (4, 6, 25, -1),
            (8, 2, 12, 3),
            (8, 12, 3, 2),
            (4, 12, 4, 4),
        ] {
            let (step, longer) = (signed(unit) * times, 70 / few + 20);
            let reach = step.unsigned_abs() * (count - 1) + unit;
            let (row, group) = (reach + 5, few * (reach + 5) + 9);
            let (read, bytes) = ((longer - 1) * group + (few - 1) * row + reach, unit * count);
            for at_end in [false, true] {
                let lowest = source.place(read, at_end).cast_const();
                let first = lowest.wrapping_add(if step < 0 { reach - unit } else { 0 });
                let begin = target.place(longer * few * bytes, at_end);
                let axes = [
                    Axis { extent: longer, from: signed(group), to: signed(few * bytes) },
                    Axis { extent: few, from: signed(row), to: signed(bytes) },
                    Axis { extent: count, from: step, to: signed(unit) },
                ];
                let place = |at: usize| {
                    let (line, at) = (at / bytes, at % bytes);
                    let place = first.wrapping_add(line / few * group + line % few * row);
                    place.wrapping_offset(step * signed(at / unit)).wrapping_add(at % unit)
                };
                let all = longer * few * bytes;
                // SAFETY: within the rows.
                let expected: Vec<u8> = (0..all).map(|at| unsafe { place(at).read() }).collect();
                for tuning in Tuning::all() {
                    let mut places = Some((first, begin));
                    // SAFETY: source and target are as large as the rows.
                    let copied = unsafe {
                        begin.write_bytes(0xEE, all);
                        Region { unit, axes: &axes }.copy(&mut || places.take(), &tuning);
                        tuning.finish();
                        std::slice::from_raw_parts(begin, all)
                    };
                    assert!(
                        copied == expected,
                        "{few} rows of {count} of {unit} bytes, {step} apart"
                    );
                }
            }
        }
    }

    /// Every second of 8 bytes and every fourth of 4 fill lanes of 16 bytes, two units do not.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn units_that_fill_lanes_are_picked() {
        for picks in Tuning::all().iter().filter_map(|tuning| tuning.kernels.picks) {
            assert!(picks.have(8, 16, 100) && picks.have(4, 16, 100));
            assert!(!picks.have(8, 24, 2));
        }
    }

    #[test]
    fn units_that_are_repeated() {
        let (source, target) = (Guarded::filled(ROOM), Guarded::filled(ROOM));
        for (part, times) in [(1, 48), (1, 20), (2, 9), (4, 7), (8, 5)] {
            for step in [1, 2, -1] {
                let (step, parts) = (step * signed(part), [(times, 0), (1, 0)]);
                check(Units { step, part, parts }, &source, &target);
            }
        }
    }

    /// A unit again and again, up to some thousands of times, at the begin and the end of what may be touched.
    #[test]
    fn a_unit_that_is_repeated() {
        let target = Guarded::filled(ROOM);
        let units = [0x51u8, 0x62, 0x73, 0x84, 0x95, 0xA6, 0xB7, 0xC8];
        for unit in [1, 2, 4, 8] {
            for count in (1..80).chain([255, 256, 257, 1023, 1024, 1031, 3000]) {
                let row = Axis { extent: count, from: 0, to: signed(unit) };
                let block = Block { unit, axes: [Axis::ONE, row] };
                let all = Tuning::all().into_iter();
                for (tuning, at_end) in all.flat_map(|tuning| [(tuning, false), (tuning, true)]) {
                    let begin = target.place(count * unit, at_end);
                    // SAFETY: there is room for as many.
                    let copied = unsafe {
                        begin.write_bytes(0xEE, count * unit);
                        block.copy((units.as_ptr(), begin), Axis::ONE, tuning.kernels);
                        std::slice::from_raw_parts(begin, count * unit)
                    };
                    assert!(
                        copied.chunks(unit).all(|copied| *copied == units[..unit]),
                        "{count} of {unit}"
                    );
                }
            }
        }
    }

    #[test]
    fn units_of_parts() {
        let (source, target) = (Guarded::filled(ROOM), Guarded::filled(ROOM));
        for (part, parts) in [(1, 2), (1, 3), (1, 4), (2, 3), (3, 2), (4, 3), (4, 4), (1, 16)] {
            for part_step in [-1, 1, 2, -3] {
                let part_step = part_step * signed(part);
                let across = part_step * signed(parts);
                for step in [across, -across, 3 * across + 1, 40] {
                    for group in [(1, 0), (2, 5), (3, -across), (4, 1)] {
                        let units = Units { step, part, parts: [(parts, part_step), group] };
                        check(units, &source, &target);
                    }
                }
            }
        }
    }
}
