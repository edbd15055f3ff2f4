/* SPDX-License-Identifier: Apache-2.0 */

/* /network/log of a sandbox: what it tried to reach and what became of it, and what comes after. */

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/log_stream.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "network/policy.h"
#include "sandbox/network_log.h"

enum {
    BATCH_MAX = 16 << 20, /* EGRESS_LOG_MAX entries: at worst every byte becomes six */
};

/* ---- what is asked for ---- */

static const char *const kinds[] = {
    [EGRESS_DNS] = "dns", [EGRESS_HTTP] = "http", [EGRESS_TLS] = "tls", [EGRESS_DIRECT] = "direct"};

static int query_kind(struct http_exchange *x, unsigned *ret_kinds, struct error *err)
{
    const char *text = NULL;
    if (http_query(x, "kind", &text, err) < 0)
        return -1;
    for (size_t i = 1; text != NULL && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i], text) == 0)
            *ret_kinds = 1U << i;
    return text == NULL || *ret_kinds != 0
               ? 0
               : error_set(err, ERROR_INVALID_ARGUMENT,
                           "kind: \"%.40s\" is none of dns, http, tls and direct", text);
}

static int read_query(struct http_exchange *x, struct network_log_query *ret_query,
                      bool *ret_follow, struct error *err)
{
    struct network_log_query query = {0};
    const char *verdict = NULL;
    uint64_t limit;
    bool refused;
    if (api_query_uint(x, "after", 0, INT64_MAX, 0, &query.after, err) < 0 ||
        api_query_uint(x, "limit", 1, EGRESS_LOG_MAX, EGRESS_LOG_MAX, &limit, err) < 0 ||
        api_query_bool(x, "refused", false, &refused, err) < 0 ||
        http_query(x, "verdict", &verdict, err) < 0 ||
        api_query_since(x, &query.since_ms, err) < 0 || query_kind(x, &query.kinds, err) < 0 ||
        api_query_bool(x, "follow", false, ret_follow, err) < 0)
        return -1;
    query.limit = limit;
    if (verdict != NULL && refused)
        return error_set(err, ERROR_INVALID_ARGUMENT, "verdict and refused: name one of them");
    if (refused)
        query.verdicts = ~(UINT64_C(1) << NET_ALLOWED);
    if (verdict != NULL && network_log_verdicts(verdict, &query.verdicts, err) < 0)
        return -1;
    *ret_query = query;
    return 0;
}

/* ---- entries ---- */

static const char *kind_text(uint64_t kind)
{
    return kind < ARRAY_LEN(kinds) && kinds[kind] != NULL ? kinds[kind] : "other";
}

static const char *protocol_text(struct arena *arena, uint64_t protocol)
{
    static const struct {
        uint64_t protocol;
        const char *text;
    } known[] = {{1, "icmp"}, {6, "tcp"}, {17, "udp"}, {58, "icmpv6"}, {132, "sctp"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].protocol == protocol)
            return known[i].text;
    return arena_printf(arena, "%" PRIu64, protocol);
}

static const char *type_text(struct arena *arena, uint64_t type)
{
    static const struct {
        uint64_t type;
        const char *text;
    } known[] = {{1, "A"},    {2, "NS"},    {5, "CNAME"},  {6, "SOA"},
                 {12, "PTR"}, {15, "MX"},   {16, "TXT"},   {28, "AAAA"},
                 {33, "SRV"}, {64, "SVCB"}, {65, "HTTPS"}, {255, "ANY"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].type == type)
            return known[i].text;
    return arena_printf(arena, "TYPE%" PRIu64, type);
}

static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        json_add_lossy(doc, object, key, slice_of(text));
}

static void add_entry(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *item,
                      const struct egress_log_entry *entry)
{
    enum net_verdict verdict = entry->verdict < NET_VERDICT_COUNT ? (enum net_verdict)entry->verdict
                                                                  : NET_REFUSED_MALFORMED;
    yyjson_mut_obj_add_uint(doc, item, "sequence", entry->sequence);
    api_add_http_time(doc, item, "time", entry->first_ms);
    if (entry->last_ms != entry->first_ms)
        api_add_http_time(doc, item, "lastTime", entry->last_ms);
    yyjson_mut_obj_add_str(doc, item, "kind", kind_text(entry->kind));
    yyjson_mut_obj_add_bool(doc, item, "allowed", verdict == NET_ALLOWED);
    yyjson_mut_obj_add_str(doc, item, "verdict", net_verdict_name(verdict));
    yyjson_mut_obj_add_str(doc, item, "reason", net_verdict_text(verdict));
    add_text(doc, item, "name", entry->name);
    add_text(doc, item, "address", entry->address);
    if (entry->port != 0)
        yyjson_mut_obj_add_uint(doc, item, "port", entry->port);
    if (entry->protocol != 0)
        yyjson_mut_obj_add_str(doc, item, "protocol", protocol_text(arena, entry->protocol));
    if (entry->kind == EGRESS_DNS && entry->type != 0)
        yyjson_mut_obj_add_str(doc, item, "type", type_text(arena, entry->type));
    yyjson_mut_obj_add_uint(doc, item, "bytesIn", entry->bytes_in);
    yyjson_mut_obj_add_uint(doc, item, "bytesOut", entry->bytes_out);
    yyjson_mut_obj_add_uint(doc, item, "count", entry->count == 0 ? 1 : entry->count);
    yyjson_mut_obj_add_bool(doc, item, "open", entry->open != 0);
    add_text(doc, item, "detail", entry->detail);
}

/* ---- what comes ---- */

static int next_entries(void *reader, struct arena *arena, bool events, struct buf *out,
                        bool *ret_ended, struct error *err)
{
    struct network_log log;
    if (network_log_next(reader, LOG_STREAM_KEEPALIVE_MS, arena, &log, ret_ended, err) < 0)
        return -1;
    for (size_t i = 0; i < log.count; i++) {
        yyjson_mut_val *root;
        yyjson_mut_doc *doc = api_json_new(arena, &root);
        add_entry(arena, doc, root, &log.entries[i]);
        log_stream_add(arena, doc, events, out);
    }
    return 0;
}

static int follow(struct http_exchange *x, const struct api_call *call, const char *name,
                  const struct network_log_query *query, struct error *err)
{
    _cleanup_(cleanup_network_log) struct network_log_reader *reader = NULL;
    if (sandboxes_network_log_follow(call->api->sandboxes, call->workspace, name, query, &reader,
                                     err) < 0)
        return -1;
    return log_stream_send(x, next_entries, reader, BATCH_MAX, err);
}

int v0_network_log(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "name");
    struct arena *arena = http_arena(x);
    struct network_log_query query;
    struct network_log log;
    bool follows;
    if (read_query(x, &query, &follows, err) < 0)
        return -1;
    if (follows && strcmp(http_request(x)->method, "HEAD") != 0) /* whose answer has an end */
        return follow(x, call, name, &query, err);
    if (sandboxes_network_log(call->api->sandboxes, call->workspace, name, &query, arena, &log,
                              err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "entries");
    for (size_t i = 0; i < log.count; i++)
        add_entry(arena, doc, yyjson_mut_arr_add_obj(doc, list), &log.entries[i]);
    yyjson_mut_obj_add_uint(doc, root, "last", log.last);
    return api_reply_json(x, 200, doc, err);
}
