//! Some units of a strided piece that make whole axes: planes to transpose where the input and the
//! output have different innermost axes, rows of units everywhere else.

use super::columns::{Columns, EachTargets, Targets};
use super::kernel::combine::LINE;
use super::kernel::pick::Units;
use super::kernel::row_major::RowRun;
use super::kernel::strided::{self, Again, Axis, Block, Row, Rows, Slot};
use super::kernel::{CopyBytes, RowMajor};
use super::rows::LongColumns;
use super::runs::{self, Ahead};
use super::tuning::Tuning;
use crate::math::{self, div, div_ceil, div_rem, signed, wrapped};
use core::ptr::{null, null_mut};

impl Axis {
    /// Whether another one goes on where this one ends, in the input and in the output.
    pub(super) fn continues(&self, outer: &Self) -> bool {
        let extent = signed(self.extent);
        self.from.checked_mul(extent) == Some(outer.from)
            && self.to.checked_mul(extent) == Some(outer.to)
    }

    /// Whether its steps meet in a few sets of the caches.
    fn conflicts(&self) -> bool {
        let meets = |step: isize| step != 0 && step.unsigned_abs().is_multiple_of(CONFLICT);
        self.extent > WAYS && (meets(self.from) || meets(self.to))
    }

    /// A row of units.
    fn of(self, source: *const u8, target: *mut u8, unit: usize) -> Row {
        let Self { extent: count, from: source_step, to: target_step } = self;
        Row { source, source_step, target, target_step, count, unit }
    }
}

/// Where the first unit of a region lies, in the input and in the output.
pub(super) type Place = (*const u8, *mut u8);
/// Gives the places of regions that are alike, one after the other.
pub(super) type Places<'a> = dyn FnMut() -> Option<Place> + 'a;

/// Units of `unit` contiguous bytes, and axes over them, outermost first.
pub(super) struct Region<'a> {
    pub unit: usize,
    pub axes: &'a [Axis],
}

/// The least extents, in units, of a plane that is worth turning through registers; or 16 bytes of long ones.
const MIN_TURNED: usize = 8;
/// Fewer units are as quickly copied one by one.
const LEAST_UNITS: usize = 256;
/// ... unless a row has so many, and there are more like it: 32 pieces of 128 bytes backwards 44 to 31 ns each for 44.
const LEAST_ALIKE: usize = 96;
/// ... of each of so many planes.
const LEAST_TURNED: usize = 64;
const LEAST_AGAIN: usize = 8;
/// So are fewer of a row, unless the next one continues it.
const LEAST_PICKED: usize = 32;
/// No longer units are picked.
const LONGEST_PICKED: usize = 16;
/// Units of so many bytes are as quickly copied one by one in the caches, unless rows as well as columns lie in
/// few sets of these. Zen 5, ps a byte: 300 x 300 of 16 bytes 20 for 38, 1,024 x 512 112 for 51.
const LONGEST_TURNED: usize = 16;
/// Past the second-level cache they are not: 7 x 300 x 301 of 16 bytes 60 ps a byte for 42.
const LARGE: usize = 2 << 20;
const CONFLICT: usize = 1024;
const WAYS: usize = 8;
/// Rows of so many units are walked rather than columns.
const LEAST_ROW: usize = 16;
/// Bytes of each row that they take at a time.
const LANE: usize = 16;
/// Units of so many bytes are runs.
const LEAST_RUN: usize = 128;
/// Columns that loops for runs take at a time.
const COLUMNS: usize = 4;
/// Units of a plane's longer side that stay in the first-level cache while the shorter is walked.
const BLOCK: usize = 128;

impl Region<'_> {
    /// Copies the units of as many regions as there are places, which may be so many. Does not wait for stores past
    /// the caches.
    ///
    /// # Safety
    /// The input must be readable and the output writable over them.
    #[inline(never)] // once in the library
    pub(super) unsafe fn copy(&self, places: &mut Places<'_>, many: usize, tuning: Tuning) {
        let Self { unit, axes } = *self;
        let Some((&row, outer)) = axes.split_last() else {
            while let Some((source, target)) = places() {
                // SAFETY: the caller's promise.
                unsafe {
                    runs::copy(tuning, source, target, unit, Ahead::of_row(unit, source, tuning));
                }
            }
            return;
        };
        let units = axes.iter().map(|axis| axis.extent).product::<usize>();
        let is_run = row.to == signed(unit);
        let are_few = unit < LEAST_RUN && units < LEAST_UNITS;
        let is_picked = is_run && unit <= LONGEST_PICKED;
        let is_quicker = is_picked && row.extent >= LEAST_ALIKE && units * many >= LEAST_UNITS;
        if are_few && !is_quicker {
            while let Some(place) = places() {
                // SAFETY: the caller's promise.
                unsafe { copy_each(place, unit, axes, tuning.kernels.copy) };
            }
            return;
        }
        let column = outer.iter().position(|axis| {
            let is_column = axis.from.unsigned_abs() == unit && axis.extent > 1;
            is_column && is_run && (row.from != 0 || row.extent < LEAST_ROW)
        });
        // SAFETY: the caller's promise.
        unsafe {
            if !is_picked || !self.pick(row, outer, column, places, tuning) {
                self.copy_planes(row, column, outer, places, tuning);
            }
        }
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
        tuning: Tuning,
    ) {
        let Self { unit, axes } = *self;
        let next = column.or(outer.len().checked_sub(1));
        let next_axis = next.and_then(|at| outer.get(at)).copied().unwrap_or(Axis::ONE);
        let (has_column, again) = (column.is_some(), Axis::ONE);
        let (source, target) = (null(), null_mut());
        let mut plane = Plane { source, target, unit, row, column: next_axis, again, has_column };
        let mut slot = Slot::uninit();
        let units = axes.iter().map(|axis| axis.extent).product::<usize>();
        let is_large = units * unit >= LARGE;
        let mut all = Odometer::new(outer, next);
        (all.from, all.to) = plane.turn_forwards();
        let way = plane.way(all.inner.extent, is_large, &mut slot, tuning);
        let is_small = row.extent.max(next_axis.extent) <= BLOCK;
        if matches!(way, Way::Turned) || (matches!(way, Way::Units) && is_small) {
            plane.again = all.take_inner();
        }
        while let Some(place) = places() {
            loop {
                (plane.source, plane.target) = all.of(place);
                // SAFETY: the plane lies within the region.
                unsafe { plane.copy(&way, tuning) };
                if !all.advance() {
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
    #[inline(never)] // as above
    unsafe fn pick(
        &self,
        row: Axis,
        outer: &[Axis],
        column: Option<usize>,
        places: &mut Places<'_>,
        tuning: Tuning,
    ) -> bool {
        for levels in [2, 1, 0] {
            let run = self.run(row, outer, levels);
            let &Run { row, units, outer } = &run;
            let bytes = row.extent * units.len();
            let goes_on =
                outer.last().is_some_and(|next| next.to == signed(bytes) && next.from != 0);
            let is_long = goes_on || bytes >= LEAST_PICKED * self.unit;
            if column.is_some_and(|column| column < outer.len()) || !is_long {
                continue;
            }
            let ahead = ahead(row, outer.last(), AHEAD * tuning.prefetch);
            let mut slot = Slot::uninit();
            let rows =
                Rows::runs(&mut slot, tuning.kernels, tuning.scattered, units, row.extent, ahead);
            if rows.are_picked() {
                // SAFETY: the caller's promise.
                unsafe { run.copy(&rows, places) };
                return true;
            }
        }
        false
    }

    /// A row of units, of which as many axes are part as are short and go on behind themselves, but not
    /// more than so many.
    fn run<'a>(&self, mut row: Axis, mut outer: &'a [Axis], levels: usize) -> Run<'a> {
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
        Run { row, units, outer }
    }
}

/// A row of units that become a run, and the axes outward of it.
struct Run<'a> {
    row: Axis,
    units: Units,
    outer: &'a [Axis],
}

impl Run<'_> {
    /// Copies them, picked.
    ///
    /// # Safety
    /// As [`Region::copy`].
    unsafe fn copy(&self, rows: &Rows<'_>, places: &mut Places<'_>) {
        let &Self { row, units, outer } = self;
        let mut all = Odometer::new(outer, None);
        let Axis { extent: count, from, to } = all.take_inner();
        while let Some(place) = places() {
            loop {
                let (source, target) = all.of(place);
                let again = Again { count, after: 0, from, to };
                // SAFETY: the rows lie within the region.
                unsafe { rows.copy_all(row.of(source, target, units.len()), again, None) };
                if !all.advance() {
                    break;
                }
            }
        }
    }
}

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
unsafe fn copy_row(source: *const u8, target: *mut u8, unit: usize, row: Axis, tuning: Tuning) {
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
    if unit >= LINE && target_step == signed(unit) {
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
    unsafe { strided::copy(tuning.kernels, row.of(source, target, unit)) };
}

/// A row by a column: of contiguous units in the output, and in the input, or of units anywhere.
struct Plane {
    source: *const u8,
    target: *mut u8,
    unit: usize,
    row: Axis,
    column: Axis,
    /// Planes like it that are copied with it.
    again: Axis,
    /// Whether units are contiguous the column's way.
    has_column: bool,
}

/// How planes that are alike but for where they are are copied.
enum Way<'a> {
    /// Units of many bytes.
    Runs,
    /// Turned through registers.
    Turned,
    /// Some units of each row at a time.
    Rows(Rows<'a>),
    /// All units one by one.
    Units,
}

impl Plane {
    /// Walks a column that runs backwards in the input forwards there; how far ahead it begins then.
    fn turn_forwards(&mut self) -> (isize, isize) {
        let Axis { extent, from, to } = self.column;
        if from >= 0 {
            return (0, 0);
        }
        self.column = Axis { extent, from: from.wrapping_neg(), to: to.wrapping_neg() };
        let last = signed(extent - 1);
        (from.wrapping_mul(last), to.wrapping_mul(last))
    }

    /// How it is copied, and as many like it.
    #[inline(never)]
    fn way<'a>(&self, again: usize, is_large: bool, slot: &'a mut Slot, tuning: Tuning) -> Way<'a> {
        let &Self { unit, row, column, has_column, .. } = self;
        let shorter = row.extent.min(column.extent);
        let is_line = unit >= LINE && row.to == signed(unit);
        let is_line = is_line && (!has_column || row.extent >= LEAST_ROW);
        let is_short = has_column && row.extent < LEAST_ROW && tuning.scattered.is_none();
        if (unit >= LEAST_RUN && !is_short) || is_line {
            return Way::Runs;
        }
        let targets = self.targets();
        let columns = self.columns(&targets);
        let is_deinterleaved = columns.are_deinterleaved();
        let units = row.extent * column.extent;
        let are_wide = row.extent * unit >= 2 * LANE && column.extent * unit >= LANE;
        let are_alike = again >= LEAST_AGAIN && (are_wide || is_deinterleaved);
        let are_many = units >= if are_alike { LEAST_TURNED } else { LEAST_UNITS };
        if has_column && are_many && Columns::turns(unit) {
            let are_few = is_deinterleaved || columns.are_interleaved(tuning);
            let both_conflict = row.conflicts() && column.conflicts();
            let is_large = is_large && shorter >= MIN_TURNED;
            let is_quicker =
                unit < LONGEST_TURNED || both_conflict || tuning.scattered.is_some() || is_large;
            // Many short targets take longer to be told than to be filled unit by unit.
            let are_short = row.extent < column.extent;
            let least = if are_short { MIN_TURNED } else { div(LANE, unit).clamp(2, MIN_TURNED) };
            if (shorter >= least && is_quicker) || are_few {
                return Way::Turned;
            }
        }
        let units = Units::whole(unit, row.from);
        let count = row.extent.min(BLOCK);
        let is_long = column.extent <= row.extent && row.extent >= LEAST_PICKED;
        if row.to == signed(unit) && is_long {
            let rows = Rows::runs(slot, tuning.kernels, None, units, count, 0);
            if rows.are_picked() {
                return Way::Rows(rows);
            }
        }
        Way::Units
    }

    fn targets(&self) -> impl Fn(&mut dyn FnMut(Targets) -> bool) + use<> {
        let &Self { target, column, .. } = self;
        Targets { first: Some(target), apart: wrapped(column.to), count: column.extent }.only()
    }

    fn columns<'a>(&self, targets: &'a EachTargets<'a>) -> Columns<'a> {
        let &Self { source, unit, row, column, .. } = self;
        let (step, rows, count) = (wrapped(row.from), row.extent, column.extent);
        Columns { source, step, rows, unit, count, targets }
    }

    /// Copies the plane.
    ///
    /// # Safety
    /// The input must be readable and the output writable over it.
    unsafe fn copy(&self, way: &Way<'_>, tuning: Tuning) {
        // SAFETY: the caller's promise.
        unsafe {
            match way {
                Way::Runs => self.copy_runs(tuning),
                Way::Turned => self.columns(&self.targets()).copy_planes(self.again, tuning),
                Way::Rows(rows) => self.copy_blocks(&|block| {
                    let Block { source, target, axes: [_, column, row], .. } = block;
                    let Axis { extent: count, from, to } = column;
                    let again = Again { count, after: 0, from, to };
                    rows.copy_all(row.of(source, target, block.unit), again, None);
                }),
                Way::Units => self.copy_blocks(&|block| block.copy(tuning.kernels.copy)),
            }
        }
    }

    /// Copies a plane of units of many bytes.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    #[inline(never)]
    unsafe fn copy_runs(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column, has_column, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            if !has_column {
                let (mut source, mut target) = (source, target);
                for _ in 0..column.extent {
                    copy_row(source, target, unit, row, tuning);
                    source = source.wrapping_offset(column.from);
                    target = target.wrapping_offset(column.to);
                }
                return;
            }
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
        }
    }

    /// Takes some units of the longer side, and all of the shorter one, at a time.
    #[inline(never)] // as above
    fn copy_blocks(&self, copy: &dyn Fn(Block)) {
        let &Self { source, target, unit, row, column, again, has_column } = self;
        let is_wide = if row.conflicts() == column.conflicts() {
            column.extent <= row.extent || row.extent >= LEAST_ROW
        } else {
            column.conflicts()
        };
        let (outer, inner) = if is_wide { (column, row) } else { (row, column) };
        let block = if is_wide && !has_column { inner.extent } else { BLOCK };
        for units in math::parts(0..inner.extent, block) {
            let first = signed(units.start);
            let source = source.wrapping_offset(inner.from.wrapping_mul(first));
            let target = target.wrapping_offset(inner.to.wrapping_mul(first));
            let axes = [again, outer, Axis { extent: units.len(), ..inner }];
            copy(Block { source, target, unit, axes });
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
        let &Self { source, target, unit, row, column, .. } = self;
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
        let &Self { source, target, unit, row, column, .. } = self;
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
}

/// Walks over axes in row-major order, but for one of them, without a division a step of the innermost.
struct Odometer<'a> {
    axes: &'a [Axis],
    skipped: Option<usize>,
    inner: Axis,
    /// Steps left of the innermost axis, this one included, and how often it has been gone over.
    left: usize,
    turns: usize,
    from: isize,
    to: isize,
    /// Whether there is but one position.
    is_one: bool,
}

impl<'a> Odometer<'a> {
    fn new(axes: &'a [Axis], skipped: Option<usize>) -> Self {
        let (inner, left, turns, from, to) = (Axis::ONE, 1, 0, 0, 0);
        let mut odometer = Self { axes, skipped, inner, left, turns, from, to, is_one: false };
        if let Some(inner) = odometer.walked().next_back() {
            (odometer.inner, odometer.left) = (inner, inner.extent);
        }
        odometer
    }

    fn walked(&self) -> impl DoubleEndedIterator<Item = Axis> + use<'a> {
        let skipped = self.skipped;
        let is_walked = move |(at, axis): (usize, &Axis)| (skipped != Some(at)).then_some(*axis);
        self.axes.iter().enumerate().filter_map(is_walked)
    }

    /// The position of a region at such a place.
    fn of(&self, (source, target): Place) -> Place {
        (source.wrapping_offset(self.from), target.wrapping_offset(self.to))
    }

    /// Leaves out the innermost axis, and gives it.
    fn take_inner(&mut self) -> Axis {
        let inner = self.inner;
        (self.inner.extent, self.left) = (1, 1);
        self.is_one = self.walked().nth(1).is_none();
        inner
    }

    /// On to the next position; after the last one to the first again, and false.
    #[inline(never)] // as above
    fn advance(&mut self) -> bool {
        let back = |place: isize, step: isize, steps: usize| {
            place.wrapping_sub(step.wrapping_mul(signed(steps)))
        };
        if self.is_one {
            return false;
        }
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

/// Copies units one by one, long ones by that.
///
/// # Safety
/// They must be readable and writable.
pub(super) unsafe fn copy_each(
    (mut source, mut target): Place,
    unit: usize,
    axes: &[Axis],
    long: CopyBytes,
) {
    let mut block = [Axis::ONE; 3];
    if let [outer, inner @ ..] = axes {
        if inner.len() >= block.len() {
            for _ in 0..outer.extent {
                // SAFETY: the caller's promise.
                unsafe { copy_each((source, target), unit, inner, long) };
                source = source.wrapping_offset(outer.from);
                target = target.wrapping_offset(outer.to);
            }
            return;
        }
    }
    for (slot, axis) in block.iter_mut().rev().zip(axes.iter().rev()) {
        *slot = *axis;
    }
    let [outer, middle, inner] = &mut block;
    for axis in [outer, middle] {
        // The longest way without a turn.
        if axis.extent > inner.extent {
            core::mem::swap(axis, inner);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { Block { source, target, unit, axes: block }.copy(long) };
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{signed, Again, Row, Rows, Slot, Tuning, Units};

    const ROOM: usize = 64 << 10;
    const MOST: usize = 200;

    /// Rows of up to [`MOST`] units, at the begin and the end of what may be touched.
    fn check(units: Units, source: &Guarded, target: &Guarded) {
        let Units { step, part, parts: [(parts, part_step), (groups, group_step)] } = units;
        for count in 1..=MOST / (parts * groups).min(16) {
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
                let rows = Rows::runs(&mut slot, tuning.kernels, past, units, count, 100);
                if !rows.are_picked() && units.len() > units.part {
                    continue;
                }
                rows.copy_all(row, Again { count: 1, after: 0, from: 0, to: 0 }, None);
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
                    for group in [(1, 0), (2, 5), (3, -across), (4, 1)] {
                        let units = Units { step, part, parts: [(parts, part_step), group] };
                        check(units, &source, &target);
                    }
                }
            }
        }
    }
}
