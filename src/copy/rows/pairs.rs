//! Equal short runs of many pieces, through the caches: to two of them at a time.
//!
//! The idea: on Zen 5 two streams of stores take the time of one; from three on, those that cross a line
//! take twice as long. So few rows at a time are gone through once for each two pieces.

use super::super::kernel::combine::LINE;
use super::super::kernel::MAX_DEINTERLEAVED;
use super::{Nest, BLOCK_PAST};
use crate::math;
use crate::parts::{Part, Parts};
use core::ops::Range;

/// Rows at a time, at the most: the lines of these that two pieces are in stay in the first-level cache.
const ROWS: usize = 256;
/// Shorter runs do better by permutes, and longer ones than half a line all at a time, if they are no more
/// than this.
const LEAST: usize = 9;
const MOST_AT_A_TIME: usize = 24;

impl Nest<'_> {
    /// Copies what all pieces have in a range of rows, if they are many, alike, and their runs short; whether
    /// they were.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    pub(super) unsafe fn copy_pairs(&self, parts: &Parts<'_>, rows: &Range<usize>) -> bool {
        let block = &self.block;
        let Some(pair) = block.tuning.kernels.pair.filter(|_| self.is_one_block()) else {
            return false;
        };
        let Some(Part { len, .. }) = parts.iter().next() else { return false };
        let unit = block.bytes(len);
        let few = if unit > LINE / 2 { MOST_AT_A_TIME } else { MAX_DEINTERLEAVED };
        if block.tuning.non_temporal.is_some()
            || parts.count() <= few
            || !(LEAST..=LINE).contains(&unit)
            || !parts.iter().all(|part| part.len == len)
        {
            return false;
        }
        for some in math::parts(rows.clone(), block.rows_within(BLOCK_PAST).min(ROWS)) {
            let gather = |part: &Part| block.some_runs(&block.run(part), &some);
            let mut all = parts.iter();
            while let Some(first) = all.next() {
                let second = all.next().unwrap_or(first);
                // SAFETY: the caller's promise.
                unsafe { pair([gather(&first), gather(&second)], some.end == rows.end) };
            }
        }
        true
    }
}
