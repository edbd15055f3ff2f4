/* SPDX-License-Identifier: Apache-2.0 */

/* Folders as a whole: one walk, and what is done on it. */

#include "main/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { DEPTH_MAX = 128, COPY_PIECE = 16 * 1024 * 1024 };

struct walk {
    tree_visitor *visit;
    void *ctx;
    bool living; /* others write to the folder meanwhile */
    int depth;
    char path[PATH_MAX];
};

static int walk_folder(struct walk *walk, int dir_fd, size_t len, struct error *err);

static int walk_entry(struct walk *walk, int dir_fd, const char *name, size_t len,
                      struct error *err)
{
    struct stat st;
    size_t room = sizeof(walk->path) - len;
    int added = snprintf(walk->path + len, room, "%s%s", len > 0 ? "/" : "", name);
    if (added < 0 || (size_t)added >= room)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%s/%s: too long a path", walk->path, name);
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "looking at %s", walk->path);
    if (!S_ISDIR(st.st_mode))
        return walk->visit(walk->ctx, TREE_FILE, dir_fd, name, walk->path, &st, err);
    _cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", walk->path);
    if (walk->visit(walk->ctx, TREE_ENTER, dir_fd, name, walk->path, &st, err) < 0 ||
        walk_folder(walk, fd, len + (size_t)added, err) < 0)
        return -1;
    return walk->visit(walk->ctx, TREE_LEAVE, dir_fd, name, walk->path, &st, err);
}

/* Names that git and cellad give to what is not ready: gone in a moment, and of no use. */
static bool is_passing(const char *name)
{
    size_t len = strlen(name);
    return strncmp(name, "tmp_", 4) == 0 || strncmp(name, ".tmp-", 5) == 0 ||
           (len > 4 && strcmp(name + len - 4, ".new") == 0) ||
           (len > 5 && strcmp(name + len - 5, ".lock") == 0);
}

/* All entries but that called "objects", or that alone. */
static int walk_some(struct walk *walk, DIR *dir, bool objects, size_t len, struct error *err)
{
    struct dirent *entry;
    rewinddir(dir);
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            (strcmp(name, "objects") == 0) != objects || (walk->living && is_passing(name)))
            continue;
        if (walk_entry(walk, dirfd(dir), name, len, err) < 0)
            return -1;
        walk->path[len] = '\0';
    }
    return errno != 0 ? error_sys(err, "reading %s", walk->path) : 0;
}

static int walk_folder(struct walk *walk, int dir_fd, size_t len, struct error *err)
{
    if (walk->depth == DEPTH_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%s: folders in more than %d folders",
                         walk->path, DEPTH_MAX);
    _cleanup_fd_ int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (dir == NULL)
        return error_sys(err, "reading %s", walk->path);
    steal_fd(&own);
    walk->depth++;
    if (walk_some(walk, dir, false, len, err) < 0 || walk_some(walk, dir, true, len, err) < 0)
        return -1;
    walk->depth--;
    return 0;
}

int tree_walk(int dir_fd, const char *prefix, tree_visitor *visit, void *ctx, struct error *err)
{
    struct walk walk = {.visit = visit, .ctx = ctx};
    int len = snprintf(walk.path, sizeof(walk.path), "%s", prefix);
    return walk_folder(&walk, dir_fd, (size_t)len, err);
}

bool tree_is_folder(int dir_fd, const char *name)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* --- removing --- */

static int remove_one(void *ctx, enum tree_moment moment, int dir_fd, const char *name,
                      const char *path, const struct stat *st, struct error *err)
{
    if (moment == TREE_ENTER)
        return 0;
    if (unlinkat(dir_fd, name, moment == TREE_LEAVE ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
        return error_sys(err, "removing %s", path);
    return 0;
}

int tree_remove(int dir_fd, const char *name, struct error *err)
{
    _cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening %s", name);
    if (tree_walk(fd, name, remove_one, NULL, err) < 0)
        return -1;
    return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? error_sys(err, "removing %s", name) : 0;
}

/* --- copying --- */

int tree_copy_file(int from_dir, const char *from, int to_dir, const char *to, struct error *err)
{
    struct stat st;
    _cleanup_fd_ int in = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0 || fstat(in, &st) < 0)
        return error_sys(err, "opening %s", from);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERROR_NOT_A_FILE, "%s is no regular file", from);
    _cleanup_fd_ int out = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return error_sys(err, "making a copy of %s", from);
    /* To its end, wherever that is by now: not to the size that it had. */
    ssize_t n;
    while ((n = copy_file_range(in, NULL, out, NULL, COPY_PIECE, 0)) > 0)
        ;
    if (n < 0 || fchown(out, st.st_uid, st.st_gid) < 0 || fchmod(out, st.st_mode & 07777) < 0)
        return error_sys(err, "copying %s", from);
    return 0;
}

static int copy_one(void *ctx, enum tree_moment moment, int dir_fd, const char *name,
                    const char *path, const struct stat *st, struct error *err)
{
    int to_fd = *(const int *)ctx;
    if (moment == TREE_FILE)
        return S_ISREG(st->st_mode) ? tree_copy_file(dir_fd, name, to_fd, path, err) : 0;
    if (moment == TREE_ENTER)
        return mkdirat(to_fd, path, 0700) < 0 ? error_sys(err, "making %s", path) : 0;
    if (fchownat(to_fd, path, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(to_fd, path, st->st_mode & 07777, 0) < 0)
        return error_sys(err, "copying %s", path);
    return 0;
}

int tree_copy(int from_fd, int to_fd, struct error *err)
{
    struct walk walk = {.visit = copy_one, .ctx = &to_fd, .living = true};
    return walk_folder(&walk, from_fd, 0, err);
}
