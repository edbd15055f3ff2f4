/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens of sandboxes: derived, compared in constant time, never stored. */

#include "auth/box_token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "auth/sandbox_token.h"
#include "auth/state.h"
#include "base/limits.h"
#include "base/timetext.h"

enum { SHA256_SIZE = 32, SIGNATURE_LEN = 43 }; /* unpadded base64 of 32 bytes */
enum { SWEEP_MS = 60 * 1000 };

static const char hex_digits[] = "0123456789abcdef";

static void to_hex(const unsigned char *bytes, size_t len, char *out)
{
    for (size_t i = 0; i < len; i++) {
        *out++ = hex_digits[bytes[i] >> 4];
        *out++ = hex_digits[bytes[i] & 15];
    }
    *out = '\0';
}

/* In the place of an issuer's tag: a key that has an end, and no JWT. */
#define NO_ISSUER "00000000"
_Static_assert(sizeof(NO_ISSUER) == ISSUER_TAG_LEN + 1, "it has a tag's size");

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until when, and by whose word; ends_s 0: for as long as the sandbox lives. */
struct grant {
    int64_t ends_s;
    char issuer[ISSUER_TAG_LEN + 1];
};

static void derive(const struct auth *auth, enum box_door door, const char *sandbox_id,
                   const struct grant *grant, char out[BOX_TOKEN_SIZE])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    char text[160];
    unsigned len = 0;
    int64_t generation = auth_token_generation(auth, sandbox_id);
    int n = snprintf(text, sizeof(text), "box/%s%.40s", door == BOX_TRAFFIC ? "traffic/" : "",
                     sandbox_id);
    if (generation > 0)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "/generation/%" PRId64, generation);
    if (grant->ends_s > 0)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "/until/%" PRId64 "/%s", grant->ends_s,
                      grant->issuer);
    HMAC(EVP_sha256(), auth->token_secret, sizeof(auth->token_secret), (unsigned char *)text,
         (size_t)n, mac, &len);
    to_hex(mac, SHA256_SIZE, out);
    if (grant->ends_s > 0)
        snprintf(out + BOX_TOKEN_LEN, BOX_TOKEN_SIZE - BOX_TOKEN_LEN, "%0*" PRIx64 "%s",
                 BOX_TOKEN_END_LEN, (uint64_t)grant->ends_s, grant->issuer);
}

static bool counts(const struct auth *auth, const struct grant *grant)
{
    if (grant->ends_s == 0)
        return true;
    return time_now_ms() / 1000 < grant->ends_s &&
           (strcmp(grant->issuer, NO_ISSUER) == 0 || auth_trusts(auth, grant->issuer));
}

/* --- those with an end --- */

struct box_grants {
    char sandbox_id[SANDBOX_ID_LEN + 1];
    struct grant items[BOX_GRANTS_MAX]; /* ends_s 0: nothing; the one used longest ago first */
    UT_hash_handle hh;
};

void auth_forget_grants(struct auth *auth)
{
    while (auth->grants != NULL) {
        struct box_grants *oldest = auth->grants;
        HASH_DEL(auth->grants, oldest);
        free(oldest);
    }
}

static struct box_grants *grants_of(const struct auth *auth, const char *sandbox_id)
{
    struct box_grants *grants;
    HASH_FIND_STR(auth->grants, sandbox_id, grants);
    return grants;
}

static void forget(struct auth *auth, struct box_grants *grants)
{
    HASH_DEL(auth->grants, grants);
    free(grants);
}

void auth_set_sandboxes(struct auth *auth, bool (*has)(void *ctx, const char *sandbox_id),
                        void *ctx)
{
    auth->has_sandbox = has;
    auth->has_sandbox_ctx = ctx;
}

static bool is_of_use(const struct auth *auth, const struct box_grants *grants)
{
    if (auth->has_sandbox != NULL && !auth->has_sandbox(auth->has_sandbox_ctx, grants->sandbox_id))
        return false;
    for (size_t i = 0; i < BOX_GRANTS_MAX; i++)
        if (grants->items[i].ends_s != 0 && counts(auth, &grants->items[i]))
            return true;
    return false;
}

/* Those of sandboxes that are gone, and those that have all ended, which are looked for now and
 * then; if that was not enough, what was used longest ago. */
static void make_room(struct auth *auth)
{
    struct box_grants *grants, *next;
    int64_t now_ms = monotonic_ms();
    if (now_ms - auth->grants_swept_ms >= SWEEP_MS) {
        auth->grants_swept_ms = now_ms;
        HASH_ITER(hh, auth->grants, grants, next)
        {
            if (!is_of_use(auth, grants))
                forget(auth, grants);
        }
    }
    if (HASH_COUNT(auth->grants) >= BOX_GRANTED_MAX)
        forget(auth, auth->grants);
}

static struct box_grants *make_grants(struct auth *auth, const char *sandbox_id)
{
    struct box_grants *grants = calloc(1, sizeof(*grants));
    if (grants == NULL)
        return NULL;
    if (HASH_COUNT(auth->grants) >= BOX_GRANTED_MAX)
        make_room(auth);
    snprintf(grants->sandbox_id, sizeof(grants->sandbox_id), "%s", sandbox_id);
    HASH_ADD_STR(auth->grants, sandbox_id, grants);
    return grants;
}

/* Where it is, or else where something is that counts no more, or else what was used longest ago.
 */
static size_t place_for(const struct auth *auth, const struct box_grants *grants,
                        const struct grant *grant)
{
    size_t place = 0;
    for (size_t i = BOX_GRANTS_MAX; i-- > 0;) {
        const struct grant *item = &grants->items[i];
        if (item->ends_s == grant->ends_s && strcmp(item->issuer, grant->issuer) == 0)
            return i;
        if (item->ends_s == 0 || !counts(auth, item))
            place = i;
    }
    return place;
}

/* Without memory an address that is signed with it is refused, and nothing else. */
static void remember(struct auth *auth, const char *sandbox_id, const struct grant *grant)
{
    struct box_grants *grants = grants_of(auth, sandbox_id);
    if (grants == NULL)
        grants = make_grants(auth, sandbox_id);
    else {
        HASH_DEL(auth->grants, grants);
        HASH_ADD_STR(auth->grants, sandbox_id, grants); /* behind all others */
    }
    if (grants == NULL)
        return;
    size_t place = place_for(auth, grants, grant);
    memmove(&grants->items[place], &grants->items[place + 1],
            (BOX_GRANTS_MAX - 1 - place) * sizeof(grants->items[0]));
    grants->items[BOX_GRANTS_MAX - 1] = *grant;
}

void auth_box_token(struct auth *auth, enum box_door door, const char *sandbox_id,
                    const struct principal *by, char out[BOX_TOKEN_SIZE])
{
    struct grant grant = {0};
    int64_t ends_ms = by == NULL ? 0 : auth_gives_until_ms(by);
    if (ends_ms != 0) {
        grant.ends_s = ends_ms / 1000;
        memcpy(grant.issuer, by->issuer[0] != '\0' ? by->issuer : NO_ISSUER, sizeof(grant.issuer));
        if (door == BOX_INSIDE)
            remember(auth, sandbox_id, &grant);
    }
    derive(auth, door, sandbox_id, &grant, out);
}

/* The end that a token says it has; false: it has no token's form. */
static bool read_grant(const char *token, struct grant *ret_grant)
{
    size_t len = strlen(token);
    struct grant grant = {0};
    if (strspn(token, hex_digits) != len)
        return false;
    if (len != BOX_TOKEN_LEN) {
        char end[BOX_TOKEN_END_LEN + 1] = "";
        if (len != BOX_TOKEN_SIZE - 1)
            return false;
        memcpy(end, token + BOX_TOKEN_LEN, BOX_TOKEN_END_LEN);
        memcpy(grant.issuer, token + BOX_TOKEN_LEN + BOX_TOKEN_END_LEN, ISSUER_TAG_LEN);
        grant.ends_s = strtoll(end, NULL, 16);
        if (grant.ends_s == 0)
            return false;
    }
    *ret_grant = grant;
    return true;
}

int auth_box_may_try(const struct auth *auth, const char *peer, struct error *err)
{
    int64_t wait = throttle_wait(&auth->throttle, peer_address(peer), monotonic_ms());
    if (wait > 0)
        return error_set(err, ERROR_TOO_MANY_ATTEMPTS,
                         "too many wrong keys came from this address: try again in %d s",
                         (int)(wait / 1000) + 1);
    return 0;
}

int auth_box_refuse(struct auth *auth, const char *peer, const char *what, struct error *err)
{
    int rc = auth_box_may_try(auth, peer, err);
    throttle_failed(&auth->throttle, peer_address(peer), monotonic_ms());
    return rc < 0 ? -1 : error_set(err, ERROR_UNAUTHORIZED, "%s", what);
}

bool auth_box_is_token(const struct auth *auth, enum box_door door, const char *sandbox_id,
                       const char *token)
{
    char right[BOX_TOKEN_SIZE];
    struct grant grant;
    if (!read_grant(token, &grant))
        return false;
    derive(auth, door, sandbox_id, &grant, right);
    return CRYPTO_memcmp(token, right, strlen(right)) == 0;
}

int auth_box_check(struct auth *auth, enum box_door door, const char *sandbox_id, const char *token,
                   const char *peer, struct error *err)
{
    char right[BOX_TOKEN_SIZE];
    struct grant grant;
    if (auth->open)
        return 0;
    if (token == NULL || token[0] == '\0')
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the sandbox asks for its access token: send it as X-Access-Token");
    if (!read_grant(token, &grant))
        return auth_box_refuse(auth, peer, "X-Access-Token is not this sandbox's", err);
    derive(auth, door, sandbox_id, &grant, right);
    /* Nobody guesses 256 bits: one who is right is let in however many were wrong before. */
    if (CRYPTO_memcmp(token, right, strlen(right)) != 0)
        return auth_box_refuse(auth, peer, "X-Access-Token is not this sandbox's", err);
    if (!counts(auth, &grant))
        return error_set(
            err, ERROR_UNAUTHORIZED,
            "X-Access-Token has ended, with the key or JWT that it was made for: connect to "
            "the sandbox again");
    if (grant.ends_s > 0 && door == BOX_INSIDE)
        remember(auth, sandbox_id, &grant);
    return 0;
}

bool auth_signature_has_form(const char *signature)
{
    return strncmp(signature, "v1_", AUTH_SIGNATURE_PREFIX) == 0 &&
           strlen(signature) == AUTH_SIGNATURE_PREFIX + SIGNATURE_LEN;
}

bool auth_signature_begins(const char *signature, const char *beginning, size_t len)
{
    return CRYPTO_memcmp(signature + AUTH_SIGNATURE_PREFIX, beginning, len) == 0;
}

static bool is_signed(const char *token, const char *text, const char *expires,
                      const char *signature)
{
    unsigned char hash[EVP_MAX_MD_SIZE], base64[EVP_MAX_MD_SIZE * 2];
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned len = 0;
    bool good = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(md, text, strlen(text)) == 1 &&
                EVP_DigestUpdate(md, ":", 1) == 1 &&
                EVP_DigestUpdate(md, token, strlen(token)) == 1;
    if (good && expires != NULL)
        good = EVP_DigestUpdate(md, ":", 1) == 1 &&
               EVP_DigestUpdate(md, expires, strlen(expires)) == 1;
    good = good && EVP_DigestFinal_ex(md, hash, &len) == 1;
    EVP_MD_CTX_free(md);
    if (!good)
        return false;
    EVP_EncodeBlock(base64, hash, SHA256_SIZE);
    return CRYPTO_memcmp(signature + AUTH_SIGNATURE_PREFIX, base64, SIGNATURE_LEN) == 0;
}

bool auth_box_signed(const struct auth *auth, const char *sandbox_id, const char *text,
                     const char *expires, const char *signature)
{
    static const struct grant none = {0};
    char token[BOX_TOKEN_SIZE];
    if (!auth_signature_has_form(signature))
        return false;
    derive(auth, BOX_INSIDE, sandbox_id, &none, token);
    if (is_signed(token, text, expires, signature))
        return true;
    const struct box_grants *grants = grants_of(auth, sandbox_id);
    for (size_t i = 0; grants != NULL && i < BOX_GRANTS_MAX; i++) {
        const struct grant *grant = &grants->items[i];
        if (grant->ends_s == 0 || !counts(auth, grant))
            continue;
        derive(auth, BOX_INSIDE, sandbox_id, grant, token);
        if (is_signed(token, text, expires, signature))
            return true;
    }
    return false;
}

/* --- keys --- */

#define E2B_PREFIX "e2b_"

void auth_key_to_e2b(const char *key, char out[E2B_KEY_SIZE])
{
    size_t len = strnlen(key, AUTH_KEY_SIZE - 1);
    memcpy(out, E2B_PREFIX, sizeof(E2B_PREFIX));
    to_hex((const unsigned char *)key, len, out + sizeof(E2B_PREFIX) - 1);
}

static int hex_value(char c)
{
    const char *at = c == '\0' ? NULL : strchr(hex_digits, c);
    return at == NULL ? -1 : (int)(at - hex_digits);
}

bool auth_key_from_e2b(const char *text, char out[AUTH_KEY_SIZE])
{
    size_t used = 0;
    if (strncmp(text, E2B_PREFIX, sizeof(E2B_PREFIX) - 1) != 0)
        return false;
    for (text += sizeof(E2B_PREFIX) - 1; *text != '\0'; text += 2) {
        int high = hex_value(text[0]), low = high < 0 ? -1 : hex_value(text[1]);
        if (low < 0 || (high == 0 && low == 0) || used == AUTH_KEY_SIZE - 1)
            return false;
        out[used++] = (char)(high << 4 | low);
    }
    out[used] = '\0';
    return used > 0;
}
