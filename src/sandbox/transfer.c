/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each file operation has a connection of its own, which the agent hands to a worker that serves it
 * with blocking calls. So a transfer is paced by the slower end all the way through, and nothing of
 * it is held in memory here.
 */

#include "sandbox/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/net.h"
#include "observe/meters.h"
#include "sandbox/state.h"

enum { PROGRESS_MS = 60 * 1000, READ_AHEAD = 64 * 1024 };

struct file_transfer {
    struct loop *loop;
    struct sandbox *sb;
    int fd;
    struct buf in; /* read ahead */
    size_t used;   /* of it, by frames that were given out */
    uint64_t begun_ns;
    enum meter_histogram meter; /* by what was asked for first */
    bool asked;
};

/* Watching has no end of its own, and is not measured. */
static const struct {
    uint16_t type;
    enum meter_histogram meter;
} meters[] = {
    {FILE_STAT, METER_FILE_STAT},      {FILE_LIST, METER_FILE_LIST},
    {FILE_READ, METER_FILE_READ},      {FILE_WRITE, METER_FILE_WRITE},
    {FILE_REMOVE, METER_FILE_REMOVE},  {FILE_TREE, METER_FILE_LIST},
    {FILE_TREE_PUT, METER_FILE_WRITE}, {FILE_FIND, METER_FILE_SEARCH},
    {UPLOAD_PART, METER_FILE_WRITE},   {UPLOAD_COMPLETE, METER_FILE_WRITE},
};

static void count_kind(struct file_transfer *t, uint16_t type)
{
    t->meter = METER_FILE_OTHER;
    for (size_t i = 0; i < ARRAY_LEN(meters); i++)
        if (meters[i].type == type)
            t->meter = meters[i].meter;
    t->asked = type != FILE_WATCH;
}

int transfer_open(struct sandboxes *s, const char *workspace, const char *name,
                  struct file_transfer **ret_transfer, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    _cleanup_fd_ int fd = -1;
    if (sandbox_running(s, workspace, name, &sb, err) < 0 ||
        sandbox_agent_connect(sb, &fd, err) < 0)
        return -1;
    struct file_transfer *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return error_sys(err, "allocating a transfer");
    t->loop = s->loop;
    t->begun_ns = meter_now();
    t->sb = steal_ptr(sb);
    sandbox_stream_begin(t->sb);
    t->fd = steal_fd(&fd);
    buf_init(&t->in, FRAME_HEADER_SIZE + WIRE_PAYLOAD_MAX + READ_AHEAD);
    *ret_transfer = t;
    return 0;
}

void file_transfer_end(struct file_transfer *t)
{
    if (t == NULL)
        return;
    if (t->asked)
        meter_took(loop_meters(t->loop), t->meter, t->begun_ns);
    close(t->fd);
    sandbox_stream_end(t->sb);
    sandbox_drop(t->sb);
    buf_release(&t->in);
    free(t);
}

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

int transfer_send(struct file_transfer *t, const struct wire_schema *schema, const void *msg,
                  struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(FRAME_HEADER_SIZE + WIRE_PAYLOAD_MAX);
    wire_encode(&out, schema, 1, msg);
    if (buf_check(&out, "request", err) < 0)
        return -1;
    if (!t->asked)
        count_kind(t, schema->type);
    return file_transfer_put(t, out.data, out.len, err);
}

int transfer_unexpected(uint16_t type, struct error *err)
{
    return error_set(err, ERROR_UNAVAILABLE, "unexpected answer of type %u from the sandbox", type);
}

int transfer_next(struct file_transfer *t, int64_t timeout_ms, struct frame_header *ret_header,
                  struct slice *ret_payload, struct error *err)
{
    for (;;) {
        struct buf rest = {.data = t->in.data + t->used, .len = t->in.len - t->used};
        int got = wire_next(&rest, ret_header, ret_payload, err);
        if (got < 0)
            return -1;
        if (got > 0)
            break;
        buf_consume(&t->in, t->used); /* only now: many small frames come with one read */
        t->used = 0;
        char *to = buf_reserve(&t->in, READ_AHEAD);
        if (to == NULL)
            return buf_check(&t->in, "a frame", err);
        ssize_t n = net_read(t->loop, t->fd, to, READ_AHEAD,
                             timeout_ms == 0 ? PROGRESS_MS : timeout_ms, err);
        if (n < 0)
            return -1;
        if (n == 0)
            return error_set(err, ERROR_UNAVAILABLE, "the sandbox closed the connection");
        buf_commit(&t->in, (size_t)n);
    }
    t->used += FRAME_HEADER_SIZE + ret_header->length;
    return ret_header->type == WIRE_ERROR ? wire_take_error(*ret_payload, err) : 0;
}

static int take_fd(struct file_transfer *t, int *fd, struct error *err)
{
    unsigned char bytes[FRAME_HEADER_SIZE];
    struct frame_header header;
    if (t->in.len > t->used)
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox sent more than it was asked for");
    if (net_read_with_fd(t->loop, t->fd, bytes, sizeof(bytes), PROGRESS_MS, fd, err) < 0 ||
        frame_header_decode(bytes, &header, err) < 0)
        return -1;
    if (header.type != WIRE_OK || header.length != 0 || *fd < 0)
        return transfer_unexpected(header.type, err);
    return 0;
}

int transfer_ask_fd(struct file_transfer *t, const struct wire_schema *schema, int *ret_fd,
                    struct error *err)
{
    int fd = -1;
    net_take_descriptors(t->fd, true);
    int rc = transfer_send(t, schema, NULL, err);
    if (rc == 0)
        rc = take_fd(t, &fd, err);
    net_take_descriptors(t->fd, false);
    if (rc == 0)
        *ret_fd = fd;
    else if (fd >= 0)
        net_close_foreign(fd);
    return rc;
}

int transfer_answer(struct file_transfer *t, const struct wire_schema *schema, struct arena *arena,
                    void *ret_msg, struct error *err)
{
    unsigned char bytes[FRAME_HEADER_SIZE];
    struct frame_header header;
    if (file_transfer_take(t, bytes, sizeof(bytes), err) < 0 ||
        frame_header_decode(bytes, &header, err) < 0)
        return -1;
    if (arena_check(arena, header.length, err) < 0)
        return -1;
    char *payload = arena_alloc(arena, header.length + 1);
    if (file_transfer_take(t, payload, header.length, err) < 0)
        return -1;
    if (header.type == WIRE_ERROR)
        return wire_take_error((struct slice){payload, header.length}, err);
    if (header.type != schema->type)
        return transfer_unexpected(header.type, err);
    return wire_decode(schema, (struct slice){payload, header.length}, ret_msg, err);
}

int transfer_ask(struct sandboxes *s, const char *workspace, const char *name,
                 const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *answer, struct arena *arena, void *ret_msg,
                 struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    if (transfer_open(s, workspace, name, &t, err) < 0 || transfer_send(t, schema, msg, err) < 0)
        return -1;
    return transfer_answer(t, answer, arena, ret_msg, err);
}

void transfer_charge(struct file_transfer *t, const struct arena *arena)
{
    if (t->in.cap == 0)
        t->in.account = arena_account(arena);
}

int transfer_entries(struct file_transfer *t, size_t max, struct arena *arena,
                     struct file_entry **ret_items, size_t *ret_count,
                     struct frame_header *ret_last, struct slice *ret_payload, struct error *err)
{
    struct file_entry *items = arena_alloc(arena, 64 * sizeof(*items));
    size_t count = 0, cap = 64, bytes = 0;
    transfer_charge(t, arena);
    for (;;) {
        if (transfer_next(t, 0, ret_last, ret_payload, err) < 0)
            return -1;
        if (ret_last->type != FILE_ENTRY)
            break;
        bytes += ret_payload->len + sizeof(*items);
        if (count == max || bytes > TRANSFER_ENTRIES_BYTES)
            return error_set(err, ERROR_LIMIT_EXCEEDED,
                             "more entries than fit into one answer (%zu entries, %d MiB)", max,
                             TRANSFER_ENTRIES_BYTES >> 20);
        if (arena_check(arena, ret_payload->len + (count == cap ? 2 * cap * sizeof(*items) : 0),
                        err) < 0)
            return -1;
        if (count == cap) { /* an array that doubles in the arena */
            struct file_entry *more = arena_alloc(arena, 2 * cap * sizeof(*more));
            memcpy(more, items, count * sizeof(*more));
            items = more;
            cap *= 2;
        }
        struct slice payload = {arena_dup(arena, ret_payload->data, ret_payload->len),
                                ret_payload->len};
        if (wire_decode(&file_entry_schema, payload, &items[count++], err) < 0)
            return -1;
    }
    *ret_items = items;
    *ret_count = count;
    return 0;
}
