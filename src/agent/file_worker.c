/* SPDX-License-Identifier: Apache-2.0 */

/* The worker's loop: frames in, verbs, frames out. */

#include "agent/file_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum {
    IDLE_SECONDS = 60,    /* without a request, or without a byte of one that has begun */
    SLOW_SECONDS = 120,   /* a reader that takes nothing for so long is gone */
    FLUSH_AT = 64 * 1024, /* a long listing goes out in pieces */
};

int file_receive(struct file_worker *worker, void *to, size_t len, struct error *err)
{
    size_t done = len < worker->received.len ? len : worker->received.len;
    if (done > 0) {
        memcpy(to, worker->received.data, done);
        worker->received.data += done;
        worker->received.len -= done;
    }
    while (done < len) {
        ssize_t n = recv(worker->fd, (char *)to + done, len - done, MSG_WAITALL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            worker->lost = true;
            return error_set(err, ERROR_UNAVAILABLE, "the connection ended");
        }
        done += (size_t)n;
    }
    return 0;
}

int file_receive_header(struct file_worker *worker, struct frame_header *ret_header,
                        struct error *err)
{
    unsigned char bytes[FRAME_HEADER_SIZE];
    if (file_receive(worker, bytes, sizeof(bytes), err) < 0)
        return -1;
    if (frame_header_decode(bytes, ret_header, err) < 0) {
        worker->lost = true; /* nobody knows where the next frame begins */
        return -1;
    }
    return 0;
}

int file_flush(struct file_worker *worker, struct error *err)
{
    if (wire_write(worker->fd, &worker->out, err) < 0) {
        worker->lost = true;
        return -1;
    }
    buf_clear(&worker->out);
    return 0;
}

int file_answer(struct file_worker *worker, const struct wire_schema *schema, uint32_t id,
                const void *msg, struct error *err)
{
    wire_encode(&worker->out, schema, id, msg);
    if (worker->out.failed || worker->out.len >= FLUSH_AT)
        return file_flush(worker, err);
    return 0;
}

union message {
    struct file_ref ref;
    struct file_read read;
    struct file_write write;
    struct file_mkdir mkdir;
    struct file_remove remove;
    struct file_move move;
    struct file_tree_get tree;
    struct file_watch watch;
    struct file_find find;
    struct upload_ref upload;
    struct upload_part part;
    struct upload_complete complete;
    struct history_list history_list;
    struct history_read history_read;
    struct history_apply history_apply;
};

static const struct verb {
    const struct wire_schema *schema;
    int (*serve)(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
    bool takes_content; /* frames up to a FILE_END follow the request */
} verbs[] = {
    {&file_stat_schema, file_stat},
    {&file_list_schema, file_list},
    {&file_read_schema, file_read},
    {&file_write_schema, file_write, .takes_content = true},
    {&file_mkdir_schema, file_mkdir},
    {&file_remove_schema, file_remove},
    {&file_move_schema, file_move},
    {&file_tree_schema, file_tree_get},
    {&file_tree_put_schema, file_tree_put, .takes_content = true},
    {&file_watch_schema, file_watch},
    {&file_find_schema, file_find},
    {&upload_start_schema, upload_start},
    {&upload_part_schema, upload_part, .takes_content = true},
    {&upload_complete_schema, upload_complete},
    {&upload_abort_schema, upload_abort},
    {&upload_parts_schema, upload_parts},
    {&upload_list_schema, upload_list},
    {&history_list_schema, history_list},
    {&history_read_schema, history_read},
    {&history_apply_schema, history_apply, .takes_content = true},
    {&history_watch_schema, history_share_watch},
};

static const struct verb *find_verb(uint16_t type)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (verbs[i].schema->type == type)
            return &verbs[i];
    return NULL;
}

/* After a failed write the sender is still sending. Its frames have to be taken to the end, or it
 * would never come to read the answer. */
static void drain(struct file_worker *worker)
{
    struct error err;
    char sink[4096];
    while (worker->owed && !worker->lost) {
        struct frame_header header;
        if (file_receive_header(worker, &header, &err) < 0)
            return;
        for (size_t left = header.length; left > 0;) {
            size_t n = left < sizeof(sink) ? left : sizeof(sink);
            if (file_receive(worker, sink, n, &err) < 0)
                return;
            left -= n;
        }
        worker->owed = header.type != FILE_END;
    }
}

static int serve(struct file_worker *worker, const struct frame_header *header,
                 struct slice payload, struct error *err)
{
    union message msg;
    const struct verb *verb = find_verb(header->type);
    if (verb == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "no request of type %u here", header->type);
    worker->owed = verb->takes_content;
    if (wire_decode(verb->schema, payload, &msg, err) < 0)
        return -1;
    return verb->serve(worker, header->id, &msg, err);
}

static int serve_next(struct file_worker *worker, struct error *err)
{
    struct frame_header header;
    if (file_receive_header(worker, &header, err) < 0)
        return -1;
    buf_clear(&worker->in);
    char *to = buf_reserve(&worker->in, header.length);
    if (to == NULL || file_receive(worker, to, header.length, err) < 0)
        return -1;
    buf_commit(&worker->in, header.length);

    struct slice payload = {worker->in.data, header.length};
    if (serve(worker, &header, payload, err) < 0) {
        drain(worker);
        if (worker->lost)
            return -1;
        wire_encode_error(&worker->out, header.id, err);
    }
    return file_flush(worker, err);
}

void file_worker_run(int fd, struct slice received, const char *state_dir,
                     const struct history_watch *history)
{
    struct file_worker worker = {
        .fd = fd,
        .received = received,
        .in = BUF_INIT(WIRE_PAYLOAD_MAX),
        .out = BUF_INIT(WIRE_PAYLOAD_MAX + FLUSH_AT),
        .state_dir = state_dir,
        .history = history,
    };
    struct timeval idle = {.tv_sec = IDLE_SECONDS}, slow = {.tv_sec = SLOW_SECONDS};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof(idle));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &slow, sizeof(slow));
    struct error err;
    while (serve_next(&worker, &err) == 0)
        ;
    buf_release(&worker.in);
    buf_release(&worker.out);
    free(worker.piece);
}
