/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What there is below the sandboxes, for whoever promises it. A volume in a sparse file is as big
 * as somebody said and holds as much as the file system below it has room for, whichever is less.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "base/layout.h"
#include "warden/warden.h"

enum { BLOCK = 512 }; /* what st_blocks counts in */

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

static void measure_disk(const struct warden *warden, struct warden_machine *machine)
{
    struct statvfs below, volume;
    struct stat file;
    if (fstatvfs(warden->data_fd, &below) < 0)
        return;
    uint64_t left = below.f_bavail * below.f_frsize;
    machine->disk_free = left;
    machine->disk_total = left;
    if (!warden->storage.mounted || fstatvfs(warden->storage.fd, &volume) < 0 ||
        fstatat(warden->data_fd, LAYOUT_VOLUME_IMG, &file, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    uint64_t size = volume.f_blocks * volume.f_frsize;
    uint64_t taken = (uint64_t)file.st_blocks * BLOCK; /* of the file system below */
    machine->disk_used = (volume.f_blocks - volume.f_bfree) * volume.f_frsize;
    machine->disk_total = at_most(size, taken + left);
    uint64_t slack = taken > machine->disk_used ? taken - machine->disk_used : 0;
    machine->disk_free = at_most(volume.f_bavail * volume.f_frsize, left + slack);
    machine->flags |= MACHINE_OWN_VOLUME;
}

static void describe_io(const struct warden *warden, char *text, size_t size,
                        struct warden_machine *machine)
{
    const struct cgroups *cgroups = &warden->cgroups;
    if (!cgroup_has_io(cgroups)) {
        snprintf(text, size, "not enforced: %s",
                 cgroups->devices.count == 0 ? "the files are on no disk that can be limited"
                                             : "this machine has no blkio or io controller");
        return;
    }
    bool v2 = cgroups->backend == &cgroup_v2;
    machine->flags |= MACHINE_LIMITS_READS | (v2 ? MACHINE_LIMITS_WRITES : 0);
    int len = snprintf(text, size, "%s on", v2 ? "io.max" : "blkio.throttle");
    for (size_t i = 0; i < cgroups->devices.count && (size_t)len < size; i++)
        len += snprintf(text + len, size - (size_t)len, "%s %u:%u", i > 0 ? "," : "",
                        major(cgroups->devices.of[i]), minor(cgroups->devices.of[i]));
    if (!v2 && (size_t)len < size)
        snprintf(text + len, size - (size_t)len,
                 ": reads and direct writes; cgroup v1 cannot limit what is written through the "
                 "page cache");
}

void machine_answer(struct connection *connection, uint32_t id)
{
    const struct warden *warden = connection->warden;
    char io[256], six[SIX_WHY_MAX];
    struct warden_machine machine = {.disk_io = io};
    measure_disk(warden, &machine);
    describe_io(warden, io, sizeof(io), &machine);
    machine.memory_bandwidth = warden->resctrl.why;
    if (warden->resctrl.fd >= 0)
        machine.flags |= MACHINE_LIMITS_MEMORY_BANDWIDTH;
    if (!warden->net.on)
        machine.ipv6 = warden->net.why;
    else if (six_hindered(&warden->net.router, six, sizeof(six)))
        machine.ipv6 = six;
    wire_encode(&connection->out, &warden_machine_schema, id, &machine);
    connection_flush(connection);
}
