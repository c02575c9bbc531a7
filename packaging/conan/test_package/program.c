#include <libsplit.h>
#include <stdio.h>

int main(void) {
    int64_t shape[] = {7}, room[3 * 2];
    libsplit_tensor input = LIBSPLIT_TENSOR_INIT, outputs[3];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    input.shape = shape;
    input.rank = 1;
    input.dtype = LIBSPLIT_DTYPE_FLOAT;
    params.num_outputs = 3;
    libsplit_outputs_init(outputs, 3, room, 1);
    if (libsplit_infer(&input, &params, outputs, 3, NULL) != LIBSPLIT_STATUS_OK)
        return 1;
    printf("libsplit %s: 7 into %d, %d and %d\n", libsplit_version_string(),
           (int)outputs[0].shape[0], (int)outputs[1].shape[0], (int)outputs[2].shape[0]);
    return 0;
}
