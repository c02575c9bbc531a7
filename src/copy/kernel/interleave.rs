//! Interleaves streams of units: rows that begin with a unit of each.
//!
//! The idea: a register of each of `n` streams makes `n` registers of rows, by shuffles of the whole:
//! the registers' first half by turns with the second, unit by unit, or the first third with the other
//! two. Once for each prime factor of `n`, and everything is where it belongs ([`woven`]).
//!
//! The trick for targets that begin within a line: rows may be counted from any unit on. From there the
//! streams take the same turns, but others go first, and those that were first have a unit less.
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. Every stream must be readable and the target writable over all rows; they do not overlap.
//! 3. A fence must follow the last store past the caches.

// As in `generic.rs`.
#![allow(clippy::inline_always)]

use super::combine::LINE;
use super::generic::chunk;
use super::vector::{Vector, LANE};
use super::Kernels;
use crate::math::div_rem;
use core::ops::Range;
use core::ptr::null;

/// The most streams that are interleaved at a time.
pub(crate) const MAX_INTERLEAVED: usize = 16;

/// `count` rows of a unit of `unit` bytes from each of `len` streams, which begin `apart` bytes
/// (backwards: wrapped) from one another.
#[derive(Clone, Copy)]
pub(crate) struct Interleave {
    pub source: *const u8,
    pub apart: usize,
    pub len: usize,
    pub unit: usize,
    pub count: usize,
    pub target: *mut u8,
}

/// Streams that take turns: a line of each in every block.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    pub sources: [*const u8; MAX_INTERLEAVED],
    pub len: usize,
    pub unit: usize,
    pub target: *mut u8,
    pub blocks: usize,
    /// Past the caches, where each stream is prefetched so many bytes ahead; the target is aligned to a
    /// line then.
    pub past: Option<usize>,
}

/// Does all blocks of streams of as many units.
///
/// # Safety
/// 1, 2; 3 if past the caches.
pub(crate) type Loop = unsafe fn(&[Turns]);

impl Interleave {
    /// Interleaves all rows; past the caches if streams are to be prefetched so many bytes ahead, and
    /// the target begins where a unit of a line does.
    ///
    /// # Safety
    /// 1 for `kernels`, 2; 3 if past the caches.
    pub(crate) unsafe fn run(&self, kernels: &Kernels, past: Option<usize>) {
        let &Self { len, unit, count, target, .. } = self;
        let all = len * count;
        let block = len * div_rem(LINE, unit).0;
        let kernel = (kernels.interleave)(len, unit).filter(|_| all >= block);
        let Some(kernel) = kernel else {
            // SAFETY: the caller's promise.
            return unsafe { self.units(0..all) };
        };
        let (ahead, rest) = div_rem((target as usize).wrapping_neg() % LINE, unit);
        let head = if rest == 0 { ahead } else { 0 };
        let blocks = div_rem(all.saturating_sub(head), block).0;
        let is_short = head + blocks * block < all;
        // What is before the first line, and behind the last, is made with its neighbours.
        // SAFETY: the caller's promise.
        unsafe {
            kernel(&[
                Turns { blocks: usize::from(head > 0), ..self.turns(0) },
                Turns { blocks, past: past.filter(|_| rest == 0), ..self.turns(head) },
                Turns { blocks: usize::from(is_short), ..self.turns(all - block) },
            ]);
        }
    }

    /// From a unit of some row on.
    fn turns(&self, first: usize) -> Turns {
        let &Self { source, apart, len, unit, target, .. } = self;
        let (row, begin) = div_rem(first, len);
        let mut sources = [null(); MAX_INTERLEAVED];
        let streams = (begin..len).map(|at| (at, row)).chain((0..begin).map(|at| (at, row + 1)));
        for (slot, (at, row)) in sources.iter_mut().zip(streams) {
            *slot = source.wrapping_add(apart.wrapping_mul(at)).wrapping_add(row * unit);
        }
        let target = target.wrapping_add(first * unit);
        Turns { sources, len, unit, target, blocks: 0, past: None }
    }

    /// Some units of the rows, one by one.
    ///
    /// # Safety
    /// 2.
    unsafe fn units(&self, units: Range<usize>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.unit {
                1 => self.units_of::<1>(units),
                2 => self.units_of::<2>(units),
                4 => self.units_of::<4>(units),
                8 => self.units_of::<8>(units),
                _ => self.units_of::<16>(units),
            }
        }
    }

    /// # Safety
    /// 2; units must be of `W` bytes.
    unsafe fn units_of<const W: usize>(&self, units: Range<usize>) {
        let (mut row, mut stream) = div_rem(units.start, self.len);
        for at in units {
            let source = self.source.wrapping_add(self.apart.wrapping_mul(stream));
            // SAFETY: the caller's promise.
            unsafe { chunk::<W>(source.wrapping_add(row * W), self.target.add(at * W), 0) };
            stream += 1;
            if stream == self.len {
                (row, stream) = (row + 1, 0);
            }
        }
    }
}

/// How registers are shuffled, for units of some size.
pub(super) trait Shuffle: Copy {
    type Register: Vector;

    /// For units of so many bytes.
    ///
    /// # Safety
    /// 1.
    unsafe fn new(unit: usize) -> Self;

    /// The units of two registers by turns.
    ///
    /// # Safety
    /// 1.
    unsafe fn two(&self, registers: [Self::Register; 2]) -> [Self::Register; 2];

    /// The units of three registers by turns.
    ///
    /// # Safety
    /// 1.
    unsafe fn three(&self, registers: [Self::Register; 3]) -> [Self::Register; 3];
}

/// All blocks of `N` streams, which has no prime factors but 2 and 3.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
pub(super) unsafe fn blocks<S: Shuffle, const N: usize>(all: &[Turns]) {
    // SAFETY: the caller's promise.
    unsafe {
        let shuffle = S::new(all.first().map_or(1, |turns| turns.unit));
        for turns in all {
            if let Some(ahead) = turns.past {
                some_blocks::<S, N, true>(&shuffle, turns, ahead);
            } else {
                some_blocks::<S, N, false>(&shuffle, turns, 0);
            }
        }
    }
}

/// # Safety
/// As [`blocks`].
#[inline(always)]
unsafe fn some_blocks<S: Shuffle, const N: usize, const PAST: bool>(
    shuffle: &S,
    turns: &Turns,
    ahead: usize,
) {
    let mut sources = [null(); N];
    for (slot, source) in sources.iter_mut().zip(turns.sources) {
        *slot = source;
    }
    let (mut target, mut at) = (turns.target, 0);
    for _ in 0..turns.blocks {
        if PAST {
            for source in sources {
                S::Register::prefetch(source.wrapping_add(at + ahead));
            }
        }
        for _ in 0..LINE / S::Register::BYTES {
            // SAFETY: the caller's promise.
            unsafe {
                let mut registers = [S::Register::zero(); N];
                for (slot, source) in registers.iter_mut().zip(sources) {
                    *slot = S::Register::load(source.wrapping_add(at));
                }
                S::Register::put::<N, PAST>(woven(shuffle, registers), target);
            }
            at += S::Register::BYTES;
            target = target.wrapping_add(N * S::Register::BYTES);
        }
    }
}

/// The units of `N` registers by turns.
///
/// # Safety
/// 1.
#[inline(always)]
unsafe fn woven<S: Shuffle, const N: usize>(
    shuffle: &S,
    mut registers: [S::Register; N],
) -> [S::Register; N] {
    let mut left = N;
    // SAFETY: the caller's promise.
    unsafe {
        while left.is_multiple_of(2) {
            let before = registers;
            let (first, second) = before.split_at(N / 2);
            for (slots, (a, b)) in registers.chunks_exact_mut(2).zip(first.iter().zip(second)) {
                slots.copy_from_slice(&shuffle.two([*a, *b]));
            }
            left /= 2;
        }
        while left.is_multiple_of(3) {
            let before = registers;
            let (first, rest) = before.split_at(N / 3);
            let (second, third) = rest.split_at(N / 3);
            let parts = first.iter().zip(second).zip(third);
            for (slots, ((a, b), c)) in registers.chunks_exact_mut(3).zip(parts) {
                slots.copy_from_slice(&shuffle.three([*a, *b, *c]));
            }
            left /= 3;
        }
    }
    registers
}

/// Registers whose lanes can be put in order.
pub(super) trait InOrder: Vector {
    /// Lane `l` of register `i` is the `l * N + i`-th of all: one behind the other.
    ///
    /// # Safety
    /// 1.
    unsafe fn in_order<const N: usize>(registers: [Self; N]) -> [Self; N];
}

/// The number of the register, of so many, that a byte of rows comes from, and which of its bytes it is.
#[allow(clippy::cast_possible_truncation)] // of no more than 64
pub(super) const fn origin(byte: usize, unit: usize, registers: usize) -> (u8, u8) {
    let number = byte / unit;
    ((number % registers) as u8, (number / registers * unit + byte % unit) as u8)
}

/// Shuffles within lanes, of units of up to 8 bytes.
#[derive(Clone, Copy)]
struct Orders {
    /// Of the halves of two lanes, one behind the other.
    two: [u8; LANE],
    /// Of each of three lanes from each of the three: where bytes come from, or 0x80 for none.
    three: [[[u8; LANE]; 3]; 3],
}

/// Of units of 1, 2, 4 and 8 bytes.
static ORDERS: [Orders; 4] = [Orders::of(1), Orders::of(2), Orders::of(4), Orders::of(8)];

impl Orders {
    #[allow(clippy::indexing_slicing, clippy::large_types_passed_by_value)] // done by the compiler
    const fn of(unit: usize) -> Self {
        let (mut two, mut three) = ([0; LANE], [[[0x80; LANE]; 3]; 3]);
        let mut byte = 0;
        while byte < 3 * LANE {
            if byte < LANE {
                let (half, from) = origin(byte, unit, 2);
                two[byte] = half * 8 + from;
            }
            let (register, from) = origin(byte, unit, 3);
            three[byte / LANE][register as usize][byte % LANE] = from;
            byte += 1;
        }
        Self { two, three }
    }
}

/// By shuffles within lanes.
#[derive(Clone, Copy)]
pub(super) struct ByLanes<V> {
    two: V,
    three: [[V; 3]; 3],
}

impl<V: InOrder> Shuffle for ByLanes<V> {
    type Register = V;

    #[inline(always)]
    unsafe fn new(unit: usize) -> Self {
        let [first, ..] = &ORDERS;
        let orders = ORDERS.get(unit.trailing_zeros() as usize).unwrap_or(first);
        // SAFETY: the caller's promise.
        unsafe {
            let three = orders.three.map(|orders| orders.map(|order| V::splat(&order)));
            Self { two: V::splat(&orders.two), three }
        }
    }

    #[inline(always)]
    unsafe fn two(&self, [a, b]: [V; 2]) -> [V; 2] {
        // SAFETY: the caller's promise.
        unsafe { V::in_order(a.interleaved::<2>(b)).map(|lanes| lanes.shuffled(self.two)) }
    }

    #[inline(always)]
    unsafe fn three(&self, registers: [V; 3]) -> [V; 3] {
        // SAFETY: the caller's promise.
        unsafe {
            V::in_order(self.three.map(|orders| {
                let mut lanes = V::zero();
                for (register, order) in registers.into_iter().zip(orders) {
                    lanes = lanes.or(register.shuffled(order));
                }
                lanes
            }))
        }
    }
}

/// Units of 16 bytes, which need no shuffles: any number of streams.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
pub(super) unsafe fn lanes<V: Vector, const P: usize>(all: &[Turns]) {
    for turns in all {
        let mut sources = turns.sources;
        let Some(sources) = sources.get_mut(..turns.len) else { return };
        let mut next = 0;
        let mut take = || {
            let Some(source) = sources.get_mut(next) else { return null() };
            next = if next + 1 == turns.len { 0 } else { next + 1 };
            let lane = *source;
            *source = lane.wrapping_add(LANE);
            lane
        };
        let mut target = turns.target;
        for _ in 0..turns.blocks * turns.len {
            // SAFETY: the caller's promise.
            unsafe {
                let mut line = [V::zero(); P];
                for part in &mut line {
                    let first = take();
                    let second = if V::LANES > 1 { take() } else { first };
                    *part = V::load_lanes(first, (second as usize).wrapping_sub(first as usize));
                }
                if turns.past.is_some() {
                    V::put::<P, true>(line, target);
                } else {
                    V::put::<P, false>(line, target);
                }
            }
            target = target.wrapping_add(LINE);
        }
    }
}

/// The loops of a level: the content of a module.
macro_rules! interleave {
    (#[$feature:meta] vector: $vector:ty) => {
        use $crate::copy::kernel::combine::LINE;
        use $crate::copy::kernel::interleave::{self as loops, ByLanes, Loop, Turns};
        use $crate::copy::kernel::vector::Vector;

        #[$feature]
        unsafe fn blocks<const N: usize>(all: &[Turns]) {
            // SAFETY: the caller's promise.
            unsafe { loops::blocks::<ByLanes<$vector>, N>(all) };
        }
        #[$feature]
        unsafe fn lanes(all: &[Turns]) {
            const LINE_PARTS: usize = LINE / <$vector as Vector>::BYTES;
            // SAFETY: the caller's promise.
            unsafe { loops::lanes::<$vector, LINE_PARTS>(all) };
        }
        /// The loop for so many streams of units of so many bytes.
        pub(in $crate::copy::kernel) fn interleave(len: usize, unit: usize) -> Option<Loop> {
            Some(match (len, unit) {
                (_, 16) => lanes,
                (2, _) => blocks::<2>,
                (3, _) => blocks::<3>,
                (4, _) => blocks::<4>,
                (6, _) => blocks::<6>,
                (8, _) => blocks::<8>,
                (9, _) => blocks::<9>,
                (12, _) => blocks::<12>,
                (16, _) => blocks::<16>,
                _ => return None,
            })
        }
    };
}
pub(super) use interleave;
