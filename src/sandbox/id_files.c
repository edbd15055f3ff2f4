/* SPDX-License-Identifier: Apache-2.0 */

/* Nothing is kept open: a sandbox's file is opened for each use, and there may be thousands. */

#include "sandbox/id_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int id_folder_open(int data_dir_fd, const char *path, int *ret_fd, struct error *err)
{
    if (mkdirat(data_dir_fd, path, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "making %s", path);
    int fd = openat(data_dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", path);
    *ret_fd = fd;
    return 0;
}

void id_folder_sweep(int dir_fd, bool (*keep)(void *ctx, const char *id), void *ctx)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && !keep(ctx, entry->d_name))
            unlinkat(dir_fd, entry->d_name, 0);
}

int id_file_write_at(int fd, const void *data, size_t len, off_t offset, const char *what,
                     struct error *err)
{
    ssize_t n = pwrite(fd, data, len, offset);
    if (n < 0)
        return error_sys(err, "writing %s", what);
    return n == (ssize_t)len ? 0 : error_set(err, ERROR_INTERNAL, "writing %s: cut short", what);
}
