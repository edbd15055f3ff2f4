/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What there is below the sandboxes, for whoever promises it: what the volume holds, and what it
 * may still grow by.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "warden/warden.h"

static void measure_disk(struct warden *warden, struct warden_machine *machine)
{
    struct statvfs below, volume;
    const struct volume_state *state = &warden->volume.state;
    if (fstatvfs(warden->data_fd, &below) < 0)
        return;
    uint64_t left = (uint64_t)below.f_bavail * below.f_frsize;
    machine->disk_below = left;
    machine->disk_free = left;
    machine->disk_total = left;
    if (fstatvfs(warden->storage.fd, &volume) == 0 && volume.f_flag & ST_RDONLY)
        machine->flags |= MACHINE_DISK_READ_ONLY;
    volume_keeper_look(warden);
    if (!warden->storage.mounted || !warden->volume.known)
        return;
    uint64_t more = volume_growable(state);
    machine->disk_used = state->used;
    machine->disk_total = state->size + more;
    machine->disk_free = state->free + more;
    machine->volume_size = state->size;
    machine->disk_reserve = state->reserve;
    machine->flags |= MACHINE_OWN_VOLUME;
    if (warden->storage.sparse)
        machine->flags |= MACHINE_SPARSE_VOLUME;
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
    struct warden *warden = connection->warden;
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
