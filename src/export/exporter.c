/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two coroutines, one for spans and one for figures, that wait most of the time. Spans that could
 * not be delivered for a while are dropped; figures are counted from the start of the server, so
 * that the next set says what a lost one would have said.
 */

#include "export/exporter.h"

#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "http/webhook.h"
#include "loop/co.h"
#include "observe/otlp.h"
#include "observe/otlp_json.h"

enum {
    ATTEMPTS = 5,
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MOST_MS = 30 * 1000,
    LAST_TRY_MS = 2000,
    SEND_MS = 10 * 1000,
    METRICS_BYTES_MAX = 4 << 20,
    REQUEST_ROOM = 64 * 1024, /* around the spans */
    JSON_BYTES_MAX = 4 * METRICS_BYTES_MAX,
};

struct exporter {
    struct loop *loop;
    struct export_settings settings;
    exporter_tell *tell;
    void *ctx;
    struct webhook *webhook;
    struct tracer tracer;
    uint64_t start_unix_ns;
    unsigned running; /* coroutines */
    bool stopping;
    bool failing;         /* it was said so */
    struct co_cond many;  /* spans, or it stops */
    struct co_cond stops; /* only that: a collector that refuses is not asked sooner for it */
    struct co_cond ended;
};

static uint64_t unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void many_spans(void *ctx)
{
    struct exporter *e = ctx;
    co_cond_wake_all(&e->many);
}

int exporter_new(struct loop *loop, struct export_settings *settings, exporter_tell *tell,
                 void *ctx, struct exporter **ret_exporter, struct error *err)
{
    *ret_exporter = NULL;
    if (settings->traces == NULL && settings->metrics == NULL) {
        export_settings_release(settings);
        return 0;
    }
    struct exporter *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return error_sys(err, "preparing to export");
    e->loop = loop;
    e->tell = tell;
    e->ctx = ctx;
    e->start_unix_ns = unix_ns();
    e->webhook = webhook_new(loop, true, err); /* the operator has named it */
    if (e->webhook == NULL) {
        free(e);
        return -1;
    }
    e->settings = *settings;
    *settings = (struct export_settings){0};
    tracer_init(&e->tracer, e->settings.ratio, loop_meters(loop));
    e->tracer.many = many_spans;
    e->tracer.ctx = e;
    *ret_exporter = e;
    return 0;
}

void exporter_free(struct exporter *e)
{
    if (e == NULL)
        return;
    webhook_free(e->webhook);
    tracer_release(&e->tracer);
    export_settings_release(&e->settings);
    free(e);
}

struct tracer *exporter_tracer(struct exporter *e)
{
    return e == NULL || e->settings.traces == NULL ? NULL : &e->tracer;
}

/* --- sending --- */

static void tell_state(struct exporter *e, bool failing, const struct error *why)
{
    if (failing != e->failing && failing)
        log_warn("the OpenTelemetry collector: %s", why->message);
    else if (failing != e->failing)
        log_info("the OpenTelemetry collector answers again");
    e->failing = failing;
}

/* As the specification has it: these come again, everything else is final. */
static bool may_retry(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* What is sent, and where; not changed while it is tried again. */
struct delivery {
    const char *url;
    const struct buf *headers;
    struct slice body;
    bool json;
    uint64_t items;
};

static int send_once(struct exporter *e, const struct delivery *d, int *ret_status,
                     struct error *err)
{
    const struct webhook_call call = {.url = d->url,
                                      .content_type =
                                          d->json ? "application/json" : "application/x-protobuf",
                                      .body = d->body,
                                      .headers = {d->headers->data, d->headers->len},
                                      .timeout_ms = e->stopping ? LAST_TRY_MS : SEND_MS};
    uint64_t begun = meter_now();
    int rc = webhook_send(e->webhook, &call, ret_status, err);
    meter_took(loop_meters(e->loop), METER_CALL_COLLECTOR, begun);
    tell_state(e, rc < 0, err);
    return rc;
}

/* Counts what became of its items. */
static void deliver(struct exporter *e, const struct delivery *d, unsigned attempts)
{
    struct meters *meters = loop_meters(e->loop);
    int64_t pause = BACKOFF_FIRST_MS;
    struct error err;
    int status = 0;
    for (unsigned i = 0; i < attempts; i++) {
        if (i > 0) {
            meter_count(meters, METER_RETRY_EXPORT);
            co_cond_wait(e->loop, &e->stops, pause, &err);
            pause = pause * 2 < BACKOFF_MOST_MS ? pause * 2 : BACKOFF_MOST_MS;
        }
        if (send_once(e, d, &status, &err) == 0) {
            meter_add(meters, METER_SPANS_EXPORTED, d->items);
            return;
        }
        if (!may_retry(status) || e->stopping)
            break;
    }
    meter_add(meters, may_retry(status) ? METER_SPANS_DROPPED : METER_SPANS_REJECTED, d->items);
}

/* In the encoding that the collector is to get. */
static void deliver_as(struct exporter *e, struct delivery *d, struct buf *body,
                       void (*to_json)(struct buf *out, struct slice request), unsigned attempts)
{
    _cleanup_buf_ struct buf text = BUF_INIT(JSON_BYTES_MAX);
    d->body = (struct slice){body->data, body->len};
    if (d->json && !body->failed) {
        to_json(&text, d->body);
        d->body = (struct slice){text.data, text.len};
    }
    if (body->failed || text.failed)
        meter_add(loop_meters(e->loop), METER_SPANS_DROPPED, d->items);
    else
        deliver(e, d, attempts);
}

static struct otlp_resource resource_of(const struct exporter *e)
{
    return (struct otlp_resource){
        .attributes = {e->settings.resource.data, e->settings.resource.len},
        .version = CELLA_VERSION};
}

static void send_spans(struct exporter *e)
{
    struct tracer *tracer = &e->tracer;
    const struct otlp_resource resource = resource_of(e);
    _cleanup_buf_ struct buf body = BUF_INIT(SPANS_BYTES_MAX + REQUEST_ROOM);
    unsigned count = tracer->span_count;
    otlp_traces(&body, &resource, (struct slice){tracer->spans.data, tracer->spans.len});
    buf_release(&tracer->spans);
    tracer->span_count = 0;
    struct delivery d = {.url = e->settings.traces,
                         .headers = &e->settings.trace_headers,
                         .json = e->settings.traces_json,
                         .items = count};
    deliver_as(e, &d, &body, otlp_traces_to_json, ATTEMPTS);
}

static void send_figures(struct exporter *e)
{
    const struct otlp_resource resource = resource_of(e);
    _cleanup_buf_ struct buf body = BUF_INIT(METRICS_BYTES_MAX);
    struct otlp_metrics metrics;
    otlp_metrics_begin(&metrics, &body, &resource, e->start_unix_ns, unix_ns());
    e->tell(e->ctx, &metrics.sink);
    otlp_metrics_end(&metrics);
    struct delivery d = {.url = e->settings.metrics,
                         .headers = &e->settings.metric_headers,
                         .json = e->settings.metrics_json,
                         .items = 1};
    deliver_as(e, &d, &body, otlp_metrics_to_json, 1);
}

static void ended(struct exporter *e)
{
    e->running--;
    co_cond_wake_all(&e->ended);
}

/* Nobody is woken who does not wait: what has come while a request was under way is looked at, and
 * once more after the end. That last one is cut short, and counted as dropped, by exporter_stop().
 */
static void spans_run(void *arg)
{
    struct exporter *e = arg;
    struct error err;
    while (!e->stopping) {
        if (e->tracer.span_count < SPANS_MANY)
            co_cond_wait(e->loop, &e->many, e->settings.traces_ms, &err);
        if (e->tracer.span_count > 0)
            send_spans(e);
    }
    if (e->tracer.span_count > 0)
        send_spans(e);
    ended(e);
}

static void figures_run(void *arg)
{
    struct exporter *e = arg;
    struct error err;
    while (!e->stopping) {
        co_cond_wait(e->loop, &e->stops, e->settings.metrics_ms, &err);
        send_figures(e);
    }
    ended(e);
}

int exporter_start(struct exporter *e, struct error *err)
{
    e->running += (e->settings.traces != NULL) + (e->settings.metrics != NULL);
    if (e->settings.traces != NULL && co_spawn(e->loop, spans_run, e, NULL, err) < 0)
        return -1;
    if (e->settings.metrics != NULL && co_spawn(e->loop, figures_run, e, NULL, err) < 0)
        return -1;
    log_info("traces go to %s, figures to %s",
             e->settings.traces != NULL ? e->settings.traces : "nobody",
             e->settings.metrics != NULL ? e->settings.metrics : "nobody");
    return 0;
}

void exporter_stop(struct exporter *e)
{
    struct error err;
    if (e == NULL)
        return;
    e->stopping = true;
    co_cond_wake_all(&e->many);
    co_cond_wake_all(&e->stops);
    /* What was sent before has more time than that: it is cut short. */
    int64_t end = loop_now(e->loop) + LAST_TRY_MS + LAST_TRY_MS / 2;
    while (e->running > 0) {
        int64_t left = end - loop_now(e->loop);
        if (left <= 0)
            webhook_stop(e->webhook);
        if (co_cond_wait(e->loop, &e->ended, left > 0 ? left : SEND_MS, &err) < 0 && left <= 0)
            break;
    }
}
