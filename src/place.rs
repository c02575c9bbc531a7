//! Where pieces lie in the input, for views.

#![forbid(unsafe_code)]

use crate::geometry::Geometry;
use crate::shape;
use crate::tensor::Tensor;

/// The layout of an input, for views of its pieces. Distances are counted in units: bytes, or bits of sub-byte types.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub has_elements: bool,
    /// The strides of the input, if it has strides, and elements for which they matter.
    pub strides: Option<&'a [i64]>,
    /// From one step along the split axis to the next.
    step: i64,
    /// Where the first step begins and ends, relative to its first element.
    low: i64,
    end: i64,
    /// Where the input's first element begins.
    begin: i64,
    /// Units to bytes.
    shift: u32,
}

/// Where a piece lies in the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    /// Bytes from the input's data to the piece's.
    pub ahead: isize,
    /// Bits from there to its first element, below 8.
    pub bit_offset: u32,
    /// Bytes from the lowest to the highest that it touches.
    pub bytes: usize,
}

impl<'a> Place<'a> {
    /// Describes an input whose layout has been checked.
    pub(crate) fn new(geometry: &Geometry<'a>, input: &Tensor<'a>) -> Self {
        let has_elements = geometry.elements > 0;
        // Strides of a tensor without elements mean nothing, so its views are packed.
        let strides = input.strides.filter(|_| has_elements);
        let (mut step, (low, high)) = match strides {
            None if !has_elements => (0, (0, -1)),
            None => {
                let Geometry { outer, extent, inner, .. } = *geometry;
                (inner, (0, (outer - 1) * extent * inner + inner - 1))
            }
            Some(strides) => {
                let dims = geometry.output_shape(1).zip(geometry.output_strides(strides));
                let step = strides.get(geometry.axis).copied().unwrap_or(0);
                (step, shape::reach(dims).unwrap_or_default())
            }
        };
        // The stride of an axis of extent 1 may be anything, and only an empty piece can follow the first step.
        if geometry.extent == 1 {
            step = 0;
        }
        let bits = i64::from(geometry.dtype.bits());
        let (unit, shift) = if bits < 8 { (bits, 3) } else { (bits >> 3, 0) };
        // These and all that follow lie within the reach of the input, which was checked.
        Self {
            has_elements,
            strides,
            step: step.wrapping_mul(unit),
            low: low.wrapping_mul(unit),
            end: high.wrapping_add(1).wrapping_mul(unit),
            begin: if has_elements { input.bit_offset.into() } else { 0 },
            shift,
        }
    }

    /// Returns whether a piece of `len` steps is packed where it lies in the input.
    #[inline(never)] // few need to know
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

    /// Returns where the piece of `len` steps from `offset` on lies.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the input's reach
    pub(crate) fn of(&self, offset: i64, len: i64) -> Placed {
        let begin = offset.wrapping_mul(self.step).wrapping_add(self.begin);
        let mask = (1 << self.shift) - 1;
        let bit_offset = begin & mask;
        let mut bytes = 0;
        if len > 0 {
            let last = (len - 1).wrapping_mul(self.step);
            let (low, end) =
                (self.low.wrapping_add(last.min(0)), self.end.wrapping_add(last.max(0)));
            let bytes_to = |units: i64| units.wrapping_add(bit_offset) >> self.shift;
            bytes = bytes_to(end.wrapping_add(mask)).wrapping_sub(bytes_to(low));
        }
        Placed {
            ahead: (begin >> self.shift) as isize,
            bit_offset: bit_offset as u32,
            bytes: bytes as usize,
        }
    }
}
