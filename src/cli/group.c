/* SPDX-License-Identifier: Apache-2.0 */

/* `cella group …`: sandboxes that come and go together. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/file.h"
#include "cli/output.h"
#include "cli/sandbox.h"
#include "cli/table.h"
#include "cli/verbs.h"

enum { FILE_MAX = 4 << 20 };

/* METHOD /v0/groups[/name[/verb]][query] */
static int call(struct invocation *inv, const char *method, const char *name, const char *verb,
                const char *query, yyjson_mut_doc *body, yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/groups");
    if (name != NULL) {
        buf_addc(&target, '/');
        target_add(&target, name, false);
    }
    buf_addf(&target, "%s%s%s", verb != NULL ? "/" : "", verb != NULL ? verb : "",
             query != NULL ? query : "");
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

/* --- looking --- */

int verb_group_list(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"NAME", "STATUS", "SANDBOXES", "CREATED"};
    const char *query = arena_printf(client_arena(inv->client), "?limit=%llu&offset=%llu",
                                     (unsigned long long)args_number(inv->args, "limit", 20),
                                     (unsigned long long)args_number(inv->args, "offset", 0));
    yyjson_val *root, *group;
    size_t i, count;
    if (call(inv, "GET", NULL, NULL, query, NULL, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *list = yyjson_obj_get(root, "groups");
    yyjson_arr_foreach(list, i, count, group)
    {
        table_cell(table, client_text(group, "/metadata/name"));
        table_cell(table, client_text(group, "/status"));
        table_printf(table, "%llu",
                     (unsigned long long)yyjson_get_uint(yyjson_obj_get(group, "count")));
        table_cell(table, client_text(group, "/metadata/createdAt"));
    }
    if (output_table(table, err) < 0)
        return -1;
    output_more(root, list);
    return 0;
}

static int print_group(yyjson_val *root, struct error *err)
{
    static const struct {
        const char *label, *pointer;
    } lines[] = {
        {"Name", "/metadata/name"},           {"Id", "/metadata/id"},
        {"Workspace", "/metadata/workspace"}, {"Status", "/status"},
        {"Created", "/metadata/createdAt"},   {"Updated", "/metadata/updatedAt"},
    };
    static const char *const titles[] = {"SANDBOX", "ID", "STATUS"};
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        buf_addf(&out, "%-10s ", lines[i].label);
        text_add_plain(&out, client_text(root, lines[i].pointer));
        buf_addc(&out, '\n');
    }
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *sandboxes = yyjson_obj_get(root, "sandboxes"), *sandbox;
    size_t i, count;
    yyjson_arr_foreach(sandboxes, i, count, sandbox)
    {
        table_cell(table, client_text(sandbox, "/name"));
        table_cell(table, client_text(sandbox, "/id"));
        table_cell(table, client_text(sandbox, "/status"));
    }
    if (yyjson_arr_size(sandboxes) > 0) {
        buf_addc(&out, '\n');
        table_write(table, &out);
    }
    return output_buf(&out, err);
}

int verb_group_get(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "GET", args_word(inv->args, "GROUP"), NULL, NULL, NULL, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_group(root, err);
}

/* --- changing --- */

static int print_status(struct invocation *inv, yyjson_val *root, const char *status,
                        struct error *err)
{
    static const char *const titles[] = {"NAME", "STATUS", "SANDBOXES"};
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    table_cell(table, client_text(root, "/metadata/name"));
    table_cell(table, status != NULL ? slice_of(status) : client_text(root, "/status"));
    table_printf(table, "%llu", (unsigned long long)yyjson_get_uint(yyjson_obj_get(root, "count")));
    return output_table(table, err);
}

struct awaited {
    struct invocation *inv;
    const char *name, *status; /* "ended": gone */
    yyjson_val *root;          /* as it was seen last */
};

/* An empty group has nothing to wait for. */
static int look(void *ctx, bool *ret_done, const char **ret_now, struct error *err)
{
    struct awaited *awaited = ctx;
    yyjson_val *root;
    if (call(awaited->inv, "GET", awaited->name, NULL, NULL, NULL, &root, err) < 0) {
        *ret_done = err->code == ERROR_GROUP_NOT_FOUND && strcmp(awaited->status, "ended") == 0;
        return *ret_done ? 0 : -1;
    }
    struct slice now = client_text(root, "/status");
    awaited->root = root;
    *ret_done = slice_eq(now, slice_of(awaited->status)) || slice_eq(now, slice_of("empty"));
    *ret_now = now.data;
    if (!*ret_done && slice_eq(now, slice_of("failed")))
        return error_set(err, ERROR_CONFLICT, "a sandbox of the group %s has failed",
                         awaited->name);
    return 0;
}

/* Waits when that was asked for, and shows what has become of it. */
static int finish(struct invocation *inv, yyjson_val *root, const char *status, struct error *err)
{
    bool wait = false;
    const char *name = client_text(root, "/metadata/name").data;
    struct awaited awaited = {inv, name, status, root};
    if (wants_to_wait(inv->args, &wait, err) < 0)
        return -1;
    if (wait && wait_until_done(inv, look, &awaited,
                                arena_printf(client_arena(inv->client), "the group %s", name),
                                status, err) < 0)
        return -1;
    if (wait &&
        strcmp(status, "ended") == 0) /* with as many as there were, not as were left last */
        return print_status(inv, root, status, err);
    return print_status(inv, awaited.root, NULL, err);
}

static int read_all(const char *path, struct buf *text, struct error *err)
{
    _cleanup_fd_ int fd = -1;
    int64_t length;
    char piece[4096];
    if (file_open_source(path, &fd, &length, err) < 0)
        return -1;
    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0)
            return error_sys(err, "reading it");
        if (n == 0)
            break;
        buf_add(text, piece, (size_t)n);
    }
    return buf_check(text, "the file", err);
}

/* What would be left out is refused. */
static int only_a_file(const struct invocation *inv, struct error *err)
{
    static const char *const besides[] = {"from-file", "wait", "no-wait", "timeout"};
    for (size_t i = 0; i < inv->args->option_count; i++) {
        const char *name = inv->args->options[i].row->name;
        bool fine = option_find(inv->commands->globals, name, strlen(name)) != NULL;
        for (size_t b = 0; b < ARRAY_LEN(besides); b++)
            fine = fine || strcmp(name, besides[b]) == 0;
        if (!fine)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "the file says all of it: --%s cannot be given besides", name);
    }
    return 0;
}

static int body_from_file(const struct invocation *inv, const char *path, yyjson_mut_doc **ret_body,
                          struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT(FILE_MAX);
    yyjson_val *value;
    if (only_a_file(inv, err) < 0)
        return -1;
    if (read_all(path, &text, err) < 0 ||
        json_parse(client_arena(inv->client), (struct slice){text.data, text.len}, &value, err) < 0)
        return error_prefix(err, "--from-file %s", path);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(inv->client, &root);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, value));
    *ret_body = doc;
    return 0;
}

static yyjson_mut_doc *body_from_options(const struct invocation *inv)
{
    const struct args *args = inv->args;
    yyjson_mut_doc *doc = sandbox_create_body(inv);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc), *list = NULL;
    if (args_option(args, "count", NULL) != NULL)
        yyjson_mut_obj_add_uint(doc, root, "count", args_number(args, "count", 0));
    for (size_t i = 0; i < args->option_count; i++) {
        if (strcmp(args->options[i].row->name, "sandbox") != 0)
            continue;
        if (list == NULL)
            list = yyjson_mut_obj_add_arr(doc, root, "sandboxes");
        yyjson_mut_obj_add_str(doc, yyjson_mut_arr_add_obj(doc, list), "name",
                               args->options[i].value);
    }
    return doc;
}

int verb_group_create(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *path = args_option(inv->args, "from-file", NULL);
    yyjson_mut_doc *body = NULL;
    yyjson_val *root;
    bool wait;
    if (wants_to_wait(inv->args, &wait, err) < 0)
        return -1;
    if (path == NULL)
        body = body_from_options(inv);
    else if (body_from_file(inv, path, &body, err) < 0)
        return -1;
    if (call(inv, "POST", NULL, NULL, NULL, body, &root, err) < 0)
        return -1;
    return finish(inv, root, args_flag(inv->args, "disabled") ? "stopped" : "running", err);
}

static int change(struct invocation *inv, const char *verb, const char *status, struct error *err)
{
    yyjson_val *root;
    bool wait;
    if (wants_to_wait(inv->args, &wait, err) < 0 ||
        call(inv, "POST", args_word(inv->args, "GROUP"), verb, NULL, NULL, &root, err) < 0)
        return -1;
    return finish(inv, root, status, err);
}

int verb_group_start(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "start", "running", err);
}

int verb_group_stop(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "stop", "stopped", err);
}

int verb_group_end(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "end", "ended", err);
}

int verb_group_resize(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_mut_doc *doc = NULL;
    yyjson_val *root;
    if (resize_body(inv, &doc, err) < 0)
        return -1;
    auto_lower_add(inv->args, doc, yyjson_mut_doc_get_root(doc));
    if (call(inv, "POST", args_word(inv->args, "GROUP"), "resize", NULL, doc, &root, err) < 0)
        return -1;
    return print_status(inv, root, NULL, err);
}

/* --- stats --- */

static void duration_cell(struct table *table, yyjson_val *history, const char *key)
{
    yyjson_val *seconds = yyjson_obj_get(history, key);
    unsigned long long total = seconds == NULL ? 0 : (unsigned long long)yyjson_get_num(seconds);
    table_printf(table, "%llu:%02llu:%02llu", total / 3600, total / 60 % 60, total % 60);
}

static void number_cell(struct table *table, yyjson_val *object, const char *key)
{
    yyjson_val *value = yyjson_obj_get(object, key);
    if (value == NULL)
        table_text(table, "");
    else
        table_printf(table, "%llu", (unsigned long long)yyjson_get_uint(value));
}

static void amount_cell(struct table *table, yyjson_val *item, yyjson_val *limits, const char *key)
{
    char used[SIZE_TEXT_MAX], limit[SIZE_TEXT_MAX];
    yyjson_val *value = yyjson_obj_get(item, key);
    if (value == NULL) {
        table_text(table, "");
        return;
    }
    size_text(yyjson_get_uint(value), used);
    size_text(yyjson_get_uint(yyjson_obj_get(limits, key)), limit);
    table_printf(table, "%s / %s", used, limit);
}

static void stats_row(struct table *table, yyjson_val *item, const char *limits_key)
{
    yyjson_val *limits = yyjson_obj_get(item, limits_key), *cpu = yyjson_obj_get(item, "cpu");
    yyjson_val *history = yyjson_obj_get(item, "history");
    if (cpu == NULL)
        table_text(table, "");
    else
        table_printf(table, "%.2f / %.2f", yyjson_get_num(cpu),
                     yyjson_get_num(yyjson_obj_get(limits, "cpu")));
    amount_cell(table, item, limits, "memory");
    amount_cell(table, item, limits, "disk");
    number_cell(table, item, "processes");
    duration_cell(table, history, "totalSeconds");
    number_cell(table, history, "actions");
    number_cell(table, history, "commands");
}

int verb_group_stats(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"SANDBOX",   "STATUS", "CPU",     "MEMORY",  "DISK",
                                         "PROCESSES", "RAN",    "ACTIONS", "COMMANDS"};
    yyjson_val *root, *item;
    size_t i, count;
    if (call(inv, "GET", args_word(inv->args, "GROUP"), "stats", NULL, NULL, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_arr_foreach(yyjson_obj_get(root, "sandboxes"), i, count, item)
    {
        table_cell(table, client_text(item, "/name"));
        table_cell(table, client_text(item, "/status"));
        stats_row(table, item, "limits");
    }
    table_text(table, "(all)");
    table_cell(table, client_text(root, "/status"));
    stats_row(table, yyjson_obj_get(root, "total"), "allocated");
    return output_table(table, err);
}
