//! A copy: every output is looked at once, and then all bytes move.

#![allow(clippy::inline_always)] // on the way of every call

use super::executor::Pool;
use super::parse::{self, Call, Look, Wanted};
use super::reads::Reads;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::{self, Executor};
use crate::error::{Error, Fault, Report, Which};
use crate::overlap;
use crate::parts::{OutputStrides, Part, Parts, Pointers, Transfer};
use crate::plan::{Geometry, Piece, Plan};
use crate::shape::{self, usize_of};
use crate::span::Span;
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
/// Promises 1 and 2 of [`parse`], for what the call's input and the outputs describe.
#[inline(always)]
pub(crate) unsafe fn copy_parsed(
    call: &Call<'_>,
    outputs: &[libsplit_tensor],
    pool: Option<&dyn Executor>,
    reads: Reads<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    let geometry = &call.plan.geometry;
    // SAFETY: promises 1 and 2.
    unsafe {
        let input = call.input.span(geometry.elements, Which::Input, report)?;
        let seen = Seen::all(&call.plan, outputs, input, report);
        let seen = seen.as_ref().map_err(|fault| *fault)?;
        let job = Job { call, outputs, seen: &seen.outputs };
        if !seen.outputs.are_apart() {
            seen.outputs.check_closely(&job.transfer(), report)?;
        }
        let written = seen.outputs.trail.hull;
        if !(reads.are_apart([written])
            && seen.arrays.is_apart(written)
            && Span::of_slice(outputs).is_apart(written))
        {
            check_reads(&job.transfer(), reads, outputs, report)?;
        }
        let is_small = seen.outputs.are_packed && copy::is_small(geometry, seen.outputs.bytes);
        if is_small && call.input.is_packed() {
            job.run_small();
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
    /// Checks every output.
    ///
    /// # Safety
    /// As [`parse_output`].
    #[inline(never)] // with all registers to itself
    unsafe fn all(
        plan: &Plan<'_>,
        outputs: &[libsplit_tensor],
        input: Span,
        report: &mut Report,
    ) -> Result<Self, Fault> {
        let expected = Expected::new(&plan.geometry);
        let mut seen = Self { outputs: Outputs::new(input), arrays: Span::NOWHERE };
        for (piece, output) in Wanted::new(plan, outputs) {
            // SAFETY: promises 1 and 2.
            unsafe {
                if let Some((span, arrays)) = expected.plain(piece.len, output) {
                    seen.arrays = seen.arrays.hull(arrays);
                    seen.outputs.push(span, true, span.len());
                } else {
                    seen.see_closely(&plan.geometry, piece, output, report)?;
                }
            }
        }
        Ok(seen)
    }

    /// Checks an output, whatever it is like.
    ///
    /// # Safety
    /// As [`parse_output`].
    #[inline(never)]
    unsafe fn see_closely(
        &mut self,
        geometry: &Geometry<'_>,
        piece: Piece,
        output: &libsplit_tensor,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let Piece { index, len, .. } = piece;
        let which = Which::Output(index);
        // SAFETY: promises 1 and 2.
        let (tensor, elements) = unsafe { parse_output(geometry, index, len, output, report) }?;
        for array in [Some(tensor.shape), tensor.strides].into_iter().flatten() {
            self.arrays = self.arrays.hull(Span::of_slice(array));
        }
        if elements == 0 {
            return tensor.check_bit_offset(which, report);
        }
        if tensor.data.is_null() {
            return report.refuse(Error::NullField { which, field: "data" });
        }
        let (reach, is_packed) = targets::layout(index, tensor, elements, report)?;
        let span = reach.place(tensor.data, which, report)?;
        let bytes = if is_packed { usize_of(reach.bytes) } else { geometry.piece_bytes(len) };
        self.outputs.push(span, is_packed, bytes);
        Ok(())
    }
}

/// What outputs must be like, worked out once a call.
struct Expected<'a> {
    outer: &'a [i64],
    inner: &'a [i64],
    keeps_axis: bool,
    rank: i32,
    dtype: i32,
    /// Bits of one step of the axis.
    step: i64,
}

impl<'a> Expected<'a> {
    #[inline(always)]
    fn new(geometry: &Geometry<'a>) -> Self {
        let (outer, inner) = geometry.outer_and_inner();
        Self {
            outer,
            inner,
            keeps_axis: geometry.keeps_axis,
            rank: i32::try_from(geometry.output_rank()).unwrap_or(i32::MAX),
            dtype: geometry.dtype as i32,
            step: geometry.piece_elements(1).wrapping_mul(geometry.dtype.bits().into()),
        }
    }

    /// Where an output of `len` steps and its arrays lie, if it is plain to see that all about it is
    /// right: packed, of some elements, with all numbers as they should be. Anything else is left to
    /// [`Seen::see_closely`].
    ///
    /// # Safety
    /// Promises 1 and 2 of [`parse`].
    #[inline(always)]
    unsafe fn plain(&self, len: i64, output: &libsplit_tensor) -> Option<(Span, Span)> {
        let bits = self.step.wrapping_mul(len).cast_unsigned();
        let bytes = usize::try_from((bits + 7) >> 3).ok()?;
        let is_plain = output.dtype.0 == self.dtype
            && output.rank == self.rank
            && output.bit_offset == 0
            && !output.shape.is_null()
            && output.shape.is_aligned()
            && !output.data.is_null()
            && (output.data_bytes == 0 || output.data_bytes >= bytes);
        // SAFETY: its rank is right, and there is an array for the shape.
        if !is_plain || bytes == 0 || !unsafe { self.has_shape(len, output.shape) } {
            return None;
        }
        let rank = usize::try_from(self.rank).unwrap_or(0);
        let mut arrays = Span::of_array(output.shape, rank);
        if !output.strides.is_null() {
            // SAFETY: as above.
            if !unsafe { are_packed(output, rank) } {
                return None;
            }
            arrays = arrays.hull(Span::of_array(output.strides, rank));
        }
        let start = output.data as usize;
        Some((Span { start, end: start.checked_add(bytes)? }, arrays))
    }

    /// # Safety
    /// An array of as many entries as the rank says.
    #[inline(always)]
    unsafe fn has_shape(&self, len: i64, shape: *const i64) -> bool {
        let mut next = shape;
        let mut is_next = |extent: i64| {
            // SAFETY: the caller's promise: the extents asked for are as many as the rank says.
            let is_equal = unsafe { *next } == extent;
            next = next.wrapping_add(1);
            is_equal
        };
        self.outer.iter().all(|extent| is_next(*extent))
            && (!self.keeps_axis || is_next(len))
            && self.inner.iter().all(|extent| is_next(*extent))
    }
}

/// Whether strides are those of a packed tensor.
///
/// # Safety
/// The shape and, unless they are misaligned, the strides must have `rank` entries.
#[inline(never)]
unsafe fn are_packed(output: &libsplit_tensor, rank: usize) -> bool {
    if !output.strides.is_aligned() {
        return false;
    }
    // SAFETY: the caller's promise.
    let [shape, strides] = [output.shape, output.strides]
        .map(|array| unsafe { core::slice::from_raw_parts(array, rank) });
    shape::is_packed(shape.iter().copied().zip(strides.iter().copied()).rev())
}

/// A checked copy.
struct Job<'a> {
    call: &'a Call<'a>,
    outputs: &'a [libsplit_tensor],
    seen: &'a Outputs,
}

impl<'a> Job<'a> {
    /// The pieces that are wanted.
    #[inline(always)]
    fn parts(&self) -> impl Iterator<Item = Part> + use<'a> {
        let wanted = Wanted::new(&self.call.plan, self.outputs);
        wanted.map(|(Piece { index, offset, len }, output)| Part {
            index,
            offset,
            len,
            target: output.data.cast(),
        })
    }

    /// # Safety
    /// As [`copy::run`]; see [`copy::is_small`].
    #[inline(never)]
    unsafe fn run_small(&self) {
        // SAFETY: promises 1 and 2.
        unsafe {
            let call = self.call;
            let geometry = &call.plan.geometry;
            copy::run_small(geometry, call.input.data, self.parts(), self.seen.bytes);
        }
    }

    /// As the engine takes it.
    #[inline(never)]
    fn transfer(&self) -> Transfer<'a> {
        let Self { call, outputs, seen } = *self;
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
        let count = self.parts().filter(|part| part.len > 0).count();
        // SAFETY: the caller's promise.
        unsafe { copy::run(&self.transfer(), count, pool, report) }
    }
}

/// An output's descriptor, of which type, rank and shape are right, and the number of its elements.
///
/// # Safety
/// Promises 1 and 2 of [`parse`].
#[inline(always)]
pub(super) unsafe fn parse_output<'a>(
    geometry: &Geometry<'_>,
    index: usize,
    len: i64,
    output: &'a libsplit_tensor,
    report: &mut Report,
) -> Result<(Tensor<'a>, i64), Fault> {
    let (which, rank) = (Which::Output(index), geometry.output_rank());
    if output.dtype.0 != geometry.dtype as i32 || usize::try_from(output.rank) != Ok(rank) {
        return Err(not_as_given(geometry, index, output, report));
    }
    // SAFETY: the caller's promise.
    unsafe {
        let shape = parse::array(output.shape, rank, which, "shape", report)?;
        let strides = if output.strides.is_null() {
            None
        } else {
            Some(parse::array(output.strides, rank, which, "strides", report)?)
        };
        targets::check_shape(geometry, index, len, shape, report)?;
        let tensor = Tensor {
            data: output.data.cast(),
            data_bytes: output.data_bytes,
            dtype: geometry.dtype,
            shape,
            strides,
            bit_offset: output.bit_offset,
        };
        Ok((tensor, geometry.piece_elements(len)))
    }
}

/// An output whose type or rank is none, or not what the operator gives.
#[cold]
#[inline(never)]
fn not_as_given(
    geometry: &Geometry<'_>,
    index: usize,
    output: &libsplit_tensor,
    report: &mut Report,
) -> Fault {
    let which = Which::Output(index);
    let dtype = match parse::dtype_of(output, which, report) {
        Ok(dtype) => dtype,
        Err(fault) => return fault,
    };
    match parse::rank_of(output, which, report) {
        Ok(rank) => targets::wrong_type_or_rank(geometry, index, dtype, rank, report),
        Err(fault) => fault,
    }
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
        if !reads.are_apart([span]) || !descriptors.is_apart(span) {
            check_read(transfer.index(at), span, reads, descriptors, report)?;
        }
    }
    // Shapes and strides of all outputs, which follow the outputs in number.
    let array = |at: usize| {
        let Some(output) = outputs.get(at / 2).filter(|output| !parse::is_unwanted(output)) else {
            return Span::default();
        };
        Span::of_array(if at.is_multiple_of(2) { output.shape } else { output.strides }, rank)
    };
    let arrays = outputs.len().saturating_mul(2);
    let found = if count <= FEW && outputs.len() <= FEW {
        let all = (0..count).flat_map(|at| (0..arrays).map(move |array| (at, array)));
        all.into_iter().find(|(at, of)| transfer.span(*at).intersects(array(*of)))
    } else {
        let spans = |at: usize| match at.checked_sub(count) {
            None => transfer.span(at),
            Some(at) => array(at),
        };
        overlap::crossing(count, arrays, &spans).map(|(at, array)| (at, array - count))
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

/// What an output reaches over, and whether it is packed; nothing of one without elements.
///
/// # Safety
/// As [`parse_output`].
pub(super) unsafe fn layout_of(
    geometry: &Geometry<'_>,
    index: usize,
    len: i64,
    output: &libsplit_tensor,
    report: &mut Report,
) -> Result<Option<(Reach, bool)>, Fault> {
    // SAFETY: the caller's promise.
    let (tensor, elements) = unsafe { parse_output(geometry, index, len, output, report) }?;
    if elements == 0 {
        tensor.check_bit_offset(Which::Output(index), report)?;
        return Ok(None);
    }
    targets::layout(index, tensor, elements, report).map(Some)
}
