/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /v0/sandboxes. A page goes on behind the last item that the page before it showed, whatever
 * was made or deleted meanwhile. The cursor says which item that was, and for which question: it is
 * refused with another one.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/blaxel/handlers.h"
#include "api/blaxel/sandbox_json.h"
#include "api/call.h"
#include "base/cleanup.h"

enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 200, QUERY_MIN = 2 };

typedef int order(const void *a, const void *b);

static int by_name(const void *a, const void *b)
{
    const struct sandbox_info *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static int by_name_down(const void *a, const void *b)
{
    return by_name(b, a);
}

static int by_age(const void *a, const void *b)
{
    const struct sandbox_info *const *left = a, *const *right = b;
    if ((*left)->created_ms != (*right)->created_ms)
        return (*left)->created_ms < (*right)->created_ms ? -1 : 1;
    return strcmp((*left)->id, (*right)->id);
}

static int by_age_down(const void *a, const void *b)
{
    return by_age(b, a);
}

static const struct {
    const char *name;
    order *compare;
} orders[] = {
    {"createdAt:desc", by_age_down}, /* the default */
    {"createdAt:asc", by_age},
    {"name:asc", by_name},
    {"name:desc", by_name_down},
};

struct question {
    uint64_t limit;
    const char *sort, *query, *status, *external_id;
    order *compare;
    const char *fingerprint;         /* of all but limit */
    const struct sandbox_info *last; /* what the cursor names: only what an order looks at */
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211); /* FNV-1a */
    return (hash ^ 0xff) * UINT64_C(1099511628211);
}

static const char *fingerprint(struct arena *arena, const struct question *q)
{
    const char *parts[] = {q->sort, q->query, q->status, q->external_id};
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        hash = hash_text(hash, parts[i] == NULL ? "" : parts[i]);
    return arena_printf(arena, "%016" PRIx64, hash);
}

/* "<fingerprint>.<created_ms>.<id>.<name>", in base64 so that nobody takes it apart. */
static const char *write_cursor(struct arena *arena, const struct question *q,
                                const struct sandbox_info *last)
{
    const char *text = arena_printf(arena, "%s.%" PRId64 ".%s.%s", q->fingerprint, last->created_ms,
                                    last->id, last->name);
    return json_base64_encode(arena, slice_of(text)).data;
}

static int read_cursor(struct arena *arena, const char *cursor, struct question *q,
                       struct error *err)
{
    struct slice bytes = {NULL, 0};
    struct sandbox_info *last = arena_alloc(arena, sizeof(*last));
    uint64_t created;
    if (json_base64_decode(arena, slice_of(cursor), &bytes, err) == 0) {
        char *rest = arena_dup(arena, bytes.data, bytes.len);
        const char *mark = strsep(&rest, "."), *time = strsep(&rest, "."), *id = strsep(&rest, ".");
        if (rest != NULL && strcmp(mark, q->fingerprint) == 0 &&
            api_parse_uint(time, 0, INT64_MAX, &created)) {
            *last = (struct sandbox_info){.id = id, .name = rest, .created_ms = (int64_t)created};
            q->last = last;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "cursor: it is none of this listing; begin again without one");
}

static int check_sort(struct question *q, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        if (q->sort == NULL || strcmp(q->sort, orders[i].name) == 0) {
            q->compare = orders[i].compare;
            return 0;
        }
    return error_set(
        err, ERROR_INVALID_ARGUMENT,
        "sort: \"%.40s\" is none of createdAt:desc, createdAt:asc, name:asc, name:desc", q->sort);
}

/* All that Blaxel has, so that asking for one which no sandbox can have here is no mistake. */
static int check_status(const char *list, struct error *err)
{
    static const char known[] = ",DEPLOYING,DEPLOYED,FAILED,DELETING,TERMINATED,DEACTIVATED,"
                                "DEACTIVATING,UPLOADING,BUILDING,BUILT,ARCHIVING,ARCHIVED,"
                                "UNARCHIVING,";
    char word[32];
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (len > 0 &&
            (len > sizeof(word) - 3 || snprintf(word, sizeof(word), ",%.*s,", (int)len, at) < 0 ||
             strstr(known, word) == NULL))
            return error_set(err, ERROR_INVALID_ARGUMENT, "status: there is no \"%.*s\"",
                             (int)(len < 40 ? len : 40), at);
        at += len;
        at += *at == ',';
    }
    return 0;
}

static int read_question(struct http_exchange *x, struct question *q, struct error *err)
{
    const char *cursor = NULL;
    if (api_query_uint(x, "limit", 1, UINT32_MAX, LIMIT_DEFAULT, &q->limit, err) < 0 ||
        http_query(x, "sort", &q->sort, err) < 0 || http_query(x, "q", &q->query, err) < 0 ||
        http_query(x, "status", &q->status, err) < 0 ||
        http_query(x, "externalId", &q->external_id, err) < 0 ||
        http_query(x, "cursor", &cursor, err) < 0 || check_sort(q, err) < 0 ||
        check_status(q->status, err) < 0)
        return -1;
    if (q->limit > LIMIT_MAX)
        q->limit = LIMIT_MAX;
    q->fingerprint = fingerprint(http_arena(x), q);
    return cursor == NULL || cursor[0] == '\0' ? 0 : read_cursor(http_arena(x), cursor, q, err);
}

static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len)
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static bool is_found(const struct sandbox_info *info, const char *query)
{
    if (strcasestr(info->name, query) != NULL ||
        (info->metadata.display_name != NULL &&
         strcasestr(info->metadata.display_name, query) != NULL))
        return true;
    strv_each (label, info->metadata.labels)
        if (strcasestr(label, query) != NULL)
            return true;
    return false;
}

static bool is_wanted(const struct question *q, const struct sandbox_info *info)
{
    if (q->status != NULL && q->status[0] != '\0' &&
        !list_has(q->status, blaxel_status(sandbox_seen_status(info))))
        return false;
    if (q->external_id != NULL && (info->metadata.external_id == NULL ||
                                   strcmp(info->metadata.external_id, q->external_id) != 0))
        return false;
    return q->query == NULL || strlen(q->query) < QUERY_MIN || is_found(info, q->query);
}

/* Those that match, in order, from behind the cursor on. */
static size_t choose(const struct question *q, const struct sandbox_info *items, size_t count,
                     const struct sandbox_info **chosen)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sandbox_info *item = &items[i];
        if (is_wanted(q, item) && (q->last == NULL || q->compare(&q->last, &item) < 0))
            chosen[n++] = item;
    }
    qsort(chosen, n, sizeof(*chosen), q->compare);
    return n;
}

int blaxel_sandbox_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_filter all = {.workspace = call->workspace, .limit = SIZE_MAX};
    struct question q = {0};
    struct sandbox_info *items = NULL;
    size_t count = 0, total = 0;

    if (read_question(x, &q, err) < 0 ||
        sandboxes_list(call->api->sandboxes, &all, arena, &items, &count, &total, err) < 0)
        return -1;
    const struct sandbox_info **chosen = arena_alloc(arena, (count + 1) * sizeof(*chosen));
    size_t found = choose(&q, items, count, chosen);
    size_t shown = found < q.limit ? found : q.limit;

    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *data = yyjson_mut_obj_add_arr(doc, root, "data");
    const char *base_url = api_base_url(x, call->api);
    for (size_t i = 0; i < shown; i++)
        yyjson_mut_arr_append(data, blaxel_sandbox_json(arena, doc, chosen[i], base_url, false));
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "meta");
    yyjson_mut_obj_add_bool(doc, meta, "hasMore", found > shown);
    if (found > shown)
        yyjson_mut_obj_add_str(doc, meta, "nextCursor", write_cursor(arena, &q, chosen[shown - 1]));
    yyjson_mut_obj_add_uint(doc, meta, "total", total);
    return api_reply_json(x, 200, doc, err);
}
