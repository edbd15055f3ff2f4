/* SPDX-License-Identifier: Apache-2.0 */

/* A table in the order of coming. */

#include "auth/token_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static void drop(struct token_cache *cache, struct token_entry *entry)
{
    HASH_DEL(cache->entries, entry);
    free(entry);
}

const struct principal *token_cache_get(struct token_cache *cache,
                                        const unsigned char digest[TOKEN_DIGEST_SIZE],
                                        int64_t now_ms)
{
    struct token_entry *entry;
    HASH_FIND(hh, cache->entries, digest, TOKEN_DIGEST_SIZE, entry);
    if (entry == NULL || now_ms < entry->ends_ms)
        return entry == NULL ? NULL : &entry->said;
    drop(cache, entry);
    return NULL;
}

void token_cache_put(struct token_cache *cache, const unsigned char digest[TOKEN_DIGEST_SIZE],
                     const struct principal *said, int64_t ends_ms)
{
    struct token_entry *entry;
    HASH_FIND(hh, cache->entries, digest, TOKEN_DIGEST_SIZE, entry);
    if (entry != NULL)
        drop(cache, entry);
    if (HASH_COUNT(cache->entries) >= TOKENS_CACHED_MAX)
        drop(cache, cache->entries);
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) /* then it is checked again */
        return;
    memcpy(entry->digest, digest, TOKEN_DIGEST_SIZE);
    entry->said = *said;
    entry->ends_ms = ends_ms;
    HASH_ADD(hh, cache->entries, digest, TOKEN_DIGEST_SIZE, entry);
}

void token_cache_clear(struct token_cache *cache)
{
    while (cache->entries != NULL)
        drop(cache, cache->entries);
}
