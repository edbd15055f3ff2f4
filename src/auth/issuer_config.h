/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The configuration of auth/issuers.h, read; and what claims mean by it. */

#include "auth/auth.h"
#include "auth/jwks.h"
#include "auth/jwt.h"
#include "base/arena.h"
#include "base/limits.h"
#include "loop/co.h"

/* "name": value, both texts. */
struct claim_map {
    const char **from;
    const char **to;
    size_t count;
};

struct issuer {
    const char *name; /* iss */
    char tag[ISSUER_TAG_LEN + 1];
    struct jwt_rules rules;
    unsigned algorithms;     /* 1 << enum jwt_algorithm */
    const char *url;         /* NULL: the keys came with the configuration */
    const char *authorities; /* in PEM: whom to believe that it is that URL; NULL: the machine's */
    int64_t refresh_ms, stale_ms; /* when keys are fetched anew, and until when old ones count */
    const char *workspace;
    const char *workspace_claim; /* NULL: everybody is in `workspace` */
    struct claim_map workspaces; /* empty: the claim is the workspace's name */
    const char *role_claim;
    struct claim_map roles;
    const char *default_role; /* NULL: who has none is not let in */

    struct jwks *keys; /* NULL: not fetched yet */
    int64_t asked_ms;  /* when the URL was asked last, by the monotonic clock; 0: never */
    int64_t had_ms;    /* when it gave keys */
    int64_t calm_ms;   /* when it may be asked JWKS_BURST times again, as in auth/throttle.h */
    bool fetching;
    struct co_cond fetched;
};

struct issuers {
    struct arena *arena;
    size_t count;
    struct issuer items[JWT_ISSUERS_MAX];
    unsigned references;
    int64_t looked_ms; /* when it was looked whether keys are old */
};

int issuers_parse(struct slice config, struct issuers **ret_issuers, struct error *err);
void issuers_unref(struct issuers *issuers); /* NULL is fine */

struct issuer *issuers_find(struct issuers *issuers, const char *name);

/* Who the claims say that somebody is, and where, and with which scopes. FORBIDDEN when that is
 * nobody here, UNAUTHORIZED when a claim is missing that every token has. */
int issuer_principal(const struct issuer *issuer, yyjson_val *claims,
                     struct principal *ret_principal, struct error *err);
