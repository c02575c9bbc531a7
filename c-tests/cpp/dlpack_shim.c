/*
 * dlpack_shim.c - splits a DLPack tensor into views that are DLPack tensors again
 *
 * For dlpack_producers.py, and for you to copy: this is all that a binding needs. The pieces of one
 * split share a block, which the last of them frees together with the source.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <libsplit_dlpack.h>

#include <stdlib.h>

enum { MAX_RANK = 8 };

struct block {
    struct DLManagedTensorVersioned *source; /* one of the two */
    DLManagedTensor *legacy_source;
    size_t left; /* pieces that are still in use; Python's lock is held */
    struct piece {
        struct DLManagedTensorVersioned managed;
        int64_t shape[MAX_RANK], strides[MAX_RANK];
    } pieces[];
};

static void release(struct DLManagedTensorVersioned *managed) {
    struct block *block = (struct block *)managed->manager_ctx;
    if (--block->left > 0)
        return;
    if (block->source != NULL && block->source->deleter != NULL)
        block->source->deleter(block->source);
    if (block->legacy_source != NULL && block->legacy_source->deleter != NULL)
        block->legacy_source->deleter(block->legacy_source);
    free(block);
}

/* Splits into equal parts by OpenVINO's rules and writes 'parts' pieces to 'results'; after an
 * error, the source is still the caller's. */
libsplit_status split(struct DLManagedTensorVersioned *source, DLManagedTensor *legacy_source,
                      int64_t axis, int64_t parts, struct DLManagedTensorVersioned **results,
                      libsplit_error *error) {
    const size_t count = (size_t)parts;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_OPENVINO_SPLIT, 1);
    libsplit_tensor input, *views = calloc(count, sizeof *views);
    struct block *block = calloc(1, sizeof *block + count * sizeof *block->pieces);
    libsplit_status status = LIBSPLIT_STATUS_ERROR_INTERNAL;
    params.axis = axis;
    params.num_outputs = parts;
    if (views == NULL || block == NULL)
        goto end;
    for (size_t i = 0; i < count; i++) {
        views[i].shape = block->pieces[i].shape;
        views[i].strides = block->pieces[i].strides;
        views[i].capacity = MAX_RANK;
    }
    status = source != NULL ? libsplit_tensor_from_dlpack_versioned(source, 0, &input, error)
                            : libsplit_tensor_from_dlpack(&legacy_source->dl_tensor, &input, error);
    if (status == LIBSPLIT_STATUS_OK)
        status = libsplit_view(&input, &params, views, count, error);
    for (size_t i = 0; i < count && status == LIBSPLIT_STATUS_OK; i++) {
        struct DLManagedTensorVersioned *managed = &block->pieces[i].managed;
        status = source != NULL
                     ? libsplit_tensor_to_dlpack_versioned(&views[i], source, NULL, managed, error)
                     : libsplit_tensor_to_dlpack(&views[i], &legacy_source->dl_tensor, NULL,
                                                 &managed->dl_tensor, error);
        managed->version.major = LIBSPLIT_DLPACK_MAJOR;
        managed->version.minor = LIBSPLIT_DLPACK_MINOR;
        managed->manager_ctx = block;
        managed->deleter = release;
        results[i] = managed;
    }
    if (status == LIBSPLIT_STATUS_OK) {
        block->source = source;
        block->legacy_source = legacy_source;
        block->left = count;
        block = NULL;
    }
end:
    free(views);
    free(block);
    return status;
}
