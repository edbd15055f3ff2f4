/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Making and revoking API keys. A key has an id, which is no secret, and a secret, which is shown
 * once and stored as its SHA-256. The two are also a client's id and secret for tokens.
 *
 * Nobody can make a key that does more than his own: not with more scopes, not for another
 * workspace, not for longer.
 */

#include "auth/auth.h"
#include "base/arena.h"

/* The key of the first start. It is put in place again at every start, from DIR/api-key. */
#define KEY_FIRST "admin"

int auth_store_first_key(struct store *store, const char *hash, struct error *err);

struct key_request {
    const char *name; /* a DNS label, unique in its workspace */
    const char *workspace;
    unsigned scopes;
    int64_t lifetime_s; /* 0: it does not expire */
};

/* INVALID_NAME, ALREADY_EXISTS, FORBIDDEN, LIMIT_EXCEEDED. Waits for the store. */
int auth_key_create(struct auth *auth, const struct principal *by,
                    const struct key_request *request, char ret_secret[AUTH_KEY_SIZE],
                    struct store_key *ret_key, struct error *err);

/* A workspace's keys, oldest first; copies in the arena. */
void auth_keys(const struct auth *auth, const char *workspace, struct arena *arena,
               struct store_key **ret_items, size_t *ret_count);
/* KEY_NOT_FOUND: also one of another workspace. */
int auth_key_get(const struct auth *auth, const char *workspace, const char *id,
                 struct store_key *ret_key, struct error *err);

/* When it returns, neither the key nor a token of it opens anything. FORBIDDEN when the key can do
 * more than the caller; CONFLICT for the first key. Waits for the store. */
int auth_key_revoke(struct auth *auth, const struct principal *by, const char *workspace,
                    const char *id, struct error *err);
