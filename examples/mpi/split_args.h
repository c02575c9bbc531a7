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
 * Reads AXIS or AXIS:LENGTH,LENGTH,... (a length for each rank, one of them may be -1, the rest).
 * Without lengths the pieces are those of ONNX Split-18: equal, the last ones shorter or empty.
 * Ends the program if the text is no such thing. The result is the caller's to free().
 */
struct split *parse_split(const char *text, int ranks);

/* So many descriptors, with room for shape and strides; the caller's to free() as one. */
libsplit_tensor *new_pieces(int count, int32_t rank);

/* How many elements a tensor has. */
int64_t num_elements(const libsplit_tensor *tensor);

/* malloc() and calloc() that end the program when there is no memory. */
void *allocate(size_t bytes);

/*
 * Ends the program with a message, if there is one. 'Same' when every rank comes to the same
 * conclusion, so that one of them says it.
 */
void end_if_same(const char *what, const char *message);
void end_if(const char *what, const char *message);
void end_if_split(libsplit_status status, const char *what, const libsplit_error *error);

#endif
