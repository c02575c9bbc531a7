//! Copies: each output is checked by itself, then all of them against each other and against everything that is read,
//! and then bytes move.
//!
//! # Safety
//! For everything unsafe here: promises 1 and 2 of [`super`].

use super::executor::Pool;
use super::parse::{self, arrays, is_unwanted, tensor_of, ParsedCall};
use super::reads::Reads;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::{self, Executor};
use crate::error::{number, Error};
use crate::geometry::Geometry;
use crate::overlap::lattice::{meet, Lattice, BUDGET};
use crate::overlap::{self, first_crossing, Numbered, Spans, Tensors, Trail};
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::shape::{self, rank_number, usize_of};
use crate::span::Span;
use crate::tensor::Reach;
use crate::words::{Argument, Field};
use core::mem::{offset_of, MaybeUninit};
use core::slice;

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
    pub(crate) unsafe fn copy(
        &self,
        outputs: &[libsplit_tensor],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let Self { geometry, pieces, input, reads } = self;
        let source = input.span(geometry.elements, Argument::Input)?;
        geometry.check_addressable()?;
        // SAFETY: promises 1 and 2.
        let Written { trail, is_clear, are_packed, bytes, .. } =
            match unsafe { self.check_each(outputs) } {
                Some(found) => found,
                // SAFETY: as above.
                None => unsafe { self.check_each_closely(outputs) }?,
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

    /// Checks each output of a copy by itself. Returns `None` if one is not plain, or not clear of all arrays.
    unsafe fn check_each(&self, outputs: &[libsplit_tensor]) -> Option<Written> {
        let Self { geometry, pieces, .. } = self;
        let (rank, mut found) = (geometry.output_rank(), Written::NOTHING);
        for (index, output) in outputs.iter().enumerate() {
            let len = pieces.length(index);
            let (bytes, start) = (geometry.output_bytes(len), output.data as usize);
            // SAFETY: promises 1 and 2.
            if unsafe { is_plain(geometry, (len, bytes), output) } {
                let end = start.wrapping_add(usize_of(bytes));
                if start == 0 || end < start {
                    return None;
                }
                let (span, mut arrays) = (Span { start, end }, Span::of_array(output.shape, rank));
                if !output.strides.is_null() {
                    arrays = arrays.hull(Span::of_array(output.strides, rank));
                }
                if !found.is_clear_of(arrays, span) {
                    return None;
                }
                found.push(arrays, span, bytes);
            } else if !is_unwanted(output) {
                return None;
            }
        }
        Some(found)
    }

    /// Checks each output as [`ParsedCall::check_each`] does, whatever it is, and says what is wrong with it.
    #[cold]
    unsafe fn check_each_closely(&self, outputs: &[libsplit_tensor]) -> Result<Written, Error> {
        let Self { geometry, pieces, .. } = self;
        let (rank, mut found) = (geometry.output_rank(), Written::NOTHING);
        for (index, output) in outputs.iter().enumerate() {
            // SAFETY: promises 1 and 2.
            let checked = unsafe { check_output(geometry, (index, pieces.length(index)), output) }?;
            let Some(Checked { reach, bytes, is_packed }) = checked else { continue };
            let (mut span, argument) = (Span::default(), Argument::Output(index));
            if bytes > 0 {
                if output.data.is_null() {
                    return Err(Error::Null { argument, field: Field::Data });
                }
                span = reach.place(output.data.cast(), argument)?;
                found.are_packed &= is_packed;
            }
            let [shape, strides] = arrays(output, rank);
            found.push(shape.hull(strides), span, bytes);
        }
        Ok(found)
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
            Some(span).filter(|span| !span.is_apart(hull)).unwrap_or_default()
        }
    };
    let crossing = first_crossing(count, &Numbered(count.saturating_mul(3), &spans));
    crossing.map_or(Ok(()), |(output, array)| {
        let other = Argument::Output((array - count) / 2);
        Err(Error::UsedElsewhere { output, field: Field::Itself, other })
    })
}

/// What an output reaches over (nothing if it has no elements), how many bytes are copied to it, and whether it is
/// packed.
pub(super) struct Checked {
    pub reach: Reach,
    pub bytes: i64,
    pub is_packed: bool,
}

impl Checked {
    pub(super) fn packed(bytes: i64) -> Self {
        Self { reach: Reach { low: 0, bytes }, bytes, is_packed: true }
    }
}

/// What the outputs of a copy reach over.
pub(super) struct Written {
    /// The hull of all outputs with elements, and whether they are in order.
    pub trail: Trail,
    /// The hull of all shapes and strides.
    arrays: Span,
    /// Whether [`Written::is_clear_of`] was true of each output.
    pub is_clear: bool,
    pub are_packed: bool,
    /// Bytes of all outputs, as if they were packed.
    pub bytes: usize,
}

impl Written {
    const NOTHING: Self = Self {
        trail: Trail::EMPTY,
        arrays: Span::NOWHERE,
        is_clear: true,
        are_packed: true,
        bytes: 0,
    };

    /// Returns whether the arrays of an output lie above or below all outputs so far, and its elements above or below
    /// all arrays.
    fn is_clear_of(&self, arrays: Span, span: Span) -> bool {
        arrays.is_apart(self.trail.hull) && span.is_apart(self.arrays.hull(arrays))
    }

    /// Adds an output: its arrays, and its elements if it has any.
    fn push(&mut self, arrays: Span, span: Span, bytes: i64) {
        self.is_clear = self.is_clear && self.is_clear_of(arrays, span);
        self.arrays = self.arrays.hull(arrays);
        if bytes > 0 {
            self.trail.push(span);
            // All pieces together are as large as the input, which is addressable, but for bits in their last bytes.
            self.bytes = self.bytes.wrapping_add(usize_of(bytes));
        }
    }
}

/// Returns whether an output is a packed tensor of the right type and shape that is large enough, as most are. For one
/// without axes, it may return `false`.
#[inline(always)] // in the loop over outputs
unsafe fn is_plain(
    geometry: &Geometry<'_>,
    (len, bytes): (i64, i64),
    output: &libsplit_tensor,
) -> bool {
    let (rank, shape, strides) = (geometry.output_rank(), output.shape, output.strides);
    if output.dtype.0 != geometry.dtype as i32
        || output.rank != rank_number(rank)
        || output.bit_offset != 0
        || shape.is_null()
        || !shape.is_aligned()
        || !strides.is_aligned()
        || (output.data_bytes != 0 && (output.data_bytes as u64) < bytes.cast_unsigned())
    {
        return false;
    }
    // SAFETY: arrays that are not NULL have an entry for each axis.
    let array = |array: *mut i64| unsafe { slice::from_raw_parts(array, rank) }.iter().copied();
    geometry.is_output_shape(len, array(shape))
        && (strides.is_null() || shape::is_packed(array(shape).zip(array(strides)).rev()))
}

/// Checks everything about an output except its address: that type, rank and extents are the operator's, that no two
/// elements share an address, and that as much memory is there as it reaches over. Returns `None` if the output is not
/// wanted.
pub(super) unsafe fn check_output(
    geometry: &Geometry<'_>,
    (index, len): (usize, i64),
    output: &libsplit_tensor,
) -> Result<Option<Checked>, Error> {
    let (argument, bytes) = (Argument::Output(index), geometry.output_bytes(len));
    let packed = Checked::packed(bytes);
    // SAFETY: promises 1 and 2.
    let tensor = unsafe {
        if is_plain(geometry, (len, bytes), output) {
            return Ok(Some(packed));
        }
        if is_unwanted(output) {
            return Ok(None);
        }
        tensor_of(output, true, argument)?
    };
    let output = index;
    if tensor.dtype != geometry.dtype {
        let (expected, actual) = (geometry.dtype, tensor.dtype);
        return Err(Error::OutputDType { output, expected, actual });
    }
    if tensor.shape.len() != geometry.output_rank() {
        let (expected, actual) = (number(geometry.output_rank()), number(tensor.shape.len()));
        return Err(Error::OutputRank { output, expected, actual });
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
    let is_packed = bytes == 0 || tensor.is_packed();
    let reach = if is_packed { packed.reach } else { tensor.strided_reach(argument)? };
    tensor.check_data_bytes(reach, argument)?;
    if !is_packed {
        if geometry.dtype.is_sub_byte() {
            return Err(Error::SubByteStrides { output });
        }
        if let Some((axis, expected, actual)) = shape::colliding(&tensor.dims()) {
            return Err(Error::StridesCollide { output, axis, expected, actual });
        }
    }
    Ok(Some(Checked { reach, is_packed, ..packed }))
}

/// Checks that no output overlaps the input, another output, anything else that is read, or the `array` of descriptors
/// or addresses. `trail` has seen all outputs.
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
fn check_bytes(
    transfer: &Transfer<'_>,
    trail: Trail,
    input: Span,
    reads: &Reads<'_>,
    array: Span,
) -> Result<(), Error> {
    let (outputs, mut budget, mut found) = (&Outputs::new(transfer), BUDGET, None);
    if !trail.hull.is_apart(input) {
        found = first_over(outputs, input, &mut budget);
    }
    if found.is_none() && !trail.is_apart {
        let clash = overlap::clash(outputs, &mut budget);
        found = clash.map(|(output, other, is_sure)| (output, Argument::Output(other), is_sure));
    }
    match found {
        Some((output, other, true)) => return Err(Error::Overlap { output, other }),
        Some((output, Argument::Input, false)) => {
            return Err(Error::NotShownApartFromInput { output });
        }
        Some((output, other, false)) => return Err(Error::NotShownApart { output, other }),
        None => {}
    }
    match reads.first_under(outputs, trail.hull, (Argument::Outputs, array)) {
        None => Ok(()),
        Some((output, other)) => Err(Error::UsedElsewhere { output, field: Field::Itself, other }),
    }
}

/// Returns the first output that overlaps elements of the input, or may do so, and whether it certainly does.
#[inline(never)] // for its stack
fn first_over(
    outputs: &Outputs<'_>,
    input: Span,
    budget: &mut usize,
) -> Option<(usize, Argument, bool)> {
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
        (answer != Some(false)).then_some((output, Argument::Input, answer.is_some()))
    })
}

/// The outputs of a copy.
struct Outputs<'a> {
    transfer: &'a Transfer<'a>,
    /// Whether each begins with its first element, so that most need no closer look.
    are_upward: bool,
}

impl<'a> Outputs<'a> {
    fn new(transfer: &'a Transfer<'a>) -> Self {
        let Parts { targets, .. } = transfer.parts;
        let is_upward = |index| {
            let span = transfer.written(index);
            span.is_empty() || span.start == targets.get(index) as usize
        };
        let are_packed = transfer.output_strides.are_packed();
        Self { transfer, are_upward: are_packed || (0..transfer.parts.count()).all(is_upward) }
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
        let Self { transfer, .. } = self;
        let (span, bits) = (self.span(index), transfer.geometry.dtype.bits());
        match transfer.parts.get(index).as_ref().and_then(|part| transfer.output_dims(part)) {
            Some(mut dims) => Lattice::strided(span, (bits / 8).into(), &mut dims),
            None => Lattice::whole(span),
        }
    }
}
