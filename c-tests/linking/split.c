/* Calls libsplit: 1 to 600 into pieces of 200 and 400. Returns 0 if they are right. */
#include <libsplit.h>

#ifdef __cplusplus
extern "C"
#endif
    int split(void);

int split(void) {
    static int32_t in[600], a[200], b[400];
    int64_t shape[] = {600}, shape_a[] = {200}, shape_b[] = {400}, lengths[] = {200, 400},
            count[] = {2};
    libsplit_tensor input = {in, sizeof in, shape, NULL, 1, 0, LIBSPLIT_DTYPE_INT32, 0};
    libsplit_tensor list = {lengths, sizeof lengths, count, NULL, 1, 0, LIBSPLIT_DTYPE_INT64, 0};
    libsplit_tensor outputs[] = {
        {a, sizeof a, shape_a, NULL, 1, 0, LIBSPLIT_DTYPE_INT32, 0},
        {b, sizeof b, shape_b, NULL, 1, 0, LIBSPLIT_DTYPE_INT32, 0},
    };
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);

    for (int32_t i = 0; i < 600; i++)
        in[i] = i + 1;
    params.split = &list;
    if (libsplit_copy(&input, &params, outputs, 2, NULL, NULL) != LIBSPLIT_STATUS_OK)
        return 1;
    for (int32_t i = 0; i < 600; i++)
        if ((i < 200 ? a[i] : b[i - 200]) != i + 1)
            return 2;
    return 0;
}
