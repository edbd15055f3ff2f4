/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_MOVE: rename(2), which is all or nothing. Between two file systems (a sandbox's /usr and the
 * rest of it are two) a plain file is copied and then removed; a directory is refused there, since
 * half of one would be left when it fails.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_attributes.h"
#include "agent/file_entry.h"
#include "agent/file_new.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"

enum { COPY_PIECE = 1 << 30 };

/* The content, owner and mode of a file, under another name on another file system. */
static int copy_across(const struct path_place *from, const struct path_place *to, const char *path,
                       struct error *err)
{
    struct stat st;
    _cleanup_fd_ int source =
        openat(from->dir_fd, from->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (source < 0 || fstat(source, &st) < 0)
        return error_sys(err, "%.200s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERROR_NOT_A_FILE,
                         "%.200s: only files can be moved to another file system", path);
    _cleanup_fd_ int copy = new_file_unnamed(to->dir_fd);
    if (copy < 0)
        return error_sys(err, "%.200s", path);
    ssize_t n;
    while ((n = sendfile(copy, source, NULL, COPY_PIECE)) > 0)
        ;
    if (n < 0)
        return error_sys(err, "%.200s", path);
    if (new_file_attributes(copy, FILE_MODE_DEFAULT, &st, path, err) < 0 ||
        new_file_replace(copy, to->dir_fd, to->name, path, err) < 0)
        return -1;
    if (unlinkat(from->dir_fd, from->name, 0) < 0)
        return error_sys(err, "%.200s", path);
    return 0;
}

static int move(const struct file_move *request, struct path_place *from, struct path_place *to,
                struct error *err)
{
    struct path_owner owner;
    if (request->user != NULL && file_owner(request->user, &owner, err) < 0)
        return -1;
    from->dir_fd = path_open(from->dir, O_PATH | O_DIRECTORY);
    struct stat st;
    if (from->dir_fd < 0 || fstatat(from->dir_fd, from->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "%.200s", request->path);
    if (path_make_dirs(to->dir, request->user != NULL ? &owner : NULL, &to->dir_fd, err) < 0)
        return -1;
    if (renameat(from->dir_fd, from->name, to->dir_fd, to->name) == 0)
        return 0;
    if (errno == EXDEV)
        return copy_across(from, to, request->path, err);
    return error_sys(err, "%.150s to %.150s", request->path, request->destination);
}

int file_move(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_move *request = msg;
    struct path_place from, to;
    if (path_split(request->path, &from, err) < 0 || path_split(request->destination, &to, err) < 0)
        return -1;
    int rc = move(request, &from, &to, err);
    struct stat st;
    if (rc == 0 && fstatat(to.dir_fd, to.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        rc = error_sys(err, "%.200s", request->destination);
    cleanup_fd(&from.dir_fd);
    cleanup_fd(&to.dir_fd);
    if (rc < 0)
        return -1;
    struct entry_names names = ENTRY_NAMES_INIT;
    return file_answer_entry(worker, id, request->destination, &st, NULL, &names, err);
}
