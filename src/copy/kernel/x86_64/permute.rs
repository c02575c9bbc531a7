//! Deinterleaves equal runs of up to half a line by byte permutes.
//!
//! The idea: as many rows as give 64 bytes of a piece are loaded into registers: what lies together, or,
//! of wide rows, what a register holds of some. A line of a piece is put together by permutes of two
//! registers: the first takes bytes from the first two, each further one takes some from another
//! register and keeps the others, for which its indices point at themselves. One loop serves every
//! width.
//!
//! Three tricks. A line of 64 bytes is stored whether the runs fill it or not: the next store overwrites
//! what is too much; only the last rows are stored under masks. More pieces than indices fit into
//! registers go by groups: the same indices serve any group, from where its first piece lies, one group
//! after the other while the rows are in the first-level cache. And many short ones go in two stages:
//! rows are cut into groups of pieces first, into scratch in the first-level cache, and each of these
//! into its pieces. Two times the square root is less than the number itself.
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

use super::super::combine::LINE;
use super::super::vector::Vector;
use super::super::{Deinterleave, NextBlock, MAX_DEINTERLEAVED};
use super::seams::Seams;
use crate::math::{div_ceil, div_rem, next_multiple};
use core::arch::x86_64::{
    __m512i, _mm512_loadu_epi8, _mm512_mask_loadu_epi8, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_permutex2var_epi8, _mm512_setzero_si512, _mm512_storeu_epi8,
    _mm512_stream_si512,
};
use core::mem::MaybeUninit;

/// The longest runs: of longer ones, a line is no more than a copy or two.
pub(super) const LONGEST: usize = LINE / 2;
pub(super) const MOST_PIECES: usize = 5;
const MOST_REGISTERS: usize = 8;
/// Registers that may hold indices.
const MOST_INDICES: usize = 21;

/// How some pieces are taken out of some rows at a time.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub pieces: usize,
    /// Bytes of a run, of all that lies from the first piece to the last, and from a row to the next.
    pub unit: usize,
    pub width: usize,
    pub step: usize,
    pub rows: usize,
    /// Registers that hold what the pieces have of so many rows, two at least, and bytes from one's
    /// begin to the next.
    pub registers: usize,
    pub apart: usize,
}

impl Layout {
    /// For some pieces that lie within so many bytes of a row, if there are registers for them.
    fn new(pieces: usize, width: usize, unit: usize, step: usize) -> Option<Self> {
        if unit == 0 || unit > LONGEST {
            return None;
        }
        let rows = div_rem(LINE, unit).0;
        let together = ((rows - 1).checked_mul(step)?.checked_add(width)?).div_ceil(LINE);
        let (mut registers, mut apart) = (together, LINE);
        if let Some(rest) = LINE.checked_sub(width) {
            let each = div_rem(rest, step).0 + 1;
            if div_ceil(rows, each) < registers {
                (registers, apart) = (div_ceil(rows, each), each * step);
            }
        }
        registers = registers.max(2);
        let fits = registers <= MOST_REGISTERS && pieces * (registers - 1) <= MOST_INDICES;
        fits.then_some(Self { pieces, unit, width, step, rows, registers, apart })
    }

    /// The quickest for so many pieces, by groups.
    fn quickest(len: usize, unit: usize, step: usize) -> Option<Self> {
        let of = |pieces| Self::new(pieces, pieces * unit, unit, step);
        (2..=MOST_PIECES.min(len)).filter_map(of).min_by_key(|layout| layout.cost(len))
    }

    /// About how long it takes for each row of so many pieces: a load that crosses lines, or a store,
    /// counts as two permutes, and every group but one as six.
    fn cost(&self, len: usize) -> usize {
        let group = 2 * self.registers + self.pieces * (self.registers - 1) + 2 * self.pieces;
        let groups = div_ceil(len, self.pieces);
        let more = if groups > 1 { 6 } else { 0 };
        div_rem(LINE * (group + more) * groups, self.rows).0
    }
}

/// A layout, and what it takes.
pub(super) struct Permute<'a> {
    pub layout: Layout,
    /// Of each piece, for each register but the first.
    indices: &'a [Indices; MOST_INDICES],
    pub run: Loop,
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Indices([u8; LINE]);

/// Takes so many steps: from where, to where, and how.
pub(super) type Loop = unsafe fn(&Permute<'_>, *const u8, &[*mut u8; MOST_PIECES], usize, How);

/// How lines are loaded and stored.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// So many bytes ahead the input is prefetched; 0 for not at all.
    pub ahead: usize,
    /// Whether lines go past the caches.
    pub past: bool,
}

/// How far a copy may reach.
#[derive(Clone, Copy)]
struct Reach {
    /// Bytes that may be read from the source on.
    readable: usize,
    /// Bytes that may be written behind the last one that each target gets.
    spare: usize,
    how: How,
}

impl<'a> Permute<'a> {
    /// For pieces that lie so many bytes from a row's begin.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn new(
        layout: Layout,
        indices: &'a mut [Indices; MOST_INDICES],
        offsets: impl Iterator<Item = usize>,
    ) -> Option<Self> {
        let run = loops(layout.pieces, layout.registers)?;
        for (indices, offset) in
            indices.chunks_exact_mut((layout.registers - 1).max(1)).zip(offsets)
        {
            fill_indices(indices, offset, &layout);
        }
        Some(Self { layout, indices, run })
    }

    /// For some consecutive pieces.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn of(layout: Layout, indices: &'a mut [Indices; MOST_INDICES]) -> Option<Self> {
        Self::new(layout, indices, (0..layout.pieces).map(|piece| piece * layout.unit))
    }

    /// Takes the runs of `rows` rows to their targets, and those of some rows behind them as well if
    /// these follow: `left` are left to be taken. Past the caches, targets must begin lines.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy(
        &self,
        source: *const u8,
        targets: &[*mut u8; MOST_PIECES],
        rows: usize,
        left: usize,
        reach: Reach,
    ) {
        let Layout { unit, step, rows: each, registers, apart, .. } = self.layout;
        let Reach { readable, spare, how } = reach;
        let (loads, mut count) = ((registers - 1) * apart + LINE, div_rem(rows, each).0);
        if readable < rows * step + loads || left * unit + spare < rows * unit + LINE {
            // So often a line may be loaded from all registers, and stored to all targets.
            let times = |bytes: usize, needs: usize, step: usize| {
                bytes.checked_sub(needs).map_or(0, |rest| div_rem(rest, step).0 + 1)
            };
            count = count.min(times(readable, loads, each * step)).min(times(
                left * unit + spare,
                LINE,
                each * unit,
            ));
        }
        // SAFETY: the caller's promise, and the numbers above.
        unsafe {
            (self.run)(self, source, targets, count, how);
            for first in (count * each..rows).step_by(each.max(1)) {
                let source = source.wrapping_add(first * step);
                let targets = targets.map(|target| target.wrapping_add(first * unit));
                let few = Few { source, count: each.min(rows - first) };
                self.masked(few, Few::NONE, &targets, false);
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
        rows: Few,
        others: Few,
        targets: &[*mut u8; MOST_PIECES],
        past: bool,
    ) {
        let Layout { pieces, unit, width, step, registers: len, apart, .. } = self.layout;
        // Where the others would begin if they went on.
        let source = others.source.wrapping_sub(rows.count * step);
        let end = |count: usize| count.checked_sub(1).map_or(0, |last| last * step + width);
        let (first, all) = (end(rows.count), end(rows.count + others.count));
        let bytes = (rows.count + others.count) * unit;
        let mut registers = [MaybeUninit::<__m512i>::uninit(); MOST_REGISTERS];
        let registers = registers.as_mut_ptr().cast::<__m512i>();
        // SAFETY: masks end where rows and targets do, and there are no more registers than that. (By their
        // addresses: or else the compiler writes out every one.)
        unsafe {
            for at in 0..len {
                let begin = at * apart;
                let mask = |end: usize| first_bytes(end.saturating_sub(begin));
                let from = rows.source.wrapping_add(begin);
                let register = _mm512_maskz_loadu_epi8(mask(first), from.cast());
                // None, if there are no others.
                let mask = mask(all) & !mask(rows.count * step);
                let from = source.wrapping_add(begin);
                let register = _mm512_mask_loadu_epi8(register, mask, from.cast());
                registers.add(at).write(register);
            }
            let mut indices = self.indices.iter();
            for target in targets.iter().take(pieces) {
                let mut line = registers.read();
                for (at, Indices(indices)) in (1..len).zip(&mut indices) {
                    let indices = _mm512_loadu_epi8(indices.as_ptr().cast());
                    line = _mm512_permutex2var_epi8(line, indices, registers.add(at).read());
                }
                if past && bytes == LINE {
                    _mm512_stream_si512(target.cast(), line);
                } else {
                    _mm512_mask_storeu_epi8(target.cast(), first_bytes(bytes), line);
                }
            }
        }
    }
}

/// A few rows.
#[derive(Clone, Copy)]
pub(super) struct Few {
    pub source: *const u8,
    pub count: usize,
}

impl Few {
    pub(super) const NONE: Self = Self { source: core::ptr::null(), count: 0 };
}

/// Where the bytes of a line of a piece come from: of each register but the first, a number below 64
/// keeps the byte there is, or takes it from the first one, and 64 more is the register itself.
#[inline(always)]
fn fill_indices(indices: &mut [Indices], offset: usize, layout: &Layout) {
    let &Layout { unit, step, apart, .. } = layout;
    // Only what lies within a register counts in the end: numbers may wrap.
    #[allow(clippy::cast_possible_truncation)]
    let narrow = |number: usize| number as u16;
    // Bytes, rows and registers are below 2^16, and all but the first of them below 64.
    let inverse = |of: usize| narrow(div_rem(0x1_0000, of).0 + usize::from(of > 1));
    let by = |number: u16, of: usize, inverse: u16| {
        if of == 1 {
            number
        } else {
            mul_high(number, inverse)
        }
    };
    let (of_unit, each) = (inverse(unit), div_rem(apart, step).0);
    let is_together = apart == LINE;
    let of_each = inverse(each.max(1));
    let (offset, between, apart) = (narrow(offset), narrow(step.wrapping_sub(unit)), narrow(apart));
    let mut from = [(0u16, 0u16); LINE];
    for (byte, slot) in (0u16..).zip(&mut from) {
        let row = by(byte, unit, of_unit);
        let at = offset.wrapping_add(byte).wrapping_add(row.wrapping_mul(between));
        let register = if is_together { at / 64 } else { by(row, each, of_each) };
        *slot = (register, at.wrapping_sub(register.wrapping_mul(apart)) % 64);
    }
    for (register, Indices(indices)) in (1u16..).zip(indices) {
        for (byte, (slot, (from, at))) in (0u16..).zip(indices.iter_mut().zip(from)) {
            let index = if from == register {
                64 | at
            } else if register == 1 && from == 0 {
                at
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

/// Takes `N` pieces out of `R` registers.
///
/// # Safety
/// 1; all registers must be readable, and whole lines writable in every step; 3 if past the caches.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn steps<const N: usize, const R: usize>(
    permute: &Permute<'_>,
    mut source: *const u8,
    targets: &[*mut u8; MOST_PIECES],
    count: usize,
    how: How,
) {
    let Some(targets) = targets.first_chunk::<N>().copied() else { return };
    let How { ahead, past } = how;
    let Layout { unit, step, rows, apart, .. } = permute.layout;
    let (step, by) = (rows * step, rows * unit);
    // SAFETY: the caller's promise.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut indices = [[zero; R]; N];
        for (slots, all) in indices.iter_mut().zip(permute.indices.chunks_exact(R - 1)) {
            for (slot, Indices(bytes)) in slots.iter_mut().zip(all) {
                *slot = _mm512_loadu_epi8(bytes.as_ptr().cast());
            }
        }
        let mut at = 0;
        for _ in 0..count {
            let mut from = source;
            if ahead > 0 {
                for _ in 0..R {
                    __m512i::prefetch(from.wrapping_add(ahead));
                    from = from.wrapping_add(apart);
                }
            }
            let mut registers = [zero; R];
            let mut from = source;
            for register in &mut registers {
                *register = _mm512_loadu_epi8(from.cast());
                from = from.wrapping_add(apart);
            }
            for (target, indices) in targets.iter().zip(&indices) {
                let mut line = zero;
                for (number, register) in registers.iter().enumerate() {
                    line = match number.checked_sub(1).and_then(|number| indices.get(number)) {
                        None => *register,
                        Some(indices) => _mm512_permutex2var_epi8(line, *indices, *register),
                    };
                }
                let target = target.add(at);
                if past {
                    _mm512_stream_si512(target.cast(), line);
                } else {
                    _mm512_storeu_epi8(target.cast(), line);
                }
            }
            at += by;
            source = source.wrapping_add(step);
        }
    }
}

/// Groups of pieces are taken one after the other out of so many bytes of rows.
const PASS: usize = 16 << 10;
/// Rows that are cut into groups go to scratch at a time: so many bytes of each group.
const SCRATCH_GROUP: usize = 2048;
const MOST_GROUPS: usize = 4;
/// Room behind the rows of a group on scratch: for rows that were not asked for, and for what is more
/// than they are in a line.
const SPARE: usize = 2 * LINE;
const GROUP_ROOM: usize = SCRATCH_GROUP + SPARE;

/// How the pieces of rows are taken.
struct Way<'a> {
    len: usize,
    /// Groups of pieces, by the same indices, or, where there are two stages, groups as pieces.
    first: Permute<'a>,
    /// The pieces of a group on scratch.
    second: Option<Permute<'a>>,
}

/// The indices of both stages.
type Tables = [[Indices; MOST_INDICES]; 2];

/// The layouts of a [`Way`].
#[derive(Clone, Copy)]
struct Layouts(Layout, Option<Layout>);

impl Layouts {
    fn new(len: usize, unit: usize, step: usize) -> Option<Self> {
        if len < 2 {
            return None;
        }
        let one = Layout::quickest(len, unit, step).map(|one| (one.cost(len), Self(one, None)));
        let two = (2..=MOST_GROUPS).filter_map(|groups| Self::two(len, unit, step, groups));
        let all = one.into_iter().chain(two.filter(|_| len > MOST_PIECES));
        all.min_by_key(|(cost, _)| *cost).map(|(_, layouts)| layouts)
    }

    /// Two stages by so many groups, and what they cost.
    fn two(len: usize, unit: usize, step: usize, groups: usize) -> Option<(usize, Self)> {
        let pieces = div_ceil(len, groups);
        let first = Layout::new(groups, len * unit, pieces * unit, step)?;
        let second = Layout::new(pieces, pieces * unit, unit, pieces * unit)?;
        let cost = first.cost(groups) + groups * second.cost(pieces);
        // Scratch takes its time.
        Some((cost + cost / 3, Self(first, Some(second))))
    }
}

/// Whether rows `step` bytes apart of `len` units of `width` bytes can be permuted.
pub(super) fn fits(len: usize, width: usize, step: usize) -> bool {
    Layouts::new(len, width, step).is_some()
}

impl<'a> Way<'a> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn new(len: usize, unit: usize, step: usize, tables: &'a mut Tables) -> Option<Self> {
        let Layouts(first, second) = Layouts::new(len, unit, step)?;
        let [first_indices, second_indices] = tables;
        let Some(second) = second else {
            return Some(Self { len, first: Permute::of(first, first_indices)?, second: None });
        };
        let offsets = (0..first.pieces).map(|group| begin(group, second.pieces, len) * unit);
        let first = Permute::new(first, first_indices, offsets)?;
        Some(Self { len, first, second: Some(Permute::of(second, second_indices)?) })
    }

    /// Takes the runs of `count` rows to their targets; past the caches from the first target's
    /// line on, which all have to have in common.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy(&self, source: *const u8, targets: &[*mut u8], count: usize, reach: Reach) {
        let mut reach = reach;
        let step = self.first.layout.step;
        let (last, room) = match &self.second {
            None if self.first.layout.pieces == self.len => (&self.first, usize::MAX),
            None => (&self.first, div_rem(PASS, step).0),
            Some(second) => (second, div_rem(SCRATCH_GROUP, second.layout.step).0),
        };
        let Layout { unit, rows: each, .. } = last.layout;
        let block = div_rem(room.min(count), each).0.max(1) * each;
        if reach.how.ahead > 0 && room < usize::MAX {
            // The next block.
            reach.how.ahead = reach.how.ahead.max(block * step);
        }
        // Stores that cross a line take twice the time of others.
        let begin = targets.first().map_or(0, |target| *target as usize);
        let (head, rest) = div_rem(begin.wrapping_neg() % LINE, unit);
        let mut rows = if each * unit == LINE && rest == 0 && head > 0 { head } else { block };
        let mut done = 0;
        while done < count {
            rows = rows.min(count - done);
            let some = Block { targets, done, rows, left: count - done };
            let source = source.wrapping_add(done * step);
            // SAFETY: the caller's promise.
            unsafe {
                match &self.second {
                    None => self.copy_groups(source, some, reach),
                    Some(second) => self.copy_stages(second, source, some, reach),
                }
            }
            reach.readable = reach.readable.saturating_sub(rows * step);
            done += rows;
            rows = block;
        }
    }

    /// Some rows, one group of pieces after the other.
    ///
    /// # Safety
    /// As [`Way::copy`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy_groups(&self, source: *const u8, block: Block, reach: Reach) {
        let Layout { pieces, unit, .. } = self.first.layout;
        let mut group = 0;
        while group < self.len {
            let first = group.min(self.len - pieces);
            let targets = block.targets(first, unit);
            let readable = reach.readable.saturating_sub(first * unit);
            let source = source.wrapping_add(first * unit);
            // SAFETY: the caller's promise.
            unsafe {
                self.first.copy(
                    source,
                    &targets,
                    block.rows,
                    block.left,
                    Reach { readable, ..reach },
                );
            }
            group += pieces;
        }
    }

    /// Some rows, which scratch has room for, by way of it.
    ///
    /// # Safety
    /// As [`Way::copy`].
    #[inline(never)] // which takes much of the stack
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy_stages(
        &self,
        second: &Permute<'_>,
        source: *const u8,
        block: Block,
        reach: Reach,
    ) {
        let mut scratch = Groups([const { MaybeUninit::uninit() }; ROOM]);
        let room = scratch.0.as_mut_ptr().cast::<u8>();
        let groups: [*mut u8; MOST_PIECES] =
            core::array::from_fn(|at| room.wrapping_add(at * GROUP_ROOM));
        let Layout { pieces, unit, step, .. } = second.layout;
        let whole = next_multiple(block.rows, self.first.layout.rows).min(block.left);
        let readable = block.rows * step + MOST_REGISTERS * LINE;
        let how = How { past: false, ..reach.how };
        // SAFETY: the caller's promise; scratch has room for the rows and what is read and written
        // behind them.
        unsafe {
            self.first.copy(source, &groups, whole, whole, Reach { spare: SPARE, how, ..reach });
            let reach = Reach { readable, how: How { ahead: 0, ..reach.how }, ..reach };
            for (group, source) in groups.into_iter().enumerate().take(self.first.layout.pieces) {
                let targets = block.targets(begin(group, pieces, self.len), unit);
                second.copy(source, &targets, block.rows, block.left, reach);
            }
        }
    }
}

/// Some rows of many.
#[derive(Clone, Copy)]
struct Block<'a> {
    /// Where the first row of all goes.
    targets: &'a [*mut u8],
    /// How many are before these, how many these are, and how many they and those behind them.
    done: usize,
    rows: usize,
    left: usize,
}

impl Block<'_> {
    /// Where they go, from a piece on.
    #[inline(always)]
    fn targets(&self, first: usize, unit: usize) -> [*mut u8; MOST_PIECES] {
        let target = |at: usize| self.targets.get(first + at).copied();
        core::array::from_fn(|at| {
            target(at).unwrap_or(core::ptr::null_mut()).wrapping_add(self.done * unit)
        })
    }
}

/// The first piece of a group of so many: the last one ends with the last piece, and may have some of
/// the group before once more.
fn begin(group: usize, pieces: usize, len: usize) -> usize {
    (group * pieces).min(len - pieces)
}

const ROOM: usize = MOST_GROUPS * GROUP_ROOM + MOST_REGISTERS * LINE;

#[repr(align(64))]
struct Groups([MaybeUninit<u8>; ROOM]);

/// Whether so many elements, of 1, 2, 4, 8 or 16 bytes, go by the network. Zen 5, share of the flat copy by
/// permutes and by the network: 7×4 bytes .51, .64, 8×2 .64, .67, 16×8 .48, .58, but 16×1 .55, .30,
/// 16×16 .70, .62; past the caches 8×1 .87, 1.03, but 6×1 1.09, .96, 16×1 .96, .81, 8×4 .89, .78,
/// 16×8 .97, .67.
fn is_for_network(len: usize, width: usize, past: bool) -> bool {
    if past {
        matches!(len, 7 | 8) && len * width < LINE / 2
    } else {
        width <= 8 && (len <= 8 || width > 1)
    }
}

/// Deinterleaves units of `width` bytes, all rows of each block, or none; whether it did.
///
/// # Safety
/// 1, 2; 3 if `past`.
pub(super) unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
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
    past: bool,
    next: &mut NextBlock<'_>,
) -> bool {
    if len < 2 || width > LONGEST || block.count * width < LINE {
        return false;
    }
    if width.is_power_of_two() && len > MOST_PIECES && is_for_network(len, width, past) {
        return false;
    }
    let mut tables = [[Indices([0; LINE]); MOST_INDICES]; 2];
    let Some(way) = Way::new(len, width, block.step, &mut tables) else { return false };
    let is_one_pass = way.second.is_none() && way.first.layout.pieces == len;
    let mut seams = Seams::new(&way.first);
    loop {
        // SAFETY: the caller's promise.
        let is_another = unsafe {
            if is_one_pass && past && are_alike(block, len, width) {
                seams.past(block, next)
            } else {
                if is_one_pass && !past && seams.is_short(block) {
                    seams.through(block);
                } else {
                    all_rows(&way, block, width, past);
                }
                let done = block.count;
                next(block, done)
            }
        };
        if !is_another {
            return true;
        }
    }
}

/// Whether targets begin the same number of whole units behind their lines.
#[inline(never)]
fn are_alike(block: &Deinterleave, len: usize, width: usize) -> bool {
    let begin = |target: &*mut u8| *target as usize % LINE;
    let mut targets = block.targets.iter().take(len).map(begin);
    let Some(first) = targets.next() else { return true };
    LINE.is_multiple_of(width)
        && first.is_multiple_of(width)
        && targets.all(|target| target == first)
}

/// Deinterleaves all rows of a block.
///
/// # Safety
/// 1, 2; 3 if `past`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn all_rows(way: &Way<'_>, block: &Deinterleave, width: usize, past: bool) {
    let &Deinterleave { source, step, ref targets, count, after, prefetch } = block;
    let Some(targets) = targets.get(..way.len).filter(|_| count > 0) else { return };
    let readable = (count + after - 1) * step + way.len * width;
    let how = How { ahead: if past { prefetch } else { 0 }, past };
    let reach = Reach { readable, spare: 0, how };
    // SAFETY: the caller's promise.
    unsafe {
        if past && !are_alike(block, way.len, width) {
            combined(way, source, targets, count, reach);
        } else {
            way.copy(source, targets, count, reach);
        }
    }
}

/// Bytes of all buffers, and the most of one, whole lines.
const BUFFERS: usize = 8 << 10;
const MOST_BUFFER: usize = 17 * LINE;

/// Takes all rows past the caches by way of write-combining buffers.
///
/// # Safety
/// 1, 2, 3.
#[inline(never)] // which takes much of the stack
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn combined(
    way: &Way<'_>,
    source: *const u8,
    targets: &[*mut u8],
    count: usize,
    reach: Reach,
) {
    let Layout { unit, rows: each, .. } = way.second.as_ref().unwrap_or(&way.first).layout;
    let step = way.first.layout.step;
    let mut scratch = Lines([const { MaybeUninit::uninit() }; BUFFERS]);
    // An odd number of lines from one to the next: a power of two would have all of them in a few sets
    // of the first-level cache. There is a line for what is carried, and one for what is too much.
    let lines = div_rem(BUFFERS, targets.len() * LINE).0.min(MOST_BUFFER / LINE + 2);
    let apart = ((lines - 1) | 1) * LINE;
    let mut buffers = [Buffer::NONE; MAX_DEINTERLEAVED];
    let room = scratch.0.as_mut_ptr().cast::<u8>();
    for (at, (buffer, target)) in buffers.iter_mut().zip(targets).enumerate() {
        *buffer = Buffer::new(*target, room.wrapping_add(at * apart));
    }
    let block = (apart / LINE - 2) * each;
    let mut reach = Reach { spare: LINE, how: How { past: false, ..reach.how }, ..reach };
    for done in (0..count).step_by(block.max(1)) {
        let rows = block.min(count - done);
        let rooms: [*mut u8; MAX_DEINTERLEAVED] =
            core::array::from_fn(|at| buffers.get(at).map_or(room, Buffer::room));
        // SAFETY: the caller's promise; a buffer has room for as many bytes, and a line more.
        unsafe {
            let source = source.wrapping_add(done * step);
            way.copy(source, rooms.get(..targets.len()).unwrap_or_default(), rows, reach);
            for (buffer, _) in buffers.iter_mut().zip(targets) {
                buffer.filled(rows * unit);
            }
        }
        reach.readable = reach.readable.saturating_sub(rows * step);
    }
    for (buffer, _) in buffers.iter_mut().zip(targets) {
        // SAFETY: as above.
        unsafe { buffer.finish() };
    }
}

#[repr(align(64))]
struct Lines([MaybeUninit<u8>; BUFFERS]);

/// Bytes on their way past the caches, as in `combine.rs`, by vectors of this level.
#[derive(Clone, Copy)]
struct Buffer {
    /// Begins a line, as what it goes to does.
    scratch: *mut u8,
    line: *mut u8,
    /// Bytes on scratch, and how many of the first line are not ours.
    fill: usize,
    foreign: usize,
}

impl Buffer {
    const NONE: Self =
        Self { scratch: core::ptr::null_mut(), line: core::ptr::null_mut(), fill: 0, foreign: 0 };

    fn new(target: *mut u8, scratch: *mut u8) -> Self {
        let foreign = target as usize % LINE;
        Self { scratch, line: target.wrapping_sub(foreign), fill: foreign, foreign }
    }

    fn room(&self) -> *mut u8 {
        self.scratch.wrapping_add(self.fill)
    }

    /// So many bytes have been put where there was room: sends the whole lines off, and carries the
    /// rest.
    ///
    /// # Safety
    /// 1, 3; as in `combine.rs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn filled(&mut self, bytes: usize) {
        self.fill += bytes;
        let whole = self.fill / LINE * LINE;
        let mut at = 0;
        // SAFETY: the caller's promise.
        unsafe {
            if self.foreign > 0 && whole > 0 {
                self.store_first(LINE);
                at = LINE;
            }
            while at < whole {
                let line = _mm512_loadu_epi8(self.scratch.add(at).cast());
                _mm512_stream_si512(self.line.add(at).cast(), line);
                at += LINE;
            }
            let rest = _mm512_loadu_epi8(self.scratch.add(whole).cast());
            _mm512_storeu_epi8(self.scratch.cast(), rest);
        }
        self.line = self.line.wrapping_add(whole);
        self.fill -= whole;
    }

    /// Stores what is ours of the first line, up to a byte.
    ///
    /// # Safety
    /// As [`Buffer::filled`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn store_first(&mut self, end: usize) {
        let ours = first_bytes(end) & !first_bytes(self.foreign);
        self.foreign = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let line = _mm512_loadu_epi8(self.scratch.cast_const().cast());
            _mm512_mask_storeu_epi8(self.line.cast(), ours, line);
        }
    }

    /// Stores what is left.
    ///
    /// # Safety
    /// As [`Buffer::filled`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn finish(&mut self) {
        // SAFETY: as above.
        unsafe { self.store_first(self.fill) };
    }
}

/// A mask of so many bytes, a line at the most.
#[inline(always)]
fn first_bytes(bytes: usize) -> u64 {
    if bytes < LINE {
        (1 << bytes) - 1
    } else {
        u64::MAX
    }
}
