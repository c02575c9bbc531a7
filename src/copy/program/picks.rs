//! The picks of a program: for each register, which bytes of which windows it takes.

use super::build::most_windows;
use super::squares::{is_square, SIDE};
use super::{Group, Pattern, Program, Set, LINE_BYTES, MAX_WINDOW_LANES};
use crate::math::{div, div_rem};
use core::array::from_fn;

/// What a register takes from a window: the index of each byte there.
///
/// Where windows are lanes, bytes that are not taken have an index that yields 0. Where windows are whole registers, a
/// pick chooses from two of them: from what has been made so far (or, with the second window, from the first one) and
/// from another window, whose bytes are numbered after those. The first window's own pick is for sets of one window.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::copy) struct Pick(pub [u8; LINE_BYTES]);

impl Pick {
    /// Takes nothing.
    pub(super) const NONE: Self = Self([NOTHING; LINE_BYTES]);
}

/// The index of a byte that is not taken.
pub(super) const NOTHING: u8 = 0x80;

/// Where the bytes of a lane come from, in the first piece.
struct Origins {
    bytes: [i32; LINE_BYTES],
    count: usize,
    lowest: i32,
}

impl Origins {
    const NONE: Self = Self { bytes: [0; LINE_BYTES], count: 0, lowest: 0 };

    /// Finds the origins of the lane that begins at a byte of a turn; returns `None` if they are too far apart.
    fn find(&mut self, program: &Program, begin: usize) -> Option<()> {
        self.count = program.turn_bytes().saturating_sub(begin).min(program.register.window);
        self.lowest = i32::MAX;
        let Group { unit, units, apart, from } = *program.group();
        let (mut group, rest) = div_rem(begin, unit * units);
        let (mut number, mut within) = div_rem(rest, unit);
        let mut at = 0;
        while at < self.count {
            let begin = from.wrapping_mul(group.cast_signed()).wrapping_add(within.cast_signed());
            let origin = begin.wrapping_add(apart.wrapping_mul(number.cast_signed()));
            // So close that differences have no overflow.
            let first = i32::try_from(origin).ok().filter(|at| at.unsigned_abs() < 1 << 30)?;
            let slots = self.bytes.iter_mut().take(self.count).skip(at).take(unit - within);
            for (slot, origin) in slots.zip(first..) {
                *slot = origin;
            }
            self.lowest = self.lowest.min(first);
            at += unit - within;
            within = 0;
            number += 1;
            if number == units {
                group += 1;
                number = 0;
            }
        }
        Some(())
    }
}

/// A set whose windows and picks are being filled, one lane of its outputs after the other.
pub(super) struct SetDraft<'a> {
    program: &'a mut Program,
    set: Set,
    lane: usize,
    /// How many windows of the lane are known.
    windows: usize,
    origins: Origins,
}

impl SetDraft<'_> {
    /// Fills a set with one register of every piece, or with several registers of one. Returns `None` if it has too many
    /// windows or picks.
    pub(super) fn fill(program: &mut Program, first: usize, registers: usize) -> Option<Set> {
        let (register, together) = (program.register, program.together);
        let set = Set {
            outputs: together * registers,
            windows: 0,
            register: first,
            first_window: program.window_count,
            first_pick: program.pick_count,
        };
        let mut draft = SetDraft { program, set, lane: 0, windows: 0, origins: Origins::NONE };
        for lane in 0..div(register.bytes, register.window) {
            draft.lane = lane;
            draft.windows = 0;
            for output in 0..set.outputs {
                let (number, piece) = if together > 1 { (0, output) } else { (output, 0) };
                if piece == 0 {
                    // Lanes that follow each other in the output are the same lane of registers that do.
                    let before = (lane * registers + number) * register.window;
                    draft.origins.find(draft.program, first * register.bytes + before)?;
                }
                draft.fill_lane(output, piece)?;
            }
        }
        // The kernel has no loops for fewer windows than outputs, and takes four for a square: other sets have one more.
        let is_other = is_square(set.outputs, SIDE, register.window)
            && (draft.set.windows != SIDE || draft.program.make_square(&draft.set).is_none());
        let least = set.outputs + usize::from(is_other);
        while draft.set.windows < least {
            draft.windows = draft.set.windows;
            draft.add_window(0)?;
        }
        let SetDraft { program, set, .. } = draft;
        program.window_count += set.windows;
        program.pick_count += set.windows * set.outputs;
        if register.from_two && set.windows > 1 {
            program.pair(&set);
        }
        Some(set)
    }

    /// Fills the picks of a lane of an output, and adds the windows that it needs.
    fn fill_lane(&mut self, output: usize, piece: usize) -> Option<()> {
        let width = self.program.register.window;
        let index_window = self.program.register.index_window;
        let ahead = self.program.pattern.apart.wrapping_mul(piece.cast_signed());
        // Nothing is to be taken beyond the end of the turn.
        let mut taken = [1; LINE_BYTES];
        taken.get_mut(..self.origins.count)?.fill(0);
        let mut window = 0;
        loop {
            if window == self.windows {
                let left = first_zero(&taken);
                let Some(origin) = self.origins.bytes.get(left) else { return Some(()) };
                self.add_window(self.window_of((*origin as isize).wrapping_add(ahead)))?;
            }
            let Self { program, set, lane, origins, .. } = self;
            // SAFETY: this window has been added.
            let begin = unsafe {
                program.windows.get(set.first_window + window)?.assume_init_ref().get(*lane)?
            };
            let begin = i32::try_from(begin.wrapping_sub(ahead)).ok()?;
            let pick = program.picks.get_mut(set.first_pick + window * set.outputs + output)?;
            // SAFETY: a window that is added has its picks written.
            let Pick(index) = unsafe { pick.assume_init_mut() };
            let slots = index.get_mut(*lane * width..(*lane + 1) * width)?;
            // SAFETY: the CPU has the features of the level.
            unsafe { index_window(&origins.bytes, begin, slots, &mut taken) };
            window += 1;
        }
    }

    /// Returns where the window begins that a byte of the input is read from. If groups leave no long gaps, windows
    /// follow each other from the lowest byte of the lane on, so that pieces share them; otherwise it begins at the byte.
    fn window_of(&self, from: isize) -> isize {
        let program = &*self.program;
        let Pattern { group, apart, .. } = program.pattern;
        if group.units > 1 || !program.is_dense() {
            return from;
        }
        let lowest = (self.origins.lowest as isize)
            .wrapping_add(apart.min(0).wrapping_mul(program.together.cast_signed() - 1));
        let window = program.register.window.cast_signed();
        let number = from.wrapping_sub(lowest).checked_div_euclid(window).unwrap_or(0);
        lowest.wrapping_add(number.wrapping_mul(window))
    }

    /// Adds a window to the lane, and to the set if no other lane has as many.
    fn add_window(&mut self, from: isize) -> Option<()> {
        let Self { program, set, lane, windows, .. } = self;
        let is_new = *windows == set.windows;
        if is_new {
            set.windows += 1;
            if set.windows > most_windows(set.outputs) {
                return None;
            }
            let first = set.first_pick + *windows * set.outputs;
            for pick in program.picks.get_mut(first..first + set.outputs)? {
                pick.write(Pick::NONE);
            }
        }
        // Lanes that need no window of their own read what another one does.
        let slot = program.windows.get_mut(set.first_window + *windows)?;
        if is_new {
            slot.write([from; MAX_WINDOW_LANES]);
        } else {
            // SAFETY: the first lane that had a window here has written it for all lanes.
            let slot = unsafe { slot.assume_init_mut() };
            slot.iter_mut().skip(*lane).for_each(|slot| *slot = from);
        }
        program.high = program.high.max(from.wrapping_add(program.register.window.cast_signed()));
        *windows += 1;
        Some(())
    }
}

impl Program {
    /// Turns picks from one window into picks from two: the first two windows, or what has been made and another one.
    fn pair(&mut self, set: &Set) {
        // Indices of the second window have this bit, and those of the first one are below it.
        let second = self.register.bytes.to_le_bytes()[0];
        debug_assert!(self.register.bytes == LINE_BYTES, "bytes are picked from two half lines");
        let end = set.first_pick + set.windows * set.outputs;
        let Some(picks) = self.picks.get_mut(set.first_pick..end) else { return };
        let (first, rest) = picks.split_at_mut(set.outputs.min(picks.len()));
        let own: [u8; LINE_BYTES] = from_fn(|at| at.to_le_bytes()[0]);
        for (at, pick) in rest.iter_mut().enumerate() {
            let (number, output) = div_rem(at, set.outputs);
            let Some(first) = first.get(output) else { return };
            // SAFETY: all picks of the set have been written.
            let (Pick(index), Pick(first)) =
                unsafe { (pick.assume_init_mut(), first.assume_init_ref()) };
            let otherwise = if number == 0 { first.map(|index| index & (second - 1)) } else { own };
            for (slot, otherwise) in index.iter_mut().zip(otherwise) {
                *slot = if *slot == NOTHING { otherwise } else { *slot | second };
            }
        }
    }
}

/// Returns how many bytes from the first on are 1; all of them are 0 or 1.
fn first_zero(bytes: &[u8; LINE_BYTES]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let missing = |word: &[u8; 8]| !u64::from_le_bytes(*word) & (u64::MAX / 0xFF);
    let at = words.iter().position(|word| missing(word) > 0).unwrap_or(words.len());
    8 * at + words.get(at).map_or(0, |word| missing(word).trailing_zeros() as usize / 8)
}

/// Finds what a pick takes from a window: its slots get the indices of the bytes that lie there, and what is taken is
/// marked with a 1. A byte that lies in several windows is taken from each.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // of numbers below a line's bytes
pub(in crate::copy) fn index_window(
    origins: &[i32; LINE_BYTES],
    begin: i32,
    slots: &mut [u8],
    taken: &mut [u8; LINE_BYTES],
) {
    let width = slots.len() as u32;
    for ((slot, taken), origin) in slots.iter_mut().zip(taken).zip(origins) {
        let inside = origin.wrapping_sub(begin).cast_unsigned();
        let is_inside = inside < width;
        *slot = if is_inside { inside as u8 } else { NOTHING };
        *taken |= u8::from(is_inside);
    }
}
