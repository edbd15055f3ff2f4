/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bounds are here and not in the warden's plan check because they are about sense, not safety: a
 * sandbox with less than this does not get its agent and a shell to run.
 */

#include "sandbox/spec.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/quantity.h"

#define MIB (UINT64_C(1) << 20)

enum { PIDS_MAX = 1024 };

struct bound {
    const char *field;
    const char *fallback;
    int (*parse)(const char *text, uint64_t *ret_value, struct error *err);
    uint64_t min, max;
    const char *range; /* for people */
};

static const struct bound cpu_bound = {"cpu", "1000m", quantity_cpu,
                                       10,    1024000, "between 10m and 1024"};
static const struct bound memory_bound = {
    "memory", "1Gi", quantity_bytes, 16 * MIB, UINT64_C(1) << 44, "between 16Mi and 16Ti"};
static const struct bound disk_bound = {
    "disk", "10Gi", quantity_bytes, 16 * MIB, UINT64_C(1) << 50, "between 16Mi and 1Pi"};

void spec_defaults(struct sandbox_resources *resources)
{
    if (resources->cpu == NULL)
        resources->cpu = cpu_bound.fallback;
    if (resources->memory == NULL)
        resources->memory = memory_bound.fallback;
    if (resources->disk == NULL)
        resources->disk = disk_bound.fallback;
}

static int read_bound(const struct bound *bound, const char *text, uint64_t *ret_value,
                      struct error *err)
{
    uint64_t value;
    if (bound->parse(text, &value, err) < 0)
        return error_prefix(err, "spec.resources.%s", bound->field);
    if (value < bound->min || value > bound->max)
        return error_set(err, ERROR_INVALID_QUANTITY, "spec.resources.%s: \"%.40s\" is not %s",
                         bound->field, text, bound->range);
    *ret_value = value;
    return 0;
}

int spec_limits(const struct sandbox_resources *resources, struct spec_limits *ret_limits,
                struct error *err)
{
    struct spec_limits limits;
    if (read_bound(&cpu_bound, resources->cpu, &limits.cpu_millis, err) < 0 ||
        read_bound(&memory_bound, resources->memory, &limits.memory_bytes, err) < 0 ||
        read_bound(&disk_bound, resources->disk, &limits.disk_bytes, err) < 0)
        return -1;
    *ret_limits = limits;
    return 0;
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
        .pids_max = PIDS_MAX,
        .disk_bytes = limits->disk_bytes,
        .shm_bytes = shm,
    };
}
