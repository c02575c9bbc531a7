//! The structures and constants of `libsplit.h`. Names, field order and numbers are frozen.

use core::ffi::{c_char, c_void};
use core::ptr::null_mut;

/// The version of this header. libsplit_version() tells that of the library. The ABI of a major
/// version (libsplit.so.0) only grows: functions, constants, and fields behind struct_size.
pub const LIBSPLIT_VERSION_MAJOR: u32 = 0;
/// See LIBSPLIT_VERSION_MAJOR.
pub const LIBSPLIT_VERSION_MINOR: u32 = 1;
/// See LIBSPLIT_VERSION_MAJOR.
pub const LIBSPLIT_VERSION_PATCH: u32 = 0;

/// The most axes a tensor may have.
pub const LIBSPLIT_MAX_RANK: u32 = 64;

/// An extent that is not known yet. The header has its own line for it, in parentheses.
/// cbindgen:ignore
pub const LIBSPLIT_DIM_UNKNOWN: i64 = -1;

/// ONNX Split-18 with num_outputs: where the extent is too small for the last piece to have a
/// length of at least 0 (5 into 4: 2, 2, 2, -1), shorten as many pieces as need be instead of
/// refusing: piece i gets max(0, min(c, d - i*c)) of extent d, with c = ceil(d / num_outputs)
/// (5 into 4: 2, 2, 1, 0). Every other case is as without it.
pub const LIBSPLIT_FLAG_CLAMP_UNEVEN: u32 = 1;

/// In libsplit_executor.flags: the outputs are read soon after the copy. Outputs that the caches do
/// not hold are stored past them, which is faster, but leaves them in memory only; with this flag
/// that begins at twice the size.
pub const LIBSPLIT_FLAG_OUTPUTS_READ_NEXT: u32 = 2;

/// In libsplit_executor.flags: never store past the caches, whatever the size.
pub const LIBSPLIT_FLAG_NEVER_STREAM: u32 = 4;

/// What became of a call: LIBSPLIT_STATUS_OK, or a LIBSPLIT_STATUS_ERROR_... that tells the kind
/// of error. New kinds may be added; treat any number other than 0 as an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct libsplit_status(pub i32);

impl libsplit_status {
    /// The call did what it says.
    pub const OK: Self = Self(0);
    /// A pointer that is needed is NULL.
    pub const ERROR_NULL: Self = Self(1);
    /// A pointer to a structure, shape or strides is not aligned for its type. (Data pointers
    /// need no alignment.)
    pub const ERROR_ALIGNMENT: Self = Self(2);
    /// A struct_size smaller than the structure ever was or absurdly large, or bytes past the
    /// part that this library knows that are not 0.
    pub const ERROR_STRUCT_SIZE: Self = Self(3);
    /// libsplit_params.op is no operator.
    pub const ERROR_OPERATOR: Self = Self(4);
    /// The operator has no version at this opset.
    pub const ERROR_OPSET: Self = Self(5);
    /// A flag that this library does not know.
    pub const ERROR_FLAGS: Self = Self(6);
    /// No such element type, or one that the governing operator version does not allow; the
    /// message then names a version that does.
    pub const ERROR_DTYPE: Self = Self(7);
    /// A rank below 0 or above LIBSPLIT_MAX_RANK, or an input of rank 0, which has no axis.
    pub const ERROR_RANK: Self = Self(8);
    /// axis is outside [-rank, rank-1].
    pub const ERROR_AXIS: Self = Self(9);
    /// A negative extent, or an unknown one where it must be known.
    pub const ERROR_SHAPE: Self = Self(10);
    /// Lengths (libsplit_params.split) absent where they are needed, given where they are
    /// refused, or of a rank or dtype that the operator does not take.
    pub const ERROR_SPLIT: Self = Self(11);
    /// Lengths that are negative, not whole, or do not add up to the extent of the axis; or an
    /// extent that does not divide into the number of parts asked for.
    pub const ERROR_SPLIT_SIZES: Self = Self(12);
    /// A number of outputs that is absent where it is needed, below 1, too large, or not the
    /// operator's.
    pub const ERROR_NUM_OUTPUTS: Self = Self(13);
    /// libsplit_tensor.capacity of an output is below its rank.
    pub const ERROR_CAPACITY: Self = Self(14);
    /// Output strides by which elements share an address or, for sub-byte elements, that are not
    /// packed; or an output of libsplit_view() without room for the strides it needs.
    pub const ERROR_STRIDES: Self = Self(15);
    /// A bit_offset that is not a multiple of the element's bits, or not 0 where it must be.
    pub const ERROR_BIT_OFFSET: Self = Self(16);
    /// data_bytes is smaller than what the tensor touches.
    pub const ERROR_DATA_BYTES: Self = Self(17);
    /// More elements, larger strides or higher addresses than 63 bits can number.
    pub const ERROR_OVERFLOW: Self = Self(18);
    /// An output overlaps the input, the lengths or another output; or an output's data, shape or
    /// strides lie over descriptors or arrays that are in use too.
    pub const ERROR_OVERLAP: Self = Self(19);
    /// The dtype, rank or shape of an output of libsplit_copy() is not what the operator gives.
    pub const ERROR_OUTPUT: Self = Self(20);
    /// The number of outputs depends on an extent or a length that is not known yet.
    pub const ERROR_UNKNOWN: Self = Self(21);
    /// The caller's parallel_for failed, or returned before every task had run.
    pub const ERROR_EXECUTOR: Self = Self(22);
    /// A bug in libsplit. Please report it.
    pub const ERROR_INTERNAL: Self = Self(23);
    /// Memory that is no plan of this library: all zero, made by another version, or too small for
    /// one.
    pub const ERROR_PLAN: Self = Self(24);
}

/// An element type: the number of ONNX TensorProto.DataType.
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
    /// One byte, copied as it is, whatever its value.
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
    /// Unsigned 4-bit integer. Sub-byte elements are packed low bits first over the flattened
    /// row-major tensor, without padding between rows.
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

/// Which operator's rules decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct libsplit_op(pub i32);

impl libsplit_op {
    /// ONNX Split, versions 1, 2, 11, 13 and 18. Lengths are a list that adds up to the extent of
    /// the axis; without them, equal parts.
    ///
    /// Split-18 takes either lengths or num_outputs; with num_outputs the last part may be
    /// smaller. The older versions make as many equal parts as the node has outputs: the
    /// num_outputs argument of a function, or libsplit_params.num_outputs, which must agree.
    ///
    /// Element types: Split-1 FLOAT, FLOAT16 and DOUBLE; Split-2 and -11 the 15 from FLOAT to
    /// COMPLEX128; Split-13 and -18 those and BFLOAT16. Lengths are INT64; those of Split-1 may
    /// also be of the input's own type, whole numbers all the same.
    pub const ONNX_SPLIT: Self = Self(1);
    /// ONNX SplitToSequence, versions 11 and 24. The rank of the lengths (INT32 or INT64)
    /// decides: a scalar is the length of every piece but a smaller last, a list has one entry a
    /// piece. Without lengths every piece is 1 long, and keepdims 0 drops the axis.
    ///
    /// Element types: the 15 from FLOAT to COMPLEX128; SplitToSequence-24 also BFLOAT16.
    pub const ONNX_SPLIT_TO_SEQUENCE: Self = Self(2);
    /// OpenVINO VariadicSplit-1. Lengths are a list of any integer type, in which one -1 stands
    /// for what the others leave. Any element type.
    pub const OPENVINO_VARIADIC_SPLIT: Self = Self(3);
    /// OpenVINO Split-1: num_outputs (its num_splits) equal parts, which must divide the extent.
    /// Any element type.
    pub const OPENVINO_SPLIT: Self = Self(4);
}

/// An element of type STRING: 'size' bytes at 'data', not NUL-terminated. Splitting copies this
/// pair, never the characters, which stay the caller's.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct libsplit_string {
    /// Address of the first byte; libsplit never looks at it.
    pub data: *const c_char,
    /// Size in bytes.
    pub size: usize,
}

/// A tensor: the input, the lengths, or an output. 48 bytes where pointers have 64 bits; frozen,
/// for descriptors come in arrays.
///
/// Start a descriptor from LIBSPLIT_TENSOR_INIT, or zero it, before filling it in: fields that a function
/// has no use for are read all the same. Each descriptor needs arrays of its own for shape and
/// strides where they are written to.
///
/// An output descriptor that is all zero bytes is one the caller does not want (ONNX's unused
/// output ""): it is skipped and left as it is, without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct libsplit_tensor {
    /// Address of element [0, ..., 0]. Any alignment. May be NULL when there are no elements, in
    /// libsplit_infer() and libsplit_count(), and for lengths that are not known yet.
    pub data: *mut c_void,
    /// Bytes usable from the lowest address that the tensor touches (which negative strides put
    /// below data); 0 = not stated, and not checked. libsplit_infer() states those of a packed
    /// output: after strides of your own, set it anew, or to 0.
    pub data_bytes: usize,
    /// 'rank' extents, outermost first, in elements, each >= 0. May be NULL when rank is 0.
    pub shape: *mut i64,
    /// 'rank' strides in elements, of any sign, 0 to repeat (inputs only); NULL = row-major
    /// packed. Strides of extent-1 axes and of tensors without elements do not matter.
    pub strides: *mut i64,
    /// Number of axes: 0 to LIBSPLIT_MAX_RANK.
    pub rank: i32,
    /// In outputs of libsplit_infer() and libsplit_view(): entries that shape (and strides, if
    /// not NULL) have room for. Not looked at in inputs, lengths, and outputs of
    /// libsplit_copy().
    pub capacity: i32,
    /// Element type.
    pub dtype: libsplit_dtype,
    /// For sub-byte types the first element's offset in bits from data, a multiple of the
    /// element's bits; otherwise 0.
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

/// What to do. Start from LIBSPLIT_PARAMS_INIT(op, opset). May grow at the end: struct_size tells
/// which version the caller was built with.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct libsplit_params {
    /// sizeof(libsplit_params). A larger one is taken if the bytes past the known part are 0.
    pub struct_size: usize,
    /// Whose rules decide: LIBSPLIT_OP_...
    pub op: libsplit_op,
    /// ONNX operators: the model's opset import, any number from the operator's first version
    /// on. The newest operator version not above it governs: 9 means Split-2, 20 means Split-18.
    /// OpenVINO operators: 1, or 0, which means 1.
    pub opset: i32,
    /// Axis to split, in [-rank, rank-1]; a negative one counts from the back.
    pub axis: i64,
    /// The operator's lengths, attribute or input alike; NULL = absent. Its rank tells a scalar
    /// (0) from a list (1), its dtype int32 from int64 ..., its strides are honoured. With data
    /// NULL and a known shape, lengths not known yet (libsplit_infer() and libsplit_count()).
    pub split: *const libsplit_tensor,
    /// The attribute num_outputs of ONNX Split-18, num_splits of OpenVINO Split; 0 = absent. For
    /// the other operators, if not 0, the number of outputs, which must be the operator's.
    pub num_outputs: i64,
    /// ONNX SplitToSequence without lengths: 0 drops the axis of the pieces, which are 1 long;
    /// anything else keeps it. Otherwise it does not matter.
    pub keepdims: i32,
    /// LIBSPLIT_FLAG_CLAMP_UNEVEN, or 0.
    pub flags: u32,
}

/// Detail of an error, in memory of the caller's own. Start from LIBSPLIT_ERROR_INIT. Every
/// function that takes one takes NULL too; it is filled on success as well, with status 0 and an
/// empty message.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct libsplit_error {
    /// sizeof(libsplit_error). The caller sets it; a smaller one than the first version's, 0 of a
    /// structure filled with zeros too, is refused by STRUCT_SIZE, and nothing is written: there is
    /// no message then.
    pub struct_size: usize,
    /// What the function returned.
    pub status: libsplit_status,
    /// Which output, also for a length or a part that is at fault; -1 when it concerns the input,
    /// the parameters as such, or the executor.
    pub output_index: i32,
    /// The two numbers that disagree, where two do: what was expected ...
    pub expected: i64,
    /// ... and what was found; else both 0.
    pub actual: i64,
    /// NUL-terminated UTF-8: the argument, the rule, both numbers and the remedy. For people; its
    /// wording may change.
    pub message: [c_char; 240],
}

impl libsplit_error {
    /// What LIBSPLIT_ERROR_INIT is in C.
    /// cbindgen:ignore
    pub const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        status: libsplit_status::OK,
        output_index: -1,
        expected: 0,
        actual: 0,
        message: [0; 240],
    };
}

/// One task of a call: runs the part 'index' of the work behind 'task_ctx'. Never fails.
pub type libsplit_task_fn = Option<unsafe extern "C" fn(task_ctx: *mut c_void, index: usize)>;

/// The caller's thread pool: runs task(task_ctx, i) once for each i < count, in any order and on
/// any threads, returns after the last has finished; 0 = ok. A task that is run again does
/// nothing, nor does one with an index of 'count' or more. It must return: no C++ exception and
/// no longjmp() may leave it.
///
/// Tasks take what there is to do bit by bit, from whoever is late: the first to run can do all of
/// it. So it should run tasks on its own thread as well, at once, and return when those that have
/// begun are done and none is left, without waiting for threads that are still waking up.
pub type libsplit_parallel_for_fn = Option<
    unsafe extern "C" fn(
        pool: *mut c_void,
        task: libsplit_task_fn,
        task_ctx: *mut c_void,
        count: usize,
    ) -> i32,
>;

/// How libsplit_copy() is to run: start from LIBSPLIT_EXECUTOR_INIT(parallel_for, pool). NULL in
/// its place = on the calling thread. Small copies run on the calling thread in any case.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct libsplit_executor {
    /// sizeof(libsplit_executor).
    pub struct_size: usize,
    /// Runs the tasks of one call. May itself call libsplit. May be NULL if flags are set: then
    /// everything runs on the calling thread.
    pub parallel_for: libsplit_parallel_for_fn,
    /// Handed to parallel_for untouched; may be NULL.
    pub pool: *mut c_void,
    /// The pool's width, the most tasks that are of use at a time; 0 = the library chooses.
    pub max_tasks: u32,
    /// LIBSPLIT_FLAG_OUTPUTS_READ_NEXT or LIBSPLIT_FLAG_NEVER_STREAM, or 0.
    pub flags: u32,
}

/// A split prepared once, to be run many times: bytes of the caller's, aligned to 8, as many as
/// libsplit_plan_size() says. libsplit_plan_init() makes one.
#[derive(Debug)]
#[allow(dead_code)] // nobody looks inside
pub struct libsplit_plan(u64);
