/* SPDX-License-Identifier: Apache-2.0 */

/* Telling the witness. Without one nothing happens. */

#include "sandbox/witness.h"

#include "sandbox/state.h"

void sandboxes_set_witness(struct sandboxes *s, const struct command_witness *witness)
{
    s->witness = witness;
}

static void *tell(const struct sandbox *sb, struct command_seen *seen)
{
    const struct command_witness *w = sb->owner->witness;
    if (w == NULL)
        return NULL;
    seen->sandbox_id = sb->id;
    seen->sandbox = sandbox_path(sb);
    seen->workspace = sb->workspace;
    return w->begun(w->ctx, seen);
}

void *witness_exec(struct sandbox *sb, const char *actor, const struct agent_exec *exec)
{
    struct command_seen seen = {.actor = actor,
                                .user = exec->user,
                                .cwd = exec->cwd,
                                .command = exec->command,
                                .argv = exec->argv};
    return tell(sb, &seen);
}

void *witness_leave(struct sandboxes *s, void *run)
{
    return run == NULL ? NULL : s->witness->left(s->witness->ctx, run);
}

void witness_end(struct sandboxes *s, void *run, const struct agent_process *process)
{
    int64_t exit_code = process == NULL ? 0 : (int64_t)process->exit_code;
    witness_code_end(s, run, process == NULL ? NULL : &exit_code);
}

void *witness_code(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                   const char *language, struct slice code)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
    struct command_seen seen = {.actor = actor, .language = language, .code = code};
    if (sb == NULL)
        return NULL;
    tally_command(sb);
    return tell(sb, &seen);
}

void witness_code_end(struct sandboxes *s, void *run, const int64_t *status)
{
    if (run != NULL)
        s->witness->ended(s->witness->ctx, run, status);
}

void witness_made(struct sandbox *sb)
{
    const struct command_witness *w = sb->owner->witness;
    if (w != NULL)
        w->made(w->ctx, sb->workspace, sandbox_path(sb), sb->id);
}
