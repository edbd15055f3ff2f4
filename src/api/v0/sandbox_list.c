/* SPDX-License-Identifier: Apache-2.0 */

/* /v0/sandbox: all of a workspace's sandboxes, and one more; and the same of a group's. */

#include "api/handlers.h"
#include "api/json_stream.h"

#include <string.h>

#include "api/call.h"
#include "api/v0/group_json.h"
#include "api/v0/sandbox.h"
#include "api/v0/sandbox_create.h"
#include "api/v0/sandbox_json.h"
#include "api/v0/security_json.h"
#include "base/limits.h"
#include "sandbox/groups.h"

enum { LIST_LIMIT_DEFAULT = 20, LIST_LIMIT_MAX = 1000 };

/* ?label=key=value, several times or with commas in between; all have to match. */
static int label_filter(struct http_exchange *x, struct slice *ret_labels, struct error *err)
{
    size_t size = strlen(http_request(x)->query) + 2, len = 0, count = 0;
    char *list = arena_alloc(http_arena(x), size);
    for (size_t i = 0;; i++) {
        const char *text;
        if (http_query_nth(x, "label", i, &text, err) < 0)
            return -1;
        if (text == NULL)
            break;
        for (const char *end; *text != '\0'; text = *end == ',' ? end + 1 : end) {
            end = strchrnul(text, ',');
            size_t item = (size_t)(end - text);
            if (memchr(text, '=', item) == NULL || ++count > LABELS_MAX)
                return error_set(err, ERROR_INVALID_ARGUMENT,
                                 "label: \"%.*s\" is not key=value, or one of more than %d",
                                 (int)(item > 80 ? 80 : item), text, LABELS_MAX);
            memcpy(list + len, text, item);
            list[len + item] = '\0';
            len += item + 1;
        }
    }
    *ret_labels = (struct slice){list, len};
    return 0;
}

/* The group that a path names has to be there; one in the query chooses from what is there. */
static int group_filter(struct http_exchange *x, const struct route_params *params,
                        const struct api_call *call, const char **ret_group, struct error *err)
{
    const char *name = route_param(params, "group");
    struct group_info info;
    if (name[0] == '\0')
        return http_query(x, "group", ret_group, err);
    if (groups_get(call->api->sandboxes, call->workspace, name, http_arena(x), &info, err) < 0)
        return -1;
    *ret_group = info.name;
    return 0;
}

static int list_filter(struct http_exchange *x, const struct route_params *params,
                       const struct api_call *call, struct sandbox_filter *ret_filter,
                       struct error *err)
{
    struct sandbox_filter filter = {.workspace = call->workspace};
    const char *status = NULL;
    uint64_t limit, offset;

    if (group_filter(x, params, call, &filter.group, err) < 0)
        return -1;
    if (api_query_uint(x, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, INT32_MAX, 0, &offset, err) < 0 ||
        http_query(x, "status", &status, err) < 0 || label_filter(x, &filter.labels, err) < 0)
        return -1;
    filter.limit = limit;
    filter.offset = offset;
    filter.by_status = status != NULL;
    if (status != NULL && sandbox_status_parse(status, &filter.status, err) < 0)
        return error_prefix(err, "status");
    *ret_filter = filter;
    return 0;
}

/* One that is gone by the time its turn comes is left out. */
static int add_sandbox(struct json_stream *out, const struct api_call *call, const char *id,
                       struct error *err)
{
    struct sandbox_info info;
    yyjson_mut_val *unused;
    yyjson_mut_doc *doc = json_stream_item(out, &unused);
    struct arena *arena = json_stream_arena(out);
    if (sandboxes_get(call->api->sandboxes, call->workspace, id, arena, &info, NULL) < 0)
        return 0;
    yyjson_mut_doc_set_root(doc, sandbox_json(arena, doc, &info, NULL));
    return json_stream_add(out, doc, err);
}

int v0_sandbox_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    _cleanup_json_stream_ struct json_stream out = {0};
    struct sandbox_filter filter;
    const char **ids = NULL;
    size_t count = 0, total = 0;

    if (list_filter(x, params, call, &filter, err) < 0 ||
        sandboxes_list_ids(call->api->sandboxes, &filter, http_arena(x), &ids, &count, &total,
                           err) < 0)
        return -1;
    json_stream_begin(&out, x);
    json_stream_array(&out, "sandboxes");
    for (size_t i = 0; i < count; i++)
        if (add_sandbox(&out, call, ids[i], err) < 0)
            return -1;
    json_stream_array_end(&out);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = json_stream_item(&out, &root);
    api_json_page(doc, root, total, filter.limit, filter.offset);
    json_stream_members(&out, doc);
    return json_stream_end(&out, err);
}

/* The group that the path or metadata.group names, whose spec is laid under the body's. */
static int in_group(const struct api_call *call, struct arena *arena, const char *in_path,
                    yyjson_val **body, const char **ret_group, struct error *err)
{
    yyjson_val *given = yyjson_obj_get(yyjson_obj_get(*body, "metadata"), "group");
    const char *in_body = yyjson_get_str(given);
    struct group_info group;
    if (given != NULL && !yyjson_is_null(given) && in_body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "metadata.group must be a string");
    if (in_path[0] != '\0' && in_body != NULL && strcmp(in_path, in_body) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "metadata.group: \"%.63s\" is not the group \"%.63s\" of the path",
                         in_body, in_path);
    const char *name = in_path[0] != '\0' ? in_path : in_body;
    if (name == NULL)
        return 0;
    if (groups_get(call->api->sandboxes, call->workspace, name, arena, &group, err) < 0 ||
        group_lay_over(arena, group.spec, *body, body, err) < 0)
        return -1;
    *ret_group = group.name;
    return 0;
}

int v0_sandbox_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_create request = {.workspace = call->workspace,
                                     .security.may_loosen = security_may_loosen(call),
                                     .actor = call->principal.name};
    struct sandbox_info info;
    yyjson_val *body;

    if (api_json_body(x, &body, err) < 0 ||
        in_group(call, arena, route_param(params, "group"), &body, &request.group, err) < 0 ||
        sandbox_create_from_json(arena, body, &request, err) < 0 ||
        sandboxes_create(call->api->sandboxes, &request, arena, &info, err) < 0)
        return -1;
    return sandbox_reply(x, 202, call->api, &info, err);
}
