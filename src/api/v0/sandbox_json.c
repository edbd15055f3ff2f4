/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shape of a sandbox. It is the same in every answer that shows one, so that what a client
 * learns to read once it can read everywhere, and what GET gives can be sent back to POST.
 */

#include "api/v0/sandbox_json.h"

#include <inttypes.h>

#include "api/secret_env.h"
#include "api/v0/auto_lower_json.h"
#include "api/v0/env.h"
#include "api/v0/history_rules_json.h"
#include "api/v0/network_json.h"
#include "api/v0/resources_json.h"
#include "api/v0/security_json.h"
#include "api/v0/lifecycle_json.h"
#include "base/timetext.h"

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(unix_ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_revision(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                         uint64_t revision)
{
    yyjson_mut_obj_add_str(doc, object, "revision", arena_printf(arena, "rev-%" PRIu64, revision));
}

static void add_metadata(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct sandbox_info *info)
{
    const struct sandbox_metadata *given = &info->metadata;
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(doc, object, "metadata");
    yyjson_mut_obj_add_str(doc, metadata, "name", info->name);
    yyjson_mut_obj_add_str(doc, metadata, "id", info->id);
    if (info->group != NULL)
        yyjson_mut_obj_add_str(doc, metadata, "group", info->group);
    if (given->display_name != NULL)
        yyjson_mut_obj_add_str(doc, metadata, "displayName", given->display_name);
    if (given->external_id != NULL)
        yyjson_mut_obj_add_str(doc, metadata, "externalId", given->external_id);
    if (given->labels.len > 0)
        yyjson_mut_obj_add_val(doc, metadata, "labels", env_to_json(doc, given->labels));
    add_revision(arena, doc, metadata, info->revision);
    add_time(doc, metadata, "createdAt", info->created_ms);
    add_time(doc, metadata, "updatedAt", info->updated_ms);
    yyjson_mut_obj_add_str(doc, metadata, "createdBy", info->created_by);
    yyjson_mut_obj_add_str(doc, metadata, "updatedBy", info->updated_by);
    yyjson_mut_obj_add_str(doc, metadata, "workspace", info->workspace);
}

static void add_spec(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const struct sandbox_info *info)
{
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, object, "spec");
    yyjson_mut_obj_add_bool(doc, spec, "enabled", info->enabled);
    yyjson_mut_obj_add_str(doc, spec, "image", info->image);
    yyjson_mut_val *resources = yyjson_mut_obj_add_obj(doc, spec, "resources");
    resources_to_json(doc, resources, &info->resources);
    auto_lower_to_json(arena, doc, spec, info->auto_lower);
    history_rules_to_json(arena, doc, spec, info->history);
    security_to_json(doc, spec, &info->security, info->network);
    network_to_json(arena, doc, spec, info);
    if (info->env.len > 0)
        yyjson_mut_obj_add_val(doc, spec, "env_vars",
                               env_to_json(doc, secret_env_shown(arena, info)));
    lifecycle_to_json(doc, spec, &info->lifespan);
    yyjson_mut_obj_add_str(doc, spec, "restart", restart_policy_text(info->restart));
}

static void add_events(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct sandbox_info *info)
{
    yyjson_mut_val *events = yyjson_mut_obj_add_arr(doc, object, "events");
    for (size_t i = 0; i < info->event_count; i++) {
        const struct sandbox_event *event = &info->events[i];
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, events);
        yyjson_mut_obj_add_str(doc, item, "type", event->type);
        yyjson_mut_obj_add_str(doc, item, "status", event->status);
        yyjson_mut_obj_add_str(doc, item, "message", event->message);
        add_time(doc, item, "time", event->time_ms);
        add_revision(arena, doc, item, event->revision);
    }
}

static void add_access(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct sandbox_info *info, const char *base_url)
{
    /* A name that is unique in its group only is none to be found by. */
    const char *name = info->group == NULL ? info->name : info->id;
    yyjson_mut_val *access = yyjson_mut_obj_add_obj(doc, object, "access");
    yyjson_mut_obj_add_str(
        doc, access, "api_endpoint",
        arena_printf(arena, "%s/%s/sandbox/%s", base_url, info->workspace, name));
    yyjson_mut_obj_add_str(
        doc, access, "mcp_endpoint",
        arena_printf(arena, "%s/%s/function/%s", base_url, info->workspace, name));
}

yyjson_mut_val *sandbox_json(struct arena *arena, yyjson_mut_doc *doc,
                             const struct sandbox_info *info, const char *base_url)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    add_metadata(arena, doc, object, info);
    add_spec(arena, doc, object, info);
    yyjson_mut_obj_add_str(doc, object, "status", sandbox_status_text(info->status));
    if (info->starts_on_use)
        yyjson_mut_obj_add_bool(doc, object, "startsOnUse", true);
    if (info->expires_ms != 0)
        add_time(doc, object, "expiresAt", info->expires_ms);
    if (info->idle_since_ms != 0)
        add_time(doc, object, "idleSince", info->idle_since_ms);
    add_events(arena, doc, object, info);
    if (base_url != NULL)
        add_access(arena, doc, object, info, base_url);
    return object;
}

/* Only the statuses that such an answer can have are sentences of their own. */
static const char *const change_messages[SANDBOX_STATUS_COUNT] = {
    [SANDBOX_STARTING] = "Sandbox is starting",    [SANDBOX_RUNNING] = "Sandbox is running",
    [SANDBOX_STOPPING] = "Sandbox is stopping",    [SANDBOX_STOPPED] = "Sandbox is stopped",
    [SANDBOX_PAUSING] = "Sandbox is being paused", [SANDBOX_PAUSED] = "Sandbox is paused",
    [SANDBOX_RESUMING] = "Sandbox is resuming",    [SANDBOX_DELETING] = "Sandbox is being deleted",
};

void sandbox_change_json(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct sandbox_info *info)
{
    const char *message = change_messages[info->status];
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, metadata, "name", info->name);
    if (info->group != NULL)
        yyjson_mut_obj_add_str(doc, metadata, "group", info->group);
    yyjson_mut_obj_add_str(doc, metadata, "workspace", info->workspace);
    yyjson_mut_obj_add_str(doc, root, "status", sandbox_status_text(info->status));
    yyjson_mut_obj_add_str(doc, root, "message", message != NULL ? message : "Accepted");
}
