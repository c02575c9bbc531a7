//! Pieces that are alike, and each as far from the one before it, are one tensor that has an axis more: columns of
//! one matrix, or blocks of them. So it is plain that they are apart; and copied one after the other, each line of
//! the matrix would be fetched once for every one of them.

#![forbid(unsafe_code)]

use crate::error::number;
use crate::math::{div_rem_signed, gcd};
use crate::parts::{OutputStrides, Part, Parts, Transfer};
use crate::plan::Geometry;
use crate::shape::usize_of;
use core::ptr::null_mut;

/// The most axes: they take some of the stack.
const MOST_AXES: usize = 16;

/// All pieces of a packed input as one, with extents and strides of the matrix.
pub(crate) struct Stacked {
    part: [Part; 1],
    shape: [i64; MOST_AXES],
    strides: [i64; MOST_AXES],
    rank: usize,
}

impl Stacked {
    pub(crate) const NONE: Self = Self {
        part: [Part { index: 0, offset: 0, len: 0, target: null_mut() }],
        shape: [0; MOST_AXES],
        strides: [0; MOST_AXES],
        rank: 0,
    };

    /// Makes it the pieces of a transfer, if they are such, lie in each other's gaps, and are apart: in place, for
    /// it takes some of the stack.
    #[inline(never)] // once in the library
    pub(crate) fn stack(&mut self, transfer: &Transfer<'_>) -> Option<()> {
        let Transfer { geometry, output_strides, parts, strides: None, .. } = transfer else {
            return None;
        };
        let (count, first, second) = (parts.count(), transfer.part(0)?, transfer.part(1)?);
        let mut target = first.target as usize;
        let ahead = (second.target as usize).wrapping_sub(target);
        let size = i64::from(geometry.dtype.bits() / 8);
        let (step, rest) = div_rem_signed(ahead.cast_signed() as i64, size);
        let len = number(count);
        let are_all = first.len.saturating_mul(len) == geometry.extent;
        if rest != 0 || !are_all || !geometry.keeps_axis {
            return None;
        }
        let strides = output_strides.get(first.index)?;
        // All but the longer strides reach over less than a step, and all pieces over less than what divides those:
        // modulo that they are apart.
        let (mut covered, mut period, apart) = (0usize, 0, magnitude(step));
        let mut own = strides.iter();
        for (axis, &extent) in geometry.shape.iter().enumerate() {
            let mut extent = extent;
            if axis == geometry.axis {
                self.push(len, step)?;
                extent = first.len;
            }
            let stride = *own.next()?;
            self.push(extent, stride)?;
            let stride = magnitude(stride);
            if extent > 1 && stride > apart {
                period = gcd(stride, period);
            } else {
                // It lies within the address space.
                covered = covered.wrapping_add(stride.wrapping_mul(usize_of(extent - 1)));
            }
        }
        if covered >= apart || covered.saturating_add(apart.saturating_mul(count - 1)) >= period {
            return None;
        }
        for at in 1..count {
            let part = transfer.part(at)?;
            target = target.wrapping_add(ahead);
            let own = output_strides.get(part.index)?;
            // Not as slices: bcmp would have to be imported.
            if part.len != first.len || part.target as usize != target || !own.iter().eq(strides) {
                return None;
            }
        }
        self.part = [Part { index: 0, offset: 0, len, ..first }];
        Some(())
    }

    #[inline(never)] // once in the library
    fn push(&mut self, extent: i64, stride: i64) -> Option<()> {
        *self.shape.get_mut(self.rank)? = extent;
        *self.strides.get_mut(self.rank)? = stride;
        self.rank += 1;
        Some(())
    }

    /// The same transfer of one piece.
    pub(crate) fn transfer<'a>(&'a self, transfer: &Transfer<'a>) -> Transfer<'a> {
        let &Self { part: [Part { len, .. }], rank, .. } = self;
        let geometry = transfer.geometry;
        let inner = geometry.inner * div_rem_signed(geometry.extent, len).0;
        let shape = self.shape.get(..rank).unwrap_or_default();
        Transfer {
            geometry: Geometry { shape, extent: len, inner, ..geometry },
            parts: Parts::Listed(&self.part),
            output_strides: OutputStrides::Planned { strides: &self.strides, rank },
            ..*transfer
        }
    }
}

/// Elements, whichever way.
fn magnitude(steps: i64) -> usize {
    usize::try_from(steps.unsigned_abs()).unwrap_or(usize::MAX)
}
