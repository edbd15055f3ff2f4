/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_REMOVE. A tree is removed by directory fds, never by paths, so that nothing that is swapped
 * for a link meanwhile leads elsewhere. One directory is open at a time, however deep the tree is:
 * the way back is "..", believed only when it is the directory that we came from.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"

struct level {
    struct level *up;
    dev_t dev; /* of the directory above */
    ino_t ino;
    char name[]; /* in it */
};

static void levels_release(struct level **top)
{
    while (*top != NULL) {
        struct level *level = *top;
        *top = level->up;
        free(level);
    }
}

/* Not through links, and not into another file system that is mounted there. */
static int open_below(int dir_fd, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
    if (fd < 0 && errno == EXDEV)
        errno = EBUSY; /* a mount point, as rmdir() would say it */
    return fd;
}

static int descend(int *fd, const char *name, struct level **top, struct error *err)
{
    struct stat st;
    int below = open_below(*fd, name);
    if (below < 0 || fstat(*fd, &st) < 0) {
        error_sys(err, "%.200s", name);
        cleanup_fd(&below);
        return -1;
    }
    size_t len = strlen(name) + 1;
    struct level *level = malloc(sizeof(*level) + len);
    if (level == NULL) {
        error_sys(err, "%.200s", name);
        close(below);
        return -1;
    }
    *level = (struct level){.up = *top, .dev = st.st_dev, .ino = st.st_ino};
    memcpy(level->name, name, len);
    *top = level;
    close(*fd);
    *fd = below;
    return 0;
}

static int ascend(int *fd, const struct level *level, struct error *err)
{
    struct stat st;
    int above = openat(*fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0 || fstat(above, &st) < 0) {
        error_sys(err, "%.200s", level->name);
        cleanup_fd(&above);
        return -1;
    }
    if (st.st_dev != level->dev || st.st_ino != level->ino) {
        close(above);
        return error_set(err, ERROR_CONFLICT, "%.200s: was moved while it was being removed",
                         level->name);
    }
    close(*fd);
    *fd = above;
    return 0;
}

enum removed { REMOVED_ALL, REMOVED_UP_TO, REMOVE_FAILED };

/* Removes one name; a directory that is not empty is left for the caller to go into. */
static enum removed remove_name(int fd, const struct dirent *entry, struct error *err)
{
    if (entry->d_type != DT_DIR && unlinkat(fd, entry->d_name, 0) == 0)
        return REMOVED_ALL;
    if (entry->d_type != DT_DIR && errno != EISDIR) {
        if (errno == ENOENT)
            return REMOVED_ALL;
        error_sys(err, "%.200s", entry->d_name);
        return REMOVE_FAILED;
    }
    if (unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return REMOVED_ALL;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return REMOVED_UP_TO;
    error_sys(err, "%.200s", entry->d_name);
    return REMOVE_FAILED;
}

/* Removes names until one has to be gone into, whose name is returned in `below` ("": all done). */
static int remove_names(int fd, char below[PATH_NAME_SIZE], struct error *err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        error_sys(err, "reading a directory");
        cleanup_fd(&copy);
        return -1;
    }
    below[0] = '\0';
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        switch (remove_name(fd, entry, err)) {
        case REMOVED_ALL:
            break;
        case REMOVE_FAILED:
            return -1;
        case REMOVED_UP_TO:
            memcpy(below, entry->d_name, strlen(entry->d_name) + 1);
            return 0;
        }
    }
    return 0;
}

/* Empties and removes the directory `name` of the directory that *fd is at. */
static int remove_tree(int *fd, const char *name, struct error *err)
{
    _cleanup_(levels_release) struct level *top = NULL;
    char below[PATH_NAME_SIZE];
    if (descend(fd, name, &top, err) < 0)
        return -1;
    while (top != NULL) {
        if (remove_names(*fd, below, err) < 0)
            return -1;
        if (below[0] != '\0') {
            if (descend(fd, below, &top, err) < 0)
                return -1;
            continue;
        }
        if (ascend(fd, top, err) < 0)
            return -1;
        /* ENOTEMPTY: somebody is filling it as fast as we empty it. */
        if (unlinkat(*fd, top->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            return error_sys(err, "%.200s", top->name);
        struct level *done = top;
        top = done->up;
        free(done);
    }
    return 0;
}

int file_remove(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_remove *remove = msg;
    struct path_place place;
    if (path_split(remove->path, &place, err) < 0)
        return -1;
    _cleanup_fd_ int fd = path_open(place.dir, O_RDONLY | O_DIRECTORY);
    struct stat st;
    if (fd < 0 || fstatat(fd, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "%.200s", remove->path);

    bool is_dir = S_ISDIR(st.st_mode);
    if (unlinkat(fd, place.name, is_dir ? AT_REMOVEDIR : 0) < 0) {
        bool full = is_dir && (errno == ENOTEMPTY || errno == EEXIST);
        if (full && !remove->recursive)
            return error_set(err, ERROR_DIRECTORY_NOT_EMPTY, "%.200s: the directory is not empty",
                             remove->path);
        if (!full)
            return error_sys(err, "%.200s", remove->path);
        if (remove_tree(&fd, place.name, err) < 0)
            return error_prefix(err, "%.150s", remove->path);
    }
    struct entry_names names = ENTRY_NAMES_INIT;
    return file_answer_entry(worker, id, remove->path, &st, NULL, &names, err);
}
