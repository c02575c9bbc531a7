//! The canonical form of any piece of whole bytes: units of contiguous bytes, and axes over them.

use super::kernel::lines::LINE;
use super::region::{Axis, Region};
use super::rows::Tuning;
use super::{signed, usize_of};
use crate::memory::Memory;
use crate::plan::{Piece, Plan};
use crate::shape::MAX_RANK;
use core::ops::Range;

/// A piece as `rank` axes over units of `unit` contiguous bytes. The output's steps are positive
/// and the axes sorted by them, outermost first; neighbours that continue each other are one.
pub(super) struct Layout {
    source: *const u8,
    target: *mut u8,
    unit: usize,
    axes: [Axis; MAX_RANK],
    rank: usize,
    tuning: Tuning,
}

/// Units above this many bytes may be cut between tasks, at whole lines.
const CUT_ABOVE: usize = 4096;
/// Cuts may be so coarse that a piece has this many places for them.
const MIN_GRANULES: usize = 32;

impl Layout {
    /// The layout of a checked piece that has elements, of a type of whole bytes.
    pub(super) fn new(
        plan: &Plan<'_>,
        piece: Piece,
        input: &Memory<'_>,
        output: &Memory<'_>,
        tuning: Tuning,
    ) -> Self {
        let size = plan.dtype.bits() as usize / 8;
        let mut layout = Self {
            source: input.data,
            target: output.data,
            unit: size,
            axes: [Axis::default(); MAX_RANK],
            rank: 0,
            tuning,
        };
        // Innermost first, as packed strides are counted.
        let (mut packed_from, mut packed_to) = (signed(size), signed(size));
        let mut output_axis = output.shape.len();
        for (axis, &input_extent) in plan.shape.iter().enumerate().rev() {
            let is_split = axis == plan.axis;
            let extent = usize_of(if is_split { piece.len } else { input_extent });
            let from = stride(input, axis, size).unwrap_or(packed_from);
            let mut to = 0;
            if !is_split || plan.keeps_axis {
                output_axis -= 1;
                to = stride(output, output_axis, size).unwrap_or(packed_to);
            }
            if is_split && piece.offset > 0 {
                let ahead = signed(usize_of(piece.offset)).wrapping_mul(from);
                layout.source = layout.source.wrapping_offset(ahead);
            }
            packed_from = packed_from.wrapping_mul(signed(usize_of(input_extent)));
            packed_to = packed_to.wrapping_mul(signed(extent));
            if extent > 1 {
                layout.push(Axis { extent, from, to });
            }
        }
        layout.merge();
        layout
    }

    /// Adds an axis outside of those there, or further in if its step in the output is smaller.
    fn push(&mut self, mut axis: Axis) {
        if axis.to < 0 {
            // Walk it from the other end.
            let last = signed(axis.extent - 1);
            self.source = self.source.wrapping_offset(axis.from.wrapping_mul(last));
            self.target = self.target.wrapping_offset(axis.to.wrapping_mul(last));
            axis.from = axis.from.wrapping_neg();
            axis.to = axis.to.wrapping_neg();
        }
        // Innermost at the front until `merge` turns the order round.
        let mut at = self.rank;
        while let Some(inner) = at.checked_sub(1).and_then(|inner| self.axes.get(inner).copied()) {
            if inner.to <= axis.to {
                break;
            }
            self.set(at, inner);
            at -= 1;
        }
        self.set(at, axis);
        self.rank += 1;
    }

    fn set(&mut self, at: usize, axis: Axis) {
        if let Some(slot) = self.axes.get_mut(at) {
            *slot = axis;
        }
    }

    /// Joins axes that continue each other, and those that continue the unit with it.
    fn merge(&mut self) {
        let mut rank = 0usize;
        for at in 0..self.rank {
            let axis = self.axes.get(at).copied().unwrap_or_default();
            let continues = |extent: usize, from: isize, to: isize| {
                let extent = signed(extent);
                from.checked_mul(extent) == Some(axis.from)
                    && to.checked_mul(extent) == Some(axis.to)
            };
            let unit = signed(self.unit);
            match rank.checked_sub(1).and_then(|inner| self.axes.get_mut(inner)) {
                None if axis.from == unit && axis.to == unit => self.unit *= axis.extent,
                Some(inner) if continues(inner.extent, inner.from, inner.to) => {
                    inner.extent *= axis.extent;
                }
                _ => {
                    self.set(rank, axis);
                    rank += 1;
                }
            }
        }
        self.rank = rank;
        if let Some(axes) = self.axes.get_mut(..rank) {
            axes.reverse();
        }
    }

    /// Copies the bytes `part` of the piece, counted as if it were packed. Parts that share an
    /// end share no byte, whatever the end.
    ///
    /// # Safety
    /// The input must be readable and the output writable over the piece.
    pub(super) unsafe fn copy(&self, part: Range<usize>) {
        let (first, head) = self.cut(part.start);
        let (last, tail) = self.cut(part.end);
        let copy_within = |unit: usize, bytes: Range<usize>| {
            if bytes.is_empty() {
                return;
            }
            let (source, target) = self.at(unit);
            // SAFETY: units below the end of the piece lie within it, and so do their bytes.
            unsafe {
                (self.tuning.kernels.copy)(
                    source.add(bytes.start),
                    target.add(bytes.start),
                    bytes.len(),
                );
            }
        };
        if first == last {
            return copy_within(first, head..tail);
        }
        let mut begin = first;
        if head > 0 {
            copy_within(first, head..self.unit);
            begin += 1;
        }
        while begin < last {
            // SAFETY: the caller's promise.
            begin += unsafe { self.copy_region(begin..last) };
        }
        copy_within(last, 0..tail);
    }

    fn axes(&self) -> &[Axis] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// Where a unit lies in the input and the output.
    fn at(&self, mut unit: usize) -> (*const u8, *mut u8) {
        let (mut source, mut target) = (self.source, self.target);
        for axis in self.axes().iter().rev() {
            if unit == 0 {
                break;
            }
            let index = signed(unit % axis.extent);
            unit /= axis.extent;
            source = source.wrapping_offset(axis.from.wrapping_mul(index));
            target = target.wrapping_offset(axis.to.wrapping_mul(index));
        }
        (source, target)
    }

    /// The unit and the byte in it where a part ends. Small units are not cut, and of an axis so
    /// many steps are left together as make whole lines, where that leaves enough to cut at.
    fn cut(&self, byte: usize) -> (usize, usize) {
        let (unit, rest) = (byte / self.unit, byte % self.unit);
        if self.unit > CUT_ABOVE {
            return (unit, rest - rest % LINE);
        }
        let count: usize = self.axes().iter().map(|axis| axis.extent).product();
        if unit >= count {
            return (count, 0);
        }
        let mut step = count;
        for axis in self.axes() {
            step /= axis.extent;
            for granule in [step * (LINE / self.unit).max(1), step] {
                if granule <= count / MIN_GRANULES {
                    return (unit - unit % granule, 0);
                }
            }
        }
        (unit, 0)
    }

    /// Copies the largest region that a range of units begins with; gives the number of its units.
    ///
    /// # Safety
    /// As [`Layout::copy`].
    unsafe fn copy_region(&self, units: Range<usize>) -> usize {
        let mut step = 1;
        let mut outermost = self.rank.saturating_sub(1);
        // The outermost axis of which whole steps are wanted.
        for (at, axis) in self.axes().iter().enumerate().skip(1).rev() {
            let next = step * axis.extent;
            if units.start % next != 0 || units.len() < next {
                break;
            }
            (outermost, step) = (at - 1, next);
        }
        let (source, target) = self.at(units.start);
        let axes = self.axes().get(outermost..).unwrap_or_default();
        let mut region = Region { source, target, unit: self.unit, axes, count: 1 };
        if let Some(first) = axes.first() {
            let index = units.start / step % first.extent;
            region.count = (units.len() / step).min(first.extent - index);
        }
        // SAFETY: the caller's promise.
        unsafe { region.copy(self.tuning) };
        region.count * step
    }
}

/// A tensor's own stride on an axis, in bytes.
fn stride(memory: &Memory<'_>, axis: usize, size: usize) -> Option<isize> {
    let stride = memory.strides?.get(axis).copied()?;
    // Only strides of extent-1 axes may be out of range, and those are not used.
    Some(isize::try_from(stride).unwrap_or(0).wrapping_mul(signed(size)))
}
