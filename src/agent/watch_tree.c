/* SPDX-License-Identifier: Apache-2.0 */

/* Bookkeeping for file_watch.c: what is watched, by wd and by name. */

#include "agent/watch_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum {
    MASK = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR,
    ROOT_MASK = IN_DELETE_SELF | IN_MOVE_SELF,
};

int watch_tree_init(struct watch_tree *tree, struct error *err)
{
    memset(tree, 0, sizeof(*tree));
    tree->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (tree->fd < 0)
        return error_sys_as(err, ERROR_LIMIT_EXCEEDED, "watching files");
    if (watch_tree_add(tree, NULL, "") == NULL) {
        error_sys(err, "watching files");
        close(tree->fd);
        return -1;
    }
    return 0;
}

void watch_tree_release(struct watch_tree *tree)
{
    if (tree->root != NULL)
        watch_tree_forget(tree, tree->root);
    close(tree->fd);
}

static struct watch_dir **bucket_of(struct watch_tree *tree, int wd)
{
    return &tree->buckets[(unsigned)wd % WATCH_BUCKETS];
}

struct watch_dir *watch_tree_find(struct watch_tree *tree, int wd)
{
    for (struct watch_dir *dir = *bucket_of(tree, wd); dir != NULL; dir = dir->hash_next)
        if (dir->wd == wd)
            return dir;
    return NULL;
}

struct watch_dir *watch_dir_child(const struct watch_dir *dir, const char *name)
{
    for (struct watch_dir *child = dir->child; child != NULL; child = child->next)
        if (strcmp(child->name, name) == 0)
            return child;
    return NULL;
}

bool watch_dir_path(const struct watch_dir *dir, const char *name, char out[PATH_BYTES_MAX])
{
    size_t at = PATH_BYTES_MAX - 1, len = strlen(name);
    char whole[PATH_BYTES_MAX];
    whole[at] = '\0';
    /* From the end to the front: the way up is the only one there is. */
    for (;;) {
        if (len > 0) {
            bool slash = at < PATH_BYTES_MAX - 1;
            if (len + slash > at)
                return false;
            if (slash)
                whole[--at] = '/';
            at -= len;
            memcpy(whole + at, name, len);
        }
        if (dir == NULL)
            break;
        name = dir->name;
        len = strlen(name);
        dir = dir->parent;
    }
    memcpy(out, whole + at, PATH_BYTES_MAX - at);
    return true;
}

struct watch_dir *watch_tree_add(struct watch_tree *tree, struct watch_dir *parent,
                                 const char *name)
{
    struct watch_dir *old = parent == NULL ? tree->root : watch_dir_child(parent, name);
    if (old != NULL)
        watch_tree_forget(tree, old);
    if (tree->count >= WATCH_DIRS_MAX) {
        errno = ENOSPC;
        return NULL;
    }
    size_t len = strlen(name) + 1;
    struct watch_dir *dir = calloc(1, sizeof(*dir) + len);
    if (dir == NULL)
        return NULL;
    memcpy(dir->name, name, len);
    dir->wd = -1;
    dir->parent = parent;
    if (parent == NULL)
        tree->root = dir;
    else {
        dir->next = parent->child;
        parent->child = dir;
    }
    tree->count++;
    dir->scans = true;
    if (tree->scan_last == NULL)
        tree->scan_first = dir;
    else
        tree->scan_last->scan_next = dir;
    tree->scan_last = dir;
    return dir;
}

struct watch_dir *watch_tree_next(struct watch_tree *tree)
{
    struct watch_dir *dir = tree->scan_first;
    if (dir == NULL)
        return NULL;
    tree->scan_first = dir->scan_next;
    if (tree->scan_first == NULL)
        tree->scan_last = NULL;
    dir->scan_next = NULL;
    dir->scans = false;
    return dir;
}

int watch_tree_watch(struct watch_tree *tree, struct watch_dir *dir, int dir_fd)
{
    /* "." rather than a path: what was opened is what is watched, and /proc is not needed. */
    if (fchdir(dir_fd) < 0)
        return -1;
    int wd = inotify_add_watch(tree->fd, ".", MASK | (dir->parent == NULL ? ROOT_MASK : 0));
    int why = errno;
    (void)!chdir("/"); /* a directory that somebody is in is never quite gone */
    if (wd < 0) {
        errno = why;
        return -1;
    }
    struct watch_dir *old = watch_tree_find(tree, wd);
    if (old == dir)
        return 0;
    for (const struct watch_dir *up = dir->parent; old != NULL && up != NULL; up = up->parent)
        if (up == old) { /* a directory inside itself: some mount goes round in a circle */
            errno = ELOOP;
            return -1;
        }
    if (old != NULL) {
        old->wd = -1; /* the watch is ours now */
        struct watch_dir **at = bucket_of(tree, wd);
        while (*at != old)
            at = &(*at)->hash_next;
        *at = old->hash_next;
        watch_tree_forget(tree, old);
    }
    dir->wd = wd;
    dir->hash_next = *bucket_of(tree, wd);
    *bucket_of(tree, wd) = dir;
    return 0;
}

static void unlink_from_scan(struct watch_tree *tree, struct watch_dir *dir)
{
    struct watch_dir *before = NULL;
    for (struct watch_dir *at = tree->scan_first; at != dir; at = at->scan_next)
        before = at;
    if (before == NULL)
        tree->scan_first = dir->scan_next;
    else
        before->scan_next = dir->scan_next;
    if (tree->scan_last == dir)
        tree->scan_last = before;
}

/* A directory without children. */
static void forget_one(struct watch_tree *tree, struct watch_dir *dir)
{
    if (dir->scans)
        unlink_from_scan(tree, dir);
    if (dir->wd >= 0) {
        struct watch_dir **at = bucket_of(tree, dir->wd);
        while (*at != dir)
            at = &(*at)->hash_next;
        *at = dir->hash_next;
        inotify_rm_watch(tree->fd, dir->wd); /* EINVAL: it went with its directory */
    }
    if (dir->parent == NULL)
        tree->root = NULL;
    else {
        struct watch_dir **at = &dir->parent->child;
        while (*at != dir)
            at = &(*at)->next;
        *at = dir->next;
    }
    tree->count--;
    free(dir);
}

void watch_tree_forget(struct watch_tree *tree, struct watch_dir *dir)
{
    for (struct watch_dir *at = dir;;) {
        while (at->child != NULL)
            at = at->child;
        struct watch_dir *up = at->parent;
        bool last = at == dir;
        forget_one(tree, at);
        if (last)
            return;
        at = up;
    }
}
