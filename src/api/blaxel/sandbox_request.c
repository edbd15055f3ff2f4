/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading what a Blaxel client wants to have. What Cella acts on (image, memory, environment,
 * labels) becomes part of the sandbox as it would by any other way; the rest of the spec is text
 * that belongs to the sandbox and is shown again.
 */

#include "api/blaxel/sandbox_request.h"

#include <inttypes.h>
#include <string.h>

#include "api/blaxel/lifespan.h"
#include "api/blaxel/members.h"
#include "api/secret_env.h"
#include "api/v0/network_json.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum {
    MEMORY_MAX_MB = 16 * 1024 * 1024,
    MB_PER_CORE = 2048, /* Blaxel's own rule */
    CPU_MIN_MILLIS = 10,
};

static struct slice *keep_list(struct arena *arena, const struct buf *list)
{
    struct slice *kept = arena_alloc(arena, sizeof(*kept));
    *kept = (struct slice){arena_dup(arena, list->data, list->len), list->len};
    return kept;
}

/* "key=value" with its NUL. The value is a string; where the key ends is told by its '='. */
static int add_pair(struct buf *list, const char *where, const char *key, yyjson_val *value,
                    struct error *err)
{
    const char *text = yyjson_get_str(value);
    if (key[0] == '\0' || strchr(key, '=') != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.80s\" cannot be a name", where, key);
    if (text == NULL || strlen(text) != yyjson_get_len(value))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.%.80s must be a string", where, key);
    buf_adds(list, key);
    buf_addc(list, '=');
    buf_add(list, text, strlen(text) + 1);
    return buf_check(list, where, err);
}

static int read_labels(struct arena *arena, yyjson_val *metadata, const struct slice **ret_labels,
                       struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(HTTP_HEADERS_MAX);
    yyjson_val *labels = NULL, *key;
    yyjson_obj_iter iter;
    if (member_object(metadata, "metadata", "labels", &labels, err) < 0)
        return -1;
    if (labels == NULL)
        return 0;
    yyjson_obj_iter_init(labels, &iter);
    while ((key = yyjson_obj_iter_next(&iter)) != NULL)
        if (add_pair(&list, "metadata.labels", yyjson_get_str(key), yyjson_obj_iter_get_val(key),
                     err) < 0)
            return -1;
    *ret_labels = keep_list(arena, &list);
    return 0;
}

int blaxel_envs(struct arena *arena, yyjson_val *object, const char *where,
                const struct slice **ret_env, struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(ENV_BYTES_MAX);
    yyjson_val *envs = NULL, *item;
    yyjson_arr_iter iter;
    if (member_array(object, where, "envs", &envs, err) < 0)
        return -1;
    if (envs == NULL)
        return 0;
    yyjson_arr_iter_init(envs, &iter);
    while ((item = yyjson_arr_iter_next(&iter)) != NULL) {
        const char *name = NULL;
        if (!yyjson_is_obj(item))
            return error_set(err, ERROR_INVALID_ARGUMENT, "envs must hold objects");
        if (member_text(item, "envs", "name", &name, err) < 0)
            return -1;
        if (name == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "envs: name is required");
        if (add_pair(&list, "envs", name, yyjson_obj_get(item, "value"), err) < 0)
            return -1;
    }
    *ret_env = keep_list(arena, &list);
    return 0;
}

static bool has_name_of(struct slice list, const char *item)
{
    size_t len = strcspn(item, "=") + 1;
    strv_each (other, list)
        if (strncmp(other, item, len) == 0)
            return true;
    return false;
}

int blaxel_merge_env(struct arena *arena, struct slice *env, struct slice over, struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(ENV_BYTES_MAX);
    strv_each (item, *env)
        if (!has_name_of(over, item))
            buf_add(&list, item, strlen(item) + 1);
    buf_add(&list, over.data, over.len);
    if (buf_check(&list, "envs", err) < 0)
        return -1;
    *env = *keep_list(arena, &list);
    return 0;
}

static int read_resources(struct arena *arena, yyjson_val *runtime,
                          struct sandbox_resources *resources, struct error *err)
{
    uint64_t memory = 0;
    if (member_uint(runtime, "spec.runtime", "memory", 1, MEMORY_MAX_MB, &memory, err) < 0)
        return -1;
    if (memory == 0)
        return 0;
    uint64_t cpu = memory * 1000 / MB_PER_CORE;
    resources->memory = arena_printf(arena, "%" PRIu64 "Mi", memory);
    resources->cpu =
        arena_printf(arena, "%" PRIu64 "m", cpu < CPU_MIN_MILLIS ? CPU_MIN_MILLIS : cpu);
    return 0;
}

/* A value that is the mark is one that was read here: the variable is still secret. */
static bool is_secret(yyjson_mut_val *env)
{
    return yyjson_mut_get_bool(yyjson_mut_obj_get(env, "secret")) ||
           yyjson_mut_equals_str(yyjson_mut_obj_get(env, "value"), SECRET_ENV_SHOWN);
}

static bool array_has(yyjson_mut_val *array, yyjson_mut_val *text)
{
    yyjson_mut_arr_iter iter;
    yyjson_mut_val *item;
    yyjson_mut_arr_iter_init(array, &iter);
    while ((item = yyjson_mut_arr_iter_next(&iter)) != NULL)
        if (yyjson_mut_equals(item, text))
            return true;
    return false;
}

/* Which variables were marked as secret: the values are kept with the sandbox's own. */
static void keep_secret_marks(yyjson_mut_doc *doc, yyjson_mut_val *runtime, yyjson_mut_val *envs)
{
    yyjson_mut_val *marks = yyjson_mut_obj_remove_key(runtime, "secretEnvs"), *item, *name;
    yyjson_mut_arr_iter iter;
    if (!yyjson_mut_is_arr(marks))
        marks = yyjson_mut_arr(doc);
    yyjson_mut_arr_iter_init(envs, &iter);
    while ((item = yyjson_mut_arr_iter_next(&iter)) != NULL) {
        name = yyjson_mut_obj_get(item, "name");
        if (is_secret(item) && !array_has(marks, name))
            yyjson_mut_arr_append(marks, yyjson_mut_val_mut_copy(doc, name));
    }
    if (yyjson_mut_arr_size(marks) > 0)
        yyjson_mut_obj_add_val(doc, runtime, "secretEnvs", marks);
}

const char *blaxel_add_secret_marks(struct arena *arena, const char *spec, yyjson_val *object)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_val *parsed = NULL;
    yyjson_mut_val *kept, *runtime, *envs;
    bool readable = spec != NULL && json_parse(arena, slice_of(spec), &parsed, NULL) == 0;
    kept =
        readable && yyjson_is_obj(parsed) ? yyjson_val_mut_copy(doc, parsed) : yyjson_mut_obj(doc);
    runtime = yyjson_mut_obj_get(kept, "runtime");
    if (runtime == NULL)
        runtime = yyjson_mut_obj_add_obj(doc, kept, "runtime");
    size_t before = yyjson_mut_arr_size(yyjson_mut_obj_get(runtime, "secretEnvs"));
    envs = yyjson_val_mut_copy(doc, yyjson_obj_get(object, "envs"));
    keep_secret_marks(doc, runtime, envs);
    if (yyjson_mut_arr_size(yyjson_mut_obj_get(runtime, "secretEnvs")) == before)
        return NULL;
    yyjson_mut_doc_set_root(doc, kept);
    struct slice text = json_write(arena, doc, false);
    return text.data == NULL ? NULL : arena_dup(arena, text.data, text.len);
}

void blaxel_drop_secrets(yyjson_mut_val *spec)
{
    yyjson_mut_val *network = yyjson_mut_obj_get(spec, "network");
    yyjson_mut_val *routing = yyjson_mut_obj_get(yyjson_mut_obj_get(network, "proxy"), "routing");
    yyjson_mut_arr_iter iter;
    yyjson_mut_val *route;
    yyjson_mut_arr_iter_init(routing, &iter);
    while ((route = yyjson_mut_arr_iter_next(&iter)) != NULL)
        yyjson_mut_obj_remove_key(route, "secrets");
}

static void drop_nulls(yyjson_mut_val *object)
{
    yyjson_mut_obj_iter iter;
    yyjson_mut_val *key;
    if (!yyjson_mut_obj_iter_init(object, &iter))
        return;
    while ((key = yyjson_mut_obj_iter_next(&iter)) != NULL)
        if (yyjson_mut_is_null(yyjson_mut_obj_iter_get_val(key)))
            yyjson_mut_obj_iter_remove(&iter);
}

/* The spec without what the sandbox itself holds. */
static int keep_spec(struct arena *arena, yyjson_val *spec, const char **ret_text,
                     struct error *err)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *kept = yyjson_val_mut_copy(doc, spec);
    yyjson_mut_val *runtime = yyjson_mut_obj_get(kept, "runtime");
    yyjson_mut_doc_set_root(doc, kept);
    yyjson_mut_obj_remove_key(kept, "enabled");
    yyjson_mut_obj_remove_key(runtime, "image");
    yyjson_mut_obj_remove_key(runtime, "memory");
    yyjson_mut_obj_remove_key(runtime, "secretEnvs");
    if (runtime != NULL)
        keep_secret_marks(doc, runtime, yyjson_mut_obj_remove_key(runtime, "envs"));
    blaxel_drop_secrets(kept);
    drop_nulls(kept);
    drop_nulls(runtime);
    struct slice text = json_write(arena, doc, false);
    if (text.data == NULL)
        return error_set(err, ERROR_INTERNAL, "the spec could not be written as JSON");
    if (text.len > BLAXEL_SPEC_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "spec is larger than %d bytes",
                         BLAXEL_SPEC_MAX);
    *ret_text = arena_dup(arena, text.data, text.len);
    return 0;
}

/* spec.network: {allowedDomains} is an allow list, {forbiddenDomains} alone a deny list. The rest
 * of it (proxy) is kept and shown with the spec. */
static int read_network(struct arena *arena, yyjson_val *spec, struct network_request *request,
                        struct error *err)
{
    yyjson_val *network = NULL, *allowed = NULL, *forbidden = NULL;
    if (member_object(spec, "spec", "network", &network, err) < 0 ||
        member_array(network, "spec.network", "allowedDomains", &allowed, err) < 0 ||
        member_array(network, "spec.network", "forbiddenDomains", &forbidden, err) < 0)
        return -1;
    if (yyjson_arr_size(allowed) == 0 && yyjson_arr_size(forbidden) == 0)
        return 0;
    *request = (struct network_request){
        .given = NETWORK_MODE | NETWORK_ALLOW | NETWORK_DENY,
        .mode = yyjson_arr_size(allowed) > 0 ? NET_ALLOWLIST : NET_ISOLATED,
    };
    if (network_list_from_json(arena, allowed, "spec.network.allowedDomains", &request->allow,
                               err) < 0)
        return -1;
    return network_list_from_json(arena, forbidden, "spec.network.forbiddenDomains", &request->deny,
                                  err);
}

static int read_spec(struct arena *arena, yyjson_val *spec, struct blaxel_sandbox_request *request,
                     struct error *err)
{
    yyjson_val *runtime = NULL;
    bool *enabled = arena_alloc(arena, sizeof(*enabled));
    *enabled = true;
    if (member_bool(spec, "spec", "enabled", enabled, err) < 0 ||
        member_object(spec, "spec", "runtime", &runtime, err) < 0 ||
        member_text(runtime, "spec.runtime", "image", &request->image, err) < 0 ||
        read_resources(arena, runtime, &request->resources, err) < 0 ||
        read_network(arena, spec, &request->network, err) < 0 ||
        blaxel_envs(arena, runtime, "spec.runtime", &request->env, err) < 0)
        return -1;
    if (yyjson_is_bool(yyjson_obj_get(spec, "enabled")))
        request->enabled = enabled;
    return keep_spec(arena, spec, &request->spec, err);
}

int blaxel_sandbox_request(struct arena *arena, yyjson_val *body, int64_t created_ms,
                           struct blaxel_sandbox_request *ret_request, struct error *err)
{
    struct blaxel_sandbox_request request = {0};
    yyjson_val *metadata = NULL, *spec = NULL;
    if (member_object(body, "", "metadata", &metadata, err) < 0 ||
        member_object(body, "", "spec", &spec, err) < 0 ||
        member_text(metadata, "metadata", "name", &request.name, err) < 0 ||
        member_text(metadata, "metadata", "displayName", &request.display_name, err) < 0 ||
        member_text(metadata, "metadata", "externalId", &request.external_id, err) < 0 ||
        read_labels(arena, metadata, &request.labels, err) < 0)
        return -1;
    if (spec != NULL && (read_spec(arena, spec, &request, err) < 0 ||
                         blaxel_lifespan(spec, created_ms, &request.lifespan, err) < 0))
        return -1;
    if (request.name != NULL && request.name[0] == '\0')
        request.name = NULL;
    *ret_request = request;
    return 0;
}
