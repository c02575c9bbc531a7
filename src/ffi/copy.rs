//! Copies: each output is checked, then all of them are checked against each other and against what is read, and then
//! bytes move.

use super::executor::Pool;
use super::outputs::{check_apart, check_each, check_each_closely, Written};
use super::parse::{self, ParsedCall};
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::{self, Executor};
use crate::error::Error;
use crate::overlap::{first_crossing, Numbered};
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::span::Span;
use crate::words::Argument;
use core::mem::{offset_of, MaybeUninit};

/// [`super::libsplit_copy`].
pub unsafe fn copy(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
) -> Result<(), Error> {
    let (mut room, given) = (MaybeUninit::uninit(), Some(num_outputs));
    // SAFETY: promises 1 and 2.
    unsafe {
        let call = ParsedCall::parse(input, params, given, false, error, &mut room)?;
        let pool = Pool::parse(executor, &mut call.reads.executor)?;
        let outputs = parse::descriptors(outputs, num_outputs)?;
        call.copy(outputs, pool.as_ref().map(|pool| pool as &dyn Executor))
    }
}

impl ParsedCall<'_> {
    /// Makes a parsed copy. Outputs that overlap what is read are refused.
    ///
    /// # Safety
    /// Promises 1 and 2, for what the call's input and the outputs describe.
    pub(crate) unsafe fn copy(
        &self,
        outputs: &[libsplit_tensor],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let Self { geometry, pieces, input, reads } = self;
        let source = input.span(geometry.elements, Argument::Input)?;
        geometry.check_addressable()?;
        let mut room = MaybeUninit::uninit();
        // SAFETY: promises 1 and 2.
        let Written { trail, is_clear, are_packed, bytes, .. } = unsafe {
            if check_each(geometry, pieces, outputs, &mut room) {
                room.assume_init()
            } else {
                check_each_closely(geometry, pieces, outputs)?
            }
        };
        let transfer = Transfer {
            geometry,
            source: input.data,
            strides: input.strides.filter(|_| bytes > 0 && !input.is_packed()),
            bit_offset: input.bit_offset,
            parts: Parts { pieces, targets: fields(outputs, offset_of!(libsplit_tensor, data)) },
            output_strides: if are_packed {
                OutputStrides::Packed
            } else {
                let strides = fields(outputs, offset_of!(libsplit_tensor, strides));
                OutputStrides::Described { strides, rank: geometry.output_rank() }
            },
            bytes,
        };
        check_apart(&transfer, trail, source, reads, Span::of_slice(outputs))?;
        if !is_clear {
            check_arrays(outputs, &transfer, trail.hull)?;
        }
        // SAFETY: promise 5.
        unsafe { copy::run(&transfer, executor) }
    }
}

/// Returns a field of all descriptors, `offset` bytes from the start of each.
fn fields<T>(outputs: &[libsplit_tensor], offset: usize) -> Pointers<'_, T> {
    let first = outputs.as_ptr().wrapping_byte_add(offset);
    // SAFETY: as many descriptors are borrowed.
    unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) }
}

/// Checks that no output overlaps the shape or strides of any output.
#[cold]
#[inline(never)]
fn check_arrays(
    outputs: &[libsplit_tensor],
    transfer: &Transfer<'_>,
    hull: Span,
) -> Result<(), Error> {
    let (count, rank) = (outputs.len(), transfer.geometry.output_rank());
    let spans = |at: usize| match at.checked_sub(count) {
        None => transfer.written(at),
        // Arrays are numbered after the outputs. Most lie elsewhere.
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
            let other = Argument::Output((array - count) / 2);
            Err(Error::DataOverDescriptor { output, other })
        }
    }
}
