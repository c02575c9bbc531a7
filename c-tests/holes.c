/*
 * holes.c - copies between tensors with holes: no page that holds no element is touched
 *
 * The rows of an input or of an output may lie far apart, as in a view of something larger, and
 * what lies between them need not be mapped. Here it is memory that nobody has touched yet, and
 * Linux tells which of its pages have been touched since; a read of one byte shows just as a write
 * does. Rows begin where their page begins or end where it ends, in every class of layout, with few
 * elements and with so many that they go past the caches. Every third copy runs as tasks, every
 * other one by a plan.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1

#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MAX_RANK = 3, MAX_PIECES = 16, POISON = 0xA5 };

/* Bytes of addresses; only pages that hold elements take memory. */
#define REGION ((size_t)(sizeof(void *) > 4 ? 2048 : 512) << 20)
/* Inputs and outputs of twice this size go past the caches of any CPU; if thresholds are low,
 * much less does. */
#define PAST_THE_CACHES ((int64_t)(check_has_low_thresholds() ? 256 << 10 : 17 << 20))

struct region {
    unsigned char *begin;
    unsigned char *holds; /* for each page, whether it holds an element */
    size_t used;          /* bytes, whole pages */
};

static struct region source, target;
static size_t page;
static unsigned char *resident;

enum side { AT_THE_BEGIN, AT_THE_END, SIDES };

/* A split of a tensor whose rows lie apart. Strides are in elements. */
struct job {
    const char *what;
    libsplit_dtype dtype;
    int32_t rank;
    int64_t shape[MAX_RANK], strides[MAX_RANK];
    int32_t axis;
    int pieces;
    int64_t lengths[MAX_PIECES];
    int has_out_strides, are_channels; /* outputs: rows apart; channels of one picture */
    int64_t out_strides[MAX_RANK];
    unsigned bit_offset;
};

static struct region map_region(void) {
    struct region region = {.holds = allocate(REGION / page)};
    region.begin = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region.begin == MAP_FAILED)
        abort();
    madvise(region.begin, REGION, MADV_NOHUGEPAGE); /* fails if there are none */
    memset(region.holds, 0, REGION / page);
    return region;
}

/* As if nobody had ever touched it. */
static void clear(struct region *region) {
    if (region->used > 0 && madvise(region->begin, region->used, MADV_DONTNEED) != 0)
        abort();
    memset(region->holds, 0, region->used / page);
    region->used = 0;
}

/* Returns how many pages were touched that hold no element. */
static int64_t count_touched(const struct region *region) {
    int64_t touched = 0;
    if (region->used == 0)
        return 0;
    if (mincore(region->begin, region->used, (void *)resident) != 0)
        abort();
    for (size_t i = 0; i < region->used / page; i++)
        touched += (resident[i] & 1) && !region->holds[i];
    return touched;
}

/* Finds the bits from a tensor's element [0, ..., 0] to the first bit of its lowest element, and
 * past the last bit of its highest one. */
static void find_reach(int32_t rank, const int64_t *shape, const int64_t *strides, int64_t bits,
                       int64_t *low, int64_t *high) {
    *low = 0;
    *high = bits;
    for (int32_t d = 0; d < rank; d++) {
        int64_t reach = (shape[d] - 1) * strides[d] * bits;
        *(reach < 0 ? low : high) += reach;
    }
}

/*
 * Returns where to put element [0, ..., 0] so that the lowest byte of the tensor is the first of a
 * page, or its highest byte the last of one, behind what the region has already and an inaccessible
 * page; NULL if there is no room.
 */
static unsigned char *place(struct region *region, int64_t low, int64_t high, enum side side) {
    int64_t low_bytes = low >= 0 ? low / 8 : -((-low + 7) / 8), high_bytes = (high + 7) / 8;
    size_t bytes = (size_t)(high_bytes - low_bytes), pages = (bytes + page - 1) / page;
    size_t begin = region->used + page, end = begin + pages * page;
    if (bytes > REGION || end + page > REGION)
        return NULL;
    region->used = end + page;
    return region->begin + (side == AT_THE_BEGIN ? begin : end - bytes) - low_bytes;
}

static void note(struct region *region, const unsigned char *begin, size_t bytes) {
    size_t first = (size_t)(begin - region->begin) / page;
    size_t last = (size_t)(begin - region->begin + (int64_t)bytes - 1) / page;
    for (size_t i = first; i <= last; i++)
        region->holds[i] = 1;
}

/* Walks over the rows of a tensor: 'index' is for all axes but the last; returns 0 after the last
 * row. */
static int next_row(int32_t rank, const int64_t *shape, int64_t *index) {
    for (int32_t d = rank - 2; d >= 0; d--) {
        if (++index[d] < shape[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

static int64_t offset_of(int32_t rank, const int64_t *index, const int64_t *strides) {
    int64_t offset = 0;
    for (int32_t d = 0; d < rank; d++)
        offset += index[d] * strides[d];
    return offset;
}

/* Writes noise, or poison, to every byte that holds an element, and to no other. */
static void fill(struct region *region, unsigned char *data, const struct job *job,
                 const int64_t *shape, const int64_t *strides, int64_t first_bit, int is_input) {
    static uint64_t state;
    int64_t bits = (int64_t)libsplit_dtype_bits(job->dtype), inner = job->rank - 1;
    int64_t index[MAX_RANK] = {0};
    if (shape[0] == 0 || shape[inner] == 0)
        return;
    do {
        int64_t at = first_bit + offset_of(job->rank, index, strides) * bits;
        int64_t run = strides[inner] == 1 ? shape[inner] : 1;
        for (int64_t i = 0; i < shape[inner]; i += run, at += strides[inner] * bits) {
            unsigned char *begin = data + at / 8;
            size_t bytes = (size_t)((at % 8 + run * bits + 7) / 8);
            note(region, begin, bytes);
            for (size_t b = 0; b < bytes; b += 8) {
                uint64_t noise =
                    is_input ? random_u64(&state) : POISON * UINT64_C(0x0101010101010101);
                memcpy(begin + b, &noise, bytes - b < 8 ? bytes - b : 8);
            }
        }
    } while (next_row(job->rank, shape, index));
}

static unsigned element_at(const unsigned char *data, int64_t bits, int64_t at) {
    return data[at / 8] >> at % 8 & ((1u << bits) - 1);
}

/* Like memcmp() != 0, for one element: calling a function for each would take most of the test. */
static int differ(const unsigned char *a, const unsigned char *b, int64_t size) {
    switch (size) {
    case 1:
        return *a != *b;
    case 2:
        return memcmp(a, b, 2) != 0;
    case 4:
        return memcmp(a, b, 4) != 0;
    case 8:
        return memcmp(a, b, 8) != 0;
    default:
        return memcmp(a, b, (size_t)size) != 0;
    }
}

/* Returns how many elements of a piece are wrong. Whole bytes that are right become poison
 * again. */
static int64_t count_wrong(const struct job *job, const unsigned char *from, int64_t column,
                           unsigned char *to, const int64_t *shape, const int64_t *strides) {
    int64_t bits = (int64_t)libsplit_dtype_bits(job->dtype), inner = job->rank - 1, wrong = 0;
    int64_t index[MAX_RANK] = {0}, size = bits / 8;
    if (shape[0] == 0 || shape[inner] == 0)
        return 0;
    do {
        int64_t in = offset_of(job->rank, index, job->strides) + column * job->strides[job->axis];
        int64_t out = offset_of(job->rank, index, strides);
        int64_t run =
            size > 0 && strides[inner] == 1 && job->strides[inner] == 1 ? shape[inner] : 1;
        for (int64_t i = 0; i < shape[inner]; i += run) {
            if (size > 0) {
                wrong += differ(to + out * size, from + in * size, run * size);
                if (run * size == 1)
                    to[out] = POISON;
                else
                    memset(to + out * size, POISON, (size_t)(run * size));
            } else {
                wrong += element_at(to, bits, out * bits) !=
                         element_at(from, bits, job->bit_offset + in * bits);
            }
            in += run * job->strides[inner];
            out += run * strides[inner];
        }
    } while (next_row(job->rank, shape, index));
    return wrong;
}

/* Returns how many bytes are not poison in the pages that hold elements of outputs. */
static int64_t count_stray(const struct region *region) {
    int64_t stray = 0;
    for (size_t i = 0; i < region->used / page; i++) {
        const unsigned char *at = region->begin + i * page;
        for (size_t b = 0; region->holds[i] && b < page; b++)
            stray += (at[b] != POISON) & (at[b] != 0);
    }
    return stray;
}

static libsplit_status copy(const libsplit_tensor *input, const libsplit_params *params,
                            const libsplit_tensor *outputs, size_t count) {
    static unsigned turn;
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(run_in_order, NULL);
    const libsplit_executor *tasks = ++turn % 3 == 0 ? &executor : NULL;
    if (turn % 2)
        return libsplit_copy(input, params, outputs, count, tasks, NULL);
    static uint64_t memory[4096];
    libsplit_plan *plan = (libsplit_plan *)memory;
    void *addresses[MAX_PIECES];
    for (size_t i = 0; i < count; i++)
        addresses[i] = outputs[i].data;
    libsplit_status status =
        libsplit_plan_init(plan, sizeof memory, input, params, outputs, count, NULL);
    return status != LIBSPLIT_STATUS_OK
               ? status
               : libsplit_plan_copy(plan, input->data, addresses, count, tasks, NULL);
}

static void check_at(struct job *job, enum side side) {
    int64_t bits = (int64_t)libsplit_dtype_bits(job->dtype), low, high, column = 0;
    CHECK_CASE("%s: %s [%d,%d,%d] strides [%d,%d,%d] axis %d, %d pieces of %d and %d, offset %u, "
               "%s at the %s",
               job->what, libsplit_dtype_name(job->dtype), (int)job->shape[0], (int)job->shape[1],
               job->rank > 2 ? (int)job->shape[2] : 1, (int)job->strides[0], (int)job->strides[1],
               job->rank > 2 ? (int)job->strides[2] : 1, (int)job->axis, job->pieces,
               (int)job->lengths[0], (int)job->lengths[job->pieces - 1], job->bit_offset,
               job->has_out_strides ? "outputs too" : "input",
               side == AT_THE_END ? "end" : "begin");
    find_reach(job->rank, job->shape, job->strides, bits, &low, &high);
    unsigned char *from = place(&source, low + job->bit_offset, high + job->bit_offset, side);
    libsplit_tensor outputs[MAX_PIECES], input = packed(job->dtype, from, job->rank, job->shape);
    int64_t shapes[MAX_PIECES][MAX_RANK], strides[MAX_PIECES][MAX_RANK];
    int has_room = from != NULL;
    for (int i = 0; i < job->pieces && has_room; i++) {
        memcpy(shapes[i], job->shape, sizeof shapes[i]);
        shapes[i][job->axis] = job->lengths[i];
        int64_t reach = 1;
        for (int32_t d = job->rank - 1; d >= 0; reach *= shapes[i][d--])
            strides[i][d] = job->has_out_strides ? job->out_strides[d] : reach;
        find_reach(job->rank, shapes[i], strides[i], bits, &low, &high);
        unsigned char *to =
            job->are_channels && i > 0
                ? (unsigned char *)outputs[0].data + i * bits / 8
                : place(&target, low, high + (job->are_channels ? (job->pieces - 1) * bits : 0),
                        side);
        has_room = to != NULL;
        outputs[i] = packed(job->dtype, to, job->rank, shapes[i]);
        if (job->has_out_strides)
            outputs[i].strides = strides[i];
    }
    if (has_room) {
        fill(&source, from, job, job->shape, job->strides, job->bit_offset, 1);
        for (int i = 0; i < job->pieces; i++)
            fill(&target, outputs[i].data, job, shapes[i], strides[i], 0, 0);
        input.strides = job->strides;
        input.bit_offset = job->bit_offset % 8;
        libsplit_tensor split =
            packed(LIBSPLIT_DTYPE_INT64, job->lengths, 1, (int64_t[]){job->pieces});
        libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
        params.axis = job->axis;
        params.split = &split;
        CHECK_EQ_INT(count_touched(&source) + count_touched(&target), 0);
        CHECK_OK(copy(&input, &params, outputs, (size_t)job->pieces));
        CHECK_EQ_INT(count_touched(&source), 0);
        CHECK_EQ_INT(count_touched(&target), 0);
        int64_t wrong = 0;
        for (int i = 0; i < job->pieces; column += job->lengths[i], i++)
            wrong += count_wrong(job, from, column, outputs[i].data, shapes[i], strides[i]);
        CHECK_EQ_INT(wrong, 0);
        if (bits >= 8)
            CHECK_EQ_INT(count_stray(&target), 0);
    } else if (sizeof(void *) > 4) {
        abort();
    }
    clear(&source);
    clear(&target);
}

static void check(struct job job) {
    for (int side = 0; side < SIDES; side++)
        check_at(&job, side);
}

static const libsplit_dtype widths[] = {LIBSPLIT_DTYPE_UINT8, LIBSPLIT_DTYPE_FLOAT16,
                                        LIBSPLIT_DTYPE_FLOAT, LIBSPLIT_DTYPE_DOUBLE,
                                        LIBSPLIT_DTYPE_COMPLEX128};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Cuts the axis into so many pieces, of about equal length or not. */
static void cut(struct job *job, int32_t axis, int pieces, int are_equal) {
    int64_t left = job->shape[axis];
    job->axis = axis;
    job->pieces = left < pieces ? (int)left : pieces;
    for (int i = 0; i < job->pieces; i++) {
        int64_t rest = job->pieces - i, length = left / rest;
        if (!are_equal && rest > 1)
            length = i % 2 ? 1 : (length + 1) / 2;
        job->lengths[i] = rest == 1 ? left : length;
        left -= job->lengths[i];
    }
}

/* How large the tensors of a round are, and what varies besides their class. */
struct size {
    int64_t rows, bytes; /* rows that lie apart; at most so many bytes are spanned by each */
    int width;           /* of widths */
    int pieces, are_equal;
    int is_large; /* so that a few of each class are enough */
};

static int64_t pitch_of(const struct size *size, int64_t span_bytes) {
    int64_t bytes = (int64_t)libsplit_dtype_bits(widths[size->width]) / 8, p = (int64_t)page;
    return ((span_bytes + p - 1) / p + 1) * p / bytes;
}

/*
 * Checks a job with packed outputs, and with outputs whose rows on this axis are as far apart as
 * those of the input. If each element of a row would be on a page of its own, there are only a few
 * rows.
 */
static void check_both(struct job job, int32_t rows_axis, const struct size *size) {
    check(job);
    int64_t bytes = (int64_t)libsplit_dtype_bits(job.dtype) / 8, reach = 1, longest = 0;
    if (rows_axis == job.rank - 1 && job.shape[rows_axis] > 64)
        return;
    for (int i = 0; i < job.pieces; i++)
        longest = longest < job.lengths[i] ? job.lengths[i] : longest;
    job.has_out_strides = 1;
    for (int32_t d = job.rank - 1; d >= 0; d--) {
        if (d == rows_axis)
            reach = pitch_of(size, reach * bytes);
        job.out_strides[d] = reach;
        reach *= d == job.axis ? longest : job.shape[d];
    }
    if (reach * bytes * job.pieces < (int64_t)REGION / 2)
        check(job);
}

static void check_rows(const struct size *size) {
    int64_t bytes = (int64_t)libsplit_dtype_bits(widths[size->width]) / 8, n = size->bytes / bytes;
    int64_t pitch = pitch_of(size, size->bytes), half = n / 2, quarter = n / 4;
    for (int turn = 0; turn < 4; turn += size->is_large ? 3 : 1) {
        struct job job = {.what = turn % 2 ? "rows, from the last one on" : "rows", .rank = 2};
        job.dtype = widths[size->width];
        memcpy(job.shape, (int64_t[]){size->rows, n, 0}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){turn % 2 ? -pitch : pitch, turn < 2 ? 1 : -1, 0},
               sizeof job.strides);
        cut(&job, 1, size->pieces, size->are_equal);
        check_both(job, 0, size);
        cut(&job, 0, 2, size->are_equal);
        check_both(job, 0, size);
        if (quarter == 0)
            continue;
        job.what = "heads of rows";
        job.rank = 3;
        memcpy(job.shape, (int64_t[]){4, size->rows, quarter}, sizeof job.shape);
        memcpy(job.strides,
               (int64_t[]){turn < 2 ? quarter : -quarter, turn % 2 ? -pitch : pitch, 1},
               sizeof job.strides);
        cut(&job, 0, 2, 1);
        check_both(job, 1, size);
        cut(&job, 2, size->pieces, size->are_equal);
        check_both(job, 1, size);
        job.what = "rows of a row, by turns";
        memcpy(job.shape, (int64_t[]){size->rows, half, 2}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){pitch, 1, half}, sizeof job.strides);
        cut(&job, 1, size->pieces, size->are_equal);
        check_both(job, 0, size);
    }
}

static void check_short_runs(const struct size *size) {
    int64_t bytes = (int64_t)libsplit_dtype_bits(widths[size->width]) / 8, n = size->bytes / bytes;
    int64_t pitch = pitch_of(size, size->bytes);
    for (int64_t run = 1; run <= 5; run += size->is_large ? 4 : 2) {
        int64_t row = run * size->pieces - (run > 1 && !size->are_equal);
        struct job job = {.what = run == 1 ? "columns" : "short runs", .rank = 3};
        job.dtype = widths[size->width];
        if (n < row || row < size->pieces)
            continue;
        memcpy(job.shape, (int64_t[]){size->rows, n / row, row}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){pitch, row, 1}, sizeof job.strides);
        cut(&job, 2, size->pieces, size->are_equal || run == 1);
        check_both(job, 0, size);
        if (run > 1)
            continue;
        job.what = "columns, backwards";
        job.strides[2] = -1;
        check(job);
    }
}

static void check_put_together(const struct size *size) {
    int64_t bytes = (int64_t)libsplit_dtype_bits(widths[size->width]) / 8, n = size->bytes / bytes;
    int64_t pitch = pitch_of(size, size->bytes), planes = size->pieces;
    int64_t rows = size->is_large ? size->rows / planes + 1 : size->rows;
    struct job job = {.what = "planes into a row", .rank = 3, .dtype = widths[size->width]};
    memcpy(job.shape, (int64_t[]){rows, n, planes}, sizeof job.shape);
    memcpy(job.strides, (int64_t[]){pitch, 1, rows * pitch}, sizeof job.strides);
    if (rows * pitch * planes * bytes > (int64_t)REGION * 3 / 4)
        return;
    cut(&job, 0, 1, 1);
    check_both(job, 0, size);
    cut(&job, 1, 2, size->are_equal);
    check_both(job, 0, size);
    job.what = "pieces that are channels";
    memcpy(job.shape, (int64_t[]){planes, rows, n}, sizeof job.shape);
    memcpy(job.strides, (int64_t[]){rows * pitch, pitch, 1}, sizeof job.strides);
    cut(&job, 0, (int)planes, 1);
    job.has_out_strides = job.are_channels = 1;
    int64_t out_pitch = pitch_of(size, n * planes * bytes);
    memcpy(job.out_strides, (int64_t[]){rows * out_pitch, out_pitch, planes},
           sizeof job.out_strides);
    if (rows * out_pitch * bytes < (int64_t)REGION / 2)
        check(job);
}

static void check_picked(const struct size *size) {
    int64_t bytes = (int64_t)libsplit_dtype_bits(widths[size->width]) / 8;
    for (int64_t step = -5; step <= 5; step += step == -2 ? 4 : 1) {
        int64_t apart = step < 0 ? -step : step, n = size->bytes / bytes / apart;
        struct job job = {.what = "every n-th element", .rank = 2, .dtype = widths[size->width]};
        if (n == 0 || (size->is_large && step != 2 && step != -3))
            continue;
        memcpy(job.shape, (int64_t[]){size->rows, n, 0}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){pitch_of(size, size->bytes), step, 0}, sizeof job.strides);
        cut(&job, 1, size->pieces, size->are_equal);
        check_both(job, 0, size);
    }
}

static void check_transposed(const struct size *size) {
    int64_t bytes = (int64_t)libsplit_dtype_bits(widths[size->width]) / 8, n = size->bytes / bytes;
    int64_t pitch = pitch_of(size, size->bytes);
    for (int turn = 0; turn < (size->is_large ? 1 : 4); turn++) {
        struct job job = {.what = "transposed", .rank = 2, .dtype = widths[size->width]};
        memcpy(job.shape, (int64_t[]){n, size->rows, 0}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){turn % 2 ? -1 : 1, turn < 2 ? pitch : -pitch, 0},
               sizeof job.strides);
        cut(&job, 0, size->pieces, size->are_equal);
        check_both(job, 1, size);
        cut(&job, 1, size->pieces, size->are_equal);
        check_both(job, 1, size);
        if (n < 6)
            continue;
        job.what = "pixels transposed";
        job.rank = 3;
        memcpy(job.shape, (int64_t[]){n / 3, size->rows, 3}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){3, turn < 2 ? pitch : -pitch, 1}, sizeof job.strides);
        cut(&job, turn % 2 ? 2 : 0, 3, size->are_equal);
        check(job);
        job.what = "blocks transposed";
        memcpy(job.shape, (int64_t[]){size->rows, 2, n / 2}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){pitch, 1, 2}, sizeof job.strides);
        cut(&job, turn % 2 ? 1 : 2, 2, size->are_equal);
        check_both(job, 0, size);
    }
}

static void check_repeated(const struct size *size) {
    int64_t bytes = (int64_t)libsplit_dtype_bits(widths[size->width]) / 8, n = size->bytes / bytes;
    int64_t pitch = pitch_of(size, size->bytes);
    struct job job = {.what = "rows repeated", .rank = 3, .dtype = widths[size->width]};
    memcpy(job.shape, (int64_t[]){size->rows, 3, n}, sizeof job.shape);
    memcpy(job.strides, (int64_t[]){pitch, 0, 1}, sizeof job.strides);
    cut(&job, 2, size->pieces, size->are_equal);
    check_both(job, 0, size);
    cut(&job, 1, 2, 0);
    check_both(job, 0, size);
    job.what = "elements repeated";
    memcpy(job.shape, (int64_t[]){size->rows, n / 3 + 1, 3}, sizeof job.shape);
    memcpy(job.strides, (int64_t[]){pitch, 1, 0}, sizeof job.strides);
    cut(&job, 1, size->pieces, size->are_equal);
    check_both(job, 0, size);
    job.what = "one element a row";
    job.rank = 2;
    memcpy(job.shape, (int64_t[]){size->rows, n, 0}, sizeof job.shape);
    memcpy(job.strides, (int64_t[]){pitch, 0, 0}, sizeof job.strides);
    cut(&job, 1, size->pieces, size->are_equal);
    check_both(job, 0, size);
}

/* Outputs of sub-byte elements are packed. */
static void check_sub_byte(const struct size *size) {
    static const libsplit_dtype types[] = {LIBSPLIT_DTYPE_INT4, LIBSPLIT_DTYPE_UINT2};
    for (int t = 0; t < 2; t++) {
        int64_t each = 8 / (int64_t)libsplit_dtype_bits(types[t]), n = size->bytes * each;
        int64_t pitch =
            ((size->bytes + (int64_t)page - 1) / (int64_t)page + 1) * (int64_t)page * each;
        for (unsigned offset = 0; offset < (unsigned)each;
             offset += size->is_large ? (unsigned)each - 1 : 1) {
            struct job job = {.what = "rows", .rank = 2, .dtype = types[t]};
            int64_t shorter = n - (offset > 0 ? each : 0), bits = 8 / each;
            if (shorter < 4)
                continue;
            job.bit_offset = offset * (unsigned)bits;
            memcpy(job.shape, (int64_t[]){size->rows, shorter, 0}, sizeof job.shape);
            memcpy(job.strides, (int64_t[]){pitch, 1, 0}, sizeof job.strides);
            cut(&job, 1, size->pieces, size->are_equal);
            check(job);
            if (size->is_large) /* the others are not sent past the caches, or take as long to check
                                 */
                continue;
            job.what = "every other element";
            job.strides[1] = 2;
            job.shape[1] = shorter / 2;
            cut(&job, 1, size->pieces, size->are_equal);
            check(job);
            job.what = "columns";
            job.rank = 3;
            memcpy(job.shape, (int64_t[]){size->rows, shorter / size->pieces, size->pieces},
                   sizeof job.shape);
            memcpy(job.strides, (int64_t[]){pitch, size->pieces, 1}, sizeof job.strides);
            cut(&job, 2, size->pieces, 1);
            if (job.shape[1] > 0)
                check(job);
            job.what = "transposed";
            job.rank = 2;
            memcpy(job.shape, (int64_t[]){shorter, size->rows, 0}, sizeof job.shape);
            memcpy(job.strides, (int64_t[]){1, pitch, 0}, sizeof job.strides);
            cut(&job, 0, size->pieces, size->are_equal);
            check(job);
            cut(&job, 1, size->pieces, size->are_equal);
            check(job);
        }
    }
}

static void check_all(const struct size *size) {
    check_rows(size);
    check_short_runs(size);
    check_put_together(size);
    check_picked(size);
    check_transposed(size);
    check_repeated(size);
    if (size->width == 0)
        check_sub_byte(size);
}

/* Few elements, where each kind of loop has its ends. */
static void test_small(void) {
    static const int64_t rows[] = {2, 3, 5, 9, 17, 33, 64};
    uint64_t state = 3;
    for (int64_t bytes = 1; bytes <= 700; bytes += bytes < 70 ? 1 : bytes / 7) {
        int width = (int)(bytes % WIDTHS);
        struct size size = {.rows = rows[(size_t)bytes % (sizeof rows / sizeof *rows)],
                            .bytes = bytes};
        size.width = bytes < (int64_t)libsplit_dtype_bits(widths[width]) / 8 ? 0 : width;
        size.pieces = (int)random_in(&state, 2, bytes % 4 ? 5 : MAX_PIECES);
        size.are_equal = bytes % 2;
        check_all(&size);
    }
}

/* Rows of most of a page, so many that every method of copying is worth it. */
static void test_full_pages(void) {
    static const int64_t bytes[] = {1000, 2500, 4096, 6000};
    for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
        for (int width = (int)b % 2; width < WIDTHS; width += 2) {
            struct size size = {.rows = 40 + 7 * width, .bytes = bytes[b], .width = width};
            size.pieces = 2 + width;
            size.are_equal = (width + (int)b) % 2;
            check_all(&size);
        }
}

/* As many as go past the caches. */
static void test_past_the_caches(void) {
    static const int64_t bytes[] = {1500, 4090};
    for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++) {
        struct size size = {.rows = PAST_THE_CACHES / bytes[b] + 1, .bytes = bytes[b]};
        size.width = (int)b * 2;
        size.pieces = 3 - (int)b;
        size.are_equal = (int)b;
        size.is_large = 1;
        check_all(&size);
    }
    static const int64_t runs[] = {80, 130, 255, 700};
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        /* The first parts of rows, which lie on pages of their own, two for each piece. */
        int64_t tokens = PAST_THE_CACHES / (4 * runs[r]) + 1;
        struct job job = {.what = "heads of rows", .rank = 3, .dtype = LIBSPLIT_DTYPE_UINT8};
        memcpy(job.shape, (int64_t[]){4, tokens, runs[r]}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){runs[r], 2 * (int64_t)page, 1}, sizeof job.strides);
        cut(&job, 0, 2, 1);
        check(job);
    }
}

/* Planes that lie apart, of every length, so that some turn or move of every loop ends where a page
 * does. */
static void test_every_length(void) {
    int64_t apart = 16 * (int64_t)page;
    for (int64_t n = 1024; n < 1024 + 130; n++) {
        struct job job = {.what = "planes into pixels", .rank = 2, .dtype = LIBSPLIT_DTYPE_UINT8};
        memcpy(job.shape, (int64_t[]){n, 3, 0}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){1, apart, 0}, sizeof job.strides);
        cut(&job, 0, 1, 1);
        check(job);
        job.what = "a piece of each plane";
        job.rank = 3;
        int64_t run = n - 1023;
        memcpy(job.shape, (int64_t[]){40, 3, run}, sizeof job.shape);
        memcpy(job.strides, (int64_t[]){n % 2 ? run + 1 : -run - 1, apart, 1}, sizeof job.strides);
        cut(&job, 1, 3, 1);
        check(job);
    }
}

/* A read of one byte in a hole is noticed, and nothing is if there is none. */
static void test_the_measure(void) {
    CHECK_CASE("a page that nobody should touch");
    source.used = 4 * page;
    source.holds[1] = 1;
    source.begin[page + 7] = 1;
    CHECK_EQ_INT(count_touched(&source), 0);
    CHECK_EQ_INT(((volatile unsigned char *)source.begin)[3 * page - 1], 0);
    CHECK_EQ_INT(count_touched(&source), 1);
    clear(&source);
    source.used = 4 * page;
    CHECK_EQ_INT(count_touched(&source), 0);
    clear(&source);
}

int main(void) {
    CHECK_START();
    page = (size_t)sysconf(_SC_PAGESIZE);
    resident = allocate(REGION / page);
    source = map_region();
    target = map_region();
    test_the_measure();
    test_small();
    test_full_pages();
    test_past_the_caches();
    test_every_length();
    CHECK_DONE();
}
