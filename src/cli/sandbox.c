/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella sandbox …`: the life of sandboxes. The server answers start, stop and delete at once and
 * goes on by itself; --wait (and `sandbox wait`) look again until it is done, because a script's
 * next line usually needs it to be.
 */

#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"
#include "loop/co.h"

enum { WAIT_DEFAULT_S = 60, WAIT_MOST_S = 366 * 24 * 3600, LOOK_FIRST_MS = 10, LOOK_LAST_MS = 500 };

static int call(struct invocation *inv, const char *method, const char *name, const char *verb,
                yyjson_mut_doc *body, yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/sandbox");
    if (name != NULL) {
        buf_addc(&target, '/');
        target_add(&target, name, false);
    }
    if (verb != NULL)
        buf_addf(&target, "/%s", verb);
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

/* --- list --- */

static void list_row(struct table *table, yyjson_val *sandbox)
{
    static const char *const pointers[] = {"/metadata/name",
                                           "/status",
                                           "/spec/image",
                                           "/spec/resources/cpu",
                                           "/spec/resources/memory",
                                           "/spec/resources/disk",
                                           "/metadata/createdAt"};
    for (size_t i = 0; i < ARRAY_LEN(pointers); i++)
        table_cell(table, client_text(sandbox, pointers[i]));
}

static int print_list(yyjson_val *root, struct error *err)
{
    static const char *const titles[] = {"NAME",   "STATUS", "IMAGE",  "CPU",
                                         "MEMORY", "DISK",   "CREATED"};
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *list = yyjson_obj_get(root, "sandboxes"), *sandbox;
    size_t i, count;
    yyjson_arr_foreach(list, i, count, sandbox) list_row(table, sandbox);
    if (output_table(table, err) < 0)
        return -1;
    uint64_t total = yyjson_get_uint(yyjson_obj_get(root, "total"));
    if (total > yyjson_arr_size(list))
        fprintf(stderr, "%zu of %llu; see --limit and --offset\n", yyjson_arr_size(list),
                (unsigned long long)total);
    return 0;
}

int verb_sandbox_list(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const filters[] = {"status", "limit", "offset"};
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/sandbox");
    for (size_t i = 0, used = 0; i < ARRAY_LEN(filters); i++) {
        const char *value = args_option(inv->args, filters[i], NULL);
        if (value == NULL)
            continue;
        buf_addf(&target, "%c%s=", used++ == 0 ? '?' : '&', filters[i]);
        target_add(&target, value, false);
    }
    yyjson_val *root;
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_list(root, err);
}

/* --- get --- */

static void add_line(struct buf *out, const char *label, struct slice value)
{
    if (value.len == 0)
        return;
    buf_addf(out, "%-10s ", label);
    text_add_plain(out, value);
    buf_addc(out, '\n');
}

static void add_env(struct buf *out, yyjson_val *env)
{
    yyjson_val *key, *value;
    size_t i, count;
    yyjson_obj_foreach(env, i, count, key, value)
    {
        buf_addf(out, "%-10s ", i == 0 ? "Env" : "");
        text_add_plain(out, (struct slice){yyjson_get_str(key), yyjson_get_len(key)});
        buf_addc(out, '=');
        text_add_plain(out, client_text(value, ""));
        buf_addc(out, '\n');
    }
}

static void add_events(struct buf *out, yyjson_val *events)
{
    static const char *const titles[] = {"TIME", "EVENT", "STATUS", "MESSAGE"};
    static const char *const pointers[] = {"/time", "/type", "/status", "/message"};
    if (yyjson_arr_size(events) == 0)
        return;
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *event;
    size_t i, count;
    yyjson_arr_foreach(events, i, count, event)
    {
        for (size_t p = 0; p < ARRAY_LEN(pointers); p++)
            table_cell(table, client_text(event, pointers[p]));
    }
    buf_addc(out, '\n');
    table_write(table, out);
}

static int print_sandbox(yyjson_val *root, struct error *err)
{
    static const struct {
        const char *label, *pointer;
    } lines[] = {
        {"Name", "/metadata/name"},
        {"Id", "/metadata/id"},
        {"Workspace", "/metadata/workspace"},
        {"Status", "/status"},
        {"Image", "/spec/image"},
        {"CPU", "/spec/resources/cpu"},
        {"Memory", "/spec/resources/memory"},
        {"Disk", "/spec/resources/disk"},
        {"Created", "/metadata/createdAt"},
        {"Updated", "/metadata/updatedAt"},
        {"API", "/access/api_endpoint"},
    };
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        add_line(&out, lines[i].label, client_text(root, lines[i].pointer));
    add_env(&out, yyjson_ptr_get(root, "/spec/env_vars"));
    add_events(&out, yyjson_obj_get(root, "events"));
    return output_buf(&out, err);
}

int verb_sandbox_get(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "GET", args_word(inv->args, "NAME"), NULL, NULL, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_sandbox(root, err);
}

/* --- waiting --- */

/* Why a sandbox is not what it should be: its newest event. */
static struct slice last_message(yyjson_val *root)
{
    return client_text(yyjson_arr_get_last(yyjson_obj_get(root, "events")), "/message");
}

/* Looks until the sandbox has the status, or ("deleted") is gone. *ret_root: as it was seen last;
 * untouched when it is gone. */
static int wait_for(struct invocation *inv, const char *name, const char *status,
                    yyjson_val **ret_root, struct error *err)
{
    struct loop *loop = client_loop(inv->client);
    uint64_t given = args_number(inv->args, "timeout", WAIT_DEFAULT_S);
    int64_t seconds = given < WAIT_MOST_S ? (int64_t)given : WAIT_MOST_S;
    int64_t deadline = loop_now(loop) + seconds * 1000;
    bool until_gone = strcmp(status, "deleted") == 0;
    for (int64_t pause = LOOK_FIRST_MS;;
         pause = pause * 2 > LOOK_LAST_MS ? LOOK_LAST_MS : pause * 2) {
        yyjson_val *root;
        struct error why;
        if (call(inv, "GET", name, NULL, NULL, &root, &why) < 0) {
            if (until_gone && why.code == ERROR_SANDBOX_NOT_FOUND)
                return 0;
            *err = why;
            return -1;
        }
        struct slice now = client_text(root, "/status");
        if (slice_eq(now, slice_of(status))) {
            *ret_root = root;
            return 0;
        }
        if (slice_eq(now, slice_of("failed")))
            return error_set(err, ERROR_CONFLICT, "the sandbox %s has failed: %s", name,
                             last_message(root).data);
        if (loop_now(loop) >= deadline)
            return error_set(err, ERROR_TIMEOUT, "the sandbox %s is %s after %lld s, not %s", name,
                             now.data, (long long)seconds, status);
        if (co_sleep(loop, pause, err) < 0)
            return -1;
    }
}

/* status: what to show; NULL: what the answer says. */
static int print_status(struct invocation *inv, yyjson_val *root, const char *status,
                        struct error *err)
{
    static const char *const titles[] = {"NAME", "STATUS"};
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    table_cell(table, client_text(root, "/metadata/name"));
    table_cell(table, status != NULL ? slice_of(status) : client_text(root, "/status"));
    return output_table(table, err);
}

int verb_sandbox_wait(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root = NULL;
    const char *name = args_word(inv->args, "NAME");
    const char *status = args_option(inv->args, "status", "running");
    if (wait_for(inv, name, status, &root, err) < 0)
        return -1;
    return root == NULL ? 0 : print_status(inv, root, NULL, err);
}

/* --- create, start, stop, delete --- */

static int wants_to_wait(const struct args *args, bool *ret_wait, struct error *err)
{
    if (args_flag(args, "wait") && args_flag(args, "no-wait"))
        return error_set(err, ERROR_INVALID_ARGUMENT, "--wait and --no-wait: which one?");
    *ret_wait = args_flag(args, "wait");
    return 0;
}

static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                     const char *value)
{
    if (value != NULL)
        yyjson_mut_obj_add_str(doc, object, key, value);
}

static yyjson_mut_doc *create_body(const struct invocation *inv)
{
    static const char *const resources[] = {"cpu", "memory", "disk"};
    const struct args *args = inv->args;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(inv->client, &root);
    add_text(doc, yyjson_mut_obj_add_obj(doc, root, "metadata"), "name",
             args_option(args, "name", NULL));
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, root, "spec");
    add_text(doc, spec, "image", args_option(args, "image", NULL));
    yyjson_mut_obj_add_bool(doc, spec, "enabled", !args_flag(args, "disabled"));
    yyjson_mut_val *limits = yyjson_mut_obj_add_obj(doc, spec, "resources");
    for (size_t i = 0; i < ARRAY_LEN(resources); i++)
        add_text(doc, limits, resources[i], args_option(args, resources[i], NULL));
    client_add_env(inv->client, args, doc, spec, "env_vars");
    return doc;
}

int verb_sandbox_create(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    bool wait = false;
    if (wants_to_wait(inv->args, &wait, err) < 0 ||
        call(inv, "POST", NULL, NULL, create_body(inv), &root, err) < 0)
        return -1;
    struct slice name = client_text(root, "/metadata/name");
    const char *until = args_flag(inv->args, "disabled") ? "stopped" : "running";
    if (wait && wait_for(inv, name.data, until, &root, err) < 0)
        return -1;
    return print_status(inv, root, NULL, err);
}

static int change(struct invocation *inv, const char *method, const char *verb, const char *until,
                  struct error *err)
{
    yyjson_val *root;
    bool wait = false;
    const char *name = args_word(inv->args, "NAME");
    if (wants_to_wait(inv->args, &wait, err) < 0 ||
        call(inv, method, name, verb, NULL, &root, err) < 0)
        return -1;
    if (wait && wait_for(inv, name, until, &root, err) < 0)
        return -1;
    return print_status(inv, root, wait ? until : NULL, err);
}

int verb_sandbox_start(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "PUT", "start", "running", err);
}

int verb_sandbox_stop(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "PUT", "stop", "stopped", err);
}

int verb_sandbox_delete(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "DELETE", NULL, "deleted", err);
}
