/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_WRITE: whole or not at all. The bytes go into a file without a name (O_TMPFILE) in the
 * target's directory; at FILE_END it gets the name. When the connection is cut, or the worker is
 * killed, the kernel removes what was written.
 *
 * File systems without O_TMPFILE get a hidden name instead, which is removed on failure.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum { LINKS_MAX = 40, NAME_TRIES = 16 };

struct target {
    struct path_place place;
    bool exists;
    struct stat st;
    int fd;                      /* the new content */
    char hidden[PATH_NAME_SIZE]; /* its name while it has one; "": none */
};

static void target_release(struct target *target)
{
    if (target->hidden[0] != '\0')
        unlinkat(target->place.dir_fd, target->hidden, 0);
    cleanup_fd(&target->fd);
    cleanup_fd(&target->place.dir_fd);
}

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

static int find_place(const char *path, struct path_place *place, struct error *err)
{
    char next[PATH_BYTES_MAX];
    for (int links = 0; links < LINKS_MAX; links++) {
        if (path[strlen(path) - 1] == '/')
            return error_set(err, ERROR_IS_A_DIRECTORY, "%.200s: names a directory", path);
        if (path_split(path, place, err) < 0 || path_make_dirs(place->dir, &place->dir_fd, err) < 0)
            return -1;
        int link = follow_link(place, next, err);
        if (link <= 0)
            return link;
        close(steal_fd(&place->dir_fd));
        path = next;
    }
    return error_set(err, ERROR_INVALID_PATH, "%.200s: too many symbolic links", path);
}

static int look_at(struct target *target, const char *path, struct error *err)
{
    const struct path_place *place = &target->place;
    if (fstatat(place->dir_fd, place->name, &target->st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            return 0;
        return error_sys(err, "%.200s", path);
    }
    if (S_ISDIR(target->st.st_mode))
        return error_set(err, ERROR_IS_A_DIRECTORY, "%.200s: is a directory", path);
    if (!S_ISREG(target->st.st_mode))
        return error_set(err, ERROR_NOT_A_FILE, "%.200s: is not a regular file", path);
    target->exists = true;
    return 0;
}

static int hidden_name(char name[PATH_NAME_SIZE], struct error *err)
{
    uint64_t random;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return error_sys(err, "getrandom");
    snprintf(name, PATH_NAME_SIZE, ".cella-%016llx", (unsigned long long)random);
    return 0;
}

static int open_content(struct target *target, const char *path, struct error *err)
{
    int dir_fd = target->place.dir_fd;
    target->fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    for (int i = 0; target->fd < 0 && i < NAME_TRIES; i++) {
        if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EEXIST)
            break;
        char name[PATH_NAME_SIZE];
        if (hidden_name(name, err) < 0)
            return -1;
        target->fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (target->fd >= 0)
            memcpy(target->hidden, name, sizeof(name));
    }
    if (target->fd < 0)
        return error_sys(err, "%.200s", path);
    return 0;
}

/* --- the bytes --- */

static int write_whole(int fd, const char *data, size_t len, const char *path, struct error *err)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, "%.200s", path);
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int receive_content(struct file_worker *worker, int fd, const char *path, struct error *err)
{
    _cleanup_free_ char *data = malloc(WIRE_DATA_CHUNK);
    if (data == NULL)
        return error_sys(err, "%.200s", path);
    for (;;) {
        struct frame_header header;
        if (file_receive_header(worker, &header, err) < 0)
            return -1;
        if (header.type == FILE_END && header.length == 0) {
            worker->owed = false;
            return 0;
        }
        if (header.type != FILE_DATA || header.length > WIRE_DATA_CHUNK) {
            worker->lost = true;
            return error_set(err, ERROR_INVALID_ARGUMENT, "frame of type %u inside a file",
                             header.type);
        }
        if (file_receive(worker, data, header.length, err) < 0 ||
            write_whole(fd, data, header.length, path, err) < 0)
            return -1;
    }
}

/* --- the name --- */

static int set_owner_and_mode(const struct target *target, uint64_t mode, const char *path,
                              struct error *err)
{
    mode_t bits = 0644;
    if (mode != FILE_MODE_DEFAULT)
        bits = (mode_t)mode;
    else if (target->exists)
        bits = target->st.st_mode & 07777;
    /* The owner first: changing it takes setuid bits away. */
    if (target->exists && fchown(target->fd, target->st.st_uid, target->st.st_gid) < 0)
        return error_sys(err, "%.200s: owner", path);
    if (fchmod(target->fd, bits) < 0)
        return error_sys(err, "%.200s: mode", path);
    return 0;
}

/* AT_EMPTY_PATH wants a capability on older kernels, /proc wants to be mounted: one will do. */
static int link_content(const struct target *target, const char *name)
{
    if (linkat(target->fd, "", target->place.dir_fd, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno == EEXIST)
        return -1;
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", target->fd);
    return linkat(AT_FDCWD, self, target->place.dir_fd, name, AT_SYMLINK_FOLLOW);
}

static int give_name(struct target *target, const char *path, struct error *err)
{
    int dir_fd = target->place.dir_fd;
    if (target->hidden[0] == '\0') {
        /* A link does not replace; a rename does, but needs a name to start from. */
        if (!target->exists && link_content(target, target->place.name) == 0)
            return 0;
        for (int i = 0; i < NAME_TRIES && target->hidden[0] == '\0'; i++) {
            char name[PATH_NAME_SIZE];
            if (hidden_name(name, err) < 0)
                return -1;
            if (link_content(target, name) == 0)
                memcpy(target->hidden, name, sizeof(name));
            else if (errno != EEXIST)
                return error_sys(err, "%.200s", path);
        }
    }
    if (renameat(dir_fd, target->hidden, dir_fd, target->place.name) < 0)
        return error_sys(err, "%.200s", path);
    target->hidden[0] = '\0';
    return 0;
}

int file_write(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_write *write = msg;
    _cleanup_(target_release) struct target target = {.place = {.dir_fd = -1}, .fd = -1};
    if (write->mode != FILE_MODE_DEFAULT && write->mode > 07777)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.200s: mode %llo is over 7777", write->path,
                         (unsigned long long)write->mode);
    if (path_check(write->path, err) < 0 || find_place(write->path, &target.place, err) < 0 ||
        look_at(&target, write->path, err) < 0 || open_content(&target, write->path, err) < 0 ||
        receive_content(worker, target.fd, write->path, err) < 0 ||
        set_owner_and_mode(&target, write->mode, write->path, err) < 0 ||
        give_name(&target, write->path, err) < 0)
        return -1;
    return file_answer_fd(worker, id, write->path, target.fd, err);
}
