//! Short runs of any lengths by byte permutes.
//!
//! The idea: neighbouring pieces make groups, each of which has a layout (`permute.rs`) of its own: its
//! pieces share what is loaded of a row, and the number of rows of a step, which the longest of them
//! gives. Groups take turns over rows that stay in the first-level cache. Thirteen pieces of 1 to 13
//! bytes on Zen 5, share of the flat copy: .65 for .41 piece by piece.
//!
//! # Safety
//! As `permute.rs`.

use super::super::combine::{in_page, Scratch, LINE};
use super::super::opaque::opaque;
use super::super::row_major::{are_many, RowRun};
use super::super::strided::Axis;
use super::buffer::{asks_later, Buffer, BUFFERS, MEETINGS};
use super::equal_pieces::TURN;
use super::permute::{
    most_registers, Access, Bounds, Course, Indices, Packing, Permute, Streams, LONGEST,
    MOST_PIECES,
};
use crate::math::{div, next_multiple, parts, rem};
use core::ops::RangeInclusive;
use core::ptr::null;

/// More tables, or groups, are left to other loops.
const MOST_TABLES: usize = 40;
const MOST_GROUPS: usize = 10;

/// Where registers go as two halves, so many pieces, of so many bytes on average, go by groups of two: Zen 4 takes half
/// as long again for a line that is stored to a third target or further. Us for others: 6,000 rows of 13 of 1 to 13 bytes
/// 21.4 for 25.2, 3,000 of 16 of 1 to 16 14.6 for 20.6, 20,000 of 8 41 for 48; but 3,000 of 12 of 1 to 5 8.4 for 6.2, of 5,
/// 6, 7, 1, 2 and 3 3.4 for 3.1.
const MANY_TWOS: RangeInclusive<usize> = 7..=2 * MOST_GROUPS;
const LEAST_TWOS: usize = 5;

/// Some neighbouring pieces.
struct Group<'a> {
    /// The number of the first, and bytes to it from the first of all.
    first: usize,
    offset: usize,
    permute: Permute<'a>,
    streams: Streams,
    /// Rows that it has taken, and those of a turn: whole steps of it, or one more.
    done: usize,
    turn: usize,
    /// So many rows behind have all that is read and written too much.
    behind: usize,
}

impl Group<'_> {
    /// Takes rows up to one of all of them at least, in whole steps but for the last ones.
    ///
    /// # Safety
    /// 1, 2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn copy(&mut self, source: *const u8, all: &RowSpan, end: usize) {
        let left = all.count - self.done;
        if left == 0 {
            return;
        }
        let more = end.saturating_sub(self.done);
        let rows = if more > self.turn { self.turn + self.permute.packing.rows } else { self.turn };
        let rows = rows.min(left);
        let begin = self.done * all.step + self.offset;
        let (source, bounds) = (source.wrapping_add(begin), Bounds::reading(all.bytes - begin));
        let Self { permute, streams, .. } = self;
        // SAFETY: the caller's promise; what loops read and write too much is of the rows behind.
        unsafe {
            match streams.run.filter(|_| left >= rows + self.behind) {
                Some(run) => {
                    let course = Course { first: permute.packing.rows, rows, blocks: Axis::ONE };
                    run(permute, source, streams, &course, Access::PLAIN);
                }
                None => permute.copy(source, streams, rows, left, bounds),
            }
        }
        self.done += rows;
    }
}

/// Rows, and bytes from the first to the end of the last.
struct RowSpan {
    step: usize,
    count: usize,
    bytes: usize,
}

/// Copies the runs of `count` rows, `step` bytes apart, if all are short, and there are enough of them;
/// whether they were.
///
/// # Safety
/// 1, 2.
#[inline(never)] // which takes some of the stack
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn copy_by(runs: &[RowRun], step: usize, count: usize, is_halved: bool) -> bool {
    let [first, .., last] = runs else { return false };
    if count == 0 {
        return true;
    }
    let width: usize = runs.iter().map(|run| run.bytes).sum();
    let are_twos = is_halved && MANY_TWOS.contains(&runs.len()) && width >= LEAST_TWOS * runs.len();
    let most = if are_twos { 2 } else { MOST_PIECES };
    let mut tables = [Indices::NONE; MOST_TABLES];
    let mut groups = [const { None }; MOST_GROUPS];
    // SAFETY: 1.
    if !unsafe { fill(&mut groups, &mut tables, runs, step, most, is_halved) } {
        return false;
    }
    let bytes = (count - 1) * step + (last.source as usize - first.source as usize) + last.bytes;
    let all = RowSpan { step, count, bytes };
    let is_one = groups.iter().flatten().count() == 1;
    let block = if is_one { count } else { div(TURN, step).max(1) };
    for group in groups.iter_mut().flatten() {
        let packing = &group.permute.packing;
        group.turn = block - rem(block, packing.rows);
        group.behind = if is_halved { div(packing.reach(), step) + LINE } else { usize::MAX / 2 };
    }
    for rows in parts(0..count, block) {
        for group in groups.iter_mut().flatten() {
            // SAFETY: the caller's promise.
            unsafe { group.copy(first.source, &all, rows.end) };
        }
    }
    true
}

/// The same; `HALVED` says that registers go as two halves: then of no more than so many bytes and of many rows at a time.
/// Zen 4, time for piece by piece: 13 of 1 to 13 bytes .65, four of 3 to 9 in rows of 70 .45, twelve of 2 to 29 .71; but
/// three of 2 to 30 1.26, four of 16 and 32 1.55, 300 rows of six 1.4, and by blocks of rows 707 of 2 to 10 3.1.
///
/// # Safety
/// As [`copy_by`].
pub(super) unsafe fn copy<const HALVED: bool>(runs: &[RowRun], step: usize, count: usize) -> bool {
    let is_right =
        !HALVED || (are_many(count, runs.len()) && runs.iter().all(|run| run.bytes <= MOST_BYTES));
    // SAFETY: the caller's promise.
    is_right && unsafe { copy_by(runs, step, count, HALVED) }
}

const MOST_BYTES: usize = 24;

/// The most pieces that go past the caches together, and bytes of buffers beyond what they hold: for bytes
/// that are not ours or are carried, for steps that go on, for lines, and to begin at one.
const MOST_BUFFERS: usize = 16;
const SPARE: usize = 4 * LINE;
/// Fewer rows at a time are not worth it.
const LEAST_ROWS: usize = 16;

/// Where registers go as two halves, so many bytes of runs on average, if they are less than half of the rows: long
/// ones lie between. Zen 4, four of 8 to 32 in rows of 360 2,500 us for 3,200 by merging lines, but four of 25 to 30 in
/// rows of 107 710 for 610.
const COMBINED_OF_PARTS: usize = 8;
/// More pieces than this prefetch while they are permuted there too.
const MOST_BY_POINTERS: usize = 8;

/// The same past the caches, by way of write-combining buffers. Prefetches so many bytes ahead. It does not
/// go by `count`: parts of the rows meet at rows here, and within lines where runs are merged. `HALVED` says that
/// registers go as two halves: then rows are asked for while lines go off.
///
/// # Safety
/// 1, 2, 3.
pub(super) unsafe fn combine<const HALVED: bool>(
    runs: &[RowRun],
    step: usize,
    count: usize,
    ahead: usize,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { combine_by(runs, step, count, ahead, HALVED) }
}

/// # Safety
/// As [`combine`].
#[inline(never)] // which takes much of the stack
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn combine_by(
    runs: &[RowRun],
    step: usize,
    count: usize,
    ahead: usize,
    is_halved: bool,
) -> bool {
    let [first, .., last] = runs else { return false };
    let (mut width, mut longest) = (0, 0);
    for run in runs {
        (width, longest) = (width + run.bytes, longest.max(opaque(run.bytes)));
    }
    if is_halved && 2 * width < step && width > COMBINED_OF_PARTS * runs.len() {
        return false;
    }
    let meetings = if is_halved { MEETINGS } else { 0 };
    let kept = (runs.len() + meetings) * SPARE;
    let block = div(BUFFERS.saturating_sub(kept), width + meetings * longest);
    if block < LEAST_ROWS || runs.len() > MOST_BUFFERS {
        return false;
    }
    let by_pointers = is_halved && runs.len() <= MOST_BY_POINTERS && asks_later(width, step);
    let mut tables = [Indices::NONE; MOST_TABLES];
    let mut groups = [const { None }; MOST_BUFFERS / 2];
    // SAFETY: 1.
    if !unsafe { fill(&mut groups, &mut tables, runs, step, MOST_PIECES, by_pointers) } {
        return false;
    }
    if count == 0 {
        return true;
    }
    let mut scratch = Scratch::<BUFFERS>::NEW;
    let mut buffers = [Buffer::NONE; MOST_BUFFERS];
    let mut room = scratch.as_mut_ptr();
    for (buffer, run) in buffers.iter_mut().zip(runs) {
        let bytes = block * run.bytes / LINE * LINE + SPARE;
        if is_halved {
            room = in_page(room, bytes);
        }
        *buffer = Buffer::new(run.target, room);
        room = room.wrapping_add(bytes);
    }
    let bytes = (count - 1) * step + (last.source as usize - first.source as usize) + last.bytes;
    let share = groups.iter().flatten().count();
    for rows in parts(0..count, block) {
        for (number, group) in groups.iter_mut().flatten().enumerate() {
            for (slot, buffer) in
                group.streams.targets.iter_mut().zip(buffers.iter().skip(group.first))
            {
                *slot = buffer.room();
            }
            let begin = rows.start * step + group.offset;
            let ahead = ahead + div(rows.len() * step * number, share);
            let ahead = if by_pointers { 0 } else { ahead };
            let access = Access { ahead, share, ..Access::PLAIN };
            let bounds = Bounds { spare: LINE, access, ..Bounds::reading(bytes - begin) };
            // Whole steps: what is too much is put there once more.
            let some =
                next_multiple(rows.len(), group.permute.packing.rows).min(count - rows.start);
            // SAFETY: the caller's promise; buffers have room for as many bytes.
            unsafe {
                let source = first.source.wrapping_add(begin);
                group.permute.copy(source, &mut group.streams, some, some, bounds);
            }
        }
        let next = first.source.wrapping_add(rows.end * step);
        let mut soon = if by_pointers { next } else { null() };
        for (buffer, run) in buffers.iter_mut().zip(runs) {
            // SAFETY: as above.
            unsafe { buffer.filled(rows.len() * run.bytes, &mut soon) };
        }
    }
    for (buffer, _) in buffers.iter_mut().zip(runs) {
        // SAFETY: as above.
        unsafe { buffer.finish() };
    }
    true
}

/// Makes groups of all pieces, so many at the most in each; whether it could.
///
/// # Safety
/// 1.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn fill<'a>(
    groups: &mut [Option<Group<'a>>],
    mut tables: &'a mut [Indices],
    runs: &[RowRun],
    step: usize,
    most: usize,
    is_halved: bool,
) -> bool {
    let Some(begin) = runs.first().map(|run| run.source as usize) else { return false };
    let (mut slots, mut from) = (groups.iter_mut(), 0);
    while from < runs.len() {
        // The last one by itself goes with the one before, once more.
        from = from.min(runs.len() - 2);
        let Some((packing, some)) =
            runs.get(from..).and_then(|rest| best(rest, step, most, is_halved))
        else {
            return false;
        };
        let Some((own, rest)) = tables.split_at_mut_checked(packing.tables()) else { return false };
        tables = rest;
        let Some(offset) = some.first().map(|run| run.source as usize - begin) else {
            return false;
        };
        let mut pieces = some.iter().map(|run| ((run.source as usize - begin) - offset, run.bytes));
        // SAFETY: 1.
        let Some(permute) = (unsafe { Permute::new(packing, own, &mut pieces) }) else {
            return false;
        };
        let streams = Streams::of_one(&packing, some.iter().map(|run| run.target));
        let Some(slot) = slots.next() else { return false };
        *slot = Some(Group { first: from, offset, permute, streams, done: 0, turn: 0, behind: 0 });
        from += some.len();
    }
    true
}

/// The layout that takes the first pieces, two or more, at the least cost for each byte; and these.
fn best(
    runs: &[RowRun],
    step: usize,
    most: usize,
    is_halved: bool,
) -> Option<(Packing, &[RowRun])> {
    let mut best: Option<(Packing, usize, &[RowRun])> = None;
    let first = runs.first()?;
    let (mut longest, mut all) = (0, 0);
    for (pieces, last) in (1..=most).zip(runs) {
        (longest, all) = (longest.max(last.bytes), all + last.bytes);
        if longest > LONGEST {
            return None;
        }
        if pieces == 1 {
            continue;
        }
        let width = (last.source as usize + last.bytes).checked_sub(first.source as usize)?;
        let lanes = (most_registers(pieces), 4);
        let Some(packing) = Packing::quickest(pieces, longest, width, step, lanes, is_halved)
        else {
            break;
        };
        let bytes = packing.rows * all;
        // One that is left over goes with one of these once more.
        let bytes = if runs.len() == pieces + 1 { div(2 * bytes, 3) } else { bytes };
        if best.as_ref().is_none_or(|(best, most, _)| packing.cost() * most < best.cost() * bytes) {
            best = Some((packing, bytes, runs.get(..pieces)?));
        }
    }
    best.map(|(packing, _, some)| (packing, some))
}
