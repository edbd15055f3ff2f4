/* SPDX-License-Identifier: Apache-2.0 */

/* By OpenSSL, whose home this folder is. */

#include "auth/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/cleanup.h"

enum { PIECE = 256 * 1024 };

static int feed(EVP_MD_CTX *ctx, int fd, char *piece, struct error *err)
{
    ssize_t n;
    while ((n = read(fd, piece, PIECE)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && EVP_DigestUpdate(ctx, piece, (size_t)n) != 1)
            return error_set(err, ERROR_INTERNAL, "SHA-256 failed");
    return n < 0 ? error_sys(err, "reading") : 0;
}

int digest_file(int fd, char out[DIGEST_TEXT_SIZE], struct error *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    _cleanup_free_ char *piece = malloc(PIECE);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int result = -1;
    if (piece == NULL || ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
        error_set(err, ERROR_INTERNAL, "SHA-256 is not to be had");
    else if (feed(ctx, fd, piece, err) == 0)
        result = EVP_DigestFinal_ex(ctx, digest, &len) == 1
                     ? 0
                     : error_set(err, ERROR_INTERNAL, "SHA-256 failed");
    EVP_MD_CTX_free(ctx);
    for (unsigned i = 0; result == 0 && i < len; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return result;
}
