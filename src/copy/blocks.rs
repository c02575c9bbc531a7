//! How rows that pieces share are moved: in blocks that the first-level cache holds, band after band, so that each line
//! of the input is fetched only once.
//!
//! ```text
//!              band 0        band 1     band 2
//! row 0      | a a a a a a a | b b b b | c c c c |
//! row 1      | a a a a a a a | b b b b | c c c c |     block 0: all rows of band 0, then all of band 1,
//! row 2      | a a a a a a a | b b b b | c c c c |     then all of band 2
//! - - - - - - - - - - - - - - - - - - - - - - - -
//! row 3      | a a a a a a a | b b b b | c c c c |     block 1
//! ...
//!
//! output of band 1     |bbbbbbbbbbbb|bbbbbbbbbbbb|...
//!                       block 0      block 1
//! ```
//!
//! When outputs are streamed, a band's part of a block ends with the row at which a line of its output begins, up to 63
//! rows later than the block itself. So all lines are whole, and nothing is held back in a stage from one band to the
//! next.

use super::ahead::{self, Ahead};
use super::bands::{Band, Bands};
use super::call::{deliver_block, Scratch};
use super::cost::{self, Method};
use super::groups::{units_to_line, Groups, Stretch};
use super::machine_constants::{
    BLOCK_BYTES, COLUMN_BYTES, LEAST_STREAMED_ROWS, LEAST_STREAMED_RUN_BYTES, LONG_BLOCK_BYTES,
    LONG_RUN_BYTES,
};
use super::nest::Axis;
use super::program::{Program, ProgramSlot};
use super::rows::Rows;
use super::runs::Runs;
use super::stage::Stages;
use super::tile::Block;
use super::vector::LINE_BYTES;
use crate::math::{div, div_rem, next_multiple};
use crate::parts::{Part, Transfer};
use crate::text::Text;
use core::ops::Range;
use core::ptr::null;

/// Rows that are moved together: those of one step of the outer axis, or of several whole steps.
struct RowBlock {
    rows: Range<usize>,
    steps: Axis,
    /// Where the first row begins, and the one after the last.
    source: *const u8,
    next: *const u8,
    /// The rows at equal distances that the block is part of.
    equal: Range<usize>,
}

impl Rows {
    /// Moves the runs that pieces have of some rows.
    ///
    /// # Safety
    /// The runs must be readable and writable; concurrent calls must have other rows, or other pieces.
    /// [`Scratch::lend`] finishes it.
    pub(super) unsafe fn move_rows(
        &self,
        scratch: &mut Scratch<'_>,
        bands: &mut Bands,
        parts: impl Iterator<Item = Part>,
        rows: Range<usize>,
    ) {
        let Scratch { slot, stages } = scratch;
        let mut parts = parts.peekable();
        while parts.peek().is_some() {
            let program = bands.set_up(self, &mut parts, slot);
            let block_rows = self.block_rows(bands, program);
            let (mut row, mut equal) = (rows.start, 0..rows.start);
            while row < rows.end {
                if row >= equal.end {
                    let (_, within) = div_rem(row, self.row().extent);
                    equal = row..(row + self.row().extent - within).min(rows.end);
                }
                let steps = self.whole_steps(row, block_rows.min(rows.end - row));
                let end = if steps.extent > 1 {
                    row + self.row().extent * steps.extent
                } else {
                    (row + block_rows).min(equal.end)
                };
                let source = self.source_of(row);
                let next = if end < rows.end { self.source_of(end) } else { source };
                let block = RowBlock { rows: row..end, steps, source, next, equal: equal.clone() };
                // SAFETY: these are some of the rows.
                unsafe { self.move_block(bands, program, stages, &block) };
                row = end;
            }
        }
    }

    /// Returns the number of rows in a block.
    fn block_rows(&self, bands: &Bands, program: Option<&Program>) -> usize {
        let step = self.row().from.unsigned_abs().max(self.row_bytes).max(1);
        // Input that is read in a single pass need not stay in the first-level cache.
        let is_once = match (bands.all(), program) {
            ([only], Some(program)) => {
                only.costs.best() == Method::Program
                    && program.targets_of_call(only.pieces()) == only.pieces()
                    && program.sets().len() == 1
            }
            _ => false,
        };
        let are_long = div(self.row_bytes, bands.all().len()) >= LONG_RUN_BYTES;
        let bytes = if is_once || are_long { LONG_BLOCK_BYTES } else { BLOCK_BYTES };
        let transposed = bands.all().iter().filter(|band| band.costs.best() == Method::Transpose);
        let columns = transposed.map(|band| div(COLUMN_BYTES, band.run)).max().unwrap_or(0);
        let rows = div(bytes, step).max(columns);
        // If the first block begins a line in the outputs, so do all others of rows at equal distances.
        if bands.all().iter().any(|band| cost::is_short(band.run)) {
            next_multiple(rows.max(1), LINE_BYTES)
        } else {
            rows.max(if self.call.streams { LEAST_STREAMED_ROWS } else { 1 })
        }
    }

    /// Moves the runs of all bands in a block of rows.
    ///
    /// # Safety
    /// As for [`Rows::move_rows`].
    unsafe fn move_block(
        &self,
        bands: &Bands,
        program: Option<&Program>,
        stages: &mut Stages,
        block: &RowBlock,
    ) {
        // Long runs first: they fetch the lines that they share with short ones.
        for are_long in [true, false] {
            for band in bands.all() {
                if (band.run >= LEAST_STREAMED_RUN_BYTES) != are_long {
                    continue;
                }
                let Some(stretch) = self.stretch_of(band, bands, block) else { continue };
                // SAFETY: the stretch has runs of these rows.
                unsafe {
                    match (band.costs.best(), program) {
                        (Method::Program, Some(program)) => {
                            self.call.deliver_groups(&Groups { program, stretch }, stages);
                        }
                        (Method::Transpose, _) => self.block_by_tiles(band, &stretch),
                        (Method::Runs | Method::Program, _) => {
                            debug_assert!(band.costs.best() == Method::Runs, "no program");
                            self.block_by_runs(band, &stretch, stages);
                        }
                    }
                }
            }
        }
    }

    /// Returns a band's part of a block, and prefetches for it; `None` if it is empty.
    fn stretch_of<'a>(
        &self,
        band: &Band,
        bands: &'a Bands,
        block: &RowBlock,
    ) -> Option<Stretch<'a>> {
        let &Band { offset, run, apart, .. } = band;
        let (targets, from) = (bands.targets_of(band), self.row().from);
        let begin = self.boundary(block.rows.start, &block.equal, run, targets);
        let end = self.boundary(block.rows.end, &block.equal, run, targets);
        debug_assert!(begin <= end, "a band's rows end at {end}, before {begin}");
        let count = div(end - begin, block.steps.extent);
        if count == 0 {
            return None;
        }
        let ahead = offset.wrapping_add(self.row().input_at(begin - block.rows.start));
        let source = block.source.wrapping_offset(ahead);
        let next = block.next.wrapping_offset(ahead);
        let readable_end = if self.call.is_far(apart) {
            null()
        } else {
            let left = block.equal.end.saturating_sub(begin);
            let last = apart.max(0).unsigned_abs() * (targets.len() - 1);
            self.call.readable_end(source, left, from, last + run)
        };
        let mut ahead = Ahead::next(next);
        if self.call.streams {
            let prefetch = self.call.machine.kernels.prefetch;
            ahead::partial_lines(prefetch, targets, end * run);
            let (rows, bytes) = (Axis { extent: count, ..*self.row() }, targets.len() * run);
            let is_only = bands.all().len() == 1;
            if run < LEAST_STREAMED_RUN_BYTES
                && ahead::next_rows(prefetch, &rows, next, bytes, is_only)
            {
                ahead = Ahead::next(source);
            }
        }
        let outer = Axis { to: (count * run).cast_signed(), ..block.steps };
        Some(Stretch { source, targets, at: begin * run, count, outer, readable_end, ahead })
    }

    /// Returns where a band's part of a block begins or ends, of rows at equal distances: if outputs are streamed, where
    /// its targets begin a line.
    fn boundary(&self, row: usize, equal: &Range<usize>, run: usize, targets: &[*mut u8]) -> usize {
        if row == equal.start
            || row >= equal.end
            || !self.call.streams
            || run >= LEAST_STREAMED_RUN_BYTES
        {
            return row;
        }
        let first = targets.first().map_or(0, |target| *target as usize);
        let Some(units) = units_to_line(first + row * run, run) else { return row };
        debug_assert!((first + (row + units) * run).is_multiple_of(LINE_BYTES));
        (row + units).min(equal.end)
    }

    /// Transposes rows of single units, one for each target.
    ///
    /// # Safety
    /// The stretch must be readable and writable.
    unsafe fn block_by_tiles(&self, band: &Band, stretch: &Stretch<'_>) {
        let &Stretch { targets, count, readable_end, .. } = stretch;
        for step in 0..stretch.outer.extent {
            let Stretch { source, at, .. } = stretch.steps(step, 1);
            let block = Block {
                source,
                unit: band.run,
                from: self.row().from,
                rows: count,
                targets,
                at,
                readable_end,
            };
            let call = self.call;
            // SAFETY: one step of the stretch.
            unsafe { deliver_block(call.machine.kernels, &block, call.streams) };
        }
    }

    /// Copies the runs of each target.
    ///
    /// # Safety
    /// As for [`Rows::block_by_tiles`].
    unsafe fn block_by_runs(&self, band: &Band, stretch: &Stretch<'_>, stages: &mut Stages) {
        let bytes = band.run;
        let share = (stretch.count * bytes).cast_signed();
        for (number, target) in stretch.targets.iter().enumerate() {
            let number = number.cast_signed();
            let offset = band.apart.wrapping_mul(number);
            // Short runs prefetch what follows, each piece a share; long ones, their next rows.
            let is_direct = bytes >= LEAST_STREAMED_RUN_BYTES || bytes.is_multiple_of(LINE_BYTES);
            let ahead = if is_direct { offset } else { share.wrapping_mul(number) };
            let runs = Runs {
                source: stretch.source.wrapping_offset(offset),
                target: target.wrapping_add(stretch.at),
                bytes,
                count: stretch.count,
                from: self.row().from,
                to: bytes.cast_signed(),
                outer: stretch.outer,
                readable_end: stretch.readable_end,
            };
            let next = stretch.ahead.next.wrapping_offset(ahead);
            // SAFETY: the runs of one target.
            unsafe { self.call.deliver_runs(&runs, stages, next) };
        }
    }

    /// Writes what the rows are, and how the first bands are moved.
    pub(super) fn describe(
        &self,
        transfer: &Transfer<'_>,
        slot: &mut ProgramSlot,
        text: &mut Text<'_>,
    ) {
        let mut bands = Bands::new();
        text.text("\nrows: ").number(self.count).text(", ").number(self.row().from as i64);
        text.text(" bytes apart");
        let program = bands.set_up(self, &mut transfer.parts.iter().peekable(), slot);
        text.text(", in blocks of ").number(self.block_rows(&bands, program)).text("; ");
        for (number, band) in bands.all().iter().take(2).enumerate() {
            text.text(if number > 0 { "; " } else { "" }).number(band.pieces());
            text.text(" of runs of ").number(band.run).text(" bytes");
            band.costs.describe(text);
        }
        text.text(if bands.all().len() > 2 { "; and so on" } else { "" });
    }
}
