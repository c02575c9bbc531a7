/*
 * sanitizer.c - lies to an instrumented library: what it then does wrong must be reported
 *
 * Proves that the sanitizers see into the library. Its argument is the lie:
 *
 *     read    an input that is one byte shorter than its shape says
 *     write   an output that is one byte shorter
 *     race    outputs that two calls write at the same time
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#include <pthread.h>

enum { BYTES = 300 };

struct halves {
    unsigned char *input, *outputs[2];
};

static void *split_in_halves(void *data) {
    const struct halves *halves = data;
    int64_t shape[2] = {BYTES / 50, 50}, half[2] = {BYTES / 50, 25};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, halves->input, 2, shape);
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_UINT8, halves->outputs[0], 2, half),
                                  packed(LIBSPLIT_DTYPE_UINT8, halves->outputs[1], 2, half)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 1;
    params.num_outputs = 2;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    return NULL;
}

int main(int argc, char **argv) {
    CHECK_START();
    const char *lie = argc > 1 ? argv[1] : "";
    int is_short_input = strcmp(lie, "read") == 0, is_short_output = strcmp(lie, "write") == 0;
    struct halves halves = {
        .input = allocate((size_t)(BYTES - is_short_input)),
        .outputs = {allocate(BYTES / 2), allocate((size_t)(BYTES / 2 - is_short_output))},
    };
    memset(halves.input, 1, (size_t)(BYTES - is_short_input));
    if (strcmp(lie, "race") == 0) {
        pthread_t other;
        if (pthread_create(&other, NULL, split_in_halves, &halves) != 0)
            abort();
        split_in_halves(&halves);
        pthread_join(other, NULL);
    } else {
        split_in_halves(&halves);
    }
    free(halves.input);
    free(halves.outputs[0]);
    free(halves.outputs[1]);
    CHECK_DONE();
}
