//! For tests: transfers made of numbers, without an operator.

#![forbid(unsafe_code)]

use crate::dtype::DType;
use crate::parts::{OutputStrides, Part, Parts, Transfer};
use crate::plan::Geometry;
use crate::shape::usize_of;

/// Pieces of these lengths, one after another, but for empty ones and those without a target.
pub(super) fn parts(lengths: &[i64], targets: impl Iterator<Item = Option<*mut u8>>) -> Vec<Part> {
    let mut next = 0;
    let part = |((index, &len), target): (_, Option<_>)| {
        let offset = next;
        next += len;
        Some(Part { index, offset, len, target: target.filter(|_| len > 0)? })
    };
    lengths.iter().enumerate().zip(targets).filter_map(part).collect()
}

/// Parts of a packed tensor, into packed outputs.
pub(super) fn transfer<'a>(
    dtype: DType,
    shape: &'a [i64],
    axis: usize,
    source: *const u8,
    parts: &'a [Part],
) -> Transfer<'a> {
    let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let extent = shape[axis];
    let elements = outer * extent * inner;
    let geometry =
        Geometry { dtype, shape, axis, keeps_axis: true, extent, elements, inner, outer };
    Transfer {
        geometry,
        source,
        strides: None,
        bit_offset: 0,
        parts: Parts::Listed(parts),
        output_strides: OutputStrides::Packed,
        bytes: parts.iter().map(|part| geometry.piece_bytes(part.len)).sum(),
    }
}

/// The steps of a part.
pub(super) fn steps(part: &Part) -> std::ops::Range<usize> {
    usize_of(part.offset)..usize_of(part.offset + part.len)
}
