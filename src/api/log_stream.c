/* SPDX-License-Identifier: Apache-2.0 */

/* One batch at a time, each with memory of its own: a stream may last for days. */

#include "api/log_stream.h"

#include "api/call.h"
#include "api/record.h"
#include "base/cleanup.h"

enum { LAST_MAX = 4096 }; /* bytes of the line on why a stream ends */

void log_stream_add(struct arena *arena, yyjson_mut_doc *entry, bool events, struct buf *out)
{
    struct slice text = json_write(arena, entry, false);
    if (text.data == NULL)
        return;
    buf_adds(out, events ? "data: " : "");
    buf_add(out, text.data, text.len);
    buf_adds(out, events ? "\n\n" : "\n");
}

static int send_batch(struct http_exchange *x, log_stream_next *next, void *reader, bool events,
                      size_t batch_max, bool *ret_ended, struct error *err)
{
    struct arena *arena = arena_new_for(http_memory(x));
    _cleanup_buf_ struct buf out = BUF_INIT(batch_max);
    int rc = next(reader, arena, events, &out, ret_ended, err);
    if (rc == 0) {
        if (out.len == 0 && events)
            buf_adds(&out, ": keepalive\n\n");
        rc = buf_check(&out, "the log", err);
    }
    if (rc == 0 && out.len > 0)
        rc = http_reply_write(x, out.data, out.len, err);
    arena_free(arena);
    return rc;
}

/* The answer has begun: this is the only place left to say that the server goes. */
static int send_end(struct http_exchange *x, bool events, struct error *err)
{
    struct error why = *err;
    if (why.code != ERROR_CANCELLED || !http_can_tell(x, &why))
        return -1;
    struct arena *arena = http_arena(x);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *told = yyjson_mut_obj_add_obj(doc, root, "error");
    yyjson_mut_obj_add_str(doc, told, "code", error_name(why.code));
    yyjson_mut_obj_add_str(doc, told, "message", why.message);
    _cleanup_buf_ struct buf out = BUF_INIT(LAST_MAX);
    record_failure(x, &why);
    buf_adds(&out, events ? "event: error\n" : "");
    log_stream_add(arena, doc, events, &out);
    if (buf_check(&out, "the log", err) < 0)
        return -1;
    return http_reply_write(x, out.data, out.len, err);
}

int log_stream_send(struct http_exchange *x, log_stream_next *next, void *reader, size_t batch_max,
                    struct error *err)
{
    bool events = http_accepts(x, "text/event-stream");
    http_set_header(x, "Cache-Control", "no-cache");
    if (http_reply_start(x, 200, events ? "text/event-stream" : "application/x-ndjson", -1, err) <
        0)
        return -1;
    for (bool ended = false; !ended;) {
        if (send_batch(x, next, reader, events, batch_max, &ended, err) == 0)
            continue;
        if (send_end(x, events, err) < 0)
            return -1;
        break;
    }
    return http_reply_end(x, err);
}
