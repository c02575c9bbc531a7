// What OpenVINO has, as libsplit describes it.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <libsplit.h>

#include <openvino/core/partial_shape.hpp>
#include <openvino/core/type/element_type.hpp>
#include <openvino/runtime/tensor.hpp>

#include <cstdint>
#include <vector>

namespace libsplit_openvino {

// The element type as libsplit knows it; throws where it does not. nf4 is carried as four bits.
libsplit_dtype dtype_of(ov::element::Type type);

// A descriptor, and the shape that it points to. Moved, but not copied.
struct Described {
    libsplit_tensor tensor{};
    std::vector<int64_t> shape;

    // A shape, of which extents may be unknown; the rank is known.
    Described(const ov::PartialShape &extents, ov::element::Type type);
    explicit Described(const ov::Tensor &tensor);
    // Room for a shape.
    explicit Described(int32_t rank);

    Described(Described &&) = default;
    Described &operator=(Described &&) = default;
    Described(const Described &) = delete;
    Described &operator=(const Described &) = delete;

    ov::PartialShape extents() const;
};

} // namespace libsplit_openvino
