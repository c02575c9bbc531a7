/*
 * pool_pthread.c - libsplit on a pool of POSIX threads
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A call is posted for all threads to see; its caller and every idle thread take one task number
 * after another from it. No call waits for a thread to become free, so calls may come at any time,
 * also from within tasks. Threads look for the next call for a short while before they sleep.
 */
#include "pools.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { LOOKS = 4000 }; /* a few microseconds */

struct call {
    libsplit_task_fn task;
    void *task_ctx;
    size_t count;
    atomic_size_t next;
    atomic_int helpers; /* changes only under the pool's lock */
    struct call *later;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t posted, left;
    struct call *calls;
    atomic_uint posts; /* grows under the lock */
    bool stopping;
    uint32_t helpers;
    pthread_t threads[];
};

static void take_part(struct call *call) {
    for (size_t i; (i = atomic_fetch_add(&call->next, 1)) < call->count;)
        call->task(call->task_ctx, i);
}

static int32_t parallel_for(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    struct call call = {.task = task, .task_ctx = task_ctx, .count = count};
    pthread_mutex_lock(&pool->lock);
    call.later = pool->calls;
    pool->calls = &call;
    pool->posts++;
    pthread_cond_broadcast(&pool->posted);
    pthread_mutex_unlock(&pool->lock);

    take_part(&call);

    pthread_mutex_lock(&pool->lock);
    struct call **link = &pool->calls;
    while (*link != &call)
        link = &(*link)->later;
    *link = call.later;
    pthread_mutex_unlock(&pool->lock); /* From here on the call only loses helpers. */
    for (int i = 0; i < LOOKS; i++)
        if (call.helpers == 0)
            return 0;
    pthread_mutex_lock(&pool->lock);
    while (call.helpers > 0)
        pthread_cond_wait(&pool->left, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

static void *help(void *data) {
    struct pool *pool = data;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        struct call *call = pool->calls;
        while (call && call->next >= call->count)
            call = call->later;
        if (call) {
            call->helpers++;
            pthread_mutex_unlock(&pool->lock);
            take_part(call);
            pthread_mutex_lock(&pool->lock);
            if (--call->helpers == 0) /* After this the call may be gone. */
                pthread_cond_broadcast(&pool->left);
            continue;
        }
        unsigned seen = pool->posts;
        pthread_mutex_unlock(&pool->lock);
        for (int i = 0; i < LOOKS && pool->posts == seen; i++)
            ;
        pthread_mutex_lock(&pool->lock);
        while (pool->posts == seen)
            pthread_cond_wait(&pool->posted, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

bool pool_open(libsplit_executor *executor, uint32_t threads) {
    struct pool *pool = calloc(1, sizeof *pool + threads * sizeof *pool->threads);
    if (!pool)
        return false;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->posted, NULL);
    pthread_cond_init(&pool->left, NULL);
    *executor = (libsplit_executor)LIBSPLIT_EXECUTOR_INIT(parallel_for, pool);
    executor->max_tasks = threads;
    for (; pool->helpers + 1 < threads; pool->helpers++) {
        if (pthread_create(&pool->threads[pool->helpers], NULL, help, pool) != 0) {
            pool_close(executor);
            return false;
        }
    }
    return true;
}

void pool_close(libsplit_executor *executor) {
    struct pool *pool = executor->pool;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pool->posts++;
    pthread_cond_broadcast(&pool->posted);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->helpers; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->left);
    pthread_cond_destroy(&pool->posted);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
