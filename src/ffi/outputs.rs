//! Checks of the outputs of a copy: each of them by itself, then all of them against each other and against everything
//! that is read.

use super::parse::{is_unwanted, tensor_of, Look};
use super::reads::Reads;
use super::types::libsplit_tensor;
use crate::error::{number, Error};
use crate::geometry::Geometry;
use crate::overlap::lattice::{meet, Answer, Lattice, BUDGET};
use crate::overlap::{self, first_meeting, Clash, Numbered, See, Spans, Tensors, Trail};
use crate::parts::Transfer;
use crate::shape::{self, rank_number};
use crate::span::Span;
use crate::tensor::Reach;
use crate::words::Argument;

/// What an output reaches over (nothing if it has no elements), how many bytes are copied to it, and whether it is
/// packed.
#[derive(Clone, Copy)]
pub(super) struct Checked {
    pub reach: Reach,
    pub bytes: i64,
    pub is_packed: bool,
}

/// Checks everything about an output except its address: that type, rank and extents are the operator's, that no two
/// elements share an address, and that as much memory is there as it reaches over. Returns `None` if the output is not
/// wanted.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)] // in the loop over outputs
pub(super) unsafe fn check_output(
    geometry: &Geometry<'_>,
    (index, len): (usize, i64),
    output: &libsplit_tensor,
) -> Result<Option<Checked>, Error> {
    let bytes = geometry.output_bytes(len);
    // SAFETY: promises 1 and 2.
    unsafe {
        if is_packed(geometry, len, output)
            && (output.data_bytes == 0 || bytes.cast_unsigned() <= output.data_bytes as u64)
        {
            return Ok(Some(Checked { reach: Reach::packed(bytes), bytes, is_packed: true }));
        }
        if is_unwanted(output) {
            return Ok(None);
        }
        check_closely(geometry, (index, len), output).map(Some)
    }
}

/// Returns whether an output is a packed tensor of the right type and shape, as most are. A scalar may be one, too,
/// without this finding out.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)]
unsafe fn is_packed(geometry: &Geometry<'_>, len: i64, output: &libsplit_tensor) -> bool {
    let (mut at, shape, strides) = (geometry.output_rank(), output.shape, output.strides);
    if output.dtype.0 != geometry.dtype as i32
        || output.rank != rank_number(at)
        || output.bit_offset != 0
        || shape.is_null()
        || !shape.is_aligned()
        || !strides.is_aligned()
    {
        return false;
    }
    let mut packed = 1i64;
    for (axis, own) in geometry.shape.iter().enumerate().rev() {
        let is_split = axis == geometry.axis;
        if is_split && !geometry.keeps_axis {
            continue;
        }
        at = at.wrapping_sub(1);
        let extent = if is_split { len } else { *own };
        // SAFETY: arrays that are not NULL have an entry for each axis.
        unsafe {
            if *shape.add(at) != extent {
                return false;
            }
            if !strides.is_null() && *strides.add(at) != packed && extent != 1 {
                return false;
            }
        }
        // The product of the input's extents fits.
        packed = packed.wrapping_mul(extent);
    }
    true
}

/// [`check_output`] of any output, with an error that says what is wrong.
///
/// # Safety
/// Promises 1 and 2.
#[cold]
#[inline(never)]
unsafe fn check_closely(
    geometry: &Geometry<'_>,
    (index, len): (usize, i64),
    output: &libsplit_tensor,
) -> Result<Checked, Error> {
    let argument = Argument::Output(index);
    // SAFETY: promises 1 and 2.
    let tensor = unsafe { tensor_of(output, Look::AtLayout, argument) }?;
    let output = index;
    if tensor.dtype != geometry.dtype {
        let (expected, actual) = (geometry.dtype as i64, tensor.dtype as i64);
        return Err(Error::OutputDType { output, expected, actual });
    }
    if tensor.shape.len() != geometry.output_rank() {
        let (expected, actual) = (number(geometry.output_rank()), number(tensor.shape.len()));
        return Err(if geometry.keeps_axis {
            Error::OutputRank { output, expected, actual }
        } else {
            Error::OutputRankDropped { output, expected, actual }
        });
    }
    for (axis, (expected, &actual)) in geometry.output_shape(len).zip(tensor.shape).enumerate() {
        if expected != actual {
            return Err(Error::OutputShape { output, axis, expected, actual });
        }
    }
    if tensor.bit_offset != 0 {
        let actual = tensor.bit_offset.into();
        return Err(Error::BitOffsetNotZero { argument, expected: 0, actual });
    }
    let packed = Reach::packed(geometry.output_bytes(len));
    if packed.bytes == 0 {
        return Ok(Checked { reach: packed, bytes: 0, is_packed: true });
    }
    let is_packed = tensor.is_packed();
    let reach = if is_packed { packed } else { tensor.strided_reach(argument)? };
    tensor.check_data_bytes(reach, argument)?;
    if !is_packed {
        if geometry.dtype.is_sub_byte() {
            return Err(Error::SubByteStrides { output });
        }
        if let Some((axis, expected, actual)) = shape::colliding(&tensor.dims()) {
            return Err(Error::StridesCollide { output, axis, expected, actual });
        }
    }
    Ok(Checked { reach, bytes: packed.bytes, is_packed })
}

/// Checks that no output overlaps the input, another output, anything else that is read, or the `array` of descriptors
/// or addresses. `trail` has seen the spans of all outputs.
#[inline]
pub(super) fn check_apart(
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
#[inline(never)]
fn check_bytes(
    transfer: &Transfer<'_>,
    trail: Trail,
    input: Span,
    reads: &Reads<'_>,
    array: Span,
) -> Result<(), Error> {
    let mut budget = BUDGET;
    if !trail.hull.is_apart(input) {
        check_input(transfer, input, &mut budget)?;
    }
    let clash = if trail.is_apart {
        None
    } else if transfer.output_strides.are_packed() {
        first_meeting(transfer).map(|(output, other)| Clash { output, other, is_sure: true })
    } else {
        overlap::clash(transfer, &mut budget)
    };
    if let Some(Clash { output, other, is_sure }) = clash {
        return Err(overlapping(output, Argument::Output(other), is_sure));
    }
    match reads.first_under(transfer, trail.hull, array) {
        None => Ok(()),
        Some((output, Some(other @ Argument::Lengths)))
            if reads.lengths.intersects(transfer.written(output)) =>
        {
            Err(overlapping(output, other, true))
        }
        Some((output, owner)) => {
            let other = owner.unwrap_or(Argument::Outputs);
            Err(Error::DataOverDescriptor { output, other })
        }
    }
}

fn overlapping(output: usize, other: Argument, is_sure: bool) -> Error {
    if is_sure {
        Error::Overlap { output, other }
    } else {
        Error::NotShownApart { output, other }
    }
}

/// Checks that no output overlaps elements of the input.
#[inline(never)] // for its stack
fn check_input(transfer: &Transfer<'_>, input: Span, budget: &mut usize) -> Result<(), Error> {
    let geometry = &transfer.geometry;
    let lattice = match transfer.strides {
        Some(strides) if !geometry.dtype.is_sub_byte() => {
            let mut dims = geometry.shape.iter().copied().zip(strides.iter().copied());
            Lattice::strided(input, transfer.element_bytes(), &mut dims)
        }
        _ => Lattice::whole(input),
    };
    let count = transfer.parts.count();
    for output in (0..count).filter(|output| transfer.written(*output).intersects(input)) {
        let answer = meet(&transfer.lattice(output), &lattice, budget);
        if answer != Answer::Apart {
            return Err(overlapping(output, Argument::Input, answer == Answer::Meet));
        }
    }
    Ok(())
}

impl Spans for Transfer<'_> {
    fn len(&self) -> usize {
        self.parts.count()
    }

    fn span(&self, index: usize) -> Span {
        self.written(index)
    }

    fn starts(&self, low: usize, high: usize, see: &mut See<'_>) {
        if self.output_strides.are_packed() {
            // They begin at their addresses, so most need no closer look.
            return self.parts.targets.starts(low, high, see);
        }
        Numbered(self.len(), &|index| self.written(index)).starts(low, high, see);
    }
}

impl Transfer<'_> {
    fn element_bytes(&self) -> i64 {
        i64::from(self.geometry.dtype.bits() / 8)
    }
}

impl Tensors for Transfer<'_> {
    fn lattice(&self, index: usize) -> Lattice {
        let span = self.written(index);
        match self.parts.get(index).as_ref().and_then(|part| self.output_dims(part)) {
            Some(mut dims) => Lattice::strided(span, self.element_bytes(), &mut dims),
            None => Lattice::whole(span),
        }
    }
}
