/* SPDX-License-Identifier: Apache-2.0 */

/* /filesystem-multipart: a large file in parts, each a body of raw bytes. */

#include "api/call.h"
#include "api/handlers.h"
#include "api/v0/file_json.h"
#include "api/v0/filesystem.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/uploads.h"

static void add_upload(struct http_exchange *x, yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct upload_about *upload)
{
    json_add_lossy(doc, object, "uploadId", slice_of(upload->id));
    api_add_text(http_arena(x), doc, object, "path", "pathBase64", slice_of(upload->path));
    api_add_http_time(doc, object, "initiatedAt", upload->started_ms);
}

static void add_part(yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const struct upload_part_about *part)
{
    yyjson_mut_obj_add_uint(doc, object, "partNumber", part->number);
    json_add_lossy(doc, object, "etag", slice_of(part->etag));
    yyjson_mut_obj_add_uint(doc, object, "size", part->size);
}

int upload_start(struct http_exchange *x, const struct file_place *place, struct error *err)
{
    static const struct json_field fields[] = {{"permissions", JSON_STRING}};
    const char *permissions = NULL;
    uint64_t mode = FILE_MODE_DEFAULT;
    struct upload_about upload;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body != NULL &&
        json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &permissions, err) < 0)
        return -1;
    if (permissions != NULL && permissions_parse(permissions, &mode, err) < 0)
        return -1;
    if (sandbox_upload_start(place->sandboxes, place->workspace, place->sandbox, place->path, mode,
                             http_arena(x), &upload, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_upload(x, doc, root, &upload);
    return api_reply_json(x, 200, doc, err);
}

int v0_upload_start(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    struct file_place place;
    if (file_place_find(x, params, ctx, &place, err) < 0)
        return -1;
    return upload_start(x, &place, err);
}

int upload_part_open(struct http_exchange *x, const struct route_params *params,
                     const struct api_call *call, struct file_transfer **ret_transfer,
                     struct error *err)
{
    uint64_t number;
    if (api_query_uint(x, "partNumber", 1, UPLOAD_PARTS_MAX, 0, &number, err) < 0)
        return -1;
    if (number == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "partNumber is required: 1 to %d",
                         UPLOAD_PARTS_MAX);
    return upload_part_begin(call->api->sandboxes, call->workspace, route_param(params, "name"),
                             route_param(params, "id"), number, ret_transfer, err);
}

int upload_part_close(struct http_exchange *x, struct file_transfer *t, struct error *err)
{
    struct upload_part_about part;
    if (upload_part_commit(t, http_arena(x), &part, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_part(doc, root, &part);
    return api_reply_json(x, 200, doc, err);
}

int v0_upload_part(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    if (upload_part_open(x, params, ctx, &t, err) < 0 || file_receive_body(x, t, err) < 0)
        return -1;
    return upload_part_close(x, t, err);
}

/* [{"partNumber": 1, "etag": "…"}, …] as a list of strings for the agent. */
static int read_parts(struct http_exchange *x, yyjson_val *array, struct slice *ret_list,
                      struct error *err)
{
    struct {
        int64_t number;
        const char *etag;
    } part;
    const struct json_field fields[] = {
        {"partNumber", JSON_INT, .required = true, .min = 1, .max = UPLOAD_PARTS_MAX},
        {"etag", JSON_STRING, .offset = (size_t)((char *)&part.etag - (char *)&part)},
        {"size", JSON_IGNORED},
    };
    _cleanup_buf_ struct buf list = BUF_INIT(64 * UPLOAD_PARTS_MAX);
    size_t i, count;
    yyjson_val *value;
    yyjson_arr_foreach(array, i, count, value)
    {
        part.number = 0;
        part.etag = NULL;
        if (!yyjson_is_obj(value))
            return error_set(err, ERROR_INVALID_ARGUMENT, "parts: each must be an object");
        if (json_read(http_arena(x), value, "parts", fields, ARRAY_LEN(fields), &part, err) < 0)
            return -1;
        if (part.etag != NULL && part.etag[0] != '\0')
            buf_addf(&list, "%lld:%.40s%c", (long long)part.number, part.etag, '\0');
        else
            buf_addf(&list, "%lld%c", (long long)part.number, '\0');
    }
    if (buf_check(&list, "parts", err) < 0)
        return -1;
    *ret_list = (struct slice){arena_dup(http_arena(x), list.data, list.len), list.len};
    return 0;
}

int v0_upload_complete(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    static const struct json_field fields[] = {{"parts", JSON_ARRAY}};
    const struct api_call *call = ctx;
    yyjson_val *body, *parts = NULL;
    struct slice list = {NULL, 0};
    struct file_entry entry;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body != NULL &&
        json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &parts, err) < 0)
        return -1;
    if (parts != NULL && read_parts(x, parts, &list, err) < 0)
        return -1;
    if (sandbox_upload_complete(call->api->sandboxes, call->workspace, route_param(params, "name"),
                                route_param(params, "id"), list, http_arena(x), &entry, err) < 0)
        return -1;
    struct file_place place = {.path = entry.path};
    return file_reply_message(x, &place, "Multipart upload completed successfully", err);
}

int v0_upload_abort(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    const char *id = route_param(params, "id");
    if (sandbox_upload_abort(call->api->sandboxes, call->workspace, route_param(params, "name"), id,
                             err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "uploadId", id);
    yyjson_mut_obj_add_str(doc, root, "message", "Multipart upload aborted successfully");
    return api_reply_json(x, 200, doc, err);
}

int v0_upload_parts(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct upload_about upload;
    struct upload_part_about *parts;
    size_t count;
    if (sandbox_upload_parts(call->api->sandboxes, call->workspace, route_param(params, "name"),
                             route_param(params, "id"), http_arena(x), &upload, &parts, &count,
                             err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_upload(x, doc, root, &upload);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "parts");
    for (size_t i = 0; i < count; i++)
        add_part(doc, yyjson_mut_arr_add_obj(doc, list), &parts[i]);
    return api_reply_json(x, 200, doc, err);
}

int v0_upload_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct upload_about *uploads;
    size_t count;
    if (sandbox_upload_list(call->api->sandboxes, call->workspace, route_param(params, "name"),
                            http_arena(x), &uploads, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "uploads");
    for (size_t i = 0; i < count; i++)
        add_upload(x, doc, yyjson_mut_arr_add_obj(doc, list), &uploads[i]);
    return api_reply_json(x, 200, doc, err);
}
