// refused.cpp - what libsplit.hpp must not let compile, one case at a time; run by refused.py
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Each case begins with "// case:" and words that the compiler's message must contain.
#include <libsplit.hpp>

#include <array>
#include <cstdint>
#include <vector>

struct half {
    std::uint16_t bits;
};

using libsplit::dtype;
using libsplit::input;
using libsplit::output;
using libsplit::piece;
using libsplit::split;

const float *read_only();
float *address();
void *untyped();
std::vector<float> made();
std::array<float, 8> made_array();
libsplit::input an_input();
libsplit::pieces some_pieces();
const split halves = split::onnx(18).axis(1).parts(2);
std::vector<float> left(4), right(4);
std::vector<half> halves_of_numbers(8);
const std::vector<float> constant(8);
const input x(constant, {2, 4});

void refused() {
    // case: put the shape in braces
    input rows(read_only(), 2, 4);
    // case: put the shape in braces
    input elements(constant, 2, 4);
    // case: put the shape in braces
    input any(dtype::float32, read_only(), 2, 4);
    // case: put the shape in braces
    input list(read_only(), 8);
    // case: give the dtype first
    input no_type(untyped(), {2, 4});
    // case: a temporary
    input gone(made(), {2, 4});
    // case: a temporary
    input gone_array(made_array(), {2, 4});
    // case: a temporary
    input gone_list(made());
    // case: a temporary
    halves.view(made());
    // case: const elements, or a temporary
    output read_only_elements(constant);
    // case: const elements, or a temporary
    output gone_output(made());
    // case: const, or dtype is missing
    output read_only_output(read_only(), {2, 2});
    // case: their dtype first
    output no_type_output(untyped());
    // case: put the shape in braces
    output counted(address(), 2, 2);
    // case: deleted
    halves.copy(x, {left, constant});
    // case: deleted
    piece no_shape = some_pieces()[1];
    // case: name the pieces
    const piece *first = some_pieces().begin();
    // case: name the pieces
    const piece *data = some_pieces().data();
    // case: name the shape
    const std::int64_t *shape = halves.view(x)[1].shape().data();
    // case: put the lengths in braces
    const auto two_lengths = split::variadic().lengths(2, 4);
    // case: which would be gone: name it
    const auto gone_lengths = split::variadic().lengths_tensor(an_input());
    // case: pass an integer
    const auto half_axis = split::onnx(18).axis(0.5);
    // case: pass an integer
    const auto true_parts = split::onnx(18).parts(true);
    // case: pass an integer
    input broken_shape(read_only(), {2.0, 4.0});
    // case: specialise libsplit::dtype_of
    input unknown(halves_of_numbers, {2, 4});
    // case: specialise libsplit::dtype_of
    input unknown_list(halves_of_numbers);
    // case: specialise libsplit::dtype_of
    output unknown_output(halves_of_numbers);
    // case: no element type is known for this C++ type
    input pointers(&left, {1});
}
