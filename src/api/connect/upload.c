/* SPDX-License-Identifier: Apache-2.0 */

/* Files on their way in, in constant memory. */

#include "api/connect/upload.h"

#include <stdlib.h>
#include <strings.h>

#include "api/v0/filesystem.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "http/gunzip.h"

static int open_file(struct http_exchange *x, const struct connect_box *box,
                     struct slice attributes, const char *given, const char **ret_path,
                     struct file_transfer **ret_transfer, struct error *err)
{
    struct file_write request = {
        .mode = FILE_MODE_DEFAULT, .user = box->user, .attributes = attributes};
    if (given == NULL || given[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "path: says where the file goes, or the part's filename does");
    if (connect_path(box, http_arena(x), given, &request.path, err) < 0)
        return -1;
    *ret_path = request.path;
    return file_write_open(box->api->sandboxes, box->workspace, box->sandbox, &request,
                           ret_transfer, err);
}

static int put_piece(struct file_transfer *t, const char *piece, size_t len, struct error *err)
{
    if (file_write_chunk(t, len, err) < 0)
        return -1;
    return file_transfer_put(t, piece, len, err);
}

static int take_gzip(struct http_exchange *x, struct file_transfer *t, struct error *err)
{
    char *piece = arena_alloc(http_arena(x), WIRE_DATA_CHUNK);
    struct gunzip *gunzip;
    ssize_t n;
    if (gunzip_open(x, &gunzip, err) < 0)
        return -1;
    while ((n = gunzip_read(gunzip, piece, WIRE_DATA_CHUNK, err)) > 0)
        if (put_piece(t, piece, (size_t)n, err) < 0) {
            n = -1;
            break;
        }
    gunzip_close(gunzip);
    return (int)n;
}

static int take_body(struct http_exchange *x, struct file_transfer *t, struct error *err)
{
    const char *encoding = http_header(x, "Content-Encoding");
    if (encoding == NULL || strcasecmp(encoding, "identity") == 0)
        return file_receive_body(x, t, err);
    if (strcasecmp(encoding, "gzip") == 0)
        return take_gzip(x, t, err);
    return error_set(err, ERROR_UNSUPPORTED_MEDIA_TYPE,
                     "Content-Encoding: \"%.40s\" is not gzip or identity", encoding);
}

int connect_receive_raw(struct http_exchange *x, const struct connect_box *box,
                        struct slice attributes, const char *given, const char **ret_path,
                        struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    struct file_entry entry;
    if (open_file(x, box, attributes, given, ret_path, &t, err) < 0 || take_body(x, t, err) < 0)
        return -1;
    return file_write_commit(t, http_arena(x), &entry, err);
}

int connect_receive_part(struct http_exchange *x, const struct connect_box *box,
                         struct slice attributes, struct multipart *form, const char *given,
                         const char **ret_path, struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    _cleanup_free_ char *piece =
        malloc(WIRE_DATA_CHUNK); /* not the arena's: a form has many parts */
    struct file_entry entry;
    ssize_t n;
    if (piece == NULL)
        return error_sys(err, "allocating");
    if (open_file(x, box, attributes, given, ret_path, &t, err) < 0)
        return -1;
    while ((n = multipart_read(form, piece, WIRE_DATA_CHUNK, err)) > 0)
        if (put_piece(t, piece, (size_t)n, err) < 0)
            return -1;
    return n < 0 ? -1 : file_write_commit(t, http_arena(x), &entry, err);
}
