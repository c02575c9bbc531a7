/*
 * constants.c - versions, statuses and element types with their names, and the initializers
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#include <limits.h>

/* One line for each status: number and name; the name is also the constant's. */
#define STATUSES(X)                                                                                \
    X(0, OK)                                                                                       \
    X(1, ERROR_NULL)                                                                               \
    X(2, ERROR_ALIGNMENT)                                                                          \
    X(3, ERROR_STRUCT_SIZE)                                                                        \
    X(4, ERROR_OPERATOR)                                                                           \
    X(5, ERROR_OPSET)                                                                              \
    X(6, ERROR_FLAGS)                                                                              \
    X(7, ERROR_DTYPE)                                                                              \
    X(8, ERROR_RANK)                                                                               \
    X(9, ERROR_AXIS)                                                                               \
    X(10, ERROR_SHAPE)                                                                             \
    X(11, ERROR_SPLIT)                                                                             \
    X(12, ERROR_SPLIT_SIZES)                                                                       \
    X(13, ERROR_NUM_OUTPUTS)                                                                       \
    X(14, ERROR_CAPACITY)                                                                          \
    X(15, ERROR_STRIDES)                                                                           \
    X(16, ERROR_BIT_OFFSET)                                                                        \
    X(17, ERROR_DATA_BYTES)                                                                        \
    X(18, ERROR_OVERFLOW)                                                                          \
    X(19, ERROR_OVERLAP)                                                                           \
    X(20, ERROR_OUTPUT)                                                                            \
    X(21, ERROR_COUNT_UNKNOWN)                                                                     \
    X(22, ERROR_EXECUTOR)                                                                          \
    X(23, ERROR_INTERNAL)                                                                          \
    X(24, ERROR_PLAN)                                                                              \
    X(25, ERROR_NOT_SHOWN_APART)

/* One line for each type: ONNX's number, name, and bits of an element. */
#define DTYPES(X)                                                                                  \
    X(1, FLOAT, 32)                                                                                \
    X(2, UINT8, 8)                                                                                 \
    X(3, INT8, 8)                                                                                  \
    X(4, UINT16, 16)                                                                               \
    X(5, INT16, 16)                                                                                \
    X(6, INT32, 32)                                                                                \
    X(7, INT64, 64)                                                                                \
    X(8, STRING, CHAR_BIT * sizeof(libsplit_string))                                               \
    X(9, BOOL, 8)                                                                                  \
    X(10, FLOAT16, 16)                                                                             \
    X(11, DOUBLE, 64)                                                                              \
    X(12, UINT32, 32)                                                                              \
    X(13, UINT64, 64)                                                                              \
    X(14, COMPLEX64, 64)                                                                           \
    X(15, COMPLEX128, 128)                                                                         \
    X(16, BFLOAT16, 16)                                                                            \
    X(17, FLOAT8E4M3FN, 8)                                                                         \
    X(18, FLOAT8E4M3FNUZ, 8)                                                                       \
    X(19, FLOAT8E5M2, 8)                                                                           \
    X(20, FLOAT8E5M2FNUZ, 8)                                                                       \
    X(21, UINT4, 4)                                                                                \
    X(22, INT4, 4)                                                                                 \
    X(23, FLOAT4E2M1, 4)                                                                           \
    X(24, FLOAT8E8M0, 8)                                                                           \
    X(25, UINT2, 2)                                                                                \
    X(26, INT2, 2)

static void test_version_is_the_headers(void) {
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR,
             LIBSPLIT_VERSION_PATCH);
    CHECK_CASE("version");
    CHECK_EQ_INT(libsplit_version(), LIBSPLIT_VERSION);
    CHECK_EQ_INT(LIBSPLIT_VERSION, (uint32_t)LIBSPLIT_VERSION_MAJOR << 24 |
                                       (uint32_t)LIBSPLIT_VERSION_MINOR << 16 |
                                       (uint32_t)LIBSPLIT_VERSION_PATCH);
    CHECK_EQ_STR(libsplit_version_string(), text);
}

static void test_status_names(void) {
    CHECK_CASE("status names");
#define CHECK_NAME(number, name)                                                                   \
    CHECK_EQ_INT(LIBSPLIT_STATUS_##name, number);                                                  \
    CHECK_EQ_STR(libsplit_status_name(number), "LIBSPLIT_STATUS_" #name);
    STATUSES(CHECK_NAME)
    CHECK_EQ_STR(libsplit_status_name(26), "unknown status");
    CHECK_EQ_STR(libsplit_status_name(-1), "unknown status");
    CHECK_EQ_STR(libsplit_status_name(INT32_MAX), "unknown status");
    CHECK_EQ_STR(libsplit_status_name(INT32_MIN), "unknown status");
}

static void test_dtype_names_and_bits(void) {
    CHECK_CASE("element types");
#define CHECK_DTYPE(number, name, bits)                                                            \
    CHECK_EQ_INT(LIBSPLIT_DTYPE_##name, number);                                                   \
    CHECK_EQ_STR(libsplit_dtype_name(number), #name);                                              \
    CHECK_EQ_INT(libsplit_dtype_bits(number), bits);
    DTYPES(CHECK_DTYPE)
    static const libsplit_dtype none[] = {INT32_MIN, -1, 0, 27, 256 + 1, INT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK_CASE("element type %d", (int)none[i]);
        CHECK_EQ_STR(libsplit_dtype_name(none[i]), "UNDEFINED");
        CHECK_EQ_INT(libsplit_dtype_bits(none[i]), 0);
    }
}

/* From the operators' documents: each version, the opset before it, and opsets without one. */
static void test_operator_versions(void) {
    static const struct {
        libsplit_op op;
        int32_t opset, version;
    } cases[] = {
        {LIBSPLIT_OP_ONNX_SPLIT, INT32_MIN, 0},
        {LIBSPLIT_OP_ONNX_SPLIT, 0, 0},
        {LIBSPLIT_OP_ONNX_SPLIT, 1, 1},
        {LIBSPLIT_OP_ONNX_SPLIT, 2, 2},
        {LIBSPLIT_OP_ONNX_SPLIT, 10, 2},
        {LIBSPLIT_OP_ONNX_SPLIT, 11, 11},
        {LIBSPLIT_OP_ONNX_SPLIT, 12, 11},
        {LIBSPLIT_OP_ONNX_SPLIT, 13, 13},
        {LIBSPLIT_OP_ONNX_SPLIT, 17, 13},
        {LIBSPLIT_OP_ONNX_SPLIT, 18, 18},
        {LIBSPLIT_OP_ONNX_SPLIT, LIBSPLIT_ONNX_OPSET, 18},
        {LIBSPLIT_OP_ONNX_SPLIT, INT32_MAX, 18},
        {LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, 10, 0},
        {LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, 11, 11},
        {LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, 23, 11},
        {LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, 24, 24},
        {LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, LIBSPLIT_ONNX_OPSET, 24},
        {LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 0, 1},
        {LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1, 1},
        {LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 2, 0},
        {LIBSPLIT_OP_OPENVINO_SPLIT, -1, 0},
        {LIBSPLIT_OP_OPENVINO_SPLIT, 1, 1},
        {0, 18, 0},
        {5, 18, 0},
        {-1, 1, 0},
        {INT32_MAX, INT32_MAX, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_CASE("operator %d, opset %d", (int)cases[i].op, (int)cases[i].opset);
        CHECK_EQ_INT(libsplit_op_version(cases[i].op, cases[i].opset), cases[i].version);
    }
}

static void test_cpu_string(void) {
    static const char *const known[] = {"x86-64 AVX-512", "x86-64 AVX2", "x86-64 portable",
                                        "AArch64 NEON", "portable"};
    const char *cpu = libsplit_cpu_string();
    int is_known = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known |= strcmp(cpu, known[i]) == 0;
    CHECK_CASE("loops of %s", cpu);
    CHECK(is_known);
    CHECK(cpu == libsplit_cpu_string());
}

static void test_params_initializer(void) {
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 7);
    CHECK_CASE("LIBSPLIT_PARAMS_INIT");
    CHECK_EQ_INT(params.struct_size, sizeof params);
    CHECK_EQ_INT(params.op, LIBSPLIT_OP_OPENVINO_SPLIT);
    CHECK_EQ_INT(params.opset, 7);
    CHECK_EQ_INT(params.axis, 0);
    CHECK(params.split == NULL);
    CHECK_EQ_INT(params.num_outputs, 0);
    CHECK_EQ_INT(params.keepdims, 1);
    CHECK_EQ_INT(params.flags, 0);
}

static void test_error_initializer(void) {
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    CHECK_CASE("LIBSPLIT_ERROR_INIT");
    CHECK_EQ_INT(error.struct_size, sizeof error);
    CHECK_STATUS(error.status, LIBSPLIT_STATUS_OK);
    CHECK_EQ_INT(error.output_index, -1);
    CHECK_EQ_INT(error.expected, 0);
    CHECK_EQ_INT(error.actual, 0);
    CHECK_EQ_INT(error.words, LIBSPLIT_WORDS_C);
    CHECK_EQ_INT(error.reserved, 0);
    CHECK_EQ_STR(error.message, "");
}

static int32_t no_pool(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    (void)pool, (void)task, (void)task_ctx, (void)count;
    return 1;
}

static void test_executor_initializer(void) {
    int pool;
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(no_pool, &pool);
    CHECK_CASE("LIBSPLIT_EXECUTOR_INIT");
    CHECK_EQ_INT(executor.struct_size, sizeof executor);
    CHECK(executor.parallel_for == no_pool);
    CHECK(executor.pool == &pool);
    CHECK_EQ_INT(executor.max_tasks, 0);
    CHECK_EQ_INT(executor.flags, 0);
}

int main(void) {
    CHECK_START();
    test_version_is_the_headers();
    test_status_names();
    test_dtype_names_and_bits();
    test_operator_versions();
    test_cpu_string();
    test_params_initializer();
    test_error_initializer();
    test_executor_initializer();
    CHECK_DONE();
}
