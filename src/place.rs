//! Where pieces lie in the input: what makes views of them.

#![allow(clippy::inline_always)] // on the way of every view

use crate::plan::{Geometry, Piece};
use crate::shape::{self, usize_of};
use crate::tensor::{byte_reach, Tensor};

/// An input as views see it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub has_elements: bool,
    /// The input's own strides, where it has such and elements that they matter to.
    pub strides: Option<&'a [i64]>,
    /// Elements from one step on the split axis to the next.
    step: i64,
    /// The lowest and the highest element of the first step, in elements from its first.
    reach: (i64, i64),
    bit_offset: i64,
}

/// A piece where it lies in the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// Bytes from the input's data to the piece's.
    pub ahead: isize,
    /// Bits from there to its first element, below 8.
    pub bit_offset: u32,
    /// Bytes from the lowest to the highest that it touches.
    pub bytes: usize,
}

impl<'a> Place<'a> {
    /// Of an input whose layout has been checked.
    #[inline(always)]
    pub(crate) fn new(geometry: &Geometry<'a>, input: &Tensor<'a>) -> Self {
        let has_elements = geometry.elements > 0;
        // Strides of a tensor without elements say nothing: its views are packed.
        let strides = input.strides.filter(|_| has_elements);
        let (mut step, reach) = match strides {
            None if !has_elements => (0, (0, 0)),
            None => {
                let Geometry { outer, extent, inner, .. } = *geometry;
                (inner, (0, (outer - 1) * extent * inner + inner - 1))
            }
            Some(strides) => {
                let dims = geometry.output_shape(1).zip(geometry.output_strides(strides));
                // Within that of the whole input, which was checked.
                let step = strides.get(geometry.axis).copied().unwrap_or(0);
                (step, shape::reach(dims).unwrap_or_default())
            }
        };
        // The stride of an extent-1 axis may be anything, and only an empty piece follows it.
        if geometry.extent == 1 {
            step = 0;
        }
        Self { has_elements, strides, step, reach, bit_offset: input.bit_offset.into() }
    }

    /// Whether a piece of `len` steps lies in the input as a packed tensor would.
    #[inline(always)]
    pub(crate) fn is_packed(&self, geometry: &Geometry<'_>, len: i64) -> bool {
        if !self.has_elements || len == 0 {
            return true;
        }
        match self.strides {
            None => geometry.outer == 1 || len == geometry.extent,
            Some(strides) => {
                let strides = geometry.output_strides(strides);
                shape::is_packed(geometry.output_shape(len).rev().zip(strides.rev()))
            }
        }
    }

    /// Where a piece lies.
    #[inline(always)]
    pub(crate) fn of(&self, geometry: &Geometry<'_>, piece: Piece) -> View {
        if !self.has_elements {
            return View { ahead: 0, bit_offset: 0, bytes: 0 };
        }
        let bits = geometry.dtype.bits();
        let begin = piece.offset.wrapping_mul(self.step);
        let (ahead, bit_offset) = if bits >= 8 {
            (begin.wrapping_mul(i64::from(bits / 8)), 0)
        } else {
            let begin = begin.wrapping_mul(bits.into()).wrapping_add(self.bit_offset);
            (begin >> 3, begin & 7)
        };
        let mut bytes = 0;
        if piece.len > 0 {
            // Within the input's reach, which was checked.
            let last = (piece.len - 1).wrapping_mul(self.step);
            let (low, high) = self.reach;
            let (low, high) = (low.wrapping_add(last.min(0)), high.wrapping_add(last.max(0)));
            bytes = byte_reach(low, high, bits, bit_offset).map_or(0, |reach| reach.bytes);
        }
        View {
            ahead: isize::try_from(ahead).unwrap_or(0),
            bit_offset: u32::try_from(bit_offset).unwrap_or(0),
            bytes: usize_of(bytes),
        }
    }
}
