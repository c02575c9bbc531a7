//! Matrices that are alike but for where they are: how one is copied is how all are.

use super::columns::{Columns, TakeTargets, Targets};
use super::kernel::combine::{Scratch, LINE};
use super::kernel::opaque::opaque;
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::{Axis, Block};
use super::kernel::{Kernels, LANE, MAX_DEINTERLEAVED};
use super::rows::Rows;
use super::tuning::Tuning;
use crate::math::{div, signed};
use core::ops::Range;
use core::ptr::null_mut;

/// So many lines in one set of the caches stay there.
const WAYS: usize = 8;
/// Larger matrices are each worth the way.
const LARGE: usize = if LOW_THRESHOLDS { 1 << 10 } else { 16 << 10 };
/// Columns of so many bytes, where rows fill a lane, are transposed rather than deinterleaved one matrix after the other.
/// Zen 4, 512 KiB, us for deinterleaved: u16 8x81 21 for 82, f32 8x49 20 for 85, f64 9x49 24 for
/// 61; but f32 5x196 28 for 22.
const TURNED: usize = 12 * LINE;
/// Of other rows, columns of so many bytes are deinterleaved of several matrices as one, to a scratch, which is worth
/// a copy. Zen 4, the same: u8 6x49 44 for 506, 8x81 41 for 134, 8x196 33 for 75; but f32 5x196 27 for 22.
/// Where caches do not hold all, half of that: u16 6x196 of 24 MiB 6.8 ms for 4.7, but 6x49 7.6 for 13.6.
const JOINED: usize = 7 * LINE;

/// Where caches do not hold all, smaller ones, of rows that fill a lane, are transposed. Zen 4, 12 MB of 8 bytes, ms for
/// interleaved: 5x16 .68 for 1.42, 5x49 .68 for .98, 8x33 .75 for 1.0.
const INTERLEAVED: usize = 4 << 10;

/// Bytes of the scratch of matrices that are deinterleaved as one.
const ROOM: usize = 12 << 10;

impl Columns<'_> {
    /// Copies the matrix as many times as an axis has steps, each as far from the one before as it says.
    /// Does not wait for stores past the caches.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    pub(super) unsafe fn copy_planes(&self, planes: Axis, tuning: Tuning) {
        let &Self { source, step, rows, unit, count, targets } = self;
        let Axis { extent, from, to } = planes;
        if extent == 1 {
            // SAFETY: the caller's promise.
            return unsafe { self.copy(tuning) };
        }
        let is_deinterleaved = self.are_deinterleaved(planes, tuning);
        let run = rows * unit;
        let is_one_loop = self.is_one_loop(tuning);
        let is_lane = unit < LANE && count * unit >= LANE && run <= TURNED;
        let is_transposed = (!is_deinterleaved || (is_lane && !is_one_loop))
            && (count <= WAYS || !self.conflicts());
        let joined = if tuning.transposed.is_none() { JOINED } else { JOINED / 2 };
        let are_small = count * run < LARGE;
        // Columns that are fewer than a square's are stored through the caches anyway.
        let is_through = tuning.transposed.is_none()
            || (!is_deinterleaved && count * unit < LINE)
            || !self.are_long(is_deinterleaved, tuning)
            || self.rows_to_line().is_none();
        let are_alike = are_small && is_through;
        let are_held = tuning.apart.is_none() || !tuning.kernels.by_second;
        let is_worth = are_held || run < LANE || count * run >= INTERLEAVED;
        if is_worth && !is_one_loop && self.are_interleaved(tuning) {
            // SAFETY: the caller's promise.
            return unsafe { self.interleave(planes, tuning) };
        }
        // SAFETY: the caller's promise.
        unsafe {
            let short = tuning.through_caches();
            if are_alike && is_transposed {
                self.with_scratch::<0>(0..rows, planes, false, short);
            } else if are_alike && is_deinterleaved {
                if is_one_loop || run > joined || !self.go_on(planes) {
                    self.deinterleave(planes, short, null_mut());
                } else {
                    self.deinterleave_joined(planes, short);
                }
            } else {
                for at in 0..extent {
                    let [ahead, further] = [from, to].map(|step| step.wrapping_mul(signed(at)));
                    let targets = &|visit: &mut TakeTargets<'_>| {
                        targets.each(&mut |column: Targets| {
                            let first = column.first.map(|first| first.wrapping_offset(further));
                            visit.visit(Targets { first, ..column })
                        });
                    };
                    let source = source.wrapping_offset(ahead);
                    Columns { source, step, rows, unit, count, targets }.copy(tuning);
                }
            }
        }
    }

    /// Whether one loop deinterleaves all of many matrices like it.
    pub(super) fn is_one_loop(&self, tuning: Tuning) -> bool {
        let &Self { step, rows, unit, count, .. } = self;
        let takes_blocks = tuning.kernels.takes_blocks(count, unit);
        takes_blocks && step <= count.max(3) * unit && rows * unit >= LINE
    }

    /// Deinterleaves the rows, and of as many matrices like it: each to its targets; or, if there is a scratch of
    /// [`ROOM`] bytes, several as one to that, and from there. Their rows must go on one behind the other then.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn deinterleave(&self, planes: Axis, tuning: Tuning, scratch: *mut u8) {
        self.each_run::<MAX_DEINTERLEAVED>(0, |(first, targets)| {
            let source = self.source.wrapping_add(first * self.unit);
            let (matrix, kernels, done) = (self, tuning.kernels, 0..0);
            let mut some = SomePlanes {
                matrix,
                source,
                planes,
                at_once: 1,
                columns: &[],
                targets,
                done,
                kernels,
            };
            let mut room = [null_mut(); MAX_DEINTERLEAVED];
            let (mut columns, mut blocks) = (&*targets, planes);
            if !scratch.is_null() {
                // An odd number of lines: a power of two would have all of them in a few sets of the caches.
                let apart = ((div(ROOM / LINE, targets.len()) - 1) | 1) * LINE;
                let mut further = 0;
                let room = room.get_mut(..targets.len()).unwrap_or_default();
                for column in &mut *room {
                    *column = scratch.wrapping_add(further);
                    further = opaque(further + apart);
                }
                some.at_once = div(apart, self.rows * self.unit);
                let room = &*room;
                (some.columns, columns, blocks) = (room, room, Axis::NONE);
            }
            // SAFETY: the caller's promise.
            unsafe {
                let next = &mut |at: usize| some.next(at);
                Rows::deinterleave_columns(self.step, self.unit, columns, blocks, tuning, next);
            }
        });
    }

    /// The same by way of a scratch.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    #[inline(never)] // which takes much of the stack
    unsafe fn deinterleave_joined(&self, planes: Axis, tuning: Tuning) {
        let mut scratch = Scratch::<ROOM>::NEW;
        // SAFETY: the caller's promise.
        unsafe { self.deinterleave(planes, tuning, scratch.as_mut_ptr()) };
    }
}

/// Matrices that are deinterleaved, so many at once.
struct SomePlanes<'a> {
    matrix: &'a Columns<'a>,
    source: *const u8,
    planes: Axis,
    at_once: usize,
    /// Where their columns are put first, if not to the targets.
    columns: &'a [*mut u8],
    targets: &'a [*mut u8],
    /// The last ones.
    done: Range<usize>,
    kernels: &'static Kernels,
}

impl SomePlanes<'_> {
    /// Takes the last ones from where their columns were put to the targets, and gives the next ones: where they
    /// begin, and how many rows they have. It is told how many there were, unless columns are put elsewhere.
    ///
    /// # Safety
    /// As [`Columns::deinterleave`].
    #[inline(never)] // once in the library
    unsafe fn next(&mut self, at: usize) -> Option<(*const u8, usize)> {
        let Self { matrix: &Columns { rows, unit, .. }, planes: Axis { extent, from, to }, .. } =
            *self;
        let ahead = |step: isize, at| step.wrapping_mul(signed(at));
        let Range { start, end } = self.done;
        let runs = Axis { extent: end - start, from: signed(rows * unit), to };
        let mut places = self.columns.iter().zip(self.targets).map(|(column, target)| {
            (column.cast_const(), target.wrapping_offset(ahead(to, start)))
        });
        let block = Block { unit: rows * unit, axes: [Axis::ONE, runs] };
        if !self.columns.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { block.copy_all(&mut || places.next(), self.kernels) };
        }
        let start = at.max(end);
        let end = extent.min(start + self.at_once);
        self.done = start..end;
        (start < end)
            .then(|| (self.source.wrapping_offset(ahead(from, start)), (end - start) * rows))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::super::tuning::Tuning;
    use super::{signed, Axis, Columns, Targets, JOINED, LANE, TURNED};

    const BYTES: usize = 1 << 18;

    /// Some matrices, at the very end or the very begin of memory that may be touched, at every level, past the
    /// caches or not; compared unit by unit, and gaps with what was there before.
    fn check(memory: &[Guarded; 2], unit: usize, rows: usize, count: usize, variant: usize) {
        let [source, target] = memory;
        let step = unit * [count, count + 1, 2 * count][variant % 3];
        let (planes, run) = (6 + variant % 7, rows * unit);
        let from = rows * step + [0, 0, 5][variant / 3 % 3];
        let apart = run + [0, 3][variant / 2 % 2];
        let to = count * apart + [0, 7][variant / 4 % 2];
        let bytes = (planes - 1) * from + (rows - 1) * step + count * unit;
        let out_bytes = (planes - 1) * to + (count - 1) * apart + run;
        if bytes.max(out_bytes) > BYTES {
            return;
        }
        let at_end = variant.is_multiple_of(2);
        let first = source.place(bytes, at_end).cast_const();
        let out = target.place(out_bytes, at_end);
        let mut expected = vec![0xEE; out_bytes];
        for (plane, column) in (0..planes).flat_map(|plane| (0..count).map(move |at| (plane, at))) {
            for row in 0..rows {
                let from = first.wrapping_add(plane * from + row * step + column * unit);
                // SAFETY: that many bytes are there.
                let from = unsafe { std::slice::from_raw_parts(from, unit) };
                expected[plane * to + column * apart + row * unit..][..unit].copy_from_slice(from);
            }
        }
        let targets = &Targets { first: Some(out), apart, count };
        let matrix = Columns { source: first, step, rows, unit, count, targets };
        let all = Axis { extent: planes, from: signed(from), to: signed(to) };
        for tuning in Tuning::all() {
            // SAFETY: source and target have that many matrices.
            let copied = unsafe {
                out.write_bytes(0xEE, out_bytes);
                matrix.copy_planes(all, tuning);
                tuning.finish();
                std::slice::from_raw_parts(out, out_bytes)
            };
            assert!(copied == expected, "{planes} × {unit} B [{rows}, {count}], {variant}");
        }
    }

    /// Of so few rows and columns that they are transposed, interleaved, deinterleaved as one or each for itself.
    #[test]
    fn many_small_matrices() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            let runs = [LANE, 49, 64, 81, 130, JOINED, TURNED].map(|bytes| bytes.div_ceil(unit));
            let runs = runs.into_iter().flat_map(|rows| [rows, rows + 1]);
            for rows in runs.chain([2, 3, 5, 7]) {
                for count in (1..=18).chain([33, 65, 130]) {
                    for variant in [0, rows + count, rows + 7 * count] {
                        check(&memory, unit, rows, count, variant);
                    }
                }
            }
        }
    }
}
