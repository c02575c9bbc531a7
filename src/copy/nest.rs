//! The normal form of a piece: axes over units of bytes that are contiguous in the input and in the output.
//!
//! Axes of extent 1 are dropped, those that run backwards in the output are flipped, all are sorted by step in the
//! output, and neighbours that continue each other are joined, the innermost ones with the unit. The first two columns
//! of three of float32 [2,5,3], for example, packed on both sides:
//!
//! ```text
//! as given      2 (60 to 40), 5 (12 to 8), 2 (4 to 4) over units of 4 bytes      extent (from to)
//! joined        10 (12 to 8) over units of 8 bytes
//! ```

use super::vector::LINE_BYTES;
use crate::math::isize_of;
use crate::parts::{Part, Transfer};
use crate::shape::{usize_of, MAX_RANK};
use core::iter::once;
use core::mem::swap;
use core::ops::Range;

/// The extent of an axis, and bytes from one step to the next in the input and in the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Axis {
    pub extent: usize,
    pub from: isize,
    pub to: isize,
}

impl Axis {
    /// An axis with a single step, for what exists only once.
    pub(super) const ONE: Self = Self { extent: 1, from: 0, to: 0 };

    /// Fills in the addresses of the first steps in the output, at most as many as there are slots.
    pub(super) fn targets(&self, first: *mut u8, slots: &mut [*mut u8]) {
        let mut target = first;
        for slot in slots.iter_mut().take(self.extent) {
            *slot = target;
            target = target.wrapping_offset(self.to);
        }
    }

    /// Returns how many bytes further on a step begins in the input.
    #[inline(always)]
    pub(super) fn input_at(&self, step: usize) -> isize {
        self.from.wrapping_mul(step.cast_signed())
    }

    /// Returns how many bytes further on a step begins in the output.
    #[inline(always)]
    pub(super) fn output_at(&self, step: usize) -> isize {
        self.to.wrapping_mul(step.cast_signed())
    }
}

/// There is room for every axis of any tensor.
const MAX_AXES: usize = MAX_RANK;

/// A piece in normal form. The axes with the largest steps in the output come first.
///
/// All distances are in bytes; those of sub-byte elements, in elements.
pub(super) struct Nest {
    /// From the input's and from the output's element [0, …, 0] to the first unit.
    pub from: isize,
    pub to: isize,
    pub unit: usize,
    axes: [Axis; MAX_AXES],
    rank: usize,
}

impl Nest {
    /// A nest that is yet to be set up.
    pub(super) const EMPTY: Self =
        Self { from: 0, to: 0, unit: 0, axes: [Axis::ONE; MAX_AXES], rank: 0 };

    /// Becomes the normal form of a piece, in place because it is large. `step`, if given, is the split axis's step in
    /// the output.
    pub(super) fn set_up(&mut self, transfer: &Transfer<'_>, part: &Part, step: Option<isize>) {
        let geometry = &transfer.geometry;
        let size = isize_of(i64::from(geometry.dtype.bits() / 8)).max(1);
        (self.from, self.to, self.unit, self.rank) = (0, 0, size.unsigned_abs(), 0);
        let own = transfer.output_strides.get(part.index);
        let mut at = geometry.shape.len() - usize::from(!geometry.keeps_axis);
        let (mut packed, mut packed_to) = (size, size);
        for (axis, &whole) in geometry.shape.iter().enumerate().rev() {
            let is_split = axis == geometry.axis;
            let extent = usize_of(if is_split { part.len } else { whole });
            let is_kept = geometry.keeps_axis || !is_split;
            at -= usize::from(is_kept);
            let stride = transfer.strides.and_then(|strides| strides.get(axis));
            let from = stride.map_or(packed, |stride| isize_of(*stride).wrapping_mul(size));
            let stride = if is_kept { own.and_then(|own| own.get(at)) } else { None };
            let to = stride.map_or(packed_to, |stride| isize_of(*stride).wrapping_mul(size));
            let to = if is_split { step.unwrap_or(to) } else { to };
            if is_split {
                self.from = self.from.wrapping_add(from.wrapping_mul(isize_of(part.offset)));
            }
            packed = packed.wrapping_mul(usize_of(whole).cast_signed());
            packed_to = packed_to.wrapping_mul(extent.cast_signed());
            if extent > 1 {
                self.insert(Axis { extent, from, to });
            }
        }
        self.join_axes();
        self.join_unit();
        let steps = once(0).chain(self.axes().iter().rev().map(|axis| axis.to));
        debug_assert!(steps.is_sorted(), "a normal form whose axes are not sorted");
    }

    pub(super) fn axes(&self) -> &[Axis] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// Inserts an axis in the order of steps in the output, flipped if it runs backwards there.
    fn insert(&mut self, mut axis: Axis) {
        if axis.to < 0 {
            let last = axis.extent - 1;
            self.from = self.from.wrapping_add(axis.input_at(last));
            self.to = self.to.wrapping_add(axis.output_at(last));
            axis.from = axis.from.wrapping_neg();
            axis.to = axis.to.wrapping_neg();
        }
        self.push(axis);
        for end in (2..=self.rank).rev() {
            match self.axes.get_mut(..end) {
                Some([.., outer, inner]) if outer.to < inner.to => swap(outer, inner),
                _ => break,
            }
        }
    }

    /// Joins neighbouring axes that continue each other.
    fn join_axes(&mut self) {
        let count = self.rank;
        self.rank = 0;
        for at in 0..count {
            let axis = self.axes.get(at).copied().unwrap_or_default();
            let last = self.rank.checked_sub(1).and_then(|last| self.axes.get_mut(last));
            match last {
                Some(last)
                    if last.to == axis.output_at(axis.extent)
                        && last.from == axis.input_at(axis.extent) =>
                {
                    *last = Axis { extent: last.extent * axis.extent, ..axis };
                }
                _ => self.push(axis),
            }
        }
    }

    /// Joins the innermost axes with the unit, as long as they continue it on both sides.
    fn join_unit(&mut self) {
        while let Some(last) = self.axes().last().copied() {
            let unit = self.unit.cast_signed();
            if last.from != unit || last.to != unit {
                break;
            }
            self.unit *= last.extent;
            self.rank -= 1;
        }
    }

    /// Adds an axis inside all others.
    pub(super) fn push(&mut self, axis: Axis) {
        debug_assert!(self.rank < MAX_AXES, "no room for another axis");
        if let Some(slot) = self.axes.get_mut(self.rank) {
            *slot = axis;
            self.rank += 1;
        }
    }

    /// Removes an axis; returns `None` if there is none with this number.
    pub(super) fn remove(&mut self, at: usize) -> Option<Axis> {
        let axis = self.axes().get(at).copied()?;
        self.axes.copy_within(at + 1..self.rank, at);
        self.rank -= 1;
        Some(axis)
    }

    /// Removes the innermost axis.
    pub(super) fn pop(&mut self) -> Option<Axis> {
        self.remove(self.rank.checked_sub(1)?)
    }

    /// Moves the axes along which lines of the input are shared inside all others, and returns how many there are.
    pub(super) fn order_by_lines(&mut self) -> usize {
        let (mut at, mut shared) = (0, 0);
        while at + shared < self.rank {
            let from = self.axes.get(at).map_or(0, |axis| axis.from);
            if from == 0 || from.unsigned_abs() >= LINE_BYTES {
                at += 1;
            } else if let Some(axis) = self.remove(at) {
                self.push(axis);
                shared += 1;
            }
        }
        shared
    }

    /// Calls `visit` for each combination of steps, with its distances from the input's and from the output's start.
    #[inline(always)]
    pub(super) fn each(&self, mut visit: impl FnMut(isize, isize)) {
        let mut steps = [0usize; MAX_AXES];
        let (mut from, mut to) = (self.from, self.to);
        let mut is_done = false;
        while !is_done {
            visit(from, to);
            is_done = true;
            for (axis, step) in self.axes().iter().zip(&mut steps).rev() {
                *step += 1;
                if *step < axis.extent {
                    from = from.wrapping_add(axis.from);
                    to = to.wrapping_add(axis.to);
                    is_done = false;
                    break;
                }
                *step = 0;
                from = from.wrapping_sub(axis.input_at(axis.extent - 1));
                to = to.wrapping_sub(axis.output_at(axis.extent - 1));
            }
        }
    }

    /// Returns where a combined step of all axes begins in the input.
    pub(super) fn input_at(&self, mut step: usize) -> isize {
        let mut from = self.from;
        for axis in self.axes().iter().rev() {
            let extent = axis.extent.max(1);
            from = from.wrapping_add(axis.input_at(step % extent));
            step /= extent;
        }
        from
    }

    /// Returns the product of the unit and all extents: the bytes of the piece.
    pub(super) fn total(&self) -> usize {
        self.axes().iter().fold(self.unit, |total, axis| total * axis.extent)
    }

    /// Returns whether no two units lie over each other in the output: as `shape::colliding` does for elements, but of
    /// addresses, which wrap around.
    pub(super) fn is_apart(&self) -> bool {
        let end = self.axes().iter().rev().try_fold(self.unit, |end, axis| {
            let to = axis.to.unsigned_abs();
            let last = to.checked_mul(axis.extent - 1)?;
            last.checked_add(end).filter(|_| end <= to)
        });
        end.is_some()
    }

    /// Restricts an axis to some of its steps.
    pub(super) fn restrict(&mut self, at: usize, steps: Range<usize>) {
        debug_assert!(at < self.rank, "axis {at} of {}", self.rank);
        if let Some(axis) = self.axes.get_mut(at) {
            debug_assert!(steps.end <= axis.extent, "{steps:?} of {}", axis.extent);
            self.from = self.from.wrapping_add(axis.input_at(steps.start));
            self.to = self.to.wrapping_add(axis.output_at(steps.start));
            axis.extent = steps.len();
        }
    }
}
