/*
 * counts - tests counts, extents and strides past 2^31, without as much memory
 *
 *     mpirun -n 1 counts
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "piece_type.h"
#include "scatterv.h"
#include "split_args.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int failures;

static void check(const char *what, int64_t actual, int64_t expected) {
    if (actual != expected) {
        fprintf(stderr, "error: %s is %" PRId64 ", not %" PRId64 "\n", what, actual, expected);
        failures++;
    }
}

/* Returns the size of a piece's datatype, and how far it reaches. */
static void check_type(const libsplit_tensor *piece, int64_t size, int64_t reach) {
    MPI_Datatype type;
    end_if("counts", piece_type(piece, &type));
    MPI_Count found, low, extent;
    MPI_Type_size_x(type, &found);
    MPI_Type_get_true_extent_x(type, &low, &extent);
    check("the size of a datatype", found, size);
    check("the first byte of a datatype", low, 0);
    check("the reach of a datatype", extent, reach);
    MPI_Type_free(&type);
}

static struct split *split_into(libsplit_tensor *input, const char *how, int count,
                                libsplit_tensor *pieces) {
    struct split *split = parse_split(how, count);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    end_if_split(libsplit_view(input, &split->params, pieces, (size_t)count, &error), how, &error);
    return split;
}

/* 2^31 - 1 is the largest int; a view never looks at its data, so the address is made up. */
static void test_datatypes(void) {
    int64_t counts[] = {INT_MAX, (int64_t)INT_MAX + 1, (int64_t)1 << 33, ((int64_t)1 << 40) + 12345,
                        (int64_t)INT_MAX * INT_MAX + 7};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        libsplit_tensor line = {.shape = &counts[i], .rank = 1, .dtype = LIBSPLIT_DTYPE_UINT8};
        check_type(&line, counts[i], counts[i]);
    }

    int64_t million = 1 << 20, billions = 3000000000;
    int64_t shape[] = {3, 2 * billions, 5};
    libsplit_tensor input = {
        .data = (void *)(uintptr_t)4096, .shape = shape, .rank = 3, .dtype = LIBSPLIT_DTYPE_FLOAT};
    libsplit_tensor *pieces = new_pieces(2, 3);
    free(split_into(&input, "1:3000000000,-1", 2, pieces));
    check("the place of a piece", (int64_t)(uintptr_t)pieces[1].data - 4096, billions * 20);
    for (int i = 0; i < 2; i++)
        check_type(&pieces[i], 3 * billions * 20, (2 * 2 + 1) * billions * 20);

    /* More than 2^31 elements, no two of them contiguous. */
    int64_t columns[] = {billions, 7}, strides[] = {7 * million, million};
    input.shape = columns;
    input.strides = strides;
    input.rank = 2;
    free(split_into(&input, "1:6,1", 2, pieces));
    check_type(&pieces[1], billions * 4, ((billions - 1) * 7 * million + 1) * 4);
    free(pieces);
}

/* Columns of a matrix of 6 GiB, of which only the pages that they touch are ever allocated. */
static void test_far_elements(void) {
    int64_t width = (int64_t)1 << 31, shape[] = {3, width};
    size_t bytes = 3 * (size_t)width;
    unsigned char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    end_if("counts", data == MAP_FAILED ? "no address space" : NULL);
    libsplit_tensor input = {
        .data = data, .shape = shape, .rank = 2, .dtype = LIBSPLIT_DTYPE_UINT8};
    libsplit_tensor *pieces = new_pieces(2, 2);
    free(split_into(&input, "1:2147483645,3", 2, pieces));
    unsigned char expected[9], found[9] = {0};
    for (int i = 0; i < 9; i++)
        expected[i] = data[(i / 3 + 1) * width - 3 + i % 3] = (unsigned char)(17 * i + 1);

    MPI_Datatype type;
    end_if("counts", piece_type(&pieces[1], &type));
    MPI_Sendrecv(pieces[1].data, 1, type, 0, 0, found, 9, MPI_UINT8_T, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    check("a far column, sent", memcmp(found, expected, 9), 0);

    memset(found, 0, 9);
    memset(data + width - 3, 0, 3);
    MPI_Sendrecv(expected, 9, MPI_UINT8_T, 0, 0, pieces[1].data, 1, type, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    check("a far column, received", memcmp(data + width - 3, expected, 3), 0);
    /* The same in a sparse file. */
    char name[] = "counts.XXXXXX";
    MPI_File file;
    close(mkstemp(name));
    end_if(name, MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS
                     ? NULL
                     : "cannot be opened");
    MPI_File_set_view(file, width - 3, MPI_UINT8_T, type, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, expected, 9, MPI_UINT8_T, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_UINT8_T, MPI_UINT8_T, "native", MPI_INFO_NULL);
    for (int i = 0; i < 3; i++)
        MPI_File_read_at(file, (i + 1) * width - 3, found + 3 * i, 3, MPI_UINT8_T,
                         MPI_STATUS_IGNORE);
    check("a far column, in a file", memcmp(found, expected, 9), 0);
    MPI_File_close(&file);

    MPI_Type_free(&type);
    munmap(data, bytes);
    free(pieces);
}

static void test_scatterv(void) {
    int64_t unit, lengths[][1] = {{3000000000}, {0}, {6000000000}};
    libsplit_tensor pieces[3];
    for (int i = 0; i < 3; i++)
        pieces[i] =
            (libsplit_tensor){.shape = lengths[i], .rank = 1, .dtype = LIBSPLIT_DTYPE_FLOAT};
    int counts[3], displs[3];
    check("a plan for billions", plan_scatterv(pieces, 3, &unit, counts, displs), true);
    check("its unit", unit, 3000000000);
    check("its last count", counts[2], 2);
    check("its last displacement", displs[2], 1);

    lengths[1][0] = 7; /* Now the unit is 1, and the counts do not fit. */
    check("a plan without a unit", plan_scatterv(pieces, 3, &unit, counts, displs), false);
    lengths[0][0] = lengths[1][0] =
        2000000001; /* Each count fits, but no place after the second. */
    lengths[2][0] = 7;
    check("a plan of far places", plan_scatterv(pieces, 3, &unit, counts, displs), false);
    lengths[0][0] = lengths[1][0] = lengths[2][0] = 0;
    check("a plan for nothing", plan_scatterv(pieces, 3, &unit, counts, displs), true);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    test_datatypes();
    test_far_elements();
    test_scatterv();
    printf("counts past 2^31: %s\n", failures ? "wrong" : "right");
    MPI_Finalize();
    return failures > 0;
}
