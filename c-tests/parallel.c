/*
 * parallel.c - copies run by the caller's thread pool, whether it behaves or not
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1

#include <stdlib.h>
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

#define MARGIN 64
#define MAX_PIECES 1000
#define THREADS 4

/* A pool: how it runs tasks, and what it has seen. */
struct pool {
    libsplit_parallel_for_fn run;
    int32_t result;      /* what parallel_for returns */
    size_t skipped;      /* the task that is not run, modulo the number of tasks */
    unsigned char *mark; /* a byte that is changed before tasks are repeated */
    int calls;
    size_t count; /* of the last call */
    pthread_t caller;
    int wrong_thread; /* parallel_for ran on a thread other than the caller's */
    int depth;        /* how many calls of run_with_calls_back() this one is inside */
};

static void see_call(struct pool *pool, size_t count) {
    pool->calls++;
    pool->count = count;
    pool->wrong_thread |= !pthread_equal(pool->caller, pthread_self());
}

static int32_t run_forwards(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i);
    return pool->result;
}

static int32_t run_reversed(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = count; i > 0; i--)
        task(task_ctx, i - 1);
    return 0;
}

static int32_t run_repeated(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = 0; i < count; i++)
        for (int times = 0; times < 3; times++)
            task(task_ctx, (i * 7 + (size_t)times) % count);
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i);
    return 0;
}

static int32_t run_nothing(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    (void)task, (void)task_ctx;
    see_call(pool, count);
    return pool->result;
}

static int32_t run_all_but_one(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = 0; i < count; i++)
        if (i != pool->skipped % count)
            task(task_ctx, i);
    return 0;
}

/* Like a pool that is shut down in the middle of its work. */
static int32_t run_half_and_fail(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = 0; i < count / 2; i++)
        task(task_ctx, i);
    return pool->result;
}

/* Makes as many calls as there are tasks, but leaves one task out. */
static int32_t run_one_for_another(void *data, libsplit_task_fn task, void *task_ctx,
                                   size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i == pool->skipped % count ? (i + 1) % count : i);
    return 0;
}

/* Instead of task 0, runs tasks whose numbers look like 0 in 32 bits, or do not exist. */
static int32_t run_wrong_numbers(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = 1; i < count; i++)
        task(task_ctx, i);
    task(task_ctx, count);
    task(task_ctx, SIZE_MAX);
    task(task_ctx, (size_t)1 << 31);
    task(task_ctx, SIZE_MAX - (SIZE_MAX > UINT32_MAX ? UINT32_MAX : 0));
    return 0;
}

/* Repeats tasks once everything has been written: they must not write it again. */
static int32_t run_then_mark_then_repeat(void *data, libsplit_task_fn task, void *task_ctx,
                                         size_t count) {
    struct pool *pool = data;
    see_call(pool, count);
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i);
    *pool->mark ^= 0xFF;
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i);
    return 0;
}

/* A call that threads share: each takes the next number until none is left. */
struct shared_call {
    libsplit_task_fn task;
    void *task_ctx;
    size_t count;
    int repeats;
    int calls_back;
    atomic_size_t next;
    atomic_int failures; /* of the calls made from within tasks */
};

static libsplit_status copy_something_else(libsplit_parallel_for_fn run, int depth);

static void *run_share(void *data) {
    struct shared_call *call = data;
    for (;;) {
        size_t i = atomic_fetch_add(&call->next, 1);
        if (i >= call->count * (size_t)call->repeats)
            return NULL;
        call->task(call->task_ctx, i / (size_t)call->repeats);
        if (call->calls_back && copy_something_else(run_forwards, 0) != LIBSPLIT_STATUS_OK)
            atomic_fetch_add(&call->failures, 1);
    }
}

static int32_t run_shared(struct shared_call *call) {
    pthread_t threads[THREADS];
    atomic_init(&call->next, 0);
    atomic_init(&call->failures, 0);
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, run_share, call) != 0)
            abort();
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    return atomic_load(&call->failures);
}

static int32_t run_on_threads(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct shared_call call = {.task = task, .task_ctx = task_ctx, .count = count, .repeats = 1};
    see_call(data, count);
    return run_shared(&call);
}

/* Several threads begin the same task at a time: only one of them may write. */
static int32_t run_each_by_all(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct shared_call call = {
        .task = task, .task_ctx = task_ctx, .count = count, .repeats = THREADS};
    see_call(data, count);
    return run_shared(&call);
}

/* Between its tasks, every thread makes calls of its own. */
static int32_t run_on_threads_that_call_back(void *data, libsplit_task_fn task, void *task_ctx,
                                             size_t count) {
    struct shared_call call = {
        .task = task, .task_ctx = task_ctx, .count = count, .repeats = 1, .calls_back = 1};
    see_call(data, count);
    return run_shared(&call);
}

static struct pool pool_of(libsplit_parallel_for_fn run) {
    struct pool pool = {.run = run, .caller = pthread_self()};
    return pool;
}

static libsplit_executor executor_of(struct pool *pool) {
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(pool->run, pool);
    return executor;
}

/* A matrix that is split into columns, with memory for all of it. */
struct job {
    const char *name;
    libsplit_dtype dtype;
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* of the input, in elements */
    int64_t pieces, length;            /* all of length 'length', or the first one */
    int64_t padding;                   /* elements behind each row of an output */
    size_t misaligned;
};

static const struct job jobs[] = {
    {"one piece", LIBSPLIT_DTYPE_UINT8, 1, 9000001, 9000001, 1, 1, 0, 0, 0},
    {"one piece, unaligned", LIBSPLIT_DTYPE_DOUBLE, 3, 200001, 200001, 1, 1, 0, 0, 5},
    {"two pieces of one row", LIBSPLIT_DTYPE_INT16, 1, 3000000, 3000000, 1, 2, 1234567, 0, 0},
    {"columns", LIBSPLIT_DTYPE_FLOAT, 2000, 1000, 1000, 1, 2, 333, 0, 1},
    {"one narrow column", LIBSPLIT_DTYPE_UINT8, 3000, 1001, 1001, 1, 2, 1, 0, 0},
    {"few long rows", LIBSPLIT_DTYPE_INT32, 5, 300000, 300000, 1, 2, 123456, 0, 0},
    {"large columns", LIBSPLIT_DTYPE_DOUBLE, 3000, 400, 400, 1, 3, 133, 0, 3},
    {"planes of a picture", LIBSPLIT_DTYPE_UINT8, 2800000, 3, 3, 1, 3, 1, 0, 0},
    {"transposed", LIBSPLIT_DTYPE_FLOAT, 1000, 1001, 1, 1000, 2, 500, 0, 0},
    {"transposed complex", LIBSPLIT_DTYPE_COMPLEX128, 301, 401, 1, 301, 2, 100, 0, 3},
    {"repeated row", LIBSPLIT_DTYPE_INT64, 500, 1000, 0, 1, 2, 700, 0, 0},
    {"padded outputs", LIBSPLIT_DTYPE_BFLOAT16, 1000, 1500, 1500, 1, 2, 800, 9, 0},
    {"many pieces", LIBSPLIT_DTYPE_UINT8, 1, 4096000, 4096000, 1, 1000, 4096, 0, 0},
    {"many narrow columns", LIBSPLIT_DTYPE_FLOAT, 1000, 1000, 1000, 1, 500, 2, 0, 0},
    {"many short columns", LIBSPLIT_DTYPE_FLOAT, 150, 1000, 1000, 1, 1000, 1, 0, 0},
    {"many short columns, padded", LIBSPLIT_DTYPE_FLOAT, 150, 3000, 3000, 1, 1000, 3, 2, 0},
    {"many pieces of few rows", LIBSPLIT_DTYPE_UINT8, 20, 30007, 30007, 1, 1000, 30, 0, 1},
};

struct work {
    const struct job *job;
    size_t element;
    unsigned char *source, *target;
    size_t target_bytes;
    libsplit_tensor input, outputs[MAX_PIECES], split;
    int64_t shape[2], strides[2], shapes[MAX_PIECES][2], out_strides[MAX_PIECES][2];
    int64_t lengths[MAX_PIECES], count;
    libsplit_params params;
};

static unsigned char source_byte(size_t i) { return (unsigned char)(i * 31 ^ i >> 9); }

static void set_input(struct work *work, const struct job *job) {
    work->shape[0] = job->rows;
    work->shape[1] = job->columns;
    work->strides[0] = job->row_stride;
    work->strides[1] = job->column_stride;
    size_t last =
        (size_t)((job->rows - 1) * job->row_stride + (job->columns - 1) * job->column_stride);
    size_t bytes = job->misaligned + (last + 1) * work->element;
    work->source = allocate(bytes);
    for (size_t i = 0; i < bytes; i++)
        work->source[i] = source_byte(i);
    work->input = packed(job->dtype, work->source + job->misaligned, 2, work->shape);
    work->input.strides = work->strides;
}

/* One buffer for all outputs, with margins around each. */
static void set_outputs(struct work *work, const struct job *job) {
    int64_t elements = job->rows * (job->columns + job->padding * job->pieces);
    work->target_bytes = (size_t)elements * work->element +
                         (size_t)job->pieces * (MARGIN + job->misaligned) + MARGIN;
    work->target = allocate(work->target_bytes);
    unsigned char *data = work->target;
    for (int64_t i = 0; i < job->pieces; i++) {
        data += MARGIN + job->misaligned;
        work->lengths[i] = i < job->pieces - 1 ? job->length : job->columns - job->length * i;
        work->shapes[i][0] = job->rows;
        work->shapes[i][1] = work->lengths[i];
        work->out_strides[i][0] = work->lengths[i] + job->padding;
        work->out_strides[i][1] = 1;
        work->outputs[i] = packed(job->dtype, data, 2, work->shapes[i]);
        work->outputs[i].strides = work->out_strides[i];
        data += (size_t)(job->rows * work->out_strides[i][0]) * work->element;
    }
}

static struct work *new_work(const struct job *job) {
    struct work *work = allocate(sizeof *work);
    work->job = job;
    work->element = libsplit_dtype_bits(job->dtype) / 8;
    set_input(work, job);
    set_outputs(work, job);
    work->count = job->pieces;
    work->split = packed(LIBSPLIT_DTYPE_INT64, work->lengths, 1, &work->count);
    work->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    work->params.axis = 1;
    work->params.split = &work->split;
    memset(work->target, 0xA5, work->target_bytes);
    return work;
}

static void free_work(struct work *work) {
    free(work->source);
    free(work->target);
    free(work);
}

static libsplit_status copy_work(struct work *work, const libsplit_executor *executor,
                                 libsplit_error *error) {
    return libsplit_copy(&work->input, &work->params, work->outputs, (size_t)work->count, executor,
                         error);
}

/* Returns how many elements of a row of an output differ from the input's row from 'column' on. */
static int64_t count_wrong_in_row(const struct work *work, const unsigned char *target, int64_t row,
                                  int64_t column, int64_t length) {
    const struct job *job = work->job;
    size_t element = work->element, step = (size_t)job->column_stride * element;
    const unsigned char *source = work->input.data;
    source += (size_t)(row * job->row_stride + column * job->column_stride) * element;
    if (step == element && memcmp(target, source, (size_t)length * element) == 0)
        return 0;
    int64_t wrong = 0;
    for (int64_t c = 0; c < length; c++, target += element, source += step)
        wrong += memcmp(target, source, element) != 0;
    return wrong;
}

/* Returns how many elements are wrong, and how many bytes around them have changed. */
static int64_t count_wrong(const struct work *work) {
    const struct job *job = work->job;
    const unsigned char *at = work->target;
    int64_t wrong = 0, column = 0;
    for (int64_t i = 0; i < job->pieces; column += work->lengths[i], i++)
        for (int64_t row = 0; row < job->rows; row++) {
            const unsigned char *begin = work->outputs[i].data;
            begin += (size_t)(row * work->out_strides[i][0]) * work->element;
            for (; at < begin; at++)
                wrong += *at != 0xA5;
            wrong += count_wrong_in_row(work, at, row, column, work->lengths[i]);
            at += (size_t)work->lengths[i] * work->element;
        }
    for (; at < work->target + work->target_bytes; at++)
        wrong += *at != 0xA5;
    return wrong;
}

/* Checks just the margins around the outputs. */
static int64_t count_wrong_margins(const struct work *work) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < work->count; i++) {
        const unsigned char *data = work->outputs[i].data;
        for (size_t b = 1; b <= MARGIN; b++)
            wrong += data[-(ptrdiff_t)b] != 0xA5;
    }
    for (size_t b = 1; b <= MARGIN; b++)
        wrong += work->target[work->target_bytes - b] != 0xA5;
    return wrong;
}

/* Copies something else, with a pool of its own, in the middle of a call. */
static libsplit_status copy_something_else(libsplit_parallel_for_fn run, int depth) {
    struct work *work = new_work(&jobs[4]);
    struct pool pool = pool_of(run);
    pool.depth = depth;
    libsplit_executor executor = executor_of(&pool);
    libsplit_status status = copy_work(work, &executor, NULL);
    if (status == LIBSPLIT_STATUS_OK && (count_wrong(work) != 0 || pool.calls != 1))
        status = LIBSPLIT_STATUS_ERROR_INTERNAL;
    free_work(work);
    return status;
}

/* Makes a call whose pool does the same in the middle of its tasks, until one runs on threads. */
static int32_t run_with_calls_back(void *data, libsplit_task_fn task, void *task_ctx,
                                   size_t count) {
    struct pool *pool = data;
    libsplit_parallel_for_fn inner = pool->depth < 3 ? run_with_calls_back : run_on_threads;
    see_call(pool, count);
    for (size_t i = 0; i < count; i++) {
        if (i == count / 2 && copy_something_else(inner, pool->depth + 1) != LIBSPLIT_STATUS_OK)
            return -1;
        task(task_ctx, i);
    }
    return 0;
}

static void check_with(struct work *work, const char *how, libsplit_parallel_for_fn run) {
    struct pool pool = pool_of(run);
    libsplit_executor executor = executor_of(&pool);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    memset(work->target, 0xA5, work->target_bytes);
    CHECK_CASE("%s, %s", work->job->name, how);
    CHECK_OK(copy_work(work, &executor, &error));
    CHECK_EQ_STR(error.message, "");
    CHECK_EQ_INT(pool.calls, 1);
    CHECK(pool.count >= 2);
    CHECK(!pool.wrong_thread);
    CHECK_EQ_INT(count_wrong(work), 0);
}

static void check_without_pool(struct work *work) {
    CHECK_CASE("%s, without a pool", work->job->name);
    CHECK_OK(copy_work(work, NULL, NULL));
    CHECK_EQ_INT(count_wrong(work), 0);
}

static void test_every_pool_that_runs_all_tasks(void) {
    static const struct {
        const char *name;
        libsplit_parallel_for_fn run;
    } pools[] = {
        {"in order", run_forwards},
        {"reversed", run_reversed},
        {"repeated", run_repeated},
        {"on threads", run_on_threads},
        {"each by all threads", run_each_by_all},
        {"with calls back", run_with_calls_back},
        {"with calls back from its threads", run_on_threads_that_call_back},
    };
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        struct work *work = new_work(&jobs[j]);
        check_without_pool(work);
        for (size_t p = 0; p < sizeof pools / sizeof *pools; p++)
            check_with(work, pools[p].name, pools[p].run);
        free_work(work);
    }
}

/* Whatever the flags say about caches, the bytes are the same, also without a pool. What they
 * decide cannot be seen from here: the unit tests of executor.rs and call.rs see it. */
static void test_flags_without_a_pool(void) {
    static const uint32_t flags[] = {
        0,
        LIBSPLIT_FLAG_OUTPUTS_READ_NEXT,
        LIBSPLIT_FLAG_NEVER_STREAM,
        LIBSPLIT_FLAG_OUTPUTS_READ_NEXT | LIBSPLIT_FLAG_NEVER_STREAM,
    };
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        struct work *work = new_work(&jobs[j]);
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
            libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(NULL, NULL);
            executor.flags = flags[f];
            executor.max_tasks = 7;
            memset(work->target, 0xA5, work->target_bytes);
            CHECK_CASE("%s, flags %u", jobs[j].name, (unsigned)flags[f]);
            CHECK_OK(copy_work(work, &executor, NULL));
            CHECK_EQ_INT(count_wrong(work), 0);
        }
        free_work(work);
    }
}

/* Matrices with gaps between them and behind their rows: tasks begin and end within a matrix. */
static void test_rows_in_matrices_with_gaps(void) {
    enum { MATRICES = 3, ROWS = 1000, WIDTH = 600, PITCH = WIDTH + 1, APART = ROWS * PITCH + 77 };
    static const int64_t lengths[] = {5, 245, 350};
    int64_t shape[3] = {MATRICES, ROWS, WIDTH}, strides[3] = {APART, PITCH, 1}, count = 3;
    int64_t shapes[3][3];
    unsigned char *input_data = allocate(MATRICES * APART);
    for (size_t i = 0; i < MATRICES * APART; i++)
        input_data[i] = source_byte(i);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, input_data, 3, shape);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, (void *)lengths, 1, &count), outputs[3];
    input.strides = strides;
    for (size_t i = 0; i < 3; i++) {
        memcpy(shapes[i], shape, sizeof shape);
        shapes[i][2] = lengths[i];
        unsigned char *data = allocate((size_t)(MATRICES * ROWS * lengths[i]));
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, data, 3, shapes[i]);
    }
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 2;
    params.split = &split;
    struct pool pool = pool_of(run_on_threads);
    libsplit_executor executor = executor_of(&pool);
    CHECK_CASE("matrices with gaps");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, &executor, NULL));
    CHECK(pool.count >= 2);
    const unsigned char *from = input_data;
    for (size_t i = 0; i < 3; from += lengths[i], i++) {
        const unsigned char *to = outputs[i].data;
        size_t length = (size_t)lengths[i];
        int64_t wrong = 0;
        for (int64_t row = 0; row < MATRICES * ROWS; row++, to += length)
            wrong += memcmp(to, from + row / ROWS * APART + row % ROWS * PITCH, length) != 0;
        CHECK_EQ_INT(wrong, 0);
        free(outputs[i].data);
    }
    free(input_data);
}

/* Rows of an odd number of 4-bit elements, from the middle of a byte on: tasks meet within rows. */
static void test_4_bit_elements(void) {
    enum { ROWS = 1001, WIDTH = 3001, FIRST = 1500, LAST = WIDTH - FIRST };
    size_t bytes = (ROWS * WIDTH + 1) / 2 + 1, piece_bytes = (ROWS * LAST + 1) / 2;
    unsigned char *source = allocate(bytes), *target = allocate(piece_bytes + 1);
    int64_t shape[2] = {ROWS, WIDTH}, out_shape[2] = {ROWS, LAST}, count = 2;
    int64_t lengths[2] = {FIRST, LAST}, wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        source[i] = source_byte(i);
    memset(target, 0xFF, piece_bytes + 1);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT4, source, 2, shape);
    input.bit_offset = 4;
    libsplit_tensor outputs[2] = {{0}, packed(LIBSPLIT_DTYPE_UINT4, target, 2, out_shape)};
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.axis = 1;
    params.split = &split;
    struct pool pool = pool_of(run_on_threads);
    libsplit_executor executor = executor_of(&pool);
    CHECK_CASE("4-bit");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, &executor, NULL));
    CHECK(pool.calls == 1 && pool.count >= 2);
    for (size_t n = 0; n < (size_t)ROWS * LAST; n++) {
        size_t from = 1 + n / LAST * WIDTH + FIRST + n % LAST;
        int expected = source[from / 2] >> (from % 2 * 4) & 0xF;
        wrong += (target[n / 2] >> (n % 2 * 4) & 0xF) != expected;
    }
    CHECK_EQ_INT(wrong, 0);
    CHECK_EQ_INT(target[piece_bytes - 1] >> 4, 0);
    CHECK_EQ_INT(target[piece_bytes], 0xFF);
    free(source);
    free(target);
}

static void test_small_copies_stay_on_the_calling_thread(void) {
    static const int64_t sizes[] = {0, 1, 64, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char source[4096], target[4096];
        int64_t extent = sizes[i];
        memset(source, 1, sizeof source);
        memset(target, 0, sizeof target);
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 1, &extent);
        libsplit_tensor output = packed(LIBSPLIT_DTYPE_UINT8, target, 1, &extent);
        libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
        params.num_outputs = 1;
        struct pool pool = pool_of(run_on_threads);
        libsplit_executor executor = executor_of(&pool);
        CHECK_CASE("%d bytes", (int)extent);
        CHECK_OK(libsplit_copy(&input, &params, &output, 1, &executor, NULL));
        // Unless a test wants small copies to be treated as large ones.
        const char *forced = getenv("LIBSPLIT_TEST_FORCE");
        if (!forced || !strstr(forced, "low"))
            CHECK_EQ_INT(pool.calls, 0);
        CHECK(memcmp(source, target, (size_t)extent) == 0);
    }
}

static void test_nothing_to_copy_does_not_bother_the_pool(void) {
    struct work *work = new_work(&jobs[3]);
    struct pool pool = pool_of(run_forwards);
    libsplit_executor executor = executor_of(&pool);
    CHECK_CASE("no output wanted");
    memset(work->outputs, 0, sizeof work->outputs);
    CHECK_STATUS(copy_work(work, &executor, NULL), LIBSPLIT_STATUS_ERROR_NULL);
    CHECK_EQ_INT(pool.calls, 0);
    free_work(work);

    int64_t none[] = {0, 1 << 20}, half[] = {0, 1 << 19};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, none), outputs[2];
    outputs[0] = outputs[1] = packed(LIBSPLIT_DTYPE_UINT8, NULL, 2, half);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 1;
    params.num_outputs = 2;
    CHECK_CASE("no elements");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, &executor, NULL));
    CHECK_EQ_INT(pool.calls, 0);
}

static void test_a_refused_call_does_not_reach_the_pool(void) {
    struct work *work = new_work(&jobs[3]);
    struct pool pool = pool_of(run_forwards);
    libsplit_executor executor = executor_of(&pool);
    CHECK_CASE("refused");
    work->outputs[1].data = work->outputs[0].data;
    CHECK_STATUS(copy_work(work, &executor, NULL), LIBSPLIT_STATUS_ERROR_OVERLAP);
    CHECK_EQ_INT(pool.calls, 0);
    free_work(work);
}

static void test_max_tasks_is_respected(void) {
    static const uint32_t widths[] = {0, 1, 2, 3, 7, 64, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct work *work = new_work(&jobs[0]);
        struct pool pool = pool_of(run_forwards);
        libsplit_executor executor = executor_of(&pool);
        executor.max_tasks = widths[i];
        CHECK_CASE("max_tasks %u", (unsigned)widths[i]);
        CHECK_OK(copy_work(work, &executor, NULL));
        if (widths[i] > 0)
            CHECK(pool.count <= widths[i]);
        if (widths[i] != 1)
            CHECK(pool.count >= 2);
        CHECK_EQ_INT(count_wrong(work), 0);
        free_work(work);
    }
}

/* With a pool that does not do its work, there is an error, whatever was written. */
static libsplit_error copy_in_vain(const char *name, struct pool *pool) {
    struct work *work = new_work(&jobs[3]);
    libsplit_executor executor = executor_of(pool);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    executor.max_tasks = 8;
    CHECK_CASE("%s", name);
    CHECK_STATUS(copy_work(work, &executor, &error), LIBSPLIT_STATUS_ERROR_EXECUTOR);
    CHECK_STATUS(error.status, LIBSPLIT_STATUS_ERROR_EXECUTOR);
    CHECK_EQ_INT(error.output_index, -1);
    CHECK(strstr(error.message, "parallel_for") != NULL);
    CHECK_EQ_INT(pool->calls, 1);
    CHECK_EQ_INT(count_wrong_margins(work), 0);
    free_work(work);
    return error;
}

static void test_pools_that_fail(void) {
    static const struct {
        const char *name;
        libsplit_parallel_for_fn run;
        int32_t result;
    } pools[] = {
        {"fails at once", run_nothing, 7},
        {"fails half-way", run_half_and_fail, 8},
        {"fails after all", run_forwards, 9},
        {"fails with INT32_MIN", run_forwards, INT32_MIN},
    };
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        struct pool pool = pool_of(pools[i].run);
        pool.result = pools[i].result;
        libsplit_error error = copy_in_vain(pools[i].name, &pool);
        CHECK_EQ_INT(error.expected, 0);
        CHECK_EQ_INT(error.actual, pools[i].result);
    }
}

static void test_pools_that_skip(void) {
    static const struct {
        const char *name;
        libsplit_parallel_for_fn run;
        size_t skipped;
    } pools[] = {
        {"skips the first", run_all_but_one, 0},
        {"skips the second", run_all_but_one, 1},
        {"skips the last", run_all_but_one, 7},
        {"runs one for another", run_one_for_another, 3},
        {"runs wrong numbers", run_wrong_numbers, 0},
    };
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        struct pool pool = pool_of(pools[i].run);
        pool.skipped = pools[i].skipped;
        libsplit_error error = copy_in_vain(pools[i].name, &pool);
        CHECK_EQ_INT(error.expected, pool.count);
        CHECK_EQ_INT(error.actual, pool.count - 1);
    }
    struct pool pool = pool_of(run_nothing);
    libsplit_error error = copy_in_vain("skips all", &pool);
    CHECK_EQ_INT(error.expected, pool.count);
    CHECK_EQ_INT(error.actual, 0);
}

/* A call that has failed leaves nothing behind that could affect another attempt. */
static void test_another_attempt_after_a_failure(void) {
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        struct work *work = new_work(&jobs[j]);
        struct pool failing = pool_of(run_half_and_fail), good = pool_of(run_on_threads);
        libsplit_executor executor = executor_of(&failing);
        failing.result = -1;
        CHECK_CASE("%s, failed", jobs[j].name);
        CHECK_STATUS(copy_work(work, &executor, NULL), LIBSPLIT_STATUS_ERROR_EXECUTOR);
        CHECK_EQ_INT(count_wrong_margins(work), 0);
        executor = executor_of(&good);
        CHECK_CASE("%s, once more", jobs[j].name);
        CHECK_OK(copy_work(work, &executor, NULL));
        CHECK_EQ_INT(good.calls, 1);
        CHECK_EQ_INT(count_wrong(work), 0);
        free_work(work);
    }
}

static void test_a_repeated_task_does_nothing(void) {
    struct work *work = new_work(&jobs[0]);
    struct pool pool = pool_of(run_then_mark_then_repeat);
    libsplit_executor executor = executor_of(&pool);
    CHECK_CASE("marked, then repeated");
    pool.mark = (unsigned char *)work->outputs[0].data + 1000000;
    CHECK_OK(copy_work(work, &executor, NULL));
    CHECK_EQ_INT(count_wrong(work), 1);
    *pool.mark ^= 0xFF;
    CHECK_EQ_INT(count_wrong(work), 0);
    free_work(work);
}

/* One of several threads that split the same input at the same time. */
struct user {
    struct work *work;
    int with_pool;
    libsplit_status status;
};

static void *split_often(void *data) {
    struct user *user = data;
    for (int times = 0; times < 5 && user->status == LIBSPLIT_STATUS_OK; times++) {
        struct pool pool = pool_of(run_on_threads);
        libsplit_executor executor = executor_of(&pool);
        memset(user->work->target, 0xA5, user->work->target_bytes);
        user->status = copy_work(user->work, user->with_pool ? &executor : NULL, NULL);
        if (user->status == LIBSPLIT_STATUS_OK && count_wrong(user->work) != 0)
            user->status = LIBSPLIT_STATUS_ERROR_INTERNAL;
    }
    return NULL;
}

static void test_concurrent_calls_share_an_input(void) {
    struct user users[THREADS];
    pthread_t threads[THREADS];
    struct work *owner = new_work(&jobs[3]);
    for (int t = 0; t < THREADS; t++) {
        users[t] = (struct user){.work = new_work(&jobs[3]), .with_pool = t % 2};
        users[t].work->input = owner->input;
        users[t].work->params.split = &owner->split;
    }
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, split_often, &users[t]) != 0)
            abort();
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK_CASE("thread %d of several", t);
        CHECK_OK(users[t].status);
        free_work(users[t].work);
    }
    free_work(owner);
}

int main(void) {
    CHECK_START();
    test_every_pool_that_runs_all_tasks();
    test_flags_without_a_pool();
    test_rows_in_matrices_with_gaps();
    test_4_bit_elements();
    test_small_copies_stay_on_the_calling_thread();
    test_nothing_to_copy_does_not_bother_the_pool();
    test_a_refused_call_does_not_reach_the_pool();
    test_max_tasks_is_respected();
    test_pools_that_fail();
    test_pools_that_skip();
    test_another_attempt_after_a_failure();
    test_a_repeated_task_does_nothing();
    test_concurrent_calls_share_an_input();
    CHECK_DONE();
}
