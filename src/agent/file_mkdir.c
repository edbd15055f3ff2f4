/* SPDX-License-Identifier: Apache-2.0 */

/* FILE_MKDIR: as mkdir -p; a mode that was asked for holds for the last directory alone. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_attributes.h"
#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"

static int check_way(const char *path, uint64_t flags, struct error *err)
{
    _cleanup_fd_ int fd = path_open(path, O_PATH);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        return error_set(err, ERROR_ALREADY_EXISTS, "%.200s: exists and is not a directory", path);
    if (fd >= 0 && (flags & MKDIR_NEW) != 0)
        return error_set(err, ERROR_ALREADY_EXISTS, "%.200s: exists already", path);
    return 0;
}

int file_mkdir(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_mkdir *mkdir = msg;
    struct path_owner owner;
    _cleanup_fd_ int fd = -1;
    if (mkdir->user != NULL && file_owner(mkdir->user, &owner, err) < 0)
        return -1;
    if (path_check(mkdir->path, err) < 0 || path_check_mode(mkdir->path, mkdir->mode, err) < 0 ||
        check_way(mkdir->path, mkdir->flags, err) < 0 ||
        path_make_dirs(mkdir->path, mkdir->user != NULL ? &owner : NULL, &fd, err) < 0)
        return -1;
    /* fd is O_PATH, which fchmod() does not take. */
    if (mkdir->mode != FILE_MODE_DEFAULT && fchmodat(fd, ".", (mode_t)mkdir->mode, 0) < 0)
        return error_sys(err, "%.200s: mode", mkdir->path);
    return file_answer_fd(worker, id, mkdir->path, fd, err);
}
