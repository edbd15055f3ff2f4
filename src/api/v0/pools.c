/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/pools: what is made ahead. Pools belong to the server, not to a workspace: everybody's
 * creates are served from them, and the scope server is needed to look at them or to change them.
 */

#include "api/handlers.h"

#include <string.h>

#include "api/call.h"
#include "api/v0/resources_json.h"
#include "api/v0/security_json.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "code/code.h"
#include "sandbox/pools.h"

/* --- writing --- */

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t ms)
{
    char time[TIME_TEXT_SIZE];
    time_rfc3339(ms, time);
    yyjson_mut_obj_add_strcpy(doc, object, key, time);
}

static double rounded(double ms)
{
    return (double)(int64_t)(ms * 1000 + 0.5) / 1000;
}

static void add_status(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct pool_info *info)
{
    yyjson_mut_val *status = yyjson_mut_obj_add_obj(doc, root, "status");
    yyjson_mut_obj_add_int(doc, status, "ready", info->ready);
    yyjson_mut_obj_add_int(doc, status, "making", info->making);
    if (info->oldest_age_ms >= 0)
        yyjson_mut_obj_add_real(doc, status, "oldestAge", (double)info->oldest_age_ms / 1000);
    else
        yyjson_mut_obj_add_null(doc, status, "oldestAge");
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"claimed", info->claimed},   {"misses", info->misses},   {"refills", info->refills},
        {"failures", info->failures}, {"expired", info->expired}, {"returned", info->returned},
    };
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        yyjson_mut_obj_add_uint(doc, status, counts[i].name, counts[i].value);
    yyjson_mut_val *refill = yyjson_mut_obj_add_obj(doc, status, "refillTime");
    yyjson_mut_obj_add_real(doc, refill, "lastMs", rounded(info->refill_last_ms));
    yyjson_mut_obj_add_real(doc, refill, "meanMs", rounded(info->refill_mean_ms));
    if (info->last_error != NULL)
        yyjson_mut_obj_add_str(doc, status, "lastError", info->last_error);
    else
        yyjson_mut_obj_add_null(doc, status, "lastError");
}

static void add_code(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *words)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "code");
    for (size_t len; *words != '\0'; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        yyjson_mut_arr_add_strncpy(doc, list, words, len);
    }
}

static void pool_json(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct pool_info *info)
{
    yyjson_mut_obj_add_str(doc, root, "name", info->name);
    yyjson_mut_obj_add_str(doc, root, "image", info->image);
    security_to_json(doc, root, &info->security, (struct slice){0});
    yyjson_mut_obj_add_bool(doc, root, "network", info->network != NET_NONE);
    add_code(doc, root, info->code);
    yyjson_mut_obj_add_int(doc, root, "size", info->size);
    yyjson_mut_obj_add_int(doc, root, "ttl", info->ttl_s);
    yyjson_mut_val *refill = yyjson_mut_obj_add_obj(doc, root, "refill");
    yyjson_mut_obj_add_int(doc, refill, "concurrency", info->at_once);
    yyjson_mut_val *resources = yyjson_mut_obj_add_obj(doc, root, "resources");
    resources_to_json(doc, resources, &info->resources);
    add_time(doc, root, "createdAt", info->created_ms);
    add_time(doc, root, "updatedAt", info->updated_ms);
    yyjson_mut_obj_add_str(doc, root, "createdBy", info->created_by);
    add_status(doc, root, info);
}

static int reply(struct http_exchange *x, int status, const struct pool_info *info,
                 struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    pool_json(doc, root, info);
    return api_reply_json(x, status, doc, err);
}

/* --- reading --- */

/* What create and update have in common. */
struct numbers {
    int64_t size, ttl_s, at_once;
    bool has_size, has_ttl, has_at_once;
};

struct body {
    const char *name, *image, *trust_level;
    yyjson_val *security, *size, *refill, *resources, *network, *code;
    const char *ttl;
};

static const struct json_field create_fields[] = {
    {"name", JSON_STRING, .offset = offsetof(struct body, name)},
    {"image", JSON_STRING, .offset = offsetof(struct body, image)},
    {"trustLevel", JSON_STRING, .offset = offsetof(struct body, trust_level)},
    {"security", JSON_OBJECT, .offset = offsetof(struct body, security)},
    {"size", JSON_ANY, .offset = offsetof(struct body, size)},
    {"ttl", JSON_SCALAR_TEXT, .offset = offsetof(struct body, ttl)},
    {"refill", JSON_OBJECT, .offset = offsetof(struct body, refill)},
    {"resources", JSON_OBJECT, .offset = offsetof(struct body, resources)},
    {"network", JSON_ANY, .offset = offsetof(struct body, network)},
    {"code", JSON_ANY, .offset = offsetof(struct body, code)},
    {"createdAt", JSON_IGNORED},
    {"updatedAt", JSON_IGNORED},
    {"createdBy", JSON_IGNORED},
    {"status", JSON_IGNORED},
};

static int read_whole(yyjson_val *value, const char *field, int64_t *ret_number, struct error *err)
{
    if (!yyjson_is_int(value) || (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s has to be a whole number", field);
    *ret_number = yyjson_get_sint(value);
    return 0;
}

static int read_refill(struct arena *arena, yyjson_val *object, struct numbers *numbers,
                       struct error *err)
{
    struct refill {
        yyjson_val *concurrency;
    } refill = {NULL};
    static const struct json_field fields[] = {
        {"concurrency", JSON_ANY, .offset = offsetof(struct refill, concurrency)},
    };
    if (json_read(arena, object, "refill", fields, ARRAY_LEN(fields), &refill, err) < 0)
        return -1;
    numbers->has_at_once = refill.concurrency != NULL;
    return refill.concurrency == NULL
               ? 0
               : read_whole(refill.concurrency, "refill.concurrency", &numbers->at_once, err);
}

static int read_numbers(struct arena *arena, const struct body *body, struct numbers *numbers,
                        struct error *err)
{
    uint64_t ttl;
    numbers->has_size = body->size != NULL;
    numbers->has_ttl = body->ttl != NULL;
    if (body->size != NULL && read_whole(body->size, "size", &numbers->size, err) < 0)
        return -1;
    if (body->ttl != NULL) {
        if (duration_seconds(body->ttl, &ttl, err) < 0)
            return error_prefix(err, "ttl");
        numbers->ttl_s = ttl > INT64_MAX ? INT64_MAX : (int64_t)ttl;
    }
    return body->refill == NULL ? 0 : read_refill(arena, body->refill, numbers, err);
}

static int read_body(struct http_exchange *x, struct body *body, struct numbers *numbers,
                     struct error *err)
{
    yyjson_val *object;
    if (api_json_body(x, &object, err) < 0)
        return -1;
    if (object != NULL && json_read(http_arena(x), object, "", create_fields,
                                    ARRAY_LEN(create_fields), body, err) < 0)
        return -1;
    return read_numbers(http_arena(x), body, numbers, err);
}

/* --- calls --- */

int v0_pool_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    const struct api_call *call = ctx;
    struct pool_info *items;
    size_t count;
    pools_list(call->api->sandboxes, http_arena(x), &items, &count);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "pools");
    for (size_t i = 0; i < count; i++)
        pool_json(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    yyjson_mut_obj_add_uint(doc, root, "total", count);
    return api_reply_json(x, 200, doc, err);
}

/* With or without: what its sandboxes may reach, each of them says. */
static int read_network(yyjson_val *value, struct network_request *request, struct error *err)
{
    if (value == NULL)
        return 0;
    if (!yyjson_is_bool(value))
        return error_set(err, ERROR_INVALID_ARGUMENT, "network must be true or false");
    request->given = NETWORK_MODE;
    request->mode = yyjson_get_bool(value) ? NET_ALLOWLIST : NET_NONE;
    return 0;
}

/* ["python", "js"] as "python javascript": each once. NULL: nothing is said. */
static int read_code(struct arena *arena, yyjson_val *list, const char **ret_code,
                     struct error *err)
{
    char code[CODE_LIST_SIZE] = "";
    size_t index, max;
    yyjson_val *item;
    *ret_code = NULL;
    if (list == NULL)
        return 0;
    bool right = yyjson_is_arr(list);
    yyjson_arr_foreach(list, index, max, item)
    {
        right = right && yyjson_is_str(item);
        if (right && code_list_add(code, yyjson_get_str(item), err) < 0)
            return error_prefix(err, "code");
    }
    if (!right)
        return error_set(err, ERROR_INVALID_ARGUMENT, "code has to be a list of languages");
    *ret_code = arena_strdup(arena, code);
    return 0;
}

int v0_pool_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct body body = {0};
    struct numbers numbers = {0};
    struct pool_info info;
    if (read_body(x, &body, &numbers, err) < 0)
        return -1;
    struct pool_create request = {
        .name = body.name,
        .image = body.image,
        .size = numbers.has_size ? &numbers.size : NULL,
        .ttl_s = numbers.has_ttl ? &numbers.ttl_s : NULL,
        .at_once = numbers.has_at_once ? &numbers.at_once : NULL,
        .security.may_loosen = true, /* who may make pools may do that */
        .actor = call->principal.name,
    };
    if (security_from_json(http_arena(x), body.trust_level, body.security, &request.security, err) <
        0)
        return -1;
    if (resources_from_json(http_arena(x), body.resources, "resources", &request.resources, err) <
        0)
        return -1;
    if (read_network(body.network, &request.network, err) < 0 ||
        read_code(http_arena(x), body.code, &request.code, err) < 0)
        return -1;
    if (pools_create(call->api->sandboxes, &request, http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 201, &info, err);
}

int v0_pool_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    const struct api_call *call = ctx;
    struct pool_info info;
    if (pools_get(call->api->sandboxes, route_param(params, "pool"), http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 200, &info, err);
}

int v0_pool_update(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct body body = {0};
    struct numbers numbers = {0};
    struct pool_info info;
    if (read_body(x, &body, &numbers, err) < 0)
        return -1;
    const struct {
        const char *name;
        const void *given;
    } fixed[] = {{"name", body.name},
                 {"image", body.image},
                 {"trustLevel", body.trust_level},
                 {"security", body.security},
                 {"resources", body.resources},
                 {"network", body.network}};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (fixed[i].given != NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "%s: a pool keeps it; delete the pool and make another one",
                             fixed[i].name);
    struct pool_update request = {
        .size = numbers.has_size ? &numbers.size : NULL,
        .ttl_s = numbers.has_ttl ? &numbers.ttl_s : NULL,
        .at_once = numbers.has_at_once ? &numbers.at_once : NULL,
    };
    if (read_code(http_arena(x), body.code, &request.code, err) < 0)
        return -1;
    if (pools_update(call->api->sandboxes, route_param(params, "pool"), &request, http_arena(x),
                     &info, err) < 0)
        return -1;
    return reply(x, 200, &info, err);
}

int v0_pool_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "pool");
    if (pools_delete(call->api->sandboxes, name, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "name", name);
    yyjson_mut_obj_add_str(doc, root, "message", "Pool deleted successfully");
    return api_reply_json(x, 200, doc, err);
}
