//! Shuffle programs: each register of the output is picked from a few windows of the input. A program follows from
//! nothing but where each byte comes from, so one kernel (`shuffle.rs`) takes short runs apart and puts them together,
//! picks every second unit, repeats units, and reverses rows.
//!
//! Three channels of 8-bit pixels, r g b r g b …, go to three pieces. Registers and windows have 16 bytes here. The same
//! three windows hold what the first register of each piece needs, so these three registers are a *set*, whose windows
//! are loaded only once. 16 pixels are a *turn*: groups of one byte, for one register of each piece.
//!
//! ```text
//! input             window 0          window 1          window 2
//!                   rgbrgbrgbrgbrgbr  gbrgbrgbrgbrgbrg  brgbrgbrgbrgbrgb
//! pick from it      0369cf..........  ......258be.....  ...........147ad    indices within the window, in hexadecimal
//!                   rrrrrr..........  ......rrrrr.....  ...........rrrrr    what they yield; a dot yields 0
//! register of r     rrrrrrrrrrrrrrrr                                        all of them together
//! ```
//!
//! The registers of g and b come from the same windows by other indices. If one piece is put together from several
//! places (units of 4 bytes from two rows that are far apart, say), a set has registers of that piece that follow each
//! other. A turn has as many groups as fill its registers well; the kernel repeats it along the input.
//!
//! Where windows are lanes, each lane of a register has windows of its own. Registers of one piece that share a set
//! have their first lanes side by side in the output, and then all second lanes, so that a lane's windows serve them all.
//!
//! Where a window is as large as a register, a pick chooses from two windows at once (`picks.rs`). Units of a few dwords
//! have programs of a simpler kind (`dwords.rs`): a window for each unit, and the same picks for any number of pieces.
//! Four planes need fewer picks (`squares.rs`).

mod build;
mod dwords;
mod picks;
mod squares;

use super::groups::Groups;
use super::vector::{Vector, LANE_BYTES, LINE_BYTES};
use core::mem::MaybeUninit;
use core::slice;
pub(super) use dwords::{share_of, Share};
pub(super) use picks::{index_window, Pick};
pub(super) use squares::is_square;

/// The most picks, windows and sets of a program, and the most registers of a turn.
const MAX_PICKS: usize = 40;
const MAX_WINDOWS: usize = 32;
const MAX_SETS: usize = 16;
const MAX_REGISTERS: usize = 16;
/// The most outputs of a set, and the most windows of sets of one output, of two, and so on: the kernel has a loop for
/// each number from that of the outputs on. A loop keeps its indices in registers, of which there are 32.
pub(super) const MAX_OUTPUTS: usize = 5;
const MAX_WINDOWS_OF_SET: [usize; MAX_OUTPUTS] = [8, 6, 6, 5, 5];
/// The most lanes whose windows begin at places of their own.
const MAX_WINDOW_LANES: usize = 2;

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
    pub(super) fn single(unit: usize, from: isize) -> Self {
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

/// What a program is to make: groups for some pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    pub group: Group,
    /// The number of pieces, and bytes of input from the groups of one piece to those of the next.
    pub pieces: usize,
    pub apart: isize,
}

/// The kernel that finds what a pick takes from a window: [`index_window`].
pub(super) type IndexWindow = unsafe fn(&[i32; LINE_BYTES], i32, &mut [u8], &mut [u8; LINE_BYTES]);

/// What programs need to know of a level's registers.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub bytes: usize,
    /// Bytes from which a pick can choose; 0 if the level cannot pick.
    pub window: usize,
    /// Whether a pick chooses from two windows, each of which is as large as a register.
    pub from_two: bool,
    /// The kernel that runs programs; it streams if the flag is set.
    pub shuffle: unsafe fn(&Groups<'_>, bool),
    pub index_window: IndexWindow,
}

impl Register {
    pub(super) const fn new<V: Vector>(
        shuffle: unsafe fn(&Groups<'_>, bool),
        index_window: IndexWindow,
    ) -> Self {
        assert!(V::WINDOW_BYTES == 0 || V::BYTES <= MAX_WINDOW_LANES * V::WINDOW_BYTES);
        assert!(!V::PICKS_FROM_TWO || V::WINDOW_BYTES == V::BYTES);
        Self {
            bytes: V::BYTES,
            window: V::WINDOW_BYTES,
            from_two: V::PICKS_FROM_TWO,
            shuffle,
            index_window,
        }
    }
}

/// The registers of a level: of programs that pick bytes, and of programs that pick dwords.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    pub bytes: Register,
    pub dwords: Register,
}

/// Registers that are made from the same windows: one for each output. The picks from the first window come first, then
/// those from the next.
#[derive(Clone, Copy)]
pub(super) struct Set {
    pub outputs: usize,
    pub windows: usize,
    /// The number of its first register in the turn.
    pub register: usize,
    first_window: usize,
    first_pick: usize,
}

/// Where a window begins, by lane, in bytes from the start of the turn.
pub(super) type Window = [isize; MAX_WINDOW_LANES];

/// How many groups a turn takes, and how many registers of each piece it fills with them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Turn {
    groups: usize,
    registers: usize,
}

/// The sets of a turn, which has as many registers as whole groups fill well.
///
/// A program is built in place (`build.rs`), because it is too large to be moved, and is seen by others only once it is
/// whole. Then `turn.groups` and `set_count` are at least 1, and its sets, and all their windows and picks, have been
/// written.
pub(super) struct Program {
    /// Whether it is whole.
    is_made: bool,
    pub(super) pattern: Pattern,
    /// How many pieces share the sets.
    together: usize,
    /// Whether dwords are picked: each output of the only set has a share of the windows, and picks are the same for all
    /// pieces.
    picks_dwords: bool,
    turn: Turn,
    sets: [MaybeUninit<Set>; MAX_SETS],
    set_count: usize,
    windows: [MaybeUninit<Window>; MAX_WINDOWS],
    window_count: usize,
    picks: [MaybeUninit<Pick>; MAX_PICKS],
    pick_count: usize,
    /// The end of the highest window, in bytes from the start of the turn.
    pub(super) high: isize,
    pub(super) register: Register,
    /// What is issued for a line of output, as `cost.rs` counts.
    pub(super) cost: usize,
}

impl Program {
    pub(super) fn group(&self) -> &Group {
        &self.pattern.group
    }

    /// Returns how many groups a turn makes for each piece.
    pub(super) fn turn_groups(&self) -> usize {
        self.turn.groups
    }

    /// Returns the bytes of output that a turn makes for each piece.
    pub(super) fn turn_bytes(&self) -> usize {
        self.turn.groups * self.group().bytes()
    }

    /// Returns the bytes of input from one turn to the next.
    pub(super) fn turn_from(&self) -> isize {
        self.group().from.wrapping_mul(self.turn.groups.cast_signed())
    }

    /// Returns whether a turn fills all its registers.
    pub(super) fn fills_registers(&self) -> bool {
        self.turn_bytes() == self.turn.registers * self.register.bytes
    }

    /// Returns the number of groups in the fewest turns that make whole lines, if they fill their registers.
    pub(super) fn groups_of_lines(&self) -> usize {
        self.turn.groups
            * (LINE_BYTES >> self.turn_bytes().trailing_zeros().min(LINE_BYTES.trailing_zeros()))
    }

    pub(super) fn sets(&self) -> &[Set] {
        debug_assert!(self.set_count <= MAX_SETS, "{} sets", self.set_count);
        // SAFETY: that many sets have been written.
        unsafe { slice::from_raw_parts(self.sets.as_ptr().cast(), self.set_count) }
    }

    /// Returns how many pieces share the sets of the program.
    pub(super) fn pieces(&self) -> usize {
        self.together
    }

    /// Returns how many of some targets a call of the kernel has: all of them, if pieces share no sets.
    pub(super) fn targets_of_call(&self, targets: usize) -> usize {
        if self.picks_dwords {
            targets
        } else {
            self.together
        }
    }

    /// Returns the windows of a set.
    ///
    /// # Safety
    /// The set must be one of the program's, with `R` windows.
    #[inline(always)]
    pub(super) unsafe fn windows_of<const R: usize>(&self, set: &Set) -> [Window; R] {
        let first = set.first_window;
        debug_assert!(set.windows == R && first + R <= self.window_count);
        // SAFETY: the program has that many windows.
        unsafe { *self.windows.as_ptr().wrapping_add(first).cast() }
    }

    /// Returns the picks of a set: those from its first window for each output, then those from the next window.
    ///
    /// # Safety
    /// The set must be one of the program's, with `E` outputs and `R` windows.
    #[inline(always)]
    pub(super) unsafe fn picks_of<const E: usize, const R: usize>(
        &self,
        set: &Set,
    ) -> &[[Pick; E]; R] {
        let first = set.first_pick;
        debug_assert!(set.outputs == E && set.windows == R);
        debug_assert!(first + E * R <= self.pick_count);
        // SAFETY: the program has that many picks, and all of them have been written.
        unsafe { &*self.picks.as_ptr().wrapping_add(first).cast() }
    }
}

/// Room for a program, and the program in it, if there is one.
pub(super) struct ProgramSlot(Program);

impl ProgramSlot {
    /// Returns an empty slot; the register only fills the room.
    #[inline(always)] // it is too large to return cheaply
    pub(super) fn new(register: Register) -> Self {
        Self(Program {
            is_made: false,
            pattern: Pattern { group: Group::single(0, 0), pieces: 0, apart: 0 },
            together: 0,
            picks_dwords: false,
            turn: Turn { groups: 0, registers: 0 },
            sets: [const { MaybeUninit::uninit() }; MAX_SETS],
            set_count: 0,
            windows: [const { MaybeUninit::uninit() }; MAX_WINDOWS],
            window_count: 0,
            picks: [const { MaybeUninit::uninit() }; MAX_PICKS],
            pick_count: 0,
            high: 0,
            register,
            cost: 0,
        })
    }

    /// Returns the program that was made last, unless none was found.
    pub(super) fn get(&self) -> Option<&Program> {
        self.0.is_made.then_some(&self.0)
    }

    /// Forgets the program.
    pub(super) fn clear(&mut self) {
        self.0.is_made = false;
    }
}

#[cfg(test)]
mod tests {
    use super::{Pattern, Program};

    #[allow(clippy::cast_possible_wrap)] // of small numbers
    impl Program {
        /// Returns the bytes that the registers of a turn have beyond its groups.
        pub(in super::super) fn unfilled_bytes(&self) -> usize {
            self.turn.registers * self.register.bytes - self.turn_bytes()
        }

        /// Checks that no window begins before the first byte of a turn's groups.
        pub(in super::super) fn check_windows(&self) {
            let Pattern { group, apart, .. } = self.pattern;
            let units = (0..self.turn.groups)
                .flat_map(|g| (0..group.units).map(move |u| (g as isize, u as isize)));
            let begins = units.map(|(g, u)| g * group.from + u * group.apart);
            let first = begins.min().unwrap() + apart.min(0) * (self.together as isize - 1);
            for set in self.sets() {
                for window in self.windows.iter().skip(set.first_window).take(set.windows) {
                    // SAFETY: the windows of sets have been written.
                    let window = unsafe { window.assume_init_ref() };
                    assert!(window.iter().all(|at| *at >= first), "{window:?} {first} {group:?}");
                }
            }
        }
    }
}
