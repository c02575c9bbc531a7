//! A call: an input, how it is split, and the memory that is read.
//!
//! # Safety
//! For everything unsafe here: promises 1, 2 and 5 of [`crate::ffi`].

use crate::copy::{self, Executor};
use crate::error::Error;
use crate::geometry::Geometry;
use crate::outputs::Written;
use crate::overlap;
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::pieces::Pieces;
use crate::reads::Reads;
#[cfg(all(feature = "alloc", not(feature = "capi")))]
use crate::rules::Request;
use crate::span::Span;
use crate::tensor::Tensor;
use crate::types::libsplit_tensor;
use crate::words::Argument;
use core::mem::offset_of;

/// A call, parsed and planned: everything but its outputs.
pub(crate) struct ParsedCall<'a> {
    pub input: Tensor<'a>,
    pub geometry: Geometry<'a>,
    pub pieces: Pieces<'a>,
    /// The memory that the call reads, which nothing that it writes may overlap.
    pub reads: Reads<'a>,
}

impl<'a> ParsedCall<'a> {
    /// Plans a call from Rust.
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn new(input: Tensor<'a>, request: &Request<'a>) -> Result<Self, Error> {
        let keepdims = request.keepdims || request.lengths.is_some();
        let request = &Request { keepdims, ..*request };
        let geometry = Geometry::new(request, &input)?;
        let pieces = request.pieces(input.dtype, geometry.extent)?;
        Ok(Self { input, geometry, pieces, reads: Reads::NOTHING })
    }

    /// Copies each piece to its output. Outputs that overlap what is read, or each other, are refused.
    ///
    /// # Safety
    /// The input must be readable, and every output writable, over all that their descriptors say.
    pub(crate) unsafe fn copy(
        &self,
        outputs: &[libsplit_tensor],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let Self { geometry, pieces, input, reads } = self;
        let source = input.span(geometry.elements, Argument::Input)?;
        geometry.check_addressable()?;
        // SAFETY: promises 1 and 2.
        let written = match unsafe { Written::of_plain(geometry, pieces, outputs) } {
            Some(written) => written,
            // SAFETY: as above.
            None => unsafe { Written::of_any(geometry, pieces, outputs) }?,
        };
        let strides = match input.strides {
            Some(strides) if written.bytes > 0 && !input.is_packed() => Some(strides),
            _ => None,
        };
        let transfer = Transfer {
            geometry,
            source: input.data,
            strides,
            bit_offset: input.bit_offset,
            parts: Parts { pieces, targets: fields(outputs, offset_of!(libsplit_tensor, data)) },
            output_strides: if written.are_packed {
                OutputStrides::Packed
            } else {
                let strides = fields(outputs, offset_of!(libsplit_tensor, strides));
                OutputStrides::Described { strides, rank: geometry.output_rank() }
            },
            bytes: written.bytes,
        };
        overlap::check_apart(&transfer, written.trail, source, reads, Span::of_slice(outputs))?;
        if !written.are_arrays_kept {
            overlap::check_arrays_are_kept(outputs, &transfer, written.trail.hull)?;
        }
        // SAFETY: promise 5.
        unsafe { copy::execute(&transfer, executor) }
    }
}

/// Returns a field of all descriptors, `offset` bytes from the start of each.
fn fields<T>(outputs: &[libsplit_tensor], offset: usize) -> Pointers<'_, T> {
    let first = outputs.as_ptr().wrapping_byte_add(offset);
    // SAFETY: as many descriptors are borrowed.
    unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) }
}
