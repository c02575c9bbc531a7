// libsplit.hpp - libsplit for C++17 and newer, header-only
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A C++ interface to libsplit.h, which documents the rules and the errors. Make a split once, and
// then use it to describe, view or copy the pieces of any input:
//
//     #include <libsplit.hpp>
//
//     const auto halves = libsplit::split::onnx(18).axis(1).parts(2);
//     const libsplit::input x(data, {rows, columns});            // const float *data
//     for (const libsplit::piece &piece : halves.view(x))        // nothing is copied
//         use(piece.data<const float>(), piece.shape(), piece.strides());
//
//     std::vector<std::vector<float>> parts;                     // copied into new memory
//     halves.copy(x, [&](std::size_t, const libsplit::piece &piece) {
//         return parts.emplace_back(piece.size()).data();
//     });
//
//     std::vector<float> left(half), right(half);                // or into existing memory
//     halves.copy(x, {left, right});                             // containers: sizes are checked
//     halves.copy(x, {left.data(), right.data()});               // addresses: sizes are not
//     halves.copy(x, {{left, {rows, columns / 2}, {pitch, 1}}, {}}); // strides; {}: not wanted
//
//     const auto plan = halves.plan(x);                          // or prepared, and run many times
//     plan.copy(data, {left.data(), right.data()});
//
// Shapes, strides and lengths count elements and are copied; anything called bytes or pitch is in
// bytes. Shapes and strides are written in braces, or are any range of integers.
//
// Errors: functions throw libsplit::error. For each of them, a function whose name begins with try_
// is noexcept and returns a libsplit::result instead. With -fno-exceptions there are only these.
//
// Memory: nothing is allocated unless a comment says so: for pieces, plans, more than 16 lengths,
// and many outputs. Everything else is in the objects themselves.
//
// Threads: many threads may call const functions of one object at the same time.
//
// Thread pools: anything that runs task(i) for each i < count is an executor. If it throws, copy()
// throws the same exception. Without a limit there may be more tasks than threads, so tell how many
// threads it has if it starts one for each task.
//
//     halves.copy(x, outputs, libsplit::executor{run, 4});       // at most 4 tasks at a time
//     halves.copy(x, outputs, libsplit::openmp{});
//     halves.copy(x, outputs, libsplit::std_execution{std::execution::par});
//     halves.copy(x, outputs, libsplit::submit_to(pool));        // pool.submit(f) returns a future
//     halves.copy(x, outputs, [](std::size_t count, libsplit::task task) {
//         tbb::parallel_for(std::size_t{0}, count, task);        // oneTBB
//     });
//     halves.copy(x, outputs, c_executor);                       // a libsplit_executor
#ifndef LIBSPLIT_HPP
#define LIBSPLIT_HPP

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "libsplit.hpp needs C++17"
#endif

#include "libsplit.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_span
#include <span>
#endif
#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__STDCPP_FLOAT16_T__) || defined(__STDCPP_BFLOAT16_T__)
#include <stdfloat>
#endif

// Whether exceptions are available.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define LIBSPLIT_HPP_THROWS 1
#else
#define LIBSPLIT_HPP_THROWS 0
#endif

// The name of the namespace that all names of this header are in.
#if LIBSPLIT_HPP_THROWS
#define LIBSPLIT_HPP_THROWS_ _throws
#else
#define LIBSPLIT_HPP_THROWS_ _nothrow
#endif
#ifdef __cpp_lib_span
#define LIBSPLIT_HPP_STD_ _cxx20
#else
#define LIBSPLIT_HPP_STD_ _cxx17
#endif
#define LIBSPLIT_HPP_JOIN_(major, minor, patch, standard, throws)                                  \
    v##major##_##minor##_##patch##standard##throws
#define LIBSPLIT_HPP_EXPAND_(major, minor, patch, standard, throws)                                \
    LIBSPLIT_HPP_JOIN_(major, minor, patch, standard, throws)
#define LIBSPLIT_HPP_NAME                                                                          \
    LIBSPLIT_HPP_EXPAND_(LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR, LIBSPLIT_VERSION_PATCH,   \
                         LIBSPLIT_HPP_STD_, LIBSPLIT_HPP_THROWS_)

// Lets compilers that can do so warn if a returned value would outlive what it points to.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define LIBSPLIT_LIFETIMEBOUND [[clang::lifetimebound]]
#endif
#endif
#ifndef LIBSPLIT_LIFETIMEBOUND
#define LIBSPLIT_LIFETIMEBOUND
#endif

namespace libsplit {

// Classes differ by the version of this header, by the language version, and by whether there are
// exceptions. Their names do too, such as libsplit::v0_1_0_cxx17_throws::split, so that files that
// were compiled differently can be linked into one program.
inline namespace LIBSPLIT_HPP_NAME {

#ifdef __cpp_lib_span
template <class T> using span = std::span<T>;
#else
/// The part of C++20's std::span that is needed here: consecutive elements that somebody else owns.
template <class T> class span {
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;

    constexpr span() noexcept = default;
    constexpr span(T *first, std::size_t count) noexcept : first_(first), count_(count) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : first_(array), count_(N) {}
    /// From anything with data() and size(): std::vector, std::array, another span.
    template <
        class Range,
        class = std::enable_if_t<std::is_convertible_v<
            std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))> (*)[], T (*)[]>>>
    constexpr span(Range &&range) noexcept : first_(std::data(range)), count_(std::size(range)) {}

    constexpr T *data() const noexcept { return first_; }
    constexpr std::size_t size() const noexcept { return count_; }
    constexpr std::size_t size_bytes() const noexcept { return count_ * sizeof(T); }
    constexpr bool empty() const noexcept { return count_ == 0; }
    constexpr T *begin() const noexcept { return first_; }
    constexpr T *end() const noexcept { return first_ + count_; }
    constexpr T &operator[](std::size_t index) const noexcept { return first_[index]; }

  private:
    T *first_ = nullptr;
    std::size_t count_ = 0;
};
#endif

// ---------------------------------------------------------------------------------------------
// Element types

/// An element type; the numbers are those of ONNX TensorProto.DataType.
enum class dtype : libsplit_dtype {
    float32 = LIBSPLIT_DTYPE_FLOAT,
    uint8 = LIBSPLIT_DTYPE_UINT8,
    int8 = LIBSPLIT_DTYPE_INT8,
    uint16 = LIBSPLIT_DTYPE_UINT16,
    int16 = LIBSPLIT_DTYPE_INT16,
    int32 = LIBSPLIT_DTYPE_INT32,
    int64 = LIBSPLIT_DTYPE_INT64,
    string = LIBSPLIT_DTYPE_STRING,
    boolean = LIBSPLIT_DTYPE_BOOL,
    float16 = LIBSPLIT_DTYPE_FLOAT16,
    float64 = LIBSPLIT_DTYPE_DOUBLE,
    uint32 = LIBSPLIT_DTYPE_UINT32,
    uint64 = LIBSPLIT_DTYPE_UINT64,
    complex64 = LIBSPLIT_DTYPE_COMPLEX64,
    complex128 = LIBSPLIT_DTYPE_COMPLEX128,
    bfloat16 = LIBSPLIT_DTYPE_BFLOAT16,
    float8e4m3fn = LIBSPLIT_DTYPE_FLOAT8E4M3FN,
    float8e4m3fnuz = LIBSPLIT_DTYPE_FLOAT8E4M3FNUZ,
    float8e5m2 = LIBSPLIT_DTYPE_FLOAT8E5M2,
    float8e5m2fnuz = LIBSPLIT_DTYPE_FLOAT8E5M2FNUZ,
    uint4 = LIBSPLIT_DTYPE_UINT4,
    int4 = LIBSPLIT_DTYPE_INT4,
    float4e2m1 = LIBSPLIT_DTYPE_FLOAT4E2M1,
    float8e8m0 = LIBSPLIT_DTYPE_FLOAT8E8M0,
    uint2 = LIBSPLIT_DTYPE_UINT2,
    int2 = LIBSPLIT_DTYPE_INT2,
};

/// The name in ONNX, such as "FLOAT16"; "UNDEFINED" if the number is not an element type.
inline const char *name(dtype type) noexcept {
    return libsplit_dtype_name(static_cast<libsplit_dtype>(type));
}

/// The size of an element in bits; 0 if the number is not an element type.
inline std::uint32_t bits(dtype type) noexcept {
    return libsplit_dtype_bits(static_cast<libsplit_dtype>(type));
}

/// The element type of a C++ type. Specialise it for one of your own:
///
///     template <>
///     struct libsplit::dtype_of<half> : libsplit::dtype_is<libsplit::dtype::float16> {};
///
/// Packed 4-bit and 2-bit elements have no C++ type: give their dtype and a void pointer.
template <class T, class Enable = void> struct dtype_of;

/// The base class of dtype_of.
template <dtype Type> using dtype_is = std::integral_constant<dtype, Type>;

namespace detail {

constexpr dtype integer_type(bool is_signed, std::size_t bytes) noexcept {
    switch (bytes) {
    case 1:
        return is_signed ? dtype::int8 : dtype::uint8;
    case 2:
        return is_signed ? dtype::int16 : dtype::uint16;
    case 4:
        return is_signed ? dtype::int32 : dtype::uint32;
    default:
        return is_signed ? dtype::int64 : dtype::uint64;
    }
}

template <class T>
inline constexpr bool is_integer =
    std::is_integral_v<T> && !std::is_same_v<std::remove_cv_t<T>, bool> && sizeof(T) <= 8;
template <> inline constexpr bool is_integer<void> = false;

template <class T, class = void> inline constexpr bool has_dtype = false;
template <class T>
inline constexpr bool has_dtype<T, std::void_t<decltype(dtype_of<std::remove_cv_t<T>>::value)>> =
    true;

} // namespace detail

/// Integers of any name, including char, by size and signedness.
template <class T>
struct dtype_of<T, std::enable_if_t<detail::is_integer<T>>>
    : dtype_is<detail::integer_type(std::is_signed_v<T>, sizeof(T))> {};
template <> struct dtype_of<std::byte> : dtype_is<dtype::uint8> {};
template <> struct dtype_of<bool> : dtype_is<dtype::boolean> {};
template <> struct dtype_of<float> : dtype_is<dtype::float32> {};
template <> struct dtype_of<double> : dtype_is<dtype::float64> {};
template <> struct dtype_of<std::complex<float>> : dtype_is<dtype::complex64> {};
template <> struct dtype_of<std::complex<double>> : dtype_is<dtype::complex128> {};
template <> struct dtype_of<libsplit_string> : dtype_is<dtype::string> {};
#ifdef __STDCPP_FLOAT16_T__
template <> struct dtype_of<std::float16_t> : dtype_is<dtype::float16> {};
#endif
#ifdef __STDCPP_BFLOAT16_T__
template <> struct dtype_of<std::bfloat16_t> : dtype_is<dtype::bfloat16> {};
#endif

namespace detail {

template <class T> constexpr dtype dtype_for() noexcept {
    static_assert(has_dtype<T>, "no element type is known for this C++ type: specialise "
                                "libsplit::dtype_of for it, or give the dtype first");
    return dtype_of<std::remove_cv_t<T>>::value;
}

} // namespace detail

// ---------------------------------------------------------------------------------------------
// Errors

namespace detail {

/// A message that is being written; text that does not fit is cut off.
class text {
  public:
    template <std::size_t N>
    explicit text(char (&room)[N]) noexcept : next_(room), end_(room + N - 1) {
        *next_ = '\0';
    }
    void add(const char *from, std::size_t length) noexcept {
        length = (std::min)(length, static_cast<std::size_t>(end_ - next_));
        std::memcpy(next_, from, length);
        next_ += length;
        *next_ = '\0';
    }
    void add(std::int64_t number) noexcept {
        char digits[24];
        std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(number));
        add(digits, std::strlen(digits));
    }

  private:
    char *next_, *end_;
};

} // namespace detail

/// The result of a call. Values above 0 are those of libsplit.h; values below 0 are this header's
/// own.
enum class status : libsplit_status {
    out_of_memory = -1, ///< pieces could not be allocated
    ok = LIBSPLIT_STATUS_OK,
    null = LIBSPLIT_STATUS_ERROR_NULL,
    alignment = LIBSPLIT_STATUS_ERROR_ALIGNMENT,
    struct_size = LIBSPLIT_STATUS_ERROR_STRUCT_SIZE,
    operator_ = LIBSPLIT_STATUS_ERROR_OPERATOR,
    opset = LIBSPLIT_STATUS_ERROR_OPSET,
    flags = LIBSPLIT_STATUS_ERROR_FLAGS,
    dtype = LIBSPLIT_STATUS_ERROR_DTYPE,
    rank = LIBSPLIT_STATUS_ERROR_RANK,
    axis = LIBSPLIT_STATUS_ERROR_AXIS,
    shape = LIBSPLIT_STATUS_ERROR_SHAPE,
    split = LIBSPLIT_STATUS_ERROR_SPLIT,
    split_sizes = LIBSPLIT_STATUS_ERROR_SPLIT_SIZES,
    num_outputs = LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS,
    capacity = LIBSPLIT_STATUS_ERROR_CAPACITY,
    strides = LIBSPLIT_STATUS_ERROR_STRIDES,
    bit_offset = LIBSPLIT_STATUS_ERROR_BIT_OFFSET,
    data_bytes = LIBSPLIT_STATUS_ERROR_DATA_BYTES,
    overflow = LIBSPLIT_STATUS_ERROR_OVERFLOW,
    overlap = LIBSPLIT_STATUS_ERROR_OVERLAP,
    output = LIBSPLIT_STATUS_ERROR_OUTPUT,
    count_unknown = LIBSPLIT_STATUS_ERROR_COUNT_UNKNOWN,
    executor = LIBSPLIT_STATUS_ERROR_EXECUTOR,
    internal = LIBSPLIT_STATUS_ERROR_INTERNAL,
    plan = LIBSPLIT_STATUS_ERROR_PLAN,
    not_shown_apart = LIBSPLIT_STATUS_ERROR_NOT_SHOWN_APART,
};

/// The name in libsplit.h, such as "LIBSPLIT_STATUS_ERROR_AXIS". Never null.
inline const char *name(status code) noexcept {
    return code == status::out_of_memory ? "out of memory"
                                         : libsplit_status_name(static_cast<libsplit_status>(code));
}

/// An error, or no error: thrown, or part of a result. It contains its message.
class error : public std::exception {
  public:
    /// No error.
    error() noexcept { detail_.words = LIBSPLIT_WORDS_CPP; }
    /// An error that libsplit.h reported.
    explicit error(const libsplit_error &detail) noexcept : detail_(detail) {}
    /// An error with the two numbers that disagree and the output at fault. In the message, '#'
    /// stands for 'expected' and '@' for 'actual'; a message that is too long is cut off.
    error(libsplit::status code, const char *message, std::int64_t expected = 0,
          std::int64_t actual = 0, std::int32_t output_index = -1) noexcept
        : error() {
        detail_.status = static_cast<libsplit_status>(code);
        detail_.output_index = output_index;
        detail_.expected = expected;
        detail_.actual = actual;
        detail::text text(detail_.message);
        for (; *message != '\0'; message++) {
            if (*message == '#' || *message == '@')
                text.add(*message == '#' ? expected : actual);
            else
                text.add(message, 1);
        }
    }

    libsplit::status status() const noexcept {
        return static_cast<libsplit::status>(detail_.status);
    }
    /// The index of the output or length at fault; -1 if there is none.
    std::int32_t output_index() const noexcept { return detail_.output_index; }
    /// If two numbers disagree: the one that was expected ...
    std::int64_t expected() const noexcept { return detail_.expected; }
    /// ... and the one that was found. Otherwise both are 0.
    std::int64_t actual() const noexcept { return detail_.actual; }
    /// Text for people: the argument, the rule, both numbers and the remedy. Empty if there is no
    /// error.
    const char *what() const noexcept override { return detail_.message; }
    /// Whether there is an error.
    explicit operator bool() const noexcept { return detail_.status != LIBSPLIT_STATUS_OK; }
    /// For functions of libsplit.h.
    libsplit_error *get() noexcept { return &detail_; }

  private:
    libsplit_error detail_ = LIBSPLIT_ERROR_INIT;
};

/// A value, or an error instead. T may be void.
template <class T = void> class [[nodiscard]] result {
  public:
    result(T &&value) noexcept : value_(std::move(value)) {}
    result(const libsplit::error &error) noexcept : error_(error) {}

    explicit operator bool() const noexcept { return !error_; }
    const libsplit::error &error() const & noexcept LIBSPLIT_LIFETIMEBOUND { return error_; }
    libsplit::error error() && noexcept { return error_; }
    /// The value; T() if there is an error.
    T &operator*() & noexcept LIBSPLIT_LIFETIMEBOUND { return value_; }
    const T &operator*() const & noexcept LIBSPLIT_LIFETIMEBOUND { return value_; }
    T operator*() && noexcept { return std::move(value_); }
    T *operator->() noexcept LIBSPLIT_LIFETIMEBOUND { return &value_; }
    const T *operator->() const noexcept LIBSPLIT_LIFETIMEBOUND { return &value_; }
#if LIBSPLIT_HPP_THROWS
    /// The value, or throws the error.
    T value() && {
        if (error_)
            throw error_;
        return std::move(value_);
    }
    /// The same.
    T &value() & LIBSPLIT_LIFETIMEBOUND {
        if (error_)
            throw error_;
        return value_;
    }
#endif

  private:
    T value_{};
    libsplit::error error_{};
};

template <> class [[nodiscard]] result<void> {
  public:
    result() noexcept = default;
    result(const libsplit::error &error) noexcept : error_(error) {}

    explicit operator bool() const noexcept { return !error_; }
    const libsplit::error &error() const & noexcept LIBSPLIT_LIFETIMEBOUND { return error_; }
    libsplit::error error() && noexcept { return error_; }
#if LIBSPLIT_HPP_THROWS
    /// Throws the error if there is one.
    void value() const {
        if (error_)
            throw error_;
    }
#endif

  private:
    libsplit::error error_{};
};

/// The version of the library, not of the header: major << 24 | minor << 16 | patch.
inline std::uint32_t version() noexcept { return libsplit_version(); }

// ---------------------------------------------------------------------------------------------
// Inputs

/// An extent of an input that is not known yet, for count() and infer().
inline constexpr std::int64_t dim_unknown = LIBSPLIT_DIM_UNKNOWN;

namespace detail {

/// Converts any integer; one that is too large becomes a value that every check refuses.
template <class Integer> constexpr std::int64_t to_int64(Integer value) noexcept {
    static_assert(is_integer<Integer>, "extents, strides and lengths are integers");
    constexpr auto most = (std::numeric_limits<std::int64_t>::max)();
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) == 8) {
        if (value > static_cast<Integer>(most))
            return most;
    }
    return static_cast<std::int64_t>(value);
}

/// The element type of a range with data(); void if it is not one.
template <class Range, class = void> struct element_of {
    using type = void;
};
template <class Range>
struct element_of<Range, std::void_t<decltype(std::data(std::declval<Range &>())),
                                     decltype(std::size(std::declval<Range &>()))>> {
    using type = std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>;
};

/// Whether it is a range of integers.
template <class Range, class = void> inline constexpr bool has_integers = false;
template <class Range>
inline constexpr bool
    has_integers<Range, std::void_t<decltype(std::begin(std::declval<const Range &>()))>> =
        is_integer<std::remove_reference_t<decltype(*std::begin(std::declval<const Range &>()))>>;

/// Whether the elements outlive the range, as those of std::span do. A type that is large enough to
/// contain them (std::array, std::vector) is no such view.
template <class Range, class = void> inline constexpr bool has_tuple_size = false;
template <class Range>
inline constexpr bool has_tuple_size<Range, std::void_t<decltype(std::tuple_size<Range>::value)>> =
    true;
template <class Range> inline constexpr bool is_initializer_list = false;
template <class T> inline constexpr bool is_initializer_list<std::initializer_list<T>> = true;
template <class Range>
inline constexpr bool is_view = std::is_trivially_copyable_v<Range> && !std::is_array_v<Range> &&
                                !has_tuple_size<Range> && !is_initializer_list<Range>;

/// For a forwarding reference: whether the range has elements of a known type ...
template <class Range, class Plain = std::remove_reference_t<Range>>
inline constexpr bool is_elements = has_dtype<typename element_of<Plain>::type>;
/// ... that live longer than the call ...
template <class Range>
inline constexpr bool stays =
    std::is_lvalue_reference_v<Range> || is_view<std::remove_cv_t<std::remove_reference_t<Range>>>;
/// ... and may be written.
template <class Range, class Plain = std::remove_reference_t<Range>>
inline constexpr bool is_writable =
    is_elements<Range> && !std::is_const_v<typename element_of<Plain>::type>;
/// Whether it is an array, which is passed by address.
template <class Range>
inline constexpr bool is_array = std::is_array_v<std::remove_reference_t<Range>>;

template <class T>
using if_not_integer = std::enable_if_t<std::is_arithmetic_v<T> && !is_integer<T>, int>;
template <class T> using if_integer = std::enable_if_t<is_integer<T>, int>;
template <class Range> using if_kept = std::enable_if_t<is_elements<Range> && stays<Range>, int>;
template <class Range>
using if_kept_range = std::enable_if_t<is_elements<Range> && stays<Range> && !is_array<Range>, int>;
template <class Range> using if_gone = std::enable_if_t<is_elements<Range> && !stays<Range>, char>;
/// Whether the range has elements of a type that is not known.
template <class Range, class Plain = std::remove_cv_t<std::remove_reference_t<Range>>,
          class T = typename element_of<Plain>::type>
using if_unknown =
    std::enable_if_t<!std::is_void_v<T> && !has_dtype<T> && !std::is_array_v<Plain>, short>;
template <class Range>
using if_output_range =
    std::enable_if_t<is_writable<Range> && stays<Range> && !is_array<Range>, int>;
template <class Range>
using if_not_kept =
    std::enable_if_t<is_elements<Range> && !(is_writable<Range> && stays<Range>), char>;

} // namespace detail

/// An integer of any type; the compiler refuses bool and floating point. A value that is too large
/// for int64_t becomes one that every check refuses.
class integer {
  public:
    template <class T, class = std::enable_if_t<detail::is_integer<T>>>
    constexpr integer(T value) noexcept : value_(detail::to_int64(value)) {}
    template <class T, detail::if_not_integer<T> = 0>
    integer(T) = delete; // pass an integer, neither bool nor a floating-point number
    constexpr operator std::int64_t() const noexcept { return value_; }

  private:
    std::int64_t value_;
};

#ifdef __GNUC__ // numbers that a shape does not have stay uninitialised
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Weffc++"
#endif

/// A shape, or strides: up to LIBSPLIT_MAX_RANK numbers, stored in the object. It can be made from
/// integers in braces or from any range of integers. With more numbers than that, it makes a tensor
/// that every call refuses.
class dims {
  public:
    dims() noexcept {}
    dims(std::initializer_list<integer> values) noexcept {
        for (const std::int64_t value : values)
            push(value);
    }
    template <class Range, class = std::enable_if_t<detail::has_integers<Range>>>
    dims(const Range &values) noexcept {
        for (const auto value : values)
            push(detail::to_int64(value));
    }
    dims(const dims &other) noexcept { assign(other); }
    dims &operator=(const dims &other) noexcept {
        assign(other);
        return *this;
    }
    ~dims() = default;

    const std::int64_t *data() const & noexcept LIBSPLIT_LIFETIMEBOUND { return values_.data(); }
    const std::int64_t *data() const && = delete; // gone at once: name the shape or strides
    /// The number of entries, at most LIBSPLIT_MAX_RANK.
    std::size_t size() const noexcept { return (std::min)(count_, values_.size()); }
    bool empty() const noexcept { return count_ == 0; }
    /// The number of entries that were given, which is above LIBSPLIT_MAX_RANK if there were too
    /// many.
    std::int32_t rank() const noexcept { return static_cast<std::int32_t>(count_); }
    const std::int64_t *begin() const noexcept { return data(); }
    const std::int64_t *end() const noexcept { return data() + size(); }
    std::int64_t operator[](std::size_t axis) const noexcept { return values_[axis]; }

  private:
    void push(std::int64_t value) noexcept {
        if (count_ < values_.size())
            values_[count_] = value;
        count_ = (std::min)(count_ + 1, values_.size() + 1);
    }
    void assign(const dims &other) noexcept {
        count_ = other.count_;
        std::copy_n(other.data(), other.size(), values_.data());
    }

    std::size_t count_ = 0;
    std::array<std::int64_t, LIBSPLIT_MAX_RANK> values_;
};

#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace detail {

/// Converts strides in bytes to strides in elements; an error if one is not a whole number of
/// elements.
inline error strides_of_bytes(const char *message, dtype type, const dims &bytes,
                              dims &strides) noexcept {
    const std::int64_t bits_each = static_cast<std::int64_t>(bits(type));
    std::array<std::int64_t, LIBSPLIT_MAX_RANK> elements{};
    for (std::size_t axis = 0; axis < bytes.size() && bits_each > 0; axis++) {
        const bool is_small = bits_each < 8;
        const std::int64_t unit = is_small ? 8 / bits_each : bits_each / 8;
        if (!is_small && bytes[axis] % unit != 0)
            return {status::strides, message, unit, bytes[axis]};
        elements[axis] = is_small ? bytes[axis] * unit : bytes[axis] / unit;
    }
    strides = libsplit::span<const std::int64_t>(elements.data(), bytes.size());
    return {};
}

/// The strides in bytes of a tensor whose first axis has a pitch and whose other axes are packed.
inline dims strides_of_pitch(dtype type, const dims &shape, integer pitch) noexcept {
    std::array<std::int64_t, LIBSPLIT_MAX_RANK> strides{};
    std::uint64_t step = (bits(type) + 7) / 8;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = axis == 0 ? std::int64_t{pitch} : static_cast<std::int64_t>(step);
        step *= static_cast<std::uint64_t>(shape[axis]);
    }
    return libsplit::span<const std::int64_t>(strides.data(), shape.size());
}

} // namespace detail

/// A tensor to be split. It refers to memory that is only read and must outlive it. Shape and
/// strides are copied into the object (about 1 KiB). Strides are in elements, of either sign, or 0
/// to repeat; without strides the tensor is packed in row-major order. For strides in bytes see
/// byte_strides() and pitch(). A pointer may be nullptr if there are no elements, and for count()
/// and infer().
class input {
  public:
    /// A tensor without an element type, which every call refuses.
    input() noexcept = default;

    /// Typed elements at an address.
    template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
    input(const T *data, const dims &shape, const dims &strides = {}) noexcept
        : input(detail::dtype_for<T>(), data, shape, strides) {}

    /// Typed elements in a container or span, whose size is checked: this sets bytes().
    template <class Range, detail::if_kept_range<Range> = 0>
    input(Range &&elements, const dims &shape, const dims &strides = {}) noexcept
        : input(std::data(elements), shape, strides) {
        bytes(std::size(elements) * sizeof(*std::data(elements)));
        empty_range_ = std::size(elements) == 0;
    }

    /// One axis: all elements of a container or span.
    template <class Range, detail::if_kept<Range> = 0>
    input(Range &&elements) noexcept : input(std::data(elements), dims{std::size(elements)}) {}

    /// Elements of any type.
    input(dtype type, const void *data, const dims &shape, const dims &strides = {}) noexcept
        : shape_(shape), strides_(strides) {
        tensor_.data = const_cast<void *>(data);
        tensor_.rank = shape.rank();
        tensor_.dtype = static_cast<libsplit_dtype>(type);
    }

    /// A tensor without data: for count() and infer(), and for lengths that are not known yet.
    input(dtype type, const dims &shape) noexcept : input(type, nullptr, shape) {}

    /// A tensor described as in libsplit.h, such as a piece of another split.
    input(const libsplit_tensor &tensor) noexcept : tensor_(tensor) {
        // A tensor that cannot be copied is refused by every call.
        is_kept_ = tensor.rank < 0 || tensor.rank > LIBSPLIT_MAX_RANK || tensor.shape == nullptr;
        if (is_kept_)
            return;
        const auto rank = static_cast<std::size_t>(tensor.rank);
        shape_ = libsplit::span<const std::int64_t>(tensor.shape, rank);
        if (tensor.strides != nullptr)
            strides_ = libsplit::span<const std::int64_t>(tensor.strides, rank);
    }

#ifdef __cpp_lib_mdspan
    /// The elements of a std::mdspan, if its mapping has strides.
    template <class T, class Extents, class Layout, class Accessor,
              class = std::enable_if_t<Layout::template mapping<Extents>::is_always_strided()>>
    input(const std::mdspan<T, Extents, Layout, Accessor> &elements) noexcept
        : input(detail::dtype_for<T>(), std::to_address(elements.data_handle()),
                mdspan_dims(elements, [&](std::size_t axis) { return elements.extent(axis); }),
                mdspan_dims(elements, [&](std::size_t axis) { return elements.stride(axis); })) {}
#endif

    // Ambiguous arguments, and memory that would be gone by the time of the call. Compilers show
    // these comments.
    template <class Data, class Integer, class... Rest, detail::if_integer<Integer> = 0>
    input(const Data &, Integer, Rest...) = delete; // put the shape in braces: (data, {2, 4})
    template <class Integer, class... Rest, detail::if_integer<Integer> = 0>
    input(dtype, const void *, Integer, Rest...) = delete; // put the shape in braces: {2, 4}
    input(const void *, const dims &, const dims & = {}) = delete; // give the dtype first
    template <class Range, detail::if_unknown<Range> = 0>
    input(Range &&) = delete; // no dtype is known for the elements: specialise libsplit::dtype_of
    template <class Range, detail::if_unknown<Range> = 0>
    input(Range &&, const dims &, const dims & = {}) = delete; // specialise libsplit::dtype_of
    template <class Range, detail::if_gone<Range> = 0>
    input(Range &&) = delete; // a temporary, which would be gone: name the container
    template <class Range, detail::if_gone<Range> = 0>
    input(Range &&, const dims &, const dims & = {}) = delete; // a temporary: name the container

    /// States the number of bytes from the lowest address that the tensor touches, which is then
    /// checked; 0 disables the check.
    input &bytes(std::size_t bytes) & noexcept {
        tensor_.data_bytes = bytes;
        return *this;
    }
    /// For packed sub-byte elements: the offset of the first element from data in bits.
    input &bit_offset(std::uint32_t offset) & noexcept {
        tensor_.bit_offset = offset;
        return *this;
    }
    /// Strides in bytes, one for each axis. A stride that is not a whole number of elements makes
    /// every call fail (status::strides).
    input &byte_strides(const dims &bytes) & noexcept {
        wrong_ = detail::strides_of_bytes(
            "input: a stride of @ bytes is not whole elements of # bytes: pack the rows, or split "
            "bytes (dtype::uint8)",
            type(), bytes, strides_);
        return *this;
    }
    /// The number of bytes from one step of the first axis to the next, such as from row to row of
    /// a picture (OpenCV's step, a bitmap's stride); the other axes are packed. Otherwise like
    /// byte_strides().
    input &pitch(integer bytes) & noexcept {
        return byte_strides(detail::strides_of_pitch(type(), shape_, bytes));
    }
    // The same for temporaries.
    input bytes(std::size_t bytes) && noexcept { return this->bytes(bytes); }
    input bit_offset(std::uint32_t offset) && noexcept { return this->bit_offset(offset); }
    input byte_strides(const dims &bytes) && noexcept { return this->byte_strides(bytes); }
    input pitch(integer bytes) && noexcept { return this->pitch(bytes); }

    /// For functions of libsplit.h; points into this object.
    libsplit_tensor get() const noexcept LIBSPLIT_LIFETIMEBOUND {
        libsplit_tensor tensor = tensor_;
        if (!is_kept_) {
            tensor.shape = const_cast<std::int64_t *>(shape_.data());
            tensor.strides =
                strides_.empty() ? nullptr : const_cast<std::int64_t *>(strides_.data());
        }
        return tensor;
    }

    /// Checks what libsplit cannot: that there are as many strides as extents, that strides are
    /// whole elements, and that a container is not empty (libsplit would take its size for not
    /// stated).
    libsplit::error check() const noexcept {
        if (wrong_)
            return wrong_;
        if (!strides_.empty() && strides_.rank() != shape_.rank())
            return {status::strides, "input has @ strides for # axes: give one for each, or none",
                    shape_.rank(), strides_.rank()};
        if (empty_range_ && std::find(shape_.begin(), shape_.end(), 0) == shape_.end())
            return {status::data_bytes,
                    "input: the container is empty, but no extent is 0: fill it, or correct the "
                    "shape",
                    1, 0};
        return {};
    }

  private:
#ifdef __cpp_lib_mdspan
    template <class Mdspan, class Get>
    static dims mdspan_dims(const Mdspan &elements, Get get) noexcept {
        std::array<std::int64_t, Mdspan::rank()> values{};
        for (std::size_t axis = 0; axis < elements.rank(); axis++)
            values[axis] = detail::to_int64(get(axis));
        return values;
    }
#endif
    dtype type() const noexcept { return static_cast<dtype>(tensor_.dtype); }

    libsplit_tensor tensor_{};
    dims shape_{}, strides_{};
    libsplit::error wrong_{};
    bool is_kept_ = false; // shape and strides stay in the descriptor's arrays
    bool empty_range_ = false;
};

// ---------------------------------------------------------------------------------------------
// Outputs

class output;

/// A piece: a libsplit_tensor with member functions. Memory, shape and strides belong to the
/// 'pieces' that contains it, or to whoever filled it in; an output is a piece with a shape of its
/// own. Arrays of pieces are arrays of libsplit_tensor.
class piece : public libsplit_tensor {
  public:
    /// A piece that is not wanted; outputs_init() gives it room for shape and strides.
    piece() noexcept : libsplit_tensor{} {}
    // The shape would not live long enough: keep the output, or the pieces.
    piece(output &&) = delete;
    piece &operator=(output &&) = delete;

    /// Whether it is wanted.
    bool wanted() const noexcept {
        const libsplit_tensor &tensor = *this;
        return tensor.data != nullptr || tensor.data_bytes != 0 || tensor.shape != nullptr ||
               tensor.strides != nullptr || tensor.rank != 0 || tensor.capacity != 0 ||
               tensor.dtype != 0 || tensor.bit_offset != 0;
    }
    libsplit::dtype type() const noexcept {
        return static_cast<libsplit::dtype>(libsplit_tensor::dtype);
    }
    /// The extents, in elements.
    span<const std::int64_t> shape() const noexcept {
        return {libsplit_tensor::shape, entries(libsplit_tensor::shape)};
    }
    /// The strides in elements; empty if packed in row-major order.
    span<const std::int64_t> strides() const noexcept {
        return {libsplit_tensor::strides, entries(libsplit_tensor::strides)};
    }
    /// The number of elements; 0 if an extent is not known.
    std::size_t size() const noexcept {
        std::size_t count = 1;
        for (const std::int64_t extent : shape())
            count *= static_cast<std::size_t>((std::max)(extent, std::int64_t{0}));
        return count;
    }
    /// After infer(): the size of the packed output in bytes. After view(): the number of bytes
    /// from the lowest to the highest that the piece touches. 0 if not stated.
    std::size_t bytes() const noexcept { return data_bytes; }
    /// For packed sub-byte elements: the offset of the first element from data() in bits.
    std::uint32_t bit_offset() const noexcept { return libsplit_tensor::bit_offset; }
    /// Whether the elements are contiguous in row-major order.
    bool packed() const noexcept {
        const auto stride = strides();
        if (stride.empty() || size() == 0)
            return true;
        std::uint64_t step = 1;
        for (std::size_t axis = stride.size(); axis-- > 0;) {
            const std::int64_t extent = shape()[axis];
            if (extent != 1 && static_cast<std::uint64_t>(stride[axis]) != step)
                return false;
            step *= static_cast<std::uint64_t>(extent);
        }
        return true;
    }
    /// The address of element [0, ..., 0].
    void *data() const noexcept { return libsplit_tensor::data; }
    /// The same, typed; nullptr if T is not the C++ type of the elements. For a view of read-only
    /// memory, use data<const T>().
    template <class T> T *data() const noexcept {
        return type() == detail::dtype_for<T>() ? static_cast<T *>(data()) : nullptr;
    }
    /// All elements; empty if they are not packed or not of type T.
    template <class T> span<T> values() const noexcept {
        T *const first = data<T>();
        if (first == nullptr || !packed())
            return {};
        return {first, size()};
    }
    /// Sets the address of the memory to copy to.
    piece &set_data(void *data) noexcept {
        libsplit_tensor::data = data;
        return *this;
    }

#ifdef __cpp_lib_mdspan
    /// The elements as a std::mdspan. It has no elements if T or Rank is wrong, or if a stride is
    /// below 1, which std::mdspan does not allow.
    template <class T, std::size_t Rank>
    std::mdspan<T, std::dextents<std::int64_t, Rank>, std::layout_stride> mdspan() const noexcept {
        using extents = std::dextents<std::int64_t, Rank>;
        using mapping = std::layout_stride::mapping<extents>;
        std::array<std::int64_t, Rank> sizes{}, steps{};
        T *first = shape().size() == Rank ? data<T>() : nullptr;
        std::int64_t step = 1;
        for (std::size_t axis = Rank; axis-- > 0 && first != nullptr;) {
            sizes[axis] = shape()[axis];
            steps[axis] = strides().empty() || sizes[axis] <= 1 ? step : strides()[axis];
            step = sizes[axis] > 0 ? sizes[axis] * steps[axis] : step;
            if (sizes[axis] < 0 || steps[axis] < 1)
                first = nullptr;
        }
        if (first == nullptr) {
            sizes.fill(0);
            steps.fill(1);
        }
        return {first, mapping(extents(sizes), steps)};
    }
#endif

  private:
    std::size_t entries(const std::int64_t *array) const noexcept {
        return array == nullptr || libsplit_tensor::rank < 0
                   ? 0
                   : static_cast<std::size_t>(libsplit_tensor::rank);
    }
};

static_assert(sizeof(piece) == sizeof(libsplit_tensor) && std::is_standard_layout_v<piece> &&
                  std::is_trivially_copyable_v<piece>,
              "arrays of pieces are arrays of libsplit_tensor");

/// Where to copy a piece to: memory, which must outlive this object, and unless it is packed its
/// shape and strides, which are copied into the object (about 1 KiB). {} means that the piece is
/// not wanted.
class output : public piece {
  public:
    /// An output that is not wanted: every call skips it.
    output() noexcept = default;
    output(std::nullptr_t) noexcept {}

    /// Packed memory for as many elements as the piece has; its shape is the piece's.
    template <class T, class = std::enable_if_t<!std::is_void_v<T> && !std::is_const_v<T>>>
    output(T *data) noexcept : output(detail::dtype_for<T>(), data) {}
    output(libsplit::dtype type, void *data) noexcept : kind_(kind::memory) {
        libsplit_tensor::data = data;
        libsplit_tensor::dtype = static_cast<libsplit_dtype>(type);
    }
    /// The same for a container or span, whose size is checked.
    template <class Range, detail::if_output_range<Range> = 0>
    output(Range &&elements) noexcept : output(std::data(elements)) {
        fits(elements);
    }

    /// A tensor of this shape, with strides unless it is packed.
    template <class T, class = std::enable_if_t<!std::is_void_v<T> && !std::is_const_v<T>>>
    output(T *data, const dims &shape, const dims &strides = {}) noexcept
        : output(detail::dtype_for<T>(), data, shape, strides) {}
    output(libsplit::dtype type, void *data, const dims &shape, const dims &strides = {}) noexcept
        : output(type, data) {
        set_shape(shape, strides);
        libsplit_tensor::rank = shape.rank();
    }
    /// The same in a container or span, whose size is checked.
    template <class Range, detail::if_output_range<Range> = 0>
    output(Range &&elements, const dims &shape, const dims &strides = {}) noexcept
        : output(std::data(elements), shape, strides) {
        fits(elements);
    }

    /// A tensor described as in libsplit.h, such as a piece of another split.
    output(const libsplit_tensor &tensor) noexcept : kind_(kind::kept) {
        static_cast<libsplit_tensor &>(*this) = tensor;
        // A tensor that cannot be copied is refused by every call.
        if (tensor.rank < 0 || tensor.rank > LIBSPLIT_MAX_RANK || tensor.shape == nullptr)
            return;
        const auto axes = static_cast<std::size_t>(tensor.rank);
        const libsplit::span<const std::int64_t> extents(tensor.shape, axes);
        if (tensor.strides == nullptr)
            set_shape(extents, {});
        else
            set_shape(extents, libsplit::span<const std::int64_t>(tensor.strides, axes));
    }

    output(const output &other) noexcept { assign(other); }
    output &operator=(const output &other) noexcept {
        assign(other);
        return *this;
    }
    ~output() = default;

    // Ambiguous arguments, and memory that would be gone by the time of the call. Compilers show
    // these comments.
    template <class Range, detail::if_unknown<Range> = 0>
    output(Range &&) = delete; // no dtype is known for the elements: specialise libsplit::dtype_of
    template <class Range, detail::if_unknown<Range> = 0>
    output(Range &&, const dims &, const dims & = {}) = delete; // specialise libsplit::dtype_of
    output(const void *) = delete; // give elements that are not const, or their dtype first
    output(const void *, const dims &, const dims & = {}) = delete; // const, or dtype is missing
    template <class Data, class Integer, class... Rest, detail::if_integer<Integer> = 0>
    output(const Data &, Integer, Rest...) = delete; // put the shape in braces: (data, {2, 4})
    template <class Range, detail::if_not_kept<Range> = 0>
    output(Range &&) = delete; // const elements, or a temporary, which would be gone
    template <class Range, detail::if_not_kept<Range> = 0>
    output(Range &&, const dims &, const dims & = {}) = delete; // const elements, or a temporary

    /// The extents, in elements; for a temporary, a copy.
    span<const std::int64_t> shape() const & noexcept LIBSPLIT_LIFETIMEBOUND {
        return piece::shape();
    }
    dims shape() const && noexcept { return piece::shape(); }
    /// The strides in elements; empty if packed in row-major order.
    span<const std::int64_t> strides() const & noexcept LIBSPLIT_LIFETIMEBOUND {
        return piece::strides();
    }
    dims strides() const && noexcept { return piece::strides(); }

    /// Strides in bytes, one for each axis. A stride that is not a whole number of elements makes
    /// every call fail (status::strides). Only for an output that was given a shape.
    output &byte_strides(const dims &bytes) & noexcept {
        dims strides;
        wrong_ = detail::strides_of_bytes(
            "output: a stride of @ bytes is not whole elements of # bytes: pack the rows, or split "
            "bytes (dtype::uint8)",
            type(), bytes, strides);
        if (!wrong_)
            set_shape(shape_, strides);
        return *this;
    }
    /// The number of bytes from one step of the first axis to the next, such as from row to row of
    /// a picture; the other axes are packed. Otherwise like byte_strides().
    output &pitch(integer bytes) & noexcept {
        return byte_strides(detail::strides_of_pitch(type(), shape_, bytes));
    }
    // The same for temporaries.
    output byte_strides(const dims &bytes) && noexcept { return this->byte_strides(bytes); }
    output pitch(integer bytes) && noexcept { return this->pitch(bytes); }

    /// Whether it has a shape of its own rather than the piece's.
    bool has_shape() const noexcept { return kind_ != kind::memory; }
    /// Checks what libsplit cannot: that there are as many strides as extents, that strides are
    /// whole elements, and that a container is not empty (libsplit would take its size for not
    /// stated). 'described' has the shape.
    libsplit::error check(const piece &described, std::size_t index) const noexcept {
        const auto number = static_cast<std::int32_t>(index);
        if (wrong_)
            return {wrong_.status(), wrong_.what(), wrong_.expected(), wrong_.actual(), number};
        if (!strides_.empty() && strides_.rank() != shape_.rank())
            return {status::strides, "an output has @ strides for # axes: give one for each",
                    shape_.rank(), strides_.rank(), number};
        if (empty_range_ && described.size() > 0)
            return {status::data_bytes,
                    "the container for a piece is empty, # elements go there: resize it",
                    detail::to_int64(described.size()), 0, number};
        return {};
    }

  private:
    // Not wanted; memory for a piece whose shape the split knows; with a shape of its own; with the
    // arrays of a descriptor that cannot be copied.
    enum class kind { unwanted, memory, shaped, kept };

    template <class Range> void fits(const Range &elements) noexcept {
        libsplit_tensor::data_bytes = std::size(elements) * sizeof(*std::data(elements));
        empty_range_ = std::size(elements) == 0;
    }
    void set_shape(const dims &shape, const dims &strides) noexcept {
        kind_ = kind::shaped;
        shape_ = shape;
        strides_ = strides;
        point();
    }
    void point() noexcept {
        if (kind_ != kind::shaped)
            return;
        libsplit_tensor::shape = const_cast<std::int64_t *>(shape_.data());
        libsplit_tensor::strides =
            strides_.empty() ? nullptr : const_cast<std::int64_t *>(strides_.data());
    }
    void assign(const output &other) noexcept {
        static_cast<libsplit_tensor &>(*this) = other;
        shape_ = other.shape_;
        strides_ = other.strides_;
        wrong_ = other.wrong_;
        kind_ = other.kind_;
        empty_range_ = other.empty_range_;
        point();
    }

    dims shape_{}, strides_{};
    libsplit::error wrong_{};
    kind kind_ = kind::unwanted;
    bool empty_range_ = false;
};

/// The number of integers that outputs_init() needs.
constexpr std::size_t outputs_ints(std::size_t outputs, std::size_t rank) noexcept {
    return outputs * rank * 2;
}

/// Gives every piece room in 'ints' for a shape and strides of up to 'rank' entries, and clears the
/// rest: what infer() and view() need of pieces that the caller owns. Returns false, and changes
/// nothing, if there are fewer than outputs_ints() integers.
inline bool outputs_init(span<piece> outputs, span<std::int64_t> ints, std::size_t rank) noexcept {
    if (rank > LIBSPLIT_MAX_RANK || (rank > 0 && ints.size() / rank / 2 < outputs.size()))
        return false;
    std::int64_t *next = ints.data();
    for (piece &each : outputs) {
        libsplit_tensor tensor{};
        tensor.shape = next;
        tensor.strides = next + rank;
        tensor.capacity = static_cast<std::int32_t>((std::max)(rank, std::size_t{1}));
        static_cast<libsplit_tensor &>(each) = tensor;
        next += 2 * rank;
    }
    return true;
}

namespace detail {

struct free_block {
    void operator()(void *memory) const noexcept { ::operator delete(memory); }
};
/// Untyped memory.
using block = std::unique_ptr<void, free_block>;

} // namespace detail

/// Pieces with their shapes and strides, in one block of memory, which is replaced if they do not
/// fit into it. They do not own what they point to. A copy of a piece still needs them for its
/// shape. They can be moved.
class pieces {
  public:
    using value_type = piece;
    using iterator = const piece *;
    using const_iterator = const piece *;

    pieces() noexcept = default;
    pieces(pieces &&other) noexcept
        : block_(std::move(other.block_)), bytes_(std::exchange(other.bytes_, 0)),
          count_(std::exchange(other.count_, 0)) {}
    pieces &operator=(pieces &&other) noexcept {
        block_ = std::move(other.block_);
        bytes_ = std::exchange(other.bytes_, 0);
        count_ = std::exchange(other.count_, 0);
        return *this;
    }
    ~pieces() = default;

    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    piece *data() & noexcept LIBSPLIT_LIFETIMEBOUND { return first(); }
    const piece *data() const & noexcept LIBSPLIT_LIFETIMEBOUND { return first(); }
    piece *begin() & noexcept LIBSPLIT_LIFETIMEBOUND { return first(); }
    piece *end() & noexcept LIBSPLIT_LIFETIMEBOUND { return first() + count_; }
    const piece *begin() const & noexcept LIBSPLIT_LIFETIMEBOUND { return first(); }
    const piece *end() const & noexcept LIBSPLIT_LIFETIMEBOUND { return first() + count_; }
    piece &operator[](std::size_t index) & noexcept LIBSPLIT_LIFETIMEBOUND {
        return first()[index];
    }
    const piece &operator[](std::size_t index) const & noexcept LIBSPLIT_LIFETIMEBOUND {
        return first()[index];
    }
    /// For temporary pieces: a copy with a shape of its own.
    output operator[](std::size_t index) const && noexcept { return first()[index]; }
    const piece *data() const && = delete;  // gone at once: name the pieces
    const piece *begin() const && = delete; // gone at once: name the pieces
    const piece *end() const && = delete;   // gone at once: name the pieces

    /// Allocates room for this many pieces of this rank, so that later calls need not allocate.
    /// Removes the pieces that were there. Errors: status::out_of_memory, status::rank.
    result<> try_reserve(std::size_t count, std::size_t rank) noexcept {
        constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)() / 2;
        count_ = 0;
        if (rank > LIBSPLIT_MAX_RANK)
            return error(status::rank, "pieces of rank @, above #: merge axes", LIBSPLIT_MAX_RANK,
                         detail::to_int64(rank));
        const std::size_t each = sizeof(piece) + outputs_ints(1, rank) * sizeof(std::int64_t);
        if (count > most / each)
            return out_of_memory(count);
        if (count * each > bytes_) {
            block_.reset();
            bytes_ = 0;
            block_.reset(::operator new(count * each, std::nothrow));
            if (block_ == nullptr)
                return out_of_memory(count);
            bytes_ = count * each;
        }
        return {};
    }
#if LIBSPLIT_HPP_THROWS
    /// The same, but throws errors.
    void reserve(std::size_t count, std::size_t rank) { try_reserve(count, rank).value(); }
#endif

  private:
    friend class split;

    static error out_of_memory(std::size_t count) noexcept {
        return {status::out_of_memory, "out of memory for the descriptors of @ pieces", 0,
                detail::to_int64(count)};
    }
    piece *first() const noexcept { return static_cast<piece *>(block_.get()); }

    /// Makes descriptors with room, which infer() and view() fill in.
    result<> prepare(std::size_t count, std::size_t rank) noexcept {
        if (auto reserved = try_reserve(count, rank); !reserved)
            return reserved;
        if (count > 0) {
            for (std::size_t i = 0; i < count; i++)
                new (first() + i) piece();
            void *const rest = first() + count;
            const std::size_t ints = outputs_ints(count, rank);
            outputs_init({first(), count}, {static_cast<std::int64_t *>(rest), ints}, rank);
        }
        count_ = count;
        return {};
    }

    detail::block block_{};
    std::size_t bytes_ = 0;
    std::size_t count_ = 0;
};

namespace detail {

/// Descriptors of libsplit.h; anything else is converted to one.
template <class T>
inline constexpr bool is_thin = std::is_same_v<T, piece> || std::is_same_v<T, libsplit_tensor>;

/// Whether it is a range of outputs: of pieces, libsplit::output, addresses or containers.
template <class Range, class T = typename element_of<std::remove_reference_t<Range>>::type,
          class Plain = std::remove_cv_t<T>>
inline constexpr bool is_outputs =
    is_thin<Plain> || std::is_same_v<Plain, output> ||
    ((std::is_pointer_v<Plain> || is_elements<T>) && std::is_constructible_v<output, T &>);
template <class Range, class Plain> inline constexpr bool is_outputs<Range, void, Plain> = false;

inline bool has_shape(const output &given) noexcept { return given.has_shape(); }
template <class Memory> bool has_shape(const Memory &) noexcept { return false; }

/// Writes an output to a descriptor, which has the piece's shape if the output has none.
inline error put(const output &given, piece &described, std::size_t index) noexcept {
    libsplit_tensor tensor = given;
    if (!given.has_shape()) {
        tensor.shape = described.libsplit_tensor::shape;
        tensor.rank = described.libsplit_tensor::rank;
    }
    static_cast<libsplit_tensor &>(described) = tensor;
    return given.check(described, index);
}
template <class Memory> error put(Memory &given, piece &described, std::size_t index) noexcept {
    // The range is const here, but its elements are the caller's to write.
    return put(output(const_cast<std::remove_const_t<Memory> &>(given)), described, index);
}

/// Room for descriptors, the first 2 KiB without allocating.
class room {
  public:
    room() noexcept {}
    /// This many, with room for shapes and strides of this rank; nullptr if there is no memory.
    piece *make(std::size_t count, std::size_t rank) noexcept {
        const std::size_t each = sizeof(piece) + outputs_ints(1, rank) * sizeof(std::int64_t);
        if (count > (std::numeric_limits<std::size_t>::max)() / 2 / each)
            return nullptr;
        void *memory = few_;
        if (count * each > sizeof few_) {
            many_.reset(::operator new(count * each, std::nothrow));
            memory = many_.get();
        }
        if (memory == nullptr)
            return nullptr;
        piece *const first = static_cast<piece *>(memory);
        for (std::size_t i = 0; i < count; i++)
            new (first + i) piece();
        void *const rest = first + count;
        const std::size_t ints = outputs_ints(count, rank);
        outputs_init({first, count}, {static_cast<std::int64_t *>(rest), ints}, rank);
        return first;
    }

  private:
    alignas(piece) unsigned char few_[2048];
    block many_{};
};

} // namespace detail

// ---------------------------------------------------------------------------------------------
// Executors

/// The work of one call, as passed to an executor: task(i) does part i, on any thread, and never
/// throws. It must not be used after the call.
class task {
  public:
    task(libsplit_task_fn run, void *context) noexcept : run_(run), context_(context) {}
    void operator()(std::size_t index) const noexcept { run_(context_, index); }

  private:
    libsplit_task_fn run_;
    void *context_;
};

/// Runs everything on the calling thread, which is the default of copy().
struct calling_thread {
    /// LIBSPLIT_FLAG_OUTPUTS_READ_NEXT or LIBSPLIT_FLAG_NEVER_STREAM, or 0.
    std::uint32_t flags = 0;
};

/// An executor with options. 'run' is called as run(std::size_t count, libsplit::task task): it
/// calls task(i) once for each i < count, in any order and on any threads, and returns after the
/// last one has finished, or throws. An lvalue is kept by reference.
template <class Run> struct executor {
    Run run;
    /// The number of threads, which is the largest number of tasks that is useful at a time; 0 lets
    /// the library choose, which does not know how many threads there are.
    std::uint32_t max_tasks = 0;
    /// LIBSPLIT_FLAG_OUTPUTS_READ_NEXT or LIBSPLIT_FLAG_NEVER_STREAM, or 0.
    std::uint32_t flags = 0;
};
template <class Run> executor(Run &&) -> executor<Run>;
template <class Run> executor(Run &&, std::uint32_t) -> executor<Run>;
template <class Run> executor(Run &&, std::uint32_t, std::uint32_t) -> executor<Run>;

#ifdef _OPENMP
/// OpenMP's threads: this many, or as many as OpenMP has. Within a parallel region that is one,
/// unless OMP_MAX_ACTIVE_LEVELS allows more.
struct openmp {
    int threads = 0;

    void operator()(std::size_t count, task part) const noexcept {
        const int width = threads > 0 ? threads : omp_get_max_threads();
#pragma omp parallel for num_threads(width) schedule(dynamic, 1)
        for (std::size_t i = 0; i < count; i++)
            part(i);
    }
};
#endif

namespace detail {

/// A counting iterator, with which algorithms of the standard library loop over numbers.
class counter {
  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::size_t *;
    using reference = std::size_t;

    counter() noexcept = default;
    explicit counter(std::size_t value) noexcept : value_(value) {}
    std::size_t operator*() const noexcept { return value_; }
    std::size_t operator[](std::ptrdiff_t by) const noexcept { return *(*this + by); }
    counter &operator+=(std::ptrdiff_t by) noexcept {
        value_ += static_cast<std::size_t>(by);
        return *this;
    }
    counter &operator-=(std::ptrdiff_t by) noexcept { return *this += -by; }
    counter &operator++() noexcept { return *this += 1; }
    counter &operator--() noexcept { return *this -= 1; }
    counter operator++(int) noexcept { return std::exchange(*this, *this + 1); }
    counter operator--(int) noexcept { return std::exchange(*this, *this - 1); }
    friend counter operator+(counter a, std::ptrdiff_t by) noexcept { return a += by; }
    friend counter operator+(std::ptrdiff_t by, counter a) noexcept { return a += by; }
    friend counter operator-(counter a, std::ptrdiff_t by) noexcept { return a -= by; }
    friend std::ptrdiff_t operator-(counter a, counter b) noexcept {
        return static_cast<std::ptrdiff_t>(a.value_) - static_cast<std::ptrdiff_t>(b.value_);
    }
    friend bool operator==(counter a, counter b) noexcept { return a.value_ == b.value_; }
    friend bool operator!=(counter a, counter b) noexcept { return a.value_ != b.value_; }
    friend bool operator<(counter a, counter b) noexcept { return a.value_ < b.value_; }
    friend bool operator>(counter a, counter b) noexcept { return a.value_ > b.value_; }
    friend bool operator<=(counter a, counter b) noexcept { return a.value_ <= b.value_; }
    friend bool operator>=(counter a, counter b) noexcept { return a.value_ >= b.value_; }

  private:
    std::size_t value_ = 0;
};

} // namespace detail

/// An execution policy of the standard library: std_execution{std::execution::par}. You must
/// include <execution>.
template <class Policy> struct std_execution {
    Policy policy;

    void operator()(std::size_t count, task part) const {
        std::for_each(policy, detail::counter(0), detail::counter(count), part);
    }
};
template <class Policy> std_execution(Policy) -> std_execution<Policy>;

/// A thread pool with submit(f), which returns a future. Every task is one submission, for which
/// the pool and a std::vector of futures allocate memory. All tasks that were submitted are waited
/// for, even if a later one is refused.
template <class Pool> class submit_to {
  public:
    explicit submit_to(Pool &pool) noexcept : pool_(&pool) {}

    void operator()(std::size_t count, task part) const {
        using future = decltype(pool_->submit(bound{part, 0}));
        struct waiting {
            std::vector<future> futures{};
            ~waiting() {
                for (future &each : futures)
                    if (each.valid())
                        each.wait();
            }
        } all;
        all.futures.reserve(count);
        for (std::size_t i = 0; i < count; i++)
            all.futures.push_back(pool_->submit(bound{part, i}));
        for (future &each : all.futures)
            each.get();
    }

  private:
    struct bound {
        task run;
        std::size_t index;
        void operator()() const noexcept { run(index); }
    };
    Pool *pool_;
};

namespace detail {

template <class Executor> struct is_executor : std::false_type {};
template <class Run> struct is_executor<executor<Run>> : std::true_type {};

/// The pool of one call for libsplit.h, and the exception that it threw.
template <class Run> class pool_call {
  public:
    pool_call(Run &run, std::uint32_t max_tasks, std::uint32_t flags) noexcept : run_(&run) {
        executor_.max_tasks = max_tasks;
        executor_.flags = flags;
    }
    pool_call(const pool_call &) = delete;
    pool_call &operator=(const pool_call &) = delete;
    ~pool_call() = default;

    const libsplit_executor *get() const noexcept { return &executor_; }
    void rethrow() const {
#if LIBSPLIT_HPP_THROWS
        if (thrown_)
            std::rethrow_exception(thrown_);
#endif
    }

  private:
    static std::int32_t LIBSPLIT_CALL parallel_for(void *pool, libsplit_task_fn run, void *context,
                                                   std::size_t count) noexcept {
        auto &self = *static_cast<pool_call *>(pool);
#if LIBSPLIT_HPP_THROWS
        try {
            (*self.run_)(count, task(run, context));
        } catch (...) {
            self.thrown_ = std::current_exception();
            return -1;
        }
#else
        (*self.run_)(count, task(run, context));
#endif
        return 0;
    }

    Run *run_;
#if LIBSPLIT_HPP_THROWS
    std::exception_ptr thrown_{};
#endif
    libsplit_executor executor_ = LIBSPLIT_EXECUTOR_INIT(parallel_for, this);
};

/// The executor of one call for libsplit.h.
class plain_call {
  public:
    explicit plain_call(const libsplit_executor *given) noexcept : given_(given) {}
    explicit plain_call(calling_thread caller) noexcept : given_(&own_) {
        own_.flags = caller.flags;
    }
    plain_call(const plain_call &) = delete;
    plain_call &operator=(const plain_call &) = delete;
    ~plain_call() = default;

    const libsplit_executor *get() const noexcept { return given_; }
    void rethrow() const noexcept {}

  private:
    libsplit_executor own_ = LIBSPLIT_EXECUTOR_INIT(nullptr, nullptr);
    const libsplit_executor *given_;
};

/// Calls 'act' with what runs one call on any kind of executor.
template <class Executor, class Act> decltype(auto) with_executor(Executor &&given, Act act) {
    using plain = std::remove_cv_t<std::remove_reference_t<Executor>>;
    if constexpr (std::is_same_v<plain, calling_thread>) {
        const plain_call call(given);
        return act(call);
    } else if constexpr (std::is_same_v<plain, libsplit_executor>) {
        const plain_call call(&given);
        return act(call);
    } else if constexpr (is_executor<plain>::value) {
        pool_call<std::remove_reference_t<decltype((given.run))>> call(given.run, given.max_tasks,
                                                                       given.flags);
        return act(call);
    } else {
        pool_call<std::remove_reference_t<Executor>> call(given, 0, 0);
        return act(call);
    }
}

} // namespace detail

// ---------------------------------------------------------------------------------------------
// Plans

/// A split of one shape, prepared so that only the addresses are missing. It is made by
/// split::plan() and keeps no pointers. It can be moved.
class plan {
  public:
    /// No plan; every call refuses it (status::null).
    plan() noexcept = default;

    /// Copies the tensor whose element [0, ..., 0] is at 'from' to the addresses in 'outputs', one
    /// for each piece, in the layouts that the plan was made with; see libsplit_plan_copy().
    /// Addresses of pieces that are not wanted or have no elements are ignored. Sizes cannot be
    /// checked. Allocates nothing.
    template <class Executor = calling_thread>
    result<> try_copy(const void *from, span<void *const> outputs,
                      Executor &&executor = {}) const noexcept {
        return detail::with_executor(
            executor, [&](const auto &running) { return copy_on(running, from, outputs); });
    }
    /// The same with the addresses in braces.
    template <class Executor = calling_thread>
    result<> try_copy(const void *from, std::initializer_list<void *> outputs,
                      Executor &&executor = {}) const noexcept {
        return try_copy(from, span<void *const>(outputs.begin(), outputs.size()), executor);
    }

    /// Stores the addresses of the pieces of the tensor at 'from' in 'outputs'; see
    /// libsplit_plan_view(). Shapes and strides are those of split::view().
    result<> try_view(const void *from, span<void *> outputs) const noexcept {
        error wrong;
        libsplit_plan_view(get(), const_cast<void *>(from), outputs.data(), outputs.size(),
                           wrong.get());
        return wrong;
    }

#if LIBSPLIT_HPP_THROWS
    // The same, but throws errors; copy() also throws what the executor threw.

    template <class Executor = calling_thread>
    void copy(const void *from, span<void *const> outputs, Executor &&executor = {}) const {
        detail::with_executor(executor, [&](const auto &running) {
            const result<> done = copy_on(running, from, outputs);
            running.rethrow();
            done.value();
        });
    }
    template <class Executor = calling_thread>
    void copy(const void *from, std::initializer_list<void *> outputs,
              Executor &&executor = {}) const {
        copy(from, span<void *const>(outputs.begin(), outputs.size()), executor);
    }
    void view(const void *from, span<void *> outputs) const { try_view(from, outputs).value(); }
#endif

    /// For functions of libsplit.h; nullptr if there is no plan.
    const libsplit_plan *get() const noexcept {
        return static_cast<const libsplit_plan *>(block_.get());
    }

  private:
    friend class split;

    template <class Running>
    result<> copy_on(const Running &running, const void *from,
                     span<void *const> outputs) const noexcept {
        error wrong;
        libsplit_plan_copy(get(), from, outputs.data(), outputs.size(), running.get(), wrong.get());
        return wrong;
    }

    detail::block block_{};
};

// ---------------------------------------------------------------------------------------------
// The split

/// What to do: an operator, its version and its parameters. One of four functions makes it, and
/// others return it with one parameter set: split::onnx(18).axis(1).parts(2). Parameters that the
/// operator does not take are refused when the split is used.
class split {
  public:
    /// ONNX Split, of the version that applies to this opset import. 18 or newer takes parts() or
    /// lengths(); older versions make equal parts, or take lengths().
    static split onnx(std::int32_t opset) noexcept { return {LIBSPLIT_OP_ONNX_SPLIT, opset}; }
    /// ONNX SplitToSequence: takes piece_length(), or lengths(), or neither for pieces of length 1,
    /// where keepdims(false) drops the axis (which others call unbind).
    static split to_sequence(std::int32_t opset = 24) noexcept {
        return {LIBSPLIT_OP_ONNX_SPLIT_TO_SEQUENCE, opset};
    }
    /// OpenVINO Split: takes parts(), which must divide the extent.
    static split openvino() noexcept { return {LIBSPLIT_OP_OPENVINO_SPLIT, 1}; }
    /// OpenVINO VariadicSplit: takes lengths(), one of which may be -1 for the rest.
    static split variadic() noexcept { return {LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1}; }

    split(const split &) = default;
    split(split &&) = default;
    split &operator=(const split &) = default;
    split &operator=(split &&) = default;
    ~split() = default;

    /// The axis to split; negative axes count from the back. The default is 0.
    [[nodiscard]] split axis(integer axis) && noexcept {
        params_.axis = axis;
        return std::move(*this);
    }
    /// The number of parts (ONNX num_outputs, OpenVINO num_splits); 0 means not set.
    [[nodiscard]] split parts(integer parts) && noexcept {
        params_.num_outputs = parts;
        return std::move(*this);
    }
    /// One length for each piece. They are copied: up to 16 into the object, more into a
    /// std::vector.
    template <class Range, class = std::enable_if_t<detail::has_integers<Range>>>
    [[nodiscard]] split lengths(const Range &lengths) && {
        begin_list();
        for (const auto length : lengths)
            push(detail::to_int64(length));
        return std::move(*this);
    }
    /// The same, in braces.
    [[nodiscard]] split lengths(std::initializer_list<integer> lengths) && {
        begin_list();
        for (const std::int64_t length : lengths)
            push(length);
        return std::move(*this);
    }
    /// The length of every piece, except that the last may be smaller (SplitToSequence).
    [[nodiscard]] split piece_length(integer length) && noexcept {
        few_[0] = length;
        few_count_ = 1;
        many_.clear();
        given_ = nullptr;
        kind_ = kind::scalar;
        return std::move(*this);
    }
    /// Lengths in a tensor, as in the model: its rank and type matter. The tensor is not copied and
    /// must outlive the split.
    [[nodiscard]] split lengths_tensor(const input &lengths LIBSPLIT_LIFETIMEBOUND) && noexcept {
        given_ = &lengths;
        kind_ = kind::tensor;
        return std::move(*this);
    }
    /// Whether pieces of length 1 keep the axis (SplitToSequence without lengths). The default is
    /// true.
    [[nodiscard]] split keepdims(bool keep) && noexcept {
        params_.keepdims = keep ? 1 : 0;
        return std::move(*this);
    }
    /// For Split-18 with parts(): makes 5 into 4 give 2, 2, 1, 0 instead of an error.
    [[nodiscard]] split clamp_uneven(bool clamp = true) && noexcept {
        params_.flags = clamp ? LIBSPLIT_FLAG_CLAMP_UNEVEN : 0;
        return std::move(*this);
    }

    // The same for a split that has a name, which does not change.
    [[nodiscard]] split axis(integer axis) const & { return split(*this).axis(axis); }
    [[nodiscard]] split parts(integer parts) const & { return split(*this).parts(parts); }
    template <class Range, class = std::enable_if_t<detail::has_integers<Range>>>
    [[nodiscard]] split lengths(const Range &lengths) const & {
        return split(*this).lengths(lengths);
    }
    [[nodiscard]] split lengths(std::initializer_list<integer> lengths) const & {
        return split(*this).lengths(lengths);
    }
    [[nodiscard]] split piece_length(integer length) const & {
        return split(*this).piece_length(length);
    }
    [[nodiscard]] split lengths_tensor(const input &lengths LIBSPLIT_LIFETIMEBOUND) const & {
        return split(*this).lengths_tensor(lengths);
    }
    [[nodiscard]] split keepdims(bool keep) const & { return split(*this).keepdims(keep); }
    [[nodiscard]] split clamp_uneven(bool clamp = true) const & {
        return split(*this).clamp_uneven(clamp);
    }
    template <class Integer, class... Rest, detail::if_integer<Integer> = 0>
    split lengths(Integer, Rest...) const = delete;  // put the lengths in braces: {2, 4}
    split lengths_tensor(input &&) const & = delete; // a temporary, which would be gone: name it
    split lengths_tensor(input &&) && = delete;      // a temporary, which would be gone: name it

    /// The number of pieces; see libsplit_count().
    result<std::size_t> try_count(const input &x) const noexcept {
        error wrong = check(x);
        std::size_t count = 0;
        if (!wrong)
            call(x, [&](const libsplit_tensor &tensor, const libsplit_params &params) {
                libsplit_count(&tensor, &params, &count, wrong.get());
            });
        if (wrong)
            return wrong;
        return count;
    }

    /// Describes the pieces: type, shape, packed strides, bytes(); see libsplit_infer(). The input
    /// needs no data, and extents may be dim_unknown. Allocates the pieces.
    result<pieces> try_infer(const input &x) const noexcept { return made(x, libsplit_infer); }
    /// The same into existing pieces. Allocates if they have no room, and leaves them empty on an
    /// error.
    result<> try_infer(const input &x, pieces &into) const noexcept {
        return fill(x, into, libsplit_infer);
    }
    /// The same into an array of as many pieces with room (outputs_init()). On an error none has
    /// changed.
    result<> try_infer(const input &x, span<piece> outputs) const noexcept {
        return describe(x, outputs, libsplit_infer);
    }

    /// Points the pieces into the input, which is not read; see libsplit_view(). They are valid as
    /// long as its memory. Allocates the pieces.
    result<pieces> try_view(const input &x) const noexcept { return made(x, libsplit_view); }
    /// The same into existing pieces. Allocates if they have no room, and leaves them empty on an
    /// error.
    result<> try_view(const input &x, pieces &into) const noexcept {
        return fill(x, into, libsplit_view);
    }
    /// The same into an array of as many pieces with room (outputs_init()). On an error none has
    /// changed.
    result<> try_view(const input &x, span<piece> outputs) const noexcept {
        return describe(x, outputs, libsplit_view);
    }

    /// Copies every piece into its output; see libsplit_copy(). Outputs are containers, addresses,
    /// or libsplit::output with shape and strides, in braces or in any range; or pieces, such as
    /// those of infer(). They must not overlap; {} is skipped. Descriptors that do not fit into 2
    /// KiB (more than about 16) are allocated, unless they are pieces. On an error nothing has been
    /// written, except with status::executor: any part may then have been written.
    template <class Outputs, class Executor = calling_thread,
              class = std::enable_if_t<detail::is_outputs<Outputs>>>
    result<> try_copy(const input &x, Outputs &&outputs, Executor &&executor = {}) const noexcept {
        return detail::with_executor(
            executor, [&](const auto &running) { return copy_on(running, x, outputs); });
    }

    /// The same with the outputs in braces.
    template <class Executor = calling_thread>
    result<> try_copy(const input &x, std::initializer_list<output> outputs,
                      Executor &&executor = {}) const noexcept {
        return detail::with_executor(
            executor, [&](const auto &running) { return copy_on(running, x, outputs); });
    }

    /// Copies every piece into memory that a function provides: allocate(std::size_t index, const
    /// piece &described) returns an address (nullptr if there are no elements), or a container or
    /// span of elements, whose size is then checked. Nothing is copied until all memory has been
    /// provided. Allocates the descriptors of the pieces, and returns them.
    template <class Allocate, class Executor = calling_thread,
              class = std::enable_if_t<std::is_invocable_v<Allocate &, std::size_t, const piece &>>>
    result<pieces> try_copy(const input &x, Allocate &&allocate, Executor &&executor = {}) const
        noexcept(std::is_nothrow_invocable_v<Allocate &, std::size_t, const piece &>) {
        pieces all;
        if (auto allocated = provide(x, all, allocate); !allocated)
            return allocated.error();
        if (auto done = try_copy(x, all, executor); !done)
            return done.error();
        return all;
    }

    /// Prepares the split of tensors like this input, whose data does not matter, into packed
    /// outputs; see libsplit_plan_init(). Allocates the plan.
    result<libsplit::plan> try_plan(const input &x) const noexcept {
        const auto count = try_count(x);
        if (!count)
            return count.error();
        return planned(x, nullptr, *count);
    }
    /// The same for outputs like these, which may have strides or be unwanted; their data does not
    /// matter.
    template <class Outputs, class = std::enable_if_t<detail::is_outputs<Outputs>>>
    result<libsplit::plan> try_plan(const input &x, Outputs &&outputs) const noexcept {
        return planned_for(x, outputs);
    }
    result<libsplit::plan> try_plan(const input &x,
                                    std::initializer_list<output> outputs) const noexcept {
        return planned_for(x, outputs);
    }

#if LIBSPLIT_HPP_THROWS
    // The same, but throws errors; copy() also throws what the executor or the allocator threw.

    std::size_t count(const input &x) const { return try_count(x).value(); }
    pieces infer(const input &x) const { return try_infer(x).value(); }
    void infer(const input &x, pieces &into) const { try_infer(x, into).value(); }
    void infer(const input &x, span<piece> outputs) const { try_infer(x, outputs).value(); }
    pieces view(const input &x) const { return try_view(x).value(); }
    void view(const input &x, pieces &into) const { try_view(x, into).value(); }
    void view(const input &x, span<piece> outputs) const { try_view(x, outputs).value(); }
    libsplit::plan plan(const input &x) const { return try_plan(x).value(); }
    template <class Outputs, class = std::enable_if_t<detail::is_outputs<Outputs>>>
    libsplit::plan plan(const input &x, Outputs &&outputs) const {
        return try_plan(x, outputs).value();
    }
    libsplit::plan plan(const input &x, std::initializer_list<output> outputs) const {
        return try_plan(x, outputs).value();
    }

    template <class Outputs, class Executor = calling_thread,
              class = std::enable_if_t<detail::is_outputs<Outputs>>>
    void copy(const input &x, Outputs &&outputs, Executor &&executor = {}) const {
        copy_or_throw(x, outputs, executor);
    }
    template <class Executor = calling_thread>
    void copy(const input &x, std::initializer_list<output> outputs,
              Executor &&executor = {}) const {
        copy_or_throw(x, outputs, executor);
    }
    template <class Allocate, class Executor = calling_thread,
              class = std::enable_if_t<std::is_invocable_v<Allocate &, std::size_t, const piece &>>>
    pieces copy(const input &x, Allocate &&allocate, Executor &&executor = {}) const {
        pieces all;
        provide(x, all, allocate).value();
        copy_or_throw(x, all, executor);
        return all;
    }
#endif

  private:
    enum class kind { absent, scalar, list, tensor };

    split(libsplit_op op, std::int32_t opset) noexcept : params_(LIBSPLIT_PARAMS_INIT(op, opset)) {}

    void begin_list() noexcept {
        few_count_ = 0;
        many_.clear();
        given_ = nullptr;
        kind_ = kind::list;
    }
    void push(std::int64_t length) {
        if (many_.empty() && few_count_ < few_.size()) {
            few_[few_count_++] = length;
            return;
        }
        if (many_.empty())
            many_.assign(few_.begin(), few_.end());
        many_.push_back(length);
    }

    error check(const input &x) const noexcept {
        const error wrong = x.check();
        return wrong || given_ == nullptr ? wrong : given_->check();
    }

    /// Calls 'act' with the input and the parameters for libsplit.h.
    template <class Act> void call(const input &x, Act act) const noexcept {
        const libsplit_tensor tensor = x.get();
        libsplit_params params = params_;
        libsplit_tensor lengths{};
        std::int64_t count = 0;
        if (kind_ == kind::tensor) {
            lengths = given_->get();
        } else if (kind_ != kind::absent) {
            count = detail::to_int64(many_.empty() ? few_count_ : many_.size());
            lengths.data = const_cast<std::int64_t *>(many_.empty() ? few_.data() : many_.data());
            lengths.shape = &count;
            lengths.rank = kind_ == kind::list ? 1 : 0;
            lengths.dtype = LIBSPLIT_DTYPE_INT64;
        }
        if (kind_ != kind::absent)
            params.split = &lengths;
        act(tensor, params);
    }

    using describe_fn = decltype(libsplit_infer);

    result<> describe(const input &x, span<piece> outputs, describe_fn *how) const noexcept {
        error wrong = check(x);
        if (!wrong)
            call(x, [&](const libsplit_tensor &tensor, const libsplit_params &params) {
                how(&tensor, &params, outputs.data(), outputs.size(), wrong.get());
            });
        return wrong;
    }

    result<> fill(const input &x, pieces &into, describe_fn *how) const noexcept {
        into.count_ = 0;
        const auto count = try_count(x);
        if (!count)
            return count.error();
        auto done = into.prepare(*count, static_cast<std::size_t>(x.get().rank));
        if (done)
            done = describe(x, {into.data(), into.size()}, how);
        if (!done)
            into.count_ = 0;
        return done;
    }

    result<pieces> made(const input &x, describe_fn *how) const noexcept {
        pieces all;
        if (auto done = fill(x, all, how); !done)
            return done.error();
        return all;
    }

    result<libsplit::plan> planned(const input &x, const libsplit_tensor *outputs,
                                   std::size_t count) const noexcept {
        error wrong = check(x);
        libsplit::plan made;
        const std::size_t bytes = libsplit_plan_size(x.get().rank, count);
        if (!wrong && bytes > 0) {
            made.block_.reset(::operator new(bytes, std::nothrow));
            if (made.block_ == nullptr)
                wrong = {status::out_of_memory, "out of memory for a plan of @ bytes", 0,
                         detail::to_int64(bytes)};
        }
        if (!wrong)
            call(x, [&](const libsplit_tensor &tensor, const libsplit_params &params) {
                libsplit_plan_init(static_cast<libsplit_plan *>(made.block_.get()), bytes, &tensor,
                                   &params, outputs, count, wrong.get());
            });
        if (wrong)
            return wrong;
        return made;
    }
    template <class Outputs>
    result<libsplit::plan> planned_for(const input &x, const Outputs &outputs) const noexcept {
        libsplit::plan made;
        auto done = with_outputs(x, outputs, [&](const libsplit_tensor *all, std::size_t count) {
            auto planned_now = planned(x, all, count);
            if (!planned_now)
                return planned_now.error();
            made = *std::move(planned_now);
            return error();
        });
        if (done)
            return done;
        return made;
    }

    template <class Allocate>
    result<> provide(const input &x, pieces &into, Allocate &allocate) const {
        if (auto inferred = try_infer(x, into); !inferred)
            return inferred;
        for (std::size_t i = 0; i < into.size(); i++) {
            using given = decltype(allocate(i, std::as_const(into[i])));
            static_assert(std::is_reference_v<given> || std::is_trivially_destructible_v<given>,
                          "what allocate returns must not own the memory, which would be gone");
            auto &&memory = allocate(i, std::as_const(into[i]));
            if constexpr (std::is_convertible_v<given, void *>) {
                into[i].set_data(memory);
            } else {
                const std::size_t bytes = std::size(memory) * sizeof(*std::data(memory));
                if (bytes < into[i].bytes())
                    return error(status::data_bytes,
                                 "the memory for a piece has @ bytes, # are needed: make it larger",
                                 detail::to_int64(into[i].bytes()), detail::to_int64(bytes),
                                 static_cast<std::int32_t>(i));
                into[i].set_data(std::data(memory));
            }
        }
        return {};
    }

    /// Calls 'act' with the outputs for libsplit.h; those without a shape get the piece's.
    template <class Outputs, class Act>
    error with_outputs(const input &x, const Outputs &outputs, Act act) const noexcept {
        using element = std::remove_cv_t<std::remove_pointer_t<decltype(std::data(outputs))>>;
        const std::size_t count = std::size(outputs);
        if constexpr (detail::is_thin<element>) {
            return act(std::data(outputs), count);
        } else {
            if (error wrong = check(x))
                return wrong;
            const auto *const first = std::data(outputs);
            bool have_shapes = true;
            for (std::size_t i = 0; i < count; i++)
                have_shapes &= detail::has_shape(first[i]);
            const auto axes = static_cast<std::size_t>((std::max)(x.get().rank, std::int32_t{0}));
            const std::size_t rank =
                have_shapes ? 0 : (std::min)(axes, std::size_t{LIBSPLIT_MAX_RANK});
            detail::room room;
            piece *const all = room.make(count, rank);
            if (all == nullptr)
                return {status::out_of_memory, "out of memory for the descriptors of @ outputs", 0,
                        detail::to_int64(count)};
            if (!have_shapes)
                if (auto inferred = describe(x, {all, count}, libsplit_infer); !inferred)
                    return inferred.error();
            for (std::size_t i = 0; i < count; i++)
                if (error wrong = detail::put(first[i], all[i], i))
                    return wrong;
            return act(all, count);
        }
    }

    template <class Running, class Outputs>
    result<> copy_on(const Running &running, const input &x,
                     const Outputs &outputs) const noexcept {
        return with_outputs(x, outputs, [&](const libsplit_tensor *all, std::size_t count) {
            error wrong = check(x);
            if (!wrong)
                call(x, [&](const libsplit_tensor &tensor, const libsplit_params &params) {
                    libsplit_copy(&tensor, &params, all, count, running.get(), wrong.get());
                });
            return wrong;
        });
    }

#if LIBSPLIT_HPP_THROWS
    template <class Outputs, class Executor>
    void copy_or_throw(const input &x, const Outputs &outputs, Executor &executor) const {
        detail::with_executor(executor, [&](const auto &running) {
            const result<> done = copy_on(running, x, outputs);
            running.rethrow();
            done.value();
        });
    }
#endif

    libsplit_params params_;
    kind kind_ = kind::absent;
    std::size_t few_count_ = 0;
    std::array<std::int64_t, 16> few_{};
    std::vector<std::int64_t> many_{};
    const input *given_ = nullptr;
};

} // namespace LIBSPLIT_HPP_NAME
} // namespace libsplit

#endif // LIBSPLIT_HPP
