/*
 * soak.c - random splits from many threads on one input, for as long as asked
 *
 * Every operator, type and layout; copies on the calling thread and on others, views, and calls
 * that are refused. Each element of each piece is looked up in the input by a plain loop, and all
 * bytes around the pieces must be unchanged. At the end the process is as large as at the start.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1

#include "check.h"
#include "system.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define RANK 5
#define PIECES 64
#define LARGE ((int64_t)10 << 20)              /* bytes of the largest pieces, all together */
#define MEMORY ((size_t)LARGE * 3 + (1 << 18)) /* of the input, and of each thread's outputs */
#define MARGIN 64
#define UNTOUCHED 0xA5

/* How much the process may grow, in bytes. On Windows it is more, as Wine counts memory of its own.
 */
#ifdef _WIN32
#define GROWTH (16 << 20)
#else
#define GROWTH (1 << 20)
#endif

/* Bits of the elements by dtype, from the ONNX documents. */
#define STRING_BITS (8 * (int64_t)sizeof(libsplit_string))
static const int64_t bits_of[] = {0,  32,  8,  8, 16, 16, 32, 64, STRING_BITS, 8, 16, 64, 32, 64,
                                  64, 128, 16, 8, 8,  8,  8,  4,  4,           4, 8,  2,  2};

static unsigned char *source; /* what all threads split */
static atomic_int is_over, failures, ready;
static atomic_llong jobs_done, bytes_done;

/* Where elements are, in elements from the first one: a step for each axis. */
struct layout {
    int64_t strides[RANK], low, high; /* low, high: the farthest reached */
};

/* One split, all of it drawn from 'random'. */
struct job {
    uint64_t random;
    libsplit_dtype dtype;
    int64_t bits, shape[RANK], lengths[PIECES], given[PIECES];
    int32_t rank, axis;
    int pieces, drops_axis;
    struct layout from;
    int64_t origin; /* of the input's first element in 'source', in bits */
    libsplit_tensor input, split;
    int64_t split_shape;
    libsplit_params params;
    libsplit_tensor outputs[PIECES];
    int64_t shapes[PIECES][RANK], strides[PIECES][RANK];
    unsigned char *target, *end; /* the part of the thread's memory that is used */
};

static int64_t draw(struct job *job, int64_t low, int64_t high) {
    return random_in(&job->random, low, high);
}

static int one_in(struct job *job, int64_t n) { return draw(job, 1, n) == 1; }

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- what is split ------------------------------------------------------------------------- */

static void draw_shape(struct job *job) {
    /* As many bytes as a random number of bits can count: small sizes are as likely as large
     * ones. */
    int64_t bytes = min((int64_t)1 << draw(job, 0, 21), LARGE);
    if (one_in(job, 200))
        bytes = LARGE;
    int64_t rest = bytes * 8 / job->bits;
    job->rank = (int32_t)draw(job, 1, RANK);
    for (int32_t a = 0; a < job->rank; a++) {
        int64_t extent = min(rest, (int64_t)1 << draw(job, 0, 12));
        job->shape[a] = extent > 0 ? draw(job, (extent + 1) / 2, extent) : 1;
        rest /= job->shape[a];
    }
    int32_t longest = (int32_t)draw(job, 0, job->rank - 1);
    if (rest > 1)
        job->shape[longest] *= rest;
    if (one_in(job, 40))
        job->shape[longest] = 0;
    job->axis = (int32_t)draw(job, 0, job->rank - 1);
}

/* Makes strides by laying out the axes in any order, some with gaps or backwards. */
static struct layout try_layout(struct job *job, int32_t rank, const int64_t *shape, int repeats) {
    struct layout layout = {{0}, 0, 0};
    int32_t order[RANK] = {0};
    int packed = one_in(job, 2), rows = one_in(job, 2);
    int64_t reach = 1;
    for (int32_t a = 0; a < rank; a++)
        order[a] = rank - 1 - a;
    for (int32_t a = rank - 1; a > 0 && !packed && !rows; a--) {
        int32_t other = (int32_t)draw(job, 0, a), axis = order[a];
        order[a] = order[other];
        order[other] = axis;
    }
    for (int32_t i = 0; i < rank; i++) {
        int32_t a = order[i];
        int64_t last = shape[a] > 0 ? shape[a] - 1 : 0, gap = 1;
        if (!packed && i == 0 && one_in(job, 4))
            gap = 2;
        if (!packed && i > 0 && one_in(job, 4))
            reach += draw(job, 0, min(reach, 9));
        if (!packed && repeats && one_in(job, 8))
            gap = 0;
        int64_t stride = reach * gap;
        reach += last * stride;
        if (!packed && one_in(job, 6)) {
            stride = -stride;
            layout.low += last * stride;
        } else {
            layout.high += last * stride;
        }
        layout.strides[a] = stride;
    }
    return layout;
}

/* A layout that is not all gaps. */
static struct layout draw_layout(struct job *job, int32_t rank, const int64_t *shape, int repeats) {
    int64_t elements = 1;
    for (int32_t a = 0; a < rank; a++)
        elements *= shape[a];
    for (;;) {
        struct layout layout = try_layout(job, rank, shape, repeats);
        if (layout.high - layout.low < 2 * elements + 32)
            return layout;
    }
}

static void draw_input(struct job *job) {
    job->from = draw_layout(job, job->rank, job->shape, 1);
    job->origin = draw(job, 0, 4096) * 8 - job->from.low * job->bits;
    if (job->bits < 8)
        job->origin += draw(job, 0, 8 / job->bits - 1) * job->bits;
    job->input = packed(job->dtype, source + job->origin / 8, job->rank, job->shape);
    job->input.strides = job->from.strides;
    job->input.bit_offset = (uint32_t)(job->origin % 8);
}

/* ---- into what ------------------------------------------------------------------------------ */

static void give_list(struct job *job) {
    job->split_shape = job->pieces;
    memcpy(job->given, job->lengths, sizeof job->given);
    job->split = packed(LIBSPLIT_DTYPE_INT64, job->given, 1, &job->split_shape);
    job->params.split = &job->split;
}

static void draw_lengths(struct job *job) {
    int64_t rest = job->shape[job->axis];
    job->pieces = (int)draw(job, 1, one_in(job, 4) ? PIECES : 5);
    for (int i = 0; i < job->pieces - 1; i++) {
        job->lengths[i] = draw(job, 0, min(rest, 2 * rest / (job->pieces - i) + 1));
        rest -= job->lengths[i];
    }
    job->lengths[job->pieces - 1] = rest;
}

/* Pieces of 'each', the last of which may be smaller, and then some empty ones. */
static void set_even_lengths(struct job *job, int64_t each) {
    int64_t rest = job->shape[job->axis];
    for (int i = 0; i < job->pieces; i++, rest -= min(rest, each))
        job->lengths[i] = min(rest, each);
}

static void draw_onnx_split(struct job *job) {
    job->params.opset = 18;
    draw_lengths(job);
    if (one_in(job, 2)) {
        give_list(job);
        return;
    }
    job->params.num_outputs = job->pieces;
    job->params.flags = LIBSPLIT_FLAG_CLAMP_UNEVEN;
    set_even_lengths(job, (job->shape[job->axis] + job->pieces - 1) / job->pieces);
}

static void draw_sequence(struct job *job) {
    int64_t extent = job->shape[job->axis];
    job->params.opset = 24;
    if (extent <= PIECES && one_in(job, 2)) {
        job->pieces = (int)extent;
        job->drops_axis = one_in(job, 2);
        job->params.keepdims = !job->drops_axis;
        set_even_lengths(job, 1);
        return;
    }
    int64_t each = draw(job, extent / PIECES + 1, extent + 1);
    job->pieces = (int)((extent + each - 1) / each);
    set_even_lengths(job, each);
    give_list(job);
    job->given[0] = each;
    job->split.rank = 0;
}

static void draw_variadic_split(struct job *job) {
    draw_lengths(job);
    give_list(job);
    if (one_in(job, 2))
        job->given[draw(job, 0, job->pieces - 1)] = -1;
}

static void draw_openvino_split(struct job *job) {
    int64_t extent = job->shape[job->axis];
    for (job->pieces = (int)draw(job, 1, PIECES); extent % job->pieces != 0;)
        job->pieces--;
    job->params.num_outputs = job->pieces;
    set_even_lengths(job, extent / job->pieces);
}

static void draw_split(struct job *job) {
    static void (*const draw_parameters[])(struct job *) = {
        NULL, draw_onnx_split, draw_sequence, draw_variadic_split, draw_openvino_split};
    libsplit_op op = (libsplit_op)draw(job, 1, 4);
    int is_onnx = op == LIBSPLIT_OP_ONNX_SPLIT || op == LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE;
    job->dtype = (libsplit_dtype)draw(job, 1, is_onnx ? 16 : 26);
    job->bits = bits_of[job->dtype];
    draw_shape(job);
    draw_input(job);
    job->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(op, 1);
    job->params.axis = one_in(job, 2) ? job->axis : job->axis - job->rank;
    draw_parameters[op](job);
}

/* What libsplit_infer() and libsplit_view() are given. */
static void set_descriptors(struct job *job) {
    for (int i = 0; i < job->pieces; i++)
        job->outputs[i] = (libsplit_tensor){
            .shape = job->shapes[i], .strides = job->strides[i], .capacity = RANK};
}

/* Buffers for the pieces in memory that is UNTOUCHED, with margins, packed or not. */
static void draw_outputs(struct job *job, unsigned char *memory) {
    int are_packed = job->bits < 8 || one_in(job, 2);
    job->target = memory;
    memory += MARGIN + draw(job, 0, 64);
    for (int i = 0; i < job->pieces; i++) {
        libsplit_tensor *output = &job->outputs[i];
        struct layout to = {{0}, 0, 0};
        if (i + 1 < job->pieces && one_in(job, 10)) {
            memset(output, 0, sizeof *output); /* nobody wants it */
            continue;
        }
        size_t bytes = output->data_bytes;
        if (!are_packed && bytes > 0) {
            to = draw_layout(job, output->rank, output->shape, 0);
            memcpy(output->strides, to.strides, sizeof to.strides);
            bytes = (size_t)((to.high - to.low + 1) * job->bits / 8);
            output->data_bytes = one_in(job, 2) ? bytes : 0;
        } else if (one_in(job, 2)) {
            output->strides = NULL;
        }
        output->data = memory - to.low * job->bits / 8;
        memory += bytes + MARGIN + (size_t)draw(job, 0, 3);
    }
    job->end = memory;
    if ((size_t)(job->end - job->target) > MEMORY)
        abort();
    memset(job->target, UNTOUCHED, (size_t)(job->end - job->target));
}

/* ---- what must come out --------------------------------------------------------------------- */

/* A sub-byte element; 'at' counts bits. */
static int small_element(const unsigned char *bytes, int64_t at, int64_t bits) {
    return bytes[at / 8] >> at % 8 & ((1 << bits) - 1);
}

/* Returns whether element 'to' of an output is element 'from' of the input, both in bits; makes a
 * whole-byte one UNTOUCHED again. */
static int is_right(const struct job *job, unsigned char *output, int64_t to, int64_t from) {
    if (job->bits < 8)
        return small_element(output, to, job->bits) == small_element(source, from, job->bits);
    int right = memcmp(output + to / 8, source + from / 8, (size_t)job->bits / 8) == 0;
    memset(output + to / 8, UNTOUCHED, (size_t)job->bits / 8);
    return right;
}

/* Returns how many elements of a piece, which begins at 'begin' on the axis, are wrong. */
static int64_t count_wrong(const struct job *job, int piece, int64_t begin) {
    const libsplit_tensor *output = &job->outputs[piece];
    int64_t shape[RANK], to_strides[RANK], index[RANK] = {0}, wrong = 0, packed_stride = 1;
    int32_t rank = job->rank;
    memcpy(shape, job->shape, sizeof shape);
    shape[job->axis] = job->lengths[piece];
    for (int32_t a = rank - 1, b = output->rank - 1; a >= 0; a--) {
        int is_dropped = job->drops_axis && a == job->axis;
        to_strides[a] = is_dropped ? 0 : output->strides ? output->strides[b] : packed_stride;
        packed_stride *= shape[a];
        b -= !is_dropped;
    }
    if (packed_stride == 0)
        return 0;
    int64_t from = job->origin + begin * job->from.strides[job->axis] * job->bits, to = 0;
    for (int32_t a = 0; a >= 0;) {
        wrong += !is_right(job, output->data, to, from);
        for (a = rank - 1; a >= 0; a--) {
            from += job->from.strides[a] * job->bits;
            to += to_strides[a] * job->bits;
            if (++index[a] < shape[a])
                break;
            from -= shape[a] * job->from.strides[a] * job->bits;
            to -= shape[a] * to_strides[a] * job->bits;
            index[a] = 0;
        }
    }
    return wrong;
}

/* Bits that belong to no element must be 0; then all are made UNTOUCHED again. */
static int64_t count_wrong_bits_after(const struct job *job, const libsplit_tensor *output) {
    int64_t bits = job->bits, wrong = 0;
    for (int32_t a = 0; a < output->rank; a++)
        bits *= output->shape[a];
    for (int64_t at = bits; at % 8 != 0; at++)
        wrong += small_element(output->data, at, 1) != 0;
    memset(output->data, UNTOUCHED, (size_t)(bits + 7) / 8);
    return wrong;
}

static int64_t count_touched(const struct job *job) {
    int64_t touched = 0;
    for (const unsigned char *at = job->target; at < job->end; at++)
        touched += *at != UNTOUCHED;
    return touched;
}

/* ---- how it is run -------------------------------------------------------------------------- */

struct call {
    libsplit_task_fn task;
    void *task_ctx;
    size_t count;
    atomic_size_t next;
};

static void *run_tasks(void *data) {
    struct call *call = data;
    for (size_t i; (i = atomic_fetch_add(&call->next, 1)) < call->count;)
        call->task(call->task_ctx, call->count - 1 - i);
    return NULL;
}

static int32_t on_two_threads(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct call call = {.task = task, .task_ctx = task_ctx, .count = count};
    pthread_t thread;
    (void)pool;
    atomic_init(&call.next, 0);
    if (pthread_create(&thread, NULL, run_tasks, &call) != 0)
        abort();
    run_tasks(&call);
    pthread_join(thread, NULL);
    return 0;
}

#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return #cond;                                                                          \
    } while (0)

/* Each of these returns what is wrong, or NULL. */
static const char *infer(struct job *job) {
    size_t count = PIECES + 1, n = (size_t)job->pieces;
    set_descriptors(job);
    EXPECT(libsplit_count(&job->input, &job->params, &count, NULL) == LIBSPLIT_STATUS_OK);
    EXPECT(count == n);
    EXPECT(libsplit_infer(&job->input, &job->params, job->outputs, n, NULL) == LIBSPLIT_STATUS_OK);
    for (int i = 0; i < job->pieces; i++) {
        EXPECT(job->outputs[i].dtype == job->dtype);
        EXPECT(job->outputs[i].rank == job->rank - job->drops_axis);
        for (int32_t a = 0, b = 0; a < job->rank; a++)
            if (a != job->axis)
                EXPECT(job->shapes[i][b++] == job->shape[a]);
            else if (!job->drops_axis)
                EXPECT(job->shapes[i][b++] == job->lengths[i]);
    }
    return NULL;
}

static const char *view(struct job *job) {
    int64_t begin = 0;
    size_t n = (size_t)job->pieces;
    set_descriptors(job);
    EXPECT(libsplit_view(&job->input, &job->params, job->outputs, n, NULL) == LIBSPLIT_STATUS_OK);
    for (int i = 0; i < job->pieces; begin += job->lengths[i++]) {
        int64_t at = job->origin + begin * job->from.strides[job->axis] * job->bits, elements = 1;
        for (int32_t a = 0; a < job->rank; a++)
            elements *= a == job->axis ? job->lengths[i] : job->shape[a];
        if (elements == 0)
            continue;
        EXPECT((unsigned char *)job->outputs[i].data == source + at / 8);
        EXPECT(job->outputs[i].bit_offset == at % 8);
        for (int32_t a = 0, b = 0; a < job->rank; a++)
            if (a != job->axis || !job->drops_axis)
                EXPECT(job->strides[i][b++] == job->from.strides[a] || job->shape[a] == 1);
    }
    return NULL;
}

static const char *copy(struct job *job, unsigned char *memory) {
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(on_two_threads, NULL);
    int64_t begin = 0, wrong = 0;
    size_t n = (size_t)job->pieces;
    draw_outputs(job, memory);
    EXPECT(libsplit_copy(&job->input, &job->params, job->outputs, n,
                         one_in(job, 3) ? &executor : NULL, NULL) == LIBSPLIT_STATUS_OK);
    for (int i = 0; i < job->pieces; begin += job->lengths[i++]) {
        if (job->outputs[i].shape == NULL)
            continue;
        wrong += count_wrong(job, i, begin);
        if (job->bits < 8)
            wrong += count_wrong_bits_after(job, &job->outputs[i]);
    }
    atomic_fetch_add(&bytes_done, job->end - job->target);
    EXPECT(wrong == 0);
    EXPECT(count_touched(job) == 0);
    return NULL;
}

/* The last output is refused: nothing may be written to the others. */
static const char *fail_to_copy(struct job *job, unsigned char *memory) {
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    size_t n = (size_t)job->pieces;
    draw_outputs(job, memory);
    libsplit_tensor *last = &job->outputs[n - 1];
    if (last->shape == NULL)
        return NULL;
    last->shape[0]++;
    EXPECT(libsplit_copy(&job->input, &job->params, job->outputs, n, NULL, &error) !=
           LIBSPLIT_STATUS_OK);
    EXPECT(error.output_index == job->pieces - 1);
    EXPECT(count_touched(job) == 0);
    return NULL;
}

static const char *run_job(uint64_t seed, unsigned char *memory) {
    struct job job = {.random = seed};
    draw_split(&job);
    const char *wrong = infer(&job);
    if (wrong != NULL)
        return wrong;
    if (one_in(&job, 8))
        return view(&job);
    if (one_in(&job, 16) && job.pieces > 0 && job.outputs[0].rank > 0)
        return fail_to_copy(&job, memory);
    return copy(&job, memory);
}

/* ---- the threads ---------------------------------------------------------------------------- */

static unsigned char *new_memory(void) {
    unsigned char *memory = allocate(MEMORY);
    memset(memory, UNTOUCHED, MEMORY); /* all of it counts from the start */
    return memory;
}

static void *run_jobs(void *data) {
    uint64_t state = *(uint64_t *)data;
    unsigned char *memory = new_memory();
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&is_over)) {
        uint64_t seed = random_u64(&state);
        const char *wrong = run_job(seed, memory);
        if (wrong != NULL) {
            fprintf(stderr, "does not hold: %s; repeat it by: soak --job %" PRIu64 "\n", wrong,
                    seed);
            atomic_fetch_add(&failures, 1);
            atomic_store(&is_over, 1);
        }
        atomic_fetch_add(&jobs_done, 1);
    }
    free(memory);
    return NULL;
}

/* Waits, and reports progress; returns the bytes in memory. */
static int64_t run_until(time_t begin, int64_t until) {
    struct timespec tenth = {0, 100000000};
    int64_t seconds, told = 0;
    while ((seconds = time(NULL) - begin) < until && !atomic_load(&is_over)) {
        nanosleep(&tenth, NULL);
        if (seconds - told >= 60) {
            told = seconds;
            printf("%" PRId64 " s: %lld splits, %" PRId64 " KiB in memory\n", seconds,
                   atomic_load(&jobs_done), resident_bytes() >> 10);
            fflush(stdout);
        }
    }
    return resident_bytes();
}

static int soak(int64_t seconds) {
    pthread_t threads[THREADS];
    uint64_t states[THREADS];
    time_t begin = time(NULL);
    for (int t = 0; t < THREADS; t++) {
        states[t] = ((uint64_t)begin << 16) + (uint64_t)getpid() * THREADS + (uint64_t)t;
        if (pthread_create(&threads[t], NULL, run_jobs, &states[t]) != 0)
            abort();
    }
    /* Every thread touches its memory at its first turn; after that, threads of copies come
     * and go. */
    while (atomic_load(&ready) < THREADS)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    begin = time(NULL);
    int64_t before = run_until(begin, (seconds + 3) / 4);
    int64_t after = run_until(begin, seconds);
    atomic_store(&is_over, 1);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    printf("%lld splits on %d threads in %" PRId64 " s, %lld MB written and checked; %" PRId64
           " KiB in memory, then %" PRId64 " KiB\n",
           atomic_load(&jobs_done), THREADS, seconds, atomic_load(&bytes_done) / 1000000,
           before >> 10, after >> 10);
    if (after - before > GROWTH)
        fprintf(stderr, "the process grows by more than %d KiB\n", GROWTH >> 10);
    return atomic_load(&failures) > 0 || after - before > GROWTH;
}

static int repeat(uint64_t seed) {
    unsigned char *memory = new_memory();
    const char *wrong = run_job(seed, memory);
    printf("job %" PRIu64 ": %s\n", seed, wrong == NULL ? "right" : wrong);
    free(memory);
    return wrong != NULL;
}

int main(int argc, char **argv) {
    CHECK_START();
    int is_job = argc == 3 && strcmp(argv[1], "--job") == 0;
    if (argc != 2 && !is_job) {
        fprintf(stderr, "usage: %s SECONDS\n       %s --job SEED\n", argv[0], argv[0]);
        return 2;
    }
    uint64_t state = 1;
    source = allocate(MEMORY);
    for (size_t i = 0; i + 8 <= MEMORY; i += 8)
        memcpy(source + i, &(uint64_t){random_u64(&state)}, 8);
    int failed = is_job ? repeat(strtoull(argv[2], NULL, 10)) : soak(strtol(argv[1], NULL, 10));
    free(source);
    return failed;
}
