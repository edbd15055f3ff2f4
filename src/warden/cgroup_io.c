/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rates of disk I/O. v2 limits all of it (io.max). v1 limits what a process does itself, reads and
 * direct writes (blkio.throttle); what it writes into the page cache is written back by the kernel
 * in the root group's name, and no v1 controller can tell whose it was.
 *
 * A v1 group for this is made for those sandboxes alone that have a limit, since every group costs
 * time at a start. One that gets its first limit while it runs is moved into a new group then.
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { PATH_SIZE = 80, VALUE_SIZE = 160, MOVE_PASSES = 3 };

bool io_limits_any(const struct io_limits *io)
{
    return io->read_bytes != 0 || io->write_bytes != 0 || io->read_ops != 0 || io->write_ops != 0;
}

/* ---- v2 ---- */

static void format_max(char *out, size_t size, const char *key, uint64_t value)
{
    if (value == 0)
        snprintf(out, size, " %s=max", key);
    else
        snprintf(out, size, " %s=%" PRIu64, key, value);
}

static int set_v2(const struct cgroups *cgroups, const char *id, const struct io_limits *io,
                  struct error *err)
{
    char path[PATH_SIZE], value[VALUE_SIZE];
    const struct {
        const char *key;
        uint64_t value;
    } parts[] = {{"rbps", io->read_bytes},
                 {"wbps", io->write_bytes},
                 {"riops", io->read_ops},
                 {"wiops", io->write_ops}};
    snprintf(path, sizeof(path), "%s/io.max", id);
    for (size_t d = 0; d < cgroups->devices.count; d++) {
        dev_t dev = cgroups->devices.of[d];
        int len = snprintf(value, sizeof(value), "%u:%u", major(dev), minor(dev));
        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
            format_max(value + len, sizeof(value) - (size_t)len, parts[i].key, parts[i].value);
            len += (int)strlen(value + len);
        }
        if (file_write_at(cgroups->parents[CGROUP_UNIFIED], path, value, err) < 0)
            return error_prefix(err, "limiting disk I/O on %u:%u", major(dev), minor(dev));
    }
    return 0;
}

/* ---- v1 ---- */

static int set_v1(const struct cgroups *cgroups, const char *id, const struct io_limits *io,
                  struct error *err)
{
    const struct {
        const char *file;
        uint64_t value;
    } knobs[] = {{"blkio.throttle.read_bps_device", io->read_bytes},
                 {"blkio.throttle.write_bps_device", io->write_bytes},
                 {"blkio.throttle.read_iops_device", io->read_ops},
                 {"blkio.throttle.write_iops_device", io->write_ops}};
    char path[PATH_SIZE], value[VALUE_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++)
        for (size_t d = 0; d < cgroups->devices.count; d++) {
            dev_t dev = cgroups->devices.of[d];
            snprintf(path, sizeof(path), "%s/%s", id, knobs[i].file);
            snprintf(value, sizeof(value), "%u:%u %" PRIu64, major(dev), minor(dev),
                     knobs[i].value); /* 0 takes a limit away */
            if (file_write_at(cgroups->parents[CGROUP_BLKIO], path, value, err) < 0)
                return error_prefix(err, "limiting disk I/O on %u:%u", major(dev), minor(dev));
        }
    return 0;
}

struct move {
    int parent;
    const char *path;
};

static void move_one(pid_t pid, void *arg)
{
    const struct move *move = arg;
    cgroup_write_number(move->parent, move->path, (uint64_t)pid, NULL); /* it may have ended */
}

/* What is born meanwhile is born where its parent is, or is met in the next pass. */
static void move_all(const struct cgroups *cgroups, const char *id)
{
    char path[PATH_SIZE];
    struct move move = {.parent = cgroups->parents[CGROUP_BLKIO], .path = path};
    snprintf(path, sizeof(path), "%s/cgroup.procs", id);
    for (int i = 0; i < MOVE_PASSES; i++)
        cgroup_each_pid(cgroups->parents[CGROUP_UNIFIED], id, move_one, &move);
}

/* ---- both ---- */

bool cgroup_has_io(const struct cgroups *cgroups)
{
    if (cgroups->devices.count == 0)
        return false;
    return cgroups->backend == &cgroup_v2 ? cgroups->io_controller
                                          : cgroups->parents[CGROUP_BLKIO] >= 0;
}

int cgroup_limit_io(const struct cgroups *cgroups, const char *id, const struct io_limits *io,
                    bool runs, struct error *err)
{
    struct error ignored; /* of taking limits away that may never have been there */
    bool any = io_limits_any(io), v2 = cgroups->backend == &cgroup_v2;
    int parent = cgroups->parents[CGROUP_BLKIO];
    if (!cgroup_has_io(cgroups))
        return 0;
    bool there = v2 ? runs : faccessat(parent, id, F_OK, 0) == 0;
    if (!there && !any)
        return 0;
    if (!there && !v2 && mkdirat(parent, id, 0755) < 0)
        return error_sys(err, "making the cgroup %s", id);
    if ((v2 ? set_v2 : set_v1)(cgroups, id, io, any ? err : &ignored) < 0 && any)
        return -1;
    if (!there && !v2 && runs)
        move_all(cgroups, id);
    return 0;
}
