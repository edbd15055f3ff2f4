/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /files: whole files, as raw bytes or as parts of a form, several of them in one request. Who
 * calls shows the sandbox's token, or an address that somebody who has it has signed: such a one
 * need not say which sandbox it is for, as only one sandbox's token fits.
 */

#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/connect/upload.h"
#include "api/e2b/door.h"
#include "api/e2b/handlers.h"
#include "api/signed_address.h"
#include "api/v0/filesystem.h"
#include "auth/box_token.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "http/multipart.h"

#define METADATA_FIELD "X-Metadata-"

/* --- who may --- */

/* The sandbox whose token has signed the address: the one that is named beside it, or any. */
static int find_signed(struct http_exchange *x, const struct api *api,
                       const struct signed_address *address, const char **ret_id, struct error *err)
{
    struct e2b_visit visit;
    if (!e2b_visits(x, api, &visit))
        return signed_address_find(x, api, address, ret_id, err);
    if (signed_address_check_expiry(address, err) < 0)
        return -1;
    if (!signed_address_fits(api, address, http_arena(x), visit.sandbox_id))
        return auth_box_refuse(api->auth, http_request(x)->peer,
                               "the signature is not this sandbox's for this path", err);
    *ret_id = visit.sandbox_id;
    return 0;
}

static int enter(struct http_exchange *x, const struct api *api, const char *operation,
                 const char **ret_path, struct connect_box *ret_box, struct error *err)
{
    struct signed_address s = {0};
    const char *user = NULL, *path = NULL, *id = NULL;
    if (http_query(x, "path", &path, err) < 0 || http_query(x, "username", &user, err) < 0 ||
        http_query(x, "signature", &s.signature, err) < 0 ||
        http_query(x, "signature_expiration", &s.expires, err) < 0)
        return -1;
    *ret_path = path;
    if (user != NULL && user[0] == '\0')
        user = NULL;
    if (s.signature == NULL)
        return e2b_box(x, api, E2B_NEEDS_TOKEN, user, ret_box, err);
    s.text = arena_printf(http_arena(x), "%s:%s:%s", path == NULL ? "" : path, operation,
                          user == NULL ? "" : user);
    if (find_signed(x, api, &s, &id, err) < 0)
        return -1;
    return e2b_box_of(x, api, id, user == NULL ? "user" : user, ret_box, err);
}

/* --- reading --- */

int e2b_file_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    const char *path;
    struct file_place place;
    if (enter(x, call->api, "read", &path, &box, err) < 0 ||
        connect_path(&box, http_arena(x), path, &path, err) < 0)
        return -1;
    place = (struct file_place){call->api->sandboxes, box.workspace, box.sandbox, path};
    return file_send_raw(x, &place, false, err);
}

/* --- writing --- */

struct upload {
    const struct connect_box *box;
    struct slice attributes;
    yyjson_mut_doc *doc;
    yyjson_mut_val *written;
};

static char *lower(struct arena *arena, const char *text)
{
    char *copy = arena_strdup(arena, text);
    for (char *c = copy; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return copy;
}

/* X-Metadata-Color: red is the attribute user.e2b.color=red. */
static int read_metadata(struct http_exchange *x, struct slice *ret_attributes, struct error *err)
{
    const struct http_request *request = http_request(x);
    _cleanup_buf_ struct buf list = BUF_INIT(FILE_ATTRIBUTES_MAX);
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        size_t skip = sizeof(METADATA_FIELD) - 1;
        if (strncasecmp(header->name, METADATA_FIELD, skip) != 0 || header->name[skip] == '\0')
            continue;
        buf_addf(&list, E2B_ATTRIBUTES "%s=%s", lower(http_arena(x), header->name + skip),
                 header->value);
        buf_addc(&list, '\0');
    }
    if (list.failed)
        return error_set(err, ERROR_INVALID_ARGUMENT, "metadata: more than %d bytes",
                         FILE_ATTRIBUTES_MAX);
    *ret_attributes = (struct slice){arena_dup(http_arena(x), list.data, list.len), list.len};
    return 0;
}

/* What was written is told in the answer. */
static void add_written(struct upload *u, const char *path)
{
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(u->doc, u->written);
    json_add_lossy(u->doc, object, "path", slice_of(path));
    json_add_lossy(u->doc, object, "name", slice_of(strrchr(path, '/') + 1));
    yyjson_mut_obj_add_str(u->doc, object, "type", "file");
    connect_add_metadata(u->doc, object, u->attributes, E2B_ATTRIBUTES);
}

static int receive_raw(struct http_exchange *x, struct upload *u, const char *given,
                       struct error *err)
{
    const char *path;
    if (connect_receive_raw(x, u->box, u->attributes, given, &path, err) < 0)
        return -1;
    add_written(u, path);
    return 0;
}

static int receive_part(struct http_exchange *x, struct upload *u, struct multipart *form,
                        const char *given, struct error *err)
{
    const char *path;
    if (connect_receive_part(x, u->box, u->attributes, form, given, &path, err) < 0)
        return -1;
    add_written(u, path);
    return 0;
}

static int receive_form(struct http_exchange *x, struct upload *u, const char *given,
                        struct error *err)
{
    struct multipart *form;
    struct form_part part;
    int rc;
    if (multipart_open(x, &form, err) < 0)
        return -1;
    while ((rc = multipart_next(form, &part, err)) > 0) {
        if (part.name == NULL || strcmp(part.name, "file") != 0)
            continue;
        if (given != NULL && yyjson_mut_arr_size(u->written) > 0)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "path: is for one file, and the form has several");
        if (receive_part(x, u, form, given != NULL ? given : part.filename, err) < 0)
            return -1;
    }
    return rc;
}

int e2b_file_post(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    struct upload u = {.box = &box, .doc = json_doc(http_arena(x))};
    const char *path;
    u.written = yyjson_mut_arr(u.doc);
    yyjson_mut_doc_set_root(u.doc, u.written);
    if (enter(x, call->api, "write", &path, &box, err) < 0 ||
        read_metadata(x, &u.attributes, err) < 0)
        return -1;
    int rc = http_content_is(x, "multipart/form-data") ? receive_form(x, &u, path, err)
                                                       : receive_raw(x, &u, path, err);
    return rc < 0 ? -1 : api_reply_json(x, 200, u.doc, err);
}
