/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The output of a process as it comes: started with a command (streaming exec), or joined later
 * from any offset (log streams, attaching again). On coroutines.
 *
 * Each has a connection to the agent of its own and costs nothing while nothing comes. Ending it
 * leaves nothing behind there; the process goes on.
 *
 * Offsets count the bytes of both streams together. A process's log outlives the connection, and
 * cellad: who lost the stream goes on from the offset that it had reached.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

struct process_output;

/* Starts a command and reads its output from the first byte on. The process is held back when it is
 * not read, as with a pipe, so that nothing is dropped. *ret_process: as it was started. */
int process_output_exec(struct sandboxes *s, const char *workspace, const char *name,
                        const char *actor, const struct agent_exec *exec, struct arena *arena,
                        struct agent_process *ret_process, struct process_output **ret_output,
                        struct error *err);

/* Joins one that was started before, or has ended. flags: enum follow_flags. Without FOLLOW_HOLD it
 * never waits for us, and what is dropped before it was read is told as OUTPUT_DROPPED. */
int process_output_follow(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, uint64_t offset, uint64_t flags, struct arena *arena,
                          struct agent_process *ret_process, struct process_output **ret_output,
                          struct error *err);

enum output_kind {
    OUTPUT_DATA,    /* bytes of one stream */
    OUTPUT_DROPPED, /* so many bytes are missing here */
    OUTPUT_IDLE,    /* nothing came for a while */
    OUTPUT_END,     /* the process has ended, and all was read (FOLLOW_ONCE: all that was there) */
};

struct output_event {
    enum output_kind kind;
    unsigned stream;   /* LOG_STDOUT, LOG_STDERR */
    struct slice data; /* good until the next call */
    uint64_t dropped;
    uint64_t offset;              /* after this event: from where to go on */
    struct agent_process process; /* at the end; strings in the arena */
};

/* The next event; OUTPUT_IDLE after idle_ms (-1: never). Nothing comes after OUTPUT_END.
 * UNAVAILABLE when the sandbox was stopped under it. */
int process_output_next(struct process_output *output, int64_t idle_ms, struct arena *arena,
                        struct output_event *ret_event, struct error *err);

/* From where to go on: what was handed out ends here. */
uint64_t process_output_offset(const struct process_output *output);

/* NULL is fine. */
void process_output_end(struct process_output *output);

static inline void cleanup_process_output(struct process_output **output)
{
    process_output_end(*output);
}
