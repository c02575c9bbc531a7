/*
 * dlopen.c - the shared library as a plug-in that is loaded, used and unloaded at run time
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _DEFAULT_SOURCE 1 /* realpath */

#include "check.h"
#include "system.h"

#include <pthread.h>
#include <stdatomic.h>

#define ROUNDS 5
#define THREADS 3

/* The library's functions, each looked up by its name. */
struct library {
    void *handle;
    uint32_t (*version)(void);
    const char *(*version_string)(void);
    const char *(*status_name)(libsplit_status);
    const char *(*dtype_name)(libsplit_dtype);
    uint32_t (*dtype_bits)(libsplit_dtype);
    libsplit_status (*count)(const libsplit_tensor *, const libsplit_params *, size_t *,
                             libsplit_error *);
    libsplit_status (*infer)(const libsplit_tensor *, const libsplit_params *, libsplit_tensor *,
                             size_t, libsplit_error *);
    libsplit_status (*view)(const libsplit_tensor *, const libsplit_params *, libsplit_tensor *,
                            size_t, libsplit_error *);
    libsplit_status (*copy)(const libsplit_tensor *, const libsplit_params *,
                            const libsplit_tensor *, size_t, const libsplit_executor *,
                            libsplit_error *);
};

static struct library load(const char *path) {
    struct library library = {.handle = open_library(path)};
    if (library.handle == NULL)
        exit(1);
    find_function(library.handle, "libsplit_version", &library.version);
    find_function(library.handle, "libsplit_version_string", &library.version_string);
    find_function(library.handle, "libsplit_status_name", &library.status_name);
    find_function(library.handle, "libsplit_dtype_name", &library.dtype_name);
    find_function(library.handle, "libsplit_dtype_bits", &library.dtype_bits);
    find_function(library.handle, "libsplit_count", &library.count);
    find_function(library.handle, "libsplit_infer", &library.infer);
    find_function(library.handle, "libsplit_view", &library.view);
    find_function(library.handle, "libsplit_copy", &library.copy);
    return library;
}

static void unload(const struct library *library, const char *path) {
    CHECK(is_mapped(path));
    CHECK(close_library(library->handle));
    CHECK(!is_mapped(path));
}

/* Splits "abcdef" in two with every function that there is. Needs nothing but 'library'. */
static int all_functions_work(const struct library *library) {
    char source[] = "abcdef", pieces[2][4] = {"...", "..."};
    int64_t extent = 6, shapes[2] = {0, 0}, strides[2] = {0, 0};
    libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, source, 1, &extent), outputs[2];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    size_t count = 0;
    params.num_outputs = 2;
    for (int i = 0; i < 2; i++)
        outputs[i] = (libsplit_tensor){.shape = &shapes[i], .strides = &strides[i], .capacity = 1};
    int works = library->count(&input, &params, &count, NULL) == LIBSPLIT_STATUS_OK && count == 2;
    works &= library->view(&input, &params, outputs, 2, NULL) == LIBSPLIT_STATUS_OK &&
             outputs[1].data == source + 3;
    works &=
        library->infer(&input, &params, outputs, 2, NULL) == LIBSPLIT_STATUS_OK && shapes[1] == 3;
    for (int i = 0; i < 2; i++)
        outputs[i].data = pieces[i];
    works &= library->copy(&input, &params, outputs, 2, NULL, NULL) == LIBSPLIT_STATUS_OK &&
             memcmp(pieces, "abc\0def", sizeof pieces) == 0;
    return works;
}

static void test_load_and_unload(const char *path) {
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_CASE("round %d", round);
        struct library library = load(path);
        CHECK(library.version() != 0);
        CHECK(strchr(library.version_string(), '.') != NULL);
        CHECK_EQ_STR(library.status_name(0), "LIBSPLIT_STATUS_OK");
        CHECK_EQ_STR(library.dtype_name(1), "FLOAT");
        CHECK_EQ_INT(library.dtype_bits(1), 32);
        CHECK(all_functions_work(&library));
        unload(&library, path);
    }
}

static void test_unload_after_an_error(const char *path) {
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_CASE("error, round %d", round);
        struct library library = load(path);
        int64_t extent = 6;
        size_t count = 0;
        libsplit_tensor input = packed(LIBSPLIT_DTYPE_UINT8, NULL, 1, &extent);
        libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
        libsplit_error error = LIBSPLIT_ERROR_INIT;
        params.axis = 5;
        CHECK_EQ_INT(library.count(&input, &params, &count, &error), LIBSPLIT_STATUS_ERROR_AXIS);
        unload(&library, path);
        /* The message is the caller's, and outlives the library. */
        CHECK(strstr(error.message, "axis") != NULL);
    }
}

/* A point that so many threads pass together: macOS has no pthread_barrier_t. */
struct barrier {
    pthread_mutex_t mutex;
    pthread_cond_t all_are_here;
    int threads, waiting, round;
};

static void set_up(struct barrier *barrier, int threads) {
    *barrier = (struct barrier){.threads = threads};
    if (pthread_mutex_init(&barrier->mutex, NULL) != 0 ||
        pthread_cond_init(&barrier->all_are_here, NULL) != 0)
        abort();
}

static void pass(struct barrier *barrier) {
    pthread_mutex_lock(&barrier->mutex);
    int round = barrier->round;
    if (++barrier->waiting == barrier->threads) {
        barrier->waiting = 0;
        barrier->round++;
        pthread_cond_broadcast(&barrier->all_are_here);
    }
    while (round == barrier->round)
        pthread_cond_wait(&barrier->all_are_here, &barrier->mutex);
    pthread_mutex_unlock(&barrier->mutex);
}

static void tear_down(struct barrier *barrier) {
    pthread_cond_destroy(&barrier->all_are_here);
    pthread_mutex_destroy(&barrier->mutex);
}

/* A pool of threads that live on between calls and take turns at the tasks. */
struct pool {
    pthread_t threads[THREADS];
    struct barrier begin, end;
    libsplit_task_fn task; /* NULL = end */
    void *task_ctx;
    size_t count;
    atomic_size_t next;
    atomic_int tasks_run;
};

static void *run_tasks(void *data) {
    struct pool *pool = data;
    for (;;) {
        pass(&pool->begin);
        if (pool->task == NULL)
            return NULL;
        for (size_t i; (i = atomic_fetch_add(&pool->next, 1)) < pool->count;) {
            pool->task(pool->task_ctx, i);
            atomic_fetch_add(&pool->tasks_run, 1);
        }
        pass(&pool->end);
    }
}

static int32_t run_on_pool(void *data, libsplit_task_fn task, void *task_ctx, size_t count) {
    struct pool *pool = data;
    pool->task = task;
    pool->task_ctx = task_ctx;
    pool->count = count;
    atomic_store(&pool->next, 0);
    pass(&pool->begin);
    pass(&pool->end);
    return 0;
}

static void start(struct pool *pool) {
    atomic_init(&pool->next, 0);
    atomic_init(&pool->tasks_run, 0);
    set_up(&pool->begin, THREADS + 1);
    set_up(&pool->end, THREADS + 1);
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&pool->threads[t], NULL, run_tasks, pool) != 0)
            abort();
}

static void stop(struct pool *pool) {
    pool->task = NULL;
    pass(&pool->begin);
    for (int t = 0; t < THREADS; t++)
        pthread_join(pool->threads[t], NULL);
    tear_down(&pool->begin);
    tear_down(&pool->end);
}

/* Copies the two halves of 4 MB, packed or with strides, on the threads of a pool. */
static int copies_on(struct pool *pool, const struct library *library, int backwards) {
    enum { HALF = 1 << 19, ALL = 2 * HALF };
    int32_t *source = allocate(ALL * sizeof *source), *target = allocate(ALL * sizeof *target);
    int64_t extent = ALL, half = HALF, stride = backwards ? -1 : 1;
    for (int32_t i = 0; i < ALL; i++)
        source[i] = i;
    libsplit_tensor input =
        packed(LIBSPLIT_DTYPE_INT32, source + (backwards ? ALL - 1 : 0), 1, &extent);
    libsplit_tensor outputs[] = {packed(LIBSPLIT_DTYPE_INT32, target, 1, &half),
                                 packed(LIBSPLIT_DTYPE_INT32, target + HALF, 1, &half)};
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(run_on_pool, pool);
    input.strides = &stride;
    params.num_outputs = 2;
    int works = library->copy(&input, &params, outputs, 2, &executor, NULL) == LIBSPLIT_STATUS_OK;
    for (int32_t i = 0; i < ALL; i++)
        works &= target[i] == (backwards ? ALL - 1 - i : i);
    free(source);
    free(target);
    return works;
}

/* The threads that ran tasks are still there when the library is unloaded. */
static void test_unload_after_copies_on_a_pool(const char *path) {
    struct pool pool;
    start(&pool);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_CASE("pool, round %d", round);
        struct library library = load(path);
        CHECK(copies_on(&pool, &library, 0));
        CHECK(copies_on(&pool, &library, 1));
        unload(&library, path);
    }
    CHECK(atomic_load(&pool.tasks_run) >= 2 * 2 * ROUNDS);
    stop(&pool);
}

/* A thread that uses the library, and lives until it is told to end. */
struct user {
    const struct library *library;
    int works;
    struct barrier used, may_end;
};

static void *use(void *data) {
    struct user *user = data;
    user->works = all_functions_work(user->library);
    pass(&user->used);
    pass(&user->may_end);
    return NULL;
}

static void test_unload_after_use_on_another_thread(const char *path, int thread_outlives) {
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_CASE("thread %s, round %d", thread_outlives ? "lives on" : "has ended", round);
        struct library library = load(path);
        struct user user = {.library = &library};
        pthread_t thread;
        set_up(&user.used, 2);
        set_up(&user.may_end, 2);
        if (pthread_create(&thread, NULL, use, &user) != 0)
            abort();
        pass(&user.used);
        if (thread_outlives)
            unload(&library, path);
        pass(&user.may_end);
        pthread_join(thread, NULL);
        if (!thread_outlives)
            unload(&library, path);
        CHECK(user.works);
        tear_down(&user.used);
        tear_down(&user.may_end);
    }
}

int main(int argc, char **argv) {
    CHECK_START();
    if (argc != 2) {
        fprintf(stderr, "usage: %s path-of-the-library\n", argv[0]);
        return 2;
    }
    char *path = full_path(argv[1]);
    if (path == NULL) {
        perror(argv[1]);
        return 2;
    }
    CHECK_CASE("before");
    CHECK(!is_mapped(path));
    test_load_and_unload(path);
    test_unload_after_an_error(path);
    test_unload_after_use_on_another_thread(path, 0);
    test_unload_after_use_on_another_thread(path, 1);
    test_unload_after_copies_on_a_pool(path);
    free(path);
    CHECK_DONE();
}
