/*
 * one_call.c - splits float [1, COLUMNS] along axis 1 into PIECES, CALLS times, in one of the FORMS
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     one_call LIBRARY FORM PIECES COLUMNS CALLS
 *
 * Prints nanoseconds per call, but for the first few. For counting instructions: what twice as many
 * calls take more is what the calls take. Descriptors and arrays lie side by side on the stack, but
 * in the form "heap": there each output's shape and data are allocated by turns, as C++ vectors
 * are.
 */
#define _DEFAULT_SOURCE 1

#include <libsplit.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 3072, WARM_UP = 16 };

static const char *const forms[] = {"copy",  "strides", "rest",      "equal",    "heap",
                                    "infer", "view",    "plan_copy", "plan_view"};
enum form { COPY, STRIDES, REST, EQUAL, HEAP, INFER, VIEW, PLAN_COPY, PLAN_VIEW, FORMS };

/* ISO C has no conversion from void * to a function's address. */
#define FIND(name) __extension__(__typeof__(&libsplit_##name)) dlsym(library, "libsplit_" #name)

static float source[MOST], target[MOST];
static uint64_t plan_memory[64 * MOST];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    int form = 0;
    while (argc == 6 && form < FORMS && strcmp(argv[2], forms[form]) != 0)
        form++;
    size_t pieces = argc == 6 ? strtoul(argv[3], NULL, 10) : 0;
    int64_t columns = argc == 6 ? atoll(argv[4]) : 0;
    if (form == FORMS || pieces == 0 || columns <= 0 || columns > MOST ||
        columns % (int64_t)pieces != 0) {
        fprintf(stderr, "usage: one_call LIBRARY FORM PIECES COLUMNS CALLS\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "error: %s\n", dlerror());
        return 1;
    }
    __typeof__(&libsplit_infer) describe = form == VIEW ? FIND(view) : FIND(infer);
    __typeof__(&libsplit_copy) copy = FIND(copy);
    __typeof__(&libsplit_plan_init) plan_init = FIND(plan_init);
    __typeof__(&libsplit_plan_copy) plan_copy = FIND(plan_copy);
    __typeof__(&libsplit_plan_view) plan_view = FIND(plan_view);
    if (form >= PLAN_COPY && !plan_init) {
        fprintf(stderr, "error: this library has no plans\n");
        return 3;
    }

    int64_t shape[] = {1, columns}, count[] = {(int64_t)pieces}, len = columns / (int64_t)pieces;
    int64_t lengths[MOST], shapes[MOST][2], strides[MOST][2];
    int32_t with_rest[MOST];
    libsplit_tensor outputs[MOST] = {{0}};
    void *addresses[MOST];
    libsplit_tensor input = {
        .data = source, .shape = shape, .rank = 2, .dtype = LIBSPLIT_DTYPE_FLOAT};
    libsplit_tensor split = {
        .data = lengths, .shape = count, .rank = 1, .dtype = LIBSPLIT_DTYPE_INT64};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 1;
    params.split = &split;
    if (form == REST) {
        params.op = LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT;
        params.opset = 1;
        split.data = with_rest;
        split.dtype = LIBSPLIT_DTYPE_INT32;
    } else if (form == EQUAL) {
        params.opset = 13;
        params.split = NULL;
    }
    for (size_t i = 0; i < pieces; i++) {
        lengths[i] = len;
        with_rest[i] = i == 0 ? -1 : (int32_t)len;
        shapes[i][0] = 1;
        shapes[i][1] = strides[i][0] = len;
        strides[i][1] = 1;
        addresses[i] = target + i * (size_t)len;
        outputs[i] = (libsplit_tensor){.data = addresses[i],
                                       .data_bytes = sizeof(float) * (size_t)len,
                                       .shape = shapes[i],
                                       .rank = 2,
                                       .capacity = 2,
                                       .dtype = LIBSPLIT_DTYPE_FLOAT};
        if (form == STRIDES || form == INFER || form == VIEW)
            outputs[i].strides = strides[i];
        if (form == HEAP) {
            outputs[i].shape = malloc(sizeof shapes[i]);
            outputs[i].data = malloc(outputs[i].data_bytes);
            if (!outputs[i].shape || !outputs[i].data)
                return 1;
            memcpy(outputs[i].shape, shapes[i], sizeof shapes[i]);
        }
    }
    libsplit_plan *plan = (libsplit_plan *)plan_memory;
    if (form >= PLAN_COPY &&
        plan_init(plan, sizeof plan_memory, &input, &params, NULL, pieces, NULL) != 0)
        return 1;

    long calls = atol(argv[5]);
    double start = now();
    for (long left = WARM_UP + calls; left > 0; left--) {
        if (left == calls) /* The first finds out what the CPU can do: as long as 2,000 others. */
            start = now();
        libsplit_status status;
        if (form == PLAN_COPY)
            status = plan_copy(plan, source, addresses, pieces, NULL, NULL);
        else if (form == PLAN_VIEW)
            status = plan_view(plan, source, addresses, pieces, NULL);
        else if (form == INFER || form == VIEW)
            status = describe(&input, &params, outputs, pieces, NULL);
        else
            status = copy(&input, &params, outputs, pieces, NULL, NULL);
        if (status != 0)
            return 1;
    }
    printf("%.2f\n", (now() - start) / (double)calls);
    return 0;
}
