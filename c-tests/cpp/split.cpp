// split.cpp - libsplit.hpp: what every function returns, with exceptions and without
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check.hpp"

#include <array>
#include <numeric>

using libsplit::dtype;
using libsplit::input;
using libsplit::output;
using libsplit::piece;
using libsplit::split;
using libsplit::status;

// A half-precision type of the user's own.
struct half {
    std::uint16_t bits;
};
template <> struct libsplit::dtype_of<half> : libsplit::dtype_is<libsplit::dtype::float16> {};

// From the other file of this program, which also includes the header.
std::size_t count_elsewhere(const split &split, const input &x);

namespace {

std::vector<float> counting(std::size_t count) {
    std::vector<float> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    return numbers;
}

void element_types() {
    CHECK(libsplit::dtype_of<float>::value == dtype::float32);
    CHECK(libsplit::dtype_of<double>::value == dtype::float64);
    CHECK(libsplit::dtype_of<bool>::value == dtype::boolean);
    CHECK(libsplit::dtype_of<std::byte>::value == dtype::uint8);
    CHECK(libsplit::dtype_of<signed char>::value == dtype::int8);
    CHECK(libsplit::dtype_of<unsigned short>::value == dtype::uint16);
    CHECK(libsplit::dtype_of<long long>::value == dtype::int64);
    CHECK(libsplit::dtype_of<std::size_t>::value ==
          (sizeof(std::size_t) == 8 ? dtype::uint64 : dtype::uint32));
    CHECK(libsplit::dtype_of<std::complex<double>>::value == dtype::complex128);
    CHECK(libsplit::dtype_of<half>::value == dtype::float16);
    static_assert(!libsplit::detail::has_dtype<std::string>);
    CHECK_TEXT(libsplit::name(dtype::bfloat16), "BFLOAT16");
    CHECK_TEXT(libsplit::name(static_cast<dtype>(99)), "UNDEFINED");
    CHECK(libsplit::bits(dtype::int4) == 4);
    CHECK_TEXT(libsplit::name(status::split_sizes), "LIBSPLIT_STATUS_ERROR_SPLIT_SIZES");
    CHECK(libsplit::version() == libsplit_version());
    // Every number that libsplit knows has the name in libsplit.h, and the size that it says.
    for (int number = 1; number <= 26; number++)
        CHECK(libsplit::bits(static_cast<dtype>(number)) == libsplit_dtype_bits(number));
}

std::string lengths_of(const split &split, std::int64_t extent) {
    const auto pieces = split.try_infer({dtype::float32, {extent}});
    return pieces ? check::extents(*pieces) : libsplit::name(pieces.error().status());
}

void operators() {
    CHECK_TEXT(lengths_of(split::onnx(18).parts(3), 7), "3 3 1");
    CHECK_TEXT(lengths_of(split::onnx(18).parts(4), 5), "LIBSPLIT_STATUS_ERROR_SPLIT_SIZES");
    CHECK_TEXT(lengths_of(split::onnx(18).parts(4).clamp_uneven(), 5), "2 2 1 0");
    CHECK_TEXT(lengths_of(split::onnx(18).parts(4).clamp_uneven().clamp_uneven(false), 5),
               "LIBSPLIT_STATUS_ERROR_SPLIT_SIZES");
    CHECK_TEXT(lengths_of(split::onnx(13).parts(2), 6), "3 3");
    CHECK_TEXT(lengths_of(split::onnx(11).lengths({2, 4}), 6), "2 4");
    CHECK_TEXT(lengths_of(split::to_sequence().piece_length(3), 7), "3 3 1");
    CHECK_TEXT(lengths_of(split::to_sequence(11), 3), "1 1 1");
    CHECK_TEXT(lengths_of(split::to_sequence().lengths({0, 7}), 7), "0 7");
    CHECK_TEXT(lengths_of(split::to_sequence().lengths({}), 0), "");
    CHECK_TEXT(lengths_of(split::openvino().parts(2), 6), "3 3");
    CHECK_TEXT(lengths_of(split::openvino().parts(3), 7), "LIBSPLIT_STATUS_ERROR_SPLIT_SIZES");
    CHECK_TEXT(lengths_of(split::variadic().lengths({1, -1, 2}), 7), "1 4 2");

    // unbind: the axis is gone.
    const auto rows = split::to_sequence().keepdims(false).try_infer({dtype::int32, {2, 5}});
    CHECK(rows && rows->size() == 2);
    CHECK_TEXT(check::text((*rows)[1].shape()), "5");
    const auto scalars = split::to_sequence().keepdims(false).try_infer({dtype::int32, {2}});
    CHECK(scalars && scalars->size() == 2 && (*scalars)[0].shape().empty());
    CHECK((*scalars)[0].size() == 1 && (*scalars)[0].bytes() == 4);

    // Made from one that stays as it is.
    const split thirds = split::onnx(18).axis(-1).parts(3);
    const split columns = thirds.parts(2).keepdims(true);
    const auto halves = columns.try_infer({dtype::float32, {3, 4}});
    CHECK(halves && check::extents(*halves, 1) == "2 2");
    CHECK(count_elsewhere(thirds, {dtype::float32, {3, 4}}) == 3);
    CHECK(count_elsewhere(columns, {dtype::float32, {3, 4}}) == 2);
}

void lengths() {
    const std::vector<int> ints{2, 5};
    const std::array<std::size_t, 2> sizes{2, 5};
    const std::uint8_t bytes[] = {2, 5};
    const std::size_t n = 2;
    CHECK_TEXT(lengths_of(split::onnx(18).lengths(ints), 7), "2 5");
    CHECK_TEXT(lengths_of(split::onnx(18).lengths(sizes), 7), "2 5");
    CHECK_TEXT(lengths_of(split::onnx(18).lengths(bytes), 7), "2 5");
    CHECK_TEXT(lengths_of(split::onnx(18).lengths({n, n + 3}), 7), "2 5");

    // Too large for int64_t is too large, and not the -1 that its bits would be.
    const std::uint64_t huge[] = {2, ~std::uint64_t{0}};
    CHECK_FAILS(split::variadic().lengths(huge).try_count({dtype::float32, {7}}),
                status::split_sizes);

    // More than the object has room for; copies and moves have their own.
    std::vector<std::int64_t> many(40);
    std::iota(many.begin(), many.end(), 0);
    const std::int64_t sum = 39 * 40 / 2;
    split first = split::onnx(18).lengths(many);
    const split second = first;
    CHECK_TEXT(lengths_of(first, sum), check::text(many));
    first = std::move(first).lengths({1, 2});
    CHECK_TEXT(lengths_of(first, 3), "1 2");
    CHECK_TEXT(lengths_of(second, sum), check::text(many));
    const split third = std::move(first);
    CHECK_TEXT(lengths_of(third, 3), "1 2");

    // As in models: the rank and the type count.
    const std::int32_t two = 2;
    const input scalar(&two, {}), list(&two, {1});
    CHECK_TEXT(lengths_of(split::to_sequence().lengths_tensor(scalar), 6), "2 2 2");
    CHECK_TEXT(lengths_of(split::to_sequence().lengths_tensor(list), 2), "2");
    CHECK_TEXT(lengths_of(split::onnx(18).lengths_tensor(list), 2), "LIBSPLIT_STATUS_ERROR_SPLIT");
    const input strange(&two, {1}, {1, 1});
    CHECK_FAILS(split::to_sequence().lengths_tensor(strange).try_count({dtype::float32, {2}}),
                status::strides);
}

void inputs() {
    const auto numbers = counting(12);
    const split rows = split::onnx(18).parts(2);

    // From a pointer, a range, a span, a type and an address, and from what libsplit.h describes.
    std::int64_t shape[] = {4, 3};
    libsplit_tensor described{};
    described.data = const_cast<float *>(numbers.data());
    described.shape = shape;
    described.rank = 2;
    described.dtype = LIBSPLIT_DTYPE_FLOAT;
    const std::vector<std::size_t> extents{4, 3};
    const input same[] = {
        input(numbers.data(), {4, 3}),
        input(numbers, extents),
        input(libsplit::span<const float>(numbers), shape),
        input(dtype::float32, numbers.data(), {4, 3}, {3, 1}),
        input(described),
    };
    for (const input &x : same) {
        const auto pieces = rows.try_view(x);
        CHECK(pieces && pieces->size() == 2);
        CHECK_TEXT(check::text(check::elements<const float>((*pieces)[1])), "6 7 8 9 10 11");
    }

    // A copy has a shape of its own.
    input copy = same[0];
    {
        const input gone(numbers.data(), {2, 6});
        copy = gone;
    }
    CHECK_TEXT(check::extents(*rows.axis(1).try_infer(copy), 1), "3 3");

    // Strides: transposed, running backwards, repeating.
    const input transposed(numbers.data(), {3, 4}, {1, 3});
    CHECK_TEXT(check::text(check::elements<const float>(
                   (*split::onnx(18).axis(1).parts(2).try_view(transposed))[1])),
               "6 9 7 10 8 11");
    const input backwards(numbers.data() + 11, {12}, {-1});
    CHECK_TEXT(check::text(check::elements<const float>((*rows.axis(0).try_view(backwards))[1])),
               "5 4 3 2 1 0");
    const input repeated(numbers.data() + 5, {4}, {0});
    CHECK_TEXT(check::text(check::elements<const float>((*rows.try_view(repeated))[1])), "5 5");

    // What is wrong.
    CHECK_FAILS(rows.try_view(input(numbers, {5, 3})), status::data_bytes);
    const std::vector<float> empty;
    CHECK_FAILS(rows.try_view(input(empty, {5, 3})), status::data_bytes);
    CHECK(rows.try_view(input(empty, {4, 0})));
    CHECK_FAILS(rows.try_view(input(numbers.data(), {4, 3}).bytes(47)), status::data_bytes);
    CHECK_FAILS(rows.try_view(input(numbers.data(), {4, 3}, {3})), status::strides);
    CHECK_FAILS(rows.try_view(input(numbers.data(), std::vector<int>(65, 1))), status::rank);
    CHECK_FAILS(rows.try_count(input()), status::dtype);
    CHECK_FAILS(rows.try_view(input(dtype::float32, {4, 3})), status::null);
    CHECK_FAILS(rows.try_count(input(numbers.data(), {~std::size_t{0}, ~std::size_t{0}})),
                status::overflow);
    CHECK(split::onnx(18).parts(1).try_count(input(numbers.data(), std::vector<int>(64, 1))));

    // One axis: the whole range.
    CHECK_TEXT(check::extents(*rows.try_view(input(numbers))), "6 6");

    // A piece is an input again.
    const auto halves = rows.try_view(same[0]);
    const auto quarters = rows.try_view((*halves)[1]);
    CHECK_TEXT(check::text(check::elements<const float>((*quarters)[1])), "9 10 11");
}

void packed_bits() {
    const unsigned char nibbles[] = {0x21, 0x43, 0x65};
    const split thirds = split::openvino().parts(3);
    const auto pieces = split::variadic().lengths({1, 2, 3}).try_view({dtype::uint4, nibbles, {6}});
    CHECK(pieces && (*pieces)[1].bit_offset() == 4 && (*pieces)[1].data() == nibbles);
    const auto shifted = thirds.try_view(input(dtype::uint4, nibbles, {3}).bit_offset(4));
    CHECK(shifted && (*shifted)[0].bit_offset() == 4 && (*shifted)[1].bit_offset() == 0);
}

void pieces() {
    const auto numbers = counting(12);
    const split halves = split::onnx(18).axis(1).parts(2);
    const input x(numbers, {3, 4});
    auto viewed = halves.try_view(x);
    CHECK(viewed && viewed->size() == 2 && !viewed->empty());
    const piece &right = (*viewed)[1];
    CHECK(right.wanted() && right.type() == dtype::float32);
    CHECK_TEXT(check::text(right.shape()), "3 2");
    CHECK_TEXT(check::text(right.strides()), "4 1");
    CHECK(right.data() == &numbers[2] && right.data<const float>() == &numbers[2]);
    CHECK(right.data<const double>() == nullptr && right.data<half>() == nullptr);
    CHECK(right.size() == 6 && right.bytes() == (2 * 4 + 2) * sizeof(float));
    CHECK(!right.packed() && right.values<const float>().empty());
    std::size_t seen = 0;
    for (const piece &each : *halves.try_view(x)) // lives as long as the loop
        seen += each.size();
    CHECK(seen == 12);
    const std::int64_t huge[] = {std::int64_t{1} << 62, std::int64_t{1} << 62};
    CHECK(output(dtype::float32, nullptr, huge).size() == 0);

    // Packed, also if strides do not count.
    const auto rows = split::onnx(18).parts(3).try_view(x);
    CHECK((*rows)[2].packed());
    CHECK_TEXT(check::text((*rows)[2].values<const float>()), "8 9 10 11");
    const input wide(numbers.data(), {1, 2, 2}, {99, 2, 1});
    CHECK((*split::onnx(18).parts(1).try_view(wide))[0].packed());
    CHECK(output().shape().empty() && output().strides().empty());

    // Moved, and made again in the room that is there.
    libsplit::pieces moved = *std::move(viewed);
    const piece *const room = moved.data();
    CHECK(moved.size() == 2 && moved[0].data() == &numbers[0]);
    CHECK(split::onnx(18).axis(1).parts(2).try_infer(x, moved) && moved.data() == room);
    CHECK(moved[1].packed() && moved[1].data() == nullptr && moved[1].bytes() == 24);
    libsplit::pieces other;
    CHECK(other.empty());
    other = std::move(moved);
    CHECK(other.size() == 2 && moved.empty()); // NOLINT: what is left of it
    CHECK_FAILS(split::openvino().parts(2).try_view(x, other), status::split_sizes);
    CHECK(other.empty());
    CHECK_FAILS(other.try_reserve(2, 65), status::rank);
    CHECK_FAILS(other.try_reserve(~std::size_t{0} / 2, 3), status::out_of_memory);
    CHECK_FAILS(split::to_sequence().try_infer(
                    {dtype::uint8, {std::int64_t{1} << (sizeof(std::size_t) == 8 ? 58 : 29)}}),
                status::out_of_memory);
}

void unknown_extents() {
    const auto pieces = split::variadic()
                            .axis(1)
                            .lengths({3, -1, 1})
                            .try_infer({dtype::float32, {2, libsplit::dim_unknown}});
    CHECK(pieces);
    CHECK_TEXT(check::extents(*pieces, 1), "3 -1 1");
    CHECK((*pieces)[1].size() == 0 && (*pieces)[0].size() == 6);
    const input unknown(dtype::float32, {libsplit::dim_unknown});
    CHECK_FAILS(split::to_sequence().piece_length(2).try_count(unknown), status::count_unknown);

    // If outputs are the caller's own, their number is believed.
    std::array<piece, 3> outputs;
    std::array<std::int64_t, libsplit::outputs_ints(3, 1)> ints{};
    CHECK(libsplit::outputs_init(outputs, ints, 1));
    CHECK(split::to_sequence().piece_length(2).try_infer(unknown, outputs));
    CHECK_TEXT(check::extents(outputs), "-1 -1 -1");
}

void outputs() {
    const auto numbers = counting(12);
    const split halves = split::onnx(18).axis(1).parts(2);
    const input x(numbers, {3, 4});
    const std::int64_t half_shape[] = {3, 2}, apart[] = {4, 2};

    std::vector<float> left(6, -1.0F), right(12, -1.0F);
    CHECK(halves.try_copy(x, {{left.data(), half_shape}, {right.data(), half_shape, apart}}));
    CHECK_TEXT(check::text(left), "0 1 4 5 8 9");
    CHECK_TEXT(check::text(right), "2 -1 3 -1 6 -1 7 -1 10 -1 11 -1");

    // One that is not wanted, in every kind of range.
    std::vector<output> wanted(2);
    CHECK(!wanted[0].wanted());
    wanted[1] = output(dtype::float32, left.data(), half_shape);
    CHECK(halves.try_copy(x, wanted));
    CHECK_TEXT(check::text(left), "2 3 6 7 10 11");
    const std::array<output, 2> array{wanted[1], output()};
    CHECK(halves.try_copy(x, array));
    CHECK_TEXT(check::text(left), "0 1 4 5 8 9");
    libsplit::pieces inferred = *halves.try_infer(x);
    inferred[0].set_data(left.data());
    inferred[1].set_data(right.data());
    CHECK(halves.try_copy(x, inferred));
    CHECK_TEXT(check::text(right), "2 3 6 7 10 11 7 -1 10 -1 11 -1");

    // What is wrong.
    CHECK_FAILS(halves.try_copy(x, {output(left.data(), half_shape)}), status::num_outputs);
    const std::int64_t one[] = {1};
    CHECK_FAILS(halves.try_copy(x, {output(left.data(), half_shape, one), output()}),
                status::strides);
    const auto refused = halves.try_copy(x, {output(), output(left.data(), half_shape), output()});
    CHECK(refused.error().expected() == 2 && refused.error().actual() == 3);
    double wrong = 0;
    CHECK_FAILS(halves.try_copy(x, {output(), output(&wrong, half_shape)}), status::output);
    static_assert(!std::is_constructible_v<output, const float *, libsplit::dims &>);

    // Room of the caller's own.
    std::array<piece, 2> described;
    std::array<std::int64_t, libsplit::outputs_ints(2, 2)> ints{};
    CHECK(!libsplit::outputs_init(described, {ints.data(), ints.size() - 1}, 2));
    CHECK(!libsplit::outputs_init(described, ints, 65));
    CHECK(libsplit::outputs_init(described, ints, 2));
    CHECK(halves.try_view(x, described));
    CHECK(described[1].data() == &numbers[2]);
    CHECK_FAILS(split::openvino().parts(2).try_view(x, described), status::split_sizes);
    CHECK(described[1].data() == &numbers[2]);
}

// What is written at first, in every form.
void forms_of_outputs() {
    const auto numbers = counting(8);
    const split halves = split::onnx(18).axis(1).parts(2);
    const input x(numbers, {2, 4});
    std::vector<float> left(4), right(4);
    const auto copied = [&](const libsplit::result<> &done) {
        CHECK(done);
        CHECK_TEXT(check::text(left) + "|" + check::text(right), "0 1 4 5|2 3 6 7");
        left.assign(4, -1.0F);
        right.assign(4, -1.0F);
    };
    copied(halves.try_copy(x, {left, right}));
    copied(halves.try_copy(x, {left.data(), right.data()}));
    copied(halves.try_copy(x, {{left.data(), {2, 2}}, {right.data(), {2, 2}}}));
    copied(halves.try_copy(x, {{left, {2, 2}}, {right, {2, 2}, {2, 1}}}));
    copied(halves.try_copy(x, {libsplit::span<float>(left), {dtype::float32, right.data()}}));
    const output named[] = {{left.data(), {2, 2}}, {right.data(), std::vector<int>{2, 2}}};
    copied(halves.try_copy(x, named));
    copied(halves.try_copy(x, std::vector<output>(std::begin(named), std::end(named))));
    float *const addresses[] = {left.data(), right.data()};
    copied(halves.try_copy(x, addresses));
    std::array<libsplit::span<float>, 2> spans{left, right};
    copied(halves.try_copy(x, spans));
    std::vector<std::vector<float>> parts(2, std::vector<float>(4));
    CHECK(halves.try_copy(x, parts));
    CHECK_TEXT(check::text(parts[1]), "2 3 6 7");
    float row[4];
    CHECK(halves.try_copy(x, {nullptr, row}));
    CHECK(row[0] == 2.0F && row[3] == 7.0F);
    const auto plan = halves.try_plan(x, {left, {right.data(), {2, 2}, {1, 1}}});
    CHECK_FAILS(plan, status::strides);
    const auto transposed = halves.try_plan(x, {{}, {right.data(), {2, 2}, {1, 2}}});
    CHECK(transposed->try_copy(numbers.data(), {nullptr, right.data()}));
    CHECK_TEXT(check::text(right), "2 6 3 7");

    // Many, some of which have no shape.
    std::vector<float> many(64);
    std::vector<output> each;
    for (std::size_t i = 0; i < many.size(); i++)
        each.push_back(i % 2 == 0 ? output(&many[i]) : output(&many[i], {1, 1}));
    CHECK(split::onnx(18).axis(1).parts(64).try_copy(input(counting(64).data(), {1, 64}), each));
    CHECK(many[63] == 63.0F);

    // What is wrong is found before anything is written.
    std::vector<float> small(3), empty;
    CHECK_FAILS(halves.try_copy(x, {left, small}), status::data_bytes);
    CHECK_FAILS(halves.try_copy(x, {left, empty}), status::data_bytes);
    CHECK_FAILS(halves.try_copy(x, {left, {small, {2, 2}}}), status::data_bytes);
    std::vector<double> doubles(4);
    CHECK_FAILS(halves.try_copy(x, {left, doubles}), status::output);
    CHECK_FAILS(halves.try_copy(x, {left}), status::num_outputs);
    CHECK_FAILS(halves.try_copy(x, {left, {right, {4}}}), status::output);
    CHECK_FAILS(halves.try_copy(x, {left, left}), status::overlap);
    CHECK_TEXT(check::text(left), "-1 -1 -1 -1");
    CHECK(halves.try_copy(input(dtype::float32, {2, 0}), {empty, empty}));
}

// Temporaries keep alive what they point to, or do not compile (refused.cpp).
void nothing_dangles() {
    const auto numbers = counting(12);
    const split halves = split::onnx(18).axis(1).parts(2);
    const input x(numbers, {3, 4});
    const auto right = (*halves.try_view(x))[1];
    CHECK_TEXT(check::text(right.shape()), "3 2");
    const piece &bound = (*halves.try_view(x))[1];
    CHECK_TEXT(check::text(bound.strides()), "4 1");
    const auto shape = (*halves.try_infer(x))[1].shape();
    CHECK_TEXT(check::text(shape), "3 2");
    for (const std::int64_t extent : (*halves.try_infer(x))[0].strides())
        CHECK(extent == 2 || extent == 1);
    const input again((*halves.try_view(x))[1]);
    CHECK(check::extents(*halves.try_view(again), 1) == "1 1");
    const input stated = input(numbers.data(), {3, 4}).bytes(48);
    CHECK(halves.try_view(stated));
    std::vector<output> kept;
    {
        const std::vector<std::int64_t> extents{3, 2}, strides{4, 1};
        kept.emplace_back(right);
        kept.emplace_back(const_cast<float *>(numbers.data()), extents, strides);
    }
    kept.reserve(100);
    const output copy = kept[1];
    kept.clear();
    CHECK_TEXT(check::text(copy.shape()) + "|" + check::text(copy.strides()), "3 2|4 1");
}

// As in OpenCV and bitmaps: rows begin so many bytes apart.
void byte_pitches() {
    // Three rows of 4 pixels of 2 channels, 24 bytes apart.
    std::vector<std::uint16_t> pixels(36);
    std::iota(pixels.begin(), pixels.end(), std::uint16_t{0});
    const split channels = split::to_sequence().axis(2).keepdims(false);
    const input pitched = input(pixels, {3, 4, 2}).pitch(24);
    const input stepped = input(pixels.data(), {3, 4, 2}).byte_strides({24, 4, 2});
    for (const input &x : {pitched, stepped}) {
        const auto planes = channels.try_view(x);
        CHECK_TEXT(check::text(check::elements<const std::uint16_t>((*planes)[1])),
                   "1 3 5 7 13 15 17 19 25 27 29 31");
        std::vector<std::uint16_t> plane(18, 99);
        CHECK(channels.try_copy(x, {output(plane, {3, 4}).pitch(12), {}}));
        CHECK_TEXT(check::text(plane), "0 2 4 6 99 99 12 14 16 18 99 99 24 26 28 30 99 99");
        CHECK(channels.try_copy(x, {{}, output(plane, {4, 3}).byte_strides({2, 12})}).error());
    }
    const unsigned char nibbles[] = {0x21, 0x43, 0x65, 0x87};
    const auto rows =
        split::openvino().parts(2).try_view(input(dtype::uint4, nibbles, {2, 2}).pitch(2));
    CHECK((*rows)[1].data() == &nibbles[2]);

    const input odd = input(pixels.data(), {3, 4, 2}).pitch(25);
    CHECK_FAILS(channels.try_view(odd), status::strides);
    CHECK_TEXT(channels.try_view(odd).error().what(),
               "input: a stride of 25 bytes is not whole elements of 2 bytes: pack the rows, or "
               "split bytes (dtype::uint8)");
    std::vector<std::uint16_t> plane(18);
    const auto refused = channels.try_copy(pitched, {{}, output(plane, {3, 4}).pitch(13)});
    CHECK(refused.error().output_index() == 1 && refused.error().actual() == 13);
    CHECK_FAILS(channels.try_view(input(pixels.data(), {3, 4, 2}).byte_strides({24})),
                status::strides);
}

// Errors speak of this header's functions, not of the fields of libsplit.h.
void words() {
    const input x(dtype::float32, {7, 4});
    const auto says = [](const libsplit::error &error, const std::string &words) {
        return std::string(error.what()).find(words) != std::string::npos;
    };
    CHECK(says(split::onnx(18).try_count(x).error(), "neither lengths() nor parts() is given"));
    CHECK(says(split::onnx(18).axis(2).parts(2).try_count(x).error(), "axis() 2 is outside"));
    CHECK(says(split::onnx(18).parts(5).try_count(x).error(), "clamp_uneven()"));
    std::vector<float> one(1);
    const auto numbers = counting(28);
    const input full(numbers, {7, 4});
    CHECK(says(split::onnx(18).parts(7).try_copy(full, {one}).error(), "{} where unwanted"));
    CHECK(
        says(split::onnx(18).parts(2).try_copy(full, {{}, {}}).error(), "give one of them memory"));
    CHECK(says(split::onnx(18).parts(1).try_view(input(numbers.data(), {7, 4}).bytes(7)).error(),
               "input.bytes() is 7"));
    CHECK(says(libsplit::plan().try_copy(numbers.data(), {nullptr}).error(), "plan is nullptr"));
    CHECK(says(split::variadic().try_count(x).error(), "lengths()"));
    const libsplit::error errors[] = {
        split::onnx(18).try_count(x).error(),
        split::onnx(18).parts(5).try_count(x).error(),
        split::onnx(18).parts(2).lengths({1, 6}).try_count(x).error(),
        split::onnx(18).lengths({1, 7}).try_count(x).error(),
        split::onnx(18).lengths({-1, 8}).try_count(x).error(),
        split::onnx(13).try_count(x).error(),
        split::openvino().parts(2).try_count(x).error(),
        split::openvino().lengths({3, 4}).try_count(x).error(),
        split::variadic().try_count(x).error(),
        split::onnx(18).axis(2).parts(2).try_count(x).error(),
        split::onnx(18).parts(7).try_copy(full, {one}).error(),
        split::onnx(18).parts(1).try_copy(full, {{one, {1}}}).error(),
        split::onnx(18).parts(1).try_copy(full, {one}).error(),
        split::onnx(18).parts(1).try_plan(full)->try_copy(nullptr, {nullptr}).error(),
        split::to_sequence().piece_length(0).try_count(x).error(),
        split::to_sequence().try_count({dtype::float32, {libsplit::dim_unknown}}).error(),
        split::onnx(18).parts(1).try_view({dtype::float32, {libsplit::dim_unknown}}).error(),
        split::onnx(18).parts(1).try_view(input(numbers.data(), {7, 4}).bytes(7)).error(),
        split::onnx(18).parts(1).try_count({libsplit::dtype{99}, {7, 4}}).error(),
        libsplit::plan().try_copy(numbers.data(), {nullptr}).error(),
    };
    for (const libsplit::error &error : errors) {
        const std::string what = error.what();
        CHECK(error && !what.empty());
        for (const char *field :
             {"params", "num_outputs", "LIBSPLIT_", "libsplit_", "NULL", "data_bytes", "all-zero"})
            if (!CHECK(what.find(field) == std::string::npos))
                std::fprintf(stderr, "  \"%s\" of \"%s\"\n", field, what.c_str());
    }
}

void allocators() {
    const auto numbers = counting(12);
    const split halves = split::onnx(18).axis(1).parts(2);
    const input x(numbers, {3, 4});

    std::vector<std::vector<float>> parts;
    const auto copied = halves.try_copy(x, [&](std::size_t, const piece &described) {
        return parts.emplace_back(described.size()).data();
    });
    CHECK(copied && copied->size() == 2 && (*copied)[1].data() == parts[1].data());
    CHECK_TEXT(check::text(parts[0]), "0 1 4 5 8 9");
    CHECK_TEXT(check::text((*copied)[1].values<float>()), "2 3 6 7 10 11");

    // Containers and spans know their size.
    std::array<std::vector<float>, 2> there{std::vector<float>(6), std::vector<float>(5)};
    const auto by_reference = [&](std::size_t index, const piece &) -> std::vector<float> & {
        return there[index];
    };
    const auto small = halves.try_copy(x, by_reference);
    CHECK(small.error().status() == status::data_bytes && small.error().output_index() == 1);
    CHECK(small.error().expected() == 24 && small.error().actual() == 20);
    CHECK_TEXT(check::text(there[0]), "0 0 0 0 0 0");
    there[1].resize(6);
    CHECK(halves.try_copy(x, by_reference));
    CHECK_TEXT(check::text(there[1]), "2 3 6 7 10 11");

    // No memory, and none is needed.
    const auto nothing = [](std::size_t, const piece &) noexcept -> void * { return nullptr; };
    CHECK_FAILS(halves.try_copy(x, nothing), status::null);
    CHECK(halves.try_copy(input(dtype::float32, {0, 4}), nothing));
    static_assert(noexcept(halves.try_copy(x, nothing)));
}

void plans() {
    const auto numbers = counting(12);
    const split halves = split::onnx(18).axis(1).parts(2);
    const auto planned = halves.try_plan({dtype::float32, {3, 4}});
    CHECK(planned && planned->get() != nullptr);
    std::vector<float> left(6), right(12, -1.0F);
    CHECK(planned->try_copy(numbers.data(), {left.data(), right.data()}));
    CHECK_TEXT(check::text(left), "0 1 4 5 8 9");
    std::array<void *, 2> addresses{};
    CHECK(planned->try_view(numbers.data(), addresses));
    CHECK(addresses[0] == &numbers[0] && addresses[1] == &numbers[2]);
    addresses = {right.data(), left.data()};
    CHECK(planned->try_copy(numbers.data(), addresses, libsplit::calling_thread{}));
    CHECK_TEXT(check::text(left), "2 3 6 7 10 11");

    // A single piece, with strides; moved, after what it was made from is gone.
    const std::int64_t half_shape[] = {3, 2}, apart[] = {4, 2};
    libsplit::plan moved;
    CHECK_FAILS(moved.try_copy(numbers.data(), addresses), status::null);
    moved = *halves.try_plan({dtype::float32, {3, 4}},
                             std::array{output(), output(right.data(), half_shape, apart)});
    right.assign(12, -1.0F);
    CHECK(moved.try_copy(numbers.data(), {nullptr, right.data()}));
    CHECK_TEXT(check::text(right), "2 -1 3 -1 6 -1 7 -1 10 -1 11 -1");

    CHECK_FAILS(moved.try_copy(numbers.data(), {right.data()}), status::num_outputs);
    CHECK_FAILS(moved.try_view(nullptr, addresses), status::null);
    CHECK_FAILS(split::openvino().parts(2).try_plan({dtype::float32, {3, 4}}), status::split_sizes);
    CHECK_FAILS(halves.try_plan({dtype::float32, {3, 4}}, std::array<output, 3>()),
                status::num_outputs);
    CHECK_FAILS(halves.try_plan({dtype::float32, nullptr, {3, 4}, {1}}), status::strides);
    CHECK_FAILS(halves.try_plan({dtype::float32, std::vector<int>(65, 2)}), status::rank);
    static_assert(noexcept(moved.try_copy(nullptr, addresses)) &&
                  noexcept(moved.try_view(nullptr, addresses)) &&
                  noexcept(halves.try_plan(input())));
}

void results() {
    const split halves = split::onnx(18).parts(2);
    const input x(dtype::float32, {4});
    static_assert(noexcept(halves.try_count(x)) && noexcept(halves.try_view(x)) &&
                  noexcept(halves.try_infer(x)) && noexcept(halves.try_copy(x, {output()})));
    const auto count = halves.try_count(x);
    CHECK(count && *count == 2 && !count.error() && count.error().status() == status::ok);
    CHECK_TEXT(count.error().what(), "");
    const libsplit::error &kept = split::onnx(18).axis(7).parts(2).try_count(x).error();
    CHECK(kept.status() == status::axis); // a copy, as the result is gone
    const auto failed = split::onnx(18).axis(7).parts(2).try_count(x);
    CHECK(!failed && failed.error().status() == status::axis && failed.error());
    CHECK(failed.error().output_index() == -1);
    CHECK(std::string(failed.error().what()).find("axis") != std::string::npos);
    const libsplit::error long_one(status::internal, std::string(500, 'x').c_str());
    CHECK_TEXT(long_one.what(), std::string(239, 'x'));
    CHECK_TEXT(libsplit::name(status::out_of_memory), "out of memory");
}

#if LIBSPLIT_HPP_THROWS
template <class Call> std::string thrown(Call call) {
    try {
        call();
    } catch (const libsplit::error &error) {
        return libsplit::name(error.status());
    } catch (const std::exception &other) {
        return other.what();
    }
    return "nothing";
}

void exceptions() {
    const auto numbers = counting(12);
    const split halves = split::onnx(18).axis(1).parts(2);
    const split wrong = split::onnx(18).axis(1).lengths({1, 2});
    const input x(numbers, {3, 4});
    const char *const sizes = "LIBSPLIT_STATUS_ERROR_SPLIT_SIZES";
    std::array<piece, 2> described;
    std::array<std::int64_t, libsplit::outputs_ints(2, 2)> ints{};
    libsplit::outputs_init(described, ints, 2);

    libsplit::pieces pieces;
    CHECK(halves.count(x) == 2 && halves.infer(x).size() == 2 && halves.view(x).size() == 2);
    halves.infer(x, pieces);
    CHECK(pieces[0].data() == nullptr);
    halves.view(x, pieces);
    CHECK(pieces[0].data() == numbers.data());
    halves.infer(x, described);
    halves.view(x, described);
    CHECK(described[1].data() == &numbers[2]);
    CHECK_TEXT(thrown([&] { wrong.count(x); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.infer(x); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.infer(x, pieces); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.infer(x, described); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.view(x); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.view(x, pieces); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.view(x, described); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.copy(x, described); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.copy(x, {output(), output()}); }), sizes);
    CHECK_TEXT(thrown([&] { pieces.reserve(1, 65); }), "LIBSPLIT_STATUS_ERROR_RANK");
    CHECK_TEXT(thrown([&] { wrong.try_count(x).value(); }), sizes);
    CHECK(halves.try_count(x).value() == 2);
    const auto plan = halves.plan(x);
    std::array<void *, 2> addresses{};
    plan.view(numbers.data(), addresses);
    CHECK(addresses[1] == &numbers[2]);
    CHECK_TEXT(thrown([&] { wrong.plan(x); }), sizes);
    CHECK_TEXT(thrown([&] { wrong.plan(x, described); }), sizes);
    CHECK_TEXT(thrown([&] { plan.copy(numbers.data(), {}); }), "LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS");
    CHECK_TEXT(thrown([&] { plan.view(numbers.data(), {}); }), "LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS");

    // What the allocator throws comes out, even of try_copy, and nothing has been copied.
    std::vector<float> first(6, -1.0F);
    const auto failing = [&](std::size_t index, const piece &) -> float * {
        return index == 0 ? first.data() : throw std::bad_alloc();
    };
    CHECK_TEXT(thrown([&] { halves.copy(x, failing); }), std::bad_alloc().what());
    CHECK_TEXT(thrown([&] { (void)halves.try_copy(x, failing); }), std::bad_alloc().what());
    CHECK_TEXT(check::text(first), "-1 -1 -1 -1 -1 -1");
    static_assert(!noexcept(halves.try_copy(x, failing)));
}
#endif

} // namespace

int main() {
    element_types();
    operators();
    lengths();
    inputs();
    packed_bits();
    pieces();
    unknown_extents();
    outputs();
    forms_of_outputs();
    nothing_dangles();
    byte_pitches();
    words();
    allocators();
    plans();
    results();
#if LIBSPLIT_HPP_THROWS
    exceptions();
#endif
    return check::done();
}
