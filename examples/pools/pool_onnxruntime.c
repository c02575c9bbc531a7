/*
 * pool_onnxruntime.c - libsplit on the threads of an ONNX Runtime session, in an operator's kernel
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The session owns the threads and lends them to a node while it runs, so there is nothing to open
 * or to close, and the executor is valid for one run of KernelCompute. The adapter does the same:
 * see 'Pool' in adapters/onnxruntime/src/node.rs.
 */
#include <libsplit.h>
#include <onnxruntime_c_api.h>

struct onnxruntime_pool {
    const OrtApi *api; /* of version 17 or newer */
    const OrtKernelContext *context;
};

static int32_t parallel_for(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    const struct onnxruntime_pool *pool = data;
    OrtStatus *status =
        pool->api->KernelContext_ParallelFor(pool->context, task, count, 0, task_ctx);
    if (!status)
        return 0;
    pool->api->ReleaseStatus(status);
    return -1;
}

/* Fills in an executor for libsplit_copy(). 'pool' must stay where it is until that returns. */
void onnxruntime_executor(libsplit_executor *executor, struct onnxruntime_pool *pool) {
    *executor = (libsplit_executor)LIBSPLIT_EXECUTOR_INIT(parallel_for, pool);
}
