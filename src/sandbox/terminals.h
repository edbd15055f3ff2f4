/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Terminals of a sandbox. On coroutines; a sandbox that is being made or started is waited for, as
 * in processes.h.
 *
 * Sessions are the agent's: they survive a lost connection and a restart of this process, and a
 * session's id means something inside its own sandbox only. What the agent says is checked.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

/* 1 to TERMINAL_SESSION_MAX letters, digits, '.', '_' and '-'; INVALID_ARGUMENT says so. */
int terminal_session_check(const char *session, struct error *err);

/*
 * Starts a session, and attaches to none. open->session NULL: one is made up; cwd NULL: /workspace;
 * user NULL: root; env is laid over the sandbox's own. With TERMINAL_OR_EXISTING a session of that
 * name is found as well (ret_terminal->created says which), else it is ALREADY_EXISTS.
 * INVALID_ARGUMENT (session, shell, user, size), FILE_NOT_FOUND (cwd), LIMIT_EXCEEDED past
 * TERMINALS_MAX.
 */
int sandbox_terminal_open(struct sandboxes *s, const char *workspace, const char *name,
                          const char *actor, const struct agent_terminal_open *open,
                          struct arena *arena, struct agent_terminal *ret_terminal,
                          struct error *err);
/* Those that live, oldest first. */
int sandbox_terminal_list(struct sandboxes *s, const char *workspace, const char *name,
                          struct arena *arena, struct agent_terminal **ret_items, size_t *ret_count,
                          struct error *err);
/* Input without being attached; LIMIT_EXCEEDED when its program does not read. */
int sandbox_terminal_input(struct sandboxes *s, const char *workspace, const char *name,
                           const char *session, struct slice data, struct error *err);
int sandbox_terminal_resize(struct sandboxes *s, const char *workspace, const char *name,
                            const char *session, uint64_t cols, uint64_t rows, struct error *err);
/* Returns when nothing of it runs any more. TERMINAL_NOT_FOUND. */
int sandbox_terminal_close(struct sandboxes *s, const char *workspace, const char *name,
                           const char *session, struct error *err);

/* --- attached --- */

struct terminal;

/* Attaches, on a connection of its own. *ret_about's strings are in the arena. */
int terminal_attach(struct sandboxes *s, const char *workspace, const char *name,
                    const struct agent_terminal_attach *attach, struct arena *arena,
                    struct agent_terminal *ret_about, struct terminal **ret_terminal,
                    struct error *err);
/* The session goes on without us. Nobody may be waiting in the calls below. NULL is fine. */
void terminal_detach(struct terminal *terminal);

enum terminal_event_kind {
    TERMINAL_EVENT_QUIET,  /* nothing for the time given */
    TERMINAL_EVENT_OUTPUT, /* offset, dropped, data */
    TERMINAL_EVENT_TAKEN,  /* taken: so many bytes of this client's input have arrived */
    TERMINAL_EVENT_END,    /* end; there is nothing after it */
};

struct terminal_event {
    enum terminal_event_kind kind;
    uint64_t offset;   /* of the first byte */
    uint64_t dropped;  /* bytes before it that this reader was too slow, or too late, for */
    struct slice data; /* until the next call */
    uint64_t taken;
    struct agent_terminal_exit end;
};

/* Waits for what comes next; timeout_ms -1: as long as it takes. UNAVAILABLE when the sandbox is
 * gone. One coroutine may wait here while another one uses the two calls below. */
int terminal_next(struct terminal *terminal, int64_t timeout_ms, struct terminal_event *ret_event,
                  struct error *err);
/* Waits while its program does not read. */
int terminal_input(struct terminal *terminal, struct slice data, struct error *err);
int terminal_resize(struct terminal *terminal, uint64_t cols, uint64_t rows, struct error *err);
