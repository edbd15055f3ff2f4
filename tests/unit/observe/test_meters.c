/* SPDX-License-Identifier: Apache-2.0 */

#include "observe/meters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

/* What a sink was told. */
struct told {
    struct meter_sink sink;
    const char *family;
    unsigned families, samples;
    double value; /* of the sample that the next two name */
    const char *wanted, *label;
    uint64_t beyond;
};

static void take_family(struct meter_sink *sink, const struct meter_family *family)
{
    struct told *told = container_of(sink, struct told, sink);
    assert_non_null(family->help); /* the first row of a family has it */
    told->family = family->name;
    told->families++;
}

static void take_number(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                        double value)
{
    struct told *told = container_of(sink, struct told, sink);
    told->samples++;
    if (strcmp(told->family, told->wanted) == 0 &&
        (told->label == NULL || (count > 0 && strcmp(labels[count - 1].value, told->label) == 0)))
        told->value = value;
}

static void take_histogram(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                           const double *bounds, size_t bound_count,
                           const struct histogram *histogram)
{
    struct told *told = container_of(sink, struct told, sink);
    for (size_t i = 1; i < bound_count; i++)
        assert_true(bounds[i] > bounds[i - 1]);
    told->samples++;
    if (strcmp(told->family, told->wanted) == 0) {
        told->value = histogram->sum;
        told->beyond = histogram->counts[bound_count];
    }
}

static void tell(const struct meters *m, struct told *told, const char *wanted, const char *label)
{
    static const char *const apis[] = {"cella", NULL}, *const classes[] = {"none", "file", NULL};
    const struct meter_names names = {apis, classes};
    *told = (struct told){.sink = {take_family, take_number, take_histogram},
                          .wanted = wanted,
                          .label = label,
                          .value = -1};
    meters_tell(m, &names, &told->sink);
}

static void counts(void **state)
{
    struct meters *m = meters_new(NULL);
    struct told told;
    meter_count(m, METER_RETRY_WARDEN);
    meter_add(m, METER_RETRY_WARDEN, 2);
    meter_error(m, ERROR_NOT_RUNNING);
    meter_request(m, 0, 1, 404, 0.5);
    meter_request(m, 0, 1, 404, 0.5);
    meter_request(m, METER_APIS_MAX, 1, 404, 0.5); /* nobody's */
    meter_observe(m, METER_SESSION_EXECUTIONS, 1e9);
    tell(m, &told, "cella_retries_total", "warden");
    assert_true(told.value == 3);
    tell(m, &told, "cella_errors_total", "NOT_RUNNING");
    assert_true(told.value == 1);
    tell(m, &told, "cella_http_requests_total", "404");
    assert_true(told.value == 2);
    tell(m, &told, "cella_session_executions", NULL);
    assert_true(told.value == 1e9);
    assert_int_equal(told.beyond, 1);
    meters_free(m);
}

/* A counter that begins anew looks like a server that does. */
static void requests_do_not_wrap(void **state)
{
    struct meters *m = meters_new(NULL);
    struct told told;
    meter_request(m, 0, 1, 200, 0.5);
    m->requests[0][1][200] = UINT32_MAX;
    meter_request(m, 0, 1, 200, 0.5);
    tell(m, &told, "cella_http_requests_total", "200");
    assert_true(told.value == 4294967296.0);
    meters_free(m);
}

static void nobody_counts(void **state)
{
    meter_count(NULL, METER_RETRY_WARDEN);
    meter_error(NULL, ERROR_INTERNAL);
    meter_observe(NULL, METER_WARDEN, 1);
    meter_took(NULL, METER_WARDEN, meter_now());
    meter_request(NULL, 0, 0, 200, 1);
    meters_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts),
                                       cmocka_unit_test(requests_do_not_wrap),
                                       cmocka_unit_test(nobody_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
