/*
 * pool_tbb.cpp - libsplit on the threads of oneTBB
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "pools.h"

#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

static int32_t parallel_for(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    try {
        static_cast<tbb::task_arena *>(pool)->execute([=] {
            auto body = [=](size_t i) { task(task_ctx, i); };
            tbb::parallel_for(size_t{0}, count, body, tbb::simple_partitioner());
        });
        return 0;
    } catch (...) { // No exception may leave this function.
        return -1;
    }
}

bool pool_open(libsplit_executor *executor, uint32_t threads) try {
    auto *arena = new tbb::task_arena(static_cast<int>(threads));
    *executor = LIBSPLIT_EXECUTOR_INIT(parallel_for, arena);
    executor->max_tasks = threads;
    return true;
} catch (...) {
    return false;
}

void pool_close(libsplit_executor *executor) {
    delete static_cast<tbb::task_arena *>(executor->pool);
}
