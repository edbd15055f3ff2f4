/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes of a sandbox, as its agent knows them. On coroutines. A sandbox that is being made or
 * started is waited for; one that is stopped is NOT_RUNNING. Whatever comes back from the agent is
 * copied into the arena and checked: the agent is not trusted.
 *
 * A process goes by its pid or its name: `process` below is either, as text. Digits are a pid. Of
 * several that had a name it is the one that runs, or the newest. Names are unique among those that
 * run; who is started without one is called proc-xxxxxxxx.
 */

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

/* For wait_ms, of a command without EXEC_WAIT: it is a part of the server's own, and its end is
 * nobody's result. */
enum { EXEC_IS_OURS = -2 };

/* From now on commands have TRACEPARENT and TRACESTATE of the request that runs them in their
 * environment, where a sandbox or request does not set them. */
void sandboxes_set_trace_commands(struct sandboxes *s, bool on);

/*
 * exec->env is laid over the sandbox's own; exec->cwd NULL is /workspace, exec->user NULL is root.
 * With EXEC_WAIT it returns at the end of the process, with its output; or after wait_ms (-1:
 * never) with WAIT_TIMEOUT, and the process goes on. Not with EXEC_FOLLOW: see process_output.h.
 *
 * By the sandbox's security options: SHELL_NOT_ALLOWED for a command line where only programs with
 * arguments are run; a time-out of its own or a shorter one; a line in its log that names the
 * actor.
 *
 * INVALID_NAME; ALREADY_EXISTS when a process of that name runs.
 */
int sandbox_exec(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                 const struct agent_exec *exec, int64_t wait_ms, struct arena *arena,
                 struct agent_process *ret_process, struct error *err);
/* Whether that sandbox would run it at all, by its rules, for who has something to do before. */
int sandbox_exec_check(struct sandboxes *s, const char *workspace, const char *name,
                       const struct agent_exec *exec, struct error *err);
/* Which limit of its own ended a process (sandbox/command_limits.h): "TIMEOUT", "MEMORY_LIMIT",
 * "PROCESS_LIMIT" or "OUTPUT_LIMIT"; NULL: none. */
const char *process_reason(const struct agent_process *process);

int sandbox_process_get(struct sandboxes *s, const char *workspace, const char *name,
                        const char *process, struct arena *arena, struct agent_process *ret_process,
                        struct error *err);
int sandbox_process_list(struct sandboxes *s, const char *workspace, const char *name,
                         struct arena *arena, struct agent_process **ret_items, size_t *ret_count,
                         struct error *err);
/* Returns when its leader has ended, with its output; WAIT_TIMEOUT after wait_ms (-1: never). */
int sandbox_process_wait(struct sandboxes *s, const char *workspace, const char *name,
                         const char *process, int64_t wait_ms, struct arena *arena,
                         struct agent_process *ret_process, struct error *err);
/* Returns when its whole tree is gone. grace_ms 0: killed at once. */
int sandbox_process_stop(struct sandboxes *s, const char *workspace, const char *name,
                         const char *process, uint64_t grace_ms, struct arena *arena,
                         struct agent_process *ret_process, struct error *err);

struct process_log {
    struct slice data; /* the newest bytes that were kept, exactly */
    uint64_t dropped;  /* bytes before them that are gone */
};
/* All that is kept of one stream (LOG_STDOUT, LOG_STDERR), or of both in the order of their coming
 * (LOG_BOTH). */
int sandbox_process_log(struct sandboxes *s, const char *workspace, const char *name,
                        const char *process, unsigned stream, struct arena *arena,
                        struct process_log *ret_log, struct error *err);
/* What is there from an offset on, at most WIRE_DATA_CHUNK bytes: ret_log->offset says where it
 * begins (later than asked for when bytes were dropped). */
int sandbox_process_log_from(struct sandboxes *s, const char *workspace, const char *name,
                             const char *process, unsigned stream, uint64_t offset,
                             struct arena *arena, struct agent_log *ret_log, struct error *err);

/* Writes some bytes (at most PROCESS_INPUT_CHUNK) to its stdin, and returns when its pipe has taken
 * them: so whoever calls this in a row is paced by the process. NO_STDIN when it was started
 * without (EXEC_STDIN), STDIN_CLOSED when it has ended. */
int sandbox_process_write(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, struct slice data, struct error *err);
/* The end of its input. */
int sandbox_process_end_input(struct sandboxes *s, const char *workspace, const char *name,
                              const char *process, struct error *err);

/* 1…PROCESS_NAME_MAX letters, digits and ._:@+-, not a dot or dash first, not digits alone:
 * INVALID_NAME. */
int process_name_check(const char *name, struct error *err);
