//! The functions of `libsplit.h`. Each passes its arguments on, and reports what became of the call.
//!
//! # Safety
//! As the head of `libsplit.h` says for all of them: every pointer must be NULL or valid for what its structure or the
//! description of the function says, throughout the call.

// Promises 1 and 3 are the callers'; there is nothing else to say of each function.
#![allow(unsafe_op_in_unsafe_fn)]

use super::calls;
use super::guard::guard;
use crate::dtype::DType;
use crate::error::status_name;
use crate::operator::Operator;
use crate::plan;
use crate::types::{
    libsplit_dtype, libsplit_error, libsplit_executor, libsplit_op, libsplit_params, libsplit_plan,
    libsplit_status, libsplit_tensor,
};
use core::ffi::{c_char, c_void};

/// Returns the version of the library, not of the header: major << 24 | minor << 16 | patch. Never
/// fails.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub const extern "C" fn libsplit_version() -> u32 {
    plan::LIBRARY_VERSION
}

/// Returns the version of the library as a string: "major.minor.patch". Never fails.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_version_string() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns which loops run on this CPU, for bug reports: its architecture and the extension that they
/// are written for, such as "x86-64 AVX2", or "portable". Never fails.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_cpu_string() -> *const c_char {
    crate::copy::cpu_string().as_ptr()
}

/// Returns the name of a status, such as "LIBSPLIT_STATUS_ERROR_AXIS"; "unknown status" if the number is
/// not a status of this library.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_status_name(status: libsplit_status) -> *const c_char {
    status_name(status).as_ptr().cast()
}

/// Returns the name of an element type in ONNX TensorProto.DataType, such as "FLOAT16"; "UNDEFINED" if
/// the number is not an element type.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_dtype_name(dtype: libsplit_dtype) -> *const c_char {
    DType::from_number(dtype.0).map_or(c"UNDEFINED", DType::c_name).as_ptr()
}

/// Returns the size of an element in bits, such as 4 or 32; 0 if the number is not an element type of
/// this library.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_dtype_bits(dtype: libsplit_dtype) -> u32 {
    DType::from_number(dtype.0).map_or(0, DType::bits)
}

/// Returns the version of the operator that applies at this opset, such as 13 for ONNX Split at opset
/// 17; 0 if there is none, or if the operator is not known. Versions are those of this library: an opset
/// for which ONNX has changed the operator since then gets the newest version that this library knows.
/// It has been compared with ONNX up to LIBSPLIT_ONNX_OPSET.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_op_version(op: libsplit_op, opset: i32) -> i32 {
    Operator::governing(op, opset).map_or(0, Operator::version)
}

/// Stores the number of outputs that the operator gives in '*count'.
///
/// 'input' needs dtype, rank and shape; extents may be LIBSPLIT_DIM_UNKNOWN. No data is read except
/// that of the lengths. Everything is checked that libsplit_infer() checks, except the outputs. For
/// ONNX Split before version 18 without lengths, set params->num_outputs to the number of outputs of
/// the node, which is then the answer.
///
/// Errors, after which '*count' is unchanged:
///
///   NULL, ALIGNMENT                input, params, or count; their shapes and strides
///   STRUCT_SIZE                    params
///   OPERATOR, OPSET, FLAGS, AXIS   params
///   RANK                           input
///   DTYPE, SHAPE, OVERFLOW         input or params->split
///   SPLIT                          params->split is missing, not allowed, or of a wrong rank or dtype
///   SPLIT_SIZES                    params->split, or an extent that cannot be divided
///   NUM_OUTPUTS                    params->num_outputs
///   BIT_OFFSET, DATA_BYTES         params->split
///   COUNT_UNKNOWN                  the number depends on something that is not known yet
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_count(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    count: *mut usize,
    error: *mut libsplit_error,
) -> libsplit_status {
    guard(error, || calls::count(input, params, count))
}

/// Describes the outputs: fills in rank, dtype, shape, strides (packed ones, if strides is not NULL),
/// data_bytes (of the packed output) and bit_offset (0) of every output descriptor, and leaves data as
/// it is. Once you have allocated data_bytes and set data, the outputs are ready for libsplit_copy().
///
/// 'input' needs dtype, rank and shape; its data, data_bytes, strides and bit_offset do not matter.
/// Extents may be LIBSPLIT_DIM_UNKNOWN, and lengths may be unknown (data NULL). Whatever is known is
/// checked, and whatever follows from it is filled in. An unknown extent becomes LIBSPLIT_DIM_UNKNOWN
/// in the outputs, and so do the packed strides of the axes outside it; data_bytes is then 0. If the
/// number of pieces of SplitToSequence is not known yet, 'num_outputs' is taken to be right.
///
/// 'outputs' is an array of 'num_outputs' descriptors, as many as the operator gives. Each needs shape
/// and capacity (the number of entries that shape, and strides if not NULL, have room for). All-zero
/// descriptors are skipped, so give an output that will have rank 0 a capacity above 0. 'outputs' may
/// be NULL if num_outputs is 0. Shapes and strides of outputs must not overlap one another, nor those
/// of the input or the lengths.
///
/// Errors, after which no descriptor has changed: those of libsplit_count() and these:
///
///   NULL, ALIGNMENT   outputs, or the shape or strides of an output
///   NULL              no output is wanted, though the operator gives some
///   NUM_OUTPUTS       num_outputs is not the operator's number
///   CAPACITY          the capacity of an output is less than its rank
///   OVERFLOW          the size of an output
///   OVERLAP           the shape or strides of an output overlap something else that is in use
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

/// Points every output into the input. Does what libsplit_infer() does, and also sets data, strides and
/// bit_offset (less than 8) to where the piece lies, and data_bytes to the number of bytes from the
/// lowest to the highest that the piece touches. Nothing is copied. The data of the input is never
/// read, so it may be in the memory of any device.
///
/// 'input' must be complete, without unknown extents. 'outputs' is as for libsplit_infer(); if strides
/// is NULL, the piece must happen to be packed. A view is valid as long as the data that it points to.
///
/// Errors, after which no descriptor has changed: those of libsplit_infer() and these:
///
///   NULL, ALIGNMENT        input->data, if there are elements, or input->strides
///   BIT_OFFSET, OVERFLOW   input
///   DATA_BYTES             input->data_bytes is stated but too small
///   SPLIT                  the lengths are not known (their data is NULL)
///   STRIDES                an output has NULL strides, but its piece is not packed
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

/// Copies every piece into the buffer that its output describes.
///
/// 'input' must be complete, without unknown extents; its strides may be negative or 0. Each of the
/// 'num_outputs' descriptors is as libsplit_infer() left it, or as you filled it in, with data set.
/// Descriptors are never written to, and all-zero ones are skipped. For the others:
///
///   - dtype, rank and shape must be what the operator gives.
///   - strides may be your own, also negative ones, but each must step over everything that the smaller
///     ones reach, so that no two elements share an address.
///   - data_bytes is checked unless it is 0; capacity does not matter.
///   - Sub-byte outputs must be packed and begin at a whole byte; unused bits in their last byte become 0.
///
/// Outputs must not overlap the input, the lengths or one another. Strided outputs may lie in each
/// other's gaps: columns of one matrix, tiles of one picture, planes with padding. Whether two of them
/// share a byte is decided exactly, by a bounded search. If the strides are so irregular that the
/// search gives up, or if an output lies between sub-byte elements of a strided input, the function
/// returns NOT_SHOWN_APART. Bytes between the elements of a strided input may be read, but they never
/// matter: another thread may write to them at the same time.
///
/// Errors, after which nothing has been written (except after EXECUTOR: then any part of the outputs may
/// have been, and their contents are undefined): those of libsplit_view() that concern the input and the
/// parameters, and these:
///
///   NULL, ALIGNMENT        outputs; the shape, strides or data of an output
///   NULL                   no output is wanted, though the operator gives some
///   STRUCT_SIZE, FLAGS     executor
///   NUM_OUTPUTS            num_outputs is not the operator's number
///   DTYPE, RANK, OUTPUT    the dtype, rank or shape of an output
///   BIT_OFFSET, STRIDES    the bit_offset or strides of an output
///   DATA_BYTES, OVERFLOW   the data_bytes or addresses of an output
///   OVERLAP                an output overlaps the input, the lengths, another output, or an array in use
///   NOT_SHOWN_APART        it may overlap the input or another output
///   EXECUTOR               parallel_for failed or did not run every task
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

/// Returns how many bytes a plan needs for an input of this rank and this number of outputs. The answer
/// is the same for every operator, element type and layout: at most 1 KiB, plus 24 bytes for each
/// output, plus 32 bytes for each axis of each output. Returns 0 if 'rank' or 'num_outputs' is out of
/// range; never fails otherwise.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub extern "C" fn libsplit_plan_size(rank: i32, num_outputs: usize) -> usize {
    plan::size(rank, num_outputs)
}

/// Prepares a split: decides everything about it except the addresses, and writes that to 'plan'.
/// 'plan_size' is the number of bytes at 'plan', which is aligned to 8: at least what
/// libsplit_plan_size() returns for input->rank and 'num_outputs'.
///
/// 'input' is as for libsplit_copy(), except that its data and data_bytes do not matter. 'outputs' is
/// as for libsplit_copy(), except that data does not matter; an output whose descriptor is all zero
/// will be skipped in every call. 'outputs' may be NULL: all outputs are then wanted and packed.
///
/// A plan keeps no pointers, so the input, lengths, params and outputs may change or go away. It is
/// plain bytes: it may be copied and moved, used by many threads at once, and discarded without a call.
/// It belongs to the build of the library that made it, on this kind of machine, so do not store it.
///
/// Errors, after which the plan's memory has not changed: those of libsplit_copy() that do not concern
/// addresses, and these:
///
///   NULL, ALIGNMENT   plan
///   PLAN              plan_size is too small
///   OVERLAP           plan overlaps something that is read at the same time
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

/// Copies every wanted piece of the tensor at 'input' to its output, as libsplit_copy() does, using a
/// plan.
///
/// 'input' is the address of the input's element [0, ..., 0], and entry i of 'outputs' is the address
/// of the same element of output i. Entries of pieces that are not wanted or have no elements are
/// ignored. Nothing says how much memory there is, so the sizes in the plan are taken to be right.
/// Overlaps are refused as by libsplit_copy().
///
/// Errors, after which nothing has been written (except after EXECUTOR, as for libsplit_copy()):
///
///   PLAN                   'plan' is not a plan of this library
///   NULL, ALIGNMENT        plan, input, outputs, or the address of an output
///   NUM_OUTPUTS            num_outputs is not the plan's
///   STRUCT_SIZE, FLAGS     executor
///   OVERFLOW               addresses beyond the end of the address space
///   OVERLAP                an output overlaps the input, another output, the plan, 'outputs', the
///                          executor or 'error'
///   NOT_SHOWN_APART        an output may overlap the input or another output
///   EXECUTOR               parallel_for failed or did not run every task
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

/// Stores in 'outputs' where each wanted piece of the tensor at 'input' lies, as libsplit_view() does,
/// using a plan. Shapes, strides and bit offsets are those that libsplit_view() gives for the same
/// split; call it once to get them. Entries of pieces that are not wanted are left unchanged. The data
/// of the input is never read, so it may be in the memory of any device.
///
/// Errors, after which no entry has changed:
///
///   PLAN               'plan' is not a plan of this library
///   NULL, ALIGNMENT    plan, outputs, or an input that has elements
///   NUM_OUTPUTS        num_outputs is not the plan's
///   OVERFLOW           addresses beyond the end of the address space
///   OVERLAP            'outputs' overlaps the plan or 'error'
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_plan_view(
    plan: *const libsplit_plan,
    input: *mut c_void,
    outputs: *mut *mut c_void,
    num_outputs: usize,
    error: *mut libsplit_error,
) -> libsplit_status {
    guard(error, || calls::plan_view(plan, input.cast(), outputs.cast(), num_outputs, error))
}

/// Writes a description of a plan as text: the call, and how its bytes will be moved. It is meant for
/// people: the wording may change, and no program should parse it.
///
/// At most 'size' bytes are written to 'buffer', including a NUL at the end; text that does not fit is
/// cut off. 'buffer' may be NULL if 'size' is 0. Returns the length of the whole text without the NUL,
/// as snprintf does; 0 if 'plan' is NULL, misaligned, or not a plan of this library.
#[cfg_attr(feature = "capi", unsafe(no_mangle))]
pub unsafe extern "C" fn libsplit_plan_describe(
    plan: *const libsplit_plan,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    plan::describe(plan, buffer.cast(), size)
}
