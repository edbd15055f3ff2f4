/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Callers and scopes. The keys are few and asked for on every request, so they live in memory. A
 * key that comes in is hashed and its hash compared with each: finding out how much of a hash is
 * right would tell nothing about a key, and constant time makes sure of it.
 */

#include "auth/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/cleanup.h"

#define ANONYMOUS         "anonymous"
#define DEFAULT_WORKSPACE "default"
#define HOW_TO                                                                                     \
    "send \"Authorization: Bearer <key>\"; the server keeps the key of its first start in the "    \
    "file api-key of its data folder"

enum { HASH_HEX_LEN = 2 * SHA256_DIGEST_LENGTH };

static const struct {
    enum scope scope;
    const char *name;
} scope_names[] = {
    {SCOPE_READ, "read"},
    {SCOPE_WRITE, "write"},
    {SCOPE_ADMIN, "admin"},
};

struct auth {
    bool open;
    size_t count;
    struct store_key *keys;
};

static int add_key(void *ctx, const struct store_key *key, struct error *err)
{
    struct auth *auth = ctx;
    struct store_key *keys = reallocarray(auth->keys, auth->count + 1, sizeof(*keys));
    if (keys == NULL)
        return error_sys(err, "keeping an API key");
    auth->keys = keys;
    auth->keys[auth->count++] = *key;
    return 0;
}

int auth_new(struct store *store, bool open, struct auth **ret_auth, struct error *err)
{
    struct auth *auth = calloc(1, sizeof(*auth));
    if (auth == NULL)
        return error_sys(err, "loading API keys");
    auth->open = open;
    if (store_load_keys(store, add_key, auth, err) < 0) {
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
    free(auth->keys);
    free(auth);
}

/* The key in "Bearer <key>", or NULL. Only the spaces around it are not part of it. */
static const char *bearer_key(const char *authorization, size_t *ret_len)
{
    static const char scheme[] = "Bearer";
    enum { LEN = sizeof(scheme) - 1 };
    if (strncasecmp(authorization, scheme, LEN) != 0 || authorization[LEN] != ' ')
        return NULL;
    const char *key = authorization + LEN + strspn(authorization + LEN, " ");
    size_t len = strlen(key);
    while (len > 0 && (key[len - 1] == ' ' || key[len - 1] == '\t'))
        len--;
    *ret_len = len;
    return len == 0 ? NULL : key;
}

static void hash_bytes(const void *data, size_t len, char out[HASH_HEX_LEN + 1])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(data, len, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        out[2 * i] = hex[digest[i] >> 4];
        out[2 * i + 1] = hex[digest[i] & 15];
    }
    out[HASH_HEX_LEN] = '\0';
}

static const struct store_key *find_key(const struct auth *auth, const char *key, size_t len)
{
    char hash[HASH_HEX_LEN + 1];
    hash_bytes(key, len, hash);
    const struct store_key *found = NULL;
    for (size_t i = 0; i < auth->count; i++) /* all of them, always */
        if (CRYPTO_memcmp(auth->keys[i].hash, hash, HASH_HEX_LEN) == 0)
            found = &auth->keys[i];
    return found;
}

static int check_scope(const struct store_key *key, unsigned scope, struct error *err)
{
    if ((scope & ~key->scopes) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(scope_names); i++)
        if ((scope & ~key->scopes & scope_names[i].scope) != 0)
            return error_set(err, ERROR_FORBIDDEN, "the key \"%s\" does not have the scope %s",
                             key->name, scope_names[i].name);
    return error_set(err, ERROR_FORBIDDEN, "the key \"%s\" is not enough for this", key->name);
}

static struct principal make_principal(const char *name, const char *workspace, unsigned scopes)
{
    struct principal principal = {.scopes = scopes};
    snprintf(principal.name, sizeof(principal.name), "%s", name);
    snprintf(principal.workspace, sizeof(principal.workspace), "%s", workspace);
    return principal;
}

int auth_check(const struct auth *auth, const char *authorization, unsigned scope,
               struct principal *ret_principal, struct error *err)
{
    if (scope == 0) /* a route that forgot to say: closed, not open */
        return error_set(err, ERROR_FORBIDDEN, "nobody may call this: it names no scope");
    if (auth->open || (scope & SCOPE_PUBLIC) != 0) {
        *ret_principal = make_principal(ANONYMOUS, DEFAULT_WORKSPACE,
                                        SCOPE_PUBLIC | (auth->open ? SCOPE_ALL : 0));
        return 0;
    }
    if (authorization == NULL || authorization[0] == '\0')
        return error_set(err, ERROR_UNAUTHORIZED, "no API key: " HOW_TO);
    size_t len;
    const char *text = bearer_key(authorization, &len);
    if (text == NULL)
        return error_set(err, ERROR_UNAUTHORIZED, "the Authorization field holds no key: " HOW_TO);
    const struct store_key *key = find_key(auth, text, len);
    if (key == NULL)
        return error_set(err, ERROR_UNAUTHORIZED, "the API key is not known here: " HOW_TO);
    if (check_scope(key, scope, err) < 0)
        return -1;
    *ret_principal = make_principal(key->name, key->workspace, key->scopes);
    return 0;
}

void auth_make_key(char out[AUTH_KEY_SIZE])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static const char prefix[] = "cella_"; /* so that scanners for leaked secrets know it */
    enum { RANDOM_LEN = 43 };              /* six bits each: 258 */
    _Static_assert(sizeof(prefix) + RANDOM_LEN <= AUTH_KEY_SIZE, "it fits");

    unsigned char raw[RANDOM_LEN];
    while (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        if (errno != EINTR) /* this short, it comes whole or not at all */
            abort();
    memcpy(out, prefix, sizeof(prefix) - 1);
    char *to = out + sizeof(prefix) - 1;
    for (size_t i = 0; i < RANDOM_LEN; i++)
        *to++ = alphabet[raw[i] & 63];
    *to = '\0';
    OPENSSL_cleanse(raw, sizeof(raw));
}

void auth_hash_key(const char *key, char out[65])
{
    hash_bytes(key, strlen(key), out);
}
