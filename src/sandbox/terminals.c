/* SPDX-License-Identifier: Apache-2.0 */

/* Terminals: requests about sessions, over the channel that everybody shares. */

#include "sandbox/terminals.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "loop/net.h"
#include "sandbox/state.h"
#include "sandbox/witness.h"

enum {
    ANSWER_MS = 30 * 1000,
    CLOSE_MS = TERMINAL_GRACE_MS + 30 * 1000,
    HANG_UP_MS = 1000,
    SESSION_RANDOM = 12,
};

int terminal_session_check(const char *session, struct error *err)
{
    size_t len = strspn(session, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789._-");
    if (len == 0 || session[len] != '\0' || len > TERMINAL_SESSION_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "sessionId: \"%.64s\" is not 1 to %d letters, digits, '.', '_' and '-'",
                         session, TERMINAL_SESSION_MAX);
    return 0;
}

static int check_size(uint64_t cols, uint64_t rows, struct error *err)
{
    if (cols > TERMINAL_SIZE_MAX || rows > TERMINAL_SIZE_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "cols and rows are 1 to %d",
                         TERMINAL_SIZE_MAX);
    return 0;
}

static int confine(struct sandbox *sb, const char *actor, struct agent_terminal_open *request,
                   struct error *err)
{
    if (trust_check_shell(&sb->security, "a terminal", err) < 0)
        return -1;
    request->timeout_ms = trust_timeout_ms(&sb->security, 0);
    if (sb->security.log_all_commands) {
        const struct agent_exec exec = {.command = request->command != NULL ? request->command
                                                                            : "(terminal)",
                                        .cwd = request->cwd,
                                        .user = request->user};
        sandbox_audit(sb, actor, &exec);
    }
    return 0;
}

int sandbox_terminal_open(struct sandboxes *s, const char *workspace, const char *name,
                          const char *actor, const struct agent_terminal_open *open,
                          struct arena *arena, struct agent_terminal *ret_terminal,
                          struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    char made_up[SESSION_RANDOM + 1];
    struct agent_terminal_open request = *open;
    if (request.session == NULL) {
        random_id(made_up, SESSION_RANDOM);
        request.session = made_up;
    }
    if (terminal_session_check(request.session, err) < 0 ||
        check_size(request.cols, request.rows, err) < 0 || spec_check_env(request.env, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    request.env = sandbox_env_over(sb, arena, open->env);
    if (request.cwd == NULL)
        request.cwd = "/workspace";
    if (request.user == NULL)
        request.user = "root";
    if (confine(sb, actor, &request, err) < 0)
        return -1;
    sb->had_terminals = true;
    tally_command(sb);
    const struct agent_exec seen = {.command =
                                        request.command != NULL ? request.command : "(terminal)",
                                    .cwd = request.cwd,
                                    .user = request.user};
    void *run = witness_exec(sb, actor, &seen);
    int rc = channel_call(channel, &agent_terminal_open_schema, &request, &agent_terminal_schema,
                          arena, ret_terminal, ANSWER_MS, err);
    witness_end(s, run, NULL);
    return rc;
}

struct terminal_items {
    struct agent_terminal *items;
    size_t count;
};

static int add_terminal(void *ctx, const void *item, struct error *err)
{
    struct terminal_items *list = ctx;
    memcpy(&list->items[list->count++], item, sizeof(*list->items));
    return 0;
}

int sandbox_terminal_list(struct sandboxes *s, const char *workspace, const char *name,
                          struct arena *arena, struct agent_terminal **ret_items, size_t *ret_count,
                          struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct terminal_items list = {
        .items = arena_alloc(arena, (TERMINALS_MAX + 1) * sizeof(*list.items))};
    if (sandbox_agent(s, workspace, name, &sb, &channel, err) < 0 ||
        channel_list(channel, &agent_terminal_list_schema, NULL, &agent_terminal_schema, arena,
                     TERMINALS_MAX, add_terminal, &list, ANSWER_MS, err) < 0)
        return -1;
    *ret_items = list.items;
    *ret_count = list.count;
    return 0;
}

/* A request that is answered with a plain yes. */
static int ask(struct sandboxes *s, const char *workspace, const char *name,
               const struct wire_schema *schema, const void *msg, int64_t timeout_ms,
               struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    if (sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    struct arena *arena = arena_new();
    int rc = channel_call(channel, schema, msg, &wire_ok_schema, arena, NULL, timeout_ms, err);
    arena_free(arena);
    return rc;
}

int sandbox_terminal_input(struct sandboxes *s, const char *workspace, const char *name,
                           const char *session, struct slice data, struct error *err)
{
    if (terminal_session_check(session, err) < 0)
        return -1;
    while (data.len > 0) {
        size_t len = data.len < TERMINAL_CHUNK_MAX ? data.len : TERMINAL_CHUNK_MAX;
        struct agent_terminal_input request = {session, {data.data, len}};
        if (ask(s, workspace, name, &agent_terminal_input_schema, &request, ANSWER_MS, err) < 0)
            return -1;
        data = (struct slice){data.data + len, data.len - len};
    }
    return 0;
}

int sandbox_terminal_resize(struct sandboxes *s, const char *workspace, const char *name,
                            const char *session, uint64_t cols, uint64_t rows, struct error *err)
{
    struct agent_terminal_resize request = {session, cols, rows};
    if (terminal_session_check(session, err) < 0 || check_size(cols, rows, err) < 0)
        return -1;
    return ask(s, workspace, name, &agent_terminal_resize_schema, &request, ANSWER_MS, err);
}

int sandbox_terminal_close(struct sandboxes *s, const char *workspace, const char *name,
                           const char *session, struct error *err)
{
    struct agent_terminal_ref request = {session};
    if (terminal_session_check(session, err) < 0)
        return -1;
    return ask(s, workspace, name, &agent_terminal_close_schema, &request, CLOSE_MS, err);
}

/* Nobody waits for an answer: whether it heard or not, what follows is the end. */
void sandbox_hang_up(struct sandbox *sb)
{
    struct provider *p = sb->owner->provider;
    unsigned char frame[FRAME_HEADER_SIZE];
    _cleanup_fd_ int fd = -1;
    if (!sb->had_terminals)
        return;
    sb->had_terminals = false;
    frame_header_encode(frame, &(struct frame_header){.type = AGENT_TERMINAL_HANG_UP, .id = 1});
    if (p->ops->connect(p, sb->id, &fd, NULL) == 0)
        net_write(sb->owner->loop, fd, frame, sizeof(frame), HANG_UP_MS, NULL);
}
