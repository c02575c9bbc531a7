// no_allocation.cpp - libsplit.hpp allocates where it says so, and nowhere else
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check.hpp"

#include <array>
#include <cstdlib>

namespace {

std::size_t allocations;
bool fails; // pretends that there is no memory left

void *allocate(std::size_t bytes) noexcept {
    allocations++;
    return fails ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

void *allocate_or_end(std::size_t bytes) noexcept {
    void *const memory = allocate(bytes);
    if (memory == nullptr)
        std::abort();
    return memory;
}

} // namespace

void *operator new(std::size_t bytes) { return allocate_or_end(bytes); }
void *operator new[](std::size_t bytes) { return allocate_or_end(bytes); }
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept { return allocate(bytes); }
void *operator new[](std::size_t bytes, const std::nothrow_t &) noexcept { return allocate(bytes); }
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }

namespace {

// Returns how often 'act' allocates.
template <class Act> std::size_t allocations_of(Act act) {
    const std::size_t before = allocations;
    act();
    return allocations - before;
}

float numbers[512 * 1024], left[512 * 512], right[512 * 512];
const std::int64_t half[] = {512, 512};

void nothing_is_allocated() {
    using libsplit::output;
    const auto act = [] {
        const libsplit::input x(numbers, {512, 1024});
        const libsplit::input same(x);
        const auto halves = libsplit::split::onnx(18).axis(1).parts(2);
        const auto list = halves.parts(0).lengths({512, 512});
        CHECK(halves.try_count(x) && list.try_count(same));

        std::array<libsplit::piece, 2> outputs;
        std::array<std::int64_t, libsplit::outputs_ints(2, 2)> ints{};
        CHECK(libsplit::outputs_init(outputs, ints, 2));
        CHECK(list.try_infer(x, outputs) && list.try_view(x, outputs));
        CHECK(outputs[1].data<const float>() == numbers + 512);
        CHECK(!outputs[1].packed() && outputs[1].values<float>().empty());

        CHECK(list.try_copy(x, {{left, half}, {right, half}}));
        const output there[] = {{left, half}, {}};
        CHECK(list.try_copy(x, there));
        std::size_t tasks = 0;
        const auto in_order = [&](std::size_t count, libsplit::task task) {
            for (tasks = 0; tasks < count; tasks++)
                task(tasks);
        };
        const output all[] = {{left, half}, {right, half}};
        CHECK(list.try_copy(x, all, in_order) && tasks > 1);
        CHECK(list.try_copy(x, all, libsplit::executor{in_order, 4U}));
        CHECK(list.try_copy(x, all, libsplit::calling_thread{LIBSPLIT_FLAG_NEVER_STREAM}));

        // Nor do errors.
        CHECK(!list.axis(0).try_view(x, outputs));
        CHECK(!list.try_copy(x, {output(), output(), output()}));
        const auto failed = list.axis(2).try_count(x);
        const libsplit::error error = failed.error();
        CHECK(error.what()[0] != '\0');
    };
    CHECK(allocations_of(act) == 0);
}

void pieces_are_allocated_at_once_and_kept() {
    const libsplit::input x(numbers, {512, 1024});
    const auto halves = libsplit::split::onnx(18).axis(1).parts(2);
    CHECK(allocations_of([&] { CHECK(halves.try_view(x)); }) == 1);
    CHECK(allocations_of([&] { CHECK(halves.try_infer(x)); }) == 1);
    const auto give = [](std::size_t index, const libsplit::piece &) {
        return index == 0 ? left : right;
    };
    CHECK(allocations_of([&] { CHECK(halves.try_copy(x, give)); }) == 1);

    libsplit::pieces pieces;
    CHECK(allocations_of([&] { CHECK(pieces.try_reserve(4, 2)); }) == 1);
    CHECK(allocations_of([&] {
              for (const std::int64_t parts : {2, 4, 1})
                  CHECK(halves.parts(parts).try_view(x, pieces));
              CHECK(halves.try_infer(x, pieces));
              libsplit::pieces moved = std::move(pieces);
              pieces = std::move(moved);
          }) == 0);
    CHECK(allocations_of([&] { CHECK(halves.parts(5).try_view(x, pieces)); }) == 1);
}

void plans_are_allocated_at_once() {
    const libsplit::input x(numbers, {512, 1024});
    const auto halves = libsplit::split::onnx(18).axis(1).parts(2);
    libsplit::plan plan;
    CHECK(allocations_of([&] { plan = *halves.try_plan(x); }) == 1);
    CHECK(allocations_of([&] {
              void *pieces[2];
              CHECK(plan.try_view(numbers, pieces) && pieces[1] == numbers + 512);
              CHECK(plan.try_copy(numbers, {left, right}));
              CHECK(!plan.try_copy(numbers, {left, left}));
          }) == 0);
}

void many_lengths_are_allocated() {
    std::array<int, 17> lengths{};
    lengths[0] = 1024;
    const libsplit::input x(numbers, {512, 1024});
    const auto columns = libsplit::split::variadic().axis(1);
    const libsplit::span<const int> few(lengths.data(), 16);
    CHECK(allocations_of([&] { CHECK(*columns.lengths(few).try_count(x) == 16); }) == 0);
    CHECK(allocations_of([&] { CHECK(*columns.lengths(lengths).try_count(x) == 17); }) > 0);
}

void memory_may_run_out() {
    const libsplit::input x(numbers, {512, 1024});
    const auto halves = libsplit::split::onnx(18).axis(1).parts(2);
    fails = true;
    const auto viewed = halves.try_view(x);
    libsplit::pieces pieces;
    const auto reserved = pieces.try_reserve(1, 1);
    const auto planned = halves.try_plan(x);
    fails = false;
    CHECK_FAILS(planned, libsplit::status::out_of_memory);
    CHECK_FAILS(viewed, libsplit::status::out_of_memory);
    CHECK_FAILS(reserved, libsplit::status::out_of_memory);
    CHECK(pieces.empty() && halves.try_view(x, pieces) && pieces.size() == 2);
}

} // namespace

int main() {
    nothing_is_allocated();
    pieces_are_allocated_at_once_and_kept();
    plans_are_allocated_at_once();
    many_lengths_are_allocated();
    memory_may_run_out();
    return check::done();
}
