/*
 * pool_std_thread.cpp - libsplit on a pool of std::thread
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A call is posted for all threads to see; its caller and every idle thread take one task number
 * after another from it. No call waits for a thread to become free, so calls may come at any time,
 * also from within tasks. Threads look for the next call for a short while before they sleep.
 */
#include "pools.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr int looks = 4000; // a few microseconds

struct Call {
    libsplit_task_fn task;
    void *task_ctx;
    size_t count;
    std::atomic<size_t> next{0};
    std::atomic<int> helpers{0}; // changes only under the pool's lock

    void take_part() {
        for (size_t i; (i = next.fetch_add(1)) < count;)
            task(task_ctx, i);
    }
};

class Pool {
  public:
    explicit Pool(uint32_t threads) {
        try {
            for (uint32_t i = 1; i < threads; i++)
                helpers.emplace_back([this] { help(); });
        } catch (...) {
            stop();
            throw;
        }
    }
    ~Pool() { stop(); }

    void run(Call &call) {
        {
            std::lock_guard<std::mutex> guard(lock);
            calls.push_back(&call);
            posts++;
        }
        posted.notify_all();
        call.take_part();
        std::unique_lock<std::mutex> guard(lock);
        calls.erase(std::find(calls.begin(), calls.end(), &call));
        guard.unlock(); // From here on the call only loses helpers.
        for (int i = 0; i < looks; i++)
            if (call.helpers == 0)
                return;
        guard.lock();
        left.wait(guard, [&] { return call.helpers == 0; });
    }

  private:
    void help() {
        std::unique_lock<std::mutex> guard(lock);
        while (!stopping) {
            auto open = [](Call *call) { return call->next < call->count; };
            auto found = std::find_if(calls.begin(), calls.end(), open);
            if (found != calls.end()) {
                Call &call = **found;
                call.helpers++;
                guard.unlock();
                call.take_part();
                guard.lock();
                if (--call.helpers == 0) // After this the call may be gone.
                    left.notify_all();
                continue;
            }
            unsigned seen = posts;
            guard.unlock();
            for (int i = 0; i < looks && posts == seen; i++) {
            }
            guard.lock();
            posted.wait(guard, [&] { return posts != seen; });
        }
    }

    void stop() {
        {
            std::lock_guard<std::mutex> guard(lock);
            stopping = true;
            posts++;
        }
        posted.notify_all();
        for (std::thread &helper : helpers)
            helper.join();
    }

    std::mutex lock;
    std::condition_variable posted, left;
    std::vector<Call *> calls;
    std::atomic<unsigned> posts{0}; // grows under the lock
    bool stopping = false;
    std::vector<std::thread> helpers;
};

int32_t parallel_for(void *pool, libsplit_task_fn task, void *task_ctx, size_t count) {
    try {
        Call call{task, task_ctx, count};
        static_cast<Pool *>(pool)->run(call);
        return 0;
    } catch (...) { // No exception may leave this function.
        return -1;
    }
}

} // namespace

bool pool_open(libsplit_executor *executor, uint32_t threads) try {
    *executor = LIBSPLIT_EXECUTOR_INIT(parallel_for, new Pool(threads));
    executor->max_tasks = threads;
    return true;
} catch (...) {
    return false;
}

void pool_close(libsplit_executor *executor) { delete static_cast<Pool *>(executor->pool); }
