/* SPDX-License-Identifier: Apache-2.0 */

/* Processes: requests to the agent, with the sandbox's own defaults laid under them. */

#include "sandbox/processes.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/state.h"

enum {
    ANSWER_MS = 30 * 1000,
    STOP_MARGIN_MS = 30 * 1000,
    FOREVER = -1,
};

/* "NAME=value" of `over` replaces "NAME=…" of `under`. */
static struct slice merge_env(struct arena *arena, struct slice under, struct slice over)
{
    char *out = arena_alloc(arena, under.len + over.len + 1);
    size_t len = 0;
    strv_each (item, under) {
        size_t name = strcspn(item, "=");
        bool replaced = false;
        strv_each (other, over)
            if (strncmp(item, other, name + 1) == 0)
                replaced = true;
        if (replaced)
            continue;
        size_t size = strlen(item) + 1;
        memcpy(out + len, item, size);
        len += size;
    }
    if (over.len > 0)
        memcpy(out + len, over.data, over.len);
    return (struct slice){out, len + over.len};
}

int sandbox_exec(struct sandboxes *s, const char *workspace, const char *name,
                 const struct agent_exec *exec, struct arena *arena,
                 struct agent_process *ret_process, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    if (spec_check_env(exec->env, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    struct agent_exec request = *exec;
    request.env = merge_env(arena, (struct slice){sb->env, sb->env_len}, exec->env);
    if (request.cwd == NULL)
        request.cwd = "/workspace";
    if (request.user == NULL)
        request.user = "root";
    return channel_call(channel, &agent_exec_schema, &request, &agent_process_schema, arena,
                        ret_process, request.flags & EXEC_WAIT ? FOREVER : ANSWER_MS, err);
}

int sandbox_process_get(struct sandboxes *s, const char *workspace, const char *name, uint64_t pid,
                        struct arena *arena, struct agent_process *ret_process, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref request = {.pid = pid};
    if (sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    return channel_call(channel, &agent_get_schema, &request, &agent_process_schema, arena,
                        ret_process, ANSWER_MS, err);
}

struct process_items {
    struct arena *arena;
    struct agent_process *items;
    size_t count, cap;
};

static int add_process(void *ctx, const void *item, struct error *err)
{
    struct process_items *list = ctx;
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 16 : list->cap * 2;
        struct agent_process *items = arena_alloc(list->arena, cap * sizeof(*items));
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
        list->cap = cap;
    }
    memcpy(&list->items[list->count++], item, sizeof(*list->items));
    return 0;
}

int sandbox_process_list(struct sandboxes *s, const char *workspace, const char *name,
                         struct arena *arena, struct agent_process **ret_items, size_t *ret_count,
                         struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct process_items list = {.arena = arena};
    if (sandbox_agent(s, workspace, name, &sb, &channel, err) < 0 ||
        channel_list(channel, &agent_list_schema, NULL, &agent_process_schema, arena,
                     16 * PROCESSES_KEPT_MAX, add_process, &list, ANSWER_MS, err) < 0)
        return -1;
    *ret_items = list.items;
    *ret_count = list.count;
    return 0;
}

int sandbox_process_stop(struct sandboxes *s, const char *workspace, const char *name, uint64_t pid,
                         uint64_t grace_ms, struct arena *arena, struct agent_process *ret_process,
                         struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_stop request = {.pid = pid, .grace_ms = grace_ms};
    if (sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    return channel_call(channel, &agent_stop_schema, &request, &agent_process_schema, arena,
                        ret_process, (int64_t)grace_ms + STOP_MARGIN_MS, err);
}

int sandbox_process_log(struct sandboxes *s, const char *workspace, const char *name, uint64_t pid,
                        unsigned stream, struct arena *arena, struct process_log *ret_log,
                        struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    _cleanup_buf_ struct buf kept = BUF_INIT(2 * PROCESS_LOG_MAX);
    struct channel *channel;
    struct agent_log_read request = {.pid = pid, .stream = stream, .max = WIRE_DATA_CHUNK};
    struct agent_log log;
    uint64_t first = 0;
    if (sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    /* As much as was there at the first answer: a stream that goes on is not followed. */
    uint64_t end = UINT64_MAX;
    while (request.offset < end) {
        if (channel_call(channel, &agent_log_read_schema, &request, &agent_log_schema, arena, &log,
                         ANSWER_MS, err) < 0)
            return -1;
        if (end == UINT64_MAX) {
            end = log.total;
            first = log.offset;
        } else if (log.offset != request.offset) {
            /* Dropped while we read: start over from what is kept now. */
            buf_clear(&kept);
            first = log.offset;
        }
        if (log.data.len == 0)
            break;
        buf_add(&kept, log.data.data, log.data.len);
        if (buf_check(&kept, "output", err) < 0)
            return -1;
        request.offset = log.offset + log.data.len;
    }
    ret_log->data = (struct slice){arena_dup(arena, kept.data, kept.len), kept.len};
    ret_log->dropped = first;
    return 0;
}
