/*
 * strings.c - elements of type STRING: the pair of address and size is moved, the characters are
 * never looked at
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */

#include "check.h"
#include "system.h"

#define COUNT 6

static libsplit_params split_at_2(void) {
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 13);
    static int64_t lengths[2] = {2, 4}, count = 2;
    static libsplit_tensor split;
    split = packed(LIBSPLIT_DTYPE_INT64, lengths, 1, &count);
    params.split = &split;
    return params;
}

/* Splits COUNT strings at 2 and checks that each pair arrived as it was. */
static void check_pairs_arrive(const char *name, libsplit_string *strings) {
    libsplit_string first[3], second[5], before[COUNT];
    int64_t extent = COUNT, two = 2, four = 4;
    memset(first, 0xA5, sizeof first);
    memset(second, 0xA5, sizeof second);
    memcpy(before, strings, sizeof before);
    libsplit_string canary = first[2];
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_STRING, strings, 1, &extent);
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_STRING, first, 1, &two),
                                  packed(LIBSPLIT_DTYPE_STRING, second, 1, &four)};
    input.data_bytes = COUNT * sizeof *strings;
    outputs[0].data_bytes = 2 * sizeof *first;
    outputs[1].data_bytes = 4 * sizeof *second;
    libsplit_params params = split_at_2();
    CHECK_CASE("%s", name);
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    for (int i = 0; i < COUNT; i++) {
        const libsplit_string *copied = i < 2 ? &first[i] : &second[i - 2];
        CHECK(copied->data == before[i].data);
        CHECK_EQ_INT(copied->size, before[i].size);
    }
    CHECK(memcmp(strings, before, sizeof before) == 0);
    CHECK(memcmp(&first[2], &canary, sizeof canary) == 0);
    CHECK(memcmp(&second[4], &canary, sizeof canary) == 0);
}

static void test_text_with_nul_in_it(void) {
    static const char with_nul[] = "one\0two", empty[] = "";
    libsplit_string strings[COUNT] = {{"abc", 3}, {with_nul, 7},     {empty, 0},
                                      {NULL, 0},  {with_nul + 4, 3}, {"no terminator", 2}};
    check_pairs_arrive("embedded NUL", strings);
    CHECK(memcmp(with_nul, "one\0two", 8) == 0);
}

static void test_the_same_characters_twice(void) {
    static const char shared[] = "shared";
    libsplit_string strings[COUNT];
    for (int i = 0; i < COUNT; i++)
        strings[i] = (libsplit_string){shared, sizeof shared - 1};
    check_pairs_arrive("shared characters", strings);
}

static void test_characters_that_cannot_be_read(void) {
    size_t bytes = 65536;
    char *memory = reserve_addresses(bytes);
    libsplit_string strings[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        strings[i] = (libsplit_string){memory + i * 100, 100};
    check_pairs_arrive("characters that cannot be read", strings);
    release_addresses(memory, bytes);
}

static void test_pairs_that_make_no_sense(void) {
    libsplit_string strings[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        strings[i] = (libsplit_string){(const char *)(UINTPTR_MAX - i), SIZE_MAX - i * 1000};
    check_pairs_arrive("addresses and sizes of nowhere", strings);
}

static void test_columns_of_strings(void) {
    static const char text[] = "abcdef";
    libsplit_string strings[COUNT], left[2], right[4];
    for (size_t i = 0; i < COUNT; i++)
        strings[i] = (libsplit_string){text + i, 1};
    int64_t shape[2] = {2, 3}, left_shape[2] = {2, 1}, right_shape[2] = {2, 2};
    int64_t transposed[2] = {1, 2};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_STRING, strings, 2, shape);
    libsplit_tensor outputs[2] = {packed(LIBSPLIT_DTYPE_STRING, left, 2, left_shape),
                                  packed(LIBSPLIT_DTYPE_STRING, right, 2, right_shape)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
    params.split = LIST(1, -1);
    params.axis = 1;
    CHECK_CASE("columns");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(*left[0].data == 'a' && *left[1].data == 'd');
    CHECK(*right[0].data == 'b' && *right[1].data == 'c' && *right[2].data == 'e' &&
          *right[3].data == 'f');

    CHECK_CASE("columns, transposed");
    input.strides = transposed;
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    CHECK(*left[0].data == 'a' && *left[1].data == 'b');
    CHECK(*right[0].data == 'c' && *right[1].data == 'e' && *right[2].data == 'd' &&
          *right[3].data == 'f');
}

static void test_pairs_at_odd_addresses(void) {
    unsigned char source[2 * sizeof(libsplit_string) + 1], target[sizeof(libsplit_string) + 3];
    libsplit_string strings[2] = {{"a", 1}, {"b", 2}}, copied;
    int64_t two = 2, one = 1;
    memcpy(source + 1, strings, sizeof strings);
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_STRING, source + 1, 1, &two);
    libsplit_tensor outputs[2] = {{0}, packed(LIBSPLIT_DTYPE_STRING, target + 3, 1, &one)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 2);
    CHECK_CASE("odd addresses");
    CHECK_OK(libsplit_copy(&input, &params, outputs, 2, NULL, NULL));
    memcpy(&copied, target + 3, sizeof copied);
    CHECK(copied.data == strings[1].data);
    CHECK_EQ_INT(copied.size, 2);
}

static void test_views_of_strings(void) {
    libsplit_string strings[COUNT] = {{"abc", 3}};
    int64_t extent = COUNT, shapes[2], strides[2];
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_STRING, strings, 1, &extent), outputs[2];
    for (int i = 0; i < 2; i++)
        outputs[i] = (libsplit_tensor){.shape = &shapes[i], .strides = &strides[i], .capacity = 1};
    libsplit_params params = split_at_2();
    CHECK_CASE("views");
    CHECK_OK(libsplit_view(&input, &params, outputs, 2, NULL));
    CHECK(outputs[0].data == &strings[0] && outputs[1].data == &strings[2]);
    CHECK_EQ_INT(outputs[1].data_bytes, 4 * sizeof *strings);
}

int main(void) {
    CHECK_START();
    test_text_with_nul_in_it();
    test_the_same_characters_twice();
    test_characters_that_cannot_be_read();
    test_pairs_that_make_no_sense();
    test_columns_of_strings();
    test_pairs_at_odd_addresses();
    test_views_of_strings();
    CHECK_DONE();
}
