/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bounds are here and not in the warden's plan check because they are about sense, not safety: a
 * sandbox with less than this does not get its agent and a shell to run.
 */

#include "sandbox/spec.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/quantity.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

typedef int parse_fn(const char *text, uint64_t *ret_value, struct error *err);

static const struct bound {
    const char *fallback; /* NULL: none */
    parse_fn *parse;
    uint64_t min, max;
    const char *range; /* for people */
} bounds[RESOURCE_COUNT] = {
    [RESOURCE_CPU] = {"1000m", quantity_cpu, 10, 1024000, "between 10m and 1024"},
    [RESOURCE_MEMORY] = {"1Gi", quantity_bytes, 16 * MIB, TIB << 4, "between 16Mi and 16Ti"},
    [RESOURCE_DISK] = {"10Gi", quantity_bytes, 16 * MIB, TIB << 10, "between 16Mi and 1Pi"},
    [RESOURCE_PIDS] = {NULL, quantity_count, 16, 4 * MIB, "between 16 and 4194304"},
    [RESOURCE_DISK_READ] = {NULL, quantity_bytes, 64 * KIB, TIB, "between 64Ki and 1Ti per second"},
    [RESOURCE_DISK_WRITE] = {NULL, quantity_bytes, 64 * KIB, TIB,
                             "between 64Ki and 1Ti per second"},
    [RESOURCE_DISK_READ_OPS] = {NULL, quantity_count, 10, 100 * 1000 * 1000,
                                "between 10 and 100M per second"},
    [RESOURCE_DISK_WRITE_OPS] = {NULL, quantity_count, 10, 100 * 1000 * 1000,
                                 "between 10 and 100M per second"},
    [RESOURCE_NETWORK_IN] = {NULL, quantity_bytes, 1000, TIB, "between 1k and 1Ti per second"},
    [RESOURCE_NETWORK_OUT] = {NULL, quantity_bytes, 1000, TIB, "between 1k and 1Ti per second"},
    [RESOURCE_MEMORY_BANDWIDTH] = {NULL, quantity_bytes, 1000 * 1000, TIB << 4,
                                   "between 1M and 16Ti per second"},
};

/* Nobody may have as many processes as there is room for, so this one is not shown and yet there.
 */
enum { PIDS_DEFAULT = 1024 };

const char *spec_at_most(const struct machine *machine, enum resource resource, const char *text,
                         struct arena *arena)
{
    uint64_t value, has = machine->total[resource];
    if (text == NULL || bounds[resource].parse(text, &value, NULL) < 0 || value <= has ||
        has < bounds[resource].min)
        return text;
    return spec_text(resource, has, arena);
}

void spec_defaults(const struct machine *machine, struct sandbox_resources *resources,
                   struct arena *arena)
{
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (resources->of[i] == NULL)
            resources->of[i] = spec_at_most(machine, (enum resource)i, bounds[i].fallback, arena);
}

int spec_quantity(enum resource resource, const char *text, uint64_t *ret_value, struct error *err)
{
    return bounds[resource].parse(text, ret_value, err);
}

uint64_t spec_minimum(enum resource resource)
{
    return bounds[resource].min;
}

static int read_bound(const struct machine *machine, enum resource resource, const char *text,
                      uint64_t *ret_value, struct error *err)
{
    const struct bound *bound = &bounds[resource];
    const char *name = resource_name(resource);
    bool share = quantity_is_share(text);
    uint64_t value;
    if ((share ? quantity_share(text, machine->total[resource], &value, err)
               : bound->parse(text, &value, err)) < 0)
        return error_prefix(err, "spec.resources.%s", name);
    if (share && value > 0) /* of a machine that may be another one tomorrow */
        value = value < bound->min ? bound->min : value > bound->max ? bound->max : value;
    if (value < bound->min || value > bound->max)
        return error_set(err, ERROR_INVALID_QUANTITY, "spec.resources.%s: \"%.40s\" is not %s",
                         name, text, bound->range);
    *ret_value = value;
    return 0;
}

int spec_limits(const struct machine *machine, const struct sandbox_resources *resources,
                struct spec_limits *ret_limits, struct error *err)
{
    struct spec_limits limits = {.pids = PIDS_DEFAULT};
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (resources->of[i] != NULL &&
            read_bound(machine, (enum resource)i, resources->of[i], &limits.of[i], err) < 0)
            return -1;
    *ret_limits = limits;
    return 0;
}

const char *spec_text(enum resource resource, uint64_t value, struct arena *arena)
{
    if (resource == RESOURCE_CPU)
        return arena_printf(arena, "%" PRIu64 "m", value);
    if (bounds[resource].parse == quantity_bytes && value != 0 && value % MIB == 0)
        return arena_printf(arena, "%" PRIu64 "Mi", value / MIB);
    return arena_printf(arena, "%" PRIu64, value);
}

void spec_settle(struct sandbox_resources *resources, const struct spec_limits *limits,
                 struct arena *arena)
{
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (resources->of[i] != NULL && quantity_is_share(resources->of[i]))
            resources->of[i] = spec_text((enum resource)i, limits->of[i], arena);
}

static bool is_env_name(const char *item, size_t len)
{
    if (len == 0 || isdigit((unsigned char)item[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)item[i]) && item[i] != '_')
            return false;
    return true;
}

int spec_check_env(struct slice env, struct error *err)
{
    size_t count = 0;
    if (env.len > ENV_BYTES_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE,
                         "environment variables take more than %d bytes", ENV_BYTES_MAX);
    strv_each (item, env) {
        const char *eq = strchr(item, '=');
        if (eq == NULL || !is_env_name(item, (size_t)(eq - item)))
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "environment variable \"%.60s\" is not NAME=value with a name of "
                             "letters, digits and _ that does not begin with a digit",
                             item);
        if (++count > ENV_VARS_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT, "more than %d environment variables",
                             ENV_VARS_MAX);
    }
    return 0;
}

void spec_plan(const char *id, const char *name, const char *image,
               const struct spec_limits *limits, struct plan *ret_plan)
{
    uint64_t shm = limits->memory_bytes / 2 < 64 * MIB ? limits->memory_bytes / 2 : 64 * MIB;
    *ret_plan = (struct plan){
        .id = id,
        .hostname = name,
        .image = image,
        .memory_bytes = limits->memory_bytes,
        .cpu_millis = limits->cpu_millis,
        .pids_max = limits->pids,
        .disk_bytes = limits->disk_bytes,
        .shm_bytes = shm,
        .disk_read_bytes = limits->disk_read,
        .disk_write_bytes = limits->disk_write,
        .disk_read_ops = limits->disk_read_ops,
        .disk_write_ops = limits->disk_write_ops,
    };
}

uint64_t spec_bandwidth_share(const struct machine *machine, const struct spec_limits *limits)
{
    uint64_t total = machine->total[RESOURCE_MEMORY_BANDWIDTH];
    if (limits->memory_bandwidth == 0 || total == 0)
        return 0;
    uint64_t percent = limits->memory_bandwidth / (total / 100 + 1);
    return percent < 1 ? 1 : percent > 100 ? 100 : percent;
}
