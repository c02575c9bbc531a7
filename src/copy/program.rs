//! Shuffle programs: each register of the output is picked from a few windows of the input. A program is made only from
//! where each byte comes from, so one kernel (`shuffle.rs`) takes short runs apart and puts them together, picks every
//! second unit, repeats units, and reverses rows.
//!
//! The idea: registers that need bytes of the same windows form a set, whose windows are loaded once. If pieces lie
//! side by side in their rows, these are the registers at the same place of all pieces; if one piece is put together
//! from several places, they are registers that follow each other.

use super::groups::Groups;
use super::level::{kernels_of, Kernels, Level};
use super::machine::{CHEAP_LINE, LOAD_COST, PICK_COST, STORE_COST};
use super::picks::{Pick, Take};
use super::vector::{Vector, LANE_BYTES, LINE_BYTES};
use crate::math::{div, div_ceil, div_rem};
use core::mem::MaybeUninit;

/// The most picks, windows and sets of a program, and the most registers of a turn.
const MAX_PICKS: usize = 40;
const MAX_WINDOWS: usize = 32;
const MAX_SETS: usize = 16;
const MAX_REGISTERS: usize = 16;
/// The most outputs of a set, and the most windows of sets of one output, of two, and so on: the kernel has a loop for
/// each. Their indices stay in registers, of which there are 32.
pub(super) const MAX_OUTPUTS: usize = 5;
pub(super) const MAX_WINDOWS_OF_SET: [usize; MAX_OUTPUTS] = [8, 8, 6, 5, 5];

/// Units that are contiguous in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// Bytes of a unit, which are contiguous in the input, too.
    pub unit: usize,
    /// The number of units in a group, and bytes of input from one to the next.
    pub units: usize,
    pub apart: isize,
    /// Bytes of input from one group to the next.
    pub from: isize,
}

impl Group {
    /// Returns groups of a single unit each, `from` bytes of input apart.
    pub(super) fn of_units(unit: usize, from: isize) -> Self {
        Self { unit, units: 1, apart: 0, from }
    }

    pub(super) fn bytes(&self) -> usize {
        self.unit * self.units
    }

    /// Returns the bytes of input from the first unit of a group to the end of the highest.
    pub(super) fn reach(&self) -> usize {
        self.apart.max(0).unsigned_abs() * (self.units - 1) + self.unit
    }
}

/// What programs need to know of a level's registers.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub bytes: usize,
    /// Bytes from which a pick can choose; 0 if the level cannot pick.
    pub window: usize,
    pub from_two: bool,
    /// The kernel that runs programs; past the caches if the flag is set, which only registers of a line allow.
    pub shuffle: unsafe fn(&Groups<'_>, bool),
    pub take: Take,
}

impl Register {
    pub(super) const fn of<V: Vector>(shuffle: unsafe fn(&Groups<'_>, bool), take: Take) -> Self {
        let (bytes, window, from_two) = (V::BYTES, V::WINDOW_BYTES, V::PICKS_FROM_TWO);
        Self { bytes, window, from_two, shuffle, take }
    }
}

/// Registers that are made from the same windows. The picks from the first window come first, then those from the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Set {
    pub outputs: usize,
    pub windows: usize,
    /// The numbers of its first register, window and pick.
    pub register: usize,
    pub first_window: usize,
    pub first_pick: usize,
}

/// The sets of a turn, which has as many registers as whole groups fill well.
pub(super) struct Program {
    pub group: Group,
    /// The pieces that were requested, those that share sets, and bytes of input from one to the next.
    pub requested: usize,
    pub pieces: usize,
    pub apart: isize,
    /// Whether it picks words: each output of its only set has a share of the windows, and picks are the same for all.
    pub picks_words: bool,
    /// Groups of a turn, and registers of a turn for each piece.
    pub groups: usize,
    pub registers: usize,
    pub sets: [Set; MAX_SETS],
    pub set_count: usize,
    /// Where windows begin, by lane, counted from the start of the turn.
    pub windows: [[isize; 2]; MAX_WINDOWS],
    pub window_count: usize,
    pub picks: [MaybeUninit<Pick>; MAX_PICKS],
    pub pick_count: usize,
    /// The end of the highest window, counted likewise.
    pub high: isize,
    pub register: Register,
    /// What is issued for a line of output.
    pub cost: usize,
}

impl Program {
    #[inline(always)] // it is too large to return cheaply
    pub(super) fn new() -> Self {
        Self {
            group: Group { unit: 0, units: 0, apart: 0, from: 0 },
            requested: 0,
            pieces: 0,
            apart: 0,
            picks_words: false,
            groups: 0,
            registers: 0,
            sets: [Set { outputs: 0, windows: 0, register: 0, first_window: 0, first_pick: 0 };
                MAX_SETS],
            set_count: 0,
            windows: [[0; 2]; MAX_WINDOWS],
            window_count: 0,
            picks: [const { MaybeUninit::uninit() }; MAX_PICKS],
            pick_count: 0,
            high: 0,
            register: kernels_of(Level::Portable).register,
            cost: 0,
        }
    }

    /// Returns the bytes of output that a turn makes for each piece.
    pub(super) fn bytes(&self) -> usize {
        self.groups * self.group.bytes()
    }

    /// Returns the bytes of input from one turn to the next.
    pub(super) fn from(&self) -> isize {
        self.group.from.wrapping_mul(self.groups.cast_signed())
    }

    /// Returns whether a turn fills all its registers.
    pub(super) fn fills_registers(&self) -> bool {
        self.groups > 0 && self.bytes() == self.registers * self.register.bytes
    }

    /// Returns whether a turn makes whole lines.
    pub(super) fn makes_lines(&self) -> bool {
        self.fills_registers() && self.bytes().is_multiple_of(LINE_BYTES)
    }

    pub(super) fn sets(&self) -> &[Set] {
        self.sets.get(..self.set_count).unwrap_or_default()
    }

    /// Makes the cheapest program for these groups, preferring turns of whole lines. Returns whether there is one that
    /// costs less than the limit, which is what the best other method costs.
    #[inline(never)]
    pub(super) fn make(
        &mut self,
        group: Group,
        (pieces, apart): (usize, isize),
        kernels: &Kernels,
        (past, limit): (bool, usize),
    ) -> bool {
        (self.group, self.requested, self.apart, self.groups) = (group, pieces, apart, 0);
        if group.bytes() == 0 {
            return false;
        }
        let can_pick_words = !past && self.set_turn_of_words(kernels);
        let words = if can_pick_words { self.cost_of_words() } else { usize::MAX };
        let limit_of_sets = limit.min(words.saturating_add(1));
        let are_made = self.make_sets(pieces, kernels.register, (past, limit_of_sets));
        if !are_made && words < limit {
            self.make_words(kernels);
            self.cost = words;
        }
        self.groups > 0
    }

    /// Makes a program that picks bytes, for as many pieces together as possible, or as many registers of one as pay.
    fn make_sets(
        &mut self,
        pieces: usize,
        register: Register,
        (past, limit): (bool, usize),
    ) -> bool {
        (self.register, self.picks_words, self.groups) = (register, false, 0);
        if register.window == 0 {
            return false;
        }
        let group = &self.group;
        let (lines, best) = (turn_of_lines(group, register), best_turn(group, register));
        let few = (div(register.bytes, group.bytes()), 1);
        let by_lines = self.make_turn(lines, pieces, limit);
        let cost = if by_lines { self.cost } else { limit };
        if by_lines && (past || cost <= CHEAP_LINE || best == lines) {
            return true;
        }
        self.make_turn(best, pieces, cost)
            || self.make_turn(if by_lines { lines } else { few }, pieces, limit)
    }

    /// Makes a program whose turns have this many groups and registers, if it costs less than the limit. As many pieces
    /// share a set as it has room for, in parts of about equal size, unless units are so long that they share few
    /// windows; or, if one piece is put together from several places, as many of its registers.
    fn make_turn(
        &mut self,
        (groups, registers): (usize, usize),
        pieces: usize,
        limit: usize,
    ) -> bool {
        (self.groups, self.registers) = (groups, registers);
        let do_share =
            if pieces > 1 { self.group.unit < LINE_BYTES / 2 } else { self.group.units > 1 };
        let most = if do_share { MAX_OUTPUTS } else { 1 };
        let all = if pieces > 1 { pieces } else { registers };
        let mut outputs = if groups > 0 { div_ceil(all, div_ceil(all, most)) } else { 0 };
        while outputs > 0 {
            self.pieces = if pieces > 1 { outputs } else { 1 };
            if self.fill(div(outputs, self.pieces), limit) {
                return true;
            }
            outputs -= 1;
        }
        self.groups = 0;
        false
    }

    /// Returns what is issued for a line of output.
    fn cost_of_sets(&self) -> usize {
        let picks = |set: &Set| self.picks_of(set.windows) * set.outputs;
        self.cost_of(self.window_count, self.sets().iter().map(picks).sum(), self.set_count)
    }

    /// Returns how many picks make a register from so many windows.
    fn picks_of(&self, windows: usize) -> usize {
        if self.register.from_two {
            (windows - 1).max(1)
        } else {
            windows
        }
    }

    /// Returns what is issued for a line of output if a turn takes so many windows and picks. Two half-line registers
    /// are issued in the time of a whole one.
    pub(super) fn cost_of(&self, windows: usize, picks: usize, sets: usize) -> usize {
        let Register { bytes, from_two, .. } = self.register;
        let (lanes, share) = if from_two { (1, bytes) } else { (bytes / LANE_BYTES, LINE_BYTES) };
        let store = if self.fills_registers() { STORE_COST } else { 2 * STORE_COST };
        let issued =
            windows * lanes * LOAD_COST + picks * PICK_COST + self.registers * self.pieces * store;
        // Further sets read the rows again.
        let passes = if sets > 1 { STORE_COST } else { 0 };
        passes + (share * issued).checked_div(self.bytes() * self.pieces).unwrap_or(usize::MAX / 2)
    }

    /// Returns how many windows a set of some registers of each piece has at least, if these are filled.
    fn least_windows(&self, registers: usize) -> usize {
        let Self { group, pieces, apart, register, .. } = *self;
        let Group { unit, units, from, .. } = group;
        let bytes = register.window.min(self.bytes());
        if units > 1 {
            let (step, window) = (group.apart.unsigned_abs(), register.window);
            // No window reaches from one group to the next.
            if step >= unit && from.unsigned_abs() >= step * (units - 1) + unit + window {
                let (whole, rest) = div_rem(window, step);
                let of_group = div_ceil(group.bytes(), whole * unit + rest.min(unit));
                return (registers * div(bytes, group.bytes()) * of_group).max(1);
            }
            // At least half of the units in a register belong to one group.
            let together = div_ceil(div(bytes, unit), 2);
            return if step >= window { units.min(together).max(1) } else { 1 };
        }
        let (rows, from) = (div_ceil(bytes, unit), from.unsigned_abs());
        let beside = if apart == unit.cast_signed() { pieces } else { 1 };
        // No window within the reach of a lane lies in a gap.
        if self.is_dense(pieces)
            && unit.max(from.saturating_sub(beside * unit) + 1) <= register.window
        {
            let last = bytes - (rows - 1) * unit;
            div_ceil((rows - 1) * from + (beside - 1) * unit + last, register.window)
        } else {
            rows
        }
    }

    /// Fills all sets, each with `registers` registers of a piece. Returns whether they have room and cost less than
    /// the limit. Most failures are detected before anything is filled.
    fn fill(&mut self, registers: usize, limit: usize) -> bool {
        let (windows, sets) = (self.least_windows(registers), div_ceil(self.registers, registers));
        // The last set may have fewer registers.
        let full = div(self.registers, registers);
        let (outputs, all) = (self.pieces * registers, self.pieces * registers * full);
        let has_room = windows <= most_windows(outputs) && windows * all <= MAX_PICKS;
        if !has_room || self.cost_of(windows * full, self.picks_of(windows) * all, sets) >= limit {
            return false;
        }
        (self.set_count, self.window_count, self.pick_count, self.high) = (0, 0, 0, 0);
        let mut first = 0;
        while first < self.registers {
            let some = registers.min(self.registers - first);
            let Some(set) = self.fill_set(first, some) else { return false };
            let Some(slot) = self.sets.get_mut(self.set_count) else { return false };
            *slot = set;
            self.set_count += 1;
            first += some;
        }
        self.cost = self.cost_of_sets();
        self.cost < limit
    }

    /// Returns whether so many pieces leave only small gaps in their rows.
    pub(super) fn is_dense(&self, pieces: usize) -> bool {
        let wanted = 2 * pieces * self.group.unit;
        self.group.from.unsigned_abs() <= wanted.max(self.register.window)
    }
}

/// Returns the most windows of a set of so many outputs.
pub(super) fn most_windows(outputs: usize) -> usize {
    MAX_WINDOWS_OF_SET.get(outputs.wrapping_sub(1)).copied().unwrap_or(0)
}

/// Returns the smallest numbers of groups and registers that make whole lines.
fn turn_of_lines(group: &Group, register: Register) -> (usize, usize) {
    // Odd parts and powers of two are independent of each other.
    let lines = group.bytes() >> group.bytes().trailing_zeros().min(LINE_BYTES.trailing_zeros());
    let registers = div(lines * LINE_BYTES, register.bytes);
    if registers > MAX_REGISTERS {
        return (0, 0);
    }
    (div(lines * LINE_BYTES, group.bytes()), registers)
}

/// Returns how many groups a turn takes, in how many registers: the fewest that are filled nearly as well as any.
fn best_turn(group: &Group, register: Register) -> (usize, usize) {
    let mut best = (0, 1);
    // Small registers may need to be more for the longest groups.
    for registers in 1..=4.max(2 * LINE_BYTES / register.bytes.max(1)) {
        let groups = registers * register.bytes / group.bytes().max(1);
        // A further register must be worth a tenth.
        if groups * best.1 * 10 > best.0 * registers * 11 {
            best = (groups, registers);
        }
    }
    best
}
