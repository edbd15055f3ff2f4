/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is told of everything that is run in sandboxes, whichever way it came: commands, terminals,
 * code, the commands of ports. It is told before a command is sent to the sandbox, on the
 * coroutine of whoever asked for it, and again when its end is known here. Neither may wait.
 */

#include <stdbool.h>

#include "base/slice.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

struct sandbox;

struct command_seen {
    const char *sandbox_id, *sandbox, *workspace;
    const char *actor;
    const char *user, *cwd;
    const char *command;  /* a command line; NULL: a program and its arguments … */
    struct slice argv;    /* … as a list of strings */
    const char *language; /* of code, which is in … */
    struct slice code;    /* … here; NULL: it is none */
};

struct command_witness {
    /* Returns what `ended` gets, which may be NULL. */
    void *(*begun)(void *ctx, const struct command_seen *seen);
    /* Whoever asked for it waits for it no longer: its end comes when nothing of him is there.
     * Returns what `ended` gets from now on: run, or NULL when there are too many of them. */
    void *(*left)(void *ctx, void *run);
    /* exit_code NULL: it goes on without us, or never began. */
    void (*ended)(void *ctx, void *run, const int64_t *exit_code);
    /* A sandbox was made for whoever asks. */
    void (*made)(void *ctx, const char *workspace, const char *name, const char *id);
    void *ctx;
};

/* Before anything is served. */
void sandboxes_set_witness(struct sandboxes *s, const struct command_witness *witness);

/* For those who run something. */
void *witness_exec(struct sandbox *sb, const char *actor, const struct agent_exec *exec);
/* See command_witness.left; run may be NULL, here and below. */
void *witness_leave(struct sandboxes *s, void *run);
/* process NULL: its end is not known. */
void witness_end(struct sandboxes *s, void *run, const struct agent_process *process);
/* code: of src/code, which knows a sandbox by name alone; it counts as one of its commands. */
void *witness_code(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                   const char *language, struct slice code);
void witness_code_end(struct sandboxes *s, void *run, const int64_t *status);
void witness_made(struct sandbox *sb);
