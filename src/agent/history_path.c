/* SPDX-License-Identifier: Apache-2.0 */

/* openat2() without any links, and what a path has to look like before it gets there. */

#include "agent/history_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

/* A tick of the clock that files are stamped by is 1 to 10 ms. */
enum { FRESH_NS = 20 * 1000 * 1000 };

static bool is_normal(const char *path)
{
    if (path[0] != '/' || strlen(path) >= PATH_BYTES_MAX)
        return false;
    while (*path == '/') {
        const char *part = ++path;
        path += strcspn(path, "/");
        size_t len = (size_t)(path - part);
        if (len == 0 || len >= PATH_NAME_SIZE || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
    }
    return true;
}

static bool is_below(const char *root, const char *path)
{
    size_t len = strlen(root);
    return strncmp(root, path, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

int history_check_roots(struct slice roots, struct error *err)
{
    unsigned count = 0;
    strv_each (root, roots) {
        if (++count > HISTORY_ROOTS_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT, "more than %d roots", HISTORY_ROOTS_MAX);
        if (!is_normal(root))
            return error_set(err, ERROR_INVALID_PATH, "%.200s: is no root", root);
        strv_each (other, roots)
            if (other != root && is_below(other, root))
                return error_set(err, ERROR_INVALID_ARGUMENT, "%.150s is in %.150s", root, other);
    }
    if (count == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "no roots");
    return 0;
}

int history_check_path(struct slice roots, const char *path, struct error *err)
{
    if (is_normal(path))
        strv_each (root, roots)
            if (is_below(root, path))
                return 0;
    return error_set(err, ERROR_INVALID_PATH, "%.200s: is not below a root", path);
}

static int open_from(int fd, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC | O_NOFOLLOW,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, fd, path, &how, sizeof(how));
}

int history_open(const char *path, int flags)
{
    return open_from(AT_FDCWD, path, flags);
}

/* One step down; a directory that is not there is made, if wanted. */
static int step_down(int fd, const char *name, bool make)
{
    int next = open_from(fd, name, O_PATH | O_DIRECTORY);
    if (next >= 0 || errno != ENOENT || !make)
        return next;
    if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
        return -1;
    return open_from(fd, name, O_PATH | O_DIRECTORY);
}

int history_open_parent(const char *path, bool make, const char **ret_name)
{
    char dir[PATH_BYTES_MAX];
    const char *name = strrchr(path, '/') + 1;
    size_t len = (size_t)(name - path);
    memcpy(dir, path, len); /* with its slash: never empty */
    dir[len] = '\0';
    *ret_name = name;
    int whole = history_open(dir, O_PATH | O_DIRECTORY);
    if (whole >= 0 || errno != ENOENT || !make)
        return whole;
    _cleanup_fd_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *rest = dir;
    for (char *part; fd >= 0 && (part = strtok_r(rest, "/", &rest)) != NULL;) {
        int next = step_down(fd, part, true);
        int why = errno;
        close(fd);
        fd = next;
        errno = why;
    }
    return steal_fd(&fd);
}

static uint64_t ns_of(struct timespec t)
{
    return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void history_fill_entry(struct history_entry *entry, const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    entry->type = S_ISREG(st->st_mode)   ? FILE_REGULAR
                  : S_ISDIR(st->st_mode) ? FILE_DIRECTORY
                  : S_ISLNK(st->st_mode) ? FILE_SYMLINK
                                         : FILE_OTHER;
    entry->mode = st->st_mode & 07777;
    entry->uid = st->st_uid;
    entry->gid = st->st_gid;
    entry->size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    entry->mtime_ns = ns_of(st->st_mtim);
    entry->ctime_ns = ns_of(st->st_ctim);
    entry->inode = st->st_ino;
    if (entry->ctime_ns + FRESH_NS >= ns_of(now))
        entry->flags |= HISTORY_FRESH;
}
