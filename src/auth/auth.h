/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is calling, and what may they do. A caller shows an API key, or a token that was issued for
 * one (auth/token.h). Keys are known by their SHA-256 alone and compared in constant time; the
 * plain key exists in DIR/api-key (the first one) and in its users' hands.
 *
 * A key belongs to one workspace (auth/workspaces.h) and grants scopes in it; only SCOPE_SERVER
 * reaches further. Everything is held in memory and written through to the store.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "store/store.h"

/*
 * What a route asks for, and what a key grants. SCOPE_PUBLIC is for routes that need no key. Each
 * scope includes those before it: who may write may read.
 *
 * The ROUTE_ bits are granted to nobody: they say of a route how its callers may show who they are.
 */
enum scope {
    SCOPE_PUBLIC = 1 << 0,
    SCOPE_READ = 1 << 1,
    SCOPE_WRITE = 1 << 2,
    SCOPE_ADMIN = 1 << 3,  /* the workspace's keys */
    SCOPE_SERVER = 1 << 4, /* every workspace, and the list of them */
    SCOPE_ALL = SCOPE_READ | SCOPE_WRITE | SCOPE_ADMIN | SCOPE_SERVER,

    /* A browser opens it (a WebSocket, a page), and cannot set fields there: ?token= counts too. */
    ROUTE_TOKEN_IN_QUERY = 1 << 8,
    /* What is behind it may have an Authorization of its own: ours is looked for in the other
     * fields first, and only when there is none the one in Authorization is taken for ours. */
    ROUTE_FORWARDS = 1 << 9,
    /* What happens there stays inside the sandbox that the path names as {name}: a token that is
     * bound to that sandbox (auth/sandbox_token.h) opens it, too. Without this bit none does. */
    ROUTE_INSIDE = 1 << 10,
    /* Beside ROUTE_INSIDE: it is the body that names the sandbox. The handler, which alone reads
     * it, holds it against the token (api/confine.h). */
    ROUTE_NAMED_IN_BODY = 1 << 12,
    /* It tells of nothing but the caller: a bound token opens it. */
    ROUTE_OF_CALLER = 1 << 11,
};

/* What the name of a caller begins with who has a JWT of somebody else's: no key's name can. */
#define JWT_NAME_PREFIX "jwt:"

/* An outside issuer, for short: the beginning of a hash of its name, in hexadecimal digits. */
enum { ISSUER_TAG_LEN = 8 };

struct principal {
    char name[64]; /* of the key: createdBy */
    char workspace[64];
    unsigned scopes;
    char key_id[16];        /* "" for anonymous */
    int64_t expires_ms;     /* of the key or token; 0: never */
    int64_t key_expires_ms; /* of the key, also where a token of its is shown */
    bool by_token;
    bool by_jwt;                     /* of an outside issuer; key_id then stands for its subject */
    char issuer[ISSUER_TAG_LEN + 1]; /* which one; "": none has to do with it */
    char sandbox[32]; /* the id of the one sandbox that the token is bound to; "": to none */
};

struct auth;

/* Loads keys and workspaces. open: every caller is "anonymous" with all scopes (--no-auth, loopback
 * only). */
int auth_new(struct store *store, bool open, struct auth **ret_auth, struct error *err);
void auth_free(struct auth *auth);

/*
 * Checks a key or token (NULL: none was shown) against what a route asks for. peer is where the
 * caller is ("127.0.0.1:4711", "unix"). UNAUTHORIZED tells how to get a key; FORBIDDEN names the
 * scope that is missing; TOO_MANY_ATTEMPTS after many wrong ones from there. May wait for the
 * store.
 *
 * Who is let in with principal->sandbox set asked for ROUTE_INSIDE or ROUTE_OF_CALLER; that it is
 * that sandbox which the request is for is the caller's to check (api/confine.h).
 */
int auth_check(struct auth *auth, const char *credential, const char *peer, unsigned scope,
               struct principal *ret_principal, struct error *err);
/* The same for a client's id and its key, whatever their scopes: UNAUTHORIZED, TOO_MANY_ATTEMPTS.
 */
int auth_check_client(struct auth *auth, const char *id, const char *key, const char *peer,
                      struct principal *ret_principal, struct error *err);
/* Seconds until TOO_MANY_ATTEMPTS is over for that peer, at least 1. */
int auth_retry_after(const struct auth *auth, const char *peer);

/* When that ends at the latest which the caller hands out, and which nobody looks up again: with
 * what he has shown himself, and where somebody else's word let him in, within JWT_GRANT_S, since
 * that is taken back without telling us. 0: never. */
int64_t auth_gives_until_ms(const struct principal *by);

/* The credential in "Bearer <credential>", or one with no data. Only spaces around it are not part
 * of it. */
struct slice auth_bearer(const char *field);

/* --- scopes as text --- */

enum { SCOPES_TEXT_SIZE = 32 };
/* "read", … ; 0 when it is none. With those that it includes. */
unsigned scope_parse(struct slice name);
/* "read write admin server" */
void scopes_text(unsigned scopes, char out[SCOPES_TEXT_SIZE]);

/* --- making keys --- */

/* "cella_" and 43 random characters; out holds AUTH_KEY_SIZE. */
enum { AUTH_KEY_SIZE = 64 };
void auth_make_key(char out[AUTH_KEY_SIZE]);
void auth_hash_key(const char *key, char out[65]);
