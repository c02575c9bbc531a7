//! Rows that do not all lie as far from one another: blocks, of which each is what the loops take, and
//! axes outward of them, over which an odometer goes. Packed tensors are one block.

use super::super::kernel::row_major::are_in_one_set;
use super::super::kernel::{are_near, strided, Kernels, LEAST_TURN, MAX_DEINTERLEAVED};
use super::run::Run;
use super::{runs, Rows, Tuning, LINE, LOW_THRESHOLDS};
use crate::copy::kernel::pick::LEAST_PICKED;
use crate::copy::layout::stride;
use crate::copy::region::LONGEST_PICKED;
use crate::math::{div, div_rem, signed, wrapped};
use crate::parts::{Part, Transfer};
use crate::shape::usize_of;
use core::ops::Range;

/// An input as blocks of rows.
pub(in super::super) struct Nest<'a> {
    pub(super) transfer: &'a Transfer<'a>,
    /// The first block.
    pub(in super::super) block: Rows,
    /// Bytes from a step on the split axis to the next, if they are apart.
    pub(super) apart: isize,
    /// Whether short blocks are copied row by row: they do not go past the caches.
    pub(super) is_by_row: bool,
    /// Whether rows of several blocks are put together first.
    pub(super) gathers: bool,
    /// How many there are.
    blocks: usize,
    /// Axes over them, innermost first; neighbours that continue each other are one.
    axes: [OuterAxis; MOST_AXES],
    rank: usize,
}

/// How many steps, and how far each goes in the input.
#[derive(Clone, Copy, Default)]
struct OuterAxis {
    extent: usize,
    from: isize,
    /// The innermost axis of the tensor that is in it.
    innermost: usize,
}

/// The most axes over blocks; of more, each piece is copied for itself.
const MOST_AXES: usize = 12;
/// Whether blocks of few rows are taken, for tests.
pub(super) const LOW: bool = LOW_THRESHOLDS || cfg!(test);
/// Shorter blocks are not worth the way to the loops.
const LEAST_BLOCK: usize = 512;
/// Nor longer ones past the caches, of more short columns than are permuted together: units are picked there. Zen 4, ms in
/// 16 MiB by blocks and piece by piece, six of 4 bytes in blocks of 800 6.4, 1.7, of 1,600 3.6, 1.8.
const LEAST_PICKED_BLOCK: usize = if LOW { 1 } else { 2 << 10 };
const TOGETHER: usize = 5;
const SHORT: usize = 8;
/// Where the caches hold all, those of which columns are deinterleaved, and of others, times pieces. Zen 4, 100 KB,
/// GB/s by blocks and piece by piece: 5 columns of 4 bytes, 1,200 a block 10, 16, 2,000 14, 16, 5,000 21, 16; of 48
/// and 48 bytes 1,200 16, 31, 5,000 31, 33, 16,000 38, 32; of 12 and 4 1,200 11, 28, 16,000 24, 28; of eight of 1 to
/// 20 bytes 1,200 5.9, 10, 5,000 13, 10.
const LEAST_HELD: usize = if LOW { 1 } else { 3 << 10 };
const LONG_BLOCK: usize = if LOW { 1 } else { 40 << 10 };
/// Shorter ones do where columns do not go on in their outputs, of so many rows. Zen 4, 600 KB, us piece by piece and by
/// blocks: 5 columns of 2 bytes of 64 rows 108, 77, 16 of 1 439, 203, 9 of 3 146, 109, of 24 118, 239; but 6 of 2 of 64
/// 113, 230, 6 of 4 79, 134.
const LEAST_SPREAD: usize = if LOW { 1 } else { 512 };
const LEAST_SPREAD_ROWS: usize = if LOW { 1 } else { 32 };
/// Where they do not, shorter ones go through them. Zen 4, 24 MB, GB/s past them and through: 48 and 48 bytes, 1,200
/// a block 3.8, 11, 5,000 10, 14, 40,000 16, 16; five of 40 3,000 7.1, 9.2, 16,000 12, 11.
const LEAST_PAST: usize = if LOW { 4 << 10 } else { 12 << 10 };
/// Unless they are taken many at a time: of a column so many bytes of all.
const LEAST_COLUMNS: usize = 512;
/// Or a piece has so many bytes of one that is repeated that it goes on with what it has. Zen 4, a row of 34 bytes
/// 37,243 times 14.9 us for 53.6, two of 60 bytes 11,447 times 16.0 for 36.1.
const LEAST_REPEATED: usize = 2 << 10;
/// Bytes of a run that is worth a copy of its own.
const RUN: usize = 128;
/// So many single rows of shorter runs than a line are worth the way, of few pieces or near by. Zen 4, rows backwards,
/// GB/s piece by piece and so: 100 KB of eight runs of 8 bytes 12, 22, of 18 18, 22, of 50 30, 33; but 5 MB of 16 1.5
/// times as long.
const LEAST_ROWS: usize = 32;
const FEW: usize = 8;
const NEAR: usize = if LOW_THRESHOLDS { 4 << 10 } else { 2 << 20 };
/// Runs that take turns go past the caches from here on, where they are apart in an output and off its lines: each end
/// is a line that is read. Zen 4, ms by turns and row by row, 48 bytes apart, 16 bytes off: 8 MiB of 260 bytes .70,
/// .36, two of 1.7, .70; of 416 .44, .38, two .45, .32; 24 MiB of 260 4.8, 2.2, of 416 3.2, 1.9, of 640 2.9, 2.0; of
/// 944 1.7, 2.0.
const LEAST_OFF_LINES: usize = 896;
/// Blocks of so few rows, and of so many bytes on average, are copied row by row; shorter ones piece by piece, but those of
/// columns. Zen 4, us by blocks and so, 1 to 3 MB: 4 of 196 bytes in 3 rows 213, 86, 3 of 90 in 9 81, 45, in 14 60, 53; 16 of 60
/// in 3 257, 302, unequal 300, 146; 40 of 24 in 2, piece by piece, 750, 111; 12 MB: 2 of 50 in 2 3,360, 1,660, 16 of 30
/// 8,420, 4,250, 8 of 24 in 14 2,100, 1,640, but 2 of 20 in 2 1,290, 2,350; 40 of 12 in 3, piece by piece, 10,000, 4,000.
const MOST_BY_ROW: usize = if LOW { 4 } else { 16 };
const LEAST_APART: usize = 24;
const FEWEST_ROWS: usize = if LOW { 1 } else { 8 };
/// Of so many targets that have their lines in one set of the first-level cache, each is taken by itself.
const WAYS: usize = 6;

impl<'a> Nest<'a> {
    /// The form of a checked split of whole bytes, if it is one: if in the input and in the outputs
    /// everything from the split axis inward is contiguous.
    #[inline(never)]
    pub(in super::super) fn new(transfer: &'a Transfer<'a>, tuning: &Tuning) -> Option<Self> {
        let mut nest = Self::of_one(transfer, Rows::new(transfer, *tuning));
        if transfer.is_packed() && transfer.output_strides.are_packed() {
            if nest.is_whole() {
                nest.block.widen(nest.block.count);
                nest.block.count = 1;
            }
            return (!nest.is_picked()).then_some(nest);
        }
        let row = nest.packed_row()?;
        nest.gathers = nest.has_columns();
        nest.push_outward(row)?;
        if nest.is_picked() {
            return None;
        }
        nest.gathers &= !nest.is_block() || (nest.rank > 0 && nest.has_short_columns());
        if nest.gathers {
            return Some(nest);
        }
        if nest.rank > 0 {
            nest.find_way(tuning);
        }
        nest.is_worth_it(tuning.apart.is_none()).then_some(nest)
    }

    /// Of one block.
    pub(super) fn of_one(transfer: &'a Transfer<'a>, block: Rows) -> Self {
        let axes = [OuterAxis::default(); MOST_AXES];
        Self {
            transfer,
            block,
            apart: 0,
            is_by_row: false,
            gathers: false,
            blocks: 1,
            axes,
            rank: 0,
        }
    }

    /// Keeps short blocks in the caches, and single rows of which a run is short: their pieces are copied for
    /// themselves, or row by row where blocks are few rows.
    fn find_way(&mut self, tuning: &Tuning) {
        let Rows { count, width, .. } = self.block;
        let runs = self.transfer.parts.iter().map(|part| self.block.bytes(part.len));
        let shortest = runs.min().unwrap_or(0);
        let average = div(width, self.transfer.parts.count());
        let least = match tuning.by_turns(LEAST_TURN) {
            Some(_) if self.are_off_lines() => LEAST_OFF_LINES,
            Some(_) => LEAST_TURN,
            None => runs::LONG,
        };
        let goes_past = if count > 1 { count * width >= LEAST_PAST } else { shortest >= least };
        if !goes_past {
            self.block.tuning = tuning.through_caches();
            let least = if tuning.apart.is_some() { LEAST_APART } else { LINE };
            self.is_by_row = self.apart == 0
                && (2..=MOST_BY_ROW).contains(&count)
                && (least..runs::LONG).contains(&average)
                && !self.are_in_one_set();
        }
    }

    /// Whether pieces have lines in one set of the first-level cache, more than it has ways.
    #[inline(never)] // for its stack
    fn are_in_one_set(&self) -> bool {
        are_in_one_set(self.transfer.parts.iter().map(|part| part.target), WAYS)
    }

    /// Bytes of a row, if everything from the split axis inward is contiguous, but for steps that are picked.
    fn packed_row(&mut self) -> Option<isize> {
        let geometry = &self.transfer.geometry;
        let mut packed = signed(self.size());
        for (axis, &extent) in geometry.shape.iter().enumerate().skip(geometry.axis).rev() {
            let from = self.from(axis, packed);
            if extent != 1 && from != packed {
                if axis != geometry.axis || !self.picks(from, packed) {
                    return None;
                }
                self.apart = from;
            }
            if !self.outputs(&|nest, part| nest.is_contiguous(part, axis, packed)) {
                return None;
            }
            packed = packed.wrapping_mul(signed(usize_of(extent)));
        }
        Some(packed)
    }

    /// Adds the axes outside of rows of so many bytes; `None` if there are too many.
    fn push_outward(&mut self, mut packed: isize) -> Option<()> {
        let geometry = &self.transfer.geometry;
        self.block.count = 1;
        for (axis, &extent) in geometry.shape.iter().enumerate().take(geometry.axis).rev() {
            let from = self.from(axis, packed);
            packed = packed.wrapping_mul(signed(usize_of(extent)));
            if extent > 1 {
                self.push(OuterAxis { extent: usize_of(extent), from, innermost: axis })?;
            }
        }
        Some(())
    }

    /// Whether the only piece has units of each row that are better picked, as those of one axis are. Zen 4, 20,000 of a
    /// byte, every second one, .9 us for 4.2; every eighth of 4 bytes 7.0 for 7.2; past the caches, 4 MB of bytes,
    /// 149 us for 952.
    #[inline(never)] // once in the library
    fn is_picked(&self) -> bool {
        let Rows { row, count, shared, tuning, .. } = self.block;
        let mut parts = self.transfer.parts.iter();
        let unit = parts.next().map_or(0, |part| self.block.bytes(part.len));
        shared == 0
            && count >= LEAST_PICKED
            && (1..=LONGEST_PICKED).contains(&unit)
            && parts.next().is_none()
            && self.times().is_none()
            && tuning.kernels.picks.is_some_and(|picks| picks.have(unit, signed(row), count))
    }

    /// Whether blocks are worth the way to the loops.
    fn is_worth_it(&self, is_held: bool) -> bool {
        let Some((blocks, _)) = self.innermost() else { return true };
        let Rows { count, width, .. } = self.block;
        let (block, column) = (count * width, self.column());
        let pieces = self.transfer.parts.count();
        let goes_on = |times| block * times >= LEAST_REPEATED * pieces;
        let are_spread = |unit| {
            let (has_loop, times) = match unit {
                1 | 2 => (matches!(pieces, 5 | 8..), 1),
                3 => (matches!(pieces, 4..=12), 1),
                4 => (matches!(pieces, 5 | 8), 2),
                6 => (matches!(pieces, 4 | 5), 2),
                _ => (false, 0),
            };
            has_loop && count >= LEAST_SPREAD_ROWS * times && !self.is_into_packed()
        };
        let is_long = match count {
            1 if is_held => {
                let are_short = (LINE..LINE * pieces).contains(&width);
                let are_near = pieces <= FEW || self.transfer.bytes <= NEAR;
                are_short && are_near && blocks >= LEAST_ROWS
            }
            1 => self.block.tuning.apart.is_some(),
            ..=FEWEST_ROWS if column.is_none() && self.apart == 0 => false,
            _ if !is_held => {
                let are_short = pieces > TOGETHER && column.is_some_and(|unit| unit <= SHORT);
                block >= if are_short { LEAST_PICKED_BLOCK } else { LEAST_BLOCK }
            }
            _ if column.is_some_and(are_spread) => block >= LEAST_SPREAD,
            _ if column.is_some() => block >= LEAST_HELD,
            _ => {
                block * pieces >= LONG_BLOCK
                    && (count >= LEAST_SPREAD_ROWS || width >= pieces * LINE)
            }
        };
        self.is_by_row
            || is_long
            || self.times().is_some_and(goes_on)
            || column.is_some_and(|unit| self.are_taken_together(unit))
    }

    /// Whether runs are apart in an output, and do not all begin lines.
    #[inline(never)] // seldom of use
    fn are_off_lines(&self) -> bool {
        let axis = self.axes().first().map_or(0, |axis| axis.innermost);
        !self.outputs(&|nest, part| {
            nest.to(part, axis).is_none_or(|to| {
                let is_on_lines = (wrapped(to) | part.target as usize).is_multiple_of(LINE);
                is_on_lines || to == signed(nest.block.bytes(part.len))
            })
        })
    }

    /// Bytes of a column, if rows are one of each piece, which are deinterleaved.
    #[inline(never)] // once in the library
    fn column(&self) -> Option<usize> {
        let Rows { width, tuning, .. } = self.block;
        let parts = &self.transfer.parts;
        let len = parts.count();
        let (unit, rest) = div_rem(width, len);
        let are_columns = rest == 0
            && (2..=MAX_DEINTERLEAVED).contains(&len)
            && tuning.deinterleaves(len, unit)
            && parts.iter().all(|part| self.block.bytes(part.len) == unit);
        are_columns.then_some(unit)
    }

    /// Whether many blocks of such columns are taken at a time: whole lines of each, or, where blocks and targets
    /// go on, half a line.
    fn are_taken_together(&self, unit: usize) -> bool {
        let Some((blocks, from)) = self.innermost() else { return false };
        let column = self.block.count * unit;
        let goes_on = from > 0 && self.is_into_packed();
        let is_enough = if self.is_apart() {
            goes_on && column >= LINE
        } else {
            column >= if goes_on { LINE / 2 } else { LINE }
                && (goes_on || Kernels::transposes(unit))
        };
        is_enough
            && blocks * column >= LEAST_COLUMNS
            && self.block.tuning.kernels.takes_blocks(self.transfer.parts.count(), unit)
    }

    /// Whether there is one piece, which takes all of each row.
    #[inline(never)] // once in the library
    fn is_whole(&self) -> bool {
        let mut parts = self.transfer.parts.iter();
        let is_all = |part: Part| part.len == self.transfer.geometry.extent;
        parts.next().is_some_and(is_all) && parts.next().is_none()
    }

    fn size(&self) -> usize {
        self.transfer.geometry.dtype.bits() as usize / 8
    }

    /// The input's stride on an axis, if it is not packed.
    pub(super) fn from(&self, axis: usize, packed: isize) -> isize {
        stride(self.transfer.strides, axis, self.size()).unwrap_or(packed)
    }

    /// An output's stride on an axis of the input that it has, if the output is not packed.
    #[inline(never)] // once in the library
    fn to(&self, part: &Part, axis: usize) -> Option<isize> {
        let geometry = &self.transfer.geometry;
        let dropped = usize::from(!geometry.keeps_axis && axis > geometry.axis);
        stride(self.transfer.output_strides.get(part.index), axis - dropped, self.size())
    }

    /// Whether it is so for all outputs that are not known to be packed.
    #[inline(never)] // once in the library
    fn outputs(&self, is_so: &dyn Fn(&Self, &Part) -> bool) -> bool {
        self.transfer.output_strides.are_packed()
            || self.transfer.parts.iter().all(|part| is_so(self, &part))
    }

    fn is_contiguous(&self, part: &Part, axis: usize, packed: isize) -> bool {
        let geometry = &self.transfer.geometry;
        let is_single = match geometry.shape.get(axis) {
            _ if axis == geometry.axis => part.len == 1,
            extent => extent == Some(&1),
        };
        is_single || self.to(part, axis).is_none_or(|to| to == packed)
    }

    /// Whether rows of the block lie as the loops want them.
    fn is_block(&self) -> bool {
        let Rows { count, row, width, .. } = self.block;
        count == 1 || (signed(row) >= signed(width) && self.can_read_behind(signed(row)))
    }

    /// Whether rows so far from one another can be read a little behind, as loops for shorter runs do.
    fn can_read_behind(&self, from: isize) -> bool {
        let Rows { width, tuning, .. } = self.block;
        let least = if tuning.non_temporal.is_some() { runs::LONG } else { RUN };
        let mut parts = self.transfer.parts.iter();
        are_near(from, width) || parts.all(|part| self.block.bytes(part.len) >= least)
    }

    /// Adds an axis outside of those there, or lengthens what it continues; `None` if there are too many.
    #[inline(never)]
    fn push(&mut self, axis: OuterAxis) -> Option<()> {
        if self.rank == 0 && self.push_rows(&axis) {
            return Some(());
        }
        self.blocks *= axis.extent;
        let continues = |last: &&OuterAxis| self.continues(last, &axis);
        if let Some(last) = self.axes().last().filter(continues) {
            let extent = last.extent * axis.extent;
            self.axes.get_mut(self.rank - 1)?.extent = extent;
            return Some(());
        }
        *self.axes.get_mut(self.rank)? = axis;
        self.rank += 1;
        Some(())
    }

    /// Makes the steps of an axis rows of the block, if they lie as those do; whether they do.
    fn push_rows(&mut self, axis: &OuterAxis) -> bool {
        let Rows { count, row, width, .. } = self.block;
        let is_row = if count == 1 {
            (axis.from >= signed(width) && self.can_read_behind(axis.from))
                || self.apart != 0
                || (self.gathers && axis.from != 0)
        } else {
            times(signed(row), count) == Some(axis.from)
        };
        let stacks = |nest: &Self, part: &Part| {
            let to = nest.to(part, axis.innermost);
            to.is_none_or(|to| to == signed(nest.block.bytes(part.len) * count))
        };
        if !is_row || !self.outputs(&stacks) {
            return false;
        }
        if count == 1 && axis.from == signed(width) && self.is_whole() {
            self.block.widen(axis.extent);
            return true;
        }
        if count == 1 {
            self.block.row = wrapped(axis.from);
        }
        self.block.count *= axis.extent;
        true
    }

    /// Whether an axis goes on where the one inside of it ends, in the input and in all outputs.
    fn continues(&self, last: &OuterAxis, axis: &OuterAxis) -> bool {
        let goes_on = |nest: &Self, part: &Part| {
            let to = nest.to(part, last.innermost).and_then(|to| times(to, last.extent));
            to == nest.to(part, axis.innermost)
        };
        times(last.from, last.extent) == Some(axis.from) && self.outputs(&goes_on)
    }

    fn axes(&self) -> &[OuterAxis] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    pub(super) fn is_one_block(&self) -> bool {
        self.rank == 0
    }

    /// Of the innermost axis over blocks, how many there are, and how far one is from the next.
    pub(super) fn innermost(&self) -> Option<(usize, isize)> {
        self.axes().first().map(|axis| (axis.extent, axis.from))
    }

    pub(super) fn is_into_packed(&self) -> bool {
        self.transfer.output_strides.are_packed()
    }

    /// Whether there is something between the rows of a block.
    pub(super) fn is_apart(&self) -> bool {
        self.block.row != self.block.width
    }

    /// The rows of all blocks.
    pub(in super::super) fn all_rows(&self) -> usize {
        self.blocks * self.block.count
    }

    /// The blocks of a range of all rows.
    #[inline(never)] // once in the library
    pub(super) fn blocks(&self, rows: Range<usize>) -> Blocks<'_> {
        let number = div(rows.start, self.block.count);
        let mut blocks =
            Blocks { nest: self, rows, number, is_first: true, index: [0; MOST_AXES], from: 0 };
        let mut number = number;
        for (axis, index) in self.axes().iter().zip(&mut blocks.index) {
            (number, *index) = div_rem(number, axis.extent);
            blocks.from = blocks.from.wrapping_add(axis.from.wrapping_mul(signed(*index)));
        }
        blocks
    }
}

/// So many steps.
fn times(step: isize, count: usize) -> Option<isize> {
    step.checked_mul(signed(count))
}

/// Goes over blocks.
pub(super) struct Blocks<'a> {
    nest: &'a Nest<'a>,
    /// What is left of all rows.
    rows: Range<usize>,
    /// The block's number, and its place on each axis.
    number: usize,
    index: [usize; MOST_AXES],
    is_first: bool,
    /// Bytes from the first of all blocks.
    from: isize,
}

impl Blocks<'_> {
    /// Makes a block the next one; gives which of its rows are wanted.
    #[inline(never)] // once in the library
    pub(super) fn next(&mut self, block: &mut Rows) -> Option<Range<usize>> {
        if self.rows.is_empty() {
            return None;
        }
        if !self.is_first {
            self.advance();
        }
        self.is_first = false;
        block.source = self.nest.block.source.wrapping_offset(self.from);
        let first = self.rows.start - self.number * block.count;
        let rows = first..block.count.min(first + self.rows.len());
        self.rows.start += rows.len();
        Some(rows)
    }

    /// Where a run of the block's first row goes.
    #[inline(never)] // once in the library
    pub(super) fn target(&self, run: &Run) -> *mut u8 {
        let nest = self.nest;
        let Some(strides) = nest.transfer.output_strides.get(run.index) else {
            return run.first.wrapping_add(self.number * nest.block.count * run.bytes);
        };
        let mut target = run.first;
        for (axis, index) in nest.axes().iter().zip(&self.index) {
            let to = stride(Some(strides), axis.innermost, nest.size()).unwrap_or(0);
            target = target.wrapping_offset(to.wrapping_mul(signed(*index)));
        }
        target
    }

    /// How many more whole blocks lie along the innermost axis, `most` at the most, and how far one is from the
    /// next.
    #[inline(never)] // once in the library
    pub(super) fn along(&self, most: usize) -> strided::Axis {
        let axis = self.nest.axes().first().copied().unwrap_or_default();
        let index = self.index.first().copied().unwrap_or_default();
        let more = axis.extent.saturating_sub(index + 1);
        let whole = div(self.rows.len(), self.nest.block.count);
        strided::Axis { extent: more.min(most).min(whole), from: axis.from, to: 0 }
    }

    /// The same of targets that are as far from each other.
    pub(super) fn more(&self, runs: &[Run]) -> strided::Axis {
        let mut steps = runs.iter().map(|run| self.step(run));
        let to = steps.next().unwrap_or(0);
        let most = if steps.all(|step| step == to) { usize::MAX } else { 0 };
        strided::Axis { to, ..self.along(most) }
    }

    /// How far a run's target is from that of the next such block.
    pub(super) fn step(&self, run: &Run) -> isize {
        let nest = self.nest;
        let strides = nest.transfer.output_strides.get(run.index);
        let axis = nest.axes().first().map_or(0, |axis| axis.innermost);
        let packed = signed(run.bytes * nest.block.count);
        stride(strides, axis, nest.size()).unwrap_or(packed)
    }

    /// Leaves out so many of these blocks.
    pub(super) fn skip(&mut self, count: usize) {
        let step = self.nest.axes().first().map_or(0, |axis| axis.from);
        self.number += count;
        self.rows.start += count * self.nest.block.count;
        self.from = self.from.wrapping_add(step.wrapping_mul(signed(count)));
        if let Some(index) = self.index.first_mut() {
            *index += count;
        }
    }

    fn advance(&mut self) {
        self.number += 1;
        for (axis, index) in self.nest.axes().iter().zip(&mut self.index) {
            *index += 1;
            self.from = self.from.wrapping_add(axis.from);
            if *index < axis.extent {
                return;
            }
            self.from = self.from.wrapping_sub(axis.from.wrapping_mul(signed(*index)));
            *index = 0;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::{Nest, Transfer, Tuning};
    use crate::copy::guarded::Guarded;
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;
    use crate::parts::OutputStrides;
    use crate::parts::Parts;
    use core::ptr::{dangling, dangling_mut};
    use proptest::prelude::*;

    /// No byte of the input.
    const UNTOUCHED: u8 = 0xEE;

    /// How axes lie in memory: of each, how many elements more than needed it is apart, and whether it
    /// is forwards (1), backwards (-1) or repeated (0).
    type Gaps = Vec<(i64, i64)>;

    /// A split of elements of `size` bytes: extents outward of its axis, lengths of pieces and whether
    /// they are wanted, the extent inward of it.
    #[derive(Debug, Clone)]
    struct Case {
        dtype: DType,
        outward: Vec<i64>,
        pieces: Vec<(i64, bool)>,
        inward: i64,
        from: Gaps,
        to: Option<Gaps>,
        /// In which order the outward axes lie in memory.
        order: Vec<usize>,
    }

    fn gaps(rank: usize, least: i64) -> impl Strategy<Value = Gaps> {
        let gap = prop_oneof![4 => Just(0i64), 2 => 1i64..20, 1 => Just(700i64)];
        let sign = prop_oneof![8 => Just(1i64), 2 => Just(-1), 1 => Just(least)];
        prop::collection::vec((gap, sign), rank)
    }

    fn case() -> impl Strategy<Value = Case> {
        let outward = prop_oneof![
            prop::collection::vec(prop_oneof![1i64..5, 60i64..400], 1..=2),
            prop::collection::vec(1i64..9, 1..=4),
            prop::collection::vec(1i64..100, 2),
        ];
        let equal = (1i64..4, prop_oneof![2usize..6, 1usize..25])
            .prop_map(|(len, pieces)| vec![(len, true); pieces]);
        let len = prop_oneof![4 => 1i64..40, 1 => 300i64..1500];
        let any = prop::collection::vec((len, prop::bool::weighted(0.8)), 1..6);
        let dtype = prop::sample::select(vec![
            DType::Uint8,
            DType::Float16,
            DType::Float,
            DType::Complex64,
        ]);
        let inward = prop_oneof![3 => Just(1i64), 1 => 1i64..30];
        (dtype, outward, prop_oneof![equal, any], inward)
            .prop_filter("not too many", |(_, outward, pieces, inward)| {
                let row = pieces.iter().map(|(len, _)| len).sum::<i64>() * inward;
                outward.iter().product::<i64>() * row <= 60_000
            })
            .prop_flat_map(|(dtype, outward, pieces, inward)| {
                let rank = outward.len();
                let order = Just((0..rank).collect::<Vec<_>>());
                let order = prop_oneof![2 => order.clone(), 1 => order.prop_shuffle()];
                let to = prop::option::of(gaps(rank, -1));
                (gaps(rank, 0), to, order).prop_map(move |(from, to, order)| {
                    let (outward, pieces) = (outward.clone(), pieces.clone());
                    Case { dtype, outward, pieces, inward, from, to, order }
                })
            })
    }

    impl Case {
        fn bytes(&self, elements: i64) -> usize {
            usize::try_from(elements).unwrap() * self.dtype.bits() as usize / 8
        }

        /// Strides in elements of a tensor of that many steps on the split axis, and how many elements
        /// lie before and from the first one on.
        fn strides(&self, gaps: &Gaps, len: i64) -> (Vec<i64>, i64, i64) {
            let mut strides = vec![0; self.outward.len()];
            let mut step = len * self.inward;
            let (mut before, mut after) = (0, step);
            for at in self.order.iter().rev() {
                let (gap, sign) = gaps[*at];
                step += gap;
                strides[*at] = sign * step;
                *(if sign < 0 { &mut before } else { &mut after }) +=
                    sign.abs() * step * (self.outward[*at] - 1);
                step *= self.outward[*at];
            }
            strides.extend([self.inward, 1]);
            (strides, before, after)
        }

        /// Of all rows, how many elements they lie behind the first one.
        fn rows(&self, strides: &[i64]) -> Vec<i64> {
            let each = |row: i64| {
                let (mut rest, mut at) = (row, 0);
                for (extent, stride) in self.outward.iter().zip(strides).rev() {
                    at += rest % extent * stride;
                    rest /= extent;
                }
                at
            };
            (0..self.outward.iter().product()).map(each).collect()
        }
    }

    /// Of the second half the first block has fewer rows than make a line, but others follow.
    #[test]
    fn few_rows_of_a_block_and_those_after_it() {
        const ROWS: [usize; 2] = [9, 2051];
        const CUT: usize = ROWS[1] - 3;
        let dtypes = [DType::Uint16, DType::Float, DType::Complex64];
        for (pieces, dtype) in (2..=4).flat_map(|pieces| dtypes.map(|dtype| (pieces, dtype))) {
            let bytes = dtype.bits() as usize / 8;
            let (row, pitch) = (pieces * bytes, ROWS[1] * pieces + 1);
            let source: Vec<u8> =
                (0..ROWS[0] * pitch * bytes).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let all = ROWS.iter().product::<usize>();
            let shape = [ROWS[0], ROWS[1], pieces].map(|extent| i64::try_from(extent).unwrap());
            let strides = [i64::try_from(pitch).unwrap(), shape[2], 1];
            for tuning in Tuning::all() {
                let mut outputs = vec![vec![UNTOUCHED; all * bytes]; pieces];
                let targets = outputs.iter_mut().map(|output| Some(output.as_mut_ptr()));
                let wanted = parts(&vec![1; pieces], targets);
                let packed = transfer(dtype, &shape, 2, source.as_ptr(), &wanted);
                let transfer = Transfer { strides: Some(&strides), ..packed };
                let nest = Nest::new(&transfer, &tuning).unwrap();
                // SAFETY: memory is as large as the strides say.
                unsafe {
                    nest.copy_all(&Parts::Listed(&wanted).iter(), 0..CUT);
                    nest.copy_all(&Parts::Listed(&wanted).iter(), CUT..all);
                }
                for (piece, output) in outputs.iter().enumerate() {
                    let mut expected = Vec::new();
                    for at in 0..all {
                        let from =
                            at / ROWS[1] * pitch * bytes + at % ROWS[1] * row + piece * bytes;
                        expected.extend(&source[from..from + bytes]);
                    }
                    assert!(*output == expected, "piece {piece} of {pieces} of {bytes} bytes");
                }
            }
        }
    }

    /// Cropped from blocks of more rows; parts begin and end within blocks.
    #[test]
    fn blocks_of_few_rows_go_row_by_row() {
        const BLOCKS: usize = 7;
        const ROWS: usize = 3;
        const PITCH: usize = 900;
        let lengths = [100usize, 333, 64, 200];
        let row = lengths.iter().sum::<usize>();
        let source: Vec<u8> =
            (0..BLOCKS * (ROWS + 1) * PITCH).map(|at| (at * 7 % 251).to_le_bytes()[0]).collect();
        let shape = [BLOCKS, ROWS, row].map(|extent| i64::try_from(extent).unwrap());
        let strides = [(ROWS + 1) * PITCH, PITCH, 1].map(|step| i64::try_from(step).unwrap());
        for tuning in Tuning::all() {
            let mut outputs = lengths.map(|len| vec![UNTOUCHED; BLOCKS * ROWS * len]);
            let targets = outputs.iter_mut().map(|output| Some(output.as_mut_ptr()));
            let wanted = parts(&lengths.map(|len| i64::try_from(len).unwrap()), targets);
            let packed = transfer(DType::Uint8, &shape, 2, source.as_ptr(), &wanted);
            let transfer = Transfer { strides: Some(&strides), ..packed };
            let nest = Nest::new(&transfer, &tuning).unwrap();
            assert!(nest.is_by_row);
            for rows in [0..4, 4..5, 5..12, 12..BLOCKS * ROWS] {
                // SAFETY: memory is as large as the strides say.
                unsafe { nest.copy_all(&Parts::Listed(&wanted).iter(), rows) };
            }
            let mut offset = 0;
            for (len, output) in lengths.iter().zip(&outputs) {
                let begin = |at: usize| (at / ROWS * (ROWS + 1) + at % ROWS) * PITCH + offset;
                let rows = (0..BLOCKS * ROWS).map(|at| &source[begin(at)..begin(at) + len]);
                assert!(*output == rows.flatten().copied().collect::<Vec<_>>(), "{len} bytes");
                offset += len;
            }
        }
    }

    /// Whatever the axis that it lies on.
    #[test]
    fn one_column_is_picked() {
        for (strides, unit) in [([2, 1], 1), ([4, 1], 1), ([4, 1], 3)] {
            let wanted = parts(&[unit], [Some(dangling_mut())].into_iter());
            let shape = [1000, unit];
            let packed = transfer(DType::Uint8, &shape, 1, dangling(), &wanted);
            let column = Transfer { strides: Some(&strides), ..packed };
            for tuning in Tuning::all() {
                let is_picked = Nest::new(&column, &tuning).is_none();
                assert_eq!(is_picked, tuning.kernels.picks.is_some(), "{unit} of {strides:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        /// In two parts, at every level, past the caches or not, each output anywhere in its line, the
        /// input and an output at the end or the begin of what may be touched.
        #[test]
        fn rows_in_blocks_in_parts(
            case in case(),
            ahead in prop::collection::vec(prop_oneof![Just(0usize), 0usize..70], 25),
            cut in any::<prop::sample::Index>(),
            at_end in any::<bool>(),
        ) {
            let lengths: Vec<i64> = case.pieces.iter().map(|(len, _)| *len).collect();
            let extent = lengths.iter().sum::<i64>();
            let shape: Vec<i64> =
                case.outward.iter().copied().chain([extent, case.inward]).collect();
            let axis = case.outward.len();
            let (strides, before, after) = case.strides(&case.from, extent);
            let round = |bytes: usize| bytes.next_multiple_of(64 << 10);
            let source = Guarded::filled(round(case.bytes(before + after)));
            let first = source.place(case.bytes(before + after), at_end);
            for at in 0..case.bytes(before + after) {
                // SAFETY: that many bytes are there.
                unsafe { *first.add(at) &= 0x7F };
            }
            let first = first.wrapping_add(case.bytes(before)).cast_const();
            let signed_bytes = |elements: i64| isize::try_from(elements).unwrap() * isize::try_from(case.bytes(1)).unwrap();
            // Of each piece: its output's strides, how many bytes lie before its first element, and what
            // all of its bytes must be.
            let (mut to_strides, mut outputs, mut offset) = (Vec::new(), Vec::new(), 0);
            for (len, is_wanted) in &case.pieces {
                let packed = vec![(0, 1); axis];
                let order = Case { order: (0..axis).collect(), ..case.clone() };
                let (strides_of, lead, rest) = match &case.to {
                    Some(gaps) => case.strides(gaps, *len),
                    None => order.strides(&packed, *len),
                };
                let run = case.bytes(len * case.inward);
                let mut expected = vec![UNTOUCHED; case.bytes(lead + rest)];
                let places = case.rows(&strides).into_iter().zip(case.rows(&strides_of));
                for (get, put) in places {
                    // SAFETY: within what the strides span.
                    let row = unsafe {
                        let from = first.offset(signed_bytes(get + offset * case.inward));
                        std::slice::from_raw_parts(from, run)
                    };
                    expected[case.bytes(lead + put)..][..run].copy_from_slice(row);
                }
                offset += len;
                to_strides.extend(strides_of);
                outputs.push(is_wanted.then_some((case.bytes(lead), expected)));
            }
            let memory: Vec<_> = (outputs.iter())
                .map(|output| Guarded::filled(round(output.as_ref().map_or(0, |o| o.1.len()) + 128)))
                .collect();
            let begins: Vec<_> = (outputs.iter().zip(&memory).zip(&ahead))
                .map(|((output, memory), ahead)| {
                    let (lead, expected) = output.as_ref()?;
                    let bytes = expected.len() + ahead;
                    let begin = memory.place(bytes, at_end).wrapping_add(if at_end { 0 } else { *ahead });
                    Some((begin, begin.wrapping_add(*lead), expected))
                })
                .collect();
            let targets = begins.iter().map(|begin| begin.map(|(_, target, _)| target));
            let wanted = parts(&lengths, targets);
            let output_strides = match case.to {
                None => OutputStrides::Packed,
                Some(_) => OutputStrides::Planned { strides: &to_strides, rank: shape.len() },
            };
            let transfer = Transfer {
                strides: Some(&strides),
                output_strides,
                ..transfer(case.dtype, &shape, axis, first, &wanted)
            };
            for tuning in Tuning::all() {
                let Some(nest) = Nest::new(&transfer, &tuning) else { continue };
                let cut = cut.index(nest.all_rows() + 1);
                let copy_part = |rows| {
                    for (begin, _, expected) in begins.iter().flatten() {
                        // SAFETY: memory is as large as the strides say.
                        unsafe { begin.write_bytes(UNTOUCHED, expected.len()) };
                    }
                    // SAFETY: as above.
                    unsafe { nest.copy_all(&Parts::Listed(&wanted).iter(), rows) };
                    let written = |(begin, _, expected): &(*mut u8, *mut u8, &Vec<u8>)| {
                        // SAFETY: as above.
                        unsafe { std::slice::from_raw_parts(*begin, expected.len()).to_vec() }
                    };
                    begins.iter().flatten().map(written).collect::<Vec<_>>()
                };
                let halves = copy_part(0..cut).into_iter().zip(copy_part(cut..nest.all_rows()));
                for ((first, second), (_, _, expected)) in halves.zip(begins.iter().flatten()) {
                    let is_of_both = |(a, b): (&u8, &u8)| *a != UNTOUCHED && *b != UNTOUCHED;
                    prop_assert!(!first.iter().zip(&second).any(is_of_both));
                    let both: Vec<u8> = first.iter().zip(&second).map(|(a, b)| *a.min(b)).collect();
                    prop_assert!(&both == *expected, "past {}, cut at {cut}", tuning.non_temporal.is_some());
                }
            }
        }
    }
}
