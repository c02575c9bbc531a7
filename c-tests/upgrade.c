/*
 * upgrade.c - what a program sees that was built with the header of one release and runs with the
 * library of another; upgrade.py compares what it prints
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <libsplit.h>
#include <stdio.h>
#include <string.h>

/* An error, and memory of the program's own behind it. */
struct guarded {
    libsplit_error error;
    unsigned char behind[64];
};

static void say(const char *what, libsplit_status status, const struct guarded *guarded) {
    unsigned char expected[sizeof guarded->behind];
    memset(expected, 0xA5, sizeof expected);
    printf("%s: %d %s%s\n", what, (int)status, libsplit_status_name(status),
           memcmp(guarded->behind, expected, sizeof expected) ? ", memory overwritten" : "");
#ifdef LIBSPLIT_STATUS_ERROR_SCALAR
    printf("%s: rule %d\n", what, (int)guarded->error.rule);
#endif
}

int main(void) {
    int32_t data[] = {1, 2, 3, 4, 5, 6}, copies[3][2];
    int64_t shape[] = {6}, room[3 * 2];
    libsplit_tensor input = LIBSPLIT_TENSOR_INIT, outputs[3];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    struct guarded guarded = {LIBSPLIT_ERROR_INIT, {0}};
    size_t count;
    memset(guarded.behind, 0xA5, sizeof guarded.behind);
    input.data = data;
    input.shape = shape;
    input.rank = 1;
    input.dtype = LIBSPLIT_DTYPE_INT32;
    params.num_outputs = 3;

    libsplit_outputs_init(outputs, 3, room, 1);
    say("infer", libsplit_infer(&input, &params, outputs, 3, &guarded.error), &guarded);
    for (int i = 0; i < 3; i++)
        outputs[i].data = copies[i];
    say("copy", libsplit_copy(&input, &params, outputs, 3, NULL, &guarded.error), &guarded);
    printf("pieces: %d %d, %d %d, %d %d\n", (int)copies[0][0], (int)copies[0][1], (int)copies[1][0],
           (int)copies[1][1], (int)copies[2][0], (int)copies[2][1]);

#ifdef LIBSPLIT_STATUS_ERROR_SCALAR
    params.max_outputs = 2;
    say("at most 2", libsplit_count(&input, &params, &count, &guarded.error), &guarded);
    params.max_outputs = 0;
#endif
    input.rank = 0;
    say("a scalar", libsplit_count(&input, &params, &count, &guarded.error), &guarded);
    return 0;
}
