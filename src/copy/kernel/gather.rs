//! Units that are put one behind the other: what a piece has of many rows.

use super::combine::LINE;
use super::{Kernels, Stream};
use crate::math::div_rem;
use core::ops::Range;

/// `count` units of `unit` bytes, each `step` from the one before, to be put one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Gather {
    pub source: *const u8,
    pub step: usize,
    pub target: *mut u8,
    pub count: usize,
    pub unit: usize,
}

impl Gather {
    /// What is left after so many units.
    pub(super) fn after(self, units: usize) -> Self {
        Self {
            source: self.source.wrapping_add(units * self.step),
            target: self.target.wrapping_add(units * self.unit),
            count: self.count - units,
            ..self
        }
    }

    /// Bytes from the target to the line at or before `byte`, or to the target's end where `byte`
    /// is that.
    pub(crate) fn line_before(&self, byte: usize) -> usize {
        if byte == self.count * self.unit {
            byte
        } else {
            self.line_floor(byte)
        }
    }

    /// The same, to the line at or before it in any case, and to the one at or after it.
    pub(crate) fn line_floor(&self, byte: usize) -> usize {
        byte.saturating_sub((self.target as usize).wrapping_add(byte) % LINE)
    }

    pub(crate) fn line_after(&self, byte: usize) -> usize {
        byte + (self.target as usize).wrapping_add(byte).wrapping_neg() % LINE
    }

    /// What it gives from a byte on.
    pub(crate) fn stream(&self, byte: usize) -> Stream {
        let (run, within) = div_rem(byte, self.unit);
        Stream {
            source: self.source.wrapping_add(run * self.step + within),
            left: self.unit - within,
            unit: self.unit,
            gap: self.step - self.unit,
            target: self.target.wrapping_add(byte),
            turn: 0,
            due: 0,
        }
    }

    /// Copies the bytes `range` of what it gives, run by run.
    ///
    /// # Safety
    /// As [`Kernels::gather`].
    #[inline(never)] // once in the library
    pub(crate) unsafe fn copy_range(&self, kernels: &Kernels, range: Range<usize>) {
        let Self { source, step, target, unit, .. } = *self;
        let (first, mut within) = div_rem(range.start, unit);
        let mut source = source.wrapping_add(first * step);
        let mut at = range.start;
        while at < range.end {
            let bytes = (unit - within).min(range.end - at);
            // SAFETY: the caller's promise.
            unsafe { (kernels.copy)(source.add(within), target.add(at), bytes) };
            source = source.wrapping_add(step);
            within = 0;
            at += bytes;
        }
    }
}
