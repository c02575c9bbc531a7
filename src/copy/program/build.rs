//! How a program is built: turns are tried, and the cheapest that has room for its sets is kept.
//!
//! Registers that need bytes of the same windows share a set. If pieces lie side by side in their rows, these are the
//! registers at the same place of all pieces; if one piece is put together from several places, they are registers that
//! follow each other.

use super::picks::SetDraft;
use super::{
    Group, Pattern, Program, ProgramSlot, Register, Registers, Set, Turn, LANE_BYTES, LINE_BYTES,
    MAX_OUTPUTS, MAX_PICKS, MAX_REGISTERS, MAX_WINDOWS_OF_SET,
};
use crate::copy::machine_constants::{CHEAP_LINE, LOAD_COST, PICK_COST, STORE_COST};
use crate::math::{div, div_ceil, div_rem};

/// What is issued for a turn.
pub(super) struct Issued {
    pub windows: usize,
    pub picks: usize,
    pub sets: usize,
}

impl ProgramSlot {
    /// Makes the cheapest program for a pattern, preferring turns that fill their registers, and returns it. Returns
    /// `None`, and forgets the program before, if none costs less than the limit, which is what the best other method
    /// costs.
    pub(in crate::copy) fn make(
        &mut self,
        pattern: Pattern,
        registers: &Registers,
        streams: bool,
        limit: usize,
    ) -> Option<&Program> {
        let Self(program) = self;
        program.pattern = pattern;
        program.is_made = program.build(registers, streams, limit);
        self.get()
    }
}

impl Program {
    /// Builds the cheapest program. Returns whether there is one that costs less than the limit.
    fn build(&mut self, registers: &Registers, streams: bool, limit: usize) -> bool {
        let pattern = self.pattern;
        if pattern.group.bytes() == 0 {
            return false;
        }
        let turn = if streams { None } else { Turn::of_dwords(&pattern.group, &registers.dwords) };
        let dwords = turn.map_or(usize::MAX, |turn| {
            turn.cost(&pattern.group, &registers.dwords, 1, &turn.issued_for_dwords())
        });
        if self.build_bytes(registers.bytes, streams, limit.min(dwords.saturating_add(1))) {
            return true;
        }
        match turn {
            Some(turn) if dwords < limit => {
                self.build_dwords(turn, registers.dwords);
                self.cost = dwords;
                true
            }
            _ => false,
        }
    }

    /// Builds a program that picks bytes, for as many pieces together as possible, or as many registers of one as pay.
    fn build_bytes(&mut self, register: Register, streams: bool, limit: usize) -> bool {
        self.register = register;
        self.picks_dwords = false;
        if register.window == 0 {
            return false;
        }
        let group = self.pattern.group;
        let full = Turn::full(&group, &register);
        let best = Turn::best(&group, &register);
        let few = Turn { groups: div(register.bytes, group.bytes()), registers: 1 };
        let is_full = full.is_some_and(|turn| self.build_turn(turn, limit));
        let cost = if is_full { self.cost } else { limit };
        if is_full && (streams || cost <= CHEAP_LINE || full == Some(best)) {
            return true;
        }
        let last = if is_full { full } else { Some(few) };
        self.build_turn(best, cost) || last.is_some_and(|turn| self.build_turn(turn, limit))
    }

    /// Builds a program with these turns, if it costs less than the limit. As many pieces share a set as it has room
    /// for, in sets of about equal size, unless units are so long that they share few windows; or, if one piece is put
    /// together from several places, as many of its registers.
    fn build_turn(&mut self, turn: Turn, limit: usize) -> bool {
        self.turn = turn;
        if turn.groups == 0 {
            return false;
        }
        let Pattern { group, pieces, .. } = self.pattern;
        let do_share = if pieces > 1 { group.unit < LINE_BYTES / 2 } else { group.units > 1 };
        let most = if do_share { MAX_OUTPUTS } else { 1 };
        let all = if pieces > 1 { pieces } else { turn.registers };
        let outputs = div_ceil(all, div_ceil(all, most));
        (1..=outputs).rev().any(|outputs| {
            let registers = if pieces > 1 { 1 } else { outputs };
            self.together = if pieces > 1 { outputs } else { 1 };
            self.fill(registers, limit)
        })
    }

    /// Fills all sets, each with `registers` registers of a piece. Returns whether they have room and cost less than
    /// the limit. Most failures are detected before anything is filled.
    fn fill(&mut self, registers: usize, limit: usize) -> bool {
        let windows = self.least_windows(registers);
        // The last set may have fewer registers.
        let full = div(self.turn.registers, registers);
        let outputs = self.together * registers;
        let least = Issued {
            windows: windows * full,
            picks: self.register.picks_of(windows) * outputs * full,
            sets: div_ceil(self.turn.registers, registers),
        };
        let has_room = windows <= most_windows(outputs) && windows * outputs * full <= MAX_PICKS;
        if !has_room || self.cost_of(&least) >= limit {
            return false;
        }
        self.set_count = 0;
        self.window_count = 0;
        self.pick_count = 0;
        self.high = 0;
        let mut first = 0;
        while first < self.turn.registers {
            let some = registers.min(self.turn.registers - first);
            let Some(set) = SetDraft::fill(self, first, some) else { return false };
            let Some(slot) = self.sets.get_mut(self.set_count) else { return false };
            slot.write(set);
            self.set_count += 1;
            first += some;
        }
        let picks = |set: &Set| self.register.picks_of(set.windows) * set.outputs;
        self.cost = self.cost_of(&Issued {
            windows: self.window_count,
            picks: self.sets().iter().map(picks).sum(),
            sets: self.set_count,
        });
        self.cost < limit
    }

    fn cost_of(&self, issued: &Issued) -> usize {
        // The kernel is called again for further pieces, and reads the groups again.
        let calls = if self.together < self.pattern.pieces { STORE_COST } else { 0 };
        calls + self.turn.cost(self.group(), &self.register, self.together, issued)
    }

    /// Returns how many windows a set of some registers of each piece has at least, if these are filled.
    fn least_windows(&self, registers: usize) -> usize {
        let Pattern { group, apart, .. } = self.pattern;
        let Group { unit, units, from, .. } = group;
        let window = self.register.window;
        let bytes = window.min(self.turn_bytes());
        if units > 1 {
            let step = group.apart.unsigned_abs();
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
        let (groups, from) = (div_ceil(bytes, unit), from.unsigned_abs());
        let beside = if apart == unit.cast_signed() { self.together } else { 1 };
        // No window within the reach of a lane lies in a gap.
        if self.is_dense() && unit.max(from.saturating_sub(beside * unit) + 1) <= window {
            let last = bytes - (groups - 1) * unit;
            div_ceil((groups - 1) * from + (beside - 1) * unit + last, window)
        } else {
            groups
        }
    }

    /// Returns whether the pieces that share sets leave only small gaps between their groups.
    pub(super) fn is_dense(&self) -> bool {
        let wanted = 2 * self.together * self.group().unit;
        self.group().from.unsigned_abs() <= wanted.max(self.register.window)
    }
}

impl Register {
    /// Returns how many picks make a register from so many windows.
    fn picks_of(&self, windows: usize) -> usize {
        if self.from_two {
            (windows - 1).max(1)
        } else {
            windows
        }
    }
}

/// Returns the most windows of a set of so many outputs.
pub(super) fn most_windows(outputs: usize) -> usize {
    MAX_WINDOWS_OF_SET.get(outputs.wrapping_sub(1)).copied().unwrap_or(0)
}

impl Turn {
    /// Returns the fewest groups that fill registers, or some more if their units come from several places; `None` if these
    /// are too many registers.
    pub(super) fn full(group: &Group, register: &Register) -> Option<Self> {
        // Odd factors and powers of two are independent of each other.
        let twos = group.bytes().trailing_zeros().min(register.bytes.trailing_zeros());
        let (groups, registers) = (register.bytes >> twos, group.bytes() >> twos);
        // Windows of as many places have enough for as many registers.
        let more = div(group.units.min(MAX_OUTPUTS), registers).max(1);
        let turn = Self { groups: more * groups, registers: more * registers };
        (turn.registers <= MAX_REGISTERS).then_some(turn)
    }

    /// Returns the fewest registers that whole groups fill nearly as well as any.
    fn best(group: &Group, register: &Register) -> Self {
        let mut best = Self { groups: 0, registers: 1 };
        // Small registers may need to be more for the longest groups.
        for registers in 1..=4.max(2 * LINE_BYTES / register.bytes.max(1)) {
            let groups = registers * register.bytes / group.bytes().max(1);
            // A further register must be worth a tenth.
            if groups * best.registers * 10 > best.groups * registers * 11 {
                best = Self { groups, registers };
            }
        }
        best
    }

    /// Returns what is issued for a line of output. Two half-line registers are issued in the time of a whole one.
    fn cost(
        self,
        group: &Group,
        register: &Register,
        pieces: usize,
        &Issued { windows, picks, sets }: &Issued,
    ) -> usize {
        let Register { bytes, from_two, .. } = *register;
        let (lanes, share) = if from_two { (1, bytes) } else { (bytes / LANE_BYTES, LINE_BYTES) };
        let turn_bytes = self.groups * group.bytes();
        let fills_registers = turn_bytes == self.registers * bytes;
        let store = if fills_registers { STORE_COST } else { 2 * STORE_COST };
        let issued =
            windows * lanes * LOAD_COST + picks * PICK_COST + self.registers * pieces * store;
        // Further sets read the groups again.
        let passes = if sets > 1 { STORE_COST } else { 0 };
        passes + (share * issued).checked_div(turn_bytes * pieces).unwrap_or(usize::MAX / 2)
    }
}
