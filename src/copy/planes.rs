//! Matrices that are alike but for where they are: how one is copied is how all are.

use super::columns::{Columns, Targets};
use super::kernel::transpose::{Scratch, Transpose};
use super::kernel::MAX_DEINTERLEAVED;
use super::region::Axis;
use super::rows::Rows;
use super::tuning::Tuning;
use super::{signed, wrapped};

/// The most columns that are turned at a time.
const MOST: usize = 64;
/// So many lines in one set of the caches stay there.
const WAYS: usize = 8;
/// Larger matrices are each worth the way.
const LARGE: usize = 16 << 10;

impl Columns<'_> {
    /// Copies the matrix as many times as an axis has steps, each as far from the one before as it says.
    /// Does not wait for stores past the caches.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them.
    pub(super) unsafe fn copy_planes(&self, planes: Axis, tuning: Tuning) {
        let &Self { source, step, rows, unit, count, targets } = self;
        let Axis { extent, from, to } = planes;
        let are_small = extent > 1 && count <= MOST && rows * count * unit < LARGE;
        let are_alike = are_small && tuning.scattered.is_none() && !self.are_interleaved(tuning);
        // SAFETY: the caller's promise.
        unsafe {
            if are_alike && self.are_deinterleaved() {
                self.deinterleave_planes(planes, tuning);
            } else if are_alike && (count <= WAYS || !self.conflicts()) {
                self.turn_planes(planes, tuning);
            } else {
                for at in 0..extent {
                    let [ahead, further] = [from, to].map(|step| step.wrapping_mul(signed(at)));
                    let targets = &|visit: &mut dyn FnMut(Targets) -> bool| {
                        targets(&mut |column| {
                            let first = column.first.map(|first| first.wrapping_offset(further));
                            visit(Targets { first, ..column })
                        });
                    };
                    let source = source.wrapping_offset(ahead);
                    Columns { source, step, rows, unit, count, targets }.copy(tuning);
                }
            }
        }
    }

    /// # Safety
    /// As [`Columns::copy_planes`].
    #[inline(never)] // which takes some of the stack
    unsafe fn deinterleave_planes(&self, planes: Axis, tuning: Tuning) {
        let &Self { source, step, rows, unit, .. } = self;
        self.each_run::<MAX_DEINTERLEAVED>(0, |first, targets| {
            let mut left = planes.extent;
            let mut place = source.wrapping_add(first * unit);
            let mut next = || {
                left = left.checked_sub(1)?;
                let first = place;
                place = place.wrapping_offset(planes.from);
                Some((first, rows))
            };
            let to = wrapped(planes.to);
            // SAFETY: the caller's promise.
            unsafe { Rows::deinterleave_columns(step, unit, targets, to, tuning, &mut next) };
        });
    }

    /// # Safety
    /// As [`Columns::copy_planes`].
    #[inline(never)] // as above
    unsafe fn turn_planes(&self, planes: Axis, tuning: Tuning) {
        let &Self { source, step, rows, unit: width, .. } = self;
        let mut scratch = Scratch::<0>::NEW;
        let scratch = (&raw mut scratch).cast();
        self.each_run::<MOST>(0, |column, targets| {
            let mut source = source.wrapping_add(column * width);
            for _ in 0..planes.extent {
                let follows = source.wrapping_offset(planes.from);
                let (non_temporal, conflicts) = (None, false);
                // SAFETY: the caller's promise.
                unsafe {
                    tuning.kernels.transpose(&Transpose {
                        source,
                        step,
                        rows,
                        width,
                        targets,
                        follows,
                        non_temporal,
                        conflicts,
                        scratch,
                    });
                }
                source = follows;
                for target in &mut *targets {
                    *target = target.wrapping_offset(planes.to);
                }
            }
        });
    }
}
