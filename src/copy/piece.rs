//! Moves a piece in normal form: chooses the kernel that takes its innermost axes, and loops over the others.

use super::ahead::Ahead;
use super::call::{deliver_block, Call};
use super::cost::{self, Costs, Method};
use super::groups::{units_to_line, Groups, Stretch};
use super::machine_constants::{BLOCK_BYTES, CALL_COST, COLUMN_BYTES, MANY_ROWS};
use super::nest::{Axis, Nest};
use super::program::{Group, Pattern, Program, ProgramSlot};
use super::runs::Runs;
use super::stage::Stages;
use super::tile::{Block, MAX_COLUMNS};
use super::vector::{LANE_BYTES, LINE_BYTES};
use crate::math::{div, next_multiple};
use core::ptr::null_mut;

/// The longest groups of units whose units are the steps of an axis.
const LONGEST_GROUP_BYTES: usize = 256;

/// How a piece is moved, and what each method costs.
pub(super) struct Choice<'a> {
    pub costs: Costs,
    pub way: Way<'a>,
}

/// How the innermost axes of a piece are moved.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// Run by run, along the innermost axis.
    Runs,
    /// By a program that makes these groups.
    Program(&'a Program, Grouping),
    /// By tiles that transpose the innermost axis with this one, along which units are contiguous in the input.
    Tiles { crossing: usize },
}

/// What the groups are that a program makes.
#[derive(Clone, Copy)]
pub(super) enum Grouping {
    /// Units of the innermost axis.
    Units,
    /// All units of the innermost axis in a step of the next one.
    Rows,
    /// The steps of the innermost axis, as if they were pieces. Their units are those of the axis outward of it.
    Columns { crossing: usize },
}

impl Way<'_> {
    /// Returns the number of axes, from the innermost on, that are moved as a whole.
    pub(super) fn whole_axes(&self) -> usize {
        match self {
            Self::Program(_, Grouping::Rows | Grouping::Columns { .. }) => 2,
            Self::Runs | Self::Program(_, Grouping::Units) | Self::Tiles { .. } => 1,
        }
    }

    /// Brings the axes of a normal form into the order in which they are moved: columns that a program makes together
    /// come inside the innermost axis, so that tasks divide the others.
    pub(super) fn arrange(&self, nest: &mut Nest) {
        if let &Self::Program(_, Grouping::Columns { crossing }) = self {
            if let Some(columns) = nest.remove(crossing) {
                nest.push(columns);
            }
        }
    }
}

/// What a program for a piece would make: this many groups for each piece of the pattern.
struct Candidate {
    pattern: Pattern,
    grouping: Grouping,
    count: usize,
}

impl<'a> Choice<'a> {
    /// Works out what each method costs for a piece; to find out, a program is made.
    pub(super) fn new(call: &Call, nest: &Nest, slot: &'a mut ProgramSlot) -> Self {
        let unit = nest.unit;
        let mut costs = Costs { runs: cost::of_runs(call, unit), program: None, transpose: None };
        let [outward @ .., inner] = nest.axes() else { return Self { costs, way: Way::Runs } };
        if inner.to != unit.cast_signed() || !cost::is_short(unit) {
            return Self { costs, way: Way::Runs };
        }
        costs.runs += div(CALL_COST * LINE_BYTES, unit * inner.extent);
        let crossing = outward.iter().position(|axis| axis.from == unit.cast_signed());
        if let Some(columns) = crossing.and_then(|crossing| outward.get(crossing)) {
            costs.transpose = cost::of_transpose(call, unit, columns.extent, inner.extent);
        }
        let Candidate { pattern, grouping, count } = candidate_of(nest, outward, *inner, crossing);
        let limit = costs.without_program();
        let cost = cost::make_program(call, slot, pattern, count, limit);
        // Units must be enough for a turn.
        let is_enough = |program: &&Program| {
            matches!(grouping, Grouping::Rows) || inner.extent >= program.turn_groups()
        };
        let program = slot.get().filter(is_enough);
        costs.program = program.and(cost);
        let way = match (costs.best(), program, crossing) {
            (Method::Program, Some(program), _) => Way::Program(program, grouping),
            (Method::Transpose, _, Some(crossing)) => Way::Tiles { crossing },
            (Method::Runs | Method::Program | Method::Transpose, _, _) => Way::Runs,
        };
        Self { costs, way }
    }
}

/// Returns the groups that a program would make of a piece. `crossing` is the axis along which units are contiguous in
/// the input.
fn candidate_of(nest: &Nest, outward: &[Axis], inner: Axis, crossing: Option<usize>) -> Candidate {
    let unit = nest.unit;
    let group = Group::single(unit, inner.from);
    if let Some(crossing) = crossing {
        let pieces = outward.get(crossing).map_or(1, |axis| axis.extent);
        if pieces <= MAX_COLUMNS && inner.extent >= MANY_ROWS {
            let pattern = Pattern { group, pieces, apart: unit.cast_signed() };
            let grouping = Grouping::Columns { crossing };
            return Candidate { pattern, grouping, count: inner.extent };
        }
    }
    let bytes = unit * inner.extent;
    if let [.., outer] = *outward {
        // Longer groups are rows of turns, unless few of them make whole lines, or turns may be longer than a row.
        let is_row =
            bytes > LINE_BYTES && !bytes.is_multiple_of(LINE_BYTES / 2) && unit.is_power_of_two();
        if !is_row && bytes <= LONGEST_GROUP_BYTES && outer.to == bytes.cast_signed() {
            let group = Group { unit, units: inner.extent, apart: inner.from, from: outer.from };
            let pattern = Pattern { group, pieces: 1, apart: 0 };
            let count = div(nest.total(), bytes);
            return Candidate { pattern, grouping: Grouping::Rows, count };
        }
    }
    let pattern = Pattern { group, pieces: 1, apart: 0 };
    Candidate { pattern, grouping: Grouping::Units, count: div(nest.total(), unit) }
}

/// Moves a piece, or parts of one.
pub(super) struct Mover<'a> {
    pub call: &'a Call,
    pub way: Way<'a>,
    pub stages: &'a mut Stages,
    /// Element [0, …, 0] of the input and of the output.
    pub source: *const u8,
    pub target: *mut u8,
}

/// Some steps of the innermost axis, at one combination of steps of the others.
struct Along {
    source: *const u8,
    target: *mut u8,
    inner: Axis,
    /// The axis outward of it, if the kernel goes along that one, too.
    outer: Axis,
}

impl Along {
    /// Returns what is read next in memory.
    fn next(&self) -> *const u8 {
        self.source.wrapping_offset(self.inner.input_at(self.inner.extent))
    }
}

impl Mover<'_> {
    /// Moves a piece, or part of one, whose axes have been arranged. The axes are used up.
    ///
    /// # Safety
    /// Its units must be readable and writable. [`Stages::finish`] and a fence must follow what is streamed.
    pub(super) unsafe fn move_nest(&mut self, nest: &mut Nest) {
        let Some(inner) = nest.pop() else {
            let source = self.source.wrapping_offset(nest.from);
            let target = self.target.wrapping_offset(nest.to);
            let end = source.wrapping_add(nest.unit);
            let run = Runs::one(source, target, nest.unit);
            // SAFETY: a single unit.
            return unsafe { self.call.deliver_runs(&run, self.stages, end) };
        };
        // SAFETY: the kernels go along the innermost axes, and the loops along the others.
        unsafe {
            match self.way {
                Way::Runs => self.nest_by_runs(nest, inner),
                Way::Program(program, grouping) => {
                    let (groups, columns) = match grouping {
                        Grouping::Units => (inner, Axis::ONE),
                        Grouping::Rows => (nest.pop().unwrap_or(Axis::ONE), Axis::ONE),
                        Grouping::Columns { .. } => (nest.pop().unwrap_or(Axis::ONE), inner),
                    };
                    self.nest_by_program(nest, program, groups, columns);
                }
                Way::Tiles { crossing } => {
                    let columns = nest.remove(crossing).unwrap_or(Axis::ONE);
                    self.nest_by_tiles(nest, inner, columns);
                }
            }
        }
    }

    /// Copies unit by unit.
    ///
    /// # Safety
    /// As for [`Mover::move_nest`].
    unsafe fn nest_by_runs(&mut self, nest: &mut Nest, inner: Axis) {
        let bytes = nest.unit;
        self.by_blocks(nest, inner, 1, |call, stages, along| {
            let &Along { source, target, inner: Axis { extent: count, from, to }, outer } = along;
            let readable_end = call.readable_end(source, count, from, bytes);
            let runs = Runs { source, target, bytes, count, from, to, outer, readable_end };
            // SAFETY: units of the piece.
            unsafe { call.deliver_runs(&runs, stages, along.next()) };
        });
    }

    /// Has a program make the groups along an axis, and the columns of another one together.
    ///
    /// # Safety
    /// As for [`Mover::move_nest`].
    unsafe fn nest_by_program(
        &mut self,
        nest: &mut Nest,
        program: &Program,
        inner: Axis,
        columns: Axis,
    ) {
        debug_assert!(columns.extent <= MAX_COLUMNS, "{} columns", columns.extent);
        let reach = program.group().reach() + columns.from.unsigned_abs() * (columns.extent - 1);
        let distance = Ahead::distance_along(&inner, nest.axes().last(), program.turn_from());
        self.by_blocks(nest, inner, program.turn_groups(), |call, stages, along| {
            let &Along { source, target, inner: Axis { extent: count, from, .. }, outer } = along;
            let mut targets = [null_mut(); MAX_COLUMNS];
            columns.targets(target, &mut targets);
            let stretch = Stretch {
                source,
                targets: targets.get(..columns.extent).unwrap_or_default(),
                at: 0,
                count,
                outer,
                readable_end: call.readable_end(source, count, from, reach),
                ahead: Ahead { next: along.next(), distance },
            };
            // SAFETY: groups of the piece.
            unsafe { call.deliver_groups(&Groups { program, stretch }, stages) };
        });
    }

    /// Transposes the innermost axis, whose steps are the rows, with the one along which units are contiguous in the
    /// input, whose steps are the columns: some rows in all columns, and then the next ones.
    ///
    /// # Safety
    /// As for [`Mover::move_nest`].
    unsafe fn nest_by_tiles(&mut self, nest: &mut Nest, rows: Axis, columns: Axis) {
        let unit = nest.unit;
        nest.order_by_lines();
        let can_begin_lines =
            self.call.streams && columns.to.unsigned_abs().is_multiple_of(LINE_BYTES);
        let most = next_multiple(div(COLUMN_BYTES, unit), LANE_BYTES);
        nest.each(|from, to| {
            let target = self.target.wrapping_offset(to);
            let head = if can_begin_lines { head_of(target, unit, rows.extent) } else { 0 };
            let (mut row, mut column) = (0, 0);
            while row < rows.extent {
                let count = match rows.extent - row {
                    _ if row == 0 && head > 0 => head,
                    left if left < 2 * most => left,
                    _ => most,
                };
                let some = columns_of(columns.extent - column, unit);
                let mut targets = [null_mut(); MAX_COLUMNS];
                columns.targets(target.wrapping_offset(columns.output_at(column)), &mut targets);
                let first = rows.input_at(row).wrapping_add((column * unit).cast_signed());
                let source = self.source.wrapping_offset(from.wrapping_add(first));
                let block = Block {
                    source,
                    unit,
                    from: rows.from,
                    rows: count,
                    targets: targets.get(..some).unwrap_or_default(),
                    at: row * unit,
                    readable_end: self.call.readable_end(source, count, rows.from, some * unit),
                };
                // SAFETY: some units of the piece.
                unsafe { deliver_block(self.call.machine.kernels, &block, self.call.streams) };
                column += some;
                if column == columns.extent {
                    column = 0;
                    row += count;
                }
            }
        });
    }

    /// Calls `visit` for all steps of a nest's axes: with the inner axis and the next one outward; or only with the
    /// inner one, block by block if others share its lines.
    #[inline(always)] // the loop is small, and knows what it visits
    fn by_blocks(
        &mut self,
        nest: &mut Nest,
        inner: Axis,
        granule: usize,
        mut visit: impl FnMut(&Call, &mut Stages, &Along),
    ) {
        let shared = nest.order_by_lines();
        let has_outer = shared == 0 && !self.call.has_holes;
        let outer = if has_outer { nest.pop().unwrap_or(Axis::ONE) } else { Axis::ONE };
        let steps = div(BLOCK_BYTES, inner.from.unsigned_abs()).max(1);
        let block = if shared > 0 { next_multiple(steps, granule) } else { inner.extent };
        let mut begin = 0;
        while begin < inner.extent {
            let extent = block.min(inner.extent - begin);
            nest.each(|from, to| {
                let along = Along {
                    source: self.source.wrapping_offset(from.wrapping_add(inner.input_at(begin))),
                    target: self.target.wrapping_offset(to.wrapping_add(inner.output_at(begin))),
                    inner: Axis { extent, ..inner },
                    outer,
                };
                visit(self.call, self.stages, &along);
            });
            begin += extent;
        }
    }
}

/// Returns how many rows come before those that are streamed, because columns begin lines there; 0 if two lines are not
/// left then, or if no row begins a line.
fn head_of(target: *mut u8, unit: usize, rows: usize) -> usize {
    match units_to_line(target as usize, unit) {
        Some(head) if rows >= head.saturating_add(div(2 * LINE_BYTES, unit)) => head,
        _ => 0,
    }
}

/// Returns how many of the remaining columns to take at a time, so that those left over fill a lane, if there are any.
fn columns_of(left: usize, unit: usize) -> usize {
    let least = div(LANE_BYTES, unit);
    match left {
        ..=MAX_COLUMNS => left,
        _ if left - MAX_COLUMNS < least => MAX_COLUMNS - least,
        _ => MAX_COLUMNS,
    }
}
