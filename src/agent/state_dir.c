/* SPDX-License-Identifier: Apache-2.0 */

/* The state directory comes and goes; somebody else may be tidying up at any moment. */

#include "agent/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { RACES_MAX = 64 };

/* Not through links: nothing that a program inside plants there is followed. */
static int open_dir(int at, const char *path)
{
    return openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* In a directory for everybody, somebody else may have been first. */
static int open_top(const char *state_dir)
{
    struct stat st;
    _cleanup_fd_ int fd = open_dir(AT_FDCWD, state_dir);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (st.st_uid != geteuid()) {
        errno = EPERM;
        return -1;
    }
    return steal_fd(&fd);
}

int state_dir_find(const char *state_dir, const char *name)
{
    _cleanup_fd_ int top = open_top(state_dir);
    return top < 0 ? -1 : open_dir(top, name);
}

int state_dir_open(const char *state_dir, const char *name, int *ret_fd, struct error *err)
{
    for (int i = 0; i < RACES_MAX; i++) {
        if (mkdir(state_dir, 0700) < 0 && errno != EEXIST)
            break;
        _cleanup_fd_ int top = open_top(state_dir);
        if (top >= 0 && mkdirat(top, name, 0700) < 0 && errno != EEXIST && errno != ENOENT)
            break;
        int fd = top < 0 ? -1 : open_dir(top, name);
        if (fd >= 0) {
            *ret_fd = fd;
            return 0;
        }
        if (errno != ENOENT)
            break;
    }
    return error_sys(err, "%s/%s", state_dir, name);
}

void state_dir_tidy(const char *state_dir, const char *name)
{
    _cleanup_fd_ int top = open_top(state_dir);
    if (top >= 0 && (unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOENT))
        (void)rmdir(state_dir);
}
