//! A copy: every output is looked at once, and then all bytes move.

#![allow(clippy::inline_always)] // on the way of every call

use super::executor::Pool;
use super::parse::{self, Call, Look};
use super::reads::Reads;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::{self, Executor};
use crate::error::{number, Error, Fault, Report, Which};
use crate::overlap;
use crate::parts::{OutputStrides, Part, Parts, Pointers, Transfer, FEW_PARTS};
use crate::plan::{Geometry, Piece};
use crate::shape::usize_of;
use crate::span::Span;
use crate::targets::{self, Outputs};
use crate::tensor::{Reach, Tensor};
use core::mem::{offset_of, MaybeUninit};

/// # Safety
/// As [`super::libsplit_copy`].
#[inline(always)]
pub(super) unsafe fn copy(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        let call = Call::parse(input, params, Some(num_outputs), Look::AtLayout, report)?;
        let pool = Pool::parse(executor, report)?;
        let pool = pool.as_ref().map(|pool| pool as &dyn Executor);
        let reads = Reads::new(&call, error, executor);
        copy_parsed(&call, outputs, num_outputs, pool, &reads, report)
    }
}

/// # Safety
/// What the call's input and the outputs describe must be valid for what they say.
#[inline(never)] // with all registers to itself
pub(crate) unsafe fn copy_parsed(
    call: &Call<'_>,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    pool: Option<&dyn Executor>,
    reads: &Reads,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        let plan = call.plan(Look::AtLayout, report)?;
        let outputs = parse::descriptors(outputs, num_outputs, report)?;
        let span = call.input.span(plan.geometry.elements, Which::Input, report)?;
        let mut seen = Seen {
            outputs: Outputs::new(span),
            arrays: Span::NOWHERE,
            parts: [const { MaybeUninit::uninit() }; FEW_PARTS],
        };
        for piece in plan.pieces() {
            match outputs.get(piece.index) {
                Some(output) if !parse::is_unwanted(output) => {
                    seen.see(&plan.geometry, piece, output, report)?;
                }
                _ => {}
            }
        }
        let Seen { outputs: seen, arrays, parts } = &seen;
        let parts = if seen.parts <= FEW_PARTS {
            // So many have been written.
            Parts::Listed(core::slice::from_raw_parts(parts.as_ptr().cast(), seen.parts))
        } else {
            Parts::Ruled { pieces: plan.pieces, targets: datas(outputs) }
        };
        let transfer = Transfer {
            geometry: plan.geometry,
            source: call.input.data,
            strides: call.input.strides.filter(|_| seen.parts > 0 && !call.input.is_packed()),
            bit_offset: call.input.bit_offset,
            parts,
            output_strides: if seen.are_packed {
                OutputStrides::Packed
            } else {
                strides_of(outputs, plan.geometry.output_rank())
            },
            bytes: seen.bytes,
        };
        seen.check(&transfer, report)?;
        let written = seen.trail.hull;
        if !(reads.are_apart(written)
            && arrays.is_apart(written)
            && Span::of_slice(outputs).is_apart(written))
        {
            check_reads(&plan.geometry, &transfer, reads, outputs, report)?;
        }
        if seen.parts <= FEW_PARTS || outputs.len() / 4 < seen.parts {
            return copy::run(&transfer, pool, report);
        }
        in_batches(&transfer, pool, report)
    }
}

/// The outputs that have been looked at.
struct Seen {
    outputs: Outputs,
    /// From the lowest to the highest byte of their shapes and strides.
    arrays: Span,
    /// The first of those that are wanted and have elements.
    parts: [MaybeUninit<Part>; FEW_PARTS],
}

impl Seen {
    /// Checks an output, and takes it down.
    ///
    /// # Safety
    /// As [`parse_output`].
    #[inline(always)]
    unsafe fn see(
        &mut self,
        geometry: &Geometry<'_>,
        piece: Piece,
        output: &libsplit_tensor,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let Piece { index, offset, len } = piece;
        let which = Which::Output(index);
        // SAFETY: the caller's promise.
        let (tensor, elements) = unsafe { parse_output(geometry, index, len, output, report) }?;
        self.arrays = self.arrays.hull(Span::of_slice(tensor.shape));
        if let Some(strides) = tensor.strides {
            self.arrays = self.arrays.hull(Span::of_slice(strides));
        }
        if elements == 0 {
            return tensor.check_bit_offset(which, report);
        }
        let target = tensor.data;
        if target.is_null() {
            return report.refuse(Error::NullField { which, field: "data" });
        }
        let (reach, is_packed) = targets::layout(index, &tensor, elements, report)?;
        let span = reach.place(target, which, report)?;
        let bytes = if is_packed { usize_of(reach.bytes) } else { geometry.piece_bytes(len) };
        if let Some(slot) = self.parts.get_mut(self.outputs.parts) {
            slot.write(Part { index, offset, len, target });
        }
        self.outputs.push(span, is_packed, bytes);
        Ok(())
    }
}

/// An output's descriptor, of which type, rank and shape are right, and the number of its elements.
///
/// # Safety
/// Promises 1 and 2 of [`parse`].
#[inline(always)]
pub(super) unsafe fn parse_output<'a>(
    geometry: &Geometry<'_>,
    index: usize,
    len: i64,
    output: &'a libsplit_tensor,
    report: &mut Report,
) -> Result<(Tensor<'a>, i64), Fault> {
    let (which, rank) = (Which::Output(index), geometry.output_rank());
    if output.dtype.0 != geometry.dtype as i32 || i64::from(output.rank) != number(rank) {
        return Err(not_as_given(geometry, index, output, report));
    }
    // SAFETY: the caller's promise.
    unsafe {
        let shape = parse::array(output.shape, rank, which, "shape", report)?;
        let strides = if output.strides.is_null() {
            None
        } else {
            Some(parse::array(output.strides, rank, which, "strides", report)?)
        };
        targets::check_shape(geometry, index, len, shape, report)?;
        let tensor = Tensor {
            data: output.data.cast(),
            data_bytes: output.data_bytes,
            dtype: geometry.dtype,
            shape,
            strides,
            bit_offset: output.bit_offset,
        };
        Ok((tensor, geometry.piece_elements(len)))
    }
}

/// An output whose type or rank is none, or not what the operator gives.
#[cold]
#[inline(never)]
fn not_as_given(
    geometry: &Geometry<'_>,
    index: usize,
    output: &libsplit_tensor,
    report: &mut Report,
) -> Fault {
    let which = Which::Output(index);
    let dtype = match parse::dtype_of(output, which, report) {
        Ok(dtype) => dtype,
        Err(fault) => return fault,
    };
    match parse::rank_of(output, which, report) {
        Ok(rank) => targets::wrong_type_or_rank(geometry, index, dtype, rank, report),
        Err(fault) => fault,
    }
}

/// The fields `data` of descriptors.
fn datas(outputs: &[libsplit_tensor]) -> Pointers<'_, u8> {
    let first = outputs.as_ptr().wrapping_byte_add(offset_of!(libsplit_tensor, data));
    // SAFETY: as many descriptors are borrowed.
    unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) }
}

/// The fields `strides` of descriptors.
fn strides_of(outputs: &[libsplit_tensor], rank: usize) -> OutputStrides<'_> {
    let first = outputs.as_ptr().wrapping_byte_add(offset_of!(libsplit_tensor, strides));
    // SAFETY: as many descriptors are borrowed.
    let strides =
        unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) };
    OutputStrides::Described { strides, rank }
}

/// That no output lies over memory that is read meanwhile.
#[inline(never)]
fn check_reads(
    geometry: &Geometry<'_>,
    transfer: &Transfer<'_>,
    reads: &Reads,
    outputs: &[libsplit_tensor],
    report: &mut Report,
) -> Result<(), Fault> {
    let count = transfer.parts.count();
    let (descriptors, rank) = (Span::of_slice(outputs), geometry.output_rank());
    for at in 0..count {
        let span = transfer.span(at);
        if !reads.are_apart(span) || !descriptors.is_apart(span) {
            check_read(transfer.index(at), span, reads, descriptors, report)?;
        }
    }
    // Shapes and strides of all outputs, which follow the outputs in number.
    let array = |at: usize| {
        let Some(output) = outputs.get(at / 2).filter(|output| !parse::is_unwanted(output)) else {
            return Span::default();
        };
        Span::of_array(if at % 2 == 0 { output.shape } else { output.strides }, rank)
    };
    let arrays = outputs.len().saturating_mul(2);
    let found = if count <= FEW && outputs.len() <= FEW {
        let all = (0..count).flat_map(|at| (0..arrays).map(move |array| (at, array)));
        all.into_iter().find(|(at, of)| transfer.span(*at).intersects(array(*of)))
    } else {
        let spans = |at: usize| match at.checked_sub(count) {
            None => transfer.span(at),
            Some(at) => array(at),
        };
        overlap::crossing(count, arrays, &spans).map(|(at, array)| (at, array - count))
    };
    match found {
        None => Ok(()),
        Some((at, array)) => {
            let (output, other) = (transfer.index(at), Which::Output(array / 2));
            report.refuse(Error::DataOverDescriptor { output, other })
        }
    }
}

/// So many outputs are compared with all arrays.
const FEW: usize = 8;

/// That one output does not lie over descriptors, arrays or lengths.
#[cold]
#[inline(never)]
fn check_read(
    output: usize,
    span: Span,
    reads: &Reads,
    descriptors: Span,
    report: &mut Report,
) -> Result<(), Fault> {
    match reads.under(span) {
        Some(Which::Split) if reads.lengths().intersects(span) => {
            report.refuse(Error::Overlap { output, other: Which::Split })
        }
        Some(other) => report.refuse(Error::DataOverDescriptor { output, other }),
        None if span.intersects(descriptors) => {
            let other = Which::Output(output);
            report.refuse(Error::DataOverDescriptor { output, other })
        }
        None => Ok(()),
    }
}

/// Copies the few parts of very many pieces, some of them at a time.
///
/// # Safety
/// As [`copy::run`].
#[cold]
#[inline(never)]
unsafe fn in_batches(
    transfer: &Transfer<'_>,
    pool: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    let mut all = transfer.parts.iter();
    loop {
        let mut parts = [const { MaybeUninit::<Part>::uninit() }; FEW_PARTS];
        let (mut len, mut bytes) = (0, 0);
        for (slot, part) in parts.iter_mut().zip(&mut all) {
            bytes += transfer.geometry.piece_bytes(part.len);
            slot.write(part);
            len += 1;
        }
        if len == 0 {
            return Ok(());
        }
        // SAFETY: so many have been written; and the caller's promise.
        unsafe {
            let parts = core::slice::from_raw_parts(parts.as_ptr().cast(), len);
            let some = Transfer { parts: Parts::Listed(parts), bytes, ..*transfer };
            copy::run(&some, pool, report)?;
        }
    }
}

/// What an output reaches over, and whether it is packed; nothing of one without elements.
///
/// # Safety
/// As [`parse_output`].
pub(super) unsafe fn layout_of(
    geometry: &Geometry<'_>,
    index: usize,
    len: i64,
    output: &libsplit_tensor,
    report: &mut Report,
) -> Result<Option<(Reach, bool)>, Fault> {
    // SAFETY: the caller's promise.
    let (tensor, elements) = unsafe { parse_output(geometry, index, len, output, report) }?;
    if elements == 0 {
        tensor.check_bit_offset(Which::Output(index), report)?;
        return Ok(None);
    }
    targets::layout(index, &tensor, elements, report).map(Some)
}
