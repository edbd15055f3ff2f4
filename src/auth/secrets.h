/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Secrets of a workspace: what is sent for its sandboxes and never into one. Who keeps the
 * workspace (SCOPE_ADMIN) stores a value and the hosts that it may be sent to; from then on nobody
 * reads it but the egress process, for requests to those hosts. Who makes sandboxes chooses which
 * of them get it (network/policy.h: headers), but not where it goes.
 *
 * Values lie sealed (auth/seal.h) in the database and in memory alike.
 */

#include "auth/auth.h"
#include "base/arena.h"
#include "base/buf.h"
#include "network/host.h"

struct secret_info {
    const char *name;
    struct slice hosts;   /* a list of strings: "api.example.com", "*.example.com", "*" */
    uint64_t version;     /* how often its value was set */
    const char *metadata; /* what E2B's clients wrote on it, a JSON object; NULL: nothing */
    int64_t created_ms, updated_ms;
    const char *created_by, *updated_by;
};

/* What to store. NULL (data, for the slices): as it is, which one that exists needs. */
struct secret_request {
    const char *workspace, *name;
    struct slice value; /* what a header field can hold: no control characters, no blanks around */
    struct slice hosts;
    const char *metadata;
    bool any_host; /* hosts may be "*": who makes sandboxes chooses where it goes, too */
    bool is_new;   /* ALREADY_EXISTS when there is one of that name */
    const char *actor;
};

/* The key that values are sealed with, and what is stored. Once, after auth_new(). */
int auth_open_secrets(struct auth *auth, const unsigned char *key, struct error *err);

/* INVALID_NAME, INVALID_ARGUMENT, ALREADY_EXISTS, LIMIT_EXCEEDED. No error ever quotes a value.
 * Waits for the store. */
int auth_secret_put(struct auth *auth, const struct secret_request *request, struct arena *arena,
                    struct secret_info *ret_info, struct error *err);
/* By name; copies in the arena. */
void auth_secrets(const struct auth *auth, const char *workspace, struct arena *arena,
                  struct secret_info **ret_items, size_t *ret_count);
/* SECRET_NOT_FOUND */
int auth_secret_get(const struct auth *auth, const char *workspace, const char *name,
                    struct arena *arena, struct secret_info *ret_info, struct error *err);
/* SECRET_NOT_FOUND. Waits for the store. */
int auth_secret_delete(struct auth *auth, const char *workspace, const char *name,
                       struct error *err);

/* A host that secrets can be sent to, in the one form that is compared: a name with a dot in it, no
 * address. INVALID_ARGUMENT. */
int secret_host(struct slice text, char out[NET_NAME_MAX + 1], struct error *err);

/* Whether it may be sent there: SECRET_NOT_FOUND, FORBIDDEN. host: as secret_host() gives it. */
int auth_secret_may_go(const struct auth *auth, const char *workspace, const char *name,
                       const char *host, struct error *err);
/* The same, and appends the value. Wipe the buffer (auth/seal.h). */
int auth_secret_value(const struct auth *auth, const char *workspace, const char *name,
                      const char *host, struct buf *out, struct error *err);
