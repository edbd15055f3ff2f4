/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading changes: one set of tables for both, since a clone's overrides and an update speak of the
 * same fields. A field is a pointer, or NULL for "as it is".
 */

#include "api/v0/sandbox_change.h"

#include <string.h>

#include "api/v0/auto_lower_json.h"
#include "api/v0/env.h"
#include "api/v0/history_rules_json.h"
#include "api/v0/lifecycle_json.h"
#include "api/v0/network_json.h"
#include "api/v0/resources_json.h"
#include "api/v0/sandbox.h"
#include "api/v0/security_json.h"
#include "base/cleanup.h"

struct parts {
    yyjson_val *metadata;
    yyjson_val *spec;
    yyjson_val *resources;
    const char *name;
    struct sandbox_resources flat;
};

/* The update's, and after `name` what a clone may have besides. */
static const struct json_field root_fields[] = {
    {"metadata", JSON_OBJECT, .offset = offsetof(struct parts, metadata)},
    {"spec", JSON_OBJECT, .offset = offsetof(struct parts, spec)},
    {"status", JSON_IGNORED},
    {"expiresAt", JSON_IGNORED},
    {"idleSince", JSON_IGNORED},
    {"startsOnUse", JSON_IGNORED},
    {"events", JSON_IGNORED},
    {"access", JSON_IGNORED},
    {"usage", JSON_IGNORED},
    {"name", JSON_STRING, .offset = offsetof(struct parts, name)},
    {"resources", JSON_OBJECT, .offset = offsetof(struct parts, resources)},
    RESOURCE_FIELDS(struct parts, flat),
};
enum { UPDATE_FIELDS = 9 };

struct metadata {
    const char *name;
    const char *external_id;
    const char *display_name;
    const char *revision;
    yyjson_val *labels;
};

static const struct json_field metadata_fields[] = {
    {"name", JSON_STRING, .offset = offsetof(struct metadata, name)},
    {"labels", JSON_OBJECT, .offset = offsetof(struct metadata, labels)},
    {"externalId", JSON_STRING, .offset = offsetof(struct metadata, external_id)},
    {"displayName", JSON_STRING, .offset = offsetof(struct metadata, display_name)},
    {"revision", JSON_STRING, .offset = offsetof(struct metadata, revision)},
    {"id", JSON_IGNORED},
    {"createdAt", JSON_IGNORED},
    {"updatedAt", JSON_IGNORED},
    {"createdBy", JSON_IGNORED},
    {"updatedBy", JSON_IGNORED},
    {"workspace", JSON_IGNORED},
    {"group", JSON_IGNORED},
};

struct spec {
    const char *image;
    yyjson_val *enabled;
    yyjson_val *resources;
    yyjson_val *auto_lower;
    yyjson_val *env_vars;
    const char *trust_level;
    yyjson_val *security;
    yyjson_val *lifecycle;
    yyjson_val *network;
    yyjson_val *history;
    const char *restart;
};

static const struct json_field spec_fields[] = {
    {"image", JSON_STRING, .offset = offsetof(struct spec, image)},
    {"enabled", JSON_ANY, .offset = offsetof(struct spec, enabled)},
    {"resources", JSON_OBJECT, .offset = offsetof(struct spec, resources)},
    {"autoLower", JSON_ANY, .offset = offsetof(struct spec, auto_lower)},
    {"env_vars", JSON_OBJECT, .offset = offsetof(struct spec, env_vars)},
    {"trustLevel", JSON_STRING, .offset = offsetof(struct spec, trust_level)},
    {"security", JSON_OBJECT, .offset = offsetof(struct spec, security)},
    {"lifecycle", JSON_OBJECT, .offset = offsetof(struct spec, lifecycle)},
    {"network", JSON_OBJECT, .offset = offsetof(struct spec, network)},
    {"history", JSON_OBJECT, .offset = offsetof(struct spec, history)},
    {"restart", JSON_STRING, .offset = offsetof(struct spec, restart)},
};

/* Everything that both can say. */
struct change {
    struct parts parts;
    struct metadata metadata;
    struct spec spec;
    struct sandbox_resources resources;
    const bool *enabled;
    const enum restart_policy *restart;
    const struct slice *env;
    const struct slice *labels;
    const struct slice *auto_lower;
    const struct slice *history;
    const struct lifespan_change *lifespan;
    struct network_request network;
};

static int read_enabled(struct arena *arena, yyjson_val *value, const bool **ret_enabled,
                        struct error *err)
{
    if (value == NULL)
        return 0;
    if (!yyjson_is_bool(value))
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec.enabled must be true or false, not %s",
                         yyjson_get_type_desc(value));
    bool enabled = yyjson_get_bool(value);
    *ret_enabled = (const bool *)arena_dup(arena, (const char *)&enabled, sizeof(enabled));
    return 0;
}

static int read_restart(struct arena *arena, const char *text,
                        const enum restart_policy **ret_restart, struct error *err)
{
    enum restart_policy *restart = arena_alloc(arena, sizeof(*restart));
    if (text == NULL)
        return 0;
    if (restart_policy_parse(text, restart, err) < 0)
        return -1;
    *ret_restart = restart;
    return 0;
}

/* The list as something to point to; objects that are not there stay NULL. */
static const struct slice *keep(struct arena *arena, struct slice list)
{
    struct slice *kept = arena_alloc(arena, sizeof(*kept));
    *kept = list;
    return kept;
}

static int read_lists(struct arena *arena, bool patch, struct change *change, struct error *err)
{
    struct slice env, labels, auto_lower, history;
    if (change->spec.auto_lower != NULL) {
        if (auto_lower_from_json(arena, change->spec.auto_lower, &auto_lower, err) < 0)
            return -1;
        change->auto_lower = keep(arena, auto_lower);
    }
    if (change->spec.history != NULL) {
        if (history_rules_from_json(arena, change->spec.history, &history, err) < 0)
            return -1;
        change->history = keep(arena, history);
    }
    if (change->spec.env_vars != NULL) {
        int (*read)(struct arena *, yyjson_val *, const char *, struct slice *, struct error *) =
            patch ? env_patch_from_json : env_from_json;
        if (read(arena, change->spec.env_vars, "spec.env_vars", &env, err) < 0)
            return -1;
        change->env = keep(arena, env);
    }
    if (change->metadata.labels != NULL) {
        if (labels_from_json(arena, change->metadata.labels, patch, &labels, err) < 0)
            return -1;
        change->labels = keep(arena, labels);
    }
    return 0;
}

/* In a patch, null says something: there is none from now on. */
static int read_lifecycle(struct arena *arena, bool patch, struct change *change, struct error *err)
{
    struct lifespan_change *lifespan = arena_alloc(arena, sizeof(*lifespan));
    yyjson_val *given =
        patch ? yyjson_obj_get(change->parts.spec, "lifecycle") : change->spec.lifecycle;
    int (*read)(struct arena *, yyjson_val *, struct lifespan_change *, struct error *) =
        patch ? lifecycle_patch_from_json : lifecycle_from_json;
    if (read(arena, given, lifespan, err) < 0)
        return -1;
    if (lifespan->sets != 0)
        change->lifespan = lifespan;
    return 0;
}

static int read_change(struct arena *arena, yyjson_val *body, size_t fields, bool patch,
                       struct change *change, struct error *err)
{
    if (body != NULL && json_read(arena, body, "", root_fields, fields, &change->parts, err) < 0)
        return -1;
    if (change->parts.metadata != NULL &&
        json_read(arena, change->parts.metadata, "metadata", metadata_fields,
                  ARRAY_LEN(metadata_fields), &change->metadata, err) < 0)
        return -1;
    if (change->parts.spec != NULL && json_read(arena, change->parts.spec, "spec", spec_fields,
                                                ARRAY_LEN(spec_fields), &change->spec, err) < 0)
        return -1;
    if (resources_from_json(arena, change->spec.resources, "spec.resources", &change->resources,
                            err) < 0 ||
        read_enabled(arena, change->spec.enabled, &change->enabled, err) < 0 ||
        read_restart(arena, change->spec.restart, &change->restart, err) < 0 ||
        network_from_json(arena, change->spec.network, &change->network, &change->resources, err) <
            0 ||
        read_lifecycle(arena, patch, change, err) < 0)
        return -1;
    return read_lists(arena, patch, change, err);
}

/* One value out of several places where it may stand. */
static int agree(const char *field, const char **value, const char *other, struct error *err)
{
    if (other == NULL)
        return 0;
    if (*value != NULL && strcmp(*value, other) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s is given twice, as \"%.60s\" and as \"%.60s\"", field, *value, other);
    *value = other;
    return 0;
}

static int agree_resources(struct sandbox_resources *resources,
                           const struct sandbox_resources *other, struct error *err)
{
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (agree(resource_name((enum resource)i), &resources->of[i], other->of[i], err) < 0)
            return -1;
    return 0;
}

int sandbox_clone_from_json(struct arena *arena, yyjson_val *body, struct sandbox_clone *request,
                            struct error *err)
{
    struct change change = {0};
    struct sandbox_resources flat = {0};
    if (read_change(arena, body, ARRAY_LEN(root_fields), false, &change, err) < 0 ||
        resources_from_json(arena, change.parts.resources, "resources", &flat, err) < 0 ||
        agree("name", &change.metadata.name, change.parts.name, err) < 0 ||
        agree_resources(&change.resources, &flat, err) < 0 ||
        agree_resources(&change.resources, &change.parts.flat, err) < 0)
        return -1;
    request->name = change.metadata.name;
    request->image = change.spec.image;
    request->resources = change.resources;
    request->auto_lower = change.auto_lower;
    request->history = change.history;
    request->env = change.env;
    request->labels = change.labels;
    request->external_id = change.metadata.external_id;
    request->display_name = change.metadata.display_name;
    request->enabled = change.enabled;
    request->restart = change.restart;
    request->lifespan = change.lifespan;
    request->network = change.network;
    return security_from_json(arena, change.spec.trust_level, change.spec.security,
                              &request->security, err);
}

int sandbox_update_from_json(struct arena *arena, yyjson_val *body, bool patch, const char *name,
                             struct sandbox_update *request, struct error *err)
{
    struct change change = {0};
    if (read_change(arena, body, UPDATE_FIELDS, patch, &change, err) < 0)
        return -1;
    if (change.metadata.name != NULL && strcmp(change.metadata.name, name) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "metadata.name: a sandbox keeps its name, \"%.63s\"", name);
    if (change.metadata.revision != NULL &&
        !sandbox_parse_revision(change.metadata.revision, &request->revision))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "metadata.revision: \"%.60s\" is not a revision, as rev-123",
                         change.metadata.revision);
    request->image = change.spec.image;
    request->resources = change.resources;
    request->auto_lower = change.auto_lower;
    request->history = change.history;
    request->env = change.env;
    request->labels = change.labels;
    request->merge = patch;
    request->external_id = change.metadata.external_id;
    request->display_name = change.metadata.display_name;
    request->enabled = change.enabled;
    request->restart = change.restart;
    request->lifespan = change.lifespan;
    request->network = change.network;
    return security_from_json(arena, change.spec.trust_level, change.spec.security,
                              &request->security, err);
}
