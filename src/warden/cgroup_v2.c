/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits by v2 controllers, all on the sandbox's own group, agent included. None is enabled below
 * it: a group that hands controllers down may not hold processes of its own (nor, for cpu and pids,
 * have processes in ordinary groups below it), and the agent cannot be moved out without the lock
 * that cgroup.h speaks of. It also means one memory group per sandbox; each costs the kernel
 * memory.
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "warden/files.h"

enum { PATH_SIZE = 64 };

static const enum cgroup_tree trees[] = {CGROUP_UNIFIED, CGROUP_TREES};

static int prepare(struct cgroups *cgroups, struct error *err)
{
    if (file_write_at(cgroups->mounts[CGROUP_UNIFIED], "cgroup.subtree_control",
                      "+memory +cpu +pids", err) < 0)
        return error_prefix(err, "enabling cgroup controllers");
    return file_write_at(cgroups->parents[CGROUP_UNIFIED], "cgroup.subtree_control",
                         "+memory +cpu +pids", err);
}

static int set_limits(int unified, const char *id, const struct cgroup_limits *limits,
                      struct error *err)
{
    char path[PATH_SIZE], text[48];
    struct error failure;
    snprintf(path, sizeof(path), "%s/memory.max", id);
    if (cgroup_write_number(unified, path, limits->memory_bytes, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/memory.swap.max", id);
    if (file_write_at(unified, path, "0", &failure) < 0 && failure.sys != ENOENT) {
        *err = failure;
        return -1;
    }
    snprintf(path, sizeof(path), "%s/cpu.max", id);
    cgroup_format_cpu_max(limits->cpu_millis, text, sizeof(text));
    if (file_write_at(unified, path, text, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/pids.max", id);
    return cgroup_write_number(unified, path, limits->pids_max, err);
}

/* A command is born below this group, and so under its limits: there is nothing to join. */
static int limit(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                 struct cgroup_set *set, struct error *err)
{
    return set_limits(cgroups->parents[CGROUP_UNIFIED], id, limits, err);
}

const struct cgroup_backend cgroup_v2 = {
    .name = "v2",
    .trees = trees,
    .prepare = prepare,
    .limit = limit,
    .memory_tree = CGROUP_UNIFIED,
    .oom_file = "memory.events",
    .memory_file = "memory.current",
    .inactive_line = "inactive_file",
    .pids_tree = CGROUP_UNIFIED,
    .pids_of_agent = 1,
};
