//! Some units of a strided piece that make whole axes: planes to transpose where the input and the
//! output have different innermost axes, rows of units everywhere else.

use super::columns::{Columns, Targets};
use super::kernel::combine::LINE;
use super::kernel::pick::Units;
use super::kernel::row_major::RowRun;
use super::kernel::strided::{Again, Row, Rows};
use super::kernel::RowMajor;
use super::rows::LongColumns;
use super::runs::{self, Ahead};
use super::tuning::Tuning;
use super::{signed, wrapped};
use crate::math::{self, div_ceil, div_rem};
use core::iter::once;

/// One axis of a copy: how many steps, and how far each goes in the input and the output.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Axis {
    pub extent: usize,
    pub from: isize,
    pub to: isize,
}

impl Axis {
    /// A row of units.
    fn of(self, source: *const u8, target: *mut u8, unit: usize) -> Row {
        let Self { extent: count, from: source_step, to: target_step } = self;
        Row { source, source_step, target, target_step, count, unit }
    }
}

/// Units of `unit` contiguous bytes: `count` steps of the first of `axes`, outermost first, and
/// all of the others.
pub(super) struct Region<'a> {
    pub source: *const u8,
    pub target: *mut u8,
    pub unit: usize,
    pub axes: &'a [Axis],
    pub count: usize,
}

/// The least extents, in units, of a plane that is worth turning through registers; or 16 bytes of long ones.
const MIN_TURNED: usize = 8;
/// Bytes of each row that they take at a time.
const LANE: usize = 16;
/// Units of so many bytes are runs.
const LEAST_RUN: usize = 128;
/// Columns that loops for runs take at a time.
const COLUMNS: usize = 4;
/// Units of a plane's longer side that stay in the first-level cache while the shorter is walked.
const BLOCK: usize = 64;

impl Region<'_> {
    /// Copies the units.
    ///
    /// # Safety
    /// The input must be readable and the output writable over them.
    pub(super) unsafe fn copy(&self, tuning: Tuning) {
        let Self { source, target, unit, axes, count } = *self;
        let Some((row, outer)) = axes.split_last() else {
            // SAFETY: the caller's promise.
            unsafe {
                runs::copy(tuning, source, target, unit, Ahead::of_row(unit, source, tuning));
            };
            return tuning.finish();
        };
        let extent_at = |at: usize, axis: &Axis| if at == 0 { count } else { axis.extent };
        let row = Axis { extent: extent_at(outer.len(), row), ..*row };
        let column = outer.iter().enumerate().position(|(at, axis)| {
            row.to == signed(unit) && axis.from.unsigned_abs() == unit && extent_at(at, axis) > 1
        });
        if column.is_none() && row.to == signed(unit) {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_runs(row, outer, tuning) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.copy_planes(row, column, outer, tuning) };
    }

    /// Copies planes of a row and a column, or rows that stay apart where there is no column.
    ///
    /// # Safety
    /// As [`Region::copy`].
    #[inline(never)] // which takes some of the stack
    unsafe fn copy_planes(&self, row: Axis, column: Option<usize>, outer: &[Axis], tuning: Tuning) {
        let Self { source, target, unit, count, .. } = *self;
        let extent_at = |at: usize, axis: &Axis| if at == 0 { count } else { axis.extent };
        let mut planes = Odometer::new(outer, count, column);
        let column = column.and_then(|at| Some((at, outer.get(at)?)));
        let column = column.map(|(at, axis)| Axis { extent: extent_at(at, axis), ..*axis });
        let rows = Rows::scattered(tuning.kernels);
        loop {
            let source = source.wrapping_offset(planes.from);
            let target = target.wrapping_offset(planes.to);
            // SAFETY: the plane or row lies within the region.
            unsafe {
                match column {
                    Some(column) => Plane::new(source, target, unit, row, column).copy(tuning),
                    None => copy_row(&rows, source, target, unit, row, tuning),
                }
            }
            if !planes.advance() {
                break;
            }
        }
        tuning.finish();
    }

    /// Copies rows that become runs. Short ones that continue each other are the units of one.
    ///
    /// # Safety
    /// As [`Region::copy`].
    #[inline(never)] // as above
    unsafe fn copy_runs(&self, row: Axis, outer: &[Axis], tuning: Tuning) {
        let Self { source, target, unit, count, .. } = *self;
        let mut units = Units::whole(unit, row.from);
        let (mut row, mut outer) = (row, outer);
        let run = row.extent * unit;
        if let Some((next, others)) = outer.split_last() {
            if run <= LONGEST_UNIT && next.to == signed(run) {
                units =
                    Units { step: next.from, part: unit, parts: row.extent, part_step: row.from };
                let extent = if others.is_empty() { count } else { next.extent };
                (row, outer) = (Axis { extent, ..*next }, others);
            }
        }
        let ahead = ahead(row, outer.last(), AHEAD * tuning.prefetch);
        let rows = Rows::runs(tuning.kernels, tuning.scattered, units, row.extent, ahead);
        let mut again = Axis { extent: 1, ..Axis::default() };
        if let Some((next, others)) = outer.split_last().filter(|_| rows.are_picked()) {
            let extent = if others.is_empty() { count } else { next.extent };
            (again, outer) = (Axis { extent, ..*next }, others);
        }
        let mut places = Odometer::new(outer, count, None);
        loop {
            let source = source.wrapping_offset(places.from);
            let target = target.wrapping_offset(places.to);
            let Axis { extent, from, to } = again;
            let again = Again { count: extent, after: 0, from, to };
            // SAFETY: the rows lie within the region.
            unsafe {
                if rows.are_picked() {
                    rows.copy_all(row.of(source, target, units.len()), again, None);
                } else {
                    copy_row(&rows, source, target, units.len(), row, tuning);
                }
            }
            if !places.advance() {
                break;
            }
        }
        tuning.finish();
    }
}

/// The longest rows, in bytes, that are units of others.
const LONGEST_UNIT: usize = 16;
/// So much further ahead than long runs. Zen 5, share of the flat copy: columns reversed, u8 1.0 → 1.7,
/// f16 1.0 → 1.5, f32 1.3 → 1.5; every second one the same.
pub(super) const AHEAD: usize = 4;
/// Longer rows, in bytes, are prefetched a little ahead, others row by row.
const LONGEST_AHEAD: usize = 32 << 10;

/// How far ahead of a row to prefetch: the next one, unless it is far, or near.
pub(super) fn ahead(row: Axis, next: Option<&Axis>, least: usize) -> isize {
    let step = next.map_or(0, |next| next.from);
    if step == 0 || row.from.unsigned_abs() * row.extent > LONGEST_AHEAD {
        return signed(least).wrapping_mul(row.from.signum());
    }
    step.wrapping_mul(signed(div_ceil(least, step.unsigned_abs())))
}

/// Copies `row.extent` units.
///
/// # Safety
/// They must be readable and writable.
#[inline(never)]
unsafe fn copy_row(
    rows: &Rows,
    source: *const u8,
    target: *mut u8,
    unit: usize,
    row: Axis,
    tuning: Tuning,
) {
    let Axis { extent: count, from: source_step, to: target_step } = row;
    if unit >= runs::LONG {
        let (mut source, mut target) = (source, target);
        for _ in 0..count {
            let next = source.wrapping_offset(source_step);
            let ahead = Ahead::of_row(unit, next, tuning);
            // SAFETY: the caller's promise.
            unsafe { runs::copy(tuning, source, target, unit, ahead) };
            (source, target) = (next, target.wrapping_offset(target_step));
        }
        return;
    }
    if unit > LINE && target_step == signed(unit) {
        let run = RowRun { source, bytes: unit, target };
        let row_major = |loops: RowMajor| {
            // SAFETY: the caller's promise.
            unsafe { loops(&mut [run], wrapped(source_step), count) }
        };
        if tuning.kernels.row_major.is_some_and(row_major) {
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { rows.copy(row.of(source, target, unit)) };
}

/// A row of contiguous units in the output by a column of contiguous units in the input.
struct Plane {
    source: *const u8,
    target: *mut u8,
    unit: usize,
    row: Axis,
    column: Axis,
}

impl Plane {
    /// A plane whose column may run backwards in the input: it is walked forwards there.
    fn new(
        mut source: *const u8,
        mut target: *mut u8,
        unit: usize,
        row: Axis,
        mut column: Axis,
    ) -> Self {
        if column.from < 0 {
            let last = signed(column.extent - 1);
            source = source.wrapping_offset(column.from.wrapping_mul(last));
            target = target.wrapping_offset(column.to.wrapping_mul(last));
            column.from = column.from.wrapping_neg();
            column.to = column.to.wrapping_neg();
        }
        Self { source, target, unit, row, column }
    }

    /// Copies the plane.
    ///
    /// # Safety
    /// The input must be readable and the output writable over it.
    unsafe fn copy(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column } = self;
        let shorter = row.extent.min(column.extent);
        let columns = Columns {
            source,
            step: wrapped(row.from),
            rows: row.extent,
            unit,
            count: column.extent,
            targets: once(Targets {
                first: Some(target),
                apart: wrapped(column.to),
                count: column.extent,
            }),
        };
        // SAFETY: the caller's promise.
        unsafe {
            if unit >= LEAST_RUN {
                if let Some(past) = tuning.scattered.filter(|_| self.is_of_rows()) {
                    let columns = LongColumns {
                        source,
                        row: wrapped(row.from),
                        rows: row.extent,
                        unit,
                        columns: column.extent,
                        target,
                        apart: column.to,
                    };
                    return columns.merge(past, tuning);
                }
                let tuning = if self.makes_lines() { tuning } else { tuning.through_caches() };
                let row_major = tuning.kernels.row_major.filter(|_| tuning.scattered.is_none());
                if !row_major.is_some_and(|row_major| self.copy_lines(row_major)) {
                    self.copy_rows(tuning);
                }
                return;
            }
            let are_few = columns.are_deinterleaved() || columns.are_interleaved(tuning);
            if Columns::turns(unit)
                && (shorter >= div_rem(LANE, unit).0.clamp(2, MIN_TURNED) || are_few)
            {
                columns.copy(tuning);
            } else if column.extent <= row.extent {
                self.gather_columns(tuning);
            } else {
                self.scatter_rows(tuning);
            }
        }
    }

    /// Whether it has rows one behind the other, of units that are merged to lines rather than copied each
    /// for itself.
    fn is_of_rows(&self) -> bool {
        self.unit < runs::LONG && self.row.from >= signed(self.column.extent * self.unit)
    }

    /// Whether units are worth going past the caches for: long, or whole lines.
    fn makes_lines(&self) -> bool {
        let is_whole = |bytes: usize| bytes.is_multiple_of(LINE);
        self.unit >= runs::LONG
            || is_whole(self.unit)
                && is_whole(self.target as usize)
                && is_whole(wrapped(self.column.to))
    }

    /// Copies a plane of long units, some rows of it at a time: in the order of the input, but for so
    /// much that each output row gets [`runs::LONG`] bytes.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    unsafe fn copy_rows(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column } = self;
        let block = div_ceil(runs::LONG, unit);
        let ahead = row.from.wrapping_mul(signed(block));
        for rows in math::parts(0..row.extent, block) {
            for at in 0..column.extent {
                let target = target.wrapping_offset(column.to.wrapping_mul(signed(at)));
                let source = source.wrapping_add(at * unit);
                for row_at in rows.clone() {
                    let source = source.wrapping_offset(row.from.wrapping_mul(signed(row_at)));
                    let ahead = Ahead { rest: 0, next: source.wrapping_offset(ahead), by: 0 };
                    let target = target.wrapping_add(row_at * unit);
                    // SAFETY: the caller's promise.
                    unsafe { runs::copy(tuning, source, target, unit, ahead) };
                }
            }
        }
    }

    /// Copies a plane of units of some lines through the caches, a few columns of some rows at a time.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    unsafe fn copy_lines(&self, row_major: RowMajor) -> bool {
        let &Self { source, target, unit, row, column } = self;
        for rows in math::parts(0..row.extent, BLOCK) {
            let source = source.wrapping_offset(row.from.wrapping_mul(signed(rows.start)));
            let target = target.wrapping_add(rows.start * unit);
            for columns in math::parts(0..column.extent, COLUMNS) {
                let mut all = [RowRun { source, bytes: unit, target }; COLUMNS];
                for (at, run) in columns.clone().zip(&mut all) {
                    run.source = source.wrapping_add(at * unit);
                    run.target = target.wrapping_offset(column.to.wrapping_mul(signed(at)));
                }
                let runs = all.get_mut(..columns.len()).unwrap_or_default();
                // SAFETY: the caller's promise.
                if !unsafe { row_major(runs, wrapped(row.from), rows.len()) } {
                    return false;
                }
            }
        }
        true
    }

    /// Copies a plane of few, or odd, columns: some units of each output row at a time.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    unsafe fn gather_columns(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column } = self;
        let units = Units::whole(unit, row.from);
        let rows = Rows::runs(tuning.kernels, None, units, row.extent.min(BLOCK), 0);
        for first in (0..row.extent).step_by(BLOCK) {
            let count = BLOCK.min(row.extent - first);
            let mut source = source.wrapping_offset(row.from.wrapping_mul(signed(first)));
            let mut target = target.wrapping_add(first * unit);
            for _ in 0..column.extent {
                // SAFETY: the caller's promise.
                unsafe {
                    copy_row(&rows, source, target, unit, Axis { extent: count, ..row }, tuning);
                };
                source = source.wrapping_add(unit);
                target = target.wrapping_offset(column.to);
            }
        }
    }

    /// Copies a plane of short output rows: a unit of some of them at a time.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    unsafe fn scatter_rows(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column } = self;
        let rows = Rows::scattered(tuning.kernels);
        for first in (0..column.extent).step_by(BLOCK) {
            let count = BLOCK.min(column.extent - first);
            let mut source = source.wrapping_add(first * unit);
            let mut target = target.wrapping_offset(column.to.wrapping_mul(signed(first)));
            for _ in 0..row.extent {
                let units = Axis { extent: count, ..column };
                // SAFETY: the caller's promise.
                unsafe { copy_row(&rows, source, target, unit, units, tuning) };
                source = source.wrapping_offset(row.from);
                target = target.wrapping_add(unit);
            }
        }
    }
}

/// Walks over axes in row-major order, but for one of them, without a division a step of the innermost.
struct Odometer<'a> {
    axes: &'a [Axis],
    /// Steps of the first axis.
    count: usize,
    skipped: Option<usize>,
    inner: Axis,
    /// Steps left of the innermost axis, this one included, and how often it has been gone over.
    left: usize,
    turns: usize,
    from: isize,
    to: isize,
}

impl<'a> Odometer<'a> {
    fn new(axes: &'a [Axis], count: usize, skipped: Option<usize>) -> Self {
        let inner = Axis { extent: 1, from: 0, to: 0 };
        let mut odometer = Self { axes, count, skipped, inner, left: 1, turns: 0, from: 0, to: 0 };
        if let Some(inner) = odometer.walked().next_back() {
            (odometer.inner, odometer.left) = (inner, inner.extent);
        }
        odometer
    }

    fn walked(&self) -> impl DoubleEndedIterator<Item = Axis> + use<'a> {
        let (count, skipped) = (self.count, self.skipped);
        let of = move |(at, axis): (usize, &Axis)| {
            let extent = if at == 0 { count } else { axis.extent };
            (skipped != Some(at)).then_some(Axis { extent, ..*axis })
        };
        self.axes.iter().enumerate().filter_map(of)
    }

    /// On to the next position, unless this was the last.
    fn advance(&mut self) -> bool {
        let back = |place: isize, step: isize, steps: usize| {
            place.wrapping_sub(step.wrapping_mul(signed(steps)))
        };
        let Axis { extent, from, to } = self.inner;
        self.left -= 1;
        if self.left > 0 {
            self.from = self.from.wrapping_add(from);
            self.to = self.to.wrapping_add(to);
            return true;
        }
        self.from = back(self.from, from, extent - 1);
        self.to = back(self.to, to, extent - 1);
        self.left = extent;
        self.turns += 1;
        let mut turns = self.turns;
        for Axis { extent, from, to } in self.walked().rev().skip(1) {
            let index;
            (turns, index) = div_rem(turns, extent);
            if index > 0 {
                self.from = self.from.wrapping_add(from);
                self.to = self.to.wrapping_add(to);
                return true;
            }
            self.from = back(self.from, from, extent - 1);
            self.to = back(self.to, to, extent - 1);
        }
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{signed, Row, Rows, Tuning, Units};

    const ROOM: usize = 64 << 10;
    const MOST: usize = 200;

    /// Rows of up to [`MOST`] units, at the begin and the end of what may be touched.
    fn check(units: Units, source: &Guarded, target: &Guarded) {
        let Units { step, part, parts, part_step } = units;
        for count in 1..=MOST {
            let (along, within) = (step * signed(count - 1), part_step * signed(parts - 1));
            let span = along.unsigned_abs() + within.unsigned_abs() + part;
            for at_end in [false, true] {
                let lowest = source.place(span, at_end).cast_const();
                let first = lowest.wrapping_offset(-along.min(0) - within.min(0));
                let place = |at: usize| {
                    let (unit, at) = (at / units.len(), at % units.len());
                    let ahead = step * signed(unit) + part_step * signed(at / part);
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
                Rows::runs(tuning.kernels, tuning.non_temporal, units, count, 100).copy(row);
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

    #[test]
    fn units_of_parts() {
        let (source, target) = (Guarded::filled(ROOM), Guarded::filled(ROOM));
        for (part, parts) in [(1, 2), (1, 3), (1, 4), (2, 3), (3, 2), (4, 3), (4, 4), (1, 16)] {
            for part_step in [-1, 1, 2, -3] {
                let part_step = part_step * signed(part);
                let across = part_step * signed(parts);
                for step in [across, -across, 3 * across + 1, 40] {
                    check(Units { step, part, parts, part_step }, &source, &target);
                }
            }
        }
    }
}
