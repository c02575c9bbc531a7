//! The structures and constants of `libsplit.h`. Names, field order and numbers are frozen.
//!
//! Their comments are for C readers.

#![allow(non_camel_case_types, clippy::doc_markdown)]

use core::ffi::{c_char, c_void};
use core::ptr::{null, null_mut};

/// The version of this header; libsplit_version() returns the version of the library. The ABI only
/// grows: by functions, by constants, and by fields at the end of structures that have a struct_size.
/// The number in the name libsplit.so.0 would change only if that promise were broken, which is not
/// planned: version 1.0 will still be libsplit.so.0.
pub const LIBSPLIT_VERSION_MAJOR: u32 = 0;
/// See LIBSPLIT_VERSION_MAJOR.
pub const LIBSPLIT_VERSION_MINOR: u32 = 1;
/// See LIBSPLIT_VERSION_MAJOR.
pub const LIBSPLIT_VERSION_PATCH: u32 = 0;

/// The largest rank that a tensor may have. It never changes.
pub const LIBSPLIT_MAX_RANK: u32 = 64;

/// An extent that is not known yet. The header has its own line for it, in parentheses.
/// cbindgen:ignore
pub const LIBSPLIT_DIM_UNKNOWN: i64 = -1;

/// Flags, which the header explains and has lines of its own for, as unsigned numbers.
/// cbindgen:ignore
pub const LIBSPLIT_FLAG_CLAMP_UNEVEN: u32 = 1;
/// See libsplit.h.
/// cbindgen:ignore
pub const LIBSPLIT_FLAG_OUTPUTS_READ_NEXT: u32 = 2;
/// See libsplit.h.
/// cbindgen:ignore
pub const LIBSPLIT_FLAG_NEVER_STREAM: u32 = 4;

/// The result of a call: LIBSPLIT_STATUS_OK, or a LIBSPLIT_STATUS_ERROR_... that says what kind of
/// error it is. New kinds may be added; treat any number other than 0 as an error. No status is ever
/// negative: negative numbers are left to wrappers for errors of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct libsplit_status(pub i32);

impl libsplit_status {
    /// Success.
    pub const OK: Self = Self(0);
    /// A required pointer is NULL.
    pub const ERROR_NULL: Self = Self(1);
    /// A pointer to a structure, shape or strides is not aligned for its type. (Data pointers
    /// need no alignment.)
    pub const ERROR_ALIGNMENT: Self = Self(2);
    /// A struct_size is less than the size of the structure's first version, or implausibly large, or
    /// there are nonzero bytes after the fields that this library knows.
    pub const ERROR_STRUCT_SIZE: Self = Self(3);
    /// libsplit_params.op is not an operator.
    pub const ERROR_OPERATOR: Self = Self(4);
    /// The operator has no version at this opset.
    pub const ERROR_OPSET: Self = Self(5);
    /// A flag is set that this library does not know.
    pub const ERROR_FLAGS: Self = Self(6);
    /// The dtype is not an element type, or this version of the operator does not allow it; in the
    /// second case the message names a version that does.
    pub const ERROR_DTYPE: Self = Self(7);
    /// A rank is below 0 or above LIBSPLIT_MAX_RANK, or the input has rank 0 and so no axis to split.
    pub const ERROR_RANK: Self = Self(8);
    /// axis is outside [-rank, rank-1].
    pub const ERROR_AXIS: Self = Self(9);
    /// An extent is negative, or unknown where it must be known.
    pub const ERROR_SHAPE: Self = Self(10);
    /// The lengths (libsplit_params.split) are missing where they are required, present where they are
    /// not allowed, or of a rank or dtype that the operator does not take.
    pub const ERROR_SPLIT: Self = Self(11);
    /// Lengths are negative, fractional, or do not add up to the extent of the axis; or the extent
    /// cannot be divided into the requested number of parts.
    pub const ERROR_SPLIT_SIZES: Self = Self(12);
    /// A number of outputs is missing where it is required, below 1, too large, or different from what
    /// the operator gives.
    pub const ERROR_NUM_OUTPUTS: Self = Self(13);
    /// libsplit_tensor.capacity of an output is less than its rank.
    pub const ERROR_CAPACITY: Self = Self(14);
    /// Strides of an output make elements share an address or, for sub-byte elements, are not packed;
    /// or an output of libsplit_view() has no room for the strides that it needs.
    pub const ERROR_STRIDES: Self = Self(15);
    /// A bit_offset that the element type does not allow, or one that is not 0 where it must be 0.
    pub const ERROR_BIT_OFFSET: Self = Self(16);
    /// data_bytes is less than the tensor needs.
    pub const ERROR_DATA_BYTES: Self = Self(17);
    /// There are more elements, larger strides or higher addresses than 63 bits can represent.
    pub const ERROR_OVERFLOW: Self = Self(18);
    /// An output overlaps the input, the lengths or another output; or the data, shape or strides of an
    /// output overlap descriptors or arrays that the call uses. See also ERROR_NOT_SHOWN_APART.
    pub const ERROR_OVERLAP: Self = Self(19);
    /// The dtype, rank or shape of an output of libsplit_copy() is not what the operator gives.
    pub const ERROR_OUTPUT: Self = Self(20);
    /// The number of outputs depends on an extent or a length that is not known yet.
    pub const ERROR_COUNT_UNKNOWN: Self = Self(21);
    /// The caller's parallel_for failed: 'expected' is 0, and 'actual' is what it returned. Or it
    /// returned before every task had run: 'expected' is the number of tasks, and 'actual' is how many
    /// of them ran.
    pub const ERROR_EXECUTOR: Self = Self(22);
    /// A bug in libsplit. Please report it.
    pub const ERROR_INTERNAL: Self = Self(23);
    /// The memory does not hold a plan of this library (it is all zero, or another version wrote it),
    /// or is too small for a plan.
    pub const ERROR_PLAN: Self = Self(24);
    /// Two outputs, or an output and the input, reach over the same memory, and it could not be shown
    /// that they have no byte in common. Give the output other memory, or copy it in a call of its own,
    /// with all other descriptors zero.
    pub const ERROR_NOT_SHOWN_APART: Self = Self(25);
}

/// An element type. Numbers below 65536 mean what they mean in ONNX TensorProto.DataType, now and
/// later. Types that ONNX does not have, if there ever are any here, are numbered from 65536.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct libsplit_dtype(pub i32);

impl libsplit_dtype {
    /// IEEE 754 binary32.
    pub const FLOAT: Self = Self(1);
    /// Unsigned 8-bit integer.
    pub const UINT8: Self = Self(2);
    /// Signed 8-bit integer.
    pub const INT8: Self = Self(3);
    /// Unsigned 16-bit integer.
    pub const UINT16: Self = Self(4);
    /// Signed 16-bit integer.
    pub const INT16: Self = Self(5);
    /// Signed 32-bit integer.
    pub const INT32: Self = Self(6);
    /// Signed 64-bit integer.
    pub const INT64: Self = Self(7);
    /// A libsplit_string.
    pub const STRING: Self = Self(8);
    /// One byte, copied unchanged whatever its value.
    pub const BOOL: Self = Self(9);
    /// IEEE 754 binary16.
    pub const FLOAT16: Self = Self(10);
    /// IEEE 754 binary64.
    pub const DOUBLE: Self = Self(11);
    /// Unsigned 32-bit integer.
    pub const UINT32: Self = Self(12);
    /// Unsigned 64-bit integer.
    pub const UINT64: Self = Self(13);
    /// Two binary32 numbers.
    pub const COMPLEX64: Self = Self(14);
    /// Two binary64 numbers.
    pub const COMPLEX128: Self = Self(15);
    /// The upper half of a binary32.
    pub const BFLOAT16: Self = Self(16);
    /// 8-bit float: 4 exponent and 3 mantissa bits, finite.
    pub const FLOAT8E4M3FN: Self = Self(17);
    /// 8-bit float: 4 exponent and 3 mantissa bits, finite, no negative zero.
    pub const FLOAT8E4M3FNUZ: Self = Self(18);
    /// 8-bit float: 5 exponent and 2 mantissa bits.
    pub const FLOAT8E5M2: Self = Self(19);
    /// 8-bit float: 5 exponent and 2 mantissa bits, finite, no negative zero.
    pub const FLOAT8E5M2FNUZ: Self = Self(20);
    /// Unsigned 4-bit integer. Sub-byte elements are packed: of the bytes, read as one little-endian
    /// number, element i of the flattened row-major tensor is bits i * size to i * size + size - 1.
    /// There is no padding between rows.
    pub const UINT4: Self = Self(21);
    /// Signed 4-bit integer, packed.
    pub const INT4: Self = Self(22);
    /// 4-bit float: 2 exponent bits and 1 mantissa bit, packed.
    pub const FLOAT4E2M1: Self = Self(23);
    /// 8-bit power of two.
    pub const FLOAT8E8M0: Self = Self(24);
    /// Unsigned 2-bit integer, packed.
    pub const UINT2: Self = Self(25);
    /// Signed 2-bit integer, packed.
    pub const INT2: Self = Self(26);
}

/// An operator, whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct libsplit_op(pub i32);

impl libsplit_op {
    /// ONNX Split, versions 1, 2, 11, 13 and 18. Lengths are a list that adds up to the extent of the
    /// axis; without lengths, the parts are equal.
    ///
    /// Split-18 takes either lengths or num_outputs; with num_outputs the last part may be smaller.
    /// Older versions make as many equal parts as the node has outputs: the num_outputs argument of the
    /// function, or libsplit_params.num_outputs. If both are given, they must agree.
    ///
    /// Element types: Split-1 allows FLOAT, FLOAT16 and DOUBLE; Split-2 and Split-11 allow the 15 types
    /// from FLOAT to COMPLEX128; Split-13 and Split-18 also allow BFLOAT16. Lengths are INT64; those of
    /// Split-1 may also have the type of the input, but must be whole numbers.
    pub const ONNX_SPLIT: Self = Self(1);
    /// ONNX SplitToSequence, versions 11 and 24. Lengths are INT32 or INT64, and their rank decides: a
    /// scalar is the length of every piece, except that the last may be smaller; a list has one entry
    /// for each piece. Without lengths, every piece has length 1, and keepdims 0 drops the axis.
    ///
    /// Element types: the 15 types from FLOAT to COMPLEX128; SplitToSequence-24 also allows BFLOAT16.
    pub const ONNX_SPLIT_TO_SEQUENCE: Self = Self(2);
    /// OpenVINO VariadicSplit-1. Lengths are a list of any integer type; one of them may be -1, which
    /// stands for the rest. Allows every element type.
    pub const OPENVINO_VARIADIC_SPLIT: Self = Self(3);
    /// OpenVINO Split-1: num_outputs (which OpenVINO calls num_splits) equal parts; the extent must be
    /// divisible by it. Allows every element type.
    pub const OPENVINO_SPLIT: Self = Self(4);
}

/// An element of type STRING: 'size' bytes at 'data', not NUL-terminated. Splitting copies this pair
/// but not the characters, which remain the caller's.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct libsplit_string {
    /// Address of the first byte; libsplit never reads it.
    pub data: *const c_char,
    /// Size in bytes.
    pub size: usize,
}

/// A tensor: the input, the lengths, or an output. It has 48 bytes if pointers have 64 bits, and will
/// never change, because descriptors come in arrays.
///
/// Initialize a descriptor with LIBSPLIT_TENSOR_INIT, or zero it, before you fill it in: functions also
/// read fields that they do not use. If a function writes to outputs, each of them needs arrays of its
/// own for shape and strides.
///
/// An output descriptor of all zero bytes is an output that the caller does not want (ONNX's unused
/// output ""). It is skipped and left unchanged, without an error; but if a call has outputs, it has to
/// want at least one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct libsplit_tensor {
    /// Address of element [0, ..., 0], with any alignment. May be NULL if there are no elements, in
    /// libsplit_infer() and libsplit_count(), and for lengths that are not known yet.
    pub data: *mut c_void,
    /// Number of usable bytes, counted from the lowest address that the tensor touches (negative
    /// strides put it below data); 0 if it is not stated, and then it is not checked. libsplit_infer()
    /// sets it to the size of a packed output: if you change the strides after that, set it again, or
    /// to 0. An empty buffer cannot be stated this way: pass NULL as data, which is refused if there are
    /// elements.
    pub data_bytes: usize,
    /// 'rank' extents in elements, outermost first, each >= 0. May be NULL if rank is 0.
    pub shape: *mut i64,
    /// 'rank' strides in elements: of either sign, or 0 to repeat (inputs only). NULL means packed in
    /// row-major order. Strides of axes of extent 1, and of tensors without elements, do not matter.
    pub strides: *mut i64,
    /// Number of axes, from 0 to LIBSPLIT_MAX_RANK.
    pub rank: i32,
    /// For outputs of libsplit_infer() and libsplit_view(): the number of entries that shape (and
    /// strides, if not NULL) have room for. Ignored for inputs, lengths, and outputs of
    /// libsplit_copy().
    pub capacity: i32,
    /// Element type.
    pub dtype: libsplit_dtype,
    /// For elements of less than 8 bits: the offset of the first element from data in bits; for 4-bit
    /// and 2-bit types a multiple of the element size. Otherwise 0.
    pub bit_offset: u32,
}

impl libsplit_tensor {
    /// All zero: an output that is not wanted, and what descriptors are started from.
    /// cbindgen:ignore
    pub const ZERO: Self = Self {
        data: null_mut(),
        data_bytes: 0,
        shape: null_mut(),
        strides: null_mut(),
        rank: 0,
        capacity: 0,
        dtype: libsplit_dtype(0),
        bit_offset: 0,
    };
}

/// What to do. Initialize it with LIBSPLIT_PARAMS_INIT(op, opset). Fields may be added at the end;
/// struct_size says which version the caller was built with.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct libsplit_params {
    /// sizeof(libsplit_params). A larger size is accepted if all bytes after the known fields are 0.
    pub struct_size: usize,
    /// The operator: LIBSPLIT_OP_...
    pub op: libsplit_op,
    /// For ONNX operators: the model's opset import, any number from the operator's first version on.
    /// The newest operator version that is not above it applies: 9 means Split-2, 20 means Split-18.
    /// For OpenVINO operators: 1, or 0, which means 1. See libsplit_op_version().
    pub opset: i32,
    /// The axis to split, in [-rank, rank-1]; negative axes count from the back.
    pub axis: i64,
    /// The operator's lengths, whether they are an attribute or an input; NULL if there are none. A
    /// scalar has rank 0 and a list has rank 1; the dtype is that of the lengths, and strides are
    /// respected. If data is NULL but the shape is given, the lengths are not known yet
    /// (libsplit_infer() and libsplit_count() only).
    pub split: *const libsplit_tensor,
    /// The attribute num_outputs of ONNX Split-18, or num_splits of OpenVINO Split; 0 if absent. For
    /// the other operators: 0, or the number of outputs, which must be what the operator gives.
    pub num_outputs: i64,
    /// For ONNX SplitToSequence without lengths: 0 drops the split axis from the pieces, which have
    /// length 1; any other value keeps it. Otherwise ignored. Note that LIBSPLIT_PARAMS_INIT sets it
    /// to 1, as in ONNX.
    pub keepdims: i32,
    /// LIBSPLIT_FLAG_CLAMP_UNEVEN, or 0.
    pub flags: u32,
}

/// Details of an error, in memory that the caller provides. Initialize all of it, with
/// LIBSPLIT_ERROR_INIT: fields may be added at the end, and a library leaves those that it does not
/// know as they are. It is filled in on success too, with status 0 and an empty message.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct libsplit_error {
    /// sizeof(libsplit_error), set by the caller. If it is less than the size of the structure's first
    /// version (for example 0, after zeroing the structure) or above 4096, the function returns
    /// STRUCT_SIZE and writes nothing here, not even a message.
    pub struct_size: usize,
    /// What the function returned.
    pub status: libsplit_status,
    /// The index of the output at fault, or of the length or part at fault; -1 if the error concerns
    /// the input, the parameters in general, or the executor.
    pub output_index: i32,
    /// If two numbers disagree: the one that was expected ...
    pub expected: i64,
    /// ... and the one that was found. Otherwise both are 0.
    pub actual: i64,
    /// Set by the caller: whose names for arguments the message uses, LIBSPLIT_WORDS_...; any other
    /// number means LIBSPLIT_WORDS_C.
    pub words: u32,
    /// 0; for later use.
    pub reserved: u32,
    /// NUL-terminated UTF-8 text: the argument, the rule, both numbers and the remedy. It is meant for
    /// people, and its wording may change.
    pub message: [c_char; 240],
}

impl libsplit_params {
    /// Returns what LIBSPLIT_PARAMS_INIT(op, opset) makes.
    #[must_use]
    pub const fn init(op: libsplit_op, opset: i32) -> Self {
        Self {
            struct_size: size_of::<Self>(),
            op,
            opset,
            axis: 0,
            split: null(),
            num_outputs: 0,
            keepdims: 1,
            flags: 0,
        }
    }
}

impl libsplit_error {
    /// What LIBSPLIT_ERROR_INIT makes.
    /// cbindgen:ignore
    pub const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        status: libsplit_status::OK,
        output_index: -1,
        expected: 0,
        actual: 0,
        words: 0,
        reserved: 0,
        message: [0; 240],
    };
}

impl libsplit_executor {
    /// Returns what LIBSPLIT_EXECUTOR_INIT(parallel_for, pool) makes.
    #[must_use]
    pub const fn init(parallel_for: libsplit_parallel_for_fn, pool: *mut c_void) -> Self {
        Self { struct_size: size_of::<Self>(), parallel_for, pool, max_tasks: 0, flags: 0 }
    }
}

/// One task of a call: does part 'index' of the work behind 'task_ctx'. Never fails.
pub type libsplit_task_fn = Option<unsafe extern "C" fn(task_ctx: *mut c_void, index: usize)>;

/// The caller's thread pool: runs task(task_ctx, i) once for each i < count, in any order and on any
/// threads, and returns after the last one has finished; 0 means success. A task that is run a second
/// time does nothing, and neither does one with an index of 'count' or more. 'count' is at least 2, and
/// at most libsplit_executor.max_tasks if that is not 0.
///
/// The function must return normally: no C++ exception, no longjmp() and no end of a thread
/// (pthread_exit(), cancellation) may leave it. If several calls use one executor at the same time, it
/// is called by each of them, at the same time.
///
/// Tasks take small portions of the work, also from tasks that are late, so the first task may end up
/// doing all of it. The function should therefore run tasks on its own thread as well, without delay,
/// and return when all tasks are done, without waiting for threads that are still waking up.
pub type libsplit_parallel_for_fn = Option<
    unsafe extern "C" fn(
        pool: *mut c_void,
        task: libsplit_task_fn,
        task_ctx: *mut c_void,
        count: usize,
    ) -> i32,
>;

/// How to run libsplit_copy() and libsplit_plan_copy(). Initialize it with
/// LIBSPLIT_EXECUTOR_INIT(parallel_for, pool). It is only read, and many calls may use one at the same
/// time. Small copies always run on the calling thread.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct libsplit_executor {
    /// sizeof(libsplit_executor).
    pub struct_size: usize,
    /// Runs the tasks of one call. It may call libsplit itself. If it is NULL, everything runs on the
    /// calling thread.
    pub parallel_for: libsplit_parallel_for_fn,
    /// Passed to parallel_for unchanged; may be NULL.
    pub pool: *mut c_void,
    /// The number of threads in the pool, which is the largest number of tasks that is useful at a
    /// time; 0 lets the library choose.
    pub max_tasks: u32,
    /// LIBSPLIT_FLAG_OUTPUTS_READ_NEXT or LIBSPLIT_FLAG_NEVER_STREAM, or 0.
    pub flags: u32,
}

/// A split that has been prepared once, to be run many times. It lives in memory that the caller
/// provides: as many bytes as libsplit_plan_size() returns, aligned to 8. libsplit_plan_init() writes
/// it.
#[derive(Debug)]
#[allow(dead_code)] // nobody looks inside
pub struct libsplit_plan(u64);
