/* SPDX-License-Identifier: Apache-2.0 */

/* A question to the agent for each of them (provider/channel.h), and no coroutine: a sandbox may
 * have a thousand. */

#include "sandbox/unattended.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "loop/co.h"
#include "provider/channel.h"
#include "sandbox/history_state.h"
#include "sandbox/observed.h"
#include "sandbox/witness.h"

struct unattended {
    struct sandboxes *owner;
    struct sandbox *sb; /* held, until it is asked about */
    char id[SANDBOX_ID_LEN + 1];
    uint64_t pid;
    char execution[EXECUTION_ID_SIZE];
    void *run;
};

/* The sandbox may have gone since it was asked about. */
static void look_into(const struct unattended *u, const struct agent_process *process)
{
    struct sandbox *sb;
    HASH_FIND(by_id, u->owner->ids, u->id, strlen(u->id), sb);
    if (sb != NULL)
        history_run_over(sb, u->execution, process->clean != 1);
}

static void told(void *ctx, const void *answer, const struct error *why)
{
    struct unattended *u = ctx;
    const struct agent_process *process = answer;
    witness_end(u->owner, u->run, process);
    if (process != NULL) {
        execution_ended(u->owner->loop, process);
        look_into(u, process);
    }
    free(u);
}

static struct unattended *unattended_new(struct sandbox *sb, uint64_t pid, const char *execution,
                                         void *run)
{
    struct unattended *u = calloc(1, sizeof(*u));
    if (u == NULL)
        abort();
    *u = (struct unattended){.owner = sb->owner, .pid = pid, .run = witness_leave(sb->owner, run)};
    snprintf(u->id, sizeof(u->id), "%s", sb->id);
    snprintf(u->execution, sizeof(u->execution), "%s", execution);
    return u;
}

static void ask(struct unattended *u, struct channel *agent)
{
    const struct agent_ref request = {.pid = u->pid,
                                      .execution = u->pid == 0 ? u->execution : NULL};
    struct error err;
    if (agent != NULL) {
        channel_ask(agent, &agent_wait_schema, &request, &agent_process_schema, told, u);
        return;
    }
    error_set(&err, ERROR_UNAVAILABLE, "the sandbox has gone");
    told(u, NULL, &err);
}

void unattended_begin(struct sandbox *sb, uint64_t pid, const char *execution, void *run)
{
    ask(unattended_new(sb, pid, execution, run), sb->agent);
}

static void begin(void *arg)
{
    struct unattended *u = arg;
    struct sandboxes *s = u->owner;
    _cleanup_sandbox_ struct sandbox *sb = steal_ptr(u->sb);
    struct channel *agent = NULL;
    struct error err;
    /* Who hangs up has not used the sandbox by that. */
    if (sb->status != SANDBOX_RUNNING || sb->gone || sandbox_agent_reach(sb, &agent, &err) < 0)
        agent = NULL;
    ask(u, agent);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void unattended_begin_later(struct sandbox *sb, uint64_t pid, const char *execution, void *run)
{
    struct unattended *u = unattended_new(sb, pid, execution, run);
    struct error err;
    sandbox_hold(sb);
    u->sb = sb;
    sb->owner->drivers++;
    if (co_spawn(sb->owner->loop, begin, u, NULL, &err) == 0)
        return;
    sb->owner->drivers--;
    sandbox_drop(steal_ptr(u->sb));
    told(u, NULL, &err);
}
