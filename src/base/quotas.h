/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The quotas of a workspace: one table, from which the option --quota, a workspace's own quotas,
 * the API's fields, the command line's help and output all come. A new kind is a new row here and
 * the place that counts its use (api/quotas_json.c).
 *
 * X(ENUM, name, unit, default, smallest, largest, default as text). A value of 0 means no limit;
 * it is written "off".
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define QUOTAS(X)                                                                                  \
    X(STREAMS, "streams", COUNT, 6144, 1, 1000000, "6144")                                         \
    X(STREAMS_PER_KEY, "streams-per-key", COUNT, 2048, 1, 1000000, "2048")                         \
    X(SANDBOXES, "sandboxes", COUNT, 10000, 1, 1000000, "10000")                                   \
    X(CPU, "cpu", CORES, 0, 10, INT64_MAX, "off")                                                  \
    X(MEMORY, "memory", BYTES, 0, 1, INT64_MAX, "off")                                             \
    X(DISK, "disk", BYTES, 0, 1, INT64_MAX, "off")                                                 \
    X(PROCESSES, "processes", COUNT, 0, 1, INT64_MAX, "off")                                       \
    X(HISTORY, "history", BYTES, 0, 64 << 10, INT64_MAX, "off")                                    \
    X(AUDIT, "audit", BYTES, 64 << 20, 64 << 10, INT64_MAX, "64Mi")

enum quota {
#define X(name, ...) QUOTA_##name,
    QUOTAS(X)
#undef X
        QUOTA_COUNT
};

enum quota_unit { QUOTA_UNIT_COUNT, QUOTA_UNIT_CORES, QUOTA_UNIT_BYTES };

/* " streams=6144 …": every kind with its default, for help texts. */
#define QUOTAS_HELP_ITEM(kind, name, unit, value, min, max, text) " " name "=" text
#define QUOTAS_HELP                                               QUOTAS(QUOTAS_HELP_ITEM)

struct quota_kind {
    const char *name;
    enum quota_unit unit;
    uint64_t fallback, min, max;
};

extern const struct quota_kind quota_kinds[QUOTA_COUNT];

/* Thousandths of a core, bytes, or a number; 0: no limit. */
struct quotas {
    uint64_t of[QUOTA_COUNT];
};

void quotas_default(struct quotas *ret_quotas);
/* One item of "cpu=4,memory=8Gi,sandboxes=off". INVALID_ARGUMENT names what is wrong. */
int quotas_set(struct quotas *quotas, const char *name, const char *value, struct error *err);

const char *quota_unit_text(enum quota_unit unit); /* "count", "cores", "bytes" */
/* An amount for people: "1.5 cores", "512 MiB", "100". */
enum { QUOTA_TEXT_SIZE = 40 };
void quota_amount(enum quota_unit unit, uint64_t value, char text[QUOTA_TEXT_SIZE]);

/*
 * Refuses `more` on top of `used` when the sum is over the limit: LIMIT_EXCEEDED (or `code`) with a
 * message that names the quota, its limit, what is in use and what was asked for.
 */
int quota_check(const struct quotas *quotas, enum quota kind, const char *workspace, uint64_t used,
                uint64_t more, enum error_code code, struct error *err);
