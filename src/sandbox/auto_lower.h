/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Limits that follow what is used, downwards: when a sandbox that asked for it has been measured
 * AUTO_LOWER_SAMPLES times, each of its cores, memory and disk is lowered to the most that it used
 * in those, times a factor above 1. It is never raised again by itself, and never below a minimum
 * that may be given. What cannot be lowered, because more is in use by then, stays as it is.
 *
 * The setting is a list, as the store keeps it: "factor=1.5", and minimums as "memory=64Mi".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "sandbox/resources.h"

enum { AUTO_LOWER_SAMPLES = 5, AUTO_LOWER_FACTOR_MAX = 100 };

struct auto_lower {
    uint64_t factor_millis; /* above 1000 */
    struct spec_limits minimum;
    bool busy; /* it is being lowered right now */
    size_t count;
    double recent[AUTO_LOWER_SAMPLES][RESOURCE_DISK + 1]; /* in the units of the limits; NAN: not
                                                             known */
};

/* INVALID_ARGUMENT, INVALID_QUANTITY; an empty list is neither here. */
int auto_lower_parse(struct slice list, struct auto_lower *ret_lower, struct error *err);

/* One more measurement. */
void auto_lower_push(struct auto_lower *lower, double cpu_millis, double memory, double disk);

/*
 * What the limits would be: true when there are enough measurements and at least one is worth
 * lowering (by a tenth), and then only those that are differ from `limits`.
 */
bool auto_lower_wants(const struct auto_lower *lower, const struct spec_limits *limits,
                      struct spec_limits *ret_limits);
