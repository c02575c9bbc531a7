//! Whether the outputs of a copy are apart from each other and from everything that is read.

use super::lattice::{meet, Lattice, BUDGET};
use super::{clash, first_crossing, first_meeting, Clash, Numbered, Spans, Tensors, Trail};
use crate::copy::are_one_tensor;
use crate::descriptor::array_span;
use crate::error::Error;
use crate::parts::Transfer;
use crate::reads::{Area, Reads};
use crate::span::Span;
use crate::types::libsplit_tensor;
use crate::words::{Argument, Field};

/// Checks that no output overlaps the input, another output, anything else that is read, or the `array` of descriptors
/// or addresses. `trail` has seen all outputs.
pub(crate) fn check_apart(
    transfer: &Transfer<'_>,
    trail: Trail,
    input: Span,
    reads: &Reads<'_>,
    array: Span,
) -> Result<(), Error> {
    let Trail { hull, is_apart } = trail;
    let is_clear = hull.is_apart(input) && hull.is_apart(array) && reads.under(hull).is_none();
    if is_apart && is_clear {
        return Ok(());
    }
    check_bytes(transfer, trail, input, reads, array)
}

/// [`check_apart`], byte by byte.
#[cold]
fn check_bytes(
    transfer: &Transfer<'_>,
    trail: Trail,
    input: Span,
    reads: &Reads<'_>,
    array: Span,
) -> Result<(), Error> {
    let outputs = &Outputs::new(transfer);
    let mut budget = BUDGET;
    let mut found = None;
    if !trail.hull.is_apart(input) {
        found = first_over(outputs, input, &mut budget);
    }
    if found.is_none() && !trail.is_apart && !are_one_tensor(transfer) {
        found = clash(outputs, &mut budget);
    }
    if let Some(Clash { output, other, is_sure }) = found {
        return Err(match other {
            _ if is_sure => Error::Overlap { output, other },
            Argument::Input => Error::NotShownApartFromInput { output },
            _ => Error::NotShownApart { output, other },
        });
    }
    let array = Area { argument: Argument::Outputs, span: array };
    match reads.first_under(outputs, trail.hull, array) {
        None => Ok(()),
        Some((output, other)) => Err(Error::UsedElsewhere { output, field: Field::Itself, other }),
    }
}

/// Returns the first output that overlaps elements of the input, or may do so.
#[inline(never)] // for its stack
fn first_over(outputs: &Outputs<'_>, input: Span, budget: &mut usize) -> Option<Clash> {
    let is_near = |output: &usize| outputs.span(*output).intersects(input);
    let first = (0..outputs.len()).find(is_near)?;
    let geometry = outputs.transfer.geometry;
    let lattice = match outputs.transfer.strides {
        Some(strides) => {
            let mut dims = geometry.shape.iter().copied().zip(strides.iter().copied());
            Lattice::strided(input, (geometry.dtype.bits() / 8).into(), &mut dims)
        }
        None => Lattice::whole(input),
    };
    (first..outputs.len()).filter(is_near).find_map(|output| {
        let answer = meet(&outputs.lattice(output), &lattice, budget);
        let clash = Clash { output, other: Argument::Input, is_sure: answer.is_some() };
        (answer != Some(false)).then_some(clash)
    })
}

/// Checks that no output overlaps the shape or strides of any output. All outputs lie within the hull.
#[cold]
pub(crate) fn check_arrays_are_kept(
    outputs: &[libsplit_tensor],
    transfer: &Transfer<'_>,
    hull: Span,
) -> Result<(), Error> {
    let count = outputs.len();
    let rank = transfer.geometry.output_rank();
    // Arrays are numbered after the outputs. Most lie elsewhere.
    let spans = |number: usize| match number.checked_sub(count) {
        None => transfer.written(number),
        Some(array) => {
            let near = Some(array_span(outputs, array, rank)).filter(|span| !span.is_apart(hull));
            near.unwrap_or_default()
        }
    };
    match first_crossing(count, &Numbered(count.saturating_mul(3), &spans)) {
        None => Ok(()),
        Some((output, array)) => {
            let other = Argument::Output((array - count) / 2);
            Err(Error::UsedElsewhere { output, field: Field::Itself, other })
        }
    }
}

/// Checks that the arrays of outputs, which are about to be filled in, overlap neither each other nor anything else in
/// use. All of them lie within the hull.
#[cold]
pub(crate) fn check_arrays_to_fill(
    outputs: &[libsplit_tensor],
    rank: usize,
    hull: Span,
    reads: &Reads<'_>,
) -> Result<(), Error> {
    let descriptors = Area { argument: Argument::Outputs, span: Span::of_slice(outputs) };
    if let Some(other) = reads.under(descriptors.span) {
        return Err(Error::ArrayOverlap { argument: Argument::Outputs, other });
    }
    let span = |array: usize| array_span(outputs, array, rank);
    let spans = Numbered(outputs.len().saturating_mul(2), &span);
    let another =
        || first_meeting(&spans).map(|(array, other)| (array, Argument::Output(other / 2)));
    match reads.first_under(&spans, hull, descriptors).or_else(another) {
        None => Ok(()),
        Some((array, other)) => {
            let field = if array.is_multiple_of(2) { Field::Shape } else { Field::Strides };
            Err(Error::UsedElsewhere { output: array / 2, field, other })
        }
    }
}

/// The outputs of a copy.
struct Outputs<'a> {
    transfer: &'a Transfer<'a>,
    /// Whether each begins with its first element, so that most need no closer look.
    are_upward: bool,
}

impl<'a> Outputs<'a> {
    fn new(transfer: &'a Transfer<'a>) -> Self {
        let is_upward = |index| {
            let span = transfer.written(index);
            span.is_empty() || span.start == transfer.parts.targets.get(index) as usize
        };
        let are_upward =
            transfer.output_strides.are_packed() || (0..transfer.parts.count()).all(is_upward);
        Self { transfer, are_upward }
    }
}

impl Spans for Outputs<'_> {
    fn len(&self) -> usize {
        self.transfer.parts.count()
    }

    fn span(&self, index: usize) -> Span {
        self.transfer.written(index)
    }

    fn start(&self, index: usize) -> usize {
        if self.are_upward {
            self.transfer.parts.targets.get(index) as usize
        } else {
            self.span(index).start
        }
    }
}

impl Tensors for Outputs<'_> {
    fn lattice(&self, index: usize) -> Lattice {
        let span = self.span(index);
        let unit = self.transfer.geometry.dtype.bits() / 8;
        let part = self.transfer.parts.get(index);
        match part.as_ref().and_then(|part| self.transfer.output_dims(part)) {
            Some(mut dims) => Lattice::strided(span, unit.into(), &mut dims),
            None => Lattice::whole(span),
        }
    }
}
