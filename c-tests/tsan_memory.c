/*
 * tsan_memory.c - functions that rustc's ThreadSanitizer expects, and that gcc's runtime lacks
 * under these names before version 13; the functions behind them are watched
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <string.h>

void *__tsan_memcpy(void *target, const void *source, size_t bytes);
void *__tsan_memmove(void *target, const void *source, size_t bytes);
void *__tsan_memset(void *target, int byte, size_t bytes);

void *__tsan_memcpy(void *target, const void *source, size_t bytes) {
    return memcpy(target, source, bytes);
}

void *__tsan_memmove(void *target, const void *source, size_t bytes) {
    return memmove(target, source, bytes);
}

void *__tsan_memset(void *target, int byte, size_t bytes) { return memset(target, byte, bytes); }
