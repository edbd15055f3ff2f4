/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella sandbox …`: the life of sandboxes. The server answers create, clone, start, stop and
 * delete at once and goes on by itself; --wait (and `sandbox wait`) look again until it is done,
 * because a script's next line usually needs it to be.
 */

#include "cli/sandbox.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "loop/co.h"

enum { WAIT_DEFAULT_S = 60, WAIT_MOST_S = 366 * 24 * 3600, LOOK_FIRST_MS = 10, LOOK_LAST_MS = 500 };

/* --- waiting --- */

/* Why a sandbox is not what it should be: its newest event. */
static struct slice last_message(yyjson_val *root)
{
    return client_text(yyjson_arr_get_last(yyjson_obj_get(root, "events")), "/message");
}

int wait_until_done(struct invocation *inv,
                    int (*look)(void *ctx, bool *ret_done, const char **ret_now, struct error *err),
                    void *ctx, const char *name, const char *status, struct error *err)
{
    struct loop *loop = client_loop(inv->client);
    uint64_t given = args_number(inv->args, "timeout", WAIT_DEFAULT_S);
    int64_t seconds = given < WAIT_MOST_S ? (int64_t)given : WAIT_MOST_S;
    int64_t deadline = loop_now(loop) + seconds * 1000;
    for (int64_t pause = LOOK_FIRST_MS;;
         pause = pause * 2 > LOOK_LAST_MS ? LOOK_LAST_MS : pause * 2) {
        bool done = false;
        const char *now = "";
        if (look(ctx, &done, &now, err) < 0)
            return -1;
        if (done)
            return 0;
        if (loop_now(loop) >= deadline)
            return error_set(err, ERROR_TIMEOUT, "%s is %s after %lld s, not %s", name, now,
                             (long long)seconds, status);
        if (co_sleep(loop, pause, err) < 0)
            return -1;
    }
}

struct awaited {
    struct invocation *inv;
    const char *name, *status;
    yyjson_val *root;
};

static int look(void *ctx, bool *ret_done, const char **ret_now, struct error *err)
{
    struct awaited *awaited = ctx;
    yyjson_val *root;
    if (sandbox_call(awaited->inv, "GET", awaited->name, NULL, NULL, &root, err) < 0) {
        *ret_done = err->code == ERROR_SANDBOX_NOT_FOUND && strcmp(awaited->status, "deleted") == 0;
        return *ret_done ? 0 : -1;
    }
    struct slice now = client_text(root, "/status");
    *ret_done = slice_eq(now, slice_of(awaited->status));
    *ret_now = now.data;
    if (*ret_done)
        awaited->root = root;
    else if (slice_eq(now, slice_of("failed")))
        return error_set(err, ERROR_CONFLICT, "the sandbox %s has failed: %s", awaited->name,
                         last_message(root).data);
    return 0;
}

/* Looks until the sandbox has the status, or ("deleted") is gone. *ret_root: as it was seen last;
 * untouched when it is gone. */
static int wait_for(struct invocation *inv, const char *name, const char *status,
                    yyjson_val **ret_root, struct error *err)
{
    struct awaited awaited = {inv, name, status, NULL};
    const char *what = arena_printf(client_arena(inv->client), "the sandbox %s", name);
    if (wait_until_done(inv, look, &awaited, what, status, err) < 0)
        return -1;
    if (awaited.root != NULL)
        *ret_root = awaited.root;
    return 0;
}

/* status: what to show; NULL: what the answer says. */
static int print_status(struct invocation *inv, yyjson_val *root, const char *status,
                        struct error *err)
{
    static const char *const titles[] = {"NAME", "STATUS"};
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    table_cell(table, sandbox_full_name(inv, root));
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

/* --- create, clone, update --- */

int wants_to_wait(const struct args *args, bool *ret_wait, struct error *err)
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

/* An option's value as what it looks like: true, 60, 0.5; else text, which the server refuses where
 * it wants something else. */
static yyjson_mut_val *security_value(yyjson_mut_doc *doc, const char *value)
{
    yyjson_val *parsed;
    yyjson_doc *read = yyjson_read(value, strlen(value), YYJSON_READ_NOFLAG);
    parsed = yyjson_doc_get_root(read);
    yyjson_mut_val *copy = yyjson_is_bool(parsed) || yyjson_is_num(parsed)
                               ? yyjson_val_mut_copy(doc, parsed)
                               : yyjson_mut_str(doc, value);
    yyjson_doc_free(read);
    return copy;
}

/* "a.example,b.example" */
static yyjson_mut_val *security_list(yyjson_mut_doc *doc, const char *value)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    while (*value != '\0') {
        size_t len = strcspn(value, ",");
        if (len > 0)
            yyjson_mut_arr_add_strn(doc, list, value, len);
        value += len + (value[len] == ',');
    }
    return list;
}

static void add_security(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *spec)
{
    yyjson_mut_val *options = NULL;
    add_text(doc, spec, "trustLevel", args_option(args, "trust", NULL));
    for (size_t i = 0; i < args->option_count; i++) {
        const char *pair = args->options[i].value;
        if (strcmp(args->options[i].row->name, "security") != 0)
            continue;
        if (options == NULL)
            options = yyjson_mut_obj_add_obj(doc, spec, "security");
        const char *equals = strchr(pair, '=');
        yyjson_mut_val *name = yyjson_mut_strncpy(doc, pair, (size_t)(equals - pair));
        bool list = yyjson_mut_equals_str(name, "allowed_hosts");
        yyjson_mut_obj_put(options, name,
                           list ? security_list(doc, equals + 1) : security_value(doc, equals + 1));
    }
}

void resources_add(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *object)
{
    static const struct {
        const char *option, *name;
    } rows[] = {
        {"cpu", "cpu"},
        {"memory", "memory"},
        {"disk", "disk"},
        {"pids", "pids"},
        {"disk-read", "diskRead"},
        {"disk-write", "diskWrite"},
        {"disk-read-ops", "diskReadOps"},
        {"disk-write-ops", "diskWriteOps"},
        {"network-in", "networkIn"},
        {"network-out", "networkOut"},
        {"memory-bandwidth", "memoryBandwidth"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        add_text(doc, object, rows[i].name, args_option(args, rows[i].option, NULL));
}

/* "none" takes away what is there, in an update. */
static void add_life(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *spec)
{
    static const struct {
        const char *option, *key;
    } rows[] = {
        {"ttl", "ttl"},
        {"idle-timeout", "idleTimeout"},
        {"max-age", "maxAge"},
        {"on-expire", "onExpire"},
        {"wake-on-connect", "wakeOnConnect"},
    };
    yyjson_mut_val *lifecycle = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *value = args_option(args, rows[i].option, NULL);
        if (value == NULL)
            continue;
        if (lifecycle == NULL)
            lifecycle = yyjson_mut_obj_add_obj(doc, spec, "lifecycle");
        if (strcmp(value, "none") == 0)
            yyjson_mut_obj_add_null(doc, lifecycle, rows[i].key);
        else if (strcmp(rows[i].option, "wake-on-connect") == 0)
            yyjson_mut_obj_add_bool(doc, lifecycle, rows[i].key, strcmp(value, "yes") == 0);
        else
            yyjson_mut_obj_add_str(doc, lifecycle, rows[i].key, value);
    }
}

/* Patterns come besides the usual ones, which "none" in the first place takes away. */
static void add_ignore(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *history)
{
    yyjson_mut_val *ignore = NULL;
    for (size_t i = 0; i < args->option_count; i++) {
        const char *pattern = args->options[i].value;
        if (strcmp(args->options[i].row->name, "history-ignore") != 0)
            continue;
        bool instead = ignore == NULL && strcmp(pattern, "none") == 0;
        if (ignore == NULL) {
            ignore = yyjson_mut_obj_add_arr(doc, history, "ignore");
            if (!instead && strcmp(pattern, "@default") != 0)
                yyjson_mut_arr_add_str(doc, ignore, "@default");
        }
        if (!instead)
            yyjson_mut_arr_add_str(doc, ignore, pattern);
    }
}

static void add_history(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *spec)
{
    yyjson_mut_val *history = yyjson_mut_obj(doc);
    if (args_flag(args, "history") || args_flag(args, "no-history"))
        yyjson_mut_obj_add_bool(doc, history, "enabled", !args_flag(args, "no-history"));
    add_text(doc, history, "maxFileSize", args_option(args, "history-max-file-size", NULL));
    add_ignore(args, doc, history);
    if (yyjson_mut_obj_size(history) > 0)
        yyjson_mut_obj_add_val(doc, spec, "history", history);
}

/* metadata and spec with what the options of create, clone and update have in common. */
static yyjson_mut_doc *body_of(const struct invocation *inv, yyjson_mut_val **ret_metadata,
                               yyjson_mut_val **ret_spec)
{
    const struct args *args = inv->args;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(inv->client, &root);
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, root, "spec");
    yyjson_mut_val *limits = yyjson_mut_obj_add_obj(doc, spec, "resources");
    resources_add(args, doc, limits);
    add_life(args, doc, spec);
    add_text(doc, spec, "restart", args_option(args, "restart", NULL));
    auto_lower_add(args, doc, spec);
    add_history(args, doc, spec);
    client_add_pairs(args, "label", doc, metadata, "labels");
    client_add_env(inv->client, args, doc, spec, "env_vars");
    add_security(args, doc, spec);
    network_add(args, doc, spec, "network");
    *ret_metadata = metadata;
    *ret_spec = spec;
    return doc;
}

yyjson_mut_doc *sandbox_create_body(const struct invocation *inv)
{
    yyjson_mut_val *metadata, *spec;
    yyjson_mut_doc *doc = body_of(inv, &metadata, &spec);
    add_text(doc, metadata, "name", args_option(inv->args, "name", NULL));
    add_text(doc, spec, "image", args_option(inv->args, "image", NULL));
    yyjson_mut_obj_add_bool(doc, spec, "enabled", !args_flag(inv->args, "disabled"));
    add_text(doc, metadata, "group", args_option(inv->args, "group", NULL));
    return doc;
}

int verb_sandbox_create(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    bool wait = false;
    if (wants_to_wait(inv->args, &wait, err) < 0 ||
        sandbox_call(inv, "POST", NULL, NULL, sandbox_create_body(inv), &root, err) < 0)
        return -1;
    struct slice name = sandbox_full_name(inv, root);
    const char *until = args_flag(inv->args, "disabled") ? "stopped" : "running";
    if (wait && wait_for(inv, name.data, until, &root, err) < 0)
        return -1;
    return print_status(inv, root, NULL, err);
}

int verb_sandbox_clone(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    yyjson_mut_val *metadata, *spec;
    bool wait = false;
    yyjson_mut_doc *doc = body_of(inv, &metadata, &spec);
    add_text(doc, metadata, "name", args_option(inv->args, "name", NULL));
    if (wants_to_wait(inv->args, &wait, err) < 0 ||
        sandbox_call(inv, "POST", args_word(inv->args, "NAME"), "clone", doc, &root, err) < 0)
        return -1;
    bool enabled = yyjson_get_bool(yyjson_ptr_get(root, "/spec/enabled"));
    if (wait && wait_for(inv, sandbox_full_name(inv, root).data, enabled ? "running" : "stopped",
                         &root, err) < 0)
        return -1;
    return print_status(inv, root, NULL, err);
}

/* A patch: null takes a member away. */
static void add_nulls(const struct args *args, const char *option, yyjson_mut_doc *doc,
                      yyjson_mut_val *object, const char *key)
{
    for (size_t i = 0; i < args->option_count; i++) {
        if (strcmp(args->options[i].row->name, option) != 0)
            continue;
        yyjson_mut_val *pairs = yyjson_mut_obj_get(object, key);
        if (pairs == NULL)
            pairs = yyjson_mut_obj_add_obj(doc, object, key);
        yyjson_mut_obj_put(pairs, yyjson_mut_str(doc, args->options[i].value),
                           yyjson_mut_null(doc));
    }
}

int verb_sandbox_update(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    yyjson_mut_val *metadata, *spec;
    yyjson_mut_doc *doc = body_of(inv, &metadata, &spec);
    add_text(doc, metadata, "revision", args_option(inv->args, "revision", NULL));
    add_nulls(inv->args, "remove-label", doc, metadata, "labels");
    add_nulls(inv->args, "remove-env", doc, spec, "env_vars");
    if (sandbox_call(inv, "PATCH", args_word(inv->args, "NAME"), NULL, doc, &root, err) < 0)
        return -1;
    return print_status(inv, root, NULL, err);
}

/* --- start, stop, resume, delete --- */

static int change(struct invocation *inv, const char *method, const char *verb, const char *until,
                  struct error *err)
{
    yyjson_val *root;
    bool wait = false;
    const char *name = args_word(inv->args, "NAME");
    if (wants_to_wait(inv->args, &wait, err) < 0 ||
        sandbox_call(inv, method, name, verb, NULL, &root, err) < 0)
        return -1;
    if (wait && wait_for(inv, name, until, &root, err) < 0)
        return -1;
    return print_status(inv, root, wait ? until : NULL, err);
}

int verb_sandbox_start(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "PUT", "start", "running", err);
}

int verb_sandbox_resume(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "PUT", "resume", "running", err);
}

int verb_sandbox_pause(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "PUT", "pause", "paused", err);
}

int verb_sandbox_stop(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "PUT", "stop", "stopped", err);
}

int verb_sandbox_delete(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "DELETE", NULL, "deleted", err);
}

int verb_sandbox_release(struct invocation *inv, int *ret_status, struct error *err)
{
    return change(inv, "POST", "release", "deleted", err);
}
