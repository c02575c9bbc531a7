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
 * MPI_Scatterv counts in ints, but in units of any datatype: the unit is the largest number of
 * elements that divides every piece. Fills in the unit, and the count and displacement of each
 * piece in units. Returns false if these are beyond INT_MAX all the same.
 */
bool plan_scatterv(const libsplit_tensor *pieces, int num_pieces, int64_t *unit, int *counts,
                   int *displs);

#endif
