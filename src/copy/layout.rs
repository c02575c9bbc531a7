//! What any piece of whole bytes is: units of contiguous bytes, and axes over them.

#![forbid(unsafe_code)]

use super::kernel::strided::{Axis, Place, Places};
use crate::math::{div_rem, signed};
use crate::parts::{Iter, Part, Transfer};
use crate::shape::usize_of;
use core::mem::MaybeUninit;

/// A piece as axes over units of `unit` contiguous bytes. The output's steps are positive
/// and the axes sorted by them, outermost first; neighbours that continue each other are one.
pub(super) struct Layout<'a> {
    /// Where the first unit lies.
    pub place: Place,
    pub unit: usize,
    /// From `first` on.
    pub axes: &'a mut [Axis],
    pub first: usize,
}

/// Most tensors have no more axes of more than one step.
pub(super) const FEW_AXES: usize = 8;

/// Parts that are looked at together.
const AT_ONCE: usize = 8;

/// Is given a layout, and the places of some parts that have it; says whether more are wanted.
pub(super) type Visit<'a> = dyn FnMut(&mut Layout<'_>, &mut Places<'_>) -> bool + 'a;

/// Visits parts, as long as more are wanted; whether these were all. There must be axes enough.
#[inline(never)] // once in the library
pub(super) fn each(
    transfer: &Transfer<'_>,
    mut parts: Iter<'_>,
    axes: &mut [Axis],
    visit: &mut Visit<'_>,
) -> bool {
    let &Transfer { ref geometry, strides, output_strides, .. } = transfer;
    let size = geometry.dtype.bits() as usize / 8;
    let packed = signed(usize_of(geometry.inner) * size);
    let step = stride(strides, geometry.axis, size).unwrap_or(packed);
    let mut room = [const { MaybeUninit::uninit() }; AT_ONCE];
    loop {
        let list = parts.list(&mut room);
        let mut rest = list;
        while let Some(first) = rest.first() {
            let is_like = |part: &&Part| {
                part.len == first.len && output_strides.are_alike(part.index, first.index)
            };
            let count = rest.iter().take_while(is_like).count();
            let mut alike = rest.iter().take(count);
            rest = rest.get(count..).unwrap_or_default();
            let mut layout = Layout::new(transfer, first, axes);
            let (source, target) = layout.place;
            let ahead = (target as usize).wrapping_sub(first.target as usize);
            let mut places = || {
                let part = alike.next()?;
                let steps = signed(usize_of(part.offset - first.offset));
                let source = source.wrapping_offset(steps.wrapping_mul(step));
                Some((source, part.target.wrapping_add(ahead)))
            };
            if !visit(&mut layout, &mut places) {
                return false;
            }
        }
        if list.len() < AT_ONCE {
            return true;
        }
    }
}

impl<'a> Layout<'a> {
    /// That of a checked piece that has elements, of a type of whole bytes; `axes` has room for all of
    /// more than one step.
    #[inline(never)] // once in the library
    pub(super) fn new(transfer: &Transfer<'_>, part: &Part, axes: &'a mut [Axis]) -> Self {
        let unit = transfer.geometry.dtype.bits() as usize / 8;
        let (place, first) = ((transfer.source, part.target), axes.len());
        let mut layout = Self { place, unit, axes, first };
        layout.fill(transfer, part);
        layout
    }

    /// Adds the axes.
    fn fill(&mut self, transfer: &Transfer<'_>, part: &Part) {
        let geometry = &transfer.geometry;
        let size = self.unit;
        // Innermost first, as packed strides are counted.
        let (mut packed_from, mut packed_to) = (signed(size), signed(size));
        let output = transfer.output_strides.get(part.index);
        let mut output_axis = geometry.output_rank();
        let mut are_sorted = true;
        for (axis, &input_extent) in geometry.shape.iter().enumerate().rev() {
            let is_split = axis == geometry.axis;
            let extent = usize_of(if is_split { part.len } else { input_extent });
            let from = stride(transfer.strides, axis, size).unwrap_or(packed_from);
            let mut to = 0;
            if !is_split || geometry.keeps_axis {
                output_axis -= 1;
                to = stride(output, output_axis, size).unwrap_or(packed_to);
            }
            if is_split {
                let ahead = signed(usize_of(part.offset)).wrapping_mul(from);
                self.place.0 = self.place.0.wrapping_offset(ahead);
            }
            packed_from = packed_from.wrapping_mul(signed(usize_of(input_extent)));
            packed_to = packed_to.wrapping_mul(signed(extent));
            if extent > 1 {
                are_sorted &= self.push(Axis { extent, from, to });
            }
        }
        if !are_sorted {
            self.merge();
        }
    }

    /// Adds an axis outside of those there, or further in if its step in the output is smaller. Whether
    /// it is outside.
    fn push(&mut self, mut axis: Axis) -> bool {
        if axis.to < 0 {
            // Walk it from the other end.
            let last = signed(axis.extent - 1);
            self.place = axis.moved(self.place, last);
            axis.from = axis.from.wrapping_neg();
            axis.to = axis.to.wrapping_neg();
        }
        let outermost = self.axes().first().copied();
        if outermost.is_none_or(|inner| inner.to <= axis.to) {
            self.append(axis);
            return true;
        }
        // Those further out move on.
        self.first = self.first.wrapping_sub(1);
        let mut at = self.first;
        while let Some(outer) = self.axes.get(at + 1).copied().filter(|next| next.to > axis.to) {
            self.set(at, outer);
            at += 1;
        }
        self.set(at, axis);
        false
    }

    /// Adds an axis outside of those there, or to what it continues: the outermost one, or the unit.
    fn append(&mut self, axis: Axis) {
        let unit = signed(self.unit);
        match self.axes.get_mut(self.first) {
            None if axis.from == unit && axis.to == unit => self.unit *= axis.extent,
            Some(inner) if inner.continues(&axis) => inner.extent *= axis.extent,
            _ => {
                self.first = self.first.wrapping_sub(1);
                self.set(self.first, axis);
            }
        }
    }

    fn set(&mut self, at: usize, axis: Axis) {
        if let Some(slot) = self.axes.get_mut(at) {
            *slot = axis;
        }
    }

    /// Joins axes that continue each other, and those that continue the unit with it.
    fn merge(&mut self) {
        let first = core::mem::replace(&mut self.first, self.axes.len());
        for at in (first..self.axes.len()).rev() {
            let axis = self.axes.get(at).copied().unwrap_or_default();
            self.append(axis);
        }
    }

    pub(super) fn axes(&self) -> &[Axis] {
        self.axes.get(self.first..).unwrap_or_default()
    }

    /// How many units there are.
    #[inline(never)] // once in the library
    pub(super) fn units(&self) -> usize {
        self.axes().iter().map(|axis| axis.extent).product()
    }

    /// Where a unit of a piece lies.
    #[inline(never)] // as above
    pub(super) fn at(&self, mut place: Place, mut unit: usize) -> Place {
        for axis in self.axes().iter().rev() {
            if unit == 0 {
                break;
            }
            let (rest, index) = div_rem(unit, axis.extent);
            unit = rest;
            place = axis.moved(place, signed(index));
        }
        place
    }

    pub(super) fn set_extent(&mut self, at: usize, extent: usize) {
        if let Some(axis) = self.axes.get_mut(self.first + at) {
            axis.extent = extent;
        }
    }
}

/// A tensor's own stride on an axis, in bytes.
pub(super) fn stride(strides: Option<&[i64]>, axis: usize, size: usize) -> Option<isize> {
    let stride = strides?.get(axis).copied()?;
    // Only strides of extent-1 axes may be out of range, and those are not used.
    Some(isize::try_from(stride).unwrap_or(0).wrapping_mul(signed(size)))
}
