/*
 * splits.c - four of the benchmark's splits on 64-bit Arm, by libsplit or by loops for just this
 * split
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     splits SPLIT libsplit|by-hand PARTS CALLS
 *
 * Makes the calls on one of PARTS equal parts of the rows, for counting their instructions, and
 * fails if the outputs are wrong. The loops are what somebody would write with NEON's intrinsics
 * who knows the shape.
 */
#include <libsplit.h>
#include <arm_neon.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PIECES = 3 };

/* A matrix of elements of the input; or its transpose, if a row of memory is a column of the
 * matrix. */
struct split {
    const char *name;
    int32_t dtype;
    size_t element; /* bytes */
    int64_t rows, columns;
    int is_transposed;
    int axis, pieces;
    int64_t lengths[MOST_PIECES];
    void (*by_hand)(const struct split *split, const uint8_t *input, uint8_t *const outputs[]);
};

/* Planes: uint8 [1080, 1920, 3] axis 2. */
static void planes(const struct split *split, const uint8_t *input, uint8_t *const outputs[]) {
    uint8_t *a = outputs[0], *b = outputs[1], *c = outputs[2];
    for (int64_t at = 0; at < split->rows; at += 16) {
        uint8x16x3_t all = vld3q_u8(input);
        vst1q_u8(a + at, all.val[0]);
        vst1q_u8(b + at, all.val[1]);
        vst1q_u8(c + at, all.val[2]);
        input += 48;
    }
}

/* Boxes, scores, classes: float32 [100000, 85] axis 1 into 4, 1, 80. */
static void boxes(const struct split *split, const uint8_t *input, uint8_t *const outputs[]) {
    uint8_t *a = outputs[0], *b = outputs[1], *c = outputs[2];
    for (int64_t row = 0; row < split->rows; row++) {
        vst1q_u8(a, vld1q_u8(input));
        memcpy(b, input + 16, 4);
        for (int at = 0; at < 320; at += 32) {
            uint8x16_t low = vld1q_u8(input + 20 + at), high = vld1q_u8(input + 36 + at);
            vst1q_u8(c + at, low);
            vst1q_u8(c + at + 16, high);
        }
        input += 340, a += 16, b += 4, c += 320;
    }
}

/*
 * Runs of 12 bytes: float32 [29127, 9] axis 1 into 3, 3, 3. Each run is moved with the 4 bytes
 * behind it, which the next run overwrites; the last row is moved without them.
 */
static void runs_of_12(const struct split *split, const uint8_t *input, uint8_t *const outputs[]) {
    uint8_t *a = outputs[0], *b = outputs[1], *c = outputs[2];
    int64_t row = 0;
    for (; row + 4 < split->rows; row += 4) {
        for (int i = 0; i < 4; i++) {
            vst1q_u8(a + 12 * i, vld1q_u8(input + 36 * i));
            vst1q_u8(b + 12 * i, vld1q_u8(input + 36 * i + 12));
            vst1q_u8(c + 12 * i, vld1q_u8(input + 36 * i + 24));
        }
        input += 144, a += 48, b += 48, c += 48;
    }
    for (; row < split->rows; row++) {
        memcpy(a, input, 12);
        memcpy(b, input + 12, 12);
        memcpy(c, input + 24, 12);
        input += 36, a += 12, b += 12, c += 12;
    }
}

/* Transposes 8 x 8 elements of 16 bits; both pitches are in elements. */
static inline void transpose_tile(const uint16_t *from, size_t from_pitch, uint16_t *to,
                                  size_t to_pitch) {
    uint16x8_t rows[8];
    for (int i = 0; i < 8; i++)
        rows[i] = vld1q_u16(from + i * from_pitch);
    uint32x4_t pairs[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = vreinterpretq_u32_u16(vtrn1q_u16(rows[i], rows[i + 1]));
        pairs[i + 1] = vreinterpretq_u32_u16(vtrn2q_u16(rows[i], rows[i + 1]));
    }
    uint64x2_t fours[8];
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            fours[i + j] = vreinterpretq_u64_u32(vtrn1q_u32(pairs[i + j], pairs[i + j + 2]));
            fours[i + j + 2] = vreinterpretq_u64_u32(vtrn2q_u32(pairs[i + j], pairs[i + j + 2]));
        }
    for (int i = 0; i < 4; i++) {
        vst1q_u16(to + i * to_pitch, vreinterpretq_u16_u64(vtrn1q_u64(fours[i], fours[i + 4])));
        vst1q_u16(to + (i + 4) * to_pitch,
                  vreinterpretq_u16_u64(vtrn2q_u64(fours[i], fours[i + 4])));
    }
}

/*
 * A transposed view: float16 [3072, 4096] of [4096, 3072] axis 0 into 1536, 1536. A block of 64
 * columns of memory makes whole lines of the outputs, 32 at a time.
 */
static void transposed(const struct split *split, const uint8_t *input, uint8_t *const outputs[]) {
    size_t from_pitch = (size_t)split->rows, to_pitch = (size_t)split->columns;
    for (int piece = 0; piece < 2; piece++) {
        const uint16_t *from = (const uint16_t *)(const void *)input + piece * split->lengths[0];
        uint16_t *to = (uint16_t *)(void *)outputs[piece];
        for (size_t block = 0; block < to_pitch; block += 32)
            for (size_t row = 0; row < (size_t)split->lengths[0]; row += 8)
                for (size_t column = block; column < block + 32; column += 8)
                    transpose_tile(from + column * from_pitch + row, from_pitch,
                                   to + row * to_pitch + column, to_pitch);
    }
}

static const struct split splits[] = {
    {"W5", LIBSPLIT_DTYPE_UINT8, 1, 1080 * 1920, 3, 0, 1, 3, {1, 1, 1}, planes},
    {"W6", LIBSPLIT_DTYPE_FLOAT, 4, 100000, 85, 0, 1, 3, {4, 1, 80}, boxes},
    {"R12x3", LIBSPLIT_DTYPE_FLOAT, 4, 29127, 9, 0, 1, 3, {3, 3, 3}, runs_of_12},
    {"L6r", LIBSPLIT_DTYPE_FLOAT16, 2, 3072, 4096, 1, 0, 2, {1536, 1536}, transposed},
};

static void fail(const char *why) {
    fprintf(stderr, "error: %s\n", why);
    exit(1);
}

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!memory)
        fail("no memory");
    return memory;
}

static void by_libsplit(const struct split *split, uint8_t *input, uint8_t *const outputs[]) {
    int64_t shape[] = {split->rows, split->columns}, strides[] = {1, split->rows};
    int64_t shapes[MOST_PIECES][2], count = split->pieces;
    libsplit_tensor of = {.data = input, .shape = shape, .rank = 2, .dtype = split->dtype};
    libsplit_tensor lengths = {.data = (void *)(uintptr_t)split->lengths,
                               .shape = &count,
                               .rank = 1,
                               .dtype = LIBSPLIT_DTYPE_INT64};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    libsplit_tensor targets[MOST_PIECES];
    memset(targets, 0, sizeof targets);
    if (split->is_transposed)
        of.strides = strides;
    params.axis = split->axis;
    params.split = &lengths;
    for (int piece = 0; piece < split->pieces; piece++) {
        memcpy(shapes[piece], shape, sizeof shape);
        shapes[piece][split->axis] = split->lengths[piece];
        targets[piece].data = outputs[piece];
        targets[piece].shape = shapes[piece];
        targets[piece].rank = 2;
        targets[piece].capacity = 2;
        targets[piece].dtype = split->dtype;
    }
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    if (libsplit_copy(&of, &params, targets, (size_t)split->pieces, NULL, &error))
        fail(error.message);
}

/* Compares every element with the one of the input that belongs there. */
static void check(const struct split *split, const uint8_t *input, uint8_t *const outputs[]) {
    int64_t down = split->is_transposed ? 1 : split->columns;
    int64_t along = split->is_transposed ? split->rows : 1;
    for (int piece = 0, first = 0; piece < split->pieces; first += (int)split->lengths[piece++]) {
        const uint8_t *found = outputs[piece];
        int64_t rows = split->axis == 0 ? split->lengths[piece] : split->rows;
        int64_t columns = split->axis == 1 ? split->lengths[piece] : split->columns;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++, found += split->element) {
                int64_t at = (row + (split->axis == 0) * first) * down +
                             (column + (split->axis == 1) * first) * along;
                if (memcmp(found, input + (size_t)at * split->element, split->element) != 0)
                    fail("the outputs are wrong");
            }
    }
}

/* Returns one of some equal parts of the rows of the split with this name. */
static struct split part_of(const char *name, int64_t parts) {
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (strcmp(name, splits[i].name) == 0) {
            struct split part = splits[i];
            part.rows /= parts;
            for (int piece = 0; part.axis == 0 && piece < part.pieces; piece++)
                part.lengths[piece] /= parts;
            return part;
        }
    fail("there is no such split");
    return splits[0];
}

int main(int argc, char **argv) {
    if (argc != 5)
        fail("usage: splits SPLIT libsplit|by-hand PARTS CALLS");
    const struct split part = part_of(argv[1], strtol(argv[3], NULL, 10)), *split = &part;
    size_t elements = (size_t)(split->rows * split->columns);
    uint8_t *input = allocate(elements * split->element), *outputs[MOST_PIECES];
    for (size_t i = 0; i < elements * split->element; i++)
        input[i] = (uint8_t)(i * 2654435761u >> 16);
    for (int piece = 0; piece < split->pieces; piece++)
        outputs[piece] = allocate(elements * split->element);
    for (long call = strtol(argv[4], NULL, 10); call > 0; call--)
        if (strcmp(argv[2], "libsplit") == 0)
            by_libsplit(split, input, outputs);
        else
            split->by_hand(split, input, outputs);
    check(split, input, outputs);
    return 0;
}
