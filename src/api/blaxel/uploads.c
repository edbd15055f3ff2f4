/* SPDX-License-Identifier: Apache-2.0 */

/* /filesystem-multipart: a large file in parts, each the part "file" of a form. */

#include <string.h>

#include "api/blaxel/box.h"
#include "api/blaxel/handlers.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "http/multipart.h"

int box_upload_start(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct file_place place;
    if (box_place(x, params, ctx, BOX_PATH_ANY, &place, err) < 0)
        return -1;
    return upload_start(x, &place, err);
}

/* The form's part "file" becomes the transfer's content. */
static int receive_form(struct http_exchange *x, struct file_transfer *t, struct error *err)
{
    char *piece = arena_alloc(http_arena(x), WIRE_DATA_CHUNK);
    struct multipart *form;
    struct form_part part;
    bool found = false;
    int rc;
    if (multipart_open(x, &form, err) < 0)
        return -1;
    while ((rc = multipart_next(form, &part, err)) > 0) {
        if (part.name == NULL || strcmp(part.name, "file") != 0 || found)
            continue;
        ssize_t n;
        while ((n = multipart_read(form, piece, WIRE_DATA_CHUNK, err)) > 0)
            if (file_write_chunk(t, (size_t)n, err) < 0 ||
                file_transfer_put(t, piece, (size_t)n, err) < 0)
                return -1;
        if (n < 0)
            return -1;
        found = true;
    }
    if (rc == 0 && !found)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the form has no part \"file\"");
    return rc;
}

int box_upload_part(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    if (upload_part_open(x, params, ctx, &t, err) < 0)
        return -1;
    bool form = http_content_is(x, "multipart/form-data");
    if ((form ? receive_form(x, t, err) : file_receive_body(x, t, err)) < 0)
        return -1;
    return upload_part_close(x, t, err);
}
