/* SPDX-License-Identifier: Apache-2.0 */

/* Links: a socket of the sandbox's network, and the sandbox that it keeps from idling. */

#include "sandbox/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/process_ref.h"
#include "sandbox/state.h"

enum { ANSWER_MS = 30 * 1000 };

struct sandbox_link {
    struct sandbox *sb; /* held */
    int fd;
    bool busy;
};

int sandbox_identify(struct sandboxes *s, const char *workspace, const char *name,
                     struct sandbox_identity *ret_identity, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    if (sandbox_running(s, workspace, name, &sb, err) < 0)
        return -1;
    snprintf(ret_identity->id, sizeof(ret_identity->id), "%s", sb->id);
    ret_identity->start = sb->agents;
    ret_identity->made_ms = sb->created_ms;
    ret_identity->plain = sb->env_len == 0 && trust_timeout_ms(&sb->security, 0) == 0;
    return 0;
}

int sandbox_link_open(struct sandboxes *s, const char *workspace, const char *name, const char *to,
                      int64_t timeout_ms, struct sandbox_link **ret_link, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    _cleanup_fd_ int fd = -1;
    if (sandbox_running(s, workspace, name, &sb, err) < 0 ||
        s->provider->ops->dial_name(s->provider, sb->id, to, timeout_ms, &fd, err) < 0)
        return -1;
    struct sandbox_link *link = calloc(1, sizeof(*link));
    if (link == NULL)
        return error_sys(err, "allocating a link");
    sandbox_hold(sb);
    link->sb = sb;
    link->fd = steal_fd(&fd);
    *ret_link = link;
    return 0;
}

int sandbox_link_fd(const struct sandbox_link *link)
{
    return link->fd;
}

void sandbox_link_begin(struct sandbox_link *link)
{
    if (!link->busy)
        sandbox_stream_begin(link->sb);
    link->busy = true;
}

void sandbox_link_end(struct sandbox_link *link)
{
    if (link->busy)
        sandbox_stream_end(link->sb);
    link->busy = false;
}

void sandbox_link_close(struct sandbox_link *link)
{
    if (link == NULL)
        return;
    sandbox_link_end(link);
    close(link->fd);
    sandbox_drop(link->sb);
    free(link);
}

int sandbox_process_signal(struct sandboxes *s, const char *workspace, const char *name,
                           const char *process, int signal, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref ref;
    if (process_ref(process, &ref, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    struct agent_signal request = {.pid = ref.pid, .name = ref.name, .signal = (uint64_t)signal};
    struct arena *arena = arena_new();
    int rc = channel_call(channel, &agent_signal_schema, &request, &wire_ok_schema, arena, NULL,
                          ANSWER_MS, err);
    arena_free(arena);
    return rc;
}
