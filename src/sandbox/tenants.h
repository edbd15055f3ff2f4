/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What each workspace uses of its quotas (base/quotas.h): sandboxes, what they are promised, and
 * the bytes of their histories. Nothing is stored: all of it is counted while sandboxes are loaded
 * and changed, so there is no second truth that a crash could leave behind.
 *
 * A tenant exists for as long as somebody holds it.
 */

#include <stdint.h>
#include <uthash.h>

#include "base/error.h"
#include "base/names.h"
#include "base/quotas.h"
#include "sandbox/resources.h"

struct tenant {
    char name[NAME_MAX_LEN + 1];
    unsigned number; /* counts up, from one tenant to the next */
    unsigned refs;
    unsigned sandboxes;
    uint64_t promised[RESOURCE_COUNT];
    uint64_t history_bytes; /* of all repositories, as far as they were looked at */
    UT_hash_handle hh;
};

/* The quotas of a workspace as they are now; valid until they are changed. */
typedef const struct quotas *quotas_of(const void *ctx, const char *workspace);

struct tenants {
    struct tenant *by_name;
    unsigned numbers;  /* that were given */
    quotas_of *quotas; /* NULL: there are no limits */
    const void *quotas_ctx;
};

/* The tenant of that name, made when it is the first time; held. */
struct tenant *tenant_hold(struct tenants *tenants, const char *workspace);
void tenant_drop(struct tenants *tenants, struct tenant *tenant);
/* NULL: nothing is used there. */
const struct tenant *tenant_find(const struct tenants *tenants, const char *workspace);

const struct quotas *tenant_quotas(const struct tenants *tenants, const char *workspace);
/* quota_check() for one more use of that kind. */
int tenant_check(const struct tenants *tenants, const struct tenant *tenant, enum quota kind,
                 uint64_t more, struct error *err);
/* How much of a quota is in use, for the kinds that are counted here; 0 for the others. */
uint64_t tenant_used(const struct tenants *tenants, const char *workspace, enum quota kind);
/* The quota that counts promises of a resource; QUOTA_COUNT: none does. */
enum quota quota_of_resource(enum resource resource);
