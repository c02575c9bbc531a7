/*
 * no_heap.c - an allocator, to be preloaded, that ends the program as soon as libsplit.so calls it
 *
 * The other programs run with it, so every call that they make, valid or not, is one that must not
 * allocate. The programs themselves may.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own names. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static _Atomic unsigned long seen;

static void look_at_caller(const void *caller) {
    static const char message[] = "libsplit uses the heap\n";
    Dl_info info;
    seen++;
    if (dladdr(caller, &info) == 0 || strstr(info.dli_fname, "libsplit.so") == NULL)
        return;
    if (write(STDERR_FILENO, message, sizeof message - 1) > 0)
        _exit(1);
    _exit(2);
}
#define LOOK() look_at_caller(__builtin_return_address(0))

void *malloc(size_t bytes) {
    LOOK();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    LOOK();
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
    LOOK();
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    LOOK();
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    LOOK();
    *memory = __libc_memalign(alignment, bytes);
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory) {
    if (memory != NULL)
        LOOK();
    __libc_free(memory);
}

/* What the tests look for: that both the allocator and libsplit.so were there. */
__attribute__((destructor)) static void report(void) {
    if (seen > 0 && dlsym(RTLD_DEFAULT, "libsplit_copy") != NULL)
        fprintf(stderr, "%lu calls of the allocator, none from libsplit\n", seen);
}
