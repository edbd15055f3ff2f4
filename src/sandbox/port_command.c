/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command behind a published port: started when somebody connects and nothing listens, which is
 * so after every start of the sandbox, and so whenever one was woken. One caller starts it and
 * looks whether the port listens; the others wait for him. A command that fails is not started
 * again at once, however many connect: whoever knows the address could otherwise keep a sandbox
 * busy with nothing else.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/processes.h"
#include "sandbox/publish_state.h"

enum { LOOK_FIRST_MS = 10, LOOK_MOST_MS = 250 };

bool sandbox_port_has_command(struct sandbox *sb, uint16_t port)
{
    const struct published *p = published_find(sb, port);
    return p != NULL && p->command != NULL;
}

static void process_name(uint16_t port, char out[16])
{
    snprintf(out, 16, "port-%u", port);
}

/* One that runs already has its time; it may be slow. */
static int start_command(struct sandbox *sb, const struct published *p, struct error *err)
{
    char name[16];
    struct agent_process process;
    struct arena *arena = arena_new();
    process_name(p->port, name);
    const struct agent_exec exec = {.command = arena_strdup(arena, p->command), .name = name};
    const char *actor = arena_strdup(arena, p->created_by);
    int rc = sandbox_exec(sb->owner, sb->workspace, sb->id, actor, &exec, 0, arena, &process, err);
    arena_free(arena);
    return rc < 0 && err->code != ERROR_ALREADY_EXISTS ? -1 : 0;
}

/* Whether there is no hope any more. A command that leaves its program in the background ends, too,
 * and well. */
static int check_command(struct sandbox *sb, uint16_t port, struct arena *arena, struct error *err)
{
    char name[16];
    struct agent_process process;
    process_name(port, name);
    if (sandbox_process_get(sb->owner, sb->workspace, sb->id, name, arena, &process, err) < 0)
        return -1;
    if (process.state == PROCESS_RUNNING ||
        (process.state == PROCESS_EXITED && process.exit_code == 0))
        return 0;
    return error_set(err, ERROR_PORT_NOT_LISTENING,
                     "nothing listens on port %u, and the command that is to (process \"%s\") "
                     "ended with %" PRIu64,
                     port, name, process.exit_code);
}

/* Whether it listens: 0. -1 with PORT_NOT_LISTENING and `*ret_hope`: not yet. */
static int look(struct sandbox *sb, uint16_t port, port_listens *listens, void *ctx, bool *ret_hope,
                struct error *err)
{
    *ret_hope = false;
    if (listens(sb, port, ctx, err) == 0)
        return 0;
    if (err->code != ERROR_PORT_NOT_LISTENING)
        return -1;
    struct arena *arena = arena_new();
    *ret_hope = check_command(sb, port, arena, err) == 0;
    arena_free(arena);
    return -1;
}

static int wait_for_port(struct sandbox *sb, uint16_t port, port_listens *listens, void *ctx,
                         struct error *err)
{
    struct loop *loop = sb->owner->loop;
    int64_t end = loop_now(loop) + PORT_READY_MS, pause = LOOK_FIRST_MS;
    bool hope;
    while (co_sleep(loop, pause, err) == 0) {
        if (look(sb, port, listens, ctx, &hope, err) == 0)
            return 0;
        if (!hope)
            return -1;
        if (loop_now(loop) >= end)
            return error_set(err, ERROR_PORT_NOT_LISTENING,
                             "nothing listens on port %u %d s after its command was started", port,
                             PORT_READY_MS / 1000);
        pause = pause * 2 < LOOK_MOST_MS ? pause * 2 : LOOK_MOST_MS;
    }
    return -1;
}

int sandbox_serve_port(struct sandbox *sb, uint16_t port, port_listens *listens, void *ctx,
                       struct error *err)
{
    struct loop *loop = sb->owner->loop;
    struct published *p;
    while ((p = published_find(sb, port)) != NULL && p->starting)
        if (co_cond_wait(loop, &sb->port_served, PORT_READY_MS, err) < 0)
            return -1;
    /* Whoever was before may have brought it up, or have found that it does not come up. */
    bool lately = p != NULL && p->started_ms != 0 && p->started_agent == sb->agents &&
                  loop_now(loop) - p->started_ms < PORT_COMMAND_AGAIN_MS;
    if (p == NULL || p->command == NULL || lately)
        return listens(sb, port, ctx, err);
    p->starting = true;
    p->started_ms = loop_now(loop);
    p->started_agent = sb->agents;
    sandbox_stream_begin(sb); /* somebody waits: it is not idle */
    int rc = start_command(sb, p, err);
    if (rc == 0)
        rc = wait_for_port(sb, port, listens, ctx, err);
    sandbox_stream_end(sb);
    if ((p = published_find(sb, port)) != NULL)
        p->starting = false;
    co_cond_wake_all(&sb->port_served);
    return rc;
}
