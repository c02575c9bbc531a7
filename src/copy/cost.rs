//! What each method of moving units costs, and so the choice of one. Costs count what is issued for a line of output.

use super::call::Call;
use super::machine_constants::{
    CYCLE, HALF_LINES_COST, LEAST_PROGRAM_UNITS, LONGEST_UNIT_BYTES, RUN_COST, STAGE_COST,
};
use super::program::{Pattern, Program, ProgramSlot};
use super::tile::units_of_lane;
use super::vector::{LANE_BYTES, LINE_BYTES};
use crate::math::div;
use crate::text::Text;

/// How units are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// One by one.
    Runs,
    /// By a program.
    Program,
    /// By tiles that are transposed.
    Transpose,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Program => "shuffle",
            Self::Transpose => "transpose",
        }
    }
}

/// What each method costs for some units; `None` if it cannot move them, or was not worth considering.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub runs: usize,
    pub program: Option<usize>,
    pub transpose: Option<usize>,
}

impl Costs {
    /// Returns the cheapest method.
    pub(super) fn best(&self) -> Method {
        let without_program = self.without_program();
        if self.program.is_some_and(|cost| cost < without_program) {
            Method::Program
        } else if without_program < self.runs {
            Method::Transpose
        } else {
            Method::Runs
        }
    }

    /// Returns the cost of the cheapest method that is not a program. A program must cost less.
    pub(super) fn without_program(&self) -> usize {
        self.transpose.unwrap_or(usize::MAX).min(self.runs)
    }

    /// Writes the chosen method and the costs of all, in cycles for 64 bytes of output.
    pub(super) fn describe(&self, text: &mut Text<'_>) {
        text.text(": ").text(self.best().name()).text(" (cycles a line:");
        let all = [
            (Method::Runs, Some(self.runs)),
            (Method::Program, self.program),
            (Method::Transpose, self.transpose),
        ];
        for (method, cost) in all {
            if let Some(cost) = cost {
                text.text(" ").text(method.name()).text(" ").number(cost / CYCLE);
            }
        }
        text.text(")");
    }
}

/// Returns whether units are short enough to be arranged within registers.
pub(super) fn is_short(unit: usize) -> bool {
    unit < LONGEST_UNIT_BYTES
}

/// Returns the cost of moving units one by one. If they are streamed, they are joined in a stage.
pub(super) fn of_runs(call: &Call, unit: usize) -> usize {
    let stage = if call.streams { STAGE_COST } else { 0 };
    // Nothing is cheaper than runs this long, whatever they cost.
    stage + div((LINE_BYTES * RUN_COST).saturating_mul(unit.div_ceil(32)), unit)
}

/// Makes a program and returns its cost; `None` if none costs less than the limit, or if the groups of each piece, of
/// which there are `count`, are too few or their units too long for one.
pub(super) fn make_program(
    call: &Call,
    slot: &mut ProgramSlot,
    pattern: Pattern,
    count: usize,
    limit: usize,
) -> Option<usize> {
    let group = pattern.group;
    let units = count.saturating_mul(group.units);
    let are_few = units < call.machine.threshold(LEAST_PROGRAM_UNITS);
    // Windows reach beyond units, and there may be a page between those of a group.
    if !is_short(group.unit) || are_few || call.is_far(group.apart) {
        return None;
    }
    if slot.get().is_none_or(|program| program.pattern != pattern) {
        slot.make(pattern, &call.machine.kernels.registers, call.streams, limit);
    }
    let cost = slot.get().map(|program| of_program(call, program));
    if cost.is_none_or(|cost| cost >= limit) {
        slot.clear();
        return None;
    }
    cost
}

/// Returns the cost of a program that has been made.
pub(super) fn of_program(call: &Call, program: &Program) -> usize {
    let stage = if call.streams && !program.fills_registers() { STAGE_COST } else { 0 };
    stage + program.cost
}

/// Returns the cost of transposing tiles; `None` if no tile has such units, or there are too few rows or columns.
pub(super) fn of_transpose(call: &Call, unit: usize, columns: usize, rows: usize) -> Option<usize> {
    let register = &call.machine.kernels.registers.bytes;
    let of_lane = units_of_lane(unit)?;
    if register.window == 0 || rows < of_lane || 2 * columns < of_lane || columns < 2 {
        return None;
    }
    let lanes = if rows * unit >= register.bytes { register.bytes / LANE_BYTES } else { 1 };
    let loads = of_lane * lanes;
    let unpacks = of_lane * of_lane.trailing_zeros() as usize;
    let stores = of_lane.min(columns);
    let made = stores * lanes * LANE_BYTES;
    // Halves of lines are streamed column by column, and wait for each other.
    let halves = if call.streams && register.bytes < LINE_BYTES { HALF_LINES_COST } else { 0 };
    Some(halves + div(CYCLE * LINE_BYTES * (loads + unpacks + stores), made))
}
