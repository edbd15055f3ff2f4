/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The domain: sandboxes, what they are meant to be, and what is becoming of them.
 *
 * `struct sandboxes` owns them all. It keeps the live state in memory, writes every change through
 * to the store before it is acknowledged, and drives the provider. Calls are made on coroutines.
 *
 * A sandbox is found by its name in a workspace or by its immutable id. What a call hands out
 * (struct sandbox_info) is a copy in the caller's arena.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"
#include "provider/provider.h"
#include "store/store.h"

#define SANDBOX_STATUSES(X)                                                                        \
    X(CREATING, "creating")                                                                        \
    X(RUNNING, "running")                                                                          \
    X(STARTING, "starting")                                                                        \
    X(STOPPING, "stopping")                                                                        \
    X(STOPPED, "stopped")                                                                          \
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

struct sandbox_resources { /* as text, for the API; NULL: the default */
    const char *cpu;
    const char *memory;
    const char *disk;
};

struct sandbox_event {
    const char *type;
    const char *status;
    const char *message;
    int64_t time_ms;
    uint64_t revision;
};

struct sandbox_info {
    const char *id;
    const char *workspace;
    const char *name;
    const char *image;
    struct sandbox_resources resources; /* none NULL */
    struct slice env;
    bool enabled;
    enum sandbox_status status;
    int64_t created_ms, updated_ms;
    const char *created_by, *updated_by;
    const struct sandbox_event *events; /* oldest first */
    size_t event_count;
};

struct sandboxes;

int sandboxes_new(struct loop *loop, struct store *store, int data_dir_fd,
                  struct sandboxes **ret_sandboxes, struct error *err);
/* On a coroutine, before serving: loads the store, adopts what runs, finishes or removes what was
 * half done. */
int sandboxes_recover(struct sandboxes *s, struct error *err);
/* On a coroutine: stops every running sandbox (the server is going down). */
void sandboxes_stop_all(struct sandboxes *s);
void sandboxes_free(struct sandboxes *s);

/* What is in force on this machine (storage, cgroups). */
int sandboxes_about(struct sandboxes *s, struct warden_about *ret_about, struct error *err);

struct sandbox_create {
    const char *workspace;
    const char *name; /* NULL: the server makes one up */
    const char *image;
    struct sandbox_resources resources;
    struct slice env;
    bool enabled; /* false: it stays stopped until it is started */
    const char *actor;
};

/* Returns as soon as it is recorded, with status creating (or stopped when not enabled); making it
 * goes on by itself. INVALID_NAME, INVALID_QUANTITY, IMAGE_NOT_FOUND, ALREADY_EXISTS,
 * INVALID_ARGUMENT (env). */
int sandboxes_create(struct sandboxes *s, const struct sandbox_create *request, struct arena *arena,
                     struct sandbox_info *ret_info, struct error *err);
int sandboxes_get(struct sandboxes *s, const char *workspace, const char *name, struct arena *arena,
                  struct sandbox_info *ret_info, struct error *err);

struct sandbox_filter {
    const char *workspace;
    bool by_status;
    enum sandbox_status status;
    size_t limit, offset;
};
/* Oldest first. ret_total counts all that match, whatever limit and offset say. */
int sandboxes_list(struct sandboxes *s, const struct sandbox_filter *filter, struct arena *arena,
                   struct sandbox_info **ret_items, size_t *ret_count, size_t *ret_total,
                   struct error *err);

/* These record the wish, answer with the sandbox in its new status (starting, stopping, deleting)
 * and go on by themselves. start: ALREADY_RUNNING; stop: NOT_RUNNING; delete: SANDBOX_NOT_FOUND
 * once it is being deleted. */
int sandboxes_start(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                    struct arena *arena, struct sandbox_info *ret_info, struct error *err);
int sandboxes_stop(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err);
int sandboxes_delete(struct sandboxes *s, const char *workspace, const char *name,
                     const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                     struct error *err);
