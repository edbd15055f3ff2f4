/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /v0/audit: lines of the audit log, newest first, as they stand there. Who administers a
 * workspace sees that workspace's; who administers the server sees all of them, and can ask for
 * one's. GET /v0/audit/head: number and hash of the newest line, to be kept somewhere else.
 */

#include "api/handlers.h"

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/record.h"
#include "audit/query.h"
#include "base/cleanup.h"
#include "loop/work.h"

enum { LIMIT_DEFAULT = 100, ANSWER_MAX = 32 << 20 };

struct search {
    int dir_fd;
    struct audit_query query;
    struct buf lines;
    struct audit_matches matches;
    struct error err;
    int rc;
};

static void search(void *arg)
{
    struct search *s = arg;
    s->rc = audit_find(s->dir_fd, &s->query, &s->lines, &s->matches, &s->err);
}

static int read_texts(struct http_exchange *x, struct audit_query *query, struct error *err)
{
    const struct {
        const char *name;
        const char **place;
    } rows[] = {
        {"key", &query->key},
        {"sandbox", &query->sandbox},
        {"operation", &query->operation},
        {"event", &query->event},
        {"workspace", &query->workspace},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (http_query(x, rows[i].name, rows[i].place, err) < 0)
            return -1;
        if (*rows[i].place != NULL && **rows[i].place == '\0')
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: is empty", rows[i].name);
    }
    return 0;
}

/* Nobody sees another workspace's lines, or the server's own, by asking for them. */
static int confine(const struct api_call *call, struct audit_query *query, struct error *err)
{
    if ((call->principal.scopes & SCOPE_SERVER) != 0)
        return 0;
    if (query->workspace != NULL && strcmp(query->workspace, call->workspace) != 0)
        return error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%.63s\"",
                         query->workspace);
    query->workspace = call->workspace;
    return 0;
}

static int read_query(struct http_exchange *x, const struct api_call *call,
                      struct audit_query *query, struct error *err)
{
    uint64_t limit;
    if (read_texts(x, query, err) < 0 || api_query_since(x, &query->since_ms, err) < 0 ||
        api_query_uint(x, "limit", 1, AUDIT_QUERY_MAX, LIMIT_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "before", 0, INT64_MAX, 0, &query->before, err) < 0 ||
        api_query_uint(x, "after", 0, INT64_MAX, 0, &query->after, err) < 0)
        return -1;
    query->limit = (unsigned)limit;
    return confine(call, query, err);
}

static int reply(struct http_exchange *x, const struct search *s, struct error *err)
{
    static const char begin[] = "{\"entries\":[";
    char end[64] = "],\"before\":null}";
    if (s->matches.more)
        snprintf(end, sizeof(end), "],\"before\":%" PRIu64 "}", s->matches.oldest);
    size_t len = strlen(begin) + s->lines.len + strlen(end);
    if (http_reply_start(x, 200, "application/json", (int64_t)len, err) < 0 ||
        http_reply_write(x, begin, strlen(begin), err) < 0 ||
        http_reply_write(x, s->lines.data, s->lines.len, err) < 0 ||
        http_reply_write(x, end, strlen(end), err) < 0)
        return -1;
    return http_reply_end(x, err);
}

int v0_audit(struct http_exchange *x, const struct route_params *params, void *ctx,
             struct error *err)
{
    const struct api_call *call = ctx;
    struct audit *audit = call->api->recorder->audit;
    struct search s = {.dir_fd = audit_dir_fd(audit), .lines = BUF_INIT(ANSWER_MAX)};
    if (audit_options_of(audit)->off)
        return error_set(err, ERROR_UNAVAILABLE, "the server keeps no audit log (--audit off)");
    if (read_query(x, call, &s.query, err) < 0 ||
        memory_reserve(http_memory(x), ANSWER_MAX, err) < 0)
        return -1;
    audit_flush(audit, NULL); /* what has happened before this */
    workers_run(call->api->searchers, search, &s);
    memory_give(http_memory(x), ANSWER_MAX);
    memory_take(http_memory(x), s.lines.cap);
    int rc = s.rc < 0 ? -1 : reply(x, &s, err);
    if (s.rc < 0)
        *err = s.err;
    memory_give(http_memory(x), s.lines.cap);
    buf_release(&s.lines);
    return rc;
}

int v0_audit_head(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct audit *audit = call->api->recorder->audit;
    struct audit_head head = audit_head_of(audit);
    struct audit_counters counters = audit_counters_of(audit);
    char hash[AUDIT_HASH_TEXT + 1];
    audit_hash_text(head.hash, hash);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_bool(doc, root, "enabled", !audit_options_of(audit)->off);
    yyjson_mut_obj_add_uint(doc, root, "seq", head.seq);
    yyjson_mut_obj_add_strcpy(doc, root, "hash", hash);
    yyjson_mut_obj_add_uint(doc, root, "files", counters.files);
    yyjson_mut_obj_add_uint(doc, root, "lost", counters.lost);
    yyjson_mut_obj_add_bool(doc, root, "failing", counters.failing);
    return api_reply_json(x, 200, doc, err);
}
