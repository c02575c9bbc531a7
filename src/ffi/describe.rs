//! What `infer` and `view` write into output descriptors: all of them are checked, then filled.

#![allow(clippy::inline_always)] // on the way of every call

use super::parse::{self, check_array, is_unwanted, Call, Look, Wanted};
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
use core::mem::MaybeUninit;
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
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call = Call::parse(input, params, Some(num_outputs), Look::AtShape, &mut room, report)?;
        let packed = Packed::new(&call.plan.geometry);
        let check = |piece: Piece, _: &libsplit_tensor, report: &mut Report| {
            packed.bytes(piece, report).map(|_| ())
        };
        check_outputs(call, outputs, num_outputs, error, report, check)?;
        fill(&call.plan, None, outputs, |piece, output| {
            // Checked above.
            (*output).data_bytes = packed.bytes(piece, &mut Report::default()).unwrap_or(0);
            (*output).bit_offset = 0;
            piece.len
        });
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
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call =
            Call::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room, report)?;
        let geometry = &call.plan.geometry;
        call.input.span(geometry.elements, Which::Input, report)?;
        let place = Place::new(geometry, &call.input);
        let check = |piece: Piece, output: &libsplit_tensor, report: &mut Report| {
            if output.strides.is_null() && !place.is_packed(geometry, piece.len) {
                return report.refuse(Error::ViewNotPacked { output: piece.index });
            }
            Ok(())
        };
        check_outputs(call, outputs, num_outputs, error, report, check)?;
        fill(&call.plan, place.strides, outputs, |piece, output| {
            let view = place.of(piece);
            (*output).data = call.input.data.wrapping_offset(view.ahead).cast();
            (*output).data_bytes = view.bytes;
            (*output).bit_offset = view.bit_offset;
            if place.has_elements {
                geometry.extent
            } else {
                piece.len
            }
        });
    }
    Ok(())
}

/// Fills every wanted output: shape and strides, which are those given or packed ones of the shape
/// with the extent on the axis that `describe` gives, and what that writes.
///
/// # Safety
/// Promise 1; the outputs must have been checked.
#[inline(never)] // with all registers to itself
unsafe fn fill(
    plan: &Plan<'_>,
    strides: Option<&[i64]>,
    outputs: *mut libsplit_tensor,
    describe: impl Fn(Piece, *mut libsplit_tensor) -> i64,
) {
    for piece in plan.pieces() {
        let output = outputs.wrapping_add(piece.index);
        // SAFETY: promise 1; nothing is borrowed while it is written.
        unsafe {
            if !is_unwanted(&*output) {
                let extent = describe(piece, output);
                write_axes(&plan.geometry, piece.len, strides, extent, output);
            }
        }
    }
}

/// Checks that every wanted output has room in arrays of its own, and what else there is to check.
///
/// # Safety
/// Promises 1 and 2 of [`parse`].
#[inline(never)] // with all registers to itself
unsafe fn check_outputs(
    call: &Call<'_>,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
    check: impl Fn(Piece, &libsplit_tensor, &mut Report) -> Result<(), Fault>,
) -> Result<(), Fault> {
    // SAFETY: borrowed until they are written.
    let outputs = unsafe { parse::descriptors(outputs, num_outputs, report) }?;
    let plan = &call.plan;
    let rank = plan.geometry.output_rank();
    let (mut shapes, mut strides) = (Trail::EMPTY, Trail::EMPTY);
    for (piece, output) in Wanted::new(plan, outputs) {
        check_room(piece.index, output, rank, report)?;
        check(piece, output, report)?;
        if rank == 0 {
            continue;
        }
        shapes.push(Span::of_array(output.shape, rank));
        if !output.strides.is_null() {
            strides.push(Span::of_array(output.strides, rank));
        }
    }
    // Most callers keep all shapes side by side, and all strides.
    let reads = Reads::new(call, error, null());
    let descriptors = Span::of_slice(outputs);
    if shapes.is_apart
        && strides.is_apart
        && shapes.hull.is_apart(strides.hull)
        && descriptors.is_apart(shapes.hull)
        && descriptors.is_apart(strides.hull)
        && reads.are_apart([shapes.hull, strides.hull, descriptors])
    {
        return Ok(());
    }
    check_arrays(rank, outputs, reads, report)
}

/// Whether each output's arrays lie side by side and above or below those of the others, and nothing
/// else among them.
fn are_side_by_side(rank: usize, outputs: &[libsplit_tensor], reads: Reads<'_>) -> bool {
    let mut own = Trail::EMPTY;
    for output in outputs.iter().filter(|output| !is_unwanted(output)) {
        let arrays = [output.shape, output.strides].map(|array| Span::of_array(array, rank));
        let [shape, strides] = arrays;
        own.is_apart &= shape.is_apart(strides);
        own.push(if output.strides.is_null() { shape } else { shape.hull(strides) });
    }
    own.is_apart && reads.are_apart([own.hull]) && Span::of_slice(outputs).is_apart(own.hull)
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
#[inline(never)]
fn check_arrays(
    rank: usize,
    outputs: &[libsplit_tensor],
    reads: Reads<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    let descriptors = Span::of_slice(outputs);
    if let Some(other) = reads.under(descriptors) {
        return report.refuse(Error::ArrayOverlap { argument: "outputs", other });
    }
    if are_side_by_side(rank, outputs, reads) {
        return Ok(());
    }
    let field = |at: usize| if at.is_multiple_of(2) { "shape" } else { "strides" };
    let span = |at: usize| {
        let Some(output) = outputs.get(at / 2).filter(|output| !is_unwanted(output)) else {
            return Span::default();
        };
        Span::of_array(if at.is_multiple_of(2) { output.shape } else { output.strides }, rank)
    };
    for (index, output) in outputs.iter().enumerate() {
        if is_unwanted(output) {
            continue;
        }
        for at in [2 * index, 2 * index + 1] {
            let span = span(at);
            if reads.are_apart([span]) && span.is_apart(descriptors) || span.is_empty() {
                continue;
            }
            let own = span.intersects(descriptors).then_some(Which::Output(index));
            if let Some(other) = reads.under(span).or(own) {
                let field = field(at);
                return report.refuse(Error::DescriptorOverlap { output: index, field, other });
            }
        }
    }
    match overlap::meeting(outputs.len().saturating_mul(2), &span) {
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
                usize::try_from(bits.unsigned_abs().div_ceil(8)).ok()
            }
            Some(_) => Some(0),
            None => None,
        };
        if let Some(bytes) = bytes {
            return Ok(bytes);
        }
        report.refuse(Error::TooManyElements { which: Which::Output(piece.index) })
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
    let (outer, inner) = geometry.outer_and_inner();
    // SAFETY: the caller's promise.
    let mut axes = unsafe {
        (*output).rank = i32::try_from(rank).unwrap_or(0);
        (*output).dtype = libsplit_dtype(geometry.dtype as i32);
        Axes {
            shape: (*output).shape.wrapping_add(rank),
            strides: (*output).strides.wrapping_add(rank),
            has_strides: !(*output).strides.is_null(),
            packed: 1,
            given: strides.map(|strides| strides.as_ptr_range().end),
        }
    };
    // SAFETY: the caller's promise; there are as many axes as the rank says.
    unsafe {
        for extent in inner.iter().rev() {
            axes.put(*extent, *extent, true);
        }
        axes.put(len, extent, geometry.keeps_axis);
        for extent in outer.iter().rev() {
            axes.put(*extent, *extent, true);
        }
    }
}

/// The axes of an output, written innermost first.
struct Axes {
    /// Where the last one was written.
    shape: *mut i64,
    strides: *mut i64,
    has_strides: bool,
    /// The stride of the next one in a packed tensor.
    packed: i64,
    /// Where the last one was read, of the strides that it is to have in place of packed ones.
    given: Option<*const i64>,
}

impl Axes {
    /// # Safety
    /// There must be room for another axis, and as many strides given as there are axes.
    #[inline(always)]
    unsafe fn put(&mut self, len: i64, extent: i64, is_kept: bool) {
        let mut stride = self.packed;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(given) = &mut self.given {
                *given = given.wrapping_sub(1);
                stride = **given;
            }
            if is_kept {
                self.shape = self.shape.wrapping_sub(1);
                *self.shape = len;
                if self.has_strides {
                    self.strides = self.strides.wrapping_sub(1);
                    *self.strides = stride;
                }
            }
        }
        self.packed = if self.packed < 0 || extent < 0 {
            LIBSPLIT_DIM_UNKNOWN
        } else {
            // What is known fits, as has been checked.
            self.packed.wrapping_mul(extent.max(1))
        };
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
    // SAFETY: promise 1.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call = Call::parse(input, params, None, Look::AtShape, &mut room, report)?;
        let plan = &call.plan;
        parse::checked(count, "count", report)?;
        match usize::try_from(plan.count()) {
            Ok(number) => count.write(number),
            Err(_) => return report.refuse(Error::TooManyElements { which: Which::Input }),
        }
    }
    Ok(())
}
