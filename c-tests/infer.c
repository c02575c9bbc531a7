/*
 * infer.c - what libsplit_count() and libsplit_infer() say about the outputs, with known and with
 * unknown extents and lengths
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#define SPLIT LIBSPLIT_OP_ONNX_SPLIT
#define SEQUENCE LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE
#define VARIADIC LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT
#define OV_SPLIT LIBSPLIT_OP_OPENVINO_SPLIT

#define MAX_OUTPUTS 8
#define GUARD INT64_C(0x5A5A5A5A5A5A5A5A)

struct row {
    const char *name;
    libsplit_op op;
    int32_t opset;
    libsplit_dtype dtype; /* 0: FLOAT */
    int32_t rank;
    int64_t shape[4]; /* -1: unknown */
    int64_t axis;
    const libsplit_tensor *split;
    int64_t num_outputs;
    int drops_axis;
    uint32_t flags;
    /* shape/strides/data_bytes of each output; "?" if unknown, strides "*" if they do not
     * matter. */
    const char *outputs;
    libsplit_status status; /* if there are no outputs */
};

static const struct row known_rows[] = {
    {"Split-1", SPLIT, 1, .rank = 1, .shape = {6}, .split = LIST(2, 4), .outputs = "2/1/8 4/1/16"},
    {"Split-2, equal parts", SPLIT, 9, .rank = 2, .shape = {6, 2}, .num_outputs = 3,
     .outputs = "2,2/2,1/16 2,2/2,1/16 2,2/2,1/16"},
    {"Split-11", SPLIT, 11, .rank = 2, .shape = {6, 2}, .split = LIST(5, 1),
     .outputs = "5,2/2,1/40 1,2/2,1/8"},
    {"Split-13, last axis", SPLIT, 13, .rank = 2, .shape = {2, 6}, .axis = -1, .split = LIST(4, 2),
     .outputs = "2,4/4,1/32 2,2/2,1/16"},
    {"Split-18, even", SPLIT, 18, .rank = 3, .shape = {3, 4, 5}, .axis = 1, .num_outputs = 2,
     .outputs = "3,2,5/10,5,1/120 3,2,5/10,5,1/120"},
    {"Split-18, uneven", SPLIT, 18, .rank = 2, .shape = {7, 2}, .num_outputs = 3,
     .outputs = "3,2/2,1/24 3,2/2,1/24 1,2/2,1/8"},
    {"Split-18, last of zero", SPLIT, 18, .rank = 1, .shape = {4}, .num_outputs = 3,
     .outputs = "2/1/8 2/1/8 0/*/0"},
    {"Split-18, below zero", SPLIT, 18, .rank = 1, .shape = {5}, .num_outputs = 4,
     .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"Split-18, clamped", SPLIT, 18, .rank = 1, .shape = {5}, .num_outputs = 4,
     .flags = LIBSPLIT_FLAG_CLAMP_UNEVEN, .outputs = "2/1/8 2/1/8 1/1/4 0/*/0"},
    {"of an empty tensor", SPLIT, 18, .rank = 3, .shape = {2, 0, 3}, .num_outputs = 2,
     .outputs = "1,0,3/*/0 1,0,3/*/0"},
    {"2^24 + 1 into 2", SPLIT, 18, .rank = 1, .shape = {16777217}, .num_outputs = 2,
     .outputs = "8388609/1/33554436 8388608/1/33554432"},
#if SIZE_MAX > UINT32_MAX
    {"2^31 + 1 into 2", SPLIT, 18, .rank = 1, .shape = {2147483649}, .num_outputs = 2,
     .outputs = "1073741825/1/4294967300 1073741824/1/4294967296"},
    {"2^40 into 3", SPLIT, 18, LIBSPLIT_DTYPE_UINT8, .rank = 1, .shape = {1099511627776},
     .num_outputs = 3,
     .outputs = "366503875926/1/366503875926 366503875926/1/366503875926 "
                "366503875924/1/366503875924"},
#endif
    {"pieces of 1", SEQUENCE, 11, .rank = 2, .shape = {2, 3}, .axis = 1,
     .outputs = "2,1/1,1/8 2,1/1,1/8 2,1/1,1/8"},
    {"pieces without axis", SEQUENCE, 11, .rank = 3, .shape = {2, 3, 5}, .axis = 1, .drops_axis = 1,
     .outputs = "2,5/5,1/40 2,5/5,1/40 2,5/5,1/40"},
    {"scalars", SEQUENCE, 24, .rank = 1, .shape = {2}, .drops_axis = 1, .outputs = "//4 //4"},
    {"no pieces", SEQUENCE, 24, .rank = 2, .shape = {0, 4}, .outputs = ""},
    {"scalar 4 of 6", SEQUENCE, 11, .rank = 1, .shape = {6}, .split = SCALAR(INT32, int32_t, 4),
     .outputs = "4/1/16 2/1/8"},
    {"list", SEQUENCE, 11, .rank = 1, .shape = {6}, .split = LIST(0, 6), .outputs = "0/*/0 6/1/24"},
    {"-1 is the rest", VARIADIC, 1, .rank = 2, .shape = {2, 6}, .axis = 1, .split = LIST(1, -1, 2),
     .outputs = "2,1/1,1/8 2,3/3,1/24 2,2/2,1/16"},
    {"more than there is", VARIADIC, 1, .rank = 1, .shape = {6}, .split = LIST(4, -1, 3),
     .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"OpenVINO Split", OV_SPLIT, 1, .rank = 2, .shape = {2, 4}, .axis = 1, .num_outputs = 2,
     .outputs = "2,2/2,1/16 2,2/2,1/16"},
    {"OpenVINO Split, uneven", OV_SPLIT, 1, .rank = 1, .shape = {7}, .num_outputs = 3,
     .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},

    {"strings, an address and a size", SEQUENCE, 11, LIBSPLIT_DTYPE_STRING, .rank = 1, .shape = {3},
     .split = LIST(1, 2), .outputs = sizeof(size_t) == 8 ? "1/1/16 2/1/32" : "1/1/8 2/1/16"},
    {"complex128", SPLIT, 13, LIBSPLIT_DTYPE_COMPLEX128, .rank = 1, .shape = {3},
     .split = LIST(1, 2), .outputs = "1/1/16 2/1/32"},
    {"4-bit, half a byte counts", VARIADIC, 1, LIBSPLIT_DTYPE_UINT4, .rank = 2, .shape = {3, 5},
     .axis = 1, .split = LIST(2, 3), .outputs = "3,2/2,1/3 3,3/3,1/5"},
    {"2-bit, part of a byte counts", VARIADIC, 1, LIBSPLIT_DTYPE_INT2, .rank = 1, .shape = {10},
     .split = LIST(1, 4, 5), .outputs = "1/1/1 4/1/1 5/1/2"},
#if SIZE_MAX > UINT32_MAX
    {"2-bit, 2^62 - 1 of them", VARIADIC, 1, LIBSPLIT_DTYPE_INT2, .rank = 1,
     .shape = {4611686018427387903}, .split = LIST(-1),
     .outputs = "4611686018427387903/1/1152921504606846976"},
#endif
};

static const struct row unknown_rows[] = {
    {"known lengths of an unknown extent", SPLIT, 13, .rank = 1, .shape = {-1}, .split = LIST(3, 1),
     .outputs = "3/1/12 1/1/4"},
    {"the same in a sequence", SEQUENCE, 11, .rank = 1, .shape = {-1}, .split = LIST(3, 1),
     .outputs = "3/1/12 1/1/4"},
    {"the rest of an unknown extent", VARIADIC, 1, .rank = 2, .shape = {-1, 2},
     .split = LIST(-1, 2), .outputs = "?,2/2,1/0 2,2/2,1/16"},
    {"equal parts of an unknown extent", SPLIT, 13, .rank = 1, .shape = {-1}, .num_outputs = 2,
     .outputs = "?/1/0 ?/1/0"},
    {"Split-18 parts of an unknown extent", SPLIT, 18, .rank = 2, .shape = {2, -1}, .axis = 1,
     .num_outputs = 3, .outputs = "2,?/?,1/0 2,?/?,1/0 2,?/?,1/0"},
    {"OpenVINO parts of an unknown extent", OV_SPLIT, 1, .rank = 1, .shape = {-1}, .num_outputs = 2,
     .outputs = "?/1/0 ?/1/0"},
    {"another extent passes through", SPLIT, 18, .rank = 2, .shape = {5, -1}, .split = LIST(2, 3),
     .outputs = "2,?/?,1/0 3,?/?,1/0"},
    {"strides outside of it are unknown", SPLIT, 18, .rank = 4, .shape = {4, 2, -1, 3},
     .num_outputs = 2, .outputs = "2,2,?,3/?,?,3,1/0 2,2,?,3/?,?,3,1/0"},
    {"nothing is known but the rank", SPLIT, 18, .rank = 3, .shape = {-1, -1, -1}, .axis = 1,
     .num_outputs = 2, .outputs = "?,?,?/?,?,1/0 ?,?,?/?,?,1/0"},
    {"chunks beside an unknown extent", SEQUENCE, 11, .rank = 2, .shape = {5, -1},
     .split = SCALAR(INT64, int64_t, 2), .outputs = "2,?/?,1/0 2,?/?,1/0 1,?/?,1/0"},
    {"dropped beside an unknown extent", SEQUENCE, 11, .rank = 2, .shape = {2, -1}, .drops_axis = 1,
     .outputs = "?/1/0 ?/1/0"},

    {"unknown lengths", SPLIT, 13, .rank = 2, .shape = {6, 2}, .split = UNKNOWN_LIST(2),
     .outputs = "?,2/2,1/0 ?,2/2,1/0"},
    {"unknown lengths of Split-18", SPLIT, 18, .rank = 2, .shape = {2, 6}, .axis = 1,
     .split = UNKNOWN_LIST(1), .outputs = "2,?/?,1/0"},
    {"unknown lengths of a sequence", SEQUENCE, 11, .rank = 1, .shape = {6},
     .split = UNKNOWN_LIST(2), .outputs = "?/1/0 ?/1/0"},
    {"unknown lengths of VariadicSplit", VARIADIC, 1, .rank = 1, .shape = {6},
     .split = UNKNOWN_LIST(3), .outputs = "?/1/0 ?/1/0 ?/1/0"},
    {"unknown lengths of an unknown extent", VARIADIC, 1, .rank = 2, .shape = {-1, 4},
     .split = UNKNOWN_LIST(2), .outputs = "?,4/4,1/0 ?,4/4,1/0"},

    {"so many pieces of 1", SEQUENCE, 11, .rank = 2, .shape = {-1, 2}, .num_outputs = 2,
     .outputs = "1,2/2,1/8 1,2/2,1/8"},
    {"so many pieces without axis", SEQUENCE, 11, .rank = 2, .shape = {-1, 2}, .num_outputs = 2,
     .drops_axis = 1, .outputs = "2/1/8 2/1/8"},
    {"so many chunks of an unknown extent", SEQUENCE, 11, .rank = 1, .shape = {-1},
     .split = SCALAR(INT64, int64_t, 2), .num_outputs = 2, .outputs = "?/1/0 ?/1/0"},
    {"so many chunks of unknown length", SEQUENCE, 11, .rank = 2, .shape = {6, 3},
     .split = UNKNOWN_SCALAR, .num_outputs = 2, .outputs = "?,3/3,1/0 ?,3/3,1/0"},

    {"known lengths do not fit a known extent", SPLIT, 18, .rank = 2, .shape = {6, -1},
     .split = LIST(2, 3), .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"known lengths exceed it beside -1", VARIADIC, 1, .rank = 2, .shape = {6, -1},
     .split = LIST(4, -1, 3), .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"parts do not divide it", SPLIT, 13, .rank = 2, .shape = {7, -1}, .num_outputs = 3,
     .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"a negative length of an unknown extent", SPLIT, 18, .rank = 1, .shape = {-1},
     .split = LIST(3, -1), .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"a sum past INT64_MAX of an unknown extent", VARIADIC, 1, .rank = 1, .shape = {-1},
     .split = LIST(INT64_MAX, -1, INT64_MAX), .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"a scalar of 0 of an unknown extent", SEQUENCE, 11, .rank = 1, .shape = {-1},
     .split = SCALAR(INT64, int64_t, 0), .status = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES},
    {"axis out of range", SPLIT, 18, .rank = 1, .shape = {-1}, .axis = 1, .num_outputs = 2,
     .status = LIBSPLIT_STATUS_ERROR_AXIS},
    {"unknown lengths of a type not taken", SPLIT, 18, .rank = 1, .shape = {-1},
     .split = &(
         const libsplit_tensor){.shape = (int64_t[]){2}, .rank = 1, .dtype = LIBSPLIT_DTYPE_INT32},
     .status = LIBSPLIT_STATUS_ERROR_SPLIT},
    {"an extent of -2", SPLIT, 18, .rank = 2, .shape = {6, -2}, .num_outputs = 2,
     .status = LIBSPLIT_STATUS_ERROR_SHAPE},
    {"the known extents overflow", SPLIT, 18, .rank = 3,
     .shape = {-1, INT64_C(1) << 40, INT64_C(1) << 40}, .num_outputs = 2,
     .status = LIBSPLIT_STATUS_ERROR_OVERFLOW},
};

/* An input of which only dtype, rank and shape can be used. */
static libsplit_tensor input_of(const struct row *row, int64_t *shape) {
    memcpy(shape, row->shape, sizeof row->shape);
    libsplit_dtype dtype = row->dtype == 0 ? LIBSPLIT_DTYPE_FLOAT : row->dtype;
    libsplit_tensor input = packed(dtype, (void *)1, row->rank, shape);
    input.data_bytes = 1;
    input.strides = (int64_t *)1;
    input.bit_offset = 3;
    return input;
}

static libsplit_params params_of(const struct row *row) {
    libsplit_params params = LIBSPLIT_PARAMS_INIT(row->op, row->opset);
    params.axis = row->axis;
    params.split = row->split;
    params.num_outputs = row->num_outputs;
    params.keepdims = !row->drops_axis;
    params.flags = row->flags;
    return params;
}

struct outputs {
    libsplit_tensor tensors[MAX_OUTPUTS];
    int64_t shapes[MAX_OUTPUTS][6], strides[MAX_OUTPUTS][6];
};

/* Output descriptors full of garbage, with room for one more entry than needed. */
static void prepare(struct outputs *outputs, int32_t rank) {
    for (size_t i = 0; i < MAX_OUTPUTS; i++) {
        for (size_t d = 0; d < 6; d++)
            outputs->shapes[i][d] = outputs->strides[i][d] = GUARD;
        outputs->tensors[i] = (libsplit_tensor){.data = (void *)(uintptr_t)(i + 1),
                                                .data_bytes = 99,
                                                .shape = outputs->shapes[i],
                                                .strides = outputs->strides[i],
                                                .rank = 99,
                                                .capacity = rank + 1,
                                                .dtype = 99,
                                                .bit_offset = 99};
    }
}

static size_t put_list(char *at, const int64_t *numbers, int32_t rank) {
    size_t length = 0;
    for (int32_t d = 0; d < rank; d++) {
        if (d > 0)
            at[length++] = ',';
        if (numbers[d] == -1)
            at[length++] = '?';
        else
            length += (size_t)sprintf(at + length, "%" PRId64, numbers[d]);
    }
    return length;
}

/* The descriptors as text, in the form of struct row's 'outputs'. */
static void describe(char *at, const libsplit_tensor *outputs, size_t count) {
    *at = '\0';
    for (const libsplit_tensor *output = outputs; output < outputs + count; output++) {
        int is_empty = 0;
        for (int32_t d = 0; d < output->rank; d++)
            is_empty |= output->shape[d] == 0;
        if (output > outputs)
            *at++ = ' ';
        at += put_list(at, output->shape, output->rank);
        *at++ = '/';
        if (is_empty)
            *at++ = '*';
        else
            at += put_list(at, output->strides, output->rank);
        at += sprintf(at, "/%zu", output->data_bytes);
    }
}

static size_t count_outputs(const char *outputs) {
    size_t count = *outputs != '\0';
    for (; *outputs != '\0'; outputs++)
        count += *outputs == ' ';
    return count;
}

static void check_rest_of(const struct outputs *outputs, size_t count, const struct row *row) {
    for (size_t i = 0; i < count; i++) {
        const libsplit_tensor *output = &outputs->tensors[i];
        CHECK(output->data == (void *)(uintptr_t)(i + 1));
        CHECK_EQ_INT(output->dtype, row->dtype == 0 ? LIBSPLIT_DTYPE_FLOAT : row->dtype);
        CHECK_EQ_INT(output->bit_offset, 0);
        CHECK_EQ_INT(output->capacity, row->rank + 1);
        CHECK(output->shape == outputs->shapes[i] && output->strides == outputs->strides[i]);
        CHECK_EQ_INT(output->shape[output->rank], GUARD);
        CHECK_EQ_INT(output->strides[output->rank], GUARD);
    }
}

static void infer_row(const struct row *row, const libsplit_tensor *input,
                      const libsplit_params *params) {
    struct outputs outputs;
    size_t expected = count_outputs(row->outputs), count = 999;
    char text[512];
    CHECK_OK(libsplit_count(input, params, &count, NULL));
    CHECK_EQ_INT(count, expected);
    prepare(&outputs, row->rank);
    CHECK_OK(libsplit_infer(input, params, outputs.tensors, expected, NULL));
    if (outputs.tensors[0].rank == 99 && expected > 0)
        return;
    describe(text, outputs.tensors, expected);
    CHECK_EQ_STR(text, row->outputs);
    check_rest_of(&outputs, expected, row);
}

static void refuse_row(const struct row *row, const libsplit_tensor *input,
                       const libsplit_params *params) {
    struct outputs outputs, before;
    /* The number of outputs that would be right, if there is one. */
    size_t given = params->num_outputs != 0 ? (size_t)params->num_outputs
                   : params->split != NULL && params->split->rank == 1
                       ? (size_t)params->split->shape[0]
                       : 2;
    size_t count = 999;
    CHECK_STATUS(libsplit_count(input, params, &count, NULL), row->status);
    CHECK_EQ_INT(count, 999);
    memset(&outputs, 0, sizeof outputs);
    prepare(&outputs, row->rank);
    memcpy(&before, &outputs, sizeof before);
    CHECK_STATUS(libsplit_infer(input, params, outputs.tensors, given, NULL), row->status);
    CHECK(memcmp(&outputs, &before, sizeof outputs) == 0);
}

static void run_rows(const char *table, const struct row *rows, size_t count) {
    for (const struct row *row = rows; row < rows + count; row++) {
        int64_t shape[4];
        libsplit_tensor input = input_of(row, shape);
        libsplit_params params = params_of(row);
        CHECK_CASE("%s: %s", table, row->name);
        (row->outputs != NULL ? infer_row : refuse_row)(row, &input, &params);
    }
}
#define RUN_ROWS(rows) run_rows(#rows, rows, sizeof rows / sizeof *rows)

static void test_as_many_parts_as_outputs_before_18(void) {
    static const int32_t opsets[] = {1, 2, 11, 13};
    for (size_t i = 0; i < sizeof opsets / sizeof *opsets; i++) {
        int64_t extent = 6;
        struct outputs outputs;
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_FLOAT, NULL, 1, &extent);
        libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, opsets[i]);
        char text[64];
        CHECK_CASE("opset %d", (int)opsets[i]);
        prepare(&outputs, 1);
        CHECK_OK(libsplit_infer(&input, &params, outputs.tensors, 3, NULL));
        describe(text, outputs.tensors, 3);
        CHECK_EQ_STR(text, "2/1/8 2/1/8 2/1/8");
        size_t count = 999;
        CHECK_STATUS(libsplit_count(&input, &params, &count, NULL),
                     LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS);
        CHECK_EQ_INT(count, 999);
    }
}

/* If nobody says how many pieces a sequence of unknown length has, it is unknown. */
static void test_number_of_pieces_not_known_yet(void) {
    const struct {
        const char *name;
        int64_t extent;
        const libsplit_tensor *split;
    } cases[] = {
        {"pieces of an unknown extent", -1, NULL},
        {"chunks of an unknown extent", -1, SCALAR(INT64, int64_t, 2)},
        {"chunks of unknown length", 6, UNKNOWN_SCALAR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t extent = cases[i].extent;
        size_t count = 999;
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_FLOAT, NULL, 1, &extent);
        libsplit_params params = LIBSPLIT_PARAMS_INIT(SEQUENCE, 11);
        params.split = cases[i].split;
        CHECK_CASE("number of %s", cases[i].name);
        CHECK_STATUS(libsplit_count(&input, &params, &count, NULL),
                     LIBSPLIT_STATUS_ERROR_COUNT_UNKNOWN);
        CHECK_EQ_INT(count, 999);
    }
}

static void test_strides_may_be_null(void) {
    int64_t shape[2] = {4, 3}, shapes[2][2];
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, shape), outputs[2];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.num_outputs = 2;
    for (int i = 0; i < 2; i++)
        outputs[i] = (libsplit_tensor){.shape = shapes[i], .capacity = 2};
    CHECK_CASE("strides NULL");
    CHECK_OK(libsplit_infer(&input, &params, outputs, 2, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK(outputs[i].strides == NULL);
        CHECK_EQ_INT(outputs[i].rank, 2);
        CHECK(outputs[i].shape[0] == 2 && outputs[i].shape[1] == 3);
        CHECK_EQ_INT(outputs[i].data_bytes, 6);
    }
}

static void test_capacity_is_the_rank_or_more(void) {
    for (int32_t capacity = -1; capacity <= 4; capacity++) {
        int64_t shape[3] = {2, 3, 4}, out_shape[3] = {GUARD, GUARD, GUARD};
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 3, shape);
        libsplit_tensor output = {.shape = out_shape, .capacity = capacity};
        libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
        params.num_outputs = 1;
        int fits = capacity >= 3;
        CHECK_CASE("capacity %d of rank 3", (int)capacity);
        CHECK_STATUS(libsplit_infer(&input, &params, &output, 1, NULL),
                     fits ? LIBSPLIT_STATUS_OK : LIBSPLIT_STATUS_ERROR_CAPACITY);
        CHECK_EQ_INT(output.capacity, capacity);
        CHECK_EQ_INT(output.rank, fits ? 3 : 0);
        CHECK_EQ_INT(out_shape[2], fits ? 4 : GUARD);
    }
}

static void test_unwanted_outputs_are_left_alone(void) {
    int64_t extent = 6, shapes[2];
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, &extent);
    libsplit_tensor outputs[3] = {{0}}, unwanted = {0};
    outputs[0] = (libsplit_tensor){.shape = &shapes[0], .capacity = 1};
    outputs[2] = (libsplit_tensor){.shape = &shapes[1], .capacity = 1};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    params.split = LIST(1, 2, 3);
    CHECK_CASE("unwanted output");
    CHECK_OK(libsplit_infer(&input, &params, outputs, 3, NULL));
    CHECK(memcmp(&outputs[1], &unwanted, sizeof unwanted) == 0);
    CHECK_EQ_INT(shapes[0], 1);
    CHECK_EQ_INT(shapes[1], 3);
}

static void test_no_outputs_may_be_null(void) {
    int64_t extent = 0;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, &extent);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SEQUENCE, 11);
    CHECK_CASE("no outputs");
    CHECK_OK(libsplit_infer(&input, &params, NULL, 0, NULL));
}

/* What the manual does for a sequence: infer, allocate data_bytes, set data, copy. */
static void test_inferred_outputs_are_ready_for_copy(void) {
    char source[] = "abcdefghijkl", pieces[] = "............";
    int64_t shape[2] = {2, 6}, shapes[3][2], strides[3][2];
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 2, shape), outputs[3];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.axis = -1;
    params.num_outputs = 3;
    for (int i = 0; i < 3; i++)
        outputs[i] = (libsplit_tensor){.shape = shapes[i], .strides = strides[i], .capacity = 2};
    CHECK_CASE("infer, then copy");
    CHECK_OK(libsplit_infer(&input, &params, outputs, 3, NULL));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(outputs[i].data_bytes, 4);
        outputs[i].data = pieces + 4 * i;
    }
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    CHECK_EQ_STR(pieces, "abghcdijefkl");
}

static void test_success_clears_the_error(void) {
    int64_t extent = 6;
    size_t count = 0;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, &extent);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    params.num_outputs = -1;
    CHECK_CASE("an error, then success");
    CHECK_STATUS(libsplit_count(&input, &params, &count, &error),
                 LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS);
    CHECK_STATUS(error.status, LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS);
    CHECK(error.message[0] != '\0');
    params.num_outputs = 2;
    CHECK_OK(libsplit_count(&input, &params, &count, &error));
    CHECK_OK(error.status);
    CHECK_EQ_INT(error.output_index, -1);
    CHECK_EQ_INT(error.expected, 0);
    CHECK_EQ_INT(error.actual, 0);
    CHECK_EQ_STR(error.message, "");
}

#if SIZE_MAX > UINT32_MAX
/* Counting needs no outputs, so large numbers cost nothing. */
static void test_counts_past_2_to_the_31(void) {
    int64_t extent = INT64_C(1) << 40;
    size_t count = 0;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, &extent);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SEQUENCE, 11);
    CHECK_CASE("2^40 pieces of 1");
    CHECK_OK(libsplit_count(&input, &params, &count, NULL));
    CHECK_EQ_INT(count, INT64_C(1) << 40);
    params.split = SCALAR(INT64, int64_t, 3);
    CHECK_OK(libsplit_count(&input, &params, &count, NULL));
    CHECK_EQ_INT(count, 366503875926);
}
#endif

int main(void) {
    CHECK_START();
    RUN_ROWS(known_rows);
    RUN_ROWS(unknown_rows);
    test_as_many_parts_as_outputs_before_18();
    test_number_of_pieces_not_known_yet();
    test_strides_may_be_null();
    test_capacity_is_the_rank_or_more();
    test_unwanted_outputs_are_left_alone();
    test_no_outputs_may_be_null();
    test_inferred_outputs_are_ready_for_copy();
    test_success_clears_the_error();
#if SIZE_MAX > UINT32_MAX
    test_counts_past_2_to_the_31();
#endif
    CHECK_DONE();
}
