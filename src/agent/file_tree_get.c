/* SPDX-License-Identifier: Apache-2.0 */

/* FILE_TREE: all that is below a directory, in one answer of bounded size. */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "agent/walk.h"
#include "base/cleanup.h"
#include "base/limits.h"

struct listing {
    struct file_worker *worker;
    uint32_t id;
    uint64_t left;
    bool full;
    const char *attributes; /* prefix of those that are wanted */
    struct entry_names names;
};

static enum walk_next list_item(void *ctx, const struct walk_item *item, struct error *err)
{
    struct listing *listing = ctx;
    if (listing->left == 0) {
        listing->full = true;
        return WALK_STOP;
    }
    listing->left--;
    int sent = file_answer_whole(listing->worker, listing->id, item->path, item->dir_fd, item->name,
                                 &item->st, listing->attributes, &listing->names, err);
    return sent < 0 ? WALK_FAIL : WALK_ON;
}

int file_tree_get(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_tree_get *get = msg;
    struct listing listing = {worker,          id, get->entries_max, false, get->attributes,
                              ENTRY_NAMES_INIT};
    if (path_check(get->path, err) < 0)
        return -1;
    if (get->depth < 1 || get->depth > TREE_DEPTH_MAX || get->entries_max > TREE_ENTRIES_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a tree of %llu levels and %llu entries",
                         (unsigned long long)get->depth, (unsigned long long)get->entries_max);
    int fd = path_open(get->path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return error_sys(err, "%.200s", get->path);
    struct walk_plan plan = {
        .depth_max = (unsigned)get->depth, .visit = list_item, .ctx = &listing};
    bool deeper;
    if (file_answer_fd(worker, id, get->path, fd, err) < 0) {
        close(fd);
        return -1;
    }
    if (walk(fd, &plan, &deeper, err) < 0)
        return -1;
    /* A depth that was asked for is no cut; the deepest there is, is one. */
    bool cut = listing.full || (deeper && get->depth == TREE_DEPTH_MAX);
    return file_answer(worker, &file_tree_end_schema, id, &(struct file_tree_end){cut}, err);
}
