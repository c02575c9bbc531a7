//! What `infer` and `view` write into output descriptors: all of them are checked, then filled.

use super::parse::{check_array, is_unwanted, Arguments};
use super::types::{libsplit_dtype, libsplit_tensor, LIBSPLIT_DIM_UNKNOWN};
use crate::error::{number, Error, Which};
use crate::memory::{byte_reach, Memory, Span};
use crate::plan::{Piece, Plan};
use crate::shape::{self, usize_of, DIM_UNKNOWN};

/// Fills shapes, packed strides and sizes.
///
/// # Safety
/// The outputs' arrays must have the room that their capacity states.
pub(super) unsafe fn infer(
    arguments: &Arguments<'_>,
    plan: &Plan<'_>,
    outputs: &mut [libsplit_tensor],
) -> Result<(), Error> {
    let mut arrays = Arrays::new(arguments, None, plan, outputs);
    for (piece, output) in wanted(plan, outputs) {
        arrays.check(piece.index, output)?;
        packed_bytes(plan, piece)?;
    }
    for (piece, output) in wanted(plan, outputs) {
        // SAFETY: room was checked above, and the arrays do not lie in the input's.
        unsafe { write_axes(plan, piece, None, piece.len, output) };
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
    let place = Place::new(plan, input)?;
    let mut arrays = Arrays::new(arguments, input.strides, plan, outputs);
    for (piece, output) in wanted(plan, outputs) {
        arrays.check(piece.index, output)?;
        if output.strides.is_null() && !place.is_packed(plan, piece) {
            return Err(Error::ViewNotPacked { output: piece.index });
        }
    }
    for (piece, output) in wanted(plan, outputs) {
        let extent = if place.has_elements { plan.extent } else { piece.len };
        // SAFETY: room was checked above, and the arrays do not lie in the input's.
        unsafe { write_axes(plan, piece, place.strides, extent, output) };
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

/// What the outputs' arrays must stay clear of: what is read meanwhile, and each other.
struct Arrays<'a> {
    rank: usize,
    shape: &'a [i64],
    strides: Option<&'a [i64]>,
    lengths: Option<Span>,
    descriptors: Span,
    /// All of the above.
    reads: [Span; 4],
    /// The last output's, which has this index: one array may be meant to serve all.
    last: (usize, [Span; 2]),
}

impl<'a> Arrays<'a> {
    fn new(
        arguments: &Arguments<'a>,
        strides: Option<&'a [i64]>,
        plan: &Plan<'_>,
        outputs: &[libsplit_tensor],
    ) -> Self {
        let (rank, shape) = (plan.output_rank(), arguments.shape);
        let (lengths, descriptors) = (arguments.lengths_span, Span::of_slice(outputs));
        let reads = [
            Span::of_slice(shape),
            descriptors,
            lengths.unwrap_or_default(),
            strides.map_or(Span::default(), Span::of_slice),
        ];
        Self { rank, shape, strides, lengths, descriptors, reads, last: (0, [Span::default(); 2]) }
    }

    /// That an output's arrays are there, long enough, and clear of all others in use.
    fn check(&mut self, index: usize, output: &libsplit_tensor) -> Result<(), Error> {
        let which = Which::Output(index);
        if i64::from(output.capacity) < number(self.rank) {
            let (expected, actual) = (number(self.rank), output.capacity.into());
            return Err(Error::Capacity { output: index, expected, actual });
        }
        if self.rank == 0 {
            return Ok(());
        }
        check_array(output.shape, which, "shape")?;
        if !output.strides.is_null() {
            check_array(output.strides, which, "strides")?;
        }
        let arrays = [output.shape, output.strides].map(|array| array_span(array, self.rank));
        let [shape, strides] = arrays;
        let is_free =
            |array: Span| self.reads.iter().chain(&self.last.1).all(|other| array.is_apart(*other));
        if !is_free(shape) || !is_free(strides) || !shape.is_apart(strides) {
            self.collide(index, arrays)?;
        }
        self.last = (index, arrays);
        Ok(())
    }

    /// What an output's arrays lie over.
    #[cold]
    fn collide(&self, index: usize, arrays: [Span; 2]) -> Result<(), Error> {
        let which = Which::Output(index);
        for (field, written) in ["shape", "strides"].into_iter().zip(arrays) {
            let reads = |read: &[i64]| written.intersects(Span::of_slice(read));
            let other = if reads(self.shape) || self.strides.is_some_and(reads) {
                Which::Input
            } else if self.lengths.is_some_and(|lengths| written.intersects(lengths)) {
                Which::Split
            } else if written.intersects(self.descriptors)
                || field == "strides" && written.intersects(arrays[0])
            {
                which
            } else {
                continue;
            };
            return Err(Error::DescriptorOverlap { output: index, field, other });
        }
        let (last, others) = self.last;
        for (field, written) in ["shape", "strides"].into_iter().zip(arrays) {
            if others.iter().any(|other| written.intersects(*other)) {
                let other = Which::Output(last);
                return Err(Error::DescriptorOverlap { output: index, field, other });
            }
        }
        Ok(())
    }
}

/// Where an array of as many entries as an output has axes lies; of NULL, nowhere.
pub(super) fn array_span(array: *const i64, rank: usize) -> Span {
    let start = array as usize;
    // An array does not wrap round.
    let end = if array.is_null() { start } else { start.wrapping_add(rank * size_of::<i64>()) };
    Span { start, end }
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

/// Writes shape, strides (if not NULL), rank and dtype. The strides are those of the input, or the
/// packed ones of its shape with `extent` on the axis.
///
/// # Safety
/// The output's arrays must have room for its rank.
unsafe fn write_axes(
    plan: &Plan<'_>,
    piece: Piece,
    strides: Option<&[i64]>,
    extent: i64,
    output: &mut libsplit_tensor,
) {
    output.rank = i32::try_from(plan.output_rank()).unwrap_or(0);
    output.dtype = libsplit_dtype(plan.dtype as i32);
    let (mut shape_end, mut strides_end) = (
        output.shape.wrapping_add(plan.output_rank()),
        output.strides.wrapping_add(plan.output_rank()),
    );
    let mut packed = 1i64;
    for (axis, &input_extent) in plan.shape.iter().enumerate().rev() {
        let is_split = axis == plan.axis;
        let (len, extent) =
            if is_split { (piece.len, extent) } else { (input_extent, input_extent) };
        if !is_split || plan.keeps_axis {
            let stride = strides.map_or(packed, |strides| strides.get(axis).copied().unwrap_or(0));
            shape_end = shape_end.wrapping_sub(1);
            strides_end = strides_end.wrapping_sub(1);
            // SAFETY: the caller's promise; there are as many axes as the rank says.
            unsafe {
                shape_end.write(len);
                if !output.strides.is_null() {
                    strides_end.write(stride);
                }
            }
        }
        packed = if packed < 0 || extent < 0 {
            LIBSPLIT_DIM_UNKNOWN
        } else {
            // What is known fits, as has been checked.
            packed.wrapping_mul(extent.max(1))
        };
    }
}

/// An input as views see it.
struct Place<'a> {
    input: Memory<'a>,
    has_elements: bool,
    /// The input's own strides, where it has such and elements that they matter to.
    strides: Option<&'a [i64]>,
    /// Elements from one step on the split axis to the next.
    step: i64,
    /// The lowest and the highest element of the first step, in elements from its first.
    reach: (i64, i64),
}

impl<'a> Place<'a> {
    fn new(plan: &Plan<'a>, input: Memory<'a>) -> Result<Self, Error> {
        let has_elements = input.span_of(plan.elements, Which::Input)?.is_some();
        // Strides of a tensor without elements say nothing: its views are packed.
        let strides = input.strides.filter(|_| has_elements);
        let (mut step, reach) = match strides {
            None => (plan.inner, (0, (plan.outer - 1) * plan.extent * plan.inner + plan.inner - 1)),
            Some(strides) => {
                let step = strides.get(plan.axis).copied().unwrap_or(0);
                let first = Piece { index: 0, offset: 0, len: 1 };
                let dims = plan.output_shape(first).zip(plan.output_strides(strides));
                (step, shape::reach(dims, Which::Input)?)
            }
        };
        // The stride of an extent-1 axis may be anything, and only an empty piece follows it.
        if plan.extent == 1 {
            step = 0;
        }
        Ok(Self { input, has_elements, strides, step, reach })
    }

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

    /// Points an output at its piece of the input.
    fn point(&self, plan: &Plan<'a>, piece: Piece, output: &mut libsplit_tensor) {
        output.data = self.input.data.cast();
        output.bit_offset = 0;
        output.data_bytes = 0;
        if !self.has_elements {
            return;
        }
        let bits = plan.dtype.bits();
        let begin = piece.offset.wrapping_mul(self.step);
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
            let last = (piece.len - 1) * self.step;
            let (low, high) = (self.reach.0 + last.min(0), self.reach.1 + last.max(0));
            let bytes = byte_reach(low, high, bits, bit_offset).map_or(0, |(_, bytes)| bytes);
            output.data_bytes = usize_of(bytes);
        }
    }
}
