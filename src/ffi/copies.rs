//! A copy: every output is looked at once, and then all bytes move.

#![allow(clippy::inline_always)] // on the way of every call

use super::executor::Pool;
use super::parse::{self, Call, Given, Look};
use super::reads::Reads;
use super::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::{self, Executor};
use crate::error::{Error, Fault, Report, Which};
use crate::parts::{OutputStrides, Part, Parts, Pointers, Transfer};
use crate::plan::{Geometry, Piece, Plan};
use crate::shape::{self, usize_of};
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
    let geometry = &call.plan.geometry;
    // SAFETY: promises 1 and 2.
    unsafe {
        let input = call.input.span(geometry.elements, Which::Input, report)?;
        let mut seen = Seen { outputs: Outputs::new(input), arrays: Span::NOWHERE };
        seen.all(&call.plan, outputs, report)?;
        let job = Job { call, outputs, seen: &seen.outputs };
        if !seen.outputs.are_apart() {
            seen.outputs.check_closely(&job.transfer(), report)?;
        }
        let written = seen.outputs.trail.hull;
        if !(reads.are_apart(written)
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
    /// Promises 1 and 2.
    #[inline(never)] // with all registers to itself
    unsafe fn all(
        &mut self,
        plan: &Plan<'_>,
        outputs: &[libsplit_tensor],
        report: &mut Report,
    ) -> Result<(), Fault> {
        let expected = Expected::new(&plan.geometry);
        for (piece, output) in Given::new(plan, outputs) {
            // SAFETY: promises 1 and 2.
            unsafe {
                match expected.plain(piece.len, output) {
                    Some(span) => {
                        self.use_arrays(output, expected.arrays);
                        self.outputs.push(span, true, span.len());
                    }
                    None => self.see_closely(&plan.geometry, piece, output, report)?,
                }
            }
        }
        Ok(())
    }

    /// Takes note of where an output's arrays lie, of so many bytes.
    #[inline(always)]
    fn use_arrays(&mut self, output: &libsplit_tensor, size: usize) {
        for array in [output.shape, output.strides] {
            if !array.is_null() {
                self.arrays.extend(Span::of_bytes(array, size));
            }
        }
    }

    /// Checks an output, whatever it is like.
    ///
    /// # Safety
    /// Promises 1 and 2.
    #[cold]
    #[inline(never)]
    unsafe fn see_closely(
        &mut self,
        geometry: &Geometry<'_>,
        piece: Piece,
        output: &libsplit_tensor,
        report: &mut Report,
    ) -> Result<(), Fault> {
        if parse::is_unwanted(output) {
            return Ok(());
        }
        let which = Which::Output(piece.index);
        // SAFETY: promises 1 and 2.
        let (tensor, reach, is_packed) = unsafe { check(geometry, piece, output, report) }?;
        self.use_arrays(output, size_of_val(tensor.shape));
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
}

/// What outputs must be like, worked out once a call.
struct Expected<'a> {
    outer: &'a [i64],
    inner: &'a [i64],
    keeps_axis: bool,
    rank: i32,
    dtype: i32,
    step_bits: i64,
    /// Bytes of their arrays.
    arrays: usize,
}

impl<'a> Expected<'a> {
    #[inline(always)]
    fn new(geometry: &Geometry<'a>) -> Self {
        let (outer, inner) = geometry.around_axis(geometry.shape);
        Self {
            outer,
            inner,
            keeps_axis: geometry.keeps_axis,
            rank: i32::try_from(geometry.output_rank()).unwrap_or(i32::MAX),
            dtype: geometry.dtype as i32,
            step_bits: geometry.step_bits(),
            arrays: geometry.output_rank() * size_of::<i64>(),
        }
    }

    /// Where an output of `len` steps and its arrays lie, if it is plain to see that all about it is
    /// right: packed, of some elements, with all numbers as they should be. Anything else is for
    /// [`check`] to judge.
    ///
    /// # Safety
    /// Promises 1 and 2.
    #[inline(always)]
    unsafe fn plain(&self, len: i64, output: &libsplit_tensor) -> Option<Span> {
        let differs = output.dtype.0 ^ self.dtype | output.rank ^ self.rank;
        if differs.cast_unsigned() | output.bit_offset != 0 {
            return None;
        }
        if output.shape.is_null() || !output.shape.is_aligned() {
            return None;
        }
        // SAFETY: its rank is right, and there is an array for the shape.
        if !unsafe { self.has_shape(len, output.shape) } {
            return None;
        }
        if !output.strides.is_null() {
            // SAFETY: as above.
            if !output.strides.is_aligned() || !unsafe { self.are_packed(output) } {
                return None;
            }
        }
        let bytes = usize_of(shape::bytes_of_bits(self.step_bits.wrapping_mul(len)));
        if bytes == 0 {
            return None;
        }
        // None stated is the most.
        if output.data_bytes.wrapping_sub(1) < bytes.wrapping_sub(1) {
            return None;
        }
        if output.data.is_null() {
            return None;
        }
        let start = output.data as usize;
        Some(Span { start, end: start.checked_add(bytes)? })
    }

    /// # Safety
    /// An array of as many entries as the rank says.
    #[inline(always)]
    unsafe fn has_shape(&self, len: i64, shape: *const i64) -> bool {
        let mut next = shape;
        let mut is_next = |extent: i64| {
            // SAFETY: the extents asked for are as many as the rank says.
            let is_equal = unsafe { *next } == extent;
            next = next.wrapping_add(1);
            is_equal
        };
        self.outer.iter().all(|extent| is_next(*extent))
            && (!self.keeps_axis || is_next(len))
            && self.inner.iter().all(|extent| is_next(*extent))
    }

    /// Whether an output's strides are packed ones.
    ///
    /// # Safety
    /// Both arrays must be there.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // that of a tensor
    unsafe fn are_packed(&self, output: &libsplit_tensor) -> bool {
        // SAFETY: promise 1, for the rank is right.
        let [shape, strides] = [output.shape, output.strides]
            .map(|array| unsafe { core::slice::from_raw_parts(array, self.rank as usize) });
        shape::is_packed(shape.iter().copied().zip(strides.iter().copied()).rev())
    }
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
        tensor.check_bit_offset(which, report)?;
        return Ok((tensor, Reach::default(), true));
    }
    let (reach, is_packed) = targets::layout(piece.index, tensor, elements, report)?;
    Ok((tensor, reach, is_packed))
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
        let wanted = Given::new(&self.call.plan, self.outputs).wanted();
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
        // SAFETY: promise 5.
        unsafe { copy::run(&self.transfer(), count, pool, report) }
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
        if !reads.are_apart(span) || !descriptors.is_apart(span) {
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
