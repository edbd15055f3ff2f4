/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watching directories.
 *
 * A watcher is a watch whose events are fetched: it holds a connection to the sandbox, and what
 * happens waits there, in the agent's bounded queue, until somebody asks. So a watcher costs this
 * process nothing but its place in a list, which is bounded; one that nobody has asked for a while,
 * or whose sandbox is gone, gives way to the next.
 */

#include "api/connect/watch.h"

#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/connect/connect.h"
#include "api/connect/message.h"
#include "api/connect/watchers.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "sandbox/file_watch.h"

enum { EVENTS_MAX = 1000, WATCHER_IDLE_MS = 10 * 60 * 1000, DRAIN_MS = 1 };

struct watcher {
    struct watcher *next;
    char id[WATCHER_ID_LEN + 1];
    char sandbox[SANDBOX_ID_LEN + 1];
    char *path;
    bool include_entry;
    bool busy; /* somebody is fetching */
    int64_t used_ms;
    struct file_transfer *watch;
};

struct watch_request {
    const char *path;
    bool recursive, include_entry;
};

static int read_request(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                        struct watch_request *ret, struct error *err)
{
    const char *text = NULL;
    *ret = (struct watch_request){0};
    if (message_text(message, "", "path", &text, err) < 0 ||
        message_bool(message, "", "recursive", &ret->recursive, err) < 0 ||
        message_bool(message, "", "includeEntry", &ret->include_entry, err) < 0)
        return -1;
    return connect_path(box, http_arena(x), text, &ret->path, err);
}

/* Only directories are watched. */
static int begin(struct http_exchange *x, const struct connect_box *box,
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

/* --- events --- */

static const char *const event_names[] = {
    [OP_CREATE] = "EVENT_TYPE_CREATE", [OP_WRITE] = "EVENT_TYPE_WRITE",
    [OP_REMOVE] = "EVENT_TYPE_REMOVE", [OP_RENAME] = "EVENT_TYPE_RENAME",
    [OP_CHMOD] = "EVENT_TYPE_CHMOD",
};

/* The name is the path below the watched directory. NULL: an event that they do not know. */
static yyjson_mut_val *event_json(const struct connect_box *box, struct arena *arena,
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
        event_json(box, arena, doc, request->path, request->include_entry, event);
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
        else if (why.code == ERROR_CANCELLED) {
            *err = why;
            return -1;
        } else if (why.code != ERROR_TIMEOUT)
            return connect_stream_end(stream, &why, err);
        else if (!connect_stream_is_over(stream))
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
        read_request(x, box, message, &request, err) < 0 ||
        begin(x, box, &request, &watch, err) < 0)
        return -1;
    int rc = connect_stream_start(&stream, err);
    if (rc == 0)
        rc = connect_stream_send_text(&stream, slice_of("{\"start\":{}}"), err);
    if (rc == 0)
        rc = pass_on(&stream, box, &request, watch, err);
    file_transfer_end(watch);
    return rc;
}

/* --- watchers --- */

static void watcher_free(struct watcher *watcher)
{
    file_transfer_end(watcher->watch);
    free(watcher->path);
    free(watcher);
}

/* Those that nobody has asked for a while, or whose sandbox is gone. */
static void expire(const struct api *api, int64_t now)
{
    struct watcher **at = &api->watchers->first;
    while (*at != NULL) {
        struct watcher *watcher = *at;
        if (watcher->busy || (now - watcher->used_ms < WATCHER_IDLE_MS &&
                              sandboxes_has(api->sandboxes, watcher->sandbox))) {
            at = &watcher->next;
            continue;
        }
        *at = watcher->next;
        api->watchers->count--;
        watcher_free(watcher);
    }
}

void connect_watchers_release(struct connect_watchers *watchers)
{
    while (watchers->first != NULL) {
        struct watcher *watcher = watchers->first;
        watchers->first = watcher->next;
        watcher_free(watcher);
    }
    watchers->count = 0;
}

int create_watcher_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err)
{
    struct connect_watchers *all = box->api->watchers;
    struct watch_request request;
    expire(box->api, loop_now(http_loop(x)));
    if (all->count >= WATCHERS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d watchers are open already", WATCHERS_MAX);
    if (read_request(x, box, message, &request, err) < 0)
        return -1;
    struct watcher *watcher = calloc(1, sizeof(*watcher));
    if (watcher != NULL)
        watcher->path = strdup(request.path);
    if (watcher == NULL || watcher->path == NULL) {
        free(watcher);
        return error_sys(err, "a watcher");
    }
    if (begin(x, box, &request, &watcher->watch, err) < 0) {
        watcher_free(watcher);
        return -1;
    }
    random_id(watcher->id, WATCHER_ID_LEN);
    snprintf(watcher->sandbox, sizeof(watcher->sandbox), "%s", box->sandbox);
    watcher->include_entry = request.include_entry;
    watcher->used_ms = loop_now(http_loop(x));
    watcher->next = all->first;
    all->first = watcher;
    all->count++;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_strcpy(doc, root, "watcherId", watcher->id);
    return connect_reply(x, doc, err);
}

static struct watcher **find(const struct connect_box *box, yyjson_val *message, struct error *err)
{
    const char *id = NULL;
    if (message_text(message, "", "watcherId", &id, err) < 0)
        return NULL;
    for (struct watcher **at = &box->api->watchers->first; id != NULL && *at != NULL;
         at = &(*at)->next)
        if (strcmp((*at)->id, id) == 0 && strcmp((*at)->sandbox, box->sandbox) == 0)
            return at;
    error_set(err, ERROR_WATCHER_NOT_FOUND, "the sandbox has no watcher \"%.40s\"",
              id == NULL ? "" : id);
    return NULL;
}

static int drain(const struct connect_box *box, struct watcher *watcher, struct arena *arena,
                 yyjson_mut_doc *doc, yyjson_mut_val *events, struct error *err)
{
    struct file_event event;
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        struct error why = {0};
        if (file_watch_next(watcher->watch, DRAIN_MS, &event, &why) < 0) {
            if (why.code == ERROR_TIMEOUT)
                return 0;
            *err = why;
            return -1;
        }
        yyjson_mut_val *object =
            event_json(box, arena, doc, watcher->path, watcher->include_entry, &event);
        if (object != NULL)
            yyjson_mut_arr_append(events, object);
    }
    return 0;
}

int get_watcher_events_method(struct http_exchange *x, const struct connect_box *box,
                              yyjson_val *message, struct error *err)
{
    struct watcher **at = find(box, message, err);
    if (at == NULL)
        return -1;
    struct watcher *watcher = *at;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *events = yyjson_mut_obj_add_arr(doc, root, "events");
    if (watcher->busy)
        return error_set(err, ERROR_CONFLICT, "the watcher's events are being fetched already");
    watcher->busy = true;
    int rc = drain(box, watcher, http_arena(x), doc, events, err);
    watcher->busy = false;
    watcher->used_ms = loop_now(http_loop(x));
    return rc < 0 ? -1 : connect_reply(x, doc, err);
}

int remove_watcher_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err)
{
    struct watcher **at = find(box, message, err);
    if (at == NULL)
        return -1;
    struct watcher *watcher = *at;
    if (watcher->busy)
        return error_set(err, ERROR_CONFLICT, "the watcher's events are being fetched");
    *at = watcher->next;
    box->api->watchers->count--;
    watcher_free(watcher);
    return connect_reply(x, NULL, err);
}
