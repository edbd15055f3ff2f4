/* SPDX-License-Identifier: Apache-2.0 */

/* The text itself; whether it means what it should is for a decoder to say, in
 * tests/clients/test_otlp.py. */

#include "observe/otlp_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "observe/otlp.h"
#include "observe/protobuf.h"
#include "observe/span.h"

static struct slice written(const struct buf *out)
{
    return (struct slice){out->data, out->len};
}

static const struct otlp_resource nobody = {.attributes = {"a=b", 4}, .version = "1"};

/* A request with one span, which is written by hand. */
static void add_request(struct buf *out)
{
    _cleanup_buf_ struct buf spans = BUF_INIT(4096);
    size_t span = pb_begin(&spans, 2);
    pb_bytes(&spans, 1, "\x01\x23\x45\x67\x89\xab\xcd\xef\0\0\0\0\0\0\0\xff", 16);
    pb_bytes(&spans, 2, "\0\0\0\0\0\0\0\x0a", 8);
    pb_text(&spans, 5, "a \"name\"\\\n\xff\xe2\x82\xac\xe2\x82");
    pb_uint(&spans, 6, 2);
    pb_fixed64(&spans, 7, 18446744073709551615ull);
    otlp_attribute(&spans, 9, "text", "", 0);
    otlp_attribute(&spans, 9, "number", NULL, -5);
    pb_uint(&spans, 77, 1); /* nobody's */
    size_t status = pb_begin(&spans, 15);
    pb_uint(&spans, 3, 2);
    pb_end(&spans, status);
    pb_end(&spans, span);
    otlp_traces(out, &nobody, written(&spans));
}

static void spans(void **state)
{
    static const char expected[] =
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"a\",\"value\":"
        "{\"stringValue\":\"b\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"cella\",\"version\":"
        "\"1\"},\"spans\":[{\"traceId\":\"0123456789abcdef00000000000000ff\",\"spanId\":"
        "\"000000000000000a\",\"name\":\"a "
        "\\\"name\\\"\\\\\\u000a\\ufffd\xe2\x82\xac\\ufffd\\ufffd\","
        "\"kind\":2,\"startTimeUnixNano\":\"18446744073709551615\",\"attributes\":[{\"key\":"
        "\"text\",\"value\":{\"stringValue\":\"\"}},{\"key\":\"number\",\"value\":{\"intValue\":"
        "\"-5\"}}],\"status\":{\"code\":2}}]}]}]}";
    _cleanup_buf_ struct buf request = BUF_INIT(8192), text = BUF_INIT(8192);
    add_request(&request);
    otlp_traces_to_json(&text, written(&request));
    buf_addc(&text, '\0');
    assert_string_equal(text.data, expected);
}

static void figures(void **state)
{
    static const char expected[] =
        "\"metrics\":[{\"name\":\"some\",\"description\":\"Help.\",\"unit\":\"1\",\"sum\":{"
        "\"dataPoints\":[{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"2\","
        "\"attributes\":[{\"key\":\"l\",\"value\":{\"stringValue\":\"v\"}}],\"asDouble\":0.1},{"
        "\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"2\",\"asDouble\":\"NaN\"}],"
        "\"aggregationTemporality\":2,\"isMonotonic\":true}},{\"name\":\"few_seconds\","
        "\"description\":\"Help.\",\"unit\":\"s\",\"histogram\":{\"dataPoints\":[{"
        "\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"2\",\"count\":\"3\",\"sum\":4,"
        "\"bucketCounts\":[\"1\",\"2\"],\"explicitBounds\":[0.5]}],\"aggregationTemporality\":2}}]}"
        "]}]}";
    _cleanup_buf_ struct buf request = BUF_INIT(8192), text = BUF_INIT(8192);
    struct otlp_metrics m;
    struct histogram histogram = {.sum = 4};
    const double bound = 0.5;
    histogram.counts[0] = 1;
    histogram.counts[1] = 2;
    otlp_metrics_begin(&m, &request, &nobody, 1, 2);
    m.sink.family(&m.sink, &(struct meter_family){"some_total", "Help.", METER_TYPE_COUNTER});
    m.sink.number(&m.sink, &(struct meter_label){"l", "v"}, 1, 0.1);
    m.sink.number(&m.sink, NULL, 0, (double)NAN);
    m.sink.family(&m.sink, &(struct meter_family){"few_seconds", "Help.", METER_TYPE_HISTOGRAM});
    m.sink.histogram(&m.sink, NULL, 0, &bound, 1, &histogram);
    otlp_metrics_end(&m);
    otlp_metrics_to_json(&text, written(&request));
    buf_addc(&text, '\0');
    assert_non_null(strstr(text.data, "\"metrics\""));
    assert_string_equal(strstr(text.data, "\"metrics\""), expected);
}

/* Whatever it is given, it ends, and stays in what it was given. */
static void broken_requests(void **state)
{
    _cleanup_buf_ struct buf request = BUF_INIT(8192);
    add_request(&request);
    for (size_t len = 0; len < request.len; len++) {
        _cleanup_buf_ struct buf text = BUF_INIT(65536);
        _cleanup_free_ char *part = malloc(len == 0 ? 1 : len); /* a sanitizer watches its end */
        assert_non_null(part);
        memcpy(part, request.data, len);
        otlp_traces_to_json(&text, (struct slice){part, len});
        assert_false(text.failed);
        assert_int_equal(text.data[text.len - 1], '}');
    }
    for (size_t i = 0; i < request.len; i++) {
        _cleanup_buf_ struct buf text = BUF_INIT(1 << 20);
        request.data[i] = (char)(request.data[i] ^ 0xff);
        otlp_traces_to_json(&text, written(&request));
        otlp_metrics_to_json(&text, written(&request));
        request.data[i] = (char)(request.data[i] ^ 0xff);
    }
    _cleanup_buf_ struct buf whole = BUF_INIT(8192);
    otlp_traces_to_json(&whole, written(&request));
    for (size_t max = 0; max < whole.len; max += 7) {
        _cleanup_buf_ struct buf text = BUF_INIT(max);
        otlp_traces_to_json(&text, written(&request));
        assert_true(text.failed && text.len <= max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spans), cmocka_unit_test(figures),
                                       cmocka_unit_test(broken_requests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
