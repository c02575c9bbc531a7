//! Shuffle programs: each register of the output is picked from a few windows of the input. A program is made only from
//! where each byte comes from, so one kernel (`shuffle.rs`) takes short runs apart and puts them together, picks every
//! second unit, repeats units, and reverses rows.
//!
//! The idea: registers that need bytes of the same windows form a set, whose windows are loaded once. If pieces lie
//! side by side in their rows, these are the registers at the same place of all pieces; if one piece is put together
//! from several places, they are registers that follow each other.

use super::level::Kernels;
use super::machine::{CHEAP_LINE, LOAD_COST, PICK_COST, STORE_COST};
use super::shuffle::{none, Turns};
use super::vector::{Vector, LANE_BYTES, LINE_BYTES};
use crate::math::{div, div_ceil};
use core::mem::MaybeUninit;

/// The most picks, windows and sets of a program, and the most registers of a turn.
const MAX_PICKS: usize = 40;
const MAX_WINDOWS: usize = 32;
pub(super) const MAX_SETS: usize = 16;
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

/// Walks over the output in runs that are contiguous in the input.
struct Cursor {
    group: Group,
    /// The next byte's place in its unit, the unit's in its group, and where the group and the unit begin in the input.
    within: usize,
    unit: usize,
    group_begin: isize,
    begin: isize,
}

impl Cursor {
    /// Returns a cursor at a byte of the output.
    fn new(group: Group, byte: usize, base: isize) -> Self {
        let (groups, rest) = (byte / group.bytes().max(1), byte % group.bytes().max(1));
        let (unit, within) = (rest / group.unit.max(1), rest % group.unit.max(1));
        let group_begin = base.wrapping_add(group.from.wrapping_mul(groups.cast_signed()));
        let begin = group_begin.wrapping_add(group.apart.wrapping_mul(unit.cast_signed()));
        Self { group, within, unit, group_begin, begin }
    }

    /// Returns where the next byte comes from, and how many are contiguous there.
    fn here(&self) -> (isize, usize) {
        (self.begin.wrapping_add(self.within.cast_signed()), self.group.unit - self.within)
    }

    /// Advances by some bytes, at most those that are contiguous.
    fn go_on(&mut self, bytes: usize) {
        self.within += bytes;
        if self.within < self.group.unit {
            return;
        }
        (self.within, self.unit) = (0, self.unit + 1);
        self.begin = self.begin.wrapping_add(self.group.apart);
        if self.unit == self.group.units {
            self.unit = 0;
            self.group_begin = self.group_begin.wrapping_add(self.group.from);
            self.begin = self.group_begin;
        }
    }
}

/// What programs need to know of a level's registers.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub bytes: usize,
    /// Bytes from which a pick can choose; 0 if the level cannot pick.
    pub window: usize,
    from_two: bool,
    /// The kernels that run programs, through the caches and past them; the latter if a register is a line.
    pub shuffle: [unsafe fn(&Turns<'_>); 2],
}

impl Register {
    pub(super) const fn of<V: Vector>(shuffle: [unsafe fn(&Turns<'_>); 2]) -> Self {
        Self { bytes: V::BYTES, window: V::WINDOW_BYTES, from_two: V::PICKS_FROM_TWO, shuffle }
    }
}

/// What a register takes from a window: the index of each byte there.
///
/// Where windows are whole registers, a pick chooses from two of them: from what has been made so far (or, with the
/// second window, from the first one) and from another window, whose bytes are numbered after those. The first window's
/// own pick is for sets of one window. Where windows are lanes, bytes that are not taken have an index that yields 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Pick(pub [u8; LINE_BYTES]);

impl Pick {
    /// Takes nothing.
    pub(super) const NONE: Self = Self([NOTHING; LINE_BYTES]);
}

/// The index of a byte that is not taken.
const NOTHING: u8 = 0x80;

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
    pick_count: usize,
    /// The end of the highest window, counted likewise.
    pub high: isize,
    pub register: Register,
}

impl Program {
    pub(super) const NONE: Self = Self {
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
        register: Register::of::<u128>([none; 2]),
    };

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

    /// Makes the cheapest program for these groups, preferring turns of whole lines. Returns whether there is one.
    #[inline(never)]
    pub(super) fn make(
        &mut self,
        group: Group,
        (pieces, apart): (usize, isize),
        kernels: &Kernels,
        past: bool,
    ) -> bool {
        (self.group, self.requested, self.apart) = (group, pieces, apart);
        let words = if !past && self.make_words(kernels) { self.cost() } else { usize::MAX };
        let is_made = self.make_sets(pieces, kernels, past);
        if words < usize::MAX && !(is_made && self.cost() <= words) {
            return self.make_words(kernels);
        }
        is_made
    }

    /// Makes a program that picks bytes, for as many pieces together as possible, or as many registers of one as pay.
    fn make_sets(&mut self, pieces: usize, kernels: &Kernels, past: bool) -> bool {
        let (group, register) = (self.group, kernels.register);
        (self.groups, self.register, self.picks_words) = (0, register, false);
        if register.window == 0 || group.bytes() == 0 {
            return false;
        }
        let (lines, best) = (turn_of_lines(&group, register), best_turn(&group, register));
        let by_lines = self.make_turn(lines, pieces);
        let cost = if by_lines { self.cost() } else { usize::MAX };
        if by_lines && (past || cost <= CHEAP_LINE || best == lines) {
            return true;
        }
        if self.make_turn(best, pieces) && self.cost() < cost {
            return true;
        }
        (by_lines && self.make_turn(lines, pieces))
            || self.make_turn((div(register.bytes, group.bytes()), 1), pieces)
    }

    /// Makes a program whose turns have this many groups and registers.
    fn make_turn(&mut self, (groups, registers): (usize, usize), pieces: usize) -> bool {
        (self.groups, self.registers) = (groups, registers);
        let is_made =
            groups > 0 && if pieces > 1 { self.make_pieces(pieces) } else { self.make_one() };
        if !is_made {
            self.groups = 0;
        }
        is_made
    }

    /// Returns what is issued for a line of output. Two half-line registers are issued in the time of a whole one.
    pub(super) fn cost(&self) -> usize {
        let Register { bytes, from_two, .. } = self.register;
        let (lanes, share) = if from_two { (1, bytes) } else { (bytes / LANE_BYTES, LINE_BYTES) };
        let picks = |set: &Set| {
            let of = |output: usize| {
                let (first, last) = self.windows_of(set, output);
                if from_two {
                    (last - first).max(1)
                } else {
                    set.windows
                }
            };
            (0..set.outputs).map(of).sum::<usize>()
        };
        let store = if self.fills_registers() { STORE_COST } else { 2 * STORE_COST };
        let issued = self.window_count * lanes * LOAD_COST
            + self.sets().iter().map(picks).sum::<usize>() * PICK_COST
            + self.registers * self.pieces * store;
        // Further sets read the rows again.
        let passes = if self.set_count > 1 { STORE_COST } else { 0 };
        passes + (share * issued).checked_div(self.bytes() * self.pieces).unwrap_or(usize::MAX / 2)
    }

    /// Makes as many pieces together as a set has room for, in parts of about equal size. Long units share few windows,
    /// so pieces of these are made one at a time.
    fn make_pieces(&mut self, pieces: usize) -> bool {
        let most = if self.group.unit < LINE_BYTES / 2 { MAX_OUTPUTS } else { 1 };
        let mut together = div_ceil(pieces, div_ceil(pieces, most));
        while together > 0 {
            self.pieces = together;
            if self.fill(1) {
                return true;
            }
            together -= 1;
        }
        false
    }

    /// Makes one piece, of which several registers share windows if the units of a group come from several places.
    fn make_one(&mut self) -> bool {
        self.pieces = 1;
        let together = if self.group.units > 1 { self.registers.min(MAX_OUTPUTS) } else { 1 };
        self.fill(together) || (together > 1 && self.fill(1))
    }

    /// Fills all sets, each with `registers` registers of a piece.
    fn fill(&mut self, registers: usize) -> bool {
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
        true
    }

    /// Fills a set with one register of every piece, or with several registers of one.
    fn fill_set(&mut self, first: usize, registers: usize) -> Option<Set> {
        let register = self.register;
        let outputs = self.pieces * registers;
        let mut set = Set {
            outputs,
            windows: 0,
            register: first,
            first_window: self.window_count,
            first_pick: self.pick_count,
        };
        for lane in 0..div(register.bytes, register.window) {
            let mut windows = 0;
            for output in 0..outputs {
                windows = self.fill_lane(&mut set, output, (lane, windows))?;
            }
        }
        self.window_count += set.windows;
        self.pick_count += set.windows * outputs;
        if register.from_two && set.windows > 1 {
            self.pair(&set);
        }
        Some(set)
    }

    /// Fills the picks of a lane of an output, given how many windows of the lane are known; returns how many are then.
    fn fill_lane(
        &mut self,
        set: &mut Set,
        output: usize,
        (lane, mut windows): (usize, usize),
    ) -> Option<usize> {
        let register = self.register;
        let (number, piece) =
            if self.pieces > 1 { (set.register, output) } else { (set.register + output, 0) };
        let begin = number * register.bytes + lane * register.window;
        let end = (begin + register.window).min(self.bytes());
        let mut cursor =
            Cursor::new(self.group, begin, self.apart.wrapping_mul(piece.cast_signed()));
        let (mut at, mut window) = (begin, 0);
        while at < end {
            let (from, len) = cursor.here();
            // Usually the window of the previous byte.
            let mut inside = self.inside(set, window, lane, from, windows);
            if inside >= register.window {
                window = (0..windows)
                    .find(|window| self.inside(set, *window, lane, from, windows) < register.window)
                    .unwrap_or(windows);
                if window == windows {
                    let begin = self.window_of(from, (begin, end));
                    self.add_window(set, (lane, windows), begin)?;
                    windows += 1;
                }
                inside = self.inside(set, window, lane, from, windows);
            }
            let some = len.min(end - at).min(register.window - inside);
            // SAFETY: the picks of all windows of the set have been written.
            let Pick(index) = unsafe {
                self.picks
                    .get_mut(set.first_pick + window * set.outputs + output)?
                    .assume_init_mut()
            };
            let place = lane * register.window + at - begin;
            for (byte, slot) in index.iter_mut().skip(place).take(some).enumerate() {
                *slot = (inside + byte).to_le_bytes()[0];
            }
            cursor.go_on(some);
            at += some;
        }
        Some(windows)
    }

    /// Returns where the window begins that a byte of the input is read from. If rows leave no gaps, windows follow
    /// each other from the lowest byte of the lane on, so that pieces share them; otherwise it begins at the byte.
    fn window_of(&self, from: isize, (begin, end): (usize, usize)) -> isize {
        let Self { group, pieces, apart, register, .. } = *self;
        let wanted = 2 * pieces * group.unit;
        if group.units > 1 || group.from.unsigned_abs() > wanted.max(register.window) {
            return from;
        }
        // If rows go backwards, the last unit is the lowest; and where units overlap, one may begin before this byte.
        let first = Cursor::new(group, begin, 0);
        let lowest = if group.from < 0 {
            Cursor::new(group, end - 1, 0).begin
        } else {
            first.here().0.min(first.begin.wrapping_add(group.from))
        };
        let lowest = lowest.wrapping_add(apart.min(0).wrapping_mul(pieces.cast_signed() - 1));
        let window = register.window.cast_signed();
        lowest.wrapping_add(
            from.wrapping_sub(lowest).checked_div_euclid(window).unwrap_or(0).wrapping_mul(window),
        )
    }

    /// Returns how far a byte of the input lies behind a window's start: huge if before it, or if that is not known.
    fn inside(&self, set: &Set, window: usize, lane: usize, from: isize, windows: usize) -> usize {
        let known = self.windows.get(set.first_window + window).filter(|_| window < windows);
        let begin = known.and_then(|window| window.get(lane));
        begin.map_or(usize::MAX, |begin| from.wrapping_sub(*begin).cast_unsigned())
    }

    /// Adds a window to a lane, and to the set if no other lane has as many.
    fn add_window(
        &mut self,
        set: &mut Set,
        (lane, windows): (usize, usize),
        from: isize,
    ) -> Option<()> {
        let is_new = windows == set.windows;
        if is_new {
            set.windows += 1;
            let most = MAX_WINDOWS_OF_SET.get(set.outputs.wrapping_sub(1)).copied().unwrap_or(0);
            if set.windows > most {
                return None;
            }
            let first = set.first_pick + windows * set.outputs;
            for pick in self.picks.get_mut(first..first + set.outputs)? {
                pick.write(Pick::NONE);
            }
        }
        // Lanes that need no window of their own read what another one does.
        let slot = self.windows.get_mut(set.first_window + windows)?;
        slot.iter_mut().skip(if is_new { 0 } else { lane }).for_each(|slot| *slot = from);
        self.high = self.high.max(from.wrapping_add(self.register.window.cast_signed()));
        Some(())
    }

    /// Turns picks from one window into picks from two: the first two windows, or what has been made and another one.
    fn pair(&mut self, set: &Set) {
        let end = set.first_pick + set.windows * set.outputs;
        let Some(picks) = self.picks.get_mut(set.first_pick..end) else { return };
        let (first, rest) = picks.split_at_mut(set.outputs.min(picks.len()));
        for (number, picks) in rest.chunks_exact_mut(set.outputs.max(1)).enumerate() {
            for (pick, first) in picks.iter_mut().zip(&mut *first) {
                // SAFETY: all picks of the set have been written.
                let (Pick(index), Pick(first)) =
                    unsafe { (pick.assume_init_mut(), first.assume_init_mut()) };
                for ((slot, first), own) in index.iter_mut().zip(first).zip(0u8..) {
                    *slot = match *slot {
                        NOTHING if number == 0 => *first & 63,
                        NOTHING => own,
                        taken => taken | 64,
                    };
                }
            }
        }
    }
}

/// Returns the smallest numbers of groups and registers that make whole lines.
fn turn_of_lines(group: &Group, register: Register) -> (usize, usize) {
    let line = register.bytes.max(LINE_BYTES);
    let most = div(MAX_REGISTERS * register.bytes, line);
    let lines = (1..=most).find(|lines| (lines * line).is_multiple_of(group.bytes())).unwrap_or(0);
    (div(lines * line, group.bytes()), div(lines * line, register.bytes))
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
