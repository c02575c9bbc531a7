//! Fields a step apart, forwards or backwards, picked out of registers and put one behind the other:
//! bytes, or the 4-bit and 2-bit elements that share them.
//!
//! The idea: a window of memory that holds some units is loaded whole, gaps and all, into up to
//! [`MOST_REGISTERS`] registers; of each a permute takes the bytes that are wanted to their places, and
//! the results are one register of units. Which byte comes from where stands in tables, made once for
//! many rows, so one loop serves every width and step. What a permute works within is a lane: 16 bytes
//! on most CPUs, where each lane of a register has a window of its own; 64 with VBMI. Elements that
//! share bytes are picked as the bytes that hold them, once for each place in a byte that they go to,
//! and then shifted there, with a mask for each place that they come from.
//!
//! A lane is stored whole whether units fill it or not: the next store overwrites what is too much.
//! Where windows or lanes would reach past the last unit, units go by way of buffers, or under masks.
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. Every byte from the first of the units to the last must be readable, gaps included; the target
//!    must be writable for the units. They do not overlap.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::combine::LINE;
use super::vector::LANE;
use super::{generic, signed, Kernels};
use crate::math::{div_rem, next_multiple};

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

    /// The same bytes in every lane.
    ///
    /// # Safety
    /// 1.
    unsafe fn table(table: &Table) -> Self;

    /// Bytes by their number within the lane; 0 where the number's top bit is set.
    ///
    /// # Safety
    /// 1.
    unsafe fn permuted(self, order: Self) -> Self;

    /// # Safety
    /// 1.
    unsafe fn or(self, other: Self) -> Self;

    /// # Safety
    /// 1.
    unsafe fn and(self, other: Self) -> Self;

    /// Shifted down by 6, 4, 2, 0, or up by as many (negative) bits, some of which come from, or go
    /// to, the byte next to it.
    ///
    /// # Safety
    /// 1.
    unsafe fn shifted(self, by: i8) -> Self;

    /// Stores the lanes, first to last, so many bytes apart.
    ///
    /// # Safety
    /// 1, and everything stored must be writable.
    unsafe fn store_lanes(self, target: *mut u8, apart: usize);

    /// Asks for the line at an address, any address, to be read soon.
    fn prefetch(at: *const u8);
}

/// A number, or a mask, for each byte of a lane.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(super) struct Table(pub [u8; LINE]);

impl Table {
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
type Loop<const F: usize> = unsafe fn(&Pick<F>, *const u8, *mut u8, usize, isize);
/// Picks no more units than a step takes, and touches no more than those.
type Last<const F: usize> = unsafe fn(&Pick<F>, *const u8, *mut u8, usize);

/// The loops of a level for `F` fields a byte, by registers of a window.
pub(super) struct Loops<const F: usize> {
    pub lane: usize,
    pub lanes: usize,
    pub steps: [Loop<F>; MOST_REGISTERS],
    pub last: Last<F>,
}

/// The loops of a level.
pub(crate) struct Picks {
    pub(super) bytes: Loops<1>,
    pub(super) nibbles: Loops<2>,
    pub(super) crumbs: Loops<4>,
}

/// Makes them, inlined into functions with the level's features.
macro_rules! picks {
    (#[$feature:meta] register: $register:ty, last: $last:ident) => {{
        use $crate::copy::kernel::pick::{self, Loops, Pick, Picks, Register};
        #[$feature]
        unsafe fn run<const F: usize, const R: usize>(
            pick: &Pick<F>,
            source: *const u8,
            target: *mut u8,
            steps: usize,
            ahead: isize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { pick::run::<$register, F, R>(pick, source, target, steps, ahead) };
        }
        const fn loops<const F: usize>() -> Loops<F> {
            Loops {
                lane: <$register as Register>::LANE,
                lanes: <$register as Register>::LANES,
                steps: [run::<F, 1>, run::<F, 2>, run::<F, 3>, run::<F, 4>],
                last: $last,
            }
        }
        Picks { bytes: loops(), nibbles: loops(), crumbs: loops() }
    }};
}
pub(super) use picks;

/// Takes steps: in each, as many units as the lanes of a register hold.
///
/// # Safety
/// 1; the windows of all steps must be readable, and whole lanes writable at the target.
#[inline(always)]
pub(super) unsafe fn run<V: Register, const F: usize, const R: usize>(
    pick: &Pick<F>,
    source: *const u8,
    target: *mut u8,
    steps: usize,
    ahead: isize,
) {
    let (from, to) = (pick.from.cast_unsigned(), pick.to);
    let (mut source, mut target) = (source.wrapping_offset(pick.window), target);
    // SAFETY: the caller's promise.
    unsafe {
        let zero = V::table(&Table([0; LINE]));
        let mut orders = [[zero; R]; F];
        for (orders, tables) in orders.iter_mut().zip(&pick.orders) {
            for (order, table) in orders.iter_mut().zip(tables) {
                *order = V::table(table);
            }
        }
        for _ in 0..steps {
            if ahead != 0 {
                for line in (0..R * V::LANE * V::LANES).step_by(LINE) {
                    V::prefetch(source.wrapping_offset(ahead).wrapping_add(line));
                }
            }
            let mut window = [zero; R];
            for (at, register) in window.iter_mut().enumerate() {
                *register = V::load_lanes(source.wrapping_add(at * V::LANE), from);
            }
            let all = picked::<V, F, R>(&pick.masks, &window, &orders);
            all.store_lanes(target, to);
            source = source.wrapping_add(from.wrapping_mul(V::LANES));
            target = target.wrapping_add(to * V::LANES);
        }
    }
}

/// The units of a window.
///
/// # Safety
/// 1.
#[inline(always)]
pub(super) unsafe fn picked<V: Register, const F: usize, const R: usize>(
    masks: &[[Table; F]; F],
    window: &[V; R],
    orders: &[[V; R]; F],
) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let mut all = None::<V>;
        let join = |all: Option<V>, some: V| all.map_or(some, |all| all.or(some));
        for (orders, (to, masks)) in orders.iter().zip((0i8..).zip(masks)) {
            let mut bytes = None;
            for (register, order) in window.iter().zip(orders) {
                bytes = Some(join(bytes, register.permuted(*order)));
            }
            let Some(bytes) = bytes else { continue };
            if F == 1 {
                return bytes;
            }
            for (from, mask) in (0i8..).zip(masks) {
                let shifted = bytes.shifted((from - to) * Pick::<F>::BITS);
                all = Some(join(all, shifted.and(V::table(mask))));
            }
        }
        all.unwrap_or_else(|| V::table(&Table([0; LINE])))
    }
}

/// Units: each of some parts of so many fields a step apart, which become one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units {
    /// Fields from a unit to the next.
    pub step: isize,
    pub part: usize,
    pub parts: usize,
    pub part_step: isize,
}

impl Units {
    /// Of one part each.
    pub(crate) fn whole(unit: usize, step: isize) -> Self {
        Self { step, part: unit, parts: 1, part_step: 0 }
    }

    /// Fields of a unit.
    pub(crate) fn len(&self) -> usize {
        self.part * self.parts
    }

    /// Fields from the first part to the lowest, at most 0, and to behind the highest.
    fn reach(&self) -> (isize, isize) {
        let last = self.part_step.wrapping_mul(signed(self.parts.saturating_sub(1)));
        (last.min(0), last.max(0) + signed(self.part))
    }
}

/// How to pick units of fields, `F` a byte.
pub(crate) struct Pick<const F: usize> {
    units: Units,
    /// Fields of the first byte before the first unit.
    first: usize,
    /// Units of a lane.
    each: usize,
    /// Bytes of the source and the target from a lane to the next.
    from: isize,
    to: usize,
    /// Bytes from the source to the first window, and to the lowest of a step, and how many all of
    /// its windows reach over.
    window: isize,
    pub(super) begin: isize,
    reach: usize,
    /// As [`Pick::steps`] says of so many units.
    count: usize,
    steps: usize,
    loops: &'static Loops<F>,
    run: Loop<F>,
    registers: usize,
    /// By the place in a byte that a field goes to: of each register of a window.
    pub(super) orders: [[Table; MOST_REGISTERS]; F],
    /// By that place and the one that a field comes from.
    pub(super) masks: [[Table; F]; F],
}

impl<const F: usize> Pick<F> {
    const SHIFT: u32 = F.trailing_zeros();
    /// Of a field.
    const BITS: i8 = 8 >> Self::SHIFT;

    /// How to pick such units, if there are enough in a window to win by it.
    pub(super) fn new(
        loops: &'static Loops<F>,
        units: Units,
        first: usize,
        count: usize,
    ) -> Option<Self> {
        let (len, step) = (units.len(), units.step.unsigned_abs());
        let is_whole = |units: usize| ((units * len) | (units * step)).is_multiple_of(F);
        let together = [1, 2, 4].into_iter().find(|units| is_whole(*units))?;
        let (lowest, end) = units.reach();
        // Fields may begin, and end, within a byte.
        let most = (MOST_REGISTERS * loops.lane + 1) * F - 2 * (F - 1) - 1;
        let fit = div_rem(most.checked_sub((end - lowest).unsigned_abs())?, step).0 + 1;
        let each = fit.min(div_rem(loops.lane * F, len).0);
        let each = each - div_rem(each, together).1;
        let mut pick = Self {
            units,
            first,
            each,
            from: units.step.wrapping_mul(signed(each)) >> Self::SHIFT,
            to: (each * len) >> Self::SHIFT,
            window: 0,
            begin: 0,
            reach: 0,
            count,
            steps: 0,
            loops,
            run: *loops.steps.first()?,
            registers: 0,
            orders: [[Table([NONE; LINE]); MOST_REGISTERS]; F],
            masks: [[Table([0; LINE]); F]; F],
        };
        let window = next_multiple(pick.read(each), loops.lane);
        pick.registers = div_rem(window, loops.lane).0;
        pick.reach = (loops.lanes - 1) * pick.from.unsigned_abs() + window;
        pick.run = *loops.steps.get(pick.registers.checked_sub(1)?)?;
        let is_quicker = step > 0 && each * F > pick.registers && each * F * loops.lanes >= LEAST;
        if each == 0 || !is_quicker || pick.reach > MOST_REACH {
            return None;
        }
        (pick.window, pick.begin) = if units.step < 0 {
            let end = pick.byte(end - 1) + 1;
            (end - signed(window), end - signed(pick.reach))
        } else {
            (pick.byte(lowest), pick.byte(lowest))
        };
        pick.steps = pick.steps(count);
        pick.fill();
        Some(pick)
    }

    /// Bytes from the source to a field, counted from the first.
    fn byte(&self, field: isize) -> isize {
        (field + signed(self.first)) >> Self::SHIFT
    }

    fn fill(&mut self) {
        let Units { step, part, parts, part_step } = self.units;
        let places = self.window * signed(F) - signed(self.first);
        let lane = self.loops.lane.trailing_zeros();
        let mut to = 0;
        for unit in 0..self.each {
            for at in 0..parts {
                let from = step.wrapping_mul(signed(unit)) + part_step.wrapping_mul(signed(at));
                let from = (from - places).cast_unsigned();
                for from in from..from + part {
                    self.set(from, to, lane);
                    to += 1;
                }
            }
        }
    }

    /// A field from one place goes to another.
    #[inline(always)]
    fn set(&mut self, from: usize, to: usize, lane: u32) {
        let (byte, at) = (from >> Self::SHIFT, to >> Self::SHIFT);
        let number = byte & ((1 << lane) - 1);
        let order = self.orders.get_mut(to % F).and_then(|orders| orders.get_mut(byte >> lane));
        if let Some(slot) = order.and_then(|order| order.0.get_mut(at)) {
            *slot = number.to_le_bytes()[0];
        }
        let mask = self.masks.get_mut(to % F).and_then(|masks| masks.get_mut(from % F));
        if let Some(slot) = mask.and_then(|mask| mask.0.get_mut(at)) {
            *slot = (u8::MAX >> (8 - 8 / F)) << (to % F * (8 / F));
        }
    }

    /// Steps of which the windows, and the lanes, are within what so many units reach over.
    fn steps(&self, count: usize) -> usize {
        let lanes = self.loops.lanes;
        let times = |bytes: usize, needs: usize, step: usize| {
            bytes.checked_sub(needs).map_or(0, |rest| div_rem(rest, step * lanes).0 + 1)
        };
        let stored = (lanes - 1) * self.to + self.loops.lane;
        let read = times(self.read(count), self.reach, self.from.unsigned_abs());
        read.min(times(self.bytes(count), stored, self.to))
    }

    /// Whole bytes that so many units become.
    pub(super) fn bytes(&self, count: usize) -> usize {
        (count * self.units.len()) >> Self::SHIFT
    }

    /// Bytes that so many units reach over.
    pub(super) fn read(&self, count: usize) -> usize {
        let (lowest, end) = self.units.reach();
        let last = self.units.step.wrapping_mul(signed(count.saturating_sub(1)));
        let bytes = self.byte(end - 1 + last.max(0)) + 1 - self.byte(lowest + last.min(0));
        bytes.cast_unsigned()
    }

    /// Picks `count` units, which must be whole bytes in the source and the target; prefetches as far
    /// ahead.
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
        let Self { units, each, loops, .. } = self;
        let steps = if count == self.count { self.steps } else { self.steps(count) };
        let per_step = each * loops.lanes;
        // SAFETY: the caller's promise, and the numbers above.
        unsafe {
            (self.run)(self, source, target, steps, ahead);
            let mut done = steps * per_step;
            while done < count {
                let some = per_step.min(count - done);
                let ahead = units.step.wrapping_mul(signed(done)) >> Self::SHIFT;
                let target = target.wrapping_add(self.bytes(done));
                (loops.last)(self, source.wrapping_offset(ahead), target, some);
                done += some;
            }
        }
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
pub(super) unsafe fn buffered<const F: usize>(
    pick: &Pick<F>,
    source: *const u8,
    target: *mut u8,
    count: usize,
) {
    let mut windows = [0u8; MOST_REACH];
    let mut lanes = [0u8; LINE];
    let before = pick.before(count);
    let first = source.wrapping_offset(pick.begin).wrapping_add(before);
    // SAFETY: the caller's promise; no more units than a step's are in the windows of one, and
    // there is room for the lanes of one.
    unsafe {
        generic::copy_rare(first, windows.as_mut_ptr().wrapping_add(before), pick.read(count));
        let source = windows.as_ptr().wrapping_offset(pick.begin.wrapping_neg());
        (pick.run)(pick, source, lanes.as_mut_ptr(), 1, 0);
        generic::copy_rare(lanes.as_ptr(), target, pick.bytes(count));
    }
}

/// Fewer units than this in a step are no quicker than one by one.
const LEAST: usize = 4;

/// How to pick runs of elements that share bytes. There is one at a time, on the stack.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Elements {
    Nibbles(Pick<2>),
    Crumbs(Pick<4>),
}

impl Elements {
    /// Elements of so many bits, the first of them after so many of its byte.
    pub(crate) fn new(
        kernels: &'static Kernels,
        bits: i64,
        units: Units,
        first: usize,
        count: usize,
    ) -> Option<Self> {
        let picks = kernels.picks.as_ref()?;
        match bits {
            4 => Pick::new(&picks.nibbles, units, first, count).map(Self::Nibbles),
            _ => Pick::new(&picks.crumbs, units, first, count).map(Self::Crumbs),
        }
    }

    /// Picks as many of `count` runs as are whole bytes; their number.
    ///
    /// # Safety
    /// As [`Pick::copy`]; the first must be as far into its byte as was said.
    pub(crate) unsafe fn copy(&self, source: *const u8, target: *mut u8, count: usize) -> usize {
        let count = count & !3;
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Nibbles(pick) => pick.copy(source, target, count, 0),
                Self::Crumbs(pick) => pick.copy(source, target, count, 0),
            }
        }
        count
    }
}
