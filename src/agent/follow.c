/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Followers. A batch of frames is made from the log whenever the connection has sent all of the
 * last one, so that at most one batch per reader is in memory.
 */

#include "agent/follow.h"

#include <stdlib.h>

#include "agent/agent.h"
#include "agent/connection.h"
#include "agent/process.h"
#include "wire/messages.h"

enum {
    BATCH = 128 * 1024,     /* bytes of output made into frames at once */
    DIRECT = 8 * 1024,      /* from how many on it pays to send them without copying */
    HOLD_BYTES = 512 * 1024 /* a process may be so far ahead of a reader that holds it */
};

int follow(struct agent *agent, struct process *process, struct connection *connection, uint32_t id,
           uint64_t offset, uint64_t flags, struct error *err)
{
    if (connection->follower != NULL)
        return error_set(err, ERROR_CONFLICT, "this connection follows a process already");
    struct follower *f = malloc(sizeof(*f));
    if (f == NULL)
        return error_sys(err, "following process %llu", (unsigned long long)process->id);
    *f = (struct follower){
        .next = process->followers,
        .process = process,
        .connection = connection,
        .id = id,
        .hold = (flags & FOLLOW_HOLD) != 0,
        .offset = offset,
        .until = flags & FOLLOW_ONCE ? streams_total(process) : UINT64_MAX,
    };
    process->followers = f;
    connection->follower = f;
    return 0;
}

static uint64_t hold_bytes(const struct process *process)
{
    size_t half = process->streams[0].output.max / 2;
    return half < HOLD_BYTES ? half : HOLD_BYTES;
}

bool followers_hold(const struct process *process)
{
    for (const struct follower *f = process->followers; f != NULL; f = f->next)
        if (f->hold && streams_total(process) > f->offset + hold_bytes(process))
            return true;
    return false;
}

void follower_free(struct agent *agent, struct follower *follower)
{
    struct process *process = follower->process;
    struct follower **at = &process->followers;
    while (*at != follower)
        at = &(*at)->next;
    *at = follower->next;
    follower->connection->follower = NULL;
    free(follower);
    if (!followers_hold(process))
        streams_resume(agent, process);
}

static void add_gap(struct follower *f, uint64_t bytes)
{
    f->offset += bytes;
    wire_encode(&f->connection->out, &agent_gap_schema, f->id, &(struct agent_gap){bytes});
}

/* Bytes of one run: what is still there of them. Many are sent from where they lie, a few wait for
 * others. */
static size_t add_piece(struct agent *agent, struct follower *f, unsigned number, uint64_t at,
                        size_t len)
{
    const struct output *output = &f->process->streams[number].output;
    struct buf *out = &f->connection->out;
    uint64_t start = output_start(output);
    if (at < start) {
        size_t lost = start - at < len ? (size_t)(start - at) : len;
        add_gap(f, lost);
        return lost;
    }
    unsigned char header[FRAME_HEADER_SIZE];
    struct iovec iov[3] = {{header, sizeof(header)}};
    uint16_t type = number == 0 ? AGENT_STDOUT : AGENT_STDERR;
    frame_header_encode(header, &(struct frame_header){(uint32_t)len, type, f->id});
    int pieces = 1 + output_peek(output, at, len, iov + 1);
    if (len >= DIRECT && out->len == 0)
        connection_send(agent, f->connection, iov, pieces);
    else
        for (int i = 0; i < pieces; i++)
            buf_add(out, iov[i].iov_base, iov[i].iov_len);
    f->offset += len;
    return len;
}

/* Makes the next frames; false when there is nothing to tell. */
static bool fill(struct agent *agent, struct follower *f)
{
    struct process *process = f->process;
    uint64_t totals[2] = {process->streams[0].output.total, process->streams[1].output.total};
    uint64_t total = totals[0] + totals[1];
    if (f->offset >= total)
        return false;
    struct run_cursor cursor;
    runs_seek(&process->runs, totals, f->offset, &cursor);
    if (cursor.offset > f->offset)
        add_gap(f, cursor.offset - f->offset);
    unsigned number;
    size_t len;
    while (f->connection->out.len < BATCH && !f->connection->broken &&
           (len = runs_next(&process->runs, &cursor, &number)) > 0) {
        if (len > BATCH)
            len = BATCH;
        runs_pass(&process->runs, &cursor, add_piece(agent, f, number, cursor.stream[number], len));
    }
    return true;
}

/* Everything was told that there is to tell. */
static bool is_complete(struct agent *agent, struct follower *f)
{
    struct process *process = f->process;
    if (f->offset >= f->until)
        return true;
    if (!process->ended)
        return false;
    streams_drain(agent, process);
    return f->offset >= streams_total(process);
}

void follower_go_on(struct agent *agent, struct follower *f)
{
    struct process *process = f->process;
    struct connection *connection = f->connection;
    while (!process->starting && !connection->broken && connection_is_idle(connection)) {
        if (fill(agent, f)) {
            connection_flush(agent, connection);
            continue;
        }
        if (is_complete(agent, f)) {
            uint32_t id = f->id;
            follower_free(agent, f);
            process_answer(agent, process, connection, id, false);
            return;
        }
        if (f->offset >= streams_total(process))
            break;
    }
    if (followers_hold(process))
        streams_pause(agent, process);
    else
        streams_resume(agent, process);
}

void followers_go_on(struct agent *agent, struct process *process)
{
    for (struct follower *f = process->followers, *next; f != NULL; f = next) {
        next = f->next;
        follower_go_on(agent, f);
    }
}
