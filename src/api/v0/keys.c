/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/api-keys, and the same below a workspace's path. A key's secret is in the answer that makes
 * it and nowhere else.
 */

#include "api/handlers.h"

#include <string.h>

#include "api/call.h"
#include "api/live.h"
#include "api/v0/scopes_json.h"
#include "auth/keys.h"
#include "base/cleanup.h"
#include "base/limits.h"

static void add_time_or_null(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                             int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    if (unix_ms == 0) {
        yyjson_mut_obj_add_null(doc, object, key);
        return;
    }
    time_rfc3339(unix_ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_key(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct store_key *key)
{
    yyjson_mut_obj_add_strcpy(doc, object, "id", key->id);
    yyjson_mut_obj_add_strcpy(doc, object, "name", key->name);
    yyjson_mut_obj_add_strcpy(doc, object, "workspace", key->workspace);
    yyjson_mut_obj_add_strcpy(doc, object, "prefix", key->hint);
    scopes_add(doc, object, key->scopes);
    add_time_or_null(doc, object, "createdAt", key->created_ms);
    yyjson_mut_obj_add_strcpy(doc, object, "createdBy", key->created_by);
    add_time_or_null(doc, object, "expiresAt", key->expires_ms);
    add_time_or_null(doc, object, "lastUsedAt", key->last_used_ms);
}

/* --- making one --- */

static int read_request(struct http_exchange *x, struct key_request *ret_request, struct error *err)
{
    struct body {
        const char *name;
        yyjson_val *scopes;
        int64_t expires_in;
    } body = {NULL, NULL, 0};
    static const struct json_field fields[] = {
        {"name", JSON_STRING, .required = true, .offset = offsetof(struct body, name)},
        {"scopes", JSON_ARRAY, .offset = offsetof(struct body, scopes)},
        {"expiresIn", JSON_INT, .offset = offsetof(struct body, expires_in), .min = 1,
         .max = KEY_LIFETIME_MAX_S},
    };
    yyjson_val *root;
    if (api_json_body(x, &root, err) < 0)
        return -1;
    if (root == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "name is required");
    if (json_read(http_arena(x), root, "", fields, ARRAY_LEN(fields), &body, err) < 0 ||
        scopes_read(body.scopes, "read, write, admin, server", &ret_request->scopes, err) < 0)
        return -1;
    ret_request->name = body.name;
    ret_request->lifetime_s = body.expires_in;
    return 0;
}

int v0_key_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct key_request request = {.workspace = call->workspace};
    struct store_key key;
    char secret[AUTH_KEY_SIZE];
    if (read_request(x, &request, err) < 0 ||
        auth_key_create(call->api->auth, &call->principal, &request, secret, &key, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_key(doc, root, &key);
    yyjson_mut_obj_add_strcpy(doc, root, "secret", secret);
    explicit_bzero(secret, sizeof(secret));
    http_set_header(x, "Cache-Control", "no-store");
    return api_reply_json(x, 201, doc, err);
}

/* --- looking, revoking --- */

int v0_key_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    const struct api_call *call = ctx;
    struct store_key *items;
    size_t count;
    auth_keys(call->api->auth, call->workspace, http_arena(x), &items, &count);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "keys");
    for (size_t i = 0; i < count; i++)
        add_key(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    yyjson_mut_obj_add_uint(doc, root, "total", count);
    return api_reply_json(x, 200, doc, err);
}

int v0_key_get(struct http_exchange *x, const struct route_params *params, void *ctx,
               struct error *err)
{
    const struct api_call *call = ctx;
    struct store_key key;
    if (auth_key_get(call->api->auth, call->workspace, route_param(params, "id"), &key, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_key(doc, root, &key);
    return api_reply_json(x, 200, doc, err);
}

int v0_key_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    const char *id = route_param(params, "id");
    if (auth_key_revoke(call->api->auth, &call->principal, call->workspace, id, err) < 0)
        return -1;
    live_cancel(call->api->live, id, co_self(call->api->loop));
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "id", id);
    yyjson_mut_obj_add_str(doc, root, "message", "API key deleted successfully");
    return api_reply_json(x, 200, doc, err);
}

int v0_whoami(struct http_exchange *x, const struct route_params *params, void *ctx,
              struct error *err)
{
    const struct api_call *call = ctx;
    const struct principal *who = &call->principal;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_strcpy(doc, root, "name", who->name);
    if (who->key_id[0] != '\0' && !who->by_jwt)
        yyjson_mut_obj_add_strcpy(doc, root, "keyId", who->key_id);
    yyjson_mut_obj_add_str(doc, root, "credential",
                           who->by_jwt              ? "jwt"
                           : who->by_token          ? "token"
                           : who->key_id[0] != '\0' ? "key"
                                                    : "none");
    yyjson_mut_obj_add_str(doc, root, "workspace", call->workspace);
    if (who->sandbox[0] != '\0')
        yyjson_mut_obj_add_strcpy(doc, root, "sandboxId", who->sandbox);
    scopes_add(doc, root, who->scopes);
    add_time_or_null(doc, root, "expiresAt", who->expires_ms);
    return api_reply_json(x, 200, doc, err);
}
