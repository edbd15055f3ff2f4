/* SPDX-License-Identifier: Apache-2.0 */

/* Counting, and telling what was counted: the rows of meters.h, and the two tables that have no
 * rows because they follow from other lists (error codes, requests). */

#include "observe/meters.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct row {
    const char *name, *label, *value, *help;
    enum meter_scale scale;
};

static const struct row counter_rows[] = {
#define X(id, name_, label_, value_, help_)                                                        \
    {.name = (name_), .label = (label_), .value = (value_), .help = (help_)},
    METER_COUNTERS(X)
#undef X
};

static const struct row histogram_rows[] = {
#define X(id, name_, scale_, label_, value_, help_)                                                \
    {.name = (name_), .label = (label_), .value = (value_), .help = (help_), .scale = (scale_)},
    METER_HISTOGRAMS(X)
#undef X
};

static const struct {
    size_t count;
    double bounds[HISTOGRAM_BOUNDS_MAX];
} scales[METER_SCALES] = {
    [METER_LATENCY] = {19,
                       {.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1,
                        2.5, 5, 10, 30, 60, 300}},
    [METER_LONG] = {12, {1, 10, 60, 300, 900, 1800, 3600, 14400, 43200, 86400, 604800, 2592000}},
    [METER_COUNTS] = {12, {0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000}},
};

struct meters *meters_new(struct error *err)
{
    struct meters *m = calloc(1, sizeof(*m));
    if (m == NULL)
        error_sys(err, "making counters");
    return m;
}

void meters_free(struct meters *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < METER_APIS_MAX; i++)
        for (size_t k = 0; k < METER_CLASSES_MAX; k++)
            free(m->requests[i][k]);
    free(m);
}

static void observe(struct histogram *h, enum meter_scale scale, double value)
{
    size_t i = 0;
    while (i < scales[scale].count && value > scales[scale].bounds[i])
        i++;
    h->counts[i]++;
    h->sum += value;
}

void meter_observe(struct meters *m, enum meter_histogram histogram, double value)
{
    if (m != NULL)
        observe(&m->histograms[histogram], histogram_rows[histogram].scale, value);
}

void meter_took(struct meters *m, enum meter_histogram histogram, uint64_t begun)
{
    if (m != NULL)
        meter_observe(m, histogram, (double)(meter_now() - begun) / 1e9);
}

void meter_request(struct meters *m, unsigned api, unsigned class, int status, double seconds)
{
    if (m == NULL || api >= METER_APIS_MAX || class >= METER_CLASSES_MAX)
        return;
    uint64_t **counts = &m->requests[api][class];
    if (*counts == NULL)
        *counts = calloc(METER_STATUSES, sizeof(**counts));
    if (*counts != NULL && status >= 0 && status < METER_STATUSES)
        (*counts)[status]++;
    observe(&m->request_seconds[class], METER_LATENCY, seconds);
}

/* --- telling --- */

/* Begins the row's family, unless it is the one of the row before. */
static void begin_family(struct meter_sink *sink, const struct row *rows, size_t i,
                         enum meter_type type)
{
    if (i > 0 && strcmp(rows[i].name, rows[i - 1].name) == 0)
        return;
    sink->family(sink, &(struct meter_family){rows[i].name, rows[i].help, type});
}

static void tell_errors(const struct meters *m, struct meter_sink *sink)
{
    sink->family(sink, &(struct meter_family){"cella_errors_total",
                                              "Requests that failed, by the code of the error.",
                                              METER_TYPE_COUNTER});
    for (int code = 1; code < ERROR_NUMBERS; code++) {
        const struct meter_label label = {"code", error_name((enum error_code)code)};
        if (m->errors[code] > 0)
            sink->number(sink, &label, 1, (double)m->errors[code]);
    }
}

static void tell_statuses(const uint64_t *counts, const char *api, const char *class,
                          struct meter_sink *sink)
{
    for (int status = 0; status < METER_STATUSES; status++) {
        if (counts[status] == 0)
            continue;
        const char digits[] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10),
                               (char)('0' + status % 10), '\0'};
        const struct meter_label labels[] = {{"api", api}, {"class", class}, {"status", digits}};
        sink->number(sink, labels, ARRAY_LEN(labels), (double)counts[status]);
    }
}

static void tell_requests(const struct meters *m, const struct meter_names *names,
                          struct meter_sink *sink)
{
    sink->family(sink, &(struct meter_family){"cella_http_requests_total",
                                              "Requests that were answered, by facade, kind of "
                                              "route and status (0: cut before an answer).",
                                              METER_TYPE_COUNTER});
    for (size_t i = 0; i < METER_APIS_MAX && names->apis[i] != NULL; i++)
        for (size_t k = 0; k < METER_CLASSES_MAX && names->classes[k] != NULL; k++)
            if (m->requests[i][k] != NULL)
                tell_statuses(m->requests[i][k], names->apis[i], names->classes[k], sink);
    sink->family(sink, &(struct meter_family){"cella_http_request_duration_seconds",
                                              "From a request's header to the end of its answer, "
                                              "by kind of route.",
                                              METER_TYPE_HISTOGRAM});
    for (size_t k = 0; k < METER_CLASSES_MAX && names->classes[k] != NULL; k++) {
        const struct meter_label label = {"class", names->classes[k]};
        sink->histogram(sink, &label, 1, scales[METER_LATENCY].bounds, scales[METER_LATENCY].count,
                        &m->request_seconds[k]);
    }
}

void meters_tell(const struct meters *m, const struct meter_names *names, struct meter_sink *sink)
{
    tell_requests(m, names, sink);
    tell_errors(m, sink);
    for (size_t i = 0; i < ARRAY_LEN(counter_rows); i++) {
        const struct row *row = &counter_rows[i];
        const struct meter_label label = {row->label, row->value};
        begin_family(sink, counter_rows, i, METER_TYPE_COUNTER);
        sink->number(sink, &label, row->label != NULL ? 1 : 0, (double)m->counters[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(histogram_rows); i++) {
        const struct row *row = &histogram_rows[i];
        const struct meter_label label = {row->label, row->value};
        begin_family(sink, histogram_rows, i, METER_TYPE_HISTOGRAM);
        sink->histogram(sink, &label, row->label != NULL ? 1 : 0, scales[row->scale].bounds,
                        scales[row->scale].count, &m->histograms[i]);
    }
}

void meter_gauge(struct meter_sink *sink, const char *name, const char *help, double value)
{
    sink->family(sink, &(struct meter_family){name, help, METER_TYPE_GAUGE});
    sink->number(sink, NULL, 0, value);
}
