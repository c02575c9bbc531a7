//! The canonical form of any piece of whole bytes: units of contiguous bytes, and axes over them.

use super::kernel::lines::LINE;
use super::kernel::steps::{self as kernel, Row};
use super::{signed, usize_of};
use crate::memory::Memory;
use crate::plan::{Piece, Plan};
use crate::shape::MAX_RANK;
use core::ops::Range;

/// One axis of a copy: how many steps, and how far each goes in the input and the output.
#[derive(Debug, Clone, Copy, Default)]
struct Axis {
    extent: usize,
    from: isize,
    to: isize,
}

/// A piece as `rank` axes over units of `unit` contiguous bytes. The output's steps are positive
/// and the axes sorted by them, outermost first; neighbours that continue each other are one.
pub(super) struct Layout {
    source: *const u8,
    target: *mut u8,
    unit: usize,
    axes: [Axis; MAX_RANK],
    rank: usize,
}

/// Units above this many bytes may be cut between tasks, at whole lines.
const CUT_ABOVE: usize = 4096;

impl Layout {
    /// The layout of a checked piece that has elements, of a type of whole bytes.
    pub(super) fn new(
        plan: &Plan<'_>,
        piece: Piece,
        input: &Memory<'_>,
        output: &Memory<'_>,
    ) -> Self {
        let size = plan.dtype.bits() as usize / 8;
        let mut layout = Self {
            source: input.data,
            target: output.data,
            unit: size,
            axes: [Axis::default(); MAX_RANK],
            rank: 0,
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
        let offset_by = |unit: usize| {
            let Odometer { from, to, .. } = Odometer::new(self.axes(), unit);
            (self.source.wrapping_offset(from), self.target.wrapping_offset(to))
        };
        // SAFETY: units below the end of the piece lie within it, and so do their bytes.
        unsafe {
            if first == last {
                if head < tail {
                    let (source, target) = offset_by(first);
                    kernel::copy_bytes(source.add(head), target.add(head), tail - head);
                }
                return;
            }
            if head > 0 {
                let (source, target) = offset_by(first);
                kernel::copy_bytes(source.add(head), target.add(head), self.unit - head);
            }
            self.copy_units(first + usize::from(head > 0)..last);
            if tail > 0 {
                let (source, target) = offset_by(last);
                kernel::copy_bytes(source, target, tail);
            }
        }
    }

    fn axes(&self) -> &[Axis] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// The unit and the byte in it where a part ends. Small units are not cut.
    fn cut(&self, byte: usize) -> (usize, usize) {
        let (unit, rest) = (byte / self.unit, byte % self.unit);
        (unit, if self.unit > CUT_ABOVE { rest - rest % LINE } else { 0 })
    }

    /// Copies a range of units, row by row of the innermost axis.
    ///
    /// # Safety
    /// As [`Layout::copy`].
    unsafe fn copy_units(&self, units: Range<usize>) {
        let (inner, outer) = match self.axes().split_last() {
            Some((inner, outer)) => (*inner, outer),
            None => (Axis { extent: 1, from: 0, to: 0 }, &[][..]),
        };
        let copy_row = kernel::choose(self.unit);
        let mut rows = Odometer::new(outer, units.start / inner.extent);
        let mut within = units.start % inner.extent;
        let mut left = units.len();
        while left > 0 {
            let count = (inner.extent - within).min(left);
            let ahead = signed(within);
            let row = Row {
                source: self.source.wrapping_offset(rows.from + inner.from * ahead),
                source_step: inner.from,
                target: self.target.wrapping_offset(rows.to + inner.to * ahead),
                target_step: inner.to,
                count,
                unit: self.unit,
            };
            // SAFETY: the row lies within the piece.
            unsafe { copy_row(row) };
            left -= count;
            within = 0;
            rows.advance();
        }
    }
}

/// Walks over axes in row-major order, without a division a step.
struct Odometer<'a> {
    axes: &'a [Axis],
    index: [usize; MAX_RANK],
    from: isize,
    to: isize,
}

impl<'a> Odometer<'a> {
    fn new(axes: &'a [Axis], mut position: usize) -> Self {
        let mut odometer = Self { axes, index: [0; MAX_RANK], from: 0, to: 0 };
        for (axis, index) in axes.iter().zip(&mut odometer.index).rev() {
            *index = position % axis.extent;
            position /= axis.extent;
            odometer.from += axis.from * signed(*index);
            odometer.to += axis.to * signed(*index);
        }
        odometer
    }

    /// On to the next position; from the last one to the first.
    fn advance(&mut self) {
        for (axis, index) in self.axes.iter().zip(&mut self.index).rev() {
            *index += 1;
            self.from = self.from.wrapping_add(axis.from);
            self.to = self.to.wrapping_add(axis.to);
            if *index < axis.extent {
                return;
            }
            *index = 0;
            self.from = self.from.wrapping_sub(axis.from.wrapping_mul(signed(axis.extent)));
            self.to = self.to.wrapping_sub(axis.to.wrapping_mul(signed(axis.extent)));
        }
    }
}

/// A tensor's own stride on an axis, in bytes.
fn stride(memory: &Memory<'_>, axis: usize, size: usize) -> Option<isize> {
    let stride = memory.strides?.get(axis).copied()?;
    // Only strides of extent-1 axes may be out of range, and those are not used.
    Some(isize::try_from(stride).unwrap_or(0).wrapping_mul(signed(size)))
}
