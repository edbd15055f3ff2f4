/* SPDX-License-Identifier: Apache-2.0 */

/* Counts what each workspace uses, and holds new uses against its quotas. */

#include "sandbox/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum quota promised_as[RESOURCE_COUNT] = {
    [RESOURCE_CPU] = QUOTA_CPU,
    [RESOURCE_MEMORY] = QUOTA_MEMORY,
    [RESOURCE_DISK] = QUOTA_DISK,
    [RESOURCE_PIDS] = QUOTA_PROCESSES,
    [RESOURCE_DISK_READ] = QUOTA_COUNT,
    [RESOURCE_DISK_WRITE] = QUOTA_COUNT,
    [RESOURCE_DISK_READ_OPS] = QUOTA_COUNT,
    [RESOURCE_DISK_WRITE_OPS] = QUOTA_COUNT,
    [RESOURCE_NETWORK_IN] = QUOTA_COUNT,
    [RESOURCE_NETWORK_OUT] = QUOTA_COUNT,
    [RESOURCE_MEMORY_BANDWIDTH] = QUOTA_COUNT,
};

enum quota quota_of_resource(enum resource resource)
{
    return promised_as[resource];
}

const struct tenant *tenant_find(const struct tenants *tenants, const char *workspace)
{
    struct tenant *tenant;
    HASH_FIND_STR(tenants->by_name, workspace, tenant);
    return tenant;
}

struct tenant *tenant_hold(struct tenants *tenants, const char *workspace)
{
    struct tenant *tenant;
    HASH_FIND_STR(tenants->by_name, workspace, tenant);
    if (tenant == NULL) {
        tenant = calloc(1, sizeof(*tenant));
        if (tenant == NULL)
            abort(); /* a few hundred bytes: nothing sensible can go on */
        snprintf(tenant->name, sizeof(tenant->name), "%s", workspace);
        tenant->number = tenants->numbers++;
        HASH_ADD_STR(tenants->by_name, name, tenant);
    }
    tenant->refs++;
    return tenant;
}

void tenant_drop(struct tenants *tenants, struct tenant *tenant)
{
    if (tenant == NULL || --tenant->refs > 0)
        return;
    HASH_DEL(tenants->by_name, tenant);
    free(tenant);
}

const struct quotas *tenant_quotas(const struct tenants *tenants, const char *workspace)
{
    static const struct quotas none;
    return tenants->quotas == NULL ? &none : tenants->quotas(tenants->quotas_ctx, workspace);
}

static uint64_t used_of(const struct tenant *tenant, enum quota kind)
{
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (promised_as[i] == kind)
            return tenant->promised[i];
    return kind == QUOTA_SANDBOXES ? tenant->sandboxes
           : kind == QUOTA_HISTORY ? tenant->history_bytes
                                   : 0;
}

int tenant_check(const struct tenants *tenants, const struct tenant *tenant, enum quota kind,
                 uint64_t more, struct error *err)
{
    enum error_code code =
        kind == QUOTA_SANDBOXES ? ERROR_TOO_MANY_SANDBOXES : ERROR_LIMIT_EXCEEDED;
    return quota_check(tenant_quotas(tenants, tenant->name), kind, tenant->name,
                       used_of(tenant, kind), more, code, err);
}

uint64_t tenant_used(const struct tenants *tenants, const char *workspace, enum quota kind)
{
    const struct tenant *tenant = tenant_find(tenants, workspace);
    return tenant == NULL ? 0 : used_of(tenant, kind);
}
