//! Planes of a strided piece: a row by a column of units, transposed through registers where the input and the
//! output have different innermost axes, else copied as runs, row by row, or unit by unit.

use super::columns::{Columns, EachTargets, LEAST_AGAIN};
use super::interleaved_runs::InterleavedRuns;
use super::kernel::combine::LINE;
use super::kernel::row_major::RowRun;
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::{self, Axis, Block, Place};
use super::kernel::{RowMajor, LANE, TURNS};
use super::odometer::{self, Axes};
use super::rows::Rows;
use super::runs::{self, Ahead};
use super::tiles::JointTargets;
use super::tuning::Tuning;
use crate::math::{self, div, div_ceil, div_rem, signed, wrapped};

/// The least extents of a plane, in units, that is worth turning through registers; of long units, those that
/// make 16 bytes will do.
const MIN_TRANSPOSED: usize = 8;
/// Planes, or regions, of fewer units are as quickly copied unit by unit.
pub(super) const LEAST_UNITS: usize = 256;
/// The same of those that are joined. Zen 4, us joined and plane by plane, 7 of 60 by 4 units of 8 bytes 32, 17; but 43 × 2
/// by 2 of 2 bytes 2,130, 3,600.
const LEAST_JOINED: usize = 128;
/// And planes in fewer bytes than this times the square of a unit's, which stay in the second-level cache.
const LEAST_BYTES_JOINED: usize = if LOW_THRESHOLDS { 1 } else { 16 << 10 };
/// Where at least [`LEAST_AGAIN`] planes are alike, so are those of fewer than this: what they have in common is
/// found out once for all.
const LEAST_TRANSPOSED: usize = 64;
/// In the second-level cache, units of so many bytes and more are as quickly copied one by one as transposed, unless
/// rows as well as columns lie in few sets of the caches (as those [`CONFLICT`] bytes apart do, from more than
/// [`WAYS`] on). Zen 5, ps a byte, one by one and transposed: 300 x 300 of 16 bytes 20, 38; 1,024 x 512 112, 51; but
/// past that cache 7 x 300 x 301 60, 42.
const LONGEST_TRANSPOSED: usize = 16;
const CONFLICT: usize = 1024;
const WAYS: usize = 8;
/// Shorter rows, in units, have their columns walked instead.
pub(super) const LEAST_ROW: usize = 16;
/// Of shorter ones columns are walked, too, where what is read is no longer in the second-level cache.
const LEAST_DENSE: usize = 5;
/// As many bytes of a row are worth a loop anyhow.
const LONG_ROW: usize = 3 * LINE;
/// More bytes are not in the second-level cache.
pub(super) const LARGE: usize = if LOW_THRESHOLDS { 4 << 10 } else { 2 << 20 };
/// Units of so many bytes are copied as runs.
pub(super) const LEAST_RUN: usize = 128;
/// So few of a row are copied one by one: to ask for loops takes as long. Zen 4, us before and after: 2,560 rows of two of
/// 100 bytes 65, 30, 12,233 of two of 300 1,300, 800.
const FEW_UNITS: usize = 16;
/// Shorter runs, off their lines and near each other in the output, stay in the caches: each end is a line that is
/// read. Zen 4, 20 MB 16 bytes off, ms past them and through: 368 bytes 64 apart 2.3, 1.2, 192 apart 2.4, 1.9, 512 apart
/// 2.3, 2.8; 464 bytes 2.1, 1.2 and 2.2, 1.6 and 2.6, 2.8; 256 bytes 1.3, 1.2 and 1.8, 2.9; 800 bytes 1.1, 1.2.
const MOST_NEAR: usize = 512;
const NEAR: usize = 2 * LINE;
/// Columns of such units that are copied row by row at a time.
const COLUMNS: usize = 4;
/// Units of a plane's longer side that stay in the first-level cache while the shorter is walked.
const BLOCK: usize = 128;

/// A row by a column: of contiguous units in the output, and in the input, or of units anywhere.
#[derive(Clone, Copy)]
pub(super) struct Plane {
    pub source: *const u8,
    pub target: *mut u8,
    pub unit: usize,
    pub row: Axis,
    pub column: Axis,
    /// Planes like it that are copied with it.
    pub again: Axis,
    /// What short rows go on with in the output, and short columns in the input.
    pub more: Axis,
    pub beside: Axis,
    /// Whether units are contiguous the column's way.
    pub has_column: bool,
}

/// How planes that are alike but for where they are are copied.
pub(super) enum Way {
    /// Units of many bytes.
    Runs,
    /// Transposed through registers.
    Transposed,
    /// By turns of few rows.
    InterleavedRuns(InterleavedRuns),
    /// All units one by one.
    Units,
}

impl Axis {
    /// Whether its steps meet in a few sets of the caches.
    fn conflicts(&self) -> bool {
        let meets = |step: isize| step != 0 && step.unsigned_abs().is_multiple_of(CONFLICT);
        self.extent > WAYS && (meets(self.from) || meets(self.to))
    }
}

impl Plane {
    /// Walks a column that runs backwards in the input forwards there; how far ahead it begins then.
    pub(super) fn walk_forwards(&mut self) -> (isize, isize) {
        let Axis { extent, from, to } = self.column;
        if from >= 0 {
            return (0, 0);
        }
        self.column = Axis { extent, from: from.wrapping_neg(), to: to.wrapping_neg() };
        let last = signed(extent - 1);
        (from.wrapping_mul(last), to.wrapping_mul(last))
    }

    /// Looks for what short rows go on with in the output, and short columns in the input, or lines would be touched
    /// again and again for a few units each; which axes are no others then. Longer rows are as quick plane by plane:
    /// Zen 4, us with those of another axis and without, 14 of 4 bytes 18, 12, 22 of 2 bytes 3.6, 2.8, 8 of 4 bytes
    /// 6,600, 5,000; 4 of 8 3,000, 2,250, 29 bytes 790, 450; but 2 of 4 bytes 3,800, 10,300, 3 bytes 1,170, 3,270. So are
    /// few of long units: 280 KB of 3 of 8 bytes 57, 42, 115 KB of 7 of 4 21, 17.
    #[inline(never)] // once in the library
    pub(super) fn join(&mut self, bytes: usize, outer: &[Axis], skipped: Axes) -> Axes {
        let &mut Self { unit, row, column, has_column, .. } = self;
        if !has_column || unit >= LINE || bytes < LEAST_BYTES_JOINED * unit * unit {
            return skipped;
        }
        let [rows, columns] = [row, column].map(|axis| signed(axis.extent * unit));
        let is_short =
            row.extent * unit < if row.extent < MIN_TRANSPOSED { 2 * LANE } else { LANE };
        let if_so = |is_short: bool, bytes: isize| if is_short { bytes } else { isize::MAX };
        let (after, along) = (if_so(is_short, rows), if_so(columns < signed(LINE), columns));
        // What goes on both ways is read as it lies, unless that leaves rows too short.
        let too_short = if_so(rows <= signed(LANE), rows);
        let (mut more, mut beside) = ((0, &Axis::ONE), (0, &Axis::ONE));
        for (at, axis) in outer.iter().enumerate() {
            let this = odometer::one(Some(at));
            // Of input that is there again and again there may be several.
            let is_other = this != skipped;
            if is_other && axis.from == along && axis.to != too_short {
                beside = (this, axis);
            } else if is_other && axis.to == after {
                more = (this, axis);
            }
        }
        let [rows, columns] =
            [(row, more), (column, beside)].map(|(axis, (_, next))| axis.extent * next.extent);
        let are_long = rows > MIN_TRANSPOSED && rows * unit >= LANE;
        if Columns::turns(unit) && are_long && rows * columns >= LEAST_JOINED {
            (self.more, self.beside) = (*more.1, *beside.1);
            return skipped | more.0 | beside.0;
        }
        self.again = *beside.1;
        skipped | beside.0
    }

    /// Whether there is such.
    fn is_joined(&self) -> bool {
        self.more.extent.max(self.beside.extent) > 1
    }

    /// How it is copied, and as many like it.
    #[inline(never)]
    pub(super) fn way(&self, again: Axis, is_large: bool, tuning: Tuning) -> Way {
        let &Self { unit, row, column, has_column, .. } = self;
        if self.is_joined() {
            return Way::Transposed;
        }
        let shorter = row.extent.min(column.extent);
        if let Some(runs) =
            InterleavedRuns::of(unit, row, column).filter(|runs| runs.are_runs(tuning))
        {
            return Way::InterleavedRuns(runs);
        }
        let is_line = unit >= LINE && row.to == signed(unit);
        let is_line = is_line && (!has_column || row.extent >= LEAST_ROW);
        let is_short = has_column && row.extent < LEAST_ROW && tuning.transposed.is_none();
        if (unit >= LEAST_RUN && !is_short) || is_line {
            return Way::Runs;
        }
        let targets = self.targets();
        let columns = self.columns(&targets);
        let is_deinterleaved = columns.are_deinterleaved(again, tuning);
        let units = row.extent * column.extent;
        let are_wide = row.extent * unit > LANE && column.extent * unit >= LANE;
        let are_alike = again.extent >= LEAST_AGAIN && (are_wide || is_deinterleaved);
        let are_many = match again.extent {
            LEAST_AGAIN.. if is_deinterleaved && columns.is_one_loop(tuning) => true,
            _ => units >= if are_alike { LEAST_TRANSPOSED } else { LEAST_UNITS },
        };
        if has_column && are_many && Columns::turns(unit) {
            let are_few = is_deinterleaved || columns.are_interleaved(tuning);
            let both_conflict = row.conflicts() && column.conflicts();
            let is_large = is_large && shorter >= MIN_TRANSPOSED;
            let is_quicker = unit < LONGEST_TRANSPOSED
                || both_conflict
                || tuning.transposed.is_some()
                || is_large;
            // Many short targets take longer to be told than to be filled unit by unit.
            let are_short = row.extent < column.extent;
            let least =
                if are_short { MIN_TRANSPOSED } else { div(LANE, unit).clamp(2, MIN_TRANSPOSED) };
            if (shorter >= least && is_quicker) || are_few {
                return Way::Transposed;
            }
        }
        Way::Units
    }

    /// Whether others like it are copied with it.
    pub(super) fn takes_others(&self, way: &Way) -> bool {
        let is_small = self.row.extent.max(self.column.extent) <= BLOCK;
        (matches!(way, Way::Transposed) && self.more.extent == 1)
            || (matches!(way, Way::Units) && is_small)
    }

    pub(super) fn targets(&self) -> JointTargets {
        let &Self { target, column, beside, .. } = self;
        JointTargets { first: target, axes: [beside, column] }
    }

    pub(super) fn columns<'a>(&self, targets: &'a dyn EachTargets) -> Columns<'a> {
        let &Self { source, unit, row, column, beside, .. } = self;
        let (step, rows, count) = (wrapped(row.from), row.extent, column.extent * beside.extent);
        Columns { source, step, rows, unit, count, targets }
    }

    /// Copies the plane.
    ///
    /// # Safety
    /// The input must be readable and the output writable over it.
    pub(super) unsafe fn copy(&self, way: &Way, tuning: Tuning) {
        // SAFETY: the caller's promise.
        unsafe {
            match way {
                Way::Runs => self.copy_runs(tuning.for_runs()),
                Way::Transposed if self.more.extent > 1 => self.copy_tiles(tuning),
                Way::Transposed => self.columns(&self.targets()).copy_planes(self.again, tuning),
                Way::InterleavedRuns(runs) => runs.copy_runs((self.source, self.target), tuning),
                Way::Units => self.copy_blocks(tuning),
            }
        }
    }

    /// Copies a plane of units of many bytes.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    #[inline(never)]
    unsafe fn copy_runs(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column, has_column, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let is_short = row.extent * unit < runs::LONG || tuning.by_turns(unit).is_none();
            if !has_column && row.extent <= FEW_UNITS && unit < runs::LONG && is_short {
                let block = Block { unit, axes: [column, row] };
                return block.copy((source, target), Axis::ONE, tuning.kernels);
            }
            if !has_column || tuning.by_turns(unit).is_some() {
                // Of columns, a few rows at a time, which take turns.
                let at_once = if has_column { TURNS } else { row.extent };
                for rows in math::parts(0..row.extent, at_once) {
                    let mut place = row.moved((source, target), signed(rows.start));
                    for _ in 0..column.extent {
                        copy_row(place, unit, Axis { extent: rows.len(), ..row }, tuning);
                        place = column.moved(place, 1);
                    }
                }
                return;
            }
            if let Some(past) = tuning.transposed.filter(|_| self.is_of_rows()) {
                let place = (source, target);
                return Rows::merge_columns(place, unit, row, column, past, tuning);
            }
            let tuning = if self.makes_lines() { tuning } else { tuning.through_caches() };
            let row_major = tuning.kernels.row_major.filter(|_| tuning.transposed.is_none());
            if !row_major.is_some_and(|row_major| self.copy_lines(row_major)) {
                self.copy_rows(tuning);
            }
        }
    }

    /// Takes some units of the longer side, and all of the shorter one, at a time: blocks that are alike, then
    /// what is left.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    #[inline(never)] // once in the library
    unsafe fn copy_blocks(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column, again, has_column, .. } = self;
        let is_wide = if row.conflicts() == column.conflicts() {
            column.extent <= row.extent || row.extent >= LEAST_ROW || self.is_read_in_order(tuning)
        } else {
            column.conflicts()
        };
        let (outer, inner) = if is_wide { (column, row) } else { (row, column) };
        let copy = |place: Place, again: Axis, extent: usize| {
            let block = Block { unit, axes: [outer, Axis { extent, ..inner }] };
            // SAFETY: the caller's promise.
            unsafe { block.copy(place, again, tuning.kernels) };
        };
        let (blocks, rest) = div_rem(inner.extent, BLOCK);
        if inner.extent <= BLOCK || (is_wide && !has_column) {
            return copy((source, target), again, inner.extent);
        }
        // There are no others like it.
        let step = |step: isize| step.wrapping_mul(signed(BLOCK));
        let all = Axis { extent: blocks, from: step(inner.from), to: step(inner.to) };
        copy((source, target), all, BLOCK);
        if rest > 0 {
            copy(all.moved((source, target), signed(blocks)), Axis::ONE, rest);
        }
    }

    /// Whether it is worth a loop for each of its short rows to read memory in its order: by columns, lines come again
    /// for each. Zen 4, us row by row and by columns, 12 units of 4 bytes of a row, 40 bytes apart, of 12 MiB 167, 229,
    /// of 80 MiB 2,600, 7,600; but of 1 MiB 11.6, 10.5, and 120 bytes apart, of 12 MiB 106, 88; rows of longer units, 12 MiB,
    /// 2 of 32 bytes 1,530, 3,300, 3 of 16 1,460, 3,350, 12 of 60 850, 3,700, 200 KB 4.5, 5.7, but 3 of 24 11.4,
    /// 6.6, 1.5 MB 132, 95.
    fn is_read_in_order(&self, tuning: Tuning) -> bool {
        let &Self { unit, row, column, has_column, .. } = self;
        let reach = column.extent.saturating_mul(column.from.unsigned_abs());
        let is_dense = row.extent >= LEAST_DENSE && row.from.unsigned_abs() <= LINE;
        let is_long = row.extent * unit >= LONG_ROW || (unit >= LANE && reach >= 4 * LARGE);
        tuning.reads_upwards() && !has_column && (is_long || (is_dense && reach >= LARGE))
    }

    /// Whether it has rows one behind the other, of units that are merged to lines rather than copied each
    /// for itself.
    fn is_of_rows(&self) -> bool {
        self.unit < runs::LONG && self.row.from >= signed(self.column.extent * self.unit)
    }

    /// Whether units are worth going past the caches for: long, or whole lines.
    fn makes_lines(&self) -> bool {
        let is_whole = |bytes: usize| bytes.is_multiple_of(LINE);
        self.unit >= runs::LONG
            || is_whole(self.unit)
                && is_whole(self.target as usize)
                && is_whole(wrapped(self.column.to))
    }

    /// Copies a plane of long units, some rows of it at a time: in the order of the input, but for so
    /// much that each output row gets [`runs::LONG`] bytes.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    unsafe fn copy_rows(&self, tuning: Tuning) {
        let &Self { source, target, unit, row, column, .. } = self;
        let block = div_ceil(runs::LONG, unit);
        let ahead = row.from.wrapping_mul(signed(block));
        for rows in math::parts(0..row.extent, block) {
            for at in 0..column.extent {
                let target = target.wrapping_offset(column.to.wrapping_mul(signed(at)));
                let source = source.wrapping_add(at * unit);
                for row_at in rows.clone() {
                    let source = source.wrapping_offset(row.from.wrapping_mul(signed(row_at)));
                    let ahead = Ahead { rest: 0, next: source.wrapping_offset(ahead), by: 0 };
                    let target = target.wrapping_add(row_at * unit);
                    // SAFETY: the caller's promise.
                    unsafe { runs::copy(tuning, source, target, unit, ahead) };
                }
            }
        }
    }

    /// Copies a plane of units of some lines through the caches, a few columns of some rows at a time.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    unsafe fn copy_lines(&self, row_major: RowMajor) -> bool {
        let &Self { source, target, unit, row, column, .. } = self;
        for rows in math::parts(0..row.extent, BLOCK) {
            let source = source.wrapping_offset(row.from.wrapping_mul(signed(rows.start)));
            let target = target.wrapping_add(rows.start * unit);
            for columns in math::parts(0..column.extent, COLUMNS) {
                let mut all = [RowRun { source, bytes: unit, target }; COLUMNS];
                for (at, run) in columns.clone().zip(&mut all) {
                    run.source = source.wrapping_add(at * unit);
                    run.target = target.wrapping_offset(column.to.wrapping_mul(signed(at)));
                }
                let runs = all.get_mut(..columns.len()).unwrap_or_default();
                // SAFETY: the caller's promise.
                if !unsafe { row_major(runs, wrapped(row.from), rows.len()) } {
                    return false;
                }
            }
        }
        true
    }
}

/// Copies `row.extent` units.
///
/// # Safety
/// They must be readable and writable.
#[inline(never)]
unsafe fn copy_row((source, target): Place, unit: usize, row: Axis, tuning: Tuning) {
    // Shorter ones that are repeated are read from the first-level cache.
    let is_apart = row.from != 0 || unit >= runs::LONG;
    let gap = wrapped(row.to).wrapping_sub(unit);
    let (goes_on, begins) = (gap == 0, target as usize | wrapped(row.to));
    let is_whole = goes_on || unit > MOST_NEAR || gap > NEAR || begins.is_multiple_of(LINE);
    if let Some(by_turns) = tuning.by_turns(unit).filter(|_| is_apart && is_whole) {
        // SAFETY: the caller's promise.
        return unsafe { by_turns(row.of(source, target, unit)) };
    }
    if unit >= runs::LONG {
        let mut places = row.places((source, target));
        while let Some((source, target)) = places() {
            let ahead = Ahead::of_row(unit, source.wrapping_offset(row.from), tuning);
            // SAFETY: the caller's promise.
            unsafe { runs::copy(tuning, source, target, unit, ahead) };
        }
        return;
    }
    let row_major = tuning.kernels.row_major.filter(|_| unit >= LINE && goes_on);
    let mut run = [RowRun { source, bytes: unit, target }];
    // SAFETY: the caller's promise.
    if row_major.is_some_and(|copy| unsafe { copy(&mut run, wrapped(row.from), row.extent) }) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { strided::copy(tuning.kernels, row.of(source, target, unit)) };
}
