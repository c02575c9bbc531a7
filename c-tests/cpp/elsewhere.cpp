// elsewhere.cpp - a second file of split.cpp's program that includes the header, twice
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#include <libsplit.hpp>
#include <libsplit.hpp>

std::size_t count_elsewhere(const libsplit::split &split, const libsplit::input &x) {
    const auto count = split.try_count(x);
    return count ? *count : 0;
}
