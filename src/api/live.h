/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The calls that are being served, and whose they are: revoking a key also ends what it has open,
 * and what tokens of it have, terminals and watches that would otherwise go on for days. Deleting a
 * workspace ends what goes on in it, which would otherwise go on in one of the same name.
 */

#include <stdbool.h>

#include "loop/co.h"

struct live_call {
    struct co *co;
    const char *key_id;    /* borrowed, as the next two */
    const char *sandbox;   /* the one that the caller's token is bound to; NULL or "": none. (What
                              E2B's and Scalebox's clients show is such a token.) */
    const char *workspace; /* that it was let into; NULL or "": none */
    bool cancelled;
    bool homeless; /* … because its workspace was deleted */
    struct live_call *previous, *next;
};

struct live_calls { /* start from a zeroed struct */
    struct live_call *first;
};

/* From begin to end the call is found by its key (or by what else let it in: a port, a preview, a
 * token of one; their names are like no key's). Both on the call's coroutine; it lives there. */
void live_begin(struct live_calls *live, struct live_call *call, struct co *co, const char *key_id);
void live_end(struct live_calls *live, struct live_call *call);

/* The call of that coroutine, whose handler has found that a token of the sandbox let it in.
 * sandbox_id is borrowed, until the call's end. */
void live_bind(struct live_calls *live, const struct co *co, const char *sandbox_id);

/* Cancels the calls of a key, but for the one that asks for it. */
void live_cancel(struct live_calls *live, const char *key_id, const struct co *but);
/* Those in a workspace, but for the one that asks for it. */
void live_cancel_in(struct live_calls *live, const char *workspace, const struct co *but);
/* Those of the tokens that are bound to a sandbox. */
void live_cancel_bound(struct live_calls *live, const char *sandbox_id);
