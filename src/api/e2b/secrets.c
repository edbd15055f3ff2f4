/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Secrets of the workspace (auth/secrets.h) as E2B's clients know them: with a version and
 * metadata, and without hosts, because there a sandbox's maker chooses where one goes
 * (network.rules). The metadata "hosts", names with commas between them, narrows that down. A
 * secret's id is its name.
 */

#include "auth/secrets.h"

#include <inttypes.h>
#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "base/cleanup.h"
#include "sandbox/network.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000 };

/* --- showing --- */

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_secret(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct secret_info *info)
{
    yyjson_val *metadata = NULL;
    if (info->metadata != NULL)
        json_parse(arena, slice_of(info->metadata), &metadata, NULL);
    yyjson_mut_obj_add_str(doc, object, "secretID", info->name);
    yyjson_mut_obj_add_str(doc, object, "name", info->name);
    yyjson_mut_obj_add_uint(doc, object, "currentVersion", info->version);
    yyjson_mut_obj_add_val(doc, object, "metadata",
                           metadata != NULL ? yyjson_val_mut_copy(doc, metadata)
                                            : yyjson_mut_obj(doc));
    add_time(doc, object, "createdAt", info->created_ms);
    add_time(doc, object, "updatedAt", info->updated_ms);
}

static int reply(struct http_exchange *x, int status, const struct secret_info *info,
                 struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_secret(http_arena(x), doc, root, info);
    return api_reply_json(x, status, doc, err);
}

/* By name, which is also what a page begins behind. */
int e2b_secret_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct secret_info *items;
    const char *after = NULL;
    size_t count, shown = 0;
    uint64_t limit;
    if (api_query_uint(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit, err) < 0 ||
        http_query(x, "nextToken", &after, err) < 0)
        return -1;
    auth_secrets(call->api->auth, call->workspace, http_arena(x), &items, &count);
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < count; i++) {
        if (after != NULL && strcmp(items[i].name, after) <= 0)
            continue;
        if (shown++ == limit) {
            http_set_header(x, "X-Next-Token", "%s", items[i - 1].name);
            break;
        }
        add_secret(http_arena(x), doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    }
    return api_reply_json(x, 200, doc, err);
}

int e2b_secret_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct secret_info info;
    if (auth_secret_get(call->api->auth, call->workspace, route_param(params, "id"), http_arena(x),
                        &info, err) < 0)
        return -1;
    return reply(x, 200, &info, err);
}

/* --- storing --- */

/* "a.example.com, *.example.org" as a list; "*" without. */
static struct slice hosts_of(struct arena *arena, yyjson_val *metadata)
{
    const char *text = yyjson_get_str(yyjson_obj_get(metadata, "hosts"));
    if (text == NULL)
        return (struct slice){"*", 2};
    char *list = arena_alloc(arena, strlen(text) + 1);
    size_t len = 0;
    for (const char *c = text;; c++) {
        bool ends = *c == ',' || *c == '\0';
        if (ends && len > 0 && list[len - 1] != '\0')
            list[len++] = '\0';
        else if (!ends && *c != ' ')
            list[len++] = *c;
        if (*c == '\0')
            return (struct slice){list, len};
    }
}

/* Its metadata as text, and the hosts that it names. */
static int read_metadata(struct arena *arena, yyjson_val *body, struct secret_request *request,
                         struct error *err)
{
    yyjson_val *metadata = NULL, *key, *value;
    size_t i, count;
    if (member_object(body, "", "metadata", &metadata, err) < 0)
        return -1;
    /* Where one that is there may go stays as it is, unless it is said anew. */
    if (request->is_new || yyjson_obj_get(metadata, "hosts") != NULL)
        request->hosts = hosts_of(arena, metadata);
    if (metadata == NULL)
        return 0;
    yyjson_obj_foreach(metadata, i, count, key, value)
    {
        if (!yyjson_is_str(value))
            return error_set(err, ERROR_INVALID_ARGUMENT, "metadata.%.80s must be a string",
                             yyjson_get_str(key));
    }
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, metadata));
    request->metadata = json_write(arena, doc, false).data;
    return 0;
}

static int put(struct http_exchange *x, const struct api_call *call, const char *name,
               struct error *err)
{
    struct secret_request request = {.workspace = call->workspace,
                                     .name = name,
                                     .any_host = true,
                                     .is_new = name == NULL,
                                     .actor = call->principal.name};
    struct secret_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        (name == NULL && member_text(body, "", "name", &request.name, err) < 0))
        return -1;
    if (request.name == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "name is required");
    yyjson_val *value = yyjson_obj_get(body, "value");
    if (!yyjson_is_str(value))
        return error_set(err, ERROR_INVALID_ARGUMENT, "value is required, and a string");
    request.value = (struct slice){yyjson_get_str(value), yyjson_get_len(value)};
    if (read_metadata(http_arena(x), body, &request, err) < 0 ||
        auth_secret_put(call->api->auth, &request, http_arena(x), &info, err) < 0)
        return -1;
    sandboxes_secrets_changed(call->api->sandboxes, call->workspace);
    return reply(x, name == NULL ? 201 : 200, &info, err);
}

int e2b_secret_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    return put(x, ctx, NULL, err);
}

/* A new value for one that is there. */
int e2b_secret_update(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "id");
    struct secret_info info;
    if (auth_secret_get(call->api->auth, call->workspace, name, http_arena(x), &info, err) < 0)
        return -1;
    return put(x, call, name, err);
}

int e2b_secret_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    if (auth_secret_delete(call->api->auth, call->workspace, route_param(params, "id"), err) < 0)
        return -1;
    sandboxes_secrets_changed(call->api->sandboxes, call->workspace);
    return e2b_reply_nothing(x, err);
}
