/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Trees. What makes them whole or not there at all is the agent's business (FILE_TREE_PUT); here
 * they are checked, put in order and sent on in large pieces, so that a thousand small files are a
 * few writes.
 */

#include "sandbox/file_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/transfer.h"

enum { SEND_AT = 256 * 1024 };

int file_tree_compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b)
        a++, b++;
    if (*a == *b)
        return 0;
    if (*a == '\0' || *b == '\0')
        return *a == '\0' ? -1 : 1;
    if (*a == '/' || *b == '/')
        return *a == '/' ? -1 : 1;
    return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int by_path(const void *a, const void *b)
{
    return file_tree_compare(((const struct file_entry *)a)->path,
                             ((const struct file_entry *)b)->path);
}

static int read_tree(struct file_transfer *t, const struct file_tree_get *get, struct arena *arena,
                     struct file_tree *ret_tree, struct error *err)
{
    struct frame_header last;
    struct slice payload;
    struct file_tree_end end;
    struct file_tree tree = {.depth = (unsigned)get->depth};
    if (transfer_send(t, &file_tree_schema, get, err) < 0 ||
        transfer_answer(t, &file_entry_schema, arena, &tree.root, err) < 0 ||
        transfer_entries(t, get->entries_max, arena, &tree.entries, &tree.count, &last, &payload,
                         err) < 0)
        return -1;
    if (last.type != FILE_TREE_END)
        return transfer_unexpected(last.type, err);
    if (wire_decode(&file_tree_end_schema, payload, &end, err) < 0)
        return -1;
    tree.cut = end.cut != 0;
    qsort(tree.entries, tree.count, sizeof(*tree.entries), by_path);
    *ret_tree = tree;
    return 0;
}

int sandbox_tree_get(struct sandboxes *s, const char *workspace, const char *name,
                     const struct file_tree_get *get, struct arena *arena,
                     struct file_tree *ret_tree, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    if (transfer_open(s, workspace, name, &t, err) < 0)
        return -1;
    return read_tree(t, get, arena, ret_tree, err);
}

/* --- putting --- */

static int by_put_path(const void *a, const void *b)
{
    return file_tree_compare(((const struct file_tree_put *)a)->path,
                             ((const struct file_tree_put *)b)->path);
}

static int check_items(const struct file_tree_put *items, size_t count, struct error *err)
{
    if (count > TREE_FILES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%zu files in one tree; %d are allowed", count,
                         TREE_FILES_MAX);
    for (size_t i = 1; i < count; i++) {
        const struct file_tree_put *a = &items[i - 1], *b = &items[i];
        size_t len = strlen(a->path);
        if (strcmp(a->path, b->path) == 0)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%.200s is there twice", a->path);
        /* In this order whatever is below a path follows it. */
        if (!a->is_directory && strncmp(a->path, b->path, len) == 0 && b->path[len] == '/')
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "%.150s is a file, so there cannot be %.150s", a->path, b->path);
    }
    return 0;
}

static int send_all(struct file_transfer *t, struct buf *out, struct error *err)
{
    if (buf_check(out, "a tree's item", err) < 0 ||
        file_transfer_put(t, out->data, out->len, err) < 0)
        return -1;
    buf_clear(out);
    return 0;
}

static int send_item(struct file_transfer *t, const struct file_tree_put *item, struct buf *out,
                     struct error *err)
{
    struct file_tree_item msg = {item->path, item->mode, item->is_directory};
    wire_encode(out, &file_tree_item_schema, 1, &msg);
    for (struct slice rest = item->is_directory ? (struct slice){NULL, 0} : item->content;
         rest.len > 0;) {
        size_t len = rest.len < WIRE_DATA_CHUNK ? rest.len : WIRE_DATA_CHUNK;
        wire_encode_raw(out, FILE_DATA, 1, rest.data, len);
        rest.data += len;
        rest.len -= len;
        if (out->len >= SEND_AT && send_all(t, out, err) < 0)
            return -1;
    }
    return 0;
}

static int put_tree(struct file_transfer *t, const struct file_tree_begin *begin,
                    const struct file_tree_put *items, size_t count, struct arena *arena,
                    struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4 * SEND_AT);
    struct file_entry entry;
    wire_encode(&out, &file_tree_put_schema, 1, begin);
    for (size_t i = 0; i < count; i++) {
        if (send_item(t, &items[i], &out, err) < 0)
            return -1;
        if (out.len >= SEND_AT && send_all(t, &out, err) < 0)
            return -1;
    }
    wire_encode(&out, &file_end_schema, 1, NULL);
    if (send_all(t, &out, err) < 0)
        return -1;
    return transfer_answer(t, &file_entry_schema, arena, &entry, err);
}

static int open_put(struct sandboxes *s, const char *workspace, const char *name,
                    struct file_tree_put *items, size_t count, struct file_transfer **ret_transfer,
                    struct error *err)
{
    qsort(items, count, sizeof(*items), by_put_path);
    if (check_items(items, count, err) < 0)
        return -1;
    return transfer_open(s, workspace, name, ret_transfer, err);
}

int sandbox_tree_put_as(struct sandboxes *s, const char *workspace, const char *name,
                        const char *root, const char *user, struct file_tree_put *items,
                        size_t count, struct arena *arena, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    const struct file_tree_begin begin = {.path = root, .user = user};
    if (open_put(s, workspace, name, items, count, &t, err) < 0)
        return -1;
    return put_tree(t, &begin, items, count, arena, err);
}

int sandbox_tree_put(struct sandboxes *s, const char *workspace, const char *name, const char *root,
                     struct file_tree_put *items, size_t count, unsigned depth, struct arena *arena,
                     struct file_tree *ret_tree, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    const struct file_tree_begin begin = {.path = root};
    if (open_put(s, workspace, name, items, count, &t, err) < 0 ||
        put_tree(t, &begin, items, count, arena, err) < 0)
        return -1;
    if (ret_tree == NULL)
        return 0;
    const struct file_tree_get get = {
        .path = root, .depth = depth, .entries_max = TREE_ENTRIES_MAX};
    return read_tree(t, &get, arena, ret_tree, err);
}
