/* SPDX-License-Identifier: Apache-2.0 */

/* GET /v0/limits: what the caller may ask for, and how much of it is left. */

#include "api/handlers.h"

#include "api/call.h"
#include "api/call_limits.h"
#include "api/record.h"

static void add_class(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct limits *limits,
                      struct caller caller, enum route_class class)
{
    const struct bucket_rate *rate = &limits_of(limits, caller.workspace)->classes[class];
    struct bucket_state state = limits_look(limits, caller, class);
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_str(doc, item, "class", route_class_name(class));
    yyjson_mut_obj_add_uint(doc, item, "perSecond", rate->per_second);
    yyjson_mut_obj_add_uint(doc, item, "burst", rate->burst);
    yyjson_mut_obj_add_uint(doc, item, "remaining", state.remaining);
}

/* A limit of 0 is none. */
static void add_count(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *name, uint64_t used,
                      uint64_t limit)
{
    yyjson_mut_val *item = yyjson_mut_obj_add_obj(doc, root, name);
    yyjson_mut_obj_add_uint(doc, item, "used", used);
    if (limit == 0)
        yyjson_mut_obj_add_null(doc, item, "limit");
    else
        yyjson_mut_obj_add_uint(doc, item, "limit", limit);
}

int v0_limits(struct http_exchange *x, const struct route_params *params, void *ctx,
              struct error *err)
{
    const struct api_call *call = ctx;
    const struct limits *limits = call->api->limits;
    const struct limits_config *config = limits_of(limits, call->workspace);
    bool counted = limits_counts(limits, call->workspace, http_request(x)->peer);
    const uint64_t *quotas = config->quotas.of;
    uint64_t in = config == &limits->config ? 0 : quotas[QUOTA_STREAMS];
    struct caller caller = record_caller_of(x);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *rates = yyjson_mut_obj_add_obj(doc, root, "rateLimits");
    yyjson_mut_obj_add_bool(doc, rates, "counted", counted);
    yyjson_mut_val *classes = yyjson_mut_obj_add_arr(doc, rates, "classes");
    for (int class = 0; class < ROUTE_CLASS_COUNT; class ++)
        if (config->classes[class].per_second != 0)
            add_class(doc, classes, limits, caller, (enum route_class) class);
    yyjson_mut_val *address = yyjson_mut_obj_add_obj(doc, rates, "address");
    yyjson_mut_obj_add_uint(doc, address, "perSecond", config->address.per_second);
    yyjson_mut_obj_add_uint(doc, address, "burst", config->address.burst);
    add_count(doc, root, "streams", limits_streams_of(limits, caller),
              quotas[QUOTA_STREAMS_PER_KEY]);
    add_count(doc, root, "workspaceStreams", limits_streams_in(limits, call->workspace), in);
    add_count(doc, root, "serverStreams", limits->streams, limits->config.quotas.of[QUOTA_STREAMS]);
    add_count(doc, root, "sandboxes",
              sandboxes_quota_used(call->api->sandboxes, call->workspace, QUOTA_SANDBOXES),
              quotas[QUOTA_SANDBOXES]);
    return api_reply_json(x, 200, doc, err);
}
