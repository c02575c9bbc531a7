//! Plans: a split in the caller's memory, with everything decided that does not depend on
//! addresses. A plan is plain bytes: a head, then arrays.
//!
//! | array | entries | what |
//! |---|---|---|
//! | shape, strides | rank each | the input's |
//! | views | one an output | bytes from the input's data to the piece; [`UNWANTED`] |
//! | parts | one an output | the pieces that are wanted and have elements, in order |
//! | reaches | one an output | of strided outputs: the bytes of each part, relative to its data |
//! | output strides | rank an output | of strided outputs |
//!
//! Promises are those of [`super`].

// Places within a plan are aligned; numbers have been checked to fit.
#![allow(clippy::cast_ptr_alignment, clippy::cast_possible_wrap)]
#![allow(clippy::cast_possible_truncation)]

use super::copies::check;
use super::executor::Pool;
use super::parse::{self, checked, is_unwanted, Call, Look};
use super::reads::Reads;
use super::types::{
    libsplit_error, libsplit_executor, libsplit_params, libsplit_plan, libsplit_tensor,
};
use crate::copy::{self, Executor};
use crate::dtype::DType;
use crate::error::{Error, Fault, Report, Which};
use crate::joined::Joined;
use crate::overlap::few::{Few, FEW};
use crate::parts::{OutputStrides, Parts, PlannedPart, Pointers, Transfer};
use crate::place::Place;
use crate::plan::{Geometry, Piece, Splitting};
use crate::shape::{self, usize_of, MAX_RANK};
use crate::span::Span;
use crate::targets::Outputs;
use crate::tensor::{Reach, Tensor};
use core::ptr::null;

/// What a plan of this version of the library begins with, and of a build that lays plans out like it.
const MAGIC: u64 = {
    let version = crate::ffi::LIBSPLIT_VERSION_MAJOR << 16
        | crate::ffi::LIBSPLIT_VERSION_MINOR << 8
        | crate::ffi::LIBSPLIT_VERSION_PATCH;
    (u32::from_be_bytes(*b"splt") as u64) << 32
        | (version as u64) << 8
        | size_of::<Head>() as u64 & 0xFF
};

/// In place of a view: the output is not wanted.
const UNWANTED: i64 = i64::MIN;

#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    magic: u64,
    num_outputs: usize,
    num_parts: usize,
    /// Bytes of all parts.
    bytes: usize,
    dtype: DType,
    bit_offset: u32,
    rank: u32,
    axis: u32,
    keeps_axis: bool,
    has_elements: bool,
    /// Whether the input, or an output, has strides that are not packed.
    is_strided: bool,
    has_strided_outputs: bool,
    extent: i64,
    elements: i64,
    inner: i64,
    outer: i64,
    reach: Reach,
    arrays: Arrays,
}

/// Where the arrays of a plan begin, in bytes, for so many axes and outputs.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arrays {
    shape: usize,
    strides: usize,
    views: usize,
    parts: usize,
    reaches: usize,
    output_strides: usize,
    end: usize,
}

impl Arrays {
    /// `None` where there is no such plan.
    fn new(rank: usize, outputs: usize) -> Option<Self> {
        // Without outputs, nothing is asked about the input.
        let axes = if outputs == 0 { 0 } else { rank * size_of::<i64>() };
        let shape = size_of::<Head>();
        let strides = shape + axes;
        let views = strides + axes;
        let parts = views.checked_add(outputs.checked_mul(size_of::<i64>())?)?;
        let reaches = parts.checked_add(outputs.checked_mul(size_of::<PlannedPart>())?)?;
        let output_strides = reaches.checked_add(outputs.checked_mul(size_of::<Reach>())?)?;
        let end = output_strides.checked_add(outputs.checked_mul(axes)?)?;
        let fits = (1..=MAX_RANK).contains(&rank) && end <= isize::MAX.unsigned_abs();
        fits.then_some(Self { shape, strides, views, parts, reaches, output_strides, end })
    }
}

pub(super) fn size(rank: i32, num_outputs: usize) -> usize {
    usize::try_from(rank).ok().and_then(|rank| Arrays::new(rank, num_outputs)).map_or(0, |a| a.end)
}

/// # Safety
/// As [`super::libsplit_plan_init`].
#[allow(clippy::too_many_arguments)] // the C function's
pub(super) unsafe fn init(
    plan: *mut libsplit_plan,
    plan_size: usize,
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = parse::room();
        let call =
            Call::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room, report)?;
        let outputs = if outputs.is_null() {
            None
        } else {
            Some(parse::descriptors(outputs, num_outputs, report)?)
        };
        let reads = Reads::new(call, error, null());
        make(plan, plan_size, call, outputs, num_outputs, reads, report)
    }
}

/// Makes a plan of a call; without outputs, all are wanted and packed.
///
/// # Safety
/// Promises 1 and 2; `plan` must be valid for `plan_size` bytes.
pub(crate) unsafe fn make(
    plan: *mut libsplit_plan,
    plan_size: usize,
    call: &Call<'_>,
    outputs: Option<&[libsplit_tensor]>,
    num_outputs: usize,
    reads: Reads<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let splitting = &call.splitting;
        let geometry = splitting.geometry;
        let place = checked(plan.cast::<u64>(), "plan", report)?.cast_mut().cast::<u8>();
        let given = outputs.unwrap_or_default();
        let Some(arrays) = Arrays::new(geometry.shape.len(), num_outputs) else {
            let (argument, expected) = ("num_outputs", i64::MAX);
            return report.refuse(Error::TooManyOutputs {
                argument,
                expected,
                actual: num_outputs,
            });
        };
        if plan_size < arrays.end {
            let (expected, actual) = (arrays.end, plan_size);
            return report.refuse(Error::PlanSize { expected, actual });
        }
        call.input.check_bit_offset(Which::Input, report)?;
        let reach = match geometry.elements {
            0 => Reach::default(),
            elements => call.input.reach(elements, Which::Input, report)?,
        };
        let mut are_packed = true;
        for piece in splitting.pieces() {
            let Some(output) = given.get(piece.index).filter(|output| !is_unwanted(output)) else {
                continue;
            };
            let (_, _, is_packed) = check(&geometry, piece, output, report)?;
            are_packed &= is_packed;
        }
        let memory = Span { start: place as usize, end: (place as usize).wrapping_add(arrays.end) };
        check_apart(memory, reads, given, geometry.output_rank(), report)?;
        let writer = Writer { place, arrays, outputs, has_strided_outputs: !are_packed };
        writer.write(&call.input, splitting, reach, report)
    }
}

/// That the plan lies over nothing that is read while it is written.
#[inline(never)]
fn check_apart(
    plan: Span,
    reads: Reads<'_>,
    outputs: &[libsplit_tensor],
    rank: usize,
    report: &mut Report,
) -> Result<(), Fault> {
    let argument = "plan";
    if let Some(other) = reads.under(plan) {
        return report.refuse(Error::ArrayOverlap { argument, other });
    }
    for (index, output) in outputs.iter().enumerate().filter(|(_, output)| !is_unwanted(output)) {
        let arrays = parse::arrays(output, rank);
        if arrays.iter().any(|array| plan.intersects(*array)) {
            return report.refuse(Error::ArrayOverlap { argument, other: Which::Output(index) });
        }
    }
    if plan.intersects(Span::of_slice(outputs)) {
        return report.refuse(Error::ArrayOverlap { argument, other: Which::Output(0) });
    }
    Ok(())
}

/// What a checked plan is written from.
struct Writer<'a> {
    place: *mut u8,
    arrays: Arrays,
    /// `None` = all wanted and packed.
    outputs: Option<&'a [libsplit_tensor]>,
    has_strided_outputs: bool,
}

impl Writer<'_> {
    /// An entry of an array.
    fn entry<T>(&self, array: usize, index: usize) -> *mut T {
        self.place.wrapping_add(array + index * size_of::<T>()).cast()
    }

    /// # Safety
    /// Promises 1 and 2; there must be room for the plan, which lies over nothing else.
    unsafe fn write(
        &self,
        input: &Tensor<'_>,
        splitting: &Splitting<'_>,
        reach: Reach,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let geometry = &splitting.geometry;
        let view = Place::new(geometry, input);
        let is_strided = view.strides.is_some() && !input.is_packed();
        // SAFETY: the caller's promise; there is room for a head, and for as many entries as there are axes.
        unsafe {
            let (num_outputs, num_parts, bytes) = self.write_outputs(splitting, &view, report)?;
            if num_outputs > 0 {
                let strides = view.strides.unwrap_or_default();
                for (array, axes) in
                    [(self.arrays.shape, geometry.shape), (self.arrays.strides, strides)]
                {
                    self.entry::<i64>(array, 0).copy_from_nonoverlapping(axes.as_ptr(), axes.len());
                }
            }
            self.place.cast::<Head>().write(Head {
                magic: MAGIC,
                num_outputs,
                num_parts,
                bytes,
                dtype: geometry.dtype,
                bit_offset: input.bit_offset,
                rank: u32::try_from(geometry.shape.len()).unwrap_or(0),
                axis: u32::try_from(geometry.axis).unwrap_or(0),
                keeps_axis: geometry.keeps_axis,
                has_elements: view.has_elements,
                is_strided,
                has_strided_outputs: self.has_strided_outputs,
                extent: geometry.extent,
                elements: geometry.elements,
                inner: geometry.inner,
                outer: geometry.outer,
                reach,
                arrays: self.arrays,
            });
        }
        Ok(())
    }

    /// Writes views, parts, and what there is of strided outputs. Gives how many outputs and parts there are, and
    /// the bytes of all parts.
    ///
    /// # Safety
    /// As [`Writer::write`].
    unsafe fn write_outputs(
        &self,
        splitting: &Splitting<'_>,
        view: &Place<'_>,
        report: &mut Report,
    ) -> Result<(usize, usize, usize), Fault> {
        let geometry = &splitting.geometry;
        let (mut num_outputs, mut num_parts, mut bytes) = (0, 0, 0);
        for piece in splitting.pieces() {
            let Piece { index, offset, len } = piece;
            num_outputs += 1;
            let output = self.outputs.and_then(|outputs| outputs.get(index));
            let ahead = match output {
                Some(output) if is_unwanted(output) => UNWANTED,
                _ => view.of(offset, len).ahead as i64,
            };
            // SAFETY: there is room for as many entries as there are outputs and axes; promises 1 and 2.
            unsafe {
                self.entry::<i64>(self.arrays.views, index).write(ahead);
                if ahead == UNWANTED || geometry.piece_elements(len) == 0 {
                    continue;
                }
                let part = PlannedPart { index, offset, len };
                self.entry::<PlannedPart>(self.arrays.parts, num_parts).write(part);
                if let Some(output) = output.filter(|_| self.has_strided_outputs) {
                    // Once more: nothing may be written before all of them are right.
                    let (output, reach, _) = check(geometry, piece, output, report)?;
                    self.entry::<Reach>(self.arrays.reaches, num_parts).write(reach);
                    self.write_strides(index, &output);
                }
            }
            num_parts += 1;
            bytes += geometry.piece_bytes(len);
        }
        Ok((num_outputs, num_parts, bytes))
    }

    /// Writes the strides of an output: its own, or the packed ones.
    ///
    /// # Safety
    /// As [`Writer::write`].
    unsafe fn write_strides(&self, index: usize, output: &Tensor<'_>) {
        let (rank, mut packed) = (output.shape.len(), 1i64);
        for (axis, extent) in output.shape.iter().enumerate().rev() {
            let stride = output.strides.and_then(|own| own.get(axis)).copied().unwrap_or(packed);
            // SAFETY: there is room for as many in the plan.
            unsafe {
                self.entry::<i64>(self.arrays.output_strides, index * rank + axis).write(stride);
            }
            packed = packed.wrapping_mul(*extent);
        }
    }
}

/// Takes in so many bytes that lie above or below the others; a macro, for then all of it is in registers.
macro_rules! put_apart {
    ($written:ident, $start:expr, $bytes:expr) => {{
        let start = $start;
        let end = start.checked_add($bytes)?;
        if start >= $written.end {
            $written.end = end;
        } else if end <= $written.start {
            $written.start = start;
        } else {
            return None;
        }
    }};
}

/// A plan as it is read.
struct Planned<'a> {
    head: &'a Head,
    place: *const u8,
}

impl<'a> Planned<'a> {
    /// # Safety
    /// Promises 1 and 3.
    #[inline(always)]
    unsafe fn read(
        plan: *const libsplit_plan,
        num_outputs: usize,
        report: &mut Report,
    ) -> Result<Self, Fault> {
        let place = checked(plan.cast::<u64>(), "plan", report)?;
        // SAFETY: promises 1 and 3: 8 bytes are there, and if they are right, all others.
        let head = unsafe {
            if *place != MAGIC {
                return report.refuse(Error::NoPlan { actual: *place });
            }
            &*place.cast::<Head>()
        };
        if head.num_outputs != num_outputs {
            let (expected, actual) = (head.num_outputs, num_outputs);
            return report.refuse(Error::PlanOutputs { expected, actual });
        }
        Ok(Self { head, place: place.cast() })
    }

    /// An array of the plan.
    #[inline(always)]
    fn array<T>(&self, array: usize, len: usize) -> &'a [T] {
        // SAFETY: promise 3.
        unsafe { core::slice::from_raw_parts(self.place.add(array).cast(), len) }
    }

    fn span(&self) -> Span {
        Span::of_array(self.place, self.head.arrays.end)
    }

    #[inline(always)]
    fn geometry(&self) -> Geometry<'a> {
        let head = self.head;
        let rank = if head.num_outputs == 0 { 0 } else { head.rank as usize };
        Geometry {
            dtype: head.dtype,
            shape: self.array(head.arrays.shape, rank),
            axis: head.axis as usize,
            keeps_axis: head.keeps_axis,
            extent: head.extent,
            elements: head.elements,
            inner: head.inner,
            outer: head.outer,
        }
    }

    /// A copy by the plan, as the engine takes it.
    #[inline(never)]
    fn transfer(&self, source: *const u8, targets: Pointers<'a, u8>) -> Transfer<'a> {
        let (head, geometry) = (self.head, self.geometry());
        let (axes, rank) = (geometry.shape.len(), geometry.output_rank());
        Transfer {
            geometry,
            source,
            strides: head.is_strided.then(|| self.array(head.arrays.strides, axes)),
            bit_offset: head.bit_offset,
            parts: Parts::Planned { parts: self.array(head.arrays.parts, head.num_parts), targets },
            output_strides: if head.has_strided_outputs {
                let strides = self.array(head.arrays.output_strides, rank * head.num_outputs);
                OutputStrides::Planned { strides, rank }
            } else {
                OutputStrides::Packed
            },
            bytes: head.bytes,
        }
    }

    #[inline(always)]
    fn parts(&self) -> &'a [PlannedPart] {
        self.array(self.head.arrays.parts, self.head.num_parts)
    }

    /// From the lowest to the highest byte that is written, where it is plain to see that nothing is wrong with
    /// the outputs: all are packed, and each lies above or below those before it.
    #[inline(always)]
    fn plain(&self, targets: Pointers<'_, u8>) -> Option<Span> {
        if self.head.has_strided_outputs {
            return self.plain_strided(targets);
        }
        let (step_bits, parts) = (self.geometry().step_bits(), self.parts());
        // SAFETY: promise 3; there are as many targets as outputs.
        let target = |part: &PlannedPart| unsafe { targets.at(part.index) };
        let start = target(parts.first()?) as usize;
        let mut written = Span { start, end: start };
        for part in parts {
            let bytes = usize_of(shape::bytes_of_bits(step_bits.wrapping_mul(part.len)));
            put_apart!(written, target(part) as usize, bytes);
        }
        // One at NULL would be the lowest.
        (written.start != 0).then_some(written)
    }

    /// The same of outputs that have strides.
    #[inline(never)] // off the way of others
    fn plain_strided(&self, targets: Pointers<'_, u8>) -> Option<Span> {
        let reaches: &[Reach] = self.array(self.head.arrays.reaches, self.head.num_parts);
        let mut spans = self.parts().iter().zip(reaches).map(|(part, reach)| {
            let target = targets.get(part.index);
            reach.at(target).filter(|_| !target.is_null())
        });
        let mut written = spans.next()??;
        for span in spans {
            let Span { start, end } = span?;
            put_apart!(written, start, end - start);
        }
        Some(written)
    }

    /// Checks the outputs, whatever they are like, against each other and all that is read. Whether they made one
    /// tensor, as slices of which they have been copied.
    ///
    /// # Safety
    /// As [`copy_on`].
    #[cold]
    #[inline(never)]
    unsafe fn check(
        &self,
        source: *const u8,
        input: Span,
        targets: Pointers<'a, u8>,
        reads: &[(Which, Span); 4],
        pool: Option<&dyn Executor>,
        report: &mut Report,
    ) -> Result<bool, Fault> {
        let head = self.head;
        if self.are_few_and_apart(input, targets, reads) {
            return Ok(false);
        }
        let reaches: &[Reach] = if head.has_strided_outputs {
            self.array(head.arrays.reaches, head.num_parts)
        } else {
            &[]
        };
        let mut seen = Outputs::new(input);
        for (at, part) in self.parts().iter().enumerate() {
            let (which, target) = (Which::Output(part.index), targets.get(part.index));
            if target.is_null() {
                return report.refuse(Error::NullAddress { which });
            }
            let bytes = self.geometry().piece_bytes(part.len);
            let reach = reaches.get(at).copied().unwrap_or(Reach { low: 0, bytes: bytes as i64 });
            let span = reach.place(target, which, report)?;
            seen.push(span, !head.has_strided_outputs, bytes);
        }
        let (transfer, mut one) = (self.transfer(source, targets), Joined::NONE);
        let are_one = !seen.are_apart() && seen.check_closely(&transfer, &mut one, report)?;
        check_reads(&transfer, seen.trail.hull, reads, report)?;
        if are_one {
            // SAFETY: promises 3 and 5.
            unsafe { copy::run(&transfer, pool, report) }?;
        }
        Ok(are_one)
    }

    /// Whether few packed outputs are apart from each other and all that is read.
    #[inline(never)] // for its stack
    fn are_few_and_apart(
        &self,
        input: Span,
        targets: Pointers<'_, u8>,
        reads: &[(Which, Span)],
    ) -> bool {
        if self.head.num_parts > FEW || self.head.has_strided_outputs {
            return false;
        }
        let (geometry, mut few) = (self.geometry(), Few::new());
        for part in self.parts() {
            let (start, bytes) = (targets.get(part.index), geometry.piece_bytes(part.len));
            if start.is_null() || (start as usize).checked_add(bytes).is_none() {
                return false;
            }
            few.push(Span::of_bytes(start, bytes));
        }
        few.are_apart()
            && few.are_apart_from(input)
            && reads.iter().all(|(_, read)| few.are_apart_from(*read))
    }

    /// # Safety
    /// As [`copy::run`].
    #[inline(never)]
    unsafe fn run(
        &self,
        source: *const u8,
        targets: Pointers<'a, u8>,
        pool: Option<&dyn Executor>,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let transfer = self.transfer(source, targets);
        // SAFETY: promises 3 and 5.
        unsafe { copy::run(&transfer, pool, report) }
    }
}

/// # Safety
/// As [`super::libsplit_plan_copy`].
#[inline(always)]
pub(super) unsafe fn copy(
    plan: *const libsplit_plan,
    input: *const u8,
    outputs: *const *mut u8,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promise 1.
    unsafe {
        let (given, mut pool);
        pool = None::<&dyn Executor>;
        if !executor.is_null() {
            given = Pool::parse(executor, report)?;
            pool = Some(&given);
        }
        let others = [
            (Which::Output(0), Span::of_array(outputs, num_outputs)),
            (Which::Executor, Span::of(executor)),
            (Which::Error, Span::of(error)),
        ];
        copy_on(plan, input, outputs, num_outputs, pool, others, report)
    }
}

/// Copies on a pool, if there is one. Outputs must not lie over the plan or the `others`.
///
/// # Safety
/// As [`super::libsplit_plan_copy`].
#[inline(always)]
pub(crate) unsafe fn copy_on(
    plan: *const libsplit_plan,
    input: *const u8,
    outputs: *const *mut u8,
    num_outputs: usize,
    pool: Option<&dyn Executor>,
    others: [(Which, Span); 3],
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promises 1 and 3.
    unsafe {
        let plan = Planned::read(plan, num_outputs, report)?;
        let head = plan.head;
        if head.num_parts == 0 {
            return Ok(());
        }
        checked(outputs, "outputs", report)?;
        let targets = Pointers::new(outputs, size_of::<*mut u8>(), num_outputs);
        if input.is_null() {
            return report.refuse(Error::NullAddress { which: Which::Input });
        }
        let span = head.reach.place(input, Which::Input, report)?;
        let [first, second, third] = others;
        let reads = || [(Which::Plan, plan.span()), first, second, third];
        let is_plain = plan.plain(targets).is_some_and(|written| {
            written.is_apart(span) && reads().iter().all(|(_, read)| read.is_apart(written))
        });
        if !is_plain && plan.check(input, span, targets, &reads(), pool, report)? {
            return Ok(());
        }
        plan.run(input, targets, pool, report)
    }
}

/// That no output, all of which lie within what is `written`, lies over memory that is read meanwhile.
#[cold]
#[inline(never)]
fn check_reads(
    transfer: &Transfer<'_>,
    written: Span,
    reads: &[(Which, Span)],
    report: &mut Report,
) -> Result<(), Fault> {
    let met = reads.iter().filter(|(_, read)| !read.is_apart(written));
    met.copied().try_for_each(|(other, read)| check_read(transfer, read, other, report))
}

#[inline(never)] // of most it is not asked
fn check_read(
    transfer: &Transfer<'_>,
    read: Span,
    other: Which,
    report: &mut Report,
) -> Result<(), Fault> {
    match (0..transfer.parts.count()).find(|at| transfer.span(*at).intersects(read)) {
        None => Ok(()),
        Some(at) => report.refuse(Error::DataOverDescriptor { output: transfer.index(at), other }),
    }
}

/// # Safety
/// As [`super::libsplit_plan_view`].
#[inline(always)]
pub(super) unsafe fn view(
    plan: *const libsplit_plan,
    input: *mut u8,
    outputs: *mut *mut u8,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promises 1 and 3.
    unsafe {
        let plan = Planned::read(plan, num_outputs, report)?;
        if num_outputs == 0 {
            return Ok(());
        }
        checked(outputs.cast_const(), "outputs", report)?;
        if plan.head.has_elements {
            if input.is_null() {
                return report.refuse(Error::NullAddress { which: Which::Input });
            }
            plan.head.reach.place(input, Which::Input, report)?;
        }
        let written = Span::of_array(outputs.cast_const(), num_outputs);
        for (other, read) in [(Which::Plan, plan.span()), (Which::Error, Span::of(error))] {
            if !read.is_apart(written) && read.intersects(written) {
                return report.refuse(Error::ArrayOverlap { argument: "outputs", other });
            }
        }
        let views: &[i64] = plan.array(plan.head.arrays.views, num_outputs);
        for (index, ahead) in views.iter().enumerate() {
            if *ahead != UNWANTED {
                outputs.add(index).write(input.wrapping_offset(*ahead as isize));
            }
        }
    }
    Ok(())
}
