// executors.cpp - copies on all kinds of pools, and what these throw
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// With WITH_TBB also on oneTBB's threads, in two ways; with OpenMP on OpenMP's.
#include "check.hpp"

#include <cstring>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#ifdef WITH_TBB
#include <execution>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace {

using libsplit::output;
using libsplit::split;

constexpr std::size_t rows = 1024, columns = 512;
const std::int64_t shape[] = {std::int64_t{rows}, std::int64_t{columns}};
std::vector<float> input_data(rows * columns * 3), pieces_data(input_data.size());

const libsplit::input &x() {
    static const libsplit::input input(input_data, {rows, 3 * columns});
    return input;
}
const split thirds = split::openvino().axis(1).parts(3);

// Clears the outputs, copies, and compares.
template <class Executor> bool copies(Executor &&executor) {
    std::vector<output> outputs;
    std::fill(pieces_data.begin(), pieces_data.end(), -1.0F);
    for (std::size_t i = 0; i < 3; i++)
        outputs.emplace_back(&pieces_data[i * rows * columns], shape);
    if (!thirds.try_copy(x(), outputs, executor))
        return false;
    for (std::size_t piece = 0; piece < 3; piece++)
        for (std::size_t row = 0; row < rows; row++)
            for (std::size_t column = 0; column < columns; column++)
                if (pieces_data[(piece * rows + row) * columns + column] !=
                    input_data[(row * 3 + piece) * columns + column])
                    return false;
    return true;
}

// The simplest pool there is.
class pool {
  public:
    explicit pool(std::size_t width) {
        for (std::size_t i = 0; i < width; i++)
            threads_.emplace_back([this] { work(); });
    }
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;
    ~pool() {
        for (std::size_t i = 0; i < threads_.size(); i++)
            put({});
        for (std::thread &thread : threads_)
            thread.join();
    }

    template <class Act> std::future<void> submit(Act act) {
#if LIBSPLIT_HPP_THROWS
        if (refuse_after > 0 && --refuse_after == 0)
            throw std::runtime_error("the pool is closed");
#endif
        auto job = std::make_shared<std::packaged_task<void()>>(act);
        put([job] { (*job)(); });
        return job->get_future();
    }

    std::size_t refuse_after = 0; // 0: never

  private:
    void put(std::function<void()> job) {
        const std::lock_guard<std::mutex> guard(lock_);
        jobs_.push_back(std::move(job));
        posted_.notify_one();
    }
    void work() {
        while (true) {
            std::unique_lock<std::mutex> guard(lock_);
            posted_.wait(guard, [this] { return !jobs_.empty(); });
            const std::function<void()> job = std::move(jobs_.front());
            jobs_.pop_front();
            guard.unlock();
            if (!job)
                return;
            job();
        }
    }

    std::mutex lock_;
    std::condition_variable posted_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
};

void on_pools(pool &threads) {
    CHECK(copies(libsplit::calling_thread{}));
    CHECK(copies(libsplit::calling_thread{LIBSPLIT_FLAG_OUTPUTS_READ_NEXT}));
    CHECK(!copies(libsplit::calling_thread{1U << 31}));

    CHECK(copies(libsplit::submit_to(threads)));
    CHECK(copies(libsplit::executor{libsplit::submit_to(threads), 2}));
    std::size_t width = 0;
    const auto counting = [&](std::size_t count, libsplit::task task) {
        width = count;
        for (std::size_t i = count; i > 0; i--)
            task(i - 1);
    };
    CHECK(copies(counting) && width > 2);
    CHECK(copies(libsplit::executor{counting, 2}) && width > 0);
    CHECK(!copies(libsplit::executor{counting, 2, 1U << 31}));
    // As libsplit.h has them.
    libsplit_executor plain = LIBSPLIT_EXECUTOR_INIT(
        [](void *counted, libsplit_task_fn task, void *context, std::size_t count) {
            *static_cast<std::size_t *>(counted) = count;
            for (std::size_t i = 0; i < count; i++)
                task(context, i);
            return std::int32_t{0};
        },
        &width);
    width = 0;
    CHECK(copies(plain) && width > 0);
    CHECK(copies(std::as_const(plain)));
#ifdef _OPENMP
    CHECK(copies(libsplit::openmp{}));
    CHECK(copies(libsplit::openmp{3}));
#endif
#ifdef WITH_TBB
    const auto on_tbb = [](std::size_t count, libsplit::task task) {
        tbb::parallel_for(std::size_t{0}, count, task);
    };
    CHECK(copies(on_tbb));
    tbb::task_arena arena(2);
    CHECK(copies([&](std::size_t count, libsplit::task task) {
        arena.execute([&] { tbb::parallel_for(std::size_t{0}, count, task); });
    }));
    CHECK(copies(libsplit::std_execution{std::execution::par}));
    CHECK(copies(libsplit::std_execution{std::execution::seq}));
#endif
}

// Many threads share one pool, one split and one input.
void at_a_time(pool &threads) {
    std::vector<std::thread> callers;
    std::vector<std::vector<float>> results(4);
    std::vector<char> right(results.size(), 0);
    for (std::size_t i = 0; i < results.size(); i++)
        callers.emplace_back([&, i] {
            results[i].resize(rows * columns);
            const output outputs[] = {{}, {results[i].data(), shape}, {}};
            right[i] = bool(thirds.try_copy(x(), outputs, libsplit::submit_to(threads)));
        });
    for (std::thread &caller : callers)
        caller.join();
    for (std::size_t i = 0; i < results.size(); i++)
        CHECK(right[i] && results[i] == results[0] && results[i][columns] == 4 * columns);
}

void failing(pool &threads) {
    const auto none = [](std::size_t, libsplit::task) {};
    const output outputs[] = {{pieces_data.data(), shape}, {}, {}};
    CHECK_FAILS(thirds.try_copy(x(), outputs, none), libsplit::status::executor);
    CHECK(std::strncmp(thirds.try_copy(x(), outputs, none).error().what(), "the executor ", 13) ==
          0);
#if LIBSPLIT_HPP_THROWS
    const auto throwing = [](std::size_t, libsplit::task) { throw std::runtime_error("no"); };
    CHECK_FAILS(thirds.try_copy(x(), outputs, throwing), libsplit::status::executor);
    const auto thrown = [&](auto &&executor) -> std::string {
        try {
            thirds.copy(x(), outputs, executor);
        } catch (const libsplit::error &error) {
            return libsplit::name(error.status());
        } catch (const std::runtime_error &error) {
            return error.what();
        }
        return "nothing";
    };
    const auto plan = thirds.plan(x(), outputs);
    const auto throws = [&](auto act) {
        try {
            act();
        } catch (const std::runtime_error &error) {
            return std::string(error.what()) == "no";
        }
        return false;
    };
    CHECK(throws(
        [&] { plan.copy(input_data.data(), {pieces_data.data(), nullptr, nullptr}, throwing); }));
    CHECK_TEXT(thrown(none), "LIBSPLIT_STATUS_ERROR_EXECUTOR");
    CHECK_TEXT(thrown(throwing), "no");
    CHECK_TEXT(thrown(libsplit::executor{throwing, 3}), "no");
    CHECK_TEXT(thrown(libsplit::submit_to(threads)), "nothing");
    for (const std::size_t after : {1U, 2U}) {
        threads.refuse_after = after;
        CHECK_TEXT(thrown(libsplit::submit_to(threads)), "the pool is closed");
    }
    // What went wrong earlier is thrown as it is, and the pool is not called.
    threads.refuse_after = 1;
    const output two[] = {{}, {}};
    bool refused = false;
    try {
        thirds.copy(x(), two, libsplit::submit_to(threads));
    } catch (const libsplit::error &error) {
        refused = error.status() == libsplit::status::num_outputs;
    }
    CHECK(refused && threads.refuse_after == 1);
    threads.refuse_after = 0;
#else
    (void)threads;
#endif
}

} // namespace

int main() {
    for (std::size_t i = 0; i < input_data.size(); i++)
        input_data[i] = static_cast<float>(i);
    pool threads(3);
    on_pools(threads);
    at_a_time(threads);
    failing(threads);
    return check::done();
}
