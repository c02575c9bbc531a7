/*
 * one_call.c - splits float [1, COLUMNS] along axis 1 into three, CALLS times
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     one_call LIBRARY copy|view COLUMNS CALLS
 *
 * For counting instructions: what twice as many calls take more is what the calls take.
 */
#include <libsplit.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECES 3
#define MOST_COLUMNS 3072

typedef libsplit_status (*copy_fn)(const libsplit_tensor *, const libsplit_params *,
                                   const libsplit_tensor *, size_t, const libsplit_executor *,
                                   libsplit_error *);
typedef libsplit_status (*view_fn)(const libsplit_tensor *, const libsplit_params *,
                                   libsplit_tensor *, size_t, libsplit_error *);

static float source[MOST_COLUMNS], targets[PIECES][MOST_COLUMNS / PIECES];

int main(int argc, char **argv) {
    int64_t columns = argc == 5 ? atoll(argv[3]) : 0;
    if (columns <= 0 || columns > MOST_COLUMNS || columns % PIECES != 0) {
        fprintf(stderr, "usage: one_call LIBRARY copy|view COLUMNS CALLS\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "error: %s\n", dlerror());
        return 1;
    }
    int viewing = strcmp(argv[2], "view") == 0;
    copy_fn copy = (copy_fn)dlsym(library, "libsplit_copy");
    view_fn view = (view_fn)dlsym(library, "libsplit_view");

    int64_t shape[] = {1, columns}, count[] = {PIECES}, shapes[PIECES][2], strides[PIECES][2];
    int64_t lengths[] = {columns / PIECES, columns / PIECES, columns / PIECES};
    libsplit_tensor input = {
        .data = source, .shape = shape, .rank = 2, .dtype = LIBSPLIT_DTYPE_FLOAT};
    libsplit_tensor split = {
        .data = lengths, .shape = count, .rank = 1, .dtype = LIBSPLIT_DTYPE_INT64};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 1;
    params.split = &split;
    libsplit_tensor outputs[PIECES] = {{0}};
    for (int i = 0; i < PIECES; i++) {
        shapes[i][0] = 1;
        shapes[i][1] = columns / PIECES;
        outputs[i] = (libsplit_tensor){.data = targets[i],
                                       .data_bytes = sizeof(float) * (size_t)shapes[i][1],
                                       .shape = shapes[i],
                                       .strides = viewing ? strides[i] : NULL,
                                       .rank = 2,
                                       .capacity = 2,
                                       .dtype = LIBSPLIT_DTYPE_FLOAT};
    }
    for (long calls = atol(argv[4]); calls > 0; calls--)
        if (viewing ? view(&input, &params, outputs, PIECES, NULL)
                    : copy(&input, &params, outputs, PIECES, NULL, NULL))
            return 1;
    return 0;
}
