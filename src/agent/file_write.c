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
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_attributes.h"
#include "agent/file_entry.h"
#include "agent/file_new.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"

enum { NAME_TRIES = 16 };

struct target {
    struct path_place place;
    bool exists;
    struct stat st;
    int fd;                         /* the new content */
    const struct path_owner *owner; /* whose it is to be; NULL: as it was */
    char hidden[PATH_NAME_SIZE];    /* its name while it has one; "": none */
};

static void target_release(struct target *target)
{
    if (target->hidden[0] != '\0')
        unlinkat(target->place.dir_fd, target->hidden, 0);
    cleanup_fd(&target->fd);
    cleanup_fd(&target->place.dir_fd);
}

static int find_target(struct target *target, const char *path, struct error *err)
{
    struct path_place *place = &target->place;
    if (new_file_place(path, place, err) < 0)
        return -1;
    if (place->dir_fd < 0 && path_make_dirs(place->dir, target->owner, &place->dir_fd, err) < 0)
        return -1;
    return new_file_look(place, path, &target->exists, &target->st, err);
}

static int open_content(struct target *target, const char *path, struct error *err)
{
    int dir_fd = target->place.dir_fd;
    target->fd = new_file_unnamed(dir_fd);
    for (int i = 0; target->fd < 0 && i < NAME_TRIES; i++) {
        if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EEXIST)
            break;
        char name[PATH_NAME_SIZE];
        if (new_file_hidden_name(name, err) < 0)
            return -1;
        target->fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (target->fd >= 0)
            memcpy(target->hidden, name, sizeof(name));
    }
    if (target->fd < 0)
        return error_sys(err, "%.200s", path);
    return 0;
}

static int give_name(struct target *target, const char *path, struct error *err)
{
    int dir_fd = target->place.dir_fd;
    const char *name = target->place.name;
    if (target->hidden[0] == '\0') {
        if (!target->exists && new_file_link(target->fd, dir_fd, name) == 0)
            return 0;
        return new_file_replace(target->fd, dir_fd, name, path, err);
    }
    if (renameat(dir_fd, target->hidden, dir_fd, name) < 0)
        return error_sys(err, "%.200s", path);
    target->hidden[0] = '\0';
    return 0;
}

/* The owner before the mode, which takes setuid bits away; then whatever else it is to have. */
static int set_attributes(const struct target *target, const struct file_write *write,
                          struct error *err)
{
    struct stat old = target->st;
    if (target->owner != NULL) {
        old.st_uid = target->owner->uid;
        old.st_gid = target->owner->gid;
        if (!target->exists)
            old.st_mode = S_IFREG | 0644;
    }
    bool as_before = target->exists || target->owner != NULL;
    if (new_file_attributes(target->fd, write->mode, as_before ? &old : NULL, write->path, err) < 0)
        return -1;
    return file_attributes_set(target->fd, write->attributes, write->path, err);
}

int file_write(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_write *write = msg;
    struct path_owner owner;
    _cleanup_(target_release) struct target target = {.place = {.dir_fd = -1}, .fd = -1};
    if (write->user != NULL && file_owner(write->user, &owner, err) < 0)
        return -1;
    target.owner = write->user != NULL ? &owner : NULL;
    if (path_check(write->path, err) < 0 || path_check_mode(write->path, write->mode, err) < 0 ||
        find_target(&target, write->path, err) < 0 || open_content(&target, write->path, err) < 0 ||
        new_file_receive(worker, target.fd, write->path, NULL, err) < 0 ||
        set_attributes(&target, write, err) < 0 || give_name(&target, write->path, err) < 0)
        return -1;
    return file_answer_fd(worker, id, write->path, target.fd, err);
}
