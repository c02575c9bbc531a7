//! What `infer` and `view` write into output descriptors: all of them are checked, then filled.

use super::axes;
use super::parse::{self, check_array, check_strides, is_unwanted, Call, Look};
use super::reads::Reads;
use super::types::{libsplit_dtype, libsplit_error, libsplit_params, libsplit_tensor};
use crate::blocks::{self, Blocks};
use crate::error::{number, Error, Fault, Report, Which};
use crate::overlap::few::{Few, FEW};
use crate::overlap::spans::{self, Numbered, Trail};
use crate::place::Place;
use crate::plan::{Geometry, Piece, Splitting};
use crate::shape::{bytes_of_bits, rank_number, DIM_UNKNOWN};
use crate::span::Span;
use core::{ptr::null, slice};

/// Fills shapes, packed strides and sizes.
///
/// # Safety
/// As [`super::libsplit_infer`].
#[inline(always)]
pub(super) unsafe fn infer(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = parse::room();
        let call = Call::parse(input, params, Some(num_outputs), Look::AtShape, &mut room, report)?;
        let geometry = &call.splitting.geometry;
        check_outputs(call, None, outputs, num_outputs, error, report)?;
        if geometry.extent == DIM_UNKNOWN {
            check_sizes(&call.splitting, report)?;
        }
        // Bytes of a packed output, 0 while an extent is unknown.
        let step_bits = geometry.step_bits().max(0);
        fill(&call.splitting, Strides::Packed, outputs, move |_, len, output| {
            let bytes = if len > 0 { bytes_of_bits(step_bits.wrapping_mul(len)) } else { 0 };
            (*output).data_bytes = usize::try_from(bytes).unwrap_or(0);
            (*output).bit_offset = 0;
        });
    }
    Ok(())
}

/// Fills shapes and points the outputs into the input.
///
/// # Safety
/// As [`super::libsplit_view`].
#[inline(always)]
pub(super) unsafe fn view(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut room = parse::room();
        let call =
            Call::parse(input, params, Some(num_outputs), Look::AtLayout, &mut room, report)?;
        let geometry = &call.splitting.geometry;
        call.input.span(geometry.elements, Which::Input, report)?;
        let place = Place::new(geometry, &call.input);
        check_outputs(call, Some(&place), outputs, num_outputs, error, report)?;
        let strides = match place.strides {
            Some(strides) => Strides::Given(strides),
            None if place.has_elements => Strides::PackedWith(geometry.extent),
            None => Strides::Packed,
        };
        let (data, place) = (call.input.data, &place); // for it is large to move
        fill(&call.splitting, strides, outputs, move |offset, len, output| {
            let view = place.of(offset, len);
            (*output).data = data.wrapping_offset(view.ahead).cast();
            (*output).data_bytes = view.bytes;
            (*output).bit_offset = view.bit_offset;
        });
    }
    Ok(())
}

/// What strides outputs get.
#[derive(Clone, Copy)]
enum Strides<'a> {
    /// The input's.
    Given(&'a [i64]),
    /// Packed ones of a shape with this extent on the axis.
    PackedWith(i64),
    /// Packed ones of their own shape.
    Packed,
}

/// Fills every wanted output: shape, strides, and what `describe` writes of a piece from some step on
/// and so many steps long.
///
/// # Safety
/// Promise 1; the outputs must have been checked.
#[inline(always)]
unsafe fn fill(
    splitting: &Splitting<'_>,
    strides: Strides<'_>,
    outputs: *mut libsplit_tensor,
    describe: impl Fn(i64, i64, *mut libsplit_tensor),
) {
    let geometry = &splitting.geometry;
    let (mut shape_room, mut strides_room) = (axes::room(), axes::room());
    let mut axes = Axes {
        shape: axes::kept(geometry, geometry.shape, &mut shape_room),
        strides: geometry.shape.as_ptr(),
        packed_with: UNPACKED,
        are_own: false,
        room: &mut strides_room,
    };
    match strides {
        Strides::Given(strides) => axes.strides = axes::kept(geometry, strides, axes.room),
        Strides::PackedWith(extent) => axes.strides = axes::packed(geometry, extent, axes.room),
        Strides::Packed => axes.are_own = true,
    }
    // SAFETY: the caller's promise, and there are as many outputs as lengths.
    unsafe {
        let mut room = blocks::room();
        let (mut blocks, mut offset, mut output) = (Blocks::new(&splitting.pieces), 0, outputs);
        let mut lengths = blocks.first(&mut room);
        while !lengths.is_empty() {
            offset = axes.fill(geometry, lengths, offset, output, &describe);
            output = output.wrapping_add(lengths.len());
            lengths = blocks.next(&mut room);
        }
    }
}

/// No length.
const UNPACKED: i64 = i64::MIN;

/// What outputs get: extents but that of the split axis, and strides.
struct Axes<'a> {
    shape: *const i64,
    strides: *const i64,
    /// Whether outputs have packed strides of their own, and the length that those at hand are for.
    are_own: bool,
    packed_with: i64,
    room: &'a mut axes::Room,
}

impl Axes<'_> {
    /// Fills the outputs of some pieces from a step on; gives the step after them.
    ///
    /// # Safety
    /// As [`fill`].
    #[inline(always)] // on the way of every call
    unsafe fn fill(
        &mut self,
        geometry: &Geometry<'_>,
        lengths: &[i64],
        mut offset: i64,
        mut output: *mut libsplit_tensor,
        describe: &impl Fn(i64, i64, *mut libsplit_tensor),
    ) -> i64 {
        let rank = geometry.output_rank();
        for len in lengths {
            // SAFETY: promise 1; nothing is borrowed while it is written.
            unsafe {
                if !is_unwanted(&*output) {
                    describe(offset, *len, output);
                    (*output).rank = rank_number(rank);
                    (*output).dtype = libsplit_dtype(geometry.dtype as i32);
                    let (shape, mut strides) = ((*output).shape, (*output).strides);
                    if strides.is_null() {
                        strides = shape; // which is written next
                    } else if self.packed_with != *len && self.are_own {
                        self.strides = axes::packed(geometry, *len, self.room);
                        self.packed_with = *len;
                    }
                    write([(self.strides, strides), (self.shape, shape)], &raw const rank);
                    if geometry.keeps_axis {
                        shape.add(geometry.axis).write(*len);
                    }
                }
            }
            offset = offset.wrapping_add(*len);
            output = output.wrapping_add(1);
        }
        offset
    }
}

/// Copies a few words, twice.
///
/// # Safety
/// As [`core::ptr::copy_nonoverlapping`]; `count` must be readable.
#[inline(always)]
unsafe fn write(both: [(*const i64, *mut i64); 2], count: *const usize) {
    let mut at = 0;
    // SAFETY: the caller's. It is read again each time, or the compiler makes more of these few words than
    // they are: a call of `memcpy`, or a loop that is unrolled.
    while at < unsafe { count.read_volatile() } {
        for (source, target) in both {
            // SAFETY: below the count.
            unsafe { target.add(at).write(source.add(at).read()) };
        }
        at += 1;
    }
}

/// Checks that every wanted output has room in arrays of its own, and that a view without strides needs
/// none.
///
/// # Safety
/// Promises 1 and 2.
#[inline(never)] // once in the library
unsafe fn check_outputs(
    call: &Call<'_>,
    views: Option<&Place<'_>>,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: borrowed until they are written.
    let outputs = unsafe { parse::descriptors(outputs, num_outputs, report) }?;
    let rank = call.splitting.geometry.output_rank();
    let reads = Reads::new(call, error, null());
    // Most callers keep all shapes side by side, and all strides.
    if let Some(seen) = Seen::all_plain(outputs, rank) {
        let (shapes, strides) = (seen.shapes.hull, seen.strides.hull);
        let descriptors = Span::of_slice(outputs);
        if let (false, Some(views)) = (seen.all_have_strides, views) {
            check_unstrided(views, &call.splitting, outputs, report)?;
        }
        if seen.hulls_are_apart(descriptors)
            && reads.are_plainly_apart(descriptors.hull(shapes).hull(strides))
        {
            return Ok(());
        }
    }
    check_closely(call, views, outputs, reads, report)
}

/// The same whatever the outputs are like.
#[cold]
#[inline(never)]
fn check_closely(
    call: &Call<'_>,
    views: Option<&Place<'_>>,
    outputs: &[libsplit_tensor],
    reads: Reads<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    let rank = call.splitting.geometry.output_rank();
    if are_few_and_apart(rank, views.is_some(), outputs, reads) {
        return Ok(());
    }
    let seen = Seen::all(outputs, rank, report)?;
    if let (false, Some(views)) = (seen.all_have_strides, views) {
        check_unstrided(views, &call.splitting, outputs, report)?;
    }
    let (shapes, strides) = (seen.shapes.hull, seen.strides.hull);
    let descriptors = Span::of_slice(outputs);
    if seen.shapes.is_apart
        && seen.strides.is_apart
        && seen.hulls_are_apart(descriptors)
        && [shapes, strides, descriptors].into_iter().all(|span| reads.are_apart(span))
    {
        return Ok(());
    }
    check_arrays(rank, outputs, reads, report)
}

/// Whether few outputs have room, and strides if views need them, and all of that is apart from each other and from all
/// that is read.
#[inline(never)] // for its stack
fn are_few_and_apart(
    rank: usize,
    need_strides: bool,
    outputs: &[libsplit_tensor],
    reads: Reads<'_>,
) -> bool {
    if outputs.len() >= FEW / 2 {
        return false;
    }
    let mut few = Few::new();
    few.push(Span::of_slice(outputs));
    for output in outputs {
        if !has_room(output, rank) || need_strides && output.strides.is_null() {
            return false;
        }
        for array in parse::arrays(output, rank) {
            few.push(array);
        }
    }
    few.are_apart() && reads.are_apart_from_all(&few)
}

/// What has been seen of the outputs' arrays.
struct Seen {
    shapes: Trail,
    strides: Trail,
    all_have_strides: bool,
}

impl Seen {
    /// Whether all shapes together, all strides and the descriptors lie apart from one another.
    #[inline(always)]
    fn hulls_are_apart(&self, descriptors: Span) -> bool {
        let (shapes, strides) = (self.shapes.hull, self.strides.hull);
        shapes.is_apart(strides) && descriptors.is_apart(shapes) && descriptors.is_apart(strides)
    }

    /// Checks every output.
    #[cold]
    #[inline(never)]
    fn all(outputs: &[libsplit_tensor], rank: usize, report: &mut Report) -> Result<Self, Fault> {
        let mut seen = Self { shapes: Trail::EMPTY, strides: Trail::EMPTY, all_have_strides: true };
        for (index, output) in outputs.iter().enumerate() {
            if !has_room(output, rank) {
                if is_unwanted(output) {
                    continue;
                }
                refuse_room(index, output, rank, report)?;
            }
            seen.all_have_strides &= !output.strides.is_null();
            if rank > 0 {
                seen.shapes.push(Span::of_array(output.shape, rank));
                if !output.strides.is_null() {
                    seen.strides.push(Span::of_array(output.strides, rank));
                }
            }
        }
        Ok(seen)
    }

    /// The same where each output has arrays above those of the outputs before it, as in most calls.
    #[inline(always)]
    fn all_plain(outputs: &[libsplit_tensor], rank: usize) -> Option<Self> {
        let addresses = |output: &libsplit_tensor| (output.shape as usize, output.strides as usize);
        let (shape, stride) = outputs.first().map(addresses)?;
        let all_have_strides = stride != 0;
        // One at NULL would be below; where there are no strides, all are there.
        let have = usize::from(all_have_strides);
        let size = rank * size_of::<i64>();
        let mut shapes = Span { start: shape, end: 1 };
        let mut strides = Span { start: stride, end: have };
        let (mut shape_bits, mut stride_bits) = (0, 0);
        for output in outputs {
            let (shape, stride) = addresses(output);
            if output.capacity < rank_number(rank) || shape < shapes.end || stride < strides.end {
                return None;
            }
            shapes.end = shape.wrapping_add(size);
            strides.end = stride.wrapping_add(size * have);
            (shape_bits, stride_bits) = (shape_bits | shape, stride_bits | stride);
        }
        let misaligned = (shape_bits | stride_bits) & (align_of::<i64>() - 1) != 0;
        if misaligned || !all_have_strides && stride_bits != 0 {
            return None;
        }
        let seen = |hull| Trail { hull, is_apart: true };
        let strides = if all_have_strides { seen(strides) } else { Trail::EMPTY };
        Some(Self { shapes: seen(shapes), strides, all_have_strides })
    }
}

/// That outputs without strides have packed views.
#[cold]
#[inline(never)]
fn check_unstrided(
    views: &Place<'_>,
    splitting: &Splitting<'_>,
    outputs: &[libsplit_tensor],
    report: &mut Report,
) -> Result<(), Fault> {
    for (output, given) in outputs.iter().enumerate() {
        if given.strides.is_null()
            && !is_unwanted(given)
            && !views.is_packed(&splitting.geometry, splitting.pieces.length(output))
        {
            return report.refuse(Error::ViewNotPacked { output });
        }
    }
    Ok(())
}

/// Whether there are arrays for an output's shape and strides, if it has such, and long enough.
#[inline(always)]
fn has_room(tensor: &libsplit_tensor, rank: usize) -> bool {
    let addresses = tensor.shape as usize | tensor.strides as usize;
    tensor.capacity >= rank_number(rank)
        && !tensor.shape.is_null()
        && addresses & (align_of::<i64>() - 1) == 0
}

/// Whether each output's arrays lie side by side and above or below those of the others, and nothing
/// else among them.
fn are_side_by_side(rank: usize, outputs: &[libsplit_tensor], reads: Reads<'_>) -> bool {
    let mut own = Trail::EMPTY;
    for output in outputs.iter().filter(|output| !is_unwanted(output)) {
        let arrays = parse::arrays(output, rank);
        let [shape, strides] = arrays;
        own.is_apart &= shape.is_apart(strides);
        own.push(if output.strides.is_null() { shape } else { shape.hull(strides) });
    }
    own.is_apart && reads.are_apart(own.hull) && Span::of_slice(outputs).is_apart(own.hull)
}

/// What is wrong with an output that has no room, as it seems.
#[cold]
#[inline(never)]
fn refuse_room(
    output: usize,
    tensor: &libsplit_tensor,
    rank: usize,
    report: &mut Report,
) -> Result<(), Fault> {
    if i64::from(tensor.capacity) < number(rank) {
        let (expected, actual) = (number(rank), tensor.capacity.into());
        return report.refuse(Error::Capacity { output, expected, actual });
    }
    if rank == 0 {
        return Ok(());
    }
    let which = Which::Output(output);
    check_array(tensor.shape, which, "shape", report)?;
    check_strides(tensor, which, report)
}

/// That the outputs' arrays lie over nothing else in use, nor over each other.
#[inline(never)]
fn check_arrays(
    rank: usize,
    outputs: &[libsplit_tensor],
    reads: Reads<'_>,
    report: &mut Report,
) -> Result<(), Fault> {
    let descriptors = Span::of_slice(outputs);
    if let Some(other) = reads.under(descriptors) {
        return report.refuse(Error::ArrayOverlap { argument: "outputs", other });
    }
    if are_side_by_side(rank, outputs, reads) {
        return Ok(());
    }
    let field = |at: usize| if at.is_multiple_of(2) { "shape" } else { "strides" };
    let span = |at: usize| parse::array_span(outputs, at, rank);
    for (index, output) in outputs.iter().enumerate() {
        if is_unwanted(output) {
            continue;
        }
        for at in [2 * index, 2 * index + 1] {
            let span = span(at);
            if reads.are_apart(span) && span.is_apart(descriptors) || span.is_empty() {
                continue;
            }
            let lies_over = |one| Span::of_slice(slice::from_ref(one)).intersects(span);
            let descriptor = || outputs.iter().position(lies_over).map(Which::Output);
            if let Some(other) = reads.under(span).or_else(descriptor) {
                let field = field(at);
                return report.refuse(Error::DescriptorOverlap { output: index, field, other });
            }
        }
    }
    match spans::meeting(&Numbered(outputs.len().saturating_mul(2), &span)) {
        None => Ok(()),
        Some((at, other)) => {
            let (output, field, other) = (at / 2, field(at), Which::Output(other / 2));
            report.refuse(Error::DescriptorOverlap { output, field, other })
        }
    }
}

/// That the sizes fit, of pieces that may have more steps than the input is known to have.
#[cold]
#[inline(never)]
fn check_sizes(splitting: &Splitting<'_>, report: &mut Report) -> Result<(), Fault> {
    let Geometry { dtype, shape, .. } = splitting.geometry;
    // Those of known extents above 0 fit.
    let bits = shape
        .iter()
        .fold(i64::from(dtype.bits()), |all, extent| all.wrapping_mul((*extent).max(1)));
    match splitting.pieces().find(|piece| bits.checked_mul(piece.len).is_none()) {
        None => Ok(()),
        Some(Piece { index, .. }) => {
            report.refuse(Error::TooManyElements { which: Which::Output(index) })
        }
    }
}

/// How many outputs the operator gives.
///
/// # Safety
/// As [`super::libsplit_count`].
pub(super) unsafe fn count(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    count: *mut usize,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: promise 1.
    unsafe {
        let mut room = parse::room();
        let call = Call::parse(input, params, None, Look::AtShape, &mut room, report)?;
        let splitting = &call.splitting;
        parse::checked(count, "count", report)?;
        match usize::try_from(splitting.pieces.count()) {
            Ok(number) => count.write(number),
            Err(_) => return report.refuse(Error::TooManyElements { which: Which::Input }),
        }
    }
    Ok(())
}
