/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists, newest first unless they are asked for the other way round. A page ends with the time of
 * its last sandbox, which is different for each and never changes: that is the token for the next.
 */

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/spec.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000 };

struct wanted {
    struct slice metadata; /* "key=value" list: all of them */
    bool running, paused;
    const char *template_id;
    int64_t after_ms;
    uint64_t limit;
    bool oldest_first;
    int64_t started_after_ms;
};

/* A part of a pair. The clients encode it once for the pair and once for the list of pairs; others
 * encode it less often, and what cannot be decoded any more is what was meant. */
static struct slice plain_part(struct arena *arena, struct slice part)
{
    struct slice plain;
    for (int i = 0; i < 2 && http_decode(arena, part, &plain, NULL) == 0; i++)
        part = plain;
    return part;
}

/* "k=v&k2=v2" */
static int read_metadata(struct http_exchange *x, struct slice *ret_list, struct error *err)
{
    struct arena *arena = http_arena(x);
    const char *text = NULL;
    size_t used = 0;
    if (http_query(x, "metadata", &text, err) < 0 || text == NULL)
        return text == NULL ? 0 : -1;
    char *list = arena_alloc(arena, strlen(text) + 2);
    while (*text != '\0') {
        struct slice pair = {text, strcspn(text, "&")};
        const char *equals = memchr(pair.data, '=', pair.len);
        text += pair.len + (text[pair.len] == '&');
        if (pair.len == 0)
            continue;
        if (equals == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "metadata: \"%.*s\" is not key=value",
                             pair.len > 80 ? 80 : (int)pair.len, pair.data);
        size_t key_len = (size_t)(equals - pair.data);
        struct slice key = plain_part(arena, (struct slice){pair.data, key_len});
        struct slice value = plain_part(arena, (struct slice){equals + 1, pair.len - key_len - 1});
        memcpy(list + used, key.data, key.len);
        used += key.len;
        list[used++] = '=';
        memcpy(list + used, value.data, value.len);
        used += value.len;
        list[used++] = '\0';
    }
    *ret_list = (struct slice){list, used};
    return 0;
}

static int read_states(struct http_exchange *x, struct wanted *wanted, struct error *err)
{
    const char *text;
    for (size_t i = 0;; i++) {
        struct slice states;
        if (http_query_nth(x, "state", i, &text, err) < 0 ||
            api_list(http_arena(x), "state", text, &states, err) < 0)
            return -1;
        if (text == NULL)
            break;
        strv_each (state, states) {
            bool running = strcmp(state, "running") == 0;
            if (!running && strcmp(state, "paused") != 0)
                return error_set(err, ERROR_INVALID_ARGUMENT,
                                 "state: \"%.40s\" is neither running nor paused", state);
            wanted->running |= running;
            wanted->paused |= !running;
        }
    }
    if (!wanted->running && !wanted->paused)
        wanted->running = wanted->paused = true;
    return 0;
}

static int read_order(struct http_exchange *x, struct wanted *wanted, struct error *err)
{
    const char *order = NULL, *after = NULL;
    if (http_query(x, "order", &order, err) < 0 || http_query(x, "startedAfter", &after, err) < 0)
        return -1;
    wanted->oldest_first = order != NULL && strcmp(order, "asc") == 0;
    if (order != NULL && !wanted->oldest_first && strcmp(order, "desc") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "order: \"%.40s\" is neither asc nor desc",
                         order);
    if (after != NULL && time_parse_rfc3339(after, &wanted->started_after_ms, err) < 0)
        return error_prefix(err, "startedAfter");
    return 0;
}

static int read_query(struct http_exchange *x, struct wanted *wanted, struct error *err)
{
    const char *token = NULL;
    uint64_t after = 0;
    if (read_metadata(x, &wanted->metadata, err) < 0 || read_order(x, wanted, err) < 0 ||
        http_query(x, "template", &wanted->template_id, err) < 0 ||
        api_query_uint(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &wanted->limit, err) < 0 ||
        http_query(x, "nextToken", &token, err) < 0)
        return -1;
    if (token != NULL && token[0] != '\0' && !api_parse_uint(token, 1, INT64_MAX, &after))
        return error_set(err, ERROR_INVALID_ARGUMENT, "nextToken: \"%.40s\" is none of ours",
                         token);
    wanted->after_ms = (int64_t)after;
    return 0;
}

static bool has_metadata(const struct e2b_spec *spec, struct slice wanted)
{
    strv_each (pair, wanted) {
        size_t len = strcspn(pair, "=");
        yyjson_val *value = yyjson_obj_getn(spec->metadata, pair, len);
        if (!yyjson_equals_str(value, pair + len + 1))
            return false;
    }
    return true;
}

static bool fits(struct arena *arena, const struct sandbox_info *info, const struct wanted *wanted)
{
    struct e2b_spec spec;
    bool running = !e2b_is_paused(info);
    e2b_spec_read(arena, info->metadata.e2b_spec, &spec);
    return info->status != SANDBOX_DELETING && spec.snapshot == NULL &&
           (running ? wanted->running : wanted->paused) &&
           (wanted->template_id == NULL || strcmp(wanted->template_id, spec.template_id) == 0) &&
           (wanted->started_after_ms == 0 || e2b_started(info) > wanted->started_after_ms) &&
           has_metadata(&spec, wanted->metadata);
}

static int reply_list(struct http_exchange *x, const struct api_call *call,
                      const struct wanted *wanted, struct error *err)
{
    struct arena *arena = http_arena(x);
    const struct sandbox_filter filter = {.workspace = call->workspace,
                                          .newest_first = !wanted->oldest_first,
                                          .after_ms = wanted->after_ms,
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
        if (!fits(arena, &items[i], wanted))
            continue;
        if (shown == wanted->limit) {
            http_set_header(x, "X-Next-Token", "%" PRId64, last);
            break;
        }
        yyjson_mut_arr_append(list, e2b_detail_json(x, doc, call, &items[i], false));
        last = items[i].created_ms;
        shown++;
    }
    return api_reply_json(x, 200, doc, err);
}

int e2b_sandbox_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct wanted wanted = {0};
    if (read_query(x, &wanted, err) < 0 || read_states(x, &wanted, err) < 0)
        return -1;
    return reply_list(x, ctx, &wanted, err);
}

/* GET /sandboxes: the first generation's, which knows those that run, all of them. */
int e2b_sandbox_list_running(struct http_exchange *x, const struct route_params *params, void *ctx,
                             struct error *err)
{
    struct wanted wanted = {.running = true};
    if (read_query(x, &wanted, err) < 0)
        return -1;
    wanted.limit = SIZE_MAX;
    return reply_list(x, ctx, &wanted, err);
}
