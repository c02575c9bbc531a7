//! What `infer` and `view` write into output descriptors: all of them are checked, then filled.

#![allow(clippy::inline_always)] // on the way of every call

use super::parse::{self, check_array, is_unwanted, Call, Look};
use super::reads::Reads;
use super::types::{
    libsplit_dtype, libsplit_error, libsplit_params, libsplit_tensor, LIBSPLIT_DIM_UNKNOWN,
};
use crate::error::{number, Error, Fault, Report, Which};
use crate::overlap::{self, Trail};
use crate::place::Place;
use crate::plan::{Geometry, Piece, Plan};
use crate::shape::DIM_UNKNOWN;
use crate::span::Span;
use core::ptr::null;

/// Fills shapes, packed strides and sizes.
///
/// # Safety
/// As [`super::libsplit_infer`].
#[inline(always)]
pub(super) unsafe fn infer(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise; outputs are borrowed only until the first is written.
    unsafe {
        let call = Call::parse(input, params, Some(num_outputs), Look::AtShape, report)?;
        let plan = call.plan(Look::AtShape, report)?;
        let given = parse::descriptors(outputs, num_outputs, report)?;
        let packed = Packed::new(&plan.geometry);
        check_outputs(&call, &plan, given, error, report, |piece, _, report| {
            packed.bytes(piece, report).map(|_| ())
        })?;
        for piece in plan.pieces() {
            let output = outputs.add(piece.index);
            if is_unwanted(&*output) {
                continue;
            }
            // Checked above.
            (*output).data_bytes = packed.bytes(piece, report)?;
            (*output).bit_offset = 0;
            write_axes(&plan.geometry, piece.len, None, piece.len, output);
        }
    }
    Ok(())
}

/// Fills shapes and points the outputs into the input.
///
/// # Safety
/// As [`super::libsplit_view`].
#[inline(always)]
pub(super) unsafe fn view(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: as above.
    unsafe {
        let call = Call::parse(input, params, Some(num_outputs), Look::AtLayout, report)?;
        let plan = call.plan(Look::AtLayout, report)?;
        let geometry = &plan.geometry;
        let given = parse::descriptors(outputs, num_outputs, report)?;
        call.input.span(geometry.elements, Which::Input, report)?;
        let place = Place::new(geometry, &call.input);
        check_outputs(&call, &plan, given, error, report, |piece, output, report| {
            if output.strides.is_null() && !place.is_packed(geometry, piece.len) {
                return report.refuse(Error::ViewNotPacked { output: piece.index });
            }
            Ok(())
        })?;
        for piece in plan.pieces() {
            let output = outputs.add(piece.index);
            if is_unwanted(&*output) {
                continue;
            }
            let view = place.of(geometry, piece);
            (*output).data = call.input.data.wrapping_offset(view.ahead).cast();
            (*output).data_bytes = view.bytes;
            (*output).bit_offset = view.bit_offset;
            let extent = if place.has_elements { geometry.extent } else { piece.len };
            write_axes(geometry, piece.len, place.strides, extent, output);
        }
    }
    Ok(())
}

/// Checks that every wanted output has room in arrays of its own, and what else there is to check.
///
/// # Safety
/// Promises 1 and 2 of [`parse`].
#[inline(always)]
unsafe fn check_outputs(
    call: &Call<'_>,
    plan: &Plan<'_>,
    outputs: &[libsplit_tensor],
    error: *const libsplit_error,
    report: &mut Report,
    check: impl Fn(Piece, &libsplit_tensor, &mut Report) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let rank = plan.geometry.output_rank();
    let (mut shapes, mut strides, mut own) = (Trail::EMPTY, Trail::EMPTY, Trail::EMPTY);
    let mut are_apart = true;
    for piece in plan.pieces() {
        let Some(output) = outputs.get(piece.index).filter(|output| !is_unwanted(output)) else {
            continue;
        };
        check_room(piece.index, output, rank, report)?;
        check(piece, output, report)?;
        if rank == 0 {
            continue;
        }
        let shape = Span::of_array(output.shape, rank);
        let mut both = shape;
        shapes.push(shape);
        if !output.strides.is_null() {
            let array = Span::of_array(output.strides, rank);
            strides.push(array);
            are_apart &= shape.is_apart(array);
            both = both.hull(array);
        }
        own.push(both);
    }
    // All shapes lie on one side of all strides, or each output's arrays side by side.
    let by_kind = shapes.is_apart && strides.is_apart && shapes.hull.is_apart(strides.hull);
    let by_output = own.is_apart && are_apart;
    let reads = Reads::new(call, error, null());
    let in_use = reads.hull().hull(Span::of_slice(outputs));
    let is_own = by_kind || by_output;
    if is_own && !own.hull.intersects(in_use) && !Span::of_slice(outputs).intersects(reads.hull()) {
        return Ok(());
    }
    check_arrays(rank, outputs, &reads, !is_own, report)
}

/// That there are arrays for an output's shape and strides, and long enough.
#[inline(always)]
fn check_room(
    output: usize,
    tensor: &libsplit_tensor,
    rank: usize,
    report: &mut Report,
) -> Result<(), Fault> {
    if i64::from(tensor.capacity) < number(rank) {
        let (expected, actual) = (number(rank), tensor.capacity.into());
        return report.refuse(Error::Capacity { output, expected, actual });
    }
    if rank == 0 {
        return Ok(());
    }
    let which = Which::Output(output);
    check_array(tensor.shape, which, "shape", report)?;
    if tensor.strides.is_null() {
        return Ok(());
    }
    check_array(tensor.strides, which, "strides", report)
}

/// That the outputs' arrays lie over nothing else in use, nor over each other.
#[cold]
#[inline(never)]
fn check_arrays(
    rank: usize,
    outputs: &[libsplit_tensor],
    reads: &Reads,
    may_meet: bool,
    report: &mut Report,
) -> Result<(), Fault> {
    let descriptors = Span::of_slice(outputs);
    if let Some(other) = reads.under(descriptors) {
        return report.refuse(Error::ArrayOverlap { argument: "outputs", other });
    }
    let field = |at: usize| if at % 2 == 0 { "shape" } else { "strides" };
    let span = |at: usize| {
        let Some(output) = outputs.get(at / 2).filter(|output| !is_unwanted(output)) else {
            return Span::default();
        };
        Span::of_array(if at % 2 == 0 { output.shape } else { output.strides }, rank)
    };
    let count = outputs.len().saturating_mul(2);
    for at in 0..count {
        let own = span(at).intersects(descriptors).then_some(Which::Output(at / 2));
        if let Some(other) = reads.under(span(at)).or(own) {
            let (output, field) = (at / 2, field(at));
            return report.refuse(Error::DescriptorOverlap { output, field, other });
        }
    }
    match overlap::meeting(count, &span).filter(|_| may_meet) {
        None => Ok(()),
        Some((at, other)) => {
            let (output, field, other) = (at / 2, field(at), Which::Output(other / 2));
            report.refuse(Error::DescriptorOverlap { output, field, other })
        }
    }
}

/// Sizes of packed outputs: what is known of them, apart from the split axis.
struct Packed {
    /// Bits of the known extents above 0, which fit.
    bits: i64,
    is_known: bool,
    is_empty: bool,
}

impl Packed {
    #[inline(always)]
    fn new(geometry: &Geometry<'_>) -> Self {
        let (mut bits, mut is_known, mut is_empty) =
            (i64::from(geometry.dtype.bits()), true, false);
        for (axis, extent) in geometry.shape.iter().enumerate() {
            match *extent {
                _ if axis == geometry.axis => {}
                DIM_UNKNOWN => is_known = false,
                0 => is_empty = true,
                extent => bits = bits.wrapping_mul(extent),
            }
        }
        Self { bits, is_known, is_empty }
    }

    /// Bytes of a packed output, 0 while an extent is unknown; what is known must not overflow.
    #[inline(always)]
    fn bytes(&self, piece: Piece, report: &mut Report) -> Result<usize, Fault> {
        let steps = if piece.len > 0 { piece.len } else { 1 };
        let bytes = match self.bits.checked_mul(steps) {
            Some(bits) if self.is_known && !self.is_empty && piece.len > 0 => {
                usize::try_from((bits.unsigned_abs() + 7) / 8).ok()
            }
            Some(_) => Some(0),
            None => None,
        };
        match bytes {
            Some(bytes) => Ok(bytes),
            None => {
                let which = Which::Output(piece.index);
                report.refuse(Error::TooManyElements { which })
            }
        }
    }
}

/// Writes shape, strides (if not NULL), rank and dtype of an output of `len` steps. The strides are
/// those given, or the packed ones of the input's shape with `extent` on the axis.
///
/// # Safety
/// The output's arrays must have room for its rank, and nothing else may lie in them.
#[inline(always)]
unsafe fn write_axes(
    geometry: &Geometry<'_>,
    len: i64,
    strides: Option<&[i64]>,
    extent: i64,
    output: *mut libsplit_tensor,
) {
    let rank = geometry.output_rank();
    // SAFETY: the caller's promise; there are as many axes as the rank says.
    unsafe {
        (*output).rank = i32::try_from(rank).unwrap_or(0);
        (*output).dtype = libsplit_dtype(geometry.dtype as i32);
        let (shape_out, strides_out) = ((*output).shape, (*output).strides);
        let (mut at, mut packed) = (rank, 1i64);
        for (axis, &input_extent) in geometry.shape.iter().enumerate().rev() {
            let is_split = axis == geometry.axis;
            let (len, extent) = if is_split { (len, extent) } else { (input_extent, input_extent) };
            if !is_split || geometry.keeps_axis {
                let stride = match strides {
                    Some(strides) => strides.get(axis).copied().unwrap_or(0),
                    None => packed,
                };
                at -= 1;
                shape_out.add(at).write(len);
                if !strides_out.is_null() {
                    strides_out.add(at).write(stride);
                }
            }
            packed = if packed < 0 || extent < 0 {
                LIBSPLIT_DIM_UNKNOWN
            } else {
                // What is known fits, as has been checked.
                packed.wrapping_mul(extent.max(1))
            };
        }
    }
}

/// How many outputs the operator gives.
///
/// # Safety
/// As [`super::libsplit_count`].
pub(super) unsafe fn count(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    count: *mut usize,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        let call = Call::parse(input, params, None, Look::AtShape, report)?;
        let plan = call.plan(Look::AtShape, report)?;
        parse::checked(count, "count", report)?;
        match usize::try_from(plan.count()) {
            Ok(number) => count.write(number),
            Err(_) => return report.refuse(Error::TooManyElements { which: Which::Input }),
        }
    }
    Ok(())
}
