/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files as raw bytes, of any size. The bytes go from one socket to the other without being kept
 * here; what a transfer costs does not grow with the file.
 */

#include "api/v0/filesystem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/v0/file_json.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "http/range.h"

/* `left` is what Content-Length promised, `first` the length of a piece that was announced already.
 * A file that grows meanwhile is cut there; one that
 * shrinks can only be told by cutting the connection. */
static int send_bytes(struct http_exchange *x, struct file_transfer *t, uint64_t left,
                      bool promised, size_t first, struct error *err)
{
    size_t len = first;
    for (;; len = 0) {
        if (len == 0 && file_read_next(t, &len, err) < 0)
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

enum { ETAG_SIZE = 64 };

/* Changes with every new content: a file that was replaced is another one, one that was written to
 * has another time. */
static void etag_format(const struct file_entry *entry, char out[ETAG_SIZE])
{
    snprintf(out, ETAG_SIZE, "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"", entry->inode,
             entry->mtime_ms, entry->size);
}

/* attachment; filename="a.txt"; filename*=UTF-8''a.txt, as RFC 6266 has it. */
static void add_disposition(struct http_exchange *x, const char *path)
{
    static const char plain[] = "!#$&+-.^_`|~";
    _cleanup_buf_ struct buf exact = BUF_INIT(3 * PATH_BYTES_MAX + 16);
    const char *name = strrchr(path, '/') + 1;
    char *simple = arena_strdup(http_arena(x), name);
    for (char *c = simple; *c != '\0'; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = '_';
    for (const char *c = name; *c != '\0'; c++) {
        bool is_plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                        (*c >= 'A' && *c <= 'Z') || strchr(plain, *c) != NULL;
        buf_addf(&exact, is_plain ? "%c" : "%%%02X", (unsigned char)*c);
    }
    http_set_header(x, "Content-Disposition", "attachment; filename=\"%s\"; filename*=UTF-8''%s",
                    simple, exact.data);
}

struct raw_file {
    struct file_entry entry;
    char etag[ETAG_SIZE];
    char modified[TIME_TEXT_SIZE];
};

/* Which part of the file is wanted. To know its size it has to be looked at first. */
static int find_range(struct http_exchange *x, const struct file_place *place,
                      enum http_range_kind *ret_kind, struct http_range *ret_range,
                      struct error *err)
{
    struct raw_file file;
    *ret_kind = HTTP_RANGE_NONE;
    if (http_header(x, "Range") == NULL)
        return 0;
    if (sandbox_file_stat(place->sandboxes, place->workspace, place->sandbox, place->path,
                          http_arena(x), &file.entry, err) < 0)
        return -1;
    if (file.entry.type != FILE_REGULAR)
        return 0;
    etag_format(&file.entry, file.etag);
    api_http_time(file.entry.mtime_ms, file.modified);
    *ret_kind = http_range(x, file.entry.size, file.etag, file.modified, ret_range);
    /* A file of /proc has bytes though it says 0. */
    if (*ret_kind != HTTP_RANGE_UNSATISFIABLE || file.entry.size == 0) {
        *ret_kind = file.entry.size == 0 ? HTTP_RANGE_NONE : *ret_kind;
        return 0;
    }
    http_set_header(x, "Content-Range", "bytes */%" PRIu64, file.entry.size);
    return error_set(err, ERROR_RANGE_NOT_SATISFIABLE, "%.200s has %" PRIu64 " bytes", place->path,
                     file.entry.size);
}

int file_send_raw(struct http_exchange *x, const struct file_place *place, bool as_attachment,
                  struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    enum http_range_kind kind;
    struct http_range range = {0};
    struct raw_file file;
    if (find_range(x, place, &kind, &range, err) < 0 ||
        file_read_begin(place->sandboxes, place->workspace, place->sandbox, place->path,
                        range.offset, range.length, http_arena(x), &file.entry, &t, err) < 0)
        return -1;
    uint64_t size = file.entry.size;
    if (kind == HTTP_RANGE_PART && range.offset + range.length > size)
        return error_set(err, ERROR_CONFLICT, "the file became shorter while it was read");
    etag_format(&file.entry, file.etag);
    api_http_time(file.entry.mtime_ms, file.modified);
    http_set_header(x, "ETag", "%s", file.etag);
    http_set_header(x, "Last-Modified", "%s", file.modified);
    http_set_header(x, "Accept-Ranges", "bytes");
    http_set_header(x, "X-Cella-Permissions", "%04o", (unsigned)(file.entry.mode & 07777));
    if (as_attachment)
        add_disposition(x, place->path);
    if (http_not_modified(x, file.etag))
        return http_reply(x, 304, "application/octet-stream", "", 0, err);
    /* Files of /proc and /sys say 0 and have content: their length is known at the end. */
    bool promised = size > 0 && size <= INT64_MAX;
    size_t first = 0;
    if (size == 0 && file_read_next(t, &first, err) < 0)
        return -1;
    if (size == 0 && first == 0)
        return http_reply(x, 200, "application/octet-stream", "", 0, err);
    uint64_t length = kind == HTTP_RANGE_PART ? range.length : size;
    if (kind == HTTP_RANGE_PART)
        http_set_header(x, "Content-Range", "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range.offset,
                        range.offset + range.length - 1, size);
    if (http_reply_start(x, kind == HTTP_RANGE_PART ? 206 : 200, "application/octet-stream",
                         promised ? (int64_t)length : -1, err) < 0)
        return -1;
    if (strcmp(http_request(x)->method, "HEAD") == 0)
        return http_reply_end(x, err);
    return send_bytes(x, t, promised ? length : UINT64_MAX, promised, first, err);
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

int file_receive_body(struct http_exchange *x, struct file_transfer *t, struct error *err)
{
    int64_t length = http_request(x)->content_length;
    return length < 0 ? receive_chunked(x, t, err) : receive_sized(x, t, (uint64_t)length, err);
}

int file_receive_raw(struct http_exchange *x, const struct file_place *place, struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
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
    if (file_receive_body(x, t, err) < 0 || file_write_commit(t, http_arena(x), &entry, err) < 0)
        return -1;
    return file_reply_message(x, place, "File created/updated successfully", err);
}
