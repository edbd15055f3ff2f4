/* SPDX-License-Identifier: Apache-2.0 */

/* The four rounds of RFC 1321 as one loop over its tables. */

#include "agent/md5.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

/* floor(2^32 × abs(sin(i + 1))) */
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const unsigned char turns[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t rotate(uint32_t value, unsigned by)
{
    return value << by | value >> (32 - by);
}

static void add_block(uint32_t state[4], const unsigned char block[64])
{
    uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
    for (unsigned i = 0; i < 16; i++) {
        memcpy(&words[i], block + 4 * i, 4);
        words[i] = le32toh(words[i]);
    }
    for (unsigned i = 0; i < 64; i++) {
        uint32_t mix;
        unsigned word;
        switch (i / 16) {
        case 0:
            mix = (b & c) | (~b & d);
            word = i;
            break;
        case 1:
            mix = (d & b) | (~d & c);
            word = 5 * i + 1;
            break;
        case 2:
            mix = b ^ c ^ d;
            word = 3 * i + 5;
            break;
        default:
            mix = c ^ (b | ~d);
            word = 7 * i;
            break;
        }
        uint32_t next = b + rotate(a + mix + sines[i] + words[word % 16], turns[i / 16][i % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void md5_init(struct md5 *md5)
{
    *md5 = (struct md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void md5_add(struct md5 *md5, const void *data, size_t len)
{
    const unsigned char *at = data;
    size_t have = md5->length % 64;
    md5->length += len;
    if (have > 0) {
        size_t n = len < 64 - have ? len : 64 - have;
        memcpy(md5->block + have, at, n);
        at += n;
        len -= n;
        if (have + n < 64)
            return;
        add_block(md5->state, md5->block);
    }
    for (; len >= 64; at += 64, len -= 64)
        add_block(md5->state, at);
    if (len > 0)
        memcpy(md5->block, at, len);
}

void md5_end(struct md5 *md5, unsigned char out[MD5_SIZE])
{
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = htole64(md5->length * 8);
    size_t have = md5->length % 64;
    md5_add(md5, padding, have < 56 ? 56 - have : 120 - have);
    md5_add(md5, &bits, sizeof(bits));
    for (unsigned i = 0; i < 4; i++) {
        uint32_t word = htole32(md5->state[i]);
        memcpy(out + 4 * i, &word, 4);
    }
}

void md5_text(const unsigned char digest[MD5_SIZE], char out[MD5_TEXT_SIZE])
{
    for (unsigned i = 0; i < MD5_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
