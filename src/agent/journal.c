/* SPDX-License-Identifier: Apache-2.0 */

/* A number that counts up with everything that is written, by whomever: a reader keeps the largest
 * one that it has seen, and asks for what is beyond. */

#include "agent/journal.h"

#include "agent/agent.h"
#include "agent/connection.h"
#include "agent/process.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

void journal_stamp(struct agent *agent, struct process *process, unsigned stream)
{
    process->change = ++agent->changes;
    output_stamp(&process->streams[stream].output, agent_unix_ms());
}

int journal_changes(struct agent *agent, const struct request *request, const void *msg,
                    struct error *err)
{
    const struct agent_changes *changes = msg;
    for (const struct process *p = agent->processes; p != NULL; p = p->next) {
        if (p->change <= changes->after || p->failed)
            continue;
        const struct agent_change change = {
            .change = p->change,
            .sequence = p->sequence,
            .pid = p->id,
            .name = p->name,
            .stdout_total = p->streams[0].output.total,
            .stderr_total = p->streams[1].output.total,
        };
        connection_answer(agent, request->connection, &agent_change_schema, request->id, &change);
    }
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}

static const struct process *find(const struct agent *agent, uint64_t sequence, struct error *err)
{
    for (const struct process *p = agent->processes; p != NULL; p = p->next)
        if (p->sequence == sequence && !p->failed)
            return p;
    error_set(err, ERROR_PROCESS_NOT_FOUND, "the process is forgotten");
    return NULL;
}

int journal_read(struct agent *agent, const struct request *request, const void *msg,
                 struct error *err)
{
    const struct agent_timed_read *read = msg;
    _cleanup_buf_ struct buf data = BUF_INIT(WIRE_DATA_CHUNK);
    _cleanup_buf_ struct buf times = BUF_INIT(OUTPUT_TIMES_MAX);
    if (read->stream != LOG_STDOUT && read->stream != LOG_STDERR)
        return error_set(err, ERROR_INVALID_ARGUMENT, "there is no stream %llu",
                         (unsigned long long)read->stream);
    const struct process *process = find(agent, read->sequence, err);
    if (process == NULL)
        return -1;
    const struct stream *stream = &process->streams[read->stream - LOG_STDOUT];
    size_t max = read->max < WIRE_DATA_CHUNK ? (size_t)read->max : WIRE_DATA_CHUNK;
    uint64_t offset = output_read(&stream->output, read->offset, max, &data);
    output_times(&stream->output, offset, offset + data.len, &times);
    if (data.failed)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu bytes of output", max);
    connection_answer(agent, request->connection, &agent_timed_schema, request->id,
                      &(struct agent_timed){.offset = offset,
                                            .total = stream->output.total,
                                            .open = stream->watch.fd >= 0,
                                            .data = {data.data, data.len},
                                            .times = {times.data, times.len}});
    return 0;
}
