/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sandbox is asked to be: defaults, bounds, and the plan that comes of it. */

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "sandbox/machine.h"
#include "sandbox/resources.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

/* Fills what is NULL with the defaults, of those that have one (cpu, memory, disk). */
void spec_defaults(const struct machine *machine, struct sandbox_resources *resources,
                   struct arena *arena);
/* A default for a resource, or all of it that the machine has where that is less. NULL stays. */
const char *spec_at_most(const struct machine *machine, enum resource resource, const char *text,
                         struct arena *arena);

/* Reads the quantities, or shares of the machine, and checks their bounds: INVALID_QUANTITY names
 * the field. A share that comes to less than the least is the least. What has no default and is not
 * given is 0, without a limit; pids are never. */
int spec_limits(const struct machine *machine, const struct sandbox_resources *resources,
                struct spec_limits *ret_limits, struct error *err);
/* Puts what a share came to in its place: a promise stays the same on a machine that changes. */
void spec_settle(struct sandbox_resources *resources, const struct spec_limits *limits,
                 struct arena *arena);
/* One quantity, without bounds and shares. */
int spec_quantity(enum resource resource, const char *text, uint64_t *ret_value, struct error *err);
/* The least that a sandbox can be given of it. */
uint64_t spec_minimum(enum resource resource);
/* A limit as text that reads the same back: "1500m", "512Mi", "100". In the arena. */
const char *spec_text(enum resource resource, uint64_t value, struct arena *arena);

/* "NAME=value" each, with names a shell takes: INVALID_ARGUMENT. Bounded in number and bytes. */
int spec_check_env(struct slice env, struct error *err);

/* The plan for the warden. Strings are borrowed. */
void spec_plan(const char *id, const char *name, const char *image,
               const struct spec_limits *limits, struct plan *ret_plan);
/* Memory bandwidth as the hardware knows it: in per cent of the machine's, 1…100; 0: no limit. It
 * is not in spec_plan()'s plan, which knows no machine. */
uint64_t spec_bandwidth_share(const struct machine *machine, const struct spec_limits *limits);
