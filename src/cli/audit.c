/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella audit`: what the server has written down of who did what. `list` and `tail` ask the
 * server; `verify` reads the files themselves, because a server that was tampered with can say what
 * it likes.
 */

#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/verify.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "loop/co.h"

enum { TAIL_MS = 1000, LIST_DEFAULT = 100, TAIL_DEFAULT = 10, PAGE_MAX = 1000 };

/* --- asking the server --- */

static const char *const titles[] = {"SEQ",       "TIME",    "WHO",    "WORKSPACE",
                                     "OPERATION", "SANDBOX", "RESULT", "WHAT"};

/* A command, or code, or what it was done to. */
static struct slice what_of(yyjson_val *entry)
{
    static const char *const places[] = {"/command", "/code", "/target"};
    struct slice text = {NULL, 0};
    for (size_t i = 0; i < ARRAY_LEN(places) && text.len == 0; i++)
        text = client_text(entry, places[i]);
    return text;
}

static void result_of(yyjson_val *entry, char *out, size_t size)
{
    yyjson_val *status = yyjson_obj_get(entry, "status");
    yyjson_val *exit_code = yyjson_obj_get(entry, "exitCode");
    struct slice error = client_text(entry, "/error");
    int n = status == NULL ? 0 : snprintf(out, size, "%" PRId64 " ", yyjson_get_sint(status));
    if (exit_code != NULL)
        n += snprintf(out + n, size - (size_t)n, "exit %" PRId64, yyjson_get_sint(exit_code));
    else
        n += snprintf(out + n, size - (size_t)n, "%.*s", (int)error.len,
                      error.len > 0 ? error.data : "");
    if (n == 0)
        snprintf(out, size, "%s", client_text(entry, "/phase").len > 0 ? "begun" : "");
}

static struct slice operation_of(yyjson_val *entry)
{
    struct slice operation = client_text(entry, "/operation");
    return operation.len > 0 ? operation : client_text(entry, "/event");
}

static void add_row(struct table *table, yyjson_val *entry)
{
    char result[96] = "";
    result_of(entry, result, sizeof(result));
    table_printf(table, "%" PRIu64, yyjson_get_uint(yyjson_obj_get(entry, "seq")));
    table_cell(table, client_text(entry, "/time"));
    table_cell(table, client_text(entry, "/key"));
    table_cell(table, client_text(entry, "/workspace"));
    table_cell(table, operation_of(entry));
    table_cell(table, client_text(entry, "/sandbox"));
    table_text(table, result);
    table_cell(table, what_of(entry));
}

static void add_query(struct buf *target, const struct args *args, uint64_t limit)
{
    static const char *const options[] = {"since", "key", "sandbox", "operation", "event"};
    buf_addf(target, "/v0/audit?limit=%" PRIu64, limit);
    target_add_options(target, args, options, ARRAY_LEN(options));
}

int verb_audit_list(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    add_query(&target, inv->args, args_number(inv->args, "limit", LIST_DEFAULT));
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return output_list(inv->json, root, "entries", table_new(titles, ARRAY_LEN(titles)), add_row,
                       err);
}

/* Oldest first, a line each, as they stand in the log. */
static int print_lines(yyjson_val *entries, uint64_t *last, struct error *err)
{
    for (size_t i = yyjson_arr_size(entries); i > 0; i--) {
        yyjson_val *entry = yyjson_arr_get(entries, i - 1);
        size_t len;
        _cleanup_free_ char *text = yyjson_val_write(entry, 0, &len);
        if (text == NULL)
            return error_set(err, ERROR_INTERNAL, "an entry could not be written");
        if (output_bytes(STDOUT_FILENO, text, len, err) < 0 ||
            output_bytes(STDOUT_FILENO, "\n", 1, err) < 0)
            return -1;
        *last = yyjson_get_uint(yyjson_obj_get(entry, "seq"));
    }
    return 0;
}

/* One more look, with a client of its own: an answer lives as long as its client. */
static int print_new(struct invocation *inv, uint64_t limit, uint64_t *last, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    struct client *client;
    yyjson_val *root;
    add_query(&target, inv->args, limit);
    if (*last != 0)
        buf_addf(&target, "&after=%" PRIu64, *last);
    if (client_new(client_loop(inv->client), client_settings(inv->client), &client, err) < 0)
        return -1;
    int rc = client_json(client, "GET", &target, NULL, 0, &root, err);
    if (rc == 0)
        rc = print_lines(yyjson_obj_get(root, "entries"), last, err);
    client_free(client);
    return rc;
}

int verb_audit_tail(struct invocation *inv, int *ret_status, struct error *err)
{
    uint64_t last = 0;
    int rc = print_new(inv, args_number(inv->args, "limit", TAIL_DEFAULT), &last, err);
    while (rc == 0 && args_flag(inv->args, "follow")) {
        rc = co_sleep(client_loop(inv->client), TAIL_MS, err);
        if (rc == 0)
            rc = print_new(inv, PAGE_MAX, &last, err);
    }
    return rc;
}

/* --- looking at the files --- */

struct report {
    bool json;
    struct buf *out;
    bool first;
};

static void add_finding(void *ctx, const struct audit_finding *f)
{
    struct report *r = ctx;
    if (r->json) {
        buf_addf(r->out, "%s{\"kind\":\"%s\"", r->first ? "" : ",",
                 f->is_note ? "note" : "problem");
        audit_add_text(r->out, "file", slice_of(f->file), sizeof(f->file));
        audit_add_number(r->out, "line", (int64_t)f->line);
        audit_add_number(r->out, "seq", (int64_t)f->seq);
        audit_add_text(r->out, "text", slice_of(f->text), sizeof(f->text));
        buf_addc(r->out, '}');
        r->first = false;
        return;
    }
    buf_adds(r->out, f->is_note ? "note     " : "PROBLEM  ");
    if (f->file[0] != '\0')
        buf_addf(r->out, "%s, line %" PRIu64, f->file, f->line);
    else
        buf_adds(r->out, "the log");
    if (f->seq != 0)
        buf_addf(r->out, " (seq %" PRIu64 ")", f->seq);
    buf_addf(r->out, ": %s\n", f->text);
}

static void add_summary(struct buf *out, bool json, const struct audit_summary *s)
{
    char hash[AUDIT_HASH_TEXT + 1];
    audit_hash_text(s->last.hash, hash);
    if (json)
        buf_addf(out,
                 "],\"ok\":%s,\"files\":%" PRIu64 ",\"lines\":%" PRIu64 ",\"first\":%" PRIu64
                 ",\"last\":%" PRIu64 ",\"hash\":\"%s\"}\n",
                 s->problems == 0 ? "true" : "false", s->files, s->lines, s->first, s->last.seq,
                 hash);
    else
        buf_addf(out,
                 "%s: %" PRIu64 " lines in %" PRIu64 " files, %" PRIu64 " to %" PRIu64 ", %" PRIu64
                 " problems\nhead: %" PRIu64 ":%s\n",
                 s->problems == 0 ? "ok" : "NOT OK", s->lines, s->files, s->first, s->last.seq,
                 s->problems, s->last.seq, hash);
}

/* "SEQ:HASH", as verify prints it. */
static int parse_head(const char *text, struct audit_head *ret_head, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits] != ':' ||
        strlen(text + digits + 1) != AUDIT_HASH_TEXT ||
        !audit_hash_parse(text + digits + 1, ret_head->hash))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--expect: \"%.100s\" is not SEQ:HASH, as `cella audit verify` prints it",
                         text);
    ret_head->seq = strtoull(text, NULL, 10);
    return 0;
}

/* FILE_NOT_FOUND: there is none. */
static int read_kept_head(int data_fd, struct audit_head *ret_head, struct error *err)
{
    _cleanup_fd_ int fd = openat(data_fd, LAYOUT_AUDIT_HEAD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", LAYOUT_AUDIT_HEAD);
    return audit_head_read(fd, ret_head, err);
}

/* The heads that are known, before the files are read; *ret_gone: the one that is kept is not
 * there.
 */
static int read_heads(const struct args *args, int data_fd, struct audit_head heads[2],
                      size_t *ret_count, bool *ret_gone, struct error *err)
{
    const char *expected = args_option(args, "expect", NULL);
    struct error why = {0};
    size_t count = 0;
    if (read_kept_head(data_fd, &heads[count], &why) == 0)
        count++;
    else if (why.code != ERROR_FILE_NOT_FOUND) {
        *err = why;
        return -1;
    }
    *ret_gone = count == 0;
    if (expected != NULL && parse_head(expected, &heads[count++], err) < 0)
        return -1;
    *ret_count = count;
    return 0;
}

/* It is there before the first line is. */
static void check_gone_head(bool gone, struct report *report, struct audit_summary *summary)
{
    const struct audit_finding finding = {.text = "its head, " LAYOUT_AUDIT_HEAD
                                                  ", is gone: nobody can tell whether lines were "
                                                  "removed from its end"};
    if (!gone || summary->lines == 0)
        return;
    summary->problems++;
    add_finding(report, &finding);
}

int verb_audit_verify(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    struct report report = {.json = inv->json, .out = &out, .first = true};
    struct audit_head heads[2];
    struct audit_summary summary;
    size_t count = 0;
    bool gone;
    const char *data = settings_data(inv->args);
    _cleanup_fd_ int data_fd = open(data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd = data_fd < 0 ? -1
                                      : openat(data_fd, LAYOUT_AUDIT,
                                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s/%s", data, LAYOUT_AUDIT);
    if (inv->json)
        buf_adds(&out, "{\"findings\":[");
    if (read_heads(inv->args, data_fd, heads, &count, &gone, err) < 0 ||
        audit_verify(fd, heads, count, add_finding, &report, &summary, err) < 0)
        return -1;
    check_gone_head(gone, &report, &summary);
    add_summary(&out, inv->json, &summary);
    *ret_status = summary.problems == 0 ? 0 : 1;
    return output_buf(&out, err);
}
