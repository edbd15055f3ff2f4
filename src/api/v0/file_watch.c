/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /watch/filesystem/{path}: events as JSON lines, or as server-sent events for whoever accepts
 * those. The stream lasts until the client hangs up, the sandbox stops or the directory goes.
 */

#include "api/v0/file_watch.h"

#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/record.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/file_watch.h"

enum { KEEPALIVE_MS = 30 * 1000, LINE_MAX_BYTES = 128 * 1024 };

static int send_line(struct http_exchange *x, bool events, struct slice line, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(LINE_MAX_BYTES);
    if (events)
        buf_adds(&out, "data: ");
    buf_add(&out, line.data, line.len);
    buf_adds(&out, events ? "\n\n" : "\n");
    if (buf_check(&out, "an event", err) < 0)
        return -1;
    return http_reply_write(x, out.data, out.len, err);
}

/* An arena of its own: the exchange's would grow for as long as somebody watches. */
static int send_event(struct http_exchange *x, bool events, const struct file_event *event,
                      struct error *err)
{
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "op", file_op_text(event->op));
    api_add_text(arena, doc, root, "name", "nameBase64",
                 slice_of(event->name != NULL ? event->name : ""));
    api_add_text(arena, doc, root, "path", "pathBase64", slice_of(event->dir));
    if (event->text != NULL)
        json_add_lossy(doc, root, "error", slice_of(event->text));
    else
        yyjson_mut_obj_add_null(doc, root, "error");
    int rc = send_line(x, events, json_write(arena, doc, false), err);
    arena_free(arena);
    return rc;
}

static int send_keepalive(struct http_exchange *x, bool events, const char *line, struct error *err)
{
    static const char comment[] = ": keepalive\n\n";
    if (events)
        return http_reply_write(x, comment, sizeof(comment) - 1, err);
    return send_line(x, false, slice_of(line), err);
}

static int pass_on(struct http_exchange *x, struct file_transfer *watch, bool events,
                   const char *keepalive, const char *path, struct error *err)
{
    for (;;) {
        struct file_event event;
        struct error why = {0};
        int rc = 0;
        if (file_watch_next(watch, KEEPALIVE_MS, &event, &why) == 0)
            rc = send_event(x, events, &event, err);
        else if (why.code == ERROR_TIMEOUT)
            rc = send_keepalive(x, events, keepalive, err);
        else if (why.code == ERROR_UNAVAILABLE || http_is_ending(x)) {
            const char *text =
                why.code == ERROR_CANCELLED ? "the server is shutting down" : "the watch has ended";
            http_can_tell(x, &why);
            record_failure(x, &why);
            event = (struct file_event){OP_OVERFLOW, path, NULL, text};
            return send_event(x, events, &event, err) < 0 ? -1 : http_reply_end(x, err);
        } else {
            *err = why;
            return -1;
        }
        if (rc < 0)
            return -1;
    }
}

int file_watch_stream(struct http_exchange *x, const struct file_place *place, bool recursive,
                      const char *keepalive, struct error *err)
{
    _cleanup_(cleanup_file_transfer) struct file_transfer *watch = NULL;
    const char *patterns = NULL;
    struct slice ignore;
    if (http_query(x, "ignore", &patterns, err) < 0 ||
        api_list(http_arena(x), "ignore", patterns, &ignore, err) < 0 ||
        file_watch_begin(place->sandboxes, place->workspace, place->sandbox, place->path, recursive,
                         ignore, &watch, err) < 0)
        return -1;
    bool events = http_accepts(x, "text/event-stream");
    http_set_header(x, "Cache-Control", "no-store");
    if (http_reply_start(x, 200, events ? "text/event-stream" : "application/x-ndjson", -1, err) <
            0 ||
        send_keepalive(x, events, keepalive, err) < 0)
        return -1;
    return pass_on(x, watch, events, keepalive, place->path, err);
}

int v0_file_watch(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    struct file_place place;
    bool recursive;
    if (file_place_find(x, params, ctx, &place, err) < 0 ||
        api_query_bool(x, "recursive", false, &recursive, err) < 0)
        return -1;
    recursive |= file_watch_suffix(x, &place);
    return file_watch_stream(x, &place, recursive, "{\"op\":\"KEEPALIVE\"}", err);
}

bool file_watch_suffix(struct http_exchange *x, struct file_place *place)
{
    static const char suffix[] = "/**";
    size_t len = strlen(place->path), suffix_len = sizeof(suffix) - 1;
    if (len < suffix_len || strcmp(place->path + len - suffix_len, suffix) != 0)
        return false;
    place->path = len == suffix_len ? "/" : arena_dup(http_arena(x), place->path, len - suffix_len);
    return true;
}
