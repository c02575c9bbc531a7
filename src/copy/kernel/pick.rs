//! Units a step apart, forwards or backwards, picked out of registers and put one behind the other.
//!
//! The idea: a window of memory that holds some units is loaded whole, gaps and all, into up to
//! [`MOST_REGISTERS`] registers; of each a permute takes the bytes that are wanted to their places, and
//! the results are one register of units. Which byte comes from where stands in tables, made once for
//! many rows, so one loop serves every width and step. What a permute works within is a lane: 16 bytes
//! on most CPUs, where each lane of a register has a window of its own; 64 with VBMI.
//!
//! A lane is stored whole whether units fill it or not: the next store overwrites what is too much.
//! Where windows or lanes would reach past the last unit, units go by way of buffers instead.
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. Everything from the first byte of the units to the last must be readable, gaps included; the
//!    target must be writable for the units. They do not overlap.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::combine::LINE;
use super::vector::LANE;
use super::{generic, signed};
use crate::math::div_rem;

/// What a loop needs of a register.
pub(super) trait Register: Copy {
    /// Bytes that a permute works within, and how many such there are.
    const LANE: usize;
    const LANES: usize;

    /// A lane from every `apart` bytes (backwards: wrapped).
    ///
    /// # Safety
    /// 1, and everything loaded must be readable.
    unsafe fn load_lanes(source: *const u8, apart: usize) -> Self;

    /// The same order in every lane.
    ///
    /// # Safety
    /// 1.
    unsafe fn order(order: &Order) -> Self;

    /// Bytes by their number within the lane; 0 where the number's top bit is set.
    ///
    /// # Safety
    /// 1.
    unsafe fn permuted(self, order: Self) -> Self;

    /// # Safety
    /// 1.
    unsafe fn or(self, other: Self) -> Self;

    /// Stores the lanes, first to last, so many bytes apart.
    ///
    /// # Safety
    /// 1, and everything stored must be writable.
    unsafe fn store_lanes(self, target: *mut u8, apart: usize);

    /// Asks for the line at an address, any address, to be read soon.
    fn prefetch(at: *const u8);
}

/// For each byte of a lane, its number in another.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(super) struct Order(pub [u8; LINE]);

impl Order {
    /// That of a lane of 16 bytes.
    #[inline(always)]
    pub fn short(&self) -> &[u8; LANE] {
        self.0.first_chunk().unwrap_or(&[NONE; LANE])
    }
}

/// The number of a byte that comes from elsewhere.
const NONE: u8 = 0x80;
const MOST_REGISTERS: usize = 4;
/// The most bytes that the windows of a step reach over.
const MOST_REACH: usize = MOST_REGISTERS * LINE;

/// Takes so many steps from a source to a target, and prefetches as far ahead.
type Loop = unsafe fn(&Pick, *const u8, *mut u8, usize, isize);
/// Picks no more units than a step takes, and touches no more than those.
type Last = unsafe fn(&Pick, *const u8, *mut u8, usize);

/// The loops of a level, by registers of a window.
pub(super) struct Picks {
    pub lane: usize,
    pub lanes: usize,
    pub loops: [Loop; MOST_REGISTERS],
    pub last: Last,
}

/// Makes them, inlined into functions with the level's features.
macro_rules! picks {
    (#[$feature:meta] register: $register:ty, last: $last:expr) => {{
        use $crate::copy::kernel::pick::{self, Pick, Picks, Register};
        #[$feature]
        unsafe fn run<const R: usize>(
            pick: &Pick,
            source: *const u8,
            target: *mut u8,
            steps: usize,
            ahead: isize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { pick::run::<$register, R>(pick, source, target, steps, ahead) };
        }
        Picks {
            lane: <$register as Register>::LANE,
            lanes: <$register as Register>::LANES,
            loops: [run::<1>, run::<2>, run::<3>, run::<4>],
            last: $last,
        }
    }};
}
pub(super) use picks;

/// Takes steps: in each, as many units as the lanes of a register hold.
///
/// # Safety
/// 1; the windows of all steps must be readable, and whole lanes writable at the target.
#[inline(always)]
pub(super) unsafe fn run<V: Register, const R: usize>(
    pick: &Pick,
    source: *const u8,
    target: *mut u8,
    steps: usize,
    ahead: isize,
) {
    let (from, to) = (pick.from.cast_unsigned(), pick.to);
    let (mut source, mut target) = (source.wrapping_offset(pick.window), target);
    // SAFETY: the caller's promise.
    unsafe {
        let [first, ..] = pick.orders;
        let mut orders = [V::order(&first); R];
        for (order, bytes) in orders.iter_mut().zip(&pick.orders) {
            *order = V::order(bytes);
        }
        for _ in 0..steps {
            for line in (0..R * V::LANE * V::LANES).step_by(LINE) {
                V::prefetch(source.wrapping_offset(ahead).wrapping_add(line));
            }
            let mut all = None::<V>;
            let mut from_here = source;
            for order in orders {
                let some = V::load_lanes(from_here, from).permuted(order);
                all = Some(all.map_or(some, |all| all.or(some)));
                from_here = from_here.wrapping_add(V::LANE);
            }
            if let Some(all) = all {
                all.store_lanes(target, to);
            }
            source = source.wrapping_add(from.wrapping_mul(V::LANES));
            target = target.wrapping_add(to * V::LANES);
        }
    }
}

/// Units: each of some parts of so many bytes a step apart, which become one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units {
    /// Bytes from a unit to the next.
    pub step: isize,
    pub part: usize,
    pub parts: usize,
    pub part_step: isize,
}

impl Units {
    pub(crate) fn bytes(&self) -> usize {
        self.part * self.parts
    }

    /// Bytes from the first part to the lowest, at most 0, and how many all parts reach over.
    fn span(&self) -> (isize, usize) {
        let last = self.part_step.wrapping_mul(signed(self.parts.saturating_sub(1)));
        (last.min(0), last.unsigned_abs() + self.part)
    }
}

/// How to pick units.
pub(crate) struct Pick {
    pub(super) units: Units,
    /// Units of a lane.
    each: usize,
    /// Bytes of the source and the target from a lane to the next.
    from: isize,
    to: usize,
    /// Bytes from the first unit to the first window, and to the lowest of a step, and how many all
    /// of its windows reach over.
    window: isize,
    pub(super) begin: isize,
    reach: usize,
    /// As [`Pick::steps`] says of so many units.
    count: usize,
    steps: usize,
    picks: &'static Picks,
    run: Loop,
    registers: usize,
    /// Of each register of a window.
    orders: [Order; MOST_REGISTERS],
}

impl Pick {
    /// How to pick such units, if there are enough in a window to win by it.
    pub(super) fn new(picks: &'static Picks, units: Units, count: usize) -> Option<Self> {
        let (bytes, step) = (units.bytes(), units.step.unsigned_abs());
        let (lowest, span) = units.span();
        let longest = MOST_REGISTERS * picks.lane;
        let fit = div_rem(longest.checked_sub(span)?, step).0 + 1;
        let each = fit.min(div_rem(picks.lane, bytes).0);
        let window = (each.checked_sub(1)? * step + span).next_multiple_of(picks.lane);
        let registers = div_rem(window, picks.lane).0;
        let reach = (picks.lanes - 1) * each * step + window;
        let run = *picks.loops.get(registers.checked_sub(1)?)?;
        if each <= registers || each * picks.lanes < LEAST || reach > MOST_REACH {
            return None;
        }
        let end = lowest + signed(span);
        let (window, begin) = if units.step < 0 {
            (end - signed(window), end - signed(reach))
        } else {
            (lowest, lowest)
        };
        let mut pick = Self {
            units,
            each,
            from: units.step.wrapping_mul(signed(each)),
            to: each * bytes,
            window,
            begin,
            reach,
            count,
            steps: 0,
            picks,
            run,
            registers,
            orders: [Order([NONE; LINE]); MOST_REGISTERS],
        };
        pick.steps = pick.steps(count);
        pick.fill_orders();
        Some(pick)
    }

    fn fill_orders(&mut self) {
        let Units { step, part, parts, part_step } = self.units;
        let mut place = 0;
        for unit in 0..self.each {
            for at in 0..parts {
                let from = step.wrapping_mul(signed(unit)) + part_step.wrapping_mul(signed(at));
                let from = (from - self.window).cast_unsigned();
                for byte in from..from + part {
                    let (register, number) = div_rem(byte, self.picks.lane);
                    let order = self.orders.get_mut(register);
                    if let Some(slot) = order.and_then(|order| order.0.get_mut(place)) {
                        *slot = number.to_le_bytes()[0];
                    }
                    place += 1;
                }
            }
        }
    }

    /// Steps of which the windows, and the lanes, are within what so many units reach over.
    fn steps(&self, count: usize) -> usize {
        let Self { units, picks, .. } = self;
        let times = |bytes: usize, needs: usize, step: isize| {
            let step = step.unsigned_abs() * picks.lanes;
            bytes.checked_sub(needs).map_or(0, |rest| div_rem(rest, step).0 + 1)
        };
        let stored = (picks.lanes - 1) * self.to + picks.lane;
        times(self.read(count), self.reach, self.from).min(times(
            count * units.bytes(),
            stored,
            signed(self.to),
        ))
    }

    /// Bytes that so many units reach over.
    pub(super) fn read(&self, count: usize) -> usize {
        count.saturating_sub(1) * self.units.step.unsigned_abs() + self.units.span().1
    }

    /// Picks `count` units, of which so many steps can be taken; prefetches as far ahead.
    ///
    /// # Safety
    /// 1, 2.
    pub(super) unsafe fn copy(
        &self,
        source: *const u8,
        target: *mut u8,
        count: usize,
        ahead: isize,
    ) {
        let Self { units, each, picks, .. } = self;
        let steps = if count == self.count { self.steps } else { self.steps(count) };
        let per_step = each * picks.lanes;
        // SAFETY: the caller's promise, and the numbers above.
        unsafe {
            (self.run)(self, source, target, steps, ahead);
            let mut done = steps * per_step;
            while done < count {
                let some = per_step.min(count - done);
                let source = source.wrapping_offset(units.step.wrapping_mul(signed(done)));
                (picks.last)(self, source, target.wrapping_add(done * units.bytes()), some);
                done += some;
            }
        }
    }

    /// Of each register of a window.
    pub(super) fn orders(&self) -> &[Order] {
        self.orders.get(..self.registers).unwrap_or_default()
    }

    /// Bytes of the windows of a step that lie before `count` units, which end or begin it.
    pub(super) fn before(&self, count: usize) -> usize {
        if self.units.step < 0 {
            self.reach - self.read(count)
        } else {
            0
        }
    }
}

/// A [`Last`] by way of buffers.
///
/// # Safety
/// As [`Last`].
pub(super) unsafe fn buffered(pick: &Pick, source: *const u8, target: *mut u8, count: usize) {
    let mut windows = [0u8; MOST_REACH];
    let mut lanes = [0u8; LINE];
    let before = pick.before(count);
    let first = source.wrapping_offset(pick.begin).wrapping_add(before);
    // SAFETY: the caller's promise; no more units than a step's are in the windows of one, and
    // there is room for the lanes of one.
    unsafe {
        generic::copy(first, windows.as_mut_ptr().wrapping_add(before), pick.read(count));
        let source = windows.as_ptr().wrapping_offset(pick.begin.wrapping_neg());
        (pick.run)(pick, source, lanes.as_mut_ptr(), 1, 0);
        generic::copy(lanes.as_ptr(), target, count * pick.units.bytes());
    }
}

/// Fewer units than this in a step are no quicker than one by one.
const LEAST: usize = 4;
