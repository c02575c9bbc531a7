/*
 * native.c - the competitors that are C, and the loop that times them
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * bench.py loads this as a shared library. Functions that time give nanoseconds per call over
 * 'calls' calls, after one that is not timed, or -1 if a call fails.
 */
#define _DEFAULT_SOURCE 1

#include "bounds.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Below this many bytes nothing is handed to other threads. */
#define WORTH_THREADS ((size_t)256 << 10)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Inlined with its 'call' wherever it is used. */
static inline double time_calls(int32_t (*call)(const void *), const void *data, size_t calls) {
    if (call(data) != 0)
        return -1;
    double start = now();
    for (size_t i = 0; i < calls; i++)
        if (call(data) != 0)
            return -1;
    return (now() - start) / (double)calls;
}

/* libsplit, in any of its builds */

typedef libsplit_status (*copy_fn)(const libsplit_tensor *, const libsplit_params *,
                                   const libsplit_tensor *, size_t, const libsplit_executor *,
                                   libsplit_error *);

struct split {
    copy_fn copy;
    const libsplit_tensor *input;
    const libsplit_params *params;
    libsplit_tensor *outputs;
    size_t num_outputs;
    const libsplit_executor *executor;
};

static int32_t call_copy(const void *data) {
    const struct split *split = data;
    return split->copy(split->input, split->params, split->outputs, split->num_outputs,
                       split->executor, NULL);
}

double time_copy(const struct split *split, size_t calls) {
    return time_calls(call_copy, split, calls);
}

/* The same by a plan */

struct planned {
    __typeof__(&libsplit_plan_copy) copy;
    const libsplit_plan *plan;
    const void *input;
    void *const *outputs;
    size_t num_outputs;
};

static int32_t call_planned(const void *data) {
    const struct planned *by = data;
    return by->copy(by->plan, by->input, by->outputs, by->num_outputs, NULL, NULL);
}

double time_planned(const struct planned *planned, size_t calls) {
    return time_calls(call_planned, planned, calls);
}

/* The ceiling: as many bytes, copied flat */

struct flat {
    const char *source;
    char *target;
    size_t bytes;
    int32_t way;       /* one of enum way */
    struct pool *pool; /* NULL = the calling thread alone */
};

/* Which of them is the fastest depends on the CPU and the size. */
enum way { PLAIN, STREAM, WIDE, STRINGS };

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))
#define LINE 64

AVX2 static void copy_32(char *target, const char *source) {
    _mm256_storeu_si256((void *)target, _mm256_loadu_si256((const void *)source));
}

/* At least 128 bytes: unaligned ends, and between them whole lines of the target. */
#define FLAT_COPY(name, store, fence)                                                              \
    AVX2 static void name(char *target, const char *source, size_t bytes) {                        \
        copy_32(target, source);                                                                   \
        copy_32(target + 32, source + 32);                                                         \
        copy_32(target + bytes - 64, source + bytes - 64);                                         \
        copy_32(target + bytes - 32, source + bytes - 32);                                         \
        size_t at = LINE - (uintptr_t)target % LINE;                                               \
        for (; at + 128 <= bytes; at += 128) {                                                     \
            __m256i a = _mm256_loadu_si256((const void *)(source + at));                           \
            __m256i b = _mm256_loadu_si256((const void *)(source + at + 32));                      \
            __m256i c = _mm256_loadu_si256((const void *)(source + at + 64));                      \
            __m256i d = _mm256_loadu_si256((const void *)(source + at + 96));                      \
            store((void *)(target + at), a);                                                       \
            store((void *)(target + at + 32), b);                                                  \
            store((void *)(target + at + 64), c);                                                  \
            store((void *)(target + at + 96), d);                                                  \
        }                                                                                          \
        for (; at + 32 <= bytes; at += 32)                                                         \
            copy_32(target + at, source + at);                                                     \
        fence;                                                                                     \
    }

FLAT_COPY(copy_plain, _mm256_store_si256, (void)0)
FLAT_COPY(copy_past_caches, _mm256_stream_si256, _mm_sfence())

/* The same by lines. */
__attribute__((target("avx512f,avx512bw"))) static void copy_wide(char *target, const char *source,
                                                                  size_t bytes) {
    _mm512_storeu_si512((void *)target, _mm512_loadu_si512((const void *)source));
    size_t at = LINE - (uintptr_t)target % LINE;
    for (; at + 256 <= bytes; at += 256) {
        __m512i a = _mm512_loadu_si512((const void *)(source + at));
        __m512i b = _mm512_loadu_si512((const void *)(source + at + 64));
        __m512i c = _mm512_loadu_si512((const void *)(source + at + 128));
        __m512i d = _mm512_loadu_si512((const void *)(source + at + 192));
        _mm512_store_si512((void *)(target + at), a);
        _mm512_store_si512((void *)(target + at + 64), b);
        _mm512_store_si512((void *)(target + at + 128), c);
        _mm512_store_si512((void *)(target + at + 192), d);
    }
    for (; at + 64 <= bytes; at += 64)
        _mm512_store_si512((void *)(target + at), _mm512_loadu_si512((const void *)(source + at)));
    _mm512_storeu_si512((void *)(target + bytes - 64),
                        _mm512_loadu_si512((const void *)(source + bytes - 64)));
}

static void copy_strings(char *target, const char *source, size_t bytes) {
    __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
}

/* Whether this CPU, and its operating system, have it. */
int32_t has_way(int32_t way) {
    switch (way) {
    case PLAIN:
    case STREAM:
        return __builtin_cpu_supports("avx2") != 0;
    case WIDE:
        return __builtin_cpu_supports("avx512bw") != 0;
    default:
        return 1;
    }
}

static void copy_flat(const struct flat *flat, size_t begin, size_t end) {
    char *target = flat->target + begin;
    const char *source = flat->source + begin;
    size_t bytes = end - begin;
    if (bytes < 128)
        memcpy(target, source, bytes);
    else if (flat->way == PLAIN)
        copy_plain(target, source, bytes);
    else if (flat->way == STREAM)
        copy_past_caches(target, source, bytes);
    else if (flat->way == WIDE)
        copy_wide(target, source, bytes);
    else
        copy_strings(target, source, bytes);
}

#else

int32_t has_way(int32_t way) { return way == PLAIN; }

static void copy_flat(const struct flat *flat, size_t begin, size_t end) {
    memcpy(flat->target + begin, flat->source + begin, end - begin);
}

#endif

/* Parts that are handed out: small enough to keep threads equally busy, even in number. */
static size_t flat_parts(size_t bytes) {
    size_t parts = bytes / WORTH_THREADS * 2;
    return parts < 64 ? parts : 64;
}

/* Where part 'index' begins: on a whole KiB. */
static size_t part_begin(size_t bytes, size_t index, size_t parts) {
    return index == parts ? bytes : bytes / parts * index / 1024 * 1024;
}

static void flat_task(void *data, size_t index) {
    const struct flat *flat = data;
    size_t parts = flat_parts(flat->bytes);
    copy_flat(flat, part_begin(flat->bytes, index, parts),
              part_begin(flat->bytes, index + 1, parts));
}

static int32_t call_flat(const void *data) {
    const struct flat *flat = data;
    if (flat->pool && flat->bytes >= WORTH_THREADS)
        return pool_parallel_for(flat->pool, flat_task, (void *)flat, flat_parts(flat->bytes));
    copy_flat(flat, 0, flat->bytes);
    return 0;
}

double time_flat(const struct flat *flat, size_t calls) {
    return time_calls(call_flat, flat, calls);
}

/* One call of memcpy for each run */

struct rows {
    const char *source;
    size_t count;       /* rows */
    size_t row;         /* bytes of one */
    const size_t *runs; /* bytes that each output takes of every row */
    char *const *targets;
    size_t num_outputs;
    uint32_t threads;
    struct pool *pool;
};

static void copy_rows(const struct rows *rows, size_t begin, size_t end) {
    const char *source = rows->source;
    for (size_t i = 0; i < rows->num_outputs; i++) {
        size_t run = rows->runs[i];
        for (size_t row = begin; row < end; row++)
            memcpy(rows->targets[i] + row * run, source + row * rows->row, run);
        source += run;
    }
}

static void rows_task(void *data, size_t index) {
    const struct rows *rows = data;
    copy_rows(rows, rows->count * index / rows->threads, rows->count * (index + 1) / rows->threads);
}

/* A single row: each output is a task. */
static void output_task(void *data, size_t index) {
    const struct rows *rows = data;
    size_t before = 0;
    for (size_t i = 0; i < index; i++)
        before += rows->runs[i];
    memcpy(rows->targets[index], rows->source + before, rows->runs[index]);
}

static int32_t call_rows(const void *data) {
    const struct rows *rows = data;
    if (rows->pool && rows->count * rows->row >= WORTH_THREADS) {
        if (rows->count == 1)
            return pool_parallel_for(rows->pool, output_task, (void *)rows, rows->num_outputs);
        return pool_parallel_for(rows->pool, rows_task, (void *)rows, rows->threads);
    }
    copy_rows(rows, 0, rows->count);
    return 0;
}

double time_rows(const struct rows *rows, size_t calls) {
    return time_calls(call_rows, rows, calls);
}

/* Between what has just written the input and what reads the outputs next */

struct pipeline {
    const struct split *split; /* or NULL: */
    const struct rows *rows;
    uint64_t
        *input; /* whole words, as the outputs, which lie side by side with gaps between them */
    size_t input_words;
    const uint64_t *outputs;
    size_t output_words;
    uint64_t sum; /* of all that has been read */
};

static void produce(uint64_t *words, size_t count, uint64_t from) {
    for (size_t i = 0; i < count; i++)
        words[i] = from + i;
}

static uint64_t consume(const uint64_t *words, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

/* Nanoseconds of the three steps, each a call's, over as many calls after one that is not timed. */
int32_t time_pipeline(struct pipeline *line, size_t calls, double *steps) {
    steps[0] = steps[1] = steps[2] = 0;
    for (size_t i = 0; i <= calls; i++) {
        double start = now();
        produce(line->input, line->input_words, i);
        double produced = now();
        if (line->split ? call_copy(line->split) : call_rows(line->rows))
            return -1;
        double copied = now();
        line->sum += consume(line->outputs, line->output_words);
        double consumed = now();
        if (i == 0)
            continue;
        steps[0] += (produced - start) / (double)calls;
        steps[1] += (copied - produced) / (double)calls;
        steps[2] += (consumed - copied) / (double)calls;
    }
    return 0;
}

/* The loads and stores alone */

double time_bounds(const struct bounds *bounds, size_t calls) {
    return time_calls(call_bounds, bounds, calls);
}
