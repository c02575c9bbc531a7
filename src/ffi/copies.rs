//! A copy: every output is looked at once, and then all bytes move.

#![allow(clippy::inline_always)] // on the way of every call

use super::executor::Pool;
use super::parse::{self, Call, Look};
use super::reads::Reads;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::{self, Executor};
use crate::error::{Error, Fault, Report, Which};
use crate::overlap;
use crate::parts::{OutputStrides, Part, Parts, Pointers, Transfer, FEW_PARTS};
use crate::plan::{Geometry, Plan};
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
        let outputs = parse::descriptors(outputs, num_outputs, report)?;
        let pool = Pool::parse(executor, report)?;
        let pool = pool.as_ref().map(|pool| pool as &dyn Executor);
        copy_parsed(&call, outputs, pool, || Reads::new(&call, error, executor), report)
    }
}

/// # Safety
/// What the call's input and the outputs describe must be valid for what they say.
#[inline(always)]
pub(crate) unsafe fn copy_parsed(
    call: &Call<'_>,
    outputs: &[libsplit_tensor],
    pool: Option<&dyn Executor>,
    reads: impl FnOnce() -> Reads,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        let plan = call.plan(Look::AtLayout, report)?;
        let span = call.input.span(plan.geometry.elements, Which::Input, report)?;
        let mut parts = [const { MaybeUninit::<Part>::uninit() }; FEW_PARTS];
        let mut seen = Outputs::new(span);
        let mut arrays = Span::NOWHERE;
        for piece in plan.pieces() {
            let (index, len) = (piece.index, piece.len);
            let Some(output) = outputs.get(index).filter(|output| !parse::is_unwanted(output))
            else {
                continue;
            };
            let (target, elements) = parse_output(&plan.geometry, index, len, output, report)?;
            arrays = arrays.hull(Span::of_slice(target.shape));
            if let Some(strides) = target.strides {
                arrays = arrays.hull(Span::of_slice(strides));
            }
            if elements == 0 {
                target.check_bit_offset(Which::Output(index), report)?;
                continue;
            }
            let which = Which::Output(index);
            if target.data.is_null() {
                return report.refuse(Error::NullField { which, field: "data" });
            }
            let (reach, is_packed) = targets::layout(index, &target, elements, report)?;
            let span = reach.place(target.data, which, report)?;
            if let Some(slot) = parts.get_mut(seen.parts) {
                slot.write(Part { index, offset: piece.offset, len, target: target.data });
            }
            seen.push(span, is_packed, plan.geometry.piece_bytes(len));
        }
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
        let reads = reads();
        let in_use = reads.hull().hull(arrays).hull(Span::of_slice(outputs));
        if in_use.intersects(seen.trail.hull) {
            check_reads(&plan, &transfer, &reads, outputs, report)?;
        }
        if seen.parts <= FEW_PARTS || outputs.len() / 4 < seen.parts {
            return copy::run(&transfer, pool, report);
        }
        in_batches(&transfer, pool, report)
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
    let which = Which::Output(index);
    let dtype = parse::dtype_of(output, which, report)?;
    let rank = parse::rank_of(output, which, report)?;
    // SAFETY: the caller's promise.
    unsafe {
        let shape = parse::array(output.shape, rank, which, "shape", report)?;
        let strides = if output.strides.is_null() {
            None
        } else {
            Some(parse::array(output.strides, rank, which, "strides", report)?)
        };
        if dtype != geometry.dtype || rank != geometry.output_rank() {
            let dtype = dtype as i32;
            return Err(targets::wrong_type_or_rank(geometry, index, dtype, rank, report));
        }
        targets::check_shape(geometry, index, len, shape, report)?;
        let tensor = Tensor {
            data: output.data.cast(),
            data_bytes: output.data_bytes,
            dtype,
            shape,
            strides,
            bit_offset: output.bit_offset,
        };
        Ok((tensor, geometry.piece_elements(len)))
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
#[cold]
#[inline(never)]
fn check_reads(
    plan: &Plan<'_>,
    transfer: &Transfer<'_>,
    reads: &Reads,
    outputs: &[libsplit_tensor],
    report: &mut Report,
) -> Result<(), Fault> {
    let count = transfer.parts.count();
    let descriptors = Span::of_slice(outputs);
    for at in 0..count {
        let span = transfer.span(at);
        let output = transfer.index(at);
        match reads.under(span) {
            Some(Which::Split) if reads.lengths().intersects(span) => {
                return report.refuse(Error::Overlap { output, other: Which::Split });
            }
            Some(other) => return report.refuse(Error::DataOverDescriptor { output, other }),
            None => {}
        }
        if span.intersects(descriptors) {
            let other = Which::Output(output);
            return report.refuse(Error::DataOverDescriptor { output, other });
        }
    }
    // Shapes and strides of all outputs follow the outputs in number.
    let rank = plan.geometry.output_rank();
    let arrays = |at: usize| {
        let Some(output) = outputs.get(at / 2).filter(|output| !parse::is_unwanted(output)) else {
            return Span::default();
        };
        Span::of_array(if at % 2 == 0 { output.shape } else { output.strides }, rank)
    };
    let spans = |at: usize| match at.checked_sub(count) {
        None => transfer.span(at),
        Some(at) => arrays(at),
    };
    match overlap::crossing(count, outputs.len().saturating_mul(2), &spans) {
        None => Ok(()),
        Some((at, array)) => {
            let (output, other) = (transfer.index(at), Which::Output((array - count) / 2));
            report.refuse(Error::DataOverDescriptor { output, other })
        }
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
