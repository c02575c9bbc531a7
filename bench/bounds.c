/*
 * bounds.c - the loads and stores of a split, with no byte moved within its register
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bounds.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LINE 64
#define MOST_TOGETHER 64
#define OWNED_AHEAD 512
#define BUFFER ((size_t)64 << 10) /* twice of what a tile has */
#define WIDE __attribute__((target("avx512f,avx512bw,prfchw")))
#define INLINE WIDE __attribute__((always_inline)) static inline

/* OWNED: places are prefetched to be written. THROUGH: by way of a buffer in the first-level cache.
 */
enum store {
    BY_16,
    BY_32,
    BY_64,
    MASKED,
    OWNED,
    PAST,
    STRINGS,
    THROUGH,
    THROUGH_PAST,
    THROUGH_STRINGS
};

static _Alignas(LINE) char buffer[BUFFER];

INLINE void put_line(char *target, const char *source, const enum store store, __mmask64 all) {
    switch (store) {
    case BY_16:
        for (int at = 0; at < LINE; at += 16)
            _mm_storeu_si128((void *)(target + at), _mm_loadu_si128((const void *)(source + at)));
        break;
    case BY_32:
        for (int at = 0; at < LINE; at += 32)
            _mm256_storeu_si256((void *)(target + at),
                                _mm256_loadu_si256((const void *)(source + at)));
        break;
    case MASKED:
        _mm512_mask_storeu_epi8(target, all, _mm512_loadu_si512(source));
        break;
    case PAST:
    case THROUGH_PAST:
        _mm512_stream_si512((void *)target, _mm512_loadu_si512(source));
        break;
    default:
        if (store == OWNED)
            _m_prefetchw(target + OWNED_AHEAD);
        _mm512_storeu_si512(target, _mm512_loadu_si512(source));
    }
}

INLINE void put_string(char *target, const char *source, size_t bytes) {
    __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
}

/* Where a target's run lies: all of it, or from its first line's begin to its last line's. */
struct run {
    char *target;
    size_t bytes;
};

INLINE struct run run_of(const struct bound *bound, char *const *targets, size_t turn, size_t i) {
    char *target = targets[i] + turn * bound->pitches[i];
    char *end = target + bound->runs[i];
    if (bound->step == 0) {
        target -= (uintptr_t)target % LINE;
        end -= (uintptr_t)end % LINE;
    }
    return (struct run){target, (size_t)(end - target)};
}

/* A tile's lines as they come. */
struct input {
    const char *at, *end;
    ptrdiff_t pitch;
    size_t ahead;
};

INLINE const char *next_line(struct input *input, const int is_far) {
    const char *line = input->at;
    if (is_far)
        _mm_prefetch(line + input->ahead, _MM_HINT_T0);
    input->at += input->pitch;
    return line;
}

/* Four lines at a time; the last one may lie over those before it. */
INLINE void put_run(struct run run, size_t step, struct input *input, const enum store store,
                    const int is_far, __mmask64 all) {
    char *target = run.target, *end = target + run.bytes, *last = end - LINE;
    for (; target + 3 * step <= last; target += 4 * step)
        for (size_t line = 0; line < 4; line++)
            put_line(target + line * step, next_line(input, is_far), store, all);
    for (; target < end; target += step)
        put_line(target < last ? target : last, next_line(input, is_far), store, all);
}

/* A line of each by turns: they are as long as each other. */
INLINE void put_runs(const struct run *runs, size_t count, size_t step, struct input *input,
                     const enum store store, const int is_far, __mmask64 all) {
    for (size_t at = 0, bytes = runs[0].bytes; at < bytes; at += step) {
        size_t place = at + LINE > bytes ? bytes - LINE : at;
        for (size_t i = 0; i < count; i++)
            put_line(runs[i].target + place, next_line(input, is_far), store, all);
    }
}

INLINE void put_through(const struct bound *bound, struct input *input, char *const *targets,
                        size_t turn, const enum store store, const int is_far, __mmask64 all) {
    for (char *into = buffer; input->at != input->end; into += LINE)
        put_line(into, next_line(input, is_far), BY_64, all);
    const char *from = buffer;
    for (size_t i = 0; i < bound->group; i++) {
        struct run run = run_of(bound, targets, turn, i);
        if (store == THROUGH_STRINGS)
            put_string(run.target, from, run.bytes);
        for (size_t at = 0; store != THROUGH_STRINGS && at < run.bytes; at += LINE)
            put_line(run.target + at, from + at, store, all);
        from += run.bytes;
    }
}

INLINE void put_tile(const struct bound *bound, const char *source, char *const *targets,
                     size_t turn, const enum store store, const int is_far, __mmask64 all) {
    const char *end = source + (ptrdiff_t)bound->lines * bound->line_pitch;
    struct input input = {source, end, bound->line_pitch, bound->ahead};
    size_t group = bound->group, together = bound->together;
    size_t step = bound->step ? bound->step : LINE;
    if (store >= THROUGH) {
        put_through(bound, &input, targets, turn, store, is_far, all);
    } else if (store == STRINGS) {
        for (size_t i = 0; i < group; i++) {
            struct run run = run_of(bound, targets, turn, i);
            put_string(run.target, input.at, run.bytes);
            input.at += run.bytes;
        }
    } else if (together == 1) {
        for (size_t i = 0; i < group; i++)
            put_run(run_of(bound, targets, turn, i), step, &input, store, is_far, all);
    } else {
        for (size_t first = 0; first < group; first += together) {
            struct run runs[MOST_TOGETHER];
            size_t count = group - first < together ? group - first : together;
            for (size_t i = 0; i < count; i++)
                runs[i] = run_of(bound, targets, turn, first + i);
            put_runs(runs, count, step, &input, store, is_far, all);
        }
    }
    /* What no target gets is read too. */
    while (store < STRINGS && input.at < end) {
        __m512i line = _mm512_loadu_si512(next_line(&input, is_far));
        __asm__ volatile("" : : "v"(line));
    }
}

INLINE void put_all(const struct bound *given, const enum store store, const int is_far) {
    const struct bound copy = *given, *bound = &copy; /* which no store can change */
    uint64_t all = ~(uint64_t)0;
    __asm__ volatile("" : "+r"(all)); /* or compilers store without a mask */
    for (size_t i = 0; i < bound->extents[0]; i++)
        for (size_t j = 0; j < bound->extents[1]; j++) {
            const char *source =
                bound->source + (ptrdiff_t)i * bound->steps[0] + (ptrdiff_t)j * bound->steps[1];
            char *const *targets = bound->targets + i * bound->groups[0] + j * bound->groups[1];
            size_t turn = i * bound->turns[0] + j * bound->turns[1];
            for (size_t k = 0; k < bound->extents[2]; k++) {
                put_tile(bound, source, targets, turn, store, is_far, all);
                source += bound->steps[2];
                targets += bound->groups[2];
                turn += bound->turns[2];
            }
        }
    if (store == PAST || store == THROUGH_PAST)
        _mm_sfence();
}

/* Loops of their own for each way. */
#define CASE(store)                                                                                \
    case store:                                                                                    \
        if (bound->ahead > 0)                                                                      \
            put_all(bound, store, 1);                                                              \
        else                                                                                       \
            put_all(bound, store, 0);                                                              \
        break

WIDE static void put(const struct bound *bound) {
    switch ((enum store)bound->store) {
        CASE(BY_16);
        CASE(BY_32);
        CASE(BY_64);
        CASE(MASKED);
        CASE(OWNED);
        CASE(PAST);
        CASE(STRINGS);
        CASE(THROUGH);
        CASE(THROUGH_PAST);
        CASE(THROUGH_STRINGS);
    }
}

int32_t call_bounds(const void *data) {
    const struct bounds *bounds = data;
    for (size_t i = 0; i < bounds->count; i++)
        put(&bounds->all[i]);
    return 0;
}

#else

int32_t call_bounds(const void *bounds) {
    (void)bounds;
    return -1;
}

#endif
