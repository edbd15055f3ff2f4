/* SPDX-License-Identifier: Apache-2.0 */

/* Processes: requests to the agent, with the sandbox's own defaults laid under them. */

#include "sandbox/processes.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "observe/trace_context.h"
#include "sandbox/command_limits.h"
#include "sandbox/history_state.h"
#include "sandbox/observed.h"
#include "sandbox/process_ref.h"
#include "sandbox/state.h"
#include "sandbox/unattended.h"
#include "sandbox/witness.h"

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

struct slice sandbox_env_over(const struct sandbox *sb, struct arena *arena, struct slice over)
{
    return merge_env(arena, (struct slice){sb->env, sb->env_len}, over);
}

int process_name_check(const char *name, struct error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char marks[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@+-";
    size_t len = strlen(name);
    if (len == 0 || len > PROCESS_NAME_MAX || strspn(name, marks) != len || name[0] == '.' ||
        name[0] == '-')
        return error_set(
            err, ERROR_INVALID_NAME,
            "name: \"%.80s\" is not 1 to %d letters, digits and ._:@+- that begin with "
            "no dot or dash",
            name, PROCESS_NAME_MAX);
    if (strcspn(name, letters) == len && strspn(name, "0123456789") == len)
        return error_set(
            err, ERROR_INVALID_NAME,
            "name: \"%.80s\" would be taken for a pid: it needs something besides digits", name);
    return 0;
}

int process_ref(const char *process, struct agent_ref *ret_ref, struct error *err)
{
    size_t len = strlen(process);
    *ret_ref = (struct agent_ref){0};
    if (len == 0 || strspn(process, "0123456789") != len) {
        if (process_name_check(process, NULL) < 0)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "\"%.80s\" is neither a process's number nor a name of one", process);
        ret_ref->name = process;
        return 0;
    }
    ret_ref->pid = len < 20 ? strtoull(process, NULL, 10) : UINT64_MAX;
    if (ret_ref->pid == 0)
        return error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process 0");
    return 0;
}

/* "TRACEPARENT=…" and "TRACESTATE=…" of the request that a command is run for. */
static struct slice trace_env(struct loop *loop, struct arena *arena)
{
    const struct errand *errand = co_errand(loop);
    char parent[TRACEPARENT_LEN + 1];
    if (errand == NULL || !errand->traced)
        return (struct slice){0};
    trace_parent_text(errand, parent);
    const char *first = arena_printf(arena, "TRACEPARENT=%s", parent);
    struct slice list = {first, strlen(first) + 1};
    if (errand->tracestate_len == 0)
        return list;
    const char *second = arena_printf(arena, "TRACESTATE=%s", errand->tracestate);
    return merge_env(arena, list, (struct slice){second, strlen(second) + 1});
}

void sandboxes_set_trace_commands(struct sandboxes *s, bool on)
{
    s->trace_commands = on;
}

static int check_shell(const struct sandbox *sb, const struct agent_exec *exec, struct error *err)
{
    if (exec->command != NULL)
        return trust_check_shell(&sb->security, "a command line", err);
    return trust_check_program(&sb->security, exec->argv, err);
}

static int check_exec(const struct sandbox *sb, const struct agent_exec *exec, struct error *err)
{
    if (spec_check_env(exec->env, err) < 0 || command_limits_check(sb, &exec->limits, err) < 0 ||
        (exec->name != NULL && process_name_check(exec->name, err) < 0))
        return -1;
    return check_shell(sb, exec, err);
}

int sandbox_exec_check(struct sandboxes *s, const char *workspace, const char *name,
                       const struct agent_exec *exec, struct error *err)
{
    const struct sandbox *sb = sandbox_find(s, workspace, name, err);
    return sb == NULL ? -1 : check_exec(sb, exec, err);
}

int process_exec_request(struct sandbox *sb, const char *actor, const struct agent_exec *exec,
                         struct arena *arena, struct agent_exec *ret_request, struct error *err)
{
    if (check_exec(sb, exec, err) < 0)
        return -1;
    struct agent_exec request = *exec;
    request.env = merge_env(arena, (struct slice){sb->env, sb->env_len}, exec->env);
    if (sb->owner->trace_commands)
        request.env = merge_env(arena, trace_env(sb->owner->loop, arena), request.env);
    if (request.cwd == NULL)
        request.cwd = "/workspace";
    if (request.user == NULL)
        request.user = "root";
    request.timeout_ms = trust_timeout_ms(&sb->security, exec->timeout_ms);
    /* … and what it leaves in the background has no more time than it had. */
    request.limits.time_ms = trust_timeout_ms(&sb->security, exec->limits.time_ms);
    if (request.execution == NULL) {
        char *execution = arena_alloc(arena, EXECUTION_ID_SIZE);
        history_run_begin(execution);
        request.execution = execution;
    }
    if (sb->security.log_all_commands)
        sandbox_audit(sb, actor, &request);
    *ret_request = request;
    return 0;
}

const char *process_reason(const struct agent_process *process)
{
    static const char *const reasons[] = {
        [PROCESS_TIMED_OUT] = "TIMEOUT",
        [PROCESS_MEMORY_LIMIT] = "MEMORY_LIMIT",
        [PROCESS_PROCESS_LIMIT] = "PROCESS_LIMIT",
        [PROCESS_OUTPUT_LIMIT] = "OUTPUT_LIMIT",
    };
    return process->state < ARRAY_LEN(reasons) ? reasons[process->state] : NULL;
}

/* A wait that came to its own end is not a time-out of ours. */
static int name_timeout(int rc, int64_t wait_ms, struct error *err)
{
    if (rc < 0 && wait_ms >= 0 && err != NULL && err->code == ERROR_TIMEOUT)
        error_set(err, ERROR_WAIT_TIMEOUT,
                  "the process has not ended after %lld s; it goes on, and can still be asked for",
                  (long long)(wait_ms / 1000));
    return rc;
}

bool process_exec_failed(struct sandbox *sb, const struct agent_exec *request,
                         const struct error *err)
{
    if (err->code != ERROR_TIMEOUT && err->code != ERROR_CANCELLED) {
        execution_failed(sb->owner->loop, err);
        return false;
    }
    history_run_started(sb, request->execution);
    return true;
}

/* Sends it, and waits for its end. */
static int exec_and_wait(struct sandbox *sb, struct channel *channel,
                         const struct agent_exec *request, int64_t wait_ms, void *run,
                         struct arena *arena, struct agent_process *ret_process, struct error *err)
{
    struct sandboxes *s = sb->owner;
    if (channel_call(channel, &agent_exec_schema, request, &agent_process_schema, arena,
                     ret_process, wait_ms, err) == 0) {
        witness_end(s, run, ret_process);
        execution_ended(s->loop, ret_process);
        history_run_ended(sb, request->execution, ret_process->clean != 1);
        return 0;
    }
    if (process_exec_failed(sb, request, err))
        unattended_begin_later(sb, 0, request->execution, run);
    else
        witness_end(s, run, NULL);
    return name_timeout(-1, wait_ms, err);
}

/* Sends it, and returns when it has begun. */
static int exec_and_go(struct sandbox *sb, struct channel *channel,
                       const struct agent_exec *request, bool ours, void *run, struct arena *arena,
                       struct agent_process *ret_process, struct error *err)
{
    struct sandboxes *s = sb->owner;
    if (channel_call(channel, &agent_exec_schema, request, &agent_process_schema, arena,
                     ret_process, ANSWER_MS, err) < 0) {
        if (!ours && process_exec_failed(sb, request, err))
            unattended_begin_later(sb, 0, request->execution, run);
        else
            witness_end(s, run, NULL);
        return -1;
    }
    history_run_started(sb, request->execution);
    if (ours)
        witness_end(s, run, NULL);
    else
        unattended_begin(sb, ret_process->pid, request->execution, run);
    return 0;
}

int sandbox_exec(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                 const struct agent_exec *exec, int64_t wait_ms, struct arena *arena,
                 struct agent_process *ret_process, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_exec request;
    if (command_limits_prepare(s, workspace, name, &exec->limits, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0 ||
        process_exec_request(sb, actor, exec, arena, &request, err) < 0)
        return -1;
    bool ours = wait_ms == EXEC_IS_OURS;
    if (!ours)
        tally_command(sb);
    void *run = witness_exec(sb, actor, &request);
    if (request.flags & EXEC_WAIT)
        return exec_and_wait(sb, channel, &request, wait_ms, run, arena, ret_process, err);
    return exec_and_go(sb, channel, &request, ours, run, arena, ret_process, err);
}

/* A request that is answered with one process. */
static int ask_process(struct sandboxes *s, const char *workspace, const char *name,
                       const char *process, const struct wire_schema *schema, int64_t timeout_ms,
                       struct arena *arena, struct agent_process *ret_process, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref request;
    if (process_ref(process, &request, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    if (channel_call(channel, schema, &request, &agent_process_schema, arena, ret_process,
                     timeout_ms, err) < 0)
        return -1;
    history_process_seen(sb, ret_process);
    return 0;
}

int sandbox_process_get(struct sandboxes *s, const char *workspace, const char *name,
                        const char *process, struct arena *arena, struct agent_process *ret_process,
                        struct error *err)
{
    return ask_process(s, workspace, name, process, &agent_get_schema, ANSWER_MS, arena,
                       ret_process, err);
}

int sandbox_process_wait(struct sandboxes *s, const char *workspace, const char *name,
                         const char *process, int64_t wait_ms, struct arena *arena,
                         struct agent_process *ret_process, struct error *err)
{
    return name_timeout(ask_process(s, workspace, name, process, &agent_wait_schema, wait_ms, arena,
                                    ret_process, err),
                        wait_ms, err);
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

int sandbox_process_stop(struct sandboxes *s, const char *workspace, const char *name,
                         const char *process, uint64_t grace_ms, struct arena *arena,
                         struct agent_process *ret_process, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref ref;
    if (process_ref(process, &ref, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    struct agent_stop request = {.pid = ref.pid, .name = ref.name, .grace_ms = grace_ms};
    if (channel_call(channel, &agent_stop_schema, &request, &agent_process_schema, arena,
                     ret_process, (int64_t)grace_ms + STOP_MARGIN_MS, err) < 0)
        return -1;
    history_process_seen(sb, ret_process);
    return 0;
}

/* --- what was kept of the output --- */

int sandbox_process_log_from(struct sandboxes *s, const char *workspace, const char *name,
                             const char *process, unsigned stream, uint64_t offset,
                             struct arena *arena, struct agent_log *ret_log, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref ref;
    if (process_ref(process, &ref, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    struct agent_log_read request = {.pid = ref.pid,
                                     .name = ref.name,
                                     .stream = stream,
                                     .offset = offset,
                                     .max = WIRE_DATA_CHUNK};
    return channel_call(channel, &agent_log_read_schema, &request, &agent_log_schema, arena,
                        ret_log, ANSWER_MS, err);
}

int sandbox_process_log(struct sandboxes *s, const char *workspace, const char *name,
                        const char *process, unsigned stream, struct arena *arena,
                        struct process_log *ret_log, struct error *err)
{
    _cleanup_buf_ struct buf kept = BUF_INIT(4 * PROCESS_LOG_MAX);
    kept.account = arena_account(arena);
    struct agent_log log;
    uint64_t first = 0;
    /* As much as was there at the first answer: a stream that goes on is not followed. */
    uint64_t end = UINT64_MAX;
    for (uint64_t offset = 0; offset < end; offset = log.offset + log.data.len) {
        if (sandbox_process_log_from(s, workspace, name, process, stream, offset, arena, &log,
                                     err) < 0)
            return -1;
        if (end == UINT64_MAX) {
            end = log.total;
            first = log.offset;
        } else if (log.offset != offset) {
            /* Dropped while we read: start over from what is kept now. */
            buf_clear(&kept);
            first = log.offset;
        }
        if (log.data.len == 0)
            break;
        buf_add(&kept, log.data.data, log.data.len);
        if (buf_check(&kept, "output", err) < 0)
            return -1;
    }
    ret_log->data = (struct slice){arena_dup(arena, kept.data, kept.len), kept.len};
    ret_log->dropped = first;
    return 0;
}

/* --- its input --- */

int sandbox_process_write(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, struct slice data, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref ref;
    if (process_ref(process, &ref, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    struct agent_stdin request = {.pid = ref.pid, .name = ref.name, .data = data};
    struct arena *arena = arena_new();
    int rc = channel_call(channel, &agent_stdin_schema, &request, &wire_ok_schema, arena, NULL,
                          FOREVER, err);
    arena_free(arena);
    return rc;
}

int sandbox_process_end_input(struct sandboxes *s, const char *workspace, const char *name,
                              const char *process, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref ref;
    if (process_ref(process, &ref, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0)
        return -1;
    struct arena *arena = arena_new();
    int rc = channel_call(channel, &agent_stdin_end_schema, &ref, &wire_ok_schema, arena, NULL,
                          ANSWER_MS, err);
    arena_free(arena);
    return rc;
}
