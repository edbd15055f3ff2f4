/* SPDX-License-Identifier: Apache-2.0 */

/*
 * AES-256-GCM with random nonces. 96 bits of them are safe for some 2^32 texts under one key; there
 * are thousands here.
 */

#include "auth/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/cleanup.h"

enum { VERSION = 1, NONCE_SIZE = 12, TAG_SIZE = 16, PLAIN_MAX = 1 << 20 };

static void cleanup_cipher(EVP_CIPHER_CTX **ctx)
{
    EVP_CIPHER_CTX_free(*ctx);
}
#define _cleanup_cipher_ _cleanup_(cleanup_cipher)

void buf_wipe(struct buf *b)
{
    if (b->cap > 0)
        OPENSSL_cleanse(b->data, b->cap);
    buf_release(b);
}

int seal(const unsigned char key[SEAL_KEY_SIZE], struct slice place, struct slice plain,
         struct buf *out, struct error *err)
{
    _cleanup_cipher_ EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    unsigned char nonce[NONCE_SIZE];
    int n = 0;
    if (plain.len > PLAIN_MAX || place.len > PLAIN_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "sealing: this is too large");
    if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
        return error_sys(err, "sealing: no random bytes");
    unsigned char *at = (unsigned char *)buf_reserve(out, SEAL_OVERHEAD + plain.len);
    if (at == NULL)
        return buf_check(out, "the sealed text", err);
    at[0] = VERSION;
    memcpy(at + 1, nonce, NONCE_SIZE);
    unsigned char *body = at + 1 + NONCE_SIZE;
    if (ctx == NULL || EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) != 1 ||
        EVP_EncryptUpdate(ctx, NULL, &n, (const unsigned char *)place.data, (int)place.len) != 1 ||
        EVP_EncryptUpdate(ctx, body, &n, (const unsigned char *)plain.data, (int)plain.len) != 1 ||
        EVP_EncryptFinal_ex(ctx, body + n, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, body + plain.len) != 1)
        return error_set(err, ERROR_INTERNAL, "sealing: the cipher failed");
    buf_commit(out, SEAL_OVERHEAD + plain.len);
    return 0;
}

int unseal(const unsigned char key[SEAL_KEY_SIZE], struct slice place, struct slice sealed,
           struct buf *out, struct error *err)
{
    _cleanup_cipher_ EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    const unsigned char *in = (const unsigned char *)sealed.data;
    int n = 0;
    if (sealed.len < SEAL_OVERHEAD || sealed.len > PLAIN_MAX + SEAL_OVERHEAD ||
        place.len > PLAIN_MAX || in[0] != VERSION)
        return error_set(err, ERROR_INTERNAL, "unsealing: this is no sealed text");
    size_t len = sealed.len - SEAL_OVERHEAD;
    const unsigned char *body = in + 1 + NONCE_SIZE;
    unsigned char *to = (unsigned char *)buf_reserve(out, len + 1);
    if (to == NULL)
        return buf_check(out, "the unsealed text", err);
    if (ctx == NULL || EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, in + 1) != 1 ||
        EVP_DecryptUpdate(ctx, NULL, &n, (const unsigned char *)place.data, (int)place.len) != 1 ||
        EVP_DecryptUpdate(ctx, to, &n, body, (int)len) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, (void *)(body + len)) != 1 ||
        EVP_DecryptFinal_ex(ctx, to + n, &n) != 1) {
        OPENSSL_cleanse(to, len);
        return error_set(err, ERROR_INTERNAL,
                         "unsealing: it was sealed with another key, or is not what it was; the "
                         "key is the file secret-key of the data folder");
    }
    buf_commit(out, len);
    return 0;
}
