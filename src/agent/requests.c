/* SPDX-License-Identifier: Apache-2.0 */

/* What a request does. A handler either answers (now or later) or returns an error, which
 * becomes the answer. */

#include "agent/requests.h"

#include "agent/agent.h"
#include "agent/exec.h"
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
        &(struct agent_about){.version = WIRE_VERSION, .started_ms = agent->started_ms});
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
    struct process *process = process_find(agent, ref->pid, err);
    if (process == NULL)
        return -1;
    return process_add_waiter(agent, process, WAIT_END, request->connection, request->id, err);
}

static int handle_get(struct agent *agent, const struct request *request, const void *msg,
                      struct error *err)
{
    const struct agent_ref *ref = msg;
    struct process *process = process_find(agent, ref->pid, err);
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
    struct process *process = process_find(agent, stop->pid, err);
    if (process == NULL)
        return -1;
    process_stop(agent, process, stop->grace_ms);
    return process_add_waiter(agent, process, WAIT_GONE, request->connection, request->id, err);
}

static int handle_log_read(struct agent *agent, const struct request *request, const void *msg,
                           struct error *err)
{
    const struct agent_log_read *read = msg;
    if (read->stream != LOG_STDOUT && read->stream != LOG_STDERR)
        return error_set(err, ERROR_INVALID_ARGUMENT, "there is no stream %llu",
                         (unsigned long long)read->stream);
    struct process *process = process_find(agent, read->pid, err);
    if (process == NULL)
        return -1;
    const struct stream *stream = &process->streams[read->stream - 1];
    process_catch_up(agent, process);
    _cleanup_buf_ struct buf data = BUF_INIT(WIRE_DATA_CHUNK);
    size_t max = read->max < WIRE_DATA_CHUNK ? (size_t)read->max : WIRE_DATA_CHUNK;
    uint64_t offset = output_read(&stream->output, read->offset, max, &data);
    if (data.failed)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu bytes of output", max);
    connection_answer(agent, request->connection, &agent_log_schema, request->id,
                      &(struct agent_log){.offset = offset,
                                          .total = stream->output.total,
                                          .open = stream->watch.fd >= 0,
                                          .data = {data.data, data.len}});
    return 0;
}

union message {
    struct agent_exec exec;
    struct agent_ref ref;
    struct agent_stop stop;
    struct agent_log_read log_read;
    struct agent_terminal_open terminal_open;
    struct agent_terminal_attach terminal_attach;
    struct agent_terminal_input terminal_input;
    struct agent_terminal_resize terminal_resize;
    struct agent_terminal_ref terminal_ref;
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
    {&agent_log_read_schema, handle_log_read},
    {&agent_terminal_open_schema, handle_terminal_open},
    {&agent_terminal_list_schema, handle_terminal_list},
    {&agent_terminal_attach_schema, handle_terminal_attach},
    {&agent_terminal_input_schema, handle_terminal_input},
    {&agent_terminal_resize_schema, handle_terminal_resize},
    {&agent_terminal_close_schema, handle_terminal_close},
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
