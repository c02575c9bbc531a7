/*
 * libsplit_dlpack.h - converts tensors of DLPack 1.0 to 1.3 to tensors of libsplit, and back
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * For C99 and C++. Everything is inline; nothing is allocated, no data is read, and no DLPack
 * tensor is ever deleted: whoever owns one keeps owning it.
 *
 * Include your own dlpack.h first. If you include none, this header includes <dlpack/dlpack.h> if
 * the compiler finds it, and otherwise declares the parts of DLPack that it needs, compatibly.
 *
 * From a producer's tensor to views in DLPack, with error checks left out:
 *
 *     libsplit_tensor input;
 *     libsplit_tensor_from_dlpack_versioned(managed, 0, &input, NULL);
 *     libsplit_view(&input, &params, pieces, n, NULL);     // each with room for strides
 *     for (size_t i = 0; i < n; i++) {
 *         libsplit_tensor_to_dlpack_versioned(&pieces[i], managed, NULL, &results[i], NULL);
 *         results[i].manager_ctx = ...;     // what keeps 'managed' and the pieces' arrays alive
 *         results[i].deleter = ...;
 *     }
 *
 * For a legacy DLManagedTensor, pass its dl_tensor to the functions without _versioned.
 *
 * In every function 'error' may be NULL. It is filled in as by the functions of libsplit.h: on
 * success too, and not at all if its struct_size is impossible. On an error nothing else is
 * written. Every function may be called from any thread at any time.
 */
#ifndef LIBSPLIT_DLPACK_H
#define LIBSPLIT_DLPACK_H

#include "libsplit.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#if !defined(DLPACK_DLPACK_H_) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifdef DLPACK_DLPACK_H_
#if !defined(DLPACK_MAJOR_VERSION) || DLPACK_MAJOR_VERSION != 1
#error "libsplit_dlpack.h needs a dlpack.h of version 1.0 or newer, below 2"
#endif
#else
/* The declarations of dlpack.h that are needed here. */
#ifdef __cplusplus
extern "C" {
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3,
    kDLOpenCL = 4,
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11,
    kDLExtDev = 12,
    kDLCUDAManaged = 13,
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17,
    kDLTrn = 18
} DLDeviceType;

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
#ifdef __cplusplus
}
#endif
#endif

/* The version of DLPack that libsplit_tensor_to_dlpack_versioned() writes. */
#define LIBSPLIT_DLPACK_MAJOR 1
#define LIBSPLIT_DLPACK_MINOR 3

/* DLManagedTensorVersioned.flags; the dlpack.h of version 1.0 lacks some of them. */
#define LIBSPLIT_DLPACK_READ_ONLY 1
#define LIBSPLIT_DLPACK_COPIED 2
#define LIBSPLIT_DLPACK_SUBBYTE_PADDED 4

/* Ends every function: fills in 'error' as libsplit does, and returns 'status'. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
static inline libsplit_status libsplit_dlpack_end_(libsplit_error *error, libsplit_status status,
                                                   int64_t expected, int64_t actual,
                                                   const char *message, ...) {
    va_list arguments;
    if (error == NULL)
        return status;
    error->status = status;
    error->output_index = -1;
    error->expected = expected;
    error->actual = actual;
    va_start(arguments, message);
    (void)vsnprintf(error->message, sizeof error->message, message, arguments);
    va_end(arguments);
    return status;
}

static inline libsplit_status libsplit_dlpack_ok_(libsplit_error *error) {
    return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_OK, 0, 0, "%s", "");
}

/* Begins every function: whether 'error' is too small to be filled in. */
static inline int libsplit_dlpack_is_unusable_(const libsplit_error *error) {
    const size_t first = offsetof(libsplit_error, message) + sizeof error->message;
    return error != NULL && (error->struct_size < first || error->struct_size > 4096);
}
#define LIBSPLIT_DLPACK_BEGIN_(error)                                                              \
    if (libsplit_dlpack_is_unusable_(error))                                                       \
    return LIBSPLIT_STATUS_ERROR_STRUCT_SIZE

/* The name of a type code, as dlpack.h spells it after kDL. */
static inline const char *libsplit_dlpack_code_name_(uint8_t code) {
    static const char *const names[] = {
        "Int",
        "UInt",
        "Float",
        "OpaqueHandle",
        "Bfloat",
        "Complex",
        "Bool",
        "Float8_e3m4",
        "Float8_e4m3",
        "Float8_e4m3b11fnuz",
        "Float8_e4m3fn",
        "Float8_e4m3fnuz",
        "Float8_e5m2",
        "Float8_e5m2fnuz",
        "Float8_e8m0fnu",
        "Float6_e2m3fn",
        "Float6_e3m2fn",
        "Float4_e2m1fn",
    };
    return code < sizeof names / sizeof *names ? names[code] : "not a code of DLPack 1.3";
}

/* The unsigned type with this many bits, as which elements without a type of their own are carried;
 * for 128 bits, the only type of that size. 0 if there is none. */
static inline libsplit_dtype libsplit_dlpack_carrier_(unsigned bits) {
    switch (bits) {
    case 8:
        return LIBSPLIT_DTYPE_UINT8;
    case 16:
        return LIBSPLIT_DTYPE_UINT16;
    case 32:
        return LIBSPLIT_DTYPE_UINT32;
    case 64:
        return LIBSPLIT_DTYPE_UINT64;
    case 128:
        return LIBSPLIT_DTYPE_COMPLEX128;
    default:
        return 0;
    }
}

/* The element type of one lane; 0 if there is none. */
static inline libsplit_dtype libsplit_dlpack_lane_(uint8_t code, uint8_t bits) {
    switch (code << 8 | bits) {
    case 0 << 8 | 2:
        return LIBSPLIT_DTYPE_INT2;
    case 0 << 8 | 4:
        return LIBSPLIT_DTYPE_INT4;
    case 0 << 8 | 8:
        return LIBSPLIT_DTYPE_INT8;
    case 0 << 8 | 16:
        return LIBSPLIT_DTYPE_INT16;
    case 0 << 8 | 32:
        return LIBSPLIT_DTYPE_INT32;
    case 0 << 8 | 64:
        return LIBSPLIT_DTYPE_INT64;
    case 1 << 8 | 2:
        return LIBSPLIT_DTYPE_UINT2;
    case 1 << 8 | 4:
        return LIBSPLIT_DTYPE_UINT4;
    case 1 << 8 | 8:
        return LIBSPLIT_DTYPE_UINT8;
    case 1 << 8 | 16:
        return LIBSPLIT_DTYPE_UINT16;
    case 1 << 8 | 32:
        return LIBSPLIT_DTYPE_UINT32;
    case 1 << 8 | 64:
        return LIBSPLIT_DTYPE_UINT64;
    case 2 << 8 | 16:
        return LIBSPLIT_DTYPE_FLOAT16;
    case 2 << 8 | 32:
        return LIBSPLIT_DTYPE_FLOAT;
    case 2 << 8 | 64:
        return LIBSPLIT_DTYPE_DOUBLE;
    case 4 << 8 | 16:
        return LIBSPLIT_DTYPE_BFLOAT16;
    case 5 << 8 | 64:
        return LIBSPLIT_DTYPE_COMPLEX64;
    case 5 << 8 | 128:
        return LIBSPLIT_DTYPE_COMPLEX128;
    case 6 << 8 | 8:
        return LIBSPLIT_DTYPE_BOOL;
    case 10 << 8 | 8:
        return LIBSPLIT_DTYPE_FLOAT8E4M3FN;
    case 11 << 8 | 8:
        return LIBSPLIT_DTYPE_FLOAT8E4M3FNUZ;
    case 12 << 8 | 8:
        return LIBSPLIT_DTYPE_FLOAT8E5M2;
    case 13 << 8 | 8:
        return LIBSPLIT_DTYPE_FLOAT8E5M2FNUZ;
    case 14 << 8 | 8:
        return LIBSPLIT_DTYPE_FLOAT8E8M0;
    case 17 << 8 | 4:
        return LIBSPLIT_DTYPE_FLOAT4E2M1;
    case 5 << 8 | 32: /* complex of two halves */
    case 7 << 8 | 8:
    case 8 << 8 | 8:
    case 9 << 8 | 8:
        return libsplit_dlpack_carrier_(bits);
    default:
        return 0;
    }
}

/**
 * Converts an element type of DLPack to one of libsplit.
 *
 * Splitting moves elements and never interprets them, so some are carried as unsigned integers of
 * their size: float8_e3m4, float8_e4m3 and float8_e4m3b11fnuz, complex numbers of 32 bits, and
 * elements of several lanes that have 8, 16, 32 or 64 bits in total (128 bits: as COMPLEX128). All
 * other types have an exact equivalent, including packed 4-bit and 2-bit elements.
 *
 *   NULL    dtype
 *   DTYPE   opaque handles, the float6 types, unknown codes, and numbers of bits or lanes that no
 *           element type has; the message names them
 */
static inline libsplit_status libsplit_dtype_from_dlpack(DLDataType type, libsplit_dtype *dtype,
                                                         libsplit_error *error) {
    libsplit_dtype found = libsplit_dlpack_lane_(type.code, type.bits);
    LIBSPLIT_DLPACK_BEGIN_(error);
    if (dtype == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_NULL, 0, 0, "dtype is NULL");
    if (found != 0 && type.lanes != 1)
        found = libsplit_dlpack_carrier_((unsigned)type.bits * type.lanes);
    if (found == 0)
        return libsplit_dlpack_end_(
            error, LIBSPLIT_STATUS_ERROR_DTYPE, 0, type.code,
            "DLPack dtype: code %d (%s) with %d bits and %d lanes has no element type here; "
            "reinterpret the elements in the producer, as uint8 for example",
            (int)type.code, libsplit_dlpack_code_name_(type.code), (int)type.bits, (int)type.lanes);
    *dtype = found;
    return libsplit_dlpack_ok_(error);
}

/**
 * Converts an element type of libsplit to one of DLPack, with one lane.
 *
 *   NULL    type
 *   DTYPE   STRING, which DLPack does not have, or a number that is not an element type
 */
static inline libsplit_status libsplit_dtype_to_dlpack(libsplit_dtype dtype, DLDataType *type,
                                                       libsplit_error *error) {
    /* By number, beginning with FLOAT; 255 if there is none. */
    static const uint8_t codes[] = {2, 1, 0, 1,  0,  0,  0,  255, 6, 2,  2,  1, 1,
                                    5, 5, 4, 10, 11, 12, 13, 1,   0, 17, 14, 1, 0};
    const uint32_t bits = libsplit_dtype_bits(dtype);
    LIBSPLIT_DLPACK_BEGIN_(error);
    if (type == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_NULL, 0, 0, "type is NULL");
    if (dtype < 1 || (size_t)dtype > sizeof codes || codes[dtype - 1] == 255 || bits == 0)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_DTYPE, 0, dtype,
                                    "dtype %d (%s) is not an element type of DLPack", (int)dtype,
                                    libsplit_dtype_name(dtype));
    type->code = codes[dtype - 1];
    type->bits = (uint8_t)bits;
    type->lanes = 1;
    return libsplit_dlpack_ok_(error);
}

/**
 * Describes a DLPack tensor as '*tensor', which can be an input or an output of libsplit.
 *
 * The descriptor borrows shape and strides from 'source' and is valid as long as they are. Strides
 * may be NULL, which means packed, as before DLPack 1.2. byte_offset is added to data. For
 * libsplit_view(), data may be an address on any device, or an opaque handle, because it is only
 * computed with; libsplit_copy() needs memory that the CPU can reach.
 *
 *   NULL       source or tensor
 *   DTYPE      as for libsplit_dtype_from_dlpack()
 *   RANK       ndim is below 0 or above LIBSPLIT_MAX_RANK
 *   OVERFLOW   byte_offset leads past the last address
 */
static inline libsplit_status libsplit_tensor_from_dlpack(const DLTensor *source,
                                                          libsplit_tensor *tensor,
                                                          libsplit_error *error) {
    libsplit_status status;
    libsplit_dtype dtype = 0;
    LIBSPLIT_DLPACK_BEGIN_(error);
    if (source == NULL || tensor == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_NULL, 0, 0, "%s is NULL",
                                    source == NULL ? "source" : "tensor");
    status = libsplit_dtype_from_dlpack(source->dtype, &dtype, error);
    if (status != LIBSPLIT_STATUS_OK)
        return status;
    if (source->ndim < 0 || source->ndim > LIBSPLIT_MAX_RANK)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_RANK, LIBSPLIT_MAX_RANK,
                                    source->ndim, "source: ndim is %d, not from 0 to %d",
                                    (int)source->ndim, LIBSPLIT_MAX_RANK);
    if (source->byte_offset > UINTPTR_MAX - (uintptr_t)source->data)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_OVERFLOW, 0, 0,
                                    "source: byte_offset %llu leads past the last address",
                                    (unsigned long long)source->byte_offset);
    tensor->data = (void *)((uintptr_t)source->data + (uintptr_t)source->byte_offset);
    tensor->data_bytes = 0;
    tensor->shape = source->shape;
    tensor->strides = source->strides;
    tensor->rank = source->ndim;
    tensor->capacity = 0;
    tensor->dtype = dtype;
    tensor->bit_offset = 0;
    return libsplit_dlpack_ok_(error);
}

/**
 * Describes a versioned tensor, as libsplit_tensor_from_dlpack() does. Pass a nonzero 'writes' if
 * its memory will be written to, as an output; a read-only tensor is then refused.
 *
 * Further errors:
 *
 *   STRUCT_SIZE   the major version is not 1; DLPack then allows only a call of the deleter
 *   FLAGS         sub-byte elements that are padded to bytes, or a flag that DLPack 1.3 does not
 *                 have
 *   OUTPUT        the tensor is read-only, and 'writes' is not 0
 */
static inline libsplit_status
libsplit_tensor_from_dlpack_versioned(const struct DLManagedTensorVersioned *source, int writes,
                                      libsplit_tensor *tensor, libsplit_error *error) {
    const uint64_t known =
        LIBSPLIT_DLPACK_READ_ONLY | LIBSPLIT_DLPACK_COPIED | LIBSPLIT_DLPACK_SUBBYTE_PADDED;
    LIBSPLIT_DLPACK_BEGIN_(error);
    if (source == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_NULL, 0, 0, "source is NULL");
    if (source->version.major != LIBSPLIT_DLPACK_MAJOR)
        return libsplit_dlpack_end_(
            error, LIBSPLIT_STATUS_ERROR_STRUCT_SIZE, LIBSPLIT_DLPACK_MAJOR, source->version.major,
            "source: DLPack %lu.%lu; only 1.x is known, ask the producer for max_version (1, 3)",
            (unsigned long)source->version.major, (unsigned long)source->version.minor);
    if ((source->flags & ~known) != 0)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_FLAGS, (int64_t)known,
                                    (int64_t)source->flags,
                                    "source: flags 0x%llx, of which DLPack 1.3 has only 0x%llx",
                                    (unsigned long long)source->flags, (unsigned long long)known);
    if ((source->flags & LIBSPLIT_DLPACK_SUBBYTE_PADDED) != 0 && source->dl_tensor.dtype.bits < 8)
        return libsplit_dlpack_end_(
            error, LIBSPLIT_STATUS_ERROR_FLAGS, 8, source->dl_tensor.dtype.bits,
            "source: elements of %d bits padded to bytes; pack them, or export them as uint8",
            (int)source->dl_tensor.dtype.bits);
    if (writes && (source->flags & LIBSPLIT_DLPACK_READ_ONLY) != 0)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_OUTPUT, 0, 0,
                                    "source is read-only and cannot be written; copy it first");
    return libsplit_tensor_from_dlpack(&source->dl_tensor, tensor, error);
}

/* Whether data on this device is a handle rather than an address. Pieces then keep the handle of
 * the source, and byte_offset says where they are. */
static inline int libsplit_dlpack_is_handle_(const DLTensor *source) {
    const int type = source == NULL ? 1 : (int)source->device.device_type;
    return type == 4 || type == 7 || type == 8 || type == 15; /* OpenCL, Vulkan, Metal, WebGPU */
}

/* Whether there are no elements; -1 if an extent is negative or not known. */
static inline int libsplit_dlpack_is_empty_(const libsplit_tensor *tensor) {
    int empty = 0;
    int32_t axis;
    for (axis = 0; axis < tensor->rank; axis++) {
        if (tensor->shape[axis] < 0)
            return -1;
        empty |= tensor->shape[axis] == 0;
    }
    return empty;
}

/* Writes packed strides in row-major order. Whoever made the piece has checked that it has less
 * than 2^63 elements; the arithmetic is unsigned in case that is not true. */
static inline void libsplit_dlpack_pack_(const libsplit_tensor *tensor, int64_t *strides) {
    uint64_t stride = 1;
    int32_t axis;
    for (axis = tensor->rank - 1; axis >= 0; axis--) {
        strides[axis] = (int64_t)stride;
        stride *= (uint64_t)(tensor->shape[axis] > 1 ? tensor->shape[axis] : 1);
    }
}

/**
 * Describes a piece as a DLPack tensor, '*result'.
 *
 * 'source' is the tensor that was split. The device and element type are taken from it, so that a
 * type that libsplit carries as another one gets its own code back. On devices whose data is a
 * handle (OpenCL, Vulkan, Metal, WebGPU) the piece must be a view of 'source'; the handle is kept,
 * and byte_offset says where the piece is. On all other devices data is the address of the piece
 * and byte_offset is 0, because some consumers ignore it. If 'source' is NULL, the piece is in
 * the CPU's memory and has the type of its dtype. A piece without elements gets NULL as data.
 *
 * 'strides' has room for one entry for each axis of the piece. It is written if the piece has no
 * strides, because DLPack does not allow NULL, and may be NULL if it has. '*result' borrows
 * shape and strides from 'piece' or from 'strides'.
 *
 *   NULL         piece or result; the piece's shape
 *   RANK         the piece's rank is below 0 or above LIBSPLIT_MAX_RANK
 *   SHAPE        an extent of the piece is negative or not known
 *   DTYPE        the piece's dtype is not that of 'source', or DLPack does not have it
 *   STRIDES      the piece has no strides, and 'strides' is NULL
 *   BIT_OFFSET   the piece begins within a byte, which DLPack cannot express: split at whole bytes,
 *                or copy it with libsplit_copy()
 *   OVERFLOW     the data of 'source' is a handle, and the piece is not within it
 */
static inline libsplit_status libsplit_tensor_to_dlpack(const libsplit_tensor *piece,
                                                        const DLTensor *source, int64_t *strides,
                                                        DLTensor *result, libsplit_error *error) {
    libsplit_status status;
    libsplit_dtype dtype = 0;
    DLDataType type = {0, 0, 0};
    DLDevice device;
    uintptr_t address, base;
    int empty;
    LIBSPLIT_DLPACK_BEGIN_(error);
    if (piece == NULL || result == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_NULL, 0, 0, "%s is NULL",
                                    piece == NULL ? "piece" : "result");
    if (piece->rank < 0 || piece->rank > LIBSPLIT_MAX_RANK)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_RANK, LIBSPLIT_MAX_RANK,
                                    piece->rank, "piece: rank is %d, not from 0 to %d",
                                    (int)piece->rank, LIBSPLIT_MAX_RANK);
    if (piece->rank > 0 && piece->shape == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_NULL, 0, 0,
                                    "piece: shape is NULL");
    empty = libsplit_dlpack_is_empty_(piece);
    if (empty < 0)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_SHAPE, 0, LIBSPLIT_DIM_UNKNOWN,
                                    "piece: an extent is negative or not known");

    if (source == NULL) {
        status = libsplit_dtype_to_dlpack(piece->dtype, &type, error);
        device.device_type = kDLCPU;
        device.device_id = 0;
        dtype = piece->dtype;
    } else {
        type = source->dtype;
        device = source->device;
        status = libsplit_dtype_from_dlpack(type, &dtype, error);
    }
    if (status != LIBSPLIT_STATUS_OK)
        return status;
    if (dtype != piece->dtype)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_DTYPE, dtype, piece->dtype,
                                    "piece: dtype is %d (%s), but that of source is %d (%s)",
                                    (int)piece->dtype, libsplit_dtype_name(piece->dtype),
                                    (int)dtype, libsplit_dtype_name(dtype));
    if (piece->rank > 0 && piece->strides == NULL && strides == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_STRIDES, piece->rank, 0,
                                    "piece has no strides; give room for %d", (int)piece->rank);
    if (piece->bit_offset % 8 != 0 && !empty)
        return libsplit_dlpack_end_(
            error, LIBSPLIT_STATUS_ERROR_BIT_OFFSET, 0, piece->bit_offset,
            "piece begins %lu bits into a byte, which DLPack cannot express; split at whole bytes, "
            "or copy the piece with libsplit_copy()",
            (unsigned long)piece->bit_offset);

    address = (uintptr_t)piece->data + piece->bit_offset / 8;
    base = libsplit_dlpack_is_handle_(source) ? (uintptr_t)source->data : address;
    if (address < base && !empty)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_OVERFLOW, 0, 0,
                                    "piece lies before the data of source, which is a handle");
    if (piece->strides == NULL && piece->rank > 0)
        libsplit_dlpack_pack_(piece, strides);
    result->data = empty ? NULL : (void *)base;
    result->device = device;
    result->ndim = piece->rank;
    result->dtype = type;
    result->shape = piece->shape;
    result->strides = piece->strides == NULL && piece->rank > 0 ? strides : piece->strides;
    result->byte_offset = empty ? 0 : address - base;
    return libsplit_dlpack_ok_(error);
}

/**
 * Describes a piece as a versioned DLPack tensor, as libsplit_tensor_to_dlpack() does. Fills in
 * version and dl_tensor, and copies the flag READ_ONLY of 'source', which applies to every view
 * (clear it for a copy). manager_ctx and deleter are left to the caller. 'source' may be NULL.
 *
 * Further errors:
 *
 *   STRUCT_SIZE   the major version of 'source' is not 1
 */
static inline libsplit_status libsplit_tensor_to_dlpack_versioned(
    const libsplit_tensor *piece, const struct DLManagedTensorVersioned *source, int64_t *strides,
    struct DLManagedTensorVersioned *result, libsplit_error *error) {
    libsplit_status status;
    const uint64_t flags = source == NULL ? 0 : source->flags & LIBSPLIT_DLPACK_READ_ONLY;
    LIBSPLIT_DLPACK_BEGIN_(error);
    if (result == NULL)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_NULL, 0, 0, "result is NULL");
    if (source != NULL && source->version.major != LIBSPLIT_DLPACK_MAJOR)
        return libsplit_dlpack_end_(error, LIBSPLIT_STATUS_ERROR_STRUCT_SIZE, LIBSPLIT_DLPACK_MAJOR,
                                    source->version.major, "source: DLPack %lu.%lu, not 1.x",
                                    (unsigned long)source->version.major,
                                    (unsigned long)source->version.minor);
    status = libsplit_tensor_to_dlpack(piece, source == NULL ? NULL : &source->dl_tensor, strides,
                                       &result->dl_tensor, error);
    if (status != LIBSPLIT_STATUS_OK)
        return status;
    result->version.major = LIBSPLIT_DLPACK_MAJOR;
    result->version.minor = LIBSPLIT_DLPACK_MINOR;
    result->flags = flags;
    return status;
}

#undef LIBSPLIT_DLPACK_BEGIN_

#endif /* LIBSPLIT_DLPACK_H */
