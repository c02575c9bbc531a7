//! Interleaves streams of units: rows that begin with a unit of each.
//!
//! The idea: a register of each of `n` streams makes `n` registers of rows, by shuffles of the whole:
//! the registers' first half by turns with the second, unit by unit, or the first third with the other
//! two. Once for each prime factor of `n`, and everything is where it belongs ([`runs`]).
//!
//! The trick for targets that begin within a line: rows may be counted from any unit on. From there the
//! streams take the same turns, but others go first, and those that were first have a unit less.
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. Every stream must be readable and the target writable over all rows; they do not overlap.
//! 3. A fence must follow the last store past the caches.

use super::combine::{Scratch, LINE};
use super::opaque::opaque;
use super::strided::{Axis, Block};
use super::vector::{Vector, LANE};
use super::Kernels;
use crate::math::{div, div_rem, parts, signed, wrapped};
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
    /// How many times as many follow, each how much further from the end of the one before.
    pub again: Axis,
    /// Past the caches, where each stream is prefetched so many bytes ahead; the target is aligned to a
    /// line then.
    pub past: Option<usize>,
}

/// Where streams and the target of turns are, and how many of their registers are left until they follow again.
pub(super) struct Course {
    pub at: usize,
    pub target: *mut u8,
    left: usize,
}

impl Turns {
    /// Registers of each stream, until they follow again.
    #[inline(always)]
    fn registers<V: Vector>(&self) -> usize {
        self.blocks * (LINE / V::BYTES)
    }

    /// How often a register of each stream is taken, and where first.
    #[inline(always)]
    pub(super) fn course<V: Vector>(&self) -> (usize, Course) {
        let left = self.registers::<V>();
        (left * self.again.extent, Course { at: 0, target: self.target, left })
    }

    /// Goes on behind such a register, of so many streams.
    #[inline(always)]
    pub(super) fn go_on<V: Vector>(&self, course: &mut Course, len: usize) {
        course.at = course.at.wrapping_add(V::BYTES);
        course.target = course.target.wrapping_add(len * V::BYTES);
        course.left -= 1;
        if course.left == 0 {
            course.left = self.registers::<V>();
            course.at = course.at.wrapping_add(wrapped(self.again.from));
            course.target = course.target.wrapping_offset(self.again.to);
        }
    }
}

/// Bytes of matrices that are interleaved together.
const AT_ONCE: usize = 128 << 10;

/// Does all blocks of streams of as many units.
///
/// # Safety
/// 1, 2; 3 if past the caches.
pub(crate) type Loop = unsafe fn(&[Turns]);

/// Whether loops of so many streams are quicker than units one by one: those that do it by shuffles alone, or of bytes.
/// Zen 4, ns of 400 KB of 2 bytes, through the caches: of ten streams 33,000 for 21,000 transposed, of 13 47,000 for 17,000.
pub(crate) fn are_quick(streams: usize, unit: usize) -> bool {
    match streams {
        2..=6 | 8 | 9 | 16 => true,
        7 => unit <= 2,
        12 => unit <= 4,
        _ => unit == 1,
    }
}

impl Interleave {
    /// Interleaves all rows, as many times as an axis has steps, each as far from the one before as it says; past the
    /// caches if streams are to be prefetched so many bytes ahead, and the target begins where a unit of a line does,
    /// as does each next one.
    ///
    /// # Safety
    /// 1 for `kernels`, 2 of all of them; 3 if past the caches.
    pub(crate) unsafe fn run(&self, all: Axis, kernels: &Kernels, past: Option<usize>) {
        let &Self { len, unit, count, .. } = self;
        let units = len * count;
        let block = len * div(LINE, unit);
        let kernel = (kernels.interleave)(len, unit).filter(|_| units >= block);
        let Some(kernel) = kernel else {
            // SAFETY: the caller's promise.
            return unsafe { self.one_by_one(all, kernels) };
        };
        // So many are still in the second-level cache when what is left of each has its turn.
        for some in parts(0..all.extent, div(AT_ONCE, units * unit).max(1)) {
            let (source, target) = all.moved((self.source, self.target), signed(some.start));
            let (ahead, rest) = div_rem((target as usize).wrapping_neg() % LINE, unit);
            let is_on = rest == 0 && (some.len() == 1 || all.to % signed(LINE) == 0);
            let head = if is_on { ahead } else { 0 };
            let blocks = div(units.saturating_sub(head), block);
            let is_short = head + blocks * block < units;
            let streams = Self { source, target, ..*self };
            let all = Axis { extent: some.len(), ..all };
            // What is before the first line, and behind the last, is made with its neighbours.
            // SAFETY: the caller's promise.
            unsafe {
                kernel(&[
                    streams.turns(0, usize::from(head > 0), all),
                    Turns { past: past.filter(|_| is_on), ..streams.turns(head, blocks, all) },
                    streams.turns(units - block, usize::from(is_short), all),
                ]);
            }
        }
    }

    /// So many blocks from a unit of some row on, of all.
    #[inline(never)]
    fn turns(&self, first: usize, blocks: usize, all: Axis) -> Turns {
        let &Self { source, apart, len, unit, target, .. } = self;
        let (row, begin) = div_rem(first, len);
        let row = source.wrapping_add(row * unit);
        let (mut next, below) =
            (row.wrapping_add(apart.wrapping_mul(begin)), row.wrapping_add(unit));
        let mut sources = [null(); MAX_INTERLEAVED];
        for (slot, at) in sources.iter_mut().take(len).zip(begin + 1..) {
            *slot = next;
            next = if at == len { below } else { next.wrapping_add(apart) };
        }
        let target = target.wrapping_add(first * unit);
        let from = all.from.wrapping_sub(signed(blocks * LINE));
        let to = all.to.wrapping_sub(signed(blocks * len * LINE));
        let again = Axis { from, to, ..all };
        Turns { sources, len, unit, target, blocks, again, past: None }
    }

    /// All units of a stream, and then those of the next.
    ///
    /// # Safety
    /// 2.
    unsafe fn one_by_one(&self, all: Axis, kernels: &Kernels) {
        let &Self { source, apart, len, unit, count, target } = self;
        let outer = Axis { extent: len, from: signed(apart), to: signed(unit) };
        let inner = Axis { extent: count, from: signed(unit), to: signed(len * unit) };
        let block = Block { unit, axes: [outer, inner] };
        // SAFETY: the caller's promise.
        unsafe { block.copy((source, target), all, kernels) };
    }
}

/// How registers are shuffled, for units of some size.
pub(super) trait Shuffle {
    type Register: Vector;

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

    /// The units of five and more registers by turns, one after another.
    ///
    /// # Safety
    /// 1.
    unsafe fn many(
        &self,
        _len: usize,
        _registers: &[Self::Register; MOST_AT_ONCE],
        _put: impl FnMut(Self::Register),
    ) {
    }
}

/// The largest prime number of streams, and one more.
pub(super) const MOST_AT_ONCE: usize = 14;

/// All blocks of `N` streams, which has no prime factors but 2 and 3.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
pub(super) unsafe fn blocks<S: Shuffle, const N: usize>(shuffle: &S, all: &[Turns]) {
    // SAFETY: the caller's promise.
    unsafe {
        for turns in all {
            let mut sources = [null(); N];
            for (slot, source) in sources.iter_mut().zip(turns.sources) {
                *slot = source;
            }
            let (count, mut course) = turns.course::<S::Register>();
            for _ in 0..count {
                let mut registers = [S::Register::zero(); N];
                for (slot, source) in registers.iter_mut().zip(sources) {
                    *slot = S::Register::load(source.wrapping_add(course.at));
                }
                let rows = runs(shuffle, registers);
                if let Some(ahead) = turns.past {
                    for source in sources {
                        S::Register::prefetch(source.wrapping_add(course.at.wrapping_add(ahead)));
                    }
                }
                S::Register::put(rows, course.target, turns.past.is_some());
                turns.go_on::<S::Register>(&mut course, N);
            }
        }
    }
}

/// All blocks of any number of streams that the shuffles can do: by way of the first-level cache.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
pub(super) unsafe fn staged<S: Shuffle>(shuffle: &S, all: &[Turns]) {
    let Some(&Turns { len, .. }) = all.first() else { return };
    let (mut stages, mut left, mut count) = ([(0, 0); 4], len, 0);
    for slot in &mut stages {
        if left > 1 {
            let factor = factor(left);
            *slot = (factor, div(len, factor));
            (left, count) = (div(left, factor), count + 1);
        }
    }
    // A register of each stream on its way to rows.
    let mut scratch = [const { Scratch::<{ MAX_INTERLEAVED * LINE }>::NEW }; 2];
    let rooms = scratch.each_mut().map(Scratch::as_mut_ptr);
    let lines = rooms.map(|room| {
        core::array::from_fn::<_, MAX_INTERLEAVED, _>(|at| {
            room.wrapping_add(at * S::Register::BYTES).cast_const()
        })
    });
    let [first, second] = [(rooms[0], lines[0].as_ptr()), (rooms[1], lines[1].as_ptr())];
    // SAFETY: the caller's promise.
    unsafe {
        for turns in all {
            let (times, mut course) = turns.course::<S::Register>();
            for _ in 0..times {
                if let Some(ahead) = turns.past {
                    // Written out, it would be 500 bytes.
                    for source in turns.sources.iter().take(opaque(len)) {
                        let ahead = course.at.wrapping_add(ahead);
                        S::Register::prefetch(opaque(*source).wrapping_add(ahead));
                    }
                }
                let (mut from, mut offset) = (turns.sources.as_ptr(), course.at);
                for (number, &stage_of) in stages.iter().enumerate().take(count) {
                    let (room, lines) = if number % 2 == 0 { first } else { second };
                    if number + 1 < count {
                        stage(shuffle, stage_of, from, offset, room, false);
                    } else {
                        let past = turns.past.is_some();
                        stage(shuffle, stage_of, from, offset, course.target, past);
                    }
                    (from, offset) = (lines, 0);
                }
                turns.go_on::<S::Register>(&mut course, len);
            }
        }
    }
}

/// The smallest prime factor of numbers up to 16.
pub(super) fn factor(number: usize) -> usize {
    [2, 3, 5, 7].into_iter().find(|factor| number.is_multiple_of(*factor)).unwrap_or(number)
}

/// Registers in `factor` parts of `len` each: these by turns.
///
/// # Safety
/// As [`staged`]; 3 if past the caches.
#[inline(always)]
unsafe fn stage<S: Shuffle>(
    shuffle: &S,
    (factor, len): (usize, usize),
    from: *const *const u8,
    offset: usize,
    mut target: *mut u8,
    past: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let load = |at: usize| S::Register::load((*from.add(at)).wrapping_add(offset));
        let mut put = |register| {
            S::Register::put([register], target, past);
            target = target.wrapping_add(S::Register::BYTES);
        };
        for at in 0..len {
            match factor {
                2 => shuffle.two([load(at), load(at + len)]).into_iter().for_each(&mut put),
                3 => {
                    let registers = [load(at), load(at + len), load(at + 2 * len)];
                    shuffle.three(registers).into_iter().for_each(&mut put);
                }
                _ => {
                    let mut registers = [S::Register::zero(); MOST_AT_ONCE];
                    for (slot, number) in registers.iter_mut().zip(0..factor) {
                        *slot = load(at + number * len);
                    }
                    shuffle.many(factor, &registers, &mut put);
                }
            }
        }
    }
}

/// The units of `N` registers by turns.
///
/// # Safety
/// 1.
#[inline(always)]
unsafe fn runs<S: Shuffle, const N: usize>(
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
pub(super) struct ByLanes<V> {
    two: V,
    three: [[V; 3]; 3],
}

impl<V: InOrder> ByLanes<V> {
    /// For units of as many bytes as those of some streams.
    ///
    /// # Safety
    /// 1.
    #[inline(always)]
    pub(super) unsafe fn of(all: &[Turns]) -> Self {
        let [first, ..] = &ORDERS;
        let unit = all.first().map_or(1, |turns| turns.unit);
        let orders = ORDERS.get(unit.trailing_zeros() as usize).unwrap_or(first);
        // SAFETY: the caller's promise.
        unsafe {
            let three = orders.three.map(|orders| orders.map(|order| V::splat(&order)));
            Self { two: V::splat(&orders.two), three }
        }
    }
}

impl<V: InOrder> Shuffle for ByLanes<V> {
    type Register = V;

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

/// Units of 16 bytes, which need no shuffles: any number of streams, by registers of one or two lanes.
///
/// # Safety
/// 1, 2; 3 if past the caches.
#[inline(always)]
pub(super) unsafe fn lanes<V: Vector>(all: &[Turns]) {
    for turns in all {
        let &Turns { sources, len, past, .. } = turns;
        // Of each register of a few rows, where its first lane is, and how far from there the next.
        let mut registers = [(null::<u8>(), 0); MAX_INTERLEAVED];
        let unit = |number: usize| {
            let (row, stream) = div_rem(number, len);
            sources.get(stream).map_or(null(), |source| source.wrapping_add(row * LANE))
        };
        for (slot, number) in registers.iter_mut().take(len).zip((0..).step_by(V::LANES)) {
            let (first, next) = (unit(number), unit(number + V::LANES - 1));
            *slot = (first, (next as usize).wrapping_sub(first as usize));
        }
        let (times, mut course) = turns.course::<V>();
        for _ in 0..times {
            let mut target = course.target;
            for (first, apart) in registers.iter().take(len) {
                // SAFETY: the caller's promise.
                unsafe {
                    let register = V::load_lanes(first.wrapping_add(course.at), *apart);
                    V::put([register], target, past.is_some());
                }
                target = target.wrapping_add(V::BYTES);
            }
            turns.go_on::<V>(&mut course, len);
        }
    }
}

/// The loops of a level: the content of a module.
macro_rules! interleave {
    (#[$feature:meta] vector: $vector:ty) => {
        use $crate::copy::kernel::interleave::{self as loops, ByLanes, Loop, Turns};

        $crate::copy::kernel::table::inlined! { [#[$feature]]
            fn blocks<const N: usize>(all: &[Turns]) = loops::blocks::<_, N>(&ByLanes::<$vector>::of(all), all);
            fn lanes(all: &[Turns]) = loops::lanes::<$vector>(all);
            fn staged(all: &[Turns]) = loops::staged(&ByLanes::<$vector>::of(all), all);
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
                (9 | 12 | 16, _) => staged,
                _ => return None,
            })
        }
    };
}
pub(super) use interleave;
