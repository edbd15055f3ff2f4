/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The warden reads and writes many one-line files of the kernel and a few of its own. It does so
 * relative to directory fds, so that no path that it uses can be bent by renaming a parent.
 */

#include "warden/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int file_write_at(int dirfd, const char *path, const char *text, struct error *err)
{
    _cleanup_fd_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_sys(err, "opening %s", path);
    if (write(fd, text, strlen(text)) < 0)
        return error_sys(err, "writing \"%s\" to %s", text, path);
    return 0;
}

int file_read_at(int dirfd, const char *path, char *out, size_t size, struct error *err)
{
    _cleanup_fd_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_sys(err, "opening %s", path);
    size_t len = 0;
    while (len < size - 1) {
        ssize_t n = read(fd, out + len, size - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, "reading %s", path);
        if (n == 0)
            break;
        len += (size_t)n;
    }
    out[len] = '\0';
    return 0;
}

int file_replace_at(int dirfd, const char *name, const char *text, mode_t mode, struct error *err)
{
    char temp[256];
    snprintf(temp, sizeof(temp), ".%s.new", name);
    _cleanup_fd_ int fd =
        openat(dirfd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return error_sys(err, "making %s", temp);
    size_t len = strlen(text);
    if (write(fd, text, len) != (ssize_t)len) {
        error_sys(err, "writing %s", temp);
        unlinkat(dirfd, temp, 0);
        return -1;
    }
    if (renameat(dirfd, temp, dirfd, name) < 0)
        return error_sys(err, "renaming %s", temp);
    return 0;
}

int dir_make_at(int dirfd, const char *name, mode_t mode, struct error *err)
{
    if (mkdirat(dirfd, name, mode) < 0 && errno != EEXIST)
        return error_sys(err, "making the directory %s", name);
    return 0;
}

int dir_open_at(int dirfd, const char *name, int *ret_fd, struct error *err)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening the directory %s", name);
    *ret_fd = fd;
    return 0;
}

static int walk(int dirfd, const char *name, bool only_dirs, dir_entry_fn fn, void *arg,
                struct error *err)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_sys(err, "opening the directory %s", name);
    _cleanup_dir_ DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return error_sys(err, "reading the directory %s", name);
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL && errno != 0)
            return error_sys(err, "reading the directory %s", name);
        if (entry == NULL)
            return 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (only_dirs && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
            continue;
        int r = fn(fd, entry->d_name, arg);
        if (r != 0)
            return r;
    }
}

int dir_each(int dirfd, const char *name, dir_entry_fn fn, void *arg, struct error *err)
{
    return walk(dirfd, name, false, fn, arg, err);
}

int dir_each_dir(int dirfd, const char *name, dir_entry_fn fn, void *arg, struct error *err)
{
    return walk(dirfd, name, true, fn, arg, err);
}

/*
 * A tree is as deep as whoever made it liked, and each level takes a descriptor and some stack. So
 * what lies deeper than this is moved up to the top of the tree that is being removed, and comes to
 * its turn there.
 */
enum { REMOVE_DEPTH_MAX = 64 };

struct removal {
    dev_t dev;
    int top; /* of the tree */
    unsigned depth;
    uint64_t moved; /* directories, so far: each gets a name that was not there */
    struct error *err;
};

static int move_up(int dirfd, const char *name, struct removal *removal)
{
    char moved[32];
    do {
        snprintf(moved, sizeof(moved), "moved-%" PRIu64, removal->moved++);
        if (renameat2(dirfd, name, removal->top, moved, RENAME_NOREPLACE) == 0)
            return 0;
    } while (errno == EEXIST);
    return error_sys(removal->err, "removing %s", name);
}

static int remove_entry(int dirfd, const char *name, void *arg)
{
    struct removal *removal = arg;
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return error_sys(removal->err, "removing %s", name);

    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(removal->err, "removing %s", name);
    if (st.st_dev != removal->dev)
        return error_set(removal->err, ERROR_CONFLICT, "something is mounted on %s", name);
    if (removal->depth == REMOVE_DEPTH_MAX)
        return move_up(dirfd, name, removal);
    removal->depth++;
    int r = dir_each(dirfd, name, remove_entry, arg, removal->err);
    removal->depth--;
    if (r != 0)
        return r;
    if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return error_sys(removal->err, "removing %s", name);
    return 0;
}

int tree_remove_at(int dirfd, const char *name, struct error *err)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "removing %s", name);
    struct removal removal = {.dev = st.st_dev, .top = -1, .err = err};
    if (!S_ISDIR(st.st_mode))
        return remove_entry(dirfd, name, &removal);
    _cleanup_fd_ int top = -1;
    if (dir_open_at(dirfd, name, &top, err) < 0)
        return -1;
    removal.top = top;
    for (uint64_t before = 1; before != removal.moved;) {
        before = removal.moved;
        int r = dir_each(top, ".", remove_entry, &removal, err);
        if (r != 0)
            return r;
    }
    if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return error_sys(err, "removing %s", name);
    return 0;
}
