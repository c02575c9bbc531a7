/*
 * narrow.c - tensors of more elements than a 32-bit size_t can count
 *
 * Extents have 64 bits everywhere, and a repeated element takes no memory. If size_t has 64 bits,
 * all of this works; if it has 32, what cannot be counted is refused and nothing is written.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

enum { IS_WIDE = sizeof(size_t) > 4, ROW = 65537 };

#define MANY ((int64_t)1 << 33)
/* One more than 32 bits can count, so it becomes 3 if the upper bits are lost. */
#define WRAPPED (((int64_t)1 << 32) + 3)

/* Right if size_t can represent it, and refused otherwise. */
static void check_status_of(libsplit_status status) {
    if (IS_WIDE)
        CHECK_OK(status);
    else
        CHECK(status != LIBSPLIT_STATUS_OK);
}

/* The last of 2^33 elements, which all have the same address. */
static void test_a_repeated_element(void) {
    unsigned char element = 7, last = 1;
    int64_t shape[] = {MANY}, strides[] = {0}, one[] = {1};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, &element, 1, shape);
    input.strides = strides;
    libsplit_tensor outputs[] = {{0}, packed(LIBSPLIT_DTYPE_UINT8, &last, 1, one)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.split = LIST(MANY - 1, 1);
    CHECK_CASE("copy of 2^33 elements but the last");
    check_status_of(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK_EQ_INT(last, IS_WIDE ? 7 : 1);

    uint64_t memory[64];
    libsplit_plan *plan = (libsplit_plan *)memory;
    CHECK(libsplit_plan_size(1, 2) <= sizeof memory);
    CHECK_CASE("plan of 2^33 elements but the last");
    libsplit_status status =
        libsplit_plan_init(plan, sizeof memory, &input, &params, outputs, 2, NULL);
    check_status_of(status);
    last = 1;
    if (status == LIBSPLIT_STATUS_OK)
        CHECK_OK(libsplit_plan_copy(plan, &element, (void *[]){NULL, &last}, 2, NULL, NULL));
    CHECK_EQ_INT(last, IS_WIDE ? 7 : 1);
}

/* Each extent can be counted, but not their product: either it is copied, or nothing is written. */
static void test_repeated_rows(void) {
    static unsigned char row[ROW], last[ROW];
    int64_t shape[] = {65536, ROW}, strides[] = {0, 1}, one[] = {1, ROW};
    for (size_t i = 0; i < ROW; i++)
        row[i] = (unsigned char)(i * 31 % 251 + 1);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, row, 2, shape);
    input.strides = strides;
    libsplit_tensor outputs[] = {{0}, packed(LIBSPLIT_DTYPE_UINT8, last, 2, one)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.split = LIST(65535, 1);
    CHECK_CASE("the last of 65,536 rows that are one");
    libsplit_status status = libsplit_copy(&input, &params, outputs, 2, NULL, NULL);
    CHECK(status == LIBSPLIT_STATUS_OK || !IS_WIDE);
    static const unsigned char nothing[ROW];
    CHECK(memcmp(last, status == LIBSPLIT_STATUS_OK ? row : nothing, ROW) == 0);
}

static void test_a_count(void) {
    int64_t shape[] = {WRAPPED};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, 11);
    size_t count = 77;
    CHECK_CASE("pieces of a sequence");
    check_status_of(libsplit_count(&input, &params, &count, NULL));
    CHECK_EQ_INT(count, IS_WIDE ? WRAPPED : 77);
}

/* Outputs of more bytes than size_t can represent. */
static void test_bytes_of_outputs(void) {
    static const struct {
        int64_t extent;
        libsplit_dtype dtype;
        int64_t element;
    } cases[] = {{MANY, LIBSPLIT_DTYPE_UINT8, 1},
                 {MANY / 4, LIBSPLIT_DTYPE_FLOAT, 4},
                 {2 * WRAPPED, LIBSPLIT_DTYPE_UINT8, 1},
                 {MANY / 8, LIBSPLIT_DTYPE_COMPLEX128, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t shape[] = {cases[i].extent}, half[2][1] = {{0}, {0}};
        libsplit_tensor input = packed(cases[i].dtype, NULL, 1, shape);
        libsplit_tensor outputs[2] = {{.shape = half[0], .capacity = 1},
                                      {.shape = half[1], .capacity = 1}};
        libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
        params.num_outputs = 2;
        CHECK_CASE("infer of %s, case %d", libsplit_dtype_name(cases[i].dtype), (int)i);
        check_status_of(libsplit_infer(&input, &params, outputs, 2, NULL));
        CHECK_EQ_INT(outputs[1].data_bytes, IS_WIDE ? cases[i].extent / 2 * cases[i].element : 0);
        CHECK_EQ_INT(half[1][0], IS_WIDE ? cases[i].extent / 2 : 0);
    }
}

/* A run whose bits cannot be counted with 32 bits, though its bytes can be addressed. Both rows are
 * one in memory. */
static void test_a_long_run(void) {
    enum { LONG = 1 << 29, REST = 8 };
    if (IS_WIDE)
        return;
    int64_t shape[] = {2, LONG + REST}, strides[] = {0, 1};
    int64_t first_shape[] = {2, LONG}, rest_shape[] = {2, REST};
    unsigned char *source = allocate(LONG + REST), *first = allocate((size_t)2 * LONG);
    unsigned char rest[2 * REST];
    memset(source, 5, LONG + REST);
    memset(source + LONG, 7, REST);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 2, shape);
    input.strides = strides;
    libsplit_tensor outputs[] = {packed(LIBSPLIT_DTYPE_UINT8, first, 2, first_shape),
                                 packed(LIBSPLIT_DTYPE_UINT8, rest, 2, rest_shape)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 1;
    params.split = LIST(LONG, REST);
    CHECK_CASE("runs of 2^29 bytes");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(memcmp(first, source, LONG) == 0 && memcmp(first + LONG, source, LONG) == 0);
    CHECK(memcmp(rest, source + LONG, REST) == 0 && memcmp(rest + REST, source + LONG, REST) == 0);
    free(source);
    free(first);
}

int main(void) {
    CHECK_START();
    test_a_repeated_element();
    test_repeated_rows();
    test_a_count();
    test_bytes_of_outputs();
    test_a_long_run();
    CHECK_DONE();
}
