//! What a copy asks of its outputs: each for itself, and all of them against each other and the input.

use super::parse::{check_array, dtype_of, rank_of};
use super::types::libsplit_tensor;
use crate::error::{number, Error};
use crate::geometry::{Geometry, Piece};
use crate::overlap::lattice::{meet, Answer, Lattice, BUDGET};
use crate::overlap::{self, first_meeting, Axes, Clash, Kept, See, Spans, Tensors, Trail};
use crate::parts::{Parts, Transfer};
use crate::shape::{self, rank_number};
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
#[inline]
pub(super) unsafe fn check_output(
    geometry: &Geometry<'_>,
    piece: Piece,
    output: &libsplit_tensor,
) -> Result<Checked, Error> {
    let rank = geometry.output_rank();
    let (shape, strides) = (output.shape.cast_const(), output.strides.cast_const());
    let has_arrays = rank == 0 || !shape.is_null() && shape.is_aligned() && strides.is_aligned();
    if output.dtype.0 != geometry.dtype as i32 || output.rank != rank_number(rank) || !has_arrays {
        return Err(wrong_header(geometry, piece.index, output));
    }
    let (mut packed, mut is_packed, mut at) = (1i64, true, rank);
    for (axis, own) in geometry.shape.iter().enumerate().rev() {
        let is_split = axis == geometry.axis;
        if is_split && !geometry.keeps_axis {
            continue;
        }
        at = at.wrapping_sub(1);
        // SAFETY: there are as many entries as the rank says, which is the operator's.
        unsafe {
            let extent = *shape.add(at);
            if extent != if is_split { piece.len } else { *own } {
                return Err(wrong_extent(geometry, piece, slice::from_raw_parts(shape, rank)));
            }
            if !strides.is_null() {
                is_packed &= *strides.add(at) == packed || extent == 1;
            }
            packed = packed.wrapping_mul(extent);
        }
    }
    if output.bit_offset != 0 {
        let (which, actual) = (Which::Output(piece.index), output.bit_offset.into());
        return Err(Error::BitOffsetNotZero { which, expected: 0, actual });
    }
    // The extents multiply to the number of elements.
    let bytes = shape::packed_bytes(packed, geometry.dtype.bits());
    let has_memory = output.data_bytes == 0 || output.data_bytes as u64 >= bytes.cast_unsigned();
    if (is_packed && has_memory) || bytes == 0 {
        return Ok(Checked { reach: Reach { low: 0, bytes }, is_packed: true });
    }
    // SAFETY: as above.
    unsafe { check_layout(geometry, piece, output, packed) }
}

/// What is wrong with type, rank or arrays.
#[cold]
#[inline(never)]
fn wrong_header(geometry: &Geometry<'_>, index: usize, output: &libsplit_tensor) -> Error {
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
        let (expected, actual) = (number(geometry.output_rank()), number(rank));
        Err::<(), _>(if geometry.keeps_axis {
            Error::OutputRank { output: index, expected, actual }
        } else {
            Error::OutputRankDropped { output: index, expected, actual }
        })
    };
    judge().err().unwrap_or(Error::Internal)
}

/// The first extent that is not the operator's.
#[cold]
#[inline(never)]
fn wrong_extent(geometry: &Geometry<'_>, piece: Piece, shape: &[i64]) -> Error {
    let both = geometry.output_shape(piece.len).zip(shape.iter().copied());
    let wrong = both.enumerate().find(|(_, (expected, actual))| expected != actual);
    wrong.map_or(Error::Internal, |(axis, (expected, actual))| Error::OutputShape {
        output: piece.index,
        axis,
        expected,
        actual,
    })
}

/// Checks a layout that is not packed, or has too little memory.
///
/// # Safety
/// As [`check_output`]; type, rank, arrays and extents must be right.
#[cold]
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
    pub are_packed: bool,
    /// Bytes of all outputs, as if they were packed.
    pub bytes: usize,
}

impl Written {
    pub(super) const NONE: Self = Self { trail: Trail::EMPTY, are_packed: true, bytes: 0 };

    #[inline]
    pub(super) fn push(&mut self, span: Span, is_packed: bool, bytes: usize) {
        self.trail.push(span);
        self.are_packed &= is_packed;
        // The pieces do not add up to more than the input, which is addressable, but for bits that are
        // filled up to whole bytes.
        self.bytes = self.bytes.saturating_add(bytes);
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

impl Tensors for Transfer<'_> {
    fn element_bytes(&self) -> i64 {
        i64::from(self.geometry.dtype.bits() / 8)
    }

    fn split_axis(&self) -> Option<usize> {
        self.geometry.keeps_axis.then_some(self.geometry.axis)
    }

    fn axes(&self, index: usize) -> Axes {
        if let Some(dims) = self.output_dims(index) {
            return Axes::new(dims);
        }
        Axes::packed(self.geometry.output_shape(self.parts.len_of(index)))
    }

    fn lattice(&self, index: usize) -> Lattice {
        let span = self.written(index);
        match self.output_dims(index) {
            Some(mut dims) => Lattice::strided(span, self.element_bytes(), &mut dims),
            None => Lattice::whole(span),
        }
    }
}
