// mixed.cpp - files with exceptions and files without, as in one program with libraries of both
// kinds
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// This file is compiled twice, with -fno-exceptions and without, and linked into one program, in
// which both halves use libsplit.hpp with the same types. If the linker took one's classes for the
// other's, they would overwrite memory.
#include <libsplit.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

// The same type in both halves.
struct in_order {
    void operator()(std::size_t count, libsplit::task task) const {
        for (std::size_t i = 0; i < count; i++)
            task(i);
    }
};

static int copies_right() {
    constexpr std::size_t rows = 1000, columns = 1000;
    std::vector<std::int32_t> data(rows * columns);
    std::vector<std::int32_t> left(data.size() / 2), right(data.size() / 2);
    for (std::size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<std::int32_t>(i);
    const auto halves = libsplit::split::onnx(18).axis(1).parts(2);
    const auto done = halves.try_copy({data, {rows, columns}}, {left, right}, in_order{});
    if (!done)
        std::fprintf(stderr, "%s\n", done.error().what());
    for (std::size_t i = 0; i < left.size() && done; i++) {
        const std::size_t at = i / (columns / 2) * columns + i % (columns / 2);
        if (left[i] != data[at] || right[i] != data[at + columns / 2])
            return 1;
    }
    return done ? 0 : 1;
}

int copies_without_exceptions();
#if LIBSPLIT_HPP_THROWS
int main() {
    const int with = copies_right(), without = copies_without_exceptions();
    std::printf("with exceptions: %s, without: %s\n", with ? "wrong" : "right",
                without ? "wrong" : "right");
    return with || without;
}
#else
int copies_without_exceptions() { return copies_right(); }
#endif
