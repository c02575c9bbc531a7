//! The canonical form of packed tensors: the input is rows of the whole axis, and each piece takes
//! a run of every row. The element type is gone: only bytes are left.
//!
//! | file | what it holds |
//! |---|---|
//! | `nest.rs`, `run.rs` | blocks of rows under axes, over which an odometer goes; what a piece has of each row |
//! | `group.rs` | which pieces are copied together |
//! | `deinterleave.rs`, `transpose.rs` | pieces of one width: few, and many |
//! | `gathered.rs` | rows of short blocks, wherever these lie, as those of one |
//! | `pairs.rs` | many equal short runs, to two pieces at a time |
//! | `merge.rs`, `combine.rs` | past the caches: whole lines of runs, and by way of write-combining buffers |
//! | `repeat.rs` | blocks that are repeated |
//! | `stepped.rs` | rows of which every second or third step is there |

mod combine;
mod deinterleave;
mod gathered;
mod group;
mod merge;
mod nest;
#[cfg(feature = "avx512")]
mod pairs;
mod repeat;
mod run;
mod stepped;
mod transpose;

use super::kernel::combine::LINE;
use super::kernel::row_major::{are_many, RowRun, MANY_ROWS};
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::{self, Axis, Row};
use super::kernel::{Gather, PAGE, TURNS};
use super::runs::{self, Ahead};
use super::tuning::{Tuning, LEAST_PAST, SHORT_RUN};
use crate::error::number;
use crate::math::{self, div, div_ceil, signed};
use crate::parts::{self, Part, Transfer};
use crate::shape::usize_of;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::null;
use core::slice::{from_mut, from_raw_parts_mut};
use group::{Group, MAX_GROUP};
pub(super) use nest::Nest;
use run::Run;

/// Rows, one as far from the next as the other.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    source: *const u8,
    /// How many.
    count: usize,
    /// Bytes from a row to the next.
    row: usize,
    /// Bytes of a row: of everything from the split axis inward.
    width: usize,
    /// Units of one step on the split axis: bytes, or elements where several share one.
    step: usize,
    /// How many of them make a byte, as a power of two.
    shared: u32,
    /// Whether pieces are so many that one after the other is the quickest.
    by_piece: bool,
    /// Blocks of such rows that follow, and may be taken with it: those are no longer there then.
    more: Axis,
    tuning: Tuning,
}

// SAFETY: the input is only read.
unsafe impl Sync for Rows {}

/// Makes a block the next one, puts its targets into the runs, and gives which of its rows are wanted.
type NextRows<'a> = dyn FnMut(&mut Rows, &mut [Run]) -> Option<Range<usize>> + 'a;

/// Rows are taken in blocks of about this many bytes, which stay in the first-level cache while
/// one group of pieces after the other takes its runs.
const BLOCK: usize = 24 << 10;
/// The same where they go past the caches, in the second-level cache: each begins and ends within
/// lines of the pieces.
const BLOCK_PAST: usize = 256 << 10;
/// Blocks are of a multiple of so many rows: as many short runs are worth a loop, and end a line
/// where they began one.
const BLOCK_ROWS: usize = 64;

/// Of more pieces each is taken by itself. Zen 5, through the caches, share of the flat copy for row by row: 33 of
/// 65 bytes .75 for .61, of 128 .80 for .68, of 2,000 .84 for .78; 40 of 100 to 129 bytes .79 for .62.
const MOST_BY_ROW: usize = 24;

/// Runs of so many bytes take turns rather than being merged. Zen 4, 24 MiB of rows of two that have as many bytes
/// as one between them, share of the flat copy by turns and merged: 256 bytes .47, .58, 384 .46, .54, 512 .58, .37,
/// 768 .65, .41; 16 bytes off .53, .79; .60, .68; .62, .39; .66, .43.
const LEAST_MERGED: usize = 512;

/// More pieces are many: past the caches, and of equal runs; the least bytes of a row, unless it has two and a half for
/// each, and of one of equal runs; the longest runs past the caches, on average; and the least bytes of all rows.
const MANY_PAST: usize = 80;
const MANY_EQUAL: usize = 47;
const LEAST_ROW: usize = 1 << 10;
const LEAST_EQUAL: usize = 512;
const LONGEST_PAST: usize = 20;
/// Longer ones, of up to [`SHORT_RUN`] bytes, where so few pieces are together, or far more are equal. Zen 4, ms in
/// 17 MiB for by groups: 300 of 16 or 32 bytes 3.8 for 7.1, 761 3.9 for 14.4, 800 of 32 2.6 for 4.0; but 300 of 31 4.6
/// for 3.7.
const FEW_TOGETHER: usize = 8;
const LEAST_BY_PIECE: usize = if LOW_THRESHOLDS { 0 } else { 48 << 10 };

/// Elements of one width go together with others if pieces are no more than this, of no fewer bytes on average, each of no
/// more; through the caches and past them. Zen 4, us for groups of their own: 20 of 9 to 23 bytes 4 MB 178 for 509, 11 of 8
/// to 16 1.6 MB 51 for 105; 8 of 25 and 32 36 MB 3,250 for 6,500, 19 of 2 to 32 24 MB 2,270 for 3,550; but two such
/// groups past the caches 3,700 for 2,340, 27 of 6 to 10 6,400 for 4,780, and 958 rows of 19 of 5 to 16 14 for 6.
const MIXED: [usize; 3] = [20, 5, 24];
const MIXED_PAST: [usize; 3] = [MAX_GROUP, 10, SHORT_RUN];
/// The fewest groups that they are otherwise.
const LEAST_MIXED: usize = 3;

impl Rows {
    /// Those of a packed input.
    fn new(transfer: &Transfer<'_>, tuning: Tuning) -> Self {
        let geometry = &transfer.geometry;
        let bits = geometry.dtype.bits();
        let step = usize_of(geometry.inner) * (bits / 8).max(1) as usize;
        let mut rows = Self {
            source: transfer.source.wrapping_add(transfer.bit_offset as usize / 8),
            count: usize_of(geometry.outer),
            shared: (8 / bits.clamp(1, 8)).trailing_zeros(),
            by_piece: cfg!(feature = "avx512")
                && tuning.kernels.pair.is_some()
                && transfer.parts.count() > MOST_BY_ROW,
            ..Self::of_units(step, 0, tuning)
        };
        rows.width = rows.bytes(geometry.extent);
        rows.row = rows.width;
        let pieces = transfer.parts.count();
        let are_equal = || {
            let longest = transfer.parts.iter().longest(geometry.extent);
            longest.saturating_mul(number(pieces)) == geometry.extent
        };
        rows.tuning = tuning.for_rows(pieces, div_ceil(rows.width, pieces), &are_equal);
        rows
    }

    /// None yet, of units of so many bytes, rows as far apart.
    fn of_units(step: usize, row: usize, tuning: Tuning) -> Self {
        let (source, more) = (null(), Axis::NONE);
        let (count, shared, by_piece) = (0, 0, false);
        Self { source, count, row, width: row, step, shared, by_piece, more, tuning }
    }

    /// Makes so many rows, which go on one behind the other, one.
    fn widen(&mut self, rows: usize) {
        self.step *= rows;
        self.width *= rows;
        self.row = self.width;
    }

    /// Bytes of steps on the split axis, which are whole ones.
    fn bytes(&self, steps: i64) -> usize {
        (usize_of(steps) * self.step) >> self.shared
    }
}

impl Nest<'_> {
    /// How many rows to cut at: so many that short runs make whole lines.
    pub(super) fn granule(&self) -> usize {
        div(LINE * LINE, self.block.width).clamp(1, LINE)
    }

    /// Copies what all pieces have in a range of rows, whether they are repeated or not.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    unsafe fn copy_rows(&self, parts: &parts::Iter<'_>, rows: Range<usize>) {
        if self.apart != 0 {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_stepped(parts, rows) };
        }
        // SAFETY: the caller's promise.
        unsafe {
            if self.transpose(parts, &rows) {
                return self.block.tuning.finish();
            }
            #[cfg(feature = "avx512")]
            if self.copy_pairs(parts, &rows) {
                return;
            }
            self.copy_groups(parts, rows);
        }
    }

    /// Copies rows some neighbouring pieces at a time.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // which takes some of the stack
    unsafe fn copy_groups(&self, parts: &parts::Iter<'_>, rows: Range<usize>) {
        let tuning = &self.block.tuning;
        let mut group = Group::NONE;
        group.is_mixed = cfg!(feature = "avx512") && self.is_mixed(parts, &mut group);
        let mut all = parts.clone();
        self.next_group(&mut group, &mut all);
        let is_one = all.next().is_none();
        let past = tuning.non_temporal.is_some();
        let is_deinterleaved = group.is_deinterleaved(tuning);
        if cfg!(feature = "avx512") && tuning.goes_by_piece {
            // SAFETY: the caller's promise.
            let was_copied =
                unsafe { self.copy_by_piece(parts, &rows, group.runs().len(), is_deinterleaved) };
            if was_copied {
                return;
            }
        }
        let is_one_deinterleaved = is_one && is_deinterleaved;
        let is_short = group.runs().iter().all(|run| run.bytes < SHORT_RUN);
        let is_near = is_short || !self.is_apart();
        if is_one && !is_one_deinterleaved && !past && self.is_one_block() && is_near {
            // SAFETY: the caller's promise.
            if unsafe { self.block.row_major(group.runs(), &rows) } {
                return;
            }
        }
        // Short runs do better by many rows at a time. Zen 4, us for blocks of 24 KiB: 11 pieces of 8 to 48 bytes 3.3 MB
        // 108 for 198, 9 of 16 to 64 33 for 53, 23 of 5 to 12 320 KB 11 for 26; but a 48, an 8 and six 48 10.9 for 9.4.
        let take_turns = cfg!(feature = "avx512")
            && tuning.goes_by_piece
            && !is_one
            && self.all_rows() >= MANY_ROWS;
        let are_long = past
            || is_deinterleaved
            || (take_turns && self.block.width <= parts.most() * SHORT_RUN);
        let few = self.block.rows_within(if are_long { BLOCK_PAST } else { BLOCK });
        // What is one group reads the input in its order, and but once; where there is one run, nothing takes turns.
        let is_in_order = past || is_one_deinterleaved || group.runs().len() == 1 || self.is_by_row;
        let block = if is_one && is_in_order { rows.len() } else { few };
        let small = if past && !is_one { self.small(parts) } else { 0 };
        for rows in math::parts(rows, block) {
            if is_one {
                // SAFETY: as above.
                unsafe { self.copy_group(&mut group, rows, false) };
                continue;
            }
            all = parts.clone();
            while self.next_group(&mut group, &mut all) {
                let is_small = group.runs().iter().all(|run| run.bytes <= small);
                // SAFETY: as above.
                unsafe { self.copy_group(&mut group, rows.clone(), is_small) };
            }
        }
        self.block.tuning.finish();
    }

    /// Whether elements of one width go together with others.
    fn is_mixed(&self, parts: &parts::Iter<'_>, group: &mut Group) -> bool {
        let Rows { width, tuning, .. } = self.block;
        let [most, least, longest] = if tuning.non_temporal.is_some() { MIXED_PAST } else { MIXED };
        let pieces = parts.most();
        if !tuning.goes_by_piece
            || pieces > most
            || !self.is_one_block()
            || width < least * pieces
            || !(LOW_THRESHOLDS || are_many(self.all_rows(), pieces))
            || self.block.bytes(parts.clone().longest(self.transfer.geometry.extent)) > longest
        {
            return false;
        }
        let (mut all, mut groups) = (parts.clone(), 0);
        while self.next_group(group, &mut all) {
            groups += 1;
        }
        groups >= LEAST_MIXED
    }

    /// Copies some rows piece by piece through the caches, if pieces are many and their runs short; whether they were.
    /// So many of them, from the first on, would go together.
    /// Each asks for the lines of the next one, which no CPU foresees, and for its share of the next rows. It does not go
    /// by `rows`: parts of the rows meet at rows here, and within lines where runs are merged.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // which takes some of the stack
    unsafe fn copy_by_piece(
        &self,
        parts: &parts::Iter<'_>,
        rows: &Range<usize>,
        together: usize,
        is_deinterleaved: bool,
    ) -> bool {
        let Rows { source, row, width, tuning, .. } = self.block;
        let Some(stores) = &tuning.kernels.non_temporal else { return false };
        let pieces = parts.most();
        let (fewest, longest) = match tuning.non_temporal {
            Some(_) if width <= pieces * LONGEST_PAST => (MANY_PAST, LONGEST_PAST),
            Some(_) if together < FEW_TOGETHER => (2 * MANY_PAST, SHORT_RUN),
            Some(_) if is_deinterleaved => (5 * MANY_PAST, SHORT_RUN),
            Some(_) => return false,
            None if is_deinterleaved => (MANY_EQUAL, SHORT_RUN),
            None => (MAX_GROUP, LINE - 1),
        };
        let least = if is_deinterleaved { LEAST_EQUAL } else { (pieces * 5 / 2).min(LEAST_ROW) };
        if pieces <= fewest
            || !(least..=pieces * longest).contains(&width)
            || self.all_rows() * width < LEAST_BY_PIECE
            || !self.is_one_block()
        {
            return false;
        }
        // Zen 4, time for asking: 50 of 20 bytes, 1 MB, .68, 64 of 18, 7 MB, .81; past the caches 300 of 12, 11 MB, 1.9.
        let asks = tuning.non_temporal.is_some();
        // As many lines, so far apart, as the first-level cache has room for.
        let most = (8 * PAGE) >> row.trailing_zeros().clamp(7, 9);
        for rows in math::parts(rows.clone(), self.block.rows_within(BLOCK_PAST).min(most)) {
            let ask = |part: Part| {
                let runs = self.block.some_runs(&self.block.run(&part), &rows);
                if asks {
                    (stores.prefetch)(runs.target, runs.count * runs.unit);
                }
                runs
            };
            let share = div(rows.len() * row, pieces);
            let mut soon = source.wrapping_add(rows.end * row);
            let mut all = parts.clone();
            let mut next = all.next().map(ask);
            while let Some(runs) = next {
                if asks {
                    (stores.prefetch)(soon, share);
                }
                soon = soon.wrapping_add(share);
                next = all.next().map(ask);
                // SAFETY: the caller's promise.
                unsafe { (tuning.kernels.gather(runs.unit))(runs) };
            }
        }
        true
    }

    /// Runs of up to so many bytes stay in the caches, for one piece has all but a little of the rows. Zen 5,
    /// 20 MiB of 118,784 bytes and 58 of 4 in each row, .6 ms for 1.0.
    #[inline(never)] // for its stack
    fn small(&self, parts: &parts::Iter<'_>) -> usize {
        let longest = self.block.bytes(parts.clone().longest(self.transfer.geometry.extent));
        let others = self.block.width.saturating_sub(longest);
        if others.saturating_mul(self.all_rows()) < LEAST_PAST {
            others
        } else {
            0
        }
    }

    /// Copies some rows of a group, through the caches or as they go.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    unsafe fn copy_group(&self, group: &mut Group, rows: Range<usize>, is_small: bool) {
        let mut block = self.block;
        if is_small {
            block.tuning = block.tuning.through_caches();
        }
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_one_block() {
                let mut all = Some(rows);
                return block.copy_group(group, self.is_apart(), &mut |_, _| all.take());
            }
            if self.has_short_lines(group) {
                return self.copy_lines(group, rows);
            }
            self.copy_blocks(&mut block, group, rows);
        }
    }

    /// Copies some rows of a group in several blocks.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // for its stack
    unsafe fn copy_blocks(&self, block: &mut Rows, group: &mut Group, rows: Range<usize>) {
        let is_deinterleaved = group.is_deinterleaved(&block.tuning);
        let mut blocks = self.blocks(rows);
        let mut offered = 0;
        let mut next = |block: &mut Rows, runs: &mut [Run]| {
            blocks.skip(offered - block.more.extent);
            let rows = blocks.next(block)?;
            block.more = Axis::NONE;
            if is_deinterleaved && rows.len() == block.count {
                block.more = blocks.more(runs);
            }
            offered = block.more.extent;
            for run in runs {
                run.target = blocks.target(run);
            }
            Some(rows)
        };
        // SAFETY: the caller's promise.
        unsafe { block.copy_group(group, true, &mut next) };
    }

    /// Whether blocks are single rows, and the runs of a group too short to be worth a call each.
    fn has_short_lines(&self, group: &Group) -> bool {
        let is_short = |run: &Run| run.bytes < runs::LONG;
        let tuning = self.block.tuning;
        let are_lines = match tuning.non_temporal {
            None => group.runs().iter().all(is_short),
            Some(_) => tuning.by_turns(group.shortest).is_some(),
        };
        self.is_by_row || (self.block.count == 1 && are_lines)
    }

    /// Copies single rows, or short blocks row by row: of some rows, one piece after the other.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // the loops beside it are the better for it
    unsafe fn copy_lines(&self, group: &Group, rows: Range<usize>) {
        let mut blocks = self.blocks(rows);
        let mut block = self.block;
        let by_turns = block.tuning.by_turns(group.shortest);
        let most = match by_turns {
            Some(_) => TURNS - 1,
            None if self.is_by_row => usize::MAX,
            None => block.rows_within(BLOCK),
        };
        while let Some(some) = blocks.next(&mut block) {
            let most = if some.len() == block.count { most } else { 0 };
            let Axis { extent: more, from: source_step, .. } = blocks.along(most);
            let mut room = [const { MaybeUninit::uninit() }; MAX_GROUP];
            let row = |run: &Run| Row {
                source: block.source.wrapping_add(run.offset),
                source_step,
                target: blocks.target(run),
                target_step: blocks.step(run),
                count: 1 + more,
                unit: run.bytes,
            };
            let rows = written(&mut room, group.runs().iter().map(row));
            // SAFETY: the caller's promise.
            unsafe {
                if self.is_by_row {
                    strided::copy_by_row(block.tuning.kernels, rows, some, block.row);
                } else {
                    for row in rows {
                        match by_turns {
                            Some(by_turns) => by_turns(*row),
                            None => strided::copy(block.tuning.kernels, *row),
                        }
                    }
                }
            }
            blocks.skip(more);
        }
    }

    /// Whether there are loops that take row after row.
    pub(super) fn is_row_major(&self) -> bool {
        let tuning = self.block.tuning;
        match tuning.non_temporal {
            Some(_) => tuning.is_row_major_past,
            None => tuning.kernels.row_major.is_some(),
        }
    }

    /// Makes a group the next pieces that are copied together; whether there are any.
    #[inline(never)] // for its stack
    fn next_group(&self, group: &mut Group, parts: &mut parts::Iter<'_>) -> bool {
        group.clear();
        let kernels = self.block.tuning.kernels;
        let mut after = parts.clone();
        while after.next().is_some_and(|part| group.push_if_joined(self.block.run(&part), kernels))
        {
            *parts = after.clone();
        }
        !group.runs().is_empty()
    }
}

impl Rows {
    /// Copies some rows of blocks; whether there is something between rows.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    unsafe fn copy_group(&mut self, group: &mut Group, is_apart: bool, next: &mut NextRows<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            if group.is_deinterleaved(&self.tuning) {
                return self.deinterleave(group.runs_mut(), next);
            }
            let shortest = group.shortest;
            let take_turns = shortest >= LEAST_MERGED && self.tuning.by_turns(shortest).is_some();
            if is_apart && (shortest >= runs::LONG || take_turns) {
                return self.copy_runs(group.runs_mut(), next);
            }
            let is_short = group.is_short();
            let is_all_short = group.runs().iter().all(|run| run.bytes <= SHORT_RUN);
            while let Some(rows) = next(self, group.runs_mut()) {
                match self.tuning.non_temporal {
                    Some(_) if is_all_short && self.combine_short(group.runs(), &rows) => {}
                    Some(past) if is_short => self.combine(past, group.runs(), &rows, Self::gather),
                    Some(past) => self.merge(past, group.runs(), &rows),
                    None => {
                        if !self.row_major(group.runs(), &rows) {
                            self.gather(group.runs(), &rows);
                        }
                    }
                }
            }
        }
    }

    /// Copies long runs of some rows of blocks, row by row.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    unsafe fn copy_runs(&mut self, runs: &mut [Run], next: &mut NextRows<'_>) {
        let mut last = None;
        let by_turns = self.tuning.by_turns(runs.first().map_or(0, |run| run.bytes));
        while let Some(rows) = next(self, runs) {
            if let Some(by_turns) = by_turns {
                // SAFETY: the caller's promise.
                unsafe { self.copy_by_turns(by_turns, runs, rows) };
                continue;
            }
            for row in rows {
                let begin = self.source.wrapping_add(row * self.row);
                // As far as this row is from the one before.
                let step = last.map_or(0, |last| (begin as usize).wrapping_sub(last));
                last = Some(begin as usize);
                let all = Ahead::of_row(self.width, begin.wrapping_add(step), self.tuning);
                for run in &*runs {
                    let source = begin.wrapping_add(run.offset);
                    let target = run.target.wrapping_add(row * run.bytes);
                    let ahead = Ahead { rest: all.rest - run.offset, ..all };
                    // SAFETY: the caller's promise.
                    unsafe { runs::copy(self.tuning, source, target, run.bytes, ahead) };
                }
            }
        }
    }

    /// The same past the caches, a few rows at a time.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // what is rare is not inlined
    unsafe fn copy_by_turns(&self, by_turns: unsafe fn(Row), runs: &[Run], rows: Range<usize>) {
        for rows in math::parts(rows, TURNS) {
            for run in runs {
                // SAFETY: the caller's promise.
                unsafe { by_turns(self.some_runs(run, &rows).into()) };
            }
        }
    }

    /// How many rows make about so many bytes.
    fn rows_within(&self, bytes: usize) -> usize {
        div(bytes, self.width).max(BLOCK_ROWS) / BLOCK_ROWS * BLOCK_ROWS
    }

    /// What a piece has of each row.
    fn run(&self, part: &Part) -> Run {
        let (offset, bytes) = (self.bytes(part.offset), self.bytes(part.len));
        Run { offset, bytes, target: part.target, first: part.target, index: part.index }
    }

    /// A piece's runs, all of them.
    fn runs(&self, run: &Run) -> Gather {
        Gather {
            source: self.source.wrapping_add(run.offset),
            step: self.row,
            target: run.target,
            count: self.count,
            unit: run.bytes,
        }
    }

    /// A piece's runs in some rows.
    fn some_runs(&self, run: &Run, rows: &Range<usize>) -> Gather {
        let all = self.runs(run);
        Gather {
            source: all.source.wrapping_add(rows.start * self.row),
            target: all.target.wrapping_add(rows.start * run.bytes),
            count: rows.len(),
            ..all
        }
    }

    /// Copies some rows of pieces by loops that go row after row, if there are such for them; whether
    /// there were.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    unsafe fn row_major(&self, runs: &[Run], rows: &Range<usize>) -> bool {
        let Some(row_major) = self.tuning.kernels.row_major.filter(|_| !self.by_piece) else {
            return false;
        };
        // SAFETY: the caller's promise.
        self.by_rows(runs, rows, &mut |slots| unsafe { row_major(slots, self.row, rows.len()) })
    }

    /// Copies short runs of some rows past the caches, if there are loops for that; whether there were.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    unsafe fn combine_short(&self, runs: &[Run], rows: &Range<usize>) -> bool {
        let Some(combine) = self.tuning.kernels.combine else { return false };
        let ahead = self.tuning.prefetch;
        // SAFETY: the caller's promise.
        self.by_rows(runs, rows, &mut |slots| unsafe {
            combine(slots, self.row, rows.len(), ahead)
        })
    }

    /// Gives some rows of pieces to loops that go row after row; what these say.
    #[inline(never)] // for its stack
    fn by_rows(
        &self,
        runs: &[Run],
        rows: &Range<usize>,
        copy: &mut dyn FnMut(&mut [RowRun]) -> bool,
    ) -> bool {
        let run = |run: &Run| RowRun {
            source: self.source.wrapping_add(rows.start * self.row + run.offset),
            bytes: run.bytes,
            target: run.target.wrapping_add(rows.start * run.bytes),
        };
        copy(written(&mut [const { MaybeUninit::uninit() }; MAX_GROUP], long_first(runs).map(run)))
    }

    /// Copies some rows of pieces, one after the other.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // once in the library
    unsafe fn gather(&self, runs: &[Run], rows: &Range<usize>) {
        for run in long_first(runs) {
            // SAFETY: the caller's promise.
            unsafe { (self.tuning.kernels.gather(run.bytes))(self.some_runs(run, rows)) };
        }
    }

    /// Copies the bytes `range` of a piece to its packed target.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    pub(super) unsafe fn copy(&self, part: &Part, range: Range<usize>) {
        let all = self.runs(&self.run(part));
        let kernels = self.tuning.kernels;
        let lines = all.line_after(range.start)..all.line_floor(range.end);
        // SAFETY: the caller's promise.
        unsafe {
            match self.tuning.non_temporal {
                Some(stores) if !lines.is_empty() => {
                    all.copy_range(kernels, range.start..lines.start);
                    let mut stream = all.stream(lines.start);
                    let (mut at, mut bytes) = (lines.start, stream.left);
                    let mut next = stream.source;
                    // Run by run, for what is prefetched lies ahead of each.
                    while at < lines.end {
                        bytes = bytes.min(lines.end - at);
                        stream.turn = signed(bytes);
                        let ahead = next.wrapping_add(self.tuning.prefetch);
                        (stores.merge)(from_mut(&mut stream), 1, ahead, 0);
                        at += bytes;
                        next = next.wrapping_add(bytes + stream.gap);
                        bytes = stream.unit;
                    }
                    all.copy_range(kernels, lines.end..range.end);
                }
                _ => all.copy_range(kernels, range),
            }
        }
        self.tuning.finish();
    }
}

/// The runs, from the first that is not short: its reads are foreseen, and bring most of the lines that
/// shorter ones read, which alone would be read a row apart.
fn long_first(runs: &[Run]) -> impl Iterator<Item = &Run> {
    let first = runs.iter().position(|run| run.bytes > SHORT_RUN).unwrap_or(0);
    runs.iter().skip(first).chain(runs.iter().take(first))
}

/// As many items as there is room for, in it: an array that is filled first is written twice, by a store for each word.
#[inline(always)]
fn written<T>(room: &mut [MaybeUninit<T>], items: impl Iterator<Item = T>) -> &mut [T] {
    let mut len = 0;
    for (slot, item) in room.iter_mut().zip(items) {
        slot.write(item);
        len += 1;
    }
    // SAFETY: so many have been written.
    unsafe { from_raw_parts_mut(room.as_mut_ptr().cast(), len) }
}

#[cfg(test)]
mod tests {
    use super::{Nest, Tuning};
    #[cfg(unix)]
    use crate::copy::guarded::Guarded;
    use crate::copy::testing::{parts, steps, transfer};
    use crate::dtype::DType;
    use crate::parts::Parts;
    use core::ptr::null_mut;
    use proptest::prelude::*;

    const MARGIN: usize = 80;

    /// No byte of the input.
    const UNTOUCHED: u8 = 0xEE;

    /// Rows of `lengths` bytes, each piece into a buffer `ahead` bytes from alignment, by one of
    /// the two ways that there are, in two parts; compared with the pieces cut out row by row.
    fn check(lengths: &[i64], rows: i64, ahead: usize, tuning: Tuning, by_piece: bool, cut: usize) {
        let row: i64 = lengths.iter().sum();
        let bytes = usize::try_from(rows * row).unwrap();
        let source: Vec<u8> =
            (0..bytes).map(|i| (i * 31 % 229 + i / 229 % 7).to_le_bytes()[0]).collect();
        let shape = [rows, row];
        let matrix = transfer(DType::Uint8, &shape, 1, source.as_ptr(), &[]);
        let form = Nest::new(&matrix, &tuning).unwrap();
        let size = |len: i64| usize::try_from(rows * len).unwrap();
        let mut buffers: Vec<Vec<u8>> =
            lengths.iter().map(|len| vec![0; size(*len) + 2 * MARGIN + ahead]).collect();
        // What a part alone writes.
        let mut copy_part = |is_first: bool| {
            let part = |all: usize| if is_first { 0..cut % all } else { cut % all..all };
            for buffer in &mut buffers {
                buffer.fill(UNTOUCHED);
            }
            let begin = |buffer: &mut Vec<u8>| buffer.as_mut_ptr().wrapping_add(MARGIN + ahead);
            let parts = parts(lengths, buffers.iter_mut().map(begin).map(Some));
            // SAFETY: buffers and source are as long as the plan says.
            unsafe {
                if by_piece {
                    for one in &parts {
                        form.block.copy(one, part(size(one.len)));
                    }
                } else {
                    form.copy_all(&Parts::Listed(&parts).iter(), part(form.all_rows()));
                }
            }
            buffers.clone()
        };
        let pieces = parts(lengths, lengths.iter().map(|_| Some(null_mut())));
        let copies: Vec<_> = copy_part(true).into_iter().zip(copy_part(false)).collect();
        for piece in &pieces {
            let (first, second) = &copies[piece.index];
            let run = steps(piece);
            let mut expected = vec![UNTOUCHED; MARGIN + ahead];
            for row in source.chunks(usize::try_from(row).unwrap()) {
                expected.extend_from_slice(&row[run.clone()]);
            }
            expected.resize(first.len(), UNTOUCHED);
            // Threads may have them: no byte is written by both.
            let is_of_both = |(a, b): (&u8, &u8)| *a != UNTOUCHED && *b != UNTOUCHED;
            let shared = first.iter().zip(second).position(is_of_both);
            assert_eq!(shared, None, "piece {}: a byte of both parts", piece.index);
            let both: Vec<u8> = first.iter().zip(second).map(|(a, b)| *a.min(b)).collect();
            assert!(both == expected, "piece {}", piece.index);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

        #[test]
        fn pieces_of_any_lengths(
            lengths in prop::collection::vec(prop_oneof![0i64..20, 0i64..300, Just(4), Just(1500)], 1..20),
            rows in 1i64..300,
            ahead in 0usize..70,
            by_piece in any::<bool>(),
            cut in any::<usize>(),
        ) {
            prop_assume!(lengths.iter().sum::<i64>() > 0);
            for tuning in Tuning::all() {
                check(&lengths, rows, ahead, tuning, by_piece, cut);
            }
        }

        #[test]
        fn many_short_pieces(
            width in 1i64..=16,
            pieces in 2usize..40,
            other in prop::option::of(0i64..20),
            rows in 1i64..2000,
            ahead in 0usize..70,
            cut in any::<usize>(),
        ) {
            let lengths = std::iter::repeat_n(width, pieces).chain(other).collect::<Vec<_>>();
            for tuning in Tuning::all() {
                check(&lengths, rows, ahead, tuning, false, cut);
            }
        }
    }

    /// Some of the groups that take turns are done before the others.
    #[test]
    fn more_rows_than_a_turn_but_no_more_than_a_step() {
        for rows in [17, 23, 29, 31, 40] {
            for tuning in Tuning::all() {
                check(&[5, 7, 1, 4, 4, 1500, 0], rows, 0, tuning, false, 0);
            }
        }
    }

    #[test]
    fn short_runs_of_very_many_pieces() {
        let uneven = (0..240).map(|at| at % 9 + at % 2).collect();
        for lengths in [uneven, vec![12; 64], vec![24; 48], vec![24; 90]] {
            for (rows, ahead, cut) in [(3, 0, 1), (130, 5, 64), (200, 16, 7)] {
                for tuning in Tuning::all() {
                    check(&lengths, rows, ahead, tuning, false, cut);
                }
            }
        }
    }

    #[test]
    fn every_length_at_every_offset_from_a_line() {
        for length in 1..=300 {
            for ahead in [0, 1, 7, 16, 31, 33, 63] {
                for tuning in Tuning::all() {
                    check(&[length, 3], 9, ahead, tuning, length % 2 == 0, 5);
                }
            }
        }
    }

    /// Input and outputs at the very end, or the very begin, of memory that may be touched.
    #[cfg(unix)]
    fn check_guarded(memory: &[Guarded], lengths: &[i64], rows: usize, at_end: bool) {
        let row: i64 = lengths.iter().sum();
        let shape = [i64::try_from(rows).unwrap(), row];
        let row = usize::try_from(row).unwrap();
        let (source, outputs) = memory.split_first().unwrap();
        let source = source.place(rows * row, at_end);
        // SAFETY: that many bytes are there.
        let input = unsafe { std::slice::from_raw_parts(source, rows * row) };
        let size = |len: i64| rows * usize::try_from(len).unwrap();
        let places = lengths.iter().zip(outputs);
        let parts =
            parts(lengths, places.map(|(len, memory)| Some(memory.place(size(*len), at_end))));
        for tuning in Tuning::all() {
            // SAFETY: input and outputs are as long as the plan says.
            unsafe {
                for part in &parts {
                    part.target.write_bytes(UNTOUCHED, size(part.len));
                }
                let matrix = transfer(DType::Uint8, &shape, 1, source, &[]);
                let form = Nest::new(&matrix, &tuning).unwrap();
                form.copy_all(&Parts::Listed(&parts).iter(), 0..rows);
            }
            for part in &parts {
                // SAFETY: as above.
                let copied = unsafe { std::slice::from_raw_parts(part.target, size(part.len)) };
                let run = steps(part);
                let expected: Vec<u8> =
                    input.chunks(row).flat_map(|row| &row[run.clone()]).copied().collect();
                assert!(copied == expected, "{lengths:?}, {rows} rows, piece {}", part.index);
            }
        }
    }

    #[test]
    fn many_equal_pieces_in_two_parts() {
        for width in [9, 12, 20, 31, 48, 63, 100] {
            for (ahead, cut) in [(0, 40), (5, 64), (32, 129)] {
                for tuning in Tuning::all() {
                    check(&[width; 35], 301, ahead, tuning, false, cut);
                }
            }
        }
    }

    /// Runs of very unequal lengths, few rows and many.
    const UNEVEN: [&[i64]; 7] = [
        &[1, 32],
        &[32, 4],
        &[16, 32, 16],
        &[1, 2, 4, 32],
        &[9000, 100, 2050, 7],
        &[5200, 5200, 3],
        &[3500, 33, 0, 1],
    ];

    #[test]
    fn short_runs_beside_long_ones() {
        for lengths in UNEVEN {
            for (rows, ahead, cut) in [(3, 0, 1), (130, 5, 64), (400, 16, 7)] {
                for tuning in Tuning::all() {
                    check(lengths, rows, ahead, tuning, false, cut);
                }
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_touched_beside_short_runs_or_long_ones() {
        let memory: Vec<_> = (0..=4).map(|_| Guarded::filled(1536 << 10)).collect();
        for lengths in UNEVEN {
            for rows in [3, 130] {
                check_guarded(&memory, lengths, rows, true);
                check_guarded(&memory, lengths, rows, false);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn elements_of_several_widths_go_together_and_nothing_is_touched_beside_them() {
        let memory: Vec<_> = (0..=32).map(|_| Guarded::filled(1 << 20)).collect();
        let many: Vec<i64> = (0..32).map(|at| if at / 3 % 2 == 0 { 32 } else { 11 }).collect();
        let lists: [&[i64]; 5] = [
            &[8, 8, 16, 16, 8, 8, 12, 12, 8, 24],
            &[25, 25, 32, 25, 25, 32, 32, 25],
            &[5, 1, 1, 1, 1, 15, 19, 19, 5, 5],
            &[24, 24, 24, 24, 24, 9, 9, 7, 7, 24, 24, 24, 24, 24, 24, 24, 24, 24, 9, 9],
            &many,
        ];
        for lengths in lists {
            for rows in [530, 1100] {
                check_guarded(&memory, lengths, rows, true);
                check_guarded(&memory, lengths, rows, false);
            }
            for tuning in Tuning::all() {
                check(lengths, 1100, 5, tuning, false, 530);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_touched_beside_many_equal_pieces() {
        let bytes = |at| if at == 0 { 704 << 10 } else { 64 << 10 };
        let memory: Vec<_> = (0..=36).map(|at| Guarded::filled(bytes(at))).collect();
        for width in [9, 12, 20, 31, 33, 48, 63] {
            for pieces in [35, 36] {
                for rows in [3, 70, 301] {
                    check_guarded(&memory, &vec![width; pieces], rows, true);
                    check_guarded(&memory, &vec![width; pieces], rows, false);
                }
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_touched_before_or_after_input_and_outputs() {
        let memory: Vec<_> = (0..20).map(|_| Guarded::filled(704 << 10)).collect();
        for width in [1, 2, 3, 4, 5, 8, 9, 12, 16, 20, 36, 45, 133] {
            for pieces in 1..=18 {
                for others in [&[][..], &[3], &[300]] {
                    let mut lengths = vec![width; pieces];
                    lengths.extend(others);
                    for rows in [70, 257] {
                        check_guarded(&memory, &lengths, rows, true);
                        lengths.rotate_right(1);
                        check_guarded(&memory, &lengths, rows, false);
                    }
                }
            }
        }
    }
}
