/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The watchers that clients have open (connect/watch.c). */

#include <stddef.h>

struct watcher;

enum { WATCHERS_MAX = 1024, WATCHER_ID_LEN = 20 };

struct connect_watchers { /* start from a zeroed struct */
    struct watcher *first;
    size_t count;
};

/* Before the sandboxes go. */
void connect_watchers_release(struct connect_watchers *watchers);
