/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Snapshots and forks. A snapshot is a clone of the sandbox that is never started: its files are
 * shared with the source until one of them changes, so it costs what differs. A sandbox that is
 * made of it, or forked, is a clone again.
 */

#include "api/e2b/snapshots.h"

#include <inttypes.h>
#include <string.h>

#include "api/blaxel/members.h"
#include "api/e2b/errors.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/v0/sandbox_ca.h"
#include "base/limits.h"
#include "loop/co.h"

#define TAG ":default"

enum { FORKS_MAX = 100, PAGE_DEFAULT = 100, PAGE_MAX = 1000, SNAPSHOT_NAME_MAX = 128 };

static const bool enabled = true, disabled = false;

/* --- finding --- */

static bool is_called(struct arena *arena, const struct sandbox_info *info, struct slice reference)
{
    struct e2b_spec spec;
    e2b_spec_read(arena, info->metadata.e2b_spec, &spec);
    return spec.snapshot != NULL && (slice_eq(slice_of(info->id), reference) ||
                                     slice_eq(slice_of(spec.snapshot), reference));
}

int e2b_snapshot_find(struct http_exchange *x, const struct api_call *call, const char *reference,
                      struct sandbox_info *ret_info, struct error *err)
{
    struct arena *arena = http_arena(x);
    const struct sandbox_filter filter = {
        .workspace = call->workspace, .newest_first = true, .limit = SIZE_MAX};
    struct slice plain = {reference, strcspn(reference, ":")};
    struct sandbox_info *items;
    size_t count, total;
    if (sandboxes_list(call->api->sandboxes, &filter, arena, &items, &count, &total, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (items[i].status != SANDBOX_DELETING && is_called(arena, &items[i], plain)) {
            *ret_info = items[i];
            return 0;
        }
    return error_set(err, ERROR_SNAPSHOT_NOT_FOUND, "there is no snapshot \"%.80s\"", reference);
}

/* --- making --- */

static void add_snapshot(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct sandbox_info *info)
{
    struct e2b_spec spec;
    e2b_spec_read(arena, info->metadata.e2b_spec, &spec);
    yyjson_mut_obj_add_str(doc, object, "snapshotID", arena_printf(arena, "%s" TAG, info->id));
    yyjson_mut_val *names = yyjson_mut_obj_add_arr(doc, object, "names");
    if (spec.snapshot[0] != '\0')
        yyjson_mut_arr_add_str(doc, names, spec.snapshot);
    char time[TIME_TEXT_SIZE];
    time_rfc3339(info->created_ms, time);
    yyjson_mut_obj_add_strcpy(doc, object, "createdAt", time);
}

static int make_clone(struct http_exchange *x, const struct api_call *call,
                      const struct sandbox_clone *clone, struct sandbox_info *ret_info,
                      struct error *err)
{
    if (sandboxes_clone(call->api->sandboxes, clone, http_arena(x), ret_info, err) < 0)
        return -1;
    sandbox_ca_clone(x, call, clone->source, ret_info->id);
    return 0;
}

/* A sandbox is recorded at once; its files are there when it has settled. */
static int wait_made(struct http_exchange *x, const struct api_call *call, const char *id,
                     struct sandbox_info *ret_info, struct error *err)
{
    if (sandboxes_settle(call->api->sandboxes, call->workspace, id, http_arena(x), ret_info, err) <
        0)
        return -1;
    if (ret_info->status == SANDBOX_FAILED)
        return error_set(
            err, ERROR_UNAVAILABLE, "the copy could not be made: %s",
            ret_info->event_count > 0 ? ret_info->events[ret_info->event_count - 1].message : "");
    return 0;
}

int e2b_snapshot_make(struct http_exchange *x, const struct api_call *call,
                      const struct sandbox_info *source, const char *name,
                      const struct sandbox_resources *resources, struct sandbox_info *ret_made,
                      struct error *err)
{
    struct arena *arena = http_arena(x);
    struct e2b_spec spec;
    if (strlen(name) > SNAPSHOT_NAME_MAX || strchr(name, ':') != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "name: at most %d characters, and no colon",
                         SNAPSHOT_NAME_MAX);
    e2b_spec_read(arena, source->metadata.e2b_spec, &spec);
    spec.snapshot = name;
    spec.source = source->id;
    const struct lifespan_change forever = {.sets = LIFESPAN_SETS_ALL};
    const struct sandbox_clone clone = {.workspace = call->workspace,
                                        .source = source->id,
                                        .resources = *resources,
                                        .enabled = &disabled,
                                        .e2b_spec = e2b_spec_text(arena, &spec),
                                        .lifespan = &forever,
                                        .actor = call->principal.name};
    if (make_clone(x, call, &clone, ret_made, err) < 0)
        return -1;
    return wait_made(x, call, ret_made->id, ret_made, err);
}

int e2b_snapshot_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    const struct sandbox_resources same = {0};
    struct arena *arena = http_arena(x);
    struct sandbox_info source, made;
    yyjson_val *body;
    const char *name = "";
    if (api_json_body(x, &body, err) < 0 || member_text(body, "", "name", &name, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &source, err) < 0 ||
        e2b_snapshot_make(x, call, &source, name, &same, &made, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    add_snapshot(arena, doc, root, &made);
    return api_reply_json(x, 201, doc, err);
}

int e2b_snapshot_start(struct http_exchange *x, const struct api_call *call,
                       const struct sandbox_info *snapshot,
                       const struct e2b_create_request *request,
                       const struct sandbox_resources *resources, struct sandbox_info *ret_info,
                       struct error *err)
{
    struct arena *arena = http_arena(x);
    struct e2b_spec spec = request->spec;
    const struct lifespan_change lifespan = {.sets = LIFESPAN_SETS_ALL, .to = request->lifespan};
    spec.template_id = arena_printf(arena, "%s" TAG, snapshot->id);
    const struct sandbox_clone clone = {.workspace = call->workspace,
                                        .source = snapshot->id,
                                        .resources = *resources,
                                        .enabled = &enabled,
                                        .env = request->env.len > 0 ? &request->env : NULL,
                                        .e2b_spec = e2b_spec_text(arena, &spec),
                                        .network = request->network,
                                        .lifespan = &lifespan,
                                        .actor = call->principal.name};
    return make_clone(x, call, &clone, ret_info, err);
}

/* --- listing and deleting --- */

static bool is_wanted(struct arena *arena, const struct sandbox_info *info, const char *source,
                      const char *name)
{
    struct e2b_spec spec;
    e2b_spec_read(arena, info->metadata.e2b_spec, &spec);
    return info->status != SANDBOX_DELETING && spec.snapshot != NULL &&
           (source == NULL || (spec.source != NULL && strcmp(spec.source, source) == 0)) &&
           (name == NULL || strcmp(spec.snapshot, name) == 0);
}

int e2b_snapshot_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    const char *source = NULL, *name = NULL;
    uint64_t limit, after;
    if (http_query(x, "sandboxID", &source, err) < 0 || http_query(x, "name", &name, err) < 0 ||
        api_query_uint(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "nextToken", 1, INT64_MAX, 0, &after, err) < 0)
        return -1;
    const struct sandbox_filter filter = {.workspace = call->workspace,
                                          .newest_first = true,
                                          .after_ms = (int64_t)after,
                                          .limit = SIZE_MAX};
    struct sandbox_info *items;
    size_t count, total, shown = 0;
    if (sandboxes_list(call->api->sandboxes, &filter, arena, &items, &count, &total, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    int64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(arena, &items[i], source, name))
            continue;
        if (shown++ == limit) {
            http_set_header(x, "X-Next-Token", "%" PRId64, last);
            break;
        }
        add_snapshot(arena, doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
        last = items[i].created_ms;
    }
    return api_reply_json(x, 200, doc, err);
}

int e2b_snapshot_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (e2b_snapshot_find(x, call, route_param(params, "id"), &info, err) < 0 ||
        sandboxes_delete(call->api->sandboxes, call->workspace, info.id, call->principal.name,
                         http_arena(x), &info, err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}

/* --- forks --- */

static int start_fork(struct http_exchange *x, const struct api_call *call,
                      const struct sandbox_info *source, int64_t timeout_s,
                      struct sandbox_info *ret_info, struct error *err)
{
    const struct lifespan_change change = {.sets = 1u << LIFESPAN_TTL, .to = {.ttl_s = timeout_s}};
    const struct sandbox_clone clone = {.workspace = call->workspace,
                                        .source = source->id,
                                        .enabled = &enabled,
                                        .lifespan = &change,
                                        .actor = call->principal.name};
    return make_clone(x, call, &clone, ret_info, err);
}

int e2b_sandbox_fork(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_info source;
    yyjson_val *body;
    uint64_t count = 1;
    int64_t timeout_s = E2B_TIMEOUT_DEFAULT_S;
    if (api_json_body(x, &body, err) < 0 ||
        member_uint(body, "", "count", 1, FORKS_MAX, &count, err) < 0 ||
        e2b_timeout_from_json(body, &timeout_s, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &source, err) < 0)
        return -1;
    struct sandbox_info *forks = arena_alloc(arena, count * sizeof(*forks));
    struct error *errors = arena_alloc(arena, count * sizeof(*errors));
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    /* All are begun before the first is waited for. */
    for (size_t i = 0; i < count; i++)
        start_fork(x, call, &source, timeout_s, &forks[i], &errors[i]);
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *result = yyjson_mut_arr_add_obj(doc, list);
        if (errors[i].code == ERROR_NONE)
            e2b_settle(x, call, forks[i].id, &forks[i], &errors[i]);
        if (errors[i].code == ERROR_CANCELLED) {
            *err = errors[i];
            return -1;
        }
        if (errors[i].code == ERROR_NONE) {
            yyjson_mut_obj_add_val(doc, result, "sandbox",
                                   e2b_handle_json(x, doc, call, &forks[i]));
            continue;
        }
        yyjson_mut_val *why = yyjson_mut_obj_add_obj(doc, result, "error");
        yyjson_mut_obj_add_int(doc, why, "code", e2b_status(errors[i].code));
        json_add_lossy(doc, why, "message", slice_of(errors[i].message));
    }
    return api_reply_json(x, 201, doc, err);
}
