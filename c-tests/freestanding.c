/*
 * freestanding.c - a program without libc: libsplit.a needs nothing but the four functions below
 *
 * Linux on x86-64 and AArch64; built with -nostdlib -static.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <libsplit.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);

/* With volatile bytes, because compilers would turn these loops into calls of themselves. */
typedef volatile unsigned char byte;

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((byte *)to)[i] = ((const byte *)from)[i];
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    if ((uintptr_t)to - (uintptr_t)from >= size)
        return memcpy(to, from, size);
    while (size-- > 0)
        ((byte *)to)[size] = ((const byte *)from)[size];
    return to;
}

void *memset(void *to, int value, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((byte *)to)[i] = (unsigned char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        int difference = ((const byte *)a)[i] - ((const byte *)b)[i];
        if (difference != 0)
            return difference;
    }
    return 0;
}

/* 24 rows of 1000 into 2 and 998 columns, and an error with its message. */
static int works(void) {
    static int32_t in[24][1000], a[24][2], b[24][998];
    int64_t shape[] = {24, 1000}, shape_a[] = {24, 2}, shape_b[] = {24, 998}, lengths[] = {2, 998},
            count[] = {2};
    libsplit_tensor input = {in, sizeof in, shape, NULL, 2, 0, LIBSPLIT_DTYPE_INT32, 0};
    libsplit_tensor split = {lengths, sizeof lengths, count, NULL, 1, 0, LIBSPLIT_DTYPE_INT64, 0};
    libsplit_tensor outputs[] = {
        {a, sizeof a, shape_a, NULL, 2, 0, LIBSPLIT_DTYPE_INT32, 0},
        {b, sizeof b, shape_b, NULL, 2, 0, LIBSPLIT_DTYPE_INT32, 0},
    };
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    libsplit_error error = LIBSPLIT_ERROR_INIT;

    for (int row = 0; row < 24; row++)
        for (int column = 0; column < 1000; column++)
            in[row][column] = 1000 * row + column;
    params.axis = 1;
    params.split = &split;
    if (libsplit_copy(&input, &params, outputs, 2, NULL, &error) != LIBSPLIT_STATUS_OK)
        return 0;
    for (int row = 0; row < 24; row++)
        for (int column = 0; column < 1000; column++)
            if ((column < 2 ? a[row][column] : b[row][column - 2]) != 1000 * row + column)
                return 0;
    params.axis = 2;
    return libsplit_copy(&input, &params, outputs, 2, NULL, &error) == LIBSPLIT_STATUS_ERROR_AXIS &&
           error.message[0] != '\0';
}

void entry(void);

#if defined(__x86_64__)
__asm__(".globl _start\n_start: and $-16, %rsp\ncall entry\n");

static _Noreturn void leave(long status) {
    __asm__ volatile("syscall" : : "a"(60L), "D"(status));
    __builtin_unreachable();
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: bl entry\n");

static _Noreturn void leave(long status) {
    register long number __asm__("x8") = 93;
    register long argument __asm__("x0") = status;
    __asm__ volatile("svc 0" : : "r"(number), "r"(argument));
    __builtin_unreachable();
}
#endif

void entry(void) { leave(works() ? 0 : 1); }
