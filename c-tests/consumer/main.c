/* What a user's first program does: 1 to 6 into pieces of 2 and 4. */
#include <libsplit.h>
#include <stdio.h>

int main(void) {
    int32_t in[] = {1, 2, 3, 4, 5, 6}, a[2], b[4];
    int64_t shape[] = {6}, shape_a[] = {2}, shape_b[] = {4}, lengths[] = {2, 4}, count[] = {2};
    libsplit_tensor input = {in, sizeof in, shape, NULL, 1, 0, LIBSPLIT_DTYPE_INT32, 0};
    libsplit_tensor split = {lengths, sizeof lengths, count, NULL, 1, 0, LIBSPLIT_DTYPE_INT64, 0};
    libsplit_tensor outputs[] = {
        {a, sizeof a, shape_a, NULL, 1, 0, LIBSPLIT_DTYPE_INT32, 0},
        {b, sizeof b, shape_b, NULL, 1, 0, LIBSPLIT_DTYPE_INT32, 0},
    };
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    libsplit_error error = LIBSPLIT_ERROR_INIT;

    params.split = &split;
    if (libsplit_copy(&input, &params, outputs, 2, NULL, &error) != LIBSPLIT_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", libsplit_status_name(error.status), error.message);
        return 1;
    }
    printf("%d %d | %d %d %d %d\n", a[0], a[1], b[0], b[1], b[2], b[3]);
    return 0;
}
