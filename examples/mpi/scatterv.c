/*
 * scatterv.c - what MPI_Scatterv needs for pieces that lie one after another
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "scatterv.h"
#include "split_args.h"

#include <limits.h>

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool plan_scatterv(const libsplit_tensor *pieces, int num_pieces, int64_t *unit, int *counts,
                   int *displs) {
    *unit = 0;
    for (int i = 0; i < num_pieces; i++)
        *unit = greatest_common_divisor(*unit, num_elements(&pieces[i]));
    if (*unit == 0) /* All are empty. */
        *unit = 1;
    int64_t place = 0;
    for (int i = 0; i < num_pieces; i++) {
        int64_t count = num_elements(&pieces[i]) / *unit;
        if (count > INT_MAX || place > INT_MAX)
            return false;
        counts[i] = (int)count;
        displs[i] = (int)place;
        place += count;
    }
    return true;
}
