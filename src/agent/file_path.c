/* SPDX-License-Identifier: Apache-2.0 */

/* Every path that comes from outside goes through here. */

#include "agent/file_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wire/messages.h"

enum { RACES_MAX = 64 };

int path_check(const char *path, struct error *err)
{
    if (path[0] != '/')
        return error_set(err, ERROR_INVALID_PATH, "%.200s: is not absolute", path);
    if (strlen(path) >= PATH_BYTES_MAX)
        return error_set(err, ERROR_INVALID_PATH, "the path is longer than %d bytes",
                         PATH_BYTES_MAX - 1);
    return 0;
}

int path_check_mode(const char *path, uint64_t mode, struct error *err)
{
    if (mode != FILE_MODE_DEFAULT && mode > 07777)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.200s: mode %llo is over 7777", path,
                         (unsigned long long)mode);
    return 0;
}

int path_open(const char *path, uint64_t flags)
{
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -1;
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    /* EAGAIN: something was renamed while ".." was looked at. */
    int fd = -1;
    for (int i = 0; i < RACES_MAX && fd < 0; i++) {
        fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd < 0 && errno != EAGAIN)
            break;
    }
    return fd;
}

int path_split(const char *path, struct path_place *ret_place, struct error *err)
{
    if (path_check(path, err) < 0)
        return -1;
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t len = end - start;
    const char *name = path + start;
    if (len == 0 || (len == 1 && name[0] == '.') || (len == 2 && memcmp(name, "..", 2) == 0))
        return error_set(err, ERROR_INVALID_PATH, "%.200s: does not name anything in a directory",
                         path);
    if (len >= PATH_NAME_SIZE)
        return error_set(err, ERROR_INVALID_PATH, "%.200s…: a name is longer than %d bytes", path,
                         PATH_NAME_SIZE - 1);
    ret_place->dir_fd = -1;
    memcpy(ret_place->dir, path, start); /* with its slash: never empty */
    ret_place->dir[start] = '\0';
    memcpy(ret_place->name, name, len);
    ret_place->name[len] = '\0';
    return 0;
}

/* The end of the component that begins at or after `at`, slashes skipped. */
static size_t component_end(const char *path, size_t at)
{
    at += strspn(path + at, "/");
    return at + strcspn(path + at, "/");
}

static int open_prefix(const char *path, size_t len)
{
    char prefix[PATH_BYTES_MAX];
    memcpy(prefix, path, len);
    memcpy(prefix + len, len == 0 ? "/" : "", len == 0 ? 2 : 1);
    return path_open(prefix, O_PATH | O_DIRECTORY);
}

int path_open_nearest(const char *path, size_t *ret_len)
{
    size_t len = strlen(path);
    for (;;) {
        int fd = open_prefix(path, len);
        if (fd >= 0 || errno != ENOENT || len == 0) {
            *ret_len = len;
            return fd;
        }
        while (len > 0 && path[len - 1] == '/')
            len--;
        while (len > 0 && path[len - 1] != '/')
            len--;
    }
}

/* A link that leads nowhere exists for mkdir, and not for what follows. Sets errno alone. */
static int make_dir(int fd, const char *name, const struct path_owner *owner)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (mkdirat(fd, name, 0755) < 0)
        return errno == EEXIST ? 0 : -1;
    return owner == NULL ? 0 : fchownat(fd, name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW);
}

int path_make_dirs(const char *path, const struct path_owner *owner, int *ret_fd, struct error *err)
{
    if (path_check(path, err) < 0)
        return -1;
    size_t len;
    _cleanup_fd_ int fd = path_open_nearest(path, &len);
    while (fd >= 0 && path[len + strspn(path + len, "/")] != '\0') {
        size_t start = len + strspn(path + len, "/");
        len = component_end(path, len);
        char name[PATH_NAME_SIZE];
        if (len - start >= sizeof(name))
            return error_set(err, ERROR_INVALID_PATH, "%.200s…: a name is longer than %d bytes",
                             path, PATH_NAME_SIZE - 1);
        memcpy(name, path + start, len - start);
        name[len - start] = '\0';
        if (make_dir(fd, name, owner) < 0)
            return error_sys(err, "%.*s", len < 200 ? (int)len : 200, path);
        close(fd);
        fd = open_prefix(path, len);
    }
    if (fd < 0)
        return error_sys(err, "%.200s", path);
    *ret_fd = steal_fd(&fd);
    return 0;
}
