//! `count`, `infer` and `view`: all outputs are checked, and then they are filled in.
//!
//! # Safety
//! For everything unsafe here: promises 1 and 2 of [`super`].

use super::parse;
use crate::call::ParsedCall;
use crate::descriptor::{arrays, checked, is_unwanted};
use crate::error::{number, Error};
use crate::geometry::{Geometry, Place};
use crate::overlap;
use crate::shape::{bytes_of_bits, rank_number, usize_of, DIM_UNKNOWN};
use crate::span::Span;
use crate::types::{libsplit_dtype, libsplit_error, libsplit_params, libsplit_tensor};
use crate::words::{Argument, Field};
use core::ptr::null;

/// [`super::libsplit_count`].
pub unsafe fn count(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    count: *mut usize,
) -> Result<(), Error> {
    // SAFETY: promise 1.
    unsafe {
        let call = parse::call(input, params, None, true, null())?;
        checked(count, Argument::Count, Field::Itself)?;
        let pieces = usize::try_from(call.pieces.count());
        let too_many = Error::TooManyElements { argument: Argument::Input };
        count.write(pieces.map_err(|_| too_many)?);
    }
    Ok(())
}

/// [`super::libsplit_infer`].
pub unsafe fn infer(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let call = parse::call(input, params, Some(num_outputs), true, error)?;
        let descriptors = parse::descriptors(outputs, num_outputs)?;
        if !are_plain(&call, descriptors, None) {
            check_arrays(&call, descriptors, None)?;
        }
        // A copy, of which the compiler knows that no output is part of it.
        let geometry = &{ call.geometry };
        if geometry.extent == DIM_UNKNOWN || usize::BITS < i64::BITS {
            check_sizes(&call)?;
        }
        for piece in call.pieces.iter() {
            let output = outputs.add(piece.index);
            if !is_unwanted(&*output) {
                // All that is known has been found to fit.
                (*output).data_bytes = usize_of(geometry.output_bytes(piece.len.max(0)));
                (*output).bit_offset = 0;
                fill(geometry, piece.len, None, piece.len, output);
            }
        }
    }
    Ok(())
}

/// [`super::libsplit_view`].
pub unsafe fn view(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let call = parse::call(input, params, Some(num_outputs), false, error)?;
        // A copy, as in `infer`.
        let geometry = &{ call.geometry };
        let ParsedCall { input, pieces, .. } = &call;
        input.span(geometry.elements, Argument::Input)?;
        let place = Place::new(geometry, input);
        let descriptors = parse::descriptors(outputs, num_outputs)?;
        if !are_plain(&call, descriptors, Some(&place)) {
            check_arrays(&call, descriptors, Some(&place))?;
        }
        for piece in pieces.iter() {
            let output = outputs.add(piece.index);
            if !is_unwanted(&*output) {
                let view = place.of(piece.offset, piece.len);
                (*output).data = input.data.wrapping_offset(view.ahead).cast();
                (*output).data_bytes = view.bytes;
                (*output).bit_offset = view.bit_offset;
                let extent = if place.has_elements { geometry.extent } else { piece.len };
                fill(geometry, piece.len, place.strides, extent, output);
            }
        }
    }
    Ok(())
}

/// Writes rank, dtype, shape and, if there is an array for them, strides of an output of `len` steps, which must have
/// been checked. The strides are `own_strides`, or else those of a packed tensor of the input's shape with `extent` on
/// the split axis, as far as extents are known.
unsafe fn fill(
    geometry: &Geometry<'_>,
    len: i64,
    own_strides: Option<&[i64]>,
    extent: i64,
    output: *mut libsplit_tensor,
) {
    // SAFETY: promise 1; nothing is borrowed while it is written. Arrays have as many entries as there are axes.
    unsafe {
        let mut at = geometry.output_rank();
        (*output).rank = rank_number(at);
        (*output).dtype = libsplit_dtype(geometry.dtype as i32);
        let (shape, strides) = ((*output).shape, (*output).strides);
        let mut packed = 1i64;
        for axis in (0..geometry.shape.len()).rev() {
            let own = geometry.shape.get(axis).copied().unwrap_or(0);
            let is_split = axis == geometry.axis;
            if !is_split || geometry.keeps_axis {
                at = at.wrapping_sub(1);
                shape.add(at).write(if is_split { len } else { own });
                if !strides.is_null() {
                    let stride = own_strides.and_then(|own| own.get(axis)).unwrap_or(&packed);
                    strides.add(at).write(*stride);
                }
            }
            let extent = if is_split { extent } else { own };
            // All that is known has been found to fit.
            packed =
                if packed | extent < 0 { DIM_UNKNOWN } else { packed.wrapping_mul(extent.max(1)) };
        }
    }
}

/// Checks that the size and the strides of every output can be numbered. If the extent of the split axis is not known,
/// nothing else has checked that.
#[cold]
fn check_sizes(call: &ParsedCall<'_>) -> Result<(), Error> {
    let ParsedCall { geometry, pieces, .. } = call;
    let others = geometry.shape.iter().enumerate().filter(|(axis, _)| *axis != geometry.axis);
    // Without the split axis they have been found to fit.
    let step_bits = others.fold(i64::from(geometry.dtype.bits()), |bits, (_, extent)| {
        bits.wrapping_mul((*extent).max(1))
    });
    let has_elements = geometry.outer > 0 && geometry.inner > 0;
    let is_too_large = |len: i64| {
        step_bits.checked_mul(len.max(1)).is_none_or(|bits| {
            len > 0 && has_elements && usize::try_from(bytes_of_bits(bits)).is_err()
        })
    };
    pieces.iter().find(|piece| is_too_large(piece.len)).map_or(Ok(()), |piece| {
        Err(Error::TooManyElements { argument: Argument::Output(piece.index) })
    })
}

/// Returns whether every wanted output has an array for its shape that is long enough, and one for its strides or, if it
/// is to be a view, a packed piece, and whether these arrays lie apart from all that is in use. Most callers keep all shapes together and all strides, or both of each output.
/// Either way, each array lies above or below the descriptors, all shapes before it, and all strides.
#[inline(always)] // once for each of its two callers
fn are_plain(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    views: Option<&Place<'_>>,
) -> bool {
    let rank = call.geometry.output_rank();
    let descriptors = Span::of_slice(outputs);
    let mut shapes = Span::NOWHERE;
    let mut all_strides = Span::NOWHERE;
    for (index, output) in outputs.iter().enumerate() {
        if is_unwanted(output) {
            continue;
        }
        if output.shape.is_null()
            || !output.shape.is_aligned()
            || !output.strides.is_aligned()
            || output.capacity < rank_number(rank)
        {
            return false;
        }
        let is_clear = |span: Span, shapes: Span| {
            [descriptors, shapes, all_strides].into_iter().all(|other| span.is_apart(other))
        };
        let shape = Span::of_array(output.shape, rank);
        if !is_clear(shape, shapes) {
            return false;
        }
        shapes = shapes.hull(shape);
        if output.strides.is_null() {
            if !is_packed(call, index, views) {
                return false;
            }
        } else {
            let strides = Span::of_array(output.strides, rank);
            if !is_clear(strides, shapes) {
                return false;
            }
            all_strides = all_strides.hull(strides);
        }
    }
    let is_read = |span| call.reads.under(span).is_some();
    let hull = shapes.hull(all_strides).hull(descriptors);
    !is_read(hull) || ![shapes, all_strides, descriptors].into_iter().any(is_read)
}

/// Returns whether a piece is packed where it lies, if it is to be a view.
fn is_packed(call: &ParsedCall<'_>, index: usize, views: Option<&Place<'_>>) -> bool {
    views.is_none_or(|place| place.is_packed(&call.geometry, call.pieces.length(index)))
}

/// Checks what [`are_plain`] looks at, whatever the arrays are, and explains what is wrong.
#[cold]
fn check_arrays(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    views: Option<&Place<'_>>,
) -> Result<(), Error> {
    let rank = call.geometry.output_rank();
    let mut hull = Span::NOWHERE;
    for (output, tensor) in outputs.iter().enumerate() {
        if is_unwanted(tensor) {
            continue;
        }
        if tensor.capacity < rank_number(rank) {
            let (expected, actual) = (number(rank), tensor.capacity.into());
            return Err(Error::Capacity { output, expected, actual });
        }
        let argument = Argument::Output(output);
        if rank > 0 {
            checked(tensor.shape, argument, Field::Shape)?;
            if !tensor.strides.is_null() {
                checked(tensor.strides, argument, Field::Strides)?;
            }
        }
        if tensor.strides.is_null() && !is_packed(call, output, views) {
            return Err(Error::ViewNotPacked { output });
        }
        hull = arrays(tensor, rank).into_iter().fold(hull, Span::hull);
    }
    overlap::check_arrays_to_fill(outputs, rank, hull, &call.reads)
}
