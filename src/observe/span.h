/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Spans of a distributed trace: what was done for a request, from when to when. A tracer decides
 * which traces are recorded, and keeps ended spans, encoded, until somebody sends them off; past a
 * bound they are dropped and counted.
 *
 *     struct span span;
 *     span_begin(co_errand(loop), &span, "warden start");
 *     …
 *     span_end(co_errand(loop), &span, SPAN_CLIENT, rc < 0 ? err : NULL, NULL, 0);
 *
 * Between the two the errand's span is this one, so that whatever begins meanwhile on the same
 * coroutine is its child. For an errand that nobody records both cost a comparison.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/errand.h"
#include "observe/ids.h"
#include "observe/meters.h"

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 }; /* OTLP's numbers */

enum {
    SPANS_BYTES_MAX = 4 << 20, /* that wait to be sent */
    SPANS_MANY = 512,          /* of them are worth a request of their own */
};

struct tracer {
    struct id_source ids;
    uint64_t threshold; /* traces that begin here are recorded when a number of theirs is below */
    struct meters *meters;
    struct buf spans;        /* OTLP: field 2 of a ScopeSpans, one after the other */
    unsigned span_count;     /* in it */
    void (*many)(void *ctx); /* told when there are SPANS_MANY; may be NULL */
    void *ctx;
};

/* ratio: of the traces that begin here, 0…1. Those that come from elsewhere are recorded when they
 * say so. */
void tracer_init(struct tracer *tracer, double ratio, struct meters *meters);
void tracer_release(struct tracer *tracer);

struct span {
    bool recorded;
    const char *name; /* borrowed until the end */
    uint8_t parent[SPAN_ID_SIZE];
    uint8_t id[SPAN_ID_SIZE];
    uint64_t begun_unix_ns, begun_ns;
};

struct span_attribute {
    const char *name;
    const char *text; /* NULL: it is the number */
    int64_t number;
};

/* A request has come, with or without a place in a trace: it gets one, and its server span begins.
 * tracer NULL: only what came is kept. */
void span_begin_request(struct tracer *tracer, struct errand *errand, struct span *span);
/* errand NULL: nothing is recorded. */
void span_begin(struct errand *errand, struct span *span, const char *name);
/* why: it failed, and with what; NULL: it did not. */
void span_end(struct errand *errand, struct span *span, enum span_kind kind,
              const struct error *why, const struct span_attribute *attributes, size_t count);
