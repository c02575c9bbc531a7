//! What `infer` and `view` write into output descriptors: all of them are checked, then filled.

use super::parse::{check_array, is_unwanted, Arguments};
use super::types::{libsplit_dtype, libsplit_tensor, LIBSPLIT_DIM_UNKNOWN};
use crate::error::{number, Error, Which};
use crate::memory::{byte_reach, Memory, Span};
use crate::plan::{Piece, Plan};
use crate::shape::{self, DIM_UNKNOWN};

/// Fills shapes, packed strides and sizes.
///
/// # Safety
/// The outputs' arrays must have the room that their capacity states.
pub(super) unsafe fn infer(
    arguments: &Arguments<'_>,
    plan: &Plan<'_>,
    outputs: &mut [libsplit_tensor],
) -> Result<(), Error> {
    let descriptors = Span::of_slice(outputs);
    let mut before = [(0, Span::default()); 2];
    for (piece, output) in wanted(plan, outputs) {
        check_room(arguments, None, descriptors, plan, piece, output)?;
        check_not_shared(plan, piece, output, &mut before)?;
        packed_bytes(plan, piece)?;
    }
    for (piece, output) in wanted(plan, outputs) {
        // SAFETY: room was checked above, and the arrays do not lie in the input's.
        unsafe {
            write_shape(plan, piece, output);
            write_packed_strides(plan, piece.len, output);
        }
        output.data_bytes = packed_bytes(plan, piece)?;
        output.bit_offset = 0;
    }
    Ok(())
}

/// Fills shapes and points the outputs into the input.
///
/// # Safety
/// The outputs' arrays must have the room that their capacity states.
pub(super) unsafe fn view(
    arguments: &Arguments<'_>,
    plan: &Plan<'_>,
    outputs: &mut [libsplit_tensor],
) -> Result<(), Error> {
    // SAFETY: the promise under which the arguments were parsed still holds.
    let input = unsafe { arguments.input() }?;
    let has_elements = input.span_of(plan.elements, Which::Input)?.is_some();
    // Strides of a tensor without elements say nothing: its views are packed.
    let strides = input.strides.filter(|_| has_elements);
    let place = Place { input, has_elements, strides };
    let descriptors = Span::of_slice(outputs);
    let mut before = [(0, Span::default()); 2];
    for (piece, output) in wanted(plan, outputs) {
        check_room(arguments, input.strides, descriptors, plan, piece, output)?;
        check_not_shared(plan, piece, output, &mut before)?;
        if output.strides.is_null() && !place.is_packed(plan, piece) {
            return Err(Error::ViewNotPacked { output: piece.index });
        }
    }
    for (piece, output) in wanted(plan, outputs) {
        // SAFETY: room was checked above, and the arrays do not lie in the input's.
        unsafe {
            write_shape(plan, piece, output);
            match place.strides {
                Some(strides) => write_strides(output, plan.output_strides(strides)),
                None if has_elements => write_packed_strides(plan, plan.extent, output),
                None => write_packed_strides(plan, piece.len, output),
            }
        }
        place.point(plan, piece, output);
    }
    Ok(())
}

/// The outputs that the caller wants, each with its piece.
fn wanted<'a, 'b: 'a>(
    plan: &'a Plan<'_>,
    outputs: &'b mut [libsplit_tensor],
) -> impl Iterator<Item = (Piece, &'b mut libsplit_tensor)> + 'a {
    plan.pieces().zip(outputs.iter_mut()).filter(|(_, output)| !is_unwanted(output))
}

/// That an output's arrays are there, long enough, and not the ones that are still read.
fn check_room(
    arguments: &Arguments<'_>,
    input_strides: Option<&[i64]>,
    descriptors: Span,
    plan: &Plan<'_>,
    piece: Piece,
    output: &libsplit_tensor,
) -> Result<(), Error> {
    let index = piece.index;
    let which = Which::Output(index);
    let rank = plan.output_rank();
    if usize::try_from(output.capacity).map_or(true, |capacity| capacity < rank) {
        let expected = number(rank);
        return Err(Error::Capacity { output: index, expected, actual: output.capacity.into() });
    }
    if rank == 0 {
        return Ok(());
    }
    check_array(output.shape, which, "shape")?;
    if !output.strides.is_null() {
        check_array(output.strides, which, "strides")?;
    }
    for (field, array) in [("shape", output.shape), ("strides", output.strides)] {
        let written = array_span(array, rank);
        let reads = |read: &[i64]| written.intersects(Span::of_slice(read));
        let other = if reads(arguments.shape) || input_strides.is_some_and(reads) {
            Which::Input
        } else if arguments.lengths_span.is_some_and(|lengths| written.intersects(lengths)) {
            Which::Split
        } else if written.intersects(descriptors)
            || field == "strides" && written.intersects(array_span(output.shape, rank))
        {
            which
        } else {
            continue;
        };
        return Err(Error::DescriptorOverlap { output: index, field, other });
    }
    Ok(())
}

/// That an output does not have its arrays from the wanted output before it, as happens where one
/// array is meant to serve all.
fn check_not_shared(
    plan: &Plan<'_>,
    piece: Piece,
    output: &libsplit_tensor,
    before: &mut [(usize, Span); 2],
) -> Result<(), Error> {
    let own = |array| (piece.index, array_span(array, plan.output_rank()));
    let arrays = [own(output.shape), own(output.strides)];
    for (field, (index, array)) in ["shape", "strides"].into_iter().zip(arrays) {
        if let Some((other, _)) = before.iter().find(|(_, other)| array.intersects(*other)) {
            let other = Which::Output(*other);
            return Err(Error::DescriptorOverlap { output: index, field, other });
        }
    }
    *before = arrays;
    Ok(())
}

fn array_span(array: *const i64, len: usize) -> Span {
    let start = array as usize;
    let bytes = if array.is_null() { 0 } else { len.saturating_mul(size_of::<i64>()) };
    Span { start, end: start.saturating_add(bytes) }
}

/// Bytes of a packed output, 0 while an extent is unknown; what is known must not overflow.
fn packed_bytes(plan: &Plan<'_>, piece: Piece) -> Result<usize, Error> {
    let which = Which::Output(piece.index);
    let is_known = |extent: &i64| *extent != DIM_UNKNOWN;
    let known = plan.output_shape(piece).filter(is_known);
    let elements = shape::element_count(known, plan.dtype.bits(), which)?;
    if !plan.output_shape(piece).all(|extent| is_known(&extent)) {
        return Ok(0);
    }
    let bytes = shape::packed_bytes(elements, plan.dtype.bits());
    usize::try_from(bytes).map_err(|_| Error::TooManyElements { which })
}

/// # Safety
/// The output's shape must have room for its rank.
unsafe fn write_shape(plan: &Plan<'_>, piece: Piece, output: &mut libsplit_tensor) {
    for (axis, extent) in plan.output_shape(piece).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { output.shape.add(axis).write(extent) };
    }
    output.rank = i32::try_from(plan.output_rank()).unwrap_or(0);
    output.dtype = libsplit_dtype(plan.dtype as i32);
}

/// # Safety
/// The output's strides must be NULL or have room for its rank.
unsafe fn write_strides(output: &mut libsplit_tensor, strides: impl Iterator<Item = i64>) {
    if output.strides.is_null() {
        return;
    }
    for (axis, stride) in strides.enumerate() {
        // SAFETY: the caller's promise.
        unsafe { output.strides.add(axis).write(stride) };
    }
}

/// The packed strides of the input's shape with `extent` on the axis, as an output has them.
///
/// # Safety
/// As [`write_strides`].
unsafe fn write_packed_strides(plan: &Plan<'_>, extent: i64, output: &mut libsplit_tensor) {
    if output.strides.is_null() {
        return;
    }
    let mut stride = 1i64;
    let mut slot = plan.output_rank();
    for (axis, &input_extent) in plan.shape.iter().enumerate().rev() {
        let is_split = axis == plan.axis;
        if !is_split || plan.keeps_axis {
            slot -= 1;
            // SAFETY: the caller's promise; `slot` is below the rank.
            unsafe { output.strides.add(slot).write(stride) };
        }
        stride = match if is_split { extent } else { input_extent } {
            _ if stride == LIBSPLIT_DIM_UNKNOWN => stride,
            DIM_UNKNOWN => LIBSPLIT_DIM_UNKNOWN,
            extent => stride.saturating_mul(extent.max(1)),
        };
    }
}

/// An input as views see it.
struct Place<'a> {
    input: Memory<'a>,
    has_elements: bool,
    /// The input's own strides, where it has such and elements that they matter to.
    strides: Option<&'a [i64]>,
}

impl<'a> Place<'a> {
    /// Whether a piece lies in the input as a packed tensor would.
    fn is_packed(&self, plan: &Plan<'a>, piece: Piece) -> bool {
        if !self.has_elements || piece.len == 0 {
            return true;
        }
        match self.strides {
            None => plan.outer == 1 || piece.len == plan.extent,
            Some(strides) => shape::is_packed(
                plan.output_shape(piece).rev().zip(plan.output_strides(strides).rev()),
            ),
        }
    }

    /// The lowest and the highest element of a piece that has some, in elements from its first.
    fn reach(&self, plan: &Plan<'a>, piece: Piece) -> Result<(i64, i64), Error> {
        match self.strides {
            None => {
                let rows = (plan.outer - 1) * plan.extent;
                Ok((0, (rows + piece.len) * plan.inner - 1))
            }
            Some(strides) => {
                let dims = plan.output_shape(piece).zip(plan.output_strides(strides));
                shape::reach(dims, Which::Output(piece.index))
            }
        }
    }

    /// Points an output at its piece of the input.
    fn point(&self, plan: &Plan<'a>, piece: Piece, output: &mut libsplit_tensor) {
        output.data = self.input.data.cast();
        output.bit_offset = 0;
        output.data_bytes = 0;
        if !self.has_elements {
            return;
        }
        let bits = plan.dtype.bits();
        let stride = match self.strides {
            // The stride of an extent-1 axis may be anything, and only an empty piece follows it.
            _ if plan.extent == 1 => 0,
            None => plan.inner,
            Some(strides) => strides.get(plan.axis).copied().unwrap_or(0),
        };
        let begin = piece.offset.wrapping_mul(stride);
        let (bytes, bit_offset) = if bits >= 8 {
            (begin.wrapping_mul(i64::from(bits / 8)), 0)
        } else {
            let begin = begin.wrapping_mul(bits.into()).wrapping_add(self.input.bit_offset.into());
            (begin.div_euclid(8), begin.rem_euclid(8))
        };
        output.data = self.input.data.wrapping_offset(isize::try_from(bytes).unwrap_or(0)).cast();
        output.bit_offset = u32::try_from(bit_offset).unwrap_or(0);
        if piece.len > 0 {
            // Within the input's reach, which was checked.
            let (low, high) = self.reach(plan, piece).unwrap_or((0, 0));
            let bytes = byte_reach(low, high, bits, bit_offset).map_or(0, |(_, bytes)| bytes);
            output.data_bytes = usize::try_from(bytes).unwrap_or(0);
        }
    }
}
