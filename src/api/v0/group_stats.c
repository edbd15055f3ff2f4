/* SPDX-License-Identifier: Apache-2.0 */

/* /v0/groups/{group}/stats: what each sandbox of a group uses, may use and was asked, and all of
 * them together. */

#include "api/handlers.h"

#include <math.h>
#include <stdint.h>

#include "api/call.h"
#include "api/v0/usage_json.h"
#include "base/limits.h"
#include "sandbox/groups.h"

struct sums {
    double cpu, memory, disk;
    uint64_t processes;
    double cpu_held, memory_held, disk_held; /* a stopped one holds its disk alone */
    uint64_t running, actions, commands;
    int64_t total_ms;
};

static double known(double figure)
{
    return isnan(figure) ? 0 : figure;
}

static void sum_up(struct sums *sums, const struct sandbox_usage *usage)
{
    sums->cpu += known(usage->cpu);
    sums->memory += known(usage->memory);
    sums->disk += known(usage->disk);
    sums->processes += usage->tasks;
    sums->disk_held += (double)usage->allocated.disk_bytes;
    sums->cpu_held += (double)usage->allocated.cpu_millis / 1000;
    sums->memory_held += (double)usage->allocated.memory_bytes;
    sums->running += usage->status == SANDBOX_RUNNING;
    sums->actions += usage->tally.actions;
    sums->commands += usage->tally.commands;
    sums->total_ms += usage->tally.total_ms;
}

/* More digits would be noise. Nothing here is negative. */
static double rounded(double value, double digits)
{
    return (double)(uint64_t)(value * digits + 0.5) / digits;
}

static void add_share(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double used,
                      double limit)
{
    if (limit > 0)
        yyjson_mut_obj_add_real(doc, object, key, rounded(used * 100 / limit, 100));
}

static void add_sums(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct sums *sums)
{
    yyjson_mut_val *total = yyjson_mut_obj_add_obj(doc, root, "total");
    yyjson_mut_obj_add_real(doc, total, "cpu", rounded(sums->cpu, 10000));
    yyjson_mut_obj_add_uint(doc, total, "memory", (uint64_t)sums->memory);
    yyjson_mut_obj_add_uint(doc, total, "disk", (uint64_t)sums->disk);
    yyjson_mut_obj_add_uint(doc, total, "processes", sums->processes);
    yyjson_mut_val *held = yyjson_mut_obj_add_obj(doc, total, "allocated");
    yyjson_mut_obj_add_real(doc, held, "cpu", rounded(sums->cpu_held, 10000));
    yyjson_mut_obj_add_uint(doc, held, "memory", (uint64_t)sums->memory_held);
    yyjson_mut_obj_add_uint(doc, held, "disk", (uint64_t)sums->disk_held);
    yyjson_mut_val *percent = yyjson_mut_obj_add_obj(doc, total, "percent");
    add_share(doc, percent, "cpu", sums->cpu, sums->cpu_held);
    add_share(doc, percent, "memory", sums->memory, sums->memory_held);
    add_share(doc, percent, "disk", sums->disk, sums->disk_held);
    yyjson_mut_val *history = yyjson_mut_obj_add_obj(doc, total, "history");
    yyjson_mut_obj_add_real(doc, history, "totalSeconds", (double)sums->total_ms / 1000);
    yyjson_mut_obj_add_uint(doc, history, "actions", sums->actions);
    yyjson_mut_obj_add_uint(doc, history, "commands", sums->commands);
}

int v0_group_stats(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandboxes *sandboxes = call->api->sandboxes;
    struct group_info group;
    struct sandbox_usage *items = NULL;
    size_t count = 0, total = 0;
    struct sums sums = {0};
    if (groups_get(sandboxes, call->workspace, route_param(params, "group"), arena, &group, err) <
            0 ||
        sandboxes_usage(sandboxes, call->workspace, group.name, GROUP_SANDBOXES_MAX, 0, arena,
                        &items, &count, &total, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "name", group.name);
    yyjson_mut_obj_add_str(doc, root, "id", group.id);
    yyjson_mut_obj_add_str(doc, root, "status", group_status_text(group.status));
    yyjson_mut_obj_add_uint(doc, root, "count", count);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < count; i++) {
        sum_up(&sums, &items[i]);
        usage_json(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    }
    yyjson_mut_obj_add_uint(doc, root, "running", sums.running);
    add_sums(doc, root, &sums);
    yyjson_mut_obj_add_val(doc, root, "sandboxes", list);
    return api_reply_json(x, 200, doc, err);
}
