// qkv - splits one matrix product into queries, keys and values, in place
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Attention with grouped queries: 4 heads of queries share 2 heads of keys and values. A model
// computes all three in one product and splits its last axis: (4 + 2 + 2) x 8 columns into 32, 16
// and 16. Here they are split without a copy, first into the projections and then into heads, and
// every head's scores are compared with those of projections that were never fused.
#include <libsplit.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

constexpr std::size_t tokens = 5, width = 12, head_dim = 8, q_heads = 4, kv_heads = 2;
constexpr std::size_t q_columns = q_heads * head_dim, kv_columns = kv_heads * head_dim;
constexpr std::size_t columns = q_columns + 2 * kv_columns;

using matrix = std::vector<float>; // row-major

matrix numbers(std::size_t rows, std::size_t row_columns, unsigned seed) {
    matrix all(rows * row_columns);
    for (float &value : all) {
        seed = seed * 1664525U + 1013904223U;
        value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 24) - 0.5F;
    }
    return all;
}

// x (tokens x width) times w (width x row_columns).
matrix product(const matrix &x, const matrix &w, std::size_t row_columns) {
    matrix y(tokens * row_columns, 0.0F);
    for (std::size_t t = 0; t < tokens; t++)
        for (std::size_t i = 0; i < width; i++)
            for (std::size_t c = 0; c < row_columns; c++)
                y[t * row_columns + c] += x[t * width + i] * w[i * row_columns + c];
    return y;
}

// Sum over the head's columns of one token's query times another's key.
float score(const libsplit::piece &q, const libsplit::piece &k, std::size_t i, std::size_t j) {
    const float *query = q.data<const float>() + static_cast<std::int64_t>(i) * q.strides()[0];
    const float *key = k.data<const float>() + static_cast<std::int64_t>(j) * k.strides()[0];
    float sum = 0.0F;
    for (std::size_t d = 0; d < head_dim; d++)
        sum += query[d] * key[d];
    return sum;
}

void show(const char *name, const libsplit::piece &piece) {
    std::printf("%s  shape %lld x %lld, strides %lld and %lld, %s\n", name,
                static_cast<long long>(piece.shape()[0]), static_cast<long long>(piece.shape()[1]),
                static_cast<long long>(piece.strides()[0]),
                static_cast<long long>(piece.strides()[1]),
                piece.packed() ? "packed" : "a view of the product");
}

} // namespace

int main() {
    try {
        // The three weights, and the same side by side, as the model stores them.
        const matrix x = numbers(tokens, width, 1), wq = numbers(width, q_columns, 2),
                     wk = numbers(width, kv_columns, 3), wv = numbers(width, kv_columns, 4);
        matrix fused(width * columns);
        const auto projections =
            libsplit::split::onnx(18).axis(-1).lengths({q_columns, kv_columns, kv_columns});
        // Joining needs no other operator: the places of a split are filled one by one.
        const auto places = projections.view(libsplit::input(fused, {width, columns}));
        const auto all = libsplit::split::openvino().parts(1);
        all.copy({wq, {width, q_columns}}, {places[0]});
        all.copy({wk, {width, kv_columns}}, {places[1]});
        all.copy({wv, {width, kv_columns}}, {places[2]});

        const matrix y = product(x, fused, columns);
        const auto qkv = projections.view(libsplit::input(y, {tokens, columns}));
        show("q", qkv[0]);
        show("k", qkv[1]);
        show("v", qkv[2]);

        // A piece is an input again: split it into heads, as well as the separate projections.
        const auto q_split = libsplit::split::openvino().axis(1).parts(q_heads);
        const auto kv_split = q_split.parts(kv_heads);
        const matrix q_alone = product(x, wq, q_columns), k_alone = product(x, wk, kv_columns);
        const auto q = q_split.view(qkv[0]), k = kv_split.view(qkv[1]);
        const auto expected_q = q_split.view({q_alone, {tokens, q_columns}});
        const auto expected_k = kv_split.view({k_alone, {tokens, kv_columns}});

        float largest = 0.0F;
        for (std::size_t head = 0; head < q_heads; head++) {
            const std::size_t group = head / (q_heads / kv_heads);
            for (std::size_t i = 0; i < tokens; i++)
                for (std::size_t j = 0; j <= i; j++)
                    largest = std::fmax(
                        largest, std::fabs(score(q[head], k[group], i, j) -
                                           score(expected_q[head], expected_k[group], i, j)));
        }
        std::printf("scores of %zu heads: largest difference from separate projections %g\n",
                    q_heads, static_cast<double>(largest));

        // A copy of v, for a product that needs it packed.
        const matrix v_alone = product(x, wv, kv_columns);
        matrix v(tokens * kv_columns);
        projections.copy({y, {tokens, columns}}, {{}, {}, v});
        std::printf("v copied: %s\n", v == v_alone ? "as projected alone" : "WRONG");
        return largest == 0.0F && v == v_alone ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "qkv: %s\n", error.what());
        return 1;
    }
}
