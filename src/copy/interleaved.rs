//! Few rows become columns: they are interleaved, straight into outputs that are no wider, and by way of
//! the first-level cache into wider ones, whose other columns are not ours to write.

use super::columns::{Columns, Targets};
use super::kernel::combine::LINE;
use super::kernel::interleave::{Interleave, MAX_INTERLEAVED};
use super::kernel::strided::{self, Row};
use super::signed;
use super::tuning::Tuning;
use core::mem::MaybeUninit;

/// Bytes on the way into wider rows.
const SCRATCH: usize = 2048;
/// Outputs of fewer lines than this are not worth going past the caches for.
const MIN_STREAMED: usize = 64;

impl<T: Iterator<Item = Targets> + Clone> Columns<T> {
    /// Whether the rows are so few, and long enough, to be interleaved.
    pub(super) fn are_interleaved(&self, tuning: Tuning) -> bool {
        let &Self { rows, unit, count, .. } = self;
        (2..=MAX_INTERLEAVED).contains(&rows)
            && count >= LINE
            && Columns::turns(unit)
            && (tuning.kernels.interleave)(rows, unit).is_some()
    }

    /// Interleaves the rows, past the caches or not.
    ///
    /// # Safety
    /// As [`Columns::copy`]; [`Columns::are_interleaved`] must say so.
    pub(super) unsafe fn interleave(&self, tuning: Tuning) {
        let &Self { source, step, rows, unit, .. } = self;
        let mut column = 0;
        self.targets.clone().for_each(|Targets { first, apart, count }| {
            let source = source.wrapping_add(column * unit);
            column += count;
            let Some(target) = first else { return };
            let streams = Interleave { source, apart: step, len: rows, unit, count, target };
            // SAFETY: the caller's promise.
            unsafe {
                if apart == rows * unit {
                    let is_long = count * apart >= MIN_STREAMED * LINE;
                    let past = tuning.scattered.filter(|_| is_long);
                    streams.run(tuning.kernels, past.map(|_| tuning.prefetch));
                    // Nobody else has a store to wait for.
                    if let Some(past) = past.filter(|_| tuning.non_temporal.is_none()) {
                        (past.fence)();
                    }
                } else {
                    into_wider_rows(streams, apart, tuning);
                }
            }
        });
    }
}

/// Interleaves into rows that begin `apart` bytes (backwards: wrapped) from each other.
///
/// # Safety
/// As [`Interleave::run`].
#[inline(never)] // which takes some of the stack
unsafe fn into_wider_rows(mut streams: Interleave, apart: usize, tuning: Tuning) {
    let mut scratch = [const { MaybeUninit::<u8>::uninit() }; SCRATCH];
    let scratch = scratch.as_mut_ptr().cast::<u8>();
    let (mut target, mut left) = (streams.target, streams.count);
    let row = streams.len * streams.unit;
    let most = SCRATCH.checked_div(row).unwrap_or(1);
    while left > 0 {
        let count = left.min(most);
        let some = Interleave { count, target: scratch, ..streams };
        let target_step = signed(apart);
        let rows = Row {
            source: scratch,
            source_step: signed(row),
            target,
            target_step,
            count,
            unit: row,
        };
        // SAFETY: the caller's promise; scratch has room for so many rows.
        unsafe {
            some.run(tuning.kernels, None);
            strided::copy(tuning.kernels, rows);
        }
        streams.source = streams.source.wrapping_add(count * streams.unit);
        target = target.wrapping_add(apart.wrapping_mul(count));
        left -= count;
    }
}
