/*
 * plan.c - splits prepared once: what libsplit_plan_copy() and libsplit_plan_view() do by a plan,
 * wherever it lies and whatever has become of what it was made from, and what they refuse
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#include <pthread.h>

#define SPLIT LIBSPLIT_OP_ONNX_SPLIT
#define SEQUENCE LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE
#define VARIADIC LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT
#define OV_SPLIT LIBSPLIT_OP_OPENVINO_SPLIT

#define THREADS 4

/*
 * A plan and valid calls, with all the memory that they use: bytes [2, 6] split into 1, 2 and 3
 * columns. Everything is in one structure, so that what a refused call must not change can be
 * compared at once.
 */
struct scene {
    uint64_t before; /* memory on both sides that is not the plan's */
    uint64_t plan[128];
    unsigned char source[16], targets[3][16];
    int64_t shape[2], lengths[3], count, shapes[3][2], strides[3][2];
    libsplit_tensor input, split, outputs[3];
    libsplit_params params;
    void *addresses[3];
    libsplit_executor executor;
    libsplit_error error;
    size_t plan_size;
};

static void set_scene(struct scene *s) {
    memset(s, 0xA5, sizeof *s);
    memcpy(s->source, "abcdefghijkl", 12);
    s->shape[0] = 2;
    s->shape[1] = 6;
    s->input = packed(LIBSPLIT_DTYPE_UINT8, s->source, 2, s->shape);
    s->count = 3;
    s->split = packed(LIBSPLIT_DTYPE_INT64, s->lengths, 1, &s->count);
    s->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    s->params.axis = 1;
    s->params.split = &s->split;
    for (int i = 0; i < 3; i++) {
        s->lengths[i] = s->shapes[i][1] = s->strides[i][0] = i + 1;
        s->shapes[i][0] = 2;
        s->strides[i][1] = 1;
        s->outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, s->targets[i], 2, s->shapes[i]);
        s->outputs[i].strides = s->strides[i];
        s->addresses[i] = s->targets[i];
    }
    s->executor = (libsplit_executor)LIBSPLIT_EXECUTOR_INIT(run_in_order, NULL);
    s->error = (libsplit_error)LIBSPLIT_ERROR_INIT;
    s->plan_size = libsplit_plan_size(2, 3);
    if (s->plan_size == 0 || s->plan_size > sizeof s->plan)
        abort();
}

static libsplit_plan *plan_of(struct scene *s) { return (libsplit_plan *)s->plan; }

static libsplit_status init_scene(struct scene *s) {
    return libsplit_plan_init(plan_of(s), s->plan_size, &s->input, &s->params, s->outputs, 3, NULL);
}

/* A plan in memory of its exact size, for the caller to free. */
static libsplit_plan *make_plan(const libsplit_tensor *input, const libsplit_params *params,
                                const libsplit_tensor *outputs, size_t count) {
    size_t size = libsplit_plan_size(input->rank, count);
    libsplit_plan *plan = allocate(size);
    CHECK_OK(libsplit_plan_init(plan, size, input, params, outputs, count, NULL));
    return plan;
}

static void check_columns(const struct scene *s) {
    CHECK(memcmp(s->targets[0], "ag\xA5", 3) == 0);
    CHECK(memcmp(s->targets[1], "bchi\xA5", 5) == 0);
    CHECK(memcmp(s->targets[2], "defjkl\xA5", 7) == 0);
}

/* Moves the plan byte by byte, and leaves nothing of what it was made from. */
static void test_a_plan_stands_alone(void) {
    struct scene s, other;
    set_scene(&s);
    CHECK_CASE("moved");
    /* Neither the input's data nor the outputs' data matters. */
    s.input.data = NULL;
    s.input.data_bytes = 1;
    for (int i = 0; i < 3; i++)
        s.outputs[i].data = NULL;
    CHECK_OK(init_scene(&s));
    libsplit_plan *moved = allocate(s.plan_size);
    memcpy(moved, s.plan, s.plan_size);
    memset(&s, 0xEE, sizeof s);
    set_scene(&other);
    for (int times = 0; times < 3; times++) {
        void *views[3] = {NULL, NULL, NULL};
        CHECK_OK(libsplit_plan_view(moved, other.source, views, 3, NULL));
        CHECK(views[0] == other.source && views[1] == other.source + 1 &&
              views[2] == other.source + 3);
        memset(other.targets, 0xA5, sizeof other.targets);
        CHECK_OK(libsplit_plan_copy(moved, other.source, other.addresses, 3, NULL, NULL));
        check_columns(&other);
    }
    free(moved);
}

/* More memory than it needs, aligned to 8 bytes but not to 16; what is left over stays as it is. */
static void test_a_plan_has_room_to_spare(void) {
    struct scene s;
    for (size_t ahead = 0; ahead < 4; ahead++) {
        set_scene(&s);
        libsplit_plan *plan = (libsplit_plan *)(s.plan + ahead);
        CHECK_CASE("%zu bytes ahead", ahead * 8);
        CHECK_OK(libsplit_plan_init(plan, sizeof s.plan - 32, &s.input, &s.params, s.outputs, 3,
                                    &s.error));
        CHECK_EQ_STR(s.error.message, "");
        for (size_t at = 0; at < sizeof s.plan; at++)
            if (at < ahead * 8 || at >= ahead * 8 + s.plan_size)
                CHECK_EQ_INT(((unsigned char *)s.plan)[at], 0xA5);
        CHECK_OK(libsplit_plan_copy(plan, s.source, s.addresses, 3, &s.executor, &s.error));
        check_columns(&s);
    }
}

static void check_no_plan(struct scene *s) {
    struct scene before;
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    memcpy(&before, s, sizeof before);
    CHECK_STATUS(libsplit_plan_copy(plan_of(s), s->source, s->addresses, 3, NULL, &error),
                 LIBSPLIT_STATUS_ERROR_PLAN);
    CHECK_STATUS(error.status, LIBSPLIT_STATUS_ERROR_PLAN);
    CHECK(strstr(error.message, "libsplit_plan_init") != NULL);
    CHECK_STATUS(libsplit_plan_view(plan_of(s), s->source, s->addresses, 3, NULL),
                 LIBSPLIT_STATUS_ERROR_PLAN);
    CHECK(memcmp(&before, s, sizeof before) == 0);
}

static void test_memory_that_is_no_plan(void) {
    struct scene s;
    uint64_t state = 1;
    for (int byte = 0; byte < 256; byte++) {
        CHECK_CASE("all bytes %d", byte);
        set_scene(&s);
        memset(s.plan, byte, sizeof s.plan);
        check_no_plan(&s);
    }
    for (int times = 0; times < 1000; times++) {
        CHECK_CASE("noise %d", times);
        set_scene(&s);
        for (size_t i = 0; i < sizeof s.plan / 8; i++)
            s.plan[i] = random_u64(&state);
        check_no_plan(&s);
    }
    /* The first word tells if it is of another version, or of another build. */
    for (int bit = 0; bit < 64; bit++) {
        CHECK_CASE("bit %d changed", bit);
        set_scene(&s);
        CHECK_OK(init_scene(&s));
        s.plan[0] ^= UINT64_C(1) << bit;
        check_no_plan(&s);
    }
}

/* What a case may get wrong. */
struct arguments {
    libsplit_plan *plan;
    size_t plan_size;
    const libsplit_tensor *input;
    const libsplit_params *params;
    const libsplit_tensor *outputs;
    void *source;
    void **addresses;
    size_t count;
    const libsplit_executor *executor;
    libsplit_error *error;
};

enum { INIT = 1, COPY = 2, VIEW = 4 };
#define RUN (COPY | VIEW)
#define ALL (INIT | RUN)

struct wrong {
    const char *name;
    void (*spoil)(struct arguments *a, struct scene *s);
    unsigned verbs;
    libsplit_status status;
    const char *message;      /* what it must name */
    int64_t expected, actual; /* 0 if the error has no numbers */
};

static void *askew(const void *pointer) { return (char *)(uintptr_t)pointer + 1; }

#define SPOIL(name) static void name(struct arguments *a, struct scene *s)
#define EDIT(name, ...)                                                                            \
    SPOIL(name) {                                                                                  \
        (void)a;                                                                                   \
        (void)s;                                                                                   \
        __VA_ARGS__;                                                                               \
    }
EDIT(plan_null, a->plan = NULL)
EDIT(plan_askew, a->plan = askew(a->plan))
EDIT(input_null, a->input = NULL; a->source = NULL)
EDIT(input_askew, a->input = askew(a->input))
EDIT(params_null, a->params = NULL)
EDIT(params_askew, a->params = askew(a->params))
EDIT(outputs_null, a->addresses = NULL)
EDIT(outputs_askew, a->outputs = askew(a->outputs); a->addresses = askew(a->addresses))
EDIT(error_askew, a->error = askew(&s->error))
EDIT(error_short, a->error = &s->error; s->error.struct_size = 8)
EDIT(one_output_less, a->count--)
EDIT(one_output_more, a->count++)
EDIT(no_outputs, a->count = 0)
EDIT(all_outputs, a->count = SIZE_MAX)
EDIT(plan_over_input, s->plan[0] = 1; memcpy(s->plan, &s->input, sizeof s->input);
     a->input = (libsplit_tensor *)s->plan)
EDIT(plan_over_params, memcpy(s->plan, &s->params, sizeof s->params);
     a->params = (libsplit_params *)s->plan)
EDIT(plan_over_shape, memcpy(s->plan, s->shape, sizeof s->shape);
     s->input.shape = (int64_t *)s->plan)
EDIT(plan_over_split, memcpy(s->plan, &s->split, sizeof s->split);
     s->params.split = (libsplit_tensor *)s->plan)
EDIT(plan_over_lengths, memcpy(s->plan, s->lengths, sizeof s->lengths); s->split.data = s->plan)
EDIT(plan_over_outputs, memcpy(s->plan, s->outputs, sizeof s->outputs);
     a->outputs = (libsplit_tensor *)s->plan)
EDIT(plan_over_output_shape, memcpy(s->plan, s->shapes[1], 16);
     s->outputs[1].shape = (int64_t *)s->plan)
EDIT(plan_over_output_strides, memcpy(s->plan, s->strides[2], 16);
     s->outputs[2].strides = (int64_t *)s->plan)
EDIT(target_0_null, s->addresses[0] = NULL)
EDIT(target_2_null, s->addresses[2] = NULL)
EDIT(targets_alike, s->addresses[2] = s->addresses[0])
EDIT(targets_share_a_byte, s->addresses[2] = s->targets[1] + 3)
EDIT(targets_share_a_byte_backwards, s->addresses[0] = s->targets[2] + 5)
EDIT(target_on_the_source, s->addresses[1] = s->source)
EDIT(target_on_the_last_of_the_source, s->addresses[1] = s->source + 11)
EDIT(target_on_the_plan, s->addresses[1] = (char *)s->plan + s->plan_size - 1)
EDIT(target_before_the_plan, s->addresses[2] = (char *)s->plan - 5)
EDIT(target_on_the_addresses, s->addresses[0] = (char *)s->addresses - 1)
EDIT(target_on_the_executor, s->addresses[2] = (char *)(&s->executor + 1) - 1;
     a->executor = &s->executor)
EDIT(target_on_the_error, s->addresses[0] = s->error.message + 239; a->error = &s->error)
EDIT(target_at_the_end, s->addresses[2] = (void *)(UINTPTR_MAX - 4))
EDIT(source_at_the_end, a->source = (void *)(UINTPTR_MAX - 10))
EDIT(addresses_on_the_plan, a->addresses = (void **)(s->plan + s->plan_size / 8 - 1))
EDIT(addresses_before_the_plan, a->addresses = (void **)s->plan - 2)
EDIT(addresses_on_the_error, a->error = &s->error; a->addresses = (void **)&s->error.expected)
EDIT(executor_askew, a->executor = askew(&s->executor))
EDIT(executor_short, a->executor = &s->executor; s->executor.struct_size--)
EDIT(executor_flags, a->executor = &s->executor; s->executor.flags = 1)
EDIT(outputs_never_made, memset(s->outputs, 0, sizeof s->outputs))

#define ERROR(name) LIBSPLIT_STATUS_ERROR_##name
#define NAMES(text) .message = (text)
#define NUMBERS(expected_number, actual_number)                                                    \
    .expected = (expected_number), .actual = (actual_number)
static const struct wrong wrongs[] = {
    {"plan NULL", plan_null, ALL, ERROR(NULL), NAMES("plan")},
    {"plan askew", plan_askew, ALL, ERROR(ALIGNMENT), NAMES("plan"), NUMBERS(8, 1)},
    {"input NULL", input_null, ALL, ERROR(NULL), NAMES("input")},
    {"input askew", input_askew, INIT, ERROR(ALIGNMENT), NAMES("input"),
     NUMBERS(_Alignof(libsplit_tensor), 1)},
    {"params NULL", params_null, INIT, ERROR(NULL), NAMES("params")},
    {"params askew", params_askew, INIT, ERROR(ALIGNMENT), NAMES("params"),
     NUMBERS(_Alignof(libsplit_params), 1)},
    {"outputs NULL", outputs_null, RUN, ERROR(NULL), NAMES("outputs")},
    {"outputs askew", outputs_askew, INIT, ERROR(ALIGNMENT), NAMES("outputs"),
     NUMBERS(_Alignof(libsplit_tensor), 1)},
    {"outputs askew", outputs_askew, RUN, ERROR(ALIGNMENT), NAMES("outputs"),
     NUMBERS(_Alignof(void *), 1)},
    {"error askew", error_askew, ALL, ERROR(ALIGNMENT), NAMES("")},
    {"error too small", error_short, ALL, ERROR(STRUCT_SIZE), NAMES("")},
    {"one output less", one_output_less, ALL, ERROR(NUM_OUTPUTS), NAMES("2"), NUMBERS(3, 2)},
    {"one output more", one_output_more, ALL, ERROR(NUM_OUTPUTS), NAMES("4"), NUMBERS(3, 4)},
    {"no outputs", no_outputs, ALL, ERROR(NUM_OUTPUTS), NAMES("0"), NUMBERS(3, 0)},
    {"SIZE_MAX outputs", all_outputs, ALL, ERROR(NUM_OUTPUTS),
     NAMES(sizeof(size_t) == 8 ? "18446744073709551615" : "4294967295"),
     NUMBERS(3, sizeof(size_t) == 8 ? INT64_MAX : (int64_t)UINT32_MAX)},
    {"plan over input", plan_over_input, INIT, ERROR(OVERLAP), NAMES("plan")},
    {"plan over params", plan_over_params, INIT, ERROR(OVERLAP), NAMES("plan")},
    {"plan over the input's shape", plan_over_shape, INIT, ERROR(OVERLAP), NAMES("plan")},
    {"plan over params.split", plan_over_split, INIT, ERROR(OVERLAP), NAMES("plan")},
    {"plan over the lengths", plan_over_lengths, INIT, ERROR(OVERLAP), NAMES("plan")},
    {"plan over outputs", plan_over_outputs, INIT, ERROR(OVERLAP), NAMES("plan")},
    {"plan over an output's shape", plan_over_output_shape, INIT, ERROR(OVERLAP),
     NAMES("outputs[1]")},
    {"plan over an output's strides", plan_over_output_strides, INIT, ERROR(OVERLAP),
     NAMES("outputs[2]")},
    {"outputs[0] NULL", target_0_null, COPY, ERROR(NULL), NAMES("outputs[0]")},
    {"outputs[2] NULL", target_2_null, COPY, ERROR(NULL), NAMES("outputs[2]")},
    {"outputs alike", targets_alike, COPY, ERROR(OVERLAP), NAMES("outputs[0]")},
    {"outputs share a byte", targets_share_a_byte, COPY, ERROR(OVERLAP), NAMES("outputs[1]")},
    {"outputs share a byte, the first last", targets_share_a_byte_backwards, COPY, ERROR(OVERLAP),
     NAMES("outputs[0]")},
    {"output = input", target_on_the_source, COPY, ERROR(OVERLAP), NAMES("outputs[1]")},
    {"output on the input's last byte", target_on_the_last_of_the_source, COPY, ERROR(OVERLAP),
     NAMES("outputs[1]")},
    {"output on the plan's last byte", target_on_the_plan, COPY, ERROR(OVERLAP), NAMES("plan")},
    {"output up to the plan's first byte", target_before_the_plan, COPY, ERROR(OVERLAP),
     NAMES("plan")},
    {"output on outputs", target_on_the_addresses, COPY, ERROR(OVERLAP), NAMES("outputs")},
    {"output on executor", target_on_the_executor, COPY, ERROR(OVERLAP), NAMES("executor")},
    {"output on error", target_on_the_error, COPY, ERROR(OVERLAP), NAMES("error")},
    {"output past the last address", target_at_the_end, COPY, ERROR(OVERFLOW), NAMES("outputs[2]")},
    {"input past the last address", source_at_the_end, RUN, ERROR(OVERFLOW), NAMES("input")},
    {"outputs on the plan's last bytes", addresses_on_the_plan, VIEW, ERROR(OVERLAP),
     NAMES("plan")},
    {"outputs up to the plan's first", addresses_before_the_plan, VIEW, ERROR(OVERLAP),
     NAMES("plan")},
    {"outputs on error", addresses_on_the_error, VIEW, ERROR(OVERLAP), NAMES("error")},
    {"executor askew", executor_askew, COPY, ERROR(ALIGNMENT), NAMES("executor"),
     NUMBERS(_Alignof(libsplit_executor), 1)},
    {"executor too small", executor_short, COPY, ERROR(STRUCT_SIZE), NAMES("executor"),
     NUMBERS(sizeof(libsplit_executor), sizeof(libsplit_executor) - 1)},
    {"executor with other flags", executor_flags, COPY, ERROR(FLAGS), NAMES("executor"),
     NUMBERS(LIBSPLIT_FLAG_OUTPUTS_READ_NEXT | LIBSPLIT_FLAG_NEVER_STREAM, 1)},
    {"outputs never made", outputs_never_made, INIT, ERROR(NULL), NAMES("libsplit_outputs_init"),
     NUMBERS(1, 0)},
};

static libsplit_status call(unsigned verb, const struct arguments *a) {
    switch (verb) {
    case INIT:
        return libsplit_plan_init(a->plan, a->plan_size, a->input, a->params, a->outputs, a->count,
                                  a->error);
    case COPY:
        return libsplit_plan_copy(a->plan, a->source, a->addresses, a->count, a->executor,
                                  a->error);
    default:
        return libsplit_plan_view(a->plan, a->source, a->addresses, a->count, a->error);
    }
}

static void refuse(const struct wrong *wrong, unsigned verb) {
    struct scene s, before;
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    set_scene(&s);
    if (verb != INIT)
        CHECK_OK(init_scene(&s));
    struct arguments a = {
        .plan = plan_of(&s),
        .plan_size = s.plan_size,
        .input = &s.input,
        .params = &s.params,
        .outputs = s.outputs,
        .source = s.source,
        .addresses = s.addresses,
        .count = 3,
        .error = &error,
    };
    wrong->spoil(&a, &s);
    memcpy(&before, &s, sizeof before);
    CHECK_CASE("%s: %s", verb == INIT ? "init" : verb == COPY ? "copy" : "view", wrong->name);
    CHECK_STATUS(call(verb, &a), wrong->status);
    if (a.error == &error) {
        CHECK_STATUS(error.status, wrong->status);
        if (check_fails(strstr(error.message, wrong->message) != NULL, wrong->message, __FILE__,
                        __LINE__))
            fprintf(stderr, " is not in \"%s\"\n", error.message);
        CHECK_EQ_INT(error.expected, wrong->expected);
        CHECK_EQ_INT(error.actual, wrong->actual);
    } else if (s.error.struct_size == sizeof s.error) {
        /* The error structure may be written to. */
        s.error = before.error;
    }
    CHECK(memcmp(&s, &before, sizeof s) == 0);
}

static void test_everything_that_can_be_wrong(void) {
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++)
        for (unsigned verb = INIT; verb <= VIEW; verb *= 2)
            if (wrongs[i].verbs & verb)
                refuse(&wrongs[i], verb);
}

static void test_every_plan_size_that_is_too_small(void) {
    struct scene s;
    set_scene(&s);
    for (size_t size = 0; size < s.plan_size; size++) {
        libsplit_error error = LIBSPLIT_ERROR_INIT;
        CHECK_CASE("plan_size %zu of %zu", size, s.plan_size);
        CHECK_STATUS(
            libsplit_plan_init(plan_of(&s), size, &s.input, &s.params, s.outputs, 3, &error),
            LIBSPLIT_STATUS_ERROR_PLAN);
        CHECK(strstr(error.message, "plan_size") != NULL);
        CHECK_EQ_INT(error.expected, s.plan_size);
        CHECK_EQ_INT(error.actual, size);
        for (size_t at = 0; at < sizeof s.plan; at++)
            CHECK_EQ_INT(((unsigned char *)s.plan)[at], 0xA5);
    }
}

/* Which of three outputs is not wanted, and which is empty. Their entries are not looked at. */
static void test_outputs_that_are_not_written(void) {
    char source[] = "abcd";
    int64_t extent = 4, lengths[3] = {3, 0, 1}, count = 3;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, &extent);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.split = &split;
    for (unsigned wanted = 1; wanted < 8; wanted++)
        for (int is_null = 0; is_null < 2; is_null++) {
            char targets[3][4] = {"...", "...", "..."};
            void *nowhere = is_null ? NULL : askew(NULL), *addresses[3], *views[3];
            libsplit_tensor outputs[3] = {{0}};
            CHECK_CASE("wanted: %u", wanted);
            for (int i = 0; i < 3; i++) {
                int is_wanted = wanted >> i & 1;
                views[i] = nowhere;
                addresses[i] = is_wanted && lengths[i] > 0 ? (void *)targets[i] : nowhere;
                if (is_wanted)
                    outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, &lengths[i]);
            }
            libsplit_plan *plan = make_plan(&input, &params, outputs, 3);
            CHECK_OK(libsplit_plan_copy(plan, source, addresses, 3, NULL, NULL));
            CHECK_EQ_STR(targets[0], wanted & 1 ? "abc" : "...");
            CHECK_EQ_STR(targets[1], "...");
            CHECK_EQ_STR(targets[2], wanted & 4 ? "d.." : "...");
            CHECK_OK(libsplit_plan_view(plan, source, views, 3, NULL));
            for (int i = 0; i < 3; i++)
                CHECK(wanted >> i & 1 ? i == 1 || views[i] == source + i / 2 * 3
                                      : views[i] == nowhere);
            free(plan);
        }
}

static void test_no_outputs_and_no_elements(void) {
    int64_t shape[2] = {0, 3}, lengths[2] = {1, 2}, count = 2;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_FLOAT, NULL, 2, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SEQUENCE, 11);
    CHECK_CASE("no outputs");
    libsplit_plan *plan = make_plan(&input, &params, NULL, 0);
    CHECK_OK(libsplit_plan_copy(plan, NULL, NULL, 0, NULL, NULL));
    CHECK_OK(libsplit_plan_view(plan, NULL, NULL, 0, NULL));
    CHECK_STATUS(libsplit_plan_copy(plan, NULL, NULL, 1, NULL, NULL),
                 LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS);
    free(plan);

    CHECK_CASE("no elements");
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    void *addresses[2] = {NULL, NULL};
    params.split = &split;
    params.axis = 1;
    plan = make_plan(&input, &params, NULL, 2);
    CHECK_OK(libsplit_plan_copy(plan, NULL, addresses, 2, NULL, NULL));
    CHECK_OK(libsplit_plan_view(plan, NULL, addresses, 2, NULL));
    free(plan);
}

/* [3, count * 2] bytes in 'count' columns of two. */
struct columns {
    size_t count;
    int64_t shape[2], out_shape[2], strides[2];
    libsplit_tensor input;
    libsplit_params params;
    unsigned char *source, *target;
    void **addresses;
};

static struct columns make_columns(size_t count) {
    struct columns c = {.count = count, .shape = {3, 2 * (int64_t)count}, .out_shape = {3, 2}};
    c.params = (libsplit_params)LIBSPLIT_PARAMS_INIT(OV_SPLIT, 1);
    c.params.axis = 1;
    c.params.num_outputs = (int64_t)count;
    c.source = allocate(6 * count);
    c.target = allocate(6 * count);
    c.addresses = allocate(count * sizeof *c.addresses);
    for (size_t i = 0; i < 6 * count; i++)
        c.source[i] = (unsigned char)(i * 7 + i / 256);
    memset(c.target, 0xA5, 6 * count);
    return c;
}

static void free_columns(struct columns *c) {
    free(c->source);
    free(c->target);
    free(c->addresses);
}

/* Packed outputs, each 'step' columns after the one before. If 'unwanted' is not 0, the last of
 * each so many is not wanted. */
static void check_packed_columns(size_t count, size_t step, size_t unwanted) {
    struct columns c = make_columns(count);
    libsplit_tensor *outputs = allocate(count * sizeof *outputs);
    CHECK_CASE("%zu packed columns, %zu on, %zu not wanted", count, step, unwanted);
    for (size_t i = 0; i < count; i++) {
        c.addresses[i] = c.target + 6 * (i * step % count);
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, c.out_shape);
        if (unwanted > 0 && i % unwanted == unwanted - 1)
            memset(&outputs[i], 0, sizeof outputs[i]);
    }
    c.input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, c.shape);
    libsplit_plan *plan = make_plan(&c.input, &c.params, unwanted == 0 ? NULL : outputs, count);
    CHECK_OK(libsplit_plan_copy(plan, c.source, c.addresses, count, NULL, NULL));
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t row = 0; row < 3; row++) {
            const unsigned char *at = (unsigned char *)c.addresses[i] + 2 * row;
            int is_wanted = unwanted == 0 || i % unwanted != unwanted - 1;
            wrong += memcmp(at, is_wanted ? c.source + 2 * (row * count + i) : (void *)"\xA5\xA5",
                            2) != 0;
        }
    CHECK_EQ_INT(wrong, 0);
    if (unwanted == 0 && count > 1) {
        libsplit_error error = LIBSPLIT_ERROR_INIT;
        c.addresses[0] = (char *)c.addresses[count - 1] + 1;
        CHECK_STATUS(libsplit_plan_copy(plan, c.source, c.addresses, count, NULL, &error),
                     LIBSPLIT_STATUS_ERROR_OVERLAP);
        CHECK(error.output_index >= 0 && error.output_index < (int32_t)count);
    }
    free(plan);
    free(outputs);
    free_columns(&c);
}

/* Interleaved: the outputs are columns of one matrix, from the last to the first. */
static void check_strided_columns(size_t count) {
    struct columns c = make_columns(count);
    libsplit_tensor *outputs = allocate(count * sizeof *outputs);
    CHECK_CASE("%zu strided columns", count);
    c.strides[0] = 2 * (int64_t)count;
    c.strides[1] = -1;
    for (size_t i = 0; i < count; i++) {
        c.addresses[i] = c.target + 2 * count - 1 - 2 * i;
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, c.out_shape);
        outputs[i].strides = c.strides;
    }
    c.input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, c.shape);
    libsplit_plan *plan = make_plan(&c.input, &c.params, outputs, count);
    CHECK_OK(libsplit_plan_copy(plan, c.source, c.addresses, count, NULL, NULL));
    int wrong = 0;
    for (size_t row = 0; row < 3; row++)
        for (size_t i = 0; i < 2 * count; i++)
            wrong += c.target[2 * count * (row + 1) - 1 - i] != c.source[2 * count * row + i];
    CHECK_EQ_INT(wrong, 0);

    libsplit_error error = LIBSPLIT_ERROR_INIT;
    memset(c.target, 0xA5, 6 * count);
    c.addresses[0] = (char *)c.addresses[0] - 1;
    if (count > 1) {
        CHECK_STATUS(libsplit_plan_copy(plan, c.source, c.addresses, count, NULL, &error),
                     LIBSPLIT_STATUS_ERROR_OVERLAP);
        CHECK(memchr(error.message, '[', sizeof error.message) != NULL);
        for (size_t i = 0; i < 6 * count; i++)
            wrong += c.target[i] != 0xA5;
        CHECK_EQ_INT(wrong, 0);
    }
    free(plan);
    free(outputs);
    free_columns(&c);
}

static void test_many_pieces(void) {
    static const size_t counts[] = {1, 2, 31, 32, 33, 34, 64, 100, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_packed_columns(counts[i], 1, 0);
        check_packed_columns(counts[i], 37, 0); /* divides none of them */
        check_packed_columns(counts[i], 37, 3);
        check_packed_columns(counts[i], 1, 2);
        check_strided_columns(counts[i]);
    }
}

/* 4-bit elements from an odd one on; a piece that begins within a byte, and one that ends there. */
static void test_sub_byte_elements(void) {
    unsigned char bytes[] = {0xFF, 0x1F, 0x32, 0x54, 0x76}, *source = bytes + 1;
    unsigned char targets[3][2] = {{9, 9}, {9, 9}, {9, 9}};
    int64_t extent = 6, lengths[3] = {1, 2, 3}, count = 3;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT4, NULL, 1, &extent);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    void *addresses[3] = {targets[0], targets[1], targets[2]}, *views[3];
    params.split = &split;
    input.bit_offset = 4;
    CHECK_CASE("uint4");
    libsplit_plan *plan = make_plan(&input, &params, NULL, 3);
    CHECK_OK(libsplit_plan_copy(plan, source, addresses, 3, NULL, NULL));
    CHECK(targets[0][0] == 0x01 && targets[0][1] == 9);
    CHECK(targets[1][0] == 0x32 && targets[1][1] == 9);
    CHECK(targets[2][0] == 0x54 && targets[2][1] == 0x06);
    CHECK_OK(libsplit_plan_view(plan, source, views, 3, NULL));
    CHECK(views[0] == source && views[1] == source + 1 && views[2] == source + 2);
    free(plan);

    CHECK_CASE("uint4, 12 bits in");
    memset(targets, 9, sizeof targets);
    input.bit_offset = 12;
    plan = make_plan(&input, &params, NULL, 3);
    CHECK_OK(libsplit_plan_copy(plan, source - 1, addresses, 3, NULL, NULL));
    CHECK(targets[0][0] == 0x01 && targets[1][0] == 0x32 && targets[2][0] == 0x54);
    CHECK(targets[2][1] == 0x06);
    CHECK_OK(libsplit_plan_view(plan, source - 1, views, 3, NULL));
    CHECK(views[0] == source && views[1] == source + 1 && views[2] == source + 2);
    free(plan);
}

/* Every axis of the highest rank, compared with libsplit_copy(). */
static void test_rank_64(void) {
    int64_t shape[64], halves[64], strides[64];
    unsigned char source[64], targets[2][2][32];
    for (int i = 0; i < 64; i++)
        source[i] = (unsigned char)(i * 5 + 1);
    for (int axis = 0; axis < 64; axis++) {
        for (int d = 0; d < 64; d++)
            shape[d] = halves[d] = 1;
        int other = (axis + 21) % 64;
        shape[axis] = 8;
        shape[other] = halves[other] = 8;
        halves[axis] = 4;
        for (int d = 0; d < 64; d++)
            strides[d] = INT64_MIN;
        strides[axis] = -8;
        strides[other] = 1;
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_INT8, source + 56, 64, shape), outputs[2];
        input.strides = strides;
        libsplit_params params = LIBSPLIT_PARAMS_INIT(OV_SPLIT, 1);
        params.axis = axis;
        params.num_outputs = 2;
        CHECK_CASE("rank 64, axis %d", axis);
        for (int i = 0; i < 2; i++)
            outputs[i] = packed(LIBSPLIT_DTYPE_INT8, targets[0][i], 64, halves);
        CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
        void *addresses[2] = {targets[1][0], targets[1][1]}, *views[2];
        libsplit_plan *plan = make_plan(&input, &params, NULL, 2);
        CHECK_OK(libsplit_plan_copy(plan, source + 56, addresses, 2, NULL, NULL));
        CHECK(memcmp(targets[0], targets[1], sizeof targets[0]) == 0);
        CHECK_OK(libsplit_plan_view(plan, source + 56, views, 2, NULL));
        CHECK(views[0] == source + 56 && views[1] == source + 24);
        free(plan);
    }
}

#if SIZE_MAX > UINT32_MAX
/* There is no such memory: only addresses are worked out. */
static void test_more_than_2_to_the_31_elements(void) {
    const struct {
        libsplit_dtype dtype;
        int64_t extent, length, stride;
        int64_t ahead; /* offset of the second piece, in bytes */
    } cases[] = {
        {LIBSPLIT_DTYPE_UINT8, (INT64_C(1) << 31) + 1, INT64_C(1) << 31, 1, INT64_C(1) << 31},
        {LIBSPLIT_DTYPE_FLOAT, INT64_C(1) << 40, (INT64_C(1) << 40) - 1, 1, (INT64_C(1) << 42) - 4},
        {LIBSPLIT_DTYPE_COMPLEX128, INT64_C(1) << 36, INT64_C(1) << 35, -1, -(INT64_C(1) << 39)},
        {LIBSPLIT_DTYPE_UINT4, (INT64_C(1) << 33) + 7, (INT64_C(1) << 33) + 2, 1,
         (INT64_C(1) << 32) + 1},
        {LIBSPLIT_DTYPE_DOUBLE, 3, 2, INT64_C(1) << 35, INT64_C(1) << 39},
    };
    char *base = (char *)(UINTPTR_MAX / 4 + 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t shape[2] = {1, cases[i].extent}, strides[2] = {7, cases[i].stride};
        int64_t lengths[2] = {cases[i].length, -1}, count = 2;
        libsplit_tensor input = packed(cases[i].dtype, NULL, 2, shape);
        libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
        libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
        void *views[2];
        input.strides = strides;
        params.split = &split;
        params.axis = -1;
        CHECK_CASE("large %zu", i);
        libsplit_plan *plan = make_plan(&input, &params, NULL, 2);
        CHECK_OK(libsplit_plan_view(plan, base, views, 2, NULL));
        CHECK(views[0] == base);
        CHECK_EQ_INT((char *)views[1] - base, cases[i].ahead);
        free(plan);
    }
}
#endif

/* A copy of two columns of floats that is large enough for tasks. */
enum { LARGE_ROWS = 1500, LARGE_COLUMNS = 300 };

static libsplit_plan *make_large_plan(void) {
    int64_t shape[2] = {LARGE_ROWS, LARGE_COLUMNS}, lengths[2] = {100, 200}, count = 2;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_FLOAT, NULL, 2, shape);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    params.split = &split;
    params.axis = 1;
    return make_plan(&input, &params, NULL, 2);
}

static int count_wrong(const float *source, const float *first, const float *second) {
    int wrong = 0;
    for (int row = 0; row < LARGE_ROWS; row++) {
        wrong += memcmp(first + row * 100, source, 400) != 0;
        wrong += memcmp(second + row * 200, source + 100, 800) != 0;
        source += LARGE_COLUMNS;
    }
    return wrong;
}

static float *make_source(void) {
    float *source = allocate(LARGE_ROWS * LARGE_COLUMNS * sizeof *source);
    for (int i = 0; i < LARGE_ROWS * LARGE_COLUMNS; i++)
        source[i] = (float)i;
    return source;
}

/* Runs the tasks from the last to the first, and counts them. */
static int32_t run_backwards(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    *(size_t *)pool = count;
    while (count > 0)
        task(task_ctx, --count);
    return 0;
}

static int32_t run_none(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    (void)pool;
    (void)task;
    (void)task_ctx;
    (void)count;
    return 0;
}

static void test_on_an_executor(void) {
    size_t tasks = 0;
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(run_backwards, &tasks);
    libsplit_plan *plan = make_large_plan();
    float *source = make_source(), *targets = allocate(LARGE_ROWS * LARGE_COLUMNS * sizeof(float));
    void *addresses[2] = {targets, targets + LARGE_ROWS * 100};
    for (executor.max_tasks = 0; executor.max_tasks < 5; executor.max_tasks++) {
        CHECK_CASE("max_tasks %u", executor.max_tasks);
        memset(targets, 0, LARGE_ROWS * LARGE_COLUMNS * sizeof(float));
        tasks = 0;
        CHECK_OK(libsplit_plan_copy(plan, source, addresses, 2, &executor, NULL));
        CHECK_EQ_INT(count_wrong(source, addresses[0], addresses[1]), 0);
        CHECK(executor.max_tasks == 1 ? tasks == 0 : tasks > 1);
        CHECK(executor.max_tasks == 0 || tasks <= executor.max_tasks);
    }
    CHECK_CASE("tasks that do not run");
    executor = (libsplit_executor)LIBSPLIT_EXECUTOR_INIT(run_none, NULL);
    CHECK_STATUS(libsplit_plan_copy(plan, source, addresses, 2, &executor, NULL),
                 LIBSPLIT_STATUS_ERROR_EXECUTOR);
    free(plan);
    free(source);
    free(targets);
}

struct user {
    const libsplit_plan *plan;
    const float *source;
    int wrong;
};

static void *run_often(void *data) {
    struct user *user = data;
    size_t tasks;
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(run_backwards, &tasks);
    float *targets = allocate(LARGE_ROWS * LARGE_COLUMNS * sizeof *targets);
    void *addresses[2] = {targets, targets + LARGE_ROWS * 100}, *views[2];
    for (int times = 0; times < 20; times++) {
        memset(targets, 0, LARGE_ROWS * LARGE_COLUMNS * sizeof *targets);
        user->wrong += libsplit_plan_copy(user->plan, user->source, addresses, 2,
                                          times % 2 ? &executor : NULL, NULL) != LIBSPLIT_STATUS_OK;
        user->wrong += count_wrong(user->source, addresses[0], addresses[1]);
        user->wrong +=
            libsplit_plan_view(user->plan, targets, views, 2, NULL) != LIBSPLIT_STATUS_OK ||
            views[1] != targets + 100;
    }
    free(targets);
    return NULL;
}

static void test_threads_share_a_plan(void) {
    pthread_t threads[THREADS];
    struct user users[THREADS];
    libsplit_plan *plan = make_large_plan();
    float *source = make_source();
    for (int t = 0; t < THREADS; t++) {
        users[t] = (struct user){.plan = plan, .source = source};
        if (pthread_create(&threads[t], NULL, run_often, &users[t]) != 0)
            abort();
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK_CASE("thread %d", t);
        CHECK_EQ_INT(users[t].wrong, 0);
    }
    free(plan);
    free(source);
}

/* Describes a plan that splits a matrix of bytes down the middle. */
static void describe(char *text, size_t size, int64_t rows, int64_t columns) {
    int64_t shape[2] = {rows, columns}, lengths[2] = {columns / 2, -1}, count = 2;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, shape);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(VARIADIC, 1);
    params.axis = 1;
    params.split = &split;
    libsplit_plan *plan = make_plan(&input, &params, NULL, 2);
    size_t length = libsplit_plan_describe(plan, text, size);
    CHECK(length > 0 && length < size);
    CHECK_EQ_INT(strlen(text), length);
    free(plan);
}

/* A plan tells from what size on outputs are streamed, and so it is. */
static void test_a_plan_tells_whether_outputs_are_streamed(void) {
    enum { ROWS = 1024 };
    char text[1024];
    uint64_t threshold;
    CHECK_CASE("much");
    describe(text, sizeof text, ROWS, 1 << 20);
    CHECK(strstr(text, ", past the caches (") != NULL);
    const char *above = strstr(text, "past them above ");
    CHECK(above != NULL);
    if (above == NULL || sscanf(above, "past them above %" SCNu64 " bytes", &threshold) != 1)
        return;
    /* As many bytes are read as written. */
    int64_t columns = (int64_t)(threshold / 2 / ROWS);
    CHECK_CASE("%d bytes, as much as the caches hold", (int)threshold);
    describe(text, sizeof text, ROWS, columns);
    CHECK(strstr(text, ", through the caches (") != NULL);
    CHECK_CASE("more than %d bytes", (int)threshold);
    describe(text, sizeof text, ROWS, columns + 1);
    CHECK(strstr(text, ", past the caches (") != NULL);
}

static void test_sizes(void) {
    CHECK_CASE("plan_size");
    /* Memory for a plan of 4 pieces of rank 3, reserved at compile time. */
    static uint64_t reserved[LIBSPLIT_PLAN_SIZE_MAX(3, 4) / 8];
    CHECK_EQ_INT(sizeof reserved, 1024 + 4 * (24 + 32 * 3));
    CHECK(libsplit_plan_size(3, 4) <= sizeof reserved);
    CHECK_EQ_INT(libsplit_plan_size(0, 1), 0);
    CHECK_EQ_INT(libsplit_plan_size(-1, 1), 0);
    CHECK_EQ_INT(libsplit_plan_size(INT32_MIN, 1), 0);
    CHECK_EQ_INT(libsplit_plan_size(65, 1), 0);
    CHECK_EQ_INT(libsplit_plan_size(INT32_MAX, 1), 0);
    CHECK_EQ_INT(libsplit_plan_size(1, SIZE_MAX), 0);
    CHECK_EQ_INT(libsplit_plan_size(64, SIZE_MAX / 100), 0);
    for (size_t rank = 1; rank <= 64; rank++)
        for (size_t count = 0; count < 3000; count = count * 3 + 1) {
            size_t size = libsplit_plan_size((int32_t)rank, count);
            CHECK_CASE("plan_size of rank %zu, %zu outputs", rank, count);
            CHECK(0 < size && size <= LIBSPLIT_PLAN_SIZE_MAX(rank, count));
            CHECK(size % 8 == 0);
        }
}

int main(void) {
    CHECK_START();
    test_a_plan_stands_alone();
    test_a_plan_has_room_to_spare();
    test_memory_that_is_no_plan();
    test_everything_that_can_be_wrong();
    test_every_plan_size_that_is_too_small();
    test_outputs_that_are_not_written();
    test_no_outputs_and_no_elements();
    test_many_pieces();
    test_sub_byte_elements();
    test_rank_64();
#if SIZE_MAX > UINT32_MAX
    test_more_than_2_to_the_31_elements();
#endif
    test_on_an_executor();
    test_threads_share_a_plan();
    test_sizes();
    test_a_plan_tells_whether_outputs_are_streamed();
    CHECK_DONE();
}
