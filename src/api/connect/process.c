/* SPDX-License-Identifier: Apache-2.0 */

/*
 * process.Process: what is answered at once. Processes and terminals are two things inside, and one
 * to these clients: a pid leads to either.
 */

#include "api/connect/process.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "api/call.h"
#include "api/connect/connect.h"
#include "api/connect/message.h"
#include "api/connect/service.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/link.h"

/* --- which one --- */

static int not_found(uint64_t pid, const char *tag, struct error *err)
{
    if (tag != NULL)
        return error_set(err, ERROR_PROCESS_NOT_FOUND, "process with tag %.60s not found", tag);
    return error_set(err, ERROR_PROCESS_NOT_FOUND, "process with pid %" PRIu64 " not found", pid);
}

static int find_terminal(const struct connect_box *box, struct arena *arena, uint64_t pid,
                         const char *tag, struct process_target *target, struct error *err)
{
    struct agent_terminal *items;
    size_t count;
    if (sandbox_terminal_list(box->api->sandboxes, box->workspace, box->sandbox, arena, &items,
                              &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        bool is_it = tag != NULL ? strcmp(items[i].session, tag) == 0 : items[i].pid == pid;
        if (!is_it || items[i].ended)
            continue;
        target->is_terminal = true;
        target->terminal = items[i];
        return 0;
    }
    return not_found(pid, tag, err);
}

int process_select(const struct connect_box *box, struct arena *arena, yyjson_val *message,
                   struct process_target *ret_target, struct error *err)
{
    struct process_target target = {0};
    yyjson_val *selector = NULL;
    uint64_t pid = 0;
    const char *tag = NULL;
    struct error why = {0};
    if (message_object(message, "", "process", &selector, err) < 0 ||
        message_uint(selector, "process", "pid", 0, UINT32_MAX, &pid, err) < 0 ||
        message_text(selector, "process", "tag", &tag, err) < 0)
        return -1;
    if (pid == 0 && tag == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "process: give its pid, or its tag");
    target.name = tag != NULL ? tag : arena_printf(arena, "%" PRIu64, pid);
    if (sandbox_process_get(box->api->sandboxes, box->workspace, box->sandbox, target.name, arena,
                            &target.process, &why) == 0 &&
        target.process.state == PROCESS_RUNNING) {
        target.name = arena_printf(arena, "%" PRIu64, target.process.pid);
        *ret_target = target;
        return 0;
    }
    if (why.code != ERROR_NONE && why.code != ERROR_PROCESS_NOT_FOUND &&
        why.code != ERROR_INVALID_NAME) {
        *err = why;
        return -1;
    }
    if (find_terminal(box, arena, pid, tag, &target, err) < 0)
        return -1;
    *ret_target = target;
    return 0;
}

/* --- list --- */

/*
 * A command is kept as its words with spaces between them. What these clients start is a program
 * with flags and one last argument that may hold anything: that is taken apart again, so that a
 * client finds what it gave.
 */
static void add_command(yyjson_mut_doc *doc, yyjson_mut_val *config, const char *command)
{
    size_t len = strcspn(command, " ");
    yyjson_mut_obj_add_strncpy(doc, config, "cmd", command, len);
    yyjson_mut_val *args = yyjson_mut_obj_add_arr(doc, config, "args");
    const char *at = command + len;
    while (*at == ' ' && at[1] == '-') {
        len = strcspn(at + 1, " ");
        yyjson_mut_arr_add_strncpy(doc, args, at + 1, len);
        at += 1 + len;
    }
    if (*at == ' ')
        yyjson_mut_arr_add_strcpy(doc, args, at + 1);
}

static void add_process(yyjson_mut_doc *doc, yyjson_mut_val *list, uint64_t pid, const char *tag,
                        const char *command, const char *cwd)
{
    if (!json_is_utf8(slice_of(command)) || !json_is_utf8(slice_of(cwd)))
        command = cwd = "";
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_val *config = yyjson_mut_obj_add_obj(doc, object, "config");
    add_command(doc, config, command);
    yyjson_mut_obj_add_strcpy(doc, config, "cwd", cwd);
    yyjson_mut_obj_add_uint(doc, object, "pid", pid);
    if (tag != NULL)
        yyjson_mut_obj_add_strcpy(doc, object, "tag", tag);
}

/* Names that nobody gave are not tags. */
static const char *tag_of(const char *name)
{
    return name == NULL || strncmp(name, "proc-", 5) == 0 || strncmp(name, "pty-", 4) == 0 ? NULL
                                                                                           : name;
}

static int list_method(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                       struct error *err)
{
    struct sandboxes *s = box->api->sandboxes;
    struct agent_process *processes;
    struct agent_terminal *terminals;
    size_t count, terminal_count;
    if (sandbox_process_list(s, box->workspace, box->sandbox, http_arena(x), &processes, &count,
                             err) < 0 ||
        sandbox_terminal_list(s, box->workspace, box->sandbox, http_arena(x), &terminals,
                              &terminal_count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "processes");
    for (size_t i = 0; i < count; i++)
        if (processes[i].state == PROCESS_RUNNING)
            add_process(doc, list, processes[i].pid, tag_of(processes[i].name),
                        processes[i].command, processes[i].cwd);
    for (size_t i = 0; i < terminal_count; i++)
        if (!terminals[i].ended)
            add_process(doc, list, terminals[i].pid, tag_of(terminals[i].session),
                        terminals[i].command, terminals[i].cwd);
    return connect_reply(x, doc, err);
}

/* --- input, size, signals --- */

static int wants_terminal(const struct process_target *target, struct error *err)
{
    if (target->is_terminal)
        return 0;
    return error_set(err, ERROR_INVALID_ARGUMENT, "the process %s has no terminal", target->name);
}

static int update_method(struct http_exchange *x, const struct connect_box *box,
                         yyjson_val *message, struct error *err)
{
    struct process_target target;
    yyjson_val *pty = NULL, *size = NULL;
    uint64_t cols = 0, rows = 0;
    if (message_object(message, "", "pty", &pty, err) < 0 ||
        message_object(pty, "pty", "size", &size, err) < 0 ||
        message_uint(size, "pty.size", "cols", 1, TERMINAL_SIZE_MAX, &cols, err) < 0 ||
        message_uint(size, "pty.size", "rows", 1, TERMINAL_SIZE_MAX, &rows, err) < 0 ||
        process_select(box, http_arena(x), message, &target, err) < 0)
        return -1;
    if (cols == 0 || rows == 0)
        return connect_reply(x, NULL, err); /* nothing to change */
    if (wants_terminal(&target, err) < 0 ||
        sandbox_terminal_resize(box->api->sandboxes, box->workspace, box->sandbox,
                                target.terminal.session, cols, rows, err) < 0)
        return -1;
    return connect_reply(x, NULL, err);
}

/* In pieces, each when the one before has been taken: a program that does not read holds its client
 * up, and nothing piles up on the way. */
static int write_all(const struct connect_box *box, const struct process_target *target,
                     struct slice data, struct error *err)
{
    struct sandboxes *s = box->api->sandboxes;
    size_t piece = target->is_terminal ? TERMINAL_INPUT_MAX / 2 : PROCESS_INPUT_CHUNK;
    while (data.len > 0) {
        struct slice part = {data.data, data.len < piece ? data.len : piece};
        int rc = target->is_terminal ? sandbox_terminal_input(s, box->workspace, box->sandbox,
                                                              target->terminal.session, part, err)
                                     : sandbox_process_write(s, box->workspace, box->sandbox,
                                                             target->name, part, err);
        if (rc < 0)
            return -1;
        data.data += part.len;
        data.len -= part.len;
    }
    return 0;
}

int process_input_read(struct arena *arena, yyjson_val *message, struct process_input *ret_input,
                       struct error *err)
{
    yyjson_val *object = NULL;
    struct process_input input = {0};
    if (message_object(message, "", "input", &object, err) < 0 ||
        message_bytes(arena, object, "input", "stdin", &input.to_stdin, err) < 0 ||
        message_bytes(arena, object, "input", "pty", &input.to_pty, err) < 0)
        return -1;
    if ((input.to_stdin.data == NULL) == (input.to_pty.data == NULL))
        return error_set(err, ERROR_INVALID_ARGUMENT, "input: give stdin, or pty");
    *ret_input = input;
    return 0;
}

int process_input_give(const struct connect_box *box, const struct process_target *target,
                       const struct process_input *input, struct error *err)
{
    bool to_pty = input->to_pty.data != NULL;
    if (to_pty && wants_terminal(target, err) < 0)
        return -1;
    if (!to_pty && target->is_terminal)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the process has a terminal: send pty");
    return write_all(box, target, to_pty ? input->to_pty : input->to_stdin, err);
}

static int send_input_method(struct http_exchange *x, const struct connect_box *box,
                             yyjson_val *message, struct error *err)
{
    struct process_target target;
    struct process_input input;
    if (process_input_read(http_arena(x), message, &input, err) < 0 ||
        process_select(box, http_arena(x), message, &target, err) < 0 ||
        process_input_give(box, &target, &input, err) < 0)
        return -1;
    return connect_reply(x, NULL, err);
}

static int close_stdin_method(struct http_exchange *x, const struct connect_box *box,
                              yyjson_val *message, struct error *err)
{
    struct process_target target;
    if (process_select(box, http_arena(x), message, &target, err) < 0)
        return -1;
    if (target.is_terminal)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a terminal's input has no end: send it what ends its program");
    if (sandbox_process_end_input(box->api->sandboxes, box->workspace, box->sandbox, target.name,
                                  err) < 0)
        return -1;
    return connect_reply(x, NULL, err);
}

static int read_signal(yyjson_val *message, int *ret_signal, struct error *err)
{
    static const struct message_enum signals[] = {{"SIGNAL_SIGTERM", SIGTERM},
                                                  {"SIGNAL_SIGKILL", SIGKILL}};
    if (message_enum(message, "", "signal", signals, ARRAY_LEN(signals), ret_signal, err) < 0)
        return -1;
    if (*ret_signal == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "signal: must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
    return 0;
}

/* Killing ends all that a process has started, which is what who kills it means. */
static int send_signal_method(struct http_exchange *x, const struct connect_box *box,
                              yyjson_val *message, struct error *err)
{
    struct sandboxes *s = box->api->sandboxes;
    struct process_target target;
    struct agent_process ended;
    int signal = 0, rc;
    if (read_signal(message, &signal, err) < 0 ||
        process_select(box, http_arena(x), message, &target, err) < 0)
        return -1;
    if (target.is_terminal)
        rc = sandbox_terminal_close(s, box->workspace, box->sandbox, target.terminal.session, err);
    else if (signal == SIGKILL)
        rc = sandbox_process_stop(s, box->workspace, box->sandbox, target.name, 0, http_arena(x),
                                  &ended, err);
    else
        rc = sandbox_process_signal(s, box->workspace, box->sandbox, target.name, signal, err);
    return rc < 0 ? -1 : connect_reply(x, NULL, err);
}

/* --- all of them --- */

static const struct connect_method methods[] = {
    {"Start", CONNECT_STREAM, process_start_method},
    {"Connect", CONNECT_STREAM, process_connect_method},
    {"List", CONNECT_UNARY, list_method},
    {"Update", CONNECT_UNARY, update_method},
    {"SendInput", CONNECT_UNARY, send_input_method},
    {"StreamInput", CONNECT_INPUT, process_stream_input_method},
    {"CloseStdin", CONNECT_UNARY, close_stdin_method},
    {"SendSignal", CONNECT_UNARY, send_signal_method},
};

int connect_process(struct http_exchange *x, const struct connect_box *box, const char *method,
                    struct error *err)
{
    return connect_serve(x, box, "process.Process", methods, ARRAY_LEN(methods), method, err);
}
