/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bounds of a plan, as a table. The lower ones are what a sandbox needs to come up at all
 * (its agent lives inside the memory limit); the upper ones are what the kernel's knobs take.
 */

#include "warden/plan.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "warden/net.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

#define SCRATCH_MIN (64 * KIB)

static const struct bound {
    const char *name;
    size_t offset;
    uint64_t min, max;
} bounds[] = {
    {"memory_bytes", offsetof(struct plan, memory_bytes), 8 * MIB, 1024 * TIB},
    {"cpu_millis", offsetof(struct plan, cpu_millis), 10, 10 * 1000 * 1000},
    {"pids_max", offsetof(struct plan, pids_max), 8, 4 * MIB},
    {"disk_bytes", offsetof(struct plan, disk_bytes), 1 * MIB, 1024 * TIB},
    {"shm_bytes", offsetof(struct plan, shm_bytes), 4 * KIB, 1024 * TIB},
    {"disk_read_bytes", offsetof(struct plan, disk_read_bytes), 0, 1024 * TIB},
    {"disk_write_bytes", offsetof(struct plan, disk_write_bytes), 0, 1024 * TIB},
    {"disk_read_ops", offsetof(struct plan, disk_read_ops), 0, UINT32_MAX},
    {"disk_write_ops", offsetof(struct plan, disk_write_ops), 0, UINT32_MAX},
    {"memory_bandwidth", offsetof(struct plan, memory_bandwidth), 0, 100},
};

enum {
    KNOWN_FLAGS = PLAN_NO_NEW_PRIVS | PLAN_READ_ONLY_ROOT | PLAN_NO_SUBPROCESS |
                  PLAN_NO_CAPABILITIES | PLAN_STRICT_CALLS,
};

static bool only(const char *text, const char *allowed)
{
    return text[strspn(text, allowed)] == '\0';
}

bool plan_id_valid(const char *id)
{
    size_t len = strlen(id);
    return len >= 1 && len <= PLAN_ID_MAX && only(id, "abcdefghijklmnopqrstuvwxyz0123456789");
}

static bool hostname_valid(const char *name)
{
    size_t len = strlen(name);
    return len >= 1 && len <= NAME_MAX_LEN && name[0] != '-' && name[len - 1] != '-' &&
           only(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
}

static int check_flags(const struct plan *plan, struct error *err)
{
    if (plan->flags & ~(uint64_t)KNOWN_FLAGS)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the plan has unknown flags");
    /* The kernel takes a filter from an ordinary process only then. */
    if ((plan->flags & PLAN_NO_SUBPROCESS) && !(plan->flags & PLAN_NO_NEW_PRIVS))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a plan without subprocesses needs no_new_privs");
    /* To the kernel a size of 0 is no limit. */
    if ((plan->flags & PLAN_READ_ONLY_ROOT) &&
        (plan->scratch_bytes < SCRATCH_MIN || plan->scratch_bytes > plan->memory_bytes))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "scratch_bytes is %" PRIu64 ", not between %" PRIu64
                         " and the memory's %" PRIu64,
                         plan->scratch_bytes, SCRATCH_MIN, plan->memory_bytes);
    return 0;
}

int plan_check(const struct plan *plan, struct error *err)
{
    if (!plan_id_valid(plan->id))
        return error_set(err, ERROR_INVALID_NAME, "a sandbox id is 1 to %d of a-z and 0-9",
                         PLAN_ID_MAX);
    if (!hostname_valid(plan->hostname))
        return error_set(err, ERROR_INVALID_NAME, "the hostname is not a DNS label");
    const struct net_wish network = net_wish_of_plan(plan);
    if (check_flags(plan, err) < 0 || net_wish_check(&network, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        uint64_t value;
        memcpy(&value, (const char *)plan + bounds[i].offset, sizeof(value));
        if (value < bounds[i].min || value > bounds[i].max)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "%s is %" PRIu64 ", not between %" PRIu64 " and %" PRIu64,
                             bounds[i].name, value, bounds[i].min, bounds[i].max);
    }
    return 0;
}

/* The other requests are parts of a plan: the rest is filled with what passes. */
static struct plan part_of_plan(const char *id, const char *hostname, uint64_t disk_bytes)
{
    return (struct plan){
        .id = id,
        .hostname = hostname,
        .memory_bytes = bounds[0].min,
        .cpu_millis = bounds[1].min,
        .pids_max = bounds[2].min,
        .disk_bytes = disk_bytes,
        .shm_bytes = bounds[4].min,
    };
}

int plan_check_clone(const struct warden_clone *clone, struct error *err)
{
    const struct plan plan = part_of_plan(clone->id, clone->hostname, clone->disk_bytes);
    if (plan_check(&plan, err) < 0)
        return -1;
    if (!plan_id_valid(clone->source) || strcmp(clone->source, clone->id) == 0)
        return error_set(err, ERROR_INVALID_NAME, "the source is not another sandbox's id");
    return 0;
}

int plan_check_update(const struct warden_update *update, struct error *err)
{
    struct plan plan = part_of_plan(update->id, "x", update->disk_bytes);
    plan.memory_bytes = update->memory_bytes;
    plan.cpu_millis = update->cpu_millis;
    plan.pids_max = update->pids_max;
    plan.disk_read_bytes = update->disk_read_bytes;
    plan.disk_write_bytes = update->disk_write_bytes;
    plan.disk_read_ops = update->disk_read_ops;
    plan.disk_write_ops = update->disk_write_ops;
    plan.memory_bandwidth = update->memory_bandwidth;
    return plan_check(&plan, err);
}
