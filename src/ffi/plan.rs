//! Plans: splits in memory of the caller, in which everything is decided that does not depend on addresses. A plan is
//! plain bytes: a head, and then these arrays.
//!
//! | array | entries | what |
//! |---|---|---|
//! | shape, strides | rank each | the input's |
//! | lengths | one an output | of pieces, as [`Pieces::Words`] has them |
//! | records | one an output | where the piece lies in the input, and what its output reaches over |
//! | output strides | rank an output | of outputs that are not packed |
//!
//! # Safety
//! For everything unsafe here: promises 1 to 3 of [`super`].

// Places within a plan are aligned; numbers have been checked to fit.
#![allow(clippy::cast_ptr_alignment, clippy::cast_possible_truncation)]

use super::copy::{check_apart, check_output, Checked};
use super::executor::Pool;
use super::libsplit_version;
use super::parse::{self, checked, ParsedCall, FIRST_ERROR};
use super::reads::Reads;
use super::types::{
    libsplit_error, libsplit_executor, libsplit_params, libsplit_plan, libsplit_tensor,
};
use crate::copy::{self, Executor};
use crate::error::{number, Error};
use crate::geometry::{Geometry, Place};
use crate::math::div;
use crate::overlap::Trail;
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::pieces::{Piece, Pieces};
use crate::shape::{usize_of, MAX_RANK};
use crate::span::Span;
use crate::tensor::Reach;
use crate::text::Text;
use crate::words::{Argument, Field};
use core::mem::MaybeUninit;
use core::ptr::{null, NonNull};
use core::slice;

/// The first 8 bytes of a plan: its name, and a hash of everything that must be the same in the build that reads it.
/// Another order of bytes shows in the name.
const MAGIC: u64 = {
    // FNV-1a, of words.
    const fn and(hash: u32, fact: u32) -> u32 {
        (hash ^ fact).wrapping_mul(0x0100_0193)
    }
    let layout = (size_of::<Head>() << 16 | size_of::<Record>()) as u32;
    let kind = usize::BITS | cfg!(feature = "avx512") as u32;
    let hash = and(and(and(0x811C_9DC5, libsplit_version()), layout), kind);
    (u32::from_be_bytes(*b"splt") as u64) << 32 | hash as u64
};

/// An output of a plan.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    /// Bytes from the input's data to the piece, for views; [`UNWANTED`] if the output is not wanted.
    ahead: i64,
    /// What the output reaches over; nothing if nothing is copied to it.
    reach: Reach,
}

/// In [`Record::ahead`]: the output is not wanted.
const UNWANTED: i64 = i64::MIN;

#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    magic: u64,
    num_outputs: usize,
    /// Bytes of all outputs that are wanted, as if they were packed.
    bytes: usize,
    /// Without its shape, which follows.
    geometry: Geometry<'static>,
    bit_offset: u32,
    /// Whether the input, or an output, has strides that are not packed.
    is_strided: bool,
    has_strided_outputs: bool,
    /// Of the input; nothing if it has no elements.
    reach: Reach,
    rank: usize,
    sections: Sections,
}

/// Where the arrays of a plan begin, in bytes, for a number of axes and outputs.
#[derive(Clone, Copy)]
#[repr(C)]
struct Sections {
    shape: usize,
    strides: usize,
    lengths: usize,
    records: usize,
    output_strides: usize,
    end: usize,
}

impl Sections {
    /// Returns `None` if rank or number of outputs is out of range.
    fn new(rank: usize, outputs: usize) -> Option<Self> {
        // Without outputs, nobody needs the input.
        let axes = if outputs == 0 { 0 } else { rank * size_of::<i64>() };
        let shape = size_of::<Head>();
        let strides = shape + axes;
        let lengths = strides + axes;
        let records = lengths.checked_add(outputs.checked_mul(size_of::<i64>())?)?;
        let output_strides = records.checked_add(outputs.checked_mul(size_of::<Record>())?)?;
        let end = output_strides.checked_add(outputs.checked_mul(axes)?)?;
        let fits = (1..=MAX_RANK).contains(&rank) && end <= isize::MAX.unsigned_abs();
        fits.then_some(Self { shape, strides, lengths, records, output_strides, end })
    }
}

/// Returns the bytes that a plan needs; 0 if rank or number of outputs is out of range.
pub(super) fn size(rank: i32, num_outputs: usize) -> usize {
    let rank = usize::try_from(rank).ok();
    rank.and_then(|rank| Sections::new(rank, num_outputs)).map_or(0, |sections| sections.end)
}

/// [`super::libsplit_plan_init`].
pub unsafe fn plan_init(
    plan: *mut libsplit_plan,
    plan_size: usize,
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    let (mut room, given) = (MaybeUninit::uninit(), Some(num_outputs));
    // SAFETY: promises 1 and 2.
    unsafe {
        let call = ParsedCall::parse(input, params, given, false, error, &mut room)?;
        let wanted = || parse::descriptors(outputs, num_outputs);
        let wanted = (!outputs.is_null()).then(wanted).transpose()?;
        make(plan, plan_size, call, wanted, num_outputs)
    }
}

/// Makes a plan of a call. Without outputs, all of them are wanted and packed.
///
/// # Safety
/// As the module says; `plan` must be valid for `plan_size` bytes.
pub(crate) unsafe fn make(
    plan: *mut libsplit_plan,
    plan_size: usize,
    call: &ParsedCall<'_>,
    outputs: Option<&[libsplit_tensor]>,
    num_outputs: usize,
) -> Result<(), Error> {
    let ParsedCall { geometry, input, pieces, reads } = call;
    let plan = checked(plan.cast::<u64>(), Argument::Plan)?.cast_mut().cast::<u8>();
    let Some(sections) = Sections::new(geometry.shape.len(), num_outputs) else {
        let row = size_of::<Record>() + (1 + geometry.shape.len()) * size_of::<i64>();
        let (argument, expected) = (Argument::Given, number(div(isize::MAX.unsigned_abs(), row)));
        return Err(Error::TooManyOutputs { argument, expected, actual: num_outputs });
    };
    if plan_size < sections.end {
        return Err(Error::PlanSize { expected: number(sections.end), actual: plan_size });
    }
    input.check_bit_offset(Argument::Input)?;
    let mut reach = Reach::default();
    if geometry.elements > 0 {
        reach = input.reach(geometry.elements, Argument::Input)?;
    }
    geometry.check_addressable()?;
    let check = |Piece { index, len, .. }| match outputs {
        None => Ok(Some(Checked::packed(geometry.output_bytes(len)))),
        // SAFETY: promises 1 and 2.
        Some(outputs) => outputs
            .get(index)
            .map_or(Ok(None), |output| unsafe { check_output(geometry, (index, len), output) }),
    };
    let (given, mut has_strided_outputs) = (outputs.unwrap_or_default(), false);
    for piece in pieces.iter() {
        has_strided_outputs |= check(piece)?.is_some_and(|checked| !checked.is_packed);
    }
    // Nothing that is read is overwritten.
    let memory = Span::of_array(plan, sections.end);
    let arrays = |output| parse::arrays(output, geometry.output_rank());
    let has_array = |output| arrays(output).iter().any(|array| memory.intersects(*array));
    let array = || given.iter().position(has_array).map(Argument::Output);
    let descriptor = || memory.intersects(Span::of_slice(given)).then_some(Argument::Outputs);
    if let Some(other) = reads.under(memory).or_else(array).or_else(descriptor) {
        return Err(Error::ArrayOverlap { argument: Argument::Plan, other });
    }

    let (place, mut bytes) = (Place::new(geometry, input), 0usize);
    for piece in pieces.iter() {
        let Piece { index, offset, len } = piece;
        let mut record = Record { ahead: UNWANTED, reach: Reach::default() };
        if let Some(checked) = check(piece)? {
            let ahead = place.of(offset, len).ahead as i64;
            record = Record { ahead, reach: checked.reach };
            bytes = bytes.saturating_add(usize_of(checked.bytes));
        }
        let is_copied = record.reach.bytes > 0;
        // SAFETY: promises 1 and 2; there is room for a record and strides of each output.
        unsafe {
            entry::<i64>(plan, sections.lengths, index).write(if is_copied { len } else { !len });
            entry::<Record>(plan, sections.records, index).write(record);
            if let Some(output) = given.get(index).filter(|_| has_strided_outputs && is_copied) {
                let (own, rank, mut packed) = (output.strides, geometry.output_rank(), 1i64);
                for (axis, extent) in geometry.output_shape(len).enumerate().rev() {
                    let stride = if own.is_null() { packed } else { *own.add(axis) };
                    entry::<i64>(plan, sections.output_strides, index * rank + axis).write(stride);
                    packed = packed.wrapping_mul(extent);
                }
            }
        }
    }
    if num_outputs > 0 {
        let strides = place.strides.unwrap_or_default();
        for (array, axes) in [(sections.shape, geometry.shape), (sections.strides, strides)] {
            // SAFETY: there is room for as many entries as there are axes.
            unsafe {
                entry::<i64>(plan, array, 0).copy_from_nonoverlapping(axes.as_ptr(), axes.len());
            }
        }
    }
    // SAFETY: there is room for a head.
    unsafe {
        plan.cast::<Head>().write(Head {
            magic: MAGIC,
            num_outputs,
            bytes,
            geometry: Geometry { shape: &[], ..*geometry },
            bit_offset: input.bit_offset,
            is_strided: place.strides.is_some() && !input.is_packed(),
            has_strided_outputs,
            reach,
            rank: if num_outputs == 0 { 0 } else { geometry.shape.len() },
            sections,
        });
    }
    Ok(())
}

/// Returns the address of an entry of an array of a plan.
fn entry<T>(plan: *mut u8, array: usize, index: usize) -> *mut T {
    plan.wrapping_add(array + index * size_of::<T>()).cast()
}

/// A plan that is being read.
pub(crate) struct Planned<'a> {
    head: &'a Head,
    place: *const u8,
}

impl<'a> Planned<'a> {
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

    /// Reads a plan. Checks that it was made for this number of outputs.
    pub(crate) unsafe fn for_outputs(
        plan: *const libsplit_plan,
        num_outputs: usize,
    ) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        let planned = unsafe { Self::read(plan) }?;
        let expected = planned.head.num_outputs;
        if expected != num_outputs {
            let expected = number(expected);
            return Err(Error::PlanOutputs { expected, actual: num_outputs });
        }
        Ok(planned)
    }

    /// Returns an array of the plan.
    fn array<T>(&self, array: usize, len: usize) -> &'a [T] {
        // SAFETY: promise 3.
        unsafe { slice::from_raw_parts(self.place.add(array).cast(), len) }
    }

    /// Returns where the plan lies.
    fn span(&self) -> (Argument, Span) {
        (Argument::Plan, Span::of_array(self.place, self.head.sections.end))
    }

    /// Returns the shape of the input, and the pieces.
    fn split(&self) -> (Geometry<'a>, Pieces<'a>) {
        let &Head { geometry, rank, sections, num_outputs, .. } = self.head;
        let shape = self.array(sections.shape, rank);
        let lengths = self.array(sections.lengths, num_outputs);
        (Geometry { shape, ..geometry }, Pieces::Words(lengths))
    }

    /// Checks the address of the input. Returns its memory, which is nowhere if it has no elements.
    fn input(&self, input: *const u8) -> Result<Span, Error> {
        let reach = self.head.reach;
        if reach.bytes == 0 {
            return Ok(Span::NOWHERE);
        }
        if input.is_null() {
            return Err(Error::Null { argument: Argument::Input, field: Field::Itself });
        }
        reach.place(input, Argument::Input)
    }

    /// Returns the copy that the plan describes, in the form that the engine takes.
    fn transfer<'b>(
        &self,
        source: *const u8,
        (geometry, pieces): &'b (Geometry<'a>, Pieces<'a>),
        targets: Pointers<'b, u8>,
    ) -> Transfer<'b>
    where
        'a: 'b,
    {
        let &Head { rank, sections, num_outputs, .. } = self.head;
        Transfer {
            geometry,
            source,
            strides: self.head.is_strided.then(|| self.array(sections.strides, rank)),
            bit_offset: self.head.bit_offset,
            parts: Parts { pieces, targets },
            output_strides: if self.head.has_strided_outputs {
                let rank = geometry.output_rank();
                let strides = self.array(sections.output_strides, rank * num_outputs);
                OutputStrides::Planned { strides, rank }
            } else {
                OutputStrides::Packed
            },
            bytes: self.head.bytes,
        }
    }

    /// Makes the copy. Outputs that overlap what is read are refused.
    pub(crate) unsafe fn copy(
        &self,
        input: *const u8,
        outputs: *const *mut u8,
        executor: Option<&dyn Executor>,
        reads: &Reads<'_>,
    ) -> Result<(), Error> {
        if self.head.bytes == 0 {
            return Ok(());
        }
        checked(outputs, Argument::Outputs)?;
        let source = self.input(input)?;
        let mut trail = Trail::EMPTY;
        let records: &[Record] = self.array(self.head.sections.records, self.head.num_outputs);
        for (index, record) in records.iter().enumerate() {
            if record.reach.bytes > 0 {
                // SAFETY: promise 1.
                let (argument, target) = (Argument::Output(index), unsafe { *outputs.add(index) });
                if target.is_null() {
                    return Err(Error::Null { argument, field: Field::Itself });
                }
                trail.push(record.reach.place(target, argument)?);
            }
        }
        let (split, count) = (self.split(), self.head.num_outputs);
        // SAFETY: promise 1.
        let targets = unsafe { Pointers::new(outputs, size_of::<*mut u8>(), count) };
        let transfer = self.transfer(input, &split, targets);
        check_apart(&transfer, trail, source, reads, Span::of_array(outputs, count))?;
        // SAFETY: promise 5.
        unsafe { copy::run(&transfer, executor) }
    }
}

/// [`super::libsplit_plan_copy`].
pub unsafe fn plan_copy(
    plan: *const libsplit_plan,
    input: *const u8,
    outputs: *const *mut u8,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1, 3 and 5.
    unsafe {
        let mut place = Span::NOWHERE;
        let pool = Pool::parse(executor, &mut place)?;
        let planned = Planned::for_outputs(plan, num_outputs)?;
        let reads = Reads { request: planned.span(), error, executor: place, ..Reads::NOTHING };
        planned.copy(input, outputs, pool.as_ref().map(|pool| pool as &dyn Executor), &reads)
    }
}

/// [`super::libsplit_plan_view`].
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
        planned.input(input)?;
        let written = Span::of_array(outputs.cast_const(), num_outputs);
        let (argument, (other, plan)) = (Argument::Outputs, planned.span());
        if plan.intersects(written) {
            return Err(Error::ArrayOverlap { argument, other });
        }
        if Span::of_array(error.cast::<u8>(), FIRST_ERROR).intersects(written) {
            return Err(Error::ArrayOverlap { argument, other: Argument::Error });
        }
        let records: &[Record] = planned.array(planned.head.sections.records, num_outputs);
        for (index, record) in records.iter().enumerate() {
            if record.ahead != UNWANTED {
                outputs.add(index).write(input.wrapping_offset(record.ahead as isize));
            }
        }
    }
    Ok(())
}

/// Writes a description of a plan. Returns the length of the whole text, or 0 if this is not a plan.
///
/// # Safety
/// As the module says; `buffer` must be NULL or valid for `size` bytes.
pub(crate) unsafe fn describe(plan: *const libsplit_plan, buffer: *mut u8, size: usize) -> usize {
    // SAFETY: promises 1 and 3.
    let Ok(planned) = (unsafe { Planned::read(plan) }) else { return 0 };
    let room: &mut [u8] = if buffer.is_null() {
        &mut []
    } else {
        // SAFETY: as many bytes are there; nobody else has them.
        unsafe { slice::from_raw_parts_mut(buffer, size.min(isize::MAX.unsigned_abs())) }
    };
    let (somewhere, split) = (NonNull::dangling().as_ptr(), planned.split());
    // SAFETY: the same pointer for all outputs, as no address matters.
    let targets = unsafe { Pointers::new(&raw const somewhere, 0, planned.head.num_outputs) };
    let mut text = Text::new(room);
    let transfer = planned.transfer(null(), &split, targets);
    describe_call(&transfer, &mut text);
    copy::describe(&transfer, &mut text);
    text.end()
}

/// The most lengths that are listed.
const MOST_LENGTHS: usize = 8;

/// Writes what the call is: dtype, shape, strides if there are any, axis, and pieces.
fn describe_call(transfer: &Transfer<'_>, text: &mut Text<'_>) {
    let geometry = &transfer.geometry;
    text.text(geometry.dtype.name()).text(" ").list(geometry.shape.iter().copied());
    if let Some(strides) = transfer.strides {
        text.text(" by strides ").list(strides.iter().copied());
    }
    text.text(", axis ").number(geometry.axis).text(" into ");
    let (mut count, mut least, mut most) = (0, i64::MAX, 0);
    for part in transfer.parts.iter() {
        (count, least, most) = (count + 1, least.min(part.len), most.max(part.len));
    }
    text.number(count).text(if count == 1 { " piece" } else { " pieces" });
    if least == most {
        text.text(" of ").number(most);
    } else if count > 0 {
        let lengths = transfer.parts.iter().take(MOST_LENGTHS).map(|part| part.len);
        text.text(" of ").list(lengths).text(if count > MOST_LENGTHS { " and so on" } else { "" });
    }
    if !geometry.keeps_axis {
        text.text(" without the axis");
    }
    if !transfer.output_strides.are_packed() {
        text.text(", to outputs with strides of their own");
    }
}
