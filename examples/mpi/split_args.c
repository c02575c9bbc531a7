/*
 * split_args.c - how to split, from the command line, and descriptors for the pieces
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "split_args.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct split *parse_split(const char *text, int ranks) {
    struct split *split = allocate(sizeof *split + (size_t)ranks * sizeof *split->lengths);
    char *rest;
    int64_t axis = strtoll(text, &rest, 10);
    split->count = 0;
    while (rest != text && *rest == (split->count == 0 ? ':' : ',') && split->count < ranks)
        split->lengths[split->count++] = strtoll(rest + 1, &rest, 10);
    if (rest == text || *rest != '\0')
        end_if_same(text, "not AXIS or AXIS:LENGTH,... with a length for each rank");

    split->list = (libsplit_tensor){
        .data = split->lengths, .shape = &split->count, .rank = 1, .dtype = LIBSPLIT_DTYPE_INT64};
    if (split->count > 0) {
        split->params =
            (libsplit_params)LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1);
        split->params.split = &split->list;
    } else {
        split->params = (libsplit_params)LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
        split->params.num_outputs = ranks;
        split->params.flags = LIBSPLIT_FLAG_CLAMP_UNEVEN;
    }
    split->params.axis = axis;
    return split;
}

libsplit_tensor *new_pieces(int count, int32_t rank) {
    size_t entries = (size_t)count * (size_t)rank;
    libsplit_tensor *pieces =
        allocate((size_t)count * sizeof *pieces + 2 * entries * sizeof(int64_t));
    int64_t *shapes = (int64_t *)(pieces + count), *strides = shapes + entries;
    for (int i = 0; i < count; i++)
        pieces[i] = (libsplit_tensor){
            .shape = shapes + i * rank, .strides = strides + i * rank, .capacity = rank};
    return pieces;
}

int64_t num_elements(const libsplit_tensor *tensor) {
    int64_t elements = 1;
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        elements *= tensor->shape[axis];
    return elements;
}

void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (!memory)
        end_if("memory", "not enough");
    return memory;
}

void end_if_same(const char *what, const char *message) {
    if (!message)
        return;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "error: %s: %s\n", what, message);
    MPI_Finalize();
    exit(1);
}

void end_if(const char *what, const char *message) {
    if (!message)
        return;
    fprintf(stderr, "error: %s: %s\n", what, message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void end_if_split(libsplit_status status, const char *what, const libsplit_error *error) {
    if (status != LIBSPLIT_STATUS_OK)
        end_if_same(what, error->message);
}
