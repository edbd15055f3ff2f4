/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The keys of a WebSocket handshake (RFC 6455, 4.2.2): proof that both sides speak WebSocket, and
 * no secret. */

#include <stdbool.h>
#include <stddef.h>

enum {
    WS_KEY_SIZE = 25,    /* base64 of 16 bytes, and a NUL */
    WS_ACCEPT_SIZE = 29, /* base64 of a SHA-1, and a NUL */
};

/* Whether it is base64 of 16 bytes. */
bool ws_key_valid(const char *key);
void ws_key_make(const unsigned char random[16], char key[WS_KEY_SIZE]);
/* The value of Sec-WebSocket-Accept for a valid key. */
void ws_key_accept(const char *key, char accept[WS_ACCEPT_SIZE]);
