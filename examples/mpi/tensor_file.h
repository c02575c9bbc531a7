/*
 * tensor_file.h - where a .npy or .safetensors file keeps a tensor
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef TENSOR_FILE_H
#define TENSOR_FILE_H

#include <libsplit.h>
#include <mpi.h>

#include <stdbool.h>

struct tensor_file {
    /* Its data is not an address but a place in the file, counted from its first byte. */
    libsplit_tensor tensor;
    int64_t shape[LIBSPLIT_MAX_RANK];
    /* For a .npy file in Fortran's order, the axes are listed here from the last to the first. */
    bool reversed;
};

/*
 * Every rank reads the header. 'name' is the name of a tensor in a safetensors file, NULL for .npy.
 * Returns NULL, or what is wrong.
 */
const char *find_tensor(MPI_File file, const char *name, struct tensor_file *found);

#endif
