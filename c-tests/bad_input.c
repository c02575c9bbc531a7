/*
 * bad_input.c - everything that a caller can get wrong: which status is returned, what the error
 * says, and that nothing has changed
 *
 * Calls that made other libraries crash, and where they are tried on this one (in a table below, or
 * in another program):
 *
 *   num_outputs 0, on tensors with and without elements   number_cases, lengths_cases
 *     (CVE-2021-29599)
 *   negative length with a right sum (CVE-2021-41222)     lengths_cases
 *   fewer and more outputs than lengths (onnx 8255)       number_cases
 *   scalar length 0 (onnx 8322)                           lengths_cases
 *   axis -rank - 1, rank, INT64_MIN, INT64_MAX            tensor_cases
 *     (CVE-2020-15207)
 *   data_bytes one short (CVE-2020-15208), by every       layout_cases, every_element_type
 *     element width (nntrainer 4346)
 *   every pointer NULL in turn (CVE-2020-15209), or       pointer_cases
 *     askew; data may be
 *   output = input, partial overlaps, outputs alike       output_cases; many outputs: overlap.c
 *     (CVE-2020-15210)
 *   more than 2^31 elements (CVE-2020-15202)              copy.c, view.c, infer.c
 *   ... and tasks numbered 2^32 and above                 parallel.c
 *   sums, products, byte spans and addresses that wrap    overflow_cases, lengths_cases
 *     (CVE-2021-29601, CVE-2022-23558)
 *   pieces of length 0 (pytorch 8686)                     test_what_is_accepted, output tests
 *   rank 0, 65, INT32_MIN; extents below 0; shape NULL    tensor_cases, pointer_cases
 *   capacity below the rank                               layout_cases
 *   output strides of 0, or that collide                  layout_cases
 *   garbage strides where they do not matter              test_what_is_accepted
 *   struct_size 0, short, huge; a tail that is not 0      structure_cases, test_error_structures
 *   unknown dtype, operator, opset and flags              structure_cases, tensor_cases
 *   data that is not aligned                              test_what_is_accepted
 *   num_outputs SIZE_MAX                                  number_cases
 *   arrays that outputs share, or that are read as well   reads_cases, test_outputs_over_the_error
 *   work that grows with the square of the outputs, or    overlap.c
 *     with outputs times matrices
 *   plans: no plan, too small, over what is read          plan.c
 *   a parallel_for that fails, skips, repeats, reorders   parallel.c
 *     or calls back
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#define SPLIT LIBSPLIT_OP_ONNX_SPLIT
#define SEQUENCE LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE
#define VARIADIC LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT
#define OV_SPLIT LIBSPLIT_OP_OPENVINO_SPLIT

#define MAX_OUTPUTS 5

/* The functions that a case is about. */
enum { COUNT = 1, INFER = 2, VIEW = 4, COPY = 8 };
#define ALL (COUNT | INFER | VIEW | COPY)
#define GIVEN (INFER | VIEW | COPY) /* those that take outputs */
#define FILLED (INFER | VIEW)       /* those that fill descriptors */
#define DATA (VIEW | COPY)          /* those to which the input's data matters */

/*
 * A valid call, with all the memory that it uses: bytes [2, 6] split into 2 and 4 columns. A case
 * spoils one thing in it. Everything is in one structure, so that what a refused call must not
 * change can be compared at once.
 */
struct scene {
    libsplit_tensor input, split, outputs[MAX_OUTPUTS];
    int64_t input_shape[2], input_strides[2];
    int64_t lengths[4], split_shape[2], split_strides[2];
    int64_t shapes[MAX_OUTPUTS][3], strides[MAX_OUTPUTS][3];
    unsigned char input_bytes[256], output_bytes[MAX_OUTPUTS][192];
    libsplit_params params;
    unsigned char params_tail[64];
    libsplit_executor executor;
    unsigned char executor_tail[64];
    size_t count;

    /* The arguments. */
    const libsplit_tensor *input_arg;
    const libsplit_params *params_arg;
    libsplit_tensor *outputs_arg;
    const libsplit_executor *executor_arg;
    size_t *count_arg;
    size_t num_outputs;
};

static void set_output(struct scene *s, size_t i, int64_t columns) {
    s->shapes[i][0] = 2;
    s->shapes[i][1] = columns;
    s->strides[i][0] = columns;
    s->strides[i][1] = 1;
    memset(s->output_bytes[i], 0xA5, sizeof s->output_bytes[i]);
    s->outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, s->output_bytes[i] + 16, 2, s->shapes[i]);
    s->outputs[i].strides = s->strides[i];
    s->outputs[i].data_bytes = (size_t)(2 * columns);
}

static void set_scene(struct scene *s) {
    memset(s, 0, sizeof *s);
    memcpy(s->input_bytes, "abcdefghijkl", 12);
    s->input_shape[0] = 2;
    s->input_shape[1] = 6;
    s->input_strides[0] = 6;
    s->input_strides[1] = 1;
    s->input = packed(LIBSPLIT_DTYPE_UINT8, s->input_bytes, 2, s->input_shape);
    s->input.strides = s->input_strides;
    s->input.data_bytes = 12;
    s->lengths[0] = 2;
    s->lengths[1] = 4;
    s->split_shape[0] = 2;
    s->split_strides[0] = 1;
    s->split = packed(LIBSPLIT_DTYPE_INT64, s->lengths, 1, s->split_shape);
    s->split.strides = s->split_strides;
    s->split.data_bytes = 16;
    for (size_t i = 0; i < MAX_OUTPUTS; i++)
        set_output(s, i, i == 0 ? 2 : 4);
    s->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(SPLIT, 18);
    s->params.axis = 1;
    s->params.split = &s->split;
    s->executor = (libsplit_executor)LIBSPLIT_EXECUTOR_INIT(run_in_order, NULL);
    s->count = 999;
    s->input_arg = &s->input;
    s->params_arg = &s->params;
    s->outputs_arg = s->outputs;
    s->executor_arg = &s->executor;
    s->count_arg = &s->count;
    s->num_outputs = 2;
}

static libsplit_status call(unsigned verb, const struct scene *s, libsplit_error *error) {
    switch (verb) {
    case COUNT:
        return libsplit_count(s->input_arg, s->params_arg, s->count_arg, error);
    case INFER:
        return libsplit_infer(s->input_arg, s->params_arg, s->outputs_arg, s->num_outputs, error);
    case VIEW:
        return libsplit_view(s->input_arg, s->params_arg, s->outputs_arg, s->num_outputs, error);
    default:
        return libsplit_copy(s->input_arg, s->params_arg, s->outputs_arg, s->num_outputs,
                             s->executor_arg, error);
    }
}

static const char *name_of(unsigned verb) {
    return verb == COUNT ? "count" : verb == INFER ? "infer" : verb == VIEW ? "view" : "copy";
}

struct bad {
    const char *name;
    void (*spoil)(struct scene *s);
    unsigned verbs;
    libsplit_status status;
    const char *named;    /* what the message must contain */
    int32_t output_index; /* what the error must contain */
    int has_numbers;
    int64_t expected, actual;
};

#define ERROR(kind) LIBSPLIT_STATUS_ERROR_##kind
#define NO_OUTPUT .output_index = -1
#define OUTPUT(index) .output_index = (index)
#define NUMBERS(expected_number, actual_number)                                                    \
    .has_numbers = 1, .expected = (expected_number), .actual = (actual_number)

static void check_error(const struct bad *bad, const libsplit_error *error) {
    CHECK_EQ_INT(error->struct_size, sizeof *error);
    CHECK_STATUS(error->status, bad->status);
    CHECK_EQ_INT(error->output_index, bad->output_index);
    if (bad->has_numbers) {
        CHECK_EQ_INT(error->expected, bad->expected);
        CHECK_EQ_INT(error->actual, bad->actual);
    }
    int is_terminated = memchr(error->message, '\0', sizeof error->message) != NULL;
    CHECK(is_terminated);
    if (is_terminated && strstr(error->message, bad->named) == NULL)
        CHECK_EQ_STR(error->message, bad->named);
    CHECK(error->message[0] != '\0');
}

/* Leaves out the outputs' strides, which add nothing to their shapes, unless they are what is
 * wrong. */
static void leave_out_strides(struct scene *s) {
    static struct scene good;
    set_scene(&good);
    for (size_t i = 0; i < MAX_OUTPUTS; i++) {
        const int64_t *strides = s->strides[i];
        int is_good = memcmp(strides, good.strides[i], sizeof good.strides[i]) == 0;
        if (is_good && s->outputs[i].strides == strides && s->outputs[i].data != strides)
            s->outputs[i].strides = NULL;
    }
}

static void refuse(const struct bad *bad, unsigned verb, int with_strides) {
    static struct scene scene, before;
    struct {
        libsplit_error error;
        unsigned char beyond[16];
    } detail;
    static const unsigned char untouched[16] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    CHECK_CASE("%s: %s%s", name_of(verb), bad->name, with_strides ? "" : ", without strides");
    set_scene(&scene);
    bad->spoil(&scene);
    if (!with_strides)
        leave_out_strides(&scene);
    memcpy(&before, &scene, sizeof before);
    memset(&detail, 7, sizeof detail);
    detail.error.struct_size = sizeof detail.error;
    CHECK_STATUS(call(verb, &scene, &detail.error), bad->status);
    check_error(bad, &detail.error);
    CHECK(memcmp(detail.beyond, untouched, sizeof untouched) == 0);
    CHECK_STATUS(call(verb, &scene, NULL), bad->status);
    CHECK(memcmp(&before, &scene, sizeof before) == 0);
}

static void refuse_all(const struct bad *cases, size_t count) {
    for (const struct bad *bad = cases; bad < cases + count; bad++)
        for (unsigned verb = COUNT; verb <= COPY; verb *= 2)
            if (bad->verbs & verb) {
                refuse(bad, verb, 1);
                if (verb == COPY)
                    refuse(bad, verb, 0);
            }
}
#define REFUSE_ALL(cases) refuse_all(cases, sizeof cases / sizeof *cases)

/* What is wrong, one thing in each: SPOIL(name) { s->... = ...; } */
#define SPOIL(name) static void name(struct scene *s)

/* An address in the middle of the object that it should point to. */
#define ASKEW(pointer) ((void *)((char *)(pointer) + 1))

/* A number that would be valid if only its low 32 bits counted. */
#define IN_32_BITS(number) ((number) + (INT64_C(1) << 32))

/* A number for a size_t of 64 bits, and the one that is tried if it has 32. */
#if SIZE_MAX > UINT32_MAX
#define SIZE(wide, narrow) (wide)
#else
#define SIZE(wide, narrow) (narrow)
#endif

SPOIL(nothing) { (void)s; }

SPOIL(null_input) { s->input_arg = NULL; }
SPOIL(null_params) { s->params_arg = NULL; }
SPOIL(null_count) { s->count_arg = NULL; }
SPOIL(null_outputs) { s->outputs_arg = NULL; }
SPOIL(null_input_shape) { s->input.shape = NULL; }
SPOIL(null_input_data) { s->input.data = NULL; }
SPOIL(null_split_shape) { s->split.shape = NULL; }
SPOIL(null_split_data) { s->split.data = NULL; }
SPOIL(null_output_shape) { s->outputs[1].shape = NULL; }
SPOIL(null_output_data) { s->outputs[1].data = NULL; }
SPOIL(outputs_never_made) { memset(s->outputs, 0, sizeof s->outputs); }
SPOIL(output_with_data_alone) {
    libsplit_tensor output = {.data = s->outputs[1].data};
    s->outputs[1] = output;
}
SPOIL(askew_input) { s->input_arg = ASKEW(&s->input); }
SPOIL(askew_params) { s->params_arg = ASKEW(&s->params); }
SPOIL(askew_count) { s->count_arg = ASKEW(&s->count); }
SPOIL(askew_outputs) { s->outputs_arg = ASKEW(s->outputs); }
SPOIL(askew_executor) { s->executor_arg = ASKEW(&s->executor); }
SPOIL(askew_split) { s->params.split = ASKEW(&s->split); }
SPOIL(askew_input_shape) { s->input.shape = ASKEW(s->input_shape); }
SPOIL(askew_input_strides) { s->input.strides = ASKEW(s->input_strides); }
SPOIL(askew_split_shape) { s->split.shape = ASKEW(s->split_shape); }
SPOIL(askew_split_strides) { s->split.strides = ASKEW(s->split_strides); }
/* The right shape, except for its address. */
SPOIL(askew_output_shape) {
    s->outputs[1].shape = memcpy(ASKEW(s->shapes[2]), s->shapes[1], sizeof(int64_t[2]));
}
SPOIL(askew_output_strides) { s->outputs[1].strides = ASKEW(s->strides[1]); }

static const struct bad pointer_cases[] = {
    {"input NULL", null_input, ALL, ERROR(NULL), "input", NO_OUTPUT},
    {"params NULL", null_params, ALL, ERROR(NULL), "params", NO_OUTPUT},
    {"count NULL", null_count, COUNT, ERROR(NULL), "count", NO_OUTPUT},
    {"outputs NULL", null_outputs, GIVEN, ERROR(NULL), "outputs", NO_OUTPUT},
    {"input.shape NULL", null_input_shape, ALL, ERROR(NULL), "input.shape", NO_OUTPUT},
    {"input.data NULL", null_input_data, DATA, ERROR(NULL), "input.data", NO_OUTPUT},
    {"split.shape NULL", null_split_shape, ALL, ERROR(NULL), "params.split", NO_OUTPUT},
    {"split.data NULL", null_split_data, DATA, ERROR(SPLIT), "params.split", NO_OUTPUT},
    {"output.shape NULL", null_output_shape, GIVEN, ERROR(NULL), "outputs[1].shape", OUTPUT(1)},
    {"output.data NULL", null_output_data, COPY, ERROR(NULL), "outputs[1].data", OUTPUT(1)},
    {"outputs never made", outputs_never_made, GIVEN, ERROR(NULL), "libsplit_outputs_init",
     NO_OUTPUT, NUMBERS(1, 0)},
    {"an output with data alone", output_with_data_alone, COPY, ERROR(DTYPE), "libsplit_infer",
     OUTPUT(1)},
    {"input askew", askew_input, ALL, ERROR(ALIGNMENT), "input", NO_OUTPUT},
    {"params askew", askew_params, ALL, ERROR(ALIGNMENT), "params", NO_OUTPUT},
    {"count askew", askew_count, COUNT, ERROR(ALIGNMENT), "count", NO_OUTPUT},
    {"outputs askew", askew_outputs, GIVEN, ERROR(ALIGNMENT), "outputs", NO_OUTPUT},
    {"executor askew", askew_executor, COPY, ERROR(ALIGNMENT), "executor", NO_OUTPUT},
    {"split askew", askew_split, ALL, ERROR(ALIGNMENT), "params.split", NO_OUTPUT},
    {"input.shape askew", askew_input_shape, ALL, ERROR(ALIGNMENT), "input.shape", NO_OUTPUT},
    {"input.strides askew", askew_input_strides, DATA, ERROR(ALIGNMENT), "input.strides",
     NO_OUTPUT},
    {"split.shape askew", askew_split_shape, ALL, ERROR(ALIGNMENT), "params.split", NO_OUTPUT},
    {"split.strides askew", askew_split_strides, ALL, ERROR(ALIGNMENT), "params.split", NO_OUTPUT},
    {"output.shape askew", askew_output_shape, GIVEN, ERROR(ALIGNMENT), "outputs[1].shape",
     OUTPUT(1)},
    {"output.strides askew", askew_output_strides, GIVEN, ERROR(ALIGNMENT), "outputs[1].strides",
     OUTPUT(1)},
};

SPOIL(params_size_0) { s->params.struct_size = 0; }
SPOIL(params_size_1) { s->params.struct_size = 1; }
SPOIL(params_size_short) { s->params.struct_size = sizeof s->params - 1; }
SPOIL(params_size_huge) { s->params.struct_size = SIZE_MAX; }
SPOIL(params_size_large) { s->params.struct_size = (size_t)1 << 20; }
SPOIL(params_size_beyond_32_bits) {
    s->params.struct_size = SIZE(IN_32_BITS(sizeof s->params), SIZE_MAX);
}
SPOIL(params_tail) {
    s->params.struct_size = sizeof s->params + 16;
    s->params_tail[15] = 1;
}
SPOIL(executor_size_0) { s->executor.struct_size = 0; }
SPOIL(executor_size_short) { s->executor.struct_size = sizeof s->executor - 1; }
SPOIL(executor_size_huge) { s->executor.struct_size = SIZE_MAX; }
SPOIL(executor_tail) {
    s->executor.struct_size = sizeof s->executor + 1;
    s->executor_tail[0] = 1;
}
SPOIL(op_0) { s->params.op = 0; }
SPOIL(op_5) { s->params.op = 5; }
SPOIL(op_min) { s->params.op = INT32_MIN; }
SPOIL(op_max) { s->params.op = INT32_MAX; }
SPOIL(opset_0) { s->params.opset = 0; }
SPOIL(opset_min) { s->params.opset = INT32_MIN; }
SPOIL(sequence_10) {
    s->params.op = SEQUENCE;
    s->params.opset = 10;
}
SPOIL(variadic_2) {
    s->params.op = VARIADIC;
    s->params.opset = 2;
}
SPOIL(openvino_minus_1) {
    s->params.op = OV_SPLIT;
    s->params.opset = -1;
}
SPOIL(flag_2) { s->params.flags = 2; }
SPOIL(flags_all) { s->params.flags = UINT32_MAX; }
SPOIL(executor_flag_1) { s->executor.flags = 1; }
SPOIL(executor_flag_8) { s->executor.flags = LIBSPLIT_FLAG_NEVER_STREAM | 8; }

static const struct bad structure_cases[] = {
    {"params.struct_size 0", params_size_0, ALL, ERROR(STRUCT_SIZE), "params.struct_size",
     NO_OUTPUT, NUMBERS(sizeof(libsplit_params), 0)},
    {"params.struct_size 1", params_size_1, ALL, ERROR(STRUCT_SIZE), "params.struct_size",
     NO_OUTPUT, NUMBERS(sizeof(libsplit_params), 1)},
    {"params.struct_size one short", params_size_short, ALL, ERROR(STRUCT_SIZE),
     "params.struct_size", NO_OUTPUT,
     NUMBERS(sizeof(libsplit_params), sizeof(libsplit_params) - 1)},
    {"params.struct_size SIZE_MAX", params_size_huge, ALL, ERROR(STRUCT_SIZE), "params.struct_size",
     NO_OUTPUT},
    {"params.struct_size 1 MiB", params_size_large, ALL, ERROR(STRUCT_SIZE), "params.struct_size",
     NO_OUTPUT},
    {"params.struct_size 2^32 + 48", params_size_beyond_32_bits, ALL, ERROR(STRUCT_SIZE),
     "params.struct_size", NO_OUTPUT},
    {"params with a tail", params_tail, ALL, ERROR(STRUCT_SIZE), "params", NO_OUTPUT},
    {"executor.struct_size 0", executor_size_0, COPY, ERROR(STRUCT_SIZE), "executor.struct_size",
     NO_OUTPUT, NUMBERS(sizeof(libsplit_executor), 0)},
    {"executor.struct_size one short", executor_size_short, COPY, ERROR(STRUCT_SIZE),
     "executor.struct_size", NO_OUTPUT},
    {"executor.struct_size SIZE_MAX", executor_size_huge, COPY, ERROR(STRUCT_SIZE),
     "executor.struct_size", NO_OUTPUT},
    {"executor with a tail", executor_tail, COPY, ERROR(STRUCT_SIZE), "executor", NO_OUTPUT},
    {"op 0", op_0, ALL, ERROR(OPERATOR), "params.op", NO_OUTPUT},
    {"op 5", op_5, ALL, ERROR(OPERATOR), "params.op 5", NO_OUTPUT},
    {"op INT32_MIN", op_min, ALL, ERROR(OPERATOR), "params.op", NO_OUTPUT},
    {"op INT32_MAX", op_max, ALL, ERROR(OPERATOR), "params.op", NO_OUTPUT},
    {"opset 0", opset_0, ALL, ERROR(OPSET), "params.opset", NO_OUTPUT, NUMBERS(1, 0)},
    {"opset INT32_MIN", opset_min, ALL, ERROR(OPSET), "params.opset", NO_OUTPUT,
     NUMBERS(1, INT32_MIN)},
    {"SplitToSequence of opset 10", sequence_10, ALL, ERROR(OPSET), "params.opset", NO_OUTPUT,
     NUMBERS(11, 10)},
    {"VariadicSplit of opset 2", variadic_2, ALL, ERROR(OPSET), "params.opset", NO_OUTPUT,
     NUMBERS(1, 2)},
    {"OpenVINO Split of opset -1", openvino_minus_1, ALL, ERROR(OPSET), "params.opset", NO_OUTPUT,
     NUMBERS(1, -1)},
    {"flag 2", flag_2, ALL, ERROR(FLAGS), "params.flags", NO_OUTPUT},
    {"all flags", flags_all, ALL, ERROR(FLAGS), "params.flags", NO_OUTPUT},
    {"executor.flags 8", executor_flag_8, COPY, ERROR(FLAGS), "executor.flags", NO_OUTPUT},
    {"executor.flags 1", executor_flag_1, COPY, ERROR(FLAGS), "executor.flags", NO_OUTPUT},
};

SPOIL(input_dtype_0) { s->input.dtype = 0; }
SPOIL(input_dtype_27) { s->input.dtype = 27; }
SPOIL(input_dtype_min) { s->input.dtype = INT32_MIN; }
SPOIL(input_dtype_max) { s->input.dtype = INT32_MAX; }
SPOIL(split_dtype_27) { s->split.dtype = 27; }
SPOIL(output_dtype_27) { s->outputs[1].dtype = 27; }
SPOIL(uint8_at_1) { s->params.opset = 1; }
SPOIL(bfloat16_at_11) {
    s->params.opset = 11;
    s->input.dtype = LIBSPLIT_DTYPE_BFLOAT16;
}
SPOIL(float8_at_18) { s->input.dtype = LIBSPLIT_DTYPE_FLOAT8E5M2; }
SPOIL(bfloat16_in_sequence) {
    s->params.op = SEQUENCE;
    s->params.opset = 11;
    s->input.dtype = LIBSPLIT_DTYPE_BFLOAT16;
}
SPOIL(input_rank_0) { s->input.rank = 0; }
SPOIL(input_rank_minus_1) { s->input.rank = -1; }
SPOIL(input_rank_65) { s->input.rank = 65; }
SPOIL(input_rank_min) { s->input.rank = INT32_MIN; }
SPOIL(input_rank_max) { s->input.rank = INT32_MAX; }
SPOIL(output_rank_minus_1) { s->outputs[1].rank = -1; }
SPOIL(output_rank_65) { s->outputs[1].rank = 65; }
SPOIL(output_rank_min) { s->outputs[1].rank = INT32_MIN; }
SPOIL(axis_2) { s->params.axis = 2; }
SPOIL(axis_minus_3) { s->params.axis = -3; }
SPOIL(axis_beyond_32_bits) { s->params.axis = IN_32_BITS(1); }
SPOIL(axis_beyond_32_bits_below) { s->params.axis = -IN_32_BITS(1); }
SPOIL(axis_min) { s->params.axis = INT64_MIN; }
SPOIL(axis_max) { s->params.axis = INT64_MAX; }
SPOIL(extent_minus_2) { s->input_shape[0] = -2; }
SPOIL(extent_min) { s->input_shape[0] = INT64_MIN; }
SPOIL(axis_extent_minus_6) { s->input_shape[1] = -6; }
SPOIL(extent_unknown) { s->input_shape[0] = LIBSPLIT_DIM_UNKNOWN; }
SPOIL(axis_extent_unknown) { s->input_shape[1] = LIBSPLIT_DIM_UNKNOWN; }
SPOIL(split_extent_minus_1) { s->split_shape[0] = -1; }
SPOIL(split_extent_min) { s->split_shape[0] = INT64_MIN; }

static const struct bad tensor_cases[] = {
    {"input.dtype 0", input_dtype_0, ALL, ERROR(DTYPE), "input.dtype", NO_OUTPUT},
    {"input.dtype 27", input_dtype_27, ALL, ERROR(DTYPE), "input.dtype 27", NO_OUTPUT},
    {"input.dtype INT32_MIN", input_dtype_min, ALL, ERROR(DTYPE), "input.dtype", NO_OUTPUT},
    {"input.dtype INT32_MAX", input_dtype_max, ALL, ERROR(DTYPE), "input.dtype", NO_OUTPUT},
    {"split.dtype 27", split_dtype_27, ALL, ERROR(DTYPE), "params.split", NO_OUTPUT},
    {"output.dtype 27", output_dtype_27, COPY, ERROR(DTYPE), "outputs[1].dtype", OUTPUT(1)},
    {"UINT8 before Split-2", uint8_at_1, ALL, ERROR(DTYPE), "Split-2", NO_OUTPUT},
    {"BFLOAT16 before Split-13", bfloat16_at_11, ALL, ERROR(DTYPE), "Split-13", NO_OUTPUT},
    {"FLOAT8 in ONNX", float8_at_18, ALL, ERROR(DTYPE), "VariadicSplit", NO_OUTPUT},
    {"BFLOAT16 before SplitToSequence-24", bfloat16_in_sequence, ALL, ERROR(DTYPE),
     "SplitToSequence-24", NO_OUTPUT},
    {"input.rank 0", input_rank_0, ALL, ERROR(RANK), "input.rank", NO_OUTPUT},
    {"input.rank -1", input_rank_minus_1, ALL, ERROR(RANK), "input.rank", NO_OUTPUT},
    {"input.rank 65", input_rank_65, ALL, ERROR(RANK), "input.rank", NO_OUTPUT, NUMBERS(64, 65)},
    {"input.rank INT32_MIN", input_rank_min, ALL, ERROR(RANK), "input.rank", NO_OUTPUT},
    {"input.rank INT32_MAX", input_rank_max, ALL, ERROR(RANK), "input.rank", NO_OUTPUT},
    {"output.rank -1", output_rank_minus_1, COPY, ERROR(RANK), "outputs[1].rank", OUTPUT(1)},
    {"output.rank 65", output_rank_65, COPY, ERROR(RANK), "outputs[1].rank", OUTPUT(1)},
    {"output.rank INT32_MIN", output_rank_min, COPY, ERROR(RANK), "outputs[1].rank", OUTPUT(1)},
    {"axis = rank", axis_2, ALL, ERROR(AXIS), "axis 2", NO_OUTPUT},
    {"axis = -rank - 1", axis_minus_3, ALL, ERROR(AXIS), "axis -3", NO_OUTPUT},
    {"axis 2^32 + 1", axis_beyond_32_bits, ALL, ERROR(AXIS), "axis", NO_OUTPUT},
    {"axis -2^32 - 1", axis_beyond_32_bits_below, ALL, ERROR(AXIS), "axis", NO_OUTPUT},
    {"axis INT64_MIN", axis_min, ALL, ERROR(AXIS), "axis", NO_OUTPUT},
    {"axis INT64_MAX", axis_max, ALL, ERROR(AXIS), "axis", NO_OUTPUT},
    {"extent -2", extent_minus_2, ALL, ERROR(SHAPE), "input.shape[0]", NO_OUTPUT, NUMBERS(0, -2)},
    {"extent INT64_MIN", extent_min, ALL, ERROR(SHAPE), "input.shape[0]", NO_OUTPUT},
    {"extent -6 of the axis", axis_extent_minus_6, ALL, ERROR(SHAPE), "input.shape[1]", NO_OUTPUT},
    {"unknown extent", extent_unknown, DATA, ERROR(SHAPE), "input.shape[0]", NO_OUTPUT},
    {"unknown extent of the axis", axis_extent_unknown, DATA, ERROR(SHAPE), "input.shape[1]",
     NO_OUTPUT},
    {"-1 lengths", split_extent_minus_1, ALL, ERROR(SHAPE), "params.split", NO_OUTPUT},
    {"INT64_MIN lengths", split_extent_min, ALL, ERROR(SHAPE), "params.split", NO_OUTPUT},
};

static void use(struct scene *s, libsplit_op op, int32_t opset, int64_t num_outputs) {
    s->params.op = op;
    s->params.opset = opset;
    s->params.num_outputs = num_outputs;
    s->params.split = NULL;
}
static void use_lengths(struct scene *s, libsplit_op op, int32_t opset, int64_t a, int64_t b) {
    s->params.op = op;
    s->params.opset = opset;
    s->lengths[0] = a;
    s->lengths[1] = b;
}
static void use_scalar(struct scene *s, int64_t length) {
    use_lengths(s, SEQUENCE, 11, length, 0);
    s->split.rank = 0;
}

SPOIL(variadic_without_lengths) { use(s, VARIADIC, 1, 0); }
SPOIL(neither) { use(s, SPLIT, 18, 0); }
SPOIL(neither_of_nothing) {
    use(s, SPLIT, 18, 0);
    s->input_shape[1] = 0;
}
SPOIL(both) { s->params.num_outputs = 2; }
SPOIL(refused_lengths) {
    use(s, OV_SPLIT, 1, 2);
    s->params.split = &s->split;
}
SPOIL(scalar_lengths) { s->split.rank = 0; }
SPOIL(scalar_variadic_lengths) {
    use_lengths(s, VARIADIC, 1, 6, 0);
    s->split.rank = 0;
}
SPOIL(matrix_of_lengths) {
    s->split.rank = 2;
    s->split_shape[0] = 1;
    s->split_shape[1] = 2;
    s->split_strides[0] = 2;
    s->split_strides[1] = 1;
}
SPOIL(lengths_of_rank_65) { s->split.rank = 65; }
SPOIL(lengths_of_rank_minus_1) { s->split.rank = -1; }
SPOIL(lengths_of_rank_min) { s->split.rank = INT32_MIN; }
SPOIL(int32_lengths) {
    int32_t lengths[2] = {2, 4};
    memcpy(s->lengths, lengths, sizeof lengths);
    s->split.dtype = LIBSPLIT_DTYPE_INT32;
    s->split.data_bytes = 8;
}
SPOIL(float_lengths) {
    float lengths[2] = {2, 4};
    memcpy(s->lengths, lengths, sizeof lengths);
    s->split.dtype = LIBSPLIT_DTYPE_FLOAT;
    s->split.data_bytes = 8;
    s->params.op = VARIADIC;
    s->params.opset = 1;
}
SPOIL(string_lengths) {
    s->split.dtype = LIBSPLIT_DTYPE_STRING;
    s->split.data_bytes = 32;
}

SPOIL(negative_first) { use_lengths(s, SPLIT, 18, -1, 7); }
SPOIL(negative_second) { use_lengths(s, SPLIT, 13, 8, -2); }
SPOIL(negative_in_sequence) { use_lengths(s, SEQUENCE, 11, 7, -1); }
SPOIL(lengths_min) { use_lengths(s, SPLIT, 18, 6, INT64_MIN); }
SPOIL(sum_5) { use_lengths(s, SPLIT, 18, 2, 3); }
SPOIL(sum_7) { use_lengths(s, SPLIT, 18, 3, 4); }
SPOIL(sum_beyond_32_bits) { use_lengths(s, SPLIT, 18, IN_32_BITS(2), 4); }
SPOIL(sum_wraps) { use_lengths(s, SPLIT, 18, INT64_MAX, INT64_MAX); }
SPOIL(two_rests) { use_lengths(s, VARIADIC, 1, -1, -1); }
SPOIL(minus_2) { use_lengths(s, VARIADIC, 1, -2, 8); }
SPOIL(rest_below_0) { use_lengths(s, VARIADIC, 1, 7, -1); }
SPOIL(rest_wraps) { use_lengths(s, VARIADIC, 1, INT64_MAX, -1); }
SPOIL(uint64_max) {
    use_lengths(s, VARIADIC, 1, -1, 2);
    s->split.dtype = LIBSPLIT_DTYPE_UINT64;
}
SPOIL(half_a_length) {
    float lengths[2] = {1.5f, 4.5f};
    memcpy(s->lengths, lengths, sizeof lengths);
    s->split.dtype = s->input.dtype = LIBSPLIT_DTYPE_FLOAT;
    s->split.data_bytes = 8;
    s->params.opset = 1;
    s->input.data_bytes = 0;
}
SPOIL(scalar_0) { use_scalar(s, 0); }
SPOIL(scalar_0_of_nothing) {
    use_scalar(s, 0);
    s->input_shape[1] = 0;
}
SPOIL(scalar_minus_3) { use_scalar(s, -3); }
SPOIL(scalar_min) { use_scalar(s, INT64_MIN); }
SPOIL(uneven_13) {
    use(s, SPLIT, 13, 4);
    s->num_outputs = 4;
}
SPOIL(below_0) {
    use(s, SPLIT, 18, 5);
    s->num_outputs = 5;
}
SPOIL(openvino_uneven) {
    use(s, OV_SPLIT, 1, 4);
    s->num_outputs = 4;
}

static const struct bad lengths_cases[] = {
    {"VariadicSplit without lengths", variadic_without_lengths, ALL, ERROR(SPLIT), "params.split",
     NO_OUTPUT},
    {"neither lengths nor num_outputs", neither, ALL, ERROR(SPLIT), "num_outputs", NO_OUTPUT},
    {"neither, of nothing", neither_of_nothing, ALL, ERROR(SPLIT), "num_outputs", NO_OUTPUT},
    {"both lengths and num_outputs", both, ALL, ERROR(SPLIT), "num_outputs", NO_OUTPUT},
    {"OpenVINO Split with lengths", refused_lengths, ALL, ERROR(SPLIT), "params.split", NO_OUTPUT},
    {"scalar for Split", scalar_lengths, ALL, ERROR(SPLIT), "params.split", NO_OUTPUT},
    {"scalar for VariadicSplit", scalar_variadic_lengths, ALL, ERROR(SPLIT), "params.split",
     NO_OUTPUT},
    {"lengths of rank 2", matrix_of_lengths, ALL, ERROR(SPLIT), "params.split", NO_OUTPUT,
     NUMBERS(1, 2)},
    {"lengths of rank 65", lengths_of_rank_65, ALL, ERROR(SPLIT), "params.split", NO_OUTPUT},
    {"lengths of rank -1", lengths_of_rank_minus_1, ALL, ERROR(SPLIT), "params.split", NO_OUTPUT},
    {"lengths of rank INT32_MIN", lengths_of_rank_min, ALL, ERROR(SPLIT), "params.split",
     NO_OUTPUT},
    {"INT32 lengths for Split", int32_lengths, ALL, ERROR(SPLIT),
     "is INT32, but ONNX Split-18 takes INT64: convert the lengths", NO_OUTPUT},
    {"FLOAT lengths for VariadicSplit", float_lengths, ALL, ERROR(SPLIT), "FLOAT", NO_OUTPUT},
    {"STRING lengths", string_lengths, ALL, ERROR(SPLIT), "STRING", NO_OUTPUT},

    {"-1, 7 of 6", negative_first, ALL, ERROR(SPLIT_SIZES), "params.split[0]", OUTPUT(0),
     NUMBERS(0, -1)},
    {"8, -2 of 6", negative_second, ALL, ERROR(SPLIT_SIZES), "params.split[1]", OUTPUT(1),
     NUMBERS(0, -2)},
    {"7, -1 of 6 in a sequence", negative_in_sequence, ALL, ERROR(SPLIT_SIZES), "params.split[1]",
     OUTPUT(1), NUMBERS(0, -1)},
    {"INT64_MIN", lengths_min, ALL, ERROR(SPLIT_SIZES), "params.split[1]", OUTPUT(1),
     NUMBERS(0, INT64_MIN)},
    {"sum 5 of 6", sum_5, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT, NUMBERS(6, 5)},
    {"sum 7 of 6", sum_7, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT, NUMBERS(6, 7)},
    {"sum 2^32 + 6 of 6", sum_beyond_32_bits, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT,
     NUMBERS(6, IN_32_BITS(6))},
    {"sum past INT64_MAX", sum_wraps, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT,
     NUMBERS(6, INT64_MAX)},
    {"two of -1", two_rests, ALL, ERROR(SPLIT_SIZES), "params.split[1]", OUTPUT(1)},
    {"-2", minus_2, ALL, ERROR(SPLIT_SIZES), "params.split[0]", OUTPUT(0)},
    {"-2 where one -1 may be", minus_2, ALL, ERROR(SPLIT_SIZES), "in VariadicSplit may one be -1",
     OUTPUT(0)},
    {"7, -1 of 6", rest_below_0, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT, NUMBERS(6, 7)},
    {"INT64_MAX, -1 of 6", rest_wraps, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT},
    {"UINT64_MAX is not -1", uint64_max, ALL, ERROR(SPLIT_SIZES), "params.split[0]", OUTPUT(0)},
    {"1.5 of 6", half_a_length, ALL, ERROR(SPLIT_SIZES), "params.split[0]", OUTPUT(0)},
    {"scalar 0", scalar_0, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT, NUMBERS(1, 0)},
    {"scalar 0 of nothing", scalar_0_of_nothing, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT,
     NUMBERS(1, 0)},
    {"scalar -3", scalar_minus_3, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT,
     NUMBERS(1, -3)},
    {"scalar INT64_MIN", scalar_min, ALL, ERROR(SPLIT_SIZES), "params.split", NO_OUTPUT},
    {"6 into 4 before Split-18", uneven_13, ALL, ERROR(SPLIT_SIZES), "6", NO_OUTPUT, NUMBERS(4, 6)},
    {"6 into 5: 2, 2, 2, 2, -2", below_0, ALL, ERROR(SPLIT_SIZES), "LIBSPLIT_FLAG_CLAMP_UNEVEN",
     OUTPUT(4), NUMBERS(0, -2)},
    {"6 into 5 shows the sizes", below_0, ALL, ERROR(SPLIT_SIZES), "-2", OUTPUT(4)},
    {"6 into 4 in OpenVINO", openvino_uneven, ALL, ERROR(SPLIT_SIZES), "6", NO_OUTPUT,
     NUMBERS(4, 6)},
};

SPOIL(outputs_0) { s->num_outputs = 0; }
SPOIL(outputs_1) { s->num_outputs = 1; }
SPOIL(outputs_3) { s->num_outputs = 3; }
SPOIL(outputs_max) { s->num_outputs = SIZE_MAX; }
SPOIL(outputs_int64_max) { s->num_outputs = SIZE(INT64_MAX, INT32_MAX); }
SPOIL(outputs_beyond_32_bits) { s->num_outputs = SIZE(IN_32_BITS(2), SIZE_MAX - 1); }
SPOIL(outputs_2_to_40) { s->num_outputs = (size_t)1 << SIZE(40, 30); }
SPOIL(sequence_outputs_max) {
    use(s, SEQUENCE, 11, 0);
    s->num_outputs = SIZE_MAX;
}
SPOIL(old_outputs_0) {
    use(s, SPLIT, 13, 0);
    s->num_outputs = 0;
}
SPOIL(old_outputs_0_of_nothing) {
    use(s, SPLIT, 2, 0);
    s->input_shape[1] = 0;
    s->num_outputs = 0;
}
SPOIL(old_outputs_max) {
    use(s, SPLIT, 13, 0);
    s->num_outputs = SIZE_MAX;
}
SPOIL(old_outputs_max_of_nothing) {
    use(s, SPLIT, 13, 0);
    s->input_shape[1] = 0;
    s->num_outputs = SIZE_MAX;
}
SPOIL(old_param_3) {
    s->params.opset = 13;
    s->params.num_outputs = 3;
}
SPOIL(param_3_outputs_2) { use(s, SPLIT, 18, 3); }
SPOIL(param_2_outputs_3) {
    use(s, SPLIT, 18, 2);
    s->num_outputs = 3;
}
SPOIL(param_minus_1) { use(s, SPLIT, 18, -1); }
SPOIL(param_min) { use(s, SPLIT, 18, INT64_MIN); }
SPOIL(param_max) { use(s, SPLIT, 18, INT64_MAX); }
SPOIL(param_beyond_32_bits) { use(s, SPLIT, 18, IN_32_BITS(2)); }
SPOIL(param_2_to_40) { use(s, SPLIT, 18, INT64_C(1) << 40); }
SPOIL(param_2_to_40_of_nothing) {
    use(s, SPLIT, 18, INT64_C(1) << 40);
    s->input_shape[1] = 0;
}
SPOIL(old_param_2_to_40_of_nothing) {
    use(s, SPLIT, 13, INT64_C(1) << 40);
    s->input_shape[1] = 0;
}
SPOIL(empty_lengths) {
    s->input_shape[1] = 0;
    s->split_shape[0] = 0;
    s->num_outputs = 0;
}
SPOIL(variadic_empty_list) {
    s->params.op = VARIADIC;
    s->params.opset = 1;
    s->split_shape[0] = 0;
    s->num_outputs = 0;
}
SPOIL(two_bit_past_the_end) {
    use(s, OV_SPLIT, 1, 1);
    s->input.dtype = LIBSPLIT_DTYPE_UINT2;
    s->input.rank = 1;
    s->input.strides = NULL;
    s->input_shape[0] = (INT64_C(1) << 62) - 1;
    s->input.bit_offset = 6;
    s->input.data_bytes = 0;
    s->params.axis = 0;
    s->num_outputs = 1;
}
SPOIL(splits_0) { use(s, OV_SPLIT, 1, 0); }
SPOIL(splits_0_of_nothing) {
    use(s, OV_SPLIT, 1, 0);
    s->input_shape[1] = 0;
}
SPOIL(splits_minus_1) { use(s, OV_SPLIT, 1, -1); }
SPOIL(splits_2_to_40) { use(s, OV_SPLIT, 1, INT64_C(1) << 40); }
SPOIL(splits_2_to_40_of_nothing) {
    use(s, OV_SPLIT, 1, INT64_C(1) << 40);
    s->input_shape[1] = 0;
}
SPOIL(unknown_splits_max) {
    use(s, OV_SPLIT, 1, INT64_MAX);
    s->input_shape[1] = LIBSPLIT_DIM_UNKNOWN;
}
SPOIL(splits_3_outputs_2) { use(s, OV_SPLIT, 1, 3); }

static const struct bad number_cases[] = {
    {"2 outputs, 0 given", outputs_0, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT,
     NUMBERS(2, 0)},
    {"2 outputs, 1 given", outputs_1, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT,
     NUMBERS(2, 1)},
    {"2 outputs, 3 given", outputs_3, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT,
     NUMBERS(2, 3)},
    {"2 outputs, SIZE_MAX given", outputs_max, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT,
     NUMBERS(2, SIZE(INT64_MAX, SIZE_MAX))},
    {"2 outputs, INT64_MAX given", outputs_int64_max, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT},
    {"2 outputs, 2^32 + 2 given", outputs_beyond_32_bits, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT, NUMBERS(2, SIZE(IN_32_BITS(2), SIZE_MAX - 1))},
    {"2 outputs, 2^40 given", outputs_2_to_40, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT},
    {"6 pieces, SIZE_MAX given", sequence_outputs_max, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT},
    {"0 equal parts", old_outputs_0, GIVEN, ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"0 equal parts of nothing", old_outputs_0_of_nothing, GIVEN, ERROR(NUM_OUTPUTS), "outputs",
     NO_OUTPUT},
    {"count of equal parts not said", old_outputs_0, COUNT, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT},
    {"SIZE_MAX equal parts", old_outputs_max, GIVEN, ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"SIZE_MAX equal parts of nothing", old_outputs_max_of_nothing, GIVEN, ERROR(NUM_OUTPUTS),
     "outputs", NO_OUTPUT},
    {"2 lengths, num_outputs 3", old_param_3, ALL, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT,
     NUMBERS(2, 3)},
    {"num_outputs 3, 2 given", param_3_outputs_2, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT, NUMBERS(3, 2)},
    {"num_outputs 2, 3 given", param_2_outputs_3, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT, NUMBERS(2, 3)},
    {"num_outputs -1", param_minus_1, ALL, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT,
     NUMBERS(1, -1)},
    {"num_outputs INT64_MIN", param_min, ALL, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT},
    {"num_outputs INT64_MAX", param_max, ALL, ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"num_outputs 2^32 + 2", param_beyond_32_bits, ALL, ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"num_outputs 2^40", param_2_to_40, ALL, ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"num_outputs 2^40 of nothing", param_2_to_40_of_nothing, ALL, ERROR(NUM_OUTPUTS), "outputs",
     NO_OUTPUT},
    {"num_outputs 2^40 of nothing before Split-18", old_param_2_to_40_of_nothing, ALL,
     ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"empty lengths", empty_lengths, ALL, ERROR(NUM_OUTPUTS), "lengths", NO_OUTPUT},
    {"num_splits 0", splits_0, ALL, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT, NUMBERS(1, 0)},
    {"num_splits 0 of nothing", splits_0_of_nothing, ALL, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT, NUMBERS(1, 0)},
    {"num_splits -1", splits_minus_1, ALL, ERROR(NUM_OUTPUTS), "num_outputs", NO_OUTPUT,
     NUMBERS(1, -1)},
    {"num_splits 2^40", splits_2_to_40, ALL, ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"num_splits 2^40 of nothing", splits_2_to_40_of_nothing, ALL, ERROR(NUM_OUTPUTS), "outputs",
     NO_OUTPUT},
    {"num_splits INT64_MAX of an unknown extent", unknown_splits_max, COUNT | INFER,
     ERROR(NUM_OUTPUTS), "outputs", NO_OUTPUT},
    {"num_splits 3, 2 given", splits_3_outputs_2, GIVEN, ERROR(NUM_OUTPUTS), "num_outputs",
     NO_OUTPUT, NUMBERS(3, 2)},
};

SPOIL(capacity_1) { s->outputs[1].capacity = 1; }
SPOIL(capacity_minus_1) { s->outputs[1].capacity = -1; }
SPOIL(capacity_min) { s->outputs[1].capacity = INT32_MIN; }
SPOIL(row_stride_0) { s->strides[1][0] = 0; }
SPOIL(column_stride_0) { s->strides[1][1] = 0; }
SPOIL(strides_alike) { s->strides[1][0] = 1; }
SPOIL(rows_meet) { s->strides[1][0] = 3; }
SPOIL(rows_meet_backwards) { s->strides[1][0] = -3; }
SPOIL(view_not_packed) { s->outputs[1].strides = NULL; }
SPOIL(input_bit_offset_8) { s->input.bit_offset = 8; }
SPOIL(split_bit_offset_8) { s->split.bit_offset = 8; }
SPOIL(output_bit_offset_8) { s->outputs[1].bit_offset = 8; }
SPOIL(between_4_bits) {
    use_lengths(s, VARIADIC, 1, 2, 4);
    s->input.dtype = s->outputs[0].dtype = s->outputs[1].dtype = LIBSPLIT_DTYPE_UINT4;
    s->input.bit_offset = 2;
}
SPOIL(output_from_4_bits) {
    use_lengths(s, VARIADIC, 1, 2, 4);
    s->input.dtype = s->outputs[0].dtype = s->outputs[1].dtype = LIBSPLIT_DTYPE_UINT4;
    s->outputs[1].data_bytes = 4; /* enough if it began at a whole byte */
    s->outputs[1].bit_offset = 4;
}
SPOIL(empty_from_4_bits) {
    use_lengths(s, VARIADIC, 1, 6, 0);
    set_output(s, 0, 6);
    set_output(s, 1, 0);
    s->input.dtype = s->outputs[0].dtype = s->outputs[1].dtype = LIBSPLIT_DTYPE_UINT4;
    s->outputs[1].bit_offset = 4;
}
SPOIL(input_bytes_short) { s->input.data_bytes = 11; }
SPOIL(reversed_bytes_short) {
    s->input.data = s->input_bytes + 11;
    s->input_strides[0] = -6;
    s->input_strides[1] = -1;
    s->input.data_bytes = 11;
}
SPOIL(strided_bytes_short) {
    s->input_strides[0] = 12;
    s->input_strides[1] = 2;
    s->input.data_bytes = 22;
}
SPOIL(four_bit_bytes_short) {
    use_lengths(s, VARIADIC, 1, 2, 4);
    s->input.dtype = s->outputs[0].dtype = s->outputs[1].dtype = LIBSPLIT_DTYPE_UINT4;
    s->input.bit_offset = 4;
    s->input.data_bytes = 6;
}
SPOIL(split_bytes_short) { s->split.data_bytes = 15; }
SPOIL(output_bytes_short) { s->outputs[1].data_bytes = 7; }
SPOIL(output_bytes_1) { s->outputs[0].data_bytes = 1; }

static const struct bad layout_cases[] = {
    {"capacity 1 of rank 2", capacity_1, FILLED, ERROR(CAPACITY), "outputs[1].capacity", OUTPUT(1),
     NUMBERS(2, 1)},
    {"capacity -1", capacity_minus_1, FILLED, ERROR(CAPACITY), "outputs[1].capacity", OUTPUT(1),
     NUMBERS(2, -1)},
    {"capacity INT32_MIN", capacity_min, FILLED, ERROR(CAPACITY), "outputs[1].capacity", OUTPUT(1)},
    {"rows at one place", row_stride_0, COPY, ERROR(STRIDES),
     "outputs[1].strides[0] is 0, but the axes of smaller strides reach over 1 elements", OUTPUT(1),
     NUMBERS(1, 0)},
    {"columns at one place", column_stride_0, COPY, ERROR(STRIDES),
     "outputs[1].strides[1] is 0, but the axes of smaller strides reach over 1 elements", OUTPUT(1),
     NUMBERS(1, 0)},
    {"rows one element apart", strides_alike, COPY, ERROR(STRIDES),
     "outputs[1].strides[1] is 1, but the axes of smaller strides reach over 2 elements", OUTPUT(1),
     NUMBERS(2, 1)},
    {"rows that share an element", rows_meet, COPY, ERROR(STRIDES),
     "outputs[1].strides[0] is 3, but the axes of smaller strides reach over 4 elements", OUTPUT(1),
     NUMBERS(4, 3)},
    {"reversed rows that share an element", rows_meet_backwards, COPY, ERROR(STRIDES),
     "outputs[1].strides[0] is -3, but the axes of smaller strides reach over 4 elements",
     OUTPUT(1), NUMBERS(4, -3)},
    {"view without strides", view_not_packed, VIEW, ERROR(STRIDES), "outputs[1].strides",
     OUTPUT(1)},
    {"input.bit_offset 8", input_bit_offset_8, DATA, ERROR(BIT_OFFSET), "input.bit_offset",
     NO_OUTPUT, NUMBERS(0, 8)},
    {"split.bit_offset 8", split_bit_offset_8, ALL, ERROR(BIT_OFFSET), "params.split", NO_OUTPUT,
     NUMBERS(0, 8)},
    {"output.bit_offset 8", output_bit_offset_8, COPY, ERROR(BIT_OFFSET), "outputs[1].bit_offset",
     OUTPUT(1), NUMBERS(0, 8)},
    {"2 bits into 4-bit elements", between_4_bits, DATA, ERROR(BIT_OFFSET), "input.bit_offset",
     NO_OUTPUT, NUMBERS(4, 2)},
    {"4-bit output in half a byte", output_from_4_bits, COPY, ERROR(BIT_OFFSET),
     "outputs[1].bit_offset", OUTPUT(1), NUMBERS(0, 4)},
    {"the same without elements", empty_from_4_bits, COPY, ERROR(BIT_OFFSET),
     "outputs[1].bit_offset", OUTPUT(1), NUMBERS(0, 4)},
    {"input.data_bytes one short", input_bytes_short, DATA, ERROR(DATA_BYTES), "input.data_bytes",
     NO_OUTPUT, NUMBERS(12, 11)},
    {"reversed, one byte short", reversed_bytes_short, DATA, ERROR(DATA_BYTES), "input.data_bytes",
     NO_OUTPUT, NUMBERS(12, 11)},
    {"stepped, one byte short", strided_bytes_short, DATA, ERROR(DATA_BYTES), "input.data_bytes",
     NO_OUTPUT, NUMBERS(23, 22)},
    {"4-bit, one byte short", four_bit_bytes_short, DATA, ERROR(DATA_BYTES), "input.data_bytes",
     NO_OUTPUT, NUMBERS(7, 6)},
    {"split.data_bytes one short", split_bytes_short, ALL, ERROR(DATA_BYTES), "params.split",
     NO_OUTPUT, NUMBERS(16, 15)},
    {"output.data_bytes one short", output_bytes_short, COPY, ERROR(DATA_BYTES),
     "outputs[1].data_bytes", OUTPUT(1), NUMBERS(8, 7)},
    {"output.data_bytes 1", output_bytes_1, COPY, ERROR(DATA_BYTES), "outputs[0].data_bytes",
     OUTPUT(0), NUMBERS(4, 1)},
};

SPOIL(product_wraps) { s->input_shape[0] = INT64_MAX; }
SPOIL(product_wraps_to_0) { s->input_shape[0] = INT64_C(1) << 62; }
SPOIL(bytes_wrap) {
    s->input.dtype = LIBSPLIT_DTYPE_COMPLEX128;
    s->input_shape[0] = INT64_C(1) << 59;
}
SPOIL(product_beside_0) {
    s->input_shape[0] = INT64_MAX;
    s->input_shape[1] = 0;
    use(s, SPLIT, 18, 2);
    s->input_arg = &s->input;
    s->input.rank = 2;
}
SPOIL(input_stride_max) { s->input_strides[0] = INT64_MAX; }
SPOIL(input_stride_min) { s->input_strides[0] = INT64_MIN; }
SPOIL(input_strides_wrap) {
    s->input_strides[0] = INT64_MAX - 1;
    s->input_strides[1] = 1;
}
SPOIL(input_steps_wrap) { s->input_strides[1] = INT64_MAX / 4; }
SPOIL(input_stride_bytes_wrap) {
    s->input.dtype = LIBSPLIT_DTYPE_DOUBLE;
    s->input_strides[0] = INT64_MAX / 4;
}
SPOIL(input_past_the_end) {
    s->input.data = (void *)(UINTPTR_MAX - 4);
    s->input.data_bytes = 0;
}
SPOIL(input_below_0) {
    s->input.data = (void *)4;
    s->input.data_bytes = 0;
    s->input_strides[0] = -6;
    s->input_strides[1] = -1;
}
SPOIL(output_stride_max) {
    s->strides[1][0] = INT64_MAX;
    s->outputs[1].data_bytes = 0;
}
SPOIL(output_stride_min) {
    s->strides[1][0] = INT64_MIN;
    s->outputs[1].data_bytes = 0;
}
SPOIL(output_past_the_end) {
    s->outputs[1].data = (void *)(UINTPTR_MAX - 4);
    s->outputs[1].data_bytes = 0;
}
SPOIL(output_below_0) {
    s->outputs[1].data = (void *)2;
    s->outputs[1].data_bytes = 0;
    s->strides[1][0] = -4;
    s->strides[1][1] = -1;
}
SPOIL(split_stride_max) {
    s->split_strides[0] = INT64_MAX;
    s->split.data_bytes = 0;
}
SPOIL(split_past_the_end) {
    s->split.data = (void *)(UINTPTR_MAX - 4);
    s->split.data_bytes = 0;
}

static const struct bad overflow_cases[] = {
    {"INT64_MAX x 6 elements", product_wraps, ALL, ERROR(OVERFLOW), "input", NO_OUTPUT},
    {"2^62 x 6 elements", product_wraps_to_0, ALL, ERROR(OVERFLOW), "input", NO_OUTPUT},
    {"2^59 x 6 x 16 bytes", bytes_wrap, ALL, ERROR(OVERFLOW), "input", NO_OUTPUT},
    {"INT64_MAX bytes x 0", product_beside_0, ALL, ERROR(OVERFLOW), "input", NO_OUTPUT},
    {"input stride INT64_MAX", input_stride_max, DATA, ERROR(OVERFLOW), "input.strides", NO_OUTPUT},
    {"input stride INT64_MIN", input_stride_min, DATA, ERROR(OVERFLOW), "input.strides", NO_OUTPUT},
    {"input strides whose sum wraps", input_strides_wrap, DATA, ERROR(OVERFLOW), "input.strides",
     NO_OUTPUT},
    {"input strides whose product wraps", input_steps_wrap, DATA, ERROR(OVERFLOW), "input.strides",
     NO_OUTPUT},
    {"input strides whose bytes wrap", input_stride_bytes_wrap, DATA, ERROR(OVERFLOW),
     "input.strides", NO_OUTPUT},
    {"input past the last address", input_past_the_end, DATA, ERROR(OVERFLOW), "input reaches past",
     NO_OUTPUT},
    {"input below address 0", input_below_0, DATA, ERROR(OVERFLOW), "input reaches past",
     NO_OUTPUT},
    {"output stride INT64_MAX", output_stride_max, COPY, ERROR(OVERFLOW), "outputs[1].strides",
     OUTPUT(1)},
    {"output stride INT64_MIN", output_stride_min, COPY, ERROR(OVERFLOW), "outputs[1].strides",
     OUTPUT(1)},
    {"output past the last address", output_past_the_end, COPY, ERROR(OVERFLOW),
     "outputs[1] reaches past", OUTPUT(1)},
    {"output below address 0", output_below_0, COPY, ERROR(OVERFLOW), "outputs[1] reaches past",
     OUTPUT(1)},
    {"lengths' stride INT64_MAX", split_stride_max, ALL, ERROR(OVERFLOW), "params.split",
     NO_OUTPUT},
    {"lengths past the last address", split_past_the_end, ALL, ERROR(OVERFLOW), "params.split",
     NO_OUTPUT},
};

SPOIL(output_is_input) { s->outputs[1].data = s->input_bytes; }
SPOIL(output_begins_in_input) { s->outputs[1].data = s->input_bytes + 11; }
SPOIL(output_ends_in_input) {
    s->input.data = s->input_bytes + 20;
    s->outputs[0].data = s->input_bytes + 17;
}
SPOIL(outputs_are_one) { s->outputs[1].data = s->outputs[0].data; }
SPOIL(outputs_share_a_byte) { s->outputs[1].data = s->output_bytes[0] + 16 + 3; }
SPOIL(output_over_lengths) { s->outputs[0].data = (char *)s->lengths + 15; }
SPOIL(output_over_both_lengths) { s->outputs[1].data = s->lengths; }
SPOIL(shape_in_input_shape) { s->outputs[1].shape = s->input_shape; }
SPOIL(shape_in_lengths) { s->outputs[1].shape = s->lengths + 1; }
SPOIL(strides_in_input_shape) { s->outputs[1].strides = s->input_shape; }
SPOIL(strides_in_input_strides) { s->outputs[1].strides = s->input_strides; }
SPOIL(shape_in_descriptors) { s->outputs[1].shape = (int64_t *)(void *)&s->outputs[0]; }
SPOIL(strides_in_descriptors) { s->outputs[1].strides = (int64_t *)(void *)&s->outputs[1]; }
SPOIL(output_over_input_shape) { s->outputs[1].data = s->input_shape; }
SPOIL(output_over_input_strides) { s->outputs[1].data = s->input_strides; }
SPOIL(output_over_own_shape) { s->outputs[1].data = s->shapes[1]; }
SPOIL(output_over_own_strides) { s->outputs[1].data = s->strides[1]; }
SPOIL(output_over_descriptors) { s->outputs[1].data = &s->outputs[0]; }
/* The strides of an output that is not packed are still read while others are written. */
SPOIL(output_over_other_strides) {
    s->strides[1][0] *= 2;
    s->outputs[1].data_bytes = 0;
    s->outputs[0].data = s->strides[1];
}
SPOIL(output_int8) { s->outputs[1].dtype = LIBSPLIT_DTYPE_INT8; }
SPOIL(output_rank_1) { s->outputs[1].rank = 1; }
SPOIL(output_rank_3) { s->outputs[1].rank = 3; }
SPOIL(output_rank_0) { s->outputs[1].rank = 0; }
SPOIL(output_3_columns) { s->shapes[1][1] = 3; }
SPOIL(output_5_columns) { s->shapes[1][1] = 5; }
SPOIL(output_beyond_32_bits) { s->shapes[1][1] = IN_32_BITS(4); }
SPOIL(output_1_row) { s->shapes[1][0] = 1; }
SPOIL(output_extent_minus_1) { s->shapes[1][1] = -1; }
SPOIL(output_with_axis) {
    use(s, SEQUENCE, 11, 0);
    s->params.axis = 0;
    s->params.keepdims = 0;
}

static const struct bad output_cases[] = {
    {"output = input", output_is_input, COPY, ERROR(OVERLAP), "input", OUTPUT(1)},
    {"output begins in the input", output_begins_in_input, COPY, ERROR(OVERLAP), "outputs[1]",
     OUTPUT(1)},
    {"output ends in the input", output_ends_in_input, COPY, ERROR(OVERLAP), "outputs[0]",
     OUTPUT(0)},
    {"outputs alike", outputs_are_one, COPY, ERROR(OVERLAP), "outputs[0]", OUTPUT(1)},
    {"outputs share a byte", outputs_share_a_byte, COPY, ERROR(OVERLAP), "outputs[1]", OUTPUT(1)},
    {"output over the last length", output_over_lengths, COPY, ERROR(OVERLAP), "params.split",
     OUTPUT(0)},
    {"output over the lengths", output_over_both_lengths, COPY, ERROR(OVERLAP), "params.split",
     OUTPUT(1)},
    {"shape in the input's", shape_in_input_shape, FILLED, ERROR(OVERLAP), "outputs[1].shape",
     OUTPUT(1)},
    {"shape in the lengths", shape_in_lengths, FILLED, ERROR(OVERLAP), "outputs[1].shape",
     OUTPUT(1)},
    {"strides in the input's shape", strides_in_input_shape, FILLED, ERROR(OVERLAP),
     "outputs[1].strides", OUTPUT(1)},
    {"shape in the descriptors", shape_in_descriptors, FILLED, ERROR(OVERLAP),
     "outputs[1].shape overlaps memory of outputs ", OUTPUT(1)},
    {"strides in the descriptors", strides_in_descriptors, FILLED, ERROR(OVERLAP),
     "outputs[1].strides overlaps memory of outputs ", OUTPUT(1)},
    {"output over the input's shape", output_over_input_shape, COPY, ERROR(OVERLAP), "outputs[1]",
     OUTPUT(1)},
    {"output over the input's strides", output_over_input_strides, COPY, ERROR(OVERLAP),
     "outputs[1]", OUTPUT(1)},
    {"output over its own shape", output_over_own_shape, COPY, ERROR(OVERLAP), "outputs[1]",
     OUTPUT(1)},
    {"output over its own strides", output_over_own_strides, COPY, ERROR(OVERLAP), "outputs[1]",
     OUTPUT(1)},
    {"output over the descriptors", output_over_descriptors, COPY, ERROR(OVERLAP), "outputs[1]",
     OUTPUT(1)},
    {"output over another's strides", output_over_other_strides, COPY, ERROR(OVERLAP), "outputs[0]",
     OUTPUT(0)},
    {"output of another dtype", output_int8, COPY, ERROR(OUTPUT), "outputs[1].dtype", OUTPUT(1),
     NUMBERS(LIBSPLIT_DTYPE_UINT8, LIBSPLIT_DTYPE_INT8)},
    {"output of rank 1", output_rank_1, COPY, ERROR(OUTPUT),
     "outputs[1].rank is 1, but the operator gives 2: the split axis stays unless keepdims is 0",
     OUTPUT(1), NUMBERS(2, 1)},
    {"output of rank 3", output_rank_3, COPY, ERROR(OUTPUT),
     "outputs[1].rank is 3, but the operator gives 2: the split axis stays unless keepdims is 0",
     OUTPUT(1), NUMBERS(2, 3)},
    {"output of rank 0", output_rank_0, COPY, ERROR(OUTPUT),
     "outputs[1].rank is 0, but the operator gives 2: the split axis stays unless keepdims is 0",
     OUTPUT(1), NUMBERS(2, 0)},
    {"output one column short", output_3_columns, COPY, ERROR(OUTPUT), "outputs[1].shape[1]",
     OUTPUT(1), NUMBERS(4, 3)},
    {"output one column long", output_5_columns, COPY, ERROR(OUTPUT), "outputs[1].shape[1]",
     OUTPUT(1), NUMBERS(4, 5)},
    {"output of 2^32 + 4 columns", output_beyond_32_bits, COPY, ERROR(OUTPUT),
     "outputs[1].shape[1]", OUTPUT(1), NUMBERS(4, IN_32_BITS(4))},
    {"output one row short", output_1_row, COPY, ERROR(OUTPUT), "outputs[1].shape[0]", OUTPUT(1),
     NUMBERS(2, 1)},
    {"output of unknown extent", output_extent_minus_1, COPY, ERROR(OUTPUT), "outputs[1].shape[1]",
     OUTPUT(1), NUMBERS(4, -1)},
    {"output with the axis that is dropped", output_with_axis, COPY, ERROR(OUTPUT),
     "outputs[0].rank is 2, but the operator gives 1: the split axis stays unless keepdims is 0",
     OUTPUT(0), NUMBERS(1, 2)},
};

/* What is read must not be written: structures and arrays of the call, and arrays of other
 * outputs. */
#define ARRAY(pointer) ((int64_t *)(void *)(pointer))
static void use_three(struct scene *s) {
    for (size_t i = 0; i < 3; i++)
        s->lengths[i] = (int64_t)i + 1;
    s->split_shape[0] = 3;
    s->split.data_bytes = 24;
    s->num_outputs = 3;
}
SPOIL(shapes_0_and_2_are_one) {
    use_three(s);
    s->outputs[2].shape = s->outputs[0].shape;
}
SPOIL(strides_0_and_2_are_one) {
    use_three(s);
    s->outputs[2].strides = s->outputs[0].strides;
}
SPOIL(shapes_0_and_2_share_an_entry) {
    use_three(s);
    s->outputs[2].shape = s->outputs[0].shape + 1;
}
SPOIL(shape_0_is_strides_2) {
    use_three(s);
    s->outputs[2].strides = s->outputs[0].shape;
}
SPOIL(shape_is_strides) { s->outputs[1].strides = s->outputs[1].shape; }
SPOIL(shape_over_input) { s->outputs[1].shape = ARRAY(&s->input); }
SPOIL(strides_over_input) { s->outputs[1].strides = ARRAY(&s->input); }
SPOIL(shape_over_split) { s->outputs[1].shape = ARRAY(&s->split.rank - 2); }
SPOIL(strides_over_split) { s->outputs[1].strides = ARRAY(&s->split); }
SPOIL(shape_over_params) { s->outputs[1].shape = ARRAY(&s->params.axis); }
SPOIL(strides_over_params) { s->outputs[1].strides = ARRAY(&s->params); }
SPOIL(shape_in_split_shape) { s->outputs[1].shape = s->split_shape; }
SPOIL(strides_in_split_strides) { s->outputs[1].strides = s->split_strides; }
SPOIL(shape_in_input_strides) { s->outputs[1].shape = s->input_strides; }
SPOIL(output_over_input_structure) { s->outputs[1].data = &s->input; }
SPOIL(output_over_split_structure) { s->outputs[1].data = (char *)(&s->split + 1) - 1; }
SPOIL(output_over_params) { s->outputs[0].data = &s->params; }
SPOIL(output_up_to_params) { s->outputs[1].data = (char *)&s->params - 7; }
SPOIL(output_over_executor) { s->outputs[1].data = &s->executor; }
SPOIL(output_over_split_shape) { s->outputs[1].data = s->split_shape; }
SPOIL(output_over_split_strides) { s->outputs[1].data = s->split_strides; }

static const struct bad reads_cases[] = {
    {"shapes 0 and 2 one array", shapes_0_and_2_are_one, FILLED, ERROR(OVERLAP), "outputs[2].shape",
     OUTPUT(2)},
    {"strides 0 and 2 one array", strides_0_and_2_are_one, FILLED, ERROR(OVERLAP),
     "outputs[2].strides", OUTPUT(2)},
    {"shapes 0 and 2 share an entry", shapes_0_and_2_share_an_entry, FILLED, ERROR(OVERLAP),
     "outputs[2].shape", OUTPUT(2)},
    {"shape 0 and strides 2 one array", shape_0_is_strides_2, FILLED, ERROR(OVERLAP),
     "outputs[2].strides", OUTPUT(2)},
    {"shape and strides one array", shape_is_strides, FILLED, ERROR(OVERLAP), "outputs[1].strides",
     OUTPUT(1)},
    {"shape over input", shape_over_input, FILLED, ERROR(OVERLAP), "outputs[1].shape", OUTPUT(1)},
    {"strides over input", strides_over_input, FILLED, ERROR(OVERLAP), "outputs[1].strides",
     OUTPUT(1)},
    {"shape over params.split", shape_over_split, FILLED, ERROR(OVERLAP), "params.split",
     OUTPUT(1)},
    {"strides over params.split", strides_over_split, FILLED, ERROR(OVERLAP), "params.split",
     OUTPUT(1)},
    {"shape over params", shape_over_params, FILLED, ERROR(OVERLAP), "params", OUTPUT(1)},
    {"strides over params", strides_over_params, FILLED, ERROR(OVERLAP), "params", OUTPUT(1)},
    {"shape in the lengths' shape", shape_in_split_shape, FILLED, ERROR(OVERLAP), "params.split",
     OUTPUT(1)},
    {"strides in the lengths' strides", strides_in_split_strides, FILLED, ERROR(OVERLAP),
     "params.split", OUTPUT(1)},
    {"shape in the input's strides", shape_in_input_strides, FILLED, ERROR(OVERLAP), "input",
     OUTPUT(1)},
    {"strides in the input's strides", strides_in_input_strides, FILLED, ERROR(OVERLAP), "input",
     OUTPUT(1)},
    {"output over input", output_over_input_structure, COPY, ERROR(OVERLAP), "input", OUTPUT(1)},
    {"output over params.split", output_over_split_structure, COPY, ERROR(OVERLAP), "params.split",
     OUTPUT(1)},
    {"output over params", output_over_params, COPY, ERROR(OVERLAP), "params", OUTPUT(0)},
    {"output up to params", output_up_to_params, COPY, ERROR(OVERLAP), "params", OUTPUT(1)},
    {"output over executor", output_over_executor, COPY, ERROR(OVERLAP), "executor", OUTPUT(1)},
    {"output over the lengths' shape", output_over_split_shape, COPY, ERROR(OVERLAP),
     "params.split", OUTPUT(1)},
    {"output over the lengths' strides", output_over_split_strides, COPY, ERROR(OVERLAP),
     "params.split", OUTPUT(1)},
};

/* Every call writes to that part of the error structure. */
static void test_outputs_over_the_error(void) {
    static struct scene scene;
    libsplit_error errors[2] = {LIBSPLIT_ERROR_INIT, LIBSPLIT_ERROR_INIT};
    for (unsigned verb = INFER; verb <= COPY; verb *= 2)
        for (int is_shape = 0; is_shape < 2; is_shape++) {
            CHECK_CASE("%s: output over error", name_of(verb));
            set_scene(&scene);
            int64_t *array = is_shape ? &errors[0].expected : ARRAY(&errors[1]) - 1;
            if (verb == COPY)
                scene.outputs[1].data = array;
            else
                *(is_shape ? &scene.outputs[1].shape : &scene.outputs[1].strides) = array;
            CHECK_STATUS(call(verb, &scene, errors), LIBSPLIT_STATUS_ERROR_OVERLAP);
            CHECK(strstr(errors->message, "error") != NULL);
            CHECK_EQ_INT(errors->output_index, 1);
            CHECK_EQ_INT(errors[1].output_index, -1);
        }
}

/* Numbers beyond INT64_MAX, and what a message must not say. */
static void test_messages(void) {
    static const struct {
        const char *name;
        void (*spoil)(struct scene *s);
        unsigned verb;
        const char *says, *does_not_say;
    } cases[] = {
        {"num_outputs SIZE_MAX", outputs_max, INFER, SIZE("18446744073709551615", "4294967295"),
         "9223372036854775807"},
        {"params.struct_size SIZE_MAX", params_size_huge, COUNT,
         SIZE("18446744073709551615", "4294967295"), "9223372036854775807"},
        {"executor.struct_size SIZE_MAX", executor_size_huge, COPY,
         SIZE("18446744073709551615", "4294967295"), "9223372036854775807"},
        {"input of rank -1", input_rank_minus_1, COPY, "below 1", "[0, 64]"},
        {"no lengths in the list", variadic_empty_list, COPY, "params.split", "NULL"},
        {"empty lengths of Split", empty_lengths, COPY, "params.split", "NULL"},
        {"2-bit elements past the last bit", two_bit_past_the_end, VIEW, "smaller extents",
         "strides"},
    };
    static struct scene scene;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        libsplit_error error = LIBSPLIT_ERROR_INIT;
        CHECK_CASE("message: %s", cases[i].name);
        set_scene(&scene);
        cases[i].spoil(&scene);
        CHECK(call(cases[i].verb, &scene, &error) != LIBSPLIT_STATUS_OK);
        if (strstr(error.message, cases[i].says) == NULL ||
            strstr(error.message, cases[i].does_not_say) != NULL)
            CHECK_EQ_STR(error.message, cases[i].says);
    }
}

/* Valid calls that may look wrong. */
SPOIL(params_longer) { s->params.struct_size = sizeof s->params + sizeof s->params_tail; }
SPOIL(executor_longer) { s->executor.struct_size = sizeof s->executor + sizeof s->executor_tail; }
SPOIL(executor_absent) { s->executor_arg = NULL; }
SPOIL(sizes_not_stated) {
    s->input.data_bytes = s->split.data_bytes = 0;
    s->outputs[0].data_bytes = s->outputs[1].data_bytes = 0;
}
SPOIL(sizes_larger) {
    s->input.data_bytes = s->split.data_bytes = SIZE_MAX;
    s->outputs[0].data_bytes = s->outputs[1].data_bytes = SIZE_MAX;
}
SPOIL(strides_absent) { s->input.strides = s->split.strides = NULL; }
SPOIL(input_capacity) { s->input.capacity = s->split.capacity = -1; }
SPOIL(outputs_side_by_side) {
    s->outputs[0].data = s->output_bytes[0] + 16;
    s->outputs[1].data = s->output_bytes[0] + 16 + 4;
}
SPOIL(output_beside_input) {
    s->outputs[0].data = s->input_bytes + 12;
    s->outputs[1].data = s->input_bytes + 16;
}
SPOIL(padded_rows) {
    s->strides[1][0] = 5;
    s->outputs[1].data_bytes = 9;
}
SPOIL(keepdims_2) { s->params.keepdims = 2; }
SPOIL(lengths_askew) {
    memmove((char *)s->lengths + 1, s->lengths, 16);
    s->split.data = ASKEW(s->lengths);
}
SPOIL(data_askew) {
    s->input.data = memmove(s->input_bytes + 1, s->input_bytes, 12);
    s->outputs[0].data = s->output_bytes[0] + 17;
    s->outputs[1].data = s->output_bytes[1] + 19;
}

static void test_what_is_accepted(void) {
    static const struct {
        const char *name;
        void (*change)(struct scene *s);
    } cases[] = {
        {"the scene itself", nothing},
        {"params with an empty tail", params_longer},
        {"executor with an empty tail", executor_longer},
        {"no executor", executor_absent},
        {"data_bytes not stated", sizes_not_stated},
        {"data_bytes larger", sizes_larger},
        {"strides absent", strides_absent},
        {"capacity of what is not filled", input_capacity},
        {"outputs side by side", outputs_side_by_side},
        {"outputs right behind the input", output_beside_input},
        {"padded rows", padded_rows},
        {"keepdims 2", keepdims_2},
        {"lengths that are not aligned", lengths_askew},
        {"data that is not aligned", data_askew},
    };
    static struct scene scene;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned verb = COUNT; verb <= COPY; verb *= 2) {
            libsplit_error error = LIBSPLIT_ERROR_INIT;
            CHECK_CASE("%s: %s", name_of(verb), cases[i].name);
            set_scene(&scene);
            cases[i].change(&scene);
            CHECK_OK(call(verb, &scene, &error));
            CHECK_EQ_STR(error.message, "");
            if (verb == COUNT)
                CHECK_EQ_INT(scene.count, 2);
            if (verb == COPY) {
                const unsigned char *row = scene.outputs[1].data;
                CHECK(memcmp(scene.outputs[0].data, "abgh", 4) == 0);
                CHECK(memcmp(row, "cdef", 4) == 0);
                CHECK(memcmp(row + scene.strides[1][0], "ijkl", 4) == 0);
            }
        }
}

/* One row of three columns, the last of length 0, and strides that lead nowhere: those of the row
 * and of the empty piece do not matter. */
SPOIL(garbage_strides) {
    s->input_shape[0] = 1;
    s->input_strides[0] = INT64_MIN;
    s->lengths[1] = 4;
    s->lengths[2] = 0;
    s->split_shape[0] = 3;
    s->split.data_bytes = 24;
    for (size_t i = 0; i < 3; i++) {
        set_output(s, i, s->lengths[i]);
        s->shapes[i][0] = 1;
        s->strides[i][0] = INT64_MAX;
        s->outputs[i].data_bytes = 0;
    }
    s->strides[2][1] = INT64_MIN;
    s->outputs[2].data = NULL;
    s->num_outputs = 3;
}

static void test_strides_that_do_not_matter(void) {
    static struct scene scene;
    for (unsigned verb = COUNT; verb <= COPY; verb *= 2) {
        CHECK_CASE("%s: garbage strides", name_of(verb));
        set_scene(&scene);
        garbage_strides(&scene);
        CHECK_OK(call(verb, &scene, NULL));
        if (verb == COPY) {
            CHECK(memcmp(scene.outputs[0].data, "ab", 2) == 0);
            CHECK(memcmp(scene.outputs[1].data, "cdef", 4) == 0);
        }
    }
}

/* data_bytes is one less than 12 elements need, or the 8 of the second output. */
static libsplit_dtype every_element_type;
static void use_every_element_type(struct scene *s) {
    use_lengths(s, VARIADIC, 1, 2, 4);
    s->input.dtype = s->outputs[0].dtype = s->outputs[1].dtype = every_element_type;
    s->input.data_bytes = s->outputs[0].data_bytes = s->outputs[1].data_bytes = 0;
}
static size_t bytes_of(size_t elements) {
    return (elements * libsplit_dtype_bits(every_element_type) + 7) / 8;
}
SPOIL(input_of_type_short) {
    use_every_element_type(s);
    s->input.data_bytes = bytes_of(12) - 1;
}
SPOIL(output_of_type_short) {
    use_every_element_type(s);
    s->outputs[1].data_bytes = bytes_of(8) - 1;
}

static void test_every_element_type_one_byte_short(void) {
    for (libsplit_dtype type = LIBSPLIT_DTYPE_FLOAT; type <= LIBSPLIT_DTYPE_INT2; type++) {
        every_element_type = type;
        const struct bad cases[] = {
            {libsplit_dtype_name(type), input_of_type_short, DATA, ERROR(DATA_BYTES),
             "input.data_bytes", NO_OUTPUT,
             NUMBERS((int64_t)bytes_of(12), (int64_t)bytes_of(12) - 1)},
            {libsplit_dtype_name(type), output_of_type_short, COPY, ERROR(DATA_BYTES),
             "outputs[1].data_bytes", OUTPUT(1),
             NUMBERS((int64_t)bytes_of(8), (int64_t)bytes_of(8) - 1)},
        };
        REFUSE_ALL(cases);
    }
}

/* An error structure that cannot be written to makes every call fail, valid or not. */
static void test_error_structures_of_impossible_sizes(void) {
    static const size_t sizes[] = {0, 1, sizeof(libsplit_error) - 1, 4097, SIZE_MAX};
    static struct scene scene, before;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned verb = COUNT; verb <= COPY; verb *= 2) {
            libsplit_error error, error_before;
            memset(&error, 0x5A, sizeof error);
            error.struct_size = sizes[i];
            memcpy(&error_before, &error, sizeof error);
            CHECK_CASE("%s: error.struct_size %zu", name_of(verb), sizes[i]);
            set_scene(&scene);
            memcpy(&before, &scene, sizeof before);
            CHECK_STATUS(call(verb, &scene, &error), LIBSPLIT_STATUS_ERROR_STRUCT_SIZE);
            CHECK(memcmp(&before, &scene, sizeof before) == 0);
            CHECK(memcmp(&error, &error_before, sizeof error) == 0);
        }
}

static void test_error_structure_askew(void) {
    static struct scene scene, before;
    struct {
        libsplit_error error;
        unsigned char beyond[16];
    } detail, detail_before;
    for (unsigned verb = COUNT; verb <= COPY; verb *= 2) {
        memset(&detail, 0x5A, sizeof detail);
        memcpy(&detail_before, &detail, sizeof detail);
        CHECK_CASE("%s: error askew", name_of(verb));
        set_scene(&scene);
        memcpy(&before, &scene, sizeof before);
        CHECK_STATUS(call(verb, &scene, ASKEW(&detail.error)), LIBSPLIT_STATUS_ERROR_ALIGNMENT);
        CHECK(memcmp(&before, &scene, sizeof before) == 0);
        CHECK(memcmp(&detail, &detail_before, sizeof detail) == 0);
    }
}

/* A structure of a later version: what this version does not know stays as it is. */
static void test_error_structure_that_is_larger(void) {
    static struct scene scene;
    struct {
        libsplit_error error;
        unsigned char later[32];
    } detail;
    for (unsigned verb = COUNT; verb <= COPY; verb *= 2) {
        memset(&detail, 0x5A, sizeof detail);
        detail.error.struct_size = sizeof detail;
        CHECK_CASE("%s: larger error", name_of(verb));
        set_scene(&scene);
        scene.params.axis = 9;
        CHECK_STATUS(call(verb, &scene, &detail.error), LIBSPLIT_STATUS_ERROR_AXIS);
        CHECK_STATUS(detail.error.status, LIBSPLIT_STATUS_ERROR_AXIS);
        CHECK_EQ_INT(detail.error.struct_size, sizeof detail);
        for (size_t i = 0; i < sizeof detail.later; i++)
            CHECK_EQ_INT(detail.later[i], 0x5A);
    }
}

/* The words of the message are those that the structure asks for. */
static void test_words(void) {
    static const struct {
        const char *name, *says;
        uint32_t words;
        size_t size;
    } cases[] = {
        {"C", "params.axis 9 ", LIBSPLIT_WORDS_C, sizeof(libsplit_error)},
        {"C++", "axis() 9 ", LIBSPLIT_WORDS_CPP, sizeof(libsplit_error)},
        {"ONNX", "axis 9 ", LIBSPLIT_WORDS_ONNX, sizeof(libsplit_error)},
        {"OpenVINO", "axis 9 ", LIBSPLIT_WORDS_OPENVINO, sizeof(libsplit_error)},
        {"C++ of a newer header", "axis() 9 ", LIBSPLIT_WORDS_CPP, sizeof(libsplit_error) + 8},
        {"of no door", "params.axis 9 ", LIBSPLIT_WORDS_OPENVINO + 1, sizeof(libsplit_error)},
        {"of no door at all", "params.axis 9 ", UINT32_MAX, sizeof(libsplit_error)},
    };
    static struct scene scene;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned verb = COUNT; verb <= COPY; verb *= 2) {
            struct {
                libsplit_error error;
                unsigned char later[8];
            } detail = {.error = LIBSPLIT_ERROR_INIT};
            detail.error.struct_size = cases[i].size;
            detail.error.words = cases[i].words;
            CHECK_CASE("%s: words %s", name_of(verb), cases[i].name);
            set_scene(&scene);
            scene.params.axis = 9;
            CHECK_STATUS(call(verb, &scene, &detail.error), LIBSPLIT_STATUS_ERROR_AXIS);
            if (strncmp(detail.error.message, cases[i].says, strlen(cases[i].says)) != 0)
                CHECK_EQ_STR(detail.error.message, cases[i].says);
            CHECK_EQ_INT(detail.error.words, cases[i].words);
        }
}

int main(void) {
    CHECK_START();
    test_what_is_accepted();
    REFUSE_ALL(pointer_cases);
    REFUSE_ALL(structure_cases);
    REFUSE_ALL(tensor_cases);
    REFUSE_ALL(lengths_cases);
    REFUSE_ALL(number_cases);
    REFUSE_ALL(layout_cases);
    REFUSE_ALL(overflow_cases);
    REFUSE_ALL(output_cases);
    REFUSE_ALL(reads_cases);
    test_outputs_over_the_error();
    test_messages();
    test_strides_that_do_not_matter();
    test_every_element_type_one_byte_short();
    test_error_structures_of_impossible_sizes();
    test_error_structure_askew();
    test_error_structure_that_is_larger();
    test_words();
    CHECK_DONE();
}
