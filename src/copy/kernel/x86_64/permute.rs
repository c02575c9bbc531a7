//! Deinterleaves short runs by byte permutes.
//!
//! The idea: of as many rows as give about 64 bytes of a piece, what a group of neighbouring pieces has is
//! loaded into registers. A line of each piece is put together by permutes of two registers: the first takes
//! bytes from the first two, each further one takes some from another register and keeps the others, for
//! which its indices point at themselves. One loop serves every width.
//!
//! Tricks. A line of 64 bytes is stored whether the runs fill it or not: the next store overwrites what is
//! too much; only the last rows are stored under masks. Where a group has but a half, or a quarter, of 64
//! bytes of a row, a register is loaded from as many rows, by lanes. More equal pieces than indices fit into
//! registers go by groups: the same indices serve every group, from where its first piece lies, one group
//! after the other in each step. Were rows read once for each group, out of the first-level cache, eight
//! pieces of 12 bytes would reach .63 of the flat copy on Zen 5 for .80, six of 6 .65 for .82. Only more than
//! [`MOST_STREAMS`] pieces take turns: 16, a power of two apart, would have all of their lines in one set of
//! the first-level cache (.23 for .62).
//!
//! Preconditions: indices stay in registers, so there are at most [`MOST_PIECES`] pieces in a group and
//! [`MOST_REGISTERS`] registers of rows at a time.
//!
//! # Safety
//! 1. The CPU must have AVX-512 F, BW, VL and VBMI.
//! 2. Every row must be readable up to the next one, the last one over its runs; every target must be
//!    writable for a run of each row. They do not overlap.
//! 3. A fence must follow the last store past the caches.

use super::super::combine::LINE;
use super::super::opaque::opaque;
use super::super::strided::Axis;
use super::super::vector::Vector;
use super::super::{MAX_DEINTERLEAVED, MOST_OF_BLOCKS};
use crate::math::{div, div_ceil, signed};
use core::arch::asm;
use core::arch::x86_64::*;
use core::mem::transmute;
use core::ptr::null_mut;

/// The longest runs: of longer ones, a line is no more than a copy or two.
pub(super) const LONGEST: usize = LINE / 2;
pub(super) const MOST_PIECES: usize = 5;
pub(super) const MOST_REGISTERS: usize = 5;
/// Registers that may hold indices, of 32.
pub(super) const MOST_INDICES: usize = MOST_PIECES * (MOST_REGISTERS - 1);
/// The most pieces at a time in registers, and where they are not.
pub(super) const MOST_STREAMS: usize = 8;
pub(super) const MOST_TARGETS: usize = MAX_DEINTERLEAVED;

/// How a group of pieces is taken out of some rows at a time.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    pub pieces: usize,
    /// Bytes from the first piece's begin to the last one's end, and from a row to the next.
    pub width: usize,
    pub step: usize,
    pub rows: usize,
    /// Registers that hold what the pieces have of so many rows, two at least, and lanes of each.
    pub registers: usize,
    lanes: usize,
    /// Rows of which a lane holds what the pieces have, and bytes from one lane to the next; 0, and a
    /// line, where all lies together.
    each: usize,
    apart: usize,
    /// Whether registers are loaded and stored as two halves.
    pub is_halved: bool,
}

impl Packing {
    /// The quickest for pieces of so many bytes at the most that lie within `width` bytes of a row, by so
    /// many registers, and lanes, at the most.
    #[inline(never)] // once in the library
    pub(super) fn quickest(
        pieces: usize,
        longest: usize,
        width: usize,
        step: usize,
        (most, most_lanes): (usize, usize),
        is_halved: bool,
    ) -> Option<Self> {
        let most_rows = div(LINE, longest);
        let mut best: Option<Self> = None;
        let mut see = |packing: Self| {
            if best
                .as_ref()
                .is_none_or(|best| packing.cost() * best.rows < best.cost() * packing.rows)
            {
                best = Some(packing);
            }
            packing.rows == most_rows
        };
        // Equal ones as there is a loop by pointers: 5×24 bytes .66 for .58.
        let is_whole = is_halved && pieces == MOST_PIECES && width == pieces * longest;
        let least = if is_whole { MOST_REGISTERS } else { 2 };
        for registers in least..=most {
            let Some(rest) = (registers * LINE).checked_sub(width) else { continue };
            let rows = most_rows.min(div(rest, step) + 1);
            let (lanes, each, apart) = (1, 0, LINE);
            if see(Self { pieces, width, step, rows, registers, lanes, each, apart, is_halved }) {
                break;
            }
        }
        for lanes in [1, 2, 4] {
            if lanes > most_lanes {
                break;
            }
            let Some(rest) = (div(LINE, lanes)).checked_sub(width) else { break };
            let each = div(rest, step) + 1;
            for registers in 2..=most {
                let rows = most_rows.min(registers * lanes * each);
                let apart = each * step;
                if see(Self { pieces, width, step, rows, registers, lanes, each, apart, is_halved })
                {
                    break;
                }
            }
        }
        best
    }

    /// About how long it takes: a load, which may cross lines, counts as two permutes, and a store as four.
    pub(super) fn cost(&self) -> usize {
        2 * self.registers * self.lanes + self.pieces * (self.registers - 1) + 4 * self.pieces
    }

    /// Bytes that are loaded from the begin of a group.
    pub(super) fn reach(&self) -> usize {
        (self.registers * self.lanes - 1) * self.apart + div(LINE, self.lanes)
    }

    /// Tables of a group.
    pub(super) fn tables(&self) -> usize {
        self.pieces * (self.registers - 1)
    }
}

#[repr(align(64))]
#[derive(Clone, Copy)]
pub(super) struct Indices([u8; LINE]);

impl Indices {
    pub(super) const NONE: Self = Self([0; LINE]);

    /// # Safety
    /// 1.
    #[inline(always)]
    unsafe fn load(&self) -> __m512i {
        // SAFETY: it has so many bytes.
        unsafe { _mm512_loadu_epi8(self.0.as_ptr().cast()) }
    }
}

/// A layout, and what it takes.
pub(super) struct Permute<'a> {
    pub packing: Packing,
    /// Bytes of each piece's runs, and how far each stream advances in a step.
    pub units: [usize; MOST_PIECES],
    by: [usize; MOST_STREAMS],
    /// Of each piece, for each register but the first.
    indices: &'a [Indices],
}

/// Where groups of pieces come from and go to. What is stored by whole registers lies in one page: on Zen 4 a store to two
/// pages waits for those past the caches before it, some 90 ns.
#[repr(C, align(64))]
pub(super) struct Streams {
    /// Where all of their pieces go.
    pub targets: [*mut u8; MOST_TARGETS],
    /// Bytes from a row's begin to each group.
    pub offsets: [u16; MOST_STREAMS],
    pub groups: usize,
    /// The loop for so many groups, if there is one.
    pub run: Option<Loop>,
    /// Whether it prefetches where lines go, if it can.
    pub are_owned: bool,
}

impl Access {
    pub const PLAIN: Self = Self { ahead: 0, share: 1, past: false };
}

impl Bounds {
    /// So many bytes may be read, and none written but those that there are.
    pub(super) const fn reading(readable: usize) -> Self {
        Self { readable, spare: 0, access: Access::PLAIN }
    }
}

impl Streams {
    /// Of one group.
    pub(super) fn of_one(packing: &Packing, targets: impl Iterator<Item = *mut u8>) -> Self {
        let mut streams = Self { groups: 1, run: loops(packing, 1), ..Self::NONE };
        for (slot, target) in streams.targets.iter_mut().zip(targets) {
            *slot = target;
        }
        streams
    }

    pub(super) const NONE: Self = Self {
        groups: 0,
        run: None,
        are_owned: false,
        offsets: [0; MOST_STREAMS],
        targets: [null_mut(); MOST_TARGETS],
    };

    /// Of one group, without its loop. (By [`Streams::of_one`], pictures' blocks are 4 % slower on Zen 5.)
    pub(super) fn to(targets: &[*mut u8; MAX_DEINTERLEAVED]) -> Self {
        let [first, second, third, fourth, fifth, ..] = *targets;
        let mut streams = Self { groups: 1, ..Self::NONE };
        if let Some(some) = streams.targets.first_chunk_mut() {
            *some = [first, second, third, fourth, fifth];
        }
        streams
    }

    /// Makes one store of what may have been stored piece by piece: to be loaded at once, that would have
    /// to be in the cache, behind all stores before it.
    ///
    /// # Safety
    /// 1.
    #[inline(always)]
    pub(super) unsafe fn join(&mut self) {
        // The compiler loads each for itself.
        let Some(targets) = self.targets.first_chunk::<MOST_STREAMS>() else { return };
        let [first, second, third, fourth, fifth, sixth, seventh, eighth] =
            targets.map(|target| opaque(target) as i64);
        // SAFETY: 1; it has so many.
        unsafe {
            let all = _mm512_set_epi64(eighth, seventh, sixth, fifth, fourth, third, second, first);
            _mm512_storeu_epi64(self.targets.as_mut_ptr().cast(), all);
        }
    }
}

/// Takes steps: from where, to where, and how.
pub(super) type Loop = unsafe fn(&Permute<'_>, *const u8, &mut Streams, &Course, Access);

/// Blocks of rows. Several, and first steps that go on by less, are for one group of [`MOST_OF_BLOCKS`] equal
/// pieces at the most.
pub(super) struct Course {
    /// Of each block.
    pub rows: usize,
    /// So many rows the first step of a block goes on by: what it takes more is taken once more.
    pub first: usize,
    /// How many, and how far one begins behind where the one before ends.
    pub blocks: Axis,
}

/// How lines are loaded and stored.
#[derive(Clone, Copy)]
pub(super) struct Access {
    /// So many bytes ahead the input is prefetched; 0 for not at all.
    pub ahead: usize,
    /// By so many groups, each its share of what a step reads.
    pub share: usize,
    /// Whether lines go past the caches.
    pub past: bool,
}

/// How far a copy may reach.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Bytes that may be read from the source on.
    pub readable: usize,
    /// Bytes that may be written behind the last one that each target gets.
    pub spare: usize,
    pub access: Access,
}

impl<'a> Permute<'a> {
    /// For pieces of so many bytes that lie so far from the begin of the first.
    ///
    /// # Safety
    /// 1.
    #[inline(never)] // once in the library
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn new(
        packing: Packing,
        indices: &'a mut [Indices],
        pieces: &mut dyn Iterator<Item = (usize, usize)>,
    ) -> Option<Self> {
        let mut units = [0; MOST_PIECES];
        let tables = indices.chunks_exact_mut((packing.registers - 1).max(1));
        for ((slot, (offset, unit)), tables) in units.iter_mut().zip(pieces).zip(tables) {
            *slot = unit;
            // SAFETY: 1.
            unsafe { fill(tables, offset, unit, &packing) };
        }
        let mut by = [0; MOST_STREAMS];
        for (slot, unit) in by.iter_mut().zip(units.iter().take(packing.pieces).cycle()) {
            *slot = packing.rows * unit;
        }
        (indices.len() >= packing.tables()).then_some(Self { packing, units, by, indices })
    }

    /// All indices of `N` pieces out of `R` registers, those of a piece so many behind the one's before.
    ///
    /// # Safety
    /// 1; there must be as many.
    #[inline(always)]
    unsafe fn indices_of<const N: usize, const R: usize>(&self, apart: usize) -> [[__m512i; R]; N] {
        let mut tables = self.indices.as_ptr();
        // SAFETY: the caller's promise.
        unsafe {
            let mut indices = [[_mm512_setzero_si512(); R]; N];
            for slots in &mut indices {
                for (at, slot) in slots.iter_mut().take(R - 1).enumerate() {
                    *slot = (*tables.wrapping_add(at)).load();
                }
                tables = tables.wrapping_add(apart);
            }
            indices
        }
    }

    /// Takes the runs of `rows` rows to their targets, which advance, and those of some rows behind them
    /// as well if these follow: `left` are left to be taken. Past the caches, targets must begin lines.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn copy(
        &self,
        source: *const u8,
        streams: &mut Streams,
        rows: usize,
        left: usize,
        bounds: Bounds,
    ) {
        let Packing { pieces, step, rows: each, .. } = self.packing;
        let Bounds { readable, spare, access } = bounds;
        let last =
            streams.offsets.iter().take(streams.groups).max().map_or(0, |at| usize::from(*at));
        let (loads, mut count) = (last + self.packing.reach(), div(rows, each));
        let unit = self.units.iter().take(pieces).min().copied().unwrap_or(1);
        if readable < rows * step + loads || left * unit + spare < rows * unit + LINE {
            // So often a line may be loaded from all registers, and stored to all targets.
            let times = |bytes: usize, needs: usize, step: usize| {
                bytes.checked_sub(needs).map_or(0, |rest| div(rest, step) + 1)
            };
            count = count.min(times(readable, loads, each * step)).min(times(
                left * unit + spare,
                LINE,
                each * unit,
            ));
        }
        // SAFETY: the caller's promise, and the numbers above.
        unsafe {
            streams.join();
            match streams.run {
                Some(run) => {
                    let course = Course { first: each, rows: count * each, blocks: Axis::ONE };
                    run(self, source, streams, &course, access);
                }
                None => count = 0,
            }
            let mut first = count * each;
            while first < rows {
                let source = source.wrapping_add(first * step);
                let few = SomeRows { source, count: each.min(rows - first) };
                self.masked(few, SomeRows::NONE, streams, false);
                first += each.max(1);
            }
        }
    }

    /// Takes the runs of some rows and of some that lie elsewhere, together no more than it takes at a time,
    /// and touches nothing else. Past the caches, a line that they fill.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn masked(
        &self,
        rows: SomeRows,
        others: SomeRows,
        streams: &mut Streams,
        past: bool,
    ) {
        let Packing { pieces, width, step, registers: len, lanes, apart, .. } = self.packing;
        let (size, count) = (div(LINE, lanes), rows.count + others.count);
        let end = |count: usize| count.checked_sub(1).map_or(0, |last| last * step + width);
        let (first, behind, all) = (end(rows.count), rows.count * step, end(count));
        let offsets = streams.offsets.iter().take(streams.groups);
        for (offset, targets) in offsets.zip(streams.targets.chunks_exact_mut(pieces.max(1))) {
            // Where the others would begin if they went on.
            let other = others.source.wrapping_add(usize::from(*offset)).wrapping_sub(behind);
            let from = rows.source.wrapping_add(usize::from(*offset));
            // A lane has whole rows, or begins where the one before ends.
            let mut begin = 0;
            let mut registers = [_mm512_setzero_si512(); MOST_REGISTERS];
            // SAFETY: masks end where rows and targets do.
            unsafe {
                for register in registers.iter_mut().take(len) {
                    for at in (0..LINE).step_by(size.max(1)) {
                        let mask =
                            |end: usize| first_bytes(end.saturating_sub(begin).min(size)) << at;
                        let place = |source: *const u8| source.wrapping_add(begin).wrapping_sub(at);
                        let bytes = _mm512_maskz_loadu_epi8(mask(first), place(from).cast());
                        *register = _mm512_or_si512(*register, bytes);
                        if others.count > 0 {
                            let mask = mask(all) & !mask(behind);
                            let bytes = _mm512_maskz_loadu_epi8(mask, place(other).cast());
                            *register = _mm512_or_si512(*register, bytes);
                        }
                        begin += apart;
                    }
                }
                let indices = self.indices.chunks_exact((len - 1).max(1));
                for ((target, unit), indices) in targets.iter_mut().zip(self.units).zip(indices) {
                    let [mut line, others @ ..] = registers;
                    for (register, indices) in others.into_iter().zip(indices) {
                        line = _mm512_permutex2var_epi8(line, indices.load(), register);
                    }
                    if past && count * unit == LINE {
                        _mm512_stream_si512(target.cast(), line);
                    } else {
                        _mm512_mask_storeu_epi8(target.cast(), first_bytes(count * unit), line);
                    }
                    *target = target.wrapping_add(count * unit);
                }
            }
        }
    }
}

/// A few rows.
#[derive(Clone, Copy)]
pub(super) struct SomeRows {
    pub source: *const u8,
    pub count: usize,
}

impl SomeRows {
    pub(super) const NONE: Self = Self { source: core::ptr::null(), count: 0 };
}

/// Where the bytes of a line of a piece come from: of each register but the first, a number below 64
/// keeps the byte there is, or takes it from the first one, and 64 more is the register itself.
///
/// # Safety
/// 1.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn fill(indices: &mut [Indices], offset: usize, unit: usize, packing: &Packing) {
    let &Packing { step, lanes, each, apart, .. } = packing;
    // Only what lies within a register counts in the end: numbers may wrap.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    let all = |number: usize| _mm512_set1_epi16(number as u16 as i16);
    // Of numbers below 64.
    let by = |number: __m512i, of: usize| match of {
        1 => number,
        of => _mm512_mulhi_epu16(number, all(div(0x1_0000, of) + 1)),
    };
    let from = |byte: __m512i| {
        let row = by(byte, unit);
        let at = _mm512_add_epi16(_mm512_mullo_epi16(row, all(step.wrapping_sub(unit))), byte);
        let at = _mm512_add_epi16(at, all(offset));
        if each == 0 {
            return at;
        }
        let between = (div(LINE, lanes)).wrapping_sub(apart);
        _mm512_add_epi16(at, _mm512_mullo_epi16(by(row, each), all(between)))
    };
    // SAFETY: both are as long as registers.
    unsafe {
        let number = |at: usize| u16::try_from(at).unwrap_or(0);
        let bytes: [[u16; LINE / 2]; 2] =
            core::array::from_fn(|half| core::array::from_fn(|at| number(half * LINE / 2 + at)));
        let [low, high] = bytes.map(|half| from(_mm512_loadu_epi8(half.as_ptr().cast())));
        let table = |step: u8| {
            let mut bytes = [0; LINE];
            for (at, slot) in (0u8..).zip(&mut bytes) {
                *slot = at * step;
            }
            Indices(bytes).load()
        };
        let (kept, even) = (table(1), table(2));
        let at = _mm512_permutex2var_epi8(low, even, high);
        let at = _mm512_and_si512(at, _mm512_set1_epi8(63));
        let [low, high] = [low, high].map(|at| _mm512_srli_epi16::<6>(at));
        let from = _mm512_permutex2var_epi8(low, even, high);
        let second = _mm512_or_si512(at, _mm512_set1_epi8(64));
        let first = _mm512_cmpeq_epi8_mask(from, _mm512_setzero_si512());
        let mut line = _mm512_mask_mov_epi8(kept, first, at);
        for (number, slot) in (1i8..).zip(indices) {
            let is_there = _mm512_cmpeq_epi8_mask(from, _mm512_set1_epi8(number));
            line = _mm512_mask_mov_epi8(line, is_there, second);
            _mm512_storeu_epi8(slot.0.as_mut_ptr().cast(), line);
            line = kept;
        }
    }
}

/// Registers that there are loops for, where a group of so many pieces goes by itself: what lies together
/// takes no more.
pub(super) fn most_registers(pieces: usize) -> usize {
    pieces.clamp(3, MOST_PIECES)
}

/// The loop for so many pieces and registers, and groups at a time. No two groups of three or four pieces take
/// fewer registers.
#[inline(never)] // once in the library
pub(super) fn loops(packing: &Packing, groups: usize) -> Option<Loop> {
    let &Packing { pieces, registers, lanes, apart, is_halved, .. } = packing;
    if is_halved && groups > 1 {
        return match (pieces, registers) {
            (2, 2 | 3) => Some(by_offset::<2, 3>),
            (4, 4 | 5) => Some(by_offset::<4, 5>),
            _ => None,
        };
    }
    let is_plain = apart == LINE && lanes == 1;
    let has_pointers = is_halved && (is_plain || pieces == 2);
    macro_rules! find {
        ($($groups:tt: $($pieces:tt $registers:tt),*;)* ) => {
            match (groups, pieces, registers) {
                (1, 2, 2) if has_pointers => by_pointers::<2, 2>,
                (1, 2, 3) if has_pointers => by_pointers::<2, 3>,
                (1, 3, 3) if has_pointers => by_pointers::<3, 3>,
                (1, 4, 4) if has_pointers => by_pointers::<4, 4>,
                (1, 5, 5) if has_pointers => by_pointers::<5, 5>,
                (2, 4, 5) => steps::<4, 5, 2, true>,
                $($(($groups, $pieces, $registers) => steps::<$pieces, $registers, $groups, false>,)*)*
                _ => return None,
            }
        };
    }
    Some(find! {
        1: 2 2, 2 3, 3 2, 3 3, 4 2, 4 3, 4 4, 5 2, 5 3, 5 4, 5 5;
        2: 3 3, 3 4, 3 5, 4 4;
        3: 2 2, 2 3;
        4: 2 2, 2 3;
    })
}

/// [`steps`] of one group with targets in general registers, for CPUs that take them out of others no sooner than
/// they permute. Zen 4, share of the flat copy in 1 MiB: 2×12 bytes .86 for .83, 3×24 .82 for .71, 5×12 .80 for .61; 13 of
/// 1 to 13 bytes by two .50 for .46.
///
/// # Safety
/// That of [`steps`]; registers must be of one lane and lie together, but for those of two pieces.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn by_pointers<const N: usize, const R: usize>(
    permute: &Permute<'_>,
    source: *const u8,
    streams: &mut Streams,
    course: &Course,
    access: Access,
) {
    let Packing { step, rows, lanes, apart, .. } = permute.packing;
    // SAFETY: the caller's promise.
    unsafe {
        if access.past || access.ahead > 0 || course.blocks.extent > 1 || course.first < rows {
            return steps::<N, R, 1, false>(permute, source, streams, course, access);
        }
        let [offset, ..] = streams.offsets;
        let (source, bytes) = (source.wrapping_add(usize::from(offset)), course.rows * step);
        match lanes {
            2 if N == 2 => permute.to_pointers::<N, R, 2>(source, apart, bytes, streams),
            4 if N == 2 => permute.to_pointers::<N, R, 4>(source, apart, bytes, streams),
            _ => {
                let apart = if N == 2 { apart } else { LINE };
                permute.to_pointers::<N, R, 1>(source, apart, bytes, streams);
            }
        }
    }
}

impl Permute<'_> {
    /// Takes `N` pieces out of `R` registers of so many lanes until the end of the rows.
    ///
    /// # Safety
    /// That of [`steps`].
    #[inline(always)]
    unsafe fn to_pointers<const N: usize, const R: usize, const LANES: usize>(
        &self,
        mut source: *const u8,
        apart: usize,
        bytes: usize,
        streams: &mut Streams,
    ) {
        let Some(all) = streams.targets.first_chunk_mut::<N>() else { return };
        let Some(by) = self.by.first_chunk::<N>() else { return };
        let (end, step) = (source.wrapping_add(bytes), self.packing.rows * self.packing.step);
        // SAFETY: the caller's promise.
        unsafe {
            let indices: [[__m512i; R]; N] = self.indices_of(R - 1);
            let mut targets = *all;
            while source != end {
                let mut from = source;
                let mut registers = [_mm512_setzero_si512(); R];
                for register in &mut registers {
                    *register = match LANES {
                        4 => {
                            let low = halves(from, apart);
                            from = opaque(from.wrapping_add(2 * apart));
                            _mm512_inserti64x4::<1>(
                                _mm512_castsi256_si512(low),
                                halves(from, apart),
                            )
                        }
                        lanes => load(from, lanes, apart),
                    };
                    from = from.wrapping_add(LANES.min(2) * apart);
                    if LANES > 1 {
                        // Or else the compiler keeps every multiple of it.
                        from = opaque(from);
                    }
                }
                for ((target, indices), by) in targets.iter_mut().zip(&indices).zip(by) {
                    permuted(&registers, indices).store(*target);
                    *target = target.wrapping_add(*by);
                }
                source = source.wrapping_add(step);
            }
            *all = targets;
        }
    }
}

/// [`steps`] of several groups of equal pieces out of `R` registers or one less, of one lane or two, where all targets
/// advance alike: how far is in a register, and where they began in memory. Zen 4, us for turns of groups: 16×6 bytes
/// 1 MiB 28 for 37, 4.4 MiB 130 for 174.
///
/// # Safety
/// That of [`steps`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn by_offset<const N: usize, const R: usize>(
    permute: &Permute<'_>,
    mut source: *const u8,
    streams: &mut Streams,
    course: &Course,
    access: Access,
) {
    let Packing { step, rows, registers, lanes, apart, .. } = permute.packing;
    // One lane is two halves.
    let (lane, next) = if lanes == 1 { (LINE / 2, apart) } else { (apart, 2 * apart) };
    let [by, ..] = permute.by;
    let (end, further, mut at) = (source.wrapping_add(course.rows * step), rows * step, 0);
    // A number, asked for anew, or there is a loop for each case.
    let has_last = usize::from(registers == R);
    let mut soon = source.wrapping_add(access.ahead);
    // SAFETY: the caller's promise; there is room for tables of more pieces, and for so many groups.
    unsafe {
        let indices: [[__m512i; R]; N] = permute.indices_of(registers - 1);
        while source != end {
            if opaque(access.ahead) > 0 {
                soon = prefetch_until(soon, source.wrapping_add(access.ahead + further));
            }
            // By pointers, or the compiler unrolls it.
            let mut offset = streams.offsets.as_ptr();
            let mut targets = streams.targets.as_ptr().cast::<[*mut u8; N]>();
            for _ in 0..streams.groups {
                let mut from = source.wrapping_add(usize::from(*offset));
                let mut lines = [load(from, 2, lane); N];
                for register in 1..R {
                    if register == R - 1 && opaque(has_last) == 0 {
                        break;
                    }
                    from = opaque(from.wrapping_add(next));
                    let bytes = load(from, 2, lane);
                    for (line, indices) in lines.iter_mut().zip(&indices) {
                        if let Some(indices) = indices.get(register - 1) {
                            *line = _mm512_permutex2var_epi8(*line, *indices, bytes);
                        }
                    }
                }
                for (target, line) in (*targets).iter().zip(lines) {
                    line.store(target.wrapping_add(at));
                }
                (offset, targets) = (offset.add(1), targets.add(1));
            }
            (source, at) = (source.wrapping_add(further), at + by);
        }
        let on = _mm512_set1_epi64(signed(at) as i64);
        for targets in streams.targets.chunks_exact_mut(MOST_STREAMS) {
            let all = targets.as_mut_ptr().cast();
            _mm512_storeu_epi64(all, _mm512_add_epi64(_mm512_loadu_epi64(all), on));
        }
    }
}

/// Two lanes.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn halves(from: *const u8, apart: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu2_m128i(from.wrapping_add(apart).cast(), from.cast()) }
}

/// What a piece has of all registers.
///
/// # Safety
/// 1.
#[inline(always)]
unsafe fn permuted<const R: usize>(registers: &[__m512i; R], indices: &[__m512i; R]) -> __m512i {
    let mut all = registers.iter();
    // SAFETY: 1.
    unsafe {
        let first = all.next().map_or_else(|| _mm512_setzero_si512(), |first| *first);
        all.zip(indices).fold(first, |line, (register, indices)| {
            _mm512_permutex2var_epi8(line, *indices, *register)
        })
    }
}

/// A register of one lane, or two, or four.
///
/// # Safety
/// 1; all lanes must be readable.
#[inline(always)]
unsafe fn load(from: *const u8, lanes: usize, apart: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        match lanes {
            1 => _mm512_loadu_epi8(from.cast()),
            2 => {
                let first = _mm512_castsi256_si512(_mm256_loadu_si256(from.cast()));
                let second = _mm256_loadu_si256(from.wrapping_add(apart).cast());
                _mm512_inserti64x4::<1>(first, second)
            }
            _ => __m512i::load_lanes(from, apart),
        }
    }
}

/// Takes `N` pieces out of `R` registers, of each of `G` groups. With `MAY_OWN`, where lines go is prefetched, eight
/// of them ahead, if `streams` are to be owned.
///
/// Where lines go is known without a load: on Zen 5 loads wait for the addresses of all stores before
/// them. If these are loaded themselves, or how far they advance is, three pieces are copied at a third
/// of the speed. General registers are too few, or the compiler has other plans for them: one of this level
/// holds all of them.
///
/// # Safety
/// 1; all registers must be readable, and whole lines writable in every step; 3 if past the caches.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn steps<const N: usize, const R: usize, const G: usize, const MAY_OWN: bool>(
    permute: &Permute<'_>,
    mut source: *const u8,
    streams: &mut Streams,
    course: &Course,
    access: Access,
) {
    let Packing { step, rows, lanes, apart, .. } = permute.packing;
    let Some(offsets) = streams.offsets.first_chunk::<G>() else { return };
    // As there are for so many groups.
    let lanes = match G {
        1 => lanes,
        2 => lanes.min(2),
        _ => 1,
    };
    let past = G == 1 && access.past;
    let blocks = G == 1 && N <= MOST_OF_BLOCKS;
    let owns = streams.are_owned;
    let (row, step) = (step, rows * step);
    let unit = permute.units.first().copied().unwrap_or(0);
    // Several groups prefetch their shares in whole lines, and anew in each step: they have no register to
    // spare that would remember how far they came.
    let share = match G {
        _ if access.ahead == 0 => 0,
        1 => div(step, access.share),
        _ => div_ceil(step, G * LINE) * LINE,
    };
    let mut soon = source.wrapping_add(access.ahead);
    let mut until = soon;
    // SAFETY: the caller's promise.
    unsafe {
        let zero = _mm512_setzero_si512();
        let indices: [[__m512i; R]; N] = permute.indices_of(R - 1);
        let by = _mm512_loadu_epi64(permute.by.as_ptr().cast());
        let mut targets = _mm512_loadu_epi64(streams.targets.as_ptr().cast());
        let Axis { extent, from: gap, to } = course.blocks;
        for _ in 0..if blocks { extent } else { 1 } {
            let end = source.wrapping_add(course.rows * row);
            let (mut further, mut now) = (step, by);
            if blocks && course.first < rows {
                further = course.first * row;
                now = _mm512_set1_epi64(signed(course.first * unit) as i64);
            }
            while source != end {
                let all: [*mut u8; MOST_STREAMS] = transmute(targets);
                let mut ahead = source.wrapping_add(access.ahead);
                for (offset, targets) in offsets.iter().zip(all.chunks_exact(N)) {
                    // Or else the compiler keeps every multiple of it.
                    let mut from = opaque(source.wrapping_add(usize::from(*offset)));
                    let apart = opaque(apart);
                    if G == 1 {
                        until = until.wrapping_add(share);
                        soon = prefetch_until(soon, until);
                    } else {
                        ahead = prefetch_until(ahead, ahead.wrapping_add(share));
                    }
                    let mut registers = [zero; R];
                    for register in &mut registers {
                        *register = load(from, lanes, apart);
                        from = from.wrapping_add(lanes * apart);
                    }
                    for (target, indices) in targets.iter().zip(&indices) {
                        let line = permuted(&registers, indices);
                        if past {
                            _mm512_stream_si512(target.cast(), line);
                        } else {
                            _mm512_storeu_epi8(target.cast(), line);
                        }
                        if MAY_OWN && owns {
                            asm!(
                                "prefetchw [{0} + 512]",
                                in(reg) *target,
                                options(nostack, preserves_flags)
                            );
                        }
                    }
                }
                targets = _mm512_add_epi64(targets, now);
                source = source.wrapping_add(further);
                (further, now) = (step, by);
            }
            if blocks {
                source = source.wrapping_offset(gap);
                targets = _mm512_add_epi64(targets, _mm512_set1_epi64(to as i64));
            }
        }
        _mm512_storeu_epi64(streams.targets.as_mut_ptr().cast(), targets);
    }
}

/// Prefetches lines up to a place; where it came.
#[inline(always)]
fn prefetch_until(mut soon: *const u8, until: *const u8) -> *const u8 {
    while soon < until {
        __m512i::prefetch(soon);
        soon = opaque(soon.wrapping_add(LINE));
    }
    soon
}

/// A mask of so many bytes, a line at the most.
#[inline(always)]
pub(super) fn first_bytes(bytes: usize) -> u64 {
    match bytes {
        0..LINE => (1 << bytes) - 1,
        _ => u64::MAX,
    }
}
