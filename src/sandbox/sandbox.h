/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The domain: sandboxes, what they are meant to be, and what is becoming of them.
 *
 * `struct sandboxes` owns them all. It keeps the live state in memory, writes every change through
 * to the store before it is acknowledged, and drives the provider. Calls are made on coroutines.
 *
 * A sandbox is found by its name in a workspace or by its immutable id; one of a group
 * (sandbox/groups.h) by its id or as "group/name". What a call hands out (struct sandbox_info) is a
 * copy in the caller's arena.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"
#include "provider/provider.h"
#include "sandbox/network.h"
#include "sandbox/resources.h"
#include "sandbox/restart.h"
#include "sandbox/tenants.h"
#include "sandbox/trust.h"
#include "sandbox/lifespan.h"
#include "store/store.h"

#define SANDBOX_STATUSES(X)                                                                        \
    X(CREATING, "creating")                                                                        \
    X(RUNNING, "running")                                                                          \
    X(STARTING, "starting")                                                                        \
    X(STOPPING, "stopping")                                                                        \
    X(STOPPED, "stopped")                                                                          \
    X(PAUSING, "pausing")                                                                          \
    X(PAUSED, "paused")                                                                            \
    X(RESUMING, "resuming")                                                                        \
    X(DELETING, "deleting")                                                                        \
    X(FAILED, "failed")

enum sandbox_status {
#define X(name, text) SANDBOX_##name,
    SANDBOX_STATUSES(X)
#undef X
        SANDBOX_STATUS_COUNT
};

const char *sandbox_status_text(enum sandbox_status status);
/* INVALID_ARGUMENT lists the statuses there are. */
int sandbox_status_parse(const char *text, enum sandbox_status *ret_status, struct error *err);

/* What people and facades write on a sandbox; nothing here changes what it does. */
struct sandbox_metadata {
    struct slice labels;     /* "key=value" list; metadata.h says what they look like */
    const char *external_id; /* the client's own name for it, unique in the workspace; NULL: none */
    const char *display_name; /* NULL: none */
    const char *blaxel_spec;  /* JSON text that the Blaxel facade keeps here; NULL: none */
    const char *e2b_spec;     /* the same, E2B's */
};

struct sandbox_event {
    const char *type;
    const char *status;
    const char *message;
    int64_t time_ms;
    uint64_t revision;
};

/* The newest sample of a sandbox that runs; time_ms 0, and NAN: there is none. */
struct sandbox_load {
    int64_t time_ms;
    double cpu; /* cores */
    double memory, disk;
    uint64_t tasks;
};

struct sandbox_info {
    const char *id;
    const char *workspace;
    const char *name;
    const char *group; /* NULL: in none */
    const char *image;
    struct sandbox_resources resources; /* cpu, memory and disk are never NULL */
    struct spec_limits limits;          /* what they come to on this machine */
    struct slice auto_lower;            /* sandbox/auto_lower.h's list; empty: off */
    struct slice history;               /* sandbox/history_rules.h's list; empty: as usual */
    struct sandbox_load load;
    struct slice env;
    struct sandbox_metadata metadata;
    struct trust_options security;
    struct slice network; /* net_policy_pack()'s list; empty: none */
    bool enabled;
    enum restart_policy restart;
    bool starts_on_use; /* it is stopped, and the first request that needs it starts it */
    enum sandbox_status status;
    uint64_t revision;              /* another one after each change; shown as "rev-123" */
    int64_t created_ms, updated_ms; /* created_ms is different for each sandbox: a cursor */
    const char *created_by, *updated_by;
    const struct sandbox_event *events; /* oldest first */
    size_t event_count;
    struct lifespan lifespan;
    int64_t expires_ms;    /* Unix time of the end that comes first, as things are; 0: none */
    int64_t used_ms;       /* when it was last in use; now while it is */
    int64_t idle_since_ms; /* the same for one that is idle, and to end for that; 0: it is not */
};

/* Its status for clients whose protocol knows no restart of the server: one that starts with its
 * next use runs. */
enum sandbox_status sandbox_seen_status(const struct sandbox_info *info);

/* What it is found by in its workspace: its name, or "group/name". */
const char *sandbox_address(const struct sandbox_info *info, struct arena *arena);

struct sandboxes;

int sandboxes_new(struct loop *loop, struct store *store, int data_dir_fd,
                  struct sandboxes **ret_sandboxes, struct error *err);
/* Before sandboxes_recover(): how much may be promised (sandbox/admission.h's text) of what there
 * is (sandbox/machine.h's). "": as it is. */
int sandboxes_set_capacity(struct sandboxes *s, const char *overcommit, const char *capacity,
                           struct error *err);
/* Where the quotas of a workspace are told. A new use of one that is reached is refused:
 * TOO_MANY_SANDBOXES, LIMIT_EXCEEDED. */
void sandboxes_set_quotas(struct sandboxes *s, quotas_of *quotas, const void *ctx);
/* How much of a quota a workspace's sandboxes use; 0 for kinds that are not theirs. */
uint64_t sandboxes_quota_used(const struct sandboxes *s, const char *workspace, enum quota kind);
/* Before sandboxes_recover(): no history is kept of any. */
void sandboxes_set_history(struct sandboxes *s, bool on);
/* How large a sandbox's repository, and the files in it, may be: at most HISTORY_REPOSITORY_MAX. */
void sandboxes_set_history_size(struct sandboxes *s, uint64_t bytes);
/* On a coroutine, before serving: loads the store, adopts what runs, finishes or removes what was
 * half done. */
int sandboxes_recover(struct sandboxes *s, struct error *err);
/* Before sandboxes_stop_all(): what runs is to go on, for the next server to find. */
void sandboxes_set_keep(struct sandboxes *s, bool keep);
/* On a coroutine: stops every running sandbox (the server is going down). */
void sandboxes_stop_all(struct sandboxes *s);
void sandboxes_free(struct sandboxes *s);

/* What is in force on this machine (storage, cgroups). */
int sandboxes_about(struct sandboxes *s, struct warden_about *ret_about, struct error *err);

struct sandbox_create {
    const char *workspace;
    const char *group; /* the one that it is to be in; NULL: none */
    const char *name;  /* NULL: the server makes one up */
    const char *image;
    struct sandbox_resources resources;
    struct slice auto_lower; /* sandbox/auto_lower.h's list; empty: off */
    struct slice history;    /* sandbox/history_rules.h's list; empty: as usual */
    struct slice env;
    struct sandbox_metadata metadata;
    struct trust_request security;
    struct network_request network;
    bool enabled; /* false: it stays stopped until it is started */
    enum restart_policy restart;
    struct lifespan lifespan;
    const char *actor;
};

/* Returns as soon as it is recorded, with status creating (or stopped when not enabled); making it
 * goes on by itself. INVALID_NAME, INVALID_QUANTITY, IMAGE_NOT_FOUND, ALREADY_EXISTS (the name, the
 * external id), INVALID_ARGUMENT (env, metadata, lifespan), INVALID_DURATION, GROUP_NOT_FOUND, and
 * those of trust_resolve(). */
int sandboxes_create(struct sandboxes *s, const struct sandbox_create *request, struct arena *arena,
                     struct sandbox_info *ret_info, struct error *err);
int sandboxes_get(struct sandboxes *s, const char *workspace, const char *name, struct arena *arena,
                  struct sandbox_info *ret_info, struct error *err);

/* Whether there is one of that id, in any workspace. */
bool sandboxes_has(struct sandboxes *s, const char *id);

/* By its id alone, in whatever workspace it is: for callers whom the sandbox itself lets in.
 * SANDBOX_NOT_FOUND. */
int sandboxes_get_by_id(struct sandboxes *s, const char *id, struct arena *arena,
                        struct sandbox_info *ret_info, struct error *err);

/* The ids of all sandboxes, of every workspace, in the arena. */
const char **sandboxes_ids(struct sandboxes *s, struct arena *arena, size_t *ret_count);

/* By the client's own name for it. SANDBOX_NOT_FOUND. */
int sandboxes_get_external(struct sandboxes *s, const char *workspace, const char *external_id,
                           struct arena *arena, struct sandbox_info *ret_info, struct error *err);
/* REVISION_CONFLICT unless the sandbox has this revision. Nothing waits in here: a call that is
 * made right after it meets the sandbox as it was checked. */
int sandboxes_check_revision(struct sandboxes *s, const char *workspace, const char *name,
                             uint64_t revision, struct error *err);
/* Waits until it is neither creating, starting nor resuming, and tells what has become of it. */
int sandboxes_settle(struct sandboxes *s, const char *workspace, const char *name,
                     struct arena *arena, struct sandbox_info *ret_info, struct error *err);
/* Waits until it is neither stopping nor pausing: stopped, paused, or not after all. */
int sandboxes_rest(struct sandboxes *s, const char *workspace, const char *name,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err);

struct sandbox_filter {
    const char *workspace;
    const char *group; /* only those of this one; NULL: all, "": those in none */
    bool by_status;
    enum sandbox_status status;
    struct slice labels;  /* "key=value" list: all of them have to be there */
    const char *contains; /* in the name or the display name; NULL: anything */
    bool newest_first;    /* else oldest first */
    int64_t after_ms; /* created_ms of the last one seen: goes on behind it; 0: from the start */
    size_t limit, offset;
};
/* In the order they were made in, which never changes. ret_total counts all that match, whatever
 * limit, offset and after_ms say. */
int sandboxes_list(struct sandboxes *s, const struct sandbox_filter *filter, struct arena *arena,
                   struct sandbox_info **ret_items, size_t *ret_count, size_t *ret_total,
                   struct error *err);
/* Their ids alone, for who looks at one after the other: each may be gone by then. */
int sandboxes_list_ids(struct sandboxes *s, const struct sandbox_filter *filter,
                       struct arena *arena, const char ***ret_ids, size_t *ret_count,
                       size_t *ret_total, struct error *err);

struct sandbox_clone {
    const char *workspace;
    const char *source;
    const char *image;                      /* NULL, or what the source has: INVALID_ARGUMENT */
    const char *name;                       /* NULL: the server makes one up */
    struct sandbox_resources resources;     /* NULL: as the source has them */
    const struct slice *auto_lower;         /* NULL: as the source has it */
    const struct slice *history;            /* what it says nothing of is as the source has it */
    const struct slice *env;                /* NULL: as the source has it */
    const struct slice *labels;             /* NULL: as the source has them */
    const char *external_id, *display_name; /* NULL: none; never the source's */
    const char *blaxel_spec;                /* NULL: as the source has it */
    const char *e2b_spec;                   /* the same */
    const bool *enabled;                    /* NULL: as the source has it */
    const enum restart_policy *restart;     /* the same */
    struct trust_request security;          /* zeros: as the source has it */
    struct network_request network;         /* zeros: as the source has it */
    const struct lifespan_change *lifespan; /* NULL: as the source has it, counted anew */
    const char *actor;
};

/*
 * A new sandbox that begins with all files of another one, as they were at one moment, and then has
 * a life of its own. Returns as soon as it is recorded, with status creating; the copy, and the
 * start when it is enabled, go on by themselves: a source that is being made is waited for, one
 * that is being deleted stays until the copy is there. A source that is named as "group/name" has
 * its clone beside it, in the group; one that is named by its id has it in none. The errors of
 * sandboxes_create(), and SANDBOX_NOT_FOUND.
 */
int sandboxes_clone(struct sandboxes *s, const struct sandbox_clone *request, struct arena *arena,
                    struct sandbox_info *ret_info, struct error *err);

struct sandbox_update {
    const char *workspace;
    const char *name;
    uint64_t revision;                  /* it has to have this one; 0: any */
    const char *image;                  /* NULL, or what it has: INVALID_ARGUMENT */
    struct sandbox_resources resources; /* NULL each: as it is */
    double factor;                      /* its limits times this, instead of resources; 0: none */
    const char *resized;                /* what its event says; NULL: an ordinary update */
    const struct slice *auto_lower;     /* NULL: as it is; empty: off */
    const struct slice *history;        /* what it says nothing of stays as it is */
    const struct slice *env;            /* NULL: as it is. Commands started from now on see it */
    const struct slice *labels;         /* NULL: as they are */
    bool merge; /* env and labels change those that they name; an item without '=' goes */
    const char *external_id; /* NULL: as it is; "": none. The same for the next three */
    const char *display_name;
    const char *blaxel_spec;
    const char *e2b_spec;
    const bool *enabled; /* another value than before stops or starts it; NULL: as it is */
    const enum restart_policy *restart;     /* NULL: as it is */
    struct trust_request security;          /* zeros, or what it has: INVALID_ARGUMENT */
    struct network_request network;         /* zeros: as it is. It holds for what is open too */
    const struct lifespan_change *lifespan; /* NULL: as it is. A ttl that it sets counts from now */
    bool may_extend;                        /* the max age may be raised, or removed */
    const char *actor;
};

/*
 * All of it or nothing; a running sandbox has its new limits when this returns. INVALID_QUANTITY,
 * INVALID_ARGUMENT, ALREADY_EXISTS (the external id), REVISION_CONFLICT, RESOURCE_IN_USE (more
 * memory, disk or processes are in use than it would have), INSUFFICIENT_RESOURCES, CONFLICT (a
 * network for one that was started without), and what lifespan_merge() and network_resolve()
 * refuse.
 */
int sandboxes_update(struct sandboxes *s, const struct sandbox_update *request, struct arena *arena,
                     struct sandbox_info *ret_info, struct error *err);

/* These record the wish, answer with the sandbox in its new status (starting, resuming, stopping,
 * pausing, deleting) and go on by themselves. start: ALREADY_RUNNING, SANDBOX_EXPIRED (its age or
 * date is over); one that is paused goes on where it was. stop: NOT_RUNNING, unless its restart
 * policy would start it again; delete:
 * SANDBOX_NOT_FOUND once it is being deleted. */
int sandboxes_start(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                    struct arena *arena, struct sandbox_info *ret_info, struct error *err);
/* All of it stands still where it is, and keeps its memory, until it is resumed (or started).
 * Waits for one that is being made. NOT_RUNNING. */
int sandboxes_pause(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                    struct arena *arena, struct sandbox_info *ret_info, struct error *err);
/* Whether it stands still, or is about to: what its processes are given to do waits until then. How
 * long it has, while this server ran, is in *ret_ms: so much later is whatever is to happen in it.
 */
bool sandboxes_is_paused(struct sandboxes *s, const char *workspace, const char *name,
                         int64_t *ret_ms);
/* As start; the event is RESUME. */
int sandboxes_resume(struct sandboxes *s, const char *workspace, const char *name,
                     const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                     struct error *err);
/* Makes a sandbox usable for a visitor: a stopped or paused one is started if its wakeOnConnect or
 * its restart policy allows that, else NOT_RUNNING. Returns before it runs. */
int sandboxes_wake(struct sandboxes *s, const char *workspace, const char *name,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err);
int sandboxes_stop(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err);
int sandboxes_delete(struct sandboxes *s, const char *workspace, const char *name,
                     const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                     struct error *err);
