/* SPDX-License-Identifier: Apache-2.0 */

/* What a request does. A handler either answers (now or later) or returns an error, which
 * becomes the answer. */

#include "agent/requests.h"

#include "agent/agent.h"
#include "agent/exec.h"
#include "agent/journal.h"
#include "agent/ports.h"
#include "agent/process.h"
#include "agent/terminal.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

static int handle_hello(struct agent *agent, const struct request *request, const void *msg,
                        struct error *err)
{
    connection_answer(
        agent, request->connection, &agent_about_schema, request->id,
        &(struct agent_about){.version = AGENT_VERSION, .started_ms = agent->started_ms});
    return 0;
}

static int handle_exec(struct agent *agent, const struct request *request, const void *msg,
                       struct error *err)
{
    const struct agent_exec *exec = msg;
    if (exec_check(exec, err) < 0)
        return -1;
    return process_exec(agent, request->connection, request->id, exec, request->payload, err);
}

static int handle_wait(struct agent *agent, const struct request *request, const void *msg,
                       struct error *err)
{
    const struct agent_ref *ref = msg;
    struct process *process =
        ref->execution != NULL ? process_find_execution(agent, ref->execution) : NULL;
    if (process == NULL)
        process = process_find(agent, ref->pid, ref->name, err);
    if (process == NULL)
        return -1;
    return process_add_waiter(agent, process, WAIT_END, request->connection, request->id, err);
}

static int handle_get(struct agent *agent, const struct request *request, const void *msg,
                      struct error *err)
{
    const struct agent_ref *ref = msg;
    struct process *process = process_find(agent, ref->pid, ref->name, err);
    if (process == NULL)
        return -1;
    process_answer(agent, process, request->connection, request->id, false);
    return 0;
}

static int handle_list(struct agent *agent, const struct request *request, const void *msg,
                       struct error *err)
{
    request->connection->listing = true;
    request->connection->listing_id = request->id;
    request->connection->listing_after = 0;
    request_go_on_listing(agent, request->connection);
    return 0;
}

static int handle_stop(struct agent *agent, const struct request *request, const void *msg,
                       struct error *err)
{
    const struct agent_stop *stop = msg;
    struct process *process = process_find(agent, stop->pid, stop->name, err);
    if (process == NULL)
        return -1;
    process_stop(agent, process, stop->grace_ms);
    return process_add_waiter(agent, process, WAIT_GONE, request->connection, request->id, err);
}

static int handle_signal(struct agent *agent, const struct request *request, const void *msg,
                         struct error *err)
{
    const struct agent_signal *asked = msg;
    struct process *process = process_find(agent, asked->pid, asked->name, err);
    if (process == NULL || process_signal(process, asked->signal, err) < 0)
        return -1;
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}

/* Appends up to max bytes of both streams in the order of their coming. Returns the offset of the
 * first one; where bytes in between are gone, it stops before them. */
static uint64_t read_both(const struct process *process, uint64_t offset, size_t max,
                          struct buf *data)
{
    uint64_t totals[2] = {process->streams[0].output.total, process->streams[1].output.total};
    struct run_cursor at;
    runs_seek(&process->runs, totals, offset, &at);
    uint64_t first = at.offset;
    unsigned number;
    size_t len;
    while ((len = runs_next(&process->runs, &at, &number)) > 0 && data->len < max) {
        const struct output *output = &process->streams[number].output;
        uint64_t start = output_start(output);
        if (at.stream[number] < start) {
            if (data->len > 0)
                break;
            uint64_t lost = start - at.stream[number];
            runs_pass(&process->runs, &at, lost < len ? (size_t)lost : len);
            first = at.offset;
            continue;
        }
        len = len < max - data->len ? len : max - data->len;
        output_read(output, at.stream[number], len, data);
        runs_pass(&process->runs, &at, len);
    }
    return first;
}

static int handle_log_read(struct agent *agent, const struct request *request, const void *msg,
                           struct error *err)
{
    const struct agent_log_read *read = msg;
    if (read->stream < LOG_STDOUT || read->stream > LOG_BOTH)
        return error_set(err, ERROR_INVALID_ARGUMENT, "there is no stream %llu",
                         (unsigned long long)read->stream);
    struct process *process = process_find(agent, read->pid, read->name, err);
    if (process == NULL)
        return -1;
    streams_catch_up(agent, process);
    _cleanup_buf_ struct buf data = BUF_INIT(WIRE_DATA_CHUNK);
    size_t max = read->max < WIRE_DATA_CHUNK ? (size_t)read->max : WIRE_DATA_CHUNK;
    struct agent_log log = {.total = streams_total(process), .open = streams_open(process)};
    if (read->stream == LOG_BOTH) {
        log.offset = read_both(process, read->offset, max, &data);
    } else {
        const struct stream *stream = &process->streams[read->stream - 1];
        log.offset = output_read(&stream->output, read->offset, max, &data);
        log.total = stream->output.total;
        log.open = stream->watch.fd >= 0;
    }
    if (data.failed)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu bytes of output", max);
    log.data = (struct slice){data.data, data.len};
    connection_answer(agent, request->connection, &agent_log_schema, request->id, &log);
    return 0;
}

static int handle_cancel(struct agent *agent, const struct request *request, const void *msg,
                         struct error *err)
{
    if (request->id != 0)
        processes_forget(agent, request->connection, request->id);
    return 0;
}

static int handle_follow(struct agent *agent, const struct request *request, const void *msg,
                         struct error *err)
{
    const struct agent_follow *asked = msg;
    struct process *process = process_find(agent, asked->pid, asked->name, err);
    if (process == NULL)
        return -1;
    streams_catch_up(agent, process);
    if (follow(agent, process, request->connection, request->id, asked->offset, asked->flags, err) <
        0)
        return -1;
    process_answer(agent, process, request->connection, request->id, false);
    follower_go_on(agent, request->connection->follower);
    return 0;
}

static int handle_stdin(struct agent *agent, const struct request *request, const void *msg,
                        struct error *err)
{
    const struct agent_stdin *input = msg;
    struct process *process = process_find(agent, input->pid, input->name, err);
    if (process == NULL)
        return -1;
    return input_write(agent, &process->input, request->connection, request->id, input->data, err);
}

static int handle_stdin_end(struct agent *agent, const struct request *request, const void *msg,
                            struct error *err)
{
    const struct agent_ref *ref = msg;
    struct process *process = process_find(agent, ref->pid, ref->name, err);
    if (process == NULL || input_end(agent, &process->input, err) < 0)
        return -1;
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}

static int handle_ports(struct agent *agent, const struct request *request, const void *msg,
                        struct error *err)
{
    const struct agent_ref *ref = msg;
    struct process *process = process_find(agent, ref->pid, ref->name, err);
    if (process == NULL)
        return -1;
    return ports_answer(agent, process, request->connection, request->id, err);
}

static int handle_limits(struct agent *agent, const struct request *request, const void *msg,
                         struct error *err)
{
    request->connection->brings_limits = true;
    request->connection->limits_id = request->id;
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}

static int handle_clean_ask(struct agent *agent, const struct request *request, const void *msg,
                            struct error *err)
{
    struct agent_clean answer = {history_watch_is_clean(&agent->history)};
    connection_answer(agent, request->connection, &agent_clean_schema, request->id, &answer);
    return 0;
}

union message {
    struct agent_exec exec;
    struct agent_ref ref;
    struct agent_stop stop;
    struct agent_signal signal;
    struct agent_log_read log_read;
    struct agent_terminal_open terminal_open;
    struct agent_terminal_attach terminal_attach;
    struct agent_terminal_input terminal_input;
    struct agent_terminal_resize terminal_resize;
    struct agent_terminal_ref terminal_ref;
    struct agent_follow follow;
    struct agent_stdin input;
    struct agent_changes changes;
    struct agent_timed_read timed_read;
};

static const struct request_row {
    const struct wire_schema *schema;
    request_handler *handle;
} rows[] = {
    {&agent_hello_schema, handle_hello},
    {&agent_exec_schema, handle_exec},
    {&agent_wait_schema, handle_wait},
    {&agent_get_schema, handle_get},
    {&agent_list_schema, handle_list},
    {&agent_stop_schema, handle_stop},
    {&agent_signal_schema, handle_signal},
    {&agent_clean_ask_schema, handle_clean_ask},
    {&agent_log_read_schema, handle_log_read},
    {&agent_cancel_schema, handle_cancel},
    {&agent_follow_schema, handle_follow},
    {&agent_stdin_schema, handle_stdin},
    {&agent_stdin_end_schema, handle_stdin_end},
    {&agent_ports_schema, handle_ports},
    {&agent_limits_schema, handle_limits},
    {&agent_changes_schema, journal_changes},
    {&agent_timed_read_schema, journal_read},
    {&agent_terminal_open_schema, handle_terminal_open},
    {&agent_terminal_list_schema, handle_terminal_list},
    {&agent_terminal_attach_schema, handle_terminal_attach},
    {&agent_terminal_input_schema, handle_terminal_input},
    {&agent_terminal_resize_schema, handle_terminal_resize},
    {&agent_terminal_close_schema, handle_terminal_close},
    {&agent_terminal_hang_up_schema, handle_terminal_hang_up},
};

static const struct request_row *find_row(uint16_t type)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].schema->type == type)
            return &rows[i];
    return NULL;
}

void request_handle(struct agent *agent, struct connection *connection,
                    const struct frame_header *header, struct slice payload)
{
    struct request request = {connection, header->id, payload};
    union message msg;
    struct error err;
    const struct request_row *row = find_row(header->type);
    if (row == NULL)
        error_set(&err, ERROR_INVALID_ARGUMENT, "no request of type %u here%s", header->type,
                  header->type >= FILE_STAT ? ": files need a connection of their own" : "");
    else if (wire_decode(row->schema, payload, &msg, &err) == 0 &&
             row->handle(agent, &request, &msg, &err) == 0)
        return;
    connection_answer_error(agent, connection, header->id, &err);
}

void request_go_on_listing(struct agent *agent, struct connection *connection)
{
    while (connection_has_room(connection)) {
        struct process *process = process_after(agent, connection->listing_after);
        if (process == NULL) {
            connection->listing = false;
            connection_answer(agent, connection, &wire_ok_schema, connection->listing_id, NULL);
            return;
        }
        connection->listing_after = process->sequence;
        process_answer(agent, process, connection, connection->listing_id, false);
    }
}
