//! Transfers that tests make without an operator.

use crate::dtype::DType;
use crate::geometry::Geometry;
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::pieces::Pieces;

/// Returns a transfer of a packed tensor, made from numbers instead of an operator, without any parts.
pub(in super::super) fn transfer(
    dtype: DType,
    shape: &[i64],
    axis: usize,
    source: *const u8,
) -> Transfer<'_> {
    let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let extent = shape[axis];
    let elements = outer * extent * inner;
    let (keeps_axis, step_bits) = (true, outer * inner * i64::from(dtype.bits()));
    let geometry =
        Geometry { dtype, shape, axis, keeps_axis, extent, elements, inner, outer, step_bits };
    Transfer {
        geometry: Box::leak(Box::new(geometry)),
        source,
        strides: None,
        bit_offset: 0,
        parts: Parts::NONE,
        output_strides: OutputStrides::Packed,
        bytes: 0,
    }
}

/// Returns the parts of pieces, each with its target.
pub(in super::super) fn parts<'a>(pieces: &'a Pieces<'a>, targets: &'a [*mut u8]) -> Parts<'a> {
    let step = size_of::<*mut u8>();
    // SAFETY: a slice of pointers.
    let targets = unsafe { Pointers::new(targets.as_ptr(), step, targets.len()) };
    Parts { pieces, targets }
}
