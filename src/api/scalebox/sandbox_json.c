/* SPDX-License-Identifier: Apache-2.0 */

/* The shape of a sandbox for Scalebox's clients. */

#include "api/scalebox/sandbox_json.h"

#include <string.h>

#include "api/e2b/sandbox_json.h"
#include "api/e2b/spec.h"
#include "api/scalebox/door.h"
#include "api/scalebox/ports.h"
#include "api/secret_env.h"
#include "api/v0/env.h"

enum { MB = 1 << 20, GB = 1 << 30, MILLIS = 1000 };

static const char *const statuses[SANDBOX_STATUS_COUNT] = {
    [SANDBOX_CREATING] = "starting", [SANDBOX_RUNNING] = "running",
    [SANDBOX_STARTING] = "resuming", [SANDBOX_STOPPING] = "pausing",
    [SANDBOX_STOPPED] = "paused",    [SANDBOX_DELETING] = "terminating",
    [SANDBOX_PAUSING] = "pausing",   [SANDBOX_PAUSED] = "paused",
    [SANDBOX_RESUMING] = "resuming", [SANDBOX_FAILED] = "failed",
};

const char *scalebox_status(enum sandbox_status status)
{
    return statuses[status];
}

/*
 * What the clients put behind https:// (or http://, for this machine) to reach the sandbox, and
 * "3000-" before it to reach a port. Below a domain that leads here each has a name of its own, and
 * both work; else it is the server's own address, and the token says which sandbox it is.
 */
static const char *domain_of(struct http_exchange *x, const struct api *api, const char *id)
{
    const char *base = strstr(api_base_url(x, api), "://") + 3;
    if (api->domain == NULL || strcmp(api->domain, "localhost") == 0)
        return base;
    const char *colon = strrchr(base, ':');
    bool port = colon != NULL && strchr(colon, ']') == NULL;
    return arena_printf(http_arena(x), "%s.%s%s", id, api->domain, port ? colon : "");
}

void scalebox_add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_resources(yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const struct sandbox_info *info)
{
    uint64_t cores = (info->limits.cpu_millis + MILLIS - 1) / MILLIS;
    yyjson_mut_obj_add_uint(doc, object, "cpu_count", cores > 0 ? cores : 1);
    yyjson_mut_obj_add_uint(doc, object, "memory_mb", info->limits.memory_bytes / MB);
    yyjson_mut_obj_add_uint(doc, object, "storage_gb", info->limits.disk_bytes / GB);
}

static void add_times(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct sandbox_info *info,
                      int64_t timeout_s)
{
    int64_t started = e2b_started(info), now = time_now_ms();
    bool running = info->status == SANDBOX_RUNNING;
    yyjson_mut_obj_add_int(doc, object, "timeout", timeout_s);
    yyjson_mut_obj_add_int(doc, object, "uptime",
                           running && now > started ? (now - started) / 1000 : 0);
    scalebox_add_time(doc, object, "started_at", started);
    scalebox_add_time(doc, object, "timeout_at", e2b_end(info));
    scalebox_add_time(doc, object, "created_at", info->created_ms);
    scalebox_add_time(doc, object, "updated_at", info->updated_ms);
    enum sandbox_status seen = sandbox_seen_status(info);
    if (seen == SANDBOX_STOPPED || seen == SANDBOX_PAUSED)
        scalebox_add_time(doc, object, "paused_at", info->updated_ms);
}

yyjson_mut_val *scalebox_sandbox_json(struct http_exchange *x, yyjson_mut_doc *doc,
                                      const struct api_call *call, const struct sandbox_info *info,
                                      bool token)
{
    struct arena *arena = http_arena(x);
    struct e2b_spec spec;
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    e2b_spec_read(arena, info->metadata.e2b_spec, &spec);
    const char *shown = info->metadata.display_name;
    yyjson_mut_obj_add_str(doc, object, "sandbox_id", info->id);
    yyjson_mut_obj_add_str(doc, object, "template_id", spec.template_id);
    yyjson_mut_obj_add_str(doc, object, "template_name", spec.template_id);
    yyjson_mut_obj_add_str(doc, object, "name", shown != NULL ? shown : info->name);
    yyjson_mut_obj_add_str(doc, object, "status", scalebox_status(sandbox_seen_status(info)));
    yyjson_mut_obj_add_str(doc, object, "substatus", "");
    yyjson_mut_obj_add_val(doc, object, "metadata",
                           spec.metadata != NULL ? yyjson_val_mut_copy(doc, spec.metadata)
                                                 : yyjson_mut_obj(doc));
    yyjson_mut_obj_add_val(doc, object, "env_vars",
                           env_to_json(doc, secret_env_shown(arena, info)));
    add_resources(doc, object, info);
    struct scalebox_ports ports;
    scalebox_ports_read(&spec, &ports);
    scalebox_ports_json(doc, object, &ports);
    yyjson_mut_obj_add_str(doc, object, "sandbox_domain", domain_of(x, call->api, info->id));
    if (token)
        yyjson_mut_obj_add_str(doc, object, "envd_access_token",
                               scalebox_token(arena, call, info->id));
    add_times(doc, object, info, spec.timeout_s);
    return object;
}

yyjson_mut_val *scalebox_envelope(struct arena *arena, yyjson_mut_doc **ret_doc)
{
    yyjson_mut_val *root;
    *ret_doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_bool(*ret_doc, root, "success", true);
    return root;
}

int scalebox_reply_sandbox(struct http_exchange *x, const struct api_call *call, int status,
                           const struct sandbox_info *info, struct error *err)
{
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(http_arena(x), &doc);
    yyjson_mut_obj_add_val(doc, root, "data", scalebox_sandbox_json(x, doc, call, info, true));
    return api_reply_json(x, status, doc, err);
}
