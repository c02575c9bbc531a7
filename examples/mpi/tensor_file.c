/*
 * tensor_file.c - where a .npy or .safetensors file keeps a tensor
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "tensor_file.h"
#include "split_args.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 100 * 1000 * 1000 }; /* the limit of safetensors */

/* The names of element types in safetensors, and in .npy after the mark for the byte order. */
static const struct {
    const char *safetensors, *npy;
    libsplit_dtype dtype;
} dtypes[] = {
    {"F64", "f8", LIBSPLIT_DTYPE_DOUBLE},         {"F32", "f4", LIBSPLIT_DTYPE_FLOAT},
    {"F16", "f2", LIBSPLIT_DTYPE_FLOAT16},        {"BF16", "", LIBSPLIT_DTYPE_BFLOAT16},
    {"F8_E4M3", "", LIBSPLIT_DTYPE_FLOAT8E4M3FN}, {"F8_E5M2", "", LIBSPLIT_DTYPE_FLOAT8E5M2},
    {"F8_E8M0", "", LIBSPLIT_DTYPE_FLOAT8E8M0},   {"F4", "", LIBSPLIT_DTYPE_FLOAT4E2M1},
    {"I64", "i8", LIBSPLIT_DTYPE_INT64},          {"I32", "i4", LIBSPLIT_DTYPE_INT32},
    {"I16", "i2", LIBSPLIT_DTYPE_INT16},          {"I8", "i1", LIBSPLIT_DTYPE_INT8},
    {"U64", "u8", LIBSPLIT_DTYPE_UINT64},         {"U32", "u4", LIBSPLIT_DTYPE_UINT32},
    {"U16", "u2", LIBSPLIT_DTYPE_UINT16},         {"U8", "u1", LIBSPLIT_DTYPE_UINT8},
    {"BOOL", "b1", LIBSPLIT_DTYPE_BOOL},          {"C64", "c8", LIBSPLIT_DTYPE_COMPLEX64},
    {"", "c16", LIBSPLIT_DTYPE_COMPLEX128},
};

static libsplit_dtype dtype_of(const char *name, bool npy) {
    for (size_t i = 0; name[0] != '\0' && i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, npy ? dtypes[i].npy : dtypes[i].safetensors) == 0)
            return dtypes[i].dtype;
    return 0;
}

/* Reads a part of the file into new memory, with a 0 after it; NULL if it cannot. */
static char *read_at(MPI_File file, MPI_Offset place, int bytes) {
    char *text = allocate((size_t)bytes + 1);
    if (MPI_File_read_at_all(file, place, text, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        return text;
    free(text);
    return NULL;
}

static int64_t little_endian(const char *bytes, int count) {
    uint64_t number = 0;
    while (count > 0)
        number = number << 8 | (unsigned char)bytes[--count];
    return (int64_t)number;
}

/* The header of .npy is a Python dictionary: it is made into JSON, so that one parser reads
 * both. */
static void python_to_json(char *text) {
    static const char python[] = "'()TF", json[] = "\"[]tf";
    char *comma = NULL;
    for (; *text != '\0'; text++) {
        const char *found = strchr(python, *text);
        if (found)
            *text = json[found - python];
        if (comma && strchr("]}", *text)) /* a comma that nothing follows */
            *comma = ' ';
        if (*text == ',')
            comma = text;
        else if (*text != ' ')
            comma = NULL;
    }
}

static const char *parse_shape(json_t *list, struct tensor_file *found) {
    size_t axis;
    json_t *extent;
    if (!json_is_array(list) || json_array_size(list) > LIBSPLIT_MAX_RANK)
        return "the header has no shape, or one of too many axes";
    size_t rank = json_array_size(list);
    json_array_foreach(list, axis, extent) {
        if (!json_is_integer(extent))
            return "the header's shape has an extent that is no number";
        found->shape[found->reversed ? rank - 1 - axis : axis] = json_integer_value(extent);
    }
    found->tensor.rank = (int32_t)rank;
    return NULL;
}

static const char *parse_npy(json_t *header, struct tensor_file *found) {
    const char *descr = json_string_value(json_object_get(header, "descr"));
    found->reversed = json_is_true(json_object_get(header, "fortran_order"));
    found->tensor.dtype = descr && descr[0] != '\0' ? dtype_of(descr + 1, true) : 0;
    if (found->tensor.dtype == 0)
        return "only booleans, integers, floats and complex numbers are read here";
    return parse_shape(json_object_get(header, "shape"), found);
}

static const char *parse_safetensors(json_t *header, const char *name, int64_t *begin,
                                     struct tensor_file *found) {
    json_t *entry = json_object_get(header, name);
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    json_t *offsets = json_object_get(entry, "data_offsets");
    if (!dtype)
        return "the file has no tensor of that name";
    found->tensor.dtype = dtype_of(dtype, false);
    if (found->tensor.dtype == 0)
        return "an element type that libsplit does not have";
    *begin = json_integer_value(json_array_get(offsets, 0));
    int64_t end = json_integer_value(json_array_get(offsets, 1));
    if (*begin < 0 || end < *begin)
        return "the header's data_offsets are no range";
    found->tensor.data_bytes = (size_t)(end - *begin);
    return parse_shape(json_object_get(entry, "shape"), found);
}

const char *find_tensor(MPI_File file, const char *name, struct tensor_file *found) {
    MPI_Offset file_bytes;
    MPI_File_get_size(file, &file_bytes);
    if (file_bytes < 12)
        return "too short for a header";
    char *start = read_at(file, 0, 12);
    if (!start)
        return "cannot be read";
    bool npy = memcmp(start, "\x93NUMPY", 6) == 0;
    bool long_header = npy && start[6] > 1;
    int before = npy ? (long_header ? 12 : 10) : 8;
    int64_t header_bytes =
        npy ? little_endian(start + 8, long_header ? 4 : 2) : little_endian(start, 8);
    free(start);
    if (npy == (name != NULL))
        return npy ? "a .npy file has no tensors by name"
                   : "neither .npy nor FILE.safetensors#NAME";
    if (header_bytes < 0 || header_bytes > MAX_HEADER || header_bytes > file_bytes - before)
        return "the header is longer than the file, or than 100 MB";
    char *text = read_at(file, before, (int)header_bytes);
    if (!text)
        return "cannot be read";
    if (npy)
        python_to_json(text);
    json_t *header = json_loads(text, 0, NULL);
    free(text);

    *found = (struct tensor_file){.tensor = {.shape = found->shape}};
    int64_t begin = 0, place = before + header_bytes;
    const char *wrong = !header ? "the header cannot be understood"
                        : npy   ? parse_npy(header, found)
                                : parse_safetensors(header, name, &begin, found);
    json_decref(header);
    if (wrong)
        return wrong;
    int64_t rest = file_bytes - place;
    if (npy)
        found->tensor.data_bytes = (size_t)rest;
    if (begin > rest || found->tensor.data_bytes > (size_t)(rest - begin))
        return "the file ends before the tensor does";
    found->tensor.data = (void *)(uintptr_t)(place + begin);
    return NULL;
}
