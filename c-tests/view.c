/*
 * view.c - where libsplit_view() points the outputs: addresses, strides, bit offsets and sizes,
 * without looking at the data
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */

#include "check.h"
#include "system.h"

#define SPLIT LIBSPLIT_OP_ONNX_SPLIT
#define SEQUENCE LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE
#define VARIADIC LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT

#define MAX_OUTPUTS 8
#define GUARD INT64_C(0x5A5A5A5A5A5A5A5A)

/* Where the inputs of the tables lie: at an address of some device, not of this program. */
#define DEVICE (UINTPTR_MAX / 4 + 1)

struct row {
    const char *name;
    libsplit_dtype dtype; /* 0: FLOAT */
    int32_t rank;
    int64_t shape[3];
    const int64_t *strides;
    uint32_t bit_offset;
    int64_t axis;
    const libsplit_tensor *split; /* NULL: SplitToSequence into pieces of 1 */
    int drops_axis;
    /* @bytes.bits shape/strides/data_bytes of each output, with bytes from the input's data on; '*'
     * is for what does not matter. */
    const char *outputs;
};

#define STRIDES(...) ((const int64_t[]){__VA_ARGS__})

static const struct row rows[] = {
    {"packed", .rank = 1, .shape = {6}, .split = LIST(1, 2, 3),
     .outputs = "@0.0 1/1/4 @4.0 2/1/8 @12.0 3/1/12"},
    {"first axis", .rank = 2, .shape = {3, 2}, .split = LIST(1, 2),
     .outputs = "@0.0 1,2/2,1/8 @8.0 2,2/2,1/16"},
    {"last axis", .rank = 2, .shape = {2, 3}, .axis = 1, .split = LIST(1, 2),
     .outputs = "@0.0 2,1/3,1/16 @4.0 2,2/3,1/20"},
    {"middle axis", .rank = 3, .shape = {2, 3, 2}, .axis = -2, .split = LIST(2, 1),
     .outputs = "@0.0 2,2,2/6,2,1/40 @16.0 2,1,2/6,2,1/32"},
    {"transposed", .rank = 2, .shape = {3, 2}, .strides = STRIDES(1, 3), .split = LIST(1, 2),
     .outputs = "@0.0 1,2/1,3/16 @4.0 2,2/1,3/20"},
    {"reversed", .rank = 1, .shape = {5}, .strides = STRIDES(-1), .split = LIST(2, 3),
     .outputs = "@0.0 2/-1/8 @-8.0 3/-1/12"},
    {"reversed, stepped", .rank = 1, .shape = {5}, .strides = STRIDES(-2), .split = LIST(2, 3),
     .outputs = "@0.0 2/-2/12 @-16.0 3/-2/20"},
    {"stepped", .rank = 2, .shape = {3, 4}, .strides = STRIDES(8, 2), .axis = 1,
     .split = LIST(1, 3), .outputs = "@0.0 3,1/8,2/68 @8.0 3,3/8,2/84"},
    {"repeated rows split", .rank = 2, .shape = {4, 3}, .strides = STRIDES(0, 1),
     .split = LIST(1, 3), .outputs = "@0.0 1,3/0,1/12 @0.0 3,3/0,1/12"},
    {"repeated rows cut", .rank = 2, .shape = {4, 3}, .strides = STRIDES(0, 1), .axis = 1,
     .split = LIST(1, 2), .outputs = "@0.0 4,1/0,1/4 @4.0 4,2/0,1/8"},
    {"garbage stride of an axis of 1", .rank = 2, .shape = {1, 3}, .strides = STRIDES(INT64_MIN, 1),
     .axis = 1, .split = LIST(1, 2),
     .outputs = "@0.0 1,1/-9223372036854775808,1/4 @4.0 1,2/-9223372036854775808,1/8"},
    {"a zero-length piece", .rank = 1, .shape = {3}, .split = LIST(2, 0, 1),
     .outputs = "@0.0 2/1/8 @* 0/*/0 @8.0 1/1/4"},
    {"an empty tensor", .rank = 2, .shape = {2, 0}, .strides = STRIDES(INT64_MAX, INT64_MIN),
     .split = LIST(1, 1), .outputs = "@* 1,0/*/0 @* 1,0/*/0"},

    {"rows without axis", .rank = 2, .shape = {3, 2}, .drops_axis = 1,
     .outputs = "@0.0 2/1/8 @8.0 2/1/8 @16.0 2/1/8"},
    {"columns without axis", .rank = 2, .shape = {3, 2}, .axis = 1, .drops_axis = 1,
     .outputs = "@0.0 3/2/20 @4.0 3/2/20"},
    {"middle axis dropped", .rank = 3, .shape = {2, 2, 2}, .axis = 1, .drops_axis = 1,
     .outputs = "@0.0 2,2/4,1/24 @8.0 2,2/4,1/24"},
    {"scalars", .rank = 1, .shape = {3}, .drops_axis = 1, .outputs = "@0.0 //4 @4.0 //4 @8.0 //4"},
    {"columns with axis", .rank = 2, .shape = {3, 2}, .axis = 1,
     .outputs = "@0.0 3,1/2,1/20 @4.0 3,1/2,1/20"},

    {"1 byte", LIBSPLIT_DTYPE_BOOL, .rank = 1, .shape = {3}, .split = LIST(1, 2),
     .outputs = "@0.0 1/1/1 @1.0 2/1/2"},
    {"2 bytes", LIBSPLIT_DTYPE_FLOAT16, .rank = 1, .shape = {3}, .split = LIST(1, 2),
     .outputs = "@0.0 1/1/2 @2.0 2/1/4"},
    {"8 bytes", LIBSPLIT_DTYPE_INT64, .rank = 1, .shape = {3}, .split = LIST(1, 2),
     .outputs = "@0.0 1/1/8 @8.0 2/1/16"},
    {"an address and a size", LIBSPLIT_DTYPE_STRING, .rank = 1, .shape = {3}, .split = LIST(1, 2),
     .outputs = sizeof(size_t) == 8 ? "@0.0 1/1/16 @16.0 2/1/32" : "@0.0 1/1/8 @8.0 2/1/16"},

    {"4-bit, whole bytes", LIBSPLIT_DTYPE_UINT4, .rank = 2, .shape = {2, 5}, .axis = 1,
     .split = LIST(2, 3), .outputs = "@0.0 2,2/5,1/4 @1.0 2,3/5,1/4"},
    {"4-bit, half a byte in", LIBSPLIT_DTYPE_FLOAT4E2M1, .rank = 2, .shape = {2, 5}, .axis = 1,
     .split = LIST(1, 4), .outputs = "@0.0 2,1/5,1/3 @0.4 2,4/5,1/5"},
    {"4-bit, the input half a byte in", LIBSPLIT_DTYPE_INT4, .rank = 2, .shape = {2, 5},
     .bit_offset = 4, .axis = 1, .split = LIST(1, 4), .outputs = "@0.4 2,1/5,1/4 @1.0 2,4/5,1/5"},
    {"4-bit, the input further in", LIBSPLIT_DTYPE_INT4, .rank = 1, .shape = {4}, .bit_offset = 20,
     .split = LIST(1, 3), .outputs = "@2.4 1/1/1 @3.0 3/1/2"},
    {"4-bit, transposed", LIBSPLIT_DTYPE_UINT4, .rank = 2, .shape = {3, 2},
     .strides = STRIDES(1, 3), .split = LIST(1, 2), .outputs = "@0.0 1,2/1,3/2 @0.4 2,2/1,3/3"},
    {"2-bit", LIBSPLIT_DTYPE_INT2, .rank = 1, .shape = {7}, .split = LIST(1, 2, 4),
     .outputs = "@0.0 1/1/1 @0.2 2/1/1 @0.6 4/1/2"},
    {"2-bit, reversed", LIBSPLIT_DTYPE_UINT2, .rank = 1, .shape = {6}, .strides = STRIDES(-1),
     .bit_offset = 2, .split = LIST(2, 4), .outputs = "@0.2 2/-1/1 @-1.6 4/-1/1"},

#if SIZE_MAX > UINT32_MAX
    {"2^40 elements", LIBSPLIT_DTYPE_UINT8, .rank = 1, .shape = {INT64_C(1) << 40},
     .split = LIST(INT64_C(1) << 39, 3, -1),
     .outputs = "@0.0 549755813888/1/549755813888 @549755813888.0 3/1/3 "
                "@549755813891.0 549755813885/1/549755813885"},
    {"2^40 elements of 4 bits", LIBSPLIT_DTYPE_INT4, .rank = 2, .shape = {2, INT64_C(1) << 39},
     .axis = 1, .split = LIST(3, -1),
     .outputs = "@0.0 2,3/549755813888,1/274877906946 "
                "@1.4 2,549755813885/549755813888,1/549755813887"},
#endif
};

struct outputs {
    libsplit_tensor tensors[MAX_OUTPUTS];
    int64_t shapes[MAX_OUTPUTS][4], strides[MAX_OUTPUTS][4];
};

/* Output descriptors full of garbage, with room for rank 3. */
static void prepare(struct outputs *outputs) {
    memset(outputs, 0, sizeof *outputs);
    for (size_t i = 0; i < MAX_OUTPUTS; i++) {
        for (size_t d = 0; d < 4; d++)
            outputs->shapes[i][d] = outputs->strides[i][d] = GUARD;
        outputs->tensors[i] = (libsplit_tensor){.data = (void *)1,
                                                .data_bytes = 99,
                                                .shape = outputs->shapes[i],
                                                .strides = outputs->strides[i],
                                                .rank = 99,
                                                .capacity = 3,
                                                .dtype = 99,
                                                .bit_offset = 99};
    }
}

static char *put_list(char *at, const int64_t *numbers, int32_t rank) {
    for (int32_t d = 0; d < rank; d++)
        at += sprintf(at, d > 0 ? ",%" PRId64 : "%" PRId64, numbers[d]);
    return at;
}

/* The descriptors as text, in the form of struct row's 'outputs'. */
static void describe(char *at, const libsplit_tensor *outputs, size_t count, uintptr_t base) {
    for (const libsplit_tensor *output = outputs; output < outputs + count; output++) {
        int is_empty = 0;
        for (int32_t d = 0; d < output->rank; d++)
            is_empty |= output->shape[d] == 0;
        if (output > outputs)
            *at++ = ' ';
        if (is_empty)
            at += sprintf(at, "@* ");
        else
            at += sprintf(at, "@%" PRId64 ".%" PRIu32 " ",
                          (int64_t)(intptr_t)((uintptr_t)output->data - base), output->bit_offset);
        at = put_list(at, output->shape, output->rank);
        *at++ = '/';
        if (is_empty)
            *at++ = '*';
        else
            at = put_list(at, output->strides, output->rank);
        at += sprintf(at, "/%zu", output->data_bytes);
    }
}

static libsplit_params params_of(const struct row *row) {
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    if (row->split == NULL)
        params = (libsplit_params)LIBSPLIT_PARAMS_INIT(SEQUENCE, 11);
    params.axis = row->axis;
    params.split = row->split;
    params.keepdims = !row->drops_axis;
    return params;
}

static void run_row(const struct row *row) {
    int64_t shape[3], strides[3];
    char text[512] = "";
    struct outputs outputs;
    memcpy(shape, row->shape, sizeof shape);
    libsplit_dtype dtype = row->dtype == 0 ? LIBSPLIT_DTYPE_FLOAT : row->dtype;
    libsplit_tensor input = packed(dtype, (void *)DEVICE, row->rank, shape);
    input.bit_offset = row->bit_offset;
    if (row->strides != NULL) {
        memcpy(strides, row->strides, (size_t)row->rank * sizeof *strides);
        input.strides = strides;
    }
    libsplit_params params = params_of(row);
    size_t count = (size_t)(row->split == NULL ? row->shape[row->axis] : row->split->shape[0]);
    CHECK_CASE("%s", row->name);
    prepare(&outputs);
    CHECK_OK(libsplit_view(&input, &params, outputs.tensors, count, NULL));
    if (outputs.tensors[0].rank == 99)
        return;
    describe(text, outputs.tensors, count, DEVICE);
    CHECK_EQ_STR(text, row->outputs);
    for (size_t i = 0; i < count; i++) {
        const libsplit_tensor *output = &outputs.tensors[i];
        CHECK_EQ_INT(output->dtype, dtype);
        CHECK_EQ_INT(output->capacity, 3);
        CHECK_EQ_INT(output->shape[output->rank], GUARD);
        CHECK_EQ_INT(output->strides[output->rank], GUARD);
    }
}

static void test_split_by_every_operator(void) {
    static const struct {
        libsplit_op op;
        int32_t opset;
        int by_number;
    } operators[] = {
        {SPLIT, 1, 0},  {SPLIT, 2, 1},     {SPLIT, 11, 0},   {SPLIT, 13, 1},
        {SPLIT, 18, 1}, {SEQUENCE, 24, 0}, {VARIADIC, 1, 0}, {LIBSPLIT_OP_OPENVINO_SPLIT, 1, 1},
    };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        int64_t extent = 4;
        char text[512];
        struct outputs outputs;
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_DOUBLE, (void *)DEVICE, 1, &extent);
        libsplit_params params = LIBSPLIT_PARAMS_INIT(operators[i].op, operators[i].opset);
        params.split = operators[i].by_number ? NULL : LIST(2, 2);
        params.num_outputs = operators[i].by_number ? 2 : 0;
        CHECK_CASE("op %d opset %d", (int)operators[i].op, (int)operators[i].opset);
        prepare(&outputs);
        CHECK_OK(libsplit_view(&input, &params, outputs.tensors, 2, NULL));
        describe(text, outputs.tensors, 2, DEVICE);
        CHECK_EQ_STR(text, "@0.0 2/1/16 @16.0 2/1/16");
    }
}

/* Whether a view of [2, 3], or of another shape, may do without strides. */
static void check_without_strides(const char *name, const libsplit_tensor *input, int64_t axis,
                                  libsplit_status expected) {
    int64_t shapes[2][2] = {{GUARD, GUARD}, {GUARD, GUARD}};
    libsplit_tensor outputs[2], before[2];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    params.axis = axis;
    params.split = LIST(1, -1);
    memset(outputs, 0, sizeof outputs);
    for (int i = 0; i < 2; i++) {
        outputs[i].shape = shapes[i];
        outputs[i].capacity = 2;
    }
    memcpy(before, outputs, sizeof before);
    CHECK_CASE("without strides: %s", name);
    CHECK_STATUS(libsplit_view(input, &params, outputs, 2, &error), expected);
    if (expected == LIBSPLIT_STATUS_OK) {
        CHECK(outputs[0].strides == NULL && outputs[1].strides == NULL);
        CHECK_EQ_INT(shapes[0][axis], 1);
        CHECK_EQ_INT(shapes[1][axis], input->shape[axis] - 1);
    } else {
        CHECK(error.output_index == 0 || error.output_index == 1);
        CHECK(memcmp(outputs, before, sizeof before) == 0);
        CHECK(shapes[0][0] == GUARD && shapes[1][0] == GUARD);
    }
}

static void test_strides_may_be_null_only_if_packed(void) {
    int64_t matrix[2] = {2, 3}, row[2] = {1, 3}, packed_strides[2] = {3, 1};
    int64_t padded[2] = {4, 1}, reversed[2] = {-3, 1}, repeated[2] = {0, 1}, garbage[2] = {-9, 1};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_FLOAT, (void *)DEVICE, 2, matrix);
    check_without_strides("rows", &input, 0, LIBSPLIT_STATUS_OK);
    check_without_strides("columns", &input, 1, LIBSPLIT_STATUS_ERROR_STRIDES);
    input.strides = packed_strides;
    check_without_strides("rows, strides given", &input, 0, LIBSPLIT_STATUS_OK);
    check_without_strides("columns, strides given", &input, 1, LIBSPLIT_STATUS_ERROR_STRIDES);
    input.strides = padded;
    check_without_strides("single padded rows", &input, 0, LIBSPLIT_STATUS_OK);
    input.strides = reversed;
    check_without_strides("single reversed rows", &input, 0, LIBSPLIT_STATUS_OK);
    matrix[0] = 3;
    check_without_strides("two reversed rows", &input, 0, LIBSPLIT_STATUS_ERROR_STRIDES);
    input.strides = padded;
    check_without_strides("two padded rows", &input, 0, LIBSPLIT_STATUS_ERROR_STRIDES);
    input.strides = repeated;
    check_without_strides("two repeated rows", &input, 0, LIBSPLIT_STATUS_ERROR_STRIDES);
    input.shape = row;
    input.strides = garbage;
    check_without_strides("columns of one row", &input, 1, LIBSPLIT_STATUS_OK);
}

static void test_unwanted_views_are_left_alone(void) {
    int64_t extent = 6;
    struct outputs outputs;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, (void *)DEVICE, 1, &extent);
    libsplit_tensor unwanted = {0};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    params.split = LIST(1, 2, 3);
    CHECK_CASE("unwanted output");
    prepare(&outputs);
    outputs.tensors[1] = unwanted;
    CHECK_OK(libsplit_view(&input, &params, outputs.tensors, 3, NULL));
    CHECK(memcmp(&outputs.tensors[1], &unwanted, sizeof unwanted) == 0);
    CHECK_EQ_INT(outputs.shapes[1][0], GUARD);
    CHECK((uintptr_t)outputs.tensors[2].data == DEVICE + 3);
}

static void test_data_that_cannot_be_read(void) {
    size_t bytes = 65536;
    void *memory = reserve_addresses(bytes);
    int64_t extent = (int64_t)bytes;
    struct outputs outputs;
    CHECK_CASE("memory that cannot be read");
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, memory, 1, &extent);
    input.data_bytes = bytes;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.num_outputs = 2;
    prepare(&outputs);
    CHECK_OK(libsplit_view(&input, &params, outputs.tensors, 2, NULL));
    CHECK(outputs.tensors[0].data == memory);
    CHECK(outputs.tensors[1].data == (char *)memory + bytes / 2);
    release_addresses(memory, bytes);
}

static void test_an_empty_input_needs_no_data(void) {
    int64_t shape[2] = {2, 0};
    struct outputs outputs;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.num_outputs = 2;
    CHECK_CASE("empty input, data NULL");
    prepare(&outputs);
    CHECK_OK(libsplit_view(&input, &params, outputs.tensors, 2, NULL));
    CHECK_EQ_INT(outputs.tensors[1].rank, 2);
    CHECK_EQ_INT(outputs.shapes[1][0], 1);
    CHECK_EQ_INT(outputs.tensors[1].data_bytes, 0);
}

static void test_views_of_views(void) {
    char source[] = "abcdefghijkl", column[3] = "..";
    int64_t shape[2] = {2, 6};
    struct outputs outer, inner;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 2, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.axis = 1;
    params.num_outputs = 2;
    CHECK_CASE("view of a view");
    prepare(&outer);
    CHECK_OK(libsplit_view(&input, &params, outer.tensors, 2, NULL));
    prepare(&inner);
    params.num_outputs = 3;
    CHECK_OK(libsplit_view(&outer.tensors[1], &params, inner.tensors, 3, NULL));
    CHECK((char *)inner.tensors[2].data == source + 5);
    CHECK_EQ_INT(inner.tensors[2].data_bytes, 7);
    libsplit_tensor copied = packed(LIBSPLIT_DTYPE_UINT8, column, 2, (int64_t[]){2, 1});
    params.num_outputs = 1;
    CHECK_OK(libsplit_copy(&inner.tensors[2], &params, &copied, 1, NULL, NULL));
    CHECK_EQ_STR(column, "fl");
}

/* A view copied as a whole is the same as a copy of the piece. */
static void check_view_against_copy(const libsplit_tensor *input, int64_t axis) {
    struct outputs views, direct;
    unsigned char piece[1024], copied[1024];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18), whole = params;
    params.axis = axis;
    params.num_outputs = input->shape[axis];
    whole.num_outputs = 1;
    size_t count = (size_t)params.num_outputs;
    prepare(&views);
    prepare(&direct);
    if (input->dtype > LIBSPLIT_DTYPE_BFLOAT16) {
        params.op = LIBSPLIT_OP_OPENVINO_SPLIT;
        params.opset = 1;
        whole.op = LIBSPLIT_OP_OPENVINO_SPLIT;
        whole.opset = 1;
    }
    CHECK_OK(libsplit_view(input, &params, views.tensors, count, NULL));
    CHECK_OK(libsplit_infer(input, &params, direct.tensors, count, NULL));
    for (size_t i = 0; i < count; i++) {
        libsplit_tensor only[MAX_OUTPUTS] = {{0}}, all = direct.tensors[i];
        only[i] = direct.tensors[i];
        only[i].data = piece;
        all.data = copied;
        /* Different before, so that equal means written. */
        memset(piece, 0xA5, sizeof piece);
        memset(copied, 0x5A, sizeof copied);
        CHECK_OK(libsplit_copy(input, &params, only, count, NULL, NULL));
        CHECK_OK(libsplit_copy(&views.tensors[i], &whole, &all, 1, NULL, NULL));
        CHECK(all.data_bytes > 0 && memcmp(piece, copied, all.data_bytes) == 0);
    }
}

static void test_views_copied_are_the_pieces(void) {
    static const libsplit_dtype dtypes[] = {LIBSPLIT_DTYPE_UINT8, LIBSPLIT_DTYPE_FLOAT16,
                                            LIBSPLIT_DTYPE_COMPLEX128, LIBSPLIT_DTYPE_UINT4,
                                            LIBSPLIT_DTYPE_INT2};
    static const int64_t strides[][3] = {
        {12, 4, 1}, {1, 3, 9}, {-12, 4, -1}, {0, 1, 2}, {7, 0, -5}};
    static unsigned char memory[2048];
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (unsigned char)(i * 37 + 11);
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t s = 0; s < sizeof strides / sizeof *strides; s++)
            for (int64_t axis = 0; axis < 3; axis++) {
                int64_t shape[3] = {3, 3, 4}, own[3];
                memcpy(own, strides[s], sizeof own);
                libsplit_tensor input = packed(dtypes[t], memory + 1024, 3, shape);
                input.strides = own;
                if (libsplit_dtype_bits(dtypes[t]) < 8)
                    input.bit_offset = libsplit_dtype_bits(dtypes[t]);
                CHECK_CASE("%s, strides %zu, axis %d", libsplit_dtype_name(dtypes[t]), s,
                           (int)axis);
                check_view_against_copy(&input, axis);
            }
}

int main(void) {
    CHECK_START();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_row(&rows[i]);
    test_split_by_every_operator();
    test_strides_may_be_null_only_if_packed();
    test_unwanted_views_are_left_alone();
    test_data_that_cannot_be_read();
    test_an_empty_input_needs_no_data();
    test_views_of_views();
    test_views_copied_are_the_pieces();
    CHECK_DONE();
}
