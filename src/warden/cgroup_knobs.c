/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits are files, and changing several of them is not one step for the kernel. It has to be one
 * for whoever asked: so what a file held is read before it is written, and put back when a later
 * one fails.
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { KNOB_PATH_MAX = 80, KNOBS_MAX = 8, KNOB_TEXT_MAX = 64 };

static void knob_path(char out[KNOB_PATH_MAX], const char *id, const char *file)
{
    snprintf(out, KNOB_PATH_MAX, "%s/%s", id, file);
}

uint64_t cgroup_read_number(int dirfd, const char *id, const char *file)
{
    char path[KNOB_PATH_MAX], text[KNOB_TEXT_MAX];
    knob_path(path, id, file);
    if (file_read_at(dirfd, path, text, sizeof(text), NULL) < 0)
        return 0;
    return strtoull(text, NULL, 10);
}

int cgroup_memory_in_use(struct error *err, uint64_t used, uint64_t wanted)
{
    return error_set(err, ERROR_RESOURCE_IN_USE,
                     "memory: %" PRIu64 " MiB are in use and cannot be taken back, which is more "
                     "than the new limit of %" PRIu64 " MiB",
                     used >> 20, wanted >> 20);
}

int cgroup_write_knobs(const struct cgroups *cgroups, const char *id, bool fresh,
                       const struct cgroup_knob *knobs, size_t count, struct error *err)
{
    char path[KNOB_PATH_MAX], before[KNOBS_MAX][KNOB_TEXT_MAX];
    for (size_t i = 0; i < count && i < KNOBS_MAX; i++) {
        struct error failure;
        int parent = cgroups->parents[knobs[i].tree];
        knob_path(path, id, knobs[i].file);
        before[i][0] = '\0';
        if (!fresh)
            file_read_at(parent, path, before[i], sizeof(before[i]), NULL);
        if (file_write_at(parent, path, knobs[i].value, &failure) == 0 ||
            (knobs[i].optional && failure.sys == ENOENT))
            continue;
        while (i-- > 0) {
            knob_path(path, id, knobs[i].file);
            if (before[i][0] != '\0')
                file_write_at(cgroups->parents[knobs[i].tree], path, before[i], NULL);
        }
        *err = failure;
        return -1;
    }
    return 0;
}

int cgroup_resize(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                  struct error *err)
{
    return cgroups->backend->resize(cgroups, id, limits, err);
}
