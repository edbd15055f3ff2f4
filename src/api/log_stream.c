/* SPDX-License-Identifier: Apache-2.0 */

/* One batch at a time, each with memory of its own: a stream may last for days. */

#include "api/log_stream.h"

#include "base/cleanup.h"

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
    struct arena *arena = arena_new();
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
        static const char last[] = "event: error\ndata: {\"error\":{\"code\":\"UNAVAILABLE\","
                                   "\"message\":\"the server is shutting down\"}}\n\n";
        if (err->code != ERROR_CANCELLED || !http_is_ending(x) ||
            (events && http_reply_write(x, last, sizeof(last) - 1, err) < 0))
            return -1;
        break;
    }
    return http_reply_end(x, err);
}
