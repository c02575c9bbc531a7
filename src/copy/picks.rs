//! The picks of a program: for each register, which bytes of which windows it takes.

use super::program::{most_windows, Group, Program, Set};
use super::vector::LINE_BYTES;
use crate::math::{div, div_rem};
use core::array::from_fn;

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
        self.count = program.bytes().saturating_sub(begin).min(program.register.window);
        self.lowest = i32::MAX;
        let Group { unit, units, apart, from } = program.group;
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
            (within, number) = (0, number + 1);
            if number == units {
                (group, number) = (group + 1, 0);
            }
        }
        Some(())
    }
}

impl Program {
    /// Fills a set with one register of every piece, or with several registers of one.
    pub(super) fn fill_set(&mut self, first: usize, registers: usize) -> Option<Set> {
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
            let (mut windows, mut origins) = (0, Origins::NONE);
            for output in 0..outputs {
                let (number, piece) =
                    if self.pieces > 1 { (first, output) } else { (first + output, 0) };
                if piece == 0 {
                    origins.find(self, number * register.bytes + lane * register.window)?;
                }
                windows = self.fill_lane(&mut set, (output, piece), &origins, (lane, windows))?;
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
        (output, piece): (usize, usize),
        origins: &Origins,
        (lane, mut windows): (usize, usize),
    ) -> Option<usize> {
        let width = self.register.window;
        let ahead = self.apart.wrapping_mul(piece.cast_signed());
        // Nothing is to be taken beyond the end of the turn.
        let mut taken = [1; LINE_BYTES];
        taken.get_mut(..origins.count)?.fill(0);
        let mut window = 0;
        loop {
            if window == windows {
                let left = first_zero(&taken);
                let Some(origin) = origins.bytes.get(left) else { return Some(windows) };
                let begin = self.window_of((*origin as isize).wrapping_add(ahead), origins);
                self.add_window(set, (lane, windows), begin)?;
                windows += 1;
            }
            let begin = self.windows.get(set.first_window + window)?.get(lane)?;
            let begin = i32::try_from(begin.wrapping_sub(ahead)).ok()?;
            // SAFETY: the picks of all windows of the set have been written.
            let Pick(index) = unsafe {
                self.picks
                    .get_mut(set.first_pick + window * set.outputs + output)?
                    .assume_init_mut()
            };
            let slots = index.get_mut(lane * width..(lane + 1) * width)?;
            // SAFETY: the CPU has the features of the level.
            unsafe { (self.register.take)(&origins.bytes, begin, slots, &mut taken) };
            window += 1;
        }
    }

    /// Returns where the window begins that a byte of the input is read from. If rows leave no long gaps, windows
    /// follow each other from the lowest byte of the lane on, so that pieces share them; otherwise it begins at the byte.
    fn window_of(&self, from: isize, origins: &Origins) -> isize {
        let Self { group, pieces, apart, register, .. } = *self;
        if group.units > 1 || !self.is_dense(pieces) {
            return from;
        }
        let lowest = (origins.lowest as isize)
            .wrapping_add(apart.min(0).wrapping_mul(pieces.cast_signed() - 1));
        let window = register.window.cast_signed();
        lowest.wrapping_add(
            from.wrapping_sub(lowest).checked_div_euclid(window).unwrap_or(0).wrapping_mul(window),
        )
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
            if set.windows > most_windows(set.outputs) {
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
        let own: [u8; LINE_BYTES] = from_fn(|at| at.to_le_bytes()[0]);
        for (at, pick) in rest.iter_mut().enumerate() {
            let (number, output) = div_rem(at, set.outputs);
            let Some(first) = first.get(output) else { return };
            // SAFETY: all picks of the set have been written.
            let (Pick(index), Pick(first)) =
                unsafe { (pick.assume_init_mut(), first.assume_init_ref()) };
            let otherwise = if number == 0 { first.map(|index| index & 63) } else { own };
            for (slot, otherwise) in index.iter_mut().zip(otherwise) {
                *slot = if *slot == NOTHING { otherwise } else { *slot | 64 };
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
pub(super) fn take(
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

/// [`take`], as a kernel.
pub(super) type Take = unsafe fn(&[i32; LINE_BYTES], i32, &mut [u8], &mut [u8; LINE_BYTES]);
