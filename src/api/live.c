/* SPDX-License-Identifier: Apache-2.0 */

/* A list on the stacks of those who are in it. */

#include "api/live.h"

#include <string.h>

void live_begin(struct live_calls *live, struct live_call *call, struct co *co, const char *key_id)
{
    *call = (struct live_call){.co = co, .key_id = key_id, .next = live->first};
    if (live->first != NULL)
        live->first->previous = call;
    live->first = call;
}

void live_end(struct live_calls *live, struct live_call *call)
{
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        live->first = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
}

void live_bind(struct live_calls *live, const struct co *co, const char *sandbox_id)
{
    struct live_call *call = live->first; /* mostly the newest is asked for */
    while (call != NULL && call->co != co)
        call = call->next;
    if (call != NULL)
        call->sandbox = sandbox_id;
}

void live_cancel(struct live_calls *live, const char *key_id, const struct co *but)
{
    for (struct live_call *call = live->first; call != NULL; call = call->next)
        if (call->co != but && strcmp(call->key_id, key_id) == 0) {
            call->cancelled = true;
            co_cancel(call->co);
        }
}

void live_cancel_in(struct live_calls *live, const char *workspace, const struct co *but)
{
    for (struct live_call *call = live->first; call != NULL; call = call->next)
        if (call->co != but && call->workspace != NULL && strcmp(call->workspace, workspace) == 0) {
            call->cancelled = call->homeless = true;
            co_cancel(call->co);
        }
}

void live_cancel_bound(struct live_calls *live, const char *sandbox_id)
{
    for (struct live_call *call = live->first; call != NULL; call = call->next)
        if (call->sandbox != NULL && strcmp(call->sandbox, sandbox_id) == 0) {
            call->cancelled = true;
            co_cancel(call->co);
        }
}
