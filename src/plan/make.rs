//! Makes a plan.

use super::{Head, Record, Sections, MAGIC, UNWANTED};
use crate::call::ParsedCall;
use crate::descriptor::{arrays, checked};
use crate::error::{number, Error};
use crate::geometry::{Geometry, Place};
use crate::math::div;
use crate::outputs::{check_output, Checked};
use crate::pieces::Piece;
use crate::reads::Reads;
use crate::shape::usize_of;
use crate::span::Span;
use crate::tensor::Reach;
use crate::types::{libsplit_plan, libsplit_tensor};
use crate::words::{Argument, Field};
use core::ptr::null_mut;

/// Makes a plan of a call. Without descriptors of outputs, all outputs are wanted and packed.
///
/// # Safety
/// As the module says; `plan` must be NULL, misaligned, or valid for `plan_size` bytes.
pub(crate) unsafe fn make(
    plan: *mut libsplit_plan,
    plan_size: usize,
    call: &ParsedCall<'_>,
    outputs: Option<&[libsplit_tensor]>,
    num_outputs: usize,
) -> Result<(), Error> {
    let ParsedCall { geometry, input, pieces, reads } = call;
    let first = checked(plan.cast::<u64>(), Argument::Plan, Field::Itself)?;
    let memory = first.cast_mut().cast::<u8>();
    let sections = sections_within(plan_size, geometry.shape.len(), num_outputs)?;
    input.check_bit_offset(Argument::Input)?;
    let mut reach = Reach::default();
    if geometry.elements > 0 {
        reach = input.reach(geometry.elements, Argument::Input)?;
    }
    geometry.check_addressable()?;
    let wanted = Wanted { geometry, descriptors: outputs };
    let mut bytes = 0usize;
    let mut has_strided_outputs = false;
    for piece in pieces.iter() {
        // SAFETY: promises 1 and 2.
        if let Some(checked) = unsafe { wanted.check(piece) }? {
            bytes = bytes.saturating_add(usize_of(checked.bytes));
            has_strided_outputs |= !checked.is_packed;
        }
    }
    wanted.check_apart(Span::of_array(memory, sections.end), reads)?;

    // Nothing is written before everything has been checked, and there is no memory for what has been found: outputs
    // are looked at again.
    let place = Place::new(geometry, input);
    for piece in pieces.iter() {
        let index = piece.index;
        let mut record = Record { ahead: UNWANTED, reach: Reach::default() };
        // SAFETY: promises 1 and 2; there are entries of each output.
        unsafe {
            if let Some(checked) = wanted.check(piece)? {
                record.ahead = place.of(piece.offset, piece.len).ahead as i64;
                record.reach = checked.reach;
            }
            let is_copied = record.reach.bytes > 0;
            let length = if is_copied { piece.len } else { !piece.len };
            entry::<i64>(memory, sections.lengths, index).write(length);
            entry::<Record>(memory, sections.records, index).write(record);
            if has_strided_outputs && is_copied {
                let first = index * geometry.output_rank();
                let strides = entry(memory, sections.output_strides, first);
                wanted.write_strides(piece, strides);
            }
        }
    }
    let mut rank = 0;
    if num_outputs > 0 {
        rank = geometry.shape.len();
        let strides = place.strides.unwrap_or_default();
        for (section, array) in [(sections.shape, geometry.shape), (sections.strides, strides)] {
            // SAFETY: there is room for as many entries as there are axes.
            unsafe { entry::<i64>(memory, section, 0).copy_from(array.as_ptr(), array.len()) };
        }
    }
    // SAFETY: there is room for a head.
    unsafe {
        memory.cast::<Head>().write(Head {
            magic: MAGIC,
            num_outputs,
            bytes,
            geometry: Geometry { shape: &[], ..*geometry },
            bit_offset: input.bit_offset,
            is_strided: place.strides.is_some() && !input.is_packed(),
            has_strided_outputs,
            reach,
            rank,
            sections,
        });
    }
    Ok(())
}

/// Returns where the arrays of a plan begin, if they fit into this many bytes.
fn sections_within(plan_size: usize, rank: usize, num_outputs: usize) -> Result<Sections, Error> {
    let Some(sections) = Sections::new(rank, num_outputs) else {
        let row = size_of::<Record>() + (1 + rank) * size_of::<i64>();
        let (argument, expected) = (Argument::Given, number(div(isize::MAX.unsigned_abs(), row)));
        return Err(Error::TooManyOutputs { argument, expected, actual: num_outputs });
    };
    if plan_size < sections.end {
        return Err(Error::PlanSize { expected: number(sections.end), actual: plan_size });
    }
    Ok(sections)
}

/// The outputs that a plan is made for.
struct Wanted<'a> {
    geometry: &'a Geometry<'a>,
    /// `None` if all outputs are wanted and packed.
    descriptors: Option<&'a [libsplit_tensor]>,
}

impl Wanted<'_> {
    /// Checks the output of a piece. Returns `None` if it is not wanted.
    unsafe fn check(&self, piece: Piece) -> Result<Option<Checked>, Error> {
        let Some(descriptors) = self.descriptors else {
            return Ok(Some(Checked::packed(self.geometry.output_bytes(piece.len))));
        };
        let Some(output) = descriptors.get(piece.index) else { return Ok(None) };
        // SAFETY: promises 1 and 2.
        unsafe { check_output(self.geometry, piece, output) }
    }

    /// Writes the strides of the output of a piece.
    ///
    /// # Safety
    /// `strides` must have an entry for each axis, and the output must have been checked.
    unsafe fn write_strides(&self, piece: Piece, strides: *mut i64) {
        let descriptor = self.descriptors.and_then(|descriptors| descriptors.get(piece.index));
        let own = descriptor.map_or(null_mut(), |output| output.strides);
        let mut packed = 1i64;
        for (axis, extent) in self.geometry.output_shape(piece.len).enumerate().rev() {
            // SAFETY: the caller's promise; strides that are not NULL have an entry for each axis.
            unsafe { strides.add(axis).write(if own.is_null() { packed } else { *own.add(axis) }) };
            packed = packed.wrapping_mul(extent);
        }
    }

    /// Checks that a plan's memory overlaps nothing that is read.
    fn check_apart(&self, plan: Span, reads: &Reads<'_>) -> Result<(), Error> {
        let descriptors = self.descriptors.unwrap_or_default();
        let rank = self.geometry.output_rank();
        let has_array_there = |output: &libsplit_tensor| {
            arrays(output, rank).iter().any(|array| plan.intersects(*array))
        };
        let array = || descriptors.iter().position(has_array_there).map(Argument::Output);
        let is_over_descriptors = plan.intersects(Span::of_slice(descriptors));
        let descriptor = || is_over_descriptors.then_some(Argument::Outputs);
        match reads.under(plan).or_else(array).or_else(descriptor) {
            Some(other) => Err(Error::ArrayOverlap { argument: Argument::Plan, other }),
            None => Ok(()),
        }
    }
}

/// Returns the address of an entry of an array of a plan.
fn entry<T>(memory: *mut u8, section: usize, index: usize) -> *mut T {
    memory.wrapping_add(section + index * size_of::<T>()).cast()
}
