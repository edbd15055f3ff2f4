/* SPDX-License-Identifier: Apache-2.0 */

/* What sandboxes use, in E2B's figures: per cent of a core, and bytes. */

#include "sandbox/metrics.h"

#include <math.h>
#include <string.h>

#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"

enum { PERIOD_DEFAULT_S = 3600, POINTS_AIM = 720, STEP_MIN_S = 10, BATCH_MAX = 100 };

static uint64_t bytes_of(double value)
{
    return isnan(value) || value < 0 ? 0 : (uint64_t)value;
}

static void add_point(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct sandbox_info *info,
                      const struct series_value *value)
{
    char time[TIME_TEXT_SIZE];
    uint64_t cores = (info->limits.cpu_millis + 999) / 1000;
    time_rfc3339(value->time * 1000, time);
    yyjson_mut_obj_add_strcpy(doc, object, "timestamp", time);
    yyjson_mut_obj_add_sint(doc, object, "timestampUnix", value->time);
    yyjson_mut_obj_add_uint(doc, object, "cpuCount", cores > 0 ? cores : 1);
    yyjson_mut_obj_add_real(doc, object, "cpuUsedPct", isnan(value->cpu) ? 0 : value->cpu * 100);
    yyjson_mut_obj_add_uint(doc, object, "memUsed", bytes_of(value->memory));
    yyjson_mut_obj_add_uint(doc, object, "memTotal", info->limits.memory_bytes);
    yyjson_mut_obj_add_uint(doc, object, "memCache", 0); /* not counted as used, nor apart */
    yyjson_mut_obj_add_uint(doc, object, "diskUsed", bytes_of(value->disk));
    yyjson_mut_obj_add_uint(doc, object, "diskTotal", info->limits.disk_bytes);
}

int e2b_sandbox_metrics(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_info info;
    struct series_value *values;
    size_t count;
    uint64_t now = (uint64_t)time_now_ms() / 1000, start, end;
    if (api_query_uint(x, "start", 0, INT64_MAX / 1000, now - PERIOD_DEFAULT_S, &start, err) < 0 ||
        api_query_uint(x, "end", 0, INT64_MAX / 1000, now + 1, &end, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    uint64_t period = start < now ? now - start : 1;
    if (period > METRICS_PERIOD_MAX_S)
        period = METRICS_PERIOD_MAX_S;
    uint64_t step = period / POINTS_AIM < STEP_MIN_S ? STEP_MIN_S : period / POINTS_AIM;
    if (step > period)
        step = period;
    if (sandbox_metrics(call->api->sandboxes, call->workspace, info.id, (uint32_t)period,
                        (uint32_t)step, arena, &values, &count, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < count; i++)
        if (values[i].time <= (int64_t)end)
            add_point(doc, yyjson_mut_arr_add_obj(doc, list), &info, &values[i]);
    return api_reply_json(x, 200, doc, err);
}

/* GET /sandboxes/metrics?sandbox_ids=a,b: the newest figures of several. */
int e2b_sandboxes_metrics(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    const char *text = NULL;
    struct slice ids;
    size_t count = 0;
    if (http_query(x, "sandbox_ids", &text, err) < 0 ||
        api_list(arena, "sandbox_ids", text, &ids, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *sandboxes = yyjson_mut_obj_add_obj(doc, root, "sandboxes");
    strv_each (id, ids) {
        struct sandbox_info info;
        if (++count > BATCH_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT, "sandbox_ids: more than %d", BATCH_MAX);
        if (e2b_sandbox_find(x, call, id, &info, NULL) < 0 || info.load.time_ms == 0)
            continue;
        const struct series_value value = {info.load.time_ms / 1000, info.load.cpu,
                                           info.load.memory, info.load.disk};
        add_point(doc, yyjson_mut_obj_add_obj(doc, sandboxes, info.id), &info, &value);
    }
    return api_reply_json(x, 200, doc, err);
}
