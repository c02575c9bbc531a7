//! The normal form of a piece: axes over units of bytes that are contiguous in the input and in the output.
//!
//! Axes of extent 1 are dropped, those that run backwards in the output are flipped, all are sorted by step in the
//! output, and neighbours that continue each other are joined, the innermost ones with the unit.

use super::vector::LINE_BYTES;
use crate::math::isize_of;
use crate::parts::{Part, Transfer};
use crate::shape::usize_of;

/// The extent of an axis, and bytes from one step to the next in the input and in the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Axis {
    pub extent: usize,
    pub from: isize,
    pub to: isize,
}

impl Axis {
    /// The axis of what there is only once.
    pub(super) const ONE: Self = Self { extent: 1, from: 0, to: 0 };

    /// Fills in the addresses of the first steps in the output, at most as many as there are.
    pub(super) fn targets(&self, first: *mut u8, slots: &mut [*mut u8]) {
        let mut target = first;
        for slot in slots.iter_mut().take(self.extent) {
            *slot = target;
            target = target.wrapping_offset(self.to);
        }
    }
}

/// The most axes: no address space has room for more axes of extent 2 and above.
const MAX_AXES: usize = 48;

/// A piece in normal form. The axes with the largest steps in the output come first.
#[derive(Clone)]
pub(super) struct Nest {
    pub source: *const u8,
    pub target: *mut u8,
    pub unit: usize,
    axes: [Axis; MAX_AXES],
    rank: usize,
}

impl Nest {
    pub(super) const NONE: Self = Self {
        source: core::ptr::null(),
        target: core::ptr::null_mut(),
        unit: 0,
        axes: [Axis { extent: 0, from: 0, to: 0 }; MAX_AXES],
        rank: 0,
    };

    pub(super) fn axes(&self) -> &[Axis] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// Sets this to the normal form of a piece. `step`, if given, is the split axis's step in the output. Elements that
    /// share bytes are counted in place of bytes.
    #[inline(never)]
    pub(super) fn make(&mut self, transfer: &Transfer<'_>, part: &Part, step: Option<isize>) {
        let geometry = &transfer.geometry;
        let size = isize_of(i64::from(geometry.dtype.bits() / 8)).max(1);
        (self.source, self.target) = (transfer.source, part.target);
        (self.unit, self.rank) = (size.unsigned_abs(), 0);
        let own = transfer.output_strides.get(part.index);
        let mut at = geometry.shape.len() - usize::from(!geometry.keeps_axis);
        let (mut packed, mut packed_to) = (size, size);
        for (axis, &whole) in geometry.shape.iter().enumerate().rev() {
            let is_split = axis == geometry.axis;
            let extent = usize_of(if is_split { part.len } else { whole });
            let has_own = geometry.keeps_axis || !is_split;
            at -= usize::from(has_own);
            let stride = transfer.strides.and_then(|strides| strides.get(axis));
            let from = stride.map_or(packed, |stride| isize_of(*stride).wrapping_mul(size));
            let stride = own.and_then(|own| own.get(at)).filter(|_| has_own);
            let to = stride.map_or(packed_to, |stride| isize_of(*stride).wrapping_mul(size));
            let to = step.filter(|_| is_split).unwrap_or(to);
            if is_split {
                self.source = self.source.wrapping_offset(from.wrapping_mul(isize_of(part.offset)));
            }
            packed = packed.wrapping_mul(usize_of(whole).cast_signed());
            packed_to = packed_to.wrapping_mul(extent.cast_signed());
            if extent > 1 {
                let axis = self.flipped(Axis { extent, from, to });
                self.insert(axis);
            }
        }
        self.join_axes();
        self.join_unit();
    }

    /// Flips an axis if it runs backwards in the output.
    fn flipped(&mut self, axis: Axis) -> Axis {
        if axis.to >= 0 {
            return axis;
        }
        let last = axis.extent.cast_signed() - 1;
        self.source = self.source.wrapping_offset(axis.from.wrapping_mul(last));
        self.target = self.target.wrapping_offset(axis.to.wrapping_mul(last));
        Axis { from: axis.from.wrapping_neg(), to: axis.to.wrapping_neg(), ..axis }
    }

    /// Inserts an axis in the order of steps in the output.
    pub(super) fn insert(&mut self, axis: Axis) {
        let mut at = self.rank;
        while let Some(before) = at.checked_sub(1).and_then(|at| self.axes.get(at)).copied() {
            if before.to >= axis.to {
                break;
            }
            if let Some(slot) = self.axes.get_mut(at) {
                *slot = before;
            }
            at -= 1;
        }
        if let Some(slot) = self.axes.get_mut(at) {
            *slot = axis;
            self.rank += 1;
        }
    }

    /// Joins neighbouring axes that continue each other.
    pub(super) fn join_axes(&mut self) {
        let count = self.rank;
        self.rank = 0;
        for at in 0..count {
            let axis = self.axes.get(at).copied().unwrap_or_default();
            let steps = axis.extent.cast_signed();
            let last = self.rank.checked_sub(1).and_then(|last| self.axes.get_mut(last));
            match last {
                Some(last)
                    if last.to == axis.to.wrapping_mul(steps)
                        && last.from == axis.from.wrapping_mul(steps) =>
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

    pub(super) fn push(&mut self, axis: Axis) {
        if let Some(slot) = self.axes.get_mut(self.rank) {
            *slot = axis;
            self.rank += 1;
        }
    }

    /// Removes an axis.
    pub(super) fn remove(&mut self, at: usize) -> Axis {
        let axis = self.axes.get(at).copied().unwrap_or_default();
        for at in at + 1..self.rank {
            let next = self.axes.get(at).copied().unwrap_or_default();
            if let Some(slot) = self.axes.get_mut(at - 1) {
                *slot = next;
            }
        }
        self.rank = self.rank.saturating_sub(1);
        axis
    }

    /// Removes the innermost axis.
    pub(super) fn pop(&mut self) -> Axis {
        self.remove(self.rank.saturating_sub(1))
    }

    /// Moves the axes along which lines of the input are shared inside all others, and returns how many there are.
    pub(super) fn order_by_lines(&mut self) -> usize {
        let (mut at, mut shared) = (0, 0);
        while at + shared < self.rank {
            let from = self.axes.get(at).map_or(0, |axis| axis.from);
            if from != 0 && from.unsigned_abs() < LINE_BYTES {
                let axis = self.remove(at);
                self.push(axis);
                shared += 1;
            } else {
                at += 1;
            }
        }
        shared
    }

    /// Calls `visit` for each combination of steps, with its addresses in the input and in the output.
    #[inline(always)]
    pub(super) fn each(&self, mut visit: impl FnMut(*const u8, *mut u8)) {
        let mut steps = [0usize; MAX_AXES];
        let (mut source, mut target) = (self.source, self.target);
        loop {
            visit(source, target);
            let mut at = self.rank;
            loop {
                let Some(outer) = at.checked_sub(1) else { return };
                at = outer;
                let (Some(axis), Some(step)) = (self.axes.get(at), steps.get_mut(at)) else {
                    return;
                };
                *step += 1;
                if *step < axis.extent {
                    source = source.wrapping_offset(axis.from);
                    target = target.wrapping_offset(axis.to);
                    break;
                }
                let back = axis.extent.cast_signed() - 1;
                *step = 0;
                source = source.wrapping_offset(axis.from.wrapping_mul(back).wrapping_neg());
                target = target.wrapping_offset(axis.to.wrapping_mul(back).wrapping_neg());
            }
        }
    }

    /// Returns where a combined step of all axes begins in the input.
    pub(super) fn source_at(&self, mut step: usize) -> *const u8 {
        let mut source = self.source;
        for axis in self.axes().iter().rev() {
            let extent = axis.extent.max(1);
            source = source.wrapping_offset(axis.from.wrapping_mul((step % extent).cast_signed()));
            step /= extent;
        }
        source
    }

    pub(super) fn bytes(&self) -> usize {
        self.axes().iter().fold(self.unit, |bytes, axis| bytes * axis.extent)
    }

    /// Restricts an axis to the steps from `begin` to `end`.
    pub(super) fn restrict(&mut self, at: usize, begin: usize, end: usize) {
        if let Some(axis) = self.axes.get_mut(at) {
            let first = begin.cast_signed();
            self.source = self.source.wrapping_offset(axis.from.wrapping_mul(first));
            self.target = self.target.wrapping_offset(axis.to.wrapping_mul(first));
            axis.extent = end - begin;
        }
    }
}
