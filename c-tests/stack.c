/*
 * stack.c - how much of the stack each function uses, over calls of every kind
 *
 * A thread paints its stack below the call, and afterwards looks how far down the paint is gone.
 * The figures are those of this machine's loops, or of those that LIBSPLIT_TEST_FORCE asks for. The
 * calls of a case run on one thread, including tasks.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */

#include "check.h"
#include "system.h"

#include <pthread.h>

/*
 * The most bytes that a call may use, including what the program itself uses on the way: any call,
 * and calls with more than MANY outputs in no order. The header promises 32 KiB; compilers differ
 * by about one, and no newer one should break the promise.
 */
enum { LIMIT = 20 * 1024, MANY = 16384, LIMIT_OF_MANY = 24 * 1024 };

enum { STACK = 1 << 20, PAINTED = 1 << 18, OWN = 512, MAX_RANK = 64 };
#define ROOM ((size_t)160 << 20)

enum layout { PACKED, TRANSPOSED, REVERSED, STEPPED, PLANES, CHANNELS_LAST, UPWARDS };
enum placement { IN_ORDER, SHUFFLED, SCATTERED, INTERLEAVED, PAIRS, ALIKE, UNEQUAL };

struct job {
    const char *name;
    libsplit_dtype dtype;
    int32_t rank; /* above 3: extent 2 on the first 14 axes, 1 on the others */
    int64_t shape[3];
    int32_t axis;
    int64_t pieces;
    enum layout layout;
    enum placement placement;
    unsigned bit_offset;
    int with_tasks;
};

#define F32 LIBSPLIT_DTYPE_FLOAT
#define F64 LIBSPLIT_DTYPE_DOUBLE
#define C128 LIBSPLIT_DTYPE_COMPLEX128
#define U8 LIBSPLIT_DTYPE_UINT8
#define U16 LIBSPLIT_DTYPE_UINT16
#define U4 LIBSPLIT_DTYPE_UINT4
#define U2 LIBSPLIT_DTYPE_UINT2

static const struct job jobs[] = {
    {"small", F32, 2, {1, 12}, 1, 3, PACKED, IN_ORDER, 0, 0},
    {"small, outputs alike", F32, 2, {1, 12}, 1, 3, PACKED, ALIKE, 0, 0},
    {"1,000 rows in random order", F32, 2, {1000, 8}, 0, 1000, PACKED, SHUFFLED, 0, 0},
    {"1,000 columns in random order", F32, 2, {16, 2000}, 1, 1000, PACKED, SHUFFLED, 0, 0},
    {"1,000 outputs alike", U8, 2, {16, 2000}, 1, 1000, PACKED, ALIKE, 0, 0},
    {"100,000 in random order", U8, 2, {100000, 4}, 0, 100000, PACKED, SHUFFLED, 0, 0},
    {"200,000 in random order", U8, 2, {200000, 4}, 0, 200000, PACKED, SHUFFLED, 0, 0},
    {"1,000 here and there", U8, 2, {1000, 4}, 0, 1000, PACKED, SCATTERED, 0, 0},
    {"100,000 here and there", U8, 2, {100000, 4}, 0, 100000, PACKED, SCATTERED, 0, 0},
    {"3 interleaved", F32, 2, {64, 12}, 1, 3, PACKED, INTERLEAVED, 0, 0},
    {"32 interleaved", F32, 2, {64, 64}, 1, 32, PACKED, INTERLEAVED, 0, 0},
    {"1,000 interleaved", F32, 2, {16, 2000}, 1, 1000, PACKED, INTERLEAVED, 0, 0},
    {"1,000 in pairs", F32, 2, {16, 1000}, 1, 1000, PACKED, PAIRS, 0, 0},
    {"100,000 in pairs", U8, 2, {5, 100000}, 1, 100000, PACKED, PAIRS, 0, 0},
    {"1,000 interleaved, transposed", U8, 2, {16, 2000}, 1, 1000, TRANSPOSED, INTERLEAVED, 0, 0},
    {"transposed, 1 byte", U8, 2, {500, 600}, 1, 3, TRANSPOSED, IN_ORDER, 0, 0},
    {"transposed, 1 byte, 1,024 apart", U8, 2, {600, 3072}, 1, 3, TRANSPOSED, IN_ORDER, 0, 0},
    {"planes backwards, transposed", U8, 3, {600, 4, 1024}, 1, 4, PLANES, INTERLEAVED, 0, 0},
    {"channels last", U8, 3, {3000, 6, 49}, 1, 2, CHANNELS_LAST, IN_ORDER, 0, 0},
    {"transposed, 2 bytes", U16, 2, {500, 600}, 1, 3, TRANSPOSED, IN_ORDER, 0, 0},
    {"transposed, 4 bytes", F32, 2, {500, 600}, 1, 3, TRANSPOSED, IN_ORDER, 0, 0},
    {"transposed, 8 bytes", F64, 2, {300, 600}, 1, 3, TRANSPOSED, IN_ORDER, 0, 0},
    {"transposed, 16 bytes", C128, 2, {150, 600}, 1, 3, TRANSPOSED, IN_ORDER, 0, 0},
    {"transposed, 3 axes", F32, 3, {40, 50, 60}, 1, 5, TRANSPOSED, IN_ORDER, 0, 0},
    {"transposed, short rows", U8, 3, {3000, 50, 3}, 0, 2, TRANSPOSED, IN_ORDER, 0, 0},
    {"transposed, into columns", F32, 2, {500, 600}, 1, 300, TRANSPOSED, INTERLEAVED, 0, 0},
    {"into 15 columns", U8, 2, {20000, 15}, 1, 15, TRANSPOSED, INTERLEAVED, 0, 0},
    {"transposed, on tasks", F32, 2, {500, 600}, 1, 3, TRANSPOSED, IN_ORDER, 0, 1},
    {"rows upwards, 1 byte", U8, 2, {500, 1000}, 1, 1000, UPWARDS, IN_ORDER, 0, 0},
    {"rows upwards, 4 bytes", F32, 2, {90000, 64}, 1, 64, UPWARDS, IN_ORDER, 0, 0},
    {"rows upwards, few of 8 bytes", F64, 2, {300000, 9}, 1, 9, UPWARDS, IN_ORDER, 0, 0},
    {"reversed", F32, 2, {500, 600}, 1, 3, REVERSED, IN_ORDER, 0, 0},
    {"every other element", F32, 2, {500, 600}, 1, 3, STEPPED, IN_ORDER, 0, 0},
    {"past the caches, every other element", F32, 2, {3000, 3000}, 1, 3, STEPPED, IN_ORDER, 0, 0},
    {"deinterleaved, 3 of 1 byte", U8, 2, {100000, 3}, 1, 3, PACKED, IN_ORDER, 0, 0},
    {"deinterleaved, 4 of 4 bytes", F32, 2, {100000, 4}, 1, 4, PACKED, IN_ORDER, 0, 0},
    {"deinterleaved, 16 of 2 bytes", U16, 2, {20000, 16}, 1, 16, PACKED, IN_ORDER, 0, 0},
    {"deinterleaved, 64 of 1 byte", U8, 2, {9000, 64}, 1, 64, PACKED, IN_ORDER, 0, 0},
    {"short runs", U8, 2, {3000, 91}, 1, 13, PACKED, IN_ORDER, 0, 0},
    {"short runs on tasks", U8, 2, {50000, 91}, 1, 13, PACKED, IN_ORDER, 0, 1},
    {"long runs", F32, 2, {100, 3000}, 1, 3, PACKED, IN_ORDER, 0, 0},
    {"past the caches, long runs", F32, 2, {3000, 3000}, 1, 3, PACKED, IN_ORDER, 0, 0},
    {"past the caches, short runs", U8, 2, {400000, 91}, 1, 13, PACKED, IN_ORDER, 0, 0},
    {"unequal runs", U8, 2, {3000, 91}, 1, 13, PACKED, UNEQUAL, 0, 0},
    {"past the caches, unequal runs", U8, 2, {400000, 91}, 1, 13, PACKED, UNEQUAL, 0, 0},
    {"past the caches, 32 unequal", U8, 2, {90000, 528}, 1, 32, PACKED, UNEQUAL, 0, 0},
    {"past the caches, deinterleaved", F32, 2, {3000000, 3}, 1, 3, PACKED, IN_ORDER, 0, 0},
    {"past the caches, transposed", F32, 2, {3000, 3000}, 1, 3, TRANSPOSED, IN_ORDER, 0, 0},
    {"4-bit elements", U4, 2, {301, 303}, 1, 3, PACKED, IN_ORDER, 4, 0},
    {"4-bit elements, transposed", U4, 2, {301, 303}, 1, 3, TRANSPOSED, IN_ORDER, 4, 0},
    {"4-bit elements, transposed, whole bytes",
     U4,
     2,
     {1000, 300},
     1,
     3,
     TRANSPOSED,
     IN_ORDER,
     0,
     0},
    {"4-bit elements, singles", U4, 2, {30001, 8}, 1, 8, PACKED, IN_ORDER, 0, 0},
    {"4-bit elements, 48 singles", U4, 2, {30001, 48}, 1, 48, PACKED, IN_ORDER, 4, 0},
    {"4-bit elements, 15 singles", U4, 2, {30001, 15}, 1, 15, PACKED, IN_ORDER, 4, 0},
    {"4-bit elements, 200 singles", U4, 2, {3001, 200}, 1, 200, PACKED, IN_ORDER, 0, 0},
    {"2-bit elements", U2, 2, {301, 303}, 1, 101, PACKED, IN_ORDER, 6, 0},
    {"2-bit elements, reversed", U2, 2, {301, 303}, 1, 3, REVERSED, IN_ORDER, 2, 0},
    {"4-bit elements on tasks", U4, 2, {3001, 3003}, 1, 3, PACKED, IN_ORDER, 4, 1},
    {"4-bit columns, backwards", U4, 2, {30001, 12}, 1, 3, REVERSED, IN_ORDER, 4, 0},
    {"past the caches, interleaved", F32, 2, {3000000, 3}, 1, 3, TRANSPOSED, INTERLEAVED, 0, 0},
    {"past the caches, backwards", U8, 2, {6000, 6000}, 1, 3, REVERSED, IN_ORDER, 0, 0},
    {"rank 20", U16, 20, {0}, 7, 2, TRANSPOSED, IN_ORDER, 0, 0},
    {"rank 20, 1 byte", U8, 20, {0}, 0, 2, TRANSPOSED, IN_ORDER, 0, 0},
    {"rank 64", U16, 64, {0}, 3, 2, REVERSED, IN_ORDER, 0, 0},
    {"rank 64, interleaved", F32, 64, {0}, 13, 2, TRANSPOSED, INTERLEAVED, 0, 0},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* The memory of a job, and whose calls are measured. */
struct work {
    const struct job *job;
    unsigned char *source, *target;
    int64_t shape[MAX_RANK], strides[MAX_RANK], *shapes, *room, packed[MAX_RANK], columns[2];
    int64_t *lengths, pieces[1]; /* unequal ones: 1, 2, 3, ... */
    libsplit_tensor split, input, *outputs, *filled;
    libsplit_params params;
    libsplit_executor executor;
    libsplit_plan *plan;
    void **addresses;
    size_t plan_size, count;
    libsplit_error error;
    libsplit_status status;
};

static void lay_out(const struct work *w, int64_t *strides) {
    int64_t reach = 1;
    if (w->job->layout == PLANES) { /* on axis 1, from the last, each transposed */
        strides[0] = 1;
        strides[1] = -w->shape[0] * w->shape[2];
        strides[2] = w->shape[0];
        return;
    }
    if (w->job->layout == CHANNELS_LAST) { /* on axis 1 */
        strides[0] = w->shape[1] * w->shape[2];
        strides[1] = 1;
        strides[2] = w->shape[1];
        return;
    }
    for (int32_t i = 0; i < w->input.rank; i++) {
        int32_t axis = w->job->layout == TRANSPOSED ? i : w->input.rank - 1 - i;
        strides[axis] = w->job->layout == STEPPED ? 2 * reach : reach;
        reach *= w->shape[axis];
        if (w->job->layout == REVERSED || (w->job->layout == UPWARDS && i > 0))
            strides[axis] = -strides[axis];
    }
}

/* Returns where element [0, ..., 0] of output 'index' lies, in elements. */
static int64_t place_of(const struct work *w, int64_t index, int64_t step, int64_t elements) {
    int64_t pieces = w->job->pieces;
    switch (w->job->placement) {
    case SHUFFLED:
        return index * 7919 % pieces * elements;
    case SCATTERED: /* with gaps */
        return index * 7919 % pieces * (elements + 123);
    case INTERLEAVED:
        return (pieces - 1 - index) * step;
    case PAIRS: /* the columns of matrices of two, with a gap between them, in no order */
        index = index * 7919 % pieces;
        return index / 2 * (2 * elements + 1) + index % 2;
    case ALIKE:
        return 0;
    case UNEQUAL:
        return index * (index + 1) / 2 * w->shape[0];
    default:
        return index * elements;
    }
}

static void set_work(struct work *w, const struct job *job, unsigned char *source,
                     unsigned char *target) {
    size_t bits = libsplit_dtype_bits(job->dtype), count = (size_t)job->pieces;
    size_t rank = (size_t)job->rank;
    memset(w, 0, sizeof *w);
    w->job = job;
    w->count = count;
    int64_t elements = 1, inner = 1, outer = 1;
    for (int32_t d = 0; d < job->rank; d++) {
        w->shape[d] = job->rank > 3 ? (d < 14 ? 2 : 1) : job->shape[d];
        elements *= w->shape[d];
        if (d > job->axis)
            inner *= w->shape[d];
        else if (d < job->axis)
            outer *= w->shape[d];
    }
    if (job->layout == PLANES)
        source += (size_t)((w->shape[1] - 1) * w->shape[0] * w->shape[2]) * bits / 8;
    int64_t length = w->shape[job->axis] / job->pieces;
    w->input = packed(job->dtype, source, job->rank, w->shape);
    w->input.bit_offset = job->bit_offset;
    lay_out(w, w->strides);
    if (job->layout != PACKED)
        w->input.strides = w->strides;
    if (job->layout == REVERSED) {
        size_t last = (size_t)(elements - 1) * bits + job->bit_offset;
        w->input.data = source + last / 8;
        w->input.bit_offset = bits < 8 ? last % 8 : 0;
    }
    if (job->layout == UPWARDS)
        w->input.data = source + (size_t)(elements - w->shape[job->rank - 1]) * bits / 8;
    w->shapes = allocate((rank + 2 * count) * sizeof *w->shapes);
    w->lengths = allocate(count * sizeof *w->lengths);
    w->room = allocate(2 * rank * count * sizeof *w->room);
    w->outputs = allocate(count * sizeof *w->outputs);
    w->filled = allocate(count * sizeof *w->filled);
    w->addresses = allocate(count * sizeof *w->addresses);
    memcpy(w->shapes, w->shape, rank * sizeof *w->shapes);
    w->shapes[job->axis] = length;
    /* Columns of one matrix: packed, except for the steps outward of the split axis. */
    int64_t reach = 1;
    for (int32_t d = job->rank - 1; d >= 0; d--) {
        w->packed[d] = reach;
        reach *= w->shape[d];
    }
    w->columns[0] = 2;
    w->columns[1] = 1;
    for (size_t i = 0; i < count; i++) {
        size_t at = job->placement == SHUFFLED ? i * 7919 % count : i;
        int64_t place = place_of(w, (int64_t)i, length * inner, outer * length * inner);
        int64_t *shape = w->shapes;
        if (job->placement == UNEQUAL) { /* of rank 2 */
            shape = w->shapes + 2 * i;
            shape[0] = outer;
            w->lengths[i] = shape[1] = (int64_t)i + 1;
        }
        w->outputs[i] = packed(job->dtype, NULL, job->rank, shape);
        /* Pieces of sub-byte elements may end within a byte. */
        w->outputs[i].data = target + (size_t)place * bits / 8 + (bits < 8 ? i : 0);
        if (job->placement == INTERLEAVED)
            w->outputs[i].strides = w->packed;
        if (job->placement == PAIRS)
            w->outputs[i].strides = w->columns;
        w->addresses[i] = w->outputs[i].data;
        w->filled[i] = (libsplit_tensor){.shape = w->room + 2 * rank * at,
                                         .strides = w->room + 2 * rank * at + rank,
                                         .capacity = job->rank};
    }
    w->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    w->params.axis = job->axis;
    w->params.num_outputs = job->pieces;
    if (job->placement == UNEQUAL) {
        w->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
        w->params.axis = job->axis;
        w->pieces[0] = job->pieces;
        w->split = packed(LIBSPLIT_DTYPE_INT64, w->lengths, 1, w->pieces);
        w->params.split = &w->split;
    }
    w->executor = (libsplit_executor)LIBSPLIT_EXECUTOR_INIT(run_in_order, NULL);
    w->plan_size = libsplit_plan_size(job->rank, count);
    w->plan = allocate(w->plan_size);
    w->error = (libsplit_error)LIBSPLIT_ERROR_INIT;
}

static void free_work(struct work *w) {
    free(w->shapes);
    free(w->lengths);
    free(w->room);
    free(w->outputs);
    free(w->filled);
    free(w->addresses);
    free(w->plan);
}

static const libsplit_executor *executor_of(const struct work *w) {
    return w->job->with_tasks ? &w->executor : NULL;
}

static void call_count(struct work *w) {
    size_t count;
    w->status = libsplit_count(&w->input, &w->params, &count, &w->error);
}
static void call_infer(struct work *w) {
    w->status = libsplit_infer(&w->input, &w->params, w->filled, w->count, &w->error);
}
static void call_view(struct work *w) {
    w->status = libsplit_view(&w->input, &w->params, w->filled, w->count, &w->error);
}
static void call_copy(struct work *w) {
    w->status =
        libsplit_copy(&w->input, &w->params, w->outputs, w->count, executor_of(w), &w->error);
}
static void call_plan_init(struct work *w) {
    w->status = libsplit_plan_init(w->plan, w->plan_size, &w->input, &w->params, w->outputs,
                                   w->count, &w->error);
}
static void call_plan_copy(struct work *w) {
    w->status = libsplit_plan_copy(w->plan, w->input.data, w->addresses, w->count, executor_of(w),
                                   &w->error);
}
static void call_plan_view(struct work *w) {
    w->status = libsplit_plan_view(w->plan, w->input.data, w->addresses, w->count, &w->error);
}

static const struct {
    const char *name;
    void (*run)(struct work *w);
    int may_clash;
} calls[] = {
    {"count", call_count, 0},         {"infer", call_infer, 0},
    {"view", call_view, 0},           {"copy", call_copy, 1},
    {"plan_init", call_plan_init, 0}, {"plan_copy", call_plan_copy, 1},
    {"plan_view", call_plan_view, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

struct measurement {
    void (*run)(struct work *w);
    struct work *work;
    size_t depth;
};

#define PAINT(at) ((unsigned char)((uintptr_t)(at) * 167 + 89))

/* Between painting and looking, calls nothing but what is measured. Paints downwards, because some
 * systems let a stack grow only from one page to the next. */
static void *measure(void *data) {
    struct measurement *m = data;
    volatile unsigned char *here = __builtin_frame_address(0), *low = here - PAINTED, *at;
    /* The first call may bind symbols and identify the CPU. */
    m->run(m->work);
    for (at = here - OWN; at-- > low;)
        *at = PAINT(at);
    m->run(m->work);
    for (at = low; at < here && *at == PAINT(at); at++) {
    }
    m->depth = (size_t)(here - at);
    return NULL;
}

static size_t depth_of(struct work *work, void (*run)(struct work *w)) {
    pthread_attr_t attributes;
    pthread_t thread;
    struct measurement m = {.run = run, .work = work};
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK) != 0 ||
        pthread_create(&thread, &attributes, measure, &m) != 0)
        abort();
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return m.depth;
}

/* Uses a known 10,000 bytes. */
static void take_10000(struct work *w) {
    volatile unsigned char taken[10000];
    for (size_t i = 0; i < sizeof taken; i++)
        taken[i] = (unsigned char)i;
    w->status = taken[77] == 77 ? LIBSPLIT_STATUS_OK : LIBSPLIT_STATUS_ERROR_INTERNAL;
}

static void test_the_measure(void) {
    struct work work;
    CHECK_CASE("10,000 bytes");
    size_t depth = depth_of(&work, take_10000);
    CHECK(10000 <= depth && depth < 10000 + OWN);
}

int main(void) {
    CHECK_START();
    unsigned char *source = reserve_addresses(ROOM), *target = reserve_addresses(ROOM);
    size_t deepest = 0;
    allow_access(source, ROOM);
    allow_access(target, ROOM);
    test_the_measure();
    printf("%-32s", "bytes of stack");
    for (int c = 0; c < CALLS; c++)
        printf(" %9s", calls[c].name);
    printf("\n");
    for (int j = 0; j < JOBS; j++) {
        struct work work;
        set_work(&work, &jobs[j], source, target);
        printf("%-32s", jobs[j].name);
        size_t limit = jobs[j].pieces > MANY ? LIMIT_OF_MANY : LIMIT;
        for (int c = 0; c < CALLS; c++) {
            CHECK_CASE("%s: %s", calls[c].name, jobs[j].name);
            size_t depth = depth_of(&work, calls[c].run);
            int clashes = calls[c].may_clash && jobs[j].placement == ALIKE;
            CHECK_STATUS(work.status, clashes ? LIBSPLIT_STATUS_ERROR_OVERLAP : LIBSPLIT_STATUS_OK);
            CHECK(depth <= limit);
            if (jobs[j].pieces <= MANY && depth > deepest)
                deepest = depth;
            printf(" %9zu", depth);
        }
        printf("\n");
        free_work(&work);
    }
    printf("%-32s %9zu of %d\n", "deepest", deepest, LIMIT);
    CHECK_DONE();
}
