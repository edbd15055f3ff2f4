/* SPDX-License-Identifier: Apache-2.0 */

/* FILE_STAT, and the entries that every look at files is answered with. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_attributes.h"
#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"
#include "base/limits.h"

static enum file_type type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return FILE_REGULAR;
    case S_IFDIR:
        return FILE_DIRECTORY;
    case S_IFLNK:
        return FILE_SYMLINK;
    default:
        return FILE_OTHER;
    }
}

static int answer_entry(struct file_worker *worker, uint32_t id, const char *path,
                        const struct stat *st, const char *target, struct slice attributes,
                        bool sorted, struct entry_names *names, struct error *err)
{
    struct file_entry entry = {
        .path = path,
        .type = type_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = (uint64_t)st->st_size,
        /* Before 1970 there are no files worth a negative number on the wire. */
        .mtime_ms = st->st_mtim.tv_sec < 0 ? 0
                                           : (uint64_t)st->st_mtim.tv_sec * 1000 +
                                                 (uint64_t)st->st_mtim.tv_nsec / 1000000,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .owner = id_names_get(&names->users, st->st_uid),
        .group = id_names_get(&names->groups, st->st_gid),
        .target = target,
        .inode = st->st_ino,
        .attributes = attributes,
        .sorted = sorted,
    };
    return file_answer(worker, &file_entry_schema, id, &entry, err);
}

int file_answer_entry(struct file_worker *worker, uint32_t id, const char *path,
                      const struct stat *st, const char *target, struct entry_names *names,
                      struct error *err)
{
    return answer_entry(worker, id, path, st, target, (struct slice){0}, false, names, err);
}

int file_answer_directory(struct file_worker *worker, uint32_t id, const char *path,
                          const struct stat *st, bool sorted, struct entry_names *names,
                          struct error *err)
{
    return answer_entry(worker, id, path, st, NULL, (struct slice){0}, sorted, names, err);
}

int file_answer_fd(struct file_worker *worker, uint32_t id, const char *path, int fd,
                   struct error *err)
{
    struct entry_names names = ENTRY_NAMES_INIT;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_sys(err, "%.200s", path);
    return file_answer_entry(worker, id, path, &st, NULL, &names, err);
}

int file_answer_whole(struct file_worker *worker, uint32_t id, const char *path, int fd,
                      const char *name, const struct stat *st, const char *prefix,
                      struct entry_names *names, struct error *err)
{
    char target[PATH_BYTES_MAX];
    _cleanup_buf_ struct buf attributes = BUF_INIT(FILE_ATTRIBUTES_MAX);
    ssize_t len = -1;
    if (S_ISLNK(st->st_mode))
        len = readlinkat(fd, name, target, sizeof(target) - 1);
    else if (prefix != NULL && (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)))
        file_attributes_get(fd, name, prefix, &attributes);
    if (len >= 0)
        target[len] = '\0';
    return answer_entry(worker, id, path, st, len >= 0 ? target : NULL,
                        (struct slice){attributes.data, attributes.len}, false, names, err);
}

int file_stat(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_ref *ref = msg;
    bool follow = (ref->flags & FILE_NO_FOLLOW) == 0;
    if (path_check(ref->path, err) < 0)
        return -1;
    _cleanup_fd_ int fd = path_open(ref->path, follow ? O_PATH : O_PATH | O_NOFOLLOW);
    if (fd < 0)
        return error_sys(err, "%.200s", ref->path);
    struct entry_names names = ENTRY_NAMES_INIT;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_sys(err, "%.200s", ref->path);
    return file_answer_whole(worker, id, ref->path, fd, "", &st, ref->attributes, &names, err);
}
