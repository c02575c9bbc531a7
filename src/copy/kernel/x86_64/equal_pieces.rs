//! Equal pieces of less than half a line, deinterleaved by permutes: by groups, past the caches by way of
//! write-combining buffers where groups are several.
//!
//! # Safety
//! As `permute.rs`.

use super::super::combine::{in_page, Scratch, LINE};
use super::super::opaque::opaque;
use super::super::row_major::are_in_one_set;
use super::super::rules::LOW_THRESHOLDS;
use super::super::vector::LANE;
use super::super::{Deinterleave, NextBlock, MAX_DEINTERLEAVED};
use super::blocks::Seams;
use super::buffer::{asks_later, Buffer, BUFFERS, MEETINGS};
use super::equal_runs::{AHEAD_BYTES, LEAST_AHEAD, MOST_AHEAD};
use super::halves::OF_A_SET;
use super::permute::{
    loops, most_registers, Access, Bounds, Indices, Packing, Permute, Streams, LONGEST,
    MOST_INDICES, MOST_PIECES, MOST_REGISTERS, MOST_STREAMS,
};
use crate::math::{div, div_ceil, div_rem, next_multiple, parts};
use core::ptr::null;

/// Pieces that take turns do so over so many bytes of rows, which stay in the first-level cache.
pub(super) const TURN: usize = 16 << 10;

/// How the equal pieces of rows are taken.
struct Way<'a> {
    len: usize,
    /// By groups, alike, of which so many go together.
    groups: usize,
    together: usize,
    /// Rows of a turn.
    block: usize,
    /// Whether registers go as two halves.
    is_halved: bool,
    permute: Permute<'a>,
}

/// Whether rows of `len` units of `width` bytes can be permuted.
pub(super) fn fits(len: usize, width: usize) -> bool {
    len > 1 && (1..=LONGEST).contains(&width)
}

impl<'a> Way<'a> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn new(
        len: usize,
        unit: usize,
        step: usize,
        is_halved: bool,
        by_turns: bool,
        indices: &'a mut Tables,
    ) -> Option<Self> {
        let is_odd = is_halved && !unit.is_power_of_two();
        let by_offset = is_odd && !by_turns && Self::are_by_offset(len, unit);
        let groups = if by_offset {
            Self::groups_by_offset
        } else if by_turns {
            Self::groups_by_turns
        } else {
            Self::groups
        };
        let (pieces, groups, together) = groups(len, unit);
        let most = match together {
            _ if by_offset && pieces == 2 => (3, 2),
            _ if by_offset => (MOST_REGISTERS, 2),
            1 => (most_registers(pieces), 4),
            2 => (MOST_REGISTERS, 2),
            _ => (3, 1),
        };
        // Whole lines do better without: Zen 4, 4×1 bytes in 8 MiB .82 for .92, 2×4 .79 for .87.
        let by_pointers = is_odd && (by_offset || together == 1);
        let packing = Packing::quickest(pieces, unit, pieces * unit, step, most, by_pointers)?;
        let mut pieces = (0..packing.pieces).map(|piece| (piece * unit, unit));
        // SAFETY: 1.
        let permute = unsafe { Permute::new(packing, indices, &mut pieces)? };
        let block = match div(TURN, step) {
            _ if groups == together => usize::MAX,
            rows => div(rows, packing.rows).max(1) * packing.rows,
        };
        Some(Self { len, groups, together, block, is_halved, permute })
    }

    /// Pieces of a group, groups, and how many of them go together.
    fn groups(len: usize, unit: usize) -> (usize, usize, usize) {
        if len <= MOST_PIECES {
            return (len, 1, 1);
        }
        // Zen 5, share of the flat copy for four groups of three: 9×6 bytes .60 for .51, 10×3 .56 for .40, 9×12 .59
        // for .52; but 9×7 .47 for .53, 9×15 .53 for .62.
        if matches!((len, unit), (9 | 10, 1 | 3 | 5 | 6 | 11 | 12)) {
            return (MOST_PIECES, 2, 1);
        }
        if unit > LANE {
            // A line takes bytes of two or three rows.
            let together = if matches!(len, 6 | 9..=12) { 3 } else { 4 };
            return (2, next_multiple(div_ceil(len, 2), together), together);
        }
        let groups = if len <= MOST_STREAMS { 2 } else { 4 };
        (div_ceil(len, groups), groups, 2)
    }

    /// Whether groups of odd pieces go together by an offset. Zen 4, 1 and 4.6 MiB, times as fast as by turns or two at a
    /// time: 7 to 16 of 5 to 7 bytes .99 to 1.38, of 9 to 15 1.10 to 1.31, 9 to 16 of 17 and 29 1.01 to 1.25; but 7 and
    /// 8 of these .84 to .91, six .95 to 1.02.
    fn are_by_offset(len: usize, unit: usize) -> bool {
        let least = if unit > LANE { 9 } else { 7 };
        len >= least && unit > LANE / 4
    }

    /// Such groups.
    fn groups_by_offset(len: usize, unit: usize) -> (usize, usize, usize) {
        let pieces = if unit > LANE / 2 { 2 } else { 4 };
        let groups = div_ceil(len, pieces);
        (pieces, groups, groups)
    }

    /// The same of groups that have a turn each, where registers go as two halves. Zen 4, us in 1 MiB for two groups at
    /// a time: 7×10 bytes 36 for 43, 10×13 35 for 44, 11×3 54 for 70, 14×10 37 for 49, but 8×6 39 for 35, 10×6 39 for 38.
    fn groups_by_turns(len: usize, unit: usize) -> (usize, usize, usize) {
        let are_longer = len <= 8 && unit <= LANE / 2;
        let pieces = if unit <= LANE / 4 || are_longer { 4 } else { 2 };
        (pieces, div_ceil(len, pieces), 1)
    }

    /// Whether they do better so. Targets that have all of their lines in one set of a first-level cache of eight ways
    /// do: share of the flat copy in 1 MiB 8×7 bytes .60 for .46, 8×12 .62 for .47, 16×15 .56 for .37, 8×24 .63 for .47;
    /// but twelve, where they have not, 12×24 .53 for .66.
    fn are_by_turns(block: &Deinterleave, len: usize, unit: usize) -> bool {
        len > OF_A_SET
            && !unit.is_power_of_two()
            && (matches!((len, unit), (6, 9..LANE) | (11.., 3))
                || are_in_one_set(block.targets.iter().copied().take(len), OF_A_SET))
    }

    /// Takes the runs of `count` rows to their targets, each group in a turn of its own.
    ///
    /// # Safety
    /// 1, 2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn by_groups(
        &self,
        source: *const u8,
        targets: &[*mut u8],
        count: usize,
        readable: usize,
    ) {
        let Packing { pieces, step, .. } = self.permute.packing;
        let unit = self.permute.units.first().copied().unwrap_or(1);
        let mut turn = Streams::of_one(&self.permute.packing, [].into_iter());
        for rows in parts(0..count, self.block) {
            for group in 0..self.groups {
                let first = self.begin(group, pieces);
                let some = targets.get(first..).unwrap_or_default().iter().take(pieces);
                for (slot, target) in turn.targets.iter_mut().zip(some) {
                    *slot = opaque(target.wrapping_add(rows.start * unit));
                }
                let begin = rows.start * step + first * unit;
                let bounds = Bounds::reading(readable - begin);
                let source = source.wrapping_add(begin);
                // SAFETY: the caller's promise.
                unsafe {
                    self.permute.copy(source, &mut turn, rows.len(), count - rows.start, bounds);
                }
            }
        }
    }

    /// The same, some groups together, of the first rows and then of others.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[inline(never)] // which takes some of the stack
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn together<const TURNS: usize>(
        &self,
        source: *const u8,
        targets: &[*mut u8],
        count: usize,
        first: usize,
        bounds: Bounds,
    ) {
        let mut turns = [const { Streams::NONE }; TURNS];
        self.turns(&mut turns, targets);
        let Packing { pieces, registers, step, .. } = self.permute.packing;
        for turn in &mut turns {
            turn.are_owned = count * step >= OWNED && (pieces, registers, self.groups) == (4, 5, 4);
        }
        // SAFETY: the caller's promise.
        unsafe { self.copy(&mut turns, source, count, first, bounds) };
    }

    /// The turns that groups take.
    #[inline(never)] // once in the library
    fn turns(&self, turns: &mut [Streams], targets: &[*mut u8]) {
        let Packing { pieces, .. } = self.permute.packing;
        let unit = self.permute.units.first().copied().unwrap_or(1);
        for (first, turn) in (0..self.groups).step_by(self.together.max(1)).zip(&mut *turns) {
            turn.groups = self.together.min(self.groups - first);
            turn.run = loops(&self.permute.packing, turn.groups);
            for (group, offset) in turn.offsets.iter_mut().enumerate().take(turn.groups) {
                *offset =
                    u16::try_from(opaque(self.begin(first + group, pieces) * unit)).unwrap_or(0);
            }
        }
        self.aim(turns, targets);
    }

    /// Where their pieces go.
    #[inline(never)] // once in the library
    fn aim(&self, turns: &mut [Streams], targets: &[*mut u8]) {
        let Packing { pieces, .. } = self.permute.packing;
        let mut group = 0;
        for turn in turns {
            for slots in turn.targets.chunks_exact_mut(pieces.max(1)).take(turn.groups) {
                let targets = targets.get(self.begin(group, pieces)..).unwrap_or_default();
                for (slot, target) in slots.iter_mut().zip(targets) {
                    *slot = opaque(*target);
                }
                group += 1;
            }
        }
    }

    /// The first piece of a group: the last one ends with the last piece, and may have some of the one
    /// before once more.
    fn begin(&self, group: usize, pieces: usize) -> usize {
        (group * pieces).min(self.len - pieces)
    }

    /// Whether targets begin the same number of whole units behind their lines, which steps fill.
    fn is_alike(&self, block: &Deinterleave, width: usize) -> bool {
        self.permute.packing.rows * width == LINE && block.is_alike(self.len, width)
    }

    /// Takes the runs of `count` rows to their targets, of the first ones together.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[inline(never)] // once in the library
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy(
        &self,
        turns: &mut [Streams],
        source: *const u8,
        count: usize,
        first: usize,
        mut bounds: Bounds,
    ) {
        let Packing { step, .. } = self.permute.packing;
        let (mut rows, mut done) = (first, 0);
        while done < count {
            rows = rows.min(count - done);
            let source = source.wrapping_add(done * step);
            let mut boundsed = bounds;
            for turn in turns.iter_mut().take_while(|turn| turn.groups > 0) {
                // SAFETY: the caller's promise.
                unsafe { self.permute.copy(source, turn, rows, count - done, boundsed) };
                boundsed.access.ahead = 0;
            }
            bounds.readable = bounds.readable.saturating_sub(rows * step);
            done += rows;
            rows = self.block;
        }
    }
}

/// The most turns that groups take together.
const MOST_TURNS: usize = 2;

/// The indices of a group.
type Tables = [Indices; MOST_INDICES];

/// Whether so many elements, of 1, 2, 4, 8 or 16 bytes, go by the network, or of 32 piece by piece; it takes none past
/// the caches to targets that are not alike. Zen 5, share of the flat copy by permutes and by the network: 7×4 bytes
/// .59, .64, 16×2 .31, .60, 16×4 .48, .60, but 6×4 .69, .60, 8×8 .80, .66, 16×8 .71, .60; past the caches 8×1 .80,
/// 1.03, 16×1 .50, .95, 12×2 .62, .80, 14×4 .57, .73, but 8×4 .81, .78, 16×8 .82, .67. Zen 4, GB/s: 14×1 byte 12 for
/// 17, 9×16 25 for 33, past the caches 6×4 17 for 24, 9×16 14 for 23, but 9×1 16 for 12, 6×16 1 MiB 40 for 36; to
/// targets that are not alike 10×4 11 for 5.
fn is_for_network(
    block: &Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    is_halved: bool,
) -> bool {
    match (past, is_halved) {
        (true, true) => width <= LANE && block.is_alike(len, width),
        (true, false) => {
            ((len > 8 && width < 8) || (len > 6 && len * width < LINE / 2))
                && block.is_alike(len, width)
        }
        (false, true) if width == 1 => !(9..=12).contains(&len),
        (false, true) => width < 8 || len > 8,
        (false, false) => width < 8 && (len <= 8 || width > 1) && (len, width) != (6, 4),
    }
}

/// Deinterleaves units of `width` bytes, all rows of each block, or none; whether it did.
///
/// # Safety
/// 1, 2; 3 if `past`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
pub(super) unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    next: &mut NextBlock<'_>,
    is_halved: bool,
) -> bool {
    if len < 2 || width > LONGEST || (1 + block.more.extent) * block.count * width < LINE {
        return false;
    }
    let may_be_network = width.is_power_of_two() && len > MOST_PIECES;
    if may_be_network && is_for_network(block, len, width, past, is_halved) {
        return false;
    }
    let mut tables = [Indices::NONE; MOST_INDICES];
    let by_turns = is_halved && !past && Way::are_by_turns(block, len, width);
    let Some(way) = Way::new(len, width, block.step, is_halved, by_turns, &mut tables) else {
        return false;
    };
    let mut seams = Seams::new(&way.permute).filter(|_| way.groups == 1);
    loop {
        // SAFETY: the caller's promise.
        let is_another = unsafe {
            match &mut seams {
                Some(seams) if past && way.is_alike(block, width) => seams.past(block, next),
                Some(seams) if !past && seams.is_short(block) => {
                    seams.through(block);
                    let done = block.count;
                    next(block, done)
                }
                _ => {
                    all_rows(&way, block, width, past);
                    let done = block.count;
                    next(block, done)
                }
            }
        };
        if !is_another {
            return true;
        }
    }
}

/// Of more bytes input is not prefetched where lines are not whole.
const LARGEST_ACROSS: usize = if LOW_THRESHOLDS { 8 << 10 } else { 7 << 20 };

/// Of so many bytes, targets that take turns are prefetched too. Zen 5, share of the flat copy: 16×6 bytes 9.2
/// MiB .58 for .49, 8.5 MiB .61 for .56, 14×6 9 MiB .52 for .46, 16×12 .62 for .53, but 16×6 6 MiB .63 for .66.
const OWNED: usize = if LOW_THRESHOLDS { 0 } else { 17 << 19 };

/// Deinterleaves all rows of a block.
///
/// # Safety
/// 1, 2; 3 if `past`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn all_rows(way: &Way<'_>, block: &Deinterleave, width: usize, past: bool) {
    let &Deinterleave { source, step, ref targets, count, after, prefetch, .. } = block;
    let Some(targets) = targets.get(..way.len).filter(|_| count > 0) else { return };
    let readable = (count + after - 1) * step + way.len * width;
    let most = if way.permute.packing.rows * width == LINE { MOST_AHEAD } else { LARGEST_ACROSS };
    // Zen 4 is the slower for it: 2×12 bytes .75 of the flat copy for .83, 3×12 .74 for .81.
    let is_large =
        way.groups == 1 && !way.is_halved && (LEAST_AHEAD..most).contains(&(count * step));
    let ahead = match past {
        true => prefetch,
        false if is_large => AHEAD_BYTES,
        false => 0,
    };
    let first = targets.first().map_or(0, |target| *target as usize % LINE);
    let access = Access { ahead, share: 1, past };
    let bounds = Bounds { readable, spare: 0, access };
    // SAFETY: the caller's promise.
    unsafe {
        // Lines of several groups by turns, one of each piece, are slower than some of each: 16×16 bytes .54 for
        // .86 of the flat copy on Zen 5.
        if past && (way.groups > 1 || !way.is_alike(block, width)) {
            combined(way, source, targets, count, bounds);
        } else if way.groups > 1 && way.together == 1 && way.permute.packing.is_halved {
            way.by_groups(source, targets, count, readable);
        } else {
            // Stores that cross a line take twice the time of others.
            let (head, rest) = div_rem(first.wrapping_neg() % LINE, width);
            let is_whole = way.permute.packing.rows * width == LINE && rest == 0 && head > 0;
            let rows = if is_whole { head } else { way.block };
            // One turn takes less of the stack.
            if way.groups == way.together {
                way.together::<1>(source, targets, count, rows, bounds);
            } else {
                way.together::<MOST_TURNS>(source, targets, count, rows, bounds);
            }
        }
    }
}

/// The most bytes of a buffer, whole lines.
const MOST_BUFFER: usize = 17 * LINE;

/// Where buffers have room; as [`Streams`], in one page.
#[repr(align(64))]
struct Rooms([*mut u8; MAX_DEINTERLEAVED]);

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
    bounds: Bounds,
) {
    let Packing { step, rows: each, .. } = way.permute.packing;
    let unit = way.permute.units.first().copied().unwrap_or(1);
    let mut scratch = Scratch::<BUFFERS>::NEW;
    // An odd number of lines from one to the next: a power of two would have all of them in a few sets
    // of the first-level cache. There is a line for what is carried, and one for what is too much.
    let meetings = if way.is_halved { MEETINGS } else { 0 };
    let lines = div(BUFFERS, (targets.len() + meetings) * LINE).min(MOST_BUFFER / LINE + 2);
    let apart = ((lines - 1) | 1) * LINE;
    let mut buffers = [Buffer::NONE; MAX_DEINTERLEAVED];
    let mut room = scratch.as_mut_ptr();
    for (buffer, target) in buffers.iter_mut().zip(targets) {
        if way.is_halved {
            room = in_page(room, apart);
        }
        *buffer = Buffer::new(*target, room);
        room = room.wrapping_add(apart);
    }
    let block = (apart / LINE - 2) * each;
    let mut rooms = Rooms([room; MAX_DEINTERLEAVED]);
    let mut turns = [const { Streams::NONE }; MOST_TURNS];
    way.turns(&mut turns, targets);
    // Zen 4 asks for the next rows while lines go off: targets stay in general registers, and memory is kept busy.
    let asks_later = way.is_halved && asks_later(way.len * unit, step);
    let ahead = if asks_later { 0 } else { bounds.access.ahead };
    let access = Access { past: false, ahead, ..bounds.access };
    let mut bounds = Bounds { spare: LINE, access, ..bounds };
    for done in (0..count).step_by(block.max(1)) {
        let rows = block.min(count - done);
        for (slot, buffer) in rooms.0.iter_mut().zip(&buffers) {
            *slot = buffer.room();
        }
        // SAFETY: the caller's promise; a buffer has room for as many bytes, and a line more.
        unsafe {
            let source = source.wrapping_add(done * step);
            way.aim(&mut turns, &rooms.0);
            way.copy(&mut turns, source, rows, way.block, bounds);
            let next = source.wrapping_add(rows * step);
            let mut soon = if asks_later { next } else { null() };
            for (buffer, _) in buffers.iter_mut().zip(targets) {
                buffer.filled(rows * unit, &mut soon);
            }
        }
        bounds.readable = bounds.readable.saturating_sub(rows * step);
    }
    for (buffer, _) in buffers.iter_mut().zip(targets) {
        // SAFETY: as above.
        unsafe { buffer.finish() };
    }
}

#[cfg(test)]
mod tests {
    use super::{loops, Indices, Way, LONGEST, MAX_DEINTERLEAVED, MOST_INDICES, MOST_PIECES};
    use crate::copy::kernel::cpu::{Cpu, Level};

    #[test]
    fn all_groups_have_loops() {
        if Cpu::this().level < Level::Vbmi {
            return;
        }
        for (len, unit) in
            (2..=MAX_DEINTERLEAVED).flat_map(|len| (1..=LONGEST).map(move |unit| (len, unit)))
        {
            for between in [0, 1, 5, 17, 64, 300] {
                for (is_halved, by_turns) in [(false, false), (true, false), (true, true)] {
                    let by_turns = by_turns && len > MOST_PIECES;
                    let mut tables = [Indices::NONE; MOST_INDICES];
                    let step = len * unit + between;
                    // SAFETY: the level.
                    let way =
                        unsafe { Way::new(len, unit, step, is_halved, by_turns, &mut tables) };
                    let has_loop =
                        |way: Way<'_>| loops(&way.permute.packing, way.together).is_some();
                    assert!(
                        way.is_some_and(has_loop),
                        "{len}×{unit} in {step}, {is_halved}, {by_turns}"
                    );
                }
            }
        }
    }
}
