/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What sandboxes use: cpu, memory and disk of every running one are sampled, averaged and kept in
 * bounded space (sandbox/series.h), and go with the sandbox. A time in which it did not run, or the
 * server was down, has no figures.
 *
 * Calls are made on coroutines.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"
#include "sandbox/series.h"

enum {
    METRICS_INTERVAL_DEFAULT_S = 10,
    METRICS_INTERVAL_MAX_S = 60,
    METRICS_PERIOD_MAX_S = SERIES_KEPT_S,
};

/* How often samples are taken, 1…METRICS_INTERVAL_MAX_S seconds. Before sandboxes_recover(). */
void sandboxes_set_metrics_interval(struct sandboxes *s, unsigned seconds);

/*
 * Averages over intervals of `resolution` seconds that begin at multiples of it, oldest first; the
 * last one holds a sample that is taken now. Intervals without a figure are left out. period:
 * 1…METRICS_PERIOD_MAX_S; INVALID_ARGUMENT past METRICS_POINTS_MAX intervals.
 */
int sandbox_metrics(struct sandboxes *s, const char *workspace, const char *name, uint32_t period,
                    uint32_t resolution, struct arena *arena, struct series_value **ret_values,
                    size_t *ret_count, struct error *err);

/* How many processes the kernel has ended for the sandbox's memory limit, in this run of it: as far
 * as it is known, or (`now`) by a look at it. 0 when nobody can tell. */
uint64_t sandbox_memory_kills(struct sandboxes *s, const char *workspace, const char *name,
                              bool now);

/* How long a sandbox has run, and how much it was asked. */
struct sandbox_tally {
    uint64_t starts;
    int64_t started_ms;           /* it runs since then; 0: it does not */
    int64_t running_ms, total_ms; /* since then; in all its runs */
    uint64_t actions;             /* requests that were passed on to what is inside */
    uint64_t commands;            /* those that ran a command, or opened a terminal */
};

/* What has passed its interface since its start, what was refused included. */
struct network_usage {
    bool known; /* false: it has no network, or was not measured yet */
    uint64_t in_bytes, out_bytes, in_packets, out_packets;
    double in_rate, out_rate; /* bytes per second, lately; NAN: not known */
};

/* What a sandbox uses now, for a list of all. */
struct sandbox_usage {
    const char *id, *name;
    const char *group; /* NULL: in none */
    struct sandbox_tally tally;
    enum sandbox_status status;
    int64_t time_ms;     /* of the sample; 0: there is none, as it does not run */
    double cpu;          /* cores, lately; NAN: not known */
    double memory, disk; /* bytes; NAN: not known */
    uint64_t tasks;      /* processes and threads */
    struct network_usage network;
    struct spec_limits limits;
    struct spec_limits allocated; /* what of them it is promised: its disk, while it is stopped */
};

/* Those of a workspace, or of one group of it (NULL: all), oldest first; samples that are not fresh
 * are taken anew. */
int sandboxes_usage(struct sandboxes *s, const char *workspace, const char *group, size_t limit,
                    size_t offset, struct arena *arena, struct sandbox_usage **ret_items,
                    size_t *ret_count, size_t *ret_total, struct error *err);
