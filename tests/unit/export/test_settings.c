/* SPDX-License-Identifier: Apache-2.0 */

#include "export/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Variables of a test begin with TEST_, so that nobody's own are in the way. */
static char *test_getenv(const char *name)
{
    char own[128];
    snprintf(own, sizeof(own), "TEST_%s", name);
    return getenv(own);
}

static void set(const char *name, const char *value)
{
    char own[128];
    snprintf(own, sizeof(own), "TEST_%s", name);
    setenv(own, value, 1);
}

static int clear(void **state)
{
    static const char *const names[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_PROTOCOL",
                                        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
                                        "OTEL_EXPORTER_OTLP_HEADERS",
                                        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                                        "OTEL_TRACES_SAMPLER_ARG",
                                        "OTEL_SERVICE_NAME",
                                        "OTEL_RESOURCE_ATTRIBUTES",
                                        "OTEL_SDK_DISABLED",
                                        "OTEL_METRICS_EXPORTER",
                                        "OTEL_BSP_SCHEDULE_DELAY"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        set(names[i], "");
    return 0;
}

static int read_all(struct export_settings *s, const char *endpoint, struct error *err)
{
    return export_settings_read(s, endpoint, "", "folder7", test_getenv, err);
}

static void off_by_default(void **state)
{
    struct export_settings s;
    struct error err;
    assert_int_equal(read_all(&s, "", &err), 0);
    assert_null(s.traces);
    assert_null(s.metrics);
    export_settings_release(&s);
}

static void addresses(void **state)
{
    struct export_settings s;
    struct error err;
    set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/");
    set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://b/own/path");
    assert_int_equal(read_all(&s, "", &err), 0);
    assert_string_equal(s.traces, "http://a:4318/v1/traces");
    assert_string_equal(s.metrics, "https://b/own/path");
    export_settings_release(&s);
    assert_int_equal(read_all(&s, "http://c", &err), 0); /* the option comes first */
    assert_string_equal(s.traces, "http://c/v1/traces");
    assert_string_equal(s.metrics, "http://c/v1/metrics");
    export_settings_release(&s);
    set("OTEL_METRICS_EXPORTER", "none");
    assert_int_equal(read_all(&s, "", &err), 0);
    assert_non_null(s.traces);
    assert_null(s.metrics);
    export_settings_release(&s);
    set("OTEL_SDK_DISABLED", "true");
    assert_int_equal(read_all(&s, "", &err), 0);
    assert_null(s.traces);
    export_settings_release(&s);
}

static void protocols(void **state)
{
    struct export_settings s;
    struct error err;
    assert_int_equal(read_all(&s, "http://a", &err), 0);
    assert_false(s.traces_json || s.metrics_json);
    export_settings_release(&s);
    set("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    set("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf");
    assert_int_equal(read_all(&s, "http://a", &err), 0);
    assert_true(s.traces_json && !s.metrics_json);
    export_settings_release(&s);
}

static void lists(void **state)
{
    struct export_settings s;
    struct error err;
    set("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b%3D , other=c=d,");
    set("OTEL_SERVICE_NAME", "mine");
    set("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test");
    assert_int_equal(read_all(&s, "", &err), 0);
    static const char headers[] = "x-key: a b=\0other: c=d";
    assert_int_equal(s.trace_headers.len, sizeof(headers));
    assert_memory_equal(s.trace_headers.data, headers, sizeof(headers));
    assert_memory_equal(s.metric_headers.data, headers, sizeof(headers));
    assert_string_equal(s.resource.data, "service.name=mine");
    assert_non_null(memmem(s.resource.data, s.resource.len, "deployment.environment=test", 28));
    export_settings_release(&s);
}

/* Each attribute once, whoever said it. */
static void resources(void **state)
{
#define VERSION "service.version=" CELLA_VERSION "\0"
#define ROW(service, list, expected)                                                               \
    {                                                                                              \
        service, list, expected, sizeof(expected) - 1                                              \
    }
    static const struct {
        const char *service, *list, *expected;
        size_t len;
    } rows[] = {
        ROW("", "", "service.name=cella\0" VERSION "service.instance.id=folder7\0"),
        ROW("mine", "service.name=theirs,a=b",
            "service.name=mine\0" VERSION "service.instance.id=folder7\0a=b\0"),
        ROW("mine", "a=b, service.name=theirs ,c=d",
            "service.name=mine\0" VERSION "service.instance.id=folder7\0a=b\0c=d\0"),
        ROW("", "a=b,service.name=theirs",
            VERSION "service.instance.id=folder7\0a=b\0service.name=theirs\0"),
        ROW("", "k8s.service.name=x",
            "service.name=cella\0" VERSION "service.instance.id=folder7\0k8s.service.name=x\0"),
        ROW("mine", "k8s.service.name=x",
            "service.name=mine\0" VERSION "service.instance.id=folder7\0k8s.service.name=x\0"),
        ROW("", "service.instance.id=pod-3,a=service.name=b",
            "service.name=cella\0" VERSION "service.instance.id=pod-3\0a=service.name=b\0"),
        ROW("", "service.version=9",
            "service.name=cella\0service.instance.id=folder7\0service.version=9\0"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct export_settings s;
        struct error err;
        set("OTEL_SERVICE_NAME", rows[i].service);
        set("OTEL_RESOURCE_ATTRIBUTES", rows[i].list);
        assert_int_equal(read_all(&s, "", &err), 0);
        assert_int_equal(s.resource.len, rows[i].len);
        assert_memory_equal(s.resource.data, rows[i].expected, rows[i].len);
        export_settings_release(&s);
    }
}

static void wrong_ones(void **state)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a b"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "novalue"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "=x"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0aevil: yes"},
        {"OTEL_RESOURCE_ATTRIBUTES", "a=b,novalue"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
        {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "json"},
        {"OTEL_TRACES_SAMPLER_ARG", "2"},
        {"OTEL_TRACES_SAMPLER_ARG", "half"},
        {"OTEL_BSP_SCHEDULE_DELAY", "1"},
        {"OTEL_BSP_SCHEDULE_DELAY", "soon"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct export_settings s;
        struct error err = {0};
        clear(NULL);
        set(rows[i].name, rows[i].value);
        assert_int_equal(read_all(&s, "", &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, rows[i].name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(off_by_default, clear), cmocka_unit_test_setup(addresses, clear),
        cmocka_unit_test_setup(protocols, clear),      cmocka_unit_test_setup(lists, clear),
        cmocka_unit_test_setup(resources, clear),      cmocka_unit_test_setup(wrong_ones, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
