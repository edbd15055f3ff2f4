/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The census: what the provider has, held against what is recorded. Recovery takes one, and so does
 * every new connection to the provider (recover.c). Others are taken every few minutes, and soon
 * after those: they find what came too late for the first one to see.
 *
 * A stranger is a sandbox, or the files of one, that belongs to no record and to no pool. Nobody
 * was ever told of it. A sandbox is entered in memory before the provider is asked to make it, and
 * leaves there after it was removed, so one that is being made, cloned or kept ready is no
 * stranger.
 */

#include <stdbool.h>

#include <uthash.h>

#include "base/error.h"
#include "sandbox/state.h"

enum { FOUND_ID_MAX = 32 }; /* a stranger's may be longer than ours are */

struct found {
    char id[FOUND_ID_MAX + 1];
    char address[NET_ADDRESS_TEXT];
    char address6[NET_ADDRESS_TEXT];
    bool running, paused;
    UT_hash_handle hh;
};

struct census { /* start from zeros */
    struct found *items;
};

/* On a coroutine: asks the provider. */
int census_take(struct sandboxes *s, struct census *census, struct error *err);
void census_release(struct census *census);
const struct found *census_find(const struct census *census, const char *id); /* NULL: not there */
bool census_running(const struct census *census, const char *id);
bool census_paused(const struct census *census, const char *id);

/* On a coroutine: removes every stranger. For a census that was taken before anything was begun. */
void census_remove_strangers(struct sandboxes *s, const struct census *census);
