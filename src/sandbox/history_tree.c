/* SPDX-License-Identifier: Apache-2.0 */

/* The questions that history asks of an agent, and what is checked of the answers. */

#include "sandbox/history_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/state.h"
#include "sandbox/transfer.h"

enum { CLEAN_MS = 5 * 1000, SEND_AT = 128 * 1024, ID_LAST = 0xfffffffe };

struct history_tree {
    struct file_transfer *transfer;
    char *roots;
    size_t roots_len;
    struct buf out;     /* what is to be applied, until it is worth sending */
    uint64_t file_left; /* bytes that the item at hand still owes */
    uint64_t items;     /* that were sent */
};

bool history_tree_clean(struct sandboxes *s, const char *workspace, const char *name)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct error err;
    struct agent_clean answer = {0};
    struct arena *arena = arena_new();
    bool clean = sandbox_agent(s, workspace, name, &sb, &channel, &err) == 0 &&
                 channel_call(channel, &agent_clean_ask_schema, NULL, &agent_clean_schema, arena,
                              &answer, CLEAN_MS, &err) == 0 &&
                 answer.clean == 1;
    arena_free(arena);
    return clean;
}

int history_tree_watch(struct history_tree *tree, int *ret_fd, struct error *err)
{
    return transfer_ask_fd(tree->transfer, &history_watch_schema, ret_fd, err);
}

int history_tree_open(struct sandboxes *s, const char *workspace, const char *name,
                      struct slice roots, struct history_tree **ret_tree, struct error *err)
{
    struct history_tree *tree = calloc(1, sizeof(*tree));
    char *copy = malloc(roots.len + 1);
    if (tree == NULL || copy == NULL) {
        free(tree);
        free(copy);
        return error_sys(err, "looking at a sandbox's files");
    }
    memcpy(copy, roots.data, roots.len);
    tree->roots = copy;
    tree->roots_len = roots.len;
    buf_init(&tree->out, 2 * SEND_AT + WIRE_PAYLOAD_MAX);
    if (transfer_open(s, workspace, name, &tree->transfer, err) < 0) {
        history_tree_close(tree);
        return -1;
    }
    *ret_tree = tree;
    return 0;
}

void history_tree_close(struct history_tree *tree)
{
    if (tree == NULL)
        return;
    file_transfer_end(tree->transfer);
    buf_release(&tree->out);
    free(tree->roots);
    free(tree);
}

static struct slice roots_of(const struct history_tree *tree)
{
    return (struct slice){tree->roots, tree->roots_len};
}

/* --- what an entry may be --- */

/* No empty part, no dots, none too long for a name. */
static bool is_normal(const char *path)
{
    while (*path == '/') {
        const char *part = ++path;
        while (*path != '\0' && *path != '/')
            path++;
        size_t len = (size_t)(path - part);
        if (len == 0 || len > 255 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
    }
    return *path == '\0';
}

static bool is_in_roots(const struct history_tree *tree, const char *path)
{
    strv_each (root, roots_of(tree)) {
        size_t len = strlen(root);
        if (strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0'))
            return true;
    }
    return false;
}

static int lie(struct error *err, const char *what)
{
    return error_set(err, ERROR_UNAVAILABLE, "the sandbox's agent told of %s", what);
}

static int check_entry(const struct history_tree *tree, const struct history_entry *entry,
                       struct error *err)
{
    if (!is_normal(entry->path) || !is_in_roots(tree, entry->path))
        return lie(err, "a path that was not asked for");
    if (entry->flags & (HISTORY_GONE | HISTORY_UNREAD))
        return 0;
    if (entry->type > FILE_OTHER || entry->mode > 07777 || entry->uid > ID_LAST ||
        entry->gid > ID_LAST)
        return lie(err, "a file that cannot be");
    if ((entry->type == FILE_SYMLINK) != (entry->target != NULL) ||
        (entry->target != NULL && entry->target[0] == '\0'))
        return lie(err, "a link that leads nowhere");
    return 0;
}

/* --- listing --- */

static int visit_entry(const struct history_tree *tree, struct slice payload, history_visit *visit,
                       void *ctx, struct error *err)
{
    struct history_entry entry;
    if (wire_decode(&history_entry_schema, payload, &entry, err) < 0 ||
        check_entry(tree, &entry, err) < 0)
        return -1;
    if (entry.type == FILE_OTHER || (entry.flags & ~(uint64_t)HISTORY_FRESH) != 0)
        return lie(err, "something that is no file");
    return visit(ctx, &entry, err);
}

int history_tree_list(struct history_tree *tree, struct slice ignore, uint64_t entries_max,
                      history_visit *visit, void *ctx, struct history_listed *ret_listed,
                      struct error *err)
{
    struct history_list request = {roots_of(tree), ignore, entries_max};
    if (transfer_send(tree->transfer, &history_list_schema, &request, err) < 0)
        return -1;
    uint64_t count = 0, bytes = 0;
    for (;;) {
        struct frame_header header;
        struct slice payload;
        if (transfer_next(tree->transfer, 0, &header, &payload, err) < 0)
            return -1;
        if (header.type == HISTORY_LISTED)
            return wire_decode(&history_listed_schema, payload, ret_listed, err);
        if (header.type != HISTORY_ENTRY)
            return transfer_unexpected(header.type, err);
        bytes += payload.len;
        if (bytes > HISTORY_LISTING_MAX)
            return error_set(err, ERROR_LIMIT_EXCEEDED,
                             "the names of the tracked files take more than %d MiB, too much for a "
                             "history",
                             HISTORY_LISTING_MAX >> 20);
        if (count++ == entries_max)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "a listing of more than %llu files",
                             (unsigned long long)entries_max);
        if (visit_entry(tree, payload, visit, ctx, err) < 0)
            return -1;
    }
}

/* --- contents --- */

static int read_content(struct history_tree *tree, uint64_t left, const struct history_sink *sink,
                        void *ctx, struct error *err)
{
    for (;;) {
        struct frame_header header;
        struct slice payload;
        struct history_read_end end;
        if (transfer_next(tree->transfer, 0, &header, &payload, err) < 0)
            return -1;
        if (header.type == HISTORY_READ_END) {
            if (left > 0)
                return lie(err, "fewer bytes than it sent");
            if (wire_decode(&history_read_end_schema, payload, &end, err) < 0)
                return -1;
            return sink->end(ctx, end.torn != 0, err);
        }
        if (header.type != FILE_DATA)
            return transfer_unexpected(header.type, err);
        if (payload.len > left)
            return lie(err, "more bytes than it said");
        left -= payload.len;
        if (sink->data(ctx, payload, err) < 0)
            return -1;
    }
}

static int read_one(struct history_tree *tree, const char *path, uint64_t size_max,
                    const struct history_sink *sink, void *ctx, struct error *err)
{
    struct frame_header header;
    struct slice payload;
    struct history_entry entry;
    if (transfer_next(tree->transfer, 0, &header, &payload, err) < 0)
        return -1;
    if (header.type != HISTORY_ENTRY)
        return transfer_unexpected(header.type, err);
    if (wire_decode(&history_entry_schema, payload, &entry, err) < 0 ||
        check_entry(tree, &entry, err) < 0)
        return -1;
    bool content = (entry.flags & (HISTORY_NO_CONTENT | HISTORY_GONE | HISTORY_UNREAD)) == 0;
    if (strcmp(entry.path, path) != 0 ||
        (content && (entry.type != FILE_REGULAR || entry.size > size_max)))
        return lie(err, "another file than it was asked for");
    uint64_t size = entry.size;
    if (!content)
        entry.flags |= HISTORY_NO_CONTENT;
    if (sink->begin(ctx, &entry, err) < 0)
        return -1;
    return content ? read_content(tree, size, sink, ctx, err) : 0;
}

/* As many of the paths as one request takes: how many those are. */
static size_t fill_request(const char *const *paths, size_t count, struct buf *list)
{
    size_t used = 0;
    while (used < count && used < HISTORY_READ_MAX) {
        size_t len = strlen(paths[used]) + 1;
        if (list->len + len > HISTORY_READ_BYTES_MAX)
            break;
        buf_add(list, paths[used++], len);
    }
    return used;
}

static int read_some(struct history_tree *tree, const char *const *paths, size_t count,
                     uint64_t size_max, const struct history_sink *sink, void *ctx,
                     struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (read_one(tree, paths[i], size_max, sink, ctx, err) < 0)
            return -1;
    struct frame_header header;
    struct slice payload;
    if (transfer_next(tree->transfer, 0, &header, &payload, err) < 0)
        return -1;
    return header.type == WIRE_OK ? 0 : transfer_unexpected(header.type, err);
}

int history_tree_read(struct history_tree *tree, const char *const *paths, size_t count,
                      uint64_t size_max, const struct history_sink *sink, void *ctx,
                      struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(HISTORY_READ_BYTES_MAX);
    while (count > 0) {
        buf_clear(&list);
        size_t some = fill_request(paths, count, &list);
        if (some == 0 || list.failed)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "no room for a path of history's");
        struct history_read request = {roots_of(tree), {list.data, list.len}, size_max};
        if (transfer_send(tree->transfer, &history_read_schema, &request, err) < 0 ||
            read_some(tree, paths, some, size_max, sink, ctx, err) < 0)
            return -1;
        paths += some;
        count -= some;
    }
    return 0;
}

/* --- applying --- */

static int flush(struct history_tree *tree, size_t at, struct error *err)
{
    if (buf_check(&tree->out, "what is to be restored", err) < 0)
        return -1;
    if (tree->out.len < at)
        return 0;
    if (file_transfer_put(tree->transfer, tree->out.data, tree->out.len, err) < 0)
        return -1;
    buf_clear(&tree->out);
    return 0;
}

int history_tree_apply_begin(struct history_tree *tree, struct error *err)
{
    struct history_apply request = {roots_of(tree)};
    buf_clear(&tree->out);
    tree->file_left = 0;
    tree->items = 0;
    wire_encode(&tree->out, &history_apply_schema, 1, &request);
    return flush(tree, SEND_AT, err);
}

static int check_owed(const struct history_tree *tree, struct error *err)
{
    if (tree->file_left == 0)
        return 0;
    return error_set(err, ERROR_INTERNAL, "%llu bytes of a file were not given",
                     (unsigned long long)tree->file_left);
}

int history_tree_apply_item(struct history_tree *tree, const struct history_item *item,
                            struct error *err)
{
    if (check_owed(tree, err) < 0)
        return -1;
    tree->file_left = item->op == HISTORY_FILE ? item->size : 0;
    tree->items++;
    wire_encode(&tree->out, &history_item_schema, 1, item);
    return flush(tree, SEND_AT, err);
}

int history_tree_apply_put(struct history_tree *tree, struct slice data, struct error *err)
{
    if (data.len > tree->file_left)
        return error_set(err, ERROR_INTERNAL, "more bytes than the file was said to have");
    tree->file_left -= data.len;
    while (data.len > 0) {
        size_t len = data.len < SEND_AT ? data.len : SEND_AT;
        wire_encode_raw(&tree->out, FILE_DATA, 1, data.data, len);
        data.data += len;
        data.len -= len;
        if (flush(tree, SEND_AT, err) < 0)
            return -1;
    }
    return 0;
}

/* Pairs, and no more of them than it says. */
static bool is_left_list(const struct history_applied *applied)
{
    size_t count = 0;
    strv_each (text, applied->left)
        count++;
    return count % 2 == 0 && count / 2 <= applied->failed && count / 2 <= HISTORY_LEFT_SHOWN;
}

int history_tree_apply_end(struct history_tree *tree, struct arena *arena,
                           struct history_applied *ret_applied, struct error *err)
{
    struct frame_header header;
    struct slice payload;
    struct history_applied applied;
    if (check_owed(tree, err) < 0)
        return -1;
    wire_encode(&tree->out, &file_end_schema, 1, NULL);
    if (flush(tree, 0, err) < 0 || transfer_next(tree->transfer, 0, &header, &payload, err) < 0)
        return -1;
    if (header.type != HISTORY_APPLIED)
        return transfer_unexpected(header.type, err);
    if (wire_decode(&history_applied_schema, payload, &applied, err) < 0)
        return -1;
    if (applied.done > tree->items || applied.failed != tree->items - applied.done ||
        !is_left_list(&applied))
        return lie(err, "more or less than it was to do");
    applied.failure = arena_strdup(arena, applied.failed == 0       ? ""
                                          : applied.failure == NULL ? "it did not say why"
                                                                    : applied.failure);
    applied.left.data = arena_dup(arena, applied.left.data, applied.left.len);
    *ret_applied = applied;
    return 0;
}
