/* SPDX-License-Identifier: Apache-2.0 */

/* Spans are encoded when they end: what waits to be sent is bytes, which need no looking after. */

#include "observe/span.h"

#include <string.h>
#include <time.h>

#include "observe/otlp.h"
#include "observe/protobuf.h"

/* Field numbers of opentelemetry.proto.trace.v1. */
enum {
    SCOPE_SPANS_SPAN = 2,
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT = 4,
    SPAN_NAME = 5,
    SPAN_KIND_FIELD = 6,
    SPAN_START = 7,
    SPAN_FINISH = 8,
    SPAN_ATTRIBUTE = 9,
    SPAN_STATUS = 15,
    STATUS_MESSAGE = 2,
    STATUS_CODE = 3,
    STATUS_CODE_ERROR = 2,
};

void tracer_init(struct tracer *tracer, double ratio, struct meters *meters)
{
    *tracer = (struct tracer){.meters = meters, .spans = BUF_INIT(SPANS_BYTES_MAX)};
    id_source_init(&tracer->ids);
    tracer->threshold = ratio >= 1 ? UINT64_MAX : (uint64_t)(ratio * 18446744073709549568.0);
}

void tracer_release(struct tracer *tracer)
{
    buf_release(&tracer->spans);
}

static void make_id(struct tracer *tracer, uint8_t *id, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t number = id_next(&tracer->ids);
        if (number == 0)
            number = 1; /* all zeros mean that there is none */
        memcpy(id + i, &number, sizeof(number));
    }
}

static void begin(struct errand *errand, struct span *span, const char *name)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    span->recorded = true;
    span->name = name;
    span->begun_unix_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    span->begun_ns = meter_now();
    memcpy(span->parent, errand->span_id, SPAN_ID_SIZE);
    make_id(errand->tracer, span->id, SPAN_ID_SIZE);
    memcpy(errand->span_id, span->id, SPAN_ID_SIZE);
}

void span_begin_request(struct tracer *tracer, struct errand *errand, struct span *span)
{
    span->recorded = false;
    errand->tracer = NULL;
    if (tracer == NULL)
        return;
    if (!errand->traced) {
        errand->traced = true;
        make_id(tracer, errand->trace_id, TRACE_ID_SIZE);
        memset(errand->span_id, 0, SPAN_ID_SIZE);
        errand->trace_flags = id_next(&tracer->ids) < tracer->threshold ? 1 : 0;
        if (errand->trace_flags == 0)
            make_id(tracer, errand->span_id, SPAN_ID_SIZE); /* somebody may be told of it */
    }
    if ((errand->trace_flags & 1) == 0)
        return;
    errand->tracer = tracer;
    begin(errand, span, "");
}

void span_begin(struct errand *errand, struct span *span, const char *name)
{
    span->recorded = false;
    if (errand != NULL && errand->tracer != NULL)
        begin(errand, span, name);
}

static bool has_parent(const struct span *span)
{
    static const uint8_t none[SPAN_ID_SIZE];
    return memcmp(span->parent, none, SPAN_ID_SIZE) != 0;
}

static void encode(struct buf *out, const struct errand *errand, const struct span *span,
                   enum span_kind kind, const struct error *why,
                   const struct span_attribute *attributes, size_t count)
{
    size_t message = pb_begin(out, SCOPE_SPANS_SPAN);
    pb_bytes(out, SPAN_TRACE_ID, errand->trace_id, TRACE_ID_SIZE);
    pb_bytes(out, SPAN_ID, span->id, SPAN_ID_SIZE);
    pb_text(out, SPAN_TRACE_STATE, errand->tracestate);
    if (has_parent(span))
        pb_bytes(out, SPAN_PARENT, span->parent, SPAN_ID_SIZE);
    pb_text(out, SPAN_NAME, span->name);
    pb_uint(out, SPAN_KIND_FIELD, kind);
    pb_fixed64(out, SPAN_START, span->begun_unix_ns);
    pb_fixed64(out, SPAN_FINISH, span->begun_unix_ns + (meter_now() - span->begun_ns));
    for (size_t i = 0; i < count; i++)
        otlp_attribute(out, SPAN_ATTRIBUTE, attributes[i].name, attributes[i].text,
                       attributes[i].number);
    if (why != NULL) {
        otlp_attribute(out, SPAN_ATTRIBUTE, "error.type", error_name(why->code), 0);
        size_t status = pb_begin(out, SPAN_STATUS);
        pb_text(out, STATUS_MESSAGE, error_name(why->code)); /* messages quote strangers */
        pb_uint(out, STATUS_CODE, STATUS_CODE_ERROR);
        pb_end(out, status);
    }
    pb_end(out, message);
}

void span_end(struct errand *errand, struct span *span, enum span_kind kind,
              const struct error *why, const struct span_attribute *attributes, size_t count)
{
    if (!span->recorded || errand == NULL || errand->tracer == NULL)
        return;
    struct tracer *tracer = errand->tracer;
    size_t before = tracer->spans.len;
    encode(&tracer->spans, errand, span, kind, why, attributes, count);
    memcpy(errand->span_id, span->parent, SPAN_ID_SIZE);
    span->recorded = false;
    if (tracer->spans.failed) { /* what is there stays; half of this one goes */
        tracer->spans.len = before;
        tracer->spans.failed = false;
        meter_count(tracer->meters, METER_SPANS_DROPPED);
        return;
    }
    if (++tracer->span_count == SPANS_MANY && tracer->many != NULL)
        tracer->many(tracer->ctx);
}
