/*
 * pools.c - times splits with a pool of examples/pools beside the same on one thread
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     time_POOL THREADS [ROUNDS]
 *
 * Prints a line for each shape and each way of calling: both names, nanoseconds of a call on one
 * thread, and with the pool so many times as long: medians of rounds in which both take turns. A
 * turn begins with a pause in which threads stop looking for work.
 */
#define _DEFAULT_SOURCE 1

#include "pools.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_PIECES = 4, MOST_ROUNDS = 61 };
#define MS 1e6
#define PAUSE (10 * MS)
#define BYTES ((size_t)16 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

/* Split along the last axis, into equal pieces: small ones first. Those with a W are bench.py's. */
static const struct shape {
    const char *name;
    int32_t rank;
    int64_t extents[3];
    int64_t pieces;
} shapes[] = {
    {"512 KiB", 2, {64, 2048}, 2}, {"W4", 3, {8, 4096, 8}, 4},     {"W17", 2, {16384, 64}, 4},
    {"W2", 3, {1, 512, 2304}, 3},  {"16 MiB", 2, {2048, 2048}, 4},
};

static const struct way {
    const char *name;
    int rounds;
    double warm_up,
        timed;    /* nanoseconds, at least a call each; no warm-up: a call after the pause */
    bool is_busy; /* another thread is, all the time */
} ways[] = {
    {"back to back", 15, 5 * MS, 5 * MS, false},
    {"after a pause", 41, 0, 0, false},
    {"beside a busy thread", 11, 5 * MS, 20 * MS, true},
};

struct split {
    libsplit_tensor input, outputs[MOST_PIECES];
    libsplit_params params;
    int64_t part[3];
};

static void fail(const char *what) {
    fprintf(stderr, "pools: %s\n", what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static char *memory(size_t bytes) {
    char *found = aligned_alloc(HUGE_PAGE, bytes);
    if (!found)
        fail("out of memory");
#ifdef MADV_HUGEPAGE
    madvise(found, bytes, MADV_HUGEPAGE);
#endif
    return memset(found, 1, bytes);
}

static void describe(struct split *split, const struct shape *shape, char *source, char *target) {
    size_t bytes = sizeof(float);
    for (int32_t i = 0; i < shape->rank; i++) {
        split->part[i] = shape->extents[i] / (i + 1 == shape->rank ? shape->pieces : 1);
        bytes *= (size_t)split->part[i];
    }
    split->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    split->params.axis = -1;
    split->params.num_outputs = shape->pieces;
    split->input = (libsplit_tensor){.data = source,
                                     .shape = (int64_t *)shape->extents,
                                     .rank = shape->rank,
                                     .dtype = LIBSPLIT_DTYPE_FLOAT};
    for (int64_t i = 0; i < shape->pieces; i++) {
        split->outputs[i] = split->input;
        split->outputs[i].data = target + (size_t)i * bytes;
        split->outputs[i].shape = split->part;
    }
}

static void copy(const struct split *split, const libsplit_executor *executor) {
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    if (libsplit_copy(&split->input, &split->params, (libsplit_tensor *)split->outputs,
                      (size_t)split->params.num_outputs, executor, &error) != 0)
        fail(error.message);
}

/* Nanoseconds a call, of as many as take so long, one at the least. */
static double calls(const struct split *split, const libsplit_executor *executor, double least) {
    double start = now(), end;
    size_t count = 0;
    do {
        copy(split, executor);
        count++;
        end = now();
    } while (end - start < least);
    return (end - start) / (double)count;
}

static double turn(const struct way *way, const struct split *split,
                   const libsplit_executor *executor) {
    nanosleep(&(struct timespec){.tv_nsec = (long)PAUSE}, NULL);
    if (way->warm_up > 0)
        calls(split, executor, way->warm_up);
    return calls(split, executor, way->timed);
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *of, int count) {
    qsort(of, (size_t)count, sizeof *of, compare);
    return of[count / 2];
}

static atomic_bool stops;

static void *be_busy(void *data) {
    while (!stops)
        ;
    return data;
}

static void measure(const struct way *way, int rounds, const struct shape *shape,
                    const struct split *split, const libsplit_executor *executor) {
    pthread_t busy;
    stops = false;
    if (way->is_busy && pthread_create(&busy, NULL, be_busy, NULL) != 0)
        fail("no thread");
    double alone[MOST_ROUNDS], ratios[MOST_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        double pool = i % 2 ? turn(way, split, executor) : 0;
        alone[i] = turn(way, split, NULL);
        ratios[i] = (i % 2 ? pool : turn(way, split, executor)) / alone[i];
    }
    stops = true;
    if (way->is_busy)
        pthread_join(busy, NULL);
    printf("%s\t%s\t%.0f\t%.3f\n", shape->name, way->name, median(alone, rounds),
           median(ratios, rounds));
    fflush(stdout);
}

int main(int argc, char **argv) {
    libsplit_executor executor;
    int threads = argc > 1 ? atoi(argv[1]) : 0, rounds = argc > 2 ? atoi(argv[2]) : 0;
    if (threads < 1 || rounds < 0 || rounds > MOST_ROUNDS ||
        !pool_open(&executor, (uint32_t)threads))
        fail("usage: time_POOL THREADS [ROUNDS]");
    char *source = memory(BYTES), *target = memory(BYTES);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct split split;
        describe(&split, &shapes[i], source, target);
        for (size_t j = 0; j < sizeof ways / sizeof *ways; j++)
            measure(&ways[j], rounds ? rounds : ways[j].rounds, &shapes[i], &split, &executor);
    }
    pool_close(&executor);
    return 0;
}
