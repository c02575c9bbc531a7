//! Raw pointers in, checked borrows out. Everything that C hands over passes through here, once.
//!
//! Promises are those of [`super`].

use super::types::{
    libsplit_error, libsplit_executor, libsplit_op, libsplit_params, libsplit_tensor,
    LIBSPLIT_FLAG_CLAMP_UNEVEN,
};
use crate::blocks;
use crate::dtype::DType;
use crate::error::{number, Error, Fault, Report, Which};
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::plan::{Geometry, Splitting};
use crate::rules::{self, Request, MAX_OUTPUTS};
use crate::shape::{usize_of, MAX_RANK};
use crate::span::Span;
use crate::tensor::Tensor;
use core::ffi::c_char;
use core::mem::{offset_of, MaybeUninit};
use core::ptr::NonNull;

/// What a call asks for.
pub(crate) struct Call<'a> {
    pub input: Tensor<'a>,
    pub splitting: Splitting<'a>,
    /// Where the elements of the lengths lie.
    pub lengths: Span,
    /// Where descriptors and parameters lie.
    pub at: *const libsplit_tensor,
    pub params: *const libsplit_params,
    pub split_at: *const libsplit_tensor,
}

/// Room for a call, and for lengths that are written down.
pub(super) type Room<'a> = (MaybeUninit<Call<'a>>, blocks::Room);

pub(super) fn room<'a>() -> Room<'a> {
    (MaybeUninit::uninit(), blocks::room())
}

/// What of the input matters to a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Type and shape; extents may be unknown.
    AtShape,
    /// Strides and bit offset, too.
    AtLayout,
}

impl<'a> Call<'a> {
    /// A call that is not C's.
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn new(
        input: Tensor<'a>,
        request: &Request<'a>,
        room: &'a mut blocks::Room,
        report: &mut Report,
    ) -> Result<Self, Fault> {
        let mut splitting = Splitting::new(request, input.dtype, input.shape, report)?;
        blocks::write_down(&mut splitting.pieces, room);
        let (lengths, params) = (Span::default(), core::ptr::null());
        let (at, split_at) = (core::ptr::null(), core::ptr::null());
        Ok(Self { input, splitting, lengths, at, params, split_at })
    }

    /// Parses a call into `room`, and plans its split.
    ///
    /// # Safety
    /// Promise 1.
    #[inline(never)] // with all registers to itself
    pub(super) unsafe fn parse<'r>(
        input: *const libsplit_tensor,
        params: *const libsplit_params,
        outputs: Option<usize>,
        look: Look,
        (room, lengths): &'r mut Room<'a>,
        report: &mut Report,
    ) -> Result<&'r Self, Fault>
    where
        'r: 'a,
    {
        let call = room.as_mut_ptr();
        // SAFETY: promise 1, here and below; every field is written.
        unsafe {
            let mut params_room = MaybeUninit::uninit();
            let given = versioned(params, "params", FIRST_PARAMS, &mut params_room, report)?;
            (&raw mut (*call).at).write(input);
            (&raw mut (*call).params).write(params);
            (&raw mut (*call).split_at).write(given.split);
            let operator = operator(given, report)?;
            check_flags("params", given.flags, LIBSPLIT_FLAG_CLAMP_UNEVEN, report)?;

            let tensor = &*checked(input, "input", report)?;
            let tensor = tensor_of(tensor, look, Which::Input, report)?;
            (&raw mut (*call).input).write(tensor);

            let request = Request {
                operator,
                axis: given.axis,
                lengths: None,
                num_outputs: given.num_outputs,
                keepdims: given.keepdims != 0,
                clamp_uneven: given.flags & LIBSPLIT_FLAG_CLAMP_UNEVEN != 0,
                may_be_unknown: look == Look::AtShape,
                outputs,
            };
            let Tensor { dtype, shape, .. } = tensor;
            let has_lengths = !given.split.is_null();
            let geometry = Geometry::new(&request, has_lengths, dtype, shape, report)?;
            (&raw mut (*call).splitting.geometry).write(geometry);
            Self::parse_pieces(call, given.split, &request, lengths, report)?;
            Ok(&*call)
        }
    }

    /// Parses the lengths, and what they or other rules make of the axis.
    ///
    /// # Safety
    /// Promise 1; of the call, the geometry must have been written.
    #[inline(always)]
    unsafe fn parse_pieces(
        call: *mut Self,
        split: *const libsplit_tensor,
        request: &Request<'a>,
        room: &'a mut blocks::Room,
        report: &mut Report,
    ) -> Result<(), Fault> {
        // SAFETY: promise 1; the geometry has been written.
        unsafe {
            if split.is_null() {
                return Self::find_pieces(call, request, Span::default(), room, report);
            }
            let split = &*checked(split, "params.split", report)?;
            let Some((lengths, at)) = plain_lengths(split) else {
                return Self::parse_closely(call, split, request.copy(), room, report);
            };
            let request = Request { lengths: Some(lengths), ..*request };
            Self::find_pieces(call, &request, at, room, report)
        }
    }

    /// The same of lengths that are not such as most programs have them.
    ///
    /// # Safety
    /// As [`Self::parse_pieces`].
    #[cold]
    #[inline(never)]
    unsafe fn parse_closely(
        call: *mut Self,
        split: &libsplit_tensor,
        request: Request<'a>,
        room: &'a mut blocks::Room,
        report: &mut Report,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        unsafe {
            let (lengths, at) = lengths_closely(split, report)?;
            let request = Request { lengths: Some(lengths), ..request };
            Self::find_pieces(call, &request, at, room, report)
        }
    }

    /// Works out the pieces; the lengths lie `at` some place.
    ///
    /// # Safety
    /// As [`Self::parse_pieces`].
    #[inline(always)]
    unsafe fn find_pieces(
        call: *mut Self,
        request: &Request<'a>,
        at: Span,
        room: &'a mut blocks::Room,
        report: &mut Report,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        unsafe {
            (&raw mut (*call).lengths).write(at);
            let Geometry { dtype, extent, .. } = (*call).splitting.geometry;
            let pieces = &mut *(&raw mut (*call).splitting.pieces).cast::<MaybeUninit<_>>();
            let pieces = rules::find_pieces(request, dtype, extent, pieces, report)?;
            blocks::write_down(pieces, room);
            Ok(())
        }
    }
}

/// The operator version that governs.
#[inline(always)]
fn operator(params: &libsplit_params, report: &mut Report) -> Result<Operator, Fault> {
    let operator = match params.op {
        op if op == libsplit_op::ONNX_SPLIT => Operator::onnx_split(params.opset),
        libsplit_op::ONNX_SPLIT_TO_SEQUENCE => Operator::onnx_split_to_sequence(params.opset),
        libsplit_op::OPENVINO_VARIADIC_SPLIT => {
            openvino(params.opset, Operator::VariadicSplit1, "OpenVINO VariadicSplit")
        }
        libsplit_op::OPENVINO_SPLIT => {
            openvino(params.opset, Operator::OpenVinoSplit1, "OpenVINO Split")
        }
        libsplit_op(actual) => Err(Error::OperatorUnknown { expected: 4, actual: actual.into() }),
    };
    match operator {
        Ok(operator) => Ok(operator),
        Err(error) => report.refuse(error),
    }
}

#[inline(always)]
fn openvino(opset: i32, operator: Operator, name: &'static str) -> Result<Operator, Error> {
    match opset {
        0 | 1 => Ok(operator),
        _ => Err(Error::OpenVinoOpset { operator: name, expected: 1, actual: opset.into() }),
    }
}

#[inline(always)]
pub(super) fn check_flags(
    argument: &'static str,
    flags: u32,
    known: u32,
    report: &mut Report,
) -> Result<(), Fault> {
    if flags & !known == 0 {
        return Ok(());
    }
    report.refuse(Error::Flags { argument, expected: known.into(), actual: flags.into() })
}

/// The lengths, if they are a list as most programs have it, and where they lie.
///
/// # Safety
/// Promise 1.
#[inline(always)]
unsafe fn plain_lengths<'a>(tensor: &libsplit_tensor) -> Option<(Lengths<'a>, Span)> {
    const INT64: u64 = DType::Int64 as u64;
    const INT32: u64 = DType::Int32 as u64;
    let (dtype, size) = match type_and_offset(tensor) {
        INT64 => (DType::Int64, size_of::<i64>()),
        INT32 => (DType::Int32, size_of::<i32>()),
        _ => return None,
    };
    let data = tensor.data as usize;
    // What is asked of one address is asked apart, for compilers make more of it in one go.
    if tensor.shape.is_null()
        || data == 0
        || tensor.rank != 1
        || !tensor.strides.is_null()
        || !tensor.shape.is_aligned()
        || data & (size - 1) != 0
    {
        return None;
    }
    // SAFETY: promise 1.
    let count = unsafe { *tensor.shape };
    if !(1..=MAX_OUTPUTS).contains(&count) {
        return None;
    }
    let bytes = usize_of(count) * size;
    // None stated is the most.
    if tensor.data_bytes.wrapping_sub(1) < bytes - 1 {
        return None;
    }
    let span = Span { start: data, end: data.checked_add(bytes)? };
    // SAFETY: promise 1.
    Some((unsafe { Lengths::from_slice(tensor.data.cast(), count, dtype) }, span))
}

/// The lengths, whatever they are like, and where they lie.
///
/// # Safety
/// Promise 1.
#[inline(always)]
unsafe fn lengths_closely<'a>(
    tensor: &libsplit_tensor,
    report: &mut Report,
) -> Result<(Lengths<'a>, Span), Fault> {
    let which = Which::Split;
    let dtype = dtype_of(tensor, which, report)?;
    if !(0..=1).contains(&tensor.rank) {
        let actual = tensor.rank.into();
        return report.refuse(Error::LengthsRank { expected: 1, actual });
    }
    // SAFETY: promise 1.
    let tensor = unsafe { tensor_of(tensor, Look::AtLayout, which, report)? };
    let len = tensor.shape.first().copied();
    if let Some(actual @ ..=-1) = len {
        return report.refuse(Error::LengthsExtent { expected: 0, actual });
    }
    let is_known = !tensor.data.is_null() || len == Some(0);
    let bits = i64::from(dtype.bits());
    let count = len.unwrap_or(1);
    if count.checked_mul(bits).is_none() {
        return report.refuse(Error::TooManyElements { which });
    }
    let at = if is_known { tensor.span(count, which, report)? } else { Span::default() };
    let stride = tensor.strides.and_then(|strides| strides.first()).copied().unwrap_or(1);
    // SAFETY: promise 1 for all that `at` covers. A stride whose bits overflow is one of a list
    // with one entry, and is not used.
    let lengths = unsafe {
        let (bit_offset, bit_stride) = (tensor.bit_offset.into(), stride.wrapping_mul(bits));
        Lengths::from_raw(tensor.data, bit_offset, bit_stride, len, dtype)
    };
    Ok((lengths, at))
}

/// A descriptor's type and bit offset, for one comparison.
#[inline(always)]
pub(super) fn type_and_offset(tensor: &libsplit_tensor) -> u64 {
    u64::from(tensor.dtype.0.cast_unsigned()) | u64::from(tensor.bit_offset) << 32
}

#[inline(always)]
pub(super) fn dtype_of(
    tensor: &libsplit_tensor,
    which: Which,
    report: &mut Report,
) -> Result<DType, Fault> {
    let number = tensor.dtype.0;
    if let Some(dtype) = DType::from_number(number) {
        return Ok(dtype);
    }
    report.refuse(Error::DTypeUnknown { which, expected: 26, actual: number.into() })
}

/// A descriptor's rank, within what a tensor may have.
#[inline(always)]
pub(super) fn rank_of(
    tensor: &libsplit_tensor,
    which: Which,
    report: &mut Report,
) -> Result<usize, Fault> {
    let actual = i64::from(tensor.rank);
    let lowest = i64::from(which == Which::Input);
    match usize::try_from(tensor.rank) {
        Ok(rank) if rank <= MAX_RANK => Ok(rank),
        Ok(_) => report.refuse(Error::Rank { which, expected: 64, actual }),
        Err(_) => report.refuse(Error::RankNegative { which, expected: lowest, actual }),
    }
}

/// A tensor whose type and shape have been looked at, and its layout if that matters.
///
/// # Safety
/// Promise 1.
#[inline(always)]
pub(super) unsafe fn tensor_of<'a>(
    tensor: &libsplit_tensor,
    look: Look,
    which: Which,
    report: &mut Report,
) -> Result<Tensor<'a>, Fault> {
    let dtype = dtype_of(tensor, which, report)?;
    let rank = rank_of(tensor, which, report)?;
    let (mut shape, mut strides): (&[i64], Option<&[i64]>) = (&[], None);
    if rank > 0 {
        check_array(tensor.shape, which, "shape", report)?;
        // SAFETY: not NULL, aligned, and `rank` entries long by promise 1, as are strides.
        shape = unsafe { core::slice::from_raw_parts(tensor.shape, rank) };
        if look == Look::AtLayout && !tensor.strides.is_null() {
            check_strides(tensor, which, report)?;
            // SAFETY: as above.
            strides = Some(unsafe { core::slice::from_raw_parts(tensor.strides, rank) });
        }
    }
    Ok(Tensor {
        data: tensor.data.cast(),
        data_bytes: tensor.data_bytes,
        dtype,
        shape,
        strides,
        bit_offset: tensor.bit_offset,
    })
}

/// That an array of a descriptor is there and aligned.
#[inline(always)]
pub(super) fn check_array(
    array: *const i64,
    which: Which,
    field: &'static str,
    report: &mut Report,
) -> Result<(), Fault> {
    if !array.is_null() && array.is_aligned() {
        return Ok(());
    }
    refuse_array(array as usize, which, field, report)
}

#[cold]
#[inline(never)]
fn refuse_array(
    address: usize,
    which: Which,
    field: &'static str,
    report: &mut Report,
) -> Result<(), Fault> {
    if address == 0 {
        return report.refuse(Error::NullField { which, field });
    }
    let (expected, actual) = alignment(address, align_of::<i64>());
    report.refuse(Error::AlignmentField { which, field, expected, actual })
}

/// That the strides of a descriptor are aligned, if there are any.
#[inline(always)]
pub(super) fn check_strides(
    tensor: &libsplit_tensor,
    which: Which,
    report: &mut Report,
) -> Result<(), Fault> {
    if tensor.strides.is_aligned() {
        return Ok(()); // NULL is.
    }
    check_array(tensor.strides, which, "strides", report)
}

/// A pointer that is not NULL, and aligned.
#[inline(always)]
pub(super) fn checked<T>(
    pointer: *const T,
    argument: &'static str,
    report: &mut Report,
) -> Result<*const T, Fault> {
    if !pointer.is_null() && pointer.is_aligned() {
        return Ok(pointer);
    }
    Err(refuse_pointer(pointer as usize, align_of::<T>(), argument, report))
}

#[cold]
#[inline(never)]
fn refuse_pointer(
    address: usize,
    align: usize,
    argument: &'static str,
    report: &mut Report,
) -> Fault {
    if address == 0 {
        return report.fail(Error::Null { argument });
    }
    let (expected, actual) = alignment(address, align);
    report.fail(Error::Alignment { argument, expected, actual })
}

/// The alignment that an address should have, and by how much it misses it.
fn alignment(address: usize, align: usize) -> (i64, i64) {
    (number(align), number(address & (align - 1)))
}

/// Bytes that structures had in their first version, which ended with these fields: old programs state
/// them for ever, whatever is added behind.
pub(super) const FIRST_PARAMS: usize = offset_of!(libsplit_params, flags) + size_of::<u32>();
pub(super) const FIRST_EXECUTOR: usize = offset_of!(libsplit_executor, flags) + size_of::<u32>();
pub(super) const FIRST_ERROR: usize =
    offset_of!(libsplit_error, message) + size_of::<[c_char; MESSAGE]>();

/// Bytes of an error's message in its first version.
pub(super) const MESSAGE: usize = 240;

/// The largest `struct_size` believed.
const MAX_STRUCT_SIZE: usize = 4096;

/// A structure that begins with its size and may be of another version than ours, which is put into
/// `room`: fields that it does not have yet are 0, and those that we do not know yet must be.
///
/// # Safety
/// `pointer` must be NULL or valid for the size that it states, for `'a`; all zero bytes are a `T`.
#[inline(always)]
pub(super) unsafe fn versioned<'a, T: Copy>(
    pointer: *const T,
    argument: &'static str,
    first_version: usize,
    room: &'a mut MaybeUninit<T>,
    report: &mut Report,
) -> Result<&'a T, Fault> {
    checked(pointer, argument, report)?;
    // SAFETY: the size comes first in every such structure, and it is as long as it says.
    unsafe {
        let stated = pointer.cast::<usize>().read();
        if stated == size_of::<T>() {
            return Ok(&*pointer);
        }
        let to = NonNull::from(room).cast();
        let to = Known { to, size: size_of::<T>(), first_version };
        Ok(other_version(pointer.cast(), stated, argument, to, report)?.cast().as_ref())
    }
}

/// Room for the version of a structure that is known, of so many bytes, and the bytes of its first.
struct Known {
    to: NonNull<u8>,
    size: usize,
    first_version: usize,
}

/// # Safety
/// As [`versioned`]; the structure states that size.
#[cold]
#[inline(never)]
unsafe fn other_version(
    pointer: *const u8,
    stated: usize,
    argument: &'static str,
    Known { to, size: known, first_version }: Known,
    report: &mut Report,
) -> Result<NonNull<u8>, Fault> {
    let actual = stated;
    if actual < first_version {
        let (expected, actual) = (number(first_version), number(actual));
        return report.refuse(Error::StructSize { argument, expected, actual });
    }
    if actual > MAX_STRUCT_SIZE {
        let expected = number(MAX_STRUCT_SIZE);
        return report.refuse(Error::StructSizeHuge { argument, expected, actual });
    }
    // SAFETY: the caller's structure is as long as it says, and there is room for ours.
    unsafe {
        for at in known..stated {
            if pointer.add(at).read() != 0 {
                let (expected, actual) = (number(known), number(stated));
                return report.refuse(Error::NonZeroTail { argument, expected, actual });
            }
        }
        to.write_bytes(0, known);
        pointer.copy_to_nonoverlapping(to.as_ptr(), known.min(stated));
    }
    Ok(to)
}

/// Output descriptors.
///
/// # Safety
/// Promises 1 and 2.
#[inline(always)]
pub(super) unsafe fn descriptors<'a>(
    outputs: *const libsplit_tensor,
    len: usize,
    report: &mut Report,
) -> Result<&'a [libsplit_tensor], Fault> {
    if len == 0 {
        return Ok(&[]);
    }
    checked(outputs, "outputs", report)?;
    let most = isize::MAX.unsigned_abs() / size_of::<libsplit_tensor>();
    if len > most {
        let (argument, expected) = ("num_outputs", number(most));
        return report.refuse(Error::TooManyOutputs { argument, expected, actual: len });
    }
    // SAFETY: not NULL, aligned, and `len` long by promise 1.
    Ok(unsafe { core::slice::from_raw_parts(outputs, len) })
}

/// Where an array of outputs lies, of which each has a shape and strides; nowhere if it is not wanted.
pub(super) fn array_span(outputs: &[libsplit_tensor], array: usize, rank: usize) -> Span {
    match outputs.get(array / 2) {
        Some(output) if !is_unwanted(output) => Span::of_array(
            if array.is_multiple_of(2) { output.shape } else { output.strides },
            rank,
        ),
        _ => Span::default(),
    }
}

/// Where the shape and the strides of an output lie; nowhere if it has none.
#[inline(always)]
pub(super) fn arrays(output: &libsplit_tensor, rank: usize) -> [Span; 2] {
    [output.shape, output.strides].map(|array| Span::of_array(array, rank))
}

/// Whether a descriptor is all zero: an output that the caller does not want.
#[inline(always)]
pub(super) fn is_unwanted(tensor: &libsplit_tensor) -> bool {
    // Most have a shape, and nobody has to look further.
    tensor.shape.is_null() && is_zero(tensor)
}

#[cold]
#[inline(never)]
fn is_zero(tensor: &libsplit_tensor) -> bool {
    tensor.data.is_null()
        && tensor.data_bytes == 0
        && tensor.strides.is_null()
        && tensor.rank == 0
        && tensor.capacity == 0
        && tensor.dtype.0 == 0
        && tensor.bit_offset == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_ptr_alignment)] // memory that is aligned enough

    use super::{versioned, Error, MaybeUninit, Report};
    #[cfg(target_pointer_width = "64")]
    use super::{FIRST_ERROR, FIRST_EXECUTOR, FIRST_PARAMS};

    /// As in `abi/0.1.0/libsplit.h`: these numbers stay as they are.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn the_sizes_of_first_versions_never_change() {
        assert_eq!((FIRST_PARAMS, FIRST_EXECUTOR, FIRST_ERROR), (48, 32, 272));
    }

    /// Today's version of a structure whose first had two fields.
    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C)]
    struct Grown {
        struct_size: usize,
        first: u64,
        second: u64,
    }

    const FIRST: usize = size_of::<usize>() + 8;

    fn read(structure: *const u8) -> Result<Grown, Option<Error>> {
        let mut report = Report::default();
        let mut room = MaybeUninit::uninit();
        let pointer = structure.cast::<Grown>();
        // SAFETY: as long as it says.
        let found = unsafe { versioned(pointer, "params", FIRST, &mut room, &mut report) };
        found.copied().map_err(|_| report.reason())
    }

    /// A structure of `stated` bytes that ends where nothing may be touched.
    #[cfg(unix)]
    fn at_the_edge(stated: usize, fields: &[u64]) -> (crate::copy::Guarded, *const u8) {
        let memory = crate::copy::Guarded::filled(64 << 10);
        let begin = memory.place(stated.next_multiple_of(8), true);
        let words = fields.iter().copied().chain(std::iter::repeat(0));
        let words = std::iter::once(stated as u64).chain(words);
        for (at, word) in words.take(stated / 8).enumerate() {
            // SAFETY: within the memory.
            unsafe { begin.cast::<u64>().add(at).write_unaligned(word) };
        }
        (memory, begin)
    }

    #[cfg(all(unix, target_pointer_width = "64"))]
    #[test]
    fn structures_of_older_and_newer_versions_are_taken() {
        let (_memory, older) = at_the_edge(FIRST, &[7]);
        assert_eq!(read(older), Ok(Grown { struct_size: FIRST, first: 7, second: 0 }));
        let (_memory, same) = at_the_edge(24, &[7, 8]);
        assert_eq!(read(same), Ok(Grown { struct_size: 24, first: 7, second: 8 }));
        let (_memory, newer) = at_the_edge(40, &[7, 8]);
        assert_eq!(read(newer), Ok(Grown { struct_size: 40, first: 7, second: 8 }));
        let (_memory, unknown) = at_the_edge(40, &[7, 8, 0, 1]);
        assert!(matches!(read(unknown), Err(Some(Error::NonZeroTail { expected: 24, .. }))));
        let (_memory, short) = at_the_edge(8, &[]);
        assert!(matches!(
            read(short),
            Err(Some(Error::StructSize { expected: 16, actual: 8, .. }))
        ));
    }
}
