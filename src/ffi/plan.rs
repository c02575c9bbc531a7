//! Plans: a split in the caller's memory, with everything decided that does not depend on
//! addresses. A plan is plain bytes: a head, then arrays.
//!
//! | array | entries | what |
//! |---|---|---|
//! | shape, strides | rank each | the input's |
//! | records | one an output | the piece, where it lies in the input, and what its output reaches over |
//! | output strides | rank an output | of outputs that are not packed |
//!
//! Promises are those of [`super`].

// Places within a plan are aligned; numbers have been checked to fit.
#![allow(clippy::cast_ptr_alignment, clippy::cast_possible_truncation)]

use super::executor::Pool;
use super::outputs::{check_output, Checked, Written};
use super::parse::{self, checked, is_unwanted, Look, ParsedCall, FIRST_ERROR};
use super::types::{
    libsplit_error, libsplit_executor, libsplit_params, libsplit_plan, libsplit_tensor,
};
use crate::copy::{self, Executor};
use crate::describe;
use crate::dtype::DType;
use crate::error::Error;
use crate::geometry::{Geometry, Piece};
use crate::overlap::{Kept, Spans, Trail};
use crate::parts::{OutputStrides, Parts, Pointers, Record, Transfer, UNWANTED};
use crate::place::Place;
use crate::shape::{packed_bytes, MAX_RANK};
use crate::span::Span;
use crate::tensor::Reach;
use crate::text::Text;
use crate::words::{Argument, Which};
use core::mem::MaybeUninit;
use core::ptr::null;
use core::slice;

/// What a plan begins with: its name, and a number of the build, for which only builds that lay plans out alike have
/// the same.
#[allow(clippy::indexing_slicing)] // when the library is built
const MAGIC: u64 = {
    let facts = [
        crate::ffi::LIBSPLIT_VERSION_MAJOR,
        crate::ffi::LIBSPLIT_VERSION_MINOR,
        crate::ffi::LIBSPLIT_VERSION_PATCH,
        size_of::<Head>() as u32,
        size_of::<Record>() as u32,
        usize::BITS,
        cfg!(feature = "avx512") as u32,
        cfg!(target_endian = "big") as u32,
    ];
    // FNV-1a, of words.
    let (mut hash, mut at) = (0x811C_9DC5u32, 0);
    while at < facts.len() {
        hash = (hash ^ facts[at]).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (u32::from_be_bytes(*b"splt") as u64) << 32 | hash as u64
};

#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    magic: u64,
    num_outputs: usize,
    /// How many outputs there is something to copy to, and the bytes of all, as if they were packed.
    num_parts: usize,
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
    sections: Sections,
}

/// Where the arrays of a plan begin, in bytes, for so many axes and outputs.
#[derive(Clone, Copy)]
#[repr(C)]
struct Sections {
    shape: usize,
    strides: usize,
    records: usize,
    output_strides: usize,
    end: usize,
}

impl Sections {
    /// `None` where there is no such plan.
    fn new(rank: usize, outputs: usize) -> Option<Self> {
        // Without outputs, nothing is asked about the input.
        let axes = if outputs == 0 { 0 } else { rank * size_of::<i64>() };
        let shape = size_of::<Head>();
        let strides = shape + axes;
        let records = strides + axes;
        let output_strides = records.checked_add(outputs.checked_mul(size_of::<Record>())?)?;
        let end = output_strides.checked_add(outputs.checked_mul(axes)?)?;
        let fits = (1..=MAX_RANK).contains(&rank) && end <= isize::MAX.unsigned_abs();
        fits.then_some(Self { shape, strides, records, output_strides, end })
    }
}

pub(super) fn size(rank: i32, num_outputs: usize) -> usize {
    let rank = usize::try_from(rank).ok();
    rank.and_then(|rank| Sections::new(rank, num_outputs)).map_or(0, |sections| sections.end)
}

/// [`super::libsplit_plan_init`], with a reason in place of a status; `error` is only memory that the plan must
/// not lie over.
///
/// # Errors
/// As that function.
///
/// # Safety
/// As that function.
pub unsafe fn plan_init(
    plan: *mut libsplit_plan,
    plan_size: usize,
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let call = ParsedCall::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room)?;
        call.reads.set_error(error);
        let mut given = None;
        if !outputs.is_null() {
            given = Some(parse::descriptors(outputs, num_outputs)?);
        }
        make(plan, plan_size, call, given, num_outputs)
    }
}

/// Makes a plan of a call; without outputs, all are wanted and packed.
///
/// # Safety
/// Promises 1 and 2; `plan` must be valid for `plan_size` bytes.
pub(crate) unsafe fn make(
    plan: *mut libsplit_plan,
    plan_size: usize,
    call: &ParsedCall<'_>,
    outputs: Option<&[libsplit_tensor]>,
    num_outputs: usize,
) -> Result<(), Error> {
    let geometry = &call.geometry;
    let place = checked(plan.cast::<u64>(), Argument::Plan)?.cast_mut().cast::<u8>();
    let Some(sections) = Sections::new(geometry.shape.len(), num_outputs) else {
        let (argument, expected) = (Argument::Given, i64::MAX);
        return Err(Error::TooManyOutputs { argument, expected, actual: num_outputs });
    };
    if plan_size < sections.end {
        return Err(Error::PlanSize { expected: sections.end, actual: plan_size });
    }
    call.input.check_bit_offset(Which::Input)?;
    let mut reach = Reach::default();
    if geometry.elements > 0 {
        reach = call.input.reach(geometry.elements, Which::Input)?;
        reach.check_fits(Which::Input)?;
    }
    geometry.check_addressable()?;
    let mut are_packed = true;
    for (piece, output) in call.pieces.iter().zip(outputs.unwrap_or_default()) {
        if !is_unwanted(output) {
            // SAFETY: promises 1 and 2.
            let checked = unsafe { check_output(geometry, piece, output) }?;
            checked.reach.check_fits(Which::Output(piece.index))?;
            are_packed &= checked.is_packed;
        }
    }
    let memory = Span::of_bytes(place, sections.end);
    check_apart(memory, call, outputs.unwrap_or_default())?;
    let writer = Writer { place, sections, call, outputs, has_strided_outputs: !are_packed };
    // SAFETY: promises 1 and 2; there is room, and nothing else lies in it.
    unsafe { writer.write(num_outputs, reach) }
}

/// Checks that the plan lies over nothing that is read while it is written.
#[inline(never)]
fn check_apart(
    plan: Span,
    call: &ParsedCall<'_>,
    outputs: &[libsplit_tensor],
) -> Result<(), Error> {
    let argument = Argument::Plan;
    if let Some(other) = call.reads.under(plan) {
        return Err(Error::ArrayOverlap { argument, other });
    }
    let rank = call.geometry.output_rank();
    for (index, output) in outputs.iter().enumerate() {
        if parse::arrays(output, rank).iter().any(|array| plan.intersects(*array)) {
            return Err(Error::ArrayOverlap { argument, other: Which::Output(index) });
        }
    }
    if plan.intersects(Span::of_slice(outputs)) {
        return Err(Error::ArrayOverlap { argument, other: Which::Outputs });
    }
    Ok(())
}

/// What a checked plan is written from.
struct Writer<'a> {
    place: *mut u8,
    sections: Sections,
    call: &'a ParsedCall<'a>,
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
    unsafe fn write(&self, num_outputs: usize, reach: Reach) -> Result<(), Error> {
        let ParsedCall { geometry, input, pieces, .. } = self.call;
        let place = Place::new(geometry, input);
        let (mut num_parts, mut bytes) = (0, 0usize);
        for piece in pieces.iter() {
            // SAFETY: promises 1 and 2; there is room for a record and strides of each output.
            unsafe {
                let record = self.record(piece, &place)?;
                self.entry::<Record>(self.sections.records, piece.index).write(record);
                if record.len > 0 {
                    num_parts += 1;
                    bytes = bytes.saturating_add(geometry.piece_bytes(piece.len));
                }
            }
        }
        if num_outputs > 0 {
            let strides = place.strides.unwrap_or_default();
            for (array, axes) in
                [(self.sections.shape, geometry.shape), (self.sections.strides, strides)]
            {
                // SAFETY: there is room for as many entries as there are axes.
                unsafe {
                    self.entry::<i64>(array, 0).copy_from_nonoverlapping(axes.as_ptr(), axes.len());
                }
            }
        }
        // SAFETY: there is room for a head.
        unsafe {
            self.place.cast::<Head>().write(Head {
                magic: MAGIC,
                num_outputs,
                num_parts,
                bytes,
                dtype: geometry.dtype,
                bit_offset: input.bit_offset,
                rank: geometry.shape.len() as u32,
                axis: geometry.axis as u32,
                keeps_axis: geometry.keeps_axis,
                has_elements: place.has_elements,
                is_strided: place.strides.is_some() && !input.is_packed(),
                has_strided_outputs: self.has_strided_outputs,
                extent: geometry.extent,
                elements: geometry.elements,
                inner: geometry.inner,
                outer: geometry.outer,
                reach,
                sections: self.sections,
            });
        }
        Ok(())
    }

    /// The record of a piece; its output's strides are written.
    ///
    /// # Safety
    /// As [`Writer::write`].
    unsafe fn record(&self, piece: Piece, place: &Place<'_>) -> Result<Record, Error> {
        let geometry = &self.call.geometry;
        let output = self.outputs.and_then(|outputs| outputs.get(piece.index));
        let nothing =
            Record { offset: piece.offset, len: 0, ahead: UNWANTED, reach: Reach::default() };
        if output.is_some_and(is_unwanted) {
            return Ok(nothing);
        }
        let ahead = place.of(piece.offset, piece.len).ahead as i64;
        let elements = geometry.piece_elements(piece.len);
        if elements == 0 {
            return Ok(Record { ahead, ..nothing });
        }
        let mut reach = Reach { low: 0, bytes: packed_bytes(elements, geometry.dtype.bits()) };
        if let Some(output) = output {
            // SAFETY: promises 1 and 2. Once more, for nothing may be written before all of them are right.
            unsafe {
                Checked { reach, .. } = check_output(geometry, piece, output)?;
                if self.has_strided_outputs {
                    self.write_strides(piece, output);
                }
            }
        }
        Ok(Record { offset: piece.offset, len: piece.len, ahead, reach })
    }

    /// Writes the strides of an output: its own, or the packed ones.
    ///
    /// # Safety
    /// As [`Writer::write`].
    unsafe fn write_strides(&self, piece: Piece, output: &libsplit_tensor) {
        let (shape, mut packed) = (self.call.geometry.output_shape(piece.len), 1i64);
        let rank = shape.len();
        for (axis, extent) in shape.enumerate().rev() {
            let own = output.strides;
            // SAFETY: the output has been checked, and there is room for as many in the plan.
            unsafe {
                let stride = if own.is_null() { packed } else { *own.add(axis) };
                let at = piece.index * rank + axis;
                self.entry::<i64>(self.sections.output_strides, at).write(stride);
            }
            packed = packed.wrapping_mul(extent);
        }
    }
}

/// A plan as it is read.
struct Planned<'a> {
    head: &'a Head,
    place: *const u8,
}

impl<'a> Planned<'a> {
    /// # Safety
    /// Promises 1 and 3.
    #[inline]
    unsafe fn read(plan: *const libsplit_plan) -> Result<Self, Error> {
        let place = checked(plan.cast::<u64>(), Argument::Plan)?;
        // SAFETY: promises 1 and 3: 8 bytes are there, and if they are right, all others.
        unsafe {
            if *place != MAGIC {
                return Err(Error::NoPlan { actual: *place });
            }
            Ok(Self { head: &*place.cast::<Head>(), place: place.cast() })
        }
    }

    /// A plan that is read to be run on so many outputs.
    ///
    /// # Safety
    /// As [`Planned::read`].
    #[inline]
    unsafe fn for_outputs(plan: *const libsplit_plan, num_outputs: usize) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        let planned = unsafe { Self::read(plan) }?;
        let expected = planned.head.num_outputs;
        if expected != num_outputs {
            return Err(Error::PlanOutputs { expected, actual: num_outputs });
        }
        Ok(planned)
    }

    /// An array of the plan.
    #[inline]
    fn array<T>(&self, array: usize, len: usize) -> &'a [T] {
        // SAFETY: promise 3.
        unsafe { slice::from_raw_parts(self.place.add(array).cast(), len) }
    }

    #[inline]
    fn span(&self) -> Span {
        Span::of_array(self.place, self.head.sections.end)
    }

    #[inline]
    fn records(&self) -> &'a [Record] {
        self.array(self.head.sections.records, self.head.num_outputs)
    }

    /// A copy by the plan, as the engine takes it.
    #[inline]
    fn transfer(&self, source: *const u8, targets: Pointers<'a, u8>) -> Transfer<'a> {
        let head = self.head;
        let rank = if head.num_outputs == 0 { 0 } else { head.rank as usize };
        let geometry = Geometry {
            dtype: head.dtype,
            shape: self.array(head.sections.shape, rank),
            axis: head.axis as usize,
            keeps_axis: head.keeps_axis,
            extent: head.extent,
            elements: head.elements,
            inner: head.inner,
            outer: head.outer,
        };
        Transfer {
            geometry,
            source,
            strides: head.is_strided.then(|| self.array(head.sections.strides, rank)),
            bit_offset: head.bit_offset,
            parts: Parts::Planned { records: self.records(), targets },
            output_strides: if head.has_strided_outputs {
                let rank = geometry.output_rank();
                let strides = self.array(head.sections.output_strides, rank * head.num_outputs);
                OutputStrides::Planned { strides, rank }
            } else {
                OutputStrides::Packed
            },
            bytes: head.bytes,
        }
    }
}

/// [`super::libsplit_plan_copy`], with a reason in place of a status; `error` is only memory that outputs must
/// not lie over.
///
/// # Errors
/// As that function.
///
/// # Safety
/// As that function.
pub unsafe fn plan_copy(
    plan: *const libsplit_plan,
    input: *const u8,
    outputs: *const *mut u8,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promise 1.
    unsafe {
        let pool;
        let mut on = None::<&dyn Executor>;
        let mut executor_span = Span::default();
        if !executor.is_null() {
            pool = Pool::parse(executor)?;
            executor_span = Span::of_bytes(executor, (*executor).struct_size);
            on = Some(&pool);
        }
        let error_bytes = if error.is_null() { 0 } else { FIRST_ERROR };
        let others = [
            (Which::Outputs, Span::of_array(outputs, num_outputs)),
            (Which::Executor, executor_span),
            (Which::Error, Span::of_bytes(error, error_bytes)),
        ];
        copy_by(plan, input, outputs, num_outputs, on, &others)
    }
}

/// Copies by a plan. Outputs must not lie over it or the `others`.
///
/// # Safety
/// As [`super::libsplit_plan_copy`].
#[inline]
pub(crate) unsafe fn copy_by(
    plan: *const libsplit_plan,
    input: *const u8,
    outputs: *const *mut u8,
    num_outputs: usize,
    executor: Option<&dyn Executor>,
    others: &[(Which, Span)],
) -> Result<(), Error> {
    // SAFETY: promises 1, 3 and 5.
    unsafe {
        let planned = Planned::for_outputs(plan, num_outputs)?;
        if planned.head.num_parts == 0 {
            return Ok(());
        }
        checked(outputs, Argument::Outputs)?;
        if input.is_null() {
            return Err(Error::NullAddress { which: Which::Input });
        }
        let span = planned.head.reach.place(input, Which::Input)?;
        let mut trail = Trail::EMPTY;
        for (index, record) in planned.records().iter().enumerate() {
            if record.len > 0 {
                let (which, target) = (Which::Output(index), *outputs.add(index));
                if target.is_null() {
                    return Err(Error::NullAddress { which });
                }
                trail.push(record.reach.place(target, which)?);
            }
        }
        let targets = Pointers::new(outputs, size_of::<*mut u8>(), num_outputs);
        let transfer = planned.transfer(input, targets);
        let (hull, own) = (trail.hull, planned.span());
        if !(trail.is_apart
            && hull.is_apart(span)
            && hull.is_apart(own)
            && others.iter().all(|(_, other)| other.is_apart(hull)))
        {
            let are_packed = transfer.output_strides.are_packed();
            let written = Written { trail, are_packed, ..Written::NONE };
            check_closely(&transfer, &written, span, own, others)?;
        }
        copy::run(&transfer, executor)
    }
}

/// Checks that no output lies over the input, other outputs, the plan, or what else is read, of outputs whose
/// hull does.
#[cold]
#[inline(never)]
fn check_closely(
    transfer: &Transfer<'_>,
    written: &Written,
    input: Span,
    plan: Span,
    others: &[(Which, Span)],
) -> Result<(), Error> {
    let (spans, hull) = (Kept::new(transfer), written.trail.hull);
    written.check_apart(transfer, &spans, input)?;
    for &(other, read) in [(Which::Plan, plan)].iter().chain(others) {
        let outputs = if read.is_apart(hull) { 0 } else { spans.len() };
        if let Some(output) = (0..outputs).find(|at| spans.span(*at).intersects(read)) {
            return Err(Error::DataOverDescriptor { output, other });
        }
    }
    Ok(())
}

/// [`super::libsplit_plan_view`], with a reason in place of a status; `error` is only memory that the entries
/// must not lie over.
///
/// # Errors
/// As that function.
///
/// # Safety
/// As that function.
pub unsafe fn plan_view(
    plan: *const libsplit_plan,
    input: *mut u8,
    outputs: *mut *mut u8,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 3.
    unsafe {
        let planned = Planned::for_outputs(plan, num_outputs)?;
        if num_outputs == 0 {
            return Ok(());
        }
        checked(outputs.cast_const(), Argument::Outputs)?;
        if planned.head.has_elements {
            if input.is_null() {
                return Err(Error::NullAddress { which: Which::Input });
            }
            planned.head.reach.place(input, Which::Input)?;
        }
        let written = Span::of_array(outputs.cast_const(), num_outputs);
        let error_bytes = if error.is_null() { 0 } else { FIRST_ERROR };
        let (own, detail) = (planned.span(), Span::of_bytes(error, error_bytes));
        if !(own.is_apart(written) && detail.is_apart(written)) {
            let other = if own.is_apart(written) { Which::Error } else { Which::Plan };
            return Err(Error::ArrayOverlap { argument: Argument::Outputs, other });
        }
        for (index, record) in planned.records().iter().enumerate() {
            if record.ahead != UNWANTED {
                outputs.add(index).write(input.wrapping_offset(record.ahead as isize));
            }
        }
    }
    Ok(())
}

/// Writes what a plan will do; returns the length of the whole text, 0 of what is no plan.
///
/// # Safety
/// Promises 1 and 3; `buffer` must be NULL or valid for `size` bytes.
pub(crate) unsafe fn describe(plan: *const libsplit_plan, buffer: *mut u8, size: usize) -> usize {
    // SAFETY: promises 1 and 3.
    let Ok(planned) = (unsafe { Planned::read(plan) }) else { return 0 };
    let size = if buffer.is_null() { 0 } else { size.min(isize::MAX.unsigned_abs()) };
    let mut nothing = [];
    let room = match size {
        0 => &mut nothing,
        // SAFETY: as many bytes are there; nobody else has them.
        _ => unsafe { slice::from_raw_parts_mut(buffer, size) },
    };
    // SAFETY: no pointer is read.
    let targets = unsafe { Pointers::new(null(), 0, 0) };
    let mut text = Text::new(room);
    let transfer = planned.transfer(null(), targets);
    describe::plan(&transfer, &mut text);
    copy::describe(&transfer, &mut text);
    text.end()
}
