/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/secrets: what is sent for sandboxes of the workspace and never into them. A value goes in
 * here and comes out nowhere: no answer, no error and no log holds one.
 */

#include "api/handlers.h"

#include <string.h>

#include "api/call.h"
#include "auth/secrets.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/network.h"

static void add_secret(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct secret_info *info)
{
    char time[TIME_TEXT_SIZE];
    yyjson_mut_obj_add_str(doc, object, "name", info->name);
    yyjson_mut_val *hosts = yyjson_mut_obj_add_arr(doc, object, "hosts");
    strv_each (host, info->hosts)
        yyjson_mut_arr_add_str(doc, hosts, host);
    time_rfc3339(info->created_ms, time);
    yyjson_mut_obj_add_strcpy(doc, object, "createdAt", time);
    yyjson_mut_obj_add_str(doc, object, "createdBy", info->created_by);
    time_rfc3339(info->updated_ms, time);
    yyjson_mut_obj_add_strcpy(doc, object, "updatedAt", time);
    yyjson_mut_obj_add_str(doc, object, "updatedBy", info->updated_by);
}

static int reply(struct http_exchange *x, int status, const struct secret_info *info,
                 struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_secret(doc, root, info);
    return api_reply_json(x, status, doc, err);
}

/* --- storing --- */

static int read_hosts(struct arena *arena, yyjson_val *list, struct slice *ret_hosts,
                      struct error *err)
{
    _cleanup_buf_ struct buf hosts = BUF_INIT(HTTP_JSON_BODY_MAX);
    yyjson_val *item;
    size_t i, count;
    yyjson_arr_foreach(list, i, count, item)
    {
        const char *text = yyjson_get_str(item);
        if (text == NULL || strlen(text) != yyjson_get_len(item))
            return error_set(err, ERROR_INVALID_ARGUMENT, "hosts[%zu] has to be a host's name", i);
        buf_add(&hosts, text, strlen(text) + 1);
    }
    *ret_hosts = (struct slice){arena_dup(arena, hosts.data, hosts.len), hosts.len};
    return 0;
}

static int put(struct http_exchange *x, const struct api_call *call, const char *name,
               struct error *err)
{
    struct body {
        const char *name;
        struct slice value;
        yyjson_val *hosts;
    } body = {0};
    static const struct json_field fields[] = {
        {"name", JSON_STRING, .offset = offsetof(struct body, name)},
        {"value", JSON_BYTES, .offset = offsetof(struct body, value)},
        {"hosts", JSON_ARRAY, .offset = offsetof(struct body, hosts)},
        {"createdAt", JSON_IGNORED},
        {"createdBy", JSON_IGNORED},
        {"updatedAt", JSON_IGNORED},
        {"updatedBy", JSON_IGNORED},
    };
    struct secret_request request = {
        .workspace = call->workspace,
        .is_new = name == NULL,
        .actor = call->principal.name,
    };
    struct secret_info info;
    yyjson_val *root;
    if (api_json_body(x, &root, err) < 0)
        return -1;
    if (root != NULL &&
        json_read(http_arena(x), root, "", fields, ARRAY_LEN(fields), &body, err) < 0)
        return -1;
    if (name == NULL && body.name == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "name is required");
    if (name != NULL && body.name != NULL && strcmp(name, body.name) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "name is not the one in the path");
    request.name = name != NULL ? name : body.name;
    request.value = body.value;
    if (body.hosts != NULL && read_hosts(http_arena(x), body.hosts, &request.hosts, err) < 0)
        return -1;
    if (auth_secret_put(call->api->auth, &request, http_arena(x), &info, err) < 0)
        return -1;
    sandboxes_secrets_changed(call->api->sandboxes, call->workspace);
    return reply(x, name == NULL ? 201 : 200, &info, err);
}

int v0_secret_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return put(x, ctx, NULL, err);
}

int v0_secret_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    return put(x, ctx, route_param(params, "secret"), err);
}

/* --- looking, deleting --- */

int v0_secret_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct secret_info *items;
    size_t count;
    auth_secrets(call->api->auth, call->workspace, http_arena(x), &items, &count);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "secrets");
    for (size_t i = 0; i < count; i++)
        add_secret(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    yyjson_mut_obj_add_uint(doc, root, "total", count);
    return api_reply_json(x, 200, doc, err);
}

int v0_secret_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct secret_info info;
    if (auth_secret_get(call->api->auth, call->workspace, route_param(params, "secret"),
                        http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 200, &info, err);
}

int v0_secret_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "secret");
    if (auth_secret_delete(call->api->auth, call->workspace, name, err) < 0)
        return -1;
    sandboxes_secrets_changed(call->api->sandboxes, call->workspace);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "name", name);
    yyjson_mut_obj_add_str(doc, root, "message", "Secret deleted successfully");
    return api_reply_json(x, 200, doc, err);
}
