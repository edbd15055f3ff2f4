/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading what somebody wants to have. A field that is not known is refused and never skipped:
 * whoever writes "memroy" should hear of it now, and not when the sandbox runs out of it.
 */

#include "api/v0/sandbox_create.h"

#include "api/v0/auto_lower_json.h"
#include "api/v0/env.h"
#include "api/v0/history_rules_json.h"
#include "api/v0/network_json.h"
#include "api/v0/resources_json.h"
#include "api/v0/security_json.h"
#include "api/v0/lifecycle_json.h"
#include "base/cleanup.h"

struct parts {
    yyjson_val *metadata;
    yyjson_val *spec;
};

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
};

struct metadata {
    const char *name;
    const char *external_id;
    const char *display_name;
    yyjson_val *labels;
};

static const struct json_field metadata_fields[] = {
    {"name", JSON_STRING, .offset = offsetof(struct metadata, name)},
    {"labels", JSON_OBJECT, .offset = offsetof(struct metadata, labels)},
    {"externalId", JSON_STRING, .offset = offsetof(struct metadata, external_id)},
    {"displayName", JSON_STRING, .offset = offsetof(struct metadata, display_name)},
    {"id", JSON_IGNORED},
    {"revision", JSON_IGNORED},
    {"createdAt", JSON_IGNORED},
    {"updatedAt", JSON_IGNORED},
    {"createdBy", JSON_IGNORED},
    {"updatedBy", JSON_IGNORED},
    {"workspace", JSON_IGNORED},
    {"group", JSON_IGNORED},
};

struct spec {
    const char *image;
    bool enabled;
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
    {"enabled", JSON_BOOL, .offset = offsetof(struct spec, enabled)},
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

static int read_metadata(struct arena *arena, yyjson_val *object, struct sandbox_create *request,
                         struct error *err)
{
    struct metadata metadata = {0};
    if (json_read(arena, object, "metadata", metadata_fields, ARRAY_LEN(metadata_fields), &metadata,
                  err) < 0)
        return -1;
    request->name = metadata.name;
    request->metadata.external_id = metadata.external_id;
    request->metadata.display_name = metadata.display_name;
    return labels_from_json(arena, metadata.labels, false, &request->metadata.labels, err);
}

static int read_spec(struct arena *arena, yyjson_val *object, struct sandbox_create *request,
                     struct error *err)
{
    struct spec spec = {.enabled = true};
    struct lifespan_change lifespan;
    if (json_read(arena, object, "spec", spec_fields, ARRAY_LEN(spec_fields), &spec, err) < 0)
        return -1;
    request->image = spec.image;
    request->enabled = spec.enabled;
    if (restart_policy_parse(spec.restart, &request->restart, err) < 0 ||
        resources_from_json(arena, spec.resources, "spec.resources", &request->resources, err) <
            0 ||
        auto_lower_from_json(arena, spec.auto_lower, &request->auto_lower, err) < 0 ||
        history_rules_from_json(arena, spec.history, &request->history, err) < 0)
        return -1;
    if (security_from_json(arena, spec.trust_level, spec.security, &request->security, err) < 0 ||
        network_from_json(arena, spec.network, &request->network, &request->resources, err) < 0)
        return -1;
    if (lifecycle_from_json(arena, spec.lifecycle, &lifespan, err) < 0)
        return -1;
    request->lifespan = lifespan.to;
    return env_from_json(arena, spec.env_vars, "spec.env_vars", &request->env, err);
}

int sandbox_create_from_json(struct arena *arena, yyjson_val *body, struct sandbox_create *request,
                             struct error *err)
{
    struct parts parts = {NULL, NULL};
    request->enabled = true;
    if (body != NULL &&
        json_read(arena, body, "", root_fields, ARRAY_LEN(root_fields), &parts, err) < 0)
        return -1;
    if (parts.metadata != NULL && read_metadata(arena, parts.metadata, request, err) < 0)
        return -1;
    return parts.spec == NULL ? 0 : read_spec(arena, parts.spec, request, err);
}
