/* SPDX-License-Identifier: Apache-2.0 */

/* /network of a sandbox: what it may reach, changed while it runs, and the log of what it tried. */

#include <inttypes.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/v0/network_json.h"
#include "api/v0/sandbox.h"
#include "api/v0/security_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

static int reply(struct http_exchange *x, const struct sandbox_info *info, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    network_to_json(arena, doc, root, info);
    yyjson_mut_val *network = yyjson_mut_obj_get(root, "network");
    if (info->network.len > 0)
        yyjson_mut_obj_add_str(doc, network, "name",
                               arena_printf(arena, "sandbox_network_%s", info->id));
    yyjson_mut_obj_add_str(doc, network, "revision",
                           arena_printf(arena, "rev-%" PRIu64, info->revision));
    http_set_header(x, "ETag", "\"rev-%" PRIu64 "\"", info->revision);
    yyjson_mut_doc_set_root(doc, network);
    return api_reply_json(x, 200, doc, err);
}

int v0_network_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                      http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, &info, err);
}

/* A body in which nothing stands changes nothing (PATCH), or takes everything away (PUT). */
static int change(struct http_exchange *x, const struct route_params *params,
                  const struct api_call *call, bool replace, struct error *err)
{
    struct sandbox_update set = {.workspace = call->workspace,
                                 .name = route_param(params, "name"),
                                 .security.may_loosen = security_may_loosen(call),
                                 .actor = call->principal.name};
    struct sandbox_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 || sandbox_if_match(x, &set.revision, err) < 0 ||
        network_from_json(http_arena(x), body, &set.network, &set.resources, err) < 0)
        return -1;
    set.network.replace = replace;
    if (sandboxes_update(call->api->sandboxes, &set, http_arena(x), &info, err) < 0) {
        if (err->code == ERROR_REVISION_CONFLICT)
            err->code = ERROR_REVISION_MISMATCH;
        return -1;
    }
    return reply(x, &info, err);
}

int v0_network_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    return change(x, params, ctx, true, err);
}

int v0_network_patch(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return change(x, params, ctx, false, err);
}

/* ---- the log ---- */

static const char *kind_text(uint64_t kind)
{
    static const char *const texts[] = {[EGRESS_DNS] = "dns",
                                        [EGRESS_HTTP] = "http",
                                        [EGRESS_TLS] = "tls",
                                        [EGRESS_DIRECT] = "direct"};
    return kind < ARRAY_LEN(texts) && texts[kind] != NULL ? texts[kind] : "other";
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

static void add_entry(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *list,
                      const struct egress_log_entry *entry)
{
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
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

int v0_network_log(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct network_log log;
    uint64_t after, limit;
    bool refused;
    if (api_query_uint(x, "after", 0, INT64_MAX, 0, &after, err) < 0 ||
        api_query_uint(x, "limit", 1, EGRESS_LOG_MAX, EGRESS_LOG_MAX, &limit, err) < 0 ||
        api_query_bool(x, "refused", false, &refused, err) < 0 ||
        sandboxes_network_log(call->api->sandboxes, call->workspace, route_param(params, "name"),
                              after, limit, arena, &log, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "entries");
    for (size_t i = 0; i < log.count; i++)
        if (!refused || log.entries[i].verdict != NET_ALLOWED)
            add_entry(arena, doc, list, &log.entries[i]);
    yyjson_mut_obj_add_uint(doc, root, "last",
                            log.count == 0 ? after : log.entries[log.count - 1].sequence);
    return api_reply_json(x, 200, doc, err);
}
