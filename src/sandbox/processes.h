/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes of a sandbox, as its agent knows them. On coroutines. A sandbox that is being made or
 * started is waited for; one that is stopped is NOT_RUNNING. Whatever comes back from the agent is
 * copied into the arena and checked: the agent is not trusted.
 */

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

/* exec->env is laid over the sandbox's own; exec->cwd NULL is /workspace, exec->user NULL is root.
 * With EXEC_WAIT it returns at the end of the process, with its output. */
int sandbox_exec(struct sandboxes *s, const char *workspace, const char *name,
                 const struct agent_exec *exec, struct arena *arena,
                 struct agent_process *ret_process, struct error *err);
int sandbox_process_get(struct sandboxes *s, const char *workspace, const char *name, uint64_t pid,
                        struct arena *arena, struct agent_process *ret_process, struct error *err);
int sandbox_process_list(struct sandboxes *s, const char *workspace, const char *name,
                         struct arena *arena, struct agent_process **ret_items, size_t *ret_count,
                         struct error *err);
/* Returns when its whole tree is gone. grace_ms 0: killed at once. */
int sandbox_process_stop(struct sandboxes *s, const char *workspace, const char *name, uint64_t pid,
                         uint64_t grace_ms, struct arena *arena, struct agent_process *ret_process,
                         struct error *err);

struct process_log {
    struct slice data; /* the newest bytes that were kept, exactly */
    uint64_t dropped;  /* bytes before them that are gone */
};
/* All that is kept of one stream (LOG_STDOUT, LOG_STDERR). */
int sandbox_process_log(struct sandboxes *s, const char *workspace, const char *name, uint64_t pid,
                        unsigned stream, struct arena *arena, struct process_log *ret_log,
                        struct error *err);
