//! A copy: every output is checked, then all of them against each other and what is read; then bytes move.

use super::executor::Pool;
use super::outputs::Written;
use super::parse::{self, Look, ParsedCall};
use super::reads::Owner;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::{self, Executor};
use crate::error::Error;
use crate::overlap::{first_crossing, Kept, Numbered, Spans, Trail};
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::span::Span;
use crate::words::Which;
use core::mem::{offset_of, MaybeUninit};

/// [`super::libsplit_copy`], with a reason in place of a status; `error` is only memory that outputs must not
/// lie over.
///
/// # Errors
/// As that function.
///
/// # Safety
/// As that function.
pub unsafe fn copy(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call = ParsedCall::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room)?;
        call.reads.set_error(error);
        let pool;
        let mut on = None::<&dyn Executor>;
        if !executor.is_null() {
            pool = Pool::parse(executor)?;
            call.reads.set(Owner::Executor, Span::of_bytes(executor, (*executor).struct_size));
            on = Some(&pool);
        }
        let outputs = parse::descriptors(outputs, num_outputs)?;
        copy_parsed(call, outputs, on)
    }
}

/// Copies by a parsed call.
///
/// # Safety
/// Promises 1 and 2, for what the call's input and the outputs describe.
#[inline(never)] // once in the library
pub(crate) unsafe fn copy_parsed(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    let geometry = &call.geometry;
    let input = call.input.span(geometry.elements, Which::Input)?;
    geometry.check_addressable()?;
    // SAFETY: promises 1 and 2.
    let written = unsafe { Written::check(call, outputs) }?;
    let transfer = transfer(call, outputs, &written);
    let hull = written.trail.hull;
    if !(written.trail.is_apart
        && hull.is_apart(input)
        && (hull.is_apart(written.arrays) && hull.is_apart(Span::of_slice(outputs))
            || are_in_order(call, outputs, &transfer))
        && call.reads.are_apart(hull))
    {
        check_closely(call, outputs, &transfer, &written, input)?;
    }
    if transfer.bytes == 0 {
        return Ok(());
    }
    // SAFETY: promise 5.
    unsafe { copy::run(&transfer, executor) }
}

/// A checked copy, as the engine takes it.
#[inline]
fn transfer<'a>(
    call: &'a ParsedCall<'_>,
    outputs: &'a [libsplit_tensor],
    written: &Written,
) -> Transfer<'a> {
    let ParsedCall { geometry, pieces, input, .. } = call;
    let bytes = written.bytes;
    Transfer {
        geometry: *geometry,
        source: input.data,
        strides: input.strides.filter(|_| bytes > 0 && !input.is_packed()),
        bit_offset: input.bit_offset,
        parts: Parts::Ruled { pieces, targets: fields(outputs, offset_of!(libsplit_tensor, data)) },
        output_strides: if written.are_packed {
            OutputStrides::Packed
        } else {
            let strides = fields(outputs, offset_of!(libsplit_tensor, strides));
            OutputStrides::Described { strides, rank: geometry.output_rank() }
        },
        bytes,
    }
}

/// A field of all descriptors, so far from the begin of each.
fn fields<T>(outputs: &[libsplit_tensor], offset: usize) -> Pointers<'_, T> {
    let first = outputs.as_ptr().wrapping_byte_add(offset);
    // SAFETY: as many descriptors are borrowed.
    unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) }
}

/// Whether descriptors, and after them the arrays and the elements of each output, lie above or below all before
/// them, as allocations made one after the other do.
#[inline(never)] // of most it is not asked
fn are_in_order(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    transfer: &Transfer<'_>,
) -> bool {
    let (rank, mut trail) = (call.geometry.output_rank(), Trail::EMPTY);
    trail.push(Span::of_slice(outputs));
    for (piece, output) in call.pieces.iter().zip(outputs) {
        let [shape, strides] = parse::arrays(output, rank);
        trail.push(shape);
        trail.push(strides);
        let data = if transfer.output_strides.are_packed() {
            Span::of_bytes(output.data, call.geometry.piece_bytes(piece.len))
        } else {
            transfer.written(piece.index)
        };
        if !data.is_empty() {
            trail.push(data);
        }
        if !trail.is_apart {
            break;
        }
    }
    trail.is_apart
}

/// Checks that no output lies over the input, other outputs, or what else is read, of outputs whose hull does.
#[cold]
#[inline(never)]
fn check_closely(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    transfer: &Transfer<'_>,
    written: &Written,
    input: Span,
) -> Result<(), Error> {
    let spans = Kept::new(transfer);
    written.check_apart(transfer, &spans, input)?;
    check_reads(call, outputs, &spans, [written.trail.hull, written.arrays])
}

/// Checks that no output lies over structures, lengths, descriptors, or arrays of outputs.
fn check_reads(
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
    written: &Kept<'_>,
    [hull, arrays]: [Span; 2],
) -> Result<(), Error> {
    let (reads, descriptors) = (&call.reads, Span::of_slice(outputs));
    let count = outputs.len();
    if reads.any_meets(descriptors, hull, written) {
        for output in 0..count {
            let span = written.span(output);
            if let Some(other) = reads.under(span) {
                let is_lengths = reads.lengths().intersects(span);
                return Err(match other {
                    Which::Split if is_lengths => Error::Overlap { output, other },
                    _ => Error::DataOverDescriptor { output, other },
                });
            }
            if span.intersects(descriptors) {
                let other = Which::Output(output);
                return Err(Error::DataOverDescriptor { output, other });
            }
        }
    }
    if arrays.is_apart(hull) {
        return Ok(());
    }
    let rank = call.geometry.output_rank();
    let spans = |at: usize| match at.checked_sub(count) {
        None => written.span(at),
        // They follow the outputs in number; most lie elsewhere.
        Some(array) => {
            let span = parse::array_span(outputs, array, rank);
            if span.is_apart(hull) {
                Span::default()
            } else {
                span
            }
        }
    };
    match first_crossing(count, &Numbered(count.saturating_mul(3), &spans)) {
        None => Ok(()),
        Some((output, array)) => {
            let other = Which::Output((array - count) / 2);
            Err(Error::DataOverDescriptor { output, other })
        }
    }
}
