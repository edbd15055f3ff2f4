/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens of sandboxes: derived, compared in constant time, never stored. */

#include "auth/box_token.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "auth/state.h"

enum { SHA256_SIZE = 32, SIGNATURE_LEN = 43 }; /* unpadded base64 of 32 bytes */

static const char hex_digits[] = "0123456789abcdef";

static void to_hex(const unsigned char *bytes, size_t len, char *out)
{
    for (size_t i = 0; i < len; i++) {
        *out++ = hex_digits[bytes[i] >> 4];
        *out++ = hex_digits[bytes[i] & 15];
    }
    *out = '\0';
}

void auth_box_token(const struct auth *auth, const char *sandbox_id, char out[BOX_TOKEN_SIZE])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    char text[64];
    unsigned len = 0;
    int n = snprintf(text, sizeof(text), "box/%.40s", sandbox_id);
    HMAC(EVP_sha256(), auth->token_secret, sizeof(auth->token_secret), (unsigned char *)text,
         (size_t)n, mac, &len);
    to_hex(mac, SHA256_SIZE, out);
}

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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

int auth_box_check(struct auth *auth, const char *sandbox_id, const char *token, const char *peer,
                   struct error *err)
{
    char right[BOX_TOKEN_SIZE];
    if (auth->open)
        return 0;
    if (token == NULL || token[0] == '\0')
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the sandbox asks for its access token: send it as X-Access-Token");
    auth_box_token(auth, sandbox_id, right);
    /* Nobody guesses 256 bits: one who is right is let in however many were wrong before. */
    if (strlen(token) == sizeof(right) - 1 && CRYPTO_memcmp(token, right, sizeof(right) - 1) == 0)
        return 0;
    return auth_box_refuse(auth, peer, "X-Access-Token is not this sandbox's", err);
}

bool auth_signature_has_form(const char *signature)
{
    return strncmp(signature, "v1_", AUTH_SIGNATURE_PREFIX) == 0 &&
           strlen(signature) == AUTH_SIGNATURE_PREFIX + SIGNATURE_LEN;
}

bool auth_box_signed(const struct auth *auth, const char *sandbox_id, const char *text,
                     const char *expires, const char *signature)
{
    char token[BOX_TOKEN_SIZE];
    unsigned char hash[EVP_MAX_MD_SIZE], base64[EVP_MAX_MD_SIZE * 2];
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned len = 0;
    auth_box_token(auth, sandbox_id, token);
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
    return auth_signature_has_form(signature) &&
           CRYPTO_memcmp(signature + AUTH_SIGNATURE_PREFIX, base64, SIGNATURE_LEN) == 0;
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
