//! What `count`, `infer` and `view` write: all outputs are checked, then filled.

use super::parse::{self, array_span, arrays, check_array, checked, is_unwanted, Look, ParsedCall};
use super::types::{libsplit_dtype, libsplit_error, libsplit_params, libsplit_tensor};
use crate::error::{number, Error};
use crate::geometry::{Geometry, Piece};
use crate::overlap::{first_meeting, Numbered, Trail};
use crate::place::Place;
use crate::shape::{bytes_of_bits, rank_number, DIM_UNKNOWN};
use crate::span::Span;
use crate::words::{Argument, Field, Which};
use core::mem::MaybeUninit;
use core::slice;

/// [`super::libsplit_count`], with a reason in place of a status.
///
/// # Errors
/// As that function.
///
/// # Safety
/// As that function.
pub unsafe fn count(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    count: *mut usize,
) -> Result<(), Error> {
    // SAFETY: promise 1.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call = ParsedCall::parse(input, params, None, Look::AtShape, &mut room)?;
        checked(count, Argument::Count)?;
        let pieces = usize::try_from(call.pieces.count());
        count.write(pieces.map_err(|_| Error::TooManyElements { which: Which::Input })?);
    }
    Ok(())
}

/// [`super::libsplit_infer`], with a reason in place of a status; `error` is only memory that arrays must
/// not lie over.
///
/// # Errors
/// As that function.
///
/// # Safety
/// As that function.
pub unsafe fn infer(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call = ParsedCall::parse(input, params, Some(num_outputs), Look::AtShape, &mut room)?;
        call.reads.set_error(error);
        let given = parse::descriptors(outputs, num_outputs)?;
        let seen = Seen::new(call, given)?;
        seen.check_arrays(call, given)?;
        let sizes = Sizes::new(&call.geometry);
        if call.geometry.extent == DIM_UNKNOWN || usize::BITS < i64::BITS {
            let too_large = call.pieces.iter().find(|piece| sizes.of(piece.len).is_none());
            if let Some(Piece { index, .. }) = too_large {
                return Err(Error::TooManyElements { which: Which::Output(index) });
            }
        }
        for (piece, output) in call.pieces.iter().zip((0..num_outputs).map(|at| outputs.add(at))) {
            if !is_unwanted(&*output) {
                (*output).data_bytes = sizes.of(piece.len).unwrap_or(0);
                (*output).bit_offset = 0;
                fill(&call.geometry, piece.len, None, piece.len, output);
            }
        }
    }
    Ok(())
}

/// [`super::libsplit_view`], with a reason in place of a status; `error` is only memory that arrays must
/// not lie over.
///
/// # Errors
/// As that function.
///
/// # Safety
/// As that function.
pub unsafe fn view(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call = ParsedCall::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room)?;
        call.reads.set_error(error);
        let geometry = &call.geometry;
        call.input.span(geometry.elements, Which::Input)?;
        let place = Place::new(geometry, &call.input);
        let given = parse::descriptors(outputs, num_outputs)?;
        let seen = Seen::new(call, given)?;
        if !seen.all_have_strides {
            check_unstrided(call, &place, given)?;
        }
        seen.check_arrays(call, given)?;
        for (piece, output) in call.pieces.iter().zip((0..num_outputs).map(|at| outputs.add(at))) {
            if !is_unwanted(&*output) {
                let view = place.of(piece.offset, piece.len);
                (*output).data = call.input.data.wrapping_offset(view.ahead).cast();
                (*output).data_bytes = view.bytes;
                (*output).bit_offset = view.bit_offset;
                let extent = if place.has_elements { geometry.extent } else { piece.len };
                fill(geometry, piece.len, place.strides, extent, output);
            }
        }
    }
    Ok(())
}

/// Writes rank, dtype, shape and, if there is room for them, strides of an output of `len` steps: the strides
/// that are given, or the packed ones of the input's shape with `extent` on the split axis, as far as extents
/// are known.
///
/// # Safety
/// Promise 1; the output must have been checked.
#[inline]
unsafe fn fill(
    geometry: &Geometry<'_>,
    len: i64,
    given: Option<&[i64]>,
    extent: i64,
    output: *mut libsplit_tensor,
) {
    let rank = geometry.output_rank();
    // SAFETY: promise 1; nothing is borrowed while it is written.
    let (shape, strides) = unsafe {
        (*output).rank = rank_number(rank);
        (*output).dtype = libsplit_dtype(geometry.dtype as i32);
        ((*output).shape, (*output).strides)
    };
    let (mut at, mut packed) = (rank, 1i64);
    for (axis, own) in geometry.shape.iter().enumerate().rev() {
        let is_split = axis == geometry.axis;
        let (len, extent) = if is_split { (len, extent) } else { (*own, *own) };
        if geometry.keeps_axis || !is_split {
            at = at.wrapping_sub(1);
            let given = given.and_then(|given| given.get(axis)).copied();
            // SAFETY: the arrays have room for as many entries as there are axes.
            unsafe {
                shape.add(at).write(len);
                if !strides.is_null() {
                    strides.add(at).write(given.unwrap_or(packed));
                }
            }
        }
        // What is known fits, as has been checked.
        packed = if packed | extent < 0 { DIM_UNKNOWN } else { packed.wrapping_mul(extent.max(1)) };
    }
}

/// Sizes of packed outputs, as far as extents are known.
struct Sizes {
    /// Bits of a step on the split axis, of the known extents above 0.
    step_bits: i64,
    has_elements: bool,
}

impl Sizes {
    #[inline]
    fn new(geometry: &Geometry<'_>) -> Self {
        let mut step_bits = i64::from(geometry.dtype.bits());
        for (axis, extent) in geometry.shape.iter().enumerate() {
            if axis != geometry.axis {
                // These alone fit, as has been checked.
                step_bits = step_bits.wrapping_mul((*extent).max(1));
            }
        }
        Self { step_bits, has_elements: geometry.outer > 0 && geometry.inner > 0 }
    }

    /// Bytes of a packed output, 0 while an extent is unknown; `None` if they cannot be numbered.
    #[inline]
    fn of(&self, len: i64) -> Option<usize> {
        let bits = self.step_bits.checked_mul(len.max(1))?;
        if len <= 0 || !self.has_elements {
            return Some(0);
        }
        usize::try_from(bytes_of_bits(bits)).ok()
    }
}

/// What has been seen of the outputs' arrays.
struct Seen {
    /// The arrays of each output, side by side.
    arrays: Trail,
    all_have_strides: bool,
}

impl Seen {
    /// Checks that there is room for the shape and strides of every wanted output.
    #[inline(never)] // once in the library
    fn new(call: &ParsedCall<'_>, outputs: &[libsplit_tensor]) -> Result<Self, Error> {
        let rank = call.geometry.output_rank();
        let (mut arrays, mut all_have_strides) = (Trail::EMPTY, true);
        for (index, output) in outputs.iter().enumerate() {
            if is_unwanted(output) {
                continue;
            }
            check_room(index, output, rank)?;
            let mut own = Span::of_bytes(output.shape, rank * size_of::<i64>());
            if output.strides.is_null() {
                all_have_strides = false;
            } else {
                let strides = Span::of_bytes(output.strides, rank * size_of::<i64>());
                arrays.is_apart &= strides.is_apart(own);
                own = own.hull(strides);
            }
            if rank > 0 {
                arrays.push(own);
            }
        }
        Ok(Self { arrays, all_have_strides })
    }

    /// Checks that arrays lie over nothing else that is in use, nor over each other.
    #[inline]
    fn check_arrays(
        &self,
        call: &ParsedCall<'_>,
        outputs: &[libsplit_tensor],
    ) -> Result<(), Error> {
        let (descriptors, hull) = (Span::of_slice(outputs), self.arrays.hull);
        let reads = &call.reads;
        let are_apart = descriptors.is_apart(hull)
            && (reads.are_apart(descriptors.hull(hull))
                || reads.are_apart(hull) && reads.are_apart(descriptors));
        let is_own =
            self.arrays.is_apart || all_apart_by_kind(outputs, call.geometry.output_rank());
        if are_apart && is_own {
            return Ok(());
        }
        check_arrays(call, outputs, hull, is_own)
    }
}

/// Whether it is plain to see that the shapes of all outputs lie on one side of all strides, and each
/// beside those before it.
#[inline(never)] // of most it is not asked
fn all_apart_by_kind(outputs: &[libsplit_tensor], rank: usize) -> bool {
    let (mut shapes, mut strides) = (Trail::EMPTY, Trail::EMPTY);
    for output in outputs {
        let [shape, stride] = arrays(output, rank);
        if !shape.is_empty() {
            shapes.push(shape);
        }
        if !stride.is_empty() {
            strides.push(stride);
        }
    }
    shapes.is_apart && strides.is_apart && shapes.hull.is_apart(strides.hull)
}

/// Checks that there are arrays for an output's shape and strides, if it has such, and long enough.
#[inline]
fn check_room(output: usize, tensor: &libsplit_tensor, rank: usize) -> Result<(), Error> {
    if tensor.capacity < rank_number(rank) {
        let (expected, actual) = (number(rank), tensor.capacity.into());
        return Err(Error::Capacity { output, expected, actual });
    }
    if rank == 0 {
        return Ok(());
    }
    check_array(tensor.shape, Which::Output(output), Field::Shape)?;
    if tensor.strides.is_null() {
        return Ok(());
    }
    check_array(tensor.strides, Which::Output(output), Field::Strides)
}

/// Checks that outputs without strides have packed views.
#[cold]
#[inline(never)]
fn check_unstrided(
    call: &ParsedCall<'_>,
    place: &Place<'_>,
    outputs: &[libsplit_tensor],
) -> Result<(), Error> {
    for (piece, output) in call.pieces.iter().zip(outputs) {
        if output.strides.is_null()
            && !is_unwanted(output)
            && !place.is_packed(&call.geometry, piece.len)
        {
            return Err(Error::ViewNotPacked { output: piece.index });
        }
    }
    Ok(())
}

/// Checks arrays that all lie within a hull one by one, and against each other unless that is known.
#[cold]
#[inline(never)]
fn check_arrays(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    hull: Span,
    are_apart: bool,
) -> Result<(), Error> {
    let (rank, reads, descriptors) =
        (call.geometry.output_rank(), &call.reads, Span::of_slice(outputs));
    if let Some(other) = reads.under(descriptors) {
        return Err(Error::ArrayOverlap { argument: Argument::Outputs, other });
    }
    let span = |at: usize| array_span(outputs, at, rank);
    let spans = Numbered(outputs.len().saturating_mul(2), &span);
    let field = |at: usize| if at.is_multiple_of(2) { Field::Shape } else { Field::Strides };
    if reads.any_meets(descriptors, hull, &spans) {
        for (output, tensor) in outputs.iter().enumerate() {
            for (at, span) in arrays(tensor, rank).into_iter().enumerate() {
                let lies_over = |one| Span::of_slice(slice::from_ref(one)).intersects(span);
                let descriptor = || outputs.iter().position(lies_over).map(Which::Output);
                if let Some(other) = reads.under(span).or_else(descriptor) {
                    return Err(Error::DescriptorOverlap { output, field: field(at), other });
                }
            }
        }
    }
    match (!are_apart).then(|| first_meeting(&spans)).flatten() {
        None => Ok(()),
        Some((at, other)) => {
            let (output, field, other) = (at / 2, field(at), Which::Output(other / 2));
            Err(Error::DescriptorOverlap { output, field, other })
        }
    }
}
