/* SPDX-License-Identifier: Apache-2.0 */

/*
 * …/ports: which ports of a sandbox are published, to whom, and where they are reached. The ports
 * themselves are served elsewhere: v0/port.c (by path), api/port_serve.c (by host name and on ports
 * of the host).
 */

#include "api/handlers.h"

#include <string.h>
#include <time.h>

#include "api/call.h"
#include "api/port_serve.h"
#include "auth/token.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"

/* --- writing --- */

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t ms)
{
    char time[TIME_TEXT_SIZE];
    time_rfc3339(ms, time);
    yyjson_mut_obj_add_strcpy(doc, object, key, time);
}

static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text)
{
    if (text != NULL)
        yyjson_mut_obj_add_strcpy(doc, object, key, text);
    else
        yyjson_mut_obj_add_null(doc, object, key);
}

/* The API's own address, with the sandbox's name in the place of the server's: "http", "https" and
 * the port are the same, whoever stands in between. */
static const char *by_name(struct http_exchange *x, const struct api *api,
                           const struct port_info *info)
{
    const char *base = api_base_url(x, api), *authority = strstr(base, "://");
    if (api->domain == NULL || authority == NULL)
        return NULL;
    authority += 3;
    /* Behind the name, which may be an address of IPv6 in brackets. */
    const char *port = authority[0] == '[' ? strchr(authority, ']') : authority;
    port = port == NULL ? authority : port + (authority[0] == '[');
    port += strcspn(port, ":/");
    return arena_printf(http_arena(x), "%.*s%u-%s.%s%.*s/", (int)(authority - base), base,
                        info->port, info->sandbox_id, api->domain, (int)strcspn(port, "/"), port);
}

static const char *on_host(struct http_exchange *x, const struct api *api,
                           const struct port_info *info)
{
    if (info->host_port == 0)
        return NULL;
    return arena_printf(http_arena(x), "%s://%s:%u%s", publish_protocol_text(info->protocol),
                        api->host_address, info->host_port,
                        info->protocol == PUBLISH_HTTP ? "/" : "");
}

static void port_json(struct http_exchange *x, const struct api *api, yyjson_mut_doc *doc,
                      yyjson_mut_val *root, const struct port_info *info)
{
    yyjson_mut_obj_add_uint(doc, root, "port", info->port);
    yyjson_mut_obj_add_str(doc, root, "access", port_access_text(info->access));
    yyjson_mut_obj_add_str(doc, root, "protocol", publish_protocol_text(info->protocol));
    if (info->host_port != 0)
        yyjson_mut_obj_add_uint(doc, root, "hostPort", info->host_port);
    else
        yyjson_mut_obj_add_null(doc, root, "hostPort");
    if (info->host_error != NULL)
        add_text(doc, root, "hostError", info->host_error);
    add_text(doc, root, "command", info->command);
    yyjson_mut_val *urls = yyjson_mut_obj_add_obj(doc, root, "urls");
    add_text(doc, urls, "name", by_name(x, api, info));
    add_text(doc, urls, "hostPort", on_host(x, api, info));
    add_text(doc, urls, "path",
             arena_printf(http_arena(x), "%s/v0/sandbox/%s/port/%u/", api_base_url(x, api),
                          info->sandbox_id, info->port));
    add_time(doc, root, "createdAt", info->created_ms);
    add_time(doc, root, "updatedAt", info->updated_ms);
    add_text(doc, root, "createdBy", info->created_by);
}

static int reply(struct http_exchange *x, int status, const struct api *api,
                 const struct port_info *info, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    port_json(x, api, doc, root, info);
    return api_reply_json(x, status, doc, err);
}

/* --- reading --- */

struct body {
    int64_t port;
    const char *protocol, *access, *command;
    yyjson_val *host_port;
};

static const struct json_field publish_fields[] = {
    {"port", JSON_INT, true, offsetof(struct body, port), .min = 1, .max = UINT16_MAX},
    {"protocol", JSON_STRING, .offset = offsetof(struct body, protocol)},
    {"access", JSON_STRING, .offset = offsetof(struct body, access)},
    {"command", JSON_STRING, .offset = offsetof(struct body, command)},
    {"hostPort", JSON_ANY, .offset = offsetof(struct body, host_port)},
};

static const struct json_field change_fields[] = {
    {"access", JSON_STRING, .offset = offsetof(struct body, access)},
    {"command", JSON_STRING, .offset = offsetof(struct body, command)},
};

/* null is none, which is not what leaving it out means. */
static int read_host_port(yyjson_val *object, int *ret_host_port, struct error *err)
{
    yyjson_val *value = yyjson_obj_get(object, "hostPort");
    *ret_host_port = yyjson_is_null(value) ? HOST_PORT_NONE : HOST_PORT_ANY;
    if (value == NULL || yyjson_is_null(value))
        return 0;
    if (!yyjson_is_uint(value) || yyjson_get_uint(value) > UINT16_MAX)
        return error_set(
            err, ERROR_INVALID_ARGUMENT,
            "hostPort has to be a whole number up to 65535 (0: any), or null for none");
    *ret_host_port = (int)yyjson_get_uint(value);
    return 0;
}

static int read_object(struct http_exchange *x, yyjson_val **ret_object, struct error *err)
{
    if (api_json_body(x, ret_object, err) < 0)
        return -1;
    return *ret_object != NULL ? 0
                               : error_set(err, ERROR_INVALID_JSON, "a JSON object is needed here");
}

/* --- calls --- */

int v0_port_publish(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct body body = {0};
    struct port_request request = {.actor = call->principal.name};
    struct port_info info;
    yyjson_val *object;
    if (read_object(x, &object, err) < 0 ||
        json_read(http_arena(x), object, "", publish_fields, ARRAY_LEN(publish_fields), &body,
                  err) < 0 ||
        read_host_port(object, &request.host_port, err) < 0)
        return -1;
    if (body.protocol != NULL && publish_protocol_parse(body.protocol, &request.protocol, err) < 0)
        return -1;
    if (body.access != NULL && port_access_parse(body.access, &request.access, err) < 0)
        return -1;
    request.port = (uint16_t)body.port;
    request.command = body.command != NULL && body.command[0] != '\0' ? body.command : NULL;
    if (ports_publish(call->api->sandboxes, call->workspace, route_param(params, "name"), &request,
                      http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 201, call->api, &info, err);
}

int v0_port_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    const struct api_call *call = ctx;
    struct port_info *items;
    size_t count;
    if (ports_list(call->api->sandboxes, call->workspace, route_param(params, "name"),
                   http_arena(x), &items, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "ports");
    for (size_t i = 0; i < count; i++)
        port_json(x, call->api, doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    yyjson_mut_obj_add_uint(doc, root, "total", count);
    return api_reply_json(x, 200, doc, err);
}

int v0_port_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    const struct api_call *call = ctx;
    struct port_info info;
    uint16_t port = 0;
    if (api_port_param(params, &port, err) < 0 ||
        ports_get(call->api->sandboxes, call->workspace, route_param(params, "name"), port,
                  http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 200, call->api, &info, err);
}

int v0_port_change(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct body body = {0};
    struct port_change change = {.actor = call->principal.name};
    enum port_access access;
    struct port_info info;
    yyjson_val *object;
    uint16_t port = 0;
    if (api_port_param(params, &port, err) < 0 || read_object(x, &object, err) < 0 ||
        json_read(http_arena(x), object, "", change_fields, ARRAY_LEN(change_fields), &body, err) <
            0)
        return -1;
    if (body.access != NULL) {
        if (port_access_parse(body.access, &access, err) < 0)
            return -1;
        change.access = &access;
    }
    change.command = yyjson_is_null(yyjson_obj_get(object, "command")) ? "" : body.command;
    if (ports_change(call->api->sandboxes, call->workspace, route_param(params, "name"), port,
                     &change, http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 200, call->api, &info, err);
}

static int reply_message(struct http_exchange *x, uint16_t port, const char *message,
                         struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_uint(doc, root, "port", port);
    yyjson_mut_obj_add_str(doc, root, "message", message);
    return api_reply_json(x, 200, doc, err);
}

int v0_port_unpublish(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct port_info info;
    uint16_t port = 0;
    if (api_port_param(params, &port, err) < 0 ||
        ports_unpublish(call->api->sandboxes, call->workspace, route_param(params, "name"), port,
                        call->principal.name, http_arena(x), &info, err) < 0)
        return -1;
    return reply_message(x, port, "Port is not published any more", err);
}

/* --- tokens --- */

static int read_lifetime(struct http_exchange *x, int64_t *ret_seconds, struct error *err)
{
    struct wish {
        const char *expires_in;
    } wish = {NULL};
    static const struct json_field fields[] = {
        {"expiresIn", JSON_SCALAR_TEXT, .offset = offsetof(struct wish, expires_in)},
    };
    yyjson_val *object;
    uint64_t seconds = PORT_TOKEN_S;
    if (api_json_body(x, &object, err) < 0 ||
        (object != NULL &&
         json_read(http_arena(x), object, "", fields, ARRAY_LEN(fields), &wish, err) < 0))
        return -1;
    if (wish.expires_in != NULL && duration_seconds(wish.expires_in, &seconds, err) < 0)
        return error_prefix(err, "expiresIn");
    if (seconds < 1 || seconds > PORT_TOKEN_MAX_S)
        return error_set(err, ERROR_INVALID_DURATION, "expiresIn: it has to be from 1s to %dd",
                         PORT_TOKEN_MAX_S / 86400);
    *ret_seconds = (int64_t)seconds;
    return 0;
}

int v0_port_token(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct port_info info;
    uint16_t port = 0;
    int64_t seconds = 0;
    if (api_port_param(params, &port, err) < 0 || read_lifetime(x, &seconds, err) < 0 ||
        ports_get(call->api->sandboxes, call->workspace, route_param(params, "name"), port, arena,
                  &info, err) < 0)
        return -1;
    if (info.access != PORT_TOKEN)
        return error_set(err, ERROR_CONFLICT,
                         "port %u is %s, and asks nobody for a token: set its access to \"token\"",
                         port, port_access_text(info.access));
    int64_t ends_s = time_now_ms() / 1000 + seconds,
            own_s = auth_gives_until_ms(&call->principal) / 1000;
    if (own_s != 0 && own_s < ends_s) /* it does not outlive what its maker shows */
        ends_s = own_s;
    struct token_claims claims = {
        .audience = port_token_audience(arena, &info),
        .subject = call->principal.name,
        .workspace = info.workspace,
        .expires_s = ends_s,
        .issuer = call->principal.issuer,
    };
    const char *token = auth_token_issue(call->api->auth, arena, &claims);
    const char *url = by_name(x, call->api, &info);
    if (url == NULL)
        url = on_host(x, call->api, &info);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_uint(doc, root, "port", port);
    add_text(doc, root, "token", token);
    add_time(doc, root, "expiresAt", claims.expires_s * 1000);
    yyjson_mut_obj_add_str(doc, root, "header", PORT_TOKEN_FIELD);
    add_text(doc, root, "url",
             url == NULL ? NULL : arena_printf(arena, "%s?" PORT_TOKEN_QUERY "=%s", url, token));
    return api_reply_json(x, 201, doc, err);
}

int v0_port_revoke(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct port_info info;
    uint16_t port = 0;
    if (api_port_param(params, &port, err) < 0 ||
        ports_revoke(call->api->sandboxes, call->workspace, route_param(params, "name"), port,
                     call->principal.name, http_arena(x), &info, err) < 0)
        return -1;
    return reply_message(x, port, "Every token for the port is worthless now", err);
}
