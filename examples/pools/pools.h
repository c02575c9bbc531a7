/*
 * pools.h - what each pool of this directory offers
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Copy one of pool_openmp.c, pool_pthread.c, pool_std_thread.cpp and pool_tbb.cpp into your
 * program. All of them keep their threads from call to call, and take calls from several threads
 * at a time and from within their own tasks. pool_onnxruntime.c is for operators in ONNX Runtime,
 * whose sessions have threads: it opens nothing.
 */
#ifndef POOLS_H
#define POOLS_H

#include <libsplit.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Starts a pool of 'threads' threads, the calling one counted, and fills in an executor for
 * libsplit_copy(). false: out of memory or threads, and nothing is left behind.
 */
bool pool_open(libsplit_executor *executor, uint32_t threads);

/* Stops the pool, on which no call may run any more. */
void pool_close(libsplit_executor *executor);

#ifdef __cplusplus
}
#endif

#endif
