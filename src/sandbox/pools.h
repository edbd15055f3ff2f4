/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pools: sandboxes that are made ahead of time, so that a create takes no longer than giving one a
 * name. Nobody asks for a pool: any create takes a spare sandbox from the one that fits, and is
 * made from scratch when there is none. What comes of both is the same sandbox.
 *
 * A pool fits when what the warden would make for the new sandbox differs from what the pool makes
 * only in what a claim can change: the name, cpu, memory, disk and the network policy (but not
 * whether there is one). The image, what of the trust
 * level the kernel enforces, and the sizes of mounts have to be the same. The last depend on the
 * memory when it is little (/dev/shm is at most half of it) or the root is read-only: then it has
 * to be the pool's. No two pools can be alike in all of it.
 *
 * Spares have an id, which becomes the sandbox's, and nothing else that a sandbox has: no list, no
 * call and no metric shows them. One that is not claimed within the pool's ttl is replaced. They do
 * not survive the server: the next one makes new ones.
 *
 * A pool can have interpreters running in its spares (`code`): then the default contexts of these
 * languages (code/code.h) are up before a sandbox is asked for. A sandbox with an environment of
 * its own, which they do not have, starts its own as ever.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

enum {
    POOL_SIZE_DEFAULT = 5,
    POOL_TTL_DEFAULT_S = 30 * 60,
    POOL_AT_ONCE_DEFAULT = 1,
};

struct pool_create {
    const char *name;  /* a DNS label; NULL: made of the image's name and the trust level */
    const char *image; /* NULL: host */
    struct sandbox_resources resources; /* that a spare has until it is claimed; NULL: defaults */
    struct trust_request security;
    struct network_request network; /* with or without: a sandbox brings its own policy */
    const char *code; /* languages whose interpreters run in spares, with spaces; NULL: none */
    const int64_t *size, *ttl_s, *at_once; /* NULL: the default */
    const char *actor;
};

struct pool_update {
    const int64_t *size, *ttl_s, *at_once; /* NULL: as it is */
    const char *code;                      /* the same; "": none. Another one renews the spares */
};

struct pool_info {
    const char *name;
    const char *image;
    struct sandbox_resources resources;
    struct trust_options security;
    enum net_mode network;
    const char *code; /* never NULL */
    int64_t size;     /* so many are kept ready; 0: none are made */
    int64_t ttl_s;    /* a spare older than this is replaced */
    int64_t at_once;  /* so many are made at the same time */
    int64_t created_ms, updated_ms;
    const char *created_by;

    int64_t ready, making;
    uint64_t claimed;                      /* all of these since the server was started */
    uint64_t misses;                       /* creates that fitted and found it empty */
    uint64_t refills;                      /* spares made */
    uint64_t failures;                     /* … that could not be */
    uint64_t expired;                      /* replaced, because nobody claimed them in time */
    uint64_t returned;                     /* sandboxes that were given back */
    double refill_last_ms, refill_mean_ms; /* how long making one takes; 0: none made yet */
    int64_t oldest_age_ms;                 /* of the ready ones; -1: none */
    const char *last_error;                /* of the last try, if it failed; else NULL */
};

/* INVALID_NAME, INVALID_QUANTITY, IMAGE_NOT_FOUND, INVALID_ARGUMENT, LIMIT_EXCEEDED (POOLS_MAX),
 * CODE_LANGUAGE_UNKNOWN,
 * ALREADY_EXISTS (the name, or a pool for the same image and trust level). */
int pools_create(struct sandboxes *s, const struct pool_create *request, struct arena *arena,
                 struct pool_info *ret_info, struct error *err);
/* POOL_NOT_FOUND, INVALID_ARGUMENT. */
int pools_update(struct sandboxes *s, const char *name, const struct pool_update *request,
                 struct arena *arena, struct pool_info *ret_info, struct error *err);
/* Its spares are removed; sandboxes that came from it stay. POOL_NOT_FOUND. */
int pools_delete(struct sandboxes *s, const char *name, struct error *err);
int pools_get(struct sandboxes *s, const char *name, struct arena *arena,
              struct pool_info *ret_info, struct error *err);
/* All of them, by name. */
void pools_list(struct sandboxes *s, struct arena *arena, struct pool_info **ret_items,
                size_t *ret_count);

/* As pools_create(), but one of that name that is there already is only changed: what the server
 * is started with is so, however often it is started. */
int pools_ensure(struct sandboxes *s, const struct pool_create *request, struct error *err);

/*
 * Gives a sandbox up. Nothing that ran in it, no file and no namespace ever serves somebody else:
 * it is deleted, as by sandboxes_delete(), and a pool that it could have come from counts it as
 * returned and makes a new one if it is short of any.
 */
int sandboxes_release(struct sandboxes *s, const char *workspace, const char *name,
                      const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                      struct error *err);
