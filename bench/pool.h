/*
 * pool.h - the benchmark's threads, in the shape of libsplit's executor
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BENCH_POOL_H
#define BENCH_POOL_H

#include <libsplit.h>

struct pool;

/*
 * A pool of 'threads' threads, the caller's among them, which look for work so often before they go
 * to sleep; NULL if they cannot be had.
 */
struct pool *pool_new(unsigned threads, long looks);
void pool_free(struct pool *pool);

/* A libsplit_parallel_for_fn. One caller at a time. */
int32_t pool_parallel_for(void *pool, libsplit_task_fn task, void *task_ctx, size_t count);

#endif
