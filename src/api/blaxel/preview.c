/* SPDX-License-Identifier: Apache-2.0 */

/* /v0/sandboxes/{name}/previews and their tokens: who may come in without a key, and where. */

#include "api/blaxel/handlers.h"
#include "api/blaxel/members.h"
#include "api/blaxel/preview_json.h"
#include "api/blaxel/preview_serve.h"

static int reply(struct http_exchange *x, const struct api_call *call,
                 const struct preview_info *info, const char *status, struct error *err)
{
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_doc_set_root(
        doc, preview_json(http_arena(x), doc, info, preview_url(x, call->api, info), status));
    return api_reply_json(x, 200, doc, err);
}

int blaxel_preview_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct preview_info *items = NULL;
    size_t count = 0;
    if (previews_list(call->api->sandboxes, call->workspace, route_param(params, "name"), arena,
                      &items, &count, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, preview_json(arena, doc, &items[i],
                                                 preview_url(x, call->api, &items[i]), "DEPLOYED"));
    return api_reply_json(x, 200, doc, err);
}

static int put(struct http_exchange *x, const struct route_params *params,
               const struct api_call *call, const char *name, bool replace, struct error *err)
{
    struct preview_request request;
    struct preview_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        preview_request_from_json(http_arena(x), body, &request, err) < 0)
        return -1;
    if (name != NULL)
        request.name = name;
    if (request.name == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "metadata.name is required");
    request.actor = call->principal.name;
    request.replace = replace;
    if (previews_put(call->api->sandboxes, call->workspace, route_param(params, "name"), &request,
                     http_arena(x), &info, err) < 0)
        return -1;
    if (info.readmits)
        preview_serve_end(call->api, info.id, NULL);
    return reply(x, call, &info, "DEPLOYED", err);
}

int blaxel_preview_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err)
{
    bool force = false;
    if (api_query_bool(x, "force", false, &force, err) < 0)
        return -1;
    return put(x, params, ctx, NULL, force, err);
}

int blaxel_preview_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    const char *preview = route_param(params, "preview");
    struct preview_info info;
    if (previews_get(call->api->sandboxes, call->workspace, route_param(params, "name"), preview,
                     http_arena(x), &info, err) < 0)
        return -1;
    return put(x, params, call, preview, true, err);
}

int blaxel_preview_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct preview_info info;
    if (previews_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                     route_param(params, "preview"), http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, call, &info, "DEPLOYED", err);
}

int blaxel_preview_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err)
{
    const struct api_call *call = ctx;
    const char *sandbox = route_param(params, "name"), *preview = route_param(params, "preview");
    struct sandboxes *s = call->api->sandboxes;
    struct preview_info info;
    if (previews_get(s, call->workspace, sandbox, preview, http_arena(x), &info, err) < 0)
        return -1;
    int rc = previews_delete(s, call->workspace, sandbox, preview, http_arena(x), &info, err);
    preview_serve_end(call->api, info.id, NULL); /* it is gone here, whatever the store says */
    if (rc < 0)
        return -1;
    return reply(x, call, &info, "TERMINATED", err); /* it is: there is nothing to wait for */
}

/* --- tokens --- */

int blaxel_preview_token_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                              struct error *err)
{
    const struct api_call *call = ctx;
    const char *sandbox = route_param(params, "name"), *preview = route_param(params, "preview");
    struct preview_token_info *items = NULL;
    size_t count = 0;
    if (preview_tokens_list(call->api->sandboxes, call->workspace, sandbox, preview, http_arena(x),
                            &items, &count, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, preview_token_json(doc, &items[i], sandbox, preview));
    return api_reply_json(x, 200, doc, err);
}

static int read_token_request(struct http_exchange *x, const char **ret_name,
                              int64_t *ret_expires_ms, struct error *err)
{
    yyjson_val *body, *metadata = NULL, *spec = NULL;
    const char *name = NULL, *expires = NULL;
    int64_t expires_ms = 0;
    if (api_json_body(x, &body, err) < 0 ||
        member_object(body, "", "metadata", &metadata, err) < 0 ||
        member_object(body, "", "spec", &spec, err) < 0 ||
        member_text(metadata, "metadata", "name", &name, err) < 0 ||
        member_text(spec, "spec", "expiresAt", &expires, err) < 0)
        return -1;
    if (expires != NULL && expires[0] != '\0' && time_parse_rfc3339(expires, &expires_ms, err) < 0)
        return error_prefix(err, "spec.expiresAt");
    *ret_name = name;
    *ret_expires_ms = expires_ms;
    return 0;
}

/* A token of a preview is a thing of the sandbox's, which is listed and deleted there, and opens
 * one port. But a session is the sandbox's whole API: whose key or JWT has an end gives on no more
 * than that. (What becomes a session later loses its tokens: sandbox/previews.h.) */
static int end_session(struct http_exchange *x, const struct api_call *call, const char *sandbox,
                       const char *preview, int64_t *expires_ms, struct error *err)
{
    struct preview_info info;
    int64_t own_ms = auth_gives_until_ms(&call->principal);
    if (own_ms == 0)
        return 0;
    if (previews_get(call->api->sandboxes, call->workspace, sandbox, preview, http_arena(x), &info,
                     err) < 0)
        return -1;
    if (preview_is_session(&info) && (*expires_ms == 0 || *expires_ms > own_ms))
        *expires_ms = own_ms;
    return 0;
}

int blaxel_preview_token_create(struct http_exchange *x, const struct route_params *params,
                                void *ctx, struct error *err)
{
    const struct api_call *call = ctx;
    const char *sandbox = route_param(params, "name"), *preview = route_param(params, "preview");
    struct preview_token_info token;
    const char *name = NULL;
    int64_t expires_ms = 0;
    if (read_token_request(x, &name, &expires_ms, err) < 0 ||
        end_session(x, call, sandbox, preview, &expires_ms, err) < 0 ||
        preview_tokens_add(call->api->sandboxes, call->workspace, sandbox, preview, name,
                           expires_ms, http_arena(x), &token, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_doc_set_root(doc, preview_token_json(doc, &token, sandbox, preview));
    return api_reply_json(x, 200, doc, err);
}

int blaxel_preview_token_delete(struct http_exchange *x, const struct route_params *params,
                                void *ctx, struct error *err)
{
    const struct api_call *call = ctx;
    const char *sandbox = route_param(params, "name"), *preview = route_param(params, "preview");
    const char *token = route_param(params, "token");
    struct sandboxes *s = call->api->sandboxes;
    struct preview_info info;
    if (previews_get(s, call->workspace, sandbox, preview, http_arena(x), &info, err) < 0)
        return -1;
    int rc = preview_tokens_delete(s, call->workspace, sandbox, preview, token, err);
    preview_serve_end(call->api, info.id, token); /* it is gone here, whatever the store says */
    if (rc < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "message", "Token deleted successfully");
    return api_reply_json(x, 200, doc, err);
}
