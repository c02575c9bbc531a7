/* The header needs no other before it, may be included twice, and its initializers give no
 * warnings. */
#include "libsplit.h"
#include "libsplit.h"

static int32_t in_order(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    size_t i;
    (void)pool;
    for (i = 0; i < count; i++)
        task(task_ctx, i);
    return 0;
}

int main(void) {
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(in_order, NULL);
    return params.opset == 18 && error.status == 0 && executor.flags == 0 ? 0 : 1;
}
