/*
 * dlpack.c - libsplit_dlpack.h: every type code, layout, flag and refusal; C99 and C++
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <libsplit_dlpack.h>

#include <stdlib.h>
#include <string.h>

static int checks, failures;

static void check(int holds, const char *text, int line) {
    checks++;
    if (holds)
        return;
    failures++;
    fprintf(stderr, "dlpack.c:%d: %s does not hold\n", line, text);
}
#define CHECK(condition) check(!!(condition), #condition, __LINE__)

static libsplit_error error = LIBSPLIT_ERROR_INIT;

/* Returns whether the last call returned this, and said so in the error. */
static int said(libsplit_status returned, libsplit_status status, const char *part) {
    if (returned == status && error.status == status && strstr(error.message, part) != NULL)
        return 1;
    fprintf(stderr, "%s (%s): \"%s\"\n", libsplit_status_name(returned),
            libsplit_status_name(error.status), error.message);
    return 0;
}
#define CHECK_OK(call) CHECK(said(call, LIBSPLIT_STATUS_OK, "") && error.message[0] == '\0')
#define CHECK_REFUSED(call, status, part) CHECK(said(call, LIBSPLIT_STATUS_ERROR_##status, part))

static DLDataType type_of(int code, int bits, int lanes) {
    DLDataType type;
    type.code = (uint8_t)code;
    type.bits = (uint8_t)bits;
    type.lanes = (uint16_t)lanes;
    return type;
}

static DLTensor tensor_of(void *data, DLDataType type, int32_t rank, int64_t *shape,
                          int64_t *strides) {
    DLTensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.data = data;
    tensor.device.device_type = kDLCPU;
    tensor.dtype = type;
    tensor.ndim = rank;
    tensor.shape = shape;
    tensor.strides = strides;
    return tensor;
}

static void element_types(void) {
    /* A carried type has no dtype of its own: there and back again, it is another. */
    static const struct {
        int code, bits, lanes;
        libsplit_dtype dtype;
        int carried;
    } rows[] = {
        {0, 2, 1, LIBSPLIT_DTYPE_INT2, 0},
        {0, 4, 1, LIBSPLIT_DTYPE_INT4, 0},
        {0, 8, 1, LIBSPLIT_DTYPE_INT8, 0},
        {0, 16, 1, LIBSPLIT_DTYPE_INT16, 0},
        {0, 32, 1, LIBSPLIT_DTYPE_INT32, 0},
        {0, 64, 1, LIBSPLIT_DTYPE_INT64, 0},
        {1, 2, 1, LIBSPLIT_DTYPE_UINT2, 0},
        {1, 4, 1, LIBSPLIT_DTYPE_UINT4, 0},
        {1, 8, 1, LIBSPLIT_DTYPE_UINT8, 0},
        {1, 16, 1, LIBSPLIT_DTYPE_UINT16, 0},
        {1, 32, 1, LIBSPLIT_DTYPE_UINT32, 0},
        {1, 64, 1, LIBSPLIT_DTYPE_UINT64, 0},
        {2, 16, 1, LIBSPLIT_DTYPE_FLOAT16, 0},
        {2, 32, 1, LIBSPLIT_DTYPE_FLOAT, 0},
        {2, 64, 1, LIBSPLIT_DTYPE_DOUBLE, 0},
        {4, 16, 1, LIBSPLIT_DTYPE_BFLOAT16, 0},
        {5, 64, 1, LIBSPLIT_DTYPE_COMPLEX64, 0},
        {5, 128, 1, LIBSPLIT_DTYPE_COMPLEX128, 0},
        {6, 8, 1, LIBSPLIT_DTYPE_BOOL, 0},
        {10, 8, 1, LIBSPLIT_DTYPE_FLOAT8E4M3FN, 0},
        {11, 8, 1, LIBSPLIT_DTYPE_FLOAT8E4M3FNUZ, 0},
        {12, 8, 1, LIBSPLIT_DTYPE_FLOAT8E5M2, 0},
        {13, 8, 1, LIBSPLIT_DTYPE_FLOAT8E5M2FNUZ, 0},
        {14, 8, 1, LIBSPLIT_DTYPE_FLOAT8E8M0, 0},
        {17, 4, 1, LIBSPLIT_DTYPE_FLOAT4E2M1, 0},
        {5, 32, 1, LIBSPLIT_DTYPE_UINT32, 1},
        {7, 8, 1, LIBSPLIT_DTYPE_UINT8, 1},
        {8, 8, 1, LIBSPLIT_DTYPE_UINT8, 1},
        {9, 8, 1, LIBSPLIT_DTYPE_UINT8, 1},
        {17, 4, 2, LIBSPLIT_DTYPE_UINT8, 1},
        {2, 16, 2, LIBSPLIT_DTYPE_UINT32, 1},
        {0, 4, 4, LIBSPLIT_DTYPE_UINT16, 1},
        {1, 8, 8, LIBSPLIT_DTYPE_UINT64, 1},
        {2, 32, 4, LIBSPLIT_DTYPE_COMPLEX128, 1},
    };
    static const struct {
        int code, bits, lanes;
        const char *name;
    } refused[] = {
        {3, 64, 1, "code 3 (OpaqueHandle)"},
        {15, 6, 1, "code 15 (Float6_e2m3fn)"},
        {16, 6, 1, "code 16 (Float6_e3m2fn)"},
        {18, 8, 1, "code 18 (not a code of DLPack 1.3)"},
        {255, 8, 1, "code 255"},
        {0, 1, 1, "code 0 (Int) with 1 bits"},
        {0, 128, 1, "with 128 bits"},
        {2, 8, 1, "(Float) with 8 bits"},
        {2, 128, 1, "(Float)"},
        {4, 32, 1, "(Bfloat)"},
        {6, 1, 1, "(Bool)"},
        {10, 16, 1, "(Float8_e4m3fn)"},
        {17, 8, 1, "(Float4_e2m1fn)"},
        {2, 32, 0, "0 lanes"},
        {2, 32, 3, "3 lanes"},
        {2, 64, 4, "4 lanes"},
        {15, 6, 4, "(Float6_e2m3fn)"},
        {2, 32, 65535, "65535 lanes"},
    };
    size_t i;
    int reached[LIBSPLIT_DTYPE_INT2 + 1] = {0}, number;
    DLDataType type = type_of(99, 99, 99);
    libsplit_dtype dtype = -7;

    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        const DLDataType from = type_of(rows[i].code, rows[i].bits, rows[i].lanes);
        CHECK_OK(libsplit_dtype_from_dlpack(from, &dtype, &error));
        CHECK(dtype == rows[i].dtype);
        CHECK((int)libsplit_dtype_bits(dtype) == rows[i].bits * rows[i].lanes);
        CHECK_OK(libsplit_dtype_to_dlpack(dtype, &type, &error));
        CHECK((memcmp(&type, &from, sizeof type) != 0) == rows[i].carried);
        reached[dtype] = 1;
    }
    for (number = 1; number <= LIBSPLIT_DTYPE_INT2; number++)
        CHECK(reached[number] == (number != LIBSPLIT_DTYPE_STRING));
    dtype = -7;
    for (i = 0; i < sizeof refused / sizeof *refused; i++) {
        const DLDataType from = type_of(refused[i].code, refused[i].bits, refused[i].lanes);
        CHECK_REFUSED(libsplit_dtype_from_dlpack(from, &dtype, &error), DTYPE, refused[i].name);
        CHECK(dtype == -7);
    }
    CHECK_REFUSED(libsplit_dtype_to_dlpack(LIBSPLIT_DTYPE_STRING, &type, &error), DTYPE, "STRING");
    CHECK_REFUSED(libsplit_dtype_to_dlpack(0, &type, &error), DTYPE, "UNDEFINED");
    CHECK_REFUSED(libsplit_dtype_to_dlpack(27, &type, &error), DTYPE, "27");
    CHECK_REFUSED(libsplit_dtype_to_dlpack(-1, &type, &error), DTYPE, "-1");
    CHECK_REFUSED(libsplit_dtype_to_dlpack(1, NULL, &error), NULL, "type");
    CHECK_REFUSED(libsplit_dtype_from_dlpack(type, NULL, &error), NULL, "dtype");
}

/* Three columns of 2 in a matrix that begins at a byte_offset, without strides. */
static void views_and_back(void) {
    float data[2 + 3 * 6];
    int64_t shape[] = {3, 6}, ints[3][4];
    DLTensor source = tensor_of(data, type_of(2, 32, 1), 2, shape, NULL);
    DLTensor result;
    libsplit_tensor input, pieces[3];
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    size_t i;
    source.byte_offset = 2 * sizeof *data;
    source.device.device_id = 5;
    CHECK_OK(libsplit_tensor_from_dlpack(&source, &input, &error));
    CHECK(input.data == data + 2 && input.shape == shape && input.strides == NULL);
    CHECK(input.rank == 2 && input.dtype == LIBSPLIT_DTYPE_FLOAT && input.bit_offset == 0);

    params.axis = 1;
    params.num_outputs = 3;
    memset(pieces, 0, sizeof pieces);
    for (i = 0; i < 3; i++) {
        pieces[i].shape = ints[i];
        pieces[i].strides = ints[i] + 2;
        pieces[i].capacity = 2;
    }
    CHECK_OK(libsplit_view(&input, &params, pieces, 3, &error));
    for (i = 0; i < 3; i++) {
        memset(&result, 0xff, sizeof result);
        CHECK_OK(libsplit_tensor_to_dlpack(&pieces[i], &source, NULL, &result, &error));
        CHECK(result.data == data + 2 + 2 * i && result.byte_offset == 0);
        CHECK(result.ndim == 2 && result.shape[0] == 3 && result.shape[1] == 2);
        CHECK(result.strides[0] == 6 && result.strides[1] == 1);
        CHECK(result.device.device_type == kDLCPU && result.device.device_id == 5);
        CHECK(memcmp(&result.dtype, &source.dtype, sizeof result.dtype) == 0);
    }

    /* A handle stays as it is; the offset says where the piece lies. */
    source.device.device_type = kDLOpenCL;
    CHECK_OK(libsplit_tensor_to_dlpack(&pieces[2], &source, NULL, &result, &error));
    CHECK(result.data == source.data && result.byte_offset == (2 + 4) * sizeof *data);
    CHECK(result.device.device_type == kDLOpenCL);
    source.data = data + 18;
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&pieces[2], &source, NULL, &result, &error), OVERFLOW,
                  "handle");

    /* The error may be missing, or unusable. */
    CHECK(libsplit_tensor_to_dlpack(&pieces[2], &source, NULL, &result, NULL) ==
          LIBSPLIT_STATUS_ERROR_OVERFLOW);
    error.struct_size = 8;
    input.rank = 7;
    source.data = data;
    CHECK(libsplit_tensor_from_dlpack(&source, &input, &error) ==
          LIBSPLIT_STATUS_ERROR_STRUCT_SIZE);
    CHECK(input.rank == 7 && error.status == LIBSPLIT_STATUS_ERROR_OVERFLOW);
    error.struct_size = sizeof error;
}

static void strides(void) {
    unsigned char data[24] = {0};
    int64_t shape[] = {2, 3, 4}, own[] = {-12, 4, 1}, room[3], empty[] = {2, 0, 4};
    DLTensor source = tensor_of(data, type_of(8, 8, 1), 3, shape, own), result;
    libsplit_tensor piece;

    /* Any strides are kept, and none are invented; a carried type gets its code back. */
    CHECK_OK(libsplit_tensor_from_dlpack(&source, &piece, &error));
    CHECK(piece.strides == own && piece.dtype == LIBSPLIT_DTYPE_UINT8);
    CHECK_OK(libsplit_tensor_to_dlpack(&piece, &source, NULL, &result, &error));
    CHECK(result.strides == own && result.dtype.code == 8);
    piece.strides = NULL;
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&piece, &source, NULL, &result, &error), STRIDES, "3");
    CHECK_OK(libsplit_tensor_to_dlpack(&piece, &source, room, &result, &error));
    CHECK(result.strides == room && room[0] == 12 && room[1] == 4 && room[2] == 1);
    CHECK_OK(libsplit_tensor_to_dlpack(&piece, NULL, room, &result, &error));
    CHECK(result.dtype.code == 1 && result.device.device_type == kDLCPU);
    CHECK(result.device.device_id == 0 && result.data == data);

    /* Without elements there is no data, but there are strides. */
    piece.shape = empty;
    CHECK_OK(libsplit_tensor_to_dlpack(&piece, NULL, room, &result, &error));
    CHECK(result.data == NULL && result.byte_offset == 0 && result.strides == room);
    CHECK(room[0] == 4 && room[1] == 4 && room[2] == 1);

    /* Without axes there is neither shape nor strides. */
    source = tensor_of(data, type_of(1, 8, 1), 0, NULL, NULL);
    CHECK_OK(libsplit_tensor_from_dlpack(&source, &piece, &error));
    CHECK_OK(libsplit_tensor_to_dlpack(&piece, &source, NULL, &result, &error));
    CHECK(result.ndim == 0 && result.data == data);
}

static void bits(void) {
    unsigned char data[4] = {0};
    int64_t shape[] = {8}, strides[] = {1};
    DLTensor source = tensor_of(data, type_of(1, 4, 1), 1, shape, NULL), result;
    libsplit_tensor piece;
    CHECK_OK(libsplit_tensor_from_dlpack(&source, &piece, &error));
    CHECK(piece.dtype == LIBSPLIT_DTYPE_UINT4);
    piece.strides = strides;
    piece.bit_offset = 4;
    memset(&result, 0x5a, sizeof result);
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&piece, &source, NULL, &result, &error), BIT_OFFSET,
                  "4 bits into a byte");
    CHECK(error.actual == 4 && result.ndim == 0x5a5a5a5a);
    piece.bit_offset = 8;
    CHECK_OK(libsplit_tensor_to_dlpack(&piece, &source, NULL, &result, &error));
    CHECK(result.data == data + 1 && result.byte_offset == 0);
    piece.bit_offset = 4;
    shape[0] = 0;
    CHECK_OK(libsplit_tensor_to_dlpack(&piece, &source, NULL, &result, &error));
}

static void refusals(void) {
    float data[4];
    int64_t shape[] = {4}, strides[] = {1};
    DLTensor source = tensor_of(data, type_of(2, 32, 1), 1, shape, strides), result;
    libsplit_tensor tensor, untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    tensor = untouched;
    CHECK_REFUSED(libsplit_tensor_from_dlpack(NULL, &tensor, &error), NULL, "source");
    CHECK_REFUSED(libsplit_tensor_from_dlpack(&source, NULL, &error), NULL, "tensor");
    source.ndim = -1;
    CHECK_REFUSED(libsplit_tensor_from_dlpack(&source, &tensor, &error), RANK, "-1");
    source.ndim = 65;
    CHECK_REFUSED(libsplit_tensor_from_dlpack(&source, &tensor, &error), RANK, "65");
    source.ndim = 1;
    source.byte_offset = UINT64_MAX;
    CHECK_REFUSED(libsplit_tensor_from_dlpack(&source, &tensor, &error), OVERFLOW, "byte_offset");
    source.byte_offset = 0;
    source.dtype.bits = 7;
    CHECK_REFUSED(libsplit_tensor_from_dlpack(&source, &tensor, &error), DTYPE, "7 bits");
    CHECK(memcmp(&tensor, &untouched, sizeof tensor) == 0);

    source.dtype.bits = 32;
    CHECK_OK(libsplit_tensor_from_dlpack(&source, &tensor, &error));
    CHECK_REFUSED(libsplit_tensor_to_dlpack(NULL, &source, NULL, &result, &error), NULL, "piece");
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&tensor, &source, NULL, NULL, &error), NULL, "result");
    tensor.rank = 65;
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&tensor, &source, NULL, &result, &error), RANK, "65");
    tensor.rank = 1;
    tensor.shape = NULL;
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&tensor, &source, NULL, &result, &error), NULL,
                  "shape");
    tensor.shape = shape;
    shape[0] = LIBSPLIT_DIM_UNKNOWN;
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&tensor, &source, NULL, &result, &error), SHAPE,
                  "not known");
    shape[0] = 4;
    tensor.dtype = LIBSPLIT_DTYPE_INT32;
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&tensor, &source, NULL, &result, &error), DTYPE,
                  "INT32");
    tensor.dtype = LIBSPLIT_DTYPE_STRING;
    CHECK_REFUSED(libsplit_tensor_to_dlpack(&tensor, NULL, NULL, &result, &error), DTYPE, "STRING");
}

static void versioned(void) {
    unsigned char data[4] = {0};
    int64_t shape[] = {4}, strides[] = {1};
    struct DLManagedTensorVersioned source, result;
    libsplit_tensor tensor;
    memset(&source, 0, sizeof source);
    memset(&result, 0x5a, sizeof result);
    source.version.major = 1;
    source.dl_tensor = tensor_of(data, type_of(1, 8, 1), 1, shape, strides);
    CHECK_OK(libsplit_tensor_from_dlpack_versioned(&source, 1, &tensor, &error));

    /* Read-only is passed on; that it is a copy is not. The owner's part stays the caller's. */
    source.flags = LIBSPLIT_DLPACK_READ_ONLY | LIBSPLIT_DLPACK_COPIED;
    CHECK_OK(libsplit_tensor_from_dlpack_versioned(&source, 0, &tensor, &error));
    CHECK_REFUSED(libsplit_tensor_from_dlpack_versioned(&source, 1, &tensor, &error), OUTPUT,
                  "read-only");
    result.manager_ctx = data;
    CHECK_OK(libsplit_tensor_to_dlpack_versioned(&tensor, &source, NULL, &result, &error));
    CHECK(result.version.major == 1 && result.version.minor == 3);
    CHECK(result.flags == LIBSPLIT_DLPACK_READ_ONLY && result.manager_ctx == data);
    CHECK(result.dl_tensor.data == data && result.dl_tensor.strides == strides);
    CHECK_OK(libsplit_tensor_to_dlpack_versioned(&tensor, NULL, NULL, &result, &error));
    CHECK(result.flags == 0);

    /* Padding counts only if there is any. */
    source.flags = LIBSPLIT_DLPACK_SUBBYTE_PADDED;
    CHECK_OK(libsplit_tensor_from_dlpack_versioned(&source, 0, &tensor, &error));
    source.dl_tensor.dtype.bits = 4;
    CHECK_REFUSED(libsplit_tensor_from_dlpack_versioned(&source, 0, &tensor, &error), FLAGS,
                  "4 bits padded");
    source.dl_tensor.dtype.bits = 8;
    source.flags = 8;
    CHECK_REFUSED(libsplit_tensor_from_dlpack_versioned(&source, 0, &tensor, &error), FLAGS, "0x8");
    source.flags = 0;

    source.version.minor = 99;
    CHECK_OK(libsplit_tensor_from_dlpack_versioned(&source, 0, &tensor, &error));
    source.version.major = 2;
    CHECK_REFUSED(libsplit_tensor_from_dlpack_versioned(&source, 0, &tensor, &error), STRUCT_SIZE,
                  "2.99");
    CHECK_REFUSED(libsplit_tensor_to_dlpack_versioned(&tensor, &source, NULL, &result, &error),
                  STRUCT_SIZE, "2.99");
    CHECK_REFUSED(libsplit_tensor_from_dlpack_versioned(NULL, 0, &tensor, &error), NULL, "source");
    CHECK_REFUSED(libsplit_tensor_to_dlpack_versioned(&tensor, NULL, NULL, NULL, &error), NULL,
                  "result");
    CHECK_REFUSED(libsplit_tensor_to_dlpack_versioned(NULL, NULL, NULL, &result, &error), NULL,
                  "piece");
}

int main(void) {
    element_types();
    views_and_back();
    strides();
    bits();
    refusals();
    versioned();
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0 || checks == 0;
}
