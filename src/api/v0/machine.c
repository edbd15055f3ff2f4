/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /v0/machine: what there is, what of it is promised, what is used and what is left. The sums
 * are over all workspaces, since that is what the next sandbox has to fit into; single sandboxes
 * are shown of the caller's own.
 */

#include "api/handlers.h"

#include "api/call.h"
#include "api/v0/amounts_json.h"
#include "sandbox/capacity.h"

enum { LIMIT_MAX = 1000 };

static void add_row(yyjson_mut_doc *doc, yyjson_mut_val *resources, enum resource resource,
                    const struct capacity_row *row)
{
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, resources, resource_name(resource));
    amount_add(doc, object, "total", resource, (double)row->total);
    yyjson_mut_obj_add_str(doc, object, "source", capacity_source_text(row->source));
    yyjson_mut_obj_add_real(doc, object, "overcommit", row->overcommit);
    amount_add(doc, object, "allocated", resource, (double)row->allocated);
    amount_add(doc, object, "free", resource, (double)row->available);
    amount_add(doc, object, "used", resource, row->used);
    percent_add(doc, object, "percent", row->used, (double)row->total);
    yyjson_mut_obj_add_bool(doc, object, "enforced", row->enforced);
    yyjson_mut_obj_add_str(doc, object, "enforcement", row->how);
}

static void add_sandbox(yyjson_mut_doc *doc, yyjson_mut_val *item,
                        const struct sandbox_usage *usage)
{
    const double used[] = {
        [RESOURCE_CPU] = usage->cpu * 1000,
        [RESOURCE_MEMORY] = usage->memory,
        [RESOURCE_DISK] = usage->disk,
    };
    yyjson_mut_obj_add_str(doc, item, "name", usage->name);
    if (usage->group != NULL)
        yyjson_mut_obj_add_str(doc, item, "group", usage->group);
    yyjson_mut_obj_add_str(doc, item, "id", usage->id);
    yyjson_mut_obj_add_str(doc, item, "status", sandbox_status_text(usage->status));
    yyjson_mut_val *allocated = yyjson_mut_obj_add_obj(doc, item, "allocated");
    yyjson_mut_val *in_use = yyjson_mut_obj_add_obj(doc, item, "used");
    yyjson_mut_val *percent = yyjson_mut_obj_add_obj(doc, item, "percent");
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        const char *name = resource_name((enum resource)i);
        if (usage->allocated.of[i] != 0)
            amount_add(doc, allocated, name, (enum resource)i, (double)usage->allocated.of[i]);
        if (i > (int)RESOURCE_DISK)
            continue;
        amount_add(doc, in_use, name, (enum resource)i, used[i]);
        percent_add(doc, percent, name, used[i], (double)usage->limits.of[i]);
    }
}

int v0_machine(struct http_exchange *x, const struct route_params *params, void *ctx,
               struct error *err)
{
    const struct api_call *call = ctx;
    struct capacity capacity;
    struct sandbox_usage *items = NULL;
    size_t count = 0, total = 0;
    uint64_t limit, offset;
    if (api_query_uint(x, "limit", 1, LIMIT_MAX, LIMIT_MAX, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, INT32_MAX, 0, &offset, err) < 0 ||
        sandboxes_usage(call->api->sandboxes, call->workspace, NULL, limit, offset, http_arena(x),
                        &items, &count, &total, err) < 0 ||
        sandboxes_capacity(call->api->sandboxes, http_arena(x), &capacity, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *resources = yyjson_mut_obj_add_obj(doc, root, "resources");
    for (int i = 0; i < RESOURCE_COUNT; i++)
        add_row(doc, resources, (enum resource)i, &capacity.of[i]);
    yyjson_mut_obj_add_uint(doc, root, "diskFree", capacity.disk_free);
    yyjson_mut_val *counts = yyjson_mut_obj_add_obj(doc, root, "counts");
    yyjson_mut_obj_add_uint(doc, counts, "sandboxes", capacity.sandboxes);
    yyjson_mut_obj_add_uint(doc, counts, "running", capacity.running);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "sandboxes");
    for (size_t i = 0; i < count; i++)
        add_sandbox(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    api_json_page(doc, root, total, limit, offset);
    return api_reply_json(x, 200, doc, err);
}
