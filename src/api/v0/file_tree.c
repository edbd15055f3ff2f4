/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /filesystem/tree/{rootPath}: whole trees in one request. A put takes the seed's two forms, {path,
 * files: {relative path: content}} and the bare {absolute path: content}; a content is text, or an
 * object as PUT /filesystem/{path} takes it.
 */

#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/paths.h"
#include "api/v0/file_stream.h"
#include "api/v0/filesystem.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/file_tree.h"

/* --- GET --- */

static int reply_tree(struct http_exchange *x, const struct file_place *place,
                      const struct file_tree *tree, const char *message, struct error *err)
{
    return file_stream_tree(x, place->path, tree, &file_shape, message, err);
}

int file_tree_of(struct http_exchange *x, const struct file_place *place, unsigned depth,
                 struct file_tree *ret_tree, struct error *err)
{
    const struct file_tree_get get = {
        .path = place->path, .depth = depth, .entries_max = TREE_ENTRIES_MAX};
    return sandbox_tree_get(place->sandboxes, place->workspace, place->sandbox, &get, http_arena(x),
                            ret_tree, err);
}

int file_reply_tree(struct http_exchange *x, const struct file_place *place, unsigned depth,
                    struct error *err)
{
    struct file_tree tree;
    if (file_tree_of(x, place, depth, &tree, err) < 0)
        return -1;
    return reply_tree(x, place, &tree, NULL, err);
}

int v0_tree_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    struct file_place place;
    uint64_t depth;
    if (file_place_find(x, params, ctx, &place, err) < 0 ||
        api_query_uint(x, "depth", 1, TREE_DEPTH_MAX, TREE_DEPTH_MAX, &depth, err) < 0)
        return -1;
    return file_reply_tree(x, &place, (unsigned)depth, err);
}

/* --- PUT --- */

struct put_body {
    const char *path;
    yyjson_val *files;
};

static const struct json_field put_fields[] = {
    {"path", JSON_STRING, .offset = offsetof(struct put_body, path)},
    {"files", JSON_OBJECT, .required = true, .offset = offsetof(struct put_body, files)},
};

/* One value of the dictionary: text, or an object as a single file's body. */
static int read_value(struct arena *arena, yyjson_val *value, struct file_tree_put *item,
                      struct error *err)
{
    struct file_put put = {0};
    if (yyjson_is_str(value)) {
        item->content = (struct slice){yyjson_get_str(value), yyjson_get_len(value)};
        return 0;
    }
    if (!yyjson_is_obj(value))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "must be text, or an object with content, encoding and permissions");
    if (file_put_read(arena, value, &put, err) < 0)
        return -1;
    item->content = put.content;
    item->mode = put.mode;
    item->is_directory = put.is_directory;
    return 0;
}

int tree_files_from_json(struct arena *arena, yyjson_val *files, const char *root,
                         struct file_tree_put **ret_items, size_t *ret_count, struct error *err)
{
    size_t i, count, total = yyjson_obj_size(files);
    yyjson_val *key, *value;
    if (total > TREE_FILES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%zu files in one tree; %d are allowed", total,
                         TREE_FILES_MAX);
    struct file_tree_put *items = arena_alloc(arena, (total + 1) * sizeof(*items));
    yyjson_obj_foreach(files, i, count, key, value)
    {
        const char *path = yyjson_get_str(key);
        items[i].mode = FILE_MODE_DEFAULT;
        if (strlen(path) != yyjson_get_len(key))
            return error_set(err, ERROR_INVALID_PATH, "files: a path holds a NUL");
        if (api_path_below(arena, root != NULL ? root : "/", path, &items[i].path, err) < 0 ||
            read_value(arena, value, &items[i], err) < 0)
            return error_prefix(err, "files: \"%.100s\"", path);
        if (root != NULL && !items[i].is_directory && strcmp(items[i].path, root) == 0)
            return error_set(err, ERROR_INVALID_PATH, "files: \"%.100s\" names the root itself",
                             path);
    }
    *ret_items = items;
    *ret_count = total;
    return 0;
}

/* Whether this is the bare form: its keys are absolute paths. */
static bool is_bare(yyjson_val *body)
{
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(body, i, count, key, value)
    {
        if (yyjson_get_str(key)[0] == '/')
            return true;
    }
    return false;
}

/* The directory that all of the paths are in. */
static const char *common_directory(struct arena *arena, const struct file_tree_put *items,
                                    size_t count)
{
    char *dir = arena_strdup(arena, items[0].path);
    size_t len = (size_t)(strrchr(dir, '/') - dir);
    for (size_t i = 1; i < count; i++)
        while (strncmp(dir, items[i].path, len) != 0 || items[i].path[len] != '/')
            for (len--; dir[len] != '/'; len--)
                ;
    dir[len] = '\0';
    return len == 0 ? "/" : dir;
}

static int read_bare(struct arena *arena, yyjson_val *body, struct file_place *place, bool rooted,
                     struct file_tree_put **ret_items, size_t *ret_count, struct error *err)
{
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(body, i, count, key, value)
    {
        if (yyjson_get_str(key)[0] != '/')
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "\"%.100s\" stands among absolute paths and is none",
                             yyjson_get_str(key));
    }
    if (tree_files_from_json(arena, body, rooted ? place->path : NULL, ret_items, ret_count, err) <
        0)
        return -1;
    if (!rooted)
        place->path = common_directory(arena, *ret_items, *ret_count);
    return 0;
}

int tree_put_read(struct http_exchange *x, struct file_place *place,
                  struct file_tree_put **ret_items, size_t *ret_count, struct error *err)
{
    struct arena *arena = http_arena(x);
    struct put_body put = {0};
    yyjson_val *body;
    bool rooted = strcmp(place->path, "/") != 0;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "files is required");
    if (is_bare(body))
        return read_bare(arena, body, place, rooted, ret_items, ret_count, err);
    if (json_read(arena, body, "", put_fields, ARRAY_LEN(put_fields), &put, err) < 0)
        return -1;
    if (put.path != NULL) {
        const char *path;
        if (api_path_below(arena, "/", put.path, &path, err) < 0)
            return error_prefix(err, "path");
        if (rooted && strcmp(path, place->path) != 0)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "path: %.150s, and the request is about %.150s", path, place->path);
        place->path = path;
    }
    return tree_files_from_json(arena, put.files, place->path, ret_items, ret_count, err);
}

int v0_tree_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    struct file_place place;
    struct file_tree_put *items;
    struct file_tree tree;
    size_t count;
    uint64_t depth;
    if (file_place_find(x, params, ctx, &place, err) < 0 ||
        api_query_uint(x, "depth", 1, TREE_DEPTH_MAX, 1, &depth, err) < 0 ||
        tree_put_read(x, &place, &items, &count, err) < 0 ||
        sandbox_tree_put(place.sandboxes, place.workspace, place.sandbox, place.path, items, count,
                         (unsigned)depth, http_arena(x), &tree, err) < 0)
        return -1;
    return reply_tree(x, &place, &tree, "Tree created/updated successfully", err);
}

/* --- DELETE --- */

int v0_tree_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    struct file_place place;
    struct file_entry entry;
    bool recursive;
    if (file_place_find(x, params, ctx, &place, err) < 0 ||
        file_wants_recursive(x, true, &recursive, err) < 0)
        return -1;
    if (strcmp(place.path, "/") == 0)
        return error_set(err, ERROR_INVALID_PATH, "the root directory cannot be deleted");
    if (sandbox_file_stat(place.sandboxes, place.workspace, place.sandbox, place.path,
                          http_arena(x), &entry, err) < 0)
        return -1;
    if (entry.type != FILE_DIRECTORY)
        return error_set(err, ERROR_NOT_A_DIRECTORY, "%.200s: is not a directory", place.path);
    if (sandbox_file_remove(place.sandboxes, place.workspace, place.sandbox, place.path, recursive,
                            err) < 0)
        return -1;
    return file_reply_message(x, &place, "Directory deleted successfully", err);
}
