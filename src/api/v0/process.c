/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /process: commands of a sandbox. A command is a process tree with one pid, one output and one
 * end: stopping it means the tree.
 */

#include "api/v0/process.h"

#include <inttypes.h>

#include "api/handlers.h"
#include "api/v0/process_exec.h"
#include "api/v0/process_json.h"

enum { STOP_GRACE_MS = 10 * 1000 };

int process_pid(const struct route_params *params, uint64_t *ret_pid, struct error *err)
{
    const char *text = route_param(params, "pid");
    if (!api_parse_uint(text, 0, UINT64_MAX, ret_pid))
        return error_set(err, ERROR_INVALID_ARGUMENT, "pid: \"%.40s\" is not a process's number",
                         text);
    return 0;
}

int v0_process_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct agent_process *items = NULL;
    size_t count = 0;

    if (sandbox_process_list(call->api->sandboxes, call->workspace, route_param(params, "name"),
                             arena, &items, &count, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < count; i++)
        process_json(arena, doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    return api_reply_json(x, 200, doc, err);
}

int v0_process_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct agent_process process;
    uint64_t pid;

    if (process_pid(params, &pid, err) < 0 ||
        sandbox_process_get(call->api->sandboxes, call->workspace, route_param(params, "name"), pid,
                            http_arena(x), &process, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    process_json(http_arena(x), doc, root, &process);
    return api_reply_json(x, 200, doc, err);
}

/* The answer to a waiting exec brings the newest PROCESS_INLINE_MAX bytes along. Almost always that
 * is all of it; when it is not, the agent is asked for what it has kept. */
static int complete_output(struct http_exchange *x, const struct api_call *call, const char *name,
                           uint64_t pid, unsigned stream, struct slice inline_data, uint64_t total,
                           struct process_log *ret_log, struct error *err)
{
    if (total <= inline_data.len) {
        *ret_log = (struct process_log){inline_data, 0};
        return 0;
    }
    return sandbox_process_log(call->api->sandboxes, call->workspace, name, pid, stream,
                               http_arena(x), ret_log, err);
}

static int reply_exec(struct http_exchange *x, const struct api_call *call, const char *name,
                      const struct agent_process *process, bool with_output, struct error *err)
{
    struct arena *arena = http_arena(x);
    struct process_log out = {0}, errors = {0};
    if (with_output &&
        (complete_output(x, call, name, process->pid, LOG_STDOUT, process->stdout_data,
                         process->stdout_total, &out, err) < 0 ||
         complete_output(x, call, name, process->pid, LOG_STDERR, process->stderr_data,
                         process->stderr_total, &errors, err) < 0))
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    process_json(arena, doc, root, process);
    if (with_output)
        process_output_json(arena, doc, root, &out, &errors);
    return api_reply_json(x, 200, doc, err);
}

int v0_process_exec(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "name");
    struct agent_process process;
    struct agent_exec exec;
    yyjson_val *body;

    if (api_json_body(x, &body, err) < 0 ||
        process_exec_from_json(http_arena(x), body, &exec, err) < 0 ||
        sandbox_exec(call->api->sandboxes, call->workspace, name, &exec, http_arena(x), &process,
                     err) < 0)
        return -1;
    return reply_exec(x, call, name, &process, (exec.flags & EXEC_WAIT) != 0, err);
}

static int end_process(struct http_exchange *x, const struct route_params *params,
                       const struct api_call *call, uint64_t grace_ms, const char *message,
                       struct error *err)
{
    struct agent_process process;
    uint64_t pid;

    if (process_pid(params, &pid, err) < 0 ||
        sandbox_process_stop(call->api->sandboxes, call->workspace, route_param(params, "name"),
                             pid, grace_ms, http_arena(x), &process, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_uint(doc, root, "pid", pid);
    yyjson_mut_obj_add_str(doc, root, "message", message);
    return api_reply_json(x, 200, doc, err);
}

int v0_process_stop(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    return end_process(x, params, ctx, STOP_GRACE_MS, "Process stopped successfully", err);
}

int v0_process_kill(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    return end_process(x, params, ctx, 0, "Process killed successfully", err);
}
