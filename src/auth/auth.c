/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Callers and scopes. The keys are asked for on every request, so they live in memory. A key that
 * comes in is hashed and found by the beginning of its hash: how long that takes tells something
 * about a hash at most, never about a key. The whole hash is then compared in constant time.
 */

#include "auth/auth.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include "auth/box_token.h"
#include "auth/issuer_config.h"
#include "auth/state.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"
#include "base/timetext.h"

#define ANONYMOUS "anonymous"
#define HOW_TO                                                                                     \
    "send \"Authorization: Bearer <key>\"; the server keeps the key of its first start in the "    \
    "file api-key of its data folder, and `cella key create` makes more"

enum {
    HASH_HEX_LEN = 2 * SHA256_DIGEST_LENGTH,
    USE_NOTED_MS = 10 * 60 * 1000, /* lastUsedAt is as exact as this */
};

/* In order: each includes those before it. */
static const struct {
    enum scope scope;
    const char *name;
} scope_names[] = {
    {SCOPE_READ, "read"},
    {SCOPE_WRITE, "write"},
    {SCOPE_ADMIN, "admin"},
    {SCOPE_SERVER, "server"},
};

unsigned scope_parse(struct slice name)
{
    unsigned scopes = 0;
    for (size_t i = 0; i < ARRAY_LEN(scope_names); i++) {
        scopes |= scope_names[i].scope;
        if (slice_eq(name, slice_of(scope_names[i].name)))
            return scopes;
    }
    return 0;
}

void scopes_text(unsigned scopes, char out[SCOPES_TEXT_SIZE])
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(scope_names); i++)
        if ((scopes & scope_names[i].scope) != 0)
            at += (size_t)snprintf(out + at, SCOPES_TEXT_SIZE - at, "%s%s", at > 0 ? " " : "",
                                   scope_names[i].name);
}

/* --- the keys in memory --- */

struct key *auth_find_key(const struct auth *auth, const char *id)
{
    struct key *key;
    HASH_FIND(by_id, auth->ids, id, strlen(id), key);
    return key;
}

int auth_insert_key(struct auth *auth, const struct store_key *row, struct error *err)
{
    struct key *key = calloc(1, sizeof(*key));
    if (key == NULL)
        return error_sys(err, "keeping an API key");
    key->row = *row;
    HASH_ADD_KEYPTR(by_id, auth->ids, key->row.id, strlen(key->row.id), key);
    HASH_ADD_KEYPTR(by_hash, auth->hashes, key->row.hash, HASH_PREFIX_LEN, key);
    return 0;
}

void auth_remove_key(struct auth *auth, struct key *key)
{
    HASH_DELETE(by_id, auth->ids, key);
    HASH_DELETE(by_hash, auth->hashes, key);
    OPENSSL_cleanse(key, sizeof(*key));
    free(key);
}

static int load_key(void *ctx, const struct store_key *row, struct error *err)
{
    return auth_insert_key(ctx, row, err);
}

static int load_workspace(void *ctx, const struct store_workspace *row, struct error *err)
{
    return auth_insert_workspace(ctx, row, err);
}

static void random_bytes(void *out, size_t len)
{
    while (getrandom(out, len, 0) != (ssize_t)len)
        if (errno != EINTR) /* this short, it comes whole or not at all */
            abort();
}

int auth_new(struct store *store, bool open, struct auth **ret_auth, struct error *err)
{
    struct auth *auth = calloc(1, sizeof(*auth));
    if (auth == NULL)
        return error_sys(err, "loading API keys");
    auth->open = open;
    auth->store = store;
    auth->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (auth->sha256 == NULL)
        abort(); /* it is part of OpenSSL's default provider */
    random_bytes(auth->token_secret, sizeof(auth->token_secret));
    if (store_secret(store, "token", auth->token_secret, sizeof(auth->token_secret), err) < 0 ||
        store_load_workspaces(store, load_workspace, auth, err) < 0 ||
        store_load_keys(store, load_key, auth, err) < 0 || auth_load_generations(auth, err) < 0) {
        auth_free(auth);
        return -1;
    }
    *ret_auth = auth;
    return 0;
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    struct key *key, *next_key;
    HASH_ITER(by_id, auth->ids, key, next_key)
    {
        auth_remove_key(auth, key);
    }
    struct workspace *workspace, *next;
    HASH_ITER(by_name, auth->workspaces, workspace, next)
    {
        HASH_DELETE(by_name, auth->workspaces, workspace);
        free(workspace);
    }
    auth_forget_secrets(auth, NULL);
    auth_forget_cas(auth);
    auth_forget_generations(auth);
    auth_forget_grants(auth);
    token_cache_clear(&auth->verified);
    issuers_unref(auth->issuers);
    throttle_release(&auth->throttle);
    OPENSSL_cleanse(auth->token_secret, sizeof(auth->token_secret));
    OPENSSL_cleanse(auth->seal_key, sizeof(auth->seal_key));
    EVP_MD_free(auth->sha256);
    free(auth);
}

/* --- checking --- */

struct slice auth_bearer(const char *field)
{
    static const char scheme[] = "Bearer";
    enum { LEN = sizeof(scheme) - 1 };
    if (field == NULL || strncasecmp(field, scheme, LEN) != 0 || field[LEN] != ' ')
        return (struct slice){NULL, 0};
    const char *key = field + LEN + strspn(field + LEN, " ");
    size_t len = strlen(key);
    while (len > 0 && (key[len - 1] == ' ' || key[len - 1] == '\t'))
        len--;
    return (struct slice){len == 0 ? NULL : key, len};
}

static void hash_bytes(const EVP_MD *sha256, const void *data, size_t len,
                       char out[HASH_HEX_LEN + 1])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    if (EVP_Digest(data, len, digest, NULL, sha256, NULL) != 1)
        abort();
    for (size_t i = 0; i < sizeof(digest); i++) {
        out[2 * i] = hex[digest[i] >> 4];
        out[2 * i + 1] = hex[digest[i] & 15];
    }
    out[HASH_HEX_LEN] = '\0';
}

static bool has_ended(int64_t expires_ms)
{
    return expires_ms != 0 && time_now_ms() >= expires_ms;
}

static struct principal principal_of(const struct store_key *row)
{
    struct principal principal = {
        .scopes = row->scopes, .expires_ms = row->expires_ms, .key_expires_ms = row->expires_ms};
    memcpy(principal.name, row->name, sizeof(principal.name));
    memcpy(principal.workspace, row->workspace, sizeof(principal.workspace));
    memcpy(principal.key_id, row->id, sizeof(principal.key_id));
    snprintf(principal.issuer, sizeof(principal.issuer), "%.*s", ISSUER_TAG_LEN, row->issuer);
    return principal;
}

/* A key that was made with a JWT lives no longer than the trust in who had issued that. */
static bool is_over(const struct auth *auth, const struct store_key *row)
{
    return has_ended(row->expires_ms) ||
           (row->issuer[0] != '\0' && !auth_trusts(auth, row->issuer));
}

/* Compares whether or not there is something to compare with. */
static bool is_key(const struct key *key, const char hash[HASH_HEX_LEN + 1])
{
    static const char none[HASH_HEX_LEN + 1];
    const char *known = key == NULL ? none : key->row.hash;
    return CRYPTO_memcmp(known, hash, HASH_HEX_LEN) == 0 && key != NULL;
}

static struct key *key_by_secret(const struct auth *auth, const char *text)
{
    char hash[HASH_HEX_LEN + 1];
    struct key *key;
    hash_bytes(auth->sha256, text, strlen(text), hash);
    HASH_FIND(by_hash, auth->hashes, hash, HASH_PREFIX_LEN, key);
    return is_key(key, hash) ? key : NULL;
}

static enum verdict judge_key(struct auth *auth, const char *text, struct key **ret_key,
                              struct principal *ret_principal, struct error *err)
{
    struct key *key = key_by_secret(auth, text);
    if (key == NULL) {
        error_set(err, ERROR_UNAUTHORIZED, "the API key is not known here: " HOW_TO);
        return VERDICT_WRONG;
    }
    if (is_over(auth, &key->row)) {
        error_set(err, ERROR_UNAUTHORIZED, "the API key \"%s\" %s: " HOW_TO, key->row.name,
                  has_ended(key->row.expires_ms)
                      ? "has expired"
                      : "was made with the token of somebody who is trusted no more");
        return VERDICT_OVER;
    }
    *ret_key = key;
    *ret_principal = principal_of(&key->row);
    return VERDICT_RIGHT;
}

/* What a token says that is signed by this server or, failing that, by somebody that it trusts. */
static enum verdict judge_signature(struct auth *auth, const char *text, struct principal *ret_said,
                                    struct error *err)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    if (EVP_Digest(text, strlen(text), digest, NULL, auth->sha256, NULL) != 1)
        abort();
    int64_t now_ms = time_now_ms();
    auth_refresh_issuers(auth, now_ms); /* also for those who never show a token twice */
    const struct principal *known = token_cache_get(&auth->verified, digest, now_ms);
    if (known != NULL) {
        *ret_said = *known;
        return VERDICT_RIGHT;
    }
    enum verdict verdict = auth_judge_token(auth, text, ret_said, err);
    int64_t ends_ms = ret_said->expires_ms;
    if (verdict == VERDICT_WRONG && auth->issuers != NULL && auth->issuers->count > 0)
        verdict = auth_judge_jwt(auth, text, ret_said, &ends_ms, err);
    if (verdict == VERDICT_RIGHT)
        token_cache_put(&auth->verified, digest, ret_said, ends_ms);
    return verdict;
}

/* A token of one sandbox is for the workspace that the sandbox is in, which is another one than its
 * key's when that key gets into all of them; it has to get there still. */
static bool enter_bound(const struct key *key, const struct principal *said,
                        struct principal *principal)
{
    memcpy(principal->sandbox, said->sandbox, sizeof(said->sandbox));
    if (said->sandbox[0] == '\0' || strcmp(key->row.workspace, said->workspace) == 0)
        return true;
    memcpy(principal->workspace, said->workspace, sizeof(said->workspace));
    return (key->row.scopes & SCOPE_SERVER) != 0;
}

/* A token names its key, and lives no longer and can do no more than that does now. */
static enum verdict judge_token(struct auth *auth, const char *text, struct key **ret_key,
                                struct principal *ret_principal, struct error *err)
{
    struct principal said = {0};
    enum verdict verdict = judge_signature(auth, text, &said, err);
    if (verdict != VERDICT_RIGHT)
        return verdict;
    if (said.by_jwt || said.key_id[0] == '\0') {
        *ret_principal = said;
        return VERDICT_RIGHT;
    }
    struct key *key = auth_find_key(auth, said.key_id);
    if (key == NULL || is_over(auth, &key->row)) {
        error_set(err, ERROR_UNAUTHORIZED, "the key that the token was issued for is gone");
        return VERDICT_OVER;
    }
    struct principal principal = principal_of(&key->row);
    if (!enter_bound(key, &said, &principal)) {
        error_set(err, ERROR_UNAUTHORIZED,
                  "the key that the token was issued for does not get into its workspace any more");
        return VERDICT_OVER;
    }
    principal.scopes &= said.scopes;
    principal.expires_ms = said.expires_ms;
    principal.by_token = true;
    *ret_key = key;
    *ret_principal = principal;
    return VERDICT_RIGHT;
}

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int too_many(int64_t wait_ms, struct error *err)
{
    return error_set(err, ERROR_TOO_MANY_ATTEMPTS,
                     "too many wrong keys came from this address: try again in %" PRId64 " s",
                     wait_ms / 1000 + 1);
}

/*
 * Counts what is wrong. While an address has used up its attempts, a right key is told the same as
 * a wrong one, or trying would still find it; but a key that was right there before goes on, so
 * that nobody is locked out by a neighbour behind the same proxy. key NULL: a signature was right,
 * which nobody finds by trying.
 */
static int admit(struct auth *auth, const char *peer, enum verdict verdict, struct key *key,
                 struct error *err)
{
    struct peer_address address = peer_address(peer);
    int64_t now = monotonic_ms();
    int64_t wait = throttle_wait(&auth->throttle, address, now);
    if (verdict == VERDICT_WRONG)
        throttle_failed(&auth->throttle, address, now);
    bool known = key == NULL || peer_address_eq(key->last_peer, address);
    if (wait > 0 && (verdict != VERDICT_RIGHT || !known))
        return too_many(wait, err);
    if (verdict != VERDICT_RIGHT)
        return -1;
    if (key != NULL)
        key->last_peer = address;
    return 0;
}

int auth_retry_after(const struct auth *auth, const char *peer)
{
    return (int)(throttle_wait(&auth->throttle, peer_address(peer), monotonic_ms()) / 1000) + 1;
}

/* Waits for the store now and then: the key may have been revoked meanwhile. */
static int note_use(struct auth *auth, struct key *key, struct error *err)
{
    int64_t now = time_now_ms();
    if (key == NULL || now - key->row.last_used_ms < USE_NOTED_MS)
        return 0;
    key->row.last_used_ms = now;
    char id[sizeof(key->row.id)];
    memcpy(id, key->row.id, sizeof(id));
    (void)store_use_key(auth->store, id, now, NULL); /* a request is not refused for that */
    return auth_find_key(auth, id) != NULL
               ? 0
               : error_set(err, ERROR_UNAUTHORIZED, "the API key was revoked");
}

static int check_scope(const struct principal *principal, unsigned scope, struct error *err)
{
    if (principal->sandbox[0] != '\0' && (scope & (ROUTE_INSIDE | ROUTE_OF_CALLER)) == 0)
        return error_set(err, ERROR_FORBIDDEN,
                         "the token is bound to one sandbox, and this is not inside of it");
    unsigned missing = scope & SCOPE_ALL & ~principal->scopes;
    if (missing == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(scope_names); i++)
        if ((missing & scope_names[i].scope) != 0)
            return error_set(err, ERROR_FORBIDDEN, "the key \"%s\" does not have the scope %s",
                             principal->name, scope_names[i].name);
    return error_set(err, ERROR_FORBIDDEN, "the key \"%s\" is not enough for this",
                     principal->name);
}

static struct principal anonymous(unsigned scopes)
{
    struct principal principal = {.scopes = scopes};
    snprintf(principal.name, sizeof(principal.name), "%s", ANONYMOUS);
    snprintf(principal.workspace, sizeof(principal.workspace), "%s", WORKSPACE_DEFAULT);
    return principal;
}

int auth_check(struct auth *auth, const char *credential, const char *peer, unsigned scope,
               struct principal *ret_principal, struct error *err)
{
    scope &= SCOPE_ALL | SCOPE_PUBLIC | ROUTE_INSIDE | ROUTE_OF_CALLER;
    if ((scope & (SCOPE_ALL | SCOPE_PUBLIC)) ==
        0) /* a route that forgot to say: closed, not open */
        return error_set(err, ERROR_FORBIDDEN, "nobody may call this: it names no scope");
    if (auth->open || (scope & SCOPE_PUBLIC) != 0) {
        *ret_principal = anonymous(SCOPE_PUBLIC | (auth->open ? SCOPE_ALL : 0));
        return 0;
    }
    if (credential == NULL || credential[0] == '\0')
        return error_set(err, ERROR_UNAUTHORIZED, "no API key: " HOW_TO);
    struct principal principal;
    struct key *key = NULL;
    char plain[AUTH_KEY_SIZE];
    if (auth_key_from_e2b(credential, plain))
        credential = plain;
    bool is_token = strchr(credential, '.') != NULL; /* no key has a dot */
    enum verdict verdict =
        (is_token ? judge_token : judge_key)(auth, credential, &key, &principal, err);
    if (admit(auth, peer, verdict, key, err) < 0 || check_scope(&principal, scope, err) < 0 ||
        note_use(auth, key, err) < 0)
        return -1;
    /* The store may have been waited for, and the token revoked meanwhile. */
    if (principal.sandbox[0] != '\0' &&
        judge_token(auth, credential, &key, &principal, err) != VERDICT_RIGHT)
        return -1;
    *ret_principal = principal;
    return 0;
}

int auth_check_client(struct auth *auth, const char *id, const char *secret, const char *peer,
                      struct principal *ret_principal, struct error *err)
{
    struct principal principal;
    struct key *key = NULL;
    enum verdict verdict = judge_key(auth, secret, &key, &principal, err);
    if (verdict == VERDICT_RIGHT && strcmp(principal.key_id, id) != 0)
        verdict = VERDICT_WRONG;
    if (verdict == VERDICT_WRONG)
        error_set(err, ERROR_UNAUTHORIZED, "no client has this id and secret");
    if (admit(auth, peer, verdict, key, err) < 0 || note_use(auth, key, err) < 0)
        return -1;
    *ret_principal = principal;
    return 0;
}

int64_t auth_gives_until_ms(const struct principal *by)
{
    /* Who has a key's token can have the next one, unless it is for one sandbox. */
    bool has_key = by->by_token && !by->by_jwt && by->sandbox[0] == '\0';
    int64_t ends_ms = has_key ? by->key_expires_ms : by->expires_ms;
    if (by->issuer[0] == '\0')
        return ends_ms;
    /* In steps, so that those of one day are few that differ. */
    int64_t step_ms = JWT_GRANT_S * INT64_C(1000) / JWT_GRANT_STEPS;
    int64_t most_ms = (time_now_ms() / step_ms + JWT_GRANT_STEPS) * step_ms;
    return ends_ms == 0 || ends_ms > most_ms ? most_ms : ends_ms;
}

/* --- making keys --- */

void auth_make_key(char out[AUTH_KEY_SIZE])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static const char prefix[] = "cella_"; /* so that scanners for leaked secrets know it */
    enum { RANDOM_LEN = 43 };              /* six bits each: 258 */
    _Static_assert(sizeof(prefix) + RANDOM_LEN <= AUTH_KEY_SIZE, "it fits");

    unsigned char raw[RANDOM_LEN];
    random_bytes(raw, sizeof(raw));
    memcpy(out, prefix, sizeof(prefix) - 1);
    char *to = out + sizeof(prefix) - 1;
    for (size_t i = 0; i < RANDOM_LEN; i++)
        *to++ = alphabet[raw[i] & 63];
    *to = '\0';
    OPENSSL_cleanse(raw, sizeof(raw));
}

void auth_hash_key(const char *key, char out[65])
{
    hash_bytes(EVP_sha256(), key, strlen(key), out);
}
