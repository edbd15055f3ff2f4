/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control groups for programs that cellad runs on behalf of a workspace: git, on the histories of
 * its sandboxes. cellad has no rights over control groups; it gets a file of the group that was
 * opened here, and the kernel goes by the rights of whoever opened it. So what a workspace makes
 * git do is limited for all of its sandboxes together, whether they run or not.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/cgroup.h"
#include "warden/files.h"

#define PREFIX       "git-" /* no id of a sandbox has a hyphen */
#define MEMORY_BYTES (UINT64_C(2) << 30)

enum { NAME_SIZE = 16, PATH_SIZE = 64, CPU_MILLIS = 1000, GONE_MS = 1000, GONE_STEP_MS = 10 };

static const struct part {
    enum cgroup_tree tree;
    const char *join; /* takes a pid */
} v1_parts[] = {{CGROUP_MEMORY, "tasks"}, {CGROUP_CPU, "tasks"}},
  v2_parts[] = {{CGROUP_UNIFIED, "cgroup.procs"}};

static size_t parts_of(const struct cgroups *cgroups, const struct part **ret_parts)
{
    bool v1 = cgroups->backend == &cgroup_v1;
    *ret_parts = v1 ? v1_parts : v2_parts;
    return v1 ? ARRAY_LEN(v1_parts) : ARRAY_LEN(v2_parts);
}

bool cgroup_is_helper(const char *name)
{
    return strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0;
}

static int set_limit(int parent, const char *name, const char *file, const char *value,
                     struct error *err)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", name, file);
    return file_write_at(parent, path, value, err);
}

static int set_limits(const struct cgroups *cgroups, enum cgroup_tree tree, const char *name,
                      struct error *err)
{
    struct cpu_quota cpu = cgroup_cpu_quota(CPU_MILLIS);
    char memory[24], period[24], quota[24], cpu_max[64];
    int parent = cgroups->parents[tree];
    snprintf(memory, sizeof(memory), "%" PRIu64, MEMORY_BYTES);
    snprintf(period, sizeof(period), "%" PRIu64, cpu.period_us);
    snprintf(quota, sizeof(quota), "%" PRIu64, cpu.quota_us);
    cgroup_format_cpu_max(CPU_MILLIS, cpu_max, sizeof(cpu_max));
    if (tree == CGROUP_MEMORY)
        return set_limit(parent, name, "memory.limit_in_bytes", memory, err);
    if (tree == CGROUP_CPU)
        return set_limit(parent, name, "cpu.cfs_period_us", period, err) < 0
                   ? -1
                   : set_limit(parent, name, "cpu.cfs_quota_us", quota, err);
    return set_limit(parent, name, "memory.max", memory, err) < 0
               ? -1
               : set_limit(parent, name, "cpu.max", cpu_max, err);
}

int cgroup_open_helper(const struct cgroups *cgroups, uint64_t group, uint64_t part, int *ret_fd,
                       struct error *err)
{
    const struct part *parts;
    char name[NAME_SIZE], path[PATH_SIZE];
    size_t count = parts_of(cgroups, &parts);
    if (group >= HELPER_GROUPS)
        return error_set(err, ERROR_INVALID_ARGUMENT, "there are %d groups for helpers",
                         HELPER_GROUPS);
    if (part >= count)
        return error_set(err, ERROR_FILE_NOT_FOUND, "a group for helpers has %zu parts", count);
    enum cgroup_tree tree = parts[part].tree;
    snprintf(name, sizeof(name), PREFIX "%" PRIu64, group);
    if (mkdirat(cgroups->parents[tree], name, 0755) < 0 && errno != EEXIST)
        return error_sys(err, "making the cgroup %s", name);
    if (set_limits(cgroups, tree, name, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/%s", name, parts[part].join);
    return cgroup_open_tasks(cgroups->parents[tree], path, ret_fd, err);
}

static void end_one(pid_t pid, void *arg)
{
    if (pid > 1)
        kill(pid, SIGKILL);
}

static void remove_helper(int parent, const char *name)
{
    for (int waited = 0; waited < GONE_MS; waited += GONE_STEP_MS) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        cgroup_each_pid(parent, name, end_one, NULL);
        poll(NULL, 0, GONE_STEP_MS); /* nothing tells when a v1 group is empty */
    }
}

void cgroup_remove_helpers(const struct cgroups *cgroups)
{
    const struct part *parts;
    size_t count = parts_of(cgroups, &parts);
    for (size_t i = 0; i < count; i++)
        for (int group = 0; group < HELPER_GROUPS; group++) {
            char name[NAME_SIZE];
            snprintf(name, sizeof(name), PREFIX "%d", group);
            remove_helper(cgroups->parents[parts[i].tree], name);
        }
}
