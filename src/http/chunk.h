/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Chunked bodies, decoded in place. The decoder eats framing and says how many bytes of the body
 * follow; those the caller takes itself, straight to where they are wanted.
 *
 *     chunk_decode(&d, in, len, &used, &err)  … skip `used` bytes; then:
 *       CHUNK_MORE   wants more input
 *       CHUNK_DATA   d.left bytes of body come next; take some, chunk_took(&d, n)
 *       CHUNK_END    the body is over
 *       CHUNK_BAD    INVALID_HTTP; the connection cannot be used any further
 *
 * Extensions are skipped and trailer fields dropped, both within limits.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum chunk_step { CHUNK_MORE, CHUNK_DATA, CHUNK_END, CHUNK_BAD };

struct chunk_decoder { /* start from a zeroed struct */
    uint64_t left;     /* of the current chunk */
    unsigned state;
    unsigned digits;
    unsigned extension; /* bytes on this line */
    unsigned trailer;   /* bytes in all */
};

enum chunk_step chunk_decode(struct chunk_decoder *d, const char *in, size_t len, size_t *ret_used,
                             struct error *err);
void chunk_took(struct chunk_decoder *d, uint64_t n);
