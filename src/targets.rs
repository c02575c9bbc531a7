//! What a copy asks of its outputs: each for itself, and all of them against each other.

#![forbid(unsafe_code)]

use crate::copy::Joined;
use crate::error::{number, Error, Fault, Report, Which};
use crate::overlap::lattice::{self, Answer, Lattice};
use crate::overlap::spans::{self, See, Spans, Trail};
use crate::overlap::{self, Clash, Places};
use crate::parts::{Part, Parts, Transfer};
use crate::plan::{Geometry, Piece};
use crate::shape;
use crate::span::Span;
use crate::stacked::Stacked;
use crate::tensor::{Reach, Tensor};

/// That an output has the type, rank and extents that the operator gives, and begins at a whole
/// byte.
pub(crate) fn check_type_and_shape(
    geometry: &Geometry<'_>,
    Piece { index: output, len, .. }: Piece,
    tensor: &Tensor<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    if tensor.dtype != geometry.dtype {
        let (expected, actual) = (geometry.dtype as i64, tensor.dtype as i64);
        return report.refuse(Error::OutputDType { output, expected, actual });
    }
    if tensor.shape.len() != geometry.output_rank() {
        let (expected, actual) = (number(geometry.output_rank()), number(tensor.shape.len()));
        return report.refuse(Error::OutputRank { output, expected, actual });
    }
    let both = geometry.output_shape(len).zip(tensor.shape.iter().copied());
    for (axis, (expected, actual)) in both.enumerate() {
        if actual != expected {
            return report.refuse(Error::OutputShape { output, axis, expected, actual });
        }
    }
    if tensor.bit_offset != 0 {
        let (which, actual) = (Which::Output(output), tensor.bit_offset.into());
        return report.refuse(Error::BitOffsetNotZero { which, expected: 0, actual });
    }
    Ok(())
}

/// Checks the layout of an output with elements: that each element has an address of its own, and
/// sub-byte ones whole bytes to themselves. Gives its reach, and whether it is packed.
pub(crate) fn layout(
    output: usize,
    tensor: Tensor<'_>,
    elements: i64,
    report: &mut Report,
) -> Result<(Reach, bool), Fault> {
    let which = Which::Output(output);
    let reach = tensor.reach(elements, which, report)?;
    tensor.check_data_bytes(reach, which, report)?;
    if tensor.is_packed() {
        return Ok((reach, true));
    }
    if tensor.dtype.is_sub_byte() {
        return report.refuse(Error::SubByteStrides { output });
    }
    if !tensor.strides_nest() {
        return report.refuse(Error::StridesCollide { output });
    }
    Ok((reach, false))
}

/// Sees the outputs of a copy go by.
#[derive(Clone, Copy)]
pub(crate) struct Outputs {
    pub trail: Trail,
    pub bytes: usize,
    pub are_packed: bool,
    pub input: Span,
    pub meets_input: bool,
}

impl Outputs {
    pub(crate) fn new(input: Span) -> Self {
        let trail = Trail::EMPTY;
        Self { trail, bytes: 0, are_packed: true, input, meets_input: false }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, span: Span, is_packed: bool, bytes: usize) {
        self.trail.push(span);
        if !span.is_apart(self.input) {
            self.meets_input = true;
        }
        if !is_packed {
            self.are_packed = false;
        }
        // The pieces do not add up to more than the input.
        self.bytes += bytes;
    }

    /// Whether no output overlaps the input or another, which is plain to see in most calls.
    #[inline(always)]
    pub(crate) fn are_apart(&self) -> bool {
        self.trail.is_apart && !self.meets_input
    }

    /// The same where it is not. Gives whether all of them make `one` matrix, as which they are copied.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_closely(
        &self,
        transfer: &Transfer<'_>,
        one: &mut Stacked,
        report: &mut Report,
    ) -> Result<bool, Fault> {
        if self.meets_input {
            check_input(transfer, self.input, report)?;
        }
        let are_one = !self.trail.is_apart && one.stack(transfer).is_some();
        if self.trail.is_apart || are_one {
            return Ok(are_one);
        }
        if !self.are_packed && Joined::are_apart(transfer) {
            return Ok(false);
        }
        let found = if self.are_packed {
            let found = spans::meeting(transfer);
            found.map(|(output, other)| Clash { output, other, is_sure: true })
        } else {
            overlap::clash(transfer)
        };
        let Some(Clash { output, other, is_sure }) = found else { return Ok(false) };
        let (output, other) = (transfer.index(output), Which::Output(transfer.index(other)));
        report.refuse(overlapping(output, other, is_sure))
    }
}

fn overlapping(output: usize, other: Which, is_sure: bool) -> Error {
    if is_sure {
        Error::Overlap { output, other }
    } else {
        Error::NotShownApart { output, other }
    }
}

/// That no output lies over elements of the input.
#[inline(never)]
fn check_input(transfer: &Transfer<'_>, input: Span, report: &mut Report) -> Result<(), Fault> {
    let geometry = &transfer.geometry;
    let lattice = match transfer.strides {
        Some(strides) if !geometry.dtype.is_sub_byte() => {
            let mut dims = geometry.shape.iter().copied().zip(strides.iter().copied());
            Lattice::strided(input, geometry.dtype.bits() / 8, &mut dims)
        }
        _ => Lattice::whole(input),
    };
    for at in 0..transfer.parts.count() {
        if !transfer.span(at).intersects(input) {
            continue;
        }
        let answer = lattice::meet(&transfer.lattice(at), &lattice);
        if answer != Answer::Apart {
            let (output, is_sure) = (transfer.index(at), answer == Answer::Meet);
            return report.refuse(overlapping(output, Which::Input, is_sure));
        }
    }
    Ok(())
}

impl Transfer<'_> {
    /// A part, all but its offset, by its place among them.
    pub(crate) fn part(&self, at: usize) -> Option<Part> {
        match &self.parts {
            Parts::Listed(parts) => parts.get(at).copied(),
            Parts::Ruled { pieces, targets } => {
                let (len, target) = (pieces.length(at), targets.get(at));
                let part = Part { index: at, offset: 0, len, target };
                (len > 0 && !target.is_null()).then_some(part)
            }
            Parts::Planned { parts, targets } => {
                let part = parts.get(at)?;
                Some(part.to(targets.get(part.index)))
            }
        }
    }

    /// The address that a part goes to, if it has elements.
    #[inline(always)]
    fn address(&self, at: usize) -> usize {
        let target = match &self.parts {
            Parts::Listed(parts) => parts.get(at).map(|part| part.target),
            Parts::Ruled { targets, .. } => Some(targets.get(at)),
            Parts::Planned { parts, targets } => parts.get(at).map(|part| targets.get(part.index)),
        };
        target.map_or(0, |target| target as usize)
    }

    /// The output that a part goes to.
    pub(crate) fn index(&self, at: usize) -> usize {
        self.part(at).map_or(at, |part| part.index)
    }

    /// The steps of a part that is strided: extents and strides of its output.
    fn dims(&self, part: &Part) -> Option<impl Iterator<Item = (i64, i64)> + Clone + '_> {
        let strides = self.output_strides.get(part.index)?;
        Some(self.geometry.output_shape(part.len).zip(strides.iter().copied()))
    }

    /// The memory that is written, from the lowest byte to the highest.
    pub(crate) fn span(&self, at: usize) -> Span {
        let Some(part) = self.part(at) else { return Span::default() };
        let start = part.target as usize;
        match self.dims(&part) {
            None => Span { start, end: start + self.geometry.piece_bytes(part.len) },
            Some(dims) => {
                // They have been found to lie within the address space.
                let (low, high) = shape::reach(dims).unwrap_or_default();
                let size = i64::from(self.geometry.dtype.bits() / 8);
                let at = |element: i64| {
                    let bytes = isize::try_from(element.wrapping_mul(size)).unwrap_or(0);
                    start.wrapping_add_signed(bytes)
                };
                Span { start: at(low), end: at(high.wrapping_add(1)) }
            }
        }
    }
}

impl Spans for Transfer<'_> {
    fn len(&self) -> usize {
        self.parts.count()
    }

    fn span(&self, index: usize) -> Span {
        Transfer::span(self, index)
    }

    fn within(&self, window: Span, visit: &mut See<'_>) -> Option<usize> {
        if self.output_strides.are_packed() {
            // They begin where they are addressed: most need no closer look.
            return spans::within(self, |at| self.address(at), window, visit);
        }
        spans::within(self, |at| self.span(at).start, window, visit)
    }
}

impl Places for Transfer<'_> {
    fn lattice(&self, index: usize) -> Lattice {
        let span = Transfer::span(self, index);
        let part = self.part(index);
        match part.as_ref().and_then(|part| self.dims(part)) {
            Some(mut dims) => Lattice::strided(span, self.geometry.dtype.bits() / 8, &mut dims),
            None => Lattice::whole(span),
        }
    }
}
