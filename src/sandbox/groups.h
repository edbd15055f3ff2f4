/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Groups: sandboxes that come, are changed and go together. A group belongs to a workspace and has
 * a name there; its sandboxes have names that are unique in the group, and are found as
 * "group/name" (or by their ids) by every call that takes a sandbox's name. A sandbox is in a group
 * from its first day to its last, or in none.
 *
 * A group remembers, as text that it does not look into, what its sandboxes inherit: the facade
 * that reads specifications lays a new one over it.
 *
 * Calls are made on coroutines.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

/* What a group as a whole is doing. The first that fits, from the top. */
#define GROUP_STATUSES(X)                                                                          \
    X(ENDING, "ending")     /* it goes, with all its sandboxes */                                  \
    X(EMPTY, "empty")       /* it has none */                                                      \
    X(FAILED, "failed")     /* one of them has */                                                  \
    X(CREATING, "creating") /* one of them is; and so on */                                        \
    X(STARTING, "starting")                                                                        \
    X(STOPPING, "stopping")                                                                        \
    X(RUNNING, "running") /* all of them are */                                                    \
    X(STOPPED, "stopped") /* all of them are, or are paused */                                     \
    X(MIXED, "mixed")     /* some run, and some do not */

enum group_status {
#define X(name, text) GROUP_##name,
    GROUP_STATUSES(X)
#undef X
};

const char *group_status_text(enum group_status status);

struct group_member {
    const char *id;
    const char *name;
    enum sandbox_status status;
};

struct group_info {
    const char *id;
    const char *workspace;
    const char *name;
    const char *spec; /* JSON text: what its sandboxes inherit */
    enum group_status status;
    int64_t created_ms, updated_ms;
    const char *created_by, *updated_by;
    const struct group_member *members; /* oldest first */
    size_t member_count;
};

struct group_create {
    const char *workspace;
    const char *name;                       /* NULL: the server makes one up */
    const char *spec;                       /* JSON text */
    const struct sandbox_create *plain;     /* what it says, read: a sandbox with nothing else */
    const struct sandbox_create *sandboxes; /* workspace and group of each are left alone */
    size_t count;
    const char *actor;
};

/*
 * A group with its first sandboxes, all or none, whatever goes wrong. Returns as soon as all of it
 * is recorded; making the sandboxes goes on by itself. The errors of sandboxes_create(), which say
 * of which sandbox they are; ALREADY_EXISTS, LIMIT_EXCEEDED.
 */
int groups_create(struct sandboxes *s, const struct group_create *request, struct arena *arena,
                  struct group_info *ret_info, struct error *err);

/* By its name or id. GROUP_NOT_FOUND. */
int groups_get(struct sandboxes *s, const char *workspace, const char *name, struct arena *arena,
               struct group_info *ret_info, struct error *err);

/* Those of a workspace, oldest first. *ret_total: whatever limit and offset say. */
int groups_list(struct sandboxes *s, const char *workspace, size_t limit, size_t offset,
                struct arena *arena, struct group_info **ret_items, size_t *ret_count,
                size_t *ret_total, struct error *err);

/* What its sandboxes inherit from now on is request's spec; those that exist stay as they are. The
 * errors of sandboxes_create(). */
int groups_set_spec(struct sandboxes *s, const char *name, const struct group_create *request,
                    struct arena *arena, struct group_info *ret_info, struct error *err);

/* Every sandbox of it that does not run is started, every one that does is stopped. None of them
 * having to be is fine. All or none: when one is refused, those before it go back. */
int groups_start(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                 struct arena *arena, struct group_info *ret_info, struct error *err);
int groups_stop(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                struct arena *arena, struct group_info *ret_info, struct error *err);

/*
 * New resources, a factor or another automatic lowering for every sandbox of it, all or none: name,
 * revision and the rest of `change` are left alone. What its sandboxes inherit later stays as it
 * is. The errors of sandboxes_update(), which say of which sandbox they are.
 */
int groups_resize(struct sandboxes *s, const char *name, const struct sandbox_update *change,
                  struct arena *arena, struct group_info *ret_info, struct error *err);

/* All its sandboxes are deleted, and the group is gone with the last. Returns as soon as that is
 * recorded: from then on it happens, whoever is killed. GROUP_NOT_FOUND once it is ending. */
int groups_end(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
               struct arena *arena, struct group_info *ret_info, struct error *err);
