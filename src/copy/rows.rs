//! Pieces that share their rows: packed outputs, each of which takes a run of every row of the input. Elements that
//! share bytes come here, too, if all runs are whole bytes.
//!
//! Neighbouring pieces of equal length form a band, which one kernel moves. Rows are taken in blocks that the
//! first-level cache holds, band after band, so that each line of the input is fetched only once.

use super::call::{units_to_line, Call};
use super::cost::{self, Costs, Method};
use super::describe;
use super::groups::Groups;
use super::machine::{
    BLOCK_BYTES, COLUMN_BYTES, INTERLEAVED_RUNS, LEAST_STREAMED_BYTES, LONG_BLOCK_BYTES,
    LONG_RUN_BYTES,
};
use super::nest::{Axis, Nest};
use super::program::{Group, Program};
use super::runs::Runs;
use super::stage::Stages;
use super::tile::{Block, MAX_COLUMNS};
use super::vector::LINE_BYTES;
use crate::math::{div, div_rem, isize_of, next_multiple};
use crate::parts::{Part, Transfer};
use crate::shape::usize_of;
use crate::text::Text;
use core::iter::Peekable;
use core::ops::Range;
use core::ptr::{null, null_mut};

/// The most bands and pieces that are set up at a time, with one program, because all of this lives on the stack.
const MAX_BANDS: usize = 8;

/// The rows of a transfer, and how the split axis lies in them.
pub(super) struct Rows {
    call: Call,
    /// The axes outward of the split axis: all but the innermost one; and that one, along which kernels go.
    outer: Nest,
    row: Axis,
    pub count: usize,
    /// Bytes of input from one step of the split axis to the next, and bits that a piece has of a step.
    apart: isize,
    step_bits: usize,
    /// Bytes that all pieces together have of a row.
    row_bytes: usize,
}

impl Rows {
    pub(super) fn new(call: Call) -> Self {
        let row = Axis::ONE;
        Self { call, outer: Nest::NONE, row, count: 1, apart: 0, step_bits: 0, row_bytes: 0 }
    }

    /// Sets this to the rows of a transfer; returns `None` if its pieces do not take runs of whole bytes from them.
    #[inline(never)]
    pub(super) fn make(&mut self, transfer: &Transfer<'_>) -> Option<()> {
        let geometry = &transfer.geometry;
        if !transfer.output_strides.are_packed() {
            return None;
        }
        let bits = geometry.dtype.bits() as usize;
        self.step_bits = usize_of(geometry.inner) * bits;
        self.outer.source = transfer.source;
        if bits < 8 {
            self.make_sub_byte(transfer)?;
        } else {
            self.make_whole(transfer)?;
        }
        self.outer.join_axes();
        if !self.outer.axes().is_empty() {
            self.row = self.outer.pop();
        }
        // Rows that are contiguous in the input as well make one long run, which the normal form finds.
        if self.row.extent > 1 && self.row.from == self.run(1).cast_signed() && bits >= 8 {
            return None;
        }
        self.row_bytes = div(transfer.bytes, self.count);
        Some(())
    }

    /// Finds the rows of elements that share bytes: the input must be packed, and pieces begin and end at whole bytes.
    fn make_sub_byte(&mut self, transfer: &Transfer<'_>) -> Option<()> {
        let geometry = &transfer.geometry;
        let is_whole = |len: i64| (usize_of(len) * self.step_bits).is_multiple_of(8);
        let are_whole = |part: Part| is_whole(part.offset) && is_whole(part.len);
        if transfer.strides.is_some()
            || !transfer.bit_offset.is_multiple_of(8)
            || !(is_whole(1) || is_whole(geometry.extent) && transfer.parts.iter().all(are_whole))
        {
            return None;
        }
        self.outer.source = transfer.source.wrapping_add(transfer.bit_offset as usize / 8);
        let width = usize_of(geometry.extent) * self.step_bits / 8;
        self.count = usize_of(geometry.outer);
        self.apart = (self.step_bits / 8).cast_signed();
        self.outer.push(Axis { extent: self.count, from: width.cast_signed(), to: 1 });
        Some(())
    }

    /// Finds the rows of whole bytes: everything inward of the split axis must be contiguous, and so must steps along
    /// it, unless every piece has only one.
    fn make_whole(&mut self, transfer: &Transfer<'_>) -> Option<()> {
        let geometry = &transfer.geometry;
        let size = isize_of(i64::from(geometry.dtype.bits() / 8));
        let stride = |axis: usize, packed: isize| {
            let own = transfer.strides.and_then(|strides| strides.get(axis));
            own.map_or(packed, |own| isize_of(*own).wrapping_mul(size))
        };
        let mut packed = size;
        for (axis, &extent) in geometry.shape.iter().enumerate().skip(geometry.axis + 1).rev() {
            if extent > 1 && stride(axis, packed) != packed {
                return None;
            }
            packed = packed.wrapping_mul(isize_of(extent));
        }
        self.apart = stride(geometry.axis, packed);
        if self.apart != packed && transfer.parts.iter().any(|part| part.len > 1) {
            return None;
        }
        packed = packed.wrapping_mul(isize_of(geometry.extent));
        for (axis, &extent) in geometry.shape.iter().enumerate().take(geometry.axis).rev() {
            if extent > 1 {
                let to = self.count.cast_signed();
                self.outer.insert(Axis {
                    extent: usize_of(extent),
                    from: stride(axis, packed),
                    to,
                });
            }
            packed = packed.wrapping_mul(isize_of(extent));
            self.count *= usize_of(extent);
        }
        Some(())
    }

    /// Returns how many bytes a piece has of a row: whole ones, even if a step has not.
    pub(super) fn run(&self, len: i64) -> usize {
        usize_of(len) * self.step_bits / 8
    }

    /// Returns the bytes of input from the start of a row to the start of a piece.
    fn offset(&self, part: &Part) -> isize {
        if self.step_bits.is_multiple_of(8) {
            self.apart.wrapping_mul(isize_of(part.offset))
        } else {
            (usize_of(part.offset) * self.step_bits / 8).cast_signed()
        }
    }

    /// Returns where a row begins, and how many rows there are from it on at equal distances.
    fn source_at(&self, row: usize) -> (*const u8, usize) {
        let extent = self.row.extent.max(1);
        let (step, within) = div_rem(row, extent);
        let source = self.outer.source_at(step);
        (source.wrapping_offset(self.row.from.wrapping_mul(within.cast_signed())), extent - within)
    }

    /// Returns the axis outward of rows, with as many of its steps as are whole within `count` rows from one on. There is
    /// only one step past the caches, or where pages may lie between rows.
    fn whole_steps(&self, row: usize, count: usize) -> Axis {
        let (step, within) = div_rem(row, self.row.extent.max(1));
        let Some(outer) = self.outer.axes().last() else { return Axis::ONE };
        let left = outer.extent - div_rem(step, outer.extent.max(1)).1;
        let extent = div(count, self.row.extent).min(left);
        if within == 0 && extent > 1 && !self.call.past && !self.call.has_holes {
            Axis { extent, ..*outer }
        } else {
            Axis::ONE
        }
    }

    /// Returns the number of rows in a block.
    fn block_rows(&self, bands: &Bands<'_>) -> usize {
        let step = self.row.from.unsigned_abs().max(self.row_bytes).max(1);
        // What one pass makes is not read again, so it need not stay in the first-level cache.
        let (program, [first, ..]) = (&*bands.program, &bands.list);
        let pieces = first.targets.end.saturating_sub(first.targets.start);
        let is_once = bands.count == 1
            && first.costs.best() == Method::Shuffle
            && program.together(pieces) == pieces
            && program.sets().len() == 1;
        let are_long = div(self.row_bytes, bands.count) >= LONG_RUN_BYTES;
        let bytes = if is_once || are_long { LONG_BLOCK_BYTES } else { BLOCK_BYTES };
        let columns = if bands.has_columns { div(COLUMN_BYTES, self.run(1)) } else { 0 };
        let rows = div(bytes, step).max(columns);
        // If the first block begins a line in the outputs, so do all others of rows at equal distances.
        if bands.has_short {
            next_multiple(rows.max(1), LINE_BYTES)
        } else {
            rows.max(if self.call.past { INTERLEAVED_RUNS } else { 1 })
        }
    }

    /// Copies the runs that pieces have of some rows.
    ///
    /// # Safety
    /// The runs must be readable and writable; concurrent calls must have other rows, or other pieces.
    #[inline(never)]
    pub(super) unsafe fn copy(&self, parts: impl Iterator<Item = Part>, rows: Range<usize>) {
        let mut program = Program::new();
        let mut bands = Bands::new(&mut program);
        let mut stages = Stages::new();
        let mut parts = parts.peekable();
        while parts.peek().is_some() {
            bands.make(self, &mut parts);
            let block = self.block_rows(&bands);
            let (mut row, mut equal) = (rows.start, 0..rows.start);
            while row < rows.end {
                let (source, left) = self.source_at(row);
                if row >= equal.end {
                    equal = row..(row + left).min(rows.end);
                }
                let steps = self.whole_steps(row, block.min(rows.end - row));
                let end = if steps.extent > 1 {
                    row + self.row.extent * steps.extent
                } else {
                    (row + block).min(equal.end)
                };
                let next = if end < rows.end { self.source_at(end).0 } else { source };
                let (some, place) = (row..end, (source, next));
                // SAFETY: the caller's promise.
                unsafe { self.copy_block(&bands, &mut stages, place, (some, steps), &equal) };
                row = end;
            }
        }
        // SAFETY: as above.
        unsafe { stages.finish(self.call.machine.kernels) };
        self.call.finish();
    }

    /// Writes what the rows are, and how the first bands are moved.
    pub(super) fn describe(&self, transfer: &Transfer<'_>, text: &mut Text<'_>) {
        let mut program = Program::new();
        let mut bands = Bands::new(&mut program);
        text.text("\nrows: ")
            .number(self.count)
            .text(", ")
            .number(self.row.from as i64)
            .text(" bytes apart");
        bands.make(self, &mut transfer.parts.iter().peekable());
        text.text(", in blocks of ").number(self.block_rows(&bands)).text("; ");
        for (number, band) in bands.list.iter().take(bands.count.min(2)).enumerate() {
            text.text(if number > 0 { "; " } else { "" }).number(band.targets.len());
            text.text(" of runs of ").number(band.run).text(" bytes");
            describe::costs(&band.costs, text);
        }
        text.text(if bands.count > 2 { "; and so on" } else { "" });
    }

    /// Returns where a band's part of a block begins or ends, of rows at equal distances: past the caches, where its targets
    /// begin a line.
    fn boundary(&self, row: usize, equal: &Range<usize>, run: usize, targets: &[*mut u8]) -> usize {
        if row == equal.start || row >= equal.end || !self.call.past || run >= LEAST_STREAMED_BYTES
        {
            return row;
        }
        let first = targets.first().map_or(0, |target| *target as usize);
        (row + units_to_line(first + row * run, run).unwrap_or(0)).min(equal.end)
    }

    /// Copies the runs of all bands in a block of rows: those of one step of the outer axis, or of several whole steps.
    unsafe fn copy_block(
        &self,
        bands: &Bands<'_>,
        stages: &mut Stages,
        (source, next): (*const u8, *const u8),
        (rows, steps): (Range<usize>, Axis),
        equal: &Range<usize>,
    ) {
        let from = self.row.from;
        // Long runs first: they fetch the lines that they share with short ones.
        let is_long = |band: &&Band| band.run >= LEAST_STREAMED_BYTES;
        let all = || bands.list.iter().take(bands.count);
        for band in all().filter(is_long).chain(all().filter(|band| !is_long(band))) {
            let &Band { offset, run, apart, ref targets, costs } = band;
            let targets = bands.targets.get(targets.clone()).unwrap_or_default();
            let [begin, end] =
                [rows.start, rows.end].map(|row| self.boundary(row, equal, run, targets));
            let ahead = from.wrapping_mul((begin - rows.start).cast_signed());
            let source = source.wrapping_offset(offset.wrapping_add(ahead));
            let (count, left) = (div(end - begin, steps.extent), equal.end.saturating_sub(begin));
            if count == 0 {
                continue;
            }
            let outer = Axis { to: (count * run).cast_signed(), ..steps };
            let readable_end = if self.call.is_far(apart) {
                null()
            } else {
                let last = apart.max(0).unsigned_abs() * (targets.len() - 1);
                self.call.readable_end(source, left, from, last + run)
            };
            let (at, mut next) = (begin * run, next.wrapping_offset(offset.wrapping_add(ahead)));
            // Partial lines at the end are stored through the caches, which must not wait for them.
            for target in targets.iter().map(|target| target.wrapping_add(end * run)) {
                if self.call.past && !(target as usize).is_multiple_of(LINE_BYTES) {
                    (self.call.machine.kernels.prefetch)(target, 1, 0, 1);
                }
            }
            // Kernels prefetch what comes next in memory, but this band may continue in other rows.
            let bytes = targets.len() * run;
            let is_alone = bands.count == 1 && from.unsigned_abs() <= bytes + LINE_BYTES;
            if self.call.past && run < LEAST_STREAMED_BYTES && !is_alone {
                (self.call.machine.kernels.prefetch)(next, count, from, bytes);
                next = source;
            }
            let (program, distance) = (&*bands.program, 0);
            let all =
                Groups { program, source, targets, at, count, outer, readable_end, next, distance };
            // SAFETY: the caller's promise.
            unsafe {
                match costs.best() {
                    Method::Shuffle => self.call.shuffle(&all, stages),
                    Method::Transpose => self.transpose(&all, run),
                    Method::Runs => self.copy_runs(&all, band, stages),
                }
            }
        }
    }

    /// Transposes rows of single units, one for each target.
    unsafe fn transpose(&self, all: &Groups<'_>, unit: usize) {
        let &Groups { targets, count: rows, readable_end, .. } = all;
        let from = self.row.from;
        for step in 0..all.outer.extent {
            let Groups { source, at, .. } = all.steps(step, 1);
            let block = Block { source, unit, from, rows, targets, at, readable_end };
            // SAFETY: the caller's promise.
            unsafe { self.call.machine.kernels.transpose(&block, self.call.past) };
        }
    }

    /// Copies the runs of each target.
    unsafe fn copy_runs(&self, all: &Groups<'_>, band: &Band, stages: &mut Stages) {
        let (&Groups { count, outer, readable_end, .. }, &Band { run, apart, .. }) = (all, band);
        let (from, to) = (self.row.from, run.cast_signed());
        for (number, target) in all.targets.iter().enumerate() {
            let offset = apart.wrapping_mul(number.cast_signed());
            // Short runs prefetch what follows, each piece a share; long ones, their next rows.
            let is_streamed = run >= LEAST_STREAMED_BYTES || run.is_multiple_of(LINE_BYTES);
            let share = (number * count * run).cast_signed();
            let next = all.next.wrapping_offset(if is_streamed { offset } else { share });
            let (source, target) =
                (all.source.wrapping_offset(offset), target.wrapping_add(all.at));
            let runs = Runs { source, target, run, count, from, to, outer, readable_end };
            // SAFETY: the caller's promise.
            unsafe { self.call.copy_runs(&runs, stages, next) };
        }
    }
}

/// Neighbouring pieces of equal length.
struct Band {
    /// Bytes from the start of a row to the first piece, and from one piece to the next.
    offset: isize,
    apart: isize,
    run: usize,
    targets: Range<usize>,
    costs: Costs,
}

impl Band {
    const NONE: Self = {
        let costs = Costs { runs: 0, shuffle: None, transpose: None };
        Self { offset: 0, apart: 0, run: 0, targets: 0..0, costs }
    };

    /// Returns whether a program that was made for another band makes this one, too.
    fn is_made_by(&self, program: &Program) -> bool {
        let is_alike = program.group.unit == self.run
            && (program.apart == self.apart || self.targets.len() == 1);
        is_alike && program.pieces <= self.targets.len()
    }
}

/// The bands that are set up at a time.
struct Bands<'a> {
    list: [Band; MAX_BANDS],
    count: usize,
    targets: [*mut u8; MAX_COLUMNS],
    program: &'a mut Program,
    has_columns: bool,
    has_short: bool,
}

impl<'a> Bands<'a> {
    #[inline(always)] // it is too large to return cheaply
    fn new(program: &'a mut Program) -> Self {
        Self {
            list: [Band::NONE; MAX_BANDS],
            count: 0,
            targets: [null_mut(); MAX_COLUMNS],
            program,
            has_columns: false,
            has_short: false,
        }
    }

    /// Sets this to the next bands, as many as there is room for; in place, because bands take much of the stack.
    #[inline(never)]
    fn make(&mut self, rows: &Rows, parts: &mut Peekable<impl Iterator<Item = Part>>) {
        (self.count, self.has_columns, self.has_short) = (0, false, false);
        self.program.groups = 0;
        let mut found = 0;
        for band in &mut self.list {
            let Some(first) = parts.peek().copied() else { break };
            let run = rows.run(first.len);
            let begin = found;
            let mut end = first.offset;
            while let Some(part) = parts.peek().copied() {
                let is_next =
                    part.len == first.len && part.offset == end && found - begin < MAX_COLUMNS;
                let Some(slot) = self.targets.get_mut(found).filter(|_| is_next) else { break };
                *slot = part.target;
                found += 1;
                end = part.offset + part.len;
                parts.next();
            }
            if found == begin {
                break;
            }
            let apart = if first.len > 1 { run.cast_signed() } else { rows.apart };
            *band = Band {
                offset: rows.offset(&first),
                apart,
                run,
                targets: begin..found,
                costs: Band::NONE.costs,
            };
            band.costs = costs_of(rows, band, self.program);
            self.has_short |= cost::is_short(run);
            self.has_columns |= band.costs.best() == Method::Transpose;
            self.count += 1;
        }
    }
}

/// Returns what it costs to move a band. Makes a program unless an earlier band has one, which may do for this one, too.
fn costs_of(rows: &Rows, band: &Band, program: &mut Program) -> Costs {
    let (call, columns, from) = (&rows.call, band.targets.len(), rows.row.from);
    let are_beside = band.apart == band.run.cast_signed();
    let transpose = if are_beside {
        cost::of_transpose(call, band.run, columns, rows.row.extent)
    } else {
        None
    };
    let runs = cost::of_runs(call, band.run, true);
    let mut costs = Costs { runs, shuffle: None, transpose };
    costs.shuffle = if program.groups == 0 {
        let (group, pieces) = (Group::of_units(band.run, from), (columns, band.apart));
        let limit = costs.without_program();
        cost::make_program(call, program, group, pieces, rows.count, limit)
    } else {
        band.is_made_by(program).then(|| cost::of_program(call, program))
    };
    costs.shuffle = costs.shuffle.filter(|_| program.groups <= rows.row.extent);
    costs
}
