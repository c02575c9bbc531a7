// mdspan.cpp - inputs made from std::mdspan, and pieces as std::mdspan; for standard libraries that
// have it
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check.hpp"

#include <array>

#ifndef __cpp_lib_mdspan
#error "this standard library has no std::mdspan"
#endif

int main() {
    using libsplit::split;
    std::array<float, 24> numbers{};
    for (std::size_t i = 0; i < numbers.size(); i++)
        numbers[i] = static_cast<float>(i);
    const split halves = split::openvino().axis(1).parts(2);

    // Row-major, column-major, with strides, with fixed and unknown extents, const or not.
    const std::mdspan<float, std::extents<int, 4, 6>> right(numbers.data());
    const std::mdspan left(numbers.data(), std::layout_left::mapping(std::dextents<long, 2>(4, 6)));
    const std::layout_stride::mapping every_second(std::dextents<std::size_t, 2>(3, 2),
                                                   std::array{8, 2});
    const std::mdspan<const float, std::dextents<std::size_t, 2>, std::layout_stride> strided(
        numbers.data(), every_second);
    CHECK_TEXT(check::text(check::elements<const float>((*halves.try_view(right))[1])),
               "3 4 5 9 10 11 15 16 17 21 22 23");
    CHECK_TEXT(check::text(check::elements<const float>((*halves.try_view(left))[1])),
               "12 16 20 13 17 21 14 18 22 15 19 23");
    CHECK_TEXT(check::text(check::elements<const float>((*halves.try_view(strided))[1])),
               "2 10 18");

    // Pieces, if their type, rank and strides can be those of a std::mdspan.
    const auto pieces = *halves.try_view(right);
    const auto piece = pieces[1].mdspan<float, 2>();
    CHECK(piece.extent(0) == 4 && piece.extent(1) == 3 && piece.stride(0) == 6);
    CHECK(&piece[std::array{2, 1}] == &numbers[16]);
    CHECK(pieces[1].mdspan<const float, 2>().size() == 12);
    CHECK(pieces[1].mdspan<float, 1>().empty() && pieces[1].mdspan<int, 2>().empty());
    const libsplit::input backwards(numbers.data() + 23, {24}, {-1});
    CHECK((*split::openvino().parts(2).try_view(backwards))[0].mdspan<float, 1>().empty());
    const auto inferred = *halves.try_infer(right);
    CHECK(inferred[0].mdspan<float, 2>().data_handle() == nullptr);
    const libsplit::input none(numbers.data(), {0, 6});
    CHECK((*halves.try_view(none))[1].mdspan<float, 2>().extent(1) == 3);
    const auto scalars =
        *split::to_sequence().keepdims(false).try_view(libsplit::input(numbers.data(), {24}));
    CHECK((scalars[7].mdspan<float, 0>()[std::array<int, 0>{}]) == 7.0F);
    return check::done();
}
