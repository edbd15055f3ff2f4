/* SPDX-License-Identifier: Apache-2.0 */

/* Uploads in parts: the agent keeps them, nothing is remembered here. */

#include "sandbox/uploads.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/transfer.h"

/* Where blocks cannot be shared, completing copies the file once more. */
enum { COMPLETES_MS = 10 * 60 * 1000 };

int sandbox_upload_start(struct sandboxes *s, const char *workspace, const char *name,
                         const char *path, uint64_t mode, struct arena *arena,
                         struct upload_about *ret_upload, struct error *err)
{
    struct file_write request = {path, mode};
    return transfer_ask(s, workspace, name, &upload_start_schema, &request, &upload_about_schema,
                        arena, ret_upload, err);
}

int upload_part_begin(struct sandboxes *s, const char *workspace, const char *name, const char *id,
                      uint64_t number, struct file_transfer **ret_transfer, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct upload_part request = {id, number};
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &upload_part_schema, &request, err) < 0)
        return -1;
    *ret_transfer = steal_ptr(t);
    return 0;
}

int upload_part_commit(struct file_transfer *t, struct arena *arena,
                       struct upload_part_about *ret_part, struct error *err)
{
    if (transfer_send(t, &file_end_schema, NULL, err) < 0)
        return -1;
    return transfer_answer(t, &upload_part_about_schema, arena, ret_part, err);
}

int sandbox_upload_complete(struct sandboxes *s, const char *workspace, const char *name,
                            const char *id, struct slice parts, struct arena *arena,
                            struct file_entry *ret_entry, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct upload_complete request = {id, parts};
    struct frame_header header;
    struct slice payload;
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &upload_complete_schema, &request, err) < 0 ||
        transfer_next(t, COMPLETES_MS, &header, &payload, err) < 0)
        return -1;
    if (header.type != FILE_ENTRY)
        return transfer_unexpected(header.type, err);
    struct slice copy = {arena_dup(arena, payload.data, payload.len), payload.len};
    return wire_decode(&file_entry_schema, copy, ret_entry, err);
}

int sandbox_upload_abort(struct sandboxes *s, const char *workspace, const char *name,
                         const char *id, struct error *err)
{
    struct upload_ref request = {id};
    struct arena *arena = arena_new();
    int rc = transfer_ask(s, workspace, name, &upload_abort_schema, &request, &wire_ok_schema,
                          arena, NULL, err);
    arena_free(arena);
    return rc;
}

/* Frames of one kind up to WIRE_OK, as an array in the arena. */
static int read_list(struct file_transfer *t, const struct wire_schema *schema, size_t max,
                     struct arena *arena, void *ret_list, size_t *ret_count, struct error *err)
{
    size_t count = 0, cap = 16;
    char *list = arena_alloc(arena, cap * schema->size);
    for (;;) {
        struct frame_header header;
        struct slice payload;
        if (transfer_next(t, 0, &header, &payload, err) < 0)
            return -1;
        if (header.type == WIRE_OK)
            break;
        if (header.type != schema->type || count == max)
            return transfer_unexpected(header.type, err);
        if (count == cap) {
            char *more = arena_alloc(arena, 2 * cap * schema->size);
            memcpy(more, list, count * schema->size);
            list = more;
            cap *= 2;
        }
        struct slice copy = {arena_dup(arena, payload.data, payload.len), payload.len};
        if (wire_decode(schema, copy, list + count++ * schema->size, err) < 0)
            return -1;
    }
    *(void **)ret_list = list;
    *ret_count = count;
    return 0;
}

int sandbox_upload_parts(struct sandboxes *s, const char *workspace, const char *name,
                         const char *id, struct arena *arena, struct upload_about *ret_upload,
                         struct upload_part_about **ret_parts, size_t *ret_count, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct upload_ref request = {id};
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &upload_parts_schema, &request, err) < 0 ||
        transfer_answer(t, &upload_about_schema, arena, ret_upload, err) < 0)
        return -1;
    return read_list(t, &upload_part_about_schema, UPLOAD_PARTS_MAX, arena, ret_parts, ret_count,
                     err);
}

int sandbox_upload_list(struct sandboxes *s, const char *workspace, const char *name,
                        struct arena *arena, struct upload_about **ret_uploads, size_t *ret_count,
                        struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &upload_list_schema, NULL, err) < 0)
        return -1;
    return read_list(t, &upload_about_schema, 4 * UPLOADS_MAX, arena, ret_uploads, ret_count, err);
}
