/* SPDX-License-Identifier: Apache-2.0 */

/* `cella shell NAME`: a terminal in a sandbox; and the sessions that are there. */

#include "cli/verbs.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"

enum {
    COMMAND_TEXT_MAX = 1 << 20,
    UNNAMED_IDLE_S = 15 * 60, /* a session that was lost with its client, and has no name */
};

static void terminal_target(const struct invocation *inv, struct buf *target, const char *below)
{
    target_sandbox(inv->client, target, args_word(inv->args, "NAME"), "/terminal/");
    target_add(target, below, false);
}

/* --- shell --- */

static void add_option(const struct invocation *inv, yyjson_mut_doc *doc, yyjson_mut_val *root,
                       const char *option, const char *key)
{
    const char *value = args_option(inv->args, option, NULL);
    if (value != NULL)
        yyjson_mut_obj_add_str(doc, root, key, value);
}

static int session_body(const struct invocation *inv, yyjson_mut_doc **ret_doc, struct error *err)
{
    _cleanup_buf_ struct buf command = BUF_INIT(COMMAND_TEXT_MAX);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(inv->client, &root);
    struct winsize size;
    if (args_command(inv->args, &command, err) < 0)
        return -1;
    if (command.len > 0)
        yyjson_mut_obj_add_strncpy(doc, root, "command", command.data, command.len);
    add_option(inv, doc, root, "session", "sessionId");
    add_option(inv, doc, root, "shell", "shell");
    add_option(inv, doc, root, "user", "user");
    add_option(inv, doc, root, "working-dir", "workingDir");
    client_add_env(inv->client, inv->args, doc, root, "env");
    if (args_option(inv->args, "session", NULL) == NULL)
        yyjson_mut_obj_add_uint(doc, root, "idleTimeout", UNNAMED_IDLE_S);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        yyjson_mut_obj_add_uint(doc, root, "cols", size.ws_col);
        yyjson_mut_obj_add_uint(doc, root, "rows", size.ws_row);
    }
    *ret_doc = doc;
    return 0;
}

/* The session to attach to: a new one, or the one of that name. */
static int find_session(struct invocation *inv, const char **ret_session, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    const char *named = args_option(inv->args, "session", NULL);
    yyjson_mut_doc *body;
    yyjson_val *root;
    terminal_target(inv, &target, "sessions");
    if (session_body(inv, &body, err) < 0)
        return -1;
    if (client_json(inv->client, "POST", &target, body, 0, &root, err) == 0) {
        *ret_session = client_text(root, "/sessionId").data;
        return 0;
    }
    if (named == NULL || err->code != ERROR_ALREADY_EXISTS)
        return -1;
    *ret_session = named;
    return 0;
}

int verb_shell(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *name = args_word(inv->args, "NAME");
    struct attach_request request = {.sandbox = name,
                                     .keep = args_option(inv->args, "session", NULL) != NULL};
    struct attach_end end;
    if (find_session(inv, &request.session, err) < 0 ||
        attach_run(inv->client, &request, &end, err) < 0)
        return -1;
    if (end.detached)
        fprintf(stderr, "cella: detached; to come back: cella shell %s --session %s\n", name,
                request.session);
    else if (end.closed)
        fprintf(stderr, "cella: the session was closed\n");
    *ret_status = end.status;
    return 0;
}

/* --- sessions --- */

int verb_terminal_list(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"SESSION",  "PID",     "SIZE",
                                         "ATTACHED", "STARTED", "COMMAND"};
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *root, *session;
    size_t i, count;
    terminal_target(inv, &target, "sessions");
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    yyjson_arr_foreach(yyjson_obj_get(root, "sessions"), i, count, session)
    {
        struct slice command;
        if (client_exact(inv->client, session, "command", &command, err) < 0)
            return -1;
        table_cell(table, client_text(session, "/sessionId"));
        table_printf(table, "%llu",
                     (unsigned long long)yyjson_get_uint(yyjson_obj_get(session, "pid")));
        table_printf(table, "%llux%llu",
                     (unsigned long long)yyjson_get_uint(yyjson_obj_get(session, "cols")),
                     (unsigned long long)yyjson_get_uint(yyjson_obj_get(session, "rows")));
        table_printf(table, "%llu",
                     (unsigned long long)yyjson_get_uint(yyjson_obj_get(session, "attached")));
        table_cell(table, client_text(session, "/startedAt"));
        table_cell(table, command);
    }
    return output_table(table, err);
}

int verb_terminal_close(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    terminal_target(inv, &target, args_word(inv->args, "SESSION"));
    if (client_json(inv->client, "DELETE", &target, NULL, 0, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : output_message(root, err);
}
