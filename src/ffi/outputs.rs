//! What a copy asks of its outputs: each for itself, and all of them against each other and the input.

use super::parse::{check_array, dtype_of, is_unwanted, rank_of, ParsedCall};
use super::types::libsplit_tensor;
use crate::error::{number, Error};
use crate::geometry::{Geometry, Piece};
use crate::overlap::lattice::{meet, Answer, Lattice, BUDGET};
use crate::overlap::{self, first_meeting, Clash, Kept, See, Spans, Tensors, Trail};
use crate::parts::{Parts, Transfer};
use crate::shape::{self, rank_number, usize_of};
use crate::span::Span;
use crate::tensor::{Reach, Tensor};
use crate::words::{Field, Which};
use core::slice;

/// What an output reaches over, nothing if it has no elements, and whether it is packed.
#[derive(Clone, Copy)]
pub(super) struct Checked {
    pub reach: Reach,
    pub is_packed: bool,
}

/// Checks everything about an output but its address: type, rank and extents are the operator's, no two
/// elements share an address, and as much memory is there as it reaches over.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)]
pub(super) unsafe fn check_output(
    geometry: &Geometry<'_>,
    piece: Piece,
    output: &libsplit_tensor,
) -> Result<Checked, Error> {
    let rank = geometry.output_rank();
    let (shape, strides) = (output.shape.cast_const(), output.strides.cast_const());
    let has_arrays = rank == 0 || !shape.is_null() && shape.is_aligned() && strides.is_aligned();
    // SAFETY: there are as many entries as the rank says, which is the operator's.
    let is_right = output.dtype.0 == geometry.dtype as i32
        && output.rank == rank_number(rank)
        && output.bit_offset == 0
        && has_arrays
        && unsafe { has_extents(geometry, piece.len, shape) };
    if !is_right {
        // SAFETY: as above.
        return Err(unsafe { wrong_output(geometry, piece, output) });
    }
    let elements = geometry.piece_elements(piece.len);
    let bytes = shape::packed_bytes(elements, geometry.dtype.bits());
    let has_memory = output.data_bytes == 0 || output.data_bytes as u64 >= bytes.cast_unsigned();
    // SAFETY: as above.
    let is_packed = strides.is_null() || bytes == 0 || unsafe { are_packed(shape, strides, rank) };
    if (has_memory && is_packed) || bytes == 0 {
        return Ok(Checked { reach: Reach { low: 0, bytes }, is_packed: true });
    }
    // SAFETY: as above.
    unsafe { check_layout(geometry, piece, output, elements) }
}

/// Whether the extents of an output of `len` steps are these.
///
/// # Safety
/// There must be as many as the rank of outputs.
#[inline]
unsafe fn has_extents(geometry: &Geometry<'_>, len: i64, extents: *const i64) -> bool {
    let (axis, rank, own) = (geometry.axis, geometry.shape.len(), geometry.shape.as_ptr());
    let dropped = usize::from(!geometry.keeps_axis);
    // SAFETY: the caller's promise.
    unsafe {
        (0..axis).all(|at| *extents.add(at) == *own.add(at))
            && (!geometry.keeps_axis || *extents.add(axis) == len)
            && (axis + 1..rank).all(|at| *extents.add(at - dropped) == *own.add(at))
    }
}

/// Whether strides are those of packed elements; of extents that are 1 they do not matter.
///
/// # Safety
/// There must be `rank` of each, and none of the extents may be 0.
#[inline(never)] // for its registers
unsafe fn are_packed(extents: *const i64, strides: *const i64, rank: usize) -> bool {
    let mut packed = 1i64;
    // SAFETY: the caller's promise.
    unsafe {
        (0..rank).rev().all(|at| {
            let (extent, expected) = (*extents.add(at), packed);
            packed = packed.wrapping_mul(extent);
            *strides.add(at) == expected || extent == 1
        })
    }
}

/// What is wrong with an output's type, rank, arrays, extents or bit offset: the first of them.
///
/// # Safety
/// As [`check_output`].
#[cold]
#[inline(never)]
unsafe fn wrong_output(geometry: &Geometry<'_>, piece: Piece, output: &libsplit_tensor) -> Error {
    let index = piece.index;
    let which = Which::Output(index);
    let judge = || {
        let (dtype, rank) = (dtype_of(output, which)?, rank_of(output, which)?);
        if rank > 0 {
            check_array(output.shape, which, Field::Shape)?;
            if !output.strides.is_null() {
                check_array(output.strides, which, Field::Strides)?;
            }
        }
        if dtype != geometry.dtype {
            let (expected, actual) = (geometry.dtype as i64, dtype as i64);
            return Err(Error::OutputDType { output: index, expected, actual });
        }
        if rank != geometry.output_rank() {
            let (expected, actual) = (number(geometry.output_rank()), number(rank));
            return Err(if geometry.keeps_axis {
                Error::OutputRank { output: index, expected, actual }
            } else {
                Error::OutputRankDropped { output: index, expected, actual }
            });
        }
        for (axis, expected) in geometry.output_shape(piece.len).enumerate() {
            // SAFETY: there are as many entries as the rank says, which is the operator's.
            let actual = unsafe { *output.shape.add(axis) };
            if expected != actual {
                return Err(Error::OutputShape { output: index, axis, expected, actual });
            }
        }
        let actual = output.bit_offset.into();
        Err::<(), _>(Error::BitOffsetNotZero { which, expected: 0, actual })
    };
    judge().err().unwrap_or(Error::Internal)
}

/// Checks a layout that has strides, or too little memory.
///
/// # Safety
/// As [`check_output`]; type, rank, arrays and extents must be right, and there must be elements.
#[inline(never)]
unsafe fn check_layout(
    geometry: &Geometry<'_>,
    piece: Piece,
    output: &libsplit_tensor,
    elements: i64,
) -> Result<Checked, Error> {
    let (which, rank) = (Which::Output(piece.index), geometry.output_rank());
    // SAFETY: the caller's promise.
    let array = |array: *const i64| unsafe { slice::from_raw_parts(array, rank) };
    let is_scalar = rank == 0;
    let tensor = Tensor {
        data: output.data.cast(),
        data_bytes: output.data_bytes,
        dtype: geometry.dtype,
        shape: if is_scalar { &[] } else { array(output.shape) },
        strides: (!is_scalar && !output.strides.is_null()).then(|| array(output.strides)),
        bit_offset: 0,
    };
    let reach = tensor.reach(elements, which)?;
    tensor.check_data_bytes(reach, which)?;
    let is_packed = tensor.is_packed();
    if is_packed {
        return Ok(Checked { reach, is_packed });
    }
    if geometry.dtype.is_sub_byte() {
        return Err(Error::SubByteStrides { output: piece.index });
    }
    let collision = shape::colliding(&tensor.dims());
    match collision {
        None => Ok(Checked { reach, is_packed }),
        Some((axis, expected, actual)) => {
            Err(Error::StridesCollide { output: piece.index, axis, expected, actual })
        }
    }
}

/// What has been seen of the outputs of a copy.
pub(super) struct Written {
    pub trail: Trail,
    /// The hull of their shapes and strides.
    pub arrays: Span,
    pub are_packed: bool,
    /// Bytes of all outputs, as if they were packed.
    pub bytes: usize,
}

impl Written {
    pub(super) const NONE: Self =
        Self { trail: Trail::EMPTY, arrays: Span::NOWHERE, are_packed: true, bytes: 0 };

    /// Checks all outputs of a copy, each for itself.
    ///
    /// # Safety
    /// Promises 1 and 2.
    #[inline(never)] // for its registers
    pub(super) unsafe fn check(
        call: &ParsedCall<'_>,
        outputs: &[libsplit_tensor],
    ) -> Result<Self, Error> {
        let (geometry, mut written) = (call.geometry, Self::NONE);
        let rank = geometry.output_rank();
        for (piece, output) in call.pieces.iter().zip(outputs) {
            if output.shape.is_null() && is_unwanted(output) {
                continue;
            }
            // SAFETY: promises 1 and 2.
            let Checked { reach, is_packed } = unsafe { check_output(&geometry, piece, output) }?;
            // The shape of a scalar may be NULL, too.
            if !output.shape.is_null() {
                written.arrays = written.arrays.hull(Span::of_array(output.shape, rank));
            }
            if !output.strides.is_null() {
                written.arrays = written.arrays.hull(Span::of_array(output.strides, rank));
            }
            if reach.bytes == 0 {
                continue;
            }
            let (data, which) = (output.data.cast::<u8>(), Which::Output(piece.index));
            if data.is_null() {
                return Err(Error::NullField { which, field: Field::Data });
            }
            let mut bytes = reach.bytes;
            if !is_packed {
                written.are_packed = false;
                bytes =
                    shape::packed_bytes(geometry.piece_elements(piece.len), geometry.dtype.bits());
            }
            written.trail.push(reach.place(data, which)?);
            // The pieces do not add up to more than the input, which is addressable, but for bits that are
            // filled up to whole bytes.
            written.bytes = written.bytes.wrapping_add(usize_of(bytes));
        }
        Ok(written)
    }

    /// Checks that no output lies over the input or another output, byte by byte.
    #[cold]
    #[inline(never)]
    pub(super) fn check_apart(
        &self,
        transfer: &Transfer<'_>,
        written: &Kept<'_>,
        input: Span,
    ) -> Result<(), Error> {
        let mut budget = BUDGET;
        if !self.trail.hull.is_apart(input) {
            check_input(transfer, written, input, &mut budget)?;
        }
        if self.trail.is_apart {
            return Ok(());
        }
        let clash = if self.are_packed {
            first_meeting(written).map(|(output, other)| Clash { output, other, is_sure: true })
        } else {
            overlap::clash(transfer, &mut budget)
        };
        match clash {
            None => Ok(()),
            Some(Clash { output, other, is_sure }) => {
                Err(overlapping(output, Which::Output(other), is_sure))
            }
        }
    }
}

fn overlapping(output: usize, other: Which, is_sure: bool) -> Error {
    if is_sure {
        Error::Overlap { output, other }
    } else {
        Error::NotShownApart { output, other }
    }
}

/// Checks that no output lies over elements of the input.
#[inline(never)] // for its stack
fn check_input(
    transfer: &Transfer<'_>,
    written: &Kept<'_>,
    input: Span,
    budget: &mut usize,
) -> Result<(), Error> {
    if (0..written.len()).all(|output| !written.span(output).intersects(input)) {
        return Ok(());
    }
    let geometry = &transfer.geometry;
    let lattice = match transfer.strides {
        Some(strides) if !geometry.dtype.is_sub_byte() => {
            let mut dims = geometry.shape.iter().copied().zip(strides.iter().copied());
            Lattice::strided(input, transfer.element_bytes(), &mut dims)
        }
        _ => Lattice::whole(input),
    };
    for output in 0..transfer.len() {
        if !written.span(output).intersects(input) {
            continue;
        }
        let answer = meet(&transfer.lattice(output), &lattice, budget);
        if answer != Answer::Apart {
            return Err(overlapping(output, Which::Input, answer == Answer::Meet));
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

    fn starts(&self, low: usize, mut high: usize, see: &mut See<'_>) {
        match &self.parts {
            // They begin where they are addressed: most need no closer look.
            Parts::Ruled { targets, .. } | Parts::Planned { targets, .. }
                if self.output_strides.are_packed() =>
            {
                targets.starts(low, high, see);
            }
            Parts::Listed(_) | Parts::Ruled { .. } | Parts::Planned { .. } => {
                for index in 0..self.len() {
                    let start = self.written(index).start;
                    if low <= start && start < high {
                        high = see(index, start);
                    }
                }
            }
        }
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
        match self.output_dims(index) {
            Some(mut dims) => Lattice::strided(span, self.element_bytes(), &mut dims),
            None => Lattice::whole(span),
        }
    }
}
