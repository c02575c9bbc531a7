//! A plan that is read, and what can be done with it.

use super::{Head, Record, MAGIC, UNWANTED};
use crate::copy::{self, Executor};
use crate::descriptor::checked;
use crate::error::{number, Error};
use crate::geometry::Geometry;
use crate::overlap::{check_apart, Trail};
use crate::parts::{OutputStrides, Parts, Pointers, Transfer};
use crate::pieces::Pieces;
use crate::reads::{Area, Reads};
use crate::span::Span;
use crate::text::Text;
use crate::types::libsplit_plan;
use crate::words::{Argument, Field};
use core::ptr::{null, NonNull};
use core::slice;

/// A plan that is being read.
pub(crate) struct Planned<'a> {
    head: &'a Head,
    memory: *const u8,
}

/// The input's shape as the split axis divides it, and the pieces, as a plan has them.
struct PlannedSplit<'a> {
    geometry: Geometry<'a>,
    pieces: Pieces<'a>,
}

impl<'a> Planned<'a> {
    unsafe fn read(plan: *const libsplit_plan) -> Result<Self, Error> {
        let first = checked(plan.cast::<u64>(), Argument::Plan, Field::Itself)?;
        // SAFETY: promises 1 and 3: 8 bytes are there, and if they are right, all others.
        unsafe {
            if *first != MAGIC {
                return Err(Error::NoPlan { actual: *first });
            }
            Ok(Self { head: &*first.cast::<Head>(), memory: first.cast() })
        }
    }

    /// Reads a plan. Checks that it was made for this number of outputs.
    ///
    /// # Safety
    /// As the module says.
    pub(crate) unsafe fn for_outputs(
        plan: *const libsplit_plan,
        num_outputs: usize,
    ) -> Result<Self, Error> {
        // SAFETY: promises 1 and 3.
        let planned = unsafe { Self::read(plan) }?;
        let expected = planned.head.num_outputs;
        if expected != num_outputs {
            let expected = number(expected);
            return Err(Error::PlanOutputs { expected, actual: num_outputs });
        }
        Ok(planned)
    }

    /// Returns an array of the plan.
    fn array<T>(&self, section: usize, len: usize) -> &'a [T] {
        // SAFETY: promise 3.
        unsafe { slice::from_raw_parts(self.memory.add(section).cast(), len) }
    }

    fn records(&self) -> &'a [Record] {
        self.array(self.head.sections.records, self.head.num_outputs)
    }

    /// Returns where the plan lies.
    pub(crate) fn area(&self) -> Area {
        let span = Span::of_array(self.memory, self.head.sections.end);
        Area { argument: Argument::Plan, span }
    }

    /// Returns the bytes from the input's data to each piece; `None` for an output that is not wanted.
    pub(crate) fn pieces_ahead(&self) -> impl Iterator<Item = Option<isize>> + use<'a> {
        let ahead = |record: &Record| (record.ahead != UNWANTED).then_some(record.ahead as isize);
        self.records().iter().map(ahead)
    }

    /// Returns how the input is split.
    fn split(&self) -> PlannedSplit<'a> {
        let &Head { geometry, rank, sections, num_outputs, .. } = self.head;
        PlannedSplit {
            geometry: Geometry { shape: self.array(sections.shape, rank), ..geometry },
            pieces: Pieces::Int64(self.array(sections.lengths, num_outputs)),
        }
    }

    /// Checks the address of the input. Returns its memory, which is nowhere if it has no elements.
    pub(crate) fn input(&self, input: *const u8) -> Result<Span, Error> {
        let reach = self.head.reach;
        if reach.bytes == 0 {
            return Ok(Span::NOWHERE);
        }
        if input.is_null() {
            return Err(Error::Null { argument: Argument::Input, field: Field::Itself });
        }
        reach.at(input, Argument::Input)
    }

    /// Returns the copy that the plan describes, in the form that the engine takes.
    fn transfer<'b>(
        &self,
        source: *const u8,
        split: &'b PlannedSplit<'a>,
        targets: Pointers<'b, u8>,
    ) -> Transfer<'b>
    where
        'a: 'b,
    {
        let PlannedSplit { geometry, pieces } = split;
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

    /// Makes the copy. Outputs that overlap what is read, or each other, are refused.
    ///
    /// # Safety
    /// The input must be readable, and every output writable, over all that the plan was made for.
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
        checked(outputs, Argument::Outputs, Field::Itself)?;
        let source = self.input(input)?;
        let mut trail = Trail::EMPTY;
        for (index, record) in self.records().iter().enumerate() {
            if record.reach.bytes > 0 {
                let argument = Argument::Output(index);
                // SAFETY: promise 1.
                let target = unsafe { *outputs.add(index) };
                if target.is_null() {
                    return Err(Error::Null { argument, field: Field::Itself });
                }
                trail.push(record.reach.at(target, argument)?);
            }
        }
        let split = self.split();
        let count = self.head.num_outputs;
        // SAFETY: promise 1.
        let targets = unsafe { Pointers::new(outputs, size_of::<*mut u8>(), count) };
        let transfer = self.transfer(input, &split, targets);
        check_apart(&transfer, trail, source, reads, Span::of_array(outputs, count))?;
        // SAFETY: promise 5.
        unsafe { copy::execute(&transfer, executor) }
    }
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
    let split = planned.split();
    let anywhere = NonNull::dangling().as_ptr();
    // SAFETY: the same pointer for all outputs, as no address matters.
    let targets = unsafe { Pointers::new(&raw const anywhere, 0, planned.head.num_outputs) };
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
    let lengths = || transfer.parts.iter().map(|part| part.len);
    let count = lengths().count();
    let longest = lengths().max().unwrap_or(0);
    text.number(count).text(if count == 1 { " piece" } else { " pieces" });
    if count > 0 && lengths().all(|len| len == longest) {
        text.text(" of ").number(longest);
    } else if count > 0 {
        let rest = if count > MOST_LENGTHS { " and so on" } else { "" };
        text.text(" of ").list(lengths().take(MOST_LENGTHS)).text(rest);
    }
    if !geometry.keeps_axis {
        text.text(" without the axis");
    }
    if !transfer.output_strides.are_packed() {
        text.text(", to outputs with strides of their own");
    }
}
