//! Squares: sets of four windows and four outputs, such as planes that are taken apart or woven into one. In each lane,
//! the dwords of the windows are the rows of a square, and those of the outputs its columns. So one pick for each window
//! and two passes of unpacks (`tile.rs`) do what would otherwise take a pick for each window and output:
//!
//! ```text
//! windows              picked               transposed: a register for each plane
//! rgbargbargbargba     rrrrggggbbbbaaaa     rrrrrrrrrrrrrrrr
//! rgbargbargbargba     rrrrggggbbbbaaaa     gggggggggggggggg
//! rgbargbargbargba     rrrrggggbbbbaaaa     bbbbbbbbbbbbbbbb
//! rgbargbargbargba     rrrrggggbbbbaaaa     aaaaaaaaaaaaaaaa
//! ```
//!
//! Planes that are woven are transposed first, and then picked from. Where windows are whole registers, picks from two of
//! them are quicker.

use super::dwords::DWORD_BYTES;
use super::picks::NOTHING;
use super::{Pick, Program, Set, LANE_BYTES};
use crate::math::div_rem;

/// Dwords of a lane, and windows and outputs of a square.
pub(super) const SIDE: usize = LANE_BYTES / DWORD_BYTES;

/// Returns whether the kernel takes a set for a square.
#[inline(always)]
pub(in crate::copy) const fn is_square(outputs: usize, windows: usize, window: usize) -> bool {
    outputs == SIDE && windows == SIDE && window == LANE_BYTES
}

impl Program {
    /// Makes a set of four windows and outputs a square: its first picks become those of the windows, or those of the
    /// outputs if they are woven. Returns `None` if its picks do not allow that.
    pub(super) fn make_square(&mut self, set: &Set) -> Option<()> {
        let mut made = [Pick::NONE; SIDE];
        for number in 0..SIDE * SIDE {
            let (window, output) = div_rem(number, SIDE);
            // SAFETY: the picks of the set have been written.
            let Pick(picked) =
                unsafe { self.picks.get(set.first_pick + number)?.assume_init_ref() };
            for (at, &index) in picked.iter().enumerate().filter(|(_, index)| **index != NOTHING) {
                let (dword, byte) = div_rem(at, DWORD_BYTES);
                let (from, within) = div_rem(index.into(), DWORD_BYTES);
                // Rows give the dwords that have the number of the column, and columns get those of the row.
                let (fits, pick, at, index) = if self.together == 1 {
                    (from == output, output, at, window * DWORD_BYTES + within)
                } else {
                    let place = (dword - dword % SIDE + output) * DWORD_BYTES + byte;
                    (dword % SIDE == window, window, place, index.into())
                };
                let slot = made.get_mut(pick)?.0.get_mut(at).filter(|_| fits)?;
                *slot = index.to_le_bytes()[0];
            }
        }
        for (slot, pick) in self.picks.iter_mut().skip(set.first_pick).zip(made) {
            slot.write(pick);
        }
        Some(())
    }
}
