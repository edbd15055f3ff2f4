/* SPDX-License-Identifier: Apache-2.0 */

#include "observe/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

static void tell(struct exposition *e)
{
    static const double bounds[] = {0.5, 1};
    const struct histogram histogram = {.counts = {1, 2, 3}, .sum = 10.25};
    const struct meter_label label = {"what", "a \"b\" \\ \n"};
    e->sink.family(&e->sink,
                   &(struct meter_family){"x_total", "Help \\ me\n.", METER_TYPE_COUNTER});
    e->sink.number(&e->sink, &label, 1, 3);
    e->sink.family(&e->sink, &(struct meter_family){"y", "Y.", METER_TYPE_HISTOGRAM});
    e->sink.histogram(&e->sink, NULL, 0, bounds, 2, &histogram);
    meter_gauge(&e->sink, "z", "Z.", 0.1);
}

static void text(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    struct exposition e;
    exposition_begin(&e, &out, false);
    tell(&e);
    exposition_end(&e);
    assert_string_equal(out.data, "# HELP x_total Help \\\\ me\\n.\n"
                                  "# TYPE x_total counter\n"
                                  "x_total{what=\"a \\\"b\\\" \\\\ \\n\"} 3\n"
                                  "# HELP y Y.\n"
                                  "# TYPE y histogram\n"
                                  "y_bucket{le=\"0.5\"} 1\n"
                                  "y_bucket{le=\"1\"} 3\n"
                                  "y_bucket{le=\"+Inf\"} 6\n"
                                  "y_sum 10.25\n"
                                  "y_count 6\n"
                                  "# HELP z Z.\n"
                                  "# TYPE z gauge\n"
                                  "z 0.1\n");
}

static void openmetrics(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    struct exposition e;
    exposition_begin(&e, &out, true);
    tell(&e);
    exposition_end(&e);
    assert_non_null(strstr(out.data, "# TYPE x counter\nx_total{"));
    assert_non_null(strstr(out.data, "y_bucket{le=\"1.0\"} 3\n"));
    assert_string_equal(out.data + out.len - 6, "# EOF\n");
}

static void choice(void **state)
{
    assert_false(exposition_wants_openmetrics(NULL));
    assert_false(exposition_wants_openmetrics("*/*"));
    assert_false(exposition_wants_openmetrics("text/plain,application/openmetrics-text"));
    assert_true(exposition_wants_openmetrics(
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(text), cmocka_unit_test(openmetrics),
                                       cmocka_unit_test(choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
