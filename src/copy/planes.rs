//! Matrices that are alike but for where they are: how one is copied is how all are.

use super::columns::{Columns, Targets};
use super::kernel::strided::Axis;
use super::tuning::Tuning;
use crate::math::signed;

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
        if extent == 1 {
            // SAFETY: the caller's promise.
            return unsafe { self.copy(tuning) };
        }
        let are_small = count <= MOST && rows * count * unit < LARGE;
        let are_alike = are_small && tuning.scattered.is_none() && !self.are_interleaved(tuning);
        // SAFETY: the caller's promise.
        unsafe {
            if are_alike && self.are_deinterleaved() {
                self.deinterleave(planes, tuning);
            } else if are_alike && (count <= WAYS || !self.conflicts()) {
                self.with_scratch::<0>(0..rows, planes, false, tuning);
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
}
