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

static int read_log(struct http_exchange *x, const struct api_call *call, const char *name,
                    uint64_t pid, unsigned stream, struct process_log *ret_log, struct error *err)
{
    return sandbox_process_log(call->api->sandboxes, call->workspace, name, pid, stream,
                               http_arena(x), ret_log, err);
}

static int which_stream(struct http_exchange *x, unsigned *ret_stream, struct error *err)
{
    const char *text = NULL;
    if (http_query(x, "stream", &text, err) < 0)
        return -1;
    bool out = text != NULL && strcmp(text, "stdout") == 0;
    if (!out && (text == NULL || strcmp(text, "stderr") != 0))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "stream: raw bytes are of one stream; say stdout or stderr");
    *ret_stream = out ? LOG_STDOUT : LOG_STDERR;
    return 0;
}

static int reply_raw(struct http_exchange *x, const struct api_call *call, const char *name,
                     uint64_t pid, struct error *err)
{
    struct process_log log;
    unsigned stream;
    if (which_stream(x, &stream, err) < 0 || read_log(x, call, name, pid, stream, &log, err) < 0)
        return -1;
    http_set_header(x, "X-Cella-Dropped", "%" PRIu64, log.dropped);
    return http_reply(x, 200, "application/octet-stream", log.data.data, log.data.len, err);
}

int v0_process_logs(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "name");
    struct process_log out, errors;
    uint64_t pid;

    if (process_pid(params, &pid, err) < 0)
        return -1;
    if (http_accepts(x, "application/octet-stream"))
        return reply_raw(x, call, name, pid, err);
    if (read_log(x, call, name, pid, LOG_STDOUT, &out, err) < 0 ||
        read_log(x, call, name, pid, LOG_STDERR, &errors, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_uint(doc, root, "pid", pid);
    process_output_json(http_arena(x), doc, root, &out, &errors);
    return api_reply_json(x, 200, doc, err);
}
