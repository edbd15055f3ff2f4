/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the limits have done since the start, for whoever shows it. */

#include <stdint.h>

#include "api/route_class.h"

struct limits_counters {
    uint64_t limited_key[ROUTE_CLASS_COUNT]; /* requests refused, by whose bucket was empty */
    uint64_t limited_address;
    uint64_t buckets;         /* that are remembered now */
    uint64_t buckets_evicted; /* that had to make room */
    uint64_t streams;         /* open now */
    uint64_t streams_refused;
};

struct limits;
struct limits_counters limits_counters_of(const struct limits *limits);
