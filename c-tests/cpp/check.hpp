// check.hpp - what the C++ test programs use
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef CHECK_HPP
#define CHECK_HPP

#include <libsplit.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace check {

inline int count, failures;

inline bool holds(bool condition, const char *text, const char *file, int line) {
    count++;
    if (condition)
        return true;
    failures++;
    std::fprintf(stderr, "%s:%d: %s does not hold\n", file, line, text);
    return false;
}

inline void equal(const std::string &actual, const std::string &expected, const char *text,
                  const char *file, int line) {
    if (!holds(actual == expected, text, file, line))
        std::fprintf(stderr, "  \"%s\", not \"%s\"\n", actual.c_str(), expected.c_str());
}

// Joins numbers of any type: "3 4".
template <class Range> std::string text(const Range &numbers) {
    std::string text;
    for (const auto number : numbers) {
        text.append(text.empty() ? "" : " ");
        text.append(std::to_string(static_cast<long long>(number)));
    }
    return text;
}

// The extents of an axis, piece by piece.
template <class Pieces> std::string extents(const Pieces &pieces, std::size_t axis = 0) {
    std::vector<std::int64_t> all;
    for (const libsplit::piece &piece : pieces)
        all.push_back(piece.shape()[axis]);
    return text(all);
}

// The elements in row-major order, by the piece's own strides.
template <class T> std::vector<std::remove_const_t<T>> elements(const libsplit::piece &piece) {
    std::vector<std::remove_const_t<T>> all;
    std::vector<std::int64_t> index(piece.shape().size(), 0);
    for (std::size_t left = piece.size(); left > 0; left--) {
        std::int64_t at = 0, step = 1;
        for (std::size_t axis = index.size(); axis-- > 0;) {
            at += index[axis] * (piece.strides().empty() ? step : piece.strides()[axis]);
            step *= piece.shape()[axis];
        }
        all.push_back(piece.data<T>()[at]);
        for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == piece.shape()[axis];)
            index[axis] = 0;
    }
    return all;
}

// The end of main(). A program that checked nothing has not passed.
inline int done() {
    std::printf("%d checks, %d failed\n", count, failures);
    return failures != 0 || count == 0;
}

} // namespace check

#define CHECK(...) check::holds(!!(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define CHECK_TEXT(actual, expected) check::equal(actual, expected, #actual, __FILE__, __LINE__)
// What failed, and how.
#define CHECK_FAILS(call, code)                                                                    \
    do {                                                                                           \
        const auto &failed = call;                                                                 \
        CHECK(!failed);                                                                            \
        CHECK_TEXT(libsplit::name(failed.error().status()), libsplit::name(code));                 \
        CHECK(failed.error().what()[0] != '\0');                                                   \
    } while (0)

#endif
