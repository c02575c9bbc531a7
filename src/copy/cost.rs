//! What each method of moving units costs, and so the choice of one. Costs count what is issued for a line of output.

use super::call::Call;
use super::machine::{CYCLE, LEAST_PROGRAM_UNITS, LONGEST_UNIT_BYTES, RUN_COST, STAGE_COST};
use super::program::{Group, Program};
use super::tile::units_of_lane;
use super::vector::{LANE_BYTES, LINE_BYTES};
use crate::math::div;

/// How units are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// One by one.
    Runs,
    /// By a program.
    Shuffle,
    /// By tiles that are transposed.
    Transpose,
}

/// What each method costs for some units; `None` if it cannot move them, or was not worth considering.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub runs: usize,
    pub shuffle: Option<usize>,
    pub transpose: Option<usize>,
}

impl Costs {
    /// Returns the cheapest method.
    pub(super) fn best(&self) -> Method {
        let without_program = self.without_program();
        if self.shuffle.is_some_and(|shuffle| shuffle < without_program) {
            Method::Shuffle
        } else if without_program < self.runs {
            Method::Transpose
        } else {
            Method::Runs
        }
    }

    /// Returns the cost of the cheapest method but a program, which must cost less than that.
    pub(super) fn without_program(&self) -> usize {
        self.transpose.unwrap_or(usize::MAX).min(self.runs)
    }
}

/// Returns whether units are short enough to be arranged within registers.
pub(super) fn is_short(unit: usize) -> bool {
    unit < LONGEST_UNIT_BYTES
}

/// Returns the cost of moving units one by one. Past the caches, contiguous ones are joined in a stage.
pub(super) fn of_runs(call: &Call, unit: usize, are_packed: bool) -> usize {
    let stage = if call.past && are_packed { STAGE_COST } else { 0 };
    stage + div(LINE_BYTES * RUN_COST * unit.div_ceil(32), unit)
}

/// Makes a program and returns its cost; `None` if there is none that costs less than the limit, or if units are too few
/// or too long for one.
pub(super) fn make_program(
    call: &Call,
    program: &mut Program,
    group: Group,
    (pieces, apart): (usize, isize),
    count: usize,
    limit: usize,
) -> Option<usize> {
    let units = count.saturating_mul(group.units);
    if !is_short(group.unit) || units < call.machine.threshold(LEAST_PROGRAM_UNITS) {
        return None;
    }
    // Windows reach beyond units, and there may be a page between those of a group.
    if call.is_far(group.apart) {
        return None;
    }
    let is_known = program.groups > 0
        && program.group == group
        && (pieces, apart) == (program.requested, program.apart);
    let (past, kernels) = (call.past, call.machine.kernels);
    let is_made = is_known || program.make(group, (pieces, apart), kernels, (past, limit));
    let cost = of_program(call, program);
    if !is_made || cost >= limit {
        program.groups = 0;
        return None;
    }
    Some(cost)
}

/// Returns the cost of a program that has been made.
pub(super) fn of_program(call: &Call, program: &Program) -> usize {
    let stage = if call.past && !program.makes_lines() { STAGE_COST } else { 0 };
    stage + program.cost
}

/// Returns the cost of transposing tiles; `None` if no tile has such units, or there are too few rows or columns.
pub(super) fn of_transpose(call: &Call, unit: usize, columns: usize, rows: usize) -> Option<usize> {
    let register = call.machine.kernels.register;
    let of_lane = units_of_lane(unit).filter(|_| register.window > 0)?;
    if rows < of_lane || 2 * columns < of_lane || columns < 2 {
        return None;
    }
    let lanes = if rows * unit >= register.bytes { register.bytes / LANE_BYTES } else { 1 };
    let loads = of_lane * lanes;
    let unpacks = of_lane * of_lane.trailing_zeros() as usize;
    let stores = of_lane.min(columns);
    let made = stores * lanes * LANE_BYTES;
    Some(div(CYCLE * LINE_BYTES * (loads + unpacks + stores), made))
}
