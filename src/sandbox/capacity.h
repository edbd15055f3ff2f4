/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the machine has, what of it is promised and used, and which limits are more than a promise
 * here. The warden is asked for the part that only it can see, now and then and never by somebody
 * who waits for a sandbox.
 */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/admission.h"
#include "sandbox/sandbox.h"

struct capacity_row {
    uint64_t total;     /* that the machine has */
    uint64_t allocated; /* promised to sandboxes */
    uint64_t available; /* that can still be promised */
    double overcommit;
    double used; /* by the sandboxes that run, when they were last looked at; NAN: not known */
    enum capacity_source source;
    bool enforced;
    const char *how; /* for people: by what it is enforced, or why not */
};

struct capacity {
    struct capacity_row of[RESOURCE_COUNT];
    size_t sandboxes, running; /* in all workspaces */
    uint64_t disk_free;        /* really */
};

/* On a coroutine. Looks at the disk again; the rest is in memory. */
int sandboxes_capacity(struct sandboxes *s, struct arena *arena, struct capacity *ret_capacity,
                       struct error *err);
/* Whether that resource is enforced, as far as is known without asking; how: as above. */
bool sandboxes_enforces(const struct sandboxes *s, enum resource resource, const char **ret_how);
