/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Containers: making them, how they are, deleting them. What is answered with is ready to be used.
 *
 * Who comes this way has code to run and nothing else: so a container has no network, ends half an
 * hour after it was made, and what runs in it is not root and cannot become it.
 */

#include "api/aisandbox/docker_units.h"
#include "api/aisandbox/door.h"
#include "api/aisandbox/handlers.h"
#include "api/aisandbox/sandbox_request.h"
#include "api/e2b/spec.h"
#include "image/image.h"
#include "sandbox/metrics.h"

static const struct network_request no_network = {.given = NETWORK_MODE, .mode = NET_NONE};
static const struct trust_request no_privileges = {.given = 1U << TRUST_NO_NEW_PRIVS,
                                                   .wanted = {.no_new_privs = true}};

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

/* null: it was made in another way, and does not end by itself. */
static yyjson_mut_doc *container_json(struct arena *arena, const struct sandbox_info *info,
                                      const char *status, yyjson_mut_val **ret_root)
{
    yyjson_mut_doc *doc = api_json_new(arena, ret_root);
    yyjson_mut_obj_add_str(doc, *ret_root, "containerId", aisandbox_id(arena, info));
    yyjson_mut_obj_add_str(doc, *ret_root, "status", status);
    add_time(doc, *ret_root, "createdAt", info->created_ms);
    if (info->expires_ms != 0)
        add_time(doc, *ret_root, "expiresAt", info->expires_ms);
    else
        yyjson_mut_obj_add_null(doc, *ret_root, "expiresAt");
    return doc;
}

/* One that did not come up is of no use to anybody, and would count against its workspace. */
static int settle(struct http_exchange *x, const struct api_call *call, struct sandbox_info *info,
                  struct error *err)
{
    struct arena *arena = http_arena(x);
    struct sandboxes *all = call->api->sandboxes;
    if (sandboxes_settle(all, call->workspace, info->id, arena, info, err) < 0)
        return -1;
    if (info->status != SANDBOX_FAILED)
        return 0;
    const char *why =
        info->event_count > 0 ? info->events[info->event_count - 1].message : "no reason is known";
    struct sandbox_info gone;
    (void)sandboxes_delete(all, call->workspace, info->id, call->principal.name, arena, &gone,
                           NULL);
    return error_set(err, ERROR_CONTAINER_START_FAILED, "%s", why);
}

static int create(struct http_exchange *x, const struct api_call *call,
                  const struct aisandbox_create_request *request, struct sandbox_info *ret_info,
                  struct error *err)
{
    struct arena *arena = http_arena(x);
    const char *image;
    if (image_resolve(request->image, &image, NULL) < 0)
        return error_set(err, ERROR_CONTAINER_CREATION_FAILED, "Image not found: %.200s",
                         request->image);
    const struct e2b_spec spec = {.template_id = request->image[0] != '\0' ? request->image : image,
                                  .secure = true,
                                  .exec_timeout_ms = request->timeout_ms};
    const struct sandbox_create create = {
        .workspace = call->workspace,
        .image = request->image,
        .resources = request->resources,
        .metadata = {.e2b_spec = e2b_spec_text(arena, &spec)},
        .security = no_privileges,
        .network = no_network,
        .enabled = true,
        .lifespan = {.ttl_s = AISANDBOX_LIFE_S, .on_expire = LIFESPAN_DELETE},
        .actor = call->principal.name,
    };
    if (sandboxes_create(call->api->sandboxes, &create, arena, ret_info, err) < 0)
        return -1;
    return settle(x, call, ret_info, err);
}

int aisandbox_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct aisandbox_create_request request;
    struct sandbox_info info;
    yyjson_val *body;
    yyjson_mut_val *root;
    if (api_json_body(x, &body, err) < 0 ||
        aisandbox_create_from_json(http_arena(x), body, &request, err) < 0 ||
        create(x, call, &request, &info, err) < 0)
        return -1;
    return api_reply_json(x, 201, container_json(http_arena(x), &info, "created", &root), err);
}

/* What it uses now, not when it was last looked at. */
static void add_usage(struct http_exchange *x, const struct api_call *call,
                      struct sandbox_info *info, yyjson_mut_doc *doc, yyjson_mut_val *object)
{
    enum { PERIOD_S = 60 };
    struct arena *arena = http_arena(x);
    struct sandboxes *all = call->api->sandboxes;
    struct series_value *ignored;
    size_t count;
    struct sandbox_info now;
    if (info->status == SANDBOX_RUNNING &&
        sandbox_metrics(all, call->workspace, info->id, PERIOD_S, PERIOD_S, arena, &ignored, &count,
                        NULL) == 0 &&
        sandboxes_get(all, call->workspace, info->id, arena, &now, NULL) == 0)
        *info = now;
    bool known = info->load.time_ms != 0;
    double memory = known && info->load.memory > 0 ? info->load.memory : 0;
    yyjson_mut_val *usage = yyjson_mut_obj_add_obj(doc, object, "resourceUsage");
    yyjson_mut_obj_add_str(doc, usage, "cpuUsage",
                           docker_cpus_text(known ? info->load.cpu : 0, arena));
    yyjson_mut_obj_add_str(doc, usage, "memoryUsage", docker_memory_text((uint64_t)memory, arena));
}

int aisandbox_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    yyjson_mut_val *root;
    if (aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    yyjson_mut_doc *doc = container_json(http_arena(x), &info,
                                         sandbox_status_text(sandbox_seen_status(&info)), &root);
    add_usage(x, call, &info, doc, root);
    return api_reply_json(x, 200, doc, err);
}

int aisandbox_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0 ||
        sandboxes_delete(call->api->sandboxes, call->workspace, info.id, call->principal.name,
                         http_arena(x), &info, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "status", "deleted");
    yyjson_mut_obj_add_str(doc, root, "containerId", aisandbox_id(http_arena(x), &info));
    return api_reply_json(x, 200, doc, err);
}
