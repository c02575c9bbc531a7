/*
 * libsplit.h - the tensor Split of ONNX and OpenVINO
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Four functions take the same input and parameters: libsplit_count() returns the number of
 * outputs, libsplit_infer() describes them, and then libsplit_view() points them into the input, or
 * libsplit_copy() copies them into buffers of their own. If the same split is made again and again,
 * libsplit_plan_init() prepares it once, and libsplit_plan_copy() and libsplit_plan_view() then need
 * only addresses. The input is a libsplit_tensor; the operator, its version and its parameters are a
 * libsplit_params; and the outputs are an array of libsplit_tensor, which the caller allocates.
 *
 * Every function keeps these promises:
 *
 *   - Everything is checked before anything is written: after an error no output descriptor and no
 *     output byte has changed (for the exception, see LIBSPLIT_STATUS_ERROR_EXECUTOR).
 *   - No heap allocation, no I/O, no threads of its own, no pointer kept after the call, and no
 *     global or thread-local state except CPU features, which are detected once.
 *   - A call uses at most 32 KiB of stack. docs/realtime.md says how much it is in this version.
 *   - Any function may be called from any thread at any time. Concurrent calls may share inputs and
 *     plans, but not outputs.
 *   - Data pointers need no alignment.
 *   - Counts, sizes in bytes and sums of lengths are 64-bit and checked for overflow.
 *
 * In return, every pointer must be NULL or valid for what its structure or the function says, until
 * the call returns. Numbers may have any value. 'error' and 'executor' may be NULL; without an
 * executor, everything runs on the calling thread. Strings that functions return are static and
 * NUL-terminated, and never NULL.
 *
 * A function that returns a libsplit_status returns LIBSPLIT_STATUS_OK, or one of the errors in its
 * list, where the prefix LIBSPLIT_STATUS_ERROR_ is left out. If 'error' itself is misaligned, or of an
 * impossible size, it returns ALIGNMENT or STRUCT_SIZE and does not write to it. Of several mistakes
 * in a call any may be reported, in another version another one; and what is refused today may be
 * accepted by a later version.
 *
 * From an input to pieces in memory of their own, with error checks left out:
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
 * Shapes, strides and lengths count elements; sizes are in bytes if their name says so.
 *
 * This file is generated from the Rust sources by cbindgen; see CONTRIBUTING.md.
 */


#ifndef LIBSPLIT_H
#define LIBSPLIT_H

#include <stddef.h>
#include <stdint.h>

/* Users of a libsplit.dll may define LIBSPLIT_DLL, but need not. */
#ifndef LIBSPLIT_API
#  if defined(LIBSPLIT_DLL) && (defined(_WIN32) || defined(__CYGWIN__))
#    define LIBSPLIT_API __declspec(dllimport)
#  else
#    define LIBSPLIT_API
#  endif
#endif

/* The calling convention of all functions and callbacks, where a compiler has several. */
#ifndef LIBSPLIT_CALL
#  if defined(_WIN32)
#    define LIBSPLIT_CALL __cdecl
#  else
#    define LIBSPLIT_CALL
#  endif
#endif

/**
 * An extent that is not known yet. libsplit_infer() and libsplit_count() accept it in the shape of
 * the input, and libsplit_infer() writes it to outputs; all other functions refuse it.
 */
#define LIBSPLIT_DIM_UNKNOWN (-1)

/** The newest opset of ONNX with which this header's library has been compared. */
#define LIBSPLIT_ONNX_OPSET 28

/**
 * For libsplit_params.flags, and ONNX Split-18 with num_outputs: if the extent is so small that the
 * last piece would have a negative length (5 into 4: 2, 2, 2, -1), shorten as many pieces as necessary
 * instead of returning an error (5 into 4: 2, 2, 1, 0). Piece i of an extent d then has length
 * max(0, min(c, d - i*c)), where c = ceil(d / num_outputs). All other cases are unaffected.
 *
 * No two flags have the same bit, of whichever structure they are, and unknown ones are refused.
 */
#define LIBSPLIT_FLAG_CLAMP_UNEVEN 1u
/**
 * For libsplit_executor.flags: the outputs will be read soon after the copy. Outputs that do not fit in
 * the caches bypass them, which is faster but leaves the data in memory only; with this flag, that
 * begins at twice the size.
 */
#define LIBSPLIT_FLAG_OUTPUTS_READ_NEXT 2u
/** For libsplit_executor.flags: never bypass the caches, whatever the size. */
#define LIBSPLIT_FLAG_NEVER_STREAM 4u

/** For libsplit_error.words: the message calls arguments what this header calls them. */
#define LIBSPLIT_WORDS_C 0u
/** The message calls arguments what libsplit.hpp calls them. */
#define LIBSPLIT_WORDS_CPP 1u
/** The message calls arguments what a node of an ONNX model calls them. */
#define LIBSPLIT_WORDS_ONNX 2u
/** The message calls arguments what an operation of an OpenVINO model calls them. */
#define LIBSPLIT_WORDS_OPENVINO 3u

/**
 * The version of this header as one number, as libsplit_version() returns it. (For #if, compare the
 * three numbers themselves.)
 */
#define LIBSPLIT_VERSION \
    ((uint32_t)LIBSPLIT_VERSION_MAJOR << 24 | (uint32_t)LIBSPLIT_VERSION_MINOR << 16 | \
     (uint32_t)LIBSPLIT_VERSION_PATCH)

/**
 * At least what libsplit_plan_size() returns, in every version, for memory that is reserved at compile
 * time. 'rank' is from 1 to LIBSPLIT_MAX_RANK, and the result must not exceed SIZE_MAX.
 */
#define LIBSPLIT_PLAN_SIZE_MAX(rank, num_outputs) \
    (1024 + (size_t)(num_outputs) * (24 + 32 * (size_t)(rank)))

/* Initializers: 'libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);' */
#define LIBSPLIT_PARAMS_INIT(op, opset) \
    { sizeof(libsplit_params), (op), (opset), 0, NULL, 0, 1, 0 }
#define LIBSPLIT_TENSOR_INIT { NULL, 0, NULL, NULL, 0, 0, 0, 0 }
#define LIBSPLIT_ERROR_INIT \
    { sizeof(libsplit_error), 0, -1, 0, 0, LIBSPLIT_WORDS_C, 0, { 0 } }
#define LIBSPLIT_EXECUTOR_INIT(parallel_for, pool) \
    { sizeof(libsplit_executor), (parallel_for), (pool), 0, 0 }

/**
 * The version of this header; libsplit_version() returns the version of the library. The ABI only
 * grows: by functions, by constants, and by fields at the end of structures that have a struct_size.
 * The number in the name libsplit.so.0 would change only if that promise were broken, which is not
 * planned: version 1.0 will still be libsplit.so.0.
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
 * The largest rank that a tensor may have. It never changes.
 */
#define LIBSPLIT_MAX_RANK 64

/**
 * A split that has been prepared once, to be run many times. It lives in memory that the caller
 * provides: as many bytes as libsplit_plan_size() returns, aligned to 8. libsplit_plan_init() writes
 * it.
 */
typedef struct libsplit_plan libsplit_plan;

/**
 * The result of a call: LIBSPLIT_STATUS_OK, or a LIBSPLIT_STATUS_ERROR_... that says what kind of
 * error it is. New kinds may be added; treat any number other than 0 as an error. No status is ever
 * negative: negative numbers are left to wrappers for errors of their own.
 */
typedef int32_t libsplit_status;
/**
 * Success.
 */
#define LIBSPLIT_STATUS_OK 0
/**
 * A required pointer is NULL.
 */
#define LIBSPLIT_STATUS_ERROR_NULL 1
/**
 * A pointer to a structure, shape or strides is not aligned for its type. (Data pointers
 * need no alignment.)
 */
#define LIBSPLIT_STATUS_ERROR_ALIGNMENT 2
/**
 * A struct_size is less than the size of the structure's first version, or implausibly large, or
 * there are nonzero bytes after the fields that this library knows.
 */
#define LIBSPLIT_STATUS_ERROR_STRUCT_SIZE 3
/**
 * libsplit_params.op is not an operator.
 */
#define LIBSPLIT_STATUS_ERROR_OPERATOR 4
/**
 * The operator has no version at this opset.
 */
#define LIBSPLIT_STATUS_ERROR_OPSET 5
/**
 * A flag is set that this library does not know.
 */
#define LIBSPLIT_STATUS_ERROR_FLAGS 6
/**
 * The dtype is not an element type, or this version of the operator does not allow it; in the
 * second case the message names a version that does.
 */
#define LIBSPLIT_STATUS_ERROR_DTYPE 7
/**
 * A rank is below 0 or above LIBSPLIT_MAX_RANK, or the input has rank 0 and so no axis to split.
 */
#define LIBSPLIT_STATUS_ERROR_RANK 8
/**
 * axis is outside [-rank, rank-1].
 */
#define LIBSPLIT_STATUS_ERROR_AXIS 9
/**
 * An extent is negative, or unknown where it must be known.
 */
#define LIBSPLIT_STATUS_ERROR_SHAPE 10
/**
 * The lengths (libsplit_params.split) are missing where they are required, present where they are
 * not allowed, or of a rank or dtype that the operator does not take.
 */
#define LIBSPLIT_STATUS_ERROR_SPLIT 11
/**
 * Lengths are negative, fractional, or do not add up to the extent of the axis; or the extent
 * cannot be divided into the requested number of parts.
 */
#define LIBSPLIT_STATUS_ERROR_SPLIT_SIZES 12
/**
 * A number of outputs is missing where it is required, below 1, too large, or different from what
 * the operator gives.
 */
#define LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS 13
/**
 * libsplit_tensor.capacity of an output is less than its rank.
 */
#define LIBSPLIT_STATUS_ERROR_CAPACITY 14
/**
 * Strides of an output make elements share an address or, for sub-byte elements, are not packed;
 * or an output of libsplit_view() has no room for the strides that it needs.
 */
#define LIBSPLIT_STATUS_ERROR_STRIDES 15
/**
 * A bit_offset that the element type does not allow, or one that is not 0 where it must be 0.
 */
#define LIBSPLIT_STATUS_ERROR_BIT_OFFSET 16
/**
 * data_bytes is less than the tensor needs.
 */
#define LIBSPLIT_STATUS_ERROR_DATA_BYTES 17
/**
 * There are more elements, larger strides or higher addresses than 63 bits can represent.
 */
#define LIBSPLIT_STATUS_ERROR_OVERFLOW 18
/**
 * An output overlaps the input, the lengths or another output; or the data, shape or strides of an
 * output overlap descriptors or arrays that the call uses. See also ERROR_NOT_SHOWN_APART.
 */
#define LIBSPLIT_STATUS_ERROR_OVERLAP 19
/**
 * The dtype, rank or shape of an output of libsplit_copy() is not what the operator gives.
 */
#define LIBSPLIT_STATUS_ERROR_OUTPUT 20
/**
 * The number of outputs depends on an extent or a length that is not known yet.
 */
#define LIBSPLIT_STATUS_ERROR_COUNT_UNKNOWN 21
/**
 * The caller's parallel_for failed: 'expected' is 0, and 'actual' is what it returned. Or it
 * returned before every task had run: 'expected' is the number of tasks, and 'actual' is how many
 * of them ran.
 */
#define LIBSPLIT_STATUS_ERROR_EXECUTOR 22
/**
 * A bug in libsplit. Please report it.
 */
#define LIBSPLIT_STATUS_ERROR_INTERNAL 23
/**
 * The memory does not hold a plan of this library (it is all zero, or another version wrote it),
 * or is too small for a plan.
 */
#define LIBSPLIT_STATUS_ERROR_PLAN 24
/**
 * Two outputs, or an output and the input, reach over the same memory, and it could not be shown
 * that they have no byte in common. Give the output other memory, or copy it in a call of its own,
 * with all other descriptors zero.
 */
#define LIBSPLIT_STATUS_ERROR_NOT_SHOWN_APART 25

/**
 * An element type. Numbers below 65536 mean what they mean in ONNX TensorProto.DataType, now and
 * later. Types that ONNX does not have, if there ever are any here, are numbered from 65536.
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
 * One byte, copied unchanged whatever its value.
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
 * Unsigned 4-bit integer. Sub-byte elements are packed: of the bytes, read as one little-endian
 * number, element i of the flattened row-major tensor is bits i * size to i * size + size - 1.
 * There is no padding between rows.
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
 * An operator, whose rules apply.
 */
typedef int32_t libsplit_op;
/**
 * ONNX Split, versions 1, 2, 11, 13 and 18. Lengths are a list that adds up to the extent of the
 * axis; without lengths, the parts are equal.
 *
 * Split-18 takes either lengths or num_outputs; with num_outputs the last part may be smaller.
 * Older versions make as many equal parts as the node has outputs: the num_outputs argument of the
 * function, or libsplit_params.num_outputs. If both are given, they must agree.
 *
 * Element types: Split-1 allows FLOAT, FLOAT16 and DOUBLE; Split-2 and Split-11 allow the 15 types
 * from FLOAT to COMPLEX128; Split-13 and Split-18 also allow BFLOAT16. Lengths are INT64; those of
 * Split-1 may also have the type of the input, but must be whole numbers.
 */
#define LIBSPLIT_OP_ONNX_SPLIT 1
/**
 * ONNX SplitToSequence, versions 11 and 24. Lengths are INT32 or INT64, and their rank decides: a
 * scalar is the length of every piece, except that the last may be smaller; a list has one entry
 * for each piece. Without lengths, every piece has length 1, and keepdims 0 drops the axis.
 *
 * Element types: the 15 types from FLOAT to COMPLEX128; SplitToSequence-24 also allows BFLOAT16.
 */
#define LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE 2
/**
 * OpenVINO VariadicSplit-1. Lengths are a list of any integer type; one of them may be -1, which
 * stands for the rest. Allows every element type.
 */
#define LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT 3
/**
 * OpenVINO Split-1: num_outputs (which OpenVINO calls num_splits) equal parts; the extent must be
 * divisible by it. Allows every element type.
 */
#define LIBSPLIT_OP_OPENVINO_SPLIT 4

/**
 * A tensor: the input, the lengths, or an output. It has 48 bytes if pointers have 64 bits, and will
 * never change, because descriptors come in arrays.
 *
 * Initialize a descriptor with LIBSPLIT_TENSOR_INIT, or zero it, before you fill it in: functions also
 * read fields that they do not use. If a function writes to outputs, each of them needs arrays of its
 * own for shape and strides.
 *
 * An output descriptor of all zero bytes is an output that the caller does not want (ONNX's unused
 * output ""). It is skipped and left unchanged, without an error; but if a call has outputs, it has to
 * want at least one of them.
 */
typedef struct libsplit_tensor {
  /**
   * Address of element [0, ..., 0], with any alignment. May be NULL if there are no elements, in
   * libsplit_infer() and libsplit_count(), and for lengths that are not known yet.
   */
  void *data;
  /**
   * Number of usable bytes, counted from the lowest address that the tensor touches (negative
   * strides put it below data); 0 if it is not stated, and then it is not checked. libsplit_infer()
   * sets it to the size of a packed output: if you change the strides after that, set it again, or
   * to 0. An empty buffer cannot be stated this way: pass NULL as data, which is refused if there are
   * elements.
   */
  size_t data_bytes;
  /**
   * 'rank' extents in elements, outermost first, each >= 0. May be NULL if rank is 0.
   */
  int64_t *shape;
  /**
   * 'rank' strides in elements: of either sign, or 0 to repeat (inputs only). NULL means packed in
   * row-major order. Strides of axes of extent 1, and of tensors without elements, do not matter.
   */
  int64_t *strides;
  /**
   * Number of axes, from 0 to LIBSPLIT_MAX_RANK.
   */
  int32_t rank;
  /**
   * For outputs of libsplit_infer() and libsplit_view(): the number of entries that shape (and
   * strides, if not NULL) have room for. Ignored for inputs, lengths, and outputs of
   * libsplit_copy().
   */
  int32_t capacity;
  /**
   * Element type.
   */
  libsplit_dtype dtype;
  /**
   * For elements of less than 8 bits: the offset of the first element from data in bits; for 4-bit
   * and 2-bit types a multiple of the element size. Otherwise 0.
   */
  uint32_t bit_offset;
} libsplit_tensor;

/**
 * What to do. Initialize it with LIBSPLIT_PARAMS_INIT(op, opset). Fields may be added at the end;
 * struct_size says which version the caller was built with.
 */
typedef struct libsplit_params {
  /**
   * sizeof(libsplit_params). A larger size is accepted if all bytes after the known fields are 0.
   */
  size_t struct_size;
  /**
   * The operator: LIBSPLIT_OP_...
   */
  libsplit_op op;
  /**
   * For ONNX operators: the model's opset import, any number from the operator's first version on.
   * The newest operator version that is not above it applies: 9 means Split-2, 20 means Split-18.
   * For OpenVINO operators: 1, or 0, which means 1. See libsplit_op_version().
   */
  int32_t opset;
  /**
   * The axis to split, in [-rank, rank-1]; negative axes count from the back.
   */
  int64_t axis;
  /**
   * The operator's lengths, whether they are an attribute or an input; NULL if there are none. A
   * scalar has rank 0 and a list has rank 1; the dtype is that of the lengths, and strides are
   * respected. If data is NULL but the shape is given, the lengths are not known yet
   * (libsplit_infer() and libsplit_count() only).
   */
  const struct libsplit_tensor *split;
  /**
   * The attribute num_outputs of ONNX Split-18, or num_splits of OpenVINO Split; 0 if absent. For
   * the other operators: 0, or the number of outputs, which must be what the operator gives.
   */
  int64_t num_outputs;
  /**
   * For ONNX SplitToSequence without lengths: 0 drops the split axis from the pieces, which have
   * length 1; any other value keeps it. Otherwise ignored. Note that LIBSPLIT_PARAMS_INIT sets it
   * to 1, as in ONNX.
   */
  int32_t keepdims;
  /**
   * LIBSPLIT_FLAG_CLAMP_UNEVEN, or 0.
   */
  uint32_t flags;
} libsplit_params;

/**
 * Details of an error, in memory that the caller provides. Initialize all of it, with
 * LIBSPLIT_ERROR_INIT: fields may be added at the end, and a library leaves those that it does not
 * know as they are. It is filled in on success too, with status 0 and an empty message.
 */
typedef struct libsplit_error {
  /**
   * sizeof(libsplit_error), set by the caller. If it is less than the size of the structure's first
   * version (for example 0, after zeroing the structure) or above 4096, the function returns
   * STRUCT_SIZE and writes nothing here, not even a message.
   */
  size_t struct_size;
  /**
   * What the function returned.
   */
  libsplit_status status;
  /**
   * The index of the output at fault, or of the length or part at fault; -1 if the error concerns
   * the input, the parameters in general, or the executor.
   */
  int32_t output_index;
  /**
   * If two numbers disagree: the one that was expected ...
   */
  int64_t expected;
  /**
   * ... and the one that was found. Otherwise both are 0.
   */
  int64_t actual;
  /**
   * Set by the caller: whose names for arguments the message uses, LIBSPLIT_WORDS_...; any other
   * number means LIBSPLIT_WORDS_C.
   */
  uint32_t words;
  /**
   * 0; for later use.
   */
  uint32_t reserved;
  /**
   * NUL-terminated UTF-8 text: the argument, the rule, both numbers and the remedy. It is meant for
   * people, and its wording may change.
   */
  char message[240];
} libsplit_error;

/**
 * One task of a call: does part 'index' of the work behind 'task_ctx'. Never fails.
 */
typedef void (LIBSPLIT_CALL *libsplit_task_fn)(void *task_ctx, size_t index);

/**
 * The caller's thread pool: runs task(task_ctx, i) once for each i < count, in any order and on any
 * threads, and returns after the last one has finished; 0 means success. A task that is run a second
 * time does nothing, and neither does one with an index of 'count' or more. 'count' is at least 2, and
 * at most libsplit_executor.max_tasks if that is not 0.
 *
 * The function must return normally: no C++ exception, no longjmp() and no end of a thread
 * (pthread_exit(), cancellation) may leave it. If several calls use one executor at the same time, it
 * is called by each of them, at the same time.
 *
 * Tasks take small portions of the work, also from tasks that are late, so the first task may end up
 * doing all of it. The function should therefore run tasks on its own thread as well, without delay,
 * and return when all tasks are done, without waiting for threads that are still waking up.
 */
typedef int32_t (LIBSPLIT_CALL *libsplit_parallel_for_fn)(void *pool,
                                                          libsplit_task_fn task,
                                                          void *task_ctx,
                                                          size_t count);

/**
 * How to run libsplit_copy() and libsplit_plan_copy(). Initialize it with
 * LIBSPLIT_EXECUTOR_INIT(parallel_for, pool). It is only read, and many calls may use one at the same
 * time. Small copies always run on the calling thread.
 */
typedef struct libsplit_executor {
  /**
   * sizeof(libsplit_executor).
   */
  size_t struct_size;
  /**
   * Runs the tasks of one call. It may call libsplit itself. If it is NULL, everything runs on the
   * calling thread.
   */
  libsplit_parallel_for_fn parallel_for;
  /**
   * Passed to parallel_for unchanged; may be NULL.
   */
  void *pool;
  /**
   * The number of threads in the pool, which is the largest number of tasks that is useful at a
   * time; 0 lets the library choose.
   */
  uint32_t max_tasks;
  /**
   * LIBSPLIT_FLAG_OUTPUTS_READ_NEXT or LIBSPLIT_FLAG_NEVER_STREAM, or 0.
   */
  uint32_t flags;
} libsplit_executor;

/**
 * An element of type STRING: 'size' bytes at 'data', not NUL-terminated. Splitting copies this pair
 * but not the characters, which remain the caller's.
 */
typedef struct libsplit_string {
  /**
   * Address of the first byte; libsplit never reads it.
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
 * Returns the version of the library, not of the header: major << 24 | minor << 16 | patch. Never
 * fails.
 */
LIBSPLIT_API
uint32_t LIBSPLIT_CALL libsplit_version(void);

/**
 * Returns the version of the library as a string: "major.minor.patch". Never fails.
 */
LIBSPLIT_API const char *LIBSPLIT_CALL libsplit_version_string(void);

/**
 * Returns which loops run on this CPU, for bug reports: its architecture and the extension that they
 * are written for, such as "x86-64 AVX2", or "portable". Never fails.
 */
LIBSPLIT_API
const char *LIBSPLIT_CALL libsplit_cpu_string(void);

/**
 * Returns the name of a status, such as "LIBSPLIT_STATUS_ERROR_AXIS"; "unknown status" if the number is
 * not a status of this library.
 */
LIBSPLIT_API
const char *LIBSPLIT_CALL libsplit_status_name(libsplit_status status);

/**
 * Returns the name of an element type in ONNX TensorProto.DataType, such as "FLOAT16"; "UNDEFINED" if
 * the number is not an element type.
 */
LIBSPLIT_API
const char *LIBSPLIT_CALL libsplit_dtype_name(libsplit_dtype dtype);

/**
 * Returns the size of an element in bits, such as 4 or 32; 0 if the number is not an element type of
 * this library.
 */
LIBSPLIT_API
uint32_t LIBSPLIT_CALL libsplit_dtype_bits(libsplit_dtype dtype);

/**
 * Returns the version of the operator that applies at this opset, such as 13 for ONNX Split at opset
 * 17; 0 if there is none, or if the operator is not known. Versions are those of this library: an opset
 * for which ONNX has changed the operator since then gets the newest version that this library knows.
 * It has been compared with ONNX up to LIBSPLIT_ONNX_OPSET.
 */
LIBSPLIT_API
int32_t LIBSPLIT_CALL libsplit_op_version(libsplit_op op,
                                          int32_t opset);

/**
 * Stores the number of outputs that the operator gives in '*count'.
 *
 * 'input' needs dtype, rank and shape; extents may be LIBSPLIT_DIM_UNKNOWN. No data is read except
 * that of the lengths. Everything is checked that libsplit_infer() checks, except the outputs. For
 * ONNX Split before version 18 without lengths, set params->num_outputs to the number of outputs of
 * the node, which is then the answer.
 *
 * Errors, after which '*count' is unchanged:
 *
 *   NULL, ALIGNMENT                input, params, or count; their shapes and strides
 *   STRUCT_SIZE                    params
 *   OPERATOR, OPSET, FLAGS, AXIS   params
 *   RANK                           input
 *   DTYPE, SHAPE, OVERFLOW         input or params->split
 *   SPLIT                          params->split is missing, not allowed, or of a wrong rank or dtype
 *   SPLIT_SIZES                    params->split, or an extent that cannot be divided
 *   NUM_OUTPUTS                    params->num_outputs
 *   BIT_OFFSET, DATA_BYTES         params->split
 *   COUNT_UNKNOWN                  the number depends on something that is not known yet
 */
LIBSPLIT_API
libsplit_status LIBSPLIT_CALL libsplit_count(const struct libsplit_tensor *input,
                                             const struct libsplit_params *params,
                                             size_t *count,
                                             struct libsplit_error *error);

/**
 * Describes the outputs: fills in rank, dtype, shape, strides (packed ones, if strides is not NULL),
 * data_bytes (of the packed output) and bit_offset (0) of every output descriptor, and leaves data as
 * it is. Once you have allocated data_bytes and set data, the outputs are ready for libsplit_copy().
 *
 * 'input' needs dtype, rank and shape; its data, data_bytes, strides and bit_offset do not matter.
 * Extents may be LIBSPLIT_DIM_UNKNOWN, and lengths may be unknown (data NULL). Whatever is known is
 * checked, and whatever follows from it is filled in. An unknown extent becomes LIBSPLIT_DIM_UNKNOWN
 * in the outputs, and so do the packed strides of the axes outside it; data_bytes is then 0. If the
 * number of pieces of SplitToSequence is not known yet, 'num_outputs' is taken to be right.
 *
 * 'outputs' is an array of 'num_outputs' descriptors, as many as the operator gives. Each needs shape
 * and capacity (the number of entries that shape, and strides if not NULL, have room for). All-zero
 * descriptors are skipped, so give an output that will have rank 0 a capacity above 0. 'outputs' may
 * be NULL if num_outputs is 0. Shapes and strides of outputs must not overlap one another, nor those
 * of the input or the lengths.
 *
 * Errors, after which no descriptor has changed: those of libsplit_count() and these:
 *
 *   NULL, ALIGNMENT   outputs, or the shape or strides of an output
 *   NULL              no output is wanted, though the operator gives some
 *   NUM_OUTPUTS       num_outputs is not the operator's number
 *   CAPACITY          the capacity of an output is less than its rank
 *   OVERFLOW          the size of an output
 *   OVERLAP           the shape or strides of an output overlap something else that is in use
 */
LIBSPLIT_API
libsplit_status LIBSPLIT_CALL libsplit_infer(const struct libsplit_tensor *input,
                                             const struct libsplit_params *params,
                                             struct libsplit_tensor *outputs,
                                             size_t num_outputs,
                                             struct libsplit_error *error);

/**
 * Points every output into the input. Does what libsplit_infer() does, and also sets data, strides and
 * bit_offset (less than 8) to where the piece lies, and data_bytes to the number of bytes from the
 * lowest to the highest that the piece touches. Nothing is copied. The data of the input is never
 * read, so it may be in the memory of any device.
 *
 * 'input' must be complete, without unknown extents. 'outputs' is as for libsplit_infer(); if strides
 * is NULL, the piece must happen to be packed. A view is valid as long as the data that it points to.
 *
 * Errors, after which no descriptor has changed: those of libsplit_infer() and these:
 *
 *   NULL, ALIGNMENT        input->data, if there are elements, or input->strides
 *   BIT_OFFSET, OVERFLOW   input
 *   DATA_BYTES             input->data_bytes is stated but too small
 *   SPLIT                  the lengths are not known (their data is NULL)
 *   STRIDES                an output has NULL strides, but its piece is not packed
 */
LIBSPLIT_API
libsplit_status LIBSPLIT_CALL libsplit_view(const struct libsplit_tensor *input,
                                            const struct libsplit_params *params,
                                            struct libsplit_tensor *outputs,
                                            size_t num_outputs,
                                            struct libsplit_error *error);

/**
 * Copies every piece into the buffer that its output describes.
 *
 * 'input' must be complete, without unknown extents; its strides may be negative or 0. Each of the
 * 'num_outputs' descriptors is as libsplit_infer() left it, or as you filled it in, with data set.
 * Descriptors are never written to, and all-zero ones are skipped. For the others:
 *
 *   - dtype, rank and shape must be what the operator gives.
 *   - strides may be your own, also negative ones, but each must step over everything that the smaller
 *     ones reach, so that no two elements share an address.
 *   - data_bytes is checked unless it is 0; capacity does not matter.
 *   - Sub-byte outputs must be packed and begin at a whole byte; unused bits in their last byte become 0.
 *
 * Outputs must not overlap the input, the lengths or one another. Strided outputs may lie in each
 * other's gaps: columns of one matrix, tiles of one picture, planes with padding. Whether two of them
 * share a byte is decided exactly, by a bounded search. If the strides are so irregular that the
 * search gives up, or if an output lies between sub-byte elements of a strided input, the function
 * returns NOT_SHOWN_APART. Bytes between the elements of a strided input may be read, but they never
 * matter: another thread may write to them at the same time.
 *
 * Errors, after which nothing has been written (except after EXECUTOR: then any part of the outputs may
 * have been, and their contents are undefined): those of libsplit_view() that concern the input and the
 * parameters, and these:
 *
 *   NULL, ALIGNMENT        outputs; the shape, strides or data of an output
 *   NULL                   no output is wanted, though the operator gives some
 *   STRUCT_SIZE, FLAGS     executor
 *   NUM_OUTPUTS            num_outputs is not the operator's number
 *   DTYPE, RANK, OUTPUT    the dtype, rank or shape of an output
 *   BIT_OFFSET, STRIDES    the bit_offset or strides of an output
 *   DATA_BYTES, OVERFLOW   the data_bytes or addresses of an output
 *   OVERLAP                an output overlaps the input, the lengths, another output, or an array in use
 *   NOT_SHOWN_APART        it may overlap the input or another output
 *   EXECUTOR               parallel_for failed or did not run every task
 */
LIBSPLIT_API
libsplit_status LIBSPLIT_CALL libsplit_copy(const struct libsplit_tensor *input,
                                            const struct libsplit_params *params,
                                            const struct libsplit_tensor *outputs,
                                            size_t num_outputs,
                                            const struct libsplit_executor *executor,
                                            struct libsplit_error *error);

/**
 * Returns how many bytes a plan needs for an input of this rank and this number of outputs. The answer
 * is the same for every operator, element type and layout: at most 1 KiB, plus 24 bytes for each
 * output, plus 32 bytes for each axis of each output. Returns 0 if 'rank' or 'num_outputs' is out of
 * range; never fails otherwise.
 */
LIBSPLIT_API
size_t LIBSPLIT_CALL libsplit_plan_size(int32_t rank,
                                        size_t num_outputs);

/**
 * Prepares a split: decides everything about it except the addresses, and writes that to 'plan'.
 * 'plan_size' is the number of bytes at 'plan', which is aligned to 8: at least what
 * libsplit_plan_size() returns for input->rank and 'num_outputs'.
 *
 * 'input' is as for libsplit_copy(), except that its data and data_bytes do not matter. 'outputs' is
 * as for libsplit_copy(), except that data does not matter; an output whose descriptor is all zero
 * will be skipped in every call. 'outputs' may be NULL: all outputs are then wanted and packed.
 *
 * A plan keeps no pointers, so the input, lengths, params and outputs may change or go away. It is
 * plain bytes: it may be copied and moved, used by many threads at once, and discarded without a call.
 * It belongs to the build of the library that made it, on this kind of machine, so do not store it.
 *
 * Errors, after which the plan's memory has not changed: those of libsplit_copy() that do not concern
 * addresses, and these:
 *
 *   NULL, ALIGNMENT   plan
 *   PLAN              plan_size is too small
 *   OVERLAP           plan overlaps something that is read at the same time
 */
LIBSPLIT_API
libsplit_status LIBSPLIT_CALL libsplit_plan_init(struct libsplit_plan *plan,
                                                 size_t plan_size,
                                                 const struct libsplit_tensor *input,
                                                 const struct libsplit_params *params,
                                                 const struct libsplit_tensor *outputs,
                                                 size_t num_outputs,
                                                 struct libsplit_error *error);

/**
 * Copies every wanted piece of the tensor at 'input' to its output, as libsplit_copy() does, using a
 * plan.
 *
 * 'input' is the address of the input's element [0, ..., 0], and entry i of 'outputs' is the address
 * of the same element of output i. Entries of pieces that are not wanted or have no elements are
 * ignored. Nothing says how much memory there is, so the sizes in the plan are taken to be right.
 * Overlaps are refused as by libsplit_copy().
 *
 * Errors, after which nothing has been written (except after EXECUTOR, as for libsplit_copy()):
 *
 *   PLAN                   'plan' is not a plan of this library
 *   NULL, ALIGNMENT        plan, input, outputs, or the address of an output
 *   NUM_OUTPUTS            num_outputs is not the plan's
 *   STRUCT_SIZE, FLAGS     executor
 *   OVERFLOW               addresses beyond the end of the address space
 *   OVERLAP                an output overlaps the input, another output, the plan, 'outputs', the
 *                          executor or 'error'
 *   NOT_SHOWN_APART        an output may overlap the input or another output
 *   EXECUTOR               parallel_for failed or did not run every task
 */
LIBSPLIT_API
libsplit_status LIBSPLIT_CALL libsplit_plan_copy(const struct libsplit_plan *plan,
                                                 const void *input,
                                                 void *const *outputs,
                                                 size_t num_outputs,
                                                 const struct libsplit_executor *executor,
                                                 struct libsplit_error *error);

/**
 * Stores in 'outputs' where each wanted piece of the tensor at 'input' lies, as libsplit_view() does,
 * using a plan. Shapes, strides and bit offsets are those that libsplit_view() gives for the same
 * split; call it once to get them. Entries of pieces that are not wanted are left unchanged. The data
 * of the input is never read, so it may be in the memory of any device.
 *
 * Errors, after which no entry has changed:
 *
 *   PLAN               'plan' is not a plan of this library
 *   NULL, ALIGNMENT    plan, outputs, or an input that has elements
 *   NUM_OUTPUTS        num_outputs is not the plan's
 *   OVERFLOW           addresses beyond the end of the address space
 *   OVERLAP            'outputs' overlaps the plan or 'error'
 */
LIBSPLIT_API
libsplit_status LIBSPLIT_CALL libsplit_plan_view(const struct libsplit_plan *plan,
                                                 void *input,
                                                 void **outputs,
                                                 size_t num_outputs,
                                                 struct libsplit_error *error);

/**
 * Writes a description of a plan as text: the call, and how its bytes will be moved. It is meant for
 * people: the wording may change, and no program should parse it.
 *
 * At most 'size' bytes are written to 'buffer', including a NUL at the end; text that does not fit is
 * cut off. 'buffer' may be NULL if 'size' is 0. Returns the length of the whole text without the NUL,
 * as snprintf does; 0 if 'plan' is NULL, misaligned, or not a plan of this library.
 */
LIBSPLIT_API
size_t LIBSPLIT_CALL libsplit_plan_describe(const struct libsplit_plan *plan,
                                            char *buffer,
                                            size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LIBSPLIT_H */


#ifndef LIBSPLIT_OUTPUTS_INIT_H_
#define LIBSPLIT_OUTPUTS_INIT_H_
#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes descriptors for 'num_outputs' outputs of up to 'rank' axes, ready for libsplit_infer() and
 * libsplit_view(). Their shapes and strides will be in 'ints', which must have room for
 * 2 * num_outputs * rank integers. libsplit_infer() fills in packed strides; if the outputs are to
 * be packed, you may also set strides to NULL.
 */
static inline void libsplit_outputs_init(libsplit_tensor *outputs, size_t num_outputs,
                                         int64_t *ints, int32_t rank) {
  size_t i;
  for (i = 0; i < num_outputs; i++) {
    libsplit_tensor output = LIBSPLIT_TENSOR_INIT;
    output.shape = ints + 2 * i * (size_t)rank;
    output.strides = output.shape + rank;
    output.capacity = rank > 0 ? rank : 1; /* all zero would be unwanted */
    outputs[i] = output;
  }
}

#ifdef __cplusplus
}
#endif
#endif  /* LIBSPLIT_OUTPUTS_INIT_H_ */
