//! The functions of `libsplit.h`: each parses its arguments, asks the core, and guards.
//!
//! # Safety
//! What the head of `libsplit.h` says once for all: every pointer must be NULL or valid for what its structure or the
//! function's description says, for the length of the call.

#![allow(clippy::missing_safety_doc)] // said above
// Promises 1 and 3 are the callers'; there is nothing else to say of each function.
#![allow(unsafe_op_in_unsafe_fn)]

use super::guard::guard;
use super::types::{
    libsplit_dtype, libsplit_error, libsplit_executor, libsplit_params, libsplit_plan,
    libsplit_status, libsplit_tensor, LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR,
    LIBSPLIT_VERSION_PATCH,
};
use super::{calls, plan};
use crate::dtype::DType;
use crate::error::status_name;
use core::ffi::{c_char, c_void, CStr};

/// The version of the library, not of the header: major << 24 | minor << 16 | patch. Never fails.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_version() -> u32 {
    LIBSPLIT_VERSION_MAJOR << 24 | LIBSPLIT_VERSION_MINOR << 16 | LIBSPLIT_VERSION_PATCH
}

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The version of the library as text, "major.minor.patch", NUL-terminated and static. Never
/// fails.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_version_string() -> *const c_char {
    VERSION.as_ptr()
}

/// The name of a status, as "LIBSPLIT_STATUS_ERROR_AXIS", NUL-terminated and static;
/// "LIBSPLIT_STATUS_UNKNOWN" for a number that is none. Never NULL.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_status_name(status: libsplit_status) -> *const c_char {
    status_name(status.0).as_ptr()
}

/// The name of an element type in ONNX TensorProto.DataType, as "FLOAT16", NUL-terminated and
/// static; "UNDEFINED" for a number that is none. Never NULL.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_dtype_name(dtype: libsplit_dtype) -> *const c_char {
    DType::from_number(dtype.0).map_or(c"UNDEFINED", DType::c_name).as_ptr()
}

/// Bits of one element: 2, 4, 8, 16, 32, 64 or 128; 0 for a number that is no element type.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_dtype_bits(dtype: libsplit_dtype) -> u32 {
    DType::from_number(dtype.0).map_or(0, DType::bits)
}

/// libsplit_count() tells how many outputs the operator gives, into '*count'.
///
/// 'input' needs dtype, rank and shape; its extents may be LIBSPLIT_DIM_UNKNOWN. No data is read
/// but that of the lengths. The checks are those of libsplit_infer() apart from the outputs'.
/// For ONNX Split before 18 without lengths, set params->num_outputs: the number of outputs of
/// the node is then the answer.
///
/// Errors, after which '*count' is unchanged:
///
///   NULL, ALIGNMENT                input, params, or count; their shapes and strides
///   STRUCT_SIZE                    params
///   OPERATOR, OPSET, FLAGS, AXIS   params
///   RANK                           input
///   DTYPE, SHAPE, OVERFLOW         input or params->split
///   SPLIT                          params->split absent, refused, or of a wrong rank or dtype
///   SPLIT_SIZES                    params->split, or an extent that does not divide
///   NUM_OUTPUTS                    params->num_outputs
///   BIT_OFFSET, DATA_BYTES         params->split
///   UNKNOWN                        the number depends on what is not known yet
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_count(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    count: *mut usize,
    error: *mut libsplit_error,
) -> libsplit_status {
    guard(error, || calls::count(input, params, count))
}

/// libsplit_infer() fills rank, dtype, shape, strides (packed ones, where strides is not NULL),
/// data_bytes (of the packed output) and bit_offset (0) of every output descriptor, and leaves
/// data as it is. Allocate data_bytes, set data, and the outputs are ready for libsplit_copy().
///
/// 'input' needs dtype, rank and shape; data, data_bytes, strides and bit_offset do not matter.
/// Its extents may be LIBSPLIT_DIM_UNKNOWN, and the lengths unknown (data NULL). What is known is
/// checked, and what follows from it is filled in; an unknown extent becomes
/// LIBSPLIT_DIM_UNKNOWN in the outputs, as do the packed strides outside of it, and data_bytes
/// then is 0. Where the number of pieces of SplitToSequence is not known yet, 'num_outputs' is
/// believed.
///
/// 'outputs' is an array of 'num_outputs' descriptors, as many as the operator gives; each needs
/// shape and capacity (entries that shape, and strides if not NULL, have room for). All-zero ones
/// are skipped, so give an output that will have rank 0 a capacity above 0. 'outputs' may be NULL
/// when num_outputs is 0. The arrays must not lie in those of the input or the lengths.
///
/// Errors, after which no descriptor is changed: those of libsplit_count(), and
///
///   NULL, ALIGNMENT   outputs, or an output's shape or strides
///   NUM_OUTPUTS       num_outputs is not the operator's number
///   CAPACITY          an output's capacity is below its rank
///   OVERFLOW          an output's size
///   OVERLAP           an output's arrays lie in the input's, the lengths', or the descriptors
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_infer(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *mut libsplit_error,
) -> libsplit_status {
    guard(error, || calls::infer(input, params, outputs, num_outputs, error))
}

/// libsplit_view() does what libsplit_infer() does and points every output into the input: data,
/// strides and bit_offset (below 8) are those of the piece where it lies, data_bytes is the
/// number of bytes from the lowest to the highest that the piece touches. Nothing is copied, and
/// the input's data is never read, so the address may be any device's.
///
/// 'input' is complete; its extents are known. 'outputs' as for libsplit_infer(); where strides
/// is NULL the piece must happen to be packed. A view lives no longer than the data under it.
///
/// Errors, after which no descriptor is changed: those of libsplit_infer(), and
///
///   NULL, ALIGNMENT        input->data with elements, or input->strides
///   BIT_OFFSET, OVERFLOW   input
///   DATA_BYTES             input->data_bytes is stated and too small
///   SPLIT                  the lengths are not known (data NULL)
///   STRIDES                an output without strides whose piece is not packed
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_view(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
    error: *mut libsplit_error,
) -> libsplit_status {
    guard(error, || calls::view(input, params, outputs, num_outputs, error))
}

/// libsplit_copy() copies every piece into the buffer that its output describes.
///
/// 'input' is complete; its extents are known, its strides may be negative or 0. Each of the
/// 'num_outputs' descriptors is as libsplit_infer() left it or as the caller filled it, plus
/// data: dtype, rank and shape must be the operator's, strides may be the caller's own (negative
/// ones too, but each must step over everything that the smaller ones reach, so that no two
/// elements share an address), data_bytes is checked unless 0, capacity does not matter.
/// Descriptors are never written. All-zero ones are skipped. Sub-byte outputs must be packed and
/// begin at a whole byte (bit_offset 0); the bits past the last element of their final byte
/// become 0.
///
/// Outputs must not overlap the input, the lengths or one another. Strided ones may lie in each
/// other's gaps: columns of one matrix, tiles of one picture, planes with padding. Whether two of
/// them share a byte is decided exactly by a bounded search; for strides so tangled that it gives
/// up, the message says "could not be shown apart", and the remedy is a call for each of them with
/// the other outputs all-zero. Bytes between the elements of a strided input, within what it
/// reaches over, may be read and never matter: another thread may write them meanwhile.
///
/// Without an 'executor' everything runs on the calling thread.
///
/// Errors: those of libsplit_view() on the input and the parameters, and
///
///   NULL, ALIGNMENT        outputs; shape, strides, or data with elements, of one; executor's
///                          parallel_for
///   STRUCT_SIZE, FLAGS     executor
///   NUM_OUTPUTS            num_outputs is not the operator's number
///   DTYPE, RANK, OUTPUT    an output's dtype, rank or shape
///   BIT_OFFSET, STRIDES    an output's bit_offset or strides
///   DATA_BYTES, OVERFLOW   an output's data_bytes or addresses
///   OVERLAP                an output overlaps the input, the lengths, another output, or the
///                          descriptors and arrays of the input and of itself
///   EXECUTOR               parallel_for failed or did not run every task
///
/// On an error no byte has been written, but for EXECUTOR: then any part of the outputs may have
/// been, and their bytes are to be taken for garbage.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_copy(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *mut libsplit_error,
) -> libsplit_status {
    guard(error, || calls::copy(input, params, outputs, num_outputs, executor, error))
}

/// libsplit_plan_size() tells how many bytes a plan takes for an input of this rank and so many
/// outputs, the same for every operator, element type and layout: at most 1 KiB, 24 bytes an output,
/// and 32 bytes an axis and output. 0 = rank or number out of range. Never fails otherwise.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_plan_size(rank: i32, num_outputs: usize) -> usize {
    plan::size(rank, num_outputs)
}

/// libsplit_plan_init() decides everything about a split but the addresses, and writes it into
/// 'plan': 'plan_size' bytes of the caller's, aligned to 8, as many as libsplit_plan_size() says
/// for input->rank and 'num_outputs', or more.
///
/// 'input' is as for libsplit_copy(), but its data and data_bytes do not matter. 'outputs' are as
/// for libsplit_copy(), but their data does not matter: an all-zero one is not wanted, by the plan
/// for ever. 'outputs' may be NULL: then all are wanted and packed.
///
/// A plan keeps no pointer: input, lengths, params and outputs may go away or change. It is plain
/// bytes, which may be copied and moved, read by many threads at once, and are thrown away without a
/// call. It belongs to the build of the library that made it, on this kind of machine; do not
/// store it.
///
/// Errors, after which the plan's memory is unchanged: those of libsplit_copy() that do not concern
/// addresses, and
///
///   NULL, ALIGNMENT   plan
///   PLAN              plan_size is too small
///   OVERLAP           plan lies over what is read meanwhile
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_plan_init(
    plan: *mut libsplit_plan,
    plan_size: usize,
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    error: *mut libsplit_error,
) -> libsplit_status {
    guard(error, || calls::plan_init(plan, plan_size, input, params, outputs, num_outputs, error))
}

/// libsplit_plan_copy() does what libsplit_copy() does, by a plan: copies every wanted piece of the
/// tensor at 'input' to its output.
///
/// 'input' is the address of the input's element [0, ..., 0], entry i of 'outputs' that of output i; the
/// one of a piece that is not wanted or has no elements is not looked at. How much memory there is
/// is not asked: the plan's numbers are relied on. Overlaps are refused as by libsplit_copy().
///
/// Errors:
///
///   PLAN                   'plan' is no plan of this library
///   NULL, ALIGNMENT        plan, input, outputs, or the address of an output; executor's
///                          parallel_for
///   NUM_OUTPUTS            num_outputs is not the plan's
///   STRUCT_SIZE, FLAGS     executor
///   OVERFLOW               addresses past the end of the address space
///   OVERLAP                an output overlaps the input, another output, the plan, 'outputs',
///                          the executor or 'error'
///   EXECUTOR               parallel_for failed or did not run every task
///
/// On an error no byte has been written, but for EXECUTOR, as for libsplit_copy().
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_plan_copy(
    plan: *const libsplit_plan,
    input: *const c_void,
    outputs: *const *mut c_void,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *mut libsplit_error,
) -> libsplit_status {
    let (input, outputs) = (input.cast(), outputs.cast());
    guard(error, || calls::plan_copy(plan, input, outputs, num_outputs, executor, error))
}

/// libsplit_plan_view() does what libsplit_view() does, by a plan: writes where each wanted piece
/// lies in the tensor at 'input'. Shapes, strides and bit offsets are those that libsplit_view()
/// gives for the same split; ask it once. The entry of a piece that is not wanted is left as it is.
/// The input's data is never read, so the address may be any device's.
///
/// Errors, after which no entry is changed:
///
///   PLAN               'plan' is no plan of this library
///   NULL, ALIGNMENT    plan, outputs, or an input with elements
///   NUM_OUTPUTS        num_outputs is not the plan's
///   OVERFLOW           addresses past the end of the address space
///   OVERLAP            'outputs' lies over the plan or 'error'
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_plan_view(
    plan: *const libsplit_plan,
    input: *mut c_void,
    outputs: *mut *mut c_void,
    num_outputs: usize,
    error: *mut libsplit_error,
) -> libsplit_status {
    let (input, outputs) = (input.cast(), outputs.cast());
    guard(error, || calls::plan_view(plan, input, outputs, num_outputs, error))
}

/// libsplit_plan_describe() writes what a plan will do, as text for people: the call, and how its bytes
/// will be moved. The wording may change; no program should read it.
///
/// At most 'size' bytes are written to 'buffer', the last of them a NUL; what does not fit is cut.
/// 'buffer' may be NULL if 'size' is 0. Returns the length of the whole text without the NUL, as snprintf
/// does; 0 if 'plan' is NULL, misaligned, or no plan of this library.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_plan_describe(
    plan: *const libsplit_plan,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    plan::describe(plan, buffer.cast(), size)
}
