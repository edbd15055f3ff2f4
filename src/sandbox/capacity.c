/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The warden's word about the machine is kept for a few seconds. Whoever makes a sandbox sets off a
 * new look when it is older, and goes on with the one that is there.
 */

#include "sandbox/capacity.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "loop/co.h"
#include "sandbox/metrics.h"
#include "sandbox/state.h"

enum { FRESH_MS = 10 * 1000 };

/* A file system that is not ours alone says what is free, and not what of the rest is layers. */
static uint64_t sampled_disk(struct sandboxes *s)
{
    double sum = 0;
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next) {
        struct sandbox_load load = sandbox_load(sb);
        if (!isnan(load.disk))
            sum += load.disk;
    }
    return (uint64_t)sum;
}

static void take(struct sandboxes *s, const struct warden_machine *machine)
{
    struct machine_words *words = &s->words;
    uint64_t used = machine->flags & MACHINE_OWN_VOLUME ? machine->disk_used : sampled_disk(s);
    uint64_t total =
        machine->flags & MACHINE_OWN_VOLUME ? machine->disk_total : machine->disk_free + used;
    words->flags = machine->flags;
    words->disk_below = machine->disk_below;
    words->disk_reserve = machine->disk_reserve;
    words->volume_size = machine->volume_size;
    snprintf(words->disk_io, sizeof(words->disk_io), "%s",
             machine->disk_io == NULL ? "" : machine->disk_io);
    snprintf(words->memory_bandwidth, sizeof(words->memory_bandwidth), "%s",
             machine->memory_bandwidth == NULL ? "" : machine->memory_bandwidth);
    machine_set_disk(&s->admission.machine, total);
    s->admission.disk_free = machine->disk_free;
    s->admission.disk_used = used;
}

int capacity_look(struct sandboxes *s, struct error *err)
{
    struct warden_machine machine;
    struct arena *arena = arena_new();
    int rc = s->provider->ops->machine(s->provider, arena, &machine, err);
    if (rc == 0)
        take(s, &machine);
    arena_free(arena);
    s->words.looked_ms = loop_now(s->loop);
    return rc;
}

static void look_again(void *arg)
{
    struct sandboxes *s = arg;
    struct error err;
    if (capacity_look(s, &err) < 0)
        log_debug("looking at the machine: %s", err.message);
    s->words.looking = false;
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void capacity_keep_fresh(struct sandboxes *s)
{
    struct error err;
    if (s->words.looking || loop_now(s->loop) - s->words.looked_ms < FRESH_MS)
        return;
    s->words.looking = true;
    s->drivers++;
    if (co_spawn(s->loop, look_again, s, NULL, &err) < 0) {
        s->words.looking = false;
        s->drivers--;
    }
}

bool sandboxes_enforces(const struct sandboxes *s, enum resource resource, const char **ret_how)
{
    static const char *const plain[RESOURCE_COUNT] = {
        [RESOURCE_CPU] = "cgroup cpu quota",
        [RESOURCE_MEMORY] = "cgroup memory limit, swap included",
        [RESOURCE_PIDS] = "cgroup process limit",
    };
    const struct machine_words *words = &s->words;
    bool network = resource == RESOURCE_NETWORK_IN || resource == RESOURCE_NETWORK_OUT;
    if (network) {
        *ret_how = s->networks.available ? "tc token bucket, of sandboxes with a network"
                                         : "not enforced: sandboxes have no network here";
        return s->networks.available;
    }
    if (plain[resource] != NULL) {
        *ret_how = plain[resource];
        return true;
    }
    if (resource == RESOURCE_DISK) {
        *ret_how = words->storage;
        return strstr(words->storage, "not enforced") == NULL;
    }
    if (resource == RESOURCE_MEMORY_BANDWIDTH) {
        *ret_how = words->memory_bandwidth;
        return words->flags & MACHINE_LIMITS_MEMORY_BANDWIDTH;
    }
    bool writes = resource == RESOURCE_DISK_WRITE || resource == RESOURCE_DISK_WRITE_OPS;
    *ret_how = words->disk_io;
    return words->flags & (writes ? MACHINE_LIMITS_WRITES : MACHINE_LIMITS_READS);
}

static void add_used(struct capacity *capacity, const struct sandbox_load *load)
{
    const struct {
        enum resource resource;
        double used;
    } figures[] = {{RESOURCE_CPU, load->cpu * 1000},
                   {RESOURCE_MEMORY, load->memory},
                   {RESOURCE_PIDS, (double)load->tasks}};
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        if (load->time_ms != 0 && !isnan(figures[i].used))
            capacity->of[figures[i].resource].used += figures[i].used;
}

int sandboxes_capacity(struct sandboxes *s, struct arena *arena, struct capacity *ret_capacity,
                       struct error *err)
{
    const struct admission *a = &s->admission;
    struct error ignored;
    if (capacity_look(s, &ignored) < 0) /* what was known a moment ago is worth having */
        log_debug("looking at the machine: %s", ignored.message);
    struct capacity capacity = {.disk_free = a->disk_free};
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        struct capacity_row *row = &capacity.of[i];
        *row = (struct capacity_row){
            .total = a->machine.total[i],
            .allocated = a->promised[i],
            .available = admission_free(a, (enum resource)i),
            .overcommit = (double)a->overcommit[i] / 100,
            .used = i <= (int)RESOURCE_PIDS ? 0 : NAN,
            .source = a->machine.source[i],
        };
        row->enforced = sandboxes_enforces(s, (enum resource)i, &row->how);
        row->how = arena_strdup(arena, row->how);
    }
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next) {
        struct sandbox_load load = sandbox_load(sb);
        capacity.sandboxes++;
        capacity.running += sb->status == SANDBOX_RUNNING;
        add_used(&capacity, &load);
    }
    capacity.of[RESOURCE_DISK].used = (double)a->disk_used;
    *ret_capacity = capacity;
    return 0;
}
