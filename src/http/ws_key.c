/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SHA-1 and base64, for the handshake alone. It asks for SHA-1 of sixty bytes that are no secret:
 * not worth a cryptographic library in the layer that faces the network. Nothing that needs a hash
 * to be strong may use this one.
 */

#include "http/ws_key.h"

#include <stdint.h>
#include <string.h>

static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

enum { KEY_LEN = WS_KEY_SIZE - 1, BLOCK = 64, DIGEST = 20 };

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void sha1_block(uint32_t state[5], const unsigned char block[BLOCK])
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

/* Of a text of 56 to 63 bytes: with its padding, two blocks. */
static void sha1(const char *text, size_t len, unsigned char digest[DIGEST])
{
    unsigned char blocks[2 * BLOCK] = {0};
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    memcpy(blocks, text, len);
    blocks[len] = 0x80;
    blocks[2 * BLOCK - 2] = (unsigned char)(len * 8 >> 8);
    blocks[2 * BLOCK - 1] = (unsigned char)(len * 8);
    sha1_block(state, blocks);
    sha1_block(state, blocks + BLOCK);
    for (int i = 0; i < DIGEST; i++)
        digest[i] = (unsigned char)(state[i / 4] >> (24 - i % 4 * 8));
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void base64(const unsigned char *in, size_t len, char *out)
{
    for (size_t i = 0; i < len; i += 3) {
        uint32_t v = (uint32_t)in[i] << 16;
        v |= i + 1 < len ? (uint32_t)in[i + 1] << 8 : 0;
        v |= i + 2 < len ? in[i + 2] : 0;
        *out++ = alphabet[v >> 18];
        *out++ = alphabet[v >> 12 & 63];
        *out++ = i + 1 < len ? alphabet[v >> 6 & 63] : '=';
        *out++ = i + 2 < len ? alphabet[v & 63] : '=';
    }
    *out = '\0';
}

bool ws_key_valid(const char *key)
{
    /* 16 bytes are 21 characters and a half: of the last one, four bits are padding. */
    return strlen(key) == KEY_LEN && strspn(key, alphabet) == KEY_LEN - 2 &&
           strchr("AQgw", key[KEY_LEN - 3]) != NULL && strcmp(key + KEY_LEN - 2, "==") == 0;
}

void ws_key_make(const unsigned char random[16], char key[WS_KEY_SIZE])
{
    base64(random, 16, key);
}

void ws_key_accept(const char *key, char accept[WS_ACCEPT_SIZE])
{
    char text[KEY_LEN + sizeof(guid)];
    unsigned char digest[DIGEST];
    memcpy(text, key, KEY_LEN);
    memcpy(text + KEY_LEN, guid, sizeof(guid));
    sha1(text, sizeof(text) - 1, digest);
    base64(digest, DIGEST, accept);
}
