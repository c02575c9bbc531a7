//! Deinterleaves runs of any length up to half a line by byte permutes.
//!
//! The idea: as many rows as give 64 bytes of the longest run are loaded into registers, each once.
//! A line of a piece is put together by permutes of two registers: the first takes bytes from the first
//! two, each further one takes some from another register and keeps the others, for which its indices
//! point at themselves. One loop serves every width, and runs that differ.
//!
//! Two tricks. A line of 64 bytes is stored whether the runs fill it or not: the next store overwrites
//! what is too much; only the last rows are stored under masks. And six pieces or more go in two
//! stages: rows are cut into groups of pieces first, into scratch in the first-level cache, and each of
//! these into its pieces. Two times the square root is less than the number itself: sixteen pieces take
//! six permutes a line instead of fifteen.
//!
//! Preconditions: indices stay in registers, so there are at most [`MOST_PIECES`] pieces and
//! [`MOST_REGISTERS`] registers of rows at a time; what needs more is left to other loops.
//!
//! # Safety
//! 1. The CPU must have AVX-512 F, BW, VL and VBMI.
//! 2. Every row must be readable up to the next one, the last one over its runs; every target must be
//!    writable for a run of each row. They do not overlap.
//! 3. A fence must follow the last store past the caches.

// As in `generic.rs`.
#![allow(clippy::inline_always)]
// Scratch: half of a first-level cache.
#![allow(clippy::large_stack_arrays)]

use super::super::combine::{Scratch, WriteCombining, LINE};
use super::super::stream::prefetch;
use super::super::{Deinterleave, NextBlock, NonTemporal, MAX_DEINTERLEAVED};
use crate::math::{div_ceil, div_rem};
use core::arch::x86_64::{
    __m512i, _mm512_loadu_epi8, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8,
    _mm512_permutex2var_epi8, _mm512_setzero_si512, _mm512_storeu_epi8, _mm512_stream_si512,
};
use core::mem::MaybeUninit;

/// The longest runs: of longer ones, a line is no more than a copy or two.
pub(super) const LONGEST: usize = LINE / 2;
const MOST_PIECES: usize = 5;
const MOST_REGISTERS: usize = 8;
/// Registers that may hold indices.
const MOST_INDICES: usize = 21;

/// Consecutive runs of a row, and how to take them out of `rows` rows at a time.
struct Permute {
    /// Bytes of the runs.
    units: [usize; MOST_PIECES],
    len: usize,
    /// Bytes from a row to the next, and of all runs.
    step: usize,
    width: usize,
    rows: usize,
    /// Registers that hold so many rows, two at least.
    registers: usize,
    /// Of each piece, for each register but the first.
    indices: [Indices; MOST_INDICES],
    run: Loop,
}

type Loop = unsafe fn(&Permute, *const u8, &mut [*mut u8], usize, usize, bool) -> *const u8;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Indices([u8; LINE]);

impl Permute {
    /// For runs of so many bytes each, one behind the other, in rows so far from one another; if there
    /// are registers for them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn new(units: &[usize], step: usize) -> Option<Self> {
        let longest = units.iter().copied().max()?;
        let width: usize = units.iter().sum();
        let (rows, registers) = layout(units.len(), longest, width, step)?;
        let run = loops(units.len(), registers)?;
        let mut all = [0; MOST_PIECES];
        let mut indices = [Indices([0; LINE]); MOST_INDICES];
        let mut offset = 0;
        let pieces = indices.chunks_exact_mut((registers - 1).max(1));
        for ((slot, &unit), indices) in all.iter_mut().zip(units).zip(pieces) {
            *slot = unit;
            fill_indices(indices, offset, unit, step);
            offset += unit;
        }
        Some(Self { units: all, len: units.len(), step, width, rows, registers, indices, run })
    }

    fn units(&self) -> &[usize] {
        self.units.get(..self.len).unwrap_or_default()
    }

    /// Of each piece.
    #[inline(always)]
    fn indices(&self) -> impl Iterator<Item = &[Indices]> {
        self.indices.chunks_exact((self.registers - 1).max(1))
    }

    /// Takes the runs of `count` rows to their targets, which go ahead; `past` goes past the caches from
    /// the first target's line on, which all have to have in common.
    ///
    /// # Safety
    /// 1, 2; 3 if `past`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy(
        &self,
        source: *const u8,
        targets: &mut [*mut u8],
        count: usize,
        past: bool,
        reach: Reach,
    ) {
        let Reach { mut readable, spare, ahead } = reach;
        let (mut source, mut count) = (source, count);
        let longest = div_rem(LINE, self.rows).0;
        // Stores that cross a line take twice the time of others.
        let begin = targets.first().map_or(0, |target| *target as usize);
        let missing = begin.wrapping_neg() % LINE;
        if self.rows * longest == LINE && missing > 0 && missing.is_multiple_of(longest) {
            let head = div_rem(missing, longest).0.min(count);
            // SAFETY: the caller's promise.
            unsafe { self.masked(source, targets, head) };
            source = source.wrapping_add(head * self.step);
            readable = readable.saturating_sub(head * self.step);
            count -= head;
        }
        // So often a line may be loaded from all registers, and stored to all targets.
        let times = |bytes: usize, needs: usize, step: usize| {
            bytes.checked_sub(needs).map_or(0, |rest| div_rem(rest, step).0 + 1)
        };
        let mut steps = div_rem(count, self.rows).0.min(times(
            readable,
            self.registers * LINE,
            self.rows * self.step,
        ));
        for unit in self.units() {
            steps = steps.min(times(count * unit + spare, LINE, self.rows * unit));
        }
        // SAFETY: the caller's promise, and the numbers above.
        unsafe {
            source = (self.run)(self, source, targets, steps, ahead, past);
            count -= steps * self.rows;
            while count > 0 {
                let some = count.min(self.rows);
                self.masked(source, targets, some);
                source = source.wrapping_add(some * self.step);
                count -= some;
            }
        }
    }

    /// Takes the runs of no more than `self.rows` rows, and touches nothing else.
    ///
    /// # Safety
    /// 1, 2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn masked(&self, source: *const u8, targets: &mut [*mut u8], rows: usize) {
        if rows == 0 {
            return;
        }
        let bytes = (rows - 1) * self.step + self.width;
        let first = |bytes: usize| match bytes {
            0 => 0,
            1..LINE => u64::MAX >> (LINE - bytes),
            _ => u64::MAX,
        };
        // SAFETY: masks end where rows and targets do.
        unsafe {
            let mut registers = [_mm512_setzero_si512(); MOST_REGISTERS];
            for (at, register) in registers.iter_mut().enumerate().take(self.registers) {
                let mask = first(bytes.saturating_sub(at * LINE));
                *register = _mm512_maskz_loadu_epi8(mask, source.wrapping_add(at * LINE).cast());
            }
            let pieces = targets.iter_mut().zip(self.units()).zip(self.indices());
            for ((target, unit), indices) in pieces {
                let [mut line, others @ ..] = registers;
                for (register, Indices(indices)) in others.into_iter().zip(indices) {
                    let indices = _mm512_loadu_epi8(indices.as_ptr().cast());
                    line = _mm512_permutex2var_epi8(line, indices, register);
                }
                _mm512_mask_storeu_epi8(target.cast(), first(rows * unit), line);
                *target = target.wrapping_add(rows * unit);
            }
        }
    }
}

/// How many rows are taken at a time, and how many registers hold them, for runs the longest of which
/// has so many bytes, and all of them `width`; if that is few enough.
fn layout(len: usize, longest: usize, width: usize, step: usize) -> Option<(usize, usize)> {
    if !(2..=MOST_PIECES).contains(&len) || longest == 0 || longest > LINE {
        return None;
    }
    let rows = div_rem(LINE, longest).0;
    let registers = ((rows - 1) * step + width).div_ceil(LINE).max(2);
    let fits = registers <= MOST_REGISTERS && len * (registers - 1) <= MOST_INDICES;
    fits.then_some((rows, registers))
}

/// Whether rows `step` bytes apart of `len` units of `width` bytes can be permuted.
pub(super) fn fits(len: usize, width: usize, step: usize) -> bool {
    if len <= MOST_PIECES {
        return layout(len, width, len * width, step).is_some();
    }
    if width > LONGEST_GROUPED {
        return false;
    }
    let groups = groups(len);
    let longest = div_ceil(len, groups);
    layout(groups, longest * width, len * width, step).is_some()
        && layout(longest, width, longest * width, longest * width).is_some()
}

/// The longest units that are taken by groups: Zen 4, share of the flat copy for 7×5 bytes .40 for .32,
/// 6×3 .44 for .25, 16×3 .33 for .22, but 8×12 .39 for .49.
const LONGEST_GROUPED: usize = 7;

/// In how many groups so many pieces are taken: of two to four each.
fn groups(len: usize) -> usize {
    match len {
        ..=8 => 2,
        9..=12 => 3,
        _ => 4,
    }
}

/// Where the bytes of a line of a piece come from: of each register but the first, a number below 64
/// keeps the byte there is, or takes it from the first one, and 64 more is the register itself.
#[inline(always)]
fn fill_indices(indices: &mut [Indices], offset: usize, unit: usize, step: usize) {
    // No number is as large as 2^16: eight registers, or a byte's row, which is below 64.
    let narrow = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let inverse = narrow(div_rem(0x1_0000, unit).0 + usize::from(unit > 1));
    let (offset, between) = (narrow(offset), narrow(step - unit));
    let mut from = [0u16; LINE];
    for (byte, slot) in (0u16..).zip(&mut from) {
        let row = if unit == 1 { byte } else { mul_high(byte, inverse) };
        *slot = offset.wrapping_add(byte).wrapping_add(row.wrapping_mul(between));
    }
    for (register, Indices(indices)) in (1u16..).zip(indices) {
        for (byte, (slot, from)) in (0u16..).zip(indices.iter_mut().zip(from)) {
            let is_here = from / 64 == register;
            let is_first = register == 1 && from < 64;
            let index = if is_here {
                64 | (from % 64)
            } else if is_first {
                from
            } else {
                byte
            };
            *slot = index.to_le_bytes()[0];
        }
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn mul_high(a: u16, b: u16) -> u16 {
    ((u32::from(a) * u32::from(b)) >> 16) as u16
}

/// The loop for so many pieces and registers.
fn loops(pieces: usize, registers: usize) -> Option<Loop> {
    const fn of<const N: usize, const R: usize>() -> Loop {
        steps::<N, R>
    }
    const fn up_to_8<const N: usize>() -> [Loop; 7] {
        [
            of::<N, 2>(),
            of::<N, 3>(),
            of::<N, 4>(),
            of::<N, 5>(),
            of::<N, 6>(),
            of::<N, 7>(),
            of::<N, 8>(),
        ]
    }
    static TWO: [Loop; 7] = up_to_8::<2>();
    static THREE: [Loop; 7] = up_to_8::<3>();
    static FOUR: [Loop; 5] = [of::<4, 2>(), of::<4, 3>(), of::<4, 4>(), of::<4, 5>(), of::<4, 6>()];
    static FIVE: [Loop; 4] = [of::<5, 2>(), of::<5, 3>(), of::<5, 4>(), of::<5, 5>()];
    let loops: &[Loop] = match pieces {
        2 => &TWO,
        3 => &THREE,
        4 => &FOUR,
        5 => &FIVE,
        _ => return None,
    };
    loops.get(registers.checked_sub(2)?).copied()
}

/// Some steps of `N` pieces out of `R` registers; returns where the next would begin.
///
/// # Safety
/// 1; all registers must be readable, and whole lines writable in every step; 3 if `past`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn steps<const N: usize, const R: usize>(
    permute: &Permute,
    source: *const u8,
    targets: &mut [*mut u8],
    steps: usize,
    ahead: usize,
    past: bool,
) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut indices = [[zero; R]; N];
        let mut to = [core::ptr::null_mut::<u8>(); N];
        let mut by = [0; N];
        for (slots, all) in indices.iter_mut().zip(permute.indices.chunks_exact(R - 1)) {
            for (slot, Indices(bytes)) in slots.iter_mut().zip(all) {
                *slot = _mm512_loadu_epi8(bytes.as_ptr().cast());
            }
        }
        for ((to, by), (target, unit)) in
            to.iter_mut().zip(&mut by).zip(targets.iter().zip(permute.units()))
        {
            (*to, *by) = (*target, permute.rows * unit);
        }
        let step = permute.rows * permute.step;
        let mut source = source;
        for _ in 0..steps {
            if ahead > 0 {
                prefetch::<__m512i>(source.wrapping_add(ahead), R * LINE);
            }
            let mut registers = [zero; R];
            for (at, register) in registers.iter_mut().enumerate() {
                *register = _mm512_loadu_epi8(source.add(at * LINE).cast());
            }
            for ((to, by), indices) in to.iter_mut().zip(&by).zip(&indices) {
                let mut line = zero;
                for (at, register) in registers.iter().enumerate() {
                    line = match at.checked_sub(1).and_then(|at| indices.get(at)) {
                        None => *register,
                        Some(indices) => _mm512_permutex2var_epi8(line, *indices, *register),
                    };
                }
                if past {
                    _mm512_stream_si512(to.cast(), line);
                } else {
                    _mm512_storeu_epi8(to.cast(), line);
                }
                *to = to.wrapping_add(*by);
            }
            source = source.wrapping_add(step);
        }
        for (target, to) in targets.iter_mut().zip(to) {
            *target = to;
        }
        source
    }
}

/// How many rows are taken to scratch at a time: so many bytes of each group, or piece.
const SCRATCH_GROUP: usize = 4096;
const MOST_GROUPS: usize = 4;

/// How far a copy may reach.
#[derive(Clone, Copy)]
struct Reach {
    /// Bytes that may be read from the source on.
    readable: usize,
    /// Bytes that may be written behind the last one that each target gets.
    spare: usize,
    /// So many bytes ahead the input is prefetched; 0 for not at all.
    ahead: usize,
}

/// Consecutive pieces of rows, at once or by groups.
#[allow(clippy::large_enum_variant)] // there is no heap
enum Way {
    Direct(Permute),
    Grouped {
        first: Permute,
        /// For groups of the fewest pieces, and of one more.
        second: [Option<Permute>; 2],
        pieces: [usize; MOST_GROUPS],
        width: usize,
    },
}

impl Way {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn new(len: usize, width: usize, step: usize) -> Option<Self> {
        if len <= MOST_PIECES {
            let units = [width; MOST_PIECES];
            return Permute::new(units.get(..len)?, step).map(Self::Direct);
        }
        let groups = groups(len);
        let mut pieces = [0; MOST_GROUPS];
        let mut units = [0; MOST_GROUPS];
        for (at, (pieces, unit)) in pieces.iter_mut().zip(&mut units).enumerate().take(groups) {
            *pieces = div_rem(len + at, groups).0;
            *unit = *pieces * width;
        }
        let first = Permute::new(units.get(..groups)?, step)?;
        let mut second = [None, None];
        for (slot, pieces) in second.iter_mut().zip(div_rem(len, groups).0..=div_ceil(len, groups))
        {
            let all = [width; MOST_PIECES];
            *slot = Some(Permute::new(all.get(..pieces)?, pieces * width)?);
        }
        Some(Self::Grouped { first, second, pieces, width })
    }

    /// As [`Permute::copy`].
    ///
    /// # Safety
    /// 1, 2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy(&self, source: *const u8, targets: &mut [*mut u8], count: usize, reach: Reach) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Direct(all) => all.copy(source, targets, count, false, reach),
                Self::Grouped { .. } => self.copy_groups(source, targets, count, reach),
            }
        }
    }

    /// As [`Permute::copy`].
    ///
    /// # Safety
    /// 1, 2.
    #[inline(never)] // which takes much of the stack
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy_groups(
        &self,
        source: *const u8,
        targets: &mut [*mut u8],
        count: usize,
        reach: Reach,
    ) {
        let Self::Grouped { first, second, pieces, width } = self else { return };
        let width = *width;
        let mut scratch = Groups([const { MaybeUninit::uninit() }; MOST_GROUPS * GROUP_ROOM]);
        let room = scratch.0.as_mut_ptr().cast::<u8>();
        let longest = first.units().iter().copied().max().unwrap_or(1);
        let block = div_rem(div_rem(SCRATCH_GROUP, longest).0, first.rows).0 * first.rows;
        let Reach { mut readable, spare, ahead } = reach;
        let (mut source, mut left) = (source, count);
        while left > 0 {
            let rows = block.min(left);
            let mut groups = [core::ptr::null_mut::<u8>(); MOST_GROUPS];
            for (at, group) in groups.iter_mut().enumerate() {
                *group = room.wrapping_add(at * GROUP_ROOM);
            }
            let begins = groups;
            let groups = groups.get_mut(..first.len).unwrap_or_default();
            // SAFETY: the caller's promise; scratch has room for the rows and what is read and
            // written behind them.
            unsafe {
                first.copy(source, groups, rows, false, Reach { readable, spare: SPARE, ahead });
                let mut rest = &mut *targets;
                let spare = spare + (left - rows) * width;
                for (begin, pieces) in begins.into_iter().zip(pieces).take(first.len) {
                    let (some, others) = rest.split_at_mut_checked(*pieces).unwrap_or_default();
                    let second = second.iter().flatten().find(|second| second.len == *pieces);
                    let Some(second) = second else { return };
                    let reach = Reach { readable: rows * second.step + SPARE, spare, ahead: 0 };
                    second.copy(begin, some, rows, false, reach);
                    rest = others;
                }
            }
            source = source.wrapping_add(rows * first.step);
            readable = readable.saturating_sub(rows * first.step);
            left -= rows;
        }
    }
}

/// Room behind the rows on scratch, for whole registers.
const SPARE: usize = MOST_REGISTERS * LINE;
const GROUP_ROOM: usize = SCRATCH_GROUP + SPARE;

#[repr(align(64))]
struct Groups([MaybeUninit<u8>; MOST_GROUPS * GROUP_ROOM]);

/// Deinterleaves units of `width` bytes, all rows of each block, or none; whether it did.
///
/// # Safety
/// 1, 2; 3 if `past`.
pub(super) unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: Option<&NonTemporal>,
    next: &mut NextBlock<'_>,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { all_blocks(block, len, width, past, next) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn all_blocks(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: Option<&NonTemporal>,
    next: &mut NextBlock<'_>,
) -> bool {
    if len < 2 || width > LONGEST || block.count * width < LINE {
        return false;
    }
    // The network takes 8 and 16 of 4 bytes: .76 and .67 of the flat copy on Zen 4, by groups .45, .41.
    if len > MOST_PIECES && (width.is_power_of_two() || width > LONGEST_GROUPED) {
        return false;
    }
    let Some(way) = Way::new(len, width, block.step) else { return false };
    loop {
        // SAFETY: the caller's promise.
        unsafe { all_rows(&way, block, len, width, past) };
        let done = block.count;
        if !next(block, done) {
            return true;
        }
    }
}

/// Deinterleaves all rows of a block.
///
/// # Safety
/// 1, 2; 3 if `past`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn all_rows(
    way: &Way,
    rows_of: &Deinterleave,
    len: usize,
    width: usize,
    past: Option<&NonTemporal>,
) {
    let &Deinterleave { source, step, mut targets, count, after, prefetch } = rows_of;
    let Some(targets) = targets.get_mut(..len).filter(|_| count > 0) else { return };
    let readable = (count + after - 1) * step + len * width;
    let reach = Reach { readable, spare: 0, ahead: prefetch };
    let begin = |target: *mut u8| target as usize % LINE;
    let first = targets.first().map_or(0, |target| begin(*target));
    let is_alike = LINE.is_multiple_of(width)
        && first.is_multiple_of(width)
        && targets.iter().all(|target| begin(*target) == first);
    // SAFETY: the caller's promise.
    unsafe {
        match (past, way) {
            (None, _) => way.copy(source, targets, count, Reach { ahead: 0, ..reach }),
            (Some(_), Way::Direct(all)) if is_alike => {
                all.copy(source, targets, count, true, reach);
            }
            (Some(past), _) => combined(way, rows_of, reach, targets, width, past),
        }
    }
}

type Buffers = Scratch<{ 16 << 10 }>;

/// Takes all rows past the caches by way of write-combining buffers.
///
/// # Safety
/// 1, 2, 3.
#[inline(never)] // which takes much of the stack
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn combined(
    way: &Way,
    rows_of: &Deinterleave,
    reach: Reach,
    targets: &[*mut u8],
    width: usize,
    past: &NonTemporal,
) {
    let mut scratch = Buffers::NEW;
    let mut buffers: [WriteCombining; MAX_DEINTERLEAVED] = scratch.share(targets);
    let block = div_rem(Buffers::room(targets.len()), LINE).0 * div_rem(LINE, width).0;
    let (mut source, mut left) = (rows_of.source, rows_of.count);
    let mut reach = Reach { spare: LINE, ..reach };
    while left > 0 {
        let rows = block.min(left);
        let mut rooms = [core::ptr::null_mut(); MAX_DEINTERLEAVED];
        for (room, buffer) in rooms.iter_mut().zip(&mut buffers) {
            *room = buffer.room();
        }
        let rooms = rooms.get_mut(..targets.len()).unwrap_or_default();
        // SAFETY: the caller's promise; a buffer has room for as many bytes, and a line more.
        unsafe {
            way.copy(source, rooms, rows, reach);
            for (buffer, _) in buffers.iter_mut().zip(targets) {
                buffer.filled(past, rows * width);
            }
        }
        source = source.wrapping_add(rows * rows_of.step);
        reach.readable = reach.readable.saturating_sub(rows * rows_of.step);
        left -= rows;
    }
    for (buffer, _) in buffers.iter_mut().zip(targets) {
        // SAFETY: as above.
        unsafe { buffer.finish() };
    }
}
