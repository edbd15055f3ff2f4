/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The watchers that clients have open: watches whose events wait until they are fetched.
 *
 * There are at most WATCHERS_MAX of one workspace, and in one sandbox as many as its agent has
 * workers for (WATCH_WORKERS_MAX, with streams). One that nobody asks for WATCHER_IDLE_MS, or whose
 * sandbox is gone, goes by itself: clients that crash leave theirs behind.
 */

#include "loop/loop.h"

struct api;
struct watcher;

struct connect_watchers { /* start from a zeroed struct */
    struct watcher *first;
    const struct api *api;
    struct timer sweep; /* runs while there are any */
};

/* Before the sandboxes go. */
void connect_watchers_release(struct connect_watchers *watchers);
