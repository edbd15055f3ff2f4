/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Base64, for the handshake alone. It asks for SHA-1 of sixty bytes that are no secret: not worth a
 * cryptographic library in the layer that faces the network.
 */

#include "http/ws_key.h"

#include <stdint.h>
#include <string.h>

#include "base/sha1.h"

static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

enum { KEY_LEN = WS_KEY_SIZE - 1 };

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
    unsigned char digest[SHA1_SIZE];
    struct sha1 sha1;
    memcpy(text, key, KEY_LEN);
    memcpy(text + KEY_LEN, guid, sizeof(guid));
    sha1_init(&sha1);
    sha1_add(&sha1, text, sizeof(text) - 1);
    sha1_end(&sha1, digest);
    base64(digest, SHA1_SIZE, accept);
}
