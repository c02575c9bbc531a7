/*
 * try_pool.c - splits a tensor with a pool and without one, and compares
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "pools.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2048, PARTS = 3, PART = 171, THREADS = 4, ROUNDS = 20 };

static float input[ROWS][PARTS * PART];
static float expected[PARTS][ROWS][PART];

static void fail(const char *what) {
    fprintf(stderr, "try_pool: %s\n", what);
    exit(1);
}

/* Splits the input by columns. */
static void split(float (*pieces)[ROWS][PART], const libsplit_executor *executor) {
    int64_t shape[] = {ROWS, PARTS * PART}, part[] = {ROWS, PART};
    libsplit_tensor tensor = {
        .data = input, .shape = shape, .rank = 2, .dtype = LIBSPLIT_DTYPE_FLOAT};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.axis = 1;
    params.num_outputs = PARTS;
    libsplit_tensor outputs[PARTS] = {{0}};
    for (int i = 0; i < PARTS; i++)
        outputs[i] = (libsplit_tensor){
            .data = pieces[i], .shape = part, .rank = 2, .dtype = LIBSPLIT_DTYPE_FLOAT};
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    if (libsplit_copy(&tensor, &params, outputs, PARTS, executor, &error) != LIBSPLIT_STATUS_OK)
        fail(error.message);
}

/* Splits on the pool, as one of many calls or from within one of the pool's tasks. */
static void split_and_compare(void *executor, size_t index) {
    (void)index;
    float (*pieces)[ROWS][PART] = calloc(PARTS, sizeof *pieces);
    if (!pieces)
        fail("out of memory");
    split(pieces, executor);
    if (memcmp(pieces, expected, sizeof expected) != 0)
        fail("the pieces are not those that one thread copies");
    free(pieces);
}

static void *split_again_and_again(void *executor) {
    for (size_t i = 0; i < ROUNDS; i++)
        split_and_compare(executor, i);
    return NULL;
}

static void count(void *counts, size_t index) { atomic_fetch_add((atomic_int *)counts + index, 1); }

int main(void) {
    for (size_t i = 0; i < sizeof input / sizeof(float); i++)
        (&input[0][0])[i] = (float)i;
    split(expected, NULL);

    libsplit_executor executor;
    if (!pool_open(&executor, THREADS))
        fail("no pool");

    enum { TASKS = 1000 };
    static atomic_int counts[TASKS];
    if (executor.parallel_for(executor.pool, count, counts, TASKS) != 0)
        fail("parallel_for failed");
    for (int i = 0; i < TASKS; i++)
        if (counts[i] != 1)
            fail("a task did not run once");

    split_again_and_again(&executor);
    if (executor.parallel_for(executor.pool, split_and_compare, &executor, 2 * THREADS) != 0)
        fail("parallel_for failed on nested calls");
    pthread_t callers[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&callers[i], NULL, split_again_and_again, &executor) != 0)
            fail("no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(callers[i], NULL);
    pool_close(&executor);
    puts("alone, nested and concurrent splits with the pool equal those without");
}
