/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /process. The body is the seed's; what differs is what a timeout means. Here it is how long
 * somebody waits: the process goes on after it. Only one that is to be kept alive is ended by it.
 */

#include <inttypes.h>

#include "api/blaxel/handlers.h"
#include "api/blaxel/process.h"
#include "api/process_stream.h"
#include "api/v0/process_exec.h"
#include "api/record.h"
#include "base/cleanup.h"
#include "sandbox/ports.h"

enum {
    KEEP_ALIVE_DEFAULT_MS = 600 * 1000,
    RESULT_TAIL_MAX = 128 * 1024, /* of each stream, at the end of an answer that had it all */
};

struct run {
    struct process_place place;
    struct process_request request;
    int64_t wait_ms; /* -1: as long as it takes */
};

static int read_run(struct http_exchange *x, const struct route_params *params,
                    const struct api_call *call, struct run *run, struct error *err)
{
    struct agent_exec *exec = &run->request.exec;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        process_exec_from_json(http_arena(x), body, &run->request, err) < 0)
        return -1;
    run->place = process_place(params, call);
    run->wait_ms = exec->timeout_ms > 0 ? (int64_t)exec->timeout_ms : -1;
    if ((exec->flags & EXEC_KEEP_ALIVE) == 0)
        exec->timeout_ms = 0;
    else if (yyjson_obj_get(body, "timeout") == NULL)
        exec->timeout_ms = KEEP_ALIVE_DEFAULT_MS;
    return 0;
}

/* Starts it, and waits for its ports, and for its end, when that was asked for. */
static int exec_and_wait(struct http_exchange *x, const struct run *run,
                         struct agent_process *process, struct error *err)
{
    const struct process_place *place = &run->place;
    struct arena *arena = http_arena(x);
    struct agent_exec exec = run->request.exec;
    bool wait = (exec.flags & EXEC_WAIT) != 0;
    if (run->request.port_count > 0)
        exec.flags &= ~(uint64_t)EXEC_WAIT;
    if (sandbox_exec(place->sandboxes, place->workspace, place->sandbox, place->actor, &exec,
                     run->wait_ms, arena, process, err) < 0)
        return -1;
    if (run->request.port_count == 0)
        return 0;
    const char *pid = arena_printf(arena, "%" PRIu64, process->pid);
    const struct ports_wait ports = {
        .ports = run->request.ports, .count = run->request.port_count, .wait_ms = run->wait_ms};
    if (sandbox_process_wait_ports(place->sandboxes, place->workspace, place->sandbox, pid, &ports,
                                   arena, process, err) < 0)
        return -1;
    return wait ? sandbox_process_wait(place->sandboxes, place->workspace, place->sandbox, pid,
                                       run->wait_ms, arena, process, err)
                : 0;
}

static void keep_tail(struct slice *text, size_t max)
{
    if (text->len <= max)
        return;
    text->data += text->len - max;
    text->len = max;
}

/* The process at the end of a stream, with the last of what it wrote: the client has had it all. */
static void result_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                        const struct agent_process *process, void *ctx)
{
    const struct run *run = ctx;
    struct box_output output;
    struct error ignored;
    bool known = box_process_output(arena, &run->place, process, &output, &ignored) == 0;
    if (known) {
        keep_tail(&output.logs, 2 * RESULT_TAIL_MAX);
        keep_tail(&output.out, RESULT_TAIL_MAX);
        keep_tail(&output.errors, RESULT_TAIL_MAX);
    }
    box_process_json(arena, doc, object, process, known ? &output : NULL);
}

static int exec_stream(struct http_exchange *x, struct run *run, struct error *err)
{
    _cleanup_(cleanup_process_output) struct process_output *output = NULL;
    const struct stream_style style = {.shape = STREAM_NDJSON, .result = result_json, .ctx = run};
    struct agent_process process;
    if (record_stream(x, err) < 0 || /* before something runs */
        process_output_exec(run->place.sandboxes, run->place.workspace, run->place.sandbox,
                            run->place.actor, &run->request.exec, http_arena(x), &process, &output,
                            err) < 0)
        return -1;
    return process_stream_reply(x, output, &process, &style, err);
}

int box_process_exec(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct agent_process process;
    struct box_output output = {0};
    struct run run;

    if (read_run(x, params, ctx, &run, err) < 0)
        return -1;
    if (http_accepts(x, "text/event-stream") || http_accepts(x, "application/x-ndjson"))
        return exec_stream(x, &run, err);
    bool wait = (run.request.exec.flags & EXEC_WAIT) != 0;
    if (exec_and_wait(x, &run, &process, err) < 0 ||
        (wait && box_process_output(http_arena(x), &run.place, &process, &output, err) < 0))
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    box_process_json(http_arena(x), doc, root, &process, wait ? &output : NULL);
    api_tell_execution(x, process.execution);
    return api_reply_json(x, 200, doc, err);
}
