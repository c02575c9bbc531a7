/*
 * pool.c - the benchmark's threads: they wait for work in a short loop, then asleep
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1

#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__x86_64__)
#define pause() __builtin_ia32_pause()
#else
#define pause() ((void)0)
#endif

/* Looks for work before a thread goes to sleep: some 100 microseconds. */
#define SPINS 4000

struct pool {
    /* The work: set by the caller while 'busy' is 0 and published by 'round'. */
    libsplit_task_fn task;
    void *task_ctx;
    size_t count;
    atomic_size_t next;  /* the first task that nobody has taken */
    atomic_uint busy;    /* workers that have not yet seen this round to its end */
    atomic_uint round;   /* counts calls */
    atomic_bool closing; /* the next round is the last */

    pthread_mutex_t lock; /* around sleeping on 'wake' */
    pthread_cond_t wake;
    unsigned asleep;

    unsigned workers;
    pthread_t threads[];
};

static void run_tasks(struct pool *pool) {
    size_t i;
    while ((i = atomic_fetch_add(&pool->next, 1)) < pool->count)
        pool->task(pool->task_ctx, i);
}

static void wait_for_round_after(struct pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool->round) != seen)
            return;
        pause();
    }
    pthread_mutex_lock(&pool->lock);
    pool->asleep++;
    while (atomic_load(&pool->round) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    pool->asleep--;
    pthread_mutex_unlock(&pool->lock);
}

static void begin_round(struct pool *pool) {
    atomic_store(&pool->busy, pool->workers);
    atomic_fetch_add(&pool->round, 1);
    pthread_mutex_lock(&pool->lock);
    if (pool->asleep > 0)
        pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *data) {
    struct pool *pool = data;
    for (unsigned seen = 0;; seen++) {
        wait_for_round_after(pool, seen);
        if (atomic_load(&pool->closing))
            return NULL;
        run_tasks(pool);
        atomic_fetch_sub(&pool->busy, 1);
    }
}

int32_t pool_parallel_for(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    pool->task = task;
    pool->task_ctx = task_ctx;
    pool->count = count;
    atomic_store(&pool->next, 0);
    begin_round(pool);
    run_tasks(pool);
    while (atomic_load(&pool->busy) > 0)
        pause();
    return 0;
}

struct pool *pool_new(unsigned threads) {
    unsigned workers = threads > 0 ? threads - 1 : 0;
    struct pool *pool = calloc(1, sizeof *pool + workers * sizeof pool->threads[0]);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (; pool->workers < workers; pool->workers++)
        if (pthread_create(&pool->threads[pool->workers], NULL, work, pool) != 0) {
            pool_free(pool);
            return NULL;
        }
    return pool;
}

void pool_free(struct pool *pool) {
    atomic_store(&pool->closing, 1);
    begin_round(pool);
    for (unsigned i = 0; i < pool->workers; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
