/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What sandboxes use. Everything is read from files that the kernel keeps up to date, a few tens of
 * microseconds per sandbox; a request names a few sandboxes at most, so that the loop is not away
 * for long however many there are.
 */

#include "warden/warden.h"

static void sample_disk(struct sandbox *sandbox, struct warden_sample *sample)
{
    struct warden *warden = sandbox->warden;
    bool known = storage_usage(&warden->storage, sandbox->id, &sample->disk_bytes);
    if (!known) {
        meter_want(warden, sandbox);
        known = sandbox->disk_measured;
        sample->disk_bytes = sandbox->disk_bytes;
    }
    if (known)
        sample->known |= SAMPLE_DISK;
}

void stats_answer(struct connection *connection, uint32_t id, const struct warden_stats *request)
{
    struct warden *warden = connection->warden;
    size_t count = 0;
    strv_each (name, request->ids) {
        struct sandbox *sandbox = sandbox_find(warden, name);
        if (++count > STATS_IDS_MAX)
            break;
        if (sandbox == NULL || sandbox->state != SANDBOX_RUNNING)
            continue;
        struct warden_sample sample = {.id = sandbox->id};
        cgroup_sample(&warden->cgroups, sandbox->id, &sample);
        sample_disk(sandbox, &sample);
        net_sample(warden, sandbox, &sample);
        wire_encode(&connection->out, &warden_sample_schema, id, &sample);
    }
    wire_encode(&connection->out, &wire_ok_schema, id, NULL);
    connection_flush(connection);
}
