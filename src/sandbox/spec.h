/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sandbox is asked to be: defaults, bounds, and the plan that comes of it. */

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

struct spec_limits {
    uint64_t cpu_millis;
    uint64_t memory_bytes;
    uint64_t disk_bytes;
};

/* Fills what is NULL with the defaults. */
void spec_defaults(struct sandbox_resources *resources);

/* Reads the quantities and checks their bounds: INVALID_QUANTITY names the field. */
int spec_limits(const struct sandbox_resources *resources, struct spec_limits *ret_limits,
                struct error *err);

/* "NAME=value" each, with names a shell takes: INVALID_ARGUMENT. Bounded in number and bytes. */
int spec_check_env(struct slice env, struct error *err);

/* The plan for the warden. Strings are borrowed. */
void spec_plan(const char *id, const char *name, const char *image,
               const struct spec_limits *limits, struct plan *ret_plan);
