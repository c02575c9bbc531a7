/*
 * copy.c - what libsplit_copy() writes, for every operator version, type and rank, compared with
 * values written out by hand
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */

#include "check.h"
#include "system.h"

#include <math.h>

#define SPLIT LIBSPLIT_OP_ONNX_SPLIT
#define SEQUENCE LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE
#define VARIADIC LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT
#define OV_SPLIT LIBSPLIT_OP_OPENVINO_SPLIT

#define MARGIN 32
#define MAX_PIECES 16
#define NO_PIECES "none"

/* One split of a tensor whose elements are letters. */
struct row {
    const char *name;
    libsplit_op op;
    int32_t opset;
    libsplit_dtype dtype; /* 0: UINT8 */
    const char *input;    /* one letter for each element */
    int32_t rank;         /* 0: one axis, with as many elements as there are letters */
    int64_t shape[3];
    int64_t axis;
    const libsplit_tensor *split;
    int64_t num_outputs;
    int drops_axis; /* keepdims is 0, and takes effect */
    int keepdims_0; /* keepdims is 0, and has no effect */
    uint32_t flags;
    const char *pieces;     /* the outputs' letters, '|' between outputs */
    libsplit_status status; /* if there are no pieces */
    size_t outputs;         /* how many are passed then */
};

#define MATRIX(...)                                                                                \
    &(const libsplit_tensor){                                                                      \
        .data = (int64_t[]){__VA_ARGS__},                                                          \
        .shape = (int64_t[]){1, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)},               \
        .rank = 2,                                                                                 \
        .dtype = LIBSPLIT_DTYPE_INT64}
/* Packed 4-bit and 2-bit lengths, as bytes. */
#define PACKED(number, count, ...)                                                                 \
    &(const libsplit_tensor){.data = (unsigned char[]){__VA_ARGS__},                               \
                             .shape = (int64_t[]){count},                                          \
                             .rank = 1,                                                            \
                             .dtype = LIBSPLIT_DTYPE_##number}

#define F32 LIBSPLIT_DTYPE_FLOAT
#define F16 LIBSPLIT_DTYPE_FLOAT16
#define F64 LIBSPLIT_DTYPE_DOUBLE
#define BF16 LIBSPLIT_DTYPE_BFLOAT16
#define CLAMP LIBSPLIT_FLAG_CLAMP_UNEVEN
#define BAD_SPLIT LIBSPLIT_STATUS_ERROR_SPLIT
#define BAD_SIZES LIBSPLIT_STATUS_ERROR_SPLIT_SIZES
#define BAD_NUMBER LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS
#define BAD_TYPE LIBSPLIT_STATUS_ERROR_DTYPE

static const struct row split_rows[] = {
    {"Split-1, lengths of the attribute", SPLIT, 1, F32, "abcdef", .split = LIST(2, 4),
     .pieces = "ab|cdef"},
    {"Split-1, lengths as float", SPLIT, 1, F32, "abcdef",
     .split = LENGTHS(FLOAT, float, 2.0f, 4.0f), .pieces = "ab|cdef"},
    {"Split-1, lengths as double", SPLIT, 1, F64, "abcdef",
     .split = LENGTHS(DOUBLE, double, 1.0, 2.0, 3.0), .pieces = "a|bc|def"},
    {"Split-1, lengths as float16: 2, 4", SPLIT, 1, F16, "abcdef",
     .split = LENGTHS(FLOAT16, uint16_t, 0x4000, 0x4400), .pieces = "ab|cdef"},
    {"Split-1, lengths of negative zero", SPLIT, 1, F32, "abc",
     .split = LENGTHS(FLOAT, float, -0.0f, 3.0f), .pieces = "|abc"},
    {"Split-1, as many parts as outputs", SPLIT, 1, F32, "abcdef", .pieces = "ab|cd|ef"},
    {"Split-1, one output", SPLIT, 1, F16, "abcdef", .pieces = "abcdef"},
    {"Split-1, uneven", SPLIT, 1, F32, "abcdefg", .status = BAD_SIZES, .outputs = 3},
    {"Split-1, half a length", SPLIT, 1, F32, "abcdef", .split = LENGTHS(FLOAT, float, 1.5f, 4.5f),
     .status = BAD_SIZES, .outputs = 2},
    {"Split-1, length not a number", SPLIT, 1, F32, "abcdef",
     .split = LENGTHS(FLOAT, float, NAN, 6.0f), .status = BAD_SIZES, .outputs = 2},
    {"Split-1, infinite length", SPLIT, 1, F64, "abcdef",
     .split = LENGTHS(DOUBLE, double, INFINITY, 6.0), .status = BAD_SIZES, .outputs = 2},
    {"Split-1, infinite float16 length", SPLIT, 1, F16, "abcdef",
     .split = LENGTHS(FLOAT16, uint16_t, 0x4600, 0x7C00), .status = BAD_SIZES, .outputs = 2},
    {"Split-1, negative float length", SPLIT, 1, F32, "abcdef",
     .split = LENGTHS(FLOAT, float, -1.0f, 7.0f), .status = BAD_SIZES, .outputs = 2},
    {"Split-1, length of 2^63", SPLIT, 1, F64, "abcdef",
     .split = LENGTHS(DOUBLE, double, 0x1p63, 6.0), .status = BAD_SIZES, .outputs = 2},
    {"Split-1, lengths of another type than the input", SPLIT, 1, F32, "abcdef",
     .split = LENGTHS(DOUBLE, double, 2.0, 4.0), .status = BAD_SPLIT, .outputs = 2},
    {"Split-1, int32 lengths", SPLIT, 1, F32, "abcdef", .split = LENGTHS(INT32, int32_t, 2, 4),
     .status = BAD_SPLIT, .outputs = 2},

    {"Split-2", SPLIT, 2, .input = "abcdef", .split = LIST(1, 5), .pieces = "a|bcdef"},
    {"Split-2, equal parts", SPLIT, 2, .input = "abcdef", .pieces = "abc|def"},
    {"opset 9 is Split-2: uint8 allowed", SPLIT, 9, .input = "abcdef", .split = LIST(2, 4),
     .pieces = "ab|cdef"},
    {"opset 1 is Split-1: uint8 not allowed", SPLIT, 1, .input = "abcdef", .split = LIST(2, 4),
     .status = BAD_TYPE, .outputs = 2},
    {"Split-2 takes no float lengths", SPLIT, 9, F32, "abcdef",
     .split = LENGTHS(FLOAT, float, 2.0f, 4.0f), .status = BAD_SPLIT, .outputs = 2},
    {"Split-11", SPLIT, 11, .input = "abcdef", .split = LIST(2, 2, 2), .pieces = "ab|cd|ef"},
    {"Split-11, equal parts, said twice", SPLIT, 11, .input = "abcdef", .num_outputs = 3,
     .pieces = "ab|cd|ef"},
    {"opset 12 is Split-11: no bfloat16", SPLIT, 12, BF16, "abcdef", .status = BAD_TYPE,
     .outputs = 2},
    {"Split-13, lengths", SPLIT, 13, BF16, "abcdef", .split = LIST(4, 2), .pieces = "abcd|ef"},
    {"Split-13, lengths and their number", SPLIT, 13, .input = "abcdef", .split = LIST(4, 2),
     .num_outputs = 2, .pieces = "abcd|ef"},
    {"Split-13, equal parts", SPLIT, 13, .input = "abcdef", .pieces = "ab|cd|ef"},
    {"Split-18, lengths", SPLIT, 18, .input = "abcdef", .split = LIST(3, 1, 2),
     .pieces = "abc|d|ef"},
    {"Split-18, even", SPLIT, 18, .input = "abcdef", .num_outputs = 2, .pieces = "abc|def"},
    {"opset 20 is Split-18: uneven allowed", SPLIT, 20, .input = "abcdefg", .num_outputs = 3,
     .pieces = "abc|def|g"},
    {"opset 17 is Split-13: uneven not allowed", SPLIT, 17, .input = "abcdefg", .num_outputs = 3,
     .status = BAD_SIZES, .outputs = 3},
    {"the largest opset", SPLIT, INT32_MAX, .input = "abc", .num_outputs = 2, .pieces = "ab|c"},

    {"first of two axes", SPLIT, 18, .input = "abcdef", .rank = 2, .shape = {2, 3},
     .split = LIST(1, 1), .pieces = "abc|def"},
    {"last of two axes", SPLIT, 18, .input = "abcdef", .rank = 2, .shape = {2, 3}, .axis = 1,
     .split = LIST(1, 2), .pieces = "ad|bcef"},
    {"first of three axes", SPLIT, 13, .input = "abcdefghijkl", .rank = 3, .shape = {3, 2, 2},
     .split = LIST(2, 1), .pieces = "abcdefgh|ijkl"},
    {"middle of three axes", SPLIT, 13, .input = "abcdefghijkl", .rank = 3, .shape = {2, 2, 3},
     .axis = 1, .split = LIST(1, 1), .pieces = "abcghi|defjkl"},
    {"last of three axes", SPLIT, 2, .input = "abcdefghijkl", .rank = 3, .shape = {2, 2, 3},
     .axis = 2, .split = LIST(2, 1), .pieces = "abdeghjk|cfil"},
    {"zero-length piece of two axes", SPLIT, 18, .input = "abcdef", .rank = 2, .shape = {2, 3},
     .axis = 1, .split = LIST(1, 0, 2), .pieces = "ad||bcef"},
};

/* ONNX Split in the table "Decisions" of the project's rules. */
static const struct row decision_rows[] = {
    {"7 into 3", SPLIT, 18, .input = "abcdefg", .num_outputs = 3, .pieces = "abc|def|g"},
    {"8 into 3", SPLIT, 18, .input = "abcdefgh", .num_outputs = 3, .pieces = "abc|def|gh"},
    {"4 into 3", SPLIT, 18, .input = "abcd", .num_outputs = 3, .pieces = "ab|cd|"},
    {"6 into 4", SPLIT, 18, .input = "abcdef", .num_outputs = 4, .pieces = "ab|cd|ef|"},
    {"1 into 2", SPLIT, 18, .input = "a", .num_outputs = 2, .pieces = "a|"},
    {"5 into 4", SPLIT, 18, .input = "abcde", .num_outputs = 4, .status = BAD_SIZES, .outputs = 4},
    {"2 into 4", SPLIT, 18, .input = "ab", .num_outputs = 4, .status = BAD_SIZES, .outputs = 4},
    {"10 into 7", SPLIT, 18, .input = "abcdefghij", .num_outputs = 7, .status = BAD_SIZES,
     .outputs = 7},
    {"5 into 4, clamped", SPLIT, 18, .input = "abcde", .num_outputs = 4, .flags = CLAMP,
     .pieces = "ab|cd|e|"},
    {"2 into 4, clamped", SPLIT, 18, .input = "ab", .num_outputs = 4, .flags = CLAMP,
     .pieces = "a|b||"},
    {"10 into 7, clamped", SPLIT, 18, .input = "abcdefghij", .num_outputs = 7, .flags = CLAMP,
     .pieces = "ab|cd|ef|gh|ij||"},
    {"7 into 3: nothing to clamp", SPLIT, 18, .input = "abcdefg", .num_outputs = 3, .flags = CLAMP,
     .pieces = "abc|def|g"},
    {"Split-13 does not clamp", SPLIT, 13, .input = "abcde", .num_outputs = 4, .flags = CLAMP,
     .status = BAD_SIZES, .outputs = 4},
    {"0 into 3", SPLIT, 18, .input = "", .num_outputs = 3, .pieces = "||"},
    {"num_outputs 3, 2 given", SPLIT, 18, .input = "abcdef", .num_outputs = 3, .status = BAD_NUMBER,
     .outputs = 2},
    {"num_outputs 2, 3 given", SPLIT, 18, .input = "abcdef", .num_outputs = 2, .status = BAD_NUMBER,
     .outputs = 3},
    {"neither lengths nor num_outputs", SPLIT, 18, .input = "abcdef", .status = BAD_SPLIT,
     .outputs = 2},
    {"both lengths and num_outputs", SPLIT, 18, .input = "abcdef", .split = LIST(2, 4),
     .num_outputs = 2, .status = BAD_SPLIT, .outputs = 2},
    {"num_outputs -1", SPLIT, 18, .input = "abcdef", .num_outputs = -1, .status = BAD_NUMBER,
     .outputs = 2},
    {"num_outputs INT64_MIN", SPLIT, 18, .input = "abcdef", .num_outputs = INT64_MIN,
     .status = BAD_NUMBER, .outputs = 2},
    {"num_outputs 2^40", SPLIT, 18, .input = "abcdef", .num_outputs = INT64_C(1) << 40,
     .status = BAD_NUMBER, .outputs = 2},
    {"lengths -1, 7 of 6", SPLIT, 18, .input = "abcdef", .split = LIST(-1, 7), .status = BAD_SIZES,
     .outputs = 2},
    {"lengths 6, -2 of 4", SPLIT, 13, .input = "abcd", .split = LIST(6, -2), .status = BAD_SIZES,
     .outputs = 2},
    {"lengths too short", SPLIT, 18, .input = "abcdef", .split = LIST(2, 3), .status = BAD_SIZES,
     .outputs = 2},
    {"lengths too long", SPLIT, 18, .input = "abcdef", .split = LIST(2, 5), .status = BAD_SIZES,
     .outputs = 2},
    {"lengths whose sum wraps to 6", SPLIT, 18, .input = "abcdef",
     .split = LIST(INT64_MAX, INT64_MAX, 8), .status = BAD_SIZES, .outputs = 3},
    {"zero lengths", SPLIT, 18, .input = "abcdef", .split = LIST(0, 6, 0), .pieces = "|abcdef|"},
    {"zero lengths of nothing", SPLIT, 18, .input = "", .split = LIST(0, 0), .pieces = "|"},
    {"scalar lengths", SPLIT, 18, .input = "abcdef", .split = SCALAR(INT64, int64_t, 6),
     .status = BAD_SPLIT, .outputs = 1},
    {"lengths of rank 2", SPLIT, 18, .input = "abcdef", .split = MATRIX(2, 4), .status = BAD_SPLIT,
     .outputs = 2},
    {"int32 lengths", SPLIT, 18, .input = "abcdef", .split = LENGTHS(INT32, int32_t, 2, 4),
     .status = BAD_SPLIT, .outputs = 2},
    {"Split-2: 7 into 3", SPLIT, 2, .input = "abcdefg", .status = BAD_SIZES, .outputs = 3},
    {"Split-11: 7 into 3", SPLIT, 11, .input = "abcdefg", .status = BAD_SIZES, .outputs = 3},
    {"Split-13: 7 into 3", SPLIT, 13, .input = "abcdefg", .status = BAD_SIZES, .outputs = 3},
};

static const struct row sequence_rows[] = {
    {"pieces of 1", SEQUENCE, 11, .input = "abc", .pieces = "a|b|c"},
    {"pieces of 1 without axis", SEQUENCE, 11, .input = "abc", .drops_axis = 1, .pieces = "a|b|c"},
    {"columns", SEQUENCE, 24, .input = "abcdef", .rank = 2, .shape = {2, 3}, .axis = 1,
     .pieces = "ad|be|cf"},
    {"columns without axis", SEQUENCE, 24, .input = "abcdef", .rank = 2, .shape = {2, 3}, .axis = 1,
     .drops_axis = 1, .pieces = "ad|be|cf"},
    {"rows without axis", SEQUENCE, 11, .input = "abcdef", .rank = 2, .shape = {2, 3},
     .drops_axis = 1, .pieces = "abc|def"},
    {"middle axis dropped", SEQUENCE, 11, .input = "abcdefgh", .rank = 3, .shape = {2, 2, 2},
     .axis = 1, .drops_axis = 1, .pieces = "abef|cdgh"},
    {"their number, said", SEQUENCE, 11, .input = "abc", .num_outputs = 3, .pieces = "a|b|c"},
    {"their number, said wrongly", SEQUENCE, 11, .input = "abc", .num_outputs = 2,
     .status = BAD_NUMBER, .outputs = 3},
    {"nothing, no pieces", SEQUENCE, 11, .input = "", .pieces = NO_PIECES},
    {"nothing, no pieces without axis", SEQUENCE, 11, .input = "", .drops_axis = 1,
     .pieces = NO_PIECES},
    {"list", SEQUENCE, 11, .input = "abcdef", .split = LIST(1, 2, 3), .pieces = "a|bc|def"},
    {"int32 list", SEQUENCE, 11, .input = "abcdef", .split = LENGTHS(INT32, int32_t, 1, 2, 3),
     .pieces = "a|bc|def"},
    {"keepdims 0 does not count with a list", SEQUENCE, 11, .input = "abc", .keepdims_0 = 1,
     .split = LIST(1, 1, 1), .pieces = "a|b|c"},
    {"keepdims 0 does not count with scalar 1", SEQUENCE, 11, .input = "abc", .keepdims_0 = 1,
     .split = SCALAR(INT64, int64_t, 1), .pieces = "a|b|c"},
    {"scalar 0", SEQUENCE, 11, .input = "abcdef", .split = SCALAR(INT64, int64_t, 0),
     .status = BAD_SIZES, .outputs = 2},
    {"scalar -1", SEQUENCE, 11, .input = "abcdef", .split = SCALAR(INT64, int64_t, -1),
     .status = BAD_SIZES, .outputs = 2},
    {"scalar INT64_MIN", SEQUENCE, 11, .input = "abcdef",
     .split = SCALAR(INT64, int64_t, INT64_MIN), .status = BAD_SIZES, .outputs = 2},
    {"scalar 3 of 6", SEQUENCE, 11, .input = "abcdef", .split = SCALAR(INT64, int64_t, 3),
     .pieces = "abc|def"},
    {"scalar 4 of 6", SEQUENCE, 11, .input = "abcdef", .split = SCALAR(INT64, int64_t, 4),
     .pieces = "abcd|ef"},
    {"int32 scalar 4 of 6", SEQUENCE, 24, .input = "abcdef", .split = SCALAR(INT32, int32_t, 4),
     .pieces = "abcd|ef"},
    {"scalar 10 of 6", SEQUENCE, 11, .input = "abcdef", .split = SCALAR(INT64, int64_t, 10),
     .pieces = "abcdef"},
    {"scalar INT64_MAX of 6", SEQUENCE, 11, .input = "abcdef",
     .split = SCALAR(INT64, int64_t, INT64_MAX), .pieces = "abcdef"},
    {"scalar 2 of nothing", SEQUENCE, 11, .input = "", .split = SCALAR(INT64, int64_t, 2),
     .pieces = NO_PIECES},
    {"list with zeros", SEQUENCE, 11, .input = "abc", .split = LIST(0, 3, 0), .pieces = "|abc|"},
    {"list of one 2, of 6", SEQUENCE, 11, .input = "abcdef", .split = LIST(2), .status = BAD_SIZES,
     .outputs = 1},
    {"list of one 6", SEQUENCE, 11, .input = "abcdef", .split = LIST(6), .pieces = "abcdef"},
    {"empty list of nothing", SEQUENCE, 11, .input = "", .split = EMPTY_LIST, .pieces = NO_PIECES},
    {"empty list of 6", SEQUENCE, 11, .input = "abcdef", .split = EMPTY_LIST, .status = BAD_SIZES,
     .outputs = 0},
    {"negative entry", SEQUENCE, 11, .input = "abcdef", .split = LIST(7, -1), .status = BAD_SIZES,
     .outputs = 2},
    {"lengths of rank 2", SEQUENCE, 11, .input = "abcd", .split = MATRIX(1, 3), .status = BAD_SPLIT,
     .outputs = 2},
    {"int16 lengths", SEQUENCE, 11, .input = "abcd", .split = LENGTHS(INT16, int16_t, 1, 3),
     .status = BAD_SPLIT, .outputs = 2},
    {"float lengths", SEQUENCE, 11, .input = "abcd", .split = LENGTHS(FLOAT, float, 1, 3),
     .status = BAD_SPLIT, .outputs = 2},
    {"bfloat16 from 24 on", SEQUENCE, 24, BF16, "ab", .pieces = "a|b"},
    {"no bfloat16 before 24", SEQUENCE, 23, BF16, "ab", .status = BAD_TYPE, .outputs = 2},
};

static const struct row openvino_rows[] = {
    {"list", VARIADIC, 1, .input = "abcdef", .split = LIST(1, 2, 3), .pieces = "a|bc|def"},
    {"opset 0", VARIADIC, 0, .input = "abcdef", .split = LIST(1, 2, 3), .pieces = "a|bc|def"},
    {"-1 first", VARIADIC, 1, .input = "abcdef", .split = LIST(-1, 1), .pieces = "abcde|f"},
    {"-1 between", VARIADIC, 1, .input = "abcdef", .split = LIST(2, -1, 1), .pieces = "ab|cde|f"},
    {"-1 for nothing", VARIADIC, 1, .input = "abcdef", .split = LIST(2, -1, 4),
     .pieces = "ab||cdef"},
    {"-1 for everything", VARIADIC, 1, .input = "abcdef", .split = LIST(-1), .pieces = "abcdef"},
    {"-1 of nothing", VARIADIC, 1, .input = "", .split = LIST(0, -1), .pieces = "|"},
    {"columns", VARIADIC, 1, .input = "abcdef", .rank = 2, .shape = {2, 3}, .axis = 1,
     .split = LIST(1, -1), .pieces = "ad|bcef"},
    {"int8 lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(INT8, int8_t, 2, -1, 3),
     .pieces = "ab|c|def"},
    {"int16 lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(INT16, int16_t, 2, -1, 3),
     .pieces = "ab|c|def"},
    {"int32 lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(INT32, int32_t, 2, -1, 3),
     .pieces = "ab|c|def"},
    {"uint8 lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(UINT8, uint8_t, 2, 1, 3),
     .pieces = "ab|c|def"},
    {"uint16 lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(UINT16, uint16_t, 2, 1, 3),
     .pieces = "ab|c|def"},
    {"uint32 lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(UINT32, uint32_t, 2, 1, 3),
     .pieces = "ab|c|def"},
    {"uint64 lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(UINT64, uint64_t, 2, 1, 3),
     .pieces = "ab|c|def"},
    {"uint4 lengths 2, 9, 3", VARIADIC, 1, .input = "abcdefghijklmn",
     .split = PACKED(UINT4, 3, 0x92, 0x03), .pieces = "ab|cdefghijk|lmn"},
    {"int4 lengths 2, -1, 3", VARIADIC, 1, .input = "abcdef", .split = PACKED(INT4, 3, 0xF2, 0xF3),
     .pieces = "ab|c|def"},
    {"uint2 lengths 2, 1, 3, 0, 1", VARIADIC, 1, .input = "abcdefg",
     .split = PACKED(UINT2, 5, 0x36, 0x01), .pieces = "ab|c|def||g"},
    {"int2 lengths 1, -1, 0, 1", VARIADIC, 1, .input = "abcdef", .split = PACKED(INT2, 4, 0x4D),
     .pieces = "a|bcde||f"},
    {"int4 length -8", VARIADIC, 1, .input = "abcdef", .split = PACKED(INT4, 2, 0x68),
     .status = BAD_SIZES, .outputs = 2},
    {"int2 length -2", VARIADIC, 1, .input = "abcdef", .split = PACKED(INT2, 2, 0x06),
     .status = BAD_SIZES, .outputs = 2},
    {"the others exceed it", VARIADIC, 1, .input = "abcdef", .split = LIST(4, -1, 3),
     .status = BAD_SIZES, .outputs = 3},
    {"too short without -1", VARIADIC, 1, .input = "abcdef", .split = LIST(4, 1),
     .status = BAD_SIZES, .outputs = 2},
    {"two of -1", VARIADIC, 1, .input = "abcdef", .split = LIST(-1, 4, -1), .status = BAD_SIZES,
     .outputs = 3},
    {"-2", VARIADIC, 1, .input = "abcdef", .split = LIST(-2, 8), .status = BAD_SIZES, .outputs = 2},
    {"uint64 length above INT64_MAX", VARIADIC, 1, .input = "abcdef",
     .split = LENGTHS(UINT64, uint64_t, UINT64_MAX, 2), .status = BAD_SIZES, .outputs = 2},
    {"uint32 length is not -1", VARIADIC, 1, .input = "abcdef",
     .split = LENGTHS(UINT32, uint32_t, UINT32_MAX, 2), .status = BAD_SIZES, .outputs = 2},
    {"sum past INT64_MAX beside -1", VARIADIC, 1, .input = "abcdef",
     .split = LIST(-1, INT64_MAX, INT64_MAX, 4), .status = BAD_SIZES, .outputs = 4},
    {"scalar lengths", VARIADIC, 1, .input = "abcdef", .split = SCALAR(INT64, int64_t, 6),
     .status = BAD_SPLIT, .outputs = 1},
    {"lengths of rank 2", VARIADIC, 1, .input = "abcdef", .split = MATRIX(2, 4),
     .status = BAD_SPLIT, .outputs = 2},
    {"float lengths", VARIADIC, 1, .input = "abcdef", .split = LENGTHS(FLOAT, float, 2, 4),
     .status = BAD_SPLIT, .outputs = 2},
    {"bool lengths", VARIADIC, 1, .input = "ab", .split = LENGTHS(BOOL, uint8_t, 1, 1),
     .status = BAD_SPLIT, .outputs = 2},
    {"no lengths", VARIADIC, 1, .input = "abcdef", .status = BAD_SPLIT, .outputs = 2},

    {"equal parts", OV_SPLIT, 1, .input = "abcdef", .num_outputs = 3, .pieces = "ab|cd|ef"},
    {"equal columns", OV_SPLIT, 0, .input = "abcdefgh", .rank = 2, .shape = {2, 4}, .axis = 1,
     .num_outputs = 2, .pieces = "abef|cdgh"},
    {"0 into 3", OV_SPLIT, 1, .input = "", .num_outputs = 3, .pieces = "||"},
    {"7 into 3", OV_SPLIT, 1, .input = "abcdefg", .num_outputs = 3, .status = BAD_SIZES,
     .outputs = 3},
    {"into 0", OV_SPLIT, 1, .input = "abcdef", .num_outputs = 0, .status = BAD_NUMBER,
     .outputs = 2},
    {"into -1", OV_SPLIT, 1, .input = "abcdef", .num_outputs = -1, .status = BAD_NUMBER,
     .outputs = 2},
    {"into 2^40", OV_SPLIT, 1, .input = "abcdef", .num_outputs = INT64_C(1) << 40,
     .status = BAD_NUMBER, .outputs = 2},
    {"lengths", OV_SPLIT, 1, .input = "abcdef", .num_outputs = 2, .split = LIST(3, 3),
     .status = BAD_SPLIT, .outputs = 2},
};

/* Writes letters as elements of 'size' bytes that all differ from each other. */
static void put_letters(unsigned char *at, const char *letters, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < size; k++)
            at[i * size + k] = (unsigned char)(letters[i] + 29 * (int)k);
}

static libsplit_params params_of(const struct row *row, int64_t axis) {
    libsplit_params params = LIBSPLIT_PARAMS_INIT(row->op, row->opset);
    params.axis = axis;
    params.split = row->split;
    params.num_outputs = row->num_outputs;
    params.keepdims = !(row->drops_axis || row->keepdims_0);
    params.flags = row->flags;
    return params;
}

/* Fills in the shape of an output with this many elements; returns its rank. */
static int32_t output_shape(const struct row *row, const libsplit_tensor *input, int64_t elements,
                            int64_t *shape) {
    int32_t rank = 0;
    int64_t others = 1;
    for (int32_t d = 0; d < input->rank; d++)
        others *= d == row->axis ? 1 : input->shape[d];
    for (int32_t d = 0; d < input->rank; d++)
        if (d != row->axis)
            shape[rank++] = input->shape[d];
        else if (!row->drops_axis)
            shape[rank++] = elements / others;
    return rank;
}

struct arena {
    unsigned char actual[8192], expected[8192];
    size_t used;
};

/* Makes room for an output with these letters, and notes the bytes that are expected there. */
static void *place_output(struct arena *arena, const char *letters, size_t count, size_t size) {
    size_t at = arena->used + MARGIN;
    put_letters(arena->expected + at, letters, count, size);
    arena->used = at + count * size;
    return arena->actual + at;
}

static void copy_row(const struct row *row, const libsplit_tensor *input, int64_t axis) {
    static struct arena arena;
    static int64_t shapes[MAX_PIECES][3];
    libsplit_tensor outputs[MAX_PIECES];
    size_t count = 0, size = libsplit_dtype_bits(input->dtype) / 8;
    memset(&arena, 0xA5, sizeof arena);
    arena.used = 0;
    const char *letters = row->pieces;
    while (strcmp(letters, NO_PIECES) != 0) {
        size_t elements = strcspn(letters, "|");
        void *data = place_output(&arena, letters, elements, size);
        int32_t rank = output_shape(row, input, (int64_t)elements, shapes[count]);
        outputs[count] = packed(input->dtype, data, rank, shapes[count]);
        count++;
        letters += elements;
        if (*letters++ == '\0')
            break;
    }
    libsplit_params params = params_of(row, axis);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    CHECK_OK(libsplit_copy(input, &params, outputs, count, NULL, &error));
    CHECK_EQ_STR(error.message, "");
    CHECK(memcmp(arena.actual, arena.expected, sizeof arena.actual) == 0);
}

static void refuse_row(const struct row *row, const libsplit_tensor *input, int64_t axis) {
    libsplit_tensor outputs[MAX_PIECES];
    int64_t ints[MAX_PIECES * 2 * 3];
    libsplit_params params = params_of(row, axis);
    libsplit_outputs_init(outputs, row->outputs, ints, 3);
    CHECK_STATUS(libsplit_copy(input, &params, outputs, row->outputs, NULL, NULL), row->status);
}

/* Every row runs twice: with its axis, and with the same axis counted from the back. */
static void run_rows(const char *table, const struct row *rows, size_t count) {
    for (const struct row *row = rows; row < rows + count; row++) {
        unsigned char bytes[256];
        libsplit_dtype dtype = row->dtype == 0 ? LIBSPLIT_DTYPE_UINT8 : row->dtype;
        int64_t letters = (int64_t)strlen(row->input);
        int64_t shape[3] = {letters};
        if (row->rank > 0)
            memcpy(shape, row->shape, sizeof shape);
        int32_t rank = row->rank > 0 ? row->rank : 1;
        put_letters(bytes, row->input, (size_t)letters, libsplit_dtype_bits(dtype) / 8);
        libsplit_tensor input = packed(dtype, bytes, rank, shape);
        for (int from_back = 0; from_back <= 1; from_back++) {
            int64_t axis = row->axis - (from_back ? rank : 0);
            CHECK_CASE("%s: %s, axis %d", table, row->name, (int)axis);
            (row->pieces != NULL ? copy_row : refuse_row)(row, &input, axis);
        }
    }
}
#define RUN_ROWS(rows) run_rows(#rows, rows, sizeof rows / sizeof *rows)

/* One character for each dtype, from FLOAT on; x if the operator's document lists it. */
static void test_type_constraints(void) {
    static const struct {
        libsplit_op op;
        int32_t opset;
        const char *types;
    } versions[] = {
        {SPLIT, 1, "x........xx..............."},     {SPLIT, 2, "xxxxxxxxxxxxxxx..........."},
        {SPLIT, 10, "xxxxxxxxxxxxxxx..........."},    {SPLIT, 11, "xxxxxxxxxxxxxxx..........."},
        {SPLIT, 12, "xxxxxxxxxxxxxxx..........."},    {SPLIT, 13, "xxxxxxxxxxxxxxxx.........."},
        {SPLIT, 17, "xxxxxxxxxxxxxxxx.........."},    {SPLIT, 18, "xxxxxxxxxxxxxxxx.........."},
        {SPLIT, 25, "xxxxxxxxxxxxxxxx.........."},    {SEQUENCE, 11, "xxxxxxxxxxxxxxx..........."},
        {SEQUENCE, 23, "xxxxxxxxxxxxxxx..........."}, {SEQUENCE, 24, "xxxxxxxxxxxxxxxx.........."},
        {VARIADIC, 1, "xxxxxxxxxxxxxxxxxxxxxxxxxx"},  {OV_SPLIT, 1, "xxxxxxxxxxxxxxxxxxxxxxxxxx"},
    };
    int64_t ones[2] = {1, 1}, two = 2;
    libsplit_tensor lengths = packed(LIBSPLIT_DTYPE_INT64, ones, 1, &two);
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
        for (libsplit_dtype dtype = 1; dtype <= 26; dtype++) {
            unsigned char bytes[32] = {0}, copied[16];
            libsplit_tensor input = packed(dtype, bytes, 1, &two);
            libsplit_tensor outputs[2] = {packed(dtype, copied, 1, ones), {0}};
            libsplit_params params = LIBSPLIT_PARAMS_INIT(versions[v].op, versions[v].opset);
            if (params.op == OV_SPLIT)
                params.num_outputs = 2;
            else
                params.split = &lengths;
            CHECK_CASE("op %d opset %d %s", params.op, params.opset, libsplit_dtype_name(dtype));
            CHECK_STATUS(libsplit_copy(&input, &params, outputs, 2, NULL, NULL),
                         versions[v].types[dtype - 1] == 'x' ? LIBSPLIT_STATUS_OK : BAD_TYPE);
        }
    }
}

/*
 * Two rows of 8 elements in halves, so that half a row is whole bytes for every type, with input
 * and outputs at every alignment.
 */
static void test_every_dtype_at(libsplit_dtype dtype, size_t misaligned) {
    unsigned char source[512], actual[2][256], expected[2][256];
    size_t half = libsplit_dtype_bits(dtype) / 2;
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 7 + 1);
    memset(actual, 0x5A, sizeof actual);
    memset(expected, 0x5A, sizeof expected);
    size_t to = MARGIN + (misaligned * 3) % 16;
    for (size_t row = 0; row < 2; row++)
        for (size_t piece = 0; piece < 2; piece++)
            memcpy(expected[piece] + to + row * half,
                   source + misaligned + (2 * row + piece) * half, half);
    libsplit_tensor input = packed(dtype, source + misaligned, 2, (int64_t[]){2, 8});
    libsplit_tensor outputs[2] = {packed(dtype, actual[0] + to, 2, (int64_t[]){2, 4}),
                                  packed(dtype, actual[1] + to, 2, (int64_t[]){2, 4})};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(OV_SPLIT, 1);
    params.axis = 1;
    params.num_outputs = 2;
    CHECK_CASE("%s, %zu bytes off", libsplit_dtype_name(dtype), misaligned);
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(memcmp(actual, expected, sizeof actual) == 0);
}

static void test_every_dtype_unaligned(void) {
    for (libsplit_dtype dtype = 1; dtype <= 26; dtype++)
        for (size_t misaligned = 0; misaligned < 16; misaligned++)
            test_every_dtype_at(dtype, misaligned);
}

static void test_bool_bytes_of_any_value(void) {
    unsigned char source[4] = {0, 1, 2, 0xFF}, low[2], high[2];
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_BOOL, source, 1, (int64_t[]){4});
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_BOOL, low, 1, (int64_t[]){2}),
                                  packed(LIBSPLIT_DTYPE_BOOL, high, 1, (int64_t[]){2})};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 13);
    CHECK_CASE("bool");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(memcmp(low, source, 2) == 0 && memcmp(high, source + 2, 2) == 0);
}

/* All extents are 1, except for 3 on the split axis and 2 on its neighbour. */
static void test_axis_of_rank(int32_t rank, int32_t axis) {
    int64_t shape[64], shapes[2][64];
    char source[7] = "abcdef", one[4] = "...", two[6] = ".....";
    int32_t neighbour = (axis + 1) % rank;
    int has_neighbour = neighbour != axis, is_inner = neighbour > axis;
    for (int32_t d = 0; d < rank; d++)
        shape[d] = d == axis ? 3 : d == neighbour ? 2 : 1;
    memcpy(shapes[0], shape, sizeof shape);
    memcpy(shapes[1], shape, sizeof shape);
    shapes[0][axis] = 1;
    shapes[1][axis] = 2;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_INT8, source, rank, shape);
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_INT8, one, rank, shapes[0]),
                                  packed(LIBSPLIT_DTYPE_INT8, two, rank, shapes[1])};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    int64_t lengths[2] = {1, 2}, count = 2;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    params.split = &split;
    params.axis = rank % 2 == 0 ? axis : axis - rank;
    CHECK_CASE("rank %d, axis %d", rank, axis);
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK_EQ_STR(one, !has_neighbour ? "a.." : is_inner ? "ab." : "ad.");
    CHECK_EQ_STR(two, !has_neighbour ? "bc..." : is_inner ? "cdef." : "bcef.");
}

static void test_every_rank_and_axis(void) {
    for (int32_t rank = 1; rank <= LIBSPLIT_MAX_RANK; rank++)
        for (int32_t axis = 0; axis < rank; axis++)
            test_axis_of_rank(rank, axis);
}

static void test_empty_tensors_need_no_data(void) {
    int64_t lengths[3] = {1, 0, 2}, count = 3;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.split = &split;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_DOUBLE, NULL, 2, (int64_t[]){3, 0});
    int64_t shapes[3][2] = {{1, 0}, {0, 0}, {2, 0}};
    libsplit_tensor outputs[3];
    for (int i = 0; i < 3; i++)
        outputs[i] = packed(LIBSPLIT_DTYPE_DOUBLE, NULL, 2, shapes[i]);
    CHECK_CASE("empty along another axis");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));

    CHECK_CASE("zero-length piece without data");
    double source[3] = {1, 2, 3}, first = 0, last[2] = {0, 0};
    input = packed(LIBSPLIT_DTYPE_DOUBLE, source, 1, (int64_t[]){3});
    outputs[0] = packed(LIBSPLIT_DTYPE_DOUBLE, &first, 1, &lengths[0]);
    outputs[1] = packed(LIBSPLIT_DTYPE_DOUBLE, NULL, 1, &lengths[1]);
    outputs[2] = packed(LIBSPLIT_DTYPE_DOUBLE, last, 1, &lengths[2]);
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    CHECK(first == 1 && last[0] == 2 && last[1] == 3);
}

static void test_unused_outputs_are_skipped(void) {
    char source[] = "abcdef", pieces[3][4];
    int64_t two = 2;
    for (unsigned wanted = 1; wanted < 8; wanted++) {
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 1, (int64_t[]){6});
        libsplit_tensor outputs[3] = {{0}}, before[3];
        memset(pieces, '.', sizeof pieces);
        for (unsigned i = 0; i < 3; i++)
            if (wanted >> i & 1)
                outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, pieces[i], 1, &two);
        memcpy(before, outputs, sizeof before);
        libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
        params.num_outputs = 3;
        CHECK_CASE("outputs wanted: %u", wanted);
        CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
        for (unsigned i = 0; i < 3; i++)
            CHECK(memcmp(pieces[i], wanted >> i & 1 ? source + 2 * i : "..", 2) == 0);
        CHECK(memcmp(outputs, before, sizeof before) == 0);
    }
}

static void test_lengths_with_strides(void) {
    char source[] = "abcdef", pieces[] = "............";
    int32_t stored[] = {3, 99, 2, 99, 1};
    int64_t sizes[] = {1, 2, 3}, two = 2;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT32, stored + 4, 1, (int64_t[]){3});
    split.strides = (int64_t[]){-2};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 1, (int64_t[]){6}), outputs[3];
    for (int i = 0; i < 3; i++)
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, pieces + 4 * i, 1, &sizes[i]);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SEQUENCE, 11);
    params.split = &split;
    CHECK_CASE("reversed and stepped lengths");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    CHECK_EQ_STR(pieces, "a...bc..def.");

    CHECK_CASE("one length repeated");
    stored[0] = 2;
    split.data = stored;
    split.strides = (int64_t[]){0};
    for (int i = 0; i < 3; i++)
        outputs[i].shape = &two;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    CHECK_EQ_STR(pieces, "ab..cd..eff.");
}

static void test_lengths_at_bit_offset(void) {
    char source[] = "abcdef", pieces[2][5] = {"....", "...."};
    /* Elements 0, 0, 0, 2, 0, 4: the lengths are the fourth and the sixth. */
    unsigned char stored[] = {0x00, 0x20, 0x40};
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_UINT4, stored, 1, (int64_t[]){2});
    split.strides = (int64_t[]){2};
    split.bit_offset = 12;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 1, (int64_t[]){6});
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_UINT8, pieces[0], 1, (int64_t[]){2}),
                                  packed(LIBSPLIT_DTYPE_UINT8, pieces[1], 1, (int64_t[]){4})};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    params.split = &split;
    CHECK_CASE("uint4 lengths 12 bits in");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(memcmp(pieces, "ab..\0cdef", 9) == 0);
}

static void test_16777217_into_2(void) {
    unsigned char byte = 'x';
    int64_t extent = 16777217, repeat = 0, sizes[2] = {8388609, 8388608};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, &byte, 1, &extent), outputs[2];
    input.strides = &repeat;
    unsigned char *bytes = allocate((size_t)extent + 2);
    memset(bytes, '.', (size_t)extent + 2);
    outputs[0] = packed(LIBSPLIT_DTYPE_UINT8, bytes + 1, 1, &sizes[0]);
    outputs[1] = packed(LIBSPLIT_DTYPE_UINT8, bytes + 1 + sizes[0], 1, &sizes[1]);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.num_outputs = 2;
    CHECK_CASE("16777217 into 2");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(bytes[0] == '.' && bytes[extent + 1] == '.');
    CHECK(bytes[1] == 'x' && memcmp(bytes + 1, bytes + 2, (size_t)extent - 1) == 0);
    free(bytes);
}

#if SIZE_MAX > UINT32_MAX
/* 2^40 elements that are one byte, repeated; only one small output is wanted. */
static void test_2_to_the_40_elements(void) {
    unsigned char byte = 'x';
    char piece[5] = "....";
    int64_t half = INT64_C(1) << 39, extent = 2 * half, repeat = 0, length = 3;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, &byte, 1, &extent);
    input.strides = &repeat;
    input.data_bytes = 1;
    int64_t lengths[3] = {half, length, -1}, count = 3;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count), outputs[3] = {{0}};
    outputs[1] = packed(LIBSPLIT_DTYPE_UINT8, piece, 1, &length);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    params.split = &split;
    CHECK_CASE("2^40 elements, lengths 2^39, 3, -1");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    CHECK_EQ_STR(piece, "xxx.");

    CHECK_CASE("2^40 + 5 elements in pieces of 2^39");
    extent += 5;
    libsplit_tensor scalar = packed(LIBSPLIT_DTYPE_INT64, &half, 0, NULL);
    length = 5;
    char last[7] = "......";
    memset(outputs, 0, sizeof outputs);
    outputs[2] = packed(LIBSPLIT_DTYPE_UINT8, last, 1, &length);
    params = (libsplit_params)LIBSPLIT_PARAMS_INIT(SEQUENCE, 11);
    params.split = &scalar;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    CHECK_EQ_STR(last, "xxxxx.");
}

/* A computation in float32 goes wrong at 2^24 + 1, and one in int32 at 2^31. */
static void test_2_to_the_31_in_65536_parts(void) {
    enum { PARTS = 65536, SIZE = 32768 };
    unsigned char byte = 'x', piece[SIZE + 1];
    int64_t extent = INT64_C(1) << 31, repeat = 0, size = SIZE;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, &byte, 1, &extent);
    input.strides = &repeat;
    libsplit_tensor *outputs = calloc(PARTS, sizeof *outputs);
    if (outputs == NULL)
        abort();
    outputs[PARTS - 1] = packed(LIBSPLIT_DTYPE_UINT8, piece, 1, &size);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.num_outputs = PARTS;
    memset(piece, '.', sizeof piece);
    CHECK_CASE("2^31 into 65536 parts");
    CHECK_OK(libsplit_copy(&input, &params, outputs, PARTS, NULL, NULL));
    CHECK(piece[0] == 'x' && memcmp(piece, piece + 1, SIZE - 1) == 0 && piece[SIZE] == '.');
    free(outputs);
}

/*
 * 8 GiB of addresses, of which only the pages that hold a small piece can be read: [2, 2^32] bytes,
 * or [2, 2^30] elements of 4 bytes; the piece is the last 4 bytes of each row.
 */
static void test_offsets_past_4_gib(void) {
    size_t gib = (size_t)1 << 30, page = 65536;
    unsigned char *memory = reserve_addresses(8 * gib);
    for (size_t row = 1; row <= 2; row++) {
        unsigned char *end = memory + row * 4 * gib;
        allow_access(end - page, page);
        memcpy(end - 4, row == 1 ? "abcd" : "efgh", 4);
    }
    for (int64_t size = 1; size <= 4; size *= 4) {
        libsplit_dtype dtype = size == 1 ? LIBSPLIT_DTYPE_UINT8 : LIBSPLIT_DTYPE_FLOAT;
        int64_t extent = (INT64_C(1) << 32) / size, length = 4 / size;
        libsplit_tensor input = packed(dtype, memory, 2, (int64_t[]){2, extent});
        input.data_bytes = 8 * gib;
        int64_t lengths[2] = {extent - length, length}, count = 2;
        libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
        char piece[10] = ".........";
        libsplit_tensor outputs[2] = {{0}, packed(dtype, piece, 2, (int64_t[]){2, length})};
        libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 13);
        params.split = &split;
        params.axis = 1;
        CHECK_CASE("8 GiB in elements of %d bytes", (int)size);
        CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
        CHECK_EQ_STR(piece, "abcdefgh.");
    }
    release_addresses(memory, 8 * gib);
}

/* Six rows, each a gibibyte behind the last, of which only the pages that hold the first columns
 * can be read: one kernel call goes over more than 2 GiB, and another over more than 4. */
static void test_rows_a_gib_apart(void) {
    enum { ROWS = 6, PAGE = 65536, LONGEST = 700 };
    static const int64_t lengths_of_runs[] = {5, 37, 200, LONGEST};
    int64_t gib = INT64_C(1) << 30, width = gib + 5;
    unsigned char *memory = reserve_addresses((size_t)(ROWS + 1) * (size_t)gib);
    for (int64_t row = 0; row < ROWS; row++) {
        allow_access(memory + row * gib, PAGE);
        for (int64_t i = 0; i < LONGEST; i++)
            memory[row * width + i] = (unsigned char)(i * 7 + row * 31 + i / 256);
    }
    for (size_t r = 0; r < sizeof lengths_of_runs / sizeof *lengths_of_runs; r++) {
        int64_t run = lengths_of_runs[r], lengths[2] = {run, width - run}, count = 2, wrong = 0;
        unsigned char piece[ROWS * LONGEST];
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, memory, 2, (int64_t[]){ROWS, width});
        libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
        libsplit_tensor outputs[2] = {
            packed(LIBSPLIT_DTYPE_UINT8, piece, 2, (int64_t[]){ROWS, run}), {0}};
        libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 13);
        params.split = &split;
        params.axis = 1;
        memset(piece, 0xA5, sizeof piece);
        CHECK_CASE("rows a GiB apart, runs of %d bytes", (int)run);
        CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
        for (int64_t row = 0; row < ROWS; row++)
            wrong += memcmp(piece + row * run, memory + row * width, (size_t)run) != 0;
        CHECK_EQ_INT(wrong, 0);
    }
    release_addresses(memory, (size_t)(ROWS + 1) * (size_t)gib);
}
#endif

int main(void) {
    CHECK_START();
    RUN_ROWS(split_rows);
    RUN_ROWS(decision_rows);
    RUN_ROWS(sequence_rows);
    RUN_ROWS(openvino_rows);
    test_type_constraints();
    test_every_dtype_unaligned();
    test_bool_bytes_of_any_value();
    test_every_rank_and_axis();
    test_empty_tensors_need_no_data();
    test_unused_outputs_are_skipped();
    test_lengths_with_strides();
    test_lengths_at_bit_offset();
    test_16777217_into_2();
#if SIZE_MAX > UINT32_MAX
    test_2_to_the_40_elements();
    test_2_to_the_31_in_65536_parts();
    test_offsets_past_4_gib();
    test_rows_a_gib_apart();
#endif
    CHECK_DONE();
}
