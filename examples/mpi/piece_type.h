/*
 * piece_type.h - a piece of a tensor as an MPI datatype
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef PIECE_TYPE_H
#define PIECE_TYPE_H

#include <libsplit.h>
#include <mpi.h>

/*
 * Makes a committed datatype from what libsplit_view() or libsplit_infer() wrote about a piece. One
 * of it, at piece->data, is the whole piece in row-major order. Sender and receiver may lay out the
 * piece differently; without strides it is packed. Extents and strides beyond 2^31 are fine.
 */
const char *piece_type(const libsplit_tensor *piece, MPI_Datatype *type);

#endif
