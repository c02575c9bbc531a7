/*
 * one_call.c - splits float [1, COLUMNS] along axis 1 into PIECES, CALLS times, in one FORM
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     one_call LIBRARY FORM PIECES COLUMNS CALLS
 *
 * A form is a function, as "copy", or a function and an arrangement of what it is given, as
 * "copy.heap". Prints nanoseconds per call, but for the first few. For counting instructions: what
 * twice as many calls take more is what the calls take.
 */
#define _DEFAULT_SOURCE 1

#include <libsplit.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 3072, WARM_UP = 16 };

static const char *const functions[] = {"copy", "infer", "view", "plan_copy", "plan_view"};
enum function { COPY, INFER, VIEW, PLAN_COPY, PLAN_VIEW, FUNCTIONS };

/*
 * Where descriptors have their shapes and strides, and what else there is: all shapes in one array
 * (for infer and view with all strides in another) on the stack, where descriptors and all else
 * lie; the same with strides for copy; descriptors in one allocation, and in another shape and
 * strides of each output side by side, as libsplit_outputs_init() makes them; an allocation for
 * each array, the data's too; every third output, the middle one of three, not wanted; lengths of
 * another type, one of them -1; no lengths; the input's shape between the arrays of outputs and
 * their descriptors.
 */
static const char *const arrangements[] = {"",          ".strides", ".init",  ".heap",
                                           ".unwanted", ".rest",    ".equal", ".between"};
enum arrangement { ARRAYS, STRIDES, INIT, HEAP, UNWANTED, REST, EQUAL, BETWEEN, ARRANGEMENTS };

/* ISO C has no conversion from void * to a function's address. */
#define FIND(name) __extension__(__typeof__(&libsplit_##name)) dlsym(library, "libsplit_" #name)

static float source[MOST], target[MOST];
static uint64_t plan_memory[64 * MOST];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int find_form(const char *name, int *function, int *arrangement) {
    for (*function = 0; *function < FUNCTIONS; ++*function)
        for (*arrangement = 0; *arrangement < ARRANGEMENTS; ++*arrangement) {
            char form[32];
            snprintf(form, sizeof form, "%s%s", functions[*function], arrangements[*arrangement]);
            if (strcmp(name, form) == 0)
                return 1;
        }
    return 0;
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory)
        abort();
    return memory;
}

/* Room for outputs, and the descriptors that are made of it. */
struct outputs {
    int64_t shapes[MOST][2], strides[MOST][2], between[2];
    libsplit_tensor on_stack[MOST], *tensors;
    void *addresses[MOST];
};

/* Sets descriptors of so many outputs of one row each. */
static void arrange(struct outputs *of, int function, int arrangement, size_t pieces, int64_t len) {
    int with_strides = function == INFER || function == VIEW || arrangement == STRIDES;
    of->tensors = of->on_stack;
    if (arrangement == INIT || arrangement == HEAP)
        of->tensors = allocate(pieces * sizeof *of->tensors);
    if (arrangement == INIT)
        libsplit_outputs_init(of->tensors, pieces, allocate(pieces * 4 * sizeof(int64_t)), 2);
    for (size_t i = 0; i < pieces; i++) {
        libsplit_tensor *output = &of->tensors[i];
        void *data = target + i * (size_t)len;
        int64_t *shape = of->shapes[i], *strides = with_strides ? of->strides[i] : NULL;
        if (arrangement == INIT) {
            shape = output->shape;
            strides = output->strides;
        } else if (arrangement == HEAP) {
            shape = allocate(sizeof of->shapes[i]);
            strides = with_strides ? allocate(sizeof of->strides[i]) : NULL;
            data = allocate(sizeof(float) * (size_t)len);
        }
        shape[0] = 1;
        shape[1] = len;
        if (strides) {
            strides[0] = len;
            strides[1] = 1;
        }
        of->addresses[i] = data;
        *output = (libsplit_tensor){.data = data,
                                    .data_bytes = sizeof(float) * (size_t)len,
                                    .shape = shape,
                                    .strides = strides,
                                    .rank = 2,
                                    .capacity = 2,
                                    .dtype = LIBSPLIT_DTYPE_FLOAT};
        if (arrangement == UNWANTED && i % 3 == 1)
            memset(output, 0, sizeof *output);
    }
}

int main(int argc, char **argv) {
    int function = 0, arrangement = 0;
    size_t pieces = argc == 6 ? strtoul(argv[3], NULL, 10) : 0;
    int64_t columns = argc == 6 ? atoll(argv[4]) : 0;
    if (pieces == 0 || !find_form(argv[2], &function, &arrangement) || columns <= 0 ||
        columns > MOST || columns % (int64_t)pieces != 0) {
        fprintf(stderr, "usage: one_call LIBRARY FORM PIECES COLUMNS CALLS\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "error: %s\n", dlerror());
        return 1;
    }
    __typeof__(&libsplit_infer) describe = function == VIEW ? FIND(view) : FIND(infer);
    __typeof__(&libsplit_copy) copy = FIND(copy);
    __typeof__(&libsplit_plan_init) plan_init = FIND(plan_init);
    __typeof__(&libsplit_plan_copy) plan_copy = FIND(plan_copy);
    __typeof__(&libsplit_plan_view) plan_view = FIND(plan_view);
    if (function >= PLAN_COPY && !plan_init) {
        fprintf(stderr, "error: this library has no plans\n");
        return 3;
    }

    int64_t shape[] = {1, columns}, count[] = {(int64_t)pieces}, len = columns / (int64_t)pieces;
    int64_t lengths[MOST];
    int32_t with_rest[MOST];
    libsplit_tensor input = {
        .data = source, .shape = shape, .rank = 2, .dtype = LIBSPLIT_DTYPE_FLOAT};
    libsplit_tensor split = {
        .data = lengths, .shape = count, .rank = 1, .dtype = LIBSPLIT_DTYPE_INT64};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 1;
    params.split = &split;
    if (arrangement == REST) {
        params.op = LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT;
        params.opset = 1;
        split.data = with_rest;
        split.dtype = LIBSPLIT_DTYPE_INT32;
    } else if (arrangement == EQUAL) {
        params.opset = 13;
        params.split = NULL;
    }
    for (size_t i = 0; i < pieces; i++) {
        lengths[i] = len;
        with_rest[i] = i == 0 ? -1 : (int32_t)len;
    }
    struct outputs made;
    if (arrangement == BETWEEN)
        input.shape = memcpy(made.between, shape, sizeof shape);
    arrange(&made, function, arrangement, pieces, len);
    libsplit_tensor *outputs = made.tensors;
    void **addresses = made.addresses;
    libsplit_plan *plan = (libsplit_plan *)plan_memory;
    if (function >= PLAN_COPY &&
        plan_init(plan, sizeof plan_memory, &input, &params,
                  arrangement == UNWANTED ? outputs : NULL, pieces, NULL) != 0)
        return 1;

    long calls = atol(argv[5]);
    double start = now();
    for (long left = WARM_UP + calls; left > 0; left--) {
        if (left == calls) /* The first finds out what the CPU can do: as long as 2,000 others. */
            start = now();
        libsplit_status status;
        if (function == PLAN_COPY)
            status = plan_copy(plan, source, addresses, pieces, NULL, NULL);
        else if (function == PLAN_VIEW)
            status = plan_view(plan, source, addresses, pieces, NULL);
        else if (function == INFER || function == VIEW)
            status = describe(&input, &params, outputs, pieces, NULL);
        else
            status = copy(&input, &params, outputs, pieces, NULL, NULL);
        if (status != 0)
            return 1;
    }
    printf("%.2f\n", (now() - start) / (double)calls);
    return 0;
}
