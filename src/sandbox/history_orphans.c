/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a killed cellad's git still does. One that is fed commits ends with its input; one that
 * packs does not, and would go on for minutes next to the new cellad's commits, at the end of which
 * it removes packs that those may have come to need. So it ends before anybody else begins.
 *
 * They are known by where they are: programs of the name git, of this user's, whose working folder
 * is a repository below the folder of histories. Nothing in a sandbox can be there. A process that
 * is confined by Landlock cannot look at them, so cellad does this before.
 */

#include "sandbox/history_git.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { DEATH_MS = 10 * 1000 }; /* in the middle of writing to a slow disk */

static bool is_git(int proc_fd, const char *pid)
{
    char path[64], name[16] = "";
    snprintf(path, sizeof(path), "%.20s/comm", pid);
    _cleanup_fd_ int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
    return n == 4 && memcmp(name, "git\n", 4) == 0;
}

static bool is_below(int proc_fd, const char *pid, const char *folder)
{
    char path[64], where[PATH_MAX];
    size_t len = strlen(folder);
    snprintf(path, sizeof(path), "%.20s/cwd", pid);
    ssize_t n = readlinkat(proc_fd, path, where, sizeof(where) - 1);
    where[n > 0 ? n : 0] = '\0';
    return len > 1 && strncmp(where, folder, len) == 0 && where[len] == '/';
}

/* By a descriptor: the number may be somebody else's by the time that it is looked at. */
static bool end_orphan(int proc_fd, const char *name, const char *folder)
{
    _cleanup_fd_ int pidfd = pidfd_open((pid_t)strtol(name, NULL, 10), 0);
    if (pidfd < 0 || !is_git(proc_fd, name) || !is_below(proc_fd, name, folder) ||
        pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0)
        return false;
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    return poll(&ended, 1, DEATH_MS) > 0;
}

unsigned git_end_orphans(int histories_fd)
{
    char self[64], folder[PATH_MAX];
    unsigned ended = 0;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", histories_fd);
    ssize_t n = readlink(self, folder, sizeof(folder) - 1);
    _cleanup_dir_ DIR *proc = n <= 0 ? NULL : opendir("/proc");
    folder[n > 0 ? n : 0] = '\0';
    const struct dirent *entry;
    while (proc != NULL && (entry = readdir(proc)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            ended += end_orphan(dirfd(proc), entry->d_name, folder);
    return ended;
}
