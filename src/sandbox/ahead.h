/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs that run in a pool's spares before anybody asks for one: interpreters, whose start would
 * be most of a first run. How they are started is told by whoever knows them; here they are words.
 *
 * They are started as in a sandbox that nobody has asked anything of: a sandbox that has an
 * environment of its own, or that limits how long commands take, has no use for them
 * (sandbox_identity.plain in sandbox/link.h).
 */

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "wire/messages.h"

struct sandboxes;

struct ahead {
    struct agent_exec exec; /* with a name, a user and a cwd */
    bool listens;           /* it is up when it does, on its name (see sandbox/link.h); else when it
                             * has said something */
};

/* What the word means. CODE_LANGUAGE_UNKNOWN. */
typedef int ahead_describe(const char *word, struct arena *arena, struct ahead *ret_ahead,
                           struct error *err);
void sandboxes_set_ahead(struct sandboxes *s, ahead_describe *describe);

/* Starts the programs of these words (with spaces between them) in the sandbox with this id, and
 * waits until they are up. CODE_INTERPRETER_MISSING, CODE_KERNEL_FAILED, TIMEOUT. */
int ahead_start(struct sandboxes *s, const char *id, const char *words, struct error *err);
/* Whether all of them mean something. */
int ahead_check(struct sandboxes *s, const char *words, struct error *err);
