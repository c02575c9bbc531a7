/*
 * sub_byte.c - 4-bit and 2-bit elements, packed low bits first: every element offset, compared with
 * a loop that moves one bit after the other
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */

#include "check.h"
#include "system.h"

#define MAX_TEST_RANK 4
#define MAX_PIECES 4
#define MARGIN 16
#define ROUNDS 6000

static const libsplit_dtype dtypes[] = {LIBSPLIT_DTYPE_UINT4, LIBSPLIT_DTYPE_INT4,
                                        LIBSPLIT_DTYPE_FLOAT4E2M1, LIBSPLIT_DTYPE_UINT2,
                                        LIBSPLIT_DTYPE_INT2};

/* Input bits: 'origin' is the byte that the descriptor's data points to. */
static unsigned char source[1 << 16];
static const int64_t origin = 1 << 15;

struct split {
    libsplit_dtype dtype;
    int64_t bits;
    int32_t rank, axis;
    int64_t shape[MAX_TEST_RANK];
    int64_t strides[MAX_TEST_RANK];
    uint32_t bit_offset;
    int64_t lengths[MAX_PIECES];
    int64_t pieces;
    int64_t unwanted; /* as many of the last pieces */
};

static int64_t element_count(const int64_t *shape, int32_t rank) {
    int64_t count = 1;
    for (int32_t d = 0; d < rank; d++)
        count *= shape[d];
    return count;
}

static size_t packed_bytes(const struct split *split, const int64_t *shape) {
    return (size_t)(element_count(shape, split->rank) * split->bits + 7) / 8;
}

/* The oracle: writes one packed piece, from zero bytes, bit by bit. */
static void expect_piece(const struct split *split, const int64_t *shape, int64_t offset,
                         unsigned char *expected) {
    memset(expected, 0, packed_bytes(split, shape));
    int64_t count = element_count(shape, split->rank);
    for (int64_t n = 0; n < count; n++) {
        int64_t at = 0, rest = n;
        for (int32_t d = split->rank - 1; d >= 0; d--) {
            int64_t index = rest % shape[d] + (d == split->axis ? offset : 0);
            at += index * split->strides[d];
            rest /= shape[d];
        }
        for (int64_t bit = 0; bit < split->bits; bit++) {
            int64_t from = origin * 8 + split->bit_offset + at * split->bits + bit;
            int64_t to = n * split->bits + bit;
            int set = source[from / 8] >> from % 8 & 1;
            expected[to / 8] = (unsigned char)(expected[to / 8] | set << to % 8);
        }
    }
}

static void set_packed_strides(struct split *split) {
    int64_t stride = 1;
    for (int32_t d = split->rank - 1; d >= 0; d--) {
        split->strides[d] = stride;
        stride *= split->shape[d];
    }
}

/* Copies into buffers full of ones and compares all of their bytes. */
static void check_split(const struct split *split) {
    static unsigned char actual[MAX_PIECES][16384], expected[MAX_PIECES][16384];
    int64_t shape[MAX_TEST_RANK], strides[MAX_TEST_RANK], shapes[MAX_PIECES][MAX_TEST_RANK];
    int64_t lengths[MAX_PIECES], count = split->pieces, offset = 0;
    libsplit_tensor outputs[MAX_PIECES], list = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    size_t used[MAX_PIECES];
    memcpy(shape, split->shape, sizeof shape);
    memcpy(strides, split->strides, sizeof strides);
    memcpy(lengths, split->lengths, sizeof lengths);
    for (int64_t i = 0; i < count; i++) {
        memcpy(shapes[i], shape, sizeof shape);
        shapes[i][split->axis] = lengths[i];
        size_t at = MARGIN + (size_t)(i % 3);
        used[i] = at + packed_bytes(split, shapes[i]) + MARGIN;
        memset(actual[i], 0xFF, used[i]);
        memset(expected[i], 0xFF, used[i]);
        outputs[i] = (libsplit_tensor){0};
        if (i < count - split->unwanted) {
            expect_piece(split, shapes[i], offset, expected[i] + at);
            outputs[i] = packed(split->dtype, actual[i] + at, split->rank, shapes[i]);
        }
        offset += lengths[i];
    }
    libsplit_tensor input = packed(split->dtype, source + origin, split->rank, shape);
    input.strides = strides;
    input.bit_offset = split->bit_offset;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.split = &list;
    params.axis = split->axis;
    CHECK_OK(libsplit_copy(&input, &params, outputs, (size_t)count, NULL, NULL));
    for (int64_t i = 0; i < count; i++)
        CHECK(memcmp(actual[i], expected[i], used[i]) == 0);
}

static struct split split_of(libsplit_dtype dtype) {
    struct split split = {.dtype = dtype, .bits = libsplit_dtype_bits(dtype)};
    return split;
}

/* One axis: every offset of the input in its bytes, and every offset of a piece in the input. */
static void test_every_offset(void) {
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
        struct split split = split_of(dtypes[t]);
        split.rank = 1;
        split.strides[0] = 1;
        split.pieces = 3;
        for (split.bit_offset = 0; split.bit_offset < 16; split.bit_offset += (uint32_t)split.bits)
            for (int64_t first = 0; first <= 9; first++)
                for (int64_t length = 0; length <= 37; length++) {
                    split.shape[0] = first + length + 3;
                    split.lengths[0] = first;
                    split.lengths[1] = length;
                    split.lengths[2] = 3;
                    CHECK_CASE("%s, bit offset %d, lengths %d, %d, 3",
                               libsplit_dtype_name(split.dtype), (int)split.bit_offset, (int)first,
                               (int)length);
                    check_split(&split);
                }
    }
}

/* Rows of odd lengths: in the packed output, they begin anywhere in a byte. */
static void test_odd_rows(void) {
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
        struct split split = split_of(dtypes[t]);
        split.rank = 2;
        split.axis = 1;
        split.pieces = 2;
        for (int64_t width = 1; width <= 70; width++)
            for (int64_t first = 0; first <= width; first += first < 9 ? 1 : 7) {
                split.shape[0] = 5;
                split.shape[1] = width;
                split.lengths[0] = first;
                split.lengths[1] = width - first;
                split.bit_offset = (uint32_t)(width % 3 * split.bits);
                set_packed_strides(&split);
                CHECK_CASE("%s, rows of %d at %d", libsplit_dtype_name(split.dtype), (int)width,
                           (int)first);
                check_split(&split);
            }
    }
}

/* Strides of any kind that stay within the source. */
static void random_strides(struct split *split, uint64_t *state) {
    if (random_in(state, 0, 2) == 0) {
        set_packed_strides(split);
        return;
    }
    int64_t inner = 1;
    for (int32_t d = 0; d < split->rank; d++) {
        int64_t stride = random_in(state, 0, 1) ? inner : random_in(state, 0, 9);
        split->strides[d] = random_in(state, 0, 2) == 0 ? -stride : stride;
        inner = stride * split->shape[d] + random_in(state, 0, 1);
    }
}

static struct split random_split(uint64_t *state) {
    static const int64_t extents[] = {0, 300, 25, 11, 7};
    struct split split = split_of(dtypes[random_in(state, 0, 4)]);
    split.rank = (int32_t)random_in(state, 1, MAX_TEST_RANK);
    split.axis = (int32_t)random_in(state, 0, split.rank - 1);
    for (int32_t d = 0; d < split.rank; d++)
        split.shape[d] = random_in(state, 1, extents[split.rank]);
    random_strides(&split, state);
    split.bit_offset = (uint32_t)(random_in(state, 0, 20) * split.bits);
    split.pieces = random_in(state, 1, MAX_PIECES);
    int64_t left = split.shape[split.axis];
    for (int64_t i = 0; i < split.pieces; i++) {
        split.lengths[i] = i == split.pieces - 1 ? left : random_in(state, 0, left);
        left -= split.lengths[i];
    }
    return split;
}

static void test_random_layouts(void) {
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        uint64_t state = seed;
        struct split split = random_split(&state);
        CHECK_CASE("seed %" PRIu64 ", %s, rank %d, axis %d", seed, libsplit_dtype_name(split.dtype),
                   (int)split.rank, (int)split.axis);
        check_split(&split);
    }
}

static void test_by_hand(void) {
    /* 1 2 3 4 5 / 6 7 8 9 10 as uint4. */
    unsigned char bytes[] = {0x21, 0x43, 0x65, 0x87, 0xA9}, left[3], right[4];
    int64_t shape[2] = {2, 5}, left_shape[2] = {2, 2}, right_shape[2] = {2, 3};
    int64_t transposed[2] = {1, 2};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT4, bytes, 2, shape);
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_UINT4, left, 2, left_shape),
                                  packed(LIBSPLIT_DTYPE_UINT4, right, 2, right_shape)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.split = LIST(2, 3);
    params.axis = 1;
    memset(left, 0xEE, sizeof left);
    memset(right, 0xEE, sizeof right);
    CHECK_CASE("uint4 by hand");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(memcmp(left, "\x21\x76\xEE", 3) == 0);      /* 1 2 / 6 7 */
    CHECK(memcmp(right, "\x43\x85\xA9\xEE", 4) == 0); /* 3 4 5 / 8 9 10 */

    CHECK_CASE("uint4 transposed by hand");
    input.strides = transposed; /* 1 3 5 7 9 / 2 4 6 8 10 */
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(memcmp(left, "\x31\x42\xEE", 3) == 0);      /* 1 3 / 2 4 */
    CHECK(memcmp(right, "\x75\x69\xA8\xEE", 4) == 0); /* 5 7 9 / 6 8 10 */

    CHECK_CASE("int2 by hand, the tail is 0");
    unsigned char pairs[] = {0xE4, 0x1B}, piece[2] = {0xFF, 0xFF}; /* 0 1 2 3 3 2 1 0 */
    int64_t eight = 8, three = 3;
    input = packed(LIBSPLIT_DTYPE_INT2, pairs, 1, &eight);
    libsplit_tensor wanted[3] = {{0}, packed(LIBSPLIT_DTYPE_INT2, piece, 1, &three), {0}};
    params.split = LIST(3, 3, 2);
    params.axis = 0;
    CHECK_OK(libsplit_copy(&input, &params, wanted, 3, NULL, NULL));
    CHECK(memcmp(piece, "\x2F\xFF", 2) == 0); /* 3 3 2 */
}

static void check_view_and_copy_of_it(libsplit_dtype dtype, uint32_t bit_offset, int64_t start) {
    enum { EXTENT = 23 };
    int64_t bits = libsplit_dtype_bits(dtype), extent = EXTENT, shapes[2], strides[2];
    int64_t length = EXTENT - start, lengths[2] = {start, length}, count = 2;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_tensor input = packed(dtype, source + origin, 1, &extent), views[2];
    input.bit_offset = bit_offset;
    for (int i = 0; i < 2; i++)
        views[i] = (libsplit_tensor){.shape = &shapes[i], .strides = &strides[i], .capacity = 1};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.split = &split;
    CHECK_OK(libsplit_view(&input, &params, views, 2, NULL));
    int64_t at = bit_offset + start * bits;
    CHECK((unsigned char *)views[1].data == source + origin + at / 8);
    CHECK_EQ_INT(views[1].bit_offset, at % 8);
    CHECK_EQ_INT(views[1].data_bytes, (at % 8 + length * bits + 7) / 8);

    unsigned char copied[16], direct[16];
    memset(copied, 0x11, sizeof copied);
    memset(direct, 0x22, sizeof direct);
    libsplit_tensor only[2] = {{0}, packed(dtype, direct, 1, &length)};
    CHECK_OK(libsplit_copy(&input, &params, only, 2, NULL, NULL));
    libsplit_tensor all = packed(dtype, copied, 1, &length);
    lengths[0] = -1;
    count = 1;
    CHECK_OK(libsplit_copy(&views[1], &params, &all, 1, NULL, NULL));
    CHECK(memcmp(copied, direct, (size_t)(length * bits + 7) / 8) == 0);
}

static void test_views_at_every_offset(void) {
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (uint32_t step = 0; step < 8; step++)
            for (int64_t start = 0; start < 9; start++) {
                CHECK_CASE("view of %s, %d elements in, from %d", libsplit_dtype_name(dtypes[t]),
                           (int)step, (int)start);
                check_view_and_copy_of_it(dtypes[t], step * libsplit_dtype_bits(dtypes[t]), start);
            }
}

/* Outputs whose layout is not packed, and some that only seem not to be. */
static void test_output_layouts(void) {
    static const struct {
        const char *name;
        int64_t strides[2];
        uint32_t bit_offset;
        libsplit_status status;
    } cases[] = {
        {"packed strides", {3, 1}, 0, LIBSPLIT_STATUS_OK},
        {"transposed", {1, 2}, 0, LIBSPLIT_STATUS_ERROR_STRIDES},
        {"padded rows", {4, 1}, 0, LIBSPLIT_STATUS_ERROR_STRIDES},
        {"rows of whole bytes", {8, 1}, 0, LIBSPLIT_STATUS_ERROR_STRIDES},
        {"reversed", {3, -1}, 0, LIBSPLIT_STATUS_ERROR_STRIDES},
        {"repeated", {0, 1}, 0, LIBSPLIT_STATUS_ERROR_STRIDES},
        {"half a byte in", {3, 1}, 4, LIBSPLIT_STATUS_ERROR_BIT_OFFSET},
        {"a byte in", {3, 1}, 8, LIBSPLIT_STATUS_ERROR_BIT_OFFSET},
        {"between elements", {3, 1}, 2, LIBSPLIT_STATUS_ERROR_BIT_OFFSET},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char bytes[3] = {0x21, 0x43, 0x65}, target[32];
        int64_t shape[2] = {2, 3}, strides[2];
        memcpy(strides, cases[i].strides, sizeof strides);
        memset(target, 0xEE, sizeof target);
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_INT4, bytes, 2, shape);
        libsplit_tensor output = packed(LIBSPLIT_DTYPE_INT4, target + 8, 2, shape);
        output.strides = strides;
        output.bit_offset = cases[i].bit_offset;
        libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
        libsplit_error error = LIBSPLIT_ERROR_INIT;
        params.num_outputs = 1;
        CHECK_CASE("output %s", cases[i].name);
        CHECK_STATUS(libsplit_copy(&input, &params, &output, 1, NULL, &error), cases[i].status);
        CHECK_EQ_INT(error.output_index, cases[i].status == LIBSPLIT_STATUS_OK ? -1 : 0);
        unsigned char untouched[32];
        memset(untouched, 0xEE, sizeof untouched);
        if (cases[i].status == LIBSPLIT_STATUS_OK)
            memcpy(untouched + 8, bytes, 3);
        CHECK(memcmp(target, untouched, sizeof target) == 0);
    }
}

static void test_garbage_strides_of_extent_1(void) {
    unsigned char bytes[2] = {0x21, 0x03}, target[2] = {0xEE, 0xEE};
    int64_t shape[2] = {1, 3}, from[2] = {INT64_MIN, 1}, to[2] = {INT64_MAX, 1};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT4, bytes, 2, shape);
    libsplit_tensor output = packed(LIBSPLIT_DTYPE_UINT4, target, 2, shape);
    input.strides = from;
    output.strides = to;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.num_outputs = 1;
    CHECK_CASE("garbage strides of extent 1");
    CHECK_OK(libsplit_copy(&input, &params, &output, 1, NULL, NULL));
    CHECK(memcmp(target, bytes, 2) == 0);
}

/* Rows that begin within a byte, although all that is wanted of the first begins and ends at bytes.
 */
static void test_rows_of_half_bytes_of_which_the_end_is_not_wanted(void) {
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (int64_t rest = 1; rest <= 4; rest++) {
            struct split split = split_of(dtypes[t]);
            int64_t byte = 8 / split.bits;
            split.rank = 2;
            split.axis = 1;
            split.shape[0] = 70;
            split.shape[1] = 3 * byte + rest;
            split.lengths[0] = byte;
            split.lengths[1] = 2 * byte;
            split.lengths[2] = rest;
            split.pieces = 3;
            split.unwanted = 1;
            set_packed_strides(&split);
            CHECK_CASE("70 rows of 3 bytes and %d elements of %d bits that are not wanted",
                       (int)rest, (int)split.bits);
            check_split(&split);
        }
}

/* More pieces of two 4-bit elements than are dealt out together: a byte of each row for each. */
static void test_many_pieces_of_whole_bytes(void) {
    enum { ROWS = 64, PIECES = 20, BESIDE = 192 };
    static unsigned char targets[PIECES][ROWS + BESIDE], expected[PIECES][ROWS + BESIDE];
    int64_t shape[2] = {ROWS, PIECES * 2}, piece[2] = {ROWS, 2};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT4, source, 2, shape);
    libsplit_tensor outputs[PIECES];
    memset(targets, 0xEE, sizeof targets);
    memset(expected, 0xEE, sizeof expected);
    for (size_t i = 0; i < PIECES; i++) {
        outputs[i] = packed(LIBSPLIT_DTYPE_UINT4, targets[i], 2, piece);
        for (size_t row = 0; row < ROWS; row++)
            expected[i][row] = source[row * PIECES + i];
    }
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    params.axis = 1;
    params.num_outputs = PIECES;
    CHECK_CASE("20 pieces of a byte of each row");
    CHECK_OK(libsplit_copy(&input, &params, outputs, PIECES, NULL, NULL));
    CHECK(memcmp(targets, expected, sizeof targets) == 0);
}

#if SIZE_MAX > UINT32_MAX
/* 2^34 elements of 4 bits in 8 GiB of addresses, of which only one page can be read. */
static void test_offsets_past_2_to_the_33_bits(void) {
    size_t gib = (size_t)1 << 30, page = 65536, at = 6 * gib;
    unsigned char *memory = reserve_addresses(8 * gib);
    CHECK_CASE("8 GiB of 4-bit elements");
    allow_access(memory + at, page);
    memcpy(memory + at, "\x10\x32\x54", 3);
    int64_t extent = INT64_C(1) << 34, three = 3, lengths[3] = {(int64_t)at * 2 + 1, 3, -1};
    int64_t count = 3;
    unsigned char piece[3] = {0xFF, 0xFF, 0xFF};
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_INT4, memory, 1, &extent);
    libsplit_tensor outputs[3] = {{0}, packed(LIBSPLIT_DTYPE_INT4, piece, 1, &three), {0}};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.split = &split;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 3, NULL, NULL));
    CHECK(memcmp(piece, "\x21\x03\xFF", 3) == 0);
    release_addresses(memory, 8 * gib);
}
#endif

int main(void) {
    CHECK_START();
    uint64_t state = 2024;
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)random_u64(&state);
    test_by_hand();
    test_every_offset();
    test_odd_rows();
    test_random_layouts();
    test_views_at_every_offset();
    test_output_layouts();
    test_garbage_strides_of_extent_1();
    test_rows_of_half_bytes_of_which_the_end_is_not_wanted();
    test_many_pieces_of_whole_bytes();
#if SIZE_MAX > UINT32_MAX
    test_offsets_past_2_to_the_33_bits();
#endif
    CHECK_DONE();
}
