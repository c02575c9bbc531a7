//! What `count`, `infer` and `view` write: all outputs are checked, then filled.

use super::parse::{self, array_span, arrays, check_array, checked, is_unwanted, Look, ParsedCall};
use super::types::{libsplit_dtype, libsplit_error, libsplit_params, libsplit_tensor};
use crate::error::{number, Error};
use crate::geometry::Geometry;
use crate::overlap::{first_meeting, Numbered, Trail};
use crate::place::Place;
use crate::shape::{bytes_of_bits, rank_number, usize_of, DIM_UNKNOWN};
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
        let geometry = call.geometry;
        Arrays::new(given, geometry.output_rank())?.check_apart(call, given)?;
        if geometry.extent == DIM_UNKNOWN || usize::BITS < i64::BITS {
            check_sizes(call)?;
        }
        let step_bits = if geometry.outer > 0 {
            geometry.piece_elements(i64::from(geometry.dtype.bits()))
        } else {
            0
        };
        for (piece, output) in call.pieces.iter().zip((0..num_outputs).map(|at| outputs.add(at))) {
            if !is_unwanted(&*output) {
                // What is known fits, as has been checked.
                (*output).data_bytes =
                    usize_of(bytes_of_bits(step_bits.wrapping_mul(piece.len.max(0))));
                (*output).bit_offset = 0;
                fill(&geometry, piece.len, None, piece.len, output);
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
        let geometry = call.geometry;
        call.input.span(geometry.elements, Which::Input)?;
        let place = Place::new(&geometry, &call.input);
        let given = parse::descriptors(outputs, num_outputs)?;
        let arrays = Arrays::new(given, geometry.output_rank())?;
        if !arrays.all_have_strides {
            check_unstrided(call, &place, given)?;
        }
        arrays.check_apart(call, given)?;
        for (piece, output) in call.pieces.iter().zip((0..num_outputs).map(|at| outputs.add(at))) {
            if !is_unwanted(&*output) {
                let view = place.of(piece.offset, piece.len);
                (*output).data = call.input.data.wrapping_offset(view.ahead).cast();
                (*output).data_bytes = view.bytes;
                (*output).bit_offset = view.bit_offset;
                let extent = if place.has_elements { geometry.extent } else { piece.len };
                fill(&geometry, piece.len, place.strides, extent, output);
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
    let (axis, rank, extents) = (geometry.axis, geometry.shape.len(), geometry.shape.as_ptr());
    let given = given.map(<[i64]>::as_ptr);
    let grown = |packed: i64, extent: i64| {
        // What is known fits, as has been checked.
        if packed | extent < 0 {
            DIM_UNKNOWN
        } else {
            packed.wrapping_mul(extent.max(1))
        }
    };
    // SAFETY: promise 1; nothing is borrowed while it is written. Arrays have as many entries as there are axes.
    unsafe {
        (*output).rank = rank_number(geometry.output_rank());
        (*output).dtype = libsplit_dtype(geometry.dtype as i32);
        let (shape, strides) = ((*output).shape, (*output).strides);
        let put = |at: usize, axis: usize, len: i64, packed: i64| {
            shape.add(at).write(len);
            if !strides.is_null() {
                strides.add(at).write(given.map_or(packed, |given| *given.add(axis)));
            }
        };
        let mut packed = 1;
        for inward in (axis + 1..rank).rev() {
            let own = *extents.add(inward);
            put(inward - usize::from(!geometry.keeps_axis), inward, own, packed);
            packed = grown(packed, own);
        }
        if geometry.keeps_axis {
            put(axis, axis, len, packed);
        }
        packed = grown(packed, extent);
        for outward in (0..axis).rev() {
            let own = *extents.add(outward);
            put(outward, outward, own, packed);
            packed = grown(packed, own);
        }
    }
}

/// Checks that the size of every output, and its strides, can be numbered: where the extent of the split axis is not
/// known, nothing else has.
#[cold]
#[inline(never)]
fn check_sizes(call: &ParsedCall<'_>) -> Result<(), Error> {
    let ParsedCall { geometry, pieces, .. } = call;
    let others = geometry.shape.iter().enumerate().filter(|(axis, _)| *axis != geometry.axis);
    // These alone fit, as has been checked.
    let step_bits = others.fold(i64::from(geometry.dtype.bits()), |bits, (_, extent)| {
        bits.wrapping_mul((*extent).max(1))
    });
    let has_elements = geometry.outer > 0 && geometry.inner > 0;
    let is_too_large = |len: i64| {
        step_bits.checked_mul(len.max(1)).is_none_or(|bits| {
            len > 0 && has_elements && usize::try_from(bytes_of_bits(bits)).is_err()
        })
    };
    match pieces.iter().find(|piece| is_too_large(piece.len)) {
        None => Ok(()),
        Some(piece) => Err(Error::TooManyElements { which: Which::Output(piece.index) }),
    }
}

/// What has been seen of the outputs' arrays.
struct Arrays {
    /// Where they lie; descriptors, too, where [`are_by_kind`] says no.
    hull: Span,
    /// Whether it is plain to see that none lies over another, or over descriptors.
    are_apart: bool,
    all_have_strides: bool,
}

impl Arrays {
    /// Checks that there is room for the shape and strides of every wanted output.
    #[inline]
    fn new(outputs: &[libsplit_tensor], rank: usize) -> Result<Self, Error> {
        if are_by_kind(outputs) {
            Self::look::<true>(outputs, rank)
        } else {
            Self::look::<false>(outputs, rank)
        }
    }

    #[inline(never)] // once in the library
    fn look<const BY_KIND: bool>(outputs: &[libsplit_tensor], rank: usize) -> Result<Self, Error> {
        let descriptors = Span::of_slice(outputs);
        let [mut first, mut second] = [Trail::EMPTY; 2];
        if !BY_KIND {
            first.push(descriptors);
        }
        let mut all_have_strides = true;
        for (index, output) in outputs.iter().enumerate() {
            let (shape, strides) = (output.shape, output.strides);
            let has_arrays = !shape.is_null() && shape.is_aligned() && strides.is_aligned();
            if !has_arrays || output.capacity < rank_number(rank) {
                if is_unwanted(output) {
                    continue;
                }
                check_room(index, output, rank)?;
            }
            first.push(Span::of_array(shape, rank));
            if strides.is_null() {
                all_have_strides = false;
            } else if BY_KIND {
                second.push(Span::of_array(strides, rank));
            } else {
                first.push(Span::of_array(strides, rank));
            }
        }
        let are_kinds_apart = !BY_KIND
            || second.is_apart
                && first.hull.is_apart(second.hull)
                && first.hull.is_apart(descriptors)
                && second.hull.is_apart(descriptors);
        let are_apart = first.is_apart && are_kinds_apart;
        Ok(Self { hull: first.hull.hull(second.hull), are_apart, all_have_strides })
    }

    /// Checks that arrays lie over nothing else that is in use, nor over each other.
    #[inline]
    fn check_apart(&self, call: &ParsedCall<'_>, outputs: &[libsplit_tensor]) -> Result<(), Error> {
        let (reads, descriptors) = (&call.reads, Span::of_slice(outputs));
        if self.are_apart && reads.are_apart(self.hull.hull(descriptors)) {
            return Ok(());
        }
        check_closely(call, outputs, self.are_apart)
    }
}

/// Whether arrays seem to lie apart by kind, all shapes above or below all strides, rather than in the order of outputs.
#[inline]
fn are_by_kind(outputs: &[libsplit_tensor]) -> bool {
    let mut shapes = outputs.iter().filter(|output| !output.shape.is_null());
    match (shapes.next(), shapes.next()) {
        (Some(one), Some(two)) => (one.shape < two.shape) == (two.shape < one.strides),
        _ => false,
    }
}

/// Checks that there are arrays for an output's shape and strides, if it has such, and long enough.
#[cold]
#[inline(never)]
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

/// Checks arrays one by one, and against each other unless they are known to be apart.
#[cold]
#[inline(never)]
fn check_closely(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    are_apart: bool,
) -> Result<(), Error> {
    let (rank, reads, descriptors) =
        (call.geometry.output_rank(), &call.reads, Span::of_slice(outputs));
    if let Some(other) = reads.under(descriptors) {
        return Err(Error::ArrayOverlap { argument: Argument::Outputs, other });
    }
    let hull =
        outputs.iter().flat_map(|output| arrays(output, rank)).fold(Span::NOWHERE, Span::hull);
    if are_apart && reads.are_apart(hull) {
        return Ok(());
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
