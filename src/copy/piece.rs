//! Copies a piece in normal form: chooses the kernel that takes its innermost axes, and loops over the others.

#![allow(clippy::similar_names)] // one target, and targets

use super::call::{units_to_line, Call};
use super::cost::{self, Costs, Method};
use super::groups::Groups;
use super::machine::{BLOCK_BYTES, CALL_COST, COLUMN_BYTES, MANY_ROWS, PREFETCH_BYTES};
use super::nest::{Axis, Nest};
use super::program::{Group, Program};
use super::runs::Runs;
use super::stage::Stages;
use super::tile::{Block, MAX_COLUMNS};
use super::vector::LINE_BYTES;
use crate::math::{div, next_multiple};
use core::ptr::null_mut;

/// The longest groups of units whose units are the steps of an axis.
const LONGEST_GROUP_BYTES: usize = 256;

/// How a piece is moved.
pub(super) struct Choice {
    pub costs: Costs,
    /// The number of axes, from the innermost on, that make a program's groups.
    pub axes: usize,
    /// The axis that is transposed with the innermost one.
    crossing: usize,
    /// Whether a program makes the steps of that axis together, as if they were pieces.
    by_columns: bool,
}

impl Choice {
    /// Works out what each method costs for a piece; to find out, a program is made.
    #[inline(never)]
    pub(super) fn new(call: &Call, nest: &Nest, program: &mut Program) -> Self {
        let unit = nest.unit;
        let costs = Costs { runs: cost::of_runs(call, unit, true), shuffle: None, transpose: None };
        let mut choice = Self { costs, axes: 1, crossing: 0, by_columns: false };
        let is_short = |inner: &&Axis| inner.to == unit.cast_signed() && cost::is_short(unit);
        let Some(inner) = nest.axes().last().filter(is_short) else { return choice };
        choice.costs.runs += div(CALL_COST * LINE_BYTES, unit * inner.extent);
        let outer = nest.axes().len() - 1;
        let is_crossing = |axis: &Axis| axis.from == unit.cast_signed();
        let mut columns = 1;
        if let Some(crossing) = nest.axes().iter().take(outer).position(is_crossing) {
            columns = nest.axes().get(crossing).map_or(0, |axis| axis.extent);
            choice.costs.transpose = cost::of_transpose(call, unit, columns, inner.extent);
            choice.crossing = crossing;
            choice.by_columns = columns <= MAX_COLUMNS && inner.extent >= MANY_ROWS;
        }
        let ((group, axes, count), pieces) = if choice.by_columns {
            let group = Group::of_units(unit, inner.from);
            ((group, 1, inner.extent), (columns, unit.cast_signed()))
        } else {
            (group_of(nest), (1, 0))
        };
        choice.axes = axes;
        let limit = choice.costs.without_program();
        let shuffle = cost::make_program(call, program, group, pieces, count, limit);
        choice.costs.shuffle = shuffle.filter(|_| axes == 2 || inner.extent >= program.groups);
        choice.by_columns &= choice.costs.best() == Method::Shuffle;
        choice
    }

    /// Moves the axis whose steps are made together inside the innermost one, so that tasks divide the others.
    pub(super) fn arrange(&self, nest: &mut Nest) {
        if self.by_columns {
            let columns = nest.remove(self.crossing);
            nest.push(columns);
        }
    }
}

/// Returns the groups that a program would make, how many axes they take up, and how many groups there are in all.
fn group_of(nest: &Nest) -> (Group, usize, usize) {
    let unit = nest.unit;
    let [.., inner] = *nest.axes() else {
        return (Group::of_units(unit, 0), 0, 1);
    };
    let bytes = unit * inner.extent;
    if let [.., outer, inner] = *nest.axes() {
        // Longer groups are rows of turns, unless few of them make whole lines, or turns may be longer than a row.
        let is_row =
            bytes > LINE_BYTES && !bytes.is_multiple_of(LINE_BYTES / 2) && unit.is_power_of_two();
        if !is_row && bytes <= LONGEST_GROUP_BYTES && outer.to == bytes.cast_signed() {
            let group = Group { unit, units: inner.extent, apart: inner.from, from: outer.from };
            return (group, 2, div(nest.bytes(), bytes));
        }
    }
    (Group::of_units(unit, inner.from), 1, div(nest.bytes(), unit))
}

/// Moves a piece, or part of one.
pub(super) struct Mover<'a> {
    pub call: &'a Call,
    pub choice: &'a Choice,
    pub program: &'a Program,
    pub stages: &'a mut Stages,
}

impl Mover<'_> {
    /// Copies a piece, or part of one.
    #[inline(never)]
    pub(super) unsafe fn copy(&mut self, nest: &mut Nest) {
        let Nest { source, target, unit, .. } = *nest;
        // SAFETY: the caller's promise.
        unsafe {
            if nest.axes().is_empty() {
                let next = source.wrapping_add(unit);
                return self.call.copy_runs(&Runs::one(source, target, unit), self.stages, next);
            }
            match self.choice.costs.best() {
                Method::Shuffle => self.shuffle(nest),
                Method::Transpose => self.transpose(nest),
                Method::Runs => self.copy_runs(nest),
            }
        }
    }

    /// Copies unit by unit.
    unsafe fn copy_runs(&mut self, nest: &mut Nest) {
        let run = nest.unit;
        let inner = nest.pop();
        let (call, stages) = (self.call, &mut *self.stages);
        by_blocks(nest, inner, (1, call), |source, target, along, outer| {
            let Axis { extent: count, from, to } = along;
            let readable_end = call.readable_end(source, count, from, run);
            let next = source.wrapping_offset(from.wrapping_mul(count.cast_signed()));
            // SAFETY: the caller's promise.
            unsafe {
                let runs = Runs { source, target, run, count, from, to, outer, readable_end };
                call.copy_runs(&runs, stages, next);
            };
        });
    }

    /// Copies by a program.
    unsafe fn shuffle(&mut self, nest: &mut Nest) {
        let &mut Self { call, choice, program, ref mut stages } = self;
        let columns = if choice.by_columns { nest.pop() } else { Axis::ONE };
        let reach = program.group.reach() + columns.from.unsigned_abs() * (columns.extent - 1);
        for _ in 1..choice.axes {
            nest.pop();
        }
        let inner = nest.pop();
        // After a short row the next one is prefetched; along a long one, what lies ahead.
        let row = inner.from.unsigned_abs() * inner.extent;
        let distance = match nest.axes().last() {
            Some(outer) if row < 4 * PREFETCH_BYTES => outer.from,
            _ => program.from().wrapping_mul(
                (PREFETCH_BYTES / program.from().unsigned_abs().max(1)).cast_signed() + 1,
            ),
        };
        by_blocks(nest, inner, (program.groups, call), |source, target, along, outer| {
            let Axis { extent: count, from, .. } = along;
            let readable_end = call.readable_end(source, count, from, reach);
            let next = source.wrapping_offset(from.wrapping_mul(count.cast_signed()));
            let mut targets = [null_mut(); MAX_COLUMNS];
            columns.targets(target, &mut targets);
            let targets = targets.get(..columns.extent).unwrap_or_default();
            let at = 0;
            let all =
                Groups { program, source, targets, at, count, outer, readable_end, next, distance };
            // SAFETY: the caller's promise.
            unsafe { call.shuffle(&all, stages) };
        });
    }

    /// Transposes the innermost axis with the one along which units are contiguous in the input.
    unsafe fn transpose(&mut self, nest: &mut Nest) {
        let unit = nest.unit;
        let rows = nest.pop();
        let columns = nest.remove(self.choice.crossing);
        nest.order_by_lines();
        let call = self.call;
        let can_begin_lines = call.past && columns.to.unsigned_abs().is_multiple_of(LINE_BYTES);
        let block = next_multiple(div(COLUMN_BYTES, unit), 16);
        nest.each(|source, target| {
            // Past the caches the rows after the head follow, if all columns begin lines then, and two lines are left.
            let head = units_to_line(target as usize, unit).unwrap_or(rows.extent);
            let is_head =
                can_begin_lines && rows.extent >= head.saturating_add(div(2 * LINE_BYTES, unit));
            let head = if is_head { head } else { 0 };
            let mut row = 0;
            while row < rows.extent {
                let left = rows.extent - row;
                let some = match head {
                    1.. if row == 0 => head,
                    _ if left < 2 * block => left,
                    _ => block,
                };
                let mut column = 0;
                while column < columns.extent {
                    let count = columns_of(columns.extent - column, unit);
                    let mut targets = [null_mut(); MAX_COLUMNS];
                    let first = columns.to.wrapping_mul(column.cast_signed());
                    columns.targets(target.wrapping_offset(first), &mut targets);
                    let source = source
                        .wrapping_offset(rows.from.wrapping_mul(row.cast_signed()))
                        .wrapping_add(column * unit);
                    let targets = targets.get(..count).unwrap_or_default();
                    let readable_end = call.readable_end(source, some, rows.from, count * unit);
                    let (from, rows, at) = (rows.from, some, row * unit);
                    // SAFETY: the caller's promise.
                    unsafe {
                        let block = Block { source, unit, from, rows, targets, at, readable_end };
                        call.machine.kernels.transpose(&block, call.past);
                    };
                    column += count;
                }
                row += some;
            }
        });
    }
}

/// Returns how many of the remaining columns to take at a time, so that those left over fill a lane, if there are any.
fn columns_of(left: usize, unit: usize) -> usize {
    let least = div(16, unit);
    match left {
        ..=MAX_COLUMNS => left,
        _ if left - MAX_COLUMNS < least => MAX_COLUMNS - least,
        _ => MAX_COLUMNS,
    }
}

/// Calls `visit` for all steps of a nest's axes: with the inner axis and the next one outward; or only with the inner
/// one, block by block if others share its lines.
#[inline(always)]
fn by_blocks(
    nest: &mut Nest,
    inner: Axis,
    (granule, call): (usize, &Call),
    mut visit: impl FnMut(*const u8, *mut u8, Axis, Axis),
) {
    let shared = nest.order_by_lines();
    let has_outer = shared == 0 && !call.has_holes && !nest.axes().is_empty();
    let outer = if has_outer { nest.pop() } else { Axis::ONE };
    let step = inner.from.unsigned_abs().max(1);
    let block = if shared > 0 { next_multiple(BLOCK_BYTES / step, granule) } else { inner.extent };
    let block = block.max(granule);
    let mut begin = 0;
    while begin < inner.extent {
        let extent = block.min(inner.extent - begin);
        let at = begin.cast_signed();
        let (from, to) = (inner.from.wrapping_mul(at), inner.to.wrapping_mul(at));
        nest.each(|source, target| {
            visit(
                source.wrapping_offset(from),
                target.wrapping_offset(to),
                Axis { extent, ..inner },
                outer,
            );
        });
        begin += extent;
    }
}
