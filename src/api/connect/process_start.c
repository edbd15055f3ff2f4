/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Start and Connect: a process, or a terminal, as a stream of its events. The stream is a view: who
 * hangs up leaves the process running, and comes back with Connect. Only Start's time-out ends a
 * process, since that is what its clients give it for.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/connect/connect.h"
#include "api/connect/message.h"
#include "api/connect/process.h"
#include "api/v0/env.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "sandbox/process_output.h"

enum { SESSION_ID_LEN = 12 };

/* --- the request --- */

struct start_request {
    const char *cmd;
    struct slice argv; /* with cmd */
    struct slice env;
    const char *cwd;
    const char *tag;
    bool has_stdin;
    bool has_pty;
    uint64_t cols, rows;
};

static int add_word(struct buf *argv, yyjson_val *word, struct error *err)
{
    const char *text = yyjson_get_str(word);
    if (text == NULL || strlen(text) != yyjson_get_len(word))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "process.args: must be strings without NUL characters");
    buf_add(argv, text, strlen(text) + 1);
    return 0;
}

static int read_argv(struct http_exchange *x, yyjson_val *process, struct start_request *request,
                     struct error *err)
{
    _cleanup_buf_ struct buf argv = BUF_INIT(COMMAND_MAX);
    yyjson_val *args = NULL, *word;
    size_t i, n;
    if (message_text(process, "process", "cmd", &request->cmd, err) < 0 ||
        message_array(process, "process", "args", &args, err) < 0)
        return -1;
    if (request->cmd == NULL || request->cmd[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "process.cmd: names no program");
    buf_add(&argv, request->cmd, strlen(request->cmd) + 1);
    yyjson_arr_foreach(args, i, n, word)
    {
        if (add_word(&argv, word, err) < 0)
            return -1;
    }
    if (argv.failed)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the command is larger than %d bytes",
                         COMMAND_MAX);
    request->argv = (struct slice){arena_dup(http_arena(x), argv.data, argv.len), argv.len};
    return 0;
}

static int read_pty(yyjson_val *message, struct start_request *request, struct error *err)
{
    yyjson_val *pty = NULL, *size = NULL;
    if (message_object(message, "", "pty", &pty, err) < 0 ||
        message_object(pty, "pty", "size", &size, err) < 0 ||
        message_uint(size, "pty.size", "cols", 1, TERMINAL_SIZE_MAX, &request->cols, err) < 0 ||
        message_uint(size, "pty.size", "rows", 1, TERMINAL_SIZE_MAX, &request->rows, err) < 0)
        return -1;
    request->has_pty = pty != NULL;
    return 0;
}

static int read_start(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                      struct start_request *request, struct error *err)
{
    yyjson_val *process = NULL, *envs = NULL;
    *request = (struct start_request){.has_stdin = true};
    if (message_object(message, "", "process", &process, err) < 0)
        return -1;
    if (process == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "process: says what to start");
    if (read_argv(x, process, request, err) < 0 ||
        message_object(process, "process", "envs", &envs, err) < 0 ||
        env_from_json(http_arena(x), envs, "process.envs", &request->env, err) < 0 ||
        message_text(process, "process", "cwd", &request->cwd, err) < 0 ||
        message_text(message, "", "tag", &request->tag, err) < 0 ||
        message_bool(message, "", "stdin", &request->has_stdin, err) < 0 ||
        read_pty(message, request, err) < 0)
        return -1;
    return connect_path(box, http_arena(x), request->cwd, &request->cwd, err);
}

/* --- events --- */

static const struct {
    unsigned signal;
    const char *text;
} signal_texts[] = {
    {1, "hangup"},
    {2, "interrupt"},
    {3, "quit"},
    {4, "illegal instruction"},
    {5, "trace/breakpoint trap"},
    {6, "aborted"},
    {7, "bus error"},
    {8, "floating point exception"},
    {9, "killed"},
    {10, "user defined signal 1"},
    {11, "segmentation fault"},
    {12, "user defined signal 2"},
    {13, "broken pipe"},
    {14, "alarm clock"},
    {15, "terminated"},
};

void process_end_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *event,
                      uint64_t exit_code, uint64_t signal)
{
    const char *status = arena_printf(arena, "exit status %" PRIu64, exit_code);
    if (signal != 0)
        status = arena_printf(arena, "signal: %" PRIu64, signal);
    for (size_t i = 0; i < ARRAY_LEN(signal_texts); i++)
        if (signal_texts[i].signal == signal)
            status = arena_printf(arena, "signal: %s", signal_texts[i].text);
    yyjson_mut_val *end = yyjson_mut_obj_add_obj(doc, event, "end");
    yyjson_mut_obj_add_int(doc, end, "exitCode", signal != 0 ? -1 : (int64_t)exit_code);
    yyjson_mut_obj_add_bool(doc, end, "exited", signal == 0);
    yyjson_mut_obj_add_strcpy(doc, end, "status", status);
    if (signal != 0 || exit_code != 0)
        yyjson_mut_obj_add_strcpy(doc, end, "error", status);
}

static int send_start(struct connect_stream *stream, uint64_t pid, struct error *err)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "{\"event\":{\"start\":{\"pid\":%" PRIu64 "}}}", pid);
    return connect_stream_send_text(stream, (struct slice){text, (size_t)len}, err);
}

static int send_data(struct connect_stream *stream, const char *kind, struct slice data,
                     struct error *err)
{
    struct arena *arena = arena_new();
    struct slice base64 = json_base64_encode(arena, data);
    _cleanup_buf_ struct buf text = BUF_INIT(2 * WIRE_DATA_CHUNK);
    buf_addf(&text, "{\"event\":{\"data\":{\"%s\":\"", kind);
    buf_add(&text, base64.data, base64.len);
    buf_adds(&text, "\"}}}");
    arena_free(arena);
    if (buf_check(&text, "an event", err) < 0)
        return -1;
    return connect_stream_send_text(stream, (struct slice){text.data, text.len}, err);
}

static int send_keepalive(struct connect_stream *stream, struct error *err)
{
    return connect_stream_send_text(stream, slice_of("{\"event\":{\"keepalive\":{}}}"), err);
}

static int send_end(struct connect_stream *stream, uint64_t exit_code, uint64_t signal,
                    struct error *err)
{
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *event = yyjson_mut_obj_add_obj(doc, root, "event");
    process_end_json(arena, doc, event, exit_code, signal);
    int rc = connect_stream_send(stream, doc, err);
    arena_free(arena);
    return rc < 0 ? -1 : connect_stream_end(stream, NULL, err);
}

static int end_too_late(struct connect_stream *stream, struct error *err)
{
    struct error why;
    connect_too_late(&why);
    return connect_stream_end(stream, &why, err);
}

/* --- processes --- */

static int end_of_process(struct connect_stream *stream, const struct agent_process *process,
                          struct error *err)
{
    if (process->state == PROCESS_TIMED_OUT)
        return end_too_late(stream, err);
    return send_end(stream, process->exit_code, process->signal, err);
}

/* may_end: the stream has a time-out of its own, and does not wait for the process's. */
static int pass_output(struct connect_stream *stream, struct process_output *output, bool may_end,
                       struct error *err)
{
    for (;;) {
        struct output_event event;
        struct error why = {0};
        int64_t patience = connect_stream_patience(stream);
        int rc = 0;
        if (process_output_next(output, patience > 0 ? patience : stream->ping_ms,
                                http_arena(stream->x), &event, &why) < 0)
            return connect_stream_fail(stream, &why, err);
        if (event.kind == OUTPUT_END)
            return end_of_process(stream, &event.process, err);
        if (may_end && connect_stream_is_over(stream))
            return end_too_late(stream, err);
        if (event.kind == OUTPUT_DATA)
            rc = send_data(stream, event.stream == LOG_STDOUT ? "stdout" : "stderr", event.data,
                           err);
        else if (event.kind == OUTPUT_IDLE)
            rc = send_keepalive(stream, err);
        if (rc < 0)
            return -1;
    }
}

/* A program, a directory or a user that is not there is the request's fault. */
static int refuse_start(const struct start_request *request, struct error *err)
{
    if (err->code == ERROR_FILE_NOT_FOUND || err->code == ERROR_NOT_A_DIRECTORY) {
        err->code = ERROR_INVALID_ARGUMENT;
        error_prefix(err, "%.100s in %.100s", request->cmd, request->cwd);
    }
    return -1;
}

static int start_process(struct connect_stream *stream, const struct connect_box *box,
                         const struct start_request *request, struct error *err)
{
    struct arena *arena = http_arena(stream->x);
    int64_t left =
        stream->deadline_ms < 0 ? 0 : stream->deadline_ms - loop_now(http_loop(stream->x));
    const struct agent_exec exec = {
        .argv = request->argv,
        .cwd = request->cwd,
        .env = request->env,
        .user = box->user,
        .timeout_ms = stream->deadline_ms < 0 ? 0
                      : left > 0              ? (uint64_t)left
                                              : 1,
        .flags = EXEC_FOLLOW | (request->has_stdin ? EXEC_STDIN : 0),
        .name = request->tag,
    };
    struct agent_process process;
    struct process_output *output;
    if (process_output_exec(box->api->sandboxes, box->workspace, box->sandbox, box->actor, &exec,
                            arena, &process, &output, err) < 0)
        return refuse_start(request, err);
    api_tell_execution(stream->x, process.execution);
    int rc = connect_stream_start(stream, err);
    if (rc == 0)
        rc = send_start(stream, process.pid, err);
    if (rc == 0)
        rc = pass_output(stream, output, false, err);
    process_output_end(output);
    return rc;
}

static int connect_to_process(struct connect_stream *stream, const struct connect_box *box,
                              const struct process_target *target, struct error *err)
{
    struct agent_process process;
    struct process_output *output;
    uint64_t offset = target->process.stdout_total + target->process.stderr_total;
    if (process_output_follow(box->api->sandboxes, box->workspace, box->sandbox, target->name,
                              offset, 0, http_arena(stream->x), &process, &output, err) < 0)
        return -1;
    api_tell_execution(stream->x, process.execution);
    int rc = connect_stream_start(stream, err);
    if (rc == 0)
        rc = send_start(stream, process.pid, err);
    if (rc == 0)
        rc = pass_output(stream, output, true, err);
    process_output_end(output);
    return rc;
}

/* --- terminals --- */

static int pass_terminal(struct connect_stream *stream, struct terminal *terminal,
                         struct error *err)
{
    for (;;) {
        struct terminal_event event;
        struct error why = {0};
        int64_t patience = connect_stream_patience(stream);
        int rc = 0;
        if (terminal_next(terminal, patience > 0 ? patience : 1, &event, &why) < 0)
            return connect_stream_fail(stream, &why, err);
        if (event.kind == TERMINAL_EVENT_END)
            return send_end(stream, event.end.exit_code, event.end.signal, err);
        if (event.kind == TERMINAL_EVENT_OUTPUT)
            rc = send_data(stream, "pty", event.data, err);
        if (rc == 0 && connect_stream_is_over(stream))
            return end_too_late(stream, err);
        if (rc == 0 && event.kind == TERMINAL_EVENT_QUIET)
            rc = send_keepalive(stream, err);
        if (rc < 0)
            return -1;
    }
}

static int attach(struct connect_stream *stream, const struct connect_box *box, const char *session,
                  uint64_t offset, struct error *err)
{
    const struct agent_terminal_attach request = {.session = session, .offset = offset};
    struct agent_terminal about;
    struct terminal *terminal;
    if (terminal_attach(box->api->sandboxes, box->workspace, box->sandbox, &request,
                        http_arena(stream->x), &about, &terminal, err) < 0)
        return -1;
    int rc = connect_stream_start(stream, err);
    if (rc == 0)
        rc = send_start(stream, about.pid, err);
    if (rc == 0)
        rc = pass_terminal(stream, terminal, err);
    terminal_detach(terminal);
    return rc;
}

/* The words as a shell would have to be given them. */
static const char *command_line(struct arena *arena, struct slice argv)
{
    _cleanup_buf_ struct buf line = BUF_INIT(4 * COMMAND_MAX);
    buf_adds(&line, "exec");
    strv_each (word, argv) {
        buf_adds(&line, " '");
        for (const char *at = word; *at != '\0'; at++)
            if (*at == '\'')
                buf_adds(&line, "'\\''");
            else
                buf_addc(&line, *at);
        buf_addc(&line, '\'');
    }
    return arena_dup(arena, line.data, line.len);
}

static int start_terminal(struct connect_stream *stream, const struct connect_box *box,
                          const struct start_request *request, struct error *err)
{
    struct arena *arena = http_arena(stream->x);
    char id[SESSION_ID_LEN + 1];
    random_id(id, SESSION_ID_LEN);
    const struct agent_terminal_open open = {
        .session = request->tag != NULL ? request->tag : arena_printf(arena, "pty-%s", id),
        .command = command_line(arena, request->argv),
        .cwd = request->cwd,
        .env = request->env,
        .user = box->user,
        .cols = request->cols,
        .rows = request->rows,
        .idle_ms = TERMINAL_IDLE_MAX_MS,
    };
    struct agent_terminal about;
    if (sandbox_terminal_open(box->api->sandboxes, box->workspace, box->sandbox, box->actor, &open,
                              arena, &about, err) < 0)
        return refuse_start(request, err);
    return attach(stream, box, about.session, 0, err);
}

/* --- both --- */

int process_start_method(struct http_exchange *x, const struct connect_box *box,
                         yyjson_val *message, struct error *err)
{
    struct connect_stream stream;
    struct start_request request;
    if (connect_stream_init(&stream, x, err) < 0 || read_start(x, box, message, &request, err) < 0)
        return -1;
    return (request.has_pty ? start_terminal : start_process)(&stream, box, &request, err);
}

int process_connect_method(struct http_exchange *x, const struct connect_box *box,
                           yyjson_val *message, struct error *err)
{
    struct connect_stream stream;
    struct process_target target;
    if (connect_stream_init(&stream, x, err) < 0 ||
        process_select(box, http_arena(x), message, &target, err) < 0)
        return -1;
    if (target.is_terminal)
        return attach(&stream, box, target.terminal.session, TERMINAL_FROM_NOW, err);
    return connect_to_process(&stream, box, &target, err);
}
