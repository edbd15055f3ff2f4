/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella sandbox logs`: a line per entry. What a sandbox wrote is made harmless for a terminal and
 * exact for a pipe; with --output json each entry is a line of JSON as the server has it, followed
 * or not.
 */

#include "cli/verbs.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/follow.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/table.h"

static void add_query(struct buf *target, const struct args *args, bool follow)
{
    static const char *const options[] = {"tail", "level", "since", "source"};
    buf_adds(target, follow ? "?follow=true" : "?follow=false");
    target_add_options(target, args, options, ARRAY_LEN(options));
}

/* "2023-10-10T15:30:05Z  info   [proc-x1y2z3ab] text" */
static int add_entry(struct arena *arena, struct buf *out, yyjson_val *entry, struct error *err)
{
    struct slice message = client_text(entry, "/message"), process = client_text(entry, "/process");
    struct slice base64 = client_text(entry, "/messageBase64");
    if (base64.len > 0 && json_base64_decode(arena, base64, &message, err) < 0)
        return -1;
    buf_addf(out, "%s  %-5s  ", client_text(entry, "/timestamp").data,
             client_text(entry, "/level").data);
    if (yyjson_obj_get(entry, "pid") != NULL) {
        buf_addc(out, '[');
        text_add_plain(out, process);
        buf_adds(out, "] ");
    }
    if (screen_is_terminal())
        text_add_plain(out, message);
    else
        buf_add(out, message.data, message.len);
    buf_addc(out, '\n');
    return 0;
}

static int print_all(struct invocation *inv, const struct buf *target, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    yyjson_val *root, *entry;
    size_t i, count;
    if (client_json(inv->client, "GET", target, NULL, 0, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    yyjson_arr_foreach(yyjson_obj_get(root, "logs"), i, count, entry)
    {
        if (add_entry(client_arena(inv->client), &out, entry, err) < 0)
            return -1;
    }
    return output_buf(&out, err);
}

int verb_sandbox_logs(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    bool follows = args_flag(inv->args, "follow");
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/logs");
    add_query(&target, inv->args, follows);
    return follows ? follow_entries(inv, &target, add_entry, err) : print_all(inv, &target, err);
}
