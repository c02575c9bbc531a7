/*
 * backtrace.c - calls of libsplit with a pointer that nobody can read or write, which end the
 * program within the loop that the case names: backtrace.py looks for the callers
 */
#include <libsplit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *const nowhere = (char *)4096;

static int32_t in_this_thread(void *pool, libsplit_task_fn task, void *context, size_t count) {
    size_t i;

    (void)pool;
    for (i = 0; i < count; i++)
        task(context, i);
    return 0;
}

/* Two halves of [rows, columns], along the columns. */
static libsplit_status halves(void *from, void *to, int32_t dtype, int64_t rows, int64_t columns,
                              const int64_t *strides, const libsplit_executor *executor) {
    int64_t shape[] = {rows, columns}, half[] = {rows, columns / 2}, own[2];
    libsplit_tensor input = {from, 0, shape, NULL, 2, 0, dtype, 0}, outputs[2];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    int i;

    if (strides != NULL) {
        memcpy(own, strides, sizeof own);
        input.strides = own;
    }
    params.axis = 1;
    params.num_outputs = 2;
    for (i = 0; i < 2; i++) {
        libsplit_tensor output = {NULL, 0, half, NULL, 2, 0, dtype, 0};

        output.data = (char *)to + i * (rows * columns / 2 + 4096) * 8;
        outputs[i] = output;
    }
    if (libsplit_copy(&input, &params, outputs, 2, executor, &error) != LIBSPLIT_STATUS_OK)
        printf("%s\n", error.message);
    return error.status;
}

/* A split for each loop: which of its pointers is bad, its type and shape, and what else it needs.
 */
static const struct {
    const char *what;
    int output_is_bad;
    int32_t dtype;
    int64_t rows, columns;
    int is_transposed, is_task;
} cases[] = {
    {"small", 0, LIBSPLIT_DTYPE_FLOAT, 1, 8, 0, 0},
    {"output", 1, LIBSPLIT_DTYPE_FLOAT, 1, 8, 0, 0},
    {"rows", 0, LIBSPLIT_DTYPE_FLOAT, 512, 512, 0, 0},
    {"arranged", 0, LIBSPLIT_DTYPE_UINT8, 512, 2, 0, 0},
    {"transposed", 0, LIBSPLIT_DTYPE_FLOAT, 512, 512, 1, 0},
    {"bits", 0, LIBSPLIT_DTYPE_INT4, 511, 30, 0, 0},
    {"task", 0, LIBSPLIT_DTYPE_FLOAT, 1024, 1024, 0, 1},
};

static int called_by_main(const char *what) {
    const int64_t transposed[] = {1, 512};
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(in_this_thread, NULL);
    char *memory = malloc(32 << 20);
    size_t i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(what, cases[i].what) == 0)
            halves(cases[i].output_is_bad ? memory : nowhere,
                   cases[i].output_is_bad ? nowhere : memory, cases[i].dtype, cases[i].rows,
                   cases[i].columns, cases[i].is_transposed ? transposed : NULL,
                   cases[i].is_task ? &executor : NULL);
    free(memory);
    return 0;
}

int main(int argc, char **argv) { return argc == 2 ? called_by_main(argv[1]) : 1; }
