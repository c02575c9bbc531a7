/*
 * scatter [DTYPE SHAPE AXIS[:LENGTHS]]... - a piece of a tensor to each rank, in three ways
 *
 *     mpirun -n 4 scatter FLOAT 4096x4096 1 UINT8 5x7 -1:2,0,4,1
 *
 * Rank 0 has the tensor. Its pieces are either sent from where they lie in it, with derived
 * datatypes, once by MPI_Isend and once by MPI_Alltoallw; or they are copied by libsplit, packed
 * one after the other, and sent by MPI_Scatterv. Every rank compares every byte; rank 0 prints the
 * times.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "piece_type.h"
#include "scatterv.h"
#include "split_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 3, ROUNDS = 7 };
static const char *const ways[WAYS] = {"Isend of types", "Alltoallw of types", "copy + Scatterv"};

/* What a rank holds. Only rank 0 has data in 'input' and 'pieces', and the members after 'mine'. */
struct scatter {
    int rank, ranks;
    libsplit_tensor input;
    const libsplit_params *params;
    int32_t axis;             /* the axis of the parameters, counted from the front */
    libsplit_tensor *pieces;  /* as they lie in the input */
    libsplit_tensor *outputs; /* packed, and on rank 0 copied one after another */
    libsplit_tensor mine;     /* this rank's output, in memory of its own */
    MPI_Datatype mine_type, unit_type;
    int *counts, *displs;
    MPI_Datatype *piece_types;    /* to be sent from where the piece begins */
    MPI_Datatype *absolute_types; /* to be sent from MPI_BOTTOM */
    char *packed;
    double copied; /* seconds that the last copy took */
};

/* ---- The three ways ---- */

static void isend_types(struct scatter *s) {
    MPI_Request *requests = allocate((size_t)(s->ranks + 1) * sizeof *requests);
    int started = 0;
    MPI_Irecv(s->mine.data, 1, s->mine_type, 0, 0, MPI_COMM_WORLD, &requests[started++]);
    for (int i = 0; s->rank == 0 && i < s->ranks; i++)
        MPI_Isend(s->pieces[i].data, 1, s->piece_types[i], i, 0, MPI_COMM_WORLD,
                  &requests[started++]);
    while (started > 0)
        MPI_Wait(&requests[--started], MPI_STATUS_IGNORE);
    free(requests);
}

/* MPI_Alltoallw's displacements are ints, in bytes: so they stay 0, and the types say where pieces
 * are. */
static void alltoallw_types(struct scatter *s) {
    size_t n = (size_t)s->ranks;
    int *zeros = allocate(n * sizeof *zeros), *ones = allocate(n * sizeof *ones),
        *one = allocate(n * sizeof *one);
    MPI_Datatype *from_root = allocate(n * sizeof *from_root);
    MPI_Datatype *nothing = allocate(n * sizeof *nothing);
    for (int i = 0; i < s->ranks; i++) {
        ones[i] = 1;
        one[i] = i == 0;
        from_root[i] = i == 0 ? s->mine_type : MPI_BYTE;
        nothing[i] = MPI_BYTE;
    }
    MPI_Alltoallw(MPI_BOTTOM, s->rank == 0 ? ones : zeros, zeros,
                  s->rank == 0 ? s->absolute_types : nothing, s->mine.data, one, zeros, from_root,
                  MPI_COMM_WORLD);
    free(zeros);
    free(ones);
    free(one);
    free(from_root);
    free(nothing);
}

static void copy_and_scatterv(struct scatter *s) {
    if (s->rank == 0) {
        double start = MPI_Wtime();
        libsplit_error error = LIBSPLIT_ERROR_INIT;
        libsplit_status status =
            libsplit_copy(&s->input, s->params, s->outputs, (size_t)s->ranks, NULL, &error);
        end_if("copy", status == LIBSPLIT_STATUS_OK ? NULL : error.message);
        s->copied = MPI_Wtime() - start;
    }
    MPI_Scatterv(s->packed, s->counts, s->displs, s->unit_type, s->mine.data, s->counts[s->rank],
                 s->unit_type, 0, MPI_COMM_WORLD);
}

/* ---- What every byte should be, without libsplit and MPI ---- */

static unsigned char byte_at(int64_t place) {
    return (unsigned char)(((uint64_t)place * 0x9E3779B97F4A7C15u) >> 56);
}

static void check_mine(const struct scatter *s, const char *way) {
    int32_t axis = s->axis;
    int64_t before = 0, inner = libsplit_dtype_bits(s->input.dtype) / 8;
    for (int i = 0; i < s->rank; i++)
        before += s->outputs[i].shape[axis];
    for (int32_t i = axis + 1; i < s->input.rank; i++)
        inner *= s->input.shape[i];
    int64_t run = s->mine.shape[axis] * inner, row = s->input.shape[axis] * inner;
    for (size_t i = 0; i < s->mine.data_bytes; i++) {
        int64_t place = (int64_t)i / run * row + before * inner + (int64_t)i % run;
        if (((unsigned char *)s->mine.data)[i] != byte_at(place)) {
            fprintf(stderr, "error: %s: rank %d: byte %zu is wrong\n", way, s->rank, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

/* ---- Before and after ---- */

/* What does not change from one round to the next, and which a program would keep. */
static void prepare(struct scatter *s) {
    size_t n = (size_t)s->ranks;
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    s->outputs = new_pieces(s->ranks, s->input.rank);
    end_if_split(libsplit_infer(&s->input, s->params, s->outputs, n, &error), "scatter", &error);
    s->axis = (int32_t)(s->params->axis + (s->params->axis < 0 ? s->input.rank : 0));
    s->mine = s->outputs[s->rank];
    end_if_same("scatter", piece_type(&s->mine, &s->mine_type));
    s->mine.data = allocate(s->mine.data_bytes);

    int64_t unit;
    s->counts = allocate(n * sizeof *s->counts);
    s->displs = allocate(n * sizeof *s->displs);
    if (!plan_scatterv(s->outputs, s->ranks, &unit, s->counts, s->displs))
        end_if_same("scatter", "more than 2^31 units for MPI_Scatterv: send datatypes");
    libsplit_tensor one_unit = {.shape = &unit, .rank = 1, .dtype = s->input.dtype};
    end_if_same("scatter", piece_type(&one_unit, &s->unit_type));
    if (s->rank != 0)
        return;

    size_t bytes = (size_t)num_elements(&s->input) * (libsplit_dtype_bits(s->input.dtype) / 8);
    s->input.data = allocate(bytes);
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)s->input.data)[i] = byte_at((int64_t)i);

    s->pieces = new_pieces(s->ranks, s->input.rank);
    end_if_split(libsplit_view(&s->input, s->params, s->pieces, n, &error), "scatter", &error);
    s->piece_types = allocate(n * sizeof *s->piece_types);
    s->absolute_types = allocate(n * sizeof *s->absolute_types);
    s->packed = allocate(bytes);
    size_t place = 0;
    for (int i = 0; i < s->ranks; i++) {
        MPI_Aint address;
        MPI_Get_address(s->pieces[i].data, &address);
        end_if("scatter", piece_type(&s->pieces[i], &s->piece_types[i]));
        MPI_Type_create_hindexed(1, (int[]){1}, &address, s->piece_types[i], &s->absolute_types[i]);
        MPI_Type_commit(&s->absolute_types[i]);
        s->outputs[i].data = s->packed + place;
        place += s->outputs[i].data_bytes;
    }
}

static void release(struct scatter *s) {
    for (int i = 0; s->rank == 0 && i < s->ranks; i++) {
        MPI_Type_free(&s->piece_types[i]);
        MPI_Type_free(&s->absolute_types[i]);
    }
    MPI_Type_free(&s->mine_type);
    MPI_Type_free(&s->unit_type);
    free(s->input.data);
    free(s->pieces);
    free(s->outputs);
    free(s->mine.data);
    free(s->counts);
    free(s->displs);
    free(s->piece_types);
    free(s->absolute_types);
    free(s->packed);
}

/* ---- Time and print ---- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds) {
    qsort(seconds, ROUNDS, sizeof *seconds, compare);
    return seconds[ROUNDS / 2];
}

/* Runs all ways in turn, for as many rounds as there are; each takes as long as its slowest
 * rank. */
static void scatter(const char *dtype, const char *shape, const char *axis, struct scatter *s) {
    static void (*const run[WAYS])(struct scatter *) = {isend_types, alltoallw_types,
                                                        copy_and_scatterv};
    double seconds[WAYS][ROUNDS], copied[ROUNDS];
    prepare(s);
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < WAYS; way++) {
            memset(s->mine.data, 0xAA, s->mine.data_bytes);
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            run[way](s);
            double mine = MPI_Wtime() - start;
            MPI_Reduce(&mine, &seconds[way][round], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            if (round == 0 || round == ROUNDS - 1)
                check_mine(s, ways[way]);
        }
        copied[round] = s->copied;
    }
    if (s->rank == 0) {
        int best = 0;
        double medians[WAYS];
        for (int way = 0; way < WAYS; way++) {
            medians[way] = median(seconds[way]);
            best = medians[way] < medians[best] ? way : best;
        }
        char text[64];
        snprintf(text, sizeof text, "%s %s, axis %s", dtype, shape, axis);
        printf("| %-34s | %9.3f | %9.3f | %9.3f (%.3f) | %-18s |", text, medians[0] * 1e3,
               medians[1] * 1e3, medians[2] * 1e3, median(copied) * 1e3, ways[best]);
        for (int i = 0; i < s->ranks; i++)
            printf(" %" PRId64, s->outputs[i].shape[s->axis]);
        printf(" |\n");
    }
    release(s);
}

static void print_head(int ranks) {
    char cpu[128] = "unknown CPU", line[256], mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", cpu) == 1)
            break;
    if (file)
        fclose(file);
    int length;
    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, ",\n")] = '\0';
    for (char *tab; (tab = strchr(mpi, '\t'));)
        *tab = ' ';
    printf("\n%d rank%s, %s, %s; milliseconds, median of %d\n\n", ranks, ranks == 1 ? "" : "s", mpi,
           cpu, ROUNDS);
    printf("| %-34s | %9s | %9s | %9s (%s) | %-18s | pieces |\n", "tensor", "Isend", "Alltoallw",
           "Scatterv", "of it copy", "fastest");
    printf("|---|---|---|---|---|---|\n");
}

static libsplit_dtype parse_dtype(const char *text) {
    for (libsplit_dtype dtype = LIBSPLIT_DTYPE_FLOAT; libsplit_dtype_bits(dtype) > 0; dtype++)
        if (strcmp(text, libsplit_dtype_name(dtype)) == 0)
            return dtype;
    end_if_same(text, "no element type: write FLOAT, UINT8 ...");
    return 0;
}

/* Reads 2x3x4. */
static int32_t parse_shape(const char *text, int64_t *shape) {
    char *rest;
    int32_t rank = 1;
    shape[0] = strtoll(text, &rest, 10);
    while (*rest == 'x' && rank < LIBSPLIT_MAX_RANK)
        shape[rank++] = strtoll(rest + 1, &rest, 10);
    if (*rest != '\0')
        end_if_same(text, "no shape: write 2x3x4");
    return rank;
}

int main(int argc, char **argv) {
    static char *usual[] = {"scatter",   "FLOAT",       "4096x4096", "0",          "FLOAT",
                            "4096x4096", "1",           "FLOAT",     "1048576x12", "1",
                            "UINT8",     "2160x3840x3", "-1"};
    MPI_Init(&argc, &argv);
    if (argc == 1) {
        argc = sizeof usual / sizeof *usual;
        argv = usual;
    }
    if (argc % 3 != 1)
        end_if_same("usage", "scatter [DTYPE SHAPE AXIS[:LENGTHS]]...");
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        print_head(ranks);
    for (int i = 1; i < argc; i += 3) {
        int64_t shape[LIBSPLIT_MAX_RANK];
        struct split *split = parse_split(argv[i + 2], ranks);
        struct scatter s = {.rank = rank, .ranks = ranks, .params = &split->params};
        s.input = (libsplit_tensor){
            .shape = shape, .rank = parse_shape(argv[i + 1], shape), .dtype = parse_dtype(argv[i])};
        scatter(argv[i], argv[i + 1], argv[i + 2], &s);
        free(split);
    }
    MPI_Finalize();
}
