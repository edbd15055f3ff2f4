/* SPDX-License-Identifier: Apache-2.0 */

/* An exporter and a collector of ours, which answers when it is told to. */

#include "../http/fixture.h"

#include "export/exporter.h"
#include "observe/span.h"

enum { PATIENCE_MS = 20 * 1000, NEVER_MS = 3600 * 1000 };

struct collector {
    struct fixture *f;
    struct meters *meters;
    struct exporter *exporter;
    int refusals;   /* before it takes anything */
    bool held;      /* nothing is answered */
    int64_t at[16]; /* when each request came, in ms */
    struct co_cond come, let_go;
};

static int collect(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    struct collector *c = f->data;
    struct slice body;
    if (http_body_all(x, 8 << 20, &body, err) != 0)
        return -1;
    c->at[f->count++] = (int64_t)(meter_now() / 1000000);
    co_cond_wake_all(&c->come);
    while (c->held)
        if (co_cond_wait(f->loop, &c->let_go, PATIENCE_MS, err) != 0)
            return -1;
    return http_reply(x, c->refusals-- > 0 ? 503 : 200, NULL, NULL, 0, err);
}

static void await_request(struct collector *c, int number)
{
    struct error err = {0};
    while (c->f->count < number)
        if (co_cond_wait(c->f->loop, &c->come, PATIENCE_MS, &err) != 0)
            fail_msg("request %d: %s", number, err.message);
}

static void answer(struct collector *c)
{
    c->held = false;
    co_cond_wake_all(&c->let_go);
}

static void make_spans(struct collector *c, int count)
{
    for (int i = 0; i < count; i++) {
        struct errand errand = {0};
        struct span span;
        span_begin_request(exporter_tracer(c->exporter), &errand, &span);
        span.name = "GET /";
        span_end(&errand, &span, SPAN_SERVER, NULL, NULL, 0);
    }
}

static void tell_nothing(void *ctx, struct meter_sink *sink)
{
}

static void begin(struct collector *c, struct fixture *f)
{
    char url[100];
    struct error err;
    struct export_settings settings = {.trace_headers = BUF_INIT(1),
                                       .metric_headers = BUF_INIT(1),
                                       .resource = BUF_INIT(1),
                                       .ratio = 1,
                                       .traces_ms = NEVER_MS,
                                       .metrics_ms = NEVER_MS};
    snprintf(url, sizeof(url), "http://%s/v1/traces", f->address);
    settings.traces = strdup(url);
    c->f = f;
    c->meters = meters_new(&err);
    loop_set_meters(f->loop, c->meters);
    assert_int_equal(exporter_new(f->loop, &settings, tell_nothing, NULL, &c->exporter, &err), 0);
    assert_int_equal(exporter_start(c->exporter, &err), 0);
}

static void end(struct collector *c)
{
    exporter_stop(c->exporter);
    exporter_free(c->exporter);
    loop_set_meters(c->f->loop, NULL);
    meters_free(c->meters);
}

/* A request takes its time, and meanwhile so many come that the next one is due. */
static void many_during_a_request(struct fixture *f)
{
    struct collector *c = f->data;
    c->held = true;
    begin(c, f);
    make_spans(c, SPANS_MANY);
    await_request(c, 1);
    make_spans(c, SPANS_MANY + 1);
    answer(c);
    await_request(c, 2);
    end(c);
}

static void test_many_during_a_request(void **state)
{
    fixture_run(collect, NULL, many_during_a_request, &(struct collector){0});
}

/* Whoever has refused is asked again after a second, however many there are by then. */
static void refused(struct fixture *f)
{
    struct collector *c = f->data;
    c->refusals = 1;
    begin(c, f);
    make_spans(c, SPANS_MANY);
    await_request(c, 1);
    while (c->meters->counters[METER_RETRY_EXPORT] == 0) {
        struct error err;
        co_sleep(f->loop, 1, &err);
    }
    make_spans(c, SPANS_MANY);
    await_request(c, 3);
    assert_true(c->at[1] - c->at[0] >= 1000);
    end(c);
}

static void test_refused(void **state)
{
    fixture_run(collect, NULL, refused, &(struct collector){0});
}

static void answer_later(void *arg)
{
    struct collector *c = arg;
    struct error err;
    co_sleep(c->f->loop, 1, &err); /* exporter_stop() waits by then */
    answer(c);
}

/* What came while the last request was under way is not forgotten. */
static void stopped_during_a_request(struct fixture *f)
{
    struct collector *c = f->data;
    struct error err;
    c->held = true;
    begin(c, f);
    make_spans(c, SPANS_MANY);
    await_request(c, 1);
    make_spans(c, 7);
    assert_int_equal(co_spawn(f->loop, answer_later, c, NULL, &err), 0);
    exporter_stop(c->exporter);
    assert_int_equal(f->count, 2);
    assert_int_equal(c->meters->counters[METER_SPANS_EXPORTED], SPANS_MANY + 7);
    assert_int_equal(c->meters->counters[METER_SPANS_DROPPED], 0);
    end(c);
}

static void test_stopped_during_a_request(void **state)
{
    fixture_run(collect, NULL, stopped_during_a_request, &(struct collector){0});
}

/* A collector that does not answer holds nobody up for long; all of it is counted. */
static void stopped_in_vain(struct fixture *f)
{
    struct collector *c = f->data;
    c->held = true;
    begin(c, f);
    make_spans(c, SPANS_MANY);
    await_request(c, 1);
    make_spans(c, 7);
    exporter_stop(c->exporter);
    assert_int_equal(c->meters->counters[METER_SPANS_EXPORTED], 0);
    assert_int_equal(c->meters->counters[METER_SPANS_DROPPED], SPANS_MANY + 7);
    answer(c);
    end(c);
}

static void test_stopped_in_vain(void **state)
{
    fixture_run(collect, NULL, stopped_in_vain, &(struct collector){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_during_a_request),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_stopped_during_a_request),
        cmocka_unit_test(test_stopped_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
