/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Measures how much disk layers take where nobody keeps count (plain directories): by walking over
 * all files, in a child, one layer at a time and each not often. The loop only hears the result.
 */

#include <stdint.h>
#include <sys/types.h>

#include "warden/plan.h"
#include "warden/source.h"

struct warden;
struct sandbox;

struct meter {
    pid_t pid;             /* 0: nothing is being measured */
    struct source channel; /* the result comes here */
    char id[PLAN_ID_MAX + 1];
};

/* Sees to it that sandbox->disk_bytes is measured, now or when those before it are, unless that
 * was done lately. */
void meter_want(struct warden *warden, struct sandbox *sandbox);

void meter_reap(struct meter *meter); /* after SIGCHLD */
void meter_stop(struct meter *meter); /* ends the child, and waits for its end */
