/* SPDX-License-Identifier: Apache-2.0 */

/* /process of a sandbox: commands that run or have run, their output and their end. */

#include "api/blaxel/process.h"

#include <inttypes.h>

#include "api/blaxel/handlers.h"
#include "api/blaxel/process_json.h"
#include "api/process_stream.h"
#include "base/cleanup.h"

enum { STOP_GRACE_MS = 10 * 1000 };

static int read_stream(struct arena *arena, const struct process_place *place, unsigned stream,
                       struct slice inline_data, uint64_t total, struct slice *ret_data,
                       struct error *err)
{
    struct process_log log = {.data = inline_data};
    if (total > inline_data.len &&
        sandbox_process_log(place->sandboxes, place->workspace, place->sandbox, place->process,
                            stream, arena, &log, err) < 0)
        return -1;
    *ret_data = log.data;
    return 0;
}

int box_process_output(struct arena *arena, const struct process_place *place,
                       const struct agent_process *process, struct box_output *ret_output,
                       struct error *err)
{
    struct box_output output;
    uint64_t out = process->stdout_total, errors = process->stderr_total;
    struct process_place exactly = *place;
    exactly.process = arena_printf(arena, "%" PRIu64, process->pid);
    if (read_stream(arena, &exactly, LOG_STDOUT, process->stdout_data, out, &output.out, err) < 0 ||
        read_stream(arena, &exactly, LOG_STDERR, process->stderr_data, errors, &output.errors,
                    err) < 0)
        return -1;
    /* With one stream alone, the order of both is that stream's. */
    if (out == 0 || errors == 0)
        output.logs = out == 0 ? output.errors : output.out;
    else if (read_stream(arena, &exactly, LOG_BOTH, (struct slice){NULL, 0}, out + errors,
                         &output.logs, err) < 0)
        return -1;
    *ret_output = output;
    return 0;
}

int box_process_list(struct http_exchange *x, const struct route_params *params, void *ctx,
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
        box_process_json(arena, doc, yyjson_mut_arr_add_obj(doc, list), &items[i], NULL);
    return api_reply_json(x, 200, doc, err);
}

/* One process with its output, told in one of two shapes. */
static int reply_process(struct http_exchange *x, const struct process_place *place,
                         bool logs_alone, struct error *err)
{
    struct arena *arena = http_arena(x);
    struct agent_process process;
    struct box_output output;

    if (sandbox_process_get(place->sandboxes, place->workspace, place->sandbox, place->process,
                            arena, &process, err) < 0 ||
        box_process_output(arena, place, &process, &output, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    if (logs_alone)
        box_output_json(arena, doc, root, &output);
    else
        box_process_json(arena, doc, root, &process, &output);
    return api_reply_json(x, 200, doc, err);
}

int box_process_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    struct process_place place = process_place(params, ctx);
    return reply_process(x, &place, false, err);
}

int box_process_logs(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct process_place place = process_place(params, ctx);
    return reply_process(x, &place, true, err);
}

int box_process_logs_stream(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    static const struct stream_style lines = {.shape = STREAM_LINES};
    _cleanup_(cleanup_process_output) struct process_output *output = NULL;
    struct process_place place = process_place(params, ctx);
    struct agent_process process;

    if (process_output_follow(place.sandboxes, place.workspace, place.sandbox, place.process, 0, 0,
                              http_arena(x), &process, &output, err) < 0)
        return -1;
    return process_stream_reply(x, output, &process, &lines, err);
}

/* --- its end --- */

static int reply_message(struct http_exchange *x, const char *message, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "message", message);
    return api_reply_json(x, 200, doc, err);
}

static int end_process(struct http_exchange *x, const struct route_params *params,
                       const struct api_call *call, uint64_t grace_ms, const char *message,
                       struct error *err)
{
    struct process_place place = process_place(params, call);
    struct agent_process process;
    if (sandbox_process_stop(place.sandboxes, place.workspace, place.sandbox, place.process,
                             grace_ms, http_arena(x), &process, err) < 0)
        return -1;
    return reply_message(x, message, err);
}

int box_process_stop(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return end_process(x, params, ctx, STOP_GRACE_MS, "Process stopped successfully", err);
}

int box_process_kill(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return end_process(x, params, ctx, 0, "Process killed successfully", err);
}
