//! The outputs of a copy: each is checked by itself.
//!
//! # Safety
//! For everything unsafe here: promises 1 and 2 of [`crate::ffi`].

use crate::descriptor::{arrays, is_unwanted, tensor_of};
use crate::error::{number, Error};
use crate::geometry::Geometry;
use crate::overlap::Trail;
use crate::pieces::{Piece, Pieces};
use crate::shape::{self, rank_number, usize_of};
use crate::span::Span;
use crate::tensor::Reach;
use crate::types::libsplit_tensor;
use crate::words::{Argument, Field};
use core::slice;

/// What the outputs of a copy reach over.
pub(crate) struct Written {
    /// The hull of all outputs with elements, and whether they are in order.
    pub trail: Trail,
    /// The hull of all shapes and strides.
    arrays: Span,
    /// Whether all outputs are known to lie beside all shapes and strides.
    pub are_arrays_kept: bool,
    pub are_packed: bool,
    /// Bytes of all outputs, as if they were packed.
    pub bytes: usize,
}

impl Written {
    const NOTHING: Self = Self {
        trail: Trail::EMPTY,
        arrays: Span::NOWHERE,
        are_arrays_kept: true,
        are_packed: true,
        bytes: 0,
    };

    /// Checks each output of a copy by itself, if all are as most are. Returns `None` if one is not plain, or if arrays
    /// and outputs lie among each other.
    ///
    /// # Safety
    /// As the module says.
    #[inline(always)] // once in the library
    pub(crate) unsafe fn of_plain(
        geometry: &Geometry<'_>,
        pieces: &Pieces<'_>,
        outputs: &[libsplit_tensor],
    ) -> Option<Self> {
        let rank = geometry.output_rank();
        let mut written = Self::NOTHING;
        for (index, output) in outputs.iter().enumerate() {
            // SAFETY: promises 1 and 2.
            if let Some(bytes) = unsafe { plain_bytes(geometry, pieces.length(index), output) } {
                let start = output.data as usize;
                let end = start.wrapping_add(usize_of(bytes));
                if start == 0 || end < start {
                    return None;
                }
                let span = Span { start, end };
                let mut arrays = Span::of_array(output.shape, rank);
                if !output.strides.is_null() {
                    arrays = arrays.hull(Span::of_array(output.strides, rank));
                }
                if !written.is_clear_of(arrays, span) {
                    return None;
                }
                written.add(arrays, span, bytes);
            } else if !is_unwanted(output) {
                return None;
            }
        }
        Some(written)
    }

    /// Checks each output of a copy by itself, whatever it is, and explains what is wrong.
    ///
    /// # Safety
    /// As the module says.
    #[cold]
    pub(crate) unsafe fn of_any(
        geometry: &Geometry<'_>,
        pieces: &Pieces<'_>,
        outputs: &[libsplit_tensor],
    ) -> Result<Self, Error> {
        let rank = geometry.output_rank();
        let mut written = Self::NOTHING;
        for (piece, output) in pieces.iter().zip(outputs) {
            // SAFETY: promises 1 and 2.
            let Some(checked) = unsafe { check_output(geometry, piece, output) }? else { continue };
            let mut span = Span::default();
            if checked.bytes > 0 {
                let argument = Argument::Output(piece.index);
                if output.data.is_null() {
                    return Err(Error::Null { argument, field: Field::Data });
                }
                span = checked.reach.at(output.data.cast(), argument)?;
                written.are_packed &= checked.is_packed;
            }
            let [shape, strides] = arrays(output, rank);
            let arrays = shape.hull(strides);
            written.are_arrays_kept &= written.is_clear_of(arrays, span);
            written.add(arrays, span, checked.bytes);
        }
        Ok(written)
    }

    /// Returns whether the arrays of an output lie above or below all outputs so far, and its elements above or below
    /// all arrays.
    fn is_clear_of(&self, arrays: Span, span: Span) -> bool {
        arrays.is_apart(self.trail.hull) && span.is_apart(self.arrays.hull(arrays))
    }

    /// Adds an output: its arrays, and its elements if it has any.
    fn add(&mut self, arrays: Span, span: Span, bytes: i64) {
        self.arrays = self.arrays.hull(arrays);
        if bytes > 0 {
            self.trail.push(span);
            // All pieces together are as large as the input, which is addressable. Pieces of sub-byte elements may have
            // a byte more each, and so may be counted as more than there are addresses.
            self.bytes = self.bytes.wrapping_add(usize_of(bytes));
        }
    }
}

/// What an output reaches over (nothing if it has no elements), how many bytes are copied to it, and whether it is
/// packed.
pub(crate) struct Checked {
    pub reach: Reach,
    pub bytes: i64,
    pub is_packed: bool,
}

impl Checked {
    pub(crate) fn packed(bytes: i64) -> Self {
        Self { reach: Reach { low: 0, bytes }, bytes, is_packed: true }
    }
}

/// Returns the bytes of an output if it is a packed tensor of the right type and shape that is large enough, as most
/// are. For one without axes, it may return `None`.
#[inline(always)] // in the loop over outputs
unsafe fn plain_bytes(geometry: &Geometry<'_>, len: i64, output: &libsplit_tensor) -> Option<i64> {
    let rank = geometry.output_rank();
    let bytes = geometry.output_bytes(len);
    if output.dtype.0 != geometry.dtype as i32
        || output.rank != rank_number(rank)
        || output.bit_offset != 0
        || output.shape.is_null()
        || !output.shape.is_aligned()
        || !output.strides.is_aligned()
        || (output.data_bytes != 0 && (output.data_bytes as u64) < bytes.cast_unsigned())
    {
        return None;
    }
    // SAFETY: arrays that are not NULL have an entry for each axis.
    let array = |array: *mut i64| unsafe { slice::from_raw_parts(array, rank) }.iter().copied();
    let is_plain = geometry.is_output_shape(len, array(output.shape))
        && (output.strides.is_null()
            || shape::is_packed(array(output.shape).zip(array(output.strides)).rev()));
    is_plain.then_some(bytes)
}

/// Checks everything about an output except its address: that type, rank and extents are the operator's, that no two
/// elements share an address, and that as much memory is there as it reaches over. Returns `None` if the output is not
/// wanted.
///
/// # Safety
/// As the module says.
pub(crate) unsafe fn check_output(
    geometry: &Geometry<'_>,
    piece: Piece,
    output: &libsplit_tensor,
) -> Result<Option<Checked>, Error> {
    // SAFETY: promises 1 and 2.
    if let Some(bytes) = unsafe { plain_bytes(geometry, piece.len, output) } {
        return Ok(Some(Checked::packed(bytes)));
    }
    if is_unwanted(output) {
        return Ok(None);
    }
    let argument = Argument::Output(piece.index);
    // SAFETY: promises 1 and 2.
    let tensor = unsafe { tensor_of(output, true, argument) }?;
    let output = piece.index;
    if tensor.dtype != geometry.dtype {
        return Err(Error::OutputDType { output, expected: geometry.dtype, actual: tensor.dtype });
    }
    if tensor.shape.len() != geometry.output_rank() {
        let (expected, actual) = (number(geometry.output_rank()), number(tensor.shape.len()));
        return Err(Error::OutputRank { output, expected, actual });
    }
    let extents = geometry.output_shape(piece.len).zip(tensor.shape);
    for (axis, (expected, &actual)) in extents.enumerate() {
        if expected != actual {
            return Err(Error::OutputShape { output, axis, expected, actual });
        }
    }
    if tensor.bit_offset != 0 {
        let actual = tensor.bit_offset.into();
        return Err(Error::BitOffsetNotZero { argument, expected: 0, actual });
    }
    let packed = Checked::packed(geometry.output_bytes(piece.len));
    let is_packed = packed.bytes == 0 || tensor.is_packed();
    let reach = if is_packed { packed.reach } else { tensor.strided_reach(argument)? };
    tensor.check_data_bytes(reach, argument)?;
    if !is_packed {
        if geometry.dtype.is_sub_byte() {
            return Err(Error::SubByteStrides { output });
        }
        if let Some((axis, expected, actual)) = shape::colliding(&tensor.dims()) {
            return Err(Error::StridesCollide { output, axis, expected, actual });
        }
    }
    Ok(Some(Checked { reach, is_packed, ..packed }))
}
