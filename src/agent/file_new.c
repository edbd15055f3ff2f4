/* SPDX-License-Identifier: Apache-2.0 */

/* Content first, name last: what FILE_WRITE, FILE_TREE_PUT and uploads have in common. */

#include "agent/file_new.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum { LINKS_MAX = 40, NAME_TRIES = 16 };

/* --- where to --- */

/* What the link at `place` points to, as a path from the root. 0: it is no link. */
static int follow_link(const struct path_place *place, char path[PATH_BYTES_MAX], struct error *err)
{
    char link[PATH_BYTES_MAX];
    ssize_t len = readlinkat(place->dir_fd, place->name, link, sizeof(link) - 1);
    if (len < 0)
        return 0;
    link[len] = '\0';
    /* Not shortened: the kernel knows best what ".." means behind a link. */
    int n = snprintf(path, PATH_BYTES_MAX, "%s%s", link[0] == '/' ? "" : place->dir, link);
    if (n >= PATH_BYTES_MAX)
        return error_set(err, ERROR_INVALID_PATH, "%.200s: the link's target is too long",
                         place->name);
    return 1;
}

int new_file_place(const char *path, struct path_place *ret_place, struct error *err)
{
    char next[PATH_BYTES_MAX];
    for (int links = 0; links < LINKS_MAX; links++) {
        if (path[strlen(path) - 1] == '/')
            return error_set(err, ERROR_IS_A_DIRECTORY, "%.200s: names a directory", path);
        if (path_split(path, ret_place, err) < 0)
            return -1;
        ret_place->dir_fd = path_open(ret_place->dir, O_PATH | O_DIRECTORY);
        if (ret_place->dir_fd < 0 && errno != ENOENT)
            return error_sys(err, "%.200s", path);
        int link = ret_place->dir_fd < 0 ? 0 : follow_link(ret_place, next, err);
        if (link <= 0)
            return link;
        close(steal_fd(&ret_place->dir_fd));
        path = next;
    }
    return error_set(err, ERROR_INVALID_PATH, "%.200s: too many symbolic links", path);
}

int new_file_look(const struct path_place *place, const char *path, bool *ret_exists,
                  struct stat *ret_st, struct error *err)
{
    if (fstatat(place->dir_fd, place->name, ret_st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            return error_sys(err, "%.200s", path);
        *ret_exists = false;
        return 0;
    }
    if (S_ISDIR(ret_st->st_mode))
        return error_set(err, ERROR_IS_A_DIRECTORY, "%.200s: is a directory", path);
    if (!S_ISREG(ret_st->st_mode))
        return error_set(err, ERROR_NOT_A_FILE, "%.200s: is not a regular file", path);
    *ret_exists = true;
    return 0;
}

int new_file_hidden_name(char name[PATH_NAME_SIZE], struct error *err)
{
    uint64_t random;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return error_sys(err, "getrandom");
    snprintf(name, PATH_NAME_SIZE, ".cella-%016llx", (unsigned long long)random);
    return 0;
}

bool new_file_is_hidden(const char *name)
{
    static const char prefix[] = ".cella-";
    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
           strspn(name + sizeof(prefix) - 1, "0123456789abcdef") == 16 &&
           name[sizeof(prefix) - 1 + 16] == '\0';
}

/* --- the bytes --- */

int new_file_unnamed(int dir_fd)
{
    return openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int write_whole(int fd, const void *data, size_t len, const char *path, struct error *err)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, "%.200s", path);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int new_file_receive(struct file_worker *worker, int fd, const char *path,
                     struct frame_header *ret_next, struct error *err)
{
    if (worker->piece == NULL)
        worker->piece = malloc(WIRE_DATA_CHUNK);
    if (worker->piece == NULL)
        return error_sys(err, "%.200s", path);
    for (;;) {
        struct frame_header header;
        if (file_receive_header(worker, &header, err) < 0)
            return -1;
        if (header.type == FILE_END && header.length == 0)
            worker->owed = false;
        if (header.type != FILE_DATA && ret_next != NULL) {
            *ret_next = header;
            return 0;
        }
        if (header.type == FILE_END && header.length == 0)
            return 0;
        if (header.type != FILE_DATA || header.length > WIRE_DATA_CHUNK) {
            worker->lost = true;
            return error_set(err, ERROR_INVALID_ARGUMENT, "frame of type %u inside a file",
                             header.type);
        }
        if (file_receive(worker, worker->piece, header.length, err) < 0 ||
            write_whole(fd, worker->piece, header.length, path, err) < 0)
            return -1;
    }
}

/* --- the name --- */

int new_file_attributes(int fd, uint64_t mode, const struct stat *old, const char *path,
                        struct error *err)
{
    mode_t bits = 0644;
    if (mode != FILE_MODE_DEFAULT)
        bits = (mode_t)mode;
    else if (old != NULL)
        bits = old->st_mode & 07777;
    /* The owner first: changing it takes setuid bits away. */
    if (old != NULL && fchown(fd, old->st_uid, old->st_gid) < 0)
        return error_sys(err, "%.200s: owner", path);
    if (fchmod(fd, bits) < 0)
        return error_sys(err, "%.200s: mode", path);
    return 0;
}

/* AT_EMPTY_PATH wants a capability on older kernels, /proc wants to be mounted: one will do. */
int new_file_link(int fd, int dir_fd, const char *name)
{
    if (linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT && errno != EPERM)
        return -1;
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, dir_fd, name, AT_SYMLINK_FOLLOW);
}

int new_file_replace(int fd, int dir_fd, const char *name, const char *path, struct error *err)
{
    /* A link does not replace; a rename does, but needs a name to start from. */
    for (int i = 0; i < NAME_TRIES; i++) {
        char hidden[PATH_NAME_SIZE];
        if (new_file_hidden_name(hidden, err) < 0)
            return -1;
        if (new_file_link(fd, dir_fd, hidden) == 0) {
            if (renameat(dir_fd, hidden, dir_fd, name) == 0)
                return 0;
            error_sys(err, "%.200s", path);
            unlinkat(dir_fd, hidden, 0);
            return -1;
        }
        if (errno != EEXIST)
            return error_sys(err, "%.200s", path);
    }
    return error_set(err, ERROR_CONFLICT, "%.200s: no hidden name is free beside it", path);
}
