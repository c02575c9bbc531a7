//! What each way of moving units costs: the one choice of a method. Costs count what is issued for a line of output.

use super::call::Call;
use super::machine::{
    CYCLE, LEAST_PROGRAM_UNITS, LONGEST_UNIT_BYTES, RUN_COST, STAGE_COST,
};
use super::program::{Group, Program};
use super::tile::Tile;
use super::vector::{LANE_BYTES, LINE_BYTES};
use crate::math::div;

/// How units are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Each by itself.
    Runs,
    /// By a program.
    Shuffle,
    /// By squares of them.
    Transpose,
}

/// Whether units are so short that they may be put together in registers.
pub(super) fn is_short(unit: usize) -> bool {
    unit < LONGEST_UNIT_BYTES
}

/// Units one by one. Past the caches they are put together in a stage, if they follow each other.
pub(super) fn of_runs(call: &Call, unit: usize, are_packed: bool) -> usize {
    let stage = if call.past && are_packed { STAGE_COST } else { 0 };
    stage + div(LINE_BYTES * RUN_COST * unit.div_ceil(32), unit)
}

/// By a program, which is made here; `None` if there is none, or units are too few or too long for one.
pub(super) fn of_program(
    call: &Call,
    program: &mut Program,
    group: Group,
    (pieces, apart): (usize, isize),
    count: usize,
) -> Option<usize> {
    let units = count.saturating_mul(group.units);
    if !is_short(group.unit) || units < call.machine.least(LEAST_PROGRAM_UNITS) {
        return None;
    }
    let is_made = program.groups > 0 && program.group == group && (pieces, apart) == (program.pieces, program.apart);
    (is_made || program.make(group, (pieces, apart), call.machine.kernels.register)).then(|| of_steps(call, program))
}

/// The same of a program that is there.
fn of_steps(call: &Call, program: &Program) -> usize {
    let stage = if call.past && !program.makes_lines() { STAGE_COST } else { 0 };
    stage + program.cost()
}

/// By squares; `None` where there are none of such units, or too few rows or columns.
pub(super) fn of_transpose(call: &Call, unit: usize, columns: usize, from: isize, rows: usize) -> Option<usize> {
    let register = call.machine.kernels.register;
    let tile = Tile::new(unit, columns, from).filter(|_| register.window > 0)?;
    let of_lane = tile.columns();
    if rows < tile.rows() || 2 * columns < of_lane || columns < 2 {
        return None;
    }
    let lanes = if rows * unit >= register.bytes { register.bytes / LANE_BYTES } else { 1 };
    let loads = of_lane * (lanes + usize::from(tile.merged > 1));
    let unpacks = of_lane * of_lane.trailing_zeros() as usize;
    let stores = of_lane.min(columns);
    let made = stores * lanes * LANE_BYTES;
    Some(div(CYCLE * LINE_BYTES * (loads + unpacks + stores), made))
}

/// Beginning with some units, in costs for a line.
pub(super) const OF_CALL: usize = 20 * CYCLE;

#[cfg(test)]
mod tests {
    #[test]
    fn dbg() {
        use super::super::level::{kernels_of, Level};
        use super::super::program::{Group, Program};
        for (unit, pieces, from) in [(48usize, 16usize, 768isize), (12, 3, 36), (12, 16, 192), (24, 8, 192), (7, 5, 35), (6, 6, 36), (10, 7, 70), (4, 4, 16), (96, 3, 288)] {
            for level in [Level::Avx512, Level::Avx2] {
            let mut program = Program::NONE;
            let made = program.make(Group { unit, units: 1, apart: 0, from }, (pieces, unit as isize), kernels_of(level).register);
            eprintln!("{unit}x{pieces} {level:?}: {made} pieces {} groups {} regs {} issued {:?} sets {:?}", program.pieces, program.groups, program.registers, program.cost(), program.sets().iter().map(|s| (s.outputs, s.windows)).collect::<Vec<_>>());
            }
        }
    }
}
