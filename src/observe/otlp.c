/* SPDX-License-Identifier: Apache-2.0 */

/* Field numbers are those of opentelemetry-proto 1.x: common, resource, trace and metrics. */

#include "observe/otlp.h"

#include <string.h>

#include "base/cleanup.h"
#include "observe/protobuf.h"

enum {
    REQUEST_RESOURCE_ENTRY = 1, /* resource_spans, resource_metrics */
    ENTRY_RESOURCE = 1,
    ENTRY_SCOPE_ENTRY = 2, /* scope_spans, scope_metrics */
    SCOPE_ENTRY_SCOPE = 1,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    RESOURCE_ATTRIBUTE = 1,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    VALUE_TEXT = 1,
    VALUE_INT = 3,

    SCOPE_METRICS_METRIC = 2,
    METRIC_NAME = 1,
    METRIC_DESCRIPTION = 2,
    METRIC_UNIT = 3,
    METRIC_GAUGE = 5,
    METRIC_SUM = 7,
    METRIC_HISTOGRAM = 9,
    DATA_POINT = 1,
    DATA_TEMPORALITY = 2,
    SUM_MONOTONIC = 3,
    CUMULATIVE = 2,
    POINT_START = 2,
    POINT_TIME = 3,
    NUMBER_DOUBLE = 4,
    NUMBER_ATTRIBUTE = 7,
    HISTOGRAM_COUNT = 4,
    HISTOGRAM_SUM = 5,
    HISTOGRAM_BUCKETS = 6,
    HISTOGRAM_BOUNDS = 7,
    HISTOGRAM_ATTRIBUTE = 9,
};

enum { MARK_ENTRY, MARK_SCOPE_ENTRY, MARK_METRIC, MARK_DATA };

void otlp_attribute(struct buf *out, unsigned field, const char *name, const char *text,
                    int64_t number)
{
    size_t pair = pb_begin(out, field);
    pb_text(out, KEY_VALUE_KEY, name);
    size_t value = pb_begin(out, KEY_VALUE_VALUE);
    if (text != NULL)
        pb_bytes(out, VALUE_TEXT, text, strlen(text)); /* "" is a value, too */
    else
        pb_uint(out, VALUE_INT, (uint64_t)number);
    pb_end(out, value);
    pb_end(out, pair);
}

/* Both requests begin alike, up to what the scope has to tell. */
static void begin_request(struct buf *out, const struct otlp_resource *resource, size_t *ret_entry,
                          size_t *ret_scope_entry)
{
    *ret_entry = pb_begin(out, REQUEST_RESOURCE_ENTRY);
    size_t who = pb_begin(out, ENTRY_RESOURCE);
    strv_each (pair, resource->attributes) {
        char name[128];
        size_t len = strcspn(pair, "=");
        if (len == 0 || len >= sizeof(name) || pair[len] == '\0')
            continue;
        memcpy(name, pair, len);
        name[len] = '\0';
        otlp_attribute(out, RESOURCE_ATTRIBUTE, name, pair + len + 1, 0);
    }
    pb_end(out, who);
    *ret_scope_entry = pb_begin(out, ENTRY_SCOPE_ENTRY);
    size_t scope = pb_begin(out, SCOPE_ENTRY_SCOPE);
    pb_text(out, SCOPE_NAME, "cella");
    pb_text(out, SCOPE_VERSION, resource->version);
    pb_end(out, scope);
}

void otlp_traces(struct buf *out, const struct otlp_resource *resource, struct slice spans)
{
    size_t entry, scope_entry;
    begin_request(out, resource, &entry, &scope_entry);
    buf_add(out, spans.data, spans.len);
    pb_end(out, scope_entry);
    pb_end(out, entry);
}

/* --- metrics --- */

static void end_metric(struct otlp_metrics *m)
{
    if (!m->in_metric)
        return;
    if (m->type != METER_TYPE_GAUGE)
        pb_uint(m->out, DATA_TEMPORALITY, CUMULATIVE);
    if (m->type == METER_TYPE_COUNTER)
        pb_uint(m->out, SUM_MONOTONIC, 1);
    pb_end(m->out, m->marks[MARK_DATA]);
    pb_end(m->out, m->marks[MARK_METRIC]);
    m->in_metric = false;
}

static bool ends_with(const char *text, size_t len, const char *tail)
{
    size_t n = strlen(tail);
    return len > n && memcmp(text + len - n, tail, n) == 0;
}

/* Names are OpenTelemetry's way: no _total, which collectors add for Prometheus again. */
static void begin_metric(struct meter_sink *sink, const struct meter_family *family)
{
    static const unsigned data_fields[] = {[METER_TYPE_COUNTER] = METRIC_SUM,
                                           [METER_TYPE_GAUGE] = METRIC_GAUGE,
                                           [METER_TYPE_HISTOGRAM] = METRIC_HISTOGRAM};
    struct otlp_metrics *m = container_of(sink, struct otlp_metrics, sink);
    size_t len = strlen(family->name);
    end_metric(m);
    if (family->type == METER_TYPE_COUNTER && ends_with(family->name, len, "_total"))
        len -= strlen("_total");
    m->marks[MARK_METRIC] = pb_begin(m->out, SCOPE_METRICS_METRIC);
    pb_bytes(m->out, METRIC_NAME, family->name, len);
    pb_text(m->out, METRIC_DESCRIPTION, family->help);
    pb_text(m->out, METRIC_UNIT,
            ends_with(family->name, len, "_seconds") ? "s"
            : ends_with(family->name, len, "_bytes") ? "By"
                                                     : "1");
    m->marks[MARK_DATA] = pb_begin(m->out, data_fields[family->type]);
    m->in_metric = true;
    m->type = family->type;
}

static size_t begin_point(struct otlp_metrics *m, unsigned attribute,
                          const struct meter_label *labels, size_t count)
{
    size_t point = pb_begin(m->out, DATA_POINT);
    if (m->type != METER_TYPE_GAUGE)
        pb_fixed64(m->out, POINT_START, m->start_unix_ns);
    pb_fixed64(m->out, POINT_TIME, m->now_unix_ns);
    for (size_t i = 0; i < count; i++)
        otlp_attribute(m->out, attribute, labels[i].name, labels[i].value, 0);
    return point;
}

static void add_number(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                       double value)
{
    struct otlp_metrics *m = container_of(sink, struct otlp_metrics, sink);
    size_t point = begin_point(m, NUMBER_ATTRIBUTE, labels, count);
    pb_double(m->out, NUMBER_DOUBLE, value);
    pb_end(m->out, point);
}

static void add_histogram(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                          const double *bounds, size_t bound_count,
                          const struct histogram *histogram)
{
    struct otlp_metrics *m = container_of(sink, struct otlp_metrics, sink);
    uint64_t all = 0;
    for (size_t i = 0; i <= bound_count; i++)
        all += histogram->counts[i];
    size_t point = begin_point(m, HISTOGRAM_ATTRIBUTE, labels, count);
    pb_fixed64(m->out, HISTOGRAM_COUNT, all);
    pb_double(m->out, HISTOGRAM_SUM, histogram->sum);
    for (size_t i = 0; i <= bound_count; i++)
        pb_fixed64(m->out, HISTOGRAM_BUCKETS, histogram->counts[i]);
    for (size_t i = 0; i < bound_count; i++)
        pb_double(m->out, HISTOGRAM_BOUNDS, bounds[i]);
    pb_end(m->out, point);
}

void otlp_metrics_begin(struct otlp_metrics *m, struct buf *out,
                        const struct otlp_resource *resource, uint64_t start_unix_ns,
                        uint64_t now_unix_ns)
{
    *m = (struct otlp_metrics){
        .sink = {.family = begin_metric, .number = add_number, .histogram = add_histogram},
        .out = out,
        .start_unix_ns = start_unix_ns,
        .now_unix_ns = now_unix_ns,
    };
    begin_request(out, resource, &m->marks[MARK_ENTRY], &m->marks[MARK_SCOPE_ENTRY]);
}

void otlp_metrics_end(struct otlp_metrics *m)
{
    end_metric(m);
    pb_end(m->out, m->marks[MARK_SCOPE_ENTRY]);
    pb_end(m->out, m->marks[MARK_ENTRY]);
}
