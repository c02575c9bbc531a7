// What OpenVINO has, as libsplit describes it.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "describe.hpp"

#include <openvino/core/except.hpp>

namespace libsplit_openvino {

libsplit_dtype dtype_of(ov::element::Type type) {
    switch (type) {
    case ov::element::boolean:
        return LIBSPLIT_DTYPE_BOOL;
    case ov::element::bf16:
        return LIBSPLIT_DTYPE_BFLOAT16;
    case ov::element::f16:
        return LIBSPLIT_DTYPE_FLOAT16;
    case ov::element::f32:
        return LIBSPLIT_DTYPE_FLOAT;
    case ov::element::f64:
        return LIBSPLIT_DTYPE_DOUBLE;
    case ov::element::i4:
        return LIBSPLIT_DTYPE_INT4;
    case ov::element::i8:
        return LIBSPLIT_DTYPE_INT8;
    case ov::element::i16:
        return LIBSPLIT_DTYPE_INT16;
    case ov::element::i32:
        return LIBSPLIT_DTYPE_INT32;
    case ov::element::i64:
        return LIBSPLIT_DTYPE_INT64;
    case ov::element::u2:
        return LIBSPLIT_DTYPE_UINT2;
    case ov::element::u4:
    case ov::element::nf4:
        return LIBSPLIT_DTYPE_UINT4;
    case ov::element::u8:
        return LIBSPLIT_DTYPE_UINT8;
    case ov::element::u16:
        return LIBSPLIT_DTYPE_UINT16;
    case ov::element::u32:
        return LIBSPLIT_DTYPE_UINT32;
    case ov::element::u64:
        return LIBSPLIT_DTYPE_UINT64;
    case ov::element::f8e4m3:
        return LIBSPLIT_DTYPE_FLOAT8E4M3FN;
    case ov::element::f8e5m2:
        return LIBSPLIT_DTYPE_FLOAT8E5M2;
    case ov::element::f8e8m0:
        return LIBSPLIT_DTYPE_FLOAT8E8M0;
    case ov::element::f4e2m1:
        return LIBSPLIT_DTYPE_FLOAT4E2M1;
    case ov::element::string:
        return LIBSPLIT_DTYPE_STRING;
    default:
        OPENVINO_THROW("libsplit has no element type ", type, ": convert the tensor first");
    }
}

Described::Described(const ov::PartialShape &extents, ov::element::Type type) {
    for (const auto &extent : extents)
        shape.push_back(extent.is_static() ? extent.get_length() : LIBSPLIT_DIM_UNKNOWN);
    tensor.shape = shape.data();
    tensor.rank = static_cast<int32_t>(shape.size());
    tensor.dtype = dtype_of(type);
}

Described::Described(const ov::Tensor &from)
    : Described(ov::PartialShape(from.get_shape()), from.get_element_type()) {
    OPENVINO_ASSERT(from.is_continuous(), "libsplit: a region of a tensor: copy it first");
    tensor.data = const_cast<void *>(from.data());
    tensor.data_bytes = from.get_byte_size();
}

Described::Described(int32_t rank) : shape(static_cast<size_t>(rank)) {
    tensor.shape = shape.data();
    tensor.capacity = rank;
}

ov::PartialShape Described::extents() const {
    ov::PartialShape extents;
    for (int64_t extent : shape)
        extents.push_back(extent == LIBSPLIT_DIM_UNKNOWN ? ov::Dimension::dynamic()
                                                         : ov::Dimension(extent));
    return extents;
}

} // namespace libsplit_openvino
