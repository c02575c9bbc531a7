//! Units a step apart, of rows that a plan knows: as [`super::pick`] picks them, but the table is made once, and it is
//! one, so that nothing is left to be made, or asked, by a call.
//!
//! The idea: a register of the target is taken out of up to [`MOST`] of the source, of which the last one ends where the
//! last unit does, so that no load reaches further. Registers are lines: a byte of them all is numbered by one byte. What
//! is left of a row when registers of it are full is taken together with units before it, once more.

use super::combine::LINE;
use super::opaque::opaque;
use super::strided::{Axis, Block, Place};
use super::Kernels;
use crate::math::{div, signed};

/// Registers of the source.
pub(super) const MOST: usize = 4;
/// Fewer units are copied one by one, and fewer, or fewer bytes, of each register: Zen 4, ns of 938 of 8 bytes, 80 apart,
/// 560 for 340.
const LEAST: usize = 4;
const LEAST_EACH: usize = 2;
const LEAST_BYTES: usize = 8;

/// How units of a row are taken, some at a time.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Order {
    /// So many; 0: not this way.
    pub(super) each: usize,
    /// Bytes that they reach over.
    pub(super) reach: usize,
    /// Of each byte that they become, where it is in the registers.
    pub(super) from: [u8; LINE],
}

/// Copies rows of units by an order that was made for such.
pub(crate) type Ordered = unsafe fn(&Order, &Block, Place, &Kernels);

impl Order {
    pub(crate) const NONE: Self = Self { each: 0, reach: 0, from: [0; LINE] };

    /// Makes that of rows of such units, and longer ones, if there is one.
    #[cfg_attr(not(feature = "avx512"), allow(dead_code))]
    #[inline(never)] // once in the library
    pub(crate) fn make(&mut self, unit: usize, Axis { extent, from, to }: Axis) {
        let step = from.unsigned_abs();
        if to != signed(unit) || step == 0 || unit > LINE / LEAST {
            return;
        }
        let each = (div(MOST * LINE - unit, step) + 1).min(div(LINE, unit)).min(extent);
        let reach = each.saturating_sub(1) * step + unit;
        let last = reach.saturating_sub(1) & LINE.wrapping_neg();
        let registers = last / LINE + 1;
        if each < LEAST.max(LEAST_EACH * registers) || each * unit < LEAST_BYTES * registers {
            return;
        }
        let before = if last == 0 { 0 } else { last + LINE - reach };
        let (mut place, mut left) = (if from < 0 { reach - unit } else { 0 }, unit);
        for slot in self.from.iter_mut().take(each * unit) {
            // Or compilers make more of it than it is.
            place = opaque(place);
            [*slot, ..] = (place + if place < last { 0 } else { before }).to_le_bytes();
            (place, left) = (place + 1, left - 1);
            if left == 0 {
                (place, left) = (place.wrapping_sub(unit).wrapping_add_signed(from), unit);
            }
        }
        (self.each, self.reach) = (each, reach);
    }

    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        self.each > 0
    }

    pub(crate) fn each(&self) -> usize {
        self.each
    }
}
