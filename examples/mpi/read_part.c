/*
 * read_part [FILE AXIS[:LENGTHS] OUT]... - each rank reads its own part of a tensor in a file
 *
 *     mpirun -n 4 read_part weights.npy 1 part model.safetensors#q_proj.weight 0:8,8,0,-1 q
 *
 * Rank 2 writes what it has read, packed, to part.2 and q.2. No rank reads more than its piece and
 * the file's header; the ranks read together, by MPI_File_set_view and MPI_File_read_all. A .npy
 * file in Fortran's order is read, and written, in that order.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "piece_type.h"
#include "split_args.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void end_if_mpi(int code, const char *what) {
    char message[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, message, &length);
    end_if(what, message);
}

/*
 * A view never looks at the data, so its address can just as well be a place in a file:
 * libsplit_view() then tells where in the file the piece begins, and with which strides it
 * continues.
 */
static void read_piece(MPI_File file, const char *path, const libsplit_tensor *in_file,
                       const libsplit_tensor *in_memory) {
    MPI_Datatype element, from, to;
    int64_t one = 1;
    libsplit_tensor one_element = {.shape = &one, .rank = 1, .dtype = in_file->dtype};
    end_if_same(path, piece_type(&one_element, &element));
    end_if_same(path, piece_type(in_file, &from));
    end_if_same(path, piece_type(in_memory, &to));

    /* A rank with nothing to read takes part all the same: the others wait for it. */
    int pieces = in_memory->data_bytes > 0;
    MPI_Offset place = pieces ? (MPI_Offset)(uintptr_t)in_file->data : 0;
    end_if_mpi(
        MPI_File_set_view(file, place, element, pieces ? from : element, "native", MPI_INFO_NULL),
        path);
    end_if_mpi(MPI_File_read_all(file, in_memory->data, pieces, to, MPI_STATUS_IGNORE), path);
    MPI_Type_free(&element);
    MPI_Type_free(&from);
    MPI_Type_free(&to);
}

static void write_piece(const char *prefix, int rank, const libsplit_tensor *piece) {
    char path[FILENAME_MAX];
    snprintf(path, sizeof path, "%s.%d", prefix, rank);
    FILE *file = fopen(path, "wb");
    end_if(path, file ? NULL : "cannot be made");
    bool ok = fwrite(piece->data, 1, piece->data_bytes, file) == piece->data_bytes;
    ok = fclose(file) == 0 && ok; /* A full disk may show only now. */
    end_if(path, ok ? NULL : "cannot be written");
}

static void print_piece(const char *input, int rank, const libsplit_tensor *piece, bool reversed) {
    printf("%s: rank %d: %s", input, rank, libsplit_dtype_name(piece->dtype));
    for (int32_t i = 0; i < piece->rank; i++)
        printf("%c%" PRId64, i == 0 ? ' ' : 'x', piece->shape[reversed ? piece->rank - 1 - i : i]);
    printf(", %zu bytes\n", piece->data_bytes);
}

static void read_part(char *input, const char *how, const char *prefix, int rank, int ranks) {
    char *path = allocate(strlen(input) + 1);
    strcpy(path, input);
    char *name = strchr(path, '#');
    if (name)
        *name++ = '\0';
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        end_if_same(path, "cannot be opened");
    struct tensor_file found;
    end_if_same(input, find_tensor(file, name, &found));

    struct split *split = parse_split(how, ranks);
    if (found.reversed)
        split->params.axis = -1 - split->params.axis;
    size_t n = (size_t)ranks;
    libsplit_tensor *in_file = new_pieces(ranks, found.tensor.rank);
    libsplit_tensor *in_memory = new_pieces(ranks, found.tensor.rank);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    end_if_split(libsplit_view(&found.tensor, &split->params, in_file, n, &error), input, &error);
    end_if_split(libsplit_infer(&found.tensor, &split->params, in_memory, n, &error), input,
                 &error);

    in_memory[rank].data = allocate(in_memory[rank].data_bytes);
    read_piece(file, input, &in_file[rank], &in_memory[rank]);
    MPI_File_close(&file);
    write_piece(prefix, rank, &in_memory[rank]);
    /* One rank prints for all: some launchers cut and mix the lines of several. */
    for (int i = 0; rank == 0 && i < ranks; i++)
        print_piece(input, i, &in_memory[i], found.reversed);
    free(in_memory[rank].data);
    free(in_memory);
    free(in_file);
    free(split);
    free(path);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc % 3 != 1)
        end_if_same("usage", "read_part [FILE AXIS[:LENGTHS] OUT]...");
    for (int i = 1; i < argc; i += 3)
        read_part(argv[i], argv[i + 1], argv[i + 2], rank, ranks);
    MPI_Finalize();
}
