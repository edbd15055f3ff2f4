/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is calling, and what may they do. Keys are known by their SHA-256 alone and compared in
 * constant time; the plain key exists in DIR/api-key and in its users' hands.
 */

#include <stdbool.h>

#include "base/error.h"
#include "store/store.h"

/* What a route asks for, and what a key grants. SCOPE_PUBLIC is for routes that need no key. */
enum scope {
    SCOPE_PUBLIC = 1 << 0,
    SCOPE_READ = 1 << 1,
    SCOPE_WRITE = 1 << 2,
    SCOPE_ADMIN = 1 << 3,
    SCOPE_ALL = SCOPE_READ | SCOPE_WRITE | SCOPE_ADMIN,
};

struct principal {
    char name[64];
    char workspace[64];
    unsigned scopes;
};

struct auth;

/* Loads the keys. open: every caller is "anonymous" with all scopes (--no-auth, loopback only). */
int auth_new(struct store *store, bool open, struct auth **ret_auth, struct error *err);
void auth_free(struct auth *auth);

/*
 * Checks an Authorization field ("Bearer <key>"; NULL when there was none) against what the route
 * asks for. UNAUTHORIZED tells how to get a key; FORBIDDEN names the scope that is missing.
 */
int auth_check(const struct auth *auth, const char *authorization, unsigned scope,
               struct principal *ret_principal, struct error *err);

/* "cella_" and 43 random characters; out holds AUTH_KEY_SIZE. */
enum { AUTH_KEY_SIZE = 64 };
void auth_make_key(char out[AUTH_KEY_SIZE]);
void auth_hash_key(const char *key, char out[65]);
