/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory of those who do not need it now. It comes back by page faults, one by one, when they go
 * on. v1 does it in one write, v2 by the number of bytes: there in portions, so that it can be
 * given up in between.
 */

#include <stdio.h>

#include "warden/cgroup.h"

enum { PORTION = 64 << 20, RECLAIM_PATH_MAX = 64 };

void cgroup_reclaim(const struct cgroups *cgroups, const char *id, bool (*stop)(void *arg),
                    void *arg)
{
    const struct cgroup_backend *backend = cgroups->backend;
    int parent = cgroups->parents[backend->memory_tree];
    char path[RECLAIM_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", id, backend->reclaim_file);
    while (!stop(arg)) {
        uint64_t used = cgroup_read_number(parent, id, backend->memory_file);
        uint64_t part = used < PORTION ? used : PORTION;
        /* It fails when less could be had than was asked for: there is no more. */
        if (used == 0 || cgroup_write_number(parent, path, part, NULL) < 0 || backend->reclaims_all)
            return;
    }
}
