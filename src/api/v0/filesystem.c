/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /filesystem/{path}: files and directories of a sandbox. One path serves JSON (the seed's shape,
 * up to FILE_JSON_MAX of content) and raw bytes (filesystem_raw.c); the media types say which.
 */

#include "api/v0/filesystem.h"

#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/json_stream.h"
#include "api/paths.h"
#include "api/v0/file_json.h"
#include "api/v0/file_stream.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

int file_place_find(struct http_exchange *x, const struct route_params *params,
                    const struct api_call *call, struct file_place *ret_place, struct error *err)
{
    struct file_place place = {
        .sandboxes = call->api->sandboxes,
        .workspace = call->workspace,
        .sandbox = route_param(params, "name"),
    };
    if (api_path(x, params, "path", &place.path, err) < 0)
        return -1;
    *ret_place = place;
    return 0;
}

int file_reply_message(struct http_exchange *x, const struct file_place *place, const char *message,
                       struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    api_add_text(http_arena(x), doc, root, "path", "pathBase64", slice_of(place->path));
    yyjson_mut_obj_add_str(doc, root, "message", message);
    return api_reply_json(x, 200, doc, err);
}

/* --- GET --- */

static int read_too_large(struct error *err)
{
    return error_set(err, ERROR_PAYLOAD_TOO_LARGE,
                     "the file is larger than the %d bytes that fit into JSON; ask for it with "
                     "Accept: application/octet-stream",
                     FILE_JSON_MAX);
}

static int read_content(struct file_transfer *t, struct buf *content, struct error *err)
{
    size_t len;
    for (;;) {
        if (file_read_next(t, &len, err) < 0)
            return -1;
        if (len == 0)
            return 0;
        char *to = buf_reserve(content, len);
        if (to == NULL)
            return content->refused ? buf_check(content, "the file", err) : read_too_large(err);
        if (file_transfer_take(t, to, len, err) < 0)
            return -1;
        buf_commit(content, len);
    }
}

int file_read_for_json(const struct file_place *place, struct arena *arena,
                       struct file_entry *ret_entry, struct buf *content, struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    /* One byte more than is allowed tells a file that is too large from one that just fits. */
    if (file_read_begin(place->sandboxes, place->workspace, place->sandbox, place->path, 0,
                        FILE_JSON_MAX + 1, arena, ret_entry, &t, err) < 0)
        return -1;
    if (ret_entry->size > FILE_JSON_MAX)
        return read_too_large(err);
    ret_entry->path = place->path;
    return read_content(t, content, err);
}

static int wants_base64(struct http_exchange *x, bool *ret_base64, struct error *err)
{
    const char *encoding = NULL;
    if (http_query(x, "encoding", &encoding, err) < 0)
        return -1;
    bool base64 = encoding != NULL && strcmp(encoding, "base64") == 0;
    if (encoding != NULL && !base64 && strcmp(encoding, "utf-8") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "encoding: \"%.40s\" is neither \"base64\" nor \"utf-8\"", encoding);
    *ret_base64 = base64;
    return 0;
}

static int reply_file(struct http_exchange *x, const struct file_entry *entry, struct slice content,
                      bool as_base64, struct error *err)
{
    _cleanup_json_stream_ struct json_stream out = {0};
    bool base64 = as_base64 || !json_is_utf8(content);
    yyjson_mut_val *root;
    json_stream_begin(&out, x);
    struct arena *arena = json_stream_arena(&out);
    yyjson_mut_doc *doc = json_stream_item(&out, &root);
    api_add_text(arena, doc, root, "path", "pathBase64", slice_of(entry->path));
    json_stream_members(&out, doc);
    if (json_stream_text(&out, "content", content, base64, err) < 0)
        return -1;
    doc = json_stream_item(&out, &root);
    if (base64)
        yyjson_mut_obj_add_str(doc, root, "encoding", "base64");
    /* What was read, and not what stat said before: /proc says 0, and files grow. */
    file_attributes_json(arena, doc, root, entry, content.len);
    json_stream_members(&out, doc);
    return json_stream_end(&out, err);
}

static int get_file(struct http_exchange *x, const struct file_place *place, bool as_base64,
                    struct error *err)
{
    _cleanup_buf_ struct buf content = BUF_INIT(FILE_JSON_MAX);
    struct file_entry entry;

    content.account = http_memory(x);
    if (file_read_for_json(place, http_arena(x), &entry, &content, err) < 0)
        return -1;
    return reply_file(x, &entry, (struct slice){content.data, content.len}, as_base64, err);
}

int v0_file_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    struct file_place place;
    bool download = false, as_base64 = false;
    uint64_t depth = 1;

    if (file_place_find(x, params, ctx, &place, err) < 0 ||
        api_query_bool(x, "download", false, &download, err) < 0 ||
        api_query_uint(x, "depth", 1, TREE_DEPTH_MAX, 1, &depth, err) < 0 ||
        wants_base64(x, &as_base64, err) < 0)
        return -1;
    if (download || http_accepts(x, "application/octet-stream"))
        return file_send_raw(x, &place, download, err);
    /* Most reads are of files, so that is tried first; the agent says when it is none. */
    struct error why = {0};
    if (get_file(x, &place, as_base64, &why) == 0)
        return 0;
    if (why.code == ERROR_IS_A_DIRECTORY && !http_started(x))
        return depth > 1 ? file_reply_tree(x, &place, (unsigned)depth, err)
                         : file_stream_directory(x, &place, &file_shape, err);
    *err = why;
    return -1;
}

/* --- PUT --- */

struct put_fields {
    struct slice content;
    bool is_directory;
    const char *permissions;
    const char *encoding;
};

static const struct json_field put_fields[] = {
    {"content", JSON_BYTES, .offset = offsetof(struct put_fields, content)},
    {"isDirectory", JSON_BOOL, .offset = offsetof(struct put_fields, is_directory)},
    {"permissions", JSON_STRING, .offset = offsetof(struct put_fields, permissions)},
    {"encoding", JSON_STRING, .offset = offsetof(struct put_fields, encoding)},
};

static int write_too_large(struct error *err)
{
    return error_set(err, ERROR_PAYLOAD_TOO_LARGE,
                     "content is larger than the %d bytes that fit into JSON; send it as "
                     "Content-Type: application/octet-stream",
                     FILE_JSON_MAX);
}

/* Replaces the content by the bytes it stands for. */
static int decode_content(struct arena *arena, struct put_fields *put, struct error *err)
{
    const char *encoding = put->encoding != NULL ? put->encoding : "utf-8";
    if (strcmp(encoding, "base64") == 0) {
        if (json_base64_decode(arena, put->content, &put->content, err) < 0)
            return error_prefix(err, "content");
    } else if (strcmp(encoding, "utf-8") != 0) {
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "encoding: \"%.40s\" is neither \"base64\" nor \"utf-8\"", encoding);
    }
    return put->content.len > FILE_JSON_MAX ? write_too_large(err) : 0;
}

int file_put_read(struct arena *arena, yyjson_val *object, struct file_put *ret_put,
                  struct error *err)
{
    struct put_fields put = {0};
    uint64_t mode = FILE_MODE_DEFAULT;
    if (object != NULL &&
        json_read(arena, object, "", put_fields, ARRAY_LEN(put_fields), &put, err) < 0)
        return -1;
    bool has_content = put.content.data != NULL;
    if (put.is_directory && has_content)
        return error_set(err, ERROR_INVALID_ARGUMENT, "content: a directory has none");
    if (!put.is_directory && !has_content)
        return error_set(err, ERROR_INVALID_ARGUMENT, "content is required (or isDirectory: true)");
    if (has_content && decode_content(arena, &put, err) < 0)
        return -1;
    if (put.permissions != NULL && permissions_parse(put.permissions, &mode, err) < 0)
        return -1;
    *ret_put = (struct file_put){put.content, put.is_directory, mode};
    return 0;
}

static int read_put(struct http_exchange *x, struct file_put *ret_put, struct error *err)
{
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0)
        return err->code == ERROR_PAYLOAD_TOO_LARGE ? write_too_large(err) : -1;
    return file_put_read(http_arena(x), body, ret_put, err);
}

static int put_content(struct http_exchange *x, const struct file_place *place,
                       const struct file_put *put, struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *t = NULL;
    struct slice content = put->content;
    struct file_entry entry;

    if (file_write_begin(place->sandboxes, place->workspace, place->sandbox, place->path, put->mode,
                         &t, err) < 0)
        return -1;
    for (size_t len; content.len > 0; content.data += len, content.len -= len) {
        len = content.len < WIRE_DATA_CHUNK ? content.len : WIRE_DATA_CHUNK;
        if (file_write_chunk(t, len, err) < 0 || file_transfer_put(t, content.data, len, err) < 0)
            return -1;
    }
    return file_write_commit(t, http_arena(x), &entry, err);
}

static int put_directory(struct http_exchange *x, const struct file_place *place, uint64_t mode,
                         struct error *err)
{
    struct file_entry entry;
    return sandbox_file_mkdir(place->sandboxes, place->workspace, place->sandbox, place->path, mode,
                              http_arena(x), &entry, err);
}

int file_put_make(struct http_exchange *x, const struct file_place *place,
                  const struct file_put *put, struct error *err)
{
    if (put->is_directory)
        return put_directory(x, place, put->mode, err) < 0
                   ? -1
                   : file_reply_message(x, place, "Directory created successfully", err);
    return put_content(x, place, put, err) < 0
               ? -1
               : file_reply_message(x, place, "File created/updated successfully", err);
}

int v0_file_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    struct file_place place;
    struct file_put put;

    if (file_place_find(x, params, ctx, &place, err) < 0)
        return -1;
    if (http_content_is(x, "application/octet-stream"))
        return file_receive_raw(x, &place, err);
    if (read_put(x, &put, err) < 0)
        return -1;
    return file_put_make(x, &place, &put, err);
}

/* --- DELETE --- */

int file_wants_recursive(struct http_exchange *x, bool fallback, bool *ret_recursive,
                         struct error *err)
{
    static const struct json_field fields[] = {{"recursive", JSON_BOOL}};
    bool recursive = fallback;
    yyjson_val *body;
    if (api_query_bool(x, "recursive", fallback, &recursive, err) < 0 ||
        api_json_body(x, &body, err) < 0)
        return -1;
    if (body != NULL &&
        json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &recursive, err) < 0)
        return -1;
    *ret_recursive = recursive;
    return 0;
}

int v0_file_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    struct file_place place;
    struct file_entry entry;
    bool recursive = false;

    if (file_place_find(x, params, ctx, &place, err) < 0 ||
        file_wants_recursive(x, false, &recursive, err) < 0)
        return -1;
    if (strcmp(place.path, "/") == 0)
        return error_set(err, ERROR_INVALID_PATH, "the root directory cannot be deleted");
    if (sandbox_file_remove_entry(place.sandboxes, place.workspace, place.sandbox, place.path,
                                  recursive, http_arena(x), &entry, err) < 0)
        return -1;
    return file_reply_message(x, &place,
                              entry.type == FILE_DIRECTORY ? "Directory deleted successfully"
                                                           : "File deleted successfully",
                              err);
}
