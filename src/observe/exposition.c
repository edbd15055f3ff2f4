/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two formats differ in little: OpenMetrics names a counter's family without the _total that
 * its samples have, and wants a last line that says that nothing is missing.
 */

#include "observe/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static void add_escaped(struct buf *out, const char *text, bool quotes)
{
    for (; *text != '\0'; text++)
        if (*text == '\\')
            buf_adds(out, "\\\\");
        else if (*text == '\n')
            buf_adds(out, "\\n");
        else if (*text == '"' && quotes)
            buf_adds(out, "\\\"");
        else
            buf_addc(out, *text);
}

static void add_number(struct buf *out, double value)
{
    if (isnan(value) || isinf(value)) {
        buf_adds(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    buf_add_double(out, value);
}

static void add_family(struct meter_sink *sink, const struct meter_family *family)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    struct exposition *e = container_of(sink, struct exposition, sink);
    size_t len = strlen(family->name), tail = strlen("_total");
    e->family = *family;
    if (e->openmetrics && family->type == METER_TYPE_COUNTER && len > tail &&
        strcmp(family->name + len - tail, "_total") == 0)
        len -= tail;
    buf_addf(e->out, "# HELP %.*s ", (int)len, family->name);
    add_escaped(e->out, family->help == NULL ? "" : family->help, e->openmetrics);
    buf_addf(e->out, "\n# TYPE %.*s %s\n", (int)len, family->name, types[family->type]);
}

/* le: of a bucket; NULL: none. */
static void add_sample(struct exposition *e, const char *suffix, const struct meter_label *labels,
                       size_t count, const double *le, double value)
{
    buf_adds(e->out, e->family.name);
    buf_adds(e->out, suffix);
    for (size_t i = 0; i < count; i++) {
        buf_addf(e->out, "%c%s=\"", i == 0 ? '{' : ',', labels[i].name);
        add_escaped(e->out, labels[i].value, true);
        buf_addc(e->out, '"');
    }
    if (le != NULL) {
        buf_addf(e->out, "%cle=\"", count == 0 ? '{' : ',');
        add_number(e->out, *le);
        if (e->openmetrics && !isinf(*le) && *le == (double)(long)*le)
            buf_adds(e->out, ".0"); /* as OpenMetrics has it */
        buf_addc(e->out, '"');
    }
    buf_adds(e->out, count > 0 || le != NULL ? "} " : " ");
    add_number(e->out, value);
    buf_addc(e->out, '\n');
}

static void add_value(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                      double value)
{
    add_sample(container_of(sink, struct exposition, sink), "", labels, count, NULL, value);
}

static void add_histogram(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                          const double *bounds, size_t bound_count,
                          const struct histogram *histogram)
{
    struct exposition *e = container_of(sink, struct exposition, sink);
    uint64_t so_far = 0;
    for (size_t i = 0; i <= bound_count; i++) {
        const double le = i < bound_count ? bounds[i] : (double)INFINITY;
        so_far += histogram->counts[i];
        add_sample(e, "_bucket", labels, count, &le, (double)so_far);
    }
    add_sample(e, "_sum", labels, count, NULL, histogram->sum);
    add_sample(e, "_count", labels, count, NULL, (double)so_far);
}

void exposition_begin(struct exposition *e, struct buf *out, bool openmetrics)
{
    *e = (struct exposition){
        .sink = {.family = add_family, .number = add_value, .histogram = add_histogram},
        .out = out,
        .openmetrics = openmetrics,
    };
}

void exposition_end(struct exposition *e)
{
    if (e->openmetrics)
        buf_adds(e->out, "# EOF\n");
}

/* Prometheus names what it likes best first; q-values are not weighed. */
bool exposition_wants_openmetrics(const char *accept)
{
    if (accept == NULL)
        return false;
    const char *open = strcasestr(accept, "application/openmetrics-text");
    const char *plain = strcasestr(accept, "text/plain");
    return open != NULL && (plain == NULL || open < plain);
}
