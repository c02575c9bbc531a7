//! A copy: every output is looked at once, and then all bytes move.

#![allow(clippy::inline_always)] // on the way of every call

use super::executor::Pool;
use super::parse::{self, is_unwanted, Call, Look};
use super::reads::Reads;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::blocks::{self, Blocks};
use crate::copy::{self, Executor, FewRows};
use crate::error::{Error, Fault, Report, Which};
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::plan::{Geometry, Piece, Plan};
use crate::rules::Pieces;
use crate::shape::{self, rank_number};
use crate::span::Span;
use crate::spans::{self, Numbered};
use crate::targets::{self, Outputs};
use crate::tensor::{Reach, Tensor};
use core::mem::{offset_of, MaybeUninit};

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
        let mut room = MaybeUninit::uninit();
        let call =
            Call::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room, report)?;
        let (given, mut pool);
        pool = None::<&dyn Executor>;
        if !executor.is_null() {
            given = Pool::parse(executor, report)?;
            pool = Some(&given);
        }
        let outputs = parse::descriptors(outputs, num_outputs, report)?;
        copy_parsed(call, outputs, pool, Reads::new(call, error, executor), report)
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
    let plan = &call.plan;
    let mut room = blocks::room();
    let lengths = blocks::all(&plan.pieces, &mut room);
    // SAFETY: promises 1 and 2.
    unsafe {
        let input = call.input.span(plan.geometry.elements, Which::Input, report)?;
        let mut seen = Seen::new(input);
        let are_plain = seen.are_all_plain(plan, lengths, outputs);
        if !are_plain {
            seen.all(plan, outputs, report)?;
        }
        let job = Job { call, outputs, seen: &seen };
        let is_apart = are_plain || seen.outputs.are_apart();
        if !(is_apart && job.reads_are_apart(reads)) {
            job.check_closely(reads, report)?;
        }
        let (are_packed, bytes) = (are_plain || seen.outputs.are_packed, seen.outputs.bytes);
        if call.input.is_packed()
            && are_packed
            && bytes > 0
            && copy::is_small(&plan.geometry, bytes)
        {
            job.run_small(lengths);
            return Ok(());
        }
        job.run(pool, report)
    }
}

/// What has been seen of the outputs of a copy.
struct Seen {
    outputs: Outputs,
    /// From the lowest to the highest byte of their shapes and strides.
    arrays: Span,
}

impl Seen {
    #[inline(always)]
    fn new(input: Span) -> Self {
        Self { outputs: Outputs::new(input), arrays: Span::NOWHERE }
    }

    /// Checks every output.
    ///
    /// # Safety
    /// Promises 1 and 2.
    #[cold]
    #[inline(never)]
    unsafe fn all(
        &mut self,
        plan: &Plan<'_>,
        outputs: &[libsplit_tensor],
        report: &mut Report,
    ) -> Result<(), Fault> {
        let geometry = &plan.geometry;
        *self = Self::new(self.outputs.input);
        for (index, output) in outputs.iter().enumerate() {
            let piece = Piece { index, offset: 0, len: plan.pieces.length(index) };
            // SAFETY: promises 1 and 2.
            unsafe {
                match plain(geometry, geometry.step_bits(), piece.len, output) {
                    Some(span) => self.outputs.push(span, true, span.len()),
                    None if is_unwanted(output) => continue,
                    None => self.closely(geometry, piece, output, report)?,
                }
            }
            for array in [output.shape, output.strides] {
                if !array.is_null() {
                    self.arrays.extend(Span::of_array(array, geometry.output_rank()));
                }
            }
        }
        Ok(())
    }

    /// Checks an output that is wanted, whatever it is like.
    ///
    /// # Safety
    /// Promises 1 and 2.
    unsafe fn closely(
        &mut self,
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
        self.outputs.push(span, is_packed, geometry.piece_bytes(piece.len));
        Ok(())
    }

    /// Whether all outputs are plain ones and lie apart from each other and the input, as they do in most
    /// calls: then all has been seen.
    ///
    /// # Safety
    /// Promises 1 and 2.
    #[inline(always)]
    unsafe fn are_all_plain(
        &mut self,
        plan: &Plan<'_>,
        lengths: Option<&[i64]>,
        outputs: &[libsplit_tensor],
    ) -> bool {
        let first = outputs.as_ptr();
        // SAFETY: promises 1 and 2; there are as many outputs as lengths.
        let are_plain = unsafe {
            match lengths {
                Some(lengths) => self.are_plain(&plan.geometry, lengths, first),
                None => self.are_plain_in_blocks(plan, first),
            }
        };
        are_plain && self.outputs.trail.hull.is_apart(self.outputs.input)
    }

    /// # Safety
    /// As [`Self::are_plain`].
    #[inline(never)]
    unsafe fn are_plain_in_blocks(
        &mut self,
        plan: &Plan<'_>,
        mut outputs: *const libsplit_tensor,
    ) -> bool {
        let (mut all, mut room) = (Blocks::new(&plan.pieces), blocks::room());
        loop {
            let lengths = all.next(&mut room);
            if lengths.is_empty() {
                return true;
            }
            // SAFETY: the caller's promise.
            if !unsafe { self.are_plain(&plan.geometry, lengths, outputs) } {
                return false;
            }
            outputs = outputs.wrapping_add(lengths.len());
        }
    }

    /// Looks at outputs until one is not plain or lies among others. Nothing is done here that goes on
    /// after what is rare, so that all of it is in registers.
    ///
    /// # Safety
    /// Promises 1 and 2, for as many outputs as lengths.
    #[inline(never)]
    unsafe fn are_plain(
        &mut self,
        geometry: &Geometry<'_>,
        lengths: &[i64],
        mut output: *const libsplit_tensor,
    ) -> bool {
        let step_bits = geometry.step_bits();
        let (mut hull, mut bytes) = (self.outputs.trail.hull, self.outputs.bytes);
        let mut arrays = Span::NOWHERE;
        let size = size_of_val(geometry.shape);
        for len in lengths {
            // SAFETY: promises 1 and 2.
            let given = unsafe { &*output };
            // SAFETY: promises 1 and 2.
            let Some(span) = (unsafe { plain(geometry, step_bits, *len, given) }) else {
                return false;
            };
            if span.start >= hull.end {
                (hull.start, hull.end) = (hull.start.min(span.start), span.end);
            } else if span.end <= hull.start {
                hull.start = span.start;
            } else {
                return false;
            }
            let array = given.shape as usize;
            arrays = arrays.hull(Span { start: array, end: array });
            if !given.strides.is_null() {
                let array = given.strides as usize;
                arrays = arrays.hull(Span { start: array, end: array });
            }
            bytes += span.len();
            output = output.wrapping_add(1);
        }
        arrays.end = arrays.end.wrapping_add(size);
        self.arrays.extend(arrays);
        (self.outputs.trail.hull, self.outputs.bytes) = (hull, bytes);
        true
    }
}

/// Where an output of `len` steps lies, if it is plain to see that all about it is right: packed, of
/// some elements and axes, with all numbers as they should be. Anything else is for [`check`] to
/// judge.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)]
unsafe fn plain(
    geometry: &Geometry<'_>,
    step_bits: i64,
    len: i64,
    output: &libsplit_tensor,
) -> Option<Span> {
    let rank = geometry.output_rank();
    let differs = output.dtype.0 ^ geometry.dtype as i32 | output.rank ^ rank_number(rank);
    if differs.cast_unsigned() | output.bit_offset != 0 {
        return None;
    }
    if output.shape.is_null() || !output.shape.is_aligned() {
        return None;
    }
    // SAFETY: its rank is right, and there is an array for the shape.
    if !unsafe { has_shape(geometry, len, output.shape) } {
        return None;
    }
    if !output.strides.is_null() {
        // SAFETY: as above.
        if !output.strides.is_aligned() || !unsafe { are_packed(output, rank) } {
            return None;
        }
    }
    let bytes = usize::try_from(shape::bytes_of_bits(step_bits.wrapping_mul(len))).ok()?;
    // None stated is the most.
    if bytes == 0 || output.data_bytes.wrapping_sub(1) < bytes.wrapping_sub(1) {
        return None;
    }
    if output.data.is_null() {
        return None;
    }
    let start = output.data as usize;
    Some(Span { start, end: start.checked_add(bytes)? })
}

/// Whether these are the input's extents but on the split axis, where they are `len`, unless outputs have
/// none.
///
/// # Safety
/// An array of as many entries as an output has axes.
#[inline(always)]
unsafe fn has_shape(geometry: &Geometry<'_>, len: i64, shape: *const i64) -> bool {
    let (input, rank, axis) = (geometry.shape.as_ptr(), geometry.shape.len(), geometry.axis);
    // Outputs that have lost the axis have what is inward of it one place further out.
    let inner = if geometry.keeps_axis { shape } else { shape.wrapping_sub(1) };
    // SAFETY: within both.
    let are_equal =
        |shape: *const i64, at: usize| unsafe { *shape.wrapping_add(at) == *input.add(at) };
    // SAFETY: as above.
    (0..axis).all(|at| are_equal(shape, at))
        && (!geometry.keeps_axis || unsafe { *shape.add(axis) == len })
        && (axis + 1..rank).all(|at| are_equal(inner, at))
}

/// Whether an output's strides are packed ones.
///
/// # Safety
/// Both arrays must be there.
#[inline(always)]
unsafe fn are_packed(output: &libsplit_tensor, rank: usize) -> bool {
    // SAFETY: promise 1, for the rank is right.
    let [shape, strides] = [output.shape, output.strides]
        .map(|array| unsafe { core::slice::from_raw_parts(array, rank) });
    shape::is_packed(shape.iter().copied().zip(strides.iter().copied()).rev())
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

/// A checked copy.
struct Job<'a> {
    call: &'a Call<'a>,
    outputs: &'a [libsplit_tensor],
    seen: &'a Seen,
}

impl<'a> Job<'a> {
    /// # Safety
    /// As [`copy::run`]; see [`copy::is_small`].
    #[inline(always)]
    unsafe fn run_small(&self, lengths: Option<&[i64]>) {
        let Plan { geometry, pieces } = &self.call.plan;
        let rows = FewRows::new(geometry, self.seen.outputs.bytes);
        let (source, outputs) = (self.call.input.data, self.outputs.as_ptr());
        // SAFETY: promises 1, 2 and 5; there are as many outputs as lengths.
        unsafe {
            match lengths {
                Some(lengths) => {
                    run_rows(&rows, source, lengths, outputs);
                }
                None => run_rows_in_blocks(&rows, source, pieces, outputs),
            }
        }
    }

    /// That outputs lie apart, where that is not plain to see.
    #[cold]
    #[inline(never)]
    fn check_closely(&self, reads: Reads<'_>, report: &mut Report) -> Result<(), Fault> {
        let (transfer, outputs) = (self.transfer(), &self.seen.outputs);
        if !outputs.are_apart() {
            outputs.check_closely(&transfer, report)?;
        }
        if self.reads_are_apart(reads) {
            return Ok(());
        }
        check_reads(&transfer, reads, self.outputs, report)
    }

    /// Whether it is plain to see that nothing is written which is read meanwhile, the input aside.
    #[inline(always)]
    fn reads_are_apart(&self, reads: Reads<'_>) -> bool {
        let written = self.seen.outputs.trail.hull;
        self.seen.arrays.is_apart(written)
            && Span::of_slice(self.outputs).is_apart(written)
            && reads.are_apart(written)
    }

    /// As the engine takes it.
    #[inline(never)]
    fn transfer(&self) -> Transfer<'a> {
        let Self { call, outputs, seen: Seen { outputs: seen, .. } } = *self;
        let Plan { geometry, pieces } = call.plan;
        Transfer {
            geometry,
            source: call.input.data,
            strides: call.input.strides.filter(|_| seen.bytes > 0 && !call.input.is_packed()),
            bit_offset: call.input.bit_offset,
            parts: Parts::Ruled { pieces, targets: datas(outputs) },
            output_strides: if seen.are_packed {
                OutputStrides::Packed
            } else {
                strides_of(outputs, geometry.output_rank())
            },
            bytes: seen.bytes,
        }
    }

    /// # Safety
    /// As [`copy::run`].
    #[inline(never)]
    unsafe fn run(&self, pool: Option<&dyn Executor>, report: &mut Report) -> Result<(), Fault> {
        let transfer = self.transfer();
        // SAFETY: promise 5.
        unsafe { copy::run(&transfer, transfer.parts.iter().count(), pool, report) }
    }
}

/// # Safety
/// As [`run_rows`].
#[inline(never)]
unsafe fn run_rows_in_blocks(
    rows: &FewRows,
    mut source: *const u8,
    pieces: &Pieces<'_>,
    mut outputs: *const libsplit_tensor,
) {
    let (mut all, mut room) = (Blocks::new(pieces), blocks::room());
    loop {
        let lengths = all.next(&mut room);
        if lengths.is_empty() {
            return;
        }
        // SAFETY: the caller's promise.
        source = unsafe { run_rows(rows, source, lengths, outputs) };
        outputs = outputs.wrapping_add(lengths.len());
    }
}

/// Copies pieces of few rows; gives where the next one begins.
///
/// # Safety
/// There must be as many outputs as lengths, of a checked copy.
#[inline(never)] // with all registers to itself
unsafe fn run_rows(
    rows: &FewRows,
    mut source: *const u8,
    lengths: &[i64],
    mut output: *const libsplit_tensor,
) -> *const u8 {
    for len in lengths {
        let run = rows.run(*len);
        // SAFETY: the caller's promise.
        unsafe {
            if !is_unwanted(&*output) {
                rows.copy(source, (*output).data.cast(), run);
            }
        }
        source = source.wrapping_add(run);
        output = output.wrapping_add(1);
    }
    source
}

/// The fields `data` of descriptors.
fn datas(outputs: &[libsplit_tensor]) -> Pointers<'_, u8> {
    let first = outputs.as_ptr().wrapping_byte_add(offset_of!(libsplit_tensor, data));
    // SAFETY: as many descriptors are borrowed.
    unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) }
}

/// The fields `strides` of descriptors.
fn strides_of(outputs: &[libsplit_tensor], rank: usize) -> OutputStrides<'_> {
    let first = outputs.as_ptr().wrapping_byte_add(offset_of!(libsplit_tensor, strides));
    // SAFETY: as many descriptors are borrowed.
    let strides =
        unsafe { Pointers::new(first.cast(), size_of::<libsplit_tensor>(), outputs.len()) };
    OutputStrides::Described { strides, rank }
}

/// That no output lies over memory that is read meanwhile.
#[inline(never)]
fn check_reads(
    transfer: &Transfer<'_>,
    reads: Reads<'_>,
    outputs: &[libsplit_tensor],
    report: &mut Report,
) -> Result<(), Fault> {
    let count = transfer.parts.count();
    let (descriptors, rank) = (Span::of_slice(outputs), transfer.geometry.output_rank());
    for at in 0..count {
        let span = transfer.span(at);
        if !reads.are_apart(span) || !descriptors.is_apart(span) {
            check_read(transfer.index(at), span, reads, descriptors, report)?;
        }
    }
    // Shapes and strides of all outputs, which follow the outputs in number.
    let array = |at: usize| {
        let Some(output) = outputs.get(at / 2).filter(|output| !is_unwanted(output)) else {
            return Span::default();
        };
        Span::of_array(if at.is_multiple_of(2) { output.shape } else { output.strides }, rank)
    };
    let arrays = outputs.len().saturating_mul(2);
    let found = if count <= FEW && outputs.len() <= FEW {
        let all = (0..count).flat_map(|at| (0..arrays).map(move |array| (at, array)));
        all.into_iter().find(|(at, of)| transfer.span(*at).intersects(array(*of)))
    } else {
        let of = |at: usize| match at.checked_sub(count) {
            None => transfer.span(at),
            Some(at) => array(at),
        };
        let all = Numbered(count.saturating_add(arrays), &of);
        spans::crossing(count, &all).map(|(at, array)| (at, array - count))
    };
    match found {
        None => Ok(()),
        Some((at, array)) => {
            let (output, other) = (transfer.index(at), Which::Output(array / 2));
            report.refuse(Error::DataOverDescriptor { output, other })
        }
    }
}

/// So many outputs are compared with all arrays.
const FEW: usize = 8;

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
