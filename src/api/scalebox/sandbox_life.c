/* SPDX-License-Identifier: Apache-2.0 */

/* How long a sandbox lives, pausing it and coming back: as for E2B's clients (e2b/life.h), with
 * other answers. */

#include <math.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/e2b/life.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/sandbox_request.h"
#include "api/scalebox/handlers.h"
#include "api/scalebox/sandbox_json.h"
#include "base/limits.h"

enum { CORE_MILLIS = 1000 };

/* As it is now, whatever it was when it was found. */
static int reply_now(struct http_exchange *x, const struct api_call *call, const char *id,
                     struct error *err)
{
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, id, http_arena(x), &info, err) < 0)
        return -1;
    return scalebox_reply_sandbox(x, call, 200, &info, err);
}

/* Runs it if it is paused; a time-out that is given counts from now. One that comes back without
 * gets the one that it had. */
int scalebox_sandbox_connect(struct http_exchange *x, const struct route_params *params, void *ctx,
                             struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    struct e2b_spec spec;
    yyjson_val *body;
    int64_t seconds = 0;
    if (api_json_body(x, &body, err) < 0 || e2b_timeout_from_json(body, &seconds, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    e2b_spec_read(http_arena(x), info.metadata.e2b_spec, &spec);
    if (seconds == 0 && info.status != SANDBOX_RUNNING && info.lifespan.ttl_s == 0)
        seconds = spec.timeout_s;
    if ((seconds > 0 && e2b_set_timeout(x, call, info.id, seconds, err) < 0) ||
        e2b_come_back(x, call, true, &info, err) < 0 ||
        e2b_settle(x, call, info.id, &info, err) < 0)
        return -1;
    return reply_now(x, call, info.id, err);
}

/* As connect, without a body: older clients. */
int scalebox_sandbox_resume(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    return scalebox_sandbox_connect(x, params, ctx, err);
}

int scalebox_sandbox_timeout(struct http_exchange *x, const struct route_params *params, void *ctx,
                             struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    int64_t seconds;
    if (e2b_timeout_request(x, call, params, &info, &seconds, err) < 0 ||
        e2b_set_timeout(x, call, info.id, seconds, err) < 0)
        return -1;
    return reply_now(x, call, info.id, err);
}

/* One that is paused stays so: the client asks for a state, not for a change. */
int scalebox_sandbox_pause(struct http_exchange *x, const struct route_params *params, void *ctx,
                           struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    if (e2b_pause(x, call, true, &info, err) < 0 && err->code != ERROR_CONFLICT)
        return -1;
    return reply_now(x, call, info.id, err);
}

/* --- what it uses --- */

static uint64_t bytes_of(double value)
{
    return isnan(value) || value < 0 ? 0 : (uint64_t)value;
}

int scalebox_sandbox_metrics(struct http_exchange *x, const struct route_params *params, void *ctx,
                             struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    const struct sandbox_load *load = &info.load;
    char time[TIME_TEXT_SIZE];
    time_rfc3339(load->time_ms != 0 ? load->time_ms : time_now_ms(), time);
    uint64_t cores = (info.limits.cpu_millis + CORE_MILLIS - 1) / CORE_MILLIS;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(http_arena(x), &doc);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    yyjson_mut_obj_add_strcpy(doc, data, "timestamp", time);
    yyjson_mut_obj_add_uint(doc, data, "cpu_count", cores > 0 ? cores : 1);
    yyjson_mut_obj_add_real(doc, data, "cpu_used_pct",
                            load->time_ms == 0 || isnan(load->cpu) ? 0 : load->cpu * 100);
    yyjson_mut_obj_add_uint(doc, data, "mem_used", load->time_ms == 0 ? 0 : bytes_of(load->memory));
    yyjson_mut_obj_add_uint(doc, data, "mem_total", info.limits.memory_bytes);
    yyjson_mut_obj_add_uint(doc, data, "disk_used", load->time_ms == 0 ? 0 : bytes_of(load->disk));
    yyjson_mut_obj_add_uint(doc, data, "disk_total", info.limits.disk_bytes);
    return api_reply_json(x, 200, doc, err);
}
