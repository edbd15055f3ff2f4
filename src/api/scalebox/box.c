/* SPDX-License-Identifier: Apache-2.0 */

/* Inside a sandbox: whether it is there, whole files, and the two services of connect/. */

#include <string.h>

#include "api/call.h"
#include "api/connect/upload.h"
#include "api/scalebox/door.h"
#include "api/scalebox/handlers.h"
#include "api/v0/filesystem.h"
#include "http/multipart.h"

enum { FORM_TEXT_MAX = 8192 };

/* Told by the status alone; 502 is how the clients are told that it does not run. */
int scalebox_health(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    if (scalebox_box(x, call->api, &box, err) == 0)
        return http_reply(x, 204, NULL, NULL, 0, err);
    if (err->code == ERROR_UNAVAILABLE || err->code == ERROR_SANDBOX_NOT_FOUND)
        return http_reply(x, 502, "text/plain", err->message, strlen(err->message), err);
    return -1;
}

int scalebox_filesystem(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    if (scalebox_box(x, call->api, &box, err) < 0)
        return -1;
    return connect_filesystem(x, &box, route_param(params, "method"), err);
}

int scalebox_process(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    if (scalebox_box(x, call->api, &box, err) < 0)
        return -1;
    return connect_process(x, &box, route_param(params, "method"), err);
}

/* --- files --- */

static const char *with_slash(struct arena *arena, const char *path)
{
    return arena_printf(arena, "/%s", path + strspn(path, "/"));
}

int scalebox_download(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    const char *path = with_slash(http_arena(x), route_param(params, "path"));
    if (scalebox_box_signed(x, call->api, path, "read", &box, err) < 0 ||
        connect_path(&box, http_arena(x), path, &path, err) < 0)
        return -1;
    const struct file_place place = {call->api->sandboxes, box.workspace, box.sandbox, path};
    return file_send_raw(x, &place, false, err);
}

/* The form's "path" may come behind its "file", whose filename says the same where the client is
 * Scalebox's own: what was written elsewhere by then is moved. */
static int move_to(struct http_exchange *x, const struct connect_box *box, const char *wanted,
                   const char **path, struct error *err)
{
    struct file_move request = {.path = *path, .user = box->user};
    struct file_entry entry;
    if (connect_path(box, http_arena(x), wanted, &request.destination, err) < 0)
        return -1;
    if (strcmp(request.destination, *path) == 0)
        return 0;
    if (sandbox_file_move(box->api->sandboxes, box->workspace, box->sandbox, &request,
                          http_arena(x), &entry, err) < 0)
        return -1;
    *path = request.destination;
    return 0;
}

/* 1: it was the file; 0: another field. */
static int take_part(struct http_exchange *x, const struct connect_box *box, struct multipart *form,
                     const struct form_part *part, const char **given, const char **path,
                     struct error *err)
{
    const struct slice none = {NULL, 0};
    bool is_path = part->name != NULL && strcmp(part->name, "path") == 0;
    if (part->name != NULL && strcmp(part->name, "file") == 0) {
        if (*path != NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "file: one of them in each request");
        return connect_receive_part(x, box, none, form, *given != NULL ? *given : part->filename,
                                    path, err);
    }
    if (!is_path)
        return 0;
    struct slice text;
    if (multipart_read_all(form, FORM_TEXT_MAX, &text, err) < 0)
        return -1;
    *given = text.data;
    return *path == NULL ? 0 : move_to(x, box, *given, path, err);
}

static int receive_form(struct http_exchange *x, const struct connect_box *box, const char *given,
                        const char **ret_path, struct error *err)
{
    struct multipart *form;
    struct form_part part;
    const char *path = NULL;
    int rc;
    if (multipart_open(x, &form, err) < 0)
        return -1;
    while ((rc = multipart_next(form, &part, err)) > 0)
        if (take_part(x, box, form, &part, &given, &path, err) < 0)
            return -1;
    if (rc == 0 && path == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "file: the form has none");
    *ret_path = path;
    return rc;
}

int scalebox_upload(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    const struct slice none = {NULL, 0};
    struct connect_box box;
    const char *given = NULL, *path;
    if (http_query(x, "path", &given, err) < 0)
        return -1;
    const char *shown = with_slash(http_arena(x), given == NULL ? "" : given);
    if (scalebox_box_signed(x, call->api, shown, "write", &box, err) < 0)
        return -1;
    if (http_content_is(x, "multipart/form-data")
            ? receive_form(x, &box, given, &path, err) < 0
            : connect_receive_raw(x, &box, none, given, &path, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    json_add_lossy(doc, root, "path", slice_of(path));
    json_add_lossy(doc, root, "name", slice_of(strrchr(path, '/') + 1));
    yyjson_mut_obj_add_str(doc, root, "type", "file");
    return api_reply_json(x, 200, doc, err);
}
