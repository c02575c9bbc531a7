/*
 * bounds.h - the loads and stores of a split, with no byte moved within its register
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BOUNDS_H
#define BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#define BOUND_AXES 3

/*
 * Tiles, counted by an odometer. Each reads lines of the input, one after the other, and gives each
 * target of a group a run of them.
 */
struct bound {
    const char *source;
    char *const *targets;
    const size_t *runs;    /* bytes that each target of a group gets of a tile */
    const size_t *pitches; /* bytes from there to its next run */
    size_t group;          /* targets */
    size_t extents[BOUND_AXES];
    ptrdiff_t steps[BOUND_AXES]; /* from tile to tile: bytes of the input, */
    size_t groups[BOUND_AXES];   /* targets from its group to the next one's, */
    size_t turns[BOUND_AXES];    /* pitches of each target */
    ptrdiff_t line_pitch;        /* bytes between a tile's lines */
    size_t lines;                /* of the input, of a tile */
    size_t together;             /* targets that get lines by turns */
    size_t step;                 /* bytes between stores, wherever they begin; 0: whole lines */
    size_t ahead;                /* bytes that lines are prefetched ahead; 0: not at all */
    int32_t store;               /* one of enum store */
};

/* As many, one behind the other. */
struct bounds {
    const struct bound *all;
    size_t count;
};

/* -1 where the code is for other CPUs. */
int32_t call_bounds(const void *bounds);

#endif
