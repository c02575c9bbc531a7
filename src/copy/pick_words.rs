//! Programs that pick words: units of a few words, each with a window of its own, and every output picked from its
//! share of the windows. The same picks make all pieces, a few turns of each one after the other, so that rows are read
//! in order, only once, and for any number of pieces.
//!
//! # Safety
//! For everything unsafe here: as in `shuffle.rs`.

use super::groups::Groups;
use super::level::Kernels;
use super::machine::TURNS_OF_SET;
use super::opaque::unrolled;
use super::picks::Pick;
use super::program::{Group, Program, Set, MAX_OUTPUTS, MAX_WINDOWS_OF_SET};
use super::vector::{Vector, LINE_BYTES};
use crate::math::{div, div_rem};

/// Bytes of a word.
const WORD_BYTES: usize = 4;

impl Program {
    /// Returns how many targets a call of the kernel has: all of them, if pieces share no sets.
    pub(super) fn together(&self, targets: usize) -> usize {
        if self.picks_words {
            targets
        } else {
            self.pieces
        }
    }

    /// Sets the turn to as few units as fill registers of words. Returns whether there is room for a window for each.
    pub(super) fn set_turn_of_words(&mut self, kernels: &Kernels) -> bool {
        let (Group { unit, units, .. }, register) = (self.group, kernels.words);
        let twos = unit.trailing_zeros().min(register.bytes.trailing_zeros());
        let (windows, outputs) = (register.bytes >> twos, unit >> twos);
        let has_room = windows <= MAX_WINDOWS_OF_SET[0] && outputs <= MAX_OUTPUTS;
        (self.groups, self.registers, self.register) = (windows, outputs, register);
        (self.pieces, self.picks_words) = (1, true);
        register.window > unit && units == 1 && has_room
    }

    /// Returns what it costs to pick words by such a turn.
    pub(super) fn cost_of_words(&self) -> usize {
        let picks = |output| {
            let (first, last) = share_of(output, self.registers, self.groups);
            last - first
        };
        self.cost_of(self.groups, (0..self.registers).map(picks).sum(), 1)
    }

    /// Makes a program that picks words, for which there is room.
    pub(super) fn make_words(&mut self, kernels: &Kernels) {
        self.set_turn_of_words(kernels);
        let (Group { unit, from, .. }, register) = (self.group, self.register);
        (self.set_count, self.window_count, self.high) = (1, self.groups, 0);
        for (number, slot) in (0isize..).zip(self.windows.iter_mut().take(self.groups)) {
            let begin = from.wrapping_mul(number);
            *slot = [begin; 2];
            self.high = self.high.max(begin.wrapping_add(register.bytes.cast_signed()));
        }
        let set = Set { outputs: self.registers, windows: self.groups, ..Set::default() };
        self.sets[0] = set;
        for pick in self.picks.iter_mut().take(set.outputs * set.windows) {
            pick.write(Pick::NONE);
        }
        for output in 0..set.outputs {
            let (first, last) = share_of(output, set.outputs, set.windows);
            for window in first + 1..=last {
                let mut words = [0; LINE_BYTES];
                for (own, slot) in words.iter_mut().step_by(WORD_BYTES).enumerate() {
                    let byte = output * register.bytes + own * WORD_BYTES;
                    let (of, word) = div_rem(byte, unit);
                    // The words of this window are numbered after those of what has been made.
                    let word = match of {
                        _ if of == window => (word + register.bytes) / WORD_BYTES,
                        _ if window == first + 1 => word / WORD_BYTES,
                        _ => own,
                    };
                    *slot = word.to_le_bytes()[0];
                }
                if let Some(slot) = self.picks.get_mut(window * set.outputs + output) {
                    slot.write(Pick(words));
                }
            }
        }
    }
}

/// Returns the first and the last window of an output's share.
#[inline(always)]
fn share_of(output: usize, outputs: usize, windows: usize) -> (usize, usize) {
    (div(output * windows, outputs), div((output + 1) * windows - 1, outputs))
}

/// Runs all turns of a program.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn run<V: Vector>(all: &Groups<'_>) {
    if V::WINDOW_BYTES == 0 {
        return; // there are no programs
    }
    let [set, ..] = all.program.sets() else { return };
    macro_rules! one_of {
        ($($outputs:literal: $($windows:literal)*;)*) => {
            match (set.outputs, set.windows) {
                $($(($outputs, $windows) => turns::<V, $outputs, $windows>(all),)*)*
                _ => {}
            }
        };
    }
    // SAFETY: the program has that many picks; the caller's promise.
    unsafe {
        one_of! {
            1: 2 4 8;
            3: 4 8;
            5: 8;
        }
    }
}

/// Runs turns of `E` outputs, each of which has its share of `R` windows.
#[inline(always)]
#[allow(clippy::indexing_slicing, clippy::needless_range_loop)] // by numbers that the compiler knows
unsafe fn turns<V: Vector, const E: usize, const R: usize>(all: &Groups<'_>) {
    let program = all.program;
    let (from, to) = (program.from(), program.bytes());
    // SAFETY: the program has that many windows and picks; the caller's promise.
    unsafe {
        let picks = &*program.picks.as_ptr().cast::<[[Pick; E]; R]>();
        let index = picks.map(|picks| picks.map(|Pick(index)| V::load(index.as_ptr())));
        let turns = div_rem(all.count, program.groups);
        for number in 0..all.stretches(turns) {
            let (source, begin, count) = all.stretch(number, turns);
            let mut done = 0;
            while done < count {
                let end = (done + TURNS_OF_SET).min(count);
                let mut piece = source.wrapping_offset(from.wrapping_mul(done.cast_signed()));
                for target in all.targets {
                    let mut row = piece;
                    for turn in done..end {
                        let mut loaded = [V::load(row); R];
                        for loaded in loaded.iter_mut().skip(1) {
                            row = row.wrapping_offset(program.group.from);
                            *loaded = V::load(row);
                        }
                        row = row.wrapping_offset(program.group.from);
                        let target = target.wrapping_add(begin + turn * to);
                        unrolled!(e in 0..E, {
                            let (first, last) = share_of(e, E, R);
                            let mut made = loaded[first].pick_two(
                                loaded[first + 1],
                                [index[first][e], index[first + 1][e]],
                            );
                            for r in first + 2..=last {
                                made = made.pick_more(loaded[r], index[r][e]);
                            }
                            made.store(target.wrapping_add(e * V::BYTES));
                        });
                    }
                    piece = piece.wrapping_offset(program.apart);
                }
                done = end;
            }
        }
    }
}
