/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits of single commands are set by the agent, which starts and ends them, below limits that it
 * cannot touch. What it needs for that is made when the first such command is asked for: most
 * sandboxes never see one, and would pay for it at every start.
 *
 *   v1   <id>/limits in the trees of memory and pids, in which the sandbox's root may make groups.
 *        Nothing of the folder's own is its own, but the file by which it hears of the sandbox
 *        running out of memory
 *   v2   the memory and pids controllers are handed down to the groups of commands. A group that
 *        does so must not hold processes itself, so the agent moves to <id>/agent first
 *
 * Nothing inside a sandbox but its agent sees any of this: no cgroup tree is mounted there.
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

#define CONTROLLERS "+memory +pids"

enum { PATH_SIZE = 80, MOVES_MAX = 100 };

static void below(char out[PATH_SIZE], const char *id, const char *rest)
{
    snprintf(out, PATH_SIZE, "%s/%s", id, rest);
}

int cgroup_delegate(const struct cgroups *cgroups, const char *id, uid_t owner, struct error *err)
{
    if (cgroups->backend->delegate(cgroups, id, owner, err) < 0)
        return error_prefix(err, "handing limits of commands over");
    return 0;
}

/* ---- v1 ---- */

int cgroup_delegate_v1(const struct cgroups *cgroups, const char *id, uid_t owner,
                       struct error *err)
{
    static const struct {
        enum cgroup_tree tree;
        const char *path;
    } handed_over[] = {{CGROUP_MEMORY, "limits/cgroup.event_control"},
                       {CGROUP_MEMORY, "limits"},
                       {CGROUP_PIDS, "limits"}};
    char path[PATH_SIZE];
    below(path, id, "limits");
    if (dir_make_at(cgroups->parents[CGROUP_MEMORY], path, 0755, err) < 0 ||
        dir_make_at(cgroups->parents[CGROUP_PIDS], path, 0755, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(handed_over); i++) {
        below(path, id, handed_over[i].path);
        if (fchownat(cgroups->parents[handed_over[i].tree], path, owner, owner,
                     AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(err, "%s", path);
    }
    return 0;
}

int cgroup_open_delegated(const struct cgroups *cgroups, const char *id, enum cgroup_tree tree,
                          int *ret_fd, struct error *err)
{
    char path[PATH_SIZE];
    below(path, id, "limits");
    int fd = open_tree(cgroups->parents[tree], path,
                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    if (fd < 0)
        return error_sys(err, "cloning the mount of %s", path);
    *ret_fd = fd;
    return 0;
}

/* ---- v2 ---- */

/* Only what is in the group itself: commands are in groups of their own. */
static void move_out(const struct cgroups *cgroups, const char *id)
{
    char from[PATH_SIZE], to[PATH_SIZE], text[4096];
    below(from, id, "cgroup.procs");
    below(to, id, "agent/cgroup.procs");
    if (file_read_at(cgroups->parents[CGROUP_UNIFIED], from, text, sizeof(text), NULL) < 0)
        return;
    pid_t pid = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '\n') {
            pid = pid * 10 + (*at - '0');
            continue;
        }
        /* One that has gone meanwhile needs no place. */
        if (pid > 0)
            cgroup_write_number(cgroups->parents[CGROUP_UNIFIED], to, (uint64_t)pid, NULL);
        pid = 0;
    }
}

int cgroup_delegate_v2(const struct cgroups *cgroups, const char *id, uid_t owner,
                       struct error *err)
{
    int unified = cgroups->parents[CGROUP_UNIFIED];
    char agent[PATH_SIZE], own[PATH_SIZE], work[PATH_SIZE];
    struct error failure;
    below(agent, id, "agent");
    below(own, id, "cgroup.subtree_control");
    below(work, id, "work/cgroup.subtree_control");
    if (dir_make_at(unified, agent, 0755, err) < 0)
        return -1;
    /* Until nothing was forked while the others were moved: the agent's workers are short of life,
     * and whoever is born after it has moved is born where it is. */
    for (int tries = 0;; tries++) {
        move_out(cgroups, id);
        if (file_write_at(unified, own, CONTROLLERS, &failure) == 0)
            break;
        if (failure.sys != EBUSY || tries == MOVES_MAX) {
            *err = failure;
            return -1;
        }
    }
    return file_write_at(unified, work, CONTROLLERS, err);
}
