//! Pieces whose outputs make one tensor: slices of it along the split axis, or such as are alike, and each as far from
//! the one before it, of one that has an axis more. So it is plain that they are apart; and copied one after the other,
//! each line of the tensor would be fetched once for every one of them.

#![cfg_attr(not(test), forbid(unsafe_code))]

use crate::math::div_rem_signed;
use crate::parts::{OutputStrides, Part, Parts, Transfer};
use crate::plan::Geometry;
use crate::shape::strides_nest;
use core::iter::once;
use core::ptr::null_mut;

/// The most pieces that are left, where some between them are not wanted, and the most axes: they take some of the
/// stack.
const MOST: usize = 3;
pub(crate) const MOST_AXES: usize = 12;

/// Pieces as slices of one tensor, in as few as they are without others between them.
pub(crate) struct Joined {
    parts: [Part; MOST],
    count: usize,
    /// So many steps of the split axis are one of the tensor's.
    unit: i64,
    /// Of the input with the tensor's axes.
    shape: [i64; MOST_AXES],
    /// The tensor's, in elements.
    strides: [i64; MOST_AXES],
    rank: usize,
}

impl Joined {
    pub(crate) const NONE: Self = Self {
        parts: [Part { index: 0, offset: 0, len: 0, target: null_mut() }; MOST],
        count: 0,
        unit: 1,
        shape: [0; MOST_AXES],
        strides: [0; MOST_AXES],
        rank: 0,
    };

    /// Makes it the pieces of a transfer, if their outputs make one tensor, and are apart; and whether they are fewer
    /// so. In place, for it takes some of the stack.
    #[inline(never)] // once in the library
    pub(crate) fn join(&mut self, transfer: &Transfer<'_>) -> Option<bool> {
        let Transfer { geometry, output_strides, strides: input, .. } = transfer;
        let mut parts = transfer.parts.iter();
        let (first, second) = (parts.next()?, parts.next()?);
        let strides = output_strides.get(first.index)?;
        let size = i64::from(geometry.dtype.bits() / 8);
        let (step, rest) = div_rem_signed(distance(&first, &second), size);
        // Slices, if the axis goes on from one to the next. A single step has no use for its stride, nor has an output
        // without the axis.
        let (along, uneven) = div_rem_signed(step, second.offset - first.offset);
        let own = if geometry.keeps_axis { strides.get(geometry.axis) } else { None };
        let are_slices = uneven == 0 && (first.len == 1 || own == Some(&along));
        let (step, along) = if are_slices { (along, along) } else { (step, *own?) };
        if rest != 0 || !(are_slices || input.is_none()) {
            return None;
        }
        self.unit = if are_slices { 1 } else { first.len };
        self.set_axes(geometry, strides, step)?;
        let axis = if geometry.keeps_axis { geometry.axis } else { usize::MAX };
        let (mut pieces, mut end) = (0, 0);
        for mut part in transfer.parts.iter() {
            let own = output_strides.get(part.index)?;
            let are_alike = own.iter().zip(strides).enumerate().all(|(at, (own, first))| {
                if at == axis {
                    part.len == 1 || *own == along
                } else {
                    own == first
                }
            });
            if self.unit > 1 {
                if part.len != self.unit || part.offset != end * self.unit {
                    return None;
                }
                (part.offset, part.len) = (end, 1);
            }
            let ahead = step.wrapping_mul(size).wrapping_mul(part.offset - first.offset);
            if !are_alike || distance(&first, &part) != ahead {
                return None;
            }
            end = part.offset + part.len;
            self.push(part);
            pieces += 1;
        }
        let extent = div_rem_signed(geometry.extent, self.unit);
        if !are_slices && extent != (end, 0) {
            return None;
        }
        // All as bytes, so that none is at another one's address for being too far away.
        *self.shape.get_mut(geometry.axis)? = end - first.offset;
        let dims = self.shape.iter().zip(&self.strides).take(self.rank);
        let bytes = dims.map(|(extent, stride)| (*extent, stride.wrapping_mul(size)));
        let are_apart = strides_nest(&once((size, 1)).chain(bytes));
        *self.shape.get_mut(geometry.axis)? = extent.0;
        are_apart.then_some(self.count < pieces && self.count <= MOST)
    }

    /// The input's axes and the tensor's, of which that with so many elements from one step to the next is the split one.
    #[inline(never)]
    fn set_axes(&mut self, geometry: &Geometry<'_>, strides: &[i64], step: i64) -> Option<()> {
        let mut own = strides.iter();
        for (axis, extent) in geometry.shape.iter().enumerate() {
            if axis != geometry.axis {
                self.push_axis(*extent, *own.next()?)?;
                continue;
            }
            self.push_axis(*extent, step)?;
            let own = if geometry.keeps_axis { own.next() } else { None };
            if self.unit > 1 {
                self.push_axis(self.unit, *own?)?;
            }
        }
        Some(())
    }

    fn push_axis(&mut self, extent: i64, stride: i64) -> Option<()> {
        *self.shape.get_mut(self.rank)? = extent;
        *self.strides.get_mut(self.rank)? = stride;
        self.rank += 1;
        Some(())
    }

    /// Adds a piece, to the last one if nothing is between them; beyond [`MOST`] they are but counted.
    fn push(&mut self, part: Part) {
        let last = self.count.checked_sub(1).and_then(|last| self.parts.get_mut(last));
        if let Some(last) = last.filter(|last| last.offset + last.len == part.offset) {
            last.len += part.len;
            return;
        }
        if let Some(slot) = self.parts.get_mut(self.count) {
            *slot = Part { index: 0, ..part };
        }
        self.count += 1;
    }

    /// The same transfer of fewer pieces.
    pub(crate) fn transfer<'a>(&'a self, transfer: &Transfer<'a>) -> Transfer<'a> {
        let &Self { rank, unit, .. } = self;
        let geometry = transfer.geometry;
        let (extent, inner) = (div_rem_signed(geometry.extent, unit).0, geometry.inner * unit);
        let shape = self.shape.get(..rank).unwrap_or_default();
        Transfer {
            geometry: Geometry { shape, extent, inner, keeps_axis: true, ..geometry },
            parts: Parts::Listed(self.parts.get(..self.count).unwrap_or_default()),
            output_strides: OutputStrides::Planned { strides: &self.strides, rank },
            ..*transfer
        }
    }
}

/// Bytes from the begin of an output to that of another.
fn distance(from: &Part, to: &Part) -> i64 {
    (to.target as usize).wrapping_sub(from.target as usize).cast_signed() as i64
}

