/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shape of a sandbox for Blaxel's clients. What GET shows can be sent back by PUT, which is how
 * those clients change anything: they read the whole object, change a member and send it all.
 */

#include "api/blaxel/sandbox_json.h"

#include <inttypes.h>
#include <string.h>

#include "api/blaxel/sandbox_request.h"
#include "api/call.h"
#include "api/secret_env.h"
#include "base/quantity.h"

static const char *const statuses[SANDBOX_STATUS_COUNT] = {
    [SANDBOX_CREATING] = "DEPLOYING",   [SANDBOX_RUNNING] = "DEPLOYED",
    [SANDBOX_STARTING] = "DEPLOYING",   [SANDBOX_STOPPING] = "DEACTIVATING",
    [SANDBOX_STOPPED] = "DEACTIVATED",  [SANDBOX_DELETING] = "DELETING",
    [SANDBOX_PAUSING] = "DEACTIVATING", [SANDBOX_PAUSED] = "DEACTIVATED",
    [SANDBOX_RESUMING] = "DEPLOYING",   [SANDBOX_FAILED] = "FAILED",
};

const char *blaxel_status(enum sandbox_status status)
{
    return statuses[status];
}

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(unix_ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_labels(yyjson_mut_doc *doc, yyjson_mut_val *metadata, struct slice labels)
{
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, metadata, "labels");
    strv_each (label, labels) {
        const char *value = strchr(label, '=') + 1;
        yyjson_mut_obj_add(object, yyjson_mut_strn(doc, label, (size_t)(value - 1 - label)),
                           yyjson_mut_str(doc, value));
    }
}

static void add_metadata(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct sandbox_info *info, const char *base_url)
{
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(doc, object, "metadata");
    yyjson_mut_obj_add_str(doc, metadata, "name", sandbox_address(info, arena));
    if (info->metadata.display_name != NULL)
        yyjson_mut_obj_add_str(doc, metadata, "displayName", info->metadata.display_name);
    if (info->metadata.external_id != NULL)
        yyjson_mut_obj_add_str(doc, metadata, "externalId", info->metadata.external_id);
    if (info->metadata.labels.len > 0)
        add_labels(doc, metadata, info->metadata.labels);
    yyjson_mut_obj_add_str(doc, metadata, "url",
                           arena_printf(arena, "%s/%s/sandboxes/%s", base_url, info->workspace,
                                        info->group == NULL ? info->name : info->id));
    yyjson_mut_obj_add_str(doc, metadata, "workspace", info->workspace);
    add_time(doc, metadata, "createdAt", info->created_ms);
    add_time(doc, metadata, "updatedAt", info->updated_ms);
    yyjson_mut_obj_add_str(doc, metadata, "createdBy", info->created_by);
    yyjson_mut_obj_add_str(doc, metadata, "updatedBy", info->updated_by);
}

static bool is_marked_secret(yyjson_mut_val *marks, const char *name, size_t len)
{
    yyjson_mut_arr_iter iter;
    yyjson_mut_val *mark;
    if (!yyjson_mut_arr_iter_init(marks, &iter))
        return false;
    while ((mark = yyjson_mut_arr_iter_next(&iter)) != NULL)
        if (yyjson_mut_equals_strn(mark, name, len))
            return true;
    return false;
}

static void put_envs(yyjson_mut_doc *doc, yyjson_mut_val *runtime, struct slice env)
{
    yyjson_mut_val *marks = yyjson_mut_obj_remove_key(runtime, "secretEnvs");
    yyjson_mut_val *envs = yyjson_mut_arr(doc);
    strv_each (item, env) {
        const char *value = strchr(item, '=') + 1;
        size_t len = (size_t)(value - 1 - item);
        yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, envs);
        yyjson_mut_obj_add_strn(doc, one, "name", item, len);
        yyjson_mut_obj_add_str(doc, one, "value", value);
        if (is_marked_secret(marks, item, len))
            yyjson_mut_obj_add_bool(doc, one, "secret", true);
    }
    if (env.len > 0)
        yyjson_mut_obj_add_val(doc, runtime, "envs", envs);
}

/* What was kept of the spec that was sent; an empty one for sandboxes made in other ways. */
static yyjson_mut_val *kept_spec(struct arena *arena, yyjson_mut_doc *doc, const char *text)
{
    yyjson_val *kept = NULL;
    yyjson_mut_val *spec;
    if (text != NULL && json_parse(arena, slice_of(text), &kept, NULL) == 0 && yyjson_is_obj(kept))
        spec = yyjson_val_mut_copy(doc, kept);
    else
        spec = yyjson_mut_obj(doc);
    /* An earlier release has kept them. */
    blaxel_drop_secrets(spec);
    return spec;
}

static void add_spec(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const struct sandbox_info *info)
{
    yyjson_mut_val *spec = kept_spec(arena, doc, info->metadata.blaxel_spec);
    yyjson_mut_val *runtime = yyjson_mut_obj_get(spec, "runtime");
    if (runtime == NULL)
        runtime = yyjson_mut_obj_add_obj(doc, spec, "runtime");
    yyjson_mut_obj_add_str(doc, runtime, "image", info->image);
    yyjson_mut_obj_add_uint(doc, runtime, "memory", info->limits.memory_bytes >> 20);
    put_envs(doc, runtime, secret_env_shown(arena, info));
    yyjson_mut_obj_add_bool(doc, spec, "enabled", info->enabled);
    yyjson_mut_obj_add_val(doc, object, "spec", spec);
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
        yyjson_mut_obj_add_str(doc, item, "revision",
                               arena_printf(arena, "rev-%" PRIu64, event->revision));
    }
}

static int64_t seconds_until(int64_t unix_ms)
{
    int64_t left = unix_ms - time_now_ms();
    return left > 0 ? (left + 999) / 1000 : 0;
}

yyjson_mut_val *blaxel_sandbox_json(struct arena *arena, yyjson_mut_doc *doc,
                                    const struct sandbox_info *info, const char *base_url,
                                    bool with_events)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    add_metadata(arena, doc, object, info, base_url);
    add_spec(arena, doc, object, info);
    yyjson_mut_obj_add_str(doc, object, "status", blaxel_status(sandbox_seen_status(info)));
    if (info->status == SANDBOX_RUNNING)
        yyjson_mut_obj_add_str(doc, object, "state", "RUNNING");
    if (info->used_ms != 0)
        add_time(doc, object, "lastUsedAt", info->used_ms);
    if (info->expires_ms != 0)
        yyjson_mut_obj_add_int(doc, object, "expiresIn", seconds_until(info->expires_ms));
    if (with_events)
        add_events(arena, doc, object, info);
    return object;
}
