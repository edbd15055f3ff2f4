/* SPDX-License-Identifier: Apache-2.0 */

/* Tells each quota of a workspace: its limit, where that was set, and what is in use, which is
 * asked of whoever counts it. */

#include "api/quotas_json.h"

#include "api/api.h"
#include "api/record.h"
#include "base/quotas.h"

typedef uint64_t used_fn(const struct api_call *call, struct caller caller, enum quota kind);

static uint64_t streams_used(const struct api_call *call, struct caller caller, enum quota kind)
{
    return limits_streams_in(call->api->limits, call->workspace);
}

static uint64_t callers_streams(const struct api_call *call, struct caller caller, enum quota kind)
{
    return limits_streams_of(call->api->limits, caller);
}

static uint64_t by_sandboxes(const struct api_call *call, struct caller caller, enum quota kind)
{
    return sandboxes_quota_used(call->api->sandboxes, call->workspace, kind);
}

static uint64_t audit_used(const struct api_call *call, struct caller caller, enum quota kind)
{
    return audit_retained(call->api->recorder->audit, call->workspace);
}

static used_fn *const counters[QUOTA_COUNT] = {
    [QUOTA_STREAMS] = streams_used,   [QUOTA_STREAMS_PER_KEY] = callers_streams,
    [QUOTA_SANDBOXES] = by_sandboxes, [QUOTA_CPU] = by_sandboxes,
    [QUOTA_MEMORY] = by_sandboxes,    [QUOTA_DISK] = by_sandboxes,
    [QUOTA_PROCESSES] = by_sandboxes, [QUOTA_HISTORY] = by_sandboxes,
    [QUOTA_AUDIT] = audit_used,
};

static void add_amount(yyjson_mut_doc *doc, yyjson_mut_val *item, const char *name,
                       enum quota_unit unit, uint64_t value)
{
    if (unit == QUOTA_UNIT_CORES)
        yyjson_mut_obj_add_real(doc, item, name, (double)value / 1000);
    else
        yyjson_mut_obj_add_uint(doc, item, name, value);
}

void quotas_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct api_call *call,
                struct caller caller)
{
    const struct limits *limits = call->api->limits;
    const struct limits_config *config = limits_of(limits, call->workspace);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "quotas");
    for (int i = 0; i < QUOTA_COUNT; i++) {
        const struct quota_kind *kind = &quota_kinds[i];
        uint64_t limit = config->quotas.of[i];
        /* A workspace has no limit of its own for streams until it is given one. */
        bool own = config != &limits->config &&
                   limit != (i == QUOTA_STREAMS ? 0 : limits->config.quotas.of[i]);
        if (i == QUOTA_STREAMS && !own)
            limit = limits->config.quotas.of[i];
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_str(doc, item, "name", kind->name);
        yyjson_mut_obj_add_str(doc, item, "unit", quota_unit_text(kind->unit));
        if (limit == 0)
            yyjson_mut_obj_add_null(doc, item, "limit");
        else
            add_amount(doc, item, "limit", kind->unit, limit);
        add_amount(doc, item, "used", kind->unit, counters[i](call, caller, (enum quota)i));
        yyjson_mut_obj_add_str(doc, item, "source", own ? "workspace" : "server");
    }
}
