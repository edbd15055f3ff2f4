/* SPDX-License-Identifier: Apache-2.0 */

/* Shapes, and how a sandbox is found for them. */

#include "api/e2b/sandbox_json.h"

#include <string.h>

#include "api/e2b/sandbox_network.h"
#include "api/e2b/port.h"
#include "api/e2b/spec.h"
#include "auth/box_token.h"

#define CLIENT_ID "cella"

enum { MILLIS_PER_CORE = 1000, MB = 1 << 20 };

bool e2b_is_paused(const struct sandbox_info *info)
{
    switch (sandbox_seen_status(info)) {
    case SANDBOX_STOPPED:
    case SANDBOX_STOPPING:
    case SANDBOX_PAUSED:
    case SANDBOX_PAUSING:
    case SANDBOX_FAILED:
        return true;
    default:
        return false;
    }
}

const char *e2b_state(const struct sandbox_info *info)
{
    return e2b_is_paused(info) ? "paused" : "running";
}

static void add_token(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                      const char *member, const struct api_call *call, enum box_door door,
                      const char *id)
{
    char token[BOX_TOKEN_SIZE];
    auth_box_token(call->api->auth, door, id, &call->principal, token);
    yyjson_mut_obj_add_str(doc, object, member, arena_strdup(arena, token));
}

/* With the port that the client came by, since it puts names of sandboxes before this and nothing
 * behind it: "sandboxes.example:7070". */
static void add_domain(struct http_exchange *x, yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct api *api)
{
    if (api->domain == NULL) {
        yyjson_mut_obj_add_null(doc, object, "domain");
        return;
    }
    const char *url = api_base_url(x, api), *scheme = strstr(url, "://");
    const char *authority = scheme == NULL ? url : scheme + 3;
    const char *bracket = strrchr(authority, ']'); /* of an address of IPv6 */
    const char *port = strchr(bracket != NULL ? bracket : authority, ':');
    const char *domain =
        arena_printf(http_arena(x), "%s%.*s", api->domain,
                     port == NULL ? 0 : (int)strcspn(port, "/"), port == NULL ? "" : port);
    yyjson_mut_obj_add_str(doc, object, "domain", domain);
}

yyjson_mut_val *e2b_handle_json(struct http_exchange *x, yyjson_mut_doc *doc,
                                const struct api_call *call, const struct sandbox_info *info)
{
    struct arena *arena = http_arena(x);
    struct e2b_spec spec;
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    e2b_spec_read(arena, info->metadata.e2b_spec, &spec);
    yyjson_mut_obj_add_str(doc, object, "sandboxID", info->id);
    yyjson_mut_obj_add_str(doc, object, "templateID", spec.template_id);
    yyjson_mut_obj_add_str(doc, object, "alias", spec.template_id);
    yyjson_mut_obj_add_str(doc, object, "clientID", CLIENT_ID);
    yyjson_mut_obj_add_str(doc, object, "envdVersion", E2B_ENVD_VERSION);
    if (spec.secure)
        add_token(arena, doc, object, "envdAccessToken", call, BOX_INSIDE, info->id);
    /* Given for a sandbox whose ports are open, too: it is all that the code interpreter's clients
     * show with calls on contexts. */
    add_token(arena, doc, object, "trafficAccessToken", call, BOX_TRAFFIC, info->id);
    add_domain(x, doc, object, call->api);
    return object;
}

static void add_time(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    yyjson_mut_obj_add_str(doc, object, key, arena_strdup(arena, text));
}

int64_t e2b_end(const struct sandbox_info *info)
{
    return info->expires_ms != 0 ? info->expires_ms
                                 : time_now_ms() + INT64_C(365) * 24 * 3600 * 1000;
}

int64_t e2b_started(const struct sandbox_info *info)
{
    int64_t started = info->created_ms;
    for (size_t i = 0; i < info->event_count; i++)
        if (strcmp(info->events[i].type, "START") == 0 ||
            strcmp(info->events[i].type, "RESUME") == 0)
            started = info->events[i].time_ms;
    return started;
}

static void add_limits(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct sandbox_info *info)
{
    uint64_t cores = (info->limits.cpu_millis + MILLIS_PER_CORE - 1) / MILLIS_PER_CORE;
    yyjson_mut_obj_add_uint(doc, object, "cpuCount", cores > 0 ? cores : 1);
    yyjson_mut_obj_add_uint(doc, object, "memoryMB", info->limits.memory_bytes / MB);
    yyjson_mut_obj_add_uint(doc, object, "diskSizeMB", info->limits.disk_bytes / MB);
}

/* Rules may hold what somebody would not show to all who may look. */
static void add_network(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct e2b_spec *spec,
                        bool rules)
{
    if (spec->network == NULL)
        return;
    yyjson_mut_val *network = yyjson_val_mut_copy(doc, spec->network);
    if (!rules)
        yyjson_mut_obj_remove_key(network, "rules");
    yyjson_mut_obj_add_val(doc, object, "network", network);
}

static void add_lifecycle(yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const struct sandbox_info *info)
{
    yyjson_mut_val *lifecycle = yyjson_mut_obj_add_obj(doc, object, "lifecycle");
    bool pauses =
        info->lifespan.on_expire == LIFESPAN_STOP || info->lifespan.on_expire == LIFESPAN_PAUSE;
    yyjson_mut_obj_add_str(doc, lifecycle, "onTimeout", pauses ? "pause" : "kill");
    yyjson_mut_obj_add_bool(doc, lifecycle, "autoResume", info->lifespan.wake);
}

yyjson_mut_val *e2b_detail_json(struct http_exchange *x, yyjson_mut_doc *doc,
                                const struct api_call *call, const struct sandbox_info *info,
                                bool tokens)
{
    struct arena *arena = http_arena(x);
    struct e2b_spec spec;
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    e2b_spec_read(arena, info->metadata.e2b_spec, &spec);
    yyjson_mut_obj_add_str(doc, object, "sandboxID", info->id);
    yyjson_mut_obj_add_str(doc, object, "templateID", spec.template_id);
    yyjson_mut_obj_add_str(doc, object, "alias", spec.template_id);
    yyjson_mut_obj_add_str(doc, object, "clientID", CLIENT_ID);
    add_time(arena, doc, object, "startedAt", e2b_started(info));
    add_time(arena, doc, object, "endAt", e2b_end(info));
    yyjson_mut_obj_add_str(doc, object, "envdVersion", E2B_ENVD_VERSION);
    if (tokens && spec.secure)
        add_token(arena, doc, object, "envdAccessToken", call, BOX_INSIDE, info->id);
    add_domain(x, doc, object, call->api);
    add_limits(doc, object, info);
    yyjson_mut_obj_add_val(doc, object, "metadata",
                           spec.metadata != NULL ? yyjson_val_mut_copy(doc, spec.metadata)
                                                 : yyjson_mut_obj(doc));
    yyjson_mut_obj_add_str(doc, object, "state", e2b_state(info));
    yyjson_mut_obj_add_bool(doc, object, "allowInternetAccess", spec.internet);
    add_network(doc, object, &spec, tokens);
    add_lifecycle(doc, object, info);
    yyjson_mut_obj_add_arr(doc, object, "volumeMounts");
    return object;
}

/* --- finding --- */

int e2b_sandbox_find(struct http_exchange *x, const struct api_call *call, const char *id,
                     struct sandbox_info *ret_info, struct error *err)
{
    struct sandboxes *s = call->api->sandboxes;
    struct arena *arena = http_arena(x);
    struct sandbox_info info;
    /* Older clients add the client's id to a sandbox's; in a name a dash is a part of it. */
    const char *plain = arena_dup(arena, id, strcspn(id, "-"));
    if ((sandboxes_get(s, call->workspace, id, arena, &info, NULL) < 0 &&
         (sandboxes_get(s, call->workspace, plain, arena, &info, NULL) < 0 ||
          strcmp(info.id, plain) != 0)) ||
        info.status == SANDBOX_DELETING || e2b_is_snapshot(arena, info.metadata.e2b_spec))
        return error_set(err, ERROR_SANDBOX_NOT_FOUND,
                         "sandbox \"%.63s\" doesn't exist or you don't have access to it", id);
    *ret_info = info;
    return 0;
}

int e2b_settle(struct http_exchange *x, const struct api_call *call, const char *id,
               struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox_info info;
    if (sandboxes_settle(call->api->sandboxes, call->workspace, id, http_arena(x), &info, err) < 0)
        return -1;
    if (info.status != SANDBOX_RUNNING)
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox could not be started: %s",
                         info.event_count > 0 ? info.events[info.event_count - 1].message
                                              : "no reason is known");
    *ret_info = info;
    return 0;
}

int e2b_reply_handle(struct http_exchange *x, const struct api_call *call, int status,
                     const char *id, struct error *err)
{
    struct sandbox_info info;
    if (e2b_settle(x, call, id, &info, err) < 0)
        return -1;
    e2b_network_trust(x, call, &info);
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_doc_set_root(doc, e2b_handle_json(x, doc, call, &info));
    return api_reply_json(x, status, doc, err);
}

int e2b_reply_nothing(struct http_exchange *x, struct error *err)
{
    return http_reply(x, 204, NULL, NULL, 0, err);
}
