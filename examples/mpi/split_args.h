/*
 * split_args.h - how to split, from the command line, and descriptors for the pieces
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef SPLIT_ARGS_H
#define SPLIT_ARGS_H

#include <libsplit.h>

/* One piece for each rank of MPI_COMM_WORLD. Holds pointers into itself: not to be copied. */
struct split {
    libsplit_params params;
    libsplit_tensor list;
    int64_t count;
    int64_t lengths[];
};

/*
 * Reads AXIS or AXIS:LENGTH,LENGTH,... (a length for each rank; one of them may be -1, which is the
 * rest). Without lengths the pieces are those of ONNX Split-18: equal, the last ones shorter or
 * empty. Ends the program if the text is anything else. The caller frees the result with free().
 */
struct split *parse_split(const char *text, int ranks);

/* Returns so many descriptors, with room for shape and strides; the caller frees all with one
 * free(). */
libsplit_tensor *new_pieces(int count, int32_t rank);

/* Returns how many elements a tensor has. */
int64_t num_elements(const libsplit_tensor *tensor);

/* Do what malloc() and calloc() do, but end the program when there is no memory. */
void *allocate(size_t bytes);

/*
 * Ends the program with a message, if there is one. 'same' says that every rank comes to the same
 * conclusion, so that only one of them prints it.
 */
void end_if_same(const char *what, const char *message);
void end_if(const char *what, const char *message);
void end_if_split(libsplit_status status, const char *what, const libsplit_error *error);

#endif
