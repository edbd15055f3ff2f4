/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What sandboxes use: /sandbox/{name}/metrics is the history of one, /v0/metrics the present of
 * all. A figure that is not known is left out, and never shown as zero.
 */

#include "api/handlers.h"

#include <math.h>
#include <string.h>

#include "api/call.h"
#include "api/v0/amounts_json.h"
#include "api/v0/usage_json.h"
#include "base/duration.h"
#include "sandbox/metrics.h"

enum {
    PERIOD_DEFAULT_S = 60 * 60,
    RESOLUTION_DEFAULT_S = 60,
    RESOLUTION_MAX_S = 24 * 60 * 60,
    USAGE_LIMIT_MAX = 1000,
};

/* A length of time in seconds, 1…max. */
static int query_duration(struct http_exchange *x, const char *name, uint64_t max,
                          const char **ret_text, uint32_t *ret_seconds, struct error *err)
{
    const char *text = NULL;
    uint64_t seconds = 0;
    if (http_query(x, name, &text, err) < 0)
        return -1;
    if (text == NULL)
        return 0;
    if (duration_seconds(text, &seconds, err) < 0)
        return error_prefix(err, "%s", name);
    if (seconds < 1 || seconds > max)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.40s\" is not between 1 second and %llu days", name, text,
                         (unsigned long long)max / (24 * 60 * 60));
    *ret_text = text;
    *ret_seconds = (uint32_t)seconds;
    return 0;
}

static int which_interval(struct http_exchange *x, const char **ret_period, uint32_t *ret_seconds,
                          uint32_t *ret_resolution, struct error *err)
{
    const char *period = "1h", *resolution = NULL;
    uint32_t seconds = PERIOD_DEFAULT_S, step = RESOLUTION_DEFAULT_S;
    if (query_duration(x, "period", METRICS_PERIOD_MAX_S, &period, &seconds, err) < 0 ||
        query_duration(x, "resolution", RESOLUTION_MAX_S, &resolution, &step, err) < 0)
        return -1;
    if (step > seconds && resolution != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "resolution: %u s is longer than the period of %u s", step, seconds);
    *ret_period = period;
    *ret_seconds = seconds;
    *ret_resolution = step < seconds ? step : seconds;
    return 0;
}

static void add_bytes(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double value)
{
    if (!isnan(value))
        yyjson_mut_obj_add_uint(doc, object, key, (uint64_t)value);
}

static void add_cores(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double value)
{
    if (!isnan(value)) /* more digits would be noise */
        yyjson_mut_obj_add_real(doc, object, key, (double)(uint64_t)(value * 10000 + 0.5) / 10000);
}

static void add_rate(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double value)
{
    if (!isnan(value))
        yyjson_mut_obj_add_real(doc, object, key, (double)(uint64_t)(value * 100 + 0.5) / 100);
}

static const struct {
    const char *name;
    size_t offset; /* of the figure in struct series_value */
    void (*add)(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double value);
    bool optional; /* one without any point is left out */
} figures[] = {
    {"cpu", offsetof(struct series_value, cpu), add_cores},
    {"memory", offsetof(struct series_value, memory), add_bytes},
    {"disk", offsetof(struct series_value, disk), add_bytes},
    {"networkIn", offsetof(struct series_value, flows[SERIES_IN_BYTES]), add_bytes, true},
    {"networkOut", offsetof(struct series_value, flows[SERIES_OUT_BYTES]), add_bytes, true},
    {"networkInPackets", offsetof(struct series_value, flows[SERIES_IN_PACKETS]), add_rate, true},
    {"networkOutPackets", offsetof(struct series_value, flows[SERIES_OUT_PACKETS]), add_rate, true},
};

static void add_series(yyjson_mut_doc *doc, yyjson_mut_val *metrics,
                       const struct series_value *values, size_t count)
{
    for (size_t f = 0; f < sizeof(figures) / sizeof(figures[0]); f++) {
        yyjson_mut_val *points = yyjson_mut_arr(doc);
        for (size_t i = 0; i < count; i++) {
            char time[TIME_TEXT_SIZE];
            double value;
            memcpy(&value, (const char *)&values[i] + figures[f].offset, sizeof(value));
            if (isnan(value))
                continue;
            yyjson_mut_val *point = yyjson_mut_arr_add_obj(doc, points);
            time_rfc3339(values[i].time * 1000, time);
            yyjson_mut_obj_add_strcpy(doc, point, "timestamp", time);
            figures[f].add(doc, point, "value", value);
        }
        if (!figures[f].optional || yyjson_mut_arr_size(points) > 0)
            yyjson_mut_obj_add_val(doc, metrics, figures[f].name, points);
    }
}

int v0_sandbox_metrics(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    const char *period = NULL;
    uint32_t seconds = 0, resolution = 0;
    struct series_value *values = NULL;
    size_t count = 0;
    if (which_interval(x, &period, &seconds, &resolution, err) < 0 ||
        sandbox_metrics(call->api->sandboxes, call->workspace, route_param(params, "name"), seconds,
                        resolution, http_arena(x), &values, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "period", period);
    yyjson_mut_obj_add_uint(doc, root, "resolution", resolution);
    add_series(doc, yyjson_mut_obj_add_obj(doc, root, "metrics"), values, count);
    return api_reply_json(x, 200, doc, err);
}

/* --- all of them --- */

static void add_tally(yyjson_mut_doc *doc, yyjson_mut_val *item, const struct sandbox_tally *tally)
{
    char time[TIME_TEXT_SIZE];
    yyjson_mut_val *history = yyjson_mut_obj_add_obj(doc, item, "history");
    if (tally->started_ms != 0) {
        time_rfc3339(tally->started_ms, time);
        yyjson_mut_obj_add_strcpy(doc, history, "startedAt", time);
    }
    yyjson_mut_obj_add_real(doc, history, "runningSeconds", (double)tally->running_ms / 1000);
    yyjson_mut_obj_add_real(doc, history, "totalSeconds", (double)tally->total_ms / 1000);
    yyjson_mut_obj_add_uint(doc, history, "starts", tally->starts);
    yyjson_mut_obj_add_uint(doc, history, "actions", tally->actions);
    yyjson_mut_obj_add_uint(doc, history, "commands", tally->commands);
}

static void add_network(yyjson_mut_doc *doc, yyjson_mut_val *item,
                        const struct network_usage *network)
{
    if (!network->known)
        return;
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, item, "network");
    yyjson_mut_obj_add_uint(doc, object, "inBytes", network->in_bytes);
    yyjson_mut_obj_add_uint(doc, object, "outBytes", network->out_bytes);
    yyjson_mut_obj_add_uint(doc, object, "inPackets", network->in_packets);
    yyjson_mut_obj_add_uint(doc, object, "outPackets", network->out_packets);
    add_bytes(doc, object, "inRate", network->in_rate);
    add_bytes(doc, object, "outRate", network->out_rate);
}

void usage_json(yyjson_mut_doc *doc, yyjson_mut_val *item, const struct sandbox_usage *usage)
{
    char time[TIME_TEXT_SIZE];
    yyjson_mut_obj_add_str(doc, item, "name", usage->name);
    if (usage->group != NULL)
        yyjson_mut_obj_add_str(doc, item, "group", usage->group);
    yyjson_mut_obj_add_str(doc, item, "id", usage->id);
    yyjson_mut_obj_add_str(doc, item, "status", sandbox_status_text(usage->status));
    if (usage->time_ms != 0) {
        time_rfc3339(usage->time_ms, time);
        yyjson_mut_obj_add_strcpy(doc, item, "timestamp", time);
        add_cores(doc, item, "cpu", usage->cpu);
        add_bytes(doc, item, "memory", usage->memory);
        add_bytes(doc, item, "disk", usage->disk);
        yyjson_mut_obj_add_uint(doc, item, "processes", usage->tasks);
        add_network(doc, item, &usage->network);
    }
    yyjson_mut_val *limits = yyjson_mut_obj_add_obj(doc, item, "limits");
    add_cores(doc, limits, "cpu", (double)usage->limits.cpu_millis / 1000);
    yyjson_mut_obj_add_uint(doc, limits, "memory", usage->limits.memory_bytes);
    yyjson_mut_obj_add_uint(doc, limits, "disk", usage->limits.disk_bytes);
    yyjson_mut_obj_add_uint(doc, limits, "pids", usage->limits.pids);
    yyjson_mut_val *percent = yyjson_mut_obj_add_obj(doc, item, "percent");
    percent_add(doc, percent, "cpu", usage->cpu * 1000, (double)usage->limits.cpu_millis);
    percent_add(doc, percent, "memory", usage->memory, (double)usage->limits.memory_bytes);
    percent_add(doc, percent, "disk", usage->disk, (double)usage->limits.disk_bytes);
    if (usage->time_ms != 0)
        percent_add(doc, percent, "pids", (double)usage->tasks, (double)usage->limits.pids);
    add_tally(doc, item, &usage->tally);
}

int v0_metrics(struct http_exchange *x, const struct route_params *params, void *ctx,
               struct error *err)
{
    const struct api_call *call = ctx;
    uint64_t limit, offset;
    struct sandbox_usage *items = NULL;
    size_t count = 0, total = 0;
    if (api_query_uint(x, "limit", 1, USAGE_LIMIT_MAX, USAGE_LIMIT_MAX, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, INT32_MAX, 0, &offset, err) < 0 ||
        sandboxes_usage(call->api->sandboxes, call->workspace, NULL, limit, offset, http_arena(x),
                        &items, &count, &total, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "sandboxes");
    for (size_t i = 0; i < count; i++)
        usage_json(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    api_json_page(doc, root, total, limit, offset);
    return api_reply_json(x, 200, doc, err);
}
