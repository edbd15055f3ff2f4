/* SPDX-License-Identifier: Apache-2.0 */

/* Lists and trees of files as JSON. */

#include "api/v0/file_stream.h"

#include <string.h>

#include "api/call.h"
#include "api/json_stream.h"
#include "sandbox/file_listing.h"

static void begin(struct json_stream *out, struct http_exchange *x, const char *path,
                  const struct file_shape *shape)
{
    yyjson_mut_val *root;
    json_stream_begin(out, x);
    yyjson_mut_doc *doc = json_stream_item(out, &root);
    shape->path(json_stream_arena(out), doc, root, path);
    json_stream_members(out, doc);
}

static yyjson_mut_doc *item(struct json_stream *out, const struct file_shape *shape,
                            const char *directory, const struct file_entry *entry)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *doc = json_stream_item(out, &object);
    shape->entry(json_stream_arena(out), doc, object, directory, entry);
    return doc;
}

/* --- directories --- */

static int write_entries(struct json_stream *out, struct file_listing *listing, const char *path,
                         const struct file_shape *shape, struct error *err)
{
    struct file_entry entry;
    bool in_directories = false;
    int got;
    json_stream_array(out, "files");
    while ((got = file_listing_next(listing, &entry, err)) > 0) {
        if (entry.type == FILE_DIRECTORY && !in_directories) {
            json_stream_array_end(out);
            json_stream_array(out, "subdirectories");
            in_directories = true;
        }
        if (json_stream_add(out, item(out, shape, path, &entry), err) < 0)
            return -1;
    }
    json_stream_array_end(out);
    if (!in_directories) {
        json_stream_array(out, "subdirectories");
        json_stream_array_end(out);
    }
    return got;
}

int file_stream_directory(struct http_exchange *x, const struct file_place *place,
                          const struct file_shape *shape, struct error *err)
{
    _cleanup_file_listing_ struct file_listing listing = {0};
    _cleanup_json_stream_ struct json_stream out = {0};
    struct file_entry directory;
    if (file_listing_begin(place->sandboxes, place->workspace, place->sandbox, place->path,
                           http_arena(x), &listing, &directory, err) < 0)
        return -1;
    begin(&out, x, place->path, shape);
    if (write_entries(&out, &listing, place->path, shape, err) < 0)
        return -1;
    return json_stream_end(&out, err);
}

/* --- trees --- */

struct tree_writer {
    struct json_stream *out;
    const char *path;
    const struct file_tree *tree;
    const struct file_shape *shape;
};

/* Whether the path is in the directory ("" is the root), not below another one in it. */
static bool is_in(const char *directory, const char *path)
{
    size_t len = strlen(directory);
    if (len == 0)
        return strchr(path, '/') == NULL;
    return strncmp(directory, path, len) == 0 && path[len] == '/' &&
           strchr(path + len + 1, '/') == NULL;
}

/* Whether every entry is in the root, or in a directory before it that was looked into. */
static int check_tree(const struct file_tree *tree, struct error *err)
{
    const char *open[TREE_DEPTH_MAX + 1] = {""};
    size_t depth = 1;
    for (size_t i = 0; i < tree->count; i++) {
        const struct file_entry *entry = &tree->entries[i];
        while (depth > 0 && !is_in(open[depth - 1], entry->path))
            depth--;
        if (depth == 0)
            return error_set(err, ERROR_UNAVAILABLE,
                             "the sandbox sent a file without the directory that it is in");
        if (entry->type == FILE_DIRECTORY && depth < tree->depth && depth < TREE_DEPTH_MAX + 1)
            open[depth++] = entry->path;
    }
    return 0;
}

/* Where the entries end that are below the one at `at`, which come right behind it. */
static size_t end_below(const struct file_tree *tree, size_t at, size_t to)
{
    const char *directory = tree->entries[at].path;
    size_t len = strlen(directory);
    for (at++; at < to; at++)
        if (strncmp(tree->entries[at].path, directory, len) != 0 ||
            tree->entries[at].path[len] != '/')
            break;
    return at;
}

static int write_files(const struct tree_writer *w, size_t from, size_t to, const char *directory,
                       struct error *err)
{
    json_stream_array(w->out, "files");
    for (size_t i = from; i < to; i++) {
        const struct file_entry *entry = &w->tree->entries[i];
        if (entry->type != FILE_DIRECTORY && is_in(directory, entry->path) &&
            json_stream_add(w->out, item(w->out, w->shape, w->path, entry), err) < 0)
            return -1;
    }
    json_stream_array_end(w->out);
    return 0;
}

/* What was not looked into has no lists, so that it is not taken for empty. */
static int write_lists(const struct tree_writer *w, size_t from, size_t to, const char *directory,
                       size_t level, struct error *err)
{
    bool looked_into = level < w->tree->depth && level < TREE_DEPTH_MAX + 1;
    if (write_files(w, from, to, directory, err) < 0)
        return -1;
    json_stream_array(w->out, "subdirectories");
    for (size_t i = from, next; i < to; i = next) {
        const struct file_entry *entry = &w->tree->entries[i];
        next = i + 1;
        if (entry->type != FILE_DIRECTORY)
            continue;
        next = end_below(w->tree, i, to);
        yyjson_mut_doc *doc = item(w->out, w->shape, w->path, entry);
        if (!looked_into) {
            if (json_stream_add(w->out, doc, err) < 0)
                return -1;
            continue;
        }
        json_stream_open(w->out, doc);
        if (write_lists(w, i + 1, next, entry->path, level + 1, err) < 0 ||
            json_stream_close(w->out, err) < 0)
            return -1;
    }
    json_stream_array_end(w->out);
    return 0;
}

int file_stream_tree(struct http_exchange *x, const char *path, const struct file_tree *tree,
                     const struct file_shape *shape, const char *message, struct error *err)
{
    _cleanup_json_stream_ struct json_stream out = {0};
    const struct tree_writer writer = {&out, path, tree, shape};
    yyjson_mut_val *root;
    if (check_tree(tree, err) < 0)
        return -1;
    begin(&out, x, path, shape);
    if (write_lists(&writer, 0, tree->count, "", 1, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_stream_item(&out, &root);
    if (tree->cut)
        yyjson_mut_obj_add_bool(doc, root, "truncated", true);
    if (message != NULL)
        yyjson_mut_obj_add_str(doc, root, "message", message);
    json_stream_members(&out, doc);
    return json_stream_end(&out, err);
}
