/* SPDX-License-Identifier: Apache-2.0 */

/* /filesystem/{path}: files and directories, as JSON and as bytes. */

#include <string.h>

#include "api/blaxel/box.h"
#include "api/blaxel/file_json.h"
#include "api/blaxel/filesystem_form.h"
#include "api/blaxel/handlers.h"
#include "api/v0/file_stream.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

/* --- GET --- */

static int get_file(struct http_exchange *x, const struct file_place *place, struct error *err)
{
    _cleanup_buf_ struct buf content = BUF_INIT(FILE_JSON_MAX);
    struct file_entry entry;

    content.account = http_memory(x);
    if (file_read_for_json(place, http_arena(x), &entry, &content, err) < 0)
        return -1;
    return box_file_reply(x, &entry, (struct slice){content.data, content.len}, err);
}

static int get_directory(struct http_exchange *x, const struct file_place *place, struct error *err)
{
    return file_stream_directory(x, place, &box_file_shape, err);
}

int box_file_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    struct file_place place;
    bool download = false;

    if (box_place(x, params, ctx, BOX_PATH_ANY, &place, err) < 0 ||
        api_query_bool(x, "download", false, &download, err) < 0)
        return -1;
    if (download || http_accepts(x, "application/octet-stream"))
        return file_send_raw(x, &place, download, err);
    struct error why = {0};
    if (get_file(x, &place, &why) == 0)
        return 0;
    if (why.code == ERROR_IS_A_DIRECTORY && !http_started(x))
        return get_directory(x, &place, err);
    *err = why;
    return -1;
}

/* --- PUT --- */

struct put_request {
    struct slice content;
    bool is_directory;
    const char *permissions;
};

static const struct json_field put_fields[] = {
    {"content", JSON_BYTES, .offset = offsetof(struct put_request, content)},
    {"isDirectory", JSON_BOOL, .offset = offsetof(struct put_request, is_directory)},
    {"permissions", JSON_STRING, .offset = offsetof(struct put_request, permissions)},
    {"path", JSON_IGNORED},
};

int box_file_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    struct file_place place;
    struct put_request request = {0};
    uint64_t mode = FILE_MODE_DEFAULT;
    yyjson_val *body;

    if (box_place(x, params, ctx, BOX_PATH_ANY, &place, err) < 0)
        return -1;
    if (http_content_is(x, "application/octet-stream"))
        return file_receive_raw(x, &place, err);
    if (http_content_is(x, "multipart/form-data"))
        return box_file_receive_form(x, &place, err);
    if (api_json_body(x, &body, err) < 0 ||
        (body != NULL && json_read(http_arena(x), body, "", put_fields, ARRAY_LEN(put_fields),
                                   &request, err) < 0) ||
        (request.permissions != NULL && permissions_parse(request.permissions, &mode, err) < 0))
        return -1;
    const struct file_put put = {request.content, request.is_directory, mode};
    return file_put_make(x, &place, &put, err);
}

/* --- DELETE --- */

static int remove_file(struct http_exchange *x, const struct route_params *params,
                       const struct api_call *call, enum box_path_kind kind, struct error *err)
{
    struct file_place place;
    bool recursive = false;

    if (box_place(x, params, call, kind, &place, err) < 0 ||
        api_query_bool(x, "recursive", false, &recursive, err) < 0)
        return -1;
    if (strcmp(place.path, "/") == 0)
        return error_set(err, ERROR_INVALID_PATH, "the root directory cannot be deleted");
    if (sandbox_file_remove(place.sandboxes, place.workspace, place.sandbox, place.path, recursive,
                            err) < 0)
        return -1;
    return file_reply_message(x, &place, "File deleted successfully", err);
}

int box_file_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    return remove_file(x, params, ctx, BOX_PATH_ANY, err);
}

int box_tree_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    return remove_file(x, params, ctx, BOX_PATH_ABSOLUTE, err);
}
