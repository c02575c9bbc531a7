/*
 * old_program.c - a program built with the header of an older release, abi/<version>/libsplit.h,
 * runs with today's library
 *
 * Its structures are as small as that header has them, and what lies behind them must not be
 * touched: each ends at the end of an accessible page.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */

#include "check.h"
#include "system.h"

#define ROWS 1000
#define COLUMNS 1000
#define TAIL 64

/* Returns 'size' bytes that end at an inaccessible page, filled from 'from'. They stay until the
 * end. */
static void *at_the_edge(const void *from, size_t size) {
    size_t page = page_bytes();
    char *pages = reserve_addresses(2 * page);
    allow_access(pages, page);
    return memcpy(pages + page - size, from, size);
}

static int32_t in_order(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    ++*(int *)pool;
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i);
    return 0;
}

/* A call with every structure there is, split in three: 400 columns, none, and 599. */
struct call {
    int32_t *data, *pieces[2];
    int64_t shapes[2][2], strides[2][2];
    libsplit_tensor *outputs;
    const libsplit_tensor *input;
    libsplit_params *params;
    libsplit_executor *executor;
    libsplit_error *error;
};

static struct call new_call(void) {
    static const int64_t shape[] = {ROWS, COLUMNS}, lengths[] = {400, 1, 599}, three = 3;
    struct call call = {.data = allocate(ROWS * COLUMNS * sizeof *call.data)};
    for (int32_t i = 0; i < ROWS * COLUMNS; i++)
        call.data[i] = i;

    libsplit_tensor input = packed(LIBSPLIT_DTYPE_INT32, call.data, 2, at_the_edge(shape, 16));
    libsplit_tensor split =
        packed(LIBSPLIT_DTYPE_INT64, at_the_edge(lengths, 24), 1, at_the_edge(&three, 8));
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(in_order, NULL);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    params.axis = -1;
    params.split = at_the_edge(&split, sizeof split);
    call.input = at_the_edge(&input, sizeof input);
    call.params = at_the_edge(&params, sizeof params);
    call.executor = at_the_edge(&executor, sizeof executor);
    call.error = at_the_edge(&error, sizeof error);
    return call;
}

/* The outputs, as empty as they are before libsplit_infer() and libsplit_view(). */
static void set_outputs(struct call *call) {
    libsplit_tensor outputs[3] = {{0}};
    for (int i = 0; i < 2; i++)
        outputs[2 * i] =
            (libsplit_tensor){.shape = call->shapes[i], .strides = call->strides[i], .capacity = 2};
    call->outputs = at_the_edge(outputs, sizeof outputs);
}

static void test_the_library_is_of_this_major_version_and_no_older(void) {
    uint32_t header = (uint32_t)LIBSPLIT_VERSION_MAJOR << 24 |
                      (uint32_t)LIBSPLIT_VERSION_MINOR << 16 | LIBSPLIT_VERSION_PATCH;
    CHECK_CASE("version");
    CHECK_EQ_INT(libsplit_version() >> 24, LIBSPLIT_VERSION_MAJOR);
    CHECK(libsplit_version() >= header);
    CHECK(strchr(libsplit_version_string(), '.') != NULL);
}

static void test_names(void) {
    CHECK_CASE("names");
    CHECK_EQ_STR(libsplit_status_name(LIBSPLIT_STATUS_ERROR_INTERNAL),
                 "LIBSPLIT_STATUS_ERROR_INTERNAL");
    CHECK_EQ_STR(libsplit_dtype_name(LIBSPLIT_DTYPE_INT2), "INT2");
    CHECK_EQ_INT(libsplit_dtype_bits(LIBSPLIT_DTYPE_INT2), 2);
}

static void test_count_infer_and_view(struct call *call) {
    size_t count = 0;
    CHECK_CASE("count");
    CHECK_OK(libsplit_count(call->input, call->params, &count, call->error));
    CHECK_EQ_INT(count, 3);

    CHECK_CASE("infer");
    set_outputs(call);
    CHECK_OK(libsplit_infer(call->input, call->params, call->outputs, 3, call->error));
    CHECK_EQ_INT(call->outputs[0].data_bytes, ROWS * 400 * 4);
    CHECK_EQ_INT(call->outputs[1].dtype, 0);
    CHECK_EQ_INT(call->shapes[1][1], 599);
    CHECK_EQ_INT(call->strides[1][0], 599);

    CHECK_CASE("view");
    set_outputs(call);
    CHECK_OK(libsplit_view(call->input, call->params, call->outputs, 3, call->error));
    CHECK(call->outputs[0].data == call->data);
    CHECK(call->outputs[2].data == call->data + 401);
    CHECK_EQ_INT(call->strides[1][0], COLUMNS);
}

static void test_copy(struct call *call) {
    static const int begins[] = {0, 401};
    int calls = 0;
    CHECK_CASE("copy");
    call->executor->pool = &calls;
    set_outputs(call);
    CHECK_OK(libsplit_infer(call->input, call->params, call->outputs, 3, call->error));
    for (int i = 0; i < 2; i++)
        call->outputs[2 * i].data = call->pieces[i] = allocate(call->outputs[2 * i].data_bytes);
    CHECK_OK(
        libsplit_copy(call->input, call->params, call->outputs, 3, call->executor, call->error));
    CHECK_EQ_INT(calls, 1);
    for (int i = 0; i < 2; i++) {
        const int32_t *piece = call->pieces[i];
        int64_t wrong = 0;
        for (int64_t row = 0; row < ROWS; row++)
            for (int64_t column = 0; column < call->shapes[i][1]; column++)
                wrong += *piece++ != row * COLUMNS + begins[i] + column;
        CHECK_EQ_INT(wrong, 0);
    }
}

static void test_errors(struct call *call) {
    size_t count = 7;
    CHECK_CASE("error");
    call->params->axis = 2;
    CHECK_STATUS(libsplit_count(call->input, call->params, &count, call->error),
                 LIBSPLIT_STATUS_ERROR_AXIS);
    CHECK_STATUS(call->error->status, LIBSPLIT_STATUS_ERROR_AXIS);
    CHECK_EQ_INT(call->error->output_index, -1);
    CHECK(strstr(call->error->message, "axis") != NULL);
    CHECK_EQ_INT(count, 7);
    call->params->axis = -1;
}

/* Structures whose size is not this header's: those of a newer program, and of none. A library of
 * this version leaves the tail of an error alone; a newer one may know fields in it. */
static void test_other_sizes_of_structures(struct call *call) {
    struct {
        libsplit_params known;
        char tail[TAIL];
    } params = {.known = *call->params};
    struct {
        libsplit_error known;
        char tail[TAIL], behind[TAIL];
    } error = {.known = LIBSPLIT_ERROR_INIT};
    char expected[2 * TAIL];
    const char *left_alone = libsplit_version() == LIBSPLIT_VERSION ? error.tail : error.behind;
    size_t bytes = (size_t)((char *)(&error + 1) - left_alone);
    size_t count = 0;
    memset(error.tail, 0xA5, TAIL);
    memset(error.behind, 0xA5, TAIL);
    memset(expected, 0xA5, sizeof expected);

    CHECK_CASE("a newer program");
    params.known.struct_size += TAIL;
    error.known.struct_size += TAIL;
    CHECK_OK(libsplit_count(call->input, &params.known, &count, &error.known));
    CHECK_EQ_INT(count, 3);
    CHECK(memcmp(left_alone, expected, bytes) == 0);

    CHECK_CASE("a newer program that asks for something new");
    params.tail[TAIL - 1] = 1;
    CHECK_STATUS(libsplit_count(call->input, &params.known, &count, &error.known),
                 LIBSPLIT_STATUS_ERROR_STRUCT_SIZE);
    CHECK(memcmp(left_alone, expected, bytes) == 0);

    CHECK_CASE("smaller than ever");
    params.known.struct_size = sizeof params.known - 1;
    CHECK_STATUS(libsplit_count(call->input, &params.known, &count, NULL),
                 LIBSPLIT_STATUS_ERROR_STRUCT_SIZE);
}

int main(void) {
    CHECK_START();
    struct call call = new_call();
    test_the_library_is_of_this_major_version_and_no_older();
    test_names();
    test_count_infer_and_view(&call);
    test_copy(&call);
    test_errors(&call);
    test_other_sizes_of_structures(&call);
    free(call.data);
    free(call.pieces[0]);
    free(call.pieces[1]);
    CHECK_DONE();
}
