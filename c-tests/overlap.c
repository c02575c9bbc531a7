/*
 * overlap.c - whether outputs overlap: many of them, in any order, and also in each other's gaps
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

/* Many outputs of one row of 8 bytes each, in any order in one buffer. */
struct rows {
    size_t count;
    unsigned char *source, *target, *before;
    libsplit_tensor *outputs;
    size_t *place; /* where in the buffer each output lies */
};

enum { ROW = 8 };
static int64_t row_shape[2] = {1, ROW};

static struct rows make_rows(size_t count) {
    struct rows rows = {.count = count};
    rows.source = allocate(count * ROW);
    rows.target = allocate(count * ROW + 1);
    rows.before = allocate(count * ROW + 1);
    rows.outputs = allocate(count * sizeof *rows.outputs);
    rows.place = allocate(count * sizeof *rows.place);
    for (size_t i = 0; i < count * ROW; i++)
        rows.source[i] = (unsigned char)(i * 31 + i / 256);
    return rows;
}

static void free_rows(struct rows *rows) {
    free(rows->source);
    free(rows->target);
    free(rows->before);
    free(rows->outputs);
    free(rows->place);
}

static void shuffle_rows(struct rows *rows, uint64_t seed) {
    for (size_t i = 0; i < rows->count; i++)
        rows->place[i] = i;
    for (size_t i = rows->count - 1; i > 0; i--) {
        size_t other = (size_t)random_in(&seed, 0, (int64_t)i), swapped = rows->place[i];
        rows->place[i] = rows->place[other];
        rows->place[other] = swapped;
    }
}

static void reset_rows(struct rows *rows) {
    memset(rows->target, 0xA5, rows->count * ROW + 1);
    memset(rows->before, 0xA5, rows->count * ROW + 1);
    for (size_t i = 0; i < rows->count; i++)
        rows->outputs[i] =
            packed(LIBSPLIT_DTYPE_UINT8, rows->target + rows->place[i] * ROW, 2, row_shape);
}

static libsplit_status copy_rows(const struct rows *rows, libsplit_error *error) {
    int64_t shape[2] = {(int64_t)rows->count, ROW};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, rows->source, 2, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, 11);
    return libsplit_copy(&input, &params, rows->outputs, rows->count, NULL, error);
}

static void check_rows_arrive(struct rows *rows) {
    reset_rows(rows);
    CHECK_OK(copy_rows(rows, NULL));
    int wrong = 0;
    for (size_t i = 0; i < rows->count; i++)
        wrong += memcmp(rows->outputs[i].data, rows->source + i * ROW, ROW) != 0;
    CHECK_EQ_INT(wrong, 0);
}

/* Moves an output up by one byte, into the one behind it. */
static void check_overlap_is_found(struct rows *rows, size_t moved) {
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    reset_rows(rows);
    rows->outputs[moved].data = (char *)rows->outputs[moved].data + 1;
    size_t behind = 0;
    while (rows->place[behind] != rows->place[moved] + 1)
        behind++;
    CHECK_STATUS(copy_rows(rows, &error), LIBSPLIT_STATUS_ERROR_OVERLAP);
    CHECK(error.output_index == (int32_t)moved || error.output_index == (int32_t)behind);
    CHECK(memcmp(rows->target, rows->before, rows->count * ROW + 1) == 0);
}

static void test_one_overlap_among_many_outputs(void) {
    static const size_t counts[] = {2, 3, 15, 16, 17, 18, 511, 512, 513, 1023, 1024, 1025, 5000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct rows rows = make_rows(counts[c]);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            uint64_t state = seed;
            CHECK_CASE("%zu shuffled outputs, seed %" PRIu64, rows.count, seed);
            shuffle_rows(&rows, seed);
            check_rows_arrive(&rows);
            size_t moved;
            do
                moved = (size_t)random_in(&state, 0, (int64_t)rows.count - 1);
            while (rows.place[moved] == rows.count - 1);
            CHECK_CASE("%zu shuffled outputs, seed %" PRIu64 ", %zu moved", rows.count, seed,
                       moved);
            check_overlap_is_found(&rows, moved);
        }
        free_rows(&rows);
    }
}

static void test_many_outputs_in_address_order(void) {
    enum { OUTPUTS = 100000 };
    struct rows rows = make_rows(OUTPUTS);
    CHECK_CASE("%d outputs in order", OUTPUTS);
    for (size_t i = 0; i < OUTPUTS; i++)
        rows.place[i] = i;
    check_rows_arrive(&rows);
    CHECK_CASE("%d outputs in reverse order", OUTPUTS);
    for (size_t i = 0; i < OUTPUTS; i++)
        rows.place[i] = OUTPUTS - 1 - i;
    check_rows_arrive(&rows);
    free_rows(&rows);
}

/* Columns of one matrix as outputs: their spans meet, but their bytes do not. */
struct columns {
    size_t count, bytes;
    unsigned char *source, *target, *before;
    libsplit_tensor *outputs;
    int64_t shape[2], out_shape[2], strides[2];
};

enum { ROWS = 5, WIDTH = 3 };

/* 'pitch' is the distance of the matrix's rows; its columns come in the order of 'place'. */
static struct columns *make_columns(size_t count, int64_t pitch, size_t (*place)(size_t, size_t)) {
    struct columns *columns = allocate(sizeof *columns);
    columns->count = count;
    columns->bytes = ROWS * (count * WIDTH + 2);
    columns->source = allocate(columns->bytes);
    columns->target = allocate(columns->bytes);
    columns->before = allocate(columns->bytes);
    columns->outputs = allocate(count * sizeof *columns->outputs);
    columns->shape[0] = columns->out_shape[0] = ROWS;
    columns->shape[1] = (int64_t)count * WIDTH;
    columns->out_shape[1] = WIDTH;
    columns->strides[0] = pitch;
    columns->strides[1] = 1;
    for (size_t i = 0; i < columns->bytes; i++)
        columns->source[i] = (unsigned char)(i * 7);
    memset(columns->target, 0xA5, columns->bytes);
    memset(columns->before, 0xA5, columns->bytes);
    for (size_t i = 0; i < count; i++) {
        columns->outputs[i] = packed(
            LIBSPLIT_DTYPE_UINT8, columns->target + place(i, count) * WIDTH, 2, columns->out_shape);
        columns->outputs[i].strides = columns->strides;
    }
    return columns;
}

static void free_columns(struct columns *columns) {
    free(columns->source);
    free(columns->target);
    free(columns->before);
    free(columns->outputs);
    free(columns);
}

static libsplit_status copy_columns(struct columns *columns, libsplit_error *error) {
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, columns->source, 2, columns->shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.axis = 1;
    params.num_outputs = (int64_t)columns->count;
    return libsplit_copy(&input, &params, columns->outputs, columns->count, NULL, error);
}

static void check_columns_arrive(struct columns *columns) {
    CHECK_OK(copy_columns(columns, NULL));
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < columns->count; i++) {
            size_t column = (size_t)((unsigned char *)columns->outputs[i].data - columns->target);
            memcpy(columns->before + row * (size_t)columns->strides[0] + column,
                   columns->source + (row * columns->count + i) * WIDTH, WIDTH);
        }
    CHECK(memcmp(columns->target, columns->before, columns->bytes) == 0);
}

static void check_columns_overlap(struct columns *columns) {
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    (void)copy_columns(columns, &error);
    CHECK(error.status == LIBSPLIT_STATUS_ERROR_OVERLAP ||
          error.status == LIBSPLIT_STATUS_ERROR_NOT_SHOWN_APART);
    CHECK(error.output_index >= 0 && error.output_index < (int32_t)columns->count);
    CHECK(memcmp(columns->target, columns->before, columns->bytes) == 0);
}

static size_t in_order(size_t i, size_t count) {
    (void)count;
    return i;
}
static size_t from_the_last(size_t i, size_t count) { return count - 1 - i; }
/* 7919 is prime and divides none of the counts. */
static size_t out_of_order(size_t i, size_t count) { return (size_t)((uint64_t)i * 7919 % count); }

static void test_columns_of_one_matrix(void) {
    static const size_t counts[] = {2, 3, 16, 17, 600};
    static const struct {
        const char *name;
        size_t (*place)(size_t, size_t);
    } orders[] = {
        {"in order", in_order}, {"from the last", from_the_last}, {"shuffled", out_of_order}};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
            for (int64_t gap = -1; gap <= 2; gap++) {
                int64_t pitch = WIDTH * (int64_t)counts[c] + gap;
                struct columns *columns = make_columns(counts[c], pitch, orders[o].place);
                CHECK_CASE("%zu columns %s, %d bytes apart", counts[c], orders[o].name, (int)gap);
                if (gap < 0)
                    check_columns_overlap(columns);
                else
                    check_columns_arrive(columns);
                free_columns(columns);
            }
}

/* However many outputs there are, they are not all compared with each other: that would take
 * minutes. */
enum { MANY = 30000 };

static void test_many_shuffled_outputs(void) {
    struct rows rows = make_rows(MANY);
    shuffle_rows(&rows, 1);
    CHECK_CASE("%d shuffled outputs", MANY);
    check_rows_arrive(&rows);
    free_rows(&rows);
}

static void test_many_shuffled_columns(void) {
    struct columns *columns = make_columns(MANY, WIDTH * MANY, out_of_order);
    CHECK_CASE("%d shuffled columns", MANY);
    check_columns_arrive(columns);

    CHECK_CASE("%d shuffled columns, two of them one", MANY);
    columns->outputs[MANY / 2].data = columns->outputs[MANY / 3].data;
    memcpy(columns->before, columns->target, columns->bytes);
    check_columns_overlap(columns);
    free_columns(columns);
}

/* As if each output were allocated together with all that belongs to it. */
static void test_many_outputs_beside_their_arrays(void) {
    struct own {
        int64_t shape[2], strides[2];
        unsigned char bytes[16];
    } *own = allocate(MANY * sizeof *own);
    struct columns *columns = make_columns(MANY, WIDTH * MANY, in_order);
    for (size_t i = 0; i < MANY; i++) {
        own[i] = (struct own){.shape = {ROWS, WIDTH}, .strides = {WIDTH, 1}};
        columns->outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, own[i].bytes, 2, own[i].shape);
        columns->outputs[i].strides = own[i].strides;
    }
    /* One output is not packed, so now the strides of all are looked at. */
    unsigned char apart[ROWS * (WIDTH + 1)];
    own[0].strides[0] = WIDTH + 1;
    columns->outputs[0].data = apart;
    CHECK_CASE("%d outputs beside their arrays", MANY);
    CHECK_OK(copy_columns(columns, NULL));
    CHECK(memcmp(own[MANY - 1].bytes, columns->source + WIDTH * (MANY - 1), WIDTH) == 0);
    free_columns(columns);
    free(own);
}

/* A call whose memory all comes from one heap, in any order, each chunk beside the next. */
enum { MOST = 40, DATA = 0, SHAPE = 1, STRIDES = 2, OF_EACH = 3 };
enum { SOURCE = OF_EACH * MOST, INPUT_SHAPE, LENGTHS, COUNT, CHUNKS };
struct heap {
    libsplit_params params; /* first, so that it lies below the chunks */
    int64_t words[9 * MOST + 16], before[9 * MOST + 16];
    int64_t *chunks[CHUNKS]; /* data, shape and strides of each output, then the others */
    unsigned char *source;
    libsplit_tensor input, split, outputs[MOST], described[MOST];
};

static size_t words_of(size_t chunk, size_t outputs) {
    return chunk == SOURCE ? 2 * outputs : chunk == LENGTHS ? outputs : chunk == COUNT ? 1 : 2;
}

/* The chunks of so many outputs, and the others. */
static size_t any_chunk(size_t outputs, uint64_t *seed) {
    size_t own = OF_EACH * outputs;
    size_t at = (size_t)random_in(seed, 0, (int64_t)(own + CHUNKS - SOURCE - 1));
    return at < own ? at : at - own + SOURCE;
}

static void fill_heap(struct heap *heap, size_t outputs, uint64_t *seed) {
    memset(heap, 0, sizeof *heap);
    for (int64_t *next = heap->words; next < heap->words + 9 * outputs + 3;) {
        size_t chunk = any_chunk(outputs, seed);
        if (!heap->chunks[chunk]) {
            heap->chunks[chunk] = next;
            next += words_of(chunk, outputs);
        }
    }
    heap->source = (unsigned char *)heap->chunks[SOURCE];
    int64_t *shape = heap->chunks[INPUT_SHAPE], *lengths = heap->chunks[LENGTHS];
    int64_t *count = heap->chunks[COUNT];
    shape[0] = 2, shape[1] = 8 * (int64_t)outputs;
    *count = (int64_t)outputs;
    heap->input = packed(LIBSPLIT_DTYPE_UINT8, heap->source, 2, shape);
    heap->split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, count);
    heap->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    heap->params.axis = 1;
    heap->params.split = &heap->split;
    for (size_t i = 0; i < outputs; i++) {
        int64_t **own = &heap->chunks[OF_EACH * i];
        lengths[i] = 8;
        own[SHAPE][0] = 2, own[SHAPE][1] = 8;
        own[STRIDES][0] = 8, own[STRIDES][1] = 1;
        libsplit_tensor output = packed(LIBSPLIT_DTYPE_UINT8, own[DATA], 2, own[SHAPE]);
        output.strides = own[STRIDES];
        output.capacity = 2;
        heap->outputs[i] = heap->described[i] = output;
    }
    for (size_t i = 0; i < 16 * outputs; i++)
        heap->source[i] = (unsigned char)(i * 7 + i / 256);
    memcpy(heap->before, heap->words, sizeof heap->words);
}

static void check_heap_arrives(const struct heap *heap, size_t outputs) {
    int wrong = 0;
    for (size_t i = 0; i < outputs; i++)
        for (size_t row = 0; row < 2; row++)
            wrong += memcmp((char *)heap->outputs[i].data + 8 * row,
                            heap->source + 8 * (row * outputs + i), 8) != 0;
    CHECK_EQ_INT(wrong, 0);
}

/* Moves the data of an output, or its shape, so that it ends or begins within a chunk. */
static void check_heap_overlap(struct heap *heap, size_t outputs, uint64_t *seed) {
    size_t index = (size_t)random_in(seed, 0, (int64_t)outputs - 1);
    size_t chunk = any_chunk(outputs, seed);
    int64_t *other = heap->chunks[chunk];
    libsplit_tensor *output = &heap->outputs[index], *described = &heap->described[index];
    libsplit_tensor before = *output, before_described = *described;
    if (chunk != OF_EACH * index + DATA) {
        int64_t last = 8 * (int64_t)words_of(chunk, outputs) - 1;
        output->data = (char *)other + random_in(seed, -15, last);
        CHECK_STATUS(libsplit_copy(&heap->input, &heap->params, heap->outputs, outputs, NULL, NULL),
                     LIBSPLIT_STATUS_ERROR_OVERLAP);
        *output = before;
    }
    int is_data = chunk == SOURCE || (chunk < SOURCE && chunk % OF_EACH == DATA);
    if (!is_data && chunk != OF_EACH * index + SHAPE) {
        described->shape = other - random_in(seed, 0, 1);
        CHECK_STATUS(libsplit_infer(&heap->input, &heap->params, heap->described, outputs, NULL),
                     LIBSPLIT_STATUS_ERROR_OVERLAP);
        CHECK_STATUS(libsplit_view(&heap->input, &heap->params, heap->described, outputs, NULL),
                     LIBSPLIT_STATUS_ERROR_OVERLAP);
        *described = before_described;
    }
    CHECK(memcmp(heap->words, heap->before, sizeof heap->words) == 0);
}

static void test_all_memory_in_one_heap(void) {
    static const size_t counts[] = {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, MOST};
    struct heap *heap = allocate(sizeof *heap);
    uint64_t seed = 1;
    for (size_t c = 0; c < 20 * sizeof counts / sizeof *counts; c++) {
        size_t outputs = counts[c / 20];
        CHECK_CASE("%zu outputs in one heap, %zu", outputs, c % 20);
        fill_heap(heap, outputs, &seed);
        for (int i = 0; i < 20; i++)
            check_heap_overlap(heap, outputs, &seed);
        CHECK_OK(libsplit_infer(&heap->input, &heap->params, heap->described, outputs, NULL));
        CHECK(memcmp(heap->words, heap->before, sizeof heap->words) == 0);
        CHECK_OK(libsplit_copy(&heap->input, &heap->params, heap->outputs, outputs, NULL, NULL));
        check_heap_arrives(heap, outputs);
    }
    free(heap);
}

/* All but one share their strides, which lie before the data; those of the last one lie behind
 * it. */
static void test_many_outputs_with_shared_strides(void) {
    struct around {
        int64_t shared[2];
        unsigned char bytes[ROWS * WIDTH * MANY];
        int64_t last[2];
    } *around = allocate(sizeof *around);
    struct columns *columns = make_columns(MANY, WIDTH * MANY, in_order);
    memcpy(around->shared, columns->strides, sizeof around->shared);
    memcpy(around->last, columns->strides, sizeof around->last);
    for (size_t i = 0; i < MANY; i++) {
        columns->outputs[i].data = around->bytes + i * WIDTH;
        columns->outputs[i].strides = i < MANY - 1 ? around->shared : around->last;
    }
    CHECK_CASE("%d outputs with shared strides", MANY);
    CHECK_OK(copy_columns(columns, NULL));
    CHECK(memcmp(around->bytes, columns->source, sizeof around->bytes) == 0);
    free_columns(columns);
    free(around);
}

/* With a million outputs, looking at all of them, or even a few, for each would take minutes. */
static void test_a_million_shuffled_outputs(void) {
    struct rows rows = make_rows(1000000);
    shuffle_rows(&rows, 7);
    CHECK_CASE("1,000,000 shuffled outputs");
    check_rows_arrive(&rows);
    free_rows(&rows);
}

/* A canvas of 1,000 rows of 1,000 tiles, of widths that differ from row to row. */
static void test_a_million_shuffled_tiles(void) {
    enum { ACROSS = 1000, TILES = ACROSS * ACROSS, HIGH = 2, WIDE = 6, PITCH = ACROSS * WIDE };
    int64_t strides[2] = {PITCH, 1}, (*shapes)[2] = allocate(TILES * sizeof *shapes);
    int64_t *lengths = allocate(TILES * sizeof *lengths), count = TILES, width = 0;
    unsigned char *source = allocate((size_t)HIGH * WIDE * TILES);
    unsigned char *canvas = allocate((size_t)HIGH * WIDE * TILES);
    libsplit_tensor *outputs = allocate(TILES * sizeof *outputs);
    for (size_t i = 0; i < (size_t)HIGH * WIDE * TILES; i++)
        source[i] = (unsigned char)(i * 7 + i / 256);
    uint64_t seed = 5;
    for (size_t row = 0; row < ACROSS; row++) {
        int64_t end = 0;
        for (size_t column = 0; column < ACROSS; column++) {
            size_t i = out_of_order(row * ACROSS + column, TILES);
            lengths[i] = random_in(&seed, 1, WIDE);
            shapes[i][0] = HIGH, shapes[i][1] = lengths[i];
            outputs[i] =
                packed(LIBSPLIT_DTYPE_UINT8, canvas + row * HIGH * PITCH + end, 2, shapes[i]);
            outputs[i].strides = strides;
            width += lengths[i], end += lengths[i];
        }
    }
    int64_t shape[2] = {HIGH, width};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 2, shape);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.axis = 1;
    params.split = &split;
    CHECK_CASE("1,000,000 shuffled tiles");
    CHECK_OK(libsplit_copy(&input, &params, outputs, TILES, NULL, NULL));
    int wrong = 0;
    int64_t at = 0;
    for (size_t i = 0; i < TILES; at += lengths[i++])
        for (int64_t row = 0; row < HIGH; row++)
            wrong += memcmp((char *)outputs[i].data + row * PITCH, source + row * width + at,
                            (size_t)lengths[i]) != 0;
    CHECK_EQ_INT(wrong, 0);
    free(shapes);
    free(lengths);
    free(source);
    free(canvas);
    free(outputs);
}

/* Some 60 outputs reach over each address, all apart, but no boxes of one tensor. There is no
 * memory at their addresses. */
static void test_comparing_all_pairs_would_take_too_long(void) {
    enum { OUTPUTS = 400000, STEP = 16, OPEN = 60 };
    int64_t (*strides)[2] = allocate(OUTPUTS * sizeof *strides);
    int64_t shape[2] = {OUTPUTS, 2}, out_shape[2] = {1, 2};
    libsplit_tensor *outputs = allocate(OUTPUTS * sizeof *outputs);
    unsigned char *source = allocate(2 * OUTPUTS);
    for (size_t i = 0; i < OUTPUTS; i++) {
        strides[i][0] = 1, strides[i][1] = (int64_t)(STEP * (OPEN + i % 2));
        uintptr_t address = ((uintptr_t)1 << (sizeof(void *) * 8 - 2)) + i * STEP + i % STEP;
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, (void *)address, 2, out_shape);
        outputs[i].strides = strides[i];
    }
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 2, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.num_outputs = OUTPUTS;
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    CHECK_CASE("%d outputs in each other's gaps", OUTPUTS);
    CHECK_STATUS(libsplit_copy(&input, &params, outputs, OUTPUTS, NULL, &error),
                 LIBSPLIT_STATUS_ERROR_NOT_SHOWN_APART);
    free(strides);
    free(outputs);
    free(source);
}

/* The outputs are matrices of two columns each: every other byte of a matrix is an output's. */
static void check_interleaved_pairs(size_t matrices, size_t (*place)(size_t, size_t)) {
    size_t count = 2 * matrices;
    struct columns *columns = make_columns(count, 2, place);
    /* The places were those of columns as wide as a row is here. */
    columns->shape[1] = (int64_t)count;
    columns->out_shape[1] = 1;
    for (size_t i = 0; i < count; i++) {
        size_t at = place(i, count);
        columns->outputs[i].data = columns->target + at / 2 * (2 * ROWS + 1) + at % 2;
    }
    CHECK_OK(copy_columns(columns, NULL));
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t row = 0; row < ROWS; row++)
            wrong += ((unsigned char *)columns->outputs[i].data)[2 * row] !=
                     columns->source[row * count + i];
    CHECK_EQ_INT(wrong, 0);

    unsigned char *moved = columns->outputs[count / 3].data;
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    columns->outputs[count / 3].data = moved - 1 + 2 * ((moved - columns->target) % 11 == 0);
    CHECK_STATUS(copy_columns(columns, &error), LIBSPLIT_STATUS_ERROR_OVERLAP);
    CHECK(strstr(error.message, " overlaps ") != NULL);
    free_columns(columns);
}

static void test_interleaved_outputs_of_many_matrices(void) {
    CHECK_CASE("100,000 interleaved outputs in order");
    check_interleaved_pairs(50000, in_order);
    CHECK_CASE("100,000 interleaved outputs out of order");
    check_interleaved_pairs(50000, out_of_order);
}

/* Two columns with elements, and very many without. Looking at each column for each matrix would
 * take minutes. */
static void test_many_empty_pieces_of_many_matrices(void) {
    enum { MATRICES = 100000, WIDE = 8, EMPTY = 600000 };
    int64_t shape[3] = {MATRICES, 2, WIDE}, strides[3] = {2 * WIDE, 1, 2}, count = EMPTY + 2;
    int64_t full[3] = {MATRICES, 1, WIDE}, empty[3] = {MATRICES, 0, WIDE};
    unsigned char *source = allocate(2 * MATRICES * WIDE);
    unsigned char *target = allocate(2 * MATRICES * WIDE);
    int64_t *lengths = calloc(EMPTY + 2, sizeof *lengths);
    libsplit_tensor *outputs = allocate((EMPTY + 2) * sizeof *outputs);
    if (lengths == NULL)
        abort();
    for (size_t i = 0; i < 2 * MATRICES * WIDE; i++)
        source[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t i = 0; i < EMPTY + 2; i++)
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, NULL, 3, empty);
    const size_t wanted[2] = {EMPTY / 3, EMPTY + 1};
    for (size_t i = 0; i < 2; i++) {
        lengths[wanted[i]] = 1;
        outputs[wanted[i]] = packed(LIBSPLIT_DTYPE_UINT8, target + i * MATRICES * WIDE, 3, full);
    }
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 3, shape);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    input.strides = strides;
    params.split = &split;
    params.axis = 1;
    CHECK_CASE("%d empty pieces of %d matrices", EMPTY, MATRICES);
    CHECK_OK(libsplit_copy(&input, &params, outputs, EMPTY + 2, NULL, NULL));
    int wrong = 0;
    for (size_t i = 0; i < 2 * MATRICES * WIDE; i++)
        wrong += target[i % 2 * MATRICES * WIDE + i / 2] != source[i];
    CHECK_EQ_INT(wrong, 0);

    size_t size = libsplit_plan_size(3, EMPTY + 2);
    libsplit_plan *plan = allocate(size);
    void **addresses = calloc(EMPTY + 2, sizeof *addresses);
    if (addresses == NULL)
        abort();
    memset(target, 0, 2 * MATRICES * WIDE);
    for (size_t i = 0; i < 2; i++)
        addresses[wanted[i]] = target + i * MATRICES * WIDE;
    CHECK_OK(libsplit_plan_init(plan, size, &input, &params, NULL, EMPTY + 2, NULL));
    CHECK_OK(libsplit_plan_copy(plan, source, addresses, EMPTY + 2, NULL, NULL));
    for (size_t i = 0; i < 2 * MATRICES * WIDE; i++)
        wrong += target[i % 2 * MATRICES * WIDE + i / 2] != source[i];
    CHECK_EQ_INT(wrong, 0);
    free(addresses);
    free(plan);
    free(source);
    free(target);
    free(lengths);
    free(outputs);
}

/* Tiles of a picture of 3 planes, side by side, with padding between rows and planes; every third
 * tile is wider. */
static void check_tiles(int64_t rows, int64_t columns, int64_t tiles, int64_t padding,
                        int64_t wider) {
    int64_t width = columns * tiles + (tiles + 2) / 3 * wider;
    int64_t pitch = width + 5, plane = rows * pitch + padding;
    int64_t shape[3] = {3, rows, width}, strides[3] = {plane, pitch, 1};
    int64_t *lengths = allocate((size_t)tiles * sizeof *lengths);
    int64_t (*tile)[3] = allocate((size_t)tiles * sizeof *tile);
    size_t bytes = (size_t)(3 * plane) * sizeof(float);
    float *source = allocate(bytes), *canvas = allocate(bytes), *expected = allocate(bytes);
    libsplit_tensor *outputs = allocate((size_t)tiles * sizeof *outputs);
    for (int64_t i = 0; i < 3 * plane; i++) {
        source[i] = (float)i;
        canvas[i] = expected[i] = -1;
    }
    for (int64_t row = 0; row < 3 * rows; row++)
        memcpy(expected + row / rows * plane + row % rows * pitch, source + row * width,
               (size_t)width * sizeof(float));
    for (int64_t i = 0, column = 0; i < tiles; column += lengths[i++]) {
        lengths[i] = columns + (i % 3 == 0 ? wider : 0);
        memcpy(tile[i], (int64_t[3]){3, rows, lengths[i]}, sizeof *tile);
        outputs[i] = packed(LIBSPLIT_DTYPE_FLOAT, canvas + column, 3, tile[i]);
        outputs[i].strides = strides;
    }
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_FLOAT, source, 3, shape);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &tiles);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.split = &split;
    params.axis = 2;
    CHECK_CASE("%d tiles of [3, %d, %d], padding %d, some wider by %d", (int)tiles, (int)rows,
               (int)columns, (int)padding, (int)wider);
    CHECK_OK(libsplit_copy(&input, &params, outputs, (size_t)tiles, NULL, NULL));
    CHECK(memcmp(canvas, expected, bytes) == 0);

    libsplit_error error = LIBSPLIT_ERROR_INIT;
    outputs[tiles - 1].data = (float *)outputs[tiles - 1].data - 1;
    CHECK_STATUS(libsplit_copy(&input, &params, outputs, (size_t)tiles, NULL, &error),
                 LIBSPLIT_STATUS_ERROR_OVERLAP);
    CHECK(strstr(error.message, " overlaps ") != NULL);
    free(source);
    free(canvas);
    free(expected);
    free(outputs);
    free(lengths);
    free(tile);
}

static void test_tiles_of_a_picture(void) {
    for (int64_t padding = 0; padding <= 24; padding += 8) {
        for (int64_t wider = 0; wider <= 2; wider += 2) {
            check_tiles(480, 320, 2, padding, wider);
            check_tiles(48, 33, 4, padding, wider);
            check_tiles(5, 7, 40, padding, wider);
            check_tiles(5, 7, 41, padding + 1, wider);
            check_tiles(5, 7, 600, padding, wider);
        }
    }
}

/* A picture of 3 planes covered with tiles in rows and columns, in no order, with padding. */
static void test_a_mosaic_of_tiles(void) {
    enum { ACROSS = 15, DOWN = 12, TILES = ACROSS * DOWN, HIGH = 4, WIDE = 6 };
    enum { PITCH = ACROSS * WIDE + 3, PLANE = DOWN * HIGH * PITCH + 50 };
    int64_t shape[3] = {3, HIGH, WIDE * TILES}, out_shape[3] = {3, HIGH, WIDE};
    int64_t strides[3] = {PLANE, PITCH, 1};
    float *source = allocate(3 * HIGH * WIDE * TILES * sizeof *source);
    float *canvas = allocate(3 * PLANE * sizeof *canvas);
    libsplit_tensor *outputs = allocate(TILES * sizeof *outputs);
    for (size_t i = 0; i < 3 * HIGH * WIDE * TILES; i++)
        source[i] = (float)i;
    for (size_t i = 0; i < TILES; i++) {
        size_t place = out_of_order(i, TILES);
        float *corner = canvas + place / ACROSS * HIGH * PITCH + place % ACROSS * WIDE;
        outputs[i] = packed(LIBSPLIT_DTYPE_FLOAT, corner, 3, out_shape);
        outputs[i].strides = strides;
    }
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_FLOAT, source, 3, shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.axis = 2;
    params.num_outputs = TILES;
    CHECK_CASE("%d tiles in %d rows", TILES, DOWN);
    CHECK_OK(libsplit_copy(&input, &params, outputs, TILES, NULL, NULL));
    int wrong = 0;
    for (size_t i = 0; i < TILES; i++)
        for (size_t row = 0; row < 3 * HIGH; row++)
            wrong += memcmp((float *)outputs[i].data + row / HIGH * PLANE + row % HIGH * PITCH,
                            source + (row * TILES + i) * WIDE, WIDE * sizeof *source) != 0;
    CHECK_EQ_INT(wrong, 0);

    libsplit_error error = LIBSPLIT_ERROR_INIT;
    outputs[TILES / 2].data = outputs[TILES / 3].data;
    CHECK_STATUS(libsplit_copy(&input, &params, outputs, TILES, NULL, &error),
                 LIBSPLIT_STATUS_ERROR_OVERLAP);
    CHECK(strstr(error.message, " overlaps ") != NULL);
    free(source);
    free(canvas);
    free(outputs);
}

/* Many columns of one matrix, and one of another in their gaps: the message does not say that they
 * meet, and they can be copied with one call for each output. */
static void test_outputs_that_cannot_be_shown_apart(void) {
    enum { COLUMNS = 70, HIGH = 50, PITCH = 200, OTHER = 3, ELEMENTS = HIGH * COLUMNS };
    int64_t shape[2] = {HIGH, COLUMNS}, out_shape[2] = {HIGH, 1};
    int64_t strides[2] = {PITCH, 1}, others[2] = {2 * PITCH, 1};
    unsigned char *source = allocate(ELEMENTS), *target = allocate(2 * HIGH * PITCH);
    for (int i = 0; i < ELEMENTS; i++)
        source[i] = (unsigned char)(i * 7 + i / 256);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 2, shape), outputs[COLUMNS];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.axis = 1;
    params.num_outputs = COLUMNS;
    for (int i = 0; i < COLUMNS; i++) {
        unsigned char *column = target + (i == OTHER ? COLUMNS : i);
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, column, 2, out_shape);
        outputs[i].strides = i == OTHER ? others : strides;
    }
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    CHECK_CASE("outputs that cannot be shown apart");
    CHECK_STATUS(libsplit_copy(&input, &params, outputs, COLUMNS, NULL, &error),
                 LIBSPLIT_STATUS_ERROR_NOT_SHOWN_APART);
    for (int i = 0; i < COLUMNS; i++) {
        libsplit_tensor one[COLUMNS] = {{0}};
        one[i] = outputs[i];
        CHECK_OK(libsplit_copy(&input, &params, one, COLUMNS, NULL, NULL));
    }
    int wrong = 0;
    for (int i = 0; i < COLUMNS; i++)
        for (int row = 0; row < HIGH; row++)
            wrong += ((unsigned char *)outputs[i].data)[row * outputs[i].strides[0]] !=
                     source[row * COLUMNS + i];
    CHECK_EQ_INT(wrong, 0);
    free(source);
    free(target);
}

/* Columns 0 and 1 of one buffer are split into its columns 2 and 3. */
static void test_outputs_in_the_gaps_of_the_input(void) {
    char matrix[] = "ab..cd..ef..", overlapped[] = "ab..cd..ef..";
    int64_t shape[2] = {3, 2}, strides[2] = {4, 1}, out_shape[2] = {3, 1};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, matrix, 2, shape), outputs[2];
    input.strides = strides;
    for (int i = 0; i < 2; i++) {
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT8, matrix + 2 + i, 2, out_shape);
        outputs[i].strides = strides;
    }
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 13);
    params.axis = 1;
    CHECK_CASE("outputs in the input's gaps");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK_EQ_STR(matrix, "ababcdcdefef");

    CHECK_CASE("output in a column of the input");
    input.data = overlapped;
    outputs[0].data = overlapped + 1;
    outputs[1].data = overlapped + 2;
    CHECK_STATUS(libsplit_copy(&input, &params, outputs, 2, NULL, NULL),
                 LIBSPLIT_STATUS_ERROR_OVERLAP);
    CHECK_EQ_STR(overlapped, "ab..cd..ef..");
}

/* Each row of the input's 4-bit elements ends inside of a byte, and lies in bytes of its own. No
 * byte of an output in the gap between them is the input's, and the message must not say so. */
static void test_outputs_in_the_gaps_of_a_sub_byte_input(void) {
    unsigned char memory[8] = {0x21, 0xA5, 0xA5, 0xA5, 0x43, 0xA5, 0xA5, 0xA5};
    int64_t shape[2] = {2, 2}, strides[2] = {8, 1}, out_shape[2] = {1, 2};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT4, memory, 2, shape), outputs[2];
    input.strides = strides;
    for (int i = 0; i < 2; i++)
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT4, memory + 2 + 3 * i, 2, out_shape);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.num_outputs = 2;
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    CHECK_CASE("an output in the gaps of a 4-bit input");
    CHECK_STATUS(libsplit_copy(&input, &params, outputs, 2, NULL, &error),
                 LIBSPLIT_STATUS_ERROR_NOT_SHOWN_APART);
    CHECK_EQ_INT(memory[2], 0xA5);

    CHECK_CASE("outputs behind a 4-bit input");
    outputs[0].data = memory + 6;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK_EQ_INT(memory[6], 0x21);
    CHECK_EQ_INT(memory[5], 0x43);
}

/* Outputs that are not written overlap nothing. */
static void test_empty_and_unwanted_outputs_overlap_nothing(void) {
    char source[] = "abcdef", target[] = "......";
    int64_t extent = 6, lengths[4] = {0, 3, 0, 3}, count = 4;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 1, &extent);
    libsplit_tensor outputs[4] = {packed(LIBSPLIT_DTYPE_UINT8, source + 1, 1, &lengths[0]),
                                  packed(LIBSPLIT_DTYPE_UINT8, target, 1, &lengths[1]),
                                  packed(LIBSPLIT_DTYPE_UINT8, target + 1, 1, &lengths[2]),
                                  {0}};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.split = &split;
    CHECK_CASE("empty outputs");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 4, NULL, NULL));
    CHECK_EQ_STR(target, "abc...");
}

static void test_all_outputs_at_one_place(void) {
    struct rows rows = make_rows(1000);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    CHECK_CASE("1000 outputs at one place");
    memset(rows.place, 0, rows.count * sizeof *rows.place);
    reset_rows(&rows);
    CHECK_STATUS(copy_rows(&rows, &error), LIBSPLIT_STATUS_ERROR_OVERLAP);
    CHECK(error.output_index >= 0 && error.output_index < 1000);
    CHECK(memcmp(rows.target, rows.before, rows.count * ROW + 1) == 0);
    free_rows(&rows);
}

int main(void) {
    CHECK_START();
    test_one_overlap_among_many_outputs();
    test_many_outputs_in_address_order();
    test_columns_of_one_matrix();
    test_many_shuffled_outputs();
    test_many_shuffled_columns();
    test_many_outputs_beside_their_arrays();
    test_all_memory_in_one_heap();
    test_many_outputs_with_shared_strides();
    test_a_million_shuffled_outputs();
    test_a_million_shuffled_tiles();
    test_comparing_all_pairs_would_take_too_long();
    test_interleaved_outputs_of_many_matrices();
    test_many_empty_pieces_of_many_matrices();
    test_tiles_of_a_picture();
    test_a_mosaic_of_tiles();
    test_outputs_that_cannot_be_shown_apart();
    test_outputs_in_the_gaps_of_the_input();
    test_outputs_in_the_gaps_of_a_sub_byte_input();
    test_empty_and_unwanted_outputs_overlap_nothing();
    test_all_outputs_at_one_place();
    CHECK_DONE();
}
