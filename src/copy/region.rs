//! Some units of a strided piece that make whole axes: planes to transpose where the input and the
//! output have different innermost axes, rows of units everywhere else.

use super::columns::{Columns, Targets};
use super::kernel::strided::{self, Row};
use super::tuning::Tuning;
use super::{signed, wrapped};
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
            return unsafe { (tuning.kernels.copy)(source, target, unit) };
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
        if let Some(past) = tuning.non_temporal {
            (past.fence)();
        }
    }
}

/// Copies `row.extent` units.
///
/// # Safety
/// They must be readable and writable.
unsafe fn copy_row(source: *const u8, target: *mut u8, unit: usize, row: Axis, tuning: Tuning) {
    let Axis { extent: count, from: source_step, to: target_step } = row;
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
            let are_few = columns.are_dealt() || columns.are_interleaved(tuning);
            if Columns::turns(unit) && (shorter >= MIN_TURNED || are_few) {
                columns.copy(tuning);
            } else if column.extent <= row.extent {
                self.gather_columns(tuning);
            } else {
                self.scatter_rows(tuning);
            }
        }
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
