/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files: each operation has a connection of its own, which the agent hands to a worker that serves
 * it with blocking calls. So a transfer is paced by the slower end all the way through, and nothing
 * of it is held in memory here.
 */

#include "sandbox/files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/net.h"
#include "sandbox/state.h"

enum { PROGRESS_MS = 60 * 1000 };

struct file_transfer {
    struct loop *loop;
    struct sandbox *sb;
    int fd;
};

static int transfer_open(struct sandboxes *s, const char *workspace, const char *name,
                         struct file_transfer **ret_transfer, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    _cleanup_fd_ int fd = -1;
    if (sandbox_running(s, workspace, name, &sb, err) < 0 ||
        s->provider->ops->connect(s->provider, sb->id, &fd, err) < 0)
        return -1;
    struct file_transfer *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return error_sys(err, "allocating a transfer");
    t->loop = s->loop;
    t->sb = steal_ptr(sb);
    t->fd = steal_fd(&fd);
    *ret_transfer = t;
    return 0;
}

void file_transfer_end(struct file_transfer *t)
{
    if (t == NULL)
        return;
    close(t->fd);
    sandbox_drop(t->sb);
    free(t);
}

static void cleanup_transfer(struct file_transfer **t)
{
    file_transfer_end(*t);
}
#define _cleanup_transfer_ __attribute__((cleanup(cleanup_transfer)))

int file_transfer_fd(const struct file_transfer *t)
{
    return t->fd;
}

int file_transfer_take(struct file_transfer *t, void *to, size_t len, struct error *err)
{
    return net_read_whole(t->loop, t->fd, to, len, PROGRESS_MS, err);
}

int file_transfer_put(struct file_transfer *t, const void *from, size_t len, struct error *err)
{
    return net_write(t->loop, t->fd, from, len, PROGRESS_MS, err);
}

static int send_request(struct file_transfer *t, const struct wire_schema *schema, const void *msg,
                        struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4 * PATH_BYTES_MAX);
    wire_encode(&out, schema, 1, msg);
    if (buf_check(&out, "request", err) < 0)
        return -1;
    return file_transfer_put(t, out.data, out.len, err);
}

static int read_header(struct file_transfer *t, struct frame_header *ret_header, struct error *err)
{
    unsigned char bytes[FRAME_HEADER_SIZE];
    if (file_transfer_take(t, bytes, sizeof(bytes), err) < 0)
        return -1;
    return frame_header_decode(bytes, ret_header, err);
}

static int read_payload(struct file_transfer *t, const struct frame_header *header,
                        struct arena *arena, struct slice *ret_payload, struct error *err)
{
    char *bytes = arena_alloc(arena, header->length + 1);
    if (file_transfer_take(t, bytes, header->length, err) < 0)
        return -1;
    *ret_payload = (struct slice){bytes, header->length};
    return 0;
}

/* Reads a frame that must be of the given schema; an error frame becomes *err. */
static int read_answer(struct file_transfer *t, const struct wire_schema *schema,
                       struct arena *arena, void *ret_msg, struct error *err)
{
    struct frame_header header;
    struct slice payload;
    if (read_header(t, &header, err) < 0 || read_payload(t, &header, arena, &payload, err) < 0)
        return -1;
    if (header.type == WIRE_ERROR)
        return wire_take_error(payload, err);
    if (header.type != schema->type)
        return error_set(err, ERROR_UNAVAILABLE, "unexpected answer of type %u from the sandbox",
                         header.type);
    return wire_decode(schema, payload, ret_msg, err);
}

static int ask(struct sandboxes *s, const char *workspace, const char *name,
               const struct wire_schema *schema, const void *msg, const struct wire_schema *answer,
               struct arena *arena, void *ret_msg, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    if (transfer_open(s, workspace, name, &t, err) < 0 || send_request(t, schema, msg, err) < 0)
        return -1;
    return read_answer(t, answer, arena, ret_msg, err);
}

int sandbox_file_stat(struct sandboxes *s, const char *workspace, const char *name,
                      const char *path, struct arena *arena, struct file_entry *ret_entry,
                      struct error *err)
{
    struct file_ref request = {.path = path};
    return ask(s, workspace, name, &file_stat_schema, &request, &file_entry_schema, arena,
               ret_entry, err);
}

int sandbox_file_mkdir(struct sandboxes *s, const char *workspace, const char *name,
                       const char *path, uint64_t mode, struct arena *arena,
                       struct file_entry *ret_entry, struct error *err)
{
    struct file_mkdir request = {.path = path, .mode = mode};
    return ask(s, workspace, name, &file_mkdir_schema, &request, &file_entry_schema, arena,
               ret_entry, err);
}

int sandbox_file_remove(struct sandboxes *s, const char *workspace, const char *name,
                        const char *path, bool recursive, struct error *err)
{
    struct file_remove request = {.path = path, .recursive = recursive};
    struct arena *arena = arena_new();
    int rc =
        ask(s, workspace, name, &file_remove_schema, &request, &wire_ok_schema, arena, NULL, err);
    arena_free(arena);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct file_entry *)a)->path, ((const struct file_entry *)b)->path);
}

/* Items until WIRE_OK, in an array that doubles in the arena. */
static int read_items(struct file_transfer *t, struct arena *arena, struct file_entry **ret_items,
                      size_t *ret_count, struct error *err)
{
    struct file_entry *items = arena_alloc(arena, 64 * sizeof(*items));
    size_t count = 0, cap = 64;
    for (;;) {
        struct frame_header header;
        struct slice payload;
        if (read_header(t, &header, err) < 0 || read_payload(t, &header, arena, &payload, err) < 0)
            return -1;
        if (header.type == WIRE_ERROR)
            return wire_take_error(payload, err);
        if (header.type == WIRE_OK)
            break;
        if (header.type != FILE_ENTRY || count == DIR_ENTRIES_MAX)
            return error_set(err, ERROR_UNAVAILABLE, "unexpected answer from the sandbox");
        if (count == cap) {
            struct file_entry *more = arena_alloc(arena, 2 * cap * sizeof(*more));
            memcpy(more, items, count * sizeof(*more));
            items = more;
            cap *= 2;
        }
        if (wire_decode(&file_entry_schema, payload, &items[count++], err) < 0)
            return -1;
    }
    qsort(items, count, sizeof(*items), by_name);
    *ret_items = items;
    *ret_count = count;
    return 0;
}

int sandbox_file_list(struct sandboxes *s, const char *workspace, const char *name,
                      const char *path, struct arena *arena, struct file_entry *ret_dir,
                      struct file_entry **ret_items, size_t *ret_count, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct file_ref request = {.path = path};
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        send_request(t, &file_list_schema, &request, err) < 0 ||
        read_answer(t, &file_entry_schema, arena, ret_dir, err) < 0)
        return -1;
    return read_items(t, arena, ret_items, ret_count, err);
}

int file_read_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                    uint64_t offset, uint64_t length, struct arena *arena,
                    struct file_entry *ret_entry, struct file_transfer **ret_transfer,
                    struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct file_read request = {.path = path, .offset = offset, .length = length};
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        send_request(t, &file_read_schema, &request, err) < 0 ||
        read_answer(t, &file_entry_schema, arena, ret_entry, err) < 0)
        return -1;
    *ret_transfer = steal_ptr(t);
    return 0;
}

int file_read_next(struct file_transfer *t, size_t *ret_len, struct error *err)
{
    struct frame_header header;
    if (read_header(t, &header, err) < 0)
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
        return error_set(err, ERROR_UNAVAILABLE, "unexpected answer of type %u from the sandbox",
                         header.type);
    struct slice payload;
    struct arena *arena = arena_new();
    if (read_payload(t, &header, arena, &payload, err) == 0)
        wire_take_error(payload, err);
    arena_free(arena);
    return -1;
}

int file_write_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                     uint64_t mode, struct file_transfer **ret_transfer, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct file_write request = {.path = path, .mode = mode};
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        send_request(t, &file_write_schema, &request, err) < 0)
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
    if (send_request(t, &file_end_schema, NULL, err) < 0)
        return -1;
    return read_answer(t, &file_entry_schema, arena, ret_entry, err);
}
