/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits by v1 controllers, next to a cgroup2 tree without any. The agent enters the sandbox's
 * cpu and pids groups once, so that its cgroup namespace is rooted there, and then leaves for the
 * instance's own; in the memory group it stays.
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "warden/files.h"
#include "wire/birth.h"

enum { PATH_SIZE = 64 };

static const enum cgroup_tree trees[] = {CGROUP_UNIFIED, CGROUP_MEMORY, CGROUP_CPU,
                                         CGROUP_PIDS,    CGROUP_BLKIO,  CGROUP_TREES};

/*
 * Buffers of TCP and UDP sockets are not counted as memory here but in a counter of their own,
 * which starts to count with its first limit: a share of the memory, so that loopback is no place
 * to keep what the limit does not allow. The first counter of the machine has the kernel patch its
 * code, for which a sandbox should not have to wait: so the parent has one too, without end.
 */
#define SOCKETS_FILE "memory.kmem.tcp.limit_in_bytes"

static void limit_sockets(const struct cgroups *cgroups, const char *id, uint64_t memory_bytes)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/" SOCKETS_FILE, id);
    /* Not every kernel has it; and what is in use cannot be taken back. */
    cgroup_write_number(cgroups->parents[CGROUP_MEMORY], path, memory_bytes / AGENT_SOCKETS_SHARE,
                        NULL);
}

static int prepare(struct cgroups *cgroups, struct error *err)
{
    file_write_at(cgroups->parents[CGROUP_MEMORY], SOCKETS_FILE, "-1", NULL);
    for (int tree = CGROUP_CPU; tree <= CGROUP_PIDS; tree++)
        if (cgroup_open_tasks(cgroups->parents[tree], "tasks", &cgroups->parent_tasks[tree], err) <
            0)
            return -1;
    return 0;
}

static struct cgroup_knob knob(enum cgroup_tree tree, const char *file, uint64_t value)
{
    struct cgroup_knob knob = {.tree = tree, .file = file};
    snprintf(knob.value, sizeof(knob.value), "%" PRIu64, value);
    return knob;
}

enum change { FRESH, GROWS, SHRINKS };

/* Memory and swap together may never be less than memory alone: whoever grows, grows that first. */
static int set_limits(const struct cgroups *cgroups, const char *id,
                      const struct cgroup_limits *limits, enum change change, struct error *err)
{
    const struct cpu_quota cpu = cgroup_cpu_quota(limits->cpu_millis);
    struct cgroup_knob memory = knob(CGROUP_MEMORY, "memory.limit_in_bytes", limits->memory_bytes);
    struct cgroup_knob both =
        knob(CGROUP_MEMORY, "memory.memsw.limit_in_bytes", limits->memory_bytes);
    both.optional = true;
    const struct cgroup_knob knobs[] = {
        change == GROWS ? both : memory,
        change == GROWS ? memory : both,
        knob(CGROUP_CPU, "cpu.cfs_period_us", cpu.period_us),
        knob(CGROUP_CPU, "cpu.cfs_quota_us", cpu.quota_us),
        knob(CGROUP_PIDS, "pids.max", limits->pids_max),
    };
    return cgroup_write_knobs(cgroups, id, change == FRESH, knobs, ARRAY_LEN(knobs), err);
}

/* Making a limit smaller than what is in use first takes back what the kernel can, and is refused
 * with EBUSY when that is not enough. */
static int resize(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                  struct error *err)
{
    int memory = cgroups->parents[CGROUP_MEMORY];
    uint64_t before = cgroup_read_number(memory, id, "memory.limit_in_bytes");
    struct error failure;
    if (set_limits(cgroups, id, limits, limits->memory_bytes > before ? GROWS : SHRINKS,
                   &failure) == 0) {
        limit_sockets(cgroups, id, limits->memory_bytes);
        return cgroup_limit_io(cgroups, id, &limits->io, true, err);
    }
    if (failure.sys == EBUSY)
        return cgroup_memory_in_use(err, cgroup_read_number(memory, id, "memory.usage_in_bytes"),
                                    limits->memory_bytes);
    *err = failure;
    return -1;
}

static int limit(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                 struct cgroup_set *set, struct error *err)
{
    char path[PATH_SIZE];
    for (int tree = CGROUP_MEMORY; tree <= CGROUP_PIDS; tree++)
        if (mkdirat(cgroups->parents[tree], id, 0755) < 0)
            return error_sys(err, "making the cgroup %s", id);
    bool io = io_limits_any(&limits->io) && cgroup_has_io(cgroups);
    if (set_limits(cgroups, id, limits, FRESH, err) < 0 ||
        cgroup_limit_io(cgroups, id, &limits->io, false, err) < 0)
        return -1;
    limit_sockets(cgroups, id, limits->memory_bytes);

    /* The agent stays in the first ones, and commands are born there; the others they join. */
    static const enum cgroup_tree order[] = {CGROUP_BLKIO, CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS};
    snprintf(path, sizeof(path), "%s/tasks", id);
    for (size_t i = io ? 0 : 1; i < ARRAY_LEN(order); i++) {
        int parent = cgroups->parents[order[i]];
        if (cgroup_open_tasks(parent, path, &set->enter[set->enter_count], err) < 0)
            return -1;
        set->enter_count++;
    }
    set->join_count = 2;
    set->leave[set->leave_count++] = cgroups->parent_tasks[CGROUP_CPU];
    set->leave[set->leave_count++] = cgroups->parent_tasks[CGROUP_PIDS];
    return 0;
}

const struct cgroup_backend cgroup_v1 = {
    .name = "v1",
    .trees = trees,
    .prepare = prepare,
    .limit = limit,
    .resize = resize,
    .delegate = cgroup_delegate_v1,
    .delegates_folders = true,
    .memory_tree = CGROUP_MEMORY,
    .oom_file = "memory.oom_control",
    .memory_file = "memory.usage_in_bytes",
    .reclaim_file = "memory.force_empty",
    .reclaims_all = true,
    .inactive_line = "total_inactive_file",
    .pids_tree = CGROUP_PIDS,
};
