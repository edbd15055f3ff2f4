/* SPDX-License-Identifier: Apache-2.0 */

/* Watching a directory as a stream, and what a watch is told as. */

#include "api/connect/watch.h"

#include <string.h>

#include "api/call.h"
#include "api/connect/connect.h"
#include "api/connect/message.h"
#include "base/cleanup.h"

int watch_request_read(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                       struct watch_request *ret_request, struct error *err)
{
    const char *text = NULL;
    struct watch_request request = {0};
    if (message_text(message, "", "path", &text, err) < 0 ||
        message_bool(message, "", "recursive", &request.recursive, err) < 0 ||
        message_bool(message, "", "includeEntry", &request.include_entry, err) < 0)
        return -1;
    if (connect_path(box, http_arena(x), text, &request.path, err) < 0)
        return -1;
    *ret_request = request;
    return 0;
}

int watch_request_begin(struct http_exchange *x, const struct connect_box *box,
                        const struct watch_request *request, struct file_transfer **ret_watch,
                        struct error *err)
{
    struct file_entry entry;
    if (connect_look(box, request->path, http_arena(x), &entry, err) < 0)
        return -1;
    if (entry.type != FILE_DIRECTORY)
        return error_set(err, ERROR_NOT_A_DIRECTORY, "%.200s: is not a directory", request->path);
    return file_watch_begin(box->api->sandboxes, box->workspace, box->sandbox, request->path,
                            request->recursive, (struct slice){0}, ret_watch, err);
}

int watch_ended(const struct connect_box *box, struct arena *arena, const char *path,
                const struct error *why, struct error *err)
{
    struct sandbox_info info;
    if (why->code == ERROR_UNAVAILABLE &&
        sandboxes_get_by_id(box->api->sandboxes, box->sandbox, arena, &info, NULL) == 0 &&
        info.status == SANDBOX_RUNNING)
        return error_set(
            err, ERROR_FILE_NOT_FOUND,
            "%.200s is no longer watched: it was removed, or the sandbox was restarted", path);
    *err = *why;
    return -1;
}

/* --- events --- */

static const char *const event_names[] = {
    [OP_CREATE] = "EVENT_TYPE_CREATE", [OP_WRITE] = "EVENT_TYPE_WRITE",
    [OP_REMOVE] = "EVENT_TYPE_REMOVE", [OP_RENAME] = "EVENT_TYPE_RENAME",
    [OP_CHMOD] = "EVENT_TYPE_CHMOD",
};

yyjson_mut_val *watch_event_json(const struct connect_box *box, struct arena *arena,
                                 yyjson_mut_doc *doc, const char *root, bool include_entry,
                                 const struct file_event *event)
{
    if (event->op >= ARRAY_LEN(event_names) || event->name == NULL)
        return NULL;
    const char *below = event->dir;
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(below, root, len) == 0)
        below += len;
    below += strspn(below, "/");
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    json_add_lossy(
        doc, object, "name",
        slice_of(arena_printf(arena, "%s%s%s", below, below[0] == '\0' ? "" : "/", event->name)));
    yyjson_mut_obj_add_str(doc, object, "type", event_names[event->op]);
    struct file_entry entry;
    const char *path =
        arena_printf(arena, "%s/%s", strcmp(event->dir, "/") == 0 ? "" : event->dir, event->name);
    if (include_entry && connect_look(box, path, arena, &entry, NULL) == 0)
        yyjson_mut_obj_add_val(doc, object, "entry",
                               connect_entry_json(arena, doc, path, &entry, box->attributes));
    return object;
}

/* --- as a stream --- */

static int send_event(struct connect_stream *stream, const struct connect_box *box,
                      const struct watch_request *request, const struct file_event *event,
                      struct error *err)
{
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *object =
        watch_event_json(box, arena, doc, request->path, request->include_entry, event);
    yyjson_mut_obj_add_val(doc, root, "filesystem", object);
    int rc = object == NULL ? 0 : connect_stream_send(stream, doc, err);
    arena_free(arena);
    return rc;
}

/* Goes on until somebody hangs up, the time is over, or the sandbox is gone. */
static int pass_on(struct connect_stream *stream, const struct connect_box *box,
                   const struct watch_request *request, struct file_transfer *watch,
                   struct error *err)
{
    for (;;) {
        struct file_event event;
        struct error why = {0};
        int64_t patience = connect_stream_patience(stream);
        int rc = 0;
        if (file_watch_next(watch, patience > 0 ? patience : 1, &event, &why) == 0)
            rc = send_event(stream, box, request, &event, err);
        else if (why.code == ERROR_CANCELLED)
            return connect_stream_fail(stream, &why, err);
        else if (why.code != ERROR_TIMEOUT) {
            struct error told;
            watch_ended(box, http_arena(stream->x), request->path, &why, &told);
            return connect_stream_end(stream, &told, err);
        } else if (!connect_stream_is_over(stream))
            rc = connect_stream_send_text(stream, slice_of("{\"keepalive\":{}}"), err);
        if (rc < 0)
            return -1;
        if (connect_stream_is_over(stream)) {
            connect_too_late(&why);
            return connect_stream_end(stream, &why, err);
        }
    }
}

int watch_dir_method(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                     struct error *err)
{
    struct connect_stream stream;
    struct watch_request request;
    struct file_transfer *watch;
    if (connect_stream_init(&stream, x, err) < 0 ||
        watch_request_read(x, box, message, &request, err) < 0 ||
        watch_request_begin(x, box, &request, &watch, err) < 0)
        return -1;
    int rc = connect_stream_start(&stream, err);
    if (rc == 0)
        rc = connect_stream_send_text(&stream, slice_of("{\"start\":{}}"), err);
    if (rc == 0)
        rc = pass_on(&stream, box, &request, watch, err);
    file_transfer_end(watch);
    return rc;
}
