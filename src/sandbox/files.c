/* SPDX-License-Identifier: Apache-2.0 */

/* The plain operations on files, each on a connection of its own (transfer.h). */

#include "sandbox/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/transfer.h"

int sandbox_file_stat(struct sandboxes *s, const char *workspace, const char *name,
                      const char *path, struct arena *arena, struct file_entry *ret_entry,
                      struct error *err)
{
    return sandbox_file_look(s, workspace, name, &(struct file_ref){.path = path}, arena, ret_entry,
                             err);
}

int sandbox_file_look(struct sandboxes *s, const char *workspace, const char *name,
                      const struct file_ref *request, struct arena *arena,
                      struct file_entry *ret_entry, struct error *err)
{
    return transfer_ask(s, workspace, name, &file_stat_schema, request, &file_entry_schema, arena,
                        ret_entry, err);
}

int sandbox_file_mkdir(struct sandboxes *s, const char *workspace, const char *name,
                       const char *path, uint64_t mode, struct arena *arena,
                       struct file_entry *ret_entry, struct error *err)
{
    struct file_mkdir request = {.path = path, .mode = mode};
    return sandbox_file_make_dir(s, workspace, name, &request, arena, ret_entry, err);
}

int sandbox_file_make_dir(struct sandboxes *s, const char *workspace, const char *name,
                          const struct file_mkdir *request, struct arena *arena,
                          struct file_entry *ret_entry, struct error *err)
{
    return transfer_ask(s, workspace, name, &file_mkdir_schema, request, &file_entry_schema, arena,
                        ret_entry, err);
}

int sandbox_file_move(struct sandboxes *s, const char *workspace, const char *name,
                      const struct file_move *request, struct arena *arena,
                      struct file_entry *ret_entry, struct error *err)
{
    return transfer_ask(s, workspace, name, &file_move_schema, request, &file_entry_schema, arena,
                        ret_entry, err);
}

int sandbox_file_remove_entry(struct sandboxes *s, const char *workspace, const char *name,
                              const char *path, bool recursive, struct arena *arena,
                              struct file_entry *ret_entry, struct error *err)
{
    struct file_remove request = {.path = path, .recursive = recursive};
    return transfer_ask(s, workspace, name, &file_remove_schema, &request, &file_entry_schema,
                        arena, ret_entry, err);
}

int sandbox_file_remove(struct sandboxes *s, const char *workspace, const char *name,
                        const char *path, bool recursive, struct error *err)
{
    struct arena *arena = arena_new();
    struct file_entry entry;
    int rc = sandbox_file_remove_entry(s, workspace, name, path, recursive, arena, &entry, err);
    arena_free(arena);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct file_entry *)a)->path, ((const struct file_entry *)b)->path);
}

int sandbox_file_list(struct sandboxes *s, const char *workspace, const char *name,
                      const char *path, struct arena *arena, struct file_entry *ret_dir,
                      struct file_entry **ret_items, size_t *ret_count, struct error *err)
{
    return sandbox_file_list_of(s, workspace, name, &(struct file_ref){.path = path}, arena,
                                ret_dir, ret_items, ret_count, err);
}

int sandbox_file_list_of(struct sandboxes *s, const char *workspace, const char *name,
                         const struct file_ref *request, struct arena *arena,
                         struct file_entry *ret_dir, struct file_entry **ret_items,
                         size_t *ret_count, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &file_list_schema, request, err) < 0 ||
        transfer_answer(t, &file_entry_schema, arena, ret_dir, err) < 0)
        return -1;
    struct frame_header last;
    struct slice payload;
    if (transfer_entries(t, DIR_ENTRIES_MAX, arena, ret_items, ret_count, &last, &payload, err) < 0)
        return -1;
    if (last.type != WIRE_OK)
        return transfer_unexpected(last.type, err);
    qsort(*ret_items, *ret_count, sizeof(**ret_items), by_name);
    return 0;
}

int file_read_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                    uint64_t offset, uint64_t length, struct arena *arena,
                    struct file_entry *ret_entry, struct file_transfer **ret_transfer,
                    struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct file_read request = {.path = path, .offset = offset, .length = length};
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &file_read_schema, &request, err) < 0 ||
        transfer_answer(t, &file_entry_schema, arena, ret_entry, err) < 0)
        return -1;
    *ret_transfer = steal_ptr(t);
    return 0;
}

int file_read_next(struct file_transfer *t, size_t *ret_len, struct error *err)
{
    unsigned char bytes[FRAME_HEADER_SIZE];
    struct frame_header header;
    if (file_transfer_take(t, bytes, sizeof(bytes), err) < 0 ||
        frame_header_decode(bytes, &header, err) < 0)
        return -1;
    if (header.type == FILE_DATA && header.length > 0 && header.length <= WIRE_DATA_CHUNK) {
        *ret_len = header.length;
        return 0;
    }
    if (header.type == FILE_END && header.length == 0) {
        *ret_len = 0;
        return 0;
    }
    if (header.type != WIRE_ERROR)
        return transfer_unexpected(header.type, err);
    _cleanup_free_ char *payload = malloc(header.length + 1);
    if (payload == NULL)
        return error_sys(err, "an answer from the sandbox");
    if (file_transfer_take(t, payload, header.length, err) < 0)
        return -1;
    return wire_take_error((struct slice){payload, header.length}, err);
}

int file_write_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                     uint64_t mode, struct file_transfer **ret_transfer, struct error *err)
{
    struct file_write request = {.path = path, .mode = mode};
    return file_write_open(s, workspace, name, &request, ret_transfer, err);
}

int file_write_open(struct sandboxes *s, const char *workspace, const char *name,
                    const struct file_write *request, struct file_transfer **ret_transfer,
                    struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &file_write_schema, request, err) < 0)
        return -1;
    *ret_transfer = steal_ptr(t);
    return 0;
}

int file_write_chunk(struct file_transfer *t, size_t len, struct error *err)
{
    unsigned char header[FRAME_HEADER_SIZE];
    frame_header_encode(header, &(struct frame_header){(uint32_t)len, FILE_DATA, 1});
    return file_transfer_put(t, header, sizeof(header), err);
}

int file_write_commit(struct file_transfer *t, struct arena *arena, struct file_entry *ret_entry,
                      struct error *err)
{
    if (transfer_send(t, &file_end_schema, NULL, err) < 0)
        return -1;
    return transfer_answer(t, &file_entry_schema, arena, ret_entry, err);
}
