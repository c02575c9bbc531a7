/*
 * guard_pages.c - copies between buffers with inaccessible memory before and after them: a read or
 * a write of one byte too many ends the program, which names the copy
 *
 * Every run length from 1 to 300 bytes, few rows and many, 1 to 17 pieces, every element width,
 * transposed, stepped, reversed and repeated inputs, inputs and outputs with gaps, sub-byte
 * elements at any offset, tasks, and copies that go past the caches; inputs and outputs at either
 * end of their pages, and misaligned between them. Every other copy is made by a plan, which lies
 * at the end of a page itself.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1

#include "check.h"
#include "system.h"

#define MAX_PIECES 17
#define MARGIN 64
#define BLOCKS 40
#define REGION ((size_t)20 << 20)
/* Inputs and outputs of twice this size go past the caches of any CPU. */
#define PAST_THE_CACHES ((int64_t)17 << 20)

/* Memory between two pages that must not be touched. */
struct region {
    unsigned char *begin, *end;
};

static struct region source_region, target_regions[MAX_PIECES], plan_region, address_region;

static struct region map_region(void) {
    size_t page = page_bytes();
    unsigned char *all = reserve_addresses(REGION + 2 * page);
    allow_access(all + page, REGION);
    return (struct region){all + page, all + page + REGION};
}

static void map_regions(void) {
    uint64_t state = 1;
    source_region = map_region();
    for (unsigned char *at = source_region.begin; at < source_region.end; at += 8) {
        uint64_t noise = random_u64(&state);
        memcpy(at, &noise, 8);
    }
    for (int i = 0; i < MAX_PIECES; i++)
        target_regions[i] = map_region();
    plan_region = map_region();
    address_region = map_region();
}

/* Where buffers lie in their regions. */
enum side { AT_THE_START, AT_THE_END, BETWEEN, SIDES };

static unsigned char *place(const struct region *region, size_t bytes, enum side side,
                            size_t askew) {
    switch (side) {
    case AT_THE_START:
        return region->begin;
    case AT_THE_END:
        return region->end - bytes;
    default:
        return region->begin + MARGIN + askew;
    }
}

/* Rows that are split into columns. */
struct job {
    libsplit_dtype dtype;
    int64_t rows;
    int pieces;
    int64_t lengths[MAX_PIECES];
    /* The input's strides in elements; if both are 0, it is packed. */
    int64_t row_stride, column_stride;
    /* Elements between the rows of an output. */
    int64_t gap;
    /* Offset of the input, in elements; for sub-byte types only. */
    unsigned bit_offset;
    int with_tasks;
};

/* A job's tensors in memory. */
struct scene {
    const struct job *job;
    size_t bits;
    int64_t columns, row_stride, column_stride;
    libsplit_tensor input, outputs[MAX_PIECES];
    int64_t shape[2], strides[2], shapes[MAX_PIECES][2], out_strides[MAX_PIECES][2];
    size_t bytes[MAX_PIECES];
};

static void place_input(struct scene *s, enum side side, size_t askew) {
    const struct job *job = s->job;
    int is_packed = job->row_stride == 0 && job->column_stride == 0;
    s->row_stride = is_packed ? s->columns : job->row_stride;
    s->column_stride = is_packed ? 1 : job->column_stride;
    int64_t rows_reach = (job->rows - 1) * s->row_stride;
    int64_t columns_reach = (s->columns - 1) * s->column_stride;
    int64_t low = (rows_reach < 0 ? rows_reach : 0) + (columns_reach < 0 ? columns_reach : 0);
    int64_t high = rows_reach + columns_reach - low;
    size_t bits = (size_t)(high - low + 1) * s->bits + job->bit_offset;
    if (bits > REGION * 8)
        abort();
    unsigned char *lowest = place(&source_region, (bits + 7) / 8, side, askew);
    s->shape[0] = job->rows;
    s->shape[1] = s->columns;
    s->strides[0] = s->row_stride;
    s->strides[1] = s->column_stride;
    s->input = packed(job->dtype, lowest + (size_t)-low * (s->bits / 8), 2, s->shape);
    s->input.bit_offset = job->bit_offset;
    if (!is_packed)
        s->input.strides = s->strides;
}

static void place_output(struct scene *s, int index, enum side side, size_t askew) {
    const struct region *region = &target_regions[index];
    int64_t length = s->job->lengths[index], pitch = length + s->job->gap;
    size_t elements = (size_t)((s->job->rows - 1) * pitch + length);
    s->bytes[index] = length == 0 ? 0 : (elements * s->bits + 7) / 8;
    if (s->bytes[index] + 2 * MARGIN + askew > REGION)
        abort();
    unsigned char *data = place(region, s->bytes[index], side, askew);
    unsigned char *begin = data - region->begin > MARGIN ? data - MARGIN : region->begin;
    unsigned char *end = data + s->bytes[index];
    end = region->end - end > MARGIN ? end + MARGIN : region->end;
    memset(begin, 0xA5, (size_t)(end - begin));
    s->shapes[index][0] = s->job->rows;
    s->shapes[index][1] = length;
    s->out_strides[index][0] = pitch;
    s->out_strides[index][1] = 1;
    s->outputs[index] = packed(s->job->dtype, data, 2, s->shapes[index]);
    if (s->job->gap > 0)
        s->outputs[index].strides = s->out_strides[index];
}

static int64_t count_changed(const unsigned char *begin, const unsigned char *end) {
    int64_t changed = 0;
    for (; begin < end; begin++)
        changed += *begin != 0xA5;
    return changed;
}

/* Returns how many bytes around an output, and between its rows, have changed. */
static int64_t count_wrong_around(const struct scene *s, int index) {
    const struct region *region = &target_regions[index];
    const unsigned char *data = s->outputs[index].data, *end = data + s->bytes[index];
    int64_t wrong =
        count_changed(data - region->begin > MARGIN ? data - MARGIN : region->begin, data) +
        count_changed(end, region->end - end > MARGIN ? end + MARGIN : region->end);
    size_t gap = (size_t)s->job->gap * (s->bits / 8);
    size_t row = (size_t)s->job->lengths[index] * (s->bits / 8);
    if (gap > 0)
        for (data += row; data < end; data += gap + row)
            wrong += count_changed(data, data + gap);
    return wrong;
}

/* Returns how many rows of an output differ from those of the input from 'column' on. */
static int64_t count_wrong_rows(const struct scene *s, int index, int64_t column) {
    size_t size = s->bits / 8, length = (size_t)s->job->lengths[index];
    const unsigned char *input = s->input.data, *target = s->outputs[index].data;
    int64_t wrong = 0, step = s->column_stride * (int64_t)size;
    for (int64_t row = 0; row < s->job->rows; row++) {
        int64_t from = (row * s->row_stride + column * s->column_stride) * (int64_t)size;
        const unsigned char *source = input + from, *at = target;
        if (s->column_stride == 1)
            wrong += memcmp(at, source, length * size) != 0;
        else
            for (size_t i = 0; i < length; i++, at += size, source += step)
                wrong += memcmp(at, source, size) != 0;
        target += (length + (size_t)s->job->gap) * size;
    }
    return wrong;
}

/* Returns element 'index' of packed sub-byte elements. */
static unsigned element_at(const unsigned char *data, size_t bits, int64_t index) {
    size_t bit = (size_t)index * bits;
    return data[bit / 8] >> (bit % 8) & ((1u << bits) - 1);
}

static int64_t count_wrong_elements(const struct scene *s, int index, int64_t column) {
    const unsigned char *target = s->outputs[index].data;
    int64_t length = s->job->lengths[index], wrong = 0, to = 0;
    int64_t first = (int64_t)(s->job->bit_offset / s->bits) + column * s->column_stride;
    for (int64_t row = 0; row < s->job->rows; row++)
        for (int64_t i = 0; i < length; i++, to++) {
            int64_t from = first + row * s->row_stride + i * s->column_stride;
            wrong += element_at(target, s->bits, to) != element_at(s->input.data, s->bits, from);
        }
    for (; (size_t)to * s->bits % 8 != 0; to++)
        wrong += element_at(target, s->bits, to) != 0;
    return wrong;
}

/* Copies by a plan and an array of addresses, each in memory of its exact size. */
static libsplit_status copy_by_plan(const struct scene *s, const libsplit_params *params,
                                    enum side side, const libsplit_executor *executor) {
    size_t count = (size_t)s->job->pieces, size = libsplit_plan_size(2, count);
    side = side == BETWEEN ? AT_THE_END : side;
    libsplit_plan *plan = (libsplit_plan *)place(&plan_region, size, side, 0);
    void **addresses = (void **)place(&address_region, count * sizeof *addresses, side, 0);
    for (size_t i = 0; i < count; i++)
        addresses[i] = s->outputs[i].data;
    libsplit_status status =
        libsplit_plan_init(plan, size, &s->input, params, s->outputs, count, NULL);
    return status != LIBSPLIT_STATUS_OK
               ? status
               : libsplit_plan_copy(plan, s->input.data, addresses, count, executor, NULL);
}

static void check_job_at(const struct job *job, enum side from, enum side to, size_t askew) {
    struct scene s = {.job = job, .bits = libsplit_dtype_bits(job->dtype)};
    int64_t count = job->pieces, lengths[MAX_PIECES];
    memcpy(lengths, job->lengths, sizeof lengths);
    for (int i = 0; i < job->pieces; i++)
        s.columns += job->lengths[i];
    CHECK_CASE("%s: %d rows of %d columns, %d pieces of %d and %d, strides %d and %d, gap %d, "
               "offset %u, at %d to %d, askew %d",
               libsplit_dtype_name(job->dtype), (int)job->rows, (int)s.columns, job->pieces,
               (int)lengths[0], (int)lengths[job->pieces - 1], (int)job->row_stride,
               (int)job->column_stride, (int)job->gap, job->bit_offset, (int)from, (int)to,
               (int)askew);
    place_input(&s, from, askew * 5 % 64);
    for (int i = 0; i < job->pieces; i++)
        place_output(&s, i, to, (askew + (size_t)i * 3) % 64);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.axis = 1;
    params.split = &split;
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(run_in_order, NULL);
    const libsplit_executor *tasks = job->with_tasks ? &executor : NULL;
    static int by_plan;
    by_plan = !by_plan;
    if (by_plan)
        CHECK_OK(copy_by_plan(&s, &params, to, tasks));
    else
        CHECK_OK(libsplit_copy(&s.input, &params, s.outputs, (size_t)count, tasks, NULL));
    int64_t wrong = 0, column = 0;
    for (int i = 0; i < job->pieces; column += lengths[i], i++) {
        wrong += s.bits < 8 ? count_wrong_elements(&s, i, column) : count_wrong_rows(&s, i, column);
        wrong += count_wrong_around(&s, i);
    }
    CHECK_EQ_INT(wrong, 0);
}

/* At both ends, and once between them. */
static void check_job(const struct job *job) {
    static size_t askew;
    askew = (askew + 11) % 64;
    check_job_at(job, AT_THE_START, AT_THE_START, 0);
    check_job_at(job, AT_THE_END, AT_THE_END, 0);
    check_job_at(job, AT_THE_END, BETWEEN, askew);
}

/* Returns the widest elements that runs of so many bytes can be made of. */
static libsplit_dtype widest(int64_t bytes) {
    return bytes % 16 == 0  ? LIBSPLIT_DTYPE_COMPLEX128
           : bytes % 8 == 0 ? LIBSPLIT_DTYPE_DOUBLE
           : bytes % 4 == 0 ? LIBSPLIT_DTYPE_FLOAT
           : bytes % 2 == 0 ? LIBSPLIT_DTYPE_FLOAT16
                            : LIBSPLIT_DTYPE_UINT8;
}

/* Pieces with runs of 'bytes' bytes each. */
static struct job equal_runs(int64_t bytes, int pieces, int64_t rows) {
    struct job job = {.dtype = widest(bytes), .rows = rows, .pieces = pieces};
    for (int i = 0; i < pieces; i++)
        job.lengths[i] = bytes * 8 / (int64_t)libsplit_dtype_bits(job.dtype);
    return job;
}

static void test_runs_of_equal_length(void) {
    static const int64_t rows[] = {1, 2, 5, 63, 64, 65, 79, 130};
    for (int64_t run = 1; run <= 300; run++)
        for (int pieces = 1; pieces <= MAX_PIECES; pieces++) {
            /* Long runs are not grouped, so a few pieces show as much as many. */
            if (pieces > 4 && run > 32 && (run + pieces) % 16 != 0)
                continue;
            size_t turn = (size_t)(run + pieces);
            for (size_t r = turn % 2; r < sizeof rows / sizeof *rows; r += 2) {
                struct job job = equal_runs(run, pieces, rows[r]);
                check_job(&job);
            }
        }
}

/* A run of each length beside others of any length, some of them empty. */
static void test_runs_of_mixed_lengths(void) {
    uint64_t state = 2;
    for (int64_t run = 1; run <= 300; run++)
        for (int times = 0; times < 6; times++) {
            struct job job = {.dtype = LIBSPLIT_DTYPE_UINT8};
            job.rows = random_in(&state, 1, times % 2 ? 40 : 200);
            job.pieces = (int)random_in(&state, 2, MAX_PIECES);
            for (int i = 0; i < job.pieces; i++)
                job.lengths[i] = random_in(&state, 0, i % 3 ? 20 : 300);
            job.lengths[random_in(&state, 0, job.pieces - 1)] = run;
            check_job(&job);
        }
}

/* Short runs at the end of rows: what lies behind the last one is not read with it. */
static void test_short_runs_behind_another(void) {
    for (int64_t first = 3; first <= 37; first += 2)
        for (int64_t run = 1; run <= 16; run *= 2)
            for (int pieces = 3; pieces <= 8; pieces++) {
                struct job job = {.dtype = LIBSPLIT_DTYPE_UINT8, .rows = 130, .pieces = pieces};
                job.lengths[0] = first;
                for (int i = 1; i < pieces; i++)
                    job.lengths[i] = run;
                check_job(&job);
            }
}

/* Runs of each length in copies so large that they go past the caches: a piece of a short run, a
 * piece of the same or another run, and one that makes up the size. */
static void test_runs_past_the_caches(void) {
    static const int64_t rows[] = {3001, 4099};
    for (int64_t run = 1; run <= 300; run++) {
        int64_t many = rows[run % 2];
        int64_t rest = PAST_THE_CACHES / many + 1 - run % 64;
        struct job job = {.dtype = LIBSPLIT_DTYPE_UINT8, .rows = many, .pieces = 3};
        job.lengths[0] = run;
        job.lengths[1] = run % 3 ? run : run % 17 + 1;
        job.lengths[2] = rest;
        job.with_tasks = run % 5 == 0;
        if (run <= 64 || run % 2)
            check_job_at(&job, AT_THE_START, AT_THE_START, 0);
        if (run <= 64 || run % 2 == 0)
            check_job_at(&job, AT_THE_END, AT_THE_END, 0);
    }
}

/* Short runs alone, which are dealt out or grouped, and few long rows. */
static void test_forms_past_the_caches(void) {
    static const struct {
        int64_t run;
        int pieces;
    } forms[] = {
        {1, 2},  {1, 3},       {1, 4},        {1, 6},      {1, 7},       {1, 11},      {1, 13},
        {1, 16}, {2, 2},       {2, 5},        {2, 10},     {3, 5},       {4, 3},       {4, 5},
        {4, 13}, {4, 17},      {5, 12},       {7, 3},      {8, 2},       {8, 3},       {8, 4},
        {8, 15}, {12, 3},      {16, 2},       {16, 4},     {16, 15},     {24, 2},      {31, 2},
        {48, 3}, {96, 2},      {128, 3},      {160001, 1}, {600001, 16}, {1600001, 2}, {64, 5},
        {32, 9}, {6000001, 3}, {17900001, 1},
    };
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        int64_t rows = PAST_THE_CACHES / (forms[f].run * forms[f].pieces) + 1;
        struct job job = equal_runs(forms[f].run, forms[f].pieces, rows);
        for (job.with_tasks = 0; job.with_tasks < 2; job.with_tasks++) {
            check_job_at(&job, AT_THE_START, AT_THE_START, 0);
            check_job_at(&job, AT_THE_END, AT_THE_END, 0);
        }
    }
}

static const libsplit_dtype widths[] = {LIBSPLIT_DTYPE_UINT8, LIBSPLIT_DTYPE_FLOAT16,
                                        LIBSPLIT_DTYPE_FLOAT, LIBSPLIT_DTYPE_DOUBLE,
                                        LIBSPLIT_DTYPE_STRING};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Splits columns into two or three pieces, and checks the result. */
static void check_columns(struct job job, int64_t columns) {
    job.pieces = columns > 2 ? 3 : 1;
    job.lengths[0] = job.pieces == 1 ? columns : columns / 3;
    job.lengths[1] = job.pieces == 1 ? 0 : 1;
    job.lengths[2] = columns - job.lengths[0] - 1;
    check_job(&job);
}

static void test_strided_inputs(void) {
    static const int64_t extents[] = {1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 64, 70};
    enum { EXTENTS = sizeof extents / sizeof *extents };
    for (int w = 0; w < WIDTHS; w++)
        for (size_t r = 0; r < EXTENTS; r++)
            for (size_t c = 0; c < EXTENTS; c++) {
                int64_t rows = extents[r], columns = extents[c];
                const int64_t strides[][2] = {
                    {1, rows},         /* transposed */
                    {1, rows + 3},     /* a part of that */
                    {-1, rows},        /* reversed and transposed */
                    {columns + 1, 1},  /* rows with gaps */
                    {2 * columns, 2},  /* every other element */
                    {-columns, -1},    /* reversed */
                    {columns * 3, -3}, /* steps backwards */
                    {0, 1},            /* one row, repeated */
                };
                for (size_t s = 0; s < sizeof strides / sizeof *strides; s++) {
                    struct job job = {.dtype = widths[w], .rows = rows};
                    job.row_stride = strides[s][0];
                    job.column_stride = strides[s][1];
                    check_columns(job, columns);
                }
            }
}

static void test_outputs_with_gaps(void) {
    for (int w = 0; w < WIDTHS; w++)
        for (int64_t columns = 1; columns <= 100; columns++)
            for (int64_t gap = 1; gap <= 2; gap++) {
                struct job job = {.dtype = widths[w], .rows = columns % 9 + 1, .gap = gap};
                check_columns(job, columns);
                job.row_stride = 1;
                job.column_stride = job.rows;
                check_columns(job, columns);
            }
}

static void test_sub_byte_elements(void) {
    static const libsplit_dtype types[] = {LIBSPLIT_DTYPE_INT4, LIBSPLIT_DTYPE_UINT2};
    for (int t = 0; t < 2; t++)
        for (int64_t columns = 1; columns <= 300; columns++) {
            struct job job = {.dtype = types[t], .rows = columns % 3 ? columns % 7 + 1 : 70};
            unsigned bits = libsplit_dtype_bits(types[t]);
            job.bit_offset = (unsigned)columns % 5 * bits;
            check_columns(job, columns);
            job.row_stride = columns + columns % 4;
            job.column_stride = 1;
            check_columns(job, columns);
            if (columns > 70)
                continue;
            job.row_stride = 1;
            job.column_stride = job.rows + 1;
            check_columns(job, columns);
        }
}

/* Large enough for tasks, which meet anywhere. */
static void test_tasks(void) {
    static const int64_t runs[] = {1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 48, 64, 96, 100, 200, 300};
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++)
        for (int pieces = 1; pieces <= 3; pieces++) {
            int64_t rows = 600000 / (runs[r] * pieces);
            struct job job = equal_runs(runs[r], pieces, rows);
            job.with_tasks = 1;
            check_job(&job);
        }
    for (int w = 0; w < WIDTHS; w++)
        for (int64_t columns = 70; columns < 75; columns++) {
            struct job job = {.dtype = widths[w], .rows = 9001, .with_tasks = 1};
            job.row_stride = 1;
            job.column_stride = job.rows;
            check_columns(job, columns);
            job.gap = 1;
            check_columns(job, columns);
        }
    for (int64_t columns = 3000; columns < 3010; columns++) {
        struct job job = {.dtype = LIBSPLIT_DTYPE_UINT4, .rows = 301, .with_tasks = 1};
        job.bit_offset = (unsigned)columns % 3 * 4;
        check_columns(job, columns);
    }
}

/* Copies blocks of rows, each in a page of its own, with an inaccessible page between them. */
static void check_blocks(unsigned char *first, int64_t pitch, int64_t rows, int pieces, int64_t run,
                         int64_t last) {
    int64_t row_bytes = run * (pieces - 1) + last, lengths[MAX_PIECES], shapes[MAX_PIECES][3];
    int64_t shape[] = {BLOCKS, rows, row_bytes}, strides[] = {pitch, row_bytes, 1}, count = pieces;
    libsplit_tensor outputs[MAX_PIECES], input = packed(LIBSPLIT_DTYPE_UINT8, first, 3, shape);
    input.strides = strides;
    for (int i = 0; i < pieces; i++) {
        lengths[i] = i < pieces - 1 ? run : last;
        memcpy(shapes[i], (int64_t[]){BLOCKS, rows, lengths[i]}, sizeof shapes[i]);
        size_t bytes = (size_t)(BLOCKS * rows * lengths[i]);
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, place(&target_regions[i], bytes, AT_THE_END, 0),
                            3, shapes[i]);
    }
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 2;
    params.split = &split;
    CHECK_CASE("blocks %d apart of %d rows, %d pieces of %d and %d", (int)pitch, (int)rows, pieces,
               (int)run, (int)last);
    CHECK_OK(libsplit_copy(&input, &params, outputs, (size_t)pieces, NULL, NULL));
    int64_t wrong = 0, column = 0;
    for (int i = 0; i < pieces; column += lengths[i], i++)
        for (int64_t row = 0; row < BLOCKS * rows; row++) {
            const unsigned char *data = outputs[i].data;
            wrong += memcmp(data + row * lengths[i],
                            first + row / rows * pitch + row % rows * row_bytes + column,
                            (size_t)lengths[i]) != 0;
        }
    CHECK_EQ_INT(wrong, 0);
}

/* Copies rows of elements that are steps apart, each row in a page of its own, as above: the lowest
 * element of the first row is at `lowest`. */
static void check_rows_of_steps(unsigned char *lowest, int64_t pitch, int64_t columns, int width,
                                int64_t step) {
    static const int64_t sizes[] = {1, 2, 4, 8};
    int64_t size = sizes[width], shape[] = {BLOCKS, columns}, strides[] = {pitch / size, step};
    unsigned char *first = step < 0 ? lowest - step * size * (columns - 1) : lowest;
    libsplit_tensor input = packed(widths[width], first, 2, shape);
    input.strides = strides;
    unsigned char *data =
        place(&target_regions[0], (size_t)(BLOCKS * columns * size), AT_THE_END, 0);
    libsplit_tensor output = packed(widths[width], data, 2, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.num_outputs = 1;
    CHECK_CASE("rows %d apart of %d elements of %d bytes, %d apart", (int)pitch, (int)columns,
               (int)size, (int)step);
    CHECK_OK(libsplit_copy(&input, &params, &output, 1, NULL, NULL));
    int64_t wrong = 0;
    for (int64_t row = 0; row < BLOCKS; row++)
        for (int64_t at = 0; at < columns; at++)
            wrong += memcmp(data + (row * columns + at) * size,
                            first + row * pitch + at * step * size, (size_t)size) != 0;
    CHECK_EQ_INT(wrong, 0);
}

/* Such rows anywhere in their pages, in both directions. */
static void check_steps_in_pages(unsigned char *all, int64_t page, int64_t pitch) {
    for (int width = 0; width < WIDTHS - 1; width++)
        for (int64_t step = -4; step <= 4; step += step == -1 ? 3 : 1)
            for (int64_t columns = 20; columns < 300; columns += columns < 40 ? 1 : 29) {
                int64_t size = (int64_t)1 << width;
                int64_t bytes = ((columns - 1) * (step < 0 ? -step : step) + 1) * size;
                for (int64_t after = 0; bytes + after <= page && after < 96; after += 24) {
                    check_rows_of_steps(all + page + after, pitch, columns, width, step);
                    check_rows_of_steps(all + pitch - bytes - after, pitch, columns, width, step);
                    check_rows_of_steps(all + BLOCKS * pitch - bytes - after, -pitch, columns,
                                        width, step);
                }
            }
}

/* Copies columns of 4-bit elements, some side by side in each block, half a byte further along in
 * each, which become rows. */
static void check_far_columns(unsigned char *first, int64_t pitch, int64_t columns,
                              int bit_offset) {
    int64_t shape[] = {columns, BLOCKS}, strides[] = {1, 2 * pitch + 1};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT4, first, 2, shape);
    input.strides = strides;
    input.bit_offset = (uint32_t)bit_offset;
    unsigned char *data = place(&target_regions[0], (size_t)(columns * BLOCKS / 2), AT_THE_END, 0);
    libsplit_tensor output = packed(LIBSPLIT_DTYPE_UINT4, data, 2, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.num_outputs = 1;
    CHECK_CASE("%d columns of 4 bits, rows %d apart", (int)columns, (int)pitch);
    CHECK_OK(libsplit_copy(&input, &params, &output, 1, NULL, NULL));
    int64_t wrong = 0;
    for (int64_t at = 0; at < columns * BLOCKS; at++) {
        int64_t row = at % BLOCKS, within = row + at / BLOCKS + bit_offset / 4;
        int expected = first[row * pitch + within / 2] >> within % 2 * 4 & 15;
        wrong += (data[at / 2] >> at % 2 * 4 & 15) != expected;
    }
    CHECK_EQ_INT(wrong, 0);
}

/* Such columns at both ends of their pages, in both directions. */
static void check_far_columns_in_pages(unsigned char *all, int64_t page, int64_t pitch) {
    for (int64_t columns = 1; columns < 150; columns++)
        for (int bit_offset = 0; bit_offset < 8; bit_offset += 4)
            for (int64_t after = 0; after < 40; after += after < 4 ? 1 : 9) {
                int64_t end = pitch - (columns + BLOCKS + 1) / 2 - after;
                int64_t last = (BLOCKS - 1) * pitch;
                check_far_columns(all + page + after, pitch, columns, bit_offset);
                check_far_columns(all + end, pitch, columns, bit_offset);
                check_far_columns(all + last + end, -pitch, columns, bit_offset);
            }
}

static void test_holes_between_blocks(void) {
    static const int64_t rows[] = {1, 2, 3, 5, 9, 20, 33, 64, 70, 150, 300};
    int64_t page = (int64_t)page_bytes(), pitch = 2 * page;
    unsigned char *all = reserve_addresses((size_t)(BLOCKS * pitch + page));
    for (int i = 0; i < BLOCKS; i++) {
        unsigned char *block = all + page + i * pitch;
        allow_access(block, (size_t)page);
        memcpy(block, source_region.begin + i * page, (size_t)page);
    }
    for (int64_t run = 1; run <= 1500; run += run < 16 ? 1 : run / 8)
        for (int pieces = 1; pieces <= MAX_PIECES; pieces += pieces < 6 ? 1 : 11)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                int64_t last = (run + pieces + (int64_t)r) % 3 == 0 ? 3 : run;
                int64_t bytes = rows[r] * (run * (pieces - 1) + last);
                if (bytes > page)
                    break;
                check_blocks(all + page, pitch, rows[r], pieces, run, last);
                check_blocks(all + pitch - bytes, pitch, rows[r], pieces, run, last);
                check_blocks(all + BLOCKS * pitch - bytes, -pitch, rows[r], pieces, run, last);
            }
    check_steps_in_pages(all, page, pitch);
    check_far_columns_in_pages(all, page, pitch);
    release_addresses(all, (size_t)(BLOCKS * pitch + page));
}

int main(void) {
    CHECK_START();
    map_regions();
    test_runs_of_equal_length();
    test_runs_of_mixed_lengths();
    test_short_runs_behind_another();
    test_runs_past_the_caches();
    test_forms_past_the_caches();
    test_strided_inputs();
    test_holes_between_blocks();
    test_outputs_with_gaps();
    test_sub_byte_elements();
    test_tasks();
    CHECK_DONE();
}
