/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tokens whose signature was found right, so that it is checked once and not with every request. A
 * token is known by its SHA-256; whoever changes what makes signatures right (keys of issuers,
 * revocations) clears it. Bounded: the oldest goes first.
 */

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include "auth/auth.h"

enum { TOKEN_DIGEST_SIZE = 32 };

struct token_entry {
    unsigned char digest[TOKEN_DIGEST_SIZE];
    struct principal said; /* what the token says */
    int64_t ends_ms;
    UT_hash_handle hh;
};

struct token_cache { /* start from a zeroed struct */
    struct token_entry *entries;
};

/* NULL: it is not known, or has ended. Until the next call. */
const struct principal *token_cache_get(struct token_cache *cache,
                                        const unsigned char digest[TOKEN_DIGEST_SIZE],
                                        int64_t now_ms);
void token_cache_put(struct token_cache *cache, const unsigned char digest[TOKEN_DIGEST_SIZE],
                     const struct principal *said, int64_t ends_ms);
void token_cache_clear(struct token_cache *cache);
