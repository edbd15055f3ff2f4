/* SPDX-License-Identifier: Apache-2.0 */

/* Plain: what is hashed here is small, or comes over a socket anyway. */

#include "base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void add_block(uint32_t state[5], const unsigned char block[SHA1_BLOCK])
{
    uint32_t w[80];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);

    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = rotate(a, 5) + f + e + w[i];
        e = d, d = c, c = rotate(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

void sha1_init(struct sha1 *sha1)
{
    *sha1 = (struct sha1){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void sha1_add(struct sha1 *sha1, const void *data, size_t len)
{
    const unsigned char *from = data;
    size_t held = sha1->len % SHA1_BLOCK;
    sha1->len += len;
    if (held > 0) {
        size_t n = len < SHA1_BLOCK - held ? len : SHA1_BLOCK - held;
        memcpy(sha1->block + held, from, n);
        from += n, len -= n;
        if (held + n < SHA1_BLOCK)
            return;
        add_block(sha1->state, sha1->block);
    }
    for (; len >= SHA1_BLOCK; from += SHA1_BLOCK, len -= SHA1_BLOCK)
        add_block(sha1->state, from);
    if (len > 0)
        memcpy(sha1->block, from, len);
}

void sha1_end(struct sha1 *sha1, unsigned char digest[SHA1_SIZE])
{
    uint64_t bits = sha1->len * 8;
    unsigned char tail[SHA1_BLOCK + 8] = {0x80};
    size_t held = sha1->len % SHA1_BLOCK;
    size_t pad = (held < 56 ? 56 : 120) - held;
    for (int i = 0; i < 8; i++)
        tail[pad + i] = (unsigned char)(bits >> (56 - 8 * i));
    sha1_add(sha1, tail, pad + 8);
    for (int i = 0; i < SHA1_SIZE; i++)
        digest[i] = (unsigned char)(sha1->state[i / 4] >> (24 - i % 4 * 8));
}
