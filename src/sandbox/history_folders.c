/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whole folders of histories: copies for clones, room for more, and the end of them. A copy is made
 * under a name that begins with a dot, and so is what is being removed: whatever a crash leaves of
 * either is cleared away at the next start.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/names.h"
#include "sandbox/history_pack.h"
#include "sandbox/history_repo.h"

enum { DEPTH_MAX = 8 }; /* git's own are objects/xx/… */

static DIR *open_dir(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    return dir;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* ---- removing ---- */

static void unlink_tree(int dir_fd, const char *name, unsigned depth)
{
    if (unlinkat(dir_fd, name, 0) == 0 || depth > DEPTH_MAX)
        return;
    _cleanup_dir_ DIR *dir = open_dir(dir_fd, name);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (!is_dots(entry->d_name))
            unlink_tree(dirfd(dir), entry->d_name, depth + 1);
    unlinkat(dir_fd, name, AT_REMOVEDIR);
}

void history_folder_unlink(int histories_fd, const char *id)
{
    unlink_tree(histories_fd, id, 0);
}

struct removal {
    int histories_fd;
    const char *id;
};

/* By one rename it is nobody's any more, whatever becomes of the rest. */
static bool set_gone(int histories_fd, const char *id, char *ret_name)
{
    char gone[NAME_MAX];
    char mark[9];
    random_id(mark, 8);
    snprintf(gone, sizeof(gone), ".gone-%s-%.200s", mark, id);
    if (ret_name != NULL)
        memcpy(ret_name, gone, sizeof(gone));
    return renameat(histories_fd, id, histories_fd, gone) == 0;
}

static void remove_on_worker(void *arg)
{
    const struct removal *r = arg;
    char gone[NAME_MAX];
    if (set_gone(r->histories_fd, r->id, gone))
        unlink_tree(r->histories_fd, gone, 0);
}

void history_folder_remove(struct git_program *git, int histories_fd, const char *id)
{
    workers_run(git->workers, remove_on_worker, &(struct removal){histories_fd, id});
}

/* Everything that begins with a dot. */
static void clear_on_worker(void *arg)
{
    const int *histories_fd = arg;
    _cleanup_dir_ DIR *dir = open_dir(*histories_fd, ".");
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (!is_dots(entry->d_name) && entry->d_name[0] == '.')
            unlink_tree(*histories_fd, entry->d_name, 0);
}

void history_folders_sweep(struct git_program *git, int histories_fd,
                           bool (*keep)(void *ctx, const char *id), void *ctx)
{
    _cleanup_dir_ DIR *dir = open_dir(histories_fd, ".");
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && !keep(ctx, entry->d_name))
            set_gone(histories_fd, entry->d_name, NULL);
    workers_run(git->workers, clear_on_worker, &histories_fd);
}

/* ---- room ---- */

struct room {
    int folder_fd;
    uint64_t bytes;
    struct error *err;
    int rc;
};

/* Asking for it is the only way to know: quotas, and what a file system keeps for itself. */
static int reserve(int fd, uint64_t bytes)
{
    struct statvfs fs;
    if (fallocate(fd, 0, 0, (off_t)bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP || fstatvfs(fd, &fs) < 0)
        return -1;
    errno = ENOSPC;
    return (uint64_t)fs.f_bavail * fs.f_frsize >= bytes ? 0 : -1;
}

static void reserve_on_worker(void *arg)
{
    struct room *room = arg;
    static const char name[] = "room.new";
    _cleanup_fd_ int fd =
        openat(room->folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    unlinkat(room->folder_fd, name, 0); /* it goes with its descriptor, or with this process */
    if (fd < 0 || reserve(fd, room->bytes) < 0)
        room->rc = error_sys(room->err, "there is no room for a history's next commit");
}

int history_folder_room(struct git_program *git, int folder_fd, uint64_t bytes, struct error *err)
{
    struct room room = {folder_fd, bytes, err, 0};
    workers_run(git->workers, reserve_on_worker, &room);
    return room.rc;
}

/* ---- copying ---- */

uint64_t history_folder_bytes(int histories_fd, const char *id)
{
    struct stat st;
    char path[NAME_MAX];
    uint64_t bytes = 0;
    snprintf(path, sizeof(path), "%.200s/repository", id);
    _cleanup_fd_ int fd =
        openat(histories_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        packs_count(fd, &bytes);
    snprintf(path, sizeof(path), "%.200s/manifest", id);
    if (fstatat(histories_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        bytes += (uint64_t)st.st_size;
    return bytes;
}

static int copy_bytes(int from_dir, int to_dir, const char *name)
{
    _cleanup_fd_ int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    _cleanup_fd_ int to =
        openat(to_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    char piece[64 * 1024];
    ssize_t n = from < 0 || to < 0 ? -1 : 1;
    while (n > 0) {
        n = read(from, piece, sizeof(piece));
        if (n > 0 && write(to, piece, (size_t)n) != n)
            n = -1;
    }
    return n < 0 ? -1 : 0;
}

/* git's objects never change, so two names for one are as good as two of them. */
static int copy_file(int from_dir, int to_dir, const char *name, bool objects)
{
    if (objects && linkat(from_dir, name, to_dir, name, 0) == 0)
        return 0;
    return copy_bytes(from_dir, to_dir, name);
}

static bool is_left_over(const char *name)
{
    size_t len = strlen(name);
    return strncmp(name, "tmp_", 4) == 0 || strcmp(name, "repository.torn") == 0 ||
           (len > 4 && strcmp(name + len - 4, ".new") == 0) ||
           (len > 5 && strcmp(name + len - 5, ".lock") == 0) || name[0] == '.' ||
           strncmp(name, "fast_import_crash_", 18) == 0;
}

static int copy_tree(int from_dir, int to_dir, const char *name, const char *as, bool objects,
                     unsigned depth)
{
    _cleanup_dir_ DIR *from = open_dir(from_dir, name);
    if (from == NULL || depth > DEPTH_MAX || (mkdirat(to_dir, as, 0700) < 0 && errno != EEXIST))
        return -1;
    _cleanup_fd_ int to = openat(to_dir, as, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (to < 0)
        return -1;
    const struct dirent *entry;
    while ((entry = readdir(from)) != NULL) {
        struct stat st;
        if (is_left_over(entry->d_name))
            continue;
        if (fstatat(dirfd(from), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
        bool below = objects || strcmp(entry->d_name, "objects") == 0;
        int rc = S_ISDIR(st.st_mode)
                     ? copy_tree(dirfd(from), to, entry->d_name, entry->d_name, below, depth + 1)
                     : copy_file(dirfd(from), to, entry->d_name, objects);
        if (rc < 0)
            return -1;
    }
    return 0;
}

struct copying {
    int histories_fd;
    const char *from, *to;
    struct error *err;
    int rc;
};

static void copy_on_worker(void *arg)
{
    struct copying *c = arg;
    char half[NAME_MAX];
    snprintf(half, sizeof(half), ".copy-%.200s", c->to);
    if (faccessat(c->histories_fd, c->to, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
        faccessat(c->histories_fd, c->from, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    unlink_tree(c->histories_fd, half, 0);
    if (copy_tree(c->histories_fd, c->histories_fd, c->from, half, false, 0) == 0 &&
        renameat(c->histories_fd, half, c->histories_fd, c->to) == 0)
        return;
    c->rc = error_sys(c->err, "copying the history of %s", c->from);
    unlink_tree(c->histories_fd, half, 0);
}

int history_folder_copy(struct git_program *git, int histories_fd, const char *from, const char *to,
                        struct error *err)
{
    struct copying copying = {histories_fd, from, to, err, 0};
    workers_run(git->workers, copy_on_worker, &copying);
    return copying.rc;
}
