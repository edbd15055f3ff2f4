/* SPDX-License-Identifier: Apache-2.0 */

#include "observe/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

static const uint8_t none[TRACE_ID_SIZE];

static void roots_are_sampled(void **state)
{
    struct tracer all, some, no;
    struct span span;
    unsigned recorded = 0;
    tracer_init(&all, 1, NULL);
    tracer_init(&some, 0.5, NULL);
    tracer_init(&no, 0, NULL);
    for (int i = 0; i < 1000; i++) {
        struct errand errand = {0};
        span_begin_request(&all, &errand, &span);
        assert_true(span.recorded && errand.traced && errand.trace_flags == 1);
        assert_memory_not_equal(errand.trace_id, none, TRACE_ID_SIZE);
        memset(&errand, 0, sizeof(errand));
        span_begin_request(&no, &errand, &span);
        assert_true(!span.recorded && errand.traced && errand.trace_flags == 0);
        memset(&errand, 0, sizeof(errand));
        span_begin_request(&some, &errand, &span);
        recorded += span.recorded;
    }
    assert_in_range(recorded, 300, 700);
}

static void parents_decide(void **state)
{
    struct tracer none_of_ours, all;
    struct span span;
    struct errand errand = {.traced = true, .trace_flags = 1, .trace_id = {1}, .span_id = {2}};
    tracer_init(&none_of_ours, 0, NULL);
    tracer_init(&all, 1, NULL);
    span_begin_request(&none_of_ours, &errand, &span);
    assert_true(span.recorded && span.parent[0] == 2 && errand.trace_id[0] == 1);
    assert_memory_equal(errand.span_id, span.id, SPAN_ID_SIZE);
    errand = (struct errand){.traced = true, .trace_id = {1}, .span_id = {2}};
    span_begin_request(&all, &errand, &span);
    assert_true(!span.recorded && errand.span_id[0] == 2); /* passed on as it came */
}

static void children(void **state)
{
    struct tracer tracer;
    struct errand errand = {0};
    struct span outer, inner;
    tracer_init(&tracer, 1, NULL);
    span_begin_request(&tracer, &errand, &outer);
    span_begin(&errand, &inner, "inner");
    assert_memory_equal(inner.parent, outer.id, SPAN_ID_SIZE);
    span_end(&errand, &inner, SPAN_INTERNAL, NULL, NULL, 0);
    assert_memory_equal(errand.span_id, outer.id, SPAN_ID_SIZE);
    outer.name = "outer";
    span_end(&errand, &outer, SPAN_SERVER, NULL, NULL, 0);
    assert_int_equal(tracer.span_count, 2);
    span_begin(NULL, &inner, "nobody's");
    span_end(NULL, &inner, SPAN_INTERNAL, NULL, NULL, 0);
    assert_int_equal(tracer.span_count, 2);
    tracer_release(&tracer);
}

/* Past the bound they are dropped whole, and counted. */
static void bounded(void **state)
{
    struct tracer tracer;
    struct meters *meters = meters_new(NULL);
    struct errand errand = {0};
    struct span span;
    tracer_init(&tracer, 1, meters);
    span_begin_request(&tracer, &errand, &span);
    const uint64_t enough = SPANS_BYTES_MAX / 50;
    for (uint64_t i = 0; i < enough; i++) {
        struct span one;
        span_begin(&errand, &one, "one");
        span_end(&errand, &one, SPAN_INTERNAL, NULL, NULL, 0);
    }
    assert_false(tracer.spans.failed);
    assert_true(tracer.spans.len <= SPANS_BYTES_MAX);
    assert_true(meters->counters[METER_SPANS_DROPPED] > 0);
    assert_true(tracer.span_count + meters->counters[METER_SPANS_DROPPED] == enough);
    tracer_release(&tracer);
    meters_free(meters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_sampled),
        cmocka_unit_test(parents_decide),
        cmocka_unit_test(children),
        cmocka_unit_test(bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
