//! A copy: every output is looked at once, and then all bytes move.

use super::executor::Pool;
use super::parse::{self, is_unwanted, Call, Look};
use super::reads::Reads;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::blocks::{self, Blocks};
use crate::copy::{self, Executor};
use crate::error::{Error, Fault, Report, Which};
use crate::joined::Joined;
use crate::overlap::few::{Few, FEW};
use crate::overlap::spans::{self, Numbered};
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::plan::{Geometry, Piece, Splitting};
use crate::shape::{self, rank_number};
use crate::span::Span;
use crate::targets::{self, Outputs};
use crate::tensor::{Reach, Tensor};
use core::mem::offset_of;

/// # Safety
/// As [`super::libsplit_copy`].
#[inline(always)]
pub(super) unsafe fn copy(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promise 1.
    unsafe {
        let mut room = parse::room();
        let call =
            Call::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room, report)?;
        let (given, mut pool);
        pool = None::<&dyn Executor>;
        if !executor.is_null() {
            given = Pool::parse(executor, report)?;
            pool = Some(&given);
        }
        let outputs = parse::descriptors(outputs, num_outputs, report)?;
        let reads = Reads::new(call, error, executor);
        copy_parsed(call, outputs, pool, reads, report)
    }
}

/// # Safety
/// Promises 1 and 2, for what the call's input and the outputs describe.
#[inline(always)]
pub(crate) unsafe fn copy_parsed(
    call: &Call<'_>,
    outputs: &[libsplit_tensor],
    pool: Option<&dyn Executor>,
    reads: Reads<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    let geometry = &call.splitting.geometry;
    // SAFETY: promises 1 and 2.
    unsafe {
        let input = call.input.span(geometry.elements, Which::Input, report)?;
        let is_packed = call.input.is_packed();
        let plain = Plain::are_all(call, input, outputs, reads);
        let (mut bytes, are_packed) = match plain {
            Some(are_packed) if is_packed => (input.len(), are_packed),
            Some(are_packed) => (geometry.piece_bytes(geometry.extent), are_packed),
            None => match see_all(call, input, outputs, reads, pool, report)? {
                Some(seen) => seen,
                None => return Ok(()),
            },
        };
        if plain.is_some() && geometry.dtype.is_sub_byte() {
            bytes = whole_bytes(&call.splitting);
        }
        run(call, outputs, bytes, are_packed, pool, report)
    }
}

/// Bytes of all pieces, of which the last of each may be partly used.
#[cold]
#[inline(never)]
fn whole_bytes(splitting: &Splitting<'_>) -> usize {
    let bytes = splitting.pieces().map(|piece| splitting.geometry.piece_bytes(piece.len));
    bytes.fold(0, usize::wrapping_add)
}

/// What is plain to see of outputs: that each is as it should be.
struct Plain {
    /// From the lowest to the highest byte that is written.
    written: Span,
    /// From the first begin of a shape or of strides to the last; everywhere, if an output with elements does not lie
    /// above or below those before it.
    arrays: Span,
    are_packed: bool,
}

impl Plain {
    #[inline(always)]
    fn new(first: &libsplit_tensor) -> Self {
        let start = first.data as usize;
        let written = Span { start, end: start };
        Self { written, arrays: Span::NOWHERE, are_packed: true }
    }

    /// Whether all outputs of a copy are such, and lie apart from everything that is read; and if so, whether they are
    /// packed.
    ///
    /// # Safety
    /// Promises 1 and 2.
    #[inline(always)]
    unsafe fn are_all(
        call: &Call<'_>,
        input: Span,
        outputs: &[libsplit_tensor],
        reads: Reads<'_>,
    ) -> Option<bool> {
        let first = outputs.first()?;
        let splitting = &call.splitting;
        let mut seen = Self::new(first);
        // SAFETY: promises 1 and 2; there are as many outputs as lengths.
        let are_plain = unsafe {
            let words = splitting.pieces.words();
            words.is_some_and(|lengths| seen.see_packed(&splitting.geometry, lengths, first))
                || seen.see_others(splitting, first)
        };
        // One at NULL would be the lowest.
        if !are_plain || seen.written.start == 0 {
            return None;
        }
        let (written, mut arrays) = (seen.written, seen.arrays);
        arrays.end = arrays.end.saturating_add(size_of_val(splitting.geometry.shape));
        let are_apart = written.is_apart(input)
            && written.is_apart(arrays)
            && Span::of_slice(outputs).is_apart(written)
            && reads.are_plainly_apart(written);
        (are_apart || seen.are_apart(call, input, outputs, reads)).then_some(seen.are_packed)
    }

    /// Whether outputs are apart from each other and all that is read, though their hulls are not: where they are few,
    /// or nothing but shapes and strides lies around them.
    #[cold]
    #[inline(never)]
    fn are_apart(
        &self,
        call: &Call<'_>,
        input: Span,
        outputs: &[libsplit_tensor],
        reads: Reads<'_>,
    ) -> bool {
        if self.are_packed && are_few_and_apart(call, input, outputs, reads) {
            return true;
        }
        let written = self.written;
        let are_in_order = self.arrays.start > 0;
        are_in_order
            && written.is_apart(input)
            && Span::of_slice(outputs).is_apart(written)
            && reads.are_apart(written)
            && are_arrays_apart(&call.splitting.geometry, outputs, written)
    }

    /// Whether outputs are such whose lengths are not in a row, or that are not all packed, as was seen.
    ///
    /// # Safety
    /// As [`Self::see`].
    #[inline(never)]
    unsafe fn see_others(
        &mut self,
        splitting: &Splitting<'_>,
        mut outputs: *const libsplit_tensor,
    ) -> bool {
        if let Some(lengths) = splitting.pieces.words() {
            // SAFETY: the caller's promise.
            return unsafe { self.see_padded(&splitting.geometry, lengths, outputs) };
        }
        let (mut all, mut room) = (Blocks::new(&splitting.pieces), blocks::room());
        loop {
            let lengths = all.next(&mut room);
            if lengths.is_empty() {
                return true;
            }
            // SAFETY: the caller's promise.
            if !unsafe { self.see(&splitting.geometry, lengths, outputs) } {
                return false;
            }
            outputs = outputs.wrapping_add(lengths.len());
        }
    }

    /// Whether outputs are all plain.
    ///
    /// # Safety
    /// Promises 1 and 2, for as many outputs as lengths.
    #[inline(always)]
    unsafe fn see(
        &mut self,
        geometry: &Geometry<'_>,
        lengths: &[i64],
        first: *const libsplit_tensor,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            self.see_packed(geometry, lengths, first) || self.see_padded(geometry, lengths, first)
        }
    }

    /// The same of packed ones.
    ///
    /// # Safety
    /// As [`Self::see`].
    #[inline(always)]
    unsafe fn see_packed(
        &mut self,
        geometry: &Geometry<'_>,
        lengths: &[i64],
        first: *const libsplit_tensor,
    ) -> bool {
        // SAFETY: the caller's promise.
        let seen_to = unsafe {
            if geometry.keeps_axis {
                self.see_axes::<true, false>(geometry, lengths, first)
            } else {
                self.see_axes::<false, false>(geometry, lengths, first)
            }
        };
        seen_to == lengths.as_ptr_range().end
    }

    /// The same where some have padding.
    ///
    /// # Safety
    /// As [`Self::see`].
    #[cold]
    #[inline(never)]
    unsafe fn see_padded(
        &mut self,
        geometry: &Geometry<'_>,
        lengths: &[i64],
        first: *const libsplit_tensor,
    ) -> bool {
        if geometry.dtype.is_sub_byte() || !geometry.keeps_axis {
            return false;
        }
        self.are_packed = false;
        // SAFETY: the caller's promise.
        let seen_to = unsafe { self.see_axes::<true, true>(geometry, lengths, first) };
        seen_to == lengths.as_ptr_range().end
    }

    /// Looks at outputs until one is not plain, and gives where its length is, or where lengths end: to say whether would
    /// take six instructions more. Nothing is done here that goes on after what is rare, so that all of it is in registers.
    ///
    /// # Safety
    /// As [`Self::see`].
    #[inline(never)]
    unsafe fn see_axes<const KEEPS_AXIS: bool, const PADDED: bool>(
        &mut self,
        geometry: &Geometry<'_>,
        lengths: &[i64],
        mut output: *const libsplit_tensor,
    ) -> *const i64 {
        let step_bits = geometry.step_bits();
        let (Span { mut start, mut end }, mut arrays) = (self.written, self.arrays);
        for len in lengths {
            // SAFETY: promises 1 and 2.
            let given = unsafe { &*output };
            // SAFETY: promises 1 and 2.
            let Some(span) = (unsafe {
                plain::<KEEPS_AXIS, PADDED>(geometry, step_bits, *len, given, &mut arrays)
            }) else {
                return len;
            };
            if span.is_empty() {
                // Wherever that is.
            } else if span.start >= end {
                end = span.end;
            } else if span.end <= start {
                start = span.start;
            } else {
                (start, end) = (start.min(span.start), end.max(span.end));
                arrays = Span { start: 0, end: usize::MAX };
            }
            output = output.wrapping_add(1);
        }
        (self.written, self.arrays) = (Span { start, end }, arrays);
        lengths.as_ptr_range().end
    }
}

/// Whether few outputs, all of them plain and packed, are apart from each other and all that is read.
#[inline(never)] // for its stack
fn are_few_and_apart(
    call: &Call<'_>,
    input: Span,
    outputs: &[libsplit_tensor],
    reads: Reads<'_>,
) -> bool {
    let Splitting { geometry, pieces } = &call.splitting;
    if outputs.len() > FEW {
        return false;
    }
    let mut few = Few::new();
    for (index, output) in outputs.iter().enumerate() {
        let bytes = geometry.piece_bytes(blocks::length(pieces, index));
        few.push(Span::of_bytes(output.data.cast_const(), bytes));
    }
    let rank = geometry.output_rank();
    few.are_apart()
        && few.are_apart_from(input)
        && few.are_apart_from(Span::of_slice(outputs))
        && reads.are_apart_from_all(&few)
        && all_arrays(outputs, rank, |array| few.are_apart_from(array))
}

/// Checks every output, whatever it is like, and all of them against each other and what is read. Gives how
/// many bytes are to be copied, and whether outputs are packed; or copies them, if they make one tensor.
///
/// # Safety
/// Promises 1 and 2.
#[cold]
#[inline(never)]
unsafe fn see_all(
    call: &Call<'_>,
    input: Span,
    outputs: &[libsplit_tensor],
    reads: Reads<'_>,
    pool: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<Option<(usize, bool)>, Fault> {
    let Splitting { geometry, pieces } = &call.splitting;
    let (mut seen, mut arrays) = (Outputs::new(input), Span::NOWHERE);
    for (index, output) in outputs.iter().enumerate() {
        let piece = Piece { index, offset: 0, len: blocks::length(pieces, index) };
        let mut plain = Plain::new(output);
        // SAFETY: promises 1 and 2.
        unsafe {
            // Where some are not packed, it is of no use to know which.
            let is_plain = (seen.are_packed && plain.see_packed(geometry, &[piece.len], output))
                || plain.see_padded(geometry, &[piece.len], output);
            if is_plain && plain.written.start != 0 {
                if !plain.written.is_empty() {
                    let bytes = geometry.piece_bytes(piece.len);
                    seen.push(plain.written, plain.are_packed, bytes);
                }
            } else if is_unwanted(output) {
                continue;
            } else {
                see_closely(&mut seen, geometry, piece, output, report)?;
            }
        }
        for array in [output.shape, output.strides] {
            if !array.is_null() {
                arrays.extend(Span::of_array(array, geometry.output_rank()));
            }
        }
    }
    let written = seen.trail.hull;
    let meets_array = !arrays.is_apart(written);
    let meets_other = !Span::of_slice(outputs).is_apart(written) || !reads.are_apart(written);
    if meets_array || meets_other || !seen.are_apart() {
        let transfer = transfer(call, outputs, seen.bytes, seen.are_packed);
        let mut one = Joined::NONE;
        let are_one = !seen.are_apart() && seen.check_closely(&transfer, &mut one, report)?;
        if meets_other {
            check_reads(&transfer, reads, outputs, report)?;
        }
        if meets_array {
            check_arrays(&transfer, outputs, [written, arrays], report)?;
        }
        if are_one {
            // SAFETY: promise 5.
            unsafe { copy::run(&transfer, pool, report) }?;
            return Ok(None);
        }
    }
    Ok(Some((seen.bytes, seen.are_packed)))
}

/// Checks an output that is wanted, whatever it is like.
///
/// # Safety
/// Promises 1 and 2.
unsafe fn see_closely(
    seen: &mut Outputs,
    geometry: &Geometry<'_>,
    piece: Piece,
    output: &libsplit_tensor,
    report: &mut Report,
) -> Result<(), Fault> {
    let which = Which::Output(piece.index);
    // SAFETY: promises 1 and 2.
    let (tensor, reach, is_packed) = unsafe { check(geometry, piece, output, report) }?;
    if reach.bytes == 0 {
        return Ok(());
    }
    if tensor.data.is_null() {
        return report.refuse(Error::NullField { which, field: "data" });
    }
    let span = reach.place(tensor.data, which, report)?;
    seen.push(span, is_packed, geometry.piece_bytes(piece.len));
    Ok(())
}

/// Where an output of `len` steps lies, if it is plain to see that all about it is right, unless that is at
/// NULL: packed, or row-major with padding, with all numbers as they should be. Anything else is for [`check`] to judge.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)]
unsafe fn plain<const KEEPS_AXIS: bool, const PADDED: bool>(
    geometry: &Geometry<'_>,
    step_bits: i64,
    len: i64,
    output: &libsplit_tensor,
    arrays: &mut Span,
) -> Option<Span> {
    let rank = geometry.shape.len() - usize::from(!KEEPS_AXIS);
    let (shape, strides) = (output.shape, output.strides);
    if output.rank != rank_number(rank) || shape.is_null() {
        return None;
    }
    let type_and_offset = parse::type_and_offset(output);
    if type_and_offset != geometry.dtype as u64 || !shape.is_aligned() {
        return None;
    }
    let begin = |array: *mut i64| Span { start: array as usize, end: array as usize };
    *arrays = arrays.hull(begin(shape));
    let packed = shape::bytes_of_bits(step_bits.wrapping_mul(len));
    // SAFETY: its rank is right, and there is an array for the shape.
    let bytes = unsafe {
        if strides.is_null() {
            has_axes::<KEEPS_AXIS, false>(geometry, len, shape, strides).then_some(packed)?
        } else {
            *arrays = arrays.hull(begin(strides));
            if !strides.is_aligned() {
                return None;
            }
            if PADDED && KEEPS_AXIS {
                padded_bytes(geometry, len, shape, strides)?
            } else {
                has_axes::<KEEPS_AXIS, true>(geometry, len, shape, strides).then_some(packed)?
            }
        }
    };
    let bytes = usize::try_from(bytes).ok()?;
    // None stated is the most; of one without elements they are for others to look at.
    if output.data_bytes.wrapping_sub(1) < bytes.wrapping_sub(1) {
        return None;
    }
    let start = output.data as usize;
    Some(Span { start, end: start.checked_add(bytes)? })
}

/// Whether these are the input's extents but on the split axis, where they are `len`, unless outputs have
/// none; and packed strides, if there are any.
///
/// # Safety
/// Arrays of as many entries as an output has axes.
#[inline(always)]
unsafe fn has_axes<const KEEPS_AXIS: bool, const STRIDED: bool>(
    geometry: &Geometry<'_>,
    len: i64,
    shape: *const i64,
    strides: *const i64,
) -> bool {
    let (input, axis) = (geometry.shape.as_ptr(), geometry.axis);
    // Outputs that have lost the axis have what is inward of it one place further out.
    let lost = usize::from(!KEEPS_AXIS);
    let (mut at, mut packed) = (geometry.shape.len() - lost, 1i64);
    // SAFETY: within the arrays.
    let mut has = |at: usize, expected: i64| unsafe {
        let extent = *shape.add(at);
        let is = extent == expected && (!STRIDED || *strides.add(at) == packed || extent == 1);
        packed = packed.wrapping_mul(extent);
        is
    };
    while at > axis + usize::from(KEEPS_AXIS) {
        at -= 1;
        // SAFETY: as above.
        if !has(at, unsafe { *input.add(at + lost) }) {
            return false;
        }
    }
    if KEEPS_AXIS && !has(axis, len) {
        return false;
    }
    at = axis;
    while at > 0 {
        at -= 1;
        // SAFETY: as above.
        if !has(at, unsafe { *input.add(at) }) {
            return false;
        }
    }
    true
}

/// The bytes from the first to the last of an output with all axes that lies in row-major order, with padding, if it has
/// these extents.
///
/// # Safety
/// As [`has_axes`].
#[inline(never)] // off the way of packed ones
unsafe fn padded_bytes(
    geometry: &Geometry<'_>,
    len: i64,
    shape: *const i64,
    strides: *const i64,
) -> Option<i64> {
    let (mut covered, mut has_elements) = (0i64, true);
    for (at, &extent) in geometry.shape.iter().enumerate().rev() {
        let expected = if at == geometry.axis { len } else { extent };
        // SAFETY: within the arrays.
        let (extent, stride) = unsafe { (*shape.add(at), *strides.add(at)) };
        if extent != expected {
            return None;
        }
        has_elements &= extent > 0;
        if extent > 1 {
            // Each steps over all that is inward of it.
            if stride <= covered {
                return None;
            }
            covered = (extent - 1).checked_mul(stride)?.checked_add(covered)?;
        }
    }
    if !has_elements {
        return Some(0);
    }
    covered.checked_add(1)?.checked_mul(i64::from(geometry.dtype.bits() / 8))
}

/// Checks everything about an output but its address: what it reaches over, nothing if it has no
/// elements, and whether it is packed.
///
/// # Safety
/// Promises 1 and 2.
pub(super) unsafe fn check<'a>(
    geometry: &Geometry<'_>,
    piece: Piece,
    output: &'a libsplit_tensor,
    report: &mut Report,
) -> Result<(Tensor<'a>, Reach, bool), Fault> {
    let which = Which::Output(piece.index);
    // SAFETY: promise 1.
    let tensor = unsafe { parse::tensor_of(output, Look::AtLayout, which, report) }?;
    targets::check_type_and_shape(geometry, piece, &tensor, report)?;
    let elements = geometry.piece_elements(piece.len);
    if elements == 0 {
        return Ok((tensor, Reach::default(), true));
    }
    let (reach, is_packed) = targets::layout(piece.index, tensor, elements, report)?;
    Ok((tensor, reach, is_packed))
}

/// A checked copy, as the engine takes it.
#[inline(never)]
fn transfer<'a>(
    call: &'a Call<'a>,
    outputs: &'a [libsplit_tensor],
    bytes: usize,
    are_packed: bool,
) -> Transfer<'a> {
    let Splitting { geometry, pieces } = call.splitting;
    Transfer {
        geometry,
        source: call.input.data,
        strides: call.input.strides.filter(|_| bytes > 0 && !call.input.is_packed()),
        bit_offset: call.input.bit_offset,
        parts: Parts::Ruled { pieces, targets: fields(outputs, offset_of!(libsplit_tensor, data)) },
        output_strides: if are_packed {
            OutputStrides::Packed
        } else {
            let strides = fields(outputs, offset_of!(libsplit_tensor, strides));
            OutputStrides::Described { strides, rank: geometry.output_rank() }
        },
        bytes,
    }
}

/// # Safety
/// As [`copy::run`].
#[inline(never)]
unsafe fn run(
    call: &Call<'_>,
    outputs: &[libsplit_tensor],
    bytes: usize,
    are_packed: bool,
    pool: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    let transfer = transfer(call, outputs, bytes, are_packed);
    // SAFETY: promise 5.
    unsafe { copy::run(&transfer, pool, report) }
}

/// A field of all descriptors, so far from the begin of each.
fn fields<T>(outputs: &[libsplit_tensor], offset: usize) -> Pointers<'_, T> {
    let first = outputs.as_ptr().wrapping_byte_add(offset);
    // SAFETY: as many descriptors are borrowed.
    unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) }
}

/// That no output lies over structures, descriptors or lengths.
#[inline(never)]
fn check_reads(
    transfer: &Transfer<'_>,
    reads: Reads<'_>,
    outputs: &[libsplit_tensor],
    report: &mut Report,
) -> Result<(), Fault> {
    let descriptors = Span::of_slice(outputs);
    for at in 0..transfer.parts.count() {
        let span = transfer.span(at);
        if !reads.are_apart(span) || !descriptors.is_apart(span) {
            check_read(transfer.index(at), span, reads, descriptors, report)?;
        }
    }
    Ok(())
}

/// Whether no shape or strides of outputs lie within a span.
#[cold]
#[inline(never)]
fn are_arrays_apart(geometry: &Geometry<'_>, outputs: &[libsplit_tensor], span: Span) -> bool {
    let rank = geometry.output_rank();
    all_arrays(outputs, rank, |array| array.is_apart(span))
}

/// Whether something holds for each shape and strides of outputs.
#[inline(always)]
fn all_arrays(outputs: &[libsplit_tensor], rank: usize, holds: impl Fn(Span) -> bool) -> bool {
    outputs.iter().all(|output| parse::arrays(output, rank).into_iter().all(&holds))
}

/// That no output lies over shapes and strides of outputs; with the memory from the lowest of each to the highest.
#[inline(never)]
fn check_arrays(
    transfer: &Transfer<'_>,
    outputs: &[libsplit_tensor],
    [written, arrays]: [Span; 2],
    report: &mut Report,
) -> Result<(), Fault> {
    let (count, rank) = (transfer.parts.count(), transfer.geometry.output_rank());
    if are_arrays_apart(&transfer.geometry, outputs, written)
        || (0..count).all(|at| transfer.span(at).is_apart(arrays))
    {
        return Ok(());
    }
    // They follow the outputs in number.
    let of = |at: usize| match at.checked_sub(count) {
        None => transfer.span(at),
        Some(array) => parse::array_span(outputs, array, rank),
    };
    let all = count.saturating_add(outputs.len().saturating_mul(2));
    match spans::crossing(count, &Numbered(all, &of)) {
        None => Ok(()),
        Some((at, array)) => {
            let (output, other) = (transfer.index(at), Which::Output((array - count) / 2));
            report.refuse(Error::DataOverDescriptor { output, other })
        }
    }
}

/// That one output does not lie over descriptors, arrays or lengths.
#[cold]
#[inline(never)]
fn check_read(
    output: usize,
    span: Span,
    reads: Reads<'_>,
    descriptors: Span,
    report: &mut Report,
) -> Result<(), Fault> {
    match reads.under(span) {
        Some(Which::Split) if reads.lengths().intersects(span) => {
            report.refuse(Error::Overlap { output, other: Which::Split })
        }
        Some(other) => report.refuse(Error::DataOverDescriptor { output, other }),
        None if span.intersects(descriptors) => {
            let other = Which::Output(output);
            report.refuse(Error::DataOverDescriptor { output, other })
        }
        None => Ok(()),
    }
}
