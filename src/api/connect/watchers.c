/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watchers. One holds a connection to the sandbox, and what happens waits there, in the agent's
 * bounded queue, until somebody asks: so it costs this process a descriptor and its place in a
 * list. It stands in the list from before the first wait on, or many at once would pass the bound.
 */

#include "api/connect/watchers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/connect/connect.h"
#include "api/connect/message.h"
#include "api/connect/watch.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"

enum {
    EVENTS_MAX = 1000, /* in one answer */
    DRAIN_MS = 1,      /* without an event: that was all */
    SWEEP_MS = 10 * 1000,
};

struct watcher {
    struct watcher *next;
    char id[WATCHER_ID_LEN + 1];
    char sandbox[SANDBOX_ID_LEN + 1];
    char workspace[NAME_MAX_LEN + 1];
    char *path;
    bool include_entry;
    bool busy; /* somebody waits with it in hand */
    int64_t used_ms;
    struct file_transfer *watch; /* NULL: not begun yet */
};

/* --- their life --- */

static void watcher_free(struct watcher *watcher)
{
    file_transfer_end(watcher->watch);
    free(watcher->path);
    free(watcher);
}

static void take_out(struct connect_watchers *all, struct watcher *watcher)
{
    struct watcher **at = &all->first;
    while (*at != watcher)
        at = &(*at)->next;
    *at = watcher->next;
    watcher_free(watcher);
}

static bool is_over(const struct api *api, const struct watcher *watcher)
{
    return !watcher->busy && (loop_now(api->loop) - watcher->used_ms >= WATCHER_IDLE_MS ||
                              !sandboxes_has(api->sandboxes, watcher->sandbox));
}

static void sweep(struct timer *timer)
{
    struct connect_watchers *all = container_of(timer, struct connect_watchers, sweep);
    for (struct watcher *watcher = all->first, *next; watcher != NULL; watcher = next) {
        next = watcher->next;
        if (is_over(all->api, watcher))
            take_out(all, watcher);
    }
    if (all->first != NULL)
        timer_start(all->api->loop, timer, SWEEP_MS, sweep);
}

void connect_watchers_release(struct connect_watchers *watchers)
{
    timer_stop(&watchers->sweep);
    while (watchers->first != NULL)
        take_out(watchers, watchers->first);
}

static int check_count(const struct connect_watchers *all, const char *workspace, struct error *err)
{
    size_t count = 0;
    for (const struct watcher *watcher = all->first; watcher != NULL; watcher = watcher->next)
        count += strcmp(watcher->workspace, workspace) == 0;
    if (count >= WATCHERS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "the workspace has %d watchers open already: remove some", WATCHERS_MAX);
    return 0;
}

/* In the list, busy, and without a watch. */
static struct watcher *put_in(const struct connect_box *box, const struct watch_request *request,
                              struct error *err)
{
    struct connect_watchers *all = box->api->watchers;
    if (check_count(all, box->workspace, err) < 0)
        return NULL;
    struct watcher *watcher = calloc(1, sizeof(*watcher));
    if (watcher != NULL)
        watcher->path = strdup(request->path);
    if (watcher == NULL || watcher->path == NULL) {
        free(watcher);
        error_sys(err, "a watcher");
        return NULL;
    }
    random_id(watcher->id, WATCHER_ID_LEN);
    snprintf(watcher->sandbox, sizeof(watcher->sandbox), "%s", box->sandbox);
    snprintf(watcher->workspace, sizeof(watcher->workspace), "%s", box->workspace);
    watcher->include_entry = request->include_entry;
    watcher->busy = true;
    watcher->next = all->first;
    all->first = watcher;
    all->api = box->api;
    if (all->sweep.loop == NULL)
        timer_start(box->api->loop, &all->sweep, SWEEP_MS, sweep);
    return watcher;
}

static void let_go(const struct connect_box *box, struct watcher *watcher)
{
    watcher->busy = false;
    watcher->used_ms = loop_now(box->api->loop);
}

/* --- calls --- */

int create_watcher_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err)
{
    struct watch_request request;
    if (watch_request_read(x, box, message, &request, err) < 0)
        return -1;
    struct watcher *watcher = put_in(box, &request, err);
    if (watcher == NULL)
        return -1;
    if (watch_request_begin(x, box, &request, &watcher->watch, err) < 0) {
        take_out(box->api->watchers, watcher);
        return -1;
    }
    let_go(box, watcher);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_strcpy(doc, root, "watcherId", watcher->id);
    return connect_reply(x, doc, err);
}

/* One that nobody else has in hand; of this sandbox. */
static struct watcher *find(const struct connect_box *box, yyjson_val *message, struct error *err)
{
    const char *id = NULL;
    if (message_text(message, "", "watcherId", &id, err) < 0)
        return NULL;
    struct watcher *watcher = id == NULL ? NULL : box->api->watchers->first;
    while (watcher != NULL &&
           (strcmp(watcher->id, id) != 0 || strcmp(watcher->sandbox, box->sandbox) != 0))
        watcher = watcher->next;
    if (watcher == NULL)
        error_set(err, ERROR_WATCHER_NOT_FOUND, "the sandbox has no watcher \"%.40s\"",
                  id == NULL ? "" : id);
    else if (watcher->busy)
        error_set(err, ERROR_CONFLICT, "the watcher's events are being fetched by another call");
    return watcher == NULL || watcher->busy ? NULL : watcher;
}

static int drain(const struct connect_box *box, struct watcher *watcher, struct arena *arena,
                 yyjson_mut_doc *doc, yyjson_mut_val *events, struct error *err)
{
    struct file_event event;
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        if (file_watch_next(watcher->watch, DRAIN_MS, &event, err) < 0)
            return err->code == ERROR_TIMEOUT ? 0 : -1;
        yyjson_mut_val *object =
            watch_event_json(box, arena, doc, watcher->path, watcher->include_entry, &event);
        if (object != NULL)
            yyjson_mut_arr_append(events, object);
    }
    return 0;
}

/* A watch that has ended tells what it still knows; the next call finds it gone. */
int get_watcher_events_method(struct http_exchange *x, const struct connect_box *box,
                              yyjson_val *message, struct error *err)
{
    struct watcher *watcher = find(box, message, err);
    if (watcher == NULL)
        return -1;
    struct error why = {0};
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *events = yyjson_mut_obj_add_arr(doc, root, "events");
    watcher->busy = true;
    int rc = drain(box, watcher, http_arena(x), doc, events, &why);
    let_go(box, watcher);
    if (rc < 0 && why.code == ERROR_CANCELLED) {
        *err = why;
        return -1;
    }
    if (rc < 0) {
        const char *path = arena_strdup(http_arena(x), watcher->path);
        take_out(box->api->watchers, watcher);
        if (yyjson_mut_arr_size(events) == 0)
            return watch_ended(box, http_arena(x), path, &why, err);
    }
    return connect_reply(x, doc, err);
}

int remove_watcher_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err)
{
    struct watcher *watcher = find(box, message, err);
    if (watcher == NULL)
        return -1;
    take_out(box->api->watchers, watcher);
    return connect_reply(x, NULL, err);
}
