/* SPDX-License-Identifier: Apache-2.0 */

/*
 * By descriptors and names of one component, so that nothing in the tree can lead out of it. What
 * is set last wins in an order that matters: a change of owner clears setuid bits and capabilities,
 * writing changes times, and filling a directory changes its own.
 */

#include "warden/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { DEPTH_MAX = 2048 };

/* Recursion goes through the same few functions: what needs a big buffer stays out of their frames.
 */
#define OWN_FRAME __attribute__((noinline))

struct copy {
    dev_t dev;
    const struct copy_watch *watch;
    int links; /* a directory with a name, its inode's number in the source, for each file that has
                  several: in memory or as descriptors they could be too many */
    unsigned depth;
    char *list;  /* XATTR_LIST_MAX */
    char *value; /* XATTR_SIZE_MAX */
    struct error *err;
};

struct dir_copy {
    struct copy *copy;
    int to;
};

static int copy_entry(int from, const char *name, int to, const char *to_name, struct copy *copy);

/* ---- attributes ---- */

/* Through /proc, since symlinks, pipes and devices can be opened as places only; and by the link
 * itself for symlinks, whose place does not take attributes. */
static int copy_xattrs(const char *from, const char *to, const char *name, struct copy *copy)
{
    ssize_t len = llistxattr(from, copy->list, XATTR_LIST_MAX);
    if (len < 0 && errno != ENOTSUP)
        return error_sys(copy->err, "reading the attributes of %s", name);
    for (const char *key = copy->list; key < copy->list + (len > 0 ? len : 0);
         key += strlen(key) + 1) {
        ssize_t size = lgetxattr(from, key, copy->value, XATTR_SIZE_MAX);
        if (size < 0 || lsetxattr(to, key, copy->value, (size_t)size, 0) < 0)
            return error_sys(copy->err, "copying the attribute %s of %s", key, name);
    }
    return 0;
}

OWN_FRAME static int copy_attributes(int from, const char *name, int to, const char *to_name,
                                     const struct stat *st, struct copy *copy)
{
    char from_path[NAME_MAX + 32], to_path[NAME_MAX + 32];
    const struct timespec times[] = {st->st_atim, st->st_mtim};
    snprintf(from_path, sizeof(from_path), "/proc/self/fd/%d/%s", from, name);
    snprintf(to_path, sizeof(to_path), "/proc/self/fd/%d/%s", to, to_name);
    if (fchownat(to, to_name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(copy->err, "giving %s its owner", name);
    if (!S_ISLNK(st->st_mode) && fchmodat(to, to_name, st->st_mode & 07777, 0) < 0)
        return error_sys(copy->err, "giving %s its mode", name);
    if (copy_xattrs(from_path, to_path, name, copy) < 0)
        return -1;
    if (utimensat(to, to_name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(copy->err, "giving %s its times", name);
    return 0;
}

/* ---- contents ---- */

static int copy_range(int from, int to, off_t at, off_t end)
{
    while (at < end) {
        off_t out = at;
        size_t want = (size_t)(end - at);
        ssize_t n = copy_file_range(from, &at, to, &out, want, 0);
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
            if (lseek(to, at, SEEK_SET) < 0)
                return -1;
            n = sendfile(to, from, &at, want);
        }
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            return 0; /* it is shorter than it was */
    }
    return 0;
}

static int copy_data(int from, int to, off_t size)
{
    if (size == 0 || ioctl(to, FICLONE, from) == 0)
        return 0;
    if (ftruncate(to, size) < 0)
        return -1;
    for (off_t at = 0, end; at < size; at = end) {
        at = lseek(from, at, SEEK_DATA);
        if (at < 0)
            return errno == ENXIO ? 0 : -1; /* holes to the end */
        end = lseek(from, at, SEEK_HOLE);
        if (end < 0 || copy_range(from, to, at, end) < 0)
            return -1;
    }
    return 0;
}

static int copy_file(int from, const char *name, int to, const char *to_name, const struct stat *st,
                     struct copy *copy)
{
    _cleanup_fd_ int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    _cleanup_fd_ int out =
        openat(to, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (in < 0 || out < 0 || copy_data(in, out, st->st_size) < 0)
        return error_sys(copy->err, "copying %s", name);
    return 0;
}

/* ---- kinds ---- */

OWN_FRAME static int copy_link(int from, const char *name, int to, const char *to_name,
                               struct copy *copy)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
    if (n < 0)
        return error_sys(copy->err, "reading the link %s", name);
    target[n] = '\0';
    if (symlinkat(target, to, to_name) < 0)
        return error_sys(copy->err, "making the link %s", name);
    return 0;
}

static int copy_child(int from, const char *name, void *arg)
{
    const struct dir_copy *dir = arg;
    const struct copy_watch *watch = dir->copy->watch;
    if (watch != NULL && watch->stop(watch->arg))
        return error_set(dir->copy->err, ERROR_CANCELLED, "the copy was given up");
    return copy_entry(from, name, dir->to, name, dir->copy);
}

static int copy_dir(int from, const char *name, int to, const char *to_name, struct copy *copy)
{
    _cleanup_fd_ int out = -1;
    if (copy->depth >= DEPTH_MAX)
        return error_set(copy->err, ERROR_LIMIT_EXCEEDED, "directories nested deeper than %d",
                         DEPTH_MAX);
    if (mkdirat(to, to_name, 0700) < 0)
        return error_sys(copy->err, "making the directory %s", name);
    if (dir_open_at(to, to_name, &out, copy->err) < 0)
        return -1;
    struct dir_copy dir = {.copy = copy, .to = out};
    copy->depth++;
    int r = dir_each(from, name, copy_child, &dir, copy->err);
    copy->depth--;
    return r;
}

static int copy_node(const char *name, int to, const char *to_name, const struct stat *st,
                     struct copy *copy)
{
    if (mknodat(to, to_name, (st->st_mode & S_IFMT) | 0600, st->st_rdev) < 0)
        return error_sys(copy->err, "making %s", name);
    return 0;
}

/* ---- one entry ---- */

static void link_name(char out[24], const struct stat *st)
{
    snprintf(out, 24, "%llu", (unsigned long long)st->st_ino);
}

/* 1 when the file is there already under another name, and now under this one too. */
static int copy_as_link(int to, const char *to_name, const struct stat *st, struct copy *copy)
{
    char name[24];
    link_name(name, st);
    if (linkat(copy->links, name, to, to_name, 0) == 0)
        return 1;
    return errno == ENOENT ? 0 : error_sys(copy->err, "linking %s", to_name);
}

static int remember_link(int to, const char *to_name, const struct stat *st, struct copy *copy)
{
    char name[24];
    link_name(name, st);
    if (linkat(to, to_name, copy->links, name, 0) < 0)
        return error_sys(copy->err, "remembering the file %s, which has several names", to_name);
    return 0;
}

static int copy_kind(int from, const char *name, int to, const char *to_name, const struct stat *st,
                     struct copy *copy)
{
    if (S_ISREG(st->st_mode))
        return copy_file(from, name, to, to_name, st, copy);
    if (S_ISDIR(st->st_mode))
        return copy_dir(from, name, to, to_name, copy);
    if (S_ISLNK(st->st_mode))
        return copy_link(from, name, to, to_name, copy);
    return copy_node(name, to, to_name, st, copy);
}

static int copy_entry(int from, const char *name, int to, const char *to_name, struct copy *copy)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(copy->err, "looking at %s", name);
    if (st.st_dev != copy->dev)
        return error_set(copy->err, ERROR_CONFLICT, "something is mounted on %s", name);
    bool many = !S_ISDIR(st.st_mode) && st.st_nlink > 1;
    if (many) {
        int r = copy_as_link(to, to_name, &st, copy);
        if (r != 0)
            return r < 0 ? -1 : 0;
    }
    if (copy_kind(from, name, to, to_name, &st, copy) < 0 ||
        copy_attributes(from, name, to, to_name, &st, copy) < 0)
        return -1;
    return many ? remember_link(to, to_name, &st, copy) : 0;
}

static void copy_release(struct copy *copy)
{
    cleanup_fd(&copy->links);
    free(copy->list);
    free(copy->value);
}

int tree_copy(int from, const char *from_name, int to, const char *to_name,
              const struct copy_watch *watch, struct error *err)
{
    static const char links[] = "links";
    struct stat st;
    if (fstatat(from, from_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "looking at %s", from_name);
    _cleanup_(copy_release) struct copy copy = {
        .dev = st.st_dev,
        .watch = watch,
        .links = -1,
        .list = malloc(XATTR_LIST_MAX),
        .value = malloc(XATTR_SIZE_MAX),
        .err = err,
    };
    if (copy.list == NULL || copy.value == NULL)
        return error_sys(err, "copying");
    if (dir_make_at(to, links, 0700, err) < 0 || dir_open_at(to, links, &copy.links, err) < 0 ||
        copy_entry(from, from_name, to, to_name, &copy) < 0)
        return -1;
    return tree_remove_at(to, links, err);
}
