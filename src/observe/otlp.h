/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The messages of OTLP 1.x (opentelemetry-proto) that are sent to a collector, in protobuf. */

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "observe/meters.h"

/* Who is telling: "service.name=cella" …; a list of "key=value" strings (base/slice.h). */
struct otlp_resource {
    struct slice attributes;
    const char *version; /* of the instrumentation */
};

/* A KeyValue as the given field. text NULL: the number. */
void otlp_attribute(struct buf *out, unsigned field, const char *name, const char *text,
                    int64_t number);

/* An ExportTraceServiceRequest with spans that a tracer has encoded (observe/span.h). */
void otlp_traces(struct buf *out, const struct otlp_resource *resource, struct slice spans);

/* An ExportMetricsServiceRequest: begin, tell the sink, end. */
struct otlp_metrics {
    struct meter_sink sink;
    struct buf *out;
    uint64_t start_unix_ns, now_unix_ns; /* counted since, and until */
    size_t marks[4];                     /* what is begun: request's parts, metric, its data */
    bool in_metric;
    enum meter_type type;
};
void otlp_metrics_begin(struct otlp_metrics *m, struct buf *out,
                        const struct otlp_resource *resource, uint64_t start_unix_ns,
                        uint64_t now_unix_ns);
void otlp_metrics_end(struct otlp_metrics *m);
