/*
 * neighbour.c - while another thread keeps writing what lies between the elements of a strided
 * input, results never depend on it
 *
 * The library may read those bytes together with the elements beside them. Somebody who reads the
 * source would call that a race, and so does ThreadSanitizer; so the neighbour's writes are hidden
 * from it. It still watches everything else.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined __GNUC__
#define UNWATCHED __attribute__((no_sanitize("thread"), noinline))
#else
#define UNWATCHED
#endif

#define ROUNDS 40
#define PIECES 3

/* An input of two axes, split along the second; strides in elements. */
static const struct layout {
    libsplit_dtype dtype;
    int64_t shape[2], strides[2];
} layouts[] = {
    {LIBSPLIT_DTYPE_UINT8, {50, 300}, {600, 2}},
    {LIBSPLIT_DTYPE_UINT8, {50, 300}, {900, 3}},
    {LIBSPLIT_DTYPE_UINT8, {1, 9000}, {0, 3}}, /* a channel of a picture */
    {LIBSPLIT_DTYPE_UINT8, {50, 300}, {1210, 4}},
    {LIBSPLIT_DTYPE_UINT8, {50, 300}, {700, -2}},
    {LIBSPLIT_DTYPE_UINT8, {300, 3}, {7, 1}}, /* pixels, with some bytes behind each */
    {LIBSPLIT_DTYPE_UINT8, {300, 3}, {-4, -1}},
    {LIBSPLIT_DTYPE_UINT8, {50, 300}, {333, 1}}, /* rows with gaps */
    {LIBSPLIT_DTYPE_FLOAT16, {50, 300}, {610, 2}},
    {LIBSPLIT_DTYPE_FLOAT16, {50, 300}, {901, -3}},
    {LIBSPLIT_DTYPE_FLOAT, {50, 300}, {600, 2}},
    {LIBSPLIT_DTYPE_FLOAT, {50, 300}, {300 * 4, -4}},
    {LIBSPLIT_DTYPE_FLOAT, {50, 300}, {1, 51}}, /* columns with gaps */
    {LIBSPLIT_DTYPE_DOUBLE, {50, 300}, {900, 3}},
    {LIBSPLIT_DTYPE_COMPLEX128, {20, 100}, {200, 2}},
    {LIBSPLIT_DTYPE_COMPLEX128, {20, 100}, {-400, -3}},
    {LIBSPLIT_DTYPE_STRING, {20, 100}, {300, 3}},
    {LIBSPLIT_DTYPE_STRING, {20, 100}, {110, -1}},
    {LIBSPLIT_DTYPE_UINT4, {50, 300}, {333, 1}}, /* rows with gaps, every other one inside a byte */
    {LIBSPLIT_DTYPE_UINT4, {50, 300}, {1210, 4}},
    {LIBSPLIT_DTYPE_UINT4, {50, 300}, {1000, -3}},
    {LIBSPLIT_DTYPE_UINT2, {50, 300}, {-331, 1}},
    {LIBSPLIT_DTYPE_UINT2, {50, 300}, {3000, 9}},
};

/* Returns where an element begins, in elements from the lowest one. */
static int64_t place(const struct layout *layout, int64_t row, int64_t column) {
    const int64_t index[2] = {row, column};
    int64_t at = 0;
    for (int d = 0; d < 2; d++) {
        int64_t stride = layout->strides[d];
        int64_t steps = stride < 0 ? index[d] - (layout->shape[d] - 1) : index[d];
        at += steps * stride;
    }
    return at;
}

/* Copies the element of so many bits at 'from' to 'to', which both count elements. */
static void move_element(unsigned char *target, int64_t to, const unsigned char *source,
                         int64_t from, int64_t bits) {
    if (bits >= 8) {
        memcpy(target + to * bits / 8, source + from * bits / 8, (size_t)bits / 8);
        return;
    }
    int value = source[from * bits / 8] >> from * bits % 8 & ((1 << bits) - 1);
    target[to * bits / 8] |= (unsigned char)(value << to * bits % 8);
}

struct neighbour {
    unsigned char *bytes;
    const unsigned char *is_element;
    int64_t count;
    atomic_int passes, stop;
};

/* Writes another value into every gap, again and again. */
UNWATCHED static void write_gaps(struct neighbour *neighbour, unsigned char value) {
    volatile unsigned char *bytes = neighbour->bytes;
    for (int64_t i = 0; i < neighbour->count; i++)
        if (!neighbour->is_element[i])
            bytes[i] = value;
}

static void *keep_writing(void *argument) {
    struct neighbour *neighbour = argument;
    for (unsigned char value = 1; !atomic_load(&neighbour->stop); value += 37) {
        write_gaps(neighbour, value);
        atomic_fetch_add(&neighbour->passes, 1);
    }
    return NULL;
}

static void check_layout(const struct layout *layout) {
    int64_t bits = libsplit_dtype_bits(layout->dtype);
    int64_t rows = layout->shape[0], columns = layout->shape[1];
    int64_t lowest = place(layout, 0, 0) * bits, reach = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t end = place(layout, i / columns, i % columns) + 1;
        reach = end > reach ? end : reach;
    }
    int64_t bytes = (reach * bits + 7) / 8;
    /* Each piece may leave part of its last byte. */
    size_t room = (size_t)(rows * columns * bits / 8 + PIECES);
    unsigned char *input = allocate((size_t)bytes), *is_element = allocate((size_t)bytes);
    unsigned char *copied = allocate(room), *expected = allocate(room);
    memset(is_element, 0, (size_t)bytes);
    memset(expected, 0, room);
    for (int64_t i = 0; i < bytes; i++)
        input[i] = (unsigned char)(i * 7 + i / 251);

    int64_t lengths[PIECES] = {columns / 3, columns / 2 - 1}, shapes[PIECES][2], end = 0;
    lengths[2] = columns - lengths[0] - lengths[1];
    libsplit_tensor outputs[PIECES];
    for (int64_t p = 0, first = 0; p < PIECES; first += lengths[p], p++) {
        for (int64_t i = 0; i < rows * lengths[p]; i++) {
            int64_t at = place(layout, i / lengths[p], first + i % lengths[p]);
            move_element(expected + end, i, input, at, bits);
            memset(is_element + at * bits / 8, 1, bits < 8 ? 1 : (size_t)bits / 8);
        }
        shapes[p][0] = rows;
        shapes[p][1] = lengths[p];
        outputs[p] = packed(layout->dtype, copied + end, 2, shapes[p]);
        end += (rows * lengths[p] * bits + 7) / 8;
    }

    struct neighbour neighbour = {input, is_element, bytes, 0, 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, keep_writing, &neighbour) != 0)
        abort();
    int64_t shape[2] = {rows, columns}, strides[2] = {layout->strides[0], layout->strides[1]};
    libsplit_tensor tensor = packed(layout->dtype, input + lowest / 8, 2, shape);
    tensor.bit_offset = (uint32_t)(lowest % 8);
    tensor.strides = strides;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.axis = 1;
    int64_t count = PIECES;
    libsplit_tensor split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    params.split = &split;
    for (int round = 0; round < ROUNDS || atomic_load(&neighbour.passes) < ROUNDS; round++) {
        memset(copied, 0xEE, (size_t)end);
        CHECK_OK(libsplit_copy(&tensor, &params, outputs, PIECES, NULL, NULL));
        CHECK(memcmp(copied, expected, (size_t)end) == 0);
    }
    atomic_store(&neighbour.stop, 1);
    pthread_join(thread, NULL);
    free(input);
    free(is_element);
    free(copied);
    free(expected);
}

int main(void) {
    CHECK_START();
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        CHECK_CASE("layout %zu", i);
        check_layout(&layouts[i]);
    }
    CHECK_DONE();
}
