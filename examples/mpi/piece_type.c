/*
 * piece_type.c - a piece of a tensor as an MPI datatype
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "piece_type.h"

#include <limits.h>

/* Makes a datatype of 'count' copies of another one, so many bytes apart. */
static MPI_Datatype copies(int count, MPI_Aint stride, MPI_Datatype once) {
    MPI_Datatype type;
    MPI_Aint low, extent;
    MPI_Type_get_extent(once, &low, &extent);
    if (stride == extent) /* MPICH is many times faster with runs that are declared as such. */
        MPI_Type_contiguous(count, once, &type);
    else
        MPI_Type_create_hvector(count, 1, stride, once, &type);
    return type;
}

/* Frees a datatype that is not one of MPI's own. */
static void release(MPI_Datatype type) {
    int integers, addresses, datatypes, combiner;
    MPI_Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        MPI_Type_free(&type);
}

/* Does the same for any count, and replaces the datatype. */
static void repeat(int64_t count, MPI_Aint stride, MPI_Datatype *type) {
    MPI_Datatype once = *type;
    if (count <= INT_MAX) {
        *type = copies((int)count, stride, once);
    } else { /* The counts of MPI-3 are ints: rows of INT_MAX, and the rest. */
        int64_t rows = count / INT_MAX;
        MPI_Datatype parts[] = {copies(INT_MAX, stride, once),
                                copies((int)(count % INT_MAX), stride, once)};
        repeat(rows, stride * INT_MAX, &parts[0]);
        MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, stride * INT_MAX * rows}, parts,
                               type);
        release(parts[0]);
        release(parts[1]);
    }
    release(once);
}

const char *piece_type(const libsplit_tensor *piece, MPI_Datatype *type) {
    /* Unsigned integers as wide as the elements: any bits pass as they are. */
    uint32_t bits = libsplit_dtype_bits(piece->dtype);
    if (bits < 8)
        return "elements are smaller than a byte, the smallest thing in MPI: copy the pieces first";
    if (piece->dtype == LIBSPLIT_DTYPE_STRING)
        return "strings are pointers, which mean nothing to another process";
    *type = bits == 8    ? MPI_UINT8_T
            : bits == 16 ? MPI_UINT16_T
            : bits == 32 ? MPI_UINT32_T
                         : MPI_UINT64_T;
    if (bits == 128)
        repeat(2, 8, type);

    /* From the innermost axis outwards; axes that continue each other in memory count as one. */
    int64_t count = 1, stride = bits / 8, packed = stride;
    for (int32_t axis = piece->rank - 1; axis >= 0; axis--) {
        int64_t extent = piece->shape[axis];
        int64_t step = piece->strides ? piece->strides[axis] * (bits / 8) : packed;
        packed *= extent;
        if (extent == 0)
            count = 0;
        if (extent == 1 || count == 0) /* The stride of a lone element means nothing. */
            continue;
        if (count == 1) {
            stride = step;
        } else if (step != count * stride) {
            repeat(count, stride, type);
            count = 1;
            stride = step;
        }
        count *= extent;
    }
    repeat(count, stride, type);
    MPI_Type_commit(type);
    return NULL;
}
