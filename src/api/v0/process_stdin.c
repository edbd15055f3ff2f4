/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /process/{pid}/stdin: the input of a process that was started with one. The body goes to the
 * process piece by piece, as fast as it reads: what has not been read stays with the client.
 */

#include "api/handlers.h"
#include "api/v0/process.h"
#include "base/cleanup.h"
#include "base/limits.h"

int v0_process_stdin(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct process_place place = process_place(params, ctx);
    struct agent_process process;
    uint64_t total = 0;
    ssize_t n = 0;

    if (sandbox_process_get(place.sandboxes, place.workspace, place.sandbox, place.process,
                            http_arena(x), &process, err) < 0)
        return -1;
    char *piece = arena_alloc(http_arena(x), PROCESS_INPUT_CHUNK);
    do { /* an empty body, too, is told whether there is anybody to read it */
        n = http_body_read(x, piece, PROCESS_INPUT_CHUNK, err);
        if (n < 0 ||
            ((n > 0 || total == 0) &&
             sandbox_process_write(place.sandboxes, place.workspace, place.sandbox, place.process,
                                   (struct slice){piece, (size_t)n}, err) < 0))
            return -1;
        total += (uint64_t)n;
    } while (n > 0);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_uint(doc, root, "pid", process.pid);
    yyjson_mut_obj_add_uint(doc, root, "bytes", total);
    yyjson_mut_obj_add_str(doc, root, "message", "Input written successfully");
    return api_reply_json(x, 200, doc, err);
}

int v0_process_stdin_end(struct http_exchange *x, const struct route_params *params, void *ctx,
                         struct error *err)
{
    struct process_place place = process_place(params, ctx);
    struct agent_process process;

    if (sandbox_process_get(place.sandboxes, place.workspace, place.sandbox, place.process,
                            http_arena(x), &process, err) < 0 ||
        sandbox_process_end_input(place.sandboxes, place.workspace, place.sandbox, place.process,
                                  err) < 0)
        return -1;
    return process_reply_message(x, process.pid, "Input ended successfully", err);
}
