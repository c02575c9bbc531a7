/*
 * strides.c - libsplit_copy() from and to layouts of all kinds, compared with a loop that visits
 * one element after the other
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#define MAX_TEST_RANK 5
#define MAX_PIECES 20
#define ROUNDS 8000

/* A type of each element size. */
static const libsplit_dtype dtypes[] = {LIBSPLIT_DTYPE_BOOL, LIBSPLIT_DTYPE_BFLOAT16,
                                        LIBSPLIT_DTYPE_FLOAT, LIBSPLIT_DTYPE_INT64,
                                        LIBSPLIT_DTYPE_COMPLEX128};

/* An order of axes and a stride for each, and how far they reach from element [0, ..., 0]. */
struct layout {
    int64_t strides[MAX_TEST_RANK];
    int64_t low, high; /* in elements */
};

static void find_reach(struct layout *layout, int32_t rank, const int64_t *shape) {
    layout->low = layout->high = 0;
    for (int32_t d = 0; d < rank; d++) {
        int64_t last = shape[d] > 0 ? (shape[d] - 1) * layout->strides[d] : 0;
        *(last < 0 ? &layout->low : &layout->high) += last;
    }
}

static void shuffle(uint64_t *state, int32_t *order, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        order[i] = i;
    for (int32_t i = count - 1; i > 0; i--) {
        int32_t other = (int32_t)random_in(state, 0, i), swapped = order[i];
        order[i] = order[other];
        order[other] = swapped;
    }
}

/* Axes in any order and direction, with gaps; no two elements have the same address. */
static struct layout nested_layout(uint64_t *state, int32_t rank, const int64_t *shape) {
    static const int64_t garbage[] = {INT64_MIN, INT64_MAX, 0, 1};
    struct layout layout;
    int32_t order[MAX_TEST_RANK];
    int64_t beyond = 1;
    shuffle(state, order, rank);
    for (int32_t i = 0; i < rank; i++) {
        int32_t d = order[i];
        int64_t gap = random_in(state, 0, 3) == 0 ? random_in(state, 1, 3) : 0;
        int64_t stride = beyond + gap;
        beyond = stride * (shape[d] > 0 ? shape[d] : 1);
        layout.strides[d] = random_in(state, 0, 3) == 0 ? -stride : stride;
        /* Strides of axes with one element do not matter. */
        if (shape[d] == 1)
            layout.strides[d] = garbage[random_in(state, 0, 3)];
    }
    find_reach(&layout, rank, shape);
    return layout;
}

/* Small strides of any kind, including 0: elements may be shared. */
static struct layout any_layout(uint64_t *state, int32_t rank, const int64_t *shape) {
    struct layout layout;
    for (int32_t d = 0; d < rank; d++)
        layout.strides[d] = random_in(state, -7, 7);
    find_reach(&layout, rank, shape);
    return layout;
}

static struct layout packed_layout(int32_t rank, const int64_t *shape) {
    struct layout layout;
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        layout.strides[d] = stride;
        stride *= shape[d];
    }
    find_reach(&layout, rank, shape);
    return layout;
}

/* Memory with a tensor in it: its bytes now, and those expected. */
struct memory {
    unsigned char *bytes, *expected;
    size_t size, origin; /* where element [0, ..., 0] lies */
};

static struct memory memory_for(uint64_t *state, const struct layout *layout, size_t element) {
    struct memory memory;
    size_t before = (size_t)-layout->low * element + (size_t)random_in(state, 16, 40);
    memory.origin = before;
    memory.size = before + (size_t)(layout->high + 1) * element + 32;
    memory.bytes = allocate(memory.size);
    memory.expected = allocate(memory.size);
    for (size_t i = 0; i < memory.size; i++)
        memory.bytes[i] = memory.expected[i] = (unsigned char)random_u64(state);
    return memory;
}

static void free_memory(struct memory *memory) {
    free(memory->bytes);
    free(memory->expected);
}

/* Steps to the next index, the last axis first; returns 0 after the last one. */
static int next_index(int64_t *index, int32_t rank, const int64_t *shape) {
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (++index[d] < shape[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

/* The oracle: writes a piece into the expected bytes, element by element. */
static void expect_piece(const struct memory *from, const struct layout *from_layout,
                         const struct memory *to, const struct layout *to_layout, int32_t rank,
                         const int64_t *shape, int32_t axis, int64_t offset, size_t element) {
    int64_t index[MAX_TEST_RANK] = {0};
    for (int32_t d = 0; d < rank; d++)
        if (shape[d] == 0)
            return;
    do {
        int64_t source = 0, target = 0;
        for (int32_t d = 0; d < rank; d++) {
            int64_t at = index[d] + (d == axis ? offset : 0);
            source += at == 0 ? 0 : at * from_layout->strides[d];
            target += index[d] == 0 ? 0 : index[d] * to_layout->strides[d];
        }
        memcpy(to->expected + ((int64_t)to->origin + target * (int64_t)element),
               from->bytes + ((int64_t)from->origin + source * (int64_t)element), element);
    } while (next_index(index, rank, shape));
}

struct round {
    libsplit_dtype dtype;
    size_t element;
    int32_t rank, axis;
    int64_t shape[MAX_TEST_RANK];
    int64_t lengths[MAX_PIECES];
    int64_t pieces;
};

/* As many short pieces as there may be, such as the colours of a picture. */
static void equal_pieces(uint64_t *state, struct round *round) {
    int64_t length = random_in(state, 1, 3);
    round->pieces = random_in(state, 2, MAX_PIECES);
    round->shape[round->axis] = round->pieces * length;
    for (int64_t i = 0; i < round->pieces; i++)
        round->lengths[i] = length;
}

static struct round random_round(uint64_t *state) {
    struct round round;
    round.dtype = dtypes[random_in(state, 0, 4)];
    round.element = libsplit_dtype_bits(round.dtype) / 8;
    /* Mostly small; sometimes wide enough for blocks of elements, or for long runs of them. */
    static const struct {
        int32_t rank;
        int64_t extent;
    } sizes[] = {{5, 4}, {4, 6}, {3, 9}, {2, 12}, {1, 40}, {2, 150}, {3, 36}};
    int64_t size = random_in(state, 0, 99) < 90 ? random_in(state, 0, 4) : random_in(state, 5, 6);
    round.rank = (int32_t)random_in(state, 1, sizes[size].rank);
    round.axis = (int32_t)random_in(state, 0, round.rank - 1);
    int64_t most = round.rank == 1 && sizes[size].extent > 12 ? 20000 : sizes[size].extent;
    for (int32_t d = 0; d < round.rank; d++)
        round.shape[d] = random_in(state, 0, 15) == 0 ? 0 : random_in(state, 1, most);
    if (random_in(state, 0, 3) == 0) {
        equal_pieces(state, &round);
        return round;
    }
    round.pieces = random_in(state, 1, 4);
    int64_t left = round.shape[round.axis];
    for (int64_t i = 0; i < round.pieces; i++) {
        round.lengths[i] = i == round.pieces - 1 ? left : random_in(state, 0, left);
        left -= round.lengths[i];
    }
    return round;
}

static libsplit_params params_for(const struct round *round, libsplit_tensor *split,
                                  int64_t *lengths, int64_t *count) {
    memcpy(lengths, round->lengths, sizeof round->lengths);
    *count = round->pieces;
    *split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.axis = round->axis;
    params.split = split;
    return params;
}

static struct layout input_layout(uint64_t *state, const struct round *round) {
    switch (random_in(state, 0, 2)) {
    case 0:
        return packed_layout(round->rank, round->shape);
    case 1:
        return nested_layout(state, round->rank, round->shape);
    default:
        return any_layout(state, round->rank, round->shape);
    }
}

/* Puts every piece into memory of its own. */
static void copy_to_own_memory(uint64_t *state, const struct round *round) {
    int64_t lengths[MAX_PIECES], count, shapes[MAX_PIECES][MAX_TEST_RANK];
    libsplit_tensor split, outputs[MAX_PIECES];
    struct layout from_layout = input_layout(state, round), to_layouts[MAX_PIECES];
    struct memory from = memory_for(state, &from_layout, round->element), to[MAX_PIECES];
    int64_t shape[MAX_TEST_RANK], offset = 0;
    int are_packed = random_in(state, 0, 2) == 0;
    memcpy(shape, round->shape, sizeof shape);
    libsplit_tensor input = packed(round->dtype, from.bytes + from.origin, round->rank, shape);
    input.strides = from_layout.strides;
    for (int64_t i = 0; i < round->pieces; i++) {
        memcpy(shapes[i], shape, sizeof shape);
        shapes[i][round->axis] = round->lengths[i];
        to_layouts[i] = are_packed ? packed_layout(round->rank, shapes[i])
                                   : nested_layout(state, round->rank, shapes[i]);
        to[i] = memory_for(state, &to_layouts[i], round->element);
        expect_piece(&from, &from_layout, &to[i], &to_layouts[i], round->rank, shapes[i],
                     round->axis, offset, round->element);
        offset += round->lengths[i];
        outputs[i] = packed(round->dtype, to[i].bytes + to[i].origin, round->rank, shapes[i]);
        outputs[i].strides = are_packed ? NULL : to_layouts[i].strides;
    }
    libsplit_params params = params_for(round, &split, lengths, &count);
    CHECK_OK(libsplit_copy(&input, &params, outputs, (size_t)round->pieces, NULL, NULL));
    CHECK(memcmp(from.bytes, from.expected, from.size) == 0);
    for (int64_t i = 0; i < round->pieces; i++) {
        CHECK(memcmp(to[i].bytes, to[i].expected, to[i].size) == 0);
        free_memory(&to[i]);
    }
    free_memory(&from);
}

/*
 * Puts every piece into one tensor of the input's shape: where the piece lies in the input, so its
 * columns interleave with those of the others. Rows may have a gap behind them.
 */
static void copy_to_one_tensor(uint64_t *state, const struct round *round) {
    int64_t lengths[MAX_PIECES], count, shapes[MAX_PIECES][MAX_TEST_RANK];
    libsplit_tensor split, outputs[MAX_PIECES];
    struct layout from_layout = input_layout(state, round);
    struct layout to_layout = packed_layout(round->rank, round->shape);
    int64_t gap = random_in(state, 0, 3);
    for (int32_t d = 0; d < round->axis; d++) {
        int64_t row = 1;
        for (int32_t e = round->axis; e < round->rank; e++)
            row *= round->shape[e];
        to_layout.strides[d] = row == 0 ? 0 : to_layout.strides[d] / row * (row + gap);
    }
    find_reach(&to_layout, round->rank, round->shape);
    struct memory from = memory_for(state, &from_layout, round->element);
    struct memory to = memory_for(state, &to_layout, round->element);
    int64_t shape[MAX_TEST_RANK], offset = 0;
    memcpy(shape, round->shape, sizeof shape);
    libsplit_tensor input = packed(round->dtype, from.bytes + from.origin, round->rank, shape);
    input.strides = from_layout.strides;
    for (int64_t i = 0; i < round->pieces; i++) {
        memcpy(shapes[i], shape, sizeof shape);
        shapes[i][round->axis] = round->lengths[i];
        struct memory piece = to;
        piece.origin += (size_t)(offset * to_layout.strides[round->axis]) * round->element;
        expect_piece(&from, &from_layout, &piece, &to_layout, round->rank, shapes[i], round->axis,
                     offset, round->element);
        offset += round->lengths[i];
        outputs[i] = packed(round->dtype, piece.bytes + piece.origin, round->rank, shapes[i]);
        outputs[i].strides = to_layout.strides;
    }
    libsplit_params params = params_for(round, &split, lengths, &count);
    CHECK_OK(libsplit_copy(&input, &params, outputs, (size_t)round->pieces, NULL, NULL));
    CHECK(memcmp(to.bytes, to.expected, to.size) == 0);
    free_memory(&to);
    free_memory(&from);
}

static void test_random_layouts(void) {
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        uint64_t state = seed;
        struct round round = random_round(&state);
        CHECK_CASE("seed %" PRIu64 ", rank %d, axis %d, %s", seed, (int)round.rank, (int)round.axis,
                   libsplit_dtype_name(round.dtype));
        if (seed % 3 == 0)
            copy_to_one_tensor(&state, &round);
        else
            copy_to_own_memory(&state, &round);
    }
}

/* Cases by hand, so that the loop above is not the only oracle. */
static void test_transposed_and_reversed_by_hand(void) {
    char source[] = "abcdef", one[3] = "..", two[7] = "......";
    int64_t shape[2] = {3, 2}, transposed[2] = {1, 3}, lengths[2] = {1, 2}, count = 2;
    int64_t reversed[2] = {-1, -3};
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 13);
    params.split = &split;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 2, shape);
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_UINT8, one, 2, (int64_t[]){1, 2}),
                                  packed(LIBSPLIT_DTYPE_UINT8, two, 2, (int64_t[]){2, 2})};
    CHECK_CASE("transposed by hand");
    input.strides = transposed;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK_EQ_STR(one, "ad");
    CHECK_EQ_STR(two, "becf..");

    CHECK_CASE("reversed by hand");
    input.strides = reversed;
    input.data = source + 5;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK_EQ_STR(one, "fc");
    CHECK_EQ_STR(two, "ebda..");

    CHECK_CASE("to every other byte, backwards, by hand");
    input.strides = NULL;
    input.data = source;
    outputs[1].strides = (int64_t[]){-1, -2};
    outputs[1].data = two + 4;
    memset(two, '.', 6);
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK_EQ_STR(one, "ab");
    CHECK_EQ_STR(two, ".fdec.");
}

static void test_garbage_strides_of_empty_tensors(void) {
    int64_t shape[2] = {2, 0}, garbage[2] = {INT64_MIN, INT64_MAX}, out_shape[2] = {1, 0};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_DOUBLE, NULL, 2, shape);
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_DOUBLE, NULL, 2, out_shape),
                                  packed(LIBSPLIT_DTYPE_DOUBLE, NULL, 2, out_shape)};
    input.strides = outputs[0].strides = outputs[1].strides = garbage;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.num_outputs = 2;
    CHECK_CASE("garbage strides of empty tensors");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
}

/* Rank 64 with extent 2 on every third axis, each in another direction than the one before. */
static void test_rank_64(void) {
    enum { RANK = 64, WIDE = 12, SIZE = 1 << WIDE };
    static unsigned char source[SIZE], piece[SIZE / 2];
    int64_t shape[RANK], out_shape[RANK], strides[RANK], origin = 0, stride = 1;
    int32_t wide[WIDE];
    for (int32_t d = RANK - 1, n = 0; d >= 0; d--) {
        int is_wide = d % 5 == 0 && n < WIDE;
        shape[d] = out_shape[d] = is_wide ? 2 : 1;
        strides[d] = is_wide ? (n % 2 == 0 ? stride : -stride) : INT64_MIN;
        if (!is_wide)
            continue;
        origin += n % 2 == 0 ? 0 : stride;
        stride *= 2;
        wide[n++] = d;
    }
    for (size_t i = 0; i < SIZE; i++)
        source[i] = (unsigned char)(i ^ i >> 5);
    int32_t axis = wide[4];
    out_shape[axis] = 1;
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_INT8, source + origin, RANK, shape);
    input.strides = strides;
    libsplit_tensor outputs[2] = {{0}, packed(LIBSPLIT_DTYPE_INT8, piece, RANK, out_shape)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = axis;
    params.num_outputs = 2;
    CHECK_CASE("rank 64");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    int wrong = 0;
    for (size_t i = 0; i < SIZE / 2; i++) {
        /* The index's bit of the split axis is 1; odd axes run backwards. */
        size_t at = (i & 15) | 16 | (i >> 4 << 5);
        at ^= 0xAAA;
        wrong += piece[i] != source[at];
    }
    CHECK_EQ_INT(wrong, 0);
}

enum { AROUND_COLUMNS = 5 };

/*
 * Packed rows cut into packed columns of the given lengths, of which every 'unwanted'-th is not
 * wanted. They are compared run by run, including the bytes around them.
 */
static void check_packed_columns(libsplit_dtype dtype, int64_t rows, const int64_t *lengths,
                                 int64_t pieces, int64_t unwanted) {
    size_t element = libsplit_dtype_bits(dtype) / 8, used = AROUND_COLUMNS, column = 0;
    int64_t shapes[MAX_PIECES][2], own_lengths[MAX_PIECES], shape[2] = {rows, 0};
    libsplit_tensor outputs[MAX_PIECES] = {{0}};
    for (int64_t i = 0; i < pieces; i++)
        shape[1] += own_lengths[i] = lengths[i];
    size_t row_bytes = (size_t)shape[1] * element, bytes = (size_t)rows * row_bytes;
    size_t target_bytes = bytes + (size_t)(pieces + 1) * AROUND_COLUMNS;
    unsigned char *source = allocate(bytes);
    unsigned char *target = allocate(target_bytes), *expected = allocate(target_bytes);
    for (size_t i = 0; i < bytes; i++)
        source[i] = (unsigned char)(i * 13 ^ i >> 8);
    memset(target, 0xA5, target_bytes);
    memset(expected, 0xA5, target_bytes);
    for (int64_t i = 0; i < pieces; i++) {
        size_t run = (size_t)lengths[i] * element;
        if (i % unwanted != unwanted - 1) {
            shapes[i][0] = rows;
            shapes[i][1] = lengths[i];
            outputs[i] = packed(dtype, target + used, 2, shapes[i]);
            for (size_t row = 0; row < (size_t)rows; row++, used += run)
                memcpy(expected + used, source + row * row_bytes + column, run);
            used += AROUND_COLUMNS;
        }
        column += run;
    }
    libsplit_tensor input = packed(dtype, source, 2, shape);
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, own_lengths, 1, &pieces);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = 1;
    params.split = &split;
    CHECK_OK(libsplit_copy(&input, &params, outputs, (size_t)pieces, NULL, NULL));
    CHECK(memcmp(target, expected, target_bytes) == 0);
    free(source);
    free(target);
    free(expected);
}

static void test_many_short_packed_columns(void) {
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (int64_t pieces = 1; pieces <= MAX_PIECES; pieces++)
            for (int64_t unwanted = 2; unwanted <= 30; unwanted += 7) {
                int64_t lengths[MAX_PIECES];
                for (int64_t i = 0; i < pieces; i++)
                    lengths[i] = unwanted == 16 && i % 5 == 3 ? 2 : 1;
                CHECK_CASE("%d columns of %s, every %d. unwanted", (int)pieces,
                           libsplit_dtype_name(dtypes[t]), (int)unwanted);
                check_packed_columns(dtypes[t], 70 + pieces, lengths, pieces, unwanted);
            }
}

/* Neighbours of equal width are moved together. How many there are differs from one to the next,
 * while what has been written of each waits for the rest of its line. */
static void test_columns_of_mixed_widths(void) {
    static const int64_t mixed[][6] = {
        {44, 3, 3, 3, 3, 3}, {5, 3, 3, 3, 8, 8}, {68, 8, 8, 3, 3, 3}};
    for (size_t m = 0; m < sizeof mixed / sizeof *mixed; m++) {
        CHECK_CASE("columns of %d, %d, %d, ... bytes", (int)mixed[m][0], (int)mixed[m][1],
                   (int)mixed[m][2]);
        check_packed_columns(LIBSPLIT_DTYPE_BOOL, 1000, mixed[m], 6, 99);
    }
}

static void test_columns_of_random_widths(void) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t state = seed;
        int64_t widths[MAX_PIECES], count = 0, rows = random_in(&state, 200, 1500);
        for (int64_t bands = random_in(&state, 2, 4); bands > 0; bands--) {
            int64_t width = random_in(&state, 1, random_in(&state, 0, 1) ? 9 : 70);
            for (int64_t columns = random_in(&state, 1, 5); columns > 0; columns--)
                widths[count++] = width;
        }
        CHECK_CASE("random widths: seed %" PRIu64 ", %d columns, %d rows", seed, (int)count,
                   (int)rows);
        check_packed_columns(LIBSPLIT_DTYPE_BOOL, rows, widths, count, 99);
    }
}

static void test_packed_runs_of_every_length(void) {
    static const int64_t rows[] = {1, 3, 70};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int64_t length = 0; length <= 300; length++) {
            int64_t lengths[3] = {length % 7, length, 2};
            CHECK_CASE("%d runs of %d bytes", (int)rows[r], (int)length);
            check_packed_columns(LIBSPLIT_DTYPE_BOOL, rows[r], lengths, 3, 99);
        }
}

/* Axes none of which continues another. */
static void test_many_axes_with_gaps(void) {
    enum { AXES = 14, COLUMNS = 6, FIRST = 2 };
    int64_t shape[AXES + 1], strides[AXES + 1], shapes[2][AXES + 1], reach = COLUMNS + 1;
    shape[AXES] = COLUMNS;
    strides[AXES] = 1;
    for (int d = AXES - 1; d >= 0; d--) {
        shape[d] = 2;
        strides[d] = reach;
        reach = 2 * reach + 1;
    }
    for (int i = 0; i < 2; i++) {
        memcpy(shapes[i], shape, sizeof shape);
        shapes[i][AXES] = i == 0 ? FIRST : COLUMNS - FIRST;
    }
    size_t rows = (size_t)1 << AXES;
    unsigned char *source = allocate((size_t)reach), *target = allocate(rows * COLUMNS);
    for (int64_t i = 0; i < reach; i++)
        source[i] = (unsigned char)(i * 167 >> 3);
    CHECK_CASE("%d axes with gaps", AXES);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, AXES + 1, shape);
    input.strides = strides;
    libsplit_tensor outputs[] = {
        packed(LIBSPLIT_DTYPE_UINT8, target, AXES + 1, shapes[0]),
        packed(LIBSPLIT_DTYPE_UINT8, target + rows * FIRST, AXES + 1, shapes[1])};
    int64_t lengths[] = {FIRST, COLUMNS - FIRST}, pieces = 2;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &pieces);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = AXES;
    params.split = &split;
    CHECK_STATUS(libsplit_copy(&input, &params, outputs, 2, NULL, NULL), LIBSPLIT_STATUS_OK);
    size_t wrong = 0;
    for (size_t row = 0; row < rows; row++) {
        const unsigned char *from = source;
        for (int d = 0; d < AXES; d++)
            from += row >> (AXES - 1 - d) & 1 ? strides[d] : 0;
        wrong += memcmp(target + row * FIRST, from, FIRST) != 0;
        wrong += memcmp(target + rows * FIRST + row * (COLUMNS - FIRST), from + FIRST,
                        COLUMNS - FIRST) != 0;
    }
    CHECK(wrong == 0);
    free(source);
    free(target);
}

/* [height, width / 2, 4] into Y, U and V of one YUYV picture, whose rows may have a gap behind. */
static void check_yuyv(int64_t height, int64_t width, int64_t gap) {
    int64_t shape[3] = {height, width / 2, 4}, lengths[3] = {2, 1, 1}, pieces = 3;
    int64_t luma[3] = {height, width / 2, 2}, chroma[3] = {height, width / 2, 1};
    int64_t pitch = 2 * width + gap, strides[3] = {pitch, 4, 2};
    size_t size = (size_t)(height * width * 2), target_size = (size_t)(height * pitch);
    unsigned char *source = allocate(size), *target = allocate(target_size);
    for (size_t i = 0; i < size; i++)
        source[i] = (unsigned char)(i * 7 + i / 256);
    memset(target, 0xA5, target_size);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 3, shape);
    libsplit_tensor outputs[3] = {packed(LIBSPLIT_DTYPE_UINT8, target, 3, luma),
                                  packed(LIBSPLIT_DTYPE_UINT8, target + 1, 3, chroma),
                                  packed(LIBSPLIT_DTYPE_UINT8, target + 3, 3, chroma)};
    for (int i = 0; i < 3; i++)
        outputs[i].strides = strides;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &pieces);
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.axis = 2;
    params.split = &split;
    CHECK_CASE("YUYV, %d x %d and %d", (int)height, (int)width, (int)gap);
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    size_t wrong = 0;
    for (int64_t row = 0; row < height; row++) {
        const unsigned char *from = source + row * width * 2, *to = target + row * pitch;
        for (int64_t x = 0; x < width * 2; x += 4)
            wrong += to[x] != from[x] || to[x + 2] != from[x + 1] || to[x + 1] != from[x + 2] ||
                     to[x + 3] != from[x + 3];
        for (int64_t x = width * 2; x < pitch; x++)
            wrong += to[x] != 0xA5;
    }
    CHECK(wrong == 0);
    free(source);
    free(target);
}

static void test_packing_yuyv(void) {
    check_yuyv(64, 64, 0);
    check_yuyv(480, 640, 0);
    check_yuyv(480, 640, 5);
    check_yuyv(1080, 1920, 0);
}

enum { FEW_ROWS_MARGIN = 512, FEW_ROWS_GAP = 488 };

/* Every second element of the rows of a matrix, with a gap between rows; and what they are. */
struct every_second {
    libsplit_dtype dtype;
    size_t element;
    int64_t rows, columns, pitch;
    unsigned char *matrix, *expected;
};

static struct every_second every_second_of(libsplit_dtype dtype, int64_t rows, int64_t columns) {
    struct every_second matrix = {.dtype = dtype, .rows = rows, .columns = columns};
    size_t element = libsplit_dtype_bits(dtype) / 8, value = 0;
    matrix.element = element;
    matrix.pitch = 2 * columns + FEW_ROWS_GAP;
    matrix.matrix = calloc((size_t)(rows * matrix.pitch), element);
    matrix.expected = allocate((size_t)(rows * columns) * element);
    if (matrix.matrix == NULL)
        abort();
    unsigned char *to = matrix.expected;
    for (int64_t row = 0; row < rows; row++) {
        unsigned char *from = matrix.matrix + (size_t)(row * matrix.pitch) * element;
        for (int64_t column = 0; column < columns; column++, from += 2 * element)
            for (size_t byte = 0; byte < element; byte++, value++)
                *to++ = from[byte] = (unsigned char)(value * 73 + value / 251);
    }
    return matrix;
}

/* Returns whether an output has its rows, and nothing around them has changed. */
static int has_rows(const struct every_second *all, const unsigned char *output, int64_t first,
                    int64_t rows) {
    size_t row = (size_t)all->columns * all->element, bytes = (size_t)rows * row, changed = 0;
    for (size_t i = 0; i < FEW_ROWS_MARGIN; i++)
        changed += (output[i] != 0xA5) + (output[FEW_ROWS_MARGIN + bytes + i] != 0xA5);
    return changed == 0 &&
           memcmp(output + FEW_ROWS_MARGIN, all->expected + (size_t)first * row, bytes) == 0;
}

static void check_few_rows(const struct every_second *all, int64_t few, int with_tasks) {
    CHECK_CASE("few rows: %s, %d and %d rows of %d, %s", libsplit_dtype_name(all->dtype), (int)few,
               (int)(all->rows - few), (int)all->columns, with_tasks ? "tasks" : "one task");
    int64_t shape[2] = {all->rows, all->columns}, strides[2] = {all->pitch, 2};
    int64_t lengths[2] = {few, -1}, rows[2] = {few, all->rows - few}, count = 2, shapes[2][2];
    unsigned char *targets[2];
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_tensor input = packed(all->dtype, all->matrix, 2, shape), outputs[2];
    input.strides = strides;
    for (int i = 0; i < 2; i++) {
        size_t room = (size_t)(rows[i] * all->columns) * all->element + 2 * FEW_ROWS_MARGIN;
        targets[i] = allocate(room);
        memset(targets[i], 0xA5, room);
        shapes[i][0] = rows[i];
        shapes[i][1] = all->columns;
        outputs[i] = packed(all->dtype, targets[i] + FEW_ROWS_MARGIN, 2, shapes[i]);
    }
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.split = &split;
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(run_in_order, NULL);
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, with_tasks ? &executor : NULL, NULL));
    CHECK(has_rows(all, targets[0], 0, few));
    CHECK(has_rows(all, targets[1], few, all->rows - few));
    for (int i = 0; i < 2; i++)
        free(targets[i]);
}

/* A piece of few rows beside one of many. Rounds and tasks take a few bytes of the first piece at a
 * time, and end within its rows. */
static void test_few_rows_beside_many(void) {
    static const libsplit_dtype few_dtypes[] = {LIBSPLIT_DTYPE_UINT8, LIBSPLIT_DTYPE_FLOAT};
    static const int64_t widths[] = {37, 64, 96, 128, 256};
    for (size_t t = 0; t < sizeof few_dtypes / sizeof *few_dtypes; t++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            struct every_second all =
                every_second_of(few_dtypes[t], (2 << 20) / widths[w], widths[w]);
            for (int64_t few = 1; few <= 16; few *= 2)
                for (int with_tasks = 0; with_tasks < 2; with_tasks++)
                    check_few_rows(&all, few, with_tasks);
            free(all.matrix);
            free(all.expected);
        }
}

/* What is quick and finds most comes first. */
int main(void) {
    CHECK_START();
    test_transposed_and_reversed_by_hand();
    test_packed_runs_of_every_length();
    test_columns_of_mixed_widths();
    test_many_short_packed_columns();
    test_columns_of_random_widths();
    test_garbage_strides_of_empty_tensors();
    test_rank_64();
    test_many_axes_with_gaps();
    test_random_layouts();
    test_packing_yuyv();
    test_few_rows_beside_many();
    CHECK_DONE();
}
