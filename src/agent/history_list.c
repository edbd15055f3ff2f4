/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HISTORY_LIST: all that is below the roots, while every directory on the way gets its watch before
 * it is read. The other order would lose what happens in between.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/globs.h"
#include "agent/file_new.h"
#include "agent/file_worker.h"
#include "agent/history_path.h"
#include "agent/walk.h"
#include "base/cleanup.h"
#include "base/limits.h"

struct listing {
    struct file_worker *worker;
    uint32_t id;
    const struct history_list *request;
    const char *root;
    struct history_arming arming;
    struct history_listed listed;
};

static enum walk_next tell(struct listing *l, const char *path, int dir_fd, const char *name,
                           const struct stat *st, struct error *err)
{
    char target[PATH_BYTES_MAX];
    struct history_entry entry = {.path = path};
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode)) {
        l->listed.left_out++;
        return WALK_ON;
    }
    if (l->listed.entries == l->request->entries_max) {
        l->listed.cut = 1;
        return WALK_STOP;
    }
    history_fill_entry(&entry, st);
    if (S_ISLNK(st->st_mode)) {
        ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);
        if (len <= 0) /* it was replaced, which is an event */
            return WALK_ON;
        target[len] = '\0';
        entry.target = target;
    }
    l->listed.entries++;
    return file_answer(l->worker, &history_entry_schema, l->id, &entry, err) < 0 ? WALK_FAIL
                                                                                 : WALK_ON;
}

/* What the agent itself is about to rename is no file of anybody's yet. */
static bool is_ignored(const struct listing *l, const char *path, const char *name)
{
    return new_file_is_hidden(name) || globs_match(l->request->ignore, path, name);
}

static enum walk_next visit(void *ctx, const struct walk_item *item, struct error *err)
{
    struct listing *l = ctx;
    char path[PATH_BYTES_MAX];
    if (is_ignored(l, item->path, item->name))
        return WALK_ON;
    if (snprintf(path, sizeof(path), "%s/%s", l->root, item->path) >= (int)sizeof(path)) {
        l->listed.left_out++;
        return WALK_ON;
    }
    struct stat st = item->st;
    /* A directory's watch tells of what is done by names in it; what is done by others the file
     * itself has to tell. What it was before it was watched is of no interest any more. */
    if (S_ISREG(st.st_mode) && st.st_nlink > 1) {
        history_arming_add_file(&l->arming, item->dir_fd, item->name);
        if (fstatat(item->dir_fd, item->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return WALK_ON; /* it went, which is an event */
    }
    return tell(l, path, item->dir_fd, item->name, &st, err);
}

/* Not kept, whatever it is: what a path is too long or too deep for, it is at any time. */
static void beyond(void *ctx)
{
    struct listing *l = ctx;
    l->listed.left_out++;
}

static bool enters(void *ctx, const char *path, const char *name)
{
    return !is_ignored(ctx, path, name);
}

static void opened(void *ctx, int fd)
{
    struct listing *l = ctx;
    history_arming_add(&l->arming, fd);
}

/* A root that is not there can come to be: its nearest parent is what tells. */
static void await_root(struct listing *l)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s", l->root);
    for (;;) {
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
        _cleanup_fd_ int fd = history_open(path, O_RDONLY | O_DIRECTORY);
        if (fd >= 0 || slash == path) {
            if (fd < 0)
                l->arming.failed = true;
            else
                history_arming_add_parent(&l->arming, fd);
            return;
        }
    }
}

static int list_root(struct listing *l, struct error *err)
{
    struct walk_plan plan = {.depth_max = HISTORY_DEPTH_MAX,
                             .visit = visit,
                             .enters = enters,
                             .opened = opened,
                             .beyond = beyond,
                             .ctx = l};
    struct stat st;
    bool cut;
    int fd = history_open(l->root, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            return error_sys(err, "%.200s", l->root);
        await_root(l);
        return 0;
    }
    if (fstat(fd, &st) < 0) {
        error_sys(err, "%.200s", l->root);
        close(fd);
        return -1;
    }
    if (tell(l, l->root, -1, NULL, &st, err) == WALK_FAIL) {
        close(fd);
        return -1;
    }
    if (walk(fd, &plan, &cut, err) < 0)
        return -1;
    l->listed.cut |= cut;
    return 0;
}

int history_list(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct history_list *request = msg;
    struct listing l = {.worker = worker, .id = id, .request = request, .listed.compares = 1};
    if (history_check_roots(request->roots, err) < 0)
        return -1;
    if (request->entries_max < 1 || request->entries_max > HISTORY_ENTRIES_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a listing of %llu entries",
                         (unsigned long long)request->entries_max);
    history_arming_begin(&l.arming, worker->history);
    strv_each (root, request->roots) {
        l.root = root;
        if (list_root(&l, err) < 0)
            return -1;
    }
    /* What was left out is not watched either. */
    if (l.listed.cut)
        l.arming.failed = true;
    l.listed.watched = history_arming_end(&l.arming);
    return file_answer(worker, &history_listed_schema, id, &l.listed, err);
}
