/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share: the keys and workspaces in memory. */

#include <openssl/evp.h>
#include <uthash.h>

#include "auth/auth.h"
#include "auth/issuers.h"
#include "auth/seal.h"
#include "auth/throttle.h"
#include "auth/token_cache.h"
#include "base/limits.h"

enum { TOKEN_SECRET_SIZE = 32, HASH_PREFIX_LEN = 16 };

struct key {
    struct store_key row;
    struct peer_address last_peer; /* where it was last right */
    UT_hash_handle by_id;
    UT_hash_handle by_hash; /* by the first HASH_PREFIX_LEN characters */
};

struct workspace {
    char name[64];
    char created_by[64];
    int64_t created_ms;
    bool closing; /* being deleted: nobody gets in any more */
    char rates[WORKSPACE_LIMITS_MAX + 1], quotas[WORKSPACE_LIMITS_MAX + 1];
    UT_hash_handle by_name;
};

struct auth {
    bool open;
    struct store *store;
    struct key *ids;
    struct key *hashes;
    struct workspace *workspaces; /* by name */
    unsigned char token_secret[TOKEN_SECRET_SIZE];
    struct throttle throttle;
    struct secret *secrets;               /* secrets.c's, by workspace and name */
    struct sandbox_ca *cas;               /* sandbox_ca.c's, by sandbox */
    struct token_generation *generations; /* sandbox_token.c's, by sandbox */
    unsigned char seal_key[SEAL_KEY_SIZE];
    struct token_cache verified;
    struct box_grants *grants; /* box_token.c's, by sandbox, the one used longest ago first */
    int64_t grants_swept_ms;
    bool (*has_sandbox)(void *ctx, const char *sandbox_id); /* NULL: nobody knows */
    void *has_sandbox_ctx;
    struct issuers *issuers; /* NULL: nobody else is trusted */
    struct loop *loop;       /* where their keys are fetched, and how */
    issuer_fetch *fetch;
    void *fetch_ctx;
    EVP_MD *sha256; /* for the key of every request: finding it anew takes longer than the hash */
};

/* auth.c */
struct key *auth_find_key(const struct auth *auth, const char *id);
int auth_insert_key(struct auth *auth, const struct store_key *row, struct error *err);
void auth_remove_key(struct auth *auth, struct key *key);

/* secrets.c: out of memory; of all workspaces when it is NULL */
void auth_forget_secrets(struct auth *auth, const char *workspace);

/* sandbox_ca.c */
int auth_load_cas(struct auth *auth, struct error *err);
void auth_forget_cas(struct auth *auth);

/* box_token.c */
void auth_forget_grants(struct auth *auth);

/* sandbox_token.c */
int auth_load_generations(struct auth *auth, struct error *err);
void auth_forget_generations(struct auth *auth);

/* workspaces.c */
int auth_insert_workspace(struct auth *auth, const struct store_workspace *row, struct error *err);

/* Whoever shows something that is nobody's is guessing, and is counted. What was right once and is
 * over is not. */
enum verdict { VERDICT_RIGHT, VERDICT_OVER, VERDICT_WRONG };

/* token.c: what a token says, without regard to whether its key still lives. One whose maker had no
 * key (a JWT) has no key_id, but a name. The workspace is the one that it was made for. Sets the
 * error unless it is right. */
enum verdict auth_judge_token(const struct auth *auth, const char *token,
                              struct principal *ret_principal, struct error *err);

/* issuers.c: what a JWT of somebody else's says; *ret_ends_ms is when it stops counting. There are
 * issuers. Sets the error unless it is right; may wait for keys. */
enum verdict auth_judge_jwt(struct auth *auth, const char *token, struct principal *ret_principal,
                            int64_t *ret_ends_ms, struct error *err);
/* Whether the issuer of that tag (struct principal) is one of those who are trusted now. */
bool auth_trusts(const struct auth *auth, const char *tag);
/* Has keys that are old fetched anew, beside whatever goes on. Cheap, for every request. */
void auth_refresh_issuers(struct auth *auth, int64_t now_ms);
