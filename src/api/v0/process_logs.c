/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /process/{pid}/logs: what a process has written so far, as far as it is kept. As JSON both
 * streams, for reading; as raw bytes one of them, exact.
 */

#include "api/v0/process.h"

#include <inttypes.h>
#include <string.h>

#include "api/handlers.h"
#include "api/v0/process_json.h"
#include "base/cleanup.h"

static int read_log(struct http_exchange *x, const struct process_place *place, unsigned stream,
                    struct process_log *ret_log, struct error *err)
{
    return sandbox_process_log(place->sandboxes, place->workspace, place->sandbox, place->process,
                               stream, http_arena(x), ret_log, err);
}

static int which_stream(struct http_exchange *x, unsigned *ret_stream, struct error *err)
{
    static const struct {
        const char *name;
        unsigned stream;
    } rows[] = {{"stdout", LOG_STDOUT}, {"stderr", LOG_STDERR}, {"both", LOG_BOTH}};
    const char *text = NULL;
    if (http_query(x, "stream", &text, err) < 0)
        return -1;
    for (size_t i = 0; text != NULL && i < ARRAY_LEN(rows); i++)
        if (strcmp(text, rows[i].name) == 0) {
            *ret_stream = rows[i].stream;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "stream: raw bytes are of one stream; say stdout, stderr or both");
}

static int reply_raw(struct http_exchange *x, const struct process_place *place, struct error *err)
{
    struct process_log log;
    unsigned stream = 0;
    if (which_stream(x, &stream, err) < 0 || read_log(x, place, stream, &log, err) < 0)
        return -1;
    http_set_header(x, "X-Cella-Dropped", "%" PRIu64, log.dropped);
    return http_reply(x, 200, "application/octet-stream", log.data.data, log.data.len, err);
}

int v0_process_logs(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    struct process_place place = process_place(params, ctx);
    struct process_log out, errors, both;
    struct agent_process process;

    if (http_accepts(x, "application/octet-stream"))
        return reply_raw(x, &place, err);
    if (sandbox_process_get(place.sandboxes, place.workspace, place.sandbox, place.process,
                            http_arena(x), &process, err) < 0 ||
        read_log(x, &place, LOG_STDOUT, &out, err) < 0 ||
        read_log(x, &place, LOG_STDERR, &errors, err) < 0 ||
        read_log(x, &place, LOG_BOTH, &both, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_uint(doc, root, "pid", process.pid);
    process_output_json(http_arena(x), doc, root, &out, &errors, &both);
    return api_reply_json(x, 200, doc, err);
}
