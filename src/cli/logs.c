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
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/table.h"
#include "http/client.h"

enum { ENTRY_MAX = 1 << 20, READ_SIZE = 64 * 1024 };

static void add_query(struct buf *target, const struct args *args, bool follow)
{
    static const char *const options[] = {"tail", "level", "since", "source"};
    buf_adds(target, follow ? "?follow=true" : "?follow=false");
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const char *value = args_option(args, options[i], NULL);
        if (value == NULL)
            continue;
        buf_addf(target, "&%s=", options[i]);
        target_add(target, value, false);
    }
}

/* "2023-10-10T15:30:05Z  info   [proc-x1y2z3ab] text" */
static int add_entry(struct arena *arena, struct buf *out, yyjson_val *entry, bool plain,
                     struct error *err)
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
    if (plain)
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
        if (add_entry(client_arena(inv->client), &out, entry, screen_is_terminal(), err) < 0)
            return -1;
    }
    return output_buf(&out, err);
}

/* --- following --- */

/* One line of the stream of events. Its memory goes with it: this may run for days. */
static int print_line(struct invocation *inv, struct slice line, struct error *err)
{
    static const char data[] = "data: ";
    _cleanup_buf_ struct buf out = BUF_INIT(8 * ENTRY_MAX);
    if (line.len < strlen(data) || memcmp(line.data, data, strlen(data)) != 0)
        return 0; /* the end of an event, or a sign of life */
    line.data += strlen(data);
    line.len -= strlen(data);
    if (inv->json) {
        buf_add(&out, line.data, line.len);
        buf_addc(&out, '\n');
        return output_buf(&out, err);
    }
    struct arena *arena = arena_new();
    yyjson_val *entry;
    int rc = json_parse(arena, line, &entry, err);
    if (rc == 0)
        rc = add_entry(arena, &out, entry, screen_is_terminal(), err);
    arena_free(arena);
    return rc < 0 ? -1 : output_buf(&out, err);
}

static int print_lines(struct invocation *inv, struct buf *in, struct error *err)
{
    size_t used = 0;
    for (const char *end; (end = memchr(in->data + used, '\n', in->len - used)) != NULL;) {
        struct slice line = {in->data + used, (size_t)(end - in->data) - used};
        if (print_line(inv, line, err) < 0)
            return -1;
        used += line.len + 1;
    }
    buf_consume(in, used);
    return 0;
}

static int follow(struct invocation *inv, const struct buf *target, struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(8 * ENTRY_MAX);
    struct http_answer answer;
    /* Events, because they come with signs of life: a server that is gone is noticed. */
    if (client_stream(inv->client, "GET", target, NULL, "text/event-stream", &answer, err) < 0)
        return -1;
    for (;;) {
        char *to = buf_reserve(&in, READ_SIZE);
        if (to == NULL)
            return buf_check(&in, "an entry of the log", err);
        ssize_t n = client_read(inv->client, to, READ_SIZE, err);
        if (n <= 0)
            return (int)n;
        buf_commit(&in, (size_t)n);
        if (print_lines(inv, &in, err) < 0)
            return -1;
    }
}

int verb_sandbox_logs(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    bool follows = args_flag(inv->args, "follow");
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/logs");
    add_query(&target, inv->args, follows);
    return follows ? follow(inv, &target, err) : print_all(inv, &target, err);
}
