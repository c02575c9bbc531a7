/*
 * pool_openmp.c - libsplit on the threads of the OpenMP runtime
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A call from within a parallel region has one thread, unless OMP_MAX_ACTIVE_LEVELS allows more.
 * If other work may occupy the cores, set OMP_WAIT_POLICY=passive: GCC's threads spin while they
 * wait, and one that has no core holds up the call for milliseconds.
 */
#include "pools.h"

static int32_t parallel_for(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    int threads = (int)(uintptr_t)pool;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i);
    return 0;
}

bool pool_open(libsplit_executor *executor, uint32_t threads) {
    *executor = (libsplit_executor)LIBSPLIT_EXECUTOR_INIT(parallel_for, (void *)(uintptr_t)threads);
    executor->max_tasks = threads;
    return true;
}

void pool_close(libsplit_executor *executor) { (void)executor; }
