/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blaxel's clients send the permissions behind the file, and a file is given its permissions when
 * it is opened. So the beginning of a file is held until the form has ended or the file turns out
 * large; a large one goes straight to the sandbox, and permissions that come later are refused
 * unless they are what the file has got.
 */

#include "api/blaxel/filesystem_form.h"

#include <string.h>

#include "api/call.h"
#include "api/v0/file_json.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "http/multipart.h"

enum { MODE_DEFAULT = 0644, PERMISSIONS_BYTES_MAX = 16 };

struct upload {
    const struct file_place *place;
    struct file_transfer *transfer; /* NULL: not begun */
    struct buf held;
    bool has_file;
    uint64_t mode;
};

static void upload_release(struct upload *u)
{
    file_transfer_end(u->transfer);
    buf_release(&u->held);
}

static int put_bytes(struct upload *u, const char *data, size_t left, struct error *err)
{
    for (size_t len; left > 0; data += len, left -= len) {
        len = left < WIRE_DATA_CHUNK ? left : WIRE_DATA_CHUNK;
        if (file_write_chunk(u->transfer, len, err) < 0 ||
            file_transfer_put(u->transfer, data, len, err) < 0)
            return -1;
    }
    return 0;
}

/* Opens the file and writes what was held. */
static int begin(struct upload *u, struct error *err)
{
    const struct file_place *place = u->place;
    if (file_write_begin(place->sandboxes, place->workspace, place->sandbox, place->path, u->mode,
                         &u->transfer, err) < 0 ||
        put_bytes(u, u->held.data, u->held.len, err) < 0)
        return -1;
    buf_release(&u->held);
    return 0;
}

static int take_file(struct http_exchange *x, struct multipart *form, struct upload *u,
                     struct error *err)
{
    char *piece = arena_alloc(http_arena(x), WIRE_DATA_CHUNK);
    if (u->has_file)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the form has more than one part \"file\"");
    u->has_file = true;
    for (;;) {
        ssize_t n = multipart_read(form, piece, WIRE_DATA_CHUNK, err);
        if (n <= 0)
            return (int)n;
        if (u->transfer == NULL && u->held.len + (size_t)n <= u->held.max) {
            buf_add(&u->held, piece, (size_t)n);
            if (buf_check(&u->held, "the file", err) < 0)
                return -1;
            continue;
        }
        if (u->transfer == NULL && begin(u, err) < 0)
            return -1;
        if (put_bytes(u, piece, (size_t)n, err) < 0)
            return -1;
    }
}

static int take_permissions(struct multipart *form, struct upload *u, struct error *err)
{
    struct slice text;
    uint64_t mode;
    if (multipart_read_all(form, PERMISSIONS_BYTES_MAX, &text, err) < 0 ||
        permissions_parse(text.data, &mode, err) < 0)
        return -1;
    if (u->transfer != NULL && mode != u->mode)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "permissions: they have to stand before a file of more than %d bytes",
                         FORM_FILE_HELD_MAX);
    u->mode = mode;
    return 0;
}

static int take_form(struct http_exchange *x, struct upload *u, struct error *err)
{
    struct multipart *form;
    struct form_part part;
    int rc;
    if (multipart_open(x, &form, err) < 0)
        return -1;
    while ((rc = multipart_next(form, &part, err)) > 0) {
        if (part.name != NULL && strcmp(part.name, "file") == 0)
            rc = take_file(x, form, u, err);
        else if (part.name != NULL && strcmp(part.name, "permissions") == 0)
            rc = take_permissions(form, u, err);
        if (rc < 0)
            break;
    }
    if (rc == 0 && !u->has_file)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the form has no part \"file\"");
    return rc;
}

int box_file_receive_form(struct http_exchange *x, const struct file_place *place,
                          struct error *err)
{
    _cleanup_(upload_release) struct upload u = {.place = place, .mode = MODE_DEFAULT};
    struct file_entry entry;
    buf_init(&u.held, FORM_FILE_HELD_MAX);
    if (take_form(x, &u, err) < 0 || (u.transfer == NULL && begin(&u, err) < 0) ||
        file_write_commit(u.transfer, http_arena(x), &entry, err) < 0)
        return -1;
    return file_reply_message(x, place, "File created/updated successfully", err);
}
