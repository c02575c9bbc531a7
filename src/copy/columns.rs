//! Columns of any matrix become rows of their own: deinterleaved where they are few, else transposed
//! a part of the matrix at a time.

use super::kernel::combine::{Scratch, LINE};
use super::kernel::opaque::opaque;
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::{Axis, Block};
use super::kernel::transpose::{scratch, Transpose, NEAR, SAME_SET};
use super::kernel::{Kernels, LANE, MAX_DEINTERLEAVED, MOST_OF_BLOCKS};
use super::tuning::Tuning;
use super::visit::Visit;
use crate::math::{self, div, div_rem, signed};
use crate::parts::{self, Part};
use crate::shape::usize_of;
use core::ops::Range;
use core::ptr::null_mut;

/// Where the next `count` columns go: to `first` and to places `apart` bytes (backwards: wrapped)
/// from one another, or nowhere.
#[derive(Clone, Copy)]
pub(super) struct Targets {
    pub first: Option<*mut u8>,
    pub apart: usize,
    pub count: usize,
}

/// Takes targets; whether more are wanted.
pub(super) type TakeTargets<'a> = dyn Visit<Targets, bool> + 'a;

/// Gives targets, one behind the other, until it is told that no more are wanted.
pub(super) trait EachTargets {
    fn each(&self, visit: &mut TakeTargets<'_>);
}

impl<F: Fn(&mut TakeTargets<'_>)> EachTargets for F {
    fn each(&self, visit: &mut TakeTargets<'_>) {
        self(visit);
    }
}

/// Nothing but these.
impl EachTargets for Targets {
    fn each(&self, visit: &mut TakeTargets<'_>) {
        visit.visit(*self);
    }
}

impl Targets {
    /// Of pieces in order from a step on, with what none of them wants between.
    pub(super) fn of<'a>(
        parts: &'a parts::Iter<'a>,
        begin: i64,
        of_part: impl Fn(Part) -> Self + 'a,
        steps_a_column: i64,
    ) -> impl EachTargets + 'a {
        move |visit: &mut TakeTargets<'_>| {
            Self::tell(parts.clone(), begin, &of_part, steps_a_column, visit);
        }
    }

    #[inline(never)] // or it is in the library twice, as the shims of closures are
    fn tell(
        parts: parts::Iter<'_>,
        mut next: i64,
        of_part: &impl Fn(Part) -> Self,
        steps_a_column: i64,
        visit: &mut TakeTargets<'_>,
    ) {
        for part in parts {
            let gap = part.offset - next;
            next = part.offset + part.len;
            // Divisions take their time.
            let count = if gap > 0 { gap.checked_div(steps_a_column).unwrap_or(0) } else { 0 };
            let nothing = Self { first: None, apart: 0, count: usize_of(count) };
            if (gap > 0 && !visit.visit(nothing)) || !visit.visit(of_part(part)) {
                return;
            }
        }
    }
}

/// `rows` rows, `step` bytes apart (backwards: wrapped), of `count` contiguous units of `unit`
/// bytes. Unit `i` of every row goes to the `i`-th of the targets, one behind the other.
pub(super) struct Columns<'a> {
    pub source: *const u8,
    pub step: usize,
    pub rows: usize,
    pub unit: usize,
    pub count: usize,
    pub targets: &'a dyn EachTargets,
}

/// The most targets of a transpose at a time: past the caches, but on Zen 4, u16 2,048 × 4,096 .49 of the flat copy
/// by as many as there are for .41, u8 4,096² .42 for .32.
const MOST: usize = 256;
/// Bytes that each target gets of rows that are transposed together, where there are more.
const BLOCK: usize = 64 * LINE;
/// Sizes of the scratch.
const LARGE: usize = scratch(1);
const SMALLER: usize = scratch(4);
/// Targets a multiple of this apart get some lines at a time through the caches too. Zen 5, share of the
/// flat copy by one line for by four: u8 2,048 apart .29 for .52, 2,304 .49 for .64, 2,560 .45 for .61;
/// f32 2,048 .28 for .65, 2,304 .71 for .60, 2,560 .60 for .58, 3,072 .53 for .57.
const CONFLICT: usize = 512;
/// The same of those that are, by no more than so many units or bytes, not a multiple of what is in one set or of
/// half of that: the half of a line that one row leaves is gone before the next one fills it. Zen 5, the same:
/// u8 4,100 apart .19 for .25, but 4,108 .43 for .33; u16 4,100 .16 for .43, 4,112 .50 for .50, 2,052 .26 for .48;
/// f32 4,100 .15 for .46, 4,120 .55 for .59, 4,124 .62 for .57; f64 4,104 .19 for .60, 4,128 .74 for .73.
const NEAR_UNITS: usize = 8;
/// The same of rows of short units.
const CLOSE: usize = 4;
/// Matrices of so many bytes stay in the second-level cache.
const SMALL: usize = if LOW_THRESHOLDS { 4 << 10 } else { 256 << 10 };
/// Zen 4, units of 4 bytes and more of so many in all are as quick where they meet. Through the caches in order for
/// by turns, share of the flat copy: f32 256² .50 for .44, 512² .58 for .54, 640² .66 for .53, f64 509² .53 for .45,
/// 512² .46 for .42; but f32 1,023² .22 for .29, 1,024² .35 for .39.
const HELD: usize = if LOW_THRESHOLDS { 4 << 10 } else { 1 << 20 };
/// Columns of so many bytes, but of bytes, are worth it where they begin elsewhere in their lines. Zen 5, 11 to 15
/// MiB, share of the flat copy past the caches for through them: f32 of 280 bytes .28 for .46, 1,200 .42 for .42,
/// 8,016 .55 for .38; u16 600 .28 for .37, 2,000 .36 for .38, 5,000 .42 for .35; u8 300 .38 for .32.
const SHORT: usize = 2 << 10;
/// Rows of fewer lines than this are read as they lie.
const LEAST_ALIGNED: usize = 8;
/// Targets of fewer lines than this are not worth going past the caches for: transposed, the same of units of several
/// bytes where they begin elsewhere in their lines, and deinterleaved. Zen 4, ms of 24 MB of 2, 8 and 16 bytes transposed
/// to targets of 272 bytes past the caches and through them: 5.7, 3.5, 5.0, 3.6, 3.7, 2.7; but on lines of 256 .9, 3.8.
const MIN_STREAMED: usize = 4;
const MIN_OFF_LINES: usize = 7;
const MIN_DEINTERLEAVED: usize = 64;
/// So few columns are deinterleaved though rows fill a lane; of units of 2 and 4 bytes more, if there are so many bytes
/// in the caches, or targets begin alike in their lines past them. Zen 4, GB/s of twelve deinterleaved and transposed:
/// 8 KB of 2 bytes 11, 15, of 4 bytes 14, 19, 512 KB 30, 26, 33, 30; 64 KB of 8 bytes 24, 33, of 16 27, 32; 24 MB of 4 bytes
/// 5, 14, on their lines 14, 13.
const FEW: usize = 6;
const LEAST_HELD: usize = if LOW_THRESHOLDS { 1 << 10 } else { 48 << 10 };
/// Zen 4, GB/s of columns of 16 bytes unit by unit, for others: 7 of 250 43 for 25, 20 of 60 36 for 28, 6 of 200 40 for
/// 22; but 8 of 300, 37 KiB, 21 for 32.
const HELD_FIRST: usize = if LOW_THRESHOLDS { 1 << 10 } else { 32 << 10 };
/// So many matrices that are alike are looked at as one: what they have in common is found out once for all.
pub(super) const LEAST_AGAIN: usize = 8;
/// Rows further apart are not deinterleaved: that asks for what lies between them, and may read 16 bytes
/// of it. So near the next row, those are on a page of ours.
const MAX_STEP: usize = 256;

impl Columns<'_> {
    /// Whether there are loops for units of so many bytes.
    pub(super) fn turns(unit: usize) -> bool {
        Kernels::transposes(unit)
    }

    /// Whether they are so few, and close enough, to be deinterleaved, with as many matrices like it, past the caches
    /// or not.
    pub(super) fn are_deinterleaved(&self, planes: Axis, tuning: Tuning) -> bool {
        let is_past = tuning.transposed.is_some();
        let &Self { step, rows, unit, count, .. } = self;
        let is_large = rows * count * unit >= LEAST_HELD;
        // What fills lanes is mostly transposed as quickly, and units that do one by one.
        let are_few = match count {
            _ if count * unit < LANE => true,
            _ if count <= FEW => is_past || count <= MOST_OF_BLOCKS || !self.are_units(tuning),
            ..=MAX_DEINTERLEAVED => match unit {
                2 | 4 if is_past => self.rows_to_line().is_some(),
                2 | 4 => is_large,
                _ => {
                    let is_large = is_large || !tuning.kernels.by_second;
                    unit > 1 && is_large && !is_past && self.conflicts()
                }
            },
            _ => false,
        };
        // Fewer rows are worth it if they make lines, and are not far from each other.
        let least = match planes.extent {
            ..LEAST_AGAIN => 2 * LINE,
            _ if self.go_on(planes) => LANE,
            _ => LINE,
        };
        let are_close = rows * unit >= least && step <= 2 * count * unit;
        are_few && (1..=MAX_STEP).contains(&step) && (rows >= LINE || are_close)
    }

    /// Whether the rows, of short units, of each of many matrices like it go on behind those of the one before.
    pub(super) fn go_on(&self, planes: Axis) -> bool {
        let is_short = self.unit < LANE && planes.extent >= LEAST_AGAIN;
        is_short && planes.from == signed(self.rows.wrapping_mul(self.step))
    }

    /// Copies them, past the caches or not. Does not wait for stores past the caches.
    ///
    /// # Safety
    /// All rows must be readable and all targets writable; they do not overlap.
    pub(super) unsafe fn copy(&self, tuning: Tuning) {
        if self.are_interleaved(tuning) {
            // SAFETY: the caller's promise.
            return unsafe { self.interleave(Axis::ONE, tuning) };
        }
        let is_deinterleaved = self.are_deinterleaved(Axis::ONE, tuning);
        if !is_deinterleaved && self.are_units(tuning) && tuning.transposed.is_none() {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_units(tuning) };
        }
        let tuning =
            if self.are_long(is_deinterleaved, tuning) { tuning } else { tuning.through_caches() };
        // SAFETY: the caller's promise.
        unsafe {
            if is_deinterleaved {
                self.deinterleave(Axis::ONE, tuning, null_mut());
            } else {
                self.transpose(tuning);
            }
        }
    }

    /// Whether units are as long as lanes, and so few that the first-level cache holds them for all columns.
    fn are_units(&self, tuning: Tuning) -> bool {
        let &Self { rows, unit, count, .. } = self;
        unit >= LANE && rows * count * unit <= HELD_FIRST && tuning.kernels.by_second
    }

    /// Copies them unit by unit, one column after the other.
    ///
    /// # Safety
    /// As [`Columns::copy`].
    unsafe fn copy_units(&self, tuning: Tuning) {
        let &Self { mut source, step, rows, unit, .. } = self;
        let inner = Axis { extent: rows, from: signed(step), to: signed(unit) };
        self.targets.each(&mut |Targets { first, apart, count }: Targets| {
            let outer = Axis { extent: count, from: signed(unit), to: signed(apart) };
            if let Some(target) = first {
                let block = Block { unit, axes: [outer, inner] };
                // SAFETY: the caller's promise.
                unsafe { block.copy((source, target), Axis::ONE, tuning.kernels) };
            }
            source = source.wrapping_add(count * unit);
            true
        });
    }

    /// Whether targets are worth going past the caches for.
    pub(super) fn are_long(&self, is_deinterleaved: bool, tuning: Tuning) -> bool {
        let bytes = self.rows * self.unit;
        let least = if is_deinterleaved { MIN_DEINTERLEAVED } else { MIN_STREAMED };
        // Where it decides something: to ask many targets took a tenth to a quarter of the time of short columns.
        let is_enough =
            self.unit == 1 || bytes >= MIN_OFF_LINES * LINE || tuning.transposed.is_none();
        bytes >= least * LINE && (is_enough || self.rows_to_line().is_some())
    }

    /// Transposes the rows.
    ///
    /// # Safety
    /// As [`Columns::copy`].
    unsafe fn transpose(&self, tuning: Tuning) {
        let &Self { mut source, step, rows, unit, count, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(targets) = &self.all_apart() {
                return Columns { source, step, rows, unit, count, targets }
                    .transpose_parts(tuning);
            }
            let are_many = cfg!(feature = "avx512") && tuning.transposed.is_none();
            if !are_many || !self.are_many_each() {
                return self.transpose_parts(tuning);
            }
            self.targets.each(&mut |targets: Targets| {
                let Targets { first, count, .. } = targets;
                if first.is_some() {
                    let targets = &targets;
                    Columns { source, step, rows, unit, count, targets }.transpose_parts(tuning);
                }
                source = source.wrapping_add(count * unit);
                true
            });
        }
    }

    /// Whether what is told at a time are so many that each are worth their own way through the rows.
    fn are_many_each(&self) -> bool {
        let mut are_many = true;
        self.targets.each(&mut |Targets { first, count, .. }: Targets| {
            are_many = first.is_none() || count >= MOST;
            are_many
        });
        are_many
    }

    /// # Safety
    /// As [`Columns::copy`].
    unsafe fn transpose_parts(&self, tuning: Tuning) {
        let &Self { rows, unit, .. } = self;
        let through = tuning.through_caches();
        // Short units have registers take part of a line of each row at a time. Zen 5, share of the flat copy straight
        // from rows a multiple of 4,096 bytes apart for by turns: u8 .16 for .38, u16 .35 for .53.
        let meet = self.conflicts() || (unit <= 2 && is_near(self.step, CLOSE));
        let head = if meet || tuning.transposed.is_some() { self.rows_to_line() } else { Some(0) };
        // Where targets begin elsewhere in their lines, and the caches would do, short columns are no gain.
        let is_short = unit > 1 && rows * unit < SHORT;
        let tuning = if head.is_none() && is_short { tuning.for_others() } else { tuning };
        let meet = meet || tuning.transposed.is_some();
        // What does not meet in the caches, or is less than a line of columns, is taken straight from the source,
        // unless it goes past the caches.
        let is_straight = !meet || self.count * unit < LINE;
        let transpose_rows = match scratch(unit) {
            _ if is_straight && tuning.transposed.is_none() => Self::with_scratch::<0>,
            LARGE => Self::with_scratch::<LARGE>,
            _ => Self::with_scratch::<SMALLER>,
        };
        // SAFETY: the caller's promise.
        unsafe {
            let Some(head) = head else {
                return transpose_rows(self, 0..rows, Axis::ONE, meet, tuning);
            };
            if head > 0 {
                // No fewer than make a line, or they are taken unit by unit: some of them are stored twice.
                let line = div(LINE, unit);
                transpose_rows(self, 0..head.max(line).min(rows), Axis::ONE, false, through);
            }
            // Of larger matrices, what is more than one run is best read row by row, which is what CPUs are ahead of.
            let is_small = self.count <= MOST || self.count * rows * unit <= SMALL;
            let block = if is_small { rows } else { div(BLOCK, unit) };
            for rows in math::parts(head..rows, block) {
                transpose_rows(self, rows, Axis::ONE, meet, tuning);
            }
        }
    }

    /// Whether the targets' lines meet in a few sets of the caches.
    #[inline(never)] // as below
    pub(super) fn conflicts(&self) -> bool {
        let (mut before, mut pitch) = (None, 0);
        self.targets.each(&mut |Targets { first, apart, count }: Targets| {
            let Some(first) = first.map(|first| first as usize) else { return true };
            pitch = match before {
                Some(before) => first.wrapping_sub(before),
                None if count > 1 => apart,
                None => 0,
            };
            before.replace(first).is_none() && count == 1
        });
        pitch.is_multiple_of(CONFLICT) || is_near(pitch, NEAR.min(NEAR_UNITS * self.unit))
    }

    /// Transposes some rows, and of as many matrices like it, with as much of the stack as their units need.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    #[inline(never)]
    pub(super) unsafe fn with_scratch<const SCRATCH: usize>(
        &self,
        rows: Range<usize>,
        planes: Axis,
        conflicts: bool,
        tuning: Tuning,
    ) {
        let mut scratch = Scratch::<SCRATCH>::NEW;
        // SAFETY: the caller's promise.
        unsafe { self.transpose_rows(rows, planes, conflicts, tuning, scratch.as_mut_ptr()) };
    }

    /// Transposes some rows, and of as many matrices like it.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them; the scratch must be that of units of so many bytes and so many
    /// lines.
    #[inline(never)]
    unsafe fn transpose_rows(
        &self,
        rows: Range<usize>,
        planes: Axis,
        conflicts: bool,
        tuning: Tuning,
        scratch: *mut u8,
    ) {
        let &Self { step, unit: width, count, .. } = self;
        let is_held = tuning.kernels.by_second && rows.len() * count * width <= HELD;
        let conflicts = conflicts && !(is_held && width >= 4 && tuning.transposed.is_none());
        let source = self.source.wrapping_add(step.wrapping_mul(rows.start));
        let below = source.wrapping_add(step.wrapping_mul(rows.len()));
        let turn = |column: usize, columns: usize, targets: &[*mut u8], apart: usize| {
            let source = source.wrapping_add(column * width);
            let end = column + columns;
            let matrix = Transpose {
                source,
                step,
                rows: rows.len(),
                width,
                columns,
                targets,
                apart,
                // Those of the first columns tell where the others are.
                at: apart.wrapping_mul(column).wrapping_add(rows.start * width),
                follows: if end < self.count {
                    source.wrapping_add(columns * width)
                } else {
                    below
                },
                non_temporal: tuning.transposed,
                conflicts,
                by_second: tuning.kernels.by_second,
                scratch,
            };
            // SAFETY: the caller's promise.
            unsafe { transpose_planes(matrix, planes, tuning) };
        };
        // Long units that conflict have their turns with all targets told.
        let told = if conflicts && width >= 8 { None } else { self.are_apart() };
        let head = self.columns_to_line();
        let Some((first, apart)) = told else {
            return self.each_run::<MOST>(head, |(column, targets)| {
                turn(column, targets.len(), targets, 0);
            });
        };
        let mut targets = [null_mut(); LINE];
        let len = self.count.min(div(LINE, width));
        let targets = targets.get_mut(..len).unwrap_or_default();
        let mut further = 0usize;
        for slot in &mut *targets {
            *slot = first.wrapping_add(further);
            // Or compilers write it out for more than there ever are.
            further = opaque(further.wrapping_add(apart));
        }
        if head > 0 {
            turn(0, len, targets, apart); // some of them twice
        }
        let is_cut = tuning.transposed.is_some() && !tuning.kernels.by_second;
        let most = if is_cut { MOST } else { self.count };
        for columns in math::parts(head..self.count, most) {
            turn(columns.start, columns.len(), targets, apart);
        }
    }

    /// The first column whose units begin a line in all rows.
    fn columns_to_line(&self) -> usize {
        let &Self { source, step, unit, count, .. } = self;
        let missing = (source as usize).wrapping_neg() % LINE;
        let (columns, rest) = div_rem(missing, unit);
        let is_worth = step.is_multiple_of(LINE) && count * unit >= LEAST_ALIGNED * LINE;
        if is_worth && rest == 0 {
            columns
        } else {
            0
        }
    }

    /// The first target and how far it is to the next one, if all are given at once.
    fn are_apart(&self) -> Option<(*mut u8, usize)> {
        let mut all = None;
        self.targets.each(&mut |Targets { first, apart, count }: Targets| {
            all = first.filter(|_| count == self.count).map(|first| (first, apart));
            false
        });
        all
    }

    /// All columns' targets, if they are equally far from one another.
    fn all_apart(&self) -> Option<Targets> {
        let mut so_far: Option<Targets> = None;
        let mut are_apart = true;
        let mut is_next = |Targets { first, apart: further, count }: Targets| {
            let Some(begin) = first else { return false };
            let Some(Targets { first: Some(first), apart, count: before }) = &mut so_far else {
                so_far = Some(Targets { first, apart: further, count });
                return true;
            };
            if *before == 1 {
                *apart = (begin as usize).wrapping_sub(*first as usize);
            }
            let next = first.wrapping_add(apart.wrapping_mul(*before));
            *before += count;
            begin == next && (count == 1 || further == *apart)
        };
        self.targets.each(&mut |targets: Targets| {
            are_apart = is_next(targets);
            are_apart
        });
        so_far.filter(|_| are_apart)
    }

    /// The first row whose units begin a line of their targets, if it is the same for all.
    #[inline(never)] // once in the library
    pub(super) fn rows_to_line(&self) -> Option<usize> {
        let (mut all, mut are_alike) = (None, true);
        self.targets.each(&mut |Targets { first, apart, count }: Targets| {
            let Some(first) = first else { return true };
            let missing = (first as usize).wrapping_neg() % LINE;
            let is_same = all.is_none_or(|other| other == missing);
            are_alike = is_same && (count <= 1 || apart.is_multiple_of(LINE));
            all = Some(missing);
            are_alike
        });
        if !are_alike {
            return None;
        }
        let (rows, rest) = div_rem(all?, self.unit);
        (rest == 0).then_some(rows)
    }

    /// Visits the wanted targets, up to `N` neighbours at a time, with the number of the first; those before
    /// a column for themselves.
    #[inline(never)] // which takes some of the stack
    pub(super) fn each_run<const N: usize>(
        &self,
        head: usize,
        mut visit: impl FnMut((usize, &mut [*mut u8])),
    ) {
        self.each_run_in(head, &mut [null_mut(); N], &mut visit);
    }

    #[inline(never)] // once in the library
    fn each_run_in(
        &self,
        head: usize,
        run: &mut [*mut u8],
        visit: &mut dyn for<'r> Visit<(usize, &'r mut [*mut u8])>,
    ) {
        let (mut column, mut len) = (0, 0);
        let mut visit = |run: &mut [*mut u8], end: usize, len: usize| match run.get_mut(..len) {
            None | Some([]) => {}
            Some(targets) => visit.visit((end - len, targets)),
        };
        self.targets.each(&mut |Targets { first, apart, count }: Targets| {
            let Some(mut target) = first else {
                visit(run, column, len);
                (column, len) = (column + count, 0);
                return true;
            };
            let end = column + count;
            while column < end {
                let room = run.get_mut(len..).unwrap_or_default().iter_mut();
                let most = if column < head { head.min(end) } else { end };
                for slot in room.take(most - column) {
                    *slot = target;
                    target = target.wrapping_add(apart);
                    (column, len) = (column + 1, len + 1);
                }
                if len == run.len() || column == head {
                    visit(run, column, len);
                    len = 0;
                }
            }
            true
        });
        visit(run, column, len);
    }
}

/// Whether lines so far apart, or every other one of them, are in one set of the caches, or no more bytes from it.
fn is_near(pitch: usize, near: usize) -> bool {
    let is_near = |pitch: usize| pitch.wrapping_add(near) % SAME_SET <= 2 * near;
    is_near(pitch) || is_near(pitch.wrapping_mul(2))
}

/// Transposes as many matrices like it.
///
/// # Safety
/// As [`Columns::copy`], of all of them; the scratch must be that of units of so many bytes and so many lines.
#[inline(never)] // once in the library
unsafe fn transpose_planes(mut matrix: Transpose<'_>, planes: Axis, tuning: Tuning) {
    for _ in 0..planes.extent {
        // SAFETY: the caller's promise.
        unsafe { tuning.kernels.transpose(&matrix) };
        matrix.source = matrix.source.wrapping_offset(planes.from);
        matrix.follows = matrix.follows.wrapping_offset(planes.from);
        matrix.at = matrix.at.wrapping_add_signed(planes.to);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{
        Columns, Targets, Tuning, LEAST_ALIGNED, LINE, MAX_DEINTERLEAVED, MIN_DEINTERLEAVED, MOST,
        SAME_SET,
    };
    use crate::copy::kernel::interleave::MAX_INTERLEAVED;

    const BYTES: usize = 1 << 20;

    /// Where the targets of a transpose begin: `apart` bytes from each other, a gap included.
    fn apart(len: usize, layout: usize) -> usize {
        match layout {
            0 => len,
            1 => len + 5,
            _ => len.next_multiple_of(LINE),
        }
    }

    /// Transposes at the very end, or the very begin, of memory that may be touched, at every
    /// level, past the caches or not; compared unit by unit, and gaps with what was there before.
    fn check(memory: &[Guarded; 2], unit: usize, rows: usize, columns: usize, variant: usize) {
        let [source, target] = memory;
        let (layout, at_end, backwards) =
            (variant % 3, (variant / 3).is_multiple_of(2), variant / 6 % 2 == 1);
        // Targets that go down, and rows that begin alike in their lines.
        let goes_down = variant / 12 % 2 == 1;
        let pitch = columns * unit + [0, 3, 64][variant % 7 % 3];
        let pitch = if goes_down { pitch.next_multiple_of(LINE) } else { pitch };
        let (len, apart) = (rows * unit, apart(rows * unit, layout));
        let first = source.place((rows - 1) * pitch + columns * unit, at_end);
        let out_bytes = (columns - 1) * apart + len;
        let out = target.place(out_bytes, at_end);
        let row_at =
            |row: usize| first.wrapping_add(pitch * if backwards { rows - 1 - row } else { row });
        let step = if backwards { pitch.wrapping_neg() } else { pitch };
        let mut expected = vec![0xEE; out_bytes];
        for column in 0..columns {
            for row in 0..rows {
                let from = row_at(row).wrapping_add(column * unit);
                // SAFETY: that many bytes are there.
                let from = unsafe { std::slice::from_raw_parts(from, unit) };
                let target = if goes_down { columns - 1 - column } else { column };
                expected[target * apart + row * unit..][..unit].copy_from_slice(from);
            }
        }
        let (first, further) = if goes_down {
            (out.wrapping_add((columns - 1) * apart), apart.wrapping_neg())
        } else {
            (out, apart)
        };
        let targets = Targets { first: Some(first), apart: further, count: columns };
        let (source, targets) = (row_at(0), &targets);
        let transpose = Columns { source, step, rows, unit, count: columns, targets };
        for tuning in Tuning::all() {
            // SAFETY: source and target have that many rows.
            let copied = unsafe {
                out.write_bytes(0xEE, out_bytes);
                transpose.copy(tuning);
                std::slice::from_raw_parts(out, out_bytes)
            };
            assert!(copied == expected, "{unit} B [{rows}, {columns}], variant {variant}");
        }
    }

    #[test]
    fn every_extent_up_to_70_each_way() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for rows in 1..=70 {
                for columns in 1..=70 {
                    check(&memory, unit, rows, columns, rows * 5 + columns);
                }
            }
        }
    }

    #[test]
    fn more_columns_than_at_a_time_and_many_lines_of_rows() {
        let memory = [Guarded::filled(2 * BYTES), Guarded::filled(2 * BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for rows in [1, 8 * LINE / unit, 5 * LINE / unit - 1, 9 * LINE / unit + 1] {
                for columns in [LINE + 1, MOST - 1, MOST, MOST + 1, 2 * MOST + 17] {
                    for variant in 0..24 {
                        check(&memory, unit, rows, columns, variant);
                    }
                }
            }
        }
    }

    /// In few sets of the caches, some lines behind those that are taken by turns, and some units behind these.
    #[test]
    fn lines_of_rows_and_some_more() {
        let memory = [Guarded::filled(2 * BYTES), Guarded::filled(2 * BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            let side = LINE / unit;
            for more in [1, side / 4, side / 2, side / 2 + 1] {
                for columns in [LINE + 1, 601] {
                    for variant in 0..24 {
                        check(&memory, unit, 7 * side + more, columns, variant);
                    }
                }
            }
        }
    }

    /// Each in the sets of the caches of the one before, but for a unit.
    #[test]
    fn targets_a_unit_from_a_page_apart() {
        let memory = [Guarded::filled(2 * BYTES), Guarded::filled(2 * BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for rows in [SAME_SET / unit - 1, SAME_SET / unit + 1] {
                for variant in 0..24 {
                    check(&memory, unit, rows, 2 * LINE + 17, variant);
                }
            }
        }
    }

    /// So many that those of one line of columns are not taken all at once.
    #[test]
    fn bytes_of_many_rows() {
        let memory = [Guarded::filled(8 * BYTES), Guarded::filled(8 * BYTES)];
        for rows in [128 * LINE - 1, 128 * LINE + 7] {
            for columns in [LINE + 17, LEAST_ALIGNED * LINE + 1] {
                for variant in 0..24 {
                    check(&memory, 1, rows, columns, variant);
                }
            }
        }
    }

    #[test]
    fn few_columns_of_many_rows() {
        let memory = [Guarded::filled(2 * BYTES), Guarded::filled(2 * BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for rows in
                [LINE, MIN_DEINTERLEAVED * LINE / unit, 3 * MIN_DEINTERLEAVED * LINE / unit + 7]
            {
                for columns in 1..=MAX_DEINTERLEAVED {
                    check(&memory, unit, rows, columns, rows * 5 + columns);
                }
            }
        }
    }

    /// Straight into the targets, and into wider rows.
    #[test]
    fn few_rows_of_many_columns() {
        let memory = [Guarded::filled(2 * BYTES), Guarded::filled(2 * BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for rows in 2..=MAX_INTERLEAVED {
                for columns in [LINE - 1, LINE, 1027, 3001] {
                    for variant in [rows + columns, rows + columns + 1, rows + columns + 2] {
                        check(&memory, unit, rows, columns, variant);
                    }
                }
            }
        }
    }
}
