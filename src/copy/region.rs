//! Some units of a strided piece that make whole axes: planes to transpose where the input and the
//! output have different innermost axes, rows of units everywhere else.

use super::columns::{Columns, Targets};
use super::kernel::combine::LINE;
use super::kernel::row_major::RowRun;
use super::kernel::strided::{self, Row};
use super::kernel::RowMajor;
use super::runs::{self, Ahead};
use super::tuning::Tuning;
use super::{signed, wrapped};
use crate::math::{self, div_ceil};
use crate::shape::MAX_RANK;
use core::iter::once;

/// One axis of a copy: how many steps, and how far each goes in the input and the output.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Axis {
    pub extent: usize,
    pub from: isize,
    pub to: isize,
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

/// The least extents, in units, of a plane that is worth turning through registers.
const MIN_TURNED: usize = 8;
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
        let mut planes = Odometer::new(outer, count, column);
        let column = column.and_then(|at| Some((at, outer.get(at)?)));
        let column = column.map(|(at, axis)| Axis { extent: extent_at(at, axis), ..*axis });
        loop {
            let source = source.wrapping_offset(planes.from);
            let target = target.wrapping_offset(planes.to);
            // SAFETY: the plane or row lies within the region.
            unsafe {
                match column {
                    Some(column) => Plane::new(source, target, unit, row, column).copy(tuning),
                    None => copy_row(source, target, unit, row, tuning),
                }
            }
            if !planes.advance() {
                break;
            }
        }
        tuning.finish();
    }
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
    let row = Row { source, source_step, target, target_step, count, unit };
    // SAFETY: the caller's promise.
    unsafe { strided::copy(tuning.kernels, row) };
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
                let tuning = if self.makes_lines() { tuning } else { tuning.through_caches() };
                let row_major = tuning.kernels.row_major.filter(|_| tuning.apart.is_none());
                if !row_major.is_some_and(|row_major| self.copy_lines(row_major)) {
                    self.copy_rows(tuning);
                }
                return;
            }
            if Columns::turns(unit) && (shorter >= MIN_TURNED || columns.are_dealt()) {
                columns.copy(tuning);
            } else if column.extent <= row.extent {
                self.gather_columns(tuning);
            } else {
                self.scatter_rows(tuning);
            }
        }
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
        for first in (0..row.extent).step_by(BLOCK) {
            let count = BLOCK.min(row.extent - first);
            let mut source = source.wrapping_offset(row.from.wrapping_mul(signed(first)));
            let mut target = target.wrapping_add(first * unit);
            for _ in 0..column.extent {
                // SAFETY: the caller's promise.
                unsafe { copy_row(source, target, unit, Axis { extent: count, ..row }, tuning) };
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
        for first in (0..column.extent).step_by(BLOCK) {
            let count = BLOCK.min(column.extent - first);
            let mut source = source.wrapping_add(first * unit);
            let mut target = target.wrapping_offset(column.to.wrapping_mul(signed(first)));
            for _ in 0..row.extent {
                let units = Axis { extent: count, ..column };
                // SAFETY: the caller's promise.
                unsafe { copy_row(source, target, unit, units, tuning) };
                source = source.wrapping_offset(row.from);
                target = target.wrapping_add(unit);
            }
        }
    }
}

/// Walks over axes in row-major order, but for one of them, without a division a step.
struct Odometer<'a> {
    axes: &'a [Axis],
    /// Steps of the first axis.
    count: usize,
    skipped: Option<usize>,
    index: [usize; MAX_RANK],
    from: isize,
    to: isize,
}

impl<'a> Odometer<'a> {
    fn new(axes: &'a [Axis], count: usize, skipped: Option<usize>) -> Self {
        Self { axes, count, skipped, index: [0; MAX_RANK], from: 0, to: 0 }
    }

    /// On to the next position, unless this was the last.
    fn advance(&mut self) -> bool {
        for (at, (axis, index)) in self.axes.iter().zip(&mut self.index).enumerate().rev() {
            if self.skipped == Some(at) {
                continue;
            }
            *index += 1;
            self.from = self.from.wrapping_add(axis.from);
            self.to = self.to.wrapping_add(axis.to);
            if *index < if at == 0 { self.count } else { axis.extent } {
                return true;
            }
            let back = signed(*index);
            *index = 0;
            self.from = self.from.wrapping_sub(axis.from.wrapping_mul(back));
            self.to = self.to.wrapping_sub(axis.to.wrapping_mul(back));
        }
        false
    }
}
