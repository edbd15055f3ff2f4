/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Output, event by event, in the shape that was asked for. A shape is a row of functions that
 * append to a buffer; what they share is that text has to be whole: a character that a program
 * wrote in two pieces is told in one.
 */

#include "api/process_stream.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/record.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum {
    KEEPALIVE_MS = 20 * 1000,
    LINE_MAX_BYTES = 64 * 1024, /* a line that is longer is told in pieces */
    OUT_MAX = 8 << 20,          /* one event: at worst every byte becomes six, and base64 */
};

struct reply {
    struct http_exchange *x;
    const struct stream_style *style;
    struct buf out;
    struct buf lines[2]; /* STREAM_LINES: what has begun, of each stream */
    char cut[2][4];      /* the beginning of a character, of each stream */
    unsigned char cut_len[2];
    uint64_t offset; /* of what was told */
};

static const char *const stream_names[] = {"stdout", "stderr"};

/* --- text that ends where a character does --- */

/* How many bytes at the end are the beginning of a character that is not whole. */
static size_t unfinished(const char *data, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char c = (unsigned char)data[len - back];
        if (c < 0x80)
            return 0;
        if (c >= 0xc0) {
            size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
            return need > back ? back : 0;
        }
    }
    return 0;
}

/* --- objects: ndjson and events --- */

static void add_object(struct reply *r, const char *type, yyjson_mut_doc *doc)
{
    size_t len;
    char *text = yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, &len);
    if (text == NULL)
        return;
    if (r->style->shape == STREAM_EVENTS)
        buf_addf(&r->out, "id: %" PRIu64 "\nevent: %s\ndata: ", r->offset, type);
    buf_add(&r->out, text, len);
    buf_adds(&r->out, r->style->shape == STREAM_EVENTS ? "\n\n" : "\n");
    free(text);
}

static void add_typed(struct reply *r, const char *type, struct slice data, bool exact)
{
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "type", type);
    bool lossy = json_add_lossy(doc, root, "data", data);
    if (r->style->extras && lossy && exact) {
        struct slice base64 = json_base64_encode(arena, data);
        yyjson_mut_obj_add_strn(doc, root, "dataBase64", base64.data, base64.len);
    }
    if (r->style->extras)
        yyjson_mut_obj_add_uint(doc, root, "offset", r->offset);
    add_object(r, type, doc);
    arena_free(arena);
}

/* What was kept of a character that the other stream, or the end, has cut off for good. */
static void flush_cut(struct reply *r, unsigned stream)
{
    if (r->cut_len[stream] == 0)
        return;
    struct slice text = {r->cut[stream], r->cut_len[stream]};
    r->offset += text.len;
    r->cut_len[stream] = 0;
    add_typed(r, stream_names[stream], text, true);
}

static void object_data(struct reply *r, unsigned stream, struct slice data)
{
    _cleanup_buf_ struct buf joined = BUF_INIT(2 * WIRE_DATA_CHUNK);
    flush_cut(r, 1 - stream);
    if (r->cut_len[stream] > 0) {
        buf_add(&joined, r->cut[stream], r->cut_len[stream]);
        buf_add(&joined, data.data, data.len);
        data = (struct slice){joined.data, joined.len};
    }
    size_t cut = unfinished(data.data, data.len);
    data.len -= cut;
    r->offset += data.len;
    if (data.len > 0)
        add_typed(r, stream_names[stream], data, true);
    memmove(r->cut[stream], data.data + data.len, cut);
    r->cut_len[stream] = (unsigned char)cut;
}

static void object_dropped(struct reply *r, uint64_t bytes)
{
    char text[32];
    flush_cut(r, 0);
    flush_cut(r, 1);
    r->offset += bytes;
    if (!r->style->extras)
        return;
    snprintf(text, sizeof(text), "%" PRIu64, bytes);
    add_typed(r, "dropped", slice_of(text), false);
}

static void object_idle(struct reply *r)
{
    if (r->style->shape == STREAM_EVENTS)
        buf_adds(&r->out, ": keepalive\n\n");
    else
        buf_adds(&r->out, "{\"type\":\"keepalive\",\"data\":\"\"}\n");
}

static void object_end(struct reply *r, struct slice result, const struct error *why)
{
    flush_cut(r, 0);
    flush_cut(r, 1);
    if (why != NULL)
        add_typed(r, "error", slice_of(why->message), false);
    else if (result.data != NULL)
        add_typed(r, "result", result, false);
}

/* --- lines --- */

static void flush_line(struct reply *r, unsigned stream)
{
    buf_addf(&r->out, "%s:", stream_names[stream]);
    buf_add(&r->out, r->lines[stream].data, r->lines[stream].len);
    buf_addc(&r->out, '\n');
    buf_clear(&r->lines[stream]);
}

static void line_data(struct reply *r, unsigned stream, struct slice data)
{
    struct buf *line = &r->lines[stream];
    while (data.len > 0) {
        const char *end = memchr(data.data, '\n', data.len);
        size_t len = end == NULL ? data.len : (size_t)(end - data.data);
        size_t room = LINE_MAX_BYTES - line->len;
        bool whole = end != NULL && len <= room;
        len = len < room ? len : room;
        buf_add(line, data.data, len);
        data.data += len + (whole ? 1 : 0);
        data.len -= len + (whole ? 1 : 0);
        if (whole || line->len == LINE_MAX_BYTES)
            flush_line(r, stream);
    }
}

static void line_dropped(struct reply *r, uint64_t bytes)
{
    if (r->style->extras)
        buf_addf(&r->out, "[%" PRIu64 " bytes dropped]\n", bytes);
}

static void line_idle(struct reply *r)
{
    buf_adds(&r->out, "[keepalive]\n");
}

static void line_end(struct reply *r, struct slice result, const struct error *why)
{
    for (unsigned i = 0; i < 2; i++)
        if (r->lines[i].len > 0)
            flush_line(r, i);
    if (why != NULL && r->style->extras)
        buf_addf(&r->out, "[error: %s]\n", why->message);
}

/* --- frames --- */

static void add_frame(struct reply *r, enum stream_frame type, struct slice data)
{
    unsigned char header[8] = {(unsigned char)type};
    uint32_t len = htonl((uint32_t)data.len);
    memcpy(header + 4, &len, sizeof(len));
    buf_add(&r->out, header, sizeof(header));
    buf_add(&r->out, data.data, data.len);
}

static void frame_data(struct reply *r, unsigned stream, struct slice data)
{
    add_frame(r, stream == 0 ? FRAME_STDOUT : FRAME_STDERR, data);
}

static void frame_dropped(struct reply *r, uint64_t bytes)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, bytes);
    add_frame(r, FRAME_DROPPED, slice_of(text));
}

static void frame_idle(struct reply *r)
{
    add_frame(r, FRAME_KEEPALIVE, slice_of(""));
}

static void frame_end(struct reply *r, struct slice result, const struct error *why)
{
    if (why != NULL) {
        struct arena *arena = arena_new();
        yyjson_mut_val *root;
        yyjson_mut_doc *doc = api_json_new(arena, &root);
        yyjson_mut_obj_add_str(doc, root, "code", error_name(why->code));
        json_add_lossy(doc, root, "message", slice_of(why->message));
        add_frame(r, FRAME_ERROR, json_write(arena, doc, false));
        arena_free(arena);
    } else if (result.data != NULL) {
        add_frame(r, FRAME_RESULT, result);
    }
}

/* --- all of them --- */

static const struct shape {
    const char *content_type;
    void (*data)(struct reply *r, unsigned stream, struct slice data);
    void (*dropped)(struct reply *r, uint64_t bytes);
    void (*idle)(struct reply *r);
    void (*end)(struct reply *r, struct slice result, const struct error *why);
} shapes[] = {
    [STREAM_LINES] = {"text/plain; charset=utf-8", line_data, line_dropped, line_idle, line_end},
    [STREAM_NDJSON] = {"application/x-ndjson", object_data, object_dropped, object_idle,
                       object_end},
    [STREAM_EVENTS] = {"text/event-stream", object_data, object_dropped, object_idle, object_end},
    [STREAM_FRAMES] = {"application/vnd.cella.stream", frame_data, frame_dropped, frame_idle,
                       frame_end},
};

static struct slice result_text(struct reply *r, const struct agent_process *process)
{
    struct arena *arena = http_arena(r->x);
    if (r->style->result == NULL)
        return (struct slice){0};
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    r->style->result(arena, doc, root, process, r->style->ctx);
    return json_write(arena, doc, false);
}

/* Appends one event; true when it was the last. */
static bool tell(struct reply *r, const struct shape *shape, const struct output_event *event)
{
    switch (event->kind) {
    case OUTPUT_DATA:
        shape->data(r, event->stream - LOG_STDOUT, event->data);
        return false;
    case OUTPUT_DROPPED:
        shape->dropped(r, event->dropped);
        return false;
    case OUTPUT_IDLE:
        shape->idle(r);
        return false;
    case OUTPUT_END:
        shape->end(r, result_text(r, &event->process), NULL);
        return true;
    }
    return true;
}

static int send_out(struct reply *r, struct error *err)
{
    if (buf_check(&r->out, "an event", err) < 0 ||
        (r->out.len > 0 && http_reply_write(r->x, r->out.data, r->out.len, err) < 0))
        return -1;
    buf_clear(&r->out);
    return 0;
}

static int run(struct reply *r, struct process_output *output, struct error *err)
{
    const struct shape *shape = &shapes[r->style->shape];
    bool last = false;
    while (!last) {
        struct output_event event;
        struct error why;
        if (process_output_next(output, KEEPALIVE_MS, http_arena(r->x), &event, &why) == 0) {
            last = tell(r, shape, &event);
        } else if (!http_can_tell(r->x, &why)) { /* the client has gone */
            *err = why;
            return -1;
        } else {
            /* The answer has begun: this is the only place left to say it. */
            shape->end(r, (struct slice){0}, &why);
            record_failure(r->x, &why);
            last = true;
        }
        if (send_out(r, err) < 0)
            return -1;
    }
    return http_reply_end(r->x, err);
}

int process_stream_reply(struct http_exchange *x, struct process_output *output,
                         const struct agent_process *process, const struct stream_style *style,
                         struct error *err)
{
    struct reply r = {
        .x = x,
        .style = style,
        .out = BUF_INIT(OUT_MAX),
        .lines = {BUF_INIT(LINE_MAX_BYTES), BUF_INIT(LINE_MAX_BYTES)},
        .offset = process_output_offset(output),
    };
    http_set_header(x, "X-Cella-Pid", "%" PRIu64, process->pid);
    http_set_header(x, "X-Cella-Process", "%s", process->name != NULL ? process->name : "");
    api_tell_execution(x, process->execution);
    http_set_header(x, "Cache-Control", "no-cache");
    int rc = http_reply_start(x, 200, shapes[style->shape].content_type, -1, err);
    if (rc == 0)
        rc = run(&r, output, err);
    buf_release(&r.out);
    buf_release(&r.lines[0]);
    buf_release(&r.lines[1]);
    return rc;
}
