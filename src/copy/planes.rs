//! Matrices that are alike but for where they are: how one is copied is how all are.

use super::columns::Columns;
use super::kernel::combine::{Scratch, LINE};
use super::kernel::opaque::opaque;
use super::kernel::strided::{Axis, Block};
use super::kernel::{Kernels, MAX_DEINTERLEAVED};
use super::plane::LANE;
use super::rows::Rows;
use super::tuning::Tuning;
use crate::math::{div, signed};
use core::ops::Range;
use core::ptr::null_mut;

/// The most columns that are turned at a time.
const MOST: usize = 64;
/// So many lines in one set of the caches stay there.
const WAYS: usize = 8;
/// Larger matrices are each worth the way.
const LARGE: usize = 16 << 10;
/// Columns of so many bytes, where rows fill a lane, are turned rather than deinterleaved one matrix after the other.
/// Zen 4, 512 KiB, us for deinterleaved: u16 8x81 21 for 82, f32 8x49 20 for 85, f64 9x49 24 for
/// 61; but f32 5x196 28 for 22.
const TURNED: usize = 12 * LINE;
/// Of other rows, columns of so many bytes are deinterleaved of several matrices as one, to a scratch, which is worth
/// a copy. Zen 4, the same: u8 6x49 44 for 506, 8x81 41 for 134, 8x196 33 for 75; but f32 5x196 27 for 22.
/// Where caches do not hold all, half of that: u16 6x196 of 24 MiB 6.8 ms for 4.7, but 6x49 7.6 for 13.6.
const JOINED: usize = 7 * LINE;

/// Bytes of the scratch of matrices that are deinterleaved as one.
const ROOM: usize = 12 << 10;

/// How matrices that are alike are copied.
enum Way {
    Turned,
    /// Each straight to its targets.
    Deinterleaved,
    /// Several as one, by way of a scratch.
    Joined,
    /// One by one.
    Each,
}

impl Columns<'_> {
    /// Copies the matrix as many times as an axis has steps, each as far from the one before as it says.
    /// Does not wait for stores past the caches.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    pub(super) unsafe fn copy_planes(&self, planes: Axis, tuning: Tuning) {
        let short = tuning.through_caches();
        // SAFETY: the caller's promise.
        unsafe {
            match self.way(planes, &tuning) {
                Way::Turned => self.with_scratch::<0>(0..self.rows, planes, false, short),
                Way::Deinterleaved => self.deinterleave(planes, short),
                Way::Joined => self.deinterleave_joined(planes, short),
                Way::Each => {
                    let (mut source, mut all) = (self.source, self.told());
                    for _ in 0..planes.extent {
                        Columns { source, targets: &all, ..*self }.copy(tuning);
                        source = source.wrapping_offset(planes.from);
                        all.further = all.further.wrapping_add(planes.to);
                    }
                }
            }
        }
    }

    fn way(&self, planes: Axis, tuning: &Tuning) -> Way {
        let &Self { step, rows, unit, count, .. } = self;
        let is_deinterleaved = self.are_deinterleaved(planes);
        let run = rows * unit;
        let are_small = planes.extent > 1 && count <= MOST && count * run < LARGE;
        let is_through = tuning.turned.is_none() || !self.are_long(is_deinterleaved);
        if !are_small || !is_through || self.are_interleaved(*tuning) {
            return Way::Each;
        }
        let is_one_loop =
            tuning.kernels.takes_blocks(count, unit) && step <= count.max(3) * unit && run >= LINE;
        let is_lane = unit < LANE && count * unit >= LANE && run <= TURNED;
        let is_turned = !is_deinterleaved || (is_lane && !is_one_loop);
        let joined = if tuning.turned.is_none() { JOINED } else { JOINED / 2 };
        match is_deinterleaved {
            _ if is_turned && (count <= WAYS || !self.conflicts()) => Way::Turned,
            true if is_one_loop || run > joined || !self.go_on(planes) => Way::Deinterleaved,
            true => Way::Joined,
            false => Way::Each,
        }
    }

    /// Deinterleaves the rows, and of as many matrices like it.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn deinterleave(&self, planes: Axis, tuning: Tuning) {
        let &Self { step, unit, rows, .. } = self;
        self.each_run::<MAX_DEINTERLEAVED>(0, |first, targets| {
            let mut some = SomePlanes {
                source: self.source.wrapping_add(first * unit),
                rows,
                planes,
                at_once: 1,
                done: 0..0,
            };
            let next = &mut |at| some.next(at);
            // SAFETY: the caller's promise.
            unsafe { Rows::deinterleave_columns(step, unit, targets, planes, tuning, next) };
        });
    }

    /// The same of several as one to a scratch, and from there. Rows must go on one behind the other.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    #[inline(never)] // which takes much of the stack
    unsafe fn deinterleave_joined(&self, planes: Axis, tuning: Tuning) {
        let &Self { step, unit, rows, .. } = self;
        let mut scratch = Scratch::<ROOM>::NEW;
        let scratch = scratch.as_mut_ptr();
        self.each_run::<MAX_DEINTERLEAVED>(0, |first, targets| {
            // An odd number of lines: a power of two would have all of them in a few sets of the caches.
            let apart = ((div(ROOM / LINE, targets.len()) - 1) | 1) * LINE;
            let mut columns = [null_mut(); MAX_DEINTERLEAVED];
            let columns = columns.get_mut(..targets.len()).unwrap_or_default();
            let mut further = 0;
            for column in &mut *columns {
                *column = scratch.wrapping_add(further);
                further = opaque(further + apart);
            }
            let columns = &*columns;
            let mut some = SomePlanes {
                source: self.source.wrapping_add(first * unit),
                rows,
                planes,
                at_once: div(apart, rows * unit),
                done: 0..0,
            };
            // SAFETY: the caller's promise; the scratch has room for so many at once.
            unsafe {
                let next = &mut |_| {
                    some.finish(columns, targets, rows * unit, tuning.kernels);
                    some.next(0)
                };
                Rows::deinterleave_columns(step, unit, columns, Axis::NONE, tuning, next);
            }
        });
    }
}

/// Matrices that are deinterleaved, so many at once.
struct SomePlanes {
    source: *const u8,
    rows: usize,
    planes: Axis,
    at_once: usize,
    /// The last ones.
    done: Range<usize>,
}

impl SomePlanes {
    /// Where the next ones begin, and how many rows they have; it is told how many there were, or 0.
    #[inline(never)] // as below
    fn next(&mut self, at: usize) -> Option<(*const u8, usize)> {
        let start = at.max(self.done.end);
        self.done = start..self.planes.extent.min(start + self.at_once);
        let source = self.source.wrapping_offset(self.planes.from.wrapping_mul(signed(start)));
        (!self.done.is_empty()).then(|| (source, self.done.len() * self.rows))
    }

    /// Takes the last ones from where their columns were put, runs of so many bytes, to the targets.
    ///
    /// # Safety
    /// As [`Columns::deinterleave_joined`].
    #[inline(never)] // or it is in the library twice, as the shims of closures are
    unsafe fn finish(
        &self,
        columns: &[*mut u8],
        targets: &[*mut u8],
        unit: usize,
        kernels: &Kernels,
    ) {
        let Axis { to, .. } = self.planes;
        let runs = Axis { extent: self.done.len(), from: signed(unit), to };
        let further = to.wrapping_mul(signed(self.done.start));
        let mut places = columns
            .iter()
            .zip(targets)
            .map(|(column, target)| (column.cast_const(), target.wrapping_offset(further)));
        let block = Block { unit, axes: [Axis::ONE, runs] };
        // SAFETY: the caller's promise.
        unsafe { block.copy_all(&mut || places.next(), kernels) };
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::columns::Targets;
    use super::super::guarded::Guarded;
    use super::super::tuning::Tuning;
    use super::{signed, Axis, Columns, JOINED, LANE, TURNED};

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
        let targets = &Targets { skipped: 0, first: out, apart, count }.only();
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

    /// Of so few rows and columns that they are turned, deinterleaved as one or each for itself.
    #[test]
    fn many_small_matrices() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            let runs = [LANE, 49, 64, 81, 130, JOINED, TURNED].map(|bytes| bytes.div_ceil(unit));
            for rows in runs.into_iter().flat_map(|rows| [rows, rows + 1]) {
                for count in 1..=18 {
                    for variant in [0, rows + count, rows + 7 * count] {
                        check(&memory, unit, rows, count, variant);
                    }
                }
            }
        }
    }
}
