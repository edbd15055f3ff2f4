/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits by v2 controllers, all on the sandbox's own group, agent included. None is enabled below
 * it: a group that hands controllers down may not hold processes of its own (nor, for cpu and pids,
 * have processes in ordinary groups below it), and the agent cannot be moved out without the lock
 * that cgroup.h speaks of. It also means one memory group per sandbox; each costs the kernel
 * memory. Sandboxes whose commands are limited one by one are the exception (cgroup_delegate.c).
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { PATH_SIZE = 64 };

static const enum cgroup_tree trees[] = {CGROUP_UNIFIED, CGROUP_TREES};

static int prepare(struct cgroups *cgroups, struct error *err)
{
    if (file_write_at(cgroups->mounts[CGROUP_UNIFIED], "cgroup.subtree_control",
                      "+memory +cpu +pids", err) < 0)
        return error_prefix(err, "enabling cgroup controllers");
    if (file_write_at(cgroups->parents[CGROUP_UNIFIED], "cgroup.subtree_control",
                      "+memory +cpu +pids", err) < 0)
        return -1;
    /* Not every machine has it, and nothing but rates needs it. */
    cgroups->io_controller =
        file_write_at(cgroups->mounts[CGROUP_UNIFIED], "cgroup.subtree_control", "+io", NULL) ==
            0 &&
        file_write_at(cgroups->parents[CGROUP_UNIFIED], "cgroup.subtree_control", "+io", NULL) == 0;
    return 0;
}

static int set_limits(const struct cgroups *cgroups, const char *id,
                      const struct cgroup_limits *limits, bool fresh, struct error *err)
{
    struct cgroup_knob knobs[] = {
        {.tree = CGROUP_UNIFIED, .file = "memory.max"},
        {.tree = CGROUP_UNIFIED, .file = "memory.swap.max", .value = "0", .optional = true},
        {.tree = CGROUP_UNIFIED, .file = "cpu.max"},
        {.tree = CGROUP_UNIFIED, .file = "pids.max"},
    };
    snprintf(knobs[0].value, sizeof(knobs[0].value), "%" PRIu64, limits->memory_bytes);
    cgroup_format_cpu_max(limits->cpu_millis, knobs[2].value, sizeof(knobs[2].value));
    snprintf(knobs[3].value, sizeof(knobs[3].value), "%" PRIu64, limits->pids_max);
    return cgroup_write_knobs(cgroups, id, fresh, knobs, ARRAY_LEN(knobs), err);
}

/* memory.max would be accepted whatever is in use, and then enforced by killing: so what can be
 * taken back is taken back first (Linux 5.19; before that, only what fits is accepted). */
static int resize(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                  struct error *err)
{
    int unified = cgroups->parents[CGROUP_UNIFIED];
    uint64_t wanted = limits->memory_bytes;
    uint64_t used = cgroup_read_number(unified, id, "memory.current");
    if (used > wanted) {
        char path[PATH_SIZE];
        snprintf(path, sizeof(path), "%s/memory.reclaim", id);
        cgroup_write_number(unified, path, used - wanted, NULL);
        used = cgroup_read_number(unified, id, "memory.current");
    }
    if (used > wanted)
        return cgroup_memory_in_use(err, used, wanted);
    if (set_limits(cgroups, id, limits, false, err) < 0)
        return -1;
    return cgroup_limit_io(cgroups, id, &limits->io, true, err);
}

/* A command is born below this group, and so under its limits: there is nothing to join. */
static int limit(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                 struct cgroup_set *set, struct error *err)
{
    if (set_limits(cgroups, id, limits, true, err) < 0)
        return -1;
    return cgroup_limit_io(cgroups, id, &limits->io, false, err);
}

const struct cgroup_backend cgroup_v2 = {
    .name = "v2",
    .trees = trees,
    .prepare = prepare,
    .limit = limit,
    .resize = resize,
    .delegate = cgroup_delegate_v2,
    .memory_tree = CGROUP_UNIFIED,
    .oom_file = "memory.events",
    .memory_file = "memory.current",
    .reclaim_file = "memory.reclaim",
    .inactive_line = "inactive_file",
    .pids_tree = CGROUP_UNIFIED,
    .pids_of_agent = 1,
};
