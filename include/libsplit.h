/*
 * libsplit.h - the tensor Split of ONNX and OpenVINO
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Four functions work on a split: libsplit_count() tells how many outputs there are,
 * libsplit_infer() what they look like, and then libsplit_view() points them into the input or
 * libsplit_copy() fills buffers of their own. For a split that is made again and again,
 * libsplit_plan_init() prepares it once, and libsplit_plan_copy() and libsplit_plan_view() take
 * nothing but addresses. All of them take the input as a libsplit_tensor,
 * the operator, its version and its parameters as a libsplit_params, and an array of
 * libsplit_tensor for the outputs, which the caller has allocated.
 *
 * Promises, of every function:
 *
 *   - Everything is checked before anything is written: on an error no output descriptor and no
 *     output byte has changed (but see LIBSPLIT_STATUS_ERROR_EXECUTOR).
 *   - No heap allocation, no I/O, no threads of its own, no pointer kept after return, and no
 *     global or thread-local state but what the CPU has once said of itself.
 *   - A call takes less than 24 KiB of the stack, or 36 KiB where more than 16,384 outputs are in
 *     no order. Most take less than 8 KiB: docs/realtime.md says which do not.
 *   - Any function may be called from any thread at any time. Concurrent calls may share inputs and
 *     plans, not outputs.
 *   - No alignment is required of any data pointer.
 *   - Counts, byte spans and sums of lengths are 64-bit and checked for overflow.
 *
 * The caller's part: every pointer is NULL or valid for what its structure or the function says,
 * for the length of the call. Numbers may be anything. 'error' and 'executor' may be NULL.
 *
 * A function with a libsplit_status returns LIBSPLIT_STATUS_OK, or one of the errors that are listed
 * with it, without their LIBSPLIT_STATUS_ERROR_. An 'error' that is itself misaligned or too small is
 * answered by ALIGNMENT or STRUCT_SIZE, and nothing is written to it.
 *
 * From an input to its pieces in memory of their own, without the checks for errors:
 *
 *     size_t n;
 *     libsplit_count(&input, &params, &n, NULL);
 *     libsplit_tensor *outputs = calloc(n, sizeof *outputs);
 *     int64_t *ints = calloc(2 * n * (size_t)input.rank, sizeof *ints);
 *     libsplit_outputs_init(outputs, n, ints, input.rank);
 *     libsplit_infer(&input, &params, outputs, n, NULL);
 *     for (size_t i = 0; i < n; i++)
 *         outputs[i].data = malloc(outputs[i].data_bytes);
 *     libsplit_copy(&input, &params, outputs, n, NULL, NULL);
 *
 * For C99 and later, and C++11 and later; not for C90, which has no <stdint.h>.
 *
 * Sizes are in elements where not said otherwise (shape, strides, lengths), and in bytes where
 * the name says so (data_bytes).
 *
 * This file is generated from the Rust sources by cbindgen; see CONTRIBUTING.md.
 */


#ifndef LIBSPLIT_H
#define LIBSPLIT_H

#include <stddef.h>
#include <stdint.h>

/* Users of a libsplit.dll may define LIBSPLIT_DLL; nobody has to. */
#ifndef LIBSPLIT_API
#  if defined(LIBSPLIT_DLL) && (defined(_WIN32) || defined(__CYGWIN__))
#    define LIBSPLIT_API __declspec(dllimport)
#  else
#    define LIBSPLIT_API
#  endif
#endif

/**
 * An extent that is not known yet. libsplit_infer() and libsplit_count() take it in the shape of
 * the input, and libsplit_infer() writes it; every other function refuses it.
 */
#define LIBSPLIT_DIM_UNKNOWN (-1)

/* Initializers: 'libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);' */
#define LIBSPLIT_PARAMS_INIT(op, opset) \
    { sizeof(libsplit_params), (op), (opset), 0, NULL, 0, 1, 0 }
#define LIBSPLIT_TENSOR_INIT { NULL, 0, NULL, NULL, 0, 0, 0, 0 }
#define LIBSPLIT_ERROR_INIT { sizeof(libsplit_error), 0, -1, 0, 0, { 0 } }
#define LIBSPLIT_EXECUTOR_INIT(parallel_for, pool) \
    { sizeof(libsplit_executor), (parallel_for), (pool), 0, 0 }

/**
 * The version of this header. libsplit_version() tells that of the library. The ABI of a major
 * version (libsplit.so.0) only grows: functions, constants, and fields behind struct_size.
 */
#define LIBSPLIT_VERSION_MAJOR 0

/**
 * See LIBSPLIT_VERSION_MAJOR.
 */
#define LIBSPLIT_VERSION_MINOR 1

/**
 * See LIBSPLIT_VERSION_MAJOR.
 */
#define LIBSPLIT_VERSION_PATCH 0

/**
 * The most axes a tensor may have.
 */
#define LIBSPLIT_MAX_RANK 64

/**
 * ONNX Split-18 with num_outputs: where the extent is too small for the last piece to have a
 * length of at least 0 (5 into 4: 2, 2, 2, -1), shorten as many pieces as need be instead of
 * refusing: piece i gets max(0, min(c, d - i*c)) of extent d, with c = ceil(d / num_outputs)
 * (5 into 4: 2, 2, 1, 0). Every other case is as without it.
 */
#define LIBSPLIT_FLAG_CLAMP_UNEVEN 1

/**
 * In libsplit_executor.flags: the outputs are read soon after the copy. Outputs that the caches do
 * not hold are stored past them, which is faster, but leaves them in memory only; with this flag
 * that begins at twice the size.
 */
#define LIBSPLIT_FLAG_OUTPUTS_READ_NEXT 2

/**
 * In libsplit_executor.flags: never store past the caches, whatever the size.
 */
#define LIBSPLIT_FLAG_NEVER_STREAM 4

/**
 * A split prepared once, to be run many times: bytes of the caller's, aligned to 8, as many as
 * libsplit_plan_size() says. libsplit_plan_init() makes one.
 */
typedef struct libsplit_plan libsplit_plan;

/**
 * What became of a call: LIBSPLIT_STATUS_OK, or a LIBSPLIT_STATUS_ERROR_... that tells the kind
 * of error. New kinds may be added; treat any number other than 0 as an error.
 */
typedef int32_t libsplit_status;
/**
 * The call did what it says.
 */
#define LIBSPLIT_STATUS_OK 0
/**
 * A pointer that is needed is NULL.
 */
#define LIBSPLIT_STATUS_ERROR_NULL 1
/**
 * A pointer to a structure, shape or strides is not aligned for its type. (Data pointers
 * need no alignment.)
 */
#define LIBSPLIT_STATUS_ERROR_ALIGNMENT 2
/**
 * A struct_size smaller than the structure ever was or absurdly large, or bytes past the
 * part that this library knows that are not 0.
 */
#define LIBSPLIT_STATUS_ERROR_STRUCT_SIZE 3
/**
 * libsplit_params.op is no operator.
 */
#define LIBSPLIT_STATUS_ERROR_OPERATOR 4
/**
 * The operator has no version at this opset.
 */
#define LIBSPLIT_STATUS_ERROR_OPSET 5
/**
 * A flag that this library does not know.
 */
#define LIBSPLIT_STATUS_ERROR_FLAGS 6
/**
 * No such element type, or one that the governing operator version does not allow; the
 * message then names a version that does.
 */
#define LIBSPLIT_STATUS_ERROR_DTYPE 7
/**
 * A rank below 0 or above LIBSPLIT_MAX_RANK, or an input of rank 0, which has no axis.
 */
#define LIBSPLIT_STATUS_ERROR_RANK 8
/**
 * axis is outside [-rank, rank-1].
 */
#define LIBSPLIT_STATUS_ERROR_AXIS 9
/**
 * A negative extent, or an unknown one where it must be known.
 */
#define LIBSPLIT_STATUS_ERROR_SHAPE 10
/**
 * Lengths (libsplit_params.split) absent where they are needed, given where they are
 * refused, or of a rank or dtype that the operator does not take.
 */
#define LIBSPLIT_STATUS_ERROR_SPLIT 11
/**
 * Lengths that are negative, not whole, or do not add up to the extent of the axis; or an
 * extent that does not divide into the number of parts asked for.
 */
#define LIBSPLIT_STATUS_ERROR_SPLIT_SIZES 12
/**
 * A number of outputs that is absent where it is needed, below 1, too large, or not the
 * operator's.
 */
#define LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS 13
/**
 * libsplit_tensor.capacity of an output is below its rank.
 */
#define LIBSPLIT_STATUS_ERROR_CAPACITY 14
/**
 * Output strides by which elements share an address or, for sub-byte elements, that are not
 * packed; or an output of libsplit_view() without room for the strides it needs.
 */
#define LIBSPLIT_STATUS_ERROR_STRIDES 15
/**
 * A bit_offset that is not a multiple of the element's bits, or not 0 where it must be.
 */
#define LIBSPLIT_STATUS_ERROR_BIT_OFFSET 16
/**
 * data_bytes is smaller than what the tensor touches.
 */
#define LIBSPLIT_STATUS_ERROR_DATA_BYTES 17
/**
 * More elements, larger strides or higher addresses than 63 bits can number.
 */
#define LIBSPLIT_STATUS_ERROR_OVERFLOW 18
/**
 * An output overlaps the input, the lengths or another output; or an output's data, shape or
 * strides lie over descriptors or arrays that are in use too.
 */
#define LIBSPLIT_STATUS_ERROR_OVERLAP 19
/**
 * The dtype, rank or shape of an output of libsplit_copy() is not what the operator gives.
 */
#define LIBSPLIT_STATUS_ERROR_OUTPUT 20
/**
 * The number of outputs depends on an extent or a length that is not known yet.
 */
#define LIBSPLIT_STATUS_ERROR_UNKNOWN 21
/**
 * The caller's parallel_for failed, or returned before every task had run.
 */
#define LIBSPLIT_STATUS_ERROR_EXECUTOR 22
/**
 * A bug in libsplit. Please report it.
 */
#define LIBSPLIT_STATUS_ERROR_INTERNAL 23
/**
 * Memory that is no plan of this library: all zero, made by another version, or too small for
 * one.
 */
#define LIBSPLIT_STATUS_ERROR_PLAN 24

/**
 * An element type: the number of ONNX TensorProto.DataType.
 */
typedef int32_t libsplit_dtype;
/**
 * IEEE 754 binary32.
 */
#define LIBSPLIT_DTYPE_FLOAT 1
/**
 * Unsigned 8-bit integer.
 */
#define LIBSPLIT_DTYPE_UINT8 2
/**
 * Signed 8-bit integer.
 */
#define LIBSPLIT_DTYPE_INT8 3
/**
 * Unsigned 16-bit integer.
 */
#define LIBSPLIT_DTYPE_UINT16 4
/**
 * Signed 16-bit integer.
 */
#define LIBSPLIT_DTYPE_INT16 5
/**
 * Signed 32-bit integer.
 */
#define LIBSPLIT_DTYPE_INT32 6
/**
 * Signed 64-bit integer.
 */
#define LIBSPLIT_DTYPE_INT64 7
/**
 * A libsplit_string.
 */
#define LIBSPLIT_DTYPE_STRING 8
/**
 * One byte, copied as it is, whatever its value.
 */
#define LIBSPLIT_DTYPE_BOOL 9
/**
 * IEEE 754 binary16.
 */
#define LIBSPLIT_DTYPE_FLOAT16 10
/**
 * IEEE 754 binary64.
 */
#define LIBSPLIT_DTYPE_DOUBLE 11
/**
 * Unsigned 32-bit integer.
 */
#define LIBSPLIT_DTYPE_UINT32 12
/**
 * Unsigned 64-bit integer.
 */
#define LIBSPLIT_DTYPE_UINT64 13
/**
 * Two binary32 numbers.
 */
#define LIBSPLIT_DTYPE_COMPLEX64 14
/**
 * Two binary64 numbers.
 */
#define LIBSPLIT_DTYPE_COMPLEX128 15
/**
 * The upper half of a binary32.
 */
#define LIBSPLIT_DTYPE_BFLOAT16 16
/**
 * 8-bit float: 4 exponent and 3 mantissa bits, finite.
 */
#define LIBSPLIT_DTYPE_FLOAT8E4M3FN 17
/**
 * 8-bit float: 4 exponent and 3 mantissa bits, finite, no negative zero.
 */
#define LIBSPLIT_DTYPE_FLOAT8E4M3FNUZ 18
/**
 * 8-bit float: 5 exponent and 2 mantissa bits.
 */
#define LIBSPLIT_DTYPE_FLOAT8E5M2 19
/**
 * 8-bit float: 5 exponent and 2 mantissa bits, finite, no negative zero.
 */
#define LIBSPLIT_DTYPE_FLOAT8E5M2FNUZ 20
/**
 * Unsigned 4-bit integer. Sub-byte elements are packed low bits first over the flattened
 * row-major tensor, without padding between rows.
 */
#define LIBSPLIT_DTYPE_UINT4 21
/**
 * Signed 4-bit integer, packed.
 */
#define LIBSPLIT_DTYPE_INT4 22
/**
 * 4-bit float: 2 exponent bits and 1 mantissa bit, packed.
 */
#define LIBSPLIT_DTYPE_FLOAT4E2M1 23
/**
 * 8-bit power of two.
 */
#define LIBSPLIT_DTYPE_FLOAT8E8M0 24
/**
 * Unsigned 2-bit integer, packed.
 */
#define LIBSPLIT_DTYPE_UINT2 25
/**
 * Signed 2-bit integer, packed.
 */
#define LIBSPLIT_DTYPE_INT2 26

/**
 * A tensor: the input, the lengths, or an output. 48 bytes where pointers have 64 bits; frozen,
 * for descriptors come in arrays.
 *
 * Start a descriptor from LIBSPLIT_TENSOR_INIT, or zero it, before filling it in: fields that a function
 * has no use for are read all the same. Each descriptor needs arrays of its own for shape and
 * strides where they are written to.
 *
 * An output descriptor that is all zero bytes is one the caller does not want (ONNX's unused
 * output ""): it is skipped and left as it is, without an error.
 */
typedef struct libsplit_tensor {
  /**
   * Address of element [0, ..., 0]. Any alignment. May be NULL when there are no elements, in
   * libsplit_infer() and libsplit_count(), and for lengths that are not known yet.
   */
  void *data;
  /**
   * Bytes usable from the lowest address that the tensor touches (which negative strides put
   * below data); 0 = not stated, and not checked. libsplit_infer() states those of a packed
   * output: after strides of your own, set it anew, or to 0.
   */
  size_t data_bytes;
  /**
   * 'rank' extents, outermost first, in elements, each >= 0. May be NULL when rank is 0.
   */
  int64_t *shape;
  /**
   * 'rank' strides in elements, of any sign, 0 to repeat (inputs only); NULL = row-major
   * packed. Strides of extent-1 axes and of tensors without elements do not matter.
   */
  int64_t *strides;
  /**
   * Number of axes: 0 to LIBSPLIT_MAX_RANK.
   */
  int32_t rank;
  /**
   * In outputs of libsplit_infer() and libsplit_view(): entries that shape (and strides, if
   * not NULL) have room for. Not looked at in inputs, lengths, and outputs of
   * libsplit_copy().
   */
  int32_t capacity;
  /**
   * Element type.
   */
  libsplit_dtype dtype;
  /**
   * For sub-byte types the first element's offset in bits from data, a multiple of the
   * element's bits; otherwise 0.
   */
  uint32_t bit_offset;
} libsplit_tensor;

/**
 * Which operator's rules decide.
 */
typedef int32_t libsplit_op;
/**
 * ONNX Split, versions 1, 2, 11, 13 and 18. Lengths are a list that adds up to the extent of
 * the axis; without them, equal parts.
 *
 * Split-18 takes either lengths or num_outputs; with num_outputs the last part may be
 * smaller. The older versions make as many equal parts as the node has outputs: the
 * num_outputs argument of a function, or libsplit_params.num_outputs, which must agree.
 *
 * Element types: Split-1 FLOAT, FLOAT16 and DOUBLE; Split-2 and -11 the 15 from FLOAT to
 * COMPLEX128; Split-13 and -18 those and BFLOAT16. Lengths are INT64; those of Split-1 may
 * also be of the input's own type, whole numbers all the same.
 */
#define LIBSPLIT_OP_ONNX_SPLIT 1
/**
 * ONNX SplitToSequence, versions 11 and 24. The rank of the lengths (INT32 or INT64)
 * decides: a scalar is the length of every piece but a smaller last, a list has one entry a
 * piece. Without lengths every piece is 1 long, and keepdims 0 drops the axis.
 *
 * Element types: the 15 from FLOAT to COMPLEX128; SplitToSequence-24 also BFLOAT16.
 */
#define LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE 2
/**
 * OpenVINO VariadicSplit-1. Lengths are a list of any integer type, in which one -1 stands
 * for what the others leave. Any element type.
 */
#define LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT 3
/**
 * OpenVINO Split-1: num_outputs (its num_splits) equal parts, which must divide the extent.
 * Any element type.
 */
#define LIBSPLIT_OP_OPENVINO_SPLIT 4

/**
 * What to do. Start from LIBSPLIT_PARAMS_INIT(op, opset). May grow at the end: struct_size tells
 * which version the caller was built with.
 */
typedef struct libsplit_params {
  /**
   * sizeof(libsplit_params). A larger one is taken if the bytes past the known part are 0.
   */
  size_t struct_size;
  /**
   * Whose rules decide: LIBSPLIT_OP_...
   */
  libsplit_op op;
  /**
   * ONNX operators: the model's opset import, any number from the operator's first version
   * on. The newest operator version not above it governs: 9 means Split-2, 20 means Split-18.
   * OpenVINO operators: 1, or 0, which means 1.
   */
  int32_t opset;
  /**
   * Axis to split, in [-rank, rank-1]; a negative one counts from the back.
   */
  int64_t axis;
  /**
   * The operator's lengths, attribute or input alike; NULL = absent. Its rank tells a scalar
   * (0) from a list (1), its dtype int32 from int64 ..., its strides are honoured. With data
   * NULL and a known shape, lengths not known yet (libsplit_infer() and libsplit_count()).
   */
  const struct libsplit_tensor *split;
  /**
   * The attribute num_outputs of ONNX Split-18, num_splits of OpenVINO Split; 0 = absent. For
   * the other operators, if not 0, the number of outputs, which must be the operator's.
   */
  int64_t num_outputs;
  /**
   * ONNX SplitToSequence without lengths: 0 drops the axis of the pieces, which are 1 long;
   * anything else keeps it. Otherwise it does not matter.
   */
  int32_t keepdims;
  /**
   * LIBSPLIT_FLAG_CLAMP_UNEVEN, or 0.
   */
  uint32_t flags;
} libsplit_params;

/**
 * Detail of an error, in memory of the caller's own. Start from LIBSPLIT_ERROR_INIT. Every
 * function that takes one takes NULL too; it is filled on success as well, with status 0 and an
 * empty message.
 */
typedef struct libsplit_error {
  /**
   * sizeof(libsplit_error). The caller sets it; a smaller one than the first version's, 0 of a
   * structure filled with zeros too, is refused by STRUCT_SIZE, and nothing is written: there is
   * no message then.
   */
  size_t struct_size;
  /**
   * What the function returned.
   */
  libsplit_status status;
  /**
   * Which output, also for a length or a part that is at fault; -1 when it concerns the input,
   * the parameters as such, or the executor.
   */
  int32_t output_index;
  /**
   * The two numbers that disagree, where two do: what was expected ...
   */
  int64_t expected;
  /**
   * ... and what was found; else both 0.
   */
  int64_t actual;
  /**
   * NUL-terminated UTF-8: the argument, the rule, both numbers and the remedy. For people; its
   * wording may change.
   */
  char message[240];
} libsplit_error;

/**
 * One task of a call: runs the part 'index' of the work behind 'task_ctx'. Never fails.
 */
typedef void (*libsplit_task_fn)(void *task_ctx, size_t index);

/**
 * The caller's thread pool: runs task(task_ctx, i) once for each i < count, in any order and on
 * any threads, returns after the last has finished; 0 = ok. A task that is run again does
 * nothing, nor does one with an index of 'count' or more. It must return: no C++ exception and
 * no longjmp() may leave it.
 *
 * Tasks take what there is to do bit by bit, from whoever is late: the first to run can do all of
 * it. So it should run tasks on its own thread as well, at once, and return when those that have
 * begun are done and none is left, without waiting for threads that are still waking up.
 */
typedef int32_t (*libsplit_parallel_for_fn)(void *pool,
                                            libsplit_task_fn task,
                                            void *task_ctx,
                                            size_t count);

/**
 * How libsplit_copy() is to run: start from LIBSPLIT_EXECUTOR_INIT(parallel_for, pool). NULL in
 * its place = on the calling thread. Small copies run on the calling thread in any case.
 */
typedef struct libsplit_executor {
  /**
   * sizeof(libsplit_executor).
   */
  size_t struct_size;
  /**
   * Runs the tasks of one call. May itself call libsplit. May be NULL if flags are set: then
   * everything runs on the calling thread.
   */
  libsplit_parallel_for_fn parallel_for;
  /**
   * Handed to parallel_for untouched; may be NULL.
   */
  void *pool;
  /**
   * The pool's width, the most tasks that are of use at a time; 0 = the library chooses.
   */
  uint32_t max_tasks;
  /**
   * LIBSPLIT_FLAG_OUTPUTS_READ_NEXT or LIBSPLIT_FLAG_NEVER_STREAM, or 0.
   */
  uint32_t flags;
} libsplit_executor;

/**
 * An element of type STRING: 'size' bytes at 'data', not NUL-terminated. Splitting copies this
 * pair, never the characters, which stay the caller's.
 */
typedef struct libsplit_string {
  /**
   * Address of the first byte; libsplit never looks at it.
   */
  const char *data;
  /**
   * Size in bytes.
   */
  size_t size;
} libsplit_string;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, not of the header: major << 24 | minor << 16 | patch. Never fails.
 */
LIBSPLIT_API
uint32_t libsplit_version(void);

/**
 * The version of the library as text, "major.minor.patch", NUL-terminated and static. Never
 * fails.
 */
LIBSPLIT_API const char *libsplit_version_string(void);

/**
 * The name of a status, as "LIBSPLIT_STATUS_ERROR_AXIS", NUL-terminated and static;
 * "LIBSPLIT_STATUS_UNKNOWN" for a number that is none. Never NULL.
 */
LIBSPLIT_API const char *libsplit_status_name(libsplit_status status);

/**
 * The name of an element type in ONNX TensorProto.DataType, as "FLOAT16", NUL-terminated and
 * static; "UNDEFINED" for a number that is none. Never NULL.
 */
LIBSPLIT_API const char *libsplit_dtype_name(libsplit_dtype dtype);

/**
 * Bits of one element: 2, 4, 8, 16, 32, 64 or 128; 0 for a number that is no element type.
 */
LIBSPLIT_API uint32_t libsplit_dtype_bits(libsplit_dtype dtype);

/**
 * libsplit_count() tells how many outputs the operator gives, into '*count'.
 *
 * 'input' needs dtype, rank and shape; its extents may be LIBSPLIT_DIM_UNKNOWN. No data is read
 * but that of the lengths. The checks are those of libsplit_infer() apart from the outputs'.
 * For ONNX Split before 18 without lengths, set params->num_outputs: the number of outputs of
 * the node is then the answer.
 *
 * Errors, after which '*count' is unchanged:
 *
 *   NULL, ALIGNMENT                input, params, or count; their shapes and strides
 *   STRUCT_SIZE                    params
 *   OPERATOR, OPSET, FLAGS, AXIS   params
 *   RANK                           input
 *   DTYPE, SHAPE, OVERFLOW         input or params->split
 *   SPLIT                          params->split absent, refused, or of a wrong rank or dtype
 *   SPLIT_SIZES                    params->split, or an extent that does not divide
 *   NUM_OUTPUTS                    params->num_outputs
 *   BIT_OFFSET, DATA_BYTES         params->split
 *   UNKNOWN                        the number depends on what is not known yet
 */
LIBSPLIT_API
libsplit_status libsplit_count(const struct libsplit_tensor *input,
                               const struct libsplit_params *params,
                               size_t *count,
                               struct libsplit_error *error);

/**
 * libsplit_infer() fills rank, dtype, shape, strides (packed ones, where strides is not NULL),
 * data_bytes (of the packed output) and bit_offset (0) of every output descriptor, and leaves
 * data as it is. Allocate data_bytes, set data, and the outputs are ready for libsplit_copy().
 *
 * 'input' needs dtype, rank and shape; data, data_bytes, strides and bit_offset do not matter.
 * Its extents may be LIBSPLIT_DIM_UNKNOWN, and the lengths unknown (data NULL). What is known is
 * checked, and what follows from it is filled in; an unknown extent becomes
 * LIBSPLIT_DIM_UNKNOWN in the outputs, as do the packed strides outside of it, and data_bytes
 * then is 0. Where the number of pieces of SplitToSequence is not known yet, 'num_outputs' is
 * believed.
 *
 * 'outputs' is an array of 'num_outputs' descriptors, as many as the operator gives; each needs
 * shape and capacity (entries that shape, and strides if not NULL, have room for). All-zero ones
 * are skipped, so give an output that will have rank 0 a capacity above 0. 'outputs' may be NULL
 * when num_outputs is 0. The arrays must not lie in those of the input or the lengths.
 *
 * Errors, after which no descriptor is changed: those of libsplit_count(), and
 *
 *   NULL, ALIGNMENT   outputs, or an output's shape or strides
 *   NUM_OUTPUTS       num_outputs is not the operator's number
 *   CAPACITY          an output's capacity is below its rank
 *   OVERFLOW          an output's size
 *   OVERLAP           an output's arrays lie in the input's, the lengths', or the descriptors
 */
LIBSPLIT_API
libsplit_status libsplit_infer(const struct libsplit_tensor *input,
                               const struct libsplit_params *params,
                               struct libsplit_tensor *outputs,
                               size_t num_outputs,
                               struct libsplit_error *error);

/**
 * libsplit_view() does what libsplit_infer() does and points every output into the input: data,
 * strides and bit_offset (below 8) are those of the piece where it lies, data_bytes is the
 * number of bytes from the lowest to the highest that the piece touches. Nothing is copied, and
 * the input's data is never read, so the address may be any device's.
 *
 * 'input' is complete; its extents are known. 'outputs' as for libsplit_infer(); where strides
 * is NULL the piece must happen to be packed. A view lives no longer than the data under it.
 *
 * Errors, after which no descriptor is changed: those of libsplit_infer(), and
 *
 *   NULL, ALIGNMENT        input->data with elements, or input->strides
 *   BIT_OFFSET, OVERFLOW   input
 *   DATA_BYTES             input->data_bytes is stated and too small
 *   SPLIT                  the lengths are not known (data NULL)
 *   STRIDES                an output without strides whose piece is not packed
 */
LIBSPLIT_API
libsplit_status libsplit_view(const struct libsplit_tensor *input,
                              const struct libsplit_params *params,
                              struct libsplit_tensor *outputs,
                              size_t num_outputs,
                              struct libsplit_error *error);

/**
 * libsplit_copy() copies every piece into the buffer that its output describes.
 *
 * 'input' is complete; its extents are known, its strides may be negative or 0. Each of the
 * 'num_outputs' descriptors is as libsplit_infer() left it or as the caller filled it, plus
 * data: dtype, rank and shape must be the operator's, strides may be the caller's own (negative
 * ones too, but each must step over everything that the smaller ones reach, so that no two
 * elements share an address), data_bytes is checked unless 0, capacity does not matter.
 * Descriptors are never written. All-zero ones are skipped. Sub-byte outputs must be packed and
 * begin at a whole byte (bit_offset 0); the bits past the last element of their final byte
 * become 0.
 *
 * Outputs must not overlap the input, the lengths or one another. Strided ones may lie in each
 * other's gaps: columns of one matrix, tiles of one picture, planes with padding. Whether two of
 * them share a byte is decided exactly by a bounded search; for strides so tangled that it gives
 * up, the message says "could not be shown apart", and the remedy is a call for each of them with
 * the other outputs all-zero. Bytes between the elements of a strided input, within what it
 * reaches over, may be read and never matter: another thread may write them meanwhile.
 *
 * Without an 'executor' everything runs on the calling thread.
 *
 * Errors: those of libsplit_view() on the input and the parameters, and
 *
 *   NULL, ALIGNMENT        outputs; shape, strides, or data with elements, of one; executor's
 *                          parallel_for
 *   STRUCT_SIZE, FLAGS     executor
 *   NUM_OUTPUTS            num_outputs is not the operator's number
 *   DTYPE, RANK, OUTPUT    an output's dtype, rank or shape
 *   BIT_OFFSET, STRIDES    an output's bit_offset or strides
 *   DATA_BYTES, OVERFLOW   an output's data_bytes or addresses
 *   OVERLAP                an output overlaps the input, the lengths, another output, or the
 *                          descriptors and arrays of the input and of itself
 *   EXECUTOR               parallel_for failed or did not run every task
 *
 * On an error no byte has been written, but for EXECUTOR: then any part of the outputs may have
 * been, and their bytes are to be taken for garbage.
 */
LIBSPLIT_API
libsplit_status libsplit_copy(const struct libsplit_tensor *input,
                              const struct libsplit_params *params,
                              const struct libsplit_tensor *outputs,
                              size_t num_outputs,
                              const struct libsplit_executor *executor,
                              struct libsplit_error *error);

/**
 * libsplit_plan_size() tells how many bytes a plan takes for an input of this rank and so many
 * outputs, the same for every operator, element type and layout: at most 1 KiB, 24 bytes an output,
 * and 32 bytes an axis and output. 0 = rank or number out of range. Never fails otherwise.
 */
LIBSPLIT_API
size_t libsplit_plan_size(int32_t rank,
                          size_t num_outputs);

/**
 * libsplit_plan_init() decides everything about a split but the addresses, and writes it into
 * 'plan': 'plan_size' bytes of the caller's, aligned to 8, as many as libsplit_plan_size() says
 * for input->rank and 'num_outputs', or more.
 *
 * 'input' is as for libsplit_copy(), but its data and data_bytes do not matter. 'outputs' are as
 * for libsplit_copy(), but their data does not matter: an all-zero one is not wanted, by the plan
 * for ever. 'outputs' may be NULL: then all are wanted and packed.
 *
 * A plan keeps no pointer: input, lengths, params and outputs may go away or change. It is plain
 * bytes, which may be copied and moved, read by many threads at once, and are thrown away without a
 * call. It belongs to the build of the library that made it, on this kind of machine; do not
 * store it.
 *
 * Errors, after which the plan's memory is unchanged: those of libsplit_copy() that do not concern
 * addresses, and
 *
 *   NULL, ALIGNMENT   plan
 *   PLAN              plan_size is too small
 *   OVERLAP           plan lies over what is read meanwhile
 */
LIBSPLIT_API
libsplit_status libsplit_plan_init(struct libsplit_plan *plan,
                                   size_t plan_size,
                                   const struct libsplit_tensor *input,
                                   const struct libsplit_params *params,
                                   const struct libsplit_tensor *outputs,
                                   size_t num_outputs,
                                   struct libsplit_error *error);

/**
 * libsplit_plan_copy() does what libsplit_copy() does, by a plan: copies every wanted piece of the
 * tensor at 'input' to its output.
 *
 * 'input' is the address of the input's element [0, ..., 0], entry i of 'outputs' that of output i; the
 * one of a piece that is not wanted or has no elements is not looked at. How much memory there is
 * is not asked: the plan's numbers are relied on. Overlaps are refused as by libsplit_copy().
 *
 * Errors:
 *
 *   PLAN                   'plan' is no plan of this library
 *   NULL, ALIGNMENT        plan, input, outputs, or the address of an output; executor's
 *                          parallel_for
 *   NUM_OUTPUTS            num_outputs is not the plan's
 *   STRUCT_SIZE, FLAGS     executor
 *   OVERFLOW               addresses past the end of the address space
 *   OVERLAP                an output overlaps the input, another output, the plan, 'outputs',
 *                          the executor or 'error'
 *   EXECUTOR               parallel_for failed or did not run every task
 *
 * On an error no byte has been written, but for EXECUTOR, as for libsplit_copy().
 */
LIBSPLIT_API
libsplit_status libsplit_plan_copy(const struct libsplit_plan *plan,
                                   const void *input,
                                   void *const *outputs,
                                   size_t num_outputs,
                                   const struct libsplit_executor *executor,
                                   struct libsplit_error *error);

/**
 * libsplit_plan_view() does what libsplit_view() does, by a plan: writes where each wanted piece
 * lies in the tensor at 'input'. Shapes, strides and bit offsets are those that libsplit_view()
 * gives for the same split; ask it once. The entry of a piece that is not wanted is left as it is.
 * The input's data is never read, so the address may be any device's.
 *
 * Errors, after which no entry is changed:
 *
 *   PLAN               'plan' is no plan of this library
 *   NULL, ALIGNMENT    plan, outputs, or an input with elements
 *   NUM_OUTPUTS        num_outputs is not the plan's
 *   OVERFLOW           addresses past the end of the address space
 *   OVERLAP            'outputs' lies over the plan or 'error'
 */
LIBSPLIT_API
libsplit_status libsplit_plan_view(const struct libsplit_plan *plan,
                                   void *input,
                                   void **outputs,
                                   size_t num_outputs,
                                   struct libsplit_error *error);

/**
 * libsplit_plan_describe() writes what a plan will do, as text for people: the call, and how its bytes
 * will be moved. The wording may change; no program should read it.
 *
 * At most 'size' bytes are written to 'buffer', the last of them a NUL; what does not fit is cut.
 * 'buffer' may be NULL if 'size' is 0. Returns the length of the whole text without the NUL, as snprintf
 * does; 0 if 'plan' is NULL, misaligned, or no plan of this library.
 */
LIBSPLIT_API
size_t libsplit_plan_describe(const struct libsplit_plan *plan,
                              char *buffer,
                              size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LIBSPLIT_H */


#ifndef LIBSPLIT_OUTPUTS_INIT
#define LIBSPLIT_OUTPUTS_INIT
#ifdef __cplusplus
extern "C" {
#endif

/**
 * libsplit_outputs_init() makes descriptors for 'num_outputs' outputs of up to 'rank' axes, ready for
 * libsplit_infer() and libsplit_view(): the arrays for shape and strides lie in 'ints', which has
 * room for 2 * num_outputs * rank of them. For packed outputs set strides to NULL after that, or
 * leave them to libsplit_infer(), which fills in the packed ones.
 */
static inline void libsplit_outputs_init(libsplit_tensor *outputs, size_t num_outputs,
                                         int64_t *ints, int32_t rank) {
  size_t i;
  for (i = 0; i < num_outputs; i++) {
    libsplit_tensor output = LIBSPLIT_TENSOR_INIT;
    output.shape = ints + 2 * i * (size_t)rank;
    output.strides = output.shape + rank;
    output.capacity = rank;
    outputs[i] = output;
  }
}

#ifdef __cplusplus
}
#endif
#endif  /* LIBSPLIT_OUTPUTS_INIT */
