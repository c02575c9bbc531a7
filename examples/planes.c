/*
 * planes INPUT.ppm OUTDIR - splits a photograph into its colours
 *
 * Reads a binary PPM picture (P6: red, green, blue, red, green, blue ...), splits it into its
 * colours with libsplit, and writes OUTDIR/red.pgm, green.pgm and blue.pgm.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include <libsplit.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLOURS = 3, RANK = 3, MAX_EXTENT = 30000 };
static const char *const names[COLOURS] = {"red", "green", "blue"};

/* Reads a number from the header, after white space and comments. */
static bool read_number(FILE *file, int64_t *number) {
    char mark[2];
    while (fscanf(file, " %1[#]", mark) == 1)
        for (int c = 0; c != '\n' && c != EOF;)
            c = getc(file);
    return fscanf(file, "%6" SCNd64, number) == 1 && *number > 0 && *number <= MAX_EXTENT;
}

/* Reads the pixels, height x width x 3 bytes, into new memory, or prints what is wrong. */
static bool read_ppm(FILE *file, const char *path, libsplit_tensor *picture) {
    int64_t white;
    if (getc(file) != 'P' || getc(file) != '6' || !read_number(file, &picture->shape[1]) ||
        !read_number(file, &picture->shape[0]) || !read_number(file, &white) || white != 255) {
        fprintf(stderr, "planes: %s: not a PPM picture (P6) of 8 bits a colour\n", path);
        return false;
    }
    getc(file); /* the single white space that ends the header */
    picture->shape[2] = COLOURS;
    picture->data_bytes = (size_t)(picture->shape[0] * picture->shape[1]) * COLOURS;
    picture->data = malloc(picture->data_bytes);
    if (!picture->data) {
        perror("planes");
        return false;
    }
    if (fread(picture->data, 1, picture->data_bytes, file) == picture->data_bytes)
        return true;
    fprintf(stderr, "planes: %s: %s\n", path, ferror(file) ? "cannot be read" : "truncated");
    free(picture->data);
    return false;
}

/* Writes a plane to OUTDIR/<name>.pgm; leaves no file after an error. */
static bool write_pgm(const char *outdir, const char *name, const libsplit_tensor *plane) {
    char path[FILENAME_MAX];
    int length = snprintf(path, sizeof path, "%s/%s.pgm", outdir, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "wb") : NULL;
    if (!file) {
        perror(path);
        return false;
    }
    fprintf(file, "P5\n%" PRId64 " %" PRId64 "\n255\n", plane->shape[1], plane->shape[0]);
    bool ok = fwrite(plane->data, 1, plane->data_bytes, file) == plane->data_bytes;
    ok = fclose(file) == 0 && ok; /* a full disk may show only now */
    if (ok) {
        printf("%-5s  copied to %s\n", name, path);
    } else {
        perror(path);
        remove(path);
    }
    return ok;
}

static bool succeeded(libsplit_status status, const libsplit_error *error) {
    if (status != LIBSPLIT_STATUS_OK)
        fprintf(stderr, "planes: %s: %s\n", libsplit_status_name(status), error->message);
    return status == LIBSPLIT_STATUS_OK;
}

/* The planes as views: nothing is copied, and each is every third byte of the picture. */
static bool print_views(const libsplit_tensor *picture, const libsplit_params *params) {
    int64_t shapes[COLOURS][RANK], strides[COLOURS][RANK];
    libsplit_tensor views[COLOURS] = {{0}};
    for (int i = 0; i < COLOURS; i++) {
        views[i].shape = shapes[i];
        views[i].strides = strides[i];
        views[i].capacity = RANK;
    }
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    if (!succeeded(libsplit_view(picture, params, views, COLOURS, &error), &error))
        return false;
    for (int i = 0; i < COLOURS; i++)
        printf("%-5s  viewed from byte %d of the pixels, with strides %d, %d, %d\n", names[i],
               (int)((char *)views[i].data - (char *)picture->data), (int)strides[i][0],
               (int)strides[i][1], (int)strides[i][2]);
    return true;
}

/* The planes as copies: each is packed in its own memory and then written to a file. */
static bool write_copies(const libsplit_tensor *picture, const libsplit_params *params,
                         const char *outdir) {
    int64_t shapes[COLOURS][RANK];
    libsplit_tensor planes[COLOURS] = {{0}};
    for (int i = 0; i < COLOURS; i++) {
        planes[i].shape = shapes[i];
        planes[i].capacity = RANK;
    }
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    bool ok = succeeded(libsplit_infer(picture, params, planes, COLOURS, &error), &error);
    for (int i = 0; i < COLOURS && ok; i++) {
        planes[i].data = malloc(planes[i].data_bytes);
        ok = planes[i].data != NULL;
        if (!ok)
            perror("planes");
    }
    ok = ok && succeeded(libsplit_copy(picture, params, planes, COLOURS, NULL, &error), &error);
    for (int i = 0; i < COLOURS; i++) {
        ok = ok && write_pgm(outdir, names[i], &planes[i]);
        free(planes[i].data);
    }
    return ok;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("usage: planes INPUT.ppm OUTDIR\n", stderr);
        return 2;
    }
    FILE *file = fopen(argv[1], "rb");
    if (!file) {
        perror(argv[1]);
        return 1;
    }
    int64_t shape[RANK];
    libsplit_tensor picture = {.shape = shape, .rank = RANK, .dtype = LIBSPLIT_DTYPE_UINT8};
    bool ok = read_ppm(file, argv[1], &picture);
    fclose(file);
    if (!ok)
        return 1;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.axis = -1;
    params.num_outputs = COLOURS;
    ok = print_views(&picture, &params) && write_copies(&picture, &params, argv[2]);
    free(picture.data);
    return ok ? 0 : 1;
}
