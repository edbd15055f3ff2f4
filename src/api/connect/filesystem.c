/* SPDX-License-Identifier: Apache-2.0 */

/* filesystem.Filesystem: what is answered at once. Watching is in watch.c. */

#include <string.h>

#include "api/call.h"
#include "api/connect/box.h"
#include "api/connect/connect.h"
#include "api/connect/message.h"
#include "api/connect/service.h"
#include "api/connect/watch.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/file_tree.h"
#include "sandbox/files.h"

/* The member of a message that names a path, made whole. */
static int path_of(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                   const char *name, const char **ret_path, struct error *err)
{
    const char *text = NULL;
    if (message_text(message, "", name, &text, err) < 0)
        return -1;
    return connect_path(box, http_arena(x), text, ret_path, err);
}

static int reply_entry(struct http_exchange *x, const struct connect_box *box, const char *path,
                       const struct file_entry *entry, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_val(doc, root, "entry",
                           connect_entry_json(arena, doc, path, entry, box->attributes));
    return connect_reply(x, doc, err);
}

/* A link is told with the type of what it leads to, as envd does: a program that asks whether there
 * is a file means what it could open. Where it leads nowhere it is a link. */
int connect_look(const struct connect_box *box, const char *path, struct arena *arena,
                 struct file_entry *ret_entry, struct error *err)
{
    struct sandboxes *s = box->api->sandboxes;
    struct file_ref request = {
        .path = path, .flags = FILE_NO_FOLLOW, .attributes = box->attributes};
    struct file_entry link, target;
    if (sandbox_file_look(s, box->workspace, box->sandbox, &request, arena, &link, err) < 0)
        return -1;
    request.flags = 0;
    if (link.type == FILE_SYMLINK &&
        sandbox_file_look(s, box->workspace, box->sandbox, &request, arena, &target, NULL) == 0) {
        target.target = link.target;
        link = target;
    }
    *ret_entry = link;
    return 0;
}

static int stat_method(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                       struct error *err)
{
    const char *path;
    struct file_entry entry;
    if (path_of(x, box, message, "path", &path, err) < 0 ||
        connect_look(box, path, http_arena(x), &entry, err) < 0)
        return -1;
    return reply_entry(x, box, path, &entry, err);
}

static int make_dir_method(struct http_exchange *x, const struct connect_box *box,
                           yyjson_val *message, struct error *err)
{
    struct file_mkdir request = {.mode = FILE_MODE_DEFAULT, .user = box->user, .flags = MKDIR_NEW};
    struct file_entry entry;
    if (path_of(x, box, message, "path", &request.path, err) < 0 ||
        sandbox_file_make_dir(box->api->sandboxes, box->workspace, box->sandbox, &request,
                              http_arena(x), &entry, err) < 0)
        return -1;
    return reply_entry(x, box, request.path, &entry, err);
}

static int move_method(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                       struct error *err)
{
    struct file_move request = {.user = box->user};
    struct file_entry entry;
    if (path_of(x, box, message, "source", &request.path, err) < 0 ||
        path_of(x, box, message, "destination", &request.destination, err) < 0 ||
        sandbox_file_move(box->api->sandboxes, box->workspace, box->sandbox, &request,
                          http_arena(x), &entry, err) < 0 ||
        connect_look(box, request.destination, http_arena(x), &entry, err) < 0)
        return -1;
    return reply_entry(x, box, request.destination, &entry, err);
}

/* What is not there is removed already. */
static int remove_method(struct http_exchange *x, const struct connect_box *box,
                         yyjson_val *message, struct error *err)
{
    const char *path;
    struct error why = {0};
    if (path_of(x, box, message, "path", &path, err) < 0)
        return -1;
    if (sandbox_file_remove(box->api->sandboxes, box->workspace, box->sandbox, path, true, &why) <
            0 &&
        why.code != ERROR_FILE_NOT_FOUND) {
        *err = why;
        return -1;
    }
    return connect_reply(x, NULL, err);
}

/* --- lists --- */

static const char *join(struct arena *arena, const char *dir, const char *name)
{
    return arena_printf(arena, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
}

static int reply_entries(struct http_exchange *x, const struct connect_box *box, const char *dir,
                         const struct file_entry *items, size_t count, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *entries = yyjson_mut_obj_add_arr(doc, root, "entries");
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(entries,
                              connect_entry_json(arena, doc, join(arena, dir, items[i].path),
                                                 &items[i], box->attributes));
    return connect_reply(x, doc, err);
}

static int list_dir_method(struct http_exchange *x, const struct connect_box *box,
                           yyjson_val *message, struct error *err)
{
    struct sandboxes *s = box->api->sandboxes;
    struct file_ref request = {.attributes = box->attributes};
    struct file_entry dir, *items;
    struct file_tree tree;
    uint64_t depth = 1;
    size_t count;
    if (path_of(x, box, message, "path", &request.path, err) < 0 ||
        message_uint(message, "", "depth", 0, UINT32_MAX, &depth, err) < 0)
        return -1;
    if (depth <= 1) {
        if (sandbox_file_list_of(s, box->workspace, box->sandbox, &request, http_arena(x), &dir,
                                 &items, &count, err) < 0)
            return -1;
        return reply_entries(x, box, request.path, items, count, err);
    }
    const struct file_tree_get get = {.path = request.path,
                                      .depth = depth < TREE_DEPTH_MAX ? depth : TREE_DEPTH_MAX,
                                      .entries_max = TREE_ENTRIES_MAX,
                                      .attributes = box->attributes};
    if (sandbox_tree_get(s, box->workspace, box->sandbox, &get, http_arena(x), &tree, err) < 0)
        return -1;
    if (tree.cut && tree.count >= TREE_ENTRIES_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE,
                         "%.200s: more than %d entries: ask for fewer levels (depth)", request.path,
                         TREE_ENTRIES_MAX);
    return reply_entries(x, box, request.path, tree.entries, tree.count, err);
}

/* --- all of them --- */

static const struct connect_method methods[] = {
    {"Stat", CONNECT_UNARY, stat_method},
    {"MakeDir", CONNECT_UNARY, make_dir_method},
    {"Move", CONNECT_UNARY, move_method},
    {"ListDir", CONNECT_UNARY, list_dir_method},
    {"Remove", CONNECT_UNARY, remove_method},
    {"WatchDir", CONNECT_STREAM, watch_dir_method},
    {"CreateWatcher", CONNECT_UNARY, create_watcher_method},
    {"GetWatcherEvents", CONNECT_UNARY, get_watcher_events_method},
    {"RemoveWatcher", CONNECT_UNARY, remove_watcher_method},
};

int connect_filesystem(struct http_exchange *x, const struct connect_box *box, const char *method,
                       struct error *err)
{
    return connect_serve(x, box, "filesystem.Filesystem", methods, ARRAY_LEN(methods), method, err);
}
