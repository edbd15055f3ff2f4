/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps the volume at the size that it should have (volume_plan.h): looks at it while sandboxes
 * run, and for a minute afterwards, and has a child resize it. Nothing wakes up on an idle server.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "warden/job.h"
#include "warden/volume_plan.h"

struct warden;

struct volume_keeper {
    struct volume_state state; /* as last seen */
    bool known;                /* it was seen */
    uint64_t looked_ms;
    uint64_t look_ms;  /* when to look again; 0: when somebody asks */
    uint64_t quiet_ms; /* until when to look although nothing runs */
    uint64_t hold_ms;  /* no resize before, since one has failed */
    uint64_t wanted;   /* what the child makes it */
    bool can_allocate; /* the file has holes that a full disk has left */
    struct job job;    /* pid 0: no child runs */
};

/* For a volume that has just been opened: allocates what is missing of its file. */
void volume_keeper_open(struct warden *warden);

/* Looks now, unless that was done a moment ago; starts a resize if it is time. */
void volume_keeper_look(struct warden *warden);

/* Something begins to write, or has been removed: looks at once, and goes on looking. */
void volume_keeper_wake(struct warden *warden);

/* What the warden's loop does when look_ms has come. */
void volume_keeper_timer(struct warden *warden);

/* Ends the child and waits for it: before the volume is unmounted. */
void volume_keeper_close(struct warden *warden);
