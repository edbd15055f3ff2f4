/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella sandbox metrics`: figures in a table, and on a terminal a line of blocks for each series
 * below it. Programs get plain numbers: bytes and cores.
 */

#include "cli/verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/chart.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/table.h"

enum { SERIES = 5, ALWAYS = 3, LABEL_WIDTH = 34 };

static const struct {
    const char *name, *title, *label;
} series[SERIES] = {
    {"cpu", "CPU", "cpu"},
    {"memory", "MEMORY", "memory"},
    {"disk", "DISK", "disk"},
    {"networkIn", "IN/S", "in/s"}, /* of what has a network, as the next */
    {"networkOut", "OUT/S", "out/s"},
};

/* All series on one axis of time. */
struct axis {
    int64_t first; /* Unix time of the first interval */
    uint64_t step;
    size_t count;
    size_t shown;            /* so many series */
    double *figures[SERIES]; /* NAN where there is none */
};

static void cleanup_axis(struct axis *axis)
{
    for (size_t i = 0; i < SERIES; i++)
        free(axis->figures[i]);
}

/* -1: not a time as the API writes it. */
static int64_t unix_time(const char *text)
{
    struct tm tm = {0};
    const char *end = text == NULL ? NULL : strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return end == NULL || *end != '\0' ? -1 : (int64_t)timegm(&tm);
}

static int64_t newest_time(yyjson_val *metrics)
{
    int64_t newest = -1;
    for (size_t s = 0; s < SERIES; s++) {
        yyjson_val *last = yyjson_arr_get_last(yyjson_obj_get(metrics, series[s].name));
        int64_t time = unix_time(yyjson_get_str(yyjson_obj_get(last, "timestamp")));
        if (time > newest)
            newest = time;
    }
    return newest;
}

static void take_series(struct axis *axis, size_t s, yyjson_val *points)
{
    yyjson_val *point;
    size_t i, count;
    yyjson_arr_foreach(points, i, count, point)
    {
        int64_t time = unix_time(yyjson_get_str(yyjson_obj_get(point, "timestamp")));
        int64_t at = time < axis->first ? -1 : (time - axis->first) / (int64_t)axis->step;
        if (at >= 0 && (uint64_t)at < axis->count)
            axis->figures[s][at] = yyjson_get_num(yyjson_obj_get(point, "value"));
    }
}

static int axis_read(yyjson_val *root, struct axis *axis, struct error *err)
{
    uint64_t period = 0;
    yyjson_val *metrics = yyjson_obj_get(root, "metrics");
    axis->step = yyjson_get_uint(yyjson_obj_get(root, "resolution"));
    if (axis->step == 0 || duration_seconds(client_text(root, "/period").data, &period, err) < 0 ||
        period / axis->step > METRICS_POINTS_MAX)
        return error_set(err, ERROR_UNAVAILABLE, "the server's answer makes no sense");
    axis->count = period / axis->step > 0 ? period / axis->step : 1;
    axis->first = newest_time(metrics) - (int64_t)((axis->count - 1) * axis->step);
    for (size_t s = 0; s < SERIES; s++) {
        axis->figures[s] = malloc(axis->count * sizeof(double));
        if (axis->figures[s] == NULL)
            return error_set(err, ERROR_INTERNAL, "out of memory");
        for (size_t i = 0; i < axis->count; i++)
            axis->figures[s][i] = NAN;
        take_series(axis, s, yyjson_obj_get(metrics, series[s].name));
        if (s < ALWAYS || yyjson_arr_size(yyjson_obj_get(metrics, series[s].name)) > 0)
            axis->shown = s + 1;
    }
    return 0;
}

static void figure_text(size_t which, double figure, bool for_people, char out[SIZE_TEXT_MAX])
{
    out[0] = '\0';
    if (isnan(figure))
        return;
    if (which == 0)
        snprintf(out, SIZE_TEXT_MAX, "%.4g", figure);
    else if (for_people)
        size_text((uint64_t)figure, out);
    else
        snprintf(out, SIZE_TEXT_MAX, "%.0f", figure);
}

static void add_table(const struct axis *axis, bool for_people, struct buf *out)
{
    const char *titles[1 + SERIES] = {"TIME"};
    for (size_t s = 0; s < axis->shown; s++)
        titles[1 + s] = series[s].title;
    _cleanup_table_ struct table *table = table_new(titles, 1 + axis->shown);
    for (size_t i = 0; i < axis->count; i++) {
        bool known = false;
        for (size_t s = 0; s < SERIES; s++)
            known |= !isnan(axis->figures[s][i]);
        if (!known)
            continue;
        char text[SIZE_TEXT_MAX];
        time_t time = axis->first + (int64_t)(i * axis->step);
        struct tm tm;
        gmtime_r(&time, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        table_text(table, text);
        for (size_t s = 0; s < axis->shown; s++) {
            figure_text(s, axis->figures[s][i], for_people, text);
            table_text(table, text);
        }
    }
    table_write(table, out);
}

static void add_charts(const struct axis *axis, struct buf *out)
{
    size_t columns = screen_columns();
    size_t width = columns > LABEL_WIDTH + 10 ? columns - LABEL_WIDTH : 10;
    for (size_t s = 0; s < SERIES; s++) {
        char last[SIZE_TEXT_MAX] = "", top[SIZE_TEXT_MAX] = "";
        double most = NAN;
        for (size_t i = 0; i < axis->count; i++) {
            double figure = axis->figures[s][i];
            if (isnan(figure))
                continue;
            figure_text(s, figure, true, last);
            most = isnan(most) || figure > most ? figure : most;
        }
        if (isnan(most))
            continue;
        figure_text(s, most, true, top);
        buf_addf(out, "%s%-7s%11s, at most%11s ", s == 0 ? "\n" : "", series[s].label, last, top);
        chart_line(out, axis->figures[s], axis->count, width, 0);
        buf_addc(out, '\n');
    }
}

static void add_query(struct buf *target, const struct args *args)
{
    static const char *const options[] = {"period", "resolution"};
    for (size_t i = 0, used = 0; i < ARRAY_LEN(options); i++) {
        const char *value = args_option(args, options[i], NULL);
        if (value == NULL)
            continue;
        buf_addf(target, "%c%s=", used++ == 0 ? '?' : '&', options[i]);
        target_add(target, value, false);
    }
}

int verb_sandbox_metrics(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    _cleanup_(cleanup_axis) struct axis axis = {0};
    yyjson_val *root;
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/metrics");
    add_query(&target, inv->args);
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    if (axis_read(root, &axis, err) < 0)
        return -1;
    add_table(&axis, screen_is_terminal(), &out);
    if (screen_shows_utf8())
        add_charts(&axis, &out);
    return output_buf(&out, err);
}
