/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /process: commands of a sandbox. A command is a process tree with one pid, one output and one
 * end: stopping it means the tree.
 */

#include "api/v0/process.h"

#include <inttypes.h>

#include "api/handlers.h"
#include "api/json_stream.h"
#include "api/v0/process_exec.h"
#include "api/v0/process_json.h"
#include "sandbox/ports.h"

enum { STOP_GRACE_MS = 10 * 1000 };

struct process_place process_place(const struct route_params *params, const struct api_call *call)
{
    return (struct process_place){.sandboxes = call->api->sandboxes,
                                  .workspace = call->workspace,
                                  .sandbox = route_param(params, "name"),
                                  .process = route_param(params, "pid"),
                                  .actor = call->principal.name};
}

int process_reply_message(struct http_exchange *x, uint64_t pid, const char *message,
                          struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_uint(doc, root, "pid", pid);
    yyjson_mut_obj_add_str(doc, root, "message", message);
    return api_reply_json(x, 200, doc, err);
}

int v0_process_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct agent_process *items = NULL;
    size_t count = 0;

    if (sandbox_process_list(call->api->sandboxes, call->workspace, route_param(params, "name"),
                             http_arena(x), &items, &count, err) < 0)
        return -1;
    _cleanup_json_stream_ struct json_stream out = {0};
    json_stream_begin_list(&out, x);
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *object;
        yyjson_mut_doc *doc = json_stream_item(&out, &object);
        process_json(json_stream_arena(&out), doc, object, &items[i]);
        if (json_stream_add(&out, doc, err) < 0)
            return -1;
    }
    return json_stream_end(&out, err);
}

int v0_process_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    struct process_place place = process_place(params, ctx);
    struct agent_process process;

    if (sandbox_process_get(place.sandboxes, place.workspace, place.sandbox, place.process,
                            http_arena(x), &process, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    process_json(http_arena(x), doc, root, &process);
    return api_reply_json(x, 200, doc, err);
}

/* --- exec --- */

/* The answer to a waiting exec brings the newest PROCESS_INLINE_MAX bytes along. Almost always that
 * is all of it; when it is not, the agent is asked for what it has kept. */
static int complete_output(struct http_exchange *x, const struct process_place *place,
                           unsigned stream, struct slice inline_data, uint64_t total,
                           struct process_log *ret_log, struct error *err)
{
    if (total <= inline_data.len) {
        *ret_log = (struct process_log){inline_data, 0};
        return 0;
    }
    return sandbox_process_log(place->sandboxes, place->workspace, place->sandbox, place->process,
                               stream, http_arena(x), ret_log, err);
}

static int reply_exec(struct http_exchange *x, struct process_place *place,
                      const struct agent_process *process, bool with_output, struct error *err)
{
    struct arena *arena = http_arena(x);
    struct process_log out = {0}, errors = {0};
    place->process = arena_printf(arena, "%" PRIu64, process->pid);
    if (with_output && (complete_output(x, place, LOG_STDOUT, process->stdout_data,
                                        process->stdout_total, &out, err) < 0 ||
                        complete_output(x, place, LOG_STDERR, process->stderr_data,
                                        process->stderr_total, &errors, err) < 0))
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    process_json(arena, doc, root, process);
    if (with_output)
        process_output_json(arena, doc, root, &out, &errors, NULL);
    return api_reply_json(x, 200, doc, err);
}

/* Starts it, and waits for its ports, and for its end, when that was asked for. */
static int exec_and_wait(struct http_exchange *x, const struct process_place *place,
                         const struct process_request *request, struct agent_process *process,
                         struct error *err)
{
    struct arena *arena = http_arena(x);
    struct agent_exec exec = request->exec;
    bool wait = (exec.flags & EXEC_WAIT) != 0;
    if (request->port_count > 0)
        exec.flags &= ~(uint64_t)EXEC_WAIT;
    if (sandbox_exec(place->sandboxes, place->workspace, place->sandbox, place->actor, &exec, -1,
                     arena, process, err) < 0)
        return -1;
    if (request->port_count == 0)
        return 0;
    const char *pid = arena_printf(arena, "%" PRIu64, process->pid);
    struct ports_wait ports = {.ports = request->ports,
                               .count = request->port_count,
                               .loopback_counts = true,
                               .wait_ms = -1};
    if (sandbox_process_wait_ports(place->sandboxes, place->workspace, place->sandbox, pid, &ports,
                                   arena, process, err) < 0)
        return -1;
    return wait ? sandbox_process_wait(place->sandboxes, place->workspace, place->sandbox, pid, -1,
                                       arena, process, err)
                : 0;
}

int v0_process_exec(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    struct process_place place = process_place(params, ctx);
    struct process_request request;
    struct agent_process process;
    yyjson_val *body;
    bool stream;

    if (process_wants_stream(x, &stream, err) < 0 || api_json_body(x, &body, err) < 0 ||
        process_exec_from_json(http_arena(x), body, &request, err) < 0)
        return -1;
    if (stream)
        return process_exec_stream(x, &place, &request.exec, err);
    if (exec_and_wait(x, &place, &request, &process, err) < 0)
        return -1;
    return reply_exec(x, &place, &process, (request.exec.flags & EXEC_WAIT) != 0, err);
}

/* --- its end --- */

static int end_process(struct http_exchange *x, const struct route_params *params,
                       const struct api_call *call, uint64_t grace_ms, const char *message,
                       struct error *err)
{
    struct process_place place = process_place(params, call);
    struct agent_process process;

    if (sandbox_process_stop(place.sandboxes, place.workspace, place.sandbox, place.process,
                             grace_ms, http_arena(x), &process, err) < 0)
        return -1;
    return process_reply_message(x, process.pid, message, err);
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
