/*
 * pools.h - the interface of each pool in this directory
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Copy one of pool_openmp.c, pool_pthread.c, pool_std_thread.cpp and pool_tbb.cpp into your
 * program. All of them keep their threads between calls, and accept calls from several threads at
 * once and from within their own tasks. pool_onnxruntime.c is for operators in ONNX Runtime, whose
 * sessions already have threads, so it opens nothing.
 */
#ifndef POOLS_H
#define POOLS_H

#include <libsplit.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Starts a pool of 'threads' threads, including the calling one, and fills in an executor for
 * libsplit_copy(). Returns false, and leaves nothing behind, if there is no memory or no thread.
 */
bool pool_open(libsplit_executor *executor, uint32_t threads);

/* Stops the pool. No call may be running on it. */
void pool_close(libsplit_executor *executor);

#ifdef __cplusplus
}
#endif

#endif
