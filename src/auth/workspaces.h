/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Workspaces: what is in one cannot be seen from another. A sandbox, a key and whatever hangs on
 * them belong to exactly one. "default" is always there.
 *
 * From outside, a workspace that one may not enter and one that does not exist are the same.
 */

#include "auth/auth.h"
#include "base/arena.h"

#define WORKSPACE_DEFAULT "default"

struct workspace_info {
    const char *name;
    int64_t created_ms; /* 0: it came with the server */
    const char *created_by;
    const char *rates, *quotas; /* its own, as api/call_limits.h reads them; "": the server's */
};

/* "default" for "default-workspace", which the seed's addresses have; else the name itself. */
const char *workspace_canonical(const char *name);

/* Names that cannot be workspaces because paths begin with them, or will. */
bool workspace_is_reserved(const char *name);

/*
 * The workspace that a caller works in: the one that was named (NULL or "": none was), when that is
 * the caller's own or the caller has SCOPE_SERVER; else WORKSPACE_NOT_FOUND. In the arena.
 */
int auth_workspace_enter(const struct auth *auth, const struct principal *principal,
                         const char *named, struct arena *arena, const char **ret_workspace,
                         struct error *err);

/* Those that the caller may enter, by name. */
void auth_workspaces(const struct auth *auth, const struct principal *principal,
                     struct arena *arena, struct workspace_info **ret_items, size_t *ret_count);
int auth_workspace_get(const struct auth *auth, const char *name, struct arena *arena,
                       struct workspace_info *ret_info, struct error *err);

/* INVALID_NAME (no DNS label, or reserved), ALREADY_EXISTS, LIMIT_EXCEEDED. Waits for the store. */
int auth_workspace_create(struct auth *auth, const char *name, const char *actor,
                          struct error *err);

/* What it may, from now on; what these say is for whoever counts to know. WORKSPACE_NOT_FOUND,
 * INVALID_ARGUMENT when one is longer than WORKSPACE_LIMITS_MAX. Waits for the store. */
int auth_workspace_set_limits(struct auth *auth, const char *name, const char *rates,
                              const char *quotas, struct error *err);

/*
 * Deleting is in three steps, so that it can be emptied in between: closed, nobody enters it any
 * more; then it is deleted with its keys (WORKSPACE_NOT_EMPTY while a sandbox is left), or opened
 * again. CONFLICT for "default", and for one that somebody else is deleting.
 */
int auth_workspace_close(struct auth *auth, const char *name, struct error *err);
void auth_workspace_reopen(struct auth *auth, const char *name);
int auth_workspace_delete(struct auth *auth, const char *name, struct error *err);
