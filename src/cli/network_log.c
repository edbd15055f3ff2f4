/* SPDX-License-Identifier: Apache-2.0 */

/* `cella network log`: what a sandbox tried to reach, as a table; followed, as a line each, again
 * when something about it changes. */

#include "cli/verbs.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/follow.h"
#include "cli/output.h"
#include "cli/sandbox.h"
#include "cli/table.h"

static const char *const titles[] = {"TIME", "KIND", "VERDICT", "NAME", "ADDRESS",
                                     "IN",   "OUT",  "COUNT",   "WHY"};

static void add_row(struct table *table, yyjson_val *entry)
{
    char in[SIZE_TEXT_MAX], out[SIZE_TEXT_MAX];
    uint64_t port = yyjson_get_uint(yyjson_obj_get(entry, "port"));
    struct slice address = client_text(entry, "/address"), why = client_text(entry, "/detail");
    bool open = yyjson_get_bool(yyjson_obj_get(entry, "open"));
    table_cell(table, client_text(entry, "/time"));
    table_cell(table, client_text(entry, "/kind"));
    table_text(table, yyjson_get_bool(yyjson_obj_get(entry, "allowed")) ? "allowed" : "REFUSED");
    table_cell(table, client_text(entry, "/name"));
    if (port != 0)
        table_printf(table, "%.*s:%" PRIu64, (int)address.len, address.len > 0 ? address.data : "",
                     port);
    else
        table_cell(table, address);
    size_text(yyjson_get_uint(yyjson_obj_get(entry, "bytesIn")), in);
    size_text(yyjson_get_uint(yyjson_obj_get(entry, "bytesOut")), out);
    table_text(table, in);
    table_text(table, out);
    table_printf(table, "%" PRIu64, yyjson_get_uint(yyjson_obj_get(entry, "count")));
    if (why.len > 0)
        table_cell(table, why);
    else if (open)
        table_text(table, "open");
    else
        table_cell(table, client_text(entry, "/reason"));
}

/* "Sun, 15 Nov 2026 20:15:01 GMT  tls     REFUSED  evil.example 45.66.66.66:443  why" */
static int add_line(struct arena *arena, struct buf *out, yyjson_val *entry, struct error *err)
{
    static const char *const parts[] = {"/name", "/address"};
    bool allowed = yyjson_get_bool(yyjson_obj_get(entry, "allowed"));
    uint64_t port = yyjson_get_uint(yyjson_obj_get(entry, "port"));
    struct slice why = client_text(entry, "/detail");
    text_add_plain(out, client_text(entry, "/time"));
    buf_addf(out, "  %-6s  %s", client_text(entry, "/kind").data, allowed ? "allowed" : "REFUSED");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct slice part = client_text(entry, parts[i]);
        buf_adds(out, i == 0 ? "  " : part.len > 0 ? " " : "");
        text_add_plain(out, part);
    }
    if (port != 0)
        buf_addf(out, ":%" PRIu64, port);
    buf_addf(out, "  in %" PRIu64 " out %" PRIu64 "  ",
             yyjson_get_uint(yyjson_obj_get(entry, "bytesIn")),
             yyjson_get_uint(yyjson_obj_get(entry, "bytesOut")));
    if (yyjson_get_bool(yyjson_obj_get(entry, "open")))
        buf_adds(out, "open");
    else
        text_add_plain(out, why.len > 0 ? why : client_text(entry, "/reason"));
    buf_addc(out, '\n');
    return buf_check(out, "an entry", err);
}

static void add_query(struct buf *target, const struct args *args, bool follow)
{
    static const char *const options[] = {"since", "verdict", "kind"};
    buf_addf(target, "?limit=%" PRIu64 "&follow=%s", args_number(args, "limit", 100),
             follow ? "true" : "false");
    if (args_flag(args, "refused"))
        buf_adds(target, "&refused=true");
    target_add_options(target, args, options, ARRAY_LEN(options));
}

int verb_network_log(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    bool follow = args_flag(inv->args, "follow");
    yyjson_val *root;
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/network/log");
    add_query(&target, inv->args, follow);
    if (follow)
        return follow_entries(inv, &target, add_line, err);
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return output_list(inv->json, root, "entries", table_new(titles, ARRAY_LEN(titles)), add_row,
                       err);
}
