//! What a copy checks before the first byte moves.

use crate::error::{number, Error, Which};
use crate::memory::{Memory, Outputs, Span};
use crate::overlap::{self, Overlaps};
use crate::plan::{Piece, Plan};

/// What the checks found.
pub(crate) struct Checked {
    /// Whether the input and every wanted output are packed.
    pub all_packed: bool,
    /// Bytes of all wanted outputs, counted as if they were packed.
    pub bytes: usize,
}

/// Checks the input and every wanted output against the plan and against each other.
/// `lengths` is where the lengths lie, which are still read while outputs are written.
pub(crate) fn copy(
    plan: &Plan<'_>,
    input: &Memory<'_>,
    lengths: Option<Span>,
    outputs: &impl Outputs,
) -> Result<Checked, Error> {
    let input_span = input.span_of(plan.elements, Which::Input)?;
    let mut checked = Checked { all_packed: input.is_packed(), bytes: 0 };
    let mut overlaps = Overlaps::new();
    for piece in plan.pieces() {
        let Some(output) = outputs.get(piece.index)? else { continue };
        let Some((span, is_packed)) = check_output(plan, piece, &output)? else { continue };
        if let Some(input_span) = input_span {
            if span.intersects(input_span) && !overlap::interleave(input, input_span, &output, span)
            {
                return Err(Error::Overlap { output: piece.index, other: Which::Input });
            }
        }
        check_not_read(span, input, lengths, outputs, &output, piece.index)?;
        overlaps.push(span);
        checked.all_packed &= is_packed;
        // The pieces do not add up to more than the input.
        checked.bytes += plan.piece_bytes(piece);
    }
    overlaps.check(outputs, checked.all_packed)?;
    if !checked.all_packed {
        overlap::check_strides(outputs)?;
    }
    Ok(checked)
}

/// That writing an output leaves alone what is still read meanwhile: the lengths, and the arrays
/// of the descriptors.
fn check_not_read(
    span: Span,
    input: &Memory<'_>,
    lengths: Option<Span>,
    outputs: &impl Outputs,
    memory: &Memory<'_>,
    output: usize,
) -> Result<(), Error> {
    if lengths.is_some_and(|lengths| span.intersects(lengths)) {
        return Err(Error::Overlap { output, other: Which::Split });
    }
    let touches = |array: &[i64]| span.intersects(Span::of_slice(array));
    let has_arrays_in =
        |tensor: &Memory<'_>| touches(tensor.shape) || tensor.strides.is_some_and(touches);
    let other = if has_arrays_in(input) {
        Which::Input
    } else if has_arrays_in(memory) || span.intersects(outputs.descriptors()) {
        Which::Output(output)
    } else {
        return Ok(());
    };
    Err(Error::DataOverDescriptor { output, other })
}

/// Checks one output alone; gives its span, and whether it is packed, if it has elements.
fn check_output(
    plan: &Plan<'_>,
    piece: Piece,
    output: &Memory<'_>,
) -> Result<Option<(Span, bool)>, Error> {
    let index = piece.index;
    if output.dtype != plan.dtype {
        let (expected, actual) = (plan.dtype as i64, output.dtype as i64);
        return Err(Error::OutputDType { output: index, expected, actual });
    }
    if output.shape.len() != plan.output_rank() {
        let (expected, actual) = (number(plan.output_rank()), number(output.shape.len()));
        return Err(Error::OutputRank { output: index, expected, actual });
    }
    let extents = output.shape.iter().zip(plan.output_shape(piece));
    for (axis, (&actual, expected)) in extents.enumerate() {
        if actual != expected {
            return Err(Error::OutputShape { output: index, axis, expected, actual });
        }
    }
    match output.span_of(plan.piece_elements(piece), Which::Output(index))? {
        None => Ok(None),
        Some(span) => Ok(Some((span, check_writable(index, output)?))),
    }
}

/// That each element has an address of its own, and sub-byte ones whole bytes to themselves. Gives
/// whether the output is packed.
fn check_writable(index: usize, output: &Memory<'_>) -> Result<bool, Error> {
    let is_packed = output.is_packed();
    if !output.dtype.is_sub_byte() {
        return if is_packed || output.strides_nest() {
            Ok(is_packed)
        } else {
            Err(Error::StridesCollide { output: index })
        };
    }
    if output.bit_offset != 0 {
        let (which, actual) = (Which::Output(index), output.bit_offset.into());
        return Err(Error::BitOffsetNotZero { which, expected: 0, actual });
    }
    if is_packed {
        Ok(true)
    } else {
        Err(Error::SubByteStrides { output: index })
    }
}
