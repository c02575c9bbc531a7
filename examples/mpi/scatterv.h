/*
 * scatterv.h - what MPI_Scatterv needs for pieces that lie one after another
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef SCATTERV_H
#define SCATTERV_H

#include <libsplit.h>

#include <stdbool.h>

/*
 * MPI_Scatterv counts in ints, but of any datatype: the unit is as many elements as divide every
 * piece. Fills in the unit, and of each piece count and displacement in units. False if these are
 * past INT_MAX all the same.
 */
bool plan_scatterv(const libsplit_tensor *pieces, int num_pieces, int64_t *unit, int *counts,
                   int *displs);

#endif
