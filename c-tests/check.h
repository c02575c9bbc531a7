/*
 * check.h - what all test programs use
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef CHECK_H
#define CHECK_H

#include <libsplit.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_count, check_failures;
/* The row, round or seed that is running; printed with every failure. */
static char check_case[160];

#define CHECK_CASE(...) ((void)snprintf(check_case, sizeof check_case, __VA_ARGS__))

enum { CHECK_MOST_FAILURES = 20 };

/* Counts a check. Returns true if it failed, after printing the start of a message. Whoever reads
 * the first failures needs no thousand others, so the program ends then. */
static inline int check_fails(int holds, const char *text, const char *file, int line) {
    check_count++;
    if (holds)
        return 0;
    if (check_failures++ == CHECK_MOST_FAILURES) {
        fprintf(stderr, "stopped after %d failures\n", CHECK_MOST_FAILURES);
        exit(EXIT_FAILURE);
    }
    fprintf(stderr, "%s:%d: [%s] %s", file, line, check_case, text);
    return 1;
}

static inline void check_true(int holds, const char *text, const char *file, int line) {
    if (check_fails(holds, text, file, line))
        fputs(" does not hold\n", stderr);
}

static inline void check_int(int64_t actual, int64_t expected, const char *text, const char *file,
                             int line) {
    if (check_fails(actual == expected, text, file, line))
        fprintf(stderr, " is %" PRId64 ", not %" PRId64 "\n", actual, expected);
}

static inline void check_str(const char *actual, const char *expected, const char *text,
                             const char *file, int line) {
    if (check_fails(strcmp(actual, expected) == 0, text, file, line))
        fprintf(stderr, " is\n  \"%s\", not\n  \"%s\"\n", actual, expected);
}

static inline void check_status(libsplit_status actual, libsplit_status expected, const char *text,
                                const char *file, int line) {
    if (check_fails(actual == expected, text, file, line))
        fprintf(stderr, " is %s, not %s\n", libsplit_status_name(actual),
                libsplit_status_name(expected));
}

#define CHECK(cond) check_true(!!(cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ_INT(actual, expected)                                                             \
    check_int((int64_t)(actual), (int64_t)(expected), #actual, __FILE__, __LINE__)
#define CHECK_EQ_STR(actual, expected) check_str(actual, expected, #actual, __FILE__, __LINE__)
#define CHECK_STATUS(call, status) check_status(call, status, #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(call, LIBSPLIT_STATUS_OK)

/*
 * Test builds can be made to use a CPU level, the row of another machine, or thresholds so low that
 * small cases cross them ("low"). Returns 0 on success, 1 if this CPU lacks a level, 2 for an
 * unknown word, 3 if this build lacks a level. The other functions return the name of the level
 * with a number, or NULL, and the names of all rows. Other builds lack these functions; only in ELF
 * files can a program ask whether it has got them.
 */
#if defined(LIBSPLIT_TEST_SWITCH)
int32_t libsplit_test_force(const char *words);
const char *libsplit_test_level(size_t number);
const char *libsplit_test_machines(void);
#define CHECK_MAY_FORCE 1
#elif defined(__ELF__)
__attribute__((weak)) int32_t libsplit_test_force(const char *words);
__attribute__((weak)) const char *libsplit_test_level(size_t number);
__attribute__((weak)) const char *libsplit_test_machines(void);
#define CHECK_MAY_FORCE 1
#else
#define CHECK_MAY_FORCE 0
#endif

enum { CHECK_SKIPPED = 77 }; /* SKIP_RETURN_CODE in CTest */

/* Does what LIBSPLIT_TEST_FORCE in the environment says. If this CPU or this build cannot, there is
 * nothing to test; but a level that the build should have is missed. */
static inline void check_force(const char *words) {
#if CHECK_MAY_FORCE
    int32_t (*force)(const char *) = libsplit_test_force;
    if (force != NULL) {
        int32_t status = force(words);
        if (status == 0)
            return;
        fprintf(stderr, "LIBSPLIT_TEST_FORCE=\"%s\": ", words);
        if (status == 1) {
            fputs("this CPU cannot do that\n", stderr);
            exit(CHECK_SKIPPED);
        }
        if (status == 3) {
            fputs("this build of the library lacks that level\n", stderr);
            exit(EXIT_FAILURE);
        }
        fputs("the words are low", stderr);
        for (size_t number = 0; libsplit_test_level(number) != NULL; number++)
            fprintf(stderr, " %s", libsplit_test_level(number));
        fprintf(stderr, " %s\n", libsplit_test_machines());
        exit(EXIT_FAILURE);
    }
#endif
    fprintf(stderr, "LIBSPLIT_TEST_FORCE=\"%s\": this build has no libsplit_test_force()\n", words);
    exit(CHECK_SKIPPED);
}

/* Returns whether small cases cross the thresholds. */
static inline int check_has_low_thresholds(void) {
    const char *words = getenv("LIBSPLIT_TEST_FORCE");
    return words != NULL && strstr(words, "low") != NULL;
}

/* Names the case in which the program was ended, before it is. */
static inline void check_crash(int number) {
    signal(number, SIG_DFL);
    fprintf(stderr, "signal %d (%s) in [%s] after %d checks\n", number,
            number == SIGABRT   ? "abort"
            : number == SIGSEGV ? "segmentation fault"
                                : "bus error",
            check_case, check_count);
    raise(number);
}

static inline void check_start(void) {
    signal(SIGABRT, check_crash);
    signal(SIGSEGV, check_crash);
#ifdef SIGBUS
    signal(SIGBUS, check_crash);
#endif
    const char *words = getenv("LIBSPLIT_TEST_FORCE");
    if (words != NULL && *words != '\0')
        check_force(words);
}

/* The start of main(). */
#define CHECK_START() check_start()

/* The end of main(). A program that checked nothing has not passed. */
#define CHECK_DONE()                                                                               \
    do {                                                                                           \
        printf("%d checks, %d failed\n", check_count, check_failures);                             \
        return check_failures != 0 || check_count == 0;                                            \
    } while (0)

/* How tables write lengths: LIST(2, 4), LENGTHS(INT32, int32_t, 2, 4), SCALAR(INT64, int64_t,
 * 2). */
#define LENGTHS(number, type, ...)                                                                 \
    &(const libsplit_tensor){.data = (type[]){__VA_ARGS__},                                        \
                             .shape = (int64_t[]){sizeof((type[]){__VA_ARGS__}) / sizeof(type)},   \
                             .rank = 1,                                                            \
                             .dtype = LIBSPLIT_DTYPE_##number}
#define LIST(...) LENGTHS(INT64, int64_t, __VA_ARGS__)
#define SCALAR(number, type, value)                                                                \
    &(const libsplit_tensor){.data = (type[]){value}, .dtype = LIBSPLIT_DTYPE_##number}
#define UNKNOWN_LIST(count)                                                                        \
    &(const libsplit_tensor){.shape = (int64_t[]){count}, .rank = 1, .dtype = LIBSPLIT_DTYPE_INT64}
#define UNKNOWN_SCALAR &(const libsplit_tensor){.dtype = LIBSPLIT_DTYPE_INT64}
#define EMPTY_LIST UNKNOWN_LIST(0)

/* A row-major packed tensor; as an output, it has room for its rank. */
static inline libsplit_tensor packed(libsplit_dtype dtype, void *data, int32_t rank,
                                     int64_t *shape) {
    libsplit_tensor tensor = {.data = data, .shape = shape, .rank = rank, .dtype = dtype};
    tensor.capacity = rank;
    return tensor;
}

/* How the programs allocate: a test machine without memory is no finding. */
static inline void *allocate(size_t bytes) {
    void *memory = malloc(bytes == 0 ? 1 : bytes);
    if (memory == NULL)
        abort();
    return memory;
}

/* An executor's parallel_for without threads. */
static inline int32_t LIBSPLIT_CALL run_in_order(void *pool, libsplit_task_fn task, void *task_ctx,
                                                 size_t count) {
    (void)pool;
    for (size_t i = 0; i < count; i++)
        task(task_ctx, i);
    return 0;
}

/* Pseudo-random numbers, the same in every run (splitmix64). */
static inline uint64_t random_u64(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Returns a pseudo-random number from low to high, both included. */
static inline int64_t random_in(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(random_u64(state) % (uint64_t)(high - low + 1));
}

#endif
