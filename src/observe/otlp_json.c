/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table per message: which field is called what, and what it is
 * (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Fields of one number stand
 * together in what is written here, so that an array is ended by the next field that is another.
 */

#include "observe/otlp_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "observe/protobuf.h"

enum { DEPTH_MAX = 16 };

enum json_kind {
    KIND_TEXT,
    KIND_HEX,    /* bytes */
    KIND_NUMBER, /* an enum */
    KIND_LONG,   /* 64 bits, which not every reader of JSON has room for */
    KIND_INT,    /* the same with a sign */
    KIND_DOUBLE,
    KIND_BOOL,
    KIND_MESSAGE,
};

struct json_message;

struct json_member {
    unsigned field;
    const char *name;
    enum json_kind kind;
    const struct json_message *message; /* of KIND_MESSAGE */
    bool repeated;
};

struct json_message {
    const struct json_member *members;
    size_t count;
};

#define MESSAGE(name, ...)                                                                         \
    static const struct json_member name##_members[] = {__VA_ARGS__};                              \
    static const struct json_message name = {name##_members, ARRAY_LEN(name##_members)}

MESSAGE(any_value, {1, "stringValue", KIND_TEXT}, {3, "intValue", KIND_INT});
MESSAGE(key_value, {1, "key", KIND_TEXT}, {2, "value", KIND_MESSAGE, &any_value});
MESSAGE(resource, {1, "attributes", KIND_MESSAGE, &key_value, true});
MESSAGE(scope, {1, "name", KIND_TEXT}, {2, "version", KIND_TEXT});

MESSAGE(span_status, {2, "message", KIND_TEXT}, {3, "code", KIND_NUMBER});
MESSAGE(span, {1, "traceId", KIND_HEX}, {2, "spanId", KIND_HEX}, {3, "traceState", KIND_TEXT},
        {4, "parentSpanId", KIND_HEX}, {5, "name", KIND_TEXT}, {6, "kind", KIND_NUMBER},
        {7, "startTimeUnixNano", KIND_LONG}, {8, "endTimeUnixNano", KIND_LONG},
        {9, "attributes", KIND_MESSAGE, &key_value, true},
        {15, "status", KIND_MESSAGE, &span_status});
MESSAGE(scope_spans, {1, "scope", KIND_MESSAGE, &scope}, {2, "spans", KIND_MESSAGE, &span, true});
MESSAGE(resource_spans, {1, "resource", KIND_MESSAGE, &resource},
        {2, "scopeSpans", KIND_MESSAGE, &scope_spans, true});
MESSAGE(traces, {1, "resourceSpans", KIND_MESSAGE, &resource_spans, true});

MESSAGE(number_point, {2, "startTimeUnixNano", KIND_LONG}, {3, "timeUnixNano", KIND_LONG},
        {4, "asDouble", KIND_DOUBLE}, {7, "attributes", KIND_MESSAGE, &key_value, true});
MESSAGE(histogram_point, {2, "startTimeUnixNano", KIND_LONG}, {3, "timeUnixNano", KIND_LONG},
        {4, "count", KIND_LONG}, {5, "sum", KIND_DOUBLE},
        {6, "bucketCounts", KIND_LONG, NULL, true}, {7, "explicitBounds", KIND_DOUBLE, NULL, true},
        {9, "attributes", KIND_MESSAGE, &key_value, true});
MESSAGE(gauge, {1, "dataPoints", KIND_MESSAGE, &number_point, true});
MESSAGE(sum, {1, "dataPoints", KIND_MESSAGE, &number_point, true},
        {2, "aggregationTemporality", KIND_NUMBER}, {3, "isMonotonic", KIND_BOOL});
MESSAGE(histogram, {1, "dataPoints", KIND_MESSAGE, &histogram_point, true},
        {2, "aggregationTemporality", KIND_NUMBER});
MESSAGE(metric, {1, "name", KIND_TEXT}, {2, "description", KIND_TEXT}, {3, "unit", KIND_TEXT},
        {5, "gauge", KIND_MESSAGE, &gauge}, {7, "sum", KIND_MESSAGE, &sum},
        {9, "histogram", KIND_MESSAGE, &histogram});
MESSAGE(scope_metrics, {1, "scope", KIND_MESSAGE, &scope},
        {2, "metrics", KIND_MESSAGE, &metric, true});
MESSAGE(resource_metrics, {1, "resource", KIND_MESSAGE, &resource},
        {2, "scopeMetrics", KIND_MESSAGE, &scope_metrics, true});
MESSAGE(metrics, {1, "resourceMetrics", KIND_MESSAGE, &resource_metrics, true});

/* --- values --- */

static const char hex_digits[] = "0123456789abcdef";

/* How many bytes at text are a character; 0: they are none. */
static size_t character(struct slice text)
{
    unsigned char some[5] = {0}; /* its end, where nothing ends it */
    memcpy(some, text.data, text.len < 4 ? text.len : 4);
    return utf8_len(some);
}

/* How many bytes at the beginning are as they are in JSON: almost always all of them. */
static size_t plain_run(struct slice text)
{
    size_t n = 0;
    while (n < text.len && text.data[n] >= 0x20 && text.data[n] < 0x7f && text.data[n] != '"' &&
           text.data[n] != '\\')
        n++;
    return n;
}

/* What is not: as much as belongs together. Returns how many bytes that is. */
static size_t add_other(struct buf *out, struct slice text)
{
    unsigned char c = (unsigned char)*text.data;
    size_t len = character(text);
    const char escaped[] = {'\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15]};
    const char quoted[] = {'\\', (char)c};
    if (len == 0)
        buf_adds(out, "\\ufffd");
    else if (c == '"' || c == '\\')
        buf_add(out, quoted, sizeof(quoted));
    else if (c < 0x20)
        buf_add(out, escaped, sizeof(escaped));
    else
        buf_add(out, text.data, len);
    return len == 0 ? 1 : len;
}

static void add_text(struct buf *out, struct slice text)
{
    buf_addc(out, '"');
    while (text.len > 0) {
        size_t len = plain_run(text);
        if (len > 0)
            buf_add(out, text.data, len);
        else
            len = add_other(out, text);
        text.data += len;
        text.len -= len;
    }
    buf_addc(out, '"');
}

static void add_hex(struct buf *out, struct slice bytes)
{
    buf_addc(out, '"');
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        const char pair[] = {hex_digits[c >> 4], hex_digits[c & 15]};
        buf_add(out, pair, sizeof(pair));
    }
    buf_addc(out, '"');
}

/* By hand: a span has two times and several of these besides, and the event loop waits. */
static void add_number(struct buf *out, uint64_t number)
{
    char text[20];
    size_t at = sizeof(text);
    do
        text[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    buf_add(out, text + at, sizeof(text) - at);
}

static void add_double(struct buf *out, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (!isfinite(value)) {
        buf_adds(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    buf_add_double(out, value);
}

static bool fits(const struct json_member *member, const struct pb_field *field)
{
    static const enum pb_kind wire[] = {
        [KIND_TEXT] = PB_BYTES,   [KIND_HEX] = PB_BYTES,    [KIND_NUMBER] = PB_VARINT,
        [KIND_LONG] = PB_FIXED64, [KIND_INT] = PB_VARINT,   [KIND_DOUBLE] = PB_FIXED64,
        [KIND_BOOL] = PB_VARINT,  [KIND_MESSAGE] = PB_BYTES};
    return wire[member->kind] == field->kind;
}

/* --- messages --- */

static void add_message(struct buf *out, const struct json_message *message, struct slice bytes,
                        unsigned depth);

static void add_value(struct buf *out, const struct json_member *member,
                      const struct pb_field *field, unsigned depth)
{
    switch (member->kind) {
    case KIND_TEXT:
        add_text(out, field->bytes);
        break;
    case KIND_HEX:
        add_hex(out, field->bytes);
        break;
    case KIND_NUMBER:
        add_number(out, field->number);
        break;
    case KIND_LONG:
        buf_addc(out, '"');
        add_number(out, field->number);
        buf_addc(out, '"');
        break;
    case KIND_INT:
        buf_addf(out, "\"%" PRId64 "\"", (int64_t)field->number);
        break;
    case KIND_DOUBLE:
        add_double(out, field->number);
        break;
    case KIND_BOOL:
        buf_adds(out, field->number != 0 ? "true" : "false");
        break;
    case KIND_MESSAGE:
        add_message(out, member->message, field->bytes, depth + 1);
        break;
    }
}

static const struct json_member *member_of(const struct json_message *message,
                                           const struct pb_field *field)
{
    for (size_t i = 0; i < message->count; i++)
        if (message->members[i].field == field->field && fits(&message->members[i], field))
            return &message->members[i];
    return NULL;
}

static void add_name(struct buf *out, const struct json_member *member)
{
    buf_addc(out, '"');
    buf_adds(out, member->name);
    buf_adds(out, member->repeated ? "\":[" : "\":");
}

static void add_message(struct buf *out, const struct json_message *message, struct slice bytes,
                        unsigned depth)
{
    const struct json_member *open = NULL; /* the array that is */
    struct pb_field field;
    bool first = true;
    buf_addc(out, '{');
    while (depth < DEPTH_MAX && !out->failed && pb_next(&bytes, &field)) {
        const struct json_member *member = member_of(message, &field);
        if (member == NULL)
            continue;
        bool goes_on = member == open;
        if (open != NULL && !goes_on)
            buf_addc(out, ']');
        if (!first)
            buf_addc(out, ',');
        first = false;
        if (!goes_on)
            add_name(out, member);
        open = member->repeated ? member : NULL;
        add_value(out, member, &field, depth);
    }
    buf_adds(out, open != NULL ? "]}" : "}");
}

void otlp_traces_to_json(struct buf *out, struct slice request)
{
    add_message(out, &traces, request, 0);
}

void otlp_metrics_to_json(struct buf *out, struct slice request)
{
    add_message(out, &metrics, request, 0);
}
