//! Programs that pick dwords, of 4 bytes: units of a few dwords, each with a window of its own, and every output picked
//! from its share of the windows. The same picks make all pieces, a few turns of each one after the other, so that the
//! input is read in order, only once, and for any number of pieces.
//!
//! Units of 12 bytes, three dwords, that are far apart; a register has eight dwords. Eight units fill three registers:
//!
//! ```text
//! windows      aaa·····  bbb·····  ccc·····  ddd·····  eee·····  fff·····  ggg·····  hhh·····
//! registers    aaabbbcc  cdddeeef  ffggghhh
//! shares       a b c     c d e f   f g h
//! ```

use super::build::Issued;
use super::{
    Group, Pattern, Pick, Program, Register, Set, Turn, LINE_BYTES, MAX_OUTPUTS,
    MAX_WINDOWS_OF_SET, MAX_WINDOW_LANES,
};
use crate::math::{div, div_rem};

pub(super) const DWORD_BYTES: usize = 4;

/// The first and the last window that an output picks from.
#[derive(Clone, Copy)]
pub(in crate::copy) struct Share {
    pub first: usize,
    pub last: usize,
}

/// Returns an output's share of the windows.
#[inline(always)]
pub(in crate::copy) fn share_of(output: usize, outputs: usize, windows: usize) -> Share {
    Share { first: div(output * windows, outputs), last: div((output + 1) * windows - 1, outputs) }
}

impl Turn {
    /// Returns the turn with the fewest units that fill registers of dwords; `None` if dwords cannot be picked, or if
    /// there is no room for a window for each unit.
    pub(super) fn of_dwords(group: &Group, register: &Register) -> Option<Self> {
        let &Group { unit, units, .. } = group;
        let turn = Self::full(group, register)?;
        let has_room = turn.groups <= MAX_WINDOWS_OF_SET[0] && turn.registers <= MAX_OUTPUTS;
        (register.window > unit && units == 1 && has_room).then_some(turn)
    }

    /// Returns what is issued for such a turn.
    pub(super) fn issued_for_dwords(self) -> Issued {
        let picks = |output| {
            let Share { first, last } = share_of(output, self.registers, self.groups);
            last - first
        };
        Issued { windows: self.groups, picks: (0..self.registers).map(picks).sum(), sets: 1 }
    }
}

impl Program {
    /// Builds a program that picks dwords, with a turn that has room.
    pub(super) fn build_dwords(&mut self, turn: Turn, register: Register) {
        let Pattern { group: Group { unit, from, .. }, .. } = self.pattern;
        debug_assert!(unit.is_multiple_of(DWORD_BYTES), "units of {unit} bytes as dwords");
        self.register = register;
        self.picks_dwords = true;
        self.turn = turn;
        self.together = 1;
        self.set_count = 1;
        self.window_count = turn.groups;
        self.pick_count = turn.registers * turn.groups;
        self.high = 0;
        for (number, slot) in (0isize..).zip(self.windows.iter_mut().take(turn.groups)) {
            let begin = from.wrapping_mul(number);
            slot.write([begin; MAX_WINDOW_LANES]);
            self.high = self.high.max(begin.wrapping_add(register.bytes.cast_signed()));
        }
        let whole = Set {
            outputs: turn.registers,
            windows: turn.groups,
            register: 0,
            first_window: 0,
            first_pick: 0,
        };
        let [set, ..] = &mut self.sets;
        set.write(whole);
        for (number, slot) in self.picks.iter_mut().enumerate().take(self.pick_count) {
            let (window, output) = div_rem(number, turn.registers);
            let Share { first, last } = share_of(output, turn.registers, turn.groups);
            slot.write(if first < window && window <= last {
                pick_of(output, window, window == first + 1, unit, register.bytes)
            } else {
                Pick::NONE
            });
        }
    }
}

/// Returns what an output picks from a window and from what has been made before: from the window before, if this is its
/// first pick.
fn pick_of(output: usize, window: usize, is_first: bool, unit: usize, register: usize) -> Pick {
    let mut dwords = [0; LINE_BYTES];
    for (own, slot) in dwords.iter_mut().step_by(DWORD_BYTES).enumerate() {
        let byte = output * register + own * DWORD_BYTES;
        let (from, within) = div_rem(byte, unit);
        // The dwords of this window are numbered after those of what has been made.
        let index = if from == window {
            (within + register) / DWORD_BYTES
        } else if is_first {
            within / DWORD_BYTES
        } else {
            own
        };
        *slot = index.to_le_bytes()[0];
    }
    Pick(dwords)
}
