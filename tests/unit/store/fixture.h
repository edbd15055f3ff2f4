/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A database in a folder of its own, and what was loaded from it. */

#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

enum { LOADED_MAX = 1200 };

struct fixture {
    char dir[64];
    char path[96];
    struct store *store;
};

struct loaded {
    size_t sandbox_count, event_count;
    char ids[LOADED_MAX][16];
    char names[LOADED_MAX][64];
    char statuses[LOADED_MAX][16];
    struct {
        char id[16];
        char type[32];
        uint64_t revision;
    } events[LOADED_MAX];
    char env[256]; /* of the last one */
    size_t env_len;
    char words[256];           /* of the last one: its first label, and the other words */
    struct store_sandbox last; /* only its numbers are valid */
    bool last_cpu_is_null;
};

int fixture_setup(void **state); /* store is open */
int fixture_teardown(void **state);
void fixture_reopen(struct fixture *f);

struct store_sandbox make_sandbox(const char *id, const char *name);
struct store_event make_event(uint64_t revision);
void load(struct store *store, struct loaded *ret); /* fails the test when it cannot */
