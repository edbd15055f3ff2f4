/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Output as it comes: POST /process with a streaming Accept (or ?stream=true) starts a command and
 * answers with its output and its end; GET /process/{pid}/logs/stream joins one later, from any
 * offset, backlog first.
 */

#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/process_stream.h"
#include "api/v0/process.h"
#include "api/v0/process_json.h"
#include "api/record.h"
#include "base/cleanup.h"
#include "sandbox/process_output.h"

#define _cleanup_output_ _cleanup_(cleanup_process_output)

static bool asked_shape(const struct http_exchange *x, enum stream_shape *ret_shape)
{
    static const struct {
        const char *type;
        enum stream_shape shape;
    } rows[] = {
        {"application/x-ndjson", STREAM_NDJSON},
        {"text/event-stream", STREAM_EVENTS},
        {"application/vnd.cella.stream", STREAM_FRAMES},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (http_accepts(x, rows[i].type)) {
            *ret_shape = rows[i].shape;
            return true;
        }
    return false;
}

int process_wants_stream(struct http_exchange *x, bool *ret_wants, struct error *err)
{
    enum stream_shape shape;
    bool wants = false;
    if (api_query_bool(x, "stream", false, &wants, err) < 0)
        return -1;
    *ret_wants = wants || asked_shape(x, &shape);
    return 0;
}

static void result_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                        const struct agent_process *process, void *ctx)
{
    process_json(arena, doc, object, process);
}

int process_exec_stream(struct http_exchange *x, const struct process_place *place,
                        const struct agent_exec *exec, struct error *err)
{
    _cleanup_output_ struct process_output *output = NULL;
    struct stream_style style = {.shape = STREAM_NDJSON, .extras = true, .result = result_json};
    struct agent_process process;
    struct agent_exec request = *exec;

    /* Clients of this API's relatives ask for events and read JSON lines; so lines it is. */
    if (asked_shape(x, &style.shape) && style.shape == STREAM_EVENTS)
        style.shape = STREAM_NDJSON;
    if (request.stdin_data.len > 0)
        request.flags |= EXEC_STDIN_ONCE;
    if (record_stream(x, err) < 0 || /* before something runs */
        process_output_exec(place->sandboxes, place->workspace, place->sandbox, place->actor,
                            &request, http_arena(x), &process, &output, err) < 0)
        return -1;
    return process_stream_reply(x, output, &process, &style, err);
}

/* Where to go on: ?offset=, or what an event source had last. */
static int read_offset(struct http_exchange *x, uint64_t *ret_offset, struct error *err)
{
    const char *last = http_header(x, "Last-Event-ID");
    uint64_t offset = 0;
    if (last != NULL && !api_parse_uint(last, 0, INT64_MAX, &offset))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "Last-Event-ID: \"%.40s\" is none of this stream's", last);
    return api_query_uint(x, "offset", 0, INT64_MAX, offset, ret_offset, err);
}

int v0_process_logs_stream(struct http_exchange *x, const struct route_params *params, void *ctx,
                           struct error *err)
{
    _cleanup_output_ struct process_output *output = NULL;
    struct process_place place = process_place(params, ctx);
    struct stream_style style = {.shape = STREAM_LINES, .extras = true, .result = result_json};
    struct agent_process process;
    uint64_t offset;
    bool go_on, hold;

    asked_shape(x, &style.shape);
    if (read_offset(x, &offset, err) < 0 || api_query_bool(x, "follow", true, &go_on, err) < 0 ||
        api_query_bool(x, "hold", false, &hold, err) < 0)
        return -1;
    uint64_t flags = (go_on ? 0 : FOLLOW_ONCE) | (hold ? FOLLOW_HOLD : 0);
    if (process_output_follow(place.sandboxes, place.workspace, place.sandbox, place.process,
                              offset, flags, http_arena(x), &process, &output, err) < 0)
        return -1;
    return process_stream_reply(x, output, &process, &style, err);
}
