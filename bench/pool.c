/*
 * pool.c - the benchmark's threads: they wait for work in a loop, and then, or at once, asleep
 *
 * A call waits for the tasks that others have begun, not for threads that are still waking up.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1

#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#if defined(__x86_64__)
#define pause() __builtin_ia32_pause()
#else
#define pause() ((void)0)
#endif

/* Set in 'inside' while there may be tasks to take. */
#define OPEN ((size_t)1 << 63)

struct pool {
    /* The work: set by the caller while nobody is inside and nobody may enter. */
    libsplit_task_fn task;
    void *task_ctx;
    size_t count;
    atomic_size_t next;   /* the first task that nobody has taken */
    atomic_size_t inside; /* OPEN, and how many workers are taking tasks */
    atomic_uint round;    /* counts calls */
    atomic_bool closing;  /* the next round is the last */

    pthread_mutex_t lock; /* around sleeping on 'wake' */
    pthread_cond_t wake;
    unsigned asleep;

    long looks; /* for work, before a thread goes to sleep */
    unsigned workers;
    pthread_t threads[];
};

static void run_tasks(struct pool *pool) {
    size_t i;
    while ((i = atomic_fetch_add(&pool->next, 1)) < pool->count)
        pool->task(pool->task_ctx, i);
}

static unsigned wait_for_round_after(struct pool *pool, unsigned seen) {
    unsigned round = seen;
    for (long i = 0; i < pool->looks; i++) {
        if ((round = atomic_load(&pool->round)) != seen)
            return round;
        pause();
    }
    pthread_mutex_lock(&pool->lock);
    pool->asleep++;
    while ((round = atomic_load(&pool->round)) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    pool->asleep--;
    pthread_mutex_unlock(&pool->lock);
    return round;
}

static void begin_round(struct pool *pool) {
    atomic_fetch_add(&pool->round, 1);
    pthread_mutex_lock(&pool->lock);
    if (pool->asleep > 0)
        pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static bool enter(struct pool *pool) {
    size_t inside = atomic_load(&pool->inside);
    while (inside & OPEN)
        if (atomic_compare_exchange_weak(&pool->inside, &inside, inside + 1))
            return true;
    return false;
}

static void *work(void *data) {
    struct pool *pool = data;
    for (unsigned seen = 0;;) {
        seen = wait_for_round_after(pool, seen);
        if (atomic_load(&pool->closing))
            return NULL;
        if (enter(pool)) {
            run_tasks(pool);
            atomic_fetch_sub(&pool->inside, 1);
        }
    }
}

int32_t pool_parallel_for(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    pool->task = task;
    pool->task_ctx = task_ctx;
    pool->count = count;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->inside, OPEN);
    begin_round(pool);
    run_tasks(pool);
    atomic_fetch_and(&pool->inside, ~OPEN);
    while (atomic_load(&pool->inside) > 0)
        pause();
    return 0;
}

struct pool *pool_new(unsigned threads, long looks) {
    unsigned workers = threads > 0 ? threads - 1 : 0;
    struct pool *pool = calloc(1, sizeof *pool + workers * sizeof pool->threads[0]);
    if (!pool)
        return NULL;
    pool->looks = looks;
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
