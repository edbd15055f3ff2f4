/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files as raw bytes, of any size. The bytes go from one socket to the other without being kept
 * here; what a transfer costs does not grow with the file.
 */

#include "api/v0/filesystem.h"

#include <string.h>

#include "api/call.h"
#include "api/v0/file_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

/* `left` is what Content-Length promised. A file that grows meanwhile is cut there; one that
 * shrinks can only be told by cutting the connection. */
static int send_bytes(struct http_exchange *x, struct file_transfer *t, uint64_t left,
                      bool promised, struct error *err)
{
    size_t len;
    for (;;) {
        if (file_read_next(t, &len, err) < 0)
            return -1;
        if (len > left)
            len = left;
        if (len == 0)
            break;
        if (http_reply_pump(x, file_transfer_fd(t), len, err) < 0)
            return -1;
        left -= len;
    }
    if (promised && left > 0)
        return error_set(err, ERROR_CONFLICT, "the file became shorter while it was read");
    return http_reply_end(x, err);
}

int file_send_raw(struct http_exchange *x, const struct file_place *place, struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    struct file_entry entry;
    char modified[TIME_TEXT_SIZE];

    if (file_read_begin(place->sandboxes, place->workspace, place->sandbox, place->path, 0, 0,
                        http_arena(x), &entry, &t, err) < 0)
        return -1;
    /* Files of /proc and /sys say 0 and have content: their length is known at the end. */
    bool promised = entry.size > 0 && entry.size <= INT64_MAX;
    api_http_time(entry.mtime_ms, modified);
    http_set_header(x, "Last-Modified", "%s", modified);
    if (http_reply_start(x, 200, "application/octet-stream", promised ? (int64_t)entry.size : -1,
                         err) < 0)
        return -1;
    if (strcmp(http_request(x)->method, "HEAD") == 0)
        return http_reply_end(x, err);
    return send_bytes(x, t, promised ? entry.size : UINT64_MAX, promised, err);
}

/* With Content-Length each chunk can be announced before it is here, and be moved unseen. */
static int receive_sized(struct http_exchange *x, struct file_transfer *t, uint64_t left,
                         struct error *err)
{
    while (left > 0) {
        uint64_t chunk = left < WIRE_DATA_CHUNK ? left : WIRE_DATA_CHUNK;
        if (file_write_chunk(t, chunk, err) < 0)
            return -1;
        for (uint64_t moved, done = 0; done < chunk; done += moved) {
            if (http_body_pump(x, file_transfer_fd(t), chunk - done, &moved, err) < 0)
                return -1;
            if (moved == 0)
                return error_set(err, ERROR_INVALID_HTTP, "the body ended early");
        }
        left -= chunk;
    }
    return 0;
}

static int receive_chunked(struct http_exchange *x, struct file_transfer *t, struct error *err)
{
    char *piece = arena_alloc(http_arena(x), WIRE_DATA_CHUNK);
    for (;;) {
        ssize_t n = http_body_read(x, piece, WIRE_DATA_CHUNK, err);
        if (n <= 0)
            return n < 0 ? -1 : 0;
        if (file_write_chunk(t, (size_t)n, err) < 0 ||
            file_transfer_put(t, piece, (size_t)n, err) < 0)
            return -1;
    }
}

int file_receive_raw(struct http_exchange *x, const struct file_place *place, struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    int64_t length = http_request(x)->content_length;
    uint64_t mode = FILE_MODE_DEFAULT;
    const char *permissions = NULL;
    struct file_entry entry;

    if (http_query(x, "permissions", &permissions, err) < 0)
        return -1;
    if (permissions != NULL && permissions_parse(permissions, &mode, err) < 0)
        return -1;
    if (file_write_begin(place->sandboxes, place->workspace, place->sandbox, place->path, mode, &t,
                         err) < 0)
        return -1;
    if ((length < 0 ? receive_chunked(x, t, err) : receive_sized(x, t, (uint64_t)length, err)) < 0)
        return -1;
    if (file_write_commit(t, http_arena(x), &entry, err) < 0)
        return -1;
    return file_reply_message(x, place, "File created/updated successfully", err);
}
